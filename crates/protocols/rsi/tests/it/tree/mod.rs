//! Keys in their order: a tree with nodes so small that it grows all the time.
//!
//! | tests | of |
//! |---|---|
//! | model | batches of all sizes, against a map; what old snapshots are shown |
//! | writers | many who enter the same keys, some of whom die |
//! | phantoms | what was scanned can be relied on |
//! | refusals | what is no tree, and what a tree does not take |
//! | unseen | a leaf that is newer than the snapshot under which it was found |
#![allow(clippy::unwrap_used, clippy::panic)]

mod model;
mod phantoms;
mod refusals;
mod unseen;
mod writers;

use std::cell::Cell;
use std::collections::BTreeMap;

use crate::common::ClientHandle;
use manxdb_fabric::{Address, ServerId};
use manxdb_rsi::{
    Abort, Change, Draft, EnterError, Hint, Isolation, Layout, RecordAddress, Scanned, Seek, Seen,
    Snapshot, Span, Stamp, Tree,
};

const SEEDS: u64 = 60;

/// Some six keys of ten bytes a node.
const LAYOUT: Layout = match Layout::new(2, 176) {
    Ok(layout) => layout,
    Err(_) => panic!("a layout"),
};

fn place(server: u16, offset: u64) -> RecordAddress {
    let server = ServerId(server);
    RecordAddress::new(Address { server, offset }).unwrap()
}

fn tree() -> Tree {
    Tree::new(place(0, 128 << 10), LAYOUT).unwrap()
}

/// Room for nodes and for records that is a client's own.
struct Rooms {
    client: u64,
    /// Nodes.
    taken: Cell<u64>,
    records: Cell<u64>,
}

impl Rooms {
    const EACH: u64 = 100;

    fn new(client: u64) -> Self {
        let (taken, records) = (Cell::new(0), Cell::new(0));
        Self {
            client,
            taken,
            records,
        }
    }

    fn all(&self) -> impl Iterator<Item = RecordAddress> + Clone + use<> {
        let node = (LAYOUT.bytes() as u64).next_multiple_of(64);
        let base = (128 << 10) + node + self.client * Self::EACH * node;
        let server = u16::try_from(self.client % 2).unwrap();
        (self.taken.get()..Self::EACH).map(move |number| place(server, base + number * node))
    }

    /// What stands for records: nobody goes there.
    fn records(&self) -> impl Iterator<Item = RecordAddress> + Clone + use<> {
        let (client, taken) = (self.client, self.records.get());
        (taken..).map(move |number| place(7, (1 + number * 16 + client) * 64))
    }
}

/// What is in a room.
fn fresh(place: RecordAddress) -> Seen {
    Seen::fresh(place.address(), LAYOUT)
}

fn key(number: u64) -> Vec<u8> {
    format!("{number:04} {}", "x".repeat((number % 9) as usize)).into_bytes()
}

/// What came of entering keys.
struct Known {
    places: BTreeMap<Vec<u8>, RecordAddress>,
    /// To the leaf of the first one.
    hint: Option<Hint>,
    /// What they took, and as which version that was committed.
    changes: Vec<Change>,
    stamp: Option<Stamp>,
}

/// Makes keys known in one commit, with places of one's own for those that are new. An error:
/// somebody else was there.
async fn enter_with(
    handle: &mut ClientHandle,
    rooms: &Rooms,
    numbers: &[u64],
    records: impl Iterator<Item = RecordAddress> + Clone,
    hint: Option<Hint>,
) -> Result<Known, Abort> {
    let snapshot = handle.begin().await;
    let mut keys: Vec<_> = numbers.iter().map(|number| key(*number)).collect();
    keys.sort();
    let mut draft = Draft::new(tree()).with(handle.session.mutant);
    let locate = async |key: &[u8], hint| {
        let seek = Seek::At(key.to_vec());
        let locate = handle.session.locate(&snapshot, tree(), seek, hint);
        handle.run(locate).await
    };
    let mut first = None;
    for key in &keys {
        if !draft.has(key) {
            let located = locate(key, hint).await?;
            first = first.or(located.hint());
            draft.add(located)?;
        }
    }
    let entered = loop {
        let mut nodes = rooms.all().map(fresh);
        match draft.enter(&keys, &mut records.clone().map(fresh), &mut nodes) {
            Ok(entered) => break entered,
            Err(EnterError::Unknown(key)) => draft.add(locate(&key, None).await?)?,
            Err(error) => panic!("{error}"),
        }
    };
    let changes = entered.changes;
    let committed = handle.try_commit(&[], changes.clone(), Isolation::Snapshot);
    let stamp = committed.await?;
    let add = |count: &Cell<u64>, more: usize| count.set(count.get() + more as u64);
    add(&rooms.taken, entered.nodes);
    add(&rooms.records, entered.taken);
    let places = entered.records.iter().map(|record| record.place().unwrap());
    Ok(Known {
        places: keys.into_iter().zip(places).collect(),
        hint: first,
        changes,
        stamp,
    })
}

/// The same with what stands for records.
async fn enter_once(
    handle: &mut ClientHandle,
    rooms: &Rooms,
    numbers: &[u64],
    hint: Option<Hint>,
) -> Result<Known, Abort> {
    enter_with(handle, rooms, numbers, rooms.records(), hint).await
}

/// The same, as often as it takes.
async fn enter(
    handle: &mut ClientHandle,
    rooms: &Rooms,
    numbers: &[u64],
    hint: Option<Hint>,
) -> Known {
    loop {
        match enter_once(handle, rooms, numbers, hint).await {
            Ok(known) => return known,
            Err(abort) => assert!(crate::common::can_be_tried_again(abort), "{abort}"),
        }
    }
}

async fn scan(handle: &ClientHandle, snapshot: &Snapshot, span: Span) -> Scanned {
    let scan = handle.session.scan(snapshot, tree(), span, None);
    handle.run(scan).await.unwrap()
}

fn everything(descending: bool) -> Span {
    Span {
        descending,
        ..Span::all()
    }
}

/// All entries; they are the same in both directions, and each can be found.
async fn all_of(handle: &mut ClientHandle) -> BTreeMap<Vec<u8>, RecordAddress> {
    let snapshot = handle.begin().await;
    let forward = scan(handle, &snapshot, everything(false)).await;
    let mut backward = scan(handle, &snapshot, everything(true)).await.entries;
    backward.reverse();
    assert_eq!(forward.entries, backward);
    assert!(forward.entries.is_sorted_by(|a, b| a.0 < b.0));
    for (key, place) in &forward.entries {
        let seek = Seek::At(key.clone());
        let locate = handle.session.locate(&snapshot, tree(), seek, None);
        let located = handle.run(locate).await.unwrap();
        assert_eq!(located.place(key), Some(*place));
    }
    forward.entries.into_iter().collect()
}
