//! The text of one module.

use super::groups;
use super::literal::sized;
use super::options::Options;
use super::primitive;
use super::process::{self, Lines};
use super::scope::{Scope, select};
use crate::netlist::{Body, Design, ExprKind, InstanceRef, Module, ModuleId, Place, SignalKind, SignalRef, Statement, Type};
use std::collections::BTreeSet;

/// What a module is called, and what its signals are called on the outside.
#[derive(Debug, Clone)]
pub(super) struct Face {
    pub(super) name: String,
    /// By signal; only those of ports are seen outside.
    pub(super) ports: Vec<String>,
}

impl Face {
    /// The face that the module itself will declare.
    pub(super) fn of(design: &Design, module: &Module, name: String, options: &Options) -> Self {
        let scope = Scope::new(design, module, options, &|_| Vec::new());
        let ports = (0..module.signals.len()).map(|i| scope.declared(Place::Own(SignalRef(i))).to_string()).collect();
        Self { name, ports }
    }
}

/// Text of a module; `finest` as in [`groups::group`].
pub(super) fn write(design: &Design, id: ModuleId, faces: &[Face], options: &Options, finest: bool) -> String {
    let module = &design.modules[id.0];
    let mut scope = Scope::new(design, module, options, &|m| faces[m].ports.clone());
    let mut variables = BTreeSet::new();
    let mut written = BTreeSet::new();
    let mut logic = Lines::at(1);
    let mut state = Lines::at(1);
    let mut arrays = Vec::new();
    if let Body::Kernel(statements) = &module.body {
        let all = groups::group(statements, finest);
        written = all.iter().flat_map(|g| g.written.iter().copied()).collect();
        connect_directly(&mut scope, &all);
        for group in &all {
            if group.written.iter().all(|p| scope.direct.contains_key(p)) {
                continue;
            }
            process::write(&mut scope, group, &mut logic, &mut variables);
        }
    } else {
        if let Some((width, depth)) = words_of(module) {
            let name = scope.names.claim("words");
            primitive::write(&mut scope, &name, &module.body, &Place::Own, &mut state, &mut variables);
            arrays.push((name, width, depth));
        } else {
            primitive::write(&mut scope, "rom", &module.body, &Place::Own, &mut state, &mut variables);
        }
    }
    let mut blocks = Lines::at(1);
    for k in 0..module.instances.len() {
        let at = InstanceRef(k);
        if scope.is_block(at) {
            instance(&mut scope, at, faces, &mut blocks);
            continue;
        }
        let child = scope.child(at);
        let name = match primitive::array(&mut scope, child, at) {
            Some((name, width, depth)) => {
                arrays.push((name.clone(), width, depth));
                name
            }
            None => scope.instances[k].clone(),
        };
        primitive::write(&mut scope, &name, &child.body, &|s| Place::Child(at, s), &mut state, &mut variables);
    }
    let register_values = register_values(&scope);
    let mut out = Lines::default();
    header(module, options, &mut out);
    ports(&scope, &faces[id.0], &variables, &mut out);
    let declarations = declarations(&scope, &written, &variables, &arrays, &register_values);
    let unused = unused(&mut scope, &written);
    let parts = [declarations, logic.finish(), state.finish(), blocks.finish(), unused];
    let mut text = out.finish();
    for part in parts.iter().filter(|p| !p.is_empty()) {
        text.push('\n');
        text.push_str(part);
    }
    text.push_str("\nendmodule\n");
    text
}

fn words_of(module: &Module) -> Option<(usize, usize)> {
    let Body::Memory(m) = &module.body else { return None };
    m.read_clock?;
    Some((module.signals[m.read_data.0].width, 1 << module.signals[m.read_address.0].width))
}

/// Child inputs that a single assignment copies from one signal are connected to that signal.
fn connect_directly(scope: &mut Scope<'_>, all: &[groups::Group<'_>]) {
    for group in all {
        let Some(assigns) = group.plain() else { continue };
        let [(target @ Place::Child(..), 0, width, value)] = assigns.as_slice() else { continue };
        let comments = group.statements.iter().any(|s| matches!(s.as_ref(), Statement::Comment(_)));
        if let ExprKind::Read(source) = value.kind
            && *width == scope.signal(*target).width
            && !comments
        {
            scope.direct.insert(*target, source);
        }
    }
    // A chain of copies ends at its first signal.
    let keys: Vec<Place> = scope.direct.keys().copied().collect();
    for key in keys {
        let mut end = scope.direct[&key];
        let mut hops = 0;
        while let Some(&next) = scope.direct.get(&end)
            && hops < scope.direct.len()
        {
            end = next;
            hops += 1;
        }
        scope.direct.insert(key, end);
    }
}

fn header(module: &Module, options: &Options, out: &mut Lines) {
    if options.style.comments {
        out.line(format!("// Block {} (first instance).", module.path));
        out.line("// Written by braid-sim from a rust-hdl block: edit the block, not this text.");
    }
}

/// `[7:0] `, or nothing for one bit.
fn range(width: usize) -> String {
    if width == 1 { String::new() } else { format!("[{}:0] ", width - 1) }
}

/// What an enum or struct signal holds, as a comment.
fn note(ty: &Type, options: &Options) -> String {
    if !options.style.comments {
        return String::new();
    }
    match ty {
        Type::Enum { name, variants } => {
            let list: Vec<String> = variants.iter().enumerate().map(|(i, v)| format!("{i} {v}")).collect();
            format!(" // {name}: {}", list.join(", "))
        }
        Type::Struct { name, fields } => {
            let mut at = 0;
            let list: Vec<String> = fields
                .iter()
                .map(|(field, ty)| {
                    let text = format!("{field}{}", select("", usize::MAX, at, ty.width()));
                    at += ty.width();
                    text
                })
                .collect();
            format!(" // {name}: {}", list.join(", "))
        }
        Type::Signed(_) => " // signed".into(),
        Type::Bits(_) | Type::Clock => String::new(),
    }
}

fn ports(scope: &Scope<'_>, face: &Face, variables: &BTreeSet<Place>, out: &mut Lines) {
    let list: Vec<(usize, &str)> = (scope.module.signals.iter().enumerate())
        .filter_map(|(i, s)| match s.kind {
            SignalKind::Input => Some((i, "input")),
            SignalKind::Output => Some((i, "output")),
            _ => None,
        })
        .collect();
    if list.is_empty() {
        out.line(format!("module {};", face.name));
        return;
    }
    out.open(format!("module {} (", face.name));
    for (n, (i, direction)) in list.iter().enumerate() {
        let signal = &scope.module.signals[*i];
        let place = Place::Own(SignalRef(*i));
        let kind = match (scope.options.system(), variables.contains(&place)) {
            (true, _) => "logic",
            (false, true) => "reg",
            (false, false) => "wire",
        };
        let comma = if n + 1 < list.len() { "," } else { "" };
        out.line(format!("{direction} {kind} {}{}{comma}{}", range(signal.width), scope.declared(place), note(&signal.ty, scope.options)));
    }
    out.close(");");
}

fn instance(scope: &mut Scope<'_>, at: InstanceRef, faces: &[Face], lines: &mut Lines) {
    let id = scope.module.instances[at.0].module;
    let child = scope.child(at);
    let mut connections = Vec::new();
    for (i, s) in child.signals.iter().enumerate() {
        let place = Place::Child(at, SignalRef(i));
        match s.kind {
            SignalKind::Input => connections.push(format!(".{}({})", faces[id.0].ports[i], scope.whole(place))),
            SignalKind::Output => connections.push(format!(".{}({})", faces[id.0].ports[i], scope.declared(place))),
            _ => {}
        }
    }
    lines.open(format!("{} {} (", faces[id.0].name, scope.instances[at.0]));
    for (n, c) in connections.iter().enumerate() {
        lines.line(format!("{c}{}", if n + 1 < connections.len() { "," } else { "" }));
    }
    lines.close(");");
}

/// In SystemVerilog a variable of `always_ff` may only be initialised where it is declared.
fn register_values(scope: &Scope<'_>) -> Vec<(Place, String)> {
    if !scope.options.procedures() {
        return Vec::new();
    }
    let capability = scope.options.capability;
    let value = |k: usize| {
        let at = InstanceRef(k);
        let child = scope.child(at);
        match &child.body {
            Body::Register(r) if capability.register_initial => Some((Place::Child(at, r.q), sized(&r.init, child.signals[r.q.0].width))),
            Body::Memory(m) if capability.memory_output_initial && m.read_clock.is_some() => {
                Some((Place::Child(at, m.read_data), sized(&[0], child.signals[m.read_data.0].width)))
            }
            _ => None,
        }
    };
    (0..scope.module.instances.len()).filter_map(value).collect()
}

/// Every net and variable that is not a port, in declaration order.
fn nets(scope: &Scope<'_>, written: &BTreeSet<Place>) -> Vec<Place> {
    let mut out = Vec::new();
    for (i, s) in scope.module.signals.iter().enumerate() {
        let place = Place::Own(SignalRef(i));
        if matches!(s.kind, SignalKind::Local) && process::is_driven(scope, place, written) {
            out.push(place);
        }
    }
    for k in 0..scope.module.instances.len() {
        let at = InstanceRef(k);
        for (i, s) in scope.child(at).signals.iter().enumerate() {
            let place = Place::Child(at, SignalRef(i));
            if matches!(s.kind, SignalKind::Input | SignalKind::Output)
                && process::is_driven(scope, place, written)
                && !scope.direct.contains_key(&place)
            {
                out.push(place);
            }
        }
    }
    out
}

fn declarations(
    scope: &Scope<'_>,
    written: &BTreeSet<Place>,
    variables: &BTreeSet<Place>,
    arrays: &[(String, usize, usize)],
    register_values: &[(Place, String)],
) -> String {
    let (wire, reg) = if scope.options.system() { ("logic", "logic") } else { ("wire", "reg") };
    let mut lines = Lines::at(1);
    for (name, width, value) in scope.variants.values() {
        lines.line(format!("localparam {}{name} = {};", range(*width), sized(&[*value], *width)));
    }
    for &s in &scope.constants {
        let signal = &scope.module.signals[s.0];
        if let SignalKind::Constant(limbs) = &signal.kind {
            let name = scope.declared(Place::Own(s));
            lines.line(format!("localparam {}{name} = {};", range(signal.width), sized(limbs, signal.width)));
        }
    }
    for place in nets(scope, written) {
        let signal = scope.signal(place);
        let kind = if variables.contains(&place) { reg } else { wire };
        let value = register_values.iter().find(|v| v.0 == place).map_or(String::new(), |v| format!(" = {}", v.1));
        lines.line(format!("{kind} {}{}{value};{}", range(signal.width), scope.declared(place), note(&signal.ty, scope.options)));
    }
    for (name, width, depth) in arrays {
        lines.line(format!("{reg} {}{name} [0:{}];", range(*width), depth - 1));
    }
    for helper in &scope.helpers {
        let kind = if helper.value.is_some() { wire } else { reg };
        lines.line(format!("{kind} {}{};", range(helper.width), helper.name));
    }
    for helper in &scope.helpers {
        if let Some(value) = &helper.value {
            lines.line(format!("assign {} = {value};", helper.name));
        }
    }
    lines.finish()
}

/// The signal in which unread bits end.
fn unused(scope: &mut Scope<'_>, written: &BTreeSet<Place>) -> String {
    if !scope.options.capability.unused_sink {
        return String::new();
    }
    let inputs = (scope.module.signals.iter().enumerate())
        .filter(|(_, s)| matches!(s.kind, SignalKind::Input))
        .map(|(i, _)| Place::Own(SignalRef(i)));
    let declared = inputs.chain(nets(scope, written)).map(|p| (scope.declared(p).to_string(), scope.signal(p).width));
    let helpers = scope.helpers.iter().map(|h| (h.name.clone(), h.width));
    let mut bits = Vec::new();
    for (name, width) in declared.chain(helpers) {
        for (low, count) in scope.unread(&name, width) {
            bits.push(select(&name, width, low, count));
        }
    }
    if bits.is_empty() {
        return String::new();
    }
    let mut lines = Lines::at(1);
    if scope.options.style.comments {
        lines.line("// Nothing reads these bits.");
    }
    // Linters are silent about what feeds a signal of this name.
    let name = scope.names.claim("unused_bits");
    lines.line(format!("wire {name} = &{{1'd0, {}}};", bits.join(", ")));
    lines.finish()
}
