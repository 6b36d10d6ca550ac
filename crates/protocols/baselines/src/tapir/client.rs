//! A client of TAPIR: it coordinates what it asks.

use std::sync::Arc;

use manxdb_common::call::GAVE_UP;
use manxdb_common::node::ClientOf;
use manxdb_common::{Ask, CallId, Given, OpenCalls, Planned};
use manxdb_core::check::ensure;
use manxdb_core::{Digest, LocalTime, Nanos, NodeId, Random, RequestId};
use manxdb_txn::procedure::ShardId;

use super::attempt::{Executing, Preparing};
use super::message::{Execute, Executed, TapirMessage, Timestamp, Vote};
use super::{Out, Tapir, TapirShared, TapirTimer};
use crate::waits::{BACKOFF, wait};

/// How far a try is.
#[derive(Debug)]
enum Phase {
    /// Its pieces run.
    Executing(Executing),
    /// It asks whether it may commit.
    Preparing(Preparing),
    /// It has aborted; the next one begins when its time has come.
    Waiting,
}

#[derive(Debug)]
struct Coordination {
    planned: Arc<Planned>,
    phase: Phase,
}

/// One client with any number of calls under way.
pub struct Client {
    me: NodeId,
    shared: Arc<TapirShared>,
    calls: OpenCalls<Option<Coordination>>,
    /// The last timestamp it gave.
    last: u64,
}

impl ClientOf<Tapir> for Client {
    fn new(me: NodeId, shared: Arc<TapirShared>) -> Self {
        Self {
            me,
            shared,
            calls: OpenCalls::new(me, 0),
            last: 0,
        }
    }

    fn ask(&mut self, request: RequestId, ask: Ask, out: &mut Out) {
        let number = self.calls.ask(request, ask, None);
        let Some((_, open)) = self.calls.attempt(number, self.shared.topology) else {
            return;
        };
        let call = open.call.clone();
        let id = call.id;
        match self.shared.plan(call, self.me) {
            Ok(planned) => self.execute(&planned, out),
            Err(failure) => self.end(id, Err(failure), out),
        }
    }

    fn on_message(&mut self, now: LocalTime, from: NodeId, message: TapirMessage, out: &mut Out) {
        match message {
            TapirMessage::Executed {
                id,
                attempt,
                shard,
                ran,
            } if self.is_last(id, attempt) => self.executed(now, id, shard, *ran, out),
            TapirMessage::Voted {
                id,
                attempt,
                shard,
                vote,
            } if self.is_last(id, attempt) => self.voted(now, from, (id, shard), vote, out),
            TapirMessage::Finalized { id, attempt, shard } if self.is_last(id, attempt) => {
                if let Some(Phase::Preparing(preparing)) = self.phase(id) {
                    preparing.finalized(from, shard);
                    self.conclude(now, id, out);
                }
            }
            // What replicas are told, and answers to tries that are over.
            _ => {}
        }
    }

    fn on_timer(&mut self, timer: TapirTimer, out: &mut Out) {
        let TapirTimer::Again { number, attempts } = timer;
        let Some(open) = self.calls.get(number) else {
            return;
        };
        let waits = matches!(&open.state, Some(now) if matches!(now.phase, Phase::Waiting));
        if !waits || open.attempts != attempts {
            return;
        }
        if let Some(now) = &open.state {
            let planned = Arc::clone(&now.planned);
            if self.shared.options.explains {
                out.wait(planned.id().for_traces(), None);
            }
            self.calls.attempt(number, self.shared.topology);
            self.execute(&planned, out);
        }
    }

    fn check(&self) -> Result<(), String> {
        self.calls.check()?;
        for (number, open) in self.calls.iter() {
            let Some(coordination) = &open.state else {
                return Err(format!("T10: call {number} is under way and not planned"));
            };
            ensure(open.attempts <= self.tries_max(), || {
                format!(
                    "T11: call {number} is tried for the {}th time",
                    open.attempts
                )
            })?;
            match &coordination.phase {
                Phase::Executing(executing) => executing.check(&coordination.planned)?,
                Phase::Preparing(preparing) => {
                    preparing.check(&coordination.planned)?;
                    ensure(preparing.timestamp.time <= self.last, || {
                        format!("T12: call {number} has a timestamp that was not given")
                    })?;
                }
                Phase::Waiting => {}
            }
        }
        Ok(())
    }

    fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        self.calls.digest_into(&mut digest);
        digest.number(self.last);
        digest.value()
    }
}

impl Client {
    /// Whether a try of this client is its call's last one.
    fn is_last(&self, id: CallId, attempt: u32) -> bool {
        let open = self.calls.get(id.number);
        open.is_some_and(|open| open.call.id == id && open.attempts == attempt)
    }

    fn phase(&mut self, id: CallId) -> Option<&mut Phase> {
        let open = self.calls.get_mut(id.number)?;
        Some(&mut open.state.as_mut()?.phase)
    }

    fn attempts(&self, id: CallId) -> u32 {
        self.calls.get(id.number).map_or(0, |open| open.attempts)
    }

    /// Begins a try: its pieces run.
    fn execute(&mut self, planned: &Arc<Planned>, out: &mut Out) {
        let id = planned.id();
        if let Some(open) = self.calls.get_mut(id.number) {
            open.state = Some(Coordination {
                phase: Phase::Executing(Executing::new(planned)),
                planned: Arc::clone(planned),
            });
        }
        self.run_ready(planned, out);
    }

    /// Has those pieces run that have their inputs.
    fn run_ready(&mut self, planned: &Arc<Planned>, out: &mut Out) {
        let (topology, attempt) = (self.shared.topology, self.attempts(planned.id()));
        let procedures = Arc::clone(&self.shared.procedures);
        let Some(Phase::Executing(executing)) = self.phase(planned.id()) else {
            return;
        };
        for (shard, places) in executing.begin_ready(planned, &procedures) {
            let (inputs, own) = executing.known_to(planned, shard, &places);
            let execute = Execute {
                planned: Arc::clone(planned),
                attempt,
                places,
                inputs,
                own,
            };
            // All replicas of a shard are equally near.
            let replicas: Vec<NodeId> = topology.replicas(shard).collect();
            let turn = usize::try_from(planned.id().number).unwrap_or(0);
            let to = replicas[turn % replicas.len()];
            out.send(to, TapirMessage::Execute(Box::new(execute)));
        }
    }

    fn executed(
        &mut self,
        now: LocalTime,
        id: CallId,
        shard: u32,
        ran: Result<Executed, String>,
        out: &mut Out,
    ) {
        let Some(Phase::Executing(executing)) = self.phase(id) else {
            return;
        };
        match ran {
            Ok(executed) => executing.ran(shard, executed),
            // Nothing is prepared, so nothing has to be taken back.
            Err(failure) => return self.end(id, Err(failure), out),
        }
        let (is_over, newest) = (executing.is_over(), executing.newest_seen());
        let open = self.calls.get(id.number);
        let planned = open
            .and_then(|open| open.state.as_ref())
            .map(|it| Arc::clone(&it.planned));
        let Some(planned) = planned else {
            return;
        };
        if !is_over {
            return self.run_ready(&planned, out);
        }
        let timestamp = self.timestamp_behind(now, newest);
        if let Some(phase) = self.phase(id)
            && let Phase::Executing(executing) = phase
        {
            *phase = Phase::Preparing(executing.prepare(timestamp));
        }
        self.prepare(&planned, out);
    }

    /// A new timestamp, behind another one.
    fn timestamp_behind(&mut self, now: LocalTime, other: Timestamp) -> Timestamp {
        let least = self.last.max(other.time).saturating_add(1);
        self.last = now.0.max(least);
        let timestamp = Timestamp {
            time: self.last,
            client: self.me.0,
        };
        assert!(timestamp > other, "T9: a transaction is behind what it met");
        timestamp
    }

    fn prepare(&mut self, planned: &Planned, out: &mut Out) {
        let (id, topology) = (planned.id(), self.shared.topology);
        let attempt = self.attempts(id);
        let Some(Phase::Preparing(preparing)) = self.phase(id) else {
            return;
        };
        let timestamp = preparing.timestamp;
        for (shard, sets) in preparing.sets() {
            for replica in topology.replicas(ShardId(shard)) {
                let prepare = TapirMessage::Prepare {
                    id,
                    attempt,
                    timestamp,
                    sets: Arc::clone(sets),
                };
                out.send(replica, prepare);
            }
        }
    }

    fn voted(
        &mut self,
        now: LocalTime,
        from: NodeId,
        (id, shard): (CallId, u32),
        vote: Vote,
        out: &mut Out,
    ) {
        let vote = if vote == Vote::Abstain && self.takes_abstain_for_ok() {
            Vote::Ok
        } else {
            vote
        };
        let (topology, attempt) = (self.shared.topology, self.attempts(id));
        let Some(Phase::Preparing(preparing)) = self.phase(id) else {
            return;
        };
        if let Some(vote) = preparing.voted(from, shard, vote) {
            for replica in topology.replicas(ShardId(shard)) {
                out.send(replica, TapirMessage::Finalize { id, attempt, vote });
            }
        }
        self.conclude(now, id, out);
    }

    #[allow(clippy::unused_self)] // a planted defect asks
    fn takes_abstain_for_ok(&self) -> bool {
        #[cfg(feature = "mutants")]
        return self.shared.options.mutant == Some(super::TapirMutant::AbstainIsOk);
        #[cfg(not(feature = "mutants"))]
        false
    }

    /// Does what the votes of all shards come to, once they come to something.
    fn conclude(&mut self, now: LocalTime, id: CallId, out: &mut Out) {
        let open = self.calls.get(id.number);
        let Some(coordination) = open.and_then(|open| open.state.as_ref()) else {
            return;
        };
        let planned = Arc::clone(&coordination.planned);
        let Phase::Preparing(preparing) = &coordination.phase else {
            return;
        };
        match preparing.outcome() {
            None => {}
            Some(Vote::Ok) => {
                let (timestamp, given) = (preparing.timestamp, preparing.given());
                self.tell_all(&planned, &TapirMessage::Commit { id, timestamp }, out);
                self.end(id, Ok(given), out);
            }
            Some(Vote::Retry(newest)) if self.attempts(id) < self.tries_max() => {
                self.calls.attempt(id.number, self.shared.topology);
                let timestamp = self.timestamp_behind(now, newest);
                if let Some(Phase::Preparing(preparing)) = self.phase(id) {
                    preparing.again_at(timestamp);
                }
                self.prepare(&planned, out);
            }
            Some(_) => self.abort(&planned, out),
        }
    }

    fn tries_max(&self) -> u32 {
        self.shared.options.tries_max
    }

    /// Takes a try back, and begins the next one after a random time, or gives up.
    fn abort(&mut self, planned: &Planned, out: &mut Out) {
        let (id, attempts) = (planned.id(), self.attempts(planned.id()));
        self.tell_all(planned, &TapirMessage::Abort { id }, out);
        if attempts >= self.tries_max() {
            let failure = format!("{GAVE_UP}: aborted {attempts} times");
            return self.end(id, Err(failure), out);
        }
        if let Some(phase) = self.phase(id) {
            *phase = Phase::Waiting;
        }
        if self.shared.options.explains {
            out.wait(id.for_traces(), Some(wait(BACKOFF)));
        }
        let number = id.number;
        out.set_timer(
            self.backoff(id, attempts),
            TapirTimer::Again { number, attempts },
        );
    }

    fn backoff(&self, id: CallId, attempts: u32) -> Nanos {
        let options = &self.shared.options;
        let doubles = attempts
            .saturating_sub(1)
            .min(options.backoff_doubles)
            .min(20);
        let longest = options.backoff * (1 << doubles);
        let purpose = [self.me.0.into(), id.number, attempts.into()];
        Nanos(1 + Random::stream(options.seed, &purpose).below(longest.0))
    }

    fn tell_all(&self, planned: &Planned, message: &TapirMessage, out: &mut Out) {
        let topology = self.shared.topology;
        for replica in planned.shards().flat_map(|shard| topology.replicas(shard)) {
            out.send(replica, message.clone());
        }
    }

    fn end(&mut self, id: CallId, given: Given, out: &mut Out) {
        if let Some(open) = self.calls.end(id) {
            out.reply(open.request, open.answer(given));
        }
    }
}
