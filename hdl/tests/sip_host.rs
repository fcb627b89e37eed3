//! The tiny SIP as its host sees it between and around launches: several launches without a reset, writes right before the doorbell, a port that must stay alive.

use braid_golden::format::Format;
use braid_golden::machine::Machine;
use braid_hdl::model::{Bench, BusError, ChannelTiming, RustHdlPins};
use braid_hdl::preset::TinySip;
use braid_isa::command::{Command, Operation};
use braid_isa::layout::HostAddress;
use braid_isa::{Geometry, register};

const CHANNEL_BEATS: u32 = 256;
const COMMANDS: usize = 3072;
const TABLE: usize = 2048;
const OUTPUT: usize = 4096;
const HEAD_DIM: usize = 16;
/// Words of one row tile of outputs: d + 2 columns of two rows, two columns a word.
const OUTPUT_WORDS: usize = (HEAD_DIM + 2) / 2;

type Tiny = RustHdlPins<2, 64, 32, 5, 32, 11, 7, 5, 2, 13, 8, 2, 4>;

fn bench(timing: ChannelTiming, bound: u64) -> Bench<Tiny> {
    let mut bench = Bench::new(RustHdlPins::new(Box::<TinySip>::default()), CHANNEL_BEATS, timing, bound);
    bench.write_register(register::CHANNEL_BEATS, CHANNEL_BEATS).expect("the control port answers");
    bench
}

fn page(value: f32) -> Vec<u8> {
    (0..HEAD_DIM * 32).flat_map(|i| Format::Fp16.round(value + i as f32 / 64.0).to_le_bytes()).collect()
}

/// One row that sees the one page of PE 0.
fn kernel() -> Vec<(HostAddress, Vec<u8>)> {
    let operations = [
        Operation::Configure {
            rows: 1,
            head_dim: HEAD_DIM as u16,
            scale: 0.36f32.to_bits(),
            q_address: 0,
            q_bf16: false,
            k_bf16: false,
            v_bf16: false,
            active: 1,
        },
        Operation::LoadRows { table: TABLE as u32 },
        Operation::Attend { page: 0, position: 0, pages: 1, stride: 1 },
        Operation::Store { output: OUTPUT as u32 },
    ];
    let list = operations.map(|operation| Command { wait: false, interleave: false, mask: 1, operation });
    let table = [0, 16, 0, 0, 0, 0, 0, 0];
    vec![
        (HostAddress::sram_word(0, 0), (0..HEAD_DIM).flat_map(|i| Format::Fp16.round(i as f32 / 8.0).to_le_bytes()).collect()),
        (HostAddress::sram_word(0, HEAD_DIM / 8), vec![0; HEAD_DIM * 2]),
        (HostAddress::sram_word(0, TABLE), table.into_iter().flat_map(u32::to_le_bytes).collect()),
        (HostAddress::sram_word(0, COMMANDS), list.iter().flat_map(Command::encode).flat_map(u32::to_le_bytes).collect()),
    ]
}

fn prepare(bench: &mut Bench<Tiny>) {
    for (address, bytes) in kernel() {
        bench.write(address, &bytes).expect("a write within memory");
    }
    bench.write_register(register::COMMAND_BASE, COMMANDS as u32).expect("the control port answers");
    bench.write_register(register::COMMAND_COUNT, 4).expect("the control port answers");
}

/// Waits for the end of a launch; gives STATUS.
fn end(bench: &mut Bench<Tiny>) -> u32 {
    for _ in 0..500 {
        let status = bench.read_register(register::STATUS).expect("the control port answers");
        if status & register::STATUS_BUSY == 0 {
            return status;
        }
        bench.run(10);
    }
    panic!("the launch does not end");
}

fn output(bench: &mut Bench<Tiny>) -> Vec<u8> {
    let mut bytes = vec![0; OUTPUT_WORDS * 16];
    bench.read(HostAddress::sram_word(0, OUTPUT), &mut bytes).expect("a read within memory");
    bytes
}

/// What the golden machine writes for a page.
fn expected(page: &[u8]) -> Vec<u8> {
    let mut machine = Machine::new(Geometry::TINY, CHANNEL_BEATS);
    for (address, bytes) in kernel() {
        machine.write(address, &bytes).expect("a write within memory");
    }
    machine.write(HostAddress::Channel { pe: 0, byte: 0 }, page).expect("a write within memory");
    machine.write(HostAddress::sram_word(0, OUTPUT), &[0; OUTPUT_WORDS * 16]).expect("a write within memory");
    assert!(machine.launch(COMMANDS as u32, &[4, 0]).is_ok());
    let mut bytes = vec![0; OUTPUT_WORDS * 16];
    machine.read(HostAddress::sram_word(0, OUTPUT), &mut bytes).expect("a read within memory");
    bytes
}

#[test]
fn launches_with_a_reset_between_them_leave_no_trace_under_random_stalls() {
    let mut bench = bench(ChannelTiming { latency: 1, stall_once_in: 2, seed: 7 }, 1_000);
    prepare(&mut bench);
    for number in 0..4 {
        bench.write_register(register::CONTROL, register::CONTROL_RESET).expect("the control port answers");
        bench.run(16);
        let page = page(number as f32 / 16.0);
        bench.write(HostAddress::Channel { pe: 0, byte: 0 }, &page).expect("a write within memory");
        bench.run(64);
        bench.launch().expect("the control port answers");
        assert_eq!(end(&mut bench), register::STATUS_DONE);
        assert!(output(&mut bench) == expected(&page), "launch {number}");
    }
}

#[test]
fn a_launch_after_a_good_one_needs_no_reset_and_takes_the_same_cycles() {
    let mut bench = bench(ChannelTiming::default(), 1_000);
    prepare(&mut bench);
    let mut cycles = Vec::new();
    for value in [1.0, -2.0, 0.5] {
        let page = page(value);
        bench.write(HostAddress::Channel { pe: 0, byte: 0 }, &page).expect("a write within memory");
        bench.write(HostAddress::sram_word(0, OUTPUT), &[0; OUTPUT_WORDS * 16]).expect("a write within memory");
        bench.launch().expect("the control port answers");
        assert_eq!(end(&mut bench), register::STATUS_DONE);
        assert!(output(&mut bench) == expected(&page), "the output of the page of {value}");
        cycles.push(bench.read_register(register::CYCLES_LO).expect("the control port answers"));
    }
    assert!(cycles[0] > 100 && cycles.iter().all(|&c| c == cycles[0]), "{cycles:?}");
}

#[test]
fn a_channel_write_that_was_answered_is_seen_by_the_launch_behind_it() {
    let mut bench = bench(ChannelTiming { latency: 1, stall_once_in: 2, seed: 7 }, 1_000);
    prepare(&mut bench);
    for try_ in 0..8 {
        bench.write_register(register::CONTROL, register::CONTROL_RESET).expect("the control port answers");
        bench.run(16);
        let page = page(try_ as f32 / 16.0);
        bench.write(HostAddress::Channel { pe: 0, byte: 0 }, &page).expect("a write within memory");
        bench.launch().expect("the control port answers");
        assert_eq!(end(&mut bench), register::STATUS_DONE);
        assert!(output(&mut bench) == expected(&page), "try {try_}");
    }
}

#[test]
fn a_soft_reset_frees_a_data_port_that_waits_for_dead_memory() {
    let mut bench = bench(ChannelTiming::default(), 300);
    bench.write(HostAddress::sram_word(1, 9), &[7; 16]).expect("a write within memory");
    bench.channel(2).kill();
    let mut bytes = [0; 16];
    let dead = bench.read(HostAddress::Channel { pe: 2, byte: 0 }, &mut bytes);
    assert!(matches!(dead, Err(BusError::NoAnswer { .. } | BusError::Refused { .. })), "{dead:?}");
    bench.write_register(register::CONTROL, register::CONTROL_RESET).expect("the control port answers");
    bench.run(16);
    bench.read(HostAddress::sram_word(1, 9), &mut bytes).expect("the data port lives");
    assert_eq!(bytes, [7; 16]);
}

#[test]
fn addresses_outside_memory_are_refused_and_the_ports_go_on() {
    let mut bench = bench(ChannelTiming::default(), 1_000);
    let words = Geometry::TINY.sram_words;
    let outside = [
        HostAddress::sram_word(0, words),
        HostAddress::sram_word(2, 0),
        HostAddress::Channel { pe: 0, byte: CHANNEL_BEATS * 16 },
        HostAddress::Channel { pe: 4, byte: 0 },
    ];
    for address in outside {
        assert!(matches!(bench.write(address, &[1; 16]), Err(BusError::Refused { .. })), "{address:?}");
        assert!(matches!(bench.read(address, &mut [0; 16]), Err(BusError::Refused { .. })), "{address:?}");
    }
    assert!(matches!(bench.write(HostAddress::Sram { cube: 0, byte: 2 }, &[1; 2]), Err(BusError::Refused { .. })), "half a word of SRAM");
    for address in [HostAddress::sram_word(1, words - 1), HostAddress::Channel { pe: 3, byte: (CHANNEL_BEATS - 1) * 16 }] {
        let mut bytes = [0; 16];
        bench.write(address, &[9; 16]).expect("the last beat is inside");
        bench.read(address, &mut bytes).expect("the last beat is inside");
        assert_eq!(bytes, [9; 16], "{address:?}");
    }
    // Two bytes across a beat of channel memory change nothing else.
    bench.write(HostAddress::Channel { pe: 1, byte: 0 }, &[3; 32]).expect("inside");
    bench.write(HostAddress::Channel { pe: 1, byte: 15 }, &[8; 2]).expect("inside");
    let mut bytes = [0; 32];
    bench.read(HostAddress::Channel { pe: 1, byte: 0 }, &mut bytes).expect("inside");
    assert_eq!((bytes[14], bytes[15], bytes[16], bytes[17]), (3, 8, 8, 3));
}
