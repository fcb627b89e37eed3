//! The golden kernel against the independent f64 attention, on random problems and on the tensors of a real model.

use std::ops::Range;
use std::path::Path;

use braid_golden::attention::{Kernel, Page, RowState, blocks};
use braid_golden::format::Format;
use braid_golden::stimulus::Stimulus;
use braid_isa::TILE;
use braid_reference::{Attention, Element, attend, decode, largest_magnitude, max_abs_error};
use proptest::prelude::*;
use safetensors::{Dtype, SafeTensors};

/// Largest error of O over the largest magnitude of V that the contract allows.
const BOUND: f64 = 5e-4;

/// A grouped-query attention of 16-bit tensors with one KV head.
#[derive(Clone, Debug)]
struct Problem {
    /// Query heads.
    group: usize,
    head_dim: usize,
    /// [rows][group][d].
    q: Vec<u16>,
    /// [positions][d].
    k: Vec<u16>,
    /// [positions][d].
    v: Vec<u16>,
    q_format: Format,
    k_format: Format,
    v_format: Format,
    /// Per row.
    ranges: Vec<Vec<Range<usize>>>,
}

fn element(format: Format) -> Element {
    match format {
        Format::Fp16 => Element::Fp16,
        Format::Bf16 => Element::Bf16,
    }
}

impl Problem {
    fn positions(&self) -> usize {
        self.k.len() / self.head_dim
    }

    fn scale(&self) -> f64 {
        1.0 / (self.head_dim as f64).sqrt()
    }

    /// States of all rows x heads; pages dealt round-robin to `pes` PEs, unused positions of the last page poisoned.
    fn golden(&self, pes: usize) -> Vec<RowState> {
        let d = self.head_dim;
        let poison = 0xFFFF;
        let mut shards = vec![Vec::new(); pes];
        for first in (0..self.positions()).step_by(TILE) {
            let (mut k, mut v) = (vec![poison; TILE * d], vec![poison; TILE * d]);
            for j in 0..TILE.min(self.positions() - first) {
                for c in 0..d {
                    k[j * d + c] = self.k[(first + j) * d + c];
                    v[c * TILE + j] = self.v[(first + j) * d + c];
                }
            }
            shards[first / TILE % pes].push(Page::new(first as u32, &k, self.k_format, &v, self.v_format));
        }
        let kernel = Kernel { head_dim: d, scale: ((self.scale() * std::f64::consts::LOG2_E) as f32).to_bits(), shards };
        let rows: Vec<_> = self
            .q
            .chunks_exact(d)
            .enumerate()
            .map(|(row, q)| {
                let ranges = self.ranges[row / self.group].iter().map(|r| r.start as u32..r.end as u32).collect();
                (blocks(q, self.q_format), ranges)
            })
            .collect();
        kernel.rows(&rows)
    }

    /// Error of O over max |V|, and largest error of lse.
    fn errors(&self, states: &[RowState]) -> (f64, f64) {
        let v = decode(element(self.v_format), &self.v);
        let shape = Attention {
            rows: self.ranges.len(),
            q_heads: self.group,
            positions: self.positions(),
            kv_heads: 1,
            head_dim: self.head_dim,
            scale: self.scale(),
        };
        let (q, k) = (decode(element(self.q_format), &self.q), decode(element(self.k_format), &self.k));
        let expected = attend(&shape, &q, &k, &v, &self.ranges).expect("tensors fit the shape");
        let float = |bits: u32| f64::from(f32::from_bits(bits));
        let o: Vec<f64> = states.iter().flat_map(RowState::finish).map(float).collect();
        let lse: Vec<f64> = states.iter().map(|s| lse(float(s.m), float(s.l))).collect();
        let error = max_abs_error(&o, &expected.o);
        let unit = largest_magnitude(&v);
        (if error == 0.0 { 0.0 } else { error / unit }, max_abs_error(&lse, &expected.lse))
    }
}

/// The host's rule: -inf for a row that saw nothing, NaN for one that saw scores of -inf alone.
fn lse(m: f64, l: f64) -> f64 {
    if m == f64::NEG_INFINITY && l > 0.0 { f64::NAN } else { (m + l.log2()) * std::f64::consts::LN_2 }
}

fn format() -> impl Strategy<Value = Format> {
    prop_oneof![Just(Format::Fp16), Just(Format::Bf16)]
}

/// Ranges within `0..=positions`, empty ones and overlaps included.
fn ranges(positions: usize) -> impl Strategy<Value = Vec<Range<usize>>> {
    let bound = 0..=positions;
    prop::collection::vec((bound.clone(), bound).prop_map(|(a, b)| a.min(b)..a.max(b)), 0..6)
}

/// Problems with elements of Q and K of standard deviation 1 to `spread`.
fn problem(spread: f32) -> impl Strategy<Value = Problem> {
    let shape = (
        1usize..40,
        1usize..=8,
        2usize..=16,
        prop_oneof![1 => Just(0usize), 8 => 1usize..300],
        any::<u64>(),
        [format(), format(), format()],
    );
    shape.prop_flat_map(move |(rows, group, d_blocks, positions, seed, [q_format, k_format, v_format])| {
        let rows = rows.div_ceil(group);
        let spread = prop_oneof![Just(1.0), Just(spread)];
        (prop::collection::vec(ranges(positions), rows), spread).prop_map(move |(ranges, spread)| {
            let mut stimulus = Stimulus::new(seed);
            let d = d_blocks * 8;
            let mut tensor =
                |n: usize, format: Format, spread: f32| -> Vec<u16> { (0..n).map(|_| format.round(stimulus.normal() * spread)).collect() };
            Problem {
                group,
                head_dim: d,
                q: tensor(rows * group * d, q_format, spread),
                k: tensor(positions * d, k_format, spread),
                v: tensor(positions * d, v_format, 1.0),
                q_format,
                k_format,
                v_format,
                ranges,
            }
        })
    })
}

/// Replaces single elements by NaN, infinities of both signs and the largest subnormal.
fn sprinkle(problem: &mut Problem, seed: u64) {
    let mut stimulus = Stimulus::new(seed);
    let formats = [problem.q_format, problem.k_format, problem.v_format];
    for (tensor, format) in [&mut problem.q, &mut problem.k, &mut problem.v].into_iter().zip(formats) {
        for _ in 0..stimulus.below(4) {
            let specials = match format {
                Format::Fp16 => [0x7E00, 0x7C00, 0xFC00, 0x03FF, 0xFFFF, 0x7C00],
                Format::Bf16 => [0x7FC0, 0x7F80, 0xFF80, 0x007F, 0xFFFF, 0x7F80],
            };
            let special = specials[stimulus.below(6) as usize];
            if !tensor.is_empty() {
                let at = stimulus.below(tensor.len() as u32) as usize;
                tensor[at] = special;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nan_and_infinity_in_sight_do_what_ieee_says_and_elsewhere_nothing(mut problem in problem(1.0), pes in 1usize..=32, seed: u64) {
        sprinkle(&mut problem, seed);
        let (o, lse) = problem.errors(&problem.golden(pes));
        prop_assert!(o < BOUND, "O is off by {o} of max |V|");
        prop_assert!(lse < 1e-3, "lse is off by {lse}");
    }

    #[test]
    fn random_problems_stay_within_the_bound(problem in problem(4.0), pes in 1usize..=32) {
        let (o, lse) = problem.errors(&problem.golden(pes));
        prop_assert!(o < BOUND, "O is off by {o} of max |V|");
        prop_assert!(lse < 1e-3, "lse is off by {lse}");
    }
}

/// One row over 40 positions, all elements of a tensor equal but V's, which count up to 1.
fn uniform(head_dim: usize, q: f32, k: f32) -> Problem {
    let (positions, format) = (40, Format::Fp16);
    Problem {
        group: 1,
        head_dim,
        q: vec![format.round(q); head_dim],
        k: vec![format.round(k); positions * head_dim],
        v: (0..positions * head_dim).map(|i| format.round((i / head_dim + 1) as f32 / positions as f32)).collect(),
        q_format: format,
        k_format: format,
        v_format: format,
        ranges: vec![vec![Range { start: 0, end: positions }]],
    }
}

#[test]
fn very_large_scores_of_both_signs_are_scores_like_any_other() {
    for (head_dim, q, k) in
        [(128, 448.0, -1880.0), (128, 448.0, 1880.0), (128, 256.0, 256.0), (128, -256.0, 256.0), (16, 65_504.0, -65_504.0)]
    {
        let mut problem = uniform(head_dim, q, k);
        for pes in [1, 3] {
            let states = problem.golden(pes);
            let (o, _) = problem.errors(&states);
            assert!(o < BOUND, "{q} x {k}: O is off by {o}");
        }
        // One position whose score is far below the others weighs nothing, far above everything.
        let (sign, ranges) = ((q * k).signum(), problem.ranges[0].clone());
        problem.k[..head_dim].fill(Format::Fp16.round(0.0));
        let o = problem.golden(2)[0].finish();
        let alone = |range: Range<usize>| {
            let mut p = problem.clone();
            p.ranges = vec![vec![range]];
            p.golden(2)[0].finish()
        };
        assert_eq!(o, alone(if sign > 0.0 { 1..ranges[0].end } else { 0..1 }), "{q} x {k}");
    }
}

/// The tensors of a fan-out file.
fn fan_out(path: &Path) -> Problem {
    let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let file = SafeTensors::deserialize(&bytes).expect("a safetensors file");
    let words = |name: &str| -> (Vec<usize>, Vec<u16>) {
        let tensor = file.tensor(name).expect("the tensor is in the file");
        assert_eq!(tensor.dtype(), Dtype::F16, "{name}");
        (tensor.shape().to_vec(), tensor.data().as_chunks::<2>().0.iter().map(|b| u16::from_le_bytes(*b)).collect())
    };
    let ((q_shape, q), (k_shape, k), (_, v)) = (words("q"), words("k"), words("v"));
    assert_eq!(k_shape[1], 1, "one KV head");
    let ranges = file.tensor("ranges").expect("ranges are in the file");
    let bounds: Vec<usize> = ranges.data().as_chunks::<4>().0.iter().map(|b| i32::from_le_bytes(*b) as usize).collect();
    let ranges =
        bounds.chunks_exact(2 * ranges.shape()[1]).map(|row| row.as_chunks::<2>().0.iter().map(|&[a, b]| a..b).collect()).collect();
    let (q_format, k_format, v_format) = (Format::Fp16, Format::Fp16, Format::Fp16);
    Problem { group: q_shape[1], head_dim: q_shape[2], q, k, v, q_format, k_format, v_format, ranges }
}

fn check_fan_out(path: &Path) {
    let problem = fan_out(path);
    for pes in [1, 5, 32] {
        let (o, lse) = problem.errors(&problem.golden(pes));
        println!("{pes} PEs: O {o:.3e} of max |V|, lse {lse:.3e}");
        assert!(o < BOUND, "{pes} PEs: O is off by {o} of max |V|");
        assert!(lse < 1e-3, "{pes} PEs: lse is off by {lse}");
    }
}

#[test]
fn a_real_model_s_fan_out_stays_within_the_bound() {
    check_fan_out(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testbenches/data/smollm2_fanout_layer0_head0.safetensors"));
}

#[test]
#[ignore = "takes a file of the user's: BRAID_FANOUT=F cargo test -p braid-golden --test against_reference -- --ignored"]
fn the_user_s_fan_out_stays_within_the_bound() {
    let path = std::env::var_os("BRAID_FANOUT").expect("BRAID_FANOUT names a safetensors file");
    check_fan_out(Path::new(&path));
}
