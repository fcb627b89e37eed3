//! Waveform dumps of a machine while it runs.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use braid_sim::wave::{Closer, Dump, Format, Selection, Signals, WaveError, Window};

/// A dump that a machine is asked for.
#[derive(Clone, Debug)]
pub struct DumpSetup {
    /// The file.
    pub path: PathBuf,
    /// Its format.
    pub format: Format,
    /// Signals and memory words.
    pub selection: Selection,
    /// Cycles.
    pub window: Window,
    /// Where the machine leaves what became of it.
    pub handle: DumpHandle,
}

/// What becomes of a dump: a clone stays with whoever asked for it, since the machine that writes it is a plain device.
#[derive(Clone, Debug, Default)]
pub struct DumpHandle(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    closer: Option<Closer>,
    error: Option<WaveError>,
}

impl DumpHandle {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what was recorded and closes the file, from any thread (Ctrl-C); true if that worked, or if there was no file yet.
    pub fn close(&self) -> bool {
        let closer = self.state().closer.clone();
        closer.is_none_or(|closer| closer.close())
    }

    /// Why the dump ended early, once; complete when the machine is gone.
    pub fn error(&self) -> Option<WaveError> {
        self.state().error.take()
    }
}

/// A running dump that tells its handle how it ended.
pub(crate) struct Recording {
    dump: Option<Dump>,
    handle: DumpHandle,
}

impl Recording {
    pub(crate) fn start(setup: &DumpSetup, signals: Signals) -> Result<Recording, WaveError> {
        let dump = Dump::create(&setup.path, setup.format, signals, setup.window)?;
        setup.handle.state().closer = Some(dump.closer());
        Ok(Recording { dump: Some(dump), handle: setup.handle.clone() })
    }

    /// Has a cycle recorded, unless the dump failed before.
    pub(crate) fn sample(&mut self, record: impl FnOnce(&mut Dump) -> Result<(), WaveError>) {
        if let Some(dump) = &mut self.dump
            && let Err(error) = record(dump)
        {
            self.handle.state().error = Some(error);
            self.dump = None;
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.dump.take().map(Dump::close) {
            self.handle.state().error = Some(error);
        }
    }
}
