//! `braid verify`: simulators in lock step.

use std::time::{Duration, Instant};

use braid_devices::{Engine, Setup, open_lockstep};
use braid_hdl::model::ChannelTiming;
use braid_runtime::{Element, Load, Options, Progress, execute};
use comfy_table::{Cell, CellAlignment, Table, presets::UTF8_FULL_CONDENSED};
use indicatif::ProgressBar;
use serde::Serialize;

use crate::arguments::{EngineName, VerifyOptions};
use crate::check::check;
use crate::error::Error;
use crate::input::{FanOut, fan_out};
use crate::run::{channel_beats, stalls, style};

/// What was compared.
#[derive(Serialize)]
struct Summary {
    input: String,
    preset: &'static str,
    engines: Vec<&'static str>,
    cycles_compared: u64,
    registers: usize,
    agree: bool,
    /// The first difference.
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<String>,
    bit_exact: bool,
    wall_seconds: f64,
}

/// Runs a fan-out in all simulators; whether they agree and the first equals golden.
pub(crate) fn verify(options: &VerifyOptions) -> Result<bool, Error> {
    let mut engines: Vec<Engine> = Vec::new();
    for engine in options.engines.iter().map(|e| e.engine()) {
        if engine == EngineName::Golden.engine() {
            return Err(Error::Options("--engines takes RTL simulators: compiled, interpreter, rust-hdl".into()));
        }
        if !engines.contains(&engine) {
            engines.push(engine);
        }
    }
    if engines.len() < 2 {
        return Err(Error::Options("--engines needs at least two different simulators".into()));
    }
    stalls(options.memory_stalls)?;
    let &VerifyOptions { agents, tokens, prefix, head_dim, group, seed, .. } = options;
    let (problem, description) = fan_out(&FanOut { agents, tokens, prefix, head_dim, group, seed }, Element::Fp16)?;
    let geometry = options.preset.geometry();
    let setup = Setup {
        geometry,
        engine: engines[0],
        channel_beats: channel_beats(&problem, &geometry)?,
        timing: ChannelTiming { latency: 40, stall_once_in: options.memory_stalls, seed },
        dump: None,
    };
    let start = Instant::now();
    let bar = ProgressBar::new_spinner().with_style(style());
    bar.enable_steady_tick(Duration::from_millis(200));
    bar.set_message("building the machines");
    let (mut device, watch) = open_lockstep(&setup, &engines, options.cycles.unwrap_or(u64::MAX))?;
    let run = Options { issue: options.issue.issue(), load: Load::Port, ..Options::default() };
    let result = execute(device.as_mut(), &problem, &run, &mut |progress| {
        let what = match progress {
            Progress::Loading { .. } => "loading",
            Progress::Running { .. } => "launch",
        };
        bar.set_message(format!("{what}: {} cycles compared", watch.comparison().cycles));
    });
    bar.finish_and_clear();
    let found = watch.comparison();
    // Engines that differ may well drive a machine into an error; then the difference is the answer.
    let checks = match result {
        Ok(outcome) => check(&problem, &geometry, &outcome)?.hold(),
        Err(_) if found.divergence.is_some() => false,
        Err(error) => return Err(error.into()),
    };
    let summary = Summary {
        input: description,
        preset: geometry.name,
        engines: engines.iter().map(|e| e.name()).collect(),
        cycles_compared: found.cycles,
        registers: found.registers,
        agree: found.divergence.is_none(),
        difference: found.divergence.map(|d| d.to_string()),
        bit_exact: checks,
        wall_seconds: start.elapsed().as_secs_f64(),
    };
    if options.json {
        println!("{}", serde_json::to_string(&summary).expect("a summary of numbers and strings is JSON"));
    } else {
        println!("{}\n{}", summary.input, table(&summary));
    }
    if let Some(difference) = &summary.difference {
        eprintln!("the simulators differ: {difference}");
    }
    Ok(summary.agree && summary.bit_exact)
}

fn table(summary: &Summary) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED);
    let yes = |held: bool| if held { "yes" } else { "NO" }.to_string();
    for (name, value) in [
        ("preset", summary.preset.to_string()),
        ("simulators", summary.engines.join(", ")),
        ("cycles compared", summary.cycles_compared.to_string()),
        ("registers compared in each", summary.registers.to_string()),
        ("all registers equal", yes(summary.agree)),
        ("result equals golden", yes(summary.bit_exact)),
        ("wall time", format!("{:.1} s", summary.wall_seconds)),
    ] {
        table.add_row([Cell::new(name), Cell::new(value).set_alignment(CellAlignment::Right)]);
    }
    table
}
