//! Finished rows out of the output area.

/// log(sum(exp(score))) of a row, natural logarithm, from its running maximum m (base 2) and its sum l, both fp32 bits: `(m + log2 l) ln 2` in f64,
/// rounded once. A row that saw no key gives -inf; one whose scores are all -inf gives NaN.
pub fn log_sum_exp(m: u32, l: u32) -> f32 {
    let (m, l) = (f32::from_bits(m), f32::from_bits(l));
    if m == f32::NEG_INFINITY {
        return if l == 0.0 { f32::NEG_INFINITY } else { f32::NAN };
    }
    ((f64::from(m) + libm::log2(f64::from(l))) * core::f64::consts::LN_2) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn natural_logarithm_of_a_row() {
        assert_eq!(log_sum_exp(3f32.to_bits(), 1f32.to_bits()), (8f64.ln()) as f32);
        assert_eq!(log_sum_exp(f32::NEG_INFINITY.to_bits(), 0), f32::NEG_INFINITY);
        assert!(log_sum_exp(f32::NEG_INFINITY.to_bits(), 2f32.to_bits()).is_nan());
        assert!(log_sum_exp(f32::NAN.to_bits(), f32::NAN.to_bits()).is_nan());
    }
}
