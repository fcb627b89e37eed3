//! The exported Verilog of the whole machine: clean in Verilator's linter.

use std::path::Path;
use std::process::Command;

use braid_hdl::preset::{DefaultSip, SmallSip, TinySip};
use braid_sim::Design;
use braid_sim::verilog::{Export, Language, Options, Tool};
use rust_hdl::prelude::Block;

fn export<B: Block + Default>(options: &Options) -> Export {
    let mut top = Box::<B>::default();
    top.connect_all();
    Design::lower(top.as_ref()).and_then(|d| d.verilog(options)).expect("the machine can be exported")
}

fn lint(export: &Export, directory: &Path) {
    for file in &export.files {
        std::fs::write(directory.join(&file.name), &file.text).expect("the directory is writable");
    }
    let mut verilator = Command::new("verilator");
    verilator.current_dir(directory).args(["--lint-only", "-Wall", "--top-module", &export.top]);
    if export.language == Language::Verilog2005 {
        verilator.args(["--language", "1364-2005"]);
    }
    let output = verilator.args(export.files.iter().map(|f| &f.name)).output().expect("verilator runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.is_empty(), "{}", text.lines().take(60).collect::<Vec<_>>().join("\n"));
}

fn lint_preset<B: Block + Default>(language: Language) {
    braid_devices::with_stack(|| {
        let directory = tempfile::tempdir().expect("a temporary directory");
        lint(&export::<B>(&Options::for_tool(Tool::Verilator).language(language)), directory.path());
    });
}

#[test]
#[ignore = "needs verilator"]
fn the_tiny_sip_is_clean_in_verilators_linter() {
    lint_preset::<TinySip>(Language::Verilog2005);
    lint_preset::<TinySip>(Language::SystemVerilog);
}

#[test]
#[ignore = "needs verilator"]
fn the_small_sip_is_clean_in_verilators_linter() {
    lint_preset::<SmallSip>(Language::Verilog2005);
}

#[test]
#[ignore = "needs verilator"]
fn the_default_sip_is_clean_in_verilators_linter() {
    lint_preset::<DefaultSip>(Language::Verilog2005);
}

#[test]
fn two_exports_of_the_tiny_sip_are_the_same_bytes() {
    braid_devices::with_stack(|| {
        let options = Options::default();
        assert_eq!(export::<TinySip>(&options), export::<TinySip>(&options));
    });
}
