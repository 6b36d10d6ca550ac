//! A thread's way to rows.

use std::collections::BTreeMap;
use std::ops;

use crate::abort::Abort;
use crate::change::Change;
use crate::directory::RecordAddress;
use crate::durable_positions::Await;
use crate::find::LookupResult;
use crate::low_watermark::Bound;
use crate::machine::{Carrier, Machine};
use crate::read::Seen;
use crate::rows::extent::Stock;
use crate::rows::{Extent, Failure, Keyspace, Transaction};
use crate::session::{Isolation, Session};
use crate::tree::Hint;
use crate::tree::locate::{Located, Seek};
use crate::vector::Snapshot;
use crate::version::{Stamp, ThreadId};

/// Leaves that are remembered; then all are forgotten, and found anew.
const HINTS_MAX: usize = 1 << 16;

/// A thread that runs transactions on rows, one at a time.
#[derive(Debug)]
pub struct Client<C> {
    carrier: C,
    pub(super) session: Session,
    pub(super) keyspace: Keyspace,
    /// For records, and for nodes of the tree.
    pub(super) records: Stock,
    pub(super) nodes: Stock,
    /// Places of records whose rows are gone.
    pub(super) recycled: Vec<RecordAddress>,
    /// Such records, which have been read: they are given away first.
    pub(super) records_again: Vec<Seen>,
    /// Nodes that were taken out of the tree.
    pub(super) nodes_again: Vec<Seen>,
    /// Leaves by their lower bounds.
    hints: BTreeMap<Vec<u8>, Hint>,
    /// What its snapshots include.
    pub(super) bound: Bound,
    /// The transaction that is being committed, or of which nobody has heard the end.
    pub(super) committing: Option<Stamp>,
}

impl<C: Carrier> Client<C> {
    /// A client with memory of its own, that nobody has written: places for records and for nodes.
    #[must_use]
    pub fn new(
        carrier: C,
        session: Session,
        keyspace: Keyspace,
        records: Extent,
        nodes: Extent,
    ) -> Self {
        assert!(
            records.holds(keyspace.records) && nodes.holds(keyspace.tree.layout()),
            "a record and a node have room in their places"
        );
        let hints = BTreeMap::new();
        let bound = Bound::none(session.threads());
        Self {
            carrier,
            session,
            keyspace,
            records: records.into(),
            nodes: nodes.into(),
            recycled: Vec::new(),
            records_again: Vec::new(),
            nodes_again: Vec::new(),
            hints,
            bound,
            committing: None,
        }
    }

    /// What carries its work, between transactions.
    pub fn carrier_mut(&mut self) -> &mut C {
        &mut self.carrier
    }

    /// Bytes of a node of the tree.
    #[must_use]
    pub fn node_bytes(&self) -> u64 {
        self.keyspace.tree.layout().sizes().1 as u64
    }

    /// Places that it has left: for records, and for nodes.
    #[must_use]
    pub fn left(&self) -> (u64, u64) {
        let again = self.recycled.len() + self.records_again.len();
        let records = again as u64 + self.records.count();
        (records, self.nodes_again.len() as u64 + self.nodes.count())
    }

    /// How many of so many records and nodes it has not left.
    #[must_use]
    pub fn lacks(&self, (records, nodes): (u64, u64)) -> (u64, u64) {
        let left = self.left();
        (records.saturating_sub(left.0), nodes.saturating_sub(left.1))
    }

    /// Whose transactions it runs.
    #[must_use]
    pub fn thread(&self) -> ThreadId {
        self.session.thread()
    }

    /// Goes on with another session of its own, when the one before is over: in the next epoch of
    /// replicated memory, over another map.
    pub fn go_on(&mut self, carrier: C, session: Session) {
        assert_eq!(
            session.thread(),
            self.session.thread(),
            "a client goes on as its own thread"
        );
        assert!(
            session.holder() >= self.session.holder(),
            "no number of a thread is used twice: {} after {}",
            session.holder(),
            self.session.holder()
        );
        self.carrier = carrier;
        self.session = session;
        self.session.saw(&self.bound.snapshot);
    }

    /// The version as which a transaction was being committed when the session ended, if one was and
    /// had come so far that it may be there; told once. Whether it is, its closing says
    /// ([`crate::Closed::has`]).
    pub fn cut_off(&mut self) -> Option<Stamp> {
        self.committing.take()
    }

    /// Waits until all that it has seen is synced to disk ([`Session::wait`]); none: nobody writes
    /// logs to disk.
    #[must_use]
    pub fn wait(&self) -> Option<Await> {
        self.session.wait()
    }

    /// Begins a transaction.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn begin(
        &mut self,
        isolation: Isolation,
    ) -> Result<Transaction<'_, C>, Failure<C::Error>> {
        let snapshot = self.snapshot().await?;
        Ok(Transaction::new(self, snapshot, isolation))
    }

    /// Begins a transaction that sees what a snapshot does, which may be an old one, or another
    /// client's.
    pub fn begin_at(&mut self, snapshot: Snapshot, isolation: Isolation) -> Transaction<'_, C> {
        self.session.saw(&snapshot);
        Transaction::new(self, snapshot, isolation)
    }

    pub(super) async fn run<W: Machine>(
        &mut self,
        work: W,
    ) -> Result<W::Output, Failure<C::Error>> {
        self.carrier.run(work).await.map_err(Failure::Carrier)
    }

    /// What all transactions that are acknowledged by now have left.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn snapshot(&mut self) -> Result<Snapshot, Failure<C::Error>> {
        let begin = self.session.begin()?;
        let snapshot = self.run(begin).await?.map_err(Abort::Fault)?;
        self.session.saw(&snapshot);
        Ok(snapshot)
    }

    /// The leaf that a key belongs to.
    pub(super) async fn locate(
        &mut self,
        snapshot: &Snapshot,
        key: &[u8],
    ) -> Result<Located, Failure<C::Error>> {
        let hint = self.hint(key);
        self.locate_from(snapshot, key, hint).await
    }

    /// Where a key's leaf was last.
    pub(super) fn hint(&self, key: &[u8]) -> Option<Hint> {
        let upto = (ops::Bound::Unbounded, ops::Bound::Included(key));
        let mut before = self.hints.range::<[u8], _>(upto);
        before.next_back().map(|(_, hint)| *hint)
    }

    /// The same, looked for from there.
    pub(super) async fn locate_from(
        &mut self,
        snapshot: &Snapshot,
        key: &[u8],
        hint: Option<Hint>,
    ) -> Result<Located, Failure<C::Error>> {
        let tree = self.keyspace.tree;
        let seek = Seek::At(key.to_vec());
        let locate = self.session.locate(snapshot, tree, seek, hint);
        let located = self.run(locate).await??;
        if self.hints.len() >= HINTS_MAX {
            self.hints.clear();
        }
        if let Some(hint) = located.hint() {
            let low = located.leaf().node.low().to_vec();
            self.hints.insert(low, hint);
            assert!(
                self.hints.len() <= HINTS_MAX,
                "so many leaves are remembered"
            );
        }
        Ok(located)
    }

    /// Commits what a program has asked for, of which one may want to know what became of it.
    pub(super) async fn commit(
        &mut self,
        reads: &[LookupResult],
        changes: Vec<Change>,
        isolation: Isolation,
    ) -> Result<Option<Stamp>, Failure<C::Error>> {
        let holder = self.session.holder();
        let commit = self.session.commit(reads, changes, isolation)?;
        assert!(
            self.committing.is_none_or(|before| before < holder),
            "a commit is behind one whose end is not known: {:?}, then {holder}",
            self.committing
        );
        self.committing = Some(holder);
        let committed = self.run(commit).await?;
        self.session.ended(&committed);
        if !matches!(committed, Err(Abort::Fault(_))) {
            self.committing = None;
        }
        Ok(committed?)
    }

    /// Commits what no program has asked for.
    pub(super) async fn commit_alone(
        &mut self,
        changes: Vec<Change>,
    ) -> Result<Option<Stamp>, Failure<C::Error>> {
        let commit = self.session.commit(&[], changes, Isolation::Snapshot)?;
        let committed = self.run(commit).await?;
        self.session.ended(&committed);
        Ok(committed?)
    }
}
