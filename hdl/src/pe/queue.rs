//! Four-place queue of registers: commands, memory requests, outputs.
//!
//! ```text
//!              +-------+
//!  item ------>|       |---> head
//!  push ------>| Queue |---> valid
//!  ready <-----|       |<--- pop
//!              +-------+
//! ```
//!
//! Holds 4 items. `head` is the oldest one whenever `valid`; an item pushed into an empty queue is the head one cycle later. `push` without `ready` and
//! `pop` without `valid` are ignored. `reset` empties it. One push and one pop a cycle; `ready` does not depend on `pop`.

use rust_hdl::prelude::*;

#[derive(LogicBlock)]
pub struct Queue<T: Synth> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub item: Signal<In, T>,
    pub push: Signal<In, Bit>,
    pub ready: Signal<Out, Bit>,
    pub head: Signal<Out, T>,
    pub valid: Signal<Out, Bit>,
    pub pop: Signal<In, Bit>,
    slots: [DFF<T>; 4],
    count: DFF<Bits<3>>,
    taken: Signal<Local, Bit>,
    given: Signal<Local, Bit>,
    place: Signal<Local, Bits<3>>,
}

impl<T: Synth> Default for Queue<T> {
    fn default() -> Self {
        Self {
            clock: Default::default(),
            reset: Default::default(),
            item: Default::default(),
            push: Default::default(),
            ready: Default::default(),
            head: Default::default(),
            valid: Default::default(),
            pop: Default::default(),
            slots: std::array::from_fn(|_| Default::default()),
            count: Default::default(),
            taken: Default::default(),
            given: Default::default(),
            place: Default::default(),
        }
    }
}

impl<T: Synth> Logic for Queue<T> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, count);
        self.ready.next = self.count.q.val() != 4;
        self.valid.next = self.count.q.val() != 0;
        self.head.next = self.slots[0].q.val();
        self.taken.next = self.push.val() & (self.count.q.val() != 4);
        self.given.next = self.pop.val() & (self.count.q.val() != 0);
        self.place.next = self.count.q.val();
        for i in 0..4 {
            self.slots[i].clock.next = self.clock.val();
            self.slots[i].d.next = self.slots[i].q.val();
        }
        if self.given.val() {
            self.place.next = self.count.q.val() - 1;
            for i in 0..3 {
                self.slots[i].d.next = self.slots[i + 1].q.val();
            }
        }
        self.count.d.next = self.place.val();
        if self.taken.val() {
            self.count.d.next = self.place.val() + 1;
            for i in 0..4 {
                if self.place.val() == i.to_bits() {
                    self.slots[i].d.next = self.item.val();
                }
            }
        }
        if self.reset.val() {
            self.count.d.next = 0.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cycle, settle};
    use braid_golden::stimulus::Stimulus;
    use std::collections::VecDeque;

    #[test]
    fn items_leave_in_order_and_none_is_lost() {
        let mut unit = Queue::<Bits<16>>::default();
        unit.connect_all();
        let mut model = VecDeque::new();
        let mut stimulus = Stimulus::new(51);
        let mut given = 0;
        for n in 0..3000_u64 {
            let bias = 2 + (n / 300 % 3) as u32;
            let (push, pop) = (!stimulus.once_in(bias), !stimulus.once_in(5 - bias + 1));
            unit.item.next = bits(n);
            unit.push.next = push;
            unit.pop.next = pop;
            settle(&mut unit);
            assert_eq!(unit.valid.val(), !model.is_empty());
            assert_eq!(unit.ready.val(), model.len() < 4);
            if let Some(&front) = model.front() {
                assert_eq!(unit.head.val().to_u64(), front);
            }
            let taken = push && model.len() < 4;
            if pop && model.pop_front().is_some() {
                given += 1;
            }
            if taken {
                model.push_back(n);
            }
            cycle(&mut unit, |u, c| u.clock.next = c);
        }
        assert!(given > 500);
    }
}
