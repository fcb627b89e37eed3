//! Values for tests of anything that is compared with the golden model: seeded, reproducible, rich in special cases.

/// fp32 values at which units go wrong: zeros, subnormals, powers of two and their neighbours, largest values, infinities, NaNs.
pub const SPECIAL_FP32: [u32; 38] = [
    0x0000_0000,
    0x8000_0000,
    0x0000_0001,
    0x8000_0001,
    0x0000_0002,
    0x007F_FFFF,
    0x807F_FFFF,
    0x0080_0000,
    0x8080_0000,
    0x0080_0001,
    0x00FF_FFFF,
    0x3F80_0000,
    0xBF80_0000,
    0x3F7F_FFFF,
    0x3F80_0001,
    0xBF80_0001,
    0x3F00_0000,
    0x4000_0000,
    0x3FFF_FFFF,
    0x4B00_0000,
    0x4B7F_FFFF,
    0x4B80_0000,
    0xCB80_0001,
    0xC2FC_0000,
    0xC2FC_0001,
    0x42FF_FFFF,
    0x4300_0000,
    0x7E80_0000,
    0x7F00_0000,
    0x7F7F_FFFF,
    0xFF7F_FFFF,
    0x7F80_0000,
    0xFF80_0000,
    0x7FC0_0000,
    0x7F80_0001,
    0xFFFF_FFFF,
    0x3400_0000,
    0xB380_0001,
];

/// A seeded generator (xorshift64*, Vigna 2016) whose fp32 values cluster where floating-point units have their corners.
#[derive(Clone, Debug)]
pub struct Stimulus {
    state: u64,
}

impl Stimulus {
    /// A generator; equal seeds give equal sequences.
    pub fn new(seed: u64) -> Stimulus {
        Stimulus { state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1 }
    }

    /// Uniform 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Uniform in `0..bound`.
    ///
    /// # Panics
    /// If `bound` is 0.
    pub fn below(&mut self, bound: u32) -> u32 {
        assert!(bound > 0, "an empty range has no value");
        (((self.bits() >> 32) * u64::from(bound)) >> 32) as u32
    }

    /// True once in `n` times.
    pub fn once_in(&mut self, n: u32) -> bool {
        self.below(n) == 0
    }

    /// fp32 bits: mostly uniform bits, often a special value, a small exponent range, or few significant bits.
    pub fn fp32(&mut self) -> u32 {
        let bits = (self.bits() >> 32) as u32;
        match self.below(8) {
            0 => SPECIAL_FP32[self.below(SPECIAL_FP32.len() as u32) as usize],
            1 => SPECIAL_FP32[self.below(SPECIAL_FP32.len() as u32) as usize] ^ (bits & 0x8000_0003),
            2 => bits & 0x807F_FFFF | (120 + self.below(16)) << 23,
            3 => bits & 0x807F_FFFF | self.below(26) << 23,
            4 => bits & 0xFFFC_0000,
            5 => bits & 0x807F_FFFF | (230 + self.below(26)) << 23,
            _ => bits,
        }
    }

    /// 19 operand bits, with the same preference for corners.
    pub fn operand(&mut self) -> u32 {
        let bits = (self.bits() >> 40) as u32;
        match self.below(8) {
            0 => [0, 0x4_0000, 1, 0x3FF, 0x400, 0x1_FC00, 0x5_FC00, 0x3_FBFF, 0x3_FC00, 0x7_FC00, 0x3_FE00, 0x3_FC01]
                [self.below(12) as usize],
            1 => bits & 0x4_03FF,
            2..=4 => bits & 0x4_03FF | (117 + self.below(20)) << 10,
            _ => bits & 0x7_FFFF,
        }
    }

    /// A normally distributed value (sum of twelve uniform ones, less six), for tensors that look like a model's.
    pub fn normal(&mut self) -> f32 {
        let sum: f64 = (0..12).map(|_| (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)).sum();
        (sum - 6.0) as f32
    }
}
