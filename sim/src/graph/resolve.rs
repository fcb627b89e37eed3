//! From the kernel's values over references to a graph over leaves: locals are substituted, registers and memories folded in,
//! undriven signals, latches and loops inside the module found.

use super::execute::{Executed, execute, signal};
use super::node::{Arena, N, Op};
use super::words::{self, Value};
use super::{Child, Graph, Memory, Named, State, Write};
use crate::SimError;
use crate::netlist::{Body, Design, InstanceRef, Module, Place, SignalKind, SignalRef};
use std::collections::{HashMap, HashSet};

pub(super) fn resolve(design: &Design, module: &Module) -> Result<Graph, SimError> {
    let executed = execute(design, module);
    let mut r = Resolver {
        design,
        module,
        executed: &executed,
        out: Arena::default(),
        leaves: HashMap::new(),
        memo: HashMap::new(),
        words: HashMap::new(),
        busy: HashSet::new(),
    };
    r.graph()
}

struct Resolver<'a> {
    design: &'a Design,
    module: &'a Module,
    executed: &'a Executed,
    out: Arena,
    /// Places that are leaves, word by word.
    leaves: HashMap<Place, Value>,
    memo: HashMap<N, N>,
    words: HashMap<(Place, usize), N>,
    busy: HashSet<(Place, usize)>,
}

/// Words of the ports of one direction, in declaration order.
fn port_words(module: &Module, kind: &SignalKind) -> Vec<(SignalRef, Vec<usize>)> {
    module.signals.iter().enumerate().filter(|(_, s)| s.kind == *kind).map(|(i, s)| (SignalRef(i), s.ty.words())).collect()
}

impl Resolver<'_> {
    fn path(&self, place: Place) -> String {
        let name = &signal(self.design, self.module, place).name;
        match place {
            Place::Own(_) => format!("{}.{name}", self.module.path),
            Place::Child(i, _) => format!("{}.{}.{name}", self.module.path, self.module.instances[i.0].name),
        }
    }

    fn graph(&mut self) -> Result<Graph, SimError> {
        let mut graph = Graph { path: self.module.path.clone(), ..Graph::default() };
        for (s, word_widths) in port_words(self.module, &SignalKind::Input) {
            let mut value = Value::new();
            for w in word_widths {
                value.push(self.out.leaf(Op::Input(graph.inputs.len() as u32), w as u8));
                graph.inputs.push(w as u8);
            }
            self.leaves.insert(Place::Own(s), value);
        }
        self.children(&mut graph)?;
        self.roots(&mut graph)?;
        self.names(&mut graph)?;
        graph.arena = std::mem::take(&mut self.out);
        Ok(graph)
    }

    /// Leaves of the children: states, memory words, outputs. Asynchronous memories are no leaves.
    fn children(&mut self, graph: &mut Graph) -> Result<(), SimError> {
        for (k, instance) in self.module.instances.iter().enumerate() {
            let (at, child) = (InstanceRef(k), &self.design.modules[instance.module.0]);
            let mut state = |out: &mut Arena, s: SignalRef, init: &[u32]| -> Value {
                let whole = words::constant(out, init, child.signals[s.0].width);
                let mut offset = 0;
                let mut value = Value::new();
                for w in child.signals[s.0].ty.words() {
                    let part = words::slice(out, &whole, offset, w);
                    let init = words::single(out, &part);
                    offset += w;
                    value.push(out.leaf(Op::State(graph.states.len() as u32), w as u8));
                    let name = format!("{}${}", instance.name, child.signals[s.0].name);
                    let init = out.constant_of(init).unwrap_or(0);
                    // The next value and the clock are filled in when every leaf is known.
                    graph.states.push(State { name, w: w as u8, init, next: 0, clock: 0 });
                }
                value
            };
            match &child.body {
                Body::Register(r) => {
                    let value = state(&mut self.out, r.q, &r.init);
                    self.leaves.insert(Place::Child(at, r.q), value);
                }
                Body::Memory(m) => {
                    if m.read_clock.is_some() {
                        let value = state(&mut self.out, m.read_data, &[]);
                        self.leaves.insert(Place::Child(at, m.read_data), value);
                    }
                    let address_width = child.signals[m.read_address.0].width;
                    if address_width > 28 {
                        return Err(SimError::unsupported(
                            &self.path(Place::Child(at, m.read_address)),
                            format!("a memory of 2^{address_width} words"),
                            "use at most 28 address bits",
                        ));
                    }
                    let ty = &child.signals[m.read_data.0].ty;
                    let split = |out: &mut Arena, limbs: &[u32]| -> Vec<u32> {
                        let whole = words::constant(out, limbs, ty.width());
                        let mut at = 0;
                        let mut row = Vec::new();
                        for w in ty.words() {
                            let part = words::slice(out, &whole, at, w);
                            let n = words::single(out, &part);
                            row.push(out.constant_of(n).unwrap_or(0));
                            at += w;
                        }
                        row
                    };
                    graph.memories.push(Memory {
                        name: instance.name.clone(),
                        address_width,
                        words: ty.words().into_iter().map(|w| w as u8).collect(),
                        init: m.init.iter().map(|(a, limbs)| (*a, split(&mut self.out, limbs))).collect(),
                        default: split(&mut self.out, &m.default),
                        write: None,
                    });
                }
                Body::Kernel(_) => {
                    let index = graph.children.len() as u32;
                    let mut word = 0;
                    for (s, word_widths) in port_words(child, &SignalKind::Output) {
                        let value = word_widths
                            .into_iter()
                            .map(|w| {
                                word += 1;
                                self.out.leaf(Op::Child(index, word - 1), w as u8)
                            })
                            .collect();
                        self.leaves.insert(Place::Child(at, s), value);
                    }
                    graph.children.push(Child { name: instance.name.clone(), module: instance.module, inputs: Vec::new() });
                }
            }
        }
        Ok(())
    }

    fn memory_before(&self, at: InstanceRef) -> u32 {
        let is_memory = |k: &usize| matches!(self.design.modules[self.module.instances[*k].module.0].body, Body::Memory(_));
        (0..at.0).filter(is_memory).count() as u32
    }

    fn roots(&mut self, graph: &mut Graph) -> Result<(), SimError> {
        for (s, word_widths) in port_words(self.module, &SignalKind::Output) {
            for k in 0..word_widths.len() {
                let n = self.word(Place::Own(s), k)?;
                graph.outputs.push(n);
            }
        }
        let (mut state, mut child_index, mut memory) = (0, 0, 0);
        for (k, instance) in self.module.instances.iter().enumerate() {
            let (at, child) = (InstanceRef(k), &self.design.modules[instance.module.0]);
            match &child.body {
                Body::Register(r) => {
                    let clock = self.one(Place::Child(at, r.clock))?;
                    for w in 0..child.signals[r.q.0].ty.words().len() {
                        graph.states[state].next = self.word(Place::Child(at, r.d), w)?;
                        graph.states[state].clock = clock;
                        state += 1;
                    }
                }
                Body::Memory(m) => {
                    let place = |s| Place::Child(at, s);
                    if let Some(clock) = m.read_clock {
                        let clock = self.one(place(clock))?;
                        let address = self.one(place(m.read_address))?;
                        for (word, w) in child.signals[m.read_data.0].ty.words().into_iter().enumerate() {
                            graph.states[state].next = self.out.make(Op::Read(memory, word as u32), w as u8, &[address]);
                            graph.states[state].clock = clock;
                            state += 1;
                        }
                    }
                    if let Some(port) = m.write {
                        let mut data = Vec::new();
                        for w in 0..graph.memories[memory as usize].words.len() {
                            data.push(self.word(place(port.data), w)?);
                        }
                        graph.memories[memory as usize].write = Some(Write {
                            address: self.one(place(port.address))?,
                            data,
                            enable: self.one(place(port.enable))?,
                            clock: self.one(place(port.clock))?,
                        });
                    }
                    memory += 1;
                }
                Body::Kernel(_) => {
                    for (s, word_widths) in port_words(child, &SignalKind::Input) {
                        for w in 0..word_widths.len() {
                            let n = self.word(Place::Child(at, s), w)?;
                            graph.children[child_index].inputs.push(n);
                        }
                    }
                    child_index += 1;
                }
            }
        }
        Ok(())
    }

    /// Every signal and primitive port that has a value; an unread local without a driver has none.
    fn names(&mut self, graph: &mut Graph) -> Result<(), SimError> {
        let own = (0..self.module.signals.len()).map(|i| Place::Own(SignalRef(i)));
        let ports = self.module.instances.iter().enumerate().flat_map(|(k, instance)| {
            let child = &self.design.modules[instance.module.0];
            let count = if child.is_primitive() { child.signals.len() } else { 0 };
            (0..count).map(move |i| Place::Child(InstanceRef(k), SignalRef(i)))
        });
        for place in own.chain(ports).collect::<Vec<_>>() {
            let (design, module) = (self.design, self.module);
            let s = signal(design, module, place);
            if matches!(s.kind, SignalKind::Local) && !self.executed.drivers.contains_key(&place) {
                continue;
            }
            let mut words = (0..s.ty.words().len()).map(|w| self.word(place, w));
            let value = match words.by_ref().collect::<Result<Value, _>>() {
                Ok(value) => value,
                // A local that only one branch writes and reads: what it holds elsewhere reaches nothing, so it has no name outside.
                Err(SimError::Latch { .. }) if matches!(s.kind, SignalKind::Local) => {
                    drop(words);
                    self.busy.clear();
                    continue;
                }
                Err(error) => return Err(error),
            };
            let name = match place {
                Place::Own(_) => s.name.clone(),
                Place::Child(i, _) => format!("{}${}", self.module.instances[i.0].name, s.name),
            };
            graph.names.push(Named { name, value });
        }
        Ok(())
    }

    /// The single word of a narrow signal.
    fn one(&mut self, place: Place) -> Result<N, SimError> {
        self.word(place, 0)
    }

    /// Word `k` of a place, in the output arena.
    fn word(&mut self, place: Place, k: usize) -> Result<N, SimError> {
        if let Some(value) = self.leaves.get(&place) {
            return Ok(value[k]);
        }
        if let Some(&n) = self.words.get(&(place, k)) {
            return Ok(n);
        }
        let s = signal(self.design, self.module, place);
        let widths = s.ty.words();
        let offset: usize = widths[..k].iter().sum();
        if let SignalKind::Constant(limbs) = &s.kind {
            let whole = words::constant(&mut self.out, limbs, s.width);
            let part = words::slice(&mut self.out, &whole, offset, widths[k]);
            return Ok(words::single(&mut self.out, &part));
        }
        if let Place::Child(at, output) = place
            && let Body::Memory(m) = &self.design.modules[self.module.instances[at.0].module.0].body
            && output == m.read_data
        {
            let address = self.one(Place::Child(at, m.read_address))?;
            let memory = self.memory_before(at);
            return Ok(self.out.make(Op::Read(memory, k as u32), widths[k] as u8, &[address]));
        }
        let executed = self.executed;
        let Some(driver) = executed.drivers.get(&place) else { return Err(SimError::Undriven { path: self.path(place) }) };
        if !self.busy.insert((place, k)) {
            return Err(SimError::CombinationalLoop { path: self.path(place) });
        }
        let mut at = 0;
        let mut parts = Value::new();
        for &n in driver {
            let w = usize::from(executed.arena.width(n));
            let (low, high) = (offset.max(at), (offset + widths[k]).min(at + w));
            if low < high {
                let whole = self.node(n)?;
                parts.push(self.out.slice(whole, low - at, high - low));
            }
            at += w;
        }
        self.busy.remove(&(place, k));
        let n = words::single(&mut self.out, &parts);
        self.words.insert((place, k), n);
        Ok(n)
    }

    fn node(&mut self, n: N) -> Result<N, SimError> {
        if let Some(&m) = self.memo.get(&n) {
            return Ok(m);
        }
        let node = self.executed.arena.nodes[n as usize];
        let m = match node.op {
            Op::Const(v) => self.out.constant(v, node.w),
            Op::Ref(place, k) => self.word(self.executed.places[place as usize], k as usize)?,
            Op::Hold(place, _) => return Err(SimError::Latch { path: self.path(self.executed.places[place as usize]) }),
            op => {
                let mut args = [0; 3];
                for (arg, &operand) in args.iter_mut().zip(node.operands()) {
                    *arg = self.node(operand)?;
                }
                self.out.make(op, node.w, &args[..op.arity()])
            }
        };
        self.memo.insert(n, m);
        Ok(m)
    }
}
