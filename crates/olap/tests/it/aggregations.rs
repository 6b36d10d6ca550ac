//! Every aggregation finds what a map finds.
#![allow(clippy::unwrap_used, clippy::panic)]
#![allow(clippy::disallowed_methods)] // threads and sockets stand for nodes

use std::collections::BTreeMap;

use crate::common::{Keys, all, rows};
use manxdb_core::Random;
use manxdb_olap::aggregate::{Partial, by_messages, by_writes, parts};
use manxdb_olap::memory::{Load, NodeRegion};
use manxdb_olap::{Key, Rows, Traffic};

fn drawn(seed: u64, nodes: usize, bytes: usize, count: u64, keys: Keys) -> Vec<Rows> {
    let mut random = Random::new(seed);
    (0..nodes)
        .map(|_| rows(&mut random, bytes, count, keys))
        .collect()
}

/// The oracle.
fn expected(nodes: &[Rows]) -> Vec<Partial> {
    let mut map: BTreeMap<u32, Partial> = BTreeMap::new();
    for row in &all(nodes) {
        let key = Key::of(row).0;
        let group = map.entry(key).or_default();
        let value = u32::from_le_bytes(row[4..8].try_into().unwrap());
        group.key = key;
        group.count += 1;
        group.sum += u64::from(value);
    }
    map.into_values().collect()
}

fn together(found: Vec<(Vec<Partial>, Traffic)>) -> (Vec<Partial>, Vec<Traffic>) {
    let (groups, sent): (Vec<Vec<Partial>>, Vec<Traffic>) = found.into_iter().unzip();
    let mut groups = groups.concat();
    groups.sort_unstable();
    (groups, sent)
}

fn messages(nodes: &[Rows]) -> (Vec<Partial>, Vec<Traffic>) {
    together(crate::common::by_messages(nodes.len(), |me, sockets| {
        let mut groups = Vec::new();
        let sent = by_messages(sockets, &nodes[me], |group| groups.push(group)).unwrap();
        (groups, sent)
    }))
}

fn writes(nodes: &[Rows], parts: u32) -> (Vec<Partial>, Vec<Traffic>) {
    let load = Load {
        rows: all(nodes).len() as u64,
        width: Partial::WIDTH,
    };
    let count = u16::try_from(nodes.len()).unwrap();
    let region = NodeRegion::new(count, parts, 2 << 10, &[load]).unwrap();
    together(crate::common::by_writes(region, |me, node| {
        let mut groups = Vec::new();
        let sent = by_writes(node, &nodes[me], |group| groups.push(group)).unwrap();
        (groups, sent)
    }))
}

fn check(nodes: &[Rows], what: &str) {
    let expected = expected(nodes);
    assert_eq!(messages(nodes).0, expected, "{what}, AGG");
    for parts in [1, 6] {
        assert_eq!(writes(nodes, parts).0, expected, "{what}, {parts} parts");
    }
}

#[test]
fn every_aggregation_finds_what_a_map_finds() {
    for nodes in [1, 2, 5] {
        let of = |seed, bytes, count, keys| drawn(seed, nodes, bytes, count, keys);
        check(&of(1, 8, 5_000, Keys::Even(10)), "few groups");
        // More groups than fit the table that is kept in a cache: most rows travel.
        check(&of(2, 8, 30_000, Keys::Even(1 << 32)), "a group a row");
        check(&of(3, 16, 20_000, Keys::Skewed(40_000)), "skew");
        check(&of(4, 104, 500, Keys::One), "one group");
        check(&of(5, 8, 0, Keys::One), "nothing");
    }
}

#[test]
fn seeds_of_all_shapes() {
    for seed in 0..40 {
        let mut random = Random::stream(seed, &[2]);
        let nodes = 1 + usize::try_from(random.below(4)).unwrap();
        let bytes = 8 * (1 + usize::try_from(random.below(6)).unwrap());
        let bound = 4 + random.below(3_000);
        let keys = if random.below(2) == 0 {
            Keys::Even(bound)
        } else {
            Keys::Skewed(bound)
        };
        let mut of_all = drawn(seed, nodes, bytes, random.below(2_000), keys);
        if random.below(3) == 0 {
            of_all[0] = Rows::new(of_all[0].width());
        }
        check(&of_all, &format!("seed {seed}"));
    }
}

#[test]
fn few_groups_travel_as_few_rows_and_many_as_many() {
    let bytes = |sent: Vec<Traffic>| sent.iter().map(|one| one.bytes).sum::<u64>();
    let few = drawn(1, 4, 8, 50_000, Keys::Even(100));
    for sent in [bytes(messages(&few).1), bytes(writes(&few, 1).1)] {
        // 100 partials of each of four nodes, three quarters of which leave it.
        let partials = 4 * 100 * 24 * 3 / 4;
        assert!((partials..partials + 2_000).contains(&sent), "{sent}");
    }
    let many = drawn(2, 4, 8, 50_000, Keys::Even(1 << 32));
    for sent in [bytes(messages(&many).1), bytes(writes(&many, 4).1)] {
        let partials = 4 * 50_000 * 24 * 3 / 4;
        assert!((partials * 99 / 100..partials * 102 / 100).contains(&sent));
    }
}

#[test]
fn a_partition_fits_a_cache() {
    assert_eq!((parts(0), parts(5_000), parts(1 << 20)), (1, 1, 192));
}
