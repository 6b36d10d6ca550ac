//! A tree and a map that get the same keys.

use std::collections::BTreeMap;

use manxdb_core::Random;
use manxdb_rsi::{RecordAddress, Seek, Span};
use manxdb_sim::memory::MemoryOptions;

use crate::common::{ClientHandle, TestCluster};
use crate::tree::{Rooms, SEEDS, all_of, enter, enter_once, everything, key, scan, tree};

/// What a span has of a model.
fn expected(
    model: &BTreeMap<Vec<u8>, RecordAddress>,
    span: &Span,
) -> Vec<(Vec<u8>, RecordAddress)> {
    let has = |key: &Vec<u8>| *key >= span.low && span.high.as_ref().is_none_or(|high| key < high);
    let entries = model.iter().filter(|(key, _)| has(key));
    let mut entries: Vec<_> = entries.map(|(key, place)| (key.clone(), *place)).collect();
    if span.descending {
        entries.reverse();
    }
    entries.truncate(span.limit);
    entries
}

fn random_span(random: &mut Random) -> Span {
    let bound = |random: &mut Random| key(random.below(300));
    let low = bound(random);
    Span {
        low: if random.below(4) == 0 {
            Vec::new()
        } else {
            low
        },
        high: (random.below(4) > 0).then(|| bound(random)),
        descending: random.below(2) == 0,
        limit: usize::try_from(1 + random.below(40)).unwrap(),
    }
}

/// Batches of few keys and of many, some of which are known; none of which is somebody else's.
async fn enter_batches(
    handle: &mut ClientHandle,
    rooms: &Rooms,
    model: &mut BTreeMap<Vec<u8>, RecordAddress>,
) {
    let mut hints = Vec::new();
    let mut left = 150_u64;
    while left > 0 {
        let most = [1, 2, 5, 12, 60][usize::try_from(handle.random.below(5)).unwrap()];
        let count = 1 + handle.random.below(most);
        let spread = if handle.random.below(3) == 0 {
            300
        } else {
            count
        };
        let first = handle.random.below(300 - spread + 1);
        let numbers: Vec<u64> = (0..count)
            .map(|_| first + handle.random.below(spread))
            .collect();
        let hint = match hints.len() as u64 {
            0 => None,
            // Often of another leaf, or of one that has split since.
            count => Some(hints[usize::try_from(handle.random.below(count)).unwrap()]),
        };
        let known = enter_once(handle, rooms, &numbers, hint).await.unwrap();
        hints.extend(known.hint);
        for (key, place) in known.places {
            assert_eq!(place, *model.entry(key).or_insert(place));
        }
        left = left.saturating_sub(count);
    }
    let mut places: Vec<RecordAddress> = model.values().copied().collect();
    places.sort();
    assert!(places.is_sorted_by(|a, b| a < b), "two keys share a record");
}

#[test]
fn a_tree_has_what_a_model_has() {
    for seed in 0..SEEDS {
        let mut cluster = TestCluster::new(seed, 4, 0, MemoryOptions::default());
        cluster.client(move |mut handle| async move {
            let (rooms, mut model) = (Rooms::new(1), BTreeMap::new());
            enter_batches(&mut handle, &rooms, &mut model).await;
            let snapshot = handle.begin().await;
            for _ in 0..60 {
                let span = random_span(&mut handle.random);
                let scanned = scan(&handle, &snapshot, span.clone()).await;
                assert_eq!(
                    scanned.entries,
                    expected(&model, &span),
                    "seed {seed}: {span:?}"
                );
                let all = expected(
                    &model,
                    &Span {
                        limit: usize::MAX,
                        ..span.clone()
                    },
                );
                assert!(scanned.is_cut || all.len() == scanned.entries.len());
            }
            assert_eq!(all_of(&mut handle).await, model, "seed {seed}");
        });
        cluster.run();
    }
}

/// Enters so many keys at once into an empty tree, then as many between them; how many nodes the first
/// ones took.
fn two_batches(count: u64) -> u64 {
    let taken = std::rc::Rc::<std::cell::Cell<u64>>::default();
    let took = std::rc::Rc::clone(&taken);
    let mut cluster = TestCluster::new(count, 4, 0, MemoryOptions::default());
    cluster.client(move |mut handle| async move {
        let rooms = Rooms::new(1);
        let even: Vec<u64> = (0..count).map(|number| 2 * number).collect();
        let mut all = enter(&mut handle, &rooms, &even, None).await.places;
        took.set(rooms.taken.get());
        let odd: Vec<u64> = even.iter().map(|number| number + 1).collect();
        let more = enter(&mut handle, &rooms, &odd, None).await.places;
        all.extend(more);
        assert_eq!(all.len() as u64, 2 * count);
        assert_eq!(all_of(&mut handle).await, all, "{count} keys");
    });
    cluster.run();
    taken.get()
}

#[test]
fn as_many_keys_as_there_are_become_as_many_nodes_as_they_need() {
    for count in 1..=60 {
        let nodes = two_batches(count);
        // Keys in their order leave full nodes behind, of at least four keys.
        assert!(
            nodes <= 1 + count / 4 + count / 16 + 2,
            "{count} keys took {nodes} nodes"
        );
    }
}

/// What an old snapshot is shown is in order, and has all that it saw and nothing that was not
/// entered.
#[test]
fn a_snapshot_never_becomes_too_old_for_a_tree() {
    for seed in 0..SEEDS {
        let mut cluster = TestCluster::new(seed, 4, 0, MemoryOptions::default());
        cluster.client(move |mut handle| async move {
            let (rooms, mut model) = (Rooms::new(1), BTreeMap::new());
            let mut enter_some = async |handle: &mut ClientHandle, count: u64| {
                for _ in 0..count {
                    let number = handle.random.below(120);
                    let some = [number, number + handle.random.below(3)];
                    let known = enter(handle, &rooms, &some, None).await;
                    model.extend(known.places);
                }
                model.clone()
            };
            let count = handle.random.below(40);
            let before = enter_some(&mut handle, count).await;
            let snapshot = handle.begin().await;
            let after = enter_some(&mut handle, 100).await;
            for descending in [false, true] {
                let mut seen = scan(&handle, &snapshot, everything(descending))
                    .await
                    .entries;
                if descending {
                    seen.reverse();
                }
                assert!(seen.is_sorted_by(|a, b| a.0 < b.0));
                let seen: BTreeMap<_, _> = seen.into_iter().collect();
                assert!(
                    seen.iter()
                        .all(|(key, place)| after.get(key) == Some(place))
                );
                assert!(
                    before
                        .iter()
                        .all(|(key, place)| seen.get(key) == Some(place))
                );
            }
            for (key, place) in before {
                let seek = Seek::At(key.clone());
                let locate = handle.session.locate(&snapshot, tree(), seek, None);
                assert_eq!(handle.run(locate).await.unwrap().place(&key), Some(place));
            }
        });
        cluster.run();
    }
}
