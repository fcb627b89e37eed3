//! Command line.

use std::path::PathBuf;

use braid_devices::Engine;
use braid_firmware::Issue;
use braid_isa::Geometry;
use braid_sim::verilog::Tool;
use braid_sim::wave::MemoryWords;
use clap::{Args, Parser, Subcommand, ValueEnum};

/// Agentic attention on simulated hardware: forked branches share one KV cache, stationary in 32 processing elements.
#[derive(Parser)]
#[command(name = "braid", version, args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) run: RunOptions,
}

const EXAMPLES: &str = "Examples:
  braid                                        fan-out of a real model on the RTL
  braid run --engine golden                    all of it, bits without cycles
  braid run --agents 8 --tokens 4 --prefix 64 --rows 4
  braid attend in.safetensors out.safetensors  attention of your own tensors
  braid verify                                 the simulators agree on every register
  braid export --preset tiny --out build/tiny  Verilog with a self-checking testbench
  braid disasm commands.bin                    a command list as text";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Runs an agent fan-out and prints a report (also without a command).
    #[command(after_help = RUN_EXAMPLES)]
    Run(Box<RunOptions>),
    /// Attention of your own tensors: q [rows, q_heads, d], k and v [positions, kv_heads, d], optional ranges [rows, n, 2].
    #[command(after_help = ATTEND_EXAMPLES)]
    Attend(Box<AttendOptions>),
    /// Runs a launch in several simulators at once and compares every register in every cycle.
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(VerifyOptions),
    /// Writes Verilog: modules, file list, clock constraints, a FuseSoC core file, a self-checking testbench.
    #[command(after_help = EXPORT_EXAMPLES)]
    Export(ExportOptions),
    /// Prints a command list (little-endian 128-bit words) as text.
    Disasm(DisasmOptions),
}

const RUN_EXAMPLES: &str = "Examples:
  braid run --json
  braid run --input fanout.safetensors --engine golden
  braid run --agents 3 --tokens 2 --prefix 40 --head-dim 32 --group 2 --seed 7
  braid run --fst waveforms/pe.fst --wave-scope 'cube$0.pe$0.datapath' --wave-from 1000 --wave-to 1400
  braid run --fst waveforms/end.fst --wave-scope 'cube$0' --wave-last 500";

const ATTEND_EXAMPLES: &str = "Examples:
  braid attend in.safetensors out.safetensors
  braid attend in.safetensors out.safetensors --engine golden --json
  braid attend in.safetensors out.safetensors --element bf16";

const VERIFY_EXAMPLES: &str = "Examples:
  braid verify                                              tiny preset: all three simulators
  braid verify --preset default --engines compiled,interpreter --cycles 5000
  braid verify --seed 7 --memory-stalls 3 --json";

const EXPORT_EXAMPLES: &str = "Examples:
  braid export --out build/verilog
  braid export --preset tiny --block 'cube[0].pe[1]' --out build/pe --json
  braid export --language systemverilog --tool vivado --period 4 --out build/vivado
  cd build/verilog && iverilog -g2005 -o tb -f braid_sip.f braid_sip_tb.v && vvp tb";

/// Options of the machine, shared by `run` and `attend`.
#[derive(Args, Clone)]
pub(crate) struct MachineOptions {
    /// What computes: the RTL in one of three simulators, or the golden machine (bits without cycles).
    #[arg(long, value_enum, default_value_t = EngineName::Compiled)]
    pub(crate) engine: EngineName,
    /// Size of the machine.
    #[arg(long, value_enum, default_value_t = PresetName::Default)]
    pub(crate) preset: PresetName,
    /// Composite commands, or every stage issued and waited for.
    #[arg(long, value_enum, default_value_t = IssueName::Composite)]
    pub(crate) issue: IssueName,
    /// How the work is divided.
    #[arg(long, value_enum, default_value_t = PolicyName::Sk)]
    pub(crate) policy: PolicyName,
    /// Format that f32 tensors are rounded to.
    #[arg(long, value_enum, default_value_t = ElementName::Fp16)]
    pub(crate) element: ElementName,
    /// Pages into memory: through the host port as on a real machine, or directly into simulated memory (the launch takes the same cycles).
    #[arg(long, value_enum, default_value_t = LoadName::Direct)]
    pub(crate) load: LoadName,
    /// Cycles from a memory request to its first beat.
    #[arg(long, default_value_t = 40, value_name = "CYCLES")]
    pub(crate) memory_latency: u64,
    /// Random stalls of memory: a stall once in N cycles, 0 for none.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) memory_stalls: u32,
    /// Cycles that a launch may take.
    #[arg(long, default_value_t = 1_000_000_000, value_name = "CYCLES")]
    pub(crate) bound: u64,
    #[command(flatten)]
    pub(crate) wave: WaveOptions,
    /// Print one JSON object instead of the report.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A waveform of the RTL.
#[derive(Args, Clone)]
pub(crate) struct WaveOptions {
    /// Write a waveform of the RTL as VCD.
    #[arg(long, value_name = "FILE", group = "waveform")]
    pub(crate) vcd: Option<PathBuf>,
    /// Write a waveform of the RTL as FST: smaller and faster.
    #[arg(long, value_name = "FILE", group = "waveform")]
    pub(crate) fst: Option<PathBuf>,
    /// Scope or signal to dump, such as cube$0.pe$3.datapath; may be repeated [default: everything].
    #[arg(long, value_name = "PATH", alias = "vcd-scope", requires = "waveform")]
    pub(crate) wave_scope: Vec<String>,
    /// Memory to dump, whole or as PATH[0..16]; may be repeated.
    #[arg(long, value_name = "PATH", requires = "waveform")]
    pub(crate) wave_memory: Vec<MemoryWords>,
    /// First clock cycle to dump.
    #[arg(long, value_name = "CYCLE", alias = "vcd-from", default_value_t = 0, requires = "waveform")]
    pub(crate) wave_from: u64,
    /// Clock cycle to stop the dump at.
    #[arg(long, value_name = "CYCLE", alias = "vcd-to", requires = "waveform")]
    pub(crate) wave_to: Option<u64>,
    /// Dump only the last cycles, before the end or a failure.
    #[arg(long, value_name = "CYCLES", alias = "vcd-last", requires = "waveform")]
    pub(crate) wave_last: Option<u64>,
}

#[derive(Args, Clone)]
pub(crate) struct RunOptions {
    #[command(flatten)]
    pub(crate) machine: MachineOptions,
    /// Tensor file of a fan-out (as for `attend`) [default: 8 agents of SmolLM2-135M, layer 0].
    #[arg(long, value_name = "FILE", conflicts_with_all = ["agents", "tokens", "prefix", "head_dim", "group"])]
    pub(crate) input: Option<PathBuf>,
    /// Random fan-out instead: agents that share the prefix.
    #[arg(long)]
    pub(crate) agents: Option<usize>,
    /// Private tokens of each agent.
    #[arg(long)]
    pub(crate) tokens: Option<usize>,
    /// Shared positions.
    #[arg(long)]
    pub(crate) prefix: Option<usize>,
    /// Columns of a head.
    #[arg(long)]
    pub(crate) head_dim: Option<usize>,
    /// Query heads that share the KV head.
    #[arg(long)]
    pub(crate) group: Option<usize>,
    /// Seed of the random fan-out.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Tokens to compute, spread evenly over all of them [default: all, but 1 in rust-hdl's slow simulator].
    #[arg(long, value_name = "N")]
    pub(crate) rows: Option<usize>,
}

#[derive(Args, Clone)]
pub(crate) struct AttendOptions {
    /// Input tensors.
    pub(crate) input: PathBuf,
    /// Output: o f32 [rows, q_heads, d], lse f32 [rows, q_heads].
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) machine: MachineOptions,
}

#[derive(Args, Clone)]
pub(crate) struct VerifyOptions {
    /// Simulators to compare; the first one's results are checked against golden.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "compiled,interpreter,rust-hdl")]
    pub(crate) engines: Vec<EngineName>,
    /// Size of the machine.
    #[arg(long, value_enum, default_value_t = PresetName::Tiny)]
    pub(crate) preset: PresetName,
    /// Compare the first N cycles only [default: the whole launch, memory and registers loaded through the host port included].
    #[arg(long, value_name = "N")]
    pub(crate) cycles: Option<u64>,
    /// Agents that share the prefix.
    #[arg(long, default_value_t = 2)]
    pub(crate) agents: usize,
    /// Private tokens of each agent.
    #[arg(long, default_value_t = 1)]
    pub(crate) tokens: usize,
    /// Shared positions.
    #[arg(long, default_value_t = 60)]
    pub(crate) prefix: usize,
    /// Columns of a head.
    #[arg(long, default_value_t = 16)]
    pub(crate) head_dim: usize,
    /// Query heads that share the KV head.
    #[arg(long, default_value_t = 2)]
    pub(crate) group: usize,
    /// Seed of the tensors and of the memory's stalls.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Composite commands, or every stage issued and waited for.
    #[arg(long, value_enum, default_value_t = IssueName::Composite)]
    pub(crate) issue: IssueName,
    /// Random stalls of memory: a stall once in N cycles, 0 for none.
    #[arg(long, default_value_t = 5, value_name = "N")]
    pub(crate) memory_stalls: u32,
    /// Print one JSON object instead of the report.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Clone)]
pub(crate) struct ExportOptions {
    /// Size of the machine.
    #[arg(long, value_enum, default_value_t = PresetName::Default)]
    pub(crate) preset: PresetName,
    /// Block below the top, such as `cube[0]` or `cube[0].pe[1]` [default: the whole SIP].
    #[arg(long, value_name = "PATH", default_value = "", hide_default_value = true)]
    pub(crate) block: String,
    /// Folder for the files; made if there is none.
    #[arg(long, value_name = "DIR", default_value = "verilog")]
    pub(crate) out: PathBuf,
    /// Language of the modules.
    #[arg(long, value_enum, default_value_t = LanguageName::Verilog)]
    pub(crate) language: LanguageName,
    /// Tool that reads them.
    #[arg(long, value_enum, default_value_t = ToolName::Icarus)]
    pub(crate) tool: ToolName,
    /// Clock period of the constraints.
    #[arg(long, value_name = "NANOSECONDS", default_value_t = 10.0)]
    pub(crate) period: f64,
    /// Cycles of a recorded launch that the testbench replays from reset on, 0 for no testbench.
    #[arg(long, value_name = "N", default_value_t = 3000)]
    pub(crate) cycles: usize,
    /// Print one JSON object instead of the list of files.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Clone)]
pub(crate) struct DisasmOptions {
    /// The command list; `-` for standard input.
    pub(crate) file: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineName {
    /// RTL as machine code.
    Compiled,
    /// RTL in a vector interpreter.
    Interpreter,
    /// RTL in rust-hdl's own simulator: slow.
    RustHdl,
    /// Golden machine.
    Golden,
}

impl EngineName {
    pub(crate) fn engine(self) -> Engine {
        match self {
            EngineName::Compiled => Engine::Compiled,
            EngineName::Interpreter => Engine::Interpreter,
            EngineName::RustHdl => Engine::RustHdl,
            EngineName::Golden => Engine::Golden,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PresetName {
    /// 2 CUBEs x 2 PEs, 2 rows x 8 lanes.
    Tiny,
    /// 4 CUBEs x 8 PEs, 2 rows x 8 lanes.
    Small,
    /// 4 CUBEs x 8 PEs, 8 rows x 8 lanes.
    Default,
}

impl PresetName {
    pub(crate) fn geometry(self) -> Geometry {
        match self {
            PresetName::Tiny => Geometry::TINY,
            PresetName::Small => Geometry::SMALL,
            PresetName::Default => Geometry::DEFAULT,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LanguageName {
    /// IEEE 1364-2005.
    Verilog,
    /// IEEE 1800-2012.
    Systemverilog,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ToolName {
    /// Icarus Verilog.
    Icarus,
    /// Verilator.
    Verilator,
    /// Yosys.
    Yosys,
    /// AMD Vivado.
    Vivado,
    /// Lattice Diamond and Radiant.
    Diamond,
    /// Intel Quartus.
    Quartus,
    /// A flow for silicon: nothing has an initial value.
    Asic,
}

impl ToolName {
    pub(crate) fn tool(self) -> Tool {
        match self {
            ToolName::Icarus => Tool::Icarus,
            ToolName::Verilator => Tool::Verilator,
            ToolName::Yosys => Tool::Yosys,
            ToolName::Vivado => Tool::Vivado,
            ToolName::Diamond => Tool::Diamond,
            ToolName::Quartus => Tool::Quartus,
            ToolName::Asic => Tool::Asic,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum IssueName {
    /// One command for the whole pipeline.
    Composite,
    /// One command a stage.
    Primitive,
}

impl IssueName {
    pub(crate) fn issue(self) -> Issue {
        match self {
            IssueName::Composite => Issue::Composite,
            IssueName::Primitive => Issue::Primitive,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PolicyName {
    /// Stationary-KV.
    Sk,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ElementName {
    /// IEEE 754 binary16.
    Fp16,
    /// bfloat16.
    Bf16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LoadName {
    /// Through the host port.
    Port,
    /// Directly.
    Direct,
}
