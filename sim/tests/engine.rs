//! The engine interface: clocks, memories, saved states, registers, errors of use.

use braid_sim::engine::run_until;
use braid_sim::lockstep;
use braid_sim::{Design, Engine, SimError};
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
struct TwoClocks {
    fast: Signal<In, Clock>,
    slow: Signal<In, Clock>,
    count: Signal<Out, Bits<8>>,
    copy: Signal<Out, Bits<8>>,
    counter: DFF<Bits<8>>,
    sampled: DFF<Bits<8>>,
    ram: RAM<Bits<40>, 4>,
}

impl Logic for TwoClocks {
    #[hdl_gen]
    fn update(&mut self) {
        self.counter.clock.next = self.fast.val();
        self.sampled.clock.next = self.slow.val();
        self.counter.d.next = self.counter.q.val() + 1;
        self.sampled.d.next = self.counter.q.val();
        self.ram.read_clock.next = self.fast.val();
        self.ram.write_clock.next = self.slow.val();
        self.ram.read_address.next = self.counter.q.val().get_bits::<4>(0);
        self.ram.write_address.next = self.sampled.q.val().get_bits::<4>(0);
        self.ram.write_data.next = bit_cast::<40, 8>(self.counter.q.val());
        self.ram.write_enable.next = true;
        self.count.next = self.counter.q.val();
        self.copy.next = self.sampled.q.val();
    }
}

fn engines() -> [Box<dyn Engine>; 2] {
    let design = Design::lower(&TwoClocks::default()).unwrap();
    [Box::new(design.interpret().unwrap()), Box::new(design.compile().unwrap())]
}

#[test]
fn each_clock_moves_only_its_own_registers() {
    for mut sim in engines() {
        let (fast, slow) = (sim.clock("fast").unwrap(), sim.clock("top.slow").unwrap());
        let (count, copy) = (sim.signal("count").unwrap(), sim.signal("copy").unwrap());
        for _ in 0..5 {
            sim.step_clock(fast);
        }
        assert_eq!((sim.peek(count), sim.peek(copy)), (5, 0));
        sim.step_clock(slow);
        assert_eq!((sim.peek(count), sim.peek(copy)), (5, 5));
        // Both edges at once: the slow register takes the old count.
        sim.step();
        assert_eq!((sim.peek(count), sim.peek(copy)), (6, 5));
        assert_eq!(sim.cycles(), 7);
    }
}

#[test]
fn memories_are_read_and_written_by_word() {
    for mut sim in engines() {
        let ram = sim.memory("top.ram").unwrap();
        let (slow, fast) = (sim.clock("slow").unwrap(), sim.clock("fast").unwrap());
        assert_eq!(sim.memory_len(ram), 16);
        sim.write_memory(ram, 0, &[0xAB_1234_5678]);
        assert_eq!(sim.read_memory(ram, 0), [0xAB_1234_5678]);
        let data = sim.signal("ram.read_data").unwrap();
        sim.step_clock(fast);
        assert_eq!(sim.peek(data), 0xAB_1234_5678);
        sim.step_clock(slow);
        assert_eq!(sim.read_memory(ram, 0), [1]);
    }
}

#[test]
fn a_saved_state_moves_between_engines() {
    let [mut interpreter, mut compiled] = engines();
    for _ in 0..20 {
        interpreter.step();
    }
    let saved = interpreter.save();
    compiled.restore(&saved).unwrap();
    assert_eq!((compiled.digest(), compiled.cycles()), (interpreter.digest(), 20));
    lockstep::run(&mut [("interpreter", &mut *interpreter), ("compiled", &mut *compiled)], 50, |_, _| {}).unwrap();
    interpreter.restore(&saved).unwrap();
    assert_ne!(compiled.digest(), interpreter.digest());
    compiled.reset();
    let count = compiled.signal("count").unwrap();
    assert_eq!((compiled.peek(count), compiled.cycles()), (0, 0));
}

#[test]
fn a_divergence_names_the_register() {
    let [mut interpreter, mut compiled] = engines();
    let counter = compiled.signal("counter.q").unwrap();
    compiled.set_register(counter, &[0x80]).unwrap();
    let found = lockstep::run(&mut [("interpreter", &mut *interpreter), ("compiled", &mut *compiled)], 5, |_, _| {}).unwrap_err();
    assert_eq!((found.cycle, found.register.as_str(), found.left, found.right), (0, "counter$q", vec![1], vec![0x81]));
}

#[test]
fn wrong_paths_and_writes_are_errors() {
    for mut sim in engines() {
        assert_eq!(sim.signal("top.nothing"), Err(SimError::NotFound { kind: "signal", path: "top.nothing".into() }));
        assert!(sim.memory("counter").is_err());
        assert!(sim.clock("count").is_err());
        let count = sim.signal("count").unwrap();
        assert!(sim.set_register(count, &[1]).is_err());
        let found = run_until(&mut *sim, 100, |s| s.peek(count) == 17);
        assert!(found && sim.cycles() == 17);
    }
}
