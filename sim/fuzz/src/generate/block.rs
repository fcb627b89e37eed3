//! Random blocks: ports, locals, registers, memories, children, and a kernel whose parts stand in random order.

use super::expression::{Scope, Source};
use super::random::Random;
use super::statement::{Target, chunk};
use super::types::{Ty, Types, any, scalar, width};
use std::fmt::Write;

/// A block as its parent sees it.
#[derive(Clone)]
pub(crate) struct Ports {
    pub(crate) name: String,
    pub(crate) inputs: Vec<(String, Ty)>,
    pub(crate) outputs: Vec<(String, Ty)>,
    /// Has the interfaces `rx` and `tx`.
    pub(crate) stream: bool,
}

/// A block under construction.
struct Builder<'a> {
    r: &'a mut Random,
    types: &'a Types,
    /// Field, type, initial value.
    fields: Vec<(String, String, String)>,
    sources: Vec<Source>,
    /// Targets with the rank below which they read.
    sinks: Vec<(usize, Target)>,
    /// Statements that stand alone, in any order.
    fixed: Vec<String>,
    registers: Vec<String>,
}

const DEFAULT: &str = "Default::default()";

impl Builder<'_> {
    fn field(&mut self, name: &str, ty: String, init: &str) {
        self.fields.push((name.into(), ty, init.into()));
    }

    fn source(&mut self, text: String, ty: Ty, rank: usize) {
        // A packet can also be read as its fields and as plain bits.
        if ty == Ty::Struct {
            for (field, ty) in &self.types.fields {
                self.sources.push(Source { text: format!("{text}.{field}"), ty: *ty, rank });
            }
        }
        self.sources.push(Source { text, ty, rank });
    }

    fn sink(&mut self, text: String, ty: Ty, limit: usize, default: bool, readable: bool) {
        self.sinks.push((limit, Target { text, ty, default, readable }));
    }

    fn value(&mut self, ty: Ty) -> String {
        match ty {
            Ty::Bit => self.r.percent(50).to_string(),
            Ty::Bits(n) => {
                let words: Vec<String> = (0..n.div_ceil(64)).map(|_| format!("{:#x}", self.r.next())).collect();
                format!("bits_of::<{n}>(&[{}])", words.join(", "))
            }
            Ty::Signed(n) => format!("signed_cast({})", self.value(Ty::Bits(n))),
            Ty::Enum => format!("Phase::V{}", self.r.below(self.types.variants)),
            Ty::Struct => {
                let fields = self.types.fields.clone();
                let values: Vec<String> = fields.iter().map(|(name, ty)| format!("{name}: {}", self.value(*ty))).collect();
                format!("Packet {{ {} }}", values.join(", "))
            }
        }
    }

    fn constants(&mut self) {
        let value = self.value(Ty::Struct);
        self.field("packet", "Constant<Packet>".into(), &format!("Constant::new({value})"));
        self.source("self.packet.val()".into(), Ty::Struct, 0);
        for k in 0..self.r.below(3) {
            let ty = scalar(self.r);
            let value = self.value(ty);
            self.field(&format!("k{k}"), format!("Constant<{}>", ty.text()), &format!("Constant::new({value})"));
            self.source(format!("self.k{k}.val()"), ty, 0);
        }
    }

    fn register(&mut self, name: &str, ty: Ty) {
        self.field(name, format!("DFF<{}>", ty.text()), DEFAULT);
        self.registers.push(name.into());
        self.source(format!("self.{name}.q.val()"), ty, 0);
        self.sink(format!("self.{name}.d"), ty, usize::MAX, false, false);
    }

    fn memory(&mut self, name: &str, rank: usize) {
        let data = if self.r.percent(20) { Ty::Struct } else { Ty::Bits(width(self.r)) };
        let (a, d) = (self.r.within(1, 5), data.text());
        let address = Ty::Bits(a);
        let words = 1usize << a;
        let filled = if self.r.percent(50) { words } else { self.r.within(1, words) };
        let values: Vec<String> = (0..filled).map(|_| self.value(data)).collect();
        let contents = format!("[{}].into_iter().into()", values.join(", "));
        match self.r.below(4) {
            0 | 1 => {
                let init = if self.r.percent(50) { &contents } else { DEFAULT };
                self.field(name, format!("RAM<{d}, {a}>"), init);
                self.fixed.push(format!("        self.{name}.read_clock.next = self.clock.val();\n"));
                self.fixed.push(format!("        self.{name}.write_clock.next = self.clock.val();\n"));
                for (port, ty) in [("read_address", address), ("write_address", address), ("write_data", data), ("write_enable", Ty::Bit)] {
                    self.sink(format!("self.{name}.{port}"), ty, usize::MAX, true, false);
                }
                self.source(format!("self.{name}.read_data.val()"), data, 0);
            }
            2 => {
                self.field(name, format!("SyncROM<{d}, {a}>"), &contents);
                self.fixed.push(format!("        self.{name}.clock.next = self.clock.val();\n"));
                self.sink(format!("self.{name}.address"), address, usize::MAX, true, false);
                self.source(format!("self.{name}.data.val()"), data, 0);
            }
            _ => {
                self.field(name, format!("ROM<{d}, {a}>"), &contents);
                self.sink(format!("self.{name}.address"), address, rank, true, false);
                self.source(format!("self.{name}.data.val()"), data, rank);
            }
        }
    }

    fn queue(&mut self, name: &str, rank: usize) {
        let (data, n) = (Ty::Bits(width(self.r)), self.r.within(2, 4));
        self.field(name, format!("SynchronousFIFO<{}, {n}, {}, 1>", data.text(), n + 1), DEFAULT);
        self.fixed.push(format!("        self.{name}.clock.next = self.clock.val();\n"));
        for (port, ty) in [("data_in", data), ("write", Ty::Bit), ("read", Ty::Bit)] {
            self.sink(format!("self.{name}.{port}"), ty, rank, true, false);
        }
        for (port, ty) in [("data_out", data), ("empty", Ty::Bit), ("full", Ty::Bit), ("almost_full", Ty::Bit), ("overflow", Ty::Bit)] {
            self.source(format!("self.{name}.{port}.val()"), ty, rank);
        }
    }

    fn local(&mut self, name: &str, ty: Ty, rank: usize) {
        if ty != Ty::Enum && self.r.percent(15) {
            let n = self.r.within(2, 4);
            self.field(name, format!("[Signal<Local, {}>; {n}]", ty.text()), DEFAULT);
            let mut scope = Scope { r: self.r, types: self.types, sources: &self.sources, limit: rank, loops: vec![("i".into(), n)] };
            let value = scope.assigned(ty, 2);
            self.fixed.push(format!("        for i in 0_usize..{n} {{\n            self.{name}[i].next = {value};\n        }}\n"));
            for i in 0..n {
                self.source(format!("self.{name}[{i}].val()"), ty, rank);
            }
        } else {
            self.field(name, format!("Signal<Local, {}>", ty.text()), DEFAULT);
            self.sink(format!("self.{name}"), ty, rank, true, true);
            self.source(format!("self.{name}.val()"), ty, rank);
        }
    }

    /// One instance, or an array of them; returns the texts of the instances.
    fn child(&mut self, name: &str, ports: &Ports, rank: usize) -> Vec<String> {
        let n = if self.r.percent(50) { 1 } else { self.r.within(2, 4) };
        let texts: Vec<String> = if n == 1 {
            self.field(name, ports.name.clone(), DEFAULT);
            vec![format!("self.{name}")]
        } else {
            self.field(name, format!("[{}; {n}]", ports.name), DEFAULT);
            (0..n).map(|i| format!("self.{name}[{i}]")).collect()
        };
        for (port, ty) in &ports.inputs {
            if n > 1 && self.r.percent(60) {
                let mut scope = Scope { r: self.r, types: self.types, sources: &self.sources, limit: rank, loops: vec![("i".into(), n)] };
                let value = scope.assigned(*ty, 2);
                self.fixed
                    .push(format!("        for i in 0_usize..{n} {{\n            self.{name}[i].{port}.next = {value};\n        }}\n"));
            } else {
                for text in &texts {
                    self.sink(format!("{text}.{port}"), *ty, rank, true, false);
                }
            }
        }
        for text in &texts {
            self.fixed.push(format!("        {text}.clock.next = self.clock.val();\n"));
            for (port, ty) in &ports.outputs {
                self.source(format!("{text}.{port}.val()"), *ty, rank);
            }
        }
        texts
    }

    /// The stream through a block without stream children. `tx` depends on registers alone and `rx.ready` on registers and `tx.ready`, so that any
    /// chain of blocks is free of loops.
    fn stream(&mut self) {
        let data = Ty::Bits(self.types.stream);
        self.register("held", data);
        self.register("full", Ty::Bit);
        let registers: Vec<Source> =
            self.sources.iter().filter(|s| s.text.contains(".q.val()") || s.text.contains(".packet.")).cloned().collect();
        let mut text = |ty, extra: Option<Source>| {
            let sources: Vec<Source> = registers.iter().cloned().chain(extra).collect();
            Scope { r: self.r, types: self.types, sources: &sources, limit: 1, loops: Vec::new() }.expression(ty, 2)
        };
        let ready = Source { text: "self.tx.ready.val()".into(), ty: Ty::Bit, rank: 0 };
        for (port, ty, extra) in [("tx.data", data, None), ("tx.valid", Ty::Bit, None), ("rx.ready", Ty::Bit, Some(ready.clone()))] {
            let value = text(ty, extra);
            self.fixed.push(format!("        self.{port}.next = {value};\n"));
        }
        self.sources.push(ready);
        self.source("self.rx.data.val()".into(), data, 0);
        self.source("self.rx.valid.val()".into(), Ty::Bit, 0);
    }

    fn kernel(&mut self) -> String {
        // Sinks of neighbouring ranks are decided together.
        let mut sinks = std::mem::take(&mut self.sinks);
        sinks.sort_by_key(|s| s.0);
        let mut chunks = std::mem::take(&mut self.fixed);
        let mut rest = sinks.as_slice();
        while !rest.is_empty() {
            let n = self.r.within(1, 3).min(rest.len());
            let (now, later) = rest.split_at(n);
            let targets: Vec<Target> = now.iter().map(|s| s.1.clone()).collect();
            let mut scope = Scope { r: self.r, types: self.types, sources: &self.sources, limit: now[0].0, loops: Vec::new() };
            chunks.push(chunk(&mut scope, &targets));
            rest = later;
        }
        self.r.shuffle(&mut chunks);
        format!("        dff_setup!(self, clock, {});\n{}", self.registers.join(", "), chunks.concat())
    }
}

/// Text of a block and its ports. The top has inputs that a test can set: no structs and enums.
pub(crate) fn block(r: &mut Random, types: &Types, name: &str, children: &[Ports], top: bool) -> (String, Ports) {
    let mut b = Builder { r, types, fields: Vec::new(), sources: Vec::new(), sinks: Vec::new(), fixed: Vec::new(), registers: Vec::new() };
    b.field("clock", "Signal<In, Clock>".into(), DEFAULT);
    let mut ports = Ports { name: name.into(), inputs: Vec::new(), outputs: Vec::new(), stream: false };
    for i in 0..b.r.within(1, 4) {
        let ty = if top { scalar(b.r) } else { any(b.r) };
        b.field(&format!("x{i}"), format!("Signal<In, {}>", ty.text()), DEFAULT);
        b.source(format!("self.x{i}.val()"), ty, 0);
        ports.inputs.push((format!("x{i}"), ty));
    }
    b.constants();
    b.register("phase", Ty::Enum);
    for i in 0..b.r.within(1, 3) {
        let ty = any(b.r);
        b.register(&format!("r{i}"), ty);
    }
    ports.stream = children.iter().any(|c| c.stream) || (children.is_empty() && b.r.percent(40));
    if ports.stream {
        b.field("rx", "StreamIn".into(), DEFAULT);
        b.field("tx", "StreamOut".into(), DEFAULT);
        if children.is_empty() {
            b.stream();
        }
    }
    let mut links: Vec<String> = Vec::new();
    let mut rank = 1;
    let mut pending: Vec<(String, Ports)> = children.iter().enumerate().map(|(k, c)| (format!("c{k}"), c.clone())).collect();
    for l in 0..b.r.within(2, 5) {
        if let Some((field, child)) = pending.pop() {
            let texts = b.child(&field, &child, rank);
            if child.stream {
                links.extend(texts);
            }
            rank += 1;
        }
        match b.r.below(8) {
            0 => b.memory(&format!("m{l}"), rank),
            1 if children.is_empty() => b.queue(&format!("f{l}"), rank),
            _ => {
                let ty = any(b.r);
                b.local(&format!("l{l}"), ty, rank);
            }
        }
        rank += 1;
    }
    while let Some((field, child)) = pending.pop() {
        let texts = b.child(&field, &child, rank);
        if child.stream {
            links.extend(texts);
        }
        rank += 1;
    }
    for i in 0..b.r.within(1, 3) {
        let ty = any(b.r);
        b.field(&format!("y{i}"), format!("Signal<Out, {}>", ty.text()), DEFAULT);
        b.sink(format!("self.y{i}"), ty, rank + i, true, true);
        b.source(format!("self.y{i}.val()"), ty, rank + i);
        ports.outputs.push((format!("y{i}"), ty));
    }
    if let (Some(first), Some(last)) = (links.first(), links.last()) {
        b.fixed.push(format!("        StreamIn::link(&mut self.rx, &mut {first}.rx);\n"));
        b.fixed.push(format!("        StreamOut::link(&mut self.tx, &mut {last}.tx);\n"));
        for pair in links.windows(2) {
            b.fixed.push(format!("        StreamOut::join(&mut {}.tx, &mut {}.rx);\n", pair[0], pair[1]));
        }
    }
    let kernel = b.kernel();
    let mut text = format!("#[derive(LogicBlock)]\npub struct {name} {{\n");
    for (field, ty, _) in &b.fields {
        let _ = writeln!(text, "    pub {field}: {ty},");
    }
    let _ = writeln!(text, "}}\nimpl Default for {name} {{\n    fn default() -> Self {{\n        Self {{");
    for (field, _, init) in &b.fields {
        let _ = writeln!(text, "            {field}: {init},");
    }
    let _ =
        write!(text, "        }}\n    }}\n}}\nimpl Logic for {name} {{\n    #[hdl_gen]\n    fn update(&mut self) {{\n{kernel}    }}\n}}\n");
    (text, ports)
}
