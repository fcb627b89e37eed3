//! The processing element.
//!
//! * [`row_unit`]: one row's operands, dot-product unit and state memory
//! * [`gemm`]: the GEMM sequencer that drives all row units
//! * [`math`]: the scalar softmax pipeline
//! * [`mask`]: which positions of a tile the rows see
//! * [`datapath`]: these together, with the K and V tiles

pub mod datapath;
pub mod gemm;
pub mod mask;
pub mod math;
pub mod row_unit;

pub use datapath::Datapath;

#[cfg(test)]
mod datapath_tests;
