//! Command decoder: checks a command against the command table and the kernel's limits, and splits it into fields.
//!
//! ```text
//!  command, settings, limits --> 1 fields, rules | 2 size = x * y | 3 end of the area against memory --> action, code
//! ```
//!
//! A pipeline of 3 cycles over stable inputs: the head of the command queue stays until it is executed. `code` is 0 or the status code of the first check that
//! fails, in the order of `docs/commands.md`: version, opcode and reserved bits, `not_configured`, argument bits and ranges, addresses.
//!
//! Opcodes and reserved bits come from `braid_isa::command::TABLE`; field positions are literals (kernels cannot name constants), held to the table by the
//! tests.

use braid_isa::command::{RESERVED_W0, TABLE};
use rust_hdl::prelude::*;

/// A kernel's parameters, from `configure`.
#[derive(LogicStruct, Copy, Clone, Debug, Default, PartialEq)]
pub struct Settings {
    pub configured: Bit,
    pub rows: Bits<16>,
    pub row_tiles: Bits<16>,
    /// d, columns.
    pub head_dim: Bits<8>,
    /// scale x log2 e, fp32.
    pub scale: Bits<32>,
    /// SRAM word of Q_cmb.
    pub q_address: Bits<20>,
    pub q_bf16: Bit,
    pub k_bf16: Bit,
    pub v_bf16: Bit,
    /// Merge rounds of the active PEs: ceil(log2 n).
    pub rounds: Bits<4>,
}

/// A checked command.
#[derive(LogicStruct, Copy, Clone, Debug, Default, PartialEq)]
pub struct Action {
    pub configure: Bit,
    pub load_rows: Bit,
    pub attend: Bit,
    pub load_kv: Bit,
    pub fetch_q: Bit,
    pub qk: Bit,
    pub softmax: Bit,
    pub pv: Bit,
    pub merge: Bit,
    pub store: Bit,
    /// Row table or output, SRAM word.
    pub address: Bits<20>,
    /// First page, channel beat.
    pub page: Bits<32>,
    /// First position, the PE's share of an interleave included.
    pub position: Bits<32>,
    pub pages: Bits<16>,
    /// Tiles of 16 positions from page to page.
    pub stride: Bits<16>,
    pub row_tile: Bits<16>,
    pub first_round: Bits<8>,
    pub rounds: Bits<8>,
}

/// Results of the checks that need no multiplication.
#[derive(LogicStruct, Copy, Clone, Debug, Default, PartialEq)]
pub struct Rules {
    pub version: Bit,
    pub opcode: Bit,
    pub configured: Bit,
    pub field: Bit,
}

#[derive(LogicBlock)]
pub struct Decoder {
    pub clock: Signal<In, Clock>,
    pub command: Signal<In, Bits<128>>,
    pub settings: Signal<In, Settings>,
    pub pe_index: Signal<In, Bits<8>>,
    pub pe_count: Signal<In, Bits<8>>,
    /// Words of shared SRAM.
    pub sram_words: Signal<In, Bits<32>>,
    /// Beats behind the memory channel.
    pub channel_beats: Signal<In, Bits<32>>,
    pub action: Signal<Out, Action>,
    /// What `configure` would make of the settings.
    pub configuration: Signal<Out, Settings>,
    pub code: Signal<Out, Bits<8>>,
    // the table
    opcodes: [Constant<Bits<8>>; 10],
    reserved: [Constant<Bits<128>>; 10],
    interleaves: Constant<Bits<10>>,
    reserved_w0: Constant<Bits<32>>,
    // parameters
    row_shift: Constant<Bits<4>>,
    row_padding: Constant<Bits<16>>,
    max_rows: Constant<Bits<16>>,
    // 1
    w0: Signal<Local, Bits<32>>,
    opcode: Signal<Local, Bits<8>>,
    kind: Signal<Local, Bits<10>>,
    unused: Signal<Local, Bits<128>>,
    interleave_allowed: Signal<Local, Bit>,
    rows: Signal<Local, Bits<16>>,
    padded: Signal<Local, Bits<16>>,
    row_tiles: Signal<Local, Bits<16>>,
    head_dim: Signal<Local, Bits<16>>,
    active: Signal<Local, Bits<8>>,
    last_pe: Signal<Local, Bits<8>>,
    rounds: Signal<Local, Bits<4>>,
    last_round: Signal<Local, Bits<9>>,
    raised: Signal<Local, Bits<32>>,
    columns: Signal<Local, Bits<8>>,
    legal: Signal<Local, Bit>,
    rules: DFF<Rules>,
    split: DFF<Action>,
    configured: DFF<Settings>,
    x: DFF<Bits<16>>,
    y: DFF<Bits<8>>,
    base: DFF<Bits<40>>,
    limit: DFF<Bits<40>>,
    in_channel: DFF<Bit>,
    in_output: DFF<Bit>,
    unaddressed: DFF<Bit>,
    // 2
    partial: Signal<Local, Bits<40>>,
    product: Signal<Local, Bits<40>>,
    elements: Signal<Local, Bits<40>>,
    rounded: Signal<Local, Bits<40>>,
    area: Signal<Local, Bits<40>>,
    size: DFF<Bits<40>>,
    // 3
    end: Signal<Local, Bits<40>>,
    verdict: DFF<Bits<8>>,
}

impl Decoder {
    /// Cycles from stable inputs to `action` and `code`.
    pub const LATENCY: usize = 3;

    /// A decoder for `rows` rows per tile (a power of two) and `row_tiles` row tiles in the row store.
    pub fn new(rows: usize, row_tiles: usize) -> Self {
        assert!(rows.is_power_of_two(), "rows per tile are a power of two");
        let wide = |words: [u32; 4]| {
            words.iter().rev().fold(Bits::default(), |w: Bits<128>, &x| (w << bits::<8>(32)) | bit_cast::<128, 32>(bits(x.into())))
        };
        Self {
            clock: Default::default(),
            command: Default::default(),
            settings: Default::default(),
            pe_index: Default::default(),
            pe_count: Default::default(),
            sram_words: Default::default(),
            channel_beats: Default::default(),
            action: Default::default(),
            configuration: Default::default(),
            code: Default::default(),
            opcodes: TABLE.each_ref().map(|f| Constant::new(bits(f.opcode.into()))),
            reserved: TABLE.each_ref().map(|f| Constant::new(wide([0, f.reserved(1), f.reserved(2), f.reserved(3)]))),
            interleaves: Constant::new(bits(TABLE.iter().enumerate().fold(0, |set, (i, f)| set | u64::from(f.interleave) << i))),
            reserved_w0: Constant::new(bits(RESERVED_W0.into())),
            row_shift: Constant::new(bits(u64::from(rows.trailing_zeros()))),
            row_padding: Constant::new(bits(rows as u64 - 1)),
            max_rows: Constant::new(bits((rows * row_tiles) as u64)),
            w0: Default::default(),
            opcode: Default::default(),
            kind: Default::default(),
            unused: Default::default(),
            interleave_allowed: Default::default(),
            rows: Default::default(),
            padded: Default::default(),
            row_tiles: Default::default(),
            head_dim: Default::default(),
            active: Default::default(),
            last_pe: Default::default(),
            rounds: Default::default(),
            last_round: Default::default(),
            raised: Default::default(),
            columns: Default::default(),
            legal: Default::default(),
            rules: Default::default(),
            split: Default::default(),
            configured: Default::default(),
            x: Default::default(),
            y: Default::default(),
            base: Default::default(),
            limit: Default::default(),
            in_channel: Default::default(),
            in_output: Default::default(),
            unaddressed: Default::default(),
            partial: Default::default(),
            product: Default::default(),
            elements: Default::default(),
            rounded: Default::default(),
            area: Default::default(),
            size: Default::default(),
            end: Default::default(),
            verdict: Default::default(),
        }
    }
}

impl Logic for Decoder {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, rules, split, configured, x, y, base, limit, in_channel, in_output, unaddressed, size, verdict);
        // ---- 1: which command, and are its bits and ranges legal
        self.w0.next = self.command.val().get_bits::<32>(0);
        self.opcode.next = self.command.val().get_bits::<8>(0);
        self.kind.next = 0.into();
        self.unused.next = 0.into();
        self.interleave_allowed.next = false;
        for i in 0..10 {
            if self.opcode.val() == self.opcodes[i].val() {
                self.kind.next = self.kind.val().replace_bit(i, true);
                self.unused.next = self.command.val() & self.reserved[i].val();
                self.interleave_allowed.next = self.interleaves.val().get_bit(i);
            }
        }
        self.split.d.next.configure = self.kind.val().get_bit(0);
        self.split.d.next.load_rows = self.kind.val().get_bit(1);
        self.split.d.next.attend = self.kind.val().get_bit(2);
        self.split.d.next.load_kv = self.kind.val().get_bit(3);
        self.split.d.next.fetch_q = self.kind.val().get_bit(4);
        self.split.d.next.qk = self.kind.val().get_bit(5);
        self.split.d.next.softmax = self.kind.val().get_bit(6);
        self.split.d.next.pv = self.kind.val().get_bit(7);
        self.split.d.next.merge = self.kind.val().get_bit(8);
        self.split.d.next.store = self.kind.val().get_bit(9);
        self.split.d.next.address = self.command.val().get_bits::<20>(32);
        self.split.d.next.page = self.command.val().get_bits::<32>(32);
        self.raised.next = 0.into();
        if self.w0.val().get_bit(13) {
            self.raised.next = bit_cast::<32, 8>(self.pe_index.val()) << 4;
        }
        self.split.d.next.position = self.command.val().get_bits::<32>(64) + self.raised.val();
        self.split.d.next.pages = self.command.val().get_bits::<16>(96);
        self.split.d.next.stride = self.command.val().get_bits::<16>(112);
        self.split.d.next.row_tile = self.command.val().get_bits::<16>(32);
        self.split.d.next.first_round = self.command.val().get_bits::<8>(32);
        self.split.d.next.rounds = self.command.val().get_bits::<8>(40);
        // configure
        self.rows.next = self.command.val().get_bits::<16>(32);
        self.head_dim.next = self.command.val().get_bits::<16>(48);
        self.active.next = bit_cast::<8, 6>(self.command.val().get_bits::<6>(120));
        self.padded.next = self.rows.val() + self.row_padding.val();
        self.row_tiles.next = self.padded.val() >> self.row_shift.val();
        self.last_pe.next = self.active.val() - 1;
        self.rounds.next = 0.into();
        for i in 0..6 {
            if self.last_pe.val().get_bit(i) {
                self.rounds.next = (i + 1).to_bits();
            }
        }
        self.configured.d.next.configured = true;
        self.configured.d.next.rows = self.rows.val();
        self.configured.d.next.row_tiles = self.row_tiles.val();
        self.configured.d.next.head_dim = self.head_dim.val().get_bits::<8>(0);
        self.configured.d.next.scale = self.command.val().get_bits::<32>(64);
        self.configured.d.next.q_address = self.command.val().get_bits::<20>(96);
        self.configured.d.next.q_bf16 = self.command.val().get_bit(116);
        self.configured.d.next.k_bf16 = self.command.val().get_bit(117);
        self.configured.d.next.v_bf16 = self.command.val().get_bit(118);
        self.configured.d.next.rounds = self.rounds.val();
        // ranges
        self.last_round.next =
            bit_cast::<9, 8>(self.command.val().get_bits::<8>(32)) + bit_cast::<9, 8>(self.command.val().get_bits::<8>(40));
        self.legal.next = !self.unused.val().any() & !(self.w0.val().get_bit(13) & !self.interleave_allowed.val());
        if self.kind.val().get_bit(0) {
            self.legal.next = self.legal.val()
                & (((self.rows.val() != 0) & (self.rows.val() <= self.max_rows.val()))
                    & (((self.head_dim.val() >= 16) & (self.head_dim.val() <= 128)) & !self.head_dim.val().get_bits::<3>(0).any())
                    & ((self.active.val() != 0) & (self.active.val() <= self.pe_count.val())));
        }
        if self.kind.val().get_bit(2) {
            self.legal.next =
                self.legal.val() & (self.command.val().get_bits::<16>(96).any() & self.command.val().get_bits::<16>(112).any());
        }
        if self.kind.val().get_bits::<4>(4).any() {
            self.legal.next = self.legal.val() & (self.rows.val() < self.settings.val().row_tiles);
        }
        if self.kind.val().get_bit(8) {
            self.legal.next = self.legal.val()
                & (self.command.val().get_bits::<8>(40).any() & (self.last_round.val() <= bit_cast::<9, 4>(self.settings.val().rounds)));
        }
        self.rules.d.next.version = self.command.val().get_bits::<4>(8) == 1;
        self.rules.d.next.opcode = self.kind.val().any() & !(self.w0.val() & self.reserved_w0.val()).any();
        self.rules.d.next.configured = self.settings.val().configured | self.kind.val().get_bit(0);
        self.rules.d.next.field = self.legal.val();
        // the area that the command touches: base, and x * y words, or 32 * x * y beats, or x * y output lines
        self.columns.next = self.settings.val().head_dim;
        self.in_channel.d.next = self.kind.val().get_bits::<2>(2).any();
        self.in_output.d.next = self.kind.val().get_bit(9);
        self.unaddressed.d.next = self.kind.val().get_bits::<5>(4).any();
        self.limit.d.next = bit_cast::<40, 32>(self.sram_words.val());
        self.base.d.next = bit_cast::<40, 20>(self.command.val().get_bits::<20>(32));
        self.x.d.next = self.settings.val().rows;
        self.y.d.next = 2.into();
        if self.kind.val().get_bit(0) {
            self.base.d.next = bit_cast::<40, 20>(self.command.val().get_bits::<20>(96));
            self.x.d.next = self.row_tiles.val() << self.row_shift.val();
            self.y.d.next = self.head_dim.val().get_bits::<8>(0) >> 3;
        }
        if self.kind.val().get_bits::<2>(2).any() {
            self.limit.d.next = bit_cast::<40, 32>(self.channel_beats.val());
            self.base.d.next = bit_cast::<40, 32>(self.command.val().get_bits::<32>(32));
            self.x.d.next = 1.into();
            if self.kind.val().get_bit(2) {
                self.x.d.next = self.command.val().get_bits::<16>(96);
            }
            self.y.d.next = self.columns.val() >> 3;
        }
        if self.kind.val().get_bit(9) {
            self.x.d.next = self.settings.val().row_tiles;
            self.y.d.next = self.columns.val() + 2;
        }
        // ---- 2: its size
        self.product.next = 0.into();
        self.partial.next = bit_cast::<40, 16>(self.x.q.val());
        for i in 0..8 {
            if self.y.q.val().get_bit(i) {
                self.product.next = self.product.val() + self.partial.val();
            }
            self.partial.next = self.partial.val() << 1;
        }
        self.elements.next = 0.into();
        self.rounded.next = 0.into();
        self.area.next = self.product.val();
        if self.in_channel.q.val() {
            self.area.next = self.product.val() << 5;
        }
        if self.in_output.q.val() {
            self.elements.next = self.product.val() << self.row_shift.val();
            self.rounded.next = self.elements.val() + 3;
            self.area.next = self.rounded.val() >> 2;
        }
        self.size.d.next = self.area.val();
        // ---- 3: the verdict
        self.end.next = self.base.q.val() + self.size.q.val();
        self.verdict.d.next = 0.into();
        if !self.unaddressed.q.val() & (self.end.val() > self.limit.q.val()) {
            self.verdict.d.next = 4.into();
        }
        if !self.rules.q.val().field {
            self.verdict.d.next = 3.into();
        }
        if !self.rules.q.val().configured {
            self.verdict.d.next = 5.into();
        }
        if !self.rules.q.val().opcode {
            self.verdict.d.next = 1.into();
        }
        if !self.rules.q.val().version {
            self.verdict.d.next = 2.into();
        }
        self.code.next = self.verdict.q.val();
        self.action.next = self.split.q.val();
        self.configuration.next = self.configured.q.val();
    }
}

#[cfg(test)]
#[path = "decoder_tests.rs"]
mod tests;
