//! Synthesizable rust-hdl blocks of the Braid attention array.
