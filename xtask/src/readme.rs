//! Runs the commands that the README shows, so that they stay true.

use anyhow::{Context, Result, ensure};
use xshell::{Shell, cmd};

/// Commands that would run this program again, or that need another place.
const SKIPPED: [&str; 2] = ["cargo xtask", "git clone"];

/// The lines of the `sh` blocks of a Markdown text.
fn commands(markdown: &str) -> Vec<&str> {
    let mut inside = false;
    markdown
        .lines()
        .filter(|line| {
            if line.starts_with("```") {
                inside = *line == "```sh";
                return false;
            }
            inside && !line.trim().is_empty() && !line.starts_with('#')
        })
        .collect()
}

/// Runs every command of README.md in a shell, in order.
///
/// # Errors
/// Names the first command that fails; an error too if the README has no commands.
pub(crate) fn run(shell: &Shell) -> Result<()> {
    let readme = shell.read_file("README.md")?;
    let commands = commands(&readme);
    ensure!(!commands.is_empty(), "README.md has no sh block");
    for command in commands.into_iter().filter(|c| !SKIPPED.iter().any(|s| c.starts_with(s))) {
        cmd!(shell, "bash -euo pipefail -c {command}").run().with_context(|| format!("README command failed: {command}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_sh_blocks_are_commands() {
        let text = "a\n```sh\ncargo run\n# note\n\nls\n```\n```text\nno\n```\n";
        assert_eq!(super::commands(text), ["cargo run", "ls"]);
    }
}
