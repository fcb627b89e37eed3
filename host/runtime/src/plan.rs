//! Launches: rows of Q_cmb, row tables, commands and outputs in shared SRAM.

use std::ops::Range;

use braid_firmware::row_table;
use braid_firmware::{FusedAttention, Issue, Pass};
use braid_isa::Geometry;
use braid_isa::layout::{ROW_TABLE_WORDS, merge_rounds, output_index, output_words, owned_columns, q_words};
use thiserror::Error;

use crate::batch::{Batch, Visible};
use crate::layout::KvLayout;
use crate::problem::{Element, Tensor};

/// Work that does not fit the machine.
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
    #[error(
        "{pages_per_pe} pages of 16 positions a PE, for each of {planes} KV heads at d = {head_dim}, need {needed} beats in a memory channel, which has {beats}"
    )]
    Memory {
        /// Pages of a plane on one PE.
        pages_per_pe: usize,
        /// KV heads of all layers.
        planes: usize,
        /// Columns.
        head_dim: usize,
        /// Beats needed.
        needed: u64,
        /// Beats behind a channel.
        beats: u32,
    },
    /// One row tile that does not fit into the SRAM.
    #[error(
        "one row tile with row tables of {passes} passes and {commands} commands needs {needed} of the {words} words of shared SRAM: its rows see too many \
         ranges, or pages that are too scattered"
    )]
    Sram {
        /// Passes needed.
        passes: usize,
        /// Commands of the longest list.
        commands: usize,
        /// Words needed.
        needed: usize,
        /// Words of SRAM.
        words: usize,
    },
}

/// scale x log2 e with scale = 1/sqrt(d), rounded to fp32 once.
pub fn base2_scale(head_dim: usize) -> f32 {
    (std::f64::consts::LOG2_E / (head_dim as f64).sqrt()) as f32
}

/// A row of Q_cmb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Query.
    pub query: usize,
    /// Token of the query: row of its q.
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

    /// SRAM words in use: Q_cmb, tables, output and the longest list.
    pub fn sram_words(&self) -> usize {
        self.command_base as usize + self.lists.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// SRAM ranges that hold the columns of O, l and m after the launch: CUBE and columns. l is column d, m column d + 1.
    pub fn output_columns(&self) -> Vec<(usize, Range<usize>)> {
        let kernel = &self.kernel;
        let head_dim = kernel.head_dim as usize;
        let rounds = merge_rounds(kernel.active());
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

/// What the launches of one KV head are made of.
#[derive(Clone, Copy, Debug)]
pub struct Work<'w> {
    /// The machine.
    pub geometry: &'w Geometry,
    /// Where pages lie.
    pub layout: &'w KvLayout,
    /// Layer.
    pub layer: usize,
    /// KV head.
    pub kv_head: usize,
    /// Format of K and V.
    pub kv_elements: [Element; 2],
    /// Query tensors [tokens, q_heads, d], in the order of the batch.
    pub queries: &'w [&'w Tensor],
    /// The pages that they see.
    pub batch: &'w Batch,
    /// Composite or primitive commands.
    pub issue: Issue,
}

/// The launches of one KV head: as many rows in each as the row store and SRAM hold. At least one, if there are rows.
///
/// # Errors
/// If the work does not fit the machine; the error names the size and the limit.
pub fn launches(work: &Work<'_>) -> Result<Vec<Launch>, PlanError> {
    let geometry = work.geometry;
    let head_dim = work.layout.padded_head_dim();
    if head_dim > geometry.max_head_dim {
        return Err(PlanError::HeadDimension { head_dim: work.layout.head_dim, max: geometry.max_head_dim, preset: geometry.name });
    }
    let rows: Vec<Row> = work
        .queries
        .iter()
        .enumerate()
        .flat_map(|(query, q)| {
            let group = q.heads / work.layout.kv_heads;
            let heads = work.kv_head * group..(work.kv_head + 1) * group;
            (0..q.rows).flat_map(move |token| heads.clone().map(move |head| Row { query, token, head }))
        })
        .collect();
    let mut launches = Vec::new();
    let mut rest = rows.as_slice();
    let mut batch = geometry.max_rows;
    while !rest.is_empty() {
        // What is known without planning: Q and output alone must fit.
        let fixed = |rows: usize| {
            q_words(geometry.row_tiles(rows) * geometry.rows, head_dim) + rows * ROW_TABLE_WORDS + output_words(geometry, rows, head_dim)
        };
        batch = batch.min(rest.len());
        while batch > geometry.rows && fixed(batch) > geometry.sram_words {
            batch = smaller(batch, geometry);
        }
        let launch = launch(work, rest[..batch].to_vec(), head_dim);
        let needed = launch.sram_words();
        if needed > geometry.sram_words {
            if batch <= geometry.rows {
                let (passes, words) = (launch.kernel.passes.len(), geometry.sram_words);
                let commands = launch.lists.iter().map(Vec::len).max().unwrap_or(0);
                return Err(PlanError::Sram { passes, commands, needed, words });
            }
            batch = smaller(batch, geometry);
            continue;
        }
        launches.push(launch);
        rest = &rest[batch..];
    }
    Ok(launches)
}

/// Fewer rows, in whole tiles, at least one.
fn smaller(rows: usize, geometry: &Geometry) -> usize {
    (rows * 7 / 8 / geometry.rows * geometry.rows).max(geometry.rows)
}

fn launch(work: &Work<'_>, rows: Vec<Row>, head_dim: usize) -> Launch {
    let geometry = work.geometry;
    let padded_rows = geometry.row_tiles(rows.len()) * geometry.rows;
    let mut q = vec![0u8; padded_rows * head_dim * 2];
    for (to, row) in q.chunks_exact_mut(head_dim * 2).zip(&rows) {
        for (bytes, x) in to.chunks_exact_mut(2).zip(work.queries[row.query].head(row.token, row.head)) {
            bytes.copy_from_slice(&x.to_le_bytes());
        }
    }
    let ranges: Vec<&[Range<u32>]> = rows.iter().map(|row| work.batch.ranges(row.query, row.token)).collect();
    let split: Vec<Vec<Visible>> = ranges.iter().map(|ranges| row_table::passes(ranges)).collect();
    let plane = work.layout.plane(work.layer, work.kv_head);
    let mut next = q_words(padded_rows, head_dim);
    let mut sram = vec![(0, q)];
    let mut passes = Vec::new();
    for (pass, table) in row_table::tables(ranges.iter().copied()).into_iter().enumerate() {
        let touched = split.iter().filter_map(|row| row.get(pass)).flatten();
        passes.push(Pass { table: next as u32, runs: work.batch.runs(touched, work.layout, plane, geometry.pes()) });
        let words = table.len() / 16;
        sram.push((next, table));
        next += words;
    }
    let output = next;
    next += output_words(geometry, rows.len(), head_dim);
    let [k, v] = work.kv_elements;
    let q_element = work.queries.first().map_or(Element::default(), |q| q.element);
    let kernel = FusedAttention {
        geometry: *geometry,
        rows: rows.len() as u16,
        head_dim: head_dim as u16,
        scale: base2_scale(work.layout.head_dim).to_bits(),
        q_address: 0,
        passes,
        output: output as u32,
        bf16: [q_element, k, v].map(|e| e == Element::Bf16),
        issue: work.issue,
    };
    let lists = (0..geometry.cubes).map(|cube| kernel.commands(cube).iter().map(braid_isa::Command::encode).collect()).collect();
    Launch { rows, kernel, command_base: next as u32, lists, sram }
}
