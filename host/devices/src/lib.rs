//! Machines that run launches.
//!
//! * [`golden`]: the functional model; no clock, fast
//! * [`engine`]: the SIP's pins on braid-sim's engines
//! * [`rtl`]: the SIP's RTL in a simulator, cycle by cycle
//! * [`verilog`]: the machine, or a block of it, as Verilog with a recorded stimulus
//! * [`waveform`]: VCD dumps of the RTL
//! * [`open`]: one of them by name
#![forbid(unsafe_code)]

pub mod engine;
pub mod golden;
pub mod rtl;
pub mod verilog;
pub mod waveform;

use std::path::PathBuf;

use braid_hdl::model::{ChannelTiming, RustHdlPins, SipPins};
use braid_hdl::preset::{BUILD_STACK_BYTES, DefaultSip, SmallSip, TinySip};
use braid_isa::Geometry;
use braid_runtime::{Device, RunError};
use braid_sim::{Design, SimError};
use rust_hdl::prelude::Block;
use thiserror::Error;

pub use engine::EnginePins;
pub use golden::GoldenDevice;
pub use rtl::RtlDevice;
pub use waveform::{Selection, VcdDump, WaveformError};
use waveform::{Variable, block_values};

/// What simulates the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// The golden machine: bits without cycles.
    Golden,
    /// The RTL as machine code (braid-sim's compiled engine).
    Compiled,
    /// The RTL in braid-sim's vector interpreter.
    Interpreter,
    /// The RTL in rust-hdl's own simulator: slow.
    RustHdl,
}

impl Engine {
    /// Name as on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Engine::Golden => "golden",
            Engine::Compiled => "compiled",
            Engine::Interpreter => "interpreter",
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
    #[error("the golden machine has no signals to dump; choose an RTL engine (--engine compiled)")]
    NothingToDump,
    /// The design cannot be simulated.
    #[error(transparent)]
    Simulator(#[from] SimError),
    /// A recorded launch failed.
    #[error(transparent)]
    Run(#[from] RunError),
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
        (_, "tiny") => simulated(setup, Box::<TinySip>::default(), RustHdlPins::new),
        (_, "small") => simulated(setup, Box::<SmallSip>::default(), RustHdlPins::new),
        (_, "default") => simulated(setup, Box::<DefaultSip>::default(), RustHdlPins::new),
        (_, name) => Err(OpenError::Preset(name.to_string())),
    }
}

/// The RTL of a preset in the engine that the setup names.
fn simulated<B: Block + 'static, P: SipPins + 'static>(
    setup: &Setup,
    mut top: Box<B>,
    rust_hdl: fn(Box<B>) -> P,
) -> Result<Box<dyn Device>, OpenError> {
    let create = |top: &dyn Block| setup.dump.as_ref().map(|d| VcdDump::create(&d.path, top, d.selection.clone())).transpose();
    if setup.engine == Engine::RustHdl {
        let pins = rust_hdl(top);
        let dump = create(pins.design())?;
        let scope = setup.dump.as_ref().map(|d| d.selection.scope.clone()).unwrap_or_default();
        return Ok(observed(setup, pins, dump, move |pins: &mut P, _: &[Variable]| block_values(pins.design(), &scope)));
    }
    top.connect_all();
    let dump = create(top.as_ref())?;
    let design = Design::lower(top.as_ref())?;
    if setup.engine == Engine::Interpreter {
        let pins = EnginePins::new(design.interpret()?, setup.geometry.pes())?;
        return Ok(observed(setup, pins, dump, EnginePins::values));
    }
    let pins = EnginePins::new(design.compile()?, setup.geometry.pes())?;
    Ok(observed(setup, pins, dump, EnginePins::values))
}

/// A device over some pins, with its dump written every cycle.
fn observed<P: SipPins + 'static>(
    setup: &Setup,
    pins: P,
    dump: Option<VcdDump>,
    values: impl Fn(&mut P, &[Variable]) -> Vec<String> + 'static,
) -> Box<dyn Device> {
    let mut device = RtlDevice::new(setup.geometry, pins, setup.channel_beats, setup.timing);
    if let Some(mut dump) = dump {
        device.bench().observe(Box::new(move |pins, cycle| {
            if let Err(error) = dump.sample(cycle, |variables| values(pins, variables)) {
                eprintln!("warning: {error}; the dump ends at cycle {cycle}");
            }
        }));
    }
    Box::new(device)
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
