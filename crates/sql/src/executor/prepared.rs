//! What the next openings of a scan will find, read in one go: the right side of a join is opened
//! over every left row, mostly for one key or one small range each.

use std::ops::Bound;

use manxdb_storage::KeyRange;

use super::bounds::{Places, places};
use super::operator::{Demand, Run};
use crate::encoding;
use crate::error::SqlResult;
use crate::expr::ExprKind;
use crate::planner::physical::{KeyPart, Scan};
use crate::types::Row;

/// Entries of each range that are read ahead.
const ENTRIES_OF_ALL: usize = 32;
const ENTRIES_OF_SOME: usize = 4;

/// Keys and values.
pub(super) type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// Reads made ahead.
#[derive(Default)]
pub(super) struct Prepared {
    /// By key, ascending.
    values: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// By range, ascending; the first `limit` entries of each.
    pages: Vec<(KeyRange, Entries)>,
    limit: usize,
}

impl Prepared {
    /// Whether nothing was read.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty() && self.pages.is_empty()
    }

    /// What was read at `key`, if it was: perhaps nothing.
    pub fn value(&self, key: &[u8]) -> Option<&Option<Vec<u8>>> {
        let at = self
            .values
            .binary_search_by(|(known, _)| known.as_slice().cmp(key));
        at.ok().and_then(|at| self.values.get(at)).map(|(_, v)| v)
    }

    /// The first entries of `range`, if they were read, and whether more may follow.
    pub fn page(&self, range: &KeyRange) -> Option<(&Entries, bool)> {
        let at = self
            .pages
            .binary_search_by(|(known, _)| start(known).cmp(start(range)));
        let (known, page) = self.pages.get(at.ok()?)?;
        (known == range).then_some((page, page.len() >= self.limit))
    }

    /// Reads what `scan` needs when it is opened over each of `bases`; the rows behind
    /// index entries too, if they are `wanted`: of each range the first one at least is.
    pub fn read(
        run: &Run<'_>,
        scan: &Scan,
        demand: Demand,
        wanted: bool,
        bases: &[Row],
    ) -> SqlResult<Self> {
        let mut prepared = Self {
            limit: match demand {
                Demand::All => ENTRIES_OF_ALL,
                Demand::Some => ENTRIES_OF_SOME,
            },
            ..Self::default()
        };
        let (mut keys, mut ranges) = (Vec::new(), Vec::new());
        for base in bases {
            match places(run, &scan.table, &scan.access, base, false)? {
                Places::Points(points) => keys.extend(points),
                Places::Ranges(some) => ranges.extend(some),
                Places::Near(_) => {}
            }
        }
        prepared.read_values(run, keys)?;
        prepared.read_pages(run, ranges)?;
        if wanted && scan.access.index.is_some() {
            let each = match demand {
                Demand::All => prepared.limit,
                Demand::Some => 1,
            };
            let pages = prepared.pages.iter();
            let entries = pages.flat_map(|(_, page)| page.iter().take(each));
            let behind_ranges = entries.map(|(_, suffix)| suffix);
            let behind_keys = prepared
                .values
                .iter()
                .filter_map(|(_, value)| value.as_ref());
            let rows = behind_keys
                .chain(behind_ranges)
                .map(|suffix| encoding::row_key(&scan.table, suffix));
            let rows = rows.collect();
            prepared.read_values(run, rows)?;
        }
        Ok(prepared)
    }

    fn read_values(&mut self, run: &Run<'_>, mut keys: Vec<Vec<u8>>) -> SqlResult<()> {
        keys.sort_unstable();
        keys.dedup();
        if keys.is_empty() {
            return Ok(());
        }
        let values = run.context.txn.get_many(&keys, run.mode)?;
        self.values.extend(keys.into_iter().zip(values));
        self.values.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        Ok(())
    }

    fn read_pages(&mut self, run: &Run<'_>, mut ranges: Vec<KeyRange>) -> SqlResult<()> {
        ranges.sort_unstable_by(|a, b| start(a).cmp(start(b)));
        ranges.dedup();
        let mut end: Option<Vec<u8>> = Some(Vec::new());
        ranges.retain(|range| {
            let is_behind = end.as_deref().is_some_and(|end| end <= start(range));
            if is_behind {
                end = match &range.end {
                    Bound::Excluded(end) => Some(end.clone()),
                    Bound::Included(_) | Bound::Unbounded => None,
                };
            }
            is_behind
        });
        if ranges.is_empty() {
            return Ok(());
        }
        let txn = run.context.txn;
        let pages = txn.scan_many(&ranges, self.limit, run.mode)?;
        self.pages = ranges.into_iter().zip(pages).collect();
        Ok(())
    }
}

fn start(range: &KeyRange) -> &[u8] {
    match &range.start {
        Bound::Included(start) | Bound::Excluded(start) => start,
        Bound::Unbounded => &[],
    }
}

/// Whether openings can be prepared: each looks up one value of every key column, and working
/// that out twice warns of nothing twice.
pub(super) fn can_prepare(scan: &Scan) -> bool {
    !scan.access.reverse
        && !scan.access.parts.is_empty()
        && scan.access.parts.iter().all(|part| match part {
            KeyPart::Points { values, .. } => matches!(
                values.as_slice(),
                [value] if matches!(
                    value.kind,
                    ExprKind::Column(_)
                        | ExprKind::Outer { .. }
                        | ExprKind::Literal(_)
                        | ExprKind::Param(_)
                )
            ),
            KeyPart::Span { .. } => false,
        })
}
