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

/// Frames made so far; the top is frame 0.
#[derive(Debug)]
pub(super) struct Frames(Vec<Frame>);

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
        Self(vec![Frame { class: 0, lane: 0, parent: None }])
    }

    pub(super) fn get(&self, frame: usize) -> Frame {
        self.0[frame]
    }

    fn child(&mut self, plan: &Plan, frame: usize, k: usize) -> usize {
        let Frame { class, lane, .. } = self.0[frame];
        let (child, first) = plan.classes[class].sites[k];
        self.0.push(Frame { class: child, lane: first + lane, parent: Some((frame, k)) });
        self.0.len() - 1
    }

    /// Frame and index of the name in its graph.
    pub(super) fn signal(&mut self, plan: &Plan, path: &str) -> Result<(usize, usize), SimError> {
        let missing = || SimError::NotFound { kind: "signal", path: path.into() };
        self.find(plan, 0, &spelled(path), &|plan, module, name| plan.graphs[module].names.iter().position(|n| n.name == name))
            .ok_or_else(missing)
    }

    /// Frame and index of the memory in its graph.
    pub(super) fn memory(&mut self, plan: &Plan, path: &str) -> Result<(usize, usize), SimError> {
        let missing = || SimError::NotFound { kind: "memory", path: path.into() };
        self.find(plan, 0, &spelled(path), &|plan, module, name| plan.graphs[module].memories.iter().position(|m| m.name == name))
            .ok_or_else(missing)
    }

    fn find(&mut self, plan: &Plan, frame: usize, rest: &str, own: &dyn Fn(&Plan, usize, &str) -> Option<usize>) -> Option<(usize, usize)> {
        let module = plan.classes[self.0[frame].class].module;
        if let Some(i) = own(plan, module, rest) {
            return Some((frame, i));
        }
        for (k, child) in plan.graphs[module].children.iter().enumerate() {
            if let Some(tail) = rest.strip_prefix(child.name.as_str()).and_then(|t| t.strip_prefix('$')) {
                let below = self.child(plan, frame, k);
                if let Some(found) = self.find(plan, below, tail, own) {
                    return Some(found);
                }
            }
        }
        None
    }

    /// Where a node of a frame is found.
    pub(super) fn word(&self, plan: &Plan, frame: usize, n: N) -> Word {
        let Frame { class, lane, .. } = self.0[frame];
        let node = plan.graphs[plan.classes[class].module].arena.nodes[n as usize];
        match node.op {
            Op::State(s) => Word::Stored(plan.classes[class].states[s as usize] + lane, node.w),
            Op::Input(i) if frame == 0 => Word::Stored(plan.classes[0].inputs[i as usize], node.w),
            _ => Word::Computed(frame, n, node.w),
        }
    }

    /// Value of a node from registers, memories and inputs of the top alone.
    pub(super) fn compute(&mut self, plan: &Plan, image: &[u32], frame: usize, n: N) -> u32 {
        let keep = self.0.len();
        let value = self.value(plan, image, frame, n, &mut HashMap::new());
        self.0.truncate(keep);
        value
    }

    fn value(&mut self, plan: &Plan, image: &[u32], frame: usize, n: N, memo: &mut HashMap<(usize, usize, N), u32>) -> u32 {
        let Frame { class, lane, parent } = self.0[frame];
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
                    let module = plan.classes[self.0[up].class].module;
                    self.value(plan, image, up, plan.graphs[module].children[k].inputs[i as usize], memo)
                }
            },
            Op::Child(k, w) => {
                let below = self.child(plan, frame, k as usize);
                let module = plan.classes[self.0[below].class].module;
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
