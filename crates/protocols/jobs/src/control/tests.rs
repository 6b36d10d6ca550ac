//! The check of a control plane finds each planted fault.

use manxdb_core::Token;

use super::*;
use crate::job::{Fingerprint, Pressure, Spec};
use crate::message::{Ability, Alive, Beat, Progress};

const DATABASE: DatabaseId = DatabaseId(7);
const SESSION: SessionId = SessionId(70);
const WORKER: WorkerId = WorkerId(9);

fn job(number: u64) -> JobId {
    JobId {
        database: DATABASE,
        session: SESSION,
        number,
    }
}

/// With a worker of one slot: job 1 is leased to it, job 2 waits.
fn serving() -> Control {
    let mut control = Control::new(Options::default(), 1, Durable::default());
    let mut out = Actions::default();
    control.step(LocalTime(1), Event::Start, &mut out);
    let beat = Beat {
        worker: WORKER,
        beat: 1,
        seen: 0,
        ability: Ability {
            fingerprints: vec![Fingerprint::default()],
            slots: 1,
            memory: 1 << 40,
            ..Ability::default()
        },
        running: Vec::new(),
        ended: Vec::new(),
        drains: false,
        total: Progress::default(),
    };
    let alive = Alive {
        database: DATABASE,
        session: SESSION,
        beat: 1,
        weight: 1,
        pressure: Pressure::default(),
        waiting: vec![1, 2],
        next: 3,
        settled: Vec::new(),
    };
    let submit = |number| Message::Submit {
        job: job(number),
        spec: Spec::default(),
    };
    for (from, body) in [
        (2, Message::Beat(beat)),
        (1, Message::Alive(alive)),
        (1, submit(1)),
        (1, submit(2)),
    ] {
        let from = NodeId(from);
        control.step(LocalTime(2), Event::Message { from, body }, &mut out);
    }
    assert_eq!(control.check(), Ok(()));
    assert!(matches!(control.jobs[&job(1)].state, State::Leased { .. }));
    assert!(control.jobs[&job(2)].is_waiting());
    control
}

fn attempt(control: &Control) -> AttemptId {
    let leased = &control.workers[&WORKER].leased;
    leased.keys().next().copied().unwrap()
}

type Fault = fn(&mut Control);

#[test]
fn what_jobs_workers_and_databases_say_of_each_other_is_compared() {
    let faults: [(Fault, &str); 14] = [
        (|it| it.sessions.clear(), "the database of job"),
        (|it| job_1(it).failures = 2, "failed 2 times"),
        (|it| _ = job_1(it).causes.insert((1, WORKER)), "fails again"),
        (
            |it| job_1(it).avoids.extend([WorkerId(1), WorkerId(2)]),
            "never had it",
        ),
        (|it| job_1(it).deferred = 1, "puts off none"),
        (|it| job_1(it).attempts = 2, "the present one of 2"),
        (
            |it| job_1(it).failures = 1,
            "has failed, and is the present one",
        ),
        (|it| worker(it).leased.clear(), "is missing at its worker"),
        (
            |it| _ = it.banned.insert(WORKER),
            "is banned, and gets jobs",
        ),
        (
            |it| job_1(it).state = State::Waiting,
            "whose job says otherwise",
        ),
        (|it| _ = it.strikes.insert(WorkerId(1), 1), "ban a worker"),
        (|it| session(it).weight = 0, "counts for nothing"),
        (|it| session(it).lately = u64::MAX, "of"),
        (
            |it| {
                let attempt = attempt(it);
                worker(it).leased.insert(attempt, 5);
            },
            "by order 5 of 1",
        ),
    ];
    for (fault, name) in faults {
        let mut control = serving();
        fault(&mut control);
        let found = control.check().unwrap_err();
        assert!(found.contains(name), "{found}");
    }
}

#[test]
fn what_the_store_has_is_compared() {
    let faults: [(fn(&mut Durable), &str); 5] = [
        (|it| drop(it.jobs.pop_last()), "the store has 1 jobs of 2"),
        (|it| stored_1(it).attempts = 0, "counts 1 attempts"),
        (
            |it| stored_1(it).reached = Reached::Waiting,
            "another state",
        ),
        (|it| _ = it.banned.insert(WORKER), "the store bans"),
        (|it| it.accounts.clear(), "has accounts of"),
    ];
    for (fault, name) in faults {
        let mut control = serving();
        fault(control.stored.as_mut().unwrap());
        let found = control.check().unwrap_err();
        assert!(found.contains(name), "{found}");
    }
}

#[test]
fn messages_that_wait_for_what_is_on_disk_are_found_out() {
    let mut control = serving();
    let last = control.outbox.tokens();
    control
        .outbox
        .persisted(Token(last), &mut Actions::default());
    assert_eq!(control.check(), Ok(()));
    control.outbox.hold(Token(last));
    assert!(control.check().unwrap_err().contains("which is on disk"));
}

fn job_1(control: &mut Control) -> &mut Job {
    control.jobs.get_mut(&job(1)).unwrap()
}

fn worker(control: &mut Control) -> &mut Worker {
    control.workers.get_mut(&WORKER).unwrap()
}

fn session(control: &mut Control) -> &mut Session {
    control.sessions.get_mut(&DATABASE).unwrap()
}

fn stored_1(durable: &mut Durable) -> &mut crate::record::Stored {
    durable.jobs.get_mut(&job(1)).unwrap()
}
