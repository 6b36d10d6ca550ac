//! A rack in virtual time whose memory is replicated: servers that are lost, or only taken for
//! lost, and clients that act under names of their epochs. The cluster does what recovery coordinators do: it
//! agrees on the next map, has everybody shut out, has all restored, and lets those in who live.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Waker};

use manxdb_core::{Nanos, Random};
use manxdb_fabric::{Address, BatchId, Operation, ServerId};
use manxdb_rsi::mutants::Mutant;
use manxdb_rsi::{
    Block, Closed, Event, Head, Machine, Map, Owner, Recover, Refill, Restore, Snapshot, Stamp,
    Step, ThreadId,
};
use manxdb_sim::memory::{Happened, Memory, MemoryOptions};

use crate::common::LAYOUT;
use crate::replicas::client_handle::{
    Answer, BYTES, ClientHandle, Mailbox, Once, Plan, RECORDS, Request, SERVERS, THREADS, build,
    session,
};

type Program = Pin<Box<dyn Future<Output = ()>>>;

struct Client {
    mailbox: Rc<RefCell<Mailbox>>,
    program: Option<Program>,
    owner: Owner,
    /// What servers know it as.
    name: u64,
}

pub struct TestCluster {
    pub memory: Memory,
    pub map: Arc<Map>,
    pub plan: Plan,
    pub mutant: Option<Mutant>,
    seed: u64,
    clients: BTreeMap<u64, Client>,
    /// Of the last loss.
    closed: Rc<RefCell<Vec<Closed>>>,
    random: Random,
    batches: u64,
    names: u64,
    /// Dead clients that somebody goes on for, and their closings when that is done.
    reaped: Vec<(u64, Rc<Cell<Option<Stamp>>>)>,
    /// The next event is decided, and is a loss.
    is_ending: bool,
    /// Names that are not shut out.
    let_in: Vec<u64>,
}

impl TestCluster {
    pub fn new(seed: u64, replicas: usize) -> Self {
        Self::slow(seed, replicas, MemoryOptions::default().slow_one_in)
    }

    /// One operation in so many is slow.
    pub fn slow(seed: u64, replicas: usize, slow_one_in: u64) -> Self {
        let options = MemoryOptions {
            slow_one_in,
            ..MemoryOptions::default()
        };
        let mut memory = Memory::new(seed, options);
        for server in 0..SERVERS {
            memory.register(ServerId(server), BYTES);
        }
        let (map, plan) = build(replicas);
        let mut cluster = Self {
            memory,
            map: Arc::new(map),
            plan,
            mutant: None,
            seed,
            clients: BTreeMap::new(),
            closed: Rc::default(),
            random: Random::stream(seed, &[0x0068_6f75]),
            batches: 0,
            names: 0,
            reaped: Vec::new(),
            is_ending: false,
            let_in: Vec::new(),
        };
        cluster.format();
        cluster
    }

    /// Writes empty records, before anybody looks.
    fn format(&mut self) {
        let body = Block::empty(LAYOUT, 0).into_body();
        for number in 0..RECORDS {
            for at in self.replicas(self.plan.record(number)) {
                let empty = Operation::Write {
                    at: at.plus(8),
                    bytes: body.clone(),
                };
                let empty = vec![empty];
                self.memory.post(0, BatchId(0), empty, Nanos(0)).unwrap();
                while self.memory.step().is_some() {}
            }
        }
    }

    /// Where whole replicas have something.
    pub fn replicas(&self, at: Address) -> Vec<Address> {
        let region = &self.map.regions()[usize::from(at.server.0 - Map::FIRST)];
        let whole = region.replicas().iter().filter(|replica| replica.is_whole);
        whole.map(|replica| replica.at.plus(at.offset)).collect()
    }

    fn name(&mut self) -> u64 {
        self.names += 1;
        self.let_in.push(self.names);
        self.names
    }

    /// Adds a client with its program; its number, which is its thread's and one more.
    pub fn client<F>(&mut self, program: impl FnOnce(ClientHandle) -> F) -> u64
    where
        F: Future<Output = ()> + 'static,
    {
        let number = self.clients.len() as u64 + 1;
        let thread = ThreadId::new(u16::try_from(number - 1).unwrap()).unwrap();
        let owner = Owner { thread, after: 0 };
        self.enter(number, owner, program);
        number
    }

    fn enter<F>(&mut self, number: u64, owner: Owner, program: impl FnOnce(ClientHandle) -> F)
    where
        F: Future<Output = ()> + 'static,
    {
        let mailbox = Rc::<RefCell<Mailbox>>::default();
        let handle = ClientHandle {
            owner,
            map: Arc::clone(&self.map),
            plan: self.plan.clone(),
            session: session(&self.plan, &self.map, owner, self.mutant),
            random: Random::stream(self.seed, &[number]),
            mutant: self.mutant,
            closed: Rc::clone(&self.closed),
            mailbox: Rc::clone(&mailbox),
        };
        let name = self.name();
        let client = Client {
            mailbox,
            program: Some(Box::pin(program(handle))),
            owner,
            name,
        };
        self.clients.insert(number, client);
        self.poll(number);
    }

    /// A client dies, with whatever it has under way. Its place stays taken.
    pub fn kill(&mut self, number: u64) {
        let client = self.clients.get_mut(&number).unwrap();
        client.program = None;
        self.memory.kill(client.name);
    }

    pub fn is_at_work(&self, number: u64) -> bool {
        let client = self.clients.get(&number);
        client.is_some_and(|client| client.program.is_some())
    }

    pub fn is_quiet(&self) -> bool {
        self.clients.values().all(|client| client.program.is_none())
    }

    /// One event; whether there was one.
    pub fn step(&mut self) -> bool {
        let Some(happened) = self.memory.step() else {
            return false;
        };
        self.deliver(happened);
        true
    }

    /// Tells a client what came of what it asked for, if it is anybody's.
    fn deliver(&mut self, happened: Happened) {
        let Happened::Completed(name, completion) = happened else {
            return;
        };
        let mut clients = self.clients.iter();
        let own = clients.find(|(_, client)| client.name == name);
        if let Some(number) = own.map(|(number, _)| *number) {
            self.answer(number, Answer::Outcomes(completion.outcomes));
        }
    }

    pub fn steps(&mut self, count: u64) {
        for _ in 0..count {
            self.step();
        }
    }

    /// Runs programs to their ends.
    pub fn run(&mut self) {
        while self.step() {}
        assert!(self.is_quiet(), "seed {}: clients wait for ever", self.seed);
    }

    fn answer(&mut self, number: u64, answer: Answer) {
        let client = self.clients.get_mut(&number).unwrap();
        client.mailbox.borrow_mut().answered = Some(answer);
        self.poll(number);
    }

    fn poll(&mut self, number: u64) {
        let now = self.memory.now();
        let client = self.clients.get_mut(&number).unwrap();
        client.mailbox.borrow_mut().now = now;
        let Some(program) = &mut client.program else {
            return;
        };
        let mut context = Context::from_waker(Waker::noop());
        if program.as_mut().poll(&mut context).is_ready() {
            client.program = None;
            return;
        }
        let asked = client.mailbox.borrow_mut().asked.take();
        match asked {
            Some(Request::Ask(operations, times)) => {
                let count = operations.len() as u64;
                let mut mailbox = client.mailbox.borrow_mut();
                mailbox.counts = (mailbox.counts.0 + 1, mailbox.counts.1 + count);
                drop(mailbox);
                let name = client.name;
                self.post(name, operations, times);
            }
            Some(Request::BeAGuest) => {
                self.names += 1;
                client.name = self.names;
                self.answer(number, Answer::Outcomes(Vec::new()));
            }
            Some(Request::Rejoin(epoch)) => self.let_in(number, epoch),
            None => {} // it has asked before, and waits
        }
    }

    fn post(&mut self, name: u64, operations: Vec<Operation>, times: u32) {
        self.batches += 1;
        assert!(
            self.batches < 200_000,
            "seed {}: nothing gets done with {operations:?}",
            self.seed
        );
        let pause = match times {
            0 => 0,
            times => self.random.below(20_000.min(1_000 << times.min(10))),
        };
        let batch = BatchId(self.batches);
        let posted = self.memory.post(name, batch, operations, Nanos(pause));
        posted.unwrap();
    }

    /// A client goes on in an epoch, if that is the present one and its end is not decided yet: whom
    /// nobody has seen nobody shuts out.
    fn let_in(&mut self, number: u64, epoch: u64) {
        if epoch < self.map.epoch() || self.is_ending {
            return self.answer(number, Answer::Outcomes(Vec::new()));
        }
        let name = self.name();
        let all = self.closed.borrow().clone();
        let client = self.clients.get_mut(&number).unwrap();
        let closed = *all
            .iter()
            .find(|closed| closed.owner == client.owner)
            .unwrap();
        client.name = name;
        client.owner.after = closed.by.sequence;
        self.answer(number, Answer::Joined(closed));
    }

    /// A server is lost, or only taken for lost and reached by some; the next epoch begins. Who
    /// restores dies after so many events, and is followed by another.
    pub fn lose(&mut self, server: ServerId, is_gone: bool, cut: Option<u64>) {
        if is_gone {
            self.memory.lose(server);
        }
        let pause = self.random.below(40);
        self.steps(pause);
        let event = self.agree(Event::Lost(server));
        self.is_ending = true;
        let map = Arc::new(self.map.after(event));
        let is_shut = self.mutant != Some(Mutant::AcceptsTheStale);
        for other in map.servers().filter(|_| is_shut) {
            for name in &self.let_in {
                self.memory.fence_at(*name, other);
            }
            let pause = self.random.below(10);
            self.steps(pause);
        }
        self.let_in.clear();
        if let Some(events) = cut {
            self.restore(&map, Some(events));
        }
        let closed = self.restore(&map, None).unwrap();
        *self.closed.borrow_mut() = closed;
        self.note_down(event);
        // The places of the dead are nobody's; what they were is closed.
        let ended = self.clients.values_mut();
        for client in ended.filter(|client| client.program.is_none()) {
            let closed = self.closed.borrow();
            let mut closed = closed.iter();
            if let Some(closed) = closed.find(|closed| closed.owner == client.owner) {
                client.owner.after = closed.by.sequence;
            }
        }
    }

    /// Two propose the same, of whom one dies over it.
    fn agree(&mut self, event: Event) -> Event {
        let propose = self.plan.epoch_log.propose(&self.map, event).unwrap();
        let events = self.random.below(20);
        self.serve(&mut propose.clone(), Some(events));
        let agreed = self.serve(&mut propose.clone(), None);
        assert_eq!(agreed, Some(Ok(event)));
        event
    }

    fn restore(&mut self, map: &Arc<Map>, cut: Option<u64>) -> Option<Vec<Closed>> {
        let threads = (0..THREADS).filter_map(ThreadId::new);
        let logs = threads.map(|thread| self.plan.log(map, thread)).collect();
        for (number, last) in &self.reaped {
            if let (Some(client), Some(last)) = (self.clients.get_mut(number), last.take()) {
                client.owner.after = last.sequence;
            }
        }
        let owners = self.clients.values().map(|client| client.owner).collect();
        let work = Restore::new(Arc::clone(map), self.plan.vector, logs, owners);
        let mut work = work.with(self.mutant);
        let closed = self.serve(&mut work, cut)?;
        Some(closed.unwrap())
    }

    /// Somebody without a place does a piece of work; none: it dies after so many events.
    fn serve<W: Machine>(&mut self, work: &mut W, cut: Option<u64>) -> Option<W::Output> {
        let name = self.name();
        let mut step = work.step(Vec::new());
        let mut left = cut;
        loop {
            let (operations, times) = match step {
                Step::Done(output) => {
                    self.let_in.retain(|other| *other != name);
                    return Some(output);
                }
                Step::Post(operations) => (operations, 0),
                Step::Backoff(operations, times) => (operations, times),
            };
            self.post(name, operations, times);
            let batch = BatchId(self.batches);
            let outcomes = loop {
                if left == Some(0) {
                    self.memory.kill(name);
                    self.memory.fence(name);
                    self.let_in.retain(|other| *other != name);
                    return None;
                }
                left = left.map(|left| left - 1);
                match self.memory.step().unwrap() {
                    Happened::Completed(_, completion) if completion.batch == batch => {
                        break completion.outcomes;
                    }
                    happened => self.deliver(happened),
                }
            };
            step = work.step(outcomes);
        }
    }

    /// The map with an event is the present one, for all who ask.
    fn note_down(&mut self, event: Event) {
        let writes = self.plan.epoch_log.write(&self.map, event);
        self.map = Arc::new(self.map.after(event));
        self.is_ending = false;
        self.serve(&mut Once(writes), None);
    }

    /// A client copies what new replicas lack; what it has done is noted.
    pub fn refill(&mut self) -> Refilled {
        let done = Refilled::default();
        let notes = Rc::clone(&done);
        self.client(move |mut handle| async move {
            // A new place begins behind a snapshot that is closed already.
            let mut region = 0;
            while region < handle.map.regions().len() {
                let Ok(snapshot) = handle.run(handle.session.begin().unwrap()).await else {
                    return;
                };
                handle.session.saw(&snapshot);
                let (map, stamp) = (Arc::clone(&handle.map), handle.session.holder());
                let work = Refill::new(map, region, stamp, snapshot).with(handle.mutant);
                if handle.run(work).await.is_err() {
                    return;
                }
                notes.borrow_mut().push(region);
                region += 1;
            }
        });
        done
    }

    /// Regions whose replicas are whole by now.
    pub fn note(&mut self, refilled: &Refilled) {
        loop {
            let Some(region) = refilled.borrow_mut().pop() else {
                return;
            };
            let event = Event::Filled(u16::try_from(region).unwrap());
            let event = self.agree(event);
            self.note_down(event);
        }
    }

    /// A client of which the vector's primary says more than its backups, while another one writes
    /// over what it has written into a record.
    pub fn ahead(&self, number: u64) -> Option<u64> {
        let vector = self.plan.vector;
        let look = |at| vector.parse(&self.memory.look(at, vector.bytes())).0;
        let base = Address {
            server: ServerId(Map::FIRST),
            offset: 0,
        };
        let snapshots: Vec<Snapshot> = self.replicas(base).into_iter().map(look).collect();
        let (first, backups) = snapshots.split_first().unwrap();
        let head = self
            .memory
            .look(self.replicas(self.plan.record(number))[1], 8);
        let head = Head::of_word(u64::from_le_bytes(*head.first_chunk().unwrap()));
        let Head::Free(stamp) = head else {
            return None;
        };
        // The record's backup has it already; its writer is not published, one before it is at the
        // vector's primary alone.
        let is_ahead = |thread: &ThreadId| {
            let is_less = |backup: &Snapshot| backup.of(*thread) < first.of(*thread);
            *thread != stamp.thread && backups.iter().all(is_less)
        };
        let mut threads = (0..THREADS).filter_map(ThreadId::new);
        let thread = threads.find(|thread| !first.admits(stamp) && is_ahead(thread))?;
        Some(u64::from(thread.number()) + 1)
    }

    /// A dead client is shut out, and somebody goes on for it in the same epoch.
    pub fn reap(&mut self, number: u64) {
        let client = &self.clients[&number];
        let (owner, name) = (client.owner, client.name);
        self.memory.fence(name);
        let last = Rc::<Cell<Option<Stamp>>>::default();
        let noted = Rc::clone(&last);
        let vector = self.plan.vector;
        self.client(move |handle| async move {
            let log = handle.plan.log(&handle.map, owner.thread);
            let recovered = handle.run(Recover::new(owner.thread, vector, log)).await;
            noted.set(recovered.ok().map(|recovered| recovered.last));
        });
        self.reaped.push((number, last));
    }

    /// What every whole replica of a record says: the same version with the same value.
    pub fn newest(&self, number: u64) -> (Stamp, u64) {
        let replicas = self.replicas(self.plan.record(number)).into_iter();
        let newest = replicas.map(|at| {
            let mut copy = self.memory.look(at, LAYOUT.bytes() as u64);
            let head = Head::of_word(u64::from_le_bytes(*copy.first_chunk().unwrap()));
            if let Head::Locked(_) = head {
                // Of somebody who is dead; what is under it is whole.
                let label = copy[16..24].to_vec();
                copy[..8].copy_from_slice(&label);
            }
            let (_, block) = Block::parse(LAYOUT, copy)
                .unwrap_or_else(|_| panic!("seed {}: record {number} at {at}", self.seed));
            let version = block.visible(|_| true).unwrap().unwrap();
            let value = version
                .value
                .map_or(0, |value| u64::from_le_bytes(*value.first_chunk().unwrap()));
            (version.stamp, value)
        });
        let newest: Vec<(Stamp, u64)> = newest.collect();
        let is_same = newest.windows(2).all(|pair| pair[0] == pair[1]);
        assert!(is_same, "seed {}: record {number} is {newest:?}", self.seed);
        newest[0]
    }
}

/// Regions that were copied.
pub type Refilled = Rc<RefCell<Vec<usize>>>;
