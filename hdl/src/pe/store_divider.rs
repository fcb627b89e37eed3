//! Store divider: l, m and 1 / l of the next row tile, while the elements of the one before are stored.
//!
//! ```text
//!  idle --start--> read l --> read m, start ROWS reciprocals --> divide --> ready --take--> read l of the next row tile, or idle
//! ```
//!
//! 31 cycles a row tile; the results stay until `take`.

use rust_hdl::prelude::*;

use super::state_port::StateRead;
use crate::number::Reciprocal32;

/// What the divider does.
#[derive(Copy, Clone, PartialEq, Debug, LogicState)]
pub enum DividerState {
    Idle,
    ReadL,
    ReadM,
    Divide,
    Ready,
}

#[derive(LogicBlock)]
pub struct StoreDivider<const ROWS: usize, const BEAT: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub row_tiles: Signal<In, Bits<16>>,
    /// Begin with row tile 0.
    pub start: Signal<In, Bit>,
    /// The results are copied in this cycle.
    pub take: Signal<In, Bit>,
    pub read: Signal<Out, StateRead>,
    pub read_data: Signal<In, Bits<BEAT>>,
    pub ready: Signal<Out, Bit>,
    /// The division goes on in this cycle.
    pub dividing: Signal<Out, Bit>,
    pub l: Signal<Out, Bits<BEAT>>,
    pub m: Signal<Out, Bits<BEAT>>,
    pub reciprocals: Signal<Out, Bits<BEAT>>,
    word_place: Constant<Bits<9>>,
    last_step: Constant<Bits<5>>,
    state: DFF<DividerState>,
    row_tile: DFF<Bits<16>>,
    next_row_tile: Signal<Local, Bits<16>>,
    step: DFF<Bits<5>>,
    l_beat: DFF<Bits<BEAT>>,
    m_beat: DFF<Bits<BEAT>>,
    reciprocal: [Reciprocal32; ROWS],
    word: Signal<Local, Bits<32>>,
    beat: Signal<Local, Bits<BEAT>>,
}

impl<const ROWS: usize, const BEAT: usize> Default for StoreDivider<ROWS, BEAT> {
    fn default() -> Self {
        assert_eq!(BEAT, 32 * ROWS, "a beat is one fp32 a row");
        Self {
            clock: Default::default(),
            reset: Default::default(),
            row_tiles: Default::default(),
            start: Default::default(),
            take: Default::default(),
            read: Default::default(),
            read_data: Default::default(),
            ready: Default::default(),
            dividing: Default::default(),
            l: Default::default(),
            m: Default::default(),
            reciprocals: Default::default(),
            word_place: Constant::new(bits(BEAT as u64 - 32)),
            last_step: Constant::new(bits(Reciprocal32::LATENCY as u64)),
            state: Default::default(),
            row_tile: Default::default(),
            next_row_tile: Default::default(),
            step: Default::default(),
            l_beat: Default::default(),
            m_beat: Default::default(),
            reciprocal: std::array::from_fn(|_| Default::default()),
            word: Default::default(),
            beat: Default::default(),
        }
    }
}

impl<const ROWS: usize, const BEAT: usize> Logic for StoreDivider<ROWS, BEAT> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, row_tile, step, l_beat, m_beat);
        self.next_row_tile.next = self.row_tile.q.val() + 1;
        self.read.next.valid = false;
        self.read.next.select = 1.into();
        self.read.next.row_tile = self.row_tile.q.val();
        self.read.next.column = 0.into();
        match self.state.q.val() {
            DividerState::Idle => {
                self.row_tile.d.next = 0.into();
                if self.start.val() {
                    self.state.d.next = DividerState::ReadL;
                }
            }
            DividerState::ReadL => {
                self.read.next.valid = true;
                self.state.d.next = DividerState::ReadM;
            }
            DividerState::ReadM => {
                // l is there while m is asked for
                self.read.next.valid = true;
                self.read.next.select = 2.into();
                self.l_beat.d.next = self.read_data.val();
                self.step.d.next = 0.into();
                self.state.d.next = DividerState::Divide;
            }
            DividerState::Divide => {
                if !self.step.q.val().any() {
                    self.m_beat.d.next = self.read_data.val();
                }
                self.step.d.next = self.step.q.val() + 1;
                if self.step.q.val() == self.last_step.val() {
                    self.state.d.next = DividerState::Ready;
                }
            }
            DividerState::Ready => {
                if self.take.val() {
                    self.row_tile.d.next = self.next_row_tile.val();
                    self.state.d.next = DividerState::ReadL;
                    if self.next_row_tile.val() == self.row_tiles.val() {
                        self.state.d.next = DividerState::Idle;
                    }
                }
            }
        }
        self.beat.next = 0.into();
        for i in 0..ROWS {
            self.reciprocal[i].clock.next = self.clock.val();
            self.reciprocal[i].value.next = self.read_data.val().get_bits::<32>(i * 32);
            self.reciprocal[i].start.next = self.state.q.val() == DividerState::ReadM;
            self.word.next = self.reciprocal[i].result.val();
            self.beat.next = (self.beat.val() >> 32) | (bit_cast::<BEAT, 32>(self.word.val()) << self.word_place.val());
        }
        self.l.next = self.l_beat.q.val();
        self.m.next = self.m_beat.q.val();
        self.reciprocals.next = self.beat.val();
        self.ready.next = self.state.q.val() == DividerState::Ready;
        self.dividing.next = self.state.q.val() == DividerState::Divide;
        if self.reset.val() {
            self.state.d.next = DividerState::Idle;
        }
    }
}
