//! Command encoding and kernels of the Braid attention array.
