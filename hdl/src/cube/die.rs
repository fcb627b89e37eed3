//! The CUBE: PES processing elements, shared SRAM, distributor, multicast reader, output arbiter.
//!
//! ```text
//!            +---------------------------------------------------------------+
//!  host ---->| SRAM <-- outputs (arbiter) <-------------------- PE 0 .. PES-1 |--> memory channels
//!            |   |--> distributor --> commands --------------->               |
//!            |   \--> multicast reader --> Q tiles, row tables >               |--> links to the neighbour CUBEs
//!            +---------------------------------------------------------------+
//! ```
//!
//! The PEs of a CUBE are connected by PE_IPCQ links 0 .. log2(PES) - 1 (latency 1); the next links lead to the same PE of the neighbour CUBEs (latency
//! `LATENCY`). Two or eight PEs.
//!
//! The SRAM's read port serves commands before multicast before the host; its write port outputs before the host. A host access waits in a register, one at a
//! time: a write a cycle, a read in four.

use rust_hdl::prelude::*;

use super::arbiter::OutputArbiter;
use super::distributor::Distributor;
use super::multicast::MulticastReader;
use crate::memory::{Link, Sram};
use crate::pe::ProcessingElement;

#[derive(LogicBlock)]
pub struct Cube<
    const ROWS: usize,
    const BEAT: usize,
    const MASKS: usize,
    const TILE_BITS: usize,
    const TILES: usize,
    const O_BITS: usize,
    const ROW_BITS: usize,
    const LINKS: usize,
    const PES: usize,
    const SRAM_BITS: usize,
    const LATENCY: usize,
> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Global index of PE 0.
    pub first_pe: Signal<In, Bits<8>>,
    pub pe_count: Signal<In, Bits<8>>,
    pub channel_beats: Signal<In, Bits<32>>,
    pub timeout: Signal<In, Bits<32>>,
    pub command_base: Signal<In, Bits<32>>,
    pub command_count: Signal<In, Bits<32>>,
    pub start: Signal<In, Bit>,
    pub running: Signal<In, Bit>,
    pub abort: Signal<In, Bit>,
    /// The list is delivered and every PE is idle.
    pub done: Signal<Out, Bit>,
    /// This CUBE or a PE of it has failed.
    pub failed: Signal<Out, Bit>,
    pub status: Signal<Out, Bits<32>>,
    pub pe_status: [Signal<Out, Bits<32>>; PES],
    pub channel_request_valid: [Signal<Out, Bit>; PES],
    pub channel_request_ready: [Signal<In, Bit>; PES],
    pub channel_request_write: [Signal<Out, Bit>; PES],
    pub channel_request_address: [Signal<Out, Bits<32>>; PES],
    pub channel_request_beats: [Signal<Out, Bits<16>>; PES],
    pub channel_write_data: [Signal<Out, Bits<128>>; PES],
    pub channel_write_strobe: [Signal<Out, Bits<16>>; PES],
    pub channel_read_valid: [Signal<In, Bit>; PES],
    pub channel_read_ready: [Signal<Out, Bit>; PES],
    pub channel_read_data: [Signal<In, Bits<128>>; PES],
    /// Beats on their way to other CUBEs, delayed by the link.
    pub link_valid: [Signal<Out, Bits<LINKS>>; PES],
    pub link_data: [Signal<Out, Bits<BEAT>>; PES],
    pub link_credit: [Signal<Out, Bits<LINKS>>; PES],
    /// From the same PE of the first neighbour CUBE.
    pub cross_a_valid: [Signal<In, Bit>; PES],
    pub cross_a_data: [Signal<In, Bits<BEAT>>; PES],
    pub cross_a_credit: [Signal<In, Bit>; PES],
    /// From the second one.
    pub cross_b_valid: [Signal<In, Bit>; PES],
    pub cross_b_data: [Signal<In, Bits<BEAT>>; PES],
    pub cross_b_credit: [Signal<In, Bit>; PES],
    /// One beat of a host access.
    pub host_valid: Signal<In, Bit>,
    pub host_ready: Signal<Out, Bit>,
    pub host_write: Signal<In, Bit>,
    /// Channel memory of `host_pe`; otherwise shared SRAM.
    pub host_channel: Signal<In, Bit>,
    pub host_pe: Signal<In, Bits<4>>,
    /// SRAM word or channel beat.
    pub host_address: Signal<In, Bits<32>>,
    pub host_data: Signal<In, Bits<128>>,
    pub host_strobe: Signal<In, Bits<16>>,
    pub host_read_valid: Signal<Out, Bit>,
    pub host_read_data: Signal<Out, Bits<128>>,
    pub counter_select: Signal<In, Bits<8>>,
    pub counter_pe: Signal<In, Bits<4>>,
    pub counter_value: Signal<Out, Bits<48>>,
    sram_size: Constant<Bits<32>>,
    sram: Sram<SRAM_BITS>,
    distributor: Distributor<PES>,
    multicast: MulticastReader<PES>,
    arbiter: OutputArbiter<PES>,
    pe: Vec<ProcessingElement<ROWS, BEAT, MASKS, TILE_BITS, TILES, O_BITS, ROW_BITS, LINKS>>,
    link: [Link<BEAT, LINKS, LATENCY>; PES],
    reset1: DFF<Bit>,
    ready_bits: Signal<Local, Bits<PES>>,
    idle_bits: Signal<Local, Bits<PES>>,
    all_idle: Signal<Local, Bit>,
    any_failed: Signal<Local, Bit>,
    any_progress: Signal<Local, Bit>,
    bit: Signal<Local, Bit>,
    settled: DFF<Bits<2>>,
    progress: DFF<Bit>,
    valid: Signal<Local, Bits<LINKS>>,
    credit: Signal<Local, Bits<LINKS>>,
    read_address: Signal<Local, Bits<SRAM_BITS>>,
    host: DFF<Bit>,
    host_writes: DFF<Bit>,
    host_to_channel: DFF<Bit>,
    host_to: DFF<Bits<4>>,
    host_at: DFF<Bits<32>>,
    host_word: DFF<Bits<128>>,
    host_bytes: DFF<Bits<16>>,
    host_taken: Signal<Local, Bit>,
    host_sram_read: Signal<Local, Bit>,
    host_enables: Signal<Local, Bits<4>>,
    sram_answer: DFF<Bit>,
    answer: DFF<Bit>,
    answer_data: DFF<Bits<128>>,
    chosen_counter: DFF<Bits<48>>,
}

impl<
    const ROWS: usize,
    const BEAT: usize,
    const MASKS: usize,
    const TILE_BITS: usize,
    const TILES: usize,
    const O_BITS: usize,
    const ROW_BITS: usize,
    const LINKS: usize,
    const PES: usize,
    const SRAM_BITS: usize,
    const LATENCY: usize,
> Default for Cube<ROWS, BEAT, MASKS, TILE_BITS, TILES, O_BITS, ROW_BITS, LINKS, PES, SRAM_BITS, LATENCY>
{
    fn default() -> Self {
        assert!((PES == 2 || PES == 8) && LINKS == 5, "a CUBE has two or eight PEs, and five links each");
        Self {
            clock: Default::default(),
            reset: Default::default(),
            first_pe: Default::default(),
            pe_count: Default::default(),
            channel_beats: Default::default(),
            timeout: Default::default(),
            command_base: Default::default(),
            command_count: Default::default(),
            start: Default::default(),
            running: Default::default(),
            abort: Default::default(),
            done: Default::default(),
            failed: Default::default(),
            status: Default::default(),
            pe_status: std::array::from_fn(|_| Default::default()),
            channel_request_valid: std::array::from_fn(|_| Default::default()),
            channel_request_ready: std::array::from_fn(|_| Default::default()),
            channel_request_write: std::array::from_fn(|_| Default::default()),
            channel_request_address: std::array::from_fn(|_| Default::default()),
            channel_request_beats: std::array::from_fn(|_| Default::default()),
            channel_write_data: std::array::from_fn(|_| Default::default()),
            channel_write_strobe: std::array::from_fn(|_| Default::default()),
            channel_read_valid: std::array::from_fn(|_| Default::default()),
            channel_read_ready: std::array::from_fn(|_| Default::default()),
            channel_read_data: std::array::from_fn(|_| Default::default()),
            link_valid: std::array::from_fn(|_| Default::default()),
            link_data: std::array::from_fn(|_| Default::default()),
            link_credit: std::array::from_fn(|_| Default::default()),
            cross_a_valid: std::array::from_fn(|_| Default::default()),
            cross_a_data: std::array::from_fn(|_| Default::default()),
            cross_a_credit: std::array::from_fn(|_| Default::default()),
            cross_b_valid: std::array::from_fn(|_| Default::default()),
            cross_b_data: std::array::from_fn(|_| Default::default()),
            cross_b_credit: std::array::from_fn(|_| Default::default()),
            host_valid: Default::default(),
            host_ready: Default::default(),
            host_write: Default::default(),
            host_channel: Default::default(),
            host_pe: Default::default(),
            host_address: Default::default(),
            host_data: Default::default(),
            host_strobe: Default::default(),
            host_read_valid: Default::default(),
            host_read_data: Default::default(),
            counter_select: Default::default(),
            counter_pe: Default::default(),
            counter_value: Default::default(),
            sram_size: Constant::new(bits(1 << SRAM_BITS)),
            sram: Default::default(),
            distributor: Default::default(),
            multicast: Default::default(),
            arbiter: Default::default(),
            pe: (0..PES).map(|_| ProcessingElement::default()).collect(),
            link: std::array::from_fn(|_| Default::default()),
            reset1: Default::default(),
            ready_bits: Default::default(),
            idle_bits: Default::default(),
            all_idle: Default::default(),
            any_failed: Default::default(),
            any_progress: Default::default(),
            bit: Default::default(),
            settled: Default::default(),
            progress: Default::default(),
            valid: Default::default(),
            credit: Default::default(),
            read_address: Default::default(),
            host: Default::default(),
            host_writes: Default::default(),
            host_to_channel: Default::default(),
            host_to: Default::default(),
            host_at: Default::default(),
            host_word: Default::default(),
            host_bytes: Default::default(),
            host_taken: Default::default(),
            host_sram_read: Default::default(),
            host_enables: Default::default(),
            sram_answer: Default::default(),
            answer: Default::default(),
            answer_data: Default::default(),
            chosen_counter: Default::default(),
        }
    }
}

impl<
    const ROWS: usize,
    const BEAT: usize,
    const MASKS: usize,
    const TILE_BITS: usize,
    const TILES: usize,
    const O_BITS: usize,
    const ROW_BITS: usize,
    const LINKS: usize,
    const PES: usize,
    const SRAM_BITS: usize,
    const LATENCY: usize,
> Logic for Cube<ROWS, BEAT, MASKS, TILE_BITS, TILES, O_BITS, ROW_BITS, LINKS, PES, SRAM_BITS, LATENCY>
{
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            reset1,
            settled,
            progress,
            host,
            host_writes,
            host_to_channel,
            host_to,
            host_at,
            host_word,
            host_bytes,
            sram_answer,
            answer,
            answer_data,
            chosen_counter
        );
        self.reset1.d.next = self.reset.val();
        self.sram.clock.next = self.clock.val();
        self.distributor.clock.next = self.clock.val();
        self.multicast.clock.next = self.clock.val();
        self.arbiter.clock.next = self.clock.val();

        // ---- commands
        self.distributor.reset.next = self.reset1.q.val();
        self.distributor.start.next = self.start.val();
        self.distributor.abort.next = self.abort.val();
        self.distributor.base.next = self.command_base.val();
        self.distributor.count.next = self.command_count.val();
        self.distributor.sram_words.next = self.sram_size.val();
        self.distributor.timeout.next = self.timeout.val();
        self.distributor.progress.next = self.progress.q.val();
        self.ready_bits.next = 0.into();
        self.idle_bits.next = 0.into();
        self.all_idle.next = true;
        self.any_failed.next = self.distributor.failed.val();
        self.any_progress.next = false;
        self.chosen_counter.d.next = 0.into();
        for i in 0..PES {
            self.pe[i].clock.next = self.clock.val();
            self.pe[i].reset.next = self.reset.val();
            self.pe[i].pe_index.next = self.first_pe.val() + i.to_bits();
            self.pe[i].pe_count.next = self.pe_count.val();
            self.pe[i].sram_words.next = self.sram_size.val();
            self.pe[i].channel_beats.next = self.channel_beats.val();
            self.pe[i].timeout.next = self.timeout.val();
            self.pe[i].start.next = self.start.val();
            self.pe[i].running.next = self.running.val();
            self.pe[i].abort.next = self.abort.val();
            self.pe[i].command.next = self.distributor.command.val();
            self.pe[i].command_valid.next = self.distributor.command_valid.val().get_bit(i);
            self.bit.next = self.pe[i].command_ready.val();
            self.ready_bits.next = self.ready_bits.val().replace_bit(i, self.bit.val());
            self.bit.next = self.pe[i].idle.val();
            self.idle_bits.next = self.idle_bits.val().replace_bit(i, self.bit.val());
            self.all_idle.next = self.all_idle.val() & self.bit.val();
            self.any_failed.next = self.any_failed.val() | self.pe[i].failed.val();
            self.any_progress.next = self.any_progress.val() | self.pe[i].progress.val();
            self.pe_status[i].next = self.pe[i].status.val();
            self.pe[i].counter_select.next = self.counter_select.val();
            if self.counter_pe.val() == i.to_bits() {
                self.chosen_counter.d.next = self.pe[i].counter_value.val();
            }
        }
        self.counter_value.next = self.chosen_counter.q.val();
        self.progress.d.next = self.any_progress.val();
        self.distributor.command_ready.next = self.ready_bits.val();
        self.distributor.idle.next = self.idle_bits.val();
        self.status.next = self.distributor.status.val();
        self.failed.next = self.any_failed.val();
        // Completion: the last command reaches the PEs before their idle counts.
        self.settled.d.next = 0.into();
        if self.distributor.ended.val() & self.all_idle.val() {
            self.settled.d.next = self.settled.q.val();
            if !self.settled.q.val().all() {
                self.settled.d.next = self.settled.q.val() + 1;
            }
        }
        if self.start.val() {
            self.settled.d.next = 0.into();
        }
        self.done.next = self.settled.q.val().all();

        // ---- multicast of Q tiles and row tables
        self.multicast.reset.next = self.reset1.q.val();
        for i in 0..PES {
            self.multicast.fetch_valid[i].next = self.pe[i].fetch_valid.val();
            self.multicast.fetch[i].next = self.pe[i].fetch.val();
            self.multicast.fetch_finished[i].next = self.pe[i].fetch_finished.val();
            self.pe[i].fetch_done.next = self.multicast.fetch_done.val().get_bit(i);
            self.pe[i].multicast_valid.next = self.multicast.valid.val();
            self.pe[i].multicast_take.next = self.multicast.take.val().get_bit(i);
            self.pe[i].multicast_data.next = self.multicast.data.val();
        }

        // ---- SRAM read port: commands, then multicast, then the host
        self.host_sram_read.next = self.host.q.val() & (!self.host_writes.q.val() & !self.host_to_channel.q.val());
        self.read_address.next = self.host_at.q.val().get_bits::<SRAM_BITS>(0);
        self.distributor.read_granted.next = self.distributor.read.val();
        self.multicast.read_granted.next = self.multicast.read.val() & !self.distributor.read.val();
        if self.multicast.read.val() {
            self.read_address.next = self.multicast.read_address.val().get_bits::<SRAM_BITS>(0);
        }
        if self.distributor.read.val() {
            self.read_address.next = self.distributor.read_address.val().get_bits::<SRAM_BITS>(0);
        }
        self.sram.read_address.next = self.read_address.val();
        self.distributor.read_data.next = self.sram.read_data.val();
        self.multicast.read_data.next = self.sram.read_data.val();

        // ---- SRAM write port: outputs, then the host
        for i in 0..PES {
            self.arbiter.valid[i].next = self.pe[i].store_valid.val();
            self.arbiter.address[i].next = self.pe[i].store_address.val();
            self.arbiter.data[i].next = self.pe[i].store_data.val();
            self.arbiter.enable[i].next = self.pe[i].store_enable.val();
            self.pe[i].store_ready.next = self.arbiter.grant.val().get_bit(i);
        }
        self.host_enables.next = 0.into();
        for i in 0..4 {
            if self.host_bytes.q.val().get_bit(4 * i) {
                self.host_enables.next = self.host_enables.val().replace_bit(i, true);
            }
        }
        self.sram.write_enable.next = 0.into();
        self.sram.write_address.next = self.host_at.q.val().get_bits::<SRAM_BITS>(0);
        self.sram.write_data.next = self.host_word.q.val();
        if self.arbiter.write.val() {
            self.sram.write_enable.next = self.arbiter.write_enable.val();
            self.sram.write_address.next = self.arbiter.write_address.val().get_bits::<SRAM_BITS>(0);
            self.sram.write_data.next = self.arbiter.write_data.val();
        } else if self.host.q.val() & (self.host_writes.q.val() & !self.host_to_channel.q.val()) {
            self.sram.write_enable.next = self.host_enables.val();
        }

        // ---- host: one access in a register, served by SRAM or by the PE
        self.host_taken.next = false;
        self.sram_answer.d.next = false;
        self.answer.d.next = self.sram_answer.q.val();
        self.answer_data.d.next = self.sram.read_data.val();
        if self.host_sram_read.val() & (!self.distributor.read.val() & !self.multicast.read.val()) {
            self.host_taken.next = true;
            self.sram_answer.d.next = true;
        }
        if (self.host.q.val() & (self.host_writes.q.val() & !self.host_to_channel.q.val())) & !self.arbiter.write.val() {
            self.host_taken.next = true;
        }
        for i in 0..PES {
            self.pe[i].host_valid.next = (self.host.q.val() & self.host_to_channel.q.val()) & (self.host_to.q.val() == i.to_bits());
            self.pe[i].host_write.next = self.host_writes.q.val();
            self.pe[i].host_address.next = self.host_at.q.val();
            self.pe[i].host_data.next = self.host_word.q.val();
            self.pe[i].host_strobe.next = self.host_bytes.q.val();
            if (self.host.q.val() & self.host_to_channel.q.val()) & (self.host_to.q.val() == i.to_bits()) {
                self.host_taken.next = self.pe[i].host_ready.val();
            }
            if self.pe[i].host_read_valid.val() {
                self.answer.d.next = true;
                self.answer_data.d.next = self.pe[i].host_read_data.val();
            }
        }
        self.host_ready.next = !self.host.q.val() | self.host_taken.val();
        if self.host_taken.val() {
            self.host.d.next = false;
        }
        if self.host_valid.val() & (!self.host.q.val() | self.host_taken.val()) {
            self.host.d.next = true;
            self.host_writes.d.next = self.host_write.val();
            self.host_to_channel.d.next = self.host_channel.val();
            self.host_to.d.next = self.host_pe.val();
            self.host_at.d.next = self.host_address.val();
            self.host_word.d.next = self.host_data.val();
            self.host_bytes.d.next = self.host_strobe.val();
        }
        self.host_read_valid.next = self.answer.q.val();
        self.host_read_data.next = self.answer_data.q.val();

        // ---- memory channels
        for i in 0..PES {
            self.channel_request_valid[i].next = self.pe[i].channel_request_valid.val();
            self.pe[i].channel_request_ready.next = self.channel_request_ready[i].val();
            self.channel_request_write[i].next = self.pe[i].channel_request_write.val();
            self.channel_request_address[i].next = self.pe[i].channel_request_address.val();
            self.channel_request_beats[i].next = self.pe[i].channel_request_beats.val();
            self.channel_write_data[i].next = self.pe[i].channel_write_data.val();
            self.channel_write_strobe[i].next = self.pe[i].channel_write_strobe.val();
            self.pe[i].channel_read_valid.next = self.channel_read_valid[i].val();
            self.channel_read_ready[i].next = self.pe[i].channel_read_ready.val();
            self.pe[i].channel_read_data.next = self.channel_read_data[i].val();
        }

        // ---- links: partner of bit k inside the CUBE, then the neighbours
        for i in 0..PES {
            self.link[i].clock.next = self.clock.val();
            self.link[i].reset.next = self.reset1.q.val();
            self.link[i].in_valid.next = self.pe[i].send_valid.val();
            self.link[i].in_data.next = self.pe[i].send_data.val();
            self.link[i].in_credit.next = self.pe[i].credit_out.val();
            self.link_valid[i].next = self.link[i].out_valid.val();
            self.link_data[i].next = self.link[i].out_data.val();
            self.link_credit[i].next = self.link[i].out_credit.val();
            self.pe[i].receive_valid.next = 0.into();
            self.pe[i].credit_in.next = 0.into();
            self.pe[i].receive_data[0].next = 0.into();
            self.pe[i].receive_data[1].next = 0.into();
            self.pe[i].receive_data[2].next = 0.into();
            self.pe[i].receive_data[3].next = 0.into();
            self.pe[i].receive_data[4].next = 0.into();
        }
        // two PEs: link 0 inside, link 1 to the neighbour
        for i in 0..(2 * usize::from(PES == 2)) {
            self.valid.next = 0.into();
            self.credit.next = 0.into();
            self.bit.next = self.pe[i + 1 - 2 * (i % 2)].send_valid.val().get_bit(0);
            self.valid.next = self.valid.val().replace_bit(0, self.bit.val());
            self.bit.next = self.pe[i + 1 - 2 * (i % 2)].credit_out.val().get_bit(0);
            self.credit.next = self.credit.val().replace_bit(0, self.bit.val());
            self.bit.next = self.cross_a_valid[i].val();
            self.valid.next = self.valid.val().replace_bit(1, self.bit.val());
            self.bit.next = self.cross_a_credit[i].val();
            self.credit.next = self.credit.val().replace_bit(1, self.bit.val());
            self.pe[i].receive_valid.next = self.valid.val();
            self.pe[i].credit_in.next = self.credit.val();
            self.pe[i].receive_data[0].next = self.pe[i + 1 - 2 * (i % 2)].send_data.val();
            self.pe[i].receive_data[1].next = self.cross_a_data[i].val();
        }
        // eight PEs: links 0 to 2 inside, 3 and 4 to the neighbours
        for i in 0..(8 * usize::from(PES == 8)) {
            self.valid.next = 0.into();
            self.credit.next = 0.into();
            self.bit.next = self.pe[i + 1 - 2 * (i % 2)].send_valid.val().get_bit(0);
            self.valid.next = self.valid.val().replace_bit(0, self.bit.val());
            self.bit.next = self.pe[i + 2 - 4 * ((i / 2) % 2)].send_valid.val().get_bit(1);
            self.valid.next = self.valid.val().replace_bit(1, self.bit.val());
            self.bit.next = self.pe[i + 4 - 8 * ((i / 4) % 2)].send_valid.val().get_bit(2);
            self.valid.next = self.valid.val().replace_bit(2, self.bit.val());
            self.bit.next = self.cross_a_valid[i].val();
            self.valid.next = self.valid.val().replace_bit(3, self.bit.val());
            self.bit.next = self.cross_b_valid[i].val();
            self.valid.next = self.valid.val().replace_bit(4, self.bit.val());
            self.bit.next = self.pe[i + 1 - 2 * (i % 2)].credit_out.val().get_bit(0);
            self.credit.next = self.credit.val().replace_bit(0, self.bit.val());
            self.bit.next = self.pe[i + 2 - 4 * ((i / 2) % 2)].credit_out.val().get_bit(1);
            self.credit.next = self.credit.val().replace_bit(1, self.bit.val());
            self.bit.next = self.pe[i + 4 - 8 * ((i / 4) % 2)].credit_out.val().get_bit(2);
            self.credit.next = self.credit.val().replace_bit(2, self.bit.val());
            self.bit.next = self.cross_a_credit[i].val();
            self.credit.next = self.credit.val().replace_bit(3, self.bit.val());
            self.bit.next = self.cross_b_credit[i].val();
            self.credit.next = self.credit.val().replace_bit(4, self.bit.val());
            self.pe[i].receive_valid.next = self.valid.val();
            self.pe[i].credit_in.next = self.credit.val();
            self.pe[i].receive_data[0].next = self.pe[i + 1 - 2 * (i % 2)].send_data.val();
            self.pe[i].receive_data[1].next = self.pe[i + 2 - 4 * ((i / 2) % 2)].send_data.val();
            self.pe[i].receive_data[2].next = self.pe[i + 4 - 8 * ((i / 4) % 2)].send_data.val();
            self.pe[i].receive_data[3].next = self.cross_a_data[i].val();
            self.pe[i].receive_data[4].next = self.cross_b_data[i].val();
        }
        if self.reset1.q.val() {
            self.host.d.next = false;
            self.sram_answer.d.next = false;
            self.answer.d.next = false;
        }
    }
}
