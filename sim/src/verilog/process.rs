//! Groups of statements to continuous assignments or one combinational process.

use super::expression::{Process, Writer};
use super::groups::Group;
use super::literal::sized;
use super::scope::Scope;
use crate::netlist::{Arm, Expr, Place, SignalKind, Statement};
use std::collections::{BTreeMap, BTreeSet};

/// Lines of text; each knows its depth.
#[derive(Debug, Default)]
pub(super) struct Lines {
    text: String,
    depth: usize,
}

impl Lines {
    pub(super) fn at(depth: usize) -> Self {
        Self { text: String::new(), depth }
    }
    pub(super) fn line(&mut self, text: impl AsRef<str>) {
        let text = text.as_ref();
        if !text.is_empty() {
            self.text.push_str(&"    ".repeat(self.depth));
            self.text.push_str(text);
        }
        self.text.push('\n');
    }
    pub(super) fn open(&mut self, text: impl AsRef<str>) {
        self.line(text);
        self.depth += 1;
    }
    pub(super) fn close(&mut self, text: impl AsRef<str>) {
        self.depth -= 1;
        self.line(text);
    }
    pub(super) fn finish(self) -> String {
        self.text
    }
}

/// Writes a group; the places that a process assigns, and that must be variables, are added to `variables`.
pub(super) fn write(scope: &mut Scope<'_>, group: &Group<'_>, lines: &mut Lines, variables: &mut BTreeSet<Place>) {
    if let Some(assigns) = group.plain()
        && covered(scope, &assigns)
    {
        for s in &group.statements {
            if let Statement::Comment(text) = s.as_ref() {
                comment(scope, text, lines);
            }
        }
        for (place, offset, width, value) in assigns {
            let mut process = Process::default();
            let mut writer = Writer { scope, process: &mut process };
            let text = writer.text(value);
            lines.line(format!("assign {} = {text};", writer.target(place, offset, width)));
        }
        return;
    }
    let mut process = Process { procedural: true, written: group.written.clone(), ..Process::default() };
    let mut body = Lines::at(2);
    for s in &group.statements {
        statement(scope, &mut process, s, &mut body);
    }
    let mut sure = Assigned::default();
    for s in &group.statements {
        sure.statement(scope, s);
    }
    lines.open(if scope.options.procedures() { "always_comb begin" } else { "always @(*) begin" });
    for &place in &group.written {
        variables.insert(place);
        let width = scope.signal(place).width;
        if !sure.all(place, width) {
            lines.line(format!("{} = {};", scope.declared(place), sized(&[0], width)));
        }
    }
    for (name, width) in &process.variables {
        lines.line(format!("{name} = {};", sized(&[0], *width)));
    }
    lines.text.push_str(&body.finish());
    lines.close("end");
}

/// True if the assignments drive every bit of every place they touch.
fn covered(scope: &Scope<'_>, assigns: &[(Place, usize, usize, &Expr)]) -> bool {
    let mut driven: BTreeMap<Place, usize> = BTreeMap::new();
    for a in assigns {
        *driven.entry(a.0).or_default() += a.2;
    }
    driven.iter().all(|(place, width)| scope.signal(*place).width == *width)
}

fn comment(scope: &Scope<'_>, text: &str, lines: &mut Lines) {
    if scope.options.style.comments {
        for line in text.lines() {
            lines.line(format!("// {}", line.trim()));
        }
    }
}

fn block(scope: &mut Scope<'_>, process: &mut Process, statements: &[Statement], lines: &mut Lines) {
    for s in statements {
        statement(scope, process, s, lines);
    }
}

fn flush(process: &mut Process, lines: &mut Lines) {
    for text in std::mem::take(&mut process.prelude) {
        lines.line(text);
    }
}

fn statement(scope: &mut Scope<'_>, process: &mut Process, s: &Statement, lines: &mut Lines) {
    match s {
        Statement::Comment(text) => comment(scope, text, lines),
        Statement::Assign { target, offset, width, value } => {
            let mut writer = Writer { scope, process };
            let text = writer.text(value);
            let left = writer.target(*target, *offset, *width);
            flush(process, lines);
            lines.line(format!("{left} = {text};"));
            process.path.insert(*target);
        }
        Statement::If { .. } => conditional(scope, process, s, lines, ""),
        Statement::Case { subject, arms, default } => {
            let width = subject.width;
            let subject = Writer { scope, process }.text(subject);
            flush(process, lines);
            lines.open(format!("case ({subject})"));
            let before = process.path.clone();
            let mut after = before.clone();
            let mut arm = |scope: &mut Scope<'_>, process: &mut Process, label: String, statements: &[Statement], lines: &mut Lines| {
                process.path.clone_from(&before);
                lines.open(label);
                block(scope, process, statements, lines);
                lines.close("end");
                after.extend(process.path.iter().copied());
            };
            // Arms that cover every variant: the last one takes what is left, as in the engines.
            let last = if default.is_none() { arms.len().checked_sub(1) } else { None };
            for (i, a) in arms.iter().enumerate() {
                if Some(i) == last {
                    arm(scope, process, format!("default: begin // {}", a.name), &a.block, lines);
                } else {
                    let label = label(scope, a, width);
                    arm(scope, process, format!("{label}: begin"), &a.block, lines);
                }
            }
            if let Some(statements) = default {
                arm(scope, process, "default: begin".into(), statements, lines);
            }
            process.path = after;
            lines.close("endcase");
        }
    }
}

fn label(scope: &mut Scope<'_>, arm: &Arm, width: usize) -> String {
    if arm.name.contains('$') { scope.variant(&arm.name, width, arm.value) } else { sized(&[arm.value], width) }
}

/// `if`, chained to an open `else` where nothing has to be computed between.
fn conditional(scope: &mut Scope<'_>, process: &mut Process, s: &Statement, lines: &mut Lines, chain: &str) {
    let Statement::If { condition, then, otherwise } = s else { return };
    let text = Writer { scope, process }.text(condition);
    let chained = !chain.is_empty() && process.prelude.is_empty();
    if chained {
        lines.depth -= 1;
        lines.open(format!("{chain}if ({text}) begin"));
    } else {
        if !chain.is_empty() {
            lines.depth -= 1;
            lines.open(format!("{chain}begin"));
        }
        flush(process, lines);
        lines.open(format!("if ({text}) begin"));
    }
    let before = process.path.clone();
    block(scope, process, then, lines);
    let after_then = std::mem::replace(&mut process.path, before);
    let mut closed = false;
    match otherwise.as_slice() {
        [] => {}
        [only @ Statement::If { .. }] => {
            conditional(scope, process, only, lines, "end else ");
            closed = true;
        }
        statements => {
            lines.depth -= 1;
            lines.open("end else begin");
            block(scope, process, statements, lines);
        }
    }
    process.path.extend(after_then);
    if !closed {
        lines.close("end");
    }
    if !chained && !chain.is_empty() {
        lines.close("end");
    }
}

/// Bits that every path assigns.
#[derive(Debug, Default, Clone)]
struct Assigned(BTreeMap<Place, Vec<bool>>);

impl Assigned {
    fn all(&self, place: Place, width: usize) -> bool {
        self.0.get(&place).is_some_and(|bits| bits.len() == width && bits.iter().all(|&b| b))
    }

    fn statement(&mut self, scope: &Scope<'_>, s: &Statement) {
        match s {
            Statement::Comment(_) => {}
            Statement::Assign { target, offset, width, .. } => {
                let total = scope.signal(*target).width;
                self.0.entry(*target).or_insert_with(|| vec![false; total])[*offset..offset + width].fill(true);
            }
            Statement::If { then, otherwise, .. } => self.branches(scope, &[then, otherwise]),
            Statement::Case { arms, default, .. } => {
                let blocks: Vec<&Vec<Statement>> = arms.iter().map(|a| &a.block).chain(default).collect();
                self.branches(scope, &blocks);
            }
        }
    }

    fn branches(&mut self, scope: &Scope<'_>, blocks: &[&Vec<Statement>]) {
        let mut common: Option<Self> = None;
        for statements in blocks {
            let mut own = Self::default();
            for s in *statements {
                own.statement(scope, s);
            }
            common = Some(match common {
                None => own,
                Some(mut c) => {
                    c.0.retain(|place, bits| {
                        let Some(other) = own.0.get(place) else { return false };
                        bits.iter_mut().zip(other).for_each(|(b, o)| *b &= o);
                        true
                    });
                    c
                }
            });
        }
        for (place, bits) in common.unwrap_or_default().0 {
            let own = self.0.entry(place).or_insert_with(|| vec![false; bits.len()]);
            own.iter_mut().zip(&bits).for_each(|(b, o)| *b |= o);
        }
    }
}

/// Constants are never written; a kernel that does so is refused before.
pub(super) fn is_driven(scope: &Scope<'_>, place: Place, written: &BTreeSet<Place>) -> bool {
    written.contains(&place)
        || match place {
            Place::Own(_) => matches!(scope.signal(place).kind, SignalKind::Input),
            Place::Child(..) => matches!(scope.signal(place).kind, SignalKind::Output),
        }
}
