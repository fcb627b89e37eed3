//! What both engines share: the image, handles, lazy settling, save and restore.

use super::lookup::{Frame, Frames, Word};
use super::watch::{self, Target, Watch, WatchPlan, WatchUnit, Watched};
use super::{ClockId, Engine, MemoryId, Report, SignalId};
use crate::SimError;
use crate::graph::{Op, mask};
use crate::netlist::{Design, SignalKind};
use crate::plan::{Keep, Plan, Unit};
use std::collections::HashMap;

/// How units are executed.
pub trait Backend: Sized {
    #[doc(hidden)]
    fn build(plan: &PlanRef<'_>) -> Result<Self, SimError>;
    #[doc(hidden)]
    fn run(&mut self, group: Group, image: &mut [u32]);
    /// Prepares the functions of a watch; its number.
    #[doc(hidden)]
    fn watch(&mut self, plan: &PlanRef<'_>, units: &WatchUnits<'_>) -> Result<usize, SimError>;
    /// Runs the functions of a watch.
    #[doc(hidden)]
    fn sample(&mut self, watch: usize, image: &[u32], words: &mut [u32]);
}

/// Functions of a watch, hidden from other crates.
pub struct WatchUnits<'a>(pub(super) &'a [WatchUnit], pub(super) usize);

impl std::fmt::Debug for WatchUnits<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("WatchUnits").field(&self.0.len()).field(&self.1).finish()
    }
}

/// The plan, hidden from other crates.
pub struct PlanRef<'a>(pub(super) &'a Plan);

impl std::fmt::Debug for PlanRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("PlanRef").field(&self.0.report).finish()
    }
}

/// A list of units.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Combinational logic that reads no top input.
    Steady,
    /// Combinational logic that does.
    Reactive,
    /// An edge: clock number, or the number of clocks for all at once.
    Edge(usize),
}

impl Group {
    pub(super) fn units(self, plan: &Plan) -> &[Unit] {
        match self {
            Self::Steady => &plan.steady,
            Self::Reactive => &plan.reactive,
            Self::Edge(c) => &plan.edges[c],
        }
    }

    /// Every group of a plan.
    pub(super) fn all(plan: &Plan) -> Vec<Self> {
        [Self::Steady, Self::Reactive].into_iter().chain((0..plan.edges.len()).map(Self::Edge)).collect()
    }
}

/// A saved state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    image: Vec<u32>,
    cycles: u64,
}

/// What must be settled before a word is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Needs {
    Nothing,
    Steady,
    Reactive,
}

struct Handle {
    /// Block instance and index of the name in its graph.
    at: (usize, usize),
    width: usize,
    words: Vec<Word>,
    needs: Needs,
    /// Image offset of the only word, for signals of one stored word.
    fast: Option<usize>,
    /// Top input that may be poked.
    input: bool,
    /// Register output.
    register: bool,
}

/// An engine over a backend.
pub struct Simulator<B> {
    plan: Plan,
    backend: B,
    image: Vec<u32>,
    handles: Vec<Handle>,
    by_path: HashMap<String, SignalId>,
    memories: Vec<(usize, usize)>,
    frames: Frames,
    /// Top output words by port name: first word, count, reactive.
    outputs: HashMap<String, (usize, usize)>,
    clock_inputs: Vec<String>,
    steady_stale: bool,
    reactive_stale: bool,
    cycles: u64,
    watches: Vec<WatchPlan>,
}

impl<B> std::fmt::Debug for Simulator<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Simulator").field("cycles", &self.cycles).field("report", &self.plan.report).finish()
    }
}

impl<B: Backend> Simulator<B> {
    pub(super) fn new(design: &Design, keep: Keep) -> Result<Self, SimError> {
        let mut plan = Plan::build(design, keep)?;
        let backend = B::build(&PlanRef(&plan))?;
        let image = std::mem::take(&mut plan.image);
        // The initial image is kept once, for `reset`.
        plan.image.clone_from(&image);
        let mut outputs = HashMap::new();
        let mut first = 0;
        for s in design.top().signals.iter().filter(|s| s.kind == SignalKind::Output) {
            let count = s.ty.words().len();
            outputs.insert(s.name.clone(), (first, count));
            first += count;
        }
        let clock_inputs = plan.clocks.clone();
        Ok(Self {
            plan,
            backend,
            image,
            handles: Vec::new(),
            by_path: HashMap::new(),
            memories: Vec::new(),
            frames: Frames::new(),
            outputs,
            clock_inputs,
            steady_stale: true,
            reactive_stale: true,
            cycles: 0,
            watches: Vec::new(),
        })
    }

    fn settle(&mut self, needs: Needs) {
        if needs >= Needs::Steady && self.steady_stale {
            self.backend.run(Group::Steady, &mut self.image);
            self.steady_stale = false;
        }
        if needs >= Needs::Reactive && self.reactive_stale {
            self.backend.run(Group::Reactive, &mut self.image);
            self.reactive_stale = false;
        }
    }

    fn edge(&mut self, group: usize) {
        self.settle(Needs::Reactive);
        self.backend.run(Group::Edge(group), &mut self.image);
        self.steady_stale = true;
        self.reactive_stale = true;
        self.cycles += 1;
    }

    fn word(&mut self, word: Word) -> u64 {
        u64::from(match word {
            Word::Stored(at, _) => self.image[at],
            Word::Computed(frame, n, _) => self.frames.compute(&self.plan, &self.image, frame, n),
        })
    }

    fn store(&mut self, signal: SignalId, words: &[u64]) {
        let mut offset = 0;
        for k in 0..self.handles[signal.0].words.len() {
            let Word::Stored(at, w) = self.handles[signal.0].words[k] else { continue };
            self.image[at] = bits(words, offset, w);
            offset += usize::from(w);
        }
    }

    fn memory_place(&self, memory: MemoryId, address: usize) -> (usize, Vec<u8>) {
        let (frame, m) = self.memories[memory.0];
        let Frame { class, lane, .. } = self.frames.get(frame);
        let c = &self.plan.classes[class];
        let info = &self.plan.graphs[c.module].memories[m];
        let (at, row) = c.memories[m];
        let address = address & ((1 << info.address_width) - 1);
        (at + lane * row + address * info.words.len(), info.words.clone())
    }
}

/// Bits `offset .. offset + w` of a list of 64-bit words.
fn bits(words: &[u64], offset: usize, w: u8) -> u32 {
    let get = |i: usize| words.get(i).copied().unwrap_or(0);
    let (word, shift) = (offset / 64, offset % 64);
    let low = get(word) >> shift;
    let high = if shift == 0 { 0 } else { get(word + 1) << (64 - shift) };
    ((low | high) as u32) & mask(w)
}

/// Puts a word of at most 32 bits at a bit offset.
fn place(out: &mut [u64], offset: usize, value: u64) {
    let (word, shift) = (offset / 64, offset % 64);
    if let Some(o) = out.get_mut(word) {
        *o |= value << shift;
    }
    if shift > 32
        && let Some(o) = out.get_mut(word + 1)
    {
        *o |= value >> (64 - shift);
    }
}

impl<B: Backend> Engine for Simulator<B> {
    fn signal(&mut self, path: &str) -> Result<SignalId, SimError> {
        if let Some(&id) = self.by_path.get(path) {
            return Ok(id);
        }
        let (frame, index) = self.frames.signal(&self.plan, path)?;
        let class = self.frames.get(frame).class;
        let named = &self.plan.graphs[self.plan.classes[class].module].names[index];
        let (mut words, mut needs) = (Vec::new(), Needs::Nothing);
        let (mut input, mut register) = (frame == 0, true);
        match self.outputs.get(&named.name).filter(|_| frame == 0) {
            Some(&(first, count)) => {
                (input, register) = (false, false);
                needs = Needs::Steady;
                for o in first..first + count {
                    let w =
                        self.plan.graphs[self.plan.classes[0].module].arena.width(self.plan.graphs[self.plan.classes[0].module].outputs[o]);
                    words.push(Word::Stored(self.plan.classes[0].outputs[o], w));
                    if self.plan.reactive_outputs[o] {
                        needs = Needs::Reactive;
                    }
                }
            }
            None => {
                let arena = &self.plan.graphs[self.plan.classes[class].module].arena;
                for &n in &named.value {
                    input &= matches!(arena.op(n), Op::Input(_));
                    register &= matches!(arena.op(n), Op::State(_));
                    words.push(self.frames.word(&self.plan, frame, n));
                }
                input &= !named.name.contains('.') && !self.clock_inputs.contains(&named.name);
            }
        }
        let width = words
            .iter()
            .map(|w| {
                usize::from(match w {
                    Word::Stored(_, w) | Word::Computed(_, _, w) => *w,
                })
            })
            .sum();
        let fast = match words[..] {
            [Word::Stored(at, _)] => Some(at),
            _ => None,
        };
        let id = SignalId(self.handles.len());
        self.handles.push(Handle { at: (frame, index), width, words, needs, fast, input, register });
        self.by_path.insert(path.into(), id);
        Ok(id)
    }

    fn width(&self, signal: SignalId) -> usize {
        self.handles[signal.0].width
    }

    fn peek(&mut self, signal: SignalId) -> u64 {
        let Handle { needs, fast, .. } = self.handles[signal.0];
        self.settle(needs);
        if let Some(at) = fast {
            return u64::from(self.image[at]);
        }
        let mut out = [0];
        self.peek_wide(signal, &mut out);
        out[0]
    }

    fn peek_wide(&mut self, signal: SignalId, words: &mut [u64]) {
        self.settle(self.handles[signal.0].needs);
        words.fill(0);
        let mut offset = 0;
        for k in 0..self.handles[signal.0].words.len() {
            let word = self.handles[signal.0].words[k];
            let value = self.word(word);
            place(words, offset, value);
            offset += usize::from(match word {
                Word::Stored(_, w) | Word::Computed(_, _, w) => w,
            });
        }
    }

    fn poke(&mut self, signal: SignalId, value: u64) {
        let handle = &self.handles[signal.0];
        assert!(handle.input, "only inputs of the top that are no clocks can be poked");
        if let (Some(at), &[Word::Stored(_, w)]) = (handle.fast, &handle.words[..]) {
            let value = value as u32 & mask(w);
            if self.image[at] != value {
                self.image[at] = value;
                self.reactive_stale = true;
            }
            return;
        }
        self.reactive_stale = true;
        self.store(signal, &[value]);
    }

    fn poke_wide(&mut self, signal: SignalId, words: &[u64]) {
        assert!(self.handles[signal.0].input, "only inputs of the top that are no clocks can be poked");
        self.reactive_stale = true;
        self.store(signal, words);
    }

    fn set_register(&mut self, signal: SignalId, words: &[u64]) -> Result<(), SimError> {
        if !self.handles[signal.0].register {
            return Err(SimError::Misuse { what: "only register outputs can be set".into() });
        }
        self.store(signal, words);
        self.steady_stale = true;
        self.reactive_stale = true;
        Ok(())
    }

    fn step(&mut self) {
        match self.plan.clocks.len() {
            0 => self.cycles += 1,
            1 => self.edge(0),
            all => self.edge(all),
        }
    }

    fn clock(&self, name: &str) -> Result<ClockId, SimError> {
        let bare = name.strip_prefix("top.").unwrap_or(name);
        let missing = || SimError::NotFound { kind: "clock", path: name.into() };
        self.plan.clocks.iter().position(|c| c == bare).map(ClockId).ok_or_else(missing)
    }

    fn step_clock(&mut self, clock: ClockId) {
        self.edge(clock.0);
    }

    fn cycles(&self) -> u64 {
        self.cycles
    }

    fn memory(&mut self, path: &str) -> Result<MemoryId, SimError> {
        let found = self.frames.memory(&self.plan, path)?;
        self.memories.push(found);
        Ok(MemoryId(self.memories.len() - 1))
    }

    fn memory_len(&self, memory: MemoryId) -> usize {
        let (frame, m) = self.memories[memory.0];
        let class = &self.plan.classes[self.frames.get(frame).class];
        1 << self.plan.graphs[class.module].memories[m].address_width
    }

    fn read_memory(&self, memory: MemoryId, address: usize) -> Vec<u64> {
        let (at, widths) = self.memory_place(memory, address);
        let total: usize = widths.iter().map(|&w| usize::from(w)).sum();
        let mut out = vec![0; total.div_ceil(64)];
        let mut offset = 0;
        for (k, &w) in widths.iter().enumerate() {
            place(&mut out, offset, u64::from(self.image[at + k]));
            offset += usize::from(w);
        }
        out
    }

    fn write_memory(&mut self, memory: MemoryId, address: usize, word: &[u64]) {
        let (at, widths) = self.memory_place(memory, address);
        let mut offset = 0;
        for (k, &w) in widths.iter().enumerate() {
            self.image[at + k] = bits(word, offset, w);
            offset += usize::from(w);
        }
        self.steady_stale = true;
        self.reactive_stale = true;
    }

    fn watch(&mut self, watched: &[Watched]) -> Result<Watch, SimError> {
        let mut targets = Vec::with_capacity(watched.len());
        for &w in watched {
            targets.push(match w {
                Watched::Signal(signal) => {
                    let (frame, index) = self.handles[signal.0].at;
                    let graph = &self.plan.graphs[self.plan.classes[self.frames.get(frame).class].module];
                    Target::Nodes(graph.names[index].value.iter().map(|&n| (frame, n, graph.arena.width(n))).collect())
                }
                Watched::Word(memory, address) => {
                    assert!(address < self.memory_len(memory), "the address lies outside the memory");
                    let (at, widths) = self.memory_place(memory, address);
                    Target::Row(widths.into_iter().enumerate().map(|(k, w)| (at + k, w)).collect())
                }
            });
        }
        let (watch, slots) = watch::plan(&self.plan, &mut self.frames, &targets);
        let id = self.backend.watch(&PlanRef(&self.plan), &WatchUnits(&watch.units, watch.len))?;
        debug_assert_eq!(id, self.watches.len());
        let out = Watch { id, len: watch.len, slots, slow_words: watch.slow.len() };
        self.watches.push(watch);
        Ok(out)
    }

    fn sample(&mut self, watch: &Watch, words: &mut [u32]) {
        self.settle(Needs::Reactive);
        self.backend.sample(watch.id, &self.image, words);
        let plan = &self.watches[watch.id];
        for &(to, at) in &plan.copies {
            words[to] = self.image[at];
        }
        for &(to, frame, n) in &plan.slow {
            words[to] = self.frames.compute(&self.plan, &self.image, frame, n);
        }
    }

    fn save(&self) -> Snapshot {
        Snapshot { image: self.image.clone(), cycles: self.cycles }
    }

    fn restore(&mut self, state: &Snapshot) -> Result<(), SimError> {
        if state.image.len() != self.image.len() {
            return Err(SimError::Misuse { what: "the saved state is of another design".into() });
        }
        self.image.copy_from_slice(&state.image);
        self.cycles = state.cycles;
        self.steady_stale = true;
        self.reactive_stale = true;
        Ok(())
    }

    fn reset(&mut self) {
        self.image.copy_from_slice(&self.plan.image);
        self.cycles = 0;
        self.steady_stale = true;
        self.reactive_stale = true;
    }

    fn digest(&self) -> u64 {
        // FNV-1a over 32-bit words.
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        Frames::each(&self.plan, &mut |_, class, lane| {
            for &at in &self.plan.classes[class].states {
                hash = (hash ^ u64::from(self.image[at + lane])).wrapping_mul(0x0000_0100_0000_01b3);
            }
        });
        hash
    }

    fn registers(&self) -> Vec<(String, Vec<u64>)> {
        let mut out: Vec<(String, Vec<u64>)> = Vec::new();
        Frames::each(&self.plan, &mut |path, class, lane| {
            let c = &self.plan.classes[class];
            let states = &self.plan.graphs[c.module].states;
            let mut k = 0;
            while k < states.len() {
                // The words of one register are neighbours with one name.
                let end = k + states[k..].iter().take_while(|s| s.name == states[k].name).count();
                let total: usize = states[k..end].iter().map(|s| usize::from(s.w)).sum();
                let mut value = vec![0; total.div_ceil(64)];
                let mut offset = 0;
                for (s, &at) in states[k..end].iter().zip(&c.states[k..end]) {
                    place(&mut value, offset, u64::from(self.image[at + lane]));
                    offset += usize::from(s.w);
                }
                out.push((format!("{path}{}", states[k].name), value));
                k = end;
            }
        });
        out
    }

    fn report(&self) -> &Report {
        &self.plan.report
    }
}
