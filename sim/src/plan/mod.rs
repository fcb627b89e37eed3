//! Plan: what both engines execute.
//!
//! Every module (and assignment of clocks to its clock inputs) is one *class*; its instances are the class's *lanes*. Child `k` of a class with `n` lanes takes `n` neighbouring
//! lanes of the child's class, in the same order, so a parent's code reaches its children's ports with the same lane stride as its own words: no gathering, at any
//! depth. All words live in one image of `u32`, structure of arrays: word, then lane.
//!
//! The combinational logic between blocks is cut at ports. A *unit* computes some output and child-input words of one class for all lanes; [`schedule`] orders the
//! units. Units that depend on no input of the top run once a cycle, the others again after a poke. Clock units compute and store the next state.
//! Where a class cannot be ordered as a whole, because its outputs depend on its inputs within the cycle along a path that comes back to it, it is folded into its
//! parent; [`Report`] says what was.

mod classes;
mod schedule;
mod units;

pub(crate) use classes::{Class, LANES};
pub(crate) use units::Unit;

use crate::SimError;
use crate::graph::{self, Graph};
use crate::netlist::{Design, SignalKind};

/// Largest graph that single-instance folding may build, so that the code of one unit stays in the instruction cache's reach.
const FOLD_LIMIT: usize = 40_000;

/// Which port words are evaluated every cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// Those that reach a register, a memory or an output of the top.
    Needed,
    /// All, so that any signal can be sampled every cycle.
    All,
}

/// How the design was mapped, for people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Distinct blocks with their lanes: path of the first instance, lanes (padding included), word operations.
    pub classes: Vec<(String, usize, usize)>,
    /// Blocks folded into their parent because lanes could not form: the slow path.
    pub folded: Vec<String>,
    /// Evaluation units: independent of the inputs, dependent on them, clocked.
    pub units: (usize, usize, usize),
    /// Word operations executed per cycle over all lanes.
    pub operations: usize,
    /// Words of state, ports and memories.
    pub words: usize,
}

/// An executable design.
pub(crate) struct Plan {
    pub(crate) graphs: Vec<Graph>,
    pub(crate) classes: Vec<Class>,
    /// Names of the clocks.
    pub(crate) clocks: Vec<String>,
    /// Units that read no input of the top.
    pub(crate) steady: Vec<Unit>,
    /// Units that do.
    pub(crate) reactive: Vec<Unit>,
    /// Clock units, one list a clock and, with several clocks, one for all at once.
    pub(crate) edges: Vec<Vec<Unit>>,
    /// Initial image.
    pub(crate) image: Vec<u32>,
    /// Top outputs that change with the inputs within the cycle, by output word.
    pub(crate) reactive_outputs: Vec<bool>,
    pub(crate) report: Report,
}

impl Plan {
    pub(crate) fn build(design: &Design, keep: Keep) -> Result<Self, SimError> {
        // Graphs are built and scheduled by recursion over long chains of operations.
        let build = || Self::build_here(design, keep);
        std::thread::scope(|scope| {
            let worker = std::thread::Builder::new().stack_size(1 << 30).spawn_scoped(scope, build);
            match worker.map(std::thread::ScopedJoinHandle::join) {
                Ok(Ok(plan)) => plan,
                Ok(Err(panic)) => std::panic::resume_unwind(panic),
                Err(e) => Err(SimError::CodeGeneration { what: format!("no thread for the planner: {e}") }),
            }
        })
    }

    fn build_here(design: &Design, keep: Keep) -> Result<Self, SimError> {
        let mut graphs = graph::build(design)?;
        fold_single_instances(&mut graphs, design.top.0)?;
        let top = design.top();
        let mut clocks = Vec::new();
        let mut clock_words = Vec::new();
        for s in top.signals.iter().filter(|s| s.kind == SignalKind::Input) {
            for _ in s.ty.words() {
                clock_words.push(s.is_clock().then(|| {
                    clocks.push(s.name.clone());
                    clocks.len() - 1
                }));
            }
        }
        let mut folded = Vec::new();
        loop {
            let classes = classes::assign(&graphs, design.top.0, &clock_words)?;
            match schedule::schedule(&graphs, &classes, keep) {
                Ok(order) => {
                    let mut plan = units::finish(graphs, classes, &order, clocks)?;
                    plan.report.folded = folded;
                    return Ok(plan);
                }
                Err(blocked) => {
                    // Fold every instance of the blocking module in that parent.
                    let (parent, module) = (blocked.parent, blocked.module);
                    if graphs[parent].children.iter().all(|c| c.module.0 != module) {
                        return Err(SimError::CombinationalLoop { path: graphs[parent].path.clone() });
                    }
                    while let Some(k) = graphs[parent].children.iter().position(|c| c.module.0 == module) {
                        folded.push(format!("{}.{}", graphs[parent].path, graphs[parent].children[k].name));
                        graphs[parent] = graph::inline(&graphs[parent], k, &graphs[module])?;
                    }
                }
            }
        }
    }
}

/// Folds modules that occur once into their parent: same lanes, fewer copies at ports.
fn fold_single_instances(graphs: &mut [Graph], top: usize) -> Result<(), SimError> {
    let mut sites = vec![0usize; graphs.len()];
    for g in graphs.iter() {
        for c in &g.children {
            sites[c.module.0] += 1;
        }
    }
    for p in 0..=top {
        while let Some(k) =
            graphs[p].children.iter().position(|c| sites[c.module.0] == 1 && graphs[p].cost() + graphs[c.module.0].cost() <= FOLD_LIMIT)
        {
            let module = graphs[p].children[k].module.0;
            sites[module] = 0;
            graphs[p] = graph::inline(&graphs[p], k, &graphs[module])?;
        }
    }
    Ok(())
}
