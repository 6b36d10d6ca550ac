//! A client of Janus: it coordinates what it asks.

use std::collections::BTreeMap;
use std::sync::Arc;

use manxdb_common::node::ClientOf;
use manxdb_common::topology::{COPIES, MAJORITY};
use manxdb_common::{Ask, CallId, Given, OpenCalls, Planned};
use manxdb_core::check::ensure;
use manxdb_core::{Digest, LocalTime, NodeId, RequestId};
use manxdb_txn::procedure::ShardId;

use super::message::{JanusMessage, Parents};
use super::{Janus, JanusShared, Out};

/// What replicas said, each once.
type Answers<T> = BTreeMap<NodeId, T>;

/// How far a transaction is.
#[derive(Debug)]
enum Phase {
    /// Replicas are asked whom it meets.
    PreAccept(Answers<(u32, Parents)>),
    /// They are asked to keep the union of that.
    Accept {
        parents: Parents,
        kept: Answers<u32>,
    },
    /// Its parents are decided; it runs.
    Committed,
}

#[derive(Debug)]
struct Coordination {
    planned: Arc<Planned>,
    phase: Phase,
    /// By shard: what the first replica that ran it said.
    given: BTreeMap<u32, Given>,
}

/// One client with any number of calls under way.
pub struct Client {
    me: NodeId,
    shared: Arc<JanusShared>,
    calls: OpenCalls<Option<Coordination>>,
}

impl ClientOf<Janus> for Client {
    fn new(me: NodeId, shared: Arc<JanusShared>) -> Self {
        Self {
            me,
            shared,
            calls: OpenCalls::new(me, 0),
        }
    }

    fn ask(&mut self, request: RequestId, ask: Ask, out: &mut Out) {
        let number = self.calls.ask(request, ask, None);
        let me = self.me;
        let Some((_, open)) = self.calls.attempt(number, self.shared.topology) else {
            return;
        };
        let call = open.call.clone();
        let id = call.id;
        let planned = match self.shared.plan(call, me) {
            Ok(planned) => planned,
            Err(failure) => return self.end(id, Err(failure), out),
        };
        for shard in planned.shards() {
            for replica in self.shared.topology.replicas(shard) {
                let planned = Arc::clone(&planned);
                out.send(replica, JanusMessage::PreAccept { planned });
            }
        }
        if let Some(open) = self.calls.get_mut(number) {
            open.state = Some(Coordination {
                planned,
                phase: Phase::PreAccept(Answers::new()),
                given: BTreeMap::new(),
            });
        }
    }

    fn on_message(&mut self, _: LocalTime, from: NodeId, message: JanusMessage, out: &mut Out) {
        match message {
            JanusMessage::PreAcceptOk { id, shard, parents } => {
                self.pre_accepted(from, id, shard, parents, out);
            }
            JanusMessage::AcceptOk { id, shard } => self.accepted(from, id, shard, out),
            JanusMessage::Output { id, shard, given } => self.on_output(id, shard, given, out),
            // What replicas are told.
            _ => {}
        }
    }

    fn check(&self) -> Result<(), String> {
        self.calls.check()?;
        for (number, open) in self.calls.iter() {
            let Some(coordination) = &open.state else {
                return Err(format!("J8: call {number} is under way and not planned"));
            };
            let planned = &coordination.planned;
            let is_committed = matches!(coordination.phase, Phase::Committed);
            ensure(is_committed || coordination.given.is_empty(), || {
                format!("J9: call {number} has run and is not committed")
            })?;
            ensure(coordination.given.len() < planned.shards.len(), || {
                format!("J10: call {number} has run everywhere and is not answered")
            })?;
        }
        Ok(())
    }

    fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        self.calls.digest_into(&mut digest);
        digest.value()
    }

    fn on_timer(&mut self, (): (), _: &mut Out) {}
}

impl Client {
    fn coordination(&mut self, id: CallId) -> Option<&mut Coordination> {
        let open = self.calls.get_mut(id.number)?;
        let coordination = open.state.as_mut()?;
        (coordination.planned.id() == id).then_some(coordination)
    }

    fn pre_accepted(
        &mut self,
        from: NodeId,
        id: CallId,
        shard: u32,
        parents: Parents,
        out: &mut Out,
    ) {
        let quick = self.takes_majority_for_fast();
        let Some(coordination) = self.coordination(id) else {
            return;
        };
        let Phase::PreAccept(answers) = &mut coordination.phase else {
            return;
        };
        answers.insert(from, (shard, parents));
        let planned = Arc::clone(&coordination.planned);
        if let Some(fast) = equal_answers(answers, &planned, if quick { MAJORITY } else { ALL }) {
            self.commit(&planned, fast, out);
        } else if answers.len() == ALL * planned.shards.len() {
            let parents = union(answers.values().map(|(_, parents)| parents));
            coordination.phase = Phase::Accept {
                parents: Arc::clone(&parents),
                kept: Answers::new(),
            };
            for replica in self.replicas(&planned) {
                let parents = Arc::clone(&parents);
                out.send(replica, JanusMessage::Accept { id, parents });
            }
        }
    }

    #[allow(clippy::unused_self)] // a planted defect asks
    fn takes_majority_for_fast(&self) -> bool {
        #[cfg(feature = "mutants")]
        return self.shared.options.mutant == Some(super::JanusMutant::MajorityIsFast);
        #[cfg(not(feature = "mutants"))]
        false
    }

    fn accepted(&mut self, from: NodeId, id: CallId, shard: u32, out: &mut Out) {
        let Some(coordination) = self.coordination(id) else {
            return;
        };
        let Phase::Accept { parents, kept } = &mut coordination.phase else {
            return;
        };
        kept.insert(from, shard);
        let of_shard = |shard: ShardId| kept.values().filter(|kept| **kept == shard.0).count();
        if coordination
            .planned
            .shards()
            .all(|shard| of_shard(shard) >= MAJORITY)
        {
            let (planned, parents) = (Arc::clone(&coordination.planned), Arc::clone(parents));
            self.commit(&planned, parents, out);
        }
    }

    fn commit(&mut self, planned: &Planned, parents: Parents, out: &mut Out) {
        let id = planned.id();
        if let Some(coordination) = self.coordination(id) {
            let is_new = !matches!(coordination.phase, Phase::Committed);
            assert!(is_new, "J7: a decision is made once");
            coordination.phase = Phase::Committed;
        }
        for replica in self.replicas(planned) {
            let parents = Arc::clone(&parents);
            out.send(replica, JanusMessage::Commit { id, parents });
        }
    }

    fn replicas(&self, planned: &Planned) -> Vec<NodeId> {
        let topology = self.shared.topology;
        planned
            .shards()
            .flat_map(|shard| topology.replicas(shard))
            .collect()
    }

    fn on_output(&mut self, id: CallId, shard: u32, given: Given, out: &mut Out) {
        let Some(coordination) = self.coordination(id) else {
            return;
        };
        if !coordination.planned.touches(ShardId(shard)) {
            return;
        }
        coordination.given.entry(shard).or_insert(given);
        if coordination.given.len() < coordination.planned.shards.len() {
            return;
        }
        let given = std::mem::take(&mut coordination.given);
        self.end(id, all_given(given.into_values()), out);
    }

    fn end(&mut self, id: CallId, given: Given, out: &mut Out) {
        if let Some(open) = self.calls.end(id) {
            out.reply(open.request, open.answer(given));
        }
    }
}

/// Replicas of a shard.
const ALL: usize = COPIES as usize;

/// The union of the answers of all shards, if in each of them `quorum` are equal.
fn equal_answers(
    answers: &Answers<(u32, Parents)>,
    planned: &Planned,
    quorum: usize,
) -> Option<Parents> {
    let of_shard = |shard: &u32| {
        let here = || {
            answers
                .values()
                .filter(|(of, _)| of == shard)
                .map(|(_, parents)| parents)
        };
        let are_enough =
            |parents: &&Parents| here().filter(|other| other == parents).count() >= quorum;
        here().find(are_enough)
    };
    let equal: Option<Vec<&Parents>> = planned.shards.iter().map(of_shard).collect();
    Some(union(equal?.into_iter()))
}

fn union<'a>(all: impl Iterator<Item = &'a Parents>) -> Parents {
    let mut union: Vec<_> = all.flat_map(|parents| parents.iter().cloned()).collect();
    union.sort_unstable();
    union.dedup();
    union.into()
}

/// The values of all shards, or why the first of them failed.
fn all_given(all: impl Iterator<Item = Given>) -> Given {
    let mut values = Vec::new();
    for given in all {
        values.extend(given?);
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use manxdb_common::{Level, Topology};
    use manxdb_core::{Action, Core as _, Event};
    use manxdb_txn::procedure::{APPLY_INTENT, OneShard, Registry, encode_intent};
    use manxdb_txn::{Intent, IsolationLevel, ReadSet, TxnId};

    use crate::janus::{JanusNode, JanusOptions, Parent};

    fn client() -> JanusNode {
        let topology = Topology {
            regions: 1,
            shards_per_region: 1,
        };
        let shared = JanusShared {
            topology,
            options: JanusOptions::default(),
            procedures: Arc::new(Registry::default()),
            placement: Arc::new(OneShard),
        };
        JanusNode::new(NodeId(topology.servers()), &Arc::new(shared), || {
            unreachable!("a client has no rows")
        })
    }

    fn step(client: &mut JanusNode, event: manxdb_core::EventOf<JanusNode>) -> Vec<&'static str> {
        use manxdb_core::Message as _;
        let mut out = manxdb_core::Actions::default();
        client.step(LocalTime::default(), event, &mut out);
        let label = |action| match action {
            Action::Send { body, .. } => Some(JanusMessage::label(&body)),
            _ => None,
        };
        out.drain().filter_map(label).collect()
    }

    fn ask() -> Ask {
        let intent = Intent {
            txn: TxnId(1),
            isolation: IsolationLevel::Serializable,
            reads: ReadSet::default(),
            writes: vec![(vec![1], Some(vec![1]))],
            durability: manxdb_storage::Durability::Async,
            locks: Vec::new(),
        };
        Ask {
            procedure: APPLY_INTENT.into(),
            args: encode_intent(&intent),
            level: Level::Serializable,
            home: ShardId(0),
        }
    }

    /// What the client sends at each step, with the third replica's answer as given.
    fn rounds(third: Parents) -> Vec<Vec<&'static str>> {
        let mut client = client();
        let id = CallId {
            client: NodeId(6),
            number: 1,
        };
        let asked = Event::Request {
            id: RequestId(1),
            body: ask(),
        };
        let mut rounds = vec![step(&mut client, asked)];
        let answer = |from, parents| Event::Message {
            from: NodeId(from),
            body: JanusMessage::PreAcceptOk {
                id,
                shard: 0,
                parents,
            },
        };
        for (from, parents) in [(0, [].into()), (1, [].into()), (2, third)] {
            rounds.push(step(&mut client, answer(from, parents)));
        }
        for from in 0..3 {
            let body = JanusMessage::AcceptOk { id, shard: 0 };
            let from = NodeId(from);
            rounds.push(step(&mut client, Event::Message { from, body }));
        }
        rounds.retain(|sent| !sent.is_empty());
        rounds
    }

    #[test]
    fn answers_that_differ_take_one_more_round() {
        let other = Parent {
            id: CallId::default(),
            shards: [0].into(),
        };
        let (first, last) = (vec!["PreAccept"; 3], vec!["Commit"; 3]);
        assert_eq!(rounds([].into()), [first.clone(), last.clone()]);
        assert_eq!(rounds([other].into()), [first, vec!["Accept"; 3], last]);
    }
}
