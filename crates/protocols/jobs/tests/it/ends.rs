//! What ends with a worker or a lease, and does so once: what a banned worker has, how long a job was
//! without a worker, the end of draining.
#![allow(clippy::unwrap_used, clippy::panic)]

use manxdb_core::{
    Action, ActionOf, Actions, Core as _, Event, EventOf, LocalTime, Nanos, NodeId, RequestId,
};
use manxdb_jobs::job::{AttemptId, Facts, FailureClass, LocalReason, Pressure, WorkerId};
use manxdb_jobs::message::{Ended, OutputVerdict};
use manxdb_jobs::worker::{Given, SlotAsk, Worker};
use manxdb_jobs::{Message, Options};

use crate::plane::{Plane, able, database_node, finished, job, worker_node};

/// The control plane has started again, and the worker has not been heard of since: nobody but its
/// jobs says what it has.
#[test]
fn a_worker_banned_after_a_restart_loses_what_it_had_before_it() {
    let mut plane = Plane::new(Options::default());
    plane.beat(7, able(2), &[], 0);
    for id in [job(1, 1, 1), job(2, 1, 1)] {
        plane.alive(id, &[], Pressure::default());
        plane.submit(id, Facts::default());
    }
    let runs = plane.runs();
    let (first, second) = (runs[0].1, runs[1].1);
    plane.end(7, first, finished());
    plane.restart();
    let refused = vec![(first, OutputVerdict::Refused)];
    plane.alive_with(first.job, &[1], Pressure::default(), refused);
    plane.said();
    plane.end(7, second, finished());
    let stop = Message::Stop { attempt: second };
    assert_eq!(plane.said(), [(worker_node(7), stop)]);
    assert_eq!(plane.control.counts().done, 0);
}

/// The ban is on disk, and the process died before it wrote what followed.
#[test]
fn a_control_plane_that_starts_takes_from_banned_workers_what_they_have() {
    let mut plane = Plane::new(Options::default());
    plane.beat(7, able(1), &[], 0);
    plane.alive(job(1, 1, 1), &[], Pressure::default());
    plane.submit(job(1, 1, 1), Facts::default());
    let attempt = plane.runs()[0].1;
    let worker = WorkerId(7);
    plane
        .disk
        .push(manxdb_jobs::record::Record::Banned { worker });
    plane.restart();
    assert_eq!(plane.control.counts().lost, 1);
    plane.end(7, attempt, finished());
    assert_eq!(plane.control.counts().done, 0);
}

#[test]
fn a_job_that_ran_waits_anew_for_a_worker_that_fits() {
    let mut plane = Plane::new(Options::default());
    let id = job(1, 1, 1);
    plane.alive(id, &[], Pressure::default());
    plane.submit(id, Facts::default());
    plane.pass(Nanos::from_millis(1_000));
    plane.beat(7, able(1), &[], 0);
    let attempt = plane.runs()[0].1;
    plane.pass(Nanos::from_millis(2_500));
    plane.end(7, attempt, Ended::Failed(FailureClass::Declined));
    let home = Message::GoLocal {
        job: id,
        reason: LocalReason::NoWorker,
    };
    let home = (database_node(id), home);
    plane.said();
    plane.pass(Nanos::from_millis(600));
    assert!(
        !plane.said().contains(&home),
        "it was without one for 600 ms"
    );
    plane.pass(Nanos::from_millis(3_000));
    assert!(plane.said().contains(&home));
}

/// A request has at most one reply.
#[test]
fn whoever_drains_a_worker_hears_once_that_nothing_is_left() {
    let mut worker = Worker::new(WorkerId(7), NodeId(0), Nanos::from_millis(500), able(1));
    let mut drained = |event: EventOf<Worker>| {
        let mut out = Actions::default();
        worker.step(LocalTime(1_000_000_000), event, &mut out);
        assert_eq!(worker.check(), Ok(()));
        let is_drained = |action: &ActionOf<Worker>| {
            matches!(
                action,
                Action::Reply {
                    body: Given::Drained,
                    ..
                }
            )
        };
        out.drain().filter(is_drained).count()
    };
    assert_eq!(drained(Event::Start), 0);
    let drain = Event::Request {
        id: RequestId(1),
        body: SlotAsk::Drain,
    };
    assert_eq!(drained(drain), 1);
    let attempt = AttemptId::default();
    for body in [Message::Stop { attempt }, Message::Recorded { attempt }] {
        let from = NodeId(0);
        assert_eq!(drained(Event::Message { from, body }), 0);
    }
}
