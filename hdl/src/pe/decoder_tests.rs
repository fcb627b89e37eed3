use super::*;
use crate::testing::cycle;
use braid_golden::stimulus::Stimulus;
use braid_isa::layout::{merge_rounds, output_words, page_beats, q_words};
use braid_isa::{Code, Command, DecodeError, Geometry, Operation};

const GEOMETRY: Geometry = Geometry::TINY;
const CHANNEL_BEATS: u32 = 100_000;

/// A kernel, as `configure` leaves it.
#[derive(Clone, Copy)]
struct Kernel {
    rows: usize,
    head_dim: usize,
    active: usize,
}

fn settings(kernel: Option<Kernel>) -> Settings {
    kernel.map_or(Settings::default(), |k| Settings {
        configured: true,
        rows: bits(k.rows as u64),
        row_tiles: bits(GEOMETRY.row_tiles(k.rows) as u64),
        head_dim: bits(k.head_dim as u64),
        rounds: bits(merge_rounds(k.active).into()),
        ..Settings::default()
    })
}

/// The rules of `docs/commands.md` over the software decoder.
fn expected(words: &[u32; 4], kernel: Option<Kernel>) -> Code {
    let command = Command::decode(words);
    match command {
        Err(DecodeError::Version(_)) => return Code::IllegalVersion,
        Err(DecodeError::Opcode(_) | DecodeError::Reserved(_)) => return Code::IllegalOpcode,
        _ => {}
    }
    if kernel.is_none() && words[0] as u8 != braid_isa::command::CONFIGURE {
        return Code::NotConfigured;
    }
    let Ok(command) = command else { return Code::IllegalField };
    let kernel = kernel.unwrap_or(Kernel { rows: 1, head_dim: 16, active: 1 });
    let row_tiles = GEOMETRY.row_tiles(kernel.rows);
    let fits = |base: u32, size: usize, limit: usize| base as usize + size <= limit;
    let (legal, inside) = match command.operation {
        Operation::Configure { rows, head_dim, q_address, active, .. } => (
            (1..=GEOMETRY.max_rows).contains(&rows.into())
                && head_dim % 8 == 0
                && (16..=GEOMETRY.max_head_dim).contains(&head_dim.into())
                && (1..=GEOMETRY.pes()).contains(&active.into()),
            fits(q_address, q_words(GEOMETRY.row_tiles(rows.into()) * GEOMETRY.rows, head_dim.into()), GEOMETRY.sram_words),
        ),
        Operation::LoadRows { table } => (true, fits(table, 2 * kernel.rows, GEOMETRY.sram_words)),
        Operation::Attend { page, pages, stride, .. } => {
            (pages > 0 && stride > 0, fits(page, usize::from(pages) * page_beats(kernel.head_dim), CHANNEL_BEATS as usize))
        }
        Operation::LoadKv { page, .. } => (true, fits(page, page_beats(kernel.head_dim), CHANNEL_BEATS as usize)),
        Operation::FetchQ { row_tile } | Operation::Qk { row_tile } | Operation::Softmax { row_tile } | Operation::Pv { row_tile } => {
            (usize::from(row_tile) < row_tiles, true)
        }
        Operation::Merge { first_round, rounds } => {
            (rounds > 0 && u32::from(first_round) + u32::from(rounds) <= merge_rounds(kernel.active), true)
        }
        Operation::Store { output } => (true, fits(output, output_words(&GEOMETRY, kernel.rows, kernel.head_dim), GEOMETRY.sram_words)),
    };
    match (legal, inside) {
        (false, _) => Code::IllegalField,
        (_, false) => Code::BadAddress,
        _ => Code::Ok,
    }
}

fn decoder() -> Decoder {
    let mut unit = Decoder::new(GEOMETRY.rows, GEOMETRY.max_rows / GEOMETRY.rows);
    unit.connect_all();
    unit.pe_index.next = bits(3);
    unit.pe_count.next = bits(GEOMETRY.pes() as u64);
    unit.sram_words.next = bits(GEOMETRY.sram_words as u64);
    unit.channel_beats.next = bits(CHANNEL_BEATS.into());
    unit
}

fn decode(unit: &mut Decoder, words: &[u32; 4], kernel: Option<Kernel>) -> Code {
    unit.settings.next = settings(kernel);
    unit.command.next =
        words.iter().rev().fold(Bits::default(), |w: Bits<128>, &x| (w << bits::<8>(32)) | bit_cast::<128, 32>(bits(x.into())));
    for _ in 0..Decoder::LATENCY {
        cycle(unit, |u, c| u.clock.next = c);
    }
    Code::from_value(unit.code.val().to_u64() as u8).expect("a code of the table")
}

const KERNEL: Kernel = Kernel { rows: 37, head_dim: 64, active: 3 };

fn legal_operations() -> Vec<Operation> {
    vec![
        Operation::Configure {
            rows: 64,
            head_dim: 128,
            scale: 0x3E12_3456,
            q_address: 0x1234,
            q_bf16: true,
            k_bf16: false,
            v_bf16: true,
            active: 4,
        },
        Operation::LoadRows { table: 8192 - 74 },
        Operation::Attend { page: 0x1_0000, position: 0xFFFF_FF00, pages: 100, stride: 4 },
        Operation::LoadKv { page: CHANNEL_BEATS - 256, position: 48 },
        Operation::FetchQ { row_tile: 18 },
        Operation::Qk { row_tile: 0 },
        Operation::Softmax { row_tile: 5 },
        Operation::Pv { row_tile: 17 },
        Operation::Merge { first_round: 1, rounds: 1 },
        Operation::Store { output: 100 },
    ]
}

fn command(operation: Operation) -> Command {
    Command { wait: true, interleave: false, mask: 0x21, operation }
}

#[test]
fn every_single_bit_change_gets_the_code_that_the_documentation_says() {
    let mut unit = decoder();
    for operation in legal_operations() {
        let words = command(operation).encode();
        assert_eq!(decode(&mut unit, &words, Some(KERNEL)), Code::Ok, "{operation:?}");
        for bit in 0..128 {
            let mut changed = words;
            changed[bit / 32] ^= 1 << (bit % 32);
            for kernel in [Some(KERNEL), None] {
                assert_eq!(decode(&mut unit, &changed, kernel), expected(&changed, kernel), "{operation:?} bit {bit}");
            }
        }
    }
}

#[test]
fn limits_are_exact() {
    let mut unit = decoder();
    let mut stimulus = Stimulus::new(52);
    for round in 0..1500 {
        let kernel = Kernel {
            rows: 1 + stimulus.below(64) as usize,
            head_dim: 16 + 8 * stimulus.below(15) as usize,
            active: 1 + stimulus.below(4) as usize,
        };
        let near = |s: &mut Stimulus, limit: usize| (limit as u32 + 1).wrapping_sub(s.below(3));
        let last = |size: usize, limit: usize| limit.saturating_sub(size);
        let page = page_beats(kernel.head_dim);
        let pages = [0, 1, stimulus.below(200), stimulus.below(1 << 16)][stimulus.below(4) as usize] as u16;
        let configured = Kernel { rows: near(&mut stimulus, 64) as usize, head_dim: near(&mut stimulus, 128) as usize, active: 2 };
        let operation = match round % 10 {
            0 => Operation::Configure {
                rows: [configured.rows, kernel.rows, 0][stimulus.below(3) as usize] as u16,
                head_dim: [configured.head_dim, kernel.head_dim, 8][stimulus.below(3) as usize] as u16,
                scale: 0,
                q_address: near(&mut stimulus, last(q_words(kernel.rows.next_multiple_of(2), kernel.head_dim), 8192)),
                q_bf16: false,
                k_bf16: true,
                v_bf16: false,
                active: stimulus.below(6) as u8,
            },
            1 => Operation::LoadRows { table: near(&mut stimulus, last(2 * kernel.rows, 8192)) },
            2 | 3 => Operation::Attend {
                page: near(&mut stimulus, last(usize::from(pages) * page, CHANNEL_BEATS as usize)),
                position: 0,
                pages,
                stride: stimulus.below(3) as u16,
            },
            4 => Operation::LoadKv { page: near(&mut stimulus, last(page, CHANNEL_BEATS as usize)), position: 0 },
            5 => Operation::FetchQ { row_tile: near(&mut stimulus, kernel.rows.div_ceil(2)) as u16 },
            6 => Operation::Pv { row_tile: near(&mut stimulus, kernel.rows.div_ceil(2)) as u16 },
            7 | 8 => Operation::Merge { first_round: stimulus.below(3) as u8, rounds: stimulus.below(4) as u8 },
            _ => Operation::Store { output: near(&mut stimulus, last(output_words(&GEOMETRY, kernel.rows, kernel.head_dim), 8192)) },
        };
        let words = command(operation).encode();
        assert_eq!(decode(&mut unit, &words, Some(kernel)), expected(&words, Some(kernel)), "{operation:?}");
    }
}

#[test]
fn fields_reach_the_action() {
    let mut unit = decoder();
    for operation in legal_operations() {
        let interleave = matches!(operation, Operation::Attend { .. } | Operation::LoadKv { .. });
        let words = Command { interleave, ..command(operation) }.encode();
        assert_eq!(decode(&mut unit, &words, Some(KERNEL)), Code::Ok);
        let action = unit.action.val();
        let kinds = [
            action.configure,
            action.load_rows,
            action.attend,
            action.load_kv,
            action.fetch_q,
            action.qk,
            action.softmax,
            action.pv,
            action.merge,
            action.store,
        ];
        assert_eq!(kinds.iter().filter(|&&k| k).count(), 1, "{operation:?}");
        match operation {
            Operation::Configure { rows, head_dim, scale, q_address, q_bf16, k_bf16, v_bf16, active } => {
                assert!(kinds[0]);
                let c = unit.configuration.val();
                assert_eq!((c.rows.to_u64(), c.head_dim.to_u64(), c.scale.to_u64()), (rows.into(), head_dim.into(), scale.into()));
                assert_eq!((c.q_address.to_u64(), c.q_bf16, c.k_bf16, c.v_bf16), (q_address.into(), q_bf16, k_bf16, v_bf16));
                assert_eq!((c.row_tiles.to_u64(), c.rounds.to_u64()), (32, merge_rounds(active.into()).into()));
            }
            Operation::LoadRows { table } => assert_eq!((kinds[1], action.address.to_u64()), (true, table.into())),
            Operation::Attend { page, position, pages, stride } => {
                assert_eq!((kinds[2], action.page.to_u64(), action.pages.to_u64()), (true, page.into(), pages.into()));
                assert_eq!((action.stride.to_u64(), action.position.to_u64()), (stride.into(), (position + 48).into()));
            }
            Operation::LoadKv { page, position } => {
                assert_eq!((kinds[3], action.page.to_u64(), action.position.to_u64()), (true, page.into(), (position + 48).into()));
            }
            Operation::FetchQ { row_tile } => assert_eq!((kinds[4], action.row_tile.to_u64()), (true, row_tile.into())),
            Operation::Qk { row_tile } => assert_eq!((kinds[5], action.row_tile.to_u64()), (true, row_tile.into())),
            Operation::Softmax { row_tile } => assert_eq!((kinds[6], action.row_tile.to_u64()), (true, row_tile.into())),
            Operation::Pv { row_tile } => assert_eq!((kinds[7], action.row_tile.to_u64()), (true, row_tile.into())),
            Operation::Merge { first_round, rounds } => {
                assert_eq!((kinds[8], action.first_round.to_u64(), action.rounds.to_u64()), (true, first_round.into(), rounds.into()));
            }
            Operation::Store { output } => assert_eq!((kinds[9], action.address.to_u64()), (true, output.into())),
        }
    }
}

#[test]
fn every_opcode_outside_the_table_is_refused() {
    let mut unit = decoder();
    for opcode in 0..=255u32 {
        let words = [opcode | 1 << 8 | 1 << 16, 0, 0, 0];
        assert_eq!(decode(&mut unit, &words, Some(KERNEL)), expected(&words, Some(KERNEL)), "opcode {opcode:#04x}");
    }
}
