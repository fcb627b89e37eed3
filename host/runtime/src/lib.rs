//! Launches: paged KV onto the PEs, query rows stacked to Q_cmb, one kernel a KV head, results read back.
//!
//! * [`cache`]: contexts as page tables over one pool of pages
//! * [`batch`]: query rows of several contexts over one numbering of their pages
//! * [`device`]: what a machine offers, simulated or not
//! * [`layout`]: where K and V of every layer and KV head lie in memory
//! * [`plan`]: where rows, tables and commands of a launch go
//! * [`session`]: contexts on a device: append, write, fork, attend
//! * [`problem`]: one attention over dense tensors, checked
//! * [`execute`](mod@execute): loads, launches, waits with a bound, reads
//! * [`report`]: cycles, utilization and counters of a run
#![forbid(unsafe_code)]

pub mod batch;
pub mod cache;
pub mod device;
pub mod execute;
pub mod layout;
pub mod plan;
pub mod problem;
pub mod report;
pub mod session;

pub use batch::{BatchError, Visible, causal};
pub use device::{Bounds, Completion, Device, DeviceError};
pub use execute::{Outcome, Progress, execute};
pub use problem::{Element, Problem, ProblemError, Tensor};
pub use report::Report;
pub use session::{KvShape, Load, Options, Output, Query, Session, SessionError};
