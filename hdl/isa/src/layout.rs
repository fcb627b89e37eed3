//! Memory layouts: pages, Q_cmb, row tables, outputs, host addresses.

use crate::geometry::{BEAT_BYTES, Geometry, LANES, TILE};

/// Beats of one page: K row-major \[position\]\[d\], then V transposed \[d\]\[position\].
pub const fn page_beats(head_dim: usize) -> usize {
    2 * TILE * head_dim / LANES
}

/// Words of a Q tile of `rows` rows.
pub const fn q_words(rows: usize, head_dim: usize) -> usize {
    rows * head_dim / LANES
}

/// Words of a row's entry in the row table: four ranges of two 32-bit positions.
pub const ROW_TABLE_WORDS: usize = 2;

/// Words of the output area: fp32 [row tile][d + 2][rows of a tile].
pub const fn output_words(geometry: &Geometry, rows: usize, head_dim: usize) -> usize {
    (geometry.row_tiles(rows) * (head_dim + 2) * geometry.rows).div_ceil(4)
}

/// Index of an fp32 in the output area. Column `head_dim` is l, `head_dim + 1` is m.
pub const fn output_index(geometry: &Geometry, head_dim: usize, row: usize, column: usize) -> usize {
    (row / geometry.rows * (head_dim + 2) + column) * geometry.rows + row % geometry.rows
}

/// Merge rounds of `active` PEs: ceil(log2 active).
pub const fn merge_rounds(active: usize) -> u32 {
    active.next_power_of_two().trailing_zeros()
}

/// Columns [first, end) of O that PE `pe` owns after merge rounds `0..rounds`; empty for a PE that takes no part. In round i the PE
/// whose bit i is 0 keeps the first, larger half.
pub const fn owned_columns(head_dim: usize, pe: usize, rounds: u32) -> (usize, usize) {
    if pe >> rounds != 0 {
        return (0, 0);
    }
    let (mut first, mut end, mut round) = (0, head_dim, 0);
    while round < rounds {
        let middle = first + (end - first).div_ceil(2);
        if pe >> round & 1 == 0 {
            end = middle;
        } else {
            first = middle;
        }
        round += 1;
    }
    (first, end)
}

/// A byte address of the host's data port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostAddress {
    /// Shared SRAM of a CUBE.
    Sram {
        /// CUBE index.
        cube: usize,
        /// Byte offset.
        byte: u32,
    },
    /// Memory behind a PE's channel.
    Channel {
        /// Global PE index.
        pe: usize,
        /// Byte offset.
        byte: u32,
    },
}

impl HostAddress {
    /// The start of an SRAM word.
    pub const fn sram_word(cube: usize, word: usize) -> HostAddress {
        HostAddress::Sram { cube, byte: (word * BEAT_BYTES) as u32 }
    }

    /// The start of a beat of channel memory.
    pub const fn channel_beat(pe: usize, beat: usize) -> HostAddress {
        HostAddress::Channel { pe, byte: (beat * BEAT_BYTES) as u32 }
    }

    /// The 40-bit bus address: bit 39 channel, bits 38:32 index, bits 31:0 byte.
    pub const fn to_bus(self) -> u64 {
        match self {
            HostAddress::Sram { cube, byte } => ((cube as u64 & 0x7F) << 32) | byte as u64,
            HostAddress::Channel { pe, byte } => (1 << 39) | ((pe as u64 & 0x7F) << 32) | byte as u64,
        }
    }

    /// Reads a 40-bit bus address.
    pub const fn from_bus(address: u64) -> HostAddress {
        let index = (address >> 32 & 0x7F) as usize;
        let byte = address as u32;
        if address >> 39 & 1 == 1 { HostAddress::Channel { pe: index, byte } } else { HostAddress::Sram { cube: index, byte } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_has_one_owner() {
        for head_dim in [16, 24, 64, 80, 128] {
            for active in 1..=32 {
                let rounds = merge_rounds(active);
                let mut owners = [0u8; 128];
                for pe in 0..64 {
                    let (first, end) = owned_columns(head_dim, pe, rounds);
                    owners[first..end].iter_mut().for_each(|o| *o += 1);
                }
                assert!(owners[..head_dim].iter().all(|&o| o == 1), "d {head_dim}, {active} PEs");
            }
        }
    }

    #[test]
    fn rounds_are_the_ceiling_of_log2() {
        for (active, rounds) in [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (9, 4), (16, 4), (17, 5), (32, 5)] {
            assert_eq!(merge_rounds(active), rounds);
        }
    }

    #[test]
    fn bus_addresses_survive_a_round_trip() {
        for a in [HostAddress::sram_word(3, 65_535), HostAddress::channel_beat(31, 1 << 20), HostAddress::Channel { pe: 0, byte: u32::MAX }]
        {
            assert_eq!(HostAddress::from_bus(a.to_bus()), a);
        }
    }
}
