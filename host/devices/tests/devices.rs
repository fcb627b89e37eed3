//! Problems through the runtime: the RTL and the golden machine give the same bits, and the machine's limits are told.

use braid_devices::{Engine, Setup, open, with_stack};
use braid_firmware::Issue;
use braid_hdl::model::ChannelTiming;
use braid_isa::Geometry;
use braid_runtime::execute::Outcome;
use braid_runtime::{Element, Options, Problem, Tensor, execute};

fn tensor(rows: usize, heads: usize, head_dim: usize, seed: &mut u64) -> Tensor {
    let data = (0..rows * heads * head_dim)
        .map(|_| {
            *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            Element::Fp16.round(((*seed >> 40) as f32 / (1 << 23) as f32 - 1.0) * 3.0)
        })
        .collect();
    Tensor { rows, heads, head_dim, element: Element::Fp16, data }
}

fn problem(rows: usize, q_heads: usize, kv_heads: usize, positions: usize, head_dim: usize) -> Problem {
    let mut seed = (rows * 31 + positions * 7 + head_dim) as u64;
    let (q, k) = (tensor(rows, q_heads, head_dim, &mut seed), tensor(positions, kv_heads, head_dim, &mut seed));
    let v = tensor(positions, kv_heads, head_dim, &mut seed);
    let last = positions as u32;
    let ranges =
        (0..rows as u32).map(|r| if r % 4 == 2 { vec![] } else { vec![0..last / 2, (last / 2 + r % 3).min(last)..last] }).collect();
    Problem::new(q, k, v, ranges).expect("a problem that fits")
}

fn setup(geometry: Geometry, engine: Engine, channel_beats: u32) -> Setup {
    Setup { geometry, engine, channel_beats, timing: ChannelTiming::default(), dump: None }
}

fn run(problem: &Problem, geometry: Geometry, engine: Engine, issue: Issue) -> Outcome {
    with_stack(|| {
        let mut device = open(&setup(geometry, engine, 1 << 14)).expect("a preset");
        let options = Options { issue, ..Default::default() };
        execute(device.as_mut(), problem, &options, &mut |_| ()).expect("the launch ends")
    })
}

#[test]
fn rtl_and_golden_give_the_same_bits() {
    for (problem, issue) in [
        (problem(3, 2, 1, 50, 20), Issue::Composite),
        (problem(2, 2, 2, 33, 16), Issue::Primitive),
        (problem(1, 1, 1, 0, 16), Issue::Composite),
    ] {
        let golden = run(&problem, Geometry::TINY, Engine::Golden, issue);
        let rtl = run(&problem, Geometry::TINY, Engine::Compiled, issue);
        assert_eq!(golden.o, rtl.o);
        let interpreted = run(&problem, Geometry::TINY, Engine::Interpreter, issue);
        assert_eq!((&interpreted.o, interpreted.report.cycles()), (&rtl.o, rtl.report.cycles()));
        assert_eq!(golden.lse.iter().map(|x| x.to_bits()).collect::<Vec<_>>(), rtl.lse.iter().map(|x| x.to_bits()).collect::<Vec<_>>());
        assert!(rtl.report.cycles() > 0);
    }
}

#[test]
fn more_rows_than_the_row_store_take_several_launches() {
    let problem = problem(150, 1, 1, 40, 16);
    let outcome = run(&problem, Geometry::TINY, Engine::Golden, Issue::Composite);
    assert_eq!(outcome.report.launches.len(), 3);
    let one = run(&problem, Geometry::SMALL, Engine::Golden, Issue::Composite);
    assert_eq!(one.report.launches.len(), 1);
}

#[test]
fn no_rows_and_no_positions_are_answered() {
    let outcome = run(&problem(0, 1, 1, 20, 16), Geometry::TINY, Engine::Golden, Issue::Composite);
    assert!(outcome.o.is_empty());
    let outcome = run(&problem(2, 1, 1, 0, 16), Geometry::TINY, Engine::Golden, Issue::Composite);
    assert_eq!(outcome.o, vec![0; 32]);
    assert_eq!(outcome.lse, vec![f32::NEG_INFINITY; 2]);
}

#[test]
fn what_does_not_fit_is_an_error_that_names_the_limit() {
    let mut device = open(&setup(Geometry::TINY, Engine::Golden, 64)).expect("a preset");
    let error = |p: &Problem, d: &mut dyn braid_runtime::Device| {
        execute(d, p, &Options::default(), &mut |_| ()).expect_err("too large").to_string()
    };
    assert!(error(&problem(1, 1, 1, 16, 130), device.as_mut()).contains("larger than the 128 columns"));
    assert!(error(&problem(1, 1, 1, 400, 16), device.as_mut()).contains("7 pages of 16 positions a PE"));
}

/// One machine after the other problem, without a reset in between: random shapes, ranges and memory stalls.
#[test]
fn random_shapes_one_after_the_other_give_the_golden_bits() {
    let mut seed = 0x5EED_u64;
    let mut below = move |n: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % n
    };
    for (geometry, problems) in [(Geometry::TINY, 16), (Geometry::SMALL, 6)] {
        let stalled =
            Setup { timing: ChannelTiming { latency: 7, stall_once_in: 3, seed: 5 }, ..setup(geometry, Engine::Compiled, 1 << 13) };
        let shapes: Vec<[usize; 5]> = (0..problems)
            .map(|_| {
                let (kv_heads, group) = (1 + below(2) as usize, 1 + below(8) as usize);
                [1 + below(40) as usize, kv_heads * group, kv_heads, below(301) as usize, 16 << below(4)]
            })
            .collect();
        let ranges: Vec<Vec<Vec<std::ops::Range<u32>>>> = shapes
            .iter()
            .map(|&[rows, _, _, positions, _]| {
                let mut range = || {
                    let (a, b) = (below(positions as u64 + 1) as u32, below(positions as u64 + 1) as u32);
                    a.min(b)..a.max(b)
                };
                (0..rows).map(|row| (0..row % 7).map(|_| range()).collect()).collect()
            })
            .collect();
        with_stack(|| {
            let mut rtl = open(&stalled).expect("a preset");
            let mut golden = open(&setup(geometry, Engine::Golden, 1 << 13)).expect("a preset");
            for (&[rows, q_heads, kv_heads, positions, head_dim], ranges) in shapes.iter().zip(ranges) {
                let whole = problem(rows, q_heads, kv_heads, positions, head_dim);
                let problem = Problem::new(whole.q().clone(), whole.k().clone(), whole.v().clone(), ranges).expect("a problem that fits");
                let run = |device: &mut dyn braid_runtime::Device| {
                    execute(device, &problem, &Options::default(), &mut |_| ()).expect("the launch ends")
                };
                let (expected, got) = (run(golden.as_mut()), run(rtl.as_mut()));
                assert_eq!(expected.o, got.o, "{rows} rows, {q_heads} over {kv_heads} heads, {positions} positions, d = {head_dim}");
                let bits = |lse: &[f32]| lse.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&expected.lse), bits(&got.lse));
            }
        });
    }
}
