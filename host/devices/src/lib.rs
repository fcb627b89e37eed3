//! Devices that run Braid launches: simulated RTL and the golden machine.
