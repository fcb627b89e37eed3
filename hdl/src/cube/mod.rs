//! The CUBE: eight PEs around a shared SRAM.
//!
//! * [`distributor`]: the command list onto the PEs
//! * [`multicast`]: one read of Q for all PEs
//! * [`arbiter`]: outputs of the PEs onto the SRAM's write port
//! * [`die`]: the CUBE itself

pub mod arbiter;
pub mod die;
pub mod distributor;
#[cfg(test)]
mod distributor_tests;
pub mod multicast;
#[cfg(test)]
mod multicast_tests;

pub use die::Cube;
