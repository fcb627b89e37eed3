//! Merge engines with their queues, connected as a hypercube, against the golden merge of whole row states.

use std::collections::VecDeque;

use braid_golden::attention::RowState;
use braid_golden::fp32::canonical;
use braid_golden::stimulus::Stimulus;
use braid_isa::layout::{merge_rounds, owned_columns};
use rust_hdl::prelude::*;

use super::decoder::Settings;
use super::ipcq::{Ipcq, RING_BEATS};
use super::merge::MergeEngine;
use super::state_port::StateRead;
use crate::testing::{cycle, settle};

const ROWS: usize = 2;
const LINKS: usize = 3;
const NEGATIVE_INFINITY: u32 = 0xFF80_0000;

/// A merge engine and its IPCQ.
#[derive(LogicBlock, Default)]
struct Node {
    clock: Signal<In, Clock>,
    reset: Signal<In, Bit>,
    clear: Signal<In, Bit>,
    settings: Signal<In, Settings>,
    pe_index: Signal<In, Bits<8>>,
    start: Signal<In, Bit>,
    first_round: Signal<In, Bits<4>>,
    rounds: Signal<In, Bits<4>>,
    read_a_data: Signal<In, Bits<64>>,
    read_b_data: Signal<In, Bits<64>>,
    final_tiles: Signal<In, Bits<16>>,
    maxima_free: Signal<In, Bit>,
    columns_free: Signal<In, Bit>,
    sums_free: Signal<In, Bit>,
    credit_in: Signal<In, Bits<LINKS>>,
    receive_valid: Signal<In, Bits<LINKS>>,
    receive_data: [Signal<In, Bits<64>>; LINKS],
    engine: MergeEngine<ROWS, 64>,
    queues: Ipcq<64, LINKS>,
}

impl Logic for Node {
    #[hdl_gen]
    fn update(&mut self) {
        self.engine.clock.next = self.clock.val();
        self.engine.reset.next = self.reset.val();
        self.engine.clear.next = self.clear.val();
        self.engine.settings.next = self.settings.val();
        self.engine.pe_index.next = self.pe_index.val();
        self.engine.start.next = self.start.val();
        self.engine.first_round.next = self.first_round.val();
        self.engine.rounds.next = self.rounds.val();
        self.engine.read_a_data.next = self.read_a_data.val();
        self.engine.read_b_data.next = self.read_b_data.val();
        self.engine.final_tiles.next = self.final_tiles.val();
        self.engine.maxima_free.next = self.maxima_free.val();
        self.engine.columns_free.next = self.columns_free.val();
        self.engine.sums_free.next = self.sums_free.val();
        self.engine.may_reserve.next = self.queues.may_reserve.val();
        self.engine.head_valid.next = self.queues.head_valid.val();
        self.engine.head.next = self.queues.head.val();
        self.queues.clock.next = self.clock.val();
        self.queues.reset.next = self.reset.val();
        self.queues.link.next = self.engine.link.val();
        self.queues.reserve.next = self.engine.reserve.val();
        self.queues.push.next = self.engine.push.val();
        self.queues.push_data.next = self.engine.push_data.val();
        self.queues.pop.next = self.engine.pop.val();
        self.queues.credit_in.next = self.credit_in.val();
        self.queues.receive_valid.next = self.receive_valid.val();
        for i in 0..LINKS {
            self.queues.receive_data[i].next = self.receive_data[i].val();
        }
    }
}

type Lanes = [u32; ROWS];

fn lanes(beat: Bits<64>) -> Lanes {
    [beat.get_bits::<32>(0).to_u32(), beat.get_bits::<32>(32).to_u32()]
}

/// The row-state port of the datapath: a tile that was never written reads as empty, whatever its memory holds.
struct StateMemory {
    touched: Vec<bool>,
    m: Vec<Lanes>,
    l: Vec<Lanes>,
    o: Vec<Vec<Lanes>>,
}

impl StateMemory {
    /// `rows` of whole row tiles; a tile of `None` is untouched and holds the rubbish of an earlier kernel.
    fn new(tiles: &[Option<Vec<RowState>>], head_dim: usize, stimulus: &mut Stimulus) -> StateMemory {
        let mut memory = StateMemory { touched: vec![], m: vec![], l: vec![], o: vec![] };
        for tile in tiles {
            let rubbish: Lanes = std::array::from_fn(|_| stimulus.fp32());
            let lanes = |f: &dyn Fn(&RowState) -> u32| tile.as_ref().map_or(rubbish, |rows| std::array::from_fn(|r| f(&rows[r])));
            memory.touched.push(tile.is_some());
            memory.m.push(lanes(&|row| row.m));
            memory.l.push(lanes(&|row| row.l));
            memory.o.push((0..head_dim).map(|c| lanes(&|row| row.o[c])).collect());
        }
        memory
    }

    fn read(&self, select: u64, tile: usize, column: usize) -> Lanes {
        match (select, self.touched[tile]) {
            (2, false) => [NEGATIVE_INFINITY; ROWS],
            (_, false) => [0; ROWS],
            (0, true) => self.o[tile][column],
            (1, true) => self.l[tile],
            (_, true) => self.m[tile],
        }
    }

    fn write(&mut self, select: u64, tile: usize, column: usize, value: Lanes) {
        match select {
            0 => self.o[tile][column] = value,
            1 => {
                self.l[tile] = value;
                self.touched[tile] = true;
            }
            _ => self.m[tile] = value,
        }
    }
}

/// Beats or credits on their way: each arrives at its time, in order.
#[derive(Default)]
struct Wire<T>(VecDeque<(u64, T)>);

impl<T> Wire<T> {
    fn send(&mut self, arrival: u64, item: T) {
        let arrival = self.0.back().map_or(arrival, |last| arrival.max(last.0 + 1));
        self.0.push_back((arrival, item));
    }

    fn arrive(&mut self, now: u64) -> Option<T> {
        if self.0.front().is_some_and(|f| f.0 <= now) { self.0.pop_front().map(|f| f.1) } else { None }
    }
}

/// What a run of the network is like.
#[derive(Clone, Copy, Debug)]
struct Case {
    seed: u64,
    active: usize,
    head_dim: usize,
    row_tiles: usize,
    /// Longest time of a beat or a credit on its link, cycles; 1: no variation.
    latency: u32,
    /// One command for all rounds, or one for each.
    split: bool,
    /// The last page is still being computed: row tiles become final one by one, and memories are free now and then.
    computes: bool,
}

struct Network {
    case: Case,
    nodes: Vec<Box<Node>>,
    memories: Vec<StateMemory>,
    beats: Vec<Vec<Wire<Bits<64>>>>,
    credits: Vec<Vec<Wire<()>>>,
    outstanding: Vec<Vec<u64>>,
    stimulus: Stimulus,
    now: u64,
    sent: Vec<u64>,
    rounds_done: Vec<u32>,
}

fn random_state(stimulus: &mut Stimulus, head_dim: usize) -> RowState {
    let number = |s: &mut Stimulus| canonical(f32::from_bits(s.fp32()));
    match stimulus.below(6) {
        0 => RowState::empty(head_dim),
        1 => RowState { m: NEGATIVE_INFINITY, l: number(stimulus) | 1, o: (0..head_dim).map(|_| number(stimulus)).collect() },
        _ => {
            let m = match stimulus.below(12) {
                0 => 0x7FC0_0000,
                1 => 0x7F80_0000,
                2 => NEGATIVE_INFINITY,
                _ => (stimulus.below(120) as f32 - 60.0).to_bits(),
            };
            RowState { m, l: number(stimulus), o: (0..head_dim).map(|_| number(stimulus)).collect() }
        }
    }
}

impl Network {
    /// Also returns what every PE's rows should be in the end.
    fn new(case: Case) -> (Network, Vec<Vec<RowState>>) {
        let mut stimulus = Stimulus::new(case.seed);
        let rounds = merge_rounds(case.active);
        let pes = (1 << rounds).max(case.active);
        let tiles: Vec<Vec<Option<Vec<RowState>>>> = (0..pes)
            .map(|_| {
                let tile =
                    |s: &mut Stimulus| (!s.once_in(3)).then(|| (0..ROWS).map(|_| random_state(s, case.head_dim)).collect::<Vec<_>>());
                (0..case.row_tiles).map(|_| tile(&mut stimulus)).collect()
            })
            .collect();
        let memories = tiles.iter().map(|t| StateMemory::new(t, case.head_dim, &mut stimulus)).collect();
        let mut golden: Vec<Vec<RowState>> = tiles
            .into_iter()
            .map(|t| t.into_iter().flat_map(|tile| tile.unwrap_or_else(|| vec![RowState::empty(case.head_dim); ROWS])).collect())
            .collect();
        for round in 0..rounds {
            golden = (0..pes).map(|pe| golden[pe].iter().zip(&golden[pe ^ (1 << round)]).map(|(a, b)| a.merge(b)).collect()).collect();
        }
        let nodes = (0..pes)
            .map(|pe| {
                let mut node = Box::<Node>::default();
                node.connect_all();
                node.pe_index.next = bits(pe as u64);
                node.settings.next = Settings {
                    configured: true,
                    rows: bits((case.row_tiles * ROWS) as u64),
                    row_tiles: bits(case.row_tiles as u64),
                    head_dim: bits(case.head_dim as u64),
                    rounds: bits(rounds.into()),
                    ..Settings::default()
                };
                node.final_tiles.next = bits(if case.computes { 0 } else { case.row_tiles as u64 });
                node.maxima_free.next = !case.computes;
                node.columns_free.next = !case.computes;
                node.sums_free.next = !case.computes;
                node.clear.next = true;
                cycle(node.as_mut(), |n, c| n.clock.next = c);
                node.clear.next = false;
                node
            })
            .collect();
        let wires = |pes: usize| (0..pes).map(|_| (0..LINKS).map(|_| Wire::default()).collect()).collect();
        let network = Network {
            case,
            nodes,
            memories,
            beats: wires(pes),
            credits: (0..pes).map(|_| (0..LINKS).map(|_| Wire::default()).collect()).collect(),
            outstanding: vec![vec![0; LINKS]; pes],
            stimulus,
            now: 0,
            sent: vec![0; pes],
            rounds_done: vec![0; pes],
        };
        (network, golden)
    }

    fn delay(&mut self) -> u64 {
        let latency = self.case.latency;
        self.now + 1 + u64::from(if latency > 1 && !self.stimulus.once_in(3) { self.stimulus.below(latency) } else { 0 })
    }

    fn step(&mut self) {
        for pe in 0..self.nodes.len() {
            let (mut valid, mut back) = (0u64, 0u64);
            for link in 0..LINKS {
                if let Some(beat) = self.beats[pe][link].arrive(self.now) {
                    valid |= 1 << link;
                    self.nodes[pe].receive_data[link].next = beat;
                }
                if self.credits[pe][link].arrive(self.now).is_some() {
                    back |= 1 << link;
                }
            }
            self.nodes[pe].receive_valid.next = bits(valid);
            self.nodes[pe].credit_in.next = bits(back);
            settle(self.nodes[pe].as_mut());
        }
        for pe in 0..self.nodes.len() {
            let node = &self.nodes[pe];
            let engine = &node.engine;
            let (a, b) = (engine.read_a.val(), engine.read_b.val());
            let memory_of = |read: StateRead| match read.select.to_u64() {
                0 => read.column.to_u64() % 2,
                select => 1 + select,
            };
            assert!(!(a.valid && b.valid && memory_of(a) == memory_of(b)), "two reads of one memory: {a:?} {b:?}");
            for read in [a, b].into_iter().filter(|r| r.valid) {
                let free = if read.select.to_u64() == 2 { node.maxima_free.val() } else { node.columns_free.val() };
                assert!(free, "a read in a cycle of the computation: {read:?}");
                assert!(read.row_tile.to_u64() < node.final_tiles.val().to_u64(), "a read of a tile that is not final: {read:?}");
            }
            let values = [a, b].map(|read| {
                let (tile, column) = (read.row_tile.to_u64() as usize, read.column.to_u64() as usize);
                if read.valid { self.memories[pe].read(read.select.to_u64(), tile, column) } else { [0xDEAD_BEEF; ROWS] }
            });
            if a.valid && a.select.to_u64() != 2 {
                assert!(node.sums_free.val(), "a sum that comes in a cycle of the computation");
            }
            if engine.maxima_write.val() {
                let value = lanes(engine.maxima_write_data.val());
                self.memories[pe].write(2, engine.maxima_write_row_tile.val().to_u64() as usize, 0, value);
            }
            if engine.state_write.val() {
                let (tile, column) =
                    (engine.state_write_row_tile.val().to_u64() as usize, engine.state_write_column.val().to_u64() as usize);
                let value = lanes(engine.state_write_data.val());
                self.memories[pe].write(engine.state_write_select.val().to_u64(), tile, column, value);
            }
            self.sent[pe] += u64::from(engine.sent.val());
            self.rounds_done[pe] += u32::from(engine.round_done.val());
            let (sent, data) = (node.queues.send_valid.val().to_u64(), node.queues.send_data.val());
            let freed = node.queues.credit_out.val().to_u64();
            for link in 0..LINKS {
                let partner = pe ^ (1 << link);
                if sent >> link & 1 == 1 {
                    assert!(partner < self.nodes.len(), "a beat for a PE that does not exist");
                    self.outstanding[pe][link] += 1;
                    assert!(self.outstanding[pe][link] <= RING_BEATS, "more beats than the ring holds");
                    let arrival = self.delay();
                    self.beats[partner][link].send(arrival, data);
                }
                if freed >> link & 1 == 1 {
                    self.outstanding[partner][link] -= 1;
                    let arrival = self.delay();
                    self.credits[partner][link].send(arrival, ());
                }
            }
            cycle(self.nodes[pe].as_mut(), |n, c| n.clock.next = c);
            let beat = |value: Lanes| bits(u64::from(value[1]) << 32 | u64::from(value[0]));
            self.nodes[pe].read_a_data.next = beat(values[0]);
            self.nodes[pe].read_b_data.next = beat(values[1]);
            let computes = self.case.computes;
            let stimulus = &mut self.stimulus;
            let mut free = || !computes || stimulus.once_in(2);
            let (maxima, columns, sums) = (free(), free(), free());
            self.nodes[pe].maxima_free.next = maxima;
            self.nodes[pe].columns_free.next = columns;
            self.nodes[pe].sums_free.next = sums;
            if self.nodes[pe].final_tiles.val().to_u64() < self.case.row_tiles as u64 && self.stimulus.once_in(40) {
                self.nodes[pe].final_tiles.next = self.nodes[pe].final_tiles.val() + 1;
            }
        }
        self.now += 1;
    }

    /// Runs merge rounds `first .. first + rounds` on every PE, each starting some cycles after the one before.
    fn merge(&mut self, first: u32, rounds: u32) {
        let stagger = u64::from(self.stimulus.below(self.case.latency * 4));
        let begin = self.now;
        let mut started = 0;
        loop {
            for (pe, node) in self.nodes.iter_mut().enumerate() {
                node.first_round.next = bits(first.into());
                node.rounds.next = bits(rounds.into());
                node.start.next = self.now == begin + pe as u64 * stagger;
                started += u64::from(node.start.next);
            }
            self.step();
            if started == self.nodes.len() as u64 && self.nodes.iter().all(|n| !n.engine.busy.val()) {
                break;
            }
            assert!(self.now < 60_000, "the merge does not end: {:?}", self.case);
        }
        self.nodes.iter_mut().for_each(|n| n.start.next = false);
        self.step();
    }
}

fn check(case: Case) -> Network {
    let (mut network, golden) = Network::new(case);
    let rounds = merge_rounds(case.active);
    if case.split {
        (0..rounds).for_each(|round| network.merge(round, 1));
    } else {
        network.merge(0, rounds);
    }
    for (pe, rows) in golden.iter().enumerate() {
        let (first, end) = owned_columns(case.head_dim, pe, rounds);
        let engine = &network.nodes[pe].engine;
        assert_eq!((engine.first_column.val().to_u64(), engine.end_column.val().to_u64()), (first as u64, end as u64), "PE {pe} {case:?}");
        assert_eq!(network.rounds_done[pe], rounds);
        for (row, state) in rows.iter().enumerate() {
            let (tile, lane) = (row / ROWS, row % ROWS);
            let got = |select, column| network.memories[pe].read(select, tile, column)[lane];
            assert_eq!((got(2, 0), got(1, 0)), (state.m, state.l), "m and l of row {row} of PE {pe}, {case:?}");
            if !state.is_empty() {
                for column in first..end {
                    assert_eq!(got(0, column), state.o[column], "O of row {row}, column {column} of PE {pe}, {case:?}");
                }
            }
        }
    }
    assert!(network.outstanding.iter().flatten().all(|&n| n == 0), "a beat was left behind");
    network
}

#[test]
fn partners_get_the_golden_merge() {
    for (seed, head_dim, row_tiles) in [(1, 16, 1), (2, 16, 5), (3, 64, 2), (4, 128, 1), (5, 24, 3), (6, 120, 1)] {
        check(Case { seed, active: 2, head_dim, row_tiles, latency: 1, split: false, computes: false });
    }
}

#[test]
fn late_beats_and_credits_change_no_bit() {
    for seed in 20..32 {
        let head_dim = [16, 24, 64][seed as usize % 3];
        check(Case { seed, active: 2, head_dim, row_tiles: 1 + seed as usize % 4, latency: 40, split: false, computes: false });
    }
}

#[test]
fn four_pes_merge_in_two_rounds_whatever_the_number_of_rows() {
    for (seed, row_tiles, latency) in [(41, 1, 1), (42, 4, 30), (43, 7, 5)] {
        check(Case { seed, active: 4, head_dim: 32, row_tiles, latency, split: false, computes: false });
        check(Case { seed: seed + 10, active: 3, head_dim: 16, row_tiles, latency, split: false, computes: false });
    }
}

#[test]
fn eight_pes_end_with_single_columns() {
    check(Case { seed: 61, active: 8, head_dim: 16, row_tiles: 2, latency: 1, split: false, computes: false });
    check(Case { seed: 62, active: 5, head_dim: 24, row_tiles: 2, latency: 25, split: false, computes: false });
}

#[test]
fn many_row_tiles_go_in_groups() {
    check(Case { seed: 65, active: 4, head_dim: 16, row_tiles: 19, latency: 1, split: false, computes: false });
    check(Case { seed: 66, active: 2, head_dim: 24, row_tiles: 32, latency: 20, split: false, computes: false });
    check(Case { seed: 67, active: 2, head_dim: 16, row_tiles: 8, latency: 1, split: false, computes: false });
}

#[test]
fn a_merge_follows_the_row_tiles_that_become_final() {
    for (seed, row_tiles, latency) in [(101, 1, 1), (102, 5, 1), (103, 17, 30)] {
        check(Case { seed, active: 2, head_dim: 16, row_tiles, latency, split: false, computes: true });
        check(Case { seed: seed + 10, active: 4, head_dim: 24, row_tiles, latency, split: true, computes: true });
    }
}

#[test]
fn rounds_may_come_as_separate_commands() {
    check(Case { seed: 71, active: 4, head_dim: 24, row_tiles: 3, latency: 12, split: true, computes: false });
}

#[test]
fn a_round_sends_m_l_and_the_columns_that_the_partner_keeps() {
    let network = check(Case { seed: 81, active: 2, head_dim: 40, row_tiles: 3, latency: 1, split: false, computes: false });
    assert_eq!(network.sent, [3 * (2 + 20), 3 * (2 + 20)]);
}

#[test]
fn a_pe_outside_the_tree_is_finished_at_once() {
    let (mut network, _) =
        Network::new(Case { seed: 91, active: 2, head_dim: 16, row_tiles: 1, latency: 1, split: false, computes: false });
    network.nodes[1].pe_index.next = bits(2);
    network.nodes[1].start.next = true;
    network.nodes[1].first_round.next = bits(0);
    network.nodes[1].rounds.next = bits(1);
    for _ in 0..20 {
        network.step();
        network.nodes[1].start.next = false;
        let engine = &network.nodes[1].engine;
        assert!(!engine.busy.val());
        assert_eq!(engine.first_column.val(), engine.end_column.val());
    }
    assert_eq!(network.sent, [0, 0]);
}
