//! The SIP's RTL as a device, behind its AXI ports.

use braid_hdl::model::{Bench, BusError, ChannelTiming, SipPins};
use braid_isa::layout::HostAddress;
use braid_isa::{Counter, Geometry, Status, register};
use braid_runtime::{Bounds, Completion, Device, DeviceError};

/// Cycles that one bus transfer may take.
const BUS_BOUND: u64 = 100_000;
/// Cycles between two looks at the status register.
const POLL_CYCLES: u64 = 64;

/// The RTL in a simulator.
pub struct RtlDevice<P> {
    geometry: Geometry,
    bench: Bench<P>,
    channel_beats: u32,
    prepared: bool,
}

impl<P: SipPins> RtlDevice<P> {
    /// The simulated SIP with memory behind its channels.
    pub fn new(geometry: Geometry, pins: P, channel_beats: u32, timing: ChannelTiming) -> RtlDevice<P> {
        RtlDevice { geometry, bench: Bench::new(pins, channel_beats, timing, BUS_BOUND), channel_beats, prepared: false }
    }

    /// The bench around the SIP.
    pub fn bench(&mut self) -> &mut Bench<P> {
        &mut self.bench
    }

    fn prepare(&mut self) -> Result<(), DeviceError> {
        if !self.prepared {
            self.bench.write_register(register::CHANNEL_BEATS, self.channel_beats).map_err(other)?;
            self.prepared = true;
        }
        Ok(())
    }

    fn status(&mut self, address: u32) -> Result<Status, DeviceError> {
        let value = self.bench.read_register(address).map_err(other)?;
        Status::from_register(value)
            .ok_or_else(|| DeviceError::Other(format!("status register {address:#05x} holds no status: {value:#010x}")))
    }
}

fn other(error: BusError) -> DeviceError {
    DeviceError::Other(error.to_string())
}

fn access(error: BusError, address: HostAddress) -> DeviceError {
    match error {
        BusError::Refused { .. } => DeviceError::Refused(address),
        BusError::NoAnswer { .. } => other(error),
    }
}

impl<P: SipPins> Device for RtlDevice<P> {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn channel_beats(&self) -> u32 {
        self.channel_beats
    }

    fn write(&mut self, address: HostAddress, bytes: &[u8]) -> Result<(), DeviceError> {
        self.prepare()?;
        self.bench.write(address, bytes).map_err(|e| access(e, address))
    }

    fn preload(&mut self, address: HostAddress, bytes: &[u8]) -> Result<(), DeviceError> {
        match address {
            HostAddress::Channel { pe, byte } if pe < self.geometry.pes() => {
                let end = byte as usize + bytes.len();
                if end > self.channel_beats as usize * braid_isa::geometry::BEAT_BYTES {
                    return Err(DeviceError::Refused(address));
                }
                self.bench.channel(pe).write_bytes(byte as usize, bytes);
                Ok(())
            }
            _ => self.write(address, bytes),
        }
    }

    fn read(&mut self, address: HostAddress, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.prepare()?;
        self.bench.read(address, bytes).map_err(|e| access(e, address))
    }

    fn launch(&mut self, base: u32, counts: &[u32], bounds: Bounds, progress: &mut dyn FnMut(u64)) -> Result<Completion, DeviceError> {
        self.prepare()?;
        self.bench.write_register(register::TIMEOUT, bounds.idle_cycles).map_err(other)?;
        self.bench.write_register(register::COMMAND_BASE, base).map_err(other)?;
        for (cube, &count) in counts.iter().enumerate() {
            self.bench.write_register(register::COMMAND_COUNT + 4 * cube as u32, count).map_err(other)?;
        }
        self.bench.launch().map_err(other)?;
        let start = self.bench.cycles();
        while self.bench.read_register(register::STATUS).map_err(other)? & register::STATUS_BUSY != 0 {
            let gone = self.bench.cycles() - start;
            if gone > bounds.launch_cycles {
                return Err(DeviceError::Hangs { bound: bounds.launch_cycles });
            }
            progress(gone);
            self.bench.run(POLL_CYCLES);
        }
        let low = self.bench.read_register(register::CYCLES_LO).map_err(other)?;
        let high = self.bench.read_register(register::CYCLES_HI).map_err(other)?;
        if self.bench.read_register(register::STATUS).map_err(other)? & register::STATUS_ERROR == 0 {
            let fine = Status { code: braid_isa::Code::Ok, command: 0 };
            let (cubes, pes) = (vec![fine; self.geometry.cubes], vec![fine; self.geometry.pes()]);
            return Ok(Completion { cycles: Some(u64::from(high) << 32 | u64::from(low)), cubes, pes });
        }
        let cubes = (0..self.geometry.cubes as u32).map(|c| self.status(register::CUBE_STATUS + 4 * c)).collect::<Result<_, _>>()?;
        let pes = (0..self.geometry.pes() as u32).map(|p| self.status(register::PE_STATUS + 4 * p)).collect::<Result<_, _>>()?;
        Ok(Completion { cycles: Some(u64::from(high) << 32 | u64::from(low)), cubes, pes })
    }

    fn counter(&mut self, pe: usize, counter: Counter) -> Result<Option<u64>, DeviceError> {
        self.bench.write_register(register::COUNTER_SELECT, (pe as u32) << 8 | counter as u32).map_err(other)?;
        let low = self.bench.read_register(register::COUNTER_LO).map_err(other)?;
        if self.bench.cycles() <= u64::from(u32::MAX) {
            // No counter can have passed 32 bits yet.
            return Ok(Some(low.into()));
        }
        let high = self.bench.read_register(register::COUNTER_HI).map_err(other)?;
        Ok(Some(u64::from(high) << 32 | u64::from(low)))
    }

    fn reset(&mut self) -> Result<(), DeviceError> {
        self.bench.write_register(register::CONTROL, register::CONTROL_RESET).map_err(other)?;
        self.bench.run(16);
        Ok(())
    }

    fn simulated_cycles(&self) -> u64 {
        self.bench.cycles()
    }
}
