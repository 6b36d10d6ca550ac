//! A control plane alone with its store, step by step.

use std::sync::Arc;

use manxdb_core::{
    Action, Actions, Core as _, Event, EventOf, LocalTime, Message as _, Nanos, NodeId,
};
use manxdb_jobs::contender::{Contender, When, Word};
use manxdb_jobs::election::{FromStore, Term};
use manxdb_jobs::{Lease, Message};

use crate::pair::world::{LEASE, STORE};

struct Script {
    plane: Contender,
    out: Vec<(NodeId, Word)>,
    /// After how long it wants to ask the store again.
    again: Nanos,
}

const DATABASE: NodeId = NodeId(9);

impl Script {
    fn new() -> Self {
        Self::with(LEASE)
    }

    fn with(lease: Lease) -> Self {
        let options = manxdb_jobs::Options::default();
        let name = "a:1".to_owned();
        let plane = Contender::several(options, lease, name, STORE, 1);
        let mut script = Self {
            plane,
            out: Vec::new(),
            again: Nanos::ZERO,
        };
        script.step(0, Event::Start);
        script
    }

    fn step(&mut self, millis: u64, event: EventOf<Contender>) {
        let mut out = Actions::default();
        let now = LocalTime(1) + Nanos::from_millis(millis);
        self.plane.step(now, event, &mut out);
        self.plane.check().unwrap();
        for action in out.drain() {
            match action {
                Action::Send { to, body } => self.out.push((to, body)),
                Action::SetTimer {
                    after,
                    timer: When::Again,
                } => self.again = after,
                _ => {}
            }
        }
    }

    fn store(&mut self, millis: u64, word: FromStore) {
        let (from, body) = (STORE, Word::FromStore(word));
        self.step(millis, Event::Message { from, body });
    }

    fn elected(&mut self, millis: u64, number: u64) {
        let word = FromStore::Elected {
            number,
            term: Term(7),
            durable: Arc::default(),
        };
        self.store(millis, word);
    }

    fn labels(&self) -> Vec<&'static str> {
        self.out.iter().map(|(_, word)| word.label()).collect()
    }

    /// A database asks for a compaction; what was said before is forgotten.
    fn submits(&mut self, millis: u64) {
        self.out.clear();
        let job = manxdb_jobs::JobId {
            database: manxdb_jobs::DatabaseId(1),
            session: manxdb_jobs::SessionId(1),
            number: 1,
        };
        let submit = Message::Submit {
            job,
            spec: manxdb_jobs::Spec::default(),
        };
        let (from, body) = (DATABASE, Word::Pool(submit));
        self.step(millis, Event::Message { from, body });
    }

    /// A database says that it is there; whether it is refused.
    fn refuses(&mut self, millis: u64, beat: u64) -> bool {
        self.out.clear();
        let alive = manxdb_jobs::message::Alive {
            database: manxdb_jobs::DatabaseId(1),
            session: manxdb_jobs::SessionId(1),
            beat,
            weight: 1,
            pressure: manxdb_jobs::job::Pressure::default(),
            waiting: Vec::new(),
            next: 1,
            settled: Vec::new(),
        };
        let (from, body) = (DATABASE, Word::Pool(Message::Alive(alive)));
        self.step(millis, Event::Message { from, body });
        let labels = self.labels();
        assert_eq!(labels.contains(&"heard"), !labels.contains(&"not leader"));
        labels.contains(&"not leader")
    }
}

#[test]
fn who_is_not_elected_answers_nobody() {
    let mut script = Script::new();
    assert_eq!(script.out[0].1.label(), "campaign");
    assert!(script.refuses(10, 1));
    let leader = "b:1".to_owned();
    script.store(20, FromStore::Taken { number: 1, leader });
    assert!(script.refuses(30, 2));
    let refusal = script.out.first().unwrap();
    assert!(matches!(
        refusal,
        (DATABASE, Word::Pool(Message::NotLeader { leader })) if leader == "b:1"
    ));
}

#[test]
fn a_leader_serves_until_a_margin_before_its_lease_ends_counted_from_its_asking() {
    let mut script = Script::new();
    script.elected(900, 1);
    assert!(!script.refuses(3_999, 1));
    assert!(script.refuses(4_000, 2));
}

#[test]
fn a_renewal_counts_from_when_it_was_asked_for() {
    let mut script = Script::new();
    script.elected(10, 1);
    script.step(1_000, Event::Timer(When::Again));
    let (number, term) = (2, Term(7));
    script.store(3_500, FromStore::Renewed { number, term });
    assert!(!script.refuses(4_999, 1));
    assert!(script.refuses(5_000, 2));
}

#[test]
fn an_election_that_took_longer_than_the_lease_is_given_back() {
    let mut script = Script::new();
    script.elected(4_000, 1);
    assert!(script.refuses(4_001, 1));
    let mut script = Script::new();
    script.out.clear();
    script.elected(4_000, 1);
    assert_eq!(script.out[0].1.label(), "resign");
}

#[test]
fn whoever_was_heard_is_told_when_its_leader_steps_down() {
    let mut script = Script::new();
    script.elected(10, 1);
    assert!(!script.refuses(20, 1));
    script.out.clear();
    script.store(30, FromStore::Deposed { term: Term(7) });
    let refusal = |(to, word): &(NodeId, Word)| *to == DATABASE && word.label() == "not leader";
    assert!(script.out.iter().any(refusal), "{:?}", script.out);
    assert!(script.refuses(40, 2));
}

#[test]
fn nothing_is_said_before_the_store_has_taken_it() {
    let mut script = Script::new();
    script.elected(10, 1);
    assert!(!script.refuses(20, 1));
    script.submits(30);
    assert_eq!(script.labels(), ["write"]);
    // It is sent again as long as the store does not say that it has it.
    script.step(1_040, Event::Timer(When::Again));
    assert_eq!(script.labels(), ["write", "write", "renew"]);
    let (term, through) = (Term(7), 1);
    script.store(1_050, FromStore::Written { term, through });
    assert_eq!(script.labels()[3..], ["taken"]);
}

#[test]
fn a_write_without_an_answer_is_sent_again_soon_however_long_the_lease_is() {
    for seconds in [2, 5, 60] {
        let mut script = Script::with(Lease::of(Nanos::from_secs(seconds)));
        script.elected(10, 1);
        assert!(!script.refuses(20, 1));
        script.submits(30);
        let mut now = 30;
        while script
            .labels()
            .iter()
            .filter(|label| **label == "write")
            .count()
            < 2
        {
            now += script.again.0 / 1_000_000;
            assert!(
                now < 3_000,
                "a lease of {seconds} s: databases think that nobody is there"
            );
            script.step(now, Event::Timer(When::Again));
        }
    }
}
