//! A node of a cluster: a replica, a manager or a client, as one core.

use manxdb_core::{Actions, Core, Event, EventOf, LocalTime, Nanos, NodeId, RequestId, Wait, Work};
use manxdb_txn::rows::Rows;

use crate::call::{Answer, Ask};
use crate::client::Client;
use crate::manager::Manager;
use crate::message::DastMessage;
use crate::options::Shared;
use crate::replica::Replica;
use crate::topology::Role;
use crate::wanted::{DastTimer, Wanted};

/// A node.
#[allow(clippy::large_enum_variant)] // one of them a node, for as long as it lives
pub enum DastNode {
    /// It stores a shard.
    Replica(Replica),
    /// It is one of the managers of a region.
    Manager(Manager),
    /// It asks.
    Client(Client),
}

/// Whether nodes that are a `node` set such a timer. A role sets its own only, so one that goes to
/// another role is a defect of the driver or of the core.
fn is_of(timer: &DastTimer, node: &DastNode) -> bool {
    match timer {
        DastTimer::Report | DastTimer::ReportPast(_) => matches!(node, DastNode::Replica(_)),
        DastTimer::Tick | DastTimer::Progress | DastTimer::Mark => {
            matches!(node, DastNode::Manager(_))
        }
        DastTimer::Retry => !matches!(node, DastNode::Client(_)),
        DastTimer::Again { .. } => matches!(node, DastNode::Client(_)),
    }
}

impl Wanted for Actions<DastNode> {
    fn send(&mut self, to: NodeId, body: DastMessage) {
        Actions::send(self, to, body);
    }

    fn set_timer(&mut self, after: Nanos, timer: DastTimer) {
        Actions::set_timer(self, after, timer);
    }

    fn reply(&mut self, id: RequestId, answer: Answer) {
        Actions::reply(self, id, answer);
    }

    fn mark(&mut self, txn: u64, phase: &'static str) {
        Actions::mark(self, txn, phase);
    }

    fn wait(&mut self, txn: u64, wait: Option<Wait>) {
        Actions::wait(self, txn, wait);
    }

    fn work(&mut self, work: Work) {
        Actions::work(self, work);
    }
}

impl DastNode {
    /// The node of that number in its `life`th life, which has no memory of the earlier ones.
    /// `rows` are those a replica begins with.
    pub fn new(me: NodeId, life: u64, shared: &Shared, rows: impl FnOnce() -> Rows) -> Self {
        assert!(life > 0, "lives begin with 1");
        #[cfg(feature = "mutants")]
        let life = match shared.options.mutant {
            Some(crate::mutants::Mutant::BeginsAgain)
                if shared.topology.role(me) != Role::Client =>
            {
                1
            }
            _ => life,
        };
        match shared.topology.role(me) {
            Role::Replica(shard) => {
                Self::Replica(Replica::new(me, shard, life, shared.clone(), rows()))
            }
            Role::Manager(region) => Self::Manager(Manager::new(me, region, life, shared.clone())),
            Role::Client => Self::Client(Client::new(me, life, shared.clone())),
        }
    }

    /// That our own code gave the event to the node it is for. Messages are not looked at: they
    /// come from the network.
    fn assert_routed(&self, event: &EventOf<Self>) {
        if let Event::Timer(timer) = event {
            assert!(
                is_of(timer, self),
                "a role gets its own timers only: {timer:?}"
            );
        }
        let is_request = matches!(event, Event::Request { .. });
        let is_client = matches!(self, Self::Client(_));
        assert!(is_client || !is_request, "requests go to clients only");
        let is_persisted = matches!(event, Event::Persisted(_));
        assert!(!is_persisted, "nothing is persisted that nobody wrote");
    }

    /// The replica it is.
    #[must_use]
    pub fn replica(&self) -> Option<&Replica> {
        match self {
            Self::Replica(replica) => Some(replica),
            _ => None,
        }
    }

    /// The manager it is.
    #[must_use]
    pub fn manager(&self) -> Option<&Manager> {
        match self {
            Self::Manager(manager) => Some(manager),
            _ => None,
        }
    }

    /// The client it is.
    #[must_use]
    pub fn client(&self) -> Option<&Client> {
        match self {
            Self::Client(client) => Some(client),
            _ => None,
        }
    }
}

impl Core for DastNode {
    type Message = DastMessage;
    type Timer = DastTimer;
    type Request = Ask;
    type Reply = Answer;
    /// Replicas and managers keep everything in the memory of a majority.
    type Record = ();

    fn step(&mut self, now: LocalTime, event: EventOf<Self>, out: &mut Actions<Self>) {
        self.assert_routed(&event);
        match (self, event) {
            (Self::Replica(replica), Event::Start) => replica.start(now, out),
            (Self::Replica(replica), Event::Message { from, body }) => {
                replica.on_message(now, from, body, out);
            }
            (Self::Replica(replica), Event::Timer(timer)) => replica.on_timer(now, &timer, out),
            (Self::Manager(manager), Event::Start) => manager.start(now, out),
            (Self::Manager(manager), Event::Message { from, body }) => {
                manager.on_message(now, from, body, out);
            }
            (Self::Manager(manager), Event::Timer(timer)) => manager.on_timer(now, &timer, out),
            (Self::Client(client), Event::Message { from, body }) => {
                client.on_message(from, body, out);
            }
            (Self::Client(client), Event::Timer(timer)) => client.on_timer(&timer, out),
            (Self::Client(client), Event::Request { id, body }) => client.ask(id, body, out),
            // A client begins with its first request; the others are misrouted.
            (_, Event::Start | Event::Request { .. } | Event::Persisted(_)) => {}
        }
    }

    fn check(&self) -> Result<(), String> {
        match self {
            Self::Replica(replica) => replica.check(),
            Self::Manager(manager) => manager.check(),
            Self::Client(client) => client.check(),
        }
    }

    fn digest(&self) -> u64 {
        match self {
            Self::Replica(replica) => replica.digest(),
            Self::Manager(manager) => manager.digest(),
            Self::Client(client) => client.digest(),
        }
    }
}
