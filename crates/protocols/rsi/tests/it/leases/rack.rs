//! A rack in virtual time: memory, processes that take places and lose them, recovery coordinators; and what can
//! happen to them. Each process has a clock of its own, may stand still, and may die; whatever it
//! has asked for may arrive late.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use manxdb_core::{LocalTime, Nanos, Random};
use manxdb_fabric::{BatchId, Operation, OperationOutcome, ServerId};
use manxdb_rsi::mutants::Mutant;
use manxdb_rsi::{
    Block, Chart, ClientSlots, Lease, Machine, MembershipAction, MembershipEvent, Name, Owner,
    RecoveryCoordinator, Step, ThreadId, Vector, Ward,
};
use manxdb_sim::SimTime;
use manxdb_sim::memory::{Happened, Memory, MemoryOptions};

use crate::common::{LAYOUT, SERVERS, log, record};
use crate::leases::watch::{SEATS, VECTOR, Watch, place};

/// Fewer than those who come one after another, so that places are given out again.
pub const THREADS: u16 = 6;
/// How long a lease is.
pub const LEASE: Nanos = Nanos::from_millis(2);
/// Longest wait for the servers to shut somebody out.
const SHUTTING: u64 = 20_000;

pub type Pid = u64;

/// Between a program and the rack.
#[derive(Default)]
struct Mailbox {
    asked: Option<Request>,
    answered: Option<Vec<OperationOutcome>>,
    now: SimTime,
}

/// What a program wants.
enum Request {
    Ask(Vec<Operation>, u32),
    Sleep(Nanos),
    /// It is somebody else from now on; an owner keeps its lease.
    Become(Name),
    /// It leaves its place.
    Leave,
}

/// A program's handle on the rack.
pub struct ClientHandle {
    pub random: Random,
    pub client_slots: ClientSlots,
    pub vector: Vector,
    mailbox: Rc<RefCell<Mailbox>>,
}

impl ClientHandle {
    async fn request(&self, request: Request) -> Vec<OperationOutcome> {
        self.mailbox.borrow_mut().asked = Some(request);
        poll_fn(|_| match self.mailbox.borrow_mut().answered.take() {
            Some(outcomes) => Poll::Ready(outcomes),
            None => Poll::Pending,
        })
        .await
    }

    pub async fn run<W: Machine>(&self, mut work: W) -> W::Output {
        let mut step = work.step(Vec::new());
        loop {
            let request = match step {
                Step::Done(output) => return output,
                Step::Post(operations) => Request::Ask(operations, 0),
                Step::Backoff(operations, times) => Request::Ask(operations, times),
            };
            step = work.step(self.request(request).await);
        }
    }

    pub async fn sleep(&self, span: Nanos) {
        self.request(Request::Sleep(span)).await;
    }

    pub async fn own(&self, owner: Owner) {
        self.request(Request::Become(Name::Owner(owner))).await;
    }

    pub async fn leave(&self) {
        self.request(Request::Leave).await;
    }

    /// A number of its own, for as long as it has no place.
    pub async fn be_a_guest(&mut self) {
        let guest = Name::Guest(self.random.next_bits() >> 16);
        self.request(Request::Become(guest)).await;
    }

    pub fn now(&self) -> SimTime {
        self.mailbox.borrow().now
    }
}

type Program = Pin<Box<dyn Future<Output = ()>>>;

enum Role {
    Program(Rc<RefCell<Mailbox>>, Program),
    RecoveryCoordinator(Box<RecoveryCoordinator>),
    /// It has come to its end.
    Nothing,
}

struct Process {
    role: Role,
    name: Name,
    /// All that it has been.
    names: Vec<Name>,
    lease: Option<Lease>,
    /// Its clock is ahead by so much.
    ahead: u64,
    still_until: SimTime,
}

enum Alarm {
    /// A process goes on with what came of its operations.
    Deliver(Pid, Vec<OperationOutcome>),
    Beat(Pid, Name),
    /// The servers have shut somebody out, and tell a recovery coordinator.
    Shut(Pid, Vec<Name>),
    Check(Owner),
}

/// What a run is like.
#[derive(Clone, Copy, Default)]
pub struct Plan {
    /// Whoever dies is to be recovered within two leases.
    pub is_prompt: bool,
    pub mutant: Option<Mutant>,
}

pub struct Rack {
    pub memory: Memory,
    pub watch: Watch,
    /// One operation in this many is under way for up to two leases; 0: none.
    pub late_one_in: u64,
    plan: Plan,
    random: Random,
    client_slots: ClientSlots,
    vector: Vector,
    processes: BTreeMap<Pid, Process>,
    agenda: BTreeMap<(SimTime, u64), Alarm>,
    alarms: u64,
    /// Who asked for a batch; none: a beat, of which nobody waits to hear.
    batches: BTreeMap<u64, Option<Pid>>,
    asked: u64,
    next_pid: Pid,
    /// Recovery coordinators that ended because others lead.
    pub deposed: u64,
}

impl Rack {
    pub fn new(seed: u64, records: u64, plan: Plan) -> Self {
        let mut memory = Memory::new(seed, MemoryOptions::default());
        for server in 0..SERVERS {
            memory.register(ServerId(server), 1 << 20);
        }
        let client_slots = ClientSlots::new(place(SEATS), THREADS);
        let vector = Vector::new(place(VECTOR), THREADS).unwrap();
        for number in 0..records {
            let empty = Operation::Write {
                at: record(number).plus(8),
                bytes: Block::empty(LAYOUT, 0).into_body(),
            };
            memory.post(0, BatchId(0), vec![empty], Nanos(0)).unwrap();
            while memory.step().is_some() {}
        }
        Self {
            memory,
            watch: Watch::new(client_slots, vector, records),
            late_one_in: 0,
            plan,
            random: Random::stream(seed, &[0x7261]),
            client_slots,
            vector,
            processes: BTreeMap::new(),
            agenda: BTreeMap::new(),
            alarms: 0,
            batches: BTreeMap::new(),
            asked: 0,
            next_pid: 1,
            deposed: 0,
        }
    }

    pub fn now(&self) -> SimTime {
        self.memory.now()
    }

    fn enter(&mut self, role: Role) -> Pid {
        let pid = self.next_pid;
        self.next_pid += 1;
        let guest = Name::Guest(pid);
        let process = Process {
            role,
            name: guest,
            names: vec![guest],
            lease: None,
            ahead: self.random.below(100 * LEASE.0),
            still_until: SimTime::ZERO,
        };
        self.processes.insert(pid, process);
        pid
    }

    /// A process with a program.
    pub fn program<F>(&mut self, seed: u64, program: impl FnOnce(ClientHandle) -> F) -> Pid
    where
        F: Future<Output = ()> + 'static,
    {
        let mailbox = Rc::<RefCell<Mailbox>>::default();
        let handle = ClientHandle {
            random: Random::stream(seed, &[self.next_pid]),
            client_slots: self.client_slots,
            vector: self.vector,
            mailbox: Rc::clone(&mailbox),
        };
        let pid = self.enter(Role::Program(mailbox, Box::pin(program(handle))));
        self.poll(pid);
        pid
    }

    pub fn coordinator(&mut self) -> Pid {
        let logs = (0..THREADS).map(|number| log(ThreadId::new(number).unwrap()));
        let ward = Ward {
            client_slots: self.client_slots,
            vector: self.vector,
            logs: logs.collect(),
            lease: LEASE,
            chart: Chart::fixed(),
        };
        let coordinator = RecoveryCoordinator::new(ward).with(self.plan.mutant);
        let pid = self.enter(Role::RecoveryCoordinator(Box::new(coordinator)));
        self.tend(pid, MembershipEvent::Done);
        pid
    }

    /// A process dies; what it has under way arrives in part.
    pub fn kill(&mut self, pid: Pid) {
        let Some(process) = self.processes.remove(&pid) else {
            return;
        };
        for name in &process.names {
            self.memory.kill(name.client());
        }
        if let (Some(_), Name::Owner(owner)) = (process.lease, process.name) {
            self.watch.excuse(owner);
            self.watch.died.insert(owner, self.now());
            let due = self.now() + LEASE * 2;
            if self.plan.is_prompt {
                self.at(due, Alarm::Check(owner));
            }
        }
    }

    /// A process stands still for so long; what it has under way goes on.
    pub fn still(&mut self, pid: Pid, span: Nanos) {
        let until = self.now() + span;
        if let Some(process) = self.processes.get_mut(&pid) {
            process.still_until = process.still_until.max(until);
            if let Name::Owner(owner) = process.name {
                self.watch.excuse(owner);
            }
        }
    }

    /// A process that holds a lock now.
    pub fn holder(&self) -> Option<Pid> {
        let locks = self.watch.locks(&self.memory);
        let holds = |process: &Process| match process.name {
            Name::Owner(owner) => locks
                .iter()
                .any(|lock| lock.thread == owner.thread && lock.sequence > owner.after),
            _ => false,
        };
        let mut processes = self.processes.iter();
        processes
            .find(|(_, process)| holds(process))
            .map(|(pid, _)| *pid)
    }

    /// The recovery coordinator that leads, if one does.
    pub fn leader(&self) -> Option<Pid> {
        let leads = |process: &Process| match &process.role {
            Role::RecoveryCoordinator(coordinator) => coordinator.term(),
            _ => None,
        };
        let terms = self.processes.iter();
        let terms = terms.filter_map(|(pid, process)| Some((leads(process)?, *pid)));
        terms.max().map(|(_, pid)| pid)
    }

    /// Whether a process has not come to its end.
    pub fn is_at_work(&self, pid: Pid) -> bool {
        let process = self.processes.get(&pid);
        process.is_some_and(|process| !matches!(process.role, Role::Nothing))
    }

    fn at(&mut self, time: SimTime, alarm: Alarm) {
        self.alarms += 1;
        self.agenda.insert((time, self.alarms), alarm);
    }

    fn after(&mut self, span: Nanos, alarm: Alarm) {
        self.at(self.now() + span, alarm);
    }

    /// Runs until programs are at their ends and the dead are reaped; at most for so long.
    pub fn settle(&mut self, span: Nanos) {
        let end = self.now() + span;
        let is_program = |process: &Process| matches!(process.role, Role::Program(..));
        while self.now() < end && self.processes.values().any(is_program) {
            self.run_until(self.now() + LEASE);
        }
        assert!(self.now() < end, "programs do not come to their ends");
        self.run_until(self.now() + LEASE * 4);
    }

    /// Runs to a time.
    pub fn run_until(&mut self, end: SimTime) {
        loop {
            let event = self.memory.next_time();
            let alarm = self.agenda.first_key_value().map(|((time, _), _)| *time);
            let is_alarm = alarm.is_some_and(|alarm| event.is_none_or(|event| alarm <= event));
            let next = if is_alarm { alarm } else { event };
            if next.is_none_or(|next| next > end) {
                self.memory.wait_until(end);
                return;
            }
            if is_alarm {
                let ((time, _), alarm) = self.agenda.pop_first().unwrap();
                self.memory.wait_until(time);
                self.ring(alarm);
            } else if let Some(Happened::Completed(_, completion)) = self.memory.step() {
                let pid = self.batches.remove(&completion.batch.0).flatten();
                if let Some(pid) = pid {
                    self.deliver(pid, completion.outcomes);
                }
            }
            self.watch.look(&self.memory);
        }
    }

    fn ring(&mut self, alarm: Alarm) {
        match alarm {
            Alarm::Deliver(pid, outcomes) => self.deliver(pid, outcomes),
            Alarm::Beat(pid, name) => self.beat(pid, name),
            Alarm::Shut(pid, names) => {
                for name in names {
                    self.memory.fence(name.client());
                }
                self.deliver(pid, Vec::new());
            }
            Alarm::Check(owner) => self.watch.check_recovered(&self.memory, owner),
        }
    }

    /// Tells a process what came of what it asked for, when it does not stand still.
    fn deliver(&mut self, pid: Pid, outcomes: Vec<OperationOutcome>) {
        let now = self.now();
        let Some(process) = self.processes.get(&pid) else {
            return;
        };
        if process.still_until > now {
            return self.at(process.still_until, Alarm::Deliver(pid, outcomes));
        }
        match &process.role {
            Role::Program(mailbox, _) => {
                mailbox.borrow_mut().answered = Some(outcomes);
                self.poll(pid);
            }
            Role::RecoveryCoordinator(_) if outcomes.is_empty() => {
                self.tend(pid, MembershipEvent::Done);
            }
            Role::RecoveryCoordinator(_) => self.tend(pid, MembershipEvent::Outcomes(outcomes)),
            Role::Nothing => {}
        }
    }

    fn post(&mut self, name: Name, asker: Option<Pid>, operations: Vec<Operation>, pause: Nanos) {
        self.asked += 1;
        self.batches.insert(self.asked, asker);
        let is_late = self.late_one_in > 0 && self.random.below(self.late_one_in) == 0;
        let late = if is_late {
            if let Name::Owner(owner) = name {
                self.watch.excuse(owner);
            }
            self.random.below(2 * LEASE.0)
        } else {
            0
        };
        let pause = pause + Nanos(late);
        let batch = BatchId(self.asked);
        self.memory
            .post(name.client(), batch, operations, pause)
            .unwrap();
    }

    fn patience(&mut self, times: u32) -> Nanos {
        match times {
            0 => Nanos::ZERO,
            times => Nanos(self.random.below(20_000.min(1_000 << times.min(10)))),
        }
    }

    /// Lets a program go on until it asks for something.
    fn poll(&mut self, pid: Pid) {
        let now = self.now();
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        let Role::Program(mailbox, program) = &mut process.role else {
            return;
        };
        mailbox.borrow_mut().now = now;
        let mut context = Context::from_waker(Waker::noop());
        if program.as_mut().poll(&mut context).is_ready() {
            process.role = Role::Nothing;
            return;
        }
        let asked = mailbox.borrow_mut().asked.take();
        let name = process.name;
        match asked {
            Some(Request::Ask(operations, times)) => {
                let pause = self.patience(times);
                self.post(name, Some(pid), operations, pause);
            }
            Some(Request::Sleep(span)) => self.after(span, Alarm::Deliver(pid, Vec::new())),
            Some(Request::Become(name)) => {
                self.rename(pid, name);
                self.after(Nanos::ZERO, Alarm::Deliver(pid, Vec::new()));
            }
            Some(Request::Leave) => {
                process.lease = None;
                if let Name::Owner(owner) = name {
                    self.watch.excuse(owner);
                    let leave = Lease::leave(self.client_slots, owner);
                    self.post(name, Some(pid), vec![leave], Nanos::ZERO);
                }
            }
            None => {} // it has asked before, and waits
        }
    }

    fn rename(&mut self, pid: Pid, name: Name) {
        let client_slots = self.client_slots;
        let process = self.processes.get_mut(&pid).unwrap();
        process.name = name;
        process.names.push(name);
        process.lease = None;
        if let Name::Owner(owner) = name {
            self.watch.keep(owner);
            process.lease = Some(Lease::new(client_slots, owner, &Chart::fixed().map));
            self.beat(pid, name);
        }
    }

    /// Keeps a lease, for as long as the process is the same owner.
    fn beat(&mut self, pid: Pid, name: Name) {
        let now = self.now();
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        if process.name != name {
            return;
        }
        if process.still_until > now {
            let until = process.still_until;
            return self.at(until, Alarm::Beat(pid, name));
        }
        let Some(lease) = &mut process.lease else {
            return;
        };
        let beat = lease.beat(LocalTime(now.0 + process.ahead));
        self.post(name, None, beat, Nanos::ZERO);
        self.after(Lease::every(LEASE), Alarm::Beat(pid, name));
    }

    /// Lets a recovery coordinator go on, and does what it wishes.
    fn tend(&mut self, pid: Pid, heard: MembershipEvent) {
        let now = self.now();
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        let (name, ahead) = (process.name, process.ahead);
        let Role::RecoveryCoordinator(coordinator) = &mut process.role else {
            return;
        };
        match coordinator.step(LocalTime(now.0 + ahead), heard) {
            MembershipAction::Pause(span) => self.after(span, Alarm::Deliver(pid, Vec::new())),
            MembershipAction::Ask(operations, times) => {
                let pause = self.patience(times);
                self.post(name, Some(pid), operations, pause);
            }
            MembershipAction::ShutOut(others, _) => {
                let span = Nanos(self.random.below(SHUTTING));
                self.after(span, Alarm::Shut(pid, others));
            }
            MembershipAction::Become(name) => {
                self.rename(pid, name);
                self.after(Nanos::ZERO, Alarm::Deliver(pid, Vec::new()));
            }
            MembershipAction::End(_) => {
                self.processes.remove(&pid);
                self.deposed += 1;
                self.coordinator();
            }
        }
    }
}
