//! exp2 of an fp32 by a table of 256 chords.
//!
//! ```text
//!  value --> 1 fixed point | 2 two's complement | 3 table | 4 slope x rest | 5 add and pack --> result
//! ```
//!
//! Latency 5 cycles, one value a cycle. Relative error at most 2^-17; results below 2^-126 are +0.
//!
//! The argument becomes a fixed-point number with 18 fraction bits: 8 choose the chord, 10 the place on it. A table entry is
//! {slope \[36:22\], base \[21:0\]}, one block RAM.

use rust_hdl::prelude::*;

/// Table entries: `base | slope << 22`.
fn table() -> impl Iterator<Item = Bits<37>> {
    let base = |h: u32| ((f64::from(h) / 256.0).exp2() - 1.0) * f64::from(1 << 22);
    (0..256).map(move |h| {
        let (low, high) = (base(h).round() as u64, base(h + 1).round() as u64);
        bits::<37>(low | (high - low) << 22)
    })
}

#[derive(LogicBlock)]
pub struct Exp2 {
    pub clock: Signal<In, Clock>,
    pub value: Signal<In, Bits<32>>,
    pub result: Signal<Out, Bits<32>>,
    chords: SyncROM<Bits<37>, 8>,
    // 1
    exponent: Signal<Local, Bits<8>>,
    places: Signal<Local, Bits<8>>,
    significand: Signal<Local, Bits<26>>,
    fixed: DFF<Bits<26>>,
    negative1: DFF<Bit>,
    large1: DFF<Bit>,
    nan1: DFF<Bit>,
    // 2
    wide: Signal<Local, Bits<27>>,
    argument: DFF<Bits<27>>,
    negative2: DFF<Bit>,
    large2: DFF<Bit>,
    nan2: DFF<Bit>,
    // 3
    whole3: DFF<Bits<9>>,
    rest3: DFF<Bits<10>>,
    negative3: DFF<Bit>,
    large3: DFF<Bit>,
    nan3: DFF<Bit>,
    // 4
    slope: Signal<Local, Bits<16>>,
    rest: Signal<Local, Bits<16>>,
    rise: DFF<Bits<32>>,
    base4: DFF<Bits<22>>,
    whole4: DFF<Bits<9>>,
    negative4: DFF<Bit>,
    large4: DFF<Bit>,
    nan4: DFF<Bit>,
    // 5
    fraction: Signal<Local, Bits<22>>,
    biased: Signal<Local, Bits<9>>,
    underflow: Signal<Local, Bit>,
    overflow: Signal<Local, Bit>,
    packed: DFF<Bits<32>>,
}

impl Default for Exp2 {
    fn default() -> Self {
        Self {
            clock: Default::default(),
            value: Default::default(),
            result: Default::default(),
            chords: table().into(),
            exponent: Default::default(),
            places: Default::default(),
            significand: Default::default(),
            fixed: Default::default(),
            negative1: Default::default(),
            large1: Default::default(),
            nan1: Default::default(),
            wide: Default::default(),
            argument: Default::default(),
            negative2: Default::default(),
            large2: Default::default(),
            nan2: Default::default(),
            whole3: Default::default(),
            rest3: Default::default(),
            negative3: Default::default(),
            large3: Default::default(),
            nan3: Default::default(),
            slope: Default::default(),
            rest: Default::default(),
            rise: Default::default(),
            base4: Default::default(),
            whole4: Default::default(),
            negative4: Default::default(),
            large4: Default::default(),
            nan4: Default::default(),
            fraction: Default::default(),
            biased: Default::default(),
            underflow: Default::default(),
            overflow: Default::default(),
            packed: Default::default(),
        }
    }
}

impl Exp2 {
    /// Cycles from the input to the result.
    pub const LATENCY: usize = 5;
}

impl Logic for Exp2 {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self, clock, fixed, negative1, large1, nan1, argument, negative2, large2, nan2, whole3, rest3, negative3, large3, nan3, rise,
            base4, whole4, negative4, large4, nan4, packed
        );
        // 1: |value| in units of 2^-18, if it is below 256
        self.exponent.next = self.value.val().get_bits::<8>(23);
        self.places.next = bits::<8>(134) - self.exponent.val();
        self.significand.next = (bit_cast::<26, 23>(self.value.val().get_bits::<23>(0)) | 0x80_0000) << 2;
        self.fixed.d.next = self.significand.val() >> self.places.val();
        if !self.exponent.val().any() {
            self.fixed.d.next = 0.into();
        }
        self.negative1.d.next = self.value.val().get_bit(31);
        self.large1.d.next = self.exponent.val() >= 135;
        self.nan1.d.next = self.exponent.val().all() & self.value.val().get_bits::<23>(0).any();
        // 2: its two's complement
        self.wide.next = bit_cast::<27, 26>(self.fixed.q.val());
        self.argument.d.next = self.wide.val();
        if self.negative1.q.val() {
            self.argument.d.next = bits::<27>(0) - self.wide.val();
        }
        self.negative2.d.next = self.negative1.q.val();
        self.large2.d.next = self.large1.q.val();
        self.nan2.d.next = self.nan1.q.val();
        // 3: the chord
        self.chords.clock.next = self.clock.val();
        self.chords.address.next = self.argument.q.val().get_bits::<8>(10);
        self.whole3.d.next = self.argument.q.val().get_bits::<9>(18);
        self.rest3.d.next = self.argument.q.val().get_bits::<10>(0);
        self.negative3.d.next = self.negative2.q.val();
        self.large3.d.next = self.large2.q.val();
        self.nan3.d.next = self.nan2.q.val();
        // 4: the rise along it
        self.slope.next = bit_cast::<16, 15>(self.chords.data.val().get_bits::<15>(22));
        self.rest.next = bit_cast::<16, 10>(self.rest3.q.val());
        self.rise.d.next = self.slope.val() * self.rest.val();
        self.base4.d.next = self.chords.data.val().get_bits::<22>(0);
        self.whole4.d.next = self.whole3.q.val();
        self.negative4.d.next = self.negative3.q.val();
        self.large4.d.next = self.large3.q.val();
        self.nan4.d.next = self.nan3.q.val();
        // 5: add and pack; whole is two's complement, -256 to 255
        self.fraction.next = self.base4.q.val() + self.rise.q.val().get_bits::<22>(10);
        self.biased.next = self.whole4.q.val() + 127;
        self.underflow.next = self.whole4.q.val().get_bit(8) & (self.whole4.q.val() < 386);
        self.overflow.next = !self.whole4.q.val().get_bit(8) & (self.whole4.q.val() > 127);
        self.packed.d.next = (bit_cast::<32, 9>(self.biased.val()) << 23) | (bit_cast::<32, 22>(self.fraction.val()) << 1);
        if self.underflow.val() | (self.large4.q.val() & self.negative4.q.val()) {
            self.packed.d.next = 0.into();
        }
        if self.overflow.val() | (self.large4.q.val() & !self.negative4.q.val()) {
            self.packed.d.next = 0x7F80_0000.into();
        }
        if self.nan4.q.val() {
            self.packed.d.next = 0x7FC0_0000.into();
        }
        self.result.next = self.packed.q.val();
    }
}
