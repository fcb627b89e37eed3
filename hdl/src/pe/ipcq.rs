//! PE_IPCQ: the queues between a PE and its merge partners.
//!
//! ```text
//!  link i: receive_valid, receive_data --> [ring of 32 beats] --> head      credit_out <-- pop
//!          send_valid, send_data <-- posted sends, while credits last       credit_in  --> credits
//! ```
//!
//! LINKS rings of 2^5 beats. A sender starts with 32 credits for a ring, spends one a beat and gets it back on a separate wire when the receiver pops
//! the beat, so a ring never overflows whatever the latency of the link. One beat sent and one received a cycle.

use rust_hdl::prelude::*;

use crate::memory::Fifo;

/// Beats that a ring holds, and credits that a sender starts with.
pub const RING_BEATS: u64 = 32;

#[derive(LogicBlock)]
pub struct Ipcq<const BEAT: usize, const LINKS: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// The link that is read and written now.
    pub link: Signal<In, Bits<4>>,
    // links
    pub send_valid: Signal<Out, Bits<LINKS>>,
    pub send_data: Signal<Out, Bits<BEAT>>,
    pub credit_in: Signal<In, Bits<LINKS>>,
    pub receive_valid: Signal<In, Bits<LINKS>>,
    pub receive_data: [Signal<In, Bits<BEAT>>; LINKS],
    pub credit_out: Signal<Out, Bits<LINKS>>,
    // merge engine
    /// Reserve a credit: a `push` follows later.
    pub reserve: Signal<In, Bit>,
    pub may_reserve: Signal<Out, Bit>,
    pub push: Signal<In, Bit>,
    pub push_data: Signal<In, Bits<BEAT>>,
    pub head_valid: Signal<Out, Bit>,
    pub head: Signal<Out, Bits<BEAT>>,
    pub pop: Signal<In, Bit>,
    full_credit: Constant<Bits<6>>,
    none: Constant<Bits<LINKS>>,
    ring: [Fifo<BEAT, 5, 6>; LINKS],
    spent: [DFF<Bits<6>>; LINKS],
    /// A credit of this link is left.
    may: [Signal<Local, Bit>; LINKS],
    back: Signal<Local, Bit>,
    credit: DFF<Bits<LINKS>>,
    sent: DFF<Bits<LINKS>>,
    sent_data: DFF<Bits<BEAT>>,
}

impl<const BEAT: usize, const LINKS: usize> Default for Ipcq<BEAT, LINKS> {
    fn default() -> Self {
        Self {
            clock: Default::default(),
            reset: Default::default(),
            link: Default::default(),
            send_valid: Default::default(),
            send_data: Default::default(),
            credit_in: Default::default(),
            receive_valid: Default::default(),
            receive_data: std::array::from_fn(|_| Default::default()),
            credit_out: Default::default(),
            reserve: Default::default(),
            may_reserve: Default::default(),
            push: Default::default(),
            push_data: Default::default(),
            head_valid: Default::default(),
            head: Default::default(),
            pop: Default::default(),
            full_credit: Constant::new(bits(RING_BEATS)),
            none: Constant::new(bits(0)),
            ring: std::array::from_fn(|_| Default::default()),
            spent: std::array::from_fn(|_| Default::default()),
            may: std::array::from_fn(|_| Default::default()),
            back: Default::default(),
            credit: Default::default(),
            sent: Default::default(),
            sent_data: Default::default(),
        }
    }
}

impl<const BEAT: usize, const LINKS: usize> Logic for Ipcq<BEAT, LINKS> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, credit, sent, sent_data);
        self.may_reserve.next = false;
        self.head_valid.next = false;
        self.head.next = 0.into();
        self.credit.d.next = 0.into();
        self.sent.d.next = 0.into();
        self.sent_data.d.next = self.push_data.val();
        for i in 0..LINKS {
            self.ring[i].clock.next = self.clock.val();
            self.ring[i].reset.next = self.reset.val();
            self.ring[i].in_valid.next = self.receive_valid.val().get_bit(i);
            self.ring[i].in_data.next = self.receive_data[i].val();
            self.ring[i].out_ready.next = false;
            self.spent[i].clock.next = self.clock.val();
            self.spent[i].d.next = self.spent[i].q.val();
            self.may[i].next = self.spent[i].q.val() != self.full_credit.val();
            self.back.next = self.credit_in.val().get_bit(i);
            if self.back.val() {
                self.spent[i].d.next = self.spent[i].q.val() - 1;
            }
            if self.link.val() == i.to_bits() {
                self.may_reserve.next = self.may[i].val();
                self.head_valid.next = self.ring[i].out_valid.val();
                self.head.next = self.ring[i].out_data.val();
                self.ring[i].out_ready.next = self.pop.val();
                if self.pop.val() & self.ring[i].out_valid.val() {
                    self.credit.d.next = self.none.val().replace_bit(i, true);
                }
                if self.push.val() {
                    self.sent.d.next = self.none.val().replace_bit(i, true);
                }
                if self.reserve.val() & self.may[i].val() {
                    self.spent[i].d.next = self.spent[i].q.val() + 1;
                    if self.back.val() {
                        self.spent[i].d.next = self.spent[i].q.val();
                    }
                }
            }
            if self.reset.val() {
                self.spent[i].d.next = 0.into();
            }
        }
        self.credit_out.next = self.credit.q.val();
        self.send_valid.next = self.sent.q.val();
        self.send_data.next = self.sent_data.q.val();
    }
}
