//! What every carrier of a witness's table has to do. A carrier runs [`conforms`]; the table of
//! this crate is the first.

use std::collections::BTreeMap;

use manxdb_curp::ids::{ClientId, RpcId, Stamp};
use manxdb_curp::mutants::Mutant;
use manxdb_curp::table::{SlotTable, WitnessTable};
use manxdb_curp::wire::{GcEntry, RecordedRequest, Status};
use proptest::prelude::*;

fn rpc(client: u64, seq: u64) -> RpcId {
    let client = ClientId(client);
    RpcId { client, seq }
}

fn request(text: &str) -> RecordedRequest {
    RecordedRequest {
        stamp: Stamp::default(),
        command: text.as_bytes().to_vec(),
    }
}

fn gc(hash: u64, rpc: RpcId) -> GcEntry {
    GcEntry { hash, rpc }
}

/// The rules of a table of 4 sets of 2 slots.
fn conforms(make: impl Fn() -> Box<dyn WitnessTable>) {
    let one = rpc(1, 1);
    let mut table = make();
    assert_eq!(table.record(&[8], one, &request("a")), Status::Accepted);
    assert_eq!(
        table.record(&[8], one, &request("a")),
        Status::Accepted,
        "asked again"
    );
    assert_eq!(
        table.record(&[8], rpc(2, 1), &request("b")),
        Status::Conflict
    );
    assert_eq!(
        table.record(&[9, 8], rpc(2, 2), &request("b")),
        Status::Conflict
    );
    assert!(
        table.is_clean(&[9]) && !table.is_clean(&[9, 8]),
        "all keys or none"
    );
    assert_eq!(table.records().len(), 1);

    // Once collected, a late copy is answered and not kept: all backups have it.
    table.collect(&[gc(8, one), gc(12, rpc(7, 7))]);
    assert!(table.is_clean(&[8]));
    assert_eq!(table.record(&[8], one, &request("a")), Status::Accepted);
    assert!(table.is_clean(&[8]), "a late copy squats");
    assert_eq!(
        table.record(&[8], rpc(2, 1), &request("b")),
        Status::Accepted
    );
    table.collect(&[gc(8, one)]);
    assert!(!table.is_clean(&[8]), "collected under the name of another");

    // A set that is full refuses, and an operation of several keys leaves nothing behind.
    let mut table = make();
    assert_eq!(
        table.record(&[0], rpc(1, 1), &request("a")),
        Status::Accepted
    );
    assert_eq!(
        table.record(&[4], rpc(1, 2), &request("b")),
        Status::Accepted
    );
    assert_eq!(
        table.record(&[1, 8], rpc(1, 3), &request("c")),
        Status::Full
    );
    assert!(table.is_clean(&[1, 8]));
    table.collect(&[gc(0, rpc(1, 1)), gc(4, rpc(1, 2))]);
    assert_eq!(
        table.record(&[1, 8], rpc(1, 3), &request("c")),
        Status::Accepted
    );
    assert!(
        !table.is_clean(&[8]),
        "accepted and not kept: ids of what was given up"
    );
    assert_eq!(
        table.records().len(),
        1,
        "a request of two keys is one record"
    );

    // What is in the way for more than three rounds is reported, once, and never evicted.
    let mut table = make();
    table.record(&[3], rpc(1, 1), &request("stale"));
    for round in 0..4 {
        assert_eq!(
            table.record(&[3], rpc(2, 1), &request("new")),
            Status::Conflict
        );
        assert_eq!(table.collect(&[]), [], "round {round}");
    }
    table.record(&[3], rpc(2, 1), &request("new"));
    assert_eq!(table.collect(&[]), [gc(3, rpc(1, 1))]);
    assert_eq!(table.find(&gc(3, rpc(1, 1))).unwrap().command, b"stale");

    // Bad requests are refused; a frozen table changes no more.
    let nobody = rpc(0, 1);
    for (hashes, rpc) in [
        (&[][..], one),
        (&[5, 5], one),
        (&[6], nobody),
        (&[0; 9], one),
    ] {
        assert_eq!(table.record(hashes, rpc, &request("bad")), Status::Bad);
    }
    table.freeze();
    assert!(table.is_frozen());
    assert_eq!(
        table.record(&[7], rpc(1, 9), &request("late")),
        Status::Frozen
    );
    assert_eq!(
        table.record(&[3], rpc(1, 1), &request("stale")),
        Status::Frozen
    );
    table.collect(&[gc(3, rpc(1, 1))]);
    assert_eq!(table.records().len(), 1, "collected after it was read");
}

#[test]
fn the_table_in_memory_conforms() {
    conforms(|| Box::new(SlotTable::new(4, 2)));
}

#[test]
#[should_panic(expected = "ids of what was given up")]
fn a_tombstone_of_an_aborted_record_is_found() {
    let mutant = Some(Mutant::TombstoneOfAborted);
    conforms(|| Box::new(SlotTable::new(4, 2).with_mutant(mutant)));
}

#[test]
#[should_panic(expected = "Frozen")]
fn a_table_that_does_not_freeze_is_found() {
    conforms(|| Box::new(SlotTable::new(4, 2).with_mutant(Some(Mutant::NoFreeze))));
}

#[derive(Debug, Clone)]
enum Act {
    Record(Vec<u64>, u64),
    Collect(usize),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (prop::collection::btree_set(0..24_u64, 1..4), 1..40_u64)
            .prop_map(|(hashes, seq)| Act::Record(hashes.into_iter().collect(), seq)),
        (0..64_usize).prop_map(Act::Collect),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// Against a map: what was accepted and not collected is there; accepted keys are disjoint.
    #[test]
    fn a_table_is_a_map_that_may_refuse(acts in prop::collection::vec(act(), 1..60)) {
        let mut table = SlotTable::new(8, 2);
        let mut kept: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        let mut gone = std::collections::BTreeSet::new();
        for act in acts {
            match act {
                // A number names one operation: its keys are those it had first.
                Act::Record(hashes, seq) => {
                    let hashes = kept.get(&seq).cloned().unwrap_or(hashes);
                    if gone.contains(&seq) {
                        continue;
                    }
                    let taken = |hash: &u64| kept.iter().any(|(other, keys)| *other != seq && keys.contains(hash));
                    let conflicts = hashes.iter().any(taken);
                    match table.record(&hashes, rpc(1, seq), &request("x")) {
                        Status::Accepted => {
                            prop_assert!(!conflicts);
                            kept.insert(seq, hashes);
                        }
                        Status::Conflict => prop_assert!(conflicts),
                        status => prop_assert_eq!(status, Status::Full),
                    }
                }
                Act::Collect(which) => {
                    if let Some((seq, hashes)) = kept.iter().nth(which % kept.len().max(1)).map(|(seq, keys)| (*seq, keys.clone())) {
                        let entries: Vec<GcEntry> = hashes.iter().map(|hash| gc(*hash, rpc(1, seq))).collect();
                        table.collect(&entries);
                        kept.remove(&seq);
                        gone.insert(seq);
                    }
                }
            }
            prop_assert_eq!(table.check(), Ok(()));
            let recorded: Vec<u64> = table.records().iter().map(|record| record.rpc.seq).collect();
            let expected: Vec<u64> = kept.keys().copied().collect();
            prop_assert_eq!(recorded, expected);
        }
    }
}
