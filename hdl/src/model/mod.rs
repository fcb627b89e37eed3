//! What stands around the synthesizable top: models in plain Rust, driven by any simulator.
//!
//! * [`channel`]: the memory behind a PE's channel
//! * [`pins`]: the SIP's pins, and rust-hdl's own simulator behind them
//! * [`bench`](mod@bench): host bus master and memory around the pins

pub mod bench;
pub mod channel;
pub mod pins;

pub use bench::{Bench, BusError};
pub use channel::{ChannelInputs, ChannelOutputs, ChannelTiming, MemoryChannel};
pub use pins::{RustHdlPins, SipPins};
