//! Statements of a kernel to groups that may each become one Verilog process.
//!
//! In Rust, a read before the first write of a signal, or of a child's port, gives the value as it settles; between two writes it gives the value written so
//! far. A Verilog process is not woken by its own writes, so a settled value must come from another process. Hence: top-level statements are united
//! if they write the same place, or if one reads what another has written and a third writes again. If a group still reads a settled value
//! of its own, it is split by place: `if` and `case` are repeated for each part.

use crate::netlist::{Arm, Expr, ExprKind, Place, Statement};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Statements that become one process, or plain assignments.
#[derive(Debug)]
pub(super) struct Group<'a> {
    pub(super) statements: Vec<Cow<'a, Statement>>,
    /// Places written.
    pub(super) written: BTreeSet<Place>,
}

impl Group<'_> {
    /// The places and values, if the group is unconditional assignments to distinct bits of places that it does not read.
    pub(super) fn plain(&self) -> Option<Vec<(Place, usize, usize, &Expr)>> {
        let mut out: Vec<(Place, usize, usize, &Expr)> = Vec::new();
        for s in &self.statements {
            match s.as_ref() {
                Statement::Comment(_) => {}
                Statement::Assign { target, offset, width, value } => {
                    let clash = out.iter().any(|o| o.0 == *target && o.1 < offset + width && *offset < o.1 + o.2);
                    let mut own = false;
                    reads(value, &mut |p| own |= matches!(p, Place::Own(_)) && self.written.contains(&p));
                    if clash || own {
                        return None;
                    }
                    out.push((*target, *offset, *width, value));
                }
                _ => return None,
            }
        }
        Some(out)
    }
}

/// Every place that an expression reads.
pub(super) fn reads(e: &Expr, visit: &mut dyn FnMut(Place)) {
    match &e.kind {
        ExprKind::Read(place) => visit(*place),
        ExprKind::Literal(_) | ExprKind::Variant(..) => {}
        ExprKind::Resize(x) | ExprKind::Unary(_, x) | ExprKind::Slice(x, _) => reads(x, visit),
        ExprKind::Binary(_, a, b) | ExprKind::DynamicSlice(a, b) => {
            reads(a, visit);
            reads(b, visit);
        }
        ExprKind::ReplaceBit(a, b, c) => {
            reads(a, visit);
            reads(b, visit);
            reads(c, visit);
        }
    }
}

/// Gets the target of an assignment and the places that decide its value, each with whether the path has written it before.
type Visit<'v> = &'v mut dyn FnMut(Place, &[(Place, bool)]);

/// Calls `visit` with the target of every assignment and the places that decide its value; a read is marked if the path has written the place before.
fn walk(s: &Statement, path: &mut BTreeSet<Place>, deciding: &mut Vec<(Place, bool)>, visit: Visit<'_>) {
    let note = |e: &Expr, path: &BTreeSet<Place>, out: &mut Vec<(Place, bool)>| reads(e, &mut |p| out.push((p, path.contains(&p))));
    let depth = deciding.len();
    match s {
        Statement::Comment(_) => {}
        Statement::Assign { target, value, .. } => {
            note(value, path, deciding);
            visit(*target, deciding);
            path.insert(*target);
        }
        Statement::If { condition, then, otherwise } => {
            note(condition, path, deciding);
            branches(&[then, otherwise], path, deciding, visit);
        }
        Statement::Case { subject, arms, default } => {
            note(subject, path, deciding);
            let blocks: Vec<&Vec<Statement>> = arms.iter().map(|a| &a.block).chain(default).collect();
            branches(&blocks, path, deciding, visit);
        }
    }
    deciding.truncate(depth);
}

fn branches(blocks: &[&Vec<Statement>], path: &mut BTreeSet<Place>, deciding: &mut Vec<(Place, bool)>, visit: Visit<'_>) {
    let before = path.clone();
    for block in blocks {
        let mut own = before.clone();
        for s in *block {
            walk(s, &mut own, deciding, visit);
        }
        path.extend(own);
    }
}

/// Sets that grow together.
struct Union(Vec<usize>);

impl Union {
    fn new(n: usize) -> Self {
        Self((0..n).collect())
    }
    fn root(&self, mut i: usize) -> usize {
        while self.0[i] != i {
            i = self.0[i];
        }
        i
    }
    fn unite(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        // The lowest index stays the root, so that groups keep the order of the source.
        self.0[a.max(b)] = a.min(b);
    }
}

/// Groups of a kernel, in the order of their first statements; `finest` splits every group by place as far as it goes.
pub(super) fn group(statements: &[Statement], finest: bool) -> Vec<Group<'_>> {
    let mut writers: BTreeMap<Place, (usize, usize)> = BTreeMap::new();
    let mut union = Union::new(statements.len());
    for (i, s) in statements.iter().enumerate() {
        walk(s, &mut BTreeSet::new(), &mut Vec::new(), &mut |target, _| {
            let range = writers.entry(target).or_insert((i, i));
            union.unite(range.0, i);
            range.1 = i;
        });
    }
    let mut path = BTreeSet::new();
    for (i, s) in statements.iter().enumerate() {
        walk(s, &mut path, &mut Vec::new(), &mut |_, deciding| {
            for (place, written) in deciding {
                if let (Place::Own(_), true, Some(&(first, last))) = (place, *written, writers.get(place))
                    && last >= i
                {
                    union.unite(first, i);
                }
            }
        });
    }
    let mut by_root: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut comments: Vec<usize> = Vec::new();
    for (i, s) in statements.iter().enumerate() {
        if matches!(s, Statement::Comment(_)) {
            comments.push(i);
            continue;
        }
        let members = by_root.entry(union.root(i)).or_default();
        members.append(&mut comments);
        members.push(i);
    }
    by_root.into_values().flat_map(|members| split(members.into_iter().map(|i| &statements[i]).collect(), finest)).collect()
}

/// One group, or its parts if it reads a settled value of its own or is to be split anyway.
fn split(statements: Vec<&Statement>, finest: bool) -> Vec<Group<'_>> {
    let mut written = BTreeSet::new();
    for s in &statements {
        walk(s, &mut BTreeSet::new(), &mut Vec::new(), &mut |target, _| {
            written.insert(target);
        });
    }
    if written.is_empty() {
        return Vec::new();
    }
    let index: Vec<Place> = written.iter().copied().collect();
    let mut union = Union::new(index.len());
    let mut settled = finest;
    let mut path = BTreeSet::new();
    for s in &statements {
        walk(s, &mut path, &mut Vec::new(), &mut |target, deciding| {
            for (place, fresh) in deciding {
                let Ok(at) = index.binary_search(place) else { continue };
                if *fresh && matches!(place, Place::Own(_)) {
                    if let Ok(own) = index.binary_search(&target) {
                        union.unite(at, own);
                    }
                } else {
                    settled = true;
                }
            }
        });
    }
    if !settled {
        return vec![Group { statements: statements.into_iter().map(Cow::Borrowed).collect(), written }];
    }
    let mut parts: BTreeMap<usize, BTreeSet<Place>> = BTreeMap::new();
    for (i, place) in index.iter().enumerate() {
        parts.entry(union.root(i)).or_default().insert(*place);
    }
    let project = |part: BTreeSet<Place>| {
        let kept = statements.iter().filter_map(|s| keep(s, &part)).map(Cow::Owned).collect();
        Group { statements: kept, written: part }
    };
    if parts.len() == 1 {
        return vec![Group { statements: statements.into_iter().map(Cow::Borrowed).collect(), written }];
    }
    parts.into_values().map(project).collect()
}

/// What of a statement writes the places.
fn keep(s: &Statement, part: &BTreeSet<Place>) -> Option<Statement> {
    let block = |b: &Vec<Statement>| -> Vec<Statement> { b.iter().filter_map(|s| keep(s, part)).collect() };
    match s {
        Statement::Comment(_) => None,
        Statement::Assign { target, .. } => part.contains(target).then(|| s.clone()),
        Statement::If { condition, then, otherwise } => {
            let (then, otherwise) = (block(then), block(otherwise));
            (!then.is_empty() || !otherwise.is_empty()).then(|| Statement::If { condition: condition.clone(), then, otherwise })
        }
        Statement::Case { subject, arms, default } => {
            let arms: Vec<Arm> = arms.iter().map(|a| Arm { value: a.value, name: a.name.clone(), block: block(&a.block) }).collect();
            let default = default.as_ref().map(block);
            let empty = arms.iter().all(|a| a.block.is_empty()) && default.as_ref().is_none_or(Vec::is_empty);
            (!empty).then(|| Statement::Case { subject: subject.clone(), arms, default })
        }
    }
}
