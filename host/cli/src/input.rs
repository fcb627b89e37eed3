//! The fan-out that `run` computes.

use std::ops::Range;

use braid_runtime::{Element, Problem, Tensor};
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};

use crate::arguments::{ElementName, EngineName, RunOptions};
use crate::error::Error;
use crate::tensors;

/// 8 agents over a shared prefix of 293 positions, q, k and v of layer 0, KV head 0 of SmolLM2-135M-Instruct.
const FANOUT: &[u8] = include_bytes!("../../../testbenches/data/smollm2_fanout_layer0_head0.safetensors");

/// Tokens that the slow simulator carries by default.
const RUST_HDL_TOKENS: usize = 1;

/// A problem, and what to say about it.
pub(crate) struct Input {
    pub(crate) problem: Problem,
    /// One line: where it comes from and what was sliced.
    pub(crate) description: String,
}

pub(crate) fn element(name: ElementName) -> Element {
    match name {
        ElementName::Fp16 => Element::Fp16,
        ElementName::Bf16 => Element::Bf16,
    }
}

/// The problem that the options name.
pub(crate) fn load(options: &RunOptions) -> Result<Input, Error> {
    let element = element(options.machine.element);
    let random = [options.agents, options.tokens, options.prefix, options.head_dim, options.group].iter().any(Option::is_some);
    let (problem, description) = if let Some(path) = &options.input {
        let bytes = std::fs::read(path).map_err(|source| Error::Read { path: path.clone(), source })?;
        let name = path.display().to_string();
        (tensors::problem(&name, &bytes, element)?, name)
    } else if random {
        let fan_out_of = FanOut {
            agents: options.agents.unwrap_or(8),
            tokens: options.tokens.unwrap_or(4),
            prefix: options.prefix.unwrap_or(64),
            head_dim: options.head_dim.unwrap_or(64),
            group: options.group.unwrap_or(1),
            seed: options.seed,
        };
        fan_out(&fan_out_of, element)?
    } else {
        let name = "SmolLM2-135M fan-out (8 agents, 293 shared positions, layer 0)";
        (tensors::problem(name, FANOUT, element)?, name.to_string())
    };
    let tokens = problem.q().rows;
    let wanted = options.rows.unwrap_or(if options.machine.engine == EngineName::RustHdl { RUST_HDL_TOKENS } else { tokens }).min(tokens);
    if wanted == tokens {
        return Ok(Input { problem, description });
    }
    let description =
        format!("{description}; sliced to {wanted} of {tokens} tokens (--rows N for more), all {} positions", problem.k().rows);
    Ok(Input { problem: slice(&problem, wanted), description })
}

/// `wanted` tokens, spread evenly.
fn slice(problem: &Problem, wanted: usize) -> Problem {
    let q = problem.q();
    let chosen: Vec<usize> = (0..wanted).map(|i| i * q.rows / wanted).collect();
    let width = q.heads * q.head_dim;
    let data = chosen.iter().flat_map(|&row| q.data[row * width..][..width].iter().copied()).collect();
    let ranges = chosen.iter().map(|&row| problem.ranges()[row].clone()).collect();
    let q = Tensor { rows: wanted, data, ..*q };
    Problem::new(q, problem.k().clone(), problem.v().clone(), ranges).expect("a slice of a checked problem fits")
}

/// A random fan-out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FanOut {
    pub(crate) agents: usize,
    pub(crate) tokens: usize,
    pub(crate) prefix: usize,
    pub(crate) head_dim: usize,
    pub(crate) group: usize,
    pub(crate) seed: u64,
}

/// A small launch in which every PE of the smaller presets has work, for recordings.
pub(crate) fn small() -> Result<Problem, Error> {
    fan_out(&FanOut { agents: 2, tokens: 2, prefix: 70, head_dim: 32, group: 1, seed: 1 }, Element::Fp16).map(|(problem, _)| problem)
}

/// Random normal tensors: agents with private tokens behind a shared prefix, causal among themselves.
pub(crate) fn fan_out(fan_out: &FanOut, element: Element) -> Result<(Problem, String), Error> {
    let &FanOut { agents, tokens, prefix, head_dim, group, seed } = fan_out;
    if group == 0 || head_dim == 0 {
        return Err(Error::Options("--group and --head-dim must be at least 1".into()));
    }
    let rows = agents.checked_mul(tokens);
    let elements = |n: Option<usize>| n.and_then(|n| n.checked_mul(group)).and_then(|n| n.checked_mul(head_dim));
    let positions = rows.and_then(|rows| rows.checked_add(prefix));
    let (Some(rows), Some(positions), Some(q_elements), Some(_)) = (rows, positions, elements(rows), elements(positions)) else {
        return Err(Error::Options("the fan-out is larger than memory can hold".into()));
    };
    if q_elements > 1 << 30 || positions.saturating_mul(head_dim) > 1 << 30 {
        return Err(Error::Options(format!("a fan-out of {rows} tokens over {positions} positions is larger than memory can hold")));
    }
    let mut random = rand::rngs::StdRng::seed_from_u64(seed);
    let mut tensor = |rows: usize, heads: usize| {
        let data = (0..rows * heads * head_dim).map(|_| element.round(StandardNormal.sample(&mut random))).collect();
        Tensor { rows, heads, head_dim, element, data }
    };
    let (q, k, v) = (tensor(rows, group), tensor(positions, 1), tensor(positions, 1));
    let ranges = (0..rows)
        .map(|row| {
            let own = prefix + row / tokens.max(1) * tokens;
            let end = own + row % tokens.max(1) + 1;
            vec![Range { start: 0, end: prefix as u32 }, Range { start: own as u32, end: end as u32 }]
        })
        .collect();
    let problem = Problem::new(q, k, v, ranges).map_err(|source| Error::Problem { name: "the options".into(), source })?;
    let description = format!("random fan-out: {agents} agents x {tokens} tokens, {prefix} shared positions, seed {seed}");
    Ok((problem, description))
}
