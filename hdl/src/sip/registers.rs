//! Control registers (`docs/commands.md`, `braid_isa::register`) and the run control behind the doorbell.
//!
//! ```text
//!  register bus --> settings, doorbell, reset        doorbell --> start, running --> (every CUBE done) --> done, error, cycles
//! ```
//!
//! A launch runs from the cycle after the doorbell's write until every CUBE is done; CYCLES counts the cycles of `running`. A doorbell during a launch is ignored.
//! A soft reset lasts four cycles and keeps the settings; a doorbell behind it is kept until the reset has reached every unit.

use braid_isa::{Geometry, LANES};
use rust_hdl::prelude::*;

#[derive(LogicBlock)]
pub struct Registers<const CUBES: usize, const TOTAL: usize> {
    pub clock: Signal<In, Clock>,
    pub write: Signal<In, Bit>,
    pub write_address: Signal<In, Bits<12>>,
    pub write_data: Signal<In, Bits<32>>,
    pub read_address: Signal<In, Bits<12>>,
    pub read_data: Signal<Out, Bits<32>>,
    pub channel_beats: Signal<Out, Bits<32>>,
    pub timeout: Signal<Out, Bits<32>>,
    pub command_base: Signal<Out, Bits<32>>,
    pub command_count: [Signal<Out, Bits<32>>; CUBES],
    pub counter: Signal<Out, Bits<8>>,
    pub counter_pe: Signal<Out, Bits<8>>,
    pub counter_value: Signal<In, Bits<48>>,
    pub reset: Signal<Out, Bit>,
    pub start: Signal<Out, Bit>,
    pub running: Signal<Out, Bit>,
    pub cube_done: [Signal<In, Bit>; CUBES],
    pub cube_failed: [Signal<In, Bit>; CUBES],
    pub abort: Signal<Out, Bit>,
    pub cube_status: [Signal<In, Bits<32>>; CUBES],
    pub pe_status: [Signal<In, Bits<32>>; TOTAL],
    geometry: Constant<Bits<32>>,
    limits: Constant<Bits<32>>,
    sram_words: Constant<Bits<32>>,
    beats: DFF<Bits<32>>,
    bound_less: DFF<Bits<32>>,
    base: DFF<Bits<32>>,
    count: [DFF<Bits<32>>; CUBES],
    select: DFF<Bits<16>>,
    resetting: DFF<Bits<4>>,
    settling: Signal<Local, Bit>,
    in_reset: Signal<Local, Bit>,
    starting: DFF<Bit>,
    active: DFF<Bit>,
    finished: DFF<Bit>,
    error: DFF<Bit>,
    cycles: DFF<Bits<48>>,
    aborting: DFF<Bit>,
    all_done: Signal<Local, Bit>,
    any_failed: Signal<Local, Bit>,
    bound: Signal<Local, Bits<32>>,
    answer: DFF<Bits<32>>,
}

impl<const CUBES: usize, const TOTAL: usize> Registers<CUBES, TOTAL> {
    /// Registers that report these sizes.
    pub fn new(geometry: &Geometry) -> Self {
        let low_high = |low: usize, high: usize| low as u64 | (high as u64) << 16;
        let counts = low_high(geometry.cubes | geometry.pes_per_cube << 8, geometry.rows | LANES << 8);
        Self {
            clock: Default::default(),
            write: Default::default(),
            write_address: Default::default(),
            write_data: Default::default(),
            read_address: Default::default(),
            read_data: Default::default(),
            channel_beats: Default::default(),
            timeout: Default::default(),
            command_base: Default::default(),
            command_count: std::array::from_fn(|_| Default::default()),
            counter: Default::default(),
            counter_pe: Default::default(),
            counter_value: Default::default(),
            reset: Default::default(),
            start: Default::default(),
            running: Default::default(),
            cube_done: std::array::from_fn(|_| Default::default()),
            cube_failed: std::array::from_fn(|_| Default::default()),
            abort: Default::default(),
            cube_status: std::array::from_fn(|_| Default::default()),
            pe_status: std::array::from_fn(|_| Default::default()),
            geometry: Constant::new(bits(counts)),
            limits: Constant::new(bits(low_high(geometry.max_rows, geometry.max_head_dim))),
            sram_words: Constant::new(bits(geometry.sram_words as u64)),
            beats: Default::default(),
            bound_less: Default::default(),
            base: Default::default(),
            count: std::array::from_fn(|_| Default::default()),
            select: Default::default(),
            resetting: Default::default(),
            settling: Default::default(),
            in_reset: Default::default(),
            starting: Default::default(),
            active: Default::default(),
            finished: Default::default(),
            error: Default::default(),
            cycles: Default::default(),
            aborting: Default::default(),
            all_done: Default::default(),
            any_failed: Default::default(),
            bound: Default::default(),
            answer: Default::default(),
        }
    }
}

impl<const CUBES: usize, const TOTAL: usize> Logic for Registers<CUBES, TOTAL> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, beats, bound_less, base, select, resetting, starting, active, finished, error, cycles, aborting, answer);
        // ---- settings; the time-out is kept relative to its reset value, so that its register starts from 0
        self.bound.next = self.bound_less.q.val() ^ 0x1_0000;
        self.channel_beats.next = self.beats.q.val();
        self.timeout.next = self.bound.val();
        self.command_base.next = self.base.q.val();
        self.counter.next = self.select.q.val().get_bits::<8>(0);
        self.counter_pe.next = self.select.q.val().get_bits::<8>(8);
        for c in 0..CUBES {
            self.count[c].clock.next = self.clock.val();
            self.count[c].d.next = self.count[c].q.val();
            if self.write.val() & (self.write_address.val() == (4 * c + 64).to_bits()) {
                self.count[c].d.next = self.write_data.val();
            }
            self.command_count[c].next = self.count[c].q.val();
        }
        // four cycles of reset, then four in which it passes the registers on its way
        self.settling.next = self.resetting.q.val().any();
        self.in_reset.next = self.resetting.q.val() > 4;
        self.starting.d.next = self.starting.q.val() & self.settling.val();
        if self.settling.val() {
            self.resetting.d.next = self.resetting.q.val() - 1;
        }
        if self.write.val() {
            if self.write_address.val() == 0x14 {
                self.beats.d.next = self.write_data.val();
            }
            if self.write_address.val() == 0x20 {
                self.bound_less.d.next = self.write_data.val() ^ 0x1_0000;
            }
            if self.write_address.val() == 0x24 {
                self.base.d.next = self.write_data.val();
            }
            if self.write_address.val() == 0x30 {
                self.select.d.next = self.write_data.val().get_bits::<16>(0);
            }
        }
        // ---- run control
        self.all_done.next = true;
        self.any_failed.next = false;
        for c in 0..CUBES {
            self.all_done.next = self.all_done.val() & self.cube_done[c].val();
            self.any_failed.next = self.any_failed.val() | self.cube_failed[c].val();
        }
        self.aborting.d.next = self.active.q.val() & self.any_failed.val();
        self.abort.next = self.aborting.q.val();
        if self.active.q.val() & !self.starting.q.val() {
            self.cycles.d.next = self.cycles.q.val() + 1;
            if self.all_done.val() {
                self.active.d.next = false;
                self.finished.d.next = true;
                self.error.d.next = self.any_failed.val();
            }
        }
        if (self.write.val() & (self.write_address.val() == 0x18)) & (self.write_data.val().get_bit(0) & !self.active.q.val()) {
            self.starting.d.next = true;
            self.active.d.next = true;
            self.finished.d.next = false;
            self.error.d.next = false;
            self.cycles.d.next = 0.into();
        }
        if (self.write.val() & (self.write_address.val() == 0x18)) & self.write_data.val().get_bit(1) {
            self.resetting.d.next = 8.into();
            self.active.d.next = false;
            self.finished.d.next = false;
            self.error.d.next = false;
            self.starting.d.next = false;
        }
        self.reset.next = self.in_reset.val();
        self.start.next = self.starting.q.val() & !self.settling.val();
        self.running.next = self.active.q.val() & !self.starting.q.val();
        // ---- reads
        self.answer.d.next = 0.into();
        if self.read_address.val() == 0 {
            self.answer.d.next = 0x4252_4149.into();
        }
        if self.read_address.val() == 0x04 {
            self.answer.d.next = 1.into();
        }
        if self.read_address.val() == 0x08 {
            self.answer.d.next = self.geometry.val();
        }
        if self.read_address.val() == 0x0C {
            self.answer.d.next = self.limits.val();
        }
        if self.read_address.val() == 0x10 {
            self.answer.d.next = self.sram_words.val();
        }
        if self.read_address.val() == 0x14 {
            self.answer.d.next = self.beats.q.val();
        }
        if self.read_address.val() == 0x1C {
            self.answer.d.next = 0.into();
            if self.active.q.val() {
                self.answer.d.next = 1.into();
            }
            if self.finished.q.val() {
                self.answer.d.next = 2.into();
                if self.error.q.val() {
                    self.answer.d.next = 6.into();
                }
            }
        }
        if self.read_address.val() == 0x20 {
            self.answer.d.next = self.bound.val();
        }
        if self.read_address.val() == 0x24 {
            self.answer.d.next = self.base.q.val();
        }
        if self.read_address.val() == 0x28 {
            self.answer.d.next = self.cycles.q.val().get_bits::<32>(0);
        }
        if self.read_address.val() == 0x2C {
            self.answer.d.next = bit_cast::<32, 16>(self.cycles.q.val().get_bits::<16>(32));
        }
        if self.read_address.val() == 0x30 {
            self.answer.d.next = bit_cast::<32, 16>(self.select.q.val());
        }
        if self.read_address.val() == 0x34 {
            self.answer.d.next = self.counter_value.val().get_bits::<32>(0);
        }
        if self.read_address.val() == 0x38 {
            self.answer.d.next = bit_cast::<32, 16>(self.counter_value.val().get_bits::<16>(32));
        }
        for c in 0..CUBES {
            if self.read_address.val() == (4 * c + 64).to_bits() {
                self.answer.d.next = self.count[c].q.val();
            }
            if self.read_address.val() == (4 * c + 128).to_bits() {
                self.answer.d.next = self.cube_status[c].val();
            }
        }
        for p in 0..TOTAL {
            if self.read_address.val() == (4 * p + 256).to_bits() {
                self.answer.d.next = self.pe_status[p].val();
            }
        }
        self.read_data.next = self.answer.q.val();
    }
}
