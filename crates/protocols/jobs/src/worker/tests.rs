//! The check of a worker finds each planted fault.

use std::sync::Arc;

use super::*;

/// It runs one attempt and has another without a slot.
fn running() -> Worker {
    let control = NodeId(1);
    let every = Nanos::from_millis(500);
    let mut worker = Worker::new(WorkerId(9), control, every, Ability::default());
    let mut out = Actions::default();
    worker.step(LocalTime(1), Event::Start, &mut out);
    let body = SlotAsk::Next;
    let id = RequestId(10);
    worker.step(LocalTime(1), Event::Request { id, body }, &mut out);
    for number in [1, 2] {
        let body = Message::Run {
            worker: WorkerId(9),
            order: u64::from(number),
            attempt: attempt(number),
            spec: Spec::default(),
            lease: Nanos::from_secs(5),
        };
        worker.step(
            LocalTime(2),
            Event::Message {
                from: control,
                body,
            },
            &mut out,
        );
    }
    assert_eq!(worker.check(), Ok(()));
    assert_eq!((worker.running(), worker.pending.len()), (2, 1));
    worker
}

fn attempt(number: u32) -> AttemptId {
    AttemptId {
        number,
        ..AttemptId::default()
    }
}

fn end() -> Ended {
    Ended::Finished(Arc::default())
}

#[test]
fn an_attempt_that_ended_and_runs_is_found_out() {
    let faults: [(fn(&mut Worker), &str); 5] = [
        (
            |it| drop(it.ended.insert(attempt(1), end())),
            "ended and runs",
        ),
        (|it| it.pending.push_back(attempt(3)), "does not run"),
        (|it| it.pending.push_back(attempt(2)), "waits for two slots"),
        (|it| it.idle.push_back(RequestId(11)), "have nothing to do"),
        (
            |it| {
                for running in it.running.values_mut() {
                    running.watch = Some(RequestId(12));
                }
            },
            "waits for two answers",
        ),
    ];
    for (fault, name) in faults {
        let mut worker = running();
        fault(&mut worker);
        let found = worker.check().unwrap_err();
        assert!(found.contains(name), "{found}");
    }
}
