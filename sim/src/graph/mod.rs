//! Graph of a module: word operations from its input ports, registers, memories and children's outputs to its output ports,
//! children's inputs, next register values and memory writes. Registers and memories are folded into the module that holds them.

mod execute;
mod inline;
mod node;
mod resolve;
mod rules;
pub(crate) mod words;

pub(crate) use node::{Arena, N, Node, Op, evaluate, mask};

use crate::SimError;
use crate::netlist::{Design, ModuleId};

/// A named signal as graph nodes.
#[derive(Debug, Clone)]
pub(crate) struct Named {
    /// Path inside the module, Verilog spelling.
    pub(crate) name: String,
    /// Words, lowest first.
    pub(crate) value: words::Value,
}

/// A register word, or an output register word of a memory.
#[derive(Debug, Clone)]
pub(crate) struct State {
    /// Name of the register inside the module, with `.q` or `.read_data`.
    pub(crate) name: String,
    pub(crate) w: u8,
    pub(crate) init: u32,
    pub(crate) next: N,
    /// Clock: an input word.
    pub(crate) clock: N,
}

/// A memory; its words are split like its data type.
#[derive(Debug, Clone)]
pub(crate) struct Memory {
    pub(crate) name: String,
    pub(crate) address_width: usize,
    pub(crate) words: Vec<u8>,
    pub(crate) init: Vec<(usize, Vec<u32>)>,
    pub(crate) default: Vec<u32>,
    pub(crate) write: Option<Write>,
}

/// Write port of a memory.
#[derive(Debug, Clone)]
pub(crate) struct Write {
    pub(crate) address: N,
    pub(crate) data: Vec<N>,
    pub(crate) enable: N,
    pub(crate) clock: N,
}

/// A child that is a kernel of its own.
#[derive(Debug, Clone)]
pub(crate) struct Child {
    pub(crate) name: String,
    pub(crate) module: ModuleId,
    /// Nodes of the child's input words.
    pub(crate) inputs: Vec<N>,
}

/// Graph of one module. Nodes are in topological order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Graph {
    pub(crate) path: String,
    pub(crate) arena: Arena,
    /// Width of every input word.
    pub(crate) inputs: Vec<u8>,
    /// Nodes of every output word.
    pub(crate) outputs: Vec<N>,
    pub(crate) children: Vec<Child>,
    pub(crate) states: Vec<State>,
    pub(crate) memories: Vec<Memory>,
    pub(crate) names: Vec<Named>,
}

impl Graph {
    /// Number of nodes that are operations, a measure of cost.
    pub(crate) fn cost(&self) -> usize {
        self.arena.nodes.len()
    }
}

/// Graphs of every module of a design; primitives have an empty one.
pub(crate) fn build(design: &Design) -> Result<Vec<Graph>, SimError> {
    let mut graphs: Vec<Graph> = Vec::with_capacity(design.modules.len());
    for module in &design.modules {
        let graph = if module.is_primitive() { Graph::default() } else { resolve::resolve(design, module)? };
        graphs.push(graph);
    }
    Ok(graphs)
}

pub(crate) use inline::inline;
