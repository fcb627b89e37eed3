//! PE_DMA: streams halves of pages (K or V) from the memory channel into tile buffers, and gives the host access to the channel between launches.
//!
//! ```text
//!  load (K or V, buffer, address) --> request --> channel --> beats --> tile write port, load_done
//!  host access ---------------------/                     \-> host_read
//! ```
//!
//! One beat a cycle. Up to four loads are outstanding, so that the channel's latency is hidden. A load is 2d beats.
//!
//! Beats that were on their way at a reset are dropped when they come; until then no new request leaves.

use rust_hdl::prelude::*;

use crate::memory::Fifo;

#[derive(LogicBlock, Default)]
pub struct Dma {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// A launch runs: the host waits.
    pub running: Signal<In, Bit>,
    pub beats: Signal<In, Bits<16>>,
    pub load_valid: Signal<In, Bit>,
    pub load_ready: Signal<Out, Bit>,
    pub load_v: Signal<In, Bit>,
    pub load_buffer: Signal<In, Bit>,
    pub load_address: Signal<In, Bits<32>>,
    pub k_done: Signal<Out, Bit>,
    pub v_done: Signal<Out, Bit>,
    /// Loads are outstanding.
    pub busy: Signal<Out, Bit>,
    /// A beat arrived for a load.
    pub beat: Signal<Out, Bit>,
    // tile write port
    pub kv_write: Signal<Out, Bit>,
    pub kv_write_v: Signal<Out, Bit>,
    pub kv_write_buffer: Signal<Out, Bit>,
    pub kv_write_address: Signal<Out, Bits<8>>,
    pub kv_write_data: Signal<Out, Bits<128>>,
    // channel
    pub channel_request_valid: Signal<Out, Bit>,
    pub channel_request_ready: Signal<In, Bit>,
    pub channel_request_write: Signal<Out, Bit>,
    pub channel_request_address: Signal<Out, Bits<32>>,
    pub channel_request_beats: Signal<Out, Bits<16>>,
    pub channel_write_data: Signal<Out, Bits<128>>,
    pub channel_write_strobe: Signal<Out, Bits<16>>,
    pub channel_read_valid: Signal<In, Bit>,
    pub channel_read_ready: Signal<Out, Bit>,
    pub channel_read_data: Signal<In, Bits<128>>,
    // host
    pub host_valid: Signal<In, Bit>,
    pub host_ready: Signal<Out, Bit>,
    pub host_write: Signal<In, Bit>,
    pub host_address: Signal<In, Bits<32>>,
    pub host_data: Signal<In, Bits<128>>,
    pub host_strobe: Signal<In, Bits<16>>,
    pub host_read_valid: Signal<Out, Bit>,
    pub host_read_data: Signal<Out, Bits<128>>,
    // {v, buffer} of the loads on their way
    loads: Fifo<2, 2, 3>,
    request: DFF<Bit>,
    request_write: DFF<Bit>,
    request_address: DFF<Bits<32>>,
    request_beats: DFF<Bits<16>>,
    write_data: DFF<Bits<128>>,
    write_strobe: DFF<Bits<16>>,
    request_free: Signal<Local, Bit>,
    take_load: Signal<Local, Bit>,
    take_host: Signal<Local, Bit>,
    expected: DFF<Bits<20>>,
    stale: DFF<Bits<20>>,
    added: Signal<Local, Bits<20>>,
    drained: Signal<Local, Bit>,
    read_ready: Signal<Local, Bit>,
    taken: Signal<Local, Bit>,
    for_load: Signal<Local, Bit>,
    host_reads: DFF<Bit>,
    position: DFF<Bits<16>>,
    next_position: Signal<Local, Bits<16>>,
    last: Signal<Local, Bit>,
    descriptor: Signal<Local, Bits<3>>,
    k_end: DFF<Bit>,
    v_end: DFF<Bit>,
    write1: DFF<Bit>,
    write_v1: DFF<Bit>,
    write_buffer1: DFF<Bit>,
    write_address1: DFF<Bits<8>>,
    write_data1: DFF<Bits<128>>,
    host_answer: DFF<Bit>,
    host_answer_data: DFF<Bits<128>>,
}

impl Logic for Dma {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            request,
            request_write,
            request_address,
            request_beats,
            write_data,
            write_strobe,
            expected,
            stale,
            host_reads,
            position,
            k_end,
            v_end,
            write1,
            write_v1,
            write_buffer1,
            write_address1,
            write_data1,
            host_answer,
            host_answer_data
        );
        self.loads.clock.next = self.clock.val();
        self.loads.reset.next = self.reset.val();
        // ---- requests
        self.drained.next = !self.stale.q.val().any();
        self.request_free.next = (!self.request.q.val() | self.channel_request_ready.val()) & self.drained.val();
        self.take_load.next = (self.load_valid.val() & self.loads.in_ready.val()) & (self.request_free.val() & !self.host_reads.q.val());
        self.load_ready.next = self.loads.in_ready.val() & (self.request_free.val() & !self.host_reads.q.val());
        self.take_host.next = (self.host_valid.val() & !self.running.val())
            & ((self.request_free.val() & !self.host_reads.q.val()) & !self.loads.out_valid.val());
        self.host_ready.next = !self.running.val() & ((self.request_free.val() & !self.host_reads.q.val()) & !self.loads.out_valid.val());
        if self.request.q.val() & self.channel_request_ready.val() {
            self.request.d.next = false;
        }
        self.loads.in_valid.next = self.take_load.val();
        self.loads.in_data.next = 0.into();
        if self.load_v.val() {
            self.loads.in_data.next = 2.into();
            if self.load_buffer.val() {
                self.loads.in_data.next = 3.into();
            }
        } else if self.load_buffer.val() {
            self.loads.in_data.next = 1.into();
        }
        self.added.next = 0.into();
        if self.take_load.val() {
            self.request.d.next = true;
            self.request_write.d.next = false;
            self.request_address.d.next = self.load_address.val();
            self.request_beats.d.next = self.beats.val();
            self.added.next = bit_cast::<20, 16>(self.beats.val());
        } else if self.take_host.val() {
            self.request.d.next = true;
            self.request_write.d.next = self.host_write.val();
            self.request_address.d.next = self.host_address.val();
            self.request_beats.d.next = 1.into();
            self.write_data.d.next = self.host_data.val();
            self.write_strobe.d.next = self.host_strobe.val();
            if !self.host_write.val() {
                self.host_reads.d.next = true;
                self.added.next = 1.into();
            }
        }
        self.channel_request_valid.next = self.request.q.val();
        self.channel_request_write.next = self.request_write.q.val();
        self.channel_request_address.next = self.request_address.q.val();
        self.channel_request_beats.next = self.request_beats.q.val();
        self.channel_write_data.next = self.write_data.q.val();
        self.channel_write_strobe.next = self.write_strobe.q.val();
        // ---- answers
        self.for_load.next = self.loads.out_valid.val() & self.drained.val();
        self.read_ready.next = ((self.loads.out_valid.val() | self.host_reads.q.val()) | !self.drained.val()) & !self.reset.val();
        self.channel_read_ready.next = self.read_ready.val();
        self.taken.next = self.channel_read_valid.val() & self.read_ready.val();
        self.expected.d.next = self.expected.q.val() + self.added.val();
        if self.taken.val() {
            self.expected.d.next = (self.expected.q.val() + self.added.val()) - 1;
            if !self.drained.val() {
                self.stale.d.next = self.stale.q.val() - 1;
            }
        }
        self.descriptor.next = bit_cast::<3, 2>(self.loads.out_data.val());
        self.next_position.next = self.position.q.val() + 1;
        self.last.next = self.next_position.val() == self.beats.val();
        self.write1.d.next = self.taken.val() & self.for_load.val();
        self.write_v1.d.next = self.descriptor.val().get_bit(1);
        self.write_buffer1.d.next = self.descriptor.val().get_bit(0);
        self.write_address1.d.next = self.position.q.val().get_bits::<8>(0);
        self.write_data1.d.next = self.channel_read_data.val();
        self.loads.out_ready.next = false;
        self.k_end.d.next = false;
        self.v_end.d.next = false;
        if self.taken.val() & self.for_load.val() {
            self.position.d.next = self.next_position.val();
            if self.last.val() {
                self.position.d.next = 0.into();
                self.loads.out_ready.next = true;
                self.k_end.d.next = !self.descriptor.val().get_bit(1);
                self.v_end.d.next = self.descriptor.val().get_bit(1);
            }
        }
        self.host_answer.d.next = (self.taken.val() & self.drained.val()) & self.host_reads.q.val();
        self.host_answer_data.d.next = self.channel_read_data.val();
        if (self.taken.val() & self.drained.val()) & self.host_reads.q.val() {
            self.host_reads.d.next = false;
        }
        self.host_read_valid.next = self.host_answer.q.val();
        self.host_read_data.next = self.host_answer_data.q.val();
        self.kv_write.next = self.write1.q.val();
        self.kv_write_v.next = self.write_v1.q.val();
        self.kv_write_buffer.next = self.write_buffer1.q.val();
        self.kv_write_address.next = self.write_address1.q.val();
        self.kv_write_data.next = self.write_data1.q.val();
        self.k_done.next = self.k_end.q.val();
        self.v_done.next = self.v_end.q.val();
        self.busy.next = self.loads.out_valid.val() | self.request.q.val();
        self.beat.next = self.write1.q.val();
        if self.reset.val() {
            self.position.d.next = 0.into();
            self.host_reads.d.next = false;
            // A request that was not taken yet is withdrawn with its beats.
            self.request.d.next = false;
            self.stale.d.next = self.expected.q.val();
            self.expected.d.next = self.expected.q.val();
            if self.request.q.val() & (!self.channel_request_ready.val() & !self.request_write.q.val()) {
                self.stale.d.next = self.expected.q.val() - bit_cast::<20, 16>(self.request_beats.q.val());
                self.expected.d.next = self.expected.q.val() - bit_cast::<20, 16>(self.request_beats.q.val());
            }
        }
    }
}
