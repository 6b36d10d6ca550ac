//! One transaction on rows.

use std::collections::BTreeMap;

use crate::commit::{Abort, Change};
use crate::find::Found;
use crate::read::Seen;
use crate::rows::{Client, Failure};
use crate::session::Isolation;
use crate::tree::enter::rely_on_own;
use crate::tree::scan::Span;
use crate::vector::Snapshot;
use crate::version::Stamp;
use crate::work::Carrier;

/// Rows and their keys, in order.
pub type Page = Vec<(Vec<u8>, Vec<u8>)>;

/// A transaction: it reads what its snapshot sees, under its own writes, which are kept until it
/// commits. Dropped, it has done nothing but perhaps made keys known.
#[derive(Debug)]
pub struct Transaction<'c, C> {
    client: &'c mut Client<C>,
    snapshot: Snapshot,
    isolation: Isolation,
    /// Records that were read, by key; none: the tree has no such key.
    records: BTreeMap<Vec<u8>, Option<Seen>>,
    /// Leaves in which keys were looked for and not found.
    leaves: Vec<Found>,
    writes: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

impl<'c, C: Carrier> Transaction<'c, C> {
    pub(super) fn new(client: &'c mut Client<C>, snapshot: Snapshot, isolation: Isolation) -> Self {
        Self {
            client,
            snapshot,
            isolation,
            records: BTreeMap::new(),
            leaves: Vec::new(),
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
        let seen = self.record(key).await?;
        Ok(seen.and_then(|seen| seen.value))
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
            self.merge(&part, keys, &mut page);
            page.truncate(span.limit);
            match passed {
                Some(last) if page.len() < span.limit => rest.begin_behind(&last),
                _ => return Ok(page),
            }
        }
    }

    /// Keys that the tree has in a span, whose records are then known; whether there may be more.
    async fn scan_tree(&mut self, span: &Span) -> Result<(Vec<Vec<u8>>, bool), Failure<C::Error>> {
        let (tree, layout) = (self.client.keyspace.tree, self.client.keyspace.records);
        let hint = if span.descending {
            None
        } else {
            self.client.hint(&span.low)
        };
        let session = &self.client.session;
        let scan = session.scan(&self.snapshot, tree, span.clone(), hint);
        let scanned = self.client.run(scan).await??;
        self.rely_on(scanned.leaves);
        let unknown = |(key, _): &&(Vec<u8>, _)| !self.records.contains_key(key);
        let unread: Vec<_> = scanned.entries.iter().filter(unknown).cloned().collect();
        let places = unread.iter().map(|(_, place)| (place.address(), layout));
        let places: Vec<_> = places.collect();
        if !places.is_empty() {
            let read = self.client.session.read_all(&self.snapshot, &places);
            let seen = self.client.run(read).await??;
            let keys = unread.into_iter().map(|(key, _)| key);
            self.records.extend(keys.zip(seen.into_iter().map(Some)));
        }
        let keys = scanned.entries.into_iter().map(|(key, _)| key).collect();
        Ok((keys, scanned.is_cut))
    }

    /// Adds the rows of a span, as this transaction sees them.
    fn merge(&self, span: &Span, keys: Vec<Vec<u8>>, page: &mut Page) {
        let mut rows = BTreeMap::new();
        for key in keys {
            if let Some(Some(seen)) = self.records.get(&key) {
                rows.insert(key, seen.value.clone());
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
            self.record(key).await?;
        }
        let mut changes = Vec::with_capacity(writes.len());
        for (key, value) in writes {
            let seen = match self.records.remove(&key).flatten() {
                Some(seen) => seen,
                None if value.is_none() => continue,
                None => self.make_known(&key).await?,
            };
            changes.push(Change { seen, value });
        }
        let records = self.records.into_values().flatten().map(Found::Record);
        let mut reads = self.leaves;
        reads.extend(records);
        let session = &self.client.session;
        let commit = session.commit(&reads, changes, self.isolation)?;
        let stamp = self.client.run(commit).await??;
        if let Some(stamp) = stamp {
            self.client.session.committed(stamp);
        }
        Ok(stamp)
    }

    /// Notes leaves, each once.
    fn rely_on(&mut self, leaves: impl IntoIterator<Item = Found>) {
        for leaf in leaves {
            if !self.leaves.contains(&leaf) {
                self.leaves.push(leaf);
            }
        }
    }

    /// The record under a key, if the tree has the key.
    async fn record(&mut self, key: &[u8]) -> Result<Option<Seen>, Failure<C::Error>> {
        if let Some(known) = self.records.get(key) {
            return Ok(known.clone());
        }
        let located = self.client.locate(&self.snapshot, key).await?;
        let seen = match located.place(key) {
            None => {
                self.rely_on([located.found()]);
                None
            }
            Some(place) => {
                let (at, layout) = (place.address(), self.client.keyspace.records);
                let read = self.client.session.read(&self.snapshot, at, layout);
                Some(self.client.run(read).await??)
            }
        };
        self.records.insert(key.to_vec(), seen.clone());
        Ok(seen)
    }

    /// The record under a key that the snapshot does not know.
    async fn make_known(&mut self, key: &[u8]) -> Result<Seen, Failure<C::Error>> {
        let known = self.client.enter(key).await?;
        if let Some((changes, stamp)) = &known.own {
            rely_on_own(&mut self.leaves, changes, *stamp);
        }
        let (at, layout) = (known.place.address(), self.client.keyspace.records);
        let read = self.client.session.read(&self.snapshot, at, layout);
        match self.client.run(read).await? {
            // Somebody has written it since: as if it had been there.
            Err(Abort::SnapshotTooOld(at)) => Err(Abort::WriteConflict(at).into()),
            seen => Ok(seen?),
        }
    }
}
