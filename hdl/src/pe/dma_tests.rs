//! The DMA against a memory channel of random latency and stalls, with host accesses and resets in mid-stream.

use std::collections::VecDeque;

use braid_golden::stimulus::Stimulus;
use rust_hdl::prelude::*;

use super::dma::Dma;
use crate::testing::{cycle, settle};

/// What memory holds at a beat address.
fn content(address: u64) -> u64 {
    address.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5555
}

/// A request on its way through the memory.
struct Access {
    due: u64,
    address: u64,
    beats: u64,
}

/// A memory channel: answers in order, each request no sooner than its latency, a beat a cycle at most.
struct Channel {
    stimulus: Stimulus,
    /// Shortest latency, and by how much one may be longer, cycles.
    latency: (u64, u32),
    /// Takes a request, or offers a beat, once in so many cycles on average.
    slowness: u32,
    queue: VecDeque<Access>,
    writes: Vec<(u64, u64, u64)>,
    /// The beat on offer stays until it is taken.
    offer: Option<u64>,
}

struct Bench {
    unit: Box<Dma>,
    channel: Channel,
    now: u64,
    /// {v, buffer, beat in the tile, data} as they came out.
    written: Vec<(bool, bool, u64, u64)>,
    k_done: u64,
    v_done: u64,
    answers: Vec<u64>,
}

impl Bench {
    fn new(seed: u64, beats: u64, latency: (u64, u32), slowness: u32) -> Bench {
        let mut unit = Box::<Dma>::default();
        unit.connect_all();
        unit.beats.next = bits(beats);
        unit.running.next = true;
        let channel = Channel { stimulus: Stimulus::new(seed), latency, slowness, queue: VecDeque::new(), writes: vec![], offer: None };
        Bench { unit, channel, now: 0, written: vec![], k_done: 0, v_done: 0, answers: vec![] }
    }

    /// One cycle. Returns whether a load, and whether a host access, was taken in it.
    fn step(&mut self) -> (bool, bool) {
        let channel = &mut self.channel;
        let fast = channel.slowness == 1;
        let unit = &mut self.unit;
        unit.channel_request_ready.next = fast || channel.stimulus.once_in(channel.slowness);
        if channel.offer.is_none()
            && (fast || channel.stimulus.once_in(channel.slowness))
            && let Some(access) = channel.queue.front_mut().filter(|a| a.due <= self.now)
        {
            channel.offer = Some(content(access.address));
            access.address += 1;
            access.beats -= 1;
            if access.beats == 0 {
                channel.queue.pop_front();
            }
        }
        unit.channel_read_valid.next = channel.offer.is_some();
        unit.channel_read_data.next = bits(channel.offer.unwrap_or(0xBAD));
        settle(unit.as_mut());
        let taken = (unit.load_valid.val() && unit.load_ready.val(), unit.host_valid.val() && unit.host_ready.val());
        if unit.channel_request_valid.val() && unit.channel_request_ready.val() {
            let address = unit.channel_request_address.val().to_u64();
            if unit.channel_request_write.val() {
                let (data, strobe) = (unit.channel_write_data.val(), unit.channel_write_strobe.val());
                channel.writes.push((address, data.get_bits::<64>(0).to_u64(), strobe.to_u64()));
            } else {
                let due = self.now + channel.latency.0 + u64::from(channel.stimulus.below(channel.latency.1));
                channel.queue.push_back(Access { due, address, beats: unit.channel_request_beats.val().to_u64() });
            }
        }
        if unit.channel_read_valid.val() && unit.channel_read_ready.val() {
            channel.offer = None;
        }
        cycle(unit.as_mut(), |u, c| u.clock.next = c);
        self.now += 1;
        if unit.kv_write.val() {
            let data = unit.kv_write_data.val().get_bits::<64>(0).to_u64();
            let (v, buffer) = (unit.kv_write_v.val(), unit.kv_write_buffer.val());
            self.written.push((v, buffer, unit.kv_write_address.val().to_u64(), data));
        }
        self.k_done += u64::from(unit.k_done.val());
        self.v_done += u64::from(unit.v_done.val());
        if unit.host_read_valid.val() {
            self.answers.push(unit.host_read_data.val().get_bits::<64>(0).to_u64());
        }
        assert!(self.now < 100_000, "the DMA does not end");
        taken
    }

    fn run(&mut self, cycles: u64) {
        for _ in 0..cycles {
            self.step();
        }
    }

    /// Asks for a tile and waits until the request is taken.
    fn load(&mut self, v: bool, buffer: bool, address: u64) {
        self.unit.load_valid.next = true;
        self.unit.load_v.next = v;
        self.unit.load_buffer.next = buffer;
        self.unit.load_address.next = bits(address);
        while !self.step().0 {}
        self.unit.load_valid.next = false;
    }

    fn host(&mut self, write: bool, address: u64, data: u64, strobe: u64) {
        self.unit.host_valid.next = true;
        self.unit.host_write.next = write;
        self.unit.host_address.next = bits(address);
        self.unit.host_data.next = bits(data);
        self.unit.host_strobe.next = bits(strobe);
        while !self.step().1 {}
        self.unit.host_valid.next = false;
    }

    fn drain(&mut self) {
        settle(self.unit.as_mut());
        while self.unit.busy.val() {
            self.step();
        }
        self.step();
    }

    fn reset(&mut self, cycles: u64) {
        self.unit.reset.next = true;
        self.run(cycles);
        self.unit.reset.next = false;
        self.written.clear();
        (self.k_done, self.v_done) = (0, 0);
    }
}

fn expected(tiles: &[(bool, bool, u64)], beats: u64) -> Vec<(bool, bool, u64, u64)> {
    tiles.iter().flat_map(|&(v, buffer, address)| (0..beats).map(move |i| (v, buffer, i, content(address + i)))).collect()
}

fn tiles(stimulus: &mut Stimulus, n: usize) -> Vec<(bool, bool, u64)> {
    (0..n).map(|_| (stimulus.once_in(2), stimulus.once_in(2), u64::from(stimulus.below(1 << 30)))).collect()
}

#[test]
fn every_beat_reaches_its_place_in_order() {
    for (seed, beats, latency, slowness) in [(1, 32, (1, 1), 1), (2, 48, (1, 120), 1), (3, 256, (5, 30), 3), (4, 32, (1, 300), 5)] {
        let mut bench = Bench::new(seed, beats, latency, slowness);
        let tiles = tiles(&mut Stimulus::new(seed + 100), 7);
        tiles.iter().for_each(|&(v, buffer, address)| bench.load(v, buffer, address));
        bench.drain();
        assert!(bench.written == expected(&tiles, beats), "seed {seed}");
        let v = tiles.iter().filter(|t| t.0).count() as u64;
        assert_eq!((bench.k_done, bench.v_done), (7 - v, v));
    }
}

#[test]
fn the_latency_of_the_channel_is_hidden() {
    let mut bench = Bench::new(5, 256, (100, 1), 1);
    let begin = bench.now;
    for tile in 0..8 {
        bench.load(tile % 2 == 1, false, tile * 256);
    }
    bench.drain();
    assert!(bench.now - begin <= 100 + 8 * 256 + 10, "{} cycles for 8 tiles of 256 beats", bench.now - begin);
}

#[test]
fn beats_owed_at_a_reset_never_reach_a_later_load() {
    for seed in 10..40 {
        let mut stimulus = Stimulus::new(seed);
        let mut bench = Bench::new(seed, 32, (1, 1 + stimulus.below(60)), 1 + stimulus.below(4));
        let before = tiles(&mut stimulus, 1 + seed as usize % 3);
        before.iter().for_each(|&(v, buffer, address)| bench.load(v, buffer, address));
        bench.run(stimulus.below(80).into());
        bench.reset(u64::from(1 + stimulus.below(3)));
        let after = tiles(&mut stimulus, 3);
        after.iter().for_each(|&(v, buffer, address)| bench.load(v, buffer, address));
        bench.drain();
        assert!(bench.written == expected(&after, 32), "seed {seed}");
    }
}

#[test]
fn the_host_reads_and_writes_between_launches_only() {
    let mut bench = Bench::new(50, 32, (1, 20), 2);
    bench.load(false, false, 500);
    bench.unit.host_valid.next = true;
    for _ in 0..30 {
        settle(bench.unit.as_mut());
        assert!(!bench.unit.host_ready.val(), "the host got in while a launch runs");
        bench.step();
    }
    bench.unit.host_valid.next = false;
    bench.drain();
    bench.unit.running.next = false;
    for i in 0..20u64 {
        if i % 3 == 0 {
            bench.host(true, 40 + i, 1000 + i, 0xF0F);
        } else {
            bench.host(false, 90 + i, 0, 0);
        }
    }
    bench.run(60);
    let read: Vec<u64> = (0..20).filter(|i| i % 3 != 0).map(|i| content(90 + i)).collect();
    let write: Vec<_> = (0..20).filter(|i| i % 3 == 0).map(|i| (40 + i, 1000 + i, 0xF0F)).collect();
    assert_eq!((bench.answers, bench.channel.writes), (read, write));
}

#[test]
fn a_host_read_after_a_reset_gets_its_own_answer() {
    let mut bench = Bench::new(60, 32, (1, 50), 2);
    bench.load(true, true, 7000);
    bench.run(10);
    bench.reset(2);
    bench.unit.running.next = false;
    bench.host(false, 1234, 0, 0);
    bench.run(200);
    assert_eq!(bench.answers, [content(1234)]);
    assert!(bench.written.is_empty());
}
