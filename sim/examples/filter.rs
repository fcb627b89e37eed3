//! A moving sum of four samples: an array of registers, signals by path in Rust's spelling.

use braid_sim::{Design, Engine, SimError};
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
struct Filter {
    clock: Signal<In, Clock>,
    sample: Signal<In, Bits<12>>,
    sum: Signal<Out, Bits<12>>,
    tap: [DFF<Bits<12>>; 4],
}

impl Logic for Filter {
    #[hdl_gen]
    fn update(&mut self) {
        self.tap[0].d.next = self.sample.val();
        for i in 0..3 {
            self.tap[i + 1].d.next = self.tap[i].q.val();
        }
        self.sum.next = 0.into();
        for i in 0..4 {
            self.tap[i].clock.next = self.clock.val();
            self.sum.next = self.sum.val() + self.tap[i].q.val();
        }
    }
}

fn main() -> Result<(), SimError> {
    let mut sim = Design::lower(&Filter::default())?.compile()?;
    let (sample, sum, last) = (sim.signal("sample")?, sim.signal("sum")?, sim.signal("top.tap[3].q")?);
    for x in 1..=8 {
        sim.poke(sample, x * x);
        sim.step();
        println!("sum {:4}, oldest {}", sim.peek(sum), sim.peek(last));
    }
    println!("{:#?}", sim.report());
    Ok(())
}
