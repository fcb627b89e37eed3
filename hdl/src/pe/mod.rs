//! The processing element, in the order in which work flows through it.
//!
//! * [`queue`], [`decoder`]: commands in, checked and split into fields
//! * [`control`]: executes one command after the other, and hands pages to the stream
//! * [`page_stream`], [`dma`]: pages into K and V tiles
//! * [`front`], [`mask`]: which (page, row tile) pairs count; Q tiles in
//! * [`scoreboard`]: jobs onto the engines
//! * [`datapath`]: [`row_unit`]s, [`gemm`] sequencer, [`math`] pipeline, [`state_port`] of the row state
//! * [`final_tiles`]: row tiles that have seen every page
//! * [`merge`], [`merge_walk`], [`merge_row`], [`ipcq`]: row states between PEs
//! * [`store`], [`store_divider`]: normalised rows out
//! * [`counters`], [`watchdog`]: what every cycle was, and a bound on every wait
//! * [`element`]: the PE itself

pub mod control;
pub mod counters;
pub mod datapath;
pub mod decoder;
pub mod dma;
pub mod element;
pub mod final_tiles;
pub mod front;
pub mod gemm;
pub mod ipcq;
pub mod mask;
pub mod math;
pub mod merge;
pub mod merge_row;
pub mod merge_walk;
pub mod page_stream;
pub mod queue;
pub mod row_unit;
pub mod scoreboard;
pub mod state_port;
pub mod store;
pub mod store_divider;
pub mod watchdog;

pub use datapath::Datapath;
pub use element::ProcessingElement;

#[cfg(test)]
mod array_bench;
#[cfg(test)]
mod array_tests;
#[cfg(test)]
mod datapath_tests;
#[cfg(test)]
mod dma_tests;
#[cfg(test)]
mod element_tests;
#[cfg(test)]
mod merge_tests;
#[cfg(test)]
mod store_tests;
