//! The machine, or a block of it, as a design to export, and a launch recorded at its ports.

use std::cell::RefCell;
use std::rc::Rc;

use braid_hdl::model::ChannelTiming;
use braid_hdl::preset::{DefaultSip, SmallSip, TinySip};
use braid_isa::Geometry;
use braid_runtime::execute::pages_per_pe;
use braid_runtime::layout::KvLayout;
use braid_runtime::{Load, Options, Problem, execute};
use braid_sim::Design;
use braid_sim::verilog::{Export, Recording};
use rust_hdl::prelude::Block;

use crate::{EnginePins, OpenError, RtlDevice};

/// Memory latency of a recorded launch, in cycles.
const LATENCY: u64 = 40;

/// Netlist of a preset. Call it on a thread with enough stack ([`crate::with_stack`]).
///
/// # Errors
/// If the preset has no RTL type, or the RTL cannot be lowered.
pub fn lower(geometry: &Geometry) -> Result<Design, OpenError> {
    fn of<B: Block + Default>() -> Result<Design, OpenError> {
        let mut top = Box::<B>::default();
        top.connect_all();
        Ok(Design::lower(top.as_ref())?)
    }
    match geometry.name {
        "tiny" => of::<TinySip>(),
        "small" => of::<SmallSip>(),
        "default" => of::<DefaultSip>(),
        name => Err(OpenError::Preset(name.to_string())),
    }
}

/// Runs a problem on the machine in the compiled engine, from reset on, and records the ports of the block at `path` (empty: the whole SIP) for at most
/// `cycles` cycles. Memory behind the channels is outside of every block, so KV pages are put there directly.
///
/// # Errors
/// If the design cannot be simulated, has no such block, or the launch fails.
pub fn record(
    design: &Design,
    geometry: Geometry,
    path: &str,
    export: &Export,
    problem: &Problem,
    cycles: usize,
) -> Result<Recording, OpenError> {
    let mut pins = EnginePins::new(design.compile()?, geometry.pes())?;
    let empty = Recording::new(export);
    let probe = empty.probe(pins.engine(), path)?;
    let recording = Rc::new(RefCell::new(empty));
    let beats = channel_beats(problem, &geometry);
    let mut device = RtlDevice::new(geometry, pins, beats, ChannelTiming { latency: LATENCY, stall_once_in: 0, seed: 1 });
    let shared = Rc::clone(&recording);
    device.bench().observe(Box::new(move |pins, _| {
        let mut recording = shared.borrow_mut();
        if recording.cycles() < cycles {
            recording.sample(pins.engine(), &probe);
        }
    }));
    execute(&mut device, problem, &Options { load: Load::Direct, ..Options::default() }, &mut |_| ())?;
    drop(device);
    Ok(recording.replace(Recording::new(export)))
}

/// Beats behind each channel that hold the pages of all KV heads.
fn channel_beats(problem: &Problem, geometry: &Geometry) -> u32 {
    let (k, pages_per_pe) = (problem.k(), pages_per_pe(geometry, problem.k().rows));
    let layout = KvLayout { layers: 1, kv_heads: k.heads, head_dim: k.head_dim, pages_per_pe };
    u32::try_from(layout.channel_beats()).unwrap_or(u32::MAX)
}
