//! What the nodes of a cluster send each other.

mod fence;
mod labels;
mod seen;

use std::sync::Arc;

use manxdb_core::NodeId;
use manxdb_vr::GroupMessage;
use serde::{Deserialize, Serialize};

use crate::call::{Call, CallId, Planned};
use crate::execution::{Copy, Given, Numbered};
use crate::fence::Span;
use crate::ledger::{Entry, Ledger};
use crate::timestamp::Timestamp;
use crate::topology::RegionId;

pub use self::fence::{FenceMessage, Promise};
pub use self::seen::Seen;
pub use crate::held::Held;
pub use crate::ledger::Decision;

/// What a replica says of its clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// All its later stamps are larger.
    pub clock: Timestamp,
    /// What its wall clock shows, in microseconds.
    pub reading: u64,
    /// Corrections of that clock it has made.
    pub corrections: u32,
    /// Local transactions it has stamped so far, for each shard where the number has changed
    /// since its last report.
    pub stamped: Vec<(u32, u64)>,
    /// Everything before this has run there.
    pub position: Timestamp,
}

/// What a manager says of its region's clocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// No transaction up to this comes any more, but those that are told here.
    pub upto: Timestamp,
    /// Local transactions that each coordinator has stamped for the receiver's shard, where the
    /// number has changed since the last cut.
    pub stamped: Vec<(NodeId, u64)>,
    /// The region's time in microseconds.
    pub reading: u64,
    /// The receiver's clock is to be set by so much.
    pub correction: i64,
    /// Everything before this has run on all replicas of the region.
    pub position: Timestamp,
    /// Everything before this has run on all replicas of all regions.
    pub everywhere: Timestamp,
    /// No region stamps below this any more.
    pub closed: Timestamp,
    /// The receiver's clock is to stay below this; no cut passes it. [`Timestamp::MAX`] unless
    /// cross-region transactions are ordered ahead.
    pub bound: Timestamp,
    /// Places of cross-region transactions of the region that this cut is the first to pass, if
    /// they are ordered ahead.
    pub crossed: Vec<Timestamp>,
}

/// Part of what one region has ordered ahead, to another one that it touches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamPart {
    /// Whose it is.
    pub region: RegionId,
    /// Everything at this or behind it that is not over everywhere is here; none: it goes on where
    /// the part before it ended.
    pub since: Option<Timestamp>,
    /// The number of the first entry; of the next one, if there are none.
    pub first: u64,
    /// Transactions at their places.
    pub entries: Vec<Held>,
    /// All transactions of that region below this that touch the receiver's are sent.
    pub mark: Timestamp,
    /// Changes of who is fenced that the sender knows of.
    pub epoch: u64,
    /// The region's time, in microseconds, when this was sent.
    pub sent: u64,
    /// What parts take that come the other way, in microseconds, by both regions' times.
    pub delay: Option<i64>,
    /// No stamp below this comes in that region any more.
    pub closed: Timestamp,
    /// Everything before this has run on all its replicas.
    pub position: Timestamp,
}

/// What a manager keeps of another region's stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptStream {
    /// Whose stream it is.
    pub region: RegionId,
    /// The number of the first entry; of the next one, if there are none. What comes before it has
    /// run everywhere.
    pub first: u64,
    /// Transactions at their places.
    pub entries: Vec<Held>,
    /// Every transaction of that region below this is among them, or has run everywhere.
    pub mark: Timestamp,
}

/// What a replica knows of transactions ordered ahead.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heard {
    /// It has all below this that touch its shard.
    pub bound: Timestamp,
    /// Places of those that not all replicas of the region have passed.
    pub placed: Vec<Timestamp>,
}

/// What all pieces of a shard gave: they have run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Of which transaction.
    pub id: CallId,
    /// The shard.
    pub shard: u32,
    /// Its place in the order.
    pub at: Timestamp,
    /// The values.
    pub given: Given,
    /// The newest cross-region transaction that what has run on the shard may depend on.
    pub cross_region_high: Timestamp,
}

/// A replica's whole state.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct State {
    /// The epoch.
    pub epoch: u64,
    /// Rows and transactions.
    pub copy: Copy,
    /// Everything up to this is known in it.
    pub safe: Timestamp,
    /// Local transactions received, by coordinator.
    pub received: Vec<(NodeId, u64)>,
    /// Local transactions that not all replicas have run.
    pub held: Vec<Held>,
    /// Who takes part.
    pub live: Vec<NodeId>,
    /// Anticipated timestamps that hold the region's clocks.
    pub floors: Vec<(Timestamp, CallId)>,
    /// Places of transactions ordered ahead that not all replicas of the region have passed.
    pub placed: Vec<Timestamp>,
}

/// What nodes send each other. Grouped by who speaks to whom. What is large is in a box: messages
/// are moved often, and each takes the room of the largest.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum DastMessage {
    // ── client and coordinator ────────────────────────────────────────────────────────────────
    /// Run this.
    Submit {
        /// What.
        call: Box<Call>,
        /// It must come behind these: what the session has seen.
        after: Seen,
    },
    /// It has run, or cannot.
    Outcome {
        /// What.
        id: CallId,
        /// Its place in the order.
        at: Timestamp,
        /// What its pieces gave.
        given: Given,
    },

    // ── replica to replica ────────────────────────────────────────────────────────────────────
    /// A local transaction of the sender.
    PrepareIrt {
        /// Its timestamp.
        at: Timestamp,
        /// The sender's count of local transactions for the receiver's shard.
        number: u64,
        /// The transaction.
        planned: Arc<Planned>,
    },
    /// The sender holds it. To its coordinator, and to the other replicas of the sender's shard if
    /// the coordinator is none of them.
    AckIrt {
        /// Which.
        id: CallId,
        /// Its timestamp.
        at: Timestamp,
    },
    /// Does the receiver hold it? Asked by a coordinator that took it over.
    Confirm {
        /// Which.
        id: CallId,
    },
    /// Values that pieces of the sender's shard gave and pieces of the receiver's may want.
    Inputs {
        /// Of which transaction.
        id: CallId,
        /// The values.
        given: Numbered,
    },
    /// What the sender's shard gave.
    Output(Box<Output>),
    /// The receiver's shard owes the sender an output.
    AskOutput {
        /// Of which transaction.
        id: CallId,
    },

    // ── replica and manager ───────────────────────────────────────────────────────────────────
    /// The sender's clock.
    Report(Box<Report>),
    /// The region's clocks.
    Cut(Box<Cut>),
    /// The sender leads the region's managers now; report to it.
    Lead {
        /// Its view.
        view: u64,
        /// The region's epoch.
        epoch: u64,
        /// Who takes part: what a former leader said of that may not have arrived.
        live: Vec<NodeId>,
    },
    /// All that a new leader must know of a replica.
    Hello {
        /// The leader's view.
        view: u64,
        /// With all numbers.
        report: Box<Report>,
        /// What it knows of what is ordered ahead.
        heard: Box<Heard>,
    },
    /// A cross-region transaction that touches the receiver's shard, ordered ahead.
    Place {
        /// The transaction.
        planned: Arc<Planned>,
        /// Its place.
        at: Timestamp,
    },
    /// What the next cut would say of the bound, because a transaction waits for it.
    Bound {
        /// The receiver's clock is to stay below this.
        bound: Timestamp,
        /// Report once past this.
        past: Timestamp,
    },
    /// Places from which transactions of a fenced region are moved. Those at them do not run.
    Fences {
        /// All that not every region has passed.
        spans: Vec<Span>,
    },
    /// A cross-region transaction that touches the receiver's shard.
    PrepareCrt {
        /// The transaction.
        planned: Arc<Planned>,
        /// Its anticipated timestamp.
        at: Timestamp,
    },
    /// A cross-region transaction of the region that does not touch the receiver's shard.
    Floor {
        /// Which.
        id: CallId,
        /// Its anticipated timestamp.
        at: Timestamp,
    },
    /// What became of it.
    Settle {
        /// Which.
        id: CallId,
        /// Its anticipated timestamp.
        anticipated: Timestamp,
        /// The decision.
        decision: Decision,
    },

    // ── coordinator and managers, managers of different regions ──────────────────────────────
    /// Give this transaction a timestamp.
    PrepareRegion {
        /// The transaction.
        planned: Arc<Planned>,
        /// The manager's region that collects the timestamps.
        home: RegionId,
        /// The timestamp must come behind this.
        after: Timestamp,
    },
    /// Order this transaction ahead.
    Order {
        /// The transaction.
        planned: Arc<Planned>,
        /// Its place must come behind this.
        after: Timestamp,
    },
    /// It has no place, and gets none: it touches a region that is fenced.
    Refused {
        /// Which.
        id: CallId,
        /// The region.
        region: RegionId,
    },
    /// About who is fenced.
    Fence {
        /// The sender's region.
        region: RegionId,
        /// Changes that it knows of.
        epoch: u64,
        /// What it says.
        message: Box<FenceMessage>,
    },
    /// What the sender's region has ordered ahead.
    Stream(Box<StreamPart>),
    /// Send again what touches this region.
    StreamFrom {
        /// The region that asks.
        region: RegionId,
        /// From here on.
        since: Timestamp,
    },
    /// The region has given it one that survives failures, or has refused it for ever.
    Assigned {
        /// Which.
        id: CallId,
        /// The region.
        region: RegionId,
        /// The timestamp, or none: refused.
        at: Option<Timestamp>,
    },
    /// The home region has decided.
    Decided {
        /// Which.
        id: CallId,
        /// The decision.
        decision: Decision,
    },
    /// What became of it? Asked by a region that waits for the decision. A home that has never
    /// heard of it refuses it for ever.
    AskDecision {
        /// Which.
        id: CallId,
        /// Who asks.
        region: RegionId,
    },
    /// It has run in a region.
    Executed {
        /// Which.
        id: CallId,
        /// The region.
        region: RegionId,
    },
    /// It has run everywhere.
    Forget {
        /// Which.
        id: CallId,
    },
    /// How far a region is.
    Progress {
        /// The region.
        region: RegionId,
        /// No stamp below this comes there any more.
        closed: Timestamp,
        /// Everything before this has run on all its replicas.
        position: Timestamp,
    },
    /// A backup has all of a region's stream below the mark. To the leader of its own region.
    Has {
        /// Whose stream.
        region: RegionId,
        /// Below here.
        mark: Timestamp,
    },
    /// What does the receiver, a manager of the sender's region, keep of other regions' streams?
    AskKept,
    /// That.
    Kept {
        /// Of each other region.
        streams: Vec<KeptStream>,
    },
    /// Among the managers of one region.
    Group(Box<GroupMessage<Ledger, Entry>>),

    // ── membership ────────────────────────────────────────────────────────────────────────────
    /// These are out: do not listen to them any more, and say what you hold of theirs.
    Freeze {
        /// The epoch that begins.
        epoch: u64,
        /// Who is out.
        gone: Vec<NodeId>,
    },
    /// All local transactions of those who are out that the sender holds.
    Frozen {
        /// The epoch.
        epoch: u64,
        /// The transactions.
        held: Vec<Held>,
    },
    /// All that anybody holds: nothing more of theirs will come.
    Close {
        /// The epoch.
        epoch: u64,
        /// Who is out.
        gone: Vec<NodeId>,
        /// Their transactions that touch the receiver's shard.
        held: Vec<Held>,
    },
    /// The sender has all that was told of those who are out.
    Closed {
        /// The epoch.
        epoch: u64,
    },
    /// The sender starts from nothing, or was told that it is out, and wants in. Goes to all nodes
    /// of the region: what they sent to its earlier life is lost, and now they know.
    Join {
        /// How many times it has started from nothing, over all its lives.
        attempt: u64,
    },
    /// The sender counts the receiver as out.
    Out {
        /// The epoch.
        epoch: u64,
    },
    /// Send this node what you send its shard from now on, once you have heard it yourself.
    Admit {
        /// The epoch.
        epoch: u64,
        /// Who.
        node: NodeId,
        /// Which of its attempts.
        attempt: u64,
    },
    /// The sender does.
    Admitted {
        /// The epoch.
        epoch: u64,
        /// Who.
        node: NodeId,
        /// Local transactions for its shard that it will not be sent.
        before: u64,
    },
    /// Once you hold so many of each coordinator's transactions, give `node` your state.
    Fetch {
        /// The epoch.
        epoch: u64,
        /// Who.
        node: NodeId,
        /// Numbers by coordinator.
        before: Vec<(NodeId, u64)>,
    },
    /// The sender's whole state.
    State(Box<State>),
    /// The sender has its state.
    Joined {
        /// The epoch.
        epoch: u64,
    },
    /// The node takes part: its acknowledgements count.
    Live {
        /// The epoch.
        epoch: u64,
        /// Who.
        node: NodeId,
        /// It must not stamp up to this.
        past: Timestamp,
    },
}
