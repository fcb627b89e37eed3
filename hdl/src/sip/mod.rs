//! The SIP: the whole package.
//!
//! * [`axi_lite`], [`registers`]: control port
//! * [`axi_data`]: data port
//! * [`package`]: the SIP itself

pub mod axi_data;
pub mod axi_lite;
pub mod package;
pub mod registers;

pub use package::Sip;
