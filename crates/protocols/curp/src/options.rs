//! What can be set, and why it is what it is.

use manxdb_core::{Nanos, NodeId};

use crate::hash::KeyHasher;

/// Bytes of one piece of a copy for a new backup at most.
pub const PIECE_BYTES_MAX: usize = 4 << 20;

/// How many times [`Options::kept_bytes`] are kept while a server gets a copy or catches up behind it.
pub const KEPT_FOR_COPIES: usize = 4;

/// What an acknowledgement says of disks (decision 45).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Servers write nothing down: what is acknowledged is in the memory of f + 1 processes.
    #[default]
    Volatile,
    /// The same, and servers write their logs to disk behind that. A cluster that was stopped whole
    /// comes back with the longest log that its last view has on disk.
    Memory,
    /// What is acknowledged is on the disks of the master and of all f backups. Witnesses hold nothing
    /// then: every update is synced, in two round trips from a client that is not the master's process.
    Fsync,
}

impl Durability {
    /// Whether servers write their logs down.
    #[must_use]
    pub fn is_on_disk(self) -> bool {
        self != Self::Volatile
    }

    /// Whether an update may be complete although it is at the master and in witnesses alone.
    #[must_use]
    pub fn trusts_witnesses(self) -> bool {
        self != Self::Fsync
    }
}

/// How a cluster behaves. The same on all its nodes.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Crashes survived: so many backups and so many witnesses.
    pub faults: usize,
    /// The node that decides who does what.
    pub coordinator: NodeId,
    /// Nodes that can be master or backup; those after the coordinator.
    pub servers: u32,
    /// Nodes that can be witnesses; those after the servers. All others are clients.
    pub witnesses: u32,
    /// Sets of a witness's table, and slots a set.
    pub table: (usize, usize),
    /// The secret of key hashes.
    pub hasher: KeyHasher,
    /// Updates that a master executes before it starts a sync; it starts one anyway when none
    /// is under way and `sync_after` has passed.
    pub batch: u64,
    /// How long the first update of a batch waits for others.
    pub sync_after: Nanos,
    /// How often every server and witness shows that it lives.
    pub heartbeat_every: Nanos,
    /// How long a node may be silent before it is replaced.
    pub suspect_after: Nanos,
    /// How long a master may answer reads after it has asked for its lease. The coordinator
    /// waits for a quarter more before it lets another one answer: clocks drift.
    pub lease: Nanos,
    /// How often what should have been answered is sent again.
    pub retry_every: Nanos,
    /// When a client that has not all acceptances asks for a sync.
    pub race_after: Nanos,
    /// When a client asks who is master and tries again.
    pub patience: Nanos,
    /// Ticks (of `retry_every`) after which a silent client is forgotten.
    pub client_ticks: u32,
    /// How far a stamp may be from the master's clock.
    pub stamp_slack: Nanos,
    /// Whether a client records at witnesses. One that does not has every update synced. Without effect
    /// where [`Durability::trusts_witnesses`] says no.
    pub records: bool,
    /// What an acknowledgement says of disks.
    pub durability: Durability,
    /// Bytes of log entries after which a server writes its whole state down, so that the entries
    /// before it can go; or as many as the last whole state had, when those are more.
    pub whole_after: u64,
    /// Bytes of one part of a copy for a new backup: 1 to [`PIECE_BYTES_MAX`].
    pub piece_bytes: usize,
    /// Whether spare servers get the master's log, so that they need no copy when they become backups.
    pub spares_follow: bool,
    /// Bytes of entries that all backups have and that are kept for spares that follow the log: one that
    /// lacks more is given a copy. While one catches up, [`KEPT_FOR_COPIES`] times as many are kept.
    pub kept_bytes: usize,
    /// Planted defect.
    #[cfg(feature = "mutants")]
    pub mutant: Option<crate::mutants::Mutant>,
}

impl Default for Options {
    /// Of one data centre, for one fault.
    fn default() -> Self {
        Self {
            faults: 1,
            coordinator: NodeId(0),
            servers: 2,
            witnesses: 1,
            table: (1_024, 4),
            hasher: KeyHasher { secret: [0, 0] },
            batch: 50,
            sync_after: Nanos::from_micros(200),
            heartbeat_every: Nanos::from_millis(10),
            suspect_after: Nanos::from_millis(60),
            lease: Nanos::from_millis(50),
            retry_every: Nanos::from_millis(10),
            race_after: Nanos::from_millis(3),
            patience: Nanos::from_millis(40),
            client_ticks: 3_000,
            stamp_slack: Nanos::from_secs(1),
            records: true,
            durability: Durability::default(),
            whole_after: 64 << 20,
            piece_bytes: PIECE_BYTES_MAX,
            spares_follow: true,
            kept_bytes: 8 << 20,
            #[cfg(feature = "mutants")]
            mutant: None,
        }
    }
}

/// What a node is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Decides who does what.
    Coordinator,
    /// Master, backup, or neither yet.
    Server,
    /// Keeps requests until they are synced.
    Witness,
    /// Asks.
    Client,
}

impl Options {
    /// What a node is there for.
    #[must_use]
    pub fn role(&self, node: NodeId) -> Role {
        let first = self.coordinator.0 + 1;
        assert!(
            first.checked_add(self.servers + self.witnesses).is_some(),
            "all nodes have numbers"
        );
        if node == self.coordinator {
            Role::Coordinator
        } else if node.0 < first + self.servers {
            Role::Server
        } else if node.0 < first + self.servers + self.witnesses {
            Role::Witness
        } else {
            Role::Client
        }
    }

    /// Bytes of entries that are kept while a server catches up.
    pub(crate) fn kept_for_copies(&self) -> usize {
        self.kept_bytes.saturating_mul(KEPT_FOR_COPIES)
    }

    /// Whether no defect is planted. What planted defects break is asserted only then, so that the
    /// history of a run shows them.
    #[cfg_attr(
        not(feature = "mutants"),
        allow(clippy::unused_self, reason = "defects are planted in an option")
    )]
    pub(crate) fn is_honest(&self) -> bool {
        #[cfg(feature = "mutants")]
        return self.mutant.is_none();
        #[cfg(not(feature = "mutants"))]
        true
    }

    /// Whether a defect is planted.
    #[cfg(feature = "mutants")]
    pub(crate) fn has(&self, mutant: crate::mutants::Mutant) -> bool {
        self.mutant == Some(mutant)
    }
}
