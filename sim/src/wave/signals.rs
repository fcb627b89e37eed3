//! Which signals a dump has: the tree of scopes and variables, and the distinct values behind them.

use super::WaveError;
use super::block::Places;
use crate::engine::{Engine, Slot, Watch, Watched};
use crate::netlist::{Body, Design, Module, SignalKind, Type};
use rust_hdl::core::block::Block;
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// Name of the top's scope.
const TOP: &str = "top";

/// Words of a memory: `cube$0.pe$0.store.bank$1[0..16]`, or without a range all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryWords {
    /// Path of the memory.
    pub path: String,
    /// Addresses; `None`: all.
    pub words: Option<Range<usize>>,
}

impl FromStr for MemoryWords {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let range = text.strip_suffix(']').and_then(|t| t.rsplit_once('[')).and_then(|(path, r)| Some((path, r.split_once("..")?)));
        let Some((path, (from, to))) = range else { return Ok(Self { path: text.into(), words: None }) };
        let number = |n: &str| n.trim().parse::<usize>().map_err(|_| format!("'{n}' is no address; write PATH[0..16]"));
        let words = number(from)?..number(to)?;
        if words.is_empty() {
            return Err(format!("the range {from}..{to} is empty"));
        }
        Ok(Self { path: path.into(), words: Some(words) })
    }
}

impl fmt::Display for MemoryWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.words {
            Some(words) => write!(f, "{}[{}..{}]", self.path, words.start, words.end),
            None => f.write_str(&self.path),
        }
    }
}

/// What a dump is to show. Paths go from the top down, `cube$0.pe$3.datapath`; `cube[0].pe[3].datapath` and a leading `top.` work too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Scopes with everything below them, or single signals. If neither scopes nor memory words are given: the whole design.
    pub scopes: Vec<String>,
    /// Memory words.
    pub memories: Vec<MemoryWords>,
}

/// A named variable of a dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Name in its scope.
    pub name: String,
    /// Path below the top, as an engine takes it.
    pub path: String,
    /// Port direction, local or constant.
    pub kind: SignalKind,
    /// Its value among [`Signals::values`]; variables with one driver share it.
    pub(super) value: usize,
    /// Its enum among [`Signals::enums`].
    pub(super) names: Option<usize>,
}

/// A distinct value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Value {
    /// Clock of this number.
    Clock(usize),
    /// Words of the sample, lowest first.
    Words(Vec<Slot>),
}

impl Value {
    /// Width in bits.
    pub(super) fn width(&self) -> usize {
        match self {
            Self::Clock(_) => 1,
            Self::Words(slots) => slots.iter().map(|s| usize::from(s.width)).sum(),
        }
    }
}

/// A step through the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Item {
    /// Into a scope: name and module.
    Enter(String, String),
    /// Out of it.
    Leave,
    /// A variable.
    Variable(usize),
}

/// The variables of a dump, and how an engine gives their values.
#[derive(Debug, Clone)]
pub struct Signals {
    pub(super) items: Vec<Item>,
    pub(super) variables: Vec<Variable>,
    pub(super) values: Vec<Value>,
    /// Enums: type name and names of the values.
    pub(super) enums: Enums,
    /// Words of a sample.
    pub(super) len: usize,
    /// What fills them.
    pub(super) source: Source,
}

/// What fills the words of a sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// An engine.
    Engine(Watch),
    /// The block itself.
    Block(Places),
}

/// A variable on its way into [`Signals`].
struct Found<'a> {
    name: String,
    path: String,
    kind: SignalKind,
    ty: &'a Type,
    /// Memory path and address.
    word: Option<(String, usize)>,
}

struct Walk<'a> {
    design: &'a Design,
    scopes: Vec<(String, bool)>,
    /// Memory, words, whether it was found.
    memories: Vec<(&'a MemoryWords, String, bool)>,
    items: Vec<Item>,
    found: Vec<Found<'a>>,
    error: Option<WaveError>,
}

/// `top.pe[3].q` as `pe$3.q`.
fn normal(path: &str) -> String {
    let flat: String = path.chars().filter(|&c| c != ']').map(|c| if c == '[' { '$' } else { c }).collect();
    flat.strip_prefix("top.").map_or(flat.clone(), str::to_string)
}

/// True if `path` is `scope` or lies below it.
fn within(path: &str, scope: &str) -> bool {
    scope.is_empty() || path.strip_prefix(scope).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

impl<'a> Walk<'a> {
    fn chosen(&mut self, path: &str) -> bool {
        let mut any = self.scopes.is_empty() && self.memories.is_empty();
        for (scope, used) in &mut self.scopes {
            if within(path, scope) {
                (any, *used) = (true, true);
            }
        }
        any
    }

    /// True if something below the path may be chosen.
    fn leads(&self, path: &str) -> bool {
        let below = |wanted: &str| within(wanted, path) || within(path, wanted);
        (self.scopes.is_empty() && self.memories.is_empty())
            || self.scopes.iter().any(|s| below(&s.0))
            || self.memories.iter().any(|m| below(&m.1))
    }

    fn module(&mut self, name: &str, path: &str, module: &'a Module) {
        let mark = self.items.len();
        self.items.push(Item::Enter(name.into(), module.name.clone()));
        let join = |name: &str| if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
        for signal in module.signals.iter().filter(|s| s.width > 0) {
            let path = join(&signal.name);
            if self.chosen(&path) {
                self.items.push(Item::Variable(self.found.len()));
                self.found.push(Found { name: signal.name.clone(), path, kind: signal.kind.clone(), ty: &signal.ty, word: None });
            }
        }
        if let Body::Memory(memory) = &module.body {
            let depth = 1 << module.signals[memory.read_address.0].width;
            self.memory(path, depth, &module.signals[memory.read_data.0].ty);
        }
        for instance in &module.instances {
            let path = join(&instance.name);
            if self.leads(&path) {
                self.module(&instance.name, &path, &self.design.modules[instance.module.0]);
            }
        }
        if self.items.len() == mark + 1 && !path.is_empty() {
            self.items.pop();
        } else {
            self.items.push(Item::Leave);
        }
    }

    fn memory(&mut self, path: &str, depth: usize, ty: &'a Type) {
        for (wanted, scope, used) in &mut self.memories {
            if *scope != path {
                continue;
            }
            *used = true;
            let words = wanted.words.clone().unwrap_or(0..depth);
            if words.end > depth {
                let reason = format!("it has {depth} words");
                self.error.get_or_insert(WaveError::Memory { words: wanted.to_string(), reason });
                continue;
            }
            for address in words {
                let name = format!("word${address}");
                self.items.push(Item::Variable(self.found.len()));
                let word = Some((path.to_string(), address));
                self.found.push(Found { path: format!("{path}.{name}"), name, kind: SignalKind::Local, ty, word });
            }
        }
    }
}

/// Tree and variables of a selection.
fn select<'a>(design: &'a Design, selection: &'a Selection) -> Result<(Vec<Item>, Vec<Found<'a>>), WaveError> {
    let scopes: Vec<(String, bool)> =
        selection.scopes.iter().map(|s| normal(s)).filter(|s| !s.is_empty() && s != TOP).map(|s| (s, false)).collect();
    // Naming the top is asking for everything.
    let whole = scopes.len() < selection.scopes.len();
    let mut walk = Walk {
        design,
        scopes: if whole { Vec::new() } else { scopes },
        memories: selection.memories.iter().map(|m| (m, normal(&m.path), false)).collect(),
        items: Vec::new(),
        found: Vec::new(),
        error: None,
    };
    if whole {
        walk.scopes = vec![(String::new(), true)];
    }
    let top = design.top();
    walk.module(TOP, "", top);
    if let Some(error) = walk.error {
        return Err(error);
    }
    if let Some((scope, _)) = walk.scopes.iter().find(|s| !s.1) {
        let known = top.instances.iter().map(|i| i.name.as_str()).collect::<Vec<_>>().join(", ");
        return Err(WaveError::Scope { scope: scope.clone(), known });
    }
    if let Some((words, ..)) = walk.memories.iter().find(|m| !m.2) {
        return Err(WaveError::Memory { words: words.to_string(), reason: "there is no such memory".into() });
    }
    Ok((walk.items, walk.found))
}

impl Signals {
    /// The chosen signals of a design, read from an engine of it. A signal without a value (a local that nothing drives or reads) is left out.
    ///
    /// # Errors
    /// No such scope or memory; [`SimError`](crate::SimError) of the code generator.
    pub fn of(design: &Design, engine: &mut dyn Engine, selection: &Selection) -> Result<Self, WaveError> {
        let (items, found) = select(design, selection)?;
        let mut watched = Vec::new();
        for clock in design.top().signals.iter().filter(|s| s.kind == SignalKind::Input && s.is_clock()) {
            watched.push(Watched::Signal(engine.signal(&clock.name)?));
        }
        let clocks = watched.len();
        let mut memories = HashMap::new();
        let mut kept = Vec::with_capacity(found.len());
        for f in &found {
            let handle = match &f.word {
                Some((path, address)) => {
                    let memory = match memories.get(path) {
                        Some(&known) => known,
                        None => *memories.entry(path.clone()).or_insert(engine.memory(path)?),
                    };
                    Some(Watched::Word(memory, *address))
                }
                None => engine.signal(&f.path).ok().map(Watched::Signal),
            };
            kept.push(handle.map(|handle| {
                watched.push(handle);
                watched.len() - 1
            }));
        }
        let watch = engine.watch(&watched)?;
        let (items, variables, values, enums) = build(items, &found, |i| {
            let slots = &watch.slots[kept[i]?];
            let clock = watch.slots[..clocks].iter().position(|c| c == slots);
            Some(clock.map_or_else(|| Value::Words(slots.clone()), Value::Clock))
        });
        Ok(Self { items, variables, values, enums, len: watch.len, source: Source::Engine(watch) })
    }

    /// The chosen signals of a design, read from the block that rust-hdl's own simulator runs. Every clock is taken for the same one.
    ///
    /// # Errors
    /// No such scope; memory words, which rust-hdl does not show.
    pub fn of_block(design: &Design, block: &dyn Block, selection: &Selection) -> Result<Self, WaveError> {
        let (items, found) = select(design, selection)?;
        if let Some(words) = selection.memories.first() {
            let reason = "rust-hdl's simulator does not show memories; use another engine".into();
            return Err(WaveError::Memory { words: words.to_string(), reason });
        }
        let mut len = 0;
        let mut slot = |width: usize| {
            len += 1;
            Slot { index: len - 1, width: width as u8 }
        };
        let all: Vec<Value> = found
            .iter()
            .map(|f| if *f.ty == Type::Clock { Value::Clock(0) } else { Value::Words(f.ty.words().into_iter().map(&mut slot).collect()) })
            .collect();
        let (items, variables, values, enums) = build(items, &found, |i| Some(all[i].clone()));
        let mut signals = Self { items, variables, values, enums, len, source: Source::Block(Places::default()) };
        signals.source = Source::Block(Places::new(block, &signals));
        Ok(signals)
    }

    /// Every variable, in the order of the file.
    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }

    /// Width of a variable in bits.
    pub fn width(&self, variable: &Variable) -> usize {
        self.values[variable.value].width()
    }

    /// True if a variable is a clock, which toggles without being sampled.
    pub fn is_clock(&self, variable: &Variable) -> bool {
        matches!(self.values[variable.value], Value::Clock(_))
    }

    /// Words of a variable in a sample, lowest first; none for a clock.
    pub fn slots(&self, variable: &Variable) -> &[Slot] {
        match &self.values[variable.value] {
            Value::Clock(_) => &[],
            Value::Words(slots) => slots,
        }
    }

    /// Words of a sample.
    pub fn sample_len(&self) -> usize {
        self.len
    }

    /// Distinct values: what a change is compared and written for.
    pub fn distinct_values(&self) -> usize {
        self.values.len()
    }
}

type Enums = Vec<(String, Vec<String>)>;

/// Variables with their distinct values; those without a value are left out.
fn build(items: Vec<Item>, found: &[Found<'_>], value: impl Fn(usize) -> Option<Value>) -> (Vec<Item>, Vec<Variable>, Vec<Value>, Enums) {
    let (mut kept, mut variables, mut values, mut enums) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut known: HashMap<Value, usize> = HashMap::new();
    for item in items {
        let Item::Variable(i) = item else {
            kept.push(item);
            continue;
        };
        let Some(value) = value(i) else { continue };
        let f = &found[i];
        let names = match f.ty {
            Type::Enum { name, variants } => Some(enumeration(&mut enums, name, variants)),
            _ => None,
        };
        let fresh = values.len();
        let at = *known.entry(value.clone()).or_insert(fresh);
        if at == fresh {
            values.push(value);
        }
        kept.push(Item::Variable(variables.len()));
        variables.push(Variable { name: f.name.clone(), path: f.path.clone(), kind: f.kind.clone(), value: at, names });
    }
    (kept, variables, values, enums)
}

/// Number of an enum, which is added if it is new.
fn enumeration(enums: &mut Enums, name: &str, variants: &[String]) -> usize {
    let short = name.rsplit("::").next().unwrap_or(name).replace(char::is_whitespace, "_");
    let entry = (short, variants.to_vec());
    enums.iter().position(|e| *e == entry).unwrap_or_else(|| {
        enums.push(entry);
        enums.len() - 1
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_words_are_read_with_and_without_a_range() {
        let words: MemoryWords = "pe$0.ram[2..5]".parse().unwrap();
        assert_eq!((words.path.as_str(), words.words.clone()), ("pe$0.ram", Some(2..5)));
        assert_eq!(words.to_string(), "pe$0.ram[2..5]");
        let all: MemoryWords = "pe[0].ram".parse().unwrap();
        assert_eq!((all.path.as_str(), all.words), ("pe[0].ram", None));
        assert_eq!("ram[x..5]".parse::<MemoryWords>().unwrap_err(), "'x' is no address; write PATH[0..16]");
        assert_eq!("ram[5..5]".parse::<MemoryWords>().unwrap_err(), "the range 5..5 is empty");
    }

    #[test]
    fn a_scope_holds_what_is_below_it_and_nothing_that_only_starts_alike() {
        assert!(within("pe$1.acc", "pe$1"));
        assert!(within("pe$1", "pe$1"));
        assert!(!within("pe$10.acc", "pe$1"));
        assert_eq!(normal("top.pe[3].rows[1].q"), "pe$3.rows$1.q");
    }
}
