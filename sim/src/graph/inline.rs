//! Folds a child into its parent.
//!
//! Used where lanes cannot form (the child's outputs depend on its inputs within the cycle, on a path that returns to it) and where they would not pay (a single
//! instance). Constants of the parent propagate into the copy. A loop through the child shows here, with the path of a signal on it.

use super::node::{Arena, N, Op};
use super::{Child, Graph, Memory, Named, State, Write};
use crate::SimError;
use std::collections::HashMap;

/// The parent with child number `which` folded in.
pub(crate) fn inline(parent: &Graph, which: usize, child: &Graph) -> Result<Graph, SimError> {
    let mut job = Inline {
        parent,
        child,
        which: which as u32,
        out: Arena::default(),
        from_parent: HashMap::new(),
        from_child: HashMap::new(),
        busy: vec![false; child.outputs.len()],
        states: parent.states.len() as u32,
        memories: parent.memories.len() as u32,
        children: parent.children.len() as u32 - 1,
    };
    job.run()
}

struct Inline<'a> {
    parent: &'a Graph,
    child: &'a Graph,
    which: u32,
    out: Arena,
    from_parent: HashMap<N, N>,
    from_child: HashMap<N, N>,
    busy: Vec<bool>,
    states: u32,
    memories: u32,
    children: u32,
}

impl Inline<'_> {
    fn run(&mut self) -> Result<Graph, SimError> {
        let (parent, child) = (self.parent, self.child);
        let name = &parent.children[self.which as usize].name;
        let mut graph = Graph { path: parent.path.clone(), inputs: parent.inputs.clone(), ..Graph::default() };
        // Input leaves first, so that they exist even when unread.
        for (i, &w) in parent.inputs.iter().enumerate() {
            self.out.leaf(Op::Input(i as u32), w);
        }
        for &n in &parent.outputs {
            let n = self.parent_node(n)?;
            graph.outputs.push(n);
        }
        for (i, c) in parent.children.iter().enumerate() {
            if i as u32 != self.which {
                let inputs = c.inputs.iter().map(|&n| self.parent_node(n)).collect::<Result<_, _>>()?;
                graph.children.push(Child { name: c.name.clone(), module: c.module, inputs });
            }
        }
        for c in &child.children {
            let inputs = c.inputs.iter().map(|&n| self.child_node(n)).collect::<Result<_, _>>()?;
            graph.children.push(Child { name: format!("{name}${}", c.name), module: c.module, inputs });
        }
        for s in &parent.states {
            let (next, clock) = (self.parent_node(s.next)?, self.parent_node(s.clock)?);
            graph.states.push(State { next, clock, ..s.clone() });
        }
        for s in &child.states {
            let (next, clock) = (self.child_node(s.next)?, self.child_node(s.clock)?);
            graph.states.push(State { name: format!("{name}${}", s.name), next, clock, ..s.clone() });
        }
        for m in &parent.memories {
            let write = m.write.as_ref().map(|w| self.write(w, Self::parent_node)).transpose()?;
            graph.memories.push(Memory { write, ..m.clone() });
        }
        for m in &child.memories {
            let write = m.write.as_ref().map(|w| self.write(w, Self::child_node)).transpose()?;
            graph.memories.push(Memory { name: format!("{name}${}", m.name), write, ..m.clone() });
        }
        for n in &parent.names {
            let value = n.value.iter().map(|&n| self.parent_node(n)).collect::<Result<_, _>>()?;
            graph.names.push(Named { name: n.name.clone(), value });
        }
        for n in &child.names {
            let value = n.value.iter().map(|&n| self.child_node(n)).collect::<Result<_, _>>()?;
            graph.names.push(Named { name: format!("{name}${}", n.name), value });
        }
        graph.arena = std::mem::take(&mut self.out);
        Ok(graph)
    }

    fn write(&mut self, w: &Write, map: fn(&mut Self, N) -> Result<N, SimError>) -> Result<Write, SimError> {
        Ok(Write {
            address: map(self, w.address)?,
            data: w.data.iter().map(|&n| map(self, n)).collect::<Result<_, _>>()?,
            enable: map(self, w.enable)?,
            clock: map(self, w.clock)?,
        })
    }

    fn parent_node(&mut self, n: N) -> Result<N, SimError> {
        if let Some(&m) = self.from_parent.get(&n) {
            return Ok(m);
        }
        let node = self.parent.arena.nodes[n as usize];
        let m = match node.op {
            Op::Child(c, word) if c == self.which => {
                if std::mem::replace(&mut self.busy[word as usize], true) {
                    let path = format!("{}.{}", self.parent.path, self.parent.children[self.which as usize].name);
                    return Err(SimError::CombinationalLoop { path });
                }
                let m = self.child_node(self.child.outputs[word as usize])?;
                self.busy[word as usize] = false;
                m
            }
            Op::Child(c, word) => self.out.leaf(Op::Child(if c > self.which { c - 1 } else { c }, word), node.w),
            Op::Const(v) => self.out.constant(v, node.w),
            op if op.arity() == 0 => self.out.leaf(op, node.w),
            op => {
                let mut args = [0; 3];
                for (arg, &operand) in args.iter_mut().zip(node.operands()) {
                    *arg = self.parent_node(operand)?;
                }
                self.out.make(op, node.w, &args[..op.arity()])
            }
        };
        self.from_parent.insert(n, m);
        Ok(m)
    }

    fn child_node(&mut self, n: N) -> Result<N, SimError> {
        if let Some(&m) = self.from_child.get(&n) {
            return Ok(m);
        }
        let node = self.child.arena.nodes[n as usize];
        let m = match node.op {
            Op::Input(i) => self.parent_node(self.parent.children[self.which as usize].inputs[i as usize])?,
            Op::Child(c, word) => self.out.leaf(Op::Child(self.children + c, word), node.w),
            Op::State(s) => self.out.leaf(Op::State(self.states + s), node.w),
            Op::Const(v) => self.out.constant(v, node.w),
            op => {
                let mut args = [0; 3];
                for (arg, &operand) in args.iter_mut().zip(node.operands()) {
                    *arg = self.child_node(operand)?;
                }
                let op = match op {
                    Op::Read(m, word) => Op::Read(self.memories + m, word),
                    other => other,
                };
                self.out.make(op, node.w, &args[..op.arity()])
            }
        };
        self.from_child.insert(n, m);
        Ok(m)
    }
}
