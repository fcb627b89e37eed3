//! `braid run` and `braid attend`.

use std::time::Duration;

use braid_devices::{Setup, open};
use braid_hdl::model::ChannelTiming;
use braid_isa::{BEAT_BYTES, Geometry};
use braid_runtime::execute::pages_per_pe;
use braid_runtime::layout::KvLayout;
use braid_runtime::{Bounds, Load, Options, Outcome, Problem, Progress, execute};
use indicatif::{ProgressBar, ProgressStyle};

use crate::arguments::{AttendOptions, LoadName, MachineOptions, RunOptions};
use crate::check::check;
use crate::error::Error;
use crate::present::Summary;
use crate::tensors;
use crate::wave;
use crate::{input, output};

/// Runs the fan-out; whether every check held.
pub(crate) fn run(options: &RunOptions) -> Result<bool, Error> {
    let input = input::load(options)?;
    let (_, held) = compute(&input.problem, input.description, &options.machine)?;
    Ok(held)
}

/// Runs the user's tensors and writes the result; whether every check held.
pub(crate) fn attend(options: &AttendOptions) -> Result<bool, Error> {
    let name = options.input.display().to_string();
    let bytes = std::fs::read(&options.input).map_err(|source| Error::Read { path: options.input.clone(), source })?;
    let problem = tensors::problem(&name, &bytes, input::element(options.machine.element))?;
    // A folder that cannot be written is told before the work, not after it.
    output::beside(&options.output)?;
    let (outcome, held) = compute(&problem, name, &options.machine)?;
    let q = problem.q();
    tensors::write(&options.output, [q.rows, q.heads, q.head_dim], &outcome.o, &outcome.lse)?;
    Ok(held)
}

/// Computes, checks and reports.
fn compute(problem: &Problem, description: String, machine: &MachineOptions) -> Result<(Outcome, bool), Error> {
    let geometry = machine.preset.geometry();
    let (k, pages_per_pe) = (problem.k(), pages_per_pe(&geometry, problem.k().rows));
    let layout = KvLayout { layers: 1, kv_heads: k.heads, head_dim: k.head_dim, pages_per_pe };
    let beats = u32::try_from(layout.channel_beats()).ok().filter(|&beats| beats <= u32::MAX / BEAT_BYTES as u32).ok_or_else(|| {
        let (positions, heads, d) = (k.rows, k.heads, k.head_dim);
        Error::Options(format!(
            "{positions} positions of {heads} KV heads at d = {d} are more than the 4 GiB that a memory channel addresses"
        ))
    })?;
    let setup = Setup {
        geometry,
        engine: machine.engine.engine(),
        channel_beats: beats,
        timing: ChannelTiming { latency: machine.memory_latency, stall_once_in: machine.memory_stalls, seed: 1 },
        dump: wave::dump(&machine.wave),
    };
    stalls(machine.memory_stalls)?;
    let dump = setup.dump.as_ref().map(|d| d.handle.clone());
    if let Some(dump) = &dump {
        wave::close_on_interrupt(dump.clone())?;
    }
    let bar = ProgressBar::new_spinner().with_style(style());
    bar.enable_steady_tick(Duration::from_millis(200));
    bar.set_message("building the machine");
    let mut device = open(&setup)?;
    let options = Options {
        issue: machine.issue.issue(),
        bounds: Bounds { launch_cycles: machine.bound, ..Bounds::default() },
        load: match machine.load {
            LoadName::Port => Load::Port,
            LoadName::Direct => Load::Direct,
        },
        counted_pes: vec![0],
    };
    let result = execute(device.as_mut(), problem, &options, &mut |progress| {
        bar.set_message(match progress {
            Progress::Loading { kv_head, done, of } => format!("KV head {kv_head}: loading position {done} of {of}"),
            Progress::Running { kv_head, launch, of, cycles } => {
                format!("KV head {kv_head}, launch {} of {of}: {cycles} cycles", launch + 1)
            }
        });
    });
    // The dump is whole when the machine is gone.
    drop(device);
    bar.set_message("checking against the golden kernel and f64");
    let checked = result.and_then(|outcome| Ok((check(problem, &geometry, &outcome)?, outcome)));
    bar.finish_and_clear();
    let (checks, outcome) = checked?;
    let summary = Summary::new(description, machine, problem, &outcome.report, &checks);
    if machine.json {
        println!("{}", serde_json::to_string(&summary).expect("a summary of numbers and strings is JSON"));
    } else {
        println!("{}", summary.table());
    }
    if !checks.hold() {
        eprintln!(
            "a check failed: bits equal golden: {}, error {:e} of at most 5e-4 x {:e}",
            checks.bit_exact, checks.max_abs_error, checks.max_abs_v
        );
    }
    if let Some(error) = dump.and_then(|d| d.error()) {
        return Err(Error::Dump(error));
    }
    Ok((outcome, checks.hold()))
}

/// Refuses stalls that never end.
pub(crate) fn stalls(once_in: u32) -> Result<(), Error> {
    if once_in == 1 {
        return Err(Error::Options("--memory-stalls 1 would stall memory for ever; use 2 or more, or 0 for none".into()));
    }
    Ok(())
}

/// Beats behind each channel that a problem needs.
pub(crate) fn channel_beats(problem: &Problem, geometry: &Geometry) -> Result<u32, Error> {
    let (k, pages_per_pe) = (problem.k(), pages_per_pe(geometry, problem.k().rows));
    let layout = KvLayout { layers: 1, kv_heads: k.heads, head_dim: k.head_dim, pages_per_pe };
    u32::try_from(layout.channel_beats()).ok().filter(|&beats| beats <= u32::MAX / BEAT_BYTES as u32).ok_or_else(|| {
        let (positions, heads, d) = (k.rows, k.heads, k.head_dim);
        Error::Options(format!(
            "{positions} positions of {heads} KV heads at d = {d} are more than the 4 GiB that a memory channel addresses"
        ))
    })
}

pub(crate) fn style() -> ProgressStyle {
    ProgressStyle::with_template("{spinner} {elapsed:>4} {msg}").unwrap_or_else(|_| ProgressStyle::default_spinner())
}
