//! Memories, queues and links.

pub mod fifo;
pub mod link;
pub mod sram;

pub use fifo::Fifo;
pub use link::Link;
pub use sram::Sram;
