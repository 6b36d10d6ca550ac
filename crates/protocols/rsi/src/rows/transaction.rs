//! One transaction on rows.

use manxdb_core::check::deep;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::abort::Abort;
use crate::change::Change;
use crate::directory::RecordAddress;
use crate::find::LookupResult;
use crate::machine::Carrier;
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::read::Seen;
use crate::rows::enter::is_apart;
use crate::rows::{Client, Failure};
use crate::session::Isolation;
use crate::tree::enter::{Record, rely_on_own};
use crate::tree::locate::Located;
use crate::tree::scan::Span;
use crate::vector::Snapshot;
use crate::version::Stamp;

/// Rows and their keys, in order.
pub type Page = Vec<(Vec<u8>, Vec<u8>)>;

/// A transaction: it reads what its snapshot sees, under its own writes, which are kept until it
/// commits. Dropped, it has done nothing but perhaps made keys known.
#[derive(Debug)]
pub struct Transaction<'c, C> {
    client: &'c mut Client<C>,
    snapshot: Snapshot,
    isolation: Isolation,
    /// What was found under keys.
    known: BTreeMap<Vec<u8>, Known>,
    /// Keys that the program has heard about, and what it does may depend on.
    relied: BTreeSet<Vec<u8>>,
    /// Leaves in which there was nothing else for it.
    leaves: Vec<LookupResult>,
    /// The one in which it looked for a key last: the next key may be in it, too.
    last: Option<Arc<Located>>,
    writes: Writes,
}

/// What is to be under keys; none: the row is deleted.
type Writes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// What was found under a key.
#[derive(Debug)]
enum Known {
    /// A record, which may be one that nobody has written, as far as the snapshot sees.
    Record(Seen),
    /// The tree has no such key: the leaf that would have it.
    Absent(Arc<Located>),
}

impl<'c, C: Carrier> Transaction<'c, C> {
    pub(super) fn new(client: &'c mut Client<C>, snapshot: Snapshot, isolation: Isolation) -> Self {
        Self {
            client,
            snapshot,
            isolation,
            known: BTreeMap::new(),
            relied: BTreeSet::new(),
            leaves: Vec::new(),
            last: None,
            writes: BTreeMap::new(),
        }
    }

    /// The value under a key.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure<C::Error>> {
        if let Some(value) = self.writes.get(key) {
            return Ok(value.clone());
        }
        self.relied.insert(key.to_vec());
        self.read(key).await
    }

    /// The same for a value that is no matter for what the program does.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn read(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure<C::Error>> {
        self.look(key).await?;
        Ok(match self.known.get(key) {
            Some(Known::Record(seen)) => seen.value().map(<[u8]>::to_vec),
            _ => None,
        })
    }

    /// What it sees.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Relies on what another snapshot saw under a key, if that is still so.
    ///
    /// # Errors
    /// [`Abort::ReadConflict`]: it is not; [`Abort::SnapshotTooOld`]; [`Failure`].
    pub async fn rely_on(&mut self, key: &[u8], then: &Snapshot) -> Result<(), Failure<C::Error>> {
        self.is_in_time(then)?;
        self.relied.insert(key.to_vec());
        self.look(key).await?;
        match self.known.get(key) {
            Some(Known::Record(seen)) if !then.admits(seen.stamp) => {
                Err(Abort::ReadConflict(seen.at).into())
            }
            _ => Ok(()),
        }
    }

    /// Relies on what another snapshot saw between two keys, if that is still so.
    ///
    /// # Errors
    /// [`Abort::ReadConflict`]: it is not; [`Failure`].
    pub async fn rely_on_range(
        &mut self,
        low: &[u8],
        high: Option<&[u8]>,
        then: &Snapshot,
    ) -> Result<(), Failure<C::Error>> {
        self.is_in_time(then)?;
        let span = Span {
            low: low.to_vec(),
            high: high.map(<[u8]>::to_vec),
            ..Span::all()
        };
        let (keys, _) = self.scan_tree(&span).await?;
        for key in keys {
            if let Some(Known::Record(seen)) = self.known.get(&key)
                && !then.admits(seen.stamp)
            {
                return Err(Abort::ReadConflict(seen.at).into());
            }
        }
        Ok(())
    }

    /// Rows between two keys.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn scan(&mut self, span: Span) -> Result<Page, Failure<C::Error>> {
        let mut page = Page::new();
        let mut rest = span.clone();
        loop {
            let wanted = span.limit - page.len();
            // Some of what the tree has is no row, or is deleted by this very transaction.
            rest.limit = wanted.saturating_add(self.writes.len());
            let (keys, is_cut) = self.scan_tree(&rest).await?;
            let passed = if is_cut { keys.last().cloned() } else { None };
            let mut part = rest.clone();
            if let Some(last) = &passed {
                part.end_behind(last);
            }
            let before = page.len();
            self.merge(&part, keys, &mut page);
            let is_in_order = |pair: &[(Vec<u8>, Vec<u8>)]| {
                pair[0].0 != pair[1].0 && (pair[0].0 > pair[1].0) == span.descending
            };
            let seam = page.get(before.saturating_sub(1)..).unwrap_or_default();
            assert!(
                seam.windows(2).take(1).all(is_in_order),
                "what comes next is behind what came before"
            );
            if deep() {
                assert!(
                    page.windows(2).all(is_in_order),
                    "rows come in order, each once"
                );
            }
            page.truncate(span.limit);
            match passed {
                Some(last) if page.len() < span.limit => rest.begin_behind(&last),
                _ => return Ok(page),
            }
        }
    }

    /// Keys that the tree has in a span, whose records are then known; whether there may be more.
    async fn scan_tree(&mut self, span: &Span) -> Result<(Vec<Vec<u8>>, bool), Failure<C::Error>> {
        self.is_in_time(&self.snapshot)?;
        let tree = self.client.keyspace.tree;
        let hint = if span.descending {
            None
        } else {
            self.client.hint(&span.low)
        };
        let session = &self.client.session;
        let scan = session.scan(&self.snapshot, tree, span.clone(), hint);
        let scanned = self.client.run(scan).await??;
        self.leaves.extend(scanned.leaves);
        let keys = scanned.entries.iter().map(|(key, _)| key.clone());
        self.relied.extend(keys);
        let is_record = |key: &Vec<u8>| matches!(self.known.get(key), Some(Known::Record(_)));
        let unknown = |(key, _): &&(Vec<u8>, _)| !is_record(key);
        let unread = scanned.entries.iter().filter(unknown).cloned().collect();
        self.read_records(unread).await?;
        let keys = scanned.entries.into_iter().map(|(key, _)| key).collect();
        Ok((keys, scanned.is_cut))
    }

    /// Adds the rows of a span, as this transaction sees them.
    fn merge(&self, span: &Span, keys: Vec<Vec<u8>>, page: &mut Page) {
        let mut rows = BTreeMap::new();
        for key in keys {
            if let Some(Known::Record(seen)) = self.known.get(&key) {
                rows.insert(key, seen.value().map(<[u8]>::to_vec));
            }
        }
        let own = self.writes.iter().filter(|(key, _)| span.has(key));
        rows.extend(own.map(|(key, value)| (key.clone(), value.clone())));
        let there = rows
            .into_iter()
            .filter_map(|(key, value)| Some((key, value?)));
        if span.descending {
            page.extend(there.rev());
        } else {
            page.extend(there);
        }
    }

    /// Writes (`Some`) or deletes (`None`) a row when this commits.
    pub fn write(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        self.writes.insert(key, value);
    }

    /// Commits. After a conflict the program is to be run again from its beginning.
    ///
    /// # Errors
    /// [`Failure`]. After a fault of a server nobody knows whether it is committed; else it is not.
    pub async fn commit(mut self) -> Result<Option<Stamp>, Failure<C::Error>> {
        let writes = std::mem::take(&mut self.writes);
        // All are looked for before any is made known: the snapshot does not see what that changes.
        for key in writes.keys() {
            self.look(key).await?;
        }
        let mut reads = self.reads();
        let is_new = |key: &Vec<u8>| !matches!(self.known.get(key), Some(Known::Record(_)));
        let there = writes.iter().filter(|(_, value)| value.is_some());
        let new = there.map(|(key, _)| key).filter(|key| is_new(key));
        let new: Vec<Vec<u8>> = new.cloned().collect();
        if !new.is_empty() {
            if let Some(committed) = self.commit_together(&new, &reads, &writes).await {
                return committed;
            }
            self.make_known(new, &mut reads).await?;
        }
        let changes = self.changes(&writes);
        self.client.commit(&reads, changes, self.isolation).await
    }

    /// Commits and makes keys known in one; none: they are to be made known before.
    async fn commit_together(
        &mut self,
        new: &[Vec<u8>],
        reads: &[LookupResult],
        writes: &Writes,
    ) -> Option<Result<Option<Stamp>, Failure<C::Error>>> {
        let leaf = |key| match self.known.get(key) {
            Some(Known::Absent(located)) => Some(&**located),
            _ => None, // they are looked for, and not there
        };
        let leaves = new.iter().filter_map(leaf);
        let entered = self.client.enter_together(&self.snapshot, new, leaves);
        let entered = match entered.await {
            Ok(entered) => entered?,
            Err(failure) => return Some(Err(failure)),
        };
        assert_eq!(
            entered.records.len(),
            new.len(),
            "each new key has a record"
        );
        for (key, record) in new.iter().zip(&entered.records) {
            let Record::New(seen) = record else {
                return None; // not reached: the leaves do not have the key
            };
            self.known.insert(key.clone(), Known::Record(seen.clone()));
        }
        let mut changes = self.changes(writes);
        changes.extend(entered.changes.iter().cloned());
        let committed = self.client.commit(reads, changes, self.isolation).await;
        self.client.take(&entered, &committed);
        (!is_apart(&entered, &committed)).then_some(committed)
    }

    /// What is written to records. What is deleted and was never there is left alone.
    fn changes(&self, writes: &Writes) -> Vec<Change> {
        let change = |(key, value): (&Vec<u8>, &Option<Vec<u8>>)| match self.known.get(key) {
            Some(Known::Record(seen)) => Some(Change {
                seen: seen.clone(),
                value: value.clone(),
            }),
            _ => {
                // Else a write would be left out, and the transaction count as committed.
                assert!(value.is_none(), "a row that is written has a record");
                None
            }
        };
        writes.iter().filter_map(change).collect()
    }

    /// What it relies on, each once.
    fn reads(&self) -> Vec<LookupResult> {
        let mut reads = BTreeMap::new();
        let known = self.relied.iter().filter_map(|key| self.known.get(key));
        let of_keys = known.map(|known| match known {
            Known::Record(seen) => LookupResult::Record(seen.clone()),
            Known::Absent(located) => located.found(),
        });
        for found in self.leaves.iter().cloned().chain(of_keys) {
            if let LookupResult::Record(seen) = &found {
                reads.insert(seen.at, found);
            }
        }
        reads.into_values().collect()
    }

    /// Whether a snapshot includes what others may rely on that all see: else keys that it sees may
    /// have gone.
    fn is_in_time(&self, snapshot: &Snapshot) -> Result<(), Abort> {
        #[cfg(feature = "mutants")]
        if self.client.session.mutant == Some(Mutant::ReadsWhatIsTooOld) {
            return Ok(());
        }
        if snapshot.includes(&self.client.bound.snapshot) {
            return Ok(());
        }
        let root = self.client.keyspace.tree.root();
        Err(Abort::SnapshotTooOld(root.address()))
    }

    /// Gets to know what is under a key.
    async fn look(&mut self, key: &[u8]) -> Result<(), Failure<C::Error>> {
        self.is_in_time(&self.snapshot)?;
        if self.known.contains_key(key) {
            return Ok(());
        }
        let located = match self.last.take().filter(|last| last.has(key)) {
            Some(located) => located,
            None => Arc::new(self.client.locate(&self.snapshot, key).await?),
        };
        let known = match located.place(key) {
            None => Known::Absent(Arc::clone(&located)),
            Some(place) => {
                let (at, layout) = (place.address(), self.client.keyspace.records);
                let read = self.client.session.read(&self.snapshot, at, layout);
                Known::Record(self.client.run(read).await??)
            }
        };
        self.last = Some(located);
        self.known.insert(key.to_vec(), known);
        Ok(())
    }

    /// Makes keys known that the snapshot does not know, with the records under them, by themselves.
    async fn make_known(
        &mut self,
        keys: Vec<Vec<u8>>,
        reads: &mut Vec<LookupResult>,
    ) -> Result<(), Failure<C::Error>> {
        let entered = self.client.enter(&keys).await?;
        for (changes, stamp) in &entered.own {
            rely_on_own(reads, changes, *stamp);
        }
        let mut unread = Vec::new();
        assert_eq!(
            entered.records.len(),
            keys.len(),
            "each new key has a record"
        );
        for (key, record) in keys.into_iter().zip(entered.records) {
            match record {
                Record::New(seen) => {
                    let seen = self.client.known(seen);
                    self.known.insert(key, Known::Record(seen));
                }
                Record::There(place) => unread.push((key, place)),
            }
        }
        match self.read_records(unread).await {
            // Somebody has written it since: as if it had been there.
            Err(Failure::Abort(Abort::SnapshotTooOld(at))) => Err(Abort::WriteConflict(at).into()),
            read => read,
        }
    }

    /// Reads the records under keys, all at once.
    async fn read_records(
        &mut self,
        unread: Vec<(Vec<u8>, RecordAddress)>,
    ) -> Result<(), Failure<C::Error>> {
        if unread.is_empty() {
            return Ok(());
        }
        let layout = self.client.keyspace.records;
        let places = unread.iter().map(|(_, place)| (place.address(), layout));
        let places: Vec<_> = places.collect();
        let read = self.client.session.read_all(&self.snapshot, &places);
        let seen = self.client.run(read).await??;
        assert_eq!(seen.len(), unread.len(), "each record was read");
        let records = seen.into_iter().map(Known::Record);
        let keys = unread.into_iter().map(|(key, _)| key);
        self.known.extend(keys.zip(records));
        Ok(())
    }
}
