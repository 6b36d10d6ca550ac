//! What a backup keeps: a log that its master writes, applied as far as all backups have it.
//!
//! A backup executes nothing. What follows the part that all have is a *tail*: another master
//! may have it otherwise, so it can be cut off, and it is never applied and never shown.

use std::collections::VecDeque;
use std::iter::once;

use crate::disk::{ServerRecord, WholeStore};
use crate::execute::Execute;
use crate::ids::{Epoch, LogId, Position, View};
use crate::log::{Change, Entry, KeptLog, id_behind};
use crate::options::Options;
use crate::rifl::Rifl;

/// Entries, state and completion records of one process.
#[derive(Debug, Clone)]
pub(crate) struct Store<E> {
    /// The newest master heard of; older ones are refused.
    pub(crate) epoch: Epoch,
    /// The state after `applied` entries.
    pub(crate) state: E,
    /// The completion records after as many.
    pub(crate) rifl: Rifl,
    /// All backups have that much.
    pub(crate) applied: Position,
    /// The last entries of that: servers that follow the log may lack them.
    pub(crate) kept: KeptLog,
    /// What follows.
    pub(crate) tail: VecDeque<Entry>,
    /// The log is as the master of `epoch` has it up to here.
    verified: Position,
    /// The last master that this took entries or a copy from.
    matched: Epoch,
    /// The view that the copy was for.
    pub(crate) copied: View,
}

impl<E: Execute> Store<E> {
    /// Nothing.
    pub(crate) fn empty() -> Self {
        Self {
            epoch: Epoch(0),
            state: E::empty(),
            rifl: Rifl::default(),
            applied: 0,
            kept: KeptLog::default(),
            tail: VecDeque::new(),
            verified: 0,
            matched: Epoch(0),
            copied: View::default(),
        }
    }

    /// What was written down; nothing when the machine cannot read its state.
    pub(crate) fn from_whole(whole: WholeStore) -> Option<Self> {
        let store = Self {
            epoch: whole.epoch,
            state: E::restore(&whole.state)?,
            rifl: whole.rifl,
            applied: whole.applied.at,
            kept: KeptLog::behind(whole.applied),
            tail: whole.tail.into(),
            verified: whole.verified,
            // No master sends a copy to a process and then goes on with the next one.
            matched: Epoch(0),
            copied: whole.copied,
        };
        store.check().is_ok().then_some(store)
    }

    /// To be written down, of a server whose log has gone on since its life `base`.
    pub(crate) fn to_whole(&self, base: u64) -> WholeStore {
        assert!(base > 0, "lives begin with 1");
        assert!(
            self.applied <= self.verified && self.verified <= self.last(),
            "what is written down can be read again"
        );
        WholeStore {
            base,
            epoch: self.epoch,
            copied: self.copied,
            applied: self.kept.end(),
            verified: self.verified,
            state: self.state.snapshot(),
            rifl: self.rifl.clone(),
            tail: self.tail.iter().cloned().collect(),
        }
    }

    /// Does again what was written down after it was done; whether it follows from what is there.
    pub(crate) fn replay(&mut self, record: ServerRecord) -> bool {
        let (epoch, entries) = match &record {
            ServerRecord::Whole(_) => return false,
            ServerRecord::Obeyed { epoch, entries, .. }
            | ServerRecord::Led { epoch, entries, .. } => (*epoch, entries),
        };
        let is_later = |entry: &Entry| entry.epoch > epoch;
        if entries.iter().any(is_later) || !self.fence(epoch) {
            return false;
        }
        match record {
            ServerRecord::Whole(_) => false,
            ServerRecord::Obeyed {
                after,
                entries,
                last,
                synced,
                ..
            } => {
                let options = Options::default();
                self.append(&options, after, entries, last, synced)
                    .is_some()
            }
            ServerRecord::Led {
                after,
                entries,
                synced,
                ..
            } => self.lead(after, entries, synced),
        }
    }

    /// Takes what this server made as a master, behind `after`: its log ends there.
    fn lead(&mut self, after: Position, entries: Vec<Entry>, synced: Position) -> bool {
        let Some(keep) = after.checked_sub(self.applied) else {
            return false;
        };
        if !self.goes_on(after, &entries) {
            return false;
        }
        self.tail
            .truncate(usize::try_from(keep).unwrap_or(usize::MAX));
        self.tail.extend(entries);
        self.verified = self.last();
        assert!(self.verified >= after, "entries make a log longer");
        self.apply(synced.min(self.verified), &Options::default());
        assert_eq!(self.verified, self.last(), "a master's log is its own");
        true
    }

    /// The end of the log.
    pub(crate) fn last(&self) -> Position {
        self.applied + self.tail.len() as Position
    }

    /// Refuses masters before this one from now on; whether it is not refused itself.
    pub(crate) fn fence(&mut self, epoch: Epoch) -> bool {
        if epoch > self.epoch {
            self.epoch = epoch;
            self.verified = self.applied;
        }
        assert!(self.epoch >= epoch, "a fence is never lowered");
        epoch == self.epoch
    }

    /// Takes entries that follow `after`; how far the log is then as the master has it, or
    /// nothing when they do not fit on.
    pub(crate) fn append(
        &mut self,
        options: &Options,
        after: Position,
        entries: Vec<Entry>,
        last: Position,
        synced: Position,
    ) -> Option<Position> {
        // What all backups have, this one has as the master has it, although nobody told it yet.
        self.verified = self.verified.max(synced.min(self.last()));
        if after > self.verified && !self.skips_gap(after, options) {
            return None; // a hole
        }
        if !self.goes_on(after, &entries) {
            return None; // no master's log
        }
        self.matched = self.epoch;
        let mut at = after;
        for entry in entries {
            at += 1;
            if at <= self.applied {
                continue; // all have it: so it is the same
            }
            let index = usize::try_from(at - self.applied - 1).unwrap_or(usize::MAX);
            match self.tail.get(index) {
                Some(own) if own.epoch == entry.epoch => {}
                _ => {
                    // Another master wrote what follows, and not all had it.
                    self.tail.truncate(index);
                    self.tail.push_back(entry);
                }
            }
        }
        self.verified = self.verified.max(at);
        assert!(
            self.verified <= self.last(),
            "only entries that are there are as the master has them"
        );
        if self.verified >= last && !keeps_tail(options) {
            // The master has no more: neither may this backup, or a later master would take it
            // for executed.
            let keep = usize::try_from(self.verified - self.applied).unwrap_or(usize::MAX);
            self.tail.truncate(keep);
        }
        self.apply(synced.min(self.verified), options);
        Some(self.verified)
    }

    /// Whether entries follow a place of this log as a master's do: none is of an earlier master than the
    /// one before it, or of a later one than the master that writes here.
    fn goes_on(&self, after: Position, entries: &[Entry]) -> bool {
        // All have what is applied: so it is the same.
        let from = after.max(self.applied);
        let same = usize::try_from(from - after).unwrap_or(usize::MAX);
        let before = id_behind(self.kept.end(), &self.tail, from);
        let new = entries.iter().skip(same);
        before.is_some_and(|before| is_in_order(before.epoch, new, self.epoch))
    }

    /// Applies what all backups have.
    fn apply(&mut self, synced: Position, options: &Options) {
        assert!(
            synced <= self.verified,
            "only what the master has is applied"
        );
        while self.applied < synced {
            let Some(entry) = self.tail.pop_front() else {
                break;
            };
            self.applied += 1;
            assert!(
                entry.epoch <= self.epoch,
                "no entry of a master that is not there yet (I7)"
            );
            self.rifl.take(self.applied, &entry.change);
            if let Change::Executed { effects, .. } = &entry.change {
                self.state.apply(effects);
            }
            self.kept.push(entry);
        }
        self.kept.trim(options.kept_bytes);
        assert_eq!(
            self.kept.end().at,
            self.applied,
            "the last entry that is applied is known"
        );
    }

    /// Whether a copy of everything that the master of `epoch` had up to a place is needed. It is not
    /// when the log is known to be that master's up to there, as when the copy is sent again after entries
    /// that followed it. What another master had installed may be something else, although it ends at the
    /// same place: that master may never have opened.
    pub(crate) fn needs(&self, last: Position) -> bool {
        self.matched != self.epoch || self.verified < last
    }

    /// Becomes a copy of everything that the master of `epoch` has up to its `end`.
    pub(crate) fn install(&mut self, end: LogId, state: E, rifl: Rifl) {
        assert!(self.needs(end.at), "nothing newer is thrown away");
        assert!(end.epoch <= self.epoch, "a copy of a master that is there");
        self.matched = self.epoch;
        self.state = state;
        self.rifl = rifl;
        self.applied = end.at;
        self.kept = KeptLog::behind(end);
        self.verified = end.at;
        self.tail.clear();
        assert!(!self.needs(end.at), "a copy is made once for each master");
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        if self.verified < self.applied || self.verified > self.last() {
            return Err(format!(
                "verified {} outside of {}..{}",
                self.verified,
                self.applied,
                self.last()
            ));
        }
        if !is_in_order(self.kept.end().epoch, self.tail.iter(), self.epoch) {
            return Err(
                "an entry of an earlier master than the one before it, or of one to come"
                    .to_owned(),
            );
        }
        if self.kept.end().at != self.applied || self.matched > self.epoch {
            let (kept, applied) = (self.kept.end(), self.applied);
            return Err(format!(
                "{kept:?} is the last of {applied} that are applied"
            ));
        }
        self.rifl.check(self.applied)
    }
}

/// Whether entries may lie between one that the master `from` made and what the master `until` makes next.
fn is_in_order<'a>(from: Epoch, entries: impl Iterator<Item = &'a Entry>, until: Epoch) -> bool {
    let epochs = entries.map(|entry| entry.epoch);
    once(from).chain(epochs).chain(once(until)).is_sorted()
}

#[cfg(feature = "mutants")]
fn keeps_tail(options: &Options) -> bool {
    options.has(crate::mutants::Mutant::TailNotCut)
}

#[cfg(not(feature = "mutants"))]
fn keeps_tail(_: &Options) -> bool {
    false
}

impl<E: Execute> Store<E> {
    /// With a planted defect, entries that are not there count as applied.
    #[cfg(feature = "mutants")]
    fn skips_gap(&mut self, to: Position, options: &Options) -> bool {
        let skips = options.has(crate::mutants::Mutant::GapSkipped);
        if skips {
            let epoch = self.kept.end().epoch;
            self.kept = KeptLog::behind(LogId { at: to, epoch });
            self.tail.clear();
            (self.applied, self.verified) = (to, to);
        }
        skips
    }

    #[cfg(not(feature = "mutants"))]
    #[allow(clippy::unused_self)] // a planted defect asks
    fn skips_gap(&mut self, _: Position, _: &Options) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine_tests::{Nothing, entry, log_id};

    /// A backup to which the first master sent three entries, of which all have one.
    fn with_a_tail(options: &Options) -> Store<Nothing> {
        let mut store = Store::empty();
        assert!(store.fence(Epoch(1)));
        let entries = vec![entry(1, 1), entry(1, 2), entry(1, 3)];
        assert_eq!(store.append(options, 0, entries, 3, 1), Some(3));
        assert_eq!((store.applied, store.last()), (1, 3));
        store
    }

    /// The end of the log after another master, which has one entry more than all had, has spoken.
    fn after_a_shorter_log(options: &Options) -> Position {
        let mut store = with_a_tail(options);
        assert!(store.fence(Epoch(2)));
        assert_eq!(store.append(options, 1, vec![entry(1, 2)], 2, 1), Some(2));
        assert!(store.check().is_ok());
        store.last()
    }

    #[test]
    fn a_tail_that_the_next_master_does_not_have_is_cut_off() {
        assert_eq!(after_a_shorter_log(&Options::default()), 2);
    }

    #[cfg(feature = "mutants")]
    #[test]
    fn a_tail_that_is_not_cut_is_found() {
        let options = Options {
            mutant: Some(crate::mutants::Mutant::TailNotCut),
            ..Options::default()
        };
        assert_eq!(after_a_shorter_log(&options), 3, "as if it were executed");
    }

    #[test]
    fn an_entry_of_another_master_takes_the_place_of_what_not_all_had() {
        let mut store = with_a_tail(&Options::default());
        assert!(store.fence(Epoch(2)));
        let options = Options::default();
        let entries = vec![entry(2, 9)];
        assert_eq!(store.append(&options, 1, entries, 2, 2), Some(2));
        assert_eq!((store.applied, store.last()), (2, 2));
        assert!(!store.fence(Epoch(1)), "the first master is refused");
    }

    /// A server that meets such entries refuses them, and does not stop.
    #[test]
    fn entries_of_masters_in_no_order_are_refused() {
        let mut store = with_a_tail(&Options::default());
        assert!(store.fence(Epoch(2)));
        let options = Options::default();
        assert_eq!(store.append(&options, 1, vec![entry(2, 8)], 2, 1), Some(2));
        for (after, entries) in [
            (1, vec![entry(0, 9)]),
            (2, vec![entry(1, 9)]),
            (2, vec![entry(2, 9), entry(1, 9)]),
            (2, vec![entry(3, 9)]),
        ] {
            let said = format!("{entries:?} behind {after}");
            assert_eq!(store.append(&options, after, entries, 4, 2), None, "{said}");
        }
        assert_eq!((store.applied, store.last()), (1, 2));
        assert!(store.check().is_ok());
        let whole = store.to_whole(7);
        assert!(Store::<Nothing>::from_whole(whole.clone()).is_some());
        let mut older = whole.clone();
        older.tail.push(entry(1, 9));
        assert!(Store::<Nothing>::from_whole(older).is_none());
        let mut later = whole;
        later.applied.epoch = Epoch(3);
        assert!(Store::<Nothing>::from_whole(later).is_none());
    }

    #[test]
    fn a_copy_that_ends_within_a_masters_own_log_is_not_needed() {
        let mut store = with_a_tail(&Options::default());
        assert!(!store.needs(3), "although one entry is applied");
        assert!(store.needs(4));
        assert!(store.fence(Epoch(2)));
        assert!(store.needs(1), "until it has heard what the master has");
        let options = Options::default();
        assert_eq!(store.append(&options, 1, Vec::new(), 1, 1), Some(1));
        assert!(!store.needs(1));
    }

    /// A server that is told of no more than it said to have applies nothing that its master has otherwise.
    #[test]
    fn a_tail_that_is_not_the_masters_is_not_applied_by_what_others_have() {
        let mut store = with_a_tail(&Options::default());
        assert!(store.fence(Epoch(2)));
        let options = Options::default();
        // All backups have five entries; this server has said that it has one of them.
        assert_eq!(store.append(&options, 1, Vec::new(), 5, 1), Some(1));
        assert_eq!(store.applied, 1);
        let entries = vec![entry(2, 8), entry(2, 9)];
        assert_eq!(store.append(&options, 1, entries, 5, 1), Some(3));
        assert_eq!(store.append(&options, 3, Vec::new(), 5, 3), Some(3));
        assert_eq!((store.applied, store.kept.end()), (3, log_id(3, 2)));
    }

    #[test]
    fn what_a_master_that_never_opened_has_installed_is_replaced_by_the_next_ones() {
        let mut store: Store<Nothing> = Store::empty();
        assert!(store.fence(Epoch(1)));
        assert!(store.needs(5));
        store.install(log_id(5, 1), Nothing, Rifl::default());
        assert!(!store.needs(5), "sent again");
        assert!(store.fence(Epoch(2)));
        assert!(store.needs(5), "another log that ends at the same place");
        store.install(log_id(5, 1), Nothing, Rifl::default());
        assert!(!store.needs(5));
        let options = Options::default();
        assert_eq!(store.append(&options, 5, vec![entry(2, 1)], 6, 5), Some(6));
        assert!(!store.needs(5), "what is there is newer");
    }
}
