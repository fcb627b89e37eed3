//! The number units against the golden model in volume: every special pair, the input ranges where a unit goes wrong, and random values.
//!
//! Runs in braid-sim's compiled engine; `src/number/tests.rs` runs the units in rust-hdl's own simulator. Where a range is small enough it is covered
//! whole: the fractions of exp2, the kept bits of a conversion, the integers of a shift count. Counts are fixed, so a run is reproducible;
//! `BRAID_VECTORS=n` asks for n random vectors a unit instead.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::ops::Range;

use braid_golden::dot::{Block as GoldenBlock, dot};
use braid_golden::format::Operand;
use braid_golden::stimulus::{SPECIAL_FP32, Stimulus};
use braid_golden::{exp2 as golden_exp2, fp32};
use braid_hdl::number::*;
use braid_sim::engine::{Compiled, Engine, SignalId};
use braid_sim::netlist::Design;
use rust_hdl::prelude::*;

/// Random vectors of a unit.
fn vectors() -> usize {
    match std::env::var("BRAID_VECTORS") {
        Ok(text) => text.parse().expect("BRAID_VECTORS is a number of vectors"),
        Err(_) => 1_000_000,
    }
}

/// Value of a port of up to 192 bits, lowest word first.
type Word = [u64; 3];

/// The compiled engine of a unit.
fn compiled<B: Block>(mut block: B) -> Compiled {
    block.connect_all();
    Design::lower(&block).and_then(|design| design.compile()).expect("a number unit compiles")
}

fn signal(engine: &mut Compiled, name: &str) -> SignalId {
    engine.signal(name).expect("a port of the unit")
}

/// A pipelined unit under test: `inputs` and the port `result` by name, values of the inputs in the same order.
struct Unit<B, I, const INPUTS: usize> {
    block: B,
    inputs: [&'static str; INPUTS],
    values: fn(I) -> [Word; INPUTS],
    result: &'static str,
    golden: fn(I) -> u32,
    latency: usize,
}

impl<B: Block, I: Copy + Debug, const INPUTS: usize> Unit<B, I, INPUTS> {
    /// Feeds one input a cycle and compares every output with golden. Panics if fewer than `at_least` were compared.
    fn check(self, inputs: impl IntoIterator<Item = I>, at_least: usize) {
        let mut engine = compiled(self.block);
        let (ports, result) = (self.inputs.map(|name| signal(&mut engine, name)), signal(&mut engine, self.result));
        let mut expected = VecDeque::with_capacity(self.latency);
        let (mut inputs, mut last, mut compared) = (inputs.into_iter(), None, 0);
        loop {
            // Drain: the pipeline moves on while the last input stays.
            let input = inputs.next();
            if let Some(input) = input {
                last = Some(input);
                expected.push_back((input, (self.golden)(input)));
            }
            let Some(driven) = input.or(last.filter(|_| !expected.is_empty())) else { break };
            for (port, value) in ports.iter().zip((self.values)(driven)) {
                engine.poke_wide(*port, &value);
            }
            engine.step();
            if expected.len() == self.latency || input.is_none() {
                let (input, golden) = expected.pop_front().expect("an input under way");
                let got = engine.peek(result) as u32;
                assert_eq!(got, golden, "{got:#010x}, golden {golden:#010x}, of {input:x?}");
                compared += 1;
            }
        }
        assert!(compared >= at_least, "only {compared} vectors were compared");
    }
}

/// A port of one word.
fn word(value: u32) -> Word {
    [value.into(), 0, 0]
}

fn special_pairs() -> impl Iterator<Item = (u32, u32)> {
    SPECIAL_FP32.iter().flat_map(|&a| SPECIAL_FP32.iter().map(move |&b| (a, b)))
}

/// A value with the given biased exponent and random sign and fraction.
fn of_exponent(stimulus: &mut Stimulus, exponent: u32) -> u32 {
    (stimulus.bits() >> 32) as u32 & 0x807F_FFFF | exponent << 23
}

#[test]
fn conversion_rounds_every_kept_pattern_at_below_and_above_the_tie() {
    let unit = Unit {
        block: ToOperand32::default(),
        inputs: ["value"],
        values: |v| [word(v)],
        result: "operand",
        golden: |v| Operand::from_fp32(v).to_bits(),
        latency: ToOperand32::LATENCY,
    };
    // The 19 kept bits in all values; of the 13 lost ones those that decide.
    let lost = [0x0000, 0x0FFF, 0x1000, 0x1001];
    let patterns = (0..1u32 << 19).flat_map(|kept| lost.map(|l| kept << 13 | l));
    unit.check(patterns, 4 << 19);
}

#[test]
fn products_equal_golden_down_to_subnormals_and_up_to_overflow() {
    let unit = Unit {
        block: Multiply32::default(),
        inputs: ["a", "b"],
        values: |(a, b): (u32, u32)| [word(a), word(b)],
        result: "result",
        golden: |(a, b)| fp32::multiply(a, b),
        latency: Multiply32::LATENCY,
    };
    let mut stimulus = Stimulus::new(41);
    let count = vectors();
    let random = (0..count).map(|_| {
        let a = stimulus.fp32();
        match stimulus.below(4) {
            // The product's exponent lands around 0 or around 255.
            0 => {
                let exponent = stimulus.below(255);
                let (a, low) = (of_exponent(&mut stimulus, exponent), 100 + stimulus.below(30));
                (a, of_exponent(&mut stimulus, low.saturating_sub(exponent).min(254)))
            }
            1 => {
                let exponent = 127 + stimulus.below(128);
                let (a, high) = (of_exponent(&mut stimulus, exponent), 379 + stimulus.below(5));
                (a, of_exponent(&mut stimulus, (high - exponent).min(254)))
            }
            // Few significant bits: exact ties.
            2 => (a & 0xFFFF_F000, stimulus.fp32() & 0xFFFF_F000),
            _ => (a, stimulus.fp32()),
        }
    });
    unit.check(special_pairs().chain(random), count);
}

#[test]
fn scaled_sums_equal_golden_through_cancellation_and_every_shift() {
    let unit = Unit {
        block: ScaledAdd32::default(),
        inputs: ["a", "ka", "b", "kb"],
        values: |(a, ka, b, kb): (u32, u32, u32, u32)| [word(a), word(ka), word(b), word(kb)],
        result: "result",
        golden: |(a, ka, b, kb)| fp32::scaled_add(a, ka, b, kb),
        latency: ScaledAdd32::LATENCY,
    };
    let special = special_pairs().flat_map(|(a, b)| [0, 1, 23, 24, 25, 126, 149, 150, 276, 510, 511].map(|k| (a, 0, b, k)));
    let shifts = (0..512).flat_map(|k| [(0x3F80_0001, k, 0x8000_0001, 0), (0xFF7F_FFFF, k, 0, 0), (0x3F80_0000, k, 0xBF7F_FFFF, 0)]);
    let mut stimulus = Stimulus::new(42);
    let count = vectors();
    let random = (0..count).map(|_| {
        let a = stimulus.fp32();
        let k = [0, stimulus.below(30), stimulus.below(512), 511][stimulus.below(4) as usize];
        let b = match stimulus.below(4) {
            // Close to -a * 2^k: the scaled addends cancel, but for the last bits.
            0 | 1 => {
                let exponent = ((a >> 23 & 0xFF) + k.min(254)).min(254);
                (!a & 0x8000_0000 | exponent << 23 | a & 0x7F_FFFF).wrapping_add(stimulus.below(9)).wrapping_sub(4)
            }
            // Up to 27 places apart: guard, round and sticky bits.
            2 => {
                let exponent = (a >> 23 & 0xFF).saturating_sub(stimulus.below(28));
                of_exponent(&mut stimulus, exponent)
            }
            _ => stimulus.fp32(),
        };
        if stimulus.once_in(2) { (a, 0, b, k) } else { (b, k, a, 0) }
    });
    unit.check(special.chain(shifts).chain(random), count);
}

#[test]
fn maxima_of_neighbours_and_of_any_values_equal_golden() {
    let unit = Unit {
        block: Max32::default(),
        inputs: ["a", "b"],
        values: |(a, b): (u32, u32)| [word(a), word(b)],
        result: "result",
        golden: |(a, b)| fp32::max(a, b),
        latency: Max32::LATENCY,
    };
    let mut stimulus = Stimulus::new(43);
    let count = vectors();
    let random = (0..count).map(|_| {
        let a = stimulus.fp32();
        // Equal magnitudes of both signs, or a neighbour.
        let b = if stimulus.once_in(2) { a ^ (stimulus.below(2) << 31 | stimulus.below(2)) } else { stimulus.fp32() };
        (a, b)
    });
    unit.check(special_pairs().chain(random), count);
}

#[test]
fn ceilings_equal_golden_beside_every_integer_bit() {
    let unit = Unit {
        block: Ceil32::default(),
        inputs: ["value"],
        values: |v| [word(v)],
        result: "result",
        golden: fp32::ceil,
        latency: Ceil32::LATENCY,
    };
    // For each exponent with a fraction: whole numbers, their neighbours, and carries through all bits.
    let corners = (120..=152u32).flat_map(|exponent| {
        let fractions = (0..=23).flat_map(|bit| [0x7F_FFFF_u32 << bit & 0x7F_FFFF, (1 << bit) & 0x7F_FFFF, (1 << bit) - 1]);
        fractions.flat_map(move |f| [exponent << 23 | f, 1 << 31 | exponent << 23 | f])
    });
    let mut stimulus = Stimulus::new(44);
    let count = vectors();
    let random = (0..count).map(|_| {
        if stimulus.once_in(3) {
            stimulus.fp32()
        } else {
            let exponent = 120 + stimulus.below(33);
            of_exponent(&mut stimulus, exponent)
        }
    });
    unit.check(SPECIAL_FP32.into_iter().chain(corners).chain(random), count);
}

#[test]
fn shift_counts_equal_golden_beside_every_integer_of_their_range() {
    let unit = Unit {
        block: ShiftCount::default(),
        inputs: ["difference"],
        values: |d| [word(d)],
        result: "count",
        golden: |d| fp32::shift_count(d, 0),
        latency: ShiftCount::LATENCY,
    };
    let integers = (0..2048).flat_map(|k| {
        let d = (k as f32).to_bits();
        [d, d + 1, d.wrapping_sub(1), d | 1 << 31]
    });
    let mut stimulus = Stimulus::new(45);
    let count = vectors();
    let random = (0..count).map(|_| {
        if stimulus.once_in(3) {
            stimulus.fp32()
        } else {
            let exponent = 125 + stimulus.below(13);
            of_exponent(&mut stimulus, exponent)
        }
    });
    unit.check(SPECIAL_FP32.into_iter().chain(integers).chain(random), count);
}

#[test]
fn exp2_equals_golden_on_every_fraction_and_at_every_exponent() {
    let unit = Unit {
        block: Exp2::default(),
        inputs: ["value"],
        values: |v| [word(v)],
        result: "result",
        golden: golden_exp2::exp2,
        latency: Exp2::LATENCY,
    };
    // All 2^18 fractions below -1, where fp32 holds them exactly: -(1 + f / 2^18).
    let fractions = (0..1u32 << 18).map(|f| 0xBF80_0000 | f << 5);
    // Every integer with its neighbours, underflow and overflow included.
    let integers = (-300..=300).flat_map(|i: i32| {
        let x = (i as f32).to_bits();
        [x, x.wrapping_add(1), x.wrapping_sub(1)]
    });
    let mut stimulus = Stimulus::new(46);
    let count = vectors();
    let random = (0..count).map(|_| match stimulus.below(3) {
        0 => stimulus.fp32(),
        1 => (-(stimulus.below(1 << 25) as f32) / 262_144.0).to_bits(),
        _ => {
            let exponent = 105 + stimulus.below(31);
            of_exponent(&mut stimulus, exponent)
        }
    });
    unit.check(SPECIAL_FP32.into_iter().chain(fractions).chain(integers).chain(random), count + (1 << 18));
}

/// Operands at which a multiplier goes wrong: zeros, subnormals, ones, largest values, infinities, NaN.
const OPERANDS: [u32; 11] = [0, 0x4_0000, 1, 0x3FF, 0x400, 0x1_FC00, 0x5_FC00, 0x3_FBFF, 0x3_FC00, 0x7_FC00, 0x3_FE00];

type DotInput = (u32, u32, bool, u8, [u32; 8], [u32; 8]);

/// Eight operands of 19 bits, lane 0 lowest.
fn pack(lanes: &[u32; 8]) -> Word {
    let mut word = Word::default();
    for (lane, &operand) in lanes.iter().enumerate() {
        let (index, shift) = (lane * 19 / 64, lane * 19 % 64);
        word[index] |= u64::from(operand) << shift;
        if shift > 45 {
            word[index + 1] |= u64::from(operand) >> (64 - shift);
        }
    }
    word
}

/// Operands with close exponents around one of `exponents`; half of the lanes may repeat another with the opposite sign, so that sums cancel.
fn cancelling(stimulus: &mut Stimulus, exponents: Range<u32>) -> ([u32; 8], [u32; 8]) {
    let exponent = exponents.start + stimulus.below(exponents.end - exponents.start);
    let close = |s: &mut Stimulus| s.below(1 << 19) & 0x4_03FF | (exponent + s.below(4)) << 10;
    let (mut a, mut b): ([u32; 8], [u32; 8]) = (std::array::from_fn(|_| close(stimulus)), std::array::from_fn(|_| close(stimulus)));
    for lane in 0..4 {
        if !stimulus.once_in(4) {
            a[4 + lane] = a[lane] ^ 0x4_0000;
            b[4 + lane] = b[lane] ^ u32::from(stimulus.once_in(8));
        }
    }
    (a, b)
}

/// An accumulator and two single bits of the sum: one where the rounding is decided, one at or below the field's last place. Accumulators of the smallest
/// exponents bring the sum down to where a subnormal result keeps its last place in the field.
fn near_tie(stimulus: &mut Stimulus) -> DotInput {
    let exponent = if stimulus.once_in(2) { stimulus.below(2) } else { 1 + stimulus.below(100) };
    let shift = stimulus.below(5);
    // Half of the accumulators end in four zeros, so that nothing but the two bits decides.
    let acc = of_exponent(stimulus, exponent) & if stimulus.once_in(2) { 0xFFFF_FFF0 } else { u32::MAX };
    let reference = exponent.max(1) + 126 - shift;
    let (mut a, mut b) = ([0; 8], [0; 8]);
    for (lane, place) in [7 + stimulus.below(6), stimulus.below(9)].into_iter().enumerate() {
        // A product of powers of two stands at bit 30 of the field when its exponent is the reference; so this one is bit `place - 1`, and 0 falls out.
        let t = reference + place - 31;
        a[lane] = (t / 2) << 10 | stimulus.below(2) << 18;
        b[lane] = (t - t / 2) << 10;
    }
    (acc, shift, false, 3, a, b)
}

/// Nine addends of one sign close to their largest significands: the sum fills all 36 bits.
fn widest(stimulus: &mut Stimulus) -> DotInput {
    let exponent = 1 + stimulus.below(200);
    let t = exponent + 126;
    let (mut a, mut b) = ([0; 8], [0; 8]);
    for lane in 0..8 {
        let rest = stimulus.below(2) << 18 | 0x3FF;
        a[lane] = rest | (t / 2) << 10;
        b[lane] = (rest - stimulus.below(2)) | (t - t / 2) << 10;
    }
    (of_exponent(stimulus, exponent) & 0x7FFF_FFFF, stimulus.below(6), false, 0xFF, a, b)
}

fn dot_input(stimulus: &mut Stimulus) -> DotInput {
    match stimulus.below(8) {
        0 | 1 => return near_tie(stimulus),
        2 => return widest(stimulus),
        _ => {}
    }
    let enable = if stimulus.once_in(2) { 0xFF } else { stimulus.below(256) as u8 };
    let shift = [0, 0, stimulus.below(40), stimulus.below(512), 511][stimulus.below(5) as usize];
    let first = stimulus.once_in(8);
    // Anything; sums near 1; results around the subnormals; results around overflow.
    let (acc, (a, b)) = match stimulus.below(5) {
        0 => (stimulus.fp32(), (std::array::from_fn(|_| stimulus.operand()), std::array::from_fn(|_| stimulus.operand()))),
        1 | 2 => {
            let exponent = 110 + stimulus.below(28);
            (of_exponent(stimulus, exponent), cancelling(stimulus, 122..123))
        }
        3 => {
            let exponent = stimulus.below(40);
            (of_exponent(stimulus, exponent), cancelling(stimulus, 50..66))
        }
        _ => {
            let exponent = 240 + stimulus.below(15);
            (of_exponent(stimulus, exponent), cancelling(stimulus, 184..192))
        }
    };
    (acc, shift, first, enable, a, b)
}

#[test]
fn dot_products_equal_golden_through_cancellation_subnormals_and_overflow() {
    let unit = Unit {
        block: DotProduct::default(),
        inputs: ["acc", "shift", "first", "enable", "a", "b"],
        values: |(acc, shift, first, enable, a, b): DotInput| {
            [word(acc), word(shift), word(first.into()), word(enable.into()), pack(&a), pack(&b)]
        },
        result: "result",
        golden: |(acc, shift, first, enable, a, b)| {
            let (acc, shift) = if first { (0, 0) } else { (acc, shift) };
            dot(acc, shift, &GoldenBlock { lanes: a.map(Operand::from_bits), enable }, &b.map(Operand::from_bits))
        },
        latency: DotProduct::LATENCY,
    };
    // An accumulator alone, beside disabled lanes full of NaN: all special values at every shift.
    let alone = SPECIAL_FP32.into_iter().flat_map(|acc| (0..512).map(move |shift| (acc, shift, false, 0, [0x3_FE00; 8], [0x3_FC00; 8])));
    // Every pair of special operands in every lane, enabled and not, beside an accumulator of either kind of zero and an infinity.
    let pairs = OPERANDS.into_iter().flat_map(|a| OPERANDS.map(|b| (a, b)));
    let special = pairs.flat_map(|(a, b)| {
        (0..8).flat_map(move |lane| {
            let (mut left, mut right) = ([0x3_FE00; 8], [0x3_FE00; 8]);
            (left[lane], right[lane]) = (a, b);
            [(0, 1 << lane), (0x8000_0000, 1 << lane), (0xFF80_0000, 1 << lane), (0x8000_0000, 0)]
                .map(|(acc, enable)| (acc, 0, false, enable, left, right))
        })
    });
    let mut stimulus = Stimulus::new(47);
    let count = vectors();
    unit.check(alone.chain(special).chain((0..count).map(|_| dot_input(&mut stimulus))), count);
}

#[test]
fn reciprocals_equal_golden_and_ignore_a_start_while_busy() {
    let mut unit = compiled(Reciprocal32::default());
    let [start, value_in, busy, result] = ["start", "value", "busy", "result"].map(|name| signal(&mut unit, name));
    let cycle = |unit: &mut Compiled, started: bool, value: u32| {
        unit.poke(start, started.into());
        unit.poke(value_in, value.into());
        unit.step();
    };
    // Every power of two with its neighbours, subnormal ones and subnormal results included.
    let powers = (0..=254u32).flat_map(|e| [e << 23, (e << 23) + 1, (e << 23) | 0x7F_FFFF]).chain((0..23).map(|bit| 1 << bit));
    let mut stimulus = Stimulus::new(48);
    let mut noise = Stimulus::new(49);
    let random = (0..vectors()).map(|_| if stimulus.once_in(2) { stimulus.fp32() } else { (stimulus.bits() >> 32) as u32 });
    for value in SPECIAL_FP32.into_iter().chain(powers).chain(random) {
        cycle(&mut unit, true, value);
        for _ in 1..Reciprocal32::LATENCY {
            assert_eq!(unit.peek(busy), 1, "1 / {value:#010x} is done early");
            cycle(&mut unit, noise.once_in(4), 0x4040_0000);
        }
        assert_eq!(unit.peek(busy), 0, "1 / {value:#010x} is late");
        assert_eq!(unit.peek(result) as u32, fp32::reciprocal(value), "1 / {value:#010x}");
    }
}

/// The page that users read names the latencies that the units have.
#[test]
fn the_latency_table_of_the_numbers_page_is_true() {
    let page = include_str!("../../docs/numbers.md");
    for (unit, latency) in [
        ("ToOperand16", ToOperand16::LATENCY),
        ("ToOperand32", ToOperand32::LATENCY),
        ("DotProduct", DotProduct::LATENCY),
        ("Multiply32", Multiply32::LATENCY),
        ("ScaledAdd32", ScaledAdd32::LATENCY),
        ("Max32", Max32::LATENCY),
        ("Ceil32", Ceil32::LATENCY),
        ("ShiftCount", ShiftCount::LATENCY),
        ("Exp2", Exp2::LATENCY),
        ("Reciprocal32", Reciprocal32::LATENCY),
    ] {
        let row = format!("| `{unit}` | {latency} |");
        assert!(page.contains(&row), "docs/numbers.md lacks the row {row}");
    }
}
