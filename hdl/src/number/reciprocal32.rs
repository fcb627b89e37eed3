//! Correctly rounded fp32 reciprocal by restoring division.
//!
//! ```text
//!  start, value --> [ remainder | quotient | steps ] --> busy, result
//!
//!  idle --start--> divide (25 steps) --> round --> idle
//! ```
//!
//! A result is there [`Reciprocal32::LATENCY`] cycles after `start`, when `busy` falls, and stays until the next `start`; `start` while busy is ignored.
//!
//! With D the normalised 24-bit significand, 25 steps give q = floor(2^48 / D), 24 bits and a guard bit, and the remainder is the sticky bit. A
//! power of two (D = 2^23) is exact and takes the quotient 2^24 with an exponent one higher.

use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Reciprocal32 {
    pub clock: Signal<In, Clock>,
    pub start: Signal<In, Bit>,
    pub value: Signal<In, Bits<32>>,
    pub busy: Signal<Out, Bit>,
    pub result: Signal<Out, Bits<32>>,
    // decode
    exponent: Signal<Local, Bits<8>>,
    fraction: Signal<Local, Bits<23>>,
    significand: Signal<Local, Bits<24>>,
    quotient_exponent: Signal<Local, Bits<10>>,
    power: Signal<Local, Bit>,
    // state
    running: DFF<Bit>,
    rounding: DFF<Bit>,
    step: DFF<Bits<5>>,
    divisor: DFF<Bits<25>>,
    remainder: DFF<Bits<25>>,
    quotient: DFF<Bits<25>>,
    biased: DFF<Bits<10>>,
    sign: DFF<Bit>,
    nan: DFF<Bit>,
    infinite: DFF<Bit>,
    zero: DFF<Bit>,
    exact: DFF<Bit>,
    answer: DFF<Bits<32>>,
    // divide
    doubled: Signal<Local, Bits<25>>,
    reduced: Signal<Local, Bits<25>>,
    fits: Signal<Local, Bit>,
    // round
    inexact: Signal<Local, Bit>,
    moved: Signal<Local, Bits<25>>,
    sticky: Signal<Local, Bit>,
    round_up: Signal<Local, Bit>,
    field: Signal<Local, Bits<33>>,
    unrounded: Signal<Local, Bits<33>>,
    rounded: Signal<Local, Bits<33>>,
    packed: Signal<Local, Bits<32>>,
}

impl Reciprocal32 {
    /// Cycles from `start` until the result may be read.
    pub const LATENCY: usize = 27;
}

impl Logic for Reciprocal32 {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, running, rounding, step, divisor, remainder, quotient, biased, sign, nan, infinite, zero, exact, answer);
        self.exponent.next = self.value.val().get_bits::<8>(23);
        self.fraction.next = self.value.val().get_bits::<23>(0);
        // A subnormal x of 2^-128 or less has an infinite reciprocal, so two places of normalisation are enough.
        self.significand.next = bit_cast::<24, 23>(self.fraction.val()) | 0x80_0000;
        self.quotient_exponent.next = bits::<10>(253) - bit_cast::<10, 8>(self.exponent.val());
        if !self.exponent.val().any() {
            if self.fraction.val().get_bit(22) {
                self.significand.next = bit_cast::<24, 23>(self.fraction.val()) << 1;
                self.quotient_exponent.next = 253.into();
            } else {
                self.significand.next = bit_cast::<24, 23>(self.fraction.val()) << 2;
                self.quotient_exponent.next = 254.into();
            }
        }
        self.power.next = !self.significand.val().get_bits::<23>(0).any();

        self.doubled.next = self.remainder.q.val() << 1;
        self.fits.next = self.doubled.val() >= self.divisor.q.val();
        self.reduced.next = self.doubled.val();
        if self.fits.val() {
            self.reduced.next = self.doubled.val() - self.divisor.q.val();
        }
        if self.running.q.val() {
            self.remainder.d.next = self.reduced.val();
            self.quotient.d.next = self.quotient.q.val() << 1;
            if self.fits.val() {
                self.quotient.d.next = (self.quotient.q.val() << 1) | 1;
            }
            self.step.d.next = self.step.q.val() + 1;
            if self.step.q.val() == 24 {
                self.running.d.next = false;
                self.rounding.d.next = true;
            }
        }
        // Round: a result below 2^-126 moves right by one or two places (biased exponent 0 or -1).
        self.inexact.next = self.remainder.q.val().any() & !self.exact.q.val();
        self.moved.next = self.quotient.q.val();
        self.sticky.next = self.inexact.val();
        if self.exact.q.val() {
            self.moved.next = 0x100_0000.into();
        }
        if !self.biased.q.val().any() {
            self.moved.next = self.quotient.q.val() >> 1;
            self.sticky.next = self.inexact.val() | self.quotient.q.val().get_bit(0);
            if self.exact.q.val() {
                self.moved.next = 0x80_0000.into();
                self.sticky.next = false;
            }
        }
        if self.biased.q.val().get_bit(9) {
            self.moved.next = self.quotient.q.val() >> 2;
            self.sticky.next = self.inexact.val() | self.quotient.q.val().get_bits::<2>(0).any();
        }
        self.round_up.next = self.moved.val().get_bit(0) & (self.sticky.val() | self.moved.val().get_bit(1));
        self.field.next = 0.into();
        if self.moved.val().get_bit(24) {
            self.field.next = bit_cast::<33, 10>(self.biased.q.val()) << 23;
        }
        self.unrounded.next = self.field.val() | bit_cast::<33, 23>(self.moved.val().get_bits::<23>(1));
        self.rounded.next = self.unrounded.val();
        if self.round_up.val() {
            self.rounded.next = self.unrounded.val() + 1;
        }
        self.packed.next = bit_cast::<32, 31>(self.rounded.val().get_bits::<31>(0));
        if self.infinite.q.val() | (self.rounded.val().get_bits::<10>(23) >= 255) {
            self.packed.next = 0x7F80_0000.into();
        }
        if self.zero.q.val() {
            self.packed.next = 0.into();
        }
        if self.rounding.q.val() {
            self.rounding.d.next = false;
            self.answer.d.next = self.packed.val();
            if self.sign.q.val() {
                self.answer.d.next = self.packed.val() | 0x8000_0000_u64;
            }
            if self.nan.q.val() {
                self.answer.d.next = 0x7FC0_0000.into();
            }
        }
        if self.start.val() & (!self.running.q.val() & !self.rounding.q.val()) {
            self.running.d.next = true;
            self.step.d.next = 0.into();
            self.divisor.d.next = bit_cast::<25, 24>(self.significand.val());
            self.remainder.d.next = 0x80_0000.into();
            self.quotient.d.next = 0.into();
            self.exact.d.next = self.power.val();
            self.biased.d.next = self.quotient_exponent.val();
            if self.power.val() {
                self.biased.d.next = self.quotient_exponent.val() + 1;
            }
            self.sign.d.next = self.value.val().get_bit(31);
            self.nan.d.next = self.exponent.val().all() & self.fraction.val().any();
            self.zero.d.next = self.exponent.val().all() & !self.fraction.val().any();
            self.infinite.d.next = !self.exponent.val().any() & !self.fraction.val().get_bits::<2>(21).any();
        }
        self.busy.next = self.running.q.val() | self.rounding.q.val();
        self.result.next = self.answer.q.val();
    }
}
