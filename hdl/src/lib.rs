//! Synthesizable rust-hdl blocks of the Braid attention array.
//!
//! * [`number`]: conversions, dot-product unit, fp32 units, exp2, reciprocal
//! * [`memory`]: FIFO, shared SRAM, links
//! * [`pe`]: the processing element
//! * [`cube`]: eight PEs around a shared SRAM
//! * [`sip`]: the package with its host port, and [`preset`]s of it
//! * [`model`]: what stands around the synthesizable top, in plain Rust
#![forbid(unsafe_code)]
// The hdl_gen and LogicBlock macros expand to code that trips these.
#![allow(clippy::new_without_default, missing_docs)]

pub mod cube;
pub mod memory;
pub mod model;
pub mod number;
pub mod pe;
pub mod preset;
pub mod sip;
#[cfg(test)]
mod testing;
