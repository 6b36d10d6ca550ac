//! One page of a scan: committed rows with the transaction's own writes laid over them.

use manxdb_core::check::deep;
use std::ops::Bound;

use manxdb_storage::{Direction, KeyRange};

use super::Transaction;
use crate::error::TxnError;
use crate::model::{Page, Snapshot};
use crate::waiter::resolve;

/// A key that the transaction writes, and what.
type OwnWrite = (Vec<u8>, Option<Vec<u8>>);

/// Committed rows of what is left of a range, fetched a page at a time.
struct Committed<'a> {
    txn: &'a Transaction,
    at: &'a Snapshot,
    rest: KeyRange,
    direction: Direction,
    page_size: usize,
    page: std::iter::Peekable<std::vec::IntoIter<(Vec<u8>, Vec<u8>)>>,
    complete: bool,
}

impl<'a> Committed<'a> {
    fn new(
        txn: &'a Transaction,
        at: &'a Snapshot,
        range: &KeyRange,
        direction: Direction,
        page_size: usize,
    ) -> Self {
        Self {
            txn,
            at,
            rest: range.clone(),
            direction,
            page_size,
            page: Vec::new().into_iter().peekable(),
            complete: false,
        }
    }

    /// Takes a page that was read from the front of what is left.
    fn feed(&mut self, page: Page) {
        assert!(
            page.len() <= self.page_size,
            "a page is no longer than it may be"
        );
        self.complete = page.len() < self.page_size;
        if let Some((last, _)) = page.last() {
            cut_behind(&mut self.rest, last, self.direction);
        }
        self.page = page.into_iter().peekable();
    }

    /// The key of the next committed row; fetches when the page is used up.
    fn peek(&mut self) -> Result<Option<&[u8]>, TxnError> {
        if self.page.peek().is_none() && !self.complete {
            let reply =
                self.txn
                    .path
                    .scan(self.at.version, &self.rest, self.direction, self.page_size);
            let page = resolve(reply, &self.txn.waiter)?;
            self.feed(page);
        }
        Ok(self.page.peek().map(|(key, _)| key.as_slice()))
    }
}

/// Removes from `range` everything up to `key` in walking order, `key` included.
pub(super) fn cut_behind(range: &mut KeyRange, key: &[u8], direction: Direction) {
    assert!(
        !deep() || range.contains(key),
        "a walk goes on behind a key of its range"
    );
    let behind = Bound::Excluded(key.to_vec());
    match direction {
        Direction::Forward => range.start = behind,
        Direction::Reverse => range.end = behind,
    }
}

/// The part of `range` that a page of `limit` rows has looked at.
pub(super) fn covered(
    range: &KeyRange,
    direction: Direction,
    limit: usize,
    page: &Page,
) -> KeyRange {
    let mut covered = range.clone();
    if page.len() >= limit
        && let Some((last, _)) = page.last()
    {
        let through = Bound::Included(last.clone());
        match direction {
            Direction::Forward => covered.end = through,
            Direction::Reverse => covered.start = through,
        }
    }
    covered
}

impl Transaction {
    /// Up to `limit` rows at `at` under own writes. `wanted` may leave out a row, which then
    /// does not count.
    pub(super) fn merged_page(
        &self,
        at: &Snapshot,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
        wanted: &mut dyn FnMut(&[u8]) -> Result<bool, TxnError>,
    ) -> Result<Page, TxnError> {
        let committed = Committed::new(self, at, range, direction, limit);
        self.merge(committed, range, limit, wanted)
    }

    /// The first `limit` rows of each range at `at` under own writes. Ranges ascend and do not
    /// overlap.
    pub(super) fn merged_pages(
        &self,
        at: &Snapshot,
        ranges: &[KeyRange],
        limit: usize,
    ) -> Result<Vec<Page>, TxnError> {
        let pages = resolve(self.path.scan_many(at.version, ranges, limit), &self.waiter)?;
        assert_eq!(pages.len(), ranges.len(), "a page for every range");
        if self.inner.borrow().visible_writes().is_empty() {
            return Ok(pages);
        }
        let mut merged = Vec::with_capacity(ranges.len());
        for (range, page) in ranges.iter().zip(pages) {
            let mut committed = Committed::new(self, at, range, Direction::Forward, limit);
            committed.feed(page);
            merged.push(self.merge(committed, range, limit, &mut |_| Ok(true))?);
        }
        Ok(merged)
    }

    fn merge(
        &self,
        mut committed: Committed<'_>,
        range: &KeyRange,
        limit: usize,
        wanted: &mut dyn FnMut(&[u8]) -> Result<bool, TxnError>,
    ) -> Result<Page, TxnError> {
        let direction = committed.direction;
        let mut merged = Page::new();
        let mut own_rest = range.clone();
        let mut next_own = self.first_own(&own_rest, direction);
        while merged.len() < limit {
            let next_committed = committed.peek()?;
            let is_own = next_own
                .as_ref()
                .is_some_and(|(own, _)| comes_first(own, next_committed, direction));
            if !is_own {
                match committed.page.next() {
                    Some(row) if wanted(&row.0)? => merged.push(row),
                    Some(_) => {}
                    None => break,
                }
                continue;
            }
            let Some((own_key, own_value)) = next_own.take() else {
                break;
            };
            if next_committed == Some(own_key.as_slice()) {
                committed.page.next();
            }
            cut_behind(&mut own_rest, &own_key, direction);
            next_own = self.first_own(&own_rest, direction);
            if let Some(value) = own_value {
                merged.push((own_key, value));
            }
        }
        assert!(merged.len() <= limit, "a page is no longer than it may be");
        if deep() {
            let is_in_order = |pair: &[(Vec<u8>, Vec<u8>)]| {
                pair[0].0 != pair[1].0
                    && (pair[0].0 < pair[1].0) == (direction == Direction::Forward)
            };
            assert!(
                merged.windows(2).all(is_in_order),
                "rows come in order, each once"
            );
            assert!(
                merged.iter().all(|(key, _)| range.contains(key)),
                "rows are those of the range that was asked for"
            );
        }
        Ok(merged)
    }

    /// The next own write of `range`, copied: looking for it takes longer.
    fn first_own(&self, range: &KeyRange, direction: Direction) -> Option<OwnWrite> {
        let inner = self.inner.borrow();
        let (key, value) = inner.visible_writes().first(range, direction)?;
        Some((key.into_owned(), value.map(<[u8]>::to_vec)))
    }
}

/// Whether an own write comes before or instead of the committed row.
fn comes_first(own: &[u8], committed: Option<&[u8]>, direction: Direction) -> bool {
    match (committed, direction) {
        (None, _) => true,
        (Some(committed), Direction::Forward) => own <= committed,
        (Some(committed), Direction::Reverse) => own >= committed,
    }
}
