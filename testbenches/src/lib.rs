//! Whole-system tests, cross-tool tests and benchmarks.
//!
//! * [`case`]: random kernels of the tiny preset: rows, pages, command lists
//! * [`twin`]: the RTL and the golden machine side by side: the same writes, the same launches, outcomes and bits compared
#![forbid(unsafe_code)]

pub mod case;
pub mod twin;

pub use case::Case;
pub use twin::{Ending, Twin};
