//! Independent attention in f64 (or f32), the check of the golden model.
//!
//! The crate shares no code with the array's arithmetic and knows nothing of pages, PEs or number units: [`attend`] is the
//! textbook softmax(scale x Q Kᵀ) V, one row after the other, on the values that the 16-bit elements stand for ([`decode`]).
//! [`max_abs_error`] compares a result with it.
#![forbid(unsafe_code)]

mod attention;
mod error;

pub use attention::{Attention, Output, ShapeError, attend};
pub use error::{largest_magnitude, max_abs_error};

/// The format of 16-bit elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// IEEE 754 binary16.
    Fp16,
    /// The upper half of binary32.
    Bf16,
}

/// The values of 16-bit elements, exact.
pub fn decode(element: Element, bits: &[u16]) -> Vec<f64> {
    let value = |&bits: &u16| match element {
        Element::Fp16 => half::f16::from_bits(bits).to_f64(),
        Element::Bf16 => half::bf16::from_bits(bits).to_f64(),
    };
    bits.iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_decode_to_their_values() {
        assert_eq!(decode(Element::Fp16, &[0x3C00, 0xC000, 0x0001, 0x7BFF]), [1.0, -2.0, 2f64.powi(-24), 65_504.0]);
        assert_eq!(decode(Element::Bf16, &[0x3F80, 0xC000, 0x0001]), [1.0, -2.0, 2f64.powi(-133)]);
        assert_eq!(decode(Element::Fp16, &[0xFC00]), [f64::NEG_INFINITY]);
        assert!(decode(Element::Bf16, &[0x7FC0])[0].is_nan());
    }
}
