//! Every random tree of the build in lock step; see the crate's documentation for the environment variables.

use braid_fuzz::{Case, Stimulus, bits_of};
use rust_hdl::prelude::*;

#[allow(unused, missing_docs, unreachable_pub, missing_debug_implementations, clippy::all)]
mod kernels {
    use super::*;
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}

/// Cycles of a run where none are chosen.
const CYCLES: u64 = 200;

#[test]
fn random_kernels_mean_the_same_in_every_simulator() {
    let cycles = std::env::var("BRAID_FUZZ_CYCLES").map_or(CYCLES, |t| t.parse().expect("BRAID_FUZZ_CYCLES is a number"));
    let cases = kernels::cases();
    assert!(!cases.is_empty());
    let mut failures = Vec::new();
    for case in &cases {
        match case.run(cycles) {
            Ok(summary) => println!("seed {}: {summary:?}", case.seed),
            Err(e) => failures.push(e),
        }
    }
    assert!(failures.is_empty(), "{} of {} trees differ:\n{}", failures.len(), cases.len(), failures.join("\n"));
}
