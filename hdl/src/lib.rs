//! Synthesizable rust-hdl blocks of the Braid attention array.
//!
//! * [`number`]: conversions, dot-product unit, fp32 units, exp2, reciprocal
//! * [`pe`]: the processing element
#![forbid(unsafe_code)]
// The hdl_gen and LogicBlock macros expand to code that trips these.
#![allow(clippy::new_without_default, missing_docs)]

pub mod memory;
pub mod model;
pub mod number;
pub mod pe;
#[cfg(test)]
mod testing;
