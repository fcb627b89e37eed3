//! A device with contexts: K and V are written once, forked without a copy, and read by the query rows of many contexts in one launch.

use std::time::{Duration, Instant};

use braid_firmware::Issue;
use braid_isa::TILE;
use thiserror::Error;

use crate::batch::{Batch, BatchError, Visible};
use crate::cache::{CacheError, ContextId, KvCache, PageCopy};
use crate::device::{Bounds, Device, DeviceError};
use crate::execute::{self, Progress};
use crate::layout::{KvLayout, Write};
use crate::plan::{self, PlanError, Work};
use crate::problem::{Element, Tensor};
use crate::report::Report;

/// How pages reach channel memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Load {
    /// Through the host port, as on a real machine.
    #[default]
    Port,
    /// Directly into simulated memory.
    Direct,
}

/// How to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Composite or primitive commands.
    pub issue: Issue,
    /// Bounds of waiting.
    pub bounds: Bounds,
    /// How pages reach memory.
    pub load: Load,
    /// PEs whose counters are read after every launch.
    pub counted_pes: Vec<usize>,
}

impl Default for Options {
    /// Composite issue, the host port, the counters of PE 0.
    fn default() -> Self {
        Options { issue: Issue::default(), bounds: Bounds::default(), load: Load::default(), counted_pes: vec![0] }
    }
}

/// Sizes of the keys and values of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvShape {
    /// Layers.
    pub layers: usize,
    /// KV heads of a layer.
    pub kv_heads: usize,
    /// Columns of a head.
    pub head_dim: usize,
    /// Format of K.
    pub k: Element,
    /// Format of V.
    pub v: Element,
    /// Pages of 16 positions that each PE holds of every KV head.
    pub pages_per_pe: usize,
}

/// A request that a session cannot serve.
#[derive(Debug, Error)]
pub enum SessionError {
    /// The contexts.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// The rows and their ranges.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// The machine's sizes.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The machine.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A tensor of another shape than the session's.
    #[error("{name} has shape {got:?}, but {expected} is needed")]
    Shape {
        /// Tensor.
        name: &'static str,
        /// Its shape.
        got: [usize; 3],
        /// What is needed.
        expected: String,
    },
    /// Positions beyond the end of a context.
    #[error("K and V of positions {first}..{end} are given, but context {context} has {length}")]
    Positions {
        /// The context.
        context: ContextId,
        /// First position.
        first: usize,
        /// End.
        end: usize,
        /// Positions of the context.
        length: usize,
    },
}

/// Query rows of one context.
#[derive(Clone, Copy, Debug)]
pub struct Query<'q> {
    /// The context whose positions they see.
    pub context: ContextId,
    /// [tokens, q_heads, d].
    pub q: &'q Tensor,
    /// Ranges of every token.
    pub visible: &'q [Visible],
}

/// Attention of one query.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// Bits of O, fp32, [tokens, q_heads, d].
    pub o: Vec<u32>,
    /// Natural-logarithm log-sum-exp, [tokens, q_heads].
    pub lse: Vec<f32>,
}

/// A device and the contexts whose K and V it holds.
pub struct Session<'d> {
    device: &'d mut dyn Device,
    cache: KvCache,
    layout: KvLayout,
    elements: [Element; 2],
    options: Options,
}

impl std::fmt::Debug for Session<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("layout", &self.layout).field("cache", &self.cache).finish_non_exhaustive()
    }
}

impl<'d> Session<'d> {
    /// Contexts on a device.
    ///
    /// # Errors
    /// [`PlanError::HeadDimension`] and [`PlanError::Memory`] if the device cannot hold them.
    pub fn new(device: &'d mut dyn Device, shape: KvShape, options: Options) -> Result<Session<'d>, SessionError> {
        let geometry = device.geometry();
        let KvShape { layers, kv_heads, head_dim, k, v, pages_per_pe } = shape;
        let layout = KvLayout { layers, kv_heads, head_dim, pages_per_pe };
        if layout.padded_head_dim() > geometry.max_head_dim {
            return Err(PlanError::HeadDimension { head_dim, max: geometry.max_head_dim, preset: geometry.name }.into());
        }
        let (needed, beats) = (layout.channel_beats(), device.channel_beats());
        if needed > beats.into() {
            return Err(PlanError::Memory { pages_per_pe, planes: layout.planes(), head_dim, needed, beats }.into());
        }
        Ok(Session { device, cache: KvCache::new(geometry.pes(), pages_per_pe), layout, elements: [k, v], options })
    }

    /// The contexts' tables and the pool.
    pub fn cache(&self) -> &KvCache {
        &self.cache
    }

    /// Where pages lie in memory.
    pub fn layout(&self) -> &KvLayout {
        &self.layout
    }

    /// See [`KvCache::create`].
    pub fn create(&mut self) -> ContextId {
        self.cache.create()
    }

    /// See [`KvCache::open`].
    pub fn open(&mut self, tokens: &[u32]) -> ContextId {
        self.cache.open(tokens)
    }

    /// See [`KvCache::publish`].
    ///
    /// # Errors
    /// As there.
    pub fn publish(&mut self, context: ContextId, tokens: &[u32]) -> Result<(), SessionError> {
        Ok(self.cache.publish(context, tokens)?)
    }

    /// See [`KvCache::fork`]; no K or V is copied.
    ///
    /// # Errors
    /// As there.
    pub fn fork(&mut self, parent: ContextId) -> Result<ContextId, SessionError> {
        Ok(self.cache.fork(parent)?)
    }

    /// See [`KvCache::truncate`].
    ///
    /// # Errors
    /// As there.
    pub fn truncate(&mut self, context: ContextId, length: usize) -> Result<(), SessionError> {
        Ok(self.cache.truncate(context, length)?)
    }

    /// See [`KvCache::free`].
    ///
    /// # Errors
    /// As there.
    pub fn free(&mut self, context: ContextId) -> Result<(), SessionError> {
        Ok(self.cache.free(context)?)
    }

    /// Adds positions to a context, and copies the page that it shares, if there is one that it now writes. Their first position.
    ///
    /// # Errors
    /// As [`KvCache::append`], or if the device fails.
    pub fn append(&mut self, context: ContextId, positions: usize) -> Result<usize, SessionError> {
        let appended = self.cache.append(context, positions)?;
        if let Some(PageCopy { from, to, .. }) = appended.copy {
            for plane in 0..self.layout.planes() {
                let mut bytes = vec![0; self.layout.page_bytes()];
                self.device.read(self.layout.address(plane, from), &mut bytes)?;
                put(self.device, self.options.load, &(self.layout.address(plane, to), bytes))?;
            }
        }
        Ok(appended.positions.start)
    }

    /// Writes the K and V of one layer, [positions, kv_heads, d], from position `first` of a context on. The positions must have been appended, and be
    /// written before somebody else shares them.
    ///
    /// # Errors
    /// [`SessionError::Shape`], [`SessionError::Positions`], or if the device fails.
    pub fn write(
        &mut self,
        context: ContextId,
        layer: usize,
        first: usize,
        k: &Tensor,
        v: &Tensor,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), SessionError> {
        for (name, t) in [("k", k), ("v", v)] {
            if (t.heads, t.head_dim) != (self.layout.kv_heads, self.layout.head_dim) || t.rows != k.rows {
                let expected = format!("[{}, {}, {}]", k.rows, self.layout.kv_heads, self.layout.head_dim);
                return Err(SessionError::Shape { name, got: [t.rows, t.heads, t.head_dim], expected });
            }
        }
        let table = self.cache.table(context)?;
        let end = first + k.rows;
        if end > table.length() {
            return Err(SessionError::Positions { context, first, end, length: table.length() });
        }
        for kv_head in 0..self.layout.kv_heads {
            let plane = self.layout.plane(layer, kv_head);
            let mut position = first;
            while let Some(page) = table.page(position / TILE).filter(|_| position < end) {
                progress(Progress::Loading { kv_head, done: position - first, of: k.rows });
                let stop = end.min((position / TILE + 1) * TILE);
                let rows = position - first..stop - first;
                let [k, v] = [k, v].map(|t| rows.clone().map(|row| t.head(row, kv_head)).collect::<Vec<_>>());
                for write in self.layout.writes(plane, page, position % TILE, &k, &v) {
                    put(self.device, self.options.load, &write)?;
                }
                position = stop;
            }
        }
        Ok(())
    }

    /// Attention of one layer: the rows of all queries stacked, one kernel a KV head. Outputs in the order of the queries.
    ///
    /// # Errors
    /// Queries that do not fit, or a device that fails or does not end within the bounds; the device has been reset then.
    pub fn attend(
        &mut self,
        layer: usize,
        queries: &[Query<'_>],
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(Vec<Output>, Report), SessionError> {
        let geometry = self.device.geometry();
        for query in queries {
            let q = query.q;
            let fits = q.head_dim == self.layout.head_dim && self.layout.kv_heads > 0 && q.heads % self.layout.kv_heads == 0;
            if !fits || query.visible.len() != q.rows || q.element != queries[0].q.element {
                let expected = format!(
                    "[{}, a multiple of {}, {}] in the format of the other queries",
                    query.visible.len(),
                    self.layout.kv_heads,
                    self.layout.head_dim
                );
                return Err(SessionError::Shape { name: "q", got: [q.rows, q.heads, q.head_dim], expected });
            }
        }
        let start = Instant::now();
        let spans: Vec<(ContextId, &[Visible])> = queries.iter().map(|q| (q.context, q.visible)).collect();
        let batch = Batch::new(&self.cache, &spans)?;
        let tensors: Vec<&Tensor> = queries.iter().map(|q| q.q).collect();
        let empty = |q: &Tensor| Output { o: vec![0; q.rows * q.heads * q.head_dim], lse: vec![f32::NEG_INFINITY; q.rows * q.heads] };
        let mut outputs: Vec<Output> = tensors.iter().map(|q| empty(q)).collect();
        let mut report = Report::new(&geometry, self.layout.head_dim);
        for kv_head in 0..self.layout.kv_heads {
            let launches = plan::launches(&Work {
                geometry: &geometry,
                layout: &self.layout,
                layer,
                kv_head,
                kv_elements: self.elements,
                queries: &tensors,
                batch: &batch,
                issue: self.options.issue,
            })?;
            for (n, launch) in launches.iter().enumerate() {
                let mut told = |cycles| progress(Progress::Running { kv_head, launch: n, of: launches.len(), cycles });
                let result = execute::run(self.device, launch, &self.options, &mut told);
                if result.is_err() {
                    // The next launch finds a clean machine, or at least the first error is told.
                    let _ = self.device.reset();
                }
                report.launches.push(result?);
                execute::read(self.device, launch, &tensors, &mut outputs)?;
            }
        }
        report.visible_pairs = tensors.iter().enumerate().map(|(i, q)| batch.visible_pairs(i) * q.heads as u64).sum();
        report.visible_kv_bytes = batch.visible_positions() * (self.layout.kv_heads * self.layout.head_dim * 4) as u64;
        report.wall = start.elapsed().max(Duration::from_nanos(1));
        report.simulated_cycles = self.device.simulated_cycles();
        Ok((outputs, report))
    }
}

fn put(device: &mut dyn Device, load: Load, (address, bytes): &Write) -> Result<(), DeviceError> {
    match load {
        Load::Port => device.write(*address, bytes),
        Load::Direct => device.preload(*address, bytes),
    }
}
