//! The SIP: the whole package.
//!
//! * [`axi_lite`], [`registers`]: control port
//! * [`axi_data`]: data port
//! * [`package`]: the SIP itself

pub mod axi_data;
#[cfg(test)]
mod axi_data_tests;
pub mod axi_lite;
#[cfg(test)]
mod axi_lite_tests;
pub mod package;
pub mod registers;

pub use package::Sip;
