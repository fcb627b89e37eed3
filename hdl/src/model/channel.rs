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

    /// Stops answering, as broken memory does. Requests are taken all the same.
    pub fn kill(&mut self) {
        self.dead = true;
    }

    /// Answers again, what was asked for in between first.
    pub fn revive(&mut self) {
        self.dead = false;
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
        if self.outputs.request_ready && inputs.request_valid {
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
            && !self.dead
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
    use proptest::prelude::*;

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

    /// A request: write (data, strobe) or read (beats).
    fn request() -> impl Strategy<Value = ChannelInputs> {
        (any::<bool>(), 0u32..24, 1u16..9, any::<u128>(), any::<u16>()).prop_map(|(write, address, beats, data, strobe)| ChannelInputs {
            request_valid: true,
            request_write: write,
            request_address: address,
            request_beats: if write { 1 } else { beats },
            write_data: data,
            write_strobe: strobe,
            read_ready: false,
        })
    }

    proptest! {
        #[test]
        fn no_beat_is_lost_repeated_reordered_changed_while_it_waits_or_early(
            requests in prop::collection::vec(request(), 1..30),
            latency in 0u64..60,
            stall_once_in in prop_oneof![Just(0u32), 2u32..6],
            seed in any::<u64>(),
            ready in prop::collection::vec(any::<bool>(), 1..50),
        ) {
            let mut channel = MemoryChannel::new(32, ChannelTiming { latency, stall_once_in, seed }, 0xFF);
            let (mut sent, mut missing) = (0, VecDeque::new());
            let mut waiting = None;
            for now in 0..6_000usize {
                // Requests are offered on and off; between them their payload says nothing.
                let offered = requests.get(sent).filter(|_| ready[now * 7 % ready.len()] || now % 5 == 0).copied();
                let read_ready = ready[now % ready.len()] || now % 7 == 0;
                let see = channel.outputs();
                if let Some(data) = waiting {
                    prop_assert_eq!((see.read_valid, see.read_data), (true, data));
                }
                waiting = (see.read_valid && !read_ready).then_some(see.read_data);
                if see.read_valid && read_ready {
                    let (from, address) = missing.pop_front().expect("a beat that was asked for");
                    prop_assert!(now as u64 >= from, "cycle {} is before {}", now, from);
                    prop_assert_eq!(see.read_data, channel.beat(address), "beat {}", address);
                }
                if see.request_ready && let Some(request) = offered {
                    // A write may overtake the beats of an older read, so the comparison above is with the memory as it is; hold writes back until reads are over.
                    if request.request_write && !missing.is_empty() {
                        channel.step(ChannelInputs { read_ready, ..Default::default() });
                        continue;
                    }
                    sent += 1;
                    let before = channel.beat(request.request_address);
                    channel.step(ChannelInputs { read_ready, ..request });
                    if request.request_write {
                        let lanes = (0..16).filter(|i| request.write_strobe >> i & 1 == 1).fold(0u128, |m, i| m | 0xFF << (8 * i));
                        prop_assert_eq!(channel.beat(request.request_address), before & !lanes | request.write_data & lanes);
                    } else {
                        let from = now as u64 + latency.max(1);
                        missing.extend((0..u32::from(request.request_beats)).map(|i| (from, request.request_address + i)));
                    }
                } else {
                    channel.step(ChannelInputs { read_ready, ..offered.unwrap_or_default() });
                }
                if sent == requests.len() && missing.is_empty() {
                    return Ok(());
                }
            }
            prop_assert!(false, "{} of {} requests taken, {} beats missing", sent, requests.len(), missing.len());
        }

        #[test]
        fn the_same_seed_gives_the_same_stalls(seed in any::<u64>(), stall_once_in in 2u32..6) {
            let trace = || {
                let mut channel = MemoryChannel::new(32, ChannelTiming { latency: 3, stall_once_in, seed }, 0xFF);
                let step = ChannelInputs { request_valid: true, request_beats: 2, read_ready: true, ..Default::default() };
                (0..100).map(|_| { channel.step(step); channel.outputs() }).collect::<Vec<_>>()
            };
            let first = trace();
            prop_assert_eq!(&first, &trace());
            prop_assert!(first.iter().any(|o| !o.request_ready) && first.iter().any(|o| o.request_ready));
        }
    }

    #[test]
    fn dead_memory_takes_requests_and_never_answers() {
        let mut channel = MemoryChannel::new(64, ChannelTiming { latency: 1, ..Default::default() }, 0xFF);
        channel.kill();
        for _ in 0..100 {
            channel.step(ChannelInputs { request_valid: true, request_beats: 1, read_ready: true, ..Default::default() });
            assert!(!channel.outputs().read_valid);
        }
    }

    #[test]
    fn revived_memory_answers_what_was_asked_for_in_between() {
        let mut channel = MemoryChannel::new(64, ChannelTiming { latency: 1, ..Default::default() }, 0xFF);
        channel.write_bytes(3 * BEAT_BYTES, &[7; BEAT_BYTES]);
        channel.kill();
        channel.step(ChannelInputs { request_valid: true, request_address: 3, request_beats: 1, read_ready: true, ..Default::default() });
        (0..20).for_each(|_| channel.step(ChannelInputs { read_ready: true, ..Default::default() }));
        assert!(!channel.outputs().read_valid);
        channel.revive();
        channel.step(ChannelInputs { read_ready: true, ..Default::default() });
        assert_eq!((channel.outputs().read_valid, channel.outputs().read_data), (true, u128::from_le_bytes([7; BEAT_BYTES])));
    }
}
