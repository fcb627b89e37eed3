//! VCD dumps of chosen scopes, from rust-hdl's own simulator.
//!
//! Values are written line by line as they change, so that a dump that ends early can be read up to its end. Enums are written by
//! name. A cycle lasts 10 ns; signals change at its start, the clock rises in its middle.

use std::collections::HashMap;
use std::fs::File;
use std::io::LineWriter;
use std::path::{Path, PathBuf};

use rust_hdl::prelude::{Atom, Block, Probe, VCDValue};
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
    codes: Vec<IdCode>,
    clocks: Vec<bool>,
    last: Vec<String>,
    started: bool,
    failed: bool,
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
        let (mut codes, mut clocks) = (Vec::new(), Vec::new());
        walk(design, &selection.scope, &mut |event| {
            if result.is_err() {
                return;
            }
            result = match event {
                Event::Enter(name) => writer.add_module(name),
                Event::Leave => writer.upscope(),
                Event::Atom(name, atom) => {
                    let kind = if matches!(atom.vcd(), VCDValue::String(_)) { VarType::String } else { VarType::Wire };
                    writer.add_var(kind, atom.bits() as u32, name, None).map(|code| {
                        codes.push(code);
                        clocks.push(atom.bits() == 1 && (name == "clock" || name.ends_with("_clock")));
                    })
                }
            };
        });
        result.and_then(|()| writer.enddefinitions()).map_err(error)?;
        let last = vec![String::new(); codes.len()];
        Ok(VcdDump { path: path.to_path_buf(), selection, writer, codes, clocks, last, started: false, failed: false })
    }

    /// Writes what changed in a cycle. An error ends the dump; what was written before stays readable.
    ///
    /// # Errors
    /// If the file cannot be written, once.
    pub fn sample(&mut self, design: &dyn Block, cycle: u64) -> Result<(), WaveformError> {
        if self.failed || cycle < self.selection.from || self.selection.to.is_some_and(|to| cycle >= to) {
            return Ok(());
        }
        let written = self.write(design, cycle);
        self.failed = written.is_err();
        written.map_err(|source| WaveformError::File { path: self.path.clone(), source })
    }

    fn write(&mut self, design: &dyn Block, cycle: u64) -> std::io::Result<()> {
        let mut values = Vec::with_capacity(self.codes.len());
        walk(design, &self.selection.scope, &mut |event| {
            if let Event::Atom(_, atom) = event {
                values.push((atom.vcd(), atom.bits()));
            }
        });
        let start = cycle * CYCLE_NANOSECONDS;
        self.writer.timestamp(start)?;
        let mut changes: HashMap<usize, String> = HashMap::new();
        for (i, (value, _)) in values.iter().enumerate() {
            let value = if self.clocks[i] { "0".to_string() } else { text(value) };
            if !self.started || value != self.last[i] {
                changes.insert(i, value);
            }
        }
        for (i, (value, bits)) in values.iter().enumerate() {
            let Some(text) = changes.remove(&i) else { continue };
            let code = self.codes[i];
            match value {
                VCDValue::String(name) => self.writer.change_string(code, name)?,
                _ if *bits == 1 => self.writer.change_scalar(code, text == "1")?,
                _ => {
                    let bits: Vec<vcd::Value> = text.chars().map(|c| if c == '1' { vcd::Value::V1 } else { vcd::Value::V0 }).collect();
                    self.writer.change_vector(code, &bits)?;
                }
            }
            self.last[i] = text;
        }
        self.started = true;
        self.writer.timestamp(start + CYCLE_NANOSECONDS / 2)?;
        for i in (0..self.codes.len()).filter(|&i| self.clocks[i]) {
            self.writer.change_scalar(self.codes[i], true)?;
            self.last[i] = "1".to_string();
        }
        Ok(())
    }
}
