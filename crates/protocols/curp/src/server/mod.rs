//! A server: a backup of one master, or the master, or neither yet.

mod obeying;
mod writing;

use manxdb_core::{Digest, LocalTime, NodeId};

use crate::backup::Store;
use crate::copying::Collector;
use crate::disk::{DiskQueue, Then};
use crate::execute::Execute;
use crate::ids::{Config, Epoch, Member, Position, View};
use crate::image::StateError;
use crate::master::{Master, MasterCounts, Peer, Phase, Purpose, RunRequest};
use crate::message::{CurpMessage, Shown};
use crate::node::{CurpTimer, Outbox, heartbeat};
use crate::options::Options;

/// A lease by timers alone: clocks may be set, timers only drift.
#[derive(Debug, Default)]
struct Lease {
    /// The last heartbeat sent; a timer runs since then for each.
    sent: u64,
    /// The last whose timer is over.
    over: u64,
    /// The last that was granted.
    granted: u64,
}

impl Lease {
    fn holds(&self) -> bool {
        self.granted > self.over
    }
}

/// One server. When it starts again it is another member, and no backup of any view: what was a master
/// comes back as a backup to be. Its disk counts only when the processes of a whole view are gone.
pub struct Server<E> {
    me: Member,
    options: Options,
    store: Store<E>,
    /// See [`Holding::base`].
    base: u64,
    /// Whether `store` is what its disk has. That of a master is empty, and its disk has the master's log.
    is_kept: bool,
    disk: DiskQueue,
    /// Parts of a copy that makes it a backup.
    collector: Collector<E>,
    master: Option<Box<Master<E>>>,
    lease: Lease,
    /// Whether the whole log was written down since earlier states were forgotten.
    has_new_whole: bool,
    /// Why it does nothing any more.
    failure: Option<String>,
}

impl<E: Execute> Server<E> {
    /// With the log and the base that its disk has, if it has any, or with an empty state.
    pub(crate) fn new(
        me: Member,
        options: Options,
        empty: &E,
        kept: Option<(Store<E>, u64)>,
    ) -> Self {
        let new = || (Store::behind(empty.fresh()), me.life);
        let (store, base) = kept.unwrap_or_else(new);
        Self {
            me,
            options,
            store,
            base,
            is_kept: true,
            disk: DiskQueue::new(&options),
            collector: Collector::default(),
            master: None,
            lease: Lease::default(),
            has_new_whole: false,
            failure: None,
        }
    }

    /// Why this server cannot go on: the store that its state is in cannot be read or written. It answers
    /// nobody from then on, as one that is gone; its process is to end.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        let of_master = self.master.as_ref().and_then(|m| m.failure.as_deref());
        let store = self.store.failure.as_ref();
        let of_store = store.map(|why| match why {
            StateError::Store(why) => why.as_str(),
            StateError::Unreadable => "its effects are unreadable",
        });
        self.failure.as_deref().or(of_master).or(of_store)
    }

    fn fail(&mut self, why: &StateError) {
        self.failure.get_or_insert(why.to_string());
    }

    pub(crate) fn start(&mut self, out: &mut impl Outbox) {
        if self.base == self.me.life {
            // The first thing on its disk: what follows is a log without a gap since this life.
            self.write_whole(out);
        }
        self.heartbeat(out);
        out.set_timer(self.options.retry_every, CurpTimer::Tick);
    }

    fn heartbeat(&mut self, out: &mut impl Outbox) {
        self.lease.sent += 1;
        let number = self.lease.sent;
        assert!(
            self.lease.granted < number && self.lease.over < number,
            "a heartbeat's lease begins with it"
        );
        out.set_timer(self.options.lease, CurpTimer::LeaseEnds(number));
        let shown = Shown {
            serves: self.serves(),
            holds: self.holding(),
            near: self.master.as_ref().map_or_else(Vec::new, |m| m.near()),
        };
        heartbeat(&self.options, (number, self.me.life), shown, out);
    }

    /// The view that it serves as master.
    #[must_use]
    pub fn serves(&self) -> Option<View> {
        let master = self.master.as_ref()?;
        master.is_serving().then_some(master.config.view)
    }

    /// The life of the master that it is, open or not: another one each time it becomes master.
    /// While a view changes its members only, this stays as it is.
    #[must_use]
    pub fn elected(&self) -> Option<Epoch> {
        self.master.as_ref().map(|master| master.elected)
    }

    /// Heartbeats sent so far, and the newest whose lease was granted. A lease begins when its
    /// heartbeat is sent and ends [`Options::lease`] later; no other master opens before that.
    #[must_use]
    pub fn leases(&self) -> (u64, u64) {
        (self.lease.sent, self.lease.granted)
    }

    /// Whether it holds a lease, by its timers.
    #[must_use]
    pub fn holds_lease(&self) -> bool {
        self.lease.holds()
    }

    /// The state as it serves it, if it is the master.
    #[must_use]
    pub fn served(&self) -> Option<&E> {
        self.serves()?;
        self.master.as_ref().map(|master| &master.state)
    }

    /// The state that all backups have, and its place in the log.
    #[must_use]
    pub fn applied(&self) -> (Position, &E) {
        (self.store.applied, &self.store.state)
    }

    /// Entries of its log as a master that are not written down yet, and records that were written and its
    /// disk does not have yet: 0 once its disk has all that it has executed.
    #[must_use]
    pub fn not_on_disk(&self) -> u64 {
        let master = self.master.as_ref();
        self.disk.unsafe_records() + master.map_or(0, |master| master.not_written_down())
    }

    /// What it did as master.
    #[must_use]
    pub fn counts(&self) -> Option<MasterCounts> {
        self.master.as_ref().map(|master| master.counts)
    }

    /// Of a master: commands that it has executed and that not all backups have.
    #[must_use]
    pub fn not_synced(&self) -> Option<u64> {
        let master = self.master.as_ref()?;
        assert!(
            master.last() >= master.synced,
            "nothing is synced that is not there"
        );
        Some(master.last() - master.synced)
    }

    /// Of a master: its backups, and those of the view to come, and how many commands of its log each
    /// does not have, as far as it knows; nothing of one that is asked for its log or gets a copy.
    #[must_use]
    pub fn backlog(&self) -> Option<Vec<(NodeId, Option<u64>)>> {
        self.lacking(|peer| !peer.follows())
    }

    /// Of a master: the spares that follow its log, as [`Server::backlog`] tells of backups.
    #[must_use]
    pub fn followers(&self) -> Option<Vec<(NodeId, Option<u64>)>> {
        self.lacking(Peer::follows)
    }

    fn lacking(&self, of: impl Fn(&Peer) -> bool) -> Option<Vec<(NodeId, Option<u64>)>> {
        let master = self.master.as_ref()?;
        let peers = master.peers.iter().filter(|peer| of(peer));
        let lacking = peers.map(|peer| {
            let lacks = peer.has_log().then(|| master.lacks(peer));
            (peer.member.node, lacks)
        });
        Some(lacking.collect())
    }

    /// Of a master: updates whose records some witness may still have, so that an update of the same key
    /// conflicts.
    #[must_use]
    pub fn uncollected(&self) -> Option<usize> {
        self.master.as_ref().map(|master| master.uncollected())
    }

    pub(crate) fn on_timer(&mut self, timer: &CurpTimer, out: &mut impl Outbox) {
        match timer {
            CurpTimer::Heartbeat => self.heartbeat(out),
            CurpTimer::LeaseEnds(number) => self.lease.over = self.lease.over.max(*number),
            CurpTimer::Tick => {
                if let Some(master) = &mut self.master {
                    master.tick(out);
                }
                self.write_down(out);
                out.set_timer(self.options.retry_every, CurpTimer::Tick);
            }
            CurpTimer::SyncDue(epoch) => {
                if let Some(master) = &mut self.master
                    && master.epoch() == *epoch
                {
                    master.sync_due(out);
                }
                self.write_down(out);
            }
            _ => {}
        }
    }

    pub(crate) fn on_message(
        &mut self,
        now: LocalTime,
        from: NodeId,
        body: CurpMessage,
        out: &mut impl Outbox,
    ) {
        match body {
            CurpMessage::Append { .. }
            | CurpMessage::AskLog { .. }
            | CurpMessage::Install { .. } => {
                self.as_backup(from, body, out);
            }
            CurpMessage::Lease {
                number,
                view,
                granted,
                followers,
            } => {
                self.leased(number, view, granted);
                self.follow_me(view, followers, out);
            }
            CurpMessage::Recover { old, new, restores } => self.recover(old, new, restores, out),
            CurpMessage::Serve(config) => self.serve(&config, out),
            CurpMessage::Run { view, rpc, .. } | CurpMessage::Sync { view, rpc }
                if self.master.is_none() =>
            {
                let why = crate::message::Refusal::WrongView;
                out.send(from, CurpMessage::Refused { view, rpc, why });
            }
            _ => self.as_master(now, from, body, out),
        }
        self.write_down(out);
    }

    fn as_master(
        &mut self,
        now: LocalTime,
        from: NodeId,
        body: CurpMessage,
        out: &mut impl Outbox,
    ) {
        let has_lease = self.lease.holds();
        let Some(master) = &mut self.master else {
            return;
        };
        match body {
            CurpMessage::Run {
                view,
                rpc,
                ack,
                stamp,
                command,
                sync,
            } => {
                let request = RunRequest {
                    view,
                    rpc,
                    ack,
                    stamp,
                    command,
                    sync,
                };
                master.run(now, has_lease, from, request, out);
            }
            CurpMessage::Open { view, nonce } => master.open(from, view, nonce, out),
            CurpMessage::Sync { view, rpc } => master.sync(from, view, rpc, out),
            CurpMessage::Appended { life, epoch, at } if epoch == master.backup_epoch() => {
                master.appended(Member { node: from, life }, at, out);
            }
            CurpMessage::HasLog { life, epoch, log } if epoch == master.backup_epoch() => {
                master.has_log(Member { node: from, life }, log, out);
            }
            CurpMessage::Collected { life, cut, next } => {
                master.collected_pieces(Member { node: from, life }, cut, next, out);
            }
            CurpMessage::Datagram(datagram) if !datagram.asks => {
                master.collected(from, &datagram, out);
            }
            CurpMessage::Frozen {
                view,
                life,
                records,
            } => master.frozen(Member { node: from, life }, view, &records, out),
            CurpMessage::Fetched { view, record } => master.fetched(view, &record, out),
            CurpMessage::Reconfigure { new } => master.reconfigure(new, out),
            _ => {}
        }
    }

    fn leased(&mut self, number: u64, view: View, granted: bool) {
        if granted && number <= self.lease.sent {
            self.lease.granted = self.lease.granted.max(number);
        }
        assert!(
            self.lease.granted <= self.lease.sent,
            "only a lease that was asked for is granted"
        );
        self.collector.decided(view);
        let master = self.master.as_ref();
        if master.is_some_and(|master| view.epoch > master.epoch()) {
            self.master = None; // another one has taken over
        }
    }

    /// As a master, has these spares follow its log.
    fn follow_me(&mut self, view: View, spares: Option<Vec<Member>>, out: &mut impl Outbox) {
        if let (Some(master), Some(spares)) = (&mut self.master, spares)
            && master.config.view == view
        {
            master.follow_me(&spares, out);
        }
    }

    /// Becomes the master that replaces another one, or the first; `restores` when the processes of the
    /// old view are gone.
    fn recover(&mut self, old: Option<Config>, new: Config, restores: bool, out: &mut impl Outbox) {
        let epoch = new.view.epoch;
        if new.master != self.me || epoch < self.store.epoch {
            return;
        }
        if let Some(master) = &mut self.master {
            if master.epoch() >= epoch {
                return master.tick(out);
            }
            // What it did in an attempt that came to nothing is not in its store.
            self.master = None;
        }
        if !self.store.fence(epoch) {
            return;
        }
        let is_backup = |config: &Config| CurpMessage::names(&config.backups, self.me);
        let has_log = if restores {
            self.is_kept
        } else {
            old.as_ref().is_none_or(is_backup) || self.counts_as_backup()
        };
        if !has_log {
            return; // it does not have what was completed
        }
        assert_eq!(
            self.store.epoch, epoch,
            "older masters are fenced off first"
        );
        assert!(self.master.is_none(), "one master at a time");
        let synced = self.store.applied;
        let peers = new.backups.iter().map(|member| {
            let old = old.as_ref();
            let names = |old: &Config| CurpMessage::names(&old.backups, *member);
            if !restores && old.is_some_and(names) {
                Peer::backup(*member, synced)
            } else {
                Peer::of_unknown_log(*member, Purpose::Backup, synced)
            }
        });
        let peers: Vec<Peer> = peers.collect();
        // The tables of a view whose processes are gone are gone as well, or may be of any age.
        let asks = !restores && self.options.durability.trusts_witnesses();
        let phase = match old.filter(|_| asks) {
            None => Phase::Filling,
            Some(old) => Phase::Freezing { old },
        };
        assert_eq!(peers.len(), new.backups.len(), "a peer for each backup");
        // The store stays as it is: should this attempt fail, the next one needs it.
        let mut master = Master::new(
            self.options,
            new,
            phase,
            (self.store.state.clone(), self.store.rifl.clone()),
            (self.store.kept.clone(), self.store.tail.clone()),
            peers,
        );
        master.tick(out);
        let (elected, last) = (master.elected, master.last());
        assert_eq!(
            last,
            self.store.last(),
            "a master begins with what was written down as a backup's"
        );
        self.master = Some(Box::new(master));
        if self.disk.is_used() {
            self.once_safe(Then::Own(elected, last), out);
        }
    }

    /// With a planted defect, a spare that follows the log has everything that a backup has.
    #[cfg(feature = "mutants")]
    fn counts_as_backup(&self) -> bool {
        let mutant = crate::mutants::Mutant::FollowerTakesOver;
        self.options.has(mutant)
    }

    #[cfg(not(feature = "mutants"))]
    #[allow(clippy::unused_self)] // a planted defect asks
    fn counts_as_backup(&self) -> bool {
        false
    }

    fn serve(&mut self, config: &Config, out: &mut impl Outbox) {
        let Some(master) = &mut self.master else {
            return;
        };
        master.serve(config, out);
        if master.is_serving() {
            let epoch = self.store.epoch.max(config.view.epoch);
            self.store = Store::behind(master.state.fresh());
            self.store.epoch = epoch;
            self.is_kept = false;
            assert!(
                self.store.epoch >= master.epoch(),
                "who served never obeys an older master"
            );
        }
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        self.store.check()?;
        self.disk.check()?;
        self.collector.check()?;
        if self.base == 0 || self.base > self.me.life {
            return Err(format!("a log since life {}", self.base));
        }
        if self.lease.granted > self.lease.sent || self.lease.over > self.lease.sent {
            return Err("a lease that nobody asked for".to_owned());
        }
        self.master.as_ref().map_or(Ok(()), |master| master.check())
    }

    pub(crate) fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        digest
            .number(self.store.epoch.0)
            .number(self.store.applied)
            .number(self.collector.bytes() as u64)
            .bytes(&self.store.state.snapshot());
        if let Some(master) = &self.master {
            digest
                .number(master.last())
                .number(master.synced)
                .bytes(&master.state.snapshot());
        }
        digest.value()
    }
}
