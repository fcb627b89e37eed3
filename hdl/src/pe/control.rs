//! Control: executes the commands of a PE, one after the other.
//!
//! ```text
//!  queue head --> decoder (3 cycles) --> action --> engine: start ... done --> pop
//!
//!  fetch --> decode --> act --+--> clear | row table | load kv | fetch q | qk | masks, softmax | pv | merge | store --> fetch
//!                             +--> (attend) handed to the page stream --> fetch
//!                             +--> failed: stays until reset, drops commands
//! ```
//!
//! An `attend` is popped as soon as the page stream takes its run, so that the next one flows into it; a `merge` begins when the stream is at its
//! last page and follows the row tiles as they become final; every other command waits until the stream has drained. About six cycles a command beside the work itself.

use rust_hdl::prelude::*;

use super::decoder::{Action, Settings};

/// What control does.
#[derive(Copy, Clone, PartialEq, Debug, LogicState)]
pub enum ControlState {
    Fetch,
    Decode,
    Act,
    Clear,
    RowTable,
    LoadK,
    LoadV,
    LoadWait,
    FetchQ,
    Qk,
    QkWait,
    Masks,
    Softmax,
    SoftmaxWait,
    Pv,
    PvWait,
    Merge,
    Store,
    Failed,
}

#[derive(LogicBlock, Default)]
pub struct Control {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub start: Signal<In, Bit>,
    pub abort: Signal<In, Bit>,
    // commands
    pub head_valid: Signal<In, Bit>,
    pub pop: Signal<Out, Bit>,
    pub action: Signal<In, Action>,
    pub decoded: Signal<In, Settings>,
    pub code: Signal<In, Bits<8>>,
    pub settings: Signal<Out, Settings>,
    /// The kernel starts: every engine forgets the last one.
    pub clear: Signal<Out, Bit>,
    /// A failure: every engine stops.
    pub stop: Signal<Out, Bit>,
    // page stream
    pub run_valid: Signal<Out, Bit>,
    pub run_ready: Signal<In, Bit>,
    /// Pages of an `attend` are open, and the index of the oldest one's command.
    pub streaming: Signal<In, Bit>,
    pub stream_index: Signal<In, Bits<24>>,
    /// Index of the command that is being executed.
    pub command_index: Signal<Out, Bits<24>>,
    /// No page, job or operation is open.
    pub drained: Signal<In, Bit>,
    /// The last page of the stream is being worked at: a merge may follow its row tiles.
    pub last_page: Signal<In, Bit>,
    // primitive commands
    pub manual: Signal<Out, Bit>,
    pub manual_load: Signal<Out, Bit>,
    pub manual_load_v: Signal<Out, Bit>,
    pub load_ready: Signal<In, Bit>,
    pub v_done: Signal<In, Bit>,
    pub manual_fetch: Signal<Out, Bit>,
    pub manual_fetch_done: Signal<In, Bit>,
    pub manual_gemm: Signal<Out, Bit>,
    pub manual_gemm_pv: Signal<Out, Bit>,
    pub gemm_ready: Signal<In, Bit>,
    pub qk_done: Signal<In, Bit>,
    pub pv_done: Signal<In, Bit>,
    pub manual_mask: Signal<Out, Bit>,
    pub mask_ready: Signal<In, Bit>,
    pub answer_valid: Signal<In, Bit>,
    pub manual_softmax: Signal<Out, Bit>,
    pub softmax_ready: Signal<In, Bit>,
    pub softmax_done: Signal<In, Bit>,
    /// First position of the page that `load_kv` loaded.
    pub manual_position: Signal<Out, Bits<32>>,
    // row table
    pub table_fetch: Signal<Out, Bit>,
    pub table_done: Signal<In, Bit>,
    // merge and store
    pub merge_start: Signal<Out, Bit>,
    pub merge_busy: Signal<In, Bit>,
    pub store_start: Signal<Out, Bit>,
    pub store_busy: Signal<In, Bit>,
    // watchdog
    pub expired: Signal<In, Bit>,
    pub expired_code: Signal<In, Bits<8>>,
    // status
    pub status: Signal<Out, Bits<32>>,
    pub failed: Signal<Out, Bit>,
    /// Nothing to do and nothing known to come.
    pub resting: Signal<Out, Bit>,
    /// Whatever the front does, this command asks for no Q tile.
    pub fetches_nothing: Signal<Out, Bit>,
    pub in_row_table: Signal<Out, Bit>,
    pub in_load: Signal<Out, Bit>,
    state: DFF<ControlState>,
    wait: DFF<Bits<2>>,
    current: DFF<Settings>,
    position: DFF<Bits<32>>,
    index: DFF<Bits<24>>,
    started: DFF<Bit>,
    status_code: DFF<Bits<8>>,
    status_index: DFF<Bits<24>>,
    stopping: DFF<Bit>,
    popped: Signal<Local, Bit>,
    fails: Signal<Local, Bit>,
    fail_code: Signal<Local, Bits<8>>,
}

impl Logic for Control {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, wait, current, position, index, started, status_code, status_index, stopping);
        self.settings.next = self.current.q.val();
        self.manual_position.next = self.position.q.val();
        self.command_index.next = self.index.q.val();
        self.popped.next = false;
        self.fails.next = false;
        self.fail_code.next = self.code.val();
        self.clear.next = false;
        self.run_valid.next = false;
        self.manual.next = false;
        self.manual_load.next = false;
        self.manual_load_v.next = false;
        self.manual_fetch.next = false;
        self.manual_gemm.next = false;
        self.manual_gemm_pv.next = false;
        self.manual_mask.next = false;
        self.manual_softmax.next = false;
        self.table_fetch.next = false;
        self.merge_start.next = false;
        self.store_start.next = false;
        self.resting.next = false;
        self.fetches_nothing.next = false;
        self.in_row_table.next = false;
        self.in_load.next = false;
        self.started.d.next = false;
        match self.state.q.val() {
            ControlState::Fetch => {
                self.wait.d.next = 0.into();
                self.resting.next = !self.head_valid.val();
                self.fetches_nothing.next = !self.head_valid.val();
                if self.head_valid.val() {
                    self.state.d.next = ControlState::Decode;
                }
            }
            ControlState::Decode => {
                self.wait.d.next = self.wait.q.val() + 1;
                if self.wait.q.val().all() {
                    self.state.d.next = ControlState::Act;
                }
            }
            ControlState::Act => {
                self.fetches_nothing.next =
                    !((self.action.val().attend | self.action.val().load_rows) | self.action.val().fetch_q) | self.code.val().any();
                if self.code.val().any() {
                    self.fails.next = true;
                } else if self.action.val().attend {
                    self.run_valid.next = true;
                    if self.run_ready.val() {
                        self.popped.next = true;
                        self.state.d.next = ControlState::Fetch;
                    }
                } else if self.action.val().merge {
                    if self.drained.val() | self.last_page.val() {
                        self.merge_start.next = true;
                        self.started.d.next = true;
                        self.state.d.next = ControlState::Merge;
                    }
                } else if self.drained.val() {
                    if self.action.val().configure {
                        self.current.d.next = self.decoded.val();
                        self.state.d.next = ControlState::Clear;
                    }
                    if self.action.val().load_rows {
                        self.state.d.next = ControlState::RowTable;
                    }
                    if self.action.val().load_kv {
                        self.position.d.next = self.action.val().position;
                        self.state.d.next = ControlState::LoadK;
                    }
                    if self.action.val().fetch_q {
                        self.state.d.next = ControlState::FetchQ;
                    }
                    if self.action.val().qk {
                        self.state.d.next = ControlState::Qk;
                    }
                    if self.action.val().softmax {
                        self.state.d.next = ControlState::Masks;
                    }
                    if self.action.val().pv {
                        self.state.d.next = ControlState::Pv;
                    }
                    if self.action.val().store {
                        self.store_start.next = true;
                        self.started.d.next = true;
                        self.state.d.next = ControlState::Store;
                    }
                }
            }
            ControlState::Clear => {
                self.in_row_table.next = true;
                self.clear.next = true;
                self.popped.next = true;
                self.state.d.next = ControlState::Fetch;
            }
            ControlState::RowTable => {
                self.in_row_table.next = true;
                self.table_fetch.next = true;
                if self.table_done.val() {
                    self.popped.next = true;
                    self.state.d.next = ControlState::Fetch;
                }
            }
            ControlState::LoadK => {
                self.fetches_nothing.next = true;
                self.in_load.next = true;
                self.manual.next = true;
                self.manual_load.next = true;
                if self.load_ready.val() {
                    self.state.d.next = ControlState::LoadV;
                }
            }
            ControlState::LoadV => {
                self.fetches_nothing.next = true;
                self.in_load.next = true;
                self.manual.next = true;
                self.manual_load.next = true;
                self.manual_load_v.next = true;
                if self.load_ready.val() {
                    self.state.d.next = ControlState::LoadWait;
                }
            }
            ControlState::LoadWait => {
                self.fetches_nothing.next = true;
                self.in_load.next = true;
                self.manual.next = true;
                if self.v_done.val() {
                    self.popped.next = true;
                    self.state.d.next = ControlState::Fetch;
                }
            }
            ControlState::FetchQ => {
                self.manual.next = true;
                self.manual_fetch.next = true;
                if self.manual_fetch_done.val() {
                    self.popped.next = true;
                    self.state.d.next = ControlState::Fetch;
                }
            }
            ControlState::Qk => {
                self.fetches_nothing.next = true;
                self.manual.next = true;
                self.manual_gemm.next = true;
                if self.gemm_ready.val() {
                    self.state.d.next = ControlState::QkWait;
                }
            }
            ControlState::QkWait => {
                self.fetches_nothing.next = true;
                self.manual.next = true;
                if self.qk_done.val() {
                    self.popped.next = true;
                    self.state.d.next = ControlState::Fetch;
                }
            }
            ControlState::Masks => {
                self.fetches_nothing.next = true;
                self.manual.next = true;
                self.manual_mask.next = true;
                if self.mask_ready.val() {
                    self.state.d.next = ControlState::Softmax;
                }
            }
            ControlState::Softmax => {
                self.fetches_nothing.next = true;
                self.manual.next = true;
                self.manual_softmax.next = self.answer_valid.val();
                if self.answer_valid.val() & self.softmax_ready.val() {
                    self.state.d.next = ControlState::SoftmaxWait;
                }
            }
            ControlState::SoftmaxWait => {
                self.fetches_nothing.next = true;
                self.manual.next = true;
                if self.softmax_done.val() {
                    self.popped.next = true;
                    self.state.d.next = ControlState::Fetch;
                }
            }
            ControlState::Pv => {
                self.fetches_nothing.next = true;
                self.manual.next = true;
                self.manual_gemm.next = true;
                self.manual_gemm_pv.next = true;
                if self.gemm_ready.val() {
                    self.state.d.next = ControlState::PvWait;
                }
            }
            ControlState::PvWait => {
                self.fetches_nothing.next = true;
                self.manual.next = true;
                if self.pv_done.val() {
                    self.popped.next = true;
                    self.state.d.next = ControlState::Fetch;
                }
            }
            ControlState::Merge => {
                self.fetches_nothing.next = true;
                if !self.merge_busy.val() & !self.started.q.val() {
                    self.popped.next = true;
                    self.state.d.next = ControlState::Fetch;
                }
            }
            ControlState::Store => {
                self.fetches_nothing.next = true;
                if !self.store_busy.val() & !self.started.q.val() {
                    self.popped.next = true;
                    self.state.d.next = ControlState::Fetch;
                }
            }
            ControlState::Failed => {
                self.fetches_nothing.next = true;
                self.resting.next = true;
                self.popped.next = true;
            }
        }
        self.pop.next = self.popped.val();
        if self.popped.val() & (self.state.q.val() != ControlState::Failed) {
            self.index.d.next = self.index.q.val() + 1;
        }
        // ---- failures: the first one is kept
        self.stopping.d.next = false;
        if self.state.q.val() != ControlState::Failed {
            if self.expired.val() {
                self.fails.next = true;
                self.fail_code.next = self.expired_code.val();
            }
            if self.fails.val() {
                self.status_code.d.next = self.fail_code.val();
                self.status_index.d.next = self.index.q.val();
                if self.expired.val() & self.streaming.val() {
                    self.status_index.d.next = self.stream_index.val();
                }
                self.state.d.next = ControlState::Failed;
                self.stopping.d.next = true;
            } else if self.abort.val() {
                if !(self.resting.val() & self.drained.val()) {
                    self.status_code.d.next = 10.into();
                    self.status_index.d.next = self.index.q.val();
                }
                self.state.d.next = ControlState::Failed;
                self.stopping.d.next = true;
            }
        }
        self.stop.next = self.stopping.q.val();
        self.failed.next = self.status_code.q.val().any() & (self.status_code.q.val() != 10);
        self.status.next = (bit_cast::<32, 24>(self.status_index.q.val()) << 8) | bit_cast::<32, 8>(self.status_code.q.val());
        if self.start.val() {
            self.index.d.next = 0.into();
            self.current.d.next.configured = false;
        }
        if self.reset.val() {
            self.state.d.next = ControlState::Fetch;
            self.index.d.next = 0.into();
            self.status_code.d.next = 0.into();
            self.status_index.d.next = 0.into();
            self.current.d.next.configured = false;
            self.stopping.d.next = false;
        }
    }
}
