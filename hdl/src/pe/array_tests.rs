//! Whole kernels on four connected PEs, bit for bit against the golden machine, in calm and in rough surroundings; and every way to fail.

use braid_golden::format::Format;
use braid_golden::stimulus::Stimulus;
use braid_isa::layout::{merge_rounds, page_beats};
use braid_isa::{Code, Command, Counter, Operation};

use super::array_bench::{Array, CHANNEL_BEATS, GEOMETRY, ROWS, Weather};

const Q: u32 = 0;
const TABLE: u32 = 1024;
const OUTPUT: u32 = 2048;
const TIMEOUT: u32 = 4000;
const PER_CUBE: usize = GEOMETRY.pes_per_cube;

/// A random kernel over all PEs.
#[derive(Clone)]
struct Case {
    head_dim: usize,
    rows: usize,
    active: usize,
    formats: [Format; 3],
    /// Pages of every PE.
    pages: Vec<usize>,
    tables: usize,
    stimulus: Stimulus,
}

impl Case {
    fn random(seed: u64, head_dim: usize, rows: usize, active: usize) -> Case {
        let mut s = Stimulus::new(seed);
        let formats = std::array::from_fn(|_| if s.once_in(2) { Format::Fp16 } else { Format::Bf16 });
        let pages = (0..GEOMETRY.pes()).map(|pe| if pe < active { s.below(4) as usize } else { 0 }).collect();
        Case { head_dim, rows, active, formats, pages, tables: 1, stimulus: s }
    }

    /// Fills Q, row tables and pages. Memory that no row sees is poison.
    fn load(&mut self, array: &mut Array) {
        let s = &mut self.stimulus;
        let positions = 16 * 4 * self.active as u32;
        let q: Vec<u16> = (0..self.rows * self.head_dim).map(|_| self.formats[0].round(s.normal() * 2.0)).collect();
        let words: Vec<u128> = q.chunks(8).map(|c| c.iter().rev().fold(0, |w, &x| w << 16 | u128::from(x))).collect();
        let mut seen = vec![false; positions as usize];
        let mut tables = Vec::new();
        for _ in 0..self.tables {
            let mut table = Vec::new();
            for row in 0..self.rows {
                let mut entry = [0u32; 8];
                let ranges = if row % 5 == 3 { 0 } else { 1 + s.below(4) as usize };
                for i in 0..ranges {
                    let (a, b) = (s.below(positions + 1), s.below(positions + 1));
                    (entry[2 * i], entry[2 * i + 1]) = if s.once_in(3) { (0, positions) } else { (a.min(b), a.max(b)) };
                    seen[entry[2 * i] as usize..entry[2 * i + 1] as usize].fill(true);
                }
                table.extend(entry.as_chunks::<4>().0.iter().map(|w| w.iter().rev().fold(0u128, |b, &x| b << 32 | u128::from(x))));
            }
            tables.push(table);
        }
        for cube in 0..GEOMETRY.cubes {
            array.write_sram(cube, Q as usize, &words);
            for (i, table) in tables.iter().enumerate() {
                array.write_sram(cube, TABLE as usize + 256 * i, table);
            }
        }
        for (pe, &pages) in self.pages.iter().enumerate() {
            for page in 0..pages {
                let base = 16 * (page * self.active + pe);
                let mut k: Vec<u16> = (0..16 * self.head_dim).map(|_| self.formats[1].round(s.normal() * 2.0)).collect();
                let mut v: Vec<u16> = (0..16 * self.head_dim).map(|_| self.formats[2].round(s.normal() * 2.0)).collect();
                for j in (0..16).filter(|j| !seen[base + j]) {
                    for c in 0..self.head_dim {
                        k[j * self.head_dim + c] = 0xFFFF;
                        v[c * 16 + j] = 0xFFFF;
                    }
                }
                let beat = page * page_beats(self.head_dim);
                array.write_channel(pe, beat, &k);
                array.write_channel(pe, beat + page_beats(self.head_dim) / 2, &v);
            }
        }
    }

    fn configure(&self) -> Operation {
        Operation::Configure {
            rows: self.rows as u16,
            head_dim: self.head_dim as u16,
            scale: ((1.0 / (self.head_dim as f64).sqrt() * std::f64::consts::LOG2_E) as f32).to_bits(),
            q_address: Q,
            q_bf16: self.formats[0] == Format::Bf16,
            k_bf16: self.formats[1] == Format::Bf16,
            v_bf16: self.formats[2] == Format::Bf16,
            active: self.active as u8,
        }
    }

    fn attend(&self, page: usize, pages: usize) -> Operation {
        Operation::Attend {
            page: (page * page_beats(self.head_dim)) as u32,
            position: (16 * page * self.active) as u32,
            pages: pages as u16,
            stride: self.active as u16,
        }
    }

    fn ending(&self) -> Vec<Command> {
        let rounds = merge_rounds(self.active) as u8;
        let mut list = Vec::new();
        if rounds > 0 {
            list.push(all(Operation::Merge { first_round: 0, rounds }));
        }
        list.push(all(Operation::Store { output: OUTPUT }));
        list
    }

    /// One list a CUBE: every pass loads its table and attends to all pages, in one command a PE or in two.
    fn composite(&self) -> Vec<Vec<Command>> {
        let list = |cube: usize| {
            let mut list = vec![all(self.configure())];
            for table in 0..self.tables as u32 {
                list.push(all(Operation::LoadRows { table: TABLE + 256 * table }));
                for lane in 0..PER_CUBE {
                    let pages = self.pages[cube * PER_CUBE + lane];
                    let split = pages.min(1 + lane);
                    for (first, end) in [(0, split), (split, pages)] {
                        if first < end {
                            list.push(Command { interleave: true, ..only(lane, self.attend(first, end - first)) });
                        }
                    }
                }
            }
            list.extend(self.ending());
            list
        };
        (0..GEOMETRY.cubes).map(list).collect()
    }

    /// The same kernel, every stage its own command, issued and waited for.
    fn primitive(&self) -> Vec<Vec<Command>> {
        let list = |cube: usize| {
            let mut list = vec![all(self.configure()), all(Operation::LoadRows { table: TABLE })];
            for lane in 0..PER_CUBE {
                for page in 0..self.pages[cube * PER_CUBE + lane] {
                    let Operation::Attend { page: beat, position, .. } = self.attend(page, 1) else { unreachable!("an attend") };
                    list.push(Command { interleave: true, ..only(lane, Operation::LoadKv { page: beat, position }) });
                    for row_tile in 0..self.rows.div_ceil(ROWS) as u16 {
                        let stages = [
                            Operation::FetchQ { row_tile },
                            Operation::Qk { row_tile },
                            Operation::Softmax { row_tile },
                            Operation::Pv { row_tile },
                        ];
                        list.extend(stages.map(|stage| only(lane, stage)));
                    }
                }
            }
            list.extend(self.ending());
            list.iter().map(|c| Command { wait: true, ..*c }).collect()
        };
        (0..GEOMETRY.cubes).map(list).collect()
    }
}

fn all(operation: Operation) -> Command {
    Command { wait: false, interleave: false, mask: 3, operation }
}

fn only(lane: usize, operation: Operation) -> Command {
    Command { mask: 1 << lane, ..all(operation) }
}

fn run(mut case: Case, weather: Weather) -> u64 {
    let mut array = Array::new(weather, TIMEOUT, 1 << merge_rounds(case.active));
    case.load(&mut array);
    array.check(&case.composite())
}

#[test]
fn kernels_equal_the_golden_machine_for_every_number_of_active_pes() {
    for (seed, active) in [(1, 1), (2, 2), (3, 3), (4, 4)] {
        run(Case::random(seed, 16 + 8 * seed as usize, 5, active), Weather::CALM);
    }
}

#[test]
fn random_stalls_change_no_bit() {
    for seed in [11, 13, 14] {
        let head_dim = [16, 24, 40, 16][seed as usize % 4];
        run(Case::random(seed, head_dim, 1 + seed as usize % 6, 1 + seed as usize % 4), Weather::rough(seed));
    }
}

#[test]
fn the_largest_head_and_pes_without_pages_end() {
    let mut case = Case::random(30, 128, 2, 3);
    case.pages = vec![1, 0, 1, 0];
    run(case, Weather::rough(30));
    let mut case = Case::random(33, 16, 3, 4);
    case.pages = vec![0; 4];
    run(case, Weather::CALM);
}

#[test]
fn several_passes_share_one_row_state() {
    let mut case = Case::random(31, 16, 6, 2);
    case.tables = 3;
    case.pages = vec![3, 2, 0, 0];
    run(case, Weather::rough(31));
}

#[test]
fn primitive_commands_give_the_bits_of_composite_ones() {
    let mut case = Case::random(32, 24, 5, 4);
    case.pages = vec![1, 2, 0, 1];
    let mut array = Array::new(Weather::rough(32), TIMEOUT, 4);
    case.load(&mut array);
    // Primitive commands do not count pairs, in the golden machine either.
    array.check(&case.primitive());
    array.check(&case.composite());
}

#[test]
fn a_kernel_follows_another_without_a_trace() {
    let mut array = Array::new(Weather::rough(40), TIMEOUT, 2);
    for seed in 40..43 {
        let mut case = Case::random(seed, [48, 16, 24][seed as usize % 3], 1 + (seed as usize * 5) % 7, 2);
        case.load(&mut array);
        array.check(&case.composite());
    }
    let mut case = Case::random(45, 16, 4, 2);
    case.load(&mut array);
    let twice = case.composite().into_iter().map(|list| [list.clone(), list].concat()).collect::<Vec<_>>();
    array.check(&twice);
}

#[test]
fn every_illegal_command_stops_the_array_and_a_reset_revives_it() {
    let mut case = Case::random(50, 16, 2, 2);
    case.pages = vec![1, 1, 0, 0];
    let mut array = Array::new(Weather::rough(50), TIMEOUT, 2);
    case.load(&mut array);
    let good = case.composite();
    let page = |page: u32| Operation::Attend { page, position: 0, pages: 1, stride: 1 };
    let word = |operation: Operation| only(1, operation).encode();
    let faults: Vec<(usize, [u32; 4], Code)> = vec![
        (0, word(page(0)), Code::NotConfigured),
        (2, [0xFF | 1 << 8 | 2 << 16, 0, 0, 0], Code::IllegalOpcode),
        (4, word(Operation::FetchQ { row_tile: 1 }), Code::IllegalField),
        (3, word(page(CHANNEL_BEATS - 63)), Code::BadAddress),
        (5, word(Operation::Store { output: 8191 }), Code::BadAddress),
    ];
    for (place, words, code) in faults {
        let mut lists: Vec<Vec<[u32; 4]>> = good.iter().map(|list| list.iter().map(Command::encode).collect()).collect();
        lists[0].insert(place, words);
        let (outcome, _) = array.check_words(&lists);
        assert_eq!(outcome.pes[1].code, code);
        array.reset();
        array.check(&good);
    }
}

#[test]
fn a_partner_that_never_comes_is_named() {
    let mut array = Array::new(Weather::CALM, 500, 2);
    let mut case = Case::random(60, 16, 2, 2);
    case.load(&mut array);
    let list = [all(case.configure()), only(0, Operation::Merge { first_round: 0, rounds: 1 })];
    let (outcome, _) = array.check_words(&[list.iter().map(Command::encode).collect(), vec![]]);
    assert_eq!((outcome.pes[0].code, outcome.pes[0].command), (Code::TimeoutPartner, 1));
    array.reset();
    array.check(&case.composite());
}

/// Launches a kernel in which one thing never answers; the status of PE 0 and the cycles until the array stopped.
fn broken(fault: impl Fn(&mut Array)) -> (Code, u32, u64) {
    let mut case = Case::random(61, 16, 4, 1);
    case.pages = vec![2, 0, 0, 0];
    let mut array = Array::new(Weather::CALM, 500, 1);
    case.load(&mut array);
    fault(&mut array);
    let lists: Vec<Vec<[u32; 4]>> = case.composite().iter().map(|list| list.iter().map(Command::encode).collect()).collect();
    let (outcome, cycles) = array.launch(&lists);
    assert!(outcome.pes[1..].iter().all(|s| matches!(s.code, Code::Ok | Code::Aborted)));
    (outcome.pes[0].code, outcome.pes[0].command, cycles)
}

#[test]
fn whatever_never_answers_is_named_within_the_bound() {
    let (code, command, cycles) = broken(|array| array.kill_channel(0));
    assert_eq!((code, command), (Code::TimeoutMemory, 2));
    assert!(cycles < 1500);
    let (code, command, cycles) = broken(|array| array.deaf = Some(0));
    assert_eq!((code, command), (Code::TimeoutMulticast, 1));
    assert!(cycles < 1500);
    let (code, command, cycles) = broken(|array| array.gagged = Some(0));
    assert_eq!((code, command), (Code::TimeoutStore, 4));
    assert!(cycles < 2500);
}

#[test]
fn the_array_issues_every_cycle_when_the_channel_keeps_up() {
    for (rows, latency, pages) in [(2, 100, 6), (4, 60, 2)] {
        let mut case = Case::random(70, 128, rows, 1);
        case.pages = vec![pages, 0, 0, 0];
        let mut array = Array::new(Weather { latency, ..Weather::CALM }, TIMEOUT, 1);
        // Every row sees every position.
        let words = vec![0x3C00_3C00_3C00_3C00_3C00_3C00_3C00_3C00; rows * 16];
        let range = u128::from(16 * pages as u64) << 32;
        let table: Vec<u128> = (0..rows).flat_map(|_| [range, 0]).collect();
        array.write_sram(0, Q as usize, &words);
        array.write_sram(0, TABLE as usize, &table);
        array.write_channel(0, 0, &vec![0x3800; pages * page_beats(128) * 8]);
        let list = vec![
            only(0, case.configure()),
            only(0, Operation::LoadRows { table: TABLE }),
            only(0, case.attend(0, pages / 2)),
            only(0, case.attend(pages / 2, pages / 2)),
        ];
        let cycles = array.check(&[list, vec![]]);
        let issues = array.counter(0, Counter::QkCycles) + array.counter(0, Counter::PvCycles);
        assert_eq!(issues, (pages * rows / ROWS * (4 * 128 + 2)) as u64);
        let lost = cycles - issues;
        // Commands and row table, the first K tile, the last softmax: nothing a page.
        let fill = latency + 2 * 128 + 150;
        assert!(lost < fill, "{rows} rows: {lost} of {cycles} cycles without an issue");
    }
}
