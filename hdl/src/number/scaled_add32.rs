//! fp32 adder that scales either addend by a power of two first.
//!
//! ```text
//!  a, ka --> 1 decode | 2 order | 3 align | 4 add | 5 leading zeros | 6 normalise | 7 round and pack --> result
//!  b, kb -->
//! ```
//!
//! `a * 2^-ka + b * 2^-kb`, one rounding; at least one of ka, kb is 0, and 511 means times zero. With both 0 it is the IEEE sum.
//! Latency 7 cycles, one sum a cycle.
//!
//! Exponents are biased by 512 more than fp32's, so that a scaled one stays positive. Three bits below the significand (guard, round, sticky) are enough,
//! because at most one addend is moved.

use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct ScaledAdd32 {
    pub clock: Signal<In, Clock>,
    pub a: Signal<In, Bits<32>>,
    pub ka: Signal<In, Bits<9>>,
    pub b: Signal<In, Bits<32>>,
    pub kb: Signal<In, Bits<9>>,
    pub result: Signal<Out, Bits<32>>,
    // 1
    a_exponent: Signal<Local, Bits<8>>,
    b_exponent: Signal<Local, Bits<8>>,
    a_fraction: Signal<Local, Bits<23>>,
    b_fraction: Signal<Local, Bits<23>>,
    a_special: Signal<Local, Bit>,
    b_special: Signal<Local, Bit>,
    a_wiped: Signal<Local, Bit>,
    b_wiped: Signal<Local, Bit>,
    a_effective: Signal<Local, Bits<10>>,
    b_effective: Signal<Local, Bits<10>>,
    a_none: Signal<Local, Bit>,
    b_none: Signal<Local, Bit>,
    a_significand: DFF<Bits<24>>,
    b_significand: DFF<Bits<24>>,
    a_scaled: DFF<Bits<10>>,
    b_scaled: DFF<Bits<10>>,
    a_sign: DFF<Bit>,
    b_sign: DFF<Bit>,
    nan1: DFF<Bit>,
    infinite1: DFF<Bit>,
    infinite_sign1: DFF<Bit>,
    // 2
    a_larger: Signal<Local, Bit>,
    largest: Signal<Local, Bits<10>>,
    smaller: Signal<Local, Bits<10>>,
    sunk: Signal<Local, Bit>,
    a_stays: Signal<Local, Bit>,
    distance: Signal<Local, Bits<10>>,
    stays: DFF<Bits<24>>,
    moves: DFF<Bits<24>>,
    stays_sign: DFF<Bit>,
    moves_sign: DFF<Bit>,
    reference2: DFF<Bits<10>>,
    places: DFF<Bits<5>>,
    nan2: DFF<Bit>,
    infinite2: DFF<Bit>,
    infinite_sign2: DFF<Bit>,
    // 3
    field: Signal<Local, Bits<27>>,
    shifted: Signal<Local, Bits<27>>,
    back: Signal<Local, Bits<27>>,
    aligned: DFF<Bits<27>>,
    stays3: DFF<Bits<27>>,
    stays_sign3: DFF<Bit>,
    moves_sign3: DFF<Bit>,
    reference3: DFF<Bits<10>>,
    nan3: DFF<Bit>,
    infinite3: DFF<Bit>,
    infinite_sign3: DFF<Bit>,
    // 4
    wide_stays: Signal<Local, Bits<29>>,
    wide_moves: Signal<Local, Bits<29>>,
    sum: DFF<Bits<29>>,
    stays_sign4: DFF<Bit>,
    zero_sign4: DFF<Bit>,
    reference4: DFF<Bits<10>>,
    nan4: DFF<Bit>,
    infinite4: DFF<Bit>,
    infinite_sign4: DFF<Bit>,
    // 5
    negated: Signal<Local, Bits<29>>,
    absolute: Signal<Local, Bits<28>>,
    n16: Signal<Local, Bits<28>>,
    n8: Signal<Local, Bits<28>>,
    n4: Signal<Local, Bits<28>>,
    n2: Signal<Local, Bits<28>>,
    zeros: Signal<Local, Bits<10>>,
    headroom: Signal<Local, Bits<10>>,
    limited: Signal<Local, Bits<10>>,
    magnitude: DFF<Bits<28>>,
    left: DFF<Bits<5>>,
    exponent5: DFF<Bits<10>>,
    sign5: DFF<Bit>,
    nan5: DFF<Bit>,
    infinite5: DFF<Bit>,
    infinite_sign5: DFF<Bit>,
    // 6
    normal: DFF<Bits<28>>,
    exponent6: DFF<Bits<10>>,
    sign6: DFF<Bit>,
    nan6: DFF<Bit>,
    infinite6: DFF<Bit>,
    infinite_sign6: DFF<Bit>,
    // 7
    round_up: Signal<Local, Bit>,
    biased: Signal<Local, Bits<33>>,
    fraction: Signal<Local, Bits<33>>,
    unrounded: Signal<Local, Bits<33>>,
    rounded: Signal<Local, Bits<33>>,
    packed: Signal<Local, Bits<32>>,
    sign: Signal<Local, Bit>,
    rounded_result: DFF<Bits<32>>,
}

impl ScaledAdd32 {
    /// Cycles from the inputs to the result.
    pub const LATENCY: usize = 7;
}

impl Logic for ScaledAdd32 {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            a_significand,
            b_significand,
            a_scaled,
            b_scaled,
            a_sign,
            b_sign,
            nan1,
            infinite1,
            infinite_sign1,
            stays,
            moves,
            stays_sign,
            moves_sign,
            reference2,
            places,
            nan2,
            infinite2,
            infinite_sign2,
            aligned,
            stays3,
            stays_sign3,
            moves_sign3,
            reference3,
            nan3,
            infinite3,
            infinite_sign3,
            sum,
            stays_sign4,
            zero_sign4,
            reference4,
            nan4,
            infinite4,
            infinite_sign4,
            magnitude,
            left,
            exponent5,
            sign5,
            nan5,
            infinite5,
            infinite_sign5,
            normal,
            exponent6,
            sign6,
            nan6,
            infinite6,
            infinite_sign6,
            rounded_result
        );
        // 1: decode and scale
        self.a_exponent.next = self.a.val().get_bits::<8>(23);
        self.b_exponent.next = self.b.val().get_bits::<8>(23);
        self.a_fraction.next = self.a.val().get_bits::<23>(0);
        self.b_fraction.next = self.b.val().get_bits::<23>(0);
        self.a_special.next = self.a_exponent.val().all();
        self.b_special.next = self.b_exponent.val().all();
        self.a_wiped.next = self.ka.val().all();
        self.b_wiped.next = self.kb.val().all();
        self.a_none.next = self.a_wiped.val() | !self.a.val().get_bits::<31>(0).any();
        self.b_none.next = self.b_wiped.val() | !self.b.val().get_bits::<31>(0).any();
        self.a_significand.d.next = bit_cast::<24, 23>(self.a_fraction.val());
        self.a_effective.next = 513.into();
        if self.a_exponent.val().any() {
            self.a_significand.d.next = bit_cast::<24, 23>(self.a_fraction.val()) | 0x80_0000;
            self.a_effective.next = bit_cast::<10, 8>(self.a_exponent.val()) + 512;
        }
        self.a_scaled.d.next = self.a_effective.val() - bit_cast::<10, 9>(self.ka.val());
        if self.a_none.val() {
            self.a_significand.d.next = 0.into();
            self.a_scaled.d.next = 0.into();
        }
        self.b_significand.d.next = bit_cast::<24, 23>(self.b_fraction.val());
        self.b_effective.next = 513.into();
        if self.b_exponent.val().any() {
            self.b_significand.d.next = bit_cast::<24, 23>(self.b_fraction.val()) | 0x80_0000;
            self.b_effective.next = bit_cast::<10, 8>(self.b_exponent.val()) + 512;
        }
        self.b_scaled.d.next = self.b_effective.val() - bit_cast::<10, 9>(self.kb.val());
        if self.b_none.val() {
            self.b_significand.d.next = 0.into();
            self.b_scaled.d.next = 0.into();
        }
        self.a_sign.d.next = self.a.val().get_bit(31);
        self.b_sign.d.next = self.b.val().get_bit(31);
        self.nan1.d.next = ((self.a_special.val() & (self.a_fraction.val().any() | self.a_wiped.val()))
            | (self.b_special.val() & (self.b_fraction.val().any() | self.b_wiped.val())))
            | ((self.a_special.val() & self.b_special.val()) & (self.a.val().get_bit(31) ^ self.b.val().get_bit(31)));
        self.infinite1.d.next = self.a_special.val() | self.b_special.val();
        self.infinite_sign1.d.next = self.b.val().get_bit(31);
        if self.a_special.val() {
            self.infinite_sign1.d.next = self.a.val().get_bit(31);
        }
        // 2: the larger exponent stays, unless it lies below the subnormals (then the other addend is 0)
        self.a_larger.next = self.a_scaled.q.val() >= self.b_scaled.q.val();
        self.largest.next = self.b_scaled.q.val();
        self.smaller.next = self.a_scaled.q.val();
        if self.a_larger.val() {
            self.largest.next = self.a_scaled.q.val();
            self.smaller.next = self.b_scaled.q.val();
        }
        self.sunk.next = self.largest.val() < 513;
        self.a_stays.next = self.a_larger.val() ^ self.sunk.val();
        self.distance.next = self.largest.val() - self.smaller.val();
        self.reference2.d.next = self.largest.val();
        if self.sunk.val() {
            self.distance.next = bits::<10>(513) - self.largest.val();
            self.reference2.d.next = 513.into();
        }
        self.places.d.next = self.distance.val().get_bits::<5>(0);
        if self.distance.val().get_bits::<5>(5).any() {
            self.places.d.next = 31.into();
        }
        self.stays.d.next = self.b_significand.q.val();
        self.moves.d.next = self.a_significand.q.val();
        self.stays_sign.d.next = self.b_sign.q.val();
        self.moves_sign.d.next = self.a_sign.q.val();
        if self.a_stays.val() {
            self.stays.d.next = self.a_significand.q.val();
            self.moves.d.next = self.b_significand.q.val();
            self.stays_sign.d.next = self.a_sign.q.val();
            self.moves_sign.d.next = self.b_sign.q.val();
        }
        self.nan2.d.next = self.nan1.q.val();
        self.infinite2.d.next = self.infinite1.q.val();
        self.infinite_sign2.d.next = self.infinite_sign1.q.val();
        // 3: align, keeping what falls out as a sticky bit
        self.field.next = bit_cast::<27, 24>(self.moves.q.val()) << 3;
        self.shifted.next = self.field.val() >> self.places.q.val();
        self.back.next = self.shifted.val() << self.places.q.val();
        self.aligned.d.next = self.shifted.val();
        if self.back.val() != self.field.val() {
            self.aligned.d.next = self.shifted.val() | 1;
        }
        self.stays3.d.next = bit_cast::<27, 24>(self.stays.q.val()) << 3;
        self.stays_sign3.d.next = self.stays_sign.q.val();
        self.moves_sign3.d.next = self.moves_sign.q.val();
        self.reference3.d.next = self.reference2.q.val();
        self.nan3.d.next = self.nan2.q.val();
        self.infinite3.d.next = self.infinite2.q.val();
        self.infinite_sign3.d.next = self.infinite_sign2.q.val();
        // 4: add or subtract
        self.wide_stays.next = bit_cast::<29, 27>(self.stays3.q.val());
        self.wide_moves.next = bit_cast::<29, 27>(self.aligned.q.val());
        self.sum.d.next = self.wide_stays.val() + self.wide_moves.val();
        if self.stays_sign3.q.val() ^ self.moves_sign3.q.val() {
            self.sum.d.next = self.wide_stays.val() - self.wide_moves.val();
        }
        self.stays_sign4.d.next = self.stays_sign3.q.val();
        self.zero_sign4.d.next = self.stays_sign3.q.val() & self.moves_sign3.q.val();
        self.reference4.d.next = self.reference3.q.val();
        self.nan4.d.next = self.nan3.q.val();
        self.infinite4.d.next = self.infinite3.q.val();
        self.infinite_sign4.d.next = self.infinite_sign3.q.val();
        // 5: magnitude and leading zeros; bit 26 has biased exponent reference - 512
        self.negated.next = bits::<29>(0) - self.sum.q.val();
        self.absolute.next = self.sum.q.val().get_bits::<28>(0);
        if self.sum.q.val().get_bit(28) {
            self.absolute.next = self.negated.val().get_bits::<28>(0);
        }
        self.zeros.next = 0.into();
        self.n16.next = self.absolute.val();
        if !self.absolute.val().get_bits::<16>(12).any() {
            self.n16.next = self.absolute.val() << 16;
            self.zeros.next = 16.into();
        }
        self.n8.next = self.n16.val();
        if !self.n16.val().get_bits::<8>(20).any() {
            self.n8.next = self.n16.val() << 8;
            self.zeros.next = self.zeros.val() | 8;
        }
        self.n4.next = self.n8.val();
        if !self.n8.val().get_bits::<4>(24).any() {
            self.n4.next = self.n8.val() << 4;
            self.zeros.next = self.zeros.val() | 4;
        }
        self.n2.next = self.n4.val();
        if !self.n4.val().get_bits::<2>(26).any() {
            self.n2.next = self.n4.val() << 2;
            self.zeros.next = self.zeros.val() | 2;
        }
        if !self.n2.val().get_bit(27) {
            self.zeros.next = self.zeros.val() | 1;
        }
        self.headroom.next = self.reference4.q.val() - 512;
        self.limited.next = self.zeros.val();
        if self.headroom.val() < self.zeros.val() {
            self.limited.next = self.headroom.val();
        }
        self.magnitude.d.next = self.absolute.val();
        self.left.d.next = self.limited.val().get_bits::<5>(0);
        self.exponent5.d.next = (self.headroom.val() - self.limited.val()) + 1;
        self.sign5.d.next = self.stays_sign4.q.val() ^ self.sum.q.val().get_bit(28);
        if !self.absolute.val().any() {
            self.sign5.d.next = self.zero_sign4.q.val();
        }
        self.nan5.d.next = self.nan4.q.val();
        self.infinite5.d.next = self.infinite4.q.val();
        self.infinite_sign5.d.next = self.infinite_sign4.q.val();
        // 6: normalise
        self.normal.d.next = self.magnitude.q.val() << self.left.q.val();
        self.exponent6.d.next = self.exponent5.q.val();
        self.sign6.d.next = self.sign5.q.val();
        self.nan6.d.next = self.nan5.q.val();
        self.infinite6.d.next = self.infinite5.q.val();
        self.infinite_sign6.d.next = self.infinite_sign5.q.val();
        // 7: round and pack
        self.round_up.next = self.normal.q.val().get_bit(3) & (self.normal.q.val().get_bits::<3>(0).any() | self.normal.q.val().get_bit(4));
        self.biased.next = 0.into();
        if self.normal.q.val().get_bit(27) {
            self.biased.next = bit_cast::<33, 10>(self.exponent6.q.val());
        }
        self.fraction.next = bit_cast::<33, 23>(self.normal.q.val().get_bits::<23>(4));
        self.unrounded.next = (self.biased.val() << 23) | self.fraction.val();
        self.rounded.next = self.unrounded.val();
        if self.round_up.val() {
            self.rounded.next = self.unrounded.val() + 1;
        }
        self.packed.next = bit_cast::<32, 31>(self.rounded.val().get_bits::<31>(0));
        self.sign.next = self.sign6.q.val();
        if self.rounded.val().get_bits::<10>(23) >= 255 {
            self.packed.next = 0x7F80_0000.into();
        }
        if self.infinite6.q.val() {
            self.packed.next = 0x7F80_0000.into();
            self.sign.next = self.infinite_sign6.q.val();
        }
        self.rounded_result.d.next = self.packed.val();
        if self.sign.val() {
            self.rounded_result.d.next = self.packed.val() | 0x8000_0000_u64;
        }
        if self.nan6.q.val() {
            self.rounded_result.d.next = 0x7FC0_0000.into();
        }
        self.result.next = self.rounded_result.q.val();
    }
}
