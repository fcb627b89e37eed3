//! What stands around the synthesizable top: models in plain Rust, driven by any simulator.
//!
//! * [`channel`]: the memory behind a PE's channel

pub mod channel;

pub use channel::{ChannelInputs, ChannelOutputs, ChannelTiming, MemoryChannel};
