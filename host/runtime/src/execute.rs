//! Runs a problem on a device.

use std::time::{Duration, Instant};

use braid_firmware::kernel::Issue;
use braid_firmware::output::log_sum_exp;
use braid_isa::layout::{HostAddress, merge_rounds};
use thiserror::Error;

use crate::device::{Bounds, Device, DeviceError, failure};
use crate::plan::{self, Launch, PlanError};
use crate::problem::Problem;
use crate::report::{LaunchReport, Report};

/// How pages reach channel memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Load {
    /// Through the host port, as on a real machine.
    #[default]
    Port,
    /// Directly into simulated memory.
    Direct,
}

/// How to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Composite or primitive commands.
    pub issue: Issue,
    /// Bounds of waiting.
    pub bounds: Bounds,
    /// How pages reach memory.
    pub load: Load,
    /// PEs whose counters are read after every launch.
    pub counted_pes: Vec<usize>,
}

impl Default for Options {
    /// Composite issue, the host port, the counters of PE 0.
    fn default() -> Self {
        Options { issue: Issue::default(), bounds: Bounds::default(), load: Load::default(), counted_pes: vec![0] }
    }
}

/// What a run tells while it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Pages of a KV head are being loaded: done, of all.
    Loading {
        /// KV head.
        kv_head: usize,
        /// Pages loaded.
        done: usize,
        /// Pages.
        of: usize,
    },
    /// A launch runs.
    Running {
        /// KV head.
        kv_head: usize,
        /// Launch of the KV head.
        launch: usize,
        /// Launches of the KV head.
        of: usize,
        /// Cycles since the doorbell.
        cycles: u64,
    },
}

/// Why a run failed.
#[derive(Debug, Error)]
pub enum RunError {
    /// The problem does not fit.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The machine failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// Attention of a problem, computed by a device.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Bits of O, fp32, [rows, q_heads, d].
    pub o: Vec<u32>,
    /// Natural-logarithm log-sum-exp, [rows, q_heads].
    pub lse: Vec<f32>,
    /// What it took.
    pub report: Report,
}

/// Loads the pages, launches one kernel a KV head (and batch of rows), reads O and lse.
///
/// # Errors
/// A problem that does not fit, or a device that fails or does not end within the bounds; the device has been reset then.
pub fn execute(
    device: &mut dyn Device,
    problem: &Problem,
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<Outcome, RunError> {
    let geometry = device.geometry();
    let (q, head_dim) = (problem.q(), problem.k().head_dim);
    let mut o = vec![0u32; q.rows * q.heads * head_dim];
    let mut lse = vec![f32::NEG_INFINITY; q.rows * q.heads];
    let mut report = Report::new(&geometry, problem);
    let start = Instant::now();
    for kv_head in 0..problem.k().heads {
        let launches = plan::launches(problem, &geometry, device.channel_beats(), kv_head, options.issue)?;
        let pages = plan::pages(problem, &geometry, kv_head);
        for (done, (address, bytes)) in pages.iter().enumerate() {
            progress(Progress::Loading { kv_head, done, of: pages.len() });
            match options.load {
                Load::Port => device.write(*address, bytes)?,
                Load::Direct => device.preload(*address, bytes)?,
            }
        }
        for (n, launch) in launches.iter().enumerate() {
            let mut told = |cycles| progress(Progress::Running { kv_head, launch: n, of: launches.len(), cycles });
            let result = run(device, launch, options, &mut told);
            if result.is_err() {
                // The next launch finds a clean machine, or at least the first error is told.
                let _ = device.reset();
            }
            let launched = result?;
            read(device, launch, problem, &mut o, &mut lse)?;
            report.add(launched);
        }
    }
    report.finish(start.elapsed().max(Duration::from_nanos(1)), device.simulated_cycles());
    Ok(Outcome { o, lse, report })
}

/// One launch, from loading SRAM to its counters.
fn run(device: &mut dyn Device, launch: &Launch, options: &Options, progress: &mut dyn FnMut(u64)) -> Result<LaunchReport, DeviceError> {
    let geometry = device.geometry();
    for cube in (0..geometry.cubes).filter(|&cube| !launch.lists[cube].is_empty()) {
        for (word, bytes) in &launch.sram {
            device.write(HostAddress::sram_word(cube, *word), bytes)?;
        }
        let list: Vec<u8> = launch.lists[cube].iter().flatten().flat_map(|w| w.to_le_bytes()).collect();
        device.write(HostAddress::sram_word(cube, launch.command_base as usize), &list)?;
    }
    let counts: Vec<u32> = launch.lists.iter().map(|list| list.len() as u32).collect();
    let completion = device.launch(launch.command_base, &counts, options.bounds, progress)?;
    if let Some(error) = failure(&completion, &geometry, &launch.lists) {
        return Err(error);
    }
    let mut counters = Vec::new();
    for &pe in options.counted_pes.iter().filter(|&&pe| pe < geometry.pes()) {
        let values = braid_isa::Counter::ALL.iter().map(|&c| Ok(device.counter(pe, c)?.unwrap_or(0)));
        counters.push((pe, values.collect::<Result<Vec<u64>, DeviceError>>()?));
    }
    Ok(LaunchReport {
        cycles: completion.cycles.unwrap_or(0),
        rows: launch.rows.len(),
        active_pes: launch.kernel.active(),
        merge_rounds: merge_rounds(launch.kernel.active()),
        commands: launch.commands(),
        counters,
    })
}

/// Reads the columns from the CUBEs whose PEs own them.
fn read(device: &mut dyn Device, launch: &Launch, problem: &Problem, o: &mut [u32], lse: &mut [f32]) -> Result<(), DeviceError> {
    let geometry = device.geometry();
    let (kernel, heads, head_dim) = (&launch.kernel, problem.q().heads, problem.k().head_dim);
    let mut l = vec![0; launch.rows.len()];
    for tile in 0..geometry.row_tiles(launch.rows.len()) {
        for (cube, columns) in launch.output_columns() {
            let first = launch.output_index(tile * geometry.rows, columns.start);
            let mut bytes = vec![0; columns.len() * geometry.rows * 4];
            device.read(HostAddress::Sram { cube, byte: kernel.output * 16 + first as u32 * 4 }, &mut bytes)?;
            let values = bytes.as_chunks::<4>().0.iter().map(|b| u32::from_le_bytes(*b));
            for (i, value) in values.enumerate() {
                let (column, row) = (columns.start + i / geometry.rows, tile * geometry.rows + i % geometry.rows);
                let Some(place) = launch.rows.get(row) else { continue };
                let index = place.token * heads + place.head;
                if column < head_dim {
                    o[index * head_dim + column] = value;
                } else if column == kernel.head_dim as usize {
                    l[row] = value;
                } else if column == kernel.head_dim as usize + 1 {
                    lse[index] = log_sum_exp(value, l[row]);
                }
            }
        }
    }
    Ok(())
}
