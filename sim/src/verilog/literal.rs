//! Sized literals and arithmetic on their limbs (32 bits, lowest first).

use std::fmt::Write;

/// `8'h1f`; decimal up to 9.
pub(super) fn sized(limbs: &[u32], width: usize) -> String {
    let limb = |i: usize| limbs.get(i).copied().unwrap_or(0);
    if (1..limbs.len()).all(|i| limb(i) == 0) && limb(0) <= 9 {
        return format!("{width}'d{}", limb(0));
    }
    let digits = width.div_ceil(4);
    let mut text = format!("{width}'h");
    for digit in (0..digits).rev() {
        // Writing to a string cannot fail.
        let _ = write!(text, "{:x}", limb(digit / 8) >> (4 * (digit % 8)) & 15);
    }
    text
}

/// Bits `low .. low + width`.
pub(super) fn part(limbs: &[u32], low: usize, width: usize) -> Vec<u32> {
    let mut out = vec![0; width.div_ceil(32)];
    for bit in 0..width {
        let at = low + bit;
        out[bit / 32] |= (limbs.get(at / 32).copied().unwrap_or(0) >> (at % 32) & 1) << (bit % 32);
    }
    out
}

/// The value of `from` bits at `to` bits.
pub(super) fn extended(limbs: &[u32], from: usize, to: usize, signed: bool) -> Vec<u32> {
    let mut out = part(limbs, 0, from);
    out.resize(to.div_ceil(32), 0);
    if signed && from > 0 && out[(from - 1) / 32] >> ((from - 1) % 32) & 1 == 1 {
        for bit in from..to {
            out[bit / 32] |= 1 << (bit % 32);
        }
    }
    out
}

/// True if all `width` bits are 1.
pub(super) fn is_ones(limbs: &[u32], width: usize) -> bool {
    (0..width).all(|bit| limbs.get(bit / 32).copied().unwrap_or(0) >> (bit % 32) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_values_are_decimal_and_others_hexadecimal_with_all_digits() {
        assert_eq!(sized(&[5], 8), "8'd5");
        assert_eq!(sized(&[0x1f], 8), "8'h1f");
        assert_eq!(sized(&[0x1, 0xff], 40), "40'hff00000001");
        assert_eq!(sized(&[0x10], 5), "5'h10");
    }

    #[test]
    fn a_negative_value_is_extended_by_its_sign() {
        assert_eq!(extended(&[0x80], 8, 40, true), vec![0xffff_ff80, 0xff]);
        assert_eq!(extended(&[0x80], 8, 40, false), vec![0x80, 0]);
    }
}
