//! [`Design`] to Verilog: one module per distinct block, readable, with every width explicit.
//!
//! ```text
//! Design --groups--> processes --expression--> text --module--> one file a module
//! ```
//!
//! Modules in the order in which data flows: options, names, groups (which statements form a process), scope (what a module's text refers to), expression,
//! process, primitive (registers and memories), split (which modules need finer processes), module; then recording, testbench, tools (which replay an export), and package (file list, constraints, core file). `docs/verilog.md` says what each tool needs.

mod expression;
mod groups;
mod literal;
mod module;
pub(crate) mod names;
mod options;
pub mod package;
mod primitive;
mod process;
mod recording;
mod scope;
mod split;
pub mod testbench;
pub mod tools;

pub use options::{Capability, Language, Options, Style, Tool};
pub use recording::Recording;

use crate::SimError;
use crate::netlist::{Body, Design, Module, ModuleId, SignalKind};
use module::Face;
use names::Names;

/// One file of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Name of the module in it; the file is called `<name>.v` or `<name>.sv`.
    pub module: String,
    /// File name.
    pub name: String,
    /// Text.
    pub text: String,
}

/// A port of the exported top.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Name in our engines.
    pub source: String,
    /// Name in the text.
    pub name: String,
    /// Width in bits.
    pub width: usize,
    /// True for an input.
    pub input: bool,
    /// True for a clock.
    pub clock: bool,
}

/// An exported design.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// Files, children before parents.
    pub files: Vec<File>,
    /// Name of the top module.
    pub top: String,
    /// Ports of the top in declaration order.
    pub ports: Vec<Port>,
    /// Language.
    pub language: Language,
}

impl Export {
    /// All modules in one text, children first.
    pub fn concatenated(&self) -> String {
        self.files.iter().map(|f| f.text.as_str()).collect::<Vec<_>>().join("\n")
    }
}

impl Design {
    /// Verilog of the design. The same design and options give the same bytes.
    ///
    /// # Errors
    /// Designs that no engine would simulate (loops, latches, undriven signals, derived clocks), and signals without any bits, which Verilog does not have.
    pub fn verilog(&self, options: &Options) -> Result<Export, SimError> {
        self.check()?;
        let mut names = Names::new("_", options.capability.cpp_words);
        let mut faces = Vec::with_capacity(self.modules.len());
        let wanted = |i: usize, m: &Module| {
            let own = if ModuleId(i) == self.top { &options.style.top } else { &m.name };
            format!("{}{own}", options.style.module_prefix)
        };
        // The top has the first choice of its name.
        let top = names.claim(&wanted(self.top.0, self.top()));
        for (i, m) in self.modules.iter().enumerate() {
            if let Some(empty) = m.signals.iter().find(|s| s.width == 0) {
                let path = format!("{}.{}", m.path, empty.name);
                return Err(SimError::unsupported(&path, "a signal of no bits", "leave it out: Verilog has none"));
            }
            let written = ModuleId(i) == self.top || !m.is_primitive();
            let name = if ModuleId(i) == self.top {
                top.clone()
            } else if written {
                names.claim(&wanted(i, m))
            } else {
                String::new()
            };
            faces.push(Face::of(self, m, name, options));
        }
        let extension = if options.system() { "sv" } else { "v" };
        let split = split::modules(self);
        let mut files = Vec::new();
        for (i, m) in self.modules.iter().enumerate() {
            if !matches!(m.body, Body::Kernel(_)) && ModuleId(i) != self.top {
                continue;
            }
            let name = &faces[i].name;
            let text = module::write(self, ModuleId(i), &faces, options, split.contains(&ModuleId(i)));
            files.push(File { module: name.clone(), name: format!("{name}.{extension}"), text });
        }
        let face = &faces[self.top.0];
        let ports = (self.top().signals.iter().zip(&face.ports))
            .filter(|(s, _)| matches!(s.kind, SignalKind::Input | SignalKind::Output))
            .map(|(s, name)| Port {
                source: s.name.clone(),
                name: name.clone(),
                width: s.width,
                input: matches!(s.kind, SignalKind::Input),
                clock: s.is_clock(),
            })
            .collect();
        Ok(Export { files, top, ports, language: options.style.language })
    }
}
