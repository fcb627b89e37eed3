//! CUBE-to-CUBE link: delays what a PE sends, and the credits that it returns, by LATENCY cycles.
//!
//! ```text
//!  valid, data, credit --> [LATENCY registers] --> valid, data, credit
//! ```
//!
//! One beat a cycle; the receiver's credits bound what is on the way.

use rust_hdl::prelude::*;

#[derive(LogicBlock)]
pub struct Link<const BEAT: usize, const LINKS: usize, const LATENCY: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub in_valid: Signal<In, Bits<LINKS>>,
    pub in_data: Signal<In, Bits<BEAT>>,
    pub in_credit: Signal<In, Bits<LINKS>>,
    pub out_valid: Signal<Out, Bits<LINKS>>,
    pub out_data: Signal<Out, Bits<BEAT>>,
    pub out_credit: Signal<Out, Bits<LINKS>>,
    valid: [DFF<Bits<LINKS>>; LATENCY],
    data: [DFF<Bits<BEAT>>; LATENCY],
    credit: [DFF<Bits<LINKS>>; LATENCY],
}

impl<const BEAT: usize, const LINKS: usize, const LATENCY: usize> Default for Link<BEAT, LINKS, LATENCY> {
    fn default() -> Self {
        assert!(LATENCY >= 1, "a link has at least one register");
        Self {
            clock: Default::default(),
            reset: Default::default(),
            in_valid: Default::default(),
            in_data: Default::default(),
            in_credit: Default::default(),
            out_valid: Default::default(),
            out_data: Default::default(),
            out_credit: Default::default(),
            valid: std::array::from_fn(|_| Default::default()),
            data: std::array::from_fn(|_| Default::default()),
            credit: std::array::from_fn(|_| Default::default()),
        }
    }
}

impl<const BEAT: usize, const LINKS: usize, const LATENCY: usize> Logic for Link<BEAT, LINKS, LATENCY> {
    #[hdl_gen]
    fn update(&mut self) {
        for i in 0..LATENCY {
            self.valid[i].clock.next = self.clock.val();
            self.data[i].clock.next = self.clock.val();
            self.credit[i].clock.next = self.clock.val();
        }
        self.valid[0].d.next = self.in_valid.val();
        self.data[0].d.next = self.in_data.val();
        self.credit[0].d.next = self.in_credit.val();
        for i in 1..LATENCY {
            self.valid[i].d.next = self.valid[i - 1].q.val();
            self.data[i].d.next = self.data[i - 1].q.val();
            self.credit[i].d.next = self.credit[i - 1].q.val();
        }
        self.out_valid.next = 0.into();
        self.out_data.next = 0.into();
        self.out_credit.next = 0.into();
        for i in 0..LATENCY {
            // the last register wins
            self.out_valid.next = self.valid[i].q.val();
            self.out_data.next = self.data[i].q.val();
            self.out_credit.next = self.credit[i].q.val();
        }
        for i in 0..LATENCY {
            if self.reset.val() {
                self.valid[i].d.next = 0.into();
                self.credit[i].d.next = 0.into();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Compiled;
    use braid_golden::stimulus::Stimulus;
    use std::collections::VecDeque;

    fn delays<const LATENCY: usize>() {
        let mut link = Compiled::new(Link::<48, 3, LATENCY>::default());
        let mut stimulus = Stimulus::new(32 + LATENCY as u64);
        let mut model: VecDeque<[u64; 3]> = vec![[0; 3]; LATENCY].into();
        for cycle in 0..5_000 {
            let input = [stimulus.below(8).into(), stimulus.bits() >> 16, stimulus.below(8).into()];
            let reset = stimulus.once_in(50);
            for (port, value) in ["in_valid", "in_data", "in_credit"].into_iter().zip(input) {
                link.set(port, value);
            }
            link.set("reset", u64::from(reset));
            let before = ["out_valid", "out_data", "out_credit"].map(|port| link.get(port));
            assert_eq!(before, model[0], "cycle {cycle}: outputs are registers");
            link.step();
            model.pop_front();
            model.push_back(input);
            if reset {
                // What is on the way is lost; data without a valid bit means nothing.
                model.iter_mut().for_each(|[valid, _, credit]| (*valid, *credit) = (0, 0));
            }
        }
    }

    #[test]
    fn beats_and_credits_take_as_many_cycles_as_the_link_has_registers() {
        delays::<1>();
        delays::<2>();
        delays::<5>();
    }
}
