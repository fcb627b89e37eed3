//! Lowering: rust-hdl block to [`Design`].
//!
//! A [`Probe`](rust_hdl::core::probe::Probe) walks the tree once. A block's structure (kernel text, atoms, children's modules) is
//! digested as it closes; the first of each kind becomes a module, whose kernel is resolved and typed exactly once ([`kernel`]);
//! every later one is an instance. Registers and memories, which rust-hdl writes as Verilog text, are recognised in [`primitive`].
//!
//! The kernel text loses some constructs that compile in Rust: a match guard (`A if g =>`) and an inclusive range (`0..=n`) cannot be told
//! from the plain forms. Do not use them; write a nested `if` and an exclusive range.

mod capture;
mod kernel;
mod literal;
mod name;
mod primitive;

use crate::SimError;
use crate::netlist::Design;
use rust_hdl::core::block::Block;

impl Design {
    /// Lowers a block, which becomes the module `top`.
    ///
    /// # Errors
    /// What the kernel text cannot express, unknown names, width problems, multiply driven signals: each with its path.
    pub fn lower(block: &dyn Block) -> Result<Self, SimError> {
        capture::capture(block)
    }
}

/// Limbs of a rust-hdl literal (32 bits, lowest first); a literal without a readable value gives none.
pub(crate) fn limbs_of(value: &rust_hdl::core::ast::VerilogLiteral, width: usize) -> Vec<u32> {
    literal::parse(&format!("{value:x}"), width).unwrap_or_default()
}
