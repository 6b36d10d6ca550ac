//! Clients that insert, change and delete rows under keys of their own, in one tree; what comes of
//! all that after the power was gone.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::rc::Rc;
use std::sync::Arc;

use manxdb_core::{Nanos, Random};
use manxdb_rsi::mutants::Mutant;
use manxdb_rsi::rows::{Client, Extent, Failure, Keyspace};
use manxdb_rsi::{Carrier, Isolation, Layout, Machine, Map, RecordAddress, Snapshot, Span, Tree};
use manxdb_sim::SimTime;

use crate::drains::archiver::Cellar;
use crate::drains::story::Story;
use crate::simulated_rack::bank::{Notes, Teller};
use crate::simulated_rack::client_handle::ClientHandle;
use crate::simulated_rack::plan::{NODES, PLACES, ROWS, SERVERS, THREADS, each};
use crate::simulated_rack::rack::LEASE;

/// Clients that there can be, one after another: each has places of its own, which nobody has had.
const SHARES: u64 = 20;
const SHARE: u64 = (PLACES - 1) / SHARES;
const CLIENTS: u64 = 3;
/// Keys of a client.
const KEYS: u64 = 7;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// What a transaction writes and deletes.
type Writes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// What a client has done to its rows.
#[derive(Default)]
struct Diary {
    /// What it had done, or may have, in order.
    writes: Vec<Writes>,
    /// So many of these are there for good.
    synced: usize,
}

/// Of all clients, by their shares.
type Diaries = Rc<RefCell<BTreeMap<u64, Diary>>>;

/// Carries work out for a client of rows.
struct Carried {
    handle: ClientHandle,
    map: Arc<Map>,
}

impl Carrier for Carried {
    type Error = Infallible;

    async fn run<W: Machine>(&mut self, work: W) -> Result<W::Output, Infallible> {
        Ok(self.handle.run_by(&self.map, work).await)
    }
}

/// A client with a share of the places; the root is nobody's.
async fn client(
    handle: ClientHandle,
    notes: &Notes,
    share: u64,
) -> (Client<Carried>, manxdb_rsi::Owner) {
    let Teller {
        handle, owner, map, ..
    } = Teller::join(handle, notes).await;
    let (nodes, rows) = handle.plan.tree.unwrap();
    let first = 1 + share * SHARE;
    let extent = |base: manxdb_fabric::Address, layout: Layout| {
        Extent::new(base.plus(first * each(layout)), layout.bytes(), SHARE).unwrap()
    };
    let keyspace = Keyspace {
        tree: Tree::new(RecordAddress::new(nodes).unwrap(), NODES).unwrap(),
        records: ROWS,
    };
    let (nodes, rows) = (extent(nodes, NODES), extent(rows, ROWS));
    let session = handle.session(owner, &map);
    let carried = Carried { handle, map };
    (Client::new(carried, session, keyspace, rows, nodes), owner)
}

async fn leave(mut client: Client<Carried>, owner: manxdb_rsi::Owner) {
    let Carried { handle, map } = client.carrier_mut();
    handle.leave(owner, map).await;
}

/// Writes in one transaction; whether it is acknowledged.
async fn write(client: &mut Client<Carried>, writes: &Writes) -> Result<(), Failure<Infallible>> {
    let mut rows = client.begin(Isolation::Serializable).await?;
    for (key, value) in writes {
        rows.get(key).await?;
        rows.write(key.clone(), value.clone());
    }
    rows.commit().await?;
    Ok(())
}

/// Writes until a time, or until it does not know what became of something.
async fn work(handle: ClientHandle, notes: Notes, diaries: Diaries, share: u64, until: SimTime) {
    let (mut client, owner) = client(handle, &notes, share).await;
    let mut number = 0;
    while client.carrier_mut().handle.now() < until {
        let random = &mut client.carrier_mut().handle.random;
        let is_promised = random.below(3) == 0;
        number += 1;
        let mut writes = Writes::new();
        for _ in 0..=random.below(3) {
            // Neighbours are others'.
            let key = format!("key {:03} {share:02}", random.below(KEYS)).into_bytes();
            let is_deleted = random.below(4) == 0;
            let value = format!("{share:02} has written {number}").into_bytes();
            writes.insert(key, (!is_deleted).then_some(value));
        }
        let enter = |diaries: &Diaries| {
            let mut diaries = diaries.borrow_mut();
            diaries
                .entry(share)
                .or_default()
                .writes
                .push(writes.clone());
        };
        enter(&diaries);
        match write(&mut client, &writes).await {
            Ok(()) => {}
            Err(failure) if failure.is_conflict() => {
                diaries.borrow_mut().entry(share).or_default().writes.pop();
                continue;
            }
            Err(Failure::NoRoom(room)) => panic!("no room for {room}"),
            Err(Failure::Abort(_)) => return, // nobody hears of it
            Err(Failure::Carrier(never)) => match never {},
        }
        let wait = client.wait().filter(|_| is_promised);
        let Carried { handle, map } = client.carrier_mut();
        if let Some(wait) = wait {
            match handle.try_by(map, wait, 400).await {
                Some(Ok(())) => {
                    let mut diaries = diaries.borrow_mut();
                    let diary = diaries.entry(share).or_default();
                    diary.synced = diary.writes.len();
                }
                Some(Err(_)) => return,
                None => {}
            }
        }
        let pause = handle.random.below(100_000);
        handle.sleep(Nanos(pause)).await;
    }
    leave(client, owner).await;
}

/// All rows, each found under its key.
async fn read(handle: ClientHandle, notes: Notes, share: u64, found: Rc<RefCell<Rows>>) {
    let (mut client, owner) = client(handle, &notes, share).await;
    let mut rows = client.begin(Isolation::Snapshot).await.unwrap();
    let page = rows.scan(Span::all()).await.unwrap();
    assert!(page.windows(2).all(|pair| pair[0].0 < pair[1].0));
    for (key, value) in &page {
        assert_eq!(rows.get(key).await.unwrap().as_ref(), Some(value));
    }
    *found.borrow_mut() = page.into_iter().collect();
    leave(client, owner).await;
}

/// What some transactions have left.
fn after(transactions: &[Writes]) -> Rows {
    let mut rows = Rows::new();
    for (key, value) in transactions.iter().flatten() {
        match value {
            Some(value) => rows.insert(key.clone(), value.clone()),
            None => rows.remove(key),
        };
    }
    rows
}

/// Of each client what it did up to some moment is there, with all that was promised. What is there
/// is all that it has ever done, from now on. How much that is of all, and how much is not.
fn judge(diaries: &Diaries, found: &Rows, seed: u64) -> (u64, u64) {
    let (mut kept, mut lost) = (0, 0);
    for (share, diary) in diaries.borrow_mut().iter_mut() {
        let is_own = |key: &[u8]| key.ends_with(format!(" {share:02}").as_bytes());
        let own = found.iter().filter(|(key, _)| is_own(key));
        let own: Rows = own
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let mut moments = (diary.synced..=diary.writes.len()).rev();
        let moment = moments.find(|moment| after(&diary.writes[..*moment]) == own);
        let moment = moment.unwrap_or_else(|| {
            panic!(
                "seed {seed}: of {:?}, {} synced, {own:?} is left",
                diary.writes, diary.synced
            )
        });
        kept += moment as u64;
        lost += (diary.writes.len() - moment) as u64;
        diary.writes.truncate(moment);
        diary.synced = moment;
    }
    (kept, lost)
}

impl Story {
    fn rows(&mut self, diaries: &Diaries, share: u64, until: SimTime) {
        let (notes, diaries) = (Rc::clone(&self.notes), Rc::clone(diaries));
        let program = |handle| work(handle, notes, diaries, share, until);
        let client = self.rack.program(program);
        self.tellers.push(client);
    }

    /// Reads all rows, and judges.
    fn check(&mut self, diaries: &Diaries, share: u64) -> (u64, u64) {
        let (notes, found) = (Rc::clone(&self.notes), Rc::<RefCell<Rows>>::default());
        let rows = Rc::clone(&found);
        let reader = self.rack.program(|handle| read(handle, notes, share, rows));
        self.finish(&[reader]);
        let rows = found.borrow();
        judge(diaries, &rows, self.seed)
    }
}

/// All power is lost, twice; writes that were there after that, and that were not.
pub fn power(seed: u64, mutant: Option<Mutant>) -> (u64, u64) {
    let mut random = Random::stream(seed, &[41]);
    let cellar = Cellar::new(seed, Snapshot::empty(THREADS));
    // Batches in which many have written the same nodes.
    cellar.pause.set(LEASE.0 / 2);
    let mut story = Story::new(seed, mutant, cellar);
    let diaries = Diaries::default();
    let (mut share, mut all) = (0, (0, 0));
    let mut next = || {
        share += 1;
        share - 1
    };
    for _ in 0..2 {
        let until = story.rack.now() + LEASE * 3 + Nanos(random.below(3 * LEASE.0));
        for _ in 0..CLIENTS {
            story.rows(&diaries, next(), until + LEASE);
        }
        let pause = Nanos(LEASE.0 + random.below(2 * LEASE.0));
        story.rack.run_until(story.rack.now() + pause);
        let dead = story.tellers.remove(0);
        story.rack.kill(dead);
        if random.below(2) == 0 {
            story.succeed();
        }
        if random.below(2) == 0 {
            let server = random.below(SERVERS.into());
            story
                .rack
                .memory
                .lose(manxdb_fabric::ServerId(u16::try_from(server).unwrap()));
        }
        story.rows(&diaries, next(), until + LEASE);
        story.rack.run_until(until);
        story = story.restart(&mut random, mutant);
        let (kept, lost) = story.check(&diaries, next());
        all = (all.0 + kept, all.1 + lost);
    }
    let until = story.rack.now() + LEASE * 2;
    for _ in 0..CLIENTS {
        story.rows(&diaries, next(), until);
    }
    let tellers = std::mem::take(&mut story.tellers);
    story.finish(&tellers);
    story.check(&diaries, next());
    story.close();
    all
}
