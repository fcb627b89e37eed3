//! Runs one tree in three simulators and names the first difference.

use braid_sim::lockstep::RustHdl;
use braid_sim::{Design, Engine};
use rust_hdl::prelude::*;

/// Random input values.
#[derive(Debug)]
pub struct Stimulus(u64);

impl Stimulus {
    /// Values from a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A value of `width` bits, 64 a word, lowest first: often all zeros, all ones, a single bit, a small number.
    pub fn words(&mut self, width: usize) -> Vec<u64> {
        let kind = self.next() % 8;
        let bit = (self.next() % width as u64) as usize;
        (0..width.div_ceil(64))
            .map(|i| {
                let word = match kind {
                    0 => 0,
                    1 => u64::MAX,
                    2 => u64::from(i == bit / 64) << (bit % 64),
                    3 => !(u64::from(i == bit / 64) << (bit % 64)),
                    4 if i == 0 => self.next() % 8,
                    4 => 0,
                    _ => self.next(),
                };
                let left = width - 64 * i;
                if left < 64 { word & ((1 << left) - 1) } else { word }
            })
            .collect()
    }
}

/// A value from words of 64 bits, lowest first; bits past the width are dropped.
pub fn bits_of<const N: usize>(words: &[u64]) -> Bits<N> {
    (0..N).fold(Bits::<N>::default(), |acc, i| acc.replace_bit(i, words[i / 64] >> (i % 64) & 1 == 1))
}

/// Sets every input of a block to a random value; path and value (64 bits a word, lowest first) of each.
pub type Drive<B> = fn(&mut B, &mut Stimulus) -> Vec<(&'static str, Vec<u64>)>;

/// One tree of random blocks.
pub struct Case {
    /// Seed of the generator.
    pub seed: u64,
    run: Box<dyn Fn(u64) -> Result<Summary, String>>,
}

/// What a run covered.
#[derive(Debug, Default, Clone, Copy)]
pub struct Summary {
    /// Signals compared.
    pub signals: usize,
    /// Registers compared.
    pub registers: usize,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Case").field("seed", &self.seed).finish_non_exhaustive()
    }
}

impl Case {
    /// A case: how to set the clock of its top, and how to set its inputs.
    pub fn new<B: Block + Default + 'static>(seed: u64, clock: fn(&mut B, bool), drive: Drive<B>) -> Self {
        Self { seed, run: Box::new(move |cycles| run(seed, cycles, clock, drive)) }
    }

    /// Runs the case.
    ///
    /// # Errors
    /// Seed, cycle, signal and both values of the first difference; a design that is refused.
    pub fn run(&self, cycles: u64) -> Result<Summary, String> {
        (self.run)(cycles).map_err(|e| format!("seed {}: {e}", self.seed))
    }
}

fn run<B: Block + Default + 'static>(seed: u64, cycles: u64, clock: fn(&mut B, bool), drive: Drive<B>) -> Result<Summary, String> {
    let mut reference = RustHdl::new(B::default(), clock);
    let design = Design::lower(&reference.block).map_err(|e| e.to_string())?;
    let mut interpreter = design.interpret().map_err(|e| e.to_string())?;
    let mut compiled = design.compile().map_err(|e| e.to_string())?;
    let mut stimulus = Stimulus::new(seed);
    let mut summary = Summary::default();
    for cycle in 0..cycles {
        let pokes = drive(&mut reference.block, &mut stimulus);
        if !reference.settle() {
            return Err(format!("cycle {cycle}: rust-hdl does not settle"));
        }
        for (name, engine) in [("the interpreter", &mut interpreter as &mut dyn Engine), ("the compiled engine", &mut compiled)] {
            for (path, value) in &pokes {
                let id = engine.signal(path).map_err(|e| e.to_string())?;
                engine.poke_wide(id, value);
            }
            // Signals between registers are computed on demand and cost time: every eighth cycle.
            if cycle < 2 || cycle % 8 == 0 {
                summary.signals = signals(&reference, engine).map_err(|e| format!("cycle {cycle}, {name}: {e}"))?;
            }
            engine.step();
        }
        if !reference.step() {
            return Err(format!("cycle {cycle}: rust-hdl does not settle"));
        }
        for (name, engine) in [("the interpreter", &interpreter as &dyn Engine), ("the compiled engine", &compiled)] {
            reference.compare(engine).map_err(|e| format!("{name}: {e}"))?;
        }
        if interpreter.digest() != compiled.digest() {
            return Err(format!("cycle {cycle}: the digests of interpreter and compiled engine differ"));
        }
    }
    summary.registers = compiled.registers().len();
    Ok(summary)
}

/// Compares every signal of the design.
fn signals<B: Block>(reference: &RustHdl<B>, engine: &mut dyn Engine) -> Result<usize, String> {
    let signals = reference.signals();
    for (path, expected) in &signals {
        let id = engine.signal(path).map_err(|e| e.to_string())?;
        let mut value = vec![0; expected.len()];
        engine.peek_wide(id, &mut value);
        if value != *expected {
            return Err(format!("signal {path} is {value:x?}, in rust-hdl {expected:x?}"));
        }
    }
    Ok(signals.len())
}
