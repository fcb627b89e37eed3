//! Byte memories of the machine.

use braid_isa::LANES;
use braid_isa::geometry::BEAT_BYTES;

/// A memory of whole beats. What was never written reads as `fill`.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    /// Grows with the highest byte written.
    bytes: Vec<u8>,
    beats: usize,
    fill: u8,
}

impl Memory {
    pub(super) fn new(beats: usize, fill: u8) -> Memory {
        Memory { bytes: Vec::new(), beats, fill }
    }

    /// Size in beats.
    pub(super) fn beats(&self) -> usize {
        self.beats
    }

    /// Whether `length` bytes from `byte` lie inside.
    pub(super) fn holds(&self, byte: u64, length: u64) -> bool {
        byte.saturating_add(length) <= self.beats as u64 * BEAT_BYTES as u64
    }

    /// Writes bytes that lie inside.
    pub(super) fn write(&mut self, byte: usize, data: &[u8]) {
        let end = byte + data.len();
        if self.bytes.len() < end {
            self.bytes.resize(end, self.fill);
        }
        self.bytes[byte..end].copy_from_slice(data);
    }

    /// Reads bytes that lie inside.
    pub(super) fn read(&self, byte: usize, data: &mut [u8]) {
        let written = self.bytes.get(byte..).unwrap_or_default();
        let known = written.len().min(data.len());
        data[..known].copy_from_slice(&written[..known]);
        data[known..].fill(self.fill);
    }

    /// 16-bit elements of `beats` beats from `beat`.
    pub(super) fn elements(&self, beat: usize, beats: usize) -> Vec<u16> {
        let mut bytes = vec![0; beats * BEAT_BYTES];
        self.read(beat * BEAT_BYTES, &mut bytes);
        bytes.as_chunks::<{ BEAT_BYTES / LANES }>().0.iter().map(|b| u16::from_le_bytes(*b)).collect()
    }

    /// One beat as four 32-bit words, lowest first.
    pub(super) fn words(&self, beat: usize) -> [u32; 4] {
        let mut bytes = [0; BEAT_BYTES];
        self.read(beat * BEAT_BYTES, &mut bytes);
        std::array::from_fn(|i| u32::from_le_bytes(std::array::from_fn(|b| bytes[i * 4 + b])))
    }
}
