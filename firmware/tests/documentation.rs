//! `docs/commands.md` says what the command table says.

use braid_isa::command::TABLE;
use braid_isa::{Code, register};

const PAGE: &str = include_str!("../../docs/commands.md");

#[test]
fn every_opcode_stands_in_the_documentation_with_its_name() {
    for format in &TABLE {
        let start = format!("| {:#04x} | `{}` |", format.opcode, format.name);
        let line = PAGE.lines().find(|l| l.starts_with(&start)).unwrap_or_else(|| panic!("no line '{start}'"));
        for field in format.fields.iter().filter(|f| f.width < 32 && f.width > 1) {
            let bits = format!("[{}:{}]", field.low + field.width - 1, field.low);
            assert!(line.contains(&bits), "{}: {} {bits}", format.name, field.name);
        }
    }
    let documented = PAGE.lines().filter(|l| l.starts_with("| 0x") && l.contains("| `")).count();
    assert_eq!(documented, TABLE.len());
}

#[test]
fn every_status_code_stands_in_the_documentation() {
    for code in Code::ALL {
        assert!(PAGE.contains(&format!("| {} | {} |", code as u8, code.name())), "{}", code.name());
    }
}

#[test]
fn the_registers_stand_at_their_addresses() {
    for (address, name) in [
        (register::ID, "ID"),
        (register::CHANNEL_BEATS, "CHANNEL_BEATS"),
        (register::CONTROL, "CONTROL"),
        (register::STATUS, "STATUS"),
        (register::TIMEOUT, "TIMEOUT"),
        (register::COMMAND_BASE, "COMMAND_BASE"),
        (register::COUNTER_SELECT, "COUNTER_SELECT"),
    ] {
        assert!(PAGE.contains(&format!("| 0x{address:03X} | {name} |")), "{name}");
    }
}
