//! Random statements: a chunk gives every one of its targets a default and then assigns them again under conditions, cases and loops.

use super::expression::Scope;
use super::types::Ty;
use std::fmt::Write;

/// Something that is assigned.
#[derive(Clone)]
pub(crate) struct Target {
    /// `self.x` without `.next`.
    pub(crate) text: String,
    pub(crate) ty: Ty,
    /// False for a register's `d`, which `dff_setup!` has given its default.
    pub(crate) default: bool,
    /// Name to read it by after its default: a local or an own output.
    pub(crate) readable: bool,
}

/// Statements for targets that are decided together.
pub(crate) fn chunk(scope: &mut Scope<'_>, targets: &[Target]) -> String {
    let mut out = String::new();
    for t in targets.iter().filter(|t| t.default) {
        assign(scope, t, 2, &mut out, 1);
    }
    for _ in 0..scope.r.within(1, 2) {
        statement(scope, targets, 2, &mut out, 1);
    }
    out
}

fn pad(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n("        ", 1));
    out.extend(std::iter::repeat_n("    ", indent - 1));
}

fn assign(scope: &mut Scope<'_>, t: &Target, depth: usize, out: &mut String, indent: usize) {
    let value = scope.assigned(t.ty, depth);
    pad(out, indent);
    let _ = writeln!(out, "{}.next = {value};", t.text);
}

/// A value from what the target holds so far.
fn accumulate(scope: &mut Scope<'_>, t: &Target, out: &mut String, indent: usize) {
    let own = format!("{}.val()", t.text);
    let value = match t.ty {
        Ty::Bits(n) => format!("({own} {} {})", *scope.r.pick(&["+", "-", "^", "|", "&"]), scope.bits(n, 1)),
        Ty::Signed(n) => format!("({own} {} {})", *scope.r.pick(&["+", "-"]), scope.signed(n, 1)),
        Ty::Bit => format!("({own} {} {})", *scope.r.pick(&["^", "|", "&", "&&", "||"]), scope.bit(1)),
        other => scope.expression(other, 1),
    };
    pad(out, indent);
    let _ = writeln!(out, "{}.next = {value};", t.text);
}

fn simple(scope: &mut Scope<'_>, targets: &[Target], out: &mut String, indent: usize) {
    let t = scope.r.pick(targets).clone();
    if t.ty == Ty::Struct && scope.r.percent(70) {
        let (field, ty) = scope.r.pick(&scope.types.fields).clone();
        // A `.into()` on a struct field has no type to aim at in the kernel text.
        let value = scope.expression(ty, 2);
        pad(out, indent);
        let _ = writeln!(out, "{}.next.{field} = {value};", t.text);
    } else if t.readable && scope.r.percent(40) {
        accumulate(scope, &t, out, indent);
    } else {
        assign(scope, &t, 3, out, indent);
    }
}

fn body(scope: &mut Scope<'_>, targets: &[Target], nesting: usize, out: &mut String, indent: usize) {
    for _ in 0..scope.r.within(1, 2) {
        statement(scope, targets, nesting, out, indent);
    }
}

fn statement(scope: &mut Scope<'_>, targets: &[Target], nesting: usize, out: &mut String, indent: usize) {
    if nesting == 0 {
        return simple(scope, targets, out, indent);
    }
    match scope.r.below(8) {
        0..=2 => {
            pad(out, indent);
            let _ = writeln!(out, "if {} {{", scope.bit(2));
            body(scope, targets, nesting - 1, out, indent + 1);
            while scope.r.percent(25) {
                pad(out, indent);
                let _ = writeln!(out, "}} else if {} {{", scope.bit(1));
                body(scope, targets, nesting - 1, out, indent + 1);
            }
            if scope.r.percent(50) {
                pad(out, indent);
                *out += "} else {\n";
                body(scope, targets, nesting - 1, out, indent + 1);
            }
            pad(out, indent);
            *out += "}\n";
        }
        3 => {
            pad(out, indent);
            let subject = scope.expression(Ty::Enum, 1);
            // A literal subject would be a constant match.
            let subject = if subject.starts_with("self") { subject } else { "self.phase.q.val()".into() };
            let _ = writeln!(out, "match {subject} {{");
            let all = scope.types.variants;
            let listed = if scope.r.percent(50) { all } else { scope.r.within(1, all) };
            let mut order: Vec<usize> = (0..all).collect();
            scope.r.shuffle(&mut order);
            for v in &order[..listed] {
                pad(out, indent + 1);
                let _ = writeln!(out, "Phase::V{v} => {{");
                body(scope, targets, nesting - 1, out, indent + 2);
                pad(out, indent + 1);
                *out += "}\n";
            }
            if listed < all {
                pad(out, indent + 1);
                if scope.r.percent(50) {
                    *out += "_ => {}\n";
                } else {
                    *out += "_ => {\n";
                    simple(scope, targets, out, indent + 2);
                    pad(out, indent + 1);
                    *out += "}\n";
                }
            }
            pad(out, indent);
            *out += "}\n";
        }
        4 => {
            let (from, to) = (scope.r.below(2), scope.r.within(2, 4));
            let name = format!("i{}", scope.loops.len());
            pad(out, indent);
            let _ = writeln!(out, "for {name} in {from}_usize..{to} {{");
            scope.loops.push((name, to));
            body(scope, targets, nesting - 1, out, indent + 1);
            scope.loops.pop();
            pad(out, indent);
            *out += "}\n";
        }
        _ => simple(scope, targets, out, indent),
    }
}
