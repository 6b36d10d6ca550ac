//! Which of several ways into a table meets the fewest entries, for the values at hand.
//!
//! Of `user_id = ? AND story_id = ?`, with an index on each column, either may be the better one,
//! and which depends on the user and the story. The entries of each way are counted up to a small
//! number, then up to a greater one, until one of them is through: that costs no more than a
//! fixed multiple of what the best way has, and nothing but a first page when that is short.

use manxdb_storage::{Direction, KeyRange};

use super::bounds::{Places, places};
use super::operator::{Demand, Run};
use super::prepared::Entries;
use crate::error::SqlResult;
use crate::plan::physical::{Access, Scan};
use crate::types::Value;

/// Entries that are read whatever other ways there are.
const FEW: usize = 32;
/// Each count goes so many times as far as the one before.
const GROWTH: usize = 8;
/// Entries counted at most: beyond it the ways count as equally long.
const COUNTED_MAX: usize = FEW * GROWTH * GROWTH;

/// A way that was chosen.
pub(super) struct Chosen<'p> {
    pub access: &'p Access,
    pub range: KeyRange,
    /// All entries of the range, if they were read already.
    pub entries: Option<Entries>,
}

/// The best way of `scan` over the row `base`; `None` when it has but one, its ways are not
/// single ranges, or all are long. Who may stop early is not kept waiting by long counts.
pub(super) fn fewest<'p>(
    run: &Run<'_>,
    scan: &'p Scan,
    demand: Demand,
    base: &[Value],
) -> SqlResult<Option<Chosen<'p>>> {
    if scan.alternatives.is_empty() {
        return Ok(None);
    }
    let mut ways = Vec::with_capacity(1 + scan.alternatives.len());
    for access in std::iter::once(&scan.access).chain(&scan.alternatives) {
        let Places::Ranges(mut ranges) = places(run, &scan.table, access, base, false)? else {
            return Ok(None);
        };
        let (Some(range), true) = (ranges.pop(), ranges.is_empty()) else {
            return Ok(None);
        };
        ways.push((access, range));
    }
    let counted_max = match demand {
        Demand::All => COUNTED_MAX,
        Demand::Some => FEW,
    };
    let mut limit = FEW;
    while limit <= counted_max {
        for (access, range) in &ways {
            let (count, entries) = look(run, range, limit)?;
            if count < limit {
                return Ok(Some(Chosen {
                    access,
                    range: range.clone(),
                    entries,
                }));
            }
        }
        limit *= GROWTH;
    }
    Ok(None)
}

/// Counts entries, and keeps them where reading them promises nothing to anyone.
fn look(run: &Run<'_>, range: &KeyRange, limit: usize) -> SqlResult<(usize, Option<Entries>)> {
    let txn = run.txn();
    if run.mode.locks() || txn.records(run.mode) {
        return Ok((txn.count_up_to(range, limit)?, None));
    }
    let entries = txn.scan(range, Direction::Forward, limit, run.mode)?;
    Ok((entries.len(), Some(entries)))
}
