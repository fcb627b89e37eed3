//! Any sequence of operations against contexts that copy everything.

use std::collections::{HashMap, HashSet};

use braid_isa::TILE;
use proptest::prelude::*;

use super::*;

/// One step; contexts are chosen by index among the live ones.
#[derive(Clone, Debug)]
enum Step {
    Create,
    Open(Vec<u32>),
    Fork(usize),
    Append(usize, Vec<u32>),
    Truncate(usize, usize),
    Free(usize),
    Publish(usize),
    Evict,
}

/// Tokens of few kinds, in runs of pages, so that beginnings repeat.
fn tokens() -> impl Strategy<Value = Vec<u32>> {
    (prop::collection::vec(0u32..2, 0..5), 0usize..20)
        .prop_map(|(pages, rest)| pages.into_iter().flat_map(|kind| [kind; TILE]).chain((0..rest as u32).map(|i| 7 + i % 3)).collect())
}

fn step() -> impl Strategy<Value = Step> {
    let which = 0usize..100;
    prop_oneof![
        1 => Just(Step::Create),
        2 => tokens().prop_map(Step::Open),
        4 => which.clone().prop_map(Step::Fork),
        6 => (which.clone(), tokens()).prop_map(|(c, t)| Step::Append(c, t)),
        2 => (which.clone(), 0usize..120).prop_map(|(c, n)| Step::Truncate(c, n)),
        2 => which.clone().prop_map(Step::Free),
        3 => which.prop_map(Step::Publish),
        1 => Just(Step::Evict),
    ]
}

/// The cache, the memory that it describes (a token stands for its K and V), and what every context should hold.
struct Twin {
    cache: KvCache,
    memory: HashMap<PageId, [u32; TILE]>,
    model: Vec<(ContextId, Vec<u32>)>,
}

impl Twin {
    fn new(pes: usize, pages: usize) -> Twin {
        Twin { cache: KvCache::new(pes, pages), memory: HashMap::new(), model: Vec::new() }
    }

    fn append(&mut self, at: usize, tokens: &[u32]) {
        let (id, content) = &mut self.model[at];
        let before = self.cache.usage();
        let Ok(appended) = self.cache.append(*id, tokens.len()) else {
            // Only unused prefixes may have gone.
            let after = self.cache.usage();
            assert_eq!((after.without_sharing, after.copied_pages), (before.without_sharing, before.copied_pages));
            return;
        };
        assert_eq!(appended.positions, content.len()..content.len() + tokens.len());
        if let Some(copy) = appended.copy {
            let source = self.memory[&copy.from];
            let target = self.memory.entry(copy.to).or_insert([u32::MAX; TILE]);
            target[..copy.positions].copy_from_slice(&source[..copy.positions]);
        }
        let table = self.cache.table(*id).unwrap();
        for (position, &token) in appended.positions.zip(tokens) {
            self.memory.entry(table.page(position / TILE).unwrap()).or_insert([u32::MAX; TILE])[position % TILE] = token;
        }
        content.extend(tokens);
    }

    fn step(&mut self, step: &Step) {
        let live = self.model.len();
        match step {
            Step::Create => self.model.push((self.cache.create(), Vec::new())),
            Step::Open(tokens) => {
                let id = self.cache.open(tokens);
                let found = self.cache.table(id).unwrap().length();
                self.model.push((id, tokens[..found].to_vec()));
            }
            Step::Evict => {
                self.cache.evict_unused_prefixes();
                assert_eq!(self.cache.usage().unused_prefixes, 0);
            }
            _ if live == 0 => {}
            Step::Fork(c) => {
                let (parent, content) = self.model[c % live].clone();
                let before = self.cache.usage();
                self.model.push((self.cache.fork(parent).unwrap(), content));
                assert_eq!((self.cache.usage().used, self.cache.usage().copied_pages), (before.used, before.copied_pages));
            }
            Step::Append(c, tokens) => self.append(c % live, tokens),
            Step::Truncate(c, to) => {
                let (id, content) = &mut self.model[c % live];
                assert_eq!(self.cache.truncate(*id, *to).is_ok(), *to <= content.len());
                content.truncate(*to);
            }
            Step::Free(c) => {
                let (id, _) = self.model.swap_remove(c % live);
                self.cache.free(id).unwrap();
                assert_eq!(self.cache.free(id), Err(CacheError::UnknownContext { context: id }));
                assert!(self.cache.fork(id).is_err() && self.cache.append(id, 1).is_err() && self.cache.table(id).is_err());
            }
            Step::Publish(c) => {
                let (id, content) = &self.model[c % live];
                self.cache.publish(*id, content).unwrap();
                assert!(self.cache.publish(*id, &[content.as_slice(), &[0]].concat()).is_err());
            }
        }
    }

    /// Every context reads what the model says; pages sum up; no PE has two more than another.
    fn check(&self) {
        let mut held = HashSet::new();
        let mut sum = 0;
        for (id, content) in &self.model {
            let table = self.cache.table(*id).unwrap();
            let pages: Vec<PageId> = table.pages().collect();
            assert_eq!(pages.len(), content.len().div_ceil(TILE));
            let read: Vec<u32> = (0..content.len()).map(|p| self.memory[&pages[p / TILE]][p % TILE]).collect();
            assert_eq!(&read, content);
            let mut on = vec![0usize; self.cache.pes()];
            pages.iter().for_each(|page| on[page.pe] += 1);
            assert!(on.iter().max().unwrap() - on.iter().min().unwrap() <= 1, "{on:?}");
            sum += pages.len();
            held.extend(pages);
        }
        let usage = self.cache.usage();
        assert_eq!(usage.used + usage.free, usage.total);
        assert_eq!(usage.without_sharing, sum);
        assert_eq!(usage.contexts, self.model.len());
        assert_eq!(usage.used, held.len() + usage.unused_prefixes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]
    #[test]
    fn contexts_hold_what_copies_would_hold(pes in 1usize..6, pages in 1usize..8, steps in prop::collection::vec(step(), 1..60)) {
        let mut twin = Twin::new(pes, pages);
        for step in &steps {
            twin.step(step);
            twin.check();
        }
        for (id, _) in std::mem::take(&mut twin.model) {
            twin.cache.free(id).unwrap();
        }
        twin.cache.evict_unused_prefixes();
        prop_assert_eq!(twin.cache.usage().free, pes * pages);
    }
}

#[test]
fn contexts_created_apart_share_their_common_beginning() {
    let mut cache = KvCache::new(4, 10);
    let prompt: Vec<u32> = (0..70).collect();
    let first = cache.open(&prompt);
    cache.append(first, 70).unwrap();
    cache.publish(first, &prompt).unwrap();
    let second = cache.open(&[&prompt[..40], &[99; 30]].concat());
    assert_eq!(cache.table(second).unwrap().length(), 32, "two whole pages");
    assert_eq!(cache.usage().used, 5);
    let found = cache.prefix_statistics();
    assert_eq!((found.lookups, found.hits, found.positions_asked, found.positions_found), (2, 1, 128, 32));
}

#[test]
fn a_beginning_computed_twice_is_kept_once() {
    let mut cache = KvCache::new(2, 10);
    let prompt: Vec<u32> = (0..64).collect();
    let contexts = [cache.open(&prompt), cache.open(&prompt)];
    for context in contexts {
        cache.append(context, 64).unwrap();
    }
    assert_eq!(cache.usage().used, 8);
    for context in contexts {
        cache.publish(context, &prompt).unwrap();
    }
    assert_eq!(cache.usage().used, 4);
    assert!(cache.table(contexts[0]).unwrap().pages().eq(cache.table(contexts[1]).unwrap().pages()));
}

#[test]
fn the_least_recently_used_prefix_goes_first_and_no_used_one_ever() {
    let mut cache = KvCache::new(1, 3);
    let prompts = [[1u32; TILE], [2; TILE], [3; TILE]];
    for prompt in &prompts {
        let context = cache.open(prompt);
        cache.append(context, TILE).unwrap();
        cache.publish(context, prompt).unwrap();
        cache.free(context).unwrap();
    }
    let kept = cache.open(&prompts[0]);
    let other = cache.create();
    cache.append(other, 1).unwrap();
    assert_eq!(cache.prefix_statistics().evicted_pages, 1);
    let gone = cache.open(&prompts[1]);
    assert_eq!(cache.table(gone).unwrap().length(), 0, "the second prompt was used longest ago");
    cache.append(gone, 1).unwrap();
    let error = cache.append(gone, 2 * TILE).unwrap_err();
    assert!(matches!(error, CacheError::OutOfPages { needed: 2, free: 0, evictable: 0, total: 3, .. }), "{error}");
    assert_eq!(cache.table(kept).unwrap().length(), TILE);
    assert_eq!(cache.table(gone).unwrap().length(), 1, "a refused request changes nothing");
}

#[test]
fn a_prefix_above_a_page_in_use_can_be_given_up() {
    let mut cache = KvCache::new(1, 4);
    let prompt = [[1u32; TILE], [2; TILE]].concat();
    let known = cache.create();
    cache.append(known, TILE).unwrap();
    cache.publish(known, &prompt[..TILE]).unwrap();
    let parent = cache.create();
    cache.append(parent, 2 * TILE).unwrap();
    let fork = cache.fork(parent).unwrap();
    // The parent takes over the known first page; the fork holds its old one, and the second page, which is below the known first one.
    cache.publish(parent, &prompt).unwrap();
    cache.free(parent).unwrap();
    cache.free(known).unwrap();
    assert_eq!((cache.usage().used, cache.usage().unused_prefixes), (3, 1));
    let other = cache.create();
    cache.append(other, 2 * TILE).unwrap();
    assert_eq!(cache.usage().unused_prefixes, 0);
    assert_eq!(cache.prefix_statistics().evicted_pages, 1);
    assert_eq!(cache.table(fork).unwrap().length(), 2 * TILE);
    let again = cache.open(&prompt);
    assert_eq!(cache.table(again).unwrap().length(), 0, "no way leads to the second page");
}

#[test]
fn ten_thousand_branches_spread_over_all_pes() {
    let mut cache = KvCache::new(32, 400);
    let parent = cache.create();
    cache.append(parent, 1600).unwrap();
    let branches: Vec<ContextId> = (0..10_000).map(|_| cache.fork(parent).unwrap()).collect();
    for &branch in &branches {
        cache.append(branch, 16).unwrap();
    }
    let mut on = vec![0usize; 32];
    for &branch in &branches {
        on[cache.table(branch).unwrap().page(100).unwrap().pe] += 1;
    }
    // 100 pages leave 28 PEs for the last round; the branches' pages fill them alike.
    assert_eq!(on.iter().filter(|&&n| n > 0).count(), 28);
    let (least, most) = (on.iter().filter(|&&n| n > 0).min().unwrap(), on.iter().max().unwrap());
    assert!(most - least <= 1, "{on:?}");
    for branch in branches {
        cache.free(branch).unwrap();
    }
    cache.free(parent).unwrap();
    assert_eq!(cache.usage().used, 0);
}
