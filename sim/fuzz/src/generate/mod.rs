//! Generates Rust source: modules `k0`, `k1`, ... with a tree of random blocks each, and a table of them.
//!
//! Text alone, without rust-hdl: the build script includes this module as it is.

mod block;
mod expression;
mod random;
mod statement;
mod types;

use block::{Ports, block};
use random::Random;
use std::fmt::Write;
use types::{Ty, Types};

/// Seed of the first tree where none is chosen.
pub const DEFAULT_SEED: u64 = 1;

/// Number of trees where none is chosen: what builds and runs in about a minute on two cores.
pub const DEFAULT_BLOCKS: u64 = 8;

/// The source of `blocks` trees with the seeds `seed`, `seed + 1`, ...; the same bytes for the same arguments. The text needs `rust_hdl::prelude::*`
/// and this crate's `bits_of`, `Stimulus` and `Case` in scope.
pub fn program(seed: u64, blocks: u64) -> String {
    let mut out = String::new();
    for k in 0..blocks {
        out += &tree(seed.wrapping_add(k));
    }
    let _ = writeln!(out, "pub fn cases() -> Vec<Case> {{\n    vec![");
    for k in 0..blocks {
        let seed = seed.wrapping_add(k);
        let _ = writeln!(out, "        Case::new({seed}, |b: &mut k{seed}::Top, v| b.clock.next = Clock {{ clk: v }}, k{seed}::drive),");
    }
    out += "    ]\n}\n";
    out
}

/// One module: the tree of one seed.
pub fn tree(seed: u64) -> String {
    let mut r = Random::new(seed);
    let types = Types::new(&mut r);
    let mut out = format!("pub mod k{seed} {{\nuse super::*;\n{}", types.text());
    let mut leaves: Vec<Ports> = Vec::new();
    for i in 0..r.within(1, 2) {
        let (text, ports) = block(&mut r, &types, &format!("Leaf{i}"), &[], false);
        out += &text;
        leaves.push(ports);
    }
    let mut children = leaves.clone();
    if r.percent(60) {
        let (text, ports) = block(&mut r, &types, "Middle", &leaves, false);
        out += &text;
        // The leaves appear below the middle and beside it.
        children.truncate(1);
        children.push(ports);
    }
    let (text, top) = block(&mut r, &types, "Top", &children, true);
    out += &text;
    out += &drive(&types, &top);
    out += "}\n";
    out
}

/// The function that sets every input of the top to a random value and tells the values.
fn drive(types: &Types, top: &Ports) -> String {
    let mut inputs = top.inputs.clone();
    if top.stream {
        inputs.extend([("rx.data".into(), Ty::Bits(types.stream)), ("rx.valid".into(), Ty::Bit), ("tx.ready".into(), Ty::Bit)]);
    }
    let mut out =
        String::from("pub fn drive(b: &mut Top, s: &mut Stimulus) -> Vec<(&'static str, Vec<u64>)> {\n    let mut out = Vec::new();\n");
    for (name, ty) in inputs {
        let (width, value) = match ty {
            Ty::Bit => (1, "v[0] == 1".into()),
            Ty::Signed(n) => (n, format!("signed_cast(bits_of::<{n}>(&v))")),
            Ty::Bits(n) => (n, format!("bits_of::<{n}>(&v)")),
            Ty::Enum | Ty::Struct => continue,
        };
        let _ = writeln!(out, "    let v = s.words({width});\n    b.{name}.next = {value};\n    out.push((\"{name}\", v));");
    }
    out += "    out\n}\n";
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_text_and_another_seed_another() {
        assert_eq!(program(7, 3), program(7, 3));
        assert_ne!(tree(7), tree(8));
    }

    #[test]
    fn a_tree_does_not_depend_on_the_trees_before_it() {
        assert!(program(7, 3).contains(&tree(9)));
    }
}
