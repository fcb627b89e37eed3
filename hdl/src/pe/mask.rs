//! Mask unit: which of a tile's 16 positions each row of a row tile sees.
//!
//! ```text
//!  write (row, word) --> [range store: 2 words a row, 4 ranges]
//!  request (row tile, position) --> read 1 word a cycle | clamp to the tile | masks --> answer (masks, any)
//! ```
//!
//! A range is {low 32 bits: first position, next 32: end}, half-open, empty if first >= end. Rows at or beyond `rows` see nothing. A page does not
//! wrap around: its last position is at most 2^32 - 1.
//!
//! Latency 2 x ROWS + 4 cycles from request to answer; the next request is taken once the answer is. `ROW_BITS` = log2 of 2 x rows of the
//! store.

use rust_hdl::prelude::*;

/// A word of the store on its way.
#[derive(LogicStruct, Copy, Clone, Debug, Default, PartialEq)]
pub struct Step {
    pub valid: Bit,
    /// Second word of its row.
    pub second: Bit,
    /// The row exists.
    pub exists: Bit,
    pub last: Bit,
}

/// Two ranges clamped to the tile: 0 to 16.
#[derive(LogicStruct, Copy, Clone, Debug, Default, PartialEq)]
pub struct Clamped {
    pub first0: Bits<5>,
    pub end0: Bits<5>,
    pub first1: Bits<5>,
    pub end1: Bits<5>,
}

/// A position relative to the tile, clamped to 0..=16. Combinational.
#[derive(LogicBlock, Default)]
pub struct Clamp {
    pub position: Signal<In, Bits<32>>,
    pub base: Signal<In, Bits<32>>,
    pub clamped: Signal<Out, Bits<5>>,
    difference: Signal<Local, Bits<32>>,
}

impl Logic for Clamp {
    #[hdl_gen]
    fn update(&mut self) {
        self.difference.next = self.position.val() - self.base.val();
        self.clamped.next = self.difference.val().get_bits::<5>(0);
        if self.difference.val().get_bits::<28>(4).any() {
            self.clamped.next = 16.into();
        }
        if self.position.val() <= self.base.val() {
            self.clamped.next = 0.into();
        }
    }
}

#[derive(LogicBlock)]
pub struct MaskUnit<const MASKS: usize, const ROW_BITS: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub write: Signal<In, Bit>,
    /// {row, word}
    pub write_address: Signal<In, Bits<16>>,
    pub write_data: Signal<In, Bits<128>>,
    /// Rows of Q_cmb.
    pub rows: Signal<In, Bits<16>>,
    pub request_valid: Signal<In, Bit>,
    pub request_ready: Signal<Out, Bit>,
    pub request_row_tile: Signal<In, Bits<16>>,
    /// First position of the tile.
    pub request_position: Signal<In, Bits<32>>,
    pub answer_valid: Signal<Out, Bit>,
    pub answer_ready: Signal<In, Bit>,
    /// Row 0 in the lowest 16 bits, position 0 lowest.
    pub answer_masks: Signal<Out, Bits<MASKS>>,
    pub answer_any: Signal<Out, Bit>,
    row_shift: Constant<Bits<4>>,
    last_step: Constant<Bits<4>>,
    top_row: Constant<Bits<8>>,
    store: RAM<Bits<128>, ROW_BITS>,
    reading: DFF<Bit>,
    waiting: DFF<Bit>,
    answered: DFF<Bit>,
    base: DFF<Bits<32>>,
    row: DFF<Bits<16>>,
    step: DFF<Bits<4>>,
    address: Signal<Local, Bits<17>>,
    launched: Signal<Local, Step>,
    word: DFF<Step>,
    clamp: [Clamp; 4],
    clamped_word: DFF<Step>,
    clamped: DFF<Clamped>,
    mask0: Signal<Local, Bits<16>>,
    mask1: Signal<Local, Bits<16>>,
    seen: Signal<Local, Bits<16>>,
    row_mask: Signal<Local, Bits<16>>,
    first_mask: DFF<Bits<16>>,
    masks: DFF<Bits<MASKS>>,
    done: DFF<Bit>,
}

impl<const MASKS: usize, const ROW_BITS: usize> Default for MaskUnit<MASKS, ROW_BITS> {
    fn default() -> Self {
        let rows = MASKS / 16;
        assert!(rows.is_power_of_two() && rows <= 8, "one, two, four or eight rows of 16 positions");
        Self {
            clock: Default::default(),
            reset: Default::default(),
            write: Default::default(),
            write_address: Default::default(),
            write_data: Default::default(),
            rows: Default::default(),
            request_valid: Default::default(),
            request_ready: Default::default(),
            request_row_tile: Default::default(),
            request_position: Default::default(),
            answer_valid: Default::default(),
            answer_ready: Default::default(),
            answer_masks: Default::default(),
            answer_any: Default::default(),
            row_shift: Constant::new(bits(u64::from(rows.trailing_zeros()))),
            last_step: Constant::new(bits(2 * rows as u64 - 1)),
            top_row: Constant::new(bits(MASKS as u64 - 16)),
            store: Default::default(),
            reading: Default::default(),
            waiting: Default::default(),
            answered: Default::default(),
            base: Default::default(),
            row: Default::default(),
            step: Default::default(),
            address: Default::default(),
            launched: Default::default(),
            word: Default::default(),
            clamp: Default::default(),
            clamped_word: Default::default(),
            clamped: Default::default(),
            mask0: Default::default(),
            mask1: Default::default(),
            seen: Default::default(),
            row_mask: Default::default(),
            first_mask: Default::default(),
            masks: Default::default(),
            done: Default::default(),
        }
    }
}

impl<const MASKS: usize, const ROW_BITS: usize> Logic for MaskUnit<MASKS, ROW_BITS> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, reading, waiting, answered, base, row, step, word, clamped_word, clamped, first_mask, masks, done);
        self.store.read_clock.next = self.clock.val();
        self.store.write_clock.next = self.clock.val();
        self.store.write_address.next = self.write_address.val().get_bits::<ROW_BITS>(0);
        self.store.write_data.next = self.write_data.val();
        self.store.write_enable.next = self.write.val();
        // Take a request
        self.request_ready.next = (!self.reading.q.val() & !self.waiting.q.val()) & !self.answered.q.val();
        if self.request_valid.val() & ((!self.reading.q.val() & !self.waiting.q.val()) & !self.answered.q.val()) {
            self.reading.d.next = true;
            self.base.d.next = self.request_position.val();
            self.row.d.next = self.request_row_tile.val() << self.row_shift.val();
            self.step.d.next = 0.into();
        }
        // Read a word a cycle
        self.address.next = (bit_cast::<17, 16>(self.row.q.val()) << 1) | bit_cast::<17, 1>(self.step.q.val().get_bits::<1>(0));
        self.store.read_address.next = self.address.val().get_bits::<ROW_BITS>(0);
        self.launched.next.valid = self.reading.q.val();
        self.launched.next.second = self.step.q.val().get_bit(0);
        self.launched.next.exists = self.row.q.val() < self.rows.val();
        self.launched.next.last = self.step.q.val() == self.last_step.val();
        self.word.d.next = self.launched.val();
        if self.reading.q.val() {
            self.step.d.next = self.step.q.val() + 1;
            if self.step.q.val().get_bit(0) {
                self.row.d.next = self.row.q.val() + 1;
            }
            if self.step.q.val() == self.last_step.val() {
                self.reading.d.next = false;
                self.waiting.d.next = true;
            }
        }
        // Clamp both ranges to the tile
        self.clamp[0].position.next = self.store.read_data.val().get_bits::<32>(0);
        self.clamp[1].position.next = self.store.read_data.val().get_bits::<32>(32);
        self.clamp[2].position.next = self.store.read_data.val().get_bits::<32>(64);
        self.clamp[3].position.next = self.store.read_data.val().get_bits::<32>(96);
        for i in 0..4 {
            self.clamp[i].base.next = self.base.q.val();
        }
        self.clamped.d.next.first0 = self.clamp[0].clamped.val();
        self.clamped.d.next.end0 = self.clamp[1].clamped.val();
        self.clamped.d.next.first1 = self.clamp[2].clamped.val();
        self.clamped.d.next.end1 = self.clamp[3].clamped.val();
        self.clamped_word.d.next = self.word.q.val();
        // Masks: from the first position on, but not from the end on
        self.mask0.next = (bits::<16>(0xFFFF) << self.clamped.q.val().first0) & !(bits::<16>(0xFFFF) << self.clamped.q.val().end0);
        self.mask1.next = (bits::<16>(0xFFFF) << self.clamped.q.val().first1) & !(bits::<16>(0xFFFF) << self.clamped.q.val().end1);
        self.seen.next = 0.into();
        if self.clamped_word.q.val().exists {
            self.seen.next = self.mask0.val() | self.mask1.val();
        }
        self.first_mask.d.next = self.seen.val();
        self.row_mask.next = self.first_mask.q.val() | self.seen.val();
        if self.clamped_word.q.val().valid & self.clamped_word.q.val().second {
            self.masks.d.next = (self.masks.q.val() >> 16) | (bit_cast::<MASKS, 16>(self.row_mask.val()) << self.top_row.val());
        }
        self.done.d.next = self.clamped_word.q.val().valid & self.clamped_word.q.val().last;
        if self.done.q.val() {
            self.waiting.d.next = false;
            self.answered.d.next = true;
        }
        self.answer_valid.next = self.answered.q.val();
        self.answer_masks.next = self.masks.q.val();
        self.answer_any.next = self.masks.q.val().any();
        if self.answered.q.val() & self.answer_ready.val() {
            self.answered.d.next = false;
        }
        if self.reset.val() {
            self.reading.d.next = false;
            self.waiting.d.next = false;
            self.answered.d.next = false;
            self.word.d.next.valid = false;
            self.clamped_word.d.next.valid = false;
            self.done.d.next = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::cycle;
    use braid_golden::stimulus::Stimulus;

    const ROWS: usize = 4;

    fn run(unit: &mut MaskUnit<64, 5>, row_tile: u64, position: u32) -> (u64, bool) {
        unit.request_valid.next = true;
        unit.request_row_tile.next = bits(row_tile);
        unit.request_position.next = bits(position.into());
        assert!(unit.request_ready.val());
        let mut cycles = 0;
        while !unit.answer_valid.val() {
            cycle(unit, |u, c| u.clock.next = c);
            unit.request_valid.next = false;
            cycles += 1;
            assert!(cycles <= 2 * ROWS + 4, "latency");
        }
        let answer = (unit.answer_masks.val().to_u64(), unit.answer_any.val());
        unit.answer_ready.next = true;
        cycle(unit, |u, c| u.clock.next = c);
        unit.answer_ready.next = false;
        answer
    }

    #[test]
    fn masks_are_the_union_of_the_ranges() {
        let mut unit = MaskUnit::<64, 5>::default();
        unit.connect_all();
        let mut stimulus = Stimulus::new(41);
        for round in 0..60 {
            let base = [0, 16, 4096, u32::MAX - 15, 16 * stimulus.below(1 << 28)][stimulus.below(5) as usize];
            let near = |s: &mut Stimulus| match s.below(6) {
                0 => 0,
                1 => u32::MAX,
                2 => s.bits() as u32,
                _ => base.saturating_add(s.below(40)).saturating_sub(12),
            };
            let table: Vec<[u32; 8]> = (0..2 * ROWS).map(|_| std::array::from_fn(|_| near(&mut stimulus))).collect();
            unit.write.next = true;
            for (address, word) in table.iter().flatten().copied().collect::<Vec<_>>().chunks(4).enumerate() {
                unit.write_address.next = bits(address as u64);
                unit.write_data.next = word
                    .iter()
                    .rev()
                    .fold(Bits::default(), |w: Bits<128>, &x| (w << 32_usize.to_bits::<8>()) | bit_cast::<128, 32>(bits(x.into())));
                cycle(&mut unit, |u, c| u.clock.next = c);
            }
            unit.write.next = false;
            let rows = stimulus.below(2 * ROWS as u32 + 1);
            unit.rows.next = bits(rows.into());
            for tile in 0..2 {
                let (masks, any) = run(&mut unit, tile as u64, base);
                for r in 0..ROWS {
                    let row = tile * ROWS + r;
                    let expected = (0..16u64).fold(0u16, |mask, j| {
                        let position = u64::from(base) + j;
                        let seen = table[row].chunks(2).any(|p| u64::from(p[0]) <= position && position < u64::from(p[1]));
                        mask | u16::from(seen && (row as u32) < rows) << j
                    });
                    assert_eq!((masks >> (16 * r)) as u16, expected, "round {round} row {row} base {base} {:?}", table[row]);
                }
                assert_eq!(any, masks != 0);
            }
        }
    }
}
