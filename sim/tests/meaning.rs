//! Both engines against rust-hdl's own simulator, on small designs and on every construct that its exporter prints with another meaning.

use braid_sim::lockstep::RustHdl;
use braid_sim::{Design, Engine, SimError};
use rust_hdl::prelude::*;

#[path = "meaning/verilog.rs"]
mod verilog;

/// `Default` of a block with `Constant` fields, which have none.
macro_rules! default_with {
    ($block:ident { $($field:ident),* } { $($constant:ident: $value:expr),* }) => {
        impl Default for $block {
            fn default() -> Self {
                Self { $($field: Default::default(),)* $($constant: Constant::new($value),)* }
            }
        }
    };
}

/// A small deterministic generator of stimulus (xorshift64).
struct Random(u64);
impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Runs both engines and rust-hdl in lock step; `drive` sets one random value in the block and gives path and value.
fn compare<B: Block + Default>(
    cycles: u64,
    clock: impl Fn(&mut B, bool) + 'static,
    mut drive: impl FnMut(&mut B, &mut Random) -> Vec<(&'static str, u128)>,
    outputs: &[&str],
    read: impl Fn(&B) -> Vec<u128>,
) {
    let mut reference = RustHdl::new(B::default(), clock);
    let design = Design::lower(&reference.block).unwrap();
    let mut interpreter = design.interpret().unwrap();
    let mut compiled = design.compile().unwrap();
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for cycle in 0..cycles {
        let pokes = drive(&mut reference.block, &mut random);
        assert!(reference.settle());
        for engine in [&mut interpreter as &mut dyn Engine, &mut compiled] {
            for (path, value) in &pokes {
                let id = engine.signal(path).unwrap();
                engine.poke_wide(id, &[*value as u64, (*value >> 64) as u64]);
            }
            for (path, expected) in outputs.iter().zip(read(&reference.block)) {
                let id = engine.signal(path).unwrap();
                let mut words = [0; 2];
                engine.peek_wide(id, &mut words);
                let value = u128::from(words[0]) | u128::from(words[1]) << 64;
                assert_eq!(value, expected, "{path} in cycle {cycle} with {pokes:x?}");
            }
            engine.step();
        }
        assert!(reference.step());
        reference.compare(&interpreter).unwrap();
        reference.compare(&compiled).unwrap();
        assert_eq!(interpreter.digest(), compiled.digest());
    }
}

fn number<const N: usize>(x: Bits<N>) -> u128 {
    (0..N).fold(0, |a, i| a | u128::from(x.get_bit(i)) << i)
}

fn bits_of<const N: usize>(x: u128) -> Bits<N> {
    let mut out = Bits::<N>::default();
    for i in 0..N {
        out = out.replace_bit(i, x >> i & 1 == 1);
    }
    out
}

// ---------------------------------------------------------------- combinational traps

#[derive(LogicBlock)]
struct Traps {
    clock: Signal<In, Clock>,
    a: Signal<In, Bits<8>>,
    b: Signal<In, Bits<8>>,
    c: Signal<In, Bits<8>>,
    s: Signal<In, Signed<8>>,
    t: Signal<In, Signed<8>>,
    precedence: Signal<Out, Bits<8>>,
    wide_sum: Signal<Out, Bits<9>>,
    wide_not: Signal<Out, Bits<16>>,
    narrow: Signal<Out, Bits<8>>,
    flags: Signal<Out, Bits<8>>,
    shifted: Signal<Out, Bits<8>>,
    variable: Signal<Out, Bits<8>>,
    signed_wide: Signal<Out, Signed<16>>,
    product: Signal<Out, Signed<32>>,
    replaced: Signal<Out, Bits<8>>,
    negated: Signal<Out, Signed<8>>,
    bit: Signal<Out, Bit>,
    one: Constant<Signed<8>>,
    f0: Signal<Local, Bit>,
    f1: Signal<Local, Bit>,
    f2: Signal<Local, Bit>,
    f3: Signal<Local, Bit>,
    st16: Signal<Local, Signed<16>>,
    tt16: Signal<Local, Signed<16>>,
    late: Signal<Local, Bits<8>>,
}

default_with!(Traps { clock, a, b, c, s, t, precedence, wide_sum, wide_not, narrow, flags, shifted, variable, signed_wide, product, replaced, negated, bit, f0, f1, f2, f3, st16, tt16, late } { one: signed::<8>(1) });

// The missing parentheses are what the test is about.
#[allow(clippy::precedence)]
impl Logic for Traps {
    #[hdl_gen]
    fn update(&mut self) {
        self.precedence.next = self.a.val() & self.b.val() + self.c.val();
        self.wide_sum.next = bit_cast::<9, 8>(self.a.val() + self.b.val());
        self.wide_not.next = bit_cast::<16, 8>(!self.a.val()) + bit_cast::<16, 8>(self.a.val() << 4);
        self.narrow.next = !bit_cast::<8, 9>(self.wide_sum.val());
        self.f0.next = (self.a.val() + 1) == 0;
        self.f1.next = (self.a.val() - self.b.val()) < 5;
        self.f2.next = self.s.val() < self.t.val();
        self.f3.next = self.s.val() >= self.one.val();
        self.flags.next = 0.into();
        if self.f0.val() {
            self.flags.next = self.flags.val() | 1;
        }
        if self.f1.val() {
            self.flags.next = self.flags.val() | 2;
        }
        if self.f2.val() {
            self.flags.next = self.flags.val() | 4;
        } else if self.f3.val() {
            self.flags.next = self.flags.val() | 8;
        }
        self.shifted.next = (self.a.val() + 1) >> 1;
        self.variable.next = (self.a.val() << self.b.val()) | (self.c.val() >> self.b.val());
        self.signed_wide.next = signed_bit_cast::<16, 8>(self.s.val()) + signed_bit_cast::<16, 8>(self.t.val());
        self.st16.next = signed_bit_cast::<16, 8>(self.s.val());
        self.tt16.next = signed_bit_cast::<16, 8>(self.t.val());
        self.product.next = self.st16.val() * self.tt16.val();
        self.replaced.next = self.a.val().replace_bit(3, self.b.val().any());
        self.negated.next = -self.s.val();
        self.bit.next = self.late.val().get_bit(2) ^ self.c.val().all() ^ self.c.val().xor();
        self.late.next = self.a.val() ^ self.b.val();
    }
}

#[test]
fn constructs_that_exporters_get_wrong_keep_the_meaning_of_rust() {
    compare::<Traps>(
        400,
        |b, v| b.clock.next = Clock { clk: v },
        |b, r| {
            let pick = |x: u64| match x % 5 {
                0 => 0,
                1 => 0xff,
                2 => 0x7f,
                _ => (x >> 8) & 0xff,
            };
            let v: Vec<u64> = (0..5).map(|_| pick(r.next())).collect();
            // The most negative value overflows rust-hdl's own signed casts.
            let (s, t) = (if v[3] == 0x80 { 0x81 } else { v[3] }, if v[4] == 0x80 { 0x81 } else { v[4] });
            let b_value = if v[1] > 31 { v[1] & 15 } else { v[1] };
            b.a.next = v[0].into();
            b.b.next = b_value.into();
            b.c.next = v[2].into();
            b.s.next = signed_cast(Bits::<8>::from(s));
            b.t.next = signed_cast(Bits::<8>::from(t));
            vec![("a", v[0].into()), ("b", b_value.into()), ("c", v[2].into()), ("s", s.into()), ("t", t.into())]
        },
        &[
            "precedence",
            "wide_sum",
            "wide_not",
            "narrow",
            "flags",
            "shifted",
            "variable",
            "signed_wide",
            "product",
            "replaced",
            "negated",
            "bit",
            "late",
        ],
        |b| {
            vec![
                number(b.precedence.val()),
                number(b.wide_sum.val()),
                number(b.wide_not.val()),
                number(b.narrow.val()),
                number(b.flags.val()),
                number(b.shifted.val()),
                number(b.variable.val()),
                number(b.signed_wide.val().inner()),
                number(b.product.val().inner()),
                number(b.replaced.val()),
                number(b.negated.val().inner()),
                u128::from(b.bit.val()),
                number(b.late.val()),
            ]
        },
    );
}

// ---------------------------------------------------------------- wide values

#[derive(LogicBlock)]
struct Wide {
    clock: Signal<In, Clock>,
    a: Signal<In, Bits<100>>,
    b: Signal<In, Bits<100>>,
    n: Signal<In, Bits<7>>,
    sum: Signal<Out, Bits<100>>,
    difference: Signal<Out, Bits<100>>,
    picked: Signal<Out, Bit>,
    right: Signal<Out, Bits<100>>,
    less: Signal<Out, Bit>,
    equal: Signal<Out, Bit>,
    part: Signal<Out, Bits<40>>,
    constant: Constant<Bits<100>>,
    hold: DFF<Bits<100>>,
}

default_with!(Wide { clock, a, b, n, sum, difference, picked, right, less, equal, part, hold } { constant: bits_of(0xF_0F0F_FFFF_0123_4567_89AB_CDEF) });

impl Logic for Wide {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, hold);
        self.sum.next = self.a.val() + self.b.val();
        self.difference.next = self.a.val() - self.hold.q.val();
        self.picked.next = self.a.val().get_bit(self.n.val().index());
        self.right.next = self.b.val() >> 37;
        self.less.next = self.a.val() < self.b.val();
        self.equal.next = self.a.val() == self.hold.q.val();
        self.part.next = self.a.val().get_bits::<40>(33);
        if self.less.val() {
            self.hold.d.next = (self.a.val() ^ self.b.val()) & self.constant.val();
        }
    }
}

#[test]
fn values_of_a_hundred_bits_are_exact() {
    compare::<Wide>(
        100,
        |b, v| b.clock.next = Clock { clk: v },
        |b, r| {
            let mask = (1u128 << 100) - 1;
            let mut wide = || (u128::from(r.next()) << 64 | u128::from(r.next())) & mask;
            let (x, y) = (wide(), wide());
            let n = (r.next() % 100) as u128;
            b.a.next = bits_of(x);
            b.b.next = bits_of(y);
            b.n.next = bits_of(n);
            vec![("a", x), ("b", y), ("n", n)]
        },
        &["sum", "difference", "picked", "right", "less", "equal", "part"],
        |b| {
            vec![
                number(b.sum.val()),
                number(b.difference.val()),
                u128::from(b.picked.val()),
                number(b.right.val()),
                u128::from(b.less.val()),
                u128::from(b.equal.val()),
                number(b.part.val()),
            ]
        },
    );
}

// ---------------------------------------------------------------- structs, enums, arrays, interfaces, memories

#[derive(LogicStruct, Copy, Clone, Debug, Default, PartialEq)]
struct Pair {
    low: Bits<12>,
    flag: Bit,
    high: Bits<20>,
}

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
enum Phase {
    Idle,
    Load,
    Run,
}

#[derive(LogicInterface, Clone, Debug, Default)]
#[join = "StreamOut"]
struct StreamIn {
    data: Signal<In, Bits<8>>,
    valid: Signal<In, Bit>,
    ready: Signal<Out, Bit>,
}

#[derive(LogicInterface, Clone, Debug, Default)]
#[join = "StreamIn"]
struct StreamOut {
    data: Signal<Out, Bits<8>>,
    valid: Signal<Out, Bit>,
    ready: Signal<In, Bit>,
}

#[derive(LogicBlock)]
struct Stage {
    clock: Signal<In, Clock>,
    rx: StreamIn,
    tx: StreamOut,
    index: Constant<Bits<8>>,
    value: DFF<Bits<8>>,
    full: DFF<Bit>,
}

default_with!(Stage { clock, rx, tx, value, full } { index: 1.into() });

impl Logic for Stage {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, value, full);
        self.tx.data.next = self.value.q.val() + self.index.val();
        self.tx.valid.next = self.full.q.val();
        // Ready passes through: a chain of stages is combinational across blocks.
        self.rx.ready.next = !self.full.q.val() | self.tx.ready.val();
        if self.rx.ready.val() {
            self.value.d.next = self.rx.data.val();
            self.full.d.next = self.rx.valid.val();
        }
    }
}

#[derive(LogicBlock)]
struct Mixed {
    clock: Signal<In, Clock>,
    rx: StreamIn,
    tx: StreamOut,
    pair: Signal<Out, Pair>,
    phase: Signal<Out, Bits<2>>,
    address: Signal<In, Bits<4>>,
    rom_data: Signal<Out, Bits<8>>,
    stage: [Stage; 3],
    state: DFF<Phase>,
    held: DFF<Pair>,
    ram: RAM<Pair, 4>,
    rom: ROM<Bits<8>, 4>,
    srom: SyncROM<Bits<8>, 4>,
    lanes: [Signal<Local, Bits<8>>; 4],
    total: Signal<Local, Bits<8>>,
}

impl Default for Mixed {
    fn default() -> Self {
        Self {
            clock: Default::default(),
            rx: Default::default(),
            tx: Default::default(),
            pair: Default::default(),
            phase: Default::default(),
            address: Default::default(),
            rom_data: Default::default(),
            stage: [stage(1), stage(1), stage(2)],
            state: Default::default(),
            held: Default::default(),
            ram: (0..16u64).map(|i| Pair { low: (i * 7).into(), flag: i % 3 == 0, high: (i * 1000).into() }).into(),
            rom: (0..13u64).map(|i| Bits::<8>::from(i * 19 % 256)).into(),
            srom: (0..16u64).map(|i| Bits::<8>::from(i * 3)).into(),
            lanes: Default::default(),
            total: Default::default(),
        }
    }
}

fn stage(index: u64) -> Stage {
    Stage { index: Constant::new(index.into()), ..Default::default() }
}

impl Logic for Mixed {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, held);
        for i in 0..3 {
            self.stage[i].clock.next = self.clock.val();
        }
        StreamIn::link(&mut self.rx, &mut self.stage[0].rx);
        for i in 0..2 {
            StreamOut::join(&mut self.stage[i].tx, &mut self.stage[i + 1].rx);
        }
        StreamOut::link(&mut self.tx, &mut self.stage[2].tx);
        self.ram.read_clock.next = self.clock.val();
        self.ram.write_clock.next = self.clock.val();
        self.srom.clock.next = self.clock.val();
        self.rom.address.next = self.address.val();
        self.srom.address.next = self.address.val();
        self.rom_data.next = self.rom.data.val() ^ self.srom.data.val();
        self.ram.read_address.next = self.address.val();
        self.ram.write_address.next = self.address.val();
        self.ram.write_enable.next = self.state.q.val() == Phase::Run;
        self.ram.write_data.next = self.held.q.val();
        self.total.next = 0.into();
        for i in 0..4 {
            self.lanes[i].next = self.rx.data.val() + i.to_bits();
            self.total.next = self.total.val() ^ self.lanes[i].val();
        }
        match self.state.q.val() {
            Phase::Idle => {
                if self.rx.valid.val() {
                    self.state.d.next = Phase::Load;
                }
            }
            Phase::Load => {
                self.held.d.next.low = bit_cast::<12, 8>(self.total.val());
                self.held.d.next.flag = self.tx.valid.val();
                self.state.d.next = Phase::Run;
            }
            Phase::Run => {
                self.held.d.next.high = self.ram.read_data.val().high + self.held.q.val().high;
                self.state.d.next = Phase::Idle;
            }
        }
        self.pair.next = self.held.q.val();
        self.phase.next = 0.into();
        if self.state.q.val() == Phase::Run {
            self.phase.next = 2.into();
        }
    }
}

#[test]
fn structs_enums_arrays_links_and_memories_agree_with_rust_hdl() {
    compare::<Mixed>(
        300,
        |b, v| b.clock.next = Clock { clk: v },
        |b, r| {
            let (data, valid, ready, address) = (r.next() & 0xff, r.next() & 1, r.next() >> 7 & 1, r.next() >> 9 & 15);
            b.rx.data.next = data.into();
            b.rx.valid.next = valid == 1;
            b.tx.ready.next = ready == 1;
            b.address.next = address.into();
            vec![("rx.data", data.into()), ("rx.valid", valid.into()), ("tx.ready", ready.into()), ("address", address.into())]
        },
        &["pair", "phase", "rom_data", "tx.data", "tx.valid", "rx.ready", "stage[1].value.q", "stage[1].rx.ready", "lanes[2]"],
        |b| {
            let pair: Bits<33> = b.pair.val().into();
            vec![
                number(pair),
                number(b.phase.val()),
                number(b.rom_data.val()),
                number(b.tx.data.val()),
                u128::from(b.tx.valid.val()),
                u128::from(b.rx.ready.val()),
                number(b.stage[1].value.q.val()),
                u128::from(b.stage[1].rx.ready.val()),
                number(b.lanes[2].val()),
            ]
        },
    );
}

// ---------------------------------------------------------------- lanes at two levels

#[derive(LogicBlock, Default)]
struct Cell {
    clock: Signal<In, Clock>,
    x: Signal<In, Bits<16>>,
    y: Signal<Out, Bits<16>>,
    acc: DFF<Bits<16>>,
    ram: RAM<Bits<16>, 3>,
    at: DFF<Bits<3>>,
}

impl Logic for Cell {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, acc, at);
        self.ram.read_clock.next = self.clock.val();
        self.ram.write_clock.next = self.clock.val();
        self.ram.read_address.next = self.at.q.val() + 1;
        self.ram.write_address.next = self.at.q.val();
        self.ram.write_data.next = self.x.val();
        self.ram.write_enable.next = self.x.val().get_bit(0);
        self.at.d.next = self.at.q.val() + 1;
        self.acc.d.next = self.acc.q.val() + (self.x.val() ^ self.ram.read_data.val());
        self.y.next = self.acc.q.val() + (self.x.val() << (self.x.val() & 15));
    }
}

#[derive(LogicBlock, Default)]
struct Row {
    clock: Signal<In, Clock>,
    x: Signal<In, Bits<16>>,
    y: Signal<Out, Bits<16>>,
    cell: [Cell; 5],
}

impl Logic for Row {
    #[hdl_gen]
    fn update(&mut self) {
        for i in 0..5 {
            self.cell[i].clock.next = self.clock.val();
            self.cell[i].x.next = self.x.val() + i.to_bits();
        }
        self.y.next = 0.into();
        for i in 0..5 {
            self.y.next = self.y.val() ^ self.cell[i].y.val();
        }
    }
}

#[derive(LogicBlock, Default)]
struct Grid {
    clock: Signal<In, Clock>,
    x: Signal<In, Bits<16>>,
    y: Signal<Out, Bits<16>>,
    row: [Row; 6],
}

impl Logic for Grid {
    #[hdl_gen]
    fn update(&mut self) {
        for i in 0..6 {
            self.row[i].clock.next = self.clock.val();
        }
        // The rows are a combinational chain.
        self.row[0].x.next = self.x.val();
        for i in 1..6 {
            self.row[i].x.next = self.row[i - 1].y.val();
        }
        self.y.next = self.row[5].y.val();
    }
}

#[test]
fn blocks_nested_in_chained_blocks_agree_with_rust_hdl() {
    compare::<Grid>(
        60,
        |b, v| b.clock.next = Clock { clk: v },
        |b, r| {
            let x = r.next() & 0xffff;
            b.x.next = x.into();
            vec![("x", x.into())]
        },
        &["y", "row[3].cell[2].acc.q", "row[4].x"],
        |b| vec![number(b.y.val()), number(b.row[3].cell[2].acc.q.val()), number(b.row[4].x.val())],
    );
}

#[derive(LogicBlock, Default)]
struct Parallel {
    clock: Signal<In, Clock>,
    x: Signal<In, Bits<16>>,
    y: Signal<Out, Bits<16>>,
    row: [Row; 6],
}

impl Logic for Parallel {
    #[hdl_gen]
    fn update(&mut self) {
        self.y.next = 0.into();
        for i in 0..6 {
            self.row[i].clock.next = self.clock.val();
            self.row[i].x.next = self.x.val() + i.to_bits();
            self.y.next = self.y.val() + self.row[i].y.val();
        }
    }
}

#[test]
fn blocks_nested_in_blocks_form_lanes() {
    compare::<Parallel>(
        60,
        |b, v| b.clock.next = Clock { clk: v },
        |b, r| {
            let x = r.next() & 0xffff;
            b.x.next = x.into();
            vec![("x", x.into())]
        },
        &["y", "row[5].cell[4].acc.q", "row[4].x"],
        |b| vec![number(b.y.val()), number(b.row[5].cell[4].acc.q.val()), number(b.row[4].x.val())],
    );
    let design = Design::lower(&Parallel::default()).unwrap();
    let engine = design.interpret().unwrap();
    let lanes: Vec<usize> = engine.report().classes.iter().map(|c| c.1).collect();
    assert_eq!(lanes, [1, 8, 40], "{:?}", engine.report());
    assert!(engine.report().folded.is_empty());
}

// ---------------------------------------------------------------- refused designs

#[derive(LogicBlock, Default)]
struct Latch {
    a: Signal<In, Bit>,
    y: Signal<Out, Bits<4>>,
}
impl Logic for Latch {
    #[hdl_gen]
    fn update(&mut self) {
        if self.a.val() {
            self.y.next = 3.into();
        }
    }
}

#[derive(LogicBlock, Default)]
struct Pass {
    a: Signal<In, Bits<4>>,
    y: Signal<Out, Bits<4>>,
}
impl Logic for Pass {
    #[hdl_gen]
    fn update(&mut self) {
        self.y.next = self.a.val() + 1;
    }
}

#[derive(LogicBlock, Default)]
struct Loop {
    y: Signal<Out, Bits<4>>,
    one: Pass,
    two: Pass,
}
impl Logic for Loop {
    #[hdl_gen]
    fn update(&mut self) {
        self.one.a.next = self.two.y.val();
        self.two.a.next = self.one.y.val();
        self.y.next = self.one.y.val();
    }
}

#[derive(LogicBlock, Default)]
struct Open {
    y: Signal<Out, Bits<4>>,
    one: Pass,
}
impl Logic for Open {
    #[hdl_gen]
    fn update(&mut self) {
        self.y.next = self.one.y.val();
    }
}

#[derive(LogicBlock, Default)]
struct Gated {
    clock: Signal<In, Clock>,
    y: Signal<Out, Bits<4>>,
    enable: Signal<In, Bit>,
    gate: Signal<Local, Clock>,
    r: DFF<Bits<4>>,
}
impl Logic for Gated {
    #[hdl_gen]
    fn update(&mut self) {
        self.gate.next = self.clock.val();
        if self.enable.val() {
            self.gate.next = self.r.clock.val();
        }
        self.r.clock.next = self.gate.val();
        self.r.d.next = self.r.q.val() + 1;
        self.y.next = self.r.q.val();
    }
}

#[test]
fn latches_loops_and_open_inputs_are_refused_with_their_path() {
    let check = |b: &dyn Block| Design::lower(b).and_then(|d| d.check());
    assert_eq!(check(&Latch::default()), Err(SimError::Latch { path: "top.y".into() }));
    assert_eq!(check(&Open::default()), Err(SimError::Undriven { path: "top.one.a".into() }));
    let found = check(&Loop::default()).unwrap_err();
    assert!(matches!(&found, SimError::CombinationalLoop { path } if path.starts_with("top.")), "{found}");
    let found = check(&Gated::default()).unwrap_err();
    assert!(matches!(found, SimError::CombinationalLoop { .. } | SimError::DerivedClock { .. }), "{found}");
}
