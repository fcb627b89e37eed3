//! Safetensors in and out.

use std::io::Write;
use std::ops::Range;
use std::path::Path;

use braid_runtime::{Element, Problem, Tensor};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use crate::error::Error;
use crate::output;

/// The problem in a safetensors file. f32 is rounded to `element`.
pub(crate) fn problem(name: &str, bytes: &[u8], element: Element) -> Result<Problem, Error> {
    let file = SafeTensors::deserialize(bytes).map_err(|e| Error::Format { name: name.into(), reason: e.to_string() })?;
    let wrong = |reason: String| Error::Tensor { name: name.into(), reason };
    let find = |tensor: &str| file.tensor(tensor).map_err(|_| wrong(format!("there is no tensor '{tensor}'; needed are q, k and v")));
    let q = elements("q", &find("q")?, element).map_err(wrong)?;
    let k = elements("k", &find("k")?, element).map_err(wrong)?;
    let v = elements("v", &find("v")?, element).map_err(wrong)?;
    let ranges = match file.tensor("ranges") {
        Ok(view) => ranges(&view, q.rows, k.rows).map_err(wrong)?,
        Err(_) => vec![vec![Range { start: 0, end: k.rows as u32 }]; q.rows],
    };
    Problem::new(q, k, v, ranges).map_err(|source| Error::Problem { name: name.into(), source })
}

/// A [rows, heads, d] tensor as 16-bit elements.
fn elements(name: &str, view: &TensorView<'_>, element: Element) -> Result<Tensor, String> {
    let &[rows, heads, head_dim] = view.shape() else {
        return Err(format!("'{name}' has shape {:?}; three dimensions are needed: rows or positions, heads, d", view.shape()));
    };
    if u32::try_from(rows).is_err() {
        return Err(format!("'{name}' has {rows} rows, more than 32-bit positions can number"));
    }
    let halves = || view.data().as_chunks::<2>().0.iter().map(|b| u16::from_le_bytes(*b)).collect();
    let (element, data) = match view.dtype() {
        Dtype::F16 => (Element::Fp16, halves()),
        Dtype::BF16 => (Element::Bf16, halves()),
        Dtype::F32 => (element, view.data().as_chunks::<4>().0.iter().map(|b| element.round(f32::from_le_bytes(*b))).collect()),
        other => return Err(format!("'{name}' has type {other:?}; F32, F16 or BF16 is needed")),
    };
    Ok(Tensor { rows, heads, head_dim, element, data })
}

/// Half-open ranges, i32 [rows, n, 2].
fn ranges(view: &TensorView<'_>, rows: usize, positions: usize) -> Result<Vec<Vec<Range<u32>>>, String> {
    let &[given, n, 2] = view.shape() else {
        return Err(format!("'ranges' has shape {:?}; [rows, n, 2] is needed", view.shape()));
    };
    if view.dtype() != Dtype::I32 {
        return Err(format!("'ranges' has type {:?}; I32 is needed", view.dtype()));
    }
    if given != rows {
        return Err(format!("'ranges' is given for {given} rows, but q has {rows}"));
    }
    let values: Vec<i32> = view.data().as_chunks::<4>().0.iter().map(|b| i32::from_le_bytes(*b)).collect();
    (0..rows)
        .map(|row| {
            let pairs = values[row * n * 2..][..n * 2].as_chunks::<2>().0;
            pairs
                .iter()
                .map(|&[start, end]| match (u32::try_from(start), u32::try_from(end)) {
                    (Ok(start), Ok(end)) if start <= end && end as usize <= positions => Ok(start..end),
                    _ => Err(format!("row {row}: range {start}..{end} does not lie within the {positions} positions")),
                })
                .collect()
        })
        .collect()
}

/// Writes o [rows, q_heads, d] and lse [rows, q_heads], all or nothing: an existing file stays as it was until the new one is complete.
pub(crate) fn write(path: &Path, shape: [usize; 3], o: &[u32], lse: &[f32]) -> Result<(), Error> {
    let o: &[u8] = bytemuck::cast_slice(o);
    let lse: &[u8] = bytemuck::cast_slice(lse);
    let view = |shape: &[usize], data| {
        TensorView::new(Dtype::F32, shape.to_vec(), data)
            .map_err(|e| Error::Tensor { name: path.display().to_string(), reason: e.to_string() })
    };
    let tensors = [("o", view(&shape, o)?), ("lse", view(&shape[..2], lse)?)];
    let bytes =
        safetensors::serialize(tensors, None).map_err(|e| Error::Tensor { name: path.display().to_string(), reason: e.to_string() })?;
    let mut file = output::beside(path)?;
    file.write_all(&bytes).map_err(|error| output::write_error(path, error))?;
    output::persist(file, path)
}
