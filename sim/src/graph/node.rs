//! Word operations and their arena: hash-consed, simplified as they are made.
//!
//! Every node is 1 to 32 bits wide and its upper bits are 0. Wider values are lists of words ([`super::words`]).

use super::rules;
use std::collections::HashMap;

/// Index of a node in its arena.
pub(crate) type N = u32;

/// Operation of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    /// A constant.
    Const(u32),
    /// Before resolution: word `.1` of the place with index `.0`.
    Ref(u32, u32),
    /// Before resolution: the value that a signal would keep because no path assigned it.
    Hold(u32, u32),
    /// Word of an input port.
    Input(u32),
    /// Word `.1` of the outputs of child `.0`.
    Child(u32, u32),
    /// A state word: a register, or the output register of a memory.
    State(u32),
    /// Word `.1` of memory `.0` at address `a`.
    Read(u32, u32),
    Add,
    Sub,
    /// Low 32 bits of the product.
    Mul,
    And,
    Or,
    Xor,
    Not,
    /// Shift by `b`; by the width or more: 0.
    Shl,
    Shr,
    Eq,
    /// Unsigned less than.
    Ltu,
    /// Signed less than of 32-bit operands.
    Lts,
    /// Bits from this offset.
    Slice(u8),
    Zext,
    Sext,
    /// `a` above `b`.
    Concat,
    /// `b` if `a` else `c`.
    Mux,
    /// Parity.
    Parity,
}

impl Op {
    /// Number of operands.
    pub(crate) fn arity(self) -> usize {
        match self {
            Self::Const(_) | Self::Ref(..) | Self::Hold(..) | Self::Input(_) | Self::Child(..) | Self::State(_) => 0,
            Self::Not | Self::Read(..) | Self::Slice(_) | Self::Zext | Self::Sext | Self::Parity => 1,
            Self::Mux => 3,
            _ => 2,
        }
    }
}

/// One operation with its width and operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Node {
    pub(crate) op: Op,
    pub(crate) w: u8,
    pub(crate) args: [N; 3],
}

impl Node {
    /// Operands in use.
    pub(crate) fn operands(&self) -> &[N] {
        &self.args[..self.op.arity()]
    }
}

/// All ones of a width of at most 32.
pub(crate) const fn mask(w: u8) -> u32 {
    if w >= 32 { u32::MAX } else { (1 << w) - 1 }
}

/// Value of an operation on constant or simulated operands. `wb` is the width of the second operand (`Concat`), `wa` of the first.
#[inline(always)]
pub(crate) fn evaluate(op: Op, w: u8, wa: u8, wb: u8, a: u32, b: u32, c: u32) -> u32 {
    let value = match op {
        Op::Const(v) => v,
        Op::Ref(..) | Op::Hold(..) | Op::Input(_) | Op::Child(..) | Op::State(_) | Op::Read(..) => 0,
        Op::Add => a.wrapping_add(b),
        Op::Sub => a.wrapping_sub(b),
        Op::Mul => a.wrapping_mul(b),
        Op::And => a & b,
        Op::Or => a | b,
        Op::Xor => a ^ b,
        Op::Not => !a,
        Op::Shl => a.checked_shl(b).unwrap_or(0),
        Op::Shr => a.checked_shr(b).unwrap_or(0),
        Op::Eq => u32::from(a == b),
        Op::Ltu => u32::from(a < b),
        Op::Lts => u32::from((a as i32) < (b as i32)),
        Op::Slice(offset) => a >> offset,
        Op::Zext => a,
        Op::Sext => (((a << (32 - wa)) as i32) >> (32 - wa)) as u32,
        Op::Concat => (a << wb) | b,
        Op::Mux => {
            if a != 0 {
                b
            } else {
                c
            }
        }
        Op::Parity => a.count_ones() & 1,
    };
    value & mask(w)
}

/// Nodes of one module; operands come before their users.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arena {
    pub(crate) nodes: Vec<Node>,
    map: HashMap<Node, N>,
}

impl Arena {
    pub(crate) fn width(&self, n: N) -> u8 {
        self.nodes[n as usize].w
    }

    pub(crate) fn op(&self, n: N) -> Op {
        self.nodes[n as usize].op
    }

    pub(crate) fn args(&self, n: N) -> [N; 3] {
        self.nodes[n as usize].args
    }

    pub(crate) fn constant(&mut self, value: u32, w: u8) -> N {
        self.intern(Node { op: Op::Const(value & mask(w)), w, args: [0; 3] })
    }

    pub(crate) fn constant_of(&self, n: N) -> Option<u32> {
        match self.op(n) {
            Op::Const(v) => Some(v),
            _ => None,
        }
    }

    pub(crate) fn leaf(&mut self, op: Op, w: u8) -> N {
        self.intern(Node { op, w, args: [0; 3] })
    }

    pub(super) fn intern(&mut self, node: Node) -> N {
        if let Some(&n) = self.map.get(&node) {
            return n;
        }
        let n = self.nodes.len() as N;
        self.nodes.push(node);
        self.map.insert(node, n);
        n
    }

    /// The node of an operation, simplified.
    pub(crate) fn make(&mut self, op: Op, w: u8, operands: &[N]) -> N {
        debug_assert!((1..=32).contains(&w) && operands.len() == op.arity());
        rules::simplify(self, op, w, operands)
    }

    pub(crate) fn not(&mut self, a: N) -> N {
        let w = self.width(a);
        self.make(Op::Not, w, &[a])
    }

    pub(crate) fn slice(&mut self, a: N, offset: usize, w: usize) -> N {
        self.make(Op::Slice(offset as u8), w as u8, &[a])
    }

    pub(crate) fn zext(&mut self, a: N, w: u8) -> N {
        self.make(Op::Zext, w, &[a])
    }
}
