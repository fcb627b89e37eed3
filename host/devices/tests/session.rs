//! Contexts that fork, on the RTL and on the golden machine: the same bits, f64 attention within the bound, and a row's bits whatever else is launched.

use braid_devices::{Engine, Setup, open, with_stack};
use braid_golden::stimulus::Stimulus;
use braid_hdl::model::ChannelTiming;
use braid_isa::{Counter, Geometry};
use braid_reference::{Attention, attend, decode, largest_magnitude, max_abs_error};
use braid_runtime::cache::ContextId;
use braid_runtime::{Device, Element, KvShape, Options, Output, Query, Session, Tensor, Visible, causal};

const HEAD_DIM: usize = 16;
const KV_HEADS: usize = 2;
const Q_HEADS: usize = 6;
const LAYERS: usize = 2;

fn tensor(stimulus: &mut Stimulus, rows: usize, heads: usize) -> Tensor {
    let value = |s: &mut Stimulus| Element::Fp16.round((s.below(1 << 16) as f32 / 32_768.0 - 1.0) * 3.0);
    let data = (0..rows * heads * HEAD_DIM).map(|_| value(stimulus)).collect();
    Tensor { rows, heads, head_dim: HEAD_DIM, element: Element::Fp16, data }
}

/// A context of the session and copies of all that it holds, by layer.
struct Branch {
    context: ContextId,
    k: [Tensor; LAYERS],
    v: [Tensor; LAYERS],
}

/// Appends random positions to a session's context and to its copy.
fn grow(session: &mut Session<'_>, branch: &mut Branch, positions: usize, stimulus: &mut Stimulus) {
    let first = session.append(branch.context, positions).expect("room");
    for layer in 0..LAYERS {
        let (k, v) = (tensor(stimulus, positions, KV_HEADS), tensor(stimulus, positions, KV_HEADS));
        session.write(branch.context, layer, first, &k, &v, &mut |_| ()).expect("appended");
        for (own, new) in [(&mut branch.k[layer], k), (&mut branch.v[layer], v)] {
            own.rows += positions;
            own.data.extend(new.data);
        }
    }
}

fn fork(session: &mut Session<'_>, parent: &Branch) -> Branch {
    Branch { context: session.fork(parent.context).expect("live"), k: parent.k.clone(), v: parent.v.clone() }
}

/// A tree of three levels with branches that share partly filled pages; one branch adds nothing.
fn tree(session: &mut Session<'_>) -> Vec<Branch> {
    let mut stimulus = Stimulus::new(7);
    let mut s = || Stimulus::new(u64::from(stimulus.below(1 << 30)));
    let nothing = || std::array::from_fn(|_| tensor(&mut Stimulus::new(1), 0, KV_HEADS));
    let mut root = Branch { context: session.create(), k: nothing(), v: nothing() };
    grow(session, &mut root, 37, &mut s());
    let mut left = fork(session, &root);
    let idle = fork(session, &root);
    grow(session, &mut left, 21, &mut s());
    grow(session, &mut root, 3, &mut s());
    let mut deep = fork(session, &left);
    grow(session, &mut left, 1, &mut s());
    grow(session, &mut deep, 19, &mut s());
    grow(session, &mut left, 2, &mut s());
    let mut other = Branch { context: session.create(), k: nothing(), v: nothing() };
    grow(session, &mut other, 18, &mut s());
    vec![root, left, idle, deep, other]
}

struct Case {
    q: Vec<Tensor>,
    visible: Vec<Vec<Visible>>,
}

/// The last tokens of every branch, causal; one token sees two windows.
fn case(branches: &[Branch]) -> Case {
    let mut stimulus = Stimulus::new(11);
    let tokens = [2, 3, 1, 4, 2];
    let q = tokens.iter().map(|&t| tensor(&mut stimulus, t, Q_HEADS)).collect();
    let mut visible: Vec<Vec<Visible>> = branches.iter().zip(tokens).map(|(b, t)| causal(b.k[0].rows - t, t)).collect();
    visible[3][1] = vec![3..20, 35..60];
    Case { q, visible }
}

fn launch(session: &mut Session<'_>, layer: usize, branches: &[Branch], case: &Case, chosen: &[usize]) -> Vec<Output> {
    let queries: Vec<Query<'_>> =
        chosen.iter().map(|&i| Query { context: branches[i].context, q: &case.q[i], visible: &case.visible[i] }).collect();
    session.attend(layer, &queries, &mut |_| ()).expect("the launch ends").0
}

fn device(engine: Engine) -> Box<dyn Device> {
    let timing = ChannelTiming { latency: 5, stall_once_in: 4, seed: 3 };
    open(&Setup { geometry: Geometry::TINY, engine, channel_beats: 1 << 12, timing, dump: None }).expect("a preset")
}

fn session(device: &mut dyn Device) -> Session<'_> {
    let shape = KvShape { layers: LAYERS, kv_heads: KV_HEADS, head_dim: HEAD_DIM, k: Element::Fp16, v: Element::Fp16, pages_per_pe: 12 };
    Session::new(device, shape, Options::default()).expect("it fits")
}

#[test]
fn a_tree_of_contexts_gives_golden_bits_close_to_f64() {
    with_stack(|| {
        let (mut rtl, mut golden) = (device(Engine::Compiled), device(Engine::Golden));
        let (mut rtl, mut golden) = (session(rtl.as_mut()), session(golden.as_mut()));
        let (branches, others) = (tree(&mut rtl), tree(&mut golden));
        let case = case(&branches);
        for layer in 0..LAYERS {
            let outputs = launch(&mut rtl, layer, &branches, &case, &[0, 1, 2, 3, 4]);
            assert_eq!(outputs, launch(&mut golden, layer, &others, &case, &[0, 1, 2, 3, 4]));
            for ((output, branch), (q, visible)) in outputs.iter().zip(&branches).zip(case.q.iter().zip(&case.visible)) {
                let values = |t: &Tensor| decode(braid_reference::Element::Fp16, &t.data);
                let shape = Attention {
                    rows: q.rows,
                    q_heads: Q_HEADS,
                    positions: branch.k[layer].rows,
                    kv_heads: KV_HEADS,
                    head_dim: HEAD_DIM,
                    scale: 0.25,
                };
                let ranges: Vec<Vec<std::ops::Range<usize>>> =
                    visible.iter().map(|r| r.iter().map(|r| r.start as usize..r.end as usize).collect()).collect();
                let v = values(&branch.v[layer]);
                let expected = attend(&shape, &values(q), &values(&branch.k[layer]), &v, &ranges).expect("shapes that fit");
                let got: Vec<f64> = output.o.iter().map(|&bits| f64::from(f32::from_bits(bits))).collect();
                assert!(max_abs_error(&got, &expected.o) <= 5e-4 * largest_magnitude(&v));
            }
        }
    });
}

#[test]
fn a_branch_has_the_same_bits_alone_and_beside_others() {
    with_stack(|| {
        let mut golden = device(Engine::Golden);
        let mut session = session(golden.as_mut());
        let branches = tree(&mut session);
        let case = case(&branches);
        let together = launch(&mut session, 0, &branches, &case, &[0, 1, 2, 3, 4]);
        let reversed = launch(&mut session, 0, &branches, &case, &[4, 3, 2, 1, 0]);
        for i in 0..branches.len() {
            assert_eq!(launch(&mut session, 0, &branches, &case, &[i]), together[i..=i], "branch {i} alone");
            assert_eq!(reversed[4 - i], together[i], "branch {i} in another order");
        }
    });
}

#[test]
fn a_shared_prefix_is_stored_once_and_read_once() {
    with_stack(|| {
        let mut rtl = device(Engine::Compiled);
        let mut session = session(rtl.as_mut());
        let nothing = || std::array::from_fn(|_| tensor(&mut Stimulus::new(1), 0, KV_HEADS));
        let mut parent = Branch { context: session.create(), k: nothing(), v: nothing() };
        grow(&mut session, &mut parent, 16 * 16, &mut Stimulus::new(2));
        let branches: Vec<Branch> = (0..6).map(|_| fork(&mut session, &parent)).collect();
        assert_eq!((session.cache().usage().used, session.cache().usage().without_sharing), (16, 7 * 16));
        let q: Vec<Tensor> = (0..6).map(|i| tensor(&mut Stimulus::new(20 + i), 1, Q_HEADS)).collect();
        let visible = causal(255, 1);
        let queries: Vec<Query<'_>> = branches.iter().zip(&q).map(|(b, q)| Query { context: b.context, q, visible: &visible }).collect();
        let (_, report) = session.attend(0, &queries, &mut |_| ()).expect("the launch ends");
        // Four pages of 64 beats on PE 0, for each of two KV heads: nothing is read twice, however many branches there are.
        assert_eq!(report.counter(0, Counter::ChannelBeats), 2 * 4 * 64);
    });
}

#[test]
fn what_a_session_refuses_names_the_thing_and_changes_nothing() {
    let mut golden = device(Engine::Golden);
    let mut session = session(golden.as_mut());
    let context = session.create();
    session.append(context, 20).expect("room");
    let error = |e: braid_runtime::SessionError| e.to_string();
    let (k, q) = (tensor(&mut Stimulus::new(1), 4, KV_HEADS), tensor(&mut Stimulus::new(2), 1, 5));
    assert!(error(session.write(context, 0, 18, &k, &k, &mut |_| ()).unwrap_err()).contains("positions 18..22"));
    assert!(error(session.write(context, 0, 0, &k, &q, &mut |_| ()).unwrap_err()).contains("v has shape"));
    let visible = causal(19, 1);
    assert!(error(session.attend(0, &[Query { context, q: &q, visible: &visible }], &mut |_| ()).unwrap_err()).contains("a multiple of 2"));
    let refused = session.append(context, 16 * 4 * 12).unwrap_err();
    assert!(error(refused).contains("of 48 are free"));
    assert_eq!(session.cache().table(context).expect("live").length(), 20);
    session.free(context).expect("live");
    assert!(error(session.append(context, 1).unwrap_err()).contains("was freed"));
}
