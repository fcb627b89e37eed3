//! Machines that run launches.
//!
//! * [`golden`]: the functional model; no clock, fast
//! * [`rtl`]: the SIP's RTL in a simulator, cycle by cycle
//! * [`waveform`]: VCD dumps of the RTL
//! * [`open`]: one of them by name
#![forbid(unsafe_code)]

pub mod golden;
pub mod rtl;
pub mod waveform;

use std::path::PathBuf;

use braid_hdl::model::{ChannelTiming, RustHdlPins, SipPins};
use braid_hdl::preset::{BUILD_STACK_BYTES, DefaultSip, SmallSip, TinySip};
use braid_isa::Geometry;
use braid_runtime::Device;
use thiserror::Error;

pub use golden::GoldenDevice;
pub use rtl::RtlDevice;
pub use waveform::{Selection, VcdDump, WaveformError};

/// What simulates the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// The golden machine: bits without cycles.
    Golden,
    /// The RTL in rust-hdl's own simulator.
    RustHdl,
}

impl Engine {
    /// Name as on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Engine::Golden => "golden",
            Engine::RustHdl => "rust-hdl",
        }
    }
}

/// A machine that cannot be built.
#[derive(Debug, Error)]
pub enum OpenError {
    /// No such preset.
    #[error("no preset '{0}'")]
    Preset(String),
    /// The golden machine has no signals.
    #[error("the golden machine has no signals to dump; choose an RTL engine (--engine rust-hdl)")]
    NothingToDump,
    /// The dump cannot be made.
    #[error(transparent)]
    Waveform(#[from] WaveformError),
}

/// A VCD dump that a machine is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dump {
    /// The file.
    pub path: PathBuf,
    /// Signals and cycles.
    pub selection: Selection,
}

/// How to build a machine.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Preset.
    pub geometry: Geometry,
    /// What simulates it.
    pub engine: Engine,
    /// Beats of memory behind each channel.
    pub channel_beats: u32,
    /// Timing of the memory channels.
    pub timing: ChannelTiming,
    /// A waveform dump (RTL only).
    pub dump: Option<Dump>,
}

/// Builds a machine.
///
/// Call it on a thread with enough stack ([`with_stack`]): the RTL is a large struct tree.
///
/// # Errors
/// If the preset has no RTL type, or the dump cannot be made.
pub fn open(setup: &Setup) -> Result<Box<dyn Device>, OpenError> {
    match (setup.engine, setup.geometry.name) {
        (Engine::Golden, _) if setup.dump.is_some() => Err(OpenError::NothingToDump),
        (Engine::Golden, _) => Ok(Box::new(GoldenDevice::new(setup.geometry, setup.channel_beats))),
        (Engine::RustHdl, "tiny") => simulated(setup, RustHdlPins::new(Box::<TinySip>::default())),
        (Engine::RustHdl, "small") => simulated(setup, RustHdlPins::new(Box::<SmallSip>::default())),
        (Engine::RustHdl, "default") => simulated(setup, RustHdlPins::new(Box::<DefaultSip>::default())),
        (Engine::RustHdl, name) => Err(OpenError::Preset(name.to_string())),
    }
}

fn simulated<P: SipPins + 'static>(setup: &Setup, pins: P) -> Result<Box<dyn Device>, OpenError> {
    let dump = setup.dump.as_ref().map(|d| VcdDump::create(&d.path, pins.design(), d.selection.clone())).transpose()?;
    let mut device = RtlDevice::new(setup.geometry, pins, setup.channel_beats, setup.timing);
    if let Some(mut dump) = dump {
        device.bench().observe(Box::new(move |pins, cycle| {
            if let Err(error) = dump.sample(pins.design(), cycle) {
                eprintln!("warning: {error}; the dump ends at cycle {cycle}");
            }
        }));
    }
    Ok(Box::new(device))
}

/// Runs `work` on a thread whose stack is large enough to build any preset.
///
/// # Panics
/// If the thread cannot be started, or `work` panics.
pub fn with_stack<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(4 * BUILD_STACK_BYTES).spawn_scoped(scope, work);
        match thread.expect("the system starts a thread").join() {
            Ok(value) => value,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
