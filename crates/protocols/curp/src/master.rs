//! The master: executes, answers what commutes at once, and syncs the rest first.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use manxdb_core::{LocalTime, Nanos, NodeId, Work};

use crate::execute::{Execute, Executed};
use crate::garbage::GcLink;
use crate::ids::{ClientId, Config, Epoch, Member, Position, RpcId, Stamp, View};
use crate::message::{Change, CurpMessage, Entry, Refusal};
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::node::{CurpTimer, Outbox};
use crate::options::Options;
use crate::replies::HeldReplies;
use crate::rifl::{Known, Rifl};
use crate::table::Recorded;
use crate::wire::{Datagram, GcEntry, Op};

/// Entries of one message to a backup.
const ENTRIES_A_MESSAGE: usize = 256;
/// Ticks without an answer after which a backup is sent something again.
const PATIENCE_TICKS: u32 = 3;

/// A client's request as the master gets it.
#[derive(Debug, Clone)]
pub(crate) struct RunRequest {
    pub(crate) view: View,
    pub(crate) rpc: RpcId,
    pub(crate) ack: u64,
    pub(crate) stamp: Stamp,
    pub(crate) command: Vec<u8>,
    pub(crate) sync: bool,
}

/// What a master is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It waits for a witness of the view whose master is gone.
    Freezing {
        /// That view.
        old: Config,
    },
    /// It brings its backups up to its log, before anybody is served.
    Filling,
    /// It is open.
    Serving,
    /// It brings the backups of the next view up to its log; nobody is served meanwhile.
    Changing {
        /// The next view.
        next: Config,
    },
}

/// A backup as its master sees it.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) member: Member,
    /// It has the log up to here.
    pub(crate) acked: Position,
    /// Whether it has to get everything first.
    pub(crate) install: bool,
    /// It was sent the log up to here; what is under way is what follows `acked`.
    sent: Position,
    in_flight: bool,
    ticks: u32,
    /// What it was told that all have.
    told: Position,
}

impl Peer {
    pub(crate) fn new(member: Member, acked: Position, install: bool) -> Self {
        Self {
            member,
            acked,
            install,
            sent: acked,
            in_flight: false,
            ticks: 0,
            told: 0,
        }
    }
}

/// The master of a view.
pub struct Master<E> {
    pub(crate) options: Options,
    pub(crate) config: Config,
    pub(crate) phase: Phase,
    pub(crate) state: E,
    pub(crate) rifl: Rifl,
    /// What follows `synced`.
    pub(crate) log: VecDeque<Entry>,
    pub(crate) synced: Position,
    pub(crate) peers: Vec<Peer>,
    /// The last place of what touched a key, by the key's hash, where that is not synced.
    unsynced: BTreeMap<u64, Position>,
    /// Places that may not be answered before they are synced.
    conflicted: BTreeSet<Position>,
    held: HeldReplies,
    /// What witnesses may forget once it is synced.
    garbage: VecDeque<(Position, GcEntry)>,
    links: Vec<GcLink>,
    /// Ticks since clients were heard of.
    silent: BTreeMap<ClientId, u32>,
    sync_is_due: bool,
    /// What it did, for reports.
    pub(crate) counts: MasterCounts,
}

/// What a master did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MasterCounts {
    /// Updates answered before they were synced.
    pub fast: u64,
    /// Updates that were synced first.
    pub synced_first: u64,
    /// Requests done from the records of a witness, after a failure or because they were in the
    /// way.
    pub replayed: u64,
    /// Clients forgotten.
    pub expired: u64,
}

impl<E: Execute> Master<E> {
    /// A master that is not open yet: `log` follows what all backups have.
    pub(crate) fn new(
        options: Options,
        config: Config,
        phase: Phase,
        (state, rifl): (E, Rifl),
        (synced, log): (Position, VecDeque<Entry>),
        peers: Vec<Peer>,
    ) -> Self {
        let mut master = Self {
            options,
            config,
            phase,
            state,
            rifl,
            log: VecDeque::new(),
            synced,
            peers,
            unsynced: BTreeMap::new(),
            conflicted: BTreeSet::new(),
            held: HeldReplies::default(),
            garbage: VecDeque::new(),
            links: Vec::new(),
            silent: BTreeMap::new(),
            sync_is_due: false,
            counts: MasterCounts::default(),
        };
        for entry in log {
            if let Change::Executed { effects, .. } = &entry.change {
                master.state.apply(effects);
            }
            master.push_entry(entry);
        }
        let clients: Vec<ClientId> = master.rifl.clients().collect();
        master.silent.extend(clients.into_iter().map(|id| (id, 0)));
        master
    }

    #[cfg(feature = "mutants")]
    pub(crate) fn has(&self, mutant: Mutant) -> bool {
        self.options.has(mutant)
    }

    /// The end of the log.
    pub(crate) fn last(&self) -> Position {
        self.synced + self.log.len() as Position
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.config.view.epoch
    }

    /// The epoch that it writes to backups in.
    pub(crate) fn backup_epoch(&self) -> Epoch {
        self.epoch()
    }

    pub(crate) fn is_serving(&self) -> bool {
        self.phase == Phase::Serving
    }

    /// Appends an entry whose effects the state has.
    fn push_entry(&mut self, entry: Entry) {
        assert!(entry.epoch <= self.epoch(), "no entry of a master to come");
        self.log.push_back(entry);
        let last = self.last();
        let Some(entry) = self.log.back() else {
            return;
        };
        self.rifl.take(last, &entry.change);
        if let Change::Executed { touched, .. } = &entry.change {
            for hash in touched {
                self.unsynced.insert(*hash, last);
            }
        }
    }

    fn log_change(&mut self, change: Change) {
        let epoch = self.epoch();
        self.push_entry(Entry { epoch, change });
    }

    // Clients.

    /// Gives a client a name, which is safe before it is told.
    pub(crate) fn open(&mut self, from: NodeId, view: View, nonce: u64, out: &mut impl Outbox) {
        if !self.is_serving() || view != self.config.view {
            return; // it asks again
        }
        // No other entry has this place, and none had it that was synced: it is a new name.
        let client = ClientId(self.last() + 1);
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
        let executed = self.state.execute(&request.command, stamp);
        let declared_hashes = self.options.hasher.hashes(0, &declared.keys);
        let touched = self.options.hasher.hashes(0, &executed.touched);
        out.work(Work {
            pieces: 1,
            keys: u32::try_from(touched.len()).unwrap_or(u32::MAX),
            ..Work::default()
        });
        let earlier = touched.iter().filter_map(|hash| self.unsynced.get(hash));
        let earlier = earlier.max().copied();
        if declared.reads_only && executed.effects.is_empty() {
            self.read(has_lease, from, rpc, executed, earlier, out);
            return;
        }
        let undeclared = touched.iter().any(|hash| !declared_hashes.contains(hash));
        #[cfg(feature = "mutants")]
        let undeclared = undeclared && !self.has(Mutant::UndeclaredTrusted);
        #[cfg(feature = "mutants")]
        let earlier = earlier.filter(|_| !self.has(Mutant::NoConflictCheck));
        let first = earlier.is_some() || undeclared || replaced || request.sync;
        let answer = executed.answer.clone();
        self.execute(rpc, request.ack, &declared_hashes, touched, executed);
        let at = self.last();
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
            return (own, true);
        }
        (stamp, false)
    }

    /// Lets a command that ran in this state take effect.
    fn execute(
        &mut self,
        rpc: RpcId,
        ack: u64,
        declared: &[u64],
        touched: Vec<u64>,
        executed: Executed,
    ) {
        self.state.apply(&executed.effects);
        self.log_change(Change::Executed {
            rpc,
            ack,
            answer: executed.answer,
            effects: executed.effects,
            touched,
        });
        let at = self.last();
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
        let ran = CurpMessage::Ran {
            view,
            rpc,
            answer,
            synced: is_synced || first,
        };
        if first && !is_synced {
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

    // Backups.

    /// Starts a sync now or soon.
    fn plan_sync(&mut self, out: &mut impl Outbox) {
        let waiting = self.log.len() as u64;
        let after = self.options.sync_after;
        if after == Nanos::ZERO || waiting >= self.options.batch {
            self.start_sync(out);
        } else if !self.sync_is_due {
            self.sync_is_due = true;
            let epoch = self.epoch();
            out.set_timer(after, CurpTimer::SyncDue(epoch));
        }
    }

    /// The time for a sync has come.
    pub(crate) fn sync_due(&mut self, out: &mut impl Outbox) {
        self.sync_is_due = false;
        self.start_sync(out);
    }

    /// Sends every backup what it was not sent yet: a client waits for it. Not after what is
    /// under way but behind it, or that client would wait for a third round trip.
    pub(crate) fn start_sync(&mut self, out: &mut impl Outbox) {
        for index in 0..self.peers.len() {
            let peer = &self.peers[index];
            let is_due = !peer.in_flight || !peer.install;
            if is_due && (peer.install || peer.sent < self.last()) {
                self.push(index, out);
            }
        }
        self.progress(out);
    }

    fn push(&mut self, index: usize, out: &mut impl Outbox) {
        let (epoch, last, synced) = (self.epoch(), self.last(), self.synced);
        let peer = &mut self.peers[index];
        peer.in_flight = true;
        peer.ticks = 0;
        let (to, node) = (peer.member.life, peer.member.node);
        if peer.install {
            peer.sent = last;
            let install = CurpMessage::Install {
                to,
                epoch,
                last,
                state: self.state.snapshot(),
                rifl: self.rifl.clone(),
            };
            out.send(node, install);
            return;
        }
        assert!(peer.acked >= synced, "all backups have what is synced");
        peer.told = synced;
        let after = peer.sent.max(synced);
        let skip = usize::try_from(after - synced).unwrap_or(usize::MAX);
        let entries = self.log.iter().skip(skip).take(ENTRIES_A_MESSAGE);
        let entries: Vec<Entry> = entries.cloned().collect();
        peer.sent = after + entries.len() as Position;
        assert!(peer.sent <= last, "no more is sent than there is");
        let append = CurpMessage::Append {
            to,
            epoch,
            after,
            entries,
            last,
            synced,
        };
        out.send(node, append);
    }

    /// A backup has everything up to a place.
    pub(crate) fn appended(&mut self, from: Member, at: Position, out: &mut impl Outbox) {
        let last = self.last();
        let Some(peer) = self.peers.iter_mut().find(|peer| peer.member == from) else {
            return;
        };
        if at > last {
            return; // not this log
        }
        peer.acked = peer.acked.max(at);
        peer.sent = peer.sent.max(peer.acked);
        peer.install = false;
        peer.in_flight = peer.sent > peer.acked;
        self.progress(out);
        if self.held.first().is_some() || !self.is_serving() {
            self.start_sync(out);
        } else if !self.log.is_empty() {
            self.plan_sync(out);
        }
    }

    /// Does what the backups' answers allow.
    fn progress(&mut self, out: &mut impl Outbox) {
        let acked = self.peers.iter().map(|peer| peer.acked);
        let all = acked.clone().min().unwrap_or_else(|| self.last());
        match &self.phase {
            Phase::Serving => {
                #[cfg(feature = "mutants")]
                let all = if self.has(Mutant::SyncOfOne) {
                    acked.max().unwrap_or(all)
                } else {
                    all
                };
                if all > self.synced {
                    self.synced_up_to(all, out);
                }
            }
            Phase::Filling | Phase::Changing { .. } => self.report_ready(out),
            Phase::Freezing { .. } => {}
        }
    }

    /// Tells the coordinator that the backups of the view to come have everything.
    fn report_ready(&self, out: &mut impl Outbox) {
        let has_all = |peer: &Peer| !peer.install && peer.acked == self.last();
        let ready = self.peers.iter().all(has_all);
        #[cfg(feature = "mutants")]
        let ready = ready || self.has(Mutant::OpensBeforeSync);
        if !ready {
            return;
        }
        let view = match &self.phase {
            Phase::Filling => self.config.view,
            Phase::Changing { next } => next.view,
            Phase::Freezing { .. } | Phase::Serving => return,
        };
        out.send(self.options.coordinator, CurpMessage::Ready { view });
    }

    /// All backups have everything up to a place.
    fn synced_up_to(&mut self, synced: Position, out: &mut impl Outbox) {
        assert!(synced >= self.synced, "what is synced stays so");
        assert!(synced <= self.last(), "nothing is synced that is not there");
        let count = usize::try_from(synced - self.synced).unwrap_or(usize::MAX);
        self.log.drain(..count);
        self.synced = synced;
        #[cfg(feature = "mutants")]
        for peer in &mut self.peers {
            peer.acked = peer.acked.max(synced); // with a planted defect: the log is gone
        }
        self.unsynced.retain(|_, at| *at > synced);
        self.conflicted = self.conflicted.split_off(&(synced + 1));
        for (to, message) in self.held.release(synced) {
            out.send(to, message);
        }
        self.collect(out);
    }

    // Witnesses.

    /// Lets witnesses forget what is synced.
    fn collect(&mut self, out: &mut impl Outbox) {
        let synced = self.synced;
        #[cfg(feature = "mutants")]
        let synced = if self.has(Mutant::GcBeforeSync) {
            self.last()
        } else {
            synced
        };
        while self.garbage.front().is_some_and(|(at, _)| *at <= synced) {
            let Some((_, entry)) = self.garbage.pop_front() else {
                break;
            };
            for link in &mut self.links {
                link.add(entry);
            }
        }
        for link in &mut self.links {
            link.send(&self.config, out);
        }
    }

    /// A witness has collected, and says what is in the way there.
    pub(crate) fn collected(&mut self, from: NodeId, datagram: &Datagram, out: &mut impl Outbox) {
        if !self.is_serving() || datagram.view != self.config.view || datagram.op != Op::Gc {
            return;
        }
        let mut links = self.links.iter_mut();
        let Some(link) = links.find(|link| link.witness.node == from) else {
            return;
        };
        if !link.answered(datagram) {
            return;
        }
        for entry in &datagram.entries {
            match self.rifl.look_up(entry.rpc) {
                Known::Done { at, .. } if at > self.synced => {} // it will go
                Known::New => {
                    // Its client went away before the master heard of it.
                    let view = self.config.view;
                    let entry = *entry;
                    out.send(from, CurpMessage::Fetch { view, entry });
                }
                Known::Done { .. } | Known::Acknowledged | Known::Expired => {
                    let at = self.last();
                    self.garbage.push_back((at, *entry));
                }
            }
        }
        self.collect(out);
        if !self.log.is_empty() {
            self.plan_sync(out);
        }
    }

    /// A record that is in the way at a witness: it is done like a client's own attempt.
    pub(crate) fn fetched(&mut self, view: View, record: &Recorded, out: &mut impl Outbox) {
        if self.is_serving() && view == self.config.view {
            self.replay(record, false);
            self.start_sync(out);
        }
    }

    /// Does a recorded request, unless it was done. In a recovery one that touches undeclared
    /// keys is dropped. The acknowledgements that requests carry are
    /// not recorded: in the order of replay they would drop what comes later (RIFL, C.1).
    pub(crate) fn replay(&mut self, record: &Recorded, recovers: bool) {
        if self.rifl.look_up(record.rpc) != Known::New {
            return;
        }
        let Some(declared) = E::declare(&record.command) else {
            return;
        };
        let stamp = Stamp {
            micros: record.stamp.0,
            seed: record.stamp.1,
        };
        let executed = self.state.execute(&record.command, stamp);
        let declared = self.options.hasher.hashes(0, &declared.keys);
        let touched = self.options.hasher.hashes(0, &executed.touched);
        let undeclared = touched.iter().any(|hash| !declared.contains(hash));
        #[cfg(feature = "mutants")]
        let undeclared = undeclared && !self.has(Mutant::ReplaysUndeclared);
        if undeclared && recovers {
            // It was never answered: an answer before a sync needs declared keys alone, and
            // after a sync it would be known. So it may not have been.
            return;
        }
        let ack = 0;
        #[cfg(feature = "mutants")]
        let ack = if self.has(Mutant::AckInReplay) {
            record.rpc.seq
        } else {
            ack
        };
        self.execute(record.rpc, ack, &declared, touched, executed);
        self.counts.replayed += 1;
    }

    // Views.

    /// A witness of the old view has stopped and gives its records: the only ones that count.
    pub(crate) fn frozen(
        &mut self,
        from: Member,
        view: View,
        records: &[Recorded],
        out: &mut impl Outbox,
    ) {
        let old = match &self.phase {
            Phase::Freezing { old } => old,
            #[cfg(feature = "mutants")]
            Phase::Filling if self.has(Mutant::MixedWitnesses) => {
                for record in records {
                    self.replay(record, true);
                }
                return self.start_sync(out);
            }
            _ => return,
        };
        if view != old.view || !CurpMessage::names(&old.witnesses, from) {
            return;
        }
        #[cfg(feature = "mutants")]
        let records = if self.has(Mutant::NoReplay) {
            &[]
        } else {
            records
        };
        for record in records {
            self.replay(record, true);
        }
        self.phase = Phase::Filling;
        self.start_sync(out);
    }

    /// Goes over to other backups or witnesses: serves nobody until they have everything.
    pub(crate) fn reconfigure(&mut self, new: Config, out: &mut impl Outbox) {
        let newer = match &self.phase {
            Phase::Serving => new.view > self.config.view,
            Phase::Changing { next } => new.view > next.view,
            Phase::Freezing { .. } | Phase::Filling => false,
        };
        if !newer {
            return self.report_ready(out);
        }
        if new.view.epoch > self.epoch() {
            // Somebody tried to take over and did not get there. Backups may have changed what
            // not all of them had.
            for peer in &mut self.peers {
                *peer = Peer::new(peer.member, self.synced, peer.install);
            }
            self.config.view.epoch = new.view.epoch;
        }
        let mut known = std::mem::take(&mut self.peers);
        for member in &new.backups {
            let same = known.iter().position(|peer| peer.member == *member);
            let fresh = Peer::new(*member, self.synced, true);
            self.peers
                .push(same.map_or(fresh, |index| known.remove(index)));
        }
        self.phase = Phase::Changing { next: new };
        self.start_sync(out);
    }

    /// The coordinator has decided for a view: opens.
    pub(crate) fn serve(&mut self, config: &Config, out: &mut impl Outbox) {
        let awaited = match &self.phase {
            Phase::Filling => self.config.view,
            Phase::Changing { next } => next.view,
            Phase::Freezing { .. } | Phase::Serving => return,
        };
        if awaited != config.view {
            return;
        }
        self.config = config.clone();
        self.phase = Phase::Serving;
        // The witnesses of this view are empty: there is nothing to collect of the last one.
        self.garbage.clear();
        let links = config.witnesses.iter().copied().map(GcLink::new);
        self.links = links.collect();
        self.synced_up_to(self.last(), out);
        assert!(self.log.is_empty(), "a view begins with everything synced");
    }

    /// Looks after what should have been answered.
    pub(crate) fn tick(&mut self, out: &mut impl Outbox) {
        if let Phase::Freezing { old } = &self.phase {
            for witness in &old.witnesses {
                out.send(witness.node, CurpMessage::Freeze(old.view));
            }
            return;
        }
        let (last, synced) = (self.last(), self.synced);
        for index in 0..self.peers.len() {
            let peer = &mut self.peers[index];
            peer.ticks += 1;
            let lacks = peer.install || peer.acked < last || peer.told < synced;
            if lacks && (!peer.in_flight || peer.ticks > PATIENCE_TICKS) {
                peer.sent = peer.acked;
                self.push(index, out);
            }
        }
        if self.is_serving() {
            for link in &self.links {
                link.send_again(&self.config, out);
            }
            self.expire();
        } else {
            self.report_ready(out);
        }
    }

    /// Forgets clients that have been silent for too long. The entry comes after everything that
    /// they did, so a log that has it has that too.
    fn expire(&mut self) {
        let most = self.options.client_ticks;
        for ticks in self.silent.values_mut() {
            *ticks += 1;
        }
        let gone = self.silent.iter().filter(|(_, ticks)| **ticks > most);
        let gone: Vec<ClientId> = gone.map(|(client, _)| *client).collect();
        for client in gone {
            self.silent.remove(&client);
            self.log_change(Change::Expired(client));
            self.counts.expired += 1;
        }
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        let last = self.last();
        self.rifl.check(last)?;
        if self
            .unsynced
            .values()
            .any(|at| *at <= self.synced || *at > last)
        {
            return Err("a key is marked at a place that is synced or not there".to_owned());
        }
        if self.held.first().is_some_and(|at| at <= self.synced) {
            return Err("an answer is held that could go".to_owned());
        }
        let garbage = self.garbage.iter().map(|(at, _)| *at);
        if !garbage.is_sorted() {
            return Err("garbage out of order".to_owned());
        }
        for peer in &self.peers {
            if peer.acked > last || (peer.acked < self.synced && !peer.install) {
                let (member, acked) = (peer.member, peer.acked);
                return Err(format!("{member:?} has {acked} of {}..{last}", self.synced));
            }
        }
        if self.is_serving() && self.links.len() != self.config.witnesses.len() {
            return Err("a witness of the view is left out".to_owned());
        }
        Ok(())
    }
}
