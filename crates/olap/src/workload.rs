//! Rows to be joined and added up, each node's made by itself, and what all together must find.

use manxdb_core::Random;

use crate::aggregate::Partial;
use crate::hash::hash;
use crate::rows::{Key, Rows, Width};

/// What was found, or must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Answer {
    /// Pairs, or groups.
    pub found: u64,
    /// Over all of them, in any order; around 2^64.
    pub sum: u64,
}

impl Answer {
    /// Adds a pair of rows.
    pub fn pair(&mut self, build: &[u8], probe: &[u8]) {
        let (one, other) = (value(build), value(probe));
        let product = u64::from(one).wrapping_mul(u64::from(other));
        self.add(product.wrapping_add(u64::from(Key::of(build).0)));
    }

    /// Adds a group: its weight is that of its rows, however they were put together.
    pub fn group(&mut self, group: Partial) {
        let weight = hash(Key(group.key));
        let counted = group.count.wrapping_mul(weight);
        self.add(counted.wrapping_add(group.sum.wrapping_mul(weight.rotate_left(32))));
    }

    fn add(&mut self, weight: u64) {
        self.found += 1;
        self.sum = self.sum.wrapping_add(weight);
    }

    /// Adds what another node has found.
    pub fn merge(&mut self, other: Self) {
        self.found += other.found;
        self.sum = self.sum.wrapping_add(other.sum);
    }
}

/// The four bytes behind a row's key.
fn value(row: &[u8]) -> u32 {
    let value = row.get(4..8).and_then(|value| value.first_chunk());
    value.map_or(0, |value| u32::from_le_bytes(*value))
}

/// Two relations of as many rows, each key once in each: the paper's (§5.4).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pairs {
    /// Nodes that have as many rows each.
    pub nodes: u16,
    /// Rows of a node, in each relation. Of all nodes together they are less than 2^31.
    pub rows: u32,
    /// Bytes of each.
    pub width: Width,
    /// The share of them that has a partner in the other relation, from 0 to 1.
    pub selectivity: f64,
}

impl Pairs {
    fn all(&self) -> u32 {
        self.rows.saturating_mul(u32::from(self.nodes))
    }

    /// Rows that have a partner.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // from 0 to `all`
    fn paired(&self) -> u32 {
        (f64::from(self.all()) * self.selectivity.clamp(0.0, 1.0)).round() as u32
    }

    /// A node's rows of the relation that tables are built of. Keys go to nodes in turn.
    pub fn build(&self, node: u16) -> Rows {
        let keys = (0..self.rows).map(|place| place * u32::from(self.nodes) + u32::from(node));
        self.of(keys, build_value)
    }

    /// The others. Nodes have runs of keys, so that partners are seldom of one node.
    pub fn probe(&self, node: u16) -> Rows {
        let (paired, all) = (self.paired(), self.all());
        let first = u32::from(node) * self.rows;
        let partner = |key| if key < paired { key } else { all + key };
        let keys = (first..first + self.rows).map(partner);
        self.of(keys, probe_value)
    }

    fn of(&self, keys: impl Iterator<Item = u32>, value: fn(u32) -> u32) -> Rows {
        let mut rows = Rows::new(self.width);
        for key in keys {
            rows.push(Key(key), &value(key).to_le_bytes());
        }
        rows
    }

    /// What all nodes together must find.
    pub fn answer(&self) -> Answer {
        let mut answer = Answer::default();
        let (mut build, mut probe) = ([0; 8], [0; 8]);
        for key in 0..self.paired() {
            for (row, value) in [
                (&mut build, build_value(key)),
                (&mut probe, probe_value(key)),
            ] {
                row[..4].copy_from_slice(&key.to_le_bytes());
                row[4..].copy_from_slice(&value.to_le_bytes());
            }
            answer.pair(&build, &probe);
        }
        answer
    }
}

fn build_value(key: u32) -> u32 {
    key.wrapping_mul(0x9E37_79B1).rotate_left(9)
}

fn probe_value(key: u32) -> u32 {
    key.wrapping_mul(0x85EB_CA77).rotate_left(17)
}

/// Rows whose keys are drawn alike from so many groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grouped {
    /// Nodes that have as many rows each.
    pub nodes: u16,
    /// Rows of a node.
    pub rows: u32,
    /// Bytes of each.
    pub width: Width,
    /// Groups that they are drawn from.
    pub groups: u32,
    /// Equal seeds draw equal rows.
    pub seed: u64,
}

impl Grouped {
    fn drawn(&self, node: u16) -> impl Iterator<Item = (Key, u32)> {
        let mut random = Random::stream(self.seed, &[u64::from(node)]);
        let groups = u64::from(self.groups);
        (0..self.rows).map(move |place| {
            let key = random.below(groups);
            (Key(u32::try_from(key).unwrap_or(0)), place) // below `groups`, a u32
        })
    }

    /// A node's rows.
    pub fn rows(&self, node: u16) -> Rows {
        let mut rows = Rows::new(self.width);
        for (key, value) in self.drawn(node) {
            rows.push(key, &value.to_le_bytes());
        }
        rows
    }

    /// What all nodes together must find.
    pub fn answer(&self) -> Answer {
        let mut answer = Answer::default();
        let mut is_seen = vec![false; usize::try_from(self.groups).unwrap_or(0)];
        for (Key(key), value) in (0..self.nodes).flat_map(|node| self.drawn(node)) {
            answer.group(Partial {
                key,
                count: 1,
                sum: u64::from(value),
            });
            if let Some(is_seen) = is_seen.get_mut(usize::try_from(key).unwrap_or(usize::MAX)) {
                *is_seen = true;
            }
        }
        // Rows of a group weigh as much as the group.
        answer.found = is_seen.iter().filter(|is_seen| **is_seen).count() as u64;
        answer
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn width() -> Width {
        Width::new(16).unwrap()
    }

    #[test]
    fn the_answer_of_pairs_is_that_of_their_rows() {
        for (selectivity, found_pairs) in [(0.0, 0), (0.25, 75), (1.0, 300)] {
            let pairs = Pairs {
                nodes: 3,
                rows: 100,
                width: width(),
                selectivity,
            };
            let (mut found, mut known) = (Answer::default(), BTreeMap::new());
            for node in 0..3 {
                for row in &pairs.build(node) {
                    assert_eq!(known.insert(Key::of(row), row.to_vec()), None);
                }
            }
            assert_eq!(known.len(), 300);
            for node in 0..3 {
                for row in &pairs.probe(node) {
                    if let Some(own) = known.get(&Key::of(row)) {
                        found.pair(own, row);
                    }
                }
            }
            assert_eq!(found, pairs.answer());
            assert_eq!(found.found, found_pairs);
        }
    }

    #[test]
    fn the_answer_of_groups_is_that_of_their_rows() {
        let grouped = Grouped {
            nodes: 3,
            rows: 500,
            width: width(),
            groups: 40,
            seed: 7,
        };
        let mut groups: BTreeMap<Key, Partial> = BTreeMap::new();
        for node in 0..3 {
            for row in &grouped.rows(node) {
                let group = groups.entry(Key::of(row)).or_default();
                group.key = Key::of(row).0;
                group.count += 1;
                group.sum += u64::from(value(row));
            }
        }
        let mut found = Answer::default();
        for group in groups.values() {
            found.group(*group);
        }
        assert_eq!(found, grouped.answer());
        assert_eq!(found.found, 40);
        let other = Grouped { seed: 8, ..grouped };
        assert_ne!(other.answer(), found);
    }
}
