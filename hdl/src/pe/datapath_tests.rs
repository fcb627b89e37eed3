//! The datapath against the golden tile update, in rust-hdl's own simulator.

use braid_golden::attention::{Page, RowState, blocks};
use braid_golden::format::Format;
use braid_golden::stimulus::Stimulus;
use rust_hdl::prelude::*;

use super::Datapath;
use super::state_port::StateRead;
use crate::testing::cycle;

const ROWS: usize = 2;
type Unit = Datapath<ROWS, 64, 32, 5, 32, 11>;

/// The datapath with counters of its done pulses.
struct Bench {
    unit: Box<Unit>,
    qk_done: usize,
    pv_done: usize,
    softmax_done: usize,
    cycles: usize,
}

fn beat(elements: &[u16]) -> Bits<128> {
    elements
        .iter()
        .rev()
        .fold(Bits::default(), |word: Bits<128>, &e| (word << 16_usize.to_bits::<8>()) | bit_cast::<128, 16>(bits(e.into())))
}

impl Bench {
    fn new(head_dim: usize, scale: u32, formats: [Format; 3]) -> Bench {
        let mut unit = Box::<Unit>::default();
        unit.connect_all();
        unit.head_dim.next = bits(head_dim as u64);
        unit.scale.next = bits(scale.into());
        unit.q_bf16.next = formats[0] == Format::Bf16;
        unit.k_bf16.next = formats[1] == Format::Bf16;
        unit.v_bf16.next = formats[2] == Format::Bf16;
        Bench { unit, qk_done: 0, pv_done: 0, softmax_done: 0, cycles: 0 }
    }

    fn step(&mut self) {
        cycle(self.unit.as_mut(), |u, c| u.clock.next = c);
        self.cycles += 1;
        self.qk_done += usize::from(self.unit.qk_done.val());
        self.pv_done += usize::from(self.unit.pv_done.val());
        self.softmax_done += usize::from(self.unit.softmax_done.val());
        assert!(self.cycles < 200_000, "the datapath does not finish");
    }

    fn load_kv(&mut self, elements: &[u16], is_v: bool, buffer: bool) {
        self.unit.kv_write.next = true;
        self.unit.kv_write_v.next = is_v;
        self.unit.kv_write_buffer.next = buffer;
        for (address, chunk) in elements.chunks(8).enumerate() {
            self.unit.kv_write_address.next = bits(address as u64);
            self.unit.kv_write_data.next = beat(chunk);
            self.step();
        }
        self.unit.kv_write.next = false;
    }

    fn load_q(&mut self, rows: &[Vec<u16>], buffer: bool) {
        self.unit.q_write.next = true;
        self.unit.q_write_buffer.next = buffer;
        for (row, elements) in rows.iter().enumerate() {
            self.unit.q_write_row.next = bits(row as u64);
            for (block, chunk) in elements.chunks(8).enumerate() {
                self.unit.q_write_block.next = bits(block as u64);
                self.unit.q_write_data.next = beat(chunk);
                self.step();
            }
        }
        self.unit.q_write.next = false;
        self.step();
    }

    fn gemm(&mut self, pv: bool, kv_buffer: bool, q_buffer: bool, score_buffer: bool, row_tile: usize) {
        self.unit.gemm_pv.next = pv;
        self.unit.gemm_kv_buffer.next = kv_buffer;
        self.unit.gemm_q_buffer.next = q_buffer;
        self.unit.gemm_score_buffer.next = score_buffer;
        self.unit.gemm_row_tile.next = bits(row_tile as u64);
        while !self.unit.gemm_ready.val() {
            self.step();
        }
        self.unit.gemm_valid.next = true;
        self.step();
        self.unit.gemm_valid.next = false;
    }

    fn softmax(&mut self, buffer: bool, row_tile: usize, masks: &[u16]) {
        self.unit.softmax_buffer.next = buffer;
        self.unit.softmax_row_tile.next = bits(row_tile as u64);
        self.unit.softmax_masks.next = bits(masks.iter().rev().fold(0, |word, &m| word << 16 | u64::from(m)));
        self.unit.softmax_valid.next = true;
        loop {
            let taken = self.unit.softmax_ready.val();
            self.step();
            if taken {
                break;
            }
        }
        self.unit.softmax_valid.next = false;
    }

    fn wait(&mut self, done: impl Fn(&Bench) -> bool) {
        while !done(self) {
            self.step();
        }
    }

    /// m, l and O of every row of a row tile.
    fn state(&mut self, row_tile: usize, head_dim: usize) -> Vec<RowState> {
        let mut read = |select: u64, column: usize| -> Vec<u32> {
            let read = StateRead { valid: true, select: bits(select), row_tile: bits(row_tile as u64), column: bits(column as u64) };
            let other = StateRead { column: bits(column as u64 ^ 1), ..read };
            self.unit.read_a.next = read;
            self.unit.read_b.next = if select == 0 { other } else { StateRead::default() };
            self.step();
            let a: Vec<u32> = (0..ROWS).map(|r| self.unit.read_a_data.val().get_bits::<32>(r * 32).to_u32()).collect();
            // The same once more through the partner's port, beside a read of the other bank.
            (self.unit.read_a.next, self.unit.read_b.next) = (self.unit.read_b.val(), read);
            self.step();
            let b: Vec<u32> = (0..ROWS).map(|r| self.unit.read_b_data.val().get_bits::<32>(r * 32).to_u32()).collect();
            (self.unit.read_a.next, self.unit.read_b.next) = (StateRead::default(), StateRead::default());
            assert_eq!(a, b);
            a
        };
        let (l, m) = (read(1, 0), read(2, 0));
        let columns: Vec<Vec<u32>> = (0..head_dim).map(|c| read(0, c)).collect();
        (0..ROWS).map(|r| RowState { m: m[r], l: l[r], o: columns.iter().map(|c| c[r]).collect() }).collect()
    }
}

/// A random kernel: raw pages, raw rows, masks per (page, row).
struct Case {
    head_dim: usize,
    formats: [Format; 3],
    scale: u32,
    k: Vec<Vec<u16>>,
    v: Vec<Vec<u16>>,
    q: Vec<Vec<u16>>,
    masks: Vec<Vec<u16>>,
}

impl Case {
    fn random(seed: u64, head_dim: usize, pages: usize, row_tiles: usize, wild: bool) -> Case {
        let mut s = Stimulus::new(seed);
        let formats = std::array::from_fn(|_| if s.once_in(2) { Format::Fp16 } else { Format::Bf16 });
        let element = |s: &mut Stimulus, f: Format| if wild && s.once_in(40) { s.below(1 << 16) as u16 } else { f.round(s.normal() * 2.0) };
        let tensor = |n: usize, f: Format, s: &mut Stimulus| -> Vec<u16> { (0..n).map(|_| element(s, f)).collect() };
        let k = (0..pages).map(|_| tensor(16 * head_dim, formats[1], &mut s)).collect();
        let v = (0..pages).map(|_| tensor(16 * head_dim, formats[2], &mut s)).collect();
        let q = (0..row_tiles * ROWS).map(|_| tensor(head_dim, formats[0], &mut s)).collect();
        let mask = |s: &mut Stimulus| [0xFFFF, 0, s.below(1 << 16) as u16, 0xFFFF << s.below(16), 1 << s.below(16)][s.below(5) as usize];
        let masks = (0..pages).map(|_| (0..row_tiles * ROWS).map(|_| mask(&mut s)).collect()).collect();
        let scale = ((1.0 / (head_dim as f64).sqrt() * std::f64::consts::LOG2_E) as f32).to_bits();
        Case { head_dim, formats, scale, k, v, q, masks }
    }

    fn golden(&self) -> Vec<RowState> {
        let rows = self.q.iter().enumerate().map(|(row, q)| {
            let q = blocks(q, self.formats[0]);
            let mut state = RowState::empty(self.head_dim);
            for page in 0..self.k.len() {
                let tile = Page::new(0, &self.k[page], self.formats[1], &self.v[page], self.formats[2]);
                state.update(&q, &tile, self.masks[page][row], self.scale);
            }
            state
        });
        rows.collect()
    }

    fn jobs(&self) -> Vec<(usize, usize)> {
        let tiles = self.q.len() / ROWS;
        (0..self.k.len()).flat_map(|page| (0..tiles).map(move |tile| (page, tile))).collect()
    }

    fn check(&self, bench: &mut Bench) {
        bench.wait(|b| !b.unit.busy.val());
        let golden = self.golden();
        for tile in 0..self.q.len() / ROWS {
            for (r, state) in bench.state(tile, self.head_dim).into_iter().enumerate() {
                assert_eq!(state, golden[tile * ROWS + r], "row {}", tile * ROWS + r);
            }
        }
    }

    /// Loads, and runs the jobs one stage after another.
    fn run_step_by_step(&self) {
        let mut bench = Bench::new(self.head_dim, self.scale, self.formats);
        for (n, (page, tile)) in self.jobs().into_iter().enumerate() {
            let (kv, q, s) = (n % 3 == 1, n % 2 == 1, n % 5 % 2 == 1);
            bench.load_kv(&self.k[page], false, kv);
            bench.load_kv(&self.v[page], true, kv);
            bench.load_q(&self.q[tile * ROWS..][..ROWS], q);
            bench.gemm(false, kv, q, s, tile);
            bench.wait(|b| b.qk_done == n + 1);
            bench.softmax(s, tile, &self.masks[page][tile * ROWS..][..ROWS]);
            bench.wait(|b| b.softmax_done == n + 1);
            bench.gemm(true, kv, false, s, tile);
            bench.wait(|b| b.pv_done == n + 1);
        }
        self.check(&mut bench);
    }

    /// One page, all row tiles, in the order of the composite command: QK(0), QK(1), PV(0), QK(2), PV(1), ...
    fn run_overlapped(&self) {
        assert_eq!(self.k.len(), 1);
        let tiles = self.q.len() / ROWS;
        let mut bench = Bench::new(self.head_dim, self.scale, self.formats);
        bench.load_kv(&self.k[0], false, true);
        bench.load_kv(&self.v[0], true, true);
        for n in 0..=tiles {
            let buffer = n % 2 == 1;
            if n < tiles {
                bench.load_q(&self.q[n * ROWS..][..ROWS], buffer);
                bench.gemm(false, true, buffer, buffer, n);
            }
            if n > 0 {
                bench.wait(|b| b.softmax_done == n);
                bench.gemm(true, true, false, !buffer, n - 1);
            }
            if n < tiles {
                bench.wait(|b| b.qk_done == n + 1);
                bench.softmax(buffer, n, &self.masks[0][n * ROWS..][..ROWS]);
            }
        }
        self.check(&mut bench);
    }
}

#[test]
fn tiles_update_row_state_as_golden_does() {
    Case::random(1, 16, 3, 2, false).run_step_by_step();
    Case::random(2, 64, 2, 1, false).run_step_by_step();
    Case::random(3, 128, 2, 1, false).run_step_by_step();
}

#[test]
fn infinities_and_nans_stay_in_their_rows() {
    for seed in 10..13 {
        Case::random(seed, 16, 3, 2, true).run_step_by_step();
    }
}

#[test]
fn overlapped_stages_give_the_same_bits() {
    Case::random(20, 24, 1, 4, false).run_overlapped();
    Case::random(21, 128, 1, 3, true).run_overlapped();
}

#[test]
fn a_row_tile_is_empty_until_its_l_is_written() {
    let mut bench = Bench::new(16, 0, [Format::Fp16; 3]);
    let write = |bench: &mut Bench, select: u64, value: u64| {
        bench.unit.state_write.next = select != 2;
        bench.unit.maxima_write.next = select == 2;
        bench.unit.state_write_select.next = bits(select);
        bench.unit.state_write_row_tile.next = bits(3);
        bench.unit.maxima_write_row_tile.next = bits(3);
        bench.unit.state_write_data.next = bits(value << 32 | value);
        bench.unit.maxima_write_data.next = bits(value << 32 | value);
        bench.step();
        bench.unit.state_write.next = false;
        bench.unit.maxima_write.next = false;
    };
    for clear in [false, true] {
        bench.unit.clear.next = clear;
        bench.step();
        bench.unit.clear.next = false;
        write(&mut bench, 0, 0x4040_0000);
        write(&mut bench, 2, 0x3F80_0000);
        assert_eq!(bench.state(3, 16)[1], RowState::empty(16), "m alone does not count");
        write(&mut bench, 1, 0x4000_0000);
        let state = &bench.state(3, 16)[1];
        assert_eq!((state.m, state.l, state.o[0]), (0x3F80_0000, 0x4000_0000, 0x4040_0000));
    }
}
