//! Self-checking testbenches that replay a [`Recording`]: in Verilog for any simulator, in C++ for Verilator and for Yosys CXXRTL.
//!
//! Each names the first cycle and port that differ. The C++ ones read the recording as bytes from the file in their first argument; a second argument `time` leaves the
//! comparison out, and prints the seconds that the cycles took.

use super::names::Names;
use super::process::Lines;
use super::{Export, Port, Recording};

/// A file that is not a module of the design.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extra {
    /// File name.
    pub name: String,
    /// Text.
    pub text: String,
}

/// Testbench in Verilog-2005, and the two memory files that it reads from the working directory.
pub fn verilog(export: &Export, recording: &Recording) -> Vec<Extra> {
    let top = &export.top;
    let mut names = Names::new("$", false);
    // Ports keep their names; what the testbench adds must give way.
    export.ports.iter().for_each(|p| drop(names.claim(&p.name)));
    let mut claim = |n: &str| names.claim(n);
    let (stimulus, expected, cycle, want) = (claim("stimulus"), claim("expected"), claim("cycle"), claim("want"));
    let (cycles, dut, bench) = (claim("CYCLES"), claim("dut"), claim(&format!("{top}_tb")));
    let total = |input: bool| recording.ports.iter().filter(|p| p.input == input).map(|p| p.width).sum::<usize>();
    let mut out = Lines::default();
    out.line("// Replays a recorded stimulus and compares every output in every cycle. Written by braid-sim.");
    out.line("`timescale 1ns / 1ps");
    out.line("");
    out.open(format!("module {bench};"));
    out.line(format!("localparam {cycles} = {};", recording.cycles()));
    for p in &export.ports {
        let kind = if p.input { "reg" } else { "wire" };
        out.line(format!("{kind} {}{};", range(p.width), p.name));
    }
    if total(true) > 0 {
        out.line(format!("reg {}{stimulus} [0:{cycles} - 1];", range(total(true))));
    }
    if total(false) > 0 {
        out.line(format!("reg {}{expected} [0:{cycles} - 1];", range(total(false))));
        out.line(format!("reg {}{want};", range(total(false))));
    }
    out.line(format!("integer {cycle};"));
    out.line("");
    out.open(format!("{top} {dut} ("));
    for (n, p) in export.ports.iter().enumerate() {
        out.line(format!(".{0}({0}){1}", p.name, if n + 1 < export.ports.len() { "," } else { "" }));
    }
    out.close(");");
    out.line("");
    out.open("initial begin");
    if total(true) > 0 {
        out.line(format!("$readmemh(\"{top}_stimulus.hex\", {stimulus});"));
    }
    if total(false) > 0 {
        out.line(format!("$readmemh(\"{top}_expected.hex\", {expected});"));
    }
    let clocks: Vec<&Port> = export.ports.iter().filter(|p| p.clock).collect();
    clocks.iter().for_each(|c| out.line(format!("{} = 1'd0;", c.name)));
    out.line("#1;");
    out.open(format!("for ({cycle} = 0; {cycle} < {cycles}; {cycle} = {cycle} + 1) begin"));
    let inputs: Vec<&str> = recording.ports.iter().rev().filter(|p| p.input).map(|p| p.name.as_str()).collect();
    if !inputs.is_empty() {
        out.line(format!("{{{}}} = {stimulus}[{cycle}];", inputs.join(", ")));
    }
    if total(false) > 0 {
        out.line(format!("{want} = {expected}[{cycle}];"));
    }
    out.line("#5;");
    let mut low = 0;
    for p in recording.ports.iter().filter(|p| !p.input) {
        let part = super::scope::select(&want, total(false), low, p.width);
        low += p.width;
        out.open(format!("if ({} !== {part}) begin", p.name));
        out.line(format!("$display(\"FAIL: cycle %0d: {} is %h, expected %h\", {cycle}, {}, {part});", p.name, p.name));
        out.line("$finish;");
        out.line("#1;");
        out.close("end");
    }
    clocks.iter().for_each(|c| out.line(format!("{} = 1'd1;", c.name)));
    out.line("#5;");
    clocks.iter().for_each(|c| out.line(format!("{} = 1'd0;", c.name)));
    out.close("end");
    out.line(format!("$display(\"PASS: %0d cycles\", {cycles});"));
    out.line("$finish;");
    out.close("end");
    out.close("endmodule");
    let hex = |input: bool| (0..recording.cycles()).map(|c| recording.hex(c, input) + "\n").collect::<String>();
    let mut files = vec![Extra { name: format!("{bench}.v"), text: out.finish() }];
    if total(true) > 0 {
        files.push(Extra { name: format!("{top}_stimulus.hex"), text: hex(true) });
    }
    if total(false) > 0 {
        files.push(Extra { name: format!("{top}_expected.hex"), text: hex(false) });
    }
    files
}

fn range(width: usize) -> String {
    if width == 1 { String::new() } else { format!("[{}:0] ", width - 1) }
}

/// Name of a port in the class that Verilator writes.
fn verilated(name: &str) -> String {
    name.replace("__", "___05F").replace('$', "__024")
}

/// Name of a port in the class that CXXRTL writes.
fn cxxrtl_name(name: &str) -> String {
    name.chars().fold("p_".into(), |text: String, c| match c {
        '_' => text + "__",
        c if c.is_ascii_alphanumeric() => text + &c.to_string(),
        c => text + &format!("_{:x}_", c as u32),
    })
}

const PRELUDE: &str = r#"#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <vector>
"#;

const ACCESS_VERILATOR: &str = r"
template <typename T> static void set(T& port, const uint32_t* w) {
    uint64_t v = w[0];
    if (sizeof(T) > 4) v |= uint64_t(w[1]) << 32;
    port = T(v);
}
template <std::size_t N> static void set(VlWide<N>& port, const uint32_t* w) {
    for (std::size_t i = 0; i < N; i++) port[i] = w[i];
}
template <typename T> static bool same(const T& port, const uint32_t* w) {
    uint64_t v = w[0];
    if (sizeof(T) > 4) v |= uint64_t(w[1]) << 32;
    return uint64_t(port) == v;
}
template <std::size_t N> static bool same(const VlWide<N>& port, const uint32_t* w) {
    for (std::size_t i = 0; i < N; i++) if (port[i] != w[i]) return false;
    return true;
}
";

const ACCESS_CXXRTL: &str = r"
template <std::size_t B> static void set(cxxrtl::value<B>& port, const uint32_t* w) {
    for (std::size_t i = 0; i < cxxrtl::value<B>::chunks; i++) port.data[i] = w[i];
}
template <std::size_t B> static bool same(const cxxrtl::value<B>& port, const uint32_t* w) {
    for (std::size_t i = 0; i < cxxrtl::value<B>::chunks; i++) if (port.data[i] != w[i]) return false;
    return true;
}
template <std::size_t B> static bool same(const cxxrtl::wire<B>& port, const uint32_t* w) { return same(port.curr, w); }
";

/// What differs between the two C++ testbenches.
struct Dialect<'a> {
    include: String,
    access: &'a str,
    create: String,
    evaluate: &'a str,
    name: fn(&str) -> String,
    clock: fn(&str, u32) -> String,
}

/// Main program for `verilator --cc --exe`; the class is `V<top>`.
pub fn verilator(export: &Export, recording: &Recording) -> Extra {
    let dialect = Dialect {
        include: format!("#include \"V{}.h\"\n#include \"verilated.h\"\n", export.top),
        access: ACCESS_VERILATOR,
        create: format!("std::unique_ptr<V{0}> top(new V{0});", export.top),
        evaluate: "top->eval();",
        name: verilated,
        clock: |name, level| format!("top->{name} = {level};"),
    };
    Extra { name: format!("{}_verilator.cpp", export.top), text: main_program(export, recording, &dialect) }
}

/// Main program around the file `<top>_cxxrtl.cc` that Yosys writes (`write_cxxrtl`).
pub fn cxxrtl(export: &Export, recording: &Recording) -> Extra {
    let dialect = Dialect {
        include: format!("#include \"{}_cxxrtl.cc\"\n", export.top),
        access: ACCESS_CXXRTL,
        create: format!("std::unique_ptr<cxxrtl_design::p_{0}> top(new cxxrtl_design::p_{0});", export.top.replace('_', "__")),
        evaluate: "top->step();",
        name: cxxrtl_name,
        clock: |name, level| format!("top->{name}.set<uint32_t>({level}u);"),
    };
    Extra { name: format!("{}_cxxrtl_main.cpp", export.top), text: main_program(export, recording, &dialect) }
}

fn main_program(export: &Export, recording: &Recording, dialect: &Dialect<'_>) -> String {
    let name = |p: &Port| (dialect.name)(&p.name);
    let clocks =
        |level: u32| export.ports.iter().filter(|p| p.clock).map(|p| (dialect.clock)(&name(p), level)).collect::<Vec<_>>().join(" ");
    let mut offset = 0;
    let mut drive = Lines::at(2);
    let mut check = Lines::at(3);
    for p in &recording.ports {
        if p.input {
            drive.line(format!("set(top->{}, row + {offset});", name(p)));
        } else {
            check.line(format!("if (!same(top->{}, row + {offset})) return fail(\"{}\", cycle);", name(p), p.name));
        }
        offset += p.width.div_ceil(32);
    }
    format!(
        r#"// Replays a recorded stimulus and compares every output in every cycle. Written by braid-sim.
{PRELUDE}{include}{access}
static int fail(const char* port, std::size_t cycle) {{
    std::printf("FAIL: cycle %zu: %s differs\n", cycle, port);
    return 1;
}}

int main(int argc, char** argv) {{
    if (argc < 2) {{
        std::printf("FAIL: the first argument is the recording\n");
        return 2;
    }}
    const bool timed = argc > 2 && std::strcmp(argv[2], "time") == 0;
    std::ifstream file(argv[1], std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    std::vector<uint32_t> words(bytes.size() / 4);
    std::memcpy(words.data(), bytes.data(), words.size() * 4);
    const std::size_t width = {width}, cycles = words.size() / width;
    {create}
    {low}
    {evaluate}
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t cycle = 0; cycle < cycles; cycle++) {{
        const uint32_t* row = words.data() + cycle * width;
{drive}        {evaluate}
        if (!timed) {{
{check}        }}
        {high}
        {evaluate}
        {low}
    }}
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::printf("PASS: %zu cycles in %.6f seconds\n", cycles, seconds.count());
    return 0;
}}
"#,
        include = dialect.include,
        access = dialect.access,
        width = recording.row_words().max(1),
        create = dialect.create,
        low = clocks(0),
        high = clocks(1),
        evaluate = dialect.evaluate,
        drive = drive.finish(),
        check = check.finish(),
    )
}
