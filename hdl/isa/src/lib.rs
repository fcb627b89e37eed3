//! What software may know of Braid's hardware: geometry, commands, memory map, registers, status codes and counters.
//!
//! The crate is the contract between the RTL (`braid-hdl`), the firmware above it and the golden machine beside it; all of
//! them read the same tables, and `docs/commands.md` is checked against them.
#![no_std]
#![forbid(unsafe_code)]

pub mod command;
pub mod counter;
pub mod geometry;
pub mod layout;
pub mod register;
pub mod status;

pub use command::{Command, DecodeError, Operation};
pub use counter::Counter;
pub use geometry::{BEAT_BYTES, Geometry, LANES, RANGES_PER_PASS, TILE};
pub use status::{Code, Status};
