//! The `braid` program.
fn main() {}
