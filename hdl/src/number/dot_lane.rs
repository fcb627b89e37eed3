//! One lane of the dot-product unit, and the accumulator's lane beside it.
//!
//! ```text
//!            +-----------+
//!  a ------->| 1 multiply|--> exponent, flags     (registered, to the maximum tree)
//!  b ------->| 2 wait    |
//!  enable -->|           |<-- reference           (maximum exponent, registered by the caller)
//!            | 3 align   |--> term                (two's complement, 34 bits)
//!            +-----------+
//! ```
//!
//! Latency: exponent and flags 1 cycle, term 3 cycles; one operation a cycle.
//!
//! The product of two 11-bit significands has 22 bits; it stands at the top of a 32-bit field (eight bits below an fp32 significand), and two more bits
//! hold the sign and the carry of the first addition.

use rust_hdl::prelude::*;

/// A multiplier with its aligner.
#[derive(LogicBlock, Default)]
pub struct DotLane {
    pub clock: Signal<In, Clock>,
    /// Stationary operand.
    pub a: Signal<In, Bits<19>>,
    /// Streaming operand.
    pub b: Signal<In, Bits<19>>,
    /// A disabled lane adds nothing, whatever its operands hold.
    pub enable: Signal<In, Bit>,
    /// Exponent of the field's top bit, one cycle after `exponent`.
    pub reference: Signal<In, Bits<9>>,
    /// Exponent t of the product, 0 for a zero.
    pub exponent: Signal<Out, Bits<9>>,
    pub nan: Signal<Out, Bit>,
    pub infinite: Signal<Out, Bit>,
    pub sign: Signal<Out, Bit>,
    /// The lane counts and its product is not negative.
    pub positive: Signal<Out, Bit>,
    pub term: Signal<Out, Bits<34>>,
    // 1: multiply
    a_exponent: Signal<Local, Bits<8>>,
    b_exponent: Signal<Local, Bits<8>>,
    a_special: Signal<Local, Bit>,
    b_special: Signal<Local, Bit>,
    a_fraction: Signal<Local, Bit>,
    b_fraction: Signal<Local, Bit>,
    a_zero: Signal<Local, Bit>,
    b_zero: Signal<Local, Bit>,
    live: Signal<Local, Bit>,
    a_significand: Signal<Local, Bits<16>>,
    b_significand: Signal<Local, Bits<16>>,
    a_effective: Signal<Local, Bits<9>>,
    b_effective: Signal<Local, Bits<9>>,
    product_sign: Signal<Local, Bit>,
    full_product: Signal<Local, Bits<32>>,
    product: DFF<Bits<22>>,
    product_exponent: DFF<Bits<9>>,
    product_negative: DFF<Bit>,
    product_positive: DFF<Bit>,
    product_nan: DFF<Bit>,
    product_infinite: DFF<Bit>,
    // 2: wait for the reference
    waiting_product: DFF<Bits<22>>,
    waiting_exponent: DFF<Bits<9>>,
    waiting_negative: DFF<Bit>,
    // 3: align
    distance: Signal<Local, Bits<9>>,
    field: Signal<Local, Bits<32>>,
    shifted: Signal<Local, Bits<32>>,
    magnitude: Signal<Local, Bits<34>>,
    aligned: DFF<Bits<34>>,
}

impl Logic for DotLane {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            product,
            product_exponent,
            product_negative,
            product_positive,
            product_nan,
            product_infinite,
            waiting_product,
            waiting_exponent,
            waiting_negative,
            aligned
        );
        self.a_exponent.next = self.a.val().get_bits::<8>(10);
        self.b_exponent.next = self.b.val().get_bits::<8>(10);
        self.a_special.next = self.a_exponent.val().all();
        self.b_special.next = self.b_exponent.val().all();
        self.a_fraction.next = self.a.val().get_bits::<10>(0).any();
        self.b_fraction.next = self.b.val().get_bits::<10>(0).any();
        self.a_zero.next = !self.a.val().get_bits::<18>(0).any();
        self.b_zero.next = !self.b.val().get_bits::<18>(0).any();
        self.live.next = (self.enable.val() & !self.a_zero.val()) & !self.b_zero.val();
        self.a_significand.next = self.a.val().get_bits::<16>(0) & 0x3FF;
        self.a_effective.next = bit_cast::<9, 8>(self.a_exponent.val());
        if self.a_exponent.val().any() {
            self.a_significand.next = (self.a.val().get_bits::<16>(0) & 0x3FF) | 0x400;
        } else {
            self.a_effective.next = 1.into();
        }
        self.b_significand.next = self.b.val().get_bits::<16>(0) & 0x3FF;
        self.b_effective.next = bit_cast::<9, 8>(self.b_exponent.val());
        if self.b_exponent.val().any() {
            self.b_significand.next = (self.b.val().get_bits::<16>(0) & 0x3FF) | 0x400;
        } else {
            self.b_effective.next = 1.into();
        }
        self.product_sign.next = self.a.val().get_bit(18) ^ self.b.val().get_bit(18);
        self.full_product.next = self.a_significand.val() * self.b_significand.val();
        self.product.d.next = 0.into();
        self.product_exponent.d.next = 0.into();
        if self.live.val() {
            self.product.d.next = self.full_product.val().get_bits::<22>(0);
            self.product_exponent.d.next = self.a_effective.val() + self.b_effective.val();
        }
        self.product_negative.d.next = self.product_sign.val();
        self.product_positive.d.next = self.enable.val() & !self.product_sign.val();
        self.product_nan.d.next = self.enable.val()
            & (((self.a_special.val() & self.a_fraction.val()) | (self.b_special.val() & self.b_fraction.val()))
                | ((self.a_special.val() & self.b_zero.val()) | (self.b_special.val() & self.a_zero.val())));
        self.product_infinite.d.next = self.enable.val() & (self.a_special.val() | self.b_special.val());
        self.exponent.next = self.product_exponent.q.val();
        self.nan.next = self.product_nan.q.val();
        self.infinite.next = self.product_infinite.q.val();
        self.sign.next = self.product_negative.q.val();
        self.positive.next = self.product_positive.q.val();

        self.waiting_product.d.next = self.product.q.val();
        self.waiting_exponent.d.next = self.product_exponent.q.val();
        self.waiting_negative.d.next = self.product_negative.q.val();

        self.distance.next = self.reference.val() - self.waiting_exponent.q.val();
        self.field.next = bit_cast::<32, 22>(self.waiting_product.q.val()) << 10;
        self.shifted.next = self.field.val() >> self.distance.val();
        self.magnitude.next = bit_cast::<34, 32>(self.shifted.val());
        self.aligned.d.next = self.magnitude.val();
        if self.waiting_negative.q.val() {
            self.aligned.d.next = bits::<34>(0) - self.magnitude.val();
        }
        self.term.next = self.aligned.q.val();
    }
}

/// The accumulator's lane: decodes an fp32, scales it by `2^-shift`, aligns it like a product.
#[derive(LogicBlock, Default)]
pub struct AccumulatorLane {
    pub clock: Signal<In, Clock>,
    /// fp32.
    pub acc: Signal<In, Bits<32>>,
    /// Binary places to scale down; 511 means times zero.
    pub shift: Signal<In, Bits<9>>,
    /// Take +0 instead of `acc`.
    pub first: Signal<In, Bit>,
    pub reference: Signal<In, Bits<9>>,
    pub exponent: Signal<Out, Bits<9>>,
    pub nan: Signal<Out, Bit>,
    pub infinite: Signal<Out, Bit>,
    pub sign: Signal<Out, Bit>,
    pub term: Signal<Out, Bits<34>>,
    // 1: decode
    value: Signal<Local, Bits<32>>,
    field_exponent: Signal<Local, Bits<8>>,
    special: Signal<Local, Bit>,
    fraction: Signal<Local, Bit>,
    wiped: Signal<Local, Bit>,
    raised: Signal<Local, Bits<10>>,
    count: Signal<Local, Bits<10>>,
    lowered: Signal<Local, Bits<10>>,
    significand: DFF<Bits<24>>,
    scaled_exponent: DFF<Bits<9>>,
    negative: DFF<Bit>,
    is_nan: DFF<Bit>,
    is_infinite: DFF<Bit>,
    // 2: wait for the reference
    waiting_significand: DFF<Bits<24>>,
    waiting_exponent: DFF<Bits<9>>,
    waiting_negative: DFF<Bit>,
    // 3: align
    distance: Signal<Local, Bits<9>>,
    field: Signal<Local, Bits<32>>,
    shifted: Signal<Local, Bits<32>>,
    magnitude: Signal<Local, Bits<34>>,
    aligned: DFF<Bits<34>>,
}

impl Logic for AccumulatorLane {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            significand,
            scaled_exponent,
            negative,
            is_nan,
            is_infinite,
            waiting_significand,
            waiting_exponent,
            waiting_negative,
            aligned
        );
        self.value.next = self.acc.val();
        if self.first.val() {
            self.value.next = 0.into();
        }
        self.field_exponent.next = self.value.val().get_bits::<8>(23);
        self.special.next = self.field_exponent.val().all();
        self.fraction.next = self.value.val().get_bits::<23>(0).any();
        self.wiped.next = self.shift.val().all();
        // t = max(e, 1) + 126 - k; anything below 91 falls out of the field, so a negative t may be 0.
        self.raised.next = bit_cast::<10, 8>(self.field_exponent.val()) + 126;
        if !self.field_exponent.val().any() {
            self.raised.next = 127.into();
        }
        self.count.next = bit_cast::<10, 9>(self.shift.val());
        self.lowered.next = self.raised.val() - self.count.val();
        self.significand.d.next = bit_cast::<24, 23>(self.value.val().get_bits::<23>(0)) | 0x80_0000;
        self.scaled_exponent.d.next = self.lowered.val().get_bits::<9>(0);
        if !self.field_exponent.val().any() {
            self.significand.d.next = bit_cast::<24, 23>(self.value.val().get_bits::<23>(0));
            if !self.fraction.val() {
                self.scaled_exponent.d.next = 0.into();
            }
        }
        if self.wiped.val() | (self.count.val() > self.raised.val()) {
            self.significand.d.next = 0.into();
            self.scaled_exponent.d.next = 0.into();
        }
        self.negative.d.next = self.value.val().get_bit(31);
        self.is_nan.d.next = self.special.val() & (self.fraction.val() | self.wiped.val());
        self.is_infinite.d.next = self.special.val();
        self.exponent.next = self.scaled_exponent.q.val();
        self.nan.next = self.is_nan.q.val();
        self.infinite.next = self.is_infinite.q.val();
        self.sign.next = self.negative.q.val();

        self.waiting_significand.d.next = self.significand.q.val();
        self.waiting_exponent.d.next = self.scaled_exponent.q.val();
        self.waiting_negative.d.next = self.negative.q.val();

        self.distance.next = self.reference.val() - self.waiting_exponent.q.val();
        self.field.next = bit_cast::<32, 24>(self.waiting_significand.q.val()) << 8;
        self.shifted.next = self.field.val() >> self.distance.val();
        self.magnitude.next = bit_cast::<34, 32>(self.shifted.val());
        self.aligned.d.next = self.magnitude.val();
        if self.waiting_negative.q.val() {
            self.aligned.d.next = bits::<34>(0) - self.magnitude.val();
        }
        self.term.next = self.aligned.q.val();
    }
}
