//! Shared SRAM: 128-bit words with a write enable for each 32 bits, one read and one write port.
//!
//! ```text
//!  write, enables, address, data --> [4 block RAMs of 32 bits] <-- read address
//!                                                              --> data
//! ```
//!
//! 2^N words. Data one cycle after the read address; a read in the cycle of a write to the same word gives the old one.

use rust_hdl::prelude::*;

#[derive(LogicBlock)]
pub struct Sram<const N: usize> {
    pub clock: Signal<In, Clock>,
    pub read_address: Signal<In, Bits<N>>,
    pub read_data: Signal<Out, Bits<128>>,
    /// One bit for each 32 bits.
    pub write_enable: Signal<In, Bits<4>>,
    pub write_address: Signal<In, Bits<N>>,
    pub write_data: Signal<In, Bits<128>>,
    column: [RAM<Bits<32>, N>; 4],
    word: Signal<Local, Bits<32>>,
    data: Signal<Local, Bits<128>>,
}

impl<const N: usize> Default for Sram<N> {
    fn default() -> Self {
        Self {
            clock: Default::default(),
            read_address: Default::default(),
            read_data: Default::default(),
            write_enable: Default::default(),
            write_address: Default::default(),
            write_data: Default::default(),
            column: std::array::from_fn(|_| Default::default()),
            word: Default::default(),
            data: Default::default(),
        }
    }
}

impl<const N: usize> Logic for Sram<N> {
    #[hdl_gen]
    fn update(&mut self) {
        self.data.next = 0.into();
        for i in 0..4 {
            self.column[i].read_clock.next = self.clock.val();
            self.column[i].write_clock.next = self.clock.val();
            self.column[i].read_address.next = self.read_address.val();
            self.column[i].write_address.next = self.write_address.val();
            self.column[i].write_data.next = self.write_data.val().get_bits::<32>(i * 32);
            self.column[i].write_enable.next = self.write_enable.val().get_bit(i);
            self.word.next = self.column[i].read_data.val();
            self.data.next = (self.data.val() >> 32) | (bit_cast::<128, 32>(self.word.val()) << 96);
        }
        self.read_data.next = self.data.val();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Compiled, word};
    use braid_golden::stimulus::Stimulus;

    #[test]
    fn every_part_of_a_word_is_written_alone_and_a_read_beside_a_write_gives_the_old_word() {
        let mut sram = Compiled::new(Sram::<4>::default());
        let mut stimulus = Stimulus::new(31);
        let mut model = [0u128; 16];
        for cycle in 0..20_000 {
            let (read, write, enable) = (stimulus.below(16), stimulus.below(16), stimulus.below(16));
            // Often the same word.
            let read = if stimulus.once_in(3) { write } else { read };
            let data = word(&mut stimulus);
            sram.set("read_address", read);
            sram.set("write_address", write);
            sram.set("write_enable", enable);
            sram.set_wide("write_data", data);
            sram.step();
            assert_eq!(sram.get_wide("read_data"), model[read as usize], "cycle {cycle}");
            for part in (0..4).filter(|part| enable >> part & 1 == 1) {
                let mask = u128::from(u32::MAX) << (32 * part);
                model[write as usize] = model[write as usize] & !mask | data & mask;
            }
        }
    }
}
