//! Front: decides every (page, row tile) pair in order and fetches the Q tiles of those that count.
//!
//! ```text
//!  page, row tile --> mask unit --any--> fetch request (need / skip) --> Q tile into buffer (job mod 2) --> job
//!
//!  ask --> masks --> fetch --> next row tile, or next page
//! ```
//!
//! A pair takes the mask unit's 2 x ROWS + 4 cycles and the fetch. Also fetches single Q tiles and masks for the primitive commands, and row tables.
//! A skipped pair changes nothing: a masked tile is an exact no-op on the row state.

use rust_hdl::prelude::*;

use super::decoder::Settings;

/// A request to the CUBE's multicast reader.
#[derive(LogicStruct, Copy, Clone, Debug, Default, PartialEq)]
pub struct FetchRequest {
    /// Send it to me; otherwise I skip this row tile.
    pub need: Bit,
    /// Row table instead of a Q tile.
    pub table: Bit,
    pub row_tile: Bits<16>,
    pub address: Bits<20>,
    pub words: Bits<16>,
}

/// What the front waits for.
#[derive(Copy, Clone, PartialEq, Debug, LogicState)]
pub enum FrontState {
    Idle,
    Ask,
    Masks,
    Fetch,
    EndTile,
    EndPage,
}

#[derive(LogicBlock)]
pub struct Front<const MASKS: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub clear: Signal<In, Bit>,
    pub settings: Signal<In, Settings>,
    /// SRAM words of a Q tile.
    pub tile_words: Signal<In, Bits<16>>,
    // page stream
    pub opened: Signal<In, Bits<8>>,
    pub position0: Signal<In, Bits<32>>,
    pub position1: Signal<In, Bits<32>>,
    pub may_end: Signal<In, Bit>,
    pub page_done: Signal<Out, Bit>,
    /// Jobs made so far.
    pub jobs: Signal<Out, Bits<8>>,
    /// Jobs whose scores are done: a Q buffer is free when fewer than two are beyond.
    pub qk_done_jobs: Signal<In, Bits<8>>,
    // single Q tile (primitive command)
    pub single: Signal<In, Bit>,
    pub single_row_tile: Signal<In, Bits<16>>,
    pub single_address: Signal<In, Bits<20>>,
    pub single_done: Signal<Out, Bit>,
    // mask unit
    pub mask_valid: Signal<Out, Bit>,
    pub mask_ready: Signal<In, Bit>,
    pub mask_row_tile: Signal<Out, Bits<16>>,
    pub mask_position: Signal<Out, Bits<32>>,
    pub answer_valid: Signal<In, Bit>,
    pub answer_ready: Signal<Out, Bit>,
    pub answer_masks: Signal<In, Bits<MASKS>>,
    pub answer_any: Signal<In, Bit>,
    // multicast
    pub fetch_valid: Signal<Out, Bit>,
    pub fetch: Signal<Out, FetchRequest>,
    pub fetch_done: Signal<In, Bit>,
    /// A word for this PE.
    pub word: Signal<In, Bit>,
    // Q tile write port
    pub q_write: Signal<Out, Bit>,
    pub q_write_buffer: Signal<Out, Bit>,
    pub q_write_row: Signal<Out, Bits<4>>,
    pub q_write_block: Signal<Out, Bits<4>>,
    // jobs
    pub job_push: Signal<Out, Bit>,
    pub job_page: Signal<Out, Bits<8>>,
    pub job_row_tile: Signal<Out, Bits<16>>,
    pub job_masks: Signal<Out, Bits<MASKS>>,
    pub skipped: Signal<Out, Bit>,
    pub busy: Signal<Out, Bit>,
    /// Between two pages.
    pub idle: Signal<Out, Bit>,
    state: DFF<FrontState>,
    page: DFF<Bits<8>>,
    row_tile: DFF<Bits<16>>,
    address: DFF<Bits<20>>,
    made: DFF<Bits<8>>,
    masks: DFF<Bits<MASKS>>,
    need: DFF<Bit>,
    is_single: DFF<Bit>,
    row: DFF<Bits<4>>,
    block: DFF<Bits<4>>,
    ahead: Signal<Local, Bits<8>>,
    room: Signal<Local, Bit>,
    last_block: Signal<Local, Bits<4>>,
    next_row_tile: Signal<Local, Bits<16>>,
    settle: DFF<Bit>,
}

impl<const MASKS: usize> Default for Front<MASKS> {
    fn default() -> Self {
        Self {
            clock: Default::default(),
            reset: Default::default(),
            clear: Default::default(),
            settings: Default::default(),
            tile_words: Default::default(),
            opened: Default::default(),
            position0: Default::default(),
            position1: Default::default(),
            may_end: Default::default(),
            page_done: Default::default(),
            jobs: Default::default(),
            qk_done_jobs: Default::default(),
            single: Default::default(),
            single_row_tile: Default::default(),
            single_address: Default::default(),
            single_done: Default::default(),
            mask_valid: Default::default(),
            mask_ready: Default::default(),
            mask_row_tile: Default::default(),
            mask_position: Default::default(),
            answer_valid: Default::default(),
            answer_ready: Default::default(),
            answer_masks: Default::default(),
            answer_any: Default::default(),
            fetch_valid: Default::default(),
            fetch: Default::default(),
            fetch_done: Default::default(),
            word: Default::default(),
            q_write: Default::default(),
            q_write_buffer: Default::default(),
            q_write_row: Default::default(),
            q_write_block: Default::default(),
            job_push: Default::default(),
            job_page: Default::default(),
            job_row_tile: Default::default(),
            job_masks: Default::default(),
            skipped: Default::default(),
            busy: Default::default(),
            idle: Default::default(),
            state: Default::default(),
            page: Default::default(),
            row_tile: Default::default(),
            address: Default::default(),
            made: Default::default(),
            masks: Default::default(),
            need: Default::default(),
            is_single: Default::default(),
            row: Default::default(),
            block: Default::default(),
            ahead: Default::default(),
            room: Default::default(),
            last_block: Default::default(),
            next_row_tile: Default::default(),
            settle: Default::default(),
        }
    }
}

impl<const MASKS: usize> Logic for Front<MASKS> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, page, row_tile, address, made, masks, need, is_single, row, block, settle);
        self.ahead.next = self.made.q.val() - self.qk_done_jobs.val();
        self.room.next = self.ahead.val() < 2;
        self.mask_valid.next = false;
        self.mask_row_tile.next = self.row_tile.q.val();
        self.mask_position.next = self.position0.val();
        if self.page.q.val().get_bit(0) {
            self.mask_position.next = self.position1.val();
        }
        self.answer_ready.next = false;
        self.fetch_valid.next = false;
        self.fetch.next.need = self.need.q.val();
        self.fetch.next.table = false;
        self.fetch.next.row_tile = self.row_tile.q.val();
        self.fetch.next.address = self.address.q.val();
        self.fetch.next.words = self.tile_words.val();
        self.page_done.next = false;
        self.job_push.next = false;
        self.skipped.next = false;
        self.single_done.next = false;
        self.next_row_tile.next = self.row_tile.q.val() + 1;
        self.settle.d.next = false;
        match self.state.q.val() {
            FrontState::Idle => {
                self.row_tile.d.next = 0.into();
                self.address.d.next = self.settings.val().q_address;
                self.is_single.d.next = false;
                if self.single.val() {
                    self.is_single.d.next = true;
                    self.need.d.next = true;
                    self.row_tile.d.next = self.single_row_tile.val();
                    self.address.d.next = self.single_address.val();
                    self.state.d.next = FrontState::Fetch;
                } else if self.opened.val() != self.page.q.val() {
                    self.state.d.next = FrontState::Ask;
                }
            }
            FrontState::Ask => {
                self.mask_valid.next = true;
                if self.mask_ready.val() {
                    self.state.d.next = FrontState::Masks;
                }
            }
            FrontState::Masks => {
                self.masks.d.next = self.answer_masks.val();
                self.need.d.next = self.answer_any.val();
                // A pair that counts waits for a free Q buffer.
                if self.answer_valid.val() & (self.room.val() | !self.answer_any.val()) {
                    self.answer_ready.next = true;
                    self.state.d.next = FrontState::Fetch;
                }
            }
            FrontState::Fetch => {
                self.fetch_valid.next = true;
                if self.fetch_done.val() {
                    self.settle.d.next = true;
                    self.state.d.next = FrontState::EndTile;
                }
            }
            FrontState::EndTile => {
                // One cycle for the last block to leave the converter.
                if !self.settle.q.val() {
                    if self.is_single.q.val() {
                        self.single_done.next = true;
                        self.state.d.next = FrontState::Idle;
                    } else {
                        self.job_push.next = self.need.q.val();
                        self.skipped.next = !self.need.q.val();
                        if self.need.q.val() {
                            self.made.d.next = self.made.q.val() + 1;
                        }
                        self.row_tile.d.next = self.next_row_tile.val();
                        self.address.d.next = self.address.q.val() + bit_cast::<20, 16>(self.tile_words.val());
                        if self.next_row_tile.val() == self.settings.val().row_tiles {
                            self.state.d.next = FrontState::EndPage;
                        } else {
                            self.state.d.next = FrontState::Ask;
                        }
                    }
                }
            }
            FrontState::EndPage => {
                if self.may_end.val() {
                    self.page_done.next = true;
                    self.page.d.next = self.page.q.val() + 1;
                    self.state.d.next = FrontState::Idle;
                }
            }
        }
        // ---- Q tile: row after row, block after block
        self.last_block.next = self.settings.val().head_dim.get_bits::<4>(3) - 1;
        self.q_write.next = self.word.val() & (self.state.q.val() == FrontState::Fetch);
        self.q_write_buffer.next = self.made.q.val().get_bit(0) & !self.is_single.q.val();
        self.q_write_row.next = self.row.q.val();
        self.q_write_block.next = self.block.q.val();
        if self.state.q.val() == FrontState::Fetch {
            if self.word.val() {
                self.block.d.next = self.block.q.val() + 1;
                if self.block.q.val() == self.last_block.val() {
                    self.block.d.next = 0.into();
                    self.row.d.next = self.row.q.val() + 1;
                }
            }
        } else {
            self.row.d.next = 0.into();
            self.block.d.next = 0.into();
        }
        self.jobs.next = self.made.q.val();
        self.job_page.next = self.page.q.val();
        self.job_row_tile.next = self.row_tile.q.val();
        self.job_masks.next = self.masks.q.val();
        self.idle.next = self.state.q.val() == FrontState::Idle;
        self.busy.next = (self.state.q.val() != FrontState::Idle) | (self.opened.val() != self.page.q.val());
        if self.reset.val() | self.clear.val() {
            self.state.d.next = FrontState::Idle;
            self.page.d.next = 0.into();
            self.made.d.next = 0.into();
            self.row.d.next = 0.into();
            self.block.d.next = 0.into();
        }
    }
}
