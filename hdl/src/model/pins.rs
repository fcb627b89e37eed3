//! The pins of a SIP, as a host model drives and sees them. Any simulator of the top can stand behind them.

use rust_hdl::prelude::*;

use super::channel::{ChannelInputs, ChannelOutputs};
use crate::sip::Sip;

/// What the host drives on the AXI4-Lite control port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControlDrive {
    /// A write, address and data at once.
    pub write: Option<(u32, u32)>,
    /// The address half of the write has not been taken yet.
    pub address_valid: bool,
    /// The data half of the write has not been taken yet.
    pub data_valid: bool,
    /// A read of this address.
    pub read: Option<u32>,
}

/// What the host sees on the control port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControlSee {
    /// The address half would be taken.
    pub address_ready: bool,
    /// The data half would be taken.
    pub data_ready: bool,
    /// Answer of a write: its response code.
    pub written: Option<u32>,
    /// A read address would be taken.
    pub read_ready: bool,
    /// Answer of a read.
    pub read: Option<u32>,
}

/// What the host drives on the AXI4 data port; answers are always taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataDrive {
    /// Address and beats - 1 of a write burst.
    pub write_address: Option<(u64, u8)>,
    /// Data, strobes and last flag of a write beat.
    pub write_beat: Option<(u128, u16, bool)>,
    /// Address and beats - 1 of a read burst.
    pub read_address: Option<(u64, u8)>,
}

/// What the host sees on the data port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataSee {
    /// The write address would be taken.
    pub write_address_ready: bool,
    /// The write beat would be taken.
    pub write_ready: bool,
    /// Answer of a write burst: its response code.
    pub written: Option<u32>,
    /// The read address would be taken.
    pub read_address_ready: bool,
    /// A read beat: data and response code.
    pub read: Option<(u128, u32)>,
}

/// The pins of a simulated SIP.
pub trait SipPins {
    /// PEs of the SIP.
    fn pes(&self) -> usize;
    /// The design, to look into.
    fn design(&self) -> &dyn Block;
    /// Drives the control port.
    fn drive_control(&mut self, drive: &ControlDrive);
    /// Drives the data port.
    fn drive_data(&mut self, drive: &DataDrive);
    /// Drives what a PE sees of its memory channel.
    fn drive_channel(&mut self, pe: usize, outputs: &ChannelOutputs);
    /// Lets combinational logic settle; what is seen afterwards belongs to what is driven.
    fn settle(&mut self);
    /// The control port.
    fn control(&mut self) -> ControlSee;
    /// The data port.
    fn data(&mut self) -> DataSee;
    /// A PE's memory channel; what means nothing (a request that is not valid, the data of a read) is zero.
    fn channel(&mut self, pe: usize) -> ChannelInputs;
    /// One rising clock edge.
    fn clock(&mut self);
}

/// 128 bits as rust-hdl has them.
pub fn to_bits(value: u128) -> Bits<128> {
    (bit_cast::<128, 64>(bits::<64>((value >> 64) as u64)) << bits::<8>(64)) | bit_cast::<128, 64>(bits::<64>(value as u64))
}

/// 128 bits as an integer.
pub fn from_bits(value: Bits<128>) -> u128 {
    u128::from(value.get_bits::<64>(64).to_u64()) << 64 | u128::from(value.get_bits::<64>(0).to_u64())
}

/// A SIP in rust-hdl's own simulator: the plain loop that evaluates until nothing changes.
pub struct RustHdlPins<
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
    #[allow(clippy::type_complexity, reason = "the SIP's parameters")]
    top: Box<Sip<ROWS, BEAT, MASKS, TILE_BITS, TILES, O_BITS, ROW_BITS, LINKS, PES, SRAM_BITS, LATENCY, CUBES, TOTAL>>,
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
> RustHdlPins<ROWS, BEAT, MASKS, TILE_BITS, TILES, O_BITS, ROW_BITS, LINKS, PES, SRAM_BITS, LATENCY, CUBES, TOTAL>
{
    /// Connects a SIP and ties off what the host model never changes.
    #[allow(clippy::type_complexity, reason = "the SIP's parameters")]
    pub fn new(
        mut top: Box<Sip<ROWS, BEAT, MASKS, TILE_BITS, TILES, O_BITS, ROW_BITS, LINKS, PES, SRAM_BITS, LATENCY, CUBES, TOTAL>>,
    ) -> Self {
        top.connect_all();
        Self { top }
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
> SipPins for RustHdlPins<ROWS, BEAT, MASKS, TILE_BITS, TILES, O_BITS, ROW_BITS, LINKS, PES, SRAM_BITS, LATENCY, CUBES, TOTAL>
{
    fn pes(&self) -> usize {
        TOTAL
    }

    fn design(&self) -> &dyn Block {
        self.top.as_ref()
    }

    fn drive_control(&mut self, drive: &ControlDrive) {
        let top = &mut self.top;
        let (address, data) = drive.write.unwrap_or_default();
        top.s_axil_awvalid.next = drive.address_valid;
        top.s_axil_awaddr.next = bits(address.into());
        top.s_axil_wvalid.next = drive.data_valid;
        top.s_axil_wdata.next = bits(data.into());
        top.s_axil_wstrb.next = bits(0xF);
        top.s_axil_bready.next = true;
        top.s_axil_arvalid.next = drive.read.is_some();
        top.s_axil_araddr.next = bits(drive.read.unwrap_or_default().into());
        top.s_axil_rready.next = true;
    }

    fn drive_data(&mut self, drive: &DataDrive) {
        let top = &mut self.top;
        let (address, beats) = drive.write_address.unwrap_or_default();
        top.s_axi_awvalid.next = drive.write_address.is_some();
        top.s_axi_awid.next = bits(0);
        top.s_axi_awaddr.next = bits(address);
        top.s_axi_awlen.next = bits(beats.into());
        top.s_axi_awsize.next = bits(4);
        top.s_axi_awburst.next = bits(1);
        let (data, strobe, last) = drive.write_beat.unwrap_or_default();
        top.s_axi_wvalid.next = drive.write_beat.is_some();
        top.s_axi_wdata.next = to_bits(data);
        top.s_axi_wstrb.next = bits(strobe.into());
        top.s_axi_wlast.next = last;
        top.s_axi_bready.next = true;
        let (address, beats) = drive.read_address.unwrap_or_default();
        top.s_axi_arvalid.next = drive.read_address.is_some();
        top.s_axi_arid.next = bits(0);
        top.s_axi_araddr.next = bits(address);
        top.s_axi_arlen.next = bits(beats.into());
        top.s_axi_arsize.next = bits(4);
        top.s_axi_arburst.next = bits(1);
        top.s_axi_rready.next = true;
    }

    fn drive_channel(&mut self, pe: usize, outputs: &ChannelOutputs) {
        self.top.channel_request_ready[pe].next = outputs.request_ready;
        self.top.channel_read_valid[pe].next = outputs.read_valid;
        self.top.channel_read_data[pe].next = to_bits(outputs.read_data);
    }

    fn settle(&mut self) {
        for _ in 0..1000 {
            self.top.update_all();
            if !self.top.has_changed() {
                return;
            }
        }
        panic!("the SIP does not settle: a combinational loop");
    }

    fn control(&mut self) -> ControlSee {
        let top = &self.top;
        ControlSee {
            address_ready: top.s_axil_awready.val(),
            data_ready: top.s_axil_wready.val(),
            written: top.s_axil_bvalid.val().then(|| top.s_axil_bresp.val().to_u32()),
            read_ready: top.s_axil_arready.val(),
            read: top.s_axil_rvalid.val().then(|| top.s_axil_rdata.val().to_u32()),
        }
    }

    fn data(&mut self) -> DataSee {
        let top = &self.top;
        DataSee {
            write_address_ready: top.s_axi_awready.val(),
            write_ready: top.s_axi_wready.val(),
            written: top.s_axi_bvalid.val().then(|| top.s_axi_bresp.val().to_u32()),
            read_address_ready: top.s_axi_arready.val(),
            read: top.s_axi_rvalid.val().then(|| (from_bits(top.s_axi_rdata.val()), top.s_axi_rresp.val().to_u32())),
        }
    }

    fn channel(&mut self, pe: usize) -> ChannelInputs {
        let top = &self.top;
        let mut inputs = ChannelInputs { read_ready: top.channel_read_ready[pe].val(), ..Default::default() };
        if top.channel_request_valid[pe].val() {
            inputs.request_valid = true;
            inputs.request_write = top.channel_request_write[pe].val();
            inputs.request_address = top.channel_request_address[pe].val().to_u32();
            inputs.request_beats = top.channel_request_beats[pe].val().to_u16();
            if inputs.request_write {
                inputs.write_data = from_bits(top.channel_write_data[pe].val());
                inputs.write_strobe = top.channel_write_strobe[pe].val().to_u16();
            }
        }
        inputs
    }

    fn clock(&mut self) {
        self.top.clock.next = Clock { clk: true };
        self.settle();
        // The falling edge settles together with what is driven next.
        self.top.clock.next = Clock { clk: false };
    }
}
