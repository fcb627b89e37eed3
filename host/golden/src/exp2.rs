//! exp2 by a table of 256 chords.

use crate::format::NAN;

/// Fraction bits of the argument that count.
const FRACTION_BITS: u32 = 18;
/// Entries of the table.
pub const ENTRIES: usize = 256;

/// `base[h] = round(2^22 * (2^(h/256) - 1))`, h in 0..=256; the slope of chord h is `base[h + 1] - base[h]`.
pub const BASE: [u32; ENTRIES + 1] = {
    // 2^(h/256) as the product of 2^(1/2), 2^(1/4), ... 2^(1/256), each by integer square roots in 62-bit fixed point.
    let mut roots = [0u128; 8];
    let mut square = 2u128 << 62;
    let mut bit = 0;
    while bit < 8 {
        square = square_root(square << 62);
        roots[7 - bit] = square;
        bit += 1;
    }
    let mut base = [0; ENTRIES + 1];
    let mut h = 0;
    while h < ENTRIES {
        let mut power = 1u128 << 62;
        let mut bit = 0;
        while bit < 8 {
            if h >> bit & 1 == 1 {
                power = (power * roots[bit]) >> 62;
            }
            bit += 1;
        }
        base[h] = ((power - (1 << 62) + (1 << 39)) >> 40) as u32;
        h += 1;
    }
    base[ENTRIES] = 1 << 22;
    base
};

/// Integer square root.
const fn square_root(value: u128) -> u128 {
    let mut root = 0u128;
    let mut bit = 63;
    while bit >= 0 {
        let trial = root | 1 << bit;
        if trial * trial <= value {
            root = trial;
        }
        bit -= 1;
    }
    root
}

/// `2^x` of fp32 bits: relative error at most 2^-17, exact at integers, monotonic; results below 2^-126 are 0 (`docs/numbers.md`,
/// "exp2").
#[inline]
pub fn exp2(x: u32) -> u32 {
    let (exponent, fraction, negative) = ((x >> 23 & 0xFF) as i32, x & 0x7F_FFFF, x >> 31 == 1);
    if exponent == 255 && fraction != 0 {
        return NAN;
    }
    // |x| in units of 2^-18: the significand's last place is 2^(exponent - 150).
    let significand = i64::from(if exponent == 0 { fraction } else { fraction | 0x80_0000 });
    let shift = exponent.max(1) - 150 + FRACTION_BITS as i32;
    let magnitude = if shift >= 8 {
        1 << 31 // 8192 or more: beyond both ends
    } else if shift >= 0 {
        significand << shift
    } else {
        significand >> (-shift).min(63)
    };
    let fixed = if negative { -magnitude } else { magnitude };
    let whole = fixed >> FRACTION_BITS;
    if whole < -126 {
        return 0;
    }
    if whole > 127 {
        return 0x7F80_0000;
    }
    let rest = (fixed & ((1 << FRACTION_BITS) - 1)) as u32;
    let (h, g) = ((rest >> 10) as usize, rest & 0x3FF);
    let slope = BASE[h + 1] - BASE[h];
    ((whole + 127) as u32) << 23 | (BASE[h] + ((slope * g) >> 10)) << 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_the_rounded_curve() {
        for (h, &base) in BASE.iter().enumerate() {
            let exact = (2f64.powf(h as f64 / 256.0) - 1.0) * 2f64.powi(22);
            assert_eq!(f64::from(base), exact.round(), "entry {h}");
        }
    }

    #[test]
    fn the_error_is_below_two_to_the_minus_17_everywhere() {
        let unit = 1.0 / f64::from(1 << FRACTION_BITS);
        for whole in [0.0, -1.0, -2.0, -16.0] {
            for f in 0..1u32 << FRACTION_BITS {
                let x = whole + f64::from(f) * unit;
                assert_eq!(f64::from(x as f32), x, "fp32 holds every step of these binades");
                let got = f64::from(f32::from_bits(exp2((x as f32).to_bits())));
                // All arguments from x to less than a step further from 0 share this result; 2^x is monotonic, so both ends bound them.
                let further = if x < 0.0 { x - unit } else { x + unit };
                for exact in [x.exp2(), further.exp2()] {
                    assert!((got / exact - 1.0).abs() <= 2f64.powi(-17), "{x}");
                }
            }
        }
    }

    #[test]
    fn a_whole_step_of_the_argument_only_moves_the_exponent() {
        // So the error of four binades above is the error of all.
        for f in (0..1u32 << FRACTION_BITS).step_by(4096) {
            let fraction = f64::from(f) / f64::from(1 << FRACTION_BITS);
            let mantissa = exp2((fraction as f32).to_bits()) & 0x7F_FFFF;
            for whole in -126..=127 {
                let x = (f64::from(whole) + fraction) as f32;
                assert_eq!(exp2(x.to_bits()), ((whole + 127) as u32) << 23 | mantissa, "{x}");
            }
        }
    }

    #[test]
    fn bits_of_the_argument_below_the_last_step_are_dropped() {
        let step = |x: f32| exp2(x.to_bits());
        for x in [0.0f32, 0.25, -0.25, -3.0, -7.625] {
            let below_a_step = 0.9f32 / (1 << FRACTION_BITS) as f32 * if x < 0.0 { -1.0 } else { 1.0 };
            assert_eq!(step(x + below_a_step), step(x), "{x}");
        }
    }

    #[test]
    fn integers_are_exact_and_ends_are_clean() {
        for n in -126..=127 {
            assert_eq!(f32::from_bits(exp2((n as f32).to_bits())), 2f32.powi(n));
        }
        assert_eq!(exp2((-126.01f32).to_bits()), 0);
        assert_eq!(exp2(128f32.to_bits()), 0x7F80_0000);
        assert_eq!(exp2(f32::INFINITY.to_bits()), 0x7F80_0000);
        assert_eq!(exp2(f32::NEG_INFINITY.to_bits()), 0);
        assert_eq!(exp2(f32::MIN.to_bits()), 0);
        assert_eq!(exp2(f32::NAN.to_bits()), NAN);
        assert_eq!(exp2(1), 0x3F80_0000);
        assert_eq!(exp2(0x8000_0001), 0x3F80_0000);
    }

    #[test]
    fn the_curve_never_falls() {
        let mut last = 0.0;
        let mut x = -127.0f32;
        while x < 1.0 {
            let y = f32::from_bits(exp2(x.to_bits()));
            assert!(y >= last, "{x}");
            last = y;
            x += 1.0 / 4096.0;
        }
        let mut bits = (-2.0f32).to_bits();
        last = 0.0;
        while bits > (-0.001f32).to_bits() {
            let y = f32::from_bits(exp2(bits));
            assert!(y >= last, "{bits:#x}");
            last = y;
            bits -= 1;
        }
    }
}
