//! The data port between a bus master and two CUBEs in plain Rust, both with random pauses: what AXI4 promises, and what `docs/commands.md` does.

use std::collections::{HashMap, VecDeque};

use braid_golden::stimulus::Stimulus;
use proptest::prelude::*;
use rust_hdl::prelude::*;

use super::axi_data::AxiData;
use crate::model::pins::{from_bits, to_bits};
use crate::testing::{cycle, settle};

const CUBES: usize = 2;
const PES: usize = 2;
const SRAM_WORDS: u64 = 24;
const CHANNEL_BEATS: u64 = 40;
const OKAY: u64 = 0;
const SLVERR: u64 = 2;
/// Cycles within which every burst of a case must be over; they need a tenth of it.
const BOUND: u64 = 60_000;

/// A beat of memory: channel memory or SRAM, PE or CUBE, beat.
type Place = (bool, u64, u64);

/// A burst, as a master asks for it.
#[derive(Clone, Debug)]
struct Burst {
    address: u64,
    id: u64,
    size: u64,
    kind: u64,
    /// Data and strobes of a write; a read has the number alone.
    beats: Vec<(u128, u16)>,
}

impl Burst {
    /// The memory behind a beat, if the machine has it.
    fn place(&self, beat: usize) -> Option<Place> {
        let address = self.address + 16 * beat as u64;
        let (channel, index, at) = (address >> 39 & 1 == 1, address >> 32 & 0x7F, (address & 0xFFFF_FFFF) / 16);
        let (units, size) = if channel { (CUBES * PES, CHANNEL_BEATS) } else { (CUBES, SRAM_WORDS) };
        (self.size == 4 && self.kind == 1 && index < units as u64 && at < size).then_some((channel, index, at))
    }
}

fn strobe() -> impl Strategy<Value = u16> {
    prop_oneof![
        4 => Just(0xFFFF),
        1 => Just(0),
        2 => (0u16..16).prop_map(|words| (0..4).filter(|word| words >> word & 1 == 1).map(|word| 0xF << (4 * word)).sum()),
        1 => any::<u16>(),
    ]
}

fn burst() -> impl Strategy<Value = Burst> {
    let index = prop_oneof![8 => 0u64..5, 1 => 5u64..128];
    let place = (any::<bool>(), index, 0u64..44, prop_oneof![3 => Just(0u64), 1 => 0u64..16]);
    let shape = (0u64..16, prop_oneof![9 => Just(4u64), 1 => 0u64..8], prop_oneof![9 => Just(1u64), 1 => 0u64..4]);
    (place, shape, prop::collection::vec((any::<u128>(), strobe()), 1..9)).prop_map(
        |((channel, index, beat, byte), (id, size, kind), beats)| Burst {
            address: u64::from(channel) << 39 | index << 32 | beat << 4 | byte,
            id,
            size,
            kind,
            beats,
        },
    )
}

/// Replaces the bytes of the strobe.
fn put(memory: &mut HashMap<Place, u128>, place: Place, data: u128, strobe: u16) {
    let lanes = (0..16).filter(|lane| strobe >> lane & 1 == 1).fold(0u128, |lanes, lane| lanes | 0xFF << (8 * lane));
    let word = memory.entry(place).or_default();
    *word = *word & !lanes | data & lanes;
}

/// SRAM has a write enable for each 32 bits.
fn splits_a_word(strobe: u16) -> bool {
    (0..4).any(|word| !matches!(strobe >> (4 * word) & 0xF, 0 | 0xF))
}

/// What a slave holds on a channel until it is taken.
#[derive(Default)]
struct Held<T> {
    offer: Option<T>,
}

impl<T: PartialEq + Copy + std::fmt::Debug> Held<T> {
    /// Looks at a cycle of the channel; gives what is taken in it.
    fn see(&mut self, valid: bool, payload: T, ready: bool) -> Option<T> {
        if let Some(before) = self.offer {
            assert_eq!((valid, payload), (true, before), "an offer stays as it is until it is taken");
        }
        self.offer = (valid && !ready).then_some(payload);
        (valid && ready).then_some(payload)
    }
}

/// A CUBE's host side: one access in a register, which is free again once the access is done.
#[derive(Default)]
struct Host {
    /// Place; data and strobes of a write.
    access: Option<(Place, Option<(u128, u16)>)>,
    /// Answers to reads: the cycle from which each may come, and the word.
    answers: VecDeque<(u64, u128)>,
}

/// Runs all bursts; `calm` without pauses. Gives the cycles that it took.
fn run(writes: &[Burst], reads: &[Burst], seed: u64, calm: bool) -> u64 {
    let mut s = Stimulus::new(seed);
    let mut unit = AxiData::<CUBES, PES>::default();
    unit.connect_all();
    unit.channel_beats.next = bits(CHANNEL_BEATS);
    unit.sram_words.next = bits(SRAM_WORDS);
    // What the machine holds, and what it should hold: bursts happen one after the other, in the order in which their addresses are taken.
    let (mut memory, mut expected) = (HashMap::new(), HashMap::new());
    let mut hosts: [Host; CUBES] = Default::default();
    let mut expected_writes = VecDeque::new();
    let mut expected_reads = VecDeque::new();
    let (mut aw, mut ar, mut w) = (0, 0, 0);
    let stream: Vec<_> = writes.iter().flat_map(|b| b.beats.iter().enumerate().map(|(i, &beat)| (beat, i + 1 == b.beats.len()))).collect();
    let (mut b_held, mut r_held) = (Held::default(), Held::default());
    let (mut aw_valid, mut w_valid, mut ar_valid) = (false, false, false);
    let mut answered = 0;
    for now in 0..BOUND {
        // ---- the master: valid stays until it is taken, in all three channels independently
        let go = |s: &mut Stimulus| calm || s.once_in(2);
        aw_valid |= aw < writes.len() && go(&mut s);
        w_valid |= w < stream.len() && go(&mut s);
        ar_valid |= ar < reads.len() && go(&mut s);
        unit.s_axi_awvalid.next = aw_valid;
        if let Some(burst) = writes.get(aw).filter(|_| aw_valid) {
            unit.s_axi_awaddr.next = bits(burst.address);
            unit.s_axi_awlen.next = bits(burst.beats.len() as u64 - 1);
            unit.s_axi_awid.next = bits(burst.id);
            unit.s_axi_awsize.next = bits(burst.size);
            unit.s_axi_awburst.next = bits(burst.kind);
        }
        unit.s_axi_wvalid.next = w_valid;
        if let Some(&((data, strobe), last)) = stream.get(w).filter(|_| w_valid) {
            unit.s_axi_wdata.next = to_bits(data);
            unit.s_axi_wstrb.next = bits(strobe.into());
            unit.s_axi_wlast.next = last;
        }
        unit.s_axi_arvalid.next = ar_valid;
        if let Some(burst) = reads.get(ar).filter(|_| ar_valid) {
            unit.s_axi_araddr.next = bits(burst.address);
            unit.s_axi_arlen.next = bits(burst.beats.len() as u64 - 1);
            unit.s_axi_arid.next = bits(burst.id);
            unit.s_axi_arsize.next = bits(burst.size);
            unit.s_axi_arburst.next = bits(burst.kind);
        }
        let (b_ready, r_ready) = (go(&mut s), go(&mut s));
        unit.s_axi_bready.next = b_ready;
        unit.s_axi_rready.next = r_ready;
        // ---- the CUBEs
        for (cube, host) in hosts.iter_mut().enumerate() {
            if host.access.is_some() && go(&mut s) {
                match host.access.take() {
                    Some((place, Some((data, strobe)))) => put(&mut memory, place, data, strobe),
                    Some((place, None)) => {
                        let delay = if calm { 1 } else { 1 + u64::from(s.below(12)) };
                        host.answers.push_back((now + delay, memory.get(&place).copied().unwrap_or_default()));
                    }
                    None => {}
                }
            }
            unit.host_ready[cube].next = host.access.is_none();
            let answer = host.answers.front().filter(|(from, _)| *from <= now).map(|&(_, word)| word);
            unit.host_read_valid[cube].next = answer.is_some();
            unit.host_read_data[cube].next = to_bits(answer.unwrap_or(u128::MAX));
            if answer.is_some() {
                host.answers.pop_front();
            }
        }
        settle(&mut unit);
        // ---- what the CUBEs take
        assert!((0..CUBES).filter(|&cube| unit.host_valid[cube].val()).count() <= 1, "an access goes to one CUBE");
        for (cube, host) in hosts.iter_mut().enumerate() {
            if unit.host_valid[cube].val() && unit.host_ready[cube].val() {
                let channel = unit.host_channel.val();
                let index = if channel { (cube * PES) as u64 + unit.host_pe.val().to_u64() } else { cube as u64 };
                let write = unit.host_write.val().then(|| (from_bits(unit.host_data.val()), unit.host_strobe.val().to_u16()));
                host.access = Some(((channel, index, unit.host_address.val().to_u64()), write));
            }
        }
        // ---- what the master sees
        if aw_valid && unit.s_axi_awready.val() {
            let burst = &writes[aw];
            let mut code = OKAY;
            for (i, &(data, strobe)) in burst.beats.iter().enumerate() {
                match burst.place(i) {
                    Some(place) if place.0 || !splits_a_word(strobe) => put(&mut expected, place, data, strobe),
                    _ => code = SLVERR,
                }
            }
            expected_writes.push_back((burst.id, code));
            (aw, aw_valid) = (aw + 1, false);
        }
        if ar_valid && unit.s_axi_arready.val() {
            let burst = &reads[ar];
            for i in 0..burst.beats.len() {
                let (word, code) = match burst.place(i) {
                    Some(place) => (expected.get(&place).copied().unwrap_or_default(), OKAY),
                    None => (0, SLVERR),
                };
                expected_reads.push_back((burst.id, word, code, i + 1 == burst.beats.len()));
            }
            (ar, ar_valid) = (ar + 1, false);
        }
        if w_valid && unit.s_axi_wready.val() {
            (w, w_valid) = (w + 1, false);
        }
        let answer = (unit.s_axi_bid.val().to_u64(), unit.s_axi_bresp.val().to_u64());
        if let Some(answer) = b_held.see(unit.s_axi_bvalid.val(), answer, b_ready) {
            assert_eq!(Some(answer), expected_writes.pop_front(), "answer {answered} of a write");
            let before: usize = writes[..=answered].iter().map(|burst| burst.beats.len()).sum();
            assert_eq!(w, before, "a write is answered after its last beat, and no beat of the next one was taken");
            answered += 1;
        }
        let beat =
            (unit.s_axi_rid.val().to_u64(), from_bits(unit.s_axi_rdata.val()), unit.s_axi_rresp.val().to_u64(), unit.s_axi_rlast.val());
        if let Some(beat) = r_held.see(unit.s_axi_rvalid.val(), beat, r_ready) {
            assert_eq!(Some(beat), expected_reads.pop_front(), "a read beat");
        }
        cycle(&mut unit, |u, c| u.clock.next = c);
        let quiet = hosts.iter().all(|host| host.access.is_none());
        if answered == writes.len() && ar == reads.len() && expected_reads.is_empty() && quiet {
            expected.retain(|_, word| *word != 0);
            memory.retain(|_, word| *word != 0);
            assert_eq!(memory, expected, "nothing was written elsewhere");
            return now + 1;
        }
    }
    panic!("a burst does not end: {answered} writes answered, {ar} reads taken, {} read beats missing", expected_reads.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn bursts_give_the_right_words_ids_and_codes_under_random_pauses(
        writes in prop::collection::vec(burst(), 0..7),
        reads in prop::collection::vec(burst(), 0..7),
        seed in any::<u64>(),
    ) {
        run(&writes, &reads, seed, false);
    }
}

fn full(address: u64, beats: usize) -> Burst {
    Burst { address, id: 5, size: 4, kind: 1, beats: (1..=beats as u128).map(|i| (i << 64 | i, 0xFFFF)).collect() }
}

#[test]
fn the_longest_burst_writes_a_beat_a_cycle_and_its_end_leaves_memory() {
    let cycles = run(&[full(1 << 39, 256)], &[], 1, true);
    assert!(cycles <= 256 + 4, "address, 256 beats, answer took {cycles} cycles");
    let cycles = run(&[], &[full(0, 256)], 1, true);
    assert!(cycles <= 256 * 6, "256 read beats took {cycles} cycles");
}
