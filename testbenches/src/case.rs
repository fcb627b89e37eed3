//! Random kernels for the tiny preset: what lies in memory, and the command lists over it.

use braid_firmware::{FusedAttention, Issue, Pass, Run};
use braid_golden::format::Format;
use braid_golden::stimulus::Stimulus;
use braid_isa::layout::{HostAddress, merge_rounds, output_words, owned_columns, page_beats};
use braid_isa::{Command, Geometry, RANGES_PER_PASS, TILE};

/// The preset.
pub const GEOMETRY: Geometry = Geometry::TINY;
/// SRAM word of the row table (Q_cmb lies from word 0).
pub const TABLE: u32 = 1024;
/// SRAM word of the command list.
pub const COMMANDS: u32 = 1280;
/// SRAM word of the output area.
pub const OUTPUT: u32 = 4096;
/// Beats of memory behind each channel.
pub const CHANNEL_BEATS: u32 = 4096;

/// The encoded command list of every CUBE.
pub type Lists = Vec<Vec<[u32; 4]>>;

/// A row of Q_cmb and the positions that it sees.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// `head_dim` fp16 elements.
    pub q: Vec<u16>,
    /// Four ranges (low, high).
    pub ranges: [u32; 2 * RANGES_PER_PASS],
}

/// A kernel: rows against the pages of every PE. Page i of PE p holds the positions from 16 x (i x PEs + p).
#[derive(Clone, Debug)]
pub struct Case {
    /// Columns of Q, K and V.
    pub head_dim: usize,
    /// Rows of Q_cmb.
    pub rows: Vec<Row>,
    /// Pages of every PE, each 2 x 16 x d fp16 elements: K, then V transposed.
    pub pages: Vec<Vec<Vec<u16>>>,
    /// Pages of one run, so of one `attend`.
    pub run_pages: usize,
}

impl Case {
    /// Random elements and ranges; every fifth row sees nothing. `pages` are those of every PE. All pages of a PE make one run.
    pub fn random(seed: u64, rows: usize, head_dim: usize, pages: [usize; GEOMETRY.pes()]) -> Case {
        let mut s = Stimulus::new(seed);
        let most = pages.into_iter().max().unwrap_or(0);
        let positions = (TILE * GEOMETRY.pes() * most) as u32;
        let elements = |n: usize, s: &mut Stimulus| (0..n).map(|_| Format::Fp16.round(s.normal() * 2.0)).collect::<Vec<u16>>();
        let rows = (0..rows)
            .map(|row| {
                let mut ranges = [0; 2 * RANGES_PER_PASS];
                if row % 5 != 3 {
                    for pair in ranges.chunks_mut(2) {
                        let (a, b) = (s.below(positions + 1), s.below(positions + 1));
                        pair.copy_from_slice(&[a.min(b), a.max(b)]);
                    }
                }
                Row { q: elements(head_dim, &mut s), ranges }
            })
            .collect();
        let pages = pages.map(|n| (0..n).map(|_| elements(2 * TILE * head_dim, &mut s)).collect()).to_vec();
        Case { head_dim, rows, pages, run_pages: usize::MAX }
    }

    /// The same pages under other rows: those with these indexes, in this order.
    pub fn with_rows(&self, order: &[usize]) -> Case {
        Case { rows: order.iter().map(|&row| self.rows[row].clone()).collect(), ..self.clone() }
    }

    /// PEs that own KV in the launch: those up to the last one with a page, at least one.
    pub fn active(&self) -> usize {
        self.pages.iter().rposition(|p| !p.is_empty()).map_or(1, |last| last + 1)
    }

    /// Q_cmb and row table, the same in every CUBE. Rows that fill the last row tile are NaN.
    pub fn sram(&self) -> [(u32, Vec<u8>); 2] {
        let mut q: Vec<u16> = self.rows.iter().flat_map(|row| row.q.clone()).collect();
        q.resize(GEOMETRY.row_tiles(self.rows.len()) * GEOMETRY.rows * self.head_dim, 0xFFFF);
        let table = self.rows.iter().flat_map(|row| row.ranges).flat_map(u32::to_le_bytes).collect();
        [(0, bytes(&q)), (TABLE, table)]
    }

    /// Pages of a PE as they lie in its channel memory, from beat 0 on.
    pub fn channel(&self, pe: usize) -> Vec<u8> {
        bytes(&self.pages[pe].concat())
    }

    /// The kernel as the firmware issues it.
    pub fn kernel(&self, issue: Issue) -> FusedAttention {
        let run = |pe: usize, first: usize, pages: usize| Run {
            page: (first * page_beats(self.head_dim)) as u32,
            position: (TILE * (first * GEOMETRY.pes() + pe)) as u32,
            pages: pages as u16,
            stride: GEOMETRY.pes() as u16,
        };
        let runs = |(pe, pages): (usize, &Vec<Vec<u16>>)| {
            let firsts = (0..pages.len()).step_by(self.run_pages);
            firsts.map(|first| run(pe, first, self.run_pages.min(pages.len() - first))).collect()
        };
        FusedAttention {
            geometry: GEOMETRY,
            rows: self.rows.len() as u16,
            head_dim: self.head_dim as u16,
            scale: ((1.0 / (self.head_dim as f64).sqrt() * std::f64::consts::LOG2_E) as f32).to_bits(),
            q_address: 0,
            passes: vec![Pass { table: TABLE, runs: self.pages.iter().enumerate().map(runs).collect() }],
            output: OUTPUT,
            bf16: [false; 3],
            issue,
        }
    }

    /// The firmware's command lists.
    pub fn lists(&self, issue: Issue) -> Lists {
        let kernel = self.kernel(issue);
        (0..GEOMETRY.cubes).map(|cube| encode(&kernel.commands(cube))).collect()
    }

    /// Bytes of the output area.
    pub fn output_bytes(&self) -> usize {
        output_words(&GEOMETRY, self.rows.len(), self.head_dim) * 16
    }

    /// Bits of every row, O by column, then l and m, gathered from the output areas of all CUBEs.
    pub fn gather(&self, areas: &[Vec<u8>]) -> Vec<Vec<u32>> {
        let fp32 = |pe: usize, row: usize, column: usize| {
            let byte = 4 * braid_isa::layout::output_index(&GEOMETRY, self.head_dim, row, column);
            let area = &areas[pe / GEOMETRY.pes_per_cube];
            u32::from_le_bytes(std::array::from_fn(|i| area[byte + i]))
        };
        let owner = |column: usize| {
            let owns = |&pe: &usize| {
                let (first, end) = owned_columns(self.head_dim, pe, merge_rounds(self.active()));
                (first..end).contains(&column)
            };
            (0..GEOMETRY.pes()).find(owns).unwrap_or(0)
        };
        (0..self.rows.len()).map(|row| (0..self.head_dim + 2).map(|column| fp32(owner(column), row, column)).collect()).collect()
    }
}

/// Commands as words.
pub fn encode(commands: &[Command]) -> Vec<[u32; 4]> {
    commands.iter().map(Command::encode).collect()
}

/// Where the list of a CUBE lies.
pub fn list_address(cube: usize) -> HostAddress {
    HostAddress::sram_word(cube, COMMANDS as usize)
}

fn bytes(elements: &[u16]) -> Vec<u8> {
    elements.iter().flat_map(|e| e.to_le_bytes()).collect()
}
