//! From what transactions saw to the dependencies between them.

use std::collections::{BTreeMap, BTreeSet};

use super::graph::{Dependency, Graph};
use super::{Anomalies, Anomaly, Element, End, Key, Model, Observed, Step, Value};

/// Whose write an element is and what became of it.
#[derive(Debug, Clone, Copy)]
struct Origin {
    txn: usize,
    /// It reached the database: its transaction committed and did not take it back.
    effective: bool,
    /// For registers: its transaction's last write of the key.
    last: bool,
    deletes: bool,
}

struct Checker<'a> {
    model: Model,
    history: &'a [Observed],
    origins: BTreeMap<Element, Origin>,
    /// Effective writes of each key in the order they took effect.
    orders: BTreeMap<Key, Vec<Element>>,
    graph: Graph,
    found: Anomalies,
}

/// The anomalies of a history, whose last transaction read every key after all others ended.
pub fn check(model: Model, history: &[Observed]) -> Anomalies {
    let read_only = history.iter().map(|txn| txn.only_plain_reads).collect();
    let mut checker = Checker {
        model,
        history,
        origins: BTreeMap::new(),
        orders: BTreeMap::new(),
        graph: Graph::new(read_only),
        found: Anomalies::new(),
    };
    checker.collect_origins();
    checker.collect_orders();
    checker.check_end_state();
    checker.add_overwrites();
    for txn in 0..history.len() {
        checker.follow(txn);
    }
    checker.add_real_time();
    checker.graph.find_cycles(&mut checker.found);
    checker.found
}

/// Whether a later step takes `index` back.
fn is_undone(steps: &[Step], index: usize) -> bool {
    let mut later = steps.iter().skip(index + 1);
    later.any(|step| matches!(step, Step::Undo { steps } if *steps <= index))
}

impl Checker<'_> {
    fn note(&mut self, anomaly: Anomaly, example: String) {
        self.found.entry(anomaly).or_insert(example);
    }

    fn collect_origins(&mut self) {
        for (txn, observed) in self.history.iter().enumerate() {
            let mut last_of = BTreeMap::new();
            for (index, step) in observed.steps.iter().enumerate() {
                let Step::Write {
                    key,
                    element,
                    deletes,
                } = step
                else {
                    continue;
                };
                let undone = is_undone(&observed.steps, index);
                let origin = Origin {
                    txn,
                    effective: observed.is_committed() && !undone,
                    last: true,
                    deletes: *deletes,
                };
                self.origins.insert(*element, origin);
                if undone {
                    continue;
                }
                if let Some(earlier) = last_of.insert(*key, *element) {
                    self.origins.entry(earlier).and_modify(|o| o.last = false);
                }
            }
        }
    }

    /// Lists tell their order at the end; registers are ordered by commit versions.
    fn collect_orders(&mut self) {
        match self.model {
            Model::List => {
                let last = self.history.last().map(|txn| txn.steps.clone());
                for step in last.into_iter().flatten() {
                    if let Step::Read { rows, .. } = step {
                        self.orders.extend(rows);
                    }
                }
            }
            Model::Register => self.collect_register_orders(),
        }
    }

    fn collect_register_orders(&mut self) {
        let mut committed: Vec<_> = self.history.iter().collect();
        committed.sort_by_key(|txn| match txn.end {
            End::Committed(version) => version,
            End::Aborted => 0,
        });
        for step in committed.into_iter().flat_map(|txn| &txn.steps) {
            if let Step::Write { key, element, .. } = step
                && self
                    .origins
                    .get(element)
                    .is_some_and(|o| o.effective && o.last)
            {
                self.orders.entry(*key).or_default().push(*element);
            }
        }
    }

    fn check_end_state(&mut self) {
        let in_end_state: BTreeSet<Element> = match self.model {
            Model::List => self.orders.values().flatten().copied().collect(),
            Model::Register => return self.check_end_registers(),
        };
        for (element, origin) in self.origins.clone() {
            if origin.effective && !in_end_state.contains(&element) {
                let example = format!("T{} appended {element}", origin.txn);
                self.note(Anomaly::LostWrite, example);
            }
        }
    }

    fn check_end_registers(&mut self) {
        let Some(end) = self.history.last() else {
            return;
        };
        for step in &end.steps {
            let Step::Read { rows, .. } = step else {
                continue;
            };
            for (key, value) in rows {
                let last = self.orders.get(key).and_then(|order| order.last()).copied();
                let expected = last.filter(|element| !self.origins[element].deletes);
                if value.first().copied() != expected {
                    let example = format!("k{key} ends as {value:?}, not {expected:?}");
                    self.note(Anomaly::LostWrite, example);
                }
            }
        }
    }

    fn add_overwrites(&mut self) {
        for order in self.orders.values() {
            for pair in order.windows(2) {
                if let (Some(before), Some(after)) =
                    (self.origins.get(&pair[0]), self.origins.get(&pair[1]))
                {
                    self.graph
                        .add(before.txn, after.txn, Dependency::WriteWrite);
                }
            }
        }
    }

    /// Walks one transaction with its own writes in mind.
    fn follow(&mut self, txn: usize) {
        let observed = &self.history[txn];
        for (index, step) in observed.steps.iter().enumerate() {
            let Step::Read { rows, predicate } = step else {
                continue;
            };
            for (key, value) in rows {
                let own = own_writes(&observed.steps, index, *key);
                match self.model {
                    Model::List => self.read_list(txn, *key, value, &own, *predicate),
                    Model::Register => self.read_register(txn, *key, value, &own, *predicate),
                }
            }
        }
    }

    fn read_list(
        &mut self,
        txn: usize,
        key: Key,
        value: &Value,
        own: &[(Element, bool)],
        predicate: bool,
    ) {
        let own: Vec<Element> = own.iter().map(|(element, _)| *element).collect();
        let Some(seen) = value.strip_suffix(own.as_slice()) else {
            let example = format!("T{txn} wrote {own:?} to k{key} and read {value:?}");
            return self.note(Anomaly::Internal, example);
        };
        self.check_sources(txn, key, seen);
        if !self.history[txn].is_committed() {
            return;
        }
        let order = self.orders.get(&key).cloned().unwrap_or_default();
        if !order.starts_with(seen) {
            let example = format!("T{txn} read {seen:?} of k{key}, which became {order:?}");
            return self.note(Anomaly::IncompatibleOrder, example);
        }
        if let Some(origin) = seen.last().and_then(|last| self.origins.get(last)) {
            self.graph.add(origin.txn, txn, Dependency::WriteRead);
        }
        self.add_anti_dependency(txn, &order, seen.len(), predicate);
    }

    fn read_register(
        &mut self,
        txn: usize,
        key: Key,
        value: &Value,
        own: &[(Element, bool)],
        predicate: bool,
    ) {
        if let Some((element, deletes)) = own.last() {
            let expected: &[Element] = if *deletes { &[] } else { &[*element] };
            if value != expected {
                let example = format!("T{txn} wrote {expected:?} to k{key} and read {value:?}");
                self.note(Anomaly::Internal, example);
            }
            return;
        }
        self.check_sources(txn, key, value);
        if !self.history[txn].is_committed() {
            return;
        }
        let order = self.orders.get(&key).cloned().unwrap_or_default();
        let Some(place) = self.place_of(&order, value.first().copied()) else {
            return;
        };
        if place > 0
            && let Some(origin) = self.origins.get(&order[place - 1])
        {
            self.graph.add(origin.txn, txn, Dependency::WriteRead);
        }
        self.add_anti_dependency(txn, &order, place, predicate);
    }

    /// How many writes of the order a read has behind it. Absence is told by one deletion, or
    /// by none; where several would explain it the read tells nothing.
    fn place_of(&self, order: &[Element], value: Option<Element>) -> Option<usize> {
        if let Some(value) = value {
            return order.iter().position(|e| *e == value).map(|at| at + 1);
        }
        let is_absent = |place: &usize| *place == 0 || self.origins[&order[*place - 1]].deletes;
        let mut places = (0..=order.len()).filter(is_absent);
        let first = places.next();
        first.filter(|_| places.next().is_none())
    }

    fn add_anti_dependency(&mut self, txn: usize, order: &[Element], seen: usize, predicate: bool) {
        let mut later = order[seen..].iter().filter_map(|e| self.origins.get(e));
        let kind = if predicate {
            Dependency::ReadWritePredicate
        } else {
            Dependency::ReadWriteItem
        };
        if !self.history[txn].guards_reads {
            return;
        }
        if let Some(next) = later.find(|origin| origin.txn != txn) {
            self.graph.add(txn, next.txn, kind);
        }
    }

    /// Everything read must come from a committed transaction and be its last word.
    fn check_sources(&mut self, txn: usize, key: Key, seen: &[Element]) {
        for element in seen {
            let example = format!("T{txn} read {element} of k{key}");
            match self.origins.get(element).copied() {
                Some(origin) if origin.txn == txn => self.note(Anomaly::Internal, example),
                Some(origin) if origin.effective => {}
                _ => self.note(Anomaly::AbortedRead, example),
            }
        }
        let Some(origin) = seen.last().and_then(|last| self.origins.get(last)) else {
            return;
        };
        if origin.effective && !origin.last {
            self.note(Anomaly::IntermediateRead, format!("T{txn} read k{key}"));
        }
    }

    fn add_real_time(&mut self) {
        for (before, earlier) in self.history.iter().enumerate() {
            for (after, later) in self.history.iter().enumerate() {
                let both = earlier.is_committed() && later.is_committed();
                if both && earlier.ended < later.began {
                    self.graph.add(before, after, Dependency::RealTime);
                }
            }
        }
    }
}

/// Writes of `key` before step `index` that are not taken back by then.
fn own_writes(steps: &[Step], index: usize, key: Key) -> Vec<(Element, bool)> {
    let so_far = &steps[..index];
    let mut own = Vec::new();
    for (at, step) in so_far.iter().enumerate() {
        if let Step::Write {
            key: written,
            element,
            deletes,
        } = step
            && *written == key
            && !is_undone(so_far, at)
        {
            own.push((*element, *deletes));
        }
    }
    own
}
