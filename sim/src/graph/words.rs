//! Values of any width as lists of words: pieces of 1 to 32 bits, lowest first.

use super::node::{Arena, N, Op, mask};

/// A value: nodes from the lowest bits up; their widths are in the arena.
pub(crate) type Value = Vec<N>;

pub(crate) fn width(arena: &Arena, value: &[N]) -> usize {
    value.iter().map(|&n| usize::from(arena.width(n))).sum()
}

pub(crate) fn constant(arena: &mut Arena, limbs: &[u32], w: usize) -> Value {
    (0..w.div_ceil(32)).map(|i| arena.constant(limbs.get(i).copied().unwrap_or(0), (w - 32 * i).min(32) as u8)).collect()
}

fn zero(arena: &mut Arena, w: usize) -> Value {
    constant(arena, &[], w)
}

/// Bits `offset .. offset + w` of the value, which must have them.
pub(crate) fn slice(arena: &mut Arena, value: &[N], offset: usize, w: usize) -> Value {
    let mut out = Vec::new();
    let mut at = 0;
    for &n in value {
        let piece = usize::from(arena.width(n));
        let (low, high) = (offset.max(at), (offset + w).min(at + piece));
        if low < high {
            out.push(arena.slice(n, low - at, high - low));
        }
        at += piece;
    }
    out
}

/// One word of a value of at most 32 bits.
pub(crate) fn single(arena: &mut Arena, value: &[N]) -> N {
    let mut acc = value[0];
    for &n in &value[1..] {
        let w = arena.width(acc) + arena.width(n);
        acc = arena.make(Op::Concat, w, &[n, acc]);
    }
    acc
}

/// The value as 32-bit words, the last one narrower.
pub(crate) fn limbs(arena: &mut Arena, value: &[N]) -> Value {
    let w = width(arena, value);
    (0..w.div_ceil(32))
        .map(|i| {
            let part = slice(arena, value, 32 * i, (w - 32 * i).min(32));
            single(arena, &part)
        })
        .collect()
}

/// Cuts or extends to a width.
pub(crate) fn resize(arena: &mut Arena, value: &[N], w: usize, signed: bool) -> Value {
    let own = width(arena, value);
    if own >= w {
        return slice(arena, value, 0, w);
    }
    let mut words = limbs(arena, value);
    let last = words.len() - 1;
    let top = words[last];
    let op = if signed { Op::Sext } else { Op::Zext };
    words[last] = arena.make(op, (w - 32 * last).min(32) as u8, &[top]);
    if words.len() < w.div_ceil(32) {
        let fill = if signed {
            let sign = arena.slice(top, usize::from(arena.width(top)) - 1, 1);
            arena.make(Op::Sext, 32, &[sign])
        } else {
            arena.constant(0, 32)
        };
        while words.len() < w.div_ceil(32) {
            let left = (w - 32 * words.len()).min(32);
            words.push(arena.slice(fill, 0, left));
        }
    }
    words
}

fn each(arena: &mut Arena, op: Op, a: &[N], b: &[N]) -> Value {
    let (a, b) = (limbs(arena, a), limbs(arena, b));
    a.iter()
        .zip(&b)
        .map(|(&x, &y)| {
            let w = arena.width(x);
            arena.make(op, w, &[x, y])
        })
        .collect()
}

pub(crate) fn and(arena: &mut Arena, a: &[N], b: &[N]) -> Value {
    each(arena, Op::And, a, b)
}
pub(crate) fn or(arena: &mut Arena, a: &[N], b: &[N]) -> Value {
    each(arena, Op::Or, a, b)
}
pub(crate) fn xor(arena: &mut Arena, a: &[N], b: &[N]) -> Value {
    each(arena, Op::Xor, a, b)
}
pub(crate) fn not(arena: &mut Arena, a: &[N]) -> Value {
    a.iter().map(|&n| arena.not(n)).collect()
}

/// Sum with carry in, ripple over the words.
fn sum(arena: &mut Arena, a: &[N], b: &[N], carry: bool) -> Value {
    let (a, b) = (limbs(arena, a), limbs(arena, b));
    let mut out = Vec::new();
    let mut carry = arena.constant(u32::from(carry), 1);
    for (i, (&x, &y)) in a.iter().zip(&b).enumerate() {
        let w = arena.width(x);
        let partial = arena.make(Op::Add, w, &[x, y]);
        let extended = arena.zext(carry, w);
        let total = arena.make(Op::Add, w, &[partial, extended]);
        if i + 1 < a.len() {
            let first = arena.make(Op::Ltu, 1, &[partial, x]);
            let second = arena.make(Op::Ltu, 1, &[total, partial]);
            carry = arena.make(Op::Or, 1, &[first, second]);
        }
        out.push(total);
    }
    out
}

pub(crate) fn add(arena: &mut Arena, a: &[N], b: &[N]) -> Value {
    sum(arena, a, b, false)
}

pub(crate) fn sub(arena: &mut Arena, a: &[N], b: &[N]) -> Value {
    if width(arena, a) <= 32 {
        return each(arena, Op::Sub, a, b);
    }
    let inverted = not(arena, b);
    sum(arena, a, &inverted, true)
}

/// Product of two values of at most 16 bits each.
pub(crate) fn mul(arena: &mut Arena, a: &[N], b: &[N], signed: bool) -> Value {
    let w = width(arena, a) + width(arena, b);
    let (a, b) = (resize(arena, a, w, signed), resize(arena, b, w, signed));
    each(arena, Op::Mul, &a, &b)
}

/// 1 if every bit is 0.
pub(crate) fn is_zero(arena: &mut Arena, a: &[N]) -> N {
    let words = limbs(arena, a);
    // The words are joined first: one comparison.
    let mut any = words[0];
    for &n in &words[1..] {
        let (w, v) = (arena.width(any).max(arena.width(n)), arena.width(n));
        let wide = if v < w { arena.zext(n, w) } else { n };
        any = arena.make(Op::Or, w, &[any, wide]);
    }
    let zero = arena.constant(0, arena.width(any));
    arena.make(Op::Eq, 1, &[any, zero])
}

pub(crate) fn equal(arena: &mut Arena, a: &[N], b: &[N]) -> N {
    let (a, b) = (limbs(arena, a), limbs(arena, b));
    let mut all = arena.constant(1, 1);
    for (&x, &y) in a.iter().zip(&b) {
        let same = arena.make(Op::Eq, 1, &[x, y]);
        all = arena.make(Op::And, 1, &[all, same]);
    }
    all
}

pub(crate) fn less(arena: &mut Arena, a: &[N], b: &[N], signed: bool) -> N {
    let (a, b) = (limbs(arena, a), limbs(arena, b));
    let mut out = arena.constant(0, 1);
    for (i, (&x, &y)) in a.iter().zip(&b).enumerate() {
        let here = if signed && i + 1 == a.len() {
            let (x, y) = (arena.make(Op::Sext, 32, &[x]), arena.make(Op::Sext, 32, &[y]));
            arena.make(Op::Lts, 1, &[x, y])
        } else {
            arena.make(Op::Ltu, 1, &[x, y])
        };
        let same = arena.make(Op::Eq, 1, &[x, y]);
        let below = arena.make(Op::And, 1, &[same, out]);
        out = arena.make(Op::Or, 1, &[here, below]);
    }
    out
}

pub(crate) fn all(arena: &mut Arena, a: &[N]) -> N {
    let words = limbs(arena, a);
    let mut out = arena.constant(1, 1);
    for &n in &words {
        let w = arena.width(n);
        let ones = arena.constant(mask(w), w);
        let full = arena.make(Op::Eq, 1, &[n, ones]);
        out = arena.make(Op::And, 1, &[out, full]);
    }
    out
}

pub(crate) fn parity(arena: &mut Arena, a: &[N]) -> N {
    let words = limbs(arena, a);
    let mut out = arena.constant(0, 1);
    for &n in &words {
        let p = arena.make(Op::Parity, 1, &[n]);
        out = arena.make(Op::Xor, 1, &[out, p]);
    }
    out
}

/// Chooses piece by piece, at the piece boundaries of both.
pub(crate) fn mux(arena: &mut Arena, condition: N, a: &[N], b: &[N]) -> Value {
    let mut cuts = Vec::new();
    for value in [a, b] {
        let mut at = 0;
        for &n in value {
            at += usize::from(arena.width(n));
            cuts.push(at);
        }
    }
    cuts.sort_unstable();
    cuts.dedup();
    let mut out = Vec::new();
    let mut low = 0;
    for high in cuts {
        let (x, y) = (slice(arena, a, low, high - low), slice(arena, b, low, high - low));
        let (x, y) = (single(arena, &x), single(arena, &y));
        out.push(arena.make(Op::Mux, (high - low) as u8, &[condition, x, y]));
        low = high;
    }
    out
}

pub(crate) fn shift_constant(arena: &mut Arena, a: &[N], amount: usize, left: bool) -> Value {
    let w = width(arena, a);
    if amount >= w {
        return zero(arena, w);
    }
    if amount == 0 {
        return a.to_vec();
    }
    let filler = zero(arena, amount);
    let joined: Value = if left {
        let kept = slice(arena, a, 0, w - amount);
        filler.into_iter().chain(kept).collect()
    } else {
        let kept = slice(arena, a, amount, w - amount);
        kept.into_iter().chain(filler).collect()
    };
    limbs(arena, &joined)
}

/// Logical shift by a computed amount; by the width or more: 0.
pub(crate) fn shift(arena: &mut Arena, a: &[N], amount: &[N], left: bool) -> Value {
    let w = width(arena, a);
    let amount_words = limbs(arena, amount);
    if amount_words.iter().all(|&n| arena.constant_of(n).is_some()) {
        let high = amount_words[1..].iter().any(|&n| arena.constant_of(n) != Some(0));
        let low = arena.constant_of(amount_words[0]).unwrap_or(0) as usize;
        return shift_constant(arena, a, if high { w } else { low }, left);
    }
    let mut value = if w <= 32 {
        let x = single(arena, a);
        vec![arena.make(if left { Op::Shl } else { Op::Shr }, w as u8, &[x, amount_words[0]])]
    } else {
        // A barrel of constant shifts; amount bits from log2(w) on clear the value.
        let amount_width = usize::from(arena.width(amount_words[0]));
        let mut value = a.to_vec();
        let mut bit = 0;
        while bit < amount_width && 1usize << bit < w {
            let moved = shift_constant(arena, &value, 1 << bit, left);
            let chosen = arena.slice(amount_words[0], bit, 1);
            value = mux(arena, chosen, &moved, &value);
            bit += 1;
        }
        if bit < amount_width {
            let rest = arena.slice(amount_words[0], bit, amount_width - bit);
            let fits = is_zero(arena, &[rest]);
            let nothing = zero(arena, w);
            value = mux(arena, fits, &value, &nothing);
        }
        value
    };
    if amount_words.len() > 1 {
        let fits = is_zero(arena, &amount_words[1..]);
        let nothing = zero(arena, w);
        value = mux(arena, fits, &value, &nothing);
    }
    value
}
