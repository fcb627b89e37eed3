//! Number units. `docs/numbers.md` defines each of them to the bit; the golden model is written from the same page.
//!
//! All are pipelines without a valid bit: a result appears `LATENCY` clock edges after its inputs, one a cycle. [`Reciprocal32`] alone is
//! sequential.

pub mod compare;
pub mod convert;
pub mod dot_lane;
pub mod dot_product;
pub mod exp2;
pub mod multiply32;
pub mod reciprocal32;
pub mod scaled_add32;

pub use compare::{Ceil32, Max32, ShiftCount};
pub use convert::{ToOperand16, ToOperand32};
pub use dot_lane::{AccumulatorLane, DotLane};
pub use dot_product::DotProduct;
pub use exp2::Exp2;
pub use multiply32::Multiply32;
pub use reciprocal32::Reciprocal32;
pub use scaled_add32::ScaledAdd32;

#[cfg(test)]
mod tests;
