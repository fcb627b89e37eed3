//! Dumps of rust-hdl's own simulator: the words of a cycle from the atoms of the block.

use super::signals::Signals;
use crate::lower::limbs_of;
use rust_hdl::core::atom::Atom;
use rust_hdl::core::block::Block;
use rust_hdl::core::probe::Probe;
use std::collections::HashMap;

/// Takes an atom: the scopes and namespaces around it, its name.
type Visit<'a> = &'a mut dyn FnMut(&[String], &[String], &str, &dyn Atom);

/// Visits the atoms of a block with their scopes, in a fixed order.
struct Atoms<'a> {
    scopes: Vec<String>,
    namespaces: Vec<String>,
    visit: Visit<'a>,
}

impl Probe for Atoms<'_> {
    fn visit_start_scope(&mut self, name: &str, _node: &dyn Block) {
        self.scopes.push(name.to_string());
    }

    fn visit_end_scope(&mut self, _name: &str, _node: &dyn Block) {
        self.scopes.pop();
    }

    fn visit_start_namespace(&mut self, name: &str, _node: &dyn Block) {
        self.namespaces.push(name.to_string());
    }

    fn visit_end_namespace(&mut self, _name: &str, _node: &dyn Block) {
        self.namespaces.pop();
    }

    fn visit_atom(&mut self, name: &str, signal: &dyn Atom) {
        (self.visit)(&self.scopes, &self.namespaces, name, signal);
    }
}

fn walk(block: &dyn Block, visit: Visit<'_>) {
    block.accept("top", &mut Atoms { scopes: Vec::new(), namespaces: Vec::new(), visit });
}

/// Where the atoms of a block go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Places(
    /// For every atom in the order of the walk: word of the sample and widths of its words.
    Vec<Option<(usize, Vec<u8>)>>,
);

impl Places {
    pub(super) fn new(block: &dyn Block, signals: &Signals) -> Self {
        let chosen: HashMap<&str, (usize, Vec<u8>)> = signals
            .variables()
            .iter()
            .filter_map(|v| {
                let slots = signals.slots(v);
                Some((v.path.as_str(), (slots.first()?.index, slots.iter().map(|s| s.width).collect())))
            })
            .collect();
        let mut places = Vec::new();
        walk(block, &mut |scopes, namespaces, name, _| {
            let mut path: String = scopes.iter().skip(1).flat_map(|s| [s.as_str(), "."]).collect();
            path.extend(namespaces.iter().flat_map(|n| [n.as_str(), "$"]));
            path.push_str(name);
            places.push(chosen.get(path.as_str()).cloned());
        });
        Self(places)
    }

    /// Reads the atoms.
    pub(super) fn fill(&self, block: &dyn Block, words: &mut [u32]) {
        let mut places = self.0.iter();
        walk(block, &mut |_, _, _, atom| {
            let Some(Some((first, widths))) = places.next() else { return };
            let limbs = limbs_of(&atom.verilog(), atom.bits());
            let limb = |i: usize| u64::from(limbs.get(i).copied().unwrap_or(0));
            let mut offset = 0;
            for (word, &width) in words[*first..].iter_mut().zip(widths) {
                let (i, shift) = (offset / 32, offset % 32);
                let value = (limb(i) | limb(i + 1) << 32) >> shift;
                *word = (value & ((1 << width) - 1)) as u32;
                offset += usize::from(width);
            }
        });
    }
}
