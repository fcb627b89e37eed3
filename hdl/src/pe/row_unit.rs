//! Row unit: one row of a row tile. ROWS of them, identical, make a PE's GEMM array.
//!
//! ```text
//!              cycle 0 addresses          cycle 1 operands             cycle 9 result
//!  Q RAM ------------\                 +------------+
//!  P RAM -------------+---- a -------->|            |
//!  b (tile memory) ------------------->| DotProduct |--> score RAM 0/1, O RAM, l RAM
//!  score RAM 0/1, O RAM, l RAM - acc ->|            |
//!  shift, first ---------------------->+------------+
//! ```
//!
//! Latency: addresses in cycle 0, result written at the end of cycle 9, one issue a cycle; the same accumulator may be issued again after 10 cycles.
//!
//! O lies in two banks, even and odd columns, so that a merge can read one column for its partner and another one for itself in one cycle.
//!
//! `O_BITS` = log2 of row tiles x 64 columns (a bank), `TILE_BITS` = log2 of row tiles.

use rust_hdl::prelude::*;

use crate::number::DotProduct;

#[derive(LogicBlock)]
pub struct RowUnit<const TILE_BITS: usize, const O_BITS: usize> {
    pub clock: Signal<In, Clock>,
    // Q tile: {buffer, block}
    pub q_write: Signal<In, Bit>,
    pub q_write_address: Signal<In, Bits<5>>,
    pub q_write_data: Signal<In, Bits<152>>,
    // P: {buffer, half}; lane enables in the top 8 bits
    pub p_write: Signal<In, Bit>,
    pub p_write_address: Signal<In, Bits<2>>,
    pub p_write_data: Signal<In, Bits<160>>,
    pub shift_write: Signal<In, Bit>,
    pub shift_write_buffer: Signal<In, Bit>,
    pub shift_write_value: Signal<In, Bits<9>>,
    // cycle 0
    pub q_address: Signal<In, Bits<5>>,
    pub p_address: Signal<In, Bits<2>>,
    pub score0_address: Signal<In, Bits<4>>,
    pub score1_address: Signal<In, Bits<4>>,
    /// {row tile, column / 2} in the banks of even and of odd columns.
    pub o_even_address: Signal<In, Bits<O_BITS>>,
    pub o_odd_address: Signal<In, Bits<O_BITS>>,
    pub l_address: Signal<In, Bits<TILE_BITS>>,
    pub m_address: Signal<In, Bits<TILE_BITS>>,
    // cycle 1
    pub pv: Signal<In, Bit>,
    /// The column of ones: the accumulator is l.
    pub sum: Signal<In, Bit>,
    /// Score buffer (Q·Kᵀ) or P buffer (P·V).
    pub buffer: Signal<In, Bit>,
    pub first: Signal<In, Bit>,
    /// The accumulator is an odd column.
    pub odd: Signal<In, Bit>,
    /// Use the row's shift of this P buffer.
    pub rescale: Signal<In, Bit>,
    pub b: Signal<In, Bits<152>>,
    // cycle 9, or a state write
    pub score0_write: Signal<In, Bit>,
    pub score1_write: Signal<In, Bit>,
    pub score_write_address: Signal<In, Bits<4>>,
    pub o_even_write: Signal<In, Bit>,
    pub o_odd_write: Signal<In, Bit>,
    pub o_write_address: Signal<In, Bits<O_BITS>>,
    pub l_write: Signal<In, Bit>,
    pub l_write_address: Signal<In, Bits<TILE_BITS>>,
    pub m_write: Signal<In, Bit>,
    pub m_write_address: Signal<In, Bits<TILE_BITS>>,
    pub m_write_data: Signal<In, Bits<32>>,
    /// O and l take `state_data` instead of the dot product.
    pub state_write: Signal<In, Bit>,
    pub state_data: Signal<In, Bits<32>>,
    // one cycle after the addresses
    pub score0: Signal<Out, Bits<32>>,
    pub score1: Signal<Out, Bits<32>>,
    pub o_even: Signal<Out, Bits<32>>,
    pub o_odd: Signal<Out, Bits<32>>,
    pub l: Signal<Out, Bits<32>>,
    pub m: Signal<Out, Bits<32>>,
    q_ram: RAM<Bits<152>, 5>,
    p_ram: RAM<Bits<160>, 2>,
    score0_ram: RAM<Bits<32>, 4>,
    score1_ram: RAM<Bits<32>, 4>,
    o_even_ram: RAM<Bits<32>, O_BITS>,
    o_odd_ram: RAM<Bits<32>, O_BITS>,
    l_ram: RAM<Bits<32>, TILE_BITS>,
    m_ram: RAM<Bits<32>, TILE_BITS>,
    shift0: DFF<Bits<9>>,
    shift1: DFF<Bits<9>>,
    dot: DotProduct,
    write_data: Signal<Local, Bits<32>>,
}

impl<const TILE_BITS: usize, const O_BITS: usize> Default for RowUnit<TILE_BITS, O_BITS> {
    fn default() -> Self {
        assert_eq!(O_BITS, TILE_BITS + 6, "a bank holds 64 columns a row tile");
        Self {
            clock: Default::default(),
            q_write: Default::default(),
            q_write_address: Default::default(),
            q_write_data: Default::default(),
            p_write: Default::default(),
            p_write_address: Default::default(),
            p_write_data: Default::default(),
            shift_write: Default::default(),
            shift_write_buffer: Default::default(),
            shift_write_value: Default::default(),
            q_address: Default::default(),
            p_address: Default::default(),
            score0_address: Default::default(),
            score1_address: Default::default(),
            o_even_address: Default::default(),
            o_odd_address: Default::default(),
            l_address: Default::default(),
            m_address: Default::default(),
            pv: Default::default(),
            sum: Default::default(),
            buffer: Default::default(),
            first: Default::default(),
            odd: Default::default(),
            rescale: Default::default(),
            b: Default::default(),
            score0_write: Default::default(),
            score1_write: Default::default(),
            score_write_address: Default::default(),
            o_even_write: Default::default(),
            o_odd_write: Default::default(),
            o_write_address: Default::default(),
            l_write: Default::default(),
            l_write_address: Default::default(),
            m_write: Default::default(),
            m_write_address: Default::default(),
            m_write_data: Default::default(),
            state_write: Default::default(),
            state_data: Default::default(),
            score0: Default::default(),
            score1: Default::default(),
            o_even: Default::default(),
            o_odd: Default::default(),
            l: Default::default(),
            m: Default::default(),
            q_ram: Default::default(),
            p_ram: Default::default(),
            score0_ram: Default::default(),
            score1_ram: Default::default(),
            o_even_ram: Default::default(),
            o_odd_ram: Default::default(),
            l_ram: Default::default(),
            m_ram: Default::default(),
            shift0: Default::default(),
            shift1: Default::default(),
            dot: Default::default(),
            write_data: Default::default(),
        }
    }
}

impl<const TILE_BITS: usize, const O_BITS: usize> RowUnit<TILE_BITS, O_BITS> {
    /// Cycles from the addresses to the cycle at whose end the result is written.
    pub const WRITE_CYCLE: usize = 1 + DotProduct::LATENCY;
}

impl<const TILE_BITS: usize, const O_BITS: usize> Logic for RowUnit<TILE_BITS, O_BITS> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, shift0, shift1);
        self.q_ram.read_clock.next = self.clock.val();
        self.q_ram.write_clock.next = self.clock.val();
        self.q_ram.read_address.next = self.q_address.val();
        self.q_ram.write_address.next = self.q_write_address.val();
        self.q_ram.write_data.next = self.q_write_data.val();
        self.q_ram.write_enable.next = self.q_write.val();
        self.p_ram.read_clock.next = self.clock.val();
        self.p_ram.write_clock.next = self.clock.val();
        self.p_ram.read_address.next = self.p_address.val();
        self.p_ram.write_address.next = self.p_write_address.val();
        self.p_ram.write_data.next = self.p_write_data.val();
        self.p_ram.write_enable.next = self.p_write.val();
        if self.shift_write.val() {
            if self.shift_write_buffer.val() {
                self.shift1.d.next = self.shift_write_value.val();
            } else {
                self.shift0.d.next = self.shift_write_value.val();
            }
        }
        // Operands
        self.dot.clock.next = self.clock.val();
        self.dot.first.next = self.first.val();
        self.dot.b.next = self.b.val();
        self.dot.a.next = self.q_ram.read_data.val();
        self.dot.enable.next = 0xFF.into();
        self.dot.shift.next = 0.into();
        self.dot.acc.next = self.score0_ram.read_data.val();
        if self.buffer.val() {
            self.dot.acc.next = self.score1_ram.read_data.val();
        }
        if self.pv.val() {
            self.dot.a.next = self.p_ram.read_data.val().get_bits::<152>(0);
            self.dot.enable.next = self.p_ram.read_data.val().get_bits::<8>(152);
            self.dot.acc.next = self.o_even_ram.read_data.val();
            if self.odd.val() {
                self.dot.acc.next = self.o_odd_ram.read_data.val();
            }
            if self.sum.val() {
                self.dot.acc.next = self.l_ram.read_data.val();
            }
            if self.rescale.val() {
                self.dot.shift.next = self.shift0.q.val();
                if self.buffer.val() {
                    self.dot.shift.next = self.shift1.q.val();
                }
            }
        }
        // Accumulators
        self.write_data.next = self.dot.result.val();
        if self.state_write.val() {
            self.write_data.next = self.state_data.val();
        }
        self.score0_ram.read_clock.next = self.clock.val();
        self.score0_ram.write_clock.next = self.clock.val();
        self.score0_ram.read_address.next = self.score0_address.val();
        self.score0_ram.write_address.next = self.score_write_address.val();
        self.score0_ram.write_data.next = self.dot.result.val();
        self.score0_ram.write_enable.next = self.score0_write.val();
        self.score1_ram.read_clock.next = self.clock.val();
        self.score1_ram.write_clock.next = self.clock.val();
        self.score1_ram.read_address.next = self.score1_address.val();
        self.score1_ram.write_address.next = self.score_write_address.val();
        self.score1_ram.write_data.next = self.dot.result.val();
        self.score1_ram.write_enable.next = self.score1_write.val();
        self.o_even_ram.read_clock.next = self.clock.val();
        self.o_even_ram.write_clock.next = self.clock.val();
        self.o_even_ram.read_address.next = self.o_even_address.val();
        self.o_even_ram.write_address.next = self.o_write_address.val();
        self.o_even_ram.write_data.next = self.write_data.val();
        self.o_even_ram.write_enable.next = self.o_even_write.val();
        self.o_odd_ram.read_clock.next = self.clock.val();
        self.o_odd_ram.write_clock.next = self.clock.val();
        self.o_odd_ram.read_address.next = self.o_odd_address.val();
        self.o_odd_ram.write_address.next = self.o_write_address.val();
        self.o_odd_ram.write_data.next = self.write_data.val();
        self.o_odd_ram.write_enable.next = self.o_odd_write.val();
        self.l_ram.read_clock.next = self.clock.val();
        self.l_ram.write_clock.next = self.clock.val();
        self.l_ram.read_address.next = self.l_address.val();
        self.l_ram.write_address.next = self.l_write_address.val();
        self.l_ram.write_data.next = self.write_data.val();
        self.l_ram.write_enable.next = self.l_write.val();
        self.m_ram.read_clock.next = self.clock.val();
        self.m_ram.write_clock.next = self.clock.val();
        self.m_ram.read_address.next = self.m_address.val();
        self.m_ram.write_address.next = self.m_write_address.val();
        self.m_ram.write_data.next = self.m_write_data.val();
        self.m_ram.write_enable.next = self.m_write.val();
        self.score0.next = self.score0_ram.read_data.val();
        self.score1.next = self.score1_ram.read_data.val();
        self.o_even.next = self.o_even_ram.read_data.val();
        self.o_odd.next = self.o_odd_ram.read_data.val();
        self.l.next = self.l_ram.read_data.val();
        self.m.next = self.m_ram.read_data.val();
    }
}
