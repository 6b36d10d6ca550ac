//! A client: records at all witnesses and runs at the master, at the same time.
//!
//! An operation is complete when the master has synced it, or when the master has run it and all
//! witnesses of the same view have recorded it. All of them: a recovery asks any one.

mod retrying;

use std::collections::{BTreeMap, BTreeSet};

use manxdb_core::{Digest, LocalTime, NodeId, RequestId};

use self::retrying::record;
use crate::execute::Execute;
use crate::ids::{ClientId, Config, RpcId, Stamp, View};
use crate::message::CurpMessage;
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::node::{CurpTimer, Outbox};
use crate::options::Options;
use crate::wire::{Datagram, KEYS_MAX, Op, Status};

/// How an operation was completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Completion {
    /// All witnesses have it: one round trip.
    Fast,
    /// The master synced it before it answered: it conflicts, or is a read.
    AtMaster,
    /// The client asked for a sync, because a witness refused or was slow.
    Sync,
}

/// What a client answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientAnswer {
    /// What the machine answered; nothing when the client was forgotten, and with it what became
    /// of the operation.
    pub answer: Option<(Vec<u8>, Completion)>,
    /// How often it was tried.
    pub attempts: u32,
}

#[derive(Debug)]
struct Operation {
    request: RequestId,
    command: Vec<u8>,
    stamp: Stamp,
    /// Hashes of its keys, when it is to be recorded.
    hashes: Option<Vec<u64>>,
    attempt: u32,
    /// Attempts in this view since the master last said anything of it.
    silent: u32,
    /// The view of this attempt.
    view: View,
    accepted: BTreeSet<NodeId>,
    refused: bool,
    answer: Option<Vec<u8>>,
    sync_asked: bool,
}

/// One client with any number of operations under way.
pub struct Client {
    me: NodeId,
    options: Options,
    /// Makes what it draws differ from other clients' and lives'.
    seed: u64,
    config: Option<Config>,
    id: Option<ClientId>,
    nonce: u64,
    next: u64,
    operations: BTreeMap<u64, Operation>,
    /// Counts questions to the coordinator: only the newest is asked again.
    asked: u64,
    locating: bool,
}

impl Client {
    pub(crate) fn new(me: NodeId, life: u64, options: Options) -> Self {
        Self {
            me,
            options,
            seed: u64::from(me.0) << 32 ^ life,
            config: None,
            id: None,
            nonce: life << 32,
            next: 1,
            operations: BTreeMap::new(),
            asked: 0,
            locating: false,
        }
    }

    /// Operations that are not answered.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.operations.len()
    }

    /// The newest view that it knows; it may be over.
    #[must_use]
    pub fn config(&self) -> Option<&Config> {
        self.config.as_ref()
    }

    pub(crate) fn start(&mut self, out: &mut impl Outbox) {
        self.locate(out);
    }

    fn locate(&mut self, out: &mut impl Outbox) {
        self.locating = true;
        self.asked += 1;
        assert!(
            self.options.role(self.me) == crate::options::Role::Client,
            "who asks is none of the servers"
        );
        out.send(self.options.coordinator, CurpMessage::Locate);
        out.set_timer(self.options.patience, CurpTimer::LocateAgain(self.asked));
    }

    pub(crate) fn ask<E: Execute>(
        &mut self,
        now: LocalTime,
        request: RequestId,
        command: Vec<u8>,
        out: &mut impl Outbox,
    ) {
        let seq = self.next;
        self.next += 1;
        let declared = E::declare(&command).unwrap_or_default();
        let hashes = self.options.hasher.hashes(0, &declared.keys);
        let is_recorded = self.options.records && !declared.reads_only;
        let fits = is_recorded && (1..=KEYS_MAX).contains(&hashes.len());
        self.seed = self
            .seed
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .wrapping_add(seq);
        let operation = Operation {
            request,
            command,
            stamp: Stamp {
                micros: now.as_micros(),
                seed: self.seed,
            },
            hashes: fits.then_some(hashes),
            attempt: 0,
            silent: 0,
            view: View::default(),
            accepted: BTreeSet::new(),
            refused: false,
            answer: None,
            sync_asked: false,
        };
        let earlier = self.operations.insert(seq, operation);
        assert!(earlier.is_none(), "an operation has a number of its own");
        self.submit(seq, out);
    }

    /// Tries an operation in the view that is known now.
    fn submit(&mut self, seq: u64, out: &mut impl Outbox) {
        let (Some(client), Some(config)) = (self.id, self.config.clone()) else {
            return; // when there is a view and a name, all are submitted
        };
        let ack = self.operations.keys().next().copied().unwrap_or(seq);
        let rpc = RpcId { client, seq };
        assert!(ack <= seq, "what is asked is not acknowledged");
        let Some(operation) = self.operations.get_mut(&seq) else {
            return;
        };
        operation.attempt += 1;
        #[cfg(feature = "mutants")]
        let keeps = self.options.has(Mutant::MixedViews);
        #[cfg(not(feature = "mutants"))]
        let keeps = false;
        if !keeps {
            operation.accepted.clear();
            operation.answer = None;
        }
        if operation.view != config.view {
            operation.silent = 0;
        }
        operation.view = config.view;
        operation.refused = false;
        operation.sync_asked = false;
        let datagram = record(operation, &config, rpc);
        if datagram
            .as_ref()
            .is_none_or(|datagram| datagram.encode().is_none())
        {
            operation.hashes = None; // too large: synced instead
        }
        assert!(
            operation.answer.is_none() || keeps,
            "an answer of another view does not count"
        );
        let run = CurpMessage::Run {
            view: config.view,
            rpc,
            ack,
            stamp: operation.stamp,
            command: operation.command.clone(),
            sync: operation.hashes.is_none(),
        };
        let attempt = operation.attempt;
        out.send(config.master.node, run);
        if operation.hashes.is_some()
            && let Some(datagram) = datagram
        {
            for witness in &config.witnesses {
                out.send(witness.node, CurpMessage::Datagram(datagram.clone()));
            }
            out.set_timer(self.options.race_after, CurpTimer::Race { seq, attempt });
        }
        let patience = operation.wait(self.options.patience);
        out.set_timer(patience, CurpTimer::Again { seq, attempt });
    }

    /// Asks the master to say when the operation is synced; that needs no witness.
    fn ask_sync(&mut self, seq: u64, out: &mut impl Outbox) {
        let (Some(client), Some(config)) = (self.id, &self.config) else {
            return;
        };
        if let Some(operation) = self.operations.get_mut(&seq)
            && !operation.sync_asked
            && operation.view == config.view
        {
            operation.sync_asked = true;
            assert!(operation.attempt > 0, "a sync is of what was asked");
            let (view, rpc) = (operation.view, RpcId { client, seq });
            out.send(config.master.node, CurpMessage::Sync { view, rpc });
        }
    }

    pub(crate) fn on_message(&mut self, from: NodeId, body: CurpMessage, out: &mut impl Outbox) {
        match body {
            CurpMessage::Located(config) => self.located(config, out),
            CurpMessage::Opened { nonce, client } if nonce == self.nonce && self.id.is_none() => {
                assert!(client != ClientId(0), "nobody's name");
                self.id = Some(client);
                self.submit_all(out);
            }
            CurpMessage::Ran {
                view,
                rpc,
                answer,
                synced,
            } => self.ran(view, rpc, answer, synced, out),
            CurpMessage::Datagram(datagram) if !datagram.asks && datagram.op == Op::Record => {
                self.recorded(from, &datagram, out);
            }
            CurpMessage::Refused { view, rpc, why } if Some(rpc.client) == self.id => {
                self.not_done(view, rpc, why, out);
            }
            _ => {}
        }
    }

    fn located(&mut self, config: Option<Config>, out: &mut impl Outbox) {
        let Some(config) = config else {
            return; // it is asked again
        };
        self.locating = false;
        let known = self.config.as_ref().map(|known| known.view);
        if known.is_some_and(|known| known > config.view) {
            return;
        }
        let is_new = known != Some(config.view);
        assert!(
            known.is_none_or(|known| known <= config.view),
            "views go forward"
        );
        self.config = Some(config);
        if self.id.is_none() {
            self.open(out);
        } else if is_new {
            self.submit_all(out);
        }
    }

    fn open(&self, out: &mut impl Outbox) {
        if let Some(config) = &self.config {
            let (view, nonce) = (config.view, self.nonce);
            out.send(config.master.node, CurpMessage::Open { view, nonce });
        }
    }

    /// In order of their numbers: what was asked first is tried first.
    fn submit_all(&mut self, out: &mut impl Outbox) {
        let all: Vec<u64> = self.operations.keys().copied().collect();
        for seq in all {
            self.submit(seq, out);
        }
    }

    fn ran(
        &mut self,
        view: View,
        rpc: RpcId,
        answer: Vec<u8>,
        synced: bool,
        out: &mut impl Outbox,
    ) {
        let Some(operation) = self.operations.get_mut(&rpc.seq) else {
            return;
        };
        if self.id != Some(rpc.client) || operation.view != view {
            return;
        }
        if synced {
            let completion = if operation.sync_asked {
                Completion::Sync
            } else {
                Completion::AtMaster
            };
            self.complete(rpc.seq, answer, completion, out);
            return;
        }
        operation.answer = Some(answer);
        self.complete_if_recorded(rpc.seq, out);
    }

    fn recorded(&mut self, from: NodeId, datagram: &Datagram, out: &mut impl Outbox) {
        let (rpc, view) = (datagram.rpc, datagram.view);
        let witnesses = self.config.as_ref().map(|config| &config.witnesses);
        let is_witness =
            witnesses.is_some_and(|witnesses| witnesses.iter().any(|witness| witness.node == from));
        let Some(operation) = self.operations.get_mut(&rpc.seq) else {
            return;
        };
        if self.id != Some(rpc.client) || operation.view != view || !is_witness {
            return;
        }
        match datagram.status {
            Status::Accepted => {
                operation.accepted.insert(from);
            }
            Status::Busy => {} // it is sent again
            _ => operation.refused = true,
        }
        self.complete_if_recorded(rpc.seq, out);
    }

    fn complete_if_recorded(&mut self, seq: u64, out: &mut impl Outbox) {
        let Some(config) = &self.config else {
            return;
        };
        let Some(operation) = self.operations.get_mut(&seq) else {
            return;
        };
        let Some(answer) = operation.answer.clone() else {
            return;
        };
        let has_accepted = |node: &NodeId| operation.accepted.contains(node);
        let nodes = config.witnesses.iter().map(|witness| witness.node);
        let missing = nodes.filter(|node| !has_accepted(node)).count();
        #[cfg(feature = "mutants")]
        let missing = if self.options.has(Mutant::QuorumInsteadOfAll) {
            missing.saturating_sub(1)
        } else {
            missing
        };
        assert!(
            operation.accepted.len() <= config.witnesses.len() || config.view != operation.view,
            "only witnesses of the view were asked"
        );
        if missing == 0 && config.view == operation.view {
            self.complete(seq, answer, Completion::Fast, out);
        } else if operation.refused {
            self.ask_sync(seq, out);
        }
    }

    fn complete(
        &mut self,
        seq: u64,
        answer: Vec<u8>,
        completion: Completion,
        out: &mut impl Outbox,
    ) {
        if let Some(operation) = self.operations.remove(&seq) {
            assert!(operation.attempt > 0, "what is complete was asked");
            let answer = ClientAnswer {
                answer: Some((answer, completion)),
                attempts: operation.attempt,
            };
            out.reply(operation.request, answer);
        }
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        if self.operations.keys().any(|seq| *seq >= self.next) {
            return Err("an operation without a number".to_owned());
        }
        let own = self.operations.values();
        let untried = |operation: &&Operation| operation.attempt == 0;
        if own.clone().filter(untried).count() > 0 && self.id.is_some() && self.config.is_some() {
            return Err(format!("{:?}: an operation is not tried", self.me));
        }
        Ok(())
    }

    pub(crate) fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        digest
            .number(self.next)
            .number(self.operations.len() as u64)
            .number(self.seed);
        digest.value()
    }
}
