//! What the control plane that leads has: its pool, and records on their way to the store.

use std::collections::VecDeque;

use manxdb_core::check::ensure;
use manxdb_core::{Core as _, LocalTime};

use crate::control::Control;
use crate::election::{Term, ToStore};
use crate::record::Record;

/// The state of a leader.
#[derive(Debug)]
pub(super) struct Leader {
    pub(super) term: Term,
    /// It serves before this time and not at it; `None`: no limit.
    pub(super) until: Option<LocalTime>,
    pub(super) control: Control,
    /// Records that the store has not taken yet,
    pub(super) unwritten: VecDeque<Record>,
    /// the number of the first of them,
    pub(super) first: u64,
    /// and when they were last sent.
    pub(super) tried: LocalTime,
}

impl Leader {
    pub(super) fn new(term: Term, until: Option<LocalTime>, control: Control) -> Self {
        Self {
            term,
            until,
            control,
            unwritten: VecDeque::new(),
            first: 1,
            tried: LocalTime::default(),
        }
    }

    /// What is true of a leader between two steps.
    pub(super) fn check(&self) -> Result<(), String> {
        ensure(self.first > 0, || "records are counted from 1".to_owned())?;
        // Messages are held by the tokens of the inner core, and set free by the store's numbers.
        let numbered = self.first + self.unwritten.len() as u64 - 1;
        ensure(numbered == self.control.records(), || {
            format!(
                "record {numbered} is the last for the store, {} for the control plane",
                self.control.records()
            )
        })?;
        self.control.check()
    }
}

/// Records that the store has not accepted yet, except for the first `without`.
pub(super) fn write(leader: &Leader, without: usize) -> ToStore {
    assert!(
        without < leader.unwritten.len(),
        "who writes to the store has something to write: {without} of {} are there",
        leader.unwritten.len()
    );
    ToStore::Write {
        term: leader.term,
        first: leader.first + without as u64,
        records: leader.unwritten.iter().skip(without).cloned().collect(),
    }
}
