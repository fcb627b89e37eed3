//! Final tiles: how many row tiles have seen every page, so that their states may be merged while the others are still computed.
//!
//! ```text
//!  front (row tile of its page) --\
//!  scoreboard (oldest open job) ---+--> last page is open, row tiles that are final
//!  page stream (pages opened) ----/
//! ```
//!
//! Jobs are retired in order, so the row tiles below the oldest job of the last page are final, and without an open job those below the front. Both outputs are
//! registered: true one cycle late, never early.

use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct FinalTiles {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub row_tiles: Signal<In, Bits<16>>,
    /// Pages opened, and whether more are to come.
    pub opened: Signal<In, Bits<8>>,
    pub more: Signal<In, Bit>,
    // front
    pub front_page: Signal<In, Bits<8>>,
    pub front_row_tile: Signal<In, Bits<16>>,
    /// The front is between two pages.
    pub front_idle: Signal<In, Bit>,
    // scoreboard
    pub no_job: Signal<In, Bit>,
    pub oldest_page: Signal<In, Bits<8>>,
    pub oldest_row_tile: Signal<In, Bits<16>>,
    pub last_page: Signal<Out, Bit>,
    pub final_tiles: Signal<Out, Bits<16>>,
    ahead: Signal<Local, Bits<8>>,
    last_number: Signal<Local, Bits<8>>,
    is_last: Signal<Local, Bit>,
    last: DFF<Bit>,
    tiles: DFF<Bits<16>>,
}

impl Logic for FinalTiles {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, last, tiles);
        self.ahead.next = self.opened.val() - self.front_page.val();
        self.last_number.next = self.opened.val() - 1;
        self.is_last.next = !self.more.val() & (self.ahead.val() < 2);
        self.last.d.next = self.is_last.val();
        self.tiles.d.next = 0.into();
        if self.is_last.val() {
            if !self.no_job.val() {
                if self.oldest_page.val() == self.last_number.val() {
                    self.tiles.d.next = self.oldest_row_tile.val();
                }
            } else if !self.front_idle.val() {
                self.tiles.d.next = self.front_row_tile.val();
            } else if !self.ahead.val().any() {
                self.tiles.d.next = self.row_tiles.val();
            }
        }
        self.last_page.next = self.last.q.val();
        self.final_tiles.next = self.tiles.q.val();
        if self.reset.val() {
            self.last.d.next = false;
            self.tiles.d.next = 0.into();
        }
    }
}
