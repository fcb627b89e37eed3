//! Store engine: normalises the columns that the PE owns and writes them to shared SRAM.
//!
//! ```text
//!  row state --l, m--> [divider: ROWS reciprocals of the next row tile]
//!                                  |
//!            --O column--> x reciprocal, one element a cycle --> pack four --> [queue of 8] --> SRAM write
//!
//!  idle --> tile (the divider has it) --> read column --> elements, the next column read meanwhile --> next row tile
//! ```
//!
//! Output index of (row tile, column, row): (row tile x (d + 2) + column) x ROWS + row, fp32; column d is l, column d + 1 is m, both written by PE 0.
//! A row that saw no key gives 0; one whose scores are all -inf gives NaN.
//!
//! A row tile takes 1 cycle an element and 4 cycles more, or 33 cycles if its elements are fewer, unless SRAM is slower; the first one 32 cycles more.

use rust_hdl::prelude::*;

use super::decoder::Settings;
use super::state_port::StateRead;
use super::store_divider::StoreDivider;
use crate::memory::Fifo;
use crate::number::Multiply32;

/// What the store engine does.
#[derive(Copy, Clone, PartialEq, Debug, LogicState)]
pub enum StoreState {
    Idle,
    Tile,
    ReadColumn,
    Column,
    Elements,
    Drain,
}

/// An element on its way through the multiplier.
#[derive(LogicStruct, Copy, Clone, Debug, Default, PartialEq)]
pub struct StoreElement {
    pub valid: Bit,
    /// Last element of a word: the packer hands it on.
    pub flush: Bit,
    /// The row saw no key.
    pub empty: Bit,
    /// The row saw nothing but -inf.
    pub undefined: Bit,
    pub index: Bits<22>,
}

#[derive(LogicBlock)]
pub struct StoreEngine<const ROWS: usize, const BEAT: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub settings: Signal<In, Settings>,
    pub pe_index: Signal<In, Bits<8>>,
    pub first_column: Signal<In, Bits<8>>,
    pub end_column: Signal<In, Bits<8>>,
    pub start: Signal<In, Bit>,
    /// SRAM word of the output area.
    pub output_address: Signal<In, Bits<20>>,
    pub busy: Signal<Out, Bit>,
    pub progress: Signal<Out, Bit>,
    // row state
    pub read: Signal<Out, StateRead>,
    pub read_data: Signal<In, Bits<BEAT>>,
    // SRAM
    pub store_valid: Signal<Out, Bit>,
    pub store_ready: Signal<In, Bit>,
    pub store_address: Signal<Out, Bits<20>>,
    pub store_data: Signal<Out, Bits<128>>,
    pub store_enable: Signal<Out, Bits<4>>,
    last_row: Constant<Bits<4>>,
    row_before: Constant<Bits<4>>,
    row_count: Constant<Bits<22>>,
    state: DFF<StoreState>,
    row_tile: DFF<Bits<16>>,
    base: DFF<Bits<20>>,
    index: DFF<Bits<22>>,
    tile_index: DFF<Bits<22>>,
    columns: Signal<Local, Bits<16>>,
    wide_column: Signal<Local, Bits<16>>,
    tile_step: Signal<Local, Bits<32>>,
    column_index: Signal<Local, Bits<32>>,
    /// 0 own columns, 1 l, 2 m
    kind: DFF<Bits<2>>,
    column: DFF<Bits<8>>,
    next_column: Signal<Local, Bits<8>>,
    row: DFF<Bits<4>>,
    l_beat: DFF<Bits<BEAT>>,
    m_beat: DFF<Bits<BEAT>>,
    factors: DFF<Bits<BEAT>>,
    values: DFF<Bits<BEAT>>,
    divider: StoreDivider<ROWS, BEAT>,
    // the next column, read while this one's elements go
    reading: Signal<Local, Bit>,
    reading1: DFF<Bit>,
    read_ahead: DFF<Bit>,
    ahead: DFF<Bits<BEAT>>,
    ahead_now: Signal<Local, Bits<BEAT>>,
    before_last_row: Signal<Local, Bit>,
    last_own: Signal<Local, Bit>,
    factor: Signal<Local, Bits<32>>,
    row_l: Signal<Local, Bits<32>>,
    row_m: Signal<Local, Bits<32>>,
    nothing: Signal<Local, Bit>,
    next_row_tile: Signal<Local, Bits<16>>,
    nothing_owned: Signal<Local, Bit>,
    outside: Signal<Local, Bit>,
    // elements
    room: Signal<Local, Bit>,
    opens: Signal<Local, Bit>,
    issue: Signal<Local, Bit>,
    launched: Signal<Local, StoreElement>,
    bubble: Signal<Local, StoreElement>,
    multiply: Multiply32,
    pipe: [DFF<StoreElement>; 5],
    product: Signal<Local, Bits<32>>,
    // packer
    lane: Signal<Local, Bits<2>>,
    packed: DFF<Bits<128>>,
    enables: DFF<Bits<4>>,
    new_packed: Signal<Local, Bits<128>>,
    new_enables: Signal<Local, Bits<4>>,
    wide: Signal<Local, Bits<128>>,
    outstanding: DFF<Bits<4>>,
    opened: Signal<Local, Bit>,
    closed: Signal<Local, Bit>,
    queue: Fifo<152, 3, 4>,
}

impl<const ROWS: usize, const BEAT: usize> Default for StoreEngine<ROWS, BEAT> {
    fn default() -> Self {
        assert_eq!(BEAT, 32 * ROWS, "a beat is one fp32 a row");
        Self {
            clock: Default::default(),
            reset: Default::default(),
            settings: Default::default(),
            pe_index: Default::default(),
            first_column: Default::default(),
            end_column: Default::default(),
            start: Default::default(),
            output_address: Default::default(),
            busy: Default::default(),
            progress: Default::default(),
            read: Default::default(),
            read_data: Default::default(),
            store_valid: Default::default(),
            store_ready: Default::default(),
            store_address: Default::default(),
            store_data: Default::default(),
            store_enable: Default::default(),
            last_row: Constant::new(bits(ROWS as u64 - 1)),
            row_before: Constant::new(bits(ROWS as u64 - 2)),
            row_count: Constant::new(bits(ROWS as u64)),
            state: Default::default(),
            row_tile: Default::default(),
            base: Default::default(),
            index: Default::default(),
            tile_index: Default::default(),
            columns: Default::default(),
            wide_column: Default::default(),
            tile_step: Default::default(),
            column_index: Default::default(),
            kind: Default::default(),
            column: Default::default(),
            next_column: Default::default(),
            row: Default::default(),
            l_beat: Default::default(),
            m_beat: Default::default(),
            factors: Default::default(),
            values: Default::default(),
            divider: Default::default(),
            reading: Default::default(),
            reading1: Default::default(),
            read_ahead: Default::default(),
            ahead: Default::default(),
            ahead_now: Default::default(),
            before_last_row: Default::default(),
            last_own: Default::default(),
            factor: Default::default(),
            row_l: Default::default(),
            row_m: Default::default(),
            nothing: Default::default(),
            next_row_tile: Default::default(),
            nothing_owned: Default::default(),
            outside: Default::default(),
            room: Default::default(),
            opens: Default::default(),
            issue: Default::default(),
            launched: Default::default(),
            bubble: Default::default(),
            multiply: Default::default(),
            pipe: Default::default(),
            product: Default::default(),
            lane: Default::default(),
            packed: Default::default(),
            enables: Default::default(),
            new_packed: Default::default(),
            new_enables: Default::default(),
            wide: Default::default(),
            outstanding: Default::default(),
            opened: Default::default(),
            closed: Default::default(),
            queue: Default::default(),
        }
    }
}

impl<const ROWS: usize, const BEAT: usize> Logic for StoreEngine<ROWS, BEAT> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            state,
            row_tile,
            base,
            index,
            tile_index,
            kind,
            column,
            row,
            l_beat,
            m_beat,
            factors,
            values,
            reading1,
            read_ahead,
            ahead,
            packed,
            enables,
            outstanding
        );
        self.next_row_tile.next = self.row_tile.q.val() + 1;
        self.next_column.next = self.column.q.val() + 1;
        self.nothing_owned.next = self.first_column.val() == self.end_column.val();
        self.outside.next = (self.pe_index.val() >> self.settings.val().rounds).any();
        self.columns.next = bit_cast::<16, 8>(self.settings.val().head_dim) + 2;
        self.wide_column.next = bit_cast::<16, 8>(self.column.q.val());
        // fp32 of a row tile: (d + 2) x ROWS; of a column: column x ROWS
        self.tile_step.next = self.columns.val() * self.row_count.val().get_bits::<16>(0);
        self.column_index.next = self.wide_column.val() * self.row_count.val().get_bits::<16>(0);
        self.room.next = self.outstanding.q.val() < 8;
        self.opens.next = !self.index.q.val().get_bits::<2>(0).any() | !self.row.q.val().any();
        self.issue.next = false;
        // ---- the row of the element
        self.factor.next = 0.into();
        self.row_l.next = 0.into();
        self.row_m.next = 0.into();
        self.multiply.clock.next = self.clock.val();
        self.multiply.a.next = 0.into();
        for i in 0..ROWS {
            if self.row.q.val() == i.to_bits() {
                self.multiply.a.next = self.values.q.val().get_bits::<32>(i * 32);
                self.factor.next = self.factors.q.val().get_bits::<32>(i * 32);
                self.row_l.next = self.l_beat.q.val().get_bits::<32>(i * 32);
                self.row_m.next = self.m_beat.q.val().get_bits::<32>(i * 32);
            }
        }
        self.nothing.next = self.row_m.val() == 0xFF80_0000_u64;
        // ---- the row state's port: the divider goes first
        self.divider.clock.next = self.clock.val();
        self.divider.reset.next = self.reset.val();
        self.divider.row_tiles.next = self.settings.val().row_tiles;
        self.divider.start.next = (self.state.q.val() == StoreState::Idle) & (self.start.val() & !self.outside.val());
        self.divider.take.next = (self.state.q.val() == StoreState::Tile) & self.divider.ready.val();
        self.divider.read_data.next = self.read_data.val();
        self.last_own.next = self.next_column.val() == self.end_column.val();
        self.before_last_row.next = self.row.q.val() == self.row_before.val();
        self.ahead_now.next = self.ahead.q.val();
        if self.reading1.q.val() {
            self.ahead_now.next = self.read_data.val();
            self.ahead.d.next = self.read_data.val();
            self.read_ahead.d.next = true;
        }
        self.reading.next = (self.state.q.val() == StoreState::ReadColumn) & !self.kind.q.val().any();
        if (self.state.q.val() == StoreState::Elements) & (self.before_last_row.val() & !self.kind.q.val().any()) {
            self.reading.next = !self.last_own.val();
        }
        self.read.next.valid = self.reading.val() | self.divider.read.val().valid;
        self.read.next.select = 0.into();
        self.read.next.row_tile = self.row_tile.q.val();
        self.read.next.column = self.column.q.val();
        if self.state.q.val() == StoreState::Elements {
            self.read.next.column = self.next_column.val();
        }
        if self.divider.read.val().valid {
            self.read.next.select = self.divider.read.val().select;
            self.read.next.row_tile = self.divider.read.val().row_tile;
        }
        self.reading1.d.next = (self.state.q.val() == StoreState::Elements) & (self.reading.val() & !self.divider.read.val().valid);
        match self.state.q.val() {
            StoreState::Idle => {
                self.row_tile.d.next = 0.into();
                self.tile_index.d.next = 0.into();
                self.base.d.next = self.output_address.val();
                if self.start.val() & !self.outside.val() {
                    self.state.d.next = StoreState::Tile;
                }
            }
            StoreState::Tile => {
                self.l_beat.d.next = self.divider.l.val();
                self.m_beat.d.next = self.divider.m.val();
                self.factors.d.next = self.divider.reciprocals.val();
                self.column.d.next = self.first_column.val();
                self.kind.d.next = 0.into();
                if self.divider.ready.val() {
                    self.state.d.next = StoreState::ReadColumn;
                    if self.nothing_owned.val() {
                        self.kind.d.next = 1.into();
                        self.column.d.next = self.settings.val().head_dim;
                        if self.pe_index.val().any() {
                            self.state.d.next = StoreState::Drain;
                        }
                    }
                }
            }
            StoreState::ReadColumn => {
                if self.kind.q.val().any() | !self.divider.read.val().valid {
                    self.state.d.next = StoreState::Column;
                }
            }
            StoreState::Column => {
                self.values.d.next = self.read_data.val();
                if self.kind.q.val() == 1 {
                    self.values.d.next = self.l_beat.q.val();
                }
                self.index.d.next = self.tile_index.q.val() + self.column_index.val().get_bits::<22>(0);
                self.row.d.next = 0.into();
                self.read_ahead.d.next = false;
                self.state.d.next = StoreState::Elements;
            }
            StoreState::Elements => {
                // The word's place in the queue is taken with its first element.
                self.issue.next = self.room.val() | !self.opens.val();
                if self.room.val() | !self.opens.val() {
                    self.index.d.next = self.index.q.val() + 1;
                    self.row.d.next = self.row.q.val() + 1;
                    if self.row.q.val() == self.last_row.val() {
                        // Columns follow each other in the output, so the index just goes on.
                        self.row.d.next = 0.into();
                        self.column.d.next = self.next_column.val();
                        self.read_ahead.d.next = false;
                        if self.kind.q.val() == 2 {
                            self.state.d.next = StoreState::Drain;
                        } else if self.kind.q.val() == 1 {
                            self.kind.d.next = 2.into();
                            self.values.d.next = self.m_beat.q.val();
                        } else if self.last_own.val() {
                            if self.pe_index.val().any() {
                                self.state.d.next = StoreState::Drain;
                            } else {
                                self.kind.d.next = 1.into();
                                self.column.d.next = self.settings.val().head_dim;
                                self.state.d.next = StoreState::ReadColumn;
                            }
                        } else {
                            self.values.d.next = self.ahead_now.val();
                            if !self.read_ahead.q.val() & !self.reading1.q.val() {
                                self.state.d.next = StoreState::ReadColumn;
                            }
                        }
                    }
                }
            }
            StoreState::Drain => {
                if self.next_row_tile.val() != self.settings.val().row_tiles {
                    self.row_tile.d.next = self.next_row_tile.val();
                    self.tile_index.d.next = self.tile_index.q.val() + self.tile_step.val().get_bits::<22>(0);
                    self.state.d.next = StoreState::Tile;
                } else if !self.outstanding.q.val().any() {
                    self.state.d.next = StoreState::Idle;
                }
            }
        }
        // ---- elements through the multiplier; l and m are multiplied by 1
        self.multiply.b.next = self.factor.val();
        if self.kind.q.val().any() {
            self.multiply.b.next = 0x3F80_0000.into();
        }
        self.launched.next.valid = self.issue.val();
        self.launched.next.flush = self.index.q.val().get_bits::<2>(0).all() | (self.row.q.val() == self.last_row.val());
        self.launched.next.empty = (self.nothing.val() & (self.row_l.val() == 0)) & !self.kind.q.val().any();
        self.launched.next.undefined = (self.nothing.val() & (self.row_l.val() != 0)) & !self.kind.q.val().any();
        self.launched.next.index = self.index.q.val();
        self.pipe[0].clock.next = self.clock.val();
        self.pipe[0].d.next = self.launched.val();
        for i in 1..5 {
            self.pipe[i].clock.next = self.clock.val();
            self.pipe[i].d.next = self.pipe[i - 1].q.val();
        }
        self.product.next = self.multiply.result.val();
        if self.pipe[4].q.val().empty {
            self.product.next = 0.into();
        }
        if self.pipe[4].q.val().undefined {
            self.product.next = 0x7FC0_0000.into();
        }
        // ---- packer
        self.lane.next = self.pipe[4].q.val().index.get_bits::<2>(0);
        self.wide.next = bit_cast::<128, 32>(self.product.val());
        self.new_packed.next = self.packed.q.val();
        self.new_enables.next = self.enables.q.val();
        if self.pipe[4].q.val().valid {
            if self.lane.val() == 0 {
                self.new_packed.next = self.packed.q.val() | self.wide.val();
                self.new_enables.next = self.enables.q.val() | 1;
            }
            if self.lane.val() == 1 {
                self.new_packed.next = self.packed.q.val() | (self.wide.val() << 32);
                self.new_enables.next = self.enables.q.val() | 2;
            }
            if self.lane.val() == 2 {
                self.new_packed.next = self.packed.q.val() | (self.wide.val() << 64);
                self.new_enables.next = self.enables.q.val() | 4;
            }
            if self.lane.val() == 3 {
                self.new_packed.next = self.packed.q.val() | (self.wide.val() << 96);
                self.new_enables.next = self.enables.q.val() | 8;
            }
        }
        self.packed.d.next = self.new_packed.val();
        self.enables.d.next = self.new_enables.val();
        self.queue.clock.next = self.clock.val();
        self.queue.reset.next = self.reset.val();
        self.queue.in_valid.next = self.pipe[4].q.val().valid & self.pipe[4].q.val().flush;
        self.queue.in_data.next = (bit_cast::<152, 128>(self.new_packed.val()) << 24)
            | ((bit_cast::<152, 4>(self.new_enables.val()) << 20)
                | bit_cast::<152, 20>(self.base.q.val() + self.pipe[4].q.val().index.get_bits::<20>(2)));
        if self.pipe[4].q.val().valid & self.pipe[4].q.val().flush {
            self.packed.d.next = 0.into();
            self.enables.d.next = 0.into();
        }
        // A word is outstanding from its first element to its write; a word of ROWS < 4 is opened at its own first element.
        self.opened.next = self.issue.val() & self.opens.val();
        self.closed.next = self.queue.out_valid.val() & self.store_ready.val();
        if self.opened.val() & !self.closed.val() {
            self.outstanding.d.next = self.outstanding.q.val() + 1;
        }
        if self.closed.val() & !self.opened.val() {
            self.outstanding.d.next = self.outstanding.q.val() - 1;
        }
        self.store_valid.next = self.queue.out_valid.val();
        self.queue.out_ready.next = self.store_ready.val();
        self.store_address.next = self.queue.out_data.val().get_bits::<20>(0);
        self.store_enable.next = self.queue.out_data.val().get_bits::<4>(20);
        self.store_data.next = self.queue.out_data.val().get_bits::<128>(24);
        self.progress.next = (self.closed.val() | self.issue.val()) | self.divider.dividing.val();
        self.busy.next = self.state.q.val() != StoreState::Idle;
        // What is in flight at a reset must not land in the next launch.
        self.bubble.next = self.launched.val();
        self.bubble.next.valid = false;
        for i in 0..5 {
            if self.reset.val() {
                self.pipe[i].d.next = self.bubble.val();
            }
        }
        if self.reset.val() {
            self.state.d.next = StoreState::Idle;
            self.outstanding.d.next = 0.into();
            self.packed.d.next = 0.into();
            self.enables.d.next = 0.into();
        }
    }
}
