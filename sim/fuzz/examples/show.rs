//! Prints the tree of blocks of one seed.

fn main() {
    let seed = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(braid_fuzz::generate::DEFAULT_SEED);
    print!("{}", braid_fuzz::generate::tree(seed));
}
