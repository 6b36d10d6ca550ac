//! What a backup keeps: a log that its master writes, applied as far as all backups have it.
//!
//! A backup executes nothing. What follows the part that all have is a *tail*: another master
//! may have it otherwise, so it can be cut off, and it is never applied and never shown.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::iter::once;

use crate::disk::{ServerRecord, WholeStore};
use crate::execute::{Execute, Settled};
use crate::ids::{Epoch, LogId, Position, View};
use crate::image::StateError;
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
    /// Where the machine's own store was when the process started: records up to there say nothing new.
    resumed: LogId,
    /// Why the machine's own store does not go on.
    pub(crate) failure: Option<StateError>,
}

impl<E: Execute> Store<E> {
    /// Nothing.
    #[cfg(test)]
    pub(crate) fn empty() -> Self {
        Self::behind(E::empty())
    }

    /// No entries, with an empty state.
    pub(crate) fn behind(empty: E) -> Self {
        Self {
            epoch: Epoch(0),
            state: empty,
            rifl: Rifl::default(),
            applied: 0,
            kept: KeptLog::default(),
            tail: VecDeque::new(),
            verified: 0,
            matched: Epoch(0),
            copied: View::default(),
            resumed: LogId::default(),
            failure: None,
        }
    }

    /// What was written down, with its state kept where `origin` is.
    ///
    /// # Errors
    /// Why there is no such state, for people.
    pub(crate) fn from_whole(whole: WholeStore, origin: &E) -> Result<Self, String> {
        let recorded = origin.open_record(&whole.state)?;
        let mut store = Self {
            epoch: whole.epoch,
            state: recorded.state,
            rifl: whole.rifl,
            applied: whole.applied.at,
            kept: KeptLog::behind(whole.applied),
            tail: whole.tail.into(),
            verified: whole.verified,
            // No master sends a copy to a process and then goes on with the next one.
            matched: Epoch(0),
            copied: whole.copied,
            resumed: LogId::default(),
            failure: None,
        };
        store.check()?;
        if let Some((end, completed)) = recorded.settled {
            store.resume(end, completed)?;
        }
        Ok(store)
    }

    /// Goes on where the machine's own store is: what a record says of the log before that is done.
    fn resume(&mut self, end: LogId, completed: Rifl) -> Result<(), String> {
        let known = self.kept.end();
        if end.at < known.at || end.epoch < known.epoch {
            let (has, at) = (end.at, known.at);
            return Err(format!(
                "its own store ends with entry {has} and lacks some up to {at}, which it had. Start the node with \
                 an empty directory; it then gets everything from the others"
            ));
        }
        let done = usize::try_from(end.at - known.at).unwrap_or(usize::MAX);
        self.tail.drain(..done.min(self.tail.len()));
        // Nothing of an earlier master follows: that was cut off, or told again.
        if self.tail.iter().any(|entry| entry.epoch < end.epoch) {
            self.tail.clear();
        }
        self.rifl = completed;
        self.applied = end.at;
        self.kept = KeptLog::behind(end);
        self.epoch = self.epoch.max(end.epoch);
        self.verified = self.verified.clamp(self.applied, self.last());
        self.resumed = end;
        self.check()
    }

    /// To be written down, of a server whose log has gone on since its life `base`.
    ///
    /// # Errors
    /// As [`Execute::to_record`].
    pub(crate) fn to_whole(&mut self, base: u64) -> Result<WholeStore, StateError> {
        assert!(base > 0, "lives begin with 1");
        assert!(
            self.applied <= self.verified && self.verified <= self.last(),
            "what is written down can be read again"
        );
        Ok(WholeStore {
            base,
            epoch: self.epoch,
            copied: self.copied,
            applied: self.kept.end(),
            verified: self.verified,
            state: self.state.to_record()?,
            rifl: self.rifl.clone(),
            tail: self.tail.iter().cloned().collect(),
        })
    }

    /// Does again what was written down after it was done; whether it follows from what is there.
    pub(crate) fn replay(&mut self, record: ServerRecord) -> bool {
        let (epoch, entries) = match &record {
            ServerRecord::Whole(_) => return false,
            ServerRecord::Obeyed { epoch, entries, .. }
            | ServerRecord::Led { epoch, entries, .. } => (*epoch, entries),
        };
        if epoch < self.resumed.epoch {
            return true; // a later master wrote what the machine's own store has
        }
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
        if after < self.applied && self.applied > self.resumed.at {
            return false;
        }
        if !self.goes_on(after, &entries) {
            return false;
        }
        // The machine's own store may have the first of them.
        let done = usize::try_from(self.applied.saturating_sub(after)).unwrap_or(usize::MAX);
        let keep = usize::try_from(after.saturating_sub(self.applied)).unwrap_or(usize::MAX);
        self.tail.truncate(keep);
        self.tail.extend(entries.into_iter().skip(done));
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
        let before = self.applied;
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
        self.settle(self.applied - before);
        self.kept.trim(options.kept_bytes);
        assert_eq!(
            self.kept.end().at,
            self.applied,
            "the last entry that is applied is known"
        );
    }

    /// Has the machine take into its own store, if it has one, the last entries that were applied.
    fn settle(&mut self, count: u64) {
        if count == 0 || !self.state.has_store() || self.failure.is_some() {
            return;
        }
        let entries = self.kept.newest(count);
        let settled = Settled::of(entries, self.kept.end(), &self.rifl);
        self.failure = self.state.settle(&settled).err();
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
