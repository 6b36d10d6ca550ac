//! What nodes say to each other.

use manxdb_core::{Message, Weight};
use serde::{Deserialize, Serialize};

use crate::copying::{Cut, Piece};
use crate::disk::Holding;
use crate::ids::{ClientId, Config, Epoch, LogId, Member, Position, RpcId, Stamp, View};
use crate::log::Entry;
use crate::table::Recorded;
use crate::wire::{Datagram, GcEntry, Op};

/// Why a request was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// Not the master of that view, or not now: ask the coordinator, and try again.
    WrongView,
    /// The client is unknown: it is forgotten, and so is what became of its operations.
    Expired,
}

/// What a process shows the coordinator besides that it lives; a witness nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Shown {
    /// The view that it serves as master.
    pub serves: Option<View>,
    /// What log a server has that is not master.
    pub holds: Option<Holding>,
    /// Of a master: spares that have its log but for a few entries at the end.
    pub near: Vec<Member>,
}

/// What nodes of a cluster send each other. Clients name the view that they mean; nobody acts on
/// a view that is not its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum CurpMessage {
    /// Between clients, masters and witnesses: records and their collection.
    Datagram(Datagram),
    /// Client to coordinator: who is master?
    Locate,
    /// The answer.
    Located(Option<Config>),
    /// Client to master: a name, please.
    Open {
        /// Of which view.
        view: View,
        /// To be repeated in the answer.
        nonce: u64,
    },
    /// The answer, once it is synced.
    Opened {
        /// From the question.
        nonce: u64,
        /// The client's name.
        client: ClientId,
    },
    /// Client to master: run a command.
    Run {
        /// Of which view.
        view: View,
        /// Which.
        rpc: RpcId,
        /// The first operation without an answer.
        ack: u64,
        /// When and with which luck.
        stamp: Stamp,
        /// What.
        #[serde(with = "crate::bytes")]
        command: Vec<u8>,
        /// Whether it is recorded at no witness, and so has to be synced.
        sync: bool,
    },
    /// The answer.
    Ran {
        /// Of which view.
        view: View,
        /// Which.
        rpc: RpcId,
        /// What the machine answered.
        #[serde(with = "crate::bytes")]
        answer: Vec<u8>,
        /// Whether all backups have it.
        synced: bool,
    },
    /// Client to master: say so when this operation is synced.
    Sync {
        /// Of which view.
        view: View,
        /// Which.
        rpc: RpcId,
    },
    /// Master to client: not done.
    Refused {
        /// Of which view the request was.
        view: View,
        /// Which.
        rpc: RpcId,
        /// Why.
        why: Refusal,
    },
    /// Master to backup: entries that follow `after`.
    Append {
        /// To which process.
        to: u64,
        /// The master's life.
        epoch: Epoch,
        /// The place before the first of them.
        after: Position,
        /// The entries.
        entries: Vec<Entry>,
        /// The end of the master's log.
        last: Position,
        /// All backups have everything up to here. A server that is no backup of the view in use is told
        /// of no more than it has said to have.
        synced: Position,
        /// Whether it is to be on disk before the answer, in any mode: the server was no backup when the
        /// view in use began.
        is_new: bool,
    },
    /// Master to a server that was no backup so far: which log do you have?
    AskLog {
        /// To which process.
        to: u64,
        /// The master's life.
        epoch: Epoch,
    },
    /// The answer.
    HasLog {
        /// The process.
        life: u64,
        /// The life of the master that asked.
        epoch: Epoch,
        /// The last entry that it has applied; nothing when it has no log of its own.
        log: Option<LogId>,
    },
    /// Master to a new backup: a part of everything.
    Install {
        /// To which process.
        to: u64,
        /// The part.
        piece: Piece,
    },
    /// Backup to master: which part comes next. After the last one it says [`CurpMessage::Appended`].
    Collected {
        /// The process.
        life: u64,
        /// Of which copy.
        cut: Cut,
        /// The number of the next part; all before it are there.
        next: u32,
    },
    /// Backup to master: has everything up to here, as the master has it.
    Appended {
        /// The process.
        life: u64,
        /// The master's life.
        epoch: Epoch,
        /// The place.
        at: Position,
    },
    /// New master to witness of the old view: stop, and give me what you have.
    Freeze(View),
    /// All of it.
    Frozen {
        /// The view.
        view: View,
        /// The process.
        life: u64,
        /// All records.
        records: Vec<Recorded>,
    },
    /// Master to witness: the record of an operation that it never heard of.
    Fetch {
        /// Of which view.
        view: View,
        /// Which.
        entry: GcEntry,
    },
    /// It.
    Fetched {
        /// Of which view.
        view: View,
        /// The record.
        record: Recorded,
    },
    /// Server or witness to coordinator: alive.
    Heartbeat {
        /// Counts them; names the lease that is asked for.
        number: u64,
        /// The process.
        life: u64,
        /// What it shows besides.
        shown: Shown,
    },
    /// Coordinator to server: heard. To the master: may answer reads for as long as agreed from
    /// when it sent that heartbeat.
    Lease {
        /// Of which heartbeat.
        number: u64,
        /// The newest view.
        view: View,
        /// Whether it is granted.
        granted: bool,
        /// To the master of that view: the spares that are to have its log; nothing when they stay as
        /// they are.
        followers: Option<Vec<Member>>,
    },
    /// Coordinator to witness: serve a view, beside those that you serve.
    StartWitness {
        /// To which process.
        to: u64,
        /// The view.
        view: View,
        /// The one that is in use; all others before `view` are over.
        in_use: Option<View>,
        /// What clients have to show.
        record_token: u64,
        /// What the master has to show.
        gc_token: u64,
    },
    /// Done.
    WitnessStarted {
        /// The process.
        life: u64,
        /// The view.
        view: View,
    },
    /// Coordinator to witness: every view but this one is over.
    EndWitness {
        /// The newest view.
        keep: View,
    },
    /// Coordinator to a backup of the old view, or to what was one before it started again: become
    /// master.
    Recover {
        /// The view whose master is gone; none when the cluster begins.
        old: Option<Config>,
        /// The one to come.
        new: Config,
        /// Whether its processes are gone and their disks are what is left: it begins with what its own
        /// disk has, and its backups get everything.
        restores: bool,
    },
    /// Coordinator to the master: change backups or witnesses.
    Reconfigure {
        /// The view to come.
        new: Config,
    },
    /// Master to coordinator: everything is on the backups of the view to come.
    Ready {
        /// That view.
        view: View,
    },
    /// Coordinator to master: the view is the cluster's, open for clients.
    Serve(Config),
}

impl Message for CurpMessage {
    fn weight(&self) -> Weight {
        match self {
            Self::Datagram(_)
            | Self::Heartbeat { .. }
            | Self::Lease { .. }
            | Self::Appended { .. }
            | Self::Collected { .. }
            | Self::HasLog { .. }
            | Self::Sync { .. } => Weight::Report,
            Self::Append { entries, .. } => Weight::Call {
                pieces: u32::try_from(entries.len()).unwrap_or(u32::MAX),
            },
            Self::Run { .. } | Self::Ran { .. } => Weight::Call { pieces: 1 },
            _ => Weight::Call { pieces: 0 },
        }
    }

    fn label(&self) -> &'static str {
        match self {
            Self::Datagram(datagram) => match (datagram.op, datagram.asks) {
                (Op::Record, true) => "record",
                (Op::Record, false) => "recorded",
                (Op::Gc, true) => "gc",
                (Op::Gc, false) => "collected",
                (Op::Probe, true) => "probe",
                (Op::Probe, false) => "probed",
            },
            Self::Locate => "locate",
            Self::Located(_) => "located",
            Self::Open { .. } => "open",
            Self::Opened { .. } => "opened",
            Self::Run { .. } => "run",
            Self::Ran { .. } => "ran",
            Self::Sync { .. } => "sync",
            Self::Refused { .. } => "refused",
            Self::Append { .. } => "append",
            Self::AskLog { .. } => "ask-log",
            Self::HasLog { .. } => "has-log",
            Self::Install { .. } => "install",
            Self::Collected { .. } => "install-next",
            Self::Appended { .. } => "appended",
            Self::Freeze(_) => "freeze",
            Self::Frozen { .. } => "frozen",
            Self::Fetch { .. } => "fetch",
            Self::Fetched { .. } => "fetched",
            Self::Heartbeat { .. } => "heartbeat",
            Self::Lease { .. } => "lease",
            Self::StartWitness { .. } => "start-witness",
            Self::WitnessStarted { .. } => "witness-started",
            Self::EndWitness { .. } => "end-witness",
            Self::Recover { .. } => "recover",
            Self::Reconfigure { .. } => "reconfigure",
            Self::Ready { .. } => "ready",
            Self::Serve(_) => "serve",
        }
    }

    fn txn(&self) -> Option<u64> {
        match self {
            Self::Datagram(datagram) if datagram.op == Op::Record => {
                Some(datagram.rpc.for_traces())
            }
            Self::Run { rpc, .. }
            | Self::Ran { rpc, .. }
            | Self::Sync { rpc, .. }
            | Self::Refused { rpc, .. } => Some(rpc.for_traces()),
            _ => None,
        }
    }

    fn is_datagram(&self) -> bool {
        matches!(self, Self::Datagram(_))
    }

    fn encode_datagram(&self) -> Option<Vec<u8>> {
        let Self::Datagram(datagram) = self else {
            return None;
        };
        datagram.encode()
    }

    fn decode_datagram(bytes: &[u8]) -> Option<Self> {
        Datagram::decode(bytes).ok().map(Self::Datagram)
    }

    fn with_bit_flipped(&self, bit: u64) -> Option<Self> {
        let Self::Datagram(datagram) = self else {
            return None;
        };
        let mut bytes = datagram.encode()?;
        let bit = usize::try_from(bit % (bytes.len() as u64 * 8)).ok()?;
        bytes[bit / 8] ^= 1 << (bit % 8);
        Datagram::decode(&bytes).ok().map(Self::Datagram)
    }
}

impl CurpMessage {
    /// Whether a configuration names this process.
    pub(crate) fn names(members: &[Member], member: Member) -> bool {
        members.contains(&member)
    }
}
