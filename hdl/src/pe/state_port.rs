//! State port: who uses the memories of the row state, and where.
//!
//! ```text
//!  read A (own state: merge, store) --\
//!  read B (for the merge partner) -----+--> addresses of O even, O odd, l, m; what A and B see one cycle later
//!  GEMM issue, MATH ------------------/
//!  GEMM result, MATH, merge result --> write addresses and enables
//! ```
//!
//! Reads and writes of A and B go before those of GEMM and MATH; whoever asks for them sees to it that nobody else needs that memory in that cycle. Addresses in
//! the cycle of the request, data one cycle later.

use rust_hdl::prelude::*;

use super::gemm::Flight;

/// A read of the row state.
#[derive(LogicStruct, Copy, Clone, Debug, Default, PartialEq)]
pub struct StateRead {
    pub valid: Bit,
    /// 0 O, 1 l, 2 m.
    pub select: Bits<2>,
    pub row_tile: Bits<16>,
    pub column: Bits<8>,
}

#[derive(LogicBlock, Default)]
pub struct StatePort<const TILE_BITS: usize, const O_BITS: usize> {
    pub clock: Signal<In, Clock>,
    pub a: Signal<In, StateRead>,
    pub b: Signal<In, StateRead>,
    pub gemm_row_tile: Signal<In, Bits<16>>,
    pub gemm_index: Signal<In, Bits<8>>,
    pub math_row_tile: Signal<In, Bits<16>>,
    pub gemm_write: Signal<In, Flight>,
    pub math_write_row_tile: Signal<In, Bits<16>>,
    // merge results
    pub state_write: Signal<In, Bit>,
    /// 0 O, 1 l.
    pub state_write_select: Signal<In, Bits<2>>,
    pub state_write_row_tile: Signal<In, Bits<16>>,
    pub state_write_column: Signal<In, Bits<8>>,
    pub maxima_write: Signal<In, Bit>,
    pub maxima_write_row_tile: Signal<In, Bits<16>>,
    // memories
    pub o_even_address: Signal<Out, Bits<O_BITS>>,
    pub o_odd_address: Signal<Out, Bits<O_BITS>>,
    pub l_address: Signal<Out, Bits<TILE_BITS>>,
    pub m_address: Signal<Out, Bits<TILE_BITS>>,
    pub o_write_address: Signal<Out, Bits<O_BITS>>,
    pub l_write_address: Signal<Out, Bits<TILE_BITS>>,
    pub m_write_address: Signal<Out, Bits<TILE_BITS>>,
    pub o_even_write: Signal<Out, Bit>,
    pub o_odd_write: Signal<Out, Bit>,
    pub l_write: Signal<Out, Bit>,
    // one cycle later
    /// The column that GEMM accumulates is odd.
    pub gemm_odd: Signal<Out, Bit>,
    /// The read was of an odd column.
    pub a_odd: Signal<Out, Bit>,
    pub b_odd: Signal<Out, Bit>,
    pub a_select: Signal<Out, Bits<2>>,
    pub b_select: Signal<Out, Bits<2>>,
    a_word: Signal<Local, Bits<O_BITS>>,
    b_word: Signal<Local, Bits<O_BITS>>,
    gemm_word: Signal<Local, Bits<O_BITS>>,
    write_row_tile: Signal<Local, Bits<16>>,
    write_column: Signal<Local, Bits<8>>,
    write_o: Signal<Local, Bit>,
    a_o: Signal<Local, Bit>,
    b_o: Signal<Local, Bit>,
    gemm_odd1: DFF<Bit>,
    a_odd1: DFF<Bit>,
    b_odd1: DFF<Bit>,
    a_select1: DFF<Bits<2>>,
    b_select1: DFF<Bits<2>>,
}

impl<const TILE_BITS: usize, const O_BITS: usize> Logic for StatePort<TILE_BITS, O_BITS> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, gemm_odd1, a_odd1, b_odd1, a_select1, b_select1);
        // ---- reads; a word of a bank is {row tile, column / 2}
        self.a_word.next =
            (bit_cast::<O_BITS, 16>(self.a.val().row_tile) << 6) | bit_cast::<O_BITS, 6>(self.a.val().column.get_bits::<6>(1));
        self.b_word.next =
            (bit_cast::<O_BITS, 16>(self.b.val().row_tile) << 6) | bit_cast::<O_BITS, 6>(self.b.val().column.get_bits::<6>(1));
        self.gemm_word.next =
            (bit_cast::<O_BITS, 16>(self.gemm_row_tile.val()) << 6) | bit_cast::<O_BITS, 6>(self.gemm_index.val().get_bits::<6>(1));
        self.a_o.next = self.a.val().valid & (self.a.val().select == 0);
        self.b_o.next = self.b.val().valid & (self.b.val().select == 0);
        self.o_even_address.next = self.gemm_word.val();
        self.o_odd_address.next = self.gemm_word.val();
        self.l_address.next = self.gemm_row_tile.val().get_bits::<TILE_BITS>(0);
        self.m_address.next = self.math_row_tile.val().get_bits::<TILE_BITS>(0);
        if self.b_o.val() & !self.b.val().column.get_bit(0) {
            self.o_even_address.next = self.b_word.val();
        }
        if self.b_o.val() & self.b.val().column.get_bit(0) {
            self.o_odd_address.next = self.b_word.val();
        }
        if self.b.val().valid & (self.b.val().select == 1) {
            self.l_address.next = self.b.val().row_tile.get_bits::<TILE_BITS>(0);
        }
        if self.b.val().valid & (self.b.val().select == 2) {
            self.m_address.next = self.b.val().row_tile.get_bits::<TILE_BITS>(0);
        }
        if self.a_o.val() & !self.a.val().column.get_bit(0) {
            self.o_even_address.next = self.a_word.val();
        }
        if self.a_o.val() & self.a.val().column.get_bit(0) {
            self.o_odd_address.next = self.a_word.val();
        }
        if self.a.val().valid & (self.a.val().select == 1) {
            self.l_address.next = self.a.val().row_tile.get_bits::<TILE_BITS>(0);
        }
        if self.a.val().valid & (self.a.val().select == 2) {
            self.m_address.next = self.a.val().row_tile.get_bits::<TILE_BITS>(0);
        }
        self.gemm_odd1.d.next = self.gemm_index.val().get_bit(0);
        self.a_odd1.d.next = self.a.val().column.get_bit(0);
        self.b_odd1.d.next = self.b.val().column.get_bit(0);
        self.a_select1.d.next = self.a.val().select;
        self.b_select1.d.next = self.b.val().select;
        self.gemm_odd.next = self.gemm_odd1.q.val();
        self.a_odd.next = self.a_odd1.q.val();
        self.b_odd.next = self.b_odd1.q.val();
        self.a_select.next = self.a_select1.q.val();
        self.b_select.next = self.b_select1.q.val();
        // ---- writes
        self.write_row_tile.next = self.gemm_write.val().row_tile;
        self.write_column.next = self.gemm_write.val().index;
        self.write_o.next = (self.gemm_write.val().valid & self.gemm_write.val().pv) & !self.gemm_write.val().sum;
        self.l_write.next = (self.gemm_write.val().valid & self.gemm_write.val().pv) & self.gemm_write.val().sum;
        if self.state_write.val() {
            self.write_row_tile.next = self.state_write_row_tile.val();
            self.write_column.next = self.state_write_column.val();
            self.write_o.next = self.state_write_select.val() == 0;
            self.l_write.next = self.state_write_select.val() == 1;
        }
        self.o_write_address.next =
            (bit_cast::<O_BITS, 16>(self.write_row_tile.val()) << 6) | bit_cast::<O_BITS, 6>(self.write_column.val().get_bits::<6>(1));
        self.o_even_write.next = self.write_o.val() & !self.write_column.val().get_bit(0);
        self.o_odd_write.next = self.write_o.val() & self.write_column.val().get_bit(0);
        self.l_write_address.next = self.write_row_tile.val().get_bits::<TILE_BITS>(0);
        self.m_write_address.next = self.math_write_row_tile.val().get_bits::<TILE_BITS>(0);
        if self.maxima_write.val() {
            self.m_write_address.next = self.maxima_write_row_tile.val().get_bits::<TILE_BITS>(0);
        }
    }
}
