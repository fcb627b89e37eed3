//! Merge row: one row of the merge unit. New maximum, shifts and scaled sums; ROWS of them, identical.
//!
//! ```text
//!  m:       0 own, other | 1 maximum, its difference to own | 2 to other; m is out | 8, 9 shift counts | 10 shifts kept
//!  l, O:    0 own, other, shifts read | 7 sum is out
//! ```
//!
//! Latency as above, counted from the cycle in which `own` and `other` are there; a pair of maxima every second cycle, a sum every cycle, a sum not in the two
//! cycles after a pair of maxima. The shifts of 2^[`GROUP_BITS`] row tiles are kept, and may be asked for 12 cycles after `ask` of their maxima.
//!
//! The empty state (m = -inf, l = 0) is the identity, bits untouched: its l and O enter the adder as -0.

use rust_hdl::prelude::*;

use super::merge_walk::GROUP_BITS;
use crate::number::{Max32, ScaledAdd32, ShiftCount};

/// Cycles from asking for a pair of maxima until their row tile's sum may be asked for.
pub const SHIFTS_KNOWN: u64 = 12;

#[derive(LogicBlock, Default)]
pub struct MergeRow {
    pub clock: Signal<In, Clock>,
    /// Row tile of the beat of the next cycle.
    pub ask: Signal<In, Bits<GROUP_BITS>>,
    pub own: Signal<In, Bits<32>>,
    pub other: Signal<In, Bits<32>>,
    /// Cycle 0: `own` and `other` are maxima.
    pub is_m: Signal<In, Bit>,
    /// Cycle 0: they are sums l: whether a state is empty is known now.
    pub is_l: Signal<In, Bit>,
    /// Row tile of that l.
    pub l_row_tile: Signal<In, Bits<GROUP_BITS>>,
    /// Cycles 1 and 2 of maxima: their differences to the own and to the other one.
    pub own_difference: Signal<In, Bit>,
    pub other_difference: Signal<In, Bit>,
    /// Cycles 9 and 10 of maxima: shift counts.
    pub take_own_shift: Signal<In, Bit>,
    pub take_other_shift: Signal<In, Bit>,
    pub shift_row_tile: Signal<In, Bits<GROUP_BITS>>,
    pub m: Signal<Out, Bits<32>>,
    pub sum: Signal<Out, Bits<32>>,
    maximum: Max32,
    own_m: DFF<Bits<32>>,
    other_m: DFF<Bits<32>>,
    held_m: DFF<Bits<32>>,
    held_now: Signal<Local, Bits<32>>,
    own_lowest: Signal<Local, Bit>,
    other_lowest: Signal<Local, Bit>,
    lowest: Signal<Local, Bits<20>>,
    /// Whether own (bit 0) and other (bit 1) maxima are -inf, of the last 10 cycles.
    lowest_history: DFF<Bits<20>>,
    own_shift: DFF<Bits<9>>,
    /// {-inf of other, of own, other shift, own shift}
    shifts: RAM<Bits<20>, GROUP_BITS>,
    shift_word: Signal<Local, Bits<20>>,
    /// {other, own} state is empty
    empties: RAM<Bits<2>, GROUP_BITS>,
    own_empty: Signal<Local, Bit>,
    other_empty: Signal<Local, Bit>,
    empty_word: Signal<Local, Bits<2>>,
    add: ScaledAdd32,
    count: ShiftCount,
}

impl Logic for MergeRow {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, own_m, other_m, held_m, lowest_history, own_shift);
        // ---- maxima
        self.maximum.clock.next = self.clock.val();
        self.maximum.a.next = self.own.val();
        self.maximum.b.next = self.other.val();
        if self.is_m.val() {
            self.own_m.d.next = self.own.val();
            self.other_m.d.next = self.other.val();
        }
        self.own_lowest.next = self.own.val() == 0xFF80_0000_u64;
        self.other_lowest.next = self.other.val() == 0xFF80_0000_u64;
        self.lowest.next = self.lowest_history.q.val() << 2;
        if self.own_lowest.val() {
            self.lowest.next = self.lowest.val() | 1;
        }
        if self.other_lowest.val() {
            self.lowest.next = self.lowest.val() | 2;
        }
        self.lowest_history.d.next = self.lowest.val();
        self.held_now.next = self.held_m.q.val();
        if self.own_difference.val() {
            self.held_now.next = self.maximum.result.val();
            self.held_m.d.next = self.maximum.result.val();
        }
        self.m.next = self.held_m.q.val();
        // ---- shifts, kept by row tile
        self.count.clock.next = self.clock.val();
        self.count.difference.next = self.add.result.val();
        if self.take_own_shift.val() {
            self.own_shift.d.next = self.count.count.val();
        }
        self.shifts.read_clock.next = self.clock.val();
        self.shifts.write_clock.next = self.clock.val();
        self.shifts.read_address.next = self.ask.val();
        self.shifts.write_address.next = self.shift_row_tile.val();
        self.shifts.write_enable.next = self.take_other_shift.val();
        self.shifts.write_data.next = (bit_cast::<20, 2>(self.lowest_history.q.val().get_bits::<2>(18)) << 18)
            | ((bit_cast::<20, 9>(self.count.count.val()) << 9) | bit_cast::<20, 9>(self.own_shift.q.val()));
        self.shift_word.next = self.shifts.read_data.val();
        // ---- empty states
        self.own_empty.next = self.empties.read_data.val().get_bit(0);
        self.other_empty.next = self.empties.read_data.val().get_bit(1);
        if self.is_l.val() {
            self.own_empty.next = self.shift_word.val().get_bit(18) & !self.own.val().any();
            self.other_empty.next = self.shift_word.val().get_bit(19) & !self.other.val().any();
        }
        self.empty_word.next = 0.into();
        if self.own_empty.val() {
            self.empty_word.next = self.empty_word.val() | 1;
        }
        if self.other_empty.val() {
            self.empty_word.next = self.empty_word.val() | 2;
        }
        self.empties.read_clock.next = self.clock.val();
        self.empties.write_clock.next = self.clock.val();
        self.empties.read_address.next = self.ask.val();
        self.empties.write_address.next = self.l_row_tile.val();
        self.empties.write_enable.next = self.is_l.val();
        self.empties.write_data.next = self.empty_word.val();
        // ---- sums and differences
        self.add.clock.next = self.clock.val();
        self.add.a.next = self.own.val();
        self.add.ka.next = self.shift_word.val().get_bits::<9>(0);
        self.add.b.next = self.other.val();
        self.add.kb.next = self.shift_word.val().get_bits::<9>(9);
        if self.other_empty.val() {
            self.add.b.next = 0x8000_0000_u64.into();
            self.add.kb.next = 0.into();
        } else if self.own_empty.val() {
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
    }
}
