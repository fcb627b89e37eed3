//! Output arbiter: outputs of the PEs onto the SRAM's write port, round robin.
//!
//! ```text
//!  valid, address, data, enable (a PE each) --> grant (one bit a PE), one write a cycle
//! ```
//!
//! Combinational grant, registered turn: the PE after the one served last goes first. A PE waits at most for every other one once.

use rust_hdl::prelude::*;

#[derive(LogicBlock)]
pub struct OutputArbiter<const PES: usize> {
    pub clock: Signal<In, Clock>,
    pub valid: [Signal<In, Bit>; PES],
    pub address: [Signal<In, Bits<20>>; PES],
    pub data: [Signal<In, Bits<128>>; PES],
    pub enable: [Signal<In, Bits<4>>; PES],
    pub grant: Signal<Out, Bits<PES>>,
    pub write: Signal<Out, Bit>,
    pub write_address: Signal<Out, Bits<20>>,
    pub write_data: Signal<Out, Bits<128>>,
    pub write_enable: Signal<Out, Bits<4>>,
    none: Constant<Bits<PES>>,
    last: DFF<Bits<4>>,
    found: Signal<Local, Bit>,
    after: Signal<Local, Bit>,
    asks: Signal<Local, Bit>,
}

impl<const PES: usize> Default for OutputArbiter<PES> {
    fn default() -> Self {
        Self {
            clock: Default::default(),
            valid: std::array::from_fn(|_| Default::default()),
            address: std::array::from_fn(|_| Default::default()),
            data: std::array::from_fn(|_| Default::default()),
            enable: std::array::from_fn(|_| Default::default()),
            grant: Default::default(),
            write: Default::default(),
            write_address: Default::default(),
            write_data: Default::default(),
            write_enable: Default::default(),
            none: Constant::new(bits(0)),
            last: Default::default(),
            found: Default::default(),
            after: Default::default(),
            asks: Default::default(),
        }
    }
}

impl<const PES: usize> Logic for OutputArbiter<PES> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, last);
        self.found.next = false;
        self.grant.next = 0.into();
        self.write_address.next = 0.into();
        self.write_data.next = 0.into();
        self.write_enable.next = 0.into();
        // first those behind the last one served, then from the start
        for i in 0..PES {
            self.after.next = self.last.q.val() < i.to_bits();
            self.asks.next = self.valid[i].val();
            if (self.asks.val() & self.after.val()) & !self.found.val() {
                self.found.next = true;
                self.grant.next = self.none.val().replace_bit(i, true);
                self.last.d.next = i.to_bits();
                self.write_address.next = self.address[i].val();
                self.write_data.next = self.data[i].val();
                self.write_enable.next = self.enable[i].val();
            }
        }
        for i in 0..PES {
            self.asks.next = self.valid[i].val();
            if self.asks.val() & !self.found.val() {
                self.found.next = true;
                self.grant.next = self.none.val().replace_bit(i, true);
                self.last.d.next = i.to_bits();
                self.write_address.next = self.address[i].val();
                self.write_data.next = self.data[i].val();
                self.write_enable.next = self.enable[i].val();
            }
        }
        self.write.next = self.found.val();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Compiled, word};
    use braid_golden::stimulus::Stimulus;

    #[test]
    fn one_pe_a_cycle_is_served_in_turn_with_its_own_word() {
        const PES: usize = 5;
        let mut arbiter = Compiled::new(OutputArbiter::<PES>::default());
        let mut stimulus = Stimulus::new(33);
        let mut last = 0;
        let mut waited = [0; PES];
        for cycle in 0..20_000 {
            // Phases of few and of many that ask.
            let once_in = if cycle / 500 % 2 == 0 { 4 } else { 1 };
            let asks: [bool; PES] = std::array::from_fn(|pe| waited[pe] > 0 || stimulus.once_in(once_in));
            let words: [(u32, u128, u32); PES] =
                std::array::from_fn(|_| (stimulus.below(1 << 20), word(&mut stimulus), stimulus.below(16)));
            for (pe, (address, data, enable)) in words.iter().enumerate() {
                arbiter.set(&format!("valid[{pe}]"), u64::from(asks[pe]));
                arbiter.set(&format!("address[{pe}]"), *address);
                arbiter.set_wide(&format!("data[{pe}]"), *data);
                arbiter.set(&format!("enable[{pe}]"), *enable);
            }
            let served = (1..=PES).map(|i| (last + i) % PES).find(|&pe| asks[pe]);
            assert_eq!(arbiter.get("grant"), served.map_or(0, |pe| 1 << pe), "cycle {cycle}");
            assert_eq!(arbiter.get("write"), u64::from(served.is_some()));
            if let Some(pe) = served {
                let (address, data, enable) = words[pe];
                assert_eq!(arbiter.get("write_address"), u64::from(address));
                assert_eq!(arbiter.get_wide("write_data"), data);
                assert_eq!(arbiter.get("write_enable"), u64::from(enable));
                last = pe;
            }
            for pe in 0..PES {
                waited[pe] = if asks[pe] && served != Some(pe) { waited[pe] + 1 } else { 0 };
                assert!(waited[pe] < PES, "PE {pe} waits while others are served twice");
            }
            arbiter.step();
        }
    }
}
