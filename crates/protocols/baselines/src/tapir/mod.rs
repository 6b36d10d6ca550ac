//! TAPIR: replicas that agree on no order, and transactions that validate what they read.
//!
//! "Building Consistent Transactions with Inconsistent Replication" (Zhang et al., SOSP 2015). The
//! client coordinates what it asks.
//!
//! | step | who | what |
//! |---|---|---|
//! | execute | client → one replica of each shard | pieces that have their inputs run on the newest committed rows, level by level; what they wrote goes no further than the client, with the versions that they read |
//! | prepare | client → all replicas | [`message::Vote`]: OK, ABSTAIN, ABORT, RETRY |
//! | finalize | client → all replicas | only where the three answers of a shard differ: one more round trip |
//! | commit | client → all replicas, nobody waits | all shards said OK: the client has its answer |
//! | again | client | ABORT: from the beginning, after a random time; RETRY: prepared at a later timestamp. After [`TapirOptions::tries_max`] tries the call fails |
//!
//! # Which order
//! [`Validation::Timestamps`] is the published rule: a transaction may write what a prepared one has
//! read, at a later timestamp. Its order is that of timestamps and does not agree with real time: a
//! transaction that begins after that one has ended may, where clients' clocks differ by more than it
//! takes, have a timestamp before both, and read what the prepared one has yet to write ("timestamp inversion" in Lu et al., "NCC: Natural Concurrency Control for
//! Strictly Serializable Datastores", OSDI 2023). [`Validation::Strict`], the default, lets nothing
//! pass that clashes with a prepared transaction. So two transactions that clash are prepared one
//! after the other on some replica, the first has committed by then, and the order is that of
//! decisions. Where rows are read in order to be written both do the same.
//!
//! Rows are read in ranges too: a range is validated by the versions of all keys in it that were
//! written, up to the last row that a limited scan gave.
//!
//! Not here: changes of views, and failures of nodes. Channels deliver once and in order, so that an
//! abort does not overtake what it takes back.

mod attempt;
mod client;
mod execute;
pub mod message;
mod replica;
mod store;
mod vote;
mod votes;

use manxdb_common::Shared;
use manxdb_common::node::{Node, Protocol};
use manxdb_core::{Actions, Nanos};

pub use self::client::Client;
pub use self::message::{TapirMessage, Timestamp, Vote};
pub use self::replica::Replica;

/// What a replica does when a transaction clashes with one that is prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Validation {
    /// It abstains.
    #[default]
    Strict,
    /// It abstains unless timestamps put the two in order: the published rule.
    Timestamps,
}

/// How a TAPIR cluster behaves.
#[derive(Debug, Clone, Copy)]
pub struct TapirOptions {
    /// What a prepared transaction stops.
    pub validation: Validation,
    /// How often a client has a call prepared before it fails.
    pub tries_max: u32,
    /// The longest time that a client waits after a first abort; twice that after the next one, and
    /// so on up to [`TapirOptions::backoff_doubles`] times. At least 1 ns.
    pub backoff: Nanos,
    /// How often that is doubled.
    pub backoff_doubles: u32,
    /// Decides how long clients wait.
    pub seed: u64,
    /// Clients say when they wait; costs time, not order.
    pub explains: bool,
    /// Planted defects.
    #[cfg(feature = "mutants")]
    pub mutant: Option<TapirMutant>,
}

impl Default for TapirOptions {
    fn default() -> Self {
        Self {
            validation: Validation::Strict,
            tries_max: 20,
            backoff: Nanos::from_millis(5),
            backoff_doubles: 0,
            seed: 0,
            explains: false,
            #[cfg(feature = "mutants")]
            mutant: None,
        }
    }
}

/// A planted defect, which the tests must find.
#[cfg(feature = "mutants")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TapirMutant {
    /// A replica that abstains is taken for one that lets pass.
    AbstainIsOk,
    /// What was read may have been overwritten.
    VersionsUnchecked,
}

/// Timers of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TapirTimer {
    /// A call is tried again.
    Again {
        /// Its number.
        number: u64,
        /// Tries so far.
        attempts: u32,
    },
}

/// [`manxdb_common::node::Protocol`].
#[derive(Debug, Clone, Copy)]
pub struct Tapir;

impl Protocol for Tapir {
    type Message = TapirMessage;
    type Timer = TapirTimer;
    type Options = TapirOptions;
    type Replica = Replica;
    type Client = Client;
}

/// A node of a TAPIR cluster.
pub type TapirNode = Node<Tapir>;

type TapirShared = Shared<TapirOptions>;
type Out = Actions<TapirNode>;

#[cfg(test)]
mod tests;
