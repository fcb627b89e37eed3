//! Independent f64 attention, the check of the golden model.
