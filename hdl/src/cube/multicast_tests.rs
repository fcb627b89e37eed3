//! The multicast reader between a memory that grants when it likes and PEs that ask when they like.

use std::collections::VecDeque;

use braid_golden::stimulus::Stimulus;

use super::multicast::MulticastReader;
use crate::testing::{Compiled, word};

const PES: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Request {
    need: bool,
    table: bool,
    row_tile: u16,
    address: u32,
    words: u16,
}

impl Request {
    fn bits(self) -> u64 {
        u64::from(self.need)
            | u64::from(self.table) << 1
            | u64::from(self.row_tile) << 2
            | u64::from(self.address) << 18
            | u64::from(self.words) << 38
    }
}

#[derive(Clone, Default)]
struct Pe {
    requests: VecDeque<Request>,
    /// Cycles until it asks again.
    rest: u32,
    asks: bool,
    received: Vec<u128>,
    /// Served requests in order, with what they received.
    served: Vec<(Request, Vec<u128>)>,
}

/// Serves all requests; the SRAM reads it took.
fn serve(requests: [Vec<Request>; PES], memory: &[u128], stalls: bool, stimulus: &mut Stimulus) -> ([Pe; PES], usize) {
    let mut unit = Compiled::new(MulticastReader::<PES>::default());
    let mut pes: [Pe; PES] = requests.map(|r| Pe { requests: r.into(), ..Pe::default() });
    let mut reads = 0;
    for _ in 0..100_000 {
        for (pe, own) in pes.iter_mut().enumerate() {
            if !own.asks {
                own.rest = own.rest.saturating_sub(1);
                own.asks = own.rest == 0 && !own.requests.is_empty();
            }
            // The content of a request that is not valid means nothing.
            let request = if own.asks { own.requests[0].bits() } else { stimulus.bits() >> 10 };
            unit.set(&format!("fetch_valid[{pe}]"), u64::from(own.asks));
            unit.set(&format!("fetch[{pe}]"), request);
            unit.set(&format!("fetch_finished[{pe}]"), u64::from(own.requests.is_empty()));
        }
        let granted = !(stalls && stimulus.once_in(3));
        unit.set("read_granted", u64::from(granted));
        let read = unit.get("read") == 1 && granted;
        let address = unit.get("read_address") as usize;
        let (valid, take, data, done) = (unit.get("valid"), unit.get("take"), unit.get_wide("data"), unit.get("fetch_done"));
        reads += usize::from(read);
        unit.step();
        let data_after = if read { memory[address] } else { word(stimulus) };
        unit.set_wide("read_data", data_after);
        for (pe, own) in pes.iter_mut().enumerate() {
            if valid == 1 && take >> pe & 1 == 1 {
                own.received.push(data);
            }
            if done >> pe & 1 == 1 {
                assert!(own.asks, "PE {pe} is served without having asked");
                let request = own.requests.pop_front().expect("a request");
                own.served.push((request, std::mem::take(&mut own.received)));
                (own.asks, own.rest) = (false, if stalls { 1 + stimulus.below(9) } else { 1 });
            }
        }
        if pes.iter().all(|pe| pe.requests.is_empty()) {
            for pe in 0..PES {
                unit.set(&format!("fetch_valid[{pe}]"), 0u64);
                unit.set(&format!("fetch_finished[{pe}]"), 1u64);
            }
            for _ in 0..20 {
                assert_eq!((unit.get("valid"), unit.get("fetch_done"), unit.get("read")), (0, 0, 0), "nothing follows the last request");
                unit.step();
            }
            return (pes, reads);
        }
    }
    panic!("requests are left: {:?}", pes.map(|pe| pe.requests));
}

/// Passes of a row table and row tiles, as the PEs of a CUBE ask for them: every PE needs or skips a tile, or does not come to it at all.
fn check(stalls: bool, seed: u64) {
    let mut stimulus = Stimulus::new(seed);
    let memory: Vec<u128> = (0..1 << 10).map(|_| word(&mut stimulus)).collect();
    for _ in 0..30 {
        let mut requests: [Vec<Request>; PES] = Default::default();
        let mut expected_reads = 0;
        for pass in 0..2u32 {
            let table = Request { need: true, table: true, row_tile: 0, address: 900 + pass * 10, words: 1 + stimulus.below(9) as u16 };
            requests.iter_mut().for_each(|own| own.push(table));
            expected_reads += usize::from(table.words);
            // Every PE does as many rounds over the row tiles as it has pages; only the first round is common to all.
            let words = 1 + stimulus.below(16) as u16;
            for row_tile in 0..1 + stimulus.below(6) as u16 {
                let mut needed = false;
                for own in &mut requests {
                    if stimulus.once_in(5) {
                        continue;
                    }
                    let need = !stimulus.once_in(3);
                    own.push(Request { need, table: false, row_tile, address: u32::from(row_tile) * 20, words });
                    needed |= need;
                }
                expected_reads += if needed { usize::from(words) } else { 0 };
            }
        }
        let (pes, reads) = serve(requests.clone(), &memory, stalls, &mut stimulus);
        for (pe, (own, asked)) in pes.iter().zip(&requests).enumerate() {
            assert!(own.served.iter().map(|s| s.0).eq(asked.iter().copied()), "PE {pe}: requests are served in order");
            for (request, received) in &own.served {
                let words = if request.need { &memory[request.address as usize..][..request.words.into()] } else { &[] };
                assert_eq!(received, words, "PE {pe}: {request:?}");
            }
        }
        assert_eq!(reads, expected_reads, "one read of the SRAM feeds all PEs");
    }
}

#[test]
fn every_pe_gets_its_words_and_each_word_is_read_once() {
    check(false, 61);
}

#[test]
fn stalls_of_memory_and_late_requests_change_nothing() {
    check(true, 62);
}

#[test]
fn a_pe_that_asks_for_other_words_of_the_tile_is_served_by_itself() {
    let mut stimulus = Stimulus::new(63);
    let memory: Vec<u128> = (0..64).map(|_| word(&mut stimulus)).collect();
    let tile = |address, words| vec![Request { need: true, table: false, row_tile: 2, address, words }];
    let (pes, reads) = serve([tile(0, 4), tile(8, 4), tile(0, 4)], &memory, false, &mut stimulus);
    assert_eq!(reads, 8);
    assert_eq!(pes[1].served[0].1, memory[8..12]);
    assert_eq!(pes[2].served[0].1, memory[0..4]);
}
