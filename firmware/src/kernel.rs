//! Fused grouped-query attention as a command list for every CUBE.

use alloc::vec;
use alloc::vec::Vec;

use braid_isa::command::{Command, Operation};
use braid_isa::layout::{merge_rounds, page_beats};
use braid_isa::{Geometry, TILE};

/// How the work is issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Issue {
    /// One `attend` runs the whole pipeline over a run of pages.
    #[default]
    Composite,
    /// Every stage is a command of its own, issued and waited for.
    Primitive,
}

/// Consecutive pages of one PE; page i holds the positions from `position + 16 * stride * i`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Beat address of the first page.
    pub page: u32,
    /// Its first position.
    pub position: u32,
    /// Pages.
    pub pages: u16,
    /// Tiles of 16 positions from one page to the next.
    pub stride: u16,
}

/// What is attended to under one row table.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Pass {
    /// SRAM word of the row table.
    pub table: u32,
    /// Runs of every PE, by global index; PEs beyond the list have none. A PE serves its runs in order, so their order is that in which every row's
    /// positions are summed.
    pub runs: Vec<Vec<Run>>,
}

/// A kernel over one KV head: every row of Q_cmb against the pages of all PEs.
#[derive(Clone, Debug)]
pub struct FusedAttention {
    /// The machine.
    pub geometry: Geometry,
    /// Rows of Q_cmb.
    pub rows: u16,
    /// Columns; a multiple of eight.
    pub head_dim: u16,
    /// Bits of the fp32 scale x log2 e.
    pub scale: u32,
    /// SRAM word of Q_cmb.
    pub q_address: u32,
    /// Row tables, and the pages that their ranges touch.
    pub passes: Vec<Pass>,
    /// SRAM word of the output area.
    pub output: u32,
    /// Q, K and V are bf16 (otherwise fp16).
    pub bf16: [bool; 3],
    /// Composite or primitive commands.
    pub issue: Issue,
}

impl FusedAttention {
    /// PEs that own KV: those up to the last one with a run, at least one.
    pub fn active(&self) -> usize {
        self.passes.iter().filter_map(|pass| pass.runs.iter().rposition(|r| !r.is_empty())).max().map_or(1, |last| last + 1)
    }

    /// Mask of the PEs of a CUBE that take part: those that own KV, and their merge partners.
    fn participants(&self, cube: usize) -> u8 {
        let taking_part = 1 << merge_rounds(self.active());
        let per_cube = self.geometry.pes_per_cube;
        (0..per_cube).filter(|pe| cube * per_cube + pe < taking_part).fold(0, |mask, pe| mask | 1 << pe)
    }

    /// The command list of a CUBE; empty if none of its PEs takes part.
    pub fn commands(&self, cube: usize) -> Vec<Command> {
        let mask = self.participants(cube);
        if mask == 0 {
            return Vec::new();
        }
        let wait = self.issue == Issue::Primitive;
        let all = |operation| Command { wait, interleave: false, mask, operation };
        let mut list = vec![all(Operation::Configure {
            rows: self.rows,
            head_dim: self.head_dim,
            scale: self.scale,
            q_address: self.q_address,
            q_bf16: self.bf16[0],
            k_bf16: self.bf16[1],
            v_bf16: self.bf16[2],
            active: self.active() as u8,
        })];
        for pass in &self.passes {
            list.push(all(Operation::LoadRows { table: pass.table }));
            match self.issue {
                Issue::Composite => self.attend(pass, cube, &mut list),
                Issue::Primitive => self.stages(pass, cube, &mut list),
            }
        }
        let rounds = merge_rounds(self.active()) as u8;
        match self.issue {
            Issue::Composite if rounds > 0 => list.push(all(Operation::Merge { first_round: 0, rounds })),
            Issue::Composite => {}
            Issue::Primitive => list.extend((0..rounds).map(|first_round| all(Operation::Merge { first_round, rounds: 1 }))),
        }
        list.push(all(Operation::Store { output: self.output }));
        list
    }

    /// The runs of a CUBE's PE.
    fn runs<'p>(&self, pass: &'p Pass, cube: usize, pe: usize) -> &'p [Run] {
        pass.runs.get(cube * self.geometry.pes_per_cube + pe).map_or(&[], Vec::as_slice)
    }

    /// A run with its position taken relative to the PE's index, as the interleave flag adds it again; `None` if it lies below.
    fn relative(&self, cube: usize, pe: usize, run: Run) -> Option<Run> {
        let offset = (TILE * (cube * self.geometry.pes_per_cube + pe)) as u32;
        Some(Run { position: run.position.checked_sub(offset)?, ..run })
    }

    /// Composite commands, run after run; PEs whose runs differ by their index alone share one.
    fn attend(&self, pass: &Pass, cube: usize, list: &mut Vec<Command>) {
        let most = (0..self.geometry.pes_per_cube).map(|pe| self.runs(pass, cube, pe).len()).max().unwrap_or(0);
        for n in 0..most {
            let mut groups: Vec<(Option<Run>, Run, u8)> = Vec::new();
            for pe in 0..self.geometry.pes_per_cube {
                let Some(&run) = self.runs(pass, cube, pe).get(n) else { continue };
                let relative = self.relative(cube, pe, run);
                match groups.iter_mut().find(|(shared, _, _)| shared.is_some() && *shared == relative) {
                    Some((_, _, mask)) => *mask |= 1 << pe,
                    None => groups.push((relative, run, 1 << pe)),
                }
            }
            for (relative, run, mask) in groups {
                let shared = mask.count_ones() > 1;
                let Run { page, position, pages, stride } = if shared { relative.unwrap_or(run) } else { run };
                list.push(Command {
                    wait: false,
                    interleave: shared,
                    mask,
                    operation: Operation::Attend { page, position, pages, stride },
                });
            }
        }
    }

    /// Primitive commands: page after page, row tile after row tile, stage after stage.
    fn stages(&self, pass: &Pass, cube: usize, list: &mut Vec<Command>) {
        let pages: Vec<Vec<(u32, u32)>> = (0..self.geometry.pes_per_cube)
            .map(|pe| {
                let page = |run: &Run, i: u32| {
                    (run.page + i * page_beats(self.head_dim as usize) as u32, run.position + i * u32::from(run.stride) * TILE as u32)
                };
                self.runs(pass, cube, pe).iter().flat_map(|run| (0..u32::from(run.pages)).map(move |i| page(run, i))).collect()
            })
            .collect();
        for n in 0..pages.iter().map(Vec::len).max().unwrap_or(0) {
            let mut mask = 0;
            for (pe, own) in pages.iter().enumerate() {
                if let Some(&(page, position)) = own.get(n) {
                    mask |= 1 << pe;
                    list.push(Command { wait: true, interleave: false, mask: 1 << pe, operation: Operation::LoadKv { page, position } });
                }
            }
            for row_tile in 0..self.geometry.row_tiles(self.rows as usize) as u16 {
                let stages = [
                    Operation::FetchQ { row_tile },
                    Operation::Qk { row_tile },
                    Operation::Softmax { row_tile },
                    Operation::Pv { row_tile },
                ];
                list.extend(stages.map(|operation| Command { wait: true, interleave: false, mask, operation }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disassemble;
    use alloc::string::String;

    fn kernel(runs: Vec<Vec<Run>>, issue: Issue) -> FusedAttention {
        FusedAttention {
            geometry: Geometry::TINY,
            rows: 3,
            head_dim: 16,
            scale: 0.25f32.to_bits(),
            q_address: 0,
            passes: vec![Pass { table: 100, runs }],
            output: 200,
            bf16: [false; 3],
            issue,
        }
    }

    fn text(kernel: &FusedAttention) -> String {
        let mut lines = Vec::new();
        for cube in 0..kernel.geometry.cubes {
            lines.push(alloc::format!("CUBE {cube}"));
            lines.extend(kernel.commands(cube).iter().map(|c| disassemble(&c.encode())));
        }
        lines.join("\n")
    }

    #[test]
    fn interleaved_pages_need_one_composite_command_a_cube() {
        let run = |pe: u32| vec![Run { page: 0, position: 16 * pe, pages: 2, stride: 4 }];
        insta::assert_snapshot!(text(&kernel((0..4).map(run).collect(), Issue::Composite)));
    }

    #[test]
    fn primitive_commands_wait_for_every_stage() {
        let runs = vec![vec![Run { page: 0, position: 0, pages: 1, stride: 1 }], vec![Run { page: 64, position: 16, pages: 1, stride: 1 }]];
        insta::assert_snapshot!(text(&kernel(runs, Issue::Primitive)));
    }

    #[test]
    fn a_kernel_without_keys_stores_empty_rows_from_one_pe() {
        let kernel = kernel(Vec::new(), Issue::Composite);
        assert_eq!(kernel.commands(0).len(), 3);
        assert_eq!(kernel.commands(0)[0].mask, 1);
        assert!(kernel.commands(1).is_empty());
    }
}
