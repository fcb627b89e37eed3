//! What the runtime needs of a machine.

use braid_firmware::disassemble;
use braid_isa::layout::HostAddress;
use braid_isa::{Code, Counter, Geometry, Status};
use thiserror::Error;

/// How long things may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Cycles that a launch may take.
    pub launch_cycles: u64,
    /// Cycles without progress after which a waiting unit of the machine stops.
    pub idle_cycles: u32,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds { launch_cycles: 1 << 32, idle_cycles: 1 << 20 }
    }
}

/// How a launch ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Cycles from the doorbell to completion; `None` on a machine without a clock.
    pub cycles: Option<u64>,
    /// Status of every CUBE.
    pub cubes: Vec<Status>,
    /// Status of every PE, by global index.
    pub pes: Vec<Status>,
}

impl Completion {
    /// The failure that the others followed, if there is one: the first that is neither `ok` nor `aborted`, memory before multicast, because a PE without
    /// memory keeps its CUBE waiting. With the unit's name: "CUBE 1" or "PE 9".
    pub fn failure(&self) -> Option<(String, Status)> {
        let units = self
            .cubes
            .iter()
            .enumerate()
            .map(|(i, s)| (format!("CUBE {i}"), *s))
            .chain(self.pes.iter().enumerate().map(|(i, s)| (format!("PE {i}"), *s)));
        units.filter(|(_, s)| !matches!(s.code, Code::Ok | Code::Aborted)).min_by_key(|(_, s)| s.code == Code::TimeoutMulticast)
    }
}

/// A machine that did not do what it was told.
#[derive(Debug, Error)]
pub enum DeviceError {
    /// An access that the machine refused.
    #[error("the machine refused an access to {0:?}")]
    Refused(HostAddress),
    /// The launch did not end.
    #[error("the launch did not end within {bound} cycles")]
    Hangs {
        /// The bound that the caller set.
        bound: u64,
    },
    /// The launch failed.
    #[error("{unit} stopped: {} ({}) at command {}: {command}", status.code.name(), status.code.meaning(), status.command)]
    Failed {
        /// "CUBE 1" or "PE 9".
        unit: String,
        /// Its status.
        status: Status,
        /// The command, disassembled.
        command: String,
    },
    /// Anything else, told by the machine.
    #[error("{0}")]
    Other(String),
}

/// A machine.
pub trait Device {
    /// Its sizes.
    fn geometry(&self) -> Geometry;
    /// Beats of memory behind each channel.
    fn channel_beats(&self) -> u32;
    /// Writes bytes.
    ///
    /// # Errors
    /// [`DeviceError::Refused`] outside memory.
    fn write(&mut self, address: HostAddress, bytes: &[u8]) -> Result<(), DeviceError>;
    /// Puts bytes into memory without the host port, where a simulated machine can (its launches are the same cycles either way); otherwise writes them.
    ///
    /// # Errors
    /// [`DeviceError::Refused`] outside memory.
    fn preload(&mut self, address: HostAddress, bytes: &[u8]) -> Result<(), DeviceError> {
        self.write(address, bytes)
    }
    /// Reads bytes.
    ///
    /// # Errors
    /// [`DeviceError::Refused`] outside memory.
    fn read(&mut self, address: HostAddress, bytes: &mut [u8]) -> Result<(), DeviceError>;
    /// Rings the doorbell for the lists of `counts[c]` commands at SRAM word `base` of CUBE c, and waits. `progress` is told the cycles so far now and
    /// then.
    ///
    /// # Errors
    /// [`DeviceError::Hangs`] beyond the bound. A launch that failed is no error here: its statuses tell.
    fn launch(&mut self, base: u32, counts: &[u32], bounds: Bounds, progress: &mut dyn FnMut(u64)) -> Result<Completion, DeviceError>;
    /// A counter of the last launch; `None` if the machine does not count it.
    ///
    /// # Errors
    /// If the machine does not answer.
    fn counter(&mut self, pe: usize, counter: Counter) -> Result<Option<u64>, DeviceError>;
    /// Clears statuses and queues after a failed launch.
    ///
    /// # Errors
    /// If the machine does not answer.
    fn reset(&mut self) -> Result<(), DeviceError>;
    /// Clock cycles simulated so far, accesses included; 0 without a clock.
    fn simulated_cycles(&self) -> u64;
}

/// The error of a completion that failed, with the command taken from the lists.
pub(crate) fn failure(completion: &Completion, geometry: &Geometry, lists: &[Vec<[u32; 4]>]) -> Option<DeviceError> {
    let (unit, status) = completion.failure()?;
    let index = completion.pes.iter().position(|s| *s == status).map_or(0, |pe| pe / geometry.pes_per_cube);
    let cube = unit.strip_prefix("CUBE ").and_then(|c| c.parse().ok()).unwrap_or(index);
    // A PE counts the commands that name it, a CUBE all of its list.
    let pe = unit.strip_prefix("PE ").and_then(|p| p.parse::<usize>().ok()).map(|p| p % geometry.pes_per_cube);
    let mut own = lists.get(cube).into_iter().flatten().filter(|w| pe.is_none_or(|pe| w[0] >> (16 + pe) & 1 == 1));
    let command = own.nth(status.command as usize).map_or_else(|| "beyond the list".to_string(), disassemble);
    Some(DeviceError::Failed { unit, status, command })
}
