//! Four whole PEs in two CUBEs of plain Rust (distributor, multicast reader, output arbiter, links, memory channels), beside the golden machine that
//! executes the same command lists from the same bytes.

use std::collections::VecDeque;

use braid_golden::machine::{Machine, Outcome};
use braid_golden::stimulus::Stimulus;
use braid_isa::command::{MASK, WAIT};
use braid_isa::layout::HostAddress;
use braid_isa::{Code, Command, Counter, Geometry, Status};
use rust_hdl::prelude::*;

use super::ProcessingElement;
use super::front::FetchRequest;
use crate::model::{ChannelInputs, ChannelTiming, MemoryChannel};
use crate::testing::{cycle, settle};

pub(super) const GEOMETRY: Geometry = Geometry::TINY;
pub(super) const ROWS: usize = GEOMETRY.rows;
pub(super) const CHANNEL_BEATS: u32 = 1 << 14;
const PES: usize = GEOMETRY.pes();
const PER_CUBE: usize = GEOMETRY.pes_per_cube;
const LINKS: usize = 2;
type Unit = ProcessingElement<2, 64, 32, 5, 32, 11, 7, 2>;

fn wide(value: u128) -> Bits<128> {
    (bit_cast::<128, 64>(bits::<64>((value >> 64) as u64)) << bits::<8>(64)) | bit_cast::<128, 64>(bits::<64>(value as u64))
}

fn narrow(value: Bits<128>) -> u128 {
    u128::from(value.get_bits::<64>(64).to_u64()) << 64 | u128::from(value.get_bits::<64>(0).to_u64())
}

fn beat_of(words: &[u32; 4]) -> u128 {
    words.iter().rev().fold(0, |beat, &word| beat << 32 | u128::from(word))
}

/// How rough the surroundings are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weather {
    pub(super) seed: u64,
    /// Latency of the memory channels, cycles.
    pub(super) latency: u64,
    /// Any transfer stalls once in so many cycles; 0: never.
    pub(super) stall_once_in: u32,
    /// Latency of the links of each round, cycles.
    pub(super) links: [u64; LINKS],
}

impl Weather {
    pub(super) const CALM: Weather = Weather { seed: 1, latency: 40, stall_once_in: 0, links: [1, 8] };

    pub(super) fn rough(seed: u64) -> Weather {
        Weather { seed, latency: 1 + seed % 90, stall_once_in: 2 + (seed % 3) as u32, links: [1 + seed % 4, 3 + seed % 20] }
    }
}

/// A pass of the multicast reader.
struct Pass {
    request: FetchRequest,
    served: Vec<usize>,
    takers: u64,
    sent: u32,
}

/// What a CUBE is made of, without its PEs.
struct Cube {
    sram: Vec<u128>,
    list: VecDeque<[u32; 4]>,
    waiting: u32,
    pass: Option<Pass>,
}

pub(super) struct Array {
    pub(super) units: Vec<Box<Unit>>,
    cubes: Vec<Cube>,
    channels: Vec<MemoryChannel>,
    beats: Vec<Vec<VecDeque<(u64, Bits<64>)>>>,
    credits: Vec<Vec<VecDeque<u64>>>,
    pub(super) machine: Machine,
    weather: Weather,
    stimulus: Stimulus,
    pub(super) now: u64,
    /// A PE that never gets a word of the reader, one whose outputs are never taken.
    pub(super) deaf: Option<usize>,
    pub(super) gagged: Option<usize>,
}

impl Array {
    /// An array of which only the first `pes` PEs are there; the others do nothing, and are not simulated.
    pub(super) fn new(weather: Weather, timeout: u32, pes: usize) -> Array {
        let units = (0..pes)
            .map(|pe| {
                let mut unit = Box::<Unit>::default();
                unit.connect_all();
                unit.pe_index.next = bits(pe as u64);
                unit.pe_count.next = bits(PES as u64);
                unit.sram_words.next = bits(GEOMETRY.sram_words as u64);
                unit.channel_beats.next = bits(CHANNEL_BEATS.into());
                unit.timeout.next = bits(timeout.into());
                unit
            })
            .collect();
        let timing = |pe| ChannelTiming { latency: weather.latency, stall_once_in: weather.stall_once_in, seed: weather.seed + pe as u64 };
        Array {
            units,
            cubes: (0..GEOMETRY.cubes)
                .map(|_| Cube { sram: vec![0; GEOMETRY.sram_words], list: VecDeque::new(), waiting: 0, pass: None })
                .collect(),
            channels: (0..PES).map(|pe| MemoryChannel::new(CHANNEL_BEATS, timing(pe), 0xFF)).collect(),
            beats: vec![vec![VecDeque::new(); LINKS]; PES],
            credits: vec![vec![VecDeque::new(); LINKS]; PES],
            machine: Machine::new(GEOMETRY, CHANNEL_BEATS),
            weather,
            stimulus: Stimulus::new(weather.seed),
            now: 0,
            deaf: None,
            gagged: None,
        }
    }

    pub(super) fn kill_channel(&mut self, pe: usize) {
        self.channels[pe].kill();
    }

    /// PEs of a CUBE that are there.
    fn pes(&self, cube: usize) -> std::ops::Range<usize> {
        let there = self.units.len();
        (cube * PER_CUBE).min(there)..((cube + 1) * PER_CUBE).min(there)
    }

    fn stalls(&mut self) -> bool {
        self.weather.stall_once_in != 0 && self.stimulus.once_in(self.weather.stall_once_in)
    }

    /// Writes SRAM words of a CUBE, here and in the golden machine.
    pub(super) fn write_sram(&mut self, cube: usize, word: usize, data: &[u128]) {
        self.cubes[cube].sram[word..][..data.len()].copy_from_slice(data);
        let bytes: Vec<u8> = data.iter().flat_map(|w| w.to_le_bytes()).collect();
        self.machine.write(HostAddress::sram_word(cube, word), &bytes).expect("inside SRAM");
    }

    /// Writes elements to the memory behind a channel, here and in the golden machine.
    pub(super) fn write_channel(&mut self, pe: usize, beat: usize, elements: &[u16]) {
        let bytes: Vec<u8> = elements.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.channels[pe].write_bytes(beat * 16, &bytes);
        self.machine.write(HostAddress::channel_beat(pe, beat), &bytes).expect("inside channel memory");
    }

    /// The next pass, once every PE asks or is finished: the smallest row tile that is asked for, or row tables if nothing else is.
    fn choose(&self, cube: usize) -> Option<Pass> {
        let pes = self.pes(cube);
        let asking: Vec<usize> = pes.clone().filter(|&pe| self.units[pe].fetch_valid.val() && self.deaf != Some(pe)).collect();
        let complete = pes.clone().all(|pe| self.units[pe].fetch_valid.val() || self.units[pe].fetch_finished.val());
        if !complete {
            return None;
        }
        let request = |pe: usize| self.units[pe].fetch.val();
        let first = asking.iter().copied().min_by_key(|&pe| (request(pe).table, request(pe).row_tile.to_u64(), !request(pe).need))?;
        let chosen = request(first);
        let alike = |r: FetchRequest| {
            r.table == chosen.table
                && r.row_tile == chosen.row_tile
                && (!r.need || (r.address == chosen.address && r.words == chosen.words))
        };
        let served: Vec<usize> = asking.into_iter().filter(|&pe| alike(request(pe))).collect();
        let takers = served.iter().filter(|&&pe| request(pe).need).fold(0, |set, &pe| set | 1 << pe);
        Some(Pass { request: chosen, served, takers, sent: 0 })
    }

    /// One cycle of everything. `abort` goes to every PE.
    fn step(&mut self, abort: bool) {
        // ---- what the PEs see
        let mut offers = [None; GEOMETRY.cubes];
        let mut done = [false; GEOMETRY.cubes];
        for cube in 0..GEOMETRY.cubes {
            let pes = self.pes(cube);
            let stalls = self.stalls();
            let (mut word, mut takers, mut finished) = (None, 0, 0u64);
            if let Some(pass) = &mut self.cubes[cube].pass {
                if pass.takers == 0 || pass.sent == pass.request.words.to_u32() {
                    finished = pass.served.iter().fold(0, |set, &pe| set | 1 << pe);
                    done[cube] = true;
                } else if !stalls {
                    word = Some(pass.request.address.to_u64() as usize + pass.sent as usize);
                    takers = pass.takers;
                    pass.sent += 1;
                }
            }
            let data = wide(word.map_or(0xBAD, |w| self.cubes[cube].sram[w]));
            let lucky = self.stimulus.below(PER_CUBE as u32) as usize;
            let take = !self.stalls();
            // The distributor offers a command when every PE of the mask has room.
            let waiting = std::mem::take(&mut self.cubes[cube].waiting);
            let blocked = pes.clone().any(|pe| waiting >> (pe - pes.start) & 1 == 1 && !self.units[pe].idle.val());
            self.cubes[cube].waiting = if blocked { waiting } else { 0 };
            let hold = self.stalls();
            let offer = self.cubes[cube].list.front().copied().filter(|_| !blocked && !hold);
            offers[cube] =
                offer.filter(|c| pes.clone().all(|pe| MASK.get(c) >> (pe - pes.start) & 1 == 0 || self.units[pe].command_ready.val()));
            for pe in pes.clone() {
                let unit = self.units[pe].as_mut();
                unit.abort.next = abort;
                unit.multicast_valid.next = word.is_some();
                unit.multicast_take.next = takers >> pe & 1 == 1;
                unit.multicast_data.next = data;
                unit.fetch_done.next = finished >> pe & 1 == 1;
                unit.store_ready.next = pe - pes.start == lucky && take && self.gagged != Some(pe);
                unit.command_valid.next = offers[cube].is_some_and(|c| MASK.get(&c) >> (pe - pes.start) & 1 == 1);
                unit.command.next = wide(offers[cube].map_or(0xBAD, |c| beat_of(&c)));
            }
        }
        for pe in 0..self.units.len() {
            let outputs = self.channels[pe].outputs();
            let (mut arrived, mut back) = (0u64, 0u64);
            let unit = self.units[pe].as_mut();
            for link in 0..LINKS {
                if self.beats[pe][link].front().is_some_and(|b| b.0 <= self.now)
                    && let Some((_, data)) = self.beats[pe][link].pop_front()
                {
                    arrived |= 1 << link;
                    unit.receive_data[link].next = data;
                }
                if self.credits[pe][link].front().is_some_and(|&c| c <= self.now) {
                    self.credits[pe][link].pop_front();
                    back |= 1 << link;
                }
            }
            unit.receive_valid.next = bits(arrived);
            unit.credit_in.next = bits(back);
            unit.channel_request_ready.next = outputs.request_ready;
            unit.channel_read_valid.next = outputs.read_valid;
            unit.channel_read_data.next = wide(outputs.read_data);
            settle(unit);
        }
        // ---- what they do
        for cube in 0..GEOMETRY.cubes {
            if let Some(command) = offers[cube] {
                self.cubes[cube].list.pop_front();
                self.cubes[cube].waiting = if WAIT.get(&command) == 1 { MASK.get(&command) } else { 0 };
            }
            if done[cube] {
                self.cubes[cube].pass = None;
            } else if self.cubes[cube].pass.is_none() {
                let pass = self.choose(cube);
                self.cubes[cube].pass = pass;
            }
        }
        for pe in 0..self.units.len() {
            let unit = &self.units[pe];
            if unit.store_valid.val() && unit.store_ready.val() {
                let (address, enable) = (unit.store_address.val().to_u64() as usize, unit.store_enable.val().to_u64());
                let keep = (0..4).filter(|i| enable >> i & 1 == 0).fold(0u128, |mask, i| mask | 0xFFFF_FFFF << (32 * i));
                let word = &mut self.cubes[pe / PER_CUBE].sram[address];
                *word = *word & keep | narrow(unit.store_data.val()) & !keep;
            }
            self.channels[pe].step(ChannelInputs {
                request_valid: unit.channel_request_valid.val(),
                request_write: unit.channel_request_write.val(),
                request_address: unit.channel_request_address.val().to_u32(),
                request_beats: unit.channel_request_beats.val().to_u16(),
                write_data: narrow(unit.channel_write_data.val()),
                write_strobe: unit.channel_write_strobe.val().to_u16(),
                read_ready: unit.channel_read_ready.val(),
            });
            for link in 0..LINKS {
                let arrival = self.now + self.weather.links[link];
                if unit.send_valid.val().to_u64() >> link & 1 == 1 {
                    self.beats[pe ^ (1 << link)][link].push_back((arrival, unit.send_data.val()));
                }
                if unit.credit_out.val().to_u64() >> link & 1 == 1 {
                    self.credits[pe ^ (1 << link)][link].push_back(arrival);
                }
            }
        }
        self.units.iter_mut().for_each(|unit| cycle(unit.as_mut(), |u, c| u.clock.next = c));
        self.now += 1;
    }

    /// Runs one command list a CUBE, from power-up or a good launch. Returns the outcome and the cycles it took.
    pub(super) fn launch(&mut self, lists: &[Vec<[u32; 4]>]) -> (Outcome, u64) {
        for (cube, list) in lists.iter().enumerate() {
            self.cubes[cube].list = list.iter().copied().collect();
            self.cubes[cube].waiting = 0;
        }
        self.units.iter_mut().for_each(|unit| unit.start.next = true);
        self.step(false);
        for unit in &mut self.units {
            unit.start.next = false;
            unit.running.next = true;
        }
        let begin = self.now;
        let mut abort = false;
        loop {
            self.step(abort);
            self.units.iter_mut().for_each(|unit| settle(unit.as_mut()));
            let done = self.cubes.iter().all(|cube| cube.list.is_empty());
            let failed = self.units.iter().any(|unit| unit.failed.val());
            if (done || failed && abort) && self.units.iter().all(|unit| unit.idle.val()) {
                break;
            }
            abort |= failed;
            assert!(self.now - begin < 400_000, "the array hangs");
        }
        let cycles = self.now - begin;
        self.units.iter_mut().for_each(|unit| unit.running.next = false);
        let mut pes: Vec<Status> = (0..self.units.len())
            .map(|pe| {
                let counted: u64 = Counter::ALL.iter().filter(|c| c.divides_cycles()).map(|&c| self.counter(pe, c)).sum();
                assert_eq!(counted, cycles, "the cycle counters of PE {pe} divide the cycles of the launch");
                Status::from_register(self.units[pe].status.val().to_u32()).expect("a status code that exists")
            })
            .collect();
        pes.resize(PES, Status { code: Code::Ok, command: 0 });
        let code = if abort { Code::Aborted } else { Code::Ok };
        (Outcome { cubes: vec![Status { code, command: 0 }; GEOMETRY.cubes], pes }, cycles)
    }

    pub(super) fn counter(&mut self, pe: usize, counter: Counter) -> u64 {
        let unit = self.units[pe].as_mut();
        unit.counter_select.next = bits(counter as u64);
        (0..2).for_each(|_| cycle(unit, |u, c| u.clock.next = c));
        unit.counter_value.val().to_u64()
    }

    /// A soft reset of everything but the memory channels: the DMA takes what they still owe.
    pub(super) fn reset(&mut self) {
        for unit in &mut self.units {
            unit.abort.next = false;
            unit.command_valid.next = false;
            unit.multicast_valid.next = false;
            unit.fetch_done.next = false;
            unit.receive_valid.next = bits(0);
            unit.credit_in.next = bits(0);
            unit.channel_read_valid.next = false;
            unit.channel_request_ready.next = false;
            for cycles in 0..4 {
                unit.reset.next = cycles < 2;
                cycle(unit.as_mut(), |u, c| u.clock.next = c);
            }
        }
        self.beats.iter_mut().flatten().for_each(VecDeque::clear);
        self.credits.iter_mut().flatten().for_each(VecDeque::clear);
        for cube in &mut self.cubes {
            cube.list.clear();
            cube.pass = None;
        }
    }

    /// Launches here and on the golden machine, and compares outcomes and, after a good launch, all of SRAM.
    pub(super) fn check(&mut self, lists: &[Vec<Command>]) -> u64 {
        self.check_words(&lists.iter().map(|list| list.iter().map(Command::encode).collect()).collect::<Vec<_>>()).1
    }

    pub(super) fn check_words(&mut self, lists: &[Vec<[u32; 4]>]) -> (Outcome, u64) {
        const BASE: usize = GEOMETRY.sram_words - 1024;
        for (cube, list) in lists.iter().enumerate() {
            let words: Vec<u128> = list.iter().map(beat_of).collect();
            self.write_sram(cube, BASE, &words);
        }
        let (outcome, cycles) = self.launch(lists);
        let counts: Vec<u32> = lists.iter().map(|list| list.len() as u32).collect();
        let golden = self.machine.launch(BASE as u32, &counts);
        assert!(golden.allows(&outcome), "golden {golden:?}, here {outcome:?}");
        if golden.is_ok() {
            for cube in 0..GEOMETRY.cubes {
                let mut bytes = vec![0; GEOMETRY.sram_words * 16];
                self.machine.read(HostAddress::sram_word(cube, 0), &mut bytes).expect("all of SRAM");
                for (word, expected) in bytes.as_chunks::<16>().0.iter().enumerate() {
                    assert_eq!(self.cubes[cube].sram[word], u128::from_le_bytes(*expected), "SRAM word {word} of CUBE {cube}");
                }
            }
            for pe in 0..self.units.len() {
                for counter in [Counter::Commands, Counter::TilesComputed, Counter::TilesSkipped, Counter::MergeRounds] {
                    assert_eq!(Some(self.counter(pe, counter)), self.machine.counter(pe, counter), "{} of PE {pe}", counter.name());
                }
            }
        }
        (outcome, cycles)
    }
}
