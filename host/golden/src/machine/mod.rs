//! The whole device, as far as software sees it: it executes the command lists of `docs/commands.md` from the same memory
//! bytes as the RTL and leaves the same output bits and the same failures. It knows no time.
//!
//! * `memory`: CUBE SRAM and channel memory
//! * `pe`: what each command does
//! * `launch`: command distribution, the `wait` flag, merge messages, statuses
//!
//! What the command set leaves unspecified (primitive commands on tile buffers that nobody loaded, a row table that was never loaded) is defined here, but need not
//! equal the RTL. Time-outs occur where a partner never comes; those that depend on queue depths or on the order of multicast requests do not.

mod launch;
mod memory;
mod pe;

use braid_isa::geometry::BEAT_BYTES;
use braid_isa::layout::HostAddress;
use braid_isa::{Counter, Geometry};

pub use launch::Outcome;
use memory::Memory;
use pe::Pe;

/// Byte that channel memory holds until it is written: NaN in both element formats, so that a leak shows.
const POISON: u8 = 0xFF;

/// A host access that the bus refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no memory for {length} bytes at {address:?}")]
pub struct AccessError {
    /// First byte.
    pub address: HostAddress,
    /// Bytes.
    pub length: usize,
}

/// A device of any geometry.
#[derive(Clone, Debug)]
pub struct Machine {
    geometry: Geometry,
    /// Shared SRAM of every CUBE.
    srams: Vec<Memory>,
    /// Memory behind every PE's channel.
    channels: Vec<Memory>,
    pes: Vec<Pe>,
}

impl Machine {
    /// A device after power-up, with `channel_beats` beats of memory behind every PE's channel. Memory is held only as far as it is written.
    pub fn new(geometry: Geometry, channel_beats: u32) -> Machine {
        Machine {
            srams: vec![Memory::new(geometry.sram_words, 0); geometry.cubes],
            channels: vec![Memory::new(channel_beats as usize, POISON); geometry.pes()],
            pes: (0..geometry.pes()).map(|index| Pe::new(index, &geometry)).collect(),
            geometry,
        }
    }

    /// Sizes of the array.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Beats of memory behind every channel.
    pub fn channel_beats(&self) -> u32 {
        self.channels.first().map_or(0, |channel| channel.beats() as u32)
    }

    /// Writes bytes; any alignment.
    pub fn write(&mut self, address: HostAddress, data: &[u8]) -> Result<(), AccessError> {
        let (memory, byte) = match address {
            HostAddress::Sram { cube, byte } => (self.srams.get_mut(cube), byte),
            HostAddress::Channel { pe, byte } => (self.channels.get_mut(pe), byte),
        };
        match memory {
            Some(memory) if memory.holds(byte.into(), data.len() as u64) => {
                memory.write(byte as usize, data);
                Ok(())
            }
            _ => Err(AccessError { address, length: data.len() }),
        }
    }

    /// Reads bytes; any alignment.
    pub fn read(&self, address: HostAddress, data: &mut [u8]) -> Result<(), AccessError> {
        let (memory, byte) = match address {
            HostAddress::Sram { cube, byte } => (self.srams.get(cube), byte),
            HostAddress::Channel { pe, byte } => (self.channels.get(pe), byte),
        };
        match memory {
            Some(memory) if memory.holds(byte.into(), data.len() as u64) => {
                memory.read(byte as usize, data);
                Ok(())
            }
            _ => Err(AccessError { address, length: data.len() }),
        }
    }

    /// Rings the doorbell and runs to the end: every CUBE executes `counts[cube]` commands from SRAM word `base`; a CUBE without a count takes
    /// no part. A failed launch needs no reset here.
    pub fn launch(&mut self, base: u32, counts: &[u32]) -> Outcome {
        launch::run(self, base, counts)
    }

    /// An event counter of the last launch. `None` for counters of cycles and of transfers, which depend on time or on how
    /// the hardware schedules: this model has [`Counter::Commands`], [`Counter::TilesComputed`], [`Counter::TilesSkipped`] and
    /// [`Counter::MergeRounds`].
    ///
    /// # Panics
    /// If the PE does not exist.
    pub fn counter(&self, pe: usize, counter: Counter) -> Option<u64> {
        let pe = &self.pes[pe];
        match counter {
            Counter::Commands => Some(pe.commands().into()),
            Counter::TilesComputed => Some(pe.tiles_computed),
            Counter::TilesSkipped => Some(pe.tiles_skipped),
            Counter::MergeRounds => Some(pe.merge_rounds),
            _ => None,
        }
    }
}

/// Byte offset of a beat.
fn byte_of(beat: usize) -> usize {
    beat * BEAT_BYTES
}
