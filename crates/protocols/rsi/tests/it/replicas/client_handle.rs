//! Where everything is in the tests' memory, and a client's handle on it.

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use manxdb_core::Random;
use manxdb_fabric::{Address, Operation, OperationOutcome, ServerId};
use manxdb_rsi::mutants::Mutant;
use manxdb_rsi::{
    Carrier, Closed, EpochLog, Layout, Log, Machine, Map, Owner, RegionKind, ReplicatedOp, Session,
    Step, ThreadId, Vector,
};
use manxdb_sim::SimTime;

use crate::common::{LAYOUT, LOG_BYTES};

/// Two may be lost, one after the other.
pub const SERVERS: u16 = 5;
/// Replicas of each region.
pub const REPLICAS: usize = 3;
pub const THREADS: u16 = 12;
/// Bytes of a server.
pub const BYTES: u64 = 1 << 20;
/// Records of a region.
const EACH: u64 = 3;
/// Regions of records.
pub const EXTENTS: u64 = 3;
pub const RECORDS: u64 = EACH * EXTENTS;

/// Where everything is, by the addresses of regions.
#[derive(Clone)]
pub struct Plan {
    pub vector: Vector,
    pub logs: Address,
    pub extents: Vec<Address>,
    /// Words for directories.
    pub entries: Address,
    /// Records with keys.
    pub keyed: Address,
    /// Nodes of a tree, and the rows that it leads to.
    pub nodes: Address,
    pub rows: Address,
    pub epoch_log: EpochLog,
}

impl Plan {
    pub fn record(&self, number: u64) -> Address {
        let extent = self.extents[usize::try_from(number % EXTENTS).unwrap()];
        extent.plus(number / EXTENTS * each(LAYOUT))
    }

    pub fn log(&self, map: &Map, thread: ThreadId) -> Log {
        let at = self.logs.plus(u64::from(thread.number()) * LOG_BYTES);
        map.log(at, LOG_BYTES, 1).unwrap()
    }
}

/// Records under keys of eight bytes.
pub const KEYED: Layout = match Layout::keyed(2, 160, 8) {
    Ok(layout) => layout,
    Err(_) => panic!("a layout"),
};
/// Places for such records.
pub const ROOMS: u64 = 96;

/// Some six keys a node, so that a tree has several levels.
pub const NODES: Layout = match Layout::new(3, 200) {
    Ok(layout) => layout,
    Err(_) => panic!("a layout"),
};
pub const ROWS: Layout = match Layout::new(2, 40) {
    Ok(layout) => layout,
    Err(_) => panic!("a layout"),
};
/// Places for each of both.
pub const PLACES: u64 = 160;

/// Bytes from one record to the next.
pub fn each(layout: Layout) -> u64 {
    (layout.bytes() as u64).next_multiple_of(64)
}

pub fn build(replicas: usize) -> (Map, Plan) {
    let epoch_log = EpochLog::new(64, 64);
    let servers: Vec<_> = (0..SERVERS)
        .map(|number| (ServerId(number), 64 + epoch_log.bytes(), BYTES))
        .collect();
    let mut map = Map::new(&servers, replicas).unwrap();
    let base = Address {
        server: ServerId(0),
        offset: 0,
    };
    let lines = Vector::new(base, THREADS).unwrap().bytes();
    let vector = map.add(RegionKind::Lines, lines).unwrap();
    let logs = map
        .add(RegionKind::Logs, LOG_BYTES * u64::from(THREADS))
        .unwrap();
    let extent = |map: &mut Map| {
        map.add(RegionKind::Records(LAYOUT), EACH * each(LAYOUT))
            .unwrap()
    };
    let extents = (0..EXTENTS).map(|_| extent(&mut map)).collect();
    let entries = map.add(RegionKind::Entries, 8192).unwrap();
    let keyed = map
        .add(RegionKind::Records(KEYED), ROOMS * each(KEYED))
        .unwrap();
    let nodes = map
        .add(RegionKind::Records(NODES), PLACES * each(NODES))
        .unwrap();
    let rows = map
        .add(RegionKind::Records(ROWS), PLACES * each(ROWS))
        .unwrap();
    let plan = Plan {
        vector: Vector::new(vector, THREADS).unwrap(),
        logs,
        extents,
        entries,
        keyed,
        nodes,
        rows,
        epoch_log,
    };
    (map, plan)
}

pub enum Request {
    Ask(Vec<Operation>, u32),
    /// It was shut out, or a server does not answer: looks around under another name.
    BeAGuest,
    /// Wants to go on in an epoch.
    Rejoin(u64),
}

pub enum Answer {
    Outcomes(Vec<OperationOutcome>),
    Joined(Closed),
}

#[derive(Default)]
pub struct Mailbox {
    pub asked: Option<Request>,
    pub answered: Option<Answer>,
    pub now: SimTime,
    /// Batches, and operations in them.
    pub counts: (u64, u64),
}

/// A client's handle on the memory, in one epoch after another.
#[derive(Clone)]
pub struct ClientHandle {
    pub owner: Owner,
    pub map: Arc<Map>,
    pub plan: Plan,
    pub session: Session,
    pub random: Random,
    pub mutant: Option<Mutant>,
    /// How all ended before the epoch that began last, whether the client has heard of it or not.
    pub closed: Rc<RefCell<Vec<Closed>>>,
    pub mailbox: Rc<RefCell<Mailbox>>,
}

impl ClientHandle {
    async fn request(&self, request: Request) -> Answer {
        self.mailbox.borrow_mut().asked = Some(request);
        poll_fn(|_| match self.mailbox.borrow_mut().answered.take() {
            Some(answer) => Poll::Ready(answer),
            None => Poll::Pending,
        })
        .await
    }

    pub async fn run<W: Machine>(&self, work: W) -> W::Output {
        let mut work = ReplicatedOp::new(Arc::clone(&self.map), work).with(self.mutant);
        let mut step = work.step(Vec::new());
        loop {
            let request = match step {
                Step::Done(output) => return output,
                Step::Post(operations) => Request::Ask(operations, 0),
                Step::Backoff(operations, times) => Request::Ask(operations, times),
            };
            let Answer::Outcomes(outcomes) = self.request(request).await else {
                panic!("nobody asked to be let in");
            };
            step = work.step(outcomes);
        }
    }

    /// Waits for the next epoch, and goes on in it; how it ended in the one before.
    pub async fn rejoin(&mut self) -> Closed {
        let mut times = 0;
        let (map, closed) = loop {
            self.request(Request::BeAGuest).await;
            let learn = self.plan.epoch_log.learn((*self.map).clone());
            let map = self.run(Late(learn, times)).await.unwrap();
            times += 1;
            if map.epoch() == self.map.epoch() {
                continue;
            }
            match self.request(Request::Rejoin(map.epoch())).await {
                Answer::Joined(closed) => break (Arc::new(map), closed),
                Answer::Outcomes(_) => {} // it is over already
            }
        };
        assert_eq!(closed.owner, self.owner);
        self.owner.after = closed.by.sequence;
        self.session = session(&self.plan, &map, self.owner, self.mutant);
        self.map = map;
        closed
    }

    pub fn now(&self) -> SimTime {
        self.mailbox.borrow().now
    }

    /// Batches that it asked for, and operations in them.
    pub fn counts(&self) -> (u64, u64) {
        self.mailbox.borrow().counts
    }
}

pub fn session(plan: &Plan, map: &Map, owner: Owner, mutant: Option<Mutant>) -> Session {
    let session = Session::new(owner.thread, plan.vector, owner.after).unwrap();
    let mut session = session.with_log(plan.log(map, owner.thread));
    session.mutant = mutant;
    session
}

/// Operations that are done once.
pub struct Once(pub Vec<Operation>);

impl Machine for Once {
    type Output = ();

    fn advance(&mut self, _: Vec<OperationOutcome>) -> Step<()> {
        match std::mem::take(&mut self.0) {
            operations if operations.is_empty() => Step::Done(()),
            operations => Step::Post(operations),
        }
    }

    fn check(&self) -> Result<(), String> {
        Ok(()) // it has no state but what it is to post
    }
}

/// A machine that is begun after a pause, which grows with the number of attempts.
struct Late<W>(W, u32);

impl<W: Machine> Machine for Late<W> {
    type Output = W::Output;

    fn advance(&mut self, outcomes: Vec<OperationOutcome>) -> Step<Self::Output> {
        match (self.0.step(outcomes), std::mem::take(&mut self.1)) {
            (Step::Post(operations), times) if times > 0 => Step::Backoff(operations, times),
            (step, _) => step,
        }
    }

    fn check(&self) -> Result<(), String> {
        self.0.check()
    }
}

/// A handle that carries work out for others.
pub struct Carried(pub ClientHandle);

impl Carrier for Carried {
    type Error = Infallible;

    async fn run<W: Machine>(&mut self, work: W) -> Result<W::Output, Infallible> {
        Ok(self.0.run(work).await)
    }
}
