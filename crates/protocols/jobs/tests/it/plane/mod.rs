//! The control plane alone: what it hears, its disk, and what it says.
#![allow(dead_code)] // no test file needs all of it
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use manxdb_core::{Action, Actions, Core, Event, LocalTime, Nanos, NodeId};
use manxdb_jobs::control::Tick;
use manxdb_jobs::job::{
    AttemptId, DatabaseId, Facts, Fingerprint, JobId, Pressure, SessionId, Spec, WorkerId,
};
use manxdb_jobs::message::{Ability, Alive, Beat, Ended, OutputVerdict, Progress};
use manxdb_jobs::record::{Durable, Record};
use manxdb_jobs::{Control, Message, Options};

pub const GIB: u64 = 1 << 30;

/// A control plane, its disk, and what it said.
pub struct Plane {
    pub control: Control,
    pub options: Options,
    pub now: LocalTime,
    pub disk: Vec<Record>,
    pub said: Vec<(NodeId, Message)>,
    pub beats: u64,
    pub starts: u64,
}

impl Plane {
    pub fn new(options: Options) -> Self {
        let mut plane = Self {
            control: Control::new(options, 1, Durable::default()),
            options,
            now: LocalTime(1_000_000_000_000),
            disk: Vec::new(),
            said: Vec::new(),
            beats: 0,
            starts: 1,
        };
        plane.step(Event::Start);
        plane
    }

    /// Ends the process and starts it again over its disk.
    pub fn restart(&mut self) {
        self.starts += 1;
        let durable = Durable::of(self.disk.iter().cloned());
        self.control = Control::new(self.options, self.starts, durable);
        self.step(Event::Start);
    }

    pub fn step(&mut self, event: Event<Message, Tick, ()>) {
        let mut out = Actions::default();
        self.control.step(self.now, event, &mut out);
        self.control.check().unwrap();
        let mut safe = None;
        for action in out.drain() {
            match action {
                Action::Send { to, body } => self.said.push((to, body)),
                Action::Persist { record, token } => {
                    self.disk.push(record);
                    safe = Some(token);
                }
                _ => {}
            }
        }
        if let Some(token) = safe {
            self.step(Event::Persisted(token));
        }
    }

    pub fn hear(&mut self, from: NodeId, body: Message) {
        self.step(Event::Message { from, body });
    }

    pub fn pass(&mut self, span: Nanos) {
        self.now = self.now + span;
        self.step(Event::Timer(Tick));
    }

    pub fn said(&mut self) -> Vec<(NodeId, Message)> {
        std::mem::take(&mut self.said)
    }

    /// A worker says that it is there, with what it runs.
    pub fn beat(&mut self, worker: u64, ability: Ability, running: &[AttemptId], seen: u64) {
        self.beats += 1;
        let beat = Beat {
            worker: WorkerId(worker),
            beat: self.beats,
            seen,
            ability,
            running: running
                .iter()
                .map(|attempt| (*attempt, Progress::default()))
                .collect(),
            ended: Vec::new(),
            drains: false,
            total: Progress::default(),
        };
        self.hear(worker_node(worker), Message::Beat(beat));
    }

    pub fn alive(&mut self, job: JobId, waiting: &[u64], pressure: Pressure) {
        self.alive_with(job, waiting, pressure, Vec::new());
    }

    /// A database says that it is there, and what became of results.
    pub fn alive_with(
        &mut self,
        job: JobId,
        waiting: &[u64],
        pressure: Pressure,
        settled: Vec<(AttemptId, OutputVerdict)>,
    ) {
        self.say_alive(Alive {
            pressure,
            waiting: waiting.to_vec(),
            next: waiting.iter().max().map_or(1, |last| last + 1),
            settled,
            ..alive(job)
        });
    }

    /// A database says that it is there, and what share it wants.
    pub fn alive_weighing(&mut self, job: JobId, weight: u32, pressure: Pressure) {
        self.say_alive(Alive {
            weight,
            pressure,
            ..alive(job)
        });
    }

    fn say_alive(&mut self, alive: Alive) {
        self.beats += 1;
        let job = job(alive.database.0, alive.session.0, 1);
        let beat = self.beats;
        let alive = Alive { beat, ..alive };
        self.hear(database_node(job), Message::Alive(alive));
    }

    pub fn submit(&mut self, job: JobId, facts: Facts) {
        let spec = Spec {
            facts,
            input: job.to_string().into_bytes().into(),
        };
        self.hear(database_node(job), Message::Submit { job, spec });
    }

    /// The attempts that were given out since it was last asked.
    pub fn runs(&mut self) -> Vec<(u64, AttemptId)> {
        let said = self.said();
        let run = |(_, message): &(NodeId, Message)| match message {
            Message::Run {
                worker, attempt, ..
            } => Some((worker.0, *attempt)),
            _ => None,
        };
        said.iter().filter_map(run).collect()
    }

    pub fn end(&mut self, worker: u64, attempt: AttemptId, end: Ended) {
        let ended = Message::Ended {
            worker: WorkerId(worker),
            attempt,
            end,
        };
        self.hear(worker_node(worker), ended);
    }
}

pub fn worker_node(worker: u64) -> NodeId {
    NodeId(u32::try_from(worker).unwrap())
}

pub fn database_node(job: JobId) -> NodeId {
    NodeId(1_000 + u32::try_from(job.database.0).unwrap())
}

/// A database that has nothing to say.
fn alive(job: JobId) -> Alive {
    Alive {
        database: job.database,
        session: job.session,
        beat: 0,
        weight: 1,
        pressure: Pressure::default(),
        waiting: Vec::new(),
        next: 1,
        settled: Vec::new(),
    }
}

pub fn job(database: u64, session: u64, number: u64) -> JobId {
    JobId {
        database: DatabaseId(database),
        session: SessionId(session),
        number,
    }
}

/// A job of database 1, running at worker 7.
pub fn one_that_runs() -> (Plane, JobId, AttemptId) {
    let mut plane = Plane::new(Options::default());
    let id = job(1, 1, 1);
    plane.beat(7, able(1), &[], 0);
    plane.alive(id, &[], Pressure::default());
    plane.submit(id, Facts::default());
    let attempt = plane.runs()[0].1;
    (plane, id, attempt)
}

pub fn able(slots: u32) -> Ability {
    Ability {
        fingerprints: vec![Fingerprint::default()],
        slots,
        bytes_second: 64 << 20,
        memory: 8 * GIB,
        ..Ability::default()
    }
}

pub fn finished() -> Ended {
    Ended::Finished(Arc::from(&b"outputs"[..]))
}
