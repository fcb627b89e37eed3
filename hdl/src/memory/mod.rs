//! Memories and queues.

pub mod fifo;

pub use fifo::Fifo;
