//! The `braid` program: fused attention of an agent fan-out on simulated hardware.

mod arguments;
mod check;
mod disasm;
mod error;
mod export;
mod input;
mod output;
mod present;
mod run;
mod tensors;
mod verify;
mod wave;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let command = arguments.command.unwrap_or_else(|| Command::Run(Box::new(arguments.run)));
    // Simulated RTL is a large struct tree: everything runs on a thread with a large stack.
    let result = braid_devices::with_stack(|| match command {
        Command::Run(options) => run::run(&options),
        Command::Attend(options) => run::attend(&options),
        Command::Verify(options) => verify::verify(&options),
        Command::Export(options) => export::export(&options),
        Command::Disasm(options) => disasm::disasm(&options),
    });
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(error.status())
        }
    }
}
