//! The managers of a region among replicas that are scripted, so that they fail between any two
//! messages: what the gone had stamped counts as told only when all have it.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use manxdb_core::{Action, Actions, Core as _, Event, LocalTime, NodeId};
use manxdb_dast::message::{DastMessage, Report};
use manxdb_dast::{DastNode, DastTimer, Options, RegionId, Shared, Timestamp, Topology};
use manxdb_txn::procedure::{OneShard, Registry};

const TOPOLOGY: Topology = Topology {
    regions: 1,
    shards_per_region: 2,
};
const TICK_NANOS: u64 = 5_000_000;
/// Longer than anything takes that is going to happen.
const TICKS_MAX: u32 = 400;

/// Managers, and what replicas would say.
struct Region {
    managers: BTreeMap<NodeId, DastNode>,
    on_the_way: VecDeque<(NodeId, NodeId, DastMessage)>,
    now: u64,
    leader: NodeId,
    /// Replicas that say nothing.
    silent: BTreeSet<NodeId>,
    /// Replicas that have not heard yet what the gone had stamped.
    waiting: BTreeSet<NodeId>,
    /// Who was told that.
    told: Vec<(NodeId, NodeId)>,
}

impl Region {
    fn new() -> Self {
        let shared = Shared {
            topology: TOPOLOGY,
            options: Options::default(),
            procedures: Arc::new(Registry::default()),
            placement: Arc::new(OneShard),
        };
        let manager = |node| {
            let none = || panic!("a manager has no rows");
            (node, DastNode::new(node, 1, &shared, none))
        };
        let managers: BTreeMap<_, _> = TOPOLOGY.managers(RegionId(0)).map(manager).collect();
        let leader = *managers.keys().next().unwrap();
        let mut region = Self {
            managers,
            on_the_way: VecDeque::new(),
            now: 1_000_000_000,
            leader,
            silent: BTreeSet::new(),
            waiting: BTreeSet::new(),
            told: Vec::new(),
        };
        for node in region.managers.keys().copied().collect::<Vec<_>>() {
            region.step(node, Event::Start);
        }
        region.deliver();
        region
    }

    fn step(&mut self, node: NodeId, event: manxdb_core::EventOf<DastNode>) {
        let Some(manager) = self.managers.get_mut(&node) else {
            return; // it has failed
        };
        let mut out = Actions::default();
        manager.step(LocalTime(self.now), event, &mut out);
        for action in out.drain() {
            if let Action::Send { to, body } = action {
                self.on_the_way.push_back((node, to, body));
            }
        }
    }

    fn deliver(&mut self) {
        while let Some((from, to, body)) = self.on_the_way.pop_front() {
            if TOPOLOGY.managers(RegionId(0)).any(|node| node == to) {
                self.step(to, Event::Message { from, body });
            } else if self.managers.contains_key(&from) {
                self.replica_hears(from, to, &body);
            }
        }
    }

    fn replica_hears(&mut self, manager: NodeId, node: NodeId, message: &DastMessage) {
        if self.silent.contains(&node) {
            return;
        }
        let answer = match message {
            DastMessage::Lead { view, .. } => {
                self.leader = manager;
                DastMessage::Hello {
                    view: *view,
                    report: Box::new(self.report(node)),
                    heard: Box::default(),
                }
            }
            DastMessage::Freeze { epoch, .. } => DastMessage::Frozen {
                epoch: *epoch,
                held: Vec::new(),
            },
            DastMessage::Close { epoch, .. } if !self.waiting.contains(&node) => {
                self.told.push((manager, node));
                DastMessage::Closed { epoch: *epoch }
            }
            _ => return,
        };
        self.on_the_way.push_back((node, manager, answer));
    }

    fn report(&self, node: NodeId) -> Report {
        let micros = self.now / 1_000;
        Report {
            clock: Timestamp {
                micros,
                stretch: 0,
                site: node.0,
            },
            reading: micros,
            corrections: 0,
            stamped: Vec::new(),
            position: Timestamp::ZERO,
        }
    }

    fn tick(&mut self) {
        self.now += TICK_NANOS;
        for node in TOPOLOGY.nodes(RegionId(0)) {
            if !self.silent.contains(&node) {
                let report = DastMessage::Report(Box::new(self.report(node)));
                self.on_the_way.push_back((node, self.leader, report));
            }
        }
        for node in self.managers.keys().copied().collect::<Vec<_>>() {
            self.step(node, Event::Timer(DastTimer::Tick));
        }
        self.deliver();
    }

    /// Who is out at the leader, with what it had stamped still being collected.
    fn closing(&self) -> BTreeSet<NodeId> {
        let manager = self.managers[&self.leader].manager().unwrap();
        manager.ledger().members.closing.clone()
    }

    fn tick_until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        for _ in 0..TICKS_MAX {
            if is_so(self) {
                return;
            }
            self.tick();
        }
        panic!("never: {what}");
    }
}

#[test]
fn what_the_gone_had_stamped_is_told_again_when_the_leader_fails_in_the_middle() {
    let mut region = Region::new();
    let (late, gone) = (NodeId(1), NodeId(5));
    region.tick();
    region.silent.insert(gone);
    region.waiting.insert(late);
    region.tick_until("it is missed", |region| region.closing().contains(&gone));
    for _ in 0..20 {
        region.tick();
    }
    let first = region.leader;
    let told: BTreeSet<NodeId> = region.told.iter().map(|(_, node)| *node).collect();
    assert_eq!(
        told,
        (0..5).map(NodeId).filter(|node| *node != late).collect()
    );
    assert_eq!(
        region.closing(),
        BTreeSet::from([gone]),
        "not all have been told"
    );

    region.managers.remove(&first);
    region.waiting.clear();
    region.tick_until("another leads", |region| region.leader != first);
    region.tick_until("all are told", |region| region.closing().is_empty());
    assert!(region.told.contains(&(region.leader, late)));
}

#[test]
fn it_is_over_when_all_have_been_told() {
    let mut region = Region::new();
    let gone = NodeId(5);
    region.tick();
    region.silent.insert(gone);
    region.tick_until("all are told", |region| region.told.len() == 5);
    assert_eq!(region.closing(), BTreeSet::new());
}
