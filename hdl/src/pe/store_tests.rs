//! The store engine against the golden finish, with SRAM of every speed.

use std::collections::BTreeMap;

use braid_golden::attention::RowState;
use braid_golden::fp32::canonical;
use braid_golden::stimulus::Stimulus;
use braid_isa::layout::owned_columns;
use rust_hdl::prelude::*;

use super::decoder::Settings;
use super::store::StoreEngine;
use crate::testing::{cycle, settle};

const NEGATIVE_INFINITY: u32 = 0xFF80_0000;

#[derive(Clone, Copy, Debug)]
struct Case {
    seed: u64,
    pe: usize,
    rounds: u32,
    head_dim: usize,
    row_tiles: usize,
    /// SRAM takes a word once in so many cycles on average.
    slowness: u32,
}

fn state(stimulus: &mut Stimulus, head_dim: usize) -> RowState {
    let number = |s: &mut Stimulus| canonical(f32::from_bits(s.fp32()));
    let (m, l) = match stimulus.below(6) {
        0 => return RowState::empty(head_dim),
        1 => (NEGATIVE_INFINITY, number(stimulus) | 1),
        2 => (number(stimulus), 0),
        _ => (number(stimulus), number(stimulus)),
    };
    RowState { m, l, o: (0..head_dim).map(|_| number(stimulus)).collect() }
}

/// Runs a store. Returns what was written, by fp32 index from the output area on, and the cycles it took.
fn run<const ROWS: usize, const BEAT: usize>(case: Case, rows: &[RowState]) -> (BTreeMap<usize, u32>, u64) {
    const OUTPUT: usize = 77;
    let mut stimulus = Stimulus::new(case.seed + 1000);
    let mut unit = Box::<StoreEngine<ROWS, BEAT>>::default();
    unit.connect_all();
    let (first, end) = owned_columns(case.head_dim, case.pe, case.rounds);
    unit.pe_index.next = bits(case.pe as u64);
    unit.first_column.next = bits(first as u64);
    unit.end_column.next = bits(end as u64);
    unit.output_address.next = bits(OUTPUT as u64);
    unit.settings.next = Settings {
        configured: true,
        rows: bits(rows.len() as u64),
        row_tiles: bits(case.row_tiles as u64),
        head_dim: bits(case.head_dim as u64),
        rounds: bits(case.rounds.into()),
        ..Settings::default()
    };
    let mut written = BTreeMap::new();
    let mut waiting: Option<(u64, u64, u64)> = None;
    let mut cycles = 0;
    unit.start.next = true;
    loop {
        unit.store_ready.next = case.slowness == 1 || stimulus.once_in(case.slowness);
        settle(unit.as_mut());
        let offer = (unit.store_address.val().to_u64(), unit.store_enable.val().to_u64(), unit.store_data.val().get_bits::<64>(0).to_u64());
        if unit.store_valid.val() {
            assert!(waiting.is_none_or(|w| w == offer), "an offered word changed before it was taken");
            waiting = Some(offer);
            if unit.store_ready.val() {
                waiting = None;
                assert_ne!(offer.1, 0, "a word without an enable");
                for i in (0..4).filter(|i| offer.1 >> i & 1 == 1) {
                    let index = (offer.0 as usize - OUTPUT) * 4 + i;
                    let value = unit.store_data.val().get_bits::<32>(i * 32).to_u32();
                    assert_eq!(written.insert(index, value), None, "an element was written twice");
                }
            }
        } else {
            assert!(waiting.is_none(), "an offered word was withdrawn");
        }
        let asked = unit.read.val();
        let read = asked.valid.then(|| {
            let (tile, column, select) = (asked.row_tile.to_u64() as usize, asked.column.to_u64() as usize, asked.select.to_u64());
            let value = move |row: &RowState| match select {
                0 => row.o.get(column).copied().unwrap_or(0xDEAD_BEEF),
                1 => row.l,
                _ => row.m,
            };
            rows[tile * ROWS..][..ROWS].iter().map(value).collect::<Vec<u32>>()
        });
        cycle(unit.as_mut(), |u, c| u.clock.next = c);
        unit.start.next = false;
        let lanes = read.unwrap_or(vec![0xDEAD_BEEF; ROWS]);
        unit.read_data.next =
            lanes.iter().rev().fold(Bits::default(), |beat: Bits<BEAT>, &x| (beat << bits::<8>(32)) | bit_cast::<BEAT, 32>(bits(x.into())));
        cycles += 1;
        settle(unit.as_mut());
        if !unit.busy.val() {
            break;
        }
        assert!(cycles < 100_000, "the store does not end: {case:?}");
    }
    for _ in 0..10 {
        unit.store_ready.next = true;
        cycle(unit.as_mut(), |u, c| u.clock.next = c);
        assert!(!unit.store_valid.val(), "a word after the end");
    }
    (written, cycles)
}

fn check<const ROWS: usize, const BEAT: usize>(case: Case) -> u64 {
    let mut stimulus = Stimulus::new(case.seed);
    let rows: Vec<RowState> = (0..case.row_tiles * ROWS).map(|_| state(&mut stimulus, case.head_dim)).collect();
    let (written, cycles) = run::<ROWS, BEAT>(case, &rows);
    let (first, end) = owned_columns(case.head_dim, case.pe, case.rounds);
    let mut expected = BTreeMap::new();
    for (row, state) in rows.iter().enumerate() {
        let mut put = |column: usize, value: u32| {
            expected.insert((row / ROWS * (case.head_dim + 2) + column) * ROWS + row % ROWS, value);
        };
        let o = state.finish();
        (first..end).for_each(|column| put(column, o[column]));
        if case.pe == 0 {
            put(case.head_dim, state.l);
            put(case.head_dim + 1, state.m);
        }
    }
    assert_eq!(written, expected, "{case:?}");
    cycles
}

#[test]
fn owned_columns_are_finished_as_golden_does() {
    for (seed, (pe, rounds, head_dim, row_tiles)) in
        [(0, 0, 16, 3), (0, 1, 24, 2), (1, 1, 24, 2), (5, 3, 128, 2), (31, 5, 64, 3), (0, 5, 128, 2)].into_iter().enumerate()
    {
        let case = Case { seed: seed as u64, pe, rounds, head_dim, row_tiles, slowness: 1 };
        check::<2, 64>(case);
        check::<4, 128>(case);
        check::<8, 256>(case);
    }
}

#[test]
fn slow_memory_loses_no_word() {
    for (seed, slowness) in [(30, 2), (31, 9), (32, 40)] {
        let case = Case { seed, pe: 0, rounds: 2, head_dim: 24, row_tiles: 3, slowness };
        check::<2, 64>(case);
        check::<8, 256>(case);
    }
}

#[test]
fn a_pe_that_owns_nothing_writes_nothing() {
    for (pe, rounds, head_dim) in [(4, 2, 16), (1, 0, 16), (31, 5, 16)] {
        let case = Case { seed: 40, pe, rounds, head_dim, row_tiles: 2, slowness: 1 };
        assert_eq!(owned_columns(head_dim, pe, rounds).0, owned_columns(head_dim, pe, rounds).1);
        check::<2, 64>(case);
    }
}

#[test]
fn a_row_tile_of_eight_rows_takes_32_cycles_and_ten_a_column() {
    let cycles = check::<8, 256>(Case { seed: 50, pe: 1, rounds: 5, head_dim: 128, row_tiles: 4, slowness: 1 });
    assert!(cycles <= 4 * (34 + 4 * 10) + 16, "{cycles} cycles");
}
