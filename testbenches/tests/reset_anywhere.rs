//! A soft reset, or the failure of another PE, in any cycle of a tiny SIP's launch: the launch ends, and the next one is whole.

use braid_devices::{EnginePins, with_stack};
use braid_golden::format::Format;
use braid_golden::machine::Machine;
use braid_hdl::model::{Bench, ChannelTiming};
use braid_hdl::preset::TinySip;
use braid_isa::command::{Command, Operation};
use braid_isa::layout::{HostAddress, output_words};
use braid_isa::{Geometry, register};
use braid_sim::Design;
use braid_testbenches::twin::CompiledTiny;
use rust_hdl::prelude::Block;

const CHANNEL_BEATS: u32 = 512;
const COMMANDS: usize = 3072;
const TABLE: usize = 2048;
const OUTPUT: usize = 4096;
const HEAD_DIM: usize = 16;
const ROWS: usize = 2;
const PAGES: u16 = 4;

type Tiny = Bench<CompiledTiny>;

fn elements(n: usize, seed: usize) -> Vec<u8> {
    (0..n).flat_map(|i| Format::Fp16.round(((i * 37 + seed) % 29) as f32 / 8.0 - 1.5).to_le_bytes()).collect()
}

/// Attention on PE 0. With `lonely`, PE 1 waits in vain for a merge partner and fails by its time-out while PE 0 still works.
fn list(lonely: bool) -> Vec<u8> {
    let configure = Operation::Configure {
        rows: ROWS as u16,
        head_dim: HEAD_DIM as u16,
        scale: 0.36f32.to_bits(),
        q_address: 0,
        q_bf16: false,
        k_bf16: false,
        v_bf16: false,
        active: if lonely { 2 } else { 1 },
    };
    let load = (1, Operation::LoadRows { table: TABLE as u32 });
    let attend = (1, Operation::Attend { page: 0, position: 0, pages: PAGES, stride: 1 });
    let commands = if lonely {
        [(3, configure), (2, Operation::Merge { first_round: 0, rounds: 1 }), load, attend]
    } else {
        [(1, configure), load, attend, (1, Operation::Store { output: OUTPUT as u32 })]
    };
    let commands = commands.into_iter().map(|(mask, operation)| Command { wait: false, interleave: false, mask, operation });
    commands.flat_map(|c| c.encode()).flat_map(u32::to_le_bytes).collect()
}

fn memory(lonely: bool) -> Vec<(HostAddress, Vec<u8>)> {
    let positions = u32::from(PAGES) * 16;
    let table = (0..ROWS).flat_map(|_| [0, positions, 0, 0, 0, 0, 0, 0]).flat_map(u32::to_le_bytes).collect();
    vec![
        (HostAddress::sram_word(0, 0), elements(ROWS * HEAD_DIM, 3)),
        (HostAddress::sram_word(0, TABLE), table),
        (HostAddress::sram_word(0, COMMANDS), list(lonely)),
        (HostAddress::sram_word(0, OUTPUT), vec![0; output_words(&Geometry::TINY, ROWS, HEAD_DIM) * 16]),
        (HostAddress::Channel { pe: 0, byte: 0 }, elements(usize::from(PAGES) * 32 * HEAD_DIM, 11)),
    ]
}

fn bench(lonely: bool) -> Tiny {
    let mut top = Box::<TinySip>::default();
    top.connect_all();
    let engine = Design::lower(top.as_ref()).and_then(|design| design.compile()).expect("the SIP can be simulated");
    let pins = EnginePins::new(engine, Geometry::TINY.pes()).expect("the SIP has its pins");
    let mut bench = Bench::new(pins, CHANNEL_BEATS, ChannelTiming::default(), 1_000);
    set(&mut bench, register::CHANNEL_BEATS, CHANNEL_BEATS);
    for (address, bytes) in memory(lonely) {
        bench.write(address, &bytes).expect("a write within memory");
    }
    set(&mut bench, register::COMMAND_BASE, COMMANDS as u32);
    set(&mut bench, register::COMMAND_COUNT, 4);
    bench
}

fn set(bench: &mut Tiny, register: u32, value: u32) {
    bench.write_register(register, value).expect("the control port answers");
}

fn get(bench: &mut Tiny, register: u32) -> u32 {
    bench.read_register(register).expect("the control port answers")
}

/// STATUS at the end of a launch; `None` if it is still busy after `limit` cycles.
fn end(bench: &mut Tiny, limit: u64) -> Option<u32> {
    let start = bench.cycles();
    while bench.cycles() - start < limit {
        let status = get(bench, register::STATUS);
        if status & register::STATUS_BUSY == 0 {
            return Some(status);
        }
        bench.run(10);
    }
    None
}

fn output(bench: &mut Tiny) -> Vec<u8> {
    let mut bytes = vec![0; output_words(&Geometry::TINY, ROWS, HEAD_DIM) * 16];
    bench.read(HostAddress::sram_word(0, OUTPUT), &mut bytes).expect("a read within memory");
    bytes
}

fn expected() -> Vec<u8> {
    let mut machine = Machine::new(Geometry::TINY, CHANNEL_BEATS);
    for (address, bytes) in memory(false) {
        machine.write(address, &bytes).expect("a write within memory");
    }
    assert!(machine.launch(COMMANDS as u32, &[4, 0]).is_ok());
    let mut bytes = vec![0; output_words(&Geometry::TINY, ROWS, HEAD_DIM) * 16];
    machine.read(HostAddress::sram_word(0, OUTPUT), &mut bytes).expect("a read within memory");
    bytes
}

/// A reset in every cycle of a launch, then a launch at once: no wait of the host in between.
#[test]
fn a_soft_reset_in_any_cycle_of_a_launch_leaves_no_trace_in_the_next() {
    with_stack(|| {
        let mut bench = bench(false);
        set(&mut bench, register::TIMEOUT, 400);
        let expected = expected();
        bench.launch().expect("the control port answers");
        assert_eq!(end(&mut bench, 4_000), Some(register::STATUS_DONE));
        assert_eq!(output(&mut bench), expected, "the undisturbed launch");
        let length = u64::from(get(&mut bench, register::CYCLES_LO));
        let mut bad = Vec::new();
        for cycle in 0..length + 5 {
            bench.launch().expect("the control port answers");
            bench.run(cycle);
            set(&mut bench, register::CONTROL, register::CONTROL_RESET);
            bench.launch().expect("the control port answers");
            let status = end(&mut bench, 4_000);
            if status != Some(register::STATUS_DONE) {
                bad.push((cycle, status, get(&mut bench, register::PE_STATUS), get(&mut bench, register::CUBE_STATUS)));
            } else if output(&mut bench) != expected {
                bad.push((cycle, status, u32::MAX, 0));
            }
        }
        assert!(bad.is_empty(), "{} of {length} cycles: (cycle, STATUS, PE 0, CUBE 0) {bad:x?}", bad.len());
    });
}

/// The host does not wait after a soft reset: what it writes and reads next is not lost.
#[test]
fn accesses_right_behind_a_soft_reset_are_answered_and_kept() {
    with_stack(|| {
        let mut bench = bench(false);
        for wait in 0..12 {
            for address in [HostAddress::sram_word(1, 77), HostAddress::Channel { pe: 2, byte: 160 }] {
                let (bytes, mut got) = (elements(24, wait), vec![0; 48]);
                set(&mut bench, register::CONTROL, register::CONTROL_RESET);
                bench.run(wait as u64);
                bench.write(address, &bytes).expect("a write behind a reset is answered");
                bench.read(address, &mut got).expect("a read is answered");
                assert_eq!(got, bytes, "written {wait} cycles after the answer to the reset");
                set(&mut bench, register::CONTROL, register::CONTROL_RESET);
                bench.run(wait as u64);
                let mut got = vec![0; 48];
                bench.read(address, &mut got).expect("a read behind a reset is answered");
                assert_eq!(got, bytes, "read {wait} cycles after the answer to the reset");
            }
        }
    });
}

#[test]
fn a_launch_ends_whenever_another_pe_fails() {
    with_stack(|| {
        let mut bench = bench(true);
        let (mut bad, mut aborted) = (Vec::new(), 0);
        for bound in 150..450 {
            set(&mut bench, register::CONTROL, register::CONTROL_RESET);
            set(&mut bench, register::TIMEOUT, bound);
            bench.launch().expect("the control port answers");
            let status = end(&mut bench, 6_000);
            let pe = [0, 4].map(|p| get(&mut bench, register::PE_STATUS + p));
            aborted += u32::from(pe[0] & 0xFF == braid_isa::Code::Aborted as u32);
            if status != Some(register::STATUS_DONE | register::STATUS_ERROR) {
                bad.push((bound, status, pe));
            }
        }
        assert!(aborted > 50, "PE 0 was at work when PE 1 failed: {aborted}");
        assert!(bad.is_empty(), "{} of 300: (bound, STATUS, PE 0 and 1) {bad:x?}", bad.len());
    });
}
