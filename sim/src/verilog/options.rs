//! Options of the export, as data in groups, and one preset a tool.

/// Language of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Language {
    /// IEEE 1364-2005: `wire`, `reg`, `always @(*)`.
    #[default]
    Verilog2005,
    /// IEEE 1800-2012: `logic`, `always_comb`, `always_ff`.
    SystemVerilog,
}

/// How the text looks. No option of this group changes what the text means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Style {
    /// Language.
    pub language: Language,
    /// What stands for `$` in a name such as `bus$valid`; only letters, digits, `_` and `$` reach the text.
    pub separator: String,
    /// Put before every module name, to keep two exports apart in one project.
    pub module_prefix: String,
    /// Name of the top module, before the prefix.
    pub top: String,
    /// The comments of the source, types of enum and struct signals, and the header of each module.
    pub comments: bool,
}

impl Default for Style {
    fn default() -> Self {
        Self { language: Language::default(), separator: "$".into(), module_prefix: String::new(), top: "top".into(), comments: true }
    }
}

/// What the tool that reads the text supports, or needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capability {
    /// Registers start with their initial value.
    pub register_initial: bool,
    /// Memories start with their contents, zeros included. ROM contents are always written.
    pub memory_initial: bool,
    /// The output register of a synchronous memory starts at 0, as in our engines. Block RAM of some devices has no such initial value: they would build the
    /// register from flip-flops.
    pub memory_output_initial: bool,
    /// Bits that nothing reads end in one unused signal a module, so that a linter is silent about them and about nothing else.
    pub unused_sink: bool,
    /// Words that mean something in C++ are no names either: a simulator that writes C++ objects to them.
    pub cpp_words: bool,
    /// `always_comb` and `always_ff` in SystemVerilog; otherwise `always`, as in Verilog.
    pub always_comb: bool,
}

/// Every option.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// How the text looks.
    pub style: Style,
    /// What the tool supports.
    pub capability: Capability,
}

impl Default for Capability {
    fn default() -> Self {
        Self {
            register_initial: true,
            memory_initial: true,
            memory_output_initial: false,
            unused_sink: true,
            cpp_words: true,
            always_comb: true,
        }
    }
}

/// A tool that reads the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
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

impl Tool {
    /// Every tool, with its name.
    pub const ALL: [(&'static str, Tool); 7] = [
        ("icarus", Tool::Icarus),
        ("verilator", Tool::Verilator),
        ("yosys", Tool::Yosys),
        ("vivado", Tool::Vivado),
        ("diamond", Tool::Diamond),
        ("quartus", Tool::Quartus),
        ("asic", Tool::Asic),
    ];
}

impl Options {
    /// Options for a tool, in Verilog-2005.
    pub fn for_tool(tool: Tool) -> Self {
        let simulation = Capability { memory_output_initial: true, ..Capability::default() };
        let synthesis = Capability { unused_sink: false, cpp_words: false, ..Capability::default() };
        let (separator, capability) = match tool {
            // Icarus wakes an `always_comb` for what it writes itself, for ever if it writes twice.
            Tool::Icarus => ("$", Capability { always_comb: false, ..simulation }),
            Tool::Verilator => ("$", simulation),
            Tool::Yosys => ("$", synthesis),
            // Both accept `$`, but write it escaped into reports and constraint queries.
            Tool::Vivado | Tool::Diamond | Tool::Quartus => ("_", synthesis),
            Tool::Asic => ("_", Capability { register_initial: false, memory_initial: false, ..synthesis }),
        };
        Self { style: Style { separator: separator.into(), ..Style::default() }, capability }
    }

    /// The same options in another language.
    #[must_use]
    pub fn language(mut self, language: Language) -> Self {
        self.style.language = language;
        self
    }

    /// True if processes are `always_comb` and `always_ff`.
    pub(super) fn procedures(&self) -> bool {
        self.system() && self.capability.always_comb
    }

    pub(super) fn system(&self) -> bool {
        self.style.language == Language::SystemVerilog
    }
}
