//! Clients of simulated memory, as programs that read from top to bottom: each is a future that
//! waits for one batch at a time, and the simulator says whose batch is over.
#![allow(dead_code)] // each test uses some of it

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use manxdb_core::{Nanos, Random};
use manxdb_fabric::{Address, BatchId, Operation, OperationOutcome, ServerId};
use manxdb_rsi::mutants::Mutant;
use manxdb_rsi::rows::Keyspace;
use manxdb_rsi::{
    Abort, Block, Carrier, Change, Committed, Head, Isolation, Layout, Log, LookupResult, Machine,
    RecordAddress, Recover, Release, Seen, Session, Snapshot, Stamp, Step, ThreadId, Tree, Vector,
};
use manxdb_sim::memory::{Happened, Memory, MemoryOptions};

/// Records are in the memory of several servers.
pub const SERVERS: u16 = 2;
/// Longest pause of a client that met another.
const PAUSE: u64 = 20_000;

/// Between a client's program and the memory.
#[derive(Default)]
struct Mailbox {
    asked: Option<(Vec<Operation>, u32)>,
    answered: Option<Vec<OperationOutcome>>,
}

/// A client's handle on the memory.
pub struct ClientHandle {
    pub thread: ThreadId,
    pub session: Session,
    pub random: Random,
    mailbox: Rc<RefCell<Mailbox>>,
}

impl ClientHandle {
    /// Carries a piece of work out.
    pub async fn run<W: Machine>(&self, mut work: W) -> W::Output {
        let mut step = work.step(Vec::new());
        loop {
            let (operations, torn) = match step {
                Step::Done(output) => return output,
                Step::Post(operations) => (operations, 0),
                Step::Backoff(operations, torn) => (operations, torn),
            };
            self.mailbox.borrow_mut().asked = Some((operations, torn));
            let outcomes = poll_fn(|_| match self.mailbox.borrow_mut().answered.take() {
                Some(outcomes) => Poll::Ready(outcomes),
                None => Poll::Pending,
            });
            step = work.step(outcomes.await);
        }
    }

    /// The same as somebody for whom others put pieces of work together.
    pub fn carrier(&self) -> Carried {
        Carried(ClientHandle {
            thread: self.thread,
            session: self.session.clone(),
            random: self.random.clone(),
            mailbox: Rc::clone(&self.mailbox),
        })
    }

    pub async fn begin(&mut self) -> Snapshot {
        let snapshot = self.run(self.session.begin().unwrap()).await.unwrap();
        self.session.saw(&snapshot);
        snapshot
    }

    pub async fn read(&self, snapshot: &Snapshot, at: Address) -> Result<Seen, Abort> {
        self.run(self.session.read(snapshot, at, LAYOUT)).await
    }

    /// Commits changes; what came of it.
    pub async fn try_commit(
        &mut self,
        reads: &[LookupResult],
        changes: Vec<Change>,
        isolation: Isolation,
    ) -> Committed {
        let commit = self.session.commit(reads, changes, isolation)?;
        let committed = self.run(commit).await;
        self.session.ended(&committed);
        committed
    }

    /// Commits changes; whether it did.
    pub async fn commit(
        &mut self,
        reads: &[LookupResult],
        changes: Vec<Change>,
        isolation: Isolation,
    ) -> bool {
        match self.try_commit(reads, changes, isolation).await {
            Ok(_) => true,
            Err(abort) => {
                assert!(can_be_tried_again(abort), "{abort}");
                false
            }
        }
    }
}

/// Whether nothing is wrong but that somebody else was there.
pub fn can_be_tried_again(abort: Abort) -> bool {
    abort.is_conflict()
}

/// A client's handle that carries work out for others.
pub struct Carried(ClientHandle);

impl Carrier for Carried {
    type Error = Infallible;

    async fn run<W: Machine>(&mut self, work: W) -> Result<W::Output, Infallible> {
        Ok(self.0.run(work).await)
    }
}

/// Numbers of eight bytes, and room beyond two lines.
pub const LAYOUT: Layout = match Layout::new(2, 160) {
    Ok(layout) => layout,
    Err(_) => panic!("a layout"),
};

/// A value that fills its slot: a number again and again.
pub fn value(number: u64) -> Vec<u8> {
    number.to_le_bytes().repeat(20)
}

/// The number in a value; 0 if there is none.
pub fn number(seen: &Seen) -> u64 {
    let Some(bytes) = seen.value() else { return 0 };
    let first: [u8; 8] = bytes[..8].try_into().unwrap();
    assert_eq!(*bytes, first.repeat(20), "a value of two times");
    u64::from_le_bytes(first)
}

pub fn change(seen: &Seen, to: u64) -> Change {
    Change {
        seen: seen.clone(),
        value: Some(value(to)),
    }
}

pub fn at(server: u16, offset: u64) -> Address {
    let server = ServerId(server);
    Address { server, offset }
}

/// Where the records are.
pub fn record(place: u64) -> Address {
    let server = u16::try_from(place % u64::from(SERVERS)).unwrap();
    let record = (LAYOUT.bytes() as u64).next_multiple_of(64);
    at(server, 8192 + place / u64::from(SERVERS) * record)
}

/// Rows under keys, with the root where a cluster has nothing.
pub fn keyspace(nodes: Layout, records: Layout) -> Keyspace {
    let root = RecordAddress::new(at(0, 64 << 10)).unwrap();
    let tree = Tree::new(root, nodes).unwrap();
    Keyspace { tree, records }
}

/// Bytes of a log.
pub const LOG_BYTES: u64 = 4096;

/// Where a thread logs: on all servers.
pub fn log(thread: ThreadId) -> Log {
    let places = (0..SERVERS).map(|server| log_place(thread, server));
    Log::new(places.collect(), LOG_BYTES, 1).unwrap()
}

/// Where it logs on one of them.
pub fn log_place(thread: ThreadId, server: u16) -> Address {
    at(server, (512 << 10) + u64::from(thread.number()) * LOG_BYTES)
}

/// The thread that a client is.
pub fn thread_of(client: u64) -> ThreadId {
    ThreadId::new(u16::try_from(client - 1).unwrap()).unwrap()
}

type Program = Pin<Box<dyn Future<Output = ()>>>;

/// Memory with records, and clients that run programs on them.
pub struct TestCluster {
    pub memory: Memory,
    vector: Vector,
    records: u64,
    seed: u64,
    mutant: Option<Mutant>,
    is_logged: bool,
    is_watched: bool,
    mailboxes: BTreeMap<u64, Rc<RefCell<Mailbox>>>,
    programs: BTreeMap<u64, Program>,
    batches: u64,
    random: Random,
}

impl TestCluster {
    pub fn new(seed: u64, threads: u16, records: u64, options: MemoryOptions) -> Self {
        let mut memory = Memory::new(seed, options);
        for server in 0..SERVERS {
            memory.register(ServerId(server), 1 << 20);
        }
        let base = at(0, 0);
        let mut cluster = Self {
            memory,
            vector: Vector::new(base, threads).unwrap(),
            records,
            seed,
            mutant: None,
            is_logged: false,
            is_watched: true,
            mailboxes: BTreeMap::new(),
            programs: BTreeMap::new(),
            batches: 0,
            random: Random::stream(seed, &[0x0070_6175]),
        };
        cluster.format();
        cluster
    }

    pub fn with(mut self, mutant: Option<Mutant>) -> Self {
        self.mutant = mutant;
        self
    }

    /// Sessions log what they install.
    pub fn with_logs(mut self) -> Self {
        self.is_logged = true;
        self
    }

    /// Nobody looks at the records while things happen: what is wrong is for others to find.
    pub fn unwatched(mut self) -> Self {
        self.is_watched = false;
        self
    }

    pub fn vector(&self) -> Vector {
        self.vector
    }

    /// Writes empty records, before anybody looks.
    fn format(&mut self) {
        for place in 0..self.records {
            let empty = Operation::Write {
                at: record(place).plus(8),
                bytes: Block::empty(LAYOUT, 0).into_body(),
            };
            self.memory
                .post(0, BatchId(0), vec![empty], Nanos(0))
                .unwrap();
            while self.memory.step().is_some() {}
        }
    }

    /// Adds a client with its program; its number.
    pub fn client<F>(&mut self, program: impl FnOnce(ClientHandle) -> F) -> u64
    where
        F: Future<Output = ()> + 'static,
    {
        let number = self.mailboxes.len() as u64 + 1;
        let mailbox = Rc::<RefCell<Mailbox>>::default();
        let thread = thread_of(number);
        let mut session = Session::new(thread, self.vector, 0).unwrap();
        session.mutant = self.mutant;
        if self.is_logged {
            session = session.with_log(log(thread));
        }
        let handle = ClientHandle {
            thread,
            session,
            random: Random::stream(self.seed, &[number]),
            mailbox: Rc::clone(&mailbox),
        };
        self.mailboxes.insert(number, mailbox);
        self.programs.insert(number, Box::pin(program(handle)));
        number
    }

    /// A client dies, with whatever it has under way.
    pub fn kill(&mut self, client: u64) {
        self.memory.kill(client);
        self.programs.remove(&client);
    }

    /// A client is shut out of all memory; its program goes on.
    pub fn fence(&mut self, client: u64) {
        self.memory.fence(client);
    }

    /// Recovers a thread whose client is dead, while nobody else does anything; its last version, with
    /// which its locks may be taken away.
    pub fn recovered(&mut self, thread: ThreadId) -> Stamp {
        let last = Rc::new(Cell::new(Stamp::NOTHING));
        let (closing, vector) = (Rc::clone(&last), self.vector);
        self.client(move |handle| async move {
            let recover = Recover::new(thread, vector, log(thread));
            closing.set(handle.run(recover).await.unwrap().last);
        });
        self.run();
        last.get()
    }

    /// Goes on for dead clients, and lets go of their other locks.
    pub fn recover(&mut self, dead: &[u64]) {
        for client in dead {
            let thread = thread_of(*client);
            let vector = self.vector;
            let owners = self.owners();
            let own = owners.into_iter().filter(|(_, owner)| *owner == thread);
            let places: Vec<u64> = own.map(|(place, _)| place).collect();
            self.client(move |handle| async move {
                let recover = Recover::new(thread, vector, log(thread));
                let last = handle.run(recover).await.unwrap().last;
                for place in places {
                    let release = Release::new(record(place), LAYOUT, last);
                    handle.run(release).await.unwrap(); // false: it is installed
                }
            });
            self.run();
        }
        assert_eq!(self.owners(), [], "locks of the dead");
    }

    /// Shuts a dead client out, as whoever goes on for it does first, and goes on for it while others are
    /// at work; whether that has come to its end.
    pub fn go_on_for(&mut self, dead: u64) -> Rc<Cell<bool>> {
        self.fence(dead);
        let (thread, vector) = (thread_of(dead), self.vector);
        let done = Rc::<Cell<bool>>::default();
        let is_done = Rc::clone(&done);
        let number = self.client(move |handle| async move {
            let recover = Recover::new(thread, vector, log(thread));
            handle.run(recover).await.unwrap();
            done.set(true);
        });
        self.poll(number);
        is_done
    }

    /// Lets one client ask for the first time, while others are at work.
    pub fn begin(&mut self, client: u64) {
        self.poll(client);
    }

    /// The owners of locks.
    pub fn owners(&self) -> Vec<(u64, ThreadId)> {
        let owner = |place| {
            let word = self.memory.look(record(place), 8).try_into().unwrap();
            match Head::of_word(u64::from_le_bytes(word)) {
                Head::Locked(holder) => Some((place, holder.thread)),
                Head::Free(_) => None,
            }
        };
        (0..self.records).filter_map(owner).collect()
    }

    /// Runs all programs to their ends.
    pub fn run(&mut self) {
        self.start();
        while self.step() {}
        assert!(self.programs.is_empty(), "clients wait for ever");
    }

    /// Lets programs ask for the first time.
    pub fn start(&mut self) {
        for client in self.programs.keys().copied().collect::<Vec<_>>() {
            self.poll(client);
        }
    }

    /// One event; whether there was one.
    pub fn step(&mut self) -> bool {
        let Some(happened) = self.memory.step() else {
            return false;
        };
        if let Happened::Completed(client, completion) = happened {
            self.mailboxes[&client].borrow_mut().answered = Some(completion.outcomes);
            self.poll(client);
        }
        if self.is_watched {
            self.check();
        }
        true
    }

    fn poll(&mut self, client: u64) {
        let Some(program) = self.programs.get_mut(&client) else {
            return;
        };
        let mut context = Context::from_waker(Waker::noop());
        if program.as_mut().poll(&mut context).is_ready() {
            self.programs.remove(&client);
            return;
        }
        let asked = self.mailboxes[&client].borrow_mut().asked.take();
        let Some((operations, torn)) = asked else {
            return; // it has asked before, and waits
        };
        self.batches += 1;
        assert!(
            self.batches < 100_000,
            "seed {}: client {client} gets nothing done with {operations:?}",
            self.seed
        );
        let pause = match torn {
            0 => 0,
            torn => self.random.below(PAUSE.min(1_000 << torn.min(10))),
        };
        let batch = BatchId(self.batches);
        self.memory
            .post(client, batch, operations, Nanos(pause))
            .unwrap();
    }

    /// An unlocked record is whole, and its head is the newest version's (I1).
    fn check(&self) {
        for place in 0..self.records {
            let copy = self.memory.look(record(place), LAYOUT.bytes() as u64);
            let head = Head::of_word(u64::from_le_bytes(copy[..8].try_into().unwrap()));
            if let Head::Free(stamp) = head {
                let parsed = Block::parse(LAYOUT, copy);
                let (_, block) = parsed.unwrap_or_else(|_| {
                    panic!("seed {}: record {place} is unlocked and torn", self.seed)
                });
                assert_eq!(block.newest(), stamp);
            }
        }
    }
}

/// Looks among so many seeds for one with which a planted defect makes its scenario fail, for each of
/// the defects. The seed beside a defect is where it was found when this was written, and is the first
/// one that is tried: what comes before it is slow, and shows nothing.
#[allow(clippy::print_stdout)] // which seed it was is worth knowing
pub fn each_is_found<S>(cases: &[(Mutant, u64, S)], seeds: u64, run: impl Fn(&S, u64, Mutant)) {
    let mut missed = Vec::new();
    for (mutant, known, scenario) in cases {
        assert!(
            *known < seeds,
            "{mutant:?}: seed {known} is not among {seeds}"
        );
        let is_found = |seed: &u64| {
            let run = || run(scenario, *seed, *mutant);
            catch_unwind(AssertUnwindSafe(run)).is_err()
        };
        let seed = (*known..seeds).chain(0..*known).find(is_found);
        println!("{mutant:?}: seed {seed:?}");
        if seed.is_none() {
            missed.push(*mutant);
        }
    }
    assert_eq!(missed, [], "not found");
}

/// What is read and is not there can be relied on: two who rely on it both succeed, as `both` says of a
/// seed, under snapshot isolation; not under serializable; and again where nobody validates.
pub fn absence_is_relied_on(seeds: u64, both: impl Fn(u64, Isolation, Option<Mutant>) -> bool) {
    let count = |isolation, mutant| {
        (0..seeds)
            .filter(|seed| both(*seed, isolation, mutant))
            .count()
    };
    assert!(count(Isolation::Snapshot, None) > 0, "this test is blind");
    assert_eq!(count(Isolation::Serializable, None), 0);
    let mutant = Some(Mutant::NeverValidates);
    assert!(
        count(Isolation::Serializable, mutant) > 0,
        "a defect is not found"
    );
}
