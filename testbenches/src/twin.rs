//! The tiny SIP's RTL and the golden machine side by side. Both get the same bytes and the same launches; how a launch ends and what it leaves is compared.

use std::sync::{LazyLock, Mutex};

use braid_devices::{EnginePins, with_stack};
use braid_golden::machine::{Machine, Outcome};
use braid_hdl::model::{Bench, ChannelTiming, RustHdlPins, SipPins};
use braid_hdl::preset::TinySip;
use braid_isa::layout::HostAddress;
use braid_isa::{Counter, Status, register};
use braid_sim::Design;
use braid_sim::engine::Compiled;
use rust_hdl::prelude::Block;

use crate::case::{CHANNEL_BEATS, COMMANDS, Case, GEOMETRY, Lists, OUTPUT, list_address};

/// The pins in rust-hdl's own simulator.
pub type RustHdlTiny = RustHdlPins<2, 64, 32, 5, 32, 11, 7, 5, 2, 13, 8, 2, 4>;
/// The pins on the compiled engine.
pub type CompiledTiny = EnginePins<Compiled>;

/// Cycles between two looks at the status register.
const POLL_CYCLES: u64 = 16;
/// Cycles that a bus transfer may take.
const BUS_BOUND: u64 = 5_000;
/// Byte that the output area holds before a launch, and words behind it that must keep it.
const UNTOUCHED: u8 = 0xA5;
const MARGIN: usize = 4;

/// How a launch ended.
#[derive(Clone, Debug)]
pub struct Ending {
    /// The STATUS register.
    pub status: u32,
    /// What the RTL reports.
    pub seen: Outcome,
    /// What the golden machine reports.
    pub expected: Outcome,
    /// Cycles from the doorbell to the end.
    pub cycles: u64,
}

/// RTL and golden machine.
pub struct Twin<P> {
    bench: Bench<P>,
    machine: Machine,
    timeout: u32,
}

impl Twin<CompiledTiny> {
    /// The RTL in the compiled engine. Waits of more than `timeout` cycles stop it.
    pub fn compiled(timing: ChannelTiming, timeout: u32) -> Self {
        static DESIGN: LazyLock<Mutex<Design>> = LazyLock::new(|| {
            Mutex::new(with_stack(|| {
                let mut top = Box::<TinySip>::default();
                top.connect_all();
                Design::lower(top.as_ref()).expect("the SIP can be lowered")
            }))
        });
        let engine = DESIGN.lock().expect("lowering does not panic").compile().expect("the SIP can be simulated");
        Twin::new(EnginePins::new(engine, GEOMETRY.pes()).expect("the SIP has its pins"), timing, timeout)
    }
}

impl Twin<RustHdlTiny> {
    /// The RTL in rust-hdl's own simulator: slow.
    pub fn rust_hdl(timing: ChannelTiming, timeout: u32) -> Self {
        Twin::new(RustHdlPins::new(Box::<TinySip>::default()), timing, timeout)
    }
}

impl<P: SipPins> Twin<P> {
    fn new(pins: P, timing: ChannelTiming, timeout: u32) -> Self {
        let mut bench = Bench::new(pins, CHANNEL_BEATS, timing, BUS_BOUND);
        bench.write_register(register::CHANNEL_BEATS, CHANNEL_BEATS).expect("the control port answers");
        bench.write_register(register::TIMEOUT, timeout).expect("the control port answers");
        Twin { bench, machine: Machine::new(GEOMETRY, CHANNEL_BEATS), timeout }
    }

    /// Writes bytes into both.
    pub fn write(&mut self, address: HostAddress, bytes: &[u8]) {
        self.bench.write(address, bytes).expect("a write within memory");
        self.machine.write(address, bytes).expect("a write within memory");
    }

    /// Writes what a kernel works on into both; pages by the back door.
    pub fn load(&mut self, case: &Case) {
        for cube in 0..GEOMETRY.cubes {
            for (word, bytes) in case.sram() {
                self.write(HostAddress::sram_word(cube, word as usize), &bytes);
            }
        }
        for pe in 0..GEOMETRY.pes() {
            let pages = case.channel(pe);
            self.bench.channel(pe).write_bytes(0, &pages);
            self.machine.write(HostAddress::channel_beat(pe, 0), &pages).expect("pages within memory");
        }
    }

    /// Has the memory of a PE answer no more.
    pub fn kill_channel(&mut self, pe: usize) {
        self.bench.channel(pe).kill();
    }

    /// Has it answer again, what was asked for in between first.
    pub fn revive_channel(&mut self, pe: usize) {
        self.bench.channel(pe).revive();
    }

    /// Lets the RTL run for some cycles.
    pub fn run(&mut self, cycles: u64) {
        self.bench.run(cycles);
    }

    /// Gives a soft reset, and does not wait for it.
    pub fn reset(&mut self) {
        self.bench.write_register(register::CONTROL, register::CONTROL_RESET).expect("the control port answers");
    }

    /// Writes the lists and rings the doorbell, without waiting for the end.
    pub fn start(&mut self, lists: &[Vec<[u32; 4]>]) {
        for (cube, list) in lists.iter().enumerate() {
            let bytes: Vec<u8> = list.as_flattened().iter().flat_map(|w| w.to_le_bytes()).collect();
            self.write(list_address(cube), &bytes);
        }
        self.start_at(COMMANDS, &lists.iter().map(|list| list.len() as u32).collect::<Vec<_>>());
    }

    fn start_at(&mut self, base: u32, counts: &[u32]) {
        self.bench.write_register(register::COMMAND_BASE, base).expect("the control port answers");
        for cube in 0..GEOMETRY.cubes {
            let count = counts.get(cube).copied().unwrap_or(0);
            self.bench.write_register(register::COMMAND_COUNT + 4 * cube as u32, count).expect("the control port answers");
        }
        self.bench.launch().expect("the control port answers");
    }

    /// Launches lists on both.
    ///
    /// # Panics
    /// If the RTL does not end within 30 time-outs.
    pub fn launch(&mut self, lists: &[Vec<[u32; 4]>]) -> Ending {
        self.start(lists);
        self.end(COMMANDS, &lists.iter().map(|list| list.len() as u32).collect::<Vec<_>>())
    }

    /// Launches what lies in SRAM from word `base` on.
    ///
    /// # Panics
    /// If the RTL does not end within 30 time-outs.
    pub fn launch_at(&mut self, base: u32, counts: &[u32]) -> Ending {
        self.start_at(base, counts);
        self.end(base, counts)
    }

    fn end(&mut self, base: u32, counts: &[u32]) -> Ending {
        let start = self.bench.cycles();
        let status = loop {
            let status = self.register(register::STATUS);
            if status & register::STATUS_BUSY == 0 {
                break status;
            }
            assert!(self.bench.cycles() - start < 30 * u64::from(self.timeout), "the launch does not end");
            self.bench.run(POLL_CYCLES);
        };
        let mut statuses = |first: u32, units: usize| -> Vec<Status> {
            let status = |unit| Status::from_register(self.register(first + 4 * unit as u32)).expect("a status code");
            (0..units).map(status).collect()
        };
        let seen = Outcome { cubes: statuses(register::CUBE_STATUS, GEOMETRY.cubes), pes: statuses(register::PE_STATUS, GEOMETRY.pes()) };
        let cycles = u64::from(self.register(register::CYCLES_LO)) | u64::from(self.register(register::CYCLES_HI)) << 32;
        Ending { status, seen, expected: self.machine.launch(base, counts), cycles }
    }

    fn register(&mut self, address: u32) -> u32 {
        self.bench.read_register(address).expect("the control port answers")
    }

    /// Launches lists that must end well, and compares what they leave: every bit of the output areas and what lies behind them, and
    /// every counter that the golden machine has. Gives the output areas of all CUBEs and the cycles.
    ///
    /// # Panics
    /// If anything differs.
    pub fn check(&mut self, case: &Case, lists: &[Vec<[u32; 4]>]) -> (Vec<Vec<u8>>, u64) {
        let area = vec![UNTOUCHED; case.output_bytes() + 16 * MARGIN];
        for cube in 0..GEOMETRY.cubes {
            self.write(HostAddress::sram_word(cube, OUTPUT as usize), &area);
        }
        let ending = self.launch(lists);
        assert!(ending.expected.is_ok(), "golden: {:?}", ending.expected);
        assert_eq!((ending.status, ending.seen.is_ok()), (register::STATUS_DONE, true), "{:?}", ending.seen);
        let areas: Vec<Vec<u8>> = (0..GEOMETRY.cubes)
            .map(|cube| {
                let (mut rtl, mut golden) = (area.clone(), area.clone());
                let address = HostAddress::sram_word(cube, OUTPUT as usize);
                self.bench.read(address, &mut rtl).expect("a read within memory");
                self.machine.read(address, &mut golden).expect("a read within memory");
                assert!(rtl == golden, "outputs of CUBE {cube} differ");
                rtl
            })
            .collect();
        assert_ne!(areas[0], area, "PE 0 writes l and m at least");
        for pe in 0..GEOMETRY.pes() {
            for &counter in Counter::ALL {
                // Primitive commands count no tiles in the golden machine, as in the RTL.
                if let Some(expected) = self.machine.counter(pe, counter) {
                    assert_eq!(self.counter(pe, counter), expected, "{} of PE {pe}", counter.name());
                }
            }
        }
        (areas, ending.cycles)
    }

    /// Loads a kernel and has its lists checked.
    pub fn check_case(&mut self, case: &Case, lists: &Lists) -> (Vec<Vec<u8>>, u64) {
        self.load(case);
        self.check(case, lists)
    }

    /// A counter of the RTL.
    pub fn counter(&mut self, pe: usize, counter: Counter) -> u64 {
        self.bench.write_register(register::COUNTER_SELECT, (pe as u32) << 8 | counter as u32).expect("the control port answers");
        u64::from(self.register(register::COUNTER_LO)) | u64::from(self.register(register::COUNTER_HI)) << 32
    }
}
