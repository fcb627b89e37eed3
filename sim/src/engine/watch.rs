//! Watches: the values of many signals, copied out once a cycle.
//!
//! [`Engine::peek`](super::Engine::peek) finds one value at a time, and computes what no engine stores by walking its logic. For a waveform that is far too
//! slow. A watch follows every signal to the register or operation that drives it, drops what is driven twice, and has the engine generate one function a
//! class of blocks that computes all of them for one lane into a compact list of words. Whoever keeps the previous list finds what changed by comparing words.

use super::lookup::{Frame, Frames};
use super::{MemoryId, SignalId};
use crate::graph::{Graph, N, Op};
use crate::plan::{Plan, Unit};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Operations after which a watching function is split, so that the code generator's time stays linear.
const UNIT_LIMIT: usize = 3000;

/// What a watch looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watched {
    /// A signal.
    Signal(SignalId),
    /// A word of a memory.
    Word(MemoryId, usize),
}

/// A word of a watch's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot {
    /// Position in the list.
    pub index: usize,
    /// Width in bits, at most 32.
    pub width: u8,
}

/// A set of signals and memory words of one engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watch {
    pub(super) id: usize,
    /// Words of the list that [`Engine::sample`](super::Engine::sample) fills.
    pub len: usize,
    /// Words of everything watched, lowest first. Signals with one driver share words.
    pub slots: Vec<Vec<Slot>>,
    /// Words that no code computes every cycle; they are computed one by one. Zero in an engine of [`Design::compile_visible`](crate::Design::compile_visible).
    pub slow_words: usize,
}

/// A function that computes some nodes of a class for one lane.
#[derive(Debug, Clone)]
pub(super) struct WatchUnit {
    pub(super) unit: Unit,
    /// Nodes stored, and their positions in the lane's part of the list.
    pub(super) outs: Vec<(N, usize)>,
    /// Lanes, and the positions of their parts in the list.
    pub(super) lanes: Vec<(usize, usize)>,
}

/// Where the words of a watch come from.
#[derive(Debug, Clone, Default)]
pub(super) struct WatchPlan {
    pub(super) units: Vec<WatchUnit>,
    /// List positions and image offsets of memory words.
    pub(super) copies: Vec<(usize, usize)>,
    /// List positions, frames and nodes of words that are computed on demand.
    pub(super) slow: Vec<(usize, usize, N)>,
    pub(super) len: usize,
}

/// What is to be watched, followed to its drivers.
pub(super) enum Target {
    /// Frame, node, width.
    Nodes(Vec<(usize, N, u8)>),
    /// Image offset and width of each word of a memory row.
    Row(Vec<(usize, u8)>),
}

/// Values of every cycle that lie in the image.
struct Stored {
    /// Offset of lane 0 of a node's value.
    nodes: HashMap<(usize, N), usize>,
    /// Port words that are evaluated, by their offset of lane 0.
    ports: BTreeSet<usize>,
}

impl Stored {
    fn of(plan: &Plan) -> Self {
        let mut stored = Self { nodes: HashMap::new(), ports: BTreeSet::new() };
        for unit in plan.steady.iter().chain(&plan.reactive) {
            for &(n, offset) in &unit.stores {
                stored.nodes.insert((unit.class, n), offset);
                stored.ports.insert(offset);
            }
        }
        stored.ports.extend(&plan.classes[0].inputs);
        stored
    }

    /// Offset of lane 0, if the node is in the image; `Err` if it is a port word that is not evaluated.
    fn find(&self, plan: &Plan, class: usize, graph: &Graph, n: N) -> Result<Option<usize>, ()> {
        let c = &plan.classes[class];
        let port = |offset: usize, all_lanes: bool| {
            // A child's input is written by each parent from its first lane on.
            let written =
                if all_lanes { self.ports.contains(&offset) } else { self.ports.range(offset..offset + c.lanes).next().is_some() };
            if written { Ok(Some(offset)) } else { Err(()) }
        };
        match graph.arena.op(n) {
            Op::State(s) => Ok(Some(c.states[s as usize])),
            Op::Input(i) => port(c.inputs[i as usize], false),
            Op::Child(k, w) => {
                let (child, first) = c.sites[k as usize];
                let offset = plan.classes[child].outputs[w as usize];
                port(offset, true).map(|_| Some(offset + first))
            }
            _ => Ok(self.nodes.get(&(class, n)).copied()),
        }
    }
}

/// The part of a unit that computes `root`, appended; false, and nothing appended, if it reads a word that is not evaluated.
fn need(plan: &Plan, stored: &Stored, unit: &mut Unit, seen: &mut BTreeSet<N>, root: N) -> bool {
    let graph = &plan.graphs[plan.classes[unit.class].module];
    let (mut nodes, mut loads, mut fresh) = (Vec::new(), Vec::new(), BTreeSet::new());
    let mut stack = vec![(root, false)];
    while let Some((n, expanded)) = stack.pop() {
        if expanded {
            nodes.push(n);
            continue;
        }
        if seen.contains(&n) || !fresh.insert(n) {
            continue;
        }
        match stored.find(plan, unit.class, graph, n) {
            Err(()) => return false,
            Ok(Some(offset)) => {
                loads.push((n, offset));
                nodes.push(n);
            }
            Ok(None) => {
                stack.push((n, true));
                stack.extend(graph.arena.nodes[n as usize].operands().iter().map(|&o| (o, false)));
            }
        }
    }
    unit.nodes.extend(nodes);
    unit.loads.extend(loads);
    seen.extend(fresh);
    true
}

/// Plans a watch; the slots of each target.
pub(super) fn plan(plan: &Plan, frames: &mut Frames, targets: &[Target]) -> (WatchPlan, Vec<Vec<Slot>>) {
    let stored = Stored::of(plan);
    // Drivers by class: nodes and lanes.
    let mut classes: BTreeMap<usize, (BTreeSet<N>, BTreeMap<usize, usize>)> = BTreeMap::new();
    let mut sources: Vec<Vec<(usize, N, u8)>> = Vec::new();
    for target in targets {
        let Target::Nodes(nodes) = target else {
            sources.push(Vec::new());
            continue;
        };
        let mut list = Vec::new();
        for &(frame, n, width) in nodes {
            let (frame, n) = frames.source(plan, frame, n);
            let Frame { class, lane, .. } = frames.get(frame);
            let (nodes, lanes) = classes.entry(class).or_default();
            nodes.insert(n);
            lanes.entry(lane).or_insert(frame);
            list.push((frame, n, width));
        }
        sources.push(list);
    }
    let mut out = WatchPlan::default();
    // List position of lane and node.
    let mut positions: HashMap<(usize, usize, N), usize> = HashMap::new();
    for (&class, (nodes, lanes)) in &classes {
        let start = out.len;
        let bases: Vec<(usize, usize)> = lanes.keys().enumerate().map(|(i, &lane)| (lane, start + i * nodes.len())).collect();
        out.len += nodes.len() * lanes.len();
        let fresh = || WatchUnit {
            unit: Unit { class, nodes: Vec::new(), loads: HashMap::new(), stores: Vec::new(), writes: Vec::new() },
            outs: Vec::new(),
            lanes: bases.clone(),
        };
        let (mut unit, mut seen) = (fresh(), BTreeSet::new());
        for (k, &n) in nodes.iter().enumerate() {
            for &(lane, base) in &bases {
                positions.insert((class, lane, n), base + k);
            }
            if unit.unit.nodes.len() > UNIT_LIMIT {
                out.units.push(std::mem::replace(&mut unit, fresh()));
                seen.clear();
            }
            if need(plan, &stored, &mut unit.unit, &mut seen, n) {
                unit.outs.push((n, k));
            } else {
                out.slow.extend(bases.iter().map(|&(lane, base)| (base + k, lanes[&lane], n)));
            }
        }
        out.units.push(unit);
    }
    let mut slots = Vec::with_capacity(targets.len());
    let mut rows: HashMap<usize, usize> = HashMap::new();
    for (target, list) in targets.iter().zip(sources) {
        slots.push(match target {
            Target::Nodes(_) => list
                .into_iter()
                .map(|(frame, n, width)| {
                    let Frame { class, lane, .. } = frames.get(frame);
                    Slot { index: positions[&(class, lane, n)], width }
                })
                .collect(),
            Target::Row(words) => words
                .iter()
                .map(|&(offset, width)| {
                    let index = *rows.entry(offset).or_insert_with(|| {
                        out.copies.push((out.len, offset));
                        out.len += 1;
                        out.len - 1
                    });
                    Slot { index, width }
                })
                .collect(),
        });
    }
    (out, slots)
}
