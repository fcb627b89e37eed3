//! Small fp32 units: maximum, ceil, and the shift count of a difference.
//!
//! ```text
//!  a, b --> Max32 --> result (latency 1)     value --> Ceil32 --> result (latency 2)     difference --> ShiftCount --> count (latency 1)
//! ```
//!
//! One value a cycle each.

use rust_hdl::prelude::*;

/// The larger of two fp32; NaN if either is; +0 above -0.
#[derive(LogicBlock, Default)]
pub struct Max32 {
    pub clock: Signal<In, Clock>,
    pub a: Signal<In, Bits<32>>,
    pub b: Signal<In, Bits<32>>,
    pub result: Signal<Out, Bits<32>>,
    a_key: Signal<Local, Bits<32>>,
    b_key: Signal<Local, Bits<32>>,
    nan: Signal<Local, Bit>,
    larger: DFF<Bits<32>>,
}

impl Max32 {
    /// Cycles from the inputs to the result.
    pub const LATENCY: usize = 1;
}

impl Logic for Max32 {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, larger);
        // Keys order like the values: negative ones inverted, positive ones above them.
        self.a_key.next = self.a.val() | 0x8000_0000_u64;
        if self.a.val().get_bit(31) {
            self.a_key.next = !self.a.val();
        }
        self.b_key.next = self.b.val() | 0x8000_0000_u64;
        if self.b.val().get_bit(31) {
            self.b_key.next = !self.b.val();
        }
        self.nan.next = (self.a.val().get_bits::<8>(23).all() & self.a.val().get_bits::<23>(0).any())
            | (self.b.val().get_bits::<8>(23).all() & self.b.val().get_bits::<23>(0).any());
        self.larger.d.next = self.b.val();
        if self.a_key.val() > self.b_key.val() {
            self.larger.d.next = self.a.val();
        }
        if self.nan.val() {
            self.larger.d.next = 0x7FC0_0000.into();
        }
        self.result.next = self.larger.q.val();
    }
}

/// The smallest integral value not below the input, with its sign when it is zero.
#[derive(LogicBlock, Default)]
pub struct Ceil32 {
    pub clock: Signal<In, Clock>,
    pub value: Signal<In, Bits<32>>,
    pub result: Signal<Out, Bits<32>>,
    exponent: Signal<Local, Bits<8>>,
    places: Signal<Local, Bits<8>>,
    below_point: DFF<Bits<32>>,
    kept: DFF<Bits<32>>,
    nan: DFF<Bit>,
    integral: DFF<Bit>,
    small: DFF<Bit>,
    zero: DFF<Bit>,
    truncated: Signal<Local, Bits<32>>,
    inexact: Signal<Local, Bit>,
    rounded: DFF<Bits<32>>,
}

impl Ceil32 {
    /// Cycles from the input to the result.
    pub const LATENCY: usize = 2;
}

impl Logic for Ceil32 {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, below_point, kept, nan, integral, small, zero, rounded);
        // 1: which bits of the fraction lie below the point
        self.exponent.next = self.value.val().get_bits::<8>(23);
        self.places.next = self.exponent.val() - 127;
        self.below_point.d.next = bits::<32>(0x7F_FFFF) >> self.places.val();
        self.kept.d.next = self.value.val();
        self.nan.d.next = self.exponent.val().all() & self.value.val().get_bits::<23>(0).any();
        self.integral.d.next = self.exponent.val() >= 150;
        self.small.d.next = self.exponent.val() < 127;
        self.zero.d.next = !self.value.val().get_bits::<31>(0).any();
        // 2: cut them off, and go up if a positive value lost something
        self.truncated.next = self.kept.q.val() & !self.below_point.q.val();
        self.inexact.next = (self.kept.q.val() & self.below_point.q.val()).any();
        self.rounded.d.next = self.truncated.val();
        if self.inexact.val() & !self.kept.q.val().get_bit(31) {
            self.rounded.d.next = self.truncated.val() + (self.below_point.q.val() + 1);
        }
        if self.small.q.val() {
            self.rounded.d.next = 0x3F80_0000.into();
            if self.zero.q.val() | self.kept.q.val().get_bit(31) {
                self.rounded.d.next = self.kept.q.val() & 0x8000_0000_u64;
            }
        }
        if self.integral.q.val() {
            self.rounded.d.next = self.kept.q.val();
        }
        if self.nan.q.val() {
            self.rounded.d.next = 0x7FC0_0000.into();
        }
        self.result.next = self.rounded.q.val();
    }
}

/// An fp32 difference of maxima as a shift count: NaN and anything not positive 0, infinity 511, 510 and above 510, else truncated.
#[derive(LogicBlock, Default)]
pub struct ShiftCount {
    pub clock: Signal<In, Clock>,
    pub difference: Signal<In, Bits<32>>,
    pub count: Signal<Out, Bits<9>>,
    exponent: Signal<Local, Bits<8>>,
    places: Signal<Local, Bits<8>>,
    significand: Signal<Local, Bits<24>>,
    integer: Signal<Local, Bits<24>>,
    low: Signal<Local, Bits<9>>,
    result: DFF<Bits<9>>,
}

impl ShiftCount {
    /// Cycles from the input to the result.
    pub const LATENCY: usize = 1;
}

impl Logic for ShiftCount {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, result);
        self.exponent.next = self.difference.val().get_bits::<8>(23);
        self.places.next = bits::<8>(150) - self.exponent.val();
        self.significand.next = bit_cast::<24, 23>(self.difference.val().get_bits::<23>(0)) | 0x80_0000;
        self.integer.next = self.significand.val() >> self.places.val();
        self.low.next = self.integer.val().get_bits::<9>(0);
        self.result.d.next = self.low.val();
        if (self.exponent.val() >= 136) | self.low.val().all() {
            self.result.d.next = 510.into();
        }
        if self.exponent.val().all() {
            self.result.d.next = 511.into();
            if self.difference.val().get_bits::<23>(0).any() {
                self.result.d.next = 0.into();
            }
        }
        if (self.exponent.val() < 127) | self.difference.val().get_bit(31) {
            self.result.d.next = 0.into();
        }
        self.count.next = self.result.q.val();
    }
}
