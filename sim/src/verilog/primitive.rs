//! Registers and memories, written in place in the module that holds them.
//!
//! A memory read in the cycle of a write to the same word gives the old word: the read register loads by a non-blocking assignment, in the form from which
//! synthesis tools infer block RAM. A read without a clock is a ROM, written as a function, which is evaluated at time zero too.

use super::literal::sized;
use super::process::Lines;
use super::scope::Scope;
use crate::netlist::{Body, InstanceRef, Memory, Module, Place, Register, SignalRef};
use std::collections::BTreeSet;

/// Writes the primitive that `place` maps the ports of.
pub(super) fn write(
    scope: &mut Scope<'_>,
    name: &str,
    body: &Body,
    place: &dyn Fn(SignalRef) -> Place,
    lines: &mut Lines,
    variables: &mut BTreeSet<Place>,
) {
    match body {
        Body::Register(r) => register(scope, r, place, lines, variables),
        Body::Memory(m) if m.read_clock.is_none() => table(scope, name, m, place, lines),
        Body::Memory(m) => memory(scope, name, m, place, lines, variables),
        Body::Kernel(_) => {}
    }
}

/// The memory's array, to be declared before its use.
pub(super) fn array(scope: &mut Scope<'_>, module: &Module, at: InstanceRef) -> Option<(String, usize, usize)> {
    let Body::Memory(m) = &module.body else { return None };
    m.read_clock?;
    let name = scope.names.claim(&format!("{}$words", scope.instances[at.0].clone()));
    Some((name, module.signals[m.read_data.0].width, 1 << module.signals[m.read_address.0].width))
}

fn edge(scope: &mut Scope<'_>, clock: Place) -> String {
    let clock = scope.whole(clock);
    format!("{} @(posedge {clock}) begin", if scope.options.procedures() { "always_ff" } else { "always" })
}

fn register(scope: &mut Scope<'_>, r: &Register, place: &dyn Fn(SignalRef) -> Place, lines: &mut Lines, variables: &mut BTreeSet<Place>) {
    let q = scope.declared(place(r.q)).to_string();
    variables.insert(place(r.q));
    if scope.options.capability.register_initial && !scope.options.procedures() {
        // A statement, not an initial value of the declaration: its event at time zero wakes the processes that read the register.
        lines.line(format!("initial {q} = {};", sized(&r.init, scope.signal(place(r.q)).width)));
    }
    let head = edge(scope, place(r.clock));
    let d = scope.whole(place(r.d));
    lines.open(head);
    lines.line(format!("{q} <= {d};"));
    lines.close("end");
}

fn memory(
    scope: &mut Scope<'_>,
    words: &str,
    m: &Memory,
    place: &dyn Fn(SignalRef) -> Place,
    lines: &mut Lines,
    variables: &mut BTreeSet<Place>,
) {
    let width = scope.signal(place(m.read_data)).width;
    let address = scope.signal(place(m.read_address)).width;
    let capability = scope.options.capability;
    let q = scope.declared(place(m.read_data)).to_string();
    variables.insert(place(m.read_data));
    if capability.memory_output_initial && !scope.options.procedures() {
        lines.line(format!("initial {q} = {};", sized(&[0], width)));
    }
    if capability.memory_initial || m.write.is_none() {
        let index = scope.names.claim(&format!("{words}$index"));
        lines.line(format!("integer {index};"));
        lines.open("initial begin");
        lines.open(format!("for ({index} = 0; {index} < {}; {index} = {index} + 1) begin", 1u64 << address));
        lines.line(format!("{words}[{}] = {};", super::scope::select(&index, 32, 0, address), sized(&m.default, width)));
        lines.close("end");
        for (at, word) in &m.init {
            lines.line(format!("{words}[{}] = {};", sized(&[*at as u32], address), sized(word, width)));
        }
        lines.close("end");
    }
    if let Some(port) = m.write {
        let head = edge(scope, place(port.clock));
        let (enable, at, data) = (scope.whole(place(port.enable)), scope.whole(place(port.address)), scope.whole(place(port.data)));
        lines.open(head);
        lines.open(format!("if ({enable}) begin"));
        lines.line(format!("{words}[{at}] <= {data};"));
        lines.close("end");
        lines.close("end");
    }
    if let Some(clock) = m.read_clock {
        let head = edge(scope, place(clock));
        let at = scope.whole(place(m.read_address));
        lines.open(head);
        lines.line(format!("{q} <= {words}[{at}];"));
        lines.close("end");
    }
}

fn table(scope: &mut Scope<'_>, name: &str, m: &Memory, place: &dyn Fn(SignalRef) -> Place, lines: &mut Lines) {
    let width = scope.signal(place(m.read_data)).width;
    let address = scope.signal(place(m.read_address)).width;
    let function = scope.names.claim(&format!("{name}$table"));
    let range = |w: usize| if w == 1 { String::new() } else { format!("[{}:0] ", w - 1) };
    lines.open(format!("function {}{function};", range(width)));
    let argument = scope.names.claim(&format!("{name}$at"));
    lines.line(format!("input {}{argument};", range(address)));
    lines.open(format!("case ({argument})"));
    for (at, word) in &m.init {
        lines.line(format!("{}: {function} = {};", sized(&[*at as u32], address), sized(word, width)));
    }
    lines.line(format!("default: {function} = {};", sized(&m.default, width)));
    lines.close("endcase");
    lines.close("endfunction");
    let at = scope.whole(place(m.read_address));
    lines.line(format!("assign {} = {function}({at});", scope.declared(place(m.read_data))));
}
