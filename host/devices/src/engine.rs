//! The SIP's pins on an engine of braid-sim.

use std::collections::HashMap;

use braid_hdl::model::channel::{ChannelInputs, ChannelOutputs};
use braid_hdl::model::pins::{ControlDrive, ControlSee, DataDrive, DataSee, SipPins};
use braid_sim::{Engine, SignalId, SimError};
use rust_hdl::prelude::{Block, Logic, Probe};

/// Handles of a PE's memory channel.
struct Channel {
    request_valid: SignalId,
    request_write: SignalId,
    request_address: SignalId,
    request_beats: SignalId,
    write_data: SignalId,
    write_strobe: SignalId,
    read_ready: SignalId,
    request_ready: SignalId,
    read_valid: SignalId,
    read_data: SignalId,
    last: Option<ChannelOutputs>,
}

/// The pins of a SIP that an engine simulates.
pub struct EnginePins<E> {
    engine: E,
    ports: HashMap<&'static str, SignalId>,
    channels: Vec<Channel>,
    control: Option<ControlDrive>,
    data: Option<DataDrive>,
}

/// Ports of the bus that the host model uses.
const PORTS: [&str; 40] = [
    "s_axil_awaddr",
    "s_axil_awvalid",
    "s_axil_awready",
    "s_axil_wdata",
    "s_axil_wstrb",
    "s_axil_wvalid",
    "s_axil_wready",
    "s_axil_bresp",
    "s_axil_bvalid",
    "s_axil_bready",
    "s_axil_araddr",
    "s_axil_arvalid",
    "s_axil_arready",
    "s_axil_rdata",
    "s_axil_rvalid",
    "s_axil_rready",
    "s_axi_awaddr",
    "s_axi_awlen",
    "s_axi_awsize",
    "s_axi_awburst",
    "s_axi_awvalid",
    "s_axi_awready",
    "s_axi_wdata",
    "s_axi_wstrb",
    "s_axi_wlast",
    "s_axi_wvalid",
    "s_axi_wready",
    "s_axi_bresp",
    "s_axi_bvalid",
    "s_axi_bready",
    "s_axi_araddr",
    "s_axi_arlen",
    "s_axi_arsize",
    "s_axi_arburst",
    "s_axi_arvalid",
    "s_axi_arready",
    "s_axi_rdata",
    "s_axi_rresp",
    "s_axi_rvalid",
    "s_axi_rready",
];

impl<E: Engine> EnginePins<E> {
    /// Finds the pins of a SIP with `pes` PEs.
    ///
    /// # Errors
    /// If the design is no SIP.
    pub fn new(mut engine: E, pes: usize) -> Result<EnginePins<E>, SimError> {
        let mut ports = HashMap::new();
        for name in PORTS {
            ports.insert(name, engine.signal(name)?);
        }
        let mut channels = Vec::with_capacity(pes);
        for pe in 0..pes {
            let mut find = |name: &str| engine.signal(&format!("channel_{name}[{pe}]"));
            channels.push(Channel {
                request_valid: find("request_valid")?,
                request_write: find("request_write")?,
                request_address: find("request_address")?,
                request_beats: find("request_beats")?,
                write_data: find("write_data")?,
                write_strobe: find("write_strobe")?,
                read_ready: find("read_ready")?,
                request_ready: find("request_ready")?,
                read_valid: find("read_valid")?,
                read_data: find("read_data")?,
                last: None,
            });
        }
        let mut pins = EnginePins { engine, ports, channels, control: None, data: None };
        for (name, value) in [
            ("s_axil_wstrb", 0xF),
            ("s_axil_bready", 1),
            ("s_axil_rready", 1),
            ("s_axi_awsize", 4),
            ("s_axi_awburst", 1),
            ("s_axi_bready", 1),
            ("s_axi_arsize", 4),
            ("s_axi_arburst", 1),
            ("s_axi_rready", 1),
        ] {
            pins.poke(name, value);
        }
        Ok(pins)
    }

    /// The engine behind the pins.
    pub fn engine(&mut self) -> &mut E {
        &mut self.engine
    }

    fn poke(&mut self, name: &str, value: u64) {
        self.engine.poke(self.ports[name], value);
    }

    fn peek(&mut self, name: &str) -> u64 {
        self.engine.peek(self.ports[name])
    }
}

fn halves(value: u128) -> [u64; 2] {
    [value as u64, (value >> 64) as u64]
}

fn wide(words: [u64; 2]) -> u128 {
    u128::from(words[1]) << 64 | u128::from(words[0])
}

/// Stands for the design where only an engine has it.
struct NoBlock;

impl Logic for NoBlock {
    fn update(&mut self) {}
}

impl Block for NoBlock {
    fn connect_all(&mut self) {}
    fn update_all(&mut self) {}
    fn has_changed(&self) -> bool {
        false
    }
    fn accept(&self, _name: &str, _probe: &mut dyn Probe) {}
}

impl<E: Engine> SipPins for EnginePins<E> {
    fn pes(&self) -> usize {
        self.channels.len()
    }

    fn design(&self) -> &dyn Block {
        &NoBlock
    }

    fn drive_control(&mut self, drive: &ControlDrive) {
        if self.control.replace(*drive) == Some(*drive) {
            return;
        }
        let (address, data) = drive.write.unwrap_or_default();
        self.poke("s_axil_awvalid", drive.address_valid.into());
        self.poke("s_axil_awaddr", address.into());
        self.poke("s_axil_wvalid", drive.data_valid.into());
        self.poke("s_axil_wdata", data.into());
        self.poke("s_axil_arvalid", drive.read.is_some().into());
        self.poke("s_axil_araddr", drive.read.unwrap_or_default().into());
    }

    fn drive_data(&mut self, drive: &DataDrive) {
        if self.data.replace(*drive) == Some(*drive) {
            return;
        }
        let (address, beats) = drive.write_address.unwrap_or_default();
        self.poke("s_axi_awvalid", drive.write_address.is_some().into());
        self.poke("s_axi_awaddr", address);
        self.poke("s_axi_awlen", beats.into());
        let (data, strobe, last) = drive.write_beat.unwrap_or_default();
        self.poke("s_axi_wvalid", drive.write_beat.is_some().into());
        self.engine.poke_wide(self.ports["s_axi_wdata"], &halves(data));
        self.poke("s_axi_wstrb", strobe.into());
        self.poke("s_axi_wlast", last.into());
        let (address, beats) = drive.read_address.unwrap_or_default();
        self.poke("s_axi_arvalid", drive.read_address.is_some().into());
        self.poke("s_axi_araddr", address);
        self.poke("s_axi_arlen", beats.into());
    }

    fn drive_channel(&mut self, pe: usize, outputs: &ChannelOutputs) {
        let channel = &mut self.channels[pe];
        if channel.last.replace(*outputs) == Some(*outputs) {
            return;
        }
        self.engine.poke(channel.request_ready, outputs.request_ready.into());
        self.engine.poke(channel.read_valid, outputs.read_valid.into());
        self.engine.poke_wide(channel.read_data, &halves(outputs.read_data));
    }

    fn settle(&mut self) {}

    fn control(&mut self) -> ControlSee {
        ControlSee {
            address_ready: self.peek("s_axil_awready") == 1,
            data_ready: self.peek("s_axil_wready") == 1,
            written: (self.peek("s_axil_bvalid") == 1).then(|| self.peek("s_axil_bresp") as u32),
            read_ready: self.peek("s_axil_arready") == 1,
            read: (self.peek("s_axil_rvalid") == 1).then(|| self.peek("s_axil_rdata") as u32),
        }
    }

    fn data(&mut self) -> DataSee {
        let read = (self.peek("s_axi_rvalid") == 1).then(|| {
            let mut words = [0; 2];
            self.engine.peek_wide(self.ports["s_axi_rdata"], &mut words);
            (wide(words), self.engine.peek(self.ports["s_axi_rresp"]) as u32)
        });
        DataSee {
            write_address_ready: self.peek("s_axi_awready") == 1,
            write_ready: self.peek("s_axi_wready") == 1,
            written: (self.peek("s_axi_bvalid") == 1).then(|| self.peek("s_axi_bresp") as u32),
            read_address_ready: self.peek("s_axi_arready") == 1,
            read,
        }
    }

    fn channel(&mut self, pe: usize) -> ChannelInputs {
        let (engine, c) = (&mut self.engine, &self.channels[pe]);
        let mut inputs = ChannelInputs { read_ready: engine.peek(c.read_ready) == 1, ..Default::default() };
        if engine.peek(c.request_valid) == 1 {
            inputs.request_valid = true;
            inputs.request_write = engine.peek(c.request_write) == 1;
            inputs.request_address = engine.peek(c.request_address) as u32;
            inputs.request_beats = engine.peek(c.request_beats) as u16;
            if inputs.request_write {
                let mut words = [0; 2];
                engine.peek_wide(c.write_data, &mut words);
                inputs.write_data = wide(words);
                inputs.write_strobe = engine.peek(c.write_strobe) as u16;
            }
        }
        inputs
    }

    fn clock(&mut self) {
        self.engine.step();
    }
}
