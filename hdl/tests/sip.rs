//! The whole SIP (tiny preset) in rust-hdl's own simulator against the golden machine: the same bytes in, the same bytes out.

use braid_golden::format::Format;
use braid_golden::machine::Machine;
use braid_golden::stimulus::Stimulus;
use braid_hdl::model::{Bench, ChannelTiming, RustHdlPins};
use braid_hdl::preset::TinySip;
use braid_isa::command::{Command, Operation};
use braid_isa::layout::{HostAddress, merge_rounds, output_words, page_beats};
use braid_isa::{Counter, Geometry, register};

const GEOMETRY: Geometry = Geometry::TINY;
const CHANNEL_BEATS: u32 = 4096;
const TABLE: usize = 2048;
const OUTPUT: usize = 4096;
const COMMANDS: usize = 3072;

/// Bytes at addresses, and the command list of each CUBE.
struct Job {
    writes: Vec<(HostAddress, Vec<u8>)>,
    counts: Vec<u32>,
    rows: usize,
    head_dim: usize,
    active: usize,
    pages: usize,
}

fn job(seed: u64, rows: usize, head_dim: usize, pages: usize) -> Job {
    let mut s = Stimulus::new(seed);
    let active = pages.clamp(1, GEOMETRY.pes());
    let tensor =
        |n: usize, s: &mut Stimulus| -> Vec<u8> { (0..n).flat_map(|_| Format::Fp16.round(s.normal() * 2.0).to_le_bytes()).collect() };
    let q = tensor(GEOMETRY.row_tiles(rows) * GEOMETRY.rows * head_dim, &mut s);
    let positions = (pages * 16) as u32;
    let table: Vec<u8> = (0..rows)
        .flat_map(|row| {
            let mut entry = [0u32; 8];
            if row % 5 != 3 {
                for pair in entry.chunks_mut(2) {
                    let (a, b) = (s.below(positions + 1), s.below(positions + 1));
                    pair.copy_from_slice(&[a.min(b), a.max(b)]);
                }
            }
            entry
        })
        .flat_map(u32::to_le_bytes)
        .collect();
    let mut writes = Vec::new();
    let bytes = page_beats(head_dim) * 16;
    for page in 0..pages {
        let (pe, slot) = (page % active, page / active);
        writes.push((HostAddress::Channel { pe, byte: (slot * bytes) as u32 }, tensor(bytes / 2, &mut s)));
    }
    let scale = ((1.0 / (head_dim as f64).sqrt() * std::f64::consts::LOG2_E) as f32).to_bits();
    let mut counts = Vec::new();
    for cube in 0..GEOMETRY.cubes {
        let mut list = Vec::new();
        let mut push = |mask: u8, interleave: bool, operation: Operation| {
            list.push(Command { wait: false, interleave, mask, operation });
        };
        push(
            3,
            false,
            Operation::Configure {
                rows: rows as u16,
                head_dim: head_dim as u16,
                scale,
                q_address: 0,
                q_bf16: false,
                k_bf16: false,
                v_bf16: false,
                active: active as u8,
            },
        );
        push(3, false, Operation::LoadRows { table: TABLE as u32 });
        for pe in 0..GEOMETRY.pes_per_cube {
            let global = cube * GEOMETRY.pes_per_cube + pe;
            let count = (0..pages).filter(|p| p % active == global).count();
            if count > 0 {
                push(1 << pe, true, Operation::Attend { page: 0, position: 0, pages: count as u16, stride: active as u16 });
            }
        }
        let rounds = merge_rounds(active) as u8;
        if rounds > 0 {
            push(3, false, Operation::Merge { first_round: 0, rounds });
        }
        push(3, false, Operation::Store { output: OUTPUT as u32 });
        let words: Vec<u8> = list.iter().flat_map(|c| c.encode()).flat_map(u32::to_le_bytes).collect();
        counts.push(list.len() as u32);
        writes.push((HostAddress::sram_word(cube, 0), q.clone()));
        writes.push((HostAddress::sram_word(cube, TABLE), table.clone()));
        writes.push((HostAddress::sram_word(cube, COMMANDS), words));
        writes.push((HostAddress::sram_word(cube, OUTPUT), vec![0; output_words(&GEOMETRY, rows, head_dim) * 16]));
    }
    Job { writes, counts, rows, head_dim, active, pages }
}

type Tiny = RustHdlPins<2, 64, 32, 5, 32, 11, 7, 5, 2, 13, 8, 2, 4>;

fn bench(timing: ChannelTiming) -> Bench<Tiny> {
    Bench::new(RustHdlPins::new(Box::<TinySip>::default()), CHANNEL_BEATS, timing, 50_000)
}

fn run(bench: &mut Bench<Tiny>, job: &Job) -> u32 {
    bench.write_register(register::CHANNEL_BEATS, CHANNEL_BEATS).expect("the control port answers");
    for (address, bytes) in &job.writes {
        bench.write(*address, bytes).expect("a write within memory");
    }
    bench.write_register(register::COMMAND_BASE, COMMANDS as u32).expect("the control port answers");
    for (cube, &count) in job.counts.iter().enumerate() {
        bench.write_register(register::COMMAND_COUNT + 4 * cube as u32, count).expect("the control port answers");
    }
    bench.launch().expect("the control port answers");
    for _ in 0..2000 {
        bench.run(50);
        let status = bench.read_register(register::STATUS).expect("the control port answers");
        if status & register::STATUS_BUSY == 0 {
            return status;
        }
    }
    panic!("the launch does not end");
}

fn check(seed: u64, rows: usize, head_dim: usize, pages: usize, timing: ChannelTiming) {
    let job = job(seed, rows, head_dim, pages);
    let mut bench = bench(timing);
    assert_eq!(run(&mut bench, &job), register::STATUS_DONE, "seed {seed}");
    let mut machine = Machine::new(GEOMETRY, CHANNEL_BEATS);
    for (address, bytes) in &job.writes {
        machine.write(*address, bytes).expect("a write within memory");
    }
    let outcome = machine.launch(COMMANDS as u32, &job.counts);
    assert!(outcome.is_ok(), "{outcome:?}");
    let bytes = output_words(&GEOMETRY, job.rows, job.head_dim) * 16;
    for cube in 0..GEOMETRY.cubes {
        let (mut rtl, mut golden) = (vec![0; bytes], vec![0; bytes]);
        bench.read(HostAddress::sram_word(cube, OUTPUT), &mut rtl).expect("a read within memory");
        machine.read(HostAddress::sram_word(cube, OUTPUT), &mut golden).expect("a read within memory");
        assert!(rtl.iter().any(|&b| b != 0) || cube > 0 || pages == 0, "something was written");
        assert_eq!(rtl, golden, "seed {seed}, CUBE {cube}");
    }
    let cycles = bench.read_register(register::CYCLES_LO).expect("the control port answers");
    for pe in 0..GEOMETRY.pes() {
        let mut counter = |c: Counter| {
            bench.write_register(register::COUNTER_SELECT, (pe as u32) << 8 | c as u32).expect("the control port answers");
            bench.read_register(register::COUNTER_LO).expect("the control port answers")
        };
        let sum: u32 = Counter::ALL.iter().filter(|c| c.divides_cycles()).map(|&c| counter(c)).sum();
        assert_eq!(sum, cycles, "the cycle counters of PE {pe} divide the launch");
        let rounds = if pe < job.active.next_power_of_two() { merge_rounds(job.active) } else { 0 };
        assert_eq!(counter(Counter::MergeRounds), rounds, "merge rounds of PE {pe} with {} pages", job.pages);
    }
}

#[test]
fn launches_equal_the_golden_machine() {
    check(1, 5, 32, 6, ChannelTiming::default());
    check(2, 1, 16, 1, ChannelTiming::default());
}

#[test]
fn random_stalls_change_no_bit() {
    for seed in 10..12 {
        check(
            seed,
            1 + seed as usize % 7,
            [16, 40, 64][seed as usize % 3],
            seed as usize % 6,
            ChannelTiming { latency: 1 + seed, stall_once_in: 3, seed },
        );
    }
}
