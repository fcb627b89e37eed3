//! A test bench around a SIP: host bus master and memory channels, stepped together with the simulated pins.

use braid_isa::layout::HostAddress;
use braid_isa::register;

use super::channel::{BEAT_BYTES, ChannelTiming, MemoryChannel};
use super::pins::{ControlDrive, DataDrive, SipPins};

/// Beats of the longest burst.
const MAX_BURST: usize = 256;
/// Bytes between the addresses that no AXI burst may cross.
const BOUNDARY: u64 = 4096;

/// Why a bus transfer failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusError {
    /// The bus answered SLVERR.
    Refused {
        /// 40-bit address of the burst.
        address: u64,
    },
    /// No answer within the bound.
    NoAnswer {
        /// Address of the burst or register.
        address: u64,
        /// Cycles waited.
        cycles: u64,
    },
}

impl std::fmt::Display for BusError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BusError::Refused { address } => write!(f, "the bus refused an access at {address:#012x}"),
            BusError::NoAnswer { address, cycles } => write!(f, "no answer from {address:#012x} within {cycles} cycles"),
        }
    }
}

impl std::error::Error for BusError {}

/// A SIP with a host and memory around it.
pub struct Bench<P> {
    pins: P,
    channels: Vec<MemoryChannel>,
    control: ControlDrive,
    data: DataDrive,
    cycles: u64,
    bound: u64,
    observer: Option<Observer<P>>,
}

/// Looks at the settled pins of every cycle, before its clock edge.
pub type Observer<P> = Box<dyn FnMut(&mut P, u64)>;

impl<P: SipPins> Bench<P> {
    /// A bench whose channels have `channel_beats` beats of memory each. Unwritten memory reads as NaN. A bus transfer may take `bound` cycles.
    pub fn new(pins: P, channel_beats: u32, timing: ChannelTiming, bound: u64) -> Bench<P> {
        let channels = (0..pins.pes())
            .map(|pe| MemoryChannel::new(channel_beats, ChannelTiming { seed: timing.seed.wrapping_add(pe as u64), ..timing }, 0xFF))
            .collect();
        Bench { pins, channels, control: ControlDrive::default(), data: DataDrive::default(), cycles: 0, bound, observer: None }
    }

    /// Has every cycle from now on looked at, with its number.
    pub fn observe(&mut self, observer: Observer<P>) {
        self.observer = Some(observer);
    }

    /// The simulated pins.
    pub fn pins(&mut self) -> &mut P {
        &mut self.pins
    }

    /// A PE's memory.
    pub fn channel(&mut self, pe: usize) -> &mut MemoryChannel {
        &mut self.channels[pe]
    }

    /// Clock cycles since the start.
    pub fn cycles(&self) -> u64 {
        self.cycles
    }

    /// Drives everything, settles, and lets `see` look at the pins before the clock edge.
    fn cycle<T>(&mut self, see: impl FnOnce(&mut P) -> T) -> T {
        self.pins.drive_control(&self.control);
        self.pins.drive_data(&self.data);
        for (pe, channel) in self.channels.iter().enumerate() {
            self.pins.drive_channel(pe, &channel.outputs());
        }
        self.pins.settle();
        let seen = see(&mut self.pins);
        if let Some(observer) = &mut self.observer {
            observer(&mut self.pins, self.cycles);
        }
        for (pe, channel) in self.channels.iter_mut().enumerate() {
            channel.step(self.pins.channel(pe));
        }
        self.pins.clock();
        self.cycles += 1;
        seen
    }

    /// Lets the machine run for some cycles.
    pub fn run(&mut self, cycles: u64) {
        (0..cycles).for_each(|_| self.cycle(|_| ()));
    }

    /// Writes a control register.
    ///
    /// # Errors
    /// If the port does not answer within the bound.
    pub fn write_register(&mut self, address: u32, value: u32) -> Result<(), BusError> {
        self.control = ControlDrive { write: Some((address, value)), address_valid: true, data_valid: true, read: None };
        for _ in 0..self.bound {
            let see = self.cycle(P::control);
            self.control.address_valid &= !see.address_ready;
            self.control.data_valid &= !see.data_ready;
            if see.written.is_some() {
                self.control = ControlDrive::default();
                return Ok(());
            }
        }
        self.control = ControlDrive::default();
        Err(BusError::NoAnswer { address: address.into(), cycles: self.bound })
    }

    /// Reads a control register.
    ///
    /// # Errors
    /// If the port does not answer within the bound.
    pub fn read_register(&mut self, address: u32) -> Result<u32, BusError> {
        self.control = ControlDrive { read: Some(address), ..Default::default() };
        for _ in 0..self.bound {
            let see = self.cycle(P::control);
            if see.read_ready {
                self.control.read = None;
            }
            if let Some(value) = see.read {
                self.control = ControlDrive::default();
                return Ok(value);
            }
        }
        self.control = ControlDrive::default();
        Err(BusError::NoAnswer { address: address.into(), cycles: self.bound })
    }

    /// Writes bytes through the data port, in bursts; partial beats use strobes.
    ///
    /// # Errors
    /// If the bus refuses an access or does not answer within the bound.
    pub fn write(&mut self, address: HostAddress, bytes: &[u8]) -> Result<(), BusError> {
        let start = address.to_bus();
        let skew = (start % BEAT_BYTES as u64) as usize;
        let first = start - skew as u64;
        let beats: Vec<(u128, u16)> = (0..(skew + bytes.len()).div_ceil(BEAT_BYTES))
            .map(|beat| {
                (0..BEAT_BYTES).fold((0, 0), |(data, strobe), lane| {
                    match (beat * BEAT_BYTES + lane).checked_sub(skew).and_then(|i| bytes.get(i)) {
                        Some(&byte) => (data | u128::from(byte) << (8 * lane), strobe | 1 << lane),
                        None => (data, strobe),
                    }
                })
            })
            .collect();
        let mut sent = 0;
        while sent < beats.len() {
            let address = first + (sent * BEAT_BYTES) as u64;
            let count = burst_beats(address, beats.len() - sent);
            self.write_burst(address, &beats[sent..sent + count])?;
            sent += count;
        }
        Ok(())
    }

    fn write_burst(&mut self, address: u64, beats: &[(u128, u16)]) -> Result<(), BusError> {
        self.data = DataDrive { write_address: Some((address, (beats.len() - 1) as u8)), ..Default::default() };
        let mut sent = 0;
        let mut waited = 0;
        while waited < self.bound {
            self.data.write_beat = beats.get(sent).map(|&(data, strobe)| (data, strobe, sent + 1 == beats.len()));
            let offered = self.data.write_beat.is_some();
            let see = self.cycle(P::data);
            waited += 1;
            if see.write_address_ready {
                self.data.write_address = None;
            }
            if see.write_ready && offered {
                sent += 1;
                waited = 0;
            }
            if let Some(code) = see.written {
                self.data = DataDrive::default();
                return if code == 0 { Ok(()) } else { Err(BusError::Refused { address }) };
            }
        }
        self.data = DataDrive::default();
        Err(BusError::NoAnswer { address, cycles: self.bound })
    }

    /// Reads bytes through the data port, in bursts.
    ///
    /// # Errors
    /// If the bus refuses an access or does not answer within the bound.
    pub fn read(&mut self, address: HostAddress, bytes: &mut [u8]) -> Result<(), BusError> {
        let start = address.to_bus();
        let skew = (start % BEAT_BYTES as u64) as usize;
        let first = start - skew as u64;
        let beats = (skew + bytes.len()).div_ceil(BEAT_BYTES);
        let mut got = Vec::with_capacity(beats);
        while got.len() < beats {
            let address = first + (got.len() * BEAT_BYTES) as u64;
            self.read_burst(address, burst_beats(address, beats - got.len()), &mut got)?;
        }
        let flat = got.iter().flat_map(|beat| beat.to_le_bytes()).skip(skew);
        bytes.iter_mut().zip(flat).for_each(|(to, from)| *to = from);
        Ok(())
    }

    fn read_burst(&mut self, address: u64, beats: usize, got: &mut Vec<u128>) -> Result<(), BusError> {
        self.data = DataDrive { read_address: Some((address, (beats - 1) as u8)), ..Default::default() };
        let (mut left, mut waited, mut refused) = (beats, 0, false);
        while waited < self.bound {
            let see = self.cycle(P::data);
            waited += 1;
            if see.read_address_ready {
                self.data.read_address = None;
            }
            if let Some((data, code)) = see.read {
                got.push(data);
                refused |= code != 0;
                left -= 1;
                waited = 0;
                if left == 0 {
                    self.data = DataDrive::default();
                    return if refused { Err(BusError::Refused { address }) } else { Ok(()) };
                }
            }
        }
        self.data = DataDrive::default();
        Err(BusError::NoAnswer { address, cycles: self.bound })
    }

    /// Rings the doorbell.
    ///
    /// # Errors
    /// If the control port does not answer.
    pub fn launch(&mut self) -> Result<(), BusError> {
        self.write_register(register::CONTROL, register::CONTROL_DOORBELL)
    }
}

/// Beats of the next burst: at most 256, and none beyond a boundary of 4 KiB, which no AXI burst may cross.
fn burst_beats(address: u64, left: usize) -> usize {
    let to_boundary = (BOUNDARY - address % BOUNDARY) as usize / BEAT_BYTES;
    left.min(MAX_BURST).min(to_boundary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_burst_crosses_a_boundary_and_all_beats_are_sent() {
        for first in [0u64, 16, 4080, 4096, 8176, 5 << 32] {
            for beats in [1usize, 2, 255, 256, 257, 1000] {
                let (mut address, mut left) = (first, beats);
                while left > 0 {
                    let count = burst_beats(address, left);
                    assert!((1..=256).contains(&count));
                    let last = address + (count * BEAT_BYTES) as u64 - 1;
                    assert_eq!(address / BOUNDARY, last / BOUNDARY);
                    (address, left) = (last + 1, left - count);
                }
            }
        }
    }
}
