//! Launches that are right but awkward, on the tiny SIP: PEs without work, uneven and fragmented pages, small masks, many launches on end, any order of rows.

use braid_firmware::Issue;
use braid_golden::stimulus::Stimulus;
use braid_hdl::model::ChannelTiming;
use braid_isa::Counter;
use braid_isa::command::{ATTEND, INTERLEAVE, MASK, OPCODE, WAIT};
use braid_isa::layout::merge_rounds;
use braid_testbenches::case::{GEOMETRY, encode};
use braid_testbenches::twin::CompiledTiny;
use braid_testbenches::{Case, Twin};

/// Longer than any wait for a partner here; a hang still ends in it.
const TIMEOUT: u32 = 20_000;

fn calm() -> Twin<CompiledTiny> {
    Twin::compiled(ChannelTiming::default(), TIMEOUT)
}

fn rough(seed: u64) -> Twin<CompiledTiny> {
    Twin::compiled(ChannelTiming { latency: 1 + seed * 17 % 60, stall_once_in: 3, seed }, TIMEOUT)
}

#[test]
fn pes_without_work_end_and_take_part_in_merging() {
    for mut twin in [calm(), rough(1)] {
        for (n, pages) in
            [[0, 0, 0, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 2, 0, 0], [0, 0, 3, 0], [3, 0, 0, 1], [0, 1, 1, 0]].into_iter().enumerate()
        {
            let case = Case::random(n as u64, 1 + 2 * n, 16, pages);
            twin.check_case(&case, &case.lists(Issue::Composite));
        }
    }
}

#[test]
fn rows_that_see_nothing_need_no_page_and_store_empty_states() {
    let mut twin = rough(2);
    let mut case = Case::random(8, 6, 24, [2, 1, 0, 2]);
    case.rows.iter_mut().for_each(|row| row.ranges = [9, 9, 0, 0, 50, 50, 7, 7]);
    let (areas, _) = twin.check_case(&case, &case.lists(Issue::Composite));
    for row in case.gather(&areas) {
        assert!(row[..25].iter().all(|&bits| bits == 0));
        assert_eq!(row[25], f32::NEG_INFINITY.to_bits());
    }
    assert_eq!((0..4).map(|pe| twin.counter(pe, Counter::TilesComputed)).sum::<u64>(), 0);
}

#[test]
fn two_hundred_tiny_launches_on_end_never_hang() {
    for mut twin in [calm(), rough(3)] {
        let mut s = Stimulus::new(5);
        for n in 0..200 {
            let pages = std::array::from_fn(|_| s.below(3) as usize);
            let case = Case::random(n, 1 + s.below(4) as usize, 16 + 8 * s.below(3) as usize, pages);
            let issue = if s.once_in(4) { Issue::Primitive } else { Issue::Composite };
            twin.check_case(&case, &case.lists(issue));
        }
    }
}

#[test]
fn fragmented_runs_of_uneven_pes_do_not_deadlock() {
    for mut twin in [calm(), rough(4)] {
        for (n, pages) in
            [[20, 1, 0, 0], [1, 20, 0, 0], [20, 1, 1, 20], [0, 20, 1, 0], [20, 20, 20, 20], [20, 0, 0, 1]].into_iter().enumerate()
        {
            let case = Case { run_pages: 1, ..Case::random(20 + n as u64, 5, 16, pages) };
            let mut kernel = case.kernel(Issue::Composite);
            // Two passes: a row table follows the long queue.
            let pass = kernel.passes[0].clone();
            for passes in [vec![pass.clone()], vec![pass; 2]] {
                kernel.passes = passes;
                let lists: Vec<_> = (0..GEOMETRY.cubes).map(|cube| encode(&kernel.commands(cube))).collect();
                twin.check_case(&case, &lists);
                // All attends of one PE before those of the other, and the other way round.
                for first in [1, 2] {
                    let mut sorted = lists.clone();
                    for list in &mut sorted {
                        for group in list.chunk_by_mut(|a, b| OPCODE.get(a) == OPCODE.get(b)) {
                            if OPCODE.get(&group[0]) == u32::from(ATTEND) {
                                group.sort_by_key(|w| MASK.get(w) != first);
                            }
                        }
                    }
                    twin.check(&case, &sorted);
                }
            }
        }
    }
}

#[test]
fn primitive_commands_give_the_bits_of_composite_ones_with_and_without_waits() {
    for mut twin in [calm(), rough(5)] {
        for (n, pages) in [[2, 1, 0, 3], [0, 2, 2, 0], [1, 1, 1, 1], [0, 0, 0, 2]].into_iter().enumerate() {
            let case = Case::random(40 + n as u64, 1 + n, 16 + 8 * n, pages);
            let (composite, _) = twin.check_case(&case, &case.lists(Issue::Composite));
            let mut lists = case.lists(Issue::Primitive);
            assert!(lists.iter().flatten().all(|w| WAIT.get(w) == 1 && INTERLEAVE.get(w) == 0));
            assert!(lists.iter().flatten().any(|w| MASK.get(w) != 3));
            assert!(twin.check(&case, &lists).0 == composite, "pages {pages:?}");
            lists.iter_mut().flatten().for_each(|w| WAIT.set(w, 0));
            assert!(twin.check(&case, &lists).0 == composite, "pages {pages:?} without waits");
        }
    }
}

#[test]
fn merge_rounds_are_the_ceiling_of_log2_of_the_active_pes_whatever_the_rows() {
    let mut twin = calm();
    for (active, expected) in [(1, 0), (2, 1), (3, 2), (4, 2)] {
        for rows in [1, 2, 7, 64] {
            let case = Case::random(60, rows, 16, std::array::from_fn(|pe| usize::from(pe < active)));
            twin.check_case(&case, &case.lists(Issue::Composite));
            for pe in 0..GEOMETRY.pes() {
                let rounds = if pe < 1 << expected { expected } else { 0 };
                assert_eq!(twin.counter(pe, Counter::MergeRounds), rounds, "{active} active PEs, {rows} rows, PE {pe}");
            }
            assert_eq!(u64::from(merge_rounds(active)), expected);
        }
    }
}

#[test]
fn a_row_has_the_same_bits_alone_in_another_order_and_beside_other_rows() {
    let mut twin = rough(6);
    let case = Case::random(70, 11, 24, [2, 1, 2, 1]);
    let (areas, _) = twin.check_case(&case, &case.lists(Issue::Composite));
    let whole = case.gather(&areas);
    let mut orders: Vec<Vec<usize>> = (0..11).map(|row| vec![row]).collect();
    orders.push((0..11).rev().collect());
    orders.push((0..11).map(|i| i * 7 % 11).collect());
    orders.push(vec![4, 4, 4]);
    orders.push(vec![3, 0, 3]);
    orders.push((0..64).map(|i| i * i % 11).collect());
    for order in orders {
        for issue in [Issue::Composite, Issue::Primitive] {
            let part = case.with_rows(&order);
            let (areas, _) = twin.check_case(&part, &part.lists(issue));
            for (row, bits) in order.iter().zip(part.gather(&areas)) {
                assert_eq!(bits, whole[*row], "row {row} in {order:?}");
            }
        }
    }
}
