//! What the reads of a history say: the order of each list, and what no order can explain.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::verdict::{Anomaly, Verdict};
use super::{Element, History, Key, Operation, Outcome, Transaction};

/// Whose append an element is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin {
    /// Index of the transaction.
    pub(super) txn: usize,
    key: Option<Key>,
}

/// A read of a committed transaction, without what it had appended itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeenPrefix {
    pub(super) txn: usize,
    pub(super) key: Key,
    /// How many elements of the list's order it saw.
    pub(super) length: usize,
}

/// What reads say together.
#[derive(Debug, Default)]
pub(super) struct Observed {
    pub(super) origins: HashMap<Element, Origin>,
    /// The elements of each list in order, as far as anyone saw them.
    pub(super) orders: BTreeMap<Key, Vec<Element>>,
    /// Reads that agree with those orders.
    pub(super) reads: Vec<SeenPrefix>,
    /// Acknowledged appends that nobody saw, when nobody looked at the end either: they come
    /// after all that was seen.
    pub(super) unseen: BTreeMap<Key, Vec<(usize, Element)>>,
    /// Whether each transaction took effect, as far as anyone can tell.
    pub(super) effective: Vec<bool>,
}

/// Reads the history, and notes everything that is wrong without a cycle.
pub(super) fn observe(history: &History, verdict: &mut Verdict) -> Observed {
    let mut observed = Observed::default();
    observed.collect_origins(history, verdict);
    observed.collect_orders(history);
    observed.judge_orders(history, verdict);
    for (txn, transaction) in history.transactions.iter().enumerate() {
        if transaction.outcome == Outcome::Ok {
            observed.follow(txn, transaction, history, verdict);
        }
    }
    observed.find_effects(history);
    observed.find_unseen(history, verdict);
    observed
}

/// The reads of committed transactions.
fn reads(history: &History) -> impl Iterator<Item = (Key, &Vec<Element>)> {
    let committed = history.transactions.iter();
    committed
        .filter(|txn| txn.outcome == Outcome::Ok)
        .flat_map(|txn| &txn.operations)
        .filter_map(|operation| match operation {
            Operation::Read { key, list } => Some((*key, list)),
            Operation::Append { .. } => None,
        })
}

impl Observed {
    fn collect_origins(&mut self, history: &History, verdict: &mut Verdict) {
        for (txn, transaction) in history.transactions.iter().enumerate() {
            for (key, element) in appends(transaction) {
                let origin = Origin { txn, key };
                if let Some(other) = self.origins.insert(element, origin) {
                    verdict.note(Anomaly::Malformed, || {
                        let first = history.transactions[other.txn].name;
                        let second = transaction.name;
                        format!("{element} is appended by T{first} and by T{second}")
                    });
                }
            }
        }
    }

    /// A list only grows, so its longest value has every shorter one in it.
    fn collect_orders(&mut self, history: &History) {
        let mut longest: BTreeMap<Key, &Vec<Element>> = BTreeMap::new();
        let at_end = history.end_state.iter().flatten();
        let values = at_end.map(|(key, list)| (*key, list)).chain(reads(history));
        for (key, list) in values {
            let known = longest.entry(key).or_insert(list);
            if list.len() > known.len() {
                *known = list;
            }
        }
        let owned = longest.into_iter().map(|(key, list)| (key, list.clone()));
        self.orders = owned.collect();
    }

    fn judge_orders(&mut self, history: &History, verdict: &mut Verdict) {
        for (key, order) in &self.orders {
            let mut seen = HashSet::with_capacity(order.len());
            for element in order {
                if !seen.insert(element) {
                    verdict.note(Anomaly::Duplicate, || {
                        format!("key {key} has {element} twice: {}", tail(order))
                    });
                }
                self.judge_element(*key, *element, history, verdict);
            }
        }
        for (key, list) in history.end_state.iter().flatten() {
            // A key that nobody read has its order from here.
            let order = self.orders.get(key).map_or(&[][..], Vec::as_slice);
            if !order.starts_with(list) {
                verdict.note(Anomaly::IncompatibleOrder, || {
                    let (list, order) = (tail(list), tail(order));
                    format!("key {key} ends as {list}, and was read as {order}")
                });
            }
        }
    }

    fn judge_element(&self, key: Key, element: Element, history: &History, verdict: &mut Verdict) {
        let Some(origin) = self.origins.get(&element) else {
            verdict.note(Anomaly::Invented, || {
                format!("key {key} has {element}, which nobody appended")
            });
            return;
        };
        let writer = &history.transactions[origin.txn];
        if let Some(other) = origin.key.filter(|other| *other != key) {
            verdict.note(Anomaly::Invented, || {
                let name = writer.name;
                format!("key {key} has {element}, which T{name} appended to key {other}")
            });
        }
        if writer.outcome == Outcome::Failed {
            verdict.note(Anomaly::AbortedRead, || {
                let name = writer.name;
                format!("key {key} has {element} of T{name}, which failed")
            });
        }
    }

    /// Compares each read of one transaction with the order, and with what it did before.
    fn follow(
        &mut self,
        txn: usize,
        transaction: &Transaction,
        history: &History,
        verdict: &mut Verdict,
    ) {
        let mut own: BTreeMap<Key, Vec<Element>> = BTreeMap::new();
        let mut before: BTreeMap<Key, usize> = BTreeMap::new();
        for operation in &transaction.operations {
            let (key, list) = match operation {
                Operation::Append { key, element } => {
                    if let Some(key) = key {
                        own.entry(*key).or_default().push(*element);
                    }
                    continue;
                }
                Operation::Read { key, list } => (*key, list),
            };
            let mine = own.get(&key).map_or(&[][..], Vec::as_slice);
            let Some(others) = list.strip_suffix(mine) else {
                verdict.note(Anomaly::Internal, || {
                    let (name, list) = (transaction.name, tail(list));
                    format!("T{name} appended {mine:?} to key {key} and then read {list}")
                });
                continue;
            };
            let length = others.len();
            if *before.entry(key).or_insert(length) != length {
                verdict.note(Anomaly::Internal, || {
                    let (name, list) = (transaction.name, tail(list));
                    format!("T{name} read key {key} twice and then found {list}")
                });
                continue;
            }
            self.follow_read(SeenPrefix { txn, key, length }, list, history, verdict);
        }
    }

    fn follow_read(
        &mut self,
        seen: SeenPrefix,
        list: &[Element],
        history: &History,
        verdict: &mut Verdict,
    ) {
        let name = history.transactions[seen.txn].name;
        let key = seen.key;
        let order = self.orders.get(&key).map_or(&[][..], Vec::as_slice);
        if !order.starts_with(list) {
            verdict.note(Anomaly::IncompatibleOrder, || {
                let (list, order) = (tail(list), tail(order));
                format!("T{name} read key {key} as {list}, and it was also read as {order}")
            });
            return;
        }
        let last = list[..seen.length].last();
        let origin = last.and_then(|element| Some((element, self.origins.get(element)?)));
        if let Some((element, origin)) = origin {
            if origin.txn == seen.txn {
                verdict.note(Anomaly::Internal, || {
                    format!("T{name} read its own {element} on key {key} before appending it")
                });
                return;
            }
            let writer = &history.transactions[origin.txn];
            if let Some(later) = appended_after(writer, key, *element) {
                verdict.note(Anomaly::IntermediateRead, || {
                    let writer = writer.name;
                    format!("T{name} read key {key} up to {element} of T{writer}, which also appended {later}")
                });
            }
        }
        self.reads.push(seen);
    }

    fn find_effects(&mut self, history: &History) {
        let outcomes = history.transactions.iter();
        self.effective = outcomes.map(|txn| txn.outcome == Outcome::Ok).collect();
        for element in self.orders.values().flatten() {
            if let Some(origin) = self.origins.get(element) {
                self.effective[origin.txn] = true;
            }
        }
    }

    /// Appends of effective transactions that nobody saw: lost if someone looked at the end.
    fn find_unseen(&mut self, history: &History, verdict: &mut Verdict) {
        let lists: Vec<&Vec<Element>> = match &history.end_state {
            Some(end) => end.values().collect(),
            None => self.orders.values().collect(),
        };
        let seen: HashSet<Element> = lists.into_iter().flatten().copied().collect();
        for (txn, transaction) in history.transactions.iter().enumerate() {
            if !self.effective[txn] {
                continue;
            }
            for (key, element) in appends(transaction) {
                if seen.contains(&element) {
                    continue;
                }
                if history.end_state.is_some() {
                    verdict.note(Anomaly::LostAppend, || {
                        let name = transaction.name;
                        format!("{element}, appended by T{name}, is in no list at the end")
                    });
                } else if let Some(key) = key
                    && transaction.outcome == Outcome::Ok
                {
                    let unseen = self.unseen.entry(key).or_default();
                    unseen.push((txn, element));
                }
            }
        }
    }
}

/// What a transaction appended, in its order.
fn appends(transaction: &Transaction) -> impl Iterator<Item = (Option<Key>, Element)> {
    let operations = transaction.operations.iter();
    operations.filter_map(|operation| match operation {
        Operation::Append { key, element } => Some((*key, *element)),
        Operation::Read { .. } => None,
    })
}

/// The next element that `writer` appended to `key` after `element`.
fn appended_after(writer: &Transaction, key: Key, element: Element) -> Option<Element> {
    let mut appended = appends(writer).filter(|(to, _)| *to == Some(key));
    appended.find(|(_, appended)| *appended == element)?;
    appended.next().map(|(_, later)| later)
}

/// A list for people: all of a short one, the end of a long one.
fn tail(list: &[Element]) -> String {
    const SHOWN: usize = 12;
    match list.len().checked_sub(SHOWN) {
        None | Some(0) => format!("{list:?}"),
        Some(left_out) => {
            let shown: Vec<String> = list[left_out..].iter().map(Element::to_string).collect();
            format!("[{left_out} more, {}]", shown.join(", "))
        }
    }
}
