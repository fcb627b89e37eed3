//! A context's pages.

use std::sync::Arc;

use braid_isa::TILE;
use rpds::VectorSync;

use super::pool::{Page, PageId, PagePool};

/// Pages of a context in order of position, and the number of positions. A clone costs the same whatever the length, and shares all pages.
///
/// Placement: within every round of as many pages as there are PEs, no PE holds two; so the pages of a context differ by at most one between PEs.
#[derive(Clone, Debug, Default)]
pub struct PageTable {
    pages: VectorSync<Arc<Page>>,
    length: usize,
}

impl PageTable {
    /// The first pages of a context that are all full.
    pub(super) fn of_full_pages(pages: impl IntoIterator<Item = Arc<Page>>) -> PageTable {
        let pages: VectorSync<Arc<Page>> = pages.into_iter().collect();
        PageTable { length: pages.len() * TILE, pages }
    }

    /// Positions.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Pages, the partly filled last one included.
    pub fn page_count(&self) -> usize {
        self.pages.len()
    }

    /// Where page `index` lies; `None` beyond the last.
    pub fn page(&self, index: usize) -> Option<PageId> {
        self.pages.get(index).map(|page| page.id())
    }

    /// Where all pages lie, in order of position.
    pub fn pages(&self) -> impl Iterator<Item = PageId> + '_ {
        self.pages.iter().map(|page| page.id())
    }

    pub(super) fn handles(&self) -> impl Iterator<Item = &Arc<Page>> {
        self.pages.iter()
    }

    pub(super) fn handle(&self, index: usize) -> Option<&Arc<Page>> {
        self.pages.get(index)
    }

    /// Takes a page for index `index` (of this table, or one beyond the end), on a PE that no other page of its round lies on.
    pub(super) fn take_for(&self, index: usize, pool: &PagePool) -> Option<Arc<Page>> {
        let pes = pool.pes();
        let round = index / pes * pes..(index / pes + 1) * pes;
        let mut taken = vec![false; pes];
        for other in round.filter(|&other| other != index) {
            if let Some(page) = self.page(other) {
                taken[page.pe] = true;
            }
        }
        let previous = index.checked_sub(1).and_then(|i| self.page(i));
        pool.take(previous.map_or(0, |page| page.pe + 1), |pe| !taken[pe])
    }

    /// The same table with page `index` replaced, or added at the end.
    pub(super) fn with(&self, index: usize, page: Arc<Page>) -> PageTable {
        let pages = if index == self.pages.len() { Some(self.pages.push_back(page)) } else { self.pages.set(index, page) };
        PageTable { pages: pages.unwrap_or_else(|| self.pages.clone()), length: self.length }
    }

    /// Adds a page at the end.
    pub(super) fn push(&mut self, page: Arc<Page>) {
        self.pages.push_back_mut(page);
    }

    pub(super) fn set_length(&mut self, length: usize) {
        self.length = length;
    }

    /// Keeps the first `length` positions.
    pub(super) fn truncate(&mut self, length: usize) {
        while self.pages.len() > length.div_ceil(TILE) {
            self.pages.drop_last_mut();
        }
        self.length = self.length.min(length);
    }

    /// Whether no PE holds two pages of one round; so long as it holds, pages differ by at most one between PEs.
    pub fn is_even(&self, pes: usize) -> bool {
        let ids: Vec<PageId> = self.pages().collect();
        ids.chunks(pes).all(|round| {
            let mut seen = vec![false; pes];
            round.iter().all(|page| !std::mem::replace(&mut seen[page.pe], true))
        })
    }
}
