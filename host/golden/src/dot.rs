//! The dot-product unit: `acc * 2^-k + sum of a*b`, one rounding per block of lanes.

use crate::format::{NAN, Operand};
pub use braid_isa::LANES;

/// Shift count that means "times zero".
pub const SHIFT_ZERO: u32 = 511;
/// Smallest reference exponent, see [`dot`].
const MIN_REFERENCE: i32 = 123;

/// One block of the stationary operand: eight lanes and which of them count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Block {
    /// Operands, lane 0 first.
    pub lanes: [Operand; LANES],
    /// Bit i enables lane i; a disabled lane contributes nothing whatever it holds.
    pub enable: u8,
}

impl Block {
    /// A block whose lanes all count.
    pub fn full(lanes: [Operand; LANES]) -> Block {
        Block { lanes, enable: 0xFF }
    }
}

/// What the special values among the addends come to.
#[derive(Clone, Copy, Default)]
struct Specials {
    nan: bool,
    positive: bool,
    negative: bool,
}

impl Specials {
    fn infinity(&mut self, sign: bool) {
        self.positive |= !sign;
        self.negative |= sign;
    }
}

/// A finite addend: magnitude in the 32-bit field, exponent t, sign.
#[derive(Clone, Copy, Default)]
struct Addend {
    field: u64,
    t: i32,
    sign: bool,
}

/// `acc * 2^-k + sum over enabled lanes of a*b` with one rounding (`docs/numbers.md`, "Dot-product unit"). `acc` and the result are
/// fp32 bits; `k` is a shift of 0 to 511, where 511 means times zero.
#[inline]
pub fn dot(acc: u32, k: u32, a: &Block, b: &[Operand; LANES]) -> u32 {
    let mut specials = Specials::default();
    let mut addends = [Addend::default(); LANES + 1];
    let mut negative = acc >> 31 == 1;
    let mut reference = MIN_REFERENCE;

    for lane in 0..LANES {
        if a.enable >> lane & 1 == 0 {
            continue;
        }
        let (x, y) = (a.lanes[lane], b[lane]);
        let sign = x.sign() != y.sign();
        negative &= sign;
        if x.is_nan() || y.is_nan() || (x.is_infinite() && y.is_zero()) || (x.is_zero() && y.is_infinite()) {
            specials.nan = true;
        } else if x.is_infinite() || y.is_infinite() {
            specials.infinity(sign);
        } else {
            let product = u64::from(x.significand()) * u64::from(y.significand());
            let t = (x.exponent().max(1) + y.exponent().max(1)) as i32;
            addends[lane] = Addend { field: product << 10, t, sign };
            if product != 0 {
                reference = reference.max(t);
            }
        }
    }

    let (exponent, fraction) = (acc >> 23 & 0xFF, acc & 0x7F_FFFF);
    if exponent == 255 {
        if fraction != 0 || k == SHIFT_ZERO {
            specials.nan = true;
        } else {
            specials.infinity(acc >> 31 == 1);
        }
    } else if k != SHIFT_ZERO {
        let significand = if exponent == 0 { fraction } else { fraction | 0x80_0000 };
        let t = exponent.max(1) as i32 + 126 - k as i32;
        addends[LANES] = Addend { field: u64::from(significand) << 8, t, sign: acc >> 31 == 1 };
        if significand != 0 {
            reference = reference.max(t);
        }
    }

    if specials.nan || (specials.positive && specials.negative) {
        return NAN;
    }
    if specials.positive || specials.negative {
        return u32::from(specials.negative) << 31 | 0x7F80_0000;
    }

    let sum: i64 = addends
        .iter()
        .map(|addend| {
            // A zero may lie above the reference; its field is 0 all the same.
            let distance = (reference - addend.t).clamp(0, 32);
            let aligned = (addend.field >> distance) as i64;
            if addend.sign { -aligned } else { aligned }
        })
        .sum();
    if sum == 0 {
        return u32::from(negative) << 31;
    }

    // 36-bit magnitude; bit 35 has biased exponent `reference - 122`.
    let sign = u32::from(sum < 0) << 31;
    let magnitude = sum.unsigned_abs();
    let left = ((magnitude.leading_zeros() - 28) as i32).min(reference - MIN_REFERENCE);
    let normal = magnitude << left;
    let biased = if normal >> 35 == 1 { (reference - 122 - left) as u64 } else { 0 };
    if biased >= 255 {
        return sign | 0x7F80_0000;
    }
    let packed = biased << 23 | (normal >> 12 & 0x7F_FFFF);
    let round_up = normal >> 11 & 1 == 1 && (normal & 0x7FF != 0 || normal >> 12 & 1 == 1);
    sign | (packed + u64::from(round_up)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stimulus::Stimulus;
    use proptest::prelude::*;

    fn value(operand: Operand) -> f64 {
        f64::from(f32::from_bits(operand.to_fp32()))
    }

    #[test]
    fn the_error_is_below_a_last_place_of_the_largest_addend() {
        let mut stimulus = Stimulus::new(2);
        for round in 0..200_000 {
            // Exponents close together, so that f64 holds the exact sum.
            let lanes = |s: &mut Stimulus| -> [Operand; LANES] {
                std::array::from_fn(|_| Operand::from_bits(s.below(1 << 19) & 0x4_03FF | (120 + s.below(14)) << 10))
            };
            let (a, b) = (Block { lanes: lanes(&mut stimulus), enable: stimulus.below(256) as u8 }, lanes(&mut stimulus));
            let acc = f32::from_bits(stimulus.below(1 << 31) & 0x807F_FFFF | (115 + stimulus.below(20)) << 23);
            let k = stimulus.below(6);
            let scaled = f64::from(acc) * 2f64.powi(-(k as i32));
            let (mut exact, mut largest) = (scaled, scaled.abs());
            for lane in (0..LANES).filter(|l| a.enable >> l & 1 == 1) {
                let product = value(a.lanes[lane]) * value(b[lane]);
                exact += product;
                largest = largest.max(product.abs());
            }
            let got = f64::from(f32::from_bits(dot(acc.to_bits(), k, &a, &b)));
            let bound = (exact.abs() * 2f64.powi(-24)).max(f64::MIN_POSITIVE) + 9.0 * largest * 2f64.powi(-30);
            assert!((got - exact).abs() <= bound, "round {round}: {got} against {exact}");
        }
    }

    #[test]
    fn an_accumulator_alone_is_rescaled_exactly() {
        let none = Block { enable: 0, ..Block::full([Operand::NAN; LANES]) };
        let mut stimulus = Stimulus::new(3);
        for _ in 0..100_000 {
            let acc = stimulus.fp32();
            let expected = if f32::from_bits(acc).is_nan() { NAN } else { acc };
            assert_eq!(dot(acc, 0, &none, &[Operand::NAN; LANES]), expected, "{acc:#010x}");
        }
        assert_eq!(dot(0x4080_0000, 3, &none, &[Operand::NAN; LANES]), 0x3F00_0000);
        assert_eq!(dot(0xC080_0000, SHIFT_ZERO, &none, &[Operand::NAN; LANES]), 0x8000_0000);
        assert_eq!(dot(0x7F80_0000, SHIFT_ZERO, &none, &[Operand::NAN; LANES]), NAN);
        assert_eq!(dot(0x7F80_0000, 510, &none, &[Operand::NAN; LANES]), 0x7F80_0000);
    }

    #[test]
    fn subnormal_results_are_kept() {
        let mut lanes = [Operand::default(); LANES];
        lanes[0] = Operand::from_bits(1 << 10); // 2^-126
        let mut b = [Operand::default(); LANES];
        b[0] = Operand::from_bits((127 - 23) << 10); // 2^-23
        assert_eq!(dot(0, 0, &Block { lanes, enable: 1 }, &b), 1);
    }

    fn operand() -> impl Strategy<Value = Operand> {
        prop_oneof![4 => 0u32..1 << 19, 1 => Just(0), 1 => Just(0x3_FC00), 1 => Just(0x7_FC00), 1 => Just(0x3_FE00)]
            .prop_map(Operand::from_bits)
    }

    proptest! {
        #[test]
        fn the_order_of_lanes_does_not_matter(acc: u32, k in 0u32..512, a in prop::array::uniform8(operand()),
                                              b in prop::array::uniform8(operand()), enable: u8, rotate in 0usize..8) {
            let block = Block { lanes: a, enable };
            let (mut ra, mut rb) = (a, b);
            ra.rotate_left(rotate);
            rb.rotate_left(rotate);
            let rotated = Block { lanes: ra, enable: enable.rotate_right(rotate as u32) };
            prop_assert_eq!(dot(acc, k, &block, &b), dot(acc, k, &rotated, &rb));
        }

        #[test]
        fn a_disabled_lane_never_matters(acc: u32, k in 0u32..512, a in prop::array::uniform8(operand()), b in prop::array::uniform8(operand()),
                                         enable: u8, poison in prop::array::uniform8(operand())) {
            let mut lanes = a;
            let mut other = b;
            for lane in (0..LANES).filter(|l| enable >> l & 1 == 0) {
                lanes[lane] = poison[lane];
                other[lane] = Operand::NAN;
            }
            prop_assert_eq!(dot(acc, k, &Block { lanes: a, enable }, &b), dot(acc, k, &Block { lanes, enable }, &other));
        }
    }
}
