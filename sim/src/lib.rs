//! rust-hdl block to typed netlist, and what the netlist feeds: simulation and checks.
//!
//! ```text
//! rust-hdl block --lower--> Design (typed, hierarchical, deduplicated)
//!                              |
//!                            graph   (word operations of each module, optimised)
//!                              |
//!                            plan    (identical blocks as lanes, schedule, memory layout, loops found)
//!                            /   \
//!                 interpreter     compiled engine
//! Design --verilog--> one Verilog module per distinct block
//! ```
//!
//! A simulation in three lines: `let design = Design::lower(&block)?; let mut sim = design.compile()?; sim.step();`. The `examples/`
//! folder shows a counter, a FIFO and a filter.
//!
//! Modules in the order in which data flows: [`netlist`], lowering, graph, plan, [`engine`], [`wave`], [`lockstep`], [`verilog`].

pub mod engine;
mod error;
mod graph;
pub mod lockstep;
mod lower;
pub mod netlist;
mod plan;
pub mod verilog;
pub mod wave;

pub use engine::{ClockId, Engine, MemoryId, SignalId};
pub use error::SimError;
pub use netlist::Design;
