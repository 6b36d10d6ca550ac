//! TPC-A: increments add up, and what is missing is found.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;

use crate::common::{Shards, TOPOLOGY, Whole};
use manxdb_txn::procedure::{Procedure, ShardId};
use manxdb_txn::rows::NoRows;
use manxdb_workloads::tpca::{
    Generator, Increment, Totals, check, encode, encode_totals, read_totals, totals,
};
use manxdb_workloads::{Partition, Zipf};

const ROUNDS: u64 = 100;

fn run_in_turn() -> (Shards, Whole) {
    let zipf = Arc::new(Zipf::new(600, 1.0, TOPOLOGY.shards()));
    let new = |home| Generator::new(TOPOLOGY, zipf.clone(), 0.1, home, ShardId(home), 7);
    let mut clients: Vec<Generator> = (0..6).map(new).collect();
    let mut shards = Shards::new(TOPOLOGY, &(Arc::new(NoRows) as _));
    let mut whole = Whole::new();
    for _ in 0..ROUNDS {
        for client in &mut clients {
            let request = client.next_request();
            let values = shards.run(&Increment, &request.args);
            assert_eq!(whole.run(&Increment, &request.args), values);
        }
    }
    (shards, whole)
}

#[test]
fn the_tables_add_up_in_pieces_and_whole() {
    let (shards, mut whole) = run_in_turn();
    assert_eq!(totals(&shards.rows), [600; 3]);
    assert_eq!(check(&shards.rows, 600, 0), [""; 0]);
    assert_eq!(check(&shards.rows, 597, 3), [""; 0]);
    assert_eq!(whole.rows(), shards.changes());
}

#[test]
fn a_transaction_adds_up_what_the_rows_do() {
    let (mut shards, _) = run_in_turn();
    let args = encode_totals(TOPOLOGY.shards());
    let values = shards.run(&Totals, &args);
    let given: Vec<(u32, Vec<u8>)> = values.into_iter().map(|(slot, it)| (slot.0, it)).collect();
    assert_eq!(given.len(), TOPOLOGY.shards() as usize);
    assert_eq!(read_totals(&given), Some([600; 3]));
    assert_eq!(read_totals(&[(0, vec![1, 2, 3])]), None);
    let too_many = encode_totals(TOPOLOGY.shards() + 1);
    assert!(Totals.plan(&too_many, &TOPOLOGY).is_err());
    assert!(Totals.plan(&[1], &TOPOLOGY).is_err());
}

#[test]
fn a_lost_increment_is_found() {
    let (mut shards, _) = run_in_turn();
    assert_eq!(check(&shards.rows, 601, 5).len(), 3);
    assert_eq!(check(&shards.rows, 500, 5).len(), 3);
    let (key, _) = shards.rows[0].changes().next().unwrap();
    let key = key.to_vec();
    shards.rows[0].write(&key, Some(0_u64.to_le_bytes().to_vec()));
    let found = check(&shards.rows, 600, 0);
    assert!(found[0].starts_with("the tables have"), "{found:?}");
}

#[test]
fn arguments_of_another_length_are_refused() {
    let args = encode([(Partition(1), 1), (Partition(2), 2), (Partition(3), 3)]);
    assert_eq!(Increment.plan(&args, &TOPOLOGY).unwrap().len(), 3);
    for length in (0..args.len()).chain([args.len() + 1]) {
        let mut other = args.clone();
        other.resize(length, 0);
        assert!(Increment.plan(&other, &TOPOLOGY).is_err());
    }
}
