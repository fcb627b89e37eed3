//! Fuzz test of `braid-sim`: random rust-hdl kernels in rust-hdl's own simulator, the interpreter and the compiled engine, in lock step.
//!
//! Kernels are Rust source, so the generator ([`generate`]) writes Rust source: the build script puts it into the test program, which cargo compiles
//! and runs. `BRAID_FUZZ_SEED` and `BRAID_FUZZ_BLOCKS` choose the trees of blocks, `BRAID_FUZZ_CYCLES` the length of a run:
//!
//! ```text
//! BRAID_FUZZ_SEED=1000 BRAID_FUZZ_BLOCKS=40 cargo test -p braid-fuzz
//! ```
//!
//! A difference names seed, signal and cycle; the tree of one seed is the same whatever other trees are built, so
//! `BRAID_FUZZ_SEED=<that seed> BRAID_FUZZ_BLOCKS=1` reproduces it, and `cargo run -p braid-fuzz --example show -- <seed>` prints it.

pub mod generate;
mod run;

pub use run::{Case, Drive, Stimulus, Summary, bits_of};
