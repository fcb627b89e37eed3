//! Types of signals, and the struct, enum and interface that a tree of blocks shares.

use super::random::Random;
use std::fmt::Write;

/// Type of a signal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ty {
    Bit,
    Bits(usize),
    Signed(usize),
    Enum,
    Struct,
}

impl Ty {
    pub(crate) fn text(self) -> String {
        match self {
            Self::Bit => "Bit".into(),
            Self::Bits(n) => format!("Bits<{n}>"),
            Self::Signed(n) => format!("Signed<{n}>"),
            Self::Enum => "Phase".into(),
            Self::Struct => "Packet".into(),
        }
    }
}

/// Types of one tree.
pub(crate) struct Types {
    /// Fields of `Packet`.
    pub(crate) fields: Vec<(String, Ty)>,
    /// Number of variants of `Phase`.
    pub(crate) variants: usize,
    /// Width of a stream's data.
    pub(crate) stream: usize,
}

/// A width: mostly small, often next to a word boundary, at most 130.
pub(crate) fn width(r: &mut Random) -> usize {
    match r.below(10) {
        0 => *r.pick(&[1, 2, 31, 32, 33, 63, 64, 65, 96, 127, 128, 129, 130]),
        1 => r.within(33, 130),
        2 => r.within(17, 40),
        3 => 16,
        _ => r.within(1, 16),
    }
}

/// A type without struct and enum.
pub(crate) fn scalar(r: &mut Random) -> Ty {
    match r.below(10) {
        0 | 1 => Ty::Bit,
        2 => Ty::Signed(width(r).max(2)),
        3 => Ty::Signed(16),
        _ => Ty::Bits(width(r)),
    }
}

pub(crate) fn any(r: &mut Random) -> Ty {
    match r.below(10) {
        0 => Ty::Enum,
        1 => Ty::Struct,
        _ => scalar(r),
    }
}

impl Types {
    pub(crate) fn new(r: &mut Random) -> Self {
        // A derived struct takes no signed fields.
        let unsigned = |ty| if let Ty::Signed(n) = ty { Ty::Bits(n) } else { ty };
        let fields = (0..r.within(2, 5)).map(|i| (format!("f{i}"), unsigned(scalar(r)))).collect();
        Self { fields, variants: r.within(2, 7), stream: width(r).min(40) }
    }

    /// Definitions of the types.
    pub(crate) fn text(&self) -> String {
        let mut out = String::from("#[derive(LogicStruct, Copy, Clone, Debug, Default, PartialEq)]\npub struct Packet {\n");
        for (name, ty) in &self.fields {
            let _ = writeln!(out, "    pub {name}: {},", ty.text());
        }
        out += "}\n#[derive(LogicState, Copy, Clone, Debug, PartialEq)]\npub enum Phase {\n";
        for v in 0..self.variants {
            let _ = writeln!(out, "    V{v},");
        }
        out += "}\n";
        for (own, other, forward, backward) in [("StreamIn", "StreamOut", "In", "Out"), ("StreamOut", "StreamIn", "Out", "In")] {
            let _ = writeln!(
                out,
                "#[derive(LogicInterface, Clone, Debug, Default)]\n#[join = \"{other}\"]\npub struct {own} {{\n    pub data: Signal<{forward}, Bits<{}>>,\n    pub valid: Signal<{forward}, Bit>,\n    pub ready: Signal<{backward}, Bit>,\n}}",
                self.stream
            );
        }
        out
    }
}
