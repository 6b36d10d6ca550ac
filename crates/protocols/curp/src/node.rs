//! A node of a cluster: coordinator, server, witness or client, as one core.

use std::marker::PhantomData;

use manxdb_core::{
    Actions, Core, Event, EventOf, LocalTime, Nanos, NodeId, RequestId, Token, Work,
};

use crate::carrier::WitnessCarrier;
use crate::client::{Client, ClientAnswer};
use crate::coordinator::Coordinator;
use crate::disk::{self, CurpRecord, DiskError};
use crate::execute::Execute;
use crate::ids::{Epoch, Member};
use crate::message::{CurpMessage, Shown};
use crate::options::{Options, Role};
use crate::server::Server;
use crate::witness::Witness;

/// Timers of all kinds of nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CurpTimer {
    /// A server or witness shows that it lives.
    Heartbeat,
    /// A server's lease of a heartbeat is over.
    LeaseEnds(u64),
    /// A server sends again what was not answered.
    Tick,
    /// A master starts a sync.
    SyncDue(Epoch),
    /// The coordinator looks for silent nodes.
    Coordinate,
    /// The lease that the coordinator granted is over for certain.
    LeaseOver(u64),
    /// A client has not all acceptances.
    Race {
        /// Of the operation.
        seq: u64,
        /// Of this attempt.
        attempt: u32,
    },
    /// A client has no answer.
    Again {
        /// To the operation.
        seq: u64,
        /// To this attempt.
        attempt: u32,
    },
    /// A client has no answer of the coordinator.
    LocateAgain(u64),
}

/// What roles ask their driver for.
pub(crate) trait Outbox {
    fn send(&mut self, to: NodeId, body: CurpMessage);
    fn set_timer(&mut self, after: Nanos, timer: CurpTimer);
    fn reply(&mut self, id: RequestId, body: ClientAnswer);
    fn persist(&mut self, record: CurpRecord, token: Token);
    fn work(&mut self, work: Work);
}

impl<E: Execute> Outbox for Actions<CurpNode<E>> {
    fn send(&mut self, to: NodeId, body: CurpMessage) {
        self.send(to, body);
    }

    fn set_timer(&mut self, after: Nanos, timer: CurpTimer) {
        self.set_timer(after, timer);
    }

    fn reply(&mut self, id: RequestId, body: ClientAnswer) {
        self.reply(id, body);
    }

    fn persist(&mut self, record: CurpRecord, token: Token) {
        self.persist(record, token);
    }

    fn work(&mut self, work: Work) {
        self.work(work);
    }
}

/// Shows the coordinator that a process lives, and sets the timer for the next time.
pub(crate) fn heartbeat(
    options: &Options,
    (number, life): (u64, u64),
    shown: Shown,
    out: &mut impl Outbox,
) {
    let heartbeat = CurpMessage::Heartbeat {
        number,
        life,
        shown,
    };
    out.send(options.coordinator, heartbeat);
    out.set_timer(options.heartbeat_every, CurpTimer::Heartbeat);
}

/// A node that replicates a machine `E`.
#[allow(clippy::large_enum_variant)] // one of them a node, for as long as it lives
pub enum CurpNode<E> {
    /// It decides who does what.
    Coordinator(Coordinator),
    /// It is master or backup.
    Server(Server<E>),
    /// It keeps requests until they are synced.
    Witness(Witness),
    /// It asks.
    Client(Client, PhantomData<E>),
}

impl<E: Execute> CurpNode<E> {
    /// The node of that number in its `life`th life, with what is on its `disk`, oldest first; a
    /// coordinator's `secret` makes tokens.
    ///
    /// # Errors
    /// The records are none that such a node wrote.
    pub fn open(
        node: NodeId,
        life: u64,
        options: Options,
        secret: u64,
        disk: Vec<CurpRecord>,
    ) -> Result<Self, DiskError> {
        Self::open_on(E::empty(), node, life, options, secret, disk)
    }

    /// As [`CurpNode::open`]; a server's states are kept where `empty` is.
    ///
    /// # Errors
    /// As [`CurpNode::open`].
    pub fn open_on(
        empty: E,
        node: NodeId,
        life: u64,
        options: Options,
        secret: u64,
        disk: Vec<CurpRecord>,
    ) -> Result<Self, DiskError> {
        let me = Member { node, life };
        assert!(life > 0, "lives begin with 1");
        // One that survives nothing replicates nothing: what replication is compared with.
        assert!(
            options.faults < options.servers as usize,
            "a master's backups are other servers"
        );
        Ok(match options.role(node) {
            Role::Coordinator => {
                let disk = disk::decisions(disk)?;
                Self::Coordinator(Coordinator::new(options, secret, disk))
            }
            Role::Server => {
                assert!(
                    !empty.has_store() || options.durability.is_on_disk(),
                    "a machine with a store of its own has its place in a journal"
                );
                let kept = disk::read(disk, &empty)?;
                Self::Server(Server::new(me, options, &empty, kept))
            }
            Role::Witness => Self::Witness(Witness::new(me, options)),
            Role::Client => {
                let records = options.records && options.durability.trusts_witnesses();
                let options = Options { records, ..options };
                Self::Client(Client::new(node, life, options), PhantomData)
            }
        })
    }

    /// A witness whose records lie elsewhere than in this process's memory.
    #[must_use]
    pub fn witness_on(
        node: NodeId,
        life: u64,
        options: Options,
        carrier: Box<dyn WitnessCarrier>,
    ) -> Self {
        Self::Witness(Witness::on(Member { node, life }, options, carrier))
    }

    /// The coordinator it is.
    #[must_use]
    pub fn coordinator(&self) -> Option<&Coordinator> {
        match self {
            Self::Coordinator(coordinator) => Some(coordinator),
            _ => None,
        }
    }

    /// The server it is.
    #[must_use]
    pub fn server(&self) -> Option<&Server<E>> {
        match self {
            Self::Server(server) => Some(server),
            _ => None,
        }
    }

    /// The witness it is.
    #[must_use]
    pub fn witness(&self) -> Option<&Witness> {
        match self {
            Self::Witness(witness) => Some(witness),
            _ => None,
        }
    }

    /// The client it is.
    #[must_use]
    pub fn client(&self) -> Option<&Client> {
        match self {
            Self::Client(client, _) => Some(client),
            _ => None,
        }
    }
}

impl<E: Execute> Core for CurpNode<E> {
    type Message = CurpMessage;
    type Timer = CurpTimer;
    /// A command of the machine.
    type Request = Vec<u8>;
    type Reply = ClientAnswer;
    /// What the coordinator decided, and the logs of servers.
    type Record = CurpRecord;

    fn step(&mut self, now: LocalTime, event: EventOf<Self>, out: &mut Actions<Self>) {
        if self
            .server()
            .is_some_and(|server| server.failure().is_some())
        {
            return; // it is silent until its process ends
        }
        match (self, event) {
            (Self::Coordinator(node), Event::Start) => node.start(out),
            (Self::Coordinator(node), Event::Message { from, body }) => {
                node.on_message(from, body, out);
            }
            (Self::Coordinator(node), Event::Timer(timer)) => node.on_timer(&timer, out),
            (Self::Coordinator(node), Event::Persisted(token)) => node.persisted(token, out),
            (Self::Server(node), Event::Start) => node.start(out),
            (Self::Server(node), Event::Message { from, body }) => {
                node.on_message(now, from, body, out);
            }
            (Self::Server(node), Event::Timer(timer)) => node.on_timer(&timer, out),
            (Self::Server(node), Event::Persisted(token)) => node.persisted(token, out),
            (Self::Witness(node), Event::Start) => node.start(out),
            (Self::Witness(node), Event::Message { from, body }) => {
                node.on_message(from, body, out);
            }
            (Self::Witness(node), Event::Timer(timer)) => node.on_timer(&timer, out),
            (Self::Client(node, _), Event::Start) => node.start(out),
            (Self::Client(node, _), Event::Message { from, body }) => {
                node.on_message(from, body, out);
            }
            (Self::Client(node, _), Event::Timer(timer)) => node.on_timer(&timer, out),
            (Self::Client(node, _), Event::Request { id, body }) => {
                node.ask::<E>(now, id, body, out);
            }
            (_, Event::Request { .. } | Event::Persisted(_)) => {}
        }
    }

    fn check(&self) -> Result<(), String> {
        match self {
            Self::Coordinator(node) => node.check(),
            Self::Server(node) => node.check(),
            Self::Witness(node) => node.check(),
            Self::Client(node, _) => node.check(),
        }
    }

    fn digest(&self) -> u64 {
        match self {
            Self::Coordinator(node) => node.digest(),
            Self::Server(node) => node.digest(),
            Self::Witness(node) => node.digest(),
            Self::Client(node, _) => node.digest(),
        }
    }
}
