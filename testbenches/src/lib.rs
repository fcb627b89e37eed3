//! Whole-system tests, cross-tool tests and benchmarks.
