//! Units: which nodes each evaluates, what it loads and stores, and where everything lies in the image.
//!
//! A node that a later unit of the same class needs is computed once and kept in a temporary word. Long units are split, so that the code generator's
//! time stays linear; next states of a split clock unit are kept in temporaries until the last part stores them all.

use super::classes::Class;
use super::schedule::{Order, Sink, node_of};
use super::{Plan, Report};
use crate::SimError;
use crate::graph::{Graph, N, Op};
use std::collections::{HashMap, HashSet};

/// Operations after which a unit is split.
const UNIT_LIMIT: usize = 3000;

/// A store into a memory: `image[base + (lane << address bits + address) * words + k] = data[k]` if enabled.
#[derive(Debug, Clone)]
pub(crate) struct MemoryWrite {
    pub(crate) memory: usize,
    pub(crate) address: N,
    pub(crate) data: Vec<N>,
    pub(crate) enable: N,
}

/// Straight-line code over all lanes of a class.
#[derive(Debug, Clone)]
pub(crate) struct Unit {
    pub(crate) class: usize,
    /// Nodes computed, operands first; constants and loads are included.
    pub(crate) nodes: Vec<N>,
    /// Image offset of every node that is loaded.
    pub(crate) loads: HashMap<N, usize>,
    /// Stored nodes and image offsets.
    pub(crate) stores: Vec<(N, usize)>,
    /// Memory writes, after every read.
    pub(crate) writes: Vec<MemoryWrite>,
}

/// Temporaries of a class: nodes computed by an earlier unit, and where they are kept if anyone asked.
#[derive(Clone, Default)]
struct Kept {
    /// Unit number that computed a node.
    computed: HashMap<N, usize>,
    slots: HashMap<N, usize>,
}

struct Builder<'a> {
    graphs: &'a [Graph],
    classes: &'a [Class],
    kept: Vec<Kept>,
    units: Vec<Unit>,
    image: usize,
}

impl Builder<'_> {
    fn load_address(&self, class: usize, op: Op) -> Option<usize> {
        let c = &self.classes[class];
        match op {
            Op::Input(i) => Some(c.inputs[i as usize]),
            Op::State(s) => Some(c.states[s as usize]),
            Op::Child(k, w) => {
                let (child, first) = c.sites[k as usize];
                Some(self.classes[child].outputs[w as usize] + first)
            }
            _ => None,
        }
    }

    /// Adds the cone of a root to a unit.
    fn need(&mut self, unit: usize, root: N, seen: &mut HashSet<N>) {
        let class = self.units[unit].class;
        let graph = &self.graphs[self.classes[class].module];
        let mut stack = vec![(root, false)];
        while let Some((n, expanded)) = stack.pop() {
            if expanded {
                self.units[unit].nodes.push(n);
                self.kept[class].computed.entry(n).or_insert(unit);
                continue;
            }
            if !seen.insert(n) {
                continue;
            }
            let node = &graph.arena.nodes[n as usize];
            if let Some(address) = self.load_address(class, node.op) {
                self.units[unit].loads.insert(n, address);
                self.units[unit].nodes.push(n);
                continue;
            }
            if !matches!(node.op, Op::Const(_))
                && let Some(&earlier) = self.kept[class].computed.get(&n)
            {
                let lanes = self.classes[class].lanes;
                let image = &mut self.image;
                let mut fresh = false;
                let slot = *self.kept[class].slots.entry(n).or_insert_with(|| {
                    fresh = true;
                    *image += lanes;
                    *image - lanes
                });
                if fresh {
                    self.units[earlier].stores.push((n, slot));
                }
                self.units[unit].loads.insert(n, slot);
                self.units[unit].nodes.push(n);
                continue;
            }
            stack.push((n, true));
            stack.extend(node.operands().iter().map(|&o| (o, false)));
        }
    }

    fn start(&mut self, class: usize) -> usize {
        self.units.push(Unit { class, nodes: Vec::new(), loads: HashMap::new(), stores: Vec::new(), writes: Vec::new() });
        self.units.len() - 1
    }

    fn settle(&mut self, class: usize, sinks: &[Sink]) {
        let graph = &self.graphs[self.classes[class].module];
        let mut unit = self.start(class);
        let mut seen = HashSet::new();
        for &sink in sinks {
            if self.units[unit].nodes.len() > UNIT_LIMIT {
                unit = self.start(class);
                seen.clear();
            }
            let n = node_of(graph, sink);
            self.need(unit, n, &mut seen);
            let address = match sink {
                Sink::Output(o) => self.classes[class].outputs[o as usize],
                Sink::Child(k, i) => {
                    let (child, first) = self.classes[class].sites[k as usize];
                    self.classes[child].inputs[i as usize] + first
                }
            };
            self.units[unit].stores.push((n, address));
        }
    }

    /// Clock units of a class for the clocks chosen.
    fn edge(&mut self, class: usize, chosen: &dyn Fn(usize) -> bool) {
        let c = &self.classes[class];
        let graph = &self.graphs[c.module];
        let on = |n: N| c.clock(graph, n).is_some_and(chosen);
        let states: Vec<usize> = (0..graph.states.len()).filter(|&s| on(graph.states[s].clock)).collect();
        let memories: Vec<usize> =
            (0..graph.memories.len()).filter(|&m| graph.memories[m].write.as_ref().is_some_and(|w| on(w.clock))).collect();
        // A register that keeps its value for ever needs no code.
        let states: Vec<usize> = states.into_iter().filter(|&s| graph.arena.op(graph.states[s].next) != Op::State(s as u32)).collect();
        if states.is_empty() && memories.is_empty() {
            return;
        }
        let mut roots: Vec<N> = states.iter().map(|&s| graph.states[s].next).collect();
        for w in memories.iter().filter_map(|&m| graph.memories[m].write.as_ref()) {
            roots.extend([w.address, w.enable]);
            roots.extend(&w.data);
        }
        let mut unit = self.start(class);
        let mut seen = HashSet::new();
        for &n in &roots {
            if self.units[unit].nodes.len() > UNIT_LIMIT {
                unit = self.start(class);
                seen.clear();
            }
            self.need(unit, n, &mut seen);
        }
        if roots.iter().any(|n| !seen.contains(n)) {
            // Split: the last part loads what the others computed and commits all at once.
            unit = self.start(class);
            seen.clear();
            for &n in &roots {
                self.need(unit, n, &mut seen);
            }
        }
        for &s in &states {
            self.units[unit].stores.push((graph.states[s].next, c.states[s]));
        }
        for &m in &memories {
            if let Some(w) = &graph.memories[m].write {
                self.units[unit].writes.push(MemoryWrite { memory: m, address: w.address, data: w.data.clone(), enable: w.enable });
            }
        }
    }
}

/// Lays out the image and builds the units.
pub(super) fn finish(graphs: Vec<Graph>, mut classes: Vec<Class>, order: &Order, clocks: Vec<String>) -> Result<Plan, SimError> {
    let mut size = 0usize;
    for c in &mut classes {
        let graph = &graphs[c.module];
        let lanes = c.lanes;
        let mut take = |count: usize, each: usize| {
            let list: Vec<usize> = (0..count).map(|i| size + i * each).collect();
            size += count * each;
            list
        };
        c.inputs = take(graph.inputs.len(), lanes);
        c.outputs = take(graph.outputs.len(), lanes);
        c.states = take(graph.states.len(), lanes);
        c.memories = graph
            .memories
            .iter()
            .map(|m| {
                let row = m.words.len() << m.address_width;
                (take(1, row * lanes)[0], row)
            })
            .collect();
    }
    let kept = vec![Kept::default(); classes.len()];
    let mut builder = Builder { graphs: &graphs, classes: &classes, kept, units: Vec::new(), image: size };
    for (class, sinks) in &order.steady {
        builder.settle(*class, sinks);
    }
    let steady = builder.units.len();
    for (class, sinks) in &order.reactive {
        builder.settle(*class, sinks);
    }
    let settled = builder.units.len();
    let kept = builder.kept.clone();
    let mut ends = Vec::new();
    let groups = if clocks.len() > 1 { clocks.len() + 1 } else { clocks.len() };
    for group in 0..groups {
        // What another clock's units computed is stale; what the settling units computed is not. Their slots stay.
        for (now, base) in builder.kept.iter_mut().zip(&kept) {
            now.computed = base.computed.clone();
            now.slots.retain(|n, _| base.computed.contains_key(n));
        }
        let all = group == clocks.len();
        for class in 0..classes.len() {
            builder.edge(class, &|clock| all || clock == group);
        }
        ends.push(builder.units.len());
    }
    let image_size = builder.image;
    let mut units = builder.units;
    let mut report = Report { words: image_size, ..Report::default() };
    for c in &classes {
        let graph = &graphs[c.module];
        report.classes.push((graph.path.clone(), c.lanes, graph.cost()));
    }
    let one_edge = ends.last().copied().unwrap_or(settled);
    report.units = (steady, settled - steady, units.len() - settled);
    report.operations = units[..one_edge].iter().map(|u| (u.nodes.len() - u.loads.len()) * classes[u.class].lanes).sum();
    let mut edges = Vec::new();
    for g in (0..ends.len()).rev() {
        let start = if g == 0 { settled } else { ends[g - 1] };
        edges.push(units.split_off(start));
    }
    edges.reverse();
    let reactive = units.split_off(steady);
    let mut reactive_outputs = vec![false; graphs[classes[0].module].outputs.len()];
    for (class, sinks) in &order.reactive {
        for sink in sinks {
            if let (0, Sink::Output(o)) = (*class, sink) {
                reactive_outputs[*o as usize] = true;
            }
        }
    }
    let mut image = vec![0u32; image_size];
    for c in &classes {
        let graph = &graphs[c.module];
        for (s, &at) in graph.states.iter().zip(&c.states) {
            image[at..at + c.lanes].fill(s.init);
        }
        for (m, &(at, row)) in graph.memories.iter().zip(&c.memories) {
            let width = m.words.len();
            for lane in 0..c.lanes {
                let rows = &mut image[at + lane * row..at + (lane + 1) * row];
                if m.default.iter().any(|&d| d != 0) {
                    rows.chunks_mut(width).for_each(|r| r.copy_from_slice(&m.default));
                }
                for (address, word) in &m.init {
                    rows[address * width..(address + 1) * width].copy_from_slice(word);
                }
            }
        }
    }
    Ok(Plan { graphs, classes, clocks, steady: units, reactive, edges, image, reactive_outputs, report })
}
