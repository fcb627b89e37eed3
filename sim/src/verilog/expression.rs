//! Expressions with every width explicit.
//!
//! Invariant: the text of an expression has, by itself, exactly the expression's width, and so do both operands of every operator whose operands Verilog sizes by context. A
//! context can then change no value. All signals are declared unsigned; signed extension is a replication, signed comparison goes through `$signed`.
//! Verilog selects bits of names only, so what is cut out of an operation gets a helper signal, unless the cut can be moved to the operands.

use super::literal::{self, sized};
use super::scope::{Scope, select};
use crate::netlist::{Binary, Expr, ExprKind, Place, SignalKind, Unary};
use std::collections::BTreeSet;

/// State of the process being written.
#[derive(Debug, Default)]
pub(super) struct Process {
    /// True in `always`, false in a continuous assignment.
    pub(super) procedural: bool,
    /// Places that the process writes.
    pub(super) written: BTreeSet<Place>,
    /// Those that the path so far has written.
    pub(super) path: BTreeSet<Place>,
    /// Assignments to helpers that must precede the statement being written.
    pub(super) prelude: Vec<String>,
    /// Helpers of the process, which need a default.
    pub(super) variables: Vec<(String, usize)>,
}

/// How tightly a text binds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Bind {
    /// Name, literal, concatenation, call.
    Tight,
    /// Unary operator other than a reduction.
    Unary,
    /// Chain of one associative operator.
    Chain(&'static str),
    /// Anything else: parentheses inside every other expression.
    Loose,
}

/// Text and how it binds.
pub(super) struct Text(pub(super) String, pub(super) Bind);

impl Text {
    fn tight(text: impl Into<String>) -> Self {
        Self(text.into(), Bind::Tight)
    }
    /// As an operand.
    fn operand(self) -> String {
        match self.1 {
            Bind::Tight | Bind::Unary => self.0,
            _ => format!("({})", self.0),
        }
    }
    /// As an operand of a chain of `op`.
    fn link(self, op: &'static str) -> String {
        if self.1 == Bind::Chain(op) { self.0 } else { self.operand() }
    }
    fn under_unary(self) -> String {
        if self.1 == Bind::Tight { self.0 } else { format!("({})", self.0) }
    }
}

/// Writes the expressions of one process.
pub(super) struct Writer<'w, 'a> {
    pub(super) scope: &'w mut Scope<'a>,
    pub(super) process: &'w mut Process,
}

impl Writer<'_, '_> {
    /// The expression on its own.
    pub(super) fn text(&mut self, e: &Expr) -> String {
        self.expr(e).0
    }

    /// The bits of a constant expression.
    fn constant(&self, e: &Expr) -> Option<Vec<u32>> {
        match &e.kind {
            ExprKind::Literal(limbs) => Some(limbs.clone()),
            ExprKind::Variant(value, _) => Some(vec![*value]),
            ExprKind::Read(place) => match &self.scope.signal(*place).kind {
                SignalKind::Constant(limbs) => Some(limbs.clone()),
                _ => None,
            },
            _ => None,
        }
    }

    /// Name from which a place is read at this point.
    fn source(&mut self, place: Place) -> String {
        let own = self.process.written.contains(&place);
        let fresh = matches!(place, Place::Own(_)) && self.process.path.contains(&place);
        if own && !fresh && self.process.procedural { self.scope.settled(place) } else { self.scope.name(place) }
    }

    /// True if the value may change while the process runs.
    fn changes(&self, e: &Expr) -> bool {
        let mut found = false;
        super::groups::reads(e, &mut |p| found |= matches!(p, Place::Own(_)) && self.process.path.contains(&p));
        found
    }

    /// A name whose signal has the value of the expression.
    fn named(&mut self, e: &Expr) -> String {
        if let ExprKind::Read(place) = &e.kind {
            return self.source(*place);
        }
        let varies = self.process.procedural && self.changes(e);
        let value = self.text(e);
        if !varies {
            return self.scope.net(e.width, value);
        }
        let name = self.scope.variable(e.width);
        self.process.prelude.push(format!("{name} = {value};"));
        self.process.variables.push((name.clone(), e.width));
        name
    }

    pub(super) fn expr(&mut self, e: &Expr) -> Text {
        match &e.kind {
            ExprKind::Read(place) => {
                let name = self.source(*place);
                Text::tight(self.scope.bits(&name, e.width, 0, e.width))
            }
            ExprKind::Literal(limbs) => Text::tight(sized(limbs, e.width)),
            ExprKind::Variant(value, name) => Text::tight(self.scope.variant(name, e.width, *value)),
            ExprKind::Resize(x) if x.width == e.width => self.expr(x),
            ExprKind::Resize(x) if e.width < x.width => self.part(x, 0, e.width),
            ExprKind::Resize(x) => Text::tight(self.extended(x, e.width, x.signed)),
            ExprKind::Unary(op, x) => self.unary(*op, x),
            ExprKind::Binary(op, a, b) => self.binary(*op, a, b, e.width),
            ExprKind::Slice(x, offset) => self.part(x, *offset, e.width),
            ExprKind::DynamicSlice(x, offset) => self.dynamic(x, offset, e.width),
            ExprKind::ReplaceBit(x, index, bit) => {
                let one = sized(&[1], e.width);
                let at = self.amount(index);
                let kept = format!("{} & ~({one} << {at})", self.expr(x).link("&"));
                let bit = self.extended(bit, e.width, false);
                Text(format!("({kept}) | ({bit} << {at})"), Bind::Chain("|"))
            }
        }
    }

    fn unary(&mut self, op: Unary, x: &Expr) -> Text {
        let operand = self.expr(x);
        match op {
            Unary::Not => Text(format!("~{}", operand.under_unary()), Bind::Unary),
            Unary::Negate => Text(format!("-{}", operand.under_unary()), Bind::Loose),
            // A reduction of one bit is the bit.
            Unary::All | Unary::Any | Unary::Xor if x.width == 1 => operand,
            Unary::All => Text(format!("&{}", operand.under_unary()), Bind::Loose),
            Unary::Any => Text(format!("|{}", operand.under_unary()), Bind::Loose),
            Unary::Xor => Text(format!("^{}", operand.under_unary()), Bind::Loose),
        }
    }

    fn binary(&mut self, op: Binary, a: &Expr, b: &Expr, width: usize) -> Text {
        let mut chain = |op: &'static str| {
            let (a, b) = (self.expr(a).link(op), self.expr(b).link(op));
            Text(format!("{a} {op} {b}"), Bind::Chain(op))
        };
        match op {
            Binary::And => chain("&"),
            Binary::Or => chain("|"),
            Binary::Xor => chain("^"),
            Binary::Add => chain("+"),
            Binary::Sub => {
                let (a, b) = (self.expr(a).operand(), self.expr(b).operand());
                Text(format!("{a} - {b}"), Bind::Loose)
            }
            Binary::Mul if a.signed || b.signed => {
                let (a, b) = (self.extended(a, width, a.signed), self.extended(b, width, b.signed));
                Text(format!("$signed({a}) * $signed({b})"), Bind::Loose)
            }
            Binary::Mul => {
                let (a, b) = (self.extended(a, width, false), self.extended(b, width, false));
                Text(format!("{a} * {b}"), Bind::Loose)
            }
            Binary::Shl => self.shift(a, "<<", b),
            Binary::Shr => self.shift(a, ">>", b),
            Binary::Eq | Binary::Ne => {
                let (a, b) = (self.expr(a).operand(), self.expr(b).operand());
                Text(format!("{a} {} {b}", if op == Binary::Eq { "==" } else { "!=" }), Bind::Loose)
            }
            Binary::Lt | Binary::Le => self.compare(op, a, b),
        }
    }

    fn compare(&mut self, op: Binary, a: &Expr, b: &Expr) -> Text {
        let sign = if op == Binary::Lt { "<" } else { "<=" };
        if a.signed {
            let (a, b) = (self.text(a), self.text(b));
            return Text(format!("$signed({a}) {sign} $signed({b})"), Bind::Loose);
        }
        // Linters take a comparison that no value can fail, or pass, for a mistake.
        let (low, high) = (self.constant(a), self.constant(b));
        let zero = |v: &Option<Vec<u32>>| v.as_ref().is_some_and(|v| v.iter().all(|&l| l == 0));
        let ones = |v: &Option<Vec<u32>>| v.as_ref().is_some_and(|v| literal::is_ones(v, a.width));
        let always = match op {
            Binary::Lt if zero(&high) || ones(&low) => Some(0),
            Binary::Le if zero(&low) || ones(&high) => Some(1),
            _ => None,
        };
        if let Some(value) = always {
            return Text::tight(sized(&[value], 1));
        }
        let (a, b) = (self.expr(a).operand(), self.expr(b).operand());
        Text(format!("{a} {sign} {b}"), Bind::Loose)
    }

    /// An amount of at most 32 bits with the same effect: tools differ on wider ones.
    fn amount(&mut self, b: &Expr) -> String {
        if let Some(limbs) = self.constant(b) {
            let value = if limbs.iter().skip(1).any(|&l| l != 0) { u32::MAX } else { limbs[0] };
            return sized(&[value], (32 - value.leading_zeros() as usize).max(1));
        }
        if b.width <= 32 {
            return self.expr(b).operand();
        }
        let name = self.named(b);
        let (low, high) = (self.scope.bits(&name, b.width, 0, 31), self.scope.bits(&name, b.width, 31, b.width - 31));
        // Any high bit shifts everything out.
        format!("{{|{high}, {low}}}")
    }

    fn shift(&mut self, a: &Expr, op: &str, b: &Expr) -> Text {
        if let Some(limbs) = self.constant(b)
            && (limbs[0] as usize >= a.width || limbs.iter().skip(1).any(|&l| l != 0))
        {
            return Text::tight(sized(&[0], a.width));
        }
        let amount = self.amount(b);
        Text(format!("{} {op} {amount}", self.expr(a).operand()), Bind::Loose)
    }

    /// The expression extended to `width` bits, or as it is.
    fn extended(&mut self, x: &Expr, width: usize, signed: bool) -> String {
        if x.width == width {
            return self.text(x);
        }
        if let Some(limbs) = self.constant(x) {
            return sized(&literal::extended(&limbs, x.width, width, signed), width);
        }
        let more = width - x.width;
        if !signed {
            return format!("{{{}, {}}}", sized(&[0], more), self.text(x));
        }
        let name = self.named(x);
        let top = self.scope.bits(&name, x.width, x.width - 1, 1);
        let all = self.scope.bits(&name, x.width, 0, x.width);
        let sign = if more == 1 { top } else { format!("{{{more}{{{top}}}}}") };
        format!("{{{sign}, {all}}}")
    }

    /// Bits `low ..` of an expression; past its top they are 0.
    fn part(&mut self, x: &Expr, low: usize, width: usize) -> Text {
        let there = width.min(x.width.saturating_sub(low));
        if there == 0 {
            return Text::tight(sized(&[0], width));
        }
        let inner = self.inside(x, low, there);
        if there == width { inner } else { Text::tight(format!("{{{}, {}}}", sized(&[0], width - there), inner.0)) }
    }

    /// Bits of an expression, all of which it has.
    fn inside(&mut self, x: &Expr, low: usize, width: usize) -> Text {
        if width == x.width {
            return self.expr(x);
        }
        if let Some(limbs) = self.constant(x) {
            return Text::tight(sized(&literal::part(&limbs, low, width), width));
        }
        match &x.kind {
            ExprKind::Slice(y, offset) if offset + low + width <= y.width => return self.inside(y, offset + low, width),
            ExprKind::Resize(y) if low + width <= y.width => return self.inside(y, low, width),
            ExprKind::Unary(Unary::Not, y) => return Text(format!("~{}", self.inside(y, low, width).under_unary()), Bind::Unary),
            ExprKind::Unary(Unary::Negate, y) if low == 0 => {
                return Text(format!("-{}", self.inside(y, 0, width).under_unary()), Bind::Loose);
            }
            ExprKind::Binary(op, a, b) => {
                let sign = match op {
                    Binary::And => Some("&"),
                    Binary::Or => Some("|"),
                    Binary::Xor => Some("^"),
                    // The low bits of a sum depend on the low bits of the operands alone.
                    Binary::Add if low == 0 => Some("+"),
                    _ => None,
                };
                if let Some(sign) = sign {
                    let (a, b) = (self.inside(a, low, width).link(sign), self.inside(b, low, width).link(sign));
                    return Text(format!("{a} {sign} {b}"), Bind::Chain(sign));
                }
                if *op == Binary::Sub && low == 0 {
                    let (a, b) = (self.inside(a, 0, width).operand(), self.inside(b, 0, width).operand());
                    return Text(format!("{a} - {b}"), Bind::Loose);
                }
            }
            _ => {}
        }
        let name = self.named(x);
        Text::tight(self.scope.bits(&name, x.width, low, width))
    }

    fn dynamic(&mut self, x: &Expr, offset: &Expr, width: usize) -> Text {
        if let Some(limbs) = self.constant(offset) {
            let far = limbs.iter().skip(1).any(|&l| l != 0);
            return self.part(x, if far { x.width } else { limbs[0] as usize }, width);
        }
        let reach = 1usize.checked_shl(offset.width as u32).map_or(usize::MAX, |r| r - 1).saturating_add(width);
        if reach <= x.width && self.constant(x).is_none() {
            // No offset leaves the value, so a direct selection is exact.
            let name = self.named(x);
            let bits = (usize::BITS - (x.width - 1).leading_zeros()) as usize;
            let at = self.extended(offset, bits.max(offset.width), false);
            self.scope.bits(&name, x.width, 0, x.width);
            return Text::tight(if width == 1 { format!("{name}[{at}]") } else { format!("{name}[{at} +: {width}]") });
        }
        let shifted = Expr {
            width: x.width,
            signed: false,
            kind: ExprKind::Binary(Binary::Shr, Box::new(Expr { signed: false, ..x.clone() }), Box::new(offset.clone())),
        };
        self.part(&shifted, 0, width)
    }

    /// Left side of an assignment.
    pub(super) fn target(&mut self, place: Place, offset: usize, width: usize) -> String {
        select(self.scope.declared(place), self.scope.signal(place).width, offset, width)
    }
}
