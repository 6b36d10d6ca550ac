//! Old snapshots and what only they could see: a process says which bound its snapshots include, and
//! takes out the keys of rows that nobody sees any more, whoever has deleted them.
//!
//! Every process heeds bounds whenever it keeps its places ([`super::RsiPath::keep`]), and proposes and
//! collects now and then ([`super::RsiPath::tidy`]) as long as it has few records for rows to come: so
//! those who add rows get the room of rows that have gone. What a process has of it when it ends is
//! lost.

use std::collections::BTreeSet;

use manxdb_fabric::{Fabric, Misuse};
use manxdb_rsi::rows::collect::Collector;
use manxdb_rsi::rows::{Client, Failure};
use manxdb_rsi::{LowWatermark, RecordAddress, Snapshot};
use manxdb_txn::TxnError;

use super::{PORTION, failed};
use crate::drive::{Driver, now};
use crate::memory::{MemoryError, Source};

/// Leaves that are looked at in one step.
const LEAVES: u32 = 256;
/// Records that a process keeps for rows to come; while it has as many it collects no more.
pub(super) const SPARE: usize = 1 << 10;
const _: () = assert!(
    PORTION <= SPARE as u64,
    "what has come free is enough for a client"
);

/// Sees all of the bound, and heeds it if every snapshot in use includes it.
///
/// # Errors
/// [`Failure`].
pub(crate) fn advance_watermark<F: Fabric>(
    client: &mut Client<Driver<F>>,
    low_watermark: LowWatermark,
    is_included: &dyn Fn(&Snapshot) -> bool,
) -> Result<(), Failure<Misuse>> {
    let bound = now(client.look_at(low_watermark))?;
    if bound.number > 0 && is_included(&bound.snapshot) {
        now(client.advance_watermark(low_watermark, &bound))?;
    }
    Ok(())
}

/// What has come free: records, and nodes of the tree.
#[derive(Debug, Default)]
pub(super) struct Freed {
    pub records: Vec<RecordAddress>,
    pub nodes: Vec<RecordAddress>,
}

impl Freed {
    /// Whether no place is in it twice.
    pub(super) fn is_distinct(&self) -> bool {
        let all = self.records.iter().chain(&self.nodes);
        let places: BTreeSet<_> = all.collect();
        places.len() == self.records.len() + self.nodes.len()
    }
}

/// Proposes a bound, looks whether it is agreed, and collects for a while.
///
/// # Errors
/// [`TxnError`]; who is in the way is no error.
pub(super) fn step<F: Fabric>(
    collector: &mut Collector,
    client: &mut Client<Driver<F>>,
    source: &dyn Source<F>,
) -> Result<Freed, TxnError> {
    let mut freed = Freed::default();
    unless_conflict(now(collector.propose(client)))?;
    let placed = source.placed(client).map_err(|error| unknown(&error))?;
    now(collector.agree(client, &placed)).map_err(failed)?;
    for _ in 0..LEAVES {
        let Some(collected) = unless_conflict(now(collector.collect(client)))? else {
            break;
        };
        freed.records.extend(collected.places);
        if collected.is_round {
            break;
        }
    }
    freed.nodes = collector.nodes();
    Ok(freed)
}

fn unless_conflict<T>(done: Result<T, Failure<Misuse>>) -> Result<Option<T>, TxnError> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(failure) if failure.is_conflict() => Ok(None),
        Err(failure) => Err(failed(failure)),
    }
}

fn unknown(error: &MemoryError) -> TxnError {
    TxnError::Unknown(error.to_string())
}
