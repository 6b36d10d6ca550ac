//! What one transaction under DAST takes when nothing else runs, exactly, and what that consists
//! of: 5 ms and 100 ms there and back, CPUs that take no time, right clocks.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use manxdb_core::Nanos;
use manxdb_dast::{Crossing, Level, Options, Shared, Survive, Topology};
use manxdb_lab::dast::{DastSystem, paper_links, place};
use manxdb_lab::why::Why;
use manxdb_sim::{World, WorldOptions};
use manxdb_txn::procedure::Registry;

use crate::common::chain::{ByPartition, Chain, Chained, NOTHING, chain, last_of, line};

const TOPOLOGY: Topology = Topology {
    regions: 4,
    shards_per_region: 2,
};

/// A transaction at a level, asked so long after a round of reports: the third of its kind, when
/// regions know how long a decision takes.
fn floor(
    (crossing, survive): (Crossing, Survive),
    pieces: Chained,
    level: Level,
    after_report: Nanos,
) -> (Nanos, Why) {
    let procedures = Registry::default();
    procedures.register(Arc::new(Chain));
    let shared = Shared {
        topology: TOPOLOGY,
        options: Options {
            crossing,
            survive,
            explains: true,
            ..Options::default()
        },
        procedures: Arc::new(procedures),
        placement: Arc::new(ByPartition),
    };
    let (lan, wan) = paper_links();
    let (places, clients) = place(TOPOLOGY, 1, lan, wan);
    let mut options = WorldOptions::new(1, places);
    options.explain = true;
    let world = World::new(DastSystem::new(shared), options);
    let (client, home) = clients[0];
    let ask = chain(pieces.iter().copied(), level, home);
    last_of(world, client, ask, 3, after_report)
}

const ONE: Chained = &[(0, NOTHING)];
const TWO: Chained = &[(0, NOTHING), (2, NOTHING)];

/// Shard 0 is the client's; 1 is in its region, 2, 4 and 6 are in the others. Microseconds after a
/// report, a level, and the pieces.
const CASES: [(&str, u64, Level, Chained); 17] = [
    (
        "one shard, 1 µs after a report",
        1,
        Level::Serializable,
        ONE,
    ),
    (
        "one shard, 1250 µs after a report",
        1_250,
        Level::Serializable,
        ONE,
    ),
    (
        "one shard, 2499 µs after a report",
        2_499,
        Level::Serializable,
        ONE,
    ),
    (
        "one shard, 2500 µs after a report",
        2_500,
        Level::Serializable,
        ONE,
    ),
    (
        "two shards of a region",
        1_250,
        Level::Serializable,
        &[(0, NOTHING), (1, NOTHING)],
    ),
    (
        "another shard of the region",
        1_250,
        Level::Serializable,
        &[(1, NOTHING)],
    ),
    (
        "home waits for the other shard",
        1_250,
        Level::Serializable,
        &[(0, 1), (1, NOTHING)],
    ),
    ("one shard, strict", 1_250, Level::Strict, ONE),
    ("2 regions", 1_250, Level::Serializable, TWO),
    (
        "3 regions",
        1_250,
        Level::Serializable,
        &[(0, NOTHING), (2, NOTHING), (4, NOTHING)],
    ),
    (
        "4 regions",
        1_250,
        Level::Serializable,
        &[(0, NOTHING), (2, NOTHING), (4, NOTHING), (6, NOTHING)],
    ),
    (
        "2 others, none at home",
        1_250,
        Level::Serializable,
        &[(2, NOTHING), (4, NOTHING)],
    ),
    (
        "one shard, in another region",
        1_250,
        Level::Serializable,
        &[(2, NOTHING)],
    ),
    (
        "home waits for another region",
        1_250,
        Level::Serializable,
        &[(0, 1), (2, NOTHING)],
    ),
    (
        "another region waits for home",
        1_250,
        Level::Serializable,
        &[(0, NOTHING), (2, 0)],
    ),
    (
        "a third region waits for the second",
        1_250,
        Level::Serializable,
        &[(0, NOTHING), (2, NOTHING), (4, 1)],
    ),
    ("2 regions, strict", 1_250, Level::Strict, TWO),
];

fn floors(mode: (Crossing, Survive)) -> String {
    let lines = CASES.map(|(name, micros, level, pieces)| {
        let after_report = Nanos::from_micros(micros);
        line(name, 42, floor(mode, pieces, level, after_report))
    });
    lines.join("\n")
}

#[test]
fn unloaded_latencies_are_what_the_messages_in_a_row_take() {
    let found = floors((Crossing::Anticipated, Survive::Zone));
    assert_eq!(found, FLOORS.trim(), "found:\n{found}\n");
}

/// One way to the other regions and one way back; one more each time a region waits for a value of
/// another one that is not the coordinator's.
#[test]
fn ordered_ahead_a_cross_region_transaction_takes_one_round_trip() {
    let found = floors((Crossing::Ahead, Survive::Zone));
    assert_eq!(found, AHEAD.trim(), "found:\n{found}\n");
}

/// The bound counts a mark one message through the region later: once two managers have it. Nothing
/// else changes.
#[test]
fn with_streams_that_two_managers_hold_it_takes_one_message_more() {
    let found = floors((Crossing::Ahead, Survive::Region));
    assert_eq!(found, WHOLE.trim(), "found:\n{found}\n");
}

/// Milliseconds. A local transaction is run up to one interval of reports (2.5 ms) and two ways
/// through the region after its stamp. Where regions are far apart, the one that heard of the
/// transaction last gives the largest timestamp; home could run it half a round trip before its
/// clock gets there, which shows when another region waits for home's value.
const FLOORS: &str = "
one shard, 1 µs after a report               12.499  5.000 network in the region  7.499 ordering gate
one shard, 1250 µs after a report            11.250  5.000 network in the region  6.250 ordering gate
one shard, 2499 µs after a report            10.001  5.000 network in the region  5.001 ordering gate
one shard, 2500 µs after a report            12.500  5.000 network in the region  7.500 ordering gate
two shards of a region                       13.750  10.000 network in the region  3.750 ordering gate
another shard of the region                  13.750  10.000 network in the region  3.750 ordering gate
home waits for the other shard               13.750  10.000 network in the region  3.750 ordering gate
one shard, strict                            11.250  5.000 network in the region  6.250 ordering gate
2 regions                                   217.500  5.000 managers' ledger  200.000 network between regions  7.500 network in the region  5.000 ordering gate
3 regions                                   217.500  5.000 managers' ledger  200.000 network between regions  7.500 network in the region  5.000 ordering gate
4 regions                                   217.500  5.000 managers' ledger  200.000 network between regions  7.500 network in the region  5.000 ordering gate
2 others, none at home                      217.500  5.000 managers' ledger  200.000 network between regions  7.500 network in the region  5.000 ordering gate
one shard, in another region                127.501  5.000 managers' ledger  100.000 network between regions  7.500 network in the region  15.001 ordering gate
home waits for another region               217.500  5.000 managers' ledger  200.000 network between regions  7.500 network in the region  5.000 ordering gate
another region waits for home               262.501  5.000 managers' ledger  200.000 network between regions  7.500 network in the region  50.001 ordering gate
a third region waits for the second         267.500  5.000 managers' ledger  250.000 network between regions  7.500 network in the region  5.000 ordering gate
2 regions, strict                           223.750  5.000 managers' ledger  200.000 network between regions  7.500 network in the region  5.000 ordering gate  6.250 strict order
";

/// The same, ordered ahead. The managers' ledger, the way there, the way to the replicas, their
/// clocks to the manager and back, the way back. One shard of another region is a local transaction
/// there.
const AHEAD: &str = "
one shard, 1 µs after a report               12.499  5.000 network in the region  7.499 ordering gate
one shard, 1250 µs after a report            11.250  5.000 network in the region  6.250 ordering gate
one shard, 2499 µs after a report            10.001  5.000 network in the region  5.001 ordering gate
one shard, 2500 µs after a report            12.500  5.000 network in the region  7.500 ordering gate
two shards of a region                       13.750  10.000 network in the region  3.750 ordering gate
another shard of the region                  13.750  10.000 network in the region  3.750 ordering gate
home waits for the other shard               13.750  10.000 network in the region  3.750 ordering gate
one shard, strict                            11.250  5.000 network in the region  6.250 ordering gate
2 regions                                   120.000  5.000 managers' ledger  100.000 network between regions  10.000 network in the region  5.000 ordering gate
3 regions                                   120.000  5.000 managers' ledger  100.000 network between regions  10.000 network in the region  5.000 ordering gate
4 regions                                   120.000  5.000 managers' ledger  100.000 network between regions  10.000 network in the region  5.000 ordering gate
2 others, none at home                      120.000  5.000 managers' ledger  100.000 network between regions  10.000 network in the region  5.000 ordering gate
one shard, in another region                108.750  100.000 network between regions  2.500 network in the region  6.250 ordering gate
home waits for another region               120.000  5.000 managers' ledger  100.000 network between regions  10.000 network in the region  5.000 ordering gate
another region waits for home               167.501  5.000 managers' ledger  100.000 network between regions  10.000 network in the region  52.501 ordering gate
a third region waits for the second         170.000  5.000 managers' ledger  150.000 network between regions  10.000 network in the region  5.000 ordering gate
2 regions, strict                           121.250  5.000 managers' ledger  100.000 network between regions  10.000 network in the region  5.000 ordering gate  1.250 strict order
";

/// The same with whole streams: a backup's word for its leader is a wait for those who are ordered.
/// That other regions have closed the place is heard with the next mark, which a strict answer now
/// just misses.
const WHOLE: &str = "
one shard, 1 µs after a report               12.499  5.000 network in the region  7.499 ordering gate
one shard, 1250 µs after a report            11.250  5.000 network in the region  6.250 ordering gate
one shard, 2499 µs after a report            10.001  5.000 network in the region  5.001 ordering gate
one shard, 2500 µs after a report            12.500  5.000 network in the region  7.500 ordering gate
two shards of a region                       13.750  10.000 network in the region  3.750 ordering gate
another shard of the region                  13.750  10.000 network in the region  3.750 ordering gate
home waits for the other shard               13.750  10.000 network in the region  3.750 ordering gate
one shard, strict                            11.250  5.000 network in the region  6.250 ordering gate
2 regions                                   122.500  5.000 managers' ledger  100.000 network between regions  10.000 network in the region  7.500 ordering gate
3 regions                                   122.500  5.000 managers' ledger  100.000 network between regions  10.000 network in the region  7.500 ordering gate
4 regions                                   122.500  5.000 managers' ledger  100.000 network between regions  10.000 network in the region  7.500 ordering gate
2 others, none at home                      122.500  5.000 managers' ledger  100.000 network between regions  10.000 network in the region  7.500 ordering gate
one shard, in another region                108.750  100.000 network between regions  2.500 network in the region  6.250 ordering gate
home waits for another region               122.500  5.000 managers' ledger  100.000 network between regions  10.000 network in the region  7.500 ordering gate
another region waits for home               170.001  5.000 managers' ledger  100.000 network between regions  10.000 network in the region  55.001 ordering gate
a third region waits for the second         172.500  5.000 managers' ledger  150.000 network between regions  10.000 network in the region  7.500 ordering gate
2 regions, strict                           126.250  5.000 managers' ledger  100.000 network between regions  10.000 network in the region  7.500 ordering gate  3.750 strict order
";
