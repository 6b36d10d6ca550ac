//! Why transactions wait, for the split of their latencies.
//!
//! A replica says so of every transaction that it knows and cannot run, when it is asked to
//! ([`Options::explains`](crate::Options)). The names are what people read.

use manxdb_core::Wait;

use crate::call::CallId;

/// Until all clocks of the region are past its timestamp and their manager says so (E2, E3), and
/// a majority of the shard's replicas holds it.
pub const GATE: &str = "ordering gate";

/// Behind a cross-region transaction of the region whose place is not decided. A local one never
/// waits for that: its stamp lies below every floor. Another cross-region one may.
pub const CROSS_REGION: &str = "cross-region ahead";

/// For a value that another shard gives.
pub const INPUT: &str = "input";

/// For a row of an earlier transaction that waits for a value of another shard.
pub const ROW: &str = "row in use";

/// Until the managers of a region agree on its timestamp.
pub const LEDGER: &str = "managers' ledger";

/// Until the clock is past what its session has seen (levels `session` and `strict`).
pub const SESSION: &str = "session order";

/// It has run, and is answered once no region can stamp before it any more (level `strict`).
pub const CLOSING: &str = "strict order";

/// Its client waited for an answer that did not come, and asked again.
pub const ATTEMPT: &str = "lost attempt";

/// All of them.
pub const ALL: [&str; 8] = [
    GATE,
    CROSS_REGION,
    INPUT,
    ROW,
    LEDGER,
    SESSION,
    CLOSING,
    ATTEMPT,
];

/// A wait for no transaction in particular.
pub(crate) fn wait(reason: &'static str) -> Wait {
    Wait { reason, on: None }
}

/// A wait for a transaction.
pub(crate) fn wait_on(reason: &'static str, on: CallId) -> Wait {
    let on = Some(on.for_traces());
    Wait { reason, on }
}
