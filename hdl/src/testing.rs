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

/// A block in the compiled engine, its ports by name: for tests of many cycles.
pub(crate) struct Compiled {
    engine: braid_sim::engine::Compiled,
    ports: std::collections::HashMap<String, braid_sim::SignalId>,
}

impl Compiled {
    pub(crate) fn new<B: Block>(mut block: B) -> Compiled {
        block.connect_all();
        let engine = braid_sim::Design::lower(&block).and_then(|design| design.compile()).expect("the block compiles");
        Compiled { engine, ports: Default::default() }
    }

    fn port(&mut self, name: &str) -> braid_sim::SignalId {
        use braid_sim::Engine;
        if let Some(&port) = self.ports.get(name) {
            return port;
        }
        let port = self.engine.signal(name).expect("a port of the block");
        self.ports.insert(name.into(), port);
        port
    }

    /// Sets an input of up to 64 bits.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<u64>) {
        self.set_wide(name, u128::from(value.into()));
    }

    /// Sets an input of up to 128 bits.
    pub(crate) fn set_wide(&mut self, name: &str, value: u128) {
        use braid_sim::Engine;
        let port = self.port(name);
        self.engine.poke_wide(port, &[value as u64, (value >> 64) as u64]);
    }

    /// An output of up to 64 bits, settled for the present inputs.
    pub(crate) fn get(&mut self, name: &str) -> u64 {
        self.get_wide(name) as u64
    }

    /// An output of up to 128 bits, settled for the present inputs.
    pub(crate) fn get_wide(&mut self, name: &str) -> u128 {
        use braid_sim::Engine;
        let port = self.port(name);
        let mut words = [0; 2];
        self.engine.peek_wide(port, &mut words);
        u128::from(words[0]) | u128::from(words[1]) << 64
    }

    /// One rising edge.
    pub(crate) fn step(&mut self) {
        use braid_sim::Engine;
        self.engine.step();
    }
}

/// A random word of 128 bits.
pub(crate) fn word(stimulus: &mut braid_golden::stimulus::Stimulus) -> u128 {
    u128::from(stimulus.bits()) << 64 | u128::from(stimulus.bits())
}
