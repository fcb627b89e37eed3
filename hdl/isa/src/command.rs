//! The command set: one table, from which the encoder and decoder here, the disassembler of the firmware, the RTL's decoder and
//! `docs/commands.md` are made or checked.

use core::fmt;

/// Command-set version.
pub const VERSION: u32 = 1;
/// 32-bit words of a command.
pub const WORDS: usize = 4;

/// A field of a command: `width` bits from bit `low` of word `word`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name as in documentation and disassembly.
    pub name: &'static str,
    /// Word 0 to 3.
    pub word: u8,
    /// Lowest bit.
    pub low: u8,
    /// Bits.
    pub width: u8,
}

impl Field {
    const fn new(name: &'static str, word: u8, low: u8, width: u8) -> Field {
        Field { name, word, low, width }
    }

    /// Largest value.
    pub const fn max(&self) -> u32 {
        if self.width == 32 { u32::MAX } else { (1 << self.width) - 1 }
    }

    /// Mask of the field in its word.
    pub const fn mask(&self) -> u32 {
        self.max() << self.low
    }

    /// Lowest bit within the 128-bit command.
    pub const fn bit(&self) -> usize {
        self.word as usize * 32 + self.low as usize
    }

    /// The field's value in a command.
    pub const fn get(&self, words: &[u32; WORDS]) -> u32 {
        (words[self.word as usize] >> self.low) & self.max()
    }

    /// Sets the field; the value is cut to the field's width.
    pub const fn set(&self, words: &mut [u32; WORDS], value: u32) {
        let word = &mut words[self.word as usize];
        *word = (*word & !self.mask()) | ((value & self.max()) << self.low);
    }
}

/// Opcode, bits 7:0 of w0.
pub const OPCODE: Field = Field::new("opcode", 0, 0, 8);
/// Version, bits 11:8 of w0.
pub const VERSION_FIELD: Field = Field::new("version", 0, 8, 4);
/// Wait for the PEs of the mask before the next command.
pub const WAIT: Field = Field::new("wait", 0, 12, 1);
/// Raise the position by 16 times the PE's global index.
pub const INTERLEAVE: Field = Field::new("interleave", 0, 13, 1);
/// PEs of the CUBE that execute the command.
pub const MASK: Field = Field::new("mask", 0, 16, 8);
/// Bits of w0 that must be 0.
pub const RESERVED_W0: u32 = 0xFF00_C000;

/// Rows of Q_cmb.
pub const ROWS: Field = Field::new("rows", 1, 0, 16);
/// Head dimension.
pub const HEAD_DIM: Field = Field::new("head_dim", 1, 16, 16);
/// scale x log2 e, fp32.
pub const SCALE: Field = Field::new("scale", 2, 0, 32);
/// Word address of Q_cmb.
pub const Q_ADDRESS: Field = Field::new("q_address", 3, 0, 20);
/// Q is bf16 (otherwise fp16).
pub const Q_BF16: Field = Field::new("q_bf16", 3, 20, 1);
/// K is bf16.
pub const K_BF16: Field = Field::new("k_bf16", 3, 21, 1);
/// V is bf16.
pub const V_BF16: Field = Field::new("v_bf16", 3, 22, 1);
/// PEs that own KV in this launch: global indexes 0 to n - 1.
pub const ACTIVE: Field = Field::new("active", 3, 24, 6);
/// Word address of the row table.
pub const TABLE_ADDRESS: Field = Field::new("table", 1, 0, 20);
/// Beat address of a page.
pub const PAGE: Field = Field::new("page", 1, 0, 32);
/// First position of a page.
pub const POSITION: Field = Field::new("position", 2, 0, 32);
/// Consecutive pages.
pub const PAGES: Field = Field::new("pages", 3, 0, 16);
/// Tiles of 16 positions from one page to the next.
pub const STRIDE: Field = Field::new("stride", 3, 16, 16);
/// Row tile.
pub const ROW_TILE: Field = Field::new("row_tile", 1, 0, 16);
/// First merge round.
pub const FIRST_ROUND: Field = Field::new("first_round", 1, 0, 8);
/// Merge rounds.
pub const ROUNDS: Field = Field::new("rounds", 1, 8, 8);
/// Word address of the output area.
pub const OUTPUT_ADDRESS: Field = Field::new("output", 1, 0, 20);

/// A row of the command table.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// Opcode.
    pub opcode: u8,
    /// Mnemonic.
    pub name: &'static str,
    /// Argument fields in w1 to w3; every bit outside them must be 0.
    pub fields: &'static [Field],
    /// Whether the interleave flag may be set.
    pub interleave: bool,
    /// One line on what it does.
    pub summary: &'static str,
}

impl Format {
    /// Bits of word `word` (1 to 3) that must be 0.
    pub fn reserved(&self, word: u8) -> u32 {
        !self.fields.iter().filter(|f| f.word == word).fold(0, |bits, f| bits | f.mask())
    }
}

/// Opcode of `configure`.
pub const CONFIGURE: u8 = 0x01;
/// Opcode of `load_rows`.
pub const LOAD_ROWS: u8 = 0x02;
/// Opcode of `attend`.
pub const ATTEND: u8 = 0x10;
/// Opcode of `load_kv`.
pub const LOAD_KV: u8 = 0x20;
/// Opcode of `fetch_q`.
pub const FETCH_Q: u8 = 0x21;
/// Opcode of `qk`.
pub const QK: u8 = 0x22;
/// Opcode of `softmax`.
pub const SOFTMAX: u8 = 0x23;
/// Opcode of `pv`.
pub const PV: u8 = 0x24;
/// Opcode of `merge`.
pub const MERGE: u8 = 0x30;
/// Opcode of `store`.
pub const STORE: u8 = 0x40;

/// The command table.
pub const TABLE: [Format; 10] = [
    Format {
        opcode: CONFIGURE,
        name: "configure",
        fields: &[ROWS, HEAD_DIM, SCALE, Q_ADDRESS, Q_BF16, K_BF16, V_BF16, ACTIVE],
        interleave: false,
        summary: "start a kernel: every row state becomes empty",
    },
    Format { opcode: LOAD_ROWS, name: "load_rows", fields: &[TABLE_ADDRESS], interleave: false, summary: "load the KV ranges of all rows" },
    Format {
        opcode: ATTEND,
        name: "attend",
        fields: &[PAGE, POSITION, PAGES, STRIDE],
        interleave: true,
        summary: "composite: the whole pipeline over consecutive pages and all row tiles",
    },
    Format { opcode: LOAD_KV, name: "load_kv", fields: &[PAGE, POSITION], interleave: true, summary: "load one page into tile buffer 0" },
    Format { opcode: FETCH_Q, name: "fetch_q", fields: &[ROW_TILE], interleave: false, summary: "fetch one Q tile" },
    Format { opcode: QK, name: "qk", fields: &[ROW_TILE], interleave: false, summary: "scores of one row tile" },
    Format {
        opcode: SOFTMAX,
        name: "softmax",
        fields: &[ROW_TILE],
        interleave: false,
        summary: "scale, mask and row state of one row tile",
    },
    Format { opcode: PV, name: "pv", fields: &[ROW_TILE], interleave: false, summary: "accumulate the output of one row tile" },
    Format { opcode: MERGE, name: "merge", fields: &[FIRST_ROUND, ROUNDS], interleave: false, summary: "merge rounds over PE_IPCQ" },
    Format {
        opcode: STORE,
        name: "store",
        fields: &[OUTPUT_ADDRESS],
        interleave: false,
        summary: "finish rows and write them to shared SRAM",
    },
];

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Starts a kernel.
    Configure {
        /// Rows of Q_cmb.
        rows: u16,
        /// Head dimension.
        head_dim: u16,
        /// Bits of the fp32 scale x log2 e.
        scale: u32,
        /// Word address of Q_cmb.
        q_address: u32,
        /// Q is bf16.
        q_bf16: bool,
        /// K is bf16.
        k_bf16: bool,
        /// V is bf16.
        v_bf16: bool,
        /// PEs that own KV.
        active: u8,
    },
    /// Loads the row table.
    LoadRows {
        /// Word address.
        table: u32,
    },
    /// The composite command.
    Attend {
        /// Beat address of the first page.
        page: u32,
        /// Position of its first element.
        position: u32,
        /// Consecutive pages.
        pages: u16,
        /// Tiles of 16 positions from one page to the next.
        stride: u16,
    },
    /// Loads one page.
    LoadKv {
        /// Beat address.
        page: u32,
        /// First position.
        position: u32,
    },
    /// Fetches a Q tile.
    FetchQ {
        /// Row tile.
        row_tile: u16,
    },
    /// Scores.
    Qk {
        /// Row tile.
        row_tile: u16,
    },
    /// Softmax state.
    Softmax {
        /// Row tile.
        row_tile: u16,
    },
    /// Output accumulation.
    Pv {
        /// Row tile.
        row_tile: u16,
    },
    /// Merge rounds.
    Merge {
        /// First round.
        first_round: u8,
        /// Rounds.
        rounds: u8,
    },
    /// Finish and write.
    Store {
        /// Word address.
        output: u32,
    },
}

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// Wait for the PEs of the mask before the next command.
    pub wait: bool,
    /// Raise the position by 16 times the PE's global index.
    pub interleave: bool,
    /// PEs of the CUBE.
    pub mask: u8,
    /// What to do.
    pub operation: Operation,
}

/// Why a word is not a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The version field is not [`VERSION`].
    Version(u32),
    /// Unknown opcode.
    Opcode(u8),
    /// A reserved bit of w0 is set.
    Reserved(u32),
    /// A bit outside the argument fields is set, or the interleave flag where it has no meaning.
    Field(&'static str),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::Version(v) => write!(f, "command-set version {v}, this is version {VERSION}"),
            DecodeError::Opcode(o) => write!(f, "unknown opcode {o:#04x}"),
            DecodeError::Reserved(w) => write!(f, "reserved bits set in w0 = {w:#010x}"),
            DecodeError::Field(name) => write!(f, "{name}: bits outside the argument fields are set"),
        }
    }
}

impl core::error::Error for DecodeError {}

impl Operation {
    /// Row of the command table.
    pub fn format(&self) -> &'static Format {
        let index = match self {
            Operation::Configure { .. } => 0,
            Operation::LoadRows { .. } => 1,
            Operation::Attend { .. } => 2,
            Operation::LoadKv { .. } => 3,
            Operation::FetchQ { .. } => 4,
            Operation::Qk { .. } => 5,
            Operation::Softmax { .. } => 6,
            Operation::Pv { .. } => 7,
            Operation::Merge { .. } => 8,
            Operation::Store { .. } => 9,
        };
        &TABLE[index]
    }
}

impl Command {
    /// The four words of the command, w0 first. Values wider than their field are cut.
    pub fn encode(&self) -> [u32; WORDS] {
        let mut words = [0; WORDS];
        let mut set = |field: Field, value: u32| field.set(&mut words, value);
        set(OPCODE, self.operation.format().opcode as u32);
        set(VERSION_FIELD, VERSION);
        set(WAIT, self.wait as u32);
        set(INTERLEAVE, self.interleave as u32);
        set(MASK, self.mask as u32);
        match self.operation {
            Operation::Configure { rows, head_dim, scale, q_address, q_bf16, k_bf16, v_bf16, active } => {
                set(ROWS, rows.into());
                set(HEAD_DIM, head_dim.into());
                set(SCALE, scale);
                set(Q_ADDRESS, q_address);
                set(Q_BF16, q_bf16.into());
                set(K_BF16, k_bf16.into());
                set(V_BF16, v_bf16.into());
                set(ACTIVE, active.into());
            }
            Operation::LoadRows { table } => set(TABLE_ADDRESS, table),
            Operation::Attend { page, position, pages, stride } => {
                set(PAGE, page);
                set(POSITION, position);
                set(PAGES, pages.into());
                set(STRIDE, stride.into());
            }
            Operation::LoadKv { page, position } => {
                set(PAGE, page);
                set(POSITION, position);
            }
            Operation::FetchQ { row_tile } | Operation::Qk { row_tile } | Operation::Softmax { row_tile } | Operation::Pv { row_tile } => {
                set(ROW_TILE, row_tile.into());
            }
            Operation::Merge { first_round, rounds } => {
                set(FIRST_ROUND, first_round.into());
                set(ROUNDS, rounds.into());
            }
            Operation::Store { output } => set(OUTPUT_ADDRESS, output),
        }
        words
    }

    /// Reads four words. Checks, in the hardware's order: version, opcode, reserved bits of w0, unused argument bits.
    pub fn decode(words: &[u32; WORDS]) -> Result<Command, DecodeError> {
        let version = VERSION_FIELD.get(words);
        if version != VERSION {
            return Err(DecodeError::Version(version));
        }
        let opcode = OPCODE.get(words) as u8;
        let format = TABLE.iter().find(|f| f.opcode == opcode).ok_or(DecodeError::Opcode(opcode))?;
        if words[0] & RESERVED_W0 != 0 {
            return Err(DecodeError::Reserved(words[0]));
        }
        let interleave = INTERLEAVE.get(words) == 1;
        if (1..4).any(|w| words[w as usize] & format.reserved(w) != 0) || (interleave && !format.interleave) {
            return Err(DecodeError::Field(format.name));
        }
        let get = |field: Field| field.get(words);
        let flag = |field: Field| field.get(words) == 1;
        let row_tile = get(ROW_TILE) as u16;
        let operation = match opcode {
            CONFIGURE => Operation::Configure {
                rows: get(ROWS) as u16,
                head_dim: get(HEAD_DIM) as u16,
                scale: get(SCALE),
                q_address: get(Q_ADDRESS),
                q_bf16: flag(Q_BF16),
                k_bf16: flag(K_BF16),
                v_bf16: flag(V_BF16),
                active: get(ACTIVE) as u8,
            },
            LOAD_ROWS => Operation::LoadRows { table: get(TABLE_ADDRESS) },
            ATTEND => Operation::Attend { page: get(PAGE), position: get(POSITION), pages: get(PAGES) as u16, stride: get(STRIDE) as u16 },
            LOAD_KV => Operation::LoadKv { page: get(PAGE), position: get(POSITION) },
            FETCH_Q => Operation::FetchQ { row_tile },
            QK => Operation::Qk { row_tile },
            SOFTMAX => Operation::Softmax { row_tile },
            PV => Operation::Pv { row_tile },
            MERGE => Operation::Merge { first_round: get(FIRST_ROUND) as u8, rounds: get(ROUNDS) as u8 },
            _ => Operation::Store { output: get(OUTPUT_ADDRESS) },
        };
        Ok(Command { wait: flag(WAIT), interleave, mask: get(MASK) as u8, operation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_command_do_not_overlap() {
        for format in &TABLE {
            let mut used = [0u32; 4];
            for f in format.fields {
                assert!(f.word >= 1 && f.low + f.width <= 32, "{} {}", format.name, f.name);
                assert_eq!(used[f.word as usize] & f.mask(), 0, "{} {}", format.name, f.name);
                used[f.word as usize] |= f.mask();
            }
        }
    }

    #[test]
    fn opcodes_are_distinct_and_not_zero() {
        for (i, a) in TABLE.iter().enumerate() {
            assert_ne!(a.opcode, 0);
            assert!(TABLE[..i].iter().all(|b| b.opcode != a.opcode && b.name != a.name));
        }
    }

    #[test]
    fn every_single_bit_flip_decodes_to_itself_or_is_refused() {
        for format in &TABLE {
            for bit in 0..128 {
                let mut words = [0u32; 4];
                OPCODE.set(&mut words, format.opcode.into());
                VERSION_FIELD.set(&mut words, VERSION);
                words[bit / 32] ^= 1 << (bit % 32);
                if let Ok(command) = Command::decode(&words) {
                    assert_eq!(command.encode(), words, "{} bit {bit}", format.name);
                }
            }
        }
    }

    #[test]
    fn the_zero_word_is_no_command() {
        assert_eq!(Command::decode(&[0; 4]), Err(DecodeError::Version(0)));
    }
}
