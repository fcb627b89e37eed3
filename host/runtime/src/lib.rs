//! Launches: paged KV onto the PEs, query rows stacked to Q_cmb, one kernel a KV head, results read back.
//!
//! * [`cache`]: contexts as page tables over one pool of pages
//! * [`device`]: what a machine offers, simulated or not
//! * [`problem`]: an attention problem in 16-bit elements, checked
//! * [`plan`]: where pages, rows, tables and commands go
//! * [`execute`](mod@execute): loads, launches, waits with a bound, reads
//! * [`report`]: cycles, utilization and counters of a run
#![forbid(unsafe_code)]

pub mod cache;
pub mod device;
pub mod execute;
pub mod plan;
pub mod problem;
pub mod report;

pub use device::{Bounds, Completion, Device, DeviceError};
pub use execute::{Load, Options, Outcome, Progress, RunError, execute};
pub use problem::{Element, Problem, ProblemError, Tensor};
pub use report::Report;
