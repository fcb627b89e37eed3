//! The plain simulation loop of the unit tests: rust-hdl's own evaluation, without its thread-based `Simulation`.

use rust_hdl::prelude::*;

/// Evaluates a block until nothing changes.
pub(crate) fn settle<B: Block>(block: &mut B) {
    for _ in 0..1000 {
        block.update_all();
        if !block.has_changed() {
            return;
        }
    }
    panic!("the block does not settle: a combinational loop");
}

/// One clock cycle: settle, rising edge, falling edge. `clock` sets the block's clock input.
pub(crate) fn cycle<B: Block>(block: &mut B, clock: impl Fn(&mut B, Clock)) {
    settle(block);
    clock(block, Clock { clk: true });
    settle(block);
    clock(block, Clock { clk: false });
    settle(block);
}
