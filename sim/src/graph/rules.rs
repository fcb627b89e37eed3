//! Local simplification: constants, identities, slices of concatenations, nested multiplexers.
//!
//! Each rule replaces an operation by an equal one that is not more expensive; it looks at one or two levels of operands only, so the cost is constant
//! per node. Applied whenever a node is made, so inlining a block into its parent propagates the parent's constants through it.

use super::node::{Arena, N, Node, Op, evaluate, mask};

pub(super) fn simplify(arena: &mut Arena, op: Op, w: u8, operands: &[N]) -> N {
    let mut args = [0; 3];
    args[..operands.len()].copy_from_slice(operands);
    if matches!(op, Op::And | Op::Or | Op::Xor | Op::Add | Op::Mul | Op::Eq) && args[0] > args[1] {
        args.swap(0, 1);
    }
    if let Some(n) = constant(arena, op, w, args, operands.len()) {
        return n;
    }
    let [a, b, c] = args;
    let found = match op {
        Op::Mux => mux(arena, w, a, b, c),
        Op::Slice(offset) => slice(arena, offset, w, a),
        Op::Zext => zext(arena, w, a),
        Op::Sext => (arena.width(a) == w).then_some(a),
        Op::Concat => concat(arena, w, a, b),
        Op::Not => match arena.op(a) {
            Op::Not => Some(arena.args(a)[0]),
            _ => None,
        },
        Op::Parity => (arena.width(a) == 1).then_some(a),
        Op::And | Op::Or | Op::Xor | Op::Add | Op::Sub | Op::Mul | Op::Shl | Op::Shr | Op::Eq | Op::Ltu | Op::Lts => {
            binary(arena, op, w, a, b)
        }
        _ => None,
    };
    found.unwrap_or_else(|| arena.intern(Node { op, w, args }))
}

fn constant(arena: &mut Arena, op: Op, w: u8, args: [N; 3], count: usize) -> Option<N> {
    if matches!(op, Op::Read(..)) || count == 0 {
        return None;
    }
    let mut values = [0; 3];
    for i in 0..count {
        values[i] = arena.constant_of(args[i])?;
    }
    let (wa, wb) = (arena.width(args[0]), if count > 1 { arena.width(args[1]) } else { 0 });
    let value = evaluate(op, w, wa, wb, values[0], values[1], values[2]);
    Some(arena.constant(value, w))
}

fn mux(arena: &mut Arena, w: u8, a: N, b: N, c: N) -> Option<N> {
    if let Some(value) = arena.constant_of(a) {
        return Some(if value != 0 { b } else { c });
    }
    if b == c {
        return Some(b);
    }
    if let Op::Not = arena.op(a) {
        let inner = arena.args(a)[0];
        return Some(arena.make(Op::Mux, w, &[inner, c, b]));
    }
    if let Op::Mux = arena.op(c) {
        let [a2, _, c2] = arena.args(c);
        if a2 == a {
            return Some(arena.make(Op::Mux, w, &[a, b, c2]));
        }
    }
    if let Op::Mux = arena.op(b) {
        let [a2, b2, _] = arena.args(b);
        if a2 == a {
            return Some(arena.make(Op::Mux, w, &[a, b2, c]));
        }
    }
    if w == 1 {
        return match (arena.constant_of(b), arena.constant_of(c)) {
            (Some(1), Some(_)) => Some(a),
            (Some(_), Some(_)) => Some(arena.not(a)),
            (Some(1), None) => Some(arena.make(Op::Or, 1, &[a, c])),
            (Some(_), None) => {
                let not = arena.not(a);
                Some(arena.make(Op::And, 1, &[not, c]))
            }
            (None, Some(0)) => Some(arena.make(Op::And, 1, &[a, b])),
            (None, Some(_)) => {
                let not = arena.not(a);
                Some(arena.make(Op::Or, 1, &[not, b]))
            }
            (None, None) => None,
        };
    }
    None
}

fn slice(arena: &mut Arena, offset: u8, w: u8, a: N) -> Option<N> {
    if offset == 0 && arena.width(a) == w {
        return Some(a);
    }
    let [x, y, _] = arena.args(a);
    match arena.op(a) {
        Op::Slice(inner) => Some(arena.make(Op::Slice(inner + offset), w, &[x])),
        Op::Concat => {
            let low = arena.width(y);
            if offset >= low {
                Some(arena.make(Op::Slice(offset - low), w, &[x]))
            } else if offset + w <= low {
                Some(arena.make(Op::Slice(offset), w, &[y]))
            } else {
                None
            }
        }
        Op::Zext => {
            let inner = arena.width(x);
            if offset >= inner {
                Some(arena.constant(0, w))
            } else if offset + w <= inner {
                Some(arena.make(Op::Slice(offset), w, &[x]))
            } else if offset == 0 {
                Some(arena.make(Op::Zext, w, &[x]))
            } else {
                None
            }
        }
        Op::Sext if offset + w <= arena.width(x) => Some(arena.make(Op::Slice(offset), w, &[x])),
        _ => None,
    }
}

fn zext(arena: &mut Arena, w: u8, a: N) -> Option<N> {
    if arena.width(a) == w {
        return Some(a);
    }
    match arena.op(a) {
        Op::Zext => {
            let inner = arena.args(a)[0];
            Some(arena.make(Op::Zext, w, &[inner]))
        }
        _ => None,
    }
}

fn concat(arena: &mut Arena, w: u8, a: N, b: N) -> Option<N> {
    if arena.constant_of(a) == Some(0) {
        return Some(arena.make(Op::Zext, w, &[b]));
    }
    // Neighbouring slices of one word are one slice.
    if let (Op::Slice(high), Op::Slice(low)) = (arena.op(a), arena.op(b)) {
        let (x, y) = (arena.args(a)[0], arena.args(b)[0]);
        if x == y && low + arena.width(b) == high {
            return Some(arena.make(Op::Slice(low), w, &[x]));
        }
    }
    None
}

fn binary(arena: &mut Arena, op: Op, w: u8, a: N, b: N) -> Option<N> {
    let (ka, kb) = (arena.constant_of(a), arena.constant_of(b));
    let ones = mask(w);
    match op {
        Op::And => match (ka, kb) {
            (Some(0), _) | (_, Some(0)) => Some(arena.constant(0, w)),
            (Some(v), _) if v == ones => Some(b),
            (_, Some(v)) if v == ones => Some(a),
            _ => (a == b).then_some(a),
        },
        Op::Or => match (ka, kb) {
            (Some(0), _) => Some(b),
            (_, Some(0)) => Some(a),
            (Some(v), _) | (_, Some(v)) if v == ones => Some(arena.constant(ones, w)),
            _ => (a == b).then_some(a),
        },
        Op::Xor => match (ka, kb) {
            (Some(0), _) => Some(b),
            (_, Some(0)) => Some(a),
            (Some(v), _) if v == ones => Some(arena.not(b)),
            (_, Some(v)) if v == ones => Some(arena.not(a)),
            _ => (a == b).then(|| arena.constant(0, w)),
        },
        Op::Add => match (ka, kb) {
            (Some(0), _) => Some(b),
            (_, Some(0)) => Some(a),
            _ => None,
        },
        Op::Sub => (kb == Some(0)).then_some(a),
        Op::Shl | Op::Shr => {
            let amount = kb?;
            if amount == 0 {
                return Some(a);
            }
            if amount >= u32::from(w) {
                return Some(arena.constant(0, w));
            }
            let (amount, keep) = (amount as u8, w - amount as u8);
            Some(if op == Op::Shr {
                let top = arena.make(Op::Slice(amount), keep, &[a]);
                arena.zext(top, w)
            } else {
                let low = arena.make(Op::Slice(0), keep, &[a]);
                let zero = arena.constant(0, amount);
                arena.make(Op::Concat, w, &[low, zero])
            })
        }
        Op::Eq => {
            if a == b {
                return Some(arena.constant(1, 1));
            }
            if arena.width(a) == 1 {
                return match (ka, kb) {
                    (Some(1), _) => Some(b),
                    (_, Some(1)) => Some(a),
                    (Some(0), _) => Some(arena.not(b)),
                    (_, Some(0)) => Some(arena.not(a)),
                    _ => None,
                };
            }
            // A zero-extended word against a constant is a narrower comparison.
            let (k, x) = match (ka, kb) {
                (Some(k), _) => (k, b),
                (_, Some(k)) => (k, a),
                _ => return None,
            };
            if let Op::Zext = arena.op(x) {
                let inner = arena.args(x)[0];
                let iw = arena.width(inner);
                if k > mask(iw) {
                    return Some(arena.constant(0, 1));
                }
                let narrow = arena.constant(k, iw);
                return Some(arena.make(Op::Eq, 1, &[inner, narrow]));
            }
            None
        }
        Op::Ltu => {
            if a == b || kb == Some(0) {
                return Some(arena.constant(0, 1));
            }
            None
        }
        Op::Lts => (a == b).then(|| arena.constant(0, 1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn slices_see_through_concatenations() {
        let mut arena = Arena::default();
        let (x, y) = (arena.leaf(Op::Input(0), 8), arena.leaf(Op::Input(1), 8));
        let both = arena.make(Op::Concat, 16, &[x, y]);
        assert_eq!(arena.slice(both, 8, 8), x);
        assert_eq!(arena.slice(both, 0, 8), y);
        let (high, low) = (arena.slice(x, 4, 4), arena.slice(x, 0, 4));
        assert_eq!(arena.make(Op::Concat, 8, &[high, low]), x);
    }

    proptest! {
        /// A binary operation with one constant operand has the value that it has without simplification.
        #[test]
        fn simplification_keeps_the_value(kind in 0usize..11, w in 1u8..=32, k in any::<u32>(), x in any::<u32>(), swap in any::<bool>()) {
            let op = [Op::And, Op::Or, Op::Xor, Op::Add, Op::Sub, Op::Mul, Op::Shl, Op::Shr, Op::Eq, Op::Ltu, Op::Lts][kind];
            let w = if op == Op::Lts { 32 } else { w };
            let k = match k % 4 { 0 => 0, 1 => mask(w), 2 => 1, _ => k & mask(w) };
            let x = x & mask(w);
            let mut arena = Arena::default();
            let (leaf, constant) = (arena.leaf(Op::Input(0), w), arena.constant(k, w));
            let out = if matches!(op, Op::Eq | Op::Ltu | Op::Lts) { 1 } else { w };
            let (args, values) = if swap { ([constant, leaf], [k, x]) } else { ([leaf, constant], [x, k]) };
            let n = arena.make(op, out, &args);
            let mut value = vec![0; arena.nodes.len()];
            for i in 0..=n as usize {
                let node = arena.nodes[i];
                let [a, b, c] = node.args.map(|a| a as usize);
                value[i] = if node.op == Op::Input(0) { x } else {
                    evaluate(node.op, node.w, arena.nodes[a].w, arena.nodes[b].w, value[a], value[b], value[c])
                };
            }
            prop_assert_eq!(value[n as usize], evaluate(op, out, w, w, values[0], values[1], 0));
        }
    }
}
