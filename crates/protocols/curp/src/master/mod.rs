//! The master: executes, answers what commutes at once, and syncs the rest first.
//!
//! | file | |
//! |---|---|
//! | `clients` | what clients ask for |
//! | `unsynced` | which keys have updates that are not synced |
//! | `sync` | bringing the log to the backups |
//! | `peer` | a server that gets the log |
//! | `copies` | which log such a server has, and copies for those that have none |
//! | `following` | spares that follow the log before they are needed |
//! | `joining` | copies for the backups of a view to come, while this one is served |
//! | `records` | what witnesses forget, and what is replayed of theirs |
//! | `views` | recovery, reconfiguration, opening |

mod clients;
mod copies;
mod following;
mod joining;
mod peer;
mod records;
mod sync;
mod unsynced;
mod views;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub(crate) use self::peer::{Peer, Purpose};
use self::unsynced::UnsyncedKeys;
use crate::copying::Image;
use crate::disk::{ServerRecord, WholeStore};
use crate::execute::Execute;
use crate::garbage::GcLink;
use crate::ids::{ClientId, Config, Epoch, LogId, Position, RpcId, Stamp, View};
use crate::image::StateError;
use crate::log::{Change, Entry, KeptLog};
use crate::message::CurpMessage;
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::options::Options;
use crate::replies::HeldReplies;
use crate::rifl::Rifl;
use crate::wire::GcEntry;

/// Ticks without an answer after which a backup is sent something again.
const PATIENCE_TICKS: u32 = 3;
/// How often that is doubled for a backup that does not answer: nothing is lost on the way to it, so most often
/// it has not got to it yet.
const RESENDS_DOUBLED: u32 = 6;
/// And for a server that gets a copy, or follows.
const COPIES_DOUBLED: u32 = 10;
/// Ticks after which witnesses are asked for their records again at the latest.
const FREEZE_TICKS_MAX: u32 = 64;
/// Entries of one message to a backup.
const ENTRIES_A_MESSAGE: usize = 256;

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

/// The master of a view.
pub struct Master<E> {
    pub(crate) options: Options,
    pub(crate) config: Config,
    /// The epoch that it became master in. That of `config` may grow beyond it.
    pub(crate) elected: Epoch,
    pub(crate) phase: Phase,
    /// Ticks in [`Phase::Freezing`].
    freezing_ticks: u32,
    pub(crate) state: E,
    pub(crate) rifl: Rifl,
    /// The completion records at `synced`, of a machine with a store of its own.
    settled: Rifl,
    /// What follows `synced`.
    pub(crate) log: VecDeque<Entry>,
    pub(crate) synced: Position,
    pub(crate) peers: Vec<Peer>,
    /// The view to come, while its new backups get their copies and the one in use is served.
    coming: Option<Config>,
    /// The end of what is synced: new backups and spares may lack it.
    kept: KeptLog,
    /// What servers that need everything are sent, while there are any.
    image: Option<Image>,
    /// Which keys what is not synced has touched.
    unsynced: UnsyncedKeys,
    /// Places that may not be answered before they are synced.
    conflicted: BTreeSet<Position>,
    held: HeldReplies,
    /// What witnesses may forget once it is synced.
    garbage: VecDeque<(Position, GcEntry)>,
    links: Vec<GcLink>,
    /// Ticks since clients were heard of.
    silent: BTreeMap<ClientId, u32>,
    sync_is_due: bool,
    /// The end of what was given away to be written down, and of what is on this server's own disk.
    journaled: Position,
    owned: Position,
    /// What is to be written down, each with the end of the log after it.
    records: Vec<(Position, ServerRecord)>,
    /// What it did, for reports.
    pub(crate) counts: MasterCounts,
    /// Why it cannot go on.
    pub(crate) failure: Option<String>,
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
    /// Pieces of copies sent to servers that had no part of the log, and the bytes in them.
    pub pieces: u64,
    /// See `pieces`.
    pub copied_bytes: u64,
}

impl<E: Execute> Master<E> {
    /// A master that is not open yet: `log` follows what all backups have.
    pub(crate) fn new(
        options: Options,
        config: Config,
        phase: Phase,
        (state, rifl): (E, Rifl),
        (kept, log): (KeptLog, VecDeque<Entry>),
        peers: Vec<Peer>,
    ) -> Self {
        let synced = kept.end().at;
        let mut master = Self {
            options,
            elected: config.view.epoch,
            config,
            phase,
            freezing_ticks: 0,
            settled: if state.has_store() {
                rifl.clone()
            } else {
                Rifl::default()
            },
            state,
            rifl,
            log: VecDeque::new(),
            synced,
            peers,
            coming: None,
            kept,
            image: None,
            unsynced: UnsyncedKeys::default(),
            conflicted: BTreeSet::new(),
            held: HeldReplies::default(),
            garbage: VecDeque::new(),
            links: Vec::new(),
            silent: BTreeMap::new(),
            sync_is_due: false,
            journaled: synced + log.len() as Position,
            owned: 0,
            records: Vec::new(),
            counts: MasterCounts::default(),
            failure: None,
        };
        assert!(
            !CurpMessage::names(&master.config.backups, master.config.master),
            "a master is not its own backup"
        );
        assert!(
            master.peers.iter().all(|peer| peer.acked == synced),
            "all backups have what is synced, and nobody knows what more"
        );
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

    /// The last entry of the log.
    fn end(&self) -> LogId {
        let kept = self.kept.end();
        let epoch = self.log.back().map_or(kept.epoch, |entry| entry.epoch);
        assert_eq!(
            kept.at, self.synced,
            "what is synced ends where the rest begins"
        );
        LogId {
            at: self.last(),
            epoch,
        }
    }

    /// How many entries a peer does not have, as far as the master knows.
    pub(crate) fn lacks(&self, peer: &Peer) -> u64 {
        assert!(
            peer.acked <= self.last(),
            "no backup has more than its master"
        );
        self.last() - peer.acked
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
        assert!(last > self.synced, "an entry follows what is synced");
        let Some(entry) = self.log.back() else {
            return;
        };
        self.rifl.take(last, &entry.change);
        if let Change::Executed {
            touched,
            touches_all,
            ..
        } = &entry.change
        {
            self.unsynced.touch(last, touched, *touches_all);
        }
    }

    /// Gives entries of its own to be written down, before they leave for anywhere else.
    pub(super) fn write_down(&mut self) {
        let last = self.last();
        if !self.options.durability.is_on_disk() || self.journaled == last {
            return;
        }
        assert!(
            self.journaled >= self.synced && self.journaled < last,
            "what all backups have was written down"
        );
        let skip = usize::try_from(self.journaled - self.synced).unwrap_or(usize::MAX);
        let led = ServerRecord::Led {
            epoch: self.epoch(),
            after: self.journaled,
            entries: self.log.iter().skip(skip).cloned().collect(),
            synced: self.synced,
        };
        self.journaled = last;
        self.records.push((last, led));
        assert!(
            self.records.is_sorted_by_key(|(at, _)| *at),
            "a log is written down in its order"
        );
    }

    /// Entries of its log that are not written down, where they are to be.
    pub(crate) fn not_written_down(&self) -> u64 {
        if self.options.durability.is_on_disk() {
            self.last() - self.journaled
        } else {
            0
        }
    }

    /// What is to be written down, each with the end of the log after it.
    pub(crate) fn take_records(&mut self) -> Vec<(Position, ServerRecord)> {
        std::mem::take(&mut self.records)
    }

    /// Its state as it is, to be written down in place of its log; nothing before it has opened, when
    /// what it was as a backup counts.
    ///
    /// # Errors
    /// As [`Execute::to_record`].
    pub(crate) fn take_whole(&mut self, base: u64) -> Result<Option<WholeStore>, StateError> {
        if !self.has_opened() {
            return Ok(None);
        }
        assert!(
            self.records.is_empty(),
            "what was given away to be written down comes first"
        );
        let end = self.end();
        self.journaled = end.at;
        let (applied, rifl, tail) = if self.state.has_store() {
            let tail = self.log.iter().cloned().collect();
            (self.kept.end(), self.settled.clone(), tail)
        } else {
            (end, self.rifl.clone(), Vec::new())
        };
        assert_eq!(
            applied.at + tail.len() as Position,
            end.at,
            "everything is written down"
        );
        Ok(Some(WholeStore {
            base,
            epoch: self.epoch(),
            copied: View::default(),
            applied,
            verified: end.at,
            state: self.state.to_record()?,
            rifl,
            tail,
        }))
    }

    /// Whether its disk has its own log, in place of a backup's.
    pub(crate) fn has_opened(&self) -> bool {
        matches!(self.phase, Phase::Serving | Phase::Changing { .. })
    }

    pub(super) fn log_change(&mut self, change: Change) {
        let epoch = self.epoch();
        self.push_entry(Entry { epoch, change });
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        let last = self.last();
        self.rifl.check(last)?;
        self.unsynced.check(self.synced, last)?;
        if self.held.first().is_some_and(|at| at <= self.synced) {
            return Err("an answer is held that could go".to_owned());
        }
        let garbage = self.garbage.iter().map(|(at, _)| *at);
        if !garbage.is_sorted() {
            return Err("garbage out of order".to_owned());
        }
        for peer in &self.peers {
            if peer.acked > last || (peer.acked < self.kept_from() && peer.has_log()) {
                let (member, acked) = (peer.member, peer.acked);
                return Err(format!("{member:?} has {acked} of {}..{last}", self.synced));
            }
        }
        if self.kept.end().at != self.synced {
            return Err("what is kept does not end with what is synced".to_owned());
        }
        let lacks_all = |peer: &Peer| peer.counts() && !peer.has_log();
        if self.is_serving() && self.options.is_honest() && self.peers.iter().any(lacks_all) {
            return Err("a backup of the view in use lacks everything".to_owned());
        }
        if self.owned > self.last() || self.journaled > last {
            return Err("entries on disk that are not in the log".to_owned());
        }
        if self.is_serving() && self.links.len() != self.config.witnesses.len() {
            return Err("a witness of the view is left out".to_owned());
        }
        Ok(())
    }
}
