//! SLOG: each region has a log, and transactions of several regions are ordered globally first; and
//! Detock, where they are not.
//!
//! "SLOG: Serializable, Low-latency, Geo-replicated Transactions" (Ren et al., VLDB 2019), as the
//! DAST paper configures it: the home of a row is the region of its shard, for good.
//!
//! | step | who | what |
//! |---|---|---|
//! | submit | client → coordinator | a replica of its home shard |
//! | global order | coordinator → global log | only of several regions: a group of three members, one in each of regions 0, 1 and 2 ([`global_members`]); its leader, in region 0, hands what is agreed to every region it touches, in order |
//! | region log | → the region's managers | a group of three; a batch every 5 ms |
//! | locks | replica | every transaction asks for all rows it touches in the order of the log, one line a row; it runs when it has them, and holds them until its pieces here have run, also while it waits for a value of another region ([`Release`]) |
//! | answer | replicas → coordinator → client | the first output of each shard counts |
//!
//! Logs of all regions contain transactions of several regions in the global order, so that no two
//! of them wait for each other. The order is serializable; it does not agree with real time: a
//! region may have run a transaction that another one has not, and a client may look there next.
//!
//! # Detock
//! "Detock: High Performance Multi-region Transactions at Scale" (Nguyen et al., SIGMOD 2023) has no
//! global log ([`Crossing::Graph`]). A transaction of several regions goes to the logs of all of them at
//! once, which may differ in the order of two. So the leader of each log tells all replicas of all
//! regions whom a transaction of several regions comes behind there ([`message::Edge`]). One has its turn
//! when that is known of it and its ancestors, from all their regions; those on a cycle have theirs in
//! the order of their identities (`detock`). Rows stay taken from its place in a region's log on, so
//! what comes behind it there waits until the other regions' logs are heard of: one way of the wide
//! network and their batches.
//!
//! In Detock every region has a copy of all rows and runs the transaction as a whole. Here a shard is in
//! one region, and a value that another region waits for is sent once the piece that gives it has run:
//! where another region waits for the home's value, that is a round trip more than Detock would take.
//!
//! Not here: moving homes, copies of rows in other regions, and failures of nodes.

mod coordinator;
mod detock;
mod log;
mod manager;
pub mod message;
mod replica;

use std::sync::Arc;

use manxdb_common::pieces::Release;
use manxdb_common::{Answer, Ask, OpenCalls, RegionId, Role, Shared, Topology};
use manxdb_core::{Actions, Core, Digest, Event, EventOf, LocalTime, Nanos, NodeId};
use manxdb_txn::rows::Rows;

pub use self::manager::Manager;
pub use self::message::SlogMessage;
pub use self::replica::Replica;

/// How transactions of several regions get the same order in all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Crossing {
    /// By a global log, before they go to the regions' (SLOG).
    #[default]
    GlobalLog,
    /// By the graph of whom they come behind in the regions' logs (Detock).
    Graph,
}

/// How a SLOG cluster behaves.
#[derive(Debug, Clone, Copy)]
pub struct SlogOptions {
    /// What orders transactions of several regions.
    pub crossing: Crossing,
    /// How often a region's batch is closed.
    pub batch_every: Nanos,
    /// Until when rows are held.
    pub release: Release,
    /// Replicas say what transactions wait for; costs time, not order.
    pub explains: bool,
    /// Planted defects.
    #[cfg(feature = "mutants")]
    pub mutant: Option<SlogMutant>,
}

impl Default for SlogOptions {
    fn default() -> Self {
        Self {
            crossing: Crossing::GlobalLog,
            batch_every: Nanos::from_millis(5),
            release: Release::Transaction,
            explains: false,
            #[cfg(feature = "mutants")]
            mutant: None,
        }
    }
}

/// A planted defect, which the tests must find.
#[cfg(feature = "mutants")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlogMutant {
    /// A transaction's rows are free once its first piece has run.
    LockFreedEarly,
    /// A replica goes on behind entries of the log that it was not sent.
    GapInLog,
    /// Detock: a transaction has its turn by what its region's own log says.
    OtherLogsNotAwaited,
    /// Detock: transactions on a cycle have their turns in the order of each region's log.
    CycleInLogOrder,
}

type SlogShared = Shared<SlogOptions>;
type Out = Actions<SlogNode>;

/// Timers of managers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlogTimer {
    /// The region's batch is closed.
    Batch,
}

/// The members of the global log's group, its leader first: one in each of three regions, or, where
/// there are fewer regions, further managers of the last one.
#[must_use]
pub fn global_members(topology: Topology) -> Vec<NodeId> {
    let last = topology.regions.saturating_sub(1);
    let member = |place: u32| {
        let region = place.min(last);
        let mut managers = topology.managers(RegionId(region));
        managers.nth(usize::try_from(place - region).unwrap_or(0))
    };
    let members: Vec<NodeId> = (0..3).filter_map(member).collect();
    assert!(members.len() == 3, "L1: the global log has three members");
    members
}

/// Who leads a region's log: nobody fails, so its first manager.
fn leader_of(topology: Topology, region: RegionId) -> Option<NodeId> {
    topology.managers(region).next()
}

/// A node of a SLOG cluster.
#[allow(clippy::large_enum_variant)] // one of them a node, for as long as it lives
pub enum SlogNode {
    /// It stores a shard, and coordinates what clients submit to it.
    Replica(Replica),
    /// It is a member of its region's log, and perhaps of the global one.
    Manager(Manager),
    /// It asks.
    Client(Client),
}

/// One client with any number of calls under way.
pub struct Client {
    topology: Topology,
    calls: OpenCalls<()>,
}

impl SlogNode {
    /// The node of that number. `rows` are those that a replica begins with.
    pub fn new(me: NodeId, shared: &Arc<SlogShared>, rows: impl FnOnce() -> Rows) -> Self {
        let (topology, shared) = (shared.topology, Arc::clone(shared));
        match topology.role(me) {
            Role::Replica(shard) => Self::Replica(Replica::new(me, shard, shared, rows())),
            Role::Manager(region) => Self::Manager(Manager::new(me, region, shared)),
            Role::Client => Self::Client(Client {
                topology,
                calls: OpenCalls::new(me, 0),
            }),
        }
    }

    /// The replica it is.
    #[must_use]
    pub fn replica(&self) -> Option<&Replica> {
        match self {
            Self::Replica(replica) => Some(replica),
            _ => None,
        }
    }
}

impl Core for SlogNode {
    type Message = SlogMessage;
    type Timer = SlogTimer;
    type Request = Ask;
    type Reply = Answer;
    type Record = ();

    fn step(&mut self, _now: LocalTime, event: EventOf<Self>, out: &mut Actions<Self>) {
        match (self, event) {
            (Self::Replica(replica), Event::Message { from, body }) => {
                replica.on_message(from, body, out);
            }
            (Self::Manager(manager), Event::Start) => manager.start(out),
            (Self::Manager(manager), Event::Message { from, body }) => {
                manager.on_message(from, body, out);
            }
            (Self::Manager(manager), Event::Timer(SlogTimer::Batch)) => manager.close_batch(out),
            (Self::Client(client), Event::Request { id, body }) => {
                let number = client.calls.ask(id, body, ());
                if let Some((to, open)) = client.calls.attempt(number, client.topology) {
                    let call = Box::new(open.call.clone());
                    out.send(to, SlogMessage::Submit { call });
                }
            }
            (Self::Client(client), Event::Message { body, .. }) => {
                if let SlogMessage::Outcome { id, given } = body
                    && let Some(open) = client.calls.end(id)
                {
                    out.reply(open.request, open.answer(given));
                }
            }
            // Nobody writes records; what is misrouted is dropped.
            _ => {}
        }
    }

    fn check(&self) -> Result<(), String> {
        match self {
            Self::Replica(replica) => replica.check(),
            Self::Manager(manager) => manager.check(),
            Self::Client(client) => client.calls.check(),
        }
    }

    fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        match self {
            Self::Replica(replica) => return replica.pieces().digest(),
            Self::Manager(manager) => drop(digest.number(manager.agreed())),
            Self::Client(client) => client.calls.digest_into(&mut digest),
        }
        digest.value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_global_log_has_a_member_in_each_of_three_regions() {
        let members = |regions| {
            let topology = Topology {
                regions,
                shards_per_region: 1,
            };
            let members = global_members(topology).into_iter();
            let region = |node| topology.region_of_node(node).map(|region| region.0);
            members.filter_map(region).collect::<Vec<_>>()
        };
        assert_eq!(members(5), [0, 1, 2]);
        assert_eq!(members(3), [0, 1, 2]);
        assert_eq!(members(2), [0, 1, 1]);
        assert_eq!(members(1), [0, 0, 0]);
    }
}
