//! Page stream: turns runs of pages into DMA loads, and keeps account of the K and V tile buffers.
//!
//! ```text
//!  run (page, position, pages, stride) --> page 0, 1, 2, ... --> loads K(0) K(1) V(0) K(2) V(1) ... --> DMA
//!                                              \--> position of the page for the mask unit
//!  front done, jobs, qk done, pv done --> buffers released in page order
//! ```
//!
//! Loads come in the order in which the GEMM engine needs them: a K buffer that is free is filled before a V buffer, so that the next page's scores never
//! wait behind values that are needed only after them. Page p uses K buffer and V buffer p mod 2. A K buffer is free again when every job of its page has its scores, a V buffer when every job has been
//! accumulated. Pages and jobs are numbered from 0 modulo 256 since `clear`; fewer than 128 are open at a time, so differences are exact.
//!
//! One load a cycle can be asked for; the next run is taken while the last pages of the one before are still at work.

use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct PageStream {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub clear: Signal<In, Bit>,
    /// Beats of a page's half: 2d.
    pub half_beats: Signal<In, Bits<16>>,
    // runs
    pub run_valid: Signal<In, Bit>,
    pub run_ready: Signal<Out, Bit>,
    pub run_page: Signal<In, Bits<32>>,
    pub run_position: Signal<In, Bits<32>>,
    pub run_pages: Signal<In, Bits<16>>,
    /// Positions from one page to the next.
    pub run_step: Signal<In, Bits<32>>,
    /// Index of the run's command.
    pub run_index: Signal<In, Bits<24>>,
    // loads
    pub load_valid: Signal<Out, Bit>,
    pub load_ready: Signal<In, Bit>,
    pub load_v: Signal<Out, Bit>,
    pub load_buffer: Signal<Out, Bit>,
    pub load_address: Signal<Out, Bits<32>>,
    pub k_done: Signal<In, Bit>,
    pub v_done: Signal<In, Bit>,
    // front
    /// Pages that have been opened, and their positions by parity.
    pub opened: Signal<Out, Bits<8>>,
    pub position0: Signal<Out, Bits<32>>,
    pub position1: Signal<Out, Bits<32>>,
    /// Pulse: every row tile of the front's page has been decided; `jobs` is the number of jobs up to it.
    pub front_done: Signal<In, Bit>,
    pub jobs: Signal<In, Bits<8>>,
    /// The front may finish another page (the account of two pages before it is closed).
    pub front_may_end: Signal<Out, Bit>,
    // GEMM
    pub qk_done_jobs: Signal<In, Bits<8>>,
    pub pv_done_jobs: Signal<In, Bits<8>>,
    pub k_loaded: Signal<Out, Bits<8>>,
    pub v_loaded: Signal<Out, Bits<8>>,
    /// Pages of the current run are still to be opened.
    pub more: Signal<Out, Bit>,
    /// Index of the command whose page is the oldest that is open.
    pub oldest_index: Signal<Out, Bits<24>>,
    /// Nothing is open: every page of every run has been released.
    pub drained: Signal<Out, Bit>,
    // current run
    pages_left: DFF<Bits<16>>,
    page: DFF<Bits<32>>,
    position: DFF<Bits<32>>,
    step: DFF<Bits<32>>,
    index: DFF<Bits<24>>,
    // commands of the open pages, at most four
    indexes: [DFF<Bits<24>>; 4],
    open_place: Signal<Local, Bits<2>>,
    oldest_place: Signal<Local, Bits<2>>,
    // V of the pages whose V is still to be asked for, by parity
    even_v_address: DFF<Bits<32>>,
    odd_v_address: DFF<Bits<32>>,
    v_lag: Signal<Local, Bits<8>>,
    page_v_address: Signal<Local, Bits<32>>,
    opened_pages: DFF<Bits<8>>,
    v_asked: DFF<Bits<8>>,
    k_loaded_pages: DFF<Bits<8>>,
    v_loaded_pages: DFF<Bits<8>>,
    front_pages: DFF<Bits<8>>,
    k_released: DFF<Bits<8>>,
    v_released: DFF<Bits<8>>,
    even_position: DFF<Bits<32>>,
    odd_position: DFF<Bits<32>>,
    even_boundary: DFF<Bits<8>>,
    odd_boundary: DFF<Bits<8>>,
    k_open: Signal<Local, Bits<8>>,
    v_open: Signal<Local, Bits<8>>,
    front_open: Signal<Local, Bits<8>>,
    k_wants: Signal<Local, Bit>,
    v_wants: Signal<Local, Bit>,
    k_boundary: Signal<Local, Bits<8>>,
    v_boundary: Signal<Local, Bits<8>>,
    k_margin: Signal<Local, Bits<8>>,
    v_margin: Signal<Local, Bits<8>>,
    run_free: Signal<Local, Bit>,
}

impl Logic for PageStream {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            pages_left,
            page,
            position,
            step,
            index,
            even_v_address,
            odd_v_address,
            opened_pages,
            v_asked,
            k_loaded_pages,
            v_loaded_pages,
            front_pages,
            k_released,
            v_released,
            even_position,
            odd_position,
            even_boundary,
            odd_boundary
        );
        self.run_free.next = !self.pages_left.q.val().any();
        self.run_ready.next = self.run_free.val();
        // ---- loads: K opens a page, its V follows
        self.k_open.next = self.opened_pages.q.val() - self.k_released.q.val();
        self.v_open.next = self.v_asked.q.val() - self.v_released.q.val();
        self.v_lag.next = self.opened_pages.q.val() - self.v_asked.q.val();
        self.k_wants.next = (self.pages_left.q.val().any() & (self.k_open.val() < 2)) & (self.v_lag.val() < 2);
        self.v_wants.next = self.v_lag.val().any() & (self.v_open.val() < 2);
        self.load_valid.next = self.v_wants.val() | self.k_wants.val();
        self.load_v.next = !self.k_wants.val();
        self.load_buffer.next = self.opened_pages.q.val().get_bit(0);
        self.load_address.next = self.page.q.val();
        if !self.k_wants.val() {
            self.load_buffer.next = self.v_asked.q.val().get_bit(0);
            self.load_address.next = self.even_v_address.q.val();
            if self.v_asked.q.val().get_bit(0) {
                self.load_address.next = self.odd_v_address.q.val();
            }
        }
        self.page_v_address.next = self.page.q.val() + bit_cast::<32, 16>(self.half_beats.val());
        self.open_place.next = self.opened_pages.q.val().get_bits::<2>(0);
        self.oldest_place.next = self.v_released.q.val().get_bits::<2>(0);
        self.oldest_index.next = self.index.q.val();
        for i in 0..4 {
            self.indexes[i].clock.next = self.clock.val();
            self.indexes[i].d.next = self.indexes[i].q.val();
            if (self.load_ready.val() & self.k_wants.val()) & (self.open_place.val() == i.to_bits()) {
                self.indexes[i].d.next = self.index.q.val();
            }
            if (self.opened_pages.q.val() != self.v_released.q.val()) & (self.oldest_place.val() == i.to_bits()) {
                self.oldest_index.next = self.indexes[i].q.val();
            }
        }
        if self.load_ready.val() {
            if self.k_wants.val() {
                self.page.d.next = self.page_v_address.val() + bit_cast::<32, 16>(self.half_beats.val());
                self.position.d.next = self.position.q.val() + self.step.q.val();
                self.pages_left.d.next = self.pages_left.q.val() - 1;
                self.opened_pages.d.next = self.opened_pages.q.val() + 1;
                if self.opened_pages.q.val().get_bit(0) {
                    self.odd_position.d.next = self.position.q.val();
                    self.odd_v_address.d.next = self.page_v_address.val();
                } else {
                    self.even_position.d.next = self.position.q.val();
                    self.even_v_address.d.next = self.page_v_address.val();
                }
            } else if self.v_wants.val() {
                self.v_asked.d.next = self.v_asked.q.val() + 1;
            }
        }
        if self.run_valid.val() & self.run_free.val() {
            self.pages_left.d.next = self.run_pages.val();
            self.page.d.next = self.run_page.val();
            self.position.d.next = self.run_position.val();
            self.step.d.next = self.run_step.val();
            self.index.d.next = self.run_index.val();
        }
        if self.k_done.val() {
            self.k_loaded_pages.d.next = self.k_loaded_pages.q.val() + 1;
        }
        if self.v_done.val() {
            self.v_loaded_pages.d.next = self.v_loaded_pages.q.val() + 1;
        }
        // ---- releases, in page order
        self.front_open.next = self.front_pages.q.val() - self.v_released.q.val();
        self.front_may_end.next = self.front_open.val() < 2;
        if self.front_done.val() {
            self.front_pages.d.next = self.front_pages.q.val() + 1;
            if self.front_pages.q.val().get_bit(0) {
                self.odd_boundary.d.next = self.jobs.val();
            } else {
                self.even_boundary.d.next = self.jobs.val();
            }
        }
        self.k_boundary.next = self.even_boundary.q.val();
        if self.k_released.q.val().get_bit(0) {
            self.k_boundary.next = self.odd_boundary.q.val();
        }
        self.v_boundary.next = self.even_boundary.q.val();
        if self.v_released.q.val().get_bit(0) {
            self.v_boundary.next = self.odd_boundary.q.val();
        }
        self.k_margin.next = self.qk_done_jobs.val() - self.k_boundary.val();
        self.v_margin.next = self.pv_done_jobs.val() - self.v_boundary.val();
        if ((self.front_pages.q.val() != self.k_released.q.val()) & (self.k_loaded_pages.q.val() != self.k_released.q.val()))
            & !self.k_margin.val().get_bit(7)
        {
            self.k_released.d.next = self.k_released.q.val() + 1;
        }
        if ((self.front_pages.q.val() != self.v_released.q.val()) & (self.v_loaded_pages.q.val() != self.v_released.q.val()))
            & !self.v_margin.val().get_bit(7)
        {
            self.v_released.d.next = self.v_released.q.val() + 1;
        }
        self.opened.next = self.opened_pages.q.val();
        self.position0.next = self.even_position.q.val();
        self.position1.next = self.odd_position.q.val();
        self.k_loaded.next = self.k_loaded_pages.q.val();
        self.v_loaded.next = self.v_loaded_pages.q.val();
        self.more.next = self.pages_left.q.val().any();
        self.drained.next = self.run_free.val()
            & ((self.k_released.q.val() == self.opened_pages.q.val()) & (self.v_released.q.val() == self.opened_pages.q.val()));
        if self.reset.val() | self.clear.val() {
            self.pages_left.d.next = 0.into();
            self.opened_pages.d.next = 0.into();
            self.v_asked.d.next = 0.into();
            self.k_loaded_pages.d.next = 0.into();
            self.v_loaded_pages.d.next = 0.into();
            self.front_pages.d.next = 0.into();
            self.k_released.d.next = 0.into();
            self.v_released.d.next = 0.into();
        }
    }
}
