//! First-word fall-through FIFO in block RAM.
//!
//! ```text
//!            +--------------+
//!  in_data ->|              |-> out_data
//! in_valid ->|  2^N words   |-> out_valid
//! in_ready <-|              |<- out_ready
//!            +--------------+
//! ```
//!
//! Holds 2^N words of W bits. A word appears at the output two cycles after it was written; one word in and one word out a cycle. `M` = N + 1.
//!
//! The RAM's read address is the next read pointer, so its output register always holds the first word; a word counts as present one cycle after its
//! write, when the RAM can have read it.

use rust_hdl::prelude::*;

#[derive(LogicBlock)]
pub struct Fifo<const W: usize, const N: usize, const M: usize> {
    pub clock: Signal<In, Clock>,
    /// Empties the queue.
    pub reset: Signal<In, Bit>,
    pub in_valid: Signal<In, Bit>,
    pub in_ready: Signal<Out, Bit>,
    pub in_data: Signal<In, Bits<W>>,
    pub out_valid: Signal<Out, Bit>,
    pub out_ready: Signal<In, Bit>,
    pub out_data: Signal<Out, Bits<W>>,
    ram: RAM<Bits<W>, N>,
    written: DFF<Bits<M>>,
    present: DFF<Bits<M>>,
    read: DFF<Bits<M>>,
    next_read: Signal<Local, Bits<M>>,
    used: Signal<Local, Bits<M>>,
    full: Signal<Local, Bit>,
    occupied: Signal<Local, Bit>,
    /// 2^N: a const generic is no value of a kernel.
    depth: Constant<Bits<M>>,
}

impl<const W: usize, const N: usize, const M: usize> Default for Fifo<W, N, M> {
    fn default() -> Self {
        assert_eq!(M, N + 1, "pointers have one bit more than addresses");
        Self {
            clock: Default::default(),
            reset: Default::default(),
            in_valid: Default::default(),
            in_ready: Default::default(),
            in_data: Default::default(),
            out_valid: Default::default(),
            out_ready: Default::default(),
            out_data: Default::default(),
            ram: Default::default(),
            written: Default::default(),
            present: Default::default(),
            read: Default::default(),
            next_read: Default::default(),
            used: Default::default(),
            full: Default::default(),
            occupied: Default::default(),
            depth: Constant::new(bits(1 << N)),
        }
    }
}

impl<const W: usize, const N: usize, const M: usize> Logic for Fifo<W, N, M> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, written, present, read);
        self.used.next = self.written.q.val() - self.read.q.val();
        self.full.next = self.used.val() == self.depth.val();
        self.in_ready.next = !self.full.val();
        self.occupied.next = self.present.q.val() != self.read.q.val();
        self.out_valid.next = self.occupied.val();
        self.next_read.next = self.read.q.val();
        if self.occupied.val() & self.out_ready.val() {
            self.next_read.next = self.read.q.val() + 1;
        }
        self.read.d.next = self.next_read.val();
        self.present.d.next = self.written.q.val();
        if self.in_valid.val() & !self.full.val() {
            self.written.d.next = self.written.q.val() + 1;
        }
        self.ram.read_clock.next = self.clock.val();
        self.ram.write_clock.next = self.clock.val();
        self.ram.read_address.next = self.next_read.val().get_bits::<N>(0);
        self.ram.write_address.next = self.written.q.val().get_bits::<N>(0);
        self.ram.write_data.next = self.in_data.val();
        self.ram.write_enable.next = self.in_valid.val() & !self.full.val();
        self.out_data.next = self.ram.read_data.val();
        if self.reset.val() {
            self.written.d.next = 0.into();
            self.present.d.next = 0.into();
            self.read.d.next = 0.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cycle, settle};
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn words_come_out_in_order_and_none_is_lost(moves in prop::collection::vec((any::<bool>(), any::<bool>()), 1..200)) {
            let mut unit = Fifo::<16, 2, 3>::default();
            unit.connect_all();
            let mut model = VecDeque::new();
            let mut sent = 0u64;
            for (push, pop) in moves {
                unit.in_valid.next = push;
                unit.in_data.next = bits(sent);
                unit.out_ready.next = pop;
                settle(&mut unit);
                prop_assert_eq!(unit.in_ready.val(), model.len() < 4);
                let ready = unit.in_ready.val();
                if pop && unit.out_valid.val() {
                    prop_assert_eq!(Some(unit.out_data.val().to_u64()), model.pop_front());
                }
                if push && ready {
                    model.push_back(sent);
                    sent += 1;
                }
                prop_assert!(model.len() <= 4);
                cycle(&mut unit, |u, c| u.clock.next = c);
            }
            unit.in_valid.next = false;
            unit.out_ready.next = true;
            for _ in 0..8 {
                settle(&mut unit);
                if unit.out_valid.val() {
                    prop_assert_eq!(Some(unit.out_data.val().to_u64()), model.pop_front());
                }
                cycle(&mut unit, |u, c| u.clock.next = c);
            }
            prop_assert!(model.is_empty());
        }
    }
}
