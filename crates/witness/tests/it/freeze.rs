//! A view is frozen while clients on all processors record: what was accepted is in what was read.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use manxdb_curp::MemoryCarrier;
use manxdb_curp::ids::{Epoch, RpcId, View};
use manxdb_curp::mutants::Mutant;
use manxdb_curp::wire::Status;
use manxdb_witness::UserCarrier;
use manxdb_witness::layout::{SETS, WAYS};

use crate::bench::{Bench, TOKENS, VIEW, ask, client, collection, entry, record, rpc};
use crate::on_every_carrier;

on_every_carrier!(freeze, nothing_that_was_accepted_is_lost);

const ROUNDS: u64 = 2;
const CLIENTS: u64 = 3;
/// Acceptances before the freeze.
const BEFORE: u64 = 400;

fn nothing_that_was_accepted_is_lost(bench: &mut Bench) {
    for round in 1..=ROUNDS {
        let epoch = Epoch(VIEW.epoch.0 + round);
        one_round(bench, View { epoch, ..VIEW }, round);
    }
}

#[test]
#[should_panic(expected = "lost")]
fn a_table_that_does_not_freeze_is_found() {
    let table = MemoryCarrier::new((SETS as usize, WAYS));
    let table = table.with_mutant(Some(Mutant::NoFreeze));
    let address = ([127, 0, 0, 1], 0).into();
    let carrier = UserCarrier::with(address, 7, table).unwrap();
    nothing_that_was_accepted_is_lost(&mut Bench::new(Box::new(carrier), None));
}

fn one_round(bench: &mut Bench, view: View, round: u64) {
    assert!(bench.carrier.serve(view, TOKENS));
    bench.carrier.end(view);
    let accepted = AtomicU64::new(0);
    let is_over = AtomicBool::new(false);
    let sockets: Vec<_> = (0..CLIENTS).map(|_| client(&*bench.carrier)).collect();
    std::thread::scope(|scope| {
        let mut clients = Vec::new();
        for (number, socket) in (1..).zip(&sockets) {
            let (accepted, is_over) = (&accepted, &is_over);
            clients.push(scope.spawn(move || {
                let mut kept = BTreeSet::new();
                let mut after = 0;
                for seq in 1.. {
                    // A table that does not freeze answers for ever.
                    after += u64::from(is_over.load(Ordering::Relaxed));
                    if after > 50 {
                        break;
                    }
                    // Two keys each, of a client's own but in sets that others use too.
                    let key = (number << 40) | ((seq * 37) << 13);
                    let keys = [key | (seq % 512), key | (1 << 39) | (seq * 7 % 512)];
                    let id = rpc(number, seq);
                    let mut asked = record(&keys, id, &seq.to_le_bytes());
                    asked.view = view;
                    match ask(socket, &asked).status {
                        Status::Accepted => kept.insert(id),
                        Status::Frozen => return kept,
                        Status::Full | Status::Busy => true,
                        status => panic!("{status:?} for {asked:?}"),
                    };
                    accepted.fetch_add(1, Ordering::Relaxed);
                    if seq % 3 == 0 && !is_over.load(Ordering::Relaxed) {
                        // Every third is synced and collected.
                        let mut gc = collection(&keys.map(|key| entry(key, id)));
                        gc.view = view;
                        if ask(socket, &gc).status == Status::GcOk {
                            kept.remove(&id);
                        }
                    }
                }
                kept
            }));
        }
        while accepted.load(Ordering::Relaxed) < BEFORE * CLIENTS {
            std::thread::yield_now();
        }
        let frozen = bench.carrier.freeze(view).unwrap();
        is_over.store(true, Ordering::Relaxed);
        let frozen: BTreeSet<RpcId> = frozen.into_iter().map(|record| record.rpc).collect();
        let kept: BTreeSet<RpcId> = clients
            .into_iter()
            .flat_map(|client| client.join().unwrap())
            .collect();
        let lost: Vec<&RpcId> = kept.difference(&frozen).collect();
        assert!(
            lost.is_empty(),
            "round {round}: {lost:?} of {} lost",
            kept.len()
        );
        assert!(kept.len() > 100, "round {round}: {} kept", kept.len());
    });
    assert_eq!(bench.carrier.check(), Ok(()));
}
