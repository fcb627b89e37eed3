//! The dot-product unit: `acc * 2^-shift + sum of a*b` over eight lanes, one rounding.
//!
//! ```text
//!               +-------------------------------------------------+
//!  acc -------->| 1 decode                                        |
//!  shift, first>|                                                 |
//!  a, enable -->| 1 multiply | 2 maximum exponent | 3 align |      |
//!  b ---------->| 4 pair sums | 5 sum | 6 sign and leading zeros | |--> result
//!               | 7 normalise | 8 round and pack                  |
//!               +-------------------------------------------------+
//! ```
//!
//! Latency 8 cycles, one operation a cycle; all inputs belong to the same cycle. Lane i of `a` and `b` is bits 19i to 19i + 18.
//!
//! Defined in `docs/numbers.md`. Widths: nine 32-bit fields sum to 36 bits and a sign.

use rust_hdl::prelude::*;

use super::dot_lane::{AccumulatorLane, DotLane};

/// What the special values among the addends come to.
#[derive(LogicStruct, Copy, Clone, Debug, Default, PartialEq)]
pub struct Special {
    pub nan: Bit,
    pub infinite: Bit,
    /// Sign of the infinity.
    pub negative: Bit,
    /// Every addend is negative: the sign of an exact zero.
    pub zero_negative: Bit,
}

/// Eight lanes and an accumulator.
#[derive(LogicBlock, Default)]
pub struct DotProduct {
    pub clock: Signal<In, Clock>,
    pub acc: Signal<In, Bits<32>>,
    pub shift: Signal<In, Bits<9>>,
    pub first: Signal<In, Bit>,
    pub a: Signal<In, Bits<152>>,
    pub enable: Signal<In, Bits<8>>,
    pub b: Signal<In, Bits<152>>,
    pub result: Signal<Out, Bits<32>>,
    lane: [DotLane; 8],
    accumulator: AccumulatorLane,
    // 2: maximum exponent and specials
    best: [Signal<Local, Bits<9>>; 8],
    exponent_max: Signal<Local, Bits<9>>,
    any_nan: Signal<Local, Bit>,
    any_positive_infinity: Signal<Local, Bit>,
    any_negative_infinity: Signal<Local, Bit>,
    any_positive: Signal<Local, Bit>,
    reference: DFF<Bits<9>>,
    special2: DFF<Special>,
    // 3 and 4: aligned terms, pair sums
    reference3: DFF<Bits<9>>,
    special3: DFF<Special>,
    pair: [DFF<Bits<34>>; 4],
    accumulator_term: DFF<Bits<34>>,
    reference4: DFF<Bits<9>>,
    special4: DFF<Special>,
    // 5: sum
    wide: [Signal<Local, Bits<37>>; 5],
    sum_low: Signal<Local, Bits<37>>,
    sum_high: Signal<Local, Bits<37>>,
    sum: DFF<Bits<37>>,
    reference5: DFF<Bits<9>>,
    special5: DFF<Special>,
    // 6: sign, magnitude, leading zeros
    negated: Signal<Local, Bits<37>>,
    absolute: Signal<Local, Bits<36>>,
    n32: Signal<Local, Bits<36>>,
    n16: Signal<Local, Bits<36>>,
    n8: Signal<Local, Bits<36>>,
    n4: Signal<Local, Bits<36>>,
    n2: Signal<Local, Bits<36>>,
    zeros: Signal<Local, Bits<9>>,
    headroom: Signal<Local, Bits<9>>,
    limited: Signal<Local, Bits<9>>,
    magnitude: DFF<Bits<36>>,
    left: DFF<Bits<6>>,
    exponent: DFF<Bits<9>>,
    negative: DFF<Bit>,
    special6: DFF<Special>,
    // 7: normalise
    normal: DFF<Bits<36>>,
    exponent7: DFF<Bits<9>>,
    negative7: DFF<Bit>,
    special7: DFF<Special>,
    // 8: round and pack
    round_up: Signal<Local, Bit>,
    sticky: Signal<Local, Bit>,
    biased: Signal<Local, Bits<32>>,
    fraction: Signal<Local, Bits<32>>,
    unrounded: Signal<Local, Bits<32>>,
    rounded: Signal<Local, Bits<32>>,
    overflow: Signal<Local, Bit>,
    packed: Signal<Local, Bits<32>>,
    zero: Signal<Local, Bit>,
    sign: Signal<Local, Bit>,
    rounded_result: DFF<Bits<32>>,
}

impl DotProduct {
    /// Cycles from the inputs to the result.
    pub const LATENCY: usize = 8;
}

impl Logic for DotProduct {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            reference,
            special2,
            reference3,
            special3,
            accumulator_term,
            reference4,
            special4,
            sum,
            reference5,
            special5,
            magnitude,
            left,
            exponent,
            negative,
            special6,
            normal,
            exponent7,
            negative7,
            special7,
            rounded_result
        );
        // 1: lanes
        self.accumulator.clock.next = self.clock.val();
        self.accumulator.acc.next = self.acc.val();
        self.accumulator.shift.next = self.shift.val();
        self.accumulator.first.next = self.first.val();
        self.accumulator.reference.next = self.reference.q.val();
        for i in 0..8 {
            self.lane[i].clock.next = self.clock.val();
            self.lane[i].a.next = self.a.val().get_bits::<19>(i * 19);
            self.lane[i].b.next = self.b.val().get_bits::<19>(i * 19);
            self.lane[i].enable.next = self.enable.val().get_bit(i);
            self.lane[i].reference.next = self.reference.q.val();
        }
        // 2: the largest exponent, but not below the one that keeps subnormals in the field
        self.best[0].next = self.accumulator.exponent.val();
        if self.accumulator.exponent.val() < 123 {
            self.best[0].next = 123.into();
        }
        for i in 0..4 {
            self.best[1 + i].next = self.lane[2 * i].exponent.val();
            if self.lane[2 * i].exponent.val() < self.lane[2 * i + 1].exponent.val() {
                self.best[1 + i].next = self.lane[2 * i + 1].exponent.val();
            }
        }
        for i in 0..2 {
            self.best[5 + i].next = self.best[1 + 2 * i].val();
            if self.best[1 + 2 * i].val() < self.best[2 + 2 * i].val() {
                self.best[5 + i].next = self.best[2 + 2 * i].val();
            }
        }
        self.best[7].next = self.best[5].val();
        if self.best[5].val() < self.best[6].val() {
            self.best[7].next = self.best[6].val();
        }
        self.exponent_max.next = self.best[7].val();
        if self.best[7].val() < self.best[0].val() {
            self.exponent_max.next = self.best[0].val();
        }
        self.reference.d.next = self.exponent_max.val();
        self.any_nan.next = self.accumulator.nan.val();
        self.any_positive_infinity.next = self.accumulator.infinite.val() & !self.accumulator.sign.val();
        self.any_negative_infinity.next = self.accumulator.infinite.val() & self.accumulator.sign.val();
        self.any_positive.next = !self.accumulator.sign.val();
        for i in 0..8 {
            self.any_nan.next = self.any_nan.val() | self.lane[i].nan.val();
            self.any_positive_infinity.next = self.any_positive_infinity.val() | (self.lane[i].infinite.val() & !self.lane[i].sign.val());
            self.any_negative_infinity.next = self.any_negative_infinity.val() | (self.lane[i].infinite.val() & self.lane[i].sign.val());
            self.any_positive.next = self.any_positive.val() | self.lane[i].positive.val();
        }
        self.special2.d.next.nan = self.any_nan.val() | (self.any_positive_infinity.val() & self.any_negative_infinity.val());
        self.special2.d.next.infinite = self.any_positive_infinity.val() | self.any_negative_infinity.val();
        self.special2.d.next.negative = self.any_negative_infinity.val();
        self.special2.d.next.zero_negative = !self.any_positive.val();
        // 3: the lanes align
        self.reference3.d.next = self.reference.q.val();
        self.special3.d.next = self.special2.q.val();
        // 4: pair sums
        for i in 0..4 {
            self.pair[i].clock.next = self.clock.val();
            self.pair[i].d.next = self.lane[2 * i].term.val() + self.lane[2 * i + 1].term.val();
        }
        self.accumulator_term.d.next = self.accumulator.term.val();
        self.reference4.d.next = self.reference3.q.val();
        self.special4.d.next = self.special3.q.val();
        // 5: sum, sign-extended
        self.wide[0].next = bit_cast::<37, 34>(self.pair[0].q.val());
        if self.pair[0].q.val().get_bit(33) {
            self.wide[0].next = bit_cast::<37, 34>(self.pair[0].q.val()) | 0x1C_0000_0000_u64;
        }
        self.wide[1].next = bit_cast::<37, 34>(self.pair[1].q.val());
        if self.pair[1].q.val().get_bit(33) {
            self.wide[1].next = bit_cast::<37, 34>(self.pair[1].q.val()) | 0x1C_0000_0000_u64;
        }
        self.wide[2].next = bit_cast::<37, 34>(self.pair[2].q.val());
        if self.pair[2].q.val().get_bit(33) {
            self.wide[2].next = bit_cast::<37, 34>(self.pair[2].q.val()) | 0x1C_0000_0000_u64;
        }
        self.wide[3].next = bit_cast::<37, 34>(self.pair[3].q.val());
        if self.pair[3].q.val().get_bit(33) {
            self.wide[3].next = bit_cast::<37, 34>(self.pair[3].q.val()) | 0x1C_0000_0000_u64;
        }
        self.wide[4].next = bit_cast::<37, 34>(self.accumulator_term.q.val());
        if self.accumulator_term.q.val().get_bit(33) {
            self.wide[4].next = bit_cast::<37, 34>(self.accumulator_term.q.val()) | 0x1C_0000_0000_u64;
        }
        self.sum_low.next = self.wide[0].val() + self.wide[1].val();
        self.sum_high.next = self.wide[2].val() + self.wide[3].val();
        self.sum.d.next = (self.sum_low.val() + self.sum_high.val()) + self.wide[4].val();
        self.reference5.d.next = self.reference4.q.val();
        self.special5.d.next = self.special4.q.val();
        // 6: sign and magnitude, leading zeros by halving
        self.negated.next = bits::<37>(0) - self.sum.q.val();
        self.absolute.next = self.sum.q.val().get_bits::<36>(0);
        if self.sum.q.val().get_bit(36) {
            self.absolute.next = self.negated.val().get_bits::<36>(0);
        }
        self.zeros.next = 0.into();
        self.n32.next = self.absolute.val();
        if !self.absolute.val().get_bits::<32>(4).any() {
            self.n32.next = self.absolute.val() << 32;
            self.zeros.next = 32.into();
        }
        self.n16.next = self.n32.val();
        if !self.n32.val().get_bits::<16>(20).any() {
            self.n16.next = self.n32.val() << 16;
            self.zeros.next = self.zeros.val() | 16;
        }
        self.n8.next = self.n16.val();
        if !self.n16.val().get_bits::<8>(28).any() {
            self.n8.next = self.n16.val() << 8;
            self.zeros.next = self.zeros.val() | 8;
        }
        self.n4.next = self.n8.val();
        if !self.n8.val().get_bits::<4>(32).any() {
            self.n4.next = self.n8.val() << 4;
            self.zeros.next = self.zeros.val() | 4;
        }
        self.n2.next = self.n4.val();
        if !self.n4.val().get_bits::<2>(34).any() {
            self.n2.next = self.n4.val() << 2;
            self.zeros.next = self.zeros.val() | 2;
        }
        if !self.n2.val().get_bit(35) {
            self.zeros.next = self.zeros.val() | 1;
        }
        self.headroom.next = self.reference5.q.val() - 123;
        self.limited.next = self.zeros.val();
        if self.headroom.val() < self.zeros.val() {
            self.limited.next = self.headroom.val();
        }
        self.magnitude.d.next = self.absolute.val();
        self.left.d.next = self.limited.val().get_bits::<6>(0);
        self.exponent.d.next = (self.headroom.val() - self.limited.val()) + 1;
        self.negative.d.next = self.sum.q.val().get_bit(36);
        self.special6.d.next = self.special5.q.val();
        // 7: normalise
        self.normal.d.next = self.magnitude.q.val() << self.left.q.val();
        self.exponent7.d.next = self.exponent.q.val();
        self.negative7.d.next = self.negative.q.val();
        self.special7.d.next = self.special6.q.val();
        // 8: round to nearest even and pack; a carry moves into the exponent
        self.sticky.next = self.normal.q.val().get_bits::<11>(0).any();
        self.round_up.next = self.normal.q.val().get_bit(11) & (self.sticky.val() | self.normal.q.val().get_bit(12));
        self.biased.next = 0.into();
        if self.normal.q.val().get_bit(35) {
            self.biased.next = bit_cast::<32, 9>(self.exponent7.q.val());
        }
        self.fraction.next = bit_cast::<32, 23>(self.normal.q.val().get_bits::<23>(12));
        self.unrounded.next = (self.biased.val() << 23) | self.fraction.val();
        self.rounded.next = self.unrounded.val();
        if self.round_up.val() {
            self.rounded.next = self.unrounded.val() + 1;
        }
        self.overflow.next = self.rounded.val().get_bits::<9>(23) >= 255;
        self.packed.next = self.rounded.val() & 0x7FFF_FFFF;
        self.zero.next = !self.normal.q.val().any();
        self.sign.next = self.negative7.q.val();
        if self.zero.val() {
            self.sign.next = self.special7.q.val().zero_negative;
        }
        if self.overflow.val() {
            self.packed.next = 0x7F80_0000.into();
        }
        if self.special7.q.val().infinite {
            self.packed.next = 0x7F80_0000.into();
            self.sign.next = self.special7.q.val().negative;
        }
        self.rounded_result.d.next = self.packed.val();
        if self.sign.val() {
            self.rounded_result.d.next = self.packed.val() | 0x8000_0000_u64;
        }
        if self.special7.q.val().nan {
            self.rounded_result.d.next = 0x7FC0_0000.into();
        }
        self.result.next = self.rounded_result.q.val();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::cycle;
    use braid_golden::dot::{Block as GoldenBlock, dot};
    use braid_golden::format::Operand;
    use braid_golden::stimulus::Stimulus;

    pub(crate) fn pack(lanes: &[u32; 8]) -> Bits<152> {
        lanes
            .iter()
            .rev()
            .fold(Bits::default(), |word: Bits<152>, &lane| (word << 19_usize.to_bits::<8>()) | bit_cast::<152, 19>(bits(lane.into())))
    }

    #[test]
    fn equals_the_golden_unit_in_rust_hdls_own_simulator() {
        let mut unit = DotProduct::default();
        unit.connect_all();
        let mut stimulus = Stimulus::new(21);
        let mut expected = std::collections::VecDeque::new();
        for round in 0..3000 {
            let (acc, shift, first) =
                (stimulus.fp32(), if stimulus.once_in(4) { stimulus.below(512) } else { stimulus.below(20) }, stimulus.once_in(8));
            let enable = if stimulus.once_in(2) { 0xFF } else { stimulus.below(256) };
            let (a, b): ([u32; 8], [u32; 8]) = (std::array::from_fn(|_| stimulus.operand()), std::array::from_fn(|_| stimulus.operand()));
            unit.acc.next = bits(acc.into());
            unit.shift.next = bits(shift.into());
            unit.first.next = first;
            unit.enable.next = bits(enable.into());
            unit.a.next = pack(&a);
            unit.b.next = pack(&b);
            let block = GoldenBlock { lanes: a.map(Operand::from_bits), enable: enable as u8 };
            let (acc, shift) = if first { (0, 0) } else { (acc, shift) };
            expected.push_back(dot(acc, shift, &block, &b.map(Operand::from_bits)));
            cycle(&mut unit, |unit, clock| unit.clock.next = clock);
            if expected.len() == DotProduct::LATENCY {
                assert_eq!(unit.result.val().to_u32(), expected.pop_front().unwrap_or_default(), "round {round}");
            }
        }
    }
}
