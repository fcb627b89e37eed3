//! An attention problem in 16-bit elements.

use std::ops::Range;

use thiserror::Error;

/// Format of 16-bit elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Element {
    /// IEEE 754 binary16.
    #[default]
    Fp16,
    /// The upper half of binary32.
    Bf16,
}

impl Element {
    /// Rounds an f32 to the format, to nearest even.
    pub fn round(self, value: f32) -> u16 {
        match self {
            Element::Fp16 => half::f16::from_f32(value).to_bits(),
            Element::Bf16 => half::bf16::from_f32(value).to_bits(),
        }
    }
}

/// A tensor [rows, heads, d] of 16-bit elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Rows (tokens, or KV positions).
    pub rows: usize,
    /// Heads.
    pub heads: usize,
    /// Columns of a head.
    pub head_dim: usize,
    /// Format of the elements.
    pub element: Element,
    /// Elements, row-major.
    pub data: Vec<u16>,
}

impl Tensor {
    /// Columns of one head of one row.
    pub fn head(&self, row: usize, head: usize) -> &[u16] {
        &self.data[(row * self.heads + head) * self.head_dim..][..self.head_dim]
    }
}

/// Grouped-query attention: `q` [rows, q_heads, d] over `k`, `v` [positions, kv_heads, d], each row seeing its ranges of positions.
#[derive(Clone, Debug)]
pub struct Problem {
    q: Tensor,
    k: Tensor,
    v: Tensor,
    ranges: Vec<Vec<Range<u32>>>,
}

/// A problem that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProblemError {
    /// K and V differ.
    #[error("k is {k:?} but v is {v:?} [positions, kv_heads, d]; they must have the same shape")]
    KeysAndValues {
        /// Shape of k.
        k: [usize; 3],
        /// Shape of v.
        v: [usize; 3],
    },
    /// Q's head dimension is not K's.
    #[error("q has d = {q} but k has d = {k}")]
    HeadDimension {
        /// Columns of q.
        q: usize,
        /// Columns of k.
        k: usize,
    },
    /// No columns.
    #[error("d is 0")]
    NoColumns,
    /// Heads do not divide.
    #[error("{q_heads} query heads cannot be shared by {kv_heads} KV heads; the first must be a multiple of the second")]
    Heads {
        /// Query heads.
        q_heads: usize,
        /// KV heads.
        kv_heads: usize,
    },
    /// Another number of range lists than rows.
    #[error("ranges are given for {given} rows, but q has {rows}")]
    RangeRows {
        /// Rows with ranges.
        given: usize,
        /// Rows of q.
        rows: usize,
    },
    /// A range that is reversed or leaves the positions.
    #[error("row {row}: range {start}..{end} does not lie within the {positions} positions")]
    Range {
        /// Row.
        row: usize,
        /// First position.
        start: i64,
        /// End.
        end: i64,
        /// Positions of k and v.
        positions: usize,
    },
    /// The data do not fill the shape.
    #[error("{name} has {got} elements, but its shape {shape:?} needs {expected}")]
    Length {
        /// Tensor.
        name: &'static str,
        /// Elements given.
        got: usize,
        /// Elements needed.
        expected: usize,
        /// Shape.
        shape: [usize; 3],
    },
}

impl Problem {
    /// Checks and keeps a problem. `ranges` are half-open; an empty one counts as none.
    ///
    /// # Errors
    /// The first thing that does not fit, named.
    pub fn new(q: Tensor, k: Tensor, v: Tensor, ranges: Vec<Vec<Range<u32>>>) -> Result<Problem, ProblemError> {
        for (name, t) in [("q", &q), ("k", &k), ("v", &v)] {
            let shape = [t.rows, t.heads, t.head_dim];
            let expected = t.rows.saturating_mul(t.heads).saturating_mul(t.head_dim);
            if t.data.len() != expected {
                return Err(ProblemError::Length { name, got: t.data.len(), expected, shape });
            }
        }
        let shape = |t: &Tensor| [t.rows, t.heads, t.head_dim];
        if shape(&k) != shape(&v) {
            return Err(ProblemError::KeysAndValues { k: shape(&k), v: shape(&v) });
        }
        if q.head_dim != k.head_dim {
            return Err(ProblemError::HeadDimension { q: q.head_dim, k: k.head_dim });
        }
        if q.head_dim == 0 {
            return Err(ProblemError::NoColumns);
        }
        if k.heads == 0 || !q.heads.is_multiple_of(k.heads) {
            return Err(ProblemError::Heads { q_heads: q.heads, kv_heads: k.heads });
        }
        if ranges.len() != q.rows {
            return Err(ProblemError::RangeRows { given: ranges.len(), rows: q.rows });
        }
        for (row, list) in ranges.iter().enumerate() {
            if let Some(r) = list.iter().find(|r| r.start > r.end || r.end as usize > k.rows) {
                return Err(ProblemError::Range { row, start: r.start.into(), end: r.end.into(), positions: k.rows });
            }
        }
        Ok(Problem { q, k, v, ranges })
    }

    /// Queries.
    pub fn q(&self) -> &Tensor {
        &self.q
    }

    /// Keys.
    pub fn k(&self) -> &Tensor {
        &self.k
    }

    /// Values.
    pub fn v(&self) -> &Tensor {
        &self.v
    }

    /// Ranges of every row.
    pub fn ranges(&self) -> &[Vec<Range<u32>>] {
        &self.ranges
    }

    /// Query heads that share a KV head.
    pub fn group(&self) -> usize {
        self.q.heads / self.k.heads
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(rows: usize, heads: usize, head_dim: usize) -> Tensor {
        Tensor { rows, heads, head_dim, element: Element::Fp16, data: vec![0; rows * heads * head_dim] }
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let new = |q, k, v, r| Problem::new(q, k, v, r).map(|_| ()).expect_err("it does not fit");
        assert!(new(tensor(1, 3, 8), tensor(4, 2, 8), tensor(4, 2, 8), vec![vec![]]).to_string().starts_with("3 query heads"));
        assert!(matches!(new(tensor(1, 2, 8), tensor(4, 2, 8), tensor(5, 2, 8), vec![vec![]]), ProblemError::KeysAndValues { .. }));
        assert!(matches!(new(tensor(1, 2, 16), tensor(4, 2, 8), tensor(4, 2, 8), vec![vec![]]), ProblemError::HeadDimension { .. }));
        assert!(matches!(new(tensor(1, 2, 8), tensor(4, 2, 8), tensor(4, 2, 8), vec![vec![0..5]]), ProblemError::Range { .. }));
        assert!(matches!(new(tensor(2, 2, 8), tensor(4, 2, 8), tensor(4, 2, 8), vec![vec![]]), ProblemError::RangeRows { .. }));
    }
}
