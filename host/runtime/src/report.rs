//! What a run took.

use std::time::Duration;

use braid_isa::{Counter, Geometry, LANES};

/// One launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchReport {
    /// Cycles from the doorbell to completion.
    pub cycles: u64,
    /// Rows of Q_cmb.
    pub rows: usize,
    /// PEs that own KV.
    pub active_pes: usize,
    /// Merge rounds.
    pub merge_rounds: u32,
    /// Commands of all CUBEs.
    pub commands: usize,
    /// Counters of the PEs that were asked for, by `Counter` value.
    pub counters: Vec<(usize, Vec<u64>)>,
}

/// All launches of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The machine.
    pub geometry: Geometry,
    /// Launches in order.
    pub launches: Vec<LaunchReport>,
    /// Columns of a head.
    pub head_dim: usize,
    /// Visible (row, position) pairs over all query heads.
    pub visible_pairs: u64,
    /// Bytes of the distinct K and V that the rows see.
    pub visible_kv_bytes: u64,
    /// Wall time.
    pub wall: Duration,
    /// Clock cycles simulated, loading included.
    pub simulated_cycles: u64,
}

impl Report {
    pub(crate) fn new(geometry: &Geometry, head_dim: usize) -> Report {
        Report {
            geometry: *geometry,
            launches: Vec::new(),
            head_dim,
            visible_pairs: 0,
            visible_kv_bytes: 0,
            wall: Duration::ZERO,
            simulated_cycles: 0,
        }
    }

    /// Cycles of all launches.
    pub fn cycles(&self) -> u64 {
        self.launches.iter().map(|l| l.cycles).sum()
    }

    /// `2 x d x visible pairs` multiply-accumulates over what the array could do in the cycles; 0 without a clock.
    pub fn mac_utilization(&self) -> f64 {
        ratio(2.0 * self.head_dim as f64 * self.visible_pairs as f64, self.geometry.macs_per_cycle() as f64 * self.cycles() as f64)
    }

    /// Bytes of the distinct K and V that the rows see, over what all channels could deliver in the cycles; 0 without a clock.
    pub fn kv_bandwidth_utilization(&self) -> f64 {
        ratio(self.visible_kv_bytes as f64, (self.geometry.pes() * LANES * 2) as f64 * self.cycles() as f64)
    }

    /// Merge rounds of a launch.
    pub fn reduce_rounds(&self) -> u32 {
        self.launches.iter().map(|l| l.merge_rounds).max().unwrap_or(0)
    }

    /// Commands of all launches.
    pub fn commands_issued(&self) -> usize {
        self.launches.iter().map(|l| l.commands).sum()
    }

    /// A counter of one PE, summed over launches; 0 if the PE was not counted.
    pub fn counter(&self, pe: usize, counter: Counter) -> u64 {
        let own = self.launches.iter().flat_map(|l| &l.counters).filter(|(p, _)| *p == pe);
        own.filter_map(|(_, values)| values.get(counter as usize)).sum()
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
