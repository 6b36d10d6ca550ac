//! A database's side: every compaction asked for ends with a result or with the word to do it
//! locally, in bounded time, whatever the rest does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use manxdb_core::check::ensure;
use manxdb_core::{Actions, Core, Digest, Event, EventOf, LocalTime, Nanos, NodeId, RequestId};

use crate::job::{AttemptId, DatabaseId, JobId, LocalReason, Pressure, SessionId, Spec};
use crate::message::{Alive, Message, OutputVerdict};

/// Requests of the database to its core.
#[derive(Debug, Clone)]
pub enum Ask {
    /// Compact this; answered by [`Answer`]. Jobs are numbered from 1 in the order in which they
    /// are asked for, those that are not given away too.
    Compact(Spec),
    /// What became of a result; not answered. Said until the control plane has heard it.
    Settled {
        /// The attempt that made the result.
        attempt: AttemptId,
        /// What.
        verdict: OutputVerdict,
    },
    /// How near the database is to stalling; not answered.
    Pressure(Pressure),
    /// The database closes: whatever is asked, now or later, is to be done locally. Not answered.
    Close,
}

/// How a compaction asked for ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// With outputs, to be verified and then settled.
    Done {
        /// The attempt; also the name of its directory.
        attempt: AttemptId,
        /// RocksDB's description of the result, from the worker.
        result: Arc<[u8]>,
    },
    /// With the word to compact locally.
    Local(LocalReason),
}

/// Patience of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientOptions {
    /// How often it says that it is there.
    pub beat: Nanos,
    /// A control plane not heard of for this long is away.
    pub away: Nanos,
    /// A job may take this long,
    pub deadline: Nanos,
    /// plus the bytes of its inputs divided by this, in seconds.
    pub deadline_bytes_second: u64,
    /// When writes would stall sooner than this, what starts on level 0 is compacted locally.
    pub hedge: Nanos,
    /// Its share of the pool, relative to others'.
    pub weight: u32,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            beat: Nanos::from_millis(500),
            away: Nanos::from_secs(3),
            deadline: Nanos::from_secs(20),
            deadline_bytes_second: 8 << 20,
            hedge: Nanos::from_secs(1),
            weight: 1,
        }
    }
}

/// A database that hands out compactions.
#[derive(Debug)]
pub struct Client {
    database: DatabaseId,
    session: SessionId,
    control: NodeId,
    options: ClientOptions,
    /// Jobs asked for and not answered.
    waiting: BTreeMap<u64, Waiting>,
    /// Jobs answered with a result that is not settled yet.
    unsettled: BTreeSet<AttemptId>,
    /// What became of results, with the beat that said so first, until that beat is answered.
    settled: BTreeMap<AttemptId, (OutputVerdict, Option<u64>)>,
    next: u64,
    beat: u64,
    pressure: Pressure,
    /// When the control plane was last heard, or when this began.
    heard: LocalTime,
    is_closing: bool,
}

#[derive(Debug)]
struct Waiting {
    request: RequestId,
    spec: Spec,
    stands: Stands,
    since: LocalTime,
    deadline: LocalTime,
}

/// How far a job is, as the control plane has said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stands {
    /// Nothing was heard of it.
    Unheard,
    /// It waits for a worker.
    Queued,
    /// A worker has it.
    Runs,
}

/// Time to say that it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beat;

impl Client {
    /// A database that has just been opened. `session` is drawn at random each time.
    #[must_use]
    pub fn new(
        database: DatabaseId,
        session: SessionId,
        control: NodeId,
        options: ClientOptions,
    ) -> Self {
        Self {
            database,
            session,
            control,
            options,
            waiting: BTreeMap::new(),
            unsettled: BTreeSet::new(),
            settled: BTreeMap::new(),
            next: 1,
            beat: 0,
            pressure: Pressure::default(),
            heard: LocalTime::default(),
            is_closing: false,
        }
    }

    /// Jobs asked for and not answered.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    fn id(&self, number: u64) -> JobId {
        JobId {
            database: self.database,
            session: self.session,
            number,
        }
    }

    fn compact(&mut self, now: LocalTime, request: RequestId, spec: Spec, out: &mut Actions<Self>) {
        let number = self.next;
        self.next += 1;
        if self.is_closing {
            out.reply(request, Answer::Local(LocalReason::Closing));
            return;
        }
        if self.is_away(now) {
            out.reply(request, Answer::Local(LocalReason::Away));
            return;
        }
        let seconds = spec.facts.bytes / self.options.deadline_bytes_second.max(1);
        self.submit(number, spec.clone(), out);
        let waiting = Waiting {
            request,
            spec,
            stands: Stands::Unheard,
            since: now,
            deadline: now + self.options.deadline + Nanos::from_secs(seconds.min(1 << 30)),
        };
        let other = self.waiting.insert(number, waiting);
        assert!(other.is_none(), "a number is given to one job: {number}");
    }

    fn submit(&self, number: u64, spec: Spec, out: &mut Actions<Self>) {
        let job = self.id(number);
        out.send(self.control, Message::Submit { job, spec });
    }

    fn is_away(&self, now: LocalTime) -> bool {
        now.since(self.heard) > self.options.away
    }

    /// Ends the waiting for the jobs that `which` selects: the database compacts them locally.
    fn go_local(
        &mut self,
        reason: LocalReason,
        which: impl Fn(&Waiting) -> bool,
        out: &mut Actions<Self>,
    ) {
        let numbers = self.waiting.iter().filter(|(_, job)| which(job));
        let numbers: Vec<u64> = numbers.map(|(number, _)| *number).collect();
        for number in numbers {
            let Some(job) = self.waiting.remove(&number) else {
                continue;
            };
            out.reply(job.request, Answer::Local(reason));
            let job = self.id(number);
            out.send(self.control, Message::Withdraw { job });
        }
    }

    fn hear(&mut self, now: LocalTime, message: Message, out: &mut Actions<Self>) {
        match message {
            Message::Heard { beat } => {
                self.heard = now;
                let is_heard = |said: &Option<u64>| said.is_some_and(|said| said <= beat);
                self.settled.retain(|_, (_, said)| !is_heard(said));
            }
            Message::Taken { job } => self.stands(job, Stands::Queued),
            Message::Begun { job } => self.stands(job, Stands::Runs),
            Message::Unknown { job } => {
                if let Some(waiting) = self.job(job) {
                    waiting.stands = Stands::Unheard;
                    let spec = waiting.spec.clone();
                    self.submit(job.number, spec, out);
                }
            }
            Message::GoLocal { job, reason } => {
                if self.job(job).is_some()
                    && let Some(waiting) = self.waiting.remove(&job.number)
                {
                    out.reply(waiting.request, Answer::Local(reason));
                }
            }
            Message::Done { attempt, result } => self.done(attempt, result, out),
            _ => {} // nobody says this to a database
        }
    }

    /// The control plane said how far a job is.
    fn stands(&mut self, job: JobId, stands: Stands) {
        if let Some(waiting) = self.job(job) {
            waiting.stands = stands;
        }
    }

    /// The job, if it is one of this session that is waited for.
    fn job(&mut self, job: JobId) -> Option<&mut Waiting> {
        if job != self.id(job.number) {
            return None;
        }
        self.waiting.get_mut(&job.number)
    }

    fn done(&mut self, attempt: AttemptId, result: Arc<[u8]>, out: &mut Actions<Self>) {
        if self.job(attempt.job).is_some()
            && let Some(waiting) = self.waiting.remove(&attempt.job.number)
        {
            let is_new = self.unsettled.insert(attempt);
            assert!(is_new, "a job is answered with one result: {attempt}");
            out.reply(waiting.request, Answer::Done { attempt, result });
        }
        // Otherwise no thread waits for the job any more; the next `Alive` tells the control plane.
    }

    fn tick(&mut self, now: LocalTime, out: &mut Actions<Self>) {
        if self.is_away(now) {
            self.go_local(LocalReason::Away, |_| true, out);
        }
        self.go_local(LocalReason::Deadline, |job| job.deadline <= now, out);
        self.hedge(now, out);
        self.say_alive(out);
        let beat = self.options.beat;
        let forgotten = self
            .waiting
            .iter()
            .filter(|(_, job)| job.stands == Stands::Unheard && now.since(job.since) >= beat);
        let forgotten: Vec<_> = forgotten
            .map(|(number, job)| (*number, job.spec.clone()))
            .collect();
        for (number, spec) in forgotten {
            self.submit(number, spec, out);
        }
        out.set_timer(beat, Beat);
    }

    /// Hedges: when a stall is near, the database compacts jobs that relieve it. A job that a
    /// worker has begun stays there: starting it over locally, where it is slower, would only
    /// prolong the stall.
    fn hedge(&mut self, now: LocalTime, out: &mut Actions<Self>) {
        let hedge = self.options.hedge;
        let stalls_in = self.pressure.stalls_in_millis().map(Nanos::from_millis);
        if stalls_in.is_some_and(|left| left < hedge) {
            let relieves = |job: &Waiting| {
                let waits = job.stands != Stands::Runs && now.since(job.since) >= hedge;
                waits && job.spec.facts.start_level == 0
            };
            self.go_local(LocalReason::Hedge, relieves, out);
        }
    }

    fn say_alive(&mut self, out: &mut Actions<Self>) {
        self.beat += 1;
        for (_, said) in self.settled.values_mut() {
            said.get_or_insert(self.beat);
        }
        let settled = self.settled.iter();
        let unsettled = self.unsettled.iter().map(|attempt| attempt.job.number);
        let alive = Alive {
            database: self.database,
            session: self.session,
            beat: self.beat,
            weight: self.options.weight,
            pressure: self.pressure,
            waiting: self.waiting.keys().copied().chain(unsettled).collect(),
            next: self.next,
            settled: settled.map(|(id, (verdict, _))| (*id, *verdict)).collect(),
        };
        out.send(self.control, Message::Alive(alive));
    }
}

impl Core for Client {
    type Message = Message;
    type Timer = Beat;
    type Request = Ask;
    type Reply = Answer;
    type Record = ();

    fn step(&mut self, now: LocalTime, event: EventOf<Self>, out: &mut Actions<Self>) {
        match event {
            Event::Start => {
                self.heard = now;
                self.say_alive(out);
                out.set_timer(self.options.beat, Beat);
            }
            Event::Message { body, .. } => self.hear(now, body, out),
            Event::Timer(Beat) => self.tick(now, out),
            Event::Request { id, body } => match body {
                Ask::Compact(spec) => self.compact(now, id, spec, out),
                Ask::Settled { attempt, verdict } => {
                    if self.unsettled.remove(&attempt) {
                        let before = self.settled.insert(attempt, (verdict, None));
                        assert!(before.is_none(), "a result is settled once: {attempt}");
                        self.say_alive(out);
                    }
                }
                Ask::Pressure(pressure) => {
                    self.pressure = pressure;
                    self.hedge(now, out);
                }
                Ask::Close => {
                    self.is_closing = true;
                    self.go_local(LocalReason::Closing, |_| true, out);
                    self.say_alive(out);
                }
            },
            Event::Persisted(_) => {} // it writes nothing
        }
    }

    fn check(&self) -> Result<(), String> {
        let last = self.waiting.keys().next_back();
        ensure(last.is_none_or(|last| *last < self.next), || {
            format!("job {last:?} was not given out yet")
        })?;
        ensure(!self.waiting.contains_key(&0), || {
            "jobs are counted from 1".to_owned()
        })?;
        ensure(!self.is_closing || self.waiting.is_empty(), || {
            format!("it closes, and waits for {} jobs", self.waiting.len())
        })?;
        for (number, job) in &self.waiting {
            ensure(job.since <= job.deadline, || {
                format!("job {number} was late when it was asked for")
            })?;
        }
        let requests: BTreeSet<RequestId> = self.waiting.values().map(|job| job.request).collect();
        ensure(requests.len() == self.waiting.len(), || {
            format!("a request is answered by one job: {requests:?}")
        })?;
        let ended = || self.unsettled.iter().chain(self.settled.keys());
        let jobs: BTreeSet<u64> = ended().map(|attempt| attempt.job.number).collect();
        ensure(jobs.len() == ended().count(), || {
            format!("a job has one result: {jobs:?}")
        })?;
        for attempt in &self.unsettled {
            let job = attempt.job;
            ensure(job.number < self.next, || {
                format!("{attempt} is of a job that was not given out yet")
            })?;
            ensure(self.id(job.number) == job, || {
                format!("{attempt} is of another session")
            })?;
            ensure(!self.waiting.contains_key(&job.number), || {
                format!("job {job} is answered and waited for")
            })?;
            ensure(!self.settled.contains_key(attempt), || {
                format!("{attempt} is settled and is not")
            })?;
        }
        for (attempt, (_, said)) in &self.settled {
            ensure(self.id(attempt.job.number) == attempt.job, || {
                format!("{attempt} is settled, of another session")
            })?;
            ensure(!self.waiting.contains_key(&attempt.job.number), || {
                format!("{attempt} is settled, and its job is waited for")
            })?;
            ensure(attempt.job.number < self.next, || {
                format!("{attempt} is settled, of a job that was not given out yet")
            })?;
            ensure(said.is_none_or(|said| said <= self.beat), || {
                format!(
                    "{attempt} was said settled by beat {said:?} of {}",
                    self.beat
                )
            })?;
        }
        Ok(())
    }

    fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        digest.number(self.next);
        for number in self.waiting.keys() {
            digest.number(*number);
        }
        digest.value()
    }
}
