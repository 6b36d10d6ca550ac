//! The check of a database finds each planted fault.

use super::*;

/// It waits for job 1 and has a result of job 2.
fn waiting() -> Client {
    let options = ClientOptions::default();
    let mut client = Client::new(DatabaseId(7), SessionId(70), NodeId(1), options);
    let mut out = Actions::default();
    client.step(LocalTime(1), Event::Start, &mut out);
    for id in [RequestId(10), RequestId(11)] {
        let body = Ask::Compact(Spec::default());
        client.step(LocalTime(2), Event::Request { id, body }, &mut out);
    }
    let attempt = attempt(&client, 2);
    client.done(attempt, Arc::default(), &mut out);
    assert_eq!(client.check(), Ok(()));
    client
}

fn attempt(client: &Client, number: u64) -> AttemptId {
    AttemptId {
        job: client.id(number),
        number: 1,
        token: 5,
    }
}

#[test]
fn a_database_that_waits_for_what_is_answered_is_found_out() {
    let faults: [(fn(&mut Client), &str); 6] = [
        (|it| it.next = 1, "was not given out yet"),
        (|it| it.is_closing = true, "it closes, and waits"),
        (|it| it.settle_again(2), "two results"),
        (
            |it| it.wait_again(RequestId(10), 3),
            "a request waits for two jobs",
        ),
        (
            |it| it.wait_again(RequestId(12), 2),
            "answered and waited for",
        ),
        (
            |it| {
                let other = JobId::default();
                let attempt = AttemptId {
                    job: other,
                    ..AttemptId::default()
                };
                it.unsettled.insert(attempt);
            },
            "of another session",
        ),
    ];
    for (fault, name) in faults {
        let mut client = waiting();
        fault(&mut client);
        let found = client.check().unwrap_err();
        assert!(found.contains(name), "{found}");
    }
}

impl Client {
    /// As if a second result of a job were settled.
    fn settle_again(&mut self, number: u64) {
        let attempt = AttemptId {
            number: 2,
            ..attempt(self, number)
        };
        self.settled
            .insert(attempt, (OutputVerdict::Installed, None));
    }

    /// As if a job were asked for by a request.
    fn wait_again(&mut self, request: RequestId, number: u64) {
        let waiting = Waiting {
            request,
            spec: Spec::default(),
            stands: Stands::Queued,
            since: LocalTime(2),
            deadline: LocalTime(3),
        };
        self.next = self.next.max(number + 1);
        self.waiting.insert(number, waiting);
    }
}
