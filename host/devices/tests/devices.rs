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
    assert!(error(&problem(1, 1, 1, 400, 16), device.as_mut()).contains("400 positions"));
}
