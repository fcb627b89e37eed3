//! The SIP: CUBES x PES processing elements behind a host port; the top of the synthesizable design.
//!
//! ```text
//!                    +------------------------------------+
//!  s_axil (control)->| registers, run control             |
//!  s_axi (data) ---->| host accesses --> CUBE 0 .. CUBES-1|--> memory channels, one a PE
//!                    |     CUBE <== links ==> CUBE        |
//!                    +------------------------------------+
//! ```
//!
//! Neighbours: the CUBE whose number differs in bit 0, and (with four CUBEs) in bit 1. `TOTAL` = CUBES x PES, `SRAM_BITS` = log2 of the SRAM words,
//! `LATENCY` cycles of a CUBE-to-CUBE link; the others as in [`crate::pe::element`]. Two CUBEs of two PEs, or four of eight.

use braid_isa::Geometry;
use rust_hdl::prelude::*;

use super::axi_data::AxiData;
use super::axi_lite::AxiLite;
use super::registers::Registers;
use crate::cube::Cube;

#[derive(LogicBlock)]
pub struct Sip<
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
    const CUBES: usize,
    const TOTAL: usize,
> {
    pub clock: Signal<In, Clock>,
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
    pub channel_request_valid: [Signal<Out, Bit>; TOTAL],
    pub channel_request_ready: [Signal<In, Bit>; TOTAL],
    pub channel_request_write: [Signal<Out, Bit>; TOTAL],
    pub channel_request_address: [Signal<Out, Bits<32>>; TOTAL],
    pub channel_request_beats: [Signal<Out, Bits<16>>; TOTAL],
    pub channel_write_data: [Signal<Out, Bits<128>>; TOTAL],
    pub channel_write_strobe: [Signal<Out, Bits<16>>; TOTAL],
    pub channel_read_valid: [Signal<In, Bit>; TOTAL],
    pub channel_read_ready: [Signal<Out, Bit>; TOTAL],
    pub channel_read_data: [Signal<In, Bits<128>>; TOTAL],
    axi_lite: AxiLite,
    axi_data: AxiData<CUBES, PES>,
    registers: Registers<CUBES, TOTAL>,
    cube: Vec<Cube<ROWS, BEAT, MASKS, TILE_BITS, TILES, O_BITS, ROW_BITS, LINKS, PES, SRAM_BITS, LATENCY>>,
    pe_count: Constant<Bits<8>>,
    pe_bits: Constant<Bits<4>>,
    pe_mask: Constant<Bits<8>>,
    sram_words: Constant<Bits<32>>,
    link_a: Constant<Bits<3>>,
    link_b: Constant<Bits<3>>,
    reset: Signal<Local, Bit>,
    counter_cube: Signal<Local, Bits<8>>,
    counter_pe: Signal<Local, Bits<8>>,
    bit: Signal<Local, Bit>,
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
    const CUBES: usize,
    const TOTAL: usize,
> Default for Sip<ROWS, BEAT, MASKS, TILE_BITS, TILES, O_BITS, ROW_BITS, LINKS, PES, SRAM_BITS, LATENCY, CUBES, TOTAL>
{
    fn default() -> Self {
        assert!((CUBES, PES) == (2, 2) || (CUBES, PES) == (4, 8), "two CUBEs of two PEs, or four of eight");
        assert_eq!(TOTAL, CUBES * PES, "derived parameter");
        let geometry = Geometry {
            name: "",
            cubes: CUBES,
            pes_per_cube: PES,
            rows: ROWS,
            max_rows: ROWS * TILES,
            max_head_dim: 128,
            sram_words: 1 << SRAM_BITS,
        };
        Self {
            clock: Default::default(),
            s_axil_awaddr: Default::default(),
            s_axil_awvalid: Default::default(),
            s_axil_awready: Default::default(),
            s_axil_wdata: Default::default(),
            s_axil_wstrb: Default::default(),
            s_axil_wvalid: Default::default(),
            s_axil_wready: Default::default(),
            s_axil_bresp: Default::default(),
            s_axil_bvalid: Default::default(),
            s_axil_bready: Default::default(),
            s_axil_araddr: Default::default(),
            s_axil_arvalid: Default::default(),
            s_axil_arready: Default::default(),
            s_axil_rdata: Default::default(),
            s_axil_rresp: Default::default(),
            s_axil_rvalid: Default::default(),
            s_axil_rready: Default::default(),
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
            axi_lite: Default::default(),
            axi_data: Default::default(),
            registers: Registers::new(&geometry),
            cube: (0..CUBES).map(|_| Cube::default()).collect(),
            pe_count: Constant::new(bits(TOTAL as u64)),
            pe_bits: Constant::new(bits(u64::from(PES.trailing_zeros()))),
            pe_mask: Constant::new(bits(PES as u64 - 1)),
            sram_words: Constant::new(bits(1 << SRAM_BITS)),
            link_a: Constant::new(bits(if PES == 2 { 1 } else { 3 })),
            link_b: Constant::new(bits(4)),
            reset: Default::default(),
            counter_cube: Default::default(),
            counter_pe: Default::default(),
            bit: Default::default(),
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
    const CUBES: usize,
    const TOTAL: usize,
> Logic for Sip<ROWS, BEAT, MASKS, TILE_BITS, TILES, O_BITS, ROW_BITS, LINKS, PES, SRAM_BITS, LATENCY, CUBES, TOTAL>
{
    #[hdl_gen]
    fn update(&mut self) {
        self.reset.next = self.registers.reset.val();
        self.axi_lite.clock.next = self.clock.val();
        self.axi_lite.reset.next = false;
        self.axi_lite.s_axil_awaddr.next = self.s_axil_awaddr.val();
        self.axi_lite.s_axil_awvalid.next = self.s_axil_awvalid.val();
        self.s_axil_awready.next = self.axi_lite.s_axil_awready.val();
        self.axi_lite.s_axil_wdata.next = self.s_axil_wdata.val();
        self.axi_lite.s_axil_wstrb.next = self.s_axil_wstrb.val();
        self.axi_lite.s_axil_wvalid.next = self.s_axil_wvalid.val();
        self.s_axil_wready.next = self.axi_lite.s_axil_wready.val();
        self.s_axil_bresp.next = self.axi_lite.s_axil_bresp.val();
        self.s_axil_bvalid.next = self.axi_lite.s_axil_bvalid.val();
        self.axi_lite.s_axil_bready.next = self.s_axil_bready.val();
        self.axi_lite.s_axil_araddr.next = self.s_axil_araddr.val();
        self.axi_lite.s_axil_arvalid.next = self.s_axil_arvalid.val();
        self.s_axil_arready.next = self.axi_lite.s_axil_arready.val();
        self.s_axil_rdata.next = self.axi_lite.s_axil_rdata.val();
        self.s_axil_rresp.next = self.axi_lite.s_axil_rresp.val();
        self.s_axil_rvalid.next = self.axi_lite.s_axil_rvalid.val();
        self.axi_lite.s_axil_rready.next = self.s_axil_rready.val();
        self.axi_data.clock.next = self.clock.val();
        self.axi_data.reset.next = self.registers.reset.val();
        self.axi_data.channel_beats.next = self.registers.channel_beats.val();
        self.axi_data.sram_words.next = self.sram_words.val();
        self.axi_data.s_axi_awid.next = self.s_axi_awid.val();
        self.axi_data.s_axi_awaddr.next = self.s_axi_awaddr.val();
        self.axi_data.s_axi_awlen.next = self.s_axi_awlen.val();
        self.axi_data.s_axi_awsize.next = self.s_axi_awsize.val();
        self.axi_data.s_axi_awburst.next = self.s_axi_awburst.val();
        self.axi_data.s_axi_awvalid.next = self.s_axi_awvalid.val();
        self.s_axi_awready.next = self.axi_data.s_axi_awready.val();
        self.axi_data.s_axi_wdata.next = self.s_axi_wdata.val();
        self.axi_data.s_axi_wstrb.next = self.s_axi_wstrb.val();
        self.axi_data.s_axi_wlast.next = self.s_axi_wlast.val();
        self.axi_data.s_axi_wvalid.next = self.s_axi_wvalid.val();
        self.s_axi_wready.next = self.axi_data.s_axi_wready.val();
        self.s_axi_bid.next = self.axi_data.s_axi_bid.val();
        self.s_axi_bresp.next = self.axi_data.s_axi_bresp.val();
        self.s_axi_bvalid.next = self.axi_data.s_axi_bvalid.val();
        self.axi_data.s_axi_bready.next = self.s_axi_bready.val();
        self.axi_data.s_axi_arid.next = self.s_axi_arid.val();
        self.axi_data.s_axi_araddr.next = self.s_axi_araddr.val();
        self.axi_data.s_axi_arlen.next = self.s_axi_arlen.val();
        self.axi_data.s_axi_arsize.next = self.s_axi_arsize.val();
        self.axi_data.s_axi_arburst.next = self.s_axi_arburst.val();
        self.axi_data.s_axi_arvalid.next = self.s_axi_arvalid.val();
        self.s_axi_arready.next = self.axi_data.s_axi_arready.val();
        self.s_axi_rid.next = self.axi_data.s_axi_rid.val();
        self.s_axi_rdata.next = self.axi_data.s_axi_rdata.val();
        self.s_axi_rresp.next = self.axi_data.s_axi_rresp.val();
        self.s_axi_rlast.next = self.axi_data.s_axi_rlast.val();
        self.s_axi_rvalid.next = self.axi_data.s_axi_rvalid.val();
        self.axi_data.s_axi_rready.next = self.s_axi_rready.val();
        self.registers.clock.next = self.clock.val();
        self.registers.write.next = self.axi_lite.write.val();
        self.registers.write_address.next = self.axi_lite.write_address.val();
        self.registers.write_data.next = self.axi_lite.write_data.val();
        self.registers.read_address.next = self.axi_lite.read_address.val();
        self.axi_lite.read_data.next = self.registers.read_data.val();
        self.counter_cube.next = self.registers.counter_pe.val() >> self.pe_bits.val();
        self.counter_pe.next = self.registers.counter_pe.val() & self.pe_mask.val();
        self.registers.counter_value.next = 0.into();
        for c in 0..CUBES {
            self.cube[c].clock.next = self.clock.val();
            self.cube[c].reset.next = self.reset.val();
            self.cube[c].pe_count.next = self.pe_count.val();
            self.cube[c].channel_beats.next = self.registers.channel_beats.val();
            self.cube[c].timeout.next = self.registers.timeout.val();
            self.cube[c].command_base.next = self.registers.command_base.val();
            self.cube[c].command_count.next = self.registers.command_count[c].val();
            self.cube[c].start.next = self.registers.start.val();
            self.cube[c].running.next = self.registers.running.val();
            self.cube[c].abort.next = self.registers.abort.val();
            self.registers.cube_done[c].next = self.cube[c].done.val();
            self.registers.cube_failed[c].next = self.cube[c].failed.val();
            self.registers.cube_status[c].next = self.cube[c].status.val();
            self.cube[c].host_valid.next = self.axi_data.host_valid[c].val();
            self.axi_data.host_ready[c].next = self.cube[c].host_ready.val();
            self.cube[c].host_write.next = self.axi_data.host_write.val();
            self.cube[c].host_channel.next = self.axi_data.host_channel.val();
            self.cube[c].host_pe.next = self.axi_data.host_pe.val();
            self.cube[c].host_address.next = self.axi_data.host_address.val();
            self.cube[c].host_data.next = self.axi_data.host_data.val();
            self.cube[c].host_strobe.next = self.axi_data.host_strobe.val();
            self.axi_data.host_read_valid[c].next = self.cube[c].host_read_valid.val();
            self.axi_data.host_read_data[c].next = self.cube[c].host_read_data.val();
            self.cube[c].counter_select.next = self.registers.counter.val();
            self.cube[c].counter_pe.next = self.counter_pe.val().get_bits::<4>(0);
            if self.counter_cube.val() == c.to_bits() {
                self.registers.counter_value.next = self.cube[c].counter_value.val();
            }
        }
        // ---- PEs are numbered CUBE after CUBE; neighbours differ in one bit of the CUBE number
        for c in 0..CUBES {
            for i in 0..(8 * usize::from(PES == 8)) {
                self.registers.pe_status[c * 8 + i].next = self.cube[c].pe_status[i].val();
                self.channel_request_valid[c * 8 + i].next = self.cube[c].channel_request_valid[i].val();
                self.cube[c].channel_request_ready[i].next = self.channel_request_ready[c * 8 + i].val();
                self.channel_request_write[c * 8 + i].next = self.cube[c].channel_request_write[i].val();
                self.channel_request_address[c * 8 + i].next = self.cube[c].channel_request_address[i].val();
                self.channel_request_beats[c * 8 + i].next = self.cube[c].channel_request_beats[i].val();
                self.channel_write_data[c * 8 + i].next = self.cube[c].channel_write_data[i].val();
                self.channel_write_strobe[c * 8 + i].next = self.cube[c].channel_write_strobe[i].val();
                self.cube[c].channel_read_valid[i].next = self.channel_read_valid[c * 8 + i].val();
                self.channel_read_ready[c * 8 + i].next = self.cube[c].channel_read_ready[i].val();
                self.cube[c].channel_read_data[i].next = self.channel_read_data[c * 8 + i].val();
            }
            for i in 0..(2 * usize::from(PES == 2)) {
                self.registers.pe_status[c * 2 + i].next = self.cube[c].pe_status[i].val();
                self.channel_request_valid[c * 2 + i].next = self.cube[c].channel_request_valid[i].val();
                self.cube[c].channel_request_ready[i].next = self.channel_request_ready[c * 2 + i].val();
                self.channel_request_write[c * 2 + i].next = self.cube[c].channel_request_write[i].val();
                self.channel_request_address[c * 2 + i].next = self.cube[c].channel_request_address[i].val();
                self.channel_request_beats[c * 2 + i].next = self.cube[c].channel_request_beats[i].val();
                self.channel_write_data[c * 2 + i].next = self.cube[c].channel_write_data[i].val();
                self.channel_write_strobe[c * 2 + i].next = self.cube[c].channel_write_strobe[i].val();
                self.cube[c].channel_read_valid[i].next = self.channel_read_valid[c * 2 + i].val();
                self.channel_read_ready[c * 2 + i].next = self.cube[c].channel_read_ready[i].val();
                self.cube[c].channel_read_data[i].next = self.channel_read_data[c * 2 + i].val();
            }
            for i in 0..PES {
                self.bit.next = self.cube[c + 1 - 2 * (c % 2)].link_valid[i].val().get_bit(self.link_a.val().index());
                self.cube[c].cross_a_valid[i].next = self.bit.val();
                self.cube[c].cross_a_data[i].next = self.cube[c + 1 - 2 * (c % 2)].link_data[i].val();
                self.bit.next = self.cube[c + 1 - 2 * (c % 2)].link_credit[i].val().get_bit(self.link_a.val().index());
                self.cube[c].cross_a_credit[i].next = self.bit.val();
                self.cube[c].cross_b_valid[i].next = false;
                self.cube[c].cross_b_data[i].next = 0.into();
                self.cube[c].cross_b_credit[i].next = false;
            }
        }
        for c in 0..(4 * usize::from(CUBES == 4)) {
            for i in 0..PES {
                self.bit.next = self.cube[c + 2 - 4 * ((c / 2) % 2)].link_valid[i].val().get_bit(self.link_b.val().index());
                self.cube[c].cross_b_valid[i].next = self.bit.val();
                self.cube[c].cross_b_data[i].next = self.cube[c + 2 - 4 * ((c / 2) % 2)].link_data[i].val();
                self.bit.next = self.cube[c + 2 - 4 * ((c / 2) % 2)].link_credit[i].val().get_bit(self.link_b.val().index());
                self.cube[c].cross_b_credit[i].next = self.bit.val();
            }
        }
        for c in 0..(4 * usize::from(PES == 8)) {
            self.cube[c].first_pe.next = (c * 8).to_bits();
        }
        for c in 0..(2 * usize::from(PES == 2)) {
            self.cube[c].first_pe.next = (c * 2).to_bits();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::{BUILD_STACK_BYTES, DefaultSip, SmallSip, TinySip};
    use crate::testing::cycle;
    use braid_isa::register;

    fn check<const CUBES: usize, const TOTAL: usize>(registers: &mut Registers<CUBES, TOTAL>, geometry: &Geometry) {
        registers.connect_all();
        let mut read = |address: u32| {
            registers.read_address.next = bits(address.into());
            cycle(registers, |r, c| r.clock.next = c);
            registers.read_data.val().to_u32() as usize
        };
        assert_eq!(read(register::ID), register::ID_VALUE as usize);
        let counts = read(register::GEOMETRY);
        let fields = [0, 8, 16, 24].map(|at| counts >> at & 0xFF);
        assert_eq!(fields, [geometry.cubes, geometry.pes_per_cube, geometry.rows, braid_isa::LANES], "{}", geometry.name);
        let limits = read(register::LIMITS);
        assert_eq!([limits & 0xFFFF, limits >> 16], [geometry.max_rows, geometry.max_head_dim], "{}", geometry.name);
        assert_eq!(read(register::SRAM_WORDS), geometry.sram_words, "{}", geometry.name);
        assert_eq!(read(register::TIMEOUT), register::TIMEOUT_RESET as usize);
    }

    #[test]
    fn the_registers_of_every_preset_report_its_geometry() {
        let build = || {
            check(&mut Box::<TinySip>::default().registers, &Geometry::TINY);
            check(&mut Box::<SmallSip>::default().registers, &Geometry::SMALL);
            check(&mut Box::<DefaultSip>::default().registers, &Geometry::DEFAULT);
        };
        let thread = std::thread::Builder::new().stack_size(BUILD_STACK_BYTES).spawn(build).expect("a thread");
        thread.join().expect("the presets agree");
    }
}
