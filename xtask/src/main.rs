//! Project tasks: `cargo xtask test` runs everything that must hold, `cargo xtask readme` the commands of the README.

mod readme;
mod tools;

use std::time::Instant;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use xshell::{Shell, cmd};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Project tasks of Braid")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Everything: format, lints, documentation, all tests (those that need Icarus, Verilator and Yosys included), README commands.
    Test {
        /// Do not install missing tools; fail instead.
        #[arg(long)]
        no_install: bool,
    },
    /// Install the hardware tools that the ignored tests need.
    Tools,
    /// Run every command of the README.
    Readme,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let shell = Shell::new()?;
    shell.change_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    match arguments.task {
        Task::Test { no_install } => test(&shell, !no_install),
        Task::Tools => tools::require(&shell, true),
        Task::Readme => readme::run(&shell),
    }
}

/// Runs the stages in the order in which they fail soonest.
fn test(shell: &Shell, install: bool) -> Result<()> {
    stage("format", || Ok(cmd!(shell, "cargo fmt --all --check").run()?))?;
    stage("lints", || Ok(cmd!(shell, "cargo clippy --workspace --all-targets --locked -- -D warnings").run()?))?;
    stage("documentation", || {
        let _flags = shell.push_env("RUSTDOCFLAGS", "-D warnings");
        Ok(cmd!(shell, "cargo doc --workspace --no-deps --locked").run()?)
    })?;
    stage("tests", || Ok(cmd!(shell, "cargo test --workspace --locked").run()?))?;
    stage("tools", || tools::require(shell, install))?;
    stage("tests that need hardware tools or a second tensor file", || {
        let _file = shell.push_env("BRAID_FANOUT", shell.current_dir().join("testbenches/data/smollm2_fanout_layer0_head0.safetensors"));
        Ok(cmd!(shell, "cargo test --workspace --locked -- --ignored").run()?)
    })?;
    stage("README", || readme::run(shell))
}

fn stage(name: &str, run: impl FnOnce() -> Result<()>) -> Result<()> {
    eprintln!("==== {name}");
    let start = Instant::now();
    run().with_context(|| format!("stage '{name}' failed"))?;
    eprintln!("==== {name}: {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}
