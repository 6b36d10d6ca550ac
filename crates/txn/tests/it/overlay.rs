//! A transaction's view equals a plain map with its own writes laid over it: any writes,
//! deletions and savepoints, any range, both directions, any page size, every read mode.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use std::collections::BTreeMap;
use std::ops::Bound;

use manxdb_fixtures::local::Fixture;
use manxdb_storage::{Direction, Durability, KeyRange};
use manxdb_txn::transaction::rest_behind;
use manxdb_txn::{IsolationLevel, ReadMode, Transaction};
use proptest::prelude::*;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Debug, Clone)]
enum Act {
    Put(u8, u8),
    Delete(u8),
    Savepoint,
    RollbackTo(usize),
    Get(u8, ReadMode),
    Scan(Bound<u8>, Bound<u8>, bool, usize, ReadMode),
}

fn mode() -> impl Strategy<Value = ReadMode> {
    prop_oneof![
        Just(ReadMode::Plain),
        Just(ReadMode::Validate),
        Just(ReadMode::Share),
        Just(ReadMode::Update),
        Just(ReadMode::UpdateNoWait),
        Just(ReadMode::UpdateSkipLocked),
    ]
}

fn bound() -> impl Strategy<Value = Bound<u8>> {
    prop_oneof![
        (0..20_u8).prop_map(Bound::Included),
        (0..20_u8).prop_map(Bound::Excluded),
        Just(Bound::Unbounded),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0..20_u8, any::<u8>()).prop_map(|(key, value)| Act::Put(key, value)),
        2 => (0..20_u8).prop_map(Act::Delete),
        1 => Just(Act::Savepoint),
        1 => (0..4_usize).prop_map(Act::RollbackTo),
        2 => (0..20_u8, mode()).prop_map(|(key, mode)| Act::Get(key, mode)),
        4 => (bound(), bound(), any::<bool>(), 1..8_usize, mode())
            .prop_map(|(start, end, reverse, page, mode)| Act::Scan(start, end, reverse, page, mode)),
    ]
}

fn level() -> impl Strategy<Value = IsolationLevel> {
    prop_oneof![
        Just(IsolationLevel::ReadCommitted),
        Just(IsolationLevel::RepeatableRead),
        Just(IsolationLevel::Serializable),
    ]
}

/// All rows of a range, fetched page by page.
fn scan_all(
    txn: &Transaction,
    range: &KeyRange,
    direction: Direction,
    page_size: usize,
    mode: ReadMode,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let (mut rest, mut all) = (range.clone(), Vec::new());
    loop {
        let page = txn.scan(&rest, direction, page_size, mode).unwrap();
        assert!(page.len() <= page_size);
        let is_last = page.len() < page_size;
        all.extend(page);
        match all.last() {
            Some((last, _)) if !is_last => rest = rest_behind(&rest, last, direction),
            _ => return all,
        }
    }
}

fn rows_of(map: &Map, range: &KeyRange, reverse: bool) -> Vec<(Vec<u8>, Vec<u8>)> {
    let inside = map.iter().filter(|(key, _)| range.contains(key));
    let mut rows: Vec<_> = inside.map(|(k, v)| (k.clone(), v.clone())).collect();
    if reverse {
        rows.reverse();
    }
    rows
}

fn apply(txn: &Transaction, map: &mut Map, savepoints: &mut Vec<(usize, Map)>, act: Act) {
    match act {
        Act::Put(key, value) => {
            txn.put(vec![key], vec![value]).unwrap();
            map.insert(vec![key], vec![value]);
        }
        Act::Delete(key) => {
            txn.delete(vec![key]).unwrap();
            map.remove(&vec![key]);
        }
        Act::Savepoint => savepoints.push((txn.savepoint(), map.clone())),
        Act::RollbackTo(number) => {
            if let Some((savepoint, then)) = savepoints.get(number).cloned() {
                txn.rollback_to(savepoint);
                *map = then;
                savepoints.truncate(number + 1);
            }
        }
        Act::Get(key, mode) => {
            let found = txn.get(&[key], mode).unwrap();
            assert_eq!(found.as_ref(), map.get(&vec![key]), "key {key}");
        }
        Act::Scan(start, end, reverse, page_size, mode) => {
            let range = KeyRange {
                start: start.map(|key| vec![key]),
                end: end.map(|key| vec![key]),
            };
            let direction = if reverse {
                Direction::Reverse
            } else {
                Direction::Forward
            };
            let found = scan_all(txn, &range, direction, page_size, mode);
            assert_eq!(found, rows_of(map, &range, reverse), "{range:?} {mode:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_transaction_sees_a_map_with_its_writes(
        isolation in level(),
        committed in prop::collection::btree_map(0..20_u8, any::<u8>(), 0..15),
        acts in prop::collection::vec(act(), 1..40),
    ) {
        let fixture = Fixture::new();
        let before = fixture.begin(IsolationLevel::Serializable);
        let mut map = Map::new();
        for (key, value) in committed {
            before.put(vec![key], vec![value]).unwrap();
            map.insert(vec![key], vec![value]);
        }
        before.commit(Durability::Sync).unwrap();
        let txn = fixture.begin(isolation);
        let mut savepoints = Vec::new();
        for act in acts {
            apply(&txn, &mut map, &mut savepoints, act);
        }
        txn.commit(Durability::Sync).unwrap();
        let after = fixture.begin(IsolationLevel::Serializable);
        let everything = KeyRange { start: Bound::Unbounded, end: Bound::Unbounded };
        let found = scan_all(&after, &everything, Direction::Forward, 7, ReadMode::Plain);
        prop_assert_eq!(found, rows_of(&map, &everything, false));
    }
}
