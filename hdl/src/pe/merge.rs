//! Merge engine: combines this PE's row states with its partners', one round after the other.
//!
//! ```text
//!  row state --read--> send m, l, the columns that the partner keeps --> IPCQ
//!  IPCQ --m, l, the columns that this PE keeps--> ROWS scaled adders --write--> row state
//!
//!  idle --start--> round --(all row tiles sent and received, writes landed)--> round ... --> idle
//! ```
//!
//! In round i the PE exchanges with `index xor 2^i` over link i; of the columns that it still owns it keeps the first, larger half if its bit i is 0, the
//! other one otherwise. A beat holds ROWS fp32. Reading for a received beat goes before reading for a send.
//!
//! Throughput: one beat read a cycle for either direction; a row tile costs [`M_STEP`] cycles more for its maxima. A PE with index >= 2^rounds takes no
//! part.
//!
//! The empty state (m = -inf, l = 0) is the identity, bits untouched: its l and O enter the adder as -0.

use rust_hdl::prelude::*;

use super::decoder::Settings;
use crate::number::{Max32, ScaledAdd32, ShiftCount};

/// Cycles from popping a beat of maxima until the next beat of the row tile may be popped.
pub const M_STEP: u64 = 11;

/// One row of the merge: new maximum, shifts, scaled sum. Fixed latency from `own` and `other`: maximum 1, shifts 9 and 10, sum 7.
#[derive(LogicBlock, Default)]
pub struct MergeRow {
    pub clock: Signal<In, Clock>,
    pub own: Signal<In, Bits<32>>,
    pub other: Signal<In, Bits<32>>,
    /// `own` and `other` are maxima (held for the following steps).
    pub take_m: Signal<In, Bit>,
    /// The cycle after `take_m`, and the one after that: differences to own and to other maximum.
    pub own_difference: Signal<In, Bit>,
    pub other_difference: Signal<In, Bit>,
    pub take_own_shift: Signal<In, Bit>,
    pub take_other_shift: Signal<In, Bit>,
    /// `own` and `other` are sums l: the empty flags come from them.
    pub is_l: Signal<In, Bit>,
    pub m: Signal<Out, Bits<32>>,
    pub sum: Signal<Out, Bits<32>>,
    maximum: Max32,
    own_m: DFF<Bits<32>>,
    other_m: DFF<Bits<32>>,
    held_m: DFF<Bits<32>>,
    held_now: Signal<Local, Bits<32>>,
    own_shift: DFF<Bits<9>>,
    other_shift: DFF<Bits<9>>,
    own_empty: DFF<Bit>,
    other_empty: DFF<Bit>,
    own_is_empty: Signal<Local, Bit>,
    other_is_empty: Signal<Local, Bit>,
    add: ScaledAdd32,
    count: ShiftCount,
}

impl Logic for MergeRow {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, own_m, other_m, held_m, own_shift, other_shift, own_empty, other_empty);
        self.maximum.clock.next = self.clock.val();
        self.maximum.a.next = self.own.val();
        self.maximum.b.next = self.other.val();
        if self.take_m.val() {
            self.own_m.d.next = self.own.val();
            self.other_m.d.next = self.other.val();
        }
        self.held_now.next = self.held_m.q.val();
        if self.own_difference.val() {
            self.held_now.next = self.maximum.result.val();
            self.held_m.d.next = self.maximum.result.val();
        }
        self.m.next = self.held_m.q.val();
        // Emptiness is known with l
        self.own_is_empty.next = self.own_empty.q.val();
        self.other_is_empty.next = self.other_empty.q.val();
        if self.is_l.val() {
            self.own_is_empty.next = (self.own_m.q.val() == 0xFF80_0000_u64) & (self.own.val() == 0);
            self.other_is_empty.next = (self.other_m.q.val() == 0xFF80_0000_u64) & (self.other.val() == 0);
            self.own_empty.d.next = (self.own_m.q.val() == 0xFF80_0000_u64) & (self.own.val() == 0);
            self.other_empty.d.next = (self.other_m.q.val() == 0xFF80_0000_u64) & (self.other.val() == 0);
        }
        self.add.clock.next = self.clock.val();
        self.add.a.next = self.own.val();
        self.add.ka.next = self.own_shift.q.val();
        self.add.b.next = self.other.val();
        self.add.kb.next = self.other_shift.q.val();
        if self.other_is_empty.val() {
            self.add.b.next = 0x8000_0000_u64.into();
            self.add.kb.next = 0.into();
        } else if self.own_is_empty.val() {
            self.add.a.next = 0x8000_0000_u64.into();
            self.add.ka.next = 0.into();
        }
        if self.own_difference.val() {
            self.add.a.next = self.held_now.val();
            self.add.ka.next = 0.into();
            self.add.b.next = self.own_m.q.val() ^ 0x8000_0000_u64;
            self.add.kb.next = 0.into();
        }
        if self.other_difference.val() {
            self.add.a.next = self.held_now.val();
            self.add.ka.next = 0.into();
            self.add.b.next = self.other_m.q.val() ^ 0x8000_0000_u64;
            self.add.kb.next = 0.into();
        }
        self.sum.next = self.add.result.val();
        self.count.clock.next = self.clock.val();
        self.count.difference.next = self.add.result.val();
        if self.take_own_shift.val() {
            self.own_shift.d.next = self.count.count.val();
        }
        if self.take_other_shift.val() {
            self.other_shift.d.next = self.count.count.val();
        }
    }
}

/// A beat on its way through the adders.
#[derive(LogicStruct, Copy, Clone, Debug, Default, PartialEq)]
pub struct MergeBeat {
    pub valid: Bit,
    /// 0 O, 1 l, 2 m.
    pub select: Bits<2>,
    pub row_tile: Bits<16>,
    pub column: Bits<8>,
}

#[derive(LogicBlock)]
pub struct MergeEngine<const ROWS: usize, const BEAT: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// A kernel starts: the PE owns every column.
    pub clear: Signal<In, Bit>,
    pub settings: Signal<In, Settings>,
    pub pe_index: Signal<In, Bits<8>>,
    pub start: Signal<In, Bit>,
    pub first_round: Signal<In, Bits<4>>,
    pub rounds: Signal<In, Bits<4>>,
    pub busy: Signal<Out, Bit>,
    /// A beat was sent or taken in this cycle.
    pub progress: Signal<Out, Bit>,
    pub sent: Signal<Out, Bit>,
    pub round_done: Signal<Out, Bit>,
    /// Columns that the PE owns.
    pub first_column: Signal<Out, Bits<8>>,
    pub end_column: Signal<Out, Bits<8>>,
    // row state
    pub state_read: Signal<Out, Bit>,
    pub state_read_select: Signal<Out, Bits<2>>,
    pub state_read_row_tile: Signal<Out, Bits<16>>,
    pub state_read_column: Signal<Out, Bits<8>>,
    pub state_read_data: Signal<In, Bits<BEAT>>,
    pub state_write: Signal<Out, Bit>,
    pub state_write_select: Signal<Out, Bits<2>>,
    pub state_write_row_tile: Signal<Out, Bits<16>>,
    pub state_write_column: Signal<Out, Bits<8>>,
    pub state_write_data: Signal<Out, Bits<BEAT>>,
    // IPCQ
    pub link: Signal<Out, Bits<4>>,
    pub reserve: Signal<Out, Bit>,
    pub may_reserve: Signal<In, Bit>,
    pub push: Signal<Out, Bit>,
    pub push_data: Signal<Out, Bits<BEAT>>,
    pub head_valid: Signal<In, Bit>,
    pub head: Signal<In, Bits<BEAT>>,
    pub pop: Signal<Out, Bit>,
    word_place: Constant<Bits<9>>,
    // rounds
    running: DFF<Bit>,
    entering: DFF<Bit>,
    round: DFF<Bits<4>>,
    end_round: DFF<Bits<4>>,
    own_first: DFF<Bits<8>>,
    own_end: DFF<Bits<8>>,
    next_round: Signal<Local, Bits<4>>,
    send_next: Signal<Local, Bits<8>>,
    take_next: Signal<Local, Bits<8>>,
    half: Signal<Local, Bits<8>>,
    width: Signal<Local, Bits<8>>,
    middle: Signal<Local, Bits<8>>,
    upper: Signal<Local, Bit>,
    outside: Signal<Local, Bit>,
    keep_first: DFF<Bits<8>>,
    keep_end: DFF<Bits<8>>,
    give_first: DFF<Bits<8>>,
    give_end: DFF<Bits<8>>,
    // sending: step 0 m, 1 l, 2 columns
    send_tile: DFF<Bits<16>>,
    send_step: DFF<Bits<2>>,
    send_column: DFF<Bits<8>>,
    send_left: Signal<Local, Bit>,
    send_now: Signal<Local, Bit>,
    send_no_columns: Signal<Local, Bit>,
    send_ends: Signal<Local, Bit>,
    sending1: DFF<Bit>,
    // receiving
    take_tile: DFF<Bits<16>>,
    take_step: DFF<Bits<2>>,
    take_column: DFF<Bits<8>>,
    take_left: Signal<Local, Bit>,
    take_allowed: Signal<Local, Bit>,
    take_now: Signal<Local, Bit>,
    take_no_columns: Signal<Local, Bit>,
    take_ends: Signal<Local, Bit>,
    m_wait: DFF<Bits<4>>,
    arrived: DFF<Bits<BEAT>>,
    beat: [DFF<MergeBeat>; 12],
    taken: Signal<Local, MergeBeat>,
    bubble: Signal<Local, MergeBeat>,
    stage: Signal<Local, MergeBeat>,
    in_flight: Signal<Local, Bit>,
    m_row_tile: DFF<Bits<16>>,
    rows: [MergeRow; ROWS],
    m_word: Signal<Local, Bits<32>>,
    m_beat: Signal<Local, Bits<BEAT>>,
    sum_word: Signal<Local, Bits<32>>,
    sum_beat: Signal<Local, Bits<BEAT>>,
    round_ends: Signal<Local, Bit>,
}

impl<const ROWS: usize, const BEAT: usize> Default for MergeEngine<ROWS, BEAT> {
    fn default() -> Self {
        assert_eq!(BEAT, 32 * ROWS, "a beat is one fp32 a row");
        Self {
            clock: Default::default(),
            reset: Default::default(),
            clear: Default::default(),
            settings: Default::default(),
            pe_index: Default::default(),
            start: Default::default(),
            first_round: Default::default(),
            rounds: Default::default(),
            busy: Default::default(),
            progress: Default::default(),
            sent: Default::default(),
            round_done: Default::default(),
            first_column: Default::default(),
            end_column: Default::default(),
            state_read: Default::default(),
            state_read_select: Default::default(),
            state_read_row_tile: Default::default(),
            state_read_column: Default::default(),
            state_read_data: Default::default(),
            state_write: Default::default(),
            state_write_select: Default::default(),
            state_write_row_tile: Default::default(),
            state_write_column: Default::default(),
            state_write_data: Default::default(),
            link: Default::default(),
            reserve: Default::default(),
            may_reserve: Default::default(),
            push: Default::default(),
            push_data: Default::default(),
            head_valid: Default::default(),
            head: Default::default(),
            pop: Default::default(),
            word_place: Constant::new(bits(BEAT as u64 - 32)),
            running: Default::default(),
            entering: Default::default(),
            round: Default::default(),
            end_round: Default::default(),
            own_first: Default::default(),
            own_end: Default::default(),
            next_round: Default::default(),
            send_next: Default::default(),
            take_next: Default::default(),
            half: Default::default(),
            width: Default::default(),
            middle: Default::default(),
            upper: Default::default(),
            outside: Default::default(),
            keep_first: Default::default(),
            keep_end: Default::default(),
            give_first: Default::default(),
            give_end: Default::default(),
            send_tile: Default::default(),
            send_step: Default::default(),
            send_column: Default::default(),
            send_left: Default::default(),
            send_now: Default::default(),
            send_no_columns: Default::default(),
            send_ends: Default::default(),
            sending1: Default::default(),
            take_tile: Default::default(),
            take_step: Default::default(),
            take_column: Default::default(),
            take_left: Default::default(),
            take_allowed: Default::default(),
            take_now: Default::default(),
            take_no_columns: Default::default(),
            take_ends: Default::default(),
            m_wait: Default::default(),
            arrived: Default::default(),
            beat: Default::default(),
            taken: Default::default(),
            bubble: Default::default(),
            stage: Default::default(),
            in_flight: Default::default(),
            m_row_tile: Default::default(),
            rows: std::array::from_fn(|_| Default::default()),
            m_word: Default::default(),
            m_beat: Default::default(),
            sum_word: Default::default(),
            sum_beat: Default::default(),
            round_ends: Default::default(),
        }
    }
}

impl<const ROWS: usize, const BEAT: usize> Logic for MergeEngine<ROWS, BEAT> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            running,
            entering,
            round,
            end_round,
            own_first,
            own_end,
            keep_first,
            keep_end,
            give_first,
            give_end,
            send_tile,
            send_step,
            send_column,
            sending1,
            take_tile,
            take_step,
            take_column,
            m_wait,
            arrived,
            m_row_tile
        );
        self.link.next = self.round.q.val();
        self.next_round.next = self.round.q.val() + 1;
        self.send_next.next = self.send_column.q.val() + 1;
        self.take_next.next = self.take_column.q.val() + 1;
        // ---- the halves of this round
        self.width.next = self.own_end.q.val() - self.own_first.q.val();
        self.half.next = (self.width.val() + 1) >> 1;
        self.middle.next = self.own_first.q.val() + self.half.val();
        self.upper.next = self.pe_index.val().get_bit(self.round.q.val().index());
        self.outside.next = (self.pe_index.val() >> self.settings.val().rounds).any();
        // ---- sending: one read a cycle, when no received beat wants the port and a credit is left
        self.take_left.next = self.running.q.val() & (self.take_tile.q.val() != self.settings.val().row_tiles);
        self.take_allowed.next = (self.take_step.q.val().any() | (self.take_tile.q.val() < self.send_tile.q.val()))
            | ((self.take_tile.q.val() == self.send_tile.q.val()) & self.send_step.q.val().get_bit(1));
        self.take_now.next = (self.take_left.val() & self.head_valid.val()) & (self.take_allowed.val() & !self.m_wait.q.val().any());
        self.send_left.next = self.running.q.val() & (self.send_tile.q.val() != self.settings.val().row_tiles);
        self.send_now.next = (self.send_left.val() & self.may_reserve.val()) & !self.take_now.val();
        self.send_no_columns.next = self.give_first.q.val() == self.give_end.q.val();
        self.send_ends.next = ((self.send_step.q.val() == 1) & self.send_no_columns.val())
            | (self.send_step.q.val().get_bit(1) & (self.send_next.val() == self.give_end.q.val()));
        self.reserve.next = self.send_now.val();
        self.sending1.d.next = self.send_now.val();
        self.push.next = self.sending1.q.val();
        self.push_data.next = self.state_read_data.val();
        self.sent.next = self.sending1.q.val();
        if self.send_now.val() {
            if self.send_ends.val() {
                self.send_tile.d.next = self.send_tile.q.val() + 1;
                self.send_step.d.next = 0.into();
                self.send_column.d.next = self.give_first.q.val();
            } else if self.send_step.q.val().get_bit(1) {
                self.send_column.d.next = self.send_next.val();
            } else {
                self.send_step.d.next = self.send_step.q.val() + 1;
            }
        }
        // ---- receiving: pop, read the own element, add
        self.take_no_columns.next = self.keep_first.q.val() == self.keep_end.q.val();
        self.take_ends.next = ((self.take_step.q.val() == 1) & self.take_no_columns.val())
            | (self.take_step.q.val().get_bit(1) & (self.take_next.val() == self.keep_end.q.val()));
        self.pop.next = self.take_now.val();
        self.arrived.d.next = self.head.val();
        self.taken.next.valid = self.take_now.val();
        self.taken.next.select = 0.into();
        if self.take_step.q.val() == 0 {
            self.taken.next.select = 2.into();
        }
        if self.take_step.q.val() == 1 {
            self.taken.next.select = 1.into();
        }
        self.taken.next.row_tile = self.take_tile.q.val();
        self.taken.next.column = self.take_column.q.val();
        if self.m_wait.q.val().any() {
            self.m_wait.d.next = self.m_wait.q.val() - 1;
        }
        if self.take_now.val() {
            if self.take_ends.val() {
                self.take_tile.d.next = self.take_tile.q.val() + 1;
                self.take_step.d.next = 0.into();
                self.take_column.d.next = self.keep_first.q.val();
            } else if self.take_step.q.val().get_bit(1) {
                self.take_column.d.next = self.take_next.val();
            } else {
                self.take_step.d.next = self.take_step.q.val() + 1;
            }
            if self.take_step.q.val() == 0 {
                self.m_wait.d.next = 10.into();
            }
        }
        self.progress.next = self.take_now.val() | self.send_now.val();
        // ---- one read port
        self.state_read.next = self.take_now.val() | self.send_now.val();
        self.state_read_select.next = self.taken.val().select;
        self.state_read_row_tile.next = self.take_tile.q.val();
        self.state_read_column.next = self.take_column.q.val();
        if !self.take_now.val() {
            self.state_read_select.next = 0.into();
            if self.send_step.q.val() == 0 {
                self.state_read_select.next = 2.into();
            }
            if self.send_step.q.val() == 1 {
                self.state_read_select.next = 1.into();
            }
            self.state_read_row_tile.next = self.send_tile.q.val();
            self.state_read_column.next = self.send_column.q.val();
        }
        // ---- the adders: beat[0] is the cycle of the read data
        self.beat[0].clock.next = self.clock.val();
        self.beat[0].d.next = self.taken.val();
        self.in_flight.next = false;
        for i in 1..12 {
            self.beat[i].clock.next = self.clock.val();
            self.beat[i].d.next = self.beat[i - 1].q.val();
        }
        for i in 0..12 {
            self.stage.next = self.beat[i].q.val();
            self.in_flight.next = self.in_flight.val() | self.stage.val().valid;
        }
        self.m_beat.next = 0.into();
        self.sum_beat.next = 0.into();
        for i in 0..ROWS {
            self.rows[i].clock.next = self.clock.val();
            self.rows[i].own.next = self.state_read_data.val().get_bits::<32>(i * 32);
            self.rows[i].other.next = self.arrived.q.val().get_bits::<32>(i * 32);
            self.rows[i].take_m.next = self.beat[0].q.val().valid & (self.beat[0].q.val().select == 2);
            self.rows[i].is_l.next = self.beat[0].q.val().valid & (self.beat[0].q.val().select == 1);
            self.rows[i].own_difference.next = self.beat[1].q.val().valid & (self.beat[1].q.val().select == 2);
            self.rows[i].other_difference.next = self.beat[2].q.val().valid & (self.beat[2].q.val().select == 2);
            self.rows[i].take_own_shift.next = self.beat[9].q.val().valid & (self.beat[9].q.val().select == 2);
            self.rows[i].take_other_shift.next = self.beat[10].q.val().valid & (self.beat[10].q.val().select == 2);
            self.m_word.next = self.rows[i].m.val();
            self.m_beat.next = (self.m_beat.val() >> 32) | (bit_cast::<BEAT, 32>(self.m_word.val()) << self.word_place.val());
            self.sum_word.next = self.rows[i].sum.val();
            self.sum_beat.next = (self.sum_beat.val() >> 32) | (bit_cast::<BEAT, 32>(self.sum_word.val()) << self.word_place.val());
        }
        // Maxima are written when everything before them has landed (stage 11), sums after the adder (stage 7).
        self.state_write.next = false;
        self.state_write_select.next = self.beat[7].q.val().select;
        self.state_write_row_tile.next = self.beat[7].q.val().row_tile;
        self.state_write_column.next = self.beat[7].q.val().column;
        self.state_write_data.next = self.sum_beat.val();
        if self.beat[7].q.val().valid & (self.beat[7].q.val().select != 2) {
            self.state_write.next = true;
        }
        if self.beat[11].q.val().valid & (self.beat[11].q.val().select == 2) {
            self.state_write.next = true;
            self.state_write_select.next = 2.into();
            self.state_write_row_tile.next = self.beat[11].q.val().row_tile;
            self.state_write_data.next = self.m_beat.val();
        }
        // ---- rounds
        self.round_ends.next =
            (self.running.q.val() & !self.in_flight.val()) & ((!self.take_left.val() & !self.send_left.val()) & !self.sending1.q.val());
        self.round_done.next = self.round_ends.val();
        if self.entering.q.val() {
            // The halves are known: start the round.
            self.entering.d.next = false;
            self.running.d.next = true;
            self.send_tile.d.next = 0.into();
            self.send_step.d.next = 0.into();
            self.take_tile.d.next = 0.into();
            self.take_step.d.next = 0.into();
            if self.upper.val() {
                self.keep_first.d.next = self.middle.val();
                self.keep_end.d.next = self.own_end.q.val();
                self.take_column.d.next = self.middle.val();
                self.give_first.d.next = self.own_first.q.val();
                self.give_end.d.next = self.middle.val();
                self.send_column.d.next = self.own_first.q.val();
            } else {
                self.keep_first.d.next = self.own_first.q.val();
                self.keep_end.d.next = self.middle.val();
                self.take_column.d.next = self.own_first.q.val();
                self.give_first.d.next = self.middle.val();
                self.give_end.d.next = self.own_end.q.val();
                self.send_column.d.next = self.middle.val();
            }
        }
        if self.round_ends.val() {
            self.running.d.next = false;
            self.own_first.d.next = self.keep_first.q.val();
            self.own_end.d.next = self.keep_end.q.val();
            self.round.d.next = self.next_round.val();
            if self.next_round.val() != self.end_round.q.val() {
                self.entering.d.next = true;
            }
        }
        if self.start.val() & !self.outside.val() {
            self.entering.d.next = true;
            self.round.d.next = self.first_round.val();
            self.end_round.d.next = self.first_round.val() + self.rounds.val();
        }
        self.busy.next = self.running.q.val() | self.entering.q.val();
        self.first_column.next = self.own_first.q.val();
        self.end_column.next = self.own_end.q.val();
        if self.outside.val() {
            self.end_column.next = self.own_first.q.val();
        }
        if self.clear.val() {
            self.own_first.d.next = 0.into();
            self.own_end.d.next = self.settings.val().head_dim;
        }
        // What is in flight at a reset must not land in the next launch.
        self.bubble.next = self.taken.val();
        self.bubble.next.valid = false;
        for i in 0..12 {
            if self.reset.val() {
                self.beat[i].d.next = self.bubble.val();
            }
        }
        if self.reset.val() {
            self.running.d.next = false;
            self.entering.d.next = false;
            self.m_wait.d.next = 0.into();
            self.sending1.d.next = false;
        }
    }
}
