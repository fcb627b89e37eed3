//! Bit-exact golden model of the Braid attention array.
