//! Streams and their groups against a model of lists.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use manxdb_redis::keyspace::Kind;
use manxdb_redis::server::{ClientId, Server, Settings};
use manxdb_redis::{Command, Keyspace, Reply, Stamp, execute};
use proptest::prelude::*;

/// A stream as a list, and a group as who got what.
#[derive(Default)]
struct Model {
    entries: Vec<(u64, String)>,
    last: u64,
    delivered: u64,
    pending: BTreeMap<u64, (String, u64)>,
}

#[derive(Debug, Clone)]
enum Step {
    Add(u64, String),
    Delete(u64),
    Keep(usize),
    Read(String, usize),
    Again(String, u64),
    Done(u64),
    Claim(String, u64),
    Range(u64, u64),
    Leave(String),
}

fn steps() -> impl Strategy<Value = Step> {
    let consumer = || "[cd]";
    prop_oneof![
        3 => (0..40_u64, "[a-z]{1,3}").prop_map(|(n, v)| Step::Add(n, v)),
        1 => (0..40_u64).prop_map(Step::Delete),
        1 => (0..12_usize).prop_map(Step::Keep),
        2 => (consumer(), 1..4_usize).prop_map(|(c, n)| Step::Read(c, n)),
        1 => (consumer(), 0..40_u64).prop_map(|(c, n)| Step::Again(c, n)),
        1 => (0..40_u64).prop_map(Step::Done),
        1 => (consumer(), 0..40_u64).prop_map(|(c, n)| Step::Claim(c, n)),
        1 => (0..40_u64, 0..40_u64).prop_map(|(a, b)| Step::Range(a, b)),
        1 => consumer().prop_map(Step::Leave),
    ]
}

fn id(number: u64) -> Reply {
    Reply::bulk(format!("{number}-0"))
}

fn entry((number, value): &(u64, String)) -> Reply {
    let fields = vec![Reply::bulk("f"), Reply::bulk(value)];
    Reply::Array(vec![id(*number), Reply::Array(fields)])
}

impl Model {
    fn get(&self, number: u64) -> Option<&(u64, String)> {
        self.entries.iter().find(|(at, _)| *at == number)
    }

    fn shown(found: &[(u64, String)]) -> Reply {
        Reply::Array(found.iter().map(entry).collect())
    }

    fn streams(found: Vec<Reply>) -> Reply {
        Reply::MapOrPairs(vec![(Reply::bulk("s"), Reply::Array(found))])
    }

    /// The words of a step, and what is to be answered; `None`: an error.
    fn step(&mut self, step: &Step) -> (String, Option<Reply>) {
        match step {
            Step::Add(number, value) => {
                let words = format!("XADD s {number} f {value}");
                if *number <= self.last {
                    return (words, None);
                }
                self.last = *number;
                self.entries.push((*number, value.clone()));
                (words, Some(id(*number)))
            }
            Step::Delete(number) => {
                let before = self.entries.len();
                self.entries.retain(|(at, _)| at != number);
                let deleted = before - self.entries.len();
                (format!("XDEL s {number}"), Some(Reply::count(deleted)))
            }
            Step::Keep(length) => {
                let excess = self.entries.len().saturating_sub(*length);
                self.entries.drain(..excess);
                let words = format!("XTRIM s MAXLEN = {length}");
                (words, Some(Reply::count(excess)))
            }
            Step::Read(consumer, count) => {
                let words = format!("XREADGROUP GROUP g {consumer} COUNT {count} STREAMS s >");
                let new = self.entries.iter().filter(|(at, _)| *at > self.delivered);
                let found: Vec<(u64, String)> = new.take(*count).cloned().collect();
                for (number, _) in &found {
                    self.delivered = *number;
                    self.pending.insert(*number, (consumer.clone(), 1));
                }
                let replies: Vec<Reply> = found.iter().map(entry).collect();
                if replies.is_empty() {
                    return (words, Some(Reply::NullArray));
                }
                (words, Some(Self::streams(replies)))
            }
            Step::Again(consumer, after) => {
                let words = format!("XREADGROUP GROUP g {consumer} STREAMS s {after}");
                let its = self.pending.range_mut(after + 1..);
                let mut numbers = Vec::new();
                for (number, (owner, count)) in its {
                    if owner == consumer {
                        let is_there = self.entries.iter().any(|(at, _)| at == number);
                        *count += u64::from(is_there);
                        numbers.push(*number);
                    }
                }
                let replies = numbers.into_iter().map(|number| match self.get(number) {
                    Some(found) => entry(found),
                    None => Reply::Array(vec![id(number), Reply::NullArray]),
                });
                (words, Some(Self::streams(replies.collect())))
            }
            Step::Done(number) => {
                let was_pending = self.pending.remove(number).is_some();
                (format!("XACK s g {number}"), Some(Reply::flag(was_pending)))
            }
            Step::Claim(consumer, number) => {
                let words = format!("XCLAIM s g {consumer} 0 {number}");
                let Some(found) = self.get(*number).cloned() else {
                    self.pending.remove(number);
                    return (words, Some(Reply::Array(Vec::new())));
                };
                let Some((owner, count)) = self.pending.get_mut(number) else {
                    return (words, Some(Reply::Array(Vec::new())));
                };
                (*owner, *count) = (consumer.clone(), *count + 1);
                (words, Some(Reply::Array(vec![entry(&found)])))
            }
            Step::Range(start, end) => {
                let found = self.entries.iter();
                let found = found.filter(|(at, _)| at >= start && at <= end);
                let found: Vec<(u64, String)> = found.cloned().collect();
                (format!("XRANGE s {start} {end}"), Some(Self::shown(&found)))
            }
            Step::Leave(consumer) => {
                let before = self.pending.len();
                self.pending.retain(|_, (owner, _)| owner != consumer);
                let left = before - self.pending.len();
                let words = format!("XGROUP DELCONSUMER s g {consumer}");
                (words, Some(Reply::count(left)))
            }
        }
    }

    fn pending_reply(&self) -> Reply {
        let shown = self.pending.iter().map(|(number, (owner, count))| {
            Reply::Array(vec![
                id(*number),
                Reply::bulk(owner),
                Reply::Integer(0),
                Reply::Integer(i64::try_from(*count).unwrap()),
            ])
        });
        Reply::Array(shown.collect())
    }
}

fn run(keyspace: &mut Keyspace, words: &str) -> Reply {
    let words: Vec<&str> = words.split(' ').collect();
    execute(keyspace, 0, &Command::of(&words), Stamp::new(1000, 1)).0
}

proptest! {
    #[test]
    fn a_stream_is_a_list_and_a_group_knows_who_got_what(
        steps in prop::collection::vec(steps(), 1..60),
    ) {
        let mut keyspace = Keyspace::new();
        let mut model = Model::default();
        run(&mut keyspace, "XGROUP CREATE s g 0 MKSTREAM");
        for step in &steps {
            let (words, expected) = model.step(step);
            let found = run(&mut keyspace, &words);
            match expected {
                Some(expected) => prop_assert_eq!(found, expected, "{}", words),
                None => prop_assert!(found.is_error(), "{}", words),
            }
            let pending = run(&mut keyspace, "XPENDING s g - + 100");
            prop_assert_eq!(pending, model.pending_reply(), "{}", words);
            let length = Reply::count(model.entries.len());
            prop_assert_eq!(run(&mut keyspace, "XLEN s"), length);
            prop_assert_eq!(keyspace.memory(), keyspace.recounted_memory());
            let kinds = Kind::ALL.map(|kind| keyspace.keys_of(kind));
            prop_assert_eq!(kinds, keyspace.recounted_kinds());
        }
    }
}

#[test]
fn an_automatic_id_is_never_below_one_before() {
    let mut keyspace = Keyspace::new();
    let mut add = |now: u64| {
        let command = Command::of(&["XADD", "s", "*", "f", "v"]);
        execute(&mut keyspace, 0, &command, Stamp::new(now, 1)).0
    };
    assert_eq!(add(5), Reply::bulk("5-0"));
    assert_eq!(add(5), Reply::bulk("5-1"));
    // The clock went back.
    assert_eq!(add(3), Reply::bulk("5-2"));
    assert_eq!(add(6), Reply::bulk("6-0"));
}

#[test]
fn the_last_id_is_the_end_of_a_stream() {
    let mut keyspace = Keyspace::new();
    let last = "18446744073709551615-18446744073709551615";
    assert_eq!(
        run(&mut keyspace, &format!("XADD s {last} f v")),
        Reply::bulk(last)
    );
    let refused = run(&mut keyspace, "XADD s * f v");
    assert!(matches!(refused, Reply::Error(error) if error.0.contains("exhausted")));
    assert_eq!(run(&mut keyspace, "XREAD STREAMS s $"), Reply::NullArray);
}

#[test]
fn an_emptied_stream_remembers_its_last_id() {
    let mut keyspace = Keyspace::new();
    run(&mut keyspace, "XADD s 7-1 f v");
    assert_eq!(run(&mut keyspace, "XDEL s 7-1"), Reply::Integer(1));
    assert_eq!(run(&mut keyspace, "EXISTS s"), Reply::Integer(1));
    assert!(run(&mut keyspace, "XADD s 7-1 f v").is_error());
    assert_eq!(run(&mut keyspace, "XADD s 7-* f v"), Reply::bulk("7-2"));
}

#[test]
fn about_trims_whole_hundreds_and_exactly_trims_all() {
    let mut keyspace = Keyspace::new();
    for number in 1..=350 {
        run(&mut keyspace, &format!("XADD s {number} f v"));
    }
    let trimmed = run(&mut keyspace, "XTRIM s MAXLEN ~ 120");
    assert_eq!(trimmed, Reply::Integer(200));
    let trimmed = run(&mut keyspace, "XTRIM s MINID ~ 351 LIMIT 50");
    assert_eq!(trimmed, Reply::Integer(0));
    let trimmed = run(&mut keyspace, "XTRIM s MINID = 345");
    assert_eq!(trimmed, Reply::Integer(144));
}

/// A server and its connections, at one time.
struct Connections {
    server: Server,
    now: u64,
}

impl Connections {
    fn new() -> Self {
        Self {
            server: Server::new(Keyspace::new(), Settings::default(), 0),
            now: 1000,
        }
    }

    fn connect(&mut self) -> ClientId {
        self.server.connect("test".to_owned(), self.now)
    }

    fn run(&mut self, client: ClientId, words: &str) -> Reply {
        let words: Vec<&str> = words.split(' ').collect();
        let stamp = Stamp::new(self.now, 1);
        self.server
            .handle(client, &Command::of(&words), stamp)
            .reply
    }
}

#[test]
fn a_reader_that_waits_gets_what_comes_behind_the_last_entry_of_then() {
    let mut at = Connections::new();
    let (reader, writer) = (at.connect(), at.connect());
    at.run(writer, "XADD s 1-0 f old");
    assert_eq!(at.run(reader, "XREAD BLOCK 0 STREAMS s $"), Reply::Later);
    assert_eq!(at.server.next_wait_end(), None);
    at.run(writer, "XADD s 2-0 f new");
    let entry = Reply::Array(vec![
        Reply::bulk("2-0"),
        Reply::Array(vec![Reply::bulk("f"), Reply::bulk("new")]),
    ]);
    let streams = Reply::MapOrPairs(vec![(Reply::bulk("s"), Reply::Array(vec![entry]))]);
    assert_eq!(at.server.take_outbox(), [(reader, streams)]);
}

#[test]
fn a_wait_for_entries_ends_after_its_milliseconds() {
    let mut at = Connections::new();
    let reader = at.connect();
    assert_eq!(at.run(reader, "XREAD BLOCK 50 STREAMS s 0"), Reply::Later);
    assert_eq!(at.server.next_wait_end(), Some(1050));
    at.server.tick(Stamp::new(1050, 1));
    assert_eq!(at.server.take_outbox(), [(reader, Reply::NullArray)]);
    let nothing = at.run(reader, "XREAD STREAMS s 0");
    assert_eq!(nothing, Reply::NullArray);
}

#[test]
fn an_entry_goes_to_one_consumer_of_those_that_wait() {
    let mut at = Connections::new();
    let (ann, bob, writer) = (at.connect(), at.connect(), at.connect());
    at.run(writer, "XGROUP CREATE s g 0 MKSTREAM");
    for (reader, name) in [(ann, "ann"), (bob, "bob")] {
        let words = format!("XREADGROUP GROUP g {name} BLOCK 0 STREAMS s >");
        assert_eq!(at.run(reader, &words), Reply::Later);
    }
    at.run(writer, "XADD s 5-0 f v");
    let served: Vec<ClientId> = at.server.take_outbox().iter().map(|sent| sent.0).collect();
    assert_eq!(served, [ann], "who came first is served first");
    at.run(writer, "XADD s 6-0 f v");
    let served: Vec<ClientId> = at.server.take_outbox().iter().map(|sent| sent.0).collect();
    assert_eq!(served, [bob]);
}

#[test]
fn who_waits_for_a_group_is_told_that_it_is_gone() {
    for end in ["XGROUP DESTROY s g", "DEL s", "SET s v"] {
        let mut at = Connections::new();
        let (reader, writer) = (at.connect(), at.connect());
        at.run(writer, "XGROUP CREATE s g 0 MKSTREAM");
        let waits = at.run(reader, "XREADGROUP GROUP g ann BLOCK 0 STREAMS s >");
        assert_eq!(waits, Reply::Later);
        at.run(writer, end);
        let told = at.server.take_outbox();
        assert!(
            matches!(&told[..], [(id, Reply::Error(_))] if *id == reader),
            "{end}: {told:?}"
        );
    }
}
