//! Merge engine: combines this PE's row states with its partners', one round after the other.
//!
//! ```text
//!  row state --read B--> send m, l, the columns that the partner keeps --> IPCQ
//!  IPCQ --m, l, the columns that this PE keeps--> ROWS merge rows <--read A-- row state
//!                                                      \--write--> row state
//!
//!  idle --start--> round --(all row tiles sent and received, writes landed)--> round ... --> idle
//! ```
//!
//! In round i the PE exchanges with `index xor 2^i` over link i; of the columns that it still owns it keeps the first, larger half if its bit i is 0, the
//! other one otherwise. A beat holds ROWS fp32. Both directions follow [`MergeWalk`].
//!
//! A merge may begin before the last page is accumulated: row tiles below `final_tiles` are, and only they are touched, in cycles that the GEMM and MATH engines
//! leave to it (`maxima_free`, `sums_free`, `columns_free`).
//!
//! Throughput: one beat a cycle in either direction, two cycles a pair of maxima, so about 4 cycles and the columns that the PE keeps a row tile and round; about
//! 30 cycles more a round, and [`SHIFTS_KNOWN`] a group of row tiles. Sends give way where both directions want the same memory. A PE with index >= 2^rounds takes
//! no part.

use rust_hdl::prelude::*;

use super::decoder::Settings;
use super::merge_row::{MergeRow, SHIFTS_KNOWN};
use super::merge_walk::MergeWalk;
use super::state_port::StateRead;

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
    /// Row tiles whose states are final.
    pub final_tiles: Signal<In, Bits<16>>,
    /// m may be read in this cycle and written three cycles later.
    pub maxima_free: Signal<In, Bit>,
    /// l and O may be read in this cycle.
    pub columns_free: Signal<In, Bit>,
    /// They may be written eight cycles later.
    pub sums_free: Signal<In, Bit>,
    pub busy: Signal<Out, Bit>,
    /// A beat was sent or taken in this cycle.
    pub progress: Signal<Out, Bit>,
    pub sent: Signal<Out, Bit>,
    pub round_done: Signal<Out, Bit>,
    /// Columns that the PE owns.
    pub first_column: Signal<Out, Bits<8>>,
    pub end_column: Signal<Out, Bits<8>>,
    // row state, own
    pub read_a: Signal<Out, StateRead>,
    pub read_a_data: Signal<In, Bits<BEAT>>,
    // row state, for the partner
    pub read_b: Signal<Out, StateRead>,
    pub read_b_data: Signal<In, Bits<BEAT>>,
    /// l or O, by `state_write_select`.
    pub state_write: Signal<Out, Bit>,
    pub state_write_select: Signal<Out, Bits<2>>,
    pub state_write_row_tile: Signal<Out, Bits<16>>,
    pub state_write_column: Signal<Out, Bits<8>>,
    pub state_write_data: Signal<Out, Bits<BEAT>>,
    pub maxima_write: Signal<Out, Bit>,
    pub maxima_write_row_tile: Signal<Out, Bits<16>>,
    pub maxima_write_data: Signal<Out, Bits<BEAT>>,
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
    shifts_known: Constant<Bits<4>>,
    // rounds
    running: DFF<Bit>,
    entering: DFF<Bit>,
    beginning: DFF<Bit>,
    round: DFF<Bits<4>>,
    end_round: DFF<Bits<4>>,
    own_first: DFF<Bits<8>>,
    own_end: DFF<Bits<8>>,
    next_round: Signal<Local, Bits<4>>,
    half: Signal<Local, Bits<8>>,
    width: Signal<Local, Bits<8>>,
    middle: Signal<Local, Bits<8>>,
    upper: Signal<Local, Bit>,
    outside: Signal<Local, Bit>,
    keep_first: DFF<Bits<8>>,
    keep_end: DFF<Bits<8>>,
    give_first: DFF<Bits<8>>,
    give_end: DFF<Bits<8>>,
    // sending
    send: MergeWalk,
    send_left: Signal<Local, Bit>,
    send_maxima: Signal<Local, Bit>,
    send_allowed: Signal<Local, Bit>,
    send_now: Signal<Local, Bit>,
    same_memory: Signal<Local, Bit>,
    sending1: DFF<Bit>,
    // receiving
    take: MergeWalk,
    take_left: Signal<Local, Bit>,
    sent_before: Signal<Local, Bit>,
    take_allowed: Signal<Local, Bit>,
    take_now: Signal<Local, Bit>,
    /// Cycles until the shifts of the last maxima taken are known.
    maxima_wait: DFF<Bits<4>>,
    sum_taken: DFF<Bit>,
    arrived: DFF<Bits<BEAT>>,
    beat: [DFF<MergeBeat>; 11],
    taken: Signal<Local, MergeBeat>,
    bubble: Signal<Local, MergeBeat>,
    stage: Signal<Local, MergeBeat>,
    in_flight: Signal<Local, Bit>,
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
            final_tiles: Default::default(),
            maxima_free: Default::default(),
            columns_free: Default::default(),
            sums_free: Default::default(),
            busy: Default::default(),
            progress: Default::default(),
            sent: Default::default(),
            round_done: Default::default(),
            first_column: Default::default(),
            end_column: Default::default(),
            read_a: Default::default(),
            read_a_data: Default::default(),
            read_b: Default::default(),
            read_b_data: Default::default(),
            state_write: Default::default(),
            state_write_select: Default::default(),
            state_write_row_tile: Default::default(),
            state_write_column: Default::default(),
            state_write_data: Default::default(),
            maxima_write: Default::default(),
            maxima_write_row_tile: Default::default(),
            maxima_write_data: Default::default(),
            link: Default::default(),
            reserve: Default::default(),
            may_reserve: Default::default(),
            push: Default::default(),
            push_data: Default::default(),
            head_valid: Default::default(),
            head: Default::default(),
            pop: Default::default(),
            word_place: Constant::new(bits(BEAT as u64 - 32)),
            shifts_known: Constant::new(bits(SHIFTS_KNOWN - 1)),
            running: Default::default(),
            entering: Default::default(),
            beginning: Default::default(),
            round: Default::default(),
            end_round: Default::default(),
            own_first: Default::default(),
            own_end: Default::default(),
            next_round: Default::default(),
            half: Default::default(),
            width: Default::default(),
            middle: Default::default(),
            upper: Default::default(),
            outside: Default::default(),
            keep_first: Default::default(),
            keep_end: Default::default(),
            give_first: Default::default(),
            give_end: Default::default(),
            send: Default::default(),
            send_left: Default::default(),
            send_maxima: Default::default(),
            send_allowed: Default::default(),
            send_now: Default::default(),
            same_memory: Default::default(),
            sending1: Default::default(),
            take: Default::default(),
            take_left: Default::default(),
            sent_before: Default::default(),
            take_allowed: Default::default(),
            take_now: Default::default(),
            maxima_wait: Default::default(),
            sum_taken: Default::default(),
            arrived: Default::default(),
            beat: Default::default(),
            taken: Default::default(),
            bubble: Default::default(),
            stage: Default::default(),
            in_flight: Default::default(),
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
            beginning,
            round,
            end_round,
            own_first,
            own_end,
            keep_first,
            keep_end,
            give_first,
            give_end,
            sending1,
            maxima_wait,
            sum_taken,
            arrived
        );
        self.link.next = self.round.q.val();
        self.next_round.next = self.round.q.val() + 1;
        // ---- the halves of this round
        self.width.next = self.own_end.q.val() - self.own_first.q.val();
        self.half.next = (self.width.val() + 1) >> 1;
        self.middle.next = self.own_first.q.val() + self.half.val();
        self.upper.next = self.pe_index.val().get_bit(self.round.q.val().index());
        self.outside.next = (self.pe_index.val() >> self.settings.val().rounds).any();
        self.send.clock.next = self.clock.val();
        self.send.begin.next = self.beginning.q.val();
        self.send.row_tiles.next = self.settings.val().row_tiles;
        self.send.first_column.next = self.give_first.q.val();
        self.send.end_column.next = self.give_end.q.val();
        self.take.clock.next = self.clock.val();
        self.take.begin.next = self.beginning.q.val();
        self.take.row_tiles.next = self.settings.val().row_tiles;
        self.take.first_column.next = self.keep_first.q.val();
        self.take.end_column.next = self.keep_end.q.val();
        // ---- receiving: pop, read the own element, add. What the partner must get unmerged has been read before.
        self.take_left.next = self.running.q.val() & !self.take.phase.val().all();
        self.sent_before.next = (self.send.phase.val().all() | (self.take.group.val() < self.send.group.val()))
            | ((self.take.group.val() == self.send.group.val())
                & ((self.take.phase.val() < self.send.phase.val())
                    | ((self.take.phase.val() == self.send.phase.val()) & (self.take.row_tile.val() < self.send.row_tile.val()))));
        self.take_allowed.next = (self.columns_free.val() & self.sums_free.val()) & !self.sum_taken.q.val();
        if self.take.phase.val() == 0 {
            self.take_allowed.next = ((self.take.row_tile.val() < self.final_tiles.val()) & self.maxima_free.val())
                & (self.sent_before.val() & (self.maxima_wait.q.val() != self.shifts_known.val()));
        }
        if self.take.phase.val() == 1 {
            self.take_allowed.next =
                (self.columns_free.val() & self.sums_free.val()) & (self.sent_before.val() & !self.maxima_wait.q.val().any());
        }
        self.take_now.next = (self.take_left.val() & self.head_valid.val()) & self.take_allowed.val();
        self.take.step.next = self.take_now.val();
        self.pop.next = self.take_now.val();
        self.arrived.d.next = self.head.val();
        self.taken.next.valid = self.take_now.val();
        self.taken.next.select = 0.into();
        if self.take.phase.val() == 0 {
            self.taken.next.select = 2.into();
        }
        if self.take.phase.val() == 1 {
            self.taken.next.select = 1.into();
        }
        self.taken.next.row_tile = self.take.row_tile.val();
        self.taken.next.column = self.take.column.val();
        if self.maxima_wait.q.val().any() {
            self.maxima_wait.d.next = self.maxima_wait.q.val() - 1;
        }
        if self.take_now.val() & (self.take.phase.val() == 0) {
            self.maxima_wait.d.next = self.shifts_known.val();
        }
        // Whether a state is empty is known a cycle after its l was taken.
        self.sum_taken.d.next = self.take_now.val() & (self.take.phase.val() == 1);
        self.read_a.next.valid = self.take_now.val();
        self.read_a.next.select = self.taken.val().select;
        self.read_a.next.row_tile = self.take.row_tile.val();
        self.read_a.next.column = self.take.column.val();
        // ---- sending: one read a cycle, when the other direction leaves the memory and a credit is left
        self.send_left.next = self.running.q.val() & !self.send.phase.val().all();
        self.send_maxima.next = self.send.phase.val() == 0;
        self.same_memory.next = (self.take.phase.val() == self.send.phase.val())
            & (!self.send.phase.val().get_bit(1) | (self.take.column.val().get_bit(0) == self.send.column.val().get_bit(0)));
        self.send_allowed.next = self.columns_free.val();
        if self.send_maxima.val() {
            self.send_allowed.next = (self.send.row_tile.val() < self.final_tiles.val()) & self.maxima_free.val();
        }
        self.send_now.next =
            ((self.send_left.val() & self.may_reserve.val()) & self.send_allowed.val()) & !(self.take_now.val() & self.same_memory.val());
        self.send.step.next = self.send_now.val();
        self.reserve.next = self.send_now.val();
        self.sending1.d.next = self.send_now.val();
        self.push.next = self.sending1.q.val();
        self.push_data.next = self.read_b_data.val();
        self.sent.next = self.sending1.q.val();
        self.read_b.next.valid = self.send_now.val();
        self.read_b.next.select = 0.into();
        if self.send_maxima.val() {
            self.read_b.next.select = 2.into();
        }
        if self.send.phase.val() == 1 {
            self.read_b.next.select = 1.into();
        }
        self.read_b.next.row_tile = self.send.row_tile.val();
        self.read_b.next.column = self.send.column.val();
        self.progress.next = self.take_now.val() | self.send_now.val();
        // ---- the adders: beat[0] is the cycle of the read data
        self.beat[0].clock.next = self.clock.val();
        self.beat[0].d.next = self.taken.val();
        for i in 1..11 {
            self.beat[i].clock.next = self.clock.val();
            self.beat[i].d.next = self.beat[i - 1].q.val();
        }
        self.in_flight.next = false;
        for i in 0..8 {
            self.stage.next = self.beat[i].q.val();
            self.in_flight.next = self.in_flight.val() | self.stage.val().valid;
        }
        self.m_beat.next = 0.into();
        self.sum_beat.next = 0.into();
        for i in 0..ROWS {
            self.rows[i].clock.next = self.clock.val();
            self.rows[i].ask.next = self.take.row_tile.val().get_bits::<3>(0);
            self.rows[i].own.next = self.read_a_data.val().get_bits::<32>(i * 32);
            self.rows[i].other.next = self.arrived.q.val().get_bits::<32>(i * 32);
            self.rows[i].is_m.next = self.beat[0].q.val().valid & (self.beat[0].q.val().select == 2);
            self.rows[i].is_l.next = self.beat[0].q.val().valid & (self.beat[0].q.val().select == 1);
            self.rows[i].l_row_tile.next = self.beat[0].q.val().row_tile.get_bits::<3>(0);
            self.rows[i].own_difference.next = self.beat[1].q.val().valid & (self.beat[1].q.val().select == 2);
            self.rows[i].other_difference.next = self.beat[2].q.val().valid & (self.beat[2].q.val().select == 2);
            self.rows[i].take_own_shift.next = self.beat[9].q.val().valid & (self.beat[9].q.val().select == 2);
            self.rows[i].take_other_shift.next = self.beat[10].q.val().valid & (self.beat[10].q.val().select == 2);
            self.rows[i].shift_row_tile.next = self.beat[10].q.val().row_tile.get_bits::<3>(0);
            self.m_word.next = self.rows[i].m.val();
            self.m_beat.next = (self.m_beat.val() >> 32) | (bit_cast::<BEAT, 32>(self.m_word.val()) << self.word_place.val());
            self.sum_word.next = self.rows[i].sum.val();
            self.sum_beat.next = (self.sum_beat.val() >> 32) | (bit_cast::<BEAT, 32>(self.sum_word.val()) << self.word_place.val());
        }
        // Maxima are written in stage 2, sums after the adder (stage 7).
        self.maxima_write.next = self.beat[2].q.val().valid & (self.beat[2].q.val().select == 2);
        self.maxima_write_row_tile.next = self.beat[2].q.val().row_tile;
        self.maxima_write_data.next = self.m_beat.val();
        self.state_write.next = self.beat[7].q.val().valid & (self.beat[7].q.val().select != 2);
        self.state_write_select.next = self.beat[7].q.val().select;
        self.state_write_row_tile.next = self.beat[7].q.val().row_tile;
        self.state_write_column.next = self.beat[7].q.val().column;
        self.state_write_data.next = self.sum_beat.val();
        // ---- rounds: the halves are known (entering), the walks begin (beginning), beats move (running)
        self.round_ends.next =
            (self.running.q.val() & !self.in_flight.val()) & ((!self.take_left.val() & !self.send_left.val()) & !self.sending1.q.val());
        self.round_done.next = self.round_ends.val();
        self.beginning.d.next = self.entering.q.val();
        if self.beginning.q.val() {
            self.running.d.next = true;
        }
        if self.entering.q.val() {
            self.entering.d.next = false;
            if self.upper.val() {
                self.keep_first.d.next = self.middle.val();
                self.keep_end.d.next = self.own_end.q.val();
                self.give_first.d.next = self.own_first.q.val();
                self.give_end.d.next = self.middle.val();
            } else {
                self.keep_first.d.next = self.own_first.q.val();
                self.keep_end.d.next = self.middle.val();
                self.give_first.d.next = self.middle.val();
                self.give_end.d.next = self.own_end.q.val();
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
        self.busy.next = self.running.q.val() | (self.entering.q.val() | self.beginning.q.val());
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
        for i in 0..11 {
            if self.reset.val() {
                self.beat[i].d.next = self.bubble.val();
            }
        }
        if self.reset.val() {
            self.running.d.next = false;
            self.entering.d.next = false;
            self.beginning.d.next = false;
            self.maxima_wait.d.next = 0.into();
            self.sum_taken.d.next = false;
            self.sending1.d.next = false;
        }
    }
}
