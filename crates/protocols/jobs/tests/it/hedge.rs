//! When a database takes back what it has asked for, because its writes are about to stop.
#![allow(clippy::unwrap_used, clippy::panic)]

use manxdb_core::{Action, Actions, Core, Event, EventOf, LocalTime, Nanos, NodeId, RequestId};
use manxdb_jobs::client::ClientOptions;
use manxdb_jobs::job::{DatabaseId, Facts, JobId, LocalReason, Pressure, SessionId, Spec};
use manxdb_jobs::{Answer, Ask, Client, Message};

const CONTROL: NodeId = NodeId(0);

/// A database that has asked for a compaction of level 0.
struct Asked {
    client: Client,
    job: JobId,
    now: LocalTime,
}

impl Asked {
    fn new() -> Self {
        let (database, session) = (DatabaseId(1), SessionId(2));
        let options = ClientOptions::default();
        let mut asked = Self {
            client: Client::new(database, session, CONTROL, options),
            job: JobId {
                database,
                session,
                number: 1,
            },
            now: LocalTime(1_000_000_000),
        };
        asked.step(Event::Start);
        asked.ask(Ask::Compact(Spec {
            facts: Facts {
                start_level: 0,
                bytes: 512 << 20,
                ..Facts::default()
            },
            ..Spec::default()
        }));
        asked
    }

    fn step(&mut self, event: EventOf<Client>) -> Vec<Answer> {
        let mut out = Actions::default();
        self.client.step(self.now, event, &mut out);
        let replies = out.drain().filter_map(|action| match action {
            Action::Reply { body, .. } => Some(body),
            _ => None,
        });
        replies.collect()
    }

    fn ask(&mut self, body: Ask) -> Vec<Answer> {
        let id = RequestId(7);
        self.step(Event::Request { id, body })
    }

    fn hear(&mut self, body: Message) {
        let from = CONTROL;
        assert_eq!(self.step(Event::Message { from, body }), []);
    }

    /// Two seconds later writes are about to stop.
    fn about_to_stall(&mut self) -> Vec<Answer> {
        self.now = self.now + Nanos::from_secs(2);
        self.ask(Ask::Pressure(Pressure {
            files: 36,
            files_stall: 36,
            files_hour: 9_000,
        }))
    }
}

#[test]
fn what_still_waits_for_a_worker_is_taken_back_before_writes_stop() {
    let mut asked = Asked::new();
    asked.hear(Message::Taken { job: asked.job });
    let answers = asked.about_to_stall();
    assert_eq!(answers, [Answer::Local(LocalReason::Hedge)]);
}

#[test]
fn what_a_worker_has_begun_is_left_to_it() {
    let mut asked = Asked::new();
    asked.hear(Message::Taken { job: asked.job });
    asked.hear(Message::Begun { job: asked.job });
    assert_eq!(asked.about_to_stall(), []);
}

#[test]
fn what_a_worker_has_lost_is_taken_back_again() {
    let mut asked = Asked::new();
    asked.hear(Message::Begun { job: asked.job });
    asked.hear(Message::Taken { job: asked.job });
    let answers = asked.about_to_stall();
    assert_eq!(answers, [Answer::Local(LocalReason::Hedge)]);
}
