//! The processing element: everything of `pe/` wired together.
//!
//! ```text
//!  commands --> queue --> decoder --> control --> page stream --> DMA <--> memory channel (and host)
//!                                        |            |            \--> K, V tiles
//!                                        |          front <--> multicast reader, mask unit
//!                                        |            |  \--> Q tiles
//!                                        |        scoreboard --> datapath (GEMM, MATH, row state)
//!                                        +--> merge engine <--> IPCQ links
//!                                        \--> store engine --> shared SRAM
//! ```
//!
//! Ports as in `docs/interfaces.md`; all outputs come from registers.
//!
//! Parameters: `ROWS` dot-product units; `BEAT` = 32 x ROWS; `MASKS` = 16 x ROWS; `TILE_BITS` = log2 of the row tiles of the row store; `TILES` =
//! 2^`TILE_BITS`; `O_BITS` = `TILE_BITS` + 6; `ROW_BITS` = log2 of 2 x rows of the store; `LINKS` merge rounds of all PEs.
//!
//! Throughput: with one beat a cycle from the channel the GEMM issues every cycle: 4d + 2 cycles a (page, row tile) pair of 16 positions x ROWS rows.

use rust_hdl::prelude::*;

use super::control::Control;
use super::counters::Counters;
use super::datapath::Datapath;
use super::decoder::Decoder;
use super::dma::Dma;
use super::final_tiles::FinalTiles;
use super::front::{FetchRequest, Front};
use super::ipcq::Ipcq;
use super::mask::MaskUnit;
use super::merge::MergeEngine;
use super::page_stream::PageStream;
use super::queue::Queue;
use super::scoreboard::Scoreboard;
use super::store::StoreEngine;
use super::watchdog::Watchdog;

#[derive(LogicBlock)]
pub struct ProcessingElement<
    const ROWS: usize,
    const BEAT: usize,
    const MASKS: usize,
    const TILE_BITS: usize,
    const TILES: usize,
    const O_BITS: usize,
    const ROW_BITS: usize,
    const LINKS: usize,
> {
    pub clock: Signal<In, Clock>,
    /// Soft reset, at least one cycle.
    pub reset: Signal<In, Bit>,
    /// Global index.
    pub pe_index: Signal<In, Bits<8>>,
    pub pe_count: Signal<In, Bits<8>>,
    pub sram_words: Signal<In, Bits<32>>,
    pub channel_beats: Signal<In, Bits<32>>,
    /// Cycles without progress that a wait may last.
    pub timeout: Signal<In, Bits<32>>,
    /// The doorbell: counters and command index start from 0.
    pub start: Signal<In, Bit>,
    pub running: Signal<In, Bit>,
    /// Another unit failed.
    pub abort: Signal<In, Bit>,
    pub command: Signal<In, Bits<128>>,
    pub command_valid: Signal<In, Bit>,
    pub command_ready: Signal<Out, Bit>,
    pub idle: Signal<Out, Bit>,
    pub failed: Signal<Out, Bit>,
    /// Something moved in the cycle before.
    pub progress: Signal<Out, Bit>,
    /// Code \[7:0\], command index \[31:8\].
    pub status: Signal<Out, Bits<32>>,
    pub fetch_valid: Signal<Out, Bit>,
    pub fetch: Signal<Out, FetchRequest>,
    /// The multicast reader need not wait for this PE.
    pub fetch_finished: Signal<Out, Bit>,
    pub fetch_done: Signal<In, Bit>,
    pub multicast_valid: Signal<In, Bit>,
    pub multicast_take: Signal<In, Bit>,
    pub multicast_data: Signal<In, Bits<128>>,
    pub send_valid: Signal<Out, Bits<LINKS>>,
    pub send_data: Signal<Out, Bits<BEAT>>,
    pub credit_in: Signal<In, Bits<LINKS>>,
    pub receive_valid: Signal<In, Bits<LINKS>>,
    pub receive_data: [Signal<In, Bits<BEAT>>; LINKS],
    pub credit_out: Signal<Out, Bits<LINKS>>,
    pub channel_request_valid: Signal<Out, Bit>,
    pub channel_request_ready: Signal<In, Bit>,
    pub channel_request_write: Signal<Out, Bit>,
    pub channel_request_address: Signal<Out, Bits<32>>,
    pub channel_request_beats: Signal<Out, Bits<16>>,
    pub channel_write_data: Signal<Out, Bits<128>>,
    pub channel_write_strobe: Signal<Out, Bits<16>>,
    pub channel_read_valid: Signal<In, Bit>,
    pub channel_read_ready: Signal<Out, Bit>,
    pub channel_read_data: Signal<In, Bits<128>>,
    pub host_valid: Signal<In, Bit>,
    pub host_ready: Signal<Out, Bit>,
    pub host_write: Signal<In, Bit>,
    pub host_address: Signal<In, Bits<32>>,
    pub host_data: Signal<In, Bits<128>>,
    pub host_strobe: Signal<In, Bits<16>>,
    pub host_read_valid: Signal<Out, Bit>,
    pub host_read_data: Signal<Out, Bits<128>>,
    pub store_valid: Signal<Out, Bit>,
    pub store_ready: Signal<In, Bit>,
    pub store_address: Signal<Out, Bits<20>>,
    pub store_data: Signal<Out, Bits<128>>,
    pub store_enable: Signal<Out, Bits<4>>,
    pub counter_select: Signal<In, Bits<8>>,
    pub counter_value: Signal<Out, Bits<48>>,
    queue: Queue<Bits<128>>,
    decoder: Decoder,
    control: Control,
    stream: PageStream,
    dma: Dma,
    mask: MaskUnit<MASKS, ROW_BITS>,
    front: Front<MASKS>,
    scoreboard: Scoreboard<MASKS>,
    final_tiles: FinalTiles,
    datapath: Datapath<ROWS, BEAT, MASKS, TILE_BITS, TILES, O_BITS>,
    merge: MergeEngine<ROWS, BEAT>,
    ipcq: Ipcq<BEAT, LINKS>,
    store: StoreEngine<ROWS, BEAT>,
    counters: Counters,
    watchdog: Watchdog,
    row_shift: Constant<Bits<4>>,
    reset1: DFF<Bit>,
    engine_reset: Signal<Local, Bit>,
    word: Signal<Local, Bit>,
    tile_words: Signal<Local, Bits<16>>,
    half_beats: Signal<Local, Bits<16>>,
    run_step: Signal<Local, Bits<32>>,
    single_offset: Signal<Local, Bits<32>>,
    wide_row_tile: Signal<Local, Bits<16>>,
    table_words: Signal<Local, Bits<16>>,
    table_word: DFF<Bits<16>>,
    drained: Signal<Local, Bit>,
    manual: Signal<Local, Bit>,
    stream_takes: Signal<Local, Bit>,
    working: Signal<Local, Bit>,
    moves: Signal<Local, Bit>,
    moved: DFF<Bit>,
    pages_open: Signal<Local, Bit>,
    cause: Signal<Local, Bits<8>>,
    kind: Signal<Local, Bits<10>>,
    events: Signal<Local, Bits<19>>,
    one: Constant<Bits<10>>,
}

impl<
    const ROWS: usize,
    const BEAT: usize,
    const MASKS: usize,
    const TILE_BITS: usize,
    const TILES: usize,
    const O_BITS: usize,
    const ROW_BITS: usize,
    const LINKS: usize,
> Default for ProcessingElement<ROWS, BEAT, MASKS, TILE_BITS, TILES, O_BITS, ROW_BITS, LINKS>
{
    fn default() -> Self {
        assert_eq!(ROW_BITS, TILE_BITS + ROWS.trailing_zeros() as usize + 1, "two words of ranges a row");
        Self {
            clock: Default::default(),
            reset: Default::default(),
            pe_index: Default::default(),
            pe_count: Default::default(),
            sram_words: Default::default(),
            channel_beats: Default::default(),
            timeout: Default::default(),
            start: Default::default(),
            running: Default::default(),
            abort: Default::default(),
            command: Default::default(),
            command_valid: Default::default(),
            command_ready: Default::default(),
            idle: Default::default(),
            failed: Default::default(),
            progress: Default::default(),
            moved: Default::default(),
            moves: Default::default(),
            status: Default::default(),
            fetch_valid: Default::default(),
            fetch: Default::default(),
            fetch_finished: Default::default(),
            fetch_done: Default::default(),
            multicast_valid: Default::default(),
            multicast_take: Default::default(),
            multicast_data: Default::default(),
            send_valid: Default::default(),
            send_data: Default::default(),
            credit_in: Default::default(),
            receive_valid: Default::default(),
            receive_data: std::array::from_fn(|_| Default::default()),
            credit_out: Default::default(),
            channel_request_valid: Default::default(),
            channel_request_ready: Default::default(),
            channel_request_write: Default::default(),
            channel_request_address: Default::default(),
            channel_request_beats: Default::default(),
            channel_write_data: Default::default(),
            channel_write_strobe: Default::default(),
            channel_read_valid: Default::default(),
            channel_read_ready: Default::default(),
            channel_read_data: Default::default(),
            host_valid: Default::default(),
            host_ready: Default::default(),
            host_write: Default::default(),
            host_address: Default::default(),
            host_data: Default::default(),
            host_strobe: Default::default(),
            host_read_valid: Default::default(),
            host_read_data: Default::default(),
            store_valid: Default::default(),
            store_ready: Default::default(),
            store_address: Default::default(),
            store_data: Default::default(),
            store_enable: Default::default(),
            counter_select: Default::default(),
            counter_value: Default::default(),
            queue: Default::default(),
            decoder: Decoder::new(ROWS, TILES),
            control: Default::default(),
            stream: Default::default(),
            dma: Default::default(),
            mask: Default::default(),
            front: Default::default(),
            scoreboard: Default::default(),
            final_tiles: Default::default(),
            datapath: Default::default(),
            merge: Default::default(),
            ipcq: Default::default(),
            store: Default::default(),
            counters: Default::default(),
            watchdog: Default::default(),
            row_shift: Constant::new(bits(u64::from(ROWS.trailing_zeros()))),
            reset1: Default::default(),
            engine_reset: Default::default(),
            word: Default::default(),
            tile_words: Default::default(),
            half_beats: Default::default(),
            run_step: Default::default(),
            single_offset: Default::default(),
            wide_row_tile: Default::default(),
            table_words: Default::default(),
            table_word: Default::default(),
            drained: Default::default(),
            manual: Default::default(),
            stream_takes: Default::default(),
            working: Default::default(),
            pages_open: Default::default(),
            cause: Default::default(),
            kind: Default::default(),
            events: Default::default(),
            one: Constant::new(bits(0)),
        }
    }
}

impl<
    const ROWS: usize,
    const BEAT: usize,
    const MASKS: usize,
    const TILE_BITS: usize,
    const TILES: usize,
    const O_BITS: usize,
    const ROW_BITS: usize,
    const LINKS: usize,
> Logic for ProcessingElement<ROWS, BEAT, MASKS, TILE_BITS, TILES, O_BITS, ROW_BITS, LINKS>
{
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, reset1, table_word, moved);
        self.reset1.d.next = self.reset.val();
        self.engine_reset.next = self.reset1.q.val() | self.control.stop.val();
        self.manual.next = self.control.manual.val();
        self.word.next = self.multicast_valid.val() & self.multicast_take.val();
        // derived sizes: SRAM words of a Q tile (ROWS x d / 8), beats of a page's half (2d)
        self.tile_words.next = bit_cast::<16, 8>(self.control.settings.val().head_dim >> 3) << self.row_shift.val();
        self.half_beats.next = bit_cast::<16, 8>(self.control.settings.val().head_dim) << 1;

        // ---- commands
        self.queue.clock.next = self.clock.val();
        self.queue.reset.next = self.engine_reset.val();
        self.queue.item.next = self.command.val();
        self.queue.push.next = self.command_valid.val();
        self.command_ready.next = self.queue.ready.val();
        self.queue.pop.next = self.control.pop.val();
        self.decoder.clock.next = self.clock.val();
        self.decoder.command.next = self.queue.head.val();
        self.decoder.settings.next = self.control.settings.val();
        self.decoder.pe_index.next = self.pe_index.val();
        self.decoder.pe_count.next = self.pe_count.val();
        self.decoder.sram_words.next = self.sram_words.val();
        self.decoder.channel_beats.next = self.channel_beats.val();
        self.control.clock.next = self.clock.val();
        self.control.reset.next = self.reset1.q.val();
        self.control.start.next = self.start.val();
        self.control.abort.next = self.abort.val();
        self.control.head_valid.next = self.queue.valid.val();
        self.control.action.next = self.decoder.action.val();
        self.control.decoded.next = self.decoder.configuration.val();
        self.control.code.next = self.decoder.code.val();
        self.drained.next =
            (self.stream.drained.val() & self.scoreboard.drained.val()) & (!self.front.busy.val() & !self.datapath.busy.val());
        self.control.drained.next = self.drained.val();

        // ---- page stream and DMA
        self.stream.clock.next = self.clock.val();
        self.stream.reset.next = self.engine_reset.val();
        self.stream.clear.next = self.control.clear.val();
        self.stream.half_beats.next = self.half_beats.val();
        self.stream.run_valid.next = self.control.run_valid.val();
        self.control.run_ready.next = self.stream.run_ready.val();
        self.stream.run_page.next = self.decoder.action.val().page;
        self.stream.run_position.next = self.decoder.action.val().position;
        self.stream.run_pages.next = self.decoder.action.val().pages;
        self.run_step.next = bit_cast::<32, 16>(self.decoder.action.val().stride) << 4;
        self.stream.run_step.next = self.run_step.val();
        self.stream.run_index.next = self.control.command_index.val();
        self.control.streaming.next = !self.stream.drained.val();
        self.control.stream_index.next = self.stream.oldest_index.val();
        self.dma.clock.next = self.clock.val();
        self.dma.reset.next = self.engine_reset.val();
        self.dma.running.next = self.running.val();
        self.dma.beats.next = self.half_beats.val();
        self.dma.load_valid.next = self.stream.load_valid.val();
        self.dma.load_v.next = self.stream.load_v.val();
        self.dma.load_buffer.next = self.stream.load_buffer.val();
        self.dma.load_address.next = self.stream.load_address.val();
        self.stream.load_ready.next = self.dma.load_ready.val() & !self.manual.val();
        self.control.load_ready.next = self.dma.load_ready.val();
        if self.manual.val() {
            self.dma.load_valid.next = self.control.manual_load.val();
            self.dma.load_v.next = self.control.manual_load_v.val();
            self.dma.load_buffer.next = false;
            self.dma.load_address.next = self.decoder.action.val().page;
            if self.control.manual_load_v.val() {
                self.dma.load_address.next = self.decoder.action.val().page + bit_cast::<32, 16>(self.half_beats.val());
            }
        }
        self.stream.k_done.next = self.dma.k_done.val() & !self.manual.val();
        self.stream.v_done.next = self.dma.v_done.val() & !self.manual.val();
        self.control.v_done.next = self.dma.v_done.val();
        self.channel_request_valid.next = self.dma.channel_request_valid.val();
        self.dma.channel_request_ready.next = self.channel_request_ready.val();
        self.channel_request_write.next = self.dma.channel_request_write.val();
        self.channel_request_address.next = self.dma.channel_request_address.val();
        self.channel_request_beats.next = self.dma.channel_request_beats.val();
        self.channel_write_data.next = self.dma.channel_write_data.val();
        self.channel_write_strobe.next = self.dma.channel_write_strobe.val();
        self.dma.channel_read_valid.next = self.channel_read_valid.val();
        self.channel_read_ready.next = self.dma.channel_read_ready.val();
        self.dma.channel_read_data.next = self.channel_read_data.val();
        self.dma.host_valid.next = self.host_valid.val();
        self.host_ready.next = self.dma.host_ready.val();
        self.dma.host_write.next = self.host_write.val();
        self.dma.host_address.next = self.host_address.val();
        self.dma.host_data.next = self.host_data.val();
        self.dma.host_strobe.next = self.host_strobe.val();
        self.host_read_valid.next = self.dma.host_read_valid.val();
        self.host_read_data.next = self.dma.host_read_data.val();

        // ---- front: masks and Q tiles; row tables go past it into the mask unit
        self.front.clock.next = self.clock.val();
        self.front.reset.next = self.engine_reset.val();
        self.front.clear.next = self.control.clear.val();
        self.front.settings.next = self.control.settings.val();
        self.front.tile_words.next = self.tile_words.val();
        self.front.opened.next = self.stream.opened.val();
        self.front.position0.next = self.stream.position0.val();
        self.front.position1.next = self.stream.position1.val();
        self.front.may_end.next = self.stream.front_may_end.val();
        self.stream.front_done.next = self.front.page_done.val();
        self.stream.jobs.next = self.front.jobs.val();
        self.front.qk_done_jobs.next = self.scoreboard.qk_done_jobs.val();
        self.stream.qk_done_jobs.next = self.scoreboard.qk_done_jobs.val();
        self.stream.pv_done_jobs.next = self.scoreboard.pv_done_jobs.val();
        self.front.single.next = self.control.manual_fetch.val();
        self.wide_row_tile.next = self.decoder.action.val().row_tile;
        self.single_offset.next = self.wide_row_tile.val() * self.tile_words.val();
        self.front.single_row_tile.next = self.decoder.action.val().row_tile;
        self.front.single_address.next = self.control.settings.val().q_address + self.single_offset.val().get_bits::<20>(0);
        self.control.manual_fetch_done.next = self.front.single_done.val();
        self.table_words.next = self.control.settings.val().rows << 1;
        self.fetch_valid.next = self.front.fetch_valid.val();
        self.fetch.next = self.front.fetch.val();
        if self.control.table_fetch.val() {
            self.fetch_valid.next = true;
            self.fetch.next.need = true;
            self.fetch.next.table = true;
            self.fetch.next.row_tile = 0.into();
            self.fetch.next.address = self.decoder.action.val().address;
            self.fetch.next.words = self.table_words.val();
        }
        self.front.fetch_done.next = self.fetch_done.val() & !self.control.table_fetch.val();
        self.control.table_done.next = self.fetch_done.val() & self.control.table_fetch.val();
        self.front.word.next = self.word.val() & !self.control.table_fetch.val();
        self.table_word.d.next = 0.into();
        if self.control.table_fetch.val() {
            self.table_word.d.next = self.table_word.q.val();
            if self.word.val() {
                self.table_word.d.next = self.table_word.q.val() + 1;
            }
        }
        self.fetch_finished.next = (!self.front.busy.val() & !self.stream.more.val()) & self.control.fetches_nothing.val();
        self.mask.clock.next = self.clock.val();
        self.mask.reset.next = self.engine_reset.val();
        self.mask.write.next = self.word.val() & self.control.table_fetch.val();
        self.mask.write_address.next = self.table_word.q.val();
        self.mask.write_data.next = self.multicast_data.val();
        self.mask.rows.next = self.control.settings.val().rows;
        self.mask.request_valid.next = self.front.mask_valid.val();
        self.mask.request_row_tile.next = self.front.mask_row_tile.val();
        self.mask.request_position.next = self.front.mask_position.val();
        self.front.mask_ready.next = self.mask.request_ready.val() & !self.manual.val();
        self.control.mask_ready.next = self.mask.request_ready.val();
        self.mask.answer_ready.next = self.front.answer_ready.val();
        self.front.answer_valid.next = self.mask.answer_valid.val() & !self.manual.val();
        self.front.answer_masks.next = self.mask.answer_masks.val();
        self.front.answer_any.next = self.mask.answer_any.val();
        self.control.answer_valid.next = self.mask.answer_valid.val();
        if self.manual.val() {
            self.mask.request_valid.next = self.control.manual_mask.val();
            self.mask.request_row_tile.next = self.decoder.action.val().row_tile;
            self.mask.request_position.next = self.control.manual_position.val();
            self.mask.answer_ready.next = self.control.manual_softmax.val() & self.datapath.softmax_ready.val();
        }

        // ---- jobs and datapath
        self.scoreboard.clock.next = self.clock.val();
        self.scoreboard.reset.next = self.engine_reset.val();
        self.scoreboard.clear.next = self.control.clear.val();
        self.scoreboard.job_push.next = self.front.job_push.val();
        self.scoreboard.job_page.next = self.front.job_page.val();
        self.scoreboard.job_row_tile.next = self.front.job_row_tile.val();
        self.scoreboard.job_masks.next = self.front.job_masks.val();
        self.scoreboard.k_loaded.next = self.stream.k_loaded.val();
        self.scoreboard.v_loaded.next = self.stream.v_loaded.val();
        self.scoreboard.gemm_ready.next = self.datapath.gemm_ready.val() & !self.manual.val();
        self.scoreboard.softmax_ready.next = self.datapath.softmax_ready.val() & !self.manual.val();
        self.scoreboard.qk_done.next = self.datapath.qk_done.val() & !self.manual.val();
        self.scoreboard.pv_done.next = self.datapath.pv_done.val() & !self.manual.val();
        self.scoreboard.softmax_done.next = self.datapath.softmax_done.val() & !self.manual.val();
        self.control.gemm_ready.next = self.datapath.gemm_ready.val();
        self.control.softmax_ready.next = self.datapath.softmax_ready.val();
        self.control.qk_done.next = self.datapath.qk_done.val();
        self.control.pv_done.next = self.datapath.pv_done.val();
        self.control.softmax_done.next = self.datapath.softmax_done.val();
        self.datapath.clock.next = self.clock.val();
        self.datapath.reset.next = self.engine_reset.val();
        self.datapath.head_dim.next = self.control.settings.val().head_dim;
        self.datapath.scale.next = self.control.settings.val().scale;
        self.datapath.q_bf16.next = self.control.settings.val().q_bf16;
        self.datapath.k_bf16.next = self.control.settings.val().k_bf16;
        self.datapath.v_bf16.next = self.control.settings.val().v_bf16;
        self.datapath.clear.next = self.control.clear.val();
        self.datapath.kv_write.next = self.dma.kv_write.val();
        self.datapath.kv_write_v.next = self.dma.kv_write_v.val();
        self.datapath.kv_write_buffer.next = self.dma.kv_write_buffer.val();
        self.datapath.kv_write_address.next = self.dma.kv_write_address.val();
        self.datapath.kv_write_data.next = self.dma.kv_write_data.val();
        self.datapath.q_write.next = self.front.q_write.val();
        self.datapath.q_write_buffer.next = self.front.q_write_buffer.val();
        self.datapath.q_write_row.next = self.front.q_write_row.val();
        self.datapath.q_write_block.next = self.front.q_write_block.val();
        self.datapath.q_write_data.next = self.multicast_data.val();
        self.datapath.gemm_valid.next = self.scoreboard.gemm_valid.val();
        self.datapath.gemm_pv.next = self.scoreboard.gemm_pv.val();
        self.datapath.gemm_kv_buffer.next = self.scoreboard.gemm_kv_buffer.val();
        self.datapath.gemm_q_buffer.next = self.scoreboard.gemm_buffer.val();
        self.datapath.gemm_score_buffer.next = self.scoreboard.gemm_buffer.val();
        self.datapath.gemm_row_tile.next = self.scoreboard.gemm_row_tile.val();
        self.datapath.softmax_valid.next = self.scoreboard.softmax_valid.val();
        self.datapath.softmax_buffer.next = self.scoreboard.softmax_buffer.val();
        self.datapath.softmax_row_tile.next = self.scoreboard.softmax_row_tile.val();
        self.datapath.softmax_masks.next = self.scoreboard.softmax_masks.val();
        if self.manual.val() {
            self.datapath.gemm_valid.next = self.control.manual_gemm.val();
            self.datapath.gemm_pv.next = self.control.manual_gemm_pv.val();
            self.datapath.gemm_kv_buffer.next = false;
            self.datapath.gemm_q_buffer.next = false;
            self.datapath.gemm_score_buffer.next = false;
            self.datapath.gemm_row_tile.next = self.decoder.action.val().row_tile;
            self.datapath.softmax_valid.next = self.control.manual_softmax.val();
            self.datapath.softmax_buffer.next = false;
            self.datapath.softmax_row_tile.next = self.decoder.action.val().row_tile;
            self.datapath.softmax_masks.next = self.mask.answer_masks.val();
        }

        self.final_tiles.clock.next = self.clock.val();
        self.final_tiles.reset.next = self.engine_reset.val() | self.control.clear.val();
        self.final_tiles.row_tiles.next = self.control.settings.val().row_tiles;
        self.final_tiles.opened.next = self.stream.opened.val();
        self.final_tiles.more.next = self.stream.more.val();
        self.final_tiles.front_page.next = self.front.job_page.val();
        self.final_tiles.front_row_tile.next = self.front.job_row_tile.val();
        self.final_tiles.front_idle.next = self.front.idle.val();
        self.final_tiles.no_job.next = self.scoreboard.drained.val();
        self.final_tiles.oldest_page.next = self.scoreboard.oldest_page.val();
        self.final_tiles.oldest_row_tile.next = self.scoreboard.oldest_row_tile.val();
        self.control.last_page.next = self.final_tiles.last_page.val();

        // ---- merge and store share the row-state port
        self.merge.clock.next = self.clock.val();
        self.merge.reset.next = self.engine_reset.val();
        self.merge.clear.next = self.control.clear.val();
        self.merge.settings.next = self.control.settings.val();
        self.merge.pe_index.next = self.pe_index.val();
        self.merge.start.next = self.control.merge_start.val();
        self.merge.first_round.next = self.decoder.action.val().first_round.get_bits::<4>(0);
        self.merge.rounds.next = self.decoder.action.val().rounds.get_bits::<4>(0);
        self.control.merge_busy.next = self.merge.busy.val();
        self.store.clock.next = self.clock.val();
        self.store.reset.next = self.engine_reset.val();
        self.store.settings.next = self.control.settings.val();
        self.store.pe_index.next = self.pe_index.val();
        self.store.first_column.next = self.merge.first_column.val();
        self.store.end_column.next = self.merge.end_column.val();
        self.store.start.next = self.control.store_start.val();
        self.store.output_address.next = self.decoder.action.val().address;
        self.control.store_busy.next = self.store.busy.val();
        self.merge.final_tiles.next = self.final_tiles.final_tiles.val();
        self.merge.maxima_free.next = self.datapath.maxima_free.val();
        self.merge.columns_free.next = self.datapath.columns_free.val();
        self.merge.sums_free.next = self.datapath.sums_free.val();
        self.datapath.read_a.next = self.merge.read_a.val();
        if self.store.busy.val() {
            self.datapath.read_a.next = self.store.read.val();
        }
        self.datapath.read_b.next = self.merge.read_b.val();
        self.merge.read_a_data.next = self.datapath.read_a_data.val();
        self.merge.read_b_data.next = self.datapath.read_b_data.val();
        self.store.read_data.next = self.datapath.read_a_data.val();
        self.datapath.state_write.next = self.merge.state_write.val();
        self.datapath.state_write_select.next = self.merge.state_write_select.val();
        self.datapath.state_write_row_tile.next = self.merge.state_write_row_tile.val();
        self.datapath.state_write_column.next = self.merge.state_write_column.val();
        self.datapath.state_write_data.next = self.merge.state_write_data.val();
        self.datapath.maxima_write.next = self.merge.maxima_write.val();
        self.datapath.maxima_write_row_tile.next = self.merge.maxima_write_row_tile.val();
        self.datapath.maxima_write_data.next = self.merge.maxima_write_data.val();
        self.ipcq.clock.next = self.clock.val();
        self.ipcq.reset.next = self.reset1.q.val();
        self.ipcq.link.next = self.merge.link.val();
        self.send_valid.next = self.ipcq.send_valid.val();
        self.send_data.next = self.ipcq.send_data.val();
        self.ipcq.credit_in.next = self.credit_in.val();
        self.ipcq.receive_valid.next = self.receive_valid.val();
        for i in 0..LINKS {
            self.ipcq.receive_data[i].next = self.receive_data[i].val();
        }
        self.credit_out.next = self.ipcq.credit_out.val();
        self.ipcq.reserve.next = self.merge.reserve.val();
        self.merge.may_reserve.next = self.ipcq.may_reserve.val();
        self.ipcq.push.next = self.merge.push.val();
        self.ipcq.push_data.next = self.merge.push_data.val();
        self.merge.head_valid.next = self.ipcq.head_valid.val();
        self.merge.head.next = self.ipcq.head.val();
        self.ipcq.pop.next = self.merge.pop.val();
        self.store_valid.next = self.store.store_valid.val();
        self.store.store_ready.next = self.store_ready.val();
        self.store_address.next = self.store.store_address.val();
        self.store_data.next = self.store.store_data.val();
        self.store_enable.next = self.store.store_enable.val();

        // ---- status, watchdog
        self.working.next = !(self.control.resting.val() & self.drained.val());
        self.idle.next = self.control.resting.val() & self.drained.val();
        self.failed.next = self.control.failed.val();
        self.status.next = self.control.status.val();
        self.moves.next = (((self.dma.beat.val() | self.word.val()) | (self.fetch_done.val() | self.control.pop.val()))
            | ((self.datapath.qk_issue.val() | self.datapath.pv_issue.val()) | self.datapath.math_issue.val()))
            | (self.merge.progress.val() | self.store.progress.val());
        self.moved.d.next = self.moves.val();
        self.progress.next = self.moved.q.val();
        self.watchdog.clock.next = self.clock.val();
        self.watchdog.reset.next = self.engine_reset.val();
        self.watchdog.waiting.next = (self.running.val() & self.working.val()) & !self.moves.val();
        self.watchdog.limit.next = self.timeout.val();
        self.control.expired.next = self.watchdog.expired.val();
        self.cause.next = 7.into();
        if self.merge.busy.val() {
            self.cause.next = 8.into();
        }
        if self.store.busy.val() {
            self.cause.next = 9.into();
        }
        // A merge may wait for a page, not for a partner.
        if self.dma.busy.val() | (self.dma.load_valid.val() & !self.dma.load_ready.val()) {
            self.cause.next = 6.into();
        }
        self.control.expired_code.next = self.cause.val();

        // ---- counters: bits 0 to 9 divide the cycles, in order of precedence
        self.pages_open.next = self.scoreboard.wait_kv.val() | self.control.in_load.val();
        self.kind.next = self.one.val().replace_bit(9, true);
        if self.front.busy.val() | self.control.manual_fetch.val() {
            self.kind.next = self.one.val().replace_bit(3, true);
        }
        if self.scoreboard.wait_softmax.val() | self.datapath.busy.val() {
            self.kind.next = self.one.val().replace_bit(4, true);
        }
        if self.pages_open.val() {
            self.kind.next = self.one.val().replace_bit(2, true);
        }
        if self.datapath.pv_issue.val() {
            self.kind.next = self.one.val().replace_bit(1, true);
        }
        if self.datapath.qk_issue.val() {
            self.kind.next = self.one.val().replace_bit(0, true);
        }
        if self.control.in_row_table.val() {
            self.kind.next = self.one.val().replace_bit(5, true);
        }
        if self.store.busy.val() {
            self.kind.next = self.one.val().replace_bit(8, true);
        }
        // A merge beside the computation is hidden by it.
        if self.merge.busy.val() & self.drained.val() {
            self.kind.next = self.one.val().replace_bit(7, true);
            if self.merge.progress.val() {
                self.kind.next = self.one.val().replace_bit(6, true);
            }
        }
        self.events.next = bit_cast::<19, 10>(self.kind.val());
        if self.control.pop.val() {
            self.events.next = self.events.val().replace_bit(10, true);
        }
        if self.front.job_push.val() {
            self.events.next = self.events.val().replace_bit(11, true);
        }
        if self.front.skipped.val() {
            self.events.next = self.events.val().replace_bit(12, true);
        }
        if self.dma.beat.val() {
            self.events.next = self.events.val().replace_bit(13, true);
        }
        if self.front.q_write.val() {
            self.events.next = self.events.val().replace_bit(14, true);
        }
        if self.datapath.math_issue.val() {
            self.events.next = self.events.val().replace_bit(15, true);
        }
        if self.merge.sent.val() {
            self.events.next = self.events.val().replace_bit(16, true);
        }
        if self.merge.round_done.val() {
            self.events.next = self.events.val().replace_bit(17, true);
        }
        if self.store.store_valid.val() & self.store_ready.val() {
            self.events.next = self.events.val().replace_bit(18, true);
        }
        self.counters.clock.next = self.clock.val();
        self.counters.clear.next = self.start.val();
        self.counters.count.next = 0.into();
        if self.running.val() {
            self.counters.count.next = self.events.val();
        }
        self.counters.select.next = self.counter_select.val();
        self.counter_value.next = self.counters.value.val();
    }
}
