//! A rack in virtual time whose memory is replicated, with processes that have places and recovery coordinators
//! that see to deaths and losses. Each process has a clock of its own, may stand still, and may die;
//! whatever it has asked for may arrive late; servers are lost, or only taken for lost.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Waker};

use manxdb_core::{LocalTime, Nanos, Random};
use manxdb_fabric::{BatchId, Fault, Operation, OperationOutcome, ServerId};
use manxdb_rsi::mutants::Mutant;
use manxdb_rsi::{
    Block, Lease, Map, MembershipAction, MembershipEvent, Name, Owner, RecoveryCoordinator,
};
use manxdb_sim::SimTime;
use manxdb_sim::memory::{Happened, Memory, MemoryOptions};

use super::client_handle::{ClientHandle, Mailbox, Request};
use super::plan::{Plan, RECORDS, SERVERS, bytes_of_server, replicas};
use super::watch::{Moment, Watch};
use crate::common::LAYOUT;

/// How long a lease is.
pub const LEASE: Nanos = Nanos::from_millis(2);
/// Longest wait for one server to shut somebody out.
const SHUTTING: u64 = 10_000;

pub type Pid = u64;

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
    /// The last place that it had, and whether it has not left it.
    owner: Option<Owner>,
    lease: Option<Lease>,
    /// Its clock is ahead by so much.
    ahead: u64,
    still_until: SimTime,
    /// It stood still, or something of it was late, since it had a place last.
    is_slow: bool,
}

enum Alarm {
    /// A process goes on with what came of its operations.
    Deliver(Pid, Vec<OperationOutcome>),
    Beat(Pid, Name),
    /// The first of these servers shuts all of these out; a recovery coordinator hears when all have.
    Shut(Pid, Vec<Name>, Vec<ServerId>),
}

pub struct Rack {
    pub memory: Memory,
    pub watch: Watch,
    pub plan: Plan,
    /// One operation in this many is under way for up to two leases; 0: none.
    pub late_one_in: u64,
    /// Recovery coordinators do not reach this server, which is there.
    pub unreached: Option<ServerId>,
    mutant: Option<Mutant>,
    seed: u64,
    random: Random,
    processes: BTreeMap<Pid, Process>,
    agenda: BTreeMap<(SimTime, u64), Alarm>,
    alarms: u64,
    /// Who asked for a batch, of which servers; none: a beat, of which nobody waits to hear.
    batches: BTreeMap<u64, (Option<Pid>, Vec<ServerId>)>,
    asked: u64,
    next_pid: Pid,
    /// Recovery coordinators that ended because others lead.
    pub deposed: u64,
    /// Epochs that recovery coordinators have opened.
    pub opened: u64,
}

impl Rack {
    pub fn new(seed: u64, slots: u64, mutant: Option<Mutant>) -> Self {
        let options = MemoryOptions {
            slow_one_in: 64,
            ..MemoryOptions::default()
        };
        let mut memory = Memory::new(seed, options);
        for server in 0..SERVERS {
            memory.register(ServerId(server), bytes_of_server(slots));
        }
        let plan = Plan::new(slots);
        let body = Block::empty(LAYOUT, 0).into_body();
        for number in 0..RECORDS {
            for at in replicas(&plan.chart.map, plan.record(number)) {
                let empty = Operation::Write {
                    at: at.plus(8),
                    bytes: body.clone(),
                };
                memory.post(0, BatchId(0), vec![empty], Nanos(0)).unwrap();
                while memory.step().is_some() {}
            }
        }
        Self {
            memory,
            watch: Watch::new(plan.clone()),
            plan,
            late_one_in: 0,
            unreached: None,
            mutant,
            seed,
            random: Random::stream(seed, &[0x7261]),
            processes: BTreeMap::new(),
            agenda: BTreeMap::new(),
            alarms: 0,
            batches: BTreeMap::new(),
            asked: 0,
            next_pid: 1,
            deposed: 0,
            opened: 0,
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
            owner: None,
            lease: None,
            ahead: self.random.below(100 * LEASE.0),
            still_until: SimTime::ZERO,
            is_slow: false,
        };
        self.processes.insert(pid, process);
        pid
    }

    /// A process with a program.
    pub fn program<F>(&mut self, program: impl FnOnce(ClientHandle) -> F) -> Pid
    where
        F: Future<Output = ()> + 'static,
    {
        let mailbox = Rc::<RefCell<Mailbox>>::default();
        let handle = ClientHandle {
            random: Random::stream(self.seed, &[self.next_pid]),
            plan: self.plan.clone(),
            mutant: self.mutant,
            mailbox: Rc::clone(&mailbox),
        };
        let pid = self.enter(Role::Program(mailbox, Box::pin(program(handle))));
        self.poll(pid);
        pid
    }

    pub fn coordinator(&mut self) -> Pid {
        let coordinator = RecoveryCoordinator::new(self.plan.ward()).with(self.mutant);
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
        if let Some(owner) = process.owner {
            self.watch.excuse(owner);
            self.watch.died.insert(owner, self.now());
        }
    }

    /// A process stands still for so long; what it has under way goes on.
    pub fn still(&mut self, pid: Pid, span: Nanos) {
        let until = self.now() + span;
        if let Some(process) = self.processes.get_mut(&pid) {
            process.still_until = process.still_until.max(until);
            process.is_slow = true;
            if let Some(owner) = process.owner {
                self.watch.excuse(owner);
            }
        }
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

    /// Losses that all recovery coordinators know are decided.
    pub fn losses(&self) -> u64 {
        let epochs = self
            .processes
            .values()
            .filter_map(|process| match &process.role {
                Role::RecoveryCoordinator(coordinator) => Some(coordinator.map().epoch()),
                _ => None,
            });
        epochs.min().unwrap_or(0)
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
        assert!(
            self.now() < end,
            "seed {}: programs wait for ever",
            self.seed
        );
        self.run_until(self.now() + LEASE * 5);
    }

    /// Runs to a time.
    pub fn run_until(&mut self, end: SimTime) {
        while self.step(end) {}
    }

    /// Runs until something happens, or to a time; whether it has happened.
    pub fn run_until_moment(&mut self, moment: Moment, end: SimTime) -> bool {
        self.watch.moments.clear();
        while !self.watch.moments.contains(&moment) && self.step(end) {}
        self.watch.moments.contains(&moment)
    }

    /// One event, if it is before a time.
    pub fn step(&mut self, end: SimTime) -> bool {
        let event = self.memory.next_time();
        let alarm = self.agenda.first_key_value().map(|((time, _), _)| *time);
        let is_alarm = alarm.is_some_and(|alarm| event.is_none_or(|event| alarm <= event));
        let next = if is_alarm { alarm } else { event };
        if next.is_none_or(|next| next > end) {
            self.memory.wait_until(end);
            return false;
        }
        if is_alarm {
            let ((time, _), alarm) = self.agenda.pop_first().unwrap();
            self.memory.wait_until(time);
            self.ring(alarm);
        } else if let Some(Happened::Completed(_, completion)) = self.memory.step() {
            let asked = self.batches.remove(&completion.batch.0);
            self.watch.look(&self.memory);
            if let Some((Some(pid), servers)) = asked {
                let outcomes = self.reached(pid, &servers, completion.outcomes);
                self.deliver(pid, outcomes);
            }
        }
        true
    }

    /// What a process hears of what has come of operations: a recovery coordinator hears nothing of a server that
    /// it does not reach.
    fn reached(
        &self,
        pid: Pid,
        servers: &[ServerId],
        mut outcomes: Vec<OperationOutcome>,
    ) -> Vec<OperationOutcome> {
        let role = self.processes.get(&pid).map(|process| &process.role);
        if let (Some(Role::RecoveryCoordinator(_)), Some(unreached)) = (role, self.unreached) {
            let pairs = outcomes.iter_mut().zip(servers);
            for (outcome, server) in pairs.filter(|(_, server)| **server == unreached) {
                *outcome = OperationOutcome::Failed(Fault::Gone(*server));
            }
        }
        outcomes
    }

    fn ring(&mut self, alarm: Alarm) {
        match alarm {
            Alarm::Deliver(pid, outcomes) => self.deliver(pid, outcomes),
            Alarm::Beat(pid, name) => self.beat(pid, name),
            Alarm::Shut(pid, names, mut servers) => {
                let Some(server) = servers.pop() else {
                    return self.deliver(pid, Vec::new());
                };
                for name in &names {
                    self.memory.fence_at(name.client(), server);
                    self.watch.fenced.insert((name.client(), server));
                }
                let span = Nanos(self.random.below(SHUTTING));
                self.after(span, Alarm::Shut(pid, names, servers));
            }
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
        let servers = operations.iter().map(Operation::server).collect();
        self.batches.insert(self.asked, (asker, servers));
        let is_late = self.late_one_in > 0 && self.random.below(self.late_one_in) == 0;
        let late = if is_late {
            let mut processes = self.processes.values_mut();
            let own = processes.find(|process| process.name == name);
            if let Some(process) = own {
                process.is_slow = true;
                process
                    .owner
                    .into_iter()
                    .for_each(|owner| self.watch.excuse(owner));
            }
            self.random.below(2 * LEASE.0)
        } else {
            0
        };
        let pause = pause + Nanos(late);
        let batch = BatchId(self.asked);
        let posted = self.memory.post(name.client(), batch, operations, pause);
        posted.unwrap();
    }

    fn patience(&mut self, times: u32) -> Nanos {
        match times {
            0 => Nanos::ZERO,
            times => Nanos(self.random.below(100_000.min(1_000 << times.min(10)))),
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
            Some(Request::BeAGuest(number)) => {
                self.rename(pid, Name::Guest(number));
                self.after(Nanos::ZERO, Alarm::Deliver(pid, Vec::new()));
            }
            Some(Request::Own(owner, map)) => {
                self.own(pid, owner, &map);
                self.after(Nanos::ZERO, Alarm::Deliver(pid, Vec::new()));
            }
            Some(Request::Leave(operations)) => {
                process.lease = None;
                if let Some(owner) = process.owner.take() {
                    self.watch.excuse(owner);
                }
                self.post(name, Some(pid), operations, Nanos::ZERO);
            }
            None => {} // it has asked before, and waits
        }
    }

    fn rename(&mut self, pid: Pid, name: Name) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.name = name;
            process.names.push(name);
            process.lease = None;
        }
    }

    fn own(&mut self, pid: Pid, owner: Owner, map: &Map) {
        let name = Name::Owner(owner);
        self.rename(pid, name);
        self.watch.own(owner);
        let lease = Lease::new(self.plan.client_slots, owner, map);
        if let Some(process) = self.processes.get_mut(&pid) {
            process.owner = Some(owner);
            process.lease = Some(lease);
            if std::mem::take(&mut process.is_slow) {
                self.watch.excuse(owner);
            }
        }
        self.beat(pid, name);
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
        let beats = lease.beat(LocalTime(now.0 + process.ahead));
        self.post(name, None, beats, Nanos::ZERO);
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
        let opened = coordinator.opened();
        let wish = coordinator.step(LocalTime(now.0 + ahead), heard);
        self.opened += coordinator.opened() - opened;
        match wish {
            MembershipAction::Pause(span) => self.after(span, Alarm::Deliver(pid, Vec::new())),
            MembershipAction::Ask(operations, times) => {
                let pause = self.patience(times);
                self.post(name, Some(pid), operations, pause);
            }
            MembershipAction::ShutOut(names, servers) => {
                let is_owner = |name: &Name| matches!(name, Name::Owner(_));
                if coordinator.map().epoch() > self.watch.map.epoch() && names.iter().any(is_owner)
                {
                    self.watch.moments.insert(Moment::Restore);
                }
                let span = Nanos(self.random.below(SHUTTING));
                self.after(span, Alarm::Shut(pid, names, servers));
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
