//! What comes with the modules: file list, clock constraints, a FuseSoC core file.

use super::process::Lines;
use super::testbench::{self, Extra};
use super::{Export, Language, Recording};

/// Everything around the modules of an export.
///
/// `period` is the clock period in nanoseconds; with a recording, the self-checking testbench is part of it.
pub fn files(export: &Export, recording: Option<&Recording>, period: f64) -> Vec<Extra> {
    let bench = recording.map(|r| testbench::verilog(export, r)).unwrap_or_default();
    let top = &export.top;
    let mut out = vec![
        Extra { name: format!("{top}.f"), text: export.files.iter().map(|f| format!("{}\n", f.name)).collect() },
        Extra { name: format!("{top}.sdc"), text: clocks(export, period) },
        Extra { name: format!("{top}.xdc"), text: clocks(export, period) },
        Extra { name: format!("{top}.core"), text: core(export, &bench) },
    ];
    out.extend(bench);
    out
}

/// Constraints of every clock; the same commands in SDC and in XDC.
fn clocks(export: &Export, period: f64) -> String {
    let clock = |p: &&super::Port| p.clock && p.input;
    export.ports.iter().filter(clock).map(|p| format!("create_clock -name {0} -period {period:.3} [get_ports {{{0}}}]\n", p.name)).collect()
}

fn core(export: &Export, bench: &[Extra]) -> String {
    let top = &export.top;
    let source = if export.language == Language::SystemVerilog { "systemVerilogSource" } else { "verilogSource-2005" };
    let mut out = Lines::default();
    out.line("CAPI=2:");
    out.line(format!("name: braid:export:{top}:{}", env!("CARGO_PKG_VERSION")));
    out.line(format!("description: Module {top} and everything in it, written by braid-sim"));
    out.line("");
    let set = |out: &mut Lines, name: &str, files: &[String], kind: &str| {
        out.line(format!("  {name}:"));
        out.line("    files:");
        files.iter().for_each(|f| out.line(format!("      - {f}")));
        out.line(format!("    file_type: {kind}"));
    };
    out.line("filesets:");
    set(&mut out, "rtl", &export.files.iter().map(|f| f.name.clone()).collect::<Vec<_>>(), source);
    set(&mut out, "sdc", &[format!("{top}.sdc")], "SDC");
    set(&mut out, "xdc", &[format!("{top}.xdc")], "xdc");
    if !bench.is_empty() {
        let (verilog, memory): (Vec<&Extra>, Vec<&Extra>) = bench.iter().partition(|f| f.name.ends_with(".v"));
        set(&mut out, "testbench", &verilog.iter().map(|f| f.name.clone()).collect::<Vec<_>>(), "verilogSource-2005");
        let copied: Vec<String> = memory.iter().map(|f| format!("{0}: {{copyto: {0}}}", f.name)).collect();
        set(&mut out, "stimulus", &copied, "user");
    }
    out.line("");
    out.line("targets:");
    out.line("  default:");
    out.line("    filesets:");
    out.line("      - rtl");
    out.line("      - \"tool_vivado ? (xdc)\"");
    out.line("      - \"tool_quartus ? (sdc)\"");
    out.line("      - \"tool_diamond ? (sdc)\"");
    out.line(format!("    toplevel: {top}"));
    out.line("  lint:");
    out.line("    default_tool: verilator");
    out.line("    filesets: [rtl]");
    out.line(format!("    toplevel: {top}"));
    out.line("    tools:");
    out.line("      verilator:");
    out.line("        mode: lint-only");
    out.line("        verilator_options: [-Wall]");
    if let Some(main) = bench.iter().find(|f| f.name.ends_with(".v")) {
        out.line("  sim:");
        out.line("    default_tool: icarus");
        out.line("    filesets: [rtl, testbench, stimulus]");
        out.line(format!("    toplevel: {}", main.name.trim_end_matches(".v")));
    }
    out.finish()
}
