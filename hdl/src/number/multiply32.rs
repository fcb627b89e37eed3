//! fp32 multiplier, IEEE 754 with subnormals.
//!
//! ```text
//!  a --> 1 decode, four 12 x 12 products | 2 sum | 3 leading zeros | 4 normalise | 5 round and pack --> result
//!  b -->
//! ```
//!
//! Latency 5 cycles, one product a cycle. The 48-bit product is moved left by its leading zeros, but not below exponent 1, or right by the
//! missing exponent with a sticky bit.

use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Multiply32 {
    pub clock: Signal<In, Clock>,
    pub a: Signal<In, Bits<32>>,
    pub b: Signal<In, Bits<32>>,
    pub result: Signal<Out, Bits<32>>,
    // 1
    a_exponent: Signal<Local, Bits<8>>,
    b_exponent: Signal<Local, Bits<8>>,
    a_fraction: Signal<Local, Bits<23>>,
    b_fraction: Signal<Local, Bits<23>>,
    a_special: Signal<Local, Bit>,
    b_special: Signal<Local, Bit>,
    a_zero: Signal<Local, Bit>,
    b_zero: Signal<Local, Bit>,
    a_significand: Signal<Local, Bits<24>>,
    b_significand: Signal<Local, Bits<24>>,
    a_effective: Signal<Local, Bits<10>>,
    b_effective: Signal<Local, Bits<10>>,
    a_low: Signal<Local, Bits<16>>,
    a_high: Signal<Local, Bits<16>>,
    b_low: Signal<Local, Bits<16>>,
    b_high: Signal<Local, Bits<16>>,
    low_low: DFF<Bits<32>>,
    low_high: DFF<Bits<32>>,
    high_low: DFF<Bits<32>>,
    high_high: DFF<Bits<32>>,
    exponents: DFF<Bits<10>>,
    sign1: DFF<Bit>,
    nan1: DFF<Bit>,
    infinite1: DFF<Bit>,
    // 2
    middle: Signal<Local, Bits<48>>,
    outer: Signal<Local, Bits<48>>,
    product: DFF<Bits<48>>,
    exponents2: DFF<Bits<10>>,
    sign2: DFF<Bit>,
    nan2: DFF<Bit>,
    infinite2: DFF<Bit>,
    // 3
    n32: Signal<Local, Bits<48>>,
    n16: Signal<Local, Bits<48>>,
    n8: Signal<Local, Bits<48>>,
    n4: Signal<Local, Bits<48>>,
    n2: Signal<Local, Bits<48>>,
    zeros: Signal<Local, Bits<10>>,
    below: Signal<Local, Bit>,
    headroom: Signal<Local, Bits<10>>,
    deficit: Signal<Local, Bits<10>>,
    product3: DFF<Bits<48>>,
    left: DFF<Bits<6>>,
    right: DFF<Bits<6>>,
    exponent: DFF<Bits<10>>,
    sign3: DFF<Bit>,
    nan3: DFF<Bit>,
    infinite3: DFF<Bit>,
    // 4
    moved_left: Signal<Local, Bits<48>>,
    moved_right: Signal<Local, Bits<48>>,
    moved_back: Signal<Local, Bits<48>>,
    lost: Signal<Local, Bit>,
    normal: DFF<Bits<48>>,
    lost4: DFF<Bit>,
    exponent4: DFF<Bits<10>>,
    sign4: DFF<Bit>,
    nan4: DFF<Bit>,
    infinite4: DFF<Bit>,
    // 5
    sticky: Signal<Local, Bit>,
    round_up: Signal<Local, Bit>,
    biased: Signal<Local, Bits<33>>,
    fraction: Signal<Local, Bits<33>>,
    unrounded: Signal<Local, Bits<33>>,
    rounded: Signal<Local, Bits<33>>,
    magnitude: Signal<Local, Bits<32>>,
    rounded_result: DFF<Bits<32>>,
}

impl Multiply32 {
    /// Cycles from the inputs to the result.
    pub const LATENCY: usize = 5;
}

impl Logic for Multiply32 {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            low_low,
            low_high,
            high_low,
            high_high,
            exponents,
            sign1,
            nan1,
            infinite1,
            product,
            exponents2,
            sign2,
            nan2,
            infinite2,
            product3,
            left,
            right,
            exponent,
            sign3,
            nan3,
            infinite3,
            normal,
            lost4,
            exponent4,
            sign4,
            nan4,
            infinite4,
            rounded_result
        );
        // 1: decode and partial products
        self.a_exponent.next = self.a.val().get_bits::<8>(23);
        self.b_exponent.next = self.b.val().get_bits::<8>(23);
        self.a_fraction.next = self.a.val().get_bits::<23>(0);
        self.b_fraction.next = self.b.val().get_bits::<23>(0);
        self.a_special.next = self.a_exponent.val().all();
        self.b_special.next = self.b_exponent.val().all();
        self.a_zero.next = !self.a.val().get_bits::<31>(0).any();
        self.b_zero.next = !self.b.val().get_bits::<31>(0).any();
        self.a_significand.next = bit_cast::<24, 23>(self.a_fraction.val());
        self.a_effective.next = 1.into();
        if self.a_exponent.val().any() {
            self.a_significand.next = bit_cast::<24, 23>(self.a_fraction.val()) | 0x80_0000;
            self.a_effective.next = bit_cast::<10, 8>(self.a_exponent.val());
        }
        self.b_significand.next = bit_cast::<24, 23>(self.b_fraction.val());
        self.b_effective.next = 1.into();
        if self.b_exponent.val().any() {
            self.b_significand.next = bit_cast::<24, 23>(self.b_fraction.val()) | 0x80_0000;
            self.b_effective.next = bit_cast::<10, 8>(self.b_exponent.val());
        }
        self.a_low.next = bit_cast::<16, 12>(self.a_significand.val().get_bits::<12>(0));
        self.a_high.next = bit_cast::<16, 12>(self.a_significand.val().get_bits::<12>(12));
        self.b_low.next = bit_cast::<16, 12>(self.b_significand.val().get_bits::<12>(0));
        self.b_high.next = bit_cast::<16, 12>(self.b_significand.val().get_bits::<12>(12));
        self.low_low.d.next = self.a_low.val() * self.b_low.val();
        self.low_high.d.next = self.a_low.val() * self.b_high.val();
        self.high_low.d.next = self.a_high.val() * self.b_low.val();
        self.high_high.d.next = self.a_high.val() * self.b_high.val();
        self.exponents.d.next = self.a_effective.val() + self.b_effective.val();
        self.sign1.d.next = self.a.val().get_bit(31) ^ self.b.val().get_bit(31);
        self.nan1.d.next = ((self.a_special.val() & self.a_fraction.val().any()) | (self.b_special.val() & self.b_fraction.val().any()))
            | ((self.a_special.val() & self.b_zero.val()) | (self.b_special.val() & self.a_zero.val()));
        self.infinite1.d.next = self.a_special.val() | self.b_special.val();
        // 2: 48-bit product; bit 47 has biased exponent e_a + e_b - 126
        self.middle.next = (bit_cast::<48, 32>(self.low_high.q.val()) + bit_cast::<48, 32>(self.high_low.q.val())) << 12;
        self.outer.next = (bit_cast::<48, 32>(self.high_high.q.val()) << 24) | bit_cast::<48, 32>(self.low_low.q.val());
        self.product.d.next = self.middle.val() + self.outer.val();
        self.exponents2.d.next = self.exponents.q.val();
        self.sign2.d.next = self.sign1.q.val();
        self.nan2.d.next = self.nan1.q.val();
        self.infinite2.d.next = self.infinite1.q.val();
        // 3: how far to move
        self.zeros.next = 0.into();
        self.n32.next = self.product.q.val();
        if !self.product.q.val().get_bits::<32>(16).any() {
            self.n32.next = self.product.q.val() << 32;
            self.zeros.next = 32.into();
        }
        self.n16.next = self.n32.val();
        if !self.n32.val().get_bits::<16>(32).any() {
            self.n16.next = self.n32.val() << 16;
            self.zeros.next = self.zeros.val() | 16;
        }
        self.n8.next = self.n16.val();
        if !self.n16.val().get_bits::<8>(40).any() {
            self.n8.next = self.n16.val() << 8;
            self.zeros.next = self.zeros.val() | 8;
        }
        self.n4.next = self.n8.val();
        if !self.n8.val().get_bits::<4>(44).any() {
            self.n4.next = self.n8.val() << 4;
            self.zeros.next = self.zeros.val() | 4;
        }
        self.n2.next = self.n4.val();
        if !self.n4.val().get_bits::<2>(46).any() {
            self.n2.next = self.n4.val() << 2;
            self.zeros.next = self.zeros.val() | 2;
        }
        if !self.n2.val().get_bit(47) {
            self.zeros.next = self.zeros.val() | 1;
        }
        self.below.next = self.exponents2.q.val() < 127;
        self.headroom.next = self.exponents2.q.val() - 127;
        self.deficit.next = bits::<10>(127) - self.exponents2.q.val();
        self.product3.d.next = self.product.q.val();
        self.left.d.next = self.zeros.val().get_bits::<6>(0);
        self.right.d.next = 0.into();
        self.exponent.d.next = (self.headroom.val() - self.zeros.val()) + 1;
        if self.below.val() {
            self.left.d.next = 0.into();
            self.exponent.d.next = 1.into();
            self.right.d.next = self.deficit.val().get_bits::<6>(0);
            if self.deficit.val().get_bits::<4>(6).any() {
                self.right.d.next = 63.into();
            }
        } else if self.headroom.val() < self.zeros.val() {
            self.left.d.next = self.headroom.val().get_bits::<6>(0);
            self.exponent.d.next = 1.into();
        }
        self.sign3.d.next = self.sign2.q.val();
        self.nan3.d.next = self.nan2.q.val();
        self.infinite3.d.next = self.infinite2.q.val();
        // 4: move
        self.moved_left.next = self.product3.q.val() << self.left.q.val();
        self.moved_right.next = self.product3.q.val() >> self.right.q.val();
        self.moved_back.next = self.moved_right.val() << self.right.q.val();
        self.lost.next = self.moved_back.val() != self.product3.q.val();
        self.normal.d.next = self.moved_left.val();
        self.lost4.d.next = false;
        if self.right.q.val().any() {
            self.normal.d.next = self.moved_right.val();
            self.lost4.d.next = self.lost.val();
        }
        self.exponent4.d.next = self.exponent.q.val();
        self.sign4.d.next = self.sign3.q.val();
        self.nan4.d.next = self.nan3.q.val();
        self.infinite4.d.next = self.infinite3.q.val();
        // 5: round and pack
        self.sticky.next = self.lost4.q.val() | self.normal.q.val().get_bits::<23>(0).any();
        self.round_up.next = self.normal.q.val().get_bit(23) & (self.sticky.val() | self.normal.q.val().get_bit(24));
        self.biased.next = 0.into();
        if self.normal.q.val().get_bit(47) {
            self.biased.next = bit_cast::<33, 10>(self.exponent4.q.val());
        }
        self.fraction.next = bit_cast::<33, 23>(self.normal.q.val().get_bits::<23>(24));
        self.unrounded.next = (self.biased.val() << 23) | self.fraction.val();
        self.rounded.next = self.unrounded.val();
        if self.round_up.val() {
            self.rounded.next = self.unrounded.val() + 1;
        }
        self.magnitude.next = bit_cast::<32, 31>(self.rounded.val().get_bits::<31>(0));
        if self.infinite4.q.val() | (self.rounded.val().get_bits::<10>(23) >= 255) {
            self.magnitude.next = 0x7F80_0000.into();
        }
        self.rounded_result.d.next = self.magnitude.val();
        if self.sign4.q.val() {
            self.rounded_result.d.next = self.magnitude.val() | 0x8000_0000_u64;
        }
        if self.nan4.q.val() {
            self.rounded_result.d.next = 0x7FC0_0000.into();
        }
        self.result.next = self.rounded_result.q.val();
    }
}
