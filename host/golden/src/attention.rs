//! Row states, KV tiles, merging, and the sharded kernel.
//!
//! Online softmax after Milakov and Gimelshein (2018), with an integer running maximum (Stevens et al., *Softermax*, DAC 2021, section III),
//! and states of sequence shards merged as in *Flash-Decoding* (Dao et al., 2023). The order of every operation is that of `docs/numbers.md`, "Row
//! state and attention".

use braid_isa::layout::merge_rounds;
use braid_isa::{LANES, RANGES_PER_PASS, TILE};
use rayon::prelude::*;

use crate::dot::{Block, dot};
use crate::exp2::exp2;
use crate::format::{Format, NAN, NEG_INFINITY, Operand};
use crate::fp32::{ceil, exponent_argument, max, multiply, reciprocal, scaled_add, shift_count};

/// Half-open range of KV positions.
pub type Range = std::ops::Range<u32>;

/// Converts raw elements to blocks of eight operands.
///
/// # Panics
/// If the number of elements is not a multiple of eight.
pub fn blocks(raw: &[u16], format: Format) -> Vec<[Operand; LANES]> {
    let (chunks, rest) = raw.as_chunks::<LANES>();
    assert!(rest.is_empty(), "elements come in blocks of {LANES}");
    chunks.iter().map(|chunk| chunk.map(|bits| format.operand(bits))).collect()
}

/// A page: 16 positions of K and V.
#[derive(Clone, Debug)]
pub struct Page {
    position: u32,
    /// [position][d / 8] blocks.
    k: Vec<[Operand; LANES]>,
    /// [d][2] blocks.
    v: Vec<[Operand; LANES]>,
}

impl Page {
    /// A page from raw elements: `k` `[16][d]`, `v` transposed `[d][16]`, the first position it holds.
    ///
    /// # Panics
    /// If the lengths of `k` and `v` differ or are not 16 x a multiple of 8.
    pub fn new(position: u32, k: &[u16], k_format: Format, v: &[u16], v_format: Format) -> Page {
        assert_eq!(k.len(), v.len(), "K and V of a page have the same size");
        assert_eq!(k.len() % (TILE * LANES), 0, "a page is 16 x a multiple of 8 elements");
        Page { position, k: blocks(k, k_format), v: blocks(v, v_format) }
    }

    /// First position.
    pub fn position(&self) -> u32 {
        self.position
    }

    /// q·k of one row for every position of `wanted`; the scores of other positions are 0.
    pub fn scores(&self, q: &[[Operand; LANES]], wanted: u16) -> [u32; TILE] {
        std::array::from_fn(|j| {
            if wanted >> j & 1 == 0 {
                return 0;
            }
            let k = &self.k[j * q.len()..][..q.len()];
            q.iter().zip(k).fold(0, |acc, (q, k)| dot(acc, 0, &Block::full(*q), k))
        })
    }

    /// Bit j tells whether position j of the page lies in one of the ranges.
    pub fn visible(&self, ranges: &[Range]) -> u16 {
        (0..TILE as u32).fold(0, |mask, j| {
            let position = u64::from(self.position) + u64::from(j);
            let seen = ranges.iter().any(|r| u64::from(r.start) <= position && position < u64::from(r.end));
            mask | u16::from(seen) << j
        })
    }
}

/// What the softmax step of one row and tile hands to P·V: probabilities, and how far the older sums are scaled down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weights {
    /// Shift of the older l and O, 0 to 511.
    shift: u32,
    /// Probabilities of the positions, enabled where visible.
    halves: [Block; TILE / LANES],
}

/// A row's online-softmax state, un-normalised; fp32 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowState {
    /// Running maximum of the base-2 scores, rounded up to an integer.
    pub m: u32,
    /// Sum of the probabilities.
    pub l: u32,
    /// Sum of probability x value, d columns.
    pub o: Vec<u32>,
}

impl RowState {
    /// The state of a row that has seen nothing: (-inf, 0, 0).
    pub fn empty(head_dim: usize) -> RowState {
        RowState { m: NEG_INFINITY, l: 0, o: vec![0; head_dim] }
    }

    /// Whether the row has seen nothing.
    pub fn is_empty(&self) -> bool {
        self.m == NEG_INFINITY && self.l == 0
    }

    /// Takes in the positions of a page whose bits are set in `visible`. `q` is the row in blocks of eight, `scale` the bits of
    /// scale x log2 e. With no bit set nothing happens.
    pub fn update(&mut self, q: &[[Operand; LANES]], page: &Page, visible: u16, scale: u32) {
        if visible != 0 {
            let weights = self.weigh(&page.scores(q, visible), visible, scale);
            self.accumulate(&weights, page);
        }
    }

    /// The softmax step: raises m to the scores of the visible positions and turns them into probabilities. With no bit of `visible` set the
    /// state stays, and the weights are such that [`RowState::accumulate`] changes no bit either.
    pub fn weigh(&mut self, scores: &[u32; TILE], visible: u16, scale: u32) -> Weights {
        let seen = |j: usize| visible >> j & 1 == 1;
        let scaled = scores.map(|score| multiply(score, scale));
        let Some(largest) = (0..TILE).filter(|&j| seen(j)).map(|j| scaled[j]).reduce(max) else {
            return Weights::default();
        };
        let m = max(self.m, ceil(largest));
        let shift = shift_count(m, self.m);
        self.m = m;
        let weight = |j: usize| if seen(j) { Operand::from_fp32(exp2(exponent_argument(scaled[j], m))) } else { Operand::default() };
        let half = |half: usize| Block {
            lanes: std::array::from_fn(|lane| weight(half * LANES + lane)),
            enable: (visible >> (half * LANES)) as u8,
        };
        Weights { shift, halves: std::array::from_fn(half) }
    }

    /// The P·V step: rescales l and O, and adds the weighted values.
    pub fn accumulate(&mut self, weights: &Weights, page: &Page) {
        let Weights { shift, halves } = weights;
        // An empty row's O is +0 and stays so under any shift, so the hardware's "untouched" flag needs no counterpart here.
        let accumulate = |acc: u32, v: &[[Operand; LANES]]| dot(dot(acc, *shift, &halves[0], &v[0]), 0, &halves[1], &v[1]);
        for (o, v) in self.o.iter_mut().zip(page.v.chunks_exact(TILE / LANES)) {
            *o = accumulate(*o, v);
        }
        self.l = accumulate(self.l, &[[Operand::ONE; LANES]; TILE / LANES]);
    }

    /// The state of both sequence shards together. Commutative; an empty state is the identity.
    pub fn merge(&self, other: &RowState) -> RowState {
        if other.is_empty() {
            return self.clone();
        }
        if self.is_empty() {
            return other.clone();
        }
        let m = max(self.m, other.m);
        let (ka, kb) = (shift_count(m, self.m), shift_count(m, other.m));
        let add = |a: u32, b: u32| scaled_add(a, ka, b, kb);
        RowState { m, l: add(self.l, other.l), o: self.o.iter().zip(&other.o).map(|(a, b)| add(*a, *b)).collect() }
    }

    /// The normalised output row.
    pub fn finish(&self) -> Vec<u32> {
        if self.m == NEG_INFINITY {
            return vec![if self.l == 0 { 0 } else { NAN }; self.o.len()];
        }
        let inverse = reciprocal(self.l);
        self.o.iter().map(|&o| multiply(o, inverse)).collect()
    }
}

/// The passes in which a row's ranges are served: sorted, overlapping and adjacent ones united, empty ones dropped, four at a time.
pub fn passes(ranges: &[Range]) -> Vec<Vec<Range>> {
    let mut sorted: Vec<Range> = ranges.iter().filter(|r| r.start < r.end).cloned().collect();
    sorted.sort_by_key(|r| (r.start, r.end));
    let mut united: Vec<Range> = Vec::new();
    for range in sorted {
        match united.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => united.push(range),
        }
    }
    united.chunks(RANGES_PER_PASS).map(<[Range]>::to_vec).collect()
}

/// Attention of rows over sharded pages: what one launch computes.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Columns of Q, K and V; a multiple of eight.
    pub head_dim: usize,
    /// Bits of the fp32 scale x log2 e.
    pub scale: u32,
    /// Pages of every active PE, in the order of its commands.
    pub shards: Vec<Vec<Page>>,
}

impl Kernel {
    /// Merged state of one row, `q` in blocks of eight.
    pub fn row(&self, q: &[[Operand; LANES]], ranges: &[Range]) -> RowState {
        let passes = passes(ranges);
        let rounds = merge_rounds(self.shards.len().max(1));
        let mut states: Vec<RowState> = (0..1 << rounds)
            .map(|pe| {
                let mut state = RowState::empty(self.head_dim);
                let pages = self.shards.get(pe).map_or(&[][..], Vec::as_slice);
                for pass in &passes {
                    for page in pages {
                        state.update(q, page, page.visible(pass), self.scale);
                    }
                }
                state
            })
            .collect();
        for _ in 0..rounds {
            states = states.chunks_exact(2).map(|pair| pair[0].merge(&pair[1])).collect();
        }
        states.swap_remove(0)
    }

    /// Merged states of many rows, in parallel.
    pub fn rows(&self, rows: &[(Vec<[Operand; LANES]>, Vec<Range>)]) -> Vec<RowState> {
        rows.par_iter().map(|(q, ranges)| self.row(q, ranges)).collect()
    }
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "a row with one range is a list of one range")]
mod tests {
    use super::*;
    use crate::stimulus::Stimulus;

    const D: usize = 24;

    fn scale() -> u32 {
        ((1.0 / (D as f64).sqrt() * std::f64::consts::LOG2_E) as f32).to_bits()
    }

    fn elements(stimulus: &mut Stimulus, n: usize) -> Vec<u16> {
        (0..n).map(|_| Format::Fp16.round(stimulus.normal() * 3.0)).collect()
    }

    fn kernel(stimulus: &mut Stimulus, pes: usize, pages: usize) -> Kernel {
        let mut shards = vec![Vec::new(); pes];
        for page in 0..pages {
            let (k, v) = (elements(stimulus, TILE * D), elements(stimulus, TILE * D));
            shards[page % pes].push(Page::new((page * TILE) as u32, &k, Format::Fp16, &v, Format::Fp16));
        }
        Kernel { head_dim: D, scale: scale(), shards }
    }

    fn q(stimulus: &mut Stimulus) -> Vec<[Operand; LANES]> {
        blocks(&elements(stimulus, D), Format::Fp16)
    }

    #[test]
    fn merge_is_commutative_and_empty_is_its_identity() {
        let mut stimulus = Stimulus::new(11);
        let kernel = kernel(&mut stimulus, 1, 4);
        for _ in 0..50 {
            let q = q(&mut stimulus);
            let (a, b) = (kernel.row(&q, &[0..17]), kernel.row(&q, &[20..64]));
            assert_eq!(a.merge(&b), b.merge(&a));
            assert_eq!(a.merge(&RowState::empty(D)), a);
            assert_eq!(RowState::empty(D).merge(&a), a);
        }
        assert!(RowState::empty(D).merge(&RowState::empty(D)).is_empty());
    }

    #[test]
    fn a_row_that_sees_no_key_is_zero() {
        let mut stimulus = Stimulus::new(12);
        let kernel = kernel(&mut stimulus, 3, 5);
        let state = kernel.row(&q(&mut stimulus), &[7..7]);
        assert!(state.is_empty());
        assert_eq!(state.finish(), vec![0; D]);
    }

    #[test]
    fn a_masked_page_changes_no_bit() {
        let mut stimulus = Stimulus::new(13);
        let kernel = kernel(&mut stimulus, 1, 3);
        let q = q(&mut stimulus);
        let before = kernel.row(&q, &[0..30]);
        let mut after = before.clone();
        after.update(&q, &kernel.shards[0][2], 0, kernel.scale);
        assert_eq!(before, after);
    }

    #[test]
    fn whatever_lies_in_invisible_memory_cannot_reach_the_output() {
        let mut stimulus = Stimulus::new(14);
        let clean = kernel(&mut stimulus, 2, 4);
        for poison in [0x7E00u16, 0x7C00, 0xFC00, 0xFFFF] {
            let mut dirty = clean.clone();
            for page in dirty.shards.iter_mut().flatten() {
                for j in 0..TILE {
                    if !(10..40).contains(&(page.position as usize + j)) {
                        let poison = Format::Fp16.operand(poison);
                        (0..D / LANES).for_each(|b| page.k[j * (D / LANES) + b] = [poison; LANES]);
                        (0..D).for_each(|c| page.v[c * 2 + j / LANES][j % LANES] = poison);
                    }
                }
            }
            let q = q(&mut stimulus);
            assert_eq!(clean.row(&q, &[10..40]), dirty.row(&q, &[10..40]));
        }
    }

    #[test]
    fn negative_infinite_scores_count_only_where_no_finite_one_is() {
        let mut stimulus = Stimulus::new(15);
        let mut kernel = kernel(&mut stimulus, 1, 2);
        let mut q = vec![[Operand::default(); LANES]; D / LANES];
        q[0][0] = Operand::ONE;
        kernel.shards[0][0].k[0][0] = Operand::from_fp32(NEG_INFINITY);
        let all = kernel.row(&q, &[0..20]).finish();
        let without = kernel.row(&q, &[1..20]).finish();
        assert_eq!(all, without, "a score of -inf has weight 0");
        let alone = kernel.row(&q, &[0..1]);
        assert_eq!(alone.finish(), vec![NAN; D], "softmax of -inf alone is NaN");
    }

    #[test]
    fn ranges_are_united_before_they_are_counted() {
        assert_eq!(passes(&[5..5, 3..9, 0..4, 9..12, 20..21]), vec![vec![0..12, 20..21]]);
        assert_eq!(passes(&[]), Vec::<Vec<Range>>::new());
        let many: Vec<Range> = (0..6).map(|i| i * 10..i * 10 + 3).collect();
        assert_eq!(passes(&many).iter().map(Vec::len).collect::<Vec<_>>(), [4, 2]);
    }
}
