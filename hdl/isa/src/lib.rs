//! What software may know of Braid's hardware: commands, memory map, registers, status codes.
