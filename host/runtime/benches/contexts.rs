//! Cost of contexts: `cargo bench -p braid-runtime`. Prints times and their ratios to the bounds that the design names.

use std::hint::black_box;
use std::time::{Duration, Instant};

use braid_runtime::cache::{ContextId, KvCache};

const PES: usize = 32;

/// Median of the time of one fork, in batches that are freed again.
fn fork(cache: &mut KvCache, parent: ContextId) -> Duration {
    const BATCH: u32 = 2_000;
    let mut times: Vec<Duration> = (0..31)
        .map(|_| {
            let mut forks = Vec::with_capacity(BATCH as usize);
            let start = Instant::now();
            for _ in 0..BATCH {
                forks.push(cache.fork(black_box(parent)).expect("a live context"));
            }
            let time = start.elapsed() / BATCH;
            forks.into_iter().for_each(|f| cache.free(f).expect("a live context"));
            time
        })
        .collect();
    times.sort();
    times[times.len() / 2]
}

/// Pseudo-random order (xorshift).
fn shuffle<T>(items: &mut [T]) {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for i in (1..items.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        items.swap(i, (state % (i as u64 + 1)) as usize);
    }
}

fn main() {
    let mut cache = KvCache::new(PES, 4_000);
    let (short, long) = (cache.create(), cache.create());
    cache.append(short, 1_000).expect("room");
    cache.append(long, 1_000_000).expect("room");
    let (of_short, of_long) = (fork(&mut cache, short), fork(&mut cache, long));
    let ratio = of_long.as_secs_f64() / of_short.as_secs_f64();
    println!("fork of 1,000 positions {of_short:?}, of 1,000,000 {of_long:?}: ratio {ratio:.2} (at most 1.5)");
    println!("bytes of K and V copied by a fork: {} pages (at most 0)", cache.usage().copied_pages);

    let mut cache = KvCache::new(PES, 400);
    let start = Instant::now();
    let parent = cache.create();
    cache.append(parent, 8_192).expect("room");
    let mut branches: Vec<ContextId> = (0..10_000).map(|_| cache.fork(parent).expect("a live context")).collect();
    for &branch in &branches {
        // Token by token, as decoding does.
        for _ in 0..16 {
            cache.append(branch, 1).expect("room");
        }
    }
    shuffle(&mut branches);
    branches.into_iter().for_each(|b| cache.free(b).expect("a live context"));
    cache.free(parent).expect("a live context");
    let time = start.elapsed();
    println!(
        "10,000 contexts over one prefix, 16 tokens each, freed in random order: {time:?} (at most 2 s), pages left {}",
        cache.usage().used
    );
    assert_eq!(cache.usage().used, 0, "the pool is empty again");
}
