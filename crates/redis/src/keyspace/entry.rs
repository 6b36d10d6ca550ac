//! What is kept of one key.

use super::effects::RowWrite;
use super::rows;
use super::value::{Kind, Value};

/// What a key takes beside its bytes: its entry and its place in the map.
const ENTRY_BYTES: usize = size_of::<Entry>() + 40;
/// What an element takes beside its bytes.
const ELEMENT_BYTES: usize = 48;

/// A key's value and what belongs to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The object.
    pub value: Value,
    /// When its time is over, in milliseconds since 1970; 0: never.
    pub expires: u64,
    /// Under which its elements have rows; 0: it is one row.
    pub generation: u64,
    /// Bytes counted for it in the keyspace's memory.
    pub(super) counted: usize,
}

/// What of an entry is in the keyspace's counts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counted {
    pub bytes: usize,
    pub is_cold: bool,
    pub kind: Kind,
}

impl Entry {
    /// What is counted of it; no bytes: it is new, and nothing is.
    pub(super) fn counted_as(&self) -> Counted {
        Counted {
            bytes: self.counted,
            is_cold: self.value.is_cold(),
            kind: self.value.kind(),
        }
    }

    /// An entry that never expires.
    #[must_use]
    pub fn new(value: Value) -> Self {
        Self {
            value,
            expires: 0,
            generation: 0,
            counted: 0,
        }
    }

    /// Whether its time is over.
    #[must_use]
    pub fn is_over(&self, now: u64) -> bool {
        self.expires > 0 && self.expires <= now
    }

    /// Whether the time of some of its fields is over.
    pub(super) fn has_due(&self, now: u64) -> bool {
        self.value.next_due().is_some_and(|at| at <= now)
    }

    /// Bytes of memory, without its key.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let elements = match &self.value {
            Value::Str(_) | Value::Cold(_) => 0,
            collection => collection.elements() * ELEMENT_BYTES,
        };
        ENTRY_BYTES + self.value.payload_bytes() + self.value.due_bytes() + elements
    }

    /// [`Entry::bytes`], from the elements themselves.
    pub(super) fn recounted_bytes(&self) -> usize {
        let mut bytes = ENTRY_BYTES;
        match &self.value {
            Value::Str(value) => bytes += value.len(),
            Value::Cold(_) => {}
            collection => collection.each_element(&mut |name, value| {
                // The number of a list's element is not in memory.
                let name = match collection {
                    Value::List(_) => 0,
                    _ => name.len(),
                };
                bytes += name + value.len() + ELEMENT_BYTES;
            }),
        }
        if let Value::Hash(hash) = &self.value {
            bytes += hash.recounted_due_bytes();
        }
        bytes
    }

    /// Whether its elements are to have rows of their own under a new generation.
    pub(super) fn needs_generation(&self) -> bool {
        self.value
            .pending()
            .is_some_and(|pending| pending.is_anew() || !pending.in_rows && !self.value.is_small())
    }

    /// Writes its row, whose key is `row`, and those of elements that changed.
    pub(super) fn write_rows(&mut self, row: Vec<u8>, out: &mut Vec<RowWrite>) {
        let needs_all = self.needs_generation();
        if let Some(pending) = self.value.pending_mut() {
            pending.in_rows |= needs_all;
        }
        let in_rows = self.value.pending().is_some_and(|pending| pending.in_rows);
        assert!(
            !in_rows || self.generation > 0,
            "elements have rows under a generation"
        );
        let elements_of = in_rows.then(|| rows::split_meta(&row)).flatten();
        let prefix = elements_of
            .map(|(db, epoch, key)| rows::element_prefix(db, epoch, key, self.generation));
        out.push(RowWrite {
            key: row,
            value: Some(rows::encode_meta(self)),
        });
        let Some(prefix) = prefix else {
            return;
        };
        let under = |sub: &[u8]| [&prefix[..], sub].concat();
        if needs_all {
            self.value.each_element(&mut |sub, value| {
                out.push(RowWrite {
                    key: under(sub),
                    value: Some(value.to_vec()),
                });
            });
        }
        let Some(pending) = self.value.pending_mut() else {
            return;
        };
        let changed = pending.take();
        pending.forget();
        if needs_all {
            return;
        }
        for sub in changed {
            out.push(RowWrite {
                key: under(&sub),
                value: self.value.element(&sub),
            });
        }
    }
}
