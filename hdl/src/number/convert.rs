//! Conversions to the operand format.
//!
//! ```text
//!  value, bf16 --> ToOperand16 --> operand        value --> ToOperand32 --> operand
//! ```
//!
//! Latency 1 cycle, one value a cycle. fp16 and bf16 are held without loss; fp32 is rounded to nearest even.

use rust_hdl::prelude::*;

/// fp16 or bf16 to operand, exact.
#[derive(LogicBlock, Default)]
pub struct ToOperand16 {
    pub clock: Signal<In, Clock>,
    pub value: Signal<In, Bits<16>>,
    /// `value` is bf16; otherwise fp16.
    pub bf16: Signal<In, Bit>,
    pub operand: Signal<Out, Bits<19>>,
    half_exponent: Signal<Local, Bits<5>>,
    half_sign: Signal<Local, Bits<19>>,
    half_special: Signal<Local, Bit>,
    half_subnormal: Signal<Local, Bit>,
    half_nan: Signal<Local, Bit>,
    brain_special: Signal<Local, Bit>,
    brain_nan: Signal<Local, Bit>,
    s0: Signal<Local, Bits<10>>,
    s8: Signal<Local, Bits<10>>,
    s4: Signal<Local, Bits<10>>,
    s2: Signal<Local, Bits<10>>,
    s1: Signal<Local, Bits<10>>,
    places: Signal<Local, Bits<8>>,
    rebased: Signal<Local, Bits<8>>,
    exponent: Signal<Local, Bits<8>>,
    fraction: Signal<Local, Bits<10>>,
    half: Signal<Local, Bits<19>>,
    brain: Signal<Local, Bits<19>>,
    result: DFF<Bits<19>>,
}

impl ToOperand16 {
    /// Cycles from the input to the result.
    pub const LATENCY: usize = 1;
}

impl Logic for ToOperand16 {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, result);
        self.half_exponent.next = self.value.val().get_bits::<5>(10);
        self.half_special.next = self.half_exponent.val().all();
        self.half_subnormal.next = !self.half_exponent.val().any();
        self.s0.next = self.value.val().get_bits::<10>(0);
        self.half_nan.next = self.half_special.val() & self.s0.val().any();
        self.brain_special.next = self.value.val().get_bits::<8>(7).all();
        self.brain_nan.next = self.brain_special.val() & self.value.val().get_bits::<7>(0).any();
        // A subnormal fraction moves up until its leading one drops out of the top.
        self.places.next = 1.into();
        self.s8.next = self.s0.val();
        if !self.s0.val().get_bits::<8>(2).any() {
            self.s8.next = self.s0.val() << 8;
            self.places.next = 9.into();
        }
        self.s4.next = self.s8.val();
        if !self.s8.val().get_bits::<4>(6).any() {
            self.s4.next = self.s8.val() << 4;
            self.places.next = self.places.val() + 4;
        }
        self.s2.next = self.s4.val();
        if !self.s4.val().get_bits::<2>(8).any() {
            self.s2.next = self.s4.val() << 2;
            self.places.next = self.places.val() + 2;
        }
        self.s1.next = self.s2.val();
        if !self.s2.val().get_bit(9) {
            self.s1.next = self.s2.val() << 1;
            self.places.next = self.places.val() + 1;
        }
        self.rebased.next = bit_cast::<8, 5>(self.half_exponent.val()) + 112;
        self.exponent.next = self.rebased.val();
        self.fraction.next = self.s0.val();
        if self.half_special.val() {
            self.exponent.next = 255.into();
        }
        if self.half_subnormal.val() {
            self.fraction.next = self.s1.val() << 1;
            self.exponent.next = bits::<8>(113) - self.places.val();
            if !self.s0.val().any() {
                self.exponent.next = 0.into();
            }
        }
        self.half_sign.next = 0.into();
        if self.value.val().get_bit(15) {
            self.half_sign.next = 0x4_0000.into();
        }
        self.half.next = ((bit_cast::<19, 8>(self.exponent.val()) << 10) | bit_cast::<19, 10>(self.fraction.val())) | self.half_sign.val();
        self.brain.next = bit_cast::<19, 16>(self.value.val()) << 3;
        self.result.d.next = self.half.val();
        if self.half_nan.val() {
            self.result.d.next = 0x3_FE00.into();
        }
        if self.bf16.val() {
            self.result.d.next = self.brain.val();
            if self.brain_nan.val() {
                self.result.d.next = 0x3_FE00.into();
            }
        }
        self.operand.next = self.result.q.val();
    }
}

/// fp32 to operand, to nearest even.
#[derive(LogicBlock, Default)]
pub struct ToOperand32 {
    pub clock: Signal<In, Clock>,
    pub value: Signal<In, Bits<32>>,
    pub operand: Signal<Out, Bits<19>>,
    special: Signal<Local, Bit>,
    nan: Signal<Local, Bit>,
    round_up: Signal<Local, Bit>,
    kept: Signal<Local, Bits<19>>,
    rounded: Signal<Local, Bits<19>>,
    sign: Signal<Local, Bits<19>>,
    result: DFF<Bits<19>>,
}

impl ToOperand32 {
    /// Cycles from the input to the result.
    pub const LATENCY: usize = 1;
}

impl Logic for ToOperand32 {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, result);
        self.special.next = self.value.val().get_bits::<8>(23).all();
        self.nan.next = self.special.val() & self.value.val().get_bits::<23>(0).any();
        self.kept.next = bit_cast::<19, 18>(self.value.val().get_bits::<18>(13));
        self.round_up.next = self.value.val().get_bit(12) & (self.value.val().get_bit(13) | self.value.val().get_bits::<12>(0).any());
        self.rounded.next = self.kept.val();
        if self.round_up.val() {
            self.rounded.next = self.kept.val() + 1;
        }
        self.sign.next = 0.into();
        if self.value.val().get_bit(31) {
            self.sign.next = 0x4_0000.into();
        }
        self.result.d.next = self.rounded.val() | self.sign.val();
        if self.nan.val() {
            self.result.d.next = 0x3_FE00.into();
        }
        self.operand.next = self.result.q.val();
    }
}
