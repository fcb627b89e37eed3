//! MATH engine: the scalar softmax pipeline, one score a cycle, row after row.
//!
//! ```text
//!  cycle  0 address of score (row, position)
//!         1 score x scale (5)
//!         6 t --> ring of 32, running maximum of the visible ones (1)
//!  from the row's last t:
//!           +1 ceil (2)   +3 maximum with the old m (1)   +5 m held   +5 m - old m (7)   +12 shift count (1)
//!        25 t from the ring
//!        26 t - m (7)
//!        33 exp2 (5)
//!        38 to operand (1)
//!        39 into the P word, written every eighth
//! ```
//!
//! An operation of ROWS rows takes 16 x ROWS cycles, the next one follows without a pause; its results are complete [`MathEngine::DRAIN`] cycles after its
//! last score. A row without a visible position keeps its m (the maximum of nothing is -inf) and gets shift 0 and no enabled lane, with no special case.

use rust_hdl::prelude::*;

use crate::number::{Ceil32, Exp2, Max32, Multiply32, ScaledAdd32, ShiftCount, ToOperand32};

/// One score on its way.
#[derive(LogicStruct, Copy, Clone, Debug, Default, PartialEq)]
pub struct Score {
    pub valid: Bit,
    pub visible: Bit,
    /// The row tile was untouched before this operation.
    pub untouched: Bit,
    pub buffer: Bit,
    /// Last score of its operation.
    pub last: Bit,
    pub position: Bits<4>,
    pub row: Bits<3>,
    /// Place in the ring.
    pub place: Bits<5>,
    pub row_tile: Bits<16>,
}

#[derive(LogicBlock)]
pub struct MathEngine<const MASKS: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// scale x log2 e.
    pub scale: Signal<In, Bits<32>>,
    pub valid: Signal<In, Bit>,
    pub ready: Signal<Out, Bit>,
    pub buffer: Signal<In, Bit>,
    pub row_tile: Signal<In, Bits<16>>,
    pub untouched: Signal<In, Bit>,
    pub masks: Signal<In, Bits<MASKS>>,
    // score memory
    pub score_address: Signal<Out, Bits<4>>,
    pub score_buffer: Signal<Out, Bit>,
    pub score_row: Signal<Out, Bits<3>>,
    /// The score of `score_row`, one cycle after the address.
    pub score: Signal<In, Bits<32>>,
    // row state
    pub m_read_row_tile: Signal<Out, Bits<16>>,
    pub m_read_row: Signal<Out, Bits<3>>,
    /// m of `m_read_row`, one cycle after the address.
    pub m_old: Signal<In, Bits<32>>,
    pub m_write: Signal<Out, Bit>,
    pub m_write_row: Signal<Out, Bits<3>>,
    pub m_write_row_tile: Signal<Out, Bits<16>>,
    pub m_write_data: Signal<Out, Bits<32>>,
    pub shift_write: Signal<Out, Bit>,
    pub shift_write_row: Signal<Out, Bits<3>>,
    pub shift_write_buffer: Signal<Out, Bit>,
    pub shift_write_value: Signal<Out, Bits<9>>,
    pub p_write: Signal<Out, Bit>,
    pub p_write_row: Signal<Out, Bits<3>>,
    pub p_write_address: Signal<Out, Bits<2>>,
    pub p_write_data: Signal<Out, Bits<160>>,
    pub done: Signal<Out, Bit>,
    pub issue: Signal<Out, Bit>,
    pub busy: Signal<Out, Bit>,
    last_row: Constant<Bits<3>>,
    // operation
    active: DFF<Bit>,
    operation_buffer: DFF<Bit>,
    operation_row_tile: DFF<Bits<16>>,
    operation_untouched: DFF<Bit>,
    operation_masks: DFF<Bits<MASKS>>,
    row: DFF<Bits<3>>,
    position: DFF<Bits<4>>,
    place: DFF<Bits<5>>,
    row_ends: Signal<Local, Bit>,
    operation_ends: Signal<Local, Bit>,
    accept: Signal<Local, Bit>,
    launched: Signal<Local, Score>,
    bubble: Signal<Local, Score>,
    pipe: [DFF<Score>; 41],
    stage: Signal<Local, Score>,
    any_valid: Signal<Local, Bit>,
    // scale and running maximum
    multiply: Multiply32,
    running: Max32,
    ring: RAM<Bits<32>, 5>,
    starts: Signal<Local, Bit>,
    // new maximum
    ceil: Ceil32,
    maximum: Max32,
    old: Signal<Local, Bits<32>>,
    old1: DFF<Bits<32>>,
    held: DFF<Bits<32>>,
    held_old: DFF<Bits<32>>,
    difference: ScaledAdd32,
    count: ShiftCount,
    // exponentials
    both_empty: Signal<Local, Bit>,
    argument: ScaledAdd32,
    exponential: Exp2,
    convert: ToOperand32,
    lanes: DFF<Bits<152>>,
    enables: DFF<Bits<8>>,
}

impl<const MASKS: usize> MathEngine<MASKS> {
    /// Cycles from the issue of an operation's last score to `done`.
    pub const DRAIN: usize = 41;
}

impl<const MASKS: usize> Default for MathEngine<MASKS> {
    fn default() -> Self {
        let rows = MASKS / 16;
        assert!(MASKS.is_multiple_of(16) && (1..=8).contains(&rows), "one to eight rows of 16 positions");
        Self {
            clock: Default::default(),
            reset: Default::default(),
            scale: Default::default(),
            valid: Default::default(),
            ready: Default::default(),
            buffer: Default::default(),
            row_tile: Default::default(),
            untouched: Default::default(),
            masks: Default::default(),
            score_address: Default::default(),
            score_buffer: Default::default(),
            score_row: Default::default(),
            score: Default::default(),
            m_read_row_tile: Default::default(),
            m_read_row: Default::default(),
            m_old: Default::default(),
            m_write: Default::default(),
            m_write_row: Default::default(),
            m_write_row_tile: Default::default(),
            m_write_data: Default::default(),
            shift_write: Default::default(),
            shift_write_row: Default::default(),
            shift_write_buffer: Default::default(),
            shift_write_value: Default::default(),
            p_write: Default::default(),
            p_write_row: Default::default(),
            p_write_address: Default::default(),
            p_write_data: Default::default(),
            done: Default::default(),
            issue: Default::default(),
            busy: Default::default(),
            last_row: Constant::new(bits(rows as u64 - 1)),
            active: Default::default(),
            operation_buffer: Default::default(),
            operation_row_tile: Default::default(),
            operation_untouched: Default::default(),
            operation_masks: Default::default(),
            row: Default::default(),
            position: Default::default(),
            place: Default::default(),
            row_ends: Default::default(),
            operation_ends: Default::default(),
            accept: Default::default(),
            launched: Default::default(),
            bubble: Default::default(),
            pipe: std::array::from_fn(|_| Default::default()),
            stage: Default::default(),
            any_valid: Default::default(),
            multiply: Default::default(),
            running: Default::default(),
            ring: Default::default(),
            starts: Default::default(),
            ceil: Default::default(),
            maximum: Default::default(),
            old: Default::default(),
            old1: Default::default(),
            held: Default::default(),
            held_old: Default::default(),
            difference: Default::default(),
            count: Default::default(),
            both_empty: Default::default(),
            argument: Default::default(),
            exponential: Default::default(),
            convert: Default::default(),
            lanes: Default::default(),
            enables: Default::default(),
        }
    }
}

impl<const MASKS: usize> Logic for MathEngine<MASKS> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            active,
            operation_buffer,
            operation_row_tile,
            operation_untouched,
            operation_masks,
            row,
            position,
            place,
            old1,
            held,
            held_old,
            lanes,
            enables
        );
        // 0: one score a cycle
        self.row_ends.next = self.position.q.val().all();
        self.operation_ends.next = self.active.q.val() & (self.row_ends.val() & (self.row.q.val() == self.last_row.val()));
        self.ready.next = !self.active.q.val() | self.operation_ends.val();
        self.accept.next = self.valid.val() & (!self.active.q.val() | self.operation_ends.val());
        if self.active.q.val() {
            self.position.d.next = self.position.q.val() + 1;
            self.place.d.next = self.place.q.val() + 1;
            self.operation_masks.d.next = self.operation_masks.q.val() >> 1;
            if self.row_ends.val() {
                self.row.d.next = self.row.q.val() + 1;
            }
        }
        if self.operation_ends.val() {
            self.active.d.next = false;
            self.row.d.next = 0.into();
        }
        if self.accept.val() {
            self.active.d.next = true;
            self.operation_buffer.d.next = self.buffer.val();
            self.operation_row_tile.d.next = self.row_tile.val();
            self.operation_untouched.d.next = self.untouched.val();
            self.operation_masks.d.next = self.masks.val();
        }
        self.issue.next = self.active.q.val();
        self.score_address.next = self.position.q.val();
        self.launched.next.valid = self.active.q.val();
        self.launched.next.visible = self.operation_masks.q.val().get_bit(0);
        self.launched.next.untouched = self.operation_untouched.q.val();
        self.launched.next.buffer = self.operation_buffer.q.val();
        self.launched.next.last = self.operation_ends.val();
        self.launched.next.position = self.position.q.val();
        self.launched.next.row = self.row.q.val();
        self.launched.next.place = self.place.q.val();
        self.launched.next.row_tile = self.operation_row_tile.q.val();
        self.pipe[0].clock.next = self.clock.val();
        self.pipe[0].d.next = self.launched.val();
        for i in 1..41 {
            self.pipe[i].clock.next = self.clock.val();
            self.pipe[i].d.next = self.pipe[i - 1].q.val();
        }
        // 1: scale
        self.score_buffer.next = self.pipe[0].q.val().buffer;
        self.score_row.next = self.pipe[0].q.val().row;
        self.multiply.clock.next = self.clock.val();
        self.multiply.a.next = self.score.val();
        self.multiply.b.next = self.scale.val();
        // 6: t
        self.ring.write_clock.next = self.clock.val();
        self.ring.read_clock.next = self.clock.val();
        self.ring.write_address.next = self.pipe[5].q.val().place;
        self.ring.write_data.next = self.multiply.result.val();
        self.ring.write_enable.next = self.pipe[5].q.val().valid;
        self.starts.next = !self.pipe[5].q.val().position.any();
        self.running.clock.next = self.clock.val();
        self.running.a.next = self.running.result.val();
        if self.starts.val() {
            self.running.a.next = 0xFF80_0000_u64.into();
        }
        self.running.b.next = 0xFF80_0000_u64.into();
        if self.pipe[5].q.val().visible {
            self.running.b.next = self.multiply.result.val();
        }
        // 7, for the row's last: ceil; 8: address of m; 9: maximum with it
        self.ceil.clock.next = self.clock.val();
        self.ceil.value.next = self.running.result.val();
        self.m_read_row_tile.next = self.pipe[7].q.val().row_tile;
        self.m_read_row.next = self.pipe[8].q.val().row;
        self.old.next = self.m_old.val();
        if self.pipe[8].q.val().untouched {
            self.old.next = 0xFF80_0000_u64.into();
        }
        self.maximum.clock.next = self.clock.val();
        self.maximum.a.next = self.ceil.result.val();
        self.maximum.b.next = self.old.val();
        self.old1.d.next = self.old.val();
        // 10, for the row's last: hold; 11: write back, difference
        if self.pipe[9].q.val().position.all() {
            self.held.d.next = self.maximum.result.val();
            self.held_old.d.next = self.old1.q.val();
        }
        self.m_write.next = self.pipe[10].q.val().valid & self.pipe[10].q.val().position.all();
        self.m_write_row.next = self.pipe[10].q.val().row;
        self.m_write_row_tile.next = self.pipe[10].q.val().row_tile;
        self.m_write_data.next = self.held.q.val();
        self.difference.clock.next = self.clock.val();
        self.difference.a.next = self.held.q.val();
        self.difference.ka.next = 0.into();
        self.difference.b.next = self.held_old.q.val() ^ 0x8000_0000_u64;
        self.difference.kb.next = 0.into();
        // 18: shift count; 19: into the row unit
        self.count.clock.next = self.clock.val();
        self.count.difference.next = self.difference.result.val();
        self.shift_write.next = self.pipe[18].q.val().valid & self.pipe[18].q.val().position.all();
        self.shift_write_row.next = self.pipe[18].q.val().row;
        self.shift_write_buffer.next = self.pipe[18].q.val().buffer;
        self.shift_write_value.next = self.count.count.val();
        // 25: t again; 26: t - m, where two negative infinities make 0
        self.ring.read_address.next = self.pipe[24].q.val().place;
        self.both_empty.next = (self.ring.read_data.val() == 0xFF80_0000_u64) & (self.held.q.val() == 0xFF80_0000_u64);
        self.argument.clock.next = self.clock.val();
        self.argument.ka.next = 0.into();
        self.argument.kb.next = 0.into();
        self.argument.a.next = self.ring.read_data.val();
        self.argument.b.next = self.held.q.val() ^ 0x8000_0000_u64;
        if self.both_empty.val() {
            self.argument.a.next = 0.into();
            self.argument.b.next = 0.into();
        }
        // 33, 38: exponential, operand
        self.exponential.clock.next = self.clock.val();
        self.exponential.value.next = self.argument.result.val();
        self.convert.clock.next = self.clock.val();
        self.convert.value.next = self.exponential.result.val();
        // 39: lane 0 ends up lowest after eight
        self.lanes.d.next = (self.lanes.q.val() >> 19) | (bit_cast::<152, 19>(self.convert.operand.val()) << 133);
        self.enables.d.next = self.enables.q.val() >> 1;
        if self.pipe[38].q.val().visible {
            self.enables.d.next = (self.enables.q.val() >> 1) | 0x80;
        }
        // 40: write
        self.p_write.next = self.pipe[39].q.val().valid & self.pipe[39].q.val().position.get_bits::<3>(0).all();
        self.p_write_row.next = self.pipe[39].q.val().row;
        self.p_write_address.next = bit_cast::<2, 1>(self.pipe[39].q.val().position.get_bits::<1>(3));
        if self.pipe[39].q.val().buffer {
            self.p_write_address.next = bit_cast::<2, 1>(self.pipe[39].q.val().position.get_bits::<1>(3)) | 2;
        }
        self.p_write_data.next = (bit_cast::<160, 8>(self.enables.q.val()) << 152) | bit_cast::<160, 152>(self.lanes.q.val());
        self.done.next = self.pipe[40].q.val().valid & self.pipe[40].q.val().last;
        self.any_valid.next = self.active.q.val();
        for i in 0..41 {
            self.stage.next = self.pipe[i].q.val();
            self.any_valid.next = self.any_valid.val() | self.stage.val().valid;
        }
        self.busy.next = self.any_valid.val();
        // What is in flight at a reset must not report to whoever was reset as well.
        self.bubble.next = self.launched.val();
        self.bubble.next.valid = false;
        for i in 0..41 {
            if self.reset.val() {
                self.pipe[i].d.next = self.bubble.val();
            }
        }
        if self.reset.val() {
            self.active.d.next = false;
            self.row.d.next = 0.into();
            self.position.d.next = 0.into();
        }
    }
}
