//! Makes keys known that are new: together with the rows under them, or by themselves before that.
//!
//! **Together** the keys are a part of the transaction that writes the rows, which then takes as many
//! round trips as if all keys had been known. Its records are nobody else's until the leaf has the key,
//! so that they are written without a lock and without being read. That goes where
//!
//! - the transaction's snapshot sees the newest version of each leaf, and nobody is at work on it;
//! - the log has room for all of it;
//! - no more than 16 leaves are written, for others wait for all of them.
//!
//! When somebody else is faster at a leaf after all, nothing is done, and the rows are let go of.
//!
//! **By themselves** keys are entered wherever that does not go, in as few transactions as it takes. So
//! those who insert neighbours all the time wait for each other as long as it takes to write leaves,
//! and never for the rest of a transaction. Keys are entered in their order, those of several leaves
//! in one commit ([`Draft`]). What a commit writes is bounded twice:
//!
//! - by the log, into which it must fit: one that does not is cut in half before anything is asked of
//!   memory;
//! - by what others do: whoever writes many leaves that others write as well loses against each of
//!   them. So each conflict halves how many leaves are written at once, down to one, of which
//!   somebody always wins, and each commit doubles it again. The keys of one leaf stay together, for
//!   it is written all the same.
//!
//! **Rooms** for records are fresh, or records whose rows are gone. What is in a fresh one is known. Of
//! another one the next version leaves what is there, so it is read before it is given away; nobody
//! writes it any more till then ([`super::collect`]).

use crate::abort::Abort;
use crate::change::Change;
use crate::directory::RecordAddress;
use crate::machine::Carrier;
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::read::{ReadAll, Seen};
use crate::rows::{Client, Failure};
use crate::tree::enter::{Draft, EnterError, Entered, Record};
use crate::tree::locate::Located;
use crate::vector::Snapshot;
use crate::version::Stamp;

/// Leaves that get keys in one commit, at most: others wait for all of them to be written.
const LEAVES_MAX: usize = 16;
/// How often the tree is tried before the transaction is.
const TRIES_MAX: u32 = 64;

/// Keys that were made known by themselves.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The records under them, in the order of the keys.
    pub records: Vec<Record>,
    /// What it took: the changes of each commit, in order, and as which version they were committed.
    pub own: Vec<(Vec<Change>, Stamp)>,
}

impl<C: Carrier> Client<C> {
    /// What makes keys known together with their rows, which are in order and belong to these leaves,
    /// as a snapshot sees them. None: they are to be entered by themselves.
    pub(super) async fn enter_together<'l>(
        &mut self,
        snapshot: &Snapshot,
        keys: &[Vec<u8>],
        leaves: impl IntoIterator<Item = &'l Located>,
    ) -> Result<Option<Entered>, Failure<C::Error>> {
        let mut draft = self.new_draft();
        for located in leaves {
            let leaf = &located.leaf().seen;
            if draft.has(located.leaf().node.low()) {
                continue;
            }
            let is_quiet = leaf.is_newest() && leaf.holder.is_none();
            if !is_quiet || draft.leaves() == LEAVES_MAX || draft.add(located.clone()).is_err() {
                return Ok(None);
            }
        }
        match self.plan(snapshot, &mut draft, keys).await {
            Ok(entered) => Ok(Some(entered)),
            Err(failure) if failure.is_conflict() => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Makes keys known, which are in order, in transactions of their own.
    pub(super) async fn enter(&mut self, keys: &[Vec<u8>]) -> Result<Known, Failure<C::Error>> {
        let mut known = Known::default();
        let (mut leaves, mut tries) = (LEAVES_MAX, 0);
        while let Some(rest @ [_, ..]) = keys.get(known.records.len()..) {
            assert!(
                (1..=LEAVES_MAX).contains(&leaves),
                "a commit writes one leaf at least, and no more than others wait for: {leaves}"
            );
            match self.enter_some(rest, leaves).await {
                Ok(some) => {
                    known.records.extend(some.records);
                    known.own.extend(some.own);
                    tries = 0;
                    leaves = (2 * leaves).min(LEAVES_MAX);
                }
                // Whoever waits for a disk has waited long enough for one try.
                Err(failure) if failure.is_unwritten() => return Err(failure),
                Err(failure) if failure.is_conflict() && tries < TRIES_MAX => {
                    tries += 1;
                    leaves = (leaves / 2).max(1);
                }
                Err(failure) => return Err(failure),
            }
        }
        assert_eq!(known.records.len(), keys.len(), "each key has a record");
        Ok(known)
    }

    /// Makes as many of the first of these keys known as belong to so many leaves and fit into one
    /// commit.
    async fn enter_some(
        &mut self,
        keys: &[Vec<u8>],
        leaves: usize,
    ) -> Result<Known, Failure<C::Error>> {
        let snapshot = self.snapshot().await?;
        let (mut draft, mut count) = self.draft(&snapshot, keys, leaves).await?;
        loop {
            assert!(
                0 < count && count <= keys.len(),
                "a commit makes some of the keys known: {count} of {}",
                keys.len()
            );
            let some = keys.get(..count).unwrap_or(keys);
            let entered = self.plan(&snapshot, &mut draft, some).await?;
            let mut own = Vec::new();
            if !entered.changes.is_empty() {
                let committed = self.commit_alone(entered.changes.clone()).await;
                self.take(&entered, &committed);
                if count > 1 && is_too_large(&committed) {
                    count = count.div_ceil(2);
                    continue;
                }
                own.extend(committed?.map(|stamp| (entered.changes, stamp)));
            }
            let records = entered.records;
            return Ok(Known { records, own });
        }
    }

    fn new_draft(&self) -> Draft {
        let draft = Draft::new(self.keyspace.tree);
        #[cfg(feature = "mutants")]
        let draft = draft.with(self.session.mutant);
        draft
    }

    /// The leaves of the first of some keys, so many at most, and how many keys that are.
    async fn draft(
        &mut self,
        snapshot: &Snapshot,
        keys: &[Vec<u8>],
        leaves: usize,
    ) -> Result<(Draft, usize), Failure<C::Error>> {
        let mut draft = self.new_draft();
        for (count, key) in keys.iter().enumerate() {
            if draft.has(key) {
                continue;
            }
            if draft.leaves() == leaves {
                return Ok((draft, count));
            }
            draft.add(self.locate(snapshot, key).await?)?;
        }
        Ok((draft, keys.len()))
    }

    /// What is to be committed for keys whose leaves are in a draft, which gets what else it takes.
    async fn plan(
        &mut self,
        snapshot: &Snapshot,
        draft: &mut Draft,
        keys: &[Vec<u8>],
    ) -> Result<Entered, Failure<C::Error>> {
        self.look_at_recycled(keys.len()).await?;
        loop {
            match self.enter_into(draft, keys) {
                Ok(entered) => return Ok(entered),
                Err(EnterError::Unknown(key)) => {
                    let located = self.locate_from(snapshot, &key, None).await?;
                    draft.add(located)?;
                }
                Err(EnterError::NoRoom(room)) => return Err(Failure::NoRoom(room)),
                Err(EnterError::TooLong(longest, length)) => {
                    return Err(Abort::KeyTooLong(longest, length).into());
                }
            }
        }
    }

    /// Reads as many of the records whose rows are gone as may be given away next. One whose end this
    /// client has not seen is for later.
    async fn look_at_recycled(&mut self, count: usize) -> Result<(), Failure<C::Error>> {
        let lacking = count.saturating_sub(self.records_again.len());
        let first = self.recycled.len().saturating_sub(lacking);
        let places = self.recycled.split_off(first);
        if places.is_empty() {
            return Ok(());
        }
        let layout = self.keyspace.records;
        let read = |place: &RecordAddress| self.session.read_newest(place.address(), layout);
        let seen = self.run(ReadAll::new(places.iter().rev().map(read).collect()));
        let seen = seen.await??;
        assert_eq!(seen.len(), places.len(), "each place was looked at");
        for (seen, place) in seen.into_iter().zip(places.into_iter().rev()) {
            if self.session.seen().admits(seen.stamp) {
                self.records_again.push(seen);
            } else {
                self.recycled.insert(0, place);
            }
        }
        Ok(())
    }

    fn enter_into(&self, draft: &Draft, keys: &[Vec<u8>]) -> Result<Entered, EnterError> {
        let (rows, nodes) = (self.keyspace.records, self.keyspace.tree.layout());
        let again = self.records_again.iter().cloned();
        let fresh = self.records.left();
        let mut records = again.chain(fresh.map(|place| Seen::fresh(place.address(), rows)));
        let again = self.nodes_again.iter().cloned();
        let fresh = self.nodes.left();
        let mut rooms = again.chain(fresh.map(|place| Seen::fresh(place.address(), nodes)));
        draft.enter(keys, &mut records, &mut rooms)
    }

    /// The rooms that keys were entered with are nobody else's any more, if they are there now, or
    /// nobody knows.
    pub(super) fn take<T>(&mut self, entered: &Entered, committed: &Result<T, Failure<C::Error>>) {
        let is_absent = |abort: &Abort| !matches!(abort, Abort::Fault(_));
        if matches!(committed, Err(Failure::Abort(abort)) if is_absent(abort)) {
            return;
        }
        #[cfg_attr(not(feature = "mutants"), expect(unused_mut))]
        let mut records = entered.taken;
        #[cfg(feature = "mutants")]
        if self.session.mutant == Some(Mutant::CountsRoomOnce) {
            records = records.min(1);
        }
        let used = records.min(self.records_again.len());
        self.records_again.drain(..used);
        assert!(
            (records - used) as u64 <= self.records.count(),
            "records that were entered were the client's"
        );
        self.records.take((records - used) as u64);
        let used = entered.nodes.min(self.nodes_again.len());
        self.nodes_again.drain(..used);
        assert!(
            (entered.nodes - used) as u64 <= self.nodes.count(),
            "nodes that were entered were the client's"
        );
        self.nodes.take((entered.nodes - used) as u64);
    }

    /// A record that keys were made known with: others know of it by now.
    #[cfg_attr(not(feature = "mutants"), expect(clippy::unused_self))]
    pub(super) fn known(&self, seen: Seen) -> Seen {
        #[cfg(feature = "mutants")]
        if self.session.mutant == Some(Mutant::WritesTheKnownUnlocked) {
            return seen;
        }
        let is_own = false;
        Seen { is_own, ..seen }
    }
}

fn is_too_large<T, E>(committed: &Result<T, Failure<E>>) -> bool {
    matches!(committed, Err(Failure::Abort(Abort::TooLarge(..))))
}

/// Whether a transaction that was to make keys known together with their rows does so when they are
/// entered by themselves: others were faster at a leaf, or the log has no room for both.
pub(super) fn is_apart<T, E>(entered: &Entered, committed: &Result<T, Failure<E>>) -> bool {
    let is_node = |at| entered.changes.iter().any(|change| change.seen.at == at);
    match committed {
        Err(Failure::Abort(Abort::WriteConflict(at))) => is_node(*at),
        committed => is_too_large(committed),
    }
}
