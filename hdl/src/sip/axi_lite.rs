//! AXI4-Lite slave of the control port: turns bus transfers into register reads and writes.
//!
//! ```text
//!  AW, W --> write pulse, address, data --> B        AR --> address --(2 cycles)--> data --> R
//! ```
//!
//! One write and one read at a time. Only whole 32-bit writes are done; a write with strobes missing is answered with SLVERR. Latency: a write is answered
//! 1 cycle after both its halves, a read 3 cycles after its address.

use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct AxiLite {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s_axil_awaddr: Signal<In, Bits<12>>,
    pub s_axil_awvalid: Signal<In, Bit>,
    pub s_axil_awready: Signal<Out, Bit>,
    pub s_axil_wdata: Signal<In, Bits<32>>,
    pub s_axil_wstrb: Signal<In, Bits<4>>,
    pub s_axil_wvalid: Signal<In, Bit>,
    pub s_axil_wready: Signal<Out, Bit>,
    pub s_axil_bresp: Signal<Out, Bits<2>>,
    pub s_axil_bvalid: Signal<Out, Bit>,
    pub s_axil_bready: Signal<In, Bit>,
    pub s_axil_araddr: Signal<In, Bits<12>>,
    pub s_axil_arvalid: Signal<In, Bit>,
    pub s_axil_arready: Signal<Out, Bit>,
    pub s_axil_rdata: Signal<Out, Bits<32>>,
    pub s_axil_rresp: Signal<Out, Bits<2>>,
    pub s_axil_rvalid: Signal<Out, Bit>,
    pub s_axil_rready: Signal<In, Bit>,
    pub write: Signal<Out, Bit>,
    pub write_address: Signal<Out, Bits<12>>,
    pub write_data: Signal<Out, Bits<32>>,
    pub read_address: Signal<Out, Bits<12>>,
    pub read_data: Signal<In, Bits<32>>,
    have_address: DFF<Bit>,
    have_data: DFF<Bit>,
    address: DFF<Bits<12>>,
    data: DFF<Bits<32>>,
    strobe: DFF<Bits<4>>,
    answer: DFF<Bit>,
    answer_code: DFF<Bits<2>>,
    reading: DFF<Bits<2>>,
    read_from: DFF<Bits<12>>,
    read_answer: DFF<Bit>,
    read_word: DFF<Bits<32>>,
    both: Signal<Local, Bit>,
}

impl Logic for AxiLite {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            have_address,
            have_data,
            address,
            data,
            strobe,
            answer,
            answer_code,
            reading,
            read_from,
            read_answer,
            read_word
        );
        // ---- writes: both halves, in any order
        self.s_axil_awready.next = !self.have_address.q.val();
        self.s_axil_wready.next = !self.have_data.q.val();
        if self.s_axil_awvalid.val() & !self.have_address.q.val() {
            self.have_address.d.next = true;
            self.address.d.next = self.s_axil_awaddr.val();
        }
        if self.s_axil_wvalid.val() & !self.have_data.q.val() {
            self.have_data.d.next = true;
            self.data.d.next = self.s_axil_wdata.val();
            self.strobe.d.next = self.s_axil_wstrb.val();
        }
        self.both.next = (self.have_address.q.val() & self.have_data.q.val()) & !self.answer.q.val();
        self.write.next = self.both.val() & self.strobe.q.val().all();
        self.write_address.next = self.address.q.val();
        self.write_data.next = self.data.q.val();
        if self.both.val() {
            self.answer.d.next = true;
            self.answer_code.d.next = 2.into();
            if self.strobe.q.val().all() {
                self.answer_code.d.next = 0.into();
            }
        }
        self.s_axil_bvalid.next = self.answer.q.val();
        self.s_axil_bresp.next = self.answer_code.q.val();
        if self.answer.q.val() & self.s_axil_bready.val() {
            self.answer.d.next = false;
            self.have_address.d.next = false;
            self.have_data.d.next = false;
        }
        // ---- reads: two cycles for the register to settle
        self.s_axil_arready.next = !self.reading.q.val().any() & !self.read_answer.q.val();
        self.read_address.next = self.read_from.q.val();
        if self.s_axil_arvalid.val() & (!self.reading.q.val().any() & !self.read_answer.q.val()) {
            self.read_from.d.next = self.s_axil_araddr.val();
            self.reading.d.next = 2.into();
        }
        if self.reading.q.val().any() {
            self.reading.d.next = self.reading.q.val() - 1;
            if self.reading.q.val() == 1 {
                self.read_answer.d.next = true;
                self.read_word.d.next = self.read_data.val();
            }
        }
        self.s_axil_rvalid.next = self.read_answer.q.val();
        self.s_axil_rdata.next = self.read_word.q.val();
        self.s_axil_rresp.next = 0.into();
        if self.read_answer.q.val() & self.s_axil_rready.val() {
            self.read_answer.d.next = false;
        }
        if self.reset.val() {
            self.have_address.d.next = false;
            self.have_data.d.next = false;
            self.answer.d.next = false;
            self.reading.d.next = 0.into();
            self.read_answer.d.next = false;
        }
    }
}
