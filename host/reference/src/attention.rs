//! Grouped-query attention in a floating-point type of choice, two passes over the visible positions of a row.

use std::ops::Range;

use bitvec::vec::BitVec;
use num_traits::Float;

/// Shapes and scale of one attention that computes in `F`: f64 as the reference of the golden model, f32 as the peer of other f32 attentions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attention<F> {
    /// Rows of Q: tokens.
    pub rows: usize,
    /// Query heads of a row; a multiple of `kv_heads`. Query head h reads KV head `h / (q_heads / kv_heads)`.
    pub q_heads: usize,
    /// KV positions.
    pub positions: usize,
    /// KV heads.
    pub kv_heads: usize,
    /// Columns of Q, K and V.
    pub head_dim: usize,
    /// Factor of the scores, usually 1/sqrt(head_dim).
    pub scale: F,
}

/// Result of [`attend`].
#[derive(Clone, Debug, PartialEq)]
pub struct Output<F> {
    /// `[rows][q_heads][head_dim]`; zero for a row that sees no position.
    pub o: Vec<F>,
    /// `[rows][q_heads]`, log of the sum of exponentials, natural; -inf for a row that sees no position.
    pub lse: Vec<F>,
}

/// Tensors do not fit the shapes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// A tensor's length is not the product of its dimensions.
    #[error("{tensor} has {found} elements, its shape asks for {expected}")]
    Length {
        /// Name of the tensor.
        tensor: &'static str,
        /// Elements given.
        found: usize,
        /// Elements needed.
        expected: usize,
    },
    /// Query heads do not divide among KV heads.
    #[error("{q_heads} query heads cannot be divided among {kv_heads} KV heads")]
    Heads {
        /// Query heads.
        q_heads: usize,
        /// KV heads.
        kv_heads: usize,
    },
    /// A row's range ends beyond the last position.
    #[error("row {row} sees positions up to {end}, there are {positions}")]
    Range {
        /// Row.
        row: usize,
        /// End of the range.
        end: usize,
        /// Positions.
        positions: usize,
    },
}

/// softmax(scale x Q Kᵀ) V. `q` is `[rows][q_heads][head_dim]`, `k` and `v` are `[positions][kv_heads][head_dim]`; `ranges` holds for every
/// row the half-open ranges of positions that it sees, in any order (an empty one counts as none, a position in two ranges counts
/// once). Values that are not finite do what IEEE arithmetic does with them, and nothing in rows that do not see them.
///
/// # Errors
/// [`ShapeError`] if a tensor's length, the heads or a range do not fit the shape.
pub fn attend<F: Float>(shape: &Attention<F>, q: &[F], k: &[F], v: &[F], ranges: &[Vec<Range<usize>>]) -> Result<Output<F>, ShapeError> {
    let &Attention { rows, q_heads, positions, kv_heads, head_dim, scale } = shape;
    if kv_heads == 0 || q_heads % kv_heads != 0 {
        return Err(ShapeError::Heads { q_heads, kv_heads });
    }
    let kv_length = positions * kv_heads * head_dim;
    let lengths =
        [("q", q.len(), rows * q_heads * head_dim), ("k", k.len(), kv_length), ("v", v.len(), kv_length), ("ranges", ranges.len(), rows)];
    for (tensor, found, expected) in lengths {
        if found != expected {
            return Err(ShapeError::Length { tensor, found, expected });
        }
    }

    let mut output = Output { o: Vec::with_capacity(q.len()), lse: Vec::with_capacity(rows * q_heads) };
    for (row, ranges) in ranges.iter().enumerate() {
        let mut visible: BitVec = BitVec::repeat(false, positions);
        for range in ranges.iter().filter(|r| r.start < r.end) {
            let seen = visible.get_mut(range.clone()).ok_or(ShapeError::Range { row, end: range.end, positions })?;
            seen.fill(true);
        }
        for head in 0..q_heads {
            let kv_head = head / (q_heads / kv_heads);
            let vector = |position: usize| (position * kv_heads + kv_head) * head_dim..(position * kv_heads + kv_head + 1) * head_dim;
            let q = &q[(row * q_heads + head) * head_dim..][..head_dim];
            let dot = |k: &[F]| q.iter().zip(k).fold(F::zero(), |sum, (&a, &b)| sum + a * b);
            let scores: Vec<(usize, F)> = visible.iter_ones().map(|p| (p, scale * dot(&k[vector(p)]))).collect();
            // The maximum passes over NaN, which the exponentials bring back.
            let largest = scores.iter().fold(F::neg_infinity(), |m, s| m.max(s.1));
            let (mut sum, mut o) = (F::zero(), vec![F::zero(); head_dim]);
            for &(position, score) in &scores {
                let weight = (score - largest).exp();
                sum = sum + weight;
                o.iter_mut().zip(&v[vector(position)]).for_each(|(o, &v)| *o = *o + weight * v);
            }
            if !scores.is_empty() {
                o.iter_mut().for_each(|o| *o = *o / sum);
            }
            output.o.extend(o);
            output.lse.push(largest + sum.ln());
        }
    }
    Ok(output)
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "a row with one range is a list of one range")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shape(rows: usize, positions: usize, head_dim: usize) -> Attention<f64> {
        Attention { rows, q_heads: 1, positions, kv_heads: 1, head_dim, scale: 1.0 }
    }

    #[test]
    fn equal_scores_give_the_mean_of_v() {
        let out = attend(&shape(1, 4, 1), &[0.0], &[1.0, 2.0, 3.0, 4.0], &[1.0, 2.0, 3.0, 6.0], &[vec![0..4]]).unwrap();
        assert_eq!(out.o, [3.0]);
        assert_eq!(out.lse, [4f64.ln()]);
    }

    #[test]
    fn a_hand_computed_case_comes_out() {
        // Scores 0 and ln 3: weights 1/4 and 3/4.
        let out = attend(&shape(1, 2, 1), &[1.0], &[0.0, 3f64.ln()], &[8.0, -4.0], &[vec![0..2]]).unwrap();
        assert!((out.o[0] + 1.0).abs() < 1e-14);
        assert!((out.lse[0] - 4f64.ln()).abs() < 1e-14);
    }

    #[test]
    fn a_row_that_sees_nothing_is_zero_with_lse_minus_infinity() {
        for ranges in [vec![], vec![1..1], vec![Range { start: 2, end: 1 }]] {
            let out = attend(&shape(1, 2, 1), &[f64::NAN], &[f64::NAN; 2], &[f64::INFINITY; 2], &[ranges]).unwrap();
            assert_eq!(out, Output { o: vec![0.0], lse: vec![f64::NEG_INFINITY] });
        }
        let nothing = attend(&shape(1, 0, 1), &[1.0], &[], &[], &[vec![]]).unwrap();
        assert_eq!(nothing, Output { o: vec![0.0], lse: vec![f64::NEG_INFINITY] });
    }

    #[test]
    fn overlapping_ranges_count_a_position_once() {
        let (k, v) = ([0.0; 3], [3.0, 6.0, 9.0]);
        let once = attend(&shape(1, 3, 1), &[1.0], &k, &v, &[vec![0..3]]).unwrap();
        let twice = attend(&shape(1, 3, 1), &[1.0], &k, &v, &[vec![1..3, 0..2, 1..1]]).unwrap();
        assert_eq!(once, twice);
    }

    #[test]
    fn query_heads_share_the_kv_head_of_their_group() {
        let shape = Attention { rows: 1, q_heads: 4, positions: 1, kv_heads: 2, head_dim: 1, scale: 1.0 };
        let out = attend(&shape, &[1.0; 4], &[0.0; 2], &[5.0, 7.0], &[vec![0..1]]).unwrap();
        assert_eq!(out.o, [5.0, 5.0, 7.0, 7.0]);
    }

    #[test]
    fn what_is_not_finite_acts_as_in_ieee_and_only_where_it_is_seen() {
        let (k, v) = ([0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN], [1.0, 2.0, 3.0, 4.0]);
        let rows = vec![vec![0..1], vec![0..2], vec![0..1, 2..3], vec![2..3], vec![0..1, 3..4]];
        let out = attend(&shape(5, 4, 1), &[1.0; 5], &k, &v, &rows).unwrap();
        assert_eq!(out.o[0], 1.0);
        assert!(out.o[1].is_nan(), "inf - inf");
        assert_eq!(out.o[2], 1.0, "a score of -inf has weight 0");
        assert!(out.o[3].is_nan() && out.o[4].is_nan());
        assert!(out.lse[3].is_nan() && out.lse[4].is_nan());
    }

    #[test]
    fn f32_attention_is_close_to_f64_and_not_equal() {
        let q: Vec<f64> = (0..8).map(|i| f64::from(i).sin()).collect();
        let k: Vec<f64> = (0..40).map(|i| f64::from(i * i).cos()).collect();
        let v: Vec<f64> = (0..40).map(|i| f64::from(3 * i).sin()).collect();
        let single = |x: &[f64]| x.iter().map(|&x| x as f32).collect::<Vec<f32>>();
        let ranges = [vec![0..10], vec![3..7]];
        let double = attend(&shape(2, 10, 4), &q, &k, &v, &ranges).unwrap();
        let narrow = Attention::<f32> { rows: 2, q_heads: 1, positions: 10, kv_heads: 1, head_dim: 4, scale: 1.0 };
        let got = attend(&narrow, &single(&q), &single(&k), &single(&v), &ranges).unwrap();
        let error = double.o.iter().zip(&got.o).map(|(a, &b)| (a - f64::from(b)).abs()).fold(0.0, f64::max);
        assert!(error > 0.0 && error < 1e-6, "{error}");
    }

    #[test]
    fn shapes_that_disagree_are_named() {
        let s = shape(1, 2, 1);
        let error = |q: &[f64], k: &[f64], v: &[f64], r: &[Vec<Range<usize>>]| attend(&s, q, k, v, r).unwrap_err().to_string();
        assert_eq!(error(&[], &[0.0; 2], &[0.0; 2], &[vec![]]), "q has 0 elements, its shape asks for 1");
        assert_eq!(error(&[0.0], &[0.0; 2], &[0.0; 3], &[vec![]]), "v has 3 elements, its shape asks for 2");
        assert_eq!(error(&[0.0], &[0.0; 2], &[0.0; 2], &[vec![0..3]]), "row 0 sees positions up to 3, there are 2");
        let heads = Attention { q_heads: 3, kv_heads: 2, ..s };
        assert_eq!(attend(&heads, &[], &[], &[], &[]).unwrap_err(), ShapeError::Heads { q_heads: 3, kv_heads: 2 });
    }

    proptest! {
        #[test]
        fn shifting_all_scores_changes_only_lse(k in prop::collection::vec(-3f64..3.0, 1..20), shift in -50f64..50.0) {
            let n = k.len();
            let v: Vec<f64> = k.iter().map(|x| x * x - 1.0).collect();
            let shifted: Vec<f64> = k.iter().map(|x| x + shift).collect();
            let ranges = [vec![0..n]];
            let a = attend(&shape(1, n, 1), &[1.0], &k, &v, &ranges).unwrap();
            let b = attend(&shape(1, n, 1), &[1.0], &shifted, &v, &ranges).unwrap();
            prop_assert!((a.o[0] - b.o[0]).abs() < 1e-12);
            prop_assert!((a.lse[0] + shift - b.lse[0]).abs() < 1e-12);
        }

        #[test]
        fn an_output_lies_between_the_extremes_of_v(k in prop::collection::vec(-9f64..9.0, 1..20), q in -9f64..9.0) {
            let n = k.len();
            let v: Vec<f64> = k.iter().rev().copied().collect();
            let out = attend(&shape(1, n, 1), &[q], &k, &v, &[vec![0..n]]).unwrap();
            let (low, high) = v.iter().fold((f64::MAX, f64::MIN), |(l, h), &x| (l.min(x), h.max(x)));
            prop_assert!(low - 1e-12 <= out.o[0] && out.o[0] <= high + 1e-12);
        }
    }
}
