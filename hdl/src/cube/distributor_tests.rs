//! The distributor between a memory that grants when it likes and PEs that take commands when they like.

use std::collections::VecDeque;

use braid_golden::stimulus::Stimulus;
use braid_isa::Code;

use super::distributor::Distributor;
use crate::testing::{Compiled, word};

const PES: usize = 3;
const SRAM_WORDS: usize = 64;

/// A PE that takes commands into a queue of two and works on each for some cycles.
#[derive(Clone, Default)]
struct Pe {
    queue: VecDeque<u128>,
    busy: u32,
    taken: Vec<u128>,
    /// It takes no command any more.
    dead: bool,
}

struct Rig {
    unit: Compiled,
    memory: Vec<u128>,
    pes: [Pe; PES],
    stimulus: Stimulus,
    /// Grants, takes and works in a random part of the cycles.
    stalls: bool,
    cycles: u32,
    /// Cycle at which every command was delivered, and the PEs that were at work then.
    delivered: Vec<(u32, u128, [bool; PES])>,
}

impl Rig {
    fn new(stalls: bool, seed: u64) -> Rig {
        let mut stimulus = Stimulus::new(seed);
        let memory = (0..SRAM_WORDS).map(|_| word(&mut stimulus)).collect();
        let mut unit = Compiled::new(Distributor::<PES>::default());
        unit.set("sram_words", SRAM_WORDS as u64);
        unit.set("timeout", 100u64);
        Rig { unit, memory, pes: Default::default(), stimulus, stalls, cycles: 0, delivered: Vec::new() }
    }

    fn stall(&mut self) -> bool {
        self.stalls && self.stimulus.once_in(3)
    }

    /// Puts a command at a word: the mask, and whether the next one waits for it.
    fn put(&mut self, at: usize, mask: u32, wait: bool) {
        let rest = self.memory[at] & !(0xFF << 16 | 1 << 12);
        self.memory[at] = rest | u128::from(mask) << 16 | u128::from(wait) << 12;
    }

    fn start(&mut self, base: u32, count: u32) {
        self.unit.set("base", base);
        self.unit.set("count", count);
        self.unit.set("start", 1u64);
        self.cycle();
        self.unit.set("start", 0u64);
    }

    fn cycle(&mut self) {
        let ready: [bool; PES] = std::array::from_fn(|pe| !self.stall() && !self.pes[pe].dead && self.pes[pe].queue.len() < 2);
        let idle: [bool; PES] = std::array::from_fn(|pe| self.pes[pe].queue.is_empty() && self.pes[pe].busy == 0);
        let mask = |bits: [bool; PES]| bits.iter().enumerate().fold(0u64, |mask, (pe, &bit)| mask | u64::from(bit) << pe);
        let granted = !self.stall();
        self.unit.set("command_ready", mask(ready));
        self.unit.set("idle", mask(idle));
        self.unit.set("progress", u64::from(self.pes.iter().any(|pe| pe.busy > 0)));
        self.unit.set("read_granted", u64::from(granted));
        let (read, address) = (self.unit.get("read") == 1 && granted, self.unit.get("read_address") as usize);
        let (valid, command) = (self.unit.get("command_valid"), self.unit.get_wide("command"));
        assert_eq!(valid & !mask(ready), 0, "no command for a PE without room");
        self.unit.step();
        if valid != 0 {
            self.delivered.push((self.cycles, command, idle.map(|idle| !idle)));
        }
        for pe in 0..PES {
            let work = self.stimulus.below(6);
            let own = &mut self.pes[pe];
            own.busy = own.busy.saturating_sub(1);
            if own.busy == 0 && own.queue.pop_front().is_some() {
                own.busy = 1 + work;
            }
            if valid >> pe & 1 == 1 {
                own.queue.push_back(command);
                own.taken.push(command);
            }
        }
        // Words are there one cycle after the grant, and only then.
        let data = if read { self.memory[address] } else { word(&mut self.stimulus) };
        self.unit.set_wide("read_data", data);
        self.cycles += 1;
    }

    /// Runs until the end of the list; the status.
    fn end(&mut self) -> u64 {
        for _ in 0..5_000 {
            if self.unit.get("ended") == 1 {
                return self.unit.get("status");
            }
            self.cycle();
        }
        panic!("the distributor does not end");
    }
}

fn status(code: Code, command: u64) -> u64 {
    command << 8 | code as u64
}

fn delivers(stalls: bool) {
    let mut rig = Rig::new(stalls, 51 + u64::from(stalls));
    for _ in 0..60 {
        let count = 1 + rig.stimulus.below(20);
        let base = rig.stimulus.below(SRAM_WORDS as u32 - count + 1);
        for i in 0..count {
            let (mask, wait) = (1 + rig.stimulus.below(7), rig.stimulus.once_in(4));
            rig.put((base + i) as usize, mask, wait);
        }
        rig.pes.iter_mut().for_each(|pe| pe.taken.clear());
        rig.delivered.clear();
        rig.start(base, count);
        assert_eq!(rig.end(), 0);
        let list: Vec<u128> = rig.memory[base as usize..][..count as usize].to_vec();
        assert!(rig.delivered.iter().map(|d| d.1).eq(list.iter().copied()), "every command once, in order");
        for (pe, own) in rig.pes.iter().enumerate() {
            let named: Vec<u128> = list.iter().copied().filter(|c| c >> (16 + pe) & 1 == 1).collect();
            assert_eq!(own.taken, named, "PE {pe}");
        }
        for pair in rig.delivered.windows(2) {
            let ((_, before, _), (_, _, busy)) = (pair[0], pair[1]);
            if before >> 12 & 1 == 1 {
                assert!(
                    (0..PES).all(|pe| before >> (16 + pe) & 1 == 0 || !busy[pe]),
                    "the PEs of a waiting command are idle before the next"
                );
            }
        }
    }
}

#[test]
fn every_pe_of_the_mask_gets_every_command_once_and_in_order() {
    delivers(false);
}

#[test]
fn stalls_of_memory_and_of_pes_lose_and_double_nothing() {
    delivers(true);
}

#[test]
fn a_command_takes_three_cycles() {
    let mut rig = Rig::new(false, 53);
    for i in 0..40 {
        // In turn, so that no queue fills.
        rig.put(i, 1 << (i % PES), false);
    }
    rig.start(0, 40);
    rig.end();
    let steps: Vec<u32> = rig.delivered.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    let shortest = steps.iter().min().copied();
    assert_eq!(shortest, Some(3));
}

#[test]
fn an_empty_list_ends_at_once() {
    let mut rig = Rig::new(false, 54);
    rig.start(5, 0);
    assert_eq!(rig.end(), 0);
    assert!(rig.cycles < 4 && rig.delivered.is_empty());
}

#[test]
fn masks_that_name_no_pe_or_a_pe_too_many_stop_it() {
    for mask in [0, 8, 0xF0, 0x81] {
        let mut rig = Rig::new(true, 55);
        for i in 0..4 {
            rig.put(i, if i == 2 { mask } else { 7 }, false);
        }
        rig.start(0, 4);
        assert_eq!(rig.end(), status(Code::EmptyMask, 2), "mask {mask:#x}");
        assert_eq!((rig.delivered.len(), rig.unit.get("failed")), (2, 1));
    }
}

#[test]
fn a_list_that_leaves_memory_stops_it_at_the_edge() {
    let mut rig = Rig::new(true, 56);
    for i in 60..SRAM_WORDS {
        rig.put(i, 1, false);
    }
    rig.start(60, 9);
    assert_eq!(rig.end(), status(Code::BadAddress, 4));
    assert_eq!(rig.delivered.len(), 4);
}

#[test]
fn a_pe_that_takes_nothing_is_given_up_within_the_bound() {
    let mut rig = Rig::new(false, 57);
    for i in 0..3 {
        rig.put(i, 7, false);
    }
    rig.pes[1].dead = true;
    rig.start(0, 3);
    assert_eq!(rig.end(), status(Code::TimeoutCommand, 0));
    assert!(rig.cycles < 130, "{} cycles", rig.cycles);
    assert!(rig.delivered.is_empty());
}

#[test]
fn an_abort_is_told_and_the_next_start_is_clean() {
    let mut rig = Rig::new(false, 58);
    for i in 0..20 {
        rig.put(i, 7, false);
    }
    rig.start(0, 20);
    for _ in 0..12 {
        rig.cycle();
    }
    rig.unit.set("abort", 1u64);
    rig.cycle();
    rig.unit.set("abort", 0u64);
    assert_eq!(rig.end() & 0xFF, Code::Aborted as u64);
    assert_eq!(rig.unit.get("failed"), 0, "who is aborted has not failed itself");
    rig.unit.set("reset", 1u64);
    rig.cycle();
    rig.unit.set("reset", 0u64);
    rig.delivered.clear();
    rig.start(3, 5);
    assert_eq!(rig.end(), 0);
    assert_eq!(rig.delivered.len(), 5);
}
