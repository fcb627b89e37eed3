//! The processing element.
//!
//! * [`queue`]: four-place queue of registers
//! * [`decoder`]: checks a command and splits it into fields
//! * [`watchdog`]: bounds every wait

pub mod decoder;
pub mod queue;
pub mod watchdog;
