//! Machines that run launches.
//!
//! * [`golden`]: the functional model; no clock, fast
//! * [`engine`]: the SIP's pins on braid-sim's engines
//! * [`lockstep`]: several simulators at once, compared
//! * [`rtl`]: the SIP's RTL in a simulator, cycle by cycle
//! * [`dump`]: waveforms of the RTL
//! * [`verilog`]: the machine, or a block of it, as Verilog with a recorded stimulus
//! * [`open`]: one of them by name
#![forbid(unsafe_code)]

pub mod dump;
pub mod engine;
pub mod golden;
pub mod lockstep;
pub mod rtl;
pub mod verilog;

use braid_hdl::model::{ChannelTiming, RustHdlPins, SipPins};
use braid_hdl::preset::{BUILD_STACK_BYTES, DefaultSip, SmallSip, TinySip};
use braid_isa::Geometry;
use braid_runtime::{Device, SessionError};
use braid_sim::wave::{Signals, WaveError};
use braid_sim::{Design, SimError};
use dump::Recording;
use rust_hdl::prelude::Block;
use thiserror::Error;

pub use dump::{DumpHandle, DumpSetup};
pub use engine::EnginePins;
pub use golden::GoldenDevice;
pub use lockstep::{Comparison, open_lockstep};
pub use rtl::RtlDevice;

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
    /// A lock step of what cannot be stepped.
    #[error("a lock step takes RTL engines: compiled, interpreter, rust-hdl")]
    Engines,
    /// The design cannot be simulated.
    #[error(transparent)]
    Simulator(#[from] SimError),
    /// A recorded launch failed.
    #[error(transparent)]
    Run(#[from] SessionError),
    /// The dump cannot be made.
    #[error(transparent)]
    Waveform(#[from] WaveError),
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
    pub dump: Option<DumpSetup>,
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
    if setup.engine == Engine::RustHdl {
        let pins = rust_hdl(top);
        let Some(dump) = &setup.dump else { return Ok(Box::new(device(setup, pins))) };
        let signals = Signals::of_block(&Design::lower(pins.design())?, pins.design(), &dump.selection)?;
        let mut recording = Recording::start(dump, signals)?;
        let mut device = device(setup, pins);
        device.bench().observe(Box::new(move |pins, cycle| recording.sample(|dump| dump.sample_block(cycle, pins.design()))));
        return Ok(Box::new(device));
    }
    top.connect_all();
    let design = Design::lower(top.as_ref())?;
    drop(top);
    match (setup.engine, setup.dump.is_some()) {
        (Engine::Interpreter, false) => on_engine(setup, &design, design.interpret()?),
        (Engine::Interpreter, true) => on_engine(setup, &design, design.interpret_visible()?),
        (_, false) => on_engine(setup, &design, design.compile()?),
        (_, true) => on_engine(setup, &design, design.compile_visible()?),
    }
}

/// The RTL on an engine of braid-sim.
fn on_engine<E: braid_sim::Engine + 'static>(setup: &Setup, design: &Design, mut engine: E) -> Result<Box<dyn Device>, OpenError> {
    let signals = setup.dump.as_ref().map(|dump| Signals::of(design, &mut engine, &dump.selection)).transpose()?;
    let mut device = device(setup, EnginePins::new(engine, setup.geometry.pes())?);
    if let (Some(dump), Some(signals)) = (&setup.dump, signals) {
        let mut recording = Recording::start(dump, signals)?;
        device.bench().observe(Box::new(move |pins, cycle| recording.sample(|dump| dump.sample(cycle, pins.engine()))));
    }
    Ok(Box::new(device))
}

fn device<P: SipPins>(setup: &Setup, pins: P) -> RtlDevice<P> {
    RtlDevice::new(setup.geometry, pins, setup.channel_beats, setup.timing)
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
