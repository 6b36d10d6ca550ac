//! Makes keys known in as few transactions as that takes.
//!
//! Keys are entered in their order, those of several leaves in one commit ([`Draft`]). What a commit
//! writes is bounded twice:
//!
//! - by the log, into which it must fit: one that does not is cut in half before anything is asked of
//!   memory;
//! - by what others do: whoever writes many leaves that others write as well loses against each of
//!   them. So each conflict halves how many leaves are written at once, down to one, of which
//!   somebody always wins, and each commit doubles it again. The keys of one leaf stay together, for
//!   it is written all the same.

use crate::commit::{Abort, Change};
use crate::directory::Place;
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::read::Seen;
use crate::rows::{Client, Failure};
use crate::tree::enter::{Draft, EnterError, Entered};
use crate::vector::Snapshot;
use crate::version::Stamp;
use crate::work::Carrier;

/// Leaves that get keys in one commit, at most: others wait for all of them to be written.
const LEAVES_MAX: usize = 16;
/// How often the tree is tried before the transaction is.
const TRIES_MAX: u32 = 64;

/// Keys that were made known.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Of their records, in the order of the keys.
    pub places: Vec<Place>,
    /// What it took: the changes of each commit, in order, and as which version they were committed.
    pub own: Vec<(Vec<Change>, Stamp)>,
}

impl<C: Carrier> Client<C> {
    /// Makes keys known, which are in order, in transactions of their own.
    pub(super) async fn enter(&mut self, keys: &[Vec<u8>]) -> Result<Known, Failure<C::Error>> {
        let mut known = Known::default();
        let (mut leaves, mut tries) = (LEAVES_MAX, 0);
        while let Some(rest @ [_, ..]) = keys.get(known.places.len()..) {
            match self.enter_some(rest, leaves).await {
                Ok(some) => {
                    known.places.extend(some.places);
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
            let some = keys.get(..count).unwrap_or(keys);
            let entered = match self.enter_into(&draft, some) {
                Ok(entered) => entered,
                Err(EnterError::Unknown(key)) => {
                    let located = self.locate_from(&snapshot, &key, None).await?;
                    draft.add(located)?;
                    continue;
                }
                Err(EnterError::NoRoom(room)) => return Err(Failure::NoRoom(room)),
                Err(EnterError::TooLong(longest, length)) => {
                    return Err(Abort::KeyTooLong(longest, length).into());
                }
            };
            let mut own = Vec::new();
            if !entered.changes.is_empty() {
                let committed = self.commit_alone(entered.changes.clone()).await;
                match &committed {
                    Err(Failure::Abort(Abort::TooLarge(..))) if count > 1 => {
                        count = count.div_ceil(2);
                        continue;
                    }
                    Err(Failure::Abort(Abort::TooLarge(..))) => {}
                    Err(failure) if failure.is_conflict() => {}
                    // Or nobody knows: then they may be somebody's.
                    _ => self.take(&entered),
                }
                own.extend(committed?.map(|stamp| (entered.changes, stamp)));
            }
            let places = entered.places;
            return Ok(Known { places, own });
        }
    }

    /// The leaves of the first of some keys, so many at most, and how many keys that are.
    async fn draft(
        &mut self,
        snapshot: &Snapshot,
        keys: &[Vec<u8>],
        leaves: usize,
    ) -> Result<(Draft, usize), Failure<C::Error>> {
        let mut draft = Draft::new(self.keyspace.tree);
        #[cfg(feature = "mutants")]
        {
            draft = draft.with(self.session.mutant);
        }
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

    fn enter_into(&self, draft: &Draft, keys: &[Vec<u8>]) -> Result<Entered, EnterError> {
        let layout = self.keyspace.tree.layout();
        let fresh = |place: Place| Seen::fresh(place.address(), layout);
        let recycled = self.recycled.iter().rev().copied();
        let mut records = recycled.chain(self.records.left());
        let again = self.nodes_again.iter().cloned();
        let mut rooms = again.chain(self.nodes.left().map(fresh));
        draft.enter(keys, &mut records, &mut rooms)
    }

    /// The places that keys were entered with are nobody else's any more.
    fn take(&mut self, entered: &Entered) {
        #[cfg_attr(not(feature = "mutants"), expect(unused_mut))]
        let mut records = entered.records;
        #[cfg(feature = "mutants")]
        if self.session.mutant == Some(Mutant::CountsRoomOnce) {
            records = records.min(1);
        }
        let used = records.min(self.recycled.len());
        self.recycled.truncate(self.recycled.len() - used);
        self.records.take((records - used) as u64);
        let used = entered.nodes.min(self.nodes_again.len());
        self.nodes_again.drain(..used);
        self.nodes.take((entered.nodes - used) as u64);
    }
}
