//! What was written last, in memory, in front of the sorted files.
//!
//! RocksDB's own memtable only ever grows: a row written a thousand times lies in it a thousand
//! times, every read steps over that, and all of it is written to disk before a compaction finds
//! that one version was needed. Here a new version takes the place of those that nobody can see
//! any more, as it is written ([`chain`]); what remains is written out once (docs/decisions/011).
//!
//! ```text
//! points    hash → node        reads and writes of one key: no comparison of keys on the way
//! ordered   key  → node        ranges, and writing out; changed by new keys only
//! node      key, chain         versions, newest at hand
//! ```
//!
//! One writer at a time, any number of readers. Nobody holds a lock for longer than a value takes
//! to copy or a page of nodes to list ([`cursor`]). A node stays until its memtable goes, so who
//! has it needs no lock of a map.

mod chain;
mod cursor;
mod key;

use std::collections::BTreeMap;
use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use foldhash::quality::RandomState;
use hashbrown::HashTable;
use manxdb_core::check::ensure;
use parking_lot::{Mutex, RwLock};

use crate::model::{KeyRange, Version, Versioned};
use chain::{Chain, Change};
use cursor::as_slice;
pub use cursor::{MemtableCursor, Nodes};
use key::Key;

/// Parts of the table of points: readers of one do not meet a new key in another.
const SHARDS: usize = 64;
const _: () = assert!(SHARDS.is_power_of_two(), "bits of a hash name a shard");

/// What a key takes beside the bytes of its versions, roughly: a node with its counters, its
/// place in the order at three quarters full, and its place in the table of points.
const NODE_BYTES: usize = size_of::<Node>() + 16 + (size_of::<Key>() + 8) * 4 / 3 + 2 * 16;

/// A key and its versions.
#[derive(Debug)]
pub struct Node {
    key: Key,
    hash: u64,
    chain: Mutex<Chain>,
}

impl Node {
    /// The key.
    pub fn key(&self) -> &[u8] {
        self.key.as_slice()
    }

    /// Hands what readers at or above `watermark` may see to `take`, newest first.
    pub fn needed<E>(
        &self,
        watermark: Version,
        mut take: impl FnMut(Version, Option<&[u8]>) -> Result<(), E>,
    ) -> Result<(), E> {
        let chain = self.chain.lock();
        let mut needed = chain.needed(watermark);
        needed.try_for_each(|stored| take(stored.version, stored.value.as_deref()))
    }
}

/// What a memtable says of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// Nothing: whoever was written to before may know.
    Unknown,
    /// The key is deleted.
    Deleted,
    /// The key has this value.
    Found(Versioned),
}

/// What many memtables share: counts that outlive them, and how keys are hashed.
#[derive(Debug, Default)]
pub struct Shared {
    hasher: RandomState,
    /// Versions dropped because a newer one hid them from every reader.
    pub collapsed: AtomicU64,
}

impl Shared {
    /// The hash by which all memtables of a store find `key`.
    pub fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash_one(key)
    }
}

/// An ordered map from keys to versions.
#[derive(Debug)]
pub struct Memtable {
    points: [RwLock<HashTable<Arc<Node>>>; SHARDS],
    ordered: RwLock<BTreeMap<Key, Arc<Node>>>,
    bytes: AtomicUsize,
    keys: AtomicUsize,
    shared: Arc<Shared>,
}

impl Memtable {
    /// An empty one.
    pub fn new(shared: &Arc<Shared>) -> Self {
        Self {
            points: std::array::from_fn(|_| RwLock::default()),
            ordered: RwLock::default(),
            bytes: AtomicUsize::new(0),
            keys: AtomicUsize::new(0),
            shared: Arc::clone(shared),
        }
    }

    /// Writes one version of a key, and drops the versions of it that nobody sees then who reads
    /// at or above `watermark`.
    pub fn write(&self, version: Version, key: &[u8], value: Option<&[u8]>, watermark: Version) {
        self.put(version, key, value.map(Into::into), watermark);
    }

    /// As [`Memtable::write`], with the value's own memory.
    pub fn put(&self, version: Version, key: &[u8], value: Option<Box<[u8]>>, watermark: Version) {
        let hash = self.shared.hash(key);
        let shard = self.shard(hash).read();
        let Some(node) = find(&shard, hash, key) else {
            drop(shard);
            return self.add(hash, version, key, value);
        };
        let change = node.chain.lock().write(version, value, watermark);
        drop(shard);
        self.count(change);
    }

    fn count(&self, change: Change) {
        if change.added >= change.removed {
            let more = change.added - change.removed;
            self.bytes.fetch_add(more, Ordering::Relaxed);
        } else {
            let less = change.removed - change.added;
            let held = self.bytes.fetch_sub(less, Ordering::Relaxed);
            assert!(held >= less, "a memtable frees no more than it holds");
        }
        let collapsed = change.collapsed as u64;
        if collapsed > 0 {
            let counter = &self.shared.collapsed;
            counter.fetch_add(collapsed, Ordering::Relaxed);
        }
    }

    fn add(&self, hash: u64, version: Version, key: &[u8], value: Option<Box<[u8]>>) {
        let (chain, bytes) = Chain::new(version, value);
        let key = Key::new(key);
        let bytes = bytes + NODE_BYTES + key.heap_bytes();
        let node = Arc::new(Node {
            key: key.clone(),
            hash,
            chain: Mutex::new(chain),
        });
        let mut ordered = self.ordered.write();
        let other = ordered.insert(key, Arc::clone(&node));
        assert!(other.is_none(), "a key has one node: there is one writer");
        let ordered_keys = ordered.len();
        drop(ordered);
        let mut shard = self.shard(hash).write();
        shard.insert_unique(hash, node, |node| node.hash);
        drop(shard);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let before = self.keys.fetch_add(1, Ordering::Relaxed);
        assert_eq!(
            before + 1,
            ordered_keys,
            "a range has the keys that points have"
        );
    }

    fn shard(&self, hash: u64) -> &RwLock<HashTable<Arc<Node>>> {
        // The table itself looks at the highest and the lowest bits.
        let shard = usize::try_from(hash >> 32 & (SHARDS as u64 - 1)).unwrap_or(0);
        &self.points[shard]
    }

    fn with<T>(&self, hash: u64, key: &[u8], look: impl FnOnce(&Node) -> T) -> Option<T> {
        let shard = self.shard(hash).read();
        find(&shard, hash, key).map(|node| look(node))
    }

    /// The newest version of `key` at or below `at`; `hash` is that of [`Shared::hash`].
    pub fn get(&self, hash: u64, key: &[u8], at: Version) -> Lookup {
        let found = self.with(hash, key, |node| {
            let chain = node.chain.lock();
            let stored = chain.at(at)?;
            let version = stored.version;
            let value = stored.value.as_deref().map(<[u8]>::to_vec);
            Some(value.map(|value| Versioned { version, value }))
        });
        match found.flatten() {
            None => Lookup::Unknown,
            Some(None) => Lookup::Deleted,
            Some(Some(versioned)) => Lookup::Found(versioned),
        }
    }

    /// Whether a reader at `version` finds the write of that version.
    pub fn has_written(&self, version: Version, key: &[u8], value: Option<&[u8]>) -> bool {
        match self.get(self.shared.hash(key), key, version) {
            Lookup::Unknown => false,
            Lookup::Deleted => value.is_none(),
            Lookup::Found(found) => {
                found.version == version && Some(found.value.as_slice()) == value
            }
        }
    }

    /// What holds while nobody writes.
    ///
    /// # Errors
    /// The invariant that is broken.
    pub fn check(&self) -> Result<(), String> {
        let ordered = self.ordered.read();
        let mut bytes = 0;
        for (key, node) in ordered.iter() {
            let name = key.as_slice();
            ensure(node.key() == name, || {
                format!("a node has the key {name:?} that a range finds it by")
            })?;
            let hash = self.shared.hash(name);
            ensure(node.hash == hash, || {
                format!("a node keeps the hash of its key {name:?}, by which it is moved")
            })?;
            let found = self.with(hash, name, |found| std::ptr::eq(found, Arc::as_ptr(node)));
            ensure(found == Some(true), || {
                format!("a read of {name:?} finds what a range finds: {found:?}")
            })?;
            let chain = node.chain.lock();
            chain.check().map_err(|why| format!("{name:?}: {why}"))?;
            bytes += chain.bytes() + NODE_BYTES + key.heap_bytes();
        }
        let points: usize = self.points.iter().map(|shard| shard.read().len()).sum();
        ensure(points == ordered.len() && points == self.keys(), || {
            let (listed, counted) = (ordered.len(), self.keys());
            format!("{points} keys are read, {listed} listed and {counted} counted")
        })?;
        ensure(bytes == self.bytes(), || {
            format!("{} bytes are counted of {bytes}", self.bytes())
        })
    }

    /// Whether `range` holds any key, whatever its versions.
    pub fn has_any(&self, range: &KeyRange) -> bool {
        let bounds = (as_slice(&range.start), as_slice(&range.end));
        !range.is_empty()
            && self
                .ordered
                .read()
                .range::<[u8], _>(bounds)
                .next()
                .is_some()
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.keys() == 0
    }

    /// Number of keys.
    pub fn keys(&self) -> usize {
        self.keys.load(Ordering::Relaxed)
    }

    /// Memory taken, roughly.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

fn find<'a>(shard: &'a HashTable<Arc<Node>>, hash: u64, key: &[u8]) -> Option<&'a Arc<Node>> {
    let found = shard.find(hash, |node| node.key() == key);
    assert!(
        found.is_none_or(|node| node.hash == hash),
        "all memtables hash a key alike"
    );
    found
}

#[cfg(test)]
mod tests;
