//! Compiled engine: cranelift turns every unit into one function over the image; units of several lanes loop over vectors of four.
//!
//! Code generation is per *distinct* block, so its time and the code's size do not grow with the number of instances. Operations that have no vector form (memory
//! access, shifts by a computed amount) are done lane by lane or as a barrel of constant shifts.

use super::simulator::{Backend, Group, PlanRef, Simulator, WatchUnits};
use super::watch::WatchUnit;
use crate::SimError;
use crate::graph::{Graph, N, Node, Op, mask};
use crate::plan::{Class, LANES, Plan, Unit};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{AbiParam, BlockArg, InstBuilder, MemFlags, Type, Value, types};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Module, default_libcall_names};
use std::collections::HashMap;

/// The compiled engine.
pub type Compiled = Simulator<Machine>;

/// A unit's code: takes the image.
type Code = unsafe extern "C" fn(*mut u32);

/// Code of a watch: takes the image, a lane, and the lane's part of the list.
type WatchCode = unsafe extern "C" fn(*const u32, usize, *mut u32);

/// A watching function with its lanes and the positions of their parts in the list.
type WatchCall = (WatchCode, Vec<(usize, usize)>);

/// Backend of [`Compiled`].
pub struct Machine {
    /// Owns the code behind the function pointers; freed in `drop`.
    module: Option<JITModule>,
    steady: Vec<Code>,
    reactive: Vec<Code>,
    edges: Vec<Vec<Code>>,
    /// Functions of every watch, and the length of its list.
    watches: Vec<(Vec<WatchCall>, usize)>,
    /// Words that the code may touch.
    image_len: usize,
}

impl std::fmt::Debug for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Machine").field("functions", &(self.steady.len() + self.reactive.len())).finish()
    }
}

fn failed(e: impl std::fmt::Display) -> SimError {
    SimError::CodeGeneration { what: e.to_string() }
}

impl Backend for Machine {
    fn build(plan: &PlanRef<'_>) -> Result<Self, SimError> {
        let plan: &Plan = plan.0;
        let mut flags = settings::builder();
        for (name, value) in
            [("use_colocated_libcalls", "false"), ("is_pic", "false"), ("opt_level", "speed"), ("enable_verifier", "false")]
        {
            flags.set(name, value).map_err(failed)?;
        }
        let isa = cranelift_native::builder().map_err(failed)?.finish(settings::Flags::new(flags)).map_err(failed)?;
        let mut module = JITModule::new(JITBuilder::with_isa(isa, default_libcall_names()));
        let mut ids: Vec<Vec<FuncId>> = Vec::new();
        for group in Group::all(plan) {
            let mut list = Vec::new();
            for unit in group.units(plan) {
                list.push(function(&mut module, plan, unit)?);
            }
            ids.push(list);
        }
        module.finalize_definitions().map_err(failed)?;
        let mut lists = ids.into_iter().map(|list| {
            list.into_iter()
                .map(|id| {
                    let code = module.get_finalized_function(id);
                    // SAFETY: `code` is the finalized machine code of a function that was declared with exactly this signature: one pointer, no result, the
                    // platform's C calling convention. It stays mapped until `drop` frees the module, and the pointers do not outlive `self`.
                    unsafe { std::mem::transmute::<*const u8, Code>(code) }
                })
                .collect::<Vec<_>>()
        });
        let steady = lists.next().unwrap_or_default();
        let reactive = lists.next().unwrap_or_default();
        let edges = lists.collect();
        Ok(Self { module: Some(module), steady, reactive, edges, watches: Vec::new(), image_len: plan.image.len() })
    }

    fn run(&mut self, group: Group, image: &mut [u32]) {
        assert_eq!(image.len(), self.image_len);
        let list = match group {
            Group::Steady => &self.steady,
            Group::Reactive => &self.reactive,
            Group::Edge(e) => &self.edges[e],
        };
        for code in list {
            // SAFETY: the code reads and writes only words of the plan's image, whose length was just checked: constant offsets plus a lane below the class's lane
            // count, and memory rows at an address whose width is the memory's address width (node values never exceed their width).
            unsafe { code(image.as_mut_ptr()) };
        }
    }

    fn watch(&mut self, plan: &PlanRef<'_>, units: &WatchUnits<'_>) -> Result<usize, SimError> {
        let module = self.module.as_mut().ok_or_else(|| failed("the code is gone"))?;
        let ids = units.0.iter().map(|unit| watching(module, plan.0, unit)).collect::<Result<Vec<FuncId>, _>>()?;
        module.finalize_definitions().map_err(failed)?;
        let mut calls = Vec::new();
        for (unit, id) in units.0.iter().zip(ids) {
            let lanes = plan.0.classes[unit.unit.class].lanes;
            assert!(unit.lanes.iter().all(|&(lane, base)| lane < lanes && unit.outs.iter().all(|&(_, k)| base + k < units.1)));
            let code = module.get_finalized_function(id);
            // SAFETY: `code` is the finalized machine code of a function that was declared with exactly this signature: two pointers and a pointer-sized integer, no
            // result, the platform's C calling convention. It stays mapped until `drop` frees the module, and the pointers do not outlive `self`.
            calls.push((unsafe { std::mem::transmute::<*const u8, WatchCode>(code) }, unit.lanes.clone()));
        }
        self.watches.push((calls, units.1));
        Ok(self.watches.len() - 1)
    }

    fn sample(&mut self, watch: usize, image: &[u32], words: &mut [u32]) {
        let (calls, len) = &self.watches[watch];
        assert!(image.len() == self.image_len && words.len() >= *len);
        for (code, lanes) in calls {
            for &(lane, base) in lanes {
                // SAFETY: the code reads only words of the plan's image, whose length was just checked (see `run`; the lane is below the class's lane count), and writes
                // `words[base + k]` for positions that were checked against the list's length when the watch was made.
                unsafe { code(image.as_ptr(), lane, words.as_mut_ptr().add(base)) };
            }
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            // SAFETY: the only pointers into the module's memory are in `self`, which is going away, and no code runs: `run` borrows `self`.
            unsafe { module.free_memory() };
        }
    }
}

fn function(module: &mut JITModule, plan: &Plan, unit: &Unit) -> Result<FuncId, SimError> {
    let class = &plan.classes[unit.class];
    let pointer = module.target_config().pointer_type();
    let mut context = module.make_context();
    context.func.signature.params.push(AbiParam::new(pointer));
    let id = module.declare_anonymous_function(&context.func.signature).map_err(failed)?;
    let mut frontend = FunctionBuilderContext::new();
    let mut b = FunctionBuilder::new(&mut context.func, &mut frontend);
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let image = b.block_params(entry)[0];
    let graph = &plan.graphs[class.module];
    if class.lanes == 1 {
        let generator = Generator {
            b: &mut b,
            graph,
            class,
            unit,
            ty: types::I32,
            pointer,
            image,
            base: image,
            lane: None,
            constants: HashMap::new(),
            masks: HashMap::new(),
        };
        generator.body();
        b.ins().return_(&[]);
    } else {
        // for lane in (0..lanes).step_by(4)
        let (head, exit) = (b.create_block(), b.create_block());
        let lane = b.append_block_param(head, pointer);
        let zero = b.ins().iconst(pointer, 0);
        b.ins().jump(head, &[BlockArg::Value(zero)]);
        b.switch_to_block(head);
        let bytes = b.ins().ishl_imm(lane, 2);
        let base = b.ins().iadd(image, bytes);
        let generator = Generator {
            b: &mut b,
            graph,
            class,
            unit,
            ty: types::I32X4,
            pointer,
            image,
            base,
            lane: Some(lane),
            constants: HashMap::new(),
            masks: HashMap::new(),
        };
        generator.body();
        let next = b.ins().iadd_imm(lane, LANES as i64);
        let more = b.ins().icmp_imm(IntCC::UnsignedLessThan, next, class.lanes as i64);
        b.ins().brif(more, head, &[BlockArg::Value(next)], exit, &[]);
        b.switch_to_block(exit);
        b.ins().return_(&[]);
    }
    b.seal_all_blocks();
    b.finalize();
    module.define_function(id, &mut context).map_err(failed)?;
    module.clear_context(&mut context);
    Ok(id)
}

/// Code of a watching function: one lane, chosen by the caller.
fn watching(module: &mut JITModule, plan: &Plan, watch: &WatchUnit) -> Result<FuncId, SimError> {
    let class = &plan.classes[watch.unit.class];
    let pointer = module.target_config().pointer_type();
    let mut context = module.make_context();
    context.func.signature.params.extend([AbiParam::new(pointer); 3]);
    let id = module.declare_anonymous_function(&context.func.signature).map_err(failed)?;
    let mut frontend = FunctionBuilderContext::new();
    let mut b = FunctionBuilder::new(&mut context.func, &mut frontend);
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let &[image, lane, words] = b.block_params(entry) else { return Err(failed("a function lost its parameters")) };
    let bytes = b.ins().ishl_imm(lane, 2);
    let base = b.ins().iadd(image, bytes);
    let mut generator = Generator {
        b: &mut b,
        graph: &plan.graphs[class.module],
        class,
        unit: &watch.unit,
        ty: types::I32,
        pointer,
        image,
        base,
        lane: Some(lane),
        constants: HashMap::new(),
        masks: HashMap::new(),
    };
    let values = generator.values();
    for &(n, k) in &watch.outs {
        let (base, displacement) = generator.at(words, k);
        generator.b.ins().store(MemFlags::trusted(), values[&n], base, displacement);
    }
    b.ins().return_(&[]);
    b.seal_all_blocks();
    b.finalize();
    module.define_function(id, &mut context).map_err(failed)?;
    module.clear_context(&mut context);
    Ok(id)
}

struct Generator<'a, 'f> {
    b: &'a mut FunctionBuilder<'f>,
    graph: &'a Graph,
    class: &'a Class,
    unit: &'a Unit,
    /// Type of a node: one word, or four lanes.
    ty: Type,
    pointer: Type,
    /// Start of the image, and the same moved by the first lane.
    image: Value,
    base: Value,
    /// The first lane, where it is not always 0.
    lane: Option<Value>,
    constants: HashMap<u32, Value>,
    /// Comparison results as masks (vector) or flags (scalar), for multiplexers.
    masks: HashMap<N, Value>,
}

impl Generator<'_, '_> {
    fn vector(&self) -> bool {
        self.ty.is_vector()
    }

    fn constant(&mut self, value: u32) -> Value {
        if let Some(&v) = self.constants.get(&value) {
            return v;
        }
        let scalar = self.b.ins().iconst(types::I32, i64::from(value));
        let v = if self.vector() { self.b.ins().splat(self.ty, scalar) } else { scalar };
        self.constants.insert(value, v);
        v
    }

    fn cut(&mut self, v: Value, w: u8) -> Value {
        if w == 32 {
            return v;
        }
        let m = self.constant(mask(w));
        self.b.ins().band(v, m)
    }

    /// Address of an image word: base plus offset, which may not fit an instruction's displacement.
    fn at(&mut self, base: Value, offset: usize) -> (Value, i32) {
        let bytes = offset * 4;
        match i32::try_from(bytes) {
            Ok(displacement) => (base, displacement),
            Err(_) => (self.b.ins().iadd_imm(base, bytes as i64), 0),
        }
    }

    fn compare(&mut self, n: N, cc: IntCC, a: Value, b: Value) -> Value {
        let r = self.b.ins().icmp(cc, a, b);
        self.masks.insert(n, r);
        if self.vector() {
            let one = self.constant(1);
            self.b.ins().band(r, one)
        } else {
            self.b.ins().uextend(types::I32, r)
        }
    }

    fn condition(&mut self, n: N, value: Value) -> Value {
        if let Some(&m) = self.masks.get(&n) {
            return m;
        }
        let m = if self.vector() {
            // 1 to all ones: negation.
            self.b.ins().ineg(value)
        } else {
            value
        };
        self.masks.insert(n, m);
        m
    }

    fn shift_by(&mut self, v: Value, amount: u8, left: bool) -> Value {
        if amount == 0 {
            return v;
        }
        let s = self.b.ins().iconst(types::I32, i64::from(amount));
        if left { self.b.ins().ishl(v, s) } else { self.b.ins().ushr(v, s) }
    }

    /// Shift by a computed amount; by the width or more: 0.
    fn shift(&mut self, a: Value, amount: Value, amount_width: u8, w: u8, left: bool) -> Value {
        if !self.vector() {
            let limit = self.constant(u32::from(w));
            let fits = self.b.ins().icmp(IntCC::UnsignedLessThan, amount, limit);
            let moved = if left { self.b.ins().ishl(a, amount) } else { self.b.ins().ushr(a, amount) };
            let zero = self.constant(0);
            let r = self.b.ins().select(fits, moved, zero);
            return self.cut(r, w);
        }
        // A barrel of constant shifts, one amount bit each.
        let mut v = a;
        let mut bit = 0;
        while bit < amount_width && (1u32 << bit) < u32::from(w) {
            let moved = self.shift_by(v, 1 << bit, left);
            // The amount bit in the sign position, spread over the word.
            let up = self.shift_by(amount, 31 - bit, true);
            let spread = self.b.ins().iconst(types::I32, 31);
            let chosen = self.b.ins().sshr(up, spread);
            v = self.b.ins().bitselect(chosen, moved, v);
            bit += 1;
        }
        if bit < amount_width {
            let limit = self.constant(1 << bit);
            let fits = self.b.ins().icmp(IntCC::UnsignedLessThan, amount, limit);
            v = self.b.ins().band(v, fits);
        }
        self.cut(v, w)
    }

    /// Address of word `k` of a memory row.
    fn row(&mut self, memory: usize, lane: usize, address: Value, k: usize) -> (Value, i32) {
        let (start, size) = self.class.memories[memory];
        let width = self.graph.memories[memory].words.len();
        let wide = if self.pointer == types::I32 { address } else { self.b.ins().uextend(self.pointer, address) };
        let scaled = self.b.ins().imul_imm(wide, width as i64 * 4);
        let mut base = self.b.ins().iadd(self.image, scaled);
        if let Some(first) = self.lane {
            let lanes = self.b.ins().imul_imm(first, size as i64 * 4);
            base = self.b.ins().iadd(base, lanes);
        }
        self.at(base, start + lane * size + k)
    }

    fn lane_of(&mut self, v: Value, lane: usize) -> Value {
        if self.vector() { self.b.ins().extractlane(v, lane as u8) } else { v }
    }

    fn read(&mut self, memory: usize, k: usize, address: Value) -> Value {
        let plain = MemFlags::trusted();
        if !self.vector() {
            let (base, offset) = self.row(memory, 0, address, k);
            return self.b.ins().load(types::I32, plain, base, offset);
        }
        let mut out = self.constant(0);
        for lane in 0..LANES {
            let a = self.lane_of(address, lane);
            let (base, offset) = self.row(memory, lane, a, k);
            let word = self.b.ins().load(types::I32, plain, base, offset);
            out = self.b.ins().insertlane(out, word, lane as u8);
        }
        out
    }

    fn node(&mut self, n: N, node: Node, values: &HashMap<N, Value>) -> Value {
        let arena = &self.graph.arena;
        let v: Vec<Value> = node.operands().iter().map(|o| values[o]).collect();
        let width = |i: usize| arena.width(node.args[i]);
        let w = node.w;
        match node.op {
            Op::Const(value) => self.constant(value),
            Op::Read(m, k) => self.read(m as usize, k as usize, v[0]),
            Op::Add => {
                let r = self.b.ins().iadd(v[0], v[1]);
                self.cut(r, w)
            }
            Op::Sub => {
                let r = self.b.ins().isub(v[0], v[1]);
                self.cut(r, w)
            }
            Op::Mul => {
                let r = self.b.ins().imul(v[0], v[1]);
                self.cut(r, w)
            }
            Op::And => self.b.ins().band(v[0], v[1]),
            Op::Or => self.b.ins().bor(v[0], v[1]),
            Op::Xor => self.b.ins().bxor(v[0], v[1]),
            Op::Not => {
                let m = self.constant(mask(w));
                self.b.ins().bxor(v[0], m)
            }
            Op::Shl => self.shift(v[0], v[1], width(1), w, true),
            Op::Shr => self.shift(v[0], v[1], width(1), w, false),
            Op::Eq => self.compare(n, IntCC::Equal, v[0], v[1]),
            Op::Ltu => self.compare(n, IntCC::UnsignedLessThan, v[0], v[1]),
            Op::Lts => self.compare(n, IntCC::SignedLessThan, v[0], v[1]),
            Op::Slice(offset) => {
                let own = width(0);
                let r = self.shift_by(v[0], offset, false);
                if offset + w < own { self.cut(r, w) } else { r }
            }
            Op::Zext => v[0],
            Op::Sext => {
                let s = self.b.ins().iconst(types::I32, i64::from(32 - width(0)));
                let up = self.b.ins().ishl(v[0], s);
                let r = self.b.ins().sshr(up, s);
                self.cut(r, w)
            }
            Op::Concat => {
                let high = self.shift_by(v[0], width(1), true);
                self.b.ins().bor(high, v[1])
            }
            Op::Mux => {
                let c = self.condition(node.args[0], v[0]);
                if self.vector() { self.b.ins().bitselect(c, v[1], v[2]) } else { self.b.ins().select(c, v[1], v[2]) }
            }
            Op::Parity => {
                let mut r = v[0];
                for s in [16, 8, 4, 2, 1] {
                    if s < width(0) {
                        let moved = self.shift_by(r, s, false);
                        r = self.b.ins().bxor(r, moved);
                    }
                }
                self.cut(r, 1)
            }
            // Leaves are loads of the unit; references are gone after resolution.
            Op::Ref(..) | Op::Hold(..) | Op::Input(_) | Op::Child(..) | Op::State(_) => self.constant(0),
        }
    }

    fn flags(&self) -> MemFlags {
        // Vectors are aligned to words only.
        if self.vector() { MemFlags::new().with_notrap() } else { MemFlags::trusted().with_notrap() }
    }

    /// Computes every node of the unit.
    fn values(&mut self) -> HashMap<N, Value> {
        let flags = self.flags();
        let mut values: HashMap<N, Value> = HashMap::with_capacity(self.unit.nodes.len());
        let unit = self.unit;
        for &n in &unit.nodes {
            let value = match unit.loads.get(&n) {
                Some(&offset) => {
                    let (base, displacement) = self.at(self.base, offset);
                    self.b.ins().load(self.ty, flags, base, displacement)
                }
                None => self.node(n, self.graph.arena.nodes[n as usize], &values),
            };
            values.insert(n, value);
        }
        values
    }

    fn body(mut self) {
        let values = self.values();
        let (flags, unit) = (self.flags(), self.unit);
        for &(n, offset) in &unit.stores {
            let (base, displacement) = self.at(self.base, offset);
            self.b.ins().store(flags, values[&n], base, displacement);
        }
        let lanes = if self.vector() { LANES } else { 1 };
        for write in &unit.writes {
            for lane in 0..lanes {
                let address = self.lane_of(values[&write.address], lane);
                let enable = self.lane_of(values[&write.enable], lane);
                for (k, d) in write.data.iter().enumerate() {
                    // Without a branch: a disabled write stores the old word.
                    let (base, displacement) = self.row(write.memory, lane, address, k);
                    let new = self.lane_of(values[d], lane);
                    let old = self.b.ins().load(types::I32, MemFlags::trusted(), base, displacement);
                    let word = self.b.ins().select(enable, new, old);
                    self.b.ins().store(MemFlags::trusted(), word, base, displacement);
                }
            }
        }
    }
}
