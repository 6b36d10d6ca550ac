//! List-append transactions: what they do, what the checker sees of them, what is refused.
#![allow(clippy::unwrap_used, clippy::panic, clippy::cast_precision_loss)]

use std::sync::Arc;

use crate::common::{Shards, TOPOLOGY, Whole};
use manxdb_checker::append::{History, Level, Operation as Observed, Outcome, Transaction, check};
use manxdb_txn::procedure::{Procedure, ShardId, Slot};
use manxdb_txn::rows::NoRows;
use manxdb_workloads::append::{
    Append, Form, Generator, Kind, List, Operation, Settings, decode, encode, list_of, observe,
    sent,
};
use manxdb_workloads::{Partition, Reach, Request};
use proptest::prelude::*;

fn client(settings: Settings, client: u32, home: u32) -> Generator {
    Generator::new(TOPOLOGY, settings, client, ShardId(home), 7)
}

fn list(partition: u32, row: u32) -> List {
    let partition = Partition(partition);
    List { partition, row }
}

fn read(partition: u32, row: u32) -> Operation {
    let (list, kind) = (list(partition, row), Kind::Read);
    Operation { list, kind }
}

fn append(partition: u32, row: u32, element: u64) -> Operation {
    let (list, kind) = (list(partition, row), Kind::Append(element));
    Operation { list, kind }
}

/// Runs requests of six clients in turn in both ways; the history that they make.
fn run_in_turn(settings: Settings, rounds: u64) -> (History, Vec<Request>) {
    let mut clients: Vec<Generator> = (0..6).map(|home| client(settings, home, home)).collect();
    let mut shards = Shards::new(TOPOLOGY, &(Arc::new(NoRows) as _));
    let mut whole = Whole::new();
    let (mut history, mut requests) = (History::default(), Vec::new());
    for round in 0..rounds {
        for (session, generator) in clients.iter_mut().enumerate() {
            let request = generator.next_request();
            let values = shards.run(&Append, &request.args);
            assert_eq!(whole.run(&Append, &request.args), values);
            let name = round * 6 + session as u64;
            history.transactions.push(Transaction {
                name,
                session: session as u64,
                invoked: 2 * name,
                completed: 2 * name + 1,
                outcome: Outcome::Ok,
                operations: observe(&request.args, &values).unwrap(),
            });
            requests.push(request);
        }
    }
    assert_eq!(whole.rows(), shards.changes());
    let changes = shards.changes().into_iter();
    let lists = changes.map(|(key, value)| list_of(&key, &value).unwrap());
    history.end_state = Some(lists.collect());
    (history, requests)
}

#[test]
fn one_after_another_is_strict_and_the_same_in_pieces_and_whole() {
    let (mut history, _) = run_in_turn(Settings::default(), 300);
    let verdict = check(&history, Level::Strict);
    assert!(verdict.is_valid(), "{verdict}");
    // The checker sees every element: one taken from what a read found is missed.
    let reads = history.transactions.iter_mut().rev();
    let mut lists = reads
        .flat_map(|txn| &mut txn.operations)
        .filter_map(|at| match at {
            Observed::Read { list, .. } if !list.is_empty() => Some(list),
            _ => None,
        });
    lists.next().unwrap().pop();
    assert!(!check(&history, Level::Strict).is_valid());
}

#[test]
fn requests_are_what_they_say() {
    let (history, requests) = run_in_turn(Settings::default(), 400);
    let share = |is: &dyn Fn(&Request) -> bool| {
        let count = requests.iter().filter(|request| is(request)).count();
        count as f64 / requests.len() as f64
    };
    for request in &requests {
        let pieces = Append.plan(&request.args, &TOPOLOGY).unwrap();
        let reach = TOPOLOGY.reach(pieces.iter().map(|piece| piece.shard));
        assert_eq!(reach, request.reach);
    }
    let crossing = share(&|request| request.reach == Reach::Regions);
    assert!((0.27..0.33).contains(&crossing), "{crossing}");
    let in_region = share(&|request| request.reach == Reach::Region);
    assert!((0.18..0.24).contains(&in_region), "{in_region}");
    let waiting = share(&|request| request.waits_across_regions);
    assert!((0.05..0.15).contains(&waiting), "{waiting}");
    let sizes = history.transactions.iter().map(|txn| txn.operations.len());
    assert_eq!(sizes.clone().min(), Some(1));
    assert_eq!(sizes.max(), Some(4));
}

#[test]
fn a_deferred_append_follows_what_others_found() {
    let mut shards = Shards::new(TOPOLOGY, &(Arc::new(NoRows) as _));
    let chosen = Operation {
        list: list(4, 10),
        kind: Kind::AppendChosen {
            element: 77,
            choices: 3,
        },
    };
    let args = encode(Form::Deferred, &[read(1, 0), chosen]);
    let pieces = Append.plan(&args, &TOPOLOGY).unwrap();
    assert_eq!((pieces[0].shard, pieces[1].shard), (ShardId(1), ShardId(4)));
    assert_eq!(pieces[1].needs, [pieces[0].gives[0]]);

    // The list that was read has one element, 3: length 8 and 3 make 11.
    shards.run(&Append, &encode(Form::Together, &[append(1, 0, 3)]));
    let values = shards.run(&Append, &args);
    let observed = observe(&args, &values).unwrap();
    let expected = [
        Observed::Read {
            key: list(1, 0).name(),
            list: vec![3],
        },
        Observed::Append {
            key: Some(list(4, 10 + 11 % 3).name()),
            element: 77,
        },
    ];
    assert_eq!(observed, expected);
    let unknown = Observed::Append {
        key: None,
        element: 77,
    };
    assert_eq!(sent(&args).unwrap(), [unknown]);
}

#[test]
fn operations_of_one_list_keep_their_order() {
    let mut shards = Shards::new(TOPOLOGY, &(Arc::new(NoRows) as _));
    let operations = [read(2, 1), append(2, 1, 5), read(2, 1), append(3, 1, 6)];
    let args = encode(Form::Together, &operations);
    let values = shards.run(&Append, &args);
    let reads: Vec<Vec<u64>> = observe(&args, &values)
        .unwrap()
        .into_iter()
        .filter_map(|operation| match operation {
            Observed::Read { list, .. } => Some(list),
            Observed::Append { .. } => None,
        })
        .collect();
    assert_eq!(reads, [vec![], vec![5]]);
}

#[test]
fn values_that_do_not_fit_are_refused() {
    let args = encode(Form::Together, &[read(2, 1)]);
    let mut shards = Shards::new(TOPOLOGY, &(Arc::new(NoRows) as _));
    let mut values = shards.run(&Append, &args);
    assert!(observe(&args, &values).is_ok());
    values.get_mut(&Slot(0)).unwrap().push(1);
    assert!(observe(&args, &values).is_err());
    values.clear();
    assert!(observe(&args, &values).is_err());
}

fn operation() -> impl Strategy<Value = Operation> {
    let kind = prop_oneof![
        Just(Kind::Read),
        any::<u64>().prop_map(Kind::Append),
        (any::<u64>(), 2_u8..5)
            .prop_map(|(element, choices)| Kind::AppendChosen { element, choices }),
    ];
    (0_u32..9, 0_u32..4, kind).prop_map(|(partition, row, kind)| Operation {
        list: list(partition, row),
        kind,
    })
}

fn form() -> impl Strategy<Value = Form> {
    prop_oneof![Just(Form::Together), Just(Form::Deferred)]
}

proptest! {
    #[test]
    fn arguments_survive_their_encoding_and_random_bytes_are_refused(
        form in form(),
        operations in prop::collection::vec(operation(), 0..8),
        cut in any::<prop::sample::Index>(),
        random in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let args = encode(form, &operations);
        prop_assert_eq!(decode(&args).unwrap(), (form, operations));
        let cut = cut.index(args.len());
        // Arguments have no length of their own: whole operations may be cut off.
        prop_assert!(cut % 17 == 1 || decode(&args[..cut]).is_err());
        let _ = Append.plan(&random, &TOPOLOGY);
    }

    /// Debug builds refuse a piece that leaves its touches.
    #[test]
    fn pieces_stay_within_their_touches_and_are_the_same_whole(
        calls in prop::collection::vec(
            (form(), prop::collection::vec(operation(), 0..8)), 1..8),
    ) {
        let mut shards = Shards::new(TOPOLOGY, &(Arc::new(NoRows) as _));
        let mut whole = Whole::new();
        for (form, operations) in calls {
            let args = encode(form, &operations);
            prop_assert_eq!(shards.run(&Append, &args), whole.run(&Append, &args));
        }
        prop_assert_eq!(whole.rows(), shards.changes());
    }
}
