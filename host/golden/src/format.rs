//! Number formats at the edge of the array and inside it.

/// Canonical fp32 NaN, the only one that any unit produces.
pub const NAN: u32 = 0x7FC0_0000;
/// fp32 negative infinity.
pub const NEG_INFINITY: u32 = 0xFF80_0000;

/// A multiplier input: sign, 8-bit exponent (bias 127), 10-bit fraction; holds every fp16 and bf16 without loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Operand(u32);

impl Operand {
    /// Bits of the encoding.
    pub const BITS: u32 = 19;
    /// Canonical NaN.
    pub const NAN: Operand = Operand(0x3_FE00);
    /// 1.0, the column whose weighted sum is l.
    pub const ONE: Operand = Operand(127 << 10);

    /// The operand with this encoding (19 bits, higher ones are cut).
    pub const fn from_bits(bits: u32) -> Operand {
        Operand(bits & 0x7_FFFF)
    }

    /// The 19-bit encoding: sign 18, exponent 17:10, fraction 9:0.
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// Sign bit.
    pub const fn sign(self) -> bool {
        self.0 >> 18 == 1
    }

    /// Exponent field.
    pub const fn exponent(self) -> u32 {
        (self.0 >> 10) & 0xFF
    }

    /// Fraction field.
    pub const fn fraction(self) -> u32 {
        self.0 & 0x3FF
    }

    /// Significand with its hidden bit, 11 bits.
    pub const fn significand(self) -> u32 {
        if self.exponent() == 0 { self.fraction() } else { self.fraction() | 0x400 }
    }

    /// Whether it is a NaN.
    pub const fn is_nan(self) -> bool {
        self.exponent() == 255 && self.fraction() != 0
    }

    /// Whether it is an infinity.
    pub const fn is_infinite(self) -> bool {
        self.exponent() == 255 && self.fraction() == 0
    }

    /// Whether it is a zero.
    pub const fn is_zero(self) -> bool {
        self.0 & 0x3_FFFF == 0
    }

    /// bf16 to operand, exact.
    pub const fn from_bf16(bits: u16) -> Operand {
        let bits = bits as u32;
        if bits & 0x7FFF > 0x7F80 { Operand::NAN } else { Operand(bits << 3) }
    }

    /// fp16 to operand, exact; subnormals are normalised.
    pub const fn from_fp16(bits: u16) -> Operand {
        let bits = bits as u32;
        let (sign, exponent, fraction) = (bits >> 15 << 18, bits >> 10 & 0x1F, bits & 0x3FF);
        match (exponent, fraction) {
            (31, 0) => Operand(sign | 255 << 10),
            (31, _) => Operand::NAN,
            (0, 0) => Operand(sign),
            (0, _) => {
                // A shift by n brings the leading one to the hidden bit: f * 2^-24 = 1.x * 2^(-14-n).
                let shift = fraction.leading_zeros() - 21;
                Operand(sign | (113 - shift) << 10 | (fraction << shift & 0x3FF))
            }
            _ => Operand(sign | (exponent + 112) << 10 | fraction),
        }
    }

    /// fp32 to operand, to nearest even.
    pub const fn from_fp32(bits: u32) -> Operand {
        let magnitude = bits & 0x7FFF_FFFF;
        if magnitude > 0x7F80_0000 {
            return Operand::NAN;
        }
        let half_even = 0xFFF + (magnitude >> 13 & 1);
        Operand(bits >> 31 << 18 | (magnitude + half_even) >> 13)
    }

    /// The same value as fp32, exact.
    pub const fn to_fp32(self) -> u32 {
        if self.is_nan() { NAN } else { self.0 >> 18 << 31 | (self.0 & 0x3_FFFF) << 13 }
    }
}

/// Format of a 16-bit tensor element in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Format {
    /// IEEE 754 binary16.
    #[default]
    Fp16,
    /// The upper half of binary32.
    Bf16,
}

impl Format {
    /// Converts an element to the operand format, without loss.
    pub const fn operand(self, bits: u16) -> Operand {
        match self {
            Format::Fp16 => Operand::from_fp16(bits),
            Format::Bf16 => Operand::from_bf16(bits),
        }
    }

    /// Rounds an f32 to the format, to nearest even.
    pub fn round(self, value: f32) -> u16 {
        match self {
            Format::Fp16 => half::f16::from_f32(value).to_bits(),
            Format::Bf16 => half::bf16::from_f32(value).to_bits(),
        }
    }

    /// The element's value.
    pub fn value(self, bits: u16) -> f32 {
        match self {
            Format::Fp16 => half::f16::from_bits(bits).to_f32(),
            Format::Bf16 => half::bf16::from_bits(bits).to_f32(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stimulus::Stimulus;

    #[test]
    fn every_16_bit_element_becomes_the_operand_of_the_same_value() {
        for format in [Format::Fp16, Format::Bf16] {
            for bits in 0..=u16::MAX {
                let (operand, value) = (format.operand(bits), format.value(bits));
                if value.is_nan() {
                    assert_eq!(operand, Operand::NAN);
                } else {
                    assert_eq!(operand.to_fp32(), value.to_bits(), "{format:?} {bits:#06x}");
                }
            }
        }
    }

    #[test]
    fn rounding_to_operand_picks_the_nearest_and_the_even_one() {
        let mut stimulus = Stimulus::new(1);
        for _ in 0..300_000 {
            let bits = stimulus.fp32();
            let value = f32::from_bits(bits);
            let operand = Operand::from_fp32(bits);
            if value.is_nan() {
                assert_eq!(operand, Operand::NAN);
                continue;
            }
            if operand.is_infinite() {
                // Halfway between the largest operand and the next power of two.
                assert!(value.abs() >= f32::from_bits(0x7F7F_F000));
                continue;
            }
            let (exact, got) = (f64::from(value), f64::from(f32::from_bits(operand.to_fp32())));
            for other in [operand.to_bits() + 1, operand.to_bits().wrapping_sub(1)].map(Operand::from_bits) {
                if other.is_nan() || other.is_infinite() || other.sign() != operand.sign() {
                    continue;
                }
                let distance = (f64::from(f32::from_bits(other.to_fp32())) - exact).abs();
                assert!((got - exact).abs() <= distance, "{bits:#010x}");
                if (got - exact).abs() == distance {
                    assert_eq!(operand.to_bits() & 1, 0, "{bits:#010x}");
                }
            }
        }
    }
}
