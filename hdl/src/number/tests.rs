//! The small units against the golden model, in rust-hdl's own simulator: all pairs of special values, and random ones. (The volume tests are
//! in `tests/number_volume.rs`.)

use std::collections::VecDeque;

use braid_golden::format::{Format, Operand};
use braid_golden::stimulus::{SPECIAL_FP32, Stimulus};
use braid_golden::{exp2 as golden_exp2, fp32};
use rust_hdl::prelude::*;

use super::*;
use crate::testing::cycle;

fn fp32_pairs(random: usize) -> Vec<(u32, u32)> {
    let mut stimulus = Stimulus::new(31);
    let mut pairs: Vec<_> = SPECIAL_FP32.iter().flat_map(|&a| SPECIAL_FP32.iter().map(move |&b| (a, b))).collect();
    pairs.extend((0..random).map(|_| (stimulus.fp32(), stimulus.fp32())));
    pairs
}

/// Feeds a pipeline one input a cycle and compares every output with the golden value of the input `latency` cycles before.
fn compare<B: Block, I: Copy + std::fmt::Debug>(
    unit: &mut B,
    latency: usize,
    inputs: &[I],
    drive: impl Fn(&mut B, I),
    clock: impl Fn(&mut B, Clock) + Copy,
    result: impl Fn(&B) -> u32,
    golden: impl Fn(I) -> u32,
) {
    unit.connect_all();
    let mut waiting = VecDeque::new();
    for &input in inputs.iter().chain(&inputs[..latency.min(inputs.len())]) {
        drive(unit, input);
        waiting.push_back(input);
        cycle(unit, clock);
        if waiting.len() == latency {
            let input = waiting.pop_front().unwrap_or(input);
            assert_eq!(result(unit), golden(input), "{:#010x} of input {input:x?}", result(unit));
        }
    }
}

#[test]
fn every_16_bit_value_converts_to_its_operand() {
    let mut unit = ToOperand16::default();
    let inputs: Vec<(u16, bool)> = (0..=u16::MAX).flat_map(|v| [(v, false), (v, true)]).collect();
    compare(
        &mut unit,
        ToOperand16::LATENCY,
        &inputs,
        |u, (value, bf16)| {
            u.value.next = bits(value.into());
            u.bf16.next = bf16;
        },
        |u, c| u.clock.next = c,
        |u| u.operand.val().to_u32(),
        |(value, bf16)| if bf16 { Format::Bf16 } else { Format::Fp16 }.operand(value).to_bits(),
    );
}

#[test]
fn fp32_rounds_to_operand() {
    let inputs: Vec<u32> = fp32_pairs(10_000).into_iter().map(|p| p.0).collect();
    compare(
        &mut ToOperand32::default(),
        ToOperand32::LATENCY,
        &inputs,
        |u, v| u.value.next = bits(v.into()),
        |u, c| u.clock.next = c,
        |u| u.operand.val().to_u32(),
        |v| Operand::from_fp32(v).to_bits(),
    );
}

#[test]
fn products_are_ieee() {
    compare(
        &mut Multiply32::default(),
        Multiply32::LATENCY,
        &fp32_pairs(10_000),
        |u, (a, b)| {
            u.a.next = bits(a.into());
            u.b.next = bits(b.into());
        },
        |u, c| u.clock.next = c,
        |u| u.result.val().to_u32(),
        |(a, b)| fp32::multiply(a, b),
    );
}

#[test]
fn scaled_sums_round_once() {
    let mut stimulus = Stimulus::new(32);
    let inputs: Vec<_> = fp32_pairs(15_000)
        .into_iter()
        .map(|(a, b)| {
            let k = [0, stimulus.below(40), stimulus.below(512), 511][stimulus.below(4) as usize];
            if stimulus.once_in(2) { (a, k, b, 0) } else { (a, 0, b, k) }
        })
        .collect();
    compare(
        &mut ScaledAdd32::default(),
        ScaledAdd32::LATENCY,
        &inputs,
        |u, (a, ka, b, kb)| {
            u.a.next = bits(a.into());
            u.ka.next = bits(ka.into());
            u.b.next = bits(b.into());
            u.kb.next = bits(kb.into());
        },
        |u, c| u.clock.next = c,
        |u| u.result.val().to_u32(),
        |(a, ka, b, kb)| fp32::scaled_add(a, ka, b, kb),
    );
}

#[test]
fn maximum_ceil_and_shift_count_equal_golden() {
    let pairs = fp32_pairs(10_000);
    compare(
        &mut Max32::default(),
        Max32::LATENCY,
        &pairs,
        |u, (a, b)| {
            u.a.next = bits(a.into());
            u.b.next = bits(b.into());
        },
        |u, c| u.clock.next = c,
        |u| u.result.val().to_u32(),
        |(a, b)| fp32::max(a, b),
    );
    compare(
        &mut Ceil32::default(),
        Ceil32::LATENCY,
        &pairs,
        |u, (a, _)| u.value.next = bits(a.into()),
        |u, c| u.clock.next = c,
        |u| u.result.val().to_u32(),
        |(a, _)| fp32::ceil(a),
    );
    let counts: Vec<u32> = (0..600).map(|k| (k as f32).to_bits()).chain(pairs.iter().map(|p| p.0)).collect();
    compare(
        &mut ShiftCount::default(),
        ShiftCount::LATENCY,
        &counts,
        |u, d| u.difference.next = bits(d.into()),
        |u, c| u.clock.next = c,
        |u| u.count.val().to_u32(),
        |d| fp32::shift_count(d, 0),
    );
}

#[test]
fn exp2_equals_golden() {
    let mut stimulus = Stimulus::new(33);
    let near = (0..20_000).map(|_| (-(stimulus.below(1 << 24) as f32) / 131_072.0).to_bits());
    let inputs: Vec<u32> = near.chain(fp32_pairs(10_000).into_iter().map(|p| p.0)).collect();
    compare(
        &mut Exp2::default(),
        Exp2::LATENCY,
        &inputs,
        |u, v| u.value.next = bits(v.into()),
        |u, c| u.clock.next = c,
        |u| u.result.val().to_u32(),
        golden_exp2::exp2,
    );
}

#[test]
fn reciprocals_are_correctly_rounded_and_arrive_in_time() {
    let mut unit = Reciprocal32::default();
    unit.connect_all();
    for (value, _) in fp32_pairs(1500) {
        unit.value.next = bits(value.into());
        unit.start.next = true;
        cycle(&mut unit, |u, c| u.clock.next = c);
        unit.start.next = false;
        unit.value.next = bits(0);
        for _ in 1..Reciprocal32::LATENCY {
            assert!(unit.busy.val());
            cycle(&mut unit, |u, c| u.clock.next = c);
        }
        assert!(!unit.busy.val());
        assert_eq!(unit.result.val().to_u32(), fp32::reciprocal(value), "1 / {value:#010x}");
    }
}
