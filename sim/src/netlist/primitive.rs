//! Bodies that rust-hdl writes as Verilog text rather than as a kernel.

use super::SignalRef;

/// A register on the rising edge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Register {
    /// Data input.
    pub d: SignalRef,
    /// Output.
    pub q: SignalRef,
    /// Clock input.
    pub clock: SignalRef,
    /// Initial value, 32 bits a limb, lowest first.
    pub init: Vec<u32>,
}

/// A memory with one read port and at most one write port. A read in the cycle of a write to the same address returns the old word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    /// Address input of the read port; the memory holds 2^(its width) words.
    pub read_address: SignalRef,
    /// Data output; its width is the width of a word.
    pub read_data: SignalRef,
    /// Clock of the read port; `None`: the read is combinational.
    pub read_clock: Option<SignalRef>,
    /// Write port, absent in ROMs.
    pub write: Option<WritePort>,
    /// Initial contents that differ from `default`: address, and the word in 32-bit limbs, lowest first.
    pub init: Vec<(usize, Vec<u32>)>,
    /// Word at every other address.
    pub default: Vec<u32>,
}

/// Write port of a [`Memory`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WritePort {
    /// Address.
    pub address: SignalRef,
    /// Data.
    pub data: SignalRef,
    /// One-bit enable.
    pub enable: SignalRef,
    /// Clock.
    pub clock: SignalRef,
}
