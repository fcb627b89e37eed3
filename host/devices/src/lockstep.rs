//! The SIP in several simulators at once: the same pins driven, every register compared every cycle.

use std::sync::{Arc, Mutex, PoisonError};

use braid_hdl::model::channel::{ChannelInputs, ChannelOutputs};
use braid_hdl::model::pins::{ControlDrive, ControlSee, DataDrive, DataSee};
use braid_hdl::model::{RustHdlPins, SipPins};
use braid_hdl::preset::{DefaultSip, SmallSip, TinySip};
use braid_runtime::Device;
use braid_sim::Design;
use braid_sim::lockstep::{BlockRegisters, Divergence, difference};
use rust_hdl::prelude::Block;

use crate::{Engine, EnginePins, OpenError, RtlDevice, Setup};

/// What a lock step has found so far.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// Cycles compared.
    pub cycles: u64,
    /// Registers compared in each of them.
    pub registers: usize,
    /// The first difference; nothing is compared after it.
    pub divergence: Option<Box<Divergence>>,
}

/// Looks at a comparison while the device that makes it is at work.
#[derive(Clone, Debug, Default)]
pub struct Watch(Arc<Mutex<Comparison>>);

impl Watch {
    /// What has been found so far.
    pub fn comparison(&self) -> Comparison {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change(&self, change: impl FnOnce(&mut Comparison)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

type Registers = Vec<(String, Vec<u64>)>;

/// One simulator of a lock step.
trait Simulated {
    fn pins(&mut self) -> &mut dyn SipPins;
    fn view(&self) -> &dyn SipPins;
    /// Digest of the registers, if they have one that others have too.
    fn digest(&mut self) -> Option<u64>;
    fn registers(&mut self) -> Registers;
}

impl<E: braid_sim::Engine> Simulated for EnginePins<E> {
    fn pins(&mut self) -> &mut dyn SipPins {
        self
    }

    fn view(&self) -> &dyn SipPins {
        self
    }

    fn digest(&mut self) -> Option<u64> {
        Some(self.engine().digest())
    }

    fn registers(&mut self) -> Registers {
        self.engine().registers()
    }
}

/// rust-hdl's own simulator.
struct Slow<P> {
    pins: P,
    registers: BlockRegisters,
}

impl<P: SipPins> Simulated for Slow<P> {
    fn pins(&mut self) -> &mut dyn SipPins {
        &mut self.pins
    }

    fn view(&self) -> &dyn SipPins {
        &self.pins
    }

    fn digest(&mut self) -> Option<u64> {
        None
    }

    fn registers(&mut self) -> Registers {
        self.registers.read(self.pins.design())
    }
}

/// The pins of all simulators; the first one's are seen. After the first difference, and after the last cycle to compare, the first goes on alone.
struct LockstepPins {
    simulated: Vec<(&'static str, Box<dyn Simulated>)>,
    limit: u64,
    watch: Watch,
}

impl LockstepPins {
    fn first(&mut self) -> &mut dyn SipPins {
        self.simulated[0].1.pins()
    }

    fn all(&mut self, mut drive: impl FnMut(&mut dyn SipPins)) {
        self.simulated.iter_mut().for_each(|(_, s)| drive(s.pins()));
    }

    /// What the first sees; the others must see the same.
    fn agreed<T: PartialEq + std::fmt::Debug>(&mut self, pins: &str, mut see: impl FnMut(&mut dyn SipPins) -> T) -> T {
        let seen = see(self.first());
        let left_name = self.simulated[0].0;
        let differs = self.simulated.iter_mut().skip(1).find_map(|(name, s)| {
            let other = see(s.pins());
            (other != seen).then(|| (*name, format!("{pins}: {seen:?} against {other:?}")))
        });
        if let Some((right_name, register)) = differs {
            let cycle = self.watch.comparison().cycles;
            let (left_name, right_name) = (left_name.to_string(), right_name.to_string());
            self.end(Some(Box::new(Divergence { cycle, register, left_name, left: vec![], right_name, right: vec![] })));
        }
        seen
    }

    fn end(&mut self, divergence: Option<Box<Divergence>>) {
        self.simulated.truncate(1);
        self.watch.change(|c| c.divergence = c.divergence.take().or(divergence));
    }

    fn compare(&mut self) {
        let cycle = self.watch.comparison().cycles;
        let Some(((left_name, left), others)) = self.simulated.split_first_mut() else { return };
        let digest = left.digest();
        let mut known: Option<Registers> = None;
        for (right_name, right) in others {
            let equal = digest.is_some() && right.digest() == digest;
            if equal {
                continue;
            }
            let left_registers = known.get_or_insert_with(|| left.registers());
            let right_registers = right.registers();
            self.watch.change(|c| c.registers = c.registers.max(right_registers.len()));
            if let Err(divergence) = difference(cycle, left_name, left_registers, right_name, &right_registers) {
                self.end(Some(divergence));
                return;
            }
        }
        self.watch.change(|c| c.cycles += 1);
        if cycle + 1 >= self.limit {
            self.end(None);
        }
    }
}

impl SipPins for LockstepPins {
    fn pes(&self) -> usize {
        self.simulated[0].1.view().pes()
    }

    fn design(&self) -> &dyn Block {
        self.simulated[0].1.view().design()
    }

    fn drive_control(&mut self, drive: &ControlDrive) {
        self.all(|pins| pins.drive_control(drive));
    }

    fn drive_data(&mut self, drive: &DataDrive) {
        self.all(|pins| pins.drive_data(drive));
    }

    fn drive_channel(&mut self, pe: usize, outputs: &ChannelOutputs) {
        self.all(|pins| pins.drive_channel(pe, outputs));
    }

    fn settle(&mut self) {
        self.all(|pins| pins.settle());
    }

    fn control(&mut self) -> ControlSee {
        self.agreed("control port", |pins| pins.control())
    }

    fn data(&mut self) -> DataSee {
        self.agreed("data port", |pins| pins.data())
    }

    fn channel(&mut self, pe: usize) -> ChannelInputs {
        self.agreed("memory channel", |pins| pins.channel(pe))
    }

    fn clock(&mut self) {
        self.all(|pins| pins.clock());
        if self.simulated.len() > 1 {
            self.compare();
        }
    }
}

/// Builds a machine that runs in all `engines` at once (at least two, none of them golden) for the first `limit` cycles, and a watch over it.
///
/// Call it on a thread with enough stack ([`crate::with_stack`]).
///
/// # Errors
/// If the preset has no RTL type or cannot be simulated.
pub fn open_lockstep(setup: &Setup, engines: &[Engine], limit: u64) -> Result<(Box<dyn Device>, Watch), OpenError> {
    let mut simulated: Vec<(&'static str, Box<dyn Simulated>)> = Vec::new();
    for &engine in engines {
        let one = match setup.geometry.name {
            "tiny" => one(setup, engine, Box::<TinySip>::default(), RustHdlPins::new),
            "small" => one(setup, engine, Box::<SmallSip>::default(), RustHdlPins::new),
            "default" => one(setup, engine, Box::<DefaultSip>::default(), RustHdlPins::new),
            name => Err(OpenError::Preset(name.to_string())),
        }?;
        simulated.push((engine.name(), one));
    }
    if simulated.is_empty() {
        return Err(OpenError::Engines);
    }
    let watch = Watch::default();
    watch.change(|c| c.registers = simulated[0].1.registers().len());
    let pins = LockstepPins { simulated, limit, watch: watch.clone() };
    Ok((Box::new(RtlDevice::new(setup.geometry, pins, setup.channel_beats, setup.timing)), watch))
}

fn one<B: Block + 'static, P: SipPins + 'static>(
    setup: &Setup,
    engine: Engine,
    mut top: Box<B>,
    rust_hdl: fn(Box<B>) -> P,
) -> Result<Box<dyn Simulated>, OpenError> {
    let pes = setup.geometry.pes();
    match engine {
        Engine::Golden => Err(OpenError::Engines),
        Engine::RustHdl => {
            let pins = rust_hdl(top);
            let registers = BlockRegisters::new(pins.design());
            Ok(Box::new(Slow { pins, registers }))
        }
        Engine::Compiled => {
            top.connect_all();
            Ok(Box::new(EnginePins::new(Design::lower(top.as_ref())?.compile()?, pes)?))
        }
        Engine::Interpreter => {
            top.connect_all();
            Ok(Box::new(EnginePins::new(Design::lower(top.as_ref())?.interpret()?, pes)?))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_hdl::model::ChannelTiming;
    use braid_isa::Geometry;
    use braid_runtime::{Element, Options, Problem, Tensor, execute};

    fn problem() -> Problem {
        let tensor = |rows: usize, seed: usize| {
            let data = (0..rows * 16).map(|i| Element::Fp16.round(((i * 7 + seed) % 13) as f32 / 4.0 - 1.5)).collect();
            Tensor { rows, heads: 1, head_dim: 16, element: Element::Fp16, data }
        };
        let whole = std::iter::once(0..40).collect::<Vec<_>>();
        Problem::new(tensor(2, 1), tensor(40, 2), tensor(40, 3), vec![whole; 2]).expect("a problem that fits")
    }

    fn setup() -> Setup {
        Setup {
            geometry: Geometry::TINY,
            engine: Engine::Compiled,
            channel_beats: 64,
            timing: ChannelTiming { latency: 4, stall_once_in: 5, seed: 2 },
            dump: None,
        }
    }

    #[test]
    fn engines_agree_on_every_register_of_a_launch() {
        crate::with_stack(|| {
            let (mut device, watch) = open_lockstep(&setup(), &[Engine::Compiled, Engine::Interpreter], u64::MAX).expect("a preset");
            execute(device.as_mut(), &problem(), &Options::default(), &mut |_| ()).expect("the launch ends");
            let found = watch.comparison();
            assert!(found.divergence.is_none(), "{:?}", found.divergence);
            assert_eq!(found.cycles, device.simulated_cycles());
            assert!(found.registers > 500);
        });
    }

    #[test]
    fn rust_hdls_own_simulator_agrees_in_the_first_cycles() {
        crate::with_stack(|| {
            let (mut device, watch) = open_lockstep(&setup(), &[Engine::Compiled, Engine::RustHdl], 300).expect("a preset");
            execute(device.as_mut(), &problem(), &Options::default(), &mut |_| ()).expect("the launch ends");
            let found = watch.comparison();
            assert!(found.divergence.is_none(), "{:?}", found.divergence);
            assert_eq!(found.cycles, 300);
        });
    }

    /// An engine with one register flipped in one cycle.
    #[test]
    fn a_flipped_bit_is_named_with_its_cycle() {
        crate::with_stack(|| {
            let mut top = Box::<TinySip>::default();
            top.connect_all();
            let design = Design::lower(top.as_ref()).expect("it lowers");
            let engine = || design.compile().expect("it compiles");
            let flipped = Flipped { pins: EnginePins::new(engine(), 4).expect("a SIP"), left: 200 };
            let first = EnginePins::new(engine(), 4).expect("a SIP");
            let watch = Watch::default();
            let simulated: Vec<(&'static str, Box<dyn Simulated>)> = vec![("compiled", Box::new(first)), ("flipped", Box::new(flipped))];
            let pins = LockstepPins { simulated, limit: u64::MAX, watch: watch.clone() };
            let mut device = RtlDevice::new(Geometry::TINY, pins, 64, setup().timing);
            execute(&mut device, &problem(), &Options::default(), &mut |_| ()).expect("the first goes on alone");
            let divergence = watch.comparison().divergence.expect("a difference");
            assert_eq!(divergence.cycle, 199);
            assert!(divergence.register.contains("cycles"), "{}", divergence.register);
        });
    }

    struct Flipped {
        pins: EnginePins<braid_sim::engine::Compiled>,
        left: u32,
    }

    impl Simulated for Flipped {
        fn pins(&mut self) -> &mut dyn SipPins {
            &mut self.pins
        }
        fn view(&self) -> &dyn SipPins {
            &self.pins
        }
        fn digest(&mut self) -> Option<u64> {
            use braid_sim::Engine;
            self.left -= 1;
            if self.left == 0 {
                let engine = self.pins.engine();
                let signal = engine.signal("registers.cycles.q").expect("a register");
                let value = engine.peek(signal);
                engine.set_register(signal, &[value ^ 1]).expect("a register");
            }
            Some(self.pins.engine().digest())
        }
        fn registers(&mut self) -> Registers {
            use braid_sim::Engine;
            self.pins.engine().registers()
        }
    }
}
