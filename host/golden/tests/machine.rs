//! The golden machine: command lists against the golden kernel, and every failure.

use braid_golden::attention::{Kernel, Page, Range, RowState, blocks, passes};
use braid_golden::format::{Format, NEG_INFINITY};
use braid_golden::machine::{Machine, Outcome};
use braid_golden::stimulus::Stimulus;
use braid_isa::layout::{HostAddress, ROW_TABLE_WORDS, merge_rounds, output_index, output_words, owned_columns, page_beats, q_words};
use braid_isa::{Code, Command, Counter, Geometry, Operation, RANGES_PER_PASS, Status, TILE};
use proptest::prelude::*;

/// Beats behind every channel.
const CHANNEL: u32 = 1 << 12;
/// Word address of Q_cmb; the command list is at 0.
const Q_ADDRESS: u32 = 2048;

/// Attention of one launch.
#[derive(Clone, Debug)]
struct Problem {
    geometry: Geometry,
    head_dim: usize,
    active: usize,
    positions: usize,
    formats: [Format; 3],
    ranges: Vec<Vec<Range>>,
    seed: u64,
}

/// Raw elements: q [row][d], and every page's k [16][d] and v [d][16].
struct Tensors {
    q: Vec<u16>,
    pages: Vec<(Vec<u16>, Vec<u16>)>,
}

fn command(mask: u8, operation: Operation) -> Command {
    Command { wait: false, interleave: false, mask, operation }
}

fn bytes(elements: &[u16]) -> Vec<u8> {
    elements.iter().flat_map(|e| e.to_le_bytes()).collect()
}

impl Problem {
    fn tensors(&self) -> Tensors {
        let mut stimulus = Stimulus::new(self.seed);
        let mut tensor = |n: usize, format: Format| -> Vec<u16> { (0..n).map(|_| format.round(stimulus.normal() * 2.0)).collect() };
        let [q, k, v] = self.formats;
        let page = TILE * self.head_dim;
        let q = tensor(self.ranges.len() * self.head_dim, q);
        Tensors { q, pages: (0..self.positions.div_ceil(TILE)).map(|_| (tensor(page, k), tensor(page, v))).collect() }
    }

    fn scale(&self) -> u32 {
        ((std::f64::consts::LOG2_E / (self.head_dim as f64).sqrt()) as f32).to_bits()
    }

    /// Page i lies on PE i mod active.
    fn golden(&self, tensors: &Tensors) -> Vec<RowState> {
        let mut shards = vec![Vec::new(); self.active];
        for (i, (k, v)) in tensors.pages.iter().enumerate() {
            shards[i % self.active].push(Page::new((i * TILE) as u32, k, self.formats[1], v, self.formats[2]));
        }
        let kernel = Kernel { head_dim: self.head_dim, scale: self.scale(), shards };
        let q = tensors.q.chunks_exact(self.head_dim).map(|q| blocks(q, self.formats[0]));
        kernel.rows(&q.zip(self.ranges.iter().cloned()).collect::<Vec<_>>())
    }

    fn table_address(&self) -> u32 {
        Q_ADDRESS + (self.geometry.row_tiles(self.ranges.len()) * q_words(self.geometry.rows, self.head_dim)) as u32
    }

    fn pass_count(&self) -> usize {
        self.ranges.iter().map(|r| passes(r).len()).max().unwrap_or(0)
    }

    fn output_address(&self) -> u32 {
        self.table_address() + (self.pass_count() * self.ranges.len() * ROW_TABLE_WORDS) as u32
    }

    fn configure(&self) -> Operation {
        let [q, k, v] = self.formats.map(|f| f == Format::Bf16);
        Operation::Configure {
            rows: self.ranges.len() as u16,
            head_dim: self.head_dim as u16,
            scale: self.scale(),
            q_address: Q_ADDRESS,
            q_bf16: q,
            k_bf16: k,
            v_bf16: v,
            active: self.active as u8,
        }
    }

    /// Loads the tensors and row tables; rows that fill the last row tile are poisoned.
    fn load(&self, machine: &mut Machine, tensors: &Tensors) {
        let padded = self.geometry.row_tiles(self.ranges.len()) * self.geometry.rows * self.head_dim;
        let mut q = tensors.q.clone();
        q.resize(padded, 0xFFFF);
        let mut tables = Vec::new();
        for pass in 0..self.pass_count() {
            for ranges in &self.ranges {
                let ranges = passes(ranges).get(pass).cloned().unwrap_or_default();
                let bound = |i: usize| ranges.get(i).map_or([7, 7], |r| [r.start, r.end]);
                tables.extend((0..RANGES_PER_PASS).flat_map(bound).flat_map(u32::to_le_bytes));
            }
        }
        for cube in 0..self.geometry.cubes {
            machine.write(HostAddress::sram_word(cube, Q_ADDRESS as usize), &bytes(&q)).unwrap();
            machine.write(HostAddress::sram_word(cube, self.table_address() as usize), &tables).unwrap();
        }
        for (i, (k, v)) in tensors.pages.iter().enumerate() {
            let beat = i / self.active * page_beats(self.head_dim);
            machine.write(HostAddress::channel_beat(i % self.active, beat), &bytes(&[k.as_slice(), v].concat())).unwrap();
        }
    }

    /// Pages on a PE.
    fn pages_of(&self, pe: usize) -> usize {
        if pe < self.active { (self.positions.div_ceil(TILE) + self.active - 1 - pe) / self.active } else { 0 }
    }

    fn commands(&self, cube: usize, primitive: bool) -> Vec<Command> {
        let all = ((1u32 << self.geometry.pes_per_cube) - 1) as u8;
        let mut list = vec![command(all, self.configure())];
        for pass in 0..self.pass_count() {
            let table = self.table_address() + (pass * self.ranges.len() * ROW_TABLE_WORDS) as u32;
            list.push(command(all, Operation::LoadRows { table }));
            for pe in 0..self.geometry.pes_per_cube {
                let index = cube * self.geometry.pes_per_cube + pe;
                let (mask, pages, stride) = (1 << pe, self.pages_of(index), self.active as u16);
                if pages == 0 {
                } else if primitive {
                    for page in 0..pages {
                        let position = (page * self.active * TILE) as u32;
                        let load = Operation::LoadKv { page: (page * page_beats(self.head_dim)) as u32, position };
                        list.push(Command { interleave: true, ..command(mask, load) });
                        for row_tile in 0..self.geometry.row_tiles(self.ranges.len()) as u16 {
                            let stages = [
                                Operation::FetchQ { row_tile },
                                Operation::Qk { row_tile },
                                Operation::Softmax { row_tile },
                                Operation::Pv { row_tile },
                            ];
                            list.extend(stages.map(|stage| command(mask, stage)));
                        }
                    }
                } else {
                    let attend = Operation::Attend { page: 0, position: (index * TILE) as u32, pages: pages as u16, stride };
                    list.push(command(mask, attend));
                }
            }
        }
        if self.active > 1 {
            list.push(command(all, Operation::Merge { first_round: 0, rounds: merge_rounds(self.active) as u8 }));
        }
        list.push(command(all, Operation::Store { output: self.output_address() }));
        list
    }

    fn run(&self, machine: &mut Machine, primitive: bool) -> Vec<RowState> {
        let lists: Vec<_> = (0..self.geometry.cubes).map(|cube| self.commands(cube, primitive)).collect();
        let outcome = launch(machine, &lists);
        assert!(outcome.is_ok(), "{outcome:?}");
        self.outputs(machine)
    }

    /// Rows as they were stored: O finished, l and m.
    fn outputs(&self, machine: &Machine) -> Vec<RowState> {
        let rounds = merge_rounds(self.active);
        let fp32 = |pe: usize, row: usize, column: usize| {
            let index = output_index(&self.geometry, self.head_dim, row, column);
            let byte = self.output_address() * 16 + index as u32 * 4;
            let mut bits = [0; 4];
            machine.read(HostAddress::Sram { cube: pe / self.geometry.pes_per_cube, byte }, &mut bits).unwrap();
            u32::from_le_bytes(bits)
        };
        (0..self.ranges.len())
            .map(|row| {
                let mut o = vec![0; self.head_dim];
                for pe in 0..self.geometry.pes() {
                    let (first, end) = owned_columns(self.head_dim, pe, rounds);
                    (first..end).for_each(|column| o[column] = fp32(pe, row, column));
                }
                RowState { m: fp32(0, row, self.head_dim + 1), l: fp32(0, row, self.head_dim), o }
            })
            .collect()
    }
}

/// Writes the lists to word 0 and launches.
fn launch(machine: &mut Machine, lists: &[Vec<Command>]) -> Outcome {
    let words: Vec<Vec<[u32; 4]>> = lists.iter().map(|list| list.iter().map(Command::encode).collect()).collect();
    launch_words(machine, &words)
}

fn launch_words(machine: &mut Machine, lists: &[Vec<[u32; 4]>]) -> Outcome {
    for (cube, list) in lists.iter().enumerate() {
        let bytes: Vec<u8> = list.as_flattened().iter().flat_map(|w| w.to_le_bytes()).collect();
        machine.write(HostAddress::sram_word(cube, 0), &bytes).unwrap();
    }
    machine.launch(0, &lists.iter().map(|list| list.len() as u32).collect::<Vec<_>>())
}

/// What the machine stores for a state of the golden kernel.
fn stored(states: &[RowState]) -> Vec<RowState> {
    states.iter().map(|s| RowState { o: s.finish(), ..s.clone() }).collect()
}

fn problem() -> impl Strategy<Value = Problem> {
    let format = || prop_oneof![Just(Format::Fp16), Just(Format::Bf16)];
    let geometry = prop_oneof![2 => Just(Geometry::TINY), 1 => Just(Geometry::SMALL), 1 => Just(Geometry::DEFAULT)];
    let shape = (geometry, 2usize..=8, 0usize..200, any::<u64>(), [format(), format(), format()], 1usize..=20);
    shape.prop_flat_map(|(geometry, d_blocks, positions, seed, formats, rows)| {
        let bound = 0..=positions as u32 + 20;
        let range = (bound.clone(), bound).prop_map(|(a, b)| a.min(b)..a.max(b));
        let ranges = prop::collection::vec(prop::collection::vec(range, 0..8), rows);
        (1..=geometry.pes(), ranges).prop_map(move |(active, mut ranges)| {
            // Positions of the last page are all there, those behind it are not.
            let end = positions.next_multiple_of(TILE) as u32;
            ranges.iter_mut().flatten().for_each(|r| *r = r.start.min(end)..r.end.min(end));
            Problem { geometry, head_dim: d_blocks * 8, active, positions, formats, ranges, seed }
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn composite_and_primitive_lists_give_the_bits_of_the_golden_kernel(problem in problem()) {
        let tensors = problem.tensors();
        let mut machine = Machine::new(problem.geometry, CHANNEL);
        problem.load(&mut machine, &tensors);
        let expected = stored(&problem.golden(&tensors));
        prop_assert_eq!(&problem.run(&mut machine, false), &expected);
        prop_assert_eq!(&problem.run(&mut machine, true), &expected, "primitive");
        prop_assert_eq!(&problem.run(&mut machine, false), &expected, "nothing is left over from the launch before");
    }

    #[test]
    fn any_four_words_end_with_a_status(lists in prop::collection::vec(prop::collection::vec(any::<[u32; 4]>(), 0..6), 0..3), seed: u64) {
        let mut machine = Machine::new(Geometry::TINY, CHANNEL);
        // Mostly well-formed words, so that more than the version check is reached.
        let mut stimulus = Stimulus::new(seed);
        let opcodes = braid_isa::command::TABLE.map(|f| u32::from(f.opcode));
        let mend = |mut words: [u32; 4]| {
            let opcode = opcodes[stimulus.below(10) as usize];
            if !stimulus.once_in(8) {
                words[0] = opcode | 0x100 | (words[0] & 0x3000) | (1 + stimulus.below(3)) << 16;
                words[1] &= 0x000F_000F;
                words[3] &= 0x0000_000F;
            }
            words
        };
        let lists: Vec<Vec<[u32; 4]>> = { let mut mend = mend; lists.iter().map(|l| l.iter().map(|w| mend(*w)).collect()).collect() };
        let outcome = launch_words(&mut machine, &lists);
        prop_assert_eq!((outcome.cubes.len(), outcome.pes.len()), (2, 4));
        prop_assert!(outcome.allows(&outcome));
    }
}

/// Two rows on the tiny array, all PEs active, three pages on each but the last PE.
fn small_problem() -> Problem {
    Problem {
        geometry: Geometry::TINY,
        head_dim: 16,
        active: 4,
        positions: 11 * TILE,
        formats: [Format::Fp16; 3],
        ranges: vec![vec![3..90], vec![], vec![0..176]],
        seed: 77,
    }
}

#[test]
fn interleave_raises_the_position_by_the_pe_s_index() {
    let mut problem = small_problem();
    problem.positions = 12 * TILE;
    let tensors = problem.tensors();
    let mut machine = Machine::new(problem.geometry, CHANNEL);
    problem.load(&mut machine, &tensors);
    let attend = Operation::Attend { page: 0, position: 0, pages: 3, stride: 4 };
    let list = vec![
        command(3, problem.configure()),
        command(3, Operation::LoadRows { table: problem.table_address() }),
        Command { interleave: true, ..command(3, attend) },
        command(3, Operation::Merge { first_round: 0, rounds: 1 }),
        command(3, Operation::Merge { first_round: 1, rounds: 1 }),
        command(3, Operation::Store { output: problem.output_address() }),
    ];
    assert!(launch(&mut machine, &[list.clone(), list]).is_ok());
    assert_eq!(problem.outputs(&machine), stored(&problem.golden(&tensors)));
}

#[test]
fn rows_that_fill_the_last_tile_are_stored_as_empty_states() {
    let problem = small_problem();
    let mut machine = Machine::new(problem.geometry, CHANNEL);
    problem.load(&mut machine, &problem.tensors());
    problem.run(&mut machine, false);
    let word = |row: usize, column: usize| {
        let byte = problem.output_address() * 16 + output_index(&problem.geometry, problem.head_dim, row, column) as u32 * 4;
        let mut bits = [0; 4];
        machine.read(HostAddress::Sram { cube: 0, byte }, &mut bits).unwrap();
        u32::from_le_bytes(bits)
    };
    assert_eq!((word(3, 0), word(3, 16), word(3, 17)), (0, 0, NEG_INFINITY));
    assert_eq!(word(1, 17), NEG_INFINITY, "row 1 sees nothing");
    assert_ne!(word(2, 17), NEG_INFINITY);
}

#[test]
fn counters_tell_commands_tiles_and_rounds() {
    let problem = small_problem();
    let mut machine = Machine::new(problem.geometry, CHANNEL);
    problem.load(&mut machine, &problem.tensors());
    problem.run(&mut machine, false);
    let counter = |pe: usize, counter: Counter| machine.counter(pe, counter).unwrap();
    assert_eq!(counter(0, Counter::Commands), 5);
    assert_eq!(counter(0, Counter::MergeRounds), 2);
    // PE 3 has pages 3 and 7; row tile 0 (rows 0 and 1) sees positions 3 to 89, row tile 1 all of them.
    assert_eq!((counter(3, Counter::TilesComputed), counter(3, Counter::TilesSkipped)), (3, 1));
    assert_eq!(machine.counter(0, Counter::QkCycles), None);
}

/// Runs one command on PE 0 after a `configure`, and returns PE 0's status.
fn status_of(words: [u32; 4], configured: bool) -> Status {
    let mut machine = Machine::new(Geometry::TINY, CHANNEL);
    let configure = command(1, small_problem().configure()).encode();
    let list = if configured { vec![configure, words] } else { vec![words] };
    launch_words(&mut machine, &[list]).pes[0]
}

#[test]
fn every_bad_command_names_its_code_and_index() {
    let good = |operation: Operation| command(1, operation).encode();
    let problem = small_problem();
    let configure = |change: fn(&mut [u32; 4])| {
        let mut words = good(problem.configure());
        change(&mut words);
        words
    };
    let with = |mut words: [u32; 4], word: usize, bits: u32| {
        words[word] ^= bits;
        words
    };
    let sram = Geometry::TINY.sram_words as u32;
    let output = output_words(&Geometry::TINY, 3, 16) as u32;
    let page = page_beats(16) as u32;
    use Code::*;
    let cases = [
        (with(good(Operation::Pv { row_tile: 0 }), 0, 0x100), IllegalVersion),
        (with(good(Operation::Pv { row_tile: 0 }), 0, 0x300), IllegalVersion),
        (with(good(Operation::Pv { row_tile: 0 }), 0, 0x1), IllegalOpcode),
        (with(good(Operation::Pv { row_tile: 0 }), 0, 0x4000), IllegalOpcode),
        (with(good(Operation::Pv { row_tile: 0 }), 0, 0x2000), IllegalField),
        (with(good(Operation::Pv { row_tile: 0 }), 2, 1), IllegalField),
        (good(Operation::Pv { row_tile: 2 }), IllegalField),
        (good(Operation::FetchQ { row_tile: 2 }), IllegalField),
        (good(Operation::Qk { row_tile: u16::MAX }), IllegalField),
        (good(Operation::Softmax { row_tile: 2 }), IllegalField),
        (good(Operation::Attend { page: 0, position: 0, pages: 0, stride: 1 }), IllegalField),
        (good(Operation::Attend { page: 0, position: 0, pages: 1, stride: 0 }), IllegalField),
        (good(Operation::Attend { page: CHANNEL - page + 1, position: 0, pages: 1, stride: 1 }), BadAddress),
        (good(Operation::Attend { page: CHANNEL - page, position: 0, pages: 2, stride: 1 }), BadAddress),
        (good(Operation::Attend { page: u32::MAX, position: 0, pages: u16::MAX, stride: 1 }), BadAddress),
        (good(Operation::Attend { page: CHANNEL - page, position: 0, pages: 1, stride: 1 }), Ok),
        (good(Operation::LoadKv { page: CHANNEL - page + 1, position: 0 }), BadAddress),
        (good(Operation::LoadRows { table: sram - 5 }), BadAddress),
        (good(Operation::LoadRows { table: sram - 6 }), Ok),
        (good(Operation::Store { output: sram - output + 1 }), BadAddress),
        (good(Operation::Store { output: sram - output }), Ok),
        (good(Operation::Merge { first_round: 0, rounds: 0 }), IllegalField),
        (good(Operation::Merge { first_round: 1, rounds: 2 }), IllegalField),
        (good(Operation::Merge { first_round: 255, rounds: 255 }), IllegalField),
        (configure(|w| w[1] &= 0xFFFF_0000), IllegalField),
        (configure(|w| w[1] |= 65), IllegalField),
        (configure(|w| w[1] = 3), IllegalField),
        (configure(|w| w[1] = 3 | 8 << 16), IllegalField),
        (configure(|w| w[1] = 3 | 20 << 16), IllegalField),
        (configure(|w| w[1] = 3 | 136 << 16), IllegalField),
        (configure(|w| w[1] = 64 | 128 << 16), Ok),
        (configure(|w| w[3] &= 0x00FF_FFFF), IllegalField),
        (configure(|w| w[3] = w[3] & 0x00FF_FFFF | 5 << 24), IllegalField),
        (configure(|w| w[3] = w[3] & 0xFFF0_0000 | (8192 - 8 + 1)), BadAddress),
        (configure(|w| w[3] = w[3] & 0xFFF0_0000 | (8192 - 8)), Ok),
        (configure(|w| w[3] |= 0x8000_0000), IllegalField),
    ];
    for (words, code) in cases {
        let status = status_of(words, true);
        assert_eq!(status, Status { code, command: 1 }, "{words:08x?}");
    }
    let early = [Operation::LoadRows { table: sram }, Operation::Merge { first_round: 0, rounds: 0 }, Operation::Qk { row_tile: 0 }];
    for operation in early {
        assert_eq!(status_of(good(operation), false), Status { code: NotConfigured, command: 0 }, "{operation:?}");
    }
    assert_eq!(status_of(with(good(early[2]), 2, 1), false).code, NotConfigured, "comes before unused bits");
    assert_eq!(status_of(with(good(early[2]), 0, 0x3F), false).code, IllegalOpcode, "comes before the configuration");
}

#[test]
fn a_failure_stops_the_others_as_aborted() {
    let mut machine = Machine::new(Geometry::TINY, CHANNEL);
    let problem = small_problem();
    let merge = Operation::Merge { first_round: 0, rounds: 2 };
    let bad = Operation::Store { output: Geometry::TINY.sram_words as u32 };
    let list = vec![command(3, problem.configure()), command(2, bad), command(3, merge)];
    let outcome = launch(&mut machine, &[list.clone(), vec![list[0], list[2]]]);
    assert_eq!(outcome.pes[1], Status { code: Code::BadAddress, command: 1 });
    for status in [outcome.pes[0], outcome.pes[2], outcome.pes[3], outcome.cubes[0], outcome.cubes[1]] {
        assert_eq!(status.code, Code::Aborted);
    }
    let again = launch(&mut machine, &[list[..1].to_vec()]);
    assert!(again.is_ok(), "the next launch starts clean");
}

#[test]
fn a_partner_that_never_comes_is_a_time_out() {
    let mut machine = Machine::new(Geometry::TINY, CHANNEL);
    let configure = small_problem().configure();
    let merge = Operation::Merge { first_round: 0, rounds: 1 };
    let outcome = launch(&mut machine, &[vec![command(3, configure), command(1, merge)]]);
    assert_eq!(outcome.pes[0], Status { code: Code::TimeoutPartner, command: 1 });
    assert_eq!(outcome.pes[1].code, Code::Aborted);
    // PE 1 would come, but only after PE 0 is idle.
    let wait = Command { wait: true, ..command(1, merge) };
    let outcome = launch(&mut machine, &[vec![command(3, configure), wait, command(2, merge)]]);
    assert_eq!(outcome.pes[0].code, Code::TimeoutPartner);
    assert_eq!(outcome.cubes[0], Status { code: Code::TimeoutCommand, command: 1 });
}

#[test]
fn masks_and_lists_outside_the_array_stop_the_cube() {
    let mut machine = Machine::new(Geometry::TINY, CHANNEL);
    let configure = small_problem().configure();
    for mask in [0, 4, 0x81] {
        let outcome = launch(&mut machine, &[vec![command(3, configure), command(mask, configure)]]);
        assert_eq!(outcome.cubes[0], Status { code: Code::EmptyMask, command: 1 }, "mask {mask:#x}");
        assert_eq!(outcome.cubes[1].code, Code::Aborted);
    }
    let last = Geometry::TINY.sram_words as u32 - 1;
    let bytes: Vec<u8> = command(3, configure).encode().iter().flat_map(|w| w.to_le_bytes()).collect();
    machine.write(HostAddress::sram_word(0, last as usize), &bytes).unwrap();
    assert!(machine.launch(last, &[1]).is_ok());
    assert_eq!(machine.launch(last, &[2]).cubes[0], Status { code: Code::BadAddress, command: 1 });
    assert_eq!(machine.launch(u32::MAX, &[u32::MAX]).cubes[0], Status { code: Code::BadAddress, command: 0 });
    assert!(machine.launch(u32::MAX, &[0, 0]).is_ok(), "a CUBE without commands takes no part");
}

#[test]
fn host_accesses_outside_memory_are_refused_and_change_nothing() {
    let mut machine = Machine::new(Geometry::TINY, 2);
    let mut data = [0; 8];
    for address in [
        HostAddress::Channel { pe: 0, byte: 25 },
        HostAddress::Channel { pe: 4, byte: 0 },
        HostAddress::Sram { cube: 2, byte: 0 },
        HostAddress::Sram { cube: 0, byte: u32::MAX },
    ] {
        assert!(machine.write(address, &[1; 8]).is_err());
        assert!(machine.read(address, &mut data).is_err());
    }
    let edge = HostAddress::Channel { pe: 0, byte: 24 };
    machine.read(edge, &mut data).unwrap();
    assert_eq!(data, [0xFF; 8], "unwritten channel memory is poison");
    machine.write(edge, &[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
    machine.read(HostAddress::Channel { pe: 0, byte: 22 }, &mut data).unwrap();
    assert_eq!(data, [0xFF, 0xFF, 1, 2, 3, 4, 5, 6]);
}

#[test]
fn an_outcome_allows_what_hardware_may_show() {
    let status = |code: Code, command: u32| Status { code, command };
    let outcome = |pes: [Status; 2]| Outcome { cubes: vec![status(Code::Ok, 0)], pes: pes.to_vec() };
    let fine = outcome([status(Code::Ok, 3); 2]);
    assert!(fine.allows(&outcome([status(Code::Ok, 0); 2])));
    assert!(!fine.allows(&outcome([status(Code::Ok, 3), status(Code::Aborted, 0)])));
    let both = outcome([status(Code::BadAddress, 1), status(Code::IllegalField, 2)]);
    assert!(both.allows(&both));
    assert!(both.allows(&outcome([status(Code::Aborted, 0), status(Code::IllegalField, 2)])));
    assert!(!both.allows(&outcome([status(Code::Aborted, 0); 2])), "somebody must have failed first");
    assert!(!both.allows(&outcome([status(Code::BadAddress, 2), status(Code::Aborted, 0)])), "another command");
    assert!(!both.allows(&fine));
}
