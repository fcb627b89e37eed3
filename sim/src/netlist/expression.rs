//! Typed expressions. Operands of arithmetic, bitwise and compare operators have equal widths; every extension is explicit.

use super::Place;

/// An expression with its width and signedness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expr {
    /// Width in bits.
    pub width: usize,
    /// True if the Rust type is `Signed`.
    pub signed: bool,
    /// Operation.
    pub kind: ExprKind,
}

/// Operation of an [`Expr`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExprKind {
    /// A signal or a child's port.
    Read(Place),
    /// A literal, 32 bits a limb, lowest first.
    Literal(Vec<u32>),
    /// An enum variant: its value and its name `State$Idle`.
    Variant(u32, String),
    /// Change of width or signedness: truncation, zero extension (unsigned operand) or sign extension (signed operand).
    Resize(Box<Expr>),
    /// Unary operator.
    Unary(Unary, Box<Expr>),
    /// Binary operator.
    Binary(Binary, Box<Expr>, Box<Expr>),
    /// Bits `offset ..` of an operand; bits past its top are 0.
    Slice(Box<Expr>, usize),
    /// Bits from a computed offset; bits past the top are 0.
    DynamicSlice(Box<Expr>, Box<Expr>),
    /// The first operand with the bit at the second replaced by the third.
    ReplaceBit(Box<Expr>, Box<Expr>, Box<Expr>),
}

/// Unary operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unary {
    /// Every bit inverted.
    Not,
    /// Two's complement negation.
    Negate,
    /// 1 if every bit is 1.
    All,
    /// 1 if any bit is 1.
    Any,
    /// Parity.
    Xor,
}

/// Binary operators. `Gt` and `Ge` are written as `Lt` and `Le` with exchanged operands. Shifts are logical and take an amount
/// of any width; a shift by the width or more gives 0. The product is as wide as both operands together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Binary {
    Add,
    Sub,
    Mul,
    And,
    Or,
    Xor,
    Shl,
    Shr,
    Eq,
    Ne,
    /// Signed if the operands are.
    Lt,
    /// Signed if the operands are.
    Le,
}
