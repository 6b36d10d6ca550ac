//! What every carrier has to do, as its clients, its master and its coordinator see it.

use manxdb_curp::carrier::VIEWS_MAX;
use manxdb_curp::ids::{Epoch, View, Wlv};
use manxdb_curp::wire::{ENTRIES_MAX, Op, Status};
use manxdb_curp::{ViewTokens, table::Recorded};
use manxdb_witness::Count;
use manxdb_witness::layout::SETS;

use crate::bench::{Bench, TOKENS, VIEW, collection, entry, question, record, rpc};
use crate::on_every_carrier;

on_every_carrier!(conformance, conforms);

/// Hashes of one set.
fn of_set(set: u64) -> impl Iterator<Item = u64> {
    (1..).map(move |high| high * u64::from(SETS) + set)
}

fn conforms(bench: &mut Bench) {
    keys_of_different_operations_are_disjoint(bench);
    what_is_collected_is_gone_and_not_kept_again(bench);
    a_full_set_refuses_and_leaves_nothing_behind(bench);
    what_is_in_the_way_for_long_is_reported(bench);
    the_largest_datagrams_are_kept_as_they_are(bench);
    what_makes_no_sense_is_refused(bench);
    views_have_tables_of_their_own(bench);
    a_frozen_view_gives_all_it_has_and_changes_no_more(bench);
    assert_eq!(bench.carrier.check(), Ok(()));
    let counts = bench.carrier.counts();
    assert!(counts.of(Count::Accepted) > 0 && counts.of(Count::Frozen) > 0);
    assert_eq!(bench.carrier.refused(), counts.refused());
}

fn keys_of_different_operations_are_disjoint(bench: &Bench) {
    let one = rpc(1, 1);
    assert_eq!(bench.record(&[8], one, "a"), Status::Accepted);
    assert_eq!(bench.record(&[8], one, "a"), Status::Accepted, "again");
    assert_eq!(bench.record(&[8], rpc(2, 1), "b"), Status::Conflict);
    assert_eq!(bench.record(&[9, 8], rpc(2, 2), "b"), Status::Conflict);
    assert!(bench.is_clean(&[9]) && !bench.is_clean(&[9, 8]));
    assert_eq!(bench.carrier.records(VIEW), 1);
    let found = bench.carrier.find(VIEW, &entry(8, one)).unwrap();
    assert_eq!((found.stamp, &*found.command), ((1, !1), &b"a"[..]));
    assert_eq!(bench.carrier.find(VIEW, &entry(9, one)), None);
}

fn what_is_collected_is_gone_and_not_kept_again(bench: &Bench) {
    let one = rpc(1, 1);
    assert_eq!(bench.collect(&[entry(8, one), entry(12, rpc(7, 7))]), []);
    assert!(bench.is_clean(&[8]));
    // All backups have it: a late copy is answered and not kept.
    assert_eq!(bench.record(&[8], one, "a"), Status::Accepted);
    assert!(bench.is_clean(&[8]), "a late copy squats");
    assert_eq!(bench.record(&[8], rpc(2, 1), "b"), Status::Accepted);
    bench.collect(&[entry(8, one)]);
    assert!(!bench.is_clean(&[8]), "collected in the name of another");
    bench.collect(&[entry(8, rpc(2, 1))]);
    assert_eq!(bench.carrier.records(VIEW), 0);
}

fn a_full_set_refuses_and_leaves_nothing_behind(bench: &Bench) {
    let hashes: Vec<u64> = of_set(100).take(5).collect();
    for (seq, hash) in (1..).zip(&hashes[..4]) {
        assert_eq!(bench.record(&[*hash], rpc(3, seq), "x"), Status::Accepted);
    }
    let five = rpc(3, 5);
    assert_eq!(bench.record(&[200, hashes[4]], five, "y"), Status::Full);
    assert!(bench.is_clean(&[200, hashes[4]]));
    let full: Vec<_> = (1..5)
        .map(|seq| entry(hashes[seq - 1], rpc(3, seq as u64)))
        .collect();
    bench.collect(&full);
    assert_eq!(bench.record(&[200, hashes[4]], five, "y"), Status::Accepted);
    assert!(
        !bench.is_clean(&[200]) && !bench.is_clean(&[hashes[4]]),
        "accepted and not kept: names of what was given up"
    );
    assert_eq!(bench.carrier.records(VIEW), 1, "one record of two keys");
    bench.collect(&[entry(200, five), entry(hashes[4], five)]);
    assert_eq!(bench.carrier.records(VIEW), 0);
}

fn what_is_in_the_way_for_long_is_reported(bench: &Bench) {
    let stale = rpc(4, 1);
    let nothing = [entry(1, rpc(99, 99))];
    assert_eq!(bench.record(&[300], stale, "stale"), Status::Accepted);
    for round in 0..4 {
        assert_eq!(bench.record(&[300], rpc(4, 2), "new"), Status::Conflict);
        assert_eq!(bench.collect(&nothing), [], "round {round}");
    }
    assert_eq!(bench.record(&[300], rpc(4, 2), "new"), Status::Conflict);
    assert_eq!(bench.collect(&nothing), [entry(300, stale)]);
    assert!(!bench.is_clean(&[300]), "nothing goes by its age");
    bench.collect(&[entry(300, stale)]);
    assert!(bench.is_clean(&[300]));
}

fn the_largest_datagrams_are_kept_as_they_are(bench: &Bench) {
    let bytes: Vec<u8> = (0..1_396_u32).map(|n| (n % 251) as u8).collect();
    let asked = record(&[400], rpc(5, 1), &bytes);
    assert_eq!(asked.encode().unwrap().len(), 1_472);
    assert_eq!(bench.ask(&asked).status, Status::Accepted);
    let found = bench.carrier.find(VIEW, &entry(400, rpc(5, 1))).unwrap();
    assert_eq!(found.command, bytes);
    // Lengths beyond a multiple of eight, and no command at all.
    for length in 0..9 {
        let (hash, rpc) = (410 + length, rpc(5, 10 + length));
        let command = &bytes[..usize::try_from(length).unwrap()];
        let asked = record(&[hash], rpc, command);
        assert_eq!(bench.ask(&asked).status, Status::Accepted);
        let found = bench.carrier.find(VIEW, &entry(hash, rpc)).unwrap();
        assert_eq!(found.command, command);
    }
    let eight: Vec<u64> = of_set(500).take(4).chain(600..604).collect();
    assert_eq!(bench.record(&eight, rpc(5, 2), "MSET"), Status::Accepted);
    assert!(eight.iter().all(|hash| !bench.is_clean(&[*hash])));
    let mut all: Vec<_> = eight.iter().map(|hash| entry(*hash, rpc(5, 2))).collect();
    all.push(entry(400, rpc(5, 1)));
    all.extend((0..9).map(|length| entry(410 + length, rpc(5, 10 + length))));
    let filler = (1..).map(|seq| entry(70_000, rpc(98, seq)));
    all.extend(filler.take(ENTRIES_MAX - all.len()));
    bench.collect(&all);
    assert_eq!(bench.carrier.records(VIEW), 0);
}

fn what_makes_no_sense_is_refused(bench: &Bench) {
    let before = bench.carrier.counts().of(Count::Bad);
    for (hashes, rpc) in [
        (&[][..], rpc(6, 1)),
        (&[5, 5], rpc(6, 1)),
        (&[1, 2, 3, 4, 5, 6, 7, 1], rpc(6, 1)),
        (&[6], rpc(0, 1)),
    ] {
        assert_eq!(bench.record(hashes, rpc, "bad"), Status::Bad);
    }
    let without = question(Op::Record, &[6], rpc(6, 1));
    assert_eq!(bench.ask(&without).status, Status::Bad, "no request");
    let mut wrong = record(&[6], rpc(6, 1), b"SET");
    wrong.token = TOKENS.gc;
    assert_eq!(bench.ask(&wrong).status, Status::Bad, "the other token");
    let mut wrong = collection(&[entry(6, rpc(6, 1))]);
    wrong.token = TOKENS.record;
    assert_eq!(bench.ask(&wrong).status, Status::Bad, "a client collects");
    let mut wrong = question(Op::Probe, &[6], rpc(6, 1));
    wrong.token ^= 1;
    assert_eq!(bench.ask(&wrong).status, Status::Bad);
    for view in [
        View {
            epoch: Epoch(VIEW.epoch.0 + 1),
            ..VIEW
        },
        View {
            wlv: Wlv(VIEW.wlv.0 - 1),
            ..VIEW
        },
    ] {
        let mut stray = record(&[6], rpc(6, 1), b"SET");
        stray.view = view;
        assert_eq!(bench.ask(&stray).status, Status::WrongLife);
    }
    assert_eq!(bench.carrier.counts().of(Count::Bad) - before, 8);
    assert!(bench.is_clean(&[1, 2, 3, 4, 5, 6, 7]));
    assert_eq!(bench.carrier.records(VIEW), 0);
}

fn next(number: u64) -> View {
    let epoch = Epoch(VIEW.epoch.0 + number);
    View { epoch, ..VIEW }
}

fn tokens(number: u64) -> ViewTokens {
    ViewTokens {
        record: 100 + number,
        gc: 200 + number,
    }
}

fn views_have_tables_of_their_own(bench: &mut Bench) {
    let ask = |bench: &Bench, number: u64, hash: u64, rpc| {
        let mut asked = record(&[hash], rpc, b"SET");
        asked.view = next(number);
        asked.token = tokens(number).record;
        bench.ask(&asked).status
    };
    assert_eq!(bench.record(&[700], rpc(1, 1), "old"), Status::Accepted);
    assert!(bench.carrier.serve(next(1), tokens(1)));
    assert!(bench.carrier.serve(next(1), tokens(9)), "asked again");
    assert_eq!(ask(bench, 1, 700, rpc(2, 1)), Status::Accepted);
    assert_eq!(bench.record(&[700], rpc(1, 1), "old"), Status::Accepted);
    assert_eq!(
        (bench.carrier.records(VIEW), bench.carrier.records(next(1))),
        (1, 1)
    );
    // There is room for a few.
    for number in 2..VIEWS_MAX as u64 {
        assert!(bench.carrier.serve(next(number), tokens(number)));
    }
    assert!(
        !bench.carrier.serve(next(50), tokens(50)),
        "there is no room"
    );
    // Those that were given up leave room, the one in use stays.
    bench.carrier.give_up(Some(VIEW), next(50));
    assert!(bench.carrier.serve(next(50), tokens(50)));
    assert_eq!(ask(bench, 1, 701, rpc(2, 2)), Status::WrongLife);
    assert_eq!(bench.carrier.records(VIEW), 1);
    // What an ended view had is in nobody's way.
    for (seq, hash) in (1..).zip(of_set(800).take(4)) {
        assert_eq!(ask(bench, 50, hash, rpc(3, seq)), Status::Accepted);
    }
    assert!(bench.carrier.serve(next(51), tokens(51)));
    bench.carrier.end(next(51));
    assert_eq!(bench.carrier.records(next(50)), 0);
    for (seq, hash) in (11..).zip(of_set(800).take(4)) {
        assert_eq!(ask(bench, 51, hash, rpc(3, seq)), Status::Accepted);
    }
    assert_eq!(bench.record(&[700], rpc(1, 1), "old"), Status::WrongLife);
    assert_eq!(bench.carrier.freeze(VIEW), None, "it is not served");
    // A view of a name that was used begins empty.
    assert!(bench.carrier.serve(VIEW, TOKENS));
    assert!(bench.is_clean(&[700]));
}

fn a_frozen_view_gives_all_it_has_and_changes_no_more(bench: &mut Bench) {
    let one = rpc(1, 1);
    assert_eq!(bench.record(&[1, 2, 3], one, "MSET"), Status::Accepted);
    assert_eq!(bench.record(&[4], rpc(1, 2), "gone"), Status::Accepted);
    assert_eq!(bench.record(&[5], rpc(2, 1), "SET"), Status::Accepted);
    bench.collect(&[entry(4, rpc(1, 2))]);
    let frozen = bench.carrier.freeze(VIEW).unwrap();
    let recorded = |rpc, command: &str| Recorded {
        rpc,
        stamp: (rpc.seq, !rpc.seq),
        command: command.as_bytes().to_vec(),
    };
    assert_eq!(
        frozen,
        [recorded(one, "MSET"), recorded(rpc(2, 1), "SET")],
        "each once"
    );
    assert_eq!(bench.record(&[6], rpc(1, 3), "late"), Status::Frozen);
    assert_eq!(bench.record(&[1, 2, 3], one, "MSET"), Status::Frozen);
    assert_eq!(bench.record(&[4], rpc(1, 2), "gone"), Status::Frozen);
    let gc = bench.ask(&collection(&[entry(5, rpc(2, 1))]));
    assert_eq!((gc.status, gc.entries.len()), (Status::Frozen, 0));
    let probe = bench.ask(&question(Op::Probe, &[6], rpc(9, 9)));
    assert_eq!(probe.status, Status::Frozen);
    assert_eq!(bench.carrier.freeze(VIEW), Some(frozen), "read again");
}
