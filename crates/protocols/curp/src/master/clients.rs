//! What clients ask of a master: a name, commands, reads, syncs.

use manxdb_core::{LocalTime, NodeId, Work};

use super::{Master, RunRequest};
use crate::execute::{Declared, Execute, Executed};
use crate::ids::{ClientId, Position, RpcId, Stamp, View};
use crate::log::Change;
use crate::message::{CurpMessage, Refusal};
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::node::Outbox;
use crate::rifl::Known;
use crate::wire::GcEntry;

/// Bits of a client's name that are a place in the log; those above are the master's epoch.
const PLACE_BITS: u32 = 40;

impl<E: Execute> Master<E> {
    /// Gives a client a name, which is safe before it is told.
    pub(crate) fn open(&mut self, from: NodeId, view: View, nonce: u64, out: &mut impl Outbox) {
        if !self.is_serving() || view != self.config.view {
            return; // it asks again
        }
        // A master makes one entry at a place, and an epoch has one master: it is a new name, also where
        // a cluster has come back from disks with a shorter log than clients remember.
        let (epoch, place) = (self.epoch().0, self.last() + 1);
        assert!(place < 1 << PLACE_BITS, "a log is shorter than that");
        let client = ClientId(epoch << PLACE_BITS | place);
        assert!(client != ClientId(0), "nobody's name is given to nobody");
        assert!(
            !self.silent.contains_key(&client),
            "a client's name is the place of its own entry"
        );
        self.log_change(Change::Opened(client));
        self.silent.insert(client, 0);
        let opened = CurpMessage::Opened { nonce, client };
        self.held.hold(self.last(), from, opened);
        self.start_sync(out);
    }

    /// Runs a command, or answers again.
    pub(crate) fn run(
        &mut self,
        now: LocalTime,
        has_lease: bool,
        from: NodeId,
        request: RunRequest,
        out: &mut impl Outbox,
    ) {
        let (view, rpc) = (request.view, request.rpc);
        if !self.is_serving() || view != self.config.view {
            let why = Refusal::WrongView;
            out.send(from, CurpMessage::Refused { view, rpc, why });
            return;
        }
        if let Some(ticks) = self.silent.get_mut(&rpc.client) {
            *ticks = 0;
        }
        let known = self.rifl.look_up(rpc);
        #[cfg(feature = "mutants")]
        let known = match known {
            Known::Done { .. } if self.has(Mutant::NoRifl) => Known::New,
            known => known,
        };
        match known {
            Known::Expired => {
                let why = Refusal::Expired;
                out.send(from, CurpMessage::Refused { view, rpc, why });
            }
            Known::Acknowledged => {} // nobody waits for it
            Known::Done { at, answer } => {
                let first = request.sync || self.conflicted.contains(&at);
                self.answer(from, rpc, answer, (at, first), out);
                if first {
                    self.start_sync(out);
                }
            }
            Known::New => self.run_new(now, has_lease, from, request, out),
        }
    }

    fn run_new(
        &mut self,
        now: LocalTime,
        has_lease: bool,
        from: NodeId,
        request: RunRequest,
        out: &mut impl Outbox,
    ) {
        let (view, rpc) = (request.view, request.rpc);
        let Some(declared) = E::declare(&request.command) else {
            let answer = Vec::new(); // no command of this machine
            let synced = true;
            out.send(
                from,
                CurpMessage::Ran {
                    view,
                    rpc,
                    answer,
                    synced,
                },
            );
            return;
        };
        let (stamp, replaced) = self.stamp(now, request.stamp);
        let (executed, refused) = self.execute_unless_refused(&request.command, &declared, stamp);
        let declared_hashes = self.options.hasher.hashes(0, &declared.keys);
        let touched = self.options.hasher.hashes(0, &executed.touched);
        assert!(
            touched.len() <= executed.touched.len(),
            "a key has one hash"
        );
        out.work(Work {
            pieces: 1,
            keys: u32::try_from(touched.len()).unwrap_or(u32::MAX),
            ..Work::default()
        });
        let earlier = self.unsynced.earlier(&touched, executed.touches_all);
        assert!(
            earlier.is_none_or(|at| at > self.synced && at <= self.last()),
            "what is earlier is in the log and not synced"
        );
        if declared.reads_only && executed.effects.is_empty() {
            self.read(has_lease, from, rpc, executed, earlier, out);
            return;
        }
        let undeclared =
            executed.touches_all || touched.iter().any(|hash| !declared_hashes.contains(hash));
        #[cfg(feature = "mutants")]
        let undeclared = undeclared && !self.has(Mutant::UndeclaredTrusted);
        #[cfg(feature = "mutants")]
        let earlier = earlier.filter(|_| !self.has(Mutant::NoConflictCheck));
        // A client that does not know the mode may have recorded it at witnesses, which is no disk.
        let is_on_disk = !self.options.durability.trusts_witnesses();
        let asks = request.sync || is_on_disk;
        let first = earlier.is_some() || undeclared || replaced || refused || asks;
        let answer = executed.answer.clone();
        let before = self.last();
        self.execute(rpc, request.ack, &declared_hashes, touched, executed);
        let at = self.last();
        assert_eq!(at, before + 1, "an operation is one entry of the log");
        if first {
            self.conflicted.insert(at);
            self.counts.synced_first += 1;
        } else {
            self.counts.fast += 1;
        }
        self.answer(from, rpc, answer, (at, first), out);
        if first {
            self.start_sync(out);
        } else {
            self.plan_sync(out);
        }
    }

    /// What a command does, or what is answered instead; and whether that is so. A refusal is synced
    /// before it is told: a replay of the command's record must find that it was done.
    fn execute_unless_refused(
        &mut self,
        command: &[u8],
        declared: &Declared,
        stamp: Stamp,
    ) -> (Executed, bool) {
        let refused = |answer| Executed {
            answer,
            touched: declared.keys.clone(),
            ..Executed::default()
        };
        if let Some(answer) = self.state.refuses(command, None) {
            return (refused(answer), true);
        }
        let executed = self.state.execute(command, stamp);
        match self.state.refuses(command, Some(&executed)) {
            Some(answer) => (refused(answer), true),
            None => (executed, false),
        }
    }

    /// The stamp that a command runs at, and whether it is another one than was recorded.
    fn stamp(&self, now: LocalTime, stamp: Stamp) -> (Stamp, bool) {
        let own = Stamp {
            micros: now.as_micros(),
            seed: stamp.seed,
        };
        #[cfg(feature = "mutants")]
        if self.has(Mutant::StampIgnored) {
            let seed = now.0;
            return (Stamp { seed, ..own }, false);
        }
        let slack = self.options.stamp_slack.as_micros();
        if stamp.micros.abs_diff(own.micros) > slack {
            assert_eq!(own.seed, stamp.seed, "luck is the client's in any case");
            return (own, true);
        }
        (stamp, false)
    }

    /// Lets a command that ran in this state take effect.
    pub(super) fn execute(
        &mut self,
        rpc: RpcId,
        ack: u64,
        declared: &[u64],
        touched: Vec<u64>,
        executed: Executed,
    ) {
        assert!(rpc.client != ClientId(0), "nobody asks for nothing");
        self.state.apply(&executed.effects);
        self.log_change(Change::Executed {
            rpc,
            ack,
            answer: executed.answer,
            effects: executed.effects,
            touched,
            touches_all: executed.touches_all,
        });
        let at = self.last();
        assert!(at > self.synced, "what was just executed is not synced");
        for hash in declared {
            let entry = GcEntry { hash: *hash, rpc };
            self.garbage.push_back((at, entry));
        }
    }

    /// Answers a read: from what is synced, and under a lease, or another master may have
    /// answered newer things.
    fn read(
        &mut self,
        has_lease: bool,
        from: NodeId,
        rpc: RpcId,
        executed: Executed,
        earlier: Option<Position>,
        out: &mut impl Outbox,
    ) {
        let view = self.config.view;
        assert!(
            executed.effects.is_empty(),
            "a read that changes something is an update"
        );
        #[cfg(feature = "mutants")]
        let has_lease = has_lease || self.has(Mutant::NoLease);
        if !has_lease {
            let why = Refusal::WrongView;
            out.send(from, CurpMessage::Refused { view, rpc, why });
            return;
        }
        #[cfg(feature = "mutants")]
        let earlier = earlier.filter(|_| !self.has(Mutant::ReadsUnsynced));
        let answer = executed.answer;
        let ran = CurpMessage::Ran {
            view,
            rpc,
            answer,
            synced: true,
        };
        match earlier {
            None => out.send(from, ran),
            Some(at) => {
                assert!(at > self.synced, "a read waits for what is not synced");
                self.held.hold(at, from, ran);
                self.start_sync(out);
            }
        }
    }

    /// Answers an update: now, or once it is synced.
    fn answer(
        &mut self,
        from: NodeId,
        rpc: RpcId,
        answer: Vec<u8>,
        (at, first): (Position, bool),
        out: &mut impl Outbox,
    ) {
        let view = self.config.view;
        let is_synced = at <= self.synced;
        assert!(at <= self.last(), "only what was executed is answered");
        let ran = CurpMessage::Ran {
            view,
            rpc,
            answer,
            synced: is_synced || first,
        };
        if first && !is_synced {
            assert!(
                self.is_serving(),
                "nobody waits at a master that is not open"
            );
            self.held.hold(at, from, ran);
        } else {
            out.send(from, ran);
        }
    }

    /// Tells a client when its operation is synced.
    pub(crate) fn sync(&mut self, from: NodeId, view: View, rpc: RpcId, out: &mut impl Outbox) {
        if !self.is_serving() || view != self.config.view {
            let why = Refusal::WrongView;
            out.send(from, CurpMessage::Refused { view, rpc, why });
            return;
        }
        if let Known::Done { at, answer } = self.rifl.look_up(rpc) {
            self.answer(from, rpc, answer, (at, true), out);
            self.start_sync(out);
        }
    }

    /// Forgets clients that have been silent for too long. The entry comes after everything that
    /// they did, so a log that has it has that too.
    pub(super) fn expire(&mut self) {
        let most = self.options.client_ticks;
        for ticks in self.silent.values_mut() {
            *ticks += 1;
        }
        let gone = self.silent.iter().filter(|(_, ticks)| **ticks > most);
        let gone: Vec<ClientId> = gone.map(|(client, _)| *client).collect();
        for client in gone {
            let was_known = self.silent.remove(&client);
            assert!(was_known.is_some(), "a client is forgotten once");
            self.log_change(Change::Expired(client));
            self.counts.expired += 1;
        }
    }
}
