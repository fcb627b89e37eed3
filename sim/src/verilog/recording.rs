//! What the ports of a block did, cycle by cycle: the stimulus of every testbench, and what it must answer.

use super::{Export, Port};
use crate::engine::{Engine, SignalId};
use crate::{Design, SimError};

/// Values of every port of a block except its clocks, before each rising edge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// Ports recorded, in declaration order.
    pub ports: Vec<Port>,
    /// First word of each port in a cycle's row.
    offsets: Vec<usize>,
    /// 32-bit words of a cycle.
    row: usize,
    words: Vec<u32>,
}

impl Recording {
    /// An empty recording of the top's ports.
    pub fn new(export: &Export) -> Self {
        let ports: Vec<Port> = export.ports.iter().filter(|p| !p.clock).cloned().collect();
        let mut row = 0;
        let offsets = ports
            .iter()
            .map(|p| {
                row += p.width.div_ceil(32);
                row - p.width.div_ceil(32)
            })
            .collect();
        Self { ports, offsets, row, words: Vec::new() }
    }

    /// Cycles recorded.
    pub fn cycles(&self) -> usize {
        self.words.len().checked_div(self.row).unwrap_or(0)
    }

    /// 32-bit words of a cycle.
    pub fn row_words(&self) -> usize {
        self.row
    }

    /// All words, cycle after cycle; in a cycle port after port, lowest word first.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// Words of a port in a cycle, 32 bits each, lowest first.
    pub fn value(&self, cycle: usize, port: usize) -> &[u32] {
        let at = cycle * self.row + self.offsets[port];
        &self.words[at..at + self.ports[port].width.div_ceil(32)]
    }

    /// Drops every cycle from `cycles` on.
    pub fn truncate(&mut self, cycles: usize) {
        self.words.truncate(cycles * self.row);
    }

    /// Handles of the recorded ports in an engine that simulates a design in which the block has the path `scope` (empty: the block is the top).
    ///
    /// # Errors
    /// If the design has no such block.
    pub fn probe(&self, engine: &mut dyn Engine, scope: &str) -> Result<Vec<SignalId>, SimError> {
        let path = |p: &Port| if scope.is_empty() { p.source.clone() } else { format!("{scope}.{}", p.source) };
        self.ports.iter().map(|p| engine.signal(&path(p))).collect()
    }

    /// Adds a cycle: the values of all ports as they are now, before the edge.
    pub fn sample(&mut self, engine: &mut dyn Engine, probe: &[SignalId]) {
        for (port, &id) in self.ports.iter().zip(probe) {
            let mut wide = vec![0; port.width.div_ceil(64)];
            engine.peek_wide(id, &mut wide);
            let halves = wide.iter().flat_map(|w| [*w as u32, (*w >> 32) as u32]);
            self.words.extend(halves.take(port.width.div_ceil(32)));
        }
    }

    /// Sets the inputs of a cycle in an engine whose top is the block.
    pub fn drive(&self, cycle: usize, engine: &mut dyn Engine, probe: &[SignalId]) {
        for (i, (port, &id)) in self.ports.iter().zip(probe).enumerate().filter(|(_, (p, _))| p.input) {
            let value = self.value(cycle, i);
            if port.width <= 64 {
                let high = value.get(1).copied().unwrap_or(0);
                engine.poke(id, u64::from(value[0]) | u64::from(high) << 32);
            } else {
                let words: Vec<u64> = value.chunks(2).map(|c| u64::from(c[0]) | u64::from(c.get(1).copied().unwrap_or(0)) << 32).collect();
                engine.poke_wide(id, &words);
            }
        }
    }

    /// Records `cycles` cycles of the design's compiled engine; `stimulus` sets the inputs of each.
    ///
    /// # Errors
    /// If the design cannot be compiled.
    pub fn of(design: &Design, export: &Export, cycles: u64, mut stimulus: impl FnMut(u64, &mut dyn Engine)) -> Result<Self, SimError> {
        let mut engine = design.compile()?;
        let mut recording = Self::new(export);
        let probe = recording.probe(&mut engine, "")?;
        for cycle in 0..cycles {
            stimulus(cycle, &mut engine);
            recording.sample(&mut engine, &probe);
            engine.step();
        }
        Ok(recording)
    }

    /// A cycle's inputs or outputs as one hexadecimal number, the first port lowest.
    pub(super) fn hex(&self, cycle: usize, input: bool) -> String {
        let mut bits: Vec<bool> = Vec::new();
        for (i, port) in self.ports.iter().enumerate().filter(|(_, p)| p.input == input) {
            let value = self.value(cycle, i);
            bits.extend((0..port.width).map(|b| value[b / 32] >> (b % 32) & 1 == 1));
        }
        let digit = |c: &[bool]| c.iter().rev().fold(0, |a, &b| a << 1 | u32::from(b));
        bits.chunks(4).rev().filter_map(|c| char::from_digit(digit(c), 16)).collect()
    }

    /// The recording as bytes, little-endian words, for the C++ testbenches.
    pub fn bytes(&self) -> Vec<u8> {
        self.words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }
}
