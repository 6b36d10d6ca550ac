//! What ANALYZE TABLE found out about a table: how many rows it has, and how many values the columns
//! of its keys take. The planner goes by it; an answer never depends on it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{IndexId, TableId};

/// Statistics of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableStatistics {
    /// The table they were made of. A copy of its record under another id has none.
    pub table: TableId,
    /// Rows.
    pub rows: u64,
    /// Bytes of all row records with their keys, before compression.
    pub bytes: u64,
    /// One entry a key; index 0 is the primary key.
    pub keys: Vec<KeyStatistics>,
}

/// Statistics of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyStatistics {
    /// Which key.
    pub index: IndexId,
    /// Of the first column, the first two and so on: how many different values they take together,
    /// NULL counting as one. Exact up to [`DistinctValues::KEPT_MAX`], about 3 % off beyond.
    pub distinct: Vec<u64>,
    /// Of each column, in how many rows it is NULL.
    pub nulls: Vec<u64>,
}

impl TableStatistics {
    /// Whether plans by `other` would hardly differ: every number is within a tenth of this one's.
    #[must_use]
    pub fn is_near(&self, other: &Self) -> bool {
        let keys = self.keys.iter().zip(&other.keys);
        self.table == other.table
            && near(self.rows, other.rows)
            && near(self.bytes, other.bytes)
            && self.keys.len() == other.keys.len()
            && keys.into_iter().all(|(one, other)| one.is_near(other))
    }

    /// Statistics of the key `index`.
    #[must_use]
    pub fn key(&self, index: IndexId) -> Option<&KeyStatistics> {
        self.keys.iter().find(|key| key.index == index)
    }
}

impl KeyStatistics {
    fn is_near(&self, other: &Self) -> bool {
        self.index == other.index
            && all_near(&self.distinct, &other.distinct)
            && all_near(&self.nulls, &other.nulls)
    }
}

fn all_near(some: &[u64], others: &[u64]) -> bool {
    some.len() == others.len()
        && some
            .iter()
            .zip(others)
            .all(|(one, other)| near(*one, *other))
}

fn near(one: u64, other: u64) -> bool {
    one.abs_diff(other) <= one / 10
}

/// Counts different values by their hashes, of which it keeps the smallest: where the n-th smallest
/// lies in the range of all hashes says how many there are.
#[derive(Debug, Default)]
pub struct DistinctValues {
    smallest: BTreeSet<u64>,
}

impl DistinctValues {
    /// Hashes kept: the count is exact up to here.
    pub const KEPT_MAX: usize = 1024;

    /// Notes a value by its hash, which must spread evenly over all numbers.
    pub fn note(&mut self, hash: u64) {
        if self.smallest.len() >= Self::KEPT_MAX
            && self.smallest.last().is_some_and(|last| *last <= hash)
        {
            return;
        }
        self.smallest.insert(hash);
        if self.smallest.len() > Self::KEPT_MAX {
            self.smallest.pop_last();
        }
        assert!(self.smallest.len() <= Self::KEPT_MAX, "memory is bounded");
    }

    /// How many there are.
    #[must_use]
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )] // an estimate
    pub fn count(&self) -> u64 {
        let kept = self.smallest.len() as u64;
        match self.smallest.last() {
            Some(last) if self.smallest.len() >= Self::KEPT_MAX => {
                let share = (*last as f64 + 1.0) / (u64::MAX as f64 + 1.0);
                (((kept - 1) as f64 / share) as u64).max(kept)
            }
            _ => kept,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spreads numbers over the range of all hashes (splitmix64).
    fn hash(number: u64) -> u64 {
        let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    #[test]
    fn few_values_are_counted_exactly_and_many_about() {
        for (values, error) in [(0, 0), (1, 0), (1_023, 0), (100_000, 10_000)] {
            let mut distinct = DistinctValues::default();
            for number in (0..values).chain(0..values) {
                distinct.note(hash(number));
            }
            let count = distinct.count();
            assert!(count.abs_diff(values) <= error, "{values}: {count}");
        }
    }
}
