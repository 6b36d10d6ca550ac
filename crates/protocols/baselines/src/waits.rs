//! Why transactions wait, for the split of their latencies.

use std::collections::BTreeMap;

use manxdb_common::CallId;
use manxdb_common::pieces::{Obstacle, Pieces};
use manxdb_core::{Actions, Core, Wait};

/// For the commit of a transaction that it comes behind (Janus).
pub const ANCESTOR: &str = "ancestor not committed";

/// For a value that another shard gives.
pub const INPUT: &str = "input";

/// For a row that an earlier transaction holds.
pub const ROW: &str = "row in use";

/// Until the members of the global log agree on its place (SLOG).
pub const GLOBAL_LOG: &str = "global log";

/// For a batch to be closed, and for the members of a region's log to agree on it (SLOG).
pub const REGION_LOG: &str = "region log";

/// Until other regions have told whom it comes behind in their logs (Detock).
pub const OTHER_LOGS: &str = "other regions' logs";

/// After an abort, until the next try (TAPIR).
pub const BACKOFF: &str = "backoff";

/// A wait for no transaction in particular.
pub(crate) fn wait(reason: &'static str) -> Wait {
    Wait { reason, on: None }
}

/// What was said of transactions last.
#[derive(Debug, Default)]
pub(crate) struct SaidWaits(BTreeMap<CallId, Wait>);

impl SaidWaits {
    /// Says what has changed.
    pub fn say<C: Core>(&mut self, waits: BTreeMap<CallId, Wait>, out: &mut Actions<C>) {
        for id in self.0.keys() {
            if !waits.contains_key(id) {
                out.wait(id.for_traces(), None);
            }
        }
        for (id, wait) in &waits {
            if self.0.get(id) != Some(wait) {
                out.wait(id.for_traces(), Some(*wait));
            }
        }
        self.0 = waits;
    }
}

/// What the transactions wait for whose turns have come.
pub(crate) fn of_pieces(pieces: &Pieces) -> BTreeMap<CallId, Wait> {
    let of = |(id, obstacle)| {
        let wait = match obstacle {
            Obstacle::Input => wait(INPUT),
            Obstacle::Row(other) => wait_on(ROW, other),
        };
        (id, wait)
    };
    pieces.obstacles().map(of).collect()
}

/// A wait for a transaction.
pub(crate) fn wait_on(reason: &'static str, on: CallId) -> Wait {
    let on = Some(on.for_traces());
    Wait { reason, on }
}
