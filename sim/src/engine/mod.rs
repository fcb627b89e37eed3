//! Engines: one trait, two implementations over one [plan](crate::netlist).
//!
//! | engine | built by | use |
//! |---|---|---|
//! | [`Compiled`] | [`Design::compile`] | default: machine code, identical blocks as SIMD lanes |
//! | [`Interpreter`] | [`Design::interpret`] | no code generation; the cross-check |
//!
//! Paths: the fields from the top down, joined by `.`, array elements as in Rust: `pe[3].rows[1].acc.q`; Verilog spelling `pe$3$rows$1$acc$q`
//! works too, and a leading `top.` may be left out. Ports of the top have their bare names. Any signal of the design can be peeked; registers, top
//! inputs and top outputs in a few nanoseconds, others are computed from them on demand.

#[allow(unsafe_code)]
mod compiled;
mod interpreter;
mod lookup;
mod simulator;
mod watch;

pub use crate::plan::Report;
pub use compiled::{Compiled, Machine};
pub use interpreter::{Interpreter, Vectors};
pub use simulator::{Backend, Simulator, Snapshot};
pub use watch::{Slot, Watch, Watched};

use crate::SimError;
use crate::netlist::Design;
use crate::plan::{Keep, Plan};

/// Handle of a signal in one engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SignalId(pub(crate) usize);

/// Handle of a memory in one engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MemoryId(pub(crate) usize);

/// Handle of a clock in one engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClockId(pub(crate) usize);

/// A simulation of one design.
pub trait Engine {
    /// Handle of a signal.
    ///
    /// # Errors
    /// [`SimError::NotFound`] if the design has no such signal.
    fn signal(&mut self, path: &str) -> Result<SignalId, SimError>;

    /// Width of a signal in bits.
    fn width(&self, signal: SignalId) -> usize;

    /// Value of a signal, settled for the present state and inputs; of wider signals the lowest 64 bits.
    fn peek(&mut self, signal: SignalId) -> u64;

    /// Value of a signal of any width, 64 bits a word, lowest first; words past the width are 0, missing words are cut.
    fn peek_wide(&mut self, signal: SignalId, words: &mut [u64]);

    /// Sets an input of the top; bits past its width are cut. Of an input wider than 64 bits the upper bits are cleared.
    ///
    /// # Panics
    /// If the signal is no input of the top, or a clock: those tick by [`Engine::step`].
    fn poke(&mut self, signal: SignalId, value: u64);

    /// Sets an input of the top of any width, 64 bits a word, lowest first.
    ///
    /// # Panics
    /// As [`Engine::poke`].
    fn poke_wide(&mut self, signal: SignalId, words: &[u64]);

    /// Sets a register (its `q`), for tests.
    ///
    /// # Errors
    /// [`SimError::Misuse`] if the signal is no register output.
    fn set_register(&mut self, signal: SignalId, words: &[u64]) -> Result<(), SimError>;

    /// One rising edge of every clock at once.
    fn step(&mut self);

    /// Handle of a clock: a clock input of the top.
    ///
    /// # Errors
    /// [`SimError::NotFound`] if the top has no such clock.
    fn clock(&self, name: &str) -> Result<ClockId, SimError>;

    /// One rising edge of one clock.
    fn step_clock(&mut self, clock: ClockId);

    /// Steps so far (edges of any clock).
    fn cycles(&self) -> u64;

    /// Handle of a memory: the path of the RAM or ROM block.
    ///
    /// # Errors
    /// [`SimError::NotFound`] if the design has no such memory.
    fn memory(&mut self, path: &str) -> Result<MemoryId, SimError>;

    /// Words of a memory.
    fn memory_len(&self, memory: MemoryId) -> usize;

    /// A word of a memory, 64 bits a limb, lowest first. Addresses wrap.
    fn read_memory(&self, memory: MemoryId, address: usize) -> Vec<u64>;

    /// Replaces a word of a memory.
    fn write_memory(&mut self, memory: MemoryId, address: usize, word: &[u64]);

    /// Prepares to read many signals and memory words every cycle.
    ///
    /// # Errors
    /// [`SimError::CodeGeneration`] if the code generator refused.
    ///
    /// # Panics
    /// If an address lies outside its memory.
    fn watch(&mut self, watched: &[Watched]) -> Result<Watch, SimError>;

    /// Copies the settled values of a watch of this engine into a list of [`Watch::len`] words. A clock reads as 0.
    ///
    /// # Panics
    /// If the list is shorter.
    fn sample(&mut self, watch: &Watch, words: &mut [u32]);

    /// The whole state: registers, memories, inputs, cycle count.
    fn save(&self) -> Snapshot;

    /// Goes back to a saved state of this design; engines of the same design may exchange states.
    ///
    /// # Errors
    /// [`SimError::Misuse`] if the state is of another design.
    fn restore(&mut self, state: &Snapshot) -> Result<(), SimError>;

    /// Goes back to the initial state; inputs become 0.
    fn reset(&mut self);

    /// Digest of every register and memory output register of the design, padding lanes excluded; equal states have equal digests in every engine.
    fn digest(&self) -> u64;

    /// Path and value (64 bits a word, lowest first) of every register, in the order of the digest.
    fn registers(&self) -> Vec<(String, Vec<u64>)>;

    /// How the design was mapped to lanes, and what fell to a slow path.
    fn report(&self) -> &Report;
}

/// Steps until the condition holds, at most `limit` times; true if it held. The condition is tested before the first step.
pub fn run_until(engine: &mut dyn Engine, limit: u64, mut condition: impl FnMut(&mut dyn Engine) -> bool) -> bool {
    for _ in 0..limit {
        if condition(engine) {
            return true;
        }
        engine.step();
    }
    condition(engine)
}

impl Design {
    /// Builds the vector interpreter.
    ///
    /// # Errors
    /// Combinational loops, latches, undriven signals, derived clocks.
    pub fn interpret(&self) -> Result<Interpreter, SimError> {
        Simulator::new(self, Keep::Needed)
    }

    /// The vector interpreter, with every port evaluated every cycle: a [`Watch`] of it has no slow words. For waveforms.
    ///
    /// # Errors
    /// As [`Design::interpret`].
    pub fn interpret_visible(&self) -> Result<Interpreter, SimError> {
        Simulator::new(self, Keep::All)
    }

    /// Builds the compiled engine.
    ///
    /// # Errors
    /// As [`Design::interpret`]; [`SimError::CodeGeneration`] on a machine that the code generator does not know.
    pub fn compile(&self) -> Result<Compiled, SimError> {
        Simulator::new(self, Keep::Needed)
    }

    /// The compiled engine, with every port evaluated every cycle: a [`Watch`] of it has no slow words. For waveforms.
    ///
    /// # Errors
    /// As [`Design::compile`].
    pub fn compile_visible(&self) -> Result<Compiled, SimError> {
        Simulator::new(self, Keep::All)
    }

    /// Finds loops, latches, undriven signals and derived clocks without building an engine.
    ///
    /// # Errors
    /// The first problem, with its path.
    pub fn check(&self) -> Result<(), SimError> {
        Plan::build(self, Keep::Needed).map(|_| ())
    }
}
