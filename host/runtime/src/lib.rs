//! Contexts, pages, Q_cmb and launches.
