//! Errors of lowering and simulation. Every error names the full path of the place and, where the design must change, the way out.

use thiserror::Error;

/// Why a block could not be lowered, or a simulation request could not be served.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SimError {
    /// A construct whose meaning rust-hdl's kernel text does not carry, or that Braid does not simulate.
    #[error("{path}: {what}; {way_out}")]
    Unsupported {
        /// Block in which the construct stands.
        path: String,
        /// The construct.
        what: String,
        /// What to write instead.
        way_out: String,
    },
    /// A kernel uses a name that is no signal, constant field or enum variant of the block.
    #[error("{path}: `{name}` is no signal of the block; a const or const generic used as a value needs a `Constant` field")]
    UnknownName {
        /// Block in which the name stands.
        path: String,
        /// The name, as rust-hdl reports it.
        name: String,
    },
    /// Widths that cannot be reconciled, or that the kernel text does not carry.
    #[error("{path}: {what}; write the value to a Local of the exact width first")]
    Width {
        /// Block in which the expression stands.
        path: String,
        /// What does not fit.
        what: String,
    },
    /// A signal that is read, or an output or child input, without any driver.
    #[error("{path} is never driven")]
    Undriven {
        /// The signal.
        path: String,
    },
    /// A signal with two drivers, or a write to something that cannot be written.
    #[error("{path} has more than one driver")]
    MultiplyDriven {
        /// The signal.
        path: String,
    },
    /// A signal that is not assigned on every path through the kernel.
    #[error("{path} is a latch: it keeps its value on a path without assignment; assign a default first")]
    Latch {
        /// The signal.
        path: String,
    },
    /// A signal that depends on itself within one clock cycle.
    #[error("combinational loop through {path}")]
    CombinationalLoop {
        /// A signal on the loop.
        path: String,
    },
    /// A clock that is not a plain copy of a clock input of the top.
    #[error("{path}: the clock is not a direct copy of a clock input of the top; derive enables instead of clocks")]
    DerivedClock {
        /// The register or memory.
        path: String,
    },
    /// No signal, memory or clock of this path exists.
    #[error("no {kind} `{path}` in the design")]
    NotFound {
        /// What was looked for: signal, memory, clock.
        kind: &'static str,
        /// The path as given.
        path: String,
    },
    /// `step` on a design without a clock, or an access of the wrong shape.
    #[error("{what}")]
    Misuse {
        /// What was wrong.
        what: String,
    },
    /// The code generator refused.
    #[error("code generation failed: {what}")]
    CodeGeneration {
        /// The generator's message.
        what: String,
    },
}

impl SimError {
    pub(crate) fn unsupported(path: &str, what: impl Into<String>, way_out: impl Into<String>) -> Self {
        Self::Unsupported { path: path.into(), what: what.into(), way_out: way_out.into() }
    }
    pub(crate) fn width(path: &str, what: impl Into<String>) -> Self {
        Self::Width { path: path.into(), what: what.into() }
    }
}
