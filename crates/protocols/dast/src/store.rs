//! The rows of one shard, as its replicas keep them.

use std::collections::BTreeMap;

use manxdb_core::Digest;
use manxdb_storage::{Direction, KeyRange};
use manxdb_txn::path::{Page, ReadSet, TxnError};
use manxdb_txn::procedure::{Placement, RowView, ShardId};

/// Rows written since the shard was made; `None` says that the row is gone.
pub type Changes = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// Where a replica keeps its rows.
pub trait Store: Send {
    /// The value of a key.
    fn get(&self, key: &[u8]) -> Option<Vec<u8>>;

    /// Up to `limit` rows of a range.
    fn scan(&self, range: &KeyRange, direction: Direction, limit: usize) -> Page;

    /// Sets or deletes a row; what was there before.
    fn write(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) -> Option<Vec<u8>>;

    /// All that was ever written, for a replica that starts from nothing.
    fn export(&self) -> Changes;

    /// Takes the place of everything written so far.
    fn import(&mut self, changes: Changes);

    /// A number that is equal for stores with equal rows, however they came to be.
    fn digest(&self) -> u64;
}

/// Rows in an ordered map.
#[derive(Debug, Default, Clone)]
pub struct MapStore {
    rows: BTreeMap<Vec<u8>, Vec<u8>>,
    digest: u64,
}

fn digest_of(key: &[u8], value: &[u8]) -> u64 {
    let mut digest = Digest::default();
    digest.number(key.len() as u64).bytes(key).bytes(value);
    digest.value()
}

impl Store for MapStore {
    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.rows.get(key).cloned()
    }

    fn scan(&self, range: &KeyRange, direction: Direction, limit: usize) -> Page {
        if !range.overlaps(range) {
            return Page::new();
        }
        let bounds = (range.start.as_ref(), range.end.as_ref());
        let bounds = (bounds.0.map(Vec::as_slice), bounds.1.map(Vec::as_slice));
        let rows = self.rows.range::<[u8], _>(bounds);
        let owned = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
        match direction {
            Direction::Forward => rows.take(limit).map(owned).collect(),
            Direction::Reverse => rows.rev().take(limit).map(owned).collect(),
        }
    }

    fn write(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) -> Option<Vec<u8>> {
        if let Some(value) = &value {
            self.digest ^= digest_of(&key, value);
        }
        let before = match value {
            Some(value) => self.rows.insert(key.clone(), value),
            None => self.rows.remove(&key),
        };
        if let Some(before) = &before {
            self.digest ^= digest_of(&key, before);
        }
        before
    }

    fn export(&self) -> Changes {
        let rows = self.rows.iter();
        rows.map(|(key, value)| (key.clone(), Some(value.clone())))
            .collect()
    }

    fn import(&mut self, changes: Changes) {
        *self = Self::default();
        for (key, value) in changes {
            self.write(key, value);
        }
    }

    fn digest(&self) -> u64 {
        self.digest
    }
}

/// The rows one piece sees. What it wrote is taken back unless it is kept.
pub(crate) struct PieceRows<'a> {
    store: &'a mut dyn Store,
    placement: &'a dyn Placement,
    shard: ShardId,
    undo: Changes,
}

impl<'a> PieceRows<'a> {
    pub(crate) fn new(
        store: &'a mut dyn Store,
        placement: &'a dyn Placement,
        shard: ShardId,
    ) -> Self {
        Self {
            store,
            placement,
            shard,
            undo: Changes::new(),
        }
    }

    /// Takes back what was written, newest first.
    pub(crate) fn roll_back(self) {
        for (key, value) in self.undo.into_iter().rev() {
            self.store.write(key, value);
        }
    }

    fn check(&self, key: &[u8]) -> Result<(), TxnError> {
        if self.holds(key) {
            return Ok(());
        }
        Err(TxnError::Procedure {
            name: format!("a piece on shard {}", self.shard.0),
            what: format!("touched key {} of another shard", key.escape_ascii()),
        })
    }
}

impl RowView for PieceRows<'_> {
    fn holds(&self, key: &[u8]) -> bool {
        self.placement.shard_of(key) == self.shard
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, TxnError> {
        self.check(key)?;
        Ok(self.store.get(key))
    }

    fn get_for_update(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, TxnError> {
        self.get(key)
    }

    fn scan(
        &mut self,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Result<Page, TxnError> {
        Ok(self.store.scan(range, direction, limit))
    }

    fn write(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) -> Result<(), TxnError> {
        self.check(&key)?;
        let before = self.store.write(key.clone(), value);
        self.undo.push((key, before));
        Ok(())
    }

    fn still_true(&mut self, _reads: &ReadSet) -> Result<bool, TxnError> {
        Err(TxnError::Procedure {
            name: "validation of reads".into(),
            what: "rows of this path do not keep the versions that snapshots saw".into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use manxdb_txn::procedure::OneShard;

    fn key(text: &str) -> Vec<u8> {
        text.as_bytes().to_vec()
    }

    #[test]
    fn equal_rows_have_equal_digests_whatever_happened_before() {
        let (mut one, mut other) = (MapStore::default(), MapStore::default());
        one.write(key("a"), Some(key("1")));
        one.write(key("b"), Some(key("2")));
        one.write(key("a"), None);
        other.write(key("b"), Some(key("2")));
        assert_eq!(one.digest(), other.digest());
        let mut copy = MapStore::default();
        copy.write(key("x"), Some(key("old")));
        copy.import(one.export());
        assert_eq!(copy.digest(), one.digest());
        assert_ne!(copy.digest(), MapStore::default().digest());
    }

    #[test]
    fn what_a_failed_piece_wrote_is_taken_back() {
        let mut store = MapStore::default();
        store.write(key("a"), Some(key("1")));
        let before = store.digest();
        let mut rows = PieceRows::new(&mut store, &OneShard, ShardId(0));
        rows.write(key("a"), Some(key("2"))).unwrap();
        rows.write(key("b"), Some(key("3"))).unwrap();
        rows.write(key("a"), None).unwrap();
        rows.roll_back();
        assert_eq!(store.digest(), before);
        assert_eq!(store.get(b"a"), Some(key("1")));
    }
}
