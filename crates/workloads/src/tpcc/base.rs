//! The rows of every warehouse at the start: one template for all of them.

use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

use manxdb_storage::{Direction, KeyRange};
use manxdb_txn::procedure::ShardId;
use manxdb_txn::rows::Base;

use super::template::Template;
use crate::{Partition, Topology};

type Page = Vec<(Vec<u8>, Vec<u8>)>;

/// The initial rows of some warehouses.
///
/// All warehouses are alike but for their number, which is filled in on reading. So the rows of
/// any number of shards and replicas take the memory of one warehouse: 30 MB at full scale.
#[derive(Clone)]
pub struct Warehouses {
    template: Arc<Template>,
    /// Ascending.
    partitions: Vec<Partition>,
}

impl Warehouses {
    /// The warehouses of one shard, when there are `count` (0 and up) over all shards.
    #[must_use]
    pub fn of_shard(
        template: Arc<Template>,
        topology: Topology,
        count: u32,
        shard: ShardId,
    ) -> Self {
        let all = (0..count).map(Partition);
        let partitions = all.filter(|at| topology.home_of(*at) == shard).collect();
        Self {
            template,
            partitions,
        }
    }

    /// Which warehouses there are.
    #[must_use]
    pub fn partitions(&self) -> &[Partition] {
        &self.partitions
    }

    /// Rows of warehouse `w` before a key, or up to it.
    fn position(&self, w: Partition, key: &[u8], with_it: bool) -> usize {
        match w.cmp(&Partition::of(key)) {
            Ordering::Less => self.template.len(),
            Ordering::Greater => 0,
            Ordering::Equal => {
                let suffix = key.get(Partition::KEY_BYTES..).unwrap_or_default();
                self.template.position(suffix, with_it)
            }
        }
    }

    fn row(&self, w: Partition, index: usize) -> Option<(Vec<u8>, Vec<u8>)> {
        let (suffix, value) = self.template.row(index, w)?;
        let mut key = Vec::with_capacity(Partition::KEY_BYTES + suffix.len());
        key.extend_from_slice(&w.prefix());
        key.extend_from_slice(suffix);
        Some((key, value))
    }

    /// Takes rows of one warehouse until the page is full.
    fn scan_one(
        &self,
        w: Partition,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
        page: &mut Page,
    ) {
        let start = match &range.start {
            Bound::Unbounded => 0,
            Bound::Included(key) => self.position(w, key, false),
            Bound::Excluded(key) => self.position(w, key, true),
        };
        let end = match &range.end {
            Bound::Unbounded => self.template.len(),
            Bound::Included(key) => self.position(w, key, true),
            Bound::Excluded(key) => self.position(w, key, false),
        };
        let room = limit.saturating_sub(page.len());
        let rows = (start..end).take(room).filter_map(|at| self.row(w, at));
        match direction {
            Direction::Forward => page.extend(rows),
            Direction::Reverse => {
                let last = (start..end).rev().take(room);
                page.extend(last.filter_map(|at| self.row(w, at)));
            }
        }
    }
}

impl Base for Warehouses {
    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let suffix = key.get(Partition::KEY_BYTES..)?;
        let w = Partition::of(key);
        self.partitions.binary_search(&w).ok()?;
        self.template.get(suffix, w)
    }

    fn scan(&self, range: &KeyRange, direction: Direction, limit: usize) -> Page {
        let mut page = Page::new();
        let mut scan_one = |w: &Partition| self.scan_one(*w, range, direction, limit, &mut page);
        match direction {
            Direction::Forward => self.partitions.iter().for_each(&mut scan_one),
            Direction::Reverse => self.partitions.iter().rev().for_each(&mut scan_one),
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys;
    use super::super::scale::Scale;
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn base() -> Warehouses {
        let topology = Topology {
            regions: 2,
            shards_per_region: 1,
        };
        let template = Arc::new(Template::new(Scale::tiny(), 1));
        Warehouses::of_shard(template, topology, 5, ShardId(1))
    }

    #[test]
    fn a_shard_has_its_warehouses_and_each_its_own_number() {
        let base = base();
        assert_eq!(base.partitions(), [Partition(1), Partition(3)]);
        for w in [1, 3] {
            let value = base.get(keys::warehouse(Partition(w)).as_slice());
            assert_eq!(value.unwrap()[..4], w.to_le_bytes());
        }
        let elsewhere = keys::warehouse(Partition(2));
        assert_eq!(base.get(elsewhere.as_slice()), None);
        assert_eq!(base.get(&[0, 0]), None);
    }

    fn bound(all: Vec<Vec<u8>>) -> impl Strategy<Value = Bound<Vec<u8>>> {
        let cut = (any::<prop::sample::Index>(), 0_usize..14, 0_u8..3).prop_map(
            move |(at, length, kind)| {
                let mut key = at.get(&all).clone();
                key.truncate(length);
                match kind {
                    0 => Bound::Included(key),
                    1 => Bound::Excluded(key),
                    _ => Bound::Unbounded,
                }
            },
        );
        cut.boxed()
    }

    #[test]
    fn scans_are_those_of_a_map() {
        let base = base();
        let all = base.scan(&KeyRange::all(), Direction::Forward, usize::MAX);
        let oracle: BTreeMap<_, _> = all.iter().cloned().collect();
        let keys: Vec<Vec<u8>> = oracle.keys().cloned().collect();
        assert!(
            all.iter().map(|(key, _)| key).eq(&keys),
            "in order, each once"
        );
        for (key, value) in &oracle {
            assert_eq!(base.get(key).as_ref(), Some(value));
        }
        let strategy = (bound(keys.clone()), bound(keys), 0_usize..9);
        let mut runner = proptest::test_runner::TestRunner::default();
        let check = |(start, end, limit)| {
            let range = KeyRange { start, end };
            let inside = || oracle.iter().filter(|(key, _)| range.contains(key));
            let owned = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
            let expected: Page = inside().take(limit).map(owned).collect();
            prop_assert_eq!(base.scan(&range, Direction::Forward, limit), expected);
            let expected: Page = inside().rev().take(limit).map(owned).collect();
            prop_assert_eq!(base.scan(&range, Direction::Reverse, limit), expected);
            Ok(())
        };
        runner.run(&strategy, check).unwrap();
    }
}
