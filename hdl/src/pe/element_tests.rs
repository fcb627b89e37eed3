//! A whole PE against the golden kernel, in rust-hdl's own simulator: a distributor, a multicast reader, a memory channel and an output memory in plain
//! Rust stand around it.

use braid_golden::attention::{Kernel, Page, Range, RowState, blocks, passes};
use braid_golden::format::Format;
use braid_golden::stimulus::Stimulus;
use braid_isa::command::{Command, Operation};
use braid_isa::{Code, Counter, Status};
use rust_hdl::prelude::*;

use super::ProcessingElement;
use crate::model::{ChannelInputs, ChannelTiming, MemoryChannel};
use crate::testing::{cycle, settle};

const ROWS: usize = 2;
type Unit = ProcessingElement<ROWS, 64, 32, 5, 32, 11, 7, 2>;

pub(crate) fn wide(value: u128) -> Bits<128> {
    (bit_cast::<128, 64>(bits::<64>((value >> 64) as u64)) << bits::<8>(64)) | bit_cast::<128, 64>(bits::<64>(value as u64))
}

pub(crate) fn narrow(value: Bits<128>) -> u128 {
    u128::from(value.get_bits::<64>(64).to_u64()) << 64 | u128::from(value.get_bits::<64>(0).to_u64())
}

fn word(words: [u32; 4]) -> u128 {
    words.iter().rev().fold(0, |w, &x| w << 32 | u128::from(x))
}

struct Bench {
    unit: Box<Unit>,
    channel: MemoryChannel,
    sram: Vec<u128>,
    output: Vec<Option<u32>>,
    commands: Vec<u128>,
    delivered: usize,
    /// Words of the current fetch that are left: address, count.
    fetch: Option<(usize, usize)>,
    cycles: u64,
    stalls: Stimulus,
    stall_once_in: u32,
}

impl Bench {
    fn new(timing: ChannelTiming) -> Bench {
        let mut unit = Box::<Unit>::default();
        unit.connect_all();
        unit.pe_count.next = bits(4);
        unit.sram_words.next = bits(4096);
        unit.channel_beats.next = bits(1 << 16);
        unit.timeout.next = bits(3000);
        Bench {
            unit,
            channel: MemoryChannel::new(1 << 16, timing, 0xFF),
            sram: vec![0; 4096],
            output: vec![None; 4 * 4096],
            commands: Vec::new(),
            delivered: 0,
            fetch: None,
            cycles: 0,
            stalls: Stimulus::new(timing.seed),
            stall_once_in: timing.stall_once_in,
        }
    }

    fn stalls(&mut self) -> bool {
        self.stall_once_in != 0 && self.stalls.once_in(self.stall_once_in)
    }

    /// One cycle of the PE and everything around it.
    fn step(&mut self) {
        let stalled = self.stalls();
        let (valid, multicast) = match self.fetch {
            Some((address, left)) if left > 0 && !stalled => {
                self.fetch = Some((address + 1, left - 1));
                (true, self.sram[address])
            }
            _ => (false, 0),
        };
        let done = matches!(self.fetch, Some((_, 0)));
        let store_ready = !self.stalls();
        let offer = self.delivered < self.commands.len() && !self.stalls();
        let unit = self.unit.as_mut();
        unit.multicast_valid.next = valid;
        unit.multicast_take.next = valid;
        unit.multicast_data.next = wide(multicast);
        unit.fetch_done.next = done;
        unit.store_ready.next = store_ready;
        unit.command_valid.next = offer;
        unit.command.next = wide(self.commands.get(self.delivered).copied().unwrap_or(0));
        let outputs = self.channel.outputs();
        unit.channel_request_ready.next = outputs.request_ready;
        unit.channel_read_valid.next = outputs.read_valid;
        unit.channel_read_data.next = wide(outputs.read_data);
        settle(unit);
        if offer && unit.command_ready.val() {
            self.delivered += 1;
        }
        if done {
            self.fetch = None;
        } else if self.fetch.is_none() && unit.fetch_valid.val() {
            let request = unit.fetch.val();
            let words = if request.need { request.words.to_u32() as usize } else { 0 };
            self.fetch = Some((request.address.to_u32() as usize, words));
        }
        if unit.store_valid.val() && store_ready {
            let (address, data, enable) =
                (unit.store_address.val().to_u32(), narrow(unit.store_data.val()), unit.store_enable.val().to_u32());
            for lane in (0..4).filter(|l| enable >> l & 1 == 1) {
                let place = &mut self.output[address as usize * 4 + lane];
                assert!(place.is_none(), "an output is written once");
                *place = Some((data >> (32 * lane)) as u32);
            }
        }
        self.channel.step(ChannelInputs {
            request_valid: unit.channel_request_valid.val(),
            request_write: unit.channel_request_write.val(),
            request_address: unit.channel_request_address.val().to_u32(),
            request_beats: unit.channel_request_beats.val().to_u16(),
            write_data: narrow(unit.channel_write_data.val()),
            write_strobe: unit.channel_write_strobe.val().to_u16(),
            read_ready: unit.channel_read_ready.val(),
        });
        cycle(unit, |u, c| u.clock.next = c);
        self.cycles += 1;
    }

    /// Runs the command list; the status register at the end.
    fn run(&mut self, commands: &[Command]) -> Status {
        self.run_words(commands.iter().map(|c| word(c.encode())).collect())
    }

    fn run_words(&mut self, commands: Vec<u128>) -> Status {
        self.commands = commands;
        self.delivered = 0;
        self.unit.start.next = true;
        self.step();
        self.unit.start.next = false;
        self.unit.running.next = true;
        let start = self.cycles;
        loop {
            self.step();
            if self.delivered == self.commands.len() && self.unit.idle.val() {
                break;
            }
            assert!(self.cycles - start < 300_000, "the PE hangs");
        }
        let ran = self.cycles - start;
        self.unit.running.next = false;
        let counted: u64 = Counter::ALL.iter().filter(|c| c.divides_cycles()).map(|&c| self.counter(c)).sum();
        assert_eq!(counted, ran, "the cycle counters divide the cycles of the launch");
        Status::from_register(self.unit.status.val().to_u32()).expect("a status code that exists")
    }

    fn counter(&mut self, counter: Counter) -> u64 {
        self.unit.counter_select.next = bits(counter as u64);
        self.step();
        self.step();
        self.unit.counter_value.val().to_u64()
    }
}

/// A random kernel of one PE.
struct Case {
    head_dim: usize,
    rows: usize,
    formats: [Format; 3],
    q: Vec<u16>,
    pages: Vec<(u32, Vec<u16>, Vec<u16>)>,
    ranges: Vec<Vec<Range>>,
}

const OUTPUT: u32 = 2048;
const TABLE: u32 = 1024;

impl Case {
    fn random(seed: u64, head_dim: usize, rows: usize, pages: usize, poison: bool) -> Case {
        let mut s = Stimulus::new(seed);
        let formats: [Format; 3] = std::array::from_fn(|_| if s.once_in(2) { Format::Fp16 } else { Format::Bf16 });
        let tensor = |n: usize, f: Format, s: &mut Stimulus| -> Vec<u16> { (0..n).map(|_| f.round(s.normal() * 2.0)).collect() };
        let q = tensor(rows * head_dim, formats[0], &mut s);
        let positions = (pages * 16) as u32;
        let range = |s: &mut Stimulus| {
            let (a, b) = (s.below(positions + 1), s.below(positions + 1));
            a.min(b)..a.max(b)
        };
        let ranges: Vec<Vec<Range>> = (0..rows)
            .map(|row| match (row + seed as usize) % 4 {
                0 => vec![Range { start: 0, end: positions }],
                1 => vec![],
                _ => (0..s.below(4)).map(|_| range(&mut s)).collect(),
            })
            .collect();
        let pages = (0..pages)
            .map(|page| {
                let (mut k, mut v) = (tensor(16 * head_dim, formats[1], &mut s), tensor(16 * head_dim, formats[2], &mut s));
                for j in 0..16 {
                    let position = (page * 16 + j) as u32;
                    if poison && !ranges.iter().flatten().any(|r| r.contains(&position)) {
                        (0..head_dim).for_each(|c| {
                            k[j * head_dim + c] = 0xFFFF;
                            v[c * 16 + j] = 0x7C00 | 0x03FF;
                        });
                    }
                }
                (page as u32 * 16, k, v)
            })
            .collect();
        Case { head_dim, rows, formats, q, pages, ranges }
    }

    fn scale(&self) -> u32 {
        ((1.0 / (self.head_dim as f64).sqrt() * std::f64::consts::LOG2_E) as f32).to_bits()
    }

    fn golden(&self) -> Vec<RowState> {
        let pages =
            self.pages.iter().map(|(position, k, v)| Page::new(*position, k, self.formats[1], v, self.formats[2])).collect::<Vec<_>>();
        let kernel = Kernel { head_dim: self.head_dim, scale: self.scale(), shards: vec![pages] };
        (0..self.rows)
            .map(|row| kernel.row(&blocks(&self.q[row * self.head_dim..][..self.head_dim], self.formats[0]), &self.ranges[row]))
            .collect()
    }

    fn load(&self, bench: &mut Bench) {
        let tiles = self.rows.div_ceil(ROWS);
        let mut q = self.q.clone();
        q.resize(tiles * ROWS * self.head_dim, 0);
        for (i, chunk) in q.chunks(8).enumerate() {
            bench.sram[i] = chunk.iter().rev().fold(0, |w, &x| w << 16 | u128::from(x));
        }
        for (row, ranges) in self.ranges.iter().enumerate() {
            let pass = passes(ranges).into_iter().next().unwrap_or_default();
            let mut entry = [0u32; 8];
            for (i, r) in pass.iter().enumerate() {
                entry[2 * i] = r.start;
                entry[2 * i + 1] = r.end;
            }
            bench.sram[TABLE as usize + 2 * row] = word([entry[0], entry[1], entry[2], entry[3]]);
            bench.sram[TABLE as usize + 2 * row + 1] = word([entry[4], entry[5], entry[6], entry[7]]);
        }
        for (i, (_, k, v)) in self.pages.iter().enumerate() {
            let bytes: Vec<u8> = k.iter().chain(v).flat_map(|x| x.to_le_bytes()).collect();
            bench.channel.write_bytes(i * 4 * self.head_dim * 16, &bytes);
        }
    }

    fn configure(&self) -> Operation {
        Operation::Configure {
            rows: self.rows as u16,
            head_dim: self.head_dim as u16,
            scale: self.scale(),
            q_address: 0,
            q_bf16: self.formats[0] == Format::Bf16,
            k_bf16: self.formats[1] == Format::Bf16,
            v_bf16: self.formats[2] == Format::Bf16,
            active: 1,
        }
    }

    fn composite(&self) -> Vec<Operation> {
        let mut list = vec![self.configure(), Operation::LoadRows { table: TABLE }];
        if !self.pages.is_empty() {
            // Two runs, to see one flow into the next.
            let first = self.pages.len().div_ceil(2);
            list.push(Operation::Attend { page: 0, position: 0, pages: first as u16, stride: 1 });
            if self.pages.len() > first {
                let (page, position) = (first * 4 * self.head_dim, first * 16);
                let pages = (self.pages.len() - first) as u16;
                list.push(Operation::Attend { page: page as u32, position: position as u32, pages, stride: 1 });
            }
        }
        list.push(Operation::Store { output: OUTPUT });
        list
    }

    fn primitive(&self) -> Vec<Operation> {
        let mut list = vec![self.configure(), Operation::LoadRows { table: TABLE }];
        for page in 0..self.pages.len() {
            list.push(Operation::LoadKv { page: (page * 4 * self.head_dim) as u32, position: page as u32 * 16 });
            for row_tile in 0..self.rows.div_ceil(ROWS) as u16 {
                list.extend([
                    Operation::FetchQ { row_tile },
                    Operation::Qk { row_tile },
                    Operation::Softmax { row_tile },
                    Operation::Pv { row_tile },
                ]);
            }
        }
        list.push(Operation::Store { output: OUTPUT });
        list
    }

    fn run(&self, operations: Vec<Operation>, timing: ChannelTiming) -> Bench {
        let mut bench = Bench::new(timing);
        self.load(&mut bench);
        let status = bench.run(&commands(operations));
        assert_eq!(status.code, Code::Ok);
        let at = |row: usize, column: usize| {
            let index = (row / ROWS * (self.head_dim + 2) + column) * ROWS + row % ROWS;
            bench.output[OUTPUT as usize * 4 + index].unwrap_or_else(|| panic!("row {row} column {column} was not written"))
        };
        for (row, state) in self.golden().iter().enumerate() {
            assert_eq!((at(row, self.head_dim + 1), at(row, self.head_dim)), (state.m, state.l), "m, l of row {row}");
            let o: Vec<u32> = (0..self.head_dim).map(|c| at(row, c)).collect();
            assert_eq!(o, state.finish(), "row {row}");
        }
        bench
    }
}

fn commands(operations: Vec<Operation>) -> Vec<Command> {
    operations.into_iter().map(|operation| Command { wait: false, interleave: false, mask: 1, operation }).collect()
}

fn stalls(seed: u64) -> ChannelTiming {
    ChannelTiming { latency: 1 + seed % 60, stall_once_in: 3, seed }
}

#[test]
fn a_composite_kernel_equals_golden() {
    let case = Case::random(4, 32, 5, 5, false);
    case.run(case.composite(), ChannelTiming::default());
}

#[test]
fn a_primitive_kernel_gives_the_same_bits() {
    let case = Case::random(5, 16, 3, 2, false);
    case.run(case.primitive(), ChannelTiming::default());
}

#[test]
fn random_stalls_and_poison_change_no_bit() {
    for seed in 100..104 {
        let case = Case::random(seed, [16, 24, 48, 64][seed as usize % 4], 1 + seed as usize % 5, seed as usize % 5, true);
        case.run(case.composite(), stalls(seed));
    }
}
