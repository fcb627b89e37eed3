//! Bit-exact golden model of the Braid attention array.
//!
//! Data flows through the modules in this order; `docs/numbers.md` defines each of them to the bit.
//!
//! * [`format`](mod@format): fp16, bf16 and the internal operand format
//! * [`dot`](mod@dot): the dot-product unit
//! * [`fp32`]: multiply, scaled add, maximum, ceil, shift count, reciprocal
//! * [`exp2`](mod@exp2): the exponential
//! * [`attention`]: row states, KV tiles, merging, the whole sharded kernel
//! * [`machine`]: the whole device, as far as software sees it: memories, command lists, status codes
//! * [`stimulus`]: seeded and special values for tests of anything that is compared with this crate
#![forbid(unsafe_code)]

pub mod attention;
pub mod dot;
pub mod exp2;
pub mod format;
pub mod fp32;
pub mod machine;
pub mod stimulus;
