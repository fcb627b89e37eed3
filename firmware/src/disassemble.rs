//! Command lists as text.

use alloc::format;
use alloc::string::String;

use braid_isa::command::{Command, INTERLEAVE, MASK, SCALE, WAIT};

/// One line for the four words of a command, or why they are none.
pub fn disassemble(words: &[u32; 4]) -> String {
    let command = match Command::decode(words) {
        Ok(command) => command,
        Err(error) => {
            return format!("{:08x} {:08x} {:08x} {:08x}  illegal: {error}", words[0], words[1], words[2], words[3]);
        }
    };
    let format = command.operation.format();
    let mut line = format!("{:<10} mask={:#04x}", format.name, MASK.get(words));
    for field in format.fields {
        let value = field.get(words);
        line += &if *field == SCALE { format!(" {}={}", field.name, f32::from_bits(value)) } else { format!(" {}={value}", field.name) };
    }
    if INTERLEAVE.get(words) == 1 {
        line += " interleave";
    }
    if WAIT.get(words) == 1 {
        line += " wait";
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use braid_isa::command::Operation;

    #[test]
    fn a_line_names_every_field() {
        let commands = [
            Command {
                wait: true,
                interleave: false,
                mask: 0xFF,
                operation: Operation::Configure {
                    rows: 160,
                    head_dim: 128,
                    scale: 0.125f32.to_bits(),
                    q_address: 0,
                    q_bf16: false,
                    k_bf16: true,
                    v_bf16: false,
                    active: 32,
                },
            },
            Command {
                wait: false,
                interleave: true,
                mask: 0x0F,
                operation: Operation::Attend { page: 512, position: 16, pages: 4, stride: 32 },
            },
            Command { wait: false, interleave: false, mask: 1, operation: Operation::Merge { first_round: 0, rounds: 5 } },
        ];
        let mut words: Vec<[u32; 4]> = commands.iter().map(Command::encode).collect();
        words.push([0xFF01, 0, 0, 0]);
        words.push([0x0001_0199, 1, 2, 3]);
        let text: Vec<String> = words.iter().map(disassemble).collect();
        insta::assert_snapshot!(text.join("\n"));
    }
}
