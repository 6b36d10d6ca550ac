//! What databases write: all of it follows from a seed and a count, so that a judge who knows how
//! far a database got knows what must be in it.

use std::collections::BTreeMap;

use manxdb_core::Random;
use rocksdb::WriteBatch;

/// Where a database keeps the number of its last batch: all other keys are longer.
pub const COUNT_KEY: &[u8] = b"~";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Keys written again, deleted alone and in ranges.
    Mixed,
    /// Each key once.
    Once,
}

impl Shape {
    pub fn of(name: &str) -> Self {
        match name {
            "mixed" => Self::Mixed,
            "once" => Self::Once,
            _ => panic!("no load is called {name}"),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Load {
    pub seed: u64,
    pub shape: Shape,
}

enum Change {
    Put([u8; 4], Vec<u8>),
    Delete([u8; 4]),
    DeleteRange([u8; 4], [u8; 4]),
}

/// Keys of the mixed load.
const KEYS: u64 = 1 << 14;
/// Changes in a batch.
const CHANGES: usize = 16;
const VALUE_BYTES: usize = 100;

fn short(number: u64) -> [u8; 4] {
    u32::try_from(number & 0xffff_ffff).unwrap().to_be_bytes()
}

impl Load {
    fn changes(self, batch: u64) -> Vec<Change> {
        let mut random = Random::stream(self.seed, &[batch]);
        let value = |random: &mut Random| {
            let words = (0..VALUE_BYTES / 8).map(|_| random.next_bits().to_le_bytes());
            words.collect::<Vec<_>>().concat()
        };
        let change = |place: usize| match self.shape {
            // An odd factor: no two of the first 2^32 are equal.
            Shape::Once => {
                let number = batch * CHANGES as u64 + place as u64;
                let key = short(number.wrapping_mul(2_654_435_761));
                Change::Put(key, value(&mut random))
            }
            Shape::Mixed => {
                let key = random.below(KEYS);
                match random.below(100) {
                    0 => Change::DeleteRange(short(key), short(key + random.below(200))),
                    1..=15 => Change::Delete(short(key)),
                    _ => Change::Put(short(key), value(&mut random)),
                }
            }
        };
        (0..CHANGES).map(change).collect()
    }

    pub fn batch(self, number: u64) -> WriteBatch {
        let mut batch = WriteBatch::default();
        for change in self.changes(number) {
            match change {
                Change::Put(key, value) => batch.put(key, value),
                Change::Delete(key) => batch.delete(key),
                Change::DeleteRange(from, to) => batch.delete_range(from, to),
            }
        }
        batch.put(COUNT_KEY, number.to_le_bytes());
        batch
    }

    pub fn apply(self, number: u64, model: &mut Model) {
        for change in self.changes(number) {
            match change {
                Change::Put(key, value) => {
                    model.insert(key.to_vec(), value);
                }
                Change::Delete(key) => {
                    model.remove(&key[..]);
                }
                Change::DeleteRange(from, to) => {
                    let keys = model.range(from.to_vec()..to.to_vec());
                    let keys: Vec<Vec<u8>> = keys.map(|(key, _)| key.clone()).collect();
                    for key in keys {
                        model.remove(&key);
                    }
                }
            }
        }
    }

    /// What is in a database that wrote so many batches.
    pub fn after(self, batches: u64) -> Model {
        let mut model = Model::new();
        for number in 1..=batches {
            self.apply(number, &mut model);
        }
        model
    }
}

/// A database as a map.
pub type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// One number for all that is in a database.
pub fn hash<'a>(pairs: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> (u64, u32) {
    let mut hasher = crc32fast::Hasher::new();
    let mut count = 0;
    for (key, value) in pairs {
        count += 1;
        hasher.update(key);
        hasher.update(value);
    }
    (count, hasher.finalize())
}

pub fn hash_of(model: &Model) -> (u64, u32) {
    hash(model.iter().map(|(key, value)| (&key[..], &value[..])))
}
