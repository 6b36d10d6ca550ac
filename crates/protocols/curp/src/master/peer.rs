//! A server that gets the master's log, as the master sees it.

use crate::ids::{Member, Position};

/// Ticks for which a spare waits that could not keep up; twice as many each further time.
const WAIT_TICKS: u32 = 8;
/// That waits grow at most so many times.
const WAITS_MAX: u32 = 7;

/// What it gets the log for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A backup of the view in use or, where nobody is served, of the one to come: everything counts on it.
    Backup,
    /// A backup of the view to come alone: nothing counts on it yet.
    Joins,
    /// A spare, so that it lacks little when it is needed: nothing counts on it.
    Follows,
}

/// What the master knows of its log, and so what it is sent (as etcd's `Progress`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Nothing: it is asked.
    Probe,
    /// It needs everything, piece by piece.
    Snapshot {
        /// The piece that it needs next.
        piece: u32,
    },
    /// It has the log up to [`Peer::acked`], and gets what follows.
    Replicate,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) member: Member,
    pub(crate) purpose: Purpose,
    pub(crate) progress: Progress,
    /// It has the log up to here; of no meaning in another state than [`Progress::Replicate`].
    pub(crate) acked: Position,
    /// Whether it was no backup when the view in use began: what it says to have, it has on disk.
    pub(super) is_new: bool,
    /// It was sent the log up to here; what is under way is what follows `acked`.
    pub(super) sent: Position,
    pub(super) in_flight: bool,
    pub(super) ticks: u32,
    /// Messages since it last answered that are waited for ever longer: pieces of a copy, and entries that were
    /// sent again or go to a spare.
    pub(super) unanswered: u32,
    /// Whether the last message to it ended with the end of the log.
    pub(super) sent_all: bool,
    /// Whether it has not had everything at any moment since its log is known.
    pub(super) catches_up: bool,
    /// What it was told that all have.
    pub(super) told: Position,
    /// Ticks until it is asked, and how often it could not keep up.
    pub(super) waits: u32,
    drops: u32,
}

impl Peer {
    /// A backup that has what is synced.
    pub(crate) fn backup(member: Member, synced: Position) -> Self {
        Self {
            member,
            purpose: Purpose::Backup,
            progress: Progress::Replicate,
            acked: synced,
            is_new: false,
            sent: synced,
            in_flight: false,
            ticks: 0,
            unanswered: 0,
            sent_all: false,
            catches_up: false,
            told: 0,
            waits: 0,
            drops: 0,
        }
    }

    /// A server whose log is not known.
    pub(crate) fn of_unknown_log(member: Member, purpose: Purpose, synced: Position) -> Self {
        Self {
            purpose,
            progress: Progress::Probe,
            is_new: true,
            ..Self::backup(member, synced)
        }
    }

    /// Whether it is a spare.
    pub(crate) fn follows(&self) -> bool {
        self.purpose == Purpose::Follows
    }

    /// Whether what is synced is what it and others like it have.
    pub(crate) fn counts(&self) -> bool {
        self.purpose == Purpose::Backup
    }

    /// A spare becomes a backup of the view to come.
    pub(super) fn join(&mut self) {
        assert!(self.follows(), "a spare was no backup before");
        self.purpose = Purpose::Joins;
        self.waits = 0;
    }

    /// Whether it has the log up to `acked`.
    pub(crate) fn has_log(&self) -> bool {
        self.progress == Progress::Replicate
    }

    /// It has confirmed what follows its log, or a copy.
    pub(super) fn confirm(&mut self, at: Position) {
        if self.has_log() && self.sent_all && at >= self.sent {
            self.catches_up = false;
        }
        self.acked = if self.has_log() {
            self.acked.max(at)
        } else {
            at
        };
        self.go_on_as(Progress::Replicate);
        self.sent = self.sent.max(self.acked);
        self.in_flight = self.sent > self.acked;
        assert!(self.acked >= at, "what is there stays there");
    }

    /// Whether it gets everything.
    pub(super) fn is_copying(&self) -> bool {
        matches!(self.progress, Progress::Snapshot { .. })
    }

    /// It gets something else from now on.
    pub(super) fn go_on_as(&mut self, progress: Progress) {
        self.progress = progress;
        self.in_flight = false;
        self.ticks = 0;
        self.unanswered = 0;
    }

    /// It lacks what is not kept any more. It is asked again after a while, and then gets a copy: the
    /// longer, the more often that has come to nothing.
    pub(super) fn drop_behind(&mut self) {
        assert!(self.follows(), "a backup is waited for");
        self.go_on_as(Progress::Probe);
        self.catches_up = false;
        self.waits = WAIT_TICKS << self.drops.min(WAITS_MAX);
        self.drops += 1;
        assert!(self.waits > 0, "who cannot keep up rests");
    }
}
