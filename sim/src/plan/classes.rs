//! Classes and lanes.

use crate::SimError;
use crate::graph::{Graph, N, Op};

/// Lanes of a vector operation: class sizes above one are rounded up to it.
pub(crate) const LANES: usize = 4;

/// A module with an assignment of clocks, and its instances.
#[derive(Debug, Clone)]
pub(crate) struct Class {
    /// Index of the graph.
    pub(crate) module: usize,
    /// Clock of every input word that is one.
    pub(crate) clocks: Vec<Option<usize>>,
    /// Lanes, padding included.
    pub(crate) lanes: usize,
    /// Class and first lane of every child.
    pub(crate) sites: Vec<(usize, usize)>,
    /// Image offsets of input, output and state words.
    pub(crate) inputs: Vec<usize>,
    pub(crate) outputs: Vec<usize>,
    pub(crate) states: Vec<usize>,
    /// Image offset and words a lane of every memory.
    pub(crate) memories: Vec<(usize, usize)>,
}

impl Class {
    /// Clock of a clock node of this class.
    pub(crate) fn clock(&self, graph: &Graph, n: N) -> Option<usize> {
        match graph.arena.op(n) {
            Op::Input(i) => self.clocks[i as usize],
            _ => None,
        }
    }
}

/// Lanes that `n` instances take.
pub(crate) fn padded(n: usize) -> usize {
    if n > 1 { n.next_multiple_of(LANES) } else { n }
}

/// Classes of the design, parents before children; the top is class 0.
pub(super) fn assign(graphs: &[Graph], top: usize, clocks: &[Option<usize>]) -> Result<Vec<Class>, SimError> {
    let class = |module: usize, clocks: Vec<Option<usize>>| Class {
        module,
        clocks,
        lanes: 0,
        sites: Vec::new(),
        inputs: Vec::new(),
        outputs: Vec::new(),
        states: Vec::new(),
        memories: Vec::new(),
    };
    let mut classes = vec![class(top, clocks.to_vec())];
    classes[0].lanes = 1;
    // Parents have higher module numbers than their children.
    for module in (0..=top).rev() {
        for c in 0..classes.len() {
            if classes[c].module != module {
                continue;
            }
            classes[c].lanes = padded(classes[c].lanes);
            let lanes = classes[c].lanes;
            let graph = &graphs[module];
            for child in &graph.children {
                let own = classes[c].clocks.clone();
                let wanted: Vec<Option<usize>> = child
                    .inputs
                    .iter()
                    .map(|&n| match graph.arena.op(n) {
                        Op::Input(i) => own[i as usize],
                        _ => None,
                    })
                    .collect();
                let at = match classes.iter().position(|k| k.module == child.module.0 && k.clocks == wanted) {
                    Some(at) => at,
                    None => {
                        classes.push(class(child.module.0, wanted));
                        classes.len() - 1
                    }
                };
                let first = classes[at].lanes;
                classes[c].sites.push((at, first));
                classes[at].lanes += lanes;
            }
            check_clocks(graph, &classes[c])?;
        }
    }
    Ok(classes)
}

fn check_clocks(graph: &Graph, class: &Class) -> Result<(), SimError> {
    let derived = |name: &str| SimError::DerivedClock { path: format!("{}.{}", graph.path, name.replace('$', ".")) };
    for s in &graph.states {
        class.clock(graph, s.clock).ok_or_else(|| derived(&s.name))?;
    }
    for m in &graph.memories {
        if let Some(w) = &m.write {
            class.clock(graph, w.clock).ok_or_else(|| derived(&m.name))?;
        }
    }
    Ok(())
}
