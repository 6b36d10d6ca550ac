//! Reading stored tables.

use std::vec::IntoIter;

use manxdb_storage::{Direction, KeyRange};
use manxdb_txn::IsolationLevel;
use manxdb_txn::transaction::rest_behind;

use super::bounds::{Places, places};
use super::operator::{Demand, Operator, Run};
use super::sweep::{Next, Sweep};
use crate::encoding;
use crate::error::SqlResult;
use crate::planner::physical::Scan;
use crate::types::{Row, Value};

/// Bytes before the columns of a key: space, table, index.
const KEY_HEAD: usize = 9;
/// Entries of the first page of a range when its reader may stop early, and when it reads all of
/// it: every page costs a seek. Pages double up to the last.
const PAGE_FIRST: usize = 32;
const PAGE_FIRST_OF_ALL: usize = 256;
const PAGE_LAST: usize = 1024;

/// Reads a stored table through its access path.
pub(super) struct ScanOp<'p> {
    scan: &'p Scan,
    base: Row,
    points: IntoIter<Vec<u8>>,
    ranges: Vec<KeyRange>,
    /// Ranges being read as one.
    sweep: Option<Sweep>,
    /// What is left of the range being read.
    current: Option<KeyRange>,
    page: IntoIter<(Vec<u8>, Vec<u8>)>,
    page_size: usize,
    first_page_size: usize,
    /// Nothing of the row itself is needed.
    entries_only: bool,
}

impl<'p> ScanOp<'p> {
    pub fn new(scan: &'p Scan, demand: Demand) -> Self {
        let first_page_size = match demand {
            Demand::Some => PAGE_FIRST,
            Demand::All => PAGE_FIRST_OF_ALL,
        };
        Self {
            scan,
            base: Vec::new(),
            points: Vec::new().into_iter(),
            ranges: Vec::new(),
            sweep: None,
            current: None,
            page: Vec::new().into_iter(),
            page_size: first_page_size,
            first_page_size,
            entries_only: scan.key_slot.is_none()
                && scan.predicates.is_empty()
                && !scan.wanted.contains(&true),
        }
    }

    /// The next key and value of the index or the row store.
    fn entry(&mut self, run: &Run<'_>) -> SqlResult<Option<(Vec<u8>, Vec<u8>)>> {
        for key in self.points.by_ref() {
            if let Some(value) = run.context.txn.get(&key, run.mode)? {
                return Ok(Some((key, value)));
            }
        }
        loop {
            if let Some(entry) = self.page.next() {
                return Ok(Some(entry));
            }
            if !self.turn_page(run)? {
                return Ok(None);
            }
        }
    }

    /// Fetches the next page; false at the end of the last range.
    fn turn_page(&mut self, run: &Run<'_>) -> SqlResult<bool> {
        if let Some(sweep) = self.sweep.take() {
            self.sweep_page(run, sweep)?;
            return Ok(true);
        }
        let Some(range) = self.current.take().or_else(|| self.ranges.pop()) else {
            return Ok(false);
        };
        let direction = if self.scan.access.reverse {
            Direction::Reverse
        } else {
            Direction::Forward
        };
        let page = run
            .context
            .txn
            .scan(&range, direction, self.page_size, run.mode)?;
        if page.len() == self.page_size
            && let Some((last, _)) = page.last()
        {
            self.current = Some(rest_behind(&range, last, direction));
        }
        self.page_size = (self.page_size * 2).min(PAGE_LAST);
        self.page = page.into_iter();
        Ok(true)
    }

    fn sweep_page(&mut self, run: &Run<'_>, sweep: Sweep) -> SqlResult<()> {
        let limit = self.page_size;
        let txn = run.context.txn;
        let mut page = txn.scan(sweep.range(), Direction::Forward, limit, run.mode)?;
        match sweep.take(&mut page, limit) {
            Next::Page(sweep) => self.sweep = Some(sweep),
            Next::Ranges(mut ranges) => {
                ranges.reverse();
                self.ranges = ranges;
            }
            Next::End => {}
        }
        self.page_size = (self.page_size * 2).min(PAGE_LAST);
        self.page = page.into_iter();
        Ok(())
    }

    /// The row record of an entry, with the row key suffix.
    fn record(
        &self,
        run: &Run<'_>,
        (key, value): (Vec<u8>, Vec<u8>),
    ) -> SqlResult<Option<(Vec<u8>, Vec<u8>)>> {
        if self.scan.access.index.is_none() {
            let suffix = if self.scan.key_slot.is_some() {
                key.get(KEY_HEAD..).unwrap_or_default().to_vec()
            } else {
                Vec::new()
            };
            return Ok(Some((value, suffix)));
        }
        let row_key = encoding::row_key(&self.scan.table, &value);
        let Some(record) = run.context.txn.get(&row_key, run.mode)? else {
            return Ok(None);
        };
        if is_mixed(run)
            && run.context.txn.has_written(&row_key)
            && !self.leads_to(run, &key, &record, &value)?
        {
            return Ok(None);
        }
        Ok(Some((record, value)))
    }

    /// Whether an index entry is the row's own, or one that the row had before this transaction
    /// wrote it.
    fn leads_to(&self, run: &Run<'_>, key: &[u8], record: &[u8], suffix: &[u8]) -> SqlResult<bool> {
        let (table, zone) = (&self.scan.table, &run.context.eval.time_zone);
        let Some(index) = self.scan.access.index.and_then(|at| table.indexes.get(at)) else {
            return Ok(true);
        };
        let row = encoding::decode_row(table, record, zone)?;
        Ok(encoding::index_key(table, index, &row, suffix, zone)? == key)
    }

    fn assemble(&self, run: &Run<'_>, record: &[u8], suffix: Vec<u8>) -> SqlResult<Row> {
        let scan = self.scan;
        let zone = &run.context.eval.time_zone;
        let decoded = encoding::decode_columns(&scan.table, record, &scan.wanted, zone)?;
        if decoded.len() == self.base.len() && scan.key_slot.is_none() {
            return Ok(decoded);
        }
        let mut row = self.base.clone();
        for (slot, value) in scan.slots.clone().zip(decoded) {
            row[slot] = value;
        }
        if let Some(slot) = scan.key_slot {
            row[slot] = Value::Bytes(suffix);
        }
        Ok(row)
    }
}

/// Whether own writes may stand among rows of an older state: REPEATABLE READ writes the newest
/// state and reads its snapshot.
fn is_mixed(run: &Run<'_>) -> bool {
    let txn = run.context.txn;
    txn.isolation() == IsolationLevel::RepeatableRead && txn.has_writes()
}

impl Operator for ScanOp<'_> {
    fn open(&mut self, run: &Run<'_>, base: &[Value]) -> SqlResult<()> {
        self.base.clear();
        self.base.extend_from_slice(base);
        self.points = Vec::new().into_iter();
        self.ranges.clear();
        self.sweep = None;
        self.current = None;
        self.page = Vec::new().into_iter();
        self.page_size = self.first_page_size;
        let reverse = self.scan.access.reverse;
        // A read that locks or is validated at commit takes what it must and no more.
        let may_sweep = !reverse && !run.mode.locks() && !run.context.txn.records(run.mode);
        match places(run, self.scan, base, may_sweep)? {
            Places::Points(mut keys) => {
                if reverse {
                    keys.reverse();
                }
                self.points = keys.into_iter();
            }
            Places::Ranges(mut ranges) => {
                // Ranges are taken from the end.
                if !reverse {
                    ranges.reverse();
                }
                self.ranges = ranges;
            }
            Places::Near(sweep) => {
                self.page_size = self.page_size.max(sweep.expected());
                self.sweep = Some(sweep);
            }
        }
        Ok(())
    }

    fn next(&mut self, run: &Run<'_>) -> SqlResult<Option<Row>> {
        while let Some(entry) = self.entry(run)? {
            run.tick()?;
            if self.entries_only && !is_mixed(run) {
                return Ok(Some(self.base.clone()));
            }
            let Some((record, suffix)) = self.record(run, entry)? else {
                continue;
            };
            let row = self.assemble(run, &record, suffix)?;
            if run.holds(&self.scan.predicates, &row)? {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }
}
