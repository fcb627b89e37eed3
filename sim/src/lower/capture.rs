//! Walks the block tree and finds the distinct modules.

use super::{kernel, literal, primitive};
use crate::SimError;
use crate::netlist::{Body, Design, Instance, Module, ModuleId, Signal, SignalKind, Type};
use rust_hdl::core::ast::Verilog;
use rust_hdl::core::atom::{Atom, AtomKind};
use rust_hdl::core::block::Block;
use rust_hdl::core::probe::Probe;
use rust_hdl::core::type_descriptor::{TypeDescriptor, TypeKind};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::hash::{DefaultHasher, Hasher};

pub(super) fn capture(block: &dyn Block) -> Result<Design, SimError> {
    let mut walk = Walk::default();
    block.accept("top", &mut walk);
    if let Some(error) = walk.error {
        return Err(error);
    }
    let top = walk.last.ok_or_else(|| SimError::Misuse { what: "the block has no scope of its own: derive LogicBlock for it".into() })?;
    Ok(Design { modules: walk.modules, top, instance_count: walk.instances })
}

/// A block whose children are being visited.
struct Scope {
    name: String,
    path: String,
    code: Verilog,
    signals: Vec<Signal>,
    instances: Vec<Instance>,
    /// Depth of interfaces open when the block started.
    namespaces: usize,
}

#[derive(Default)]
struct Walk {
    stack: Vec<Scope>,
    namespace: Vec<String>,
    known: HashMap<(u64, u64), ModuleId>,
    names: HashSet<String>,
    modules: Vec<Module>,
    last: Option<ModuleId>,
    instances: usize,
    error: Option<SimError>,
}

/// Feeds formatted text to two hashers, so that a kernel is digested without building its text.
struct Digest(DefaultHasher, DefaultHasher);

impl Digest {
    fn new() -> Self {
        let mut second = DefaultHasher::new();
        second.write_u8(1);
        Self(DefaultHasher::new(), second)
    }
}

impl Write for Digest {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.write(text.as_bytes());
        self.1.write(text.as_bytes());
        Ok(())
    }
}

impl Walk {
    fn digest(scope: &Scope) -> (u64, u64) {
        let mut d = Digest::new();
        // Writing to a hasher cannot fail.
        let _ = write!(d, "{:?}|{:?}|{:?}", scope.code, scope.signals, scope.instances);
        (d.0.finish(), d.1.finish())
    }

    fn close(&mut self, scope: Scope) -> Result<ModuleId, SimError> {
        let key = Self::digest(&scope);
        if let Some(&id) = self.known.get(&key) {
            return Ok(id);
        }
        let body = match &scope.code {
            Verilog::Combinatorial(block) => {
                Body::Kernel(kernel::lower(block, &scope.signals, &scope.instances, &self.modules, &scope.path)?)
            }
            Verilog::Custom(text) => primitive::recognise(text, &scope.signals, &scope.path)?,
            Verilog::Empty if scope.signals.is_empty() => Body::Kernel(Vec::new()),
            Verilog::Empty => {
                return Err(SimError::unsupported(
                    &scope.path,
                    "a block without hardware text",
                    "give its update the #[hdl_gen] attribute",
                ));
            }
            Verilog::Blackbox(_) | Verilog::Wrapper(_) => {
                return Err(SimError::unsupported(
                    &scope.path,
                    "a black box or wrapped core",
                    "replace it by a block with a kernel for simulation",
                ));
            }
        };
        let base = scope.name.split('$').next().unwrap_or("block").to_string();
        let mut name = base.clone();
        let mut number = 1;
        while !self.names.insert(name.clone()) {
            number += 1;
            name = format!("{base}_{number}");
        }
        let id = ModuleId(self.modules.len());
        self.modules.push(Module { name, path: scope.path, signals: scope.signals, instances: scope.instances, body });
        self.known.insert(key, id);
        Ok(id)
    }
}

impl Probe for Walk {
    fn visit_start_scope(&mut self, name: &str, node: &dyn Block) {
        let full = match self.stack.last() {
            Some(parent) => self.namespace[parent.namespaces..].iter().fold(String::new(), |a, n| a + n + "$") + name,
            None => name.to_string(),
        };
        let path = match self.stack.last() {
            Some(parent) => format!("{}.{full}", parent.path),
            None => full.clone(),
        };
        let code = if self.error.is_some() { Verilog::Empty } else { node.hdl() };
        self.stack.push(Scope { name: full, path, code, signals: Vec::new(), instances: Vec::new(), namespaces: self.namespace.len() });
    }

    fn visit_end_scope(&mut self, _: &str, _: &dyn Block) {
        let Some(scope) = self.stack.pop() else { return };
        self.instances += 1;
        if self.error.is_some() {
            return;
        }
        let name = scope.name.clone();
        match self.close(scope) {
            Ok(id) => match self.stack.last_mut() {
                Some(parent) => parent.instances.push(Instance { name, module: id }),
                None => self.last = Some(id),
            },
            Err(error) => self.error = Some(error),
        }
    }

    fn visit_start_namespace(&mut self, name: &str, _: &dyn Block) {
        self.namespace.push(name.into());
    }

    fn visit_end_namespace(&mut self, _: &str, _: &dyn Block) {
        self.namespace.pop();
    }

    fn visit_atom(&mut self, name: &str, atom: &dyn Atom) {
        let Some(scope) = self.stack.last_mut() else { return };
        let name = self.namespace[scope.namespaces..].iter().fold(String::new(), |a, n| a + n + "$") + name;
        let path = format!("{}.{name}", scope.path);
        let width = atom.bits();
        let kind = match atom.kind() {
            AtomKind::InputParameter => SignalKind::Input,
            AtomKind::OutputParameter => SignalKind::Output,
            AtomKind::LocalSignal => SignalKind::Local,
            AtomKind::Constant => match literal::parse(&format!("{:x}", atom.verilog()), width) {
                Some(value) => SignalKind::Constant(value),
                None => {
                    self.error.get_or_insert_with(|| SimError::width(&path, "a constant without a readable value"));
                    return;
                }
            },
            _ => {
                let what = "a bidirectional or stub signal";
                self.error.get_or_insert_with(|| SimError::unsupported(&path, what, "use an input, an output and an enable"));
                return;
            }
        };
        let ty = convert(&atom.descriptor());
        if ty.width() != width {
            self.error.get_or_insert_with(|| SimError::width(&path, format!("the type is {} bits wide, the signal {width}", ty.width())));
        }
        scope.signals.push(Signal { name, width, kind, ty });
    }
}

fn convert(descriptor: &TypeDescriptor) -> Type {
    match &descriptor.kind {
        TypeKind::Bits(1) if descriptor.name == "clock" => Type::Clock,
        TypeKind::Bits(w) => Type::Bits(*w),
        TypeKind::Signed(w) => Type::Signed(*w),
        TypeKind::Enum(variants) => Type::Enum {
            name: descriptor.name.clone(),
            variants: variants.iter().map(|v| v.rsplit("::").next().unwrap_or(v).to_string()).collect(),
        },
        TypeKind::Composite(fields) => {
            Type::Struct { name: descriptor.name.clone(), fields: fields.iter().map(|f| (f.fieldname.clone(), convert(&f.kind))).collect() }
        }
    }
}
