//! Waveforms: VCD and FST dumps of chosen scopes, cycles and memory words, of any engine.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use braid_sim::{Design, Engine, wave::{Dump, Format, Selection, Signals, Window}};
//! # use rust_hdl::prelude::{Bits, SynchronousFIFO};
//! let design = Design::lower(&SynchronousFIFO::<Bits<8>, 3, 4, 1>::default())?;
//! let mut sim = design.compile_visible()?;
//! let signals = Signals::of(&design, &mut sim, &Selection::default())?;
//! let mut dump = Dump::create("run.fst".as_ref(), Format::Fst, signals, Window::default())?;
//! for cycle in 0..100 {
//!     dump.sample(cycle, &mut sim)?;
//!     sim.step();
//! }
//! dump.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! ```text
//! Design --signals--> variables, distinct values, a watch of the engine
//!                         |
//! engine --sample--> words of the cycle, compared with the last ones     (caller's thread)
//!                         |  changed words
//!                     ring buffer of the last cycles, if asked for       (writer's thread)
//!                         |
//!                     VCD or FST
//! ```
//!
//! A cycle lasts 10 ns: at its start the clocks rise and every value is as it settles in that cycle; in its middle the clocks fall. The first cycle
//! written has every value. The bytes depend on the simulation alone: no dates, no tool versions.
//!
//! What is in the file when the process dies: all that was recorded if a `Dump` is dropped (also by a panic) or its [`Closer`] used (Ctrl-C); after `kill -9`
//! all up to the last flush. Flushes come at every power of two of the cycles written, and after every [`FLUSH_CHANGES`] changes.

mod block;
mod dump;
mod fst;
mod signals;
mod sink;
mod vcd;
mod writer;

pub use dump::{Closer, Dump, Window};
pub use signals::{MemoryWords, Selection, Signals, Variable};
pub use writer::FLUSH_CHANGES;

use crate::SimError;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Nanoseconds of a cycle.
pub const CYCLE_NANOSECONDS: u64 = 10;

/// File format of a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Value change dump (IEEE 1364-2005, section 18): text. Beside an enum stands a string variable with the name of its value.
    Vcd,
    /// Fast signal trace of GTKWave: compressed, enums with their names.
    Fst,
}

impl Format {
    /// The format that a file's name asks for; by default VCD.
    pub fn of(path: &Path) -> Self {
        if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("fst")) { Self::Fst } else { Self::Vcd }
    }
}

/// A dump that cannot be made or continued.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WaveError {
    /// The file.
    #[error("cannot write {path}: {source}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// No such scope.
    #[error("no scope or signal '{scope}' in the design; scopes of the top: {known}")]
    Scope {
        /// As asked for.
        scope: String,
        /// Scopes right below the top.
        known: String,
    },
    /// No such memory, or no such words in it.
    #[error("no memory words '{words}' in the design: {reason}")]
    Memory {
        /// As asked for.
        words: String,
        /// What is wrong.
        reason: String,
    },
    /// The engine refused.
    #[error(transparent)]
    Engine(#[from] SimError),
}
