//! What can go wrong, and whose mistake it is.

use std::path::PathBuf;

use braid_devices::OpenError;
use braid_runtime::{ProblemError, SessionError};
use braid_sim::wave::WaveError;
use thiserror::Error;

/// An error of the program; one line.
#[derive(Debug, Error)]
pub(crate) enum Error {
    /// A file that cannot be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A file that cannot be written.
    #[error("cannot write {path}: {source}", path = path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// Not a safetensors file.
    #[error("{name} is not a safetensors file: {reason}")]
    Format {
        /// File.
        name: String,
        /// Why not.
        reason: String,
    },
    /// Not a command list.
    #[error("{name} is not a command list: {bytes} bytes are not a multiple of 16")]
    CommandList {
        /// File.
        name: String,
        /// Its length.
        bytes: usize,
    },
    /// A tensor that is missing or has the wrong type or shape.
    #[error("{name}: {reason}")]
    Tensor {
        /// File.
        name: String,
        /// What is wrong.
        reason: String,
    },
    /// A problem that makes no sense.
    #[error("{name}: {source}")]
    Problem {
        /// File, or "the options".
        name: String,
        /// Why.
        source: ProblemError,
    },
    /// Options that make no sense.
    #[error("{0}")]
    Options(String),
    /// A machine that cannot be built.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A waveform that could not be written to its end.
    #[error("{0}; the waveform ends before the run does")]
    Dump(WaveError),
    /// A run that failed.
    #[error(transparent)]
    Run(#[from] SessionError),
}

impl Error {
    /// Exit status: 2 for a user's mistake, 1 for a machine that failed.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Error::Run(SessionError::Device(_)) => 1,
            _ => 2,
        }
    }
}
