//! Query rows of several contexts over one numbering of their pages.
//!
//! A launch knows positions, not contexts. So the distinct pages that the rows see are numbered one after the other, shared ones once, and every row's
//! ranges are told in that numbering. Pages keep the order that they have in every context; so each row's positions are summed in the same order, and its
//! bits are the same, whatever else is in the batch.

use std::collections::HashMap;
use std::ops::Range;

use bitvec::vec::BitVec;
use braid_firmware::Run;
use braid_firmware::row_table::passes;
use braid_isa::TILE;
use thiserror::Error;

use crate::cache::{CacheError, ContextId, KvCache, PageId};
use crate::layout::KvLayout;

/// Rows that cannot be launched together.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BatchError {
    /// A context that does not exist.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// A range beyond the end of the context.
    #[error("token {token} of context {context} sees positions {start}..{end}, but the context has {length}")]
    Range {
        /// The context.
        context: ContextId,
        /// Token.
        token: usize,
        /// First position.
        start: u32,
        /// End.
        end: u32,
        /// Positions of the context.
        length: usize,
    },
    /// Ranges that overlap or do not ascend.
    #[error("token {token} of context {context} sees {start}..{end} after {before}; ranges must ascend and not overlap")]
    Order {
        /// The context.
        context: ContextId,
        /// Token.
        token: usize,
        /// First position.
        start: u32,
        /// End.
        end: u32,
        /// End of the range before it.
        before: u32,
    },
}

/// Ranges that a token sees, in positions of its context: ascending, without overlap.
pub type Visible = Vec<Range<u32>>;

/// Token `i` of `tokens` sees everything up to and including position `first + i`.
pub fn causal(first: usize, tokens: usize) -> Vec<Visible> {
    (0..tokens).map(|i| std::iter::once(0..(first + i + 1) as u32).collect()).collect()
}

/// Tokens of several contexts, and the pages that they see.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Distinct pages in the order of their numbers.
    pages: Vec<PageId>,
    /// Per query and token, the ranges in the numbering: number x 16 + position within the page.
    ranges: Vec<Vec<Visible>>,
    pairs: Vec<u64>,
    positions: u64,
}

impl Batch {
    /// Numbers the pages that the queries see. A query is a context, and for each of its tokens the ranges that it sees.
    ///
    /// # Errors
    /// [`BatchError`], naming the context and the token.
    pub fn new(cache: &KvCache, queries: &[(ContextId, &[Visible])]) -> Result<Batch, BatchError> {
        let mut batch =
            Batch { pages: Vec::new(), ranges: Vec::with_capacity(queries.len()), pairs: Vec::with_capacity(queries.len()), positions: 0 };
        let mut numbers: HashMap<PageId, usize> = HashMap::new();
        for &(context, tokens) in queries {
            let table = cache.table(context)?;
            for (token, ranges) in tokens.iter().enumerate() {
                check(context, token, ranges, table.length())?;
            }
            // Pages of the context that some token sees, and their numbers.
            let all: Visible = tokens.iter().flatten().cloned().collect();
            let mut segments: Vec<(usize, usize, usize)> = Vec::new();
            let mut last = None;
            for range in passes(&all).into_iter().flatten() {
                for index in range.start as usize / TILE..(range.end as usize).div_ceil(TILE) {
                    let Some(page) = table.page(index) else { break };
                    if segments.last().is_some_and(|&(first, _, count)| index < first + count) {
                        continue;
                    }
                    // A page that others see in another order gets a second number, so that this context's order is kept.
                    let known = numbers.get(&page).copied().filter(|&n| last.is_none_or(|last| n > last));
                    let number = known.unwrap_or_else(|| {
                        batch.pages.push(page);
                        let number = batch.pages.len() - 1;
                        numbers.insert(page, number);
                        number
                    });
                    last = Some(number);
                    match segments.last_mut() {
                        Some((first, start, count)) if *first + *count == index && *start + *count == number => *count += 1,
                        _ => segments.push((index, number, 1)),
                    }
                }
            }
            let ranges: Vec<Visible> = tokens.iter().map(|ranges| renumber(ranges, &segments)).collect();
            batch.pairs.push(tokens.iter().flatten().map(|r| u64::from(r.end - r.start)).sum());
            batch.ranges.push(ranges);
        }
        let all: Visible = batch.ranges.iter().flatten().flatten().cloned().collect();
        batch.positions = passes(&all).into_iter().flatten().map(|r| u64::from(r.end - r.start)).sum();
        Ok(batch)
    }

    /// Distinct pages, in the order of their numbers.
    pub fn pages(&self) -> &[PageId] {
        &self.pages
    }

    /// Ranges of a token, in the numbering.
    pub fn ranges(&self, query: usize, token: usize) -> &[Range<u32>] {
        &self.ranges[query][token]
    }

    /// Distinct positions that some token sees.
    pub fn visible_positions(&self) -> u64 {
        self.positions
    }

    /// Visible (token, position) pairs of a query.
    pub fn visible_pairs(&self, query: usize) -> u64 {
        self.pairs[query]
    }

    /// Runs of every PE that cover the pages that the ranges touch, in the order of their numbers.
    pub fn runs<'r>(&self, ranges: impl Iterator<Item = &'r Range<u32>>, layout: &KvLayout, plane: usize, pes: usize) -> Vec<Vec<Run>> {
        let mut touched: BitVec = BitVec::repeat(false, self.pages.len());
        for range in ranges.filter(|r| r.start < r.end) {
            touched[range.start as usize / TILE..(range.end as usize).div_ceil(TILE)].fill(true);
        }
        // Per PE: slot and number of the last page, to see whether the next one continues the run.
        let mut runs: Vec<Vec<(Run, usize, usize)>> = vec![Vec::new(); pes];
        for number in touched.iter_ones() {
            let page = self.pages[number];
            let own = &mut runs[page.pe];
            if let Some((run, slot, last)) = own.last_mut() {
                let step = number - *last;
                let continues = page.slot == *slot + 1
                    && (run.pages == 1 || step == usize::from(run.stride))
                    && run.pages < u16::MAX
                    && step <= u16::MAX.into();
                if continues {
                    (run.pages, run.stride) = (run.pages + 1, step as u16);
                    (*slot, *last) = (page.slot, number);
                    continue;
                }
            }
            let run = Run { page: layout.beat(plane, page.slot) as u32, position: (number * TILE) as u32, pages: 1, stride: pes as u16 };
            own.push((run, page.slot, number));
        }
        let active = runs.iter().rposition(|own| !own.is_empty()).map_or(0, |last| last + 1);
        runs.truncate(active);
        runs.into_iter().map(|own| own.into_iter().map(|(run, _, _)| run).collect()).collect()
    }
}

fn check(context: ContextId, token: usize, ranges: &[Range<u32>], length: usize) -> Result<(), BatchError> {
    let mut before = 0;
    for &Range { start, end } in ranges {
        if start > end || end as usize > length {
            return Err(BatchError::Range { context, token, start, end, length });
        }
        if start < before {
            return Err(BatchError::Order { context, token, start, end, before });
        }
        before = end;
    }
    Ok(())
}

/// A token's ranges in the numbering. `segments` are (first page of the context, its number, pages).
fn renumber(ranges: &[Range<u32>], segments: &[(usize, usize, usize)]) -> Visible {
    let mut renumbered = Visible::new();
    for range in ranges.iter().filter(|r| r.start < r.end) {
        let first = segments.partition_point(|&(first, _, count)| (first + count) * TILE <= range.start as usize);
        for &(first, number, count) in &segments[first..] {
            let (start, end) = ((range.start as usize).max(first * TILE), (range.end as usize).min((first + count) * TILE));
            if start >= end {
                break;
            }
            let shift = |position: usize| (position - first * TILE + number * TILE) as u32;
            renumbered.push(shift(start)..shift(end));
        }
    }
    renumbered
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: KvLayout = KvLayout { layers: 1, kv_heads: 1, head_dim: 16, pages_per_pe: 100 };

    #[test]
    fn a_shared_prefix_is_numbered_once_and_suffixes_follow() {
        let mut cache = KvCache::new(2, 100);
        let parent = cache.create();
        cache.append(parent, 40).unwrap();
        let child = cache.fork(parent).unwrap();
        cache.append(parent, 10).unwrap();
        cache.append(child, 20).unwrap();
        let (a, b) = (causal(40, 10), causal(40, 20));
        let batch = Batch::new(&cache, &[(parent, &a), (child, &b)]).unwrap();
        // The parent went on in its own third page; the child copied it.
        assert_eq!(batch.pages().len(), 4 + 2);
        assert_eq!(batch.ranges(0, 9), std::slice::from_ref(&(0..50)));
        assert_eq!(batch.ranges(1, 0), [0..32, 64..73]);
        assert_eq!(batch.ranges(1, 19), [0..32, 64..92]);
        assert_eq!(batch.visible_positions(), 50 + 28);
        assert_eq!([0, 1].map(|q| batch.visible_pairs(q)), [(41..=50).sum::<u64>(), (41..=60).sum()]);
    }

    #[test]
    fn neighbours_on_a_pe_are_one_run() {
        let mut cache = KvCache::new(4, 100);
        let context = cache.create();
        cache.append(context, 16 * 11).unwrap();
        let visible = causal(175, 1);
        let batch = Batch::new(&cache, &[(context, &visible)]).unwrap();
        let runs = batch.runs(batch.ranges(0, 0).iter(), &LAYOUT, 0, 4);
        let run = |pe: u32, pages| vec![Run { page: 0, position: 16 * pe, pages, stride: 4 }];
        assert_eq!(runs, [run(0, 3), run(1, 3), run(2, 3), run(3, 2)]);
        // A window in the middle touches two pages.
        let runs = batch.runs(std::iter::once(&(20..33)), &LAYOUT, 0, 4);
        assert_eq!(runs.iter().map(Vec::len).collect::<Vec<_>>(), [0, 1, 1]);
    }

    #[test]
    fn a_page_seen_in_two_orders_is_read_twice_and_every_order_is_kept() {
        let mut cache = KvCache::new(1, 100);
        let first = cache.create();
        cache.append(first, 32).unwrap();
        let tokens: Vec<u32> = (0..32).collect();
        let second = cache.create();
        cache.append(second, 32).unwrap();
        let fork = cache.fork(second).unwrap();
        cache.append(fork, 16).unwrap();
        let late = cache.fork(fork).unwrap();
        cache.publish(first, &tokens).unwrap();
        // `fork` takes over the first two pages of `first`; `late` keeps those of `second`, and shares the third with `fork`.
        let more: Vec<u32> = (0..48).collect();
        cache.publish(fork, &more).unwrap();
        let visible = causal(47, 1);
        let batch = Batch::new(&cache, &[(fork, &visible), (late, &visible)]).unwrap();
        let order = |query: usize| {
            let pages = batch.ranges(query, 0).iter().flat_map(|r| r.start / 16..r.end.div_ceil(16));
            pages.map(|n| batch.pages()[n as usize]).collect::<Vec<_>>()
        };
        assert!(order(0).into_iter().eq(cache.table(fork).unwrap().pages()));
        assert!(order(1).into_iter().eq(cache.table(late).unwrap().pages()));
        assert_eq!(batch.pages().len(), 6);
    }

    #[test]
    fn ranges_that_make_no_sense_are_named() {
        let mut cache = KvCache::new(2, 100);
        let context = cache.create();
        cache.append(context, 40).unwrap();
        #[expect(clippy::single_range_in_vec_init, reason = "a token with one range has a list of one range")]
        let one = [0..41];
        let error = |ranges: &[Range<u32>]| Batch::new(&cache, &[(context, &[ranges.to_vec()])]).unwrap_err().to_string();
        assert!(error(&one).contains("sees positions 0..41, but the context has 40"));
        assert!(error(&[0..20, 10..30]).contains("sees 10..30 after 20"));
        assert!(error(&[20..30, 0..10]).contains("ranges must ascend"));
        cache.free(context).unwrap();
        assert!(Batch::new(&cache, &[(context, &[])]).unwrap_err().to_string().contains("was freed"));
    }
}
