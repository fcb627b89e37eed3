//! rust-hdl block to typed netlist: compiled simulation, waveforms, Verilog, checks.
