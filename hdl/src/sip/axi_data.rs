//! AXI4 slave of the data port: turns bursts into host accesses of one beat each.
//!
//! ```text
//!  AW, W ... W --> access, access, ... --> B        AR --> access --> R, access --> R, ...
//!
//!  idle --> write --> answer --> idle        idle --> ask --> wait --> read answer --> ask ... --> idle
//! ```
//!
//! 128-bit data, INCR bursts of 1 to 256 beats of full width, ids echoed, one burst at a time. SLVERR: another size or burst kind, an address outside memory, a
//! CUBE or PE that does not exist, or a write to SRAM that splits a 32-bit word; such beats are dropped (reads give 0) and the burst goes on.
//!
//! A write beat a cycle, a read beat in about six.

use rust_hdl::prelude::*;

/// What the data port does.
#[derive(Copy, Clone, PartialEq, Debug, LogicState)]
pub enum AxiDataState {
    Idle,
    Write,
    WriteAnswer,
    Ask,
    Wait,
    ReadAnswer,
}

#[derive(LogicBlock)]
pub struct AxiData<const CUBES: usize, const PES: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub channel_beats: Signal<In, Bits<32>>,
    pub sram_words: Signal<In, Bits<32>>,
    pub s_axi_awid: Signal<In, Bits<4>>,
    pub s_axi_awaddr: Signal<In, Bits<40>>,
    pub s_axi_awlen: Signal<In, Bits<8>>,
    pub s_axi_awsize: Signal<In, Bits<3>>,
    pub s_axi_awburst: Signal<In, Bits<2>>,
    pub s_axi_awvalid: Signal<In, Bit>,
    pub s_axi_awready: Signal<Out, Bit>,
    pub s_axi_wdata: Signal<In, Bits<128>>,
    pub s_axi_wstrb: Signal<In, Bits<16>>,
    pub s_axi_wlast: Signal<In, Bit>,
    pub s_axi_wvalid: Signal<In, Bit>,
    pub s_axi_wready: Signal<Out, Bit>,
    pub s_axi_bid: Signal<Out, Bits<4>>,
    pub s_axi_bresp: Signal<Out, Bits<2>>,
    pub s_axi_bvalid: Signal<Out, Bit>,
    pub s_axi_bready: Signal<In, Bit>,
    pub s_axi_arid: Signal<In, Bits<4>>,
    pub s_axi_araddr: Signal<In, Bits<40>>,
    pub s_axi_arlen: Signal<In, Bits<8>>,
    pub s_axi_arsize: Signal<In, Bits<3>>,
    pub s_axi_arburst: Signal<In, Bits<2>>,
    pub s_axi_arvalid: Signal<In, Bit>,
    pub s_axi_arready: Signal<Out, Bit>,
    pub s_axi_rid: Signal<Out, Bits<4>>,
    pub s_axi_rdata: Signal<Out, Bits<128>>,
    pub s_axi_rresp: Signal<Out, Bits<2>>,
    pub s_axi_rlast: Signal<Out, Bit>,
    pub s_axi_rvalid: Signal<Out, Bit>,
    pub s_axi_rready: Signal<In, Bit>,
    pub host_valid: [Signal<Out, Bit>; CUBES],
    pub host_ready: [Signal<In, Bit>; CUBES],
    pub host_write: Signal<Out, Bit>,
    pub host_channel: Signal<Out, Bit>,
    pub host_pe: Signal<Out, Bits<4>>,
    pub host_address: Signal<Out, Bits<32>>,
    pub host_data: Signal<Out, Bits<128>>,
    pub host_strobe: Signal<Out, Bits<16>>,
    pub host_read_valid: [Signal<In, Bit>; CUBES],
    pub host_read_data: [Signal<In, Bits<128>>; CUBES],
    pe_bits: Constant<Bits<4>>,
    pe_mask: Constant<Bits<7>>,
    cubes: Constant<Bits<7>>,
    pes: Constant<Bits<7>>,
    state: DFF<AxiDataState>,
    address: DFF<Bits<40>>,
    left: DFF<Bits<8>>,
    id: DFF<Bits<4>>,
    good: DFF<Bit>,
    failed: DFF<Bit>,
    word: DFF<Bits<128>>,
    word_code: DFF<Bits<2>>,
    channel: Signal<Local, Bit>,
    index: Signal<Local, Bits<7>>,
    cube: Signal<Local, Bits<7>>,
    beat: Signal<Local, Bits<32>>,
    legal: Signal<Local, Bit>,
    split: Signal<Local, Bit>,
    ready: Signal<Local, Bit>,
    lane: Signal<Local, Bits<4>>,
    use_bus: Signal<Local, Bit>,
    drained: Signal<Local, Bit>,
    reset1: DFF<Bit>,
    stop: Signal<Local, Bit>,
    arrived: Signal<Local, Bit>,
    arrived_data: Signal<Local, Bits<128>>,
    next_address: Signal<Local, Bits<40>>,
}

impl<const CUBES: usize, const PES: usize> Default for AxiData<CUBES, PES> {
    fn default() -> Self {
        Self {
            clock: Default::default(),
            reset: Default::default(),
            channel_beats: Default::default(),
            sram_words: Default::default(),
            s_axi_awid: Default::default(),
            s_axi_awaddr: Default::default(),
            s_axi_awlen: Default::default(),
            s_axi_awsize: Default::default(),
            s_axi_awburst: Default::default(),
            s_axi_awvalid: Default::default(),
            s_axi_awready: Default::default(),
            s_axi_wdata: Default::default(),
            s_axi_wstrb: Default::default(),
            s_axi_wlast: Default::default(),
            s_axi_wvalid: Default::default(),
            s_axi_wready: Default::default(),
            s_axi_bid: Default::default(),
            s_axi_bresp: Default::default(),
            s_axi_bvalid: Default::default(),
            s_axi_bready: Default::default(),
            s_axi_arid: Default::default(),
            s_axi_araddr: Default::default(),
            s_axi_arlen: Default::default(),
            s_axi_arsize: Default::default(),
            s_axi_arburst: Default::default(),
            s_axi_arvalid: Default::default(),
            s_axi_arready: Default::default(),
            s_axi_rid: Default::default(),
            s_axi_rdata: Default::default(),
            s_axi_rresp: Default::default(),
            s_axi_rlast: Default::default(),
            s_axi_rvalid: Default::default(),
            s_axi_rready: Default::default(),
            host_valid: std::array::from_fn(|_| Default::default()),
            host_ready: std::array::from_fn(|_| Default::default()),
            host_write: Default::default(),
            host_channel: Default::default(),
            host_pe: Default::default(),
            host_address: Default::default(),
            host_data: Default::default(),
            host_strobe: Default::default(),
            host_read_valid: std::array::from_fn(|_| Default::default()),
            host_read_data: std::array::from_fn(|_| Default::default()),
            pe_bits: Constant::new(bits(u64::from(PES.trailing_zeros()))),
            pe_mask: Constant::new(bits(PES as u64 - 1)),
            cubes: Constant::new(bits(CUBES as u64)),
            pes: Constant::new(bits((CUBES * PES) as u64)),
            state: Default::default(),
            address: Default::default(),
            left: Default::default(),
            id: Default::default(),
            good: Default::default(),
            failed: Default::default(),
            word: Default::default(),
            word_code: Default::default(),
            channel: Default::default(),
            index: Default::default(),
            cube: Default::default(),
            beat: Default::default(),
            legal: Default::default(),
            split: Default::default(),
            ready: Default::default(),
            lane: Default::default(),
            use_bus: Default::default(),
            drained: Default::default(),
            reset1: Default::default(),
            stop: Default::default(),
            arrived: Default::default(),
            arrived_data: Default::default(),
            next_address: Default::default(),
        }
    }
}

impl<const CUBES: usize, const PES: usize> Logic for AxiData<CUBES, PES> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, address, left, id, good, failed, word, word_code, reset1);
        // ---- where the address leads
        self.channel.next = self.address.q.val().get_bit(39);
        self.index.next = self.address.q.val().get_bits::<7>(32);
        self.cube.next = self.index.val();
        self.beat.next = bit_cast::<32, 28>(self.address.q.val().get_bits::<28>(4));
        self.legal.next = self.good.q.val() & ((self.index.val() < self.cubes.val()) & (self.beat.val() < self.sram_words.val()));
        if self.channel.val() {
            self.cube.next = self.index.val() >> self.pe_bits.val();
            self.legal.next = self.good.q.val() & ((self.index.val() < self.pes.val()) & (self.beat.val() < self.channel_beats.val()));
        }
        self.next_address.next = self.address.q.val() + 16;
        self.host_channel.next = self.channel.val();
        self.host_pe.next = (self.index.val() & self.pe_mask.val()).get_bits::<4>(0);
        self.host_address.next = self.beat.val();
        self.host_data.next = self.s_axi_wdata.val();
        self.host_strobe.next = self.s_axi_wstrb.val();
        self.host_write.next = self.state.q.val() == AxiDataState::Write;
        self.split.next = false;
        for i in 0..4 {
            self.lane.next = self.s_axi_wstrb.val().get_bits::<4>(i * 4);
            self.split.next = self.split.val() | (self.lane.val().any() & !self.lane.val().all());
        }
        if self.channel.val() {
            self.split.next = false;
        }
        self.reset1.d.next = self.reset.val();
        self.stop.next = self.reset.val() | self.reset1.q.val();
        self.use_bus.next = false;
        if self.state.q.val() == AxiDataState::Write {
            self.use_bus.next = (self.s_axi_wvalid.val() & self.legal.val()) & !self.split.val();
        }
        if self.state.q.val() == AxiDataState::Ask {
            self.use_bus.next = self.legal.val();
        }
        if self.stop.val() {
            self.use_bus.next = false;
        }
        self.drained.next = true;
        self.ready.next = false;
        self.arrived.next = false;
        self.arrived_data.next = 0.into();
        for c in 0..CUBES {
            self.drained.next = self.drained.val() & self.host_ready[c].val();
            self.host_valid[c].next = self.use_bus.val() & (self.cube.val() == c.to_bits());
            if self.cube.val() == c.to_bits() {
                self.ready.next = self.host_ready[c].val() & !self.stop.val();
                self.arrived.next = self.host_read_valid[c].val();
                self.arrived_data.next = self.host_read_data[c].val();
            }
        }
        self.s_axi_awready.next = false;
        self.s_axi_wready.next = false;
        self.s_axi_bvalid.next = false;
        self.s_axi_arready.next = false;
        self.s_axi_rvalid.next = false;
        self.s_axi_rlast.next = !self.left.q.val().any();
        self.s_axi_bid.next = self.id.q.val();
        self.s_axi_rid.next = self.id.q.val();
        self.s_axi_bresp.next = 0.into();
        if self.failed.q.val() {
            self.s_axi_bresp.next = 2.into();
        }
        self.s_axi_rdata.next = self.word.q.val();
        self.s_axi_rresp.next = self.word_code.q.val();
        match self.state.q.val() {
            AxiDataState::Idle => {
                self.failed.d.next = false;
                self.s_axi_awready.next = true;
                self.s_axi_arready.next = !self.s_axi_awvalid.val();
                if self.s_axi_awvalid.val() {
                    self.address.d.next = self.s_axi_awaddr.val();
                    self.left.d.next = self.s_axi_awlen.val();
                    self.id.d.next = self.s_axi_awid.val();
                    self.good.d.next = (self.s_axi_awsize.val() == 4) & (self.s_axi_awburst.val() == 1);
                    self.state.d.next = AxiDataState::Write;
                } else if self.s_axi_arvalid.val() {
                    self.address.d.next = self.s_axi_araddr.val();
                    self.left.d.next = self.s_axi_arlen.val();
                    self.id.d.next = self.s_axi_arid.val();
                    self.good.d.next = (self.s_axi_arsize.val() == 4) & (self.s_axi_arburst.val() == 1);
                    self.state.d.next = AxiDataState::Ask;
                }
            }
            AxiDataState::Write => {
                self.s_axi_wready.next = self.ready.val() | !self.legal.val();
                if self.s_axi_wvalid.val() & (self.ready.val() | !self.legal.val()) {
                    if !self.legal.val() | self.split.val() {
                        self.failed.d.next = true;
                    }
                    self.address.d.next = self.next_address.val();
                    self.left.d.next = self.left.q.val() - 1;
                    if !self.left.q.val().any() {
                        self.state.d.next = AxiDataState::WriteAnswer;
                    }
                }
            }
            AxiDataState::WriteAnswer => {
                self.s_axi_bvalid.next = self.drained.val();
                if self.s_axi_bready.val() & self.drained.val() {
                    self.state.d.next = AxiDataState::Idle;
                }
            }
            AxiDataState::Ask => {
                if !self.legal.val() {
                    self.word.d.next = 0.into();
                    self.word_code.d.next = 2.into();
                    self.state.d.next = AxiDataState::ReadAnswer;
                } else if self.ready.val() {
                    self.state.d.next = AxiDataState::Wait;
                }
            }
            AxiDataState::Wait => {
                if self.arrived.val() {
                    self.word.d.next = self.arrived_data.val();
                    self.word_code.d.next = 0.into();
                    self.state.d.next = AxiDataState::ReadAnswer;
                }
            }
            AxiDataState::ReadAnswer => {
                self.s_axi_rvalid.next = true;
                if self.s_axi_rready.val() {
                    self.address.d.next = self.next_address.val();
                    self.left.d.next = self.left.q.val() - 1;
                    self.state.d.next = AxiDataState::Ask;
                    if !self.left.q.val().any() {
                        self.state.d.next = AxiDataState::Idle;
                    }
                }
            }
        }
        if self.reset.val() & (self.state.q.val() == AxiDataState::Wait) {
            self.good.d.next = false;
            self.word.d.next = 0.into();
            self.word_code.d.next = 2.into();
            self.state.d.next = AxiDataState::ReadAnswer;
        }
    }
}
