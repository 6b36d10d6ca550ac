//! Messages between databases, control plane and workers.
//!
//! ```text
//! database                     control plane                        worker
//!    │ Alive: pressure, waiting for ▶│◀ Beat: slots, speed, running, done │
//!    │ Submit job ▶                  │                                    │
//!    │◀ Taken                        │                                    │
//!    │◀ Begun                        │ Run attempt ▶                      │
//!    │                               │◀ Beat … Kept ▶  (each renews leases)│
//!    │                               │◀ Finished attempt                  │
//!    │◀ Done attempt                 │ Recorded ▶                         │
//!    │ Alive: installed ▶            │                                    │
//! ```
//!
//! `Alive` and `Beat` list everything that a database waits for and everything that a worker runs,
//! so a lost or late message costs only time: each side sends again, or gives up, what the other
//! side lacks.

use std::sync::Arc;

use manxdb_core::{Nanos, Weight};
use serde::{Deserialize, Serialize};

use crate::job::{
    AttemptId, DatabaseId, FailureClass, Fingerprint, JobId, LocalReason, Pressure, SessionId,
    Spec, WorkerId, Zone,
};

/// The periodic message of a database about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alive {
    /// Which.
    pub database: DatabaseId,
    /// Which time it is open.
    pub session: SessionId,
    /// Counted, so that an old one that arrives late is known.
    pub beat: u64,
    /// Its share of the pool, relative to others'.
    pub weight: u32,
    /// How near it is to stalling.
    pub pressure: Pressure,
    /// Every job it still waits for.
    pub waiting: Vec<u64>,
    /// Number of the next job: those below it that are not waited for are over.
    pub next: u64,
    /// Verdicts on results. Each is repeated until a beat that carried it is answered, which
    /// happens after its consequences are on disk: a worker whose outputs were refused is never
    /// forgotten.
    pub settled: Vec<(AttemptId, OutputVerdict)>,
}

/// The periodic message of a worker about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beat {
    /// Which.
    pub worker: WorkerId,
    /// Counted, so that an old one that arrives late is known.
    pub beat: u64,
    /// Highest order number of a [`Message::Run`] that it took.
    pub seen: u64,
    /// The worker's abilities.
    pub ability: Ability,
    /// Attempts under way, and how far they are.
    pub running: Vec<(AttemptId, Progress)>,
    /// Attempts that ended and whose end the control plane has not recorded yet.
    pub ended: Vec<AttemptId>,
    /// It accepts no more attempts and ends when its last attempt has ended.
    pub drains: bool,
    /// Progress of all its attempts since it started.
    pub total: Progress,
}

/// Progress of an attempt, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Progress {
    /// Of inputs compacted.
    pub compacted: u64,
    /// Fetched from an object store.
    pub fetched: u64,
    /// Put there.
    pub put: u64,
}

impl Progress {
    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            compacted: self.compacted.saturating_add(other.compacted),
            fetched: self.fetched.saturating_add(other.fetched),
            put: self.put.saturating_add(other.put),
        }
    }
}

/// The abilities of a worker.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Ability {
    /// Fingerprints that it offers, one for each kind of database.
    pub fingerprints: Vec<Fingerprint>,
    /// Where it is.
    pub zone: Zone,
    /// Jobs it runs at a time.
    pub slots: u32,
    /// Bytes of inputs that one slot gets done in a second when they are in its own zone, as
    /// measured; 0: nothing was measured yet,
    pub bytes_second: u64,
    /// and when they are in another zone.
    pub far_bytes_second: u64,
    /// Memory available without swapping, in bytes (caches count as available).
    pub memory: u64,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ended {
    /// With these outputs, described in bytes that only the database reads.
    Finished(Arc<[u8]>),
    /// Not well.
    Failed(FailureClass),
}

/// What became of a result at its database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum OutputVerdict {
    /// The outputs are part of the database.
    Installed,
    /// The outputs failed the verification: the worker is banned.
    Refused,
    /// It came too late, or could not be installed for a reason of the database's own.
    Unused,
}

/// What nodes say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// Database: I am here.
    Alive(Alive),
    /// Database: compact this. Repeated until it is taken; taken once.
    Submit {
        /// Which.
        job: JobId,
        /// What.
        spec: Spec,
    },
    /// Database: I no longer wait for it.
    Withdraw {
        /// For which.
        job: JobId,
    },
    /// Control plane to database: I am here, and what you said is on disk.
    Heard {
        /// Answer to this beat.
        beat: u64,
    },
    /// Control plane to database: the job is on disk here.
    Taken {
        /// Which.
        job: JobId,
    },
    /// Control plane to database: a worker has the job now.
    Begun {
        /// Which.
        job: JobId,
    },
    /// Control plane to database: I know nothing of this job, submit it again.
    Unknown {
        /// Which.
        job: JobId,
    },
    /// Control plane to database: an attempt succeeded.
    Done {
        /// Which.
        attempt: AttemptId,
        /// RocksDB's description of the result, from the worker.
        result: Arc<[u8]>,
    },
    /// Control plane to database: compact it yourself.
    GoLocal {
        /// Which.
        job: JobId,
        /// Why.
        reason: LocalReason,
    },
    /// Worker: I am here.
    Beat(Beat),
    /// Worker: an attempt ended. Repeated until it is recorded or stopped.
    Ended {
        /// The worker that ran it.
        worker: WorkerId,
        /// Which.
        attempt: AttemptId,
        /// How.
        end: Ended,
    },
    /// Control plane to worker: run this, in a directory of its own.
    Run {
        /// The worker: after a restart it refuses attempts that were given to its earlier life.
        worker: WorkerId,
        /// Counted for each worker from 1.
        order: u64,
        /// Which.
        attempt: AttemptId,
        /// What.
        spec: Spec,
        /// How long it may run on without a word from the control plane.
        lease: Nanos,
    },
    /// Control plane to worker: your leases of these are renewed.
    Kept {
        /// Answer to this beat.
        beat: u64,
        /// Which.
        attempts: Vec<AttemptId>,
        /// For how long, counted from when the beat was sent.
        lease: Nanos,
    },
    /// Control plane to worker: stop the attempt and remove its outputs.
    Stop {
        /// Which.
        attempt: AttemptId,
    },
    /// Control plane to worker: the end of this attempt is on disk here.
    Recorded {
        /// Which.
        attempt: AttemptId,
    },
    /// Control plane to anybody: I do not lead, what you said is lost; ask another one.
    NotLeader {
        /// The address that the leader advertises, for logs; empty when it is not known.
        leader: String,
    },
}

impl manxdb_core::Message for Message {
    fn weight(&self) -> Weight {
        Weight::Call { pieces: 1 }
    }

    fn label(&self) -> &'static str {
        match self {
            Self::Alive(_) => "alive",
            Self::Submit { .. } => "submit",
            Self::Withdraw { .. } => "withdraw",
            Self::Heard { .. } => "heard",
            Self::Taken { .. } => "taken",
            Self::Begun { .. } => "begun",
            Self::Unknown { .. } => "unknown",
            Self::Done { .. } => "done",
            Self::GoLocal { .. } => "local",
            Self::Beat(_) => "beat",
            Self::Ended { .. } => "ended",
            Self::Run { .. } => "run",
            Self::Kept { .. } => "kept",
            Self::Stop { .. } => "stop",
            Self::Recorded { .. } => "recorded",
            Self::NotLeader { .. } => "not leader",
        }
    }
}
