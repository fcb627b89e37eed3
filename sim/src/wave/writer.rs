//! The writer's thread: keeps the last cycles if asked for, and tells the format what changes when.

use super::CYCLE_NANOSECONDS;
use super::signals::{Signals, Value};
use super::sink::Sink;
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Changes after which the file is flushed.
pub const FLUSH_CHANGES: u64 = 1_000_000;

/// A word of the sample and its new value.
pub(super) type Change = (u32, u32);

/// What changed in one cycle.
#[derive(Debug, Clone)]
pub(super) struct Cycle {
    pub(super) cycle: u64,
    /// The clock that rose at its start; `None`: all.
    pub(super) rose: Option<usize>,
    /// Its changes in the chunk.
    pub(super) changes: usize,
}

/// Some cycles with their changes, one after the other.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    pub(super) cycles: Vec<Cycle>,
    pub(super) changes: Vec<Change>,
}

pub(super) enum Message {
    Chunk(Chunk),
    /// Write what the ring holds, and everything after it.
    Trigger,
    Close,
}

/// What both threads see.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// The simulation is to stop recording.
    pub(super) stop: AtomicBool,
    pub(super) failed: AtomicBool,
    error: Mutex<Option<io::Error>>,
    closed: Mutex<bool>,
    closes: Condvar,
}

impl Shared {
    pub(super) fn error(&self) -> Option<io::Error> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Waits until the file is closed; false if it took longer.
    pub(super) fn wait(&self, limit: Duration) -> bool {
        let closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        *self.closes.wait_timeout_while(closed, limit, |closed| !*closed).unwrap_or_else(PoisonError::into_inner).0
    }

    fn close(&self) {
        *self.closed.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.closes.notify_all();
    }
}

/// Says that the file is closed when the writer's thread ends, however it does.
struct Closed(Arc<Shared>);

impl Drop for Closed {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The last cycles, and the state before the first of them.
struct Ring {
    len: usize,
    cycles: VecDeque<(Cycle, Vec<Change>)>,
}

pub(super) struct Writer {
    sink: Box<dyn Sink>,
    values: Vec<Value>,
    /// Values that a word belongs to: those of word `w` are `users[first[w]..first[w + 1]]`.
    first: Vec<u32>,
    users: Vec<u32>,
    /// Value and number of every clock.
    clocks: Vec<(usize, usize)>,
    words: Vec<u32>,
    /// Cycle in which a value was last written, counted from 1.
    written_in: Vec<u64>,
    cycles: u64,
    changes: u64,
    ring: Option<Ring>,
    limbs: Vec<u64>,
    /// Chunks go back empty.
    empty: Sender<Chunk>,
}

impl Writer {
    pub(super) fn new(sink: Box<dyn Sink>, signals: &Signals, last: Option<u64>, empty: Sender<Chunk>) -> Self {
        let mut by_word: Vec<Vec<u32>> = vec![Vec::new(); signals.len];
        let mut clocks = Vec::new();
        for (v, value) in signals.values.iter().enumerate() {
            match value {
                Value::Clock(number) => clocks.push((v, *number)),
                Value::Words(slots) => slots.iter().for_each(|s| by_word[s.index].push(v as u32)),
            }
        }
        let mut first = vec![0];
        let mut users = Vec::new();
        for list in by_word {
            users.extend(list);
            first.push(users.len() as u32);
        }
        Self {
            sink,
            first,
            users,
            clocks,
            words: vec![0; signals.len],
            written_in: vec![0; signals.values.len()],
            values: signals.values.clone(),
            cycles: 0,
            changes: 0,
            ring: last.map(|n| Ring { len: usize::try_from(n).unwrap_or(usize::MAX), cycles: VecDeque::new() }),
            limbs: Vec::new(),
            empty,
        }
    }

    /// Runs until told to close, or until nobody can say so any more.
    pub(super) fn run(mut self, messages: &Receiver<Message>, shared: Arc<Shared>) {
        let shared = Closed(shared);
        let result = self.serve(messages);
        if let Err(error) = result {
            self.sink.repair();
            *shared.0.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            shared.0.failed.store(true, Ordering::Release);
        }
    }

    fn serve(&mut self, messages: &Receiver<Message>) -> io::Result<()> {
        loop {
            match messages.recv() {
                Ok(Message::Chunk(chunk)) => self.chunk(chunk)?,
                Ok(Message::Trigger) => self.release()?,
                Ok(Message::Close) | Err(_) => break,
            }
        }
        self.release()?;
        self.sink.flush()
    }

    fn chunk(&mut self, mut chunk: Chunk) -> io::Result<()> {
        let mut rest = &chunk.changes[..];
        for cycle in chunk.cycles.drain(..) {
            let (changes, left) = rest.split_at(cycle.changes);
            rest = left;
            let Some(ring) = &mut self.ring else {
                self.cycle(&cycle, changes)?;
                continue;
            };
            ring.cycles.push_back((cycle, changes.to_vec()));
            if ring.cycles.len() > ring.len
                && let Some((_, old)) = ring.cycles.pop_front()
            {
                for (word, value) in old {
                    self.words[word as usize] = value;
                }
            }
        }
        chunk.changes.clear();
        // The simulation may be over.
        let _ = self.empty.send(chunk);
        Ok(())
    }

    /// Writes what the ring holds; from then on there is none.
    fn release(&mut self) -> io::Result<()> {
        for (cycle, changes) in self.ring.take().map(|r| r.cycles).into_iter().flatten() {
            self.cycle(&cycle, &changes)?;
        }
        Ok(())
    }

    fn cycle(&mut self, cycle: &Cycle, changes: &[Change]) -> io::Result<()> {
        self.cycles += 1;
        let whole = self.cycles == 1;
        let rises = |number: usize| cycle.rose.is_none_or(|one| one == number);
        let start = cycle.cycle * CYCLE_NANOSECONDS;
        self.sink.time(start)?;
        for &(word, value) in changes {
            self.words[word as usize] = value;
        }
        for i in 0..self.clocks.len() {
            let (value, number) = self.clocks[i];
            if whole || rises(number) {
                self.sink.change(value, &[u64::from(rises(number))])?;
                self.changes += 1;
            }
        }
        if whole {
            for v in 0..self.values.len() {
                self.value(v)?;
            }
        } else {
            for &(word, _) in changes {
                for u in self.first[word as usize]..self.first[word as usize + 1] {
                    self.value(self.users[u as usize] as usize)?;
                }
            }
        }
        if !self.clocks.is_empty() {
            self.sink.time(start + CYCLE_NANOSECONDS / 2)?;
        }
        for i in 0..self.clocks.len() {
            let (value, number) = self.clocks[i];
            if rises(number) {
                self.sink.change(value, &[0])?;
                self.changes += 1;
            }
        }
        if self.changes >= FLUSH_CHANGES || self.cycles.is_power_of_two() {
            self.changes = 0;
            self.sink.flush()?;
        }
        Ok(())
    }

    /// Writes a value of words, once a cycle.
    fn value(&mut self, v: usize) -> io::Result<()> {
        let Value::Words(slots) = &self.values[v] else { return Ok(()) };
        if std::mem::replace(&mut self.written_in[v], self.cycles) == self.cycles {
            return Ok(());
        }
        self.changes += 1;
        if let &[slot] = &slots[..] {
            return self.sink.change(v, &[u64::from(self.words[slot.index])]);
        }
        self.limbs.clear();
        self.limbs.resize(self.values[v].width().div_ceil(64), 0);
        let mut offset = 0;
        for slot in slots {
            let (limb, shift) = (offset / 64, offset % 64);
            let word = u64::from(self.words[slot.index]);
            self.limbs[limb] |= word << shift;
            if shift > 32 && limb + 1 < self.limbs.len() {
                self.limbs[limb + 1] |= word >> (64 - shift);
            }
            offset += usize::from(slot.width);
        }
        self.sink.change(v, &self.limbs)
    }
}
