//! The two checks of a result: bit for bit against the golden kernel, and within a bound of f64 attention.

use braid_golden::attention::{Kernel, Page, blocks};
use braid_golden::format::Format;
use braid_isa::layout::HostAddress;
use braid_isa::{Geometry, TILE};
use braid_reference::{Attention, attend, decode, largest_magnitude, max_abs_error};
use braid_runtime::plan::{base2_scale, padded_head_dim, pages};
use braid_runtime::{Element, Outcome, Problem};

/// Largest error of O against f64 attention of the rounded inputs, in units of max|V|.
pub(crate) const ERROR_BOUND: f64 = 5e-4;

/// What the checks found.
pub(crate) struct Checks {
    /// O and lse are the golden kernel's, bit for bit.
    pub(crate) bit_exact: bool,
    /// Largest error of O against f64 attention.
    pub(crate) max_abs_error: f64,
    /// Largest |v|.
    pub(crate) max_abs_v: f64,
}

impl Checks {
    pub(crate) fn hold(&self) -> bool {
        self.bit_exact && self.max_abs_error <= ERROR_BOUND * self.max_abs_v
    }
}

fn format(element: Element) -> Format {
    match element {
        Element::Fp16 => Format::Fp16,
        Element::Bf16 => Format::Bf16,
    }
}

/// Compares an outcome with both models.
pub(crate) fn check(problem: &Problem, geometry: &Geometry, outcome: &Outcome) -> Checks {
    let (o, lse) = golden(problem, geometry);
    let bit_exact = o == outcome.o && lse.iter().map(|x| x.to_bits()).eq(outcome.lse.iter().map(|x| x.to_bits()));
    let (q, k, v) = (problem.q(), problem.k(), problem.v());
    let shape = Attention {
        rows: q.rows,
        q_heads: q.heads,
        positions: k.rows,
        kv_heads: k.heads,
        head_dim: q.head_dim,
        scale: 1.0 / (q.head_dim as f64).sqrt(),
    };
    let ranges: Vec<Vec<std::ops::Range<usize>>> =
        problem.ranges().iter().map(|r| r.iter().map(|r| r.start as usize..r.end as usize).collect()).collect();
    let element = |e: Element| match e {
        Element::Fp16 => braid_reference::Element::Fp16,
        Element::Bf16 => braid_reference::Element::Bf16,
    };
    let values = decode(element(v.element), &v.data);
    let max_abs_v = largest_magnitude(&values);
    let expected = attend(&shape, &decode(element(q.element), &q.data), &decode(element(k.element), &k.data), &values, &ranges);
    let got: Vec<f64> = outcome.o.iter().map(|&bits| f64::from(f32::from_bits(bits))).collect();
    let max_abs_error = expected.map_or(f64::INFINITY, |expected| max_abs_error(&got, &expected.o));
    Checks { bit_exact, max_abs_error, max_abs_v }
}

/// O and lse of the golden kernel, with the placement of the runtime; no command list, no memory image.
fn golden(problem: &Problem, geometry: &Geometry) -> (Vec<u32>, Vec<f32>) {
    let (q, head_dim) = (problem.q(), problem.k().head_dim);
    let padded = padded_head_dim(head_dim);
    let mut o = vec![0; q.rows * q.heads * head_dim];
    let mut lse = vec![f32::NEG_INFINITY; q.rows * q.heads];
    let group = problem.group();
    for kv_head in 0..problem.k().heads {
        let mut shards: Vec<Vec<Page>> = Vec::new();
        for (i, (address, bytes)) in pages(problem, geometry, kv_head).into_iter().enumerate() {
            let HostAddress::Channel { pe, .. } = address else { continue };
            let elements: Vec<u16> = bytes.as_chunks::<2>().0.iter().map(|b| u16::from_le_bytes(*b)).collect();
            let (k, v) = elements.split_at(TILE * padded);
            let page = Page::new((i * TILE) as u32, k, format(problem.k().element), v, format(problem.v().element));
            if shards.len() <= pe {
                shards.resize(pe + 1, Vec::new());
            }
            shards[pe].push(page);
        }
        let kernel = Kernel { head_dim: padded, scale: base2_scale(head_dim).to_bits(), shards };
        let rows: Vec<(usize, usize)> = (0..q.rows).flat_map(|t| (0..group).map(move |g| (t, kv_head * group + g))).collect();
        let inputs: Vec<_> = rows
            .iter()
            .map(|&(token, head)| {
                let mut row = q.head(token, head).to_vec();
                row.resize(padded, 0);
                (blocks(&row, format(q.element)), problem.ranges()[token].clone())
            })
            .collect();
        for (&(token, head), state) in rows.iter().zip(kernel.rows(&inputs)) {
            let index = token * q.heads + head;
            o[index * head_dim..][..head_dim].copy_from_slice(&state.finish()[..head_dim]);
            lse[index] = braid_firmware::output::log_sum_exp(state.m, state.l);
        }
    }
    (o, lse)
}
