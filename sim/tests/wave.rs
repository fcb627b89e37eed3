//! Dumps are read back with wellen, a reader that shares no code with them, and compared with what the engine peeked.

use braid_sim::wave::{Dump, Format, Selection, Signals, Window};
use braid_sim::{Design, Engine};
use rust_hdl::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
enum Phase {
    Idle,
    Load,
    Run,
}

/// Accumulates; one of several alike, so that it becomes a lane.
#[derive(LogicBlock, Default)]
struct Cell {
    clock: Signal<In, Clock>,
    x: Signal<In, Bits<70>>,
    step: Signal<In, Bit>,
    sum: Signal<Out, Bits<70>>,
    /// Nobody reads it.
    odd: Signal<Out, Bit>,
    acc: DFF<Bits<70>>,
    mixed: Signal<Local, Bits<70>>,
}

impl Logic for Cell {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, acc);
        self.mixed.next = self.acc.q.val() ^ (self.x.val() << 3);
        if self.step.val() {
            self.acc.d.next = self.mixed.val() + self.x.val();
        }
        self.sum.next = self.acc.q.val();
        self.odd.next = self.mixed.val().get_bit(69);
    }
}

#[derive(LogicBlock)]
struct Machine {
    clock: Signal<In, Clock>,
    go: Signal<In, Bit>,
    data: Signal<In, Bits<9>>,
    out: Signal<Out, Bits<70>>,
    phase: DFF<Phase>,
    busy: Signal<Local, Bit>,
    count: DFF<Bits<4>>,
    limit: Constant<Bits<4>>,
    cells: [Cell; 3],
    ram: RAM<Bits<40>, 4>,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            clock: Default::default(),
            go: Default::default(),
            data: Default::default(),
            out: Default::default(),
            phase: Default::default(),
            busy: Default::default(),
            count: Default::default(),
            limit: Constant::new(11.into()),
            cells: Default::default(),
            ram: RAM::new(BTreeMap::new()),
        }
    }
}

impl Logic for Machine {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, phase, count);
        for i in 0..3 {
            self.cells[i].clock.next = self.clock.val();
            self.cells[i].step.next = self.busy.val();
        }
        self.cells[0].x.next = bit_cast::<70, 9>(self.data.val());
        self.cells[1].x.next = self.cells[0].sum.val();
        self.cells[2].x.next = self.cells[1].sum.val() + 1;
        self.busy.next = self.phase.q.val() == Phase::Run;
        match self.phase.q.val() {
            Phase::Idle => {
                if self.go.val() {
                    self.phase.d.next = Phase::Load;
                }
            }
            Phase::Load => {
                self.count.d.next = 0.into();
                self.phase.d.next = Phase::Run;
            }
            Phase::Run => {
                self.count.d.next = self.count.q.val() + 1;
                if self.count.q.val() == self.limit.val() {
                    self.phase.d.next = Phase::Idle;
                }
            }
        }
        self.ram.read_clock.next = self.clock.val();
        self.ram.write_clock.next = self.clock.val();
        self.ram.read_address.next = self.count.q.val();
        self.ram.write_address.next = self.count.q.val() + 1;
        self.ram.write_data.next = bit_cast::<40, 9>(self.data.val()) << 31;
        self.ram.write_enable.next = self.busy.val();
        self.out.next = self.cells[2].sum.val() ^ bit_cast::<70, 40>(self.ram.read_data.val());
    }
}

fn design() -> Design {
    Design::lower(&Machine::default()).unwrap()
}

fn drive(engine: &mut dyn Engine, cycle: u64) {
    let (go, data) = (engine.signal("go").unwrap(), engine.signal("data").unwrap());
    engine.poke(go, u64::from(cycle % 19 == 3));
    engine.poke(data, cycle.wrapping_mul(0x9e37_79b9) >> 7 & 0x1ff);
}

/// Values of a variable and the times at which it takes them.
type Changes = Vec<(u64, String)>;

/// Variables of a file; of an enum also the names.
#[derive(Debug, PartialEq)]
struct Contents(BTreeMap<String, (Changes, Vec<String>)>);

fn read(path: &Path) -> Contents {
    let mut wave = wellen::simple::read(path).expect("a file that wellen reads");
    let vars: Vec<_> = wave.hierarchy().iter_vars().cloned().collect();
    wave.load_signals(&vars.iter().map(wellen::Var::signal_ref).collect::<Vec<_>>());
    let times = wave.time_table().to_vec();
    let h = wave.hierarchy();
    let of = |var: &wellen::Var| {
        let signal = wave.get_signal(var.signal_ref()).expect("loaded");
        let changes = signal.iter_changes().map(|(t, v)| (times[t as usize], v.to_string())).collect();
        let names = var.enum_type(h).map(|e| e.1.iter().map(|(v, n)| format!("{v}={n}")).collect()).unwrap_or_default();
        (var.full_name(h), (changes, names))
    };
    Contents(vars.iter().map(of).collect())
}

fn bits(limbs: &[u64], width: usize) -> String {
    (0..width).rev().map(|b| if limbs[b / 64] >> (b % 64) & 1 == 1 { '1' } else { '0' }).collect()
}

/// Simulates and dumps; what was peeked of every variable, as the file should have it.
fn record(
    engine: &mut dyn Engine,
    path: &Path,
    format: Format,
    selection: &Selection,
    window: Window,
    cycles: u64,
) -> BTreeMap<String, Changes> {
    let signals = Signals::of(&design(), engine, selection).unwrap();
    let variables: Vec<_> = signals.variables().iter().map(|v| (v.path.clone(), signals.width(v), signals.is_clock(v))).collect();
    let mut expected: BTreeMap<String, Changes> = BTreeMap::new();
    let mut dump = Dump::create(path, format, signals, window).unwrap();
    let end = window.to.unwrap_or(cycles).min(cycles);
    let first = window.last.map_or(window.from, |last| window.from.max(end.saturating_sub(last)));
    for cycle in 0..cycles {
        drive(engine, cycle);
        dump.sample(cycle, engine).unwrap();
        for (path, width, clock) in variables.iter().filter(|_| cycle >= first && cycle < end) {
            let list = expected.entry(format!("top.{path}")).or_default();
            if *clock {
                list.extend([(cycle * 10, "1".into()), (cycle * 10 + 5, "0".into())]);
                continue;
            }
            let mut limbs = [0; 2];
            match path.rsplit_once(".word$") {
                Some((memory, address)) => {
                    let memory = engine.memory(memory).unwrap();
                    limbs[0] = engine.read_memory(memory, address.parse().unwrap())[0];
                }
                None => {
                    let handle = engine.signal(path).unwrap();
                    engine.peek_wide(handle, &mut limbs);
                }
            }
            let value = bits(&limbs, *width);
            if list.last().is_none_or(|l| l.1 != value) {
                list.push((cycle * 10, value));
            }
        }
        engine.step();
    }
    dump.close().unwrap();
    expected
}

fn everything() -> Selection {
    Selection { scopes: vec!["top".into()], memories: vec!["ram".parse().unwrap()] }
}

#[test]
fn every_change_of_every_variable_is_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dump");
    let engines: [(&str, Box<dyn Engine>); 3] = [
        ("compiled", Box::new(design().compile_visible().unwrap())),
        ("interpreter", Box::new(design().interpret_visible().unwrap())),
        ("compiled, dead words computed one by one", Box::new(design().compile().unwrap())),
    ];
    for (name, mut engine) in engines {
        for format in [Format::Vcd, Format::Fst] {
            engine.reset();
            let expected = record(engine.as_mut(), &path, format, &everything(), Window::default(), 300);
            assert!(expected.len() > 60, "{} variables", expected.len());
            let mut contents = read(&path);
            contents.0.retain(|name, _| !name.ends_with("$name"));
            for (variable, changes) in &expected {
                let found = &contents.0.get(variable).unwrap_or_else(|| panic!("{name}, {format:?}: no {variable}")).0;
                assert_eq!(found, changes, "{name}, {format:?}: {variable}");
            }
            assert_eq!(contents.0.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
        }
    }
}

#[test]
fn what_no_engine_needs_is_watched_without_slow_words() {
    let mut engine = design().compile_visible().unwrap();
    let paths = ["cells[0].odd", "cells$2.mixed", "out"];
    let watched: Vec<_> = paths.iter().map(|p| braid_sim::engine::Watched::Signal(engine.signal(p).unwrap())).collect();
    assert_eq!(engine.watch(&watched).unwrap().slow_words, 0);
}

#[test]
fn signals_with_one_driver_are_one_value() {
    let mut engine = design().compile_visible().unwrap();
    let signals = Signals::of(&design(), &mut engine, &Selection { scopes: vec!["cells$0".into()], memories: vec![] }).unwrap();
    let slots = |path: &str| signals.slots(signals.variables().iter().find(|v| v.path == path).unwrap()).to_vec();
    assert_eq!(slots("cells$0.sum"), slots("cells$0.acc.q"));
    assert_ne!(slots("cells$0.sum"), slots("cells$0.mixed"));
    assert!(signals.distinct_values() < signals.variables().len());
}

#[test]
fn an_enum_is_readable_by_name_in_both_formats() {
    let folder = tempfile::tempdir().unwrap();
    let mut engine = design().compile_visible().unwrap();
    let selection = Selection { scopes: vec!["phase.q".into()], memories: vec![] };
    let vcd = folder.path().join("a.vcd");
    record(&mut engine, &vcd, Format::Vcd, &selection, Window::default(), 10);
    let text = &read(&vcd).0["top.phase.q$name"].0;
    assert_eq!(text, &[(0, "Idle".to_string()), (40, "Load".to_string()), (50, "Run".to_string())]);
    engine.reset();
    let fst = folder.path().join("a.fst");
    record(&mut engine, &fst, Format::Fst, &selection, Window::default(), 10);
    let (changes, names) = &read(&fst).0["top.phase.q"];
    assert_eq!(names, &["00=Idle", "01=Load", "10=Run"]);
    assert_eq!(changes[1], (40, "01".to_string()));
}

#[test]
fn equal_runs_give_equal_bytes() {
    let folder = tempfile::tempdir().unwrap();
    for format in [Format::Vcd, Format::Fst] {
        let bytes = |name: &str| {
            let path = folder.path().join(name);
            record(&mut design().compile_visible().unwrap(), &path, format, &everything(), Window::default(), 1500);
            std::fs::read(path).unwrap()
        };
        assert_eq!(bytes("one"), bytes("two"));
    }
}

#[test]
fn a_window_starts_with_every_value_and_ends_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dump");
    for format in [Format::Vcd, Format::Fst] {
        for window in [
            Window { from: 37, to: Some(90), last: None },
            Window { from: 0, to: None, last: Some(25) },
            Window { from: 10, to: Some(600), last: Some(300) },
            Window { from: 0, to: None, last: Some(5000) },
        ] {
            let mut engine = design().compile_visible().unwrap();
            let expected = record(&mut engine, &path, format, &everything(), window, 700);
            let contents = read(&path);
            for (variable, changes) in &expected {
                assert_eq!(&contents.0[variable].0, changes, "{format:?}, {window:?}: {variable}");
            }
        }
    }
}

#[test]
fn a_trigger_writes_the_ring_and_all_that_follows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dump.fst");
    let mut engine = design().compile_visible().unwrap();
    let selection = Selection { scopes: vec!["clock".into()], memories: vec![] };
    let signals = Signals::of(&design(), &mut engine, &selection).unwrap();
    let mut dump = Dump::create(&path, Format::Fst, signals, Window { last: Some(8), ..Window::default() }).unwrap();
    for cycle in 0..500 {
        dump.sample(cycle, &mut engine).unwrap();
        engine.step();
        if cycle == 400 {
            dump.trigger();
        }
    }
    drop(dump);
    let clock = &read(&path).0["top.clock"].0;
    assert_eq!((clock[0].0, clock.last().unwrap().0), (393 * 10, 499 * 10 + 5));
    assert_eq!(clock.len(), 2 * (500 - 393));
}

#[test]
fn a_panic_leaves_a_file_of_every_cycle_before_it() {
    let folder = tempfile::tempdir().unwrap();
    for (name, format) in [("a.vcd", Format::Vcd), ("a.fst", Format::Fst)] {
        let path = folder.path().join(name);
        let failing = std::panic::catch_unwind(|| {
            let mut engine = design().compile_visible().unwrap();
            let signals = Signals::of(&design(), &mut engine, &Selection::default()).unwrap();
            let mut dump = Dump::create(&path, format, signals, Window::default()).unwrap();
            for cycle in 0..777 {
                dump.sample(cycle, &mut engine).unwrap();
                engine.step();
            }
            panic!("the simulation fails");
        });
        assert!(failing.is_err());
        assert_eq!(read(&path).0["top.clock"].0.len(), 2 * 777);
    }
}

#[test]
fn a_file_can_be_read_at_any_time_while_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    for format in [Format::Vcd, Format::Fst] {
        let (path, copy) = (folder.path().join("dump"), folder.path().join("copy"));
        let mut engine = design().compile_visible().unwrap();
        let signals = Signals::of(&design(), &mut engine, &Selection::default()).unwrap();
        let mut dump = Dump::create(&path, format, signals, Window::default()).unwrap();
        let mut seen = Vec::new();
        for cycle in 0..20_000 {
            drive(&mut engine, cycle);
            dump.sample(cycle, &mut engine).unwrap();
            engine.step();
            if cycle % 1500 == 700 {
                // What the file has now is what a killed process leaves.
                std::fs::copy(&path, &copy).unwrap();
                seen.push(read(&copy).0["top.clock"].0.clone());
            }
        }
        dump.close().unwrap();
        let all = &read(&path).0["top.clock"].0;
        assert_eq!(all.len(), 2 * 20_000);
        seen.iter().for_each(|part| assert_eq!(part[..], all[..part.len()]));
        assert!(seen.last().unwrap().len() >= 2 * 8192, "{format:?}: {}", seen.last().unwrap().len());
    }
}

#[test]
fn a_vcd_cut_anywhere_is_read_up_to_there() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, cut) = (folder.path().join("whole"), folder.path().join("cut"));
    record(&mut design().compile_visible().unwrap(), &whole, Format::Vcd, &Selection::default(), Window::default(), 1030);
    let (bytes, all) = (std::fs::read(&whole).unwrap(), read(&whole));
    for part in [bytes.len() / 2, bytes.len() - 100, bytes.len() - 1] {
        std::fs::write(&cut, &bytes[..part]).unwrap();
        let (clock, all) = (&read(&cut).0["top.clock"].0, &all.0["top.clock"].0);
        assert!(clock.len() >= 2 * 500, "{} changes in {part} bytes", clock.len());
        assert_eq!(clock[..], all[..clock.len()]);
    }
}

#[test]
fn another_thread_closes_the_file_while_the_simulation_runs_or_sleeps() {
    let folder = tempfile::tempdir().unwrap();
    for sleeping in [false, true] {
        let path = folder.path().join("dump.vcd");
        let mut engine = design().compile_visible().unwrap();
        let signals = Signals::of(&design(), &mut engine, &Selection::default()).unwrap();
        let mut dump = Dump::create(&path, Format::Vcd, signals, Window::default()).unwrap();
        for cycle in 0..600 {
            dump.sample(cycle, &mut engine).unwrap();
            engine.step();
        }
        let closer = dump.closer();
        if sleeping {
            assert!(closer.close());
            // All but what the simulation had not handed over yet.
            assert!(read(&path).0["top.clock"].0.len() >= 2 * 512);
            continue;
        }
        std::thread::scope(|scope| {
            let close = scope.spawn(move || closer.close());
            let mut cycle = 600;
            while !close.is_finished() {
                dump.sample(cycle, &mut engine).unwrap();
                engine.step();
                cycle += 1;
            }
            assert!(close.join().unwrap());
            let clock = &read(&path).0["top.clock"].0;
            assert!(clock.len() >= 2 * 600);
            assert_eq!(clock.last().unwrap().0 % 10, 5);
        });
    }
}

#[test]
fn clocks_that_rise_apart_toggle_apart() {
    #[derive(LogicBlock, Default)]
    struct Two {
        fast: Signal<In, Clock>,
        slow: Signal<In, Clock>,
        a: Signal<Out, Bit>,
        b: Signal<Out, Bit>,
        x: DFF<Bit>,
        y: DFF<Bit>,
    }
    impl Logic for Two {
        #[hdl_gen]
        fn update(&mut self) {
            self.x.clock.next = self.fast.val();
            self.y.clock.next = self.slow.val();
            self.x.d.next = !self.x.q.val();
            self.y.d.next = self.x.q.val();
            self.a.next = self.x.q.val();
            self.b.next = self.y.q.val();
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dump.fst");
    let design = Design::lower(&Two::default()).unwrap();
    let mut engine = design.compile_visible().unwrap();
    let signals = Signals::of(&design, &mut engine, &Selection::default()).unwrap();
    let mut dump = Dump::create(&path, Format::Fst, signals, Window::default()).unwrap();
    let (fast, slow) = (engine.clock("fast").unwrap(), engine.clock("slow").unwrap());
    dump.sample(0, &mut engine).unwrap();
    for (cycle, clock) in [(1, fast), (2, fast), (3, slow)] {
        engine.step_clock(clock);
        dump.sample_clock(cycle, clock, &mut engine).unwrap();
    }
    dump.close().unwrap();
    let contents = read(&path);
    let rises = |name: &str| contents.0[name].0.iter().filter(|c| c.1 == "1").map(|c| c.0).collect::<Vec<_>>();
    assert_eq!(rises("top.fast"), [0, 10, 20]);
    assert_eq!(rises("top.y.clock"), [0, 30]);
}

#[test]
fn rust_hdls_own_simulator_gives_the_same_variables() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, theirs) = (folder.path().join("engine"), folder.path().join("block"));
    let mut block = Machine::default();
    block.connect_all();
    let mut engine = design().compile_visible().unwrap();
    let selection = Selection::default();
    let mut a = Dump::create(&ours, Format::Fst, Signals::of(&design(), &mut engine, &selection).unwrap(), Window::default()).unwrap();
    let signals = Signals::of_block(&design(), &block, &selection).unwrap();
    let mut b = Dump::create(&theirs, Format::Fst, signals, Window::default()).unwrap();
    let (go, data) = (engine.signal("go").unwrap(), engine.signal("data").unwrap());
    let mut clock = false;
    for cycle in 0..60 {
        drive(&mut engine, cycle);
        a.sample(cycle, &mut engine).unwrap();
        block.go.next = engine.peek(go) == 1;
        block.data.next = engine.peek(data).into();
        simulate(&mut block, 20);
        b.sample_block(cycle, &block).unwrap();
        engine.step();
        for _ in 0..2 {
            clock = !clock;
            block.clock.next = Clock { clk: clock };
            simulate(&mut block, 20);
        }
    }
    a.close().unwrap();
    b.close().unwrap();
    assert_eq!(read(&ours), read(&theirs));
}

#[test]
fn what_does_not_exist_or_cannot_be_written_is_one_error() {
    let mut engine = design().compile_visible().unwrap();
    let mut refuse = |scope: &str, memory: &[&str]| {
        let selection = Selection {
            scopes: if scope.is_empty() { vec![] } else { vec![scope.into()] },
            memories: memory.iter().map(|m| m.parse().unwrap()).collect(),
        };
        Signals::of(&design(), &mut engine, &selection).unwrap_err().to_string()
    };
    assert_eq!(
        refuse("cell", &[]),
        "no scope or signal 'cell' in the design; scopes of the top: phase, count, cells$0, cells$1, cells$2, ram"
    );
    assert_eq!(refuse("", &["rom"]), "no memory words 'rom' in the design: there is no such memory");
    assert_eq!(refuse("", &["ram[3..17]"]), "no memory words 'ram[3..17]' in the design: it has 16 words");
    let signals = Signals::of(&design(), &mut engine, &Selection::default()).unwrap();
    let error = Dump::create("/no/such/folder/a.vcd".as_ref(), Format::Vcd, signals, Window::default()).unwrap_err();
    assert!(error.to_string().starts_with("cannot write /no/such/folder/a.vcd: "), "{error}");
}
