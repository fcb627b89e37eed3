//! What the text of one module refers to: names of places, bits that are read, constants, helper signals.

use super::names::Names;
use super::options::Options;
use crate::netlist::{Body, Design, Instance, InstanceRef, Module, Place, Signal, SignalKind, SignalRef};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A signal that the source does not have.
#[derive(Debug)]
pub(super) struct Helper {
    pub(super) name: String,
    pub(super) width: usize,
    /// Its value where it is driven by a continuous assignment; otherwise a process assigns it.
    pub(super) value: Option<String>,
}

/// Names and uses within one module.
pub(super) struct Scope<'a> {
    pub(super) design: &'a Design,
    pub(super) module: &'a Module,
    pub(super) options: &'a Options,
    pub(super) names: Names,
    /// Name of every place; ports of children are nets of the module.
    places: HashMap<Place, String>,
    /// Instance names.
    pub(super) instances: Vec<String>,
    /// Child inputs that are connected to another signal directly.
    pub(super) direct: HashMap<Place, Place>,
    /// Bits that are read, by name.
    read: HashMap<String, Vec<bool>>,
    /// Enum variants in use: printed name, width, value; by source name.
    pub(super) variants: BTreeMap<String, (String, usize, u32)>,
    /// Constants in use.
    pub(super) constants: BTreeSet<SignalRef>,
    pub(super) helpers: Vec<Helper>,
    by_value: HashMap<String, String>,
    settled: BTreeMap<Place, String>,
}

impl<'a> Scope<'a> {
    pub(super) fn new(design: &'a Design, module: &'a Module, options: &'a Options, ports: &dyn Fn(usize) -> Vec<String>) -> Self {
        let mut names = Names::new(&options.style.separator, options.capability.cpp_words);
        let mut places = HashMap::new();
        let is_port = |s: &Signal| matches!(s.kind, SignalKind::Input | SignalKind::Output);
        // Ports first: their names are the same whatever else the module holds.
        for wanted in [true, false] {
            for (i, s) in module.signals.iter().enumerate().filter(|(_, s)| is_port(s) == wanted) {
                places.insert(Place::Own(SignalRef(i)), names.claim(&s.name));
            }
        }
        // A linter objects to an instance called like a signal inside it.
        let instance = |i: &Instance, names: &mut Names| {
            let inside = design.modules[i.module.0].signals.iter().any(|s| s.name == i.name);
            names.claim(&if inside { format!("{}$block", i.name) } else { i.name.clone() })
        };
        let instances: Vec<String> = module.instances.iter().map(|i| instance(i, &mut names)).collect();
        for (k, instance) in module.instances.iter().enumerate() {
            for (i, port) in ports(instance.module.0).iter().enumerate() {
                let wanted = format!("{}${port}", instance.name);
                places.insert(Place::Child(InstanceRef(k), SignalRef(i)), names.claim(&wanted));
            }
        }
        Self {
            design,
            module,
            options,
            names,
            places,
            instances,
            direct: HashMap::new(),
            read: HashMap::new(),
            variants: BTreeMap::new(),
            constants: BTreeSet::new(),
            helpers: Vec::new(),
            by_value: HashMap::new(),
            settled: BTreeMap::new(),
        }
    }

    pub(super) fn signal(&self, place: Place) -> &'a Signal {
        match place {
            Place::Own(s) => &self.module.signals[s.0],
            Place::Child(i, s) => &self.child(i).signals[s.0],
        }
    }

    pub(super) fn child(&self, at: InstanceRef) -> &'a Module {
        &self.design.modules[self.module.instances[at.0].module.0]
    }

    /// True if the child is written as an own module; registers and memories are written in place.
    pub(super) fn is_block(&self, at: InstanceRef) -> bool {
        matches!(self.child(at).body, Body::Kernel(_))
    }

    /// Name under which a place is declared.
    pub(super) fn declared(&self, place: Place) -> &str {
        &self.places[&place]
    }

    /// Name from which a place is read.
    pub(super) fn name(&mut self, place: Place) -> String {
        let place = self.direct.get(&place).copied().unwrap_or(place);
        if let (Place::Own(s), SignalKind::Constant(_)) = (place, &self.signal(place).kind) {
            self.constants.insert(s);
        }
        self.places[&place].clone()
    }

    /// Text that reads bits `low .. low + width` of a name whose signal is `total` bits wide.
    pub(super) fn bits(&mut self, name: &str, total: usize, low: usize, width: usize) -> String {
        let read = self.read.entry(name.to_string()).or_insert_with(|| vec![false; total]);
        read[low..low + width].fill(true);
        select(name, total, low, width)
    }

    /// Text that reads a whole place.
    pub(super) fn whole(&mut self, place: Place) -> String {
        let (name, width) = (self.name(place), self.signal(place).width);
        self.bits(&name, width, 0, width)
    }

    /// Bits of a declared name that nothing reads, as ranges (lowest bit, width).
    pub(super) fn unread(&self, name: &str, total: usize) -> Vec<(usize, usize)> {
        let Some(read) = self.read.get(name) else { return vec![(0, total)] };
        let mut out = Vec::new();
        let mut at = 0;
        while at < total {
            let end = (at..total).find(|&i| read[i] != read[at]).unwrap_or(total);
            if !read[at] {
                out.push((at, end - at));
            }
            at = end;
        }
        out
    }

    /// Name of an enum variant.
    pub(super) fn variant(&mut self, source: &str, width: usize, value: u32) -> String {
        if let Some(known) = self.variants.get(source) {
            return known.0.clone();
        }
        let name = self.names.claim(source);
        self.variants.insert(source.into(), (name.clone(), width, value));
        name
    }

    /// A helper net that holds a value; equal values share it.
    pub(super) fn net(&mut self, width: usize, value: String) -> String {
        if let Some(name) = self.by_value.get(&value) {
            return name.clone();
        }
        let name = self.names.claim("part$1");
        self.by_value.insert(value.clone(), name.clone());
        self.helpers.push(Helper { name: name.clone(), width, value: Some(value) });
        name
    }

    /// A helper variable that a process assigns.
    pub(super) fn variable(&mut self, width: usize) -> String {
        let name = self.names.claim("part$1");
        self.helpers.push(Helper { name: name.clone(), width, value: None });
        name
    }

    /// A net that follows a place which the reading process itself writes, so that the process sees it settle.
    pub(super) fn settled(&mut self, place: Place) -> String {
        if let Some(name) = self.settled.get(&place) {
            return name.clone();
        }
        let value = self.whole(place);
        let name = self.names.claim(&format!("{}$settled", self.places[&place]));
        self.helpers.push(Helper { name: name.clone(), width: self.signal(place).width, value: Some(value) });
        self.settled.insert(place, name.clone());
        name
    }
}

/// `name[high:low]`, or the bare name for all of it.
pub(super) fn select(name: &str, total: usize, low: usize, width: usize) -> String {
    match width {
        w if w == total => name.into(),
        1 => format!("{name}[{low}]"),
        _ => format!("{name}[{}:{low}]", low + width - 1),
    }
}
