//! One launch: distributors, PEs and merge messages until nothing moves.

use std::collections::VecDeque;

use braid_isa::command::{MASK, WAIT, WORDS};
use braid_isa::{Code, Status};

use super::Machine;
use super::pe::{Links, Pe, Surroundings};

/// How a launch ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Status of every CUBE.
    pub cubes: Vec<Status>,
    /// Status of every PE.
    pub pes: Vec<Status>,
}

impl Outcome {
    /// Whether no unit failed.
    pub fn is_ok(&self) -> bool {
        self.units().all(|status| status.code == Code::Ok)
    }

    fn units(&self) -> impl Iterator<Item = &Status> {
        self.cubes.iter().chain(&self.pes)
    }

    /// Whether hardware may end the launch with `observed`, given that this is the model's outcome. Without a failure all codes
    /// are `ok`. Otherwise the model lists every unit that fails of itself; hardware stops at the first of them and aborts the
    /// rest, so at least one of the failures must be there, with its command, and nothing else but `ok` and `aborted`.
    pub fn allows(&self, observed: &Outcome) -> bool {
        if self.cubes.len() != observed.cubes.len() || self.pes.len() != observed.pes.len() {
            return false;
        }
        if self.is_ok() {
            return observed.is_ok();
        }
        let failed = |status: &Status| !matches!(status.code, Code::Ok | Code::Aborted);
        let mut failures = observed.units().zip(self.units()).filter(|(seen, _)| failed(seen)).peekable();
        failures.peek().is_some() && failures.all(|(seen, own)| seen == own)
    }
}

/// A CUBE's distributor.
struct Distributor {
    commands: VecDeque<[u32; WORDS]>,
    /// Commands taken.
    taken: u32,
    /// PEs that must be idle before the next command.
    waiting: u32,
    /// The list ends outside SRAM.
    overrun: bool,
    failure: Option<Status>,
}

pub(super) fn run(machine: &mut Machine, base: u32, counts: &[u32]) -> Outcome {
    let per_cube = machine.geometry.pes_per_cube;
    let mut links = Links::new(&machine.geometry);
    machine.pes.iter_mut().for_each(|pe| pe.start());
    // The lists are read at the doorbell: a kernel that overwrites its own commands is not a kernel.
    let mut distributors: Vec<Distributor> = (0..machine.geometry.cubes)
        .map(|cube| {
            let sram = &machine.srams[cube];
            let count = counts.get(cube).copied().unwrap_or(0) as usize;
            let end = (base as usize).saturating_add(count);
            let commands = (base as usize..end.min(sram.beats())).map(|word| sram.words(word)).collect();
            Distributor { commands, taken: 0, waiting: 0, overrun: count > 0 && end > sram.beats(), failure: None }
        })
        .collect();

    loop {
        let mut moved = false;
        for (cube, distributor) in distributors.iter_mut().enumerate() {
            let pes = &mut machine.pes[cube * per_cube..][..per_cube];
            while distributor.failure.is_none() && (0..per_cube).all(|pe| distributor.waiting >> pe & 1 == 0 || pes[pe].is_idle()) {
                let Some(words) = distributor.commands.pop_front() else {
                    if distributor.overrun {
                        distributor.failure = Some(Status { code: Code::BadAddress, command: distributor.taken });
                    }
                    break;
                };
                let mask = MASK.get(&words);
                if mask == 0 || mask >> per_cube != 0 {
                    distributor.failure = Some(Status { code: Code::EmptyMask, command: distributor.taken });
                    break;
                }
                moved = true;
                distributor.taken += 1;
                distributor.waiting = if WAIT.get(&words) == 1 { mask } else { 0 };
                pes.iter_mut().enumerate().filter(|(pe, _)| mask >> pe & 1 == 1).for_each(|(_, pe)| pe.push(words));
            }
        }
        for (index, pe) in machine.pes.iter_mut().enumerate() {
            let mut surroundings = Surroundings {
                geometry: &machine.geometry,
                sram: &mut machine.srams[index / per_cube],
                channel: &machine.channels[index],
                links: &mut links,
            };
            while pe.step(&mut surroundings) {
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    conclude(machine, &distributors)
}

/// Statuses once nothing moves any more.
fn conclude(machine: &Machine, distributors: &[Distributor]) -> Outcome {
    // A time-out takes its bound of cycles, every other failure stops the array at once.
    let failed = distributors.iter().any(|d| d.failure.is_some()) || machine.pes.iter().any(|pe| pe.failure().is_some());
    let stuck = !failed && machine.pes.iter().any(|pe| !pe.is_idle());
    let rest = |command: u32| {
        let code = if failed || stuck { Code::Aborted } else { Code::Ok };
        Status { code, command: command.saturating_sub(1) }
    };
    let cube_pes = machine.pes.chunks(machine.geometry.pes_per_cube);
    let held_up = |d: &Distributor, pes: &[Pe]| pes.iter().enumerate().any(|(pe, p)| d.waiting >> pe & 1 == 1 && !p.is_idle());
    let cubes = distributors.iter().zip(cube_pes).map(|(d, pes)| match d.failure {
        Some(failure) => failure,
        None if stuck && held_up(d, pes) => Status { code: Code::TimeoutCommand, command: d.taken - 1 },
        None => rest(d.taken),
    });
    let pes = machine.pes.iter().map(|pe| match pe.failure() {
        Some(failure) => failure,
        None if stuck && !pe.is_idle() => Status { code: Code::TimeoutPartner, command: pe.commands() - 1 },
        None => rest(pe.commands()),
    });
    Outcome { cubes: cubes.collect(), pes: pes.collect() }
}
