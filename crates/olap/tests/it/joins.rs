//! Every join finds what a join in one place finds.
#![allow(clippy::unwrap_used, clippy::panic)]
#![allow(clippy::disallowed_methods)] // threads and sockets stand for nodes

use std::collections::BTreeMap;

use crate::common::{Keys, all, rows, width};
use manxdb_core::Random;
use manxdb_olap::join::{Tables, Travel, by_messages, by_writes, parts};
use manxdb_olap::memory::{Load, NodeRegion};
use manxdb_olap::{Key, OlapError, Rows, Traffic};

/// Pairs of rows, in order.
type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// Rows of all nodes.
struct Case {
    build: Vec<Rows>,
    probe: Vec<Rows>,
}

impl Case {
    fn drawn(
        seed: u64,
        nodes: usize,
        (build, probe): ((usize, u64, Keys), (usize, u64, Keys)),
    ) -> Self {
        let mut random = Random::new(seed);
        let mut draw = |(bytes, count, keys)| -> Vec<Rows> {
            (0..nodes)
                .map(|_| rows(&mut random, bytes, count, keys))
                .collect()
        };
        Self {
            build: draw(build),
            probe: draw(probe),
        }
    }

    fn nodes(&self) -> u16 {
        u16::try_from(self.build.len()).unwrap()
    }

    fn tables(&self, node: usize) -> Tables<'_> {
        Tables {
            build: &self.build[node],
            probe: &self.probe[node],
        }
    }

    /// The oracle: a map of all rows of one relation, and the other one looked up in it.
    fn expected(&self) -> Pairs {
        let mut map: BTreeMap<Key, Vec<&[u8]>> = BTreeMap::new();
        let build = all(&self.build);
        for row in &build {
            map.entry(Key::of(row)).or_default().push(row);
        }
        let mut pairs = Vec::new();
        for row in &all(&self.probe) {
            for own in map.get(&Key::of(row)).into_iter().flatten() {
                pairs.push((own.to_vec(), row.to_vec()));
            }
        }
        pairs.sort();
        pairs
    }

    fn by_messages(&self, travel: Travel, parts: u32) -> (Pairs, Vec<Traffic>) {
        together(crate::common::by_messages(
            self.build.len(),
            |me, sockets| {
                let mut pairs = Pairs::new();
                let each = |one: &[u8], other: &[u8]| pairs.push((one.to_vec(), other.to_vec()));
                let sent = by_messages(sockets, self.tables(me), travel, parts, each).unwrap();
                (pairs, sent)
            },
        ))
    }

    fn region(&self, parts: u32, piece: u64) -> NodeRegion {
        let load = |rows: &[Rows]| Load {
            rows: all(rows).len() as u64,
            width: rows[0].width(),
        };
        let loads = [load(&self.build), load(&self.probe)];
        NodeRegion::new(self.nodes(), parts, piece, &loads).unwrap()
    }

    fn by_writes(&self, parts: u32, piece: u64, divided: u32) -> (Pairs, Vec<Traffic>) {
        let region = self.region(parts, piece);
        together(crate::common::by_writes(region, |me, node| {
            let mut pairs = Pairs::new();
            let each = |one: &[u8], other: &[u8]| pairs.push((one.to_vec(), other.to_vec()));
            let sent = by_writes(node, self.tables(me), divided, each).unwrap();
            (pairs, sent)
        }))
    }

    fn check(&self, what: &str) {
        let expected = self.expected();
        for parts in [1, 5] {
            let [plain, filtered] =
                [Travel::All, Travel::Filtered].map(|one| self.by_messages(one, parts).0);
            assert_eq!(plain, expected, "{what}, GHJ, {parts} parts");
            assert_eq!(
                filtered, expected,
                "{what}, GHJ with filters, {parts} parts"
            );
        }
        for (parts, piece, divided) in [(1, 64 << 10, 6), (7, 2 << 10, 1), (3, 1 << 10, 2)] {
            let (found, _) = self.by_writes(parts, piece, divided);
            assert_eq!(found, expected, "{what}, {parts} parts into {divided}");
        }
    }
}

/// What all nodes found, in order, and what each sent.
fn together(found: Vec<(Pairs, Traffic)>) -> (Pairs, Vec<Traffic>) {
    let (pairs, sent): (Vec<Pairs>, Vec<Traffic>) = found.into_iter().unzip();
    let mut pairs = pairs.concat();
    pairs.sort();
    (pairs, sent)
}

#[test]
fn every_join_finds_what_one_in_one_place_finds() {
    for nodes in [1, 2, 5] {
        let of = |seed, build, probe| Case::drawn(seed, nodes, (build, probe));
        let even = Keys::Even(3_000);
        of(1, (8, 1_000, even), (8, 2_000, even)).check("duplicates");
        let wide = Keys::Even(1 << 32);
        of(2, (8, 1_000, wide), (8, 1_000, wide)).check("hardly a match");
        of(
            3,
            (16, 300, Keys::Skewed(500)),
            (104, 300, Keys::Skewed(500)),
        )
        .check("skew");
        of(4, (1_016, 40, Keys::Even(50)), (8, 500, Keys::Even(50))).check("long rows");
    }
}

#[test]
fn joins_of_nothing_and_of_one_key_are_joins_too() {
    let (none, some) = ((8, 0, Keys::One), (8, 200, Keys::Even(100)));
    Case::drawn(1, 3, (none, some)).check("nothing to build of");
    Case::drawn(2, 3, (some, none)).check("nothing to look up");
    Case::drawn(3, 3, (none, none)).check("nothing");
    // All rows belong to one partition of one node.
    let one = (8, 60, Keys::One);
    Case::drawn(4, 4, (one, one)).check("one key");
}

#[test]
fn a_node_without_rows_takes_part() {
    let mut case = Case::drawn(5, 3, ((8, 500, Keys::Even(400)), (8, 500, Keys::Even(400))));
    case.build[1] = Rows::new(width(8));
    case.probe[1] = Rows::new(width(8));
    case.build[2] = Rows::new(width(8));
    case.check("a node without rows");
}

#[test]
fn seeds_of_all_shapes() {
    for seed in 0..20 {
        let mut random = Random::stream(seed, &[1]);
        let nodes = 1 + usize::try_from(random.below(4)).unwrap();
        let mut relation = || {
            let bytes = 8 * (1 + usize::try_from(random.below(6)).unwrap());
            let bound = 1 + random.below(2_000);
            let keys = match random.below(3) {
                0 => Keys::Even(bound),
                1 => Keys::Skewed(bound + 3),
                _ => Keys::Even(1 << 32),
            };
            (bytes, random.below(400), keys)
        };
        let case = Case::drawn(seed, nodes, (relation(), relation()));
        case.check(&format!("seed {seed}"));
    }
}

#[test]
fn bytes_and_messages_are_counted() {
    const NODES: u64 = 4;
    const ROWS: u64 = 20_000;
    let even = (8, ROWS, Keys::Even(1 << 32));
    let case = Case::drawn(9, 4, (even, even));
    let bytes = |sent: &[Traffic]| sent.iter().map(|one| one.bytes).sum::<u64>();
    let messages = |sent: &[Traffic]| sent.iter().map(|one| one.messages).sum::<u64>();
    // Three quarters of all rows leave their node, whatever carries them.
    let leave = 2 * NODES * ROWS * 8 * 3 / 4;
    let near = |bytes: u64| (leave * 98 / 100..leave * 103 / 100).contains(&bytes);
    let (_, sent) = case.by_messages(Travel::All, 4);
    assert!(near(bytes(&sent)), "{sent:?}");
    let (_, large) = case.by_writes(1, 64 << 10, 4);
    assert!(near(bytes(&large)), "{large:?}");
    let (_, small) = case.by_writes(4, 2 << 10, 1);
    assert!(near(bytes(&small)), "{small:?}");
    assert!(messages(&small) > 10 * messages(&large));
    // One row in ten seems to have a partner; a filter has a byte for each row, for each other node.
    let (_, filtered) = case.by_messages(Travel::Filtered, 4);
    let filters = 2 * NODES * ROWS * (NODES - 1);
    let rows = bytes(&filtered) - filters;
    assert!(rows < leave / 8 && rows > leave / 20, "{rows} of {leave}");
    // Nobody sends anything to itself.
    let alone = Case::drawn(9, 1, (even, even));
    assert_eq!(
        alone.by_messages(Travel::Filtered, 2).1,
        [Traffic::default()]
    );
    assert_eq!(alone.by_writes(2, 2 << 10, 1).1, [Traffic::default()]);
}

#[test]
fn a_partition_fits_a_cache() {
    assert_eq!(parts(0, width(8)), 1);
    assert_eq!(parts(1_000, width(8)), 1);
    assert_eq!(parts(1 << 20, width(8)), 64);
    assert_eq!(parts(u64::MAX, width(8)), u32::MAX);
}

#[test]
fn a_node_without_region_is_named_and_nobody_waits() {
    let case = Case::drawn(1, 2, ((8, 500, Keys::One), (8, 500, Keys::One)));
    let region = case.region(1, 1 << 10).with_pieces(9);
    let found = crate::common::by_writes(region, |me, node| {
        by_writes(node, case.tables(me), 1, |_, _| {}).unwrap_err()
    });
    let full = |error: &OlapError| matches!(error, OlapError::Full { .. });
    let given_up = |error: &OlapError| matches!(error, OlapError::GivenUp(_));
    assert!(found.iter().all(|error| full(error) || given_up(error)));
    let said = found.iter().find(|error| full(error)).unwrap().to_string();
    assert!(said.contains("has room for 9 pieces"), "{said}");
}
