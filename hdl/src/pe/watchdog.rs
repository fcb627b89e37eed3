//! Watchdog: bounds a wait.
//!
//! ```text
//!  waiting, limit --> [cycles without progress] --> expired
//! ```
//!
//! `expired` rises once `waiting` has been high for `limit` cycles on end (cycles), and stays until a cycle without it. A user drops `waiting` in every cycle in
//! which something moves. Registered: latency 1 cycle.

use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Watchdog {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub waiting: Signal<In, Bit>,
    pub limit: Signal<In, Bits<32>>,
    pub expired: Signal<Out, Bit>,
    cycles: DFF<Bits<32>>,
    over: Signal<Local, Bit>,
    late: DFF<Bit>,
}

impl Logic for Watchdog {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, cycles, late);
        self.over.next = self.cycles.q.val() >= self.limit.val();
        self.late.d.next = false;
        self.cycles.d.next = 0.into();
        if self.waiting.val() & !self.reset.val() {
            self.late.d.next = self.over.val();
            self.cycles.d.next = self.cycles.q.val();
            if !self.over.val() {
                self.cycles.d.next = self.cycles.q.val() + 1;
            }
        }
        self.expired.next = self.late.q.val();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::cycle;

    #[test]
    fn only_an_unbroken_wait_of_the_limit_expires() {
        let mut unit = Watchdog::default();
        unit.connect_all();
        unit.limit.next = bits(10);
        for stretch in [3, 9, 10] {
            unit.waiting.next = true;
            for _ in 0..stretch {
                cycle(&mut unit, |u, c| u.clock.next = c);
                assert!(!unit.expired.val());
            }
            unit.waiting.next = false;
            cycle(&mut unit, |u, c| u.clock.next = c);
            assert!(!unit.expired.val());
        }
        unit.waiting.next = true;
        let waited = (1..).find(|_| {
            cycle(&mut unit, |u, c| u.clock.next = c);
            unit.expired.val()
        });
        assert_eq!(waited, Some(11));
    }
}
