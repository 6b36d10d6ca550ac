//! Machines, entries, members and an outbox for unit tests.

use manxdb_core::{Nanos, NodeId, RequestId, Token, Work};

use crate::client::ClientAnswer;
use crate::disk::CurpRecord;
use crate::execute::{Declared, Execute, Executed};
use crate::ids::{ClientId, Config, Epoch, LogId, Member, Position, RpcId, Stamp, View, Wlv};
use crate::log::{Change, Entry};
use crate::master::RunRequest;
use crate::message::CurpMessage;
use crate::node::{CurpTimer, Outbox};

/// A machine without a state.
#[derive(Clone)]
pub(crate) struct Nothing;

impl Execute for Nothing {
    fn declare(_: &[u8]) -> Option<Declared> {
        None
    }
    fn execute(&mut self, _: &[u8], _: Stamp) -> Executed {
        Executed::default()
    }
    fn apply(&mut self, _: &[u8]) {}
    fn snapshot(&self) -> Vec<u8> {
        Vec::new()
    }
    fn restore(_: &[u8]) -> Option<Self> {
        Some(Self)
    }
    fn empty() -> Self {
        Self
    }
}

pub(crate) fn entry(epoch: u64, client: u64) -> Entry {
    Entry {
        epoch: Epoch(epoch),
        change: Change::Opened(ClientId(client)),
    }
}

/// The entry at a place that the master of an epoch made.
pub(crate) fn log_id(at: Position, epoch: u64) -> LogId {
    let epoch = Epoch(epoch);
    LogId { at, epoch }
}

/// An operation of the first client, to be synced before it is answered.
pub(crate) fn synced_update(view: View, seq: u64, command: Vec<u8>) -> RunRequest {
    let client = ClientId(1);
    RunRequest {
        view,
        rpc: RpcId { client, seq },
        ack: 0,
        stamp: Stamp { micros: 0, seed: 0 },
        command,
        sync: true,
    }
}

/// Each command is one key, and what it changes.
#[derive(Clone)]
pub(crate) struct OneKeyEach;

impl Execute for OneKeyEach {
    fn declare(command: &[u8]) -> Option<Declared> {
        Some(Declared {
            keys: vec![command.to_vec()],
            reads_only: false,
        })
    }
    fn execute(&mut self, command: &[u8], _: Stamp) -> Executed {
        Executed {
            effects: command.to_vec(),
            touched: vec![command.to_vec()],
            ..Executed::default()
        }
    }
    fn apply(&mut self, _: &[u8]) {}
    fn snapshot(&self) -> Vec<u8> {
        Vec::new()
    }
    fn restore(_: &[u8]) -> Option<Self> {
        Some(Self)
    }
    fn empty() -> Self {
        Self
    }
}

/// What a master said.
#[derive(Default)]
pub(crate) struct Said(pub(crate) Vec<(NodeId, CurpMessage)>);

impl Outbox for Said {
    fn send(&mut self, to: NodeId, body: CurpMessage) {
        self.0.push((to, body));
    }
    fn set_timer(&mut self, _: Nanos, _: CurpTimer) {}
    fn reply(&mut self, _: RequestId, _: ClientAnswer) {}
    fn persist(&mut self, _: CurpRecord, _: Token) {}
    fn work(&mut self, _: Work) {}
}

/// A process of the first life.
pub(crate) fn member(node: u32) -> Member {
    Member {
        node: NodeId(node),
        life: 1,
    }
}

/// The first view of an epoch.
pub(crate) fn config(epoch: u64, master: u32, backup: u32) -> Config {
    Config {
        view: View {
            epoch: Epoch(epoch),
            wlv: Wlv(u32::try_from(epoch).unwrap()),
        },
        master: member(master),
        backups: vec![member(backup)],
        witnesses: vec![member(5), member(6)],
        record_token: 1,
        gc_token: 2,
    }
}
