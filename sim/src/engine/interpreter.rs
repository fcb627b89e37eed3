//! Vector interpreter: each operation loops over up to 64 lanes; no code is generated.

use super::simulator::{Backend, Group, PlanRef, Simulator, WatchUnits};
use crate::SimError;
use crate::graph::{Arena, N, Op, evaluate, mask};
use crate::plan::{Class, Plan, Unit};
use std::collections::HashMap;

/// The vector interpreter.
pub type Interpreter = Simulator<Vectors>;

/// One instruction: an operation on rows of lanes.
#[derive(Debug, Clone, Copy)]
struct Instruction {
    op: Op,
    w: u8,
    wa: u8,
    wb: u8,
    to: u32,
    args: [u32; 3],
    /// Image offset of a load.
    load: usize,
    is_load: bool,
}

#[derive(Debug)]
struct Code {
    lanes: usize,
    instructions: Vec<Instruction>,
    rows: usize,
    /// Row, image offset.
    stores: Vec<(u32, usize)>,
    writes: Vec<StoreMemory>,
    /// Of every memory of the class: image offset, words a lane, words a row.
    memories: Vec<(usize, usize, usize)>,
}

#[derive(Debug)]
struct StoreMemory {
    memory: usize,
    address: u32,
    data: Vec<u32>,
    enable: u32,
}

/// Backend of [`Interpreter`]. `Default` is not public: engines are built from designs.
#[derive(Debug)]
pub struct Vectors {
    steady: Vec<Code>,
    reactive: Vec<Code>,
    edges: Vec<Vec<Code>>,
    scratch: Vec<u32>,
    watches: Vec<Vec<WatchCode>>,
}

/// A watching function.
#[derive(Debug)]
struct WatchCode {
    code: Code,
    /// Rows stored, and their positions in a lane's part of the list.
    outs: Vec<(u32, usize)>,
    lanes: Vec<(usize, usize)>,
}

impl Backend for Vectors {
    fn build(plan: &PlanRef<'_>) -> Result<Self, SimError> {
        let plan: &Plan = plan.0;
        let list = |g: Group| -> Vec<Code> { g.units(plan).iter().map(|u| code(u, plan, &[]).0).collect() };
        let steady = list(Group::Steady);
        let reactive = list(Group::Reactive);
        let edges: Vec<Vec<Code>> = (0..plan.edges.len()).map(|e| list(Group::Edge(e))).collect();
        let rows = steady.iter().chain(&reactive).chain(edges.iter().flatten()).map(|c| c.rows).max().unwrap_or(0);
        Ok(Self { steady, reactive, edges, scratch: vec![0; rows * 64], watches: Vec::new() })
    }

    fn run(&mut self, group: Group, image: &mut [u32]) {
        let list = match group {
            Group::Steady => &self.steady,
            Group::Reactive => &self.reactive,
            Group::Edge(e) => &self.edges[e],
        };
        for code in list {
            let mut lane = 0;
            while lane < code.lanes {
                let left = code.lanes - lane;
                let scratch = &mut self.scratch;
                lane += match left {
                    64.. => block::<64>(code, lane, image, scratch),
                    32.. => block::<32>(code, lane, image, scratch),
                    16.. => block::<16>(code, lane, image, scratch),
                    8.. => block::<8>(code, lane, image, scratch),
                    4.. => block::<4>(code, lane, image, scratch),
                    _ => block::<1>(code, lane, image, scratch),
                };
            }
        }
    }

    fn watch(&mut self, plan: &PlanRef<'_>, units: &WatchUnits<'_>) -> Result<usize, SimError> {
        let mut watch = Vec::new();
        for u in units.0 {
            let keep: Vec<N> = u.outs.iter().map(|o| o.0).collect();
            let (code, rows) = code(&u.unit, plan.0, &keep);
            if self.scratch.len() < code.rows {
                self.scratch.resize(code.rows, 0);
            }
            watch.push(WatchCode { code, outs: rows.into_iter().zip(u.outs.iter().map(|o| o.1)).collect(), lanes: u.lanes.clone() });
        }
        self.watches.push(watch);
        Ok(self.watches.len() - 1)
    }

    fn sample(&mut self, watch: usize, image: &[u32], words: &mut [u32]) {
        for WatchCode { code, outs, lanes } in &self.watches[watch] {
            for &(lane, base) in lanes {
                instructions::<1>(code, lane, image, &mut self.scratch);
                for &(row, k) in outs {
                    words[base + k] = self.scratch[row as usize];
                }
            }
        }
    }
}

/// Instructions of a unit; the rows of the nodes to keep.
fn code(unit: &Unit, plan: &Plan, keep: &[N]) -> (Code, Vec<u32>) {
    let class: &Class = &plan.classes[unit.class];
    let arena: &Arena = &plan.graphs[class.module].arena;
    // Rows are reused after a node's last use.
    let mut last: HashMap<N, usize> = HashMap::new();
    for (i, &n) in unit.nodes.iter().enumerate() {
        if !unit.loads.contains_key(&n) {
            for &o in arena.nodes[n as usize].operands() {
                last.insert(o, i);
            }
        }
    }
    for n in unit.stores.iter().map(|s| &s.0).chain(keep) {
        last.insert(*n, usize::MAX);
    }
    for w in &unit.writes {
        for n in w.data.iter().chain([&w.address, &w.enable]) {
            last.insert(*n, usize::MAX);
        }
    }
    let mut row: HashMap<N, u32> = HashMap::new();
    let mut free: Vec<u32> = Vec::new();
    let mut rows = 0u32;
    let mut instructions = Vec::with_capacity(unit.nodes.len());
    for (i, &n) in unit.nodes.iter().enumerate() {
        let node = arena.nodes[n as usize];
        let load = unit.loads.get(&n).copied();
        let to = free.pop().unwrap_or_else(|| {
            rows += 1;
            rows - 1
        });
        let mut args = [0; 3];
        let (mut wa, mut wb) = (1, 1);
        if load.is_none() {
            let operands = node.operands();
            for (arg, o) in args.iter_mut().zip(operands) {
                *arg = row[o];
            }
            if let Some(&a) = operands.first() {
                wa = arena.width(a);
            }
            if let Some(&b) = operands.get(1) {
                wb = arena.width(b);
            }
            let mut dead: Vec<N> = operands.iter().copied().filter(|o| last.get(o) == Some(&i)).collect();
            dead.sort_unstable();
            dead.dedup();
            free.extend(dead.iter().map(|o| row[o]));
        }
        row.insert(n, to);
        instructions.push(Instruction { op: node.op, w: node.w, wa, wb, to, args, load: load.unwrap_or(0), is_load: load.is_some() });
    }
    let kept = keep.iter().map(|n| row[n]).collect();
    let code = Code {
        lanes: class.lanes,
        instructions,
        rows: rows as usize,
        stores: unit.stores.iter().map(|&(n, at)| (row[&n], at)).collect(),
        writes: unit
            .writes
            .iter()
            .map(|w| StoreMemory {
                memory: w.memory,
                address: row[&w.address],
                data: w.data.iter().map(|n| row[n]).collect(),
                enable: row[&w.enable],
            })
            .collect(),
        memories: class
            .memories
            .iter()
            .zip(&plan.graphs[class.module].memories)
            .map(|(&(at, size), m)| (at, size, m.words.len()))
            .collect(),
    };
    (code, kept)
}

/// Computes the nodes of a unit for `B` lanes from `lane` on, into the rows of the scratch.
fn instructions<const B: usize>(code: &Code, lane: usize, image: &[u32], scratch: &mut [u32]) {
    let (rows, _) = scratch.as_chunks_mut::<B>();
    for i in &code.instructions {
        let [a, b, c] = i.args.map(|r| r as usize);
        let to = i.to as usize;
        if i.is_load {
            rows[to].copy_from_slice(&image[i.load + lane..i.load + lane + B]);
            continue;
        }
        macro_rules! unary {
            (|$x:ident| $e:expr) => {{
                let x = rows[a];
                for (d, $x) in rows[to].iter_mut().zip(x) {
                    *d = $e;
                }
            }};
        }
        macro_rules! binary {
            (|$x:ident, $y:ident| $e:expr) => {{
                let (x, y) = (rows[a], rows[b]);
                for (d, ($x, $y)) in rows[to].iter_mut().zip(x.into_iter().zip(y)) {
                    *d = $e;
                }
            }};
        }
        let m = mask(i.w);
        match i.op {
            Op::Const(v) => rows[to] = [v; B],
            Op::Read(memory, k) => {
                let (at, size, width) = code.memories[memory as usize];
                let address = rows[a];
                for (l, d) in rows[to].iter_mut().enumerate() {
                    *d = image[at + (lane + l) * size + address[l] as usize * width + k as usize];
                }
            }
            Op::Mux => {
                let (x, y, z) = (rows[a], rows[b], rows[c]);
                for (l, d) in rows[to].iter_mut().enumerate() {
                    *d = if x[l] != 0 { y[l] } else { z[l] };
                }
            }
            Op::Add => binary!(|x, y| x.wrapping_add(y) & m),
            Op::Sub => binary!(|x, y| x.wrapping_sub(y) & m),
            Op::Mul => binary!(|x, y| x.wrapping_mul(y) & m),
            Op::And => binary!(|x, y| x & y),
            Op::Or => binary!(|x, y| x | y),
            Op::Xor => binary!(|x, y| x ^ y),
            Op::Not => unary!(|x| !x & m),
            Op::Eq => binary!(|x, y| u32::from(x == y)),
            Op::Ltu => binary!(|x, y| u32::from(x < y)),
            Op::Lts => binary!(|x, y| u32::from((x as i32) < (y as i32))),
            Op::Slice(offset) => unary!(|x| (x >> offset) & m),
            Op::Zext => unary!(|x| x),
            Op::Sext => {
                let s = 32 - i.wa;
                unary!(|x| (((x << s) as i32) >> s) as u32 & m)
            }
            Op::Concat => {
                let s = i.wb;
                binary!(|x, y| (x << s) | y)
            }
            op => {
                let (w, wa, wb) = (i.w, i.wa, i.wb);
                binary!(|x, y| evaluate(op, w, wa, wb, x, y, 0))
            }
        }
    }
}

/// Executes a unit for `B` lanes from `lane` on; gives `B`.
fn block<const B: usize>(code: &Code, lane: usize, image: &mut [u32], scratch: &mut [u32]) -> usize {
    instructions::<B>(code, lane, image, scratch);
    let (rows, _) = scratch.as_chunks_mut::<B>();
    for &(row, at) in &code.stores {
        image[at + lane..at + lane + B].copy_from_slice(&rows[row as usize]);
    }
    for w in &code.writes {
        let (at, size, width) = code.memories[w.memory];
        let (enable, address) = (rows[w.enable as usize], rows[w.address as usize]);
        for (l, (_, a)) in enable.into_iter().zip(address).enumerate().filter(|(_, (e, _))| *e != 0) {
            let base = at + (lane + l) * size + a as usize * width;
            for (k, &d) in w.data.iter().enumerate() {
                image[base + k] = rows[d as usize][l];
            }
        }
    }
    B
}
