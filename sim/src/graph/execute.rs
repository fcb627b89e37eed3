//! Symbolic execution of a kernel: statements to one value a written signal, branches to multiplexers.

use super::node::{Arena, N, Op};
use super::words::{self, Value};
use crate::netlist::{Binary, Body, Design, Expr, ExprKind, Module, Place, Signal, SignalKind, Statement, Unary};
use std::collections::{BTreeMap, HashMap};

/// What a kernel computes: the value of every place that it writes, over references to places.
pub(super) struct Executed {
    pub(super) arena: Arena,
    pub(super) places: Vec<Place>,
    pub(super) drivers: HashMap<Place, Value>,
}

pub(super) fn execute(design: &Design, module: &Module) -> Executed {
    let mut run = Run { design, module, arena: Arena::default(), places: Vec::new(), index: HashMap::new(), scopes: vec![BTreeMap::new()] };
    if let Body::Kernel(statements) = &module.body {
        run.block(statements);
    }
    let drivers = run.scopes.pop().unwrap_or_default().into_iter().collect();
    Executed { arena: run.arena, places: run.places, drivers }
}

/// The signal behind a place.
pub(super) fn signal<'a>(design: &'a Design, module: &'a Module, place: Place) -> &'a Signal {
    match place {
        Place::Own(s) => &module.signals[s.0],
        Place::Child(i, s) => &design.modules[module.instances[i.0].module.0].signals[s.0],
    }
}

struct Run<'a> {
    design: &'a Design,
    module: &'a Module,
    arena: Arena,
    places: Vec<Place>,
    index: HashMap<Place, u32>,
    /// Values written, innermost branch last; ordered, so that node numbers are the same in every run.
    scopes: Vec<BTreeMap<Place, Value>>,
}

impl Run<'_> {
    fn place_index(&mut self, place: Place) -> u32 {
        if let Some(&i) = self.index.get(&place) {
            return i;
        }
        let i = self.places.len() as u32;
        self.places.push(place);
        self.index.insert(place, i);
        i
    }

    /// Leaves of a place: its settled value, or the value that it would keep.
    fn leaves(&mut self, place: Place, hold: bool) -> Value {
        let signal = signal(self.design, self.module, place);
        if let SignalKind::Constant(limbs) = &signal.kind {
            let whole = words::constant(&mut self.arena, limbs, signal.width);
            let mut at = 0;
            return signal
                .ty
                .words()
                .into_iter()
                .flat_map(|w| {
                    let part = words::slice(&mut self.arena, &whole, at, w);
                    at += w;
                    part
                })
                .collect();
        }
        let i = self.place_index(place);
        let make = |k: usize| if hold { Op::Hold(i, k as u32) } else { Op::Ref(i, k as u32) };
        signal.ty.words().into_iter().enumerate().map(|(k, w)| self.arena.leaf(make(k), w as u8)).collect()
    }

    fn written(&self, place: Place) -> Option<&Value> {
        self.scopes.iter().rev().find_map(|s| s.get(&place))
    }

    fn read(&mut self, place: Place) -> Value {
        match place {
            Place::Own(_) => match self.written(place) {
                Some(value) => value.clone(),
                None => self.leaves(place, false),
            },
            // A child's ports are read as they settle, whatever has been written so far.
            Place::Child(..) => self.leaves(place, false),
        }
    }

    fn next_value(&mut self, place: Place) -> Value {
        match self.written(place) {
            Some(value) => value.clone(),
            None => self.leaves(place, true),
        }
    }

    fn write(&mut self, place: Place, value: Value) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(place, value);
        }
    }

    fn block(&mut self, statements: &[Statement]) {
        for s in statements {
            self.statement(s);
        }
    }

    fn branch(&mut self, statements: &[Statement]) -> BTreeMap<Place, Value> {
        self.scopes.push(BTreeMap::new());
        self.block(statements);
        self.scopes.pop().unwrap_or_default()
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Comment(_) => {}
            Statement::Assign { target, offset, width, value } => {
                let value = self.expr(value);
                let total = signal(self.design, self.module, *target).width;
                let value = if *width == total {
                    value
                } else {
                    let old = self.next_value(*target);
                    let mut joined = words::slice(&mut self.arena, &old, 0, *offset);
                    joined.extend(value);
                    joined.extend(words::slice(&mut self.arena, &old, offset + width, total - offset - width));
                    joined
                };
                self.write(*target, value);
            }
            Statement::If { condition, then, otherwise } => {
                let condition = self.bit(condition);
                let (then, otherwise) = (self.branch(then), self.branch(otherwise));
                self.merge(condition, then, otherwise);
            }
            Statement::Case { subject, arms, default } => {
                let subject = self.expr(subject);
                let w = words::width(&self.arena, &subject);
                let mut branches: Vec<(N, BTreeMap<Place, Value>)> = Vec::new();
                for arm in arms {
                    let key = words::constant(&mut self.arena, &[arm.value], w);
                    let hit = words::equal(&mut self.arena, &subject, &key);
                    branches.push((hit, self.branch(&arm.block)));
                }
                let mut rest = match default {
                    Some(block) => self.branch(block),
                    // The arms cover every variant: the last one needs no test.
                    None => branches.pop().map(|b| b.1).unwrap_or_default(),
                };
                for (hit, taken) in branches.into_iter().rev() {
                    self.scopes.push(BTreeMap::new());
                    self.merge(hit, taken, rest);
                    rest = self.scopes.pop().unwrap_or_default();
                }
                for (place, value) in rest {
                    self.write(place, value);
                }
            }
        }
    }

    fn merge(&mut self, condition: N, then: BTreeMap<Place, Value>, otherwise: BTreeMap<Place, Value>) {
        let mut places: Vec<Place> = then.keys().chain(otherwise.keys()).copied().collect();
        places.sort_unstable();
        places.dedup();
        for place in places {
            let a = then.get(&place).cloned().unwrap_or_else(|| self.next_value(place));
            let b = otherwise.get(&place).cloned().unwrap_or_else(|| self.next_value(place));
            let value = words::mux(&mut self.arena, condition, &a, &b);
            self.write(place, value);
        }
    }

    fn bit(&mut self, e: &Expr) -> N {
        let value = self.expr(e);
        words::single(&mut self.arena, &value)
    }

    fn expr(&mut self, e: &Expr) -> Value {
        match &e.kind {
            ExprKind::Read(place) => self.read(*place),
            ExprKind::Literal(limbs) => words::constant(&mut self.arena, limbs, e.width),
            ExprKind::Variant(value, _) => words::constant(&mut self.arena, &[*value], e.width),
            ExprKind::Resize(x) => {
                let value = self.expr(x);
                words::resize(&mut self.arena, &value, e.width, x.signed)
            }
            ExprKind::Unary(op, x) => {
                let value = self.expr(x);
                let arena = &mut self.arena;
                match op {
                    Unary::Not => words::not(arena, &value),
                    Unary::Negate => {
                        let zero = words::constant(arena, &[], e.width);
                        words::sub(arena, &zero, &value)
                    }
                    Unary::All => vec![words::all(arena, &value)],
                    Unary::Any => {
                        let zero = words::is_zero(arena, &value);
                        vec![arena.not(zero)]
                    }
                    Unary::Xor => vec![words::parity(arena, &value)],
                }
            }
            ExprKind::Binary(op, l, r) => {
                let signed = l.signed;
                let (a, b) = (self.expr(l), self.expr(r));
                let arena = &mut self.arena;
                match op {
                    Binary::Add => words::add(arena, &a, &b),
                    Binary::Sub => words::sub(arena, &a, &b),
                    Binary::Mul => words::mul(arena, &a, &b, e.signed),
                    Binary::And => words::and(arena, &a, &b),
                    Binary::Or => words::or(arena, &a, &b),
                    Binary::Xor => words::xor(arena, &a, &b),
                    Binary::Shl => words::shift(arena, &a, &b, true),
                    Binary::Shr => words::shift(arena, &a, &b, false),
                    Binary::Eq => vec![words::equal(arena, &a, &b)],
                    Binary::Ne => {
                        let same = words::equal(arena, &a, &b);
                        vec![arena.not(same)]
                    }
                    Binary::Lt => vec![words::less(arena, &a, &b, signed)],
                    Binary::Le => {
                        let greater = words::less(arena, &b, &a, signed);
                        vec![arena.not(greater)]
                    }
                }
            }
            ExprKind::Slice(x, offset) => {
                let value = self.expr(x);
                let own = words::width(&self.arena, &value);
                let there = e.width.min(own - offset);
                if there == 0 {
                    return words::constant(&mut self.arena, &[], e.width);
                }
                let part = words::slice(&mut self.arena, &value, *offset, there);
                if there < e.width { words::resize(&mut self.arena, &part, e.width, false) } else { part }
            }
            ExprKind::DynamicSlice(x, offset) => {
                let (value, offset) = (self.expr(x), self.expr(offset));
                let moved = words::shift(&mut self.arena, &value, &offset, false);
                words::resize(&mut self.arena, &moved, e.width, false)
            }
            ExprKind::ReplaceBit(x, index, bit) => {
                let (value, index, bit) = (self.expr(x), self.expr(index), self.expr(bit));
                let arena = &mut self.arena;
                let one = words::constant(arena, &[1], e.width);
                let hole = words::shift(arena, &one, &index, true);
                let keep = words::not(arena, &hole);
                let kept = words::and(arena, &value, &keep);
                let wide = words::resize(arena, &bit, e.width, false);
                let placed = words::shift(arena, &wide, &index, true);
                words::or(arena, &kept, &placed)
            }
        }
    }
}
