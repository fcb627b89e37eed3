//! rust-hdl's own synchronous FIFO, unchanged, with its block RAM.

use braid_sim::{Design, Engine, SimError};
use rust_hdl::prelude::*;

fn main() -> Result<(), SimError> {
    let fifo = SynchronousFIFO::<Bits<8>, 3, 4, 1>::default();
    let mut sim = Design::lower(&fifo)?.compile()?;
    let (data_in, write) = (sim.signal("data_in")?, sim.signal("write")?);
    let (data_out, read, empty) = (sim.signal("data_out")?, sim.signal("read")?, sim.signal("empty")?);
    sim.poke(write, 1);
    for x in [10, 20, 30] {
        sim.poke(data_in, x);
        sim.step();
    }
    sim.poke(write, 0);
    for _ in 0..6 {
        let available = sim.peek(empty) == 0;
        if available {
            println!("read {}", sim.peek(data_out));
        }
        sim.poke(read, u64::from(available));
        sim.step();
    }
    Ok(())
}
