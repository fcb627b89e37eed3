//! Control registers on the AXI4-Lite port: byte addresses, 32 bits each.

/// Identification, reads [`ID_VALUE`].
pub const ID: u32 = 0x000;
/// "BRAI".
pub const ID_VALUE: u32 = 0x4252_4149;
/// Command-set version.
pub const VERSION: u32 = 0x004;
/// CUBEs \[7:0\], PEs per CUBE \[15:8\], rows per tile \[23:16\], lanes \[31:24\].
pub const GEOMETRY: u32 = 0x008;
/// Row-store rows \[15:0\], largest head dimension \[31:16\].
pub const LIMITS: u32 = 0x00C;
/// Words of shared SRAM per CUBE.
pub const SRAM_WORDS: u32 = 0x010;
/// Beats of memory behind each channel; pages beyond are bad addresses. Read and write.
pub const CHANNEL_BEATS: u32 = 0x014;
/// Bit [`CONTROL_DOORBELL`], bit [`CONTROL_RESET`]. Write only.
pub const CONTROL: u32 = 0x018;
/// Starts a launch.
pub const CONTROL_DOORBELL: u32 = 1;
/// Soft reset: clears status and every queue.
pub const CONTROL_RESET: u32 = 2;
/// Bits [`STATUS_BUSY`], [`STATUS_DONE`], [`STATUS_ERROR`].
pub const STATUS: u32 = 0x01C;
/// A launch runs.
pub const STATUS_BUSY: u32 = 1;
/// The last launch has ended.
pub const STATUS_DONE: u32 = 2;
/// It ended with a failure.
pub const STATUS_ERROR: u32 = 4;
/// Cycles without progress after which a waiting unit stops. Read and write.
pub const TIMEOUT: u32 = 0x020;
/// Value of [`TIMEOUT`] after power-up.
pub const TIMEOUT_RESET: u32 = 65_536;
/// Word address of the command list, the same in every CUBE. Read and write.
pub const COMMAND_BASE: u32 = 0x024;
/// Cycles from the doorbell to completion, bits 31:0.
pub const CYCLES_LO: u32 = 0x028;
/// Cycles from the doorbell to completion, bits 47:32.
pub const CYCLES_HI: u32 = 0x02C;
/// Counter \[7:0\], global PE index \[15:8\]. Read and write.
pub const COUNTER_SELECT: u32 = 0x030;
/// Selected counter, bits 31:0.
pub const COUNTER_LO: u32 = 0x034;
/// Selected counter, bits 47:32.
pub const COUNTER_HI: u32 = 0x038;
/// First of the command counts, one per CUBE. Read and write.
pub const COMMAND_COUNT: u32 = 0x040;
/// First of the CUBEs' status registers.
pub const CUBE_STATUS: u32 = 0x080;
/// First of the PEs' status registers.
pub const PE_STATUS: u32 = 0x100;
