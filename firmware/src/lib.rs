//! Kernels of the Braid attention array as command lists.
//!
//! * [`row_table`]: the KV ranges that rows see, in the hardware's form
//! * [`kernel`]: fused grouped-query attention as composite or primitive commands
//! * [`disassemble`](mod@disassemble): command lists as text
//! * [`output`]: finished rows out of the output area
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod disassemble;
pub mod kernel;
pub mod output;
pub mod row_table;

pub use disassemble::disassemble;
pub use kernel::{FusedAttention, Issue, Pass, Run};
