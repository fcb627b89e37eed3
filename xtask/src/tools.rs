//! The hardware tools that the ignored tests call.

use anyhow::{Result, bail};
use xshell::{Shell, cmd};

/// Program, and the Debian package that holds it.
const TOOLS: [(&str, &str); 4] = [("iverilog", "iverilog"), ("verilator", "verilator"), ("yosys", "yosys"), ("yosys-config", "yosys-dev")];

fn missing(shell: &Shell) -> Vec<(&'static str, &'static str)> {
    TOOLS
        .into_iter()
        .filter(|(program, _)| cmd!(shell, "{program} -V").quiet().ignore_status().ignore_stdout().ignore_stderr().run().is_err())
        .collect()
}

/// Makes sure that every tool is there, installing the missing ones with apt when `install` is set.
///
/// # Errors
/// If a tool is still missing; the error names it.
pub(crate) fn require(shell: &Shell, install: bool) -> Result<()> {
    let absent = missing(shell);
    if !absent.is_empty() && install {
        let packages: Vec<&str> = absent.iter().map(|(_, package)| *package).collect();
        let root = cmd!(shell, "id -u").quiet().read()? == "0";
        let apt: &[&str] = if root { &["apt-get"] } else { &["sudo", "-n", "apt-get"] };
        let _quiet = shell.push_env("DEBIAN_FRONTEND", "noninteractive");
        // A failure to install is reported below, by the name of what is still missing.
        let _ = cmd!(shell, "env {apt...} update --quiet").ignore_status().run();
        let _ = cmd!(shell, "env {apt...} install --quiet --yes --no-install-recommends {packages...}").ignore_status().run();
    }
    let absent: Vec<&str> = missing(shell).iter().map(|(program, _)| *program).collect();
    if !absent.is_empty() {
        bail!("missing tools: {}; install them (Debian: apt-get install {}) and run again", absent.join(", "), absent.join(" "));
    }
    Ok(())
}
