//! GEMM sequencer: turns operations into issues, one a cycle, and follows them to their write.
//!
//! ```text
//!  operation --> [queue of 2] --> block / index counters --> addresses (cycle 0)
//!                                       |--> operand controls (cycle 1)
//!                                       \--> write controls (cycle 9), done pulses
//! ```
//!
//! Q·Kᵀ: for block in 0..d/8, for position in 0..16. P·V: for half in 0..2, for column in 0..=d, column d being the sum. 2d or 2(d + 1) issues;
//! the next operation follows without a pause.

use rust_hdl::prelude::*;

/// An operation.
#[derive(LogicStruct, Copy, Clone, Debug, Default, PartialEq)]
pub struct GemmOperation {
    /// 0 Q·Kᵀ, 1 P·V.
    pub pv: Bit,
    /// K or V tile buffer.
    pub kv_buffer: Bit,
    pub q_buffer: Bit,
    /// Score buffer written (Q·Kᵀ) or P buffer read (P·V).
    pub score_buffer: Bit,
    pub row_tile: Bits<16>,
}

/// An issue on its way to the write.
#[derive(LogicStruct, Copy, Clone, Debug, Default, PartialEq)]
pub struct Flight {
    pub valid: Bit,
    pub pv: Bit,
    pub sum: Bit,
    pub buffer: Bit,
    /// The last issue of its operation.
    pub last: Bit,
    /// Position (Q·Kᵀ) or column (P·V).
    pub index: Bits<8>,
    pub row_tile: Bits<16>,
}

/// What the operands need in cycle 1.
#[derive(LogicStruct, Copy, Clone, Debug, Default, PartialEq)]
pub struct OperandControl {
    pub pv: Bit,
    pub sum: Bit,
    pub buffer: Bit,
    /// First block of Q·Kᵀ, or first half of P·V.
    pub first_block: Bit,
}

#[derive(LogicBlock, Default)]
pub struct GemmSequencer {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub head_dim: Signal<In, Bits<8>>,
    pub valid: Signal<In, Bit>,
    pub ready: Signal<Out, Bit>,
    pub operation: Signal<In, GemmOperation>,
    // cycle 0
    pub issue: Signal<Out, Bit>,
    pub issue_pv: Signal<Out, Bit>,
    /// {buffer, beat} of the K or V tile.
    pub tile_address: Signal<Out, Bits<9>>,
    pub q_address: Signal<Out, Bits<5>>,
    pub p_address: Signal<Out, Bits<2>>,
    pub issue_buffer: Signal<Out, Bit>,
    pub issue_index: Signal<Out, Bits<8>>,
    pub issue_row_tile: Signal<Out, Bits<16>>,
    // cycle 1
    pub operand: Signal<Out, OperandControl>,
    // cycle 9
    pub write: Signal<Out, Flight>,
    pub qk_done: Signal<Out, Bit>,
    pub pv_done: Signal<Out, Bit>,
    pub busy: Signal<Out, Bit>,
    // queue: `current` issues, `following` waits
    current: DFF<GemmOperation>,
    current_valid: DFF<Bit>,
    following: DFF<GemmOperation>,
    following_valid: DFF<Bit>,
    block: DFF<Bits<4>>,
    index: DFF<Bits<8>>,
    beat: DFF<Bits<8>>,
    blocks: Signal<Local, Bits<4>>,
    last_index: Signal<Local, Bits<8>>,
    last_block: Signal<Local, Bits<4>>,
    stride: Signal<Local, Bits<8>>,
    index_wraps: Signal<Local, Bit>,
    operation_ends: Signal<Local, Bit>,
    next_block: Signal<Local, Bits<4>>,
    flight: [DFF<Flight>; 9],
    launched: Signal<Local, Flight>,
    bubble: Signal<Local, Flight>,
    operand_control: DFF<OperandControl>,
    stage: Signal<Local, Flight>,
    in_flight: Signal<Local, Bit>,
    qk_end: DFF<Bit>,
    pv_end: DFF<Bit>,
}

impl Logic for GemmSequencer {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, current, current_valid, following, following_valid, block, index, beat, operand_control, qk_end, pv_end);
        self.ready.next = !self.following_valid.q.val();
        self.blocks.next = self.head_dim.val().get_bits::<4>(3);
        if self.current.q.val().pv {
            self.last_index.next = self.head_dim.val();
            self.last_block.next = 1.into();
            self.stride.next = 2.into();
        } else {
            self.last_index.next = 15.into();
            // d = 128 has 16 blocks: 0 - 1 wraps to 15
            self.last_block.next = self.blocks.val() - 1;
            self.stride.next = self.head_dim.val() >> 3;
        }
        self.index_wraps.next = self.index.q.val() == self.last_index.val();
        self.operation_ends.next = self.current_valid.q.val() & (self.index_wraps.val() & (self.block.q.val() == self.last_block.val()));
        self.next_block.next = self.block.q.val() + 1;
        if self.current_valid.q.val() {
            self.index.d.next = self.index.q.val() + 1;
            self.beat.d.next = self.beat.q.val() + self.stride.val();
            if self.index_wraps.val() {
                self.index.d.next = 0.into();
                self.block.d.next = self.next_block.val();
                self.beat.d.next = bit_cast::<8, 4>(self.next_block.val());
            }
        }
        if self.operation_ends.val() {
            self.block.d.next = 0.into();
            self.beat.d.next = 0.into();
            self.current.d.next = self.following.q.val();
            self.current_valid.d.next = self.following_valid.q.val();
            self.following_valid.d.next = false;
        }
        if self.valid.val() & !self.following_valid.q.val() {
            if !self.current_valid.q.val() | self.operation_ends.val() {
                self.current.d.next = self.operation.val();
                self.current_valid.d.next = true;
            } else {
                self.following.d.next = self.operation.val();
                self.following_valid.d.next = true;
            }
        }
        // cycle 0
        self.issue.next = self.current_valid.q.val();
        self.issue_pv.next = self.current.q.val().pv;
        self.issue_buffer.next = self.current.q.val().score_buffer;
        self.issue_index.next = self.index.q.val();
        self.issue_row_tile.next = self.current.q.val().row_tile;
        self.tile_address.next = bit_cast::<9, 8>(self.beat.q.val());
        if self.current.q.val().kv_buffer {
            self.tile_address.next = bit_cast::<9, 8>(self.beat.q.val()) | 0x100;
        }
        self.q_address.next = bit_cast::<5, 4>(self.block.q.val());
        if self.current.q.val().q_buffer {
            self.q_address.next = bit_cast::<5, 4>(self.block.q.val()) | 0x10;
        }
        self.p_address.next = bit_cast::<2, 1>(self.block.q.val().get_bits::<1>(0));
        if self.current.q.val().score_buffer {
            self.p_address.next = bit_cast::<2, 1>(self.block.q.val().get_bits::<1>(0)) | 2;
        }
        // cycle 1
        self.operand_control.d.next.pv = self.current.q.val().pv;
        self.operand_control.d.next.sum = self.current.q.val().pv & self.index_wraps.val();
        self.operand_control.d.next.buffer = self.current.q.val().score_buffer;
        self.operand_control.d.next.first_block = !self.block.q.val().any();
        self.operand.next = self.operand_control.q.val();
        // cycles 1 to 9
        self.launched.next.valid = self.current_valid.q.val();
        self.launched.next.pv = self.current.q.val().pv;
        self.launched.next.sum = self.current.q.val().pv & self.index_wraps.val();
        self.launched.next.buffer = self.current.q.val().score_buffer;
        self.launched.next.last = self.operation_ends.val();
        self.launched.next.index = self.index.q.val();
        self.launched.next.row_tile = self.current.q.val().row_tile;
        self.flight[0].clock.next = self.clock.val();
        self.flight[0].d.next = self.launched.val();
        for i in 1..9 {
            self.flight[i].clock.next = self.clock.val();
            self.flight[i].d.next = self.flight[i - 1].q.val();
        }
        self.write.next = self.flight[8].q.val();
        self.qk_end.d.next = (self.flight[8].q.val().valid & self.flight[8].q.val().last) & !self.flight[8].q.val().pv;
        self.pv_end.d.next = (self.flight[8].q.val().valid & self.flight[8].q.val().last) & self.flight[8].q.val().pv;
        self.qk_done.next = self.qk_end.q.val();
        self.pv_done.next = self.pv_end.q.val();
        self.in_flight.next = self.current_valid.q.val();
        for i in 0..9 {
            self.stage.next = self.flight[i].q.val();
            self.in_flight.next = self.in_flight.val() | self.stage.val().valid;
        }
        self.busy.next = self.in_flight.val();
        // What is in flight at a reset must not report to whoever was reset as well.
        self.bubble.next = self.launched.val();
        self.bubble.next.valid = false;
        for i in 0..9 {
            if self.reset.val() {
                self.flight[i].d.next = self.bubble.val();
            }
        }
        if self.reset.val() {
            self.qk_end.d.next = false;
            self.pv_end.d.next = false;
            self.current_valid.d.next = false;
            self.following_valid.d.next = false;
            self.block.d.next = 0.into();
            self.index.d.next = 0.into();
            self.beat.d.next = 0.into();
        }
    }
}
