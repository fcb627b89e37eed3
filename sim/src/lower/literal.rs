//! Numbers in rust-hdl's Verilog spelling: `8'hff`, `5'b101`, `8'h-17`. Literals hide their value; the spelling is the only way to it.

/// Limbs (32 bits, lowest first) of a value spelled by rust-hdl, cut or extended to `width` bits. `None` if it is no number.
pub(super) fn parse(text: &str, width: usize) -> Option<Vec<u32>> {
    let (_, value) = text.trim().split_once('\'')?;
    let (radix_bits, digits) = match value.chars().next()? {
        'h' => (4, &value[1..]),
        'b' => (1, &value[1..]),
        _ => return None,
    };
    let (negative, digits) = match digits.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, digits),
    };
    let mut limbs = vec![0u32; width.div_ceil(32).max(1)];
    for (position, c) in digits.chars().rev().enumerate() {
        let digit = c.to_digit(1 << radix_bits)?;
        let bit = position * radix_bits;
        if bit / 32 < limbs.len() {
            limbs[bit / 32] |= digit << (bit % 32);
        }
    }
    if negative {
        let mut carry = true;
        for limb in &mut limbs {
            let (value, overflow) = (!*limb).overflowing_add(u32::from(carry));
            *limb = value;
            carry = overflow;
        }
    }
    Some(cut(limbs, width))
}

/// Clears the bits from `width` on and sets the number of limbs.
pub(super) fn cut(mut limbs: Vec<u32>, width: usize) -> Vec<u32> {
    limbs.resize(width.div_ceil(32).max(1), 0);
    if !width.is_multiple_of(32) || width == 0 {
        let last = limbs.len() - 1;
        limbs[last] &= ((1u64 << (width % 32)) - 1) as u32;
    }
    limbs
}

/// Limbs of a 128-bit number at a width.
pub(super) fn of_u128(value: u128, width: usize) -> Vec<u32> {
    cut((0..4).map(|i| (value >> (32 * i)) as u32).collect(), width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelled_numbers_come_back_as_limbs() {
        assert_eq!(parse("8'hff", 8), Some(vec![0xff]));
        assert_eq!(parse("5'b101", 5), Some(vec![5]));
        assert_eq!(parse("8'h-17", 8), Some(vec![0xe9]));
        assert_eq!(parse("40'hff00000001", 40), Some(vec![1, 0xff]));
        assert_eq!(parse("8", 8), None);
    }

    #[test]
    fn a_negative_number_is_extended_to_every_limb() {
        assert_eq!(parse("40'h-1", 40), Some(vec![u32::MAX, 0xff]));
    }
}
