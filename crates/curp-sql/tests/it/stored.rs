//! Rows in a store of their own: the same rules as in memory, restarts, copies, and what is named.

use std::path::Path;
use std::sync::Arc;

use manxdb_core::Random;
use manxdb_curp::ids::{ClientId, Epoch, LogId, RpcId, Stamp};
use manxdb_curp::log::Change;
use manxdb_curp::rifl::Rifl;
use manxdb_curp::{Execute as _, Recorded, Settled};
use manxdb_curp_sql::{Effects, Home, Owner, RowsView, SqlCommand, SqlMachine};
use manxdb_storage::{Options, StorageError};

pub type Live = Vec<(Vec<u8>, u64, Vec<u8>)>;

pub fn home(directory: &Path) -> Arc<Home> {
    let options = Options {
        block_cache_bytes: 1 << 20,
        write_buffer_bytes: 64 << 10,
        log_segment_bytes: 64 << 10,
        statistics: false,
        ..Options::default()
    };
    Home::open(directory, options).unwrap()
}

/// A replica: a machine, and its place in the log.
pub struct Replica {
    pub machine: SqlMachine,
    pub at: u64,
    pub completed: Rifl,
}

impl Replica {
    pub fn new(home: &Arc<Home>) -> Self {
        Self {
            machine: SqlMachine::stored(home),
            at: 0,
            completed: Rifl::default(),
        }
    }

    pub fn again(home: &Arc<Home>, record: &[u8]) -> Result<Self, String> {
        let Recorded { state, settled } = SqlMachine::stored(home).open_record(record)?;
        let (end, completed) = settled.unwrap();
        Ok(Self {
            machine: state,
            at: end.at,
            completed,
        })
    }

    /// Executes, applies and settles.
    pub fn run(&mut self, command: &SqlCommand) {
        let executed = self.machine.execute(&command.encode(), Stamp::default());
        self.machine.apply(&executed.effects);
        self.at += 1;
        let change = Change::Opened(ClientId(self.at));
        self.completed.take(self.at, &change);
        let settled = Settled {
            effects: vec![&executed.effects],
            end: self.end(),
            completed: &self.completed,
        };
        self.machine.settle(&settled).unwrap();
    }

    fn end(&self) -> LogId {
        LogId {
            at: self.at,
            epoch: Epoch(1),
        }
    }
}

pub fn live(view: &RowsView) -> Live {
    let mut rows = Vec::new();
    let read = view.each_live(|key, version, value| {
        rows.push((key.to_vec(), version.0, value.to_vec()));
        Ok::<_, StorageError>(())
    });
    read.unwrap();
    rows
}

pub fn commit(version: u64, shown: u64, writes: &[(&str, Option<&str>)]) -> SqlCommand {
    let writes = writes.iter().map(|(key, value)| {
        (
            key.as_bytes().to_vec(),
            value.map(|value| value.as_bytes().to_vec()),
        )
    });
    SqlCommand::Commit(Effects {
        owner: Owner(1),
        version,
        shown,
        writes: writes.collect(),
    })
}

/// Pieces of an image of some bytes each, as another replica takes them.
pub fn copied(from: &Replica, to: &Arc<Home>, bytes: usize) -> SqlMachine {
    let mut image = from.machine.image();
    let mut receiver = SqlMachine::stored(to).receive();
    let mut all = Vec::new();
    while let Some(read) = image.read().unwrap() {
        all.extend(read);
    }
    for piece in all.chunks(bytes) {
        receiver.take(piece).unwrap();
    }
    receiver.finish(from.end(), &from.completed).unwrap()
}

#[test]
fn a_store_has_the_rows_that_memory_has_whatever_order_effects_come_in() {
    let directory = tempfile::tempdir().unwrap();
    let mut stored = Replica::new(&home(directory.path()));
    let mut memory = SqlMachine::empty();
    let mut random = Random::new(17);
    let mut pending: Vec<SqlCommand> = Vec::new();
    let (mut version, mut shown) = (0, 0);
    let mut run = |command: SqlCommand| {
        memory.apply(&command.encode());
        stored.run(&command);
        assert_eq!(live(&stored.machine.view()), live(&memory.view()));
        assert_eq!(stored.machine.keys(), memory.keys(), "tombstones too");
    };
    run(SqlCommand::Claim(Owner(1)));
    for _ in 0..300 {
        version += 1;
        let keys = ["a", "b", "c", "d", "e", "f"];
        let from = usize::try_from(random.below(5)).unwrap();
        let value = format!("value {version}");
        let value = (random.below(3) > 0).then_some(value.as_str());
        pending.push(commit(
            version,
            shown,
            &[(keys[from], value), (keys[from + 1], value)],
        ));
        if pending.len() == 4 {
            let order = usize::try_from(random.below(4)).unwrap();
            pending.rotate_left(order);
            for command in pending.drain(..) {
                run(command);
            }
            shown = version;
        }
    }
    run(SqlCommand::Claim(Owner(2)));
}

#[test]
fn a_process_that_starts_again_goes_on_where_its_store_is() {
    let directory = tempfile::tempdir().unwrap();
    let mut replica = Replica::new(&home(directory.path()));
    replica.run(&SqlCommand::Claim(Owner(1)));
    let record = replica.machine.to_record().unwrap();
    // Behind the record: no journal tells of it.
    replica.run(&commit(1, 0, &[("a", Some("x")), ("b", None)]));
    let (rows, at) = (live(&replica.machine.view()), replica.at);
    let completed = replica.completed.clone();
    drop(replica);
    let mut again = Replica::again(&home(directory.path()), &record).unwrap();
    assert_eq!((again.at, &again.completed), (at, &completed));
    assert_eq!(live(&again.machine.view()), rows);
    assert_eq!(again.machine.owner(), Owner(1));
    assert_eq!(again.machine.keys(), 2, "the deleted key is remembered");
    again.run(&commit(3, 2, &[("c", Some("y"))]));
    assert_eq!(again.machine.keys(), 2, "and forgotten");
    let rpc = RpcId {
        client: ClientId(1),
        seq: 1,
    };
    assert_eq!(again.completed.look_up(rpc), manxdb_curp::rifl::Known::New);
}

#[test]
fn an_image_is_of_its_moment_and_a_copy_of_it_is_a_replica() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut replica = Replica::new(&home(one.path()));
    replica.run(&SqlCommand::Claim(Owner(1)));
    let large = "x".repeat(3_000);
    for version in 1..=400 {
        let key = format!("key {version:04}");
        replica.run(&commit(version, version - 1, &[(&key, Some(&large))]));
    }
    let mut image = replica.machine.image();
    let before = live(&replica.machine.view());
    let end = replica.end();
    let mut receiver = SqlMachine::stored(&home(two.path())).receive();
    let mut version = 400;
    let mut reads = 0;
    while let Some(read) = image.read().unwrap() {
        for piece in read.chunks(1_000) {
            receiver.take(piece).unwrap();
        }
        reads += 1;
        for key in ["key 0001", "key 0300", "key 0400", "key 9999"] {
            version += 1;
            let value = (version % 3 > 0).then_some("new");
            replica.run(&commit(version, version - 1, &[(key, value)]));
        }
    }
    assert!(reads > 1, "more than is read at once");
    let copy = receiver.finish(end, &replica.completed).unwrap();
    assert_eq!(live(&copy.view()), before);
    assert_ne!(live(&replica.machine.view()), before);
    let third = tempfile::tempdir().unwrap();
    let copy = copied(&replica, &home(third.path()), 7);
    assert_eq!(live(&copy.view()), live(&replica.machine.view()));
    assert_eq!(copy.keys(), replica.machine.keys());
}

#[test]
fn a_copy_that_does_not_come_to_its_end_leaves_nothing_and_a_newer_state_ends_the_earlier_one() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut replica = Replica::new(&home(one.path()));
    replica.run(&SqlCommand::Claim(Owner(1)));
    let large = "x".repeat(2_000_000);
    replica.run(&commit(1, 0, &[("a", Some(&large)), ("b", Some(&large))]));
    let to = home(two.path());
    let states = || std::fs::read_dir(to.directory()).unwrap().count();
    let mut old = Replica::new(&to);
    old.run(&SqlCommand::Claim(Owner(1)));
    let mut image = replica.machine.image();
    let mut receiver = old.machine.receive();
    for _ in 0..2 {
        receiver.take(&image.read().unwrap().unwrap()).unwrap();
    }
    assert_eq!(states(), 2);
    drop(receiver);
    assert_eq!(states(), 1, "given up");
    let mut copy = copied(&replica, &to, 1 << 20);
    assert_eq!(states(), 2);
    let record = copy.to_record().unwrap();
    drop(old);
    copy.forget_earlier();
    assert_eq!(states(), 1);
    drop(copy);
    assert_eq!(Replica::again(&to, &record).unwrap().machine.keys(), 2);
}

#[test]
fn bytes_that_are_no_image_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut replica = Replica::new(&home(directory.path()));
    replica.run(&SqlCommand::Claim(Owner(1)));
    replica.run(&commit(1, 0, &[("a", Some("x"))]));
    let mut image = replica.machine.image();
    let mut whole = Vec::new();
    while let Some(read) = image.read().unwrap() {
        whole.extend(read);
    }
    let taken = |bytes: &[u8]| {
        let mut receiver = replica.machine.receive();
        receiver.take(bytes)?;
        receiver.finish(replica.end(), &replica.completed)
    };
    assert!(taken(&whole).is_ok());
    for end in 0..whole.len() {
        assert!(taken(&whole[..end]).is_err(), "cut off after {end}");
    }
    for bit in 0..whole.len() * 8 {
        let mut wrong = whole.clone();
        wrong[bit / 8] ^= 1 << (bit % 8);
        assert!(taken(&wrong).is_err(), "bit {bit}");
    }
    let more = [&whole[..], &[0]].concat();
    assert!(taken(&more).is_err(), "something follows the end");
}

#[test]
fn a_store_that_is_damaged_or_missing_is_named_with_the_way_out() {
    let directory = tempfile::tempdir().unwrap();
    let mut replica = Replica::new(&home(directory.path()));
    replica.run(&SqlCommand::Claim(Owner(1)));
    let record = replica.machine.to_record().unwrap();
    drop(replica);
    let state = std::fs::read_dir(home(directory.path()).directory());
    let state = state.unwrap().next().unwrap().unwrap().path();
    std::fs::remove_file(state.join("rocksdb/CURRENT")).unwrap();
    let refused = Replica::again(&home(directory.path()), &record)
        .err()
        .unwrap();
    assert!(refused.contains("replicated"), "{refused}");
    assert!(
        refused.contains("with an empty data directory"),
        "{refused}"
    );
    let wrong = Replica::again(&home(directory.path()), &[9, 9])
        .err()
        .unwrap();
    assert!(wrong.contains("names no store"), "{wrong}");
}

#[test]
fn a_transaction_that_finds_no_room_on_the_disk_is_told_so() {
    let directory = tempfile::tempdir().unwrap();
    let home = home(directory.path());
    let full = home.lacks_room(1 << 60).unwrap();
    assert!(full.contains("make room on the disk"), "{full}");
}
