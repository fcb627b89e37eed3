//! Performance counters of a PE.
//!
//! The *cycle* counters divide the cycles of a launch: each cycle from the doorbell to completion raises exactly one of them, so
//! their sum is the CYCLES register. The others count events.

macro_rules! counters {
    ($($(#[$doc:meta])* $variant:ident = $value:literal, $name:literal, $cycle:literal;)*) => {
        /// A counter of a PE; 48 bits wide, cleared by the doorbell.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Counter { $($(#[$doc])* $variant = $value),* }
        impl Counter {
            /// Every counter, by value.
            pub const ALL: &'static [Counter] = &[$(Counter::$variant),*];
            /// Name as in reports.
            pub const fn name(self) -> &'static str { match self { $(Counter::$variant => $name),* } }
            /// Whether it is one of those that divide the cycles of a launch.
            pub const fn divides_cycles(self) -> bool { match self { $(Counter::$variant => $cycle),* } }
        }
    };
}

counters! {
    /// GEMM issued for Q·Kᵀ.
    QkCycles = 0, "qk_cycles", true;
    /// GEMM issued for P·V.
    PvCycles = 1, "pv_cycles", true;
    /// GEMM had no work because a K or V tile was not there.
    WaitKvCycles = 2, "wait_kv_cycles", true;
    /// GEMM had no work because a Q tile was not there.
    WaitQCycles = 3, "wait_q_cycles", true;
    /// GEMM had no work because softmax was not done, or its pipeline drained.
    WaitSoftmaxCycles = 4, "wait_softmax_cycles", true;
    /// The row table was loaded or row state was cleared.
    RowTableCycles = 5, "row_table_cycles", true;
    /// Merging, a beat sent or received.
    MergeCycles = 6, "merge_cycles", true;
    /// Merging, waiting for the partner.
    MergeWaitCycles = 7, "merge_wait_cycles", true;
    /// Finishing rows and writing outputs.
    StoreCycles = 8, "store_cycles", true;
    /// No command to execute.
    IdleCycles = 9, "idle_cycles", true;
    /// Commands taken.
    Commands = 10, "commands", false;
    /// (page, row tile) pairs computed.
    TilesComputed = 11, "tiles_computed", false;
    /// (page, row tile) pairs skipped because no row sees a position.
    TilesSkipped = 12, "tiles_skipped", false;
    /// Beats read from the memory channel.
    ChannelBeats = 13, "channel_beats", false;
    /// Beats of Q received from the multicast reader.
    QBeats = 14, "q_beats", false;
    /// Cycles in which MATH took a score.
    MathCycles = 15, "math_cycles", false;
    /// Beats sent on IPCQ links.
    LinkBeats = 16, "link_beats", false;
    /// Merge rounds done.
    MergeRounds = 17, "merge_rounds", false;
    /// SRAM words written by the store unit.
    StoreWords = 18, "store_words", false;
}
