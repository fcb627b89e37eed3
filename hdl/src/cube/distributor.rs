//! Distributor: fetches the command list from shared SRAM and hands every command to the PEs of its mask.
//!
//! ```text
//!  start, base, count --> read --> word --> deliver (all PEs of the mask have room) --> [wait until they are idle] --> next
//!
//!  idle --> fetch --> word --> deliver --> (settle --> wait) --> fetch ... --> ended
//! ```
//!
//! Three cycles a command beside the waiting. A command for no PE, a list that leaves SRAM, and PEs that neither take a command nor do anything within the
//! bound stop it with a status code.

use rust_hdl::prelude::*;

use crate::pe::watchdog::Watchdog;

/// What the distributor does.
#[derive(Copy, Clone, PartialEq, Debug, LogicState)]
pub enum DistributorState {
    Idle,
    Fetch,
    Word,
    Deliver,
    Settle,
    Wait,
    Ended,
    Failed,
}

#[derive(LogicBlock)]
pub struct Distributor<const PES: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub start: Signal<In, Bit>,
    pub abort: Signal<In, Bit>,
    /// SRAM word of the list.
    pub base: Signal<In, Bits<32>>,
    pub count: Signal<In, Bits<32>>,
    pub sram_words: Signal<In, Bits<32>>,
    pub timeout: Signal<In, Bits<32>>,
    // SRAM
    pub read: Signal<Out, Bit>,
    pub read_address: Signal<Out, Bits<20>>,
    pub read_granted: Signal<In, Bit>,
    pub read_data: Signal<In, Bits<128>>,
    // PEs
    pub command: Signal<Out, Bits<128>>,
    pub command_valid: Signal<Out, Bits<PES>>,
    pub command_ready: Signal<In, Bits<PES>>,
    pub idle: Signal<In, Bits<PES>>,
    /// Some PE makes progress.
    pub progress: Signal<In, Bit>,
    /// The whole list is delivered, or the distributor has failed.
    pub ended: Signal<Out, Bit>,
    pub failed: Signal<Out, Bit>,
    pub status: Signal<Out, Bits<32>>,
    all: Constant<Bits<8>>,
    state: DFF<DistributorState>,
    address: DFF<Bits<32>>,
    left: DFF<Bits<32>>,
    index: DFF<Bits<24>>,
    word: DFF<Bits<128>>,
    settle: DFF<Bits<2>>,
    status_code: DFF<Bits<8>>,
    status_index: DFF<Bits<24>>,
    mask: Signal<Local, Bits<PES>>,
    ready: Signal<Local, Bit>,
    quiet: Signal<Local, Bit>,
    waits: Signal<Local, Bit>,
    fails: Signal<Local, Bit>,
    fail_code: Signal<Local, Bits<8>>,
    watchdog: Watchdog,
}

impl<const PES: usize> Default for Distributor<PES> {
    fn default() -> Self {
        Self {
            clock: Default::default(),
            reset: Default::default(),
            start: Default::default(),
            abort: Default::default(),
            base: Default::default(),
            count: Default::default(),
            sram_words: Default::default(),
            timeout: Default::default(),
            read: Default::default(),
            read_address: Default::default(),
            read_granted: Default::default(),
            read_data: Default::default(),
            command: Default::default(),
            command_valid: Default::default(),
            command_ready: Default::default(),
            idle: Default::default(),
            progress: Default::default(),
            ended: Default::default(),
            failed: Default::default(),
            status: Default::default(),
            all: Constant::new(bits((1 << PES) - 1)),
            state: Default::default(),
            address: Default::default(),
            left: Default::default(),
            index: Default::default(),
            word: Default::default(),
            settle: Default::default(),
            status_code: Default::default(),
            status_index: Default::default(),
            mask: Default::default(),
            ready: Default::default(),
            quiet: Default::default(),
            waits: Default::default(),
            fails: Default::default(),
            fail_code: Default::default(),
            watchdog: Default::default(),
        }
    }
}

impl<const PES: usize> Logic for Distributor<PES> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, address, left, index, word, settle, status_code, status_index);
        self.mask.next = self.word.q.val().get_bits::<PES>(16);
        self.ready.next = !(self.mask.val() & !self.command_ready.val()).any();
        self.quiet.next = !(self.mask.val() & !self.idle.val()).any();
        self.read.next = false;
        self.read_address.next = self.address.q.val().get_bits::<20>(0);
        self.command.next = self.word.q.val();
        self.command_valid.next = 0.into();
        self.fails.next = false;
        self.fail_code.next = 4.into();
        self.watchdog.clock.next = self.clock.val();
        self.watchdog.reset.next = self.reset.val();
        self.watchdog.limit.next = self.timeout.val();
        self.waits.next = false;
        match self.state.q.val() {
            DistributorState::Idle => {}
            DistributorState::Fetch => {
                if !self.left.q.val().any() {
                    self.state.d.next = DistributorState::Ended;
                } else if self.address.q.val() >= self.sram_words.val() {
                    self.fails.next = true;
                } else {
                    self.read.next = true;
                    if self.read_granted.val() {
                        self.state.d.next = DistributorState::Word;
                    }
                }
            }
            DistributorState::Word => {
                self.word.d.next = self.read_data.val();
                self.state.d.next = DistributorState::Deliver;
            }
            DistributorState::Deliver => {
                self.waits.next = !self.progress.val();
                if !self.mask.val().any() | (self.word.q.val().get_bits::<8>(16) & !self.all.val()).any() {
                    self.fails.next = true;
                    self.fail_code.next = 12.into();
                } else if self.ready.val() {
                    self.command_valid.next = self.mask.val();
                    self.address.d.next = self.address.q.val() + 1;
                    self.left.d.next = self.left.q.val() - 1;
                    self.index.d.next = self.index.q.val() + 1;
                    self.settle.d.next = 0.into();
                    self.state.d.next = DistributorState::Fetch;
                    if self.word.q.val().get_bit(12) {
                        self.state.d.next = DistributorState::Settle;
                    }
                }
            }
            DistributorState::Settle => {
                // the command reaches the PEs before their idle is looked at
                self.settle.d.next = self.settle.q.val() + 1;
                if self.settle.q.val().all() {
                    self.state.d.next = DistributorState::Wait;
                }
            }
            DistributorState::Wait => {
                self.waits.next = !self.progress.val();
                if self.quiet.val() {
                    self.state.d.next = DistributorState::Fetch;
                }
            }
            DistributorState::Ended => {}
            DistributorState::Failed => {}
        }
        // A wait that ends in the cycle in which it expires, because the PE has stopped by itself, is none.
        self.watchdog.waiting.next = self.waits.val();
        if self.watchdog.expired.val() & self.waits.val() {
            self.fails.next = true;
            self.fail_code.next = 11.into();
        }
        if self.fails.val() {
            self.status_code.d.next = self.fail_code.val();
            self.status_index.d.next = self.index.q.val();
            if self.state.q.val() == DistributorState::Wait {
                // the command that is waited for is counted already
                self.status_index.d.next = self.index.q.val() - 1;
            }
            self.command_valid.next = 0.into();
            self.state.d.next = DistributorState::Failed;
        } else if self.abort.val() & ((self.state.q.val() != DistributorState::Idle) & (self.state.q.val() != DistributorState::Failed)) {
            if self.state.q.val() != DistributorState::Ended {
                self.status_code.d.next = 10.into();
                self.status_index.d.next = self.index.q.val();
            }
            self.state.d.next = DistributorState::Failed;
        }
        self.ended.next = (self.state.q.val() == DistributorState::Ended) | (self.state.q.val() == DistributorState::Failed);
        self.failed.next = self.status_code.q.val().any() & (self.status_code.q.val() != 10);
        self.status.next = (bit_cast::<32, 24>(self.status_index.q.val()) << 8) | bit_cast::<32, 8>(self.status_code.q.val());
        if self.start.val() {
            self.state.d.next = DistributorState::Fetch;
            self.address.d.next = self.base.val();
            self.left.d.next = self.count.val();
            self.index.d.next = 0.into();
        }
        if self.reset.val() {
            self.state.d.next = DistributorState::Idle;
            self.status_code.d.next = 0.into();
            self.status_index.d.next = 0.into();
        }
    }
}
