//! Takes keys out of the tree whose rows were deleted before all snapshots in use, and gives their
//! records to other rows.
//!
//! When a deletion is in the bound that is agreed ([`crate::low_watermark`]), its key is taken out of its
//! leaf and the record is deleted once more, in one transaction: whoever writes the record meanwhile,
//! or relies on it, conflicts. Then its place is anybody's, as it is:
//!
//! - A snapshot that does not see the transaction sees the old key, and under it the deletion that it
//!   includes, or that it is too old once the new row has been written often enough. It admits no
//!   version of the new row, whose first writer had seen the transaction (I6).
//! - One that sees it does not see the old key; under the new one it sees nothing until that row is
//!   written.
//!
//! A key that was made known for a row which was never written goes in the same way, when its leaf
//! has not changed since the bound: whoever made it known is done.
//!
//! A leaf that has been empty since the bound is taken out as well, unless it is the first one under
//! its node: its left neighbour has its span from then on. A node is another one only when the next
//! bound sees that it was taken out: a snapshot that is led to it finds the empty leaf. What remembers
//! where leaves were finds nothing there, or another leaf, and begins at the root.
//!
//! A snapshot that does not include the bound that its client heeds would find keys missing, so it
//! is too old for anything ([`super::Transaction`]).

use std::collections::{BTreeSet, VecDeque};

use manxdb_core::check::{deep, ensure};

use crate::abort::Abort;
use crate::change::Change;
use crate::directory::RecordAddress;
use crate::low_watermark::{Bound, LowWatermark};
use crate::machine::{Carrier, Once};
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::read::{ReadAll, Seen};
use crate::rows::{Client, Failure};
use crate::tree::locate::{Located, Seek};
use crate::tree::node::Node;
use crate::version::{Stamp, ThreadId};

/// Keys that go in one transaction: they are to fit into any log, with their leaf.
const KEYS_MAX: usize = 16;

/// One that collects. Of those who do at the same time, one gets a leaf, and the others another.
#[derive(Debug)]
pub struct Collector {
    low_watermark: LowWatermark,
    proposed: Option<Bound>,
    agreed: Option<Bound>,
    /// Keys below it were looked at in this round.
    cursor: Vec<u8>,
    /// Nodes that were taken out of the tree, and as which version.
    nodes: VecDeque<(Stamp, RecordAddress)>,
    #[cfg(feature = "mutants")]
    mutant: Option<Mutant>,
}

/// What a step has come to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Collected {
    /// Records whose keys have gone, for other rows ([`Client::recycle`]).
    pub places: Vec<RecordAddress>,
    /// The last leaf was looked at; the next step begins with the first.
    pub is_round: bool,
}

impl<C: Carrier> Client<C> {
    /// Looks at the bound: its transactions see all of it from now on. To be done before the first
    /// one.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn look_at(
        &mut self,
        low_watermark: LowWatermark,
    ) -> Result<Bound, Failure<C::Error>> {
        let (at, layout) = low_watermark.record();
        let none = Bound::none(self.session.threads());
        let read = self.session.read_newest(at, layout);
        let bound = Bound::of(&self.run(read).await??).unwrap_or(none);
        self.session.saw(&bound.snapshot);
        Ok(bound)
    }

    /// Heeds a bound that it has looked at. Transactions whose snapshots do not include it are too
    /// old from now on; those of other clients on snapshots that this one has taken must not go on.
    ///
    /// # Errors
    /// [`Failure`]: it is heeded all the same, only nobody knows.
    pub async fn advance_watermark(
        &mut self,
        low_watermark: LowWatermark,
        bound: &Bound,
    ) -> Result<(), Failure<C::Error>> {
        if self.bound.number < bound.number {
            self.bound = bound.clone();
        }
        let write = low_watermark.advance_watermark(self.session.thread(), bound);
        let outcomes = self.run(Once::new(vec![write])).await?;
        match crate::machine::fault(&outcomes) {
            Some(fault) => Err(Abort::Fault(fault).into()),
            None => Ok(()),
        }
    }

    /// Gives it places of records for rows to come.
    pub fn recycle(&mut self, places: impl IntoIterator<Item = RecordAddress>) {
        self.recycled.extend(places);
    }

    /// Gives it nodes for the tree ([`Collector::nodes`]).
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn recycle_nodes(
        &mut self,
        places: &[RecordAddress],
    ) -> Result<(), Failure<C::Error>> {
        let layout = self.keyspace.tree.layout();
        let read = |place: &RecordAddress| self.session.read_newest(place.address(), layout);
        let nodes = self.run(ReadAll::new(places.iter().map(read).collect()));
        let nodes = nodes.await??;
        // One that is something again is not ours.
        let gone = nodes.into_iter().filter(|seen| seen.value().is_none());
        self.nodes_again.extend(gone);
        Ok(())
    }
}

impl Collector {
    /// One that has collected nothing yet.
    #[must_use]
    pub fn new(low_watermark: LowWatermark) -> Self {
        Self {
            low_watermark,
            proposed: None,
            agreed: None,
            cursor: Vec::new(),
            nodes: VecDeque::new(),
            #[cfg(feature = "mutants")]
            mutant: None,
        }
    }

    /// The same with a defect.
    #[cfg(feature = "mutants")]
    #[must_use]
    pub fn with(mut self, mutant: Option<Mutant>) -> Self {
        self.mutant = mutant;
        self
    }

    /// What holds between any two steps.
    ///
    /// # Errors
    /// The invariant that is broken.
    fn check(&self) -> Result<(), String> {
        let number = |bound: &Option<Bound>| bound.as_ref().map(|bound| bound.number);
        let (agreed, proposed) = (number(&self.agreed), number(&self.proposed));
        ensure(proposed.is_none() || proposed > agreed, || {
            format!("bound {proposed:?} is proposed, and {agreed:?} agreed")
        })?;
        let is_distinct = || {
            let places: BTreeSet<_> = self.nodes.iter().map(|(_, place)| place).collect();
            places.len() == self.nodes.len()
        };
        ensure(!deep() || is_distinct(), || {
            format!("a node is taken out of the tree once: {:?}", self.nodes)
        })
    }

    /// Proposes what is there by now as the bound, unless one is proposed already.
    ///
    /// # Errors
    /// [`Failure`], and a conflict where somebody else does.
    pub async fn propose<C: Carrier>(
        &mut self,
        client: &mut Client<C>,
    ) -> Result<(), Failure<C::Error>> {
        if self.proposed.is_some() {
            return Ok(());
        }
        let snapshot = client.snapshot().await?;
        let (at, layout) = self.low_watermark.record();
        let read = client.session.read(&snapshot, at, layout);
        let seen = client.run(read).await??;
        let number = 1 + Bound::of(&seen).map_or(0, |bound| bound.number);
        let bound = Bound { number, snapshot };
        let value = Some(bound.value());
        client.commit_alone(vec![Change { seen, value }]).await?;
        self.proposed = Some(bound);
        Ok(())
    }

    /// Looks whether all who have places heed what was proposed; they are to have been looked up
    /// after that.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn agree<C: Carrier>(
        &mut self,
        client: &mut Client<C>,
        present: &[ThreadId],
    ) -> Result<bool, Failure<C::Error>> {
        let Some(bound) = self.proposed.clone() else {
            return Ok(false);
        };
        let outcomes = client
            .run(Once::new(vec![self.low_watermark.read()]))
            .await?;
        #[cfg_attr(not(feature = "mutants"), expect(unused_mut))]
        let mut is_agreed = LowWatermark::is_acknowledged(&bound, present, outcomes.first());
        #[cfg(feature = "mutants")]
        {
            is_agreed |= self.mutant == Some(Mutant::AsksNobody);
        }
        if is_agreed {
            let before = self.agreed.as_ref().map_or(0, |agreed| agreed.number);
            assert!(
                bound.number > before,
                "bounds only rise: {} after {before}",
                bound.number
            );
            (self.agreed, self.proposed) = (Some(bound), None);
        }
        assert_eq!(self.check(), Ok(()));
        Ok(is_agreed)
    }

    /// Looks at one leaf, and takes out what may go.
    ///
    /// # Errors
    /// [`Failure`], and a conflict where somebody else has changed the leaf, or one of the rows.
    pub async fn collect<C: Carrier>(
        &mut self,
        client: &mut Client<C>,
    ) -> Result<Collected, Failure<C::Error>> {
        let Some(bound) = self.agreed.clone() else {
            return Ok(Collected::default());
        };
        let snapshot = client.snapshot().await?;
        let (tree, layout) = (client.keyspace.tree, client.keyspace.records);
        let seek = Seek::At(self.cursor.clone());
        let locate = client.session.locate(&snapshot, tree, seek, None);
        let located = client.run(locate).await??;
        let read = |(_, place): &(Vec<u8>, RecordAddress)| {
            client.session.read_newest(place.address(), layout)
        };
        let reads = located.leaf().node.entries().iter().map(read).collect();
        let rows = client.run(ReadAll::new(reads)).await??;
        let gone = Self::gone(&bound, &located, rows);
        let (gone, is_cut) = (gone.get(..KEYS_MAX).unwrap_or(&gone), gone.len() > KEYS_MAX);
        let places = if gone.is_empty() {
            Vec::new()
        } else {
            Self::take_out(client, &located, gone).await?
        };
        self.take_leaf_out(client, &bound, &located).await?;
        let high = located.leaf().node.high().map(<[u8]>::to_vec);
        let is_round = !is_cut && high.is_none();
        if !is_cut {
            self.cursor = high.unwrap_or_default();
        }
        Ok(Collected { places, is_round })
    }

    /// Keys of a leaf that no snapshot in use sees a row under, with their records.
    fn gone(bound: &Bound, located: &Located, rows: Vec<Seen>) -> Vec<(Vec<u8>, Seen)> {
        let leaf = located.leaf();
        let is_old = bound.snapshot.admits(leaf.seen.stamp);
        let is_gone = |seen: &Seen| match seen.stamp {
            Stamp::NOTHING => is_old,
            stamp => bound.snapshot.admits(stamp),
        };
        assert_eq!(
            rows.len(),
            leaf.node.entries().len(),
            "the row under each key of the leaf was read"
        );
        let keys = leaf.node.entries().iter().map(|(key, _)| key.clone());
        let rows = keys.zip(rows);
        rows.filter(|(_, seen)| seen.value().is_none() && is_gone(seen))
            .collect()
    }

    /// Takes a leaf out of the tree that has been empty since before all snapshots in use, if its left
    /// neighbour is under the same node: that one has its keys from now on.
    async fn take_leaf_out<C: Carrier>(
        &mut self,
        client: &mut Client<C>,
        bound: &Bound,
        located: &Located,
    ) -> Result<(), Failure<C::Error>> {
        let leaf = located.leaf();
        let is_old = bound.snapshot.admits(leaf.seen.stamp);
        let (Some(place), Some(above)) = (RecordAddress::new(leaf.seen.at), located.above()) else {
            return Ok(());
        };
        let Some(left) = above.node.before(leaf.node.low(), place) else {
            return Ok(());
        };
        if !is_old || !leaf.node.entries().is_empty() {
            return Ok(());
        }
        let layout = client.keyspace.tree.layout();
        let session = &client.session;
        let read = session.read(session.seen(), left.address(), layout);
        let seen = client.run(read).await??;
        let Some(node) = seen.value().and_then(Node::parse) else {
            return Ok(());
        };
        let Some(node) = node.with_right(&leaf.node, place) else {
            return Ok(()); // it was split since
        };
        let is_gone = |key: &[u8]| key == leaf.node.low();
        let change = |seen: &Seen, value| Change {
            seen: seen.clone(),
            value,
        };
        let changes = vec![
            change(&seen, Some(node.value())),
            change(&above.seen, Some(above.node.without(is_gone).value())),
            change(&leaf.seen, None),
        ];
        if let Some(stamp) = client.commit_alone(changes).await? {
            self.nodes.push_back((stamp, place));
        }
        assert_eq!(self.check(), Ok(()));
        Ok(())
    }

    /// Nodes that nobody looks for any more: no snapshot in use sees them in the tree.
    pub fn nodes(&mut self) -> Vec<RecordAddress> {
        let Some(bound) = &self.agreed else {
            return Vec::new();
        };
        let is_free = |(stamp, _): &&(Stamp, RecordAddress)| {
            #[cfg(feature = "mutants")]
            if self.mutant == Some(Mutant::GivesNodesAtOnce) {
                return true;
            }
            bound.snapshot.admits(*stamp)
        };
        let count = self.nodes.iter().take_while(is_free).count();
        self.nodes.drain(..count).map(|(_, place)| place).collect()
    }

    async fn take_out<C: Carrier>(
        client: &mut Client<C>,
        located: &Located,
        gone: &[(Vec<u8>, Seen)],
    ) -> Result<Vec<RecordAddress>, Failure<C::Error>> {
        let leaf = located.leaf();
        let is_gone = |key: &[u8]| gone.iter().any(|(other, _)| other == key);
        let node = leaf.node.without(is_gone);
        let mut changes = vec![Change {
            seen: leaf.seen.clone(),
            value: Some(node.value()),
        }];
        let deleted = |(_, seen): &(Vec<u8>, Seen)| Change {
            seen: seen.clone(),
            value: None,
        };
        #[cfg_attr(not(feature = "mutants"), expect(unused_mut))]
        let mut records = gone.iter();
        #[cfg(feature = "mutants")]
        if client.session.mutant == Some(Mutant::LeavesRecordsAsTheyAre) {
            records = [].iter();
        }
        changes.extend(records.map(deleted));
        client.commit_alone(changes).await?;
        let places = gone
            .iter()
            .filter_map(|(_, seen)| RecordAddress::new(seen.at));
        let places: Vec<RecordAddress> = places.collect();
        assert_eq!(places.len(), gone.len(), "each record is at a place");
        Ok(places)
    }
}
