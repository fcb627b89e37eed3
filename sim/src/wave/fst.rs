//! FST, the compressed format of GTKWave.
//!
//! The layout is that of GTKWave's `fstapi.c`, as described in T. Hutt, "An unofficial FST specification": a header, the widths of the values (*geometry*), the tree of
//! scopes and variables (*hierarchy*), and blocks of changes. A block begins with the value of everything (*frame*); then, for each value that changes in it, a
//! *chain* of changes, each with its distance in time steps; then the table of the steps. Variables with one driver share a value; an enum refers to a table of its
//! names. A flush ends a block and puts the totals into the header, so that the file is whole up to there.
//!
//! Why no library writes this: see `docs/decisions/0040-own-fst-writer.md`.

use super::signals::{Item, Signals};
use super::sink::Sink;
use crate::netlist::SignalKind;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

/// Kinds of blocks.
const BLOCK_HEADER: u8 = 0;
const BLOCK_GEOMETRY: u8 = 3;
const BLOCK_HIERARCHY_LZ4: u8 = 6;
const BLOCK_CHANGES: u8 = 8;
/// A block that is still being written: of this kind and of length 0.
const BLOCK_UNFINISHED: [u8; 9] = [255, 0, 0, 0, 0, 0, 0, 0, 0];

/// Entries of the hierarchy.
const SCOPE: u8 = 254;
const UPSCOPE: u8 = 255;
const ATTRIBUTE: u8 = 252;
const SCOPE_MODULE: u8 = 0;
const VARIABLE_PARAMETER: u8 = 2;
const VARIABLE_WIRE: u8 = 16;
const ATTRIBUTE_MISC: u8 = 0;
const MISC_ENUM_TABLE: u8 = 7;

/// Length of the header and of its texts, in bytes.
const HEADER_BYTES: u64 = 329;
const VERSION_BYTES: usize = 128;
const DATE_BYTES: usize = 119;
/// Where the header has the last time.
const END_TIME_AT: u64 = 17;
/// Where the header has the number of change blocks.
const BLOCKS_AT: u64 = 65;

/// Chains of fewer bytes are not worth compressing.
const COMPRESSED_BYTES: usize = 64;

/// The changes of one value since the last flush.
#[derive(Debug, Clone, Default)]
struct Chain {
    bytes: Vec<u8>,
    /// Step of its last change.
    step: u64,
}

pub(super) struct FstSink {
    file: File,
    /// Bytes up to the last flush.
    whole: u64,
    blocks: u64,
    /// Width of each value, and where the frame has it.
    places: Vec<(usize, usize)>,
    /// Values at the start of the block, a character a bit.
    frame: Vec<u8>,
    /// Last value of each, as in its chain: most significant bit first, from the top of the first byte on.
    last: Vec<u8>,
    last_at: Vec<usize>,
    chains: Vec<Chain>,
    /// Values with a change in the block.
    changed: Vec<u32>,
    /// Time steps of the block: the first, the last, their distances, their number.
    first_time: u64,
    time: u64,
    times: Vec<u8>,
    steps: u64,
    /// Time of the next change, and whether it has no entry in the table yet.
    pending: u64,
    fresh: bool,
}

/// A number in groups of seven bits, lowest first.
fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A signed number in groups of seven bits, lowest first; bit 6 of the last group is its sign.
fn signed_varint(out: &mut Vec<u8>, mut value: i64) {
    loop {
        let group = value as u8 & 0x7f;
        value >>= 7;
        if (value == 0 && group & 0x40 == 0) || (value == -1 && group & 0x40 != 0) {
            return out.push(group);
        }
        out.push(group | 0x80);
    }
}

/// A text that ends with a zero, which it cannot hold.
fn text(out: &mut Vec<u8>, text: &str) {
    out.extend(text.bytes().filter(|&b| b != 0));
    out.push(0);
}

/// A block: kind, length, content.
fn block(kind: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![kind];
    out.extend((content.len() as u64 + 8).to_be_bytes());
    out.extend(content);
    out
}

fn header(signals: &Signals) -> Vec<u8> {
    let scopes = signals.items.iter().filter(|i| matches!(i, Item::Enter(..))).count();
    let mut out = Vec::new();
    for number in [0, 0] {
        // First and last time.
        out.extend(u64::to_be_bytes(number));
    }
    // Tells readers the byte order of real numbers.
    out.extend(std::f64::consts::E.to_le_bytes());
    for number in [0, scopes as u64, signals.variables.len() as u64, signals.values.len() as u64, 0] {
        out.extend(number.to_be_bytes());
    }
    // Nanoseconds.
    out.push((-9i8) as u8);
    let mut padded = |text: &str, len: usize| {
        out.extend(text.bytes());
        out.resize(out.len() + len - text.len(), 0);
    };
    padded("braid-sim", VERSION_BYTES);
    // No date: equal simulations give equal files.
    padded("", DATE_BYTES);
    // Verilog; times start at 0.
    out.push(0);
    out.extend(0u64.to_be_bytes());
    debug_assert_eq!(out.len() as u64 + 8, HEADER_BYTES);
    block(BLOCK_HEADER, &out)
}

fn geometry(signals: &Signals) -> Vec<u8> {
    let mut widths = Vec::new();
    for value in &signals.values {
        varint(&mut widths, value.width() as u64);
    }
    let mut out = (widths.len() as u64).to_be_bytes().to_vec();
    out.extend((signals.values.len() as u64).to_be_bytes());
    out.extend(widths);
    block(BLOCK_GEOMETRY, &out)
}

/// The names of an enum, as the attribute of its table has them.
fn table(name: &str, variants: &[String], width: usize) -> String {
    let words = [name.to_string(), variants.len().to_string()].into_iter().chain(variants.iter().cloned());
    words.chain((0..variants.len()).map(|i| format!("{i:0width$b}"))).collect::<Vec<_>>().join(" ")
}

fn hierarchy(signals: &Signals) -> Vec<u8> {
    let mut tree = Vec::new();
    let mut tables = vec![false; signals.enums.len()];
    let mut known = vec![false; signals.values.len()];
    // Values are numbered in the order in which the tree first shows them.
    for item in &signals.items {
        match item {
            Item::Enter(name, module) => {
                tree.extend([SCOPE, SCOPE_MODULE]);
                text(&mut tree, name);
                text(&mut tree, module);
            }
            Item::Leave => tree.push(UPSCOPE),
            Item::Variable(v) => {
                let variable = &signals.variables[*v];
                let width = signals.values[variable.value].width();
                if let Some(names) = variable.names {
                    let mut attribute = |name: &str| {
                        tree.extend([ATTRIBUTE, ATTRIBUTE_MISC, MISC_ENUM_TABLE]);
                        text(&mut tree, name);
                        varint(&mut tree, names as u64 + 1);
                    };
                    if !std::mem::replace(&mut tables[names], true) {
                        attribute(&table(&signals.enums[names].0, &signals.enums[names].1, width));
                    }
                    attribute("");
                }
                let (kind, direction) = match variable.kind {
                    SignalKind::Input => (VARIABLE_WIRE, 1),
                    SignalKind::Output => (VARIABLE_WIRE, 2),
                    SignalKind::Local => (VARIABLE_WIRE, 0),
                    SignalKind::Constant(_) => (VARIABLE_PARAMETER, 0),
                };
                tree.extend([kind, direction]);
                text(&mut tree, &variable.name);
                varint(&mut tree, width as u64);
                let alias = std::mem::replace(&mut known[variable.value], true);
                varint(&mut tree, if alias { variable.value as u64 + 1 } else { 0 });
            }
        }
    }
    let mut out = (tree.len() as u64).to_be_bytes().to_vec();
    out.extend(lz4_flex::block::compress(&tree));
    block(BLOCK_HIERARCHY_LZ4, &out)
}

impl FstSink {
    pub(super) fn create(mut file: File, signals: &Signals) -> io::Result<Self> {
        let mut start = header(signals);
        start.extend(geometry(signals));
        start.extend(hierarchy(signals));
        file.write_all(&start)?;
        let (mut places, mut last_at) = (Vec::new(), Vec::new());
        let (mut bits, mut bytes) = (0, 0);
        for value in &signals.values {
            let width = value.width();
            places.push((width, bits));
            last_at.push(bytes);
            bits += width;
            bytes += width.div_ceil(8);
        }
        Ok(Self {
            file,
            whole: start.len() as u64,
            blocks: 0,
            frame: vec![b'x'; bits],
            last: vec![0; bytes],
            last_at,
            chains: vec![Chain::default(); places.len()],
            places,
            changed: Vec::new(),
            first_time: 0,
            time: 0,
            times: Vec::new(),
            steps: 0,
            pending: 0,
            fresh: true,
        })
    }

    /// The number of the present step in the block's table.
    fn step(&mut self) -> u64 {
        if std::mem::replace(&mut self.fresh, false) {
            if self.steps == 0 {
                self.first_time = self.pending;
                varint(&mut self.times, self.pending);
            } else {
                varint(&mut self.times, self.pending - self.time);
            }
            self.time = self.pending;
            self.steps += 1;
        }
        self.steps - 1
    }

    /// The block of changes since the last flush.
    fn changes(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        let memory: u64 = self.changed.iter().map(|&v| self.chains[v as usize].bytes.len() as u64).sum();
        for number in [self.first_time, self.time, memory] {
            out.extend(number.to_be_bytes());
        }
        for length in [self.frame.len(), self.frame.len(), self.places.len()] {
            varint(&mut out, length as u64);
        }
        out.extend(&self.frame);
        varint(&mut out, self.places.len() as u64);
        let mut previous = out.len();
        out.push(b'4');
        // Positions of the chains, as distances; runs of values without one.
        let (mut positions, mut next) = (Vec::new(), 0);
        self.changed.sort_unstable();
        let mut packed = Vec::new();
        for &v in &self.changed {
            if v > next {
                varint(&mut positions, u64::from(v - next) << 1);
            }
            next = v + 1;
            signed_varint(&mut positions, ((out.len() - previous) as i64) << 1 | 1);
            previous = out.len();
            let chain = &self.chains[v as usize].bytes;
            if chain.len() >= COMPRESSED_BYTES {
                packed.resize(lz4_flex::block::get_maximum_output_size(chain.len()), 0);
            }
            match if chain.len() < COMPRESSED_BYTES { None } else { lz4_flex::block::compress_into(chain, &mut packed).ok() } {
                Some(len) if len < chain.len() => {
                    varint(&mut out, chain.len() as u64);
                    out.extend(&packed[..len]);
                }
                _ => {
                    out.push(0);
                    out.extend(chain);
                }
            }
        }
        if (next as usize) < self.places.len() {
            varint(&mut positions, (self.places.len() as u64 - u64::from(next)) << 1);
        }
        out.extend(&positions);
        out.extend((positions.len() as u64).to_be_bytes());
        out.extend(&self.times);
        for number in [self.times.len() as u64, self.times.len() as u64, self.steps] {
            out.extend(number.to_be_bytes());
        }
        block(BLOCK_CHANGES, &out)
    }

    /// Brings the frame up to date and empties the chains.
    fn start_block(&mut self) {
        for v in self.changed.drain(..) {
            let v = v as usize;
            let (width, at) = self.places[v];
            let bits = &self.last[self.last_at[v]..];
            for (i, character) in self.frame[at..at + width].iter_mut().enumerate() {
                *character = b'0' + (bits[i / 8] >> (7 - i % 8) & 1);
            }
            self.chains[v].bytes.clear();
            self.chains[v].step = 0;
        }
        self.times.clear();
        self.steps = 0;
        self.fresh = true;
    }
}

impl Sink for FstSink {
    fn time(&mut self, time: u64) -> io::Result<()> {
        self.fresh = self.steps == 0 || time > self.time;
        self.pending = time;
        Ok(())
    }

    fn change(&mut self, value: usize, limbs: &[u64]) -> io::Result<()> {
        let step = self.step();
        let width = self.places[value].0;
        let chain = &mut self.chains[value];
        if chain.bytes.is_empty() {
            self.changed.push(value as u32);
        }
        let distance = step - chain.step;
        chain.step = step;
        let last = &mut self.last[self.last_at[value]..][..width.div_ceil(8)];
        if width == 1 {
            last[0] = (limbs[0] as u8) << 7;
            varint(&mut chain.bytes, distance << 2 | (limbs[0] & 1) << 1);
            return Ok(());
        }
        varint(&mut chain.bytes, distance << 1);
        if width <= 64 {
            last.copy_from_slice(&(limbs[0] << (64 - width)).to_be_bytes()[..width.div_ceil(8)]);
        } else {
            last.fill(0);
            for i in 0..width {
                let bit = width - 1 - i;
                last[i / 8] |= ((limbs[bit / 64] >> (bit % 64) & 1) as u8) << (7 - i % 8);
            }
        }
        chain.bytes.extend_from_slice(last);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.changed.is_empty() {
            return Ok(());
        }
        let block = self.changes();
        let (start, content) = block.split_at(BLOCK_UNFINISHED.len());
        let mut put = |at: u64, bytes: &[u8]| self.file.seek(SeekFrom::Start(at)).and_then(|_| self.file.write_all(bytes));
        // Readers stop at an unfinished block, so that the file is readable whenever this is cut short.
        put(self.whole, &BLOCK_UNFINISHED)?;
        put(self.whole + start.len() as u64, content)?;
        put(self.whole, start)?;
        put(END_TIME_AT, &self.time.to_be_bytes())?;
        put(BLOCKS_AT, &(self.blocks + 1).to_be_bytes())?;
        self.blocks += 1;
        self.whole += block.len() as u64;
        self.start_block();
        Ok(())
    }

    fn repair(&mut self) {
        // Half a block is cut off again; if even that fails, readers stop at it.
        let _ = self.file.set_len(self.whole);
    }
}
