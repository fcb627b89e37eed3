//! A counter with enable: lower, compile, poke, step, peek.

use braid_sim::{Design, Engine, SimError};
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
struct Counter {
    clock: Signal<In, Clock>,
    enable: Signal<In, Bit>,
    count: Signal<Out, Bits<8>>,
    value: DFF<Bits<8>>,
}

impl Logic for Counter {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, value);
        if self.enable.val() {
            self.value.d.next = self.value.q.val() + 1;
        }
        self.count.next = self.value.q.val();
    }
}

fn main() -> Result<(), SimError> {
    let design = Design::lower(&Counter::default())?;
    let mut sim = design.compile()?;
    let (enable, count) = (sim.signal("enable")?, sim.signal("count")?);
    for cycle in 0..10 {
        sim.poke(enable, u64::from(cycle % 3 != 0));
        sim.step();
        println!("cycle {cycle}: {}", sim.peek(count));
    }
    Ok(())
}
