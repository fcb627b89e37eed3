//! Contexts over one pool.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use braid_isa::TILE;
use slotmap::{Key, SlotMap, new_key_type};

use super::error::CacheError;
use super::pool::{Page, PageId, PagePool};
use super::prefix::{PrefixStatistics, PrefixTree};
use super::table::PageTable;

new_key_type! {
    /// A context of a [`KvCache`]. A freed one is never mistaken for another.
    pub struct ContextId;
}

impl fmt::Display for ContextId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.data())
    }
}

/// Positions whose K and V must be copied to another page before the context is read or written again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageCopy {
    /// The page that others keep.
    pub from: PageId,
    /// The page that takes its place in the context.
    pub to: PageId,
    /// Positions to copy, from the first of the page on.
    pub positions: usize,
}

/// What [`KvCache::append`] did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The new positions of the context; their K and V are to be written.
    pub positions: Range<usize>,
    /// The copy of a shared page that is due first.
    pub copy: Option<PageCopy>,
}

/// How the pool is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Pages of the pool.
    pub total: usize,
    /// Pages that contexts or known prefixes hold.
    pub used: usize,
    /// Pages that nobody holds; `used + free == total`.
    pub free: usize,
    /// Of the used ones, pages that only known prefixes hold; they are given up when pages run out.
    pub unused_prefixes: usize,
    /// Live contexts.
    pub contexts: usize,
    /// Pages that the contexts would hold if none were shared.
    pub without_sharing: usize,
    /// Pages copied because a context wrote where others read, since the cache was made.
    pub copied_pages: u64,
}

/// Contexts as page tables over one pool.
///
/// A fork shares every page and costs the same whatever the length. A page that is partly filled is shared as well: the first context that writes behind
/// its last position continues it in place, unseen by the others; the next one copies that page alone.
#[derive(Debug)]
pub struct KvCache {
    pool: PagePool,
    contexts: SlotMap<ContextId, PageTable>,
    prefixes: PrefixTree,
    without_sharing: usize,
    copied_pages: u64,
}

/// Positions that a launch can address.
const LONGEST: usize = u32::MAX as usize / TILE * TILE;

impl KvCache {
    /// A cache over `pages_per_pe` pages on each of `pes` PEs.
    pub fn new(pes: usize, pages_per_pe: usize) -> KvCache {
        KvCache {
            pool: PagePool::new(pes, pages_per_pe),
            contexts: SlotMap::with_key(),
            prefixes: PrefixTree::default(),
            without_sharing: 0,
            copied_pages: 0,
        }
    }

    /// PEs that hold pages.
    pub fn pes(&self) -> usize {
        self.pool.pes()
    }

    /// A context without positions.
    pub fn create(&mut self) -> ContextId {
        self.insert(PageTable::default())
    }

    /// A context that starts with the longest known beginning of `tokens`, in whole pages. The rest is to be appended: its length tells how much was
    /// found.
    pub fn open(&mut self, tokens: &[u32]) -> ContextId {
        let path = self.prefixes.find(tokens);
        let table = PageTable::of_full_pages(path.iter().map(|&node| Arc::clone(self.prefixes.page(node))));
        self.insert(table)
    }

    /// A context that equals `parent` and shares all its pages. Costs the same whatever the length; copies no K or V.
    ///
    /// # Errors
    /// [`CacheError::UnknownContext`].
    pub fn fork(&mut self, parent: ContextId) -> Result<ContextId, CacheError> {
        let table = self.table(parent)?.clone();
        Ok(self.insert(table))
    }

    /// Adds `positions` positions at the end. On an error nothing has changed, but unused prefixes may have been given up.
    ///
    /// # Errors
    /// [`CacheError::UnknownContext`], [`CacheError::TooLong`], [`CacheError::OutOfPages`].
    pub fn append(&mut self, context: ContextId, positions: usize) -> Result<Appended, CacheError> {
        let old = self.table(context)?;
        let (start, offset) = (old.length(), old.length() % TILE);
        let end = start.saturating_add(positions);
        if end > LONGEST {
            return Err(CacheError::TooLong { context, length: end, limit: LONGEST });
        }
        if positions == 0 {
            return Ok(Appended { positions: start..end, copy: None });
        }
        let mut table = old.clone();
        let last = old.handle(start / TILE).filter(|_| offset != 0).cloned();
        let shared = last.as_ref().filter(|page| page.filled() != offset).cloned();
        let needed = end.div_ceil(TILE) - table.page_count() + usize::from(shared.is_some());
        self.check_room(context, needed)?;

        let mut copy = None;
        if let Some(page) = shared {
            let index = start / TILE;
            let own = self.take(context, &table, index, needed)?;
            copy = Some(PageCopy { from: page.id(), to: own.id(), positions: offset });
            own.fill(TILE.min(end - index * TILE));
            table = table.with(index, own);
        }
        for index in table.page_count()..end.div_ceil(TILE) {
            let page = self.take(context, &table, index, needed)?;
            page.fill(TILE.min(end - index * TILE));
            table.push(page);
        }
        table.set_length(end);

        // Nothing fails from here on.
        if let (Some(page), None) = (last, copy) {
            page.fill(TILE.min(offset + positions));
        }
        self.copied_pages += u64::from(copy.is_some());
        self.replace(context, table)?;
        Ok(Appended { positions: start..end, copy })
    }

    /// Keeps the first `length` positions of a context; pages that nobody else holds become free.
    ///
    /// # Errors
    /// [`CacheError::UnknownContext`], [`CacheError::Truncate`].
    pub fn truncate(&mut self, context: ContextId, length: usize) -> Result<(), CacheError> {
        let mut table = self.table(context)?.clone();
        if length > table.length() {
            return Err(CacheError::Truncate { context, length: table.length(), to: length });
        }
        table.truncate(length);
        self.replace(context, table)
    }

    /// Ends a context.
    ///
    /// # Errors
    /// [`CacheError::UnknownContext`], as for a context freed before.
    pub fn free(&mut self, context: ContextId) -> Result<(), CacheError> {
        let freed = self.contexts.remove(context).ok_or(CacheError::UnknownContext { context })?;
        self.without_sharing -= freed.page_count();
        Ok(())
    }

    /// Makes the context's full pages known by their tokens, once their K and V are written: later [`KvCache::open`]s find them. Where the same beginning
    /// is known already, the context takes over the known pages and its own become free; so K and V must depend on the tokens alone.
    ///
    /// # Errors
    /// [`CacheError::UnknownContext`], [`CacheError::Tokens`] unless there are as many tokens as positions.
    pub fn publish(&mut self, context: ContextId, tokens: &[u32]) -> Result<(), CacheError> {
        let mut table = self.table(context)?.clone();
        if tokens.len() != table.length() {
            return Err(CacheError::Tokens { context, length: table.length(), tokens: tokens.len() });
        }
        let pes = self.pool.pes();
        let path = self.prefixes.path(tokens);
        let known: Vec<Arc<Page>> = path.iter().map(|&node| Arc::clone(self.prefixes.page(node))).collect();
        let is_own = |index: usize| table.handle(index).is_some_and(|own| Arc::ptr_eq(own, &known[index]));
        let own = (0..known.len()).take_while(|&index| is_own(index)).count();
        // Taking over every known page may put two of one round on one PE; whole rounds are always even.
        let adopted = if even_with(&table, &known, pes) { known.len() } else { own.max(known.len() / pes * pes) };
        for (index, page) in known.iter().enumerate().take(adopted).skip(own) {
            table = table.with(index, Arc::clone(page));
        }
        if adopted == known.len() {
            let mut node = path.last().copied();
            for (page_tokens, page) in tokens.as_chunks::<TILE>().0.iter().zip(table.handles()).skip(adopted) {
                node = Some(self.prefixes.insert(node, *page_tokens, Arc::clone(page)));
            }
        }
        self.replace(context, table)
    }

    /// Pages and positions of a context.
    ///
    /// # Errors
    /// [`CacheError::UnknownContext`].
    pub fn table(&self, context: ContextId) -> Result<&PageTable, CacheError> {
        self.contexts.get(context).ok_or(CacheError::UnknownContext { context })
    }

    /// Live contexts, in no particular order.
    pub fn contexts(&self) -> impl Iterator<Item = ContextId> + '_ {
        self.contexts.keys()
    }

    /// How the pool is used.
    pub fn usage(&self) -> Usage {
        let (total, free) = (self.pool.total(), self.pool.free());
        Usage {
            total,
            used: total - free,
            free,
            unused_prefixes: self.prefixes.unused_pages(),
            contexts: self.contexts.len(),
            without_sharing: self.without_sharing,
            copied_pages: self.copied_pages,
        }
    }

    /// How often [`KvCache::open`] found something.
    pub fn prefix_statistics(&self) -> PrefixStatistics {
        self.prefixes.statistics()
    }

    /// Gives up every known prefix that no context uses; the pages given up.
    pub fn evict_unused_prefixes(&mut self) -> usize {
        let before = self.prefixes.page_count();
        while self.prefixes.evict() {}
        before - self.prefixes.page_count()
    }

    fn insert(&mut self, table: PageTable) -> ContextId {
        self.without_sharing += table.page_count();
        self.contexts.insert(table)
    }

    /// Gives a context another table.
    fn replace(&mut self, context: ContextId, table: PageTable) -> Result<(), CacheError> {
        let old = self.contexts.get_mut(context).ok_or(CacheError::UnknownContext { context })?;
        self.without_sharing = self.without_sharing + table.page_count() - old.page_count();
        *old = table;
        Ok(())
    }

    /// Refuses what cannot be had before any prefix is given up for it.
    fn check_room(&self, context: ContextId, needed: usize) -> Result<(), CacheError> {
        if needed <= self.pool.free() || needed <= self.pool.free() + self.prefixes.unused_pages() {
            return Ok(());
        }
        Err(self.out_of_pages(context, needed))
    }

    fn out_of_pages(&self, context: ContextId, needed: usize) -> CacheError {
        CacheError::OutOfPages {
            context,
            needed,
            free: self.pool.free(),
            evictable: self.prefixes.unused_pages(),
            total: self.pool.total(),
        }
    }

    /// A page for `index` of a table, if need be in the place of an unused prefix.
    fn take(&mut self, context: ContextId, table: &PageTable, index: usize, needed: usize) -> Result<Arc<Page>, CacheError> {
        loop {
            if let Some(page) = table.take_for(index, &self.pool) {
                return Ok(page);
            }
            let free = self.pool.free();
            if !self.prefixes.evict() {
                // Free pages on the wrong PEs: two pages of one round on one PE would make it the slowest of every launch.
                return Err(if free >= 1 {
                    CacheError::Uneven { context, free, total: self.pool.total() }
                } else {
                    self.out_of_pages(context, needed)
                });
            }
        }
    }
}

/// Whether a table stays even with its first pages replaced by `pages`.
fn even_with(table: &PageTable, pages: &[Arc<Page>], pes: usize) -> bool {
    let first = pages.len() / pes * pes;
    let mut seen = vec![false; pes];
    let mixed = (first..table.page_count().min(first + pes)).filter_map(|index| pages.get(index).or_else(|| table.handle(index)));
    mixed.into_iter().all(|page| !std::mem::replace(&mut seen[page.id().pe], true))
}
