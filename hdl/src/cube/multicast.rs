//! Multicast reader: one pass over shared SRAM feeds every PE that needs the row tile.
//!
//! ```text
//!  requests of the PEs --> pick --> read words --> data, take (one bit a PE) --> done
//!
//!  idle --(every PE asks or is finished)--> pick --> serve --> idle
//! ```
//!
//! It waits until every PE of the CUBE has a request or is finished, then serves the smallest row tile that is asked for: PEs that skip it are told at once,
//! the others get its words, one a cycle, from one read each. Row tables are served when nobody asks for a Q tile. About four cycles between
//! tiles.

use rust_hdl::prelude::*;

use crate::pe::front::FetchRequest;

/// What the reader does.
#[derive(Copy, Clone, PartialEq, Debug, LogicState)]
pub enum MulticastState {
    Idle,
    Pick,
    Serve,
    Finish,
    Pause,
}

#[derive(LogicBlock)]
pub struct MulticastReader<const PES: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub fetch_valid: [Signal<In, Bit>; PES],
    pub fetch: [Signal<In, FetchRequest>; PES],
    pub fetch_finished: [Signal<In, Bit>; PES],
    /// Pulse: the PE's request is served or skipped.
    pub fetch_done: Signal<Out, Bits<PES>>,
    pub valid: Signal<Out, Bit>,
    pub take: Signal<Out, Bits<PES>>,
    pub data: Signal<Out, Bits<128>>,
    // SRAM
    pub read: Signal<Out, Bit>,
    pub read_address: Signal<Out, Bits<20>>,
    pub read_granted: Signal<In, Bit>,
    pub read_data: Signal<In, Bits<128>>,
    none: Constant<Bits<PES>>,
    state: DFF<MulticastState>,
    request: Signal<Local, FetchRequest>,
    asks: Signal<Local, Bit>,
    waiting: Signal<Local, Bit>,
    anybody: Signal<Local, Bit>,
    any_tile: Signal<Local, Bit>,
    smallest: Signal<Local, Bits<16>>,
    row_tile: DFF<Bits<16>>,
    tables: DFF<Bit>,
    is_target: Signal<Local, Bit>,
    chosen: Signal<Local, Bit>,
    first_address: Signal<Local, Bits<20>>,
    first_words: Signal<Local, Bits<16>>,
    address: DFF<Bits<20>>,
    left: DFF<Bits<16>>,
    takers: DFF<Bits<PES>>,
    picked: Signal<Local, Bits<PES>>,
    skipped: Signal<Local, Bits<PES>>,
    done: DFF<Bits<PES>>,
    reading: DFF<Bit>,
    valid1: DFF<Bit>,
    take1: DFF<Bits<PES>>,
    data1: DFF<Bits<128>>,
}

impl<const PES: usize> Default for MulticastReader<PES> {
    fn default() -> Self {
        Self {
            clock: Default::default(),
            reset: Default::default(),
            fetch_valid: std::array::from_fn(|_| Default::default()),
            fetch: std::array::from_fn(|_| Default::default()),
            fetch_finished: std::array::from_fn(|_| Default::default()),
            fetch_done: Default::default(),
            valid: Default::default(),
            take: Default::default(),
            data: Default::default(),
            read: Default::default(),
            read_address: Default::default(),
            read_granted: Default::default(),
            read_data: Default::default(),
            none: Constant::new(bits(0)),
            state: Default::default(),
            request: Default::default(),
            asks: Default::default(),
            waiting: Default::default(),
            anybody: Default::default(),
            any_tile: Default::default(),
            smallest: Default::default(),
            row_tile: Default::default(),
            tables: Default::default(),
            is_target: Default::default(),
            chosen: Default::default(),
            first_address: Default::default(),
            first_words: Default::default(),
            address: Default::default(),
            left: Default::default(),
            takers: Default::default(),
            picked: Default::default(),
            skipped: Default::default(),
            done: Default::default(),
            reading: Default::default(),
            valid1: Default::default(),
            take1: Default::default(),
            data1: Default::default(),
        }
    }
}

impl<const PES: usize> Logic for MulticastReader<PES> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, row_tile, tables, address, left, takers, done, reading, valid1, take1, data1);
        // ---- who asks for what
        self.waiting.next = false;
        self.anybody.next = false;
        self.any_tile.next = false;
        self.smallest.next = 0xFFFF.into();
        for i in 0..PES {
            self.request.next = self.fetch[i].val();
            self.asks.next = self.fetch_valid[i].val();
            self.waiting.next = self.waiting.val() | (!self.fetch_valid[i].val() & !self.fetch_finished[i].val());
            self.anybody.next = self.anybody.val() | self.asks.val();
            if self.asks.val() & !self.request.val().table {
                self.any_tile.next = true;
                if self.request.val().row_tile < self.smallest.val() {
                    self.smallest.next = self.request.val().row_tile;
                }
            }
        }
        self.chosen.next = false;
        self.first_address.next = 0.into();
        self.first_words.next = 0.into();
        self.picked.next = 0.into();
        self.skipped.next = 0.into();
        self.done.d.next = 0.into();
        self.read.next = false;
        self.read_address.next = self.address.q.val();
        self.reading.d.next = false;
        match self.state.q.val() {
            MulticastState::Idle => {
                self.row_tile.d.next = self.smallest.val();
                self.tables.d.next = !self.any_tile.val();
                if self.anybody.val() & !self.waiting.val() {
                    self.state.d.next = MulticastState::Pick;
                }
            }
            MulticastState::Pick => {
                // The first PE that needs the tile gives the address; the others with the same address take part.
                for i in 0..PES {
                    self.request.next = self.fetch[i].val();
                    self.asks.next = self.fetch_valid[i].val();
                    self.is_target.next = self.asks.val()
                        & ((self.request.val().table == self.tables.q.val())
                            & (self.tables.q.val() | (self.request.val().row_tile == self.row_tile.q.val())));
                    if self.is_target.val() {
                        if !self.request.val().need {
                            self.skipped.next = self.skipped.val().replace_bit(i, true);
                        } else if !self.chosen.val() {
                            self.chosen.next = true;
                            self.first_address.next = self.request.val().address;
                            self.first_words.next = self.request.val().words;
                            self.picked.next = self.picked.val().replace_bit(i, true);
                        } else if (self.request.val().address == self.first_address.val())
                            & (self.request.val().words == self.first_words.val())
                        {
                            self.picked.next = self.picked.val().replace_bit(i, true);
                        }
                    }
                }
                self.address.d.next = self.first_address.val();
                self.left.d.next = self.first_words.val();
                self.takers.d.next = self.picked.val();
                self.done.d.next = self.skipped.val();
                self.state.d.next = MulticastState::Pause;
                if self.chosen.val() {
                    self.state.d.next = MulticastState::Serve;
                }
            }
            MulticastState::Serve => {
                self.read.next = true;
                if self.read_granted.val() {
                    self.reading.d.next = true;
                    self.address.d.next = self.address.q.val() + 1;
                    self.left.d.next = self.left.q.val() - 1;
                    if self.left.q.val() == 1 {
                        self.state.d.next = MulticastState::Finish;
                    }
                }
            }
            MulticastState::Finish => {
                // the last word is on its way: data register, then the PE
                if !self.reading.q.val() {
                    self.done.d.next = self.takers.q.val();
                    self.state.d.next = MulticastState::Pause;
                }
            }
            MulticastState::Pause => {
                // the PEs drop their requests
                if !self.done.q.val().any() {
                    self.state.d.next = MulticastState::Idle;
                }
            }
        }
        self.valid1.d.next = self.reading.q.val();
        self.data1.d.next = self.read_data.val();
        self.take1.d.next = self.takers.q.val();
        self.valid.next = self.valid1.q.val();
        self.data.next = self.data1.q.val();
        self.take.next = self.take1.q.val();
        self.fetch_done.next = self.done.q.val();
        if self.reset.val() {
            self.state.d.next = MulticastState::Idle;
            self.done.d.next = 0.into();
            self.reading.d.next = false;
            self.valid1.d.next = false;
        }
    }
}
