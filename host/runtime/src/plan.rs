//! Where everything goes: pages dealt round-robin to the PEs, Q_cmb, row tables, commands and outputs in shared SRAM.

use std::ops::Range;

use braid_firmware::kernel::{FusedAttention, Issue, Run};
use braid_firmware::row_table;
use braid_isa::geometry::MIN_HEAD_DIM;
use braid_isa::layout::{HostAddress, ROW_TABLE_WORDS, output_index, output_words, owned_columns, page_beats, q_words};
use braid_isa::{Geometry, LANES, TILE};
use thiserror::Error;

use crate::problem::{Element, Problem};

/// A problem that does not fit the machine.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// d is too large.
    #[error("d = {head_dim} is larger than the {max} columns that the {preset} preset holds")]
    HeadDimension {
        /// Columns asked for.
        head_dim: usize,
        /// Columns held.
        max: usize,
        /// Preset.
        preset: &'static str,
    },
    /// Too many positions.
    #[error("{positions} positions at d = {head_dim} need {needed} beats in a memory channel, which has {beats}")]
    Positions {
        /// Positions.
        positions: usize,
        /// Columns.
        head_dim: usize,
        /// Beats needed by the fullest PE.
        needed: u64,
        /// Beats behind a channel.
        beats: u32,
    },
    /// A row with too many ranges for the SRAM.
    #[error("row tables of {passes} passes and one row tile do not fit into the {words} words of shared SRAM: too many ranges in one row")]
    Ranges {
        /// Passes needed.
        passes: usize,
        /// Words of SRAM.
        words: usize,
    },
}

/// Columns as the hardware holds them: a multiple of eight, at least sixteen; the padding is zero and changes nothing.
pub fn padded_head_dim(head_dim: usize) -> usize {
    head_dim.next_multiple_of(LANES).max(MIN_HEAD_DIM)
}

/// scale x log2 e with scale = 1/sqrt(d), rounded to fp32 once.
pub fn base2_scale(head_dim: usize) -> f32 {
    (std::f64::consts::LOG2_E / (head_dim as f64).sqrt()) as f32
}

/// A row of Q_cmb: token and query head of the problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Row of q.
    pub token: usize,
    /// Query head.
    pub head: usize,
}

/// One launch: some rows of one KV head.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Rows, in the order of Q_cmb.
    pub rows: Vec<Row>,
    /// The kernel.
    pub kernel: FusedAttention,
    /// SRAM word of the command lists.
    pub command_base: u32,
    /// Encoded commands of every CUBE.
    pub lists: Vec<Vec<[u32; 4]>>,
    /// SRAM contents before the doorbell, the same in every CUBE: word and bytes.
    pub sram: Vec<(usize, Vec<u8>)>,
}

impl Launch {
    /// Commands of all CUBEs.
    pub fn commands(&self) -> usize {
        self.lists.iter().map(Vec::len).sum()
    }

    /// SRAM ranges that hold the columns of O, l and m after the launch: address, and the columns. l is column d, m column d + 1.
    pub fn output_columns(&self) -> Vec<(usize, Range<usize>)> {
        let kernel = &self.kernel;
        let head_dim = kernel.head_dim as usize;
        let rounds = braid_isa::layout::merge_rounds(kernel.active());
        let mut parts: Vec<(usize, Range<usize>)> = (0..1usize << rounds)
            .map(|pe| {
                let (first, end) = owned_columns(head_dim, pe, rounds);
                (pe / kernel.geometry.pes_per_cube, first..end)
            })
            .filter(|(_, columns)| !columns.is_empty())
            .collect();
        parts.push((0, head_dim..head_dim + 2));
        parts
    }

    /// Index of an fp32 in the output area.
    pub fn output_index(&self, row: usize, column: usize) -> usize {
        output_index(&self.kernel.geometry, self.kernel.head_dim as usize, row, column)
    }
}

/// Beats of the pages of one KV head in the fullest PE, and the number of PEs that own pages.
fn placement(geometry: &Geometry, positions: usize, head_dim: usize) -> (u64, usize) {
    let pages = positions.div_ceil(TILE);
    let active = pages.clamp(1, geometry.pes());
    (pages.div_ceil(active) as u64 * page_beats(head_dim) as u64, active)
}

/// Bytes of every page of a KV head, with the PE and the beat where it goes. Positions beyond the last one are zero; no row sees them.
pub fn pages(problem: &Problem, geometry: &Geometry, kv_head: usize) -> Vec<(HostAddress, Vec<u8>)> {
    let (k, v) = (problem.k(), problem.v());
    let head_dim = padded_head_dim(k.head_dim);
    let (_, active) = placement(geometry, k.rows, head_dim);
    (0..k.rows.div_ceil(TILE))
        .map(|page| {
            let mut elements = vec![0u16; 2 * TILE * head_dim];
            for j in 0..TILE.min(k.rows - page * TILE) {
                let position = page * TILE + j;
                elements[j * head_dim..][..k.head_dim].copy_from_slice(k.head(position, kv_head));
                for (c, &x) in v.head(position, kv_head).iter().enumerate() {
                    elements[TILE * head_dim + c * TILE + j] = x;
                }
            }
            let address = HostAddress::channel_beat(page % active, page / active * page_beats(head_dim));
            (address, elements.into_iter().flat_map(u16::to_le_bytes).collect())
        })
        .collect()
}

/// The launches of one KV head: as many rows in each as the row store and SRAM hold.
///
/// # Errors
/// If the problem does not fit the machine; the error names the size and the limit.
pub fn launches(
    problem: &Problem,
    geometry: &Geometry,
    channel_beats: u32,
    kv_head: usize,
    issue: Issue,
) -> Result<Vec<Launch>, PlanError> {
    let (positions, true_dim) = (problem.k().rows, problem.k().head_dim);
    let head_dim = padded_head_dim(true_dim);
    if head_dim > geometry.max_head_dim {
        return Err(PlanError::HeadDimension { head_dim: true_dim, max: geometry.max_head_dim, preset: geometry.name });
    }
    let (needed, active) = placement(geometry, positions, head_dim);
    if needed > channel_beats.into() {
        return Err(PlanError::Positions { positions, head_dim, needed, beats: channel_beats });
    }
    let count = positions.div_ceil(TILE);
    let runs: Vec<Vec<Run>> = (0..active)
        .map(|pe| {
            let own = count.saturating_sub(pe).div_ceil(active);
            let run = Run { page: 0, position: (pe * TILE) as u32, pages: own as u16, stride: active as u16 };
            if own == 0 { Vec::new() } else { vec![run] }
        })
        .collect();
    let group = problem.group();
    let rows: Vec<Row> =
        (0..problem.q().rows).flat_map(|token| (0..group).map(move |g| Row { token, head: kv_head * group + g })).collect();
    let passes = problem.ranges().iter().map(|r| row_table::passes(r).len()).max().unwrap_or(0).max(1);
    let elements = [problem.q().element, problem.k().element, problem.v().element];

    // The largest batch that fits: Q, tables, output and commands; the list's length hardly depends on the rows in composite form.
    let words = |rows: usize| -> usize {
        let tiles = geometry.row_tiles(rows);
        let commands = match issue {
            Issue::Composite => 8 + passes * (1 + geometry.pes_per_cube),
            Issue::Primitive => 16 + passes * count.div_ceil(active) * (geometry.pes_per_cube + 4 * tiles),
        };
        q_words(tiles * geometry.rows, head_dim) + passes * rows * ROW_TABLE_WORDS + output_words(geometry, rows, head_dim) + commands
    };
    let mut batch = geometry.max_rows.min(rows.len().max(1));
    while batch > geometry.rows && words(batch) > geometry.sram_words {
        batch = (batch - 1) / geometry.rows * geometry.rows;
    }
    if words(batch) > geometry.sram_words {
        return Err(PlanError::Ranges { passes, words: geometry.sram_words });
    }
    Ok(rows.chunks(batch).map(|rows| launch(problem, geometry, rows.to_vec(), head_dim, &runs, elements, issue)).collect())
}

fn launch(
    problem: &Problem,
    geometry: &Geometry,
    rows: Vec<Row>,
    head_dim: usize,
    runs: &[Vec<Run>],
    elements: [Element; 3],
    issue: Issue,
) -> Launch {
    let padded_rows = geometry.row_tiles(rows.len()) * geometry.rows;
    let mut q = vec![0u8; padded_rows * head_dim * 2];
    for (to, row) in q.chunks_exact_mut(head_dim * 2).zip(&rows) {
        for (bytes, x) in to.chunks_exact_mut(2).zip(problem.q().head(row.token, row.head)) {
            bytes.copy_from_slice(&x.to_le_bytes());
        }
    }
    let tables = row_table::tables(rows.iter().map(|row| problem.ranges()[row.token].as_slice()));
    let mut next = q_words(padded_rows, head_dim);
    let mut sram = vec![(0, q)];
    let mut addresses = Vec::new();
    for table in tables {
        addresses.push(next as u32);
        let words = table.len() / 16;
        sram.push((next, table));
        next += words;
    }
    let output = next;
    next += output_words(geometry, rows.len(), head_dim);
    let kernel = FusedAttention {
        geometry: *geometry,
        rows: rows.len() as u16,
        head_dim: head_dim as u16,
        scale: base2_scale(problem.k().head_dim).to_bits(),
        q_address: 0,
        tables: addresses,
        output: output as u32,
        bf16: elements.map(|e| e == Element::Bf16),
        runs: runs.to_vec(),
        issue,
    };
    let lists = (0..geometry.cubes).map(|cube| kernel.commands(cube).iter().map(braid_isa::Command::encode).collect()).collect();
    Launch { rows, kernel, command_base: next as u32, lists, sram }
}
