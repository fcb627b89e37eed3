//! fp32 units: IEEE 754 with subnormals, and one canonical NaN.
//!
//! Rust defines `f32` arithmetic as IEEE 754 binary32 up to the payload of NaNs, so multiply and reciprocal *are* the native operations; what IEEE
//! does not have (rescaling, shift counts) is done on integers.

use crate::dot::SHIFT_ZERO;
use crate::format::{NAN, NEG_INFINITY};

/// The bits of a value, with every NaN made canonical.
#[inline]
pub fn canonical(value: f32) -> u32 {
    if value.is_nan() { NAN } else { value.to_bits() }
}

/// `a * b`.
#[inline]
pub fn multiply(a: u32, b: u32) -> u32 {
    canonical(f32::from_bits(a) * f32::from_bits(b))
}

/// `1 / x`, correctly rounded.
#[inline]
pub fn reciprocal(x: u32) -> u32 {
    canonical(1.0 / f32::from_bits(x))
}

/// The larger one; NaN if either is NaN; +0 is larger than -0.
#[inline]
pub fn max(a: u32, b: u32) -> u32 {
    let (x, y) = (f32::from_bits(a), f32::from_bits(b));
    if x.is_nan() || y.is_nan() {
        NAN
    } else if x > y || (x == y && a >> 31 == 0) {
        a
    } else {
        b
    }
}

/// The smallest integral value not below x, with x's sign when it is zero.
#[inline]
pub fn ceil(x: u32) -> u32 {
    canonical(f32::from_bits(x).ceil())
}

/// `m_new - m_old` as a shift count: how many binary places a state of maximum `m_old` is scaled down.
#[inline]
pub fn shift_count(m_new: u32, m_old: u32) -> u32 {
    let difference = f32::from_bits(m_new) - f32::from_bits(m_old);
    if difference.is_nan() || difference <= 0.0 {
        0
    } else if difference == f32::INFINITY {
        SHIFT_ZERO
    } else {
        (difference as u32).min(SHIFT_ZERO - 1)
    }
}

/// `t - m` as the exponent of a probability; the difference of two negative infinities counts as 0.
#[inline]
pub fn exponent_argument(t: u32, m: u32) -> u32 {
    if t == NEG_INFINITY && m == NEG_INFINITY { 0 } else { canonical(f32::from_bits(t) - f32::from_bits(m)) }
}

/// A finite fp32 as `significand * 2^(exponent - 150)` after scaling by `2^-k`.
struct Scaled {
    significand: u64,
    exponent: i32,
    sign: bool,
}

impl Scaled {
    fn new(bits: u32, k: u32) -> Scaled {
        let (exponent, fraction) = (bits >> 23 & 0xFF, bits & 0x7F_FFFF);
        let significand = if k == SHIFT_ZERO {
            0
        } else if exponent == 0 {
            fraction
        } else {
            fraction | 0x80_0000
        };
        Scaled { significand: u64::from(significand), exponent: exponent.max(1) as i32 - k as i32, sign: bits >> 31 == 1 }
    }
}

/// `a * 2^-ka + b * 2^-kb`, one rounding of the exact value. At least one of `ka` and `kb` is 0; a shift of 511 means times zero.
#[inline]
pub fn scaled_add(a: u32, ka: u32, b: u32, kb: u32) -> u32 {
    debug_assert!(ka == 0 || kb == 0, "one addend of a merge keeps its scale");
    let (x, y) = (f32::from_bits(a), f32::from_bits(b));
    let wiped = |v: f32, k: u32| v.is_infinite() && k == SHIFT_ZERO;
    if x.is_nan() || y.is_nan() || wiped(x, ka) || wiped(y, kb) {
        return NAN;
    }
    if x.is_infinite() || y.is_infinite() {
        return canonical(if x.is_infinite() && y.is_infinite() {
            x + y
        } else if x.is_infinite() {
            x
        } else {
            y
        });
    }
    let (p, q) = (Scaled::new(a, ka), Scaled::new(b, kb));
    if p.significand == 0 && q.significand == 0 {
        return u32::from(p.sign && q.sign) << 31;
    }
    // The larger exponent, not below the subnormals' 1, is the reference; a zero must not raise it.
    let reference = [&p, &q].iter().filter(|s| s.significand != 0).map(|s| s.exponent).max().unwrap_or(1).max(1);
    // 30 bits below the significand hold every bit that can matter; what falls out is kept as a sticky bit.
    let align = |s: &Scaled| -> i64 {
        let wide = s.significand << 30;
        let distance = (reference - s.exponent).max(0) as u32;
        let kept = if distance < 64 { wide >> distance } else { 0 };
        let lost = distance >= 64 && wide != 0 || distance < 64 && kept << distance != wide;
        let magnitude = (kept | u64::from(lost)) as i64;
        if s.sign { -magnitude } else { magnitude }
    };
    let sum = align(&p) + align(&q);
    if sum == 0 {
        return 0;
    }
    // Bit 53 of the magnitude has biased exponent `reference`; the last place is 23 bits below the leading one, but not below
    // that of the subnormals.
    let sign = u32::from(sum < 0) << 31;
    let magnitude = sum.unsigned_abs();
    let last = (63 - magnitude.leading_zeros() as i32 - 23).max(31 - reference);
    let (kept, round_up) = if last <= 0 {
        (magnitude << -last, false)
    } else {
        let (kept, rest, half) = (magnitude >> last, magnitude & ((1 << last) - 1), 1u64 << (last - 1));
        (kept, rest > half || (rest == half && kept & 1 == 1))
    };
    // The hidden bit of `kept`, if it is there, raises the exponent by one; so may the carry of rounding.
    let packed = ((reference + last - 31) as u64).wrapping_shl(23) + kept + u64::from(round_up);
    if packed >= 0x7F80_0000 { sign | 0x7F80_0000 } else { sign | packed as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stimulus::{SPECIAL_FP32, Stimulus};

    fn pairs(count: usize) -> impl Iterator<Item = (u32, u32)> {
        let mut stimulus = Stimulus::new(5);
        let special = SPECIAL_FP32.iter().flat_map(|&a| SPECIAL_FP32.iter().map(move |&b| (a, b)));
        special.chain((0..count).map(move |_| (stimulus.fp32(), stimulus.fp32())))
    }

    #[test]
    fn without_scaling_the_sum_is_ieee() {
        for (a, b) in pairs(1_000_000) {
            assert_eq!(scaled_add(a, 0, b, 0), canonical(f32::from_bits(a) + f32::from_bits(b)), "{a:#010x} + {b:#010x}");
        }
    }

    #[test]
    fn scaling_rounds_once() {
        let mut stimulus = Stimulus::new(6);
        for (a, b) in pairs(500_000) {
            let k = stimulus.below(60);
            let (x, y) = (f64::from(f32::from_bits(a)), f64::from(f32::from_bits(b)) * 2f64.powi(-(k as i32)));
            // f64 holds the sum exactly when the bits of both addends fit into 53.
            let (low, high) = (x.abs().min(y.abs()), x.abs().max(y.abs()));
            if !(x + y).is_finite() || low == 0.0 || high / low > 2f64.powi(27) {
                continue;
            }
            assert_eq!(scaled_add(a, 0, b, k), canonical((x + y) as f32), "{a:#010x} + {b:#010x} * 2^-{k}");
            assert_eq!(scaled_add(b, k, a, 0), scaled_add(a, 0, b, k));
        }
    }

    #[test]
    fn times_zero_keeps_the_sign_and_makes_infinity_nan() {
        assert_eq!(scaled_add(0x8000_0000, 0, 0xBF80_0000, SHIFT_ZERO), 0x8000_0000);
        assert_eq!(scaled_add(0x8000_0000, 0, 0x3F80_0000, SHIFT_ZERO), 0);
        assert_eq!(scaled_add(0x3F80_0000, 0, 0x7F80_0000, SHIFT_ZERO), NAN);
        assert_eq!(scaled_add(0, 0, 0xFF80_0000, 510), 0xFF80_0000);
        assert_eq!(scaled_add(0, 0, 0x8000_0001, 1), 0x8000_0000, "half of the smallest subnormal rounds to even");
        assert_eq!(scaled_add(0, 0, 0x8000_0003, 1), 0x8000_0002);
    }

    #[test]
    fn max_knows_the_sign_of_zero_and_keeps_nan() {
        assert_eq!(max(0, 0x8000_0000), 0);
        assert_eq!(max(0x8000_0000, 0), 0);
        assert_eq!(max(NEG_INFINITY, 0xFFFF_FFFF), NAN);
        for (a, b) in pairs(100_000) {
            assert_eq!(max(a, b), max(b, a));
        }
    }

    #[test]
    fn shift_counts_cover_the_whole_range() {
        let f = |x: f32| x.to_bits();
        assert_eq!(shift_count(f(3.0), f(1.0)), 2);
        assert_eq!(shift_count(f(1.0), f(3.0)), 0);
        assert_eq!(shift_count(f(0.0), NEG_INFINITY), 511);
        assert_eq!(shift_count(NEG_INFINITY, NEG_INFINITY), 0);
        assert_eq!(shift_count(f(f32::INFINITY), f(0.0)), 511);
        assert_eq!(shift_count(f(3e38), f(-3e38)), 511);
        assert_eq!(shift_count(f(509.0), f(0.0)), 509);
        assert_eq!(shift_count(f(510.0), f(0.0)), 510);
        assert_eq!(shift_count(f(1e9), f(0.0)), 510);
        assert_eq!(shift_count(NAN, f(0.0)), 0);
    }
}
