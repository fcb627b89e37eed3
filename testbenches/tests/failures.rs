//! Whatever a host can do wrong, and whatever around the machine can break, on the tiny SIP: the launch ends within the bound, names code and command as the golden
//! machine does, and after a soft reset a good launch gives the golden bits again.

use braid_firmware::Issue;
use braid_golden::machine::Outcome;
use braid_golden::stimulus::Stimulus;
use braid_hdl::model::{ChannelTiming, SipPins};
use braid_isa::command::{
    ACTIVE, HEAD_DIM, INTERLEAVE, MASK, OPCODE, RESERVED_W0, ROWS, TABLE as COMMAND_TABLE, VERSION, VERSION_FIELD, WAIT,
};
use braid_isa::layout::{ROW_TABLE_WORDS, page_beats, q_words};
use braid_isa::{Code, Command, Operation, Status, register};
use braid_testbenches::case::{CHANNEL_BEATS, GEOMETRY, Lists, OUTPUT, TABLE, encode};
use braid_testbenches::{Case, Ending, Twin};

const TIMEOUT: u32 = 1_500;
/// Cycles from a failure to the end of the launch: the abort, and what the units have in hand.
const ABORT_CYCLES: u64 = 200;
const SRAM: u32 = GEOMETRY.sram_words as u32;

fn case() -> Case {
    Case::random(1, 3, 16, [2, 1, 1, 1])
}

fn twin() -> Twin<braid_testbenches::twin::CompiledTiny> {
    Twin::compiled(ChannelTiming::default(), TIMEOUT)
}

/// A unit with a status.
#[derive(Clone, Copy, Debug)]
enum Unit {
    Cube(usize),
    Pe(usize),
}

impl Unit {
    fn of(self, outcome: &Outcome) -> Status {
        match self {
            Unit::Cube(cube) => outcome.cubes[cube],
            Unit::Pe(pe) => outcome.pes[pe],
        }
    }
}

/// The launch failed as the golden machine says, and the unit names the code and the command.
fn assert_named(ending: &Ending, unit: Unit, code: Code, command: u32, what: &str) {
    assert_eq!(ending.status, register::STATUS_DONE | register::STATUS_ERROR, "{what}: {:?}", ending.seen);
    assert!(ending.expected.allows(&ending.seen), "{what}: {:?}, golden {:?}", ending.seen, ending.expected);
    assert_eq!(unit.of(&ending.seen), Status { code, command }, "{what}: {:?}", ending.seen);
}

/// Soft reset, then the good launch.
fn recover<P: SipPins>(twin: &mut Twin<P>, case: &Case) {
    twin.reset();
    twin.check(case, &case.lists(Issue::Composite));
}

/// The good lists with `words` put in for one PE; and the index that the PE counts for them.
fn insert(good: &Lists, pe: usize, place: usize, mut words: [u32; 4]) -> (Lists, u32) {
    let (cube, lane) = (pe / GEOMETRY.pes_per_cube, pe % GEOMETRY.pes_per_cube);
    MASK.set(&mut words, 1 << lane);
    let mut lists = good.clone();
    let before = lists[cube][..place].iter().filter(|w| MASK.get(w) >> lane & 1 == 1).count();
    lists[cube].insert(place, words);
    (lists, before as u32)
}

fn word(operation: Operation) -> [u32; 4] {
    Command { wait: false, interleave: false, mask: 1, operation }.encode()
}

/// One bad word for one PE; the launch takes no more than `bound` cycles. With `place` 1 the word follows `configure`.
fn check_bad_word<P: SipPins>(twin: &mut Twin<P>, case: &Case, pe: usize, place: usize, words: [u32; 4], code: Code, bound: u64) {
    let good = case.lists(Issue::Composite);
    let (lists, command) = insert(&good, pe, place, words);
    let ending = twin.launch(&lists);
    let what = format!("{words:08x?} for PE {pe} at {place}");
    assert_named(&ending, Unit::Pe(pe), code, command, &what);
    assert!(ending.cycles < bound, "{what}: {} cycles", ending.cycles);
}

/// Every word is tried on some PE; every eighth time the machine proves that it recovers.
fn check_bad_words(words: impl IntoIterator<Item = ([u32; 4], Code)>) {
    let (case, mut twin) = (case(), twin());
    twin.load(&case);
    for (n, (words, code)) in words.into_iter().enumerate() {
        check_bad_word(&mut twin, &case, n % GEOMETRY.pes(), 1, words, code, 2 * ABORT_CYCLES);
        if n % 8 == 0 {
            recover(&mut twin, &case);
        } else {
            twin.reset();
        }
    }
    recover(&mut twin, &case);
}

fn good_configure() -> Operation {
    case().kernel(Issue::Composite).commands(0)[0].operation
}

/// A legal command of every kind, for a kernel of 3 rows.
fn legal() -> [Operation; 10] {
    [
        good_configure(),
        Operation::LoadRows { table: TABLE },
        Operation::Attend { page: 0, position: 0, pages: 1, stride: 1 },
        Operation::LoadKv { page: 0, position: 0 },
        Operation::FetchQ { row_tile: 0 },
        Operation::Qk { row_tile: 0 },
        Operation::Softmax { row_tile: 0 },
        Operation::Pv { row_tile: 0 },
        Operation::Merge { first_round: 0, rounds: 1 },
        Operation::Store { output: OUTPUT },
    ]
}

fn configure(change: impl FnOnce(&mut [u32; 4])) -> [u32; 4] {
    let mut words = word(good_configure());
    change(&mut words);
    words
}

#[test]
fn every_illegal_opcode_version_and_reserved_bit_is_named() {
    let store = word(Operation::Store { output: OUTPUT });
    let with = |change: &dyn Fn(&mut [u32; 4])| {
        let mut words = store;
        change(&mut words);
        words
    };
    let known = |opcode: u32| COMMAND_TABLE.iter().any(|f| u32::from(f.opcode) == opcode);
    let opcodes = (0..256).filter(|&o| !known(o)).map(|o| (with(&|w| OPCODE.set(w, o)), Code::IllegalOpcode));
    let versions = (0..16).filter(|&v| v != VERSION).map(|v| (with(&|w| VERSION_FIELD.set(w, v)), Code::IllegalVersion));
    let reserved = (0..32).filter(|bit| RESERVED_W0 >> bit & 1 == 1).map(|bit| (with(&|w| w[0] |= 1 << bit), Code::IllegalOpcode));
    check_bad_words(opcodes.chain(versions).chain(reserved));
}

#[test]
fn every_unused_argument_bit_is_an_illegal_field() {
    let mut words = Vec::new();
    for operation in legal() {
        let format = operation.format();
        for (w, bit) in (1..4).flat_map(|w| (0..32).map(move |bit| (w, bit))) {
            if format.reserved(w) >> bit & 1 == 1 {
                let mut bad = word(operation);
                bad[w as usize] |= 1 << bit;
                words.push((bad, Code::IllegalField));
            }
        }
        if !format.interleave {
            let mut bad = word(operation);
            INTERLEAVE.set(&mut bad, 1);
            words.push((bad, Code::IllegalField));
        }
    }
    assert!(words.len() > 300);
    check_bad_words(words);
}

#[test]
fn every_argument_outside_its_range_is_an_illegal_field() {
    let mut words: Vec<[u32; 4]> = Vec::new();
    words.extend([0, 65, 66, 128, 0x4001, 0xFFFF].map(|rows| configure(|w| ROWS.set(w, rows))));
    words.extend([0, 1, 8, 15, 17, 20, 130, 136, 256, 0x8010, 0xFFF8].map(|d| configure(|w| HEAD_DIM.set(w, d))));
    words.extend([0, 5, 8, 32, 33, 63].map(|active| configure(|w| ACTIVE.set(w, active))));
    let attend = |pages, stride| word(Operation::Attend { page: 0, position: 0, pages, stride });
    words.extend([attend(0, 1), attend(1, 0), attend(0, 0)]);
    for row_tile in [2, 3, 32, 0x100, 0x8000, 0xFFFF] {
        let stages =
            [Operation::FetchQ { row_tile }, Operation::Qk { row_tile }, Operation::Softmax { row_tile }, Operation::Pv { row_tile }];
        words.extend(stages.map(word));
    }
    // Four active PEs: two rounds.
    for (first_round, rounds) in [(0, 0), (1, 0), (0, 3), (1, 2), (2, 1), (255, 1), (1, 255), (255, 255), (128, 128)] {
        words.push(word(Operation::Merge { first_round, rounds }));
    }
    check_bad_words(words.into_iter().map(|w| (w, Code::IllegalField)));
}

#[test]
fn every_address_outside_memory_is_a_bad_address() {
    let rows = case().rows.len();
    let q = (GEOMETRY.row_tiles(rows) * q_words(GEOMETRY.rows, 16)) as u32;
    let (table, output, page) = ((rows * ROW_TABLE_WORDS) as u32, (case().output_bytes() / 16) as u32, page_beats(16) as u32);
    let beyond = |words: u32| [SRAM - words + 1, SRAM - 1, SRAM, SRAM + 1, 0x8_0000, 0xF_FFFF];
    let mut words: Vec<[u32; 4]> = Vec::new();
    words.extend(beyond(q).map(|q_address| configure(|w| w[3] = w[3] & !0xF_FFFF | q_address)));
    words.extend(beyond(table).map(|table| word(Operation::LoadRows { table })));
    words.extend(beyond(output).map(|output| word(Operation::Store { output })));
    let attend = |page, pages| word(Operation::Attend { page, position: 0, pages, stride: 1 });
    let far = [CHANNEL_BEATS - page + 1, CHANNEL_BEATS, 0x8000_0000, u32::MAX - page + 1, u32::MAX];
    words.extend(far.map(|page| attend(page, 1)));
    words.extend(far.map(|page| word(Operation::LoadKv { page, position: 0 })));
    words.extend([attend(0, (CHANNEL_BEATS / page + 1) as u16), attend(0, u16::MAX), attend(u32::MAX, u16::MAX)]);
    words.extend([attend(u32::MAX - page * 2 + 1, 3), attend(CHANNEL_BEATS - 2 * page, 3)]);
    check_bad_words(words.into_iter().map(|w| (w, Code::BadAddress)));
}

#[test]
fn the_last_address_that_fits_is_good() {
    let (case, mut twin) = (case(), twin());
    twin.load(&case);
    let (page, output) = (page_beats(16) as u32, (case.output_bytes() / 16) as u32);
    for operation in [
        Operation::Attend { page: CHANNEL_BEATS - 2 * page, position: 0, pages: 2, stride: 1 },
        Operation::LoadKv { page: CHANNEL_BEATS - page, position: 0 },
        Operation::LoadRows { table: SRAM - (case.rows.len() * ROW_TABLE_WORDS) as u32 },
        Operation::Store { output: SRAM - output },
    ] {
        let (lists, _) = insert(&case.lists(Issue::Composite), 1, 2, word(operation));
        let ending = twin.launch(&lists);
        assert!(ending.expected.is_ok() && ending.seen.is_ok(), "{operation:?}: {:?}", ending.seen);
    }
    recover(&mut twin, &case);
}

#[test]
fn a_bad_word_stops_the_array_wherever_it_stands() {
    let (case, mut twin) = (case(), twin());
    let good = case.lists(Issue::Composite);
    let (_, cycles) = twin.check_case(&case, &good);
    for pe in 0..GEOMETRY.pes() {
        for place in 1..=good[pe / GEOMETRY.pes_per_cube].len() {
            let merge = word(Operation::Merge { first_round: 0, rounds: 9 });
            check_bad_word(&mut twin, &case, pe, place, merge, Code::IllegalField, cycles + ABORT_CYCLES);
            recover(&mut twin, &case);
        }
    }
}

#[test]
fn every_command_before_configure_is_named_in_every_launch() {
    let (case, mut twin) = (case(), twin());
    twin.load(&case);
    for operation in &legal()[1..] {
        // The launch before configured the same PE.
        recover(&mut twin, &case);
        check_bad_word(&mut twin, &case, 2, 0, word(*operation), Code::NotConfigured, 2 * ABORT_CYCLES);
    }
    recover(&mut twin, &case);
}

#[test]
fn a_mask_for_no_pe_or_for_pes_that_do_not_exist_is_named_by_the_cube() {
    let (case, mut twin) = (case(), twin());
    twin.load(&case);
    let good = case.lists(Issue::Composite);
    for (n, mask) in [0, 0b100, 0b111, 0x80, 0x83, 0xFC, 0xFF].into_iter().enumerate() {
        let (cube, place) = (n % GEOMETRY.cubes, n % (good[1].len() + 1));
        let mut words = word(Operation::Store { output: OUTPUT });
        MASK.set(&mut words, mask);
        let mut lists = good.clone();
        lists[cube].insert(place, words);
        let ending = twin.launch(&lists);
        assert_named(&ending, Unit::Cube(cube), Code::EmptyMask, place as u32, &format!("mask {mask:#04x}"));
        assert!(ending.cycles < u64::from(TIMEOUT));
        recover(&mut twin, &case);
    }
}

#[test]
fn a_command_list_that_leaves_sram_is_named_by_the_cube() {
    let (case, mut twin) = (case(), twin());
    twin.load(&case);
    let configure = word(good_configure());
    for cube in 0..GEOMETRY.cubes {
        let bytes: Vec<u8> = configure.iter().flat_map(|w| w.to_le_bytes()).collect();
        for at in 1..=2 {
            twin.write(braid_isa::layout::HostAddress::sram_word(cube, GEOMETRY.sram_words - at), &bytes);
        }
    }
    for (base, counts, cube, command) in [
        (SRAM - 2, [3, 2], 0, 2),
        (SRAM - 2, [2, u32::MAX], 1, 2),
        (SRAM, [1, 0], 0, 0),
        (SRAM, [0, 1], 1, 0),
        (1 << 20, [2, 0], 0, 0),
        (u32::MAX, [0, 3], 1, 0),
    ] {
        let ending = twin.launch_at(base, &counts);
        assert_named(&ending, Unit::Cube(cube), Code::BadAddress, command, &format!("{counts:?} commands from {base}"));
        assert!(ending.cycles < u64::from(TIMEOUT));
        recover(&mut twin, &case);
    }
    let ending = twin.launch_at(SRAM - 2, &[2, 1]);
    assert!(ending.seen.is_ok() && ending.expected.is_ok(), "the last words of SRAM are good: {:?}", ending.seen);
}

#[test]
fn a_merge_partner_that_never_comes_is_named_within_the_bound() {
    // 20 rows: the message does not fit the ring, so what is missing first is a credit.
    for case in [case(), Case::random(2, 20, 16, [1, 0, 0, 1])] {
        let mut twin = twin();
        twin.load(&case);
        let good = case.lists(Issue::Composite);
        for (pe, first_round, wait) in [(0, 0, false), (1, 0, true), (2, 1, false), (3, 0, true), (0, 1, true)] {
            let lane = pe % GEOMETRY.pes_per_cube;
            let mut merge = word(Operation::Merge { first_round, rounds: 1 });
            MASK.set(&mut merge, 1 << lane);
            WAIT.set(&mut merge, wait.into());
            let mut lists = vec![Vec::new(); GEOMETRY.cubes];
            lists[pe / GEOMETRY.pes_per_cube] = vec![good[0][0], merge];
            let ending = twin.launch(&lists);
            assert_named(&ending, Unit::Pe(pe), Code::TimeoutPartner, 1, &format!("round {first_round} of PE {pe}"));
            assert!(ending.cycles >= u64::from(TIMEOUT), "{} cycles", ending.cycles);
            assert!(ending.cycles < u64::from(TIMEOUT) + 2 * ABORT_CYCLES, "{} cycles", ending.cycles);
            recover(&mut twin, &case);
        }
    }
}

#[test]
fn a_queue_that_is_never_drained_names_the_wait_and_the_command_that_was_not_taken() {
    let (case, mut twin) = (case(), twin());
    twin.load(&case);
    let mut lists = vec![vec![word(good_configure()), word(Operation::Merge { first_round: 0, rounds: 2 })], Vec::new()];
    lists[0].extend([word(Operation::Store { output: OUTPUT }); 12]);
    let ending = twin.launch(&lists);
    // The golden machine has queues without end, so it has no time-out of the CUBE here.
    assert_eq!(ending.status, register::STATUS_DONE | register::STATUS_ERROR);
    assert_eq!(ending.seen.pes[0], Status { code: Code::TimeoutPartner, command: 1 });
    assert_eq!(ending.expected.pes[0], ending.seen.pes[0]);
    // The command under way keeps its place in the queue of four.
    assert_eq!(ending.seen.cubes[0], Status { code: Code::TimeoutCommand, command: 5 });
    assert!(ending.cycles < u64::from(TIMEOUT) + 2 * ABORT_CYCLES, "{} cycles", ending.cycles);
    recover(&mut twin, &case);
}

#[test]
fn dead_memory_is_named_within_the_bound_until_it_answers_again() {
    for issue in [Issue::Composite, Issue::Primitive] {
        let case = Case::random(3, 3, 16, [2, 2, 1, 2]);
        let mut twin = twin();
        for pe in 0..GEOMETRY.pes() {
            twin.load(&case);
            twin.kill_channel(pe);
            let good = case.lists(issue);
            let lane = pe % GEOMETRY.pes_per_cube;
            let own = good[pe / GEOMETRY.pes_per_cube].iter().filter(|w| MASK.get(w) >> lane & 1 == 1);
            let first = own.clone().position(|w| [0x10, 0x20].contains(&OPCODE.get(w))).expect("a page is loaded") as u32;
            // A reset does not bring the memory back; the beats that it owes must not be taken for new ones.
            for launch in 0..3 {
                let ending = twin.launch(&good);
                let what = format!("{issue:?}, PE {pe}, launch {launch}: {:?}", ending.seen);
                assert_eq!(ending.status, register::STATUS_DONE | register::STATUS_ERROR, "{what}");
                assert_eq!(ending.seen.pes[pe], Status { code: Code::TimeoutMemory, command: first }, "{what}");
                let mut others = ending.seen.pes.iter().enumerate().filter(|&(other, _)| other != pe).map(|(_, s)| s.code);
                assert!(others.all(|code| matches!(code, Code::Ok | Code::Aborted)), "{what}");
                assert!(ending.cycles < 2 * u64::from(TIMEOUT), "{what}: {} cycles", ending.cycles);
                twin.reset();
            }
            twin.revive_channel(pe);
            twin.check(&case, &good);
        }
    }
}

#[test]
fn a_multicast_that_only_one_pe_asks_for_is_served() {
    let case = Case::random(4, 5, 24, [3, 0, 0, 0]);
    let mut twin = twin();
    twin.load(&case);
    // PE 1 has no command; has only `configure`; and waits for a partner that comes late.
    let mut lists = case.lists(Issue::Composite);
    twin.check(&case, &lists);
    let mut both = lists[0][0];
    MASK.set(&mut both, 3);
    lists[0][0] = both;
    twin.check(&case, &lists);
    let case = Case::random(5, 5, 24, [3, 1, 0, 0]);
    twin.load(&case);
    let mut lists = case.lists(Issue::Composite);
    let merge = lists[0].iter().position(|w| OPCODE.get(w) == 0x30).expect("two PEs merge");
    let attends: Vec<[u32; 4]> = lists[0].extract_if(2..merge, |w| MASK.get(w) == 1).collect();
    let merge = lists[0].iter().position(|w| OPCODE.get(w) == 0x30).expect("two PEs merge");
    let mut merge_of = |place: usize, mask: u32| {
        let mut words = word(Operation::Merge { first_round: 0, rounds: 1 });
        MASK.set(&mut words, mask);
        lists[0].insert(place, words);
    };
    merge_of(merge, 2);
    merge_of(merge + 1, 1);
    lists[0].splice(merge + 1..merge + 1, attends);
    let both = merge + 3;
    assert_eq!(OPCODE.get(&lists[0][both]), 0x30);
    lists[0].remove(both);
    twin.check(&case, &lists);
}

#[test]
fn a_doorbell_without_commands_is_done_at_once() {
    let (case, mut twin) = (case(), twin());
    twin.load(&case);
    for _ in 0..3 {
        let ending = twin.launch(&[vec![], vec![]]);
        assert_eq!(ending.status, register::STATUS_DONE);
        assert!(ending.seen.is_ok() && ending.expected.is_ok());
        assert!(ending.cycles < 32, "{} cycles", ending.cycles);
        twin.check(&case, &case.lists(Issue::Composite));
    }
    // One CUBE alone.
    let list = encode(&[Command { wait: false, interleave: false, mask: 3, operation: good_configure() }]);
    for lists in [[list.clone(), vec![]], [vec![], list]] {
        let ending = twin.launch(&lists);
        assert!(ending.status == register::STATUS_DONE && ending.expected.is_ok(), "{:?}", ending.seen);
    }
}

#[test]
fn an_error_or_a_reset_amid_streaming_leaves_no_trace() {
    for (seed, timing) in [
        ChannelTiming { latency: 300, stall_once_in: 0, seed: 1 },
        ChannelTiming { latency: 40, stall_once_in: 3, seed: 2 },
        ChannelTiming { latency: 1, stall_once_in: 2, seed: 3 },
    ]
    .into_iter()
    .enumerate()
    {
        let case = Case::random(6 + seed as u64, 5, 32, [3, 2, 4, 3]);
        let mut twin = Twin::compiled(timing, TIMEOUT);
        let good = case.lists(Issue::Composite);
        let (_, cycles) = twin.check_case(&case, &good);
        for n in 0..100 {
            twin.start(&good);
            twin.run(n * (cycles + 40) / 100);
            recover(&mut twin, &case);
        }
        for place in 1..=good[1].len() {
            let opcode = [0xEE | VERSION << 8, 0, 0, 0];
            check_bad_word(&mut twin, &case, 3, place, opcode, Code::IllegalOpcode, cycles + ABORT_CYCLES);
            recover(&mut twin, &case);
        }
    }
}

/// Random lists of nearly legal commands over one kernel shape.
fn random_lists(s: &mut Stimulus) -> Lists {
    let random = |s: &mut Stimulus| {
        let mut operation = legal()[s.below(10) as usize];
        match &mut operation {
            Operation::Attend { page, pages, stride, .. } => {
                (*page, *pages, *stride) = (64 * s.below(66), s.below(4) as u16, s.below(6) as u16);
            }
            Operation::LoadKv { page, .. } => *page = 64 * s.below(66),
            Operation::FetchQ { row_tile } | Operation::Qk { row_tile } | Operation::Softmax { row_tile } | Operation::Pv { row_tile } => {
                *row_tile = (s.below(9) / 4) as u16;
            }
            Operation::Merge { first_round, rounds } => (*first_round, *rounds) = ((s.below(5) / 2) as u8, (s.below(9) / 3) as u8),
            _ => {}
        }
        let mut words = Command { wait: s.once_in(4), interleave: false, mask: 1 + s.below(3) as u8, operation }.encode();
        if s.once_in(20) {
            words[s.below(4) as usize] ^= 1 << s.below(32);
        }
        words
    };
    let list = |s: &mut Stimulus| {
        let mut list = vec![Command { wait: false, interleave: false, mask: 3, operation: good_configure() }.encode()];
        list.extend((0..s.below(5)).map(|_| random(s)));
        list
    };
    (0..GEOMETRY.cubes).map(|_| list(s)).collect()
}

#[test]
fn random_lists_end_as_the_golden_machine_says() {
    let (case, mut twin) = (case(), twin());
    let mut s = Stimulus::new(99);
    twin.load(&case);
    let (mut good, mut bad, mut late) = (0, 0, 0);
    for n in 0..400 {
        let lists = random_lists(&mut s);
        let ending = twin.launch(&lists);
        assert!(ending.expected.allows(&ending.seen), "list {n}: {lists:08x?}\nRTL {:?}\ngolden {:?}", ending.seen, ending.expected);
        assert_eq!(ending.status & register::STATUS_ERROR == 0, ending.seen.is_ok());
        assert!(ending.cycles < 2 * u64::from(TIMEOUT), "list {n}: {} cycles", ending.cycles);
        if ending.seen.is_ok() {
            good += 1;
        } else {
            if ending.cycles > u64::from(TIMEOUT) {
                late += 1
            } else {
                bad += 1
            }
            twin.reset();
        }
        if n % 20 == 0 {
            twin.load(&case);
            twin.check(&case, &case.lists(Issue::Composite));
        }
    }
    assert!(good > 20 && bad > 100 && late > 5, "{good} good, {bad} bad, {late} time-outs");
}

#[test]
fn the_simulator_of_rust_hdl_fails_and_recovers_as_the_compiled_engine_does() {
    let case = Case::random(7, 1, 16, [1, 0, 0, 0]);
    let mut compiled = twin();
    let mut rust_hdl = Twin::rust_hdl(ChannelTiming::default(), TIMEOUT);
    let (lists, _) = insert(&case.lists(Issue::Composite), 0, 2, word(Operation::Store { output: SRAM - 1 }));
    let mut endings = Vec::new();
    let mut cycles = Vec::new();
    compiled.load(&case);
    rust_hdl.load(&case);
    endings.push(compiled.launch(&lists));
    endings.push(rust_hdl.launch(&lists));
    compiled.reset();
    rust_hdl.reset();
    let good = case.lists(Issue::Composite);
    cycles.push(compiled.check(&case, &good).1);
    cycles.push(rust_hdl.check(&case, &good).1);
    assert_named(&endings[0], Unit::Pe(0), Code::BadAddress, 2, "a store outside SRAM");
    assert_eq!((&endings[0].seen, endings[0].cycles), (&endings[1].seen, endings[1].cycles));
    assert_eq!(cycles[0], cycles[1]);
}
