//! Machines that run launches.
//!
//! * [`golden`]: the functional model; no clock, fast
//! * [`rtl`]: the SIP's RTL in a simulator, cycle by cycle
//! * [`open`]: one of them by name
#![forbid(unsafe_code)]

pub mod golden;
pub mod rtl;

use braid_hdl::model::{ChannelTiming, RustHdlPins};
use braid_hdl::preset::{BUILD_STACK_BYTES, DefaultSip, SmallSip, TinySip};
use braid_isa::Geometry;
use braid_runtime::Device;
use thiserror::Error;

pub use golden::GoldenDevice;
pub use rtl::RtlDevice;

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
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OpenError {
    /// No such preset.
    #[error("no preset '{0}'")]
    Preset(String),
}

/// Builds a machine of a preset with `channel_beats` beats of memory behind each channel.
///
/// Call it on a thread with at least [`BUILD_STACK_BYTES`] of stack ([`with_stack`]): the RTL is a large struct tree.
///
/// # Errors
/// If the preset has no RTL type.
pub fn open(geometry: &Geometry, engine: Engine, channel_beats: u32, timing: ChannelTiming) -> Result<Box<dyn Device>, OpenError> {
    Ok(match engine {
        Engine::Golden => Box::new(GoldenDevice::new(*geometry, channel_beats)),
        Engine::RustHdl => match geometry.name {
            "tiny" => Box::new(RtlDevice::new(*geometry, RustHdlPins::new(Box::<TinySip>::default()), channel_beats, timing)),
            "small" => Box::new(RtlDevice::new(*geometry, RustHdlPins::new(Box::<SmallSip>::default()), channel_beats, timing)),
            "default" => Box::new(RtlDevice::new(*geometry, RustHdlPins::new(Box::<DefaultSip>::default()), channel_beats, timing)),
            name => return Err(OpenError::Preset(name.to_string())),
        },
    })
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
