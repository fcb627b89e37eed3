//! Memory-channel model: a byte memory with latency, bandwidth and random stalls.
//!
//! It is stepped once a clock cycle with what the PE drives, and gives what the PE sees in the next cycle; so both sides are registered.

use std::collections::VecDeque;

/// Bytes of a beat.
pub const BEAT_BYTES: usize = 16;

/// Timing of a channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChannelTiming {
    /// Cycles from a request to its first beat, at least 1.
    pub latency: u64,
    /// A cycle is a stall once in this many cycles, for requests and for answers alike; 0: never.
    pub stall_once_in: u32,
    /// Seed of the stalls.
    pub seed: u64,
}

impl Default for ChannelTiming {
    /// 40 cycles of latency, no stalls.
    fn default() -> Self {
        ChannelTiming { latency: 40, stall_once_in: 0, seed: 1 }
    }
}

/// What the PE drives in a cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelInputs {
    /// A request is offered.
    pub request_valid: bool,
    /// It is a write of one beat.
    pub request_write: bool,
    /// Beat address.
    pub request_address: u32,
    /// Beats to read.
    pub request_beats: u16,
    /// Data of a write.
    pub write_data: u128,
    /// Bytes of a write.
    pub write_strobe: u16,
    /// The PE takes the offered beat.
    pub read_ready: bool,
}

/// What the PE sees in a cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelOutputs {
    /// A request would be taken.
    pub request_ready: bool,
    /// A beat is offered.
    pub read_valid: bool,
    /// The beat.
    pub read_data: u128,
}

/// Memory behind a channel; it grows as it is written, up to its size.
#[derive(Clone, Debug)]
pub struct MemoryChannel {
    bytes: Vec<u8>,
    poison: u8,
    size_beats: u32,
    timing: ChannelTiming,
    random: u64,
    cycle: u64,
    /// Beats to answer, and the cycle from which each may be offered.
    answers: VecDeque<(u64, u32)>,
    outputs: ChannelOutputs,
    dead: bool,
}

impl MemoryChannel {
    /// A channel with `size_beats` beats of memory. Memory that was never written reads as bytes `poison` (0xFF makes NaNs of both formats).
    pub fn new(size_beats: u32, timing: ChannelTiming, poison: u8) -> MemoryChannel {
        let random = timing.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        MemoryChannel {
            bytes: Vec::new(),
            poison,
            size_beats,
            timing,
            random,
            cycle: 0,
            answers: VecDeque::new(),
            outputs: ChannelOutputs { request_ready: true, ..Default::default() },
            dead: false,
        }
    }

    /// Beats of memory.
    pub fn size_beats(&self) -> u32 {
        self.size_beats
    }

    /// Stops answering, as broken memory does.
    pub fn kill(&mut self) {
        self.dead = true;
    }

    /// What the PE sees now.
    pub fn outputs(&self) -> ChannelOutputs {
        self.outputs
    }

    fn stalls(&mut self) -> bool {
        if self.timing.stall_once_in == 0 {
            return false;
        }
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random.is_multiple_of(u64::from(self.timing.stall_once_in))
    }

    /// The beat at an address; poison beyond what was written.
    pub fn beat(&self, address: u32) -> u128 {
        let start = address as usize * BEAT_BYTES;
        let mut beat = [self.poison; BEAT_BYTES];
        if let Some(bytes) = self.bytes.get(start..).filter(|b| !b.is_empty()) {
            let n = bytes.len().min(BEAT_BYTES);
            beat[..n].copy_from_slice(&bytes[..n]);
        }
        u128::from_le_bytes(beat)
    }

    /// Writes bytes from a byte offset, without the PE: the back door of a test bench.
    pub fn write_bytes(&mut self, offset: usize, bytes: &[u8]) {
        if self.bytes.len() < offset + bytes.len() {
            self.bytes.resize(offset + bytes.len(), self.poison);
        }
        self.bytes[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    /// One clock cycle: `inputs` is what the PE drives while it sees [`MemoryChannel::outputs`].
    pub fn step(&mut self, inputs: ChannelInputs) {
        self.cycle += 1;
        if self.outputs.request_ready && inputs.request_valid && !self.dead {
            if inputs.request_write {
                let start = inputs.request_address as usize * BEAT_BYTES;
                for (i, byte) in inputs.write_data.to_le_bytes().into_iter().enumerate() {
                    if inputs.write_strobe >> i & 1 == 1 {
                        self.write_bytes(start + i, &[byte]);
                    }
                }
            } else {
                let first = self.cycle + self.timing.latency.max(1) - 1;
                self.answers.extend((0..u32::from(inputs.request_beats)).map(|i| (first, inputs.request_address.wrapping_add(i))));
            }
        }
        if self.outputs.read_valid && inputs.read_ready {
            self.outputs.read_valid = false;
        }
        if !self.outputs.read_valid
            && let Some(&(from, address)) = self.answers.front()
            && from <= self.cycle
            && !self.stalls()
        {
            self.answers.pop_front();
            self.outputs.read_valid = true;
            self.outputs.read_data = self.beat(address);
        }
        self.outputs.request_ready = !self.stalls();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beats_arrive_in_order_one_a_cycle_after_the_latency() {
        let mut channel = MemoryChannel::new(64, ChannelTiming { latency: 5, ..Default::default() }, 0xFF);
        (0..8u32).for_each(|i| channel.write_bytes(i as usize * 16, &u128::from(i).to_le_bytes()));
        let request = ChannelInputs { request_valid: true, request_address: 2, request_beats: 4, read_ready: true, ..Default::default() };
        channel.step(request);
        let mut seen = Vec::new();
        for cycle in 1..20 {
            if channel.outputs().read_valid {
                seen.push((cycle, channel.outputs().read_data));
            }
            channel.step(ChannelInputs { read_ready: true, ..Default::default() });
        }
        assert_eq!(seen, [(5, 2), (6, 3), (7, 4), (8, 5)]);
    }

    #[test]
    fn strobes_choose_bytes_and_the_rest_is_poison() {
        let mut channel = MemoryChannel::new(64, ChannelTiming::default(), 0xFF);
        let write = ChannelInputs {
            request_valid: true,
            request_write: true,
            request_address: 1,
            write_data: 0,
            write_strobe: 3,
            ..Default::default()
        };
        channel.step(write);
        assert_eq!(channel.beat(1), u128::MAX << 16);
        assert_eq!(channel.beat(0), u128::MAX);
    }
}
