//! Performance counters: nineteen of 48 bits (`braid_isa::Counter`).
//!
//! ```text
//!  clear, count (one bit a counter) --> [counters] --> select --> value
//! ```
//!
//! Latency of `value`: 1 cycle after `select`. Counters 0 to 9 divide the cycles of a launch; the PE raises exactly one of them each cycle.

use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Counters {
    pub clock: Signal<In, Clock>,
    pub clear: Signal<In, Bit>,
    pub count: Signal<In, Bits<19>>,
    pub select: Signal<In, Bits<8>>,
    pub value: Signal<Out, Bits<48>>,
    counter: [DFF<Bits<48>>; 19],
    chosen: Signal<Local, Bits<48>>,
    answer: DFF<Bits<48>>,
}

impl Logic for Counters {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, answer);
        self.chosen.next = 0.into();
        for i in 0..19 {
            self.counter[i].clock.next = self.clock.val();
            self.counter[i].d.next = self.counter[i].q.val();
            if self.count.val().get_bit(i) {
                self.counter[i].d.next = self.counter[i].q.val() + 1;
            }
            if self.clear.val() {
                self.counter[i].d.next = 0.into();
            }
            if self.select.val() == i.to_bits() {
                self.chosen.next = self.counter[i].q.val();
            }
        }
        self.answer.d.next = self.chosen.val();
        self.value.next = self.answer.q.val();
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn there_is_a_counter_for_each_of_the_contract() {
        assert_eq!(braid_isa::Counter::ALL.len(), 19);
    }
}
