//! Datapath of a PE: K and V tiles, ROWS row units, the GEMM sequencer and the MATH engine.
//!
//! ```text
//!  kv_write --> convert --> K tiles x2, V tiles x2 --b--> row unit x ROWS <--> row state port
//!  q_write  --> convert --------------------------q-->       |  ^
//!  gemm operation --> GemmSequencer --addresses, controls--> |  | P, shift, m
//!  softmax operation --> MathEngine <-----------scores-------/--/
//! ```
//!
//! Ports as in `docs/interfaces.md`. GEMM: 2d or 2(d + 1) cycles an operation, without a pause between operations. MATH: 16 x ROWS cycles and a drain of
//! 41. The row-state port may be used in the cycles that `maxima_free`, `columns_free` and `sums_free` name.
//!
//! `MASKS` = 16 x ROWS, `BEAT` = 32 x ROWS, `TILES` = 2^`TILE_BITS` row tiles, `O_BITS` = `TILE_BITS` + 6.

use rust_hdl::prelude::*;

use super::gemm::GemmSequencer;
use super::math::MathEngine;
use super::row_unit::RowUnit;
use super::state_port::{StatePort, StateRead};
use crate::number::ToOperand16;

#[derive(LogicBlock)]
pub struct Datapath<
    const ROWS: usize,
    const BEAT: usize,
    const MASKS: usize,
    const TILE_BITS: usize,
    const TILES: usize,
    const O_BITS: usize,
> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub head_dim: Signal<In, Bits<8>>,
    pub scale: Signal<In, Bits<32>>,
    pub q_bf16: Signal<In, Bit>,
    pub k_bf16: Signal<In, Bit>,
    pub v_bf16: Signal<In, Bit>,
    pub clear: Signal<In, Bit>,
    pub kv_write: Signal<In, Bit>,
    pub kv_write_v: Signal<In, Bit>,
    pub kv_write_buffer: Signal<In, Bit>,
    pub kv_write_address: Signal<In, Bits<8>>,
    pub kv_write_data: Signal<In, Bits<128>>,
    pub q_write: Signal<In, Bit>,
    pub q_write_buffer: Signal<In, Bit>,
    pub q_write_row: Signal<In, Bits<4>>,
    pub q_write_block: Signal<In, Bits<4>>,
    pub q_write_data: Signal<In, Bits<128>>,
    pub gemm_valid: Signal<In, Bit>,
    pub gemm_ready: Signal<Out, Bit>,
    pub gemm_pv: Signal<In, Bit>,
    pub gemm_kv_buffer: Signal<In, Bit>,
    pub gemm_q_buffer: Signal<In, Bit>,
    pub gemm_score_buffer: Signal<In, Bit>,
    pub gemm_row_tile: Signal<In, Bits<16>>,
    pub qk_done: Signal<Out, Bit>,
    pub pv_done: Signal<Out, Bit>,
    pub softmax_valid: Signal<In, Bit>,
    pub softmax_ready: Signal<Out, Bit>,
    pub softmax_buffer: Signal<In, Bit>,
    pub softmax_row_tile: Signal<In, Bits<16>>,
    pub softmax_masks: Signal<In, Bits<MASKS>>,
    pub softmax_done: Signal<Out, Bit>,
    /// The own state, and what goes to the merge partner; data one cycle later, an untouched tile reads m = -inf, l = 0, O = 0.
    pub read_a: Signal<In, StateRead>,
    pub read_b: Signal<In, StateRead>,
    pub read_a_data: Signal<Out, Bits<BEAT>>,
    pub read_b_data: Signal<Out, Bits<BEAT>>,
    /// Merge results: l (which marks the tile touched) or O, and m.
    pub state_write: Signal<In, Bit>,
    pub state_write_select: Signal<In, Bits<2>>,
    pub state_write_row_tile: Signal<In, Bits<16>>,
    pub state_write_column: Signal<In, Bits<8>>,
    pub state_write_data: Signal<In, Bits<BEAT>>,
    pub maxima_write: Signal<In, Bit>,
    pub maxima_write_row_tile: Signal<In, Bits<16>>,
    pub maxima_write_data: Signal<In, Bits<BEAT>>,
    /// m may be read in this cycle and written three cycles later.
    pub maxima_free: Signal<Out, Bit>,
    /// l and O may be read in this cycle.
    pub columns_free: Signal<Out, Bit>,
    /// They may be written eight cycles later.
    pub sums_free: Signal<Out, Bit>,
    pub qk_issue: Signal<Out, Bit>,
    pub pv_issue: Signal<Out, Bit>,
    pub math_issue: Signal<Out, Bit>,
    pub busy: Signal<Out, Bit>,
    ones: Constant<Bits<152>>,
    word_place: Constant<Bits<9>>,
    // operand conversion
    kv_convert: [ToOperand16; 8],
    q_convert: [ToOperand16; 8],
    kv_bf16: Signal<Local, Bit>,
    kv_lane: Signal<Local, Bits<19>>,
    kv_block: Signal<Local, Bits<152>>,
    q_lane: Signal<Local, Bits<19>>,
    q_block: Signal<Local, Bits<152>>,
    kv_write1: DFF<Bit>,
    kv_v1: DFF<Bit>,
    kv_address1: DFF<Bits<9>>,
    q_write1: DFF<Bit>,
    q_row1: DFF<Bits<4>>,
    q_address1: DFF<Bits<5>>,
    // engines
    k_tile: RAM<Bits<152>, 9>,
    v_tile: RAM<Bits<152>, 9>,
    gemm: GemmSequencer,
    math: MathEngine<MASKS>,
    rows: [RowUnit<TILE_BITS, O_BITS>; ROWS],
    b: Signal<Local, Bits<152>>,
    first: Signal<Local, Bit>,
    rescale: Signal<Local, Bit>,
    // untouched row tiles
    touched: DFF<Bits<TILES>>,
    p_untouched0: DFF<Bit>,
    p_untouched1: DFF<Bit>,
    softmax_untouched: Signal<Local, Bit>,
    // row-state port
    port: StatePort<TILE_BITS, O_BITS>,
    pv_issue1: DFF<Bit>,
    score0_address: Signal<Local, Bits<4>>,
    score1_address: Signal<Local, Bits<4>>,
    score0_write: Signal<Local, Bit>,
    score1_write: Signal<Local, Bit>,
    touched_by_math: Signal<Local, Bits<TILES>>,
    a_untouched1: DFF<Bit>,
    b_untouched1: DFF<Bit>,
    a_word: Signal<Local, Bits<32>>,
    b_word: Signal<Local, Bits<32>>,
    a_beat: Signal<Local, Bits<BEAT>>,
    b_beat: Signal<Local, Bits<BEAT>>,
}

impl<const ROWS: usize, const BEAT: usize, const MASKS: usize, const TILE_BITS: usize, const TILES: usize, const O_BITS: usize> Default
    for Datapath<ROWS, BEAT, MASKS, TILE_BITS, TILES, O_BITS>
{
    fn default() -> Self {
        assert_eq!((BEAT, MASKS, TILES), (32 * ROWS, 16 * ROWS, 1 << TILE_BITS), "derived parameters");
        let ones = ones_block();
        Self {
            clock: Default::default(),
            reset: Default::default(),
            head_dim: Default::default(),
            scale: Default::default(),
            q_bf16: Default::default(),
            k_bf16: Default::default(),
            v_bf16: Default::default(),
            clear: Default::default(),
            kv_write: Default::default(),
            kv_write_v: Default::default(),
            kv_write_buffer: Default::default(),
            kv_write_address: Default::default(),
            kv_write_data: Default::default(),
            q_write: Default::default(),
            q_write_buffer: Default::default(),
            q_write_row: Default::default(),
            q_write_block: Default::default(),
            q_write_data: Default::default(),
            gemm_valid: Default::default(),
            gemm_ready: Default::default(),
            gemm_pv: Default::default(),
            gemm_kv_buffer: Default::default(),
            gemm_q_buffer: Default::default(),
            gemm_score_buffer: Default::default(),
            gemm_row_tile: Default::default(),
            qk_done: Default::default(),
            pv_done: Default::default(),
            softmax_valid: Default::default(),
            softmax_ready: Default::default(),
            softmax_buffer: Default::default(),
            softmax_row_tile: Default::default(),
            softmax_masks: Default::default(),
            softmax_done: Default::default(),
            read_a: Default::default(),
            read_b: Default::default(),
            read_a_data: Default::default(),
            read_b_data: Default::default(),
            state_write: Default::default(),
            state_write_select: Default::default(),
            state_write_row_tile: Default::default(),
            state_write_column: Default::default(),
            state_write_data: Default::default(),
            maxima_write: Default::default(),
            maxima_write_row_tile: Default::default(),
            maxima_write_data: Default::default(),
            maxima_free: Default::default(),
            columns_free: Default::default(),
            sums_free: Default::default(),
            qk_issue: Default::default(),
            pv_issue: Default::default(),
            math_issue: Default::default(),
            busy: Default::default(),
            ones: Constant::new(ones),
            word_place: Constant::new(bits(BEAT as u64 - 32)),
            kv_convert: Default::default(),
            q_convert: Default::default(),
            kv_bf16: Default::default(),
            kv_lane: Default::default(),
            kv_block: Default::default(),
            q_lane: Default::default(),
            q_block: Default::default(),
            kv_write1: Default::default(),
            kv_v1: Default::default(),
            kv_address1: Default::default(),
            q_write1: Default::default(),
            q_row1: Default::default(),
            q_address1: Default::default(),
            k_tile: Default::default(),
            v_tile: Default::default(),
            gemm: Default::default(),
            math: Default::default(),
            rows: std::array::from_fn(|_| Default::default()),
            b: Default::default(),
            first: Default::default(),
            rescale: Default::default(),
            touched: Default::default(),
            p_untouched0: Default::default(),
            p_untouched1: Default::default(),
            softmax_untouched: Default::default(),
            port: Default::default(),
            pv_issue1: Default::default(),
            score0_address: Default::default(),
            score1_address: Default::default(),
            score0_write: Default::default(),
            score1_write: Default::default(),
            touched_by_math: Default::default(),
            a_untouched1: Default::default(),
            b_untouched1: Default::default(),
            a_word: Default::default(),
            b_word: Default::default(),
            a_beat: Default::default(),
            b_beat: Default::default(),
        }
    }
}

/// Eight operands 1.0.
fn ones_block() -> Bits<152> {
    let one: Bits<152> = bits(127 << 10);
    (0..8).fold(Bits::default(), |block: Bits<152>, _| (block << 19_usize.to_bits::<8>()) | one)
}

impl<const ROWS: usize, const BEAT: usize, const MASKS: usize, const TILE_BITS: usize, const TILES: usize, const O_BITS: usize> Logic
    for Datapath<ROWS, BEAT, MASKS, TILE_BITS, TILES, O_BITS>
{
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            kv_write1,
            kv_v1,
            kv_address1,
            q_write1,
            q_row1,
            q_address1,
            touched,
            p_untouched0,
            p_untouched1,
            pv_issue1,
            a_untouched1,
            b_untouched1
        );
        // ---- tiles in, converted to operands
        self.kv_bf16.next = self.k_bf16.val();
        if self.kv_write_v.val() {
            self.kv_bf16.next = self.v_bf16.val();
        }
        self.kv_block.next = 0.into();
        self.q_block.next = 0.into();
        for i in 0..8 {
            self.kv_convert[i].clock.next = self.clock.val();
            self.kv_convert[i].value.next = self.kv_write_data.val().get_bits::<16>(i * 16);
            self.kv_convert[i].bf16.next = self.kv_bf16.val();
            self.kv_lane.next = self.kv_convert[i].operand.val();
            self.kv_block.next = (self.kv_block.val() >> 19) | (bit_cast::<152, 19>(self.kv_lane.val()) << 133);
            self.q_convert[i].clock.next = self.clock.val();
            self.q_convert[i].value.next = self.q_write_data.val().get_bits::<16>(i * 16);
            self.q_convert[i].bf16.next = self.q_bf16.val();
            self.q_lane.next = self.q_convert[i].operand.val();
            self.q_block.next = (self.q_block.val() >> 19) | (bit_cast::<152, 19>(self.q_lane.val()) << 133);
        }
        self.kv_write1.d.next = self.kv_write.val();
        self.kv_v1.d.next = self.kv_write_v.val();
        self.kv_address1.d.next = bit_cast::<9, 8>(self.kv_write_address.val());
        if self.kv_write_buffer.val() {
            self.kv_address1.d.next = bit_cast::<9, 8>(self.kv_write_address.val()) | 0x100;
        }
        self.k_tile.read_clock.next = self.clock.val();
        self.k_tile.write_clock.next = self.clock.val();
        self.k_tile.write_address.next = self.kv_address1.q.val();
        self.k_tile.write_data.next = self.kv_block.val();
        self.k_tile.write_enable.next = self.kv_write1.q.val() & !self.kv_v1.q.val();
        self.v_tile.read_clock.next = self.clock.val();
        self.v_tile.write_clock.next = self.clock.val();
        self.v_tile.write_address.next = self.kv_address1.q.val();
        self.v_tile.write_data.next = self.kv_block.val();
        self.v_tile.write_enable.next = self.kv_write1.q.val() & self.kv_v1.q.val();
        self.q_write1.d.next = self.q_write.val();
        self.q_row1.d.next = self.q_write_row.val();
        self.q_address1.d.next = bit_cast::<5, 4>(self.q_write_block.val());
        if self.q_write_buffer.val() {
            self.q_address1.d.next = bit_cast::<5, 4>(self.q_write_block.val()) | 0x10;
        }
        // ---- GEMM
        self.gemm.clock.next = self.clock.val();
        self.gemm.reset.next = self.reset.val();
        self.gemm.head_dim.next = self.head_dim.val();
        self.gemm.valid.next = self.gemm_valid.val();
        self.gemm_ready.next = self.gemm.ready.val();
        self.gemm.operation.next.pv = self.gemm_pv.val();
        self.gemm.operation.next.kv_buffer = self.gemm_kv_buffer.val();
        self.gemm.operation.next.q_buffer = self.gemm_q_buffer.val();
        self.gemm.operation.next.score_buffer = self.gemm_score_buffer.val();
        self.gemm.operation.next.row_tile = self.gemm_row_tile.val();
        self.qk_done.next = self.gemm.qk_done.val();
        self.pv_done.next = self.gemm.pv_done.val();
        self.k_tile.read_address.next = self.gemm.tile_address.val();
        self.v_tile.read_address.next = self.gemm.tile_address.val();
        self.b.next = self.k_tile.read_data.val();
        self.first.next = self.gemm.operand.val().first_block;
        self.rescale.next = false;
        if self.gemm.operand.val().pv {
            self.b.next = self.v_tile.read_data.val();
            if self.gemm.operand.val().sum {
                self.b.next = self.ones.val();
            }
            self.rescale.next = self.gemm.operand.val().first_block;
            self.first.next = self.gemm.operand.val().first_block & self.p_untouched0.q.val();
            if self.gemm.operand.val().buffer {
                self.first.next = self.gemm.operand.val().first_block & self.p_untouched1.q.val();
            }
        }
        // ---- MATH
        self.softmax_untouched.next = !self.touched.q.val().get_bit(self.softmax_row_tile.val().get_bits::<TILE_BITS>(0).index());
        self.math.clock.next = self.clock.val();
        self.math.reset.next = self.reset.val();
        self.math.scale.next = self.scale.val();
        self.math.valid.next = self.softmax_valid.val();
        self.softmax_ready.next = self.math.ready.val();
        self.math.buffer.next = self.softmax_buffer.val();
        self.math.row_tile.next = self.softmax_row_tile.val();
        self.math.untouched.next = self.softmax_untouched.val();
        self.math.masks.next = self.softmax_masks.val();
        self.softmax_done.next = self.math.done.val();
        self.touched_by_math.next = self.touched.q.val();
        if self.softmax_valid.val() & self.math.ready.val() {
            self.touched_by_math.next =
                self.touched.q.val().replace_bit(self.softmax_row_tile.val().get_bits::<TILE_BITS>(0).index(), true);
            if self.softmax_buffer.val() {
                self.p_untouched1.d.next = self.softmax_untouched.val();
            } else {
                self.p_untouched0.d.next = self.softmax_untouched.val();
            }
        }
        // l, not m: a merge writes m first, and may read l and O of the same tile after that
        self.touched.d.next = self.touched_by_math.val();
        if self.state_write.val() & (self.state_write_select.val() == 1) {
            self.touched.d.next =
                self.touched_by_math.val().replace_bit(self.state_write_row_tile.val().get_bits::<TILE_BITS>(0).index(), true);
        }
        if self.clear.val() {
            self.touched.d.next = 0.into();
        }
        self.math.score.next = 0.into();
        self.math.m_old.next = 0.into();
        // ---- addresses: GEMM, MATH, or the row-state port
        self.score0_address.next = self.math.score_address.val();
        self.score1_address.next = self.math.score_address.val();
        if self.gemm.issue.val() & !self.gemm.issue_pv.val() {
            if self.gemm.issue_buffer.val() {
                self.score1_address.next = self.gemm.issue_index.val().get_bits::<4>(0);
            } else {
                self.score0_address.next = self.gemm.issue_index.val().get_bits::<4>(0);
            }
        }
        self.port.clock.next = self.clock.val();
        self.port.a.next = self.read_a.val();
        self.port.b.next = self.read_b.val();
        self.port.gemm_row_tile.next = self.gemm.issue_row_tile.val();
        self.port.gemm_index.next = self.gemm.issue_index.val();
        self.port.math_row_tile.next = self.math.m_read_row_tile.val();
        self.port.gemm_write.next = self.gemm.write.val();
        self.port.math_write_row_tile.next = self.math.m_write_row_tile.val();
        self.port.state_write.next = self.state_write.val();
        self.port.state_write_select.next = self.state_write_select.val();
        self.port.state_write_row_tile.next = self.state_write_row_tile.val();
        self.port.state_write_column.next = self.state_write_column.val();
        self.port.maxima_write.next = self.maxima_write.val();
        self.port.maxima_write_row_tile.next = self.maxima_write_row_tile.val();
        // A read now is written back eight cycles later, a GEMM issue nine.
        self.pv_issue1.d.next = self.gemm.issue.val() & self.gemm.issue_pv.val();
        self.columns_free.next = !(self.gemm.issue.val() & self.gemm.issue_pv.val());
        self.sums_free.next = !self.pv_issue1.q.val();
        self.maxima_free.next = !self.math.busy.val();
        self.score0_write.next = (self.gemm.write.val().valid & !self.gemm.write.val().pv) & !self.gemm.write.val().buffer;
        self.score1_write.next = (self.gemm.write.val().valid & !self.gemm.write.val().pv) & self.gemm.write.val().buffer;
        self.a_untouched1.d.next = !self.touched.q.val().get_bit(self.read_a.val().row_tile.get_bits::<TILE_BITS>(0).index());
        self.b_untouched1.d.next = !self.touched.q.val().get_bit(self.read_b.val().row_tile.get_bits::<TILE_BITS>(0).index());
        self.a_beat.next = 0.into();
        self.b_beat.next = 0.into();
        // ---- row units
        for i in 0..ROWS {
            self.rows[i].clock.next = self.clock.val();
            self.rows[i].q_write.next = self.q_write1.q.val() & (self.q_row1.q.val() == i.to_bits());
            self.rows[i].q_write_address.next = self.q_address1.q.val();
            self.rows[i].q_write_data.next = self.q_block.val();
            self.rows[i].p_write.next = self.math.p_write.val() & (self.math.p_write_row.val() == i.to_bits());
            self.rows[i].p_write_address.next = self.math.p_write_address.val();
            self.rows[i].p_write_data.next = self.math.p_write_data.val();
            self.rows[i].shift_write.next = self.math.shift_write.val() & (self.math.shift_write_row.val() == i.to_bits());
            self.rows[i].shift_write_buffer.next = self.math.shift_write_buffer.val();
            self.rows[i].shift_write_value.next = self.math.shift_write_value.val();
            self.rows[i].q_address.next = self.gemm.q_address.val();
            self.rows[i].p_address.next = self.gemm.p_address.val();
            self.rows[i].score0_address.next = self.score0_address.val();
            self.rows[i].score1_address.next = self.score1_address.val();
            self.rows[i].o_even_address.next = self.port.o_even_address.val();
            self.rows[i].o_odd_address.next = self.port.o_odd_address.val();
            self.rows[i].l_address.next = self.port.l_address.val();
            self.rows[i].m_address.next = self.port.m_address.val();
            self.rows[i].odd.next = self.port.gemm_odd.val();
            self.rows[i].pv.next = self.gemm.operand.val().pv;
            self.rows[i].sum.next = self.gemm.operand.val().sum;
            self.rows[i].buffer.next = self.gemm.operand.val().buffer;
            self.rows[i].first.next = self.first.val();
            self.rows[i].rescale.next = self.rescale.val();
            self.rows[i].b.next = self.b.val();
            self.rows[i].score0_write.next = self.score0_write.val();
            self.rows[i].score1_write.next = self.score1_write.val();
            self.rows[i].score_write_address.next = self.gemm.write.val().index.get_bits::<4>(0);
            self.rows[i].o_even_write.next = self.port.o_even_write.val();
            self.rows[i].o_odd_write.next = self.port.o_odd_write.val();
            self.rows[i].o_write_address.next = self.port.o_write_address.val();
            self.rows[i].l_write.next = self.port.l_write.val();
            self.rows[i].l_write_address.next = self.port.l_write_address.val();
            self.rows[i].m_write.next = self.math.m_write.val() & (self.math.m_write_row.val() == i.to_bits());
            self.rows[i].m_write_address.next = self.port.m_write_address.val();
            self.rows[i].m_write_data.next = self.math.m_write_data.val();
            self.rows[i].state_write.next = self.state_write.val();
            self.rows[i].state_data.next = self.state_write_data.val().get_bits::<32>(i * 32);
            if self.maxima_write.val() {
                self.rows[i].m_write.next = true;
                self.rows[i].m_write_data.next = self.maxima_write_data.val().get_bits::<32>(i * 32);
            }
            if self.math.score_row.val() == i.to_bits() {
                self.math.score.next = self.rows[i].score0.val();
                if self.math.score_buffer.val() {
                    self.math.score.next = self.rows[i].score1.val();
                }
            }
            if self.math.m_read_row.val() == i.to_bits() {
                self.math.m_old.next = self.rows[i].m.val();
            }
            // row 0 ends up lowest
            self.a_word.next = self.rows[i].o_even.val();
            if self.port.a_odd.val() {
                self.a_word.next = self.rows[i].o_odd.val();
            }
            if self.port.a_select.val() == 1 {
                self.a_word.next = self.rows[i].l.val();
            }
            if self.a_untouched1.q.val() {
                self.a_word.next = 0.into();
            }
            if self.port.a_select.val() == 2 {
                self.a_word.next = self.rows[i].m.val();
                if self.a_untouched1.q.val() {
                    self.a_word.next = 0xFF80_0000_u64.into();
                }
            }
            self.a_beat.next = (self.a_beat.val() >> 32) | (bit_cast::<BEAT, 32>(self.a_word.val()) << self.word_place.val());
            self.b_word.next = self.rows[i].o_even.val();
            if self.port.b_odd.val() {
                self.b_word.next = self.rows[i].o_odd.val();
            }
            if self.port.b_select.val() == 1 {
                self.b_word.next = self.rows[i].l.val();
            }
            if self.b_untouched1.q.val() {
                self.b_word.next = 0.into();
            }
            if self.port.b_select.val() == 2 {
                self.b_word.next = self.rows[i].m.val();
                if self.b_untouched1.q.val() {
                    self.b_word.next = 0xFF80_0000_u64.into();
                }
            }
            self.b_beat.next = (self.b_beat.val() >> 32) | (bit_cast::<BEAT, 32>(self.b_word.val()) << self.word_place.val());
        }
        self.read_a_data.next = self.a_beat.val();
        self.read_b_data.next = self.b_beat.val();
        self.qk_issue.next = self.gemm.issue.val() & !self.gemm.issue_pv.val();
        self.pv_issue.next = self.gemm.issue.val() & self.gemm.issue_pv.val();
        self.math_issue.next = self.math.issue.val();
        self.busy.next = self.gemm.busy.val() | self.math.busy.val();
    }
}
