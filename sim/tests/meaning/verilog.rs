//! The exported Verilog of the same blocks: its text, and what Icarus, Verilator and Yosys make of it.

use super::*;
use braid_sim::verilog::{Export, Language, Options, Recording, Tool, tools};
use std::path::Path;
use std::process::Command;

/// Random values on every input.
fn record<B: Block + Default>(options: &Options, cycles: u64) -> (Export, Recording) {
    let mut block = B::default();
    block.connect_all();
    let design = Design::lower(&block).unwrap();
    let export = design.verilog(options).unwrap();
    let inputs: Vec<_> = export.ports.iter().filter(|p| p.input && !p.clock).cloned().collect();
    let mut random = Random(0x1234_5678_9ABC_DEF1);
    let recording = Recording::of(&design, &export, cycles, |_, engine| {
        for port in &inputs {
            let id = engine.signal(&port.source).unwrap();
            let words: Vec<u64> = (0..port.width.div_ceil(64))
                .map(|_| match random.next() % 8 {
                    0 => 0,
                    1 => u64::MAX,
                    // Half of the amounts are in range.
                    2..=4 => random.next() % port.width as u64,
                    _ => random.next(),
                })
                .collect();
            engine.poke_wide(id, &words);
        }
    })
    .unwrap();
    (export, recording)
}

fn replay<B: Block + Default>(tool: Tool, check: impl Fn(&Export, &Recording, &Path)) {
    for (language, separator) in [(Language::Verilog2005, "$"), (Language::SystemVerilog, "_")] {
        let mut options = Options::for_tool(tool).language(language);
        options.style.separator = separator.into();
        // CXXRTL starts like the simulators.
        options.capability.memory_output_initial = true;
        let (export, recording) = record::<B>(&options, 500);
        let directory = tempfile::tempdir().unwrap();
        check(&export, &recording, directory.path());
    }
}

fn replay_all(tool: Tool, check: impl Fn(&Export, &Recording, &Path)) {
    replay::<Traps>(tool, &check);
    replay::<Wide>(tool, &check);
    replay::<Mixed>(tool, &check);
    replay::<Grid>(tool, &check);
    replay::<Words>(tool, &check);
    replay::<SynchronousFIFO<Bits<8>, 3, 4, 1>>(tool, &check);
}

/// Reserved words, names that differ only in case, reads before writes, scratch locals, truncated sums, selections by computed offsets.
#[derive(LogicBlock, Default)]
struct Words {
    clock: Signal<In, Clock>,
    logic: Signal<In, Bits<9>>,
    priority: Signal<In, Bits<3>>,
    count: Signal<In, Bits<40>>,
    expect: Signal<Out, Bits<9>>,
    unique: Signal<Out, Bits<9>>,
    bits: Signal<Out, Bits<4>>,
    picked: Signal<Out, Bit>,
    moved: Signal<Out, Bits<9>>,
    swapped: Signal<Out, Bits<9>>,
    scratch: Signal<Local, Bits<9>>,
    late: Signal<Local, Bits<9>>,
    first: Signal<Local, Bits<9>>,
    small: Signal<Local, Bits<4>>,
    state: DFF<Phase>,
}

impl Logic for Words {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state);
        self.expect.next = 0.into();
        // Reads `late` as it settles, although the same branch writes it below.
        if self.priority.val().get_bit(0) {
            self.expect.next = self.late.val() + 1;
            self.late.next = self.logic.val() ^ 5;
        } else {
            self.late.next = self.logic.val();
        }
        // Reads `first` between two writes.
        self.first.next = self.logic.val();
        self.unique.next = self.first.val();
        if self.priority.val().get_bit(1) {
            self.first.next = self.late.val();
            self.scratch.next = self.first.val() + self.logic.val();
            self.unique.next = self.scratch.val() << self.count.val();
        }
        self.swapped.next = self.first.val();
        self.bits.next = bit_cast::<4, 9>((self.logic.val() - self.late.val()) >> 2);
        self.picked.next = self.logic.val().get_bit(self.priority.val().index());
        self.moved.next = self.logic.val() >> self.count.val();
        self.small.next = bit_cast::<4, 9>(self.logic.val() + self.late.val());
        match self.state.q.val() {
            Phase::Idle => self.state.d.next = Phase::Load,
            Phase::Load => {
                if self.small.val() > 3 {
                    self.state.d.next = Phase::Run;
                }
            }
            Phase::Run => self.state.d.next = Phase::Idle,
        }
        if self.state.q.val() == Phase::Run {
            self.moved.next = !self.logic.val();
        }
    }
}

fn text<B: Block + Default>(language: Language) -> String {
    record::<B>(&Options::default().language(language), 0).0.concatenated()
}

#[test]
fn the_text_of_a_block_with_every_awkward_read_is_this() {
    insta::assert_snapshot!(text::<Words>(Language::Verilog2005));
}

#[test]
fn the_text_of_structs_enums_arrays_and_memories_is_this() {
    insta::assert_snapshot!(text::<Mixed>(Language::Verilog2005));
}

#[test]
fn the_text_of_a_fifo_in_systemverilog_is_this() {
    insta::assert_snapshot!(text::<SynchronousFIFO<Bits<8>, 3, 4, 1>>(Language::SystemVerilog));
}

#[test]
fn two_exports_are_the_same_bytes() {
    assert_eq!(text::<Mixed>(Language::Verilog2005), text::<Mixed>(Language::Verilog2005));
}

#[test]
fn a_latch_is_refused_with_its_path() {
    let design = Design::lower(&Latch::default()).unwrap();
    assert_eq!(design.verilog(&Options::default()).unwrap_err(), SimError::Latch { path: "top.y".into() });
}

#[test]
#[ignore = "needs iverilog"]
fn icarus_agrees_in_every_cycle() {
    replay_all(Tool::Icarus, |export, recording, directory| {
        assert_eq!(tools::icarus(export, recording, directory).unwrap().cycles, 500);
    });
}

#[test]
#[ignore = "needs verilator and a C++ compiler"]
fn verilator_agrees_in_every_cycle() {
    replay_all(Tool::Verilator, |export, recording, directory| {
        let program = tools::verilator(export, recording, directory).unwrap();
        assert_eq!(program.check(recording).unwrap().cycles, 500);
    });
}

#[test]
#[ignore = "needs yosys and a C++ compiler"]
fn yosys_cxxrtl_agrees_in_every_cycle() {
    replay_all(Tool::Yosys, |export, recording, directory| {
        let program = tools::cxxrtl(export, recording, directory).unwrap();
        assert_eq!(program.check(recording).unwrap().cycles, 500);
    });
}

#[test]
#[ignore = "needs iverilog"]
fn a_difference_is_named_by_cycle_and_port() {
    let (mut export, recording) = record::<Wide>(&Options::for_tool(Tool::Icarus), 20);
    let top = export.files.last_mut().unwrap();
    assert!(top.text.contains("assign sum = a + b;"));
    top.text = top.text.replace("assign sum = a + b;", "assign sum = a - b;");
    let directory = tempfile::tempdir().unwrap();
    let error = tools::icarus(&export, &recording, directory.path()).unwrap_err().to_string();
    assert!(error.starts_with("Icarus Verilog: cycle 0: sum is "), "{error}");
}

#[test]
#[ignore = "needs verilator"]
fn verilators_linter_has_nothing_to_say() {
    let lint = |export: &Export, _: &Recording, directory: &Path| {
        export.files.iter().for_each(|f| std::fs::write(directory.join(&f.name), &f.text).unwrap());
        let language = if export.language == Language::SystemVerilog { "1800-2012" } else { "1364-2005" };
        let output = Command::new("verilator")
            .current_dir(directory)
            .args(["--lint-only", "-Wall", "--language", language, "--top-module", &export.top])
            .args(export.files.iter().map(|f| &f.name))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{said}");
    };
    replay_all(Tool::Verilator, lint);
}

/// A memory of 1,024 words and a product.
#[derive(LogicBlock, Default)]
struct Inferred {
    clock: Signal<In, Clock>,
    address: Signal<In, Bits<10>>,
    write: Signal<In, Bit>,
    a: Signal<In, Signed<16>>,
    b: Signal<In, Signed<16>>,
    word: Signal<Out, Bits<32>>,
    product: Signal<Out, Signed<32>>,
    ram: RAM<Bits<32>, 10>,
    sum: DFF<Signed<32>>,
}

impl Logic for Inferred {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, sum);
        self.ram.read_clock.next = self.clock.val();
        self.ram.write_clock.next = self.clock.val();
        self.ram.read_address.next = self.address.val();
        self.ram.write_address.next = self.address.val();
        self.ram.write_enable.next = self.write.val();
        self.ram.write_data.next = unsigned_cast(self.sum.q.val());
        self.word.next = self.ram.read_data.val();
        self.sum.d.next = self.a.val() * self.b.val();
        self.product.next = self.sum.q.val();
    }
}

#[test]
#[ignore = "needs yosys"]
fn yosys_infers_block_ram_and_dsp() {
    let (export, _) = record::<Inferred>(&Options::for_tool(Tool::Yosys), 0);
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("top.v"), export.concatenated()).unwrap();
    for (command, ram, multiplier) in [("synth_ecp5", "DP16KD", "MULT18X18D"), ("synth_xilinx -family xc7", "RAMB36E1", "DSP48E1")] {
        let script = format!("read_verilog top.v; {command} -top top; stat");
        let output = Command::new("yosys").current_dir(directory.path()).args(["-p", &script]).output().unwrap();
        let report = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let cells = report.rsplit("Number of cells").next().unwrap();
        assert!(cells.contains(ram) && cells.contains(multiplier), "{command}: {cells}");
    }
}
