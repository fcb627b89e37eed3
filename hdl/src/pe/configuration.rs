//! A kernel's parameters, as `configure` set them.

use rust_hdl::prelude::*;

/// Stable from `configure` to the next one.
#[derive(LogicStruct, Copy, Clone, Debug, Default, PartialEq)]
pub struct Configuration {
    pub rows: Bits<16>,
    pub row_tiles: Bits<16>,
    pub head_dim: Bits<8>,
    pub scale: Bits<32>,
    pub q_address: Bits<20>,
    /// SRAM words of a Q tile.
    pub tile_words: Bits<16>,
    pub q_bf16: Bit,
    pub k_bf16: Bit,
    pub v_bf16: Bit,
    /// Merge rounds of all active PEs.
    pub rounds: Bits<4>,
}

/// A request to the CUBE's multicast reader.
#[derive(LogicStruct, Copy, Clone, Debug, Default, PartialEq)]
pub struct FetchRequest {
    /// Send it to me; otherwise I skip this row tile.
    pub need: Bit,
    /// Row table instead of a Q tile.
    pub table: Bit,
    pub row_tile: Bits<16>,
    pub address: Bits<20>,
    pub words: Bits<16>,
}
