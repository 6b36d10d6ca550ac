//! The worker's core: it runs only attempts whose lease it holds.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use manxdb_core::check::ensure;
use manxdb_core::{Actions, Core, Digest, Event, EventOf, LocalTime, Nanos, NodeId, RequestId};

use crate::job::{AttemptId, Spec, WorkerId};
use crate::message::{Ability, Beat, Ended, Message, Progress};

/// What slots and the process around them say.
#[derive(Debug, Clone)]
pub enum SlotAsk {
    /// A slot has nothing to do; answered when there is something.
    Next,
    /// Answered when an attempt is to be stopped, or is over.
    Watch(AttemptId),
    /// How far an attempt is; not answered.
    Progress(AttemptId, Progress),
    /// An attempt ended; not answered.
    Ended(AttemptId, Ended),
    /// The worker's measured abilities; not answered.
    Able(Ability),
    /// Take nothing more; answered when nothing runs and all ends are recorded.
    Drain,
}

/// What slots are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Given {
    /// Run this, in the directory named after the attempt.
    Run(AttemptId, Spec),
    /// Stop the attempt and remove its outputs.
    Stop,
    /// It is over: there is nothing to stop.
    Over,
    /// Nothing is left.
    Drained,
}

/// A worker.
#[derive(Debug)]
pub struct Worker {
    id: WorkerId,
    control: NodeId,
    beat_every: Nanos,
    ability: Ability,
    beat: u64,
    /// When beats not answered yet were sent.
    sent: BTreeMap<u64, LocalTime>,
    seen: u64,
    /// Slots with nothing to do.
    idle: VecDeque<RequestId>,
    /// Told to run, without a slot yet.
    pending: VecDeque<AttemptId>,
    running: BTreeMap<AttemptId, Running>,
    ended: BTreeMap<AttemptId, Ended>,
    /// Of attempts that do not run any more.
    total: Progress,
    /// It takes nothing more,
    drains: bool,
    /// and this is to be answered when nothing is left.
    drain: Option<RequestId>,
}

#[derive(Debug)]
struct Running {
    spec: Spec,
    /// Without a word until then the lease is over.
    until: LocalTime,
    progress: Progress,
    watch: Option<RequestId>,
}

/// Beats whose answers may still arrive.
const SENT_MAX: usize = 64;

/// Time to say that it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BeatTimer;

impl Worker {
    /// A worker that has just started. `id` is drawn at random each time.
    #[must_use]
    pub fn new(id: WorkerId, control: NodeId, beat_every: Nanos, ability: Ability) -> Self {
        Self {
            id,
            control,
            beat_every,
            ability,
            beat: 0,
            sent: BTreeMap::new(),
            seen: 0,
            idle: VecDeque::new(),
            pending: VecDeque::new(),
            running: BTreeMap::new(),
            ended: BTreeMap::new(),
            total: Progress::default(),
            drains: false,
            drain: None,
        }
    }

    /// Attempts it has not ended.
    #[must_use]
    pub fn running(&self) -> usize {
        self.running.len()
    }

    fn hear(&mut self, now: LocalTime, message: Message, out: &mut Actions<Self>) {
        match message {
            Message::Run {
                worker,
                order,
                attempt,
                spec,
                lease,
            } => {
                if worker != self.id || order <= self.seen {
                    return; // for who was here before, or told again
                }
                self.seen = order;
                let running = Running {
                    spec,
                    until: now + lease,
                    progress: Progress::default(),
                    watch: None,
                };
                self.running.insert(attempt, running);
                self.pending.push_back(attempt);
                self.fill_slots(out);
            }
            Message::Kept {
                beat,
                attempts,
                lease,
            } => {
                let Some(sent) = self.sent.get(&beat).copied() else {
                    return;
                };
                self.sent = self.sent.split_off(&beat);
                for attempt in attempts {
                    if let Some(running) = self.running.get_mut(&attempt) {
                        running.until = running.until.max(sent + lease);
                    }
                }
            }
            Message::Stop { attempt } => self.stop(attempt, out),
            Message::Recorded { attempt } => {
                self.ended.remove(&attempt);
                self.finish_draining(out);
            }
            _ => {} // nobody says this to a worker
        }
    }

    fn fill_slots(&mut self, out: &mut Actions<Self>) {
        while let Some(slot) = self.idle.pop_front() {
            let Some(attempt) = self.pending.pop_front() else {
                self.idle.push_front(slot);
                return;
            };
            match self.running.get(&attempt) {
                Some(running) => out.reply(slot, Given::Run(attempt, running.spec.clone())),
                None => self.idle.push_front(slot), // stopped meanwhile
            }
        }
    }

    fn stop(&mut self, attempt: AttemptId, out: &mut Actions<Self>) {
        self.ended.remove(&attempt);
        self.pending.retain(|pending| *pending != attempt);
        if let Some(running) = self.running.remove(&attempt) {
            self.total = self.total.plus(running.progress);
            if let Some(watch) = running.watch {
                out.reply(watch, Given::Stop);
            }
        }
        self.finish_draining(out);
    }

    fn ask(&mut self, id: RequestId, ask: SlotAsk, out: &mut Actions<Self>) {
        match ask {
            SlotAsk::Next => {
                self.idle.push_back(id);
                self.fill_slots(out);
            }
            SlotAsk::Watch(attempt) => match self.running.get_mut(&attempt) {
                Some(running) => running.watch = Some(id),
                None => out.reply(id, Given::Stop),
            },
            SlotAsk::Progress(attempt, progress) => {
                if let Some(running) = self.running.get_mut(&attempt) {
                    running.progress = progress;
                }
            }
            SlotAsk::Ended(attempt, end) => {
                let Some(running) = self.running.remove(&attempt) else {
                    return; // it was stopped
                };
                self.total = self.total.plus(running.progress);
                if let Some(watch) = running.watch {
                    out.reply(watch, Given::Over);
                }
                self.ended.insert(attempt, end.clone());
                self.say_ended(attempt, end, out);
            }
            SlotAsk::Able(ability) => self.ability = ability,
            SlotAsk::Drain => {
                self.drains = true;
                self.drain = Some(id);
                self.say_beat_at(None, out);
                self.finish_draining(out);
            }
        }
    }

    fn say_ended(&self, attempt: AttemptId, end: Ended, out: &mut Actions<Self>) {
        let ended = Message::Ended {
            worker: self.id,
            attempt,
            end,
        };
        out.send(self.control, ended);
    }

    fn finish_draining(&mut self, out: &mut Actions<Self>) {
        if self.running.is_empty()
            && self.ended.is_empty()
            && let Some(drain) = self.drain.take()
        {
            out.reply(drain, Given::Drained);
        }
    }

    fn tick(&mut self, now: LocalTime, out: &mut Actions<Self>) {
        let over = self.running.iter().filter(|(_, one)| one.until < now);
        let over: Vec<AttemptId> = over.map(|(attempt, _)| *attempt).collect();
        for attempt in over {
            self.stop(attempt, out);
        }
        for (attempt, end) in &self.ended {
            self.say_ended(*attempt, end.clone(), out);
        }
        self.say_beat_at(Some(now), out);
        out.set_timer(self.beat_every, BeatTimer);
    }

    /// Says that it is there; with the time, so that the answer renews leases.
    fn say_beat_at(&mut self, now: Option<LocalTime>, out: &mut Actions<Self>) {
        self.beat += 1;
        if let Some(now) = now {
            self.sent.insert(self.beat, now);
            while self.sent.len() > SENT_MAX {
                self.sent.pop_first();
            }
        }
        let running = self
            .running
            .iter()
            .map(|(attempt, one)| (*attempt, one.progress));
        let under_way = self.running.values().map(|one| one.progress);
        let beat = Beat {
            worker: self.id,
            beat: self.beat,
            seen: self.seen,
            ability: self.ability.clone(),
            running: running.collect(),
            ended: self.ended.keys().copied().collect(),
            drains: self.drains,
            total: under_way.fold(self.total, Progress::plus),
        };
        out.send(self.control, Message::Beat(beat));
    }
}

impl Core for Worker {
    type Message = Message;
    type Timer = BeatTimer;
    type Request = SlotAsk;
    type Reply = Given;
    type Record = ();

    fn step(&mut self, now: LocalTime, event: EventOf<Self>, out: &mut Actions<Self>) {
        match event {
            Event::Start => {
                self.say_beat_at(Some(now), out);
                out.set_timer(self.beat_every, BeatTimer);
            }
            Event::Message { body, .. } => self.hear(now, body, out),
            Event::Timer(BeatTimer) => self.tick(now, out),
            Event::Request { id, body } => self.ask(id, body, out),
            Event::Persisted(_) => {} // it writes nothing
        }
    }

    fn check(&self) -> Result<(), String> {
        for attempt in self.ended.keys() {
            ensure(!self.running.contains_key(attempt), || {
                format!("attempt {attempt} ended and runs")
            })?;
        }
        for attempt in &self.pending {
            ensure(self.running.contains_key(attempt), || {
                format!("attempt {attempt} waits for a slot and does not run")
            })?;
        }
        let pending: BTreeSet<_> = self.pending.iter().collect();
        ensure(pending.len() == self.pending.len(), || {
            format!("an attempt waits for two slots: {:?}", self.pending)
        })?;
        ensure(self.idle.is_empty() || self.pending.is_empty(), || {
            format!(
                "{} slots have nothing to do, {:?} waits",
                self.idle.len(),
                self.pending
            )
        })?;
        let idle: BTreeSet<&RequestId> = self.idle.iter().collect();
        ensure(idle.len() == self.idle.len(), || {
            format!("a slot waits once for something to do: {:?}", self.idle)
        })?;
        let watched = || self.running.values().filter_map(|one| one.watch);
        let watches: BTreeSet<RequestId> = watched().collect();
        ensure(watches.len() == watched().count(), || {
            format!("a request watches two attempts: {watches:?}")
        })?;
        let is_done = self.running.is_empty() && self.ended.is_empty();
        ensure(self.drain.is_none() || self.drains && !is_done, || {
            "who waits for the end of all attempts hears of it".to_owned()
        })?;
        let last = self.sent.keys().next_back();
        ensure(last.is_none_or(|last| *last <= self.beat), || {
            format!("beat {last:?} was sent, {} is the last", self.beat)
        })?;
        ensure(self.sent.len() <= SENT_MAX, || {
            format!("{} beats are kept", self.sent.len())
        })
    }

    fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        digest.number(self.seen);
        for attempt in self.running.keys().chain(self.ended.keys()) {
            digest.number(attempt.token);
        }
        digest.value()
    }
}
