//! What a file format has to do.

use std::io;

/// Writes one format. Times never decrease; a value is 64 bits a limb, lowest first.
pub(super) trait Sink: Send {
    /// Moves on to a time, in nanoseconds.
    fn time(&mut self, time: u64) -> io::Result<()>;
    /// A value changes.
    fn change(&mut self, value: usize, limbs: &[u64]) -> io::Result<()>;
    /// Makes everything so far readable.
    fn flush(&mut self) -> io::Result<()>;
    /// Drops what could not be written whole, after an error.
    fn repair(&mut self);
}
