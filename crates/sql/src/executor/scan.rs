//! Reading stored tables.

use std::rc::Rc;
use std::vec::IntoIter;

use manxdb_storage::{Direction, KeyRange};
use manxdb_txn::IsolationLevel;
use manxdb_txn::transaction::{Reach, rest_behind};

use super::bounds::{Places, places};
use super::fewest::fewest;
use super::operator::{Demand, Operator, Run};
use super::page::{Entry, Page};
use super::passing;
use super::prepared::{Entries, Opening, Prepared, can_prepare};
use super::sweep::{Next, Sweep};
use super::used::used_part;
use crate::encoding;
use crate::error::SqlResult;
use crate::plan::physical::{Access, Scan};
use crate::types::{Row, Value};

/// Entries of the first page of a range when its reader may stop early, and when it reads all of
/// it: every page costs a seek. Pages double up to the last.
const PAGE_FIRST: usize = 32;
const PAGE_FIRST_OF_ALL: usize = 256;
const PAGE_LAST: usize = 1024;
/// Complete keys, or rows behind index entries, read in one go at most; where the reader may stop
/// early it begins with one.
const CHUNK_LAST: usize = 256;
const CHUNK_GROWTH: usize = 4;

/// Reads a stored table through its access path.
pub(super) struct ScanOp<'p> {
    scan: &'p Scan,
    /// The way in that is used.
    access: &'p Access,
    base: Row,
    points: IntoIter<Vec<u8>>,
    /// What was read before it was opened.
    prepared: Prepared,
    can_prepare: bool,
    ranges: Vec<KeyRange>,
    /// Ranges being read as one.
    sweep: Option<Sweep>,
    /// What is left of the range being read.
    current: Option<KeyRange>,
    page: Page,
    page_size: usize,
    demand: Demand,
    /// Index entries with the rows behind them.
    looked_up: IntoIter<(Entry, Option<Vec<u8>>)>,
    /// Keys or rows to read next in one go.
    chunk: usize,
    /// Nothing of the row itself is needed.
    entries_only: bool,
    /// Rows are looked at before they are locked.
    passes_by: bool,
}

impl<'p> ScanOp<'p> {
    pub fn new(scan: &'p Scan, demand: Demand) -> Self {
        Self {
            scan,
            access: &scan.access,
            base: Vec::new(),
            points: Vec::new().into_iter(),
            prepared: Prepared::default(),
            can_prepare: can_prepare(scan),
            ranges: Vec::new(),
            sweep: None,
            current: None,
            page: Page::default(),
            page_size: PAGE_FIRST,
            demand,
            looked_up: Vec::new().into_iter(),
            chunk: 1,
            entries_only: scan.key_slot.is_none()
                && scan.predicates.is_empty()
                && !scan.wanted.contains(&true),
            passes_by: false,
        }
    }

    /// Takes what was read for this opening, if it was.
    fn open_prepared(&mut self, base: &[Value]) -> SqlResult<bool> {
        match self.prepared.next_opening(base)? {
            Opening::Unknown => return Ok(false),
            Opening::Page { page, rest } => {
                self.page = Page::new(page);
                self.current = rest;
            }
            Opening::Value(entry) => self.page = Page::new(Vec::from_iter(entry)),
        }
        Ok(true)
    }

    /// Takes the way in with the fewest entries, if there is a choice.
    fn open_fewest(&mut self, run: &Run<'_>, base: &[Value]) -> SqlResult<bool> {
        self.access = &self.scan.access;
        if !self.prepared.is_empty() {
            return Ok(false);
        }
        let Some(chosen) = fewest(run, self.scan, self.demand, base)? else {
            return Ok(false);
        };
        self.access = chosen.access;
        match chosen.entries {
            Some(entries) => self.page = Page::new(entries),
            None => self.ranges = vec![chosen.range],
        }
        Ok(true)
    }

    /// Where pages and chunks begin to grow.
    fn start_small(&mut self, run: &Run<'_>) {
        self.passes_by = passing::passes_by(run, self.scan);
        (self.page_size, self.chunk) = match self.demand {
            // What is locked must be wanted.
            Demand::Some if run.mode.locks() && !self.passes_by => (1, 1),
            Demand::Some => (PAGE_FIRST, 1),
            Demand::All => (PAGE_FIRST_OF_ALL, CHUNK_LAST),
        };
        if !run.reads_ahead(self.demand) {
            self.chunk = 1;
        }
    }

    /// Keys or rows to read in one go now.
    fn next_chunk(&mut self, run: &Run<'_>) -> usize {
        let chunk = self.chunk;
        if run.reads_ahead(self.demand) {
            self.chunk = (chunk * CHUNK_GROWTH).min(CHUNK_LAST);
        }
        chunk
    }

    /// The next key and value of the index or the row store.
    fn entry(&mut self, run: &Run<'_>) -> SqlResult<Option<Entry>> {
        Ok(if self.has_entry(run)? {
            self.page.next()
        } else {
            None
        })
    }

    /// Reads on until there is an entry; false at the end.
    fn has_entry(&mut self, run: &Run<'_>) -> SqlResult<bool> {
        while self.page.len() == 0 {
            if !self.read_points(run)? && !self.turn_page(run)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Fetches the next complete keys; false when there are none left.
    fn read_points(&mut self, run: &Run<'_>) -> SqlResult<bool> {
        if self.points.len() == 0 {
            return Ok(false);
        }
        let chunk = self.next_chunk(run);
        let mut keys: Vec<Vec<u8>> = self.points.by_ref().take(chunk).collect();
        let reverse = self.access.reverse;
        if reverse {
            keys.reverse();
        }
        let values = if self.passes_by {
            let (way, base) = ((self.scan, self.access), &self.base);
            let read = |key: &Vec<u8>| passing::get(run, way, base, key);
            keys.iter().map(read).collect::<SqlResult<_>>()?
        } else {
            self.values(run, &keys, self.access.index.is_none())?
        };
        let found = keys.into_iter().zip(values);
        let mut page: Entries = found
            .filter_map(|(key, value)| value.map(|value| (key, value)))
            .collect();
        if reverse {
            page.reverse();
        }
        self.page = Page::new(page);
        Ok(true)
    }

    /// The values of ascending keys, which are those of rows or of index entries.
    fn values(
        &self,
        run: &Run<'_>,
        keys: &[Vec<u8>],
        are_rows: bool,
    ) -> SqlResult<Vec<Option<Vec<u8>>>> {
        let known = |key: &Vec<u8>| self.prepared.value(key).cloned();
        if let Some(values) = keys.iter().map(known).collect() {
            return Ok(values);
        }
        let used = used_part(run, self.scan).filter(|_| are_rows);
        let txn = run.txn();
        Ok(txn.get_many_used(keys, run.mode, used.as_ref())?)
    }

    /// Fetches the next page; false at the end of the last range.
    fn turn_page(&mut self, run: &Run<'_>) -> SqlResult<bool> {
        if let Some(sweep) = self.sweep.take() {
            self.sweep_page(run, sweep)?;
            return Ok(true);
        }
        let (range, is_new) = match self.current.take() {
            Some(rest) => (rest, false),
            None => match self.ranges.pop() {
                Some(range) => (range, true),
                None => return Ok(false),
            },
        };
        let direction = if self.access.reverse {
            Direction::Reverse
        } else {
            Direction::Forward
        };
        if self.passes_by {
            let (page, rest) = self.wanted_page(run, &range, direction)?;
            self.page = Page::new(page);
            self.current = rest;
            return Ok(true);
        }
        let prepared = self.prepared.page(&range).filter(|_| is_new);
        let (page, goes_on) = if let Some(prepared) = prepared {
            prepared
        } else {
            let limit = self.page_size;
            let page = run.txn().scan(&range, direction, limit, run.mode)?;
            self.page_size = self.next_page_size(run);
            let goes_on = page.len() == limit;
            (Rc::new(page), goes_on)
        };
        if goes_on && let Some((last, _)) = page.last() {
            self.current = Some(rest_behind(&range, last, direction));
        }
        self.page = Page::new(page);
        Ok(true)
    }

    /// Entries to read at once after a page of the size before.
    fn next_page_size(&self, run: &Run<'_>) -> usize {
        if run.mode.locks() && self.demand == Demand::Some {
            return self.page_size;
        }
        (self.page_size * 2).min(PAGE_LAST)
    }

    /// The next entries that lead to rows which are wanted, locked, and what is left of `range`.
    fn wanted_page(
        &mut self,
        run: &Run<'_>,
        range: &KeyRange,
        direction: Direction,
    ) -> SqlResult<(Entries, Option<KeyRange>)> {
        let reach = Reach {
            entries: self.page_size,
            wanted: match self.demand {
                Demand::Some => 1,
                Demand::All => self.page_size,
            },
        };
        self.page_size = self.next_page_size(run);
        passing::page(
            run,
            (self.scan, self.access),
            &self.base,
            (range, direction),
            reach,
        )
    }

    fn sweep_page(&mut self, run: &Run<'_>, sweep: Sweep) -> SqlResult<()> {
        let limit = self.page_size;
        let txn = run.txn();
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
        self.page = Page::new(page);
        Ok(())
    }

    /// The next row record with the row key suffix, which is left out where nobody wants it: a sealed
    /// record is opened with it.
    fn record(&mut self, run: &Run<'_>) -> SqlResult<Option<(Vec<u8>, Vec<u8>)>> {
        if self.access.index.is_none() {
            let Some((key, value)) = self.entry(run)? else {
                return Ok(None);
            };
            run.tick()?;
            let suffix = if self.scan.key_slot.is_some() || encoding::is_sealed(&value) {
                key.get(encoding::KEY_HEAD..).unwrap_or_default().to_vec()
            } else {
                Vec::new()
            };
            return Ok(Some((value, suffix)));
        }
        loop {
            let Some(((key, suffix), record)) = self.looked_up.next() else {
                if self.look_up(run)? {
                    continue;
                }
                return Ok(None);
            };
            run.tick()?;
            if let Some(record) = record
                && self.leads_to(run, &key, &record, &suffix)?
            {
                return Ok(Some((record, suffix)));
            }
        }
    }

    /// Reads the rows behind the next index entries; false at the end.
    fn look_up(&mut self, run: &Run<'_>) -> SqlResult<bool> {
        let chunk = self.next_chunk(run);
        let mut entries = Vec::with_capacity(chunk.min(self.page.len() + 1));
        while entries.len() < chunk
            && let Some(entry) = self.entry(run)?
        {
            entries.push(entry);
        }
        let row_key = |(_, suffix): &Entry| encoding::row_key(&self.scan.table, suffix);
        let row_keys: Vec<Vec<u8>> = entries.iter().map(row_key).collect();
        let mut sorted = row_keys.clone();
        sorted.sort_unstable();
        sorted.dedup();
        let values = self.values(run, &sorted, true)?;
        let record = |key: &Vec<u8>| {
            let at = sorted.binary_search(key).ok()?;
            values.get(at).cloned().flatten()
        };
        let records: Vec<Option<Vec<u8>>> = row_keys.iter().map(record).collect();
        let looked_up: Vec<(Entry, Option<Vec<u8>>)> = entries.into_iter().zip(records).collect();
        self.looked_up = looked_up.into_iter();
        Ok(self.looked_up.len() > 0)
    }

    /// Whether an index entry is the row's own, not one that the row had before this transaction
    /// wrote it.
    fn leads_to(&self, run: &Run<'_>, key: &[u8], record: &[u8], suffix: &[u8]) -> SqlResult<bool> {
        let (table, zone) = (&self.scan.table, &run.context.eval.time_zone);
        let own = || {
            run.context
                .txn
                .has_written(&encoding::row_key(table, suffix))
        };
        if !is_mixed(run) || !own() {
            return Ok(true);
        }
        let Some(index) = self.access.index.and_then(|at| table.indexes.get(at)) else {
            return Ok(true);
        };
        let row = encoding::decode_row(table, (suffix, record), zone)?;
        Ok(encoding::index_key(table, index, &row, suffix, zone)? == key)
    }

    /// Whether entries of the index are read and no rows: an entry of an older state (see
    /// [`is_mixed`]) is known by its row, and what is locked is the row.
    fn reads_entries(&self, run: &Run<'_>) -> bool {
        self.access.covers && !run.mode.locks() && !is_mixed(run)
    }

    fn next_of_entries(&mut self, run: &Run<'_>) -> SqlResult<Option<Row>> {
        let scan = self.scan;
        let Some(index) = self.access.index.and_then(|at| scan.table.indexes.get(at)) else {
            return Ok(None);
        };
        let zone = &run.context.eval.time_zone;
        while self.has_entry(run)?
            && let Some((key, suffix)) = self.page.look()
        {
            run.tick()?;
            let mut row = self.base.clone();
            let columns = row.get_mut(scan.slots.clone()).unwrap_or_default();
            encoding::decode_entry(
                &scan.table,
                index,
                (key, suffix),
                &scan.wanted,
                zone,
                columns,
            )?;
            if run.holds(&scan.predicates, &row)? {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }
}

/// `base` with the row that `record` holds.
pub(super) fn assemble(
    run: &Run<'_>,
    scan: &Scan,
    base: &[Value],
    record: &[u8],
    suffix: Vec<u8>,
) -> SqlResult<Row> {
    let zone = &run.context.eval.time_zone;
    let mut row = base.to_vec();
    let columns = row.get_mut(scan.slots.clone()).unwrap_or_default();
    let record = (suffix.as_slice(), record);
    encoding::decode_columns(&scan.table, record, &scan.wanted, zone, columns)?;
    if let Some(slot) = scan.key_slot {
        row[slot] = Value::Bytes(suffix);
    }
    Ok(row)
}

/// Whether own writes may stand among rows of an older state: REPEATABLE READ writes the newest
/// state and reads its snapshot.
fn is_mixed(run: &Run<'_>) -> bool {
    let txn = run.txn();
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
        self.page = Page::default();
        self.looked_up = Vec::new().into_iter();
        self.start_small(run);
        if self.open_prepared(base)? || self.open_fewest(run, base)? {
            return Ok(());
        }
        let reverse = self.access.reverse;
        // A read that locks or is validated at commit takes what it must and no more.
        let may_sweep = !reverse && !run.mode.locks() && !run.txn().records(run.mode);
        match places(run, &self.scan.table, self.access, base, may_sweep)? {
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
        if self.entries_only && !is_mixed(run) {
            let entry = self.entry(run)?;
            run.tick()?;
            return Ok(entry.map(|_| self.base.clone()));
        }
        if self.reads_entries(run) {
            return self.next_of_entries(run);
        }
        while let Some((record, suffix)) = self.record(run)? {
            let row = assemble(run, self.scan, &self.base, &record, suffix)?;
            if run.holds(&self.scan.predicates, &row)? {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    fn prepare(&mut self, run: &Run<'_>, bases: &[Row]) -> SqlResult<()> {
        self.prepared = Prepared::default();
        self.access = &self.scan.access;
        if !bases.is_empty() && self.can_prepare && run.reads_ahead(self.demand) {
            let wanted = !self.entries_only && !self.reads_entries(run);
            self.prepared = Prepared::read(run, self.scan, self.demand, wanted, bases)?;
        }
        Ok(())
    }
}
