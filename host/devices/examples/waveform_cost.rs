//! What a waveform costs: the full SIP of the default preset computes an attention problem in the compiled engine, without a dump and with every signal of one PE in
//! an FST or VCD file; rates and ratios of one run. `cargo run --release -p braid-devices --example waveform_cost [SCOPE]`

use std::error::Error;
use std::time::Instant;

use braid_devices::{DumpHandle, DumpSetup, Engine, Setup, open, with_stack};
use braid_hdl::model::ChannelTiming;
use braid_isa::Geometry;
use braid_runtime::{Element, Load, Options, Problem, Tensor, execute};
use braid_sim::wave::{Format, Selection, Window};

/// Query rows, KV positions and columns of the problem: a few thousand cycles with every PE busy.
const ROWS: usize = 64;
const POSITIONS: usize = 2048;
const HEAD_DIM: usize = 64;
/// Runs of each kind; the best counts.
const RUNS: usize = 3;

fn tensor(rows: usize, mut seed: u64) -> Tensor {
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        Element::Fp16.round((seed >> 40) as f32 / (1 << 22) as f32 - 2.0)
    };
    Tensor { rows, heads: 1, head_dim: HEAD_DIM, element: Element::Fp16, data: (0..rows * HEAD_DIM).map(|_| next()).collect() }
}

/// Seconds for each simulated cycle.
fn run(problem: &Problem, dump: Option<DumpSetup>) -> Result<(f64, u64), Box<dyn Error + Send + Sync>> {
    let handle = dump.as_ref().map(|d| d.handle.clone());
    let setup =
        Setup { geometry: Geometry::DEFAULT, engine: Engine::Compiled, channel_beats: 1 << 14, timing: ChannelTiming::default(), dump };
    let mut device = open(&setup)?;
    let start = Instant::now();
    execute(device.as_mut(), problem, &Options { load: Load::Direct, ..Options::default() }, &mut |_| ())?;
    let cycles = device.simulated_cycles();
    // The file is closed within the time measured.
    drop(device);
    let seconds = start.elapsed().as_secs_f64();
    match handle.and_then(|h| h.error()) {
        Some(error) => Err(error.into()),
        None => Ok((seconds / cycles as f64, cycles)),
    }
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let scope = std::env::args().nth(1).unwrap_or_else(|| "cube$0.pe$0".into());
    let all = 0..POSITIONS as u32;
    let ranges = (0..ROWS).map(|_| Vec::from([all.clone()])).collect();
    let problem = Problem::new(tensor(ROWS, 1), tensor(POSITIONS, 2), tensor(POSITIONS, 3), ranges)?;
    let folder = tempfile::tempdir()?;
    with_stack(|| {
        let mut best = [f64::INFINITY; 3];
        for _ in 0..RUNS {
            for (i, format) in [None, Some(Format::Fst), Some(Format::Vcd)].into_iter().enumerate() {
                let path = folder.path().join(format!("dump{i}"));
                let selection = Selection { scopes: vec![scope.clone()], memories: Vec::new() };
                let dump = format.map(|format| DumpSetup {
                    path: path.clone(),
                    format,
                    selection,
                    window: Window::default(),
                    handle: DumpHandle::default(),
                });
                let (seconds, cycles) = run(&problem, dump)?;
                best[i] = best[i].min(seconds);
                let bytes = std::fs::metadata(&path).map_or(0, |m| m.len());
                let name = ["no dump", "FST", "VCD"][i];
                println!("{name:8} {cycles} cycles, {:.0} cycles/s, {bytes} bytes", 1.0 / seconds);
            }
        }
        println!("slowdown by all signals of {scope}: FST {:.2}x, VCD {:.2}x", best[1] / best[0], best[2] / best[0]);
        Ok(())
    })
}
