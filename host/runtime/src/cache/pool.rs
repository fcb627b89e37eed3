//! The pages of all PEs.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bitvec::vec::BitVec;

/// Where a page lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PageId {
    /// Global index of the PE whose channel memory holds the page.
    pub pe: usize,
    /// Index of the page among the PE's pages.
    pub slot: usize,
}

/// A page in use: 16 positions of K and V. The page returns to the pool when the last table that holds it is dropped.
pub struct Page {
    id: PageId,
    /// Positions that somebody has written. A table that ends exactly here may continue the page in place.
    filled: AtomicUsize,
    slots: Arc<Mutex<Slots>>,
}

impl Page {
    /// Where it lies.
    pub fn id(&self) -> PageId {
        self.id
    }

    pub(super) fn filled(&self) -> usize {
        self.filled.load(Ordering::Relaxed)
    }

    pub(super) fn fill(&self, positions: usize) {
        self.filled.store(positions, Ordering::Relaxed);
    }
}

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "page {} of PE {}", self.id.slot, self.id.pe)
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        lock(&self.slots).release(self.id);
    }
}

/// One PE's pages.
struct Shard {
    used: BitVec,
    /// No slot below it is free.
    first: usize,
    free: usize,
}

struct Slots {
    shards: Vec<Shard>,
    free: usize,
}

impl Slots {
    fn take(&mut self, pe: usize) -> Option<PageId> {
        let shard = &mut self.shards[pe];
        // The lowest free slot: pages taken one after the other are neighbours, and neighbours are read by one command.
        let slot = shard.first + shard.used[shard.first..].first_zero()?;
        shard.used.set(slot, true);
        shard.first = slot + 1;
        shard.free -= 1;
        self.free -= 1;
        Some(PageId { pe, slot })
    }

    fn release(&mut self, id: PageId) {
        let shard = &mut self.shards[id.pe];
        shard.used.set(id.slot, false);
        shard.first = shard.first.min(id.slot);
        shard.free += 1;
        self.free += 1;
    }
}

fn lock(slots: &Mutex<Slots>) -> MutexGuard<'_, Slots> {
    // Every critical section leaves the counts whole, so a poisoned lock is as good as any.
    slots.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Pages of every PE, each free or held by tables.
pub struct PagePool {
    slots: Arc<Mutex<Slots>>,
    pes: usize,
    pages_per_pe: usize,
}

impl fmt::Debug for PagePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} pages free on {} PEs", self.free(), self.total(), self.pes)
    }
}

impl PagePool {
    /// A pool of `pages_per_pe` pages on each of `pes` PEs, all free.
    pub fn new(pes: usize, pages_per_pe: usize) -> PagePool {
        let shard = || Shard { used: BitVec::repeat(false, pages_per_pe), first: 0, free: pages_per_pe };
        let slots = Slots { shards: (0..pes).map(|_| shard()).collect(), free: pes * pages_per_pe };
        PagePool { slots: Arc::new(Mutex::new(slots)), pes, pages_per_pe }
    }

    /// PEs.
    pub fn pes(&self) -> usize {
        self.pes
    }

    /// Pages of all PEs.
    pub fn total(&self) -> usize {
        self.pes * self.pages_per_pe
    }

    /// Free pages of all PEs.
    pub fn free(&self) -> usize {
        lock(&self.slots).free
    }

    /// Free pages of one PE.
    pub fn free_on(&self, pe: usize) -> usize {
        lock(&self.slots).shards[pe].free
    }

    /// Takes a page on the allowed PE that has most free ones; among equals the first from `start` on, cyclically. `None` if no allowed PE has any.
    pub fn take(&self, start: usize, allowed: impl Fn(usize) -> bool) -> Option<Arc<Page>> {
        let mut slots = lock(&self.slots);
        let mut best: Option<(usize, usize)> = None;
        for pe in (0..self.pes).map(|i| (start + i) % self.pes).filter(|&pe| allowed(pe)) {
            let free = slots.shards[pe].free;
            if free > best.map_or(0, |b| b.0) {
                best = Some((free, pe));
            }
        }
        let id = slots.take(best?.1)?;
        drop(slots);
        Some(Arc::new(Page { id, filled: AtomicUsize::new(0), slots: Arc::clone(&self.slots) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_go_in_turn_and_come_back() {
        let pool = PagePool::new(3, 2);
        let pages: Vec<_> = (0..6).map(|i| pool.take(i, |_| true).unwrap()).collect();
        let ids: Vec<_> = pages.iter().map(|p| (p.id().pe, p.id().slot)).collect();
        assert_eq!(ids, [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]);
        assert_eq!(pool.free(), 0);
        assert!(pool.take(0, |_| true).is_none());
        drop(pages);
        assert_eq!((pool.free(), pool.free_on(1)), (6, 2));
    }

    #[test]
    fn the_fullest_pe_comes_last_and_the_lowest_slot_first() {
        let pool = PagePool::new(2, 4);
        let kept = pool.take(0, |pe| pe == 0).unwrap();
        assert_eq!(pool.take(0, |_| true).unwrap().id(), PageId { pe: 1, slot: 0 });
        let again = pool.take(0, |pe| pe == 0).unwrap();
        assert_eq!(again.id().slot, 1);
        drop(kept);
        assert_eq!(pool.take(0, |pe| pe == 0).unwrap().id().slot, 0);
        assert!(pool.take(0, |_| false).is_none());
    }
}
