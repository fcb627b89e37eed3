//! The control port between a bus master and a register file in plain Rust, with random pauses.

use std::collections::VecDeque;

use braid_golden::stimulus::Stimulus;
use proptest::prelude::*;
use rust_hdl::prelude::*;

use super::axi_lite::AxiLite;
use crate::testing::{cycle, settle};

/// Cycles within which every transfer of a case must be over.
const BOUND: u64 = 4_000;

/// A register's content: some function of the address.
fn register(address: u64) -> u64 {
    address.wrapping_mul(0x9E37_79B9) & 0xFFFF_FFFF
}

/// Does the writes (address, data, strobes) and reads; `calm` without pauses. Gives the cycles that it took.
fn run(writes: &[(u64, u64, u64)], reads: &[u64], seed: u64, calm: bool) -> u64 {
    let mut s = Stimulus::new(seed);
    let mut unit = AxiLite::default();
    unit.connect_all();
    let (mut aw, mut w, mut ar, mut written, mut read) = (0, 0, 0, 0, 0);
    let (mut aw_valid, mut w_valid, mut ar_valid) = (false, false, false);
    let mut pulses = VecDeque::new();
    let (mut b_offer, mut r_offer) = (None, None);
    let mut answer = 0;
    for now in 0..BOUND {
        let go = |s: &mut Stimulus| calm || s.once_in(3);
        // The halves of a write come independently: either may be ahead by several writes.
        aw_valid |= aw < writes.len() && go(&mut s);
        w_valid |= w < writes.len() && go(&mut s);
        ar_valid |= ar < reads.len() && go(&mut s);
        unit.s_axil_awvalid.next = aw_valid;
        unit.s_axil_awaddr.next = bits(writes.get(aw).map_or(0, |write| write.0));
        unit.s_axil_wvalid.next = w_valid;
        unit.s_axil_wdata.next = bits(writes.get(w).map_or(0, |write| write.1));
        unit.s_axil_wstrb.next = bits(writes.get(w).map_or(0, |write| write.2));
        unit.s_axil_arvalid.next = ar_valid;
        unit.s_axil_araddr.next = bits(reads.get(ar).copied().unwrap_or_default());
        let (b_ready, r_ready) = (go(&mut s), go(&mut s));
        unit.s_axil_bready.next = b_ready;
        unit.s_axil_rready.next = r_ready;
        // The register file answers in the cycle after the address.
        unit.read_data.next = bits(answer);
        settle(&mut unit);
        answer = register(unit.read_address.val().to_u64());
        if unit.write.val() {
            pulses.push_back((unit.write_address.val().to_u64(), unit.write_data.val().to_u64()));
        }
        if aw_valid && unit.s_axil_awready.val() {
            (aw, aw_valid) = (aw + 1, false);
        }
        if w_valid && unit.s_axil_wready.val() {
            (w, w_valid) = (w + 1, false);
        }
        if ar_valid && unit.s_axil_arready.val() {
            (ar, ar_valid) = (ar + 1, false);
        }
        let offer = unit.s_axil_bvalid.val().then(|| unit.s_axil_bresp.val().to_u64());
        assert!(b_offer.is_none() || offer == b_offer, "an answer stays until it is taken");
        b_offer = offer.filter(|_| !b_ready);
        if let Some(code) = offer.filter(|_| b_ready) {
            let (address, data, strobe) = writes[written];
            assert!(aw > written && w > written, "an answer comes after both halves");
            let whole = strobe == 0xF;
            assert_eq!(code, if whole { 0 } else { 2 }, "write {written}");
            assert_eq!(pulses.pop_front(), whole.then_some((address, data)), "write {written}");
            assert!(pulses.is_empty(), "a register is written once");
            written += 1;
        }
        let offer = unit.s_axil_rvalid.val().then(|| (unit.s_axil_rdata.val().to_u64(), unit.s_axil_rresp.val().to_u64()));
        assert!(r_offer.is_none() || offer == r_offer, "an answer stays until it is taken");
        r_offer = offer.filter(|_| !r_ready);
        if let Some(offer) = offer.filter(|_| r_ready) {
            assert!(ar > read, "an answer comes after its address");
            assert_eq!(offer, (register(reads[read]), 0), "read {read}");
            read += 1;
        }
        cycle(&mut unit, |u, c| u.clock.next = c);
        if written == writes.len() && read == reads.len() {
            assert!(pulses.is_empty());
            return now + 1;
        }
    }
    panic!("a transfer does not end: {written} writes and {read} reads are answered");
}

fn writes() -> impl Strategy<Value = Vec<(u64, u64, u64)>> {
    prop::collection::vec((0u64..0x1000, any::<u32>().prop_map(u64::from), prop_oneof![3 => Just(0xFu64), 1 => 0u64..16]), 0..16)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn every_transfer_is_answered_once_with_its_own_result_under_random_pauses(
        writes in writes(),
        reads in prop::collection::vec(0u64..0x1000, 0..16),
        seed in any::<u64>(),
    ) {
        run(&writes, &reads, seed, false);
    }
}

#[test]
fn a_transfer_takes_the_promised_cycles() {
    assert_eq!(run(&[(0x20, 7, 0xF)], &[], 1, true), 3, "both halves, then the pulse, then the answer");
    assert_eq!(run(&[], &[0x20], 1, true), 4, "address, two cycles for the register, answer");
}
