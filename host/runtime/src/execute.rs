//! Launches on a device, and one attention over dense tensors as a session with one context.

use std::time::Instant;

use braid_firmware::output::log_sum_exp;
use braid_firmware::row_table::passes;
use braid_isa::layout::{HostAddress, merge_rounds};
use braid_isa::{Geometry, TILE};

use crate::cache::{KvCache, PageId};
use crate::device::{Device, DeviceError, failure};
use crate::plan::Launch;
use crate::problem::{Problem, Tensor};
use crate::report::{LaunchReport, Report};
use crate::session::{KvShape, Options, Output, Query, Session, SessionError};

/// What a run tells while it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// K and V of a KV head are being loaded.
    Loading {
        /// KV head.
        kv_head: usize,
        /// Positions loaded.
        done: usize,
        /// Positions.
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

/// Pages of one KV head that each PE needs for so many positions.
pub fn pages_per_pe(geometry: &Geometry, positions: usize) -> usize {
    positions.div_ceil(TILE).div_ceil(geometry.pes()).max(1)
}

/// Where [`execute`] puts the pages of the positions.
///
/// # Errors
/// If the positions are more than can be addressed.
pub fn placement(geometry: &Geometry, positions: usize) -> Result<Vec<PageId>, SessionError> {
    let mut cache = KvCache::new(geometry.pes(), pages_per_pe(geometry, positions));
    let context = cache.create();
    cache.append(context, positions)?;
    Ok(cache.table(context)?.pages().collect())
}

/// Loads the pages of all KV heads, launches one kernel a KV head (and batch of rows), reads O and lse.
///
/// # Errors
/// A problem that does not fit, or a device that fails or does not end within the bounds; the device has been reset then.
pub fn execute(
    device: &mut dyn Device,
    problem: &Problem,
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<Outcome, SessionError> {
    let start = Instant::now();
    let (k, v) = (problem.k(), problem.v());
    let shape = KvShape {
        layers: 1,
        kv_heads: k.heads,
        head_dim: k.head_dim,
        k: k.element,
        v: v.element,
        pages_per_pe: pages_per_pe(&device.geometry(), k.rows),
    };
    let mut session = Session::new(device, shape, options.clone())?;
    let context = session.create();
    session.append(context, k.rows)?;
    session.write(context, 0, 0, k, v, progress)?;
    // Users may name ranges in any order, and a position twice.
    let visible: Vec<_> = problem.ranges().iter().map(|ranges| passes(ranges).into_iter().flatten().collect()).collect();
    let (mut outputs, mut report) = session.attend(0, &[Query { context, q: problem.q(), visible: &visible }], progress)?;
    report.wall = start.elapsed();
    let Output { o, lse } = outputs.swap_remove(0);
    Ok(Outcome { o, lse, report })
}

/// One launch, from loading SRAM to its counters.
pub(crate) fn run(
    device: &mut dyn Device,
    launch: &Launch,
    options: &Options,
    progress: &mut dyn FnMut(u64),
) -> Result<LaunchReport, DeviceError> {
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
pub(crate) fn read(device: &mut dyn Device, launch: &Launch, queries: &[&Tensor], outputs: &mut [Output]) -> Result<(), DeviceError> {
    let geometry = device.geometry();
    let kernel = &launch.kernel;
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
                let (q, output) = (queries[place.query], &mut outputs[place.query]);
                let index = place.token * q.heads + place.head;
                if column < q.head_dim {
                    output.o[index * q.head_dim + column] = value;
                } else if column == kernel.head_dim as usize {
                    l[row] = value;
                } else if column == kernel.head_dim as usize + 1 {
                    output.lse[index] = log_sum_exp(value, l[row]);
                }
            }
        }
    }
    Ok(())
}
