//! Merge walk: the order in which a merge round takes the beats of the row state.
//!
//! ```text
//!  groups of 8 row tiles:  m m m m m m m m   l l l l l l l l   columns of tile 0, of tile 1, ...
//! ```
//!
//! All maxima of a group come first, so that the shifts are known when the sums and the columns arrive. Sender and receiver walk alike. One step a cycle.

use rust_hdl::prelude::*;

/// Row tiles of a group, log2: the shifts of a whole group are kept.
pub const GROUP_BITS: usize = 3;

#[derive(LogicBlock)]
pub struct MergeWalk {
    pub clock: Signal<In, Clock>,
    /// Start again.
    pub begin: Signal<In, Bit>,
    pub row_tiles: Signal<In, Bits<16>>,
    /// Columns of every row tile: first, and the one after the last.
    pub first_column: Signal<In, Bits<8>>,
    pub end_column: Signal<In, Bits<8>>,
    pub step: Signal<In, Bit>,
    /// 0 m, 1 l, 2 a column, 3 the round is over.
    pub phase: Signal<Out, Bits<2>>,
    pub row_tile: Signal<Out, Bits<16>>,
    pub column: Signal<Out, Bits<8>>,
    /// First row tile of the group.
    pub group: Signal<Out, Bits<16>>,
    group_size: Constant<Bits<16>>,
    at_phase: DFF<Bits<2>>,
    at_tile: DFF<Bits<16>>,
    at_column: DFF<Bits<8>>,
    at_group: DFF<Bits<16>>,
    full_group_end: Signal<Local, Bits<16>>,
    group_end: Signal<Local, Bits<16>>,
    next_tile: Signal<Local, Bits<16>>,
    next_column: Signal<Local, Bits<8>>,
    last_tile: Signal<Local, Bit>,
    last_column: Signal<Local, Bit>,
    no_columns: Signal<Local, Bit>,
    next_group: Signal<Local, Bit>,
}

impl Default for MergeWalk {
    fn default() -> Self {
        Self {
            clock: Default::default(),
            begin: Default::default(),
            row_tiles: Default::default(),
            first_column: Default::default(),
            end_column: Default::default(),
            step: Default::default(),
            phase: Default::default(),
            row_tile: Default::default(),
            column: Default::default(),
            group: Default::default(),
            group_size: Constant::new(bits(1 << GROUP_BITS)),
            at_phase: Default::default(),
            at_tile: Default::default(),
            at_column: Default::default(),
            at_group: Default::default(),
            full_group_end: Default::default(),
            group_end: Default::default(),
            next_tile: Default::default(),
            next_column: Default::default(),
            last_tile: Default::default(),
            last_column: Default::default(),
            no_columns: Default::default(),
            next_group: Default::default(),
        }
    }
}

impl Logic for MergeWalk {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, at_phase, at_tile, at_column, at_group);
        self.phase.next = self.at_phase.q.val();
        self.row_tile.next = self.at_tile.q.val();
        self.column.next = self.at_column.q.val();
        self.group.next = self.at_group.q.val();
        self.full_group_end.next = self.at_group.q.val() + self.group_size.val();
        self.group_end.next = self.full_group_end.val();
        if self.row_tiles.val() < self.full_group_end.val() {
            self.group_end.next = self.row_tiles.val();
        }
        self.next_tile.next = self.at_tile.q.val() + 1;
        self.next_column.next = self.at_column.q.val() + 1;
        self.last_tile.next = self.next_tile.val() == self.group_end.val();
        self.last_column.next = self.next_column.val() == self.end_column.val();
        self.no_columns.next = self.first_column.val() == self.end_column.val();
        self.next_group.next = false;
        if self.step.val() {
            if self.at_phase.q.val().get_bit(1) {
                self.at_column.d.next = self.next_column.val();
                if self.last_column.val() {
                    self.at_column.d.next = self.first_column.val();
                    self.at_tile.d.next = self.next_tile.val();
                    self.next_group.next = self.last_tile.val();
                }
            } else {
                self.at_tile.d.next = self.next_tile.val();
                if self.last_tile.val() {
                    self.at_tile.d.next = self.at_group.q.val();
                    self.at_phase.d.next = self.at_phase.q.val() + 1;
                    self.next_group.next = self.at_phase.q.val().get_bit(0) & self.no_columns.val();
                }
            }
        }
        if self.next_group.val() {
            self.at_group.d.next = self.group_end.val();
            self.at_tile.d.next = self.group_end.val();
            self.at_phase.d.next = 0.into();
            if self.group_end.val() == self.row_tiles.val() {
                self.at_phase.d.next = 3.into();
            }
        }
        if self.begin.val() {
            self.at_phase.d.next = 0.into();
            self.at_tile.d.next = 0.into();
            self.at_group.d.next = 0.into();
            self.at_column.d.next = self.first_column.val();
        }
    }
}
