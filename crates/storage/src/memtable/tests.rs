//! A memtable against the engine in memory, which keeps the same promises in the simplest way.

use proptest::prelude::*;

use super::*;
use crate::engine::Engine as _;
use crate::memory::MemoryEngine;
use crate::model::{Direction, KeyRange, WriteBatch};

type Rows = Vec<(Vec<u8>, u64, Option<Vec<u8>>)>;

fn walk(memtable: &Arc<Memtable>, range: &KeyRange, at: u64, direction: Direction) -> Rows {
    let mut cursor = MemtableCursor::new(memtable, range, Version(at), direction);
    let mut rows = Rows::new();
    while cursor.advance() {
        let value = cursor.value().map(<[u8]>::to_vec);
        rows.push((cursor.key().to_vec(), cursor.version().0, value));
    }
    assert!(!cursor.advance(), "a cursor ends for good");
    rows
}

fn numbers(count: u32) -> Arc<Memtable> {
    let memtable = Arc::new(Memtable::new(&Arc::default()));
    for number in 0..count {
        let key = number.to_be_bytes();
        memtable.write(Version(1), &key, Some(&key), Version::ZERO);
    }
    memtable
}

#[test]
fn a_walk_over_many_pages_meets_every_key_once() {
    let memtable = numbers(1000);
    for direction in [Direction::Forward, Direction::Reverse] {
        let rows = walk(&memtable, &KeyRange::all(), 1, direction);
        let mut expected: Vec<Vec<u8>> = (0..1000_u32)
            .map(|number| number.to_be_bytes().to_vec())
            .collect();
        if direction == Direction::Reverse {
            expected.reverse();
        }
        let keys: Vec<Vec<u8>> = rows.into_iter().map(|(key, ..)| key).collect();
        assert_eq!(keys, expected);
    }
}

#[test]
fn a_cursor_passes_keys_written_behind_its_back() {
    let memtable = numbers(100);
    for direction in [Direction::Forward, Direction::Reverse] {
        let mut cursor = MemtableCursor::new(&memtable, &KeyRange::all(), Version(1), direction);
        for seen in 0..100 {
            assert!(cursor.advance(), "{seen}");
            let between = [cursor.key(), &[7]].concat();
            memtable.write(Version(2), &between, Some(b"later"), Version(1));
            let key = cursor.key().to_vec();
            memtable.write(Version(3), &key, None, Version(1));
        }
        assert!(!cursor.advance());
    }
}

#[test]
fn a_cursor_goes_on_with_another_range() {
    let memtable = numbers(300);
    let mut cursor =
        MemtableCursor::new(&memtable, &KeyRange::all(), Version(1), Direction::Forward);
    for start in (0..300_u32).step_by(30) {
        cursor.go_to(&KeyRange::prefix(&start.to_be_bytes()));
        assert!(cursor.advance());
        assert_eq!(cursor.key(), start.to_be_bytes());
        assert!(!cursor.advance());
    }
}

#[test]
fn a_row_written_a_thousand_times_takes_the_place_of_two() {
    let memtable = Memtable::new(&Arc::default());
    memtable.write(Version(1), b"hot", Some(&[0; 100]), Version::ZERO);
    let once = memtable.bytes();
    for version in 2..=1000 {
        let visible = Version(version - 1);
        memtable.write(Version(version), b"hot", Some(&[0; 100]), visible);
    }
    assert_eq!(memtable.keys(), 1);
    assert!(memtable.bytes() < 2 * once, "{} bytes", memtable.bytes());
    let collapsed = memtable.shared.collapsed.load(Ordering::Relaxed);
    assert_eq!(collapsed, 998);
}

#[test]
fn a_memtable_that_reads_and_ranges_tell_apart_is_found_out() {
    type Fault = fn(&Memtable);
    let faults: [(Fault, &str); 4] = [
        (
            |it| _ = it.bytes.fetch_add(1, Ordering::Relaxed),
            "bytes are counted",
        ),
        (|it| _ = it.keys.fetch_add(1, Ordering::Relaxed), "counted"),
        (|it| _ = it.ordered.write().pop_first(), "keys are read"),
        (
            |it| {
                let node = it.ordered.read().values().next().cloned().unwrap();
                it.shard(node.hash).write().clear();
            },
            "finds what a range finds",
        ),
    ];
    for (fault, name) in faults {
        let memtable = numbers(5);
        assert_eq!(memtable.check(), Ok(()));
        fault(&memtable);
        let found = memtable.check().unwrap_err();
        assert!(found.contains(name), "{found}");
    }
}

#[derive(Debug, Clone)]
enum Step {
    Write(Vec<u8>, Option<Vec<u8>>),
    /// To some versions back from the newest.
    Watermark(u64),
    Read(KeyRange, u64),
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    // Some longer than fit in place.
    let byte = prop_oneof![Just(0u8), Just(1), Just(0xFF)];
    (prop::collection::vec(byte, 0..3), any::<bool>()).prop_map(|(mut key, is_long)| {
        if is_long {
            key.resize(30, 5);
        }
        key
    })
}

fn range() -> impl Strategy<Value = KeyRange> {
    use std::ops::Bound;
    let bound = || {
        prop_oneof![
            key().prop_map(Bound::Included),
            key().prop_map(Bound::Excluded),
            Just(Bound::Unbounded),
        ]
    };
    (bound(), bound()).prop_map(|(start, end)| KeyRange { start, end })
}

fn step() -> impl Strategy<Value = Step> {
    let value = prop::option::weighted(0.7, prop::collection::vec(any::<u8>(), 0..9));
    prop_oneof![
        6 => (key(), value).prop_map(|(key, value)| Step::Write(key, value)),
        2 => (0..8_u64).prop_map(Step::Watermark),
        4 => (range(), 0..8_u64).prop_map(|(range, back)| Step::Read(range, back)),
    ]
}

fn run(steps: Vec<Step>) {
    let memtable = Arc::new(Memtable::new(&Arc::default()));
    let model = MemoryEngine::new();
    let (mut latest, mut watermark) = (0_u64, 0_u64);
    for step in steps {
        match step {
            Step::Write(key, value) => {
                latest += 1;
                let version = Version(latest);
                memtable.write(version, &key, value.as_deref(), Version(watermark));
                let writes = vec![(version, key, value)];
                model.append(&WriteBatch { writes }).unwrap();
            }
            Step::Watermark(back) => {
                watermark = watermark.max(latest.saturating_sub(back));
                model.set_watermark(Version(watermark));
            }
            Step::Read(range, back) => {
                let at = latest.saturating_sub(back).max(watermark);
                assert_equal(&memtable, &model, &range, at);
            }
        }
    }
    assert_equal(&memtable, &model, &KeyRange::all(), watermark);
    assert_equal(&memtable, &model, &KeyRange::all(), latest);
}

fn assert_equal(memtable: &Arc<Memtable>, model: &MemoryEngine, range: &KeyRange, at: u64) {
    for direction in [Direction::Forward, Direction::Reverse] {
        let mut rows = walk(memtable, range, at, direction);
        for (key, version, value) in &rows {
            let hash = memtable.shared.hash(key);
            let expected = match value.clone() {
                None => Lookup::Deleted,
                Some(value) => Lookup::Found(Versioned {
                    version: Version(*version),
                    value,
                }),
            };
            assert_eq!(memtable.get(hash, key, Version(at)), expected);
        }
        rows.retain(|(_, _, value)| value.is_some());
        let mut expected = Rows::new();
        let mut cursor = model.scan(range, Version(at), direction).unwrap();
        while let Some(entry) = cursor.next().unwrap() {
            let value = Some(entry.value.to_vec());
            expected.push((entry.key.to_vec(), entry.version.0, value));
        }
        assert_eq!(rows, expected, "{range:?} {direction:?} at {at}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]
    #[test]
    fn a_memtable_reads_like_the_engine_in_memory(steps in prop::collection::vec(step(), 1..80)) {
        run(steps);
    }
}
