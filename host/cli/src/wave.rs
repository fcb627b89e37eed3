//! Waveforms: the options as a dump, and Ctrl-C while it is written.

use braid_devices::{DumpHandle, DumpSetup};
use braid_sim::wave::{Format, Selection, Window};

use crate::arguments::WaveOptions;
use crate::error::Error;

/// Exit status after SIGINT, as shells count it.
const INTERRUPTED: i32 = 130;

/// The dump that was asked for.
pub(crate) fn dump(options: &WaveOptions) -> Option<DumpSetup> {
    let file = |path: &Option<std::path::PathBuf>, format| path.clone().map(|path| (path, format));
    let (path, format) = file(&options.vcd, Format::Vcd).or(file(&options.fst, Format::Fst))?;
    Some(DumpSetup {
        path,
        format,
        selection: Selection { scopes: options.wave_scope.clone(), memories: options.wave_memory.clone() },
        window: Window { from: options.wave_from, to: options.wave_to, last: options.wave_last },
        handle: DumpHandle::default(),
    })
}

/// Has Ctrl-C write what was recorded before the program ends.
pub(crate) fn close_on_interrupt(handle: DumpHandle) -> Result<(), Error> {
    ctrlc::set_handler(move || {
        handle.close();
        std::process::exit(INTERRUPTED);
    })
    .map_err(|e| Error::Options(format!("cannot watch for Ctrl-C, which the dump needs: {e}")))
}
