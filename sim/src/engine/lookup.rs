//! Paths to words: walks the tree of classes and lanes, evaluates signals that no engine stores.

use crate::SimError;
use crate::graph::{N, Op, evaluate};
use crate::plan::Plan;
use std::collections::HashMap;

/// A block instance: its class, lane, and the frame of its parent with the child number there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    pub(super) class: usize,
    pub(super) lane: usize,
    parent: Option<(usize, usize)>,
}

/// One word of a signal.
#[derive(Debug, Clone, Copy)]
pub(super) enum Word {
    /// Kept in the image: offset, width.
    Stored(usize, u8),
    /// Computed on demand: frame, node, width.
    Computed(usize, N, u8),
}

/// Names of a graph: signals and memories by index.
#[derive(Debug, Default)]
struct Names {
    signals: HashMap<String, usize>,
    memories: HashMap<String, usize>,
}

/// What a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Signal,
    Memory,
}

/// Frames made so far; the top is frame 0. A million paths are looked up for a dump of the whole machine, so what was found once is kept.
#[derive(Debug)]
pub(super) struct Frames {
    list: Vec<Frame>,
    /// Frame of a child: parent frame and number of the child there.
    children: HashMap<(usize, usize), usize>,
    /// Names by module, made when a module is first entered.
    names: HashMap<usize, Names>,
}

/// `top.pe[3].q` as `pe$3$q`.
fn spelled(path: &str) -> String {
    let flat: String = path
        .chars()
        .filter_map(|c| match c {
            '.' | '[' => Some('$'),
            ']' => None,
            c => Some(c),
        })
        .collect();
    flat.strip_prefix("top$").map_or(flat.clone(), str::to_string)
}

impl Frames {
    pub(super) fn new() -> Self {
        Self { list: vec![Frame { class: 0, lane: 0, parent: None }], children: HashMap::new(), names: HashMap::new() }
    }

    pub(super) fn get(&self, frame: usize) -> Frame {
        self.list[frame]
    }

    fn below(&self, plan: &Plan, frame: usize, k: usize) -> Frame {
        let Frame { class, lane, .. } = self.list[frame];
        let (child, first) = plan.classes[class].sites[k];
        Frame { class: child, lane: first + lane, parent: Some((frame, k)) }
    }

    fn child(&mut self, plan: &Plan, frame: usize, k: usize) -> usize {
        if let Some(&known) = self.children.get(&(frame, k)) {
            return known;
        }
        self.list.push(self.below(plan, frame, k));
        self.children.insert((frame, k), self.list.len() - 1);
        self.list.len() - 1
    }

    /// Frame and index of the name in its graph.
    pub(super) fn signal(&mut self, plan: &Plan, path: &str) -> Result<(usize, usize), SimError> {
        let missing = || SimError::NotFound { kind: "signal", path: path.into() };
        self.find(plan, 0, &spelled(path), Kind::Signal).ok_or_else(missing)
    }

    /// Frame and index of the memory in its graph.
    pub(super) fn memory(&mut self, plan: &Plan, path: &str) -> Result<(usize, usize), SimError> {
        let missing = || SimError::NotFound { kind: "memory", path: path.into() };
        self.find(plan, 0, &spelled(path), Kind::Memory).ok_or_else(missing)
    }

    fn find(&mut self, plan: &Plan, frame: usize, rest: &str, kind: Kind) -> Option<(usize, usize)> {
        let module = plan.classes[self.list[frame].class].module;
        let graph = &plan.graphs[module];
        let names = self.names.entry(module).or_insert_with(|| {
            let mut names = Names::default();
            for (i, n) in graph.names.iter().enumerate() {
                names.signals.entry(n.name.clone()).or_insert(i);
            }
            for (i, m) in graph.memories.iter().enumerate() {
                names.memories.entry(m.name.clone()).or_insert(i);
            }
            names
        });
        let own = if kind == Kind::Signal { &names.signals } else { &names.memories };
        if let Some(&i) = own.get(rest) {
            return Some((frame, i));
        }
        for (k, child) in graph.children.iter().enumerate() {
            if let Some(tail) = rest.strip_prefix(child.name.as_str()).and_then(|t| t.strip_prefix('$')) {
                let below = self.child(plan, frame, k);
                if let Some(found) = self.find(plan, below, tail, kind) {
                    return Some(found);
                }
            }
        }
        None
    }

    /// The block instance and node that drives a node: ports are followed to the logic behind them.
    pub(super) fn source(&mut self, plan: &Plan, mut frame: usize, mut n: N) -> (usize, N) {
        loop {
            let Frame { class, parent, .. } = self.list[frame];
            match (plan.graphs[plan.classes[class].module].arena.op(n), parent) {
                (Op::Input(i), Some((up, k))) => {
                    let above = plan.classes[self.list[up].class].module;
                    (frame, n) = (up, plan.graphs[above].children[k].inputs[i as usize]);
                }
                (Op::Child(k, w), _) => {
                    frame = self.child(plan, frame, k as usize);
                    n = plan.graphs[plan.classes[self.list[frame].class].module].outputs[w as usize];
                }
                _ => return (frame, n),
            }
        }
    }

    /// Where a node of a frame is found.
    pub(super) fn word(&self, plan: &Plan, frame: usize, n: N) -> Word {
        let Frame { class, lane, .. } = self.list[frame];
        let node = plan.graphs[plan.classes[class].module].arena.nodes[n as usize];
        match node.op {
            Op::State(s) => Word::Stored(plan.classes[class].states[s as usize] + lane, node.w),
            Op::Input(i) if frame == 0 => Word::Stored(plan.classes[0].inputs[i as usize], node.w),
            _ => Word::Computed(frame, n, node.w),
        }
    }

    /// Value of a node from registers, memories and inputs of the top alone.
    pub(super) fn compute(&mut self, plan: &Plan, image: &[u32], frame: usize, n: N) -> u32 {
        let keep = self.list.len();
        let value = self.value(plan, image, frame, n, &mut HashMap::new());
        self.list.truncate(keep);
        value
    }

    fn value(&mut self, plan: &Plan, image: &[u32], frame: usize, n: N, memo: &mut HashMap<(usize, usize, N), u32>) -> u32 {
        let Frame { class, lane, parent } = self.list[frame];
        if let Some(&v) = memo.get(&(class, lane, n)) {
            return v;
        }
        let c = &plan.classes[class];
        let graph = &plan.graphs[c.module];
        let node = graph.arena.nodes[n as usize];
        let v = match node.op {
            Op::Const(v) => v,
            Op::State(s) => image[c.states[s as usize] + lane],
            Op::Input(i) => match parent {
                None => image[c.inputs[i as usize]],
                Some((up, k)) => {
                    let module = plan.classes[self.list[up].class].module;
                    self.value(plan, image, up, plan.graphs[module].children[k].inputs[i as usize], memo)
                }
            },
            Op::Child(k, w) => {
                // Dropped by `compute`: not among the frames that are kept by path.
                self.list.push(self.below(plan, frame, k as usize));
                let below = self.list.len() - 1;
                let module = plan.classes[self.list[below].class].module;
                self.value(plan, image, below, plan.graphs[module].outputs[w as usize], memo)
            }
            Op::Read(m, w) => {
                let address = self.value(plan, image, frame, node.args[0], memo) as usize;
                let (at, row) = c.memories[m as usize];
                image[at + lane * row + address * graph.memories[m as usize].words.len() + w as usize]
            }
            op => {
                let mut v = [0; 3];
                for (v, &o) in v.iter_mut().zip(node.operands()) {
                    *v = self.value(plan, image, frame, o, memo);
                }
                let width = |i: usize| graph.arena.width(node.args[i]);
                evaluate(op, node.w, width(0), width(1), v[0], v[1], v[2])
            }
        };
        memo.insert((class, lane, n), v);
        v
    }

    /// Calls `visit` with the path, class and lane of every block instance of the plan.
    pub(super) fn each(plan: &Plan, visit: &mut dyn FnMut(&str, usize, usize)) {
        fn walk(plan: &Plan, path: &str, class: usize, lane: usize, visit: &mut dyn FnMut(&str, usize, usize)) {
            visit(path, class, lane);
            for (k, child) in plan.graphs[plan.classes[class].module].children.iter().enumerate() {
                let (below, first) = plan.classes[class].sites[k];
                walk(plan, &format!("{path}{}$", child.name), below, first + lane, visit);
            }
        }
        walk(plan, "", 0, 0, visit);
    }
}
