//! A shard and a client without a network: rounds, and giving up.

use std::collections::BTreeMap;
use std::sync::Arc;

use manxdb_common::call::GAVE_UP;
use manxdb_common::{Ask, CallId, Given, Level, Topology};
use manxdb_core::{Action, Core as _, Event, EventOf, LocalTime, Message as _, NodeId, RequestId};
use manxdb_txn::procedure::{APPLY_INTENT, OneShard, Registry, ShardId, encode_intent};
use manxdb_txn::rows::{NoRows, Rows};
use manxdb_txn::{Intent, IsolationLevel, ReadSet, TxnId};

use super::message::ReadWriteSet;
use super::*;

const CLIENT: NodeId = NodeId(6);
const OTHER: NodeId = NodeId(7);

/// A shard and a client; what they send is delivered round by round.
struct Network {
    nodes: BTreeMap<NodeId, TapirNode>,
    sent: Vec<(NodeId, NodeId, TapirMessage)>,
    replies: Vec<Given>,
    timers: Vec<TapirTimer>,
}

impl Network {
    fn new(tries_max: u32) -> Self {
        let topology = Topology {
            regions: 1,
            shards_per_region: 1,
        };
        let shared = Arc::new(TapirShared {
            topology,
            options: TapirOptions {
                tries_max,
                ..TapirOptions::default()
            },
            procedures: Arc::new(Registry::default()),
            placement: Arc::new(OneShard),
        });
        let node = |id| TapirNode::new(id, &shared, || Rows::new(Arc::new(NoRows)));
        let ids = [0, 1, 2].map(NodeId).into_iter().chain([CLIENT]);
        Self {
            nodes: ids.map(|id| (id, node(id))).collect(),
            sent: Vec::new(),
            replies: Vec::new(),
            timers: Vec::new(),
        }
    }

    fn step(&mut self, to: NodeId, event: EventOf<TapirNode>) {
        let mut out = Out::default();
        let Some(node) = self.nodes.get_mut(&to) else {
            return;
        };
        node.step(LocalTime(1_000), event, &mut out);
        assert_eq!(node.check(), Ok(()));
        for action in out.drain() {
            match action {
                Action::Send { to: next, body } => self.sent.push((to, next, body)),
                Action::Reply { body, .. } => self.replies.push(body.given),
                Action::SetTimer { timer, .. } => self.timers.push(timer),
                _ => {}
            }
        }
    }

    /// Another client's transaction is prepared on a replica and writes the same row.
    fn prepare_another(&mut self, replica: u32) {
        let sets = ReadWriteSet {
            writes: [(vec![1], Some(vec![2]))].into(),
            ..ReadWriteSet::default()
        };
        let id = CallId {
            client: OTHER,
            number: 1,
        };
        let timestamp = Timestamp {
            time: 500,
            client: OTHER.0,
        };
        let body = TapirMessage::Prepare {
            id,
            attempt: 1,
            timestamp,
            sets: Arc::new(sets),
        };
        self.step(NodeId(replica), Event::Message { from: OTHER, body });
        self.sent.clear();
    }

    /// A call of the client: what is sent in each round.
    fn call(&mut self) -> Vec<&'static str> {
        let intent = Intent {
            txn: TxnId(1),
            isolation: IsolationLevel::Serializable,
            reads: ReadSet::default(),
            writes: vec![(vec![1], Some(vec![1]))],
            durability: manxdb_storage::Durability::Async,
            locks: Vec::new(),
        };
        let body = Ask {
            procedure: APPLY_INTENT.into(),
            args: encode_intent(&intent),
            level: Level::Serializable,
            home: ShardId(0),
        };
        let id = RequestId(1);
        self.step(CLIENT, Event::Request { id, body });
        self.rounds()
    }

    fn rounds(&mut self) -> Vec<&'static str> {
        let mut rounds = Vec::new();
        while let Some((_, _, first)) = self.sent.first() {
            rounds.push(first.label());
            for (from, to, body) in std::mem::take(&mut self.sent) {
                self.step(to, Event::Message { from, body });
            }
        }
        rounds
    }
}

const FIRST: [&str; 4] = ["Execute", "Executed", "Prepare", "Voted"];

#[test]
fn answers_that_differ_take_one_more_round() {
    let mut network = Network::new(20);
    assert_eq!(network.call(), [&FIRST[..], &["Commit"]].concat());
    assert!(network.replies[0].is_ok());

    let mut network = Network::new(20);
    network.prepare_another(2);
    let finalized = ["Finalize", "Finalized", "Commit"];
    assert_eq!(network.call(), [&FIRST[..], &finalized].concat());
    assert!(network.replies[0].is_ok(), "{:?}", network.replies);
}

#[test]
fn a_call_in_whose_way_another_one_stays_is_given_up() {
    let mut network = Network::new(3);
    for replica in 0..3 {
        network.prepare_another(replica);
    }
    let mut rounds = vec![network.call()];
    while let Some(timer) = network.timers.pop() {
        network.step(CLIENT, Event::Timer(timer));
        rounds.push(network.rounds());
    }
    assert_eq!(rounds, vec![[&FIRST[..], &["Abort"]].concat(); 3]);
    let refusal = network.replies[0].clone().unwrap_err();
    assert_eq!(refusal, format!("{GAVE_UP}: aborted 3 times"));
}

/// The only replicas of two shards, asked by three clients.
struct TwoShards {
    replicas: [TapirNode; 2],
}

impl TwoShards {
    fn new(validation: Validation) -> Self {
        let topology = Topology {
            regions: 2,
            shards_per_region: 1,
        };
        let shared = Arc::new(TapirShared {
            topology,
            options: TapirOptions {
                validation,
                ..TapirOptions::default()
            },
            procedures: Arc::new(Registry::default()),
            placement: Arc::new(OneShard),
        });
        let replica = |id| TapirNode::new(NodeId(id), &shared, || Rows::new(Arc::new(NoRows)));
        Self {
            replicas: [replica(0), replica(3)],
        }
    }

    fn step(&mut self, shard: usize, client: u32, body: TapirMessage) -> Option<Vote> {
        let mut out = Out::default();
        let from = NodeId(client);
        let event = Event::Message { from, body };
        self.replicas[shard].step(LocalTime(1), event, &mut out);
        assert_eq!(self.replicas[shard].check(), Ok(()));
        let vote = |action| match action {
            Action::Send {
                body: TapirMessage::Voted { vote, .. },
                ..
            } => Some(vote),
            _ => None,
        };
        out.drain().find_map(vote)
    }

    /// A client has a transaction of this time prepared that read and writes these keys at the start.
    fn prepare(
        &mut self,
        shard: usize,
        client: u32,
        time: u64,
        reads: &[u8],
        writes: &[u8],
    ) -> Vote {
        let read = |key: &u8| message::Read {
            range: manxdb_storage::KeyRange::point(&[*key]),
            seen: Vec::new(),
        };
        let sets = ReadWriteSet {
            reads: reads.iter().map(read).collect(),
            writes: writes
                .iter()
                .map(|key| (vec![*key], Some(vec![1])))
                .collect(),
            ..ReadWriteSet::default()
        };
        let prepare = TapirMessage::Prepare {
            id: CallId {
                client: NodeId(client),
                number: 1,
            },
            attempt: 1,
            timestamp: Timestamp { time, client },
            sets: Arc::new(sets),
        };
        self.step(shard, client, prepare).unwrap()
    }

    fn commit(&mut self, shard: usize, client: u32, time: u64) {
        let id = CallId {
            client: NodeId(client),
            number: 1,
        };
        let timestamp = Timestamp { time, client };
        self.step(shard, client, TapirMessage::Commit { id, timestamp });
    }
}

/// What a first transaction, which reads A and writes B, a second one, which writes A, and a third one,
/// which reads B once the second has ended, are told at A by the first two, and at B by the others.
fn inversion(validation: Validation) -> [Vote; 4] {
    let (a, b) = (10, 20);
    let mut shards = TwoShards::new(validation);
    let first_at_a = shards.prepare(0, 20, 7, &[a], &[]);
    let second = shards.prepare(0, 21, 10, &[a], &[a]);
    shards.commit(0, 21, 10);
    // Its client's clock is behind.
    let third = shards.prepare(1, 22, 5, &[b], &[]);
    shards.commit(1, 22, 5);
    let first_at_b = shards.prepare(1, 20, 7, &[], &[b]);
    [first_at_a, second, third, first_at_b]
}

#[test]
fn by_timestamps_alone_the_order_may_be_against_real_time() {
    // The third comes before the first and that before the second, which ended before the third began.
    assert_eq!(inversion(Validation::Timestamps), [Vote::Ok; 4]);
    let strict = inversion(Validation::Strict);
    assert_eq!(strict, [Vote::Ok, Vote::Abstain, Vote::Ok, Vote::Ok]);
}
