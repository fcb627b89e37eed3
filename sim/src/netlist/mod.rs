//! The typed, hierarchical netlist: what a rust-hdl design *means*, independent of how it is simulated or printed.
//!
//! A [`Design`] is a list of distinct [`Module`]s, children before parents, and the index of the top. Two blocks of the same
//! structure are one module, instantiated twice. A module's body is either a kernel (typed statements in Rust's order of
//! execution, loops unrolled, names resolved, every width explicit) or a primitive (register, memory, ROM).
//!
//! Meaning of a kernel: statements run in order. Reading a local, or an own output, that an earlier statement wrote gives the written value;
//! reading one that is only written later, or a child's port, gives the settled value of the cycle.

mod expression;
mod primitive;

use crate::SimError;
pub use expression::{Binary, Expr, ExprKind, Unary};
pub use primitive::{Memory, Register, WritePort};

/// Index of a module in [`Design::modules`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleId(pub usize);

/// Index of a signal in [`Module::signals`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SignalRef(pub usize);

/// Index of an instance in [`Module::instances`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstanceRef(pub usize);

/// A whole design.
#[derive(Debug, Clone)]
pub struct Design {
    /// Distinct modules, children before parents.
    pub modules: Vec<Module>,
    /// The top module (the last one).
    pub top: ModuleId,
    /// Number of block instances in the design, primitives included.
    pub instance_count: usize,
}

impl Design {
    /// The top module.
    pub fn top(&self) -> &Module {
        &self.modules[self.top.0]
    }

    /// The block of a path as a design of its own, with `cube[0].pe[1]` or `cube$0.pe$1` for array elements; the empty path is the whole design.
    ///
    /// # Errors
    /// [`SimError::NotFound`] if there is no such block.
    pub fn block(&self, path: &str) -> Result<Self, SimError> {
        let missing = || SimError::NotFound { kind: "block", path: path.into() };
        let flat = path.replace('[', "$").replace(']', "");
        let mut top = self.top;
        for name in flat.split('.').filter(|n| !n.is_empty()) {
            let instances = &self.modules[top.0].instances;
            top = instances.iter().find(|i| i.name == name).ok_or_else(missing)?.module;
        }
        let mut kept = vec![false; self.modules.len()];
        let mut count = vec![1; self.modules.len()];
        self.mark(top.0, &mut kept);
        let mut new_id = vec![ModuleId(0); self.modules.len()];
        let mut modules = Vec::new();
        for (i, module) in self.modules.iter().enumerate().filter(|(i, _)| kept[*i]) {
            count[i] = 1 + module.instances.iter().map(|c| count[c.module.0]).sum::<usize>();
            new_id[i] = ModuleId(modules.len());
            let mut copy = module.clone();
            copy.instances.iter_mut().for_each(|c| c.module = new_id[c.module.0]);
            modules.push(copy);
        }
        Ok(Self { modules, top: new_id[top.0], instance_count: count[top.0] })
    }

    /// Marks a module and everything in it.
    fn mark(&self, module: usize, kept: &mut [bool]) {
        kept[module] = true;
        for instance in &self.modules[module].instances {
            if !kept[instance.module.0] {
                self.mark(instance.module.0, kept);
            }
        }
    }
}

/// One distinct block.
#[derive(Debug, Clone)]
pub struct Module {
    /// Unique name: the field name of its first instance, without array index, numbered when taken.
    pub name: String,
    /// Path of the first instance, for messages.
    pub path: String,
    /// Ports, locals and constants, in declaration order.
    pub signals: Vec<Signal>,
    /// Child blocks, in declaration order.
    pub instances: Vec<Instance>,
    /// What it does.
    pub body: Body,
}

impl Module {
    /// The signal of this name.
    pub fn signal(&self, name: &str) -> Option<SignalRef> {
        self.signals.iter().position(|s| s.name == name).map(SignalRef)
    }
    /// True for registers and memories, which engines fold into the parent.
    pub fn is_primitive(&self) -> bool {
        !matches!(self.body, Body::Kernel(_))
    }
}

/// A port, local signal or constant of a module.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Signal {
    /// Name in Verilog spelling: `a`, `row$3`, `bus$valid`.
    pub name: String,
    /// Width in bits.
    pub width: usize,
    /// Port direction, local or constant.
    pub kind: SignalKind,
    /// Its type, with enum variants and struct fields.
    pub ty: Type,
}

impl Signal {
    /// True if the type is a signed number.
    pub fn signed(&self) -> bool {
        matches!(self.ty, Type::Signed(_))
    }
    /// True if the type is a clock.
    pub fn is_clock(&self) -> bool {
        matches!(self.ty, Type::Clock)
    }
}

/// Role of a signal in its module.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SignalKind {
    /// Input port.
    Input,
    /// Output port.
    Output,
    /// Local signal.
    Local,
    /// Constant field with its value, 32 bits a limb, lowest first.
    Constant(Vec<u32>),
}

/// Type of a signal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Type {
    /// Unsigned number of this many bits.
    Bits(usize),
    /// Two's complement number of this many bits.
    Signed(usize),
    /// A clock.
    Clock,
    /// Enumeration: type name and variants; a variant's value is its position.
    Enum {
        /// Type name.
        name: String,
        /// Variant names without the type name.
        variants: Vec<String>,
    },
    /// Struct: type name and fields, first field in the lowest bits.
    Struct {
        /// Type name.
        name: String,
        /// Field names and types.
        fields: Vec<(String, Type)>,
    },
}

impl Type {
    /// Width in bits.
    pub fn width(&self) -> usize {
        match self {
            Self::Bits(w) | Self::Signed(w) => *w,
            Self::Clock => 1,
            Self::Enum { variants, .. } => rust_hdl::core::bits::clog2(variants.len()),
            Self::Struct { fields, .. } => fields.iter().map(|f| f.1.width()).sum(),
        }
    }
    /// Widths of the words in which engines hold the type: one a field, at most 32 bits each, lowest first.
    pub fn words(&self) -> Vec<usize> {
        match self {
            Self::Struct { fields, .. } => fields.iter().flat_map(|f| f.1.words()).collect(),
            other => {
                let mut left = other.width();
                let mut out = Vec::new();
                while left > 0 {
                    out.push(left.min(32));
                    left -= left.min(32);
                }
                out
            }
        }
    }
}

/// A child block.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Instance {
    /// Field name, with `$index` for array elements.
    pub name: String,
    /// What it is.
    pub module: ModuleId,
}

/// What a module does.
#[derive(Debug, Clone)]
pub enum Body {
    /// Typed statements.
    Kernel(Vec<Statement>),
    /// A register: ports `d`, `q` and a clock.
    Register(Register),
    /// A memory or ROM.
    Memory(Memory),
}

/// Something that a kernel reads or writes: a signal of the module, or a port of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// A signal of the module itself.
    Own(SignalRef),
    /// A port of a child; the signal is an index into the child module's signals.
    Child(InstanceRef, SignalRef),
}

/// One statement of a kernel.
#[derive(Debug, Clone)]
pub enum Statement {
    /// `target[offset +: width] = value`; a whole signal has offset 0 and its own width.
    Assign {
        /// Signal written.
        target: Place,
        /// Lowest bit written.
        offset: usize,
        /// Bits written; the width of `value`.
        width: usize,
        /// New value.
        value: Expr,
    },
    /// Two-way branch; the condition is one bit wide.
    If {
        /// Condition.
        condition: Expr,
        /// Taken when the condition is 1.
        then: Vec<Statement>,
        /// Taken when it is 0.
        otherwise: Vec<Statement>,
    },
    /// Selection by value.
    Case {
        /// Value compared.
        subject: Expr,
        /// Arms in order.
        arms: Vec<Arm>,
        /// Taken when no arm matches; `None` only if the arms cover every variant of the enum.
        default: Option<Vec<Statement>>,
    },
    /// A comment of the source.
    Comment(String),
}

/// One arm of a [`Statement::Case`].
#[derive(Debug, Clone)]
pub struct Arm {
    /// Value that selects the arm.
    pub value: u32,
    /// Readable name, `State$Idle`.
    pub name: String,
    /// Body.
    pub block: Vec<Statement>,
}
