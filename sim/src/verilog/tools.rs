//! Runs an export in other people's simulators: Icarus Verilog, Verilator, Yosys CXXRTL.
//!
//! Each function writes what it needs into a directory, builds there, and replays a [`Recording`]. A replay that agrees gives its [`Timing`]; the first
//! difference is [`ToolError::Differs`], with its cycle and port.

use super::{Export, Language, Recording, testbench};
use std::path::{Path, PathBuf};
use std::process::Command;
use thiserror::Error;

/// Why a tool did not confirm a recording.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The tool is not installed.
    #[error("{tool} cannot be started: {source}")]
    Missing {
        /// Program.
        tool: String,
        /// Why not.
        source: std::io::Error,
    },
    /// The tool refused the text.
    #[error("{tool} failed: {output}")]
    Failed {
        /// Program.
        tool: String,
        /// What it said.
        output: String,
    },
    /// The simulated text does something else than our engine.
    #[error("{tool}: {difference}")]
    Differs {
        /// Simulator.
        tool: String,
        /// Cycle and port.
        difference: String,
    },
    /// A file that cannot be written.
    #[error("cannot write {path}: {source}", path = path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
}

/// A replay that agreed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timing {
    /// Cycles replayed.
    pub cycles: u64,
    /// Seconds that they took, without start and load; `None` where the simulator does not say.
    pub seconds: Option<f64>,
}

fn write(path: PathBuf, bytes: impl AsRef<[u8]>) -> Result<(), ToolError> {
    std::fs::write(&path, bytes).map_err(|source| ToolError::Write { path, source })
}

fn write_modules(export: &Export, directory: &Path) -> Result<Vec<String>, ToolError> {
    for f in &export.files {
        write(directory.join(&f.name), &f.text)?;
    }
    Ok(export.files.iter().map(|f| f.name.clone()).collect())
}

/// Runs a program in a directory; its standard output.
fn run(directory: &Path, program: &str, arguments: &[&str]) -> Result<String, ToolError> {
    let output = Command::new(program)
        .current_dir(directory)
        .args(arguments)
        .output()
        .map_err(|source| ToolError::Missing { tool: program.into(), source })?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() || text.contains("FAIL: ") {
        return Ok(text);
    }
    Err(ToolError::Failed { tool: program.into(), output: text + &String::from_utf8_lossy(&output.stderr) })
}

/// What a testbench printed.
fn verdict(tool: &str, text: &str) -> Result<Timing, ToolError> {
    let line = |mark: &str| text.lines().find_map(|l| l.strip_prefix(mark));
    if let Some(passed) = line("PASS: ") {
        let words: Vec<&str> = passed.split_whitespace().collect();
        let cycles = words.first().and_then(|w| w.parse().ok()).unwrap_or(0);
        return Ok(Timing { cycles, seconds: words.get(3).and_then(|w| w.parse().ok()) });
    }
    let difference = line("FAIL: ").unwrap_or("the testbench printed no verdict").to_string();
    Err(ToolError::Differs { tool: tool.into(), difference })
}

/// Replays in Icarus Verilog.
///
/// # Errors
/// If the tool is missing or refuses the text, or a port differs.
pub fn icarus(export: &Export, recording: &Recording, directory: &Path) -> Result<Timing, ToolError> {
    let mut sources = write_modules(export, directory)?;
    for f in testbench::verilog(export, recording) {
        write(directory.join(&f.name), &f.text)?;
        if f.name.ends_with(".v") {
            sources.push(f.name);
        }
    }
    let generation = if export.language == Language::SystemVerilog { "-g2012" } else { "-g2005" };
    let mut arguments = vec![generation, "-o", "icarus.vvp"];
    arguments.extend(sources.iter().map(String::as_str));
    run(directory, "iverilog", &arguments)?;
    verdict("Icarus Verilog", &run(directory, "vvp", &["-n", "icarus.vvp"])?)
}

/// A program built from an export.
#[derive(Debug, Clone)]
pub struct Program {
    tool: &'static str,
    binary: PathBuf,
    directory: PathBuf,
}

impl Program {
    /// Replays a recording and compares every output.
    ///
    /// # Errors
    /// If a port differs, or the recording cannot be written.
    pub fn check(&self, recording: &Recording) -> Result<Timing, ToolError> {
        self.replay(recording, "check")
    }

    /// Replays a recording without comparing: for speed.
    ///
    /// # Errors
    /// If the recording cannot be written, or the program fails.
    pub fn time(&self, recording: &Recording) -> Result<Timing, ToolError> {
        self.replay(recording, "time")
    }

    fn replay(&self, recording: &Recording, mode: &str) -> Result<Timing, ToolError> {
        write(self.directory.join("recording.bin"), recording.bytes())?;
        verdict(self.tool, &run(&self.directory, &self.binary.to_string_lossy(), &["recording.bin", mode])?)
    }
}

/// Builds a stand-alone program with Verilator: one thread, the compiler's `-O3`.
///
/// # Errors
/// If the tool is missing or refuses the text.
pub fn verilator(export: &Export, recording: &Recording, directory: &Path) -> Result<Program, ToolError> {
    let sources = write_modules(export, directory)?;
    let bench = testbench::verilator(export, recording);
    write(directory.join(&bench.name), &bench.text)?;
    let mut arguments =
        vec!["--cc", "--exe", "--build", "-O3", "-CFLAGS", "-O3", "-Wno-fatal", "--top-module", &export.top, "-Mdir", "verilated"];
    if export.language == Language::Verilog2005 {
        arguments.extend(["--language", "1364-2005"]);
    }
    arguments.extend(sources.iter().map(String::as_str));
    arguments.push(&bench.name);
    run(directory, "verilator", &arguments)?;
    let binary = absolute(directory, &format!("verilated/V{}", export.top));
    Ok(Program { tool: "Verilator", binary, directory: directory.into() })
}

/// A left shift as a right shift of the mirrored word: CXXRTL's own left shift leaves bits above the width set, and Yosys' own map of it yields gates that
/// CXXRTL does not know (Yosys 0.23).
const LEFT_SHIFT: &str = r#"(* techmap_celltype = "$shl" *)
module left_shift (A, B, Y);
  parameter A_SIGNED = 0, B_SIGNED = 0, A_WIDTH = 1, B_WIDTH = 1, Y_WIDTH = 1;
  input [A_WIDTH-1:0] A;
  input [B_WIDTH-1:0] B;
  output [Y_WIDTH-1:0] Y;
  wire [Y_WIDTH-1:0] extended;
  wire [Y_WIDTH-1:0] mirrored;
  wire [Y_WIDTH-1:0] shifted;
  generate
    if (A_SIGNED) assign extended = $signed(A);
    else assign extended = A;
  endgenerate
  assign shifted = mirrored >> B;
  genvar i;
  generate
    for (i = 0; i < Y_WIDTH; i = i + 1) begin : bits
      assign mirrored[i] = extended[Y_WIDTH - 1 - i];
      assign Y[i] = shifted[Y_WIDTH - 1 - i];
    end
  endgenerate
endmodule
"#;

/// Builds a stand-alone program with Yosys CXXRTL and a C++ compiler.
///
/// # Errors
/// If a tool is missing or refuses the text.
pub fn cxxrtl(export: &Export, recording: &Recording, directory: &Path) -> Result<Program, ToolError> {
    let sources = write_modules(export, directory)?;
    let bench = testbench::cxxrtl(export, recording);
    write(directory.join(&bench.name), &bench.text)?;
    let system = if export.language == Language::SystemVerilog { "-sv " } else { "" };
    let top = &export.top;
    write(directory.join("left_shift.v"), LEFT_SHIFT)?;
    let script = format!(
        "read_verilog {system}{}; hierarchy -check -top {top}; proc; techmap -map left_shift.v t:$shl; write_cxxrtl {top}_cxxrtl.cc",
        sources.join(" ")
    );
    run(directory, "yosys", &["-q", "-p", &script])?;
    let include = format!("-I{}/include", run(directory, "yosys-config", &["--datdir"])?.trim());
    run(directory, "c++", &["-O2", "-std=c++14", "-w", &include, "-o", "cxxrtl", &bench.name])?;
    Ok(Program { tool: "Yosys CXXRTL", binary: absolute(directory, "cxxrtl"), directory: directory.into() })
}

fn absolute(directory: &Path, name: &str) -> PathBuf {
    let path = directory.join(name);
    std::path::absolute(&path).unwrap_or(path)
}
