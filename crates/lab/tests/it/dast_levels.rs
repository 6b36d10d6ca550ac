//! What the levels promise, on a history made for it: the transactions of the reference's §1.5.
//!
//! A cross-region transaction writes lists in regions 0 and 1. Region 1 decides and runs it; the
//! decision, or its place and the marks behind it, is slow on its way to region 0, whose clocks stay
//! below its floor, or the bound, meanwhile. A client in region 2 reads the list in region 1 and finds
//! the element; then the list in region 0.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use manxdb_checker::append::{History, Level as Promise, Operation as Observed, check};
use manxdb_core::{Nanos, NodeId, RequestId};
use manxdb_dast::{Answer, Ask, Crossing, Level, Options};
use manxdb_lab::append::shared;
use manxdb_lab::dast::{DastSystem, paper_links, place};
use manxdb_sim::{Driver, Outside, SimTime, World, WorldOptions};
use manxdb_txn::procedure::ShardId;
use manxdb_workloads::append::{Form, Kind, List, NAME, Operation, Seen, encode, transaction};
use manxdb_workloads::{Partition, Topology};

const TOPOLOGY: Topology = Topology {
    regions: 3,
    shards_per_region: 1,
};

/// In the slow region, where the decision is made, and where the reader is.
const LATE: ShardId = ShardId(0);
const EARLY: ShardId = ShardId(1);
const AWAY: ShardId = ShardId(2);

const ELEMENT: u64 = 77;

/// What is asked first, by the writer.
const WRITE: RequestId = RequestId(0);

fn list(shard: ShardId) -> List {
    List {
        partition: Partition(shard.0),
        row: 0,
    }
}

fn ask(kinds: &[(ShardId, Kind)], level: Level) -> Ask {
    let operations = kinds.iter().map(|(shard, kind)| Operation {
        list: list(*shard),
        kind: *kind,
    });
    let operations: Vec<Operation> = operations.collect();
    Ask {
        procedure: NAME.into(),
        args: encode(Form::Together, &operations),
        level,
        home: kinds[0].0,
    }
}

struct Call {
    session: NodeId,
    args: Vec<u8>,
    asked: SimTime,
    answered: Option<(SimTime, Answer)>,
}

/// One writer and a reader of two lists, the second when the first is read.
struct Story {
    writer: NodeId,
    /// Who reads the early list, and who the late one then: one session, or two.
    readers: [NodeId; 2],
    level: Level,
    calls: BTreeMap<RequestId, Call>,
}

impl Story {
    fn ask(
        &mut self,
        outside: &mut Outside<'_, DastSystem>,
        at: SimTime,
        node: NodeId,
        kinds: &[(ShardId, Kind)],
    ) {
        let ask = ask(kinds, self.level);
        let args = ask.args.clone();
        let id = outside.request_at(at, node, ask);
        let call = Call {
            session: node,
            args,
            asked: at,
            answered: None,
        };
        self.calls.insert(id, call);
    }
}

impl Driver<DastSystem> for Story {
    fn begin(&mut self, outside: &mut Outside<'_, DastSystem>) {
        let both = [
            (EARLY, Kind::Append(ELEMENT)),
            (LATE, Kind::Append(ELEMENT + 1)),
        ];
        let at = SimTime::from_millis(500);
        self.ask(outside, at, self.writer, &both);
        // Arrives in the early region once the write has run there.
        let at = at + Nanos::from_millis(140);
        self.ask(outside, at, self.readers[0], &[(EARLY, Kind::Read)]);
    }

    fn reply(
        &mut self,
        outside: &mut Outside<'_, DastSystem>,
        _: NodeId,
        id: RequestId,
        body: Answer,
    ) {
        let now = outside.now();
        self.calls.get_mut(&id).unwrap().answered = Some((now, body));
        if id != WRITE && self.calls.len() == 2 {
            // Later, not at the same time: the order of the two is real time's.
            let later = now + Nanos::from_micros(1);
            self.ask(outside, later, self.readers[1], &[(LATE, Kind::Read)]);
        }
    }
}

/// What came of it: the history, and whether each of the two reads found the element.
struct Told {
    history: History,
    early: bool,
    late: bool,
}

fn run(crossing: Crossing, level: Level, is_one_session: bool) -> Told {
    let options = Options {
        crossing,
        ..Options::default()
    };
    let shared = shared(TOPOLOGY, options);
    let (lan, wan) = paper_links();
    let (places, clients) = place(shared.topology, 2, lan, wan);
    let of = |home| clients.iter().filter(move |(_, shard)| *shard == home);
    let readers: Vec<NodeId> = of(AWAY).map(|(node, _)| *node).collect();
    let mut story = Story {
        writer: of(EARLY).next().unwrap().0,
        readers: [readers[0], readers[usize::from(!is_one_session)]],
        level,
        calls: BTreeMap::new(),
    };
    let mut world = World::new(DastSystem::new(shared), WorldOptions::new(1, places));
    let slow = match crossing {
        // What region 1 asks of region 0 is on its way by then, and its decision is not.
        Crossing::Anticipated => "550ms+1s delay r1>r0 400ms",
        // The place that region 1 gives is not.
        Crossing::Ahead => "500ms+1s delay r1>r0 400ms",
    };
    world.schedule(slow.parse().unwrap());
    world.run_until(&mut story, SimTime::from_secs(5)).unwrap();
    let transactions = story.calls.iter().map(|(id, call)| {
        let (at, answer) = call.answered.as_ref().unwrap();
        let seen = Seen {
            name: id.0,
            session: call.session.0.into(),
            args: &call.args,
            asked: call.asked.0,
            answered: Some(at.0),
            given: answer.given.as_deref().ok(),
        };
        transaction(seen).unwrap()
    });
    let history = History {
        transactions: transactions.collect(),
        end_state: None,
    };
    let finds = |place: usize| match &history.transactions[place].operations[..] {
        [Observed::Read { list, .. }] => !list.is_empty(),
        other => unreachable!("{other:?}"),
    };
    let (early, late) = (finds(1), finds(2));
    Told {
        history,
        early,
        late,
    }
}

fn is_valid(history: &History, promise: Promise) -> bool {
    check(history, promise).violations().is_empty()
}

#[test]
fn under_serializable_a_session_that_moves_between_regions_sees_time_run_backwards() {
    for crossing in Crossing::ALL {
        let seen = run(crossing, Level::Serializable, true);
        assert!(seen.early && !seen.late, "the anomaly, {crossing:?}");
        assert!(is_valid(&seen.history, Promise::Serializable));
        assert!(!is_valid(&seen.history, Promise::Session));
    }
}

#[test]
fn under_session_it_sees_what_it_has_seen_and_another_client_may_not() {
    for crossing in Crossing::ALL {
        let seen = run(crossing, Level::Session, true);
        assert!(seen.early && seen.late, "{crossing:?}");
        assert!(is_valid(&seen.history, Promise::Session));
        // Two clients that tell each other by other ways are two sessions.
        let seen = run(crossing, Level::Session, false);
        assert!(seen.early && !seen.late, "{crossing:?}");
        assert!(is_valid(&seen.history, Promise::Session));
        assert!(!is_valid(&seen.history, Promise::Strict));
    }
}

#[test]
fn under_strict_whoever_asks_later_sees_it() {
    let both = Crossing::ALL.map(|crossing| [(crossing, true), (crossing, false)]);
    for (crossing, is_one_session) in both.into_iter().flatten() {
        let seen = run(crossing, Level::Strict, is_one_session);
        assert!(seen.early && seen.late, "{crossing:?}");
        assert!(is_valid(&seen.history, Promise::Strict));
    }
}
