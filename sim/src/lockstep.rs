//! Lock step: several simulations of one design with the same stimulus; the first cycle in which a register differs is reported with the
//! register's path and both values.
//!
//! [`RustHdl`] runs rust-hdl's own simulator, the reference of meaning.

use crate::engine::Engine;
use crate::lower::limbs_of;
use rust_hdl::core::ast::Verilog;
use rust_hdl::core::atom::{Atom, AtomKind};
use rust_hdl::core::block::Block;
use rust_hdl::core::probe::Probe;
use std::collections::HashMap;
use thiserror::Error;

/// Two simulations that should agree do not.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("cycle {cycle}: register {register} is {left:x?} in {left_name} and {right:x?} in {right_name}")]
pub struct Divergence {
    /// Cycle after which they differ.
    pub cycle: u64,
    /// Path of the first register that differs.
    pub register: String,
    /// First simulation.
    pub left_name: String,
    /// Its value, 64 bits a word, lowest first.
    pub left: Vec<u64>,
    /// Second simulation.
    pub right_name: String,
    /// Its value.
    pub right: Vec<u64>,
}

/// Steps all engines `cycles` times with the same stimulus; compares the digest of every register each cycle.
///
/// # Errors
/// The first divergence from the first engine.
pub fn run(
    engines: &mut [(&str, &mut dyn Engine)],
    cycles: u64,
    mut stimulus: impl FnMut(u64, &mut dyn Engine),
) -> Result<(), Box<Divergence>> {
    for cycle in 0..cycles {
        for (_, engine) in engines.iter_mut() {
            stimulus(cycle, *engine);
            engine.step();
        }
        let Some(((left_name, left), others)) = engines.split_first() else { return Ok(()) };
        let digest = left.digest();
        for (right_name, right) in others {
            if right.digest() != digest {
                difference(cycle, left_name, &left.registers(), right_name, &right.registers())?;
            }
        }
    }
    Ok(())
}

fn difference(
    cycle: u64,
    left_name: &str,
    left: &[(String, Vec<u64>)],
    right_name: &str,
    right: &[(String, Vec<u64>)],
) -> Result<(), Box<Divergence>> {
    let right: HashMap<&str, &Vec<u64>> = right.iter().map(|r| (r.0.as_str(), &r.1)).collect();
    for (register, value) in left {
        let other = right.get(register.as_str()).map(|v| (*v).clone()).unwrap_or_default();
        if *value != other {
            return Err(Box::new(Divergence {
                cycle,
                register: register.clone(),
                left_name: left_name.into(),
                left: value.clone(),
                right_name: right_name.into(),
                right: other,
            }));
        }
    }
    Ok(())
}

/// Sets a block's clock input.
type SetClock<B> = Box<dyn Fn(&mut B, bool)>;

/// rust-hdl's own simulator over a block with one clock.
pub struct RustHdl<B> {
    /// The block; set its inputs' `next` between steps.
    pub block: B,
    clock: SetClock<B>,
    registers: Vec<String>,
}

impl<B> std::fmt::Debug for RustHdl<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RustHdl").field("registers", &self.registers.len()).finish()
    }
}

impl<B: Block> RustHdl<B> {
    /// Takes a block; `clock` sets its clock input.
    pub fn new(mut block: B, clock: impl Fn(&mut B, bool) + 'static) -> Self {
        block.connect_all();
        let mut names = Names::default();
        block.accept("top", &mut names);
        Self { block, clock: Box::new(clock), registers: names.registers }
    }

    /// Evaluates until nothing changes; false if the block does not settle.
    pub fn settle(&mut self) -> bool {
        for _ in 0..1000 {
            self.block.update_all();
            if !self.block.has_changed() {
                return true;
            }
        }
        false
    }

    /// Settles, then one rising and one falling edge; false if the block does not settle.
    pub fn step(&mut self) -> bool {
        let before = self.settle();
        (self.clock)(&mut self.block, true);
        let high = self.settle();
        (self.clock)(&mut self.block, false);
        before & high & self.settle()
    }

    /// Path and value of every register, as [`Engine::registers`] spells them.
    pub fn registers(&self) -> Vec<(String, Vec<u64>)> {
        let mut values = Values::default();
        self.block.accept("top", &mut values);
        self.registers.iter().filter_map(|r| values.values.remove(r).map(|v| (r.clone(), v))).collect()
    }

    /// Path and value of every settled signal but clocks, constants and the ports of memories and registers, spelled for [`Engine::signal`].
    pub fn signals(&self) -> Vec<(String, Vec<u64>)> {
        let mut signals = Signals::default();
        self.block.accept("top", &mut signals);
        signals.values
    }

    /// Compares every register with an engine's.
    ///
    /// # Errors
    /// The first register that differs.
    pub fn compare(&self, engine: &dyn Engine) -> Result<(), Box<Divergence>> {
        difference(engine.cycles(), "rust-hdl", &self.registers(), "the engine", &engine.registers())
    }
}

/// Paths of register outputs.
#[derive(Default)]
struct Names {
    path: Vec<String>,
    clocked: Vec<bool>,
    registers: Vec<String>,
}

impl Probe for Names {
    fn visit_start_scope(&mut self, name: &str, node: &dyn Block) {
        self.path.push(name.into());
        self.clocked.push(matches!(node.hdl(), Verilog::Custom(text) if text.contains("posedge")));
    }
    fn visit_end_scope(&mut self, _: &str, _: &dyn Block) {
        self.path.pop();
        self.clocked.pop();
    }
    fn visit_atom(&mut self, name: &str, atom: &dyn Atom) {
        if self.clocked.last() == Some(&true) && atom.kind() == AtomKind::OutputParameter {
            self.registers.push(format!("{}${name}", self.path[1..].join("$")));
        }
    }
}

/// Values of all outputs.
#[derive(Default)]
struct Values {
    path: Vec<String>,
    values: HashMap<String, Vec<u64>>,
}

impl Probe for Values {
    fn visit_start_scope(&mut self, name: &str, _: &dyn Block) {
        self.path.push(name.into());
    }
    fn visit_end_scope(&mut self, _: &str, _: &dyn Block) {
        self.path.pop();
    }
    fn visit_atom(&mut self, name: &str, atom: &dyn Atom) {
        if atom.kind() == AtomKind::OutputParameter && self.path.len() > 1 {
            self.values.insert(format!("{}${name}", self.path[1..].join("$")), words_of(atom));
        }
    }
}

/// Value of an atom, 64 bits a word, lowest first.
fn words_of(atom: &dyn Atom) -> Vec<u64> {
    let limbs = limbs_of(&atom.verilog(), atom.bits());
    limbs.chunks(2).map(|c| u64::from(c[0]) | u64::from(c.get(1).copied().unwrap_or(0)) << 32).collect()
}

/// Values of the signals of all kernels, interfaces included.
#[derive(Default)]
struct Signals {
    path: Vec<String>,
    kernels: Vec<bool>,
    values: Vec<(String, Vec<u64>)>,
}

impl Probe for Signals {
    fn visit_start_scope(&mut self, name: &str, node: &dyn Block) {
        self.path.push(name.into());
        self.kernels.push(matches!(node.hdl(), Verilog::Combinatorial(_)));
    }
    fn visit_end_scope(&mut self, _: &str, _: &dyn Block) {
        self.path.pop();
        self.kernels.pop();
    }
    fn visit_start_namespace(&mut self, name: &str, _: &dyn Block) {
        self.path.push(name.into());
    }
    fn visit_end_namespace(&mut self, _: &str, _: &dyn Block) {
        self.path.pop();
    }
    fn visit_atom(&mut self, name: &str, atom: &dyn Atom) {
        let value = matches!(atom.kind(), AtomKind::InputParameter | AtomKind::OutputParameter | AtomKind::LocalSignal);
        if value && self.kernels.last() == Some(&true) && atom.descriptor().name != "clock" {
            let prefix: String = self.path[1..].iter().flat_map(|p| [p.as_str(), "$"]).collect();
            self.values.push((prefix + name, words_of(atom)));
        }
    }
}
