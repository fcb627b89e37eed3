//! VCD: the header through the crate `vcd`; the changes, which are most of the file, are lines put together here.
//!
//! An enum is a variable of its bits and, beside it, a string variable `NAME$name`: GTKWave and Surfer show strings as they are, and a reader that does not
//! know the extension still has the bits. Every write to the file ends with a line, so that a file cut short can be read to its end.

use super::signals::{Item, Signals};
use super::sink::Sink;
use crate::netlist::SignalKind;
use std::fs::File;
use std::io::{self, Write};
use vcd::{IdCode, TimescaleUnit, VarType, Writer};

/// Bytes after which lines go to the file.
const BLOCK_BYTES: usize = 1 << 18;

/// A variable behind a value.
struct Code {
    code: IdCode,
    /// End of a line: the code.
    end: String,
    width: usize,
    /// String variables: code and enum.
    names: Vec<(IdCode, usize)>,
}

pub(super) struct VcdSink {
    file: File,
    /// Lines that are not in the file yet.
    lines: Vec<u8>,
    /// Bytes in the file, all of them whole lines.
    written: u64,
    codes: Vec<Code>,
    /// Names of the values of every enum.
    enums: Vec<Vec<String>>,
}

impl VcdSink {
    pub(super) fn create(file: File, signals: &Signals) -> io::Result<Self> {
        let mut lines = Vec::new();
        let mut writer = Writer::new(&mut lines);
        writer.timescale(1, TimescaleUnit::NS)?;
        let mut next = IdCode::FIRST;
        let mut fresh = || {
            let code = next;
            next = code.next();
            code
        };
        let mut codes: Vec<Code> = signals
            .values
            .iter()
            .map(|v| (fresh(), v.width()))
            .map(|(code, width)| Code { code, end: format!("{code}\n"), width, names: Vec::new() })
            .collect();
        for item in &signals.items {
            match item {
                Item::Enter(name, _) => writer.add_module(name)?,
                Item::Leave => writer.upscope()?,
                Item::Variable(v) => {
                    let variable = &signals.variables[*v];
                    let value = &mut codes[variable.value];
                    let kind = if matches!(variable.kind, SignalKind::Constant(_)) { VarType::Parameter } else { VarType::Wire };
                    writer.var_def(kind, value.width as u32, value.code, &variable.name, None)?;
                    if let Some(names) = variable.names {
                        let code = match value.names.iter().find(|n| n.1 == names) {
                            Some(&(code, _)) => code,
                            None => {
                                let code = fresh();
                                value.names.push((code, names));
                                code
                            }
                        };
                        writer.var_def(VarType::String, 1, code, &format!("{}$name", variable.name), None)?;
                    }
                }
            }
        }
        writer.enddefinitions()?;
        let enums = signals.enums.iter().map(|e| e.1.clone()).collect();
        Ok(Self { file, lines, written: 0, codes, enums })
    }
}

impl Sink for VcdSink {
    fn time(&mut self, time: u64) -> io::Result<()> {
        writeln!(self.lines, "#{time}")?;
        if self.lines.len() >= BLOCK_BYTES { self.flush() } else { Ok(()) }
    }

    fn change(&mut self, value: usize, limbs: &[u64]) -> io::Result<()> {
        let Code { end, width, names, .. } = &self.codes[value];
        let lines = &mut self.lines;
        if *width > 1 {
            lines.push(b'b');
        }
        for (i, limb) in limbs.iter().enumerate().rev() {
            let bits = (width - 64 * i).min(64);
            lines.extend((0..bits).rev().map(|bit| b'0' + (limb >> bit & 1) as u8));
        }
        if *width > 1 {
            lines.push(b' ');
        }
        lines.extend_from_slice(end.as_bytes());
        for &(code, names) in names {
            match self.enums[names].get(limbs[0] as usize) {
                Some(name) => writeln!(lines, "s{name} {code}")?,
                None => writeln!(lines, "s{} {code}", limbs[0])?,
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all(&self.lines)?;
        self.written += self.lines.len() as u64;
        self.lines.clear();
        Ok(())
    }

    fn repair(&mut self) {
        // Of a block that did not fit, the part that did is cut off again; if even that fails, readers skip half a line.
        let _ = self.file.set_len(self.written);
    }
}
