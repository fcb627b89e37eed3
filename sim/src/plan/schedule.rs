//! Order of evaluation across blocks.
//!
//! A *sink* is an output word of a class or an input word of one of its children; it is ready when the port words that it reads are. A class's input word is ready
//! when every parent has written it. Repeatedly the class with the most ready sinks is evaluated for all of them (list scheduling). Dead sinks, which reach
//! no state, memory or top output, are not evaluated unless every word is asked for.

use super::Keep;
use super::classes::Class;
use crate::graph::{Graph, N, Op};
use std::collections::HashMap;

/// A word that a unit stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Sink {
    /// Output word.
    Output(u32),
    /// Input word `.1` of child `.0`.
    Child(u32, u32),
}

/// Order of evaluation: class and sinks.
pub(super) struct Order {
    pub(super) steady: Vec<(usize, Vec<Sink>)>,
    pub(super) reactive: Vec<(usize, Vec<Sink>)>,
}

/// A module that cannot be ordered, in a parent.
pub(super) struct Blocked {
    pub(super) parent: usize,
    pub(super) module: usize,
}

/// A port word of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Port {
    In(usize, u32),
    Out(usize, u32),
}

struct Item {
    class: usize,
    sink: Sink,
    /// Port words read; child and word for outputs of children.
    reads: Vec<(Port, Option<u32>)>,
    /// The port word written.
    writes: Port,
}

pub(super) fn node_of(graph: &Graph, sink: Sink) -> N {
    match sink {
        Sink::Output(o) => graph.outputs[o as usize],
        Sink::Child(k, i) => graph.children[k as usize].inputs[i as usize],
    }
}

/// Leaves in the cone of some nodes.
fn leaves(graph: &Graph, roots: &[N], seen: &mut [u32], stamp: u32) -> Vec<N> {
    let mut out = Vec::new();
    let mut stack = roots.to_vec();
    while let Some(n) = stack.pop() {
        if std::mem::replace(&mut seen[n as usize], stamp) == stamp {
            continue;
        }
        let node = &graph.arena.nodes[n as usize];
        match node.op {
            Op::Input(_) | Op::Child(..) => out.push(n),
            _ => stack.extend_from_slice(node.operands()),
        }
    }
    out
}

fn port(classes: &[Class], class: usize, op: Op) -> Option<(Port, Option<u32>)> {
    match op {
        Op::Input(i) => Some((Port::In(class, i), None)),
        Op::Child(k, w) => Some((Port::Out(classes[class].sites[k as usize].0, w), Some(k))),
        _ => None,
    }
}

pub(super) fn schedule(graphs: &[Graph], classes: &[Class], keep: Keep) -> Result<Order, Blocked> {
    let mut items: Vec<Item> = Vec::new();
    let mut writers: HashMap<Port, Vec<usize>> = HashMap::new();
    let mut live_roots: Vec<(Port, Option<u32>)> = Vec::new();
    for (c, class) in classes.iter().enumerate() {
        let graph = &graphs[class.module];
        let mut seen = vec![0; graph.arena.nodes.len()];
        let mut stamp = 0;
        let mut reads = |roots: &[N]| {
            stamp += 1;
            leaves(graph, roots, &mut seen, stamp).into_iter().filter_map(|n| port(classes, c, graph.arena.op(n))).collect::<Vec<_>>()
        };
        let outputs = (0..graph.outputs.len()).map(|o| (Sink::Output(o as u32), Port::Out(c, o as u32)));
        let inputs = graph.children.iter().enumerate().flat_map(|(k, child)| {
            let site = class.sites[k].0;
            (0..child.inputs.len()).map(move |i| (Sink::Child(k as u32, i as u32), Port::In(site, i as u32)))
        });
        for (sink, writes) in outputs.chain(inputs) {
            let item = Item { class: c, sink, reads: reads(&[node_of(graph, sink)]), writes };
            writers.entry(writes).or_default().push(items.len());
            items.push(item);
        }
        let mut roots: Vec<N> = graph.states.iter().map(|s| s.next).collect();
        for w in graph.memories.iter().filter_map(|m| m.write.as_ref()) {
            roots.extend([w.address, w.enable]);
            roots.extend(&w.data);
        }
        live_roots.extend(reads(&roots));
    }
    let is_clock = |p: &Port| matches!(*p, Port::In(c, i) if classes[c].clocks[i as usize].is_some());
    // Liveness, backwards.
    let mut live = vec![false; items.len()];
    let mut stack: Vec<Port> = live_roots.into_iter().map(|r| r.0).collect();
    stack.extend((0..graphs[classes[0].module].outputs.len()).map(|o| Port::Out(0, o as u32)));
    if keep == Keep::All {
        stack.extend(items.iter().map(|item| item.writes));
    }
    while let Some(p) = stack.pop() {
        for &i in writers.get(&p).into_iter().flatten() {
            if !is_clock(&p) && !std::mem::replace(&mut live[i], true) {
                stack.extend(items[i].reads.iter().map(|r| r.0));
            }
        }
    }
    // Readiness.
    let mut missing: HashMap<Port, usize> = HashMap::new();
    let mut readers: HashMap<Port, Vec<usize>> = HashMap::new();
    let mut waits = vec![0usize; items.len()];
    for (i, item) in items.iter().enumerate().filter(|(i, _)| live[*i]) {
        *missing.entry(item.writes).or_default() += 1;
        for (p, _) in &item.reads {
            if !is_clock(p) {
                readers.entry(*p).or_default().push(i);
                waits[i] += 1;
            }
        }
    }
    let mut ready: Vec<Vec<usize>> = vec![Vec::new(); classes.len()];
    for i in 0..items.len() {
        if live[i] && waits[i] == 0 {
            ready[items[i].class].push(i);
        }
    }
    let mut done = vec![false; items.len()];
    let mut drain = |ready: &mut Vec<Vec<usize>>, waits: &mut Vec<usize>, missing: &mut HashMap<Port, usize>| {
        let mut out = Vec::new();
        // Ties go to the first class, so that the order is the same in every run.
        while let Some(c) = (0..classes.len()).rev().max_by_key(|&c| ready[c].len()).filter(|&c| !ready[c].is_empty()) {
            let mut batch = std::mem::take(&mut ready[c]);
            batch.sort_unstable();
            for &i in &batch {
                done[i] = true;
                let Some(left) = missing.get_mut(&items[i].writes) else { continue };
                *left -= 1;
                if *left == 0 {
                    for &r in readers.get(&items[i].writes).into_iter().flatten() {
                        waits[r] -= 1;
                        if waits[r] == 0 {
                            ready[items[r].class].push(r);
                        }
                    }
                }
            }
            out.push((c, batch.iter().map(|&i| items[i].sink).collect()));
        }
        out
    };
    let steady = drain(&mut ready, &mut waits, &mut missing);
    for i in 0..graphs[classes[0].module].inputs.len() as u32 {
        for &r in readers.get(&Port::In(0, i)).into_iter().flatten() {
            waits[r] -= 1;
            if waits[r] == 0 {
                ready[items[r].class].push(r);
            }
        }
    }
    let reactive = drain(&mut ready, &mut waits, &mut missing);
    if let Some(start) = (0..items.len()).find(|&i| live[i] && !done[i]) {
        return Err(blocked(&items, &writers, &live, &done, start, classes, graphs));
    }
    Ok(Order { steady, reactive })
}

/// Walks backwards from a sink that never got ready until a sink repeats; of the blocks whose outputs lie on that cycle, the cheapest is to be folded.
fn blocked(
    items: &[Item],
    writers: &HashMap<Port, Vec<usize>>,
    live: &[bool],
    done: &[bool],
    start: usize,
    classes: &[Class],
    graphs: &[Graph],
) -> Blocked {
    let mut trail: Vec<(usize, Option<(usize, usize)>)> = Vec::new();
    let mut at = start;
    let mut position = HashMap::new();
    loop {
        if let Some(&first) = position.get(&at) {
            let candidates = trail[first..].iter().filter_map(|t: &(usize, Option<(usize, usize)>)| t.1);
            let cheapest = candidates.min_by_key(|&(_, module)| graphs[module].cost());
            if let Some((parent, module)) = cheapest {
                return Blocked { parent, module };
            }
        }
        position.insert(at, trail.len());
        let class = items[at].class;
        let mut next = None;
        for &(p, child) in &items[at].reads {
            let stuck = writers.get(&p).into_iter().flatten().find(|&&w| live[w] && !done[w]);
            if let Some(&w) = stuck {
                let hop = child.map(|k| (classes[class].module, graphs[classes[class].module].children[k as usize].module.0));
                next = Some((w, hop));
                break;
            }
        }
        // A sink that is not ready reads a word that is not; words without writer are inputs of the top, which are.
        let Some((w, hop)) = next else { return Blocked { parent: classes[class].module, module: classes[class].module } };
        trail.push((at, hop));
        at = w;
    }
}
