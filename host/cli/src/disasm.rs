//! `braid disasm`.

use std::io::Read;

use braid_firmware::disassemble;

use crate::arguments::DisasmOptions;
use crate::error::Error;

/// Prints a command list as text; whether every word is a command.
pub(crate) fn disasm(options: &DisasmOptions) -> Result<bool, Error> {
    let read = |source| Error::Read { path: options.file.clone(), source };
    let mut bytes = Vec::new();
    if options.file.as_os_str() == "-" {
        std::io::stdin().read_to_end(&mut bytes).map_err(read)?;
    } else {
        bytes = std::fs::read(&options.file).map_err(read)?;
    }
    let (commands, rest) = bytes.as_chunks::<16>();
    if !rest.is_empty() {
        return Err(Error::CommandList { name: options.file.display().to_string(), bytes: bytes.len() });
    }
    let mut legal = true;
    for (index, command) in commands.iter().enumerate() {
        let words: [u32; 4] = std::array::from_fn(|w| u32::from_le_bytes(std::array::from_fn(|b| command[4 * w + b])));
        legal &= braid_isa::Command::decode(&words).is_ok();
        println!("{index:>5}  {}", disassemble(&words));
    }
    Ok(legal)
}
