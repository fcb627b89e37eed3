//! Recognises the widgets that rust-hdl writes as Verilog text: DFF, EdgeDFF, RAM, ROM, SyncROM.
//!
//! The text decides, not the type name, which is not visible: a register is `always @(posedge c) q <= d`, a RAM writes `mem[write_address]`,
//! a synchronous ROM reads `mem[address]`, an asynchronous ROM is a `case (address)`.

use super::literal;
use crate::SimError;
use crate::netlist::{Body, Memory, Register, Signal, SignalRef, WritePort};

/// The body that a piece of Verilog text stands for.
pub(super) fn recognise(text: &str, signals: &[Signal], path: &str) -> Result<Body, SimError> {
    let squeezed: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let find = |name: &str| signals.iter().position(|s| s.name == name).map(SignalRef);
    let unknown = || {
        SimError::unsupported(
            path,
            "custom Verilog that is none of rust-hdl's DFF, EdgeDFF, RAM, ROM, SyncROM",
            "write the block as a kernel over those",
        )
    };
    let need = |name: &str| find(name).ok_or_else(unknown);
    let width = |s: SignalRef| signals[s.0].width;
    for clock in ["clock", "clk"] {
        let plain = format!("always @(posedge {clock}) q <= d;");
        let block = format!("always @(posedge {clock}) begin q <= d; end");
        if squeezed.contains(&plain) || squeezed.contains(&block) {
            let (d, q) = (need("d")?, need("q")?);
            let init = between(&squeezed, "q = ", ";").and_then(|v| literal::parse(v, width(q))).ok_or_else(unknown)?;
            return Ok(Body::Register(Register { d, q, clock: need(clock)?, init }));
        }
    }
    if squeezed.contains("mem[write_address] <= write_data;") && squeezed.contains("read_data <= mem[read_address];") {
        let read_data = need("read_data")?;
        let write = WritePort {
            address: need("write_address")?,
            data: need("write_data")?,
            enable: need("write_enable")?,
            clock: need("write_clock")?,
        };
        return Ok(Body::Memory(Memory {
            read_address: need("read_address")?,
            read_data,
            read_clock: Some(need("read_clock")?),
            write: Some(write),
            init: contents(text, "mem[", "] = ", width(need("read_address")?), width(read_data)).ok_or_else(unknown)?,
            default: literal::of_u128(0, width(read_data)),
        }));
    }
    if squeezed.contains("data <= mem[address];") {
        let data = need("data")?;
        return Ok(Body::Memory(Memory {
            read_address: need("address")?,
            read_data: data,
            read_clock: Some(need("clock")?),
            write: None,
            init: contents(text, "mem[", "] = ", width(need("address")?), width(data)).ok_or_else(unknown)?,
            default: literal::of_u128(0, width(data)),
        }));
    }
    if squeezed.contains("case (address)") && squeezed.contains("default: data = ") {
        let data = need("data")?;
        let default = between(&squeezed, "default: data = ", ";").and_then(|v| literal::parse(v, width(data))).ok_or_else(unknown)?;
        let lines: String = text.lines().filter(|l| !l.contains("default:")).collect::<Vec<_>>().join("\n");
        return Ok(Body::Memory(Memory {
            read_address: need("address")?,
            read_data: data,
            read_clock: None,
            write: None,
            init: contents(&lines, "", ": data = ", width(need("address")?), width(data)).ok_or_else(unknown)?,
            default,
        }));
    }
    Err(unknown())
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let start = text.find(before)? + before.len();
    let length = text[start..].find(after)?;
    Some(&text[start..start + length])
}

/// `prefix ADDRESS middle WORD;` a line.
fn contents(text: &str, prefix: &str, middle: &str, address_width: usize, width: usize) -> Option<Vec<(usize, Vec<u32>)>> {
    let mut out = Vec::new();
    for line in text.lines() {
        let Some((address, word)) = line.trim().trim_end_matches(';').strip_prefix(prefix).and_then(|l| l.split_once(middle)) else {
            continue;
        };
        let address = *literal::parse(address, address_width)?.first()? as usize;
        out.push((address, literal::parse(word, width)?));
    }
    Some(out)
}
