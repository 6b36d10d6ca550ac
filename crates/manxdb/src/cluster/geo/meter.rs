//! What a node of DAST measures of itself while it runs: latencies of the calls that it answers, what
//! they wait for, and how far its clock is held back.
//!
//! Latencies are exact: a core notes when a call comes in and when it is answered. Waits are sampled: 137
//! times a second each call that is not answered is asked what it waits for, and the time since the last
//! sample counts for that. So the core does not have to say so at each step, as it does in the simulator
//! ([`manxdb_dast::Options::explains`]), and the sums are right on average, because samples keep no time
//! with the reports of clocks. A sample takes at most a twentieth of the time between samples.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use manxdb_core::{LocalTime, Nanos, NodeId, RequestId};
use manxdb_dast::manager::{Leading, Manager, Pair};
use manxdb_dast::replica::Replica;
use manxdb_dast::{Answer, CallId, DastNode, RegionId};
use manxdb_net::{Driver, Outside};

use super::latencies::Latencies;
use super::measured::{
    Class, ELSEWHERE, Measured, OfClass, OfLeader, OfManager, OfPair, OfReplica, SlowCall, Waits,
};
use super::minute::Minute;
use super::pulse::{Doing, Pulse};
use super::slowest::Slowest;

/// Between two samples: no multiple of the interval of reports (2.5 ms).
const SAMPLE_EVERY: Nanos = Nanos::from_micros(7_300);
/// So much time counts for a sample at most: a process that stood still was not asked.
const SAMPLE_MAX: Nanos = Nanos::from_secs(1);
/// A sample takes at most this part of the time between two.
const SHARE: u64 = 20;
/// What the driver is woken for.
const SAMPLE: u64 = 1;

/// Microseconds by reason.
type Reasons = BTreeMap<&'static str, u64>;

/// A call that is not answered yet.
#[derive(Debug)]
struct Open {
    id: CallId,
    since: Nanos,
    class: Class,
    procedure: String,
    waits: Reasons,
    /// The sample that has seen it last.
    seen: u64,
}

/// Calls of a class.
#[derive(Debug, Default)]
struct Calls {
    answered: Latencies,
    waits: Reasons,
    minute: Minute<(Latencies, Reasons)>,
    given_up: u64,
    slowest: Slowest,
}

/// What one node measures.
#[derive(Debug)]
pub struct Meter {
    admin: Option<String>,
    pulse: Arc<Pulse>,
    now: Nanos,
    is_due: bool,
    sampled: Nanos,
    samples: u64,
    open: BTreeMap<u64, Open>,
    local: Calls,
    cross_region: Calls,
    stretch: Nanos,
    stretch_max: Minute<Nanos>,
    ledger: Nanos,
    minute_ledger: Minute<Nanos>,
    role: Role,
}

/// What the node is, and what it was at the last sample.
#[derive(Debug, Default)]
enum Role {
    #[default]
    Unknown,
    Replica,
    Manager(OfManager),
}

impl Meter {
    /// Measures a node whose admin listener, if it has one, is at `admin`; `pulse` shows that it runs.
    #[must_use]
    pub fn new(admin: Option<String>, pulse: Arc<Pulse>) -> Self {
        Self {
            admin,
            pulse,
            now: Nanos::ZERO,
            is_due: false,
            sampled: Nanos::ZERO,
            samples: 0,
            open: BTreeMap::new(),
            local: Calls::default(),
            cross_region: Calls::default(),
            stretch: Nanos::ZERO,
            stretch_max: Minute::default(),
            ledger: Nanos::ZERO,
            minute_ledger: Minute::default(),
            role: Role::Unknown,
        }
    }

    fn calls(&mut self, class: Class) -> &mut Calls {
        match class {
            Class::Local => &mut self.local,
            Class::CrossRegion => &mut self.cross_region,
        }
    }

    fn pass(&mut self, now: Nanos) {
        self.now = now;
        self.local.minute.pass(now);
        self.cross_region.minute.pass(now);
        self.stretch_max.pass(now);
        self.minute_ledger.pass(now);
    }

    fn begins(&mut self, now: Nanos, replica: &Replica, trace: u64) {
        // Of one that had to wait for the clock its core notes twice that it came in.
        if self.open.contains_key(&trace) {
            return;
        }
        // None: it is passed on, refused, or its answer was there already.
        let Some(call) = replica.open_call(trace) else {
            return;
        };
        let open = Open {
            id: call.id,
            since: now,
            class: class(call.is_local),
            procedure: call.procedure.to_owned(),
            waits: Reasons::new(),
            seen: self.samples,
        };
        self.open.insert(trace, open);
    }

    fn ends(&mut self, now: Nanos, trace: u64) {
        let Some(open) = self.open.remove(&trace) else {
            return;
        };
        self.pass(now);
        let micros = now.saturating_sub(open.since).as_micros();
        let calls = self.calls(open.class);
        calls.answered.add(micros);
        calls.minute.newest().0.add(micros);
        if calls.slowest.wants(now, micros) {
            let call = SlowCall {
                call: format!("{:?}", open.id),
                procedure: open.procedure,
                class: open.class,
                micros,
                ago_ms: 0,
                waits: told(&open.waits),
            };
            calls.slowest.add(now, call);
        }
    }

    fn sample_replica(&mut self, now: Nanos, replica: &Replica) {
        let span = now.saturating_sub(self.sampled).min(SAMPLE_MAX).as_micros();
        for (call, wait) in replica.open_calls() {
            let Some(open) = self.open.get_mut(&call.id.for_traces()) else {
                continue;
            };
            let reason = wait.map_or(ELSEWHERE, |wait| wait.reason);
            let class = open.class;
            open.seen = self.samples;
            *open.waits.entry(reason).or_default() += span;
            let calls = self.calls(class);
            *calls.waits.entry(reason).or_default() += span;
            *calls.minute.newest().1.entry(reason).or_default() += span;
        }
        self.forget_those_that_are_gone();
        self.stretch = replica.stretch(wall());
        let most = self.stretch_max.newest();
        *most = (*most).max(self.stretch);
        self.role = Role::Replica;
    }

    /// Calls that the replica does not have any more, and has not answered.
    fn forget_those_that_are_gone(&mut self) {
        let samples = self.samples;
        let mut given_up = Vec::new();
        self.open.retain(|_, open| {
            let is_here = open.seen == samples;
            if !is_here {
                given_up.push(open.class);
            }
            is_here
        });
        for class in given_up {
            self.calls(class).given_up += 1;
        }
    }

    fn sample_manager(&mut self, now: Nanos, manager: &Manager) {
        let leading = manager.leading(wall());
        let waiting = leading.as_ref().map_or(0, |leading| leading.at_ledger);
        let span = now.saturating_sub(self.sampled).min(SAMPLE_MAX);
        let waited = span * (waiting as u64);
        self.ledger += waited;
        *self.minute_ledger.newest() += waited;
        self.role = Role::Manager(OfManager {
            view: manager.view(),
            leading: leading.map(|leading| of_leader(&leading)),
            ..OfManager::default()
        });
    }

    fn of_class(&self, class: Class, calls: &Calls) -> OfClass {
        let (mut minute, mut minute_waits) = (Latencies::default(), Reasons::new());
        for (latencies, reasons) in calls.minute.slices() {
            minute.merge(latencies);
            for (reason, micros) in reasons {
                *minute_waits.entry(*reason).or_default() += micros;
            }
        }
        let open = self.open.values().filter(|open| open.class == class);
        OfClass {
            answered: calls.answered.clone(),
            minute,
            waits: told(&calls.waits),
            minute_waits: told(&minute_waits),
            open: open.count() as u64,
            given_up: calls.given_up,
        }
    }

    fn of_replica(&self) -> OfReplica {
        let slowest = self.local.slowest.told(self.now);
        let mut slowest: Vec<_> = slowest
            .chain(self.cross_region.slowest.told(self.now))
            .collect();
        slowest.sort_by_key(|call| std::cmp::Reverse(call.micros));
        let most = self.stretch_max.slices().max();
        OfReplica {
            local: self.of_class(Class::Local, &self.local),
            cross_region: self.of_class(Class::CrossRegion, &self.cross_region),
            stretch_micros: self.stretch.as_micros(),
            stretch_max_micros: most.copied().unwrap_or_default().as_micros(),
            slowest,
        }
    }

    /// What it has measured so far.
    #[must_use]
    pub fn measured(&self) -> Measured {
        let ledger: u64 = self.minute_ledger.slices().map(|it| it.as_micros()).sum();
        let manager = match &self.role {
            Role::Manager(manager) => Some(OfManager {
                ledger_micros: self.ledger.as_micros(),
                minute_ledger_micros: ledger,
                ..manager.clone()
            }),
            Role::Unknown | Role::Replica => None,
        };
        Measured {
            admin: self.admin.clone(),
            minute_ms: self.local.minute.span(self.now).as_micros() / 1_000,
            replica: matches!(self.role, Role::Replica).then(|| self.of_replica()),
            manager,
        }
    }
}

impl Driver<DastNode> for Meter {
    fn begin(&mut self, outside: &mut Outside<DastNode>) {
        outside.wake_after(SAMPLE_EVERY, SAMPLE);
    }

    fn reply(&mut self, _: &mut Outside<DastNode>, _: NodeId, _: RequestId, _: Answer) {}

    fn wake(&mut self, _: &mut Outside<DastNode>, _key: u64) {
        self.is_due = true;
    }

    fn marked(
        &mut self,
        outside: &mut Outside<DastNode>,
        core: &DastNode,
        txn: u64,
        phase: &'static str,
    ) {
        match (core.replica(), phase) {
            (Some(replica), "received") => self.begins(outside.now(), replica, txn),
            (Some(_), "answered") => self.ends(outside.now(), txn),
            _ => {}
        }
    }

    fn look(&mut self, outside: &mut Outside<DastNode>, _: NodeId, core: &DastNode) {
        let now = outside.now();
        self.pulse.beat(doing(core));
        if !std::mem::take(&mut self.is_due) {
            return;
        }
        self.pass(now);
        self.samples += 1;
        let began = Instant::now();
        if let Some(replica) = core.replica() {
            self.sample_replica(now, replica);
        }
        if let Some(manager) = core.manager() {
            self.sample_manager(now, manager);
        }
        self.sampled = now;
        let took = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let pause = Nanos(took.saturating_mul(SHARE)).max(SAMPLE_EVERY);
        outside.wake_after(pause.min(SAMPLE_MAX), SAMPLE);
    }

    fn notes(&self) -> Vec<(String, String)> {
        vec![self.measured().to_note()]
    }
}

fn class(is_local: bool) -> Class {
    if is_local {
        Class::Local
    } else {
        Class::CrossRegion
    }
}

fn doing(core: &DastNode) -> Doing {
    let takes_part = core.replica().is_none_or(Replica::is_live);
    if takes_part {
        Doing::ItsWork
    } else {
        Doing::Joining
    }
}

/// What the machine's clock shows.
fn wall() -> LocalTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanos = since.map_or(0, |since| since.as_nanos());
    LocalTime(u64::try_from(nanos).unwrap_or(u64::MAX))
}

fn told(reasons: &Reasons) -> Waits {
    let reasons = reasons.iter();
    reasons
        .map(|(reason, micros)| ((*reason).to_owned(), *micros))
        .collect()
}

fn of_leader(leading: &Leading<'_>) -> OfLeader {
    let numbers =
        |nodes: &std::collections::BTreeSet<NodeId>| nodes.iter().map(|node| node.0).collect();
    OfLeader {
        epoch: leading.members.epoch,
        live: numbers(&leading.members.live),
        closing: numbers(&leading.members.closing),
        joining: leading.members.joining.map(|node| node.0),
        bound_micros: leading.bound,
        fenced: leading.fenced.map(|region| region.0),
        pairs: leading.pairs.iter().map(of_pair).collect(),
    }
}

fn of_pair(pair: &Pair) -> OfPair {
    let RegionId(region) = pair.region;
    OfPair {
        region,
        lead: pair.lead,
        told: pair.told,
        heard: pair.heard,
        delay: pair.delay,
        silent: pair.silent.as_micros(),
    }
}
