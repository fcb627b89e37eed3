//! Random expressions of a type. Always fully parenthesised; every name read comes from the sources below a rank, so no combinational loop arises.
//!
//! Left out, because rust-hdl's simulator panics or never ends on them: shift amounts over 8 bits, `index()` of values over 32 bits or past the
//! top, `signed_bit_cast` of the most negative value.

use super::random::Random;
use super::types::{Ty, Types};

/// Something that can be read.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) text: String,
    pub(crate) ty: Ty,
    /// A sink of rank `k` reads only sources of ranks below `k`.
    pub(crate) rank: usize,
}

/// What an expression may use.
pub(crate) struct Scope<'a> {
    pub(crate) r: &'a mut Random,
    pub(crate) types: &'a Types,
    pub(crate) sources: &'a [Source],
    pub(crate) limit: usize,
    /// Loop variables and the number after their largest value.
    pub(crate) loops: Vec<(String, usize)>,
}

impl Scope<'_> {
    fn source(&mut self, wanted: impl Fn(Ty) -> bool) -> Option<Source> {
        let limit = self.limit;
        let list: Vec<&Source> = self.sources.iter().filter(|s| s.rank < limit && wanted(s.ty)).collect();
        if list.is_empty() {
            return None;
        }
        Some((*self.r.pick(&list)).clone())
    }

    /// A literal below `2^n`.
    fn literal(&mut self, n: usize) -> String {
        let bits = n.min(63);
        let top = (1u64 << bits) - 1;
        let value = match self.r.below(5) {
            0 => 0,
            1 => top,
            2 => 1 << self.r.below(bits),
            _ => self.r.next() & top & self.r.next(),
        };
        if value > i32::MAX as u64 { format!("{value:#x}_u64") } else { value.to_string() }
    }

    /// An expression of a type, for the right of an assignment.
    pub(crate) fn assigned(&mut self, ty: Ty, depth: usize) -> String {
        match ty {
            Ty::Bits(n) if self.r.percent(8) => format!("{}.into()", self.literal(n)),
            Ty::Signed(n) if self.r.percent(20) => {
                let m = self.r.within(2, n.max(3));
                let value = self.bits(m, depth);
                format!("signed_bit_cast::<{n}, {m}>(signed_cast(({value} | 1)))")
            }
            _ => self.expression(ty, depth),
        }
    }

    pub(crate) fn expression(&mut self, ty: Ty, depth: usize) -> String {
        match ty {
            Ty::Bit => self.bit(depth),
            Ty::Bits(n) => self.bits(n, depth),
            Ty::Signed(n) => self.signed(n, depth),
            Ty::Enum => match self.source(|t| t == Ty::Enum) {
                Some(s) if self.r.percent(50) => s.text,
                _ => format!("Phase::V{}", self.r.below(self.types.variants)),
            },
            // Every block has a constant packet.
            Ty::Struct => self.source(|t| t == Ty::Struct).map_or_else(|| "self.packet.val()".into(), |s| s.text),
        }
    }

    pub(crate) fn bits(&mut self, n: usize, depth: usize) -> String {
        if depth == 0 {
            return self.bits_leaf(n);
        }
        match self.r.below(16) {
            0 | 1 => self.bits_leaf(n),
            2..=6 => {
                let op = *self.r.pick(&["+", "-", "&", "|", "^"]);
                let (a, b) = (self.bits(n, depth - 1), self.operand(n, depth - 1));
                format!("({a} {op} {b})")
            }
            7 => format!("(!{})", self.bits(n, depth - 1)),
            8 | 9 => {
                let op = *self.r.pick(&["<<", ">>"]);
                let a = self.bits(n, depth - 1);
                let amount = match self.source(|t| matches!(t, Ty::Bits(m) if m <= 8)) {
                    Some(s) if self.r.percent(60) => s.text,
                    _ => self.r.below(n + 3).to_string(),
                };
                format!("({a} {op} {amount})")
            }
            10 => {
                let m = super::types::width(self.r);
                // The macro evaluates a cast where the loop variables are not in scope.
                let loops = std::mem::take(&mut self.loops);
                let value = self.bits(m, depth - 1);
                self.loops = loops;
                format!("bit_cast::<{n}, {m}>({value})")
            }
            11 => {
                let m = n + self.r.below(20);
                let a = self.bits(m, depth - 1);
                format!("{a}.get_bits::<{n}>({})", self.r.below(m - n + 1))
            }
            12 => {
                let a = self.bits(n, depth - 1);
                let at = match self.index(n) {
                    Some(index) if self.r.percent(50) => index,
                    _ => self.r.below(n).to_string(),
                };
                format!("{a}.replace_bit({at}, {})", self.bit(depth - 1))
            }
            13 if n == 32 => format!("({} * {})", self.bits(16, depth - 1), self.bits(16, depth - 1)),
            14 if n >= 2 => format!("unsigned_cast({})", self.signed(n, depth - 1)),
            15 => match self.source(|t| matches!(t, Ty::Bits(m) if m <= 32 && m >= n)) {
                // A slice at a computed offset; what lies past the top is 0.
                Some(Source { text, ty: Ty::Bits(m), .. }) => match self.index(m) {
                    Some(index) => format!("{text}.get_bits::<{n}>({index})"),
                    None => self.bits(n, depth - 1),
                },
                _ => self.bits(n, depth - 1),
            },
            _ => self.bits(n, depth - 1),
        }
    }

    /// The right operand of an operator: an expression, a literal or a loop variable.
    fn operand(&mut self, n: usize, depth: usize) -> String {
        if let Some((name, end)) = self.loops.last().cloned()
            && n < 64
            && end <= 1 << n.min(20)
            && self.r.percent(40)
        {
            return format!("{name}.to_bits()");
        }
        if self.r.percent(25) { self.literal(n) } else { self.bits(n, depth) }
    }

    /// A computed index that is always below `n`.
    fn index(&mut self, n: usize) -> Option<String> {
        self.source(|t| matches!(t, Ty::Bits(m) if m <= 8 && 1 << m <= n)).map(|s| format!("{}.index()", s.text))
    }

    fn bits_leaf(&mut self, n: usize) -> String {
        if let Some(s) = self.source(|t| t == Ty::Bits(n))
            && self.r.percent(75)
        {
            return s.text;
        }
        match self.source(|t| matches!(t, Ty::Bits(_) | Ty::Signed(_))) {
            Some(Source { text, ty: Ty::Bits(m), .. }) if m >= n && self.r.percent(50) => {
                format!("{text}.get_bits::<{n}>({})", self.r.below(m - n + 1))
            }
            Some(Source { text, ty: Ty::Bits(m), .. }) => format!("bit_cast::<{n}, {m}>({text})"),
            Some(Source { text, ty: Ty::Signed(m), .. }) => format!("bit_cast::<{n}, {m}>(unsigned_cast({text}))"),
            _ => format!("bits::<{n}>({})", self.literal(n)),
        }
    }

    pub(crate) fn signed(&mut self, n: usize, depth: usize) -> String {
        let source = self.source(|t| t == Ty::Signed(n));
        match (source, self.r.below(8)) {
            (Some(s), 0..=2) => s.text,
            (_, 3 | 4) if depth > 0 => {
                let op = *self.r.pick(&["+", "-"]);
                format!("({} {op} {})", self.signed(n, depth - 1), self.signed(n, depth - 1))
            }
            (_, 5) if depth > 0 => format!("(-{})", self.signed(n, depth - 1)),
            (_, 6) if depth > 0 && n == 32 => format!("({} * {})", self.signed(16, depth - 1), self.signed(16, depth - 1)),
            (_, 7) => match self.source(|t| matches!(t, Ty::Signed(m) if m > n)) {
                Some(Source { text, ty: Ty::Signed(m), .. }) => format!("{text}.get_bits::<{n}>({})", self.r.below(m - n + 1)),
                _ => format!("signed_cast({})", self.bits(n, depth.saturating_sub(1))),
            },
            _ => format!("signed_cast({})", self.bits(n, depth.saturating_sub(1))),
        }
    }

    pub(crate) fn bit(&mut self, depth: usize) -> String {
        if depth == 0
            && let Some(s) = self.source(|t| t == Ty::Bit)
        {
            return s.text;
        }
        let deeper = depth.saturating_sub(1);
        let n = super::types::width(self.r);
        match self.r.below(13) {
            0 | 1 if depth > 0 => {
                let op = *self.r.pick(&["&", "|", "^", "&&", "||", "==", "!="]);
                format!("({} {op} {})", self.bit(deeper), self.bit(deeper))
            }
            2 if depth > 0 => format!("(!{})", self.bit(deeper)),
            3 | 4 => {
                let op = *self.r.pick(&["==", "!=", "<", "<=", ">", ">="]);
                let (a, b) = (self.bits(n, deeper), self.operand(n, deeper));
                format!("({a} {op} {b})")
            }
            5 | 6 => {
                let n = n.max(2);
                let op = *self.r.pick(&["==", "!=", "<", "<=", ">", ">="]);
                format!("({} {op} {})", self.signed(n, deeper), self.signed(n, deeper))
            }
            7 => format!("{}.{}()", self.bits(n, deeper), self.r.pick(&["any", "all", "xor"])),
            8 => format!("{}.get_bit({})", self.bits(n, deeper), self.r.below(n)),
            9 => match self.index(n) {
                Some(index) => format!("{}.get_bit({index})", self.bits(n, deeper)),
                None => format!("{}.get_bit({})", self.bits(n, deeper), self.r.below(n)),
            },
            10 => match self.source(|t| t == Ty::Enum) {
                Some(s) => format!("({} {} Phase::V{})", s.text, self.r.pick(&["==", "!="]), self.r.below(self.types.variants)),
                None => format!("{}.any()", self.bits(n, deeper)),
            },
            11 => {
                let n = n.max(2);
                format!("{}.get_bit({})", self.signed(n, deeper), self.r.below(n))
            }
            _ => match self.source(|t| t == Ty::Bit) {
                Some(s) => s.text,
                None => format!("{}.xor()", self.bits(n, deeper)),
            },
        }
    }
}
