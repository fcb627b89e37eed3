//! Pages found by the tokens that they hold: a radix tree with one page a node.
//!
//! Idea: RadixAttention (Zheng et al., "SGLang: Efficient Execution of Structured Language Model Programs", section 3), in steps of whole pages, as only
//! those can be shared without a copy.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use braid_isa::TILE;
use slotmap::{SlotMap, new_key_type};

use super::pool::Page;

new_key_type! {
    /// A node of the tree.
    pub(super) struct Node;
}

type Tokens = [u32; TILE];

/// How often prefixes were found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrefixStatistics {
    /// Look-ups.
    pub lookups: u64,
    /// Look-ups that found at least one page.
    pub hits: u64,
    /// Positions asked for, in whole pages.
    pub positions_asked: u64,
    /// Positions found.
    pub positions_found: u64,
    /// Pages given up for others.
    pub evicted_pages: u64,
}

#[derive(Debug)]
struct Entry {
    parent: Option<Node>,
    tokens: Tokens,
    page: Arc<Page>,
    children: HashMap<Tokens, Node>,
    used_at: u64,
}

impl Entry {
    /// No table holds the page: the tree's handle is the only one.
    fn is_unused(&self) -> bool {
        Arc::strong_count(&self.page) == 1
    }
}

/// The tree. A page stays in it after its contexts are gone, until its place is needed: least recently used first, leaves before their parents.
#[derive(Debug, Default)]
pub struct PrefixTree {
    nodes: SlotMap<Node, Entry>,
    roots: HashMap<Tokens, Node>,
    /// Nodes without children, by time of last use.
    leaves: BTreeSet<(u64, Node)>,
    clock: u64,
    statistics: PrefixStatistics,
}

impl PrefixTree {
    /// Pages in the tree.
    pub fn page_count(&self) -> usize {
        self.nodes.len()
    }

    /// How often prefixes were found.
    pub fn statistics(&self) -> PrefixStatistics {
        self.statistics
    }

    /// Pages that no context holds.
    pub fn unused_pages(&self) -> usize {
        self.nodes.values().filter(|entry| entry.is_unused()).count()
    }

    /// The nodes of the longest known beginning of whole pages.
    pub(super) fn path(&self, tokens: &[u32]) -> Vec<Node> {
        let (mut path, mut children) = (Vec::new(), &self.roots);
        for page in tokens.as_chunks::<TILE>().0 {
            let Some(&node) = children.get(page) else { break };
            path.push(node);
            children = &self.nodes[node].children;
        }
        path
    }

    /// As [`PrefixTree::path`], counted as a look-up and as a use.
    pub(super) fn find(&mut self, tokens: &[u32]) -> Vec<Node> {
        let path = self.path(tokens);
        self.statistics.lookups += 1;
        self.statistics.hits += u64::from(!path.is_empty());
        self.statistics.positions_asked += (tokens.len() / TILE * TILE) as u64;
        self.statistics.positions_found += (path.len() * TILE) as u64;
        if let Some(&node) = path.last() {
            self.touch(node);
        }
        path
    }

    pub(super) fn page(&self, node: Node) -> &Arc<Page> {
        &self.nodes[node].page
    }

    /// Adds a page below `parent`. The node must not exist.
    pub(super) fn insert(&mut self, parent: Option<Node>, tokens: Tokens, page: Arc<Page>) -> Node {
        self.clock += 1;
        let node = self.nodes.insert(Entry { parent, tokens, page, children: HashMap::new(), used_at: self.clock });
        self.leaves.insert((self.clock, node));
        match parent {
            Some(parent) => {
                self.leaves.remove(&(self.nodes[parent].used_at, parent));
                self.nodes[parent].children.insert(tokens, node);
            }
            None => {
                self.roots.insert(tokens, node);
            }
        }
        node
    }

    fn touch(&mut self, node: Node) {
        self.clock += 1;
        let before = std::mem::replace(&mut self.nodes[node].used_at, self.clock);
        if self.leaves.remove(&(before, node)) {
            self.leaves.insert((self.clock, node));
        }
    }

    /// Gives up the least recently used page that no context holds; false if there is none. Leaves go before their parents. A page that nobody holds can
    /// be above one that is held (a fork keeps its own pages when its parent takes over known ones): if no leaf is left, such a page goes, and those below
    /// it stay with their contexts but are no longer found.
    pub(super) fn evict(&mut self) -> bool {
        let unused = |node: &Node| self.nodes[*node].is_unused();
        let leaf = self.leaves.iter().map(|&(_, node)| node).find(unused);
        let least_recent = || self.nodes.iter().filter(|(_, entry)| entry.is_unused()).min_by_key(|(_, entry)| entry.used_at);
        let Some(node) = leaf.or_else(|| least_recent().map(|(node, _)| node)) else { return false };
        self.detach(node);
        let mut subtree = vec![node];
        while let Some(entry) = subtree.pop().and_then(|node| self.forget(node)) {
            self.statistics.evicted_pages += u64::from(entry.is_unused());
            subtree.extend(entry.children.into_values());
        }
        true
    }

    /// Unlinks a node from the one above it.
    fn detach(&mut self, node: Node) {
        let Entry { parent, tokens, used_at, .. } = self.nodes[node];
        let Some(parent) = parent else {
            self.roots.remove(&tokens);
            return;
        };
        // Whoever used the child used its parent too.
        let above = &mut self.nodes[parent];
        self.leaves.remove(&(above.used_at, parent));
        above.children.remove(&tokens);
        above.used_at = above.used_at.max(used_at);
        if above.children.is_empty() {
            self.leaves.insert((above.used_at, parent));
        }
    }

    fn forget(&mut self, node: Node) -> Option<Entry> {
        let entry = self.nodes.remove(node)?;
        self.leaves.remove(&(entry.used_at, node));
        Some(entry)
    }
}
