//! Scoreboard: dispatches the jobs to the GEMM and MATH engines as their operands become ready.
//!
//! ```text
//!  job --> [ring of 4] --> Q·Kᵀ --> softmax --> P·V
//! ```
//!
//! The order of the GEMM is QK(0), QK(1), PV(0), QK(2), PV(1), ...: at most two jobs have scores but no output, so the softmax of one job has the time
//! of the next one's Q·Kᵀ. When the next job is not ready, P·V does not wait for it.
//!
//! Job n uses Q, score and P buffer n mod 2; page p uses K and V buffer p mod 2.

use rust_hdl::prelude::*;

#[derive(LogicBlock)]
pub struct Scoreboard<const MASKS: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub clear: Signal<In, Bit>,
    // jobs
    pub job_push: Signal<In, Bit>,
    pub job_page: Signal<In, Bits<8>>,
    pub job_row_tile: Signal<In, Bits<16>>,
    pub job_masks: Signal<In, Bits<MASKS>>,
    pub k_loaded: Signal<In, Bits<8>>,
    pub v_loaded: Signal<In, Bits<8>>,
    pub qk_done_jobs: Signal<Out, Bits<8>>,
    pub pv_done_jobs: Signal<Out, Bits<8>>,
    // engines
    pub gemm_valid: Signal<Out, Bit>,
    pub gemm_ready: Signal<In, Bit>,
    pub gemm_pv: Signal<Out, Bit>,
    pub gemm_kv_buffer: Signal<Out, Bit>,
    pub gemm_buffer: Signal<Out, Bit>,
    pub gemm_row_tile: Signal<Out, Bits<16>>,
    pub qk_done: Signal<In, Bit>,
    pub pv_done: Signal<In, Bit>,
    pub softmax_valid: Signal<Out, Bit>,
    pub softmax_ready: Signal<In, Bit>,
    pub softmax_buffer: Signal<Out, Bit>,
    pub softmax_row_tile: Signal<Out, Bits<16>>,
    pub softmax_masks: Signal<Out, Bits<MASKS>>,
    pub softmax_done: Signal<In, Bit>,
    // why the GEMM has nothing to do
    pub wait_kv: Signal<Out, Bit>,
    pub wait_softmax: Signal<Out, Bit>,
    /// Every job is accumulated.
    pub drained: Signal<Out, Bit>,
    /// The oldest job that is not accumulated.
    pub oldest_page: Signal<Out, Bits<8>>,
    pub oldest_row_tile: Signal<Out, Bits<16>>,
    page: [DFF<Bits<8>>; 4],
    row_tile: [DFF<Bits<16>>; 4],
    masks: [DFF<Bits<MASKS>>; 4],
    pushed: DFF<Bits<8>>,
    qk_issued: DFF<Bits<8>>,
    qk_finished: DFF<Bits<8>>,
    softmax_issued: DFF<Bits<8>>,
    softmax_finished: DFF<Bits<8>>,
    pv_issued: DFF<Bits<8>>,
    pv_finished: DFF<Bits<8>>,
    push_slot: Signal<Local, Bits<2>>,
    qk_slot: Signal<Local, Bits<2>>,
    softmax_slot: Signal<Local, Bits<2>>,
    pv_slot: Signal<Local, Bits<2>>,
    oldest_slot: Signal<Local, Bits<2>>,
    qk_page: Signal<Local, Bits<8>>,
    qk_row_tile: Signal<Local, Bits<16>>,
    pv_page: Signal<Local, Bits<8>>,
    pv_row_tile: Signal<Local, Bits<16>>,
    chosen_masks: Signal<Local, Bits<MASKS>>,
    chosen_row_tile: Signal<Local, Bits<16>>,
    between: Signal<Local, Bits<8>>,
    k_margin: Signal<Local, Bits<8>>,
    v_margin: Signal<Local, Bits<8>>,
    qk_exists: Signal<Local, Bit>,
    k_here: Signal<Local, Bit>,
    v_here: Signal<Local, Bit>,
    qk_ready: Signal<Local, Bit>,
    pv_ready: Signal<Local, Bit>,
    softmax_ready_job: Signal<Local, Bit>,
}

impl<const MASKS: usize> Default for Scoreboard<MASKS> {
    fn default() -> Self {
        Self {
            clock: Default::default(),
            reset: Default::default(),
            clear: Default::default(),
            job_push: Default::default(),
            job_page: Default::default(),
            job_row_tile: Default::default(),
            job_masks: Default::default(),
            k_loaded: Default::default(),
            v_loaded: Default::default(),
            qk_done_jobs: Default::default(),
            pv_done_jobs: Default::default(),
            gemm_valid: Default::default(),
            gemm_ready: Default::default(),
            gemm_pv: Default::default(),
            gemm_kv_buffer: Default::default(),
            gemm_buffer: Default::default(),
            gemm_row_tile: Default::default(),
            qk_done: Default::default(),
            pv_done: Default::default(),
            softmax_valid: Default::default(),
            softmax_ready: Default::default(),
            softmax_buffer: Default::default(),
            softmax_row_tile: Default::default(),
            softmax_masks: Default::default(),
            softmax_done: Default::default(),
            wait_kv: Default::default(),
            wait_softmax: Default::default(),
            drained: Default::default(),
            oldest_page: Default::default(),
            oldest_row_tile: Default::default(),
            page: Default::default(),
            row_tile: Default::default(),
            masks: Default::default(),
            pushed: Default::default(),
            qk_issued: Default::default(),
            qk_finished: Default::default(),
            softmax_issued: Default::default(),
            softmax_finished: Default::default(),
            pv_issued: Default::default(),
            pv_finished: Default::default(),
            push_slot: Default::default(),
            qk_slot: Default::default(),
            softmax_slot: Default::default(),
            pv_slot: Default::default(),
            oldest_slot: Default::default(),
            qk_page: Default::default(),
            qk_row_tile: Default::default(),
            pv_page: Default::default(),
            pv_row_tile: Default::default(),
            chosen_masks: Default::default(),
            chosen_row_tile: Default::default(),
            between: Default::default(),
            k_margin: Default::default(),
            v_margin: Default::default(),
            qk_exists: Default::default(),
            k_here: Default::default(),
            v_here: Default::default(),
            qk_ready: Default::default(),
            pv_ready: Default::default(),
            softmax_ready_job: Default::default(),
        }
    }
}

impl<const MASKS: usize> Logic for Scoreboard<MASKS> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, pushed, qk_issued, qk_finished, softmax_issued, softmax_finished, pv_issued, pv_finished);
        self.push_slot.next = self.pushed.q.val().get_bits::<2>(0);
        self.qk_slot.next = self.qk_issued.q.val().get_bits::<2>(0);
        self.softmax_slot.next = self.softmax_issued.q.val().get_bits::<2>(0);
        self.pv_slot.next = self.pv_issued.q.val().get_bits::<2>(0);
        self.oldest_slot.next = self.pv_finished.q.val().get_bits::<2>(0);
        self.oldest_page.next = 0.into();
        self.oldest_row_tile.next = 0.into();
        self.qk_page.next = 0.into();
        self.qk_row_tile.next = 0.into();
        self.pv_page.next = 0.into();
        self.pv_row_tile.next = 0.into();
        self.chosen_masks.next = 0.into();
        self.chosen_row_tile.next = 0.into();
        for i in 0..4 {
            self.page[i].clock.next = self.clock.val();
            self.page[i].d.next = self.page[i].q.val();
            self.row_tile[i].clock.next = self.clock.val();
            self.row_tile[i].d.next = self.row_tile[i].q.val();
            self.masks[i].clock.next = self.clock.val();
            self.masks[i].d.next = self.masks[i].q.val();
            if self.job_push.val() & (self.push_slot.val() == i.to_bits()) {
                self.page[i].d.next = self.job_page.val();
                self.row_tile[i].d.next = self.job_row_tile.val();
                self.masks[i].d.next = self.job_masks.val();
            }
            if self.qk_slot.val() == i.to_bits() {
                self.qk_page.next = self.page[i].q.val();
                self.qk_row_tile.next = self.row_tile[i].q.val();
            }
            if self.pv_slot.val() == i.to_bits() {
                self.pv_page.next = self.page[i].q.val();
                self.pv_row_tile.next = self.row_tile[i].q.val();
            }
            if self.oldest_slot.val() == i.to_bits() {
                self.oldest_page.next = self.page[i].q.val();
                self.oldest_row_tile.next = self.row_tile[i].q.val();
            }
            if self.softmax_slot.val() == i.to_bits() {
                self.chosen_masks.next = self.masks[i].q.val();
                self.chosen_row_tile.next = self.row_tile[i].q.val();
            }
        }
        if self.job_push.val() {
            self.pushed.d.next = self.pushed.q.val() + 1;
        }
        // ---- readiness: a page is there when more pages are loaded than its number
        self.between.next = self.qk_issued.q.val() - self.pv_issued.q.val();
        self.qk_exists.next = self.pushed.q.val() != self.qk_issued.q.val();
        self.k_margin.next = (self.k_loaded.val() - self.qk_page.val()) - 1;
        self.v_margin.next = (self.v_loaded.val() - self.pv_page.val()) - 1;
        self.k_here.next = !self.k_margin.val().get_bit(7);
        self.v_here.next = !self.v_margin.val().get_bit(7);
        self.qk_ready.next = (self.qk_exists.val() & self.k_here.val()) & (self.between.val() < 2);
        self.pv_ready.next = (self.softmax_finished.q.val() != self.pv_issued.q.val()) & self.v_here.val();
        self.softmax_ready_job.next = self.qk_finished.q.val() != self.softmax_issued.q.val();
        // ---- GEMM
        self.gemm_valid.next = self.qk_ready.val() | self.pv_ready.val();
        self.gemm_pv.next = !self.qk_ready.val();
        self.gemm_kv_buffer.next = self.pv_page.val().get_bit(0);
        self.gemm_buffer.next = self.pv_issued.q.val().get_bit(0);
        self.gemm_row_tile.next = self.pv_row_tile.val();
        if self.qk_ready.val() {
            self.gemm_kv_buffer.next = self.qk_page.val().get_bit(0);
            self.gemm_buffer.next = self.qk_issued.q.val().get_bit(0);
            self.gemm_row_tile.next = self.qk_row_tile.val();
        }
        if self.gemm_ready.val() {
            if self.qk_ready.val() {
                self.qk_issued.d.next = self.qk_issued.q.val() + 1;
            } else if self.pv_ready.val() {
                self.pv_issued.d.next = self.pv_issued.q.val() + 1;
            }
        }
        if self.qk_done.val() {
            self.qk_finished.d.next = self.qk_finished.q.val() + 1;
        }
        if self.pv_done.val() {
            self.pv_finished.d.next = self.pv_finished.q.val() + 1;
        }
        // ---- MATH
        self.softmax_valid.next = self.softmax_ready_job.val();
        self.softmax_buffer.next = self.softmax_issued.q.val().get_bit(0);
        self.softmax_row_tile.next = self.chosen_row_tile.val();
        self.softmax_masks.next = self.chosen_masks.val();
        if self.softmax_ready_job.val() & self.softmax_ready.val() {
            self.softmax_issued.d.next = self.softmax_issued.q.val() + 1;
        }
        if self.softmax_done.val() {
            self.softmax_finished.d.next = self.softmax_finished.q.val() + 1;
        }
        self.qk_done_jobs.next = self.qk_finished.q.val();
        self.pv_done_jobs.next = self.pv_finished.q.val();
        self.wait_kv.next =
            (self.qk_exists.val() & !self.k_here.val()) | ((self.softmax_finished.q.val() != self.pv_issued.q.val()) & !self.v_here.val());
        self.wait_softmax.next = self.between.val().any();
        self.drained.next = self.pushed.q.val() == self.pv_finished.q.val();
        if self.reset.val() | self.clear.val() {
            self.pushed.d.next = 0.into();
            self.qk_issued.d.next = 0.into();
            self.qk_finished.d.next = 0.into();
            self.softmax_issued.d.next = 0.into();
            self.softmax_finished.d.next = 0.into();
            self.pv_issued.d.next = 0.into();
            self.pv_finished.d.next = 0.into();
        }
    }
}
