//! Packed writes beside a map of them.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

type Write = Option<Vec<u8>>;

/// `None`: nothing is written.
type Map = BTreeMap<Vec<u8>, Option<Write>>;

fn held(value: Option<&Option<Vec<u8>>>) -> Held<'_> {
    value.map_or(Held::Nothing, |write| Held::Write(write.as_deref()))
}

fn packed(map: &Map) -> WriteRun {
    let mut run = WriteRunBuilder::default();
    for (key, value) in map {
        run.push(key, held(value.as_ref()));
    }
    run.finish()
}

fn unpacked(run: &WriteRun) -> Map {
    let mut map = Map::new();
    run.each_held(&mut |key, held| {
        let value = match held {
            Held::Nothing => None,
            Held::Write(write) => Some(write.map(<[u8]>::to_vec)),
        };
        map.insert(key.to_vec(), value);
    });
    map
}

fn map() -> impl Strategy<Value = Map> {
    let key = prop::collection::vec(0..4_u8, 0..5);
    // Some so long that a run has several chunks.
    let value = prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 0..9),
        1 => Just(vec![7; CHUNK_BYTES / 3]),
    ];
    let value = prop::option::of(prop::option::weighted(0.8, value));
    prop::collection::btree_map(key, value, 0..90)
}

fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    let key = prop::collection::vec(0..4_u8, 0..5);
    prop_oneof![
        key.clone().prop_map(Bound::Included),
        key.prop_map(Bound::Excluded),
        Just(Bound::Unbounded),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_run_of_writes_answers_as_the_map_it_was_packed_from(
        map in map(),
        key in prop::collection::vec(0..4_u8, 0..5),
        start in bound(),
        end in bound(),
    ) {
        let run = packed(&map);
        prop_assert_eq!(run.len(), map.len());
        prop_assert_eq!(unpacked(&run), map.clone());
        let wanted = map.get(&key).map(|value| held(value.as_ref()));
        prop_assert_eq!(run.find(&key), wanted);
        let range = KeyRange { start, end };
        let inside = map.iter().filter(|(key, _)| range.contains(key));
        let mut inside = inside.map(|(key, value)| (key.clone(), held(value.as_ref())));
        prop_assert_eq!(run.first_in(&range, Direction::Reverse), inside.clone().next_back());
        prop_assert_eq!(run.first_in(&range, Direction::Forward), inside.next());
    }

    #[test]
    fn of_merged_runs_the_newer_counts(older in map(), newer in map(), keeps in any::<bool>()) {
        let mut wanted = older.clone();
        wanted.extend(newer.clone());
        wanted.retain(|_, value| keeps || value.is_some());
        let merged = packed(&older).merge(packed(&newer), keeps);
        prop_assert_eq!(unpacked(&merged), wanted);
    }
}

#[test]
fn writes_of_rows_take_few_bytes_beside_their_values_and_runs_in_order_are_joined() {
    let key = |row: u64| [&b"\x01\0\0\0\x07\0\0\0\0\x01"[..], &row.to_be_bytes()].concat();
    let filled = |rows: Range<u64>| {
        let mut run = WriteRunBuilder::default();
        for row in rows {
            run.push(&key(row), Held::Write(Some(&[9; 30])));
        }
        run.finish()
    };
    let (low, high) = (filled(0..60_000), filled(60_000..100_000));
    assert!(low.ends_before(&high) && !high.ends_before(&low));
    let run = low.join(high);
    assert!(
        run.size_bytes() < 38 * 100_000,
        "{} bytes",
        run.size_bytes()
    );
    assert_eq!(run.find(&key(77_777)), Some(Held::Write(Some(&[9; 30]))));
    assert_eq!(run.find(&key(100_000)), None);
    let all = KeyRange::all();
    let last = run.first_in(&all, Direction::Reverse).map(|(key, _)| key);
    assert_eq!(last, Some(key(99_999)));
}
