//! The two checks of a result: bit for bit against the golden kernel, and within a bound of f64 attention.

use braid_golden::attention::{Kernel, Page, blocks};
use braid_golden::format::Format;
use braid_isa::{Geometry, TILE};
use braid_reference::{Attention, attend, decode, largest_magnitude, max_abs_error};
use braid_runtime::execute::placement;
use braid_runtime::layout::{KvLayout, padded_head_dim};
use braid_runtime::plan::base2_scale;
use braid_runtime::{Element, Outcome, Problem, SessionError};

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
pub(crate) fn check(problem: &Problem, geometry: &Geometry, outcome: &Outcome) -> Result<Checks, SessionError> {
    let (o, lse) = golden(problem, geometry)?;
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
    Ok(Checks { bit_exact, max_abs_error, max_abs_v })
}

/// O and lse of the golden kernel, with the placement of the runtime; no command list, no memory image.
fn golden(problem: &Problem, geometry: &Geometry) -> Result<(Vec<u32>, Vec<f32>), SessionError> {
    let (q, head_dim) = (problem.q(), problem.k().head_dim);
    let padded = padded_head_dim(head_dim);
    let pages = placement(geometry, problem.k().rows)?;
    let layout = KvLayout { layers: 1, kv_heads: 1, head_dim, pages_per_pe: 1 };
    let mut o = vec![0; q.rows * q.heads * head_dim];
    let mut lse = vec![f32::NEG_INFINITY; q.rows * q.heads];
    let group = problem.group();
    for kv_head in 0..problem.k().heads {
        let mut shards: Vec<Vec<Page>> = vec![Vec::new(); geometry.pes()];
        for (i, &page) in pages.iter().enumerate() {
            let positions = i * TILE..((i + 1) * TILE).min(problem.k().rows);
            let [k, v] = [problem.k(), problem.v()].map(|t| positions.clone().map(|p| t.head(p, kv_head)).collect::<Vec<_>>());
            let image: Vec<u8> = layout.writes(0, page, 0, &k, &v).into_iter().flat_map(|(_, bytes)| bytes).collect();
            let elements: Vec<u16> = image.as_chunks::<2>().0.iter().map(|b| u16::from_le_bytes(*b)).collect();
            let (k, v) = elements.split_at(TILE * padded);
            let (k_format, v_format) = (format(problem.k().element), format(problem.v().element));
            shards[page.pe].push(Page::new((i * TILE) as u32, k, k_format, v, v_format));
        }
        let active = shards.iter().rposition(|shard| !shard.is_empty()).map_or(0, |last| last + 1);
        shards.truncate(active);
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
    Ok((o, lse))
}
