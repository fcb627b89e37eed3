//! Sizes of the array. A preset fixes all of them.

/// Operands of a beat: memory-channel beats, SRAM words and commands are all 8 x 16 = 128 bits.
pub const LANES: usize = 8;
/// Positions of a page, which is also the KV tile.
pub const TILE: usize = 16;
/// Bytes of a beat.
pub const BEAT_BYTES: usize = LANES * 2;
/// Ranges that a row can hold at a time; a row with more takes several passes.
pub const RANGES_PER_PASS: usize = 4;
/// Smallest head dimension: the accumulator of a column must come back no sooner than the dot-product unit's latency.
pub const MIN_HEAD_DIM: usize = 16;

/// Sizes of one preset of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Name of the preset.
    pub name: &'static str,
    /// CUBEs of the SIP.
    pub cubes: usize,
    /// PEs of a CUBE.
    pub pes_per_cube: usize,
    /// Rows of a row tile: dot-product units of a PE.
    pub rows: usize,
    /// Rows that the row-state store holds.
    pub max_rows: usize,
    /// Largest head dimension.
    pub max_head_dim: usize,
    /// 128-bit words of shared SRAM in a CUBE.
    pub sram_words: usize,
}

impl Geometry {
    /// 2 CUBEs of 2 PEs, 2 rows: for slow simulators.
    pub const TINY: Geometry =
        Geometry { name: "tiny", cubes: 2, pes_per_cube: 2, rows: 2, max_rows: 64, max_head_dim: 128, sram_words: 1 << 13 };
    /// The full array of PEs with 2 rows each.
    pub const SMALL: Geometry =
        Geometry { name: "small", cubes: 4, pes_per_cube: 8, rows: 2, max_rows: 256, max_head_dim: 128, sram_words: 1 << 15 };
    /// The full machine: 4 x 8 PEs of 8 rows x 8 lanes.
    pub const DEFAULT: Geometry =
        Geometry { name: "default", cubes: 4, pes_per_cube: 8, rows: 8, max_rows: 1024, max_head_dim: 128, sram_words: 1 << 16 };
    /// All presets.
    pub const PRESETS: [Geometry; 3] = [Self::TINY, Self::SMALL, Self::DEFAULT];

    /// PEs of the SIP.
    pub const fn pes(&self) -> usize {
        self.cubes * self.pes_per_cube
    }

    /// Row tiles that hold `rows` rows.
    pub const fn row_tiles(&self, rows: usize) -> usize {
        rows.div_ceil(self.rows)
    }

    /// Multiply-accumulate operations that the whole array can do in a cycle.
    pub const fn macs_per_cycle(&self) -> usize {
        self.pes() * self.rows * LANES
    }
}
