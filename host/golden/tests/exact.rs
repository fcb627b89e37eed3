//! Number units against exact integer arithmetic of unlimited width.

use braid_golden::dot::{Block, SHIFT_ZERO, dot};
use braid_golden::format::{NAN, Operand};
use braid_golden::fp32::{multiply, reciprocal, scaled_add};
use braid_golden::stimulus::{SPECIAL_FP32, Stimulus};
use braid_isa::LANES;
use num_bigint::{BigInt, BigUint, Sign};
use proptest::prelude::*;

/// Exact numbers are integers in units of 2^-UNIT; the smallest addend is a subnormal scaled by 2^-510.
const UNIT: i32 = 149 + 510;

/// Random cases: fewer where the tests are not optimised.
const CASES: usize = if cfg!(debug_assertions) { 300_000 } else { 3_000_000 };

/// `significand * 2^exponent`, exact.
fn exact(negative: bool, significand: u32, exponent: i32) -> BigInt {
    let sign = if negative { Sign::Minus } else { Sign::Plus };
    let places = exponent + UNIT;
    assert!(places >= 0, "2^{exponent} is below the unit");
    BigInt::from_slice(sign, &[significand]) << places as u32
}

/// Significand and exponent of a finite fp32.
fn parts(bits: u32) -> (u32, i32) {
    match (bits >> 23 & 0xFF, bits & 0x7F_FFFF) {
        (0, fraction) => (fraction, -149),
        (exponent, fraction) => (fraction | 0x80_0000, exponent as i32 - 150),
    }
}

/// A finite fp32 times 2^-k; k = 511 makes it zero.
fn scaled(bits: u32, k: u32) -> BigInt {
    let (significand, exponent) = parts(bits);
    if k == SHIFT_ZERO { BigInt::ZERO } else { exact(bits >> 31 == 1, significand, exponent - k as i32) }
}

/// A finite product.
fn product(a: Operand, b: Operand) -> BigInt {
    let exponent = |x: Operand| x.exponent().max(1) as i32 - 137;
    exact(a.sign() != b.sign(), a.significand() * b.significand(), exponent(a) + exponent(b))
}

/// The nearest fp32, ties to even; the sign of a zero result is that of the exact value, + for 0.
fn round(value: &BigInt) -> u32 {
    let magnitude = value.magnitude();
    let last = (magnitude.bits() as i64 - 24).max(i64::from(UNIT - 149)) as u64;
    let one = BigUint::from(1u8);
    let (kept, rest, half) = (magnitude >> last, magnitude & ((&one << last) - 1u8), &one << (last - 1));
    let kept = u32::try_from(kept).expect("24 bits");
    let kept = kept + u32::from(rest > half || (rest == half && kept & 1 == 1));
    // At most 25 bits and within the range of f64, so both steps are exact; 2^128 becomes infinite.
    let rounded = (f64::from(kept) * 2f64.powi(last as i32 - UNIT)) as f32;
    rounded.to_bits() | u32::from(value.sign() == Sign::Minus) << 31
}

fn float(bits: u32) -> f32 {
    f32::from_bits(bits)
}

fn is_finite(bits: u32) -> bool {
    float(bits).is_finite()
}

/// Special values in all pairs, then random ones.
fn pairs(seed: u64, count: usize) -> impl Iterator<Item = (u32, u32)> {
    let mut stimulus = Stimulus::new(seed);
    let special = SPECIAL_FP32.iter().flat_map(|&a| SPECIAL_FP32.iter().map(move |&b| (a, b)));
    special.chain((0..count).map(move |_| (stimulus.fp32(), stimulus.fp32())))
}

#[test]
fn rounding_here_is_that_of_ieee_addition() {
    // f64 holds these sums exactly, so that its conversion to f32 is an independent rounding.
    let mut stimulus = Stimulus::new(31);
    for _ in 0..CASES / 10 {
        let bits = stimulus.fp32() & 0xFFF0_00FF;
        let other = (bits ^ (stimulus.below(1 << 24) & 0x80FF_0FFF)).wrapping_sub(3 << 23);
        let sum = f64::from(float(bits)) + f64::from(float(other));
        if is_finite(bits) && is_finite(other) && sum != 0.0 && (float(bits) / float(other)).abs().log2().abs() < 28.0 {
            assert_eq!(round(&(scaled(bits, 0) + scaled(other, 0))), (sum as f32).to_bits(), "{bits:#010x} + {other:#010x}");
        }
    }
}

#[test]
fn scaled_add_is_the_rounded_exact_sum() {
    let mut stimulus = Stimulus::new(32);
    for (a, b) in pairs(33, CASES) {
        if !is_finite(a) || !is_finite(b) {
            continue;
        }
        let k = match stimulus.below(4) {
            0 => stimulus.below(512),
            1 => 0,
            _ => stimulus.below(60),
        };
        let sum = scaled(a, 0) + scaled(b, k);
        let both_negative = a >> 31 == 1 && b >> 31 == 1;
        let expected = if sum == BigInt::ZERO { u32::from(both_negative) << 31 } else { round(&sum) };
        assert_eq!(scaled_add(a, 0, b, k), expected, "{a:#010x} + {b:#010x} * 2^-{k}");
        assert_eq!(scaled_add(b, k, a, 0), expected, "{b:#010x} * 2^-{k} + {a:#010x}");
    }
}

#[test]
fn a_product_is_the_rounded_exact_one() {
    for (a, b) in pairs(34, CASES / 3) {
        if is_finite(a) && is_finite(b) {
            let ((p, e), (q, f)) = (parts(a), parts(b));
            let negative = (a ^ b) >> 31 == 1;
            let exact = exact(negative, p, e + f) * q;
            let expected = if exact == BigInt::ZERO { u32::from(negative) << 31 } else { round(&exact) };
            assert_eq!(multiply(a, b), expected, "{a:#010x} * {b:#010x}");
        }
    }
}

#[test]
fn a_reciprocal_is_the_nearest_fp32() {
    let mut stimulus = Stimulus::new(35);
    let one = exact(false, 1, 0) << 1u8;
    for x in SPECIAL_FP32.into_iter().chain((0..CASES / 10).map(|_| stimulus.fp32())) {
        let got = reciprocal(x);
        if float(x).is_nan() {
            assert_eq!(got, NAN);
        } else if x << 1 == 0 {
            assert_eq!(got, x | 0x7F80_0000);
        } else if !is_finite(x) {
            assert_eq!(got, x & 0x8000_0000);
        } else {
            assert_eq!(got >> 31, x >> 31);
            let x = x & 0x7FFF_FFFF;
            let got = got & 0x7FFF_FFFF;
            // 1/x lies between the middles to both neighbours: (2r - ulp) x <= 2 <= (2r + ulp) x, in exact integers.
            let (significand, exponent) = parts(x);
            let times_x = |twice: u64, e: i32| (BigInt::from(twice) * significand) << (e + exponent + UNIT) as u32;
            if got == 0x7F80_0000 {
                assert!(times_x((1 << 25) - 1, 103) <= one, "1 / {x:#010x} overflows");
            } else {
                let (r, e) = parts(got);
                // Below a power of two the ulp is half as wide: its middle is at r - 1/4 ulp.
                let binade = r == 0x80_0000 && e > -149;
                let below = if binade { times_x(u64::from(r) * 4 - 1, e) >> 1u8 } else { times_x(u64::from(r) * 2 - 1, e) };
                assert!(below <= one && one <= times_x(u64::from(r) * 2 + 1, e), "1 / {x:#010x} = {got:#010x}");
            }
        }
    }
}

/// A dot product's inputs.
#[derive(Clone, Debug)]
struct Inputs {
    acc: u32,
    k: u32,
    a: Block,
    b: [Operand; LANES],
}

impl Inputs {
    /// Finite inputs; operands are corners, or lie within `spread` binades, so that alignment keeps all, some or none of their bits.
    fn random(stimulus: &mut Stimulus) -> Inputs {
        let spread = [1, 2, 4, 12, 40, 120][stimulus.below(6) as usize];
        let centre = spread + stimulus.below(255 - 2 * spread);
        let corners = stimulus.once_in(4);
        let mut operand = || loop {
            let bits = stimulus.operand();
            let exponent = centre - spread + stimulus.below(2 * spread);
            let x = Operand::from_bits(if corners { bits } else { bits & 0x4_03FF | exponent << 10 });
            if !x.is_nan() && !x.is_infinite() {
                return x;
            }
        };
        let lanes = std::array::from_fn(|_| operand());
        let b = std::array::from_fn(|_| operand());
        let enable = stimulus.below(256) as u8 | if stimulus.once_in(2) { 0xFF } else { 0 };
        let near = (2 * centre + stimulus.below(2 * spread)).saturating_sub(127 + spread).min(254);
        let acc = loop {
            let bits = stimulus.fp32();
            let bits = if corners { bits } else { bits & 0x807F_FFFF | near << 23 };
            if is_finite(bits) {
                break bits;
            }
        };
        let k = [0, 0, stimulus.below(40), stimulus.below(512)][stimulus.below(4) as usize];
        Inputs { acc, k, a: Block { lanes, enable }, b }
    }

    /// All addends are zeros of either sign.
    fn zeros(stimulus: &mut Stimulus) -> Inputs {
        let Inputs { acc, k, a, b } = Inputs::random(stimulus);
        let enable = a.enable & stimulus.below(256) as u8;
        let lanes = a.lanes.map(|x| Operand::from_bits(x.to_bits() & 0x4_0000));
        let (lanes, b) = if stimulus.once_in(2) { (lanes, b) } else { (b, lanes) };
        Inputs { acc: acc & 0x8000_0000, k, a: Block { lanes, enable }, b }
    }

    /// Results around the subnormals, where the lowest bit of the fields decides ties.
    fn tiny(stimulus: &mut Stimulus) -> Inputs {
        let bits = |s: &mut Stimulus, exponent: u32| Operand::from_bits(s.below(1 << 19) & 0x4_03FF | exponent << 10);
        let centre = 40 + stimulus.below(40);
        let lanes = std::array::from_fn(|_| bits(stimulus, centre));
        let b = std::array::from_fn(|_| {
            let exponent = 113 + stimulus.below(11) - centre;
            bits(stimulus, exponent)
        });
        let acc = stimulus.below(1 << 31) << 1 & 0x80FF_FFFF;
        Inputs { acc, k: stimulus.below(16), a: Block { lanes, enable: stimulus.below(256) as u8 }, b }
    }

    fn enabled(&self) -> impl Iterator<Item = (Operand, Operand)> {
        (0..LANES).filter(|lane| self.a.enable >> lane & 1 == 1).map(|lane| (self.a.lanes[lane], self.b[lane]))
    }

    /// The exact sum.
    fn exact(&self) -> BigInt {
        self.enabled().map(|(a, b)| product(a, b)).fold(scaled(self.acc, self.k), |sum, p| sum + p)
    }

    /// The unit of the aligned fields, 2^(T - 284), from the definition's T.
    fn field_unit(&self) -> BigInt {
        let products = self.enabled().filter(|(a, b)| !a.is_zero() && !b.is_zero()).map(|(a, b)| a.exponent().max(1) + b.exponent().max(1));
        let (significand, exponent) = parts(self.acc);
        let acc = (significand != 0 && self.k != SHIFT_ZERO).then_some(exponent + 276 - self.k as i32);
        let reference = products.map(|t| t as i32).chain(acc).fold(123, i32::max);
        exact(false, 1, reference - 284)
    }
}

#[test]
fn a_dot_product_is_the_exact_sum_but_for_one_rounding_and_the_dropped_bits() {
    let mut stimulus = Stimulus::new(36);
    let (mut cases_without_loss, mut cases_with_loss) = (0, 0);
    for _ in 0..CASES / 3 {
        let inputs = match stimulus.below(8) {
            0 => Inputs::zeros(&mut stimulus),
            1 => Inputs::tiny(&mut stimulus),
            _ => Inputs::random(&mut stimulus),
        };
        let (sum, unit) = (inputs.exact(), inputs.field_unit());
        let got = dot(inputs.acc, inputs.k, &inputs.a, &inputs.b);
        let addends: Vec<BigInt> = inputs.enabled().map(|(a, b)| product(a, b)).chain([scaled(inputs.acc, inputs.k)]).collect();
        let cut = addends.iter().filter(|addend| *addend % &unit != BigInt::ZERO).count();
        if cut == 0 {
            cases_without_loss += 1;
            // The sign of zero: negative only if all addends are.
            let negative = inputs.acc >> 31 == 1 && inputs.enabled().all(|(a, b)| a.sign() != b.sign());
            let expected = if sum == BigInt::ZERO { u32::from(negative) << 31 } else { round(&sum) };
            assert_eq!(got, expected, "{inputs:?}");
        } else {
            cases_with_loss += 1;
            // Every addend that loses bits loses less than a unit; rounding is monotonic.
            let slack = unit * cut;
            let (low, high) = (float(round(&(&sum - &slack))), float(round(&(&sum + &slack))));
            assert!(low <= float(got) && float(got) <= high, "{got:#010x}: {inputs:?}");
        }
    }
    assert!(cases_without_loss.min(cases_with_loss) > CASES / 60, "{cases_without_loss} and {cases_with_loss}");
}

#[test]
fn the_lowest_bit_of_a_field_breaks_a_tie() {
    let operand = |exponent: u32, fraction: u32| Operand::from_bits(exponent << 10 | fraction);
    let mut inputs = Inputs { acc: 0x10, k: 4, a: Block { enable: 3, ..Block::default() }, b: Default::default() };
    // Fields 0x20_0800, 0x3F_F001 and, of acc, 0x1000; all but the top 24 of 36 bits are half a place and one.
    (inputs.a.lanes[0], inputs.b[0]) = (operand(57, 1), operand(57, 0));
    (inputs.a.lanes[1], inputs.b[1]) = (operand(57, 0x3FF), operand(56, 0x3FF));
    assert_eq!(dot(inputs.acc, inputs.k, &inputs.a, &inputs.b), 0x601);
    assert_eq!(round(&inputs.exact()), 0x601);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn specials_among_the_addends_follow_ieee(acc: u32, k in 0u32..512, a in prop::array::uniform8(0u32..1 << 19),
                                              b in prop::array::uniform8(0u32..1 << 19), enable: u8, specials in prop::array::uniform8(0u8..8)) {
        // Every other lane or so holds a zero, an infinity or a NaN.
        let special = |bits: u32, which: u8| Operand::from_bits(match which {
            0 => bits & 0x4_0000,
            1 => bits & 0x4_0000 | 0x3_FC00,
            2 => 0x3_FC01 | bits,
            _ => bits & 0x7_DFFF,
        });
        let lanes = std::array::from_fn(|i| special(a[i], specials[i]));
        let b = std::array::from_fn(|i| special(b[i], specials[(i * 3 + 1) % 8]));
        let value = |x: Operand| f64::from(float(x.to_fp32()));
        let factor = if k == SHIFT_ZERO { 0.0 } else { 2f64.powi(-(k as i32)) };
        let products = (0..LANES).filter(|lane| enable >> lane & 1 == 1).map(|lane| value(lanes[lane]) * value(b[lane]));
        let sum = products.fold(f64::from(float(acc)) * factor, |sum, p| sum + p);
        let got = float(dot(acc, k, &Block { lanes, enable }, &b));
        if sum.is_nan() {
            prop_assert_eq!(got.to_bits(), NAN);
        } else if sum.is_infinite() {
            prop_assert_eq!(f64::from(got), sum);
        } else {
            prop_assert!(!got.is_nan());
        }
    }

    #[test]
    fn any_order_of_lanes_gives_the_same_bits(seed: u64, order in Just([0usize, 1, 2, 3, 4, 5, 6, 7]).prop_shuffle()) {
        let mut stimulus = Stimulus::new(seed);
        let Inputs { acc, k, a, b } = Inputs::random(&mut stimulus);
        let enable = order.iter().enumerate().fold(0, |mask, (i, &from)| mask | (a.enable >> from & 1) << i);
        let shuffled = Block { lanes: order.map(|from| a.lanes[from]), enable };
        prop_assert_eq!(dot(acc, k, &a, &b), dot(acc, k, &shuffled, &order.map(|from| b[from])));
    }
}
