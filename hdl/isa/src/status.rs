//! Status codes that a PE or a CUBE stops with.

/// Why a unit stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Code {
    /// No failure.
    Ok = 0,
    /// Unknown opcode, or a reserved bit of w0 set.
    IllegalOpcode = 1,
    /// Not this command-set version.
    IllegalVersion = 2,
    /// An argument outside its range.
    IllegalField = 3,
    /// A page, row table, Q tile or output outside memory.
    BadAddress = 4,
    /// A command before `configure`.
    NotConfigured = 5,
    /// The memory channel did not answer within the bound.
    TimeoutMemory = 6,
    /// No Q tile or row table within the bound.
    TimeoutMulticast = 7,
    /// The merge partner sent nothing, or returned no credit, within the bound.
    TimeoutPartner = 8,
    /// Shared SRAM did not take an output within the bound.
    TimeoutStore = 9,
    /// Stopped because another PE or CUBE failed.
    Aborted = 10,
    /// A PE did not take a command, or did not become idle, within the bound.
    TimeoutCommand = 11,
    /// A command for no PE, or for PEs that do not exist.
    EmptyMask = 12,
}

impl Code {
    /// Every code, by value.
    pub const ALL: [Code; 13] = [
        Code::Ok,
        Code::IllegalOpcode,
        Code::IllegalVersion,
        Code::IllegalField,
        Code::BadAddress,
        Code::NotConfigured,
        Code::TimeoutMemory,
        Code::TimeoutMulticast,
        Code::TimeoutPartner,
        Code::TimeoutStore,
        Code::Aborted,
        Code::TimeoutCommand,
        Code::EmptyMask,
    ];

    /// The code with this value, if there is one.
    pub fn from_value(value: u8) -> Option<Code> {
        Self::ALL.get(value as usize).copied()
    }

    /// Name as in the documentation.
    pub const fn name(self) -> &'static str {
        match self {
            Code::Ok => "ok",
            Code::IllegalOpcode => "illegal_opcode",
            Code::IllegalVersion => "illegal_version",
            Code::IllegalField => "illegal_field",
            Code::BadAddress => "bad_address",
            Code::NotConfigured => "not_configured",
            Code::TimeoutMemory => "timeout_memory",
            Code::TimeoutMulticast => "timeout_multicast",
            Code::TimeoutPartner => "timeout_partner",
            Code::TimeoutStore => "timeout_store",
            Code::Aborted => "aborted",
            Code::TimeoutCommand => "timeout_command",
            Code::EmptyMask => "empty_mask",
        }
    }

    /// One line that tells what happened.
    pub const fn meaning(self) -> &'static str {
        match self {
            Code::Ok => "no failure",
            Code::IllegalOpcode => "unknown opcode, or a reserved bit set",
            Code::IllegalVersion => "not this command-set version",
            Code::IllegalField => "an argument outside its range",
            Code::BadAddress => "a page, row table, Q tile or output outside memory",
            Code::NotConfigured => "a command before configure",
            Code::TimeoutMemory => "the memory channel did not answer within the bound",
            Code::TimeoutMulticast => "no Q tile or row table arrived within the bound",
            Code::TimeoutPartner => "the merge partner sent nothing, or returned no credit, within the bound",
            Code::TimeoutStore => "shared SRAM did not take an output within the bound",
            Code::Aborted => "stopped because another PE or CUBE failed",
            Code::TimeoutCommand => "a PE did not take a command, or did not become idle, within the bound",
            Code::EmptyMask => "a command for no PE, or for PEs that do not exist",
        }
    }
}

/// A PE's or CUBE's status register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Why it stopped.
    pub code: Code,
    /// Index of the command concerned, counted from 0 since the doorbell.
    pub command: u32,
}

impl Status {
    /// Reads the register: code in bits 7:0, command index in bits 31:8. `None` for a code that does not exist.
    pub fn from_register(value: u32) -> Option<Status> {
        Some(Status { code: Code::from_value(value as u8)?, command: value >> 8 })
    }

    /// The register's value.
    pub fn to_register(self) -> u32 {
        self.code as u32 | (self.command << 8)
    }
}
