//! The simulation's side of a dump: samples a cycle, finds what changed, hands it to the writer's thread.

use super::fst::FstSink;
use super::signals::{Signals, Source};
use super::sink::Sink;
use super::vcd::VcdSink;
use super::writer::{Chunk, Cycle, Message, Shared, Writer};
use super::{Format, WaveError};
use crate::SimError;
use crate::engine::{ClockId, Engine};
use rust_hdl::core::block::Block;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Changes and cycles after which a chunk goes to the writer's thread.
const CHUNK_CHANGES: usize = 1 << 15;
const CHUNK_CYCLES: usize = 256;
/// Chunks that may wait for the writer; then the simulation waits.
const CHUNKS_WAITING: usize = 8;
/// Words that are compared at once.
const COMPARED_WORDS: usize = 16;
/// How long a simulation may take to notice that its dump is to be closed.
const NOTICE: Duration = Duration::from_secs(1);
/// How long the writer may take to write what it was given.
const WRITE: Duration = Duration::from_secs(60);

/// Which cycles to write.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Window {
    /// First cycle.
    pub from: u64,
    /// Cycle after the last one; `None`: to the end.
    pub to: Option<u64>,
    /// Only this many cycles before the end, before [`Dump::trigger`] or before a failure; they are kept in memory until then.
    pub last: Option<u64>,
}

/// A waveform file that is being written. Dropping it, also by a panic, writes what was recorded.
#[derive(Debug)]
pub struct Dump {
    path: PathBuf,
    window: Window,
    source: Source,
    words: Vec<u32>,
    previous: Vec<u32>,
    started: bool,
    chunk: Chunk,
    /// Empty chunks.
    spare: Receiver<Chunk>,
    sender: SyncSender<Message>,
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
}

/// Closes a dump from another thread: for a Ctrl-C handler.
#[derive(Debug, Clone)]
pub struct Closer {
    sender: SyncSender<Message>,
    shared: Arc<Shared>,
}

impl Closer {
    /// Has the dump write what was recorded and close its file; the simulation may go on, without being recorded. Waits until it is done; false if that
    /// took more than a minute.
    pub fn close(&self) -> bool {
        self.shared.stop.store(true, Ordering::Release);
        if self.shared.wait(NOTICE) {
            return true;
        }
        // The simulation does not get to its next cycle: all but its last cycles is at the writer.
        let told = self.sender.send(Message::Close);
        told.is_err() || self.shared.wait(WRITE)
    }
}

impl Dump {
    /// Creates the file and starts its writer.
    ///
    /// # Errors
    /// [`WaveError::File`] if the file cannot be written.
    pub fn create(path: &Path, format: Format, signals: Signals, window: Window) -> Result<Self, WaveError> {
        let error = |source| WaveError::File { path: path.to_path_buf(), source };
        let file = File::create(path).map_err(error)?;
        let mut sink: Box<dyn Sink> = match format {
            Format::Vcd => Box::new(VcdSink::create(file, &signals).map_err(error)?),
            Format::Fst => Box::new(FstSink::create(file, &signals).map_err(error)?),
        };
        // The header alone is a readable file.
        sink.flush().map_err(error)?;
        Self::start(path, sink, signals, window)
    }

    fn start(path: &Path, sink: Box<dyn Sink>, signals: Signals, window: Window) -> Result<Self, WaveError> {
        let error = |source| WaveError::File { path: path.to_path_buf(), source };
        let (empty, spare) = channel();
        let writer = Writer::new(sink, &signals, window.last, empty);
        let (sender, messages) = sync_channel(CHUNKS_WAITING);
        let shared = Arc::new(Shared::default());
        let theirs = shared.clone();
        let thread = std::thread::Builder::new().name("waveform writer".into());
        let writer = thread.spawn(move || writer.run(&messages, theirs)).map_err(error)?;
        Ok(Self {
            path: path.to_path_buf(),
            window,
            words: vec![0; signals.len],
            previous: vec![0; signals.len],
            source: signals.source,
            started: false,
            chunk: Chunk::default(),
            spare,
            sender,
            shared,
            writer: Some(writer),
        })
    }

    /// Records the present cycle of the engine that the signals are from: its settled values, after a rising edge of every clock.
    ///
    /// # Errors
    /// [`WaveError::File`] if the file cannot be written, once; the dump is then over, and what was written before is readable. [`WaveError::Engine`] if the signals
    /// are of a block.
    pub fn sample(&mut self, cycle: u64, engine: &mut dyn Engine) -> Result<(), WaveError> {
        self.engine(cycle, None, engine)
    }

    /// As [`Dump::sample`], after a rising edge of one clock.
    ///
    /// # Errors
    /// As [`Dump::sample`].
    pub fn sample_clock(&mut self, cycle: u64, clock: ClockId, engine: &mut dyn Engine) -> Result<(), WaveError> {
        self.engine(cycle, Some(clock.0), engine)
    }

    fn engine(&mut self, cycle: u64, rose: Option<usize>, engine: &mut dyn Engine) -> Result<(), WaveError> {
        self.record(cycle, rose, |source, words| match source {
            Source::Engine(watch) => {
                engine.sample(watch, words);
                Ok(())
            }
            Source::Block(_) => Err(SimError::Misuse { what: "the signals of this dump are of a block, not of an engine".into() }),
        })
    }

    /// Records the present cycle of the block that the signals are from, in rust-hdl's own simulator.
    ///
    /// # Errors
    /// As [`Dump::sample`].
    pub fn sample_block(&mut self, cycle: u64, block: &dyn Block) -> Result<(), WaveError> {
        self.record(cycle, None, |source, words| match source {
            Source::Block(places) => {
                places.fill(block, words);
                Ok(())
            }
            Source::Engine(_) => Err(SimError::Misuse { what: "the signals of this dump are of an engine, not of a block".into() }),
        })
    }

    fn record(
        &mut self,
        cycle: u64,
        rose: Option<usize>,
        fill: impl FnOnce(&Source, &mut [u32]) -> Result<(), SimError>,
    ) -> Result<(), WaveError> {
        if self.writer.is_none() || cycle < self.window.from {
            return Ok(());
        }
        if self.shared.failed.load(Ordering::Acquire)
            || self.shared.stop.load(Ordering::Acquire)
            || self.window.to.is_some_and(|to| cycle >= to)
        {
            return self.finish();
        }
        fill(&self.source, &mut self.words)?;
        let before = self.chunk.changes.len();
        if self.started {
            self.compare();
        } else {
            self.chunk.changes.extend(self.words.iter().enumerate().map(|(i, &w)| (i as u32, w)));
            self.started = true;
        }
        std::mem::swap(&mut self.words, &mut self.previous);
        self.chunk.cycles.push(Cycle { cycle, rose, changes: self.chunk.changes.len() - before });
        if self.chunk.changes.len() >= CHUNK_CHANGES || self.chunk.cycles.len() >= CHUNK_CYCLES {
            self.send();
        }
        Ok(())
    }

    fn compare(&mut self) {
        let (now, now_rest) = self.words.as_chunks::<COMPARED_WORDS>();
        let (before, before_rest) = self.previous.as_chunks::<COMPARED_WORDS>();
        let mut differ = |first: usize, now: &[u32], before: &[u32]| {
            let pairs = now.iter().zip(before).enumerate().filter(|(_, (n, b))| n != b);
            self.chunk.changes.extend(pairs.map(|(i, (&n, _))| ((first + i) as u32, n)));
        };
        for (block, (now, before)) in now.iter().zip(before).enumerate() {
            // All words of the block at once: vector instructions, one branch.
            if now.iter().zip(before).fold(0, |any, (n, b)| any | n ^ b) != 0 {
                differ(block * COMPARED_WORDS, now, before);
            }
        }
        differ(now.len() * COMPARED_WORDS, now_rest, before_rest);
    }

    fn send(&mut self) {
        // Memory comes back from the writer, since fresh pages cost as much as the changes in them.
        let mut next = self.spare.try_recv().unwrap_or_default();
        std::mem::swap(&mut next, &mut self.chunk);
        // A writer that is gone has left its error for `finish`.
        let _ = self.sender.send(Message::Chunk(next));
    }

    /// Ends the ring of [`Window::last`]: its cycles are written, and every cycle after them.
    pub fn trigger(&mut self) {
        self.send();
        let _ = self.sender.send(Message::Trigger);
    }

    /// A handle that closes the dump from another thread.
    pub fn closer(&self) -> Closer {
        Closer { sender: self.sender.clone(), shared: self.shared.clone() }
    }

    /// Writes the rest and closes the file.
    ///
    /// # Errors
    /// [`WaveError::File`] if the file cannot be written and [`Dump::sample`] did not say so before.
    pub fn close(mut self) -> Result<(), WaveError> {
        self.finish()
    }

    fn finish(&mut self) -> Result<(), WaveError> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        self.send();
        let _ = self.sender.send(Message::Close);
        let panicked = writer.join().is_err().then(|| io::Error::other("the writer of the waveform panicked"));
        match self.shared.error().or(panicked) {
            Some(source) => Err(WaveError::File { path: self.path.clone(), source }),
            None => Ok(()),
        }
    }
}

impl Drop for Dump {
    fn drop(&mut self) {
        // Whoever wants to hear of an error calls `close`.
        let _ = self.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlist::Design;
    use crate::wave::Selection;
    use rust_hdl::prelude::*;
    use std::sync::atomic::AtomicBool;

    /// A disk with room for some changes.
    struct Full {
        room: usize,
        repaired: Arc<AtomicBool>,
    }

    impl Sink for Full {
        fn time(&mut self, _: u64) -> io::Result<()> {
            Ok(())
        }
        fn change(&mut self, _: usize, _: &[u64]) -> io::Result<()> {
            self.room = self.room.checked_sub(1).ok_or(io::ErrorKind::StorageFull)?;
            Ok(())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
        fn repair(&mut self) {
            self.repaired.store(true, Ordering::Release);
        }
    }

    #[test]
    fn a_full_disk_is_one_error_and_the_simulation_goes_on() {
        for room in [0, 10, 1_000, 19_000] {
            let design = Design::lower(&SynchronousFIFO::<Bits<8>, 3, 4, 1>::default()).unwrap();
            let mut engine = design.compile_visible().unwrap();
            let signals = Signals::of(&design, &mut engine, &Selection::default()).unwrap();
            let repaired = Arc::new(AtomicBool::new(false));
            let sink = Box::new(Full { room, repaired: repaired.clone() });
            let mut dump = Dump::start("full".as_ref(), sink, signals, Window::default()).unwrap();
            let mut errors = Vec::new();
            // Two changes of the clock a cycle.
            for cycle in 0..10_000 {
                errors.extend(dump.sample(cycle, &mut engine).err());
                engine.step();
            }
            errors.extend(dump.close().err());
            assert_eq!(errors.len(), 1, "room for {room}");
            assert_eq!(errors[0].to_string(), "cannot write full: no storage space");
            assert!(repaired.load(Ordering::Acquire));
        }
    }
}
