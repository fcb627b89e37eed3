//! Reports: a table for people, one JSON object for programs.

use std::collections::BTreeMap;

use braid_isa::Counter;
use braid_runtime::Report;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Cell, CellAlignment, Table};
use serde::Serialize;

use crate::arguments::MachineOptions;
use crate::check::Checks;

/// Everything that a run tells.
#[derive(Serialize)]
pub(crate) struct Summary {
    pub(crate) input: String,
    pub(crate) preset: &'static str,
    pub(crate) engine: &'static str,
    pub(crate) policy: &'static str,
    pub(crate) issue: &'static str,
    pub(crate) rows: usize,
    pub(crate) positions: usize,
    pub(crate) head_dim: usize,
    pub(crate) q_heads: usize,
    pub(crate) kv_heads: usize,
    pub(crate) launches: usize,
    pub(crate) cycles: u64,
    pub(crate) mac_utilization: f64,
    pub(crate) kv_bandwidth_utilization: f64,
    pub(crate) reduce_rounds: u32,
    /// Cycles of PE 0 by what it did; they sum to `cycles`.
    pub(crate) phases: BTreeMap<&'static str, u64>,
    /// Other counters of PE 0.
    pub(crate) counters: BTreeMap<&'static str, u64>,
    pub(crate) commands_issued: usize,
    /// Largest error of O against f64 attention; null if a NaN stands where the other has a number.
    pub(crate) max_abs_error: f64,
    /// Largest |v|, the unit of the error's bound.
    pub(crate) max_abs_v: f64,
    pub(crate) bit_exact: bool,
    pub(crate) wall_seconds: f64,
    pub(crate) sim_cycles_per_second: f64,
}

impl Summary {
    pub(crate) fn new(
        input: String,
        options: &MachineOptions,
        problem: &braid_runtime::Problem,
        report: &Report,
        checks: &Checks,
    ) -> Summary {
        let pick = |cycles: bool| {
            Counter::ALL.iter().filter(|c| c.divides_cycles() == cycles).map(|&c| (c.name(), report.counter(0, c))).collect()
        };
        let wall = report.wall.as_secs_f64();
        Summary {
            input,
            preset: report.geometry.name,
            engine: options.engine.engine().name(),
            policy: "sk",
            issue: match options.issue {
                crate::arguments::IssueName::Composite => "composite",
                crate::arguments::IssueName::Primitive => "primitive",
            },
            rows: problem.q().rows * problem.group(),
            positions: problem.k().rows,
            head_dim: problem.k().head_dim,
            q_heads: problem.q().heads,
            kv_heads: problem.k().heads,
            launches: report.launches.len(),
            cycles: report.cycles(),
            mac_utilization: report.mac_utilization(),
            kv_bandwidth_utilization: report.kv_bandwidth_utilization(),
            reduce_rounds: report.reduce_rounds(),
            phases: pick(true),
            counters: pick(false),
            commands_issued: report.commands_issued(),
            max_abs_error: checks.max_abs_error,
            max_abs_v: checks.max_abs_v,
            bit_exact: checks.bit_exact,
            wall_seconds: wall,
            sim_cycles_per_second: report.simulated_cycles as f64 / wall,
        }
    }

    /// The report for people.
    pub(crate) fn table(&self) -> String {
        let mut table = Table::new();
        table.load_preset(UTF8_FULL_CONDENSED);
        let mut row = |name: &str, value: String| {
            table.add_row([Cell::new(name), Cell::new(value).set_alignment(CellAlignment::Right)]);
        };
        row("machine", format!("{} preset, {}", self.preset, self.engine));
        row("Q_cmb rows x positions x d", format!("{} x {} x {}", self.rows, self.positions, self.head_dim));
        row("launches, commands", format!("{}, {}", self.launches, self.commands_issued));
        if self.cycles > 0 {
            row("cycles", self.cycles.to_string());
            row("MAC utilization", format!("{:.1}%", 100.0 * self.mac_utilization));
            row("KV bandwidth utilization", format!("{:.1}%", 100.0 * self.kv_bandwidth_utilization));
            for (name, cycles) in self.phases.iter().filter(|(_, cycles)| **cycles > 0) {
                row(&format!("  PE 0: {}", name.trim_end_matches("_cycles").replace('_', " ")), cycles.to_string());
            }
        }
        row("merge rounds", self.reduce_rounds.to_string());
        row("bits equal golden", if self.bit_exact { "yes" } else { "NO" }.to_string());
        row("max error against f64 / max|V|", format!("{:.1e}", self.max_abs_error / self.max_abs_v.max(f64::MIN_POSITIVE)));
        row("wall time", format!("{:.1} s", self.wall_seconds));
        if self.cycles > 0 {
            row("simulated cycles a second", format!("{:.0}", self.sim_cycles_per_second));
        }
        format!("{}\n{table}", self.input)
    }
}
