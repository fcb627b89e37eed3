//! VCD dumps of chosen scopes, from rust-hdl's own simulator.
//!
//! Values are written line by line as they change, so that a dump that ends early can be read up to its end. Enums are written by
//! name. A cycle lasts 10 ns; signals change at its start, the clock rises in its middle.

use std::fs::File;
use std::io::LineWriter;
use std::path::{Path, PathBuf};

use rust_hdl::prelude::{Atom, Block, Probe, TypeKind, VCDValue};
use thiserror::Error;
use vcd::{IdCode, TimescaleUnit, VarType, Writer};

/// Nanoseconds of a cycle.
const CYCLE_NANOSECONDS: u64 = 10;

/// Which signals and cycles to dump.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Scope below the top, for example `cube$0.pe$3.datapath`; everything when empty.
    pub scope: String,
    /// First cycle.
    pub from: u64,
    /// Cycle after the last one.
    pub to: Option<u64>,
}

/// A dump that cannot be written.
#[derive(Debug, Error)]
pub enum WaveformError {
    /// The file.
    #[error("cannot write {path}: {source}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// No such scope.
    #[error("no scope '{scope}' in the design; scopes of the top: {known}")]
    Scope {
        /// As asked for.
        scope: String,
        /// Scopes right below the top.
        known: String,
    },
}

/// A VCD file that is being written.
pub struct VcdDump {
    path: PathBuf,
    selection: Selection,
    writer: Writer<LineWriter<File>>,
    variables: Vec<Variable>,
    started: bool,
    failed: bool,
}

/// A signal of the dump.
#[derive(Clone, Debug)]
pub struct Variable {
    code: IdCode,
    clock: bool,
    last: String,
    /// Path from the top, joined by dots.
    pub path: String,
    /// Width in bits.
    pub bits: usize,
    /// Names of an enum's values.
    pub names: Option<Vec<String>>,
}

/// Walks the design and hands the selected atoms on, in a fixed order.
struct Walk<'a, 'b> {
    want: &'a str,
    path: Vec<String>,
    namespace: Vec<String>,
    scopes: Vec<String>,
    inside: &'b mut dyn FnMut(Event<'_>),
}

enum Event<'a> {
    Enter(&'a str),
    Leave,
    Atom(&'a str, &'a dyn Atom),
}

impl Walk<'_, '_> {
    fn here(&self) -> bool {
        let below = self.path[1..].join(".");
        self.want.is_empty() || below == self.want || below.strip_prefix(self.want).is_some_and(|rest| rest.starts_with('.'))
    }
}

impl Probe for Walk<'_, '_> {
    fn visit_start_scope(&mut self, name: &str, _node: &dyn Block) {
        self.path.push(name.to_string());
        if self.path.len() == 2 {
            self.scopes.push(name.to_string());
        }
        if self.here() {
            (self.inside)(Event::Enter(name));
        }
    }

    fn visit_end_scope(&mut self, _name: &str, _node: &dyn Block) {
        if self.here() {
            (self.inside)(Event::Leave);
        }
        self.path.pop();
    }

    fn visit_start_namespace(&mut self, name: &str, _node: &dyn Block) {
        self.namespace.push(name.to_string());
    }

    fn visit_end_namespace(&mut self, _name: &str, _node: &dyn Block) {
        self.namespace.pop();
    }

    fn visit_atom(&mut self, name: &str, signal: &dyn Atom) {
        if self.here() {
            let full = self.namespace.iter().map(String::as_str).chain([name]).collect::<Vec<_>>().join("$");
            (self.inside)(Event::Atom(&full, signal));
        }
    }
}

/// Calls `inside` for the selected part of a design; the scopes right below the top.
fn walk(design: &dyn Block, scope: &str, inside: &mut dyn FnMut(Event<'_>)) -> Vec<String> {
    let mut walk = Walk { want: scope, path: Vec::new(), namespace: Vec::new(), scopes: Vec::new(), inside };
    design.accept("sip", &mut walk);
    walk.scopes
}

/// The bits of a value, most significant first; an enum's name.
fn text(value: &VCDValue) -> String {
    match value {
        VCDValue::Single(bit) => bit.to_string(),
        VCDValue::Vector(bits) => bits.iter().map(ToString::to_string).collect(),
        VCDValue::String(name) => name.clone(),
        // The first field is the lowest.
        VCDValue::Composite(fields) => fields.iter().rev().map(|field| text(field)).collect(),
    }
}

impl VcdDump {
    /// Creates the file and writes its header.
    ///
    /// # Errors
    /// If the file cannot be written, or the design has no such scope (then no file is made).
    pub fn create(path: &Path, design: &dyn Block, selection: Selection) -> Result<VcdDump, WaveformError> {
        let mut found = false;
        let known = walk(design, &selection.scope, &mut |_| found = true);
        if !found {
            return Err(WaveformError::Scope { scope: selection.scope, known: known.join(", ") });
        }
        let error = |source| WaveformError::File { path: path.to_path_buf(), source };
        let mut writer = Writer::new(LineWriter::new(File::create(path).map_err(error)?));
        let mut result = writer.timescale(1, TimescaleUnit::NS);
        let mut variables = Vec::new();
        let mut scopes: Vec<String> = parents(&selection.scope);
        walk(design, &selection.scope, &mut |event| {
            if result.is_err() {
                return;
            }
            result = match event {
                Event::Enter(name) => {
                    scopes.push(name.to_string());
                    writer.add_module(name)
                }
                Event::Leave => {
                    scopes.pop();
                    writer.upscope()
                }
                Event::Atom(name, atom) => {
                    let names = match atom.descriptor().kind {
                        TypeKind::Enum(names) => Some(names.iter().map(|n| n.rsplit("::").next().unwrap_or(n).to_string()).collect()),
                        _ => None,
                    };
                    let kind = if names.is_some() { VarType::String } else { VarType::Wire };
                    writer.add_var(kind, atom.bits() as u32, name, None).map(|code| {
                        let path = scopes.iter().skip(1).map(String::as_str).chain([name]).collect::<Vec<_>>().join(".");
                        let clock = atom.bits() == 1 && (name == "clock" || name.ends_with("_clock"));
                        variables.push(Variable { code, clock, last: String::new(), path, bits: atom.bits(), names });
                    })
                }
            };
        });
        result.and_then(|()| writer.enddefinitions()).map_err(error)?;
        Ok(VcdDump { path: path.to_path_buf(), selection, writer, variables, started: false, failed: false })
    }

    /// The signals of the dump, in the order in which their values are given.
    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }

    /// Writes what changed in a cycle; `values` gives bits, most significant first, or the name of an enum, of every variable. An error ends the dump; what
    /// was written before stays readable.
    ///
    /// # Errors
    /// If the file cannot be written, once.
    pub fn sample(&mut self, cycle: u64, values: impl FnOnce(&[Variable]) -> Vec<String>) -> Result<(), WaveformError> {
        if self.failed || cycle < self.selection.from || self.selection.to.is_some_and(|to| cycle >= to) {
            return Ok(());
        }
        let values = values(&self.variables);
        let written = self.write(values, cycle);
        self.failed = written.is_err();
        written.map_err(|source| WaveformError::File { path: self.path.clone(), source })
    }

    fn write(&mut self, values: Vec<String>, cycle: u64) -> std::io::Result<()> {
        let start = cycle * CYCLE_NANOSECONDS;
        self.writer.timestamp(start)?;
        for (variable, value) in self.variables.iter_mut().zip(values) {
            let value = if variable.clock { "0".to_string() } else { value };
            if self.started && value == variable.last {
                continue;
            }
            if variable.names.is_some() {
                self.writer.change_string(variable.code, &value)?;
            } else if variable.bits == 1 {
                self.writer.change_scalar(variable.code, value == "1")?;
            } else {
                let bits: Vec<vcd::Value> = value.chars().map(|c| if c == '1' { vcd::Value::V1 } else { vcd::Value::V0 }).collect();
                self.writer.change_vector(variable.code, &bits)?;
            }
            variable.last = value;
        }
        self.started = true;
        self.writer.timestamp(start + CYCLE_NANOSECONDS / 2)?;
        for variable in self.variables.iter_mut().filter(|v| v.clock) {
            self.writer.change_scalar(variable.code, true)?;
            variable.last = "1".to_string();
        }
        Ok(())
    }
}

/// The scopes above a chosen one, the top first.
fn parents(scope: &str) -> Vec<String> {
    let mut parts: Vec<String> = std::iter::once("sip").chain(scope.split('.')).filter(|p| !p.is_empty()).map(String::from).collect();
    if !scope.is_empty() {
        parts.pop();
    }
    if scope.is_empty() { Vec::new() } else { parts }
}

/// Values of the selected signals of a block that rust-hdl itself simulates.
pub fn block_values(design: &dyn Block, scope: &str) -> Vec<String> {
    let mut values = Vec::new();
    walk(design, scope, &mut |event| {
        if let Event::Atom(_, atom) = event {
            let value = text(&atom.vcd());
            values.push(value.rsplit("::").next().unwrap_or(&value).to_string());
        }
    });
    values
}

/// A value as the dump wants it: bits, or the name of an enum.
pub fn value_text(variable: &Variable, words: &[u64]) -> String {
    if let Some(names) = &variable.names {
        return names.get(words[0] as usize).cloned().unwrap_or_else(|| words[0].to_string());
    }
    (0..variable.bits).rev().map(|bit| if words[bit / 64] >> (bit % 64) & 1 == 1 { '1' } else { '0' }).collect()
}
