//! What each command does in a processing element.

use std::collections::VecDeque;
use std::ops::Range as Columns;

use braid_isa::command::{CONFIGURE, OPCODE, WORDS};
use braid_isa::geometry::MIN_HEAD_DIM;
use braid_isa::layout::{ROW_TABLE_WORDS, merge_rounds, output_index, output_words, owned_columns, page_beats, q_words};
use braid_isa::{Code, Command, DecodeError, Geometry, LANES, Operation, RANGES_PER_PASS, Status, TILE};
use rayon::prelude::*;

use super::byte_of;
use super::memory::Memory;
use crate::attention::{Page, Range, RowState, Weights, blocks};
use crate::format::{Format, Operand};

/// Pages that `attend` holds at a time.
const PAGES_AT_A_TIME: usize = 64;

/// A Q row in blocks of eight.
type QRow = Vec<[Operand; LANES]>;

/// What a PE can reach.
pub(super) struct Surroundings<'a> {
    pub(super) geometry: &'a Geometry,
    pub(super) sram: &'a mut Memory,
    pub(super) channel: &'a Memory,
    pub(super) links: &'a mut Links,
}

/// What one PE sends its partner in one merge round: m, l and the partner's columns of O, for every row.
struct Message {
    columns: Columns<usize>,
    rows: Vec<RowState>,
}

/// Messages on their way, a queue for every PE and round.
pub(super) struct Links(Vec<Vec<VecDeque<Message>>>);

impl Links {
    pub(super) fn new(geometry: &Geometry) -> Links {
        let rounds = merge_rounds(geometry.pes()) as usize;
        Links((0..geometry.pes()).map(|_| (0..rounds).map(|_| VecDeque::new()).collect()).collect())
    }
}

/// The kernel that `configure` started.
#[derive(Clone, Debug)]
struct Kernel {
    rows: usize,
    row_tiles: usize,
    head_dim: usize,
    scale: u32,
    q_address: usize,
    q_format: Format,
    k_format: Format,
    v_format: Format,
    /// Merge rounds of all active PEs.
    rounds: u32,
}

/// A merge command under way.
#[derive(Clone, Debug)]
struct Merge {
    round: u32,
    end: u32,
    sent: bool,
}

/// Tile buffers that the primitive commands use.
#[derive(Clone, Debug)]
struct Buffers {
    page: Page,
    q: Vec<QRow>,
    scores: Vec<[u32; TILE]>,
    weights: Vec<Weights>,
}

impl Buffers {
    fn zeros(rows: usize, head_dim: usize) -> Buffers {
        let zeros = vec![0; TILE * head_dim];
        Buffers {
            page: Page::new(0, &zeros, Format::Fp16, &zeros, Format::Fp16),
            q: vec![blocks(&zeros[..head_dim], Format::Fp16); rows],
            scores: vec![[0; TILE]; rows],
            weights: vec![Weights::default(); rows],
        }
    }
}

/// A processing element.
#[derive(Clone, Debug)]
pub(super) struct Pe {
    index: usize,
    queue: VecDeque<[u32; WORDS]>,
    commands: u32,
    failure: Option<Status>,
    kernel: Option<Kernel>,
    /// Of every row of the row store; outlives kernels.
    ranges: Vec<Vec<Range>>,
    /// Of every row of whole row tiles.
    states: Vec<RowState>,
    buffers: Buffers,
    merge: Option<Merge>,
    /// (page, row tile) pairs in which a row saw a position.
    pub(super) tiles_computed: u64,
    /// Pairs in which none did.
    pub(super) tiles_skipped: u64,
    /// Merge rounds done.
    pub(super) merge_rounds: u64,
}

/// Fails with `code` unless `condition` holds.
fn require(condition: bool, code: Code) -> Result<(), Code> {
    if condition { Ok(()) } else { Err(code) }
}

/// Whether `length` words from `address` lie in the memory.
fn fits(memory: &Memory, address: u32, length: usize) -> Result<(), Code> {
    require(u64::from(address) + length as u64 <= memory.beats() as u64, Code::BadAddress)
}

impl Pe {
    pub(super) fn new(index: usize, geometry: &Geometry) -> Pe {
        Pe {
            index,
            queue: VecDeque::new(),
            commands: 0,
            failure: None,
            kernel: None,
            ranges: vec![Vec::new(); geometry.max_rows],
            states: Vec::new(),
            buffers: Buffers::zeros(0, 0),
            merge: None,
            tiles_computed: 0,
            tiles_skipped: 0,
            merge_rounds: 0,
        }
    }

    /// The doorbell: nothing is configured, counters and status are clear.
    pub(super) fn start(&mut self) {
        self.queue.clear();
        self.states.clear();
        (self.commands, self.tiles_computed, self.tiles_skipped, self.merge_rounds) = (0, 0, 0, 0);
        (self.failure, self.kernel, self.merge) = (None, None, None);
    }

    /// Commands taken since the doorbell.
    pub(super) fn commands(&self) -> u32 {
        self.commands
    }

    pub(super) fn failure(&self) -> Option<Status> {
        self.failure
    }

    /// Whether every command is done, or dropped after a failure.
    pub(super) fn is_idle(&self) -> bool {
        self.failure.is_some() || (self.queue.is_empty() && self.merge.is_none())
    }

    pub(super) fn push(&mut self, command: [u32; WORDS]) {
        self.queue.push_back(command);
    }

    /// Does the next thing that there is to do; false if there is none, or if the merge partner has sent nothing yet.
    pub(super) fn step(&mut self, around: &mut Surroundings<'_>) -> bool {
        if self.failure.is_some() {
            return false;
        }
        if self.merge.is_some() {
            return self.exchange(around);
        }
        let Some(words) = self.queue.pop_front() else {
            return false;
        };
        self.commands += 1;
        if let Err(code) = self.execute(&words, around) {
            self.failure = Some(Status { code, command: self.commands - 1 });
        }
        true
    }

    /// Checks and executes a command; `merge` only begins.
    fn execute(&mut self, words: &[u32; WORDS], around: &mut Surroundings<'_>) -> Result<(), Code> {
        let decoded = Command::decode(words);
        match decoded {
            Err(DecodeError::Version(_)) => return Err(Code::IllegalVersion),
            Err(DecodeError::Opcode(_) | DecodeError::Reserved(_)) => return Err(Code::IllegalOpcode),
            _ => require(self.kernel.is_some() || OPCODE.get(words) == CONFIGURE.into(), Code::NotConfigured)?,
        }
        let command = decoded.map_err(|_| Code::IllegalField)?;
        let interleave = if command.interleave { (TILE * self.index) as u32 } else { 0 };
        if let Operation::Configure { .. } = command.operation {
            return self.configure(&command.operation, around);
        }
        let kernel = self.kernel.as_ref().ok_or(Code::NotConfigured)?.clone();
        let check_tile = |row_tile: u16| require(usize::from(row_tile) < kernel.row_tiles, Code::IllegalField);
        let page_beats = page_beats(kernel.head_dim);
        match command.operation {
            Operation::Configure { .. } => {}
            Operation::LoadRows { table } => {
                fits(around.sram, table, kernel.rows * ROW_TABLE_WORDS)?;
                self.load_rows(table as usize, kernel.rows, around.sram);
            }
            Operation::Attend { page, position, pages, stride } => {
                require(pages > 0 && stride > 0, Code::IllegalField)?;
                fits(around.channel, page, usize::from(pages) * page_beats)?;
                let step = TILE as u32 * u32::from(stride);
                let run: Vec<(usize, u32)> = (0..u32::from(pages))
                    .map(|i| {
                        (page as usize + i as usize * page_beats, position.wrapping_add(interleave).wrapping_add(step.wrapping_mul(i)))
                    })
                    .collect();
                self.attend(&kernel, &run, around);
            }
            Operation::LoadKv { page, position } => {
                fits(around.channel, page, page_beats)?;
                self.buffers.page = kernel.page(page as usize, position.wrapping_add(interleave), around.channel);
            }
            Operation::FetchQ { row_tile } => {
                check_tile(row_tile)?;
                self.buffers.q = kernel.q_tile(row_tile.into(), around);
            }
            Operation::Qk { row_tile } => {
                check_tile(row_tile)?;
                let buffers = &mut self.buffers;
                buffers.scores = buffers.q.iter().map(|q| buffers.page.scores(q, u16::MAX)).collect();
            }
            Operation::Softmax { row_tile } => {
                check_tile(row_tile)?;
                self.softmax(&kernel, row_tile.into(), around.geometry);
            }
            Operation::Pv { row_tile } => {
                check_tile(row_tile)?;
                let first = usize::from(row_tile) * around.geometry.rows;
                let rows = self.states[first..].iter_mut().zip(&self.buffers.weights);
                rows.for_each(|(state, weights)| state.accumulate(weights, &self.buffers.page));
            }
            Operation::Merge { first_round, rounds } => {
                let end = u32::from(first_round) + u32::from(rounds);
                require(rounds > 0 && end <= kernel.rounds, Code::IllegalField)?;
                // A PE outside the tree of the active ones has no partner and nothing to merge.
                if self.index >> kernel.rounds == 0 {
                    self.merge = Some(Merge { round: first_round.into(), end, sent: false });
                }
            }
            Operation::Store { output } => {
                fits(around.sram, output, output_words(around.geometry, kernel.rows, kernel.head_dim))?;
                self.store(&kernel, output as usize, around);
            }
        }
        Ok(())
    }

    fn configure(&mut self, operation: &Operation, around: &Surroundings<'_>) -> Result<(), Code> {
        let &Operation::Configure { rows, head_dim, scale, q_address, q_bf16, k_bf16, v_bf16, active } = operation else {
            return Ok(());
        };
        let (rows, head_dim, active) = (usize::from(rows), usize::from(head_dim), usize::from(active));
        let geometry = around.geometry;
        require((1..=geometry.max_rows).contains(&rows), Code::IllegalField)?;
        require((MIN_HEAD_DIM..=geometry.max_head_dim).contains(&head_dim) && head_dim % LANES == 0, Code::IllegalField)?;
        require((1..=geometry.pes()).contains(&active), Code::IllegalField)?;
        let row_tiles = geometry.row_tiles(rows);
        fits(around.sram, q_address, row_tiles * q_words(geometry.rows, head_dim))?;
        let format = |bf16: bool| if bf16 { Format::Bf16 } else { Format::Fp16 };
        self.kernel = Some(Kernel {
            rows,
            row_tiles,
            head_dim,
            scale,
            q_address: q_address as usize,
            q_format: format(q_bf16),
            k_format: format(k_bf16),
            v_format: format(v_bf16),
            rounds: merge_rounds(active),
        });
        self.states = vec![RowState::empty(head_dim); row_tiles * geometry.rows];
        self.buffers = Buffers::zeros(geometry.rows, head_dim);
        Ok(())
    }

    fn load_rows(&mut self, table: usize, rows: usize, sram: &Memory) {
        for (row, ranges) in self.ranges.iter_mut().enumerate().take(rows) {
            let words = [0, 1].map(|word| sram.words(table + row * ROW_TABLE_WORDS + word));
            *ranges = words.as_flattened().as_chunks::<2>().0.iter().map(|&[low, high]| low..high).collect();
            debug_assert_eq!(ranges.len(), RANGES_PER_PASS);
        }
    }

    /// The composite command over (beat address, position) of each page.
    fn attend(&mut self, kernel: &Kernel, run: &[(usize, u32)], around: &Surroundings<'_>) {
        let rows_per_tile = around.geometry.rows;
        let q: Vec<QRow> = (0..kernel.row_tiles).flat_map(|tile| kernel.q_tile(tile, around)).collect();
        for pages in run.chunks(PAGES_AT_A_TIME) {
            let pages: Vec<Page> = pages.iter().map(|&(beat, position)| kernel.page(beat, position, around.channel)).collect();
            let ranges = &self.ranges[..kernel.rows];
            for page in &pages {
                let computed = ranges.chunks(rows_per_tile).filter(|tile| tile.iter().any(|ranges| page.visible(ranges) != 0)).count();
                self.tiles_computed += computed as u64;
                self.tiles_skipped += (kernel.row_tiles - computed) as u64;
            }
            self.states.par_iter_mut().zip(ranges.par_iter().zip(&q)).for_each(|(state, (ranges, q))| {
                pages.iter().for_each(|page| state.update(q, page, page.visible(ranges), kernel.scale));
            });
        }
    }

    fn softmax(&mut self, kernel: &Kernel, row_tile: usize, geometry: &Geometry) {
        let buffers = &mut self.buffers;
        for lane in 0..geometry.rows {
            let row = row_tile * geometry.rows + lane;
            let visible = if row < kernel.rows { buffers.page.visible(&self.ranges[row]) } else { 0 };
            buffers.weights[lane] = self.states[row].weigh(&buffers.scores[lane], visible, kernel.scale);
        }
    }

    /// One merge round: sends m, l and the columns that the partner keeps, then combines what came with what this PE keeps.
    fn exchange(&mut self, around: &mut Surroundings<'_>) -> bool {
        let (Some(kernel), Some(merge)) = (&self.kernel, &mut self.merge) else {
            return false;
        };
        let partner = self.index ^ (1 << merge.round);
        let link = merge.round as usize;
        if !merge.sent {
            let columns = kernel.kept_columns(partner, merge.round + 1);
            let share = |state: &RowState| RowState { m: state.m, l: state.l, o: state.o[columns.clone()].to_vec() };
            let message = Message { rows: self.states.iter().map(share).collect(), columns: columns.clone() };
            merge.sent = true;
            // A partner that the array does not have never answers.
            if let Some(queues) = around.links.0.get_mut(partner) {
                queues[link].push_back(message);
            }
            return true;
        }
        let columns = kernel.kept_columns(self.index, merge.round + 1);
        let queue = &mut around.links.0[self.index][link];
        // Partners that run different kernels never come together.
        let expected = |message: &Message| message.columns == columns && message.rows.len() == self.states.len();
        let Some(message) = queue.front().is_some_and(expected).then(|| queue.pop_front()).flatten() else {
            return false;
        };
        for (state, theirs) in self.states.iter_mut().zip(&message.rows) {
            let mine = RowState { m: state.m, l: state.l, o: state.o[columns.clone()].to_vec() };
            let merged = mine.merge(theirs);
            (state.m, state.l) = (merged.m, merged.l);
            state.o[columns.clone()].copy_from_slice(&merged.o);
        }
        self.merge_rounds += 1;
        merge.round += 1;
        merge.sent = false;
        if merge.round == merge.end {
            self.merge = None;
        }
        true
    }

    /// Writes the columns that this PE owns, in whole row tiles; PE 0 writes l and m as well.
    fn store(&self, kernel: &Kernel, output: usize, around: &mut Surroundings<'_>) {
        let (first, end) = owned_columns(kernel.head_dim, self.index, kernel.rounds);
        for (row, state) in self.states.iter().enumerate() {
            let mut put = |column: usize, bits: u32| {
                let index = output_index(around.geometry, kernel.head_dim, row, column);
                around.sram.write(byte_of(output) + index * size_of::<u32>(), &bits.to_le_bytes());
            };
            let o = state.finish();
            (first..end).for_each(|column| put(column, o[column]));
            if self.index == 0 {
                put(kernel.head_dim, state.l);
                put(kernel.head_dim + 1, state.m);
            }
        }
    }
}

impl Kernel {
    /// A page from channel memory.
    fn page(&self, beat: usize, position: u32, channel: &Memory) -> Page {
        let elements = channel.elements(beat, page_beats(self.head_dim));
        let (k, v) = elements.split_at(TILE * self.head_dim);
        Page::new(position, k, self.k_format, v, self.v_format)
    }

    /// A Q tile from shared SRAM.
    fn q_tile(&self, row_tile: usize, around: &Surroundings<'_>) -> Vec<QRow> {
        let words = q_words(around.geometry.rows, self.head_dim);
        let elements = around.sram.elements(self.q_address + row_tile * words, words);
        elements.chunks_exact(self.head_dim).map(|row| blocks(row, self.q_format)).collect()
    }

    /// Columns that a PE holds after `rounds` merge rounds.
    fn kept_columns(&self, pe: usize, rounds: u32) -> Columns<usize> {
        let (first, end) = owned_columns(self.head_dim, pe & ((1 << rounds) - 1), rounds);
        first..end
    }
}
