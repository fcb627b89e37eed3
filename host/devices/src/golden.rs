//! The golden machine as a device.

use braid_golden::machine::Machine;
use braid_isa::layout::HostAddress;
use braid_isa::{Counter, Geometry};
use braid_runtime::{Bounds, Completion, Device, DeviceError};

/// The functional model: the same bytes as the RTL, without a clock.
pub struct GoldenDevice {
    machine: Machine,
}

impl GoldenDevice {
    /// A machine with `channel_beats` beats of memory behind each channel.
    pub fn new(geometry: Geometry, channel_beats: u32) -> GoldenDevice {
        GoldenDevice { machine: Machine::new(geometry, channel_beats) }
    }
}

impl Device for GoldenDevice {
    fn geometry(&self) -> Geometry {
        *self.machine.geometry()
    }

    fn channel_beats(&self) -> u32 {
        self.machine.channel_beats()
    }

    fn write(&mut self, address: HostAddress, bytes: &[u8]) -> Result<(), DeviceError> {
        self.machine.write(address, bytes).map_err(|_| DeviceError::Refused(address))
    }

    fn read(&mut self, address: HostAddress, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.machine.read(address, bytes).map_err(|_| DeviceError::Refused(address))
    }

    fn launch(&mut self, base: u32, counts: &[u32], _bounds: Bounds, _progress: &mut dyn FnMut(u64)) -> Result<Completion, DeviceError> {
        let outcome = self.machine.launch(base, counts);
        Ok(Completion { cycles: None, cubes: outcome.cubes, pes: outcome.pes })
    }

    fn counter(&mut self, pe: usize, counter: Counter) -> Result<Option<u64>, DeviceError> {
        Ok(self.machine.counter(pe, counter))
    }

    fn reset(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn simulated_cycles(&self) -> u64 {
        0
    }
}
