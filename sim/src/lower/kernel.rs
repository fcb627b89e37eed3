//! Kernel text to typed statements: loops unrolled, names resolved, links turned into assignments, widths made explicit.
//!
//! The text has no types. Widths flow both ways: upwards from signals, casts and slices, downwards from the target of an assignment
//! or the other operand to literals and to `signed_bit_cast`, whose own target width the text does not carry.

use super::{literal, name};
use crate::SimError;
use crate::netlist::{
    Arm, Binary, Expr, ExprKind, Instance, InstanceRef, Module, Place, Signal, SignalKind, SignalRef, Statement, Type, Unary,
};
use rust_hdl::core::ast::{
    VerilogBlock, VerilogBlockOrConditional, VerilogConditional, VerilogExpression, VerilogLink, VerilogMatch, VerilogOp, VerilogOpUnary,
    VerilogStatement,
};
use std::collections::HashMap;

/// Lowers the kernel of a block.
pub(super) fn lower(
    block: &VerilogBlock,
    signals: &[Signal],
    instances: &[Instance],
    modules: &[Module],
    path: &str,
) -> Result<Vec<Statement>, SimError> {
    let mut places = HashMap::new();
    let mut variants = HashMap::new();
    for (i, s) in signals.iter().enumerate() {
        places.insert(s.name.clone(), Place::Own(SignalRef(i)));
        collect_variants(&s.ty, &mut variants);
    }
    for (k, instance) in instances.iter().enumerate() {
        for (i, s) in modules[instance.module.0].signals.iter().enumerate() {
            if matches!(s.kind, SignalKind::Input | SignalKind::Output) {
                places.insert(format!("{}${}", instance.name, s.name), Place::Child(InstanceRef(k), SignalRef(i)));
            }
            collect_variants(&s.ty, &mut variants);
        }
    }
    let mut kernel = Kernel { signals, instances, modules, path, places, variants, loops: Vec::new() };
    kernel.block(block)
}

fn collect_variants(ty: &Type, out: &mut HashMap<String, (u32, usize, usize)>) {
    match ty {
        Type::Enum { name, variants } => {
            for (i, v) in variants.iter().enumerate() {
                out.insert(format!("{name}${v}"), (i as u32, ty.width(), variants.len()));
            }
        }
        Type::Struct { fields, .. } => fields.iter().for_each(|f| collect_variants(&f.1, out)),
        _ => {}
    }
}

/// What is known of an expression's width before its context is.
#[derive(Clone, Copy, PartialEq)]
enum Width {
    /// Known.
    Exact(usize),
    /// `signed_bit_cast`: whatever the context wants.
    Elastic,
    /// A literal.
    Free,
}

struct Kernel<'a> {
    signals: &'a [Signal],
    instances: &'a [Instance],
    modules: &'a [Module],
    path: &'a str,
    places: HashMap<String, Place>,
    /// Enum literals: value, width, number of variants.
    variants: HashMap<String, (u32, usize, usize)>,
    loops: name::Loops,
}

type X = VerilogExpression;

impl Kernel<'_> {
    fn signal(&self, place: Place) -> &Signal {
        match place {
            Place::Own(s) => &self.signals[s.0],
            Place::Child(i, s) => &self.modules[self.instances[i.0].module.0].signals[s.0],
        }
    }

    fn resolve(&self, text: &str) -> Result<String, SimError> {
        name::resolve(text, &self.loops).map_err(|index| {
            SimError::unsupported(
                self.path,
                format!("the index `{index}` in `{text}`"),
                "index by loop variables and numbers; select a run-time index with a loop and `if`",
            )
        })
    }

    fn place(&self, text: &str) -> Result<Place, SimError> {
        let name = self.resolve(text)?;
        self.places.get(&name).copied().ok_or_else(|| SimError::UnknownName { path: self.path.into(), name })
    }

    fn ambiguous(&self) -> SimError {
        SimError::width(self.path, "the width of a signed cast or literal is not in the kernel text here")
    }

    // ------------------------------------------------------------------ statements

    fn block(&mut self, block: &VerilogBlock) -> Result<Vec<Statement>, SimError> {
        let mut out = Vec::new();
        for statement in block {
            self.statement(statement, &mut out)?;
        }
        Ok(out)
    }

    fn statement(&mut self, statement: &VerilogStatement, out: &mut Vec<Statement>) -> Result<(), SimError> {
        match statement {
            VerilogStatement::Comment(text) => out.push(Statement::Comment(text.clone())),
            VerilogStatement::Macro(block) => out.extend(self.block(block)?),
            VerilogStatement::Assignment(target, value) => {
                let place = self.target(target)?;
                let width = self.signal(place).width;
                let value = self.fitted(value, width)?;
                out.push(Statement::Assign { target: place, offset: 0, width, value });
            }
            VerilogStatement::SliceAssignment { base, width, offset, replacement } => {
                let place = self.target(base)?;
                let offset = self.literal(offset)?.ok_or_else(|| {
                    SimError::unsupported(
                        self.path,
                        "an assignment to a part of a signal at a computed offset",
                        "use replace_bit, or shift and or",
                    )
                })? as usize;
                let total = self.signal(place).width;
                if offset + width > total {
                    return Err(SimError::width(
                        self.path,
                        format!("bits {offset}..{} of a signal of {total} bits are written", offset + width),
                    ));
                }
                let value = self.fitted(replacement, *width)?;
                out.push(Statement::Assign { target: place, offset, width: *width, value });
            }
            VerilogStatement::If(conditional) => out.push(self.conditional(conditional)?),
            VerilogStatement::Match(m) => out.push(self.selection(m)?),
            VerilogStatement::Loop(l) => {
                for i in l.from.as_usize()..l.to.as_usize() {
                    self.loops.push((l.index.clone(), i as i64));
                    let body = self.block(&l.block);
                    self.loops.pop();
                    out.extend(body?);
                }
            }
            VerilogStatement::Link(links) => {
                for link in links {
                    out.push(self.link(link)?);
                }
            }
        }
        Ok(())
    }

    fn target(&self, target: &X) -> Result<Place, SimError> {
        let X::Signal(text) = target else {
            return Err(SimError::unsupported(self.path, "an assignment to something that is no signal", "assign to `self.signal.next`"));
        };
        let place = self.place(text)?;
        let writable = match place {
            Place::Own(_) => matches!(self.signal(place).kind, SignalKind::Output | SignalKind::Local),
            Place::Child(..) => matches!(self.signal(place).kind, SignalKind::Input),
        };
        if !writable {
            return Err(SimError::MultiplyDriven { path: format!("{}.{}", self.path, self.resolve(text)?) });
        }
        Ok(place)
    }

    fn link(&self, link: &VerilogLink) -> Result<Statement, SimError> {
        let full =
            |base: &str, field: &str| if field.is_empty() { base.to_string() } else { format!("{base}${}", field.trim_start_matches('.')) };
        let (target, source) = match link {
            VerilogLink::Forward(d) => (full(&d.other_name, &d.my_name), full(&d.owner_name, &d.my_name)),
            VerilogLink::Backward(d) => (full(&d.owner_name, &d.my_name), full(&d.other_name, &d.my_name)),
            VerilogLink::Bidirectional(_) => {
                return Err(SimError::unsupported(self.path, "a bidirectional link", "use an input, an output and an enable"));
            }
        };
        let place = self.target(&X::Signal(target))?;
        let width = self.signal(place).width;
        let value = self.fitted(&X::Signal(source), width)?;
        Ok(Statement::Assign { target: place, offset: 0, width, value })
    }

    fn conditional(&mut self, c: &VerilogConditional) -> Result<Statement, SimError> {
        let condition = self.fitted(&c.test, 1)?;
        let then = self.block(&c.then)?;
        let otherwise = match &c.otherwise {
            VerilogBlockOrConditional::Block(block) => self.block(block)?,
            VerilogBlockOrConditional::Conditional(statement) => {
                let mut out = Vec::new();
                self.statement(statement, &mut out)?;
                out
            }
            VerilogBlockOrConditional::None => Vec::new(),
        };
        Ok(Statement::If { condition, then, otherwise })
    }

    fn selection(&mut self, m: &VerilogMatch) -> Result<Statement, SimError> {
        let Width::Exact(width) = self.width(&m.test)? else { return Err(self.ambiguous()) };
        let subject = self.typed(&m.test, width)?;
        let mut arms: Vec<Arm> = Vec::new();
        let mut default = None;
        let mut all = usize::MAX;
        for case in &m.cases {
            let block = self.block(&case.block)?;
            if case.condition == "default" {
                default = Some(block);
                break;
            }
            let name = self.resolve(&case.condition)?;
            let value = match (self.variants.get(&name), name.as_str()) {
                (Some(v), _) => {
                    all = v.2;
                    v.0
                }
                (None, "true") => 1,
                (None, "false") => 0,
                (None, text) => text.parse().map_err(|_| {
                    SimError::unsupported(self.path, format!("the pattern `{text}` in a match"), "match on enum variants, end with `_`")
                })?,
            };
            if arms.iter().any(|a| a.value == value) {
                return Err(SimError::unsupported(
                    self.path,
                    format!("two arms for `{name}` in a match (a match guard is not in the kernel text)"),
                    "put the guard into an `if` inside the arm",
                ));
            }
            arms.push(Arm { value, name, block });
        }
        if default.is_none() && all == usize::MAX {
            all = 1usize.checked_shl(width as u32).unwrap_or(usize::MAX);
        }
        if default.is_none() && arms.len() < all {
            // Rust would have refused a match that is not exhaustive: an arm was a binding.
            return Err(SimError::unsupported(self.path, "a match whose arms do not cover every value", "end the match with `_ =>`"));
        }
        Ok(Statement::Case { subject, arms, default })
    }

    // ------------------------------------------------------------------ expressions

    /// Value of an expression of literals and loop variables.
    fn literal(&self, e: &X) -> Result<Option<u128>, SimError> {
        Ok(match e {
            X::Literal(l) => {
                let limbs = literal::parse(&format!("{l:x}"), 128).ok_or_else(|| SimError::width(self.path, format!("the literal {l}")))?;
                Some(limbs.iter().rev().fold(0u128, |a, &l| a << 32 | u128::from(l)))
            }
            X::Signal(text) => self.loops.iter().rev().find(|l| l.0 == *text).map(|l| l.1 as u128),
            X::Paren(x) => self.literal(x)?,
            X::Binary(l, op, r) => match (self.literal(l)?, self.literal(r)?) {
                (Some(a), Some(b)) => Some(match op {
                    VerilogOp::Add => a.wrapping_add(b),
                    VerilogOp::Sub => a.wrapping_sub(b),
                    VerilogOp::Mul => a.wrapping_mul(b),
                    VerilogOp::BitAnd | VerilogOp::LogicalAnd => a & b,
                    VerilogOp::BitOr | VerilogOp::LogicalOr => a | b,
                    VerilogOp::BitXor => a ^ b,
                    VerilogOp::Shl => u32::try_from(b).ok().and_then(|b| a.checked_shl(b)).unwrap_or(0),
                    VerilogOp::Shr => u32::try_from(b).ok().and_then(|b| a.checked_shr(b)).unwrap_or(0),
                    VerilogOp::Eq => u128::from(a == b),
                    VerilogOp::Ne => u128::from(a != b),
                    VerilogOp::Lt => u128::from(a < b),
                    VerilogOp::Le => u128::from(a <= b),
                    VerilogOp::Gt => u128::from(a > b),
                    VerilogOp::Ge => u128::from(a >= b),
                }),
                _ => None,
            },
            X::Unary(VerilogOpUnary::Neg, x) => self.literal(x)?.map(u128::wrapping_neg),
            _ => None,
        })
    }

    fn width(&self, e: &X) -> Result<Width, SimError> {
        use Width::{Elastic, Exact, Free};
        if self.literal(e)?.is_some() {
            return Ok(Free);
        }
        Ok(match e {
            X::Signal(text) => match self.variants.get(&self.resolve(text)?) {
                Some(v) => Exact(v.1),
                None => Exact(self.signal(self.place(text)?).width),
            },
            X::Literal(_) => Free,
            X::Cast(_, w) | X::Slice(_, w, _) => Exact(*w),
            X::Index(..) => Exact(1),
            X::Signed(x) => {
                if self.signed(x)? {
                    Elastic
                } else {
                    self.width(x)?
                }
            }
            X::Unsigned(x) | X::Paren(x) | X::IndexReplace(x, ..) => self.width(x)?,
            X::Unary(VerilogOpUnary::All | VerilogOpUnary::Any | VerilogOpUnary::Xor, _) => Exact(1),
            X::Unary(_, x) => self.width(x)?,
            X::Binary(l, op, r) => match op {
                VerilogOp::Eq | VerilogOp::Ne | VerilogOp::Lt | VerilogOp::Le | VerilogOp::Gt | VerilogOp::Ge => Exact(1),
                VerilogOp::Shl | VerilogOp::Shr => self.width(l)?,
                // rust-hdl multiplies 16 by 16 bits, nothing else.
                VerilogOp::Mul => Exact(32),
                _ => self.common(l, r)?,
            },
        })
    }

    /// Width of two operands of one width.
    fn common(&self, l: &X, r: &X) -> Result<Width, SimError> {
        use Width::{Elastic, Exact, Free};
        Ok(match (self.width(l)?, self.width(r)?) {
            (Exact(a), Exact(b)) if a != b => return Err(SimError::width(self.path, format!("operands of {a} and {b} bits"))),
            (Exact(a), _) | (_, Exact(a)) => Exact(a),
            (Elastic, _) | (_, Elastic) => Elastic,
            (Free, Free) => Free,
        })
    }

    fn signed(&self, e: &X) -> Result<bool, SimError> {
        Ok(match e {
            X::Signal(text) => {
                let name = self.resolve(text)?;
                self.places.get(&name).is_some_and(|&p| self.signal(p).signed())
            }
            X::Signed(_) => true,
            X::Paren(x) | X::IndexReplace(x, ..) => self.signed(x)?,
            X::Slice(x, width, offset) => match &**x {
                X::Signal(text) => {
                    let place = self.place(text)?;
                    match &self.signal(place).ty {
                        // The slice of a signed number is signed; so is a signed field of a struct.
                        Type::Signed(_) => true,
                        Type::Struct { fields, .. } => field_is_signed(fields, self.literal(offset)?.unwrap_or(0) as usize, *width),
                        _ => false,
                    }
                }
                _ => self.signed(x)?,
            },
            X::Unary(VerilogOpUnary::Neg | VerilogOpUnary::Not, x) => self.signed(x)?,
            X::Binary(
                l,
                VerilogOp::Add | VerilogOp::Sub | VerilogOp::Mul | VerilogOp::BitAnd | VerilogOp::BitOr | VerilogOp::BitXor,
                r,
            ) => self.signed(l)? || self.signed(r)?,
            X::Binary(l, VerilogOp::Shl | VerilogOp::Shr, _) => self.signed(l)?,
            _ => false,
        })
    }

    /// The expression at a width that its context wants.
    fn fitted(&self, e: &X, width: usize) -> Result<Expr, SimError> {
        match self.width(e)? {
            Width::Exact(w) if w != width => Err(SimError::width(self.path, format!("a value of {w} bits where {width} are wanted"))),
            _ => self.typed(e, width),
        }
    }

    /// The expression at its own width.
    fn exact(&self, e: &X) -> Result<Expr, SimError> {
        match self.width(e)? {
            Width::Exact(w) => self.typed(e, w),
            _ => Err(self.ambiguous()),
        }
    }

    /// The expression at a width that does not contradict its own.
    fn typed(&self, e: &X, width: usize) -> Result<Expr, SimError> {
        let make = |signed: bool, kind: ExprKind| Expr { width, signed, kind };
        if let Some(value) = self.literal(e)? {
            return Ok(make(false, ExprKind::Literal(literal::of_u128(value, width))));
        }
        Ok(match e {
            X::Signal(text) => {
                let name = self.resolve(text)?;
                match (self.variants.get(&name), self.places.get(&name)) {
                    (Some(v), _) => make(false, ExprKind::Variant(v.0, name)),
                    (None, Some(&place)) => make(self.signal(place).signed(), ExprKind::Read(place)),
                    (None, None) => return Err(SimError::UnknownName { path: self.path.into(), name }),
                }
            }
            X::Literal(_) => return Err(self.ambiguous()),
            X::Paren(x) => self.typed(x, width)?,
            X::Cast(x, w) => {
                let inner = match self.literal(x)? {
                    Some(_) => self.typed(x, *w)?,
                    None => self.exact(x)?,
                };
                // A cast of an unsigned value zero-extends.
                resize(Expr { signed: false, ..inner }, *w, false)
            }
            X::Signed(x) => {
                let inner = if self.signed(x)? && self.width(x)? == Width::Elastic { self.typed(x, width)? } else { self.exact(x)? };
                resize(inner, width, true)
            }
            X::Unsigned(x) => {
                let inner = self.typed(x, width)?;
                Expr { signed: false, ..resize(inner, width, false) }
            }
            X::Unary(op, x) => match op {
                VerilogOpUnary::Not => {
                    let inner = self.typed(x, width)?;
                    make(inner.signed, ExprKind::Unary(Unary::Not, Box::new(inner)))
                }
                VerilogOpUnary::Neg => {
                    let inner = self.typed(x, width)?;
                    make(inner.signed, ExprKind::Unary(Unary::Negate, Box::new(inner)))
                }
                VerilogOpUnary::All => make(false, ExprKind::Unary(Unary::All, Box::new(self.exact(x)?))),
                VerilogOpUnary::Any => make(false, ExprKind::Unary(Unary::Any, Box::new(self.exact(x)?))),
                VerilogOpUnary::Xor => make(false, ExprKind::Unary(Unary::Xor, Box::new(self.exact(x)?))),
            },
            X::Index(x, index) => {
                let inner = self.exact(x)?;
                match self.literal(index)? {
                    Some(i) if (i as usize) < inner.width => make(false, ExprKind::Slice(Box::new(inner), i as usize)),
                    Some(i) => return Err(SimError::width(self.path, format!("bit {i} of a value of {} bits", inner.width))),
                    None => make(false, ExprKind::DynamicSlice(Box::new(inner), Box::new(self.exact(index)?))),
                }
            }
            X::Slice(x, _, offset) => {
                let inner = self.exact(x)?;
                let signed = self.signed(e)?;
                match self.literal(offset)? {
                    Some(o) if o as usize <= inner.width => make(signed, ExprKind::Slice(Box::new(inner), o as usize)),
                    Some(o) => return Err(SimError::width(self.path, format!("bits from {o} of a value of {} bits", inner.width))),
                    None => make(signed, ExprKind::DynamicSlice(Box::new(inner), Box::new(self.exact(offset)?))),
                }
            }
            X::IndexReplace(x, index, bit) => {
                let inner = self.typed(x, width)?;
                let index = match self.literal(index)? {
                    Some(i) if (i as usize) < width => self.typed(index, 32)?,
                    Some(i) => return Err(SimError::width(self.path, format!("bit {i} of a value of {width} bits"))),
                    None => self.exact(index)?,
                };
                let bit = self.fitted(bit, 1)?;
                make(inner.signed, ExprKind::ReplaceBit(Box::new(inner), Box::new(index), Box::new(bit)))
            }
            X::Binary(l, op, r) => self.binary(l, op, r, width)?,
        })
    }

    fn binary(&self, l: &X, op: &VerilogOp, r: &X, width: usize) -> Result<Expr, SimError> {
        let signed = self.signed(l)? || self.signed(r)?;
        let pair =
            |a: Expr, b: Expr, kind: Binary, signed: bool| Expr { width, signed, kind: ExprKind::Binary(kind, Box::new(a), Box::new(b)) };
        let arithmetic =
            |kind: Binary| -> Result<Expr, SimError> { Ok(pair(self.fitted(l, width)?, self.fitted(r, width)?, kind, signed)) };
        let compare = |kind: Binary, swap: bool| -> Result<Expr, SimError> {
            let Width::Exact(w) = self.common(l, r)? else { return Err(self.ambiguous()) };
            let mut a = self.fitted(l, w)?;
            let mut b = self.fitted(r, w)?;
            (a.signed, b.signed) = (signed, signed);
            Ok(if swap { pair(b, a, kind, false) } else { pair(a, b, kind, false) })
        };
        match op {
            VerilogOp::Add => arithmetic(Binary::Add),
            VerilogOp::Sub => arithmetic(Binary::Sub),
            VerilogOp::BitAnd | VerilogOp::LogicalAnd => arithmetic(Binary::And),
            VerilogOp::BitOr | VerilogOp::LogicalOr => arithmetic(Binary::Or),
            VerilogOp::BitXor => arithmetic(Binary::Xor),
            VerilogOp::Mul => Ok(pair(self.fitted(l, 16)?, self.fitted(r, 16)?, Binary::Mul, signed)),
            VerilogOp::Shl | VerilogOp::Shr => {
                let kind = if matches!(op, VerilogOp::Shl) { Binary::Shl } else { Binary::Shr };
                let amount = match self.literal(r)? {
                    Some(n) => Expr { width: 32, signed: false, kind: ExprKind::Literal(vec![u32::try_from(n).unwrap_or(u32::MAX)]) },
                    None => self.exact(r)?,
                };
                Ok(pair(self.typed(l, width)?, amount, kind, self.signed(l)?))
            }
            VerilogOp::Eq => compare(Binary::Eq, false),
            VerilogOp::Ne => compare(Binary::Ne, false),
            VerilogOp::Lt => compare(Binary::Lt, false),
            VerilogOp::Le => compare(Binary::Le, false),
            VerilogOp::Gt => compare(Binary::Lt, true),
            VerilogOp::Ge => compare(Binary::Le, true),
        }
    }
}

fn field_is_signed(fields: &[(String, Type)], offset: usize, width: usize) -> bool {
    let mut at = 0;
    for (_, ty) in fields {
        if at == offset && ty.width() == width {
            return matches!(ty, Type::Signed(_));
        }
        at += ty.width();
    }
    false
}

/// The value at another width and signedness; the operand's signedness decides the extension.
fn resize(inner: Expr, width: usize, signed: bool) -> Expr {
    if inner.width == width && inner.signed == signed {
        return inner;
    }
    Expr { width, signed, kind: ExprKind::Resize(Box::new(inner)) }
}
