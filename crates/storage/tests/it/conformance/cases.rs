//! Single promises of [`manxdb_storage::Engine`].

use std::ops::Bound;

use manxdb_storage::{Direction, Durability, KeyRange, Version, WriteBatch};

use super::subject::{Memory, Rocks, Subject, everything, put, read, read_many, walk};

/// Runs each function for each engine.
macro_rules! for_every_engine {
    ($($name:ident),* $(,)?) => {
        mod memory {
            $(#[test] fn $name() { super::$name::<super::Memory>(); })*
        }
        mod rocks {
            $(#[test] fn $name() { super::$name::<super::Rocks>(); })*
        }
    };
}

for_every_engine!(
    an_empty_store_has_nothing,
    a_read_sees_the_newest_version_at_or_below_its_own,
    a_delete_hides_the_key_from_its_version_on,
    any_bytes_are_a_key,
    a_key_does_not_answer_for_its_prefix,
    a_batch_carries_several_versions,
    bounds_are_honoured_in_both_directions,
    a_range_that_ends_before_it_starts_is_empty,
    a_cursor_does_not_see_later_writes,
    a_hot_key_is_read_at_any_of_its_versions,
    a_scan_passes_long_chains_in_both_directions,
    many_keys_are_read_as_each_alone,
    many_ranges_are_read_as_each_alone,
    collection_keeps_what_readers_at_the_watermark_see,
    the_watermark_never_falls,
    everything_is_there_after_reopening,
    readers_and_a_writer_do_not_disturb_each_other,
);

fn an_empty_store_has_nothing<S: Subject>() {
    let subject = S::new();
    let engine = subject.engine();
    assert_eq!(engine.latest().unwrap(), Version::ZERO);
    assert_eq!(read(engine, b"key", u64::MAX), None);
    for direction in [Direction::Forward, Direction::Reverse] {
        assert_eq!(walk(engine, &everything(), u64::MAX, direction), []);
    }
}

fn a_read_sees_the_newest_version_at_or_below_its_own<S: Subject>() {
    let subject = S::new();
    let engine = subject.engine();
    put(engine, 10, b"key", Some(b"ten"));
    put(engine, 20, b"key", Some(b"twenty"));
    assert_eq!(read(engine, b"key", 9), None);
    assert_eq!(read(engine, b"key", 10), Some((10, b"ten".to_vec())));
    assert_eq!(read(engine, b"key", 19), Some((10, b"ten".to_vec())));
    assert_eq!(read(engine, b"key", 20), Some((20, b"twenty".to_vec())));
    assert_eq!(
        read(engine, b"key", u64::MAX),
        Some((20, b"twenty".to_vec()))
    );
    assert_eq!(engine.latest().unwrap(), Version(20));
}

fn a_delete_hides_the_key_from_its_version_on<S: Subject>() {
    let subject = S::new();
    let engine = subject.engine();
    put(engine, 1, b"a", Some(b"1"));
    put(engine, 2, b"b", Some(b"2"));
    put(engine, 3, b"a", None);
    assert_eq!(read(engine, b"a", 2), Some((1, b"1".to_vec())));
    assert_eq!(read(engine, b"a", 3), None);
    let rows = walk(engine, &everything(), 3, Direction::Forward);
    assert_eq!(rows, [(b"b".to_vec(), 2, b"2".to_vec())]);
    put(engine, 4, b"a", Some(b""));
    assert_eq!(read(engine, b"a", 4), Some((4, Vec::new())));
}

fn any_bytes_are_a_key<S: Subject>() {
    let subject = S::new();
    let engine = subject.engine();
    let mut keys: Vec<Vec<u8>> = vec![
        vec![],
        vec![0],
        vec![0, 0],
        vec![0, 1],
        vec![0, 0xFF],
        b"\0\0latest".to_vec(),
        vec![1],
        vec![0xFF],
        vec![0xFF; 20],
        vec![0x61; 4000],
    ];
    for (version, key) in (1..).zip(&keys) {
        put(engine, version, key, Some(key));
    }
    for (version, key) in (1..).zip(&keys) {
        assert_eq!(read(engine, key, 99), Some((version, key.clone())));
    }
    keys.sort();
    for direction in [Direction::Forward, Direction::Reverse] {
        let rows = walk(engine, &everything(), 99, direction);
        let found: Vec<_> = rows.into_iter().map(|(key, ..)| key).collect();
        assert_eq!(found, keys);
        keys.reverse();
    }
}

fn a_key_does_not_answer_for_its_prefix<S: Subject>() {
    let subject = S::new();
    let engine = subject.engine();
    put(engine, 1, b"ab", Some(b"x"));
    put(engine, 2, b"a\0", Some(b"x"));
    assert_eq!(read(engine, b"a", 9), None);
    assert_eq!(read(engine, b"abc", 9), None);
    assert_eq!(read(engine, b"", 9), None);
}

fn a_batch_carries_several_versions<S: Subject>() {
    let subject = S::new();
    let engine = subject.engine();
    let writes = vec![
        (Version(5), b"a".to_vec(), Some(b"5".to_vec())),
        (Version(5), b"b".to_vec(), Some(b"5".to_vec())),
        (Version(6), b"a".to_vec(), None),
        (Version(7), b"a".to_vec(), Some(b"7".to_vec())),
    ];
    engine
        .write(&WriteBatch { writes }, Durability::Sync)
        .unwrap();
    assert_eq!(read(engine, b"a", 5), Some((5, b"5".to_vec())));
    assert_eq!(read(engine, b"a", 6), None);
    assert_eq!(read(engine, b"a", 7), Some((7, b"7".to_vec())));
    assert_eq!(engine.latest().unwrap(), Version(7));
    engine
        .write(&WriteBatch::default(), Durability::Sync)
        .unwrap();
    assert_eq!(engine.latest().unwrap(), Version(7));
}

fn bounds_are_honoured_in_both_directions<S: Subject>() {
    let subject = S::new();
    let engine = subject.engine();
    for (version, key) in (1..).zip([b"b", b"d", b"f"]) {
        put(engine, version, key, Some(b"x"));
    }
    let bound = |kind: u8, key: &[u8]| match kind {
        0 => Bound::Included(key.to_vec()),
        1 => Bound::Excluded(key.to_vec()),
        _ => Bound::Unbounded,
    };
    for (start, end, kinds) in (b'a'..=b'g')
        .flat_map(|start| (start..=b'g').map(move |end| (start, end)))
        .flat_map(|(start, end)| (0..9).map(move |kinds| (start, end, kinds)))
    {
        let range = KeyRange {
            start: bound(kinds / 3, &[start]),
            end: bound(kinds % 3, &[end]),
        };
        let mut expected: Vec<Vec<u8>> = [b"b", b"d", b"f"].map(|key| key.to_vec()).to_vec();
        expected.retain(|key| range.contains(key));
        for direction in [Direction::Forward, Direction::Reverse] {
            let rows = walk(engine, &range, 9, direction);
            let found: Vec<_> = rows.into_iter().map(|(key, ..)| key).collect();
            assert_eq!(found, expected, "{range:?} {direction:?}");
            expected.reverse();
        }
    }
}

fn a_range_that_ends_before_it_starts_is_empty<S: Subject>() {
    let subject = S::new();
    let engine = subject.engine();
    put(engine, 1, b"m", Some(b"x"));
    let range = KeyRange {
        start: Bound::Included(b"z".to_vec()),
        end: Bound::Excluded(b"a".to_vec()),
    };
    for direction in [Direction::Forward, Direction::Reverse] {
        assert_eq!(walk(engine, &range, 9, direction), []);
    }
}

fn a_cursor_does_not_see_later_writes<S: Subject>() {
    let subject = S::new();
    let engine = subject.engine();
    put(engine, 1, b"a", Some(b"1"));
    put(engine, 2, b"c", Some(b"2"));
    let mut cursor = engine
        .scan(&everything(), Version(2), Direction::Forward)
        .unwrap();
    assert_eq!(cursor.next().unwrap().unwrap().key, b"a");
    put(engine, 3, b"b", Some(b"3"));
    put(engine, 4, b"c", None);
    let entry = cursor.next().unwrap().unwrap();
    assert_eq!((entry.key, entry.value), (&b"c"[..], &b"2"[..]));
    assert!(cursor.next().unwrap().is_none());
}

fn a_hot_key_is_read_at_any_of_its_versions<S: Subject>() {
    let subject = S::new();
    let engine = subject.engine();
    put(engine, 1, b"before", Some(b"x"));
    for version in 2..500u64 {
        put(engine, version, b"hot", Some(&version.to_be_bytes()));
        if version % 100 == 0 {
            subject.flush();
        }
    }
    put(engine, 500, b"later", Some(b"x"));
    for at in [2, 3, 99, 100, 101, 250, 498, 499, 500] {
        let version: u64 = at.min(499);
        let expected = Some((version, version.to_be_bytes().to_vec()));
        assert_eq!(read(engine, b"hot", at), expected, "at {at}");
    }
    assert_eq!(read(engine, b"hot", 1), None);
}

fn a_scan_passes_long_chains_in_both_directions<S: Subject>() {
    let subject = S::new();
    let engine = subject.engine();
    let mut version = 0;
    for length in [1, 2, 7, 8, 9, 10, 40] {
        for _ in 0..length {
            version += 1;
            put(engine, version, &[length], Some(&version.to_be_bytes()));
        }
    }
    for at in 0..=version {
        let mut expected = Vec::new();
        let mut first = 1;
        for length in [1u8, 2, 7, 8, 9, 10, 40] {
            let last = first + u64::from(length) - 1;
            if first <= at {
                let newest = last.min(at);
                expected.push((vec![length], newest, newest.to_be_bytes().to_vec()));
            }
            first = last + 1;
        }
        let forward = walk(engine, &everything(), at, Direction::Forward);
        assert_eq!(forward, expected, "forward at {at}");
        expected.reverse();
        let reverse = walk(engine, &everything(), at, Direction::Reverse);
        assert_eq!(reverse, expected, "reverse at {at}");
    }
}

/// Keys 0..=60 in steps of 2, each with a chain of its own length; every fifth is deleted last.
fn chains_of_many_lengths(subject: &impl Subject) -> u64 {
    let engine = subject.engine();
    let mut version = 0;
    for number in (0..=60u8).step_by(2) {
        for _ in 0..=number % 11 {
            version += 1;
            put(engine, version, &[7, number], Some(&version.to_be_bytes()));
        }
        if number % 5 == 0 {
            version += 1;
            put(engine, version, &[7, number], None);
        }
        if number == 30 {
            subject.flush();
        }
    }
    version
}

fn many_keys_are_read_as_each_alone<S: Subject>() {
    let subject = S::new();
    let last = chains_of_many_lengths(&subject);
    let engine = subject.engine();
    // Neighbours, some of them absent; a gap among neighbours; keys far apart or uneven.
    let sets: [&[u8]; 5] = [
        &[0, 1, 2, 3, 4, 5, 6],
        &[2, 4, 6, 8, 16, 18, 20, 22, 24, 26, 28, 30],
        &[0, 60],
        &[1, 20, 200],
        &[],
    ];
    for set in sets {
        let mut keys: Vec<Vec<u8>> = set.iter().map(|number| vec![7, *number]).collect();
        keys.push(vec![7, 255, 1]);
        for keys in [&keys[..set.len()], &keys[..]] {
            let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
            for at in 0..=last {
                let expected: Vec<_> = keys.iter().map(|key| read(engine, key, at)).collect();
                assert_eq!(read_many(engine, &keys, at), expected, "{keys:?} at {at}");
            }
        }
    }
}

fn many_ranges_are_read_as_each_alone<S: Subject>() {
    let subject = S::new();
    let last = chains_of_many_lengths(&subject);
    let engine = subject.engine();
    let range = |(from, to): (u8, u8)| KeyRange {
        start: Bound::Included(vec![7, from]),
        end: Bound::Excluded(vec![7, to]),
    };
    // Touching ones, empty ones, gaps, and one that is left before its end.
    let ranges: Vec<KeyRange> = [(0, 2), (2, 5), (5, 5), (5, 6), (20, 40), (41, 42), (60, 99)]
        .map(range)
        .to_vec();
    for limit in [1, 3, 100] {
        for at in 0..=last {
            let pages = engine.scan_many(&ranges, Version(at), limit).unwrap();
            let expected: Vec<Vec<_>> = ranges
                .iter()
                .map(|range| walk(engine, range, at, Direction::Forward).into_iter())
                .map(|rows| rows.take(limit).map(|(k, _, v)| (k, v)).collect())
                .collect();
            assert_eq!(pages, expected, "{limit} of each at {at}");
        }
    }
    assert!(engine.scan_many(&[], Version(last), 9).unwrap().is_empty());
}

fn collection_keeps_what_readers_at_the_watermark_see<S: Subject>() {
    let subject = S::new();
    let engine = subject.engine();
    for version in 1..=20 {
        put(engine, version, b"row", Some(&[1]));
    }
    put(engine, 21, b"gone", Some(b"x"));
    put(engine, 22, b"gone", None);
    engine.set_watermark(Version(10));
    subject.compact();
    assert_eq!(read(engine, b"row", 10).unwrap().0, 10);
    assert_eq!(read(engine, b"row", 15).unwrap().0, 15);
    assert_eq!(read(engine, b"row", 9), None, "collected");
    assert_eq!(read(engine, b"gone", 21).unwrap().0, 21);
    engine.set_watermark(Version(22));
    subject.compact();
    assert_eq!(read(engine, b"row", 22).unwrap().0, 20);
    assert_eq!(read(engine, b"row", 19), None, "collected");
    assert_eq!(read(engine, b"gone", 22), None);
    assert_eq!(read(engine, b"gone", 21), None, "collected with its delete");
    assert_eq!(engine.latest().unwrap(), Version(22));
}

fn the_watermark_never_falls<S: Subject>() {
    let subject = S::new();
    let engine = subject.engine();
    for version in 1..=5 {
        put(engine, version, b"row", Some(b"x"));
    }
    engine.set_watermark(Version(5));
    engine.set_watermark(Version(1));
    subject.compact();
    assert_eq!(read(engine, b"row", 4), None);
    assert_eq!(read(engine, b"row", 5).unwrap().0, 5);
}

fn everything_is_there_after_reopening<S: Subject>() {
    let subject = S::new();
    for version in 1..=2000u64 {
        let key = (version % 700).to_be_bytes();
        put(
            subject.engine(),
            version,
            &key,
            Some(&[u8::try_from(version % 251).unwrap(); 100]),
        );
    }
    let before = walk(subject.engine(), &everything(), 1500, Direction::Forward);
    assert_eq!(before.len(), 700);
    let subject = subject.reopen();
    assert_eq!(subject.engine().latest().unwrap(), Version(2000));
    let after = walk(subject.engine(), &everything(), 1500, Direction::Forward);
    assert_eq!(after, before);
}

/// A batch writes one version to ten keys; every reader must find the ten keys equal.
fn readers_and_a_writer_do_not_disturb_each_other<S: Subject + Sync>() {
    let subject = S::new();
    let write = |version: u64| {
        let value = Some(version.to_be_bytes().to_vec());
        let writes = (0..10u8)
            .map(|key| (Version(version), vec![key], value.clone()))
            .collect();
        let batch = WriteBatch { writes };
        subject.engine().write(&batch, Durability::Async).unwrap();
    };
    write(1);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for turn in 0..300u64 {
                    let at = subject.engine().latest().unwrap().0;
                    let found: Vec<u64> = if turn % 2 == 0 {
                        let keys = 0..10u8;
                        keys.map(|key| read(subject.engine(), &[key], at).unwrap().0)
                            .collect()
                    } else {
                        walk(subject.engine(), &everything(), at, Direction::Reverse)
                            .iter()
                            .map(|row| row.1)
                            .collect()
                    };
                    assert_eq!(found, [at; 10]);
                }
            });
        }
        for version in 2..1500 {
            write(version);
        }
        subject.flush();
    });
}
