//! Which modules must be written with one process a signal.
//!
//! A process that writes two outputs seems to make each depend on everything that the other reads. Across modules that can close a loop which the design does not have;
//! Verilator then warns (UNOPTFLAT) and iterates. Here each module is summarised by the paths from its inputs to its outputs, as its processes show them; modules
//! on an apparent loop have their processes split by signal, until none is left. Others keep the processes of the source.

use super::groups::{self, Group};
use crate::netlist::{Body, Design, Expr, InstanceRef, Module, ModuleId, Place, SignalKind, SignalRef, Statement};
use std::collections::{BTreeMap, BTreeSet};

/// Paths of a module from input to output signals, as its text shows them.
type Summary = Vec<(SignalRef, SignalRef)>;

/// The modules to split.
pub(super) fn modules(design: &Design) -> BTreeSet<ModuleId> {
    let mut split = BTreeSet::new();
    while let Some(more) = apparent_loop(design, &split) {
        split.extend(more);
    }
    split
}

/// Modules on the first apparent loop that are not split yet; none if there is no such loop.
fn apparent_loop(design: &Design, split: &BTreeSet<ModuleId>) -> Option<BTreeSet<ModuleId>> {
    let mut summaries: Vec<Summary> = Vec::with_capacity(design.modules.len());
    for (i, module) in design.modules.iter().enumerate() {
        let network = Network::of(module, &summaries, split.contains(&ModuleId(i)));
        let mut more = BTreeSet::new();
        for place in network.on_loops() {
            more.insert(ModuleId(i));
            if let Place::Child(at, _) = place {
                deeper(design, split, module.instances[at.0].module, &mut more);
            }
        }
        more.retain(|m| !split.contains(m));
        if !more.is_empty() {
            return Some(more);
        }
        summaries.push(network.summary(module));
    }
    None
}

/// The module or, if it is split already, the nearest blocks below it that are not.
fn deeper(design: &Design, split: &BTreeSet<ModuleId>, id: ModuleId, out: &mut BTreeSet<ModuleId>) {
    if !split.contains(&id) {
        out.insert(id);
        return;
    }
    for instance in &design.modules[id.0].instances {
        deeper(design, split, instance.module, out);
    }
}

/// Dependencies within a cycle, as the processes of a module show them.
#[derive(Default)]
struct Network {
    index: BTreeMap<Place, usize>,
    /// Place of each node; a process has none.
    places: Vec<Option<Place>>,
    edges: Vec<Vec<usize>>,
}

impl Network {
    fn of(module: &Module, summaries: &[Summary], finest: bool) -> Self {
        let mut network = Self::default();
        if let Body::Kernel(statements) = &module.body {
            groups::group(statements, finest).iter().for_each(|g| network.process(g));
        }
        for (k, instance) in module.instances.iter().enumerate() {
            for &(input, output) in &summaries[instance.module.0] {
                let at = InstanceRef(k);
                let (from, to) = (network.node(Place::Child(at, input)), network.node(Place::Child(at, output)));
                network.edges[from].push(to);
            }
        }
        if let Body::Memory(m) = &module.body
            && m.read_clock.is_none()
        {
            let (from, to) = (network.node(Place::Own(m.read_address)), network.node(Place::Own(m.read_data)));
            network.edges[from].push(to);
        }
        network
    }

    fn fresh(&mut self, place: Option<Place>) -> usize {
        self.places.push(place);
        self.edges.push(Vec::new());
        self.places.len() - 1
    }

    fn node(&mut self, place: Place) -> usize {
        if let Some(&n) = self.index.get(&place) {
            return n;
        }
        let n = self.fresh(Some(place));
        self.index.insert(place, n);
        n
    }

    fn process(&mut self, group: &Group<'_>) {
        if let Some(assigns) = group.plain() {
            for (target, _, _, value) in assigns {
                let to = self.node(target);
                groups::reads(value, &mut |p| {
                    let from = self.node(p);
                    self.edges[from].push(to);
                });
            }
            return;
        }
        let process = self.fresh(None);
        let mut reads = BTreeSet::new();
        for s in &group.statements {
            all_reads(s, &mut reads);
        }
        for place in reads.difference(&group.written) {
            let from = self.node(*place);
            self.edges[from].push(process);
        }
        for &place in &group.written {
            let to = self.node(place);
            self.edges[process].push(to);
        }
    }

    /// Nodes reached from a node by at least one edge.
    fn reached(&self, from: usize) -> BTreeSet<usize> {
        let mut seen = BTreeSet::new();
        let mut open = vec![from];
        while let Some(n) = open.pop() {
            open.extend(self.edges[n].iter().filter(|&&to| seen.insert(to)));
        }
        seen
    }

    /// Places on loops: those left when nodes without predecessors, then those without successors, are taken away again and again.
    fn on_loops(&self) -> Vec<Place> {
        let mut back = vec![Vec::new(); self.edges.len()];
        for (from, list) in self.edges.iter().enumerate() {
            list.iter().for_each(|&to| back[to].push(from));
        }
        let mut left = vec![true; self.edges.len()];
        for (next, previous) in [(&self.edges, &back), (&back, &self.edges)] {
            let mut count: Vec<usize> = previous.iter().map(|p| p.iter().filter(|&&n| left[n]).count()).collect();
            let mut open: Vec<usize> = (0..left.len()).filter(|&n| left[n] && count[n] == 0).collect();
            while let Some(n) = open.pop() {
                left[n] = false;
                for &to in &next[n] {
                    count[to] -= 1;
                    if count[to] == 0 && left[to] {
                        open.push(to);
                    }
                }
            }
        }
        (0..left.len()).filter(|&n| left[n]).filter_map(|n| self.places[n]).collect()
    }

    fn summary(&self, module: &Module) -> Summary {
        let mut out = Vec::new();
        let inputs = module.signals.iter().enumerate().filter(|(_, s)| matches!(s.kind, SignalKind::Input) && !s.is_clock());
        for (i, _) in inputs {
            let Some(&from) = self.index.get(&Place::Own(SignalRef(i))) else { continue };
            for n in self.reached(from) {
                if let Some(Place::Own(to)) = self.places[n]
                    && matches!(module.signals[to.0].kind, SignalKind::Output)
                {
                    out.push((SignalRef(i), to));
                }
            }
        }
        out
    }
}

fn all_reads(s: &Statement, out: &mut BTreeSet<Place>) {
    let mut note = |e: &Expr| groups::reads(e, &mut |p| out.extend([p]));
    match s {
        Statement::Comment(_) => {}
        Statement::Assign { value, .. } => note(value),
        Statement::If { condition, then, otherwise } => {
            note(condition);
            then.iter().chain(otherwise).for_each(|s| all_reads(s, out));
        }
        Statement::Case { subject, arms, default } => {
            note(subject);
            arms.iter().flat_map(|a| &a.block).chain(default.iter().flatten()).for_each(|s| all_reads(s, out));
        }
    }
}
