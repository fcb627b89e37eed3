//! The presets as types.
//!
//! Build one with [`Default`] in a `Box`; `connect_all` must follow. The default preset is large as a struct tree: give the thread that builds it a stack of
//! 64 MiB ([`BUILD_STACK_BYTES`]).

use crate::cube::Cube;
use crate::pe::ProcessingElement;
use crate::sip::Sip;

/// Stack that building a preset may need.
pub const BUILD_STACK_BYTES: usize = 64 << 20;

/// Cycles of a CUBE-to-CUBE link.
pub const LINK_LATENCY: usize = 8;

/// PE of 2 rows with a store of 64.
pub type TinyPe = ProcessingElement<2, 64, 32, 5, 32, 11, 7, 5>;
/// PE of 2 rows with a store of 256.
pub type SmallPe = ProcessingElement<2, 64, 32, 7, 128, 13, 9, 5>;
/// PE of 8 rows with a store of 1,024.
pub type DefaultPe = ProcessingElement<8, 256, 128, 7, 128, 13, 11, 5>;

/// CUBE of the tiny preset.
pub type TinyCube = Cube<2, 64, 32, 5, 32, 11, 7, 5, 2, 13, LINK_LATENCY>;
/// CUBE of the default preset.
pub type DefaultCube = Cube<8, 256, 128, 7, 128, 13, 11, 5, 8, 16, LINK_LATENCY>;

/// 2 CUBEs of 2 PEs of 2 rows.
pub type TinySip = Sip<2, 64, 32, 5, 32, 11, 7, 5, 2, 13, LINK_LATENCY, 2, 4>;
/// 4 CUBEs of 8 PEs of 2 rows.
pub type SmallSip = Sip<2, 64, 32, 7, 128, 13, 9, 5, 8, 15, LINK_LATENCY, 4, 32>;
/// 4 CUBEs of 8 PEs of 8 rows.
pub type DefaultSip = Sip<8, 256, 128, 7, 128, 13, 11, 5, 8, 16, LINK_LATENCY, 4, 32>;
