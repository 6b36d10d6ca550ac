//! Scans that jump over noted ranges find what scans of all deletes find.

use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use proptest::prelude::*;

use super::{EmptyRanges, Noted, State, Until};
use crate::engine::Engine as _;
use crate::model::{Direction, Durability, KeyRange, Version, WriteBatch};
use crate::rocks::{Options, RocksEngine};

fn batch(version: u64, key: Vec<u8>, value: Option<Vec<u8>>) -> WriteBatch {
    let writes = vec![(Version(version), key, value)];
    WriteBatch { writes }
}

fn from(start: &[u8], end: Option<&[u8]>) -> KeyRange {
    KeyRange {
        start: Bound::Included(start.to_vec()),
        end: end.map_or(Bound::Unbounded, |end| Bound::Included(end.to_vec())),
    }
}

/// The first keys of `range` at `at`, no more than `limit`.
fn first(engine: &RocksEngine, range: &KeyRange, at: u64, limit: usize) -> Vec<Vec<u8>> {
    let mut cursor = engine.scan(range, Version(at), Direction::Forward).unwrap();
    let mut found = Vec::new();
    while found.len() < limit
        && let Some(entry) = cursor.next().unwrap()
    {
        found.push(entry.key.to_vec());
    }
    found
}

/// One write: key, put or delete, how far the watermark then lies behind, and what else is done.
type Step = (u8, bool, u64, u8);

fn run(steps: Vec<Step>) {
    let directory = tempfile::tempdir().unwrap();
    let engine = RocksEngine::open(directory.path(), &Options::default()).unwrap();
    let mut history: Vec<(u64, u8, bool)> = Vec::new();
    let mut watermark = 0;
    for (version, (key, is_put, behind, what)) in (1_u64..).zip(steps) {
        let batch = batch(version, vec![key], is_put.then(|| vec![key]));
        engine.write(&batch, Durability::Async).unwrap();
        history.push((version, key, is_put));
        watermark = watermark.max(version.saturating_sub(behind));
        engine.set_watermark(Version(watermark));
        match what {
            0 => engine.flush().unwrap(),
            1 => engine.compact().unwrap(),
            _ => {}
        }
        // Readers of several versions take turns, each of which may note what the next one uses.
        for at in (watermark..=version).rev().chain(watermark..=version) {
            let is_live = |key: u8| {
                let mut older = history.iter().rev();
                let newest = older.find(|write| write.0 <= at && write.1 == key);
                newest.is_some_and(|write| write.2)
            };
            for (start, end, limit) in [(0, None, 1), (3, None, 20), (0, Some(9), 20)] {
                let end_key = end.unwrap_or(20);
                let live = (start..=end_key).filter(|key| is_live(*key));
                let expected: Vec<Vec<u8>> = live.take(limit).map(|key| vec![key]).collect();
                let range = from(
                    &[start],
                    end.map(|end: u8| [end]).as_ref().map(|it| &it[..]),
                );
                let found = first(&engine, &range, at, limit);
                assert_eq!(found, expected, "from {start} at {at} of {version}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(12)
    })]
    #[test]
    fn a_jump_over_deletes_leaves_out_no_live_key(
        steps in prop::collection::vec((0..16_u8, prop::bool::weighted(0.3), 0..5_u64, 0..24_u8), 1..60),
    ) {
        run(steps);
    }
}

fn number(key: u64) -> Vec<u8> {
    key.to_be_bytes().to_vec()
}

/// Keys of the queue that are live at a time.
const LIVE: u64 = 40;
/// Every so many steps a key comes back at the front for one step.
const BACK: u64 = 7;

/// The first live key at `at`: step `n` writes version `3n` (puts the key `n`), `3n + 1` (deletes the
/// key `n - LIVE`) and `3n + 2` (puts a key of long ago, or deletes it).
fn expected(at: u64) -> Option<u64> {
    let (step, part) = (at / 3, at % 3);
    let deleted = if part == 0 {
        step.checked_sub(1)?
    } else {
        step
    };
    let oldest = deleted.checked_sub(LIVE)? + 1;
    let last = if part == 2 {
        step
    } else {
        step.checked_sub(1)?
    };
    let is_back = last % BACK == 0 && last > 2 * LIVE;
    Some(if is_back { last / 2 } else { oldest })
}

#[test]
fn scans_beside_a_writer_find_the_front_of_a_queue() {
    const STEPS: u64 = 1_500;
    let directory = tempfile::tempdir().unwrap();
    let engine = RocksEngine::open(directory.path(), &Options::default()).unwrap();
    let written = AtomicU64::new(0);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Acquire) {
                    let at = written.load(Ordering::Acquire);
                    let found = first(&engine, &KeyRange::all(), at, 1);
                    if let Some(front) = expected(at).filter(|_| at > 6 * LIVE) {
                        assert_eq!(found, [number(front)], "at {at}");
                    }
                }
            });
        }
        for step in 1..STEPS {
            let back = (step % BACK == 0 && step > 2 * LIVE).then_some(step / 2);
            let gone = (step - 1).is_multiple_of(BACK) && step - 1 > 2 * LIVE;
            let third = match back {
                Some(back) => (number(back), Some(vec![1])),
                None if gone => (number((step - 1) / 2), None),
                None => (number(u64::MAX), None),
            };
            let second = step.checked_sub(LIVE).unwrap_or(u64::MAX);
            let writes = [(number(step), Some(vec![1])), (number(second), None), third];
            for (version, (key, value)) in (3 * step..).zip(writes) {
                let batch = batch(version, key, value);
                engine.write(&batch, Durability::Async).unwrap();
                written.store(version, Ordering::Release);
            }
            if step.is_multiple_of(500) {
                engine.flush().unwrap();
            }
        }
        is_over.store(true, Ordering::Release);
    });
    assert!(engine.store.empty_ranges.len() > 0, "scans noted the front");
}

#[test]
fn a_put_during_a_look_shortens_what_it_notes() {
    let ranges = EmptyRanges::default();
    let note = |put: Option<u64>, begun: bool| {
        let look = ranges.look(b"a", Version(5), 0).unwrap();
        if let Some(put) = put {
            let other = batch(9, b"c".to_vec(), None);
            ranges.written(&other);
            ranges.written(&batch(put, b"d".to_vec(), Some(Vec::new())));
        }
        if begun {
            ranges.memtable_begun();
        }
        look.found(b"m", Version(5));
    };
    note(Some(10), false);
    assert_eq!(ranges.end_of(b"b", Version(5)), Some(b"d".to_vec()));
    assert_eq!(ranges.end_of(b"b", Version(4)), None, "an older reader");
    // A later put where the range begins leaves nothing of it.
    ranges.written(&batch(11, b"a\0".to_vec(), Some(Vec::new())));
    assert_eq!(ranges.len(), 0);
    note(None, true);
    assert_eq!(ranges.end_of(b"b", Version(7)), Some(b"m".to_vec()));
    assert!(
        ranges.look(b"x", Version(9), 0).is_none(),
        "a scan from before the newest memtable"
    );
    // What goes on from a noted range makes it longer for newer readers and no shorter for others.
    let look = ranges.look(b"a", Version(8), 1).unwrap();
    assert_eq!(look.from(), b"m");
    look.found(b"p", Version(8));
    assert_eq!(ranges.end_of(b"b", Version(7)), Some(b"m".to_vec()));
    assert_eq!(ranges.end_of(b"b", Version(8)), Some(b"p".to_vec()));
    assert_eq!(ranges.len(), 1);
}

#[test]
fn noted_ranges_that_overlap_or_end_before_they_begin_are_found_out() {
    let noted = |ends: &[(u64, u8)]| Noted {
        states: ends
            .iter()
            .map(|(since, end)| Until {
                since: Version(*since),
                end: vec![*end],
            })
            .collect(),
        used: 0,
    };
    let state = |ranges: Vec<(u8, Noted)>| State {
        noted: ranges
            .into_iter()
            .map(|(start, it)| (vec![start], it))
            .collect(),
        ..State::default()
    };
    let sound = state(vec![(1, noted(&[(1, 3), (2, 4)])), (4, noted(&[(1, 6)]))]);
    assert_eq!(sound.check(), Ok(()));
    for (faulty, name) in [
        (
            state(vec![(1, noted(&[(1, 5)])), (4, noted(&[(1, 6)]))]),
            "overlaps",
        ),
        (state(vec![(4, noted(&[(1, 3)]))]), "ends at"),
        (state(vec![(1, noted(&[]))]), "ends at"),
        (state(vec![(1, noted(&[(2, 3), (1, 4)]))]), "jump further"),
        (
            state(vec![(
                1,
                Noted {
                    used: 1,
                    ..noted(&[(1, 3)])
                },
            )]),
            "used at 1",
        ),
    ] {
        let found = faulty.check().unwrap_err();
        assert!(found.contains(name), "{found}");
    }
}
