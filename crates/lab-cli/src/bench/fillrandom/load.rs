//! What is put, and so what must be there in the end.
//!
//! Each thread draws from keys of its own, so the last put of a key is the same in every run, and
//! is found again by drawing once more: no ledger is kept while the clock runs.

use manxdb_core::Random;

/// Bytes of a key.
pub const KEY_BYTES: usize = 16;

/// Separates what keys are drawn from and what values are made of.
const KEYS: u64 = 1;
const VALUES: u64 = 2;

/// A load.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Threads that put.
    pub threads: u32,
    /// Puts of each.
    pub puts: u32,
    /// Size of a value in bytes.
    pub value_bytes: usize,
    /// Equal seeds put equal values under equal keys.
    pub seed: u64,
}

impl Load {
    /// Puts of all threads; also the number of keys that they draw from.
    pub fn total(&self) -> u64 {
        u64::from(self.threads) * u64::from(self.puts)
    }

    /// Bytes of all keys and values that are put.
    pub fn bytes(&self) -> u64 {
        self.total() * (KEY_BYTES + self.value_bytes) as u64
    }

    /// The keys that a thread puts, in order.
    pub fn keys(&self, thread: u32) -> impl Iterator<Item = u64> + use<> {
        let (threads, puts) = (u64::from(self.threads), u64::from(self.puts));
        let mut random = Random::stream(self.seed, &[KEYS, u64::from(thread)]);
        (0..puts).map(move |_| random.below(puts) * threads + u64::from(thread))
    }

    /// Makes the value of a thread's put: random bytes, then the same again, as db_bench makes
    /// values that compress to a half.
    pub fn value(&self, thread: u32, put: u32, value: &mut Vec<u8>) {
        let which = [VALUES, u64::from(thread), u64::from(put)];
        let mut random = Random::stream(self.seed, &which);
        let half = self.value_bytes.div_ceil(2);
        value.clear();
        while value.len() < half {
            value.extend(random.next_bits().to_le_bytes());
        }
        value.truncate(half);
        value.extend_from_within(..self.value_bytes - half);
    }

    /// The last put of every key.
    pub fn last_puts(&self) -> LastPuts {
        let keys = usize::try_from(self.total()).unwrap_or(usize::MAX);
        let mut puts = vec![NEVER; keys];
        for thread in 0..self.threads {
            for (put, key) in (0..).zip(self.keys(thread)) {
                if let Some(last) = usize::try_from(key).ok().and_then(|key| puts.get_mut(key)) {
                    *last = put;
                }
            }
        }
        LastPuts { load: *self, puts }
    }
}

/// A key as the database has it: its order is that of numbers.
pub fn key_bytes(key: u64) -> [u8; KEY_BYTES] {
    let mut bytes = [b'0'; KEY_BYTES];
    let (number, _) = bytes.split_at_mut(8);
    number.copy_from_slice(&key.to_be_bytes());
    bytes
}

/// No thread puts so often.
const NEVER: u32 = u32::MAX;

/// Which put of its thread each key has its value from.
pub struct LastPuts {
    load: Load,
    puts: Vec<u32>,
}

impl LastPuts {
    /// All keys that were put, in order, each with the thread and the put that it has its value
    /// from.
    pub fn entries(&self) -> impl Iterator<Item = (u64, u32, u32)> {
        let threads = u64::from(self.load.threads);
        let entries = (0_u64..).zip(&self.puts);
        entries
            .filter(|(_, put)| **put != NEVER)
            .filter_map(move |(key, put)| Some((key, u32::try_from(key % threads).ok()?, *put)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const LOAD: Load = Load {
        threads: 3,
        puts: 500,
        value_bytes: 21,
        seed: 7,
    };

    #[test]
    fn the_last_puts_are_those_that_a_map_would_hold() {
        let mut map = BTreeMap::new();
        for thread in 0..LOAD.threads {
            for (put, key) in (0..).zip(LOAD.keys(thread)) {
                map.insert(key, (thread, put));
            }
        }
        let expected: Vec<_> = map
            .into_iter()
            .map(|(key, (thread, put))| (key, thread, put))
            .collect();
        let last = LOAD.last_puts();
        assert_eq!(last.entries().collect::<Vec<_>>(), expected);
        // About 1 - 1/e of the keys are drawn at all.
        assert!((850..1_050).contains(&expected.len()), "{}", expected.len());
    }

    #[test]
    fn no_two_puts_have_one_value_and_half_of_each_is_new() {
        let mut seen = std::collections::BTreeSet::new();
        let mut value = Vec::new();
        for (thread, put) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            LOAD.value(thread, put, &mut value);
            assert_eq!(value.len(), LOAD.value_bytes);
            assert_eq!(value[..10], value[11..]);
            assert!(seen.insert(value.clone()));
        }
    }

    #[test]
    fn keys_sort_as_their_numbers_do() {
        assert!(key_bytes(255) < key_bytes(256));
    }
}
