//! Comparing results.

/// Largest absolute difference. Two NaNs, and two equal infinities, do not differ; a NaN on one side only differs by infinity.
///
/// # Panics
/// If the lengths differ.
pub fn max_abs_error(got: &[f64], expected: &[f64]) -> f64 {
    assert_eq!(got.len(), expected.len(), "results of the same shape are compared");
    let difference = |(&a, &b): (&f64, &f64)| {
        if a == b || (a.is_nan() && b.is_nan()) {
            0.0
        } else if a.is_nan() || b.is_nan() {
            f64::INFINITY
        } else {
            (a - b).abs()
        }
    };
    got.iter().zip(expected).map(difference).fold(0.0, f64::max)
}

/// Largest magnitude among the finite values, 0 if there is none: the unit in which errors of O are bounded.
pub fn largest_magnitude(values: &[f64]) -> f64 {
    values.iter().filter(|v| v.is_finite()).fold(0.0, |largest, v| largest.max(v.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NAN: f64 = f64::NAN;
    const INF: f64 = f64::INFINITY;

    #[test]
    fn nan_on_one_side_is_a_difference_and_on_both_is_none() {
        assert_eq!(max_abs_error(&[1.0, NAN], &[1.0, 2.0]), INF);
        assert_eq!(max_abs_error(&[1.0, 2.0], &[1.0, NAN]), INF);
        assert_eq!(max_abs_error(&[1.0, NAN], &[1.0, NAN]), 0.0);
        assert_eq!(max_abs_error(&[NAN, 1.0], &[NAN, 1.5]), 0.5, "a NaN does not hide what follows");
        assert_eq!(max_abs_error(&[1.0, NAN, 3.0], &[1.0, 0.0, 3.0]), INF, "a NaN is not lost among numbers");
    }

    #[test]
    fn infinities_differ_unless_they_are_equal() {
        assert_eq!(max_abs_error(&[INF, -INF], &[INF, -INF]), 0.0);
        assert_eq!(max_abs_error(&[INF], &[-INF]), INF);
        assert_eq!(max_abs_error(&[INF], &[1.0]), INF);
        assert_eq!(max_abs_error(&[INF], &[NAN]), INF);
    }

    #[test]
    fn nothing_differs_from_nothing() {
        assert_eq!(max_abs_error(&[], &[]), 0.0);
        assert_eq!(largest_magnitude(&[]), 0.0);
        assert_eq!(largest_magnitude(&[NAN, -3.0, INF, 2.0]), 3.0);
    }

    proptest! {
        #[test]
        fn the_error_is_symmetric_and_found_wherever_it_is(mut values in prop::collection::vec(-1e6f64..1e6, 1..40), at: prop::sample::Index, by in 0.001f64..10.0) {
            let expected = values.clone();
            values[at.index(expected.len())] += by;
            let error = max_abs_error(&values, &expected);
            prop_assert!((error - by).abs() < 1e-9);
            prop_assert_eq!(error, max_abs_error(&expected, &values));
        }
    }
}
