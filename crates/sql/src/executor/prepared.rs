//! What the next openings of a scan will find, read in one go: the right side of a join is opened
//! over every left row, mostly for one key or one small range each.

use std::collections::VecDeque;
use std::ops::Bound;
use std::rc::Rc;
use std::sync::Arc;

use manxdb_storage::{Direction, KeyRange};
use manxdb_txn::UsedPart;
use manxdb_txn::transaction::rest_behind;

use super::bounds::{Places, places};
use super::operator::{Demand, Run};
use super::page::Entry;
use super::used::used_part;
use crate::encoding;
use crate::error::SqlResult;
use crate::expr::ExprKind;
use crate::planner::physical::{KeyPart, Scan};
use crate::types::{Row, Value};

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
    pages: Vec<(KeyRange, Rc<Entries>)>,
    limit: usize,
    /// What the openings to come will read, in their order.
    places: VecDeque<Place>,
    /// The rows they will be over, to prove that they come in that order.
    #[cfg(debug_assertions)]
    bases: VecDeque<Row>,
}

/// What an opening reads.
enum Place {
    /// The value of a key.
    Point(Vec<u8>),
    /// A range.
    Range(KeyRange),
    /// Nothing at all: a NULL equals nothing.
    Nowhere,
}

/// What an opening finds.
pub(super) enum Opening {
    /// It was not prepared.
    Unknown,
    /// The first entries of a range, and what is left of it.
    Page {
        page: Rc<Entries>,
        rest: Option<KeyRange>,
    },
    /// The entry of a key, if there is one.
    Value(Option<Entry>),
}

impl Prepared {
    /// Whether nothing was read.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty() && self.pages.is_empty()
    }

    /// What the next opening, which is over `base`, finds.
    pub fn next_opening(&mut self, base: &[Value]) -> Opening {
        #[cfg(debug_assertions)]
        if let Some(expected) = self.bases.pop_front() {
            assert_eq!(expected, base, "openings come in the order prepared");
        }
        #[cfg(not(debug_assertions))]
        let _ = base;
        match self.places.pop_front() {
            None => Opening::Unknown,
            Some(Place::Nowhere) => Opening::Value(None),
            Some(Place::Point(key)) => match self.value(&key) {
                Some(value) => Opening::Value(value.clone().map(|value| (key, value))),
                None => Opening::Unknown,
            },
            Some(Place::Range(range)) => match self.page(&range) {
                Some((page, goes_on)) => {
                    let last = page.last().filter(|_| goes_on);
                    let rest = last.map(|(key, _)| rest_behind(&range, key, Direction::Forward));
                    Opening::Page { page, rest }
                }
                None => Opening::Unknown,
            },
        }
    }

    /// What was read at `key`, if it was: perhaps nothing.
    pub fn value(&self, key: &[u8]) -> Option<&Option<Vec<u8>>> {
        let at = self
            .values
            .binary_search_by(|(known, _)| known.as_slice().cmp(key));
        at.ok().and_then(|at| self.values.get(at)).map(|(_, v)| v)
    }

    /// The first entries of `range`, if they were read, and whether more may follow.
    pub fn page(&self, range: &KeyRange) -> Option<(Rc<Entries>, bool)> {
        let at = self
            .pages
            .binary_search_by(|(known, _)| start(known).cmp(start(range)));
        let (known, page) = self.pages.get(at.ok()?)?;
        (known == range).then(|| (Rc::clone(page), page.len() >= self.limit))
    }

    /// Reads what `scan` needs when it is opened over each of `bases`, in this order and with no
    /// opening over another row between; the rows behind index entries too, if they are
    /// `wanted`: of each range the first one at least is.
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
            #[cfg(debug_assertions)]
            bases: bases.iter().cloned().collect(),
            ..Self::default()
        };
        let (mut keys, mut ranges) = (Vec::new(), Vec::new());
        for base in bases {
            let place = match places(run, &scan.table, &scan.access, base, false)? {
                Places::Points(mut points) => points.pop().map(Place::Point),
                Places::Ranges(mut some) => some.pop().map(Place::Range),
                Places::Near(_) => None,
            };
            match &place {
                Some(Place::Point(key)) => keys.push(key.clone()),
                Some(Place::Range(range)) => ranges.push(range.clone()),
                Some(Place::Nowhere) | None => {}
            }
            prepared.places.push_back(place.unwrap_or(Place::Nowhere));
        }
        let used = used_part(run, scan);
        let of_rows = used.filter(|_| scan.access.index.is_none());
        prepared.read_values(run, keys, of_rows.as_ref())?;
        prepared.read_pages(run, ranges)?;
        if wanted && scan.access.index.is_some() {
            prepared.read_rows(run, scan, demand)?;
        }
        Ok(prepared)
    }

    /// Reads the rows behind the index entries that were read.
    fn read_rows(&mut self, run: &Run<'_>, scan: &Scan, demand: Demand) -> SqlResult<()> {
        let each = match demand {
            Demand::All => self.limit,
            Demand::Some => 1,
        };
        let pages = self.pages.iter();
        let entries = pages.flat_map(|(_, page)| page.iter().take(each));
        let behind_ranges = entries.map(|(_, suffix)| suffix);
        let behind_keys = self.values.iter().filter_map(|(_, value)| value.as_ref());
        let rows = behind_keys
            .chain(behind_ranges)
            .map(|suffix| encoding::row_key(&scan.table, suffix));
        let rows = rows.collect();
        self.read_values(run, rows, used_part(run, scan).as_ref())
    }

    fn read_values(
        &mut self,
        run: &Run<'_>,
        mut keys: Vec<Vec<u8>>,
        used: Option<&Arc<dyn UsedPart>>,
    ) -> SqlResult<()> {
        keys.sort_unstable();
        keys.dedup();
        if keys.is_empty() {
            return Ok(());
        }
        let values = run.context.txn.get_many_used(&keys, run.mode, used)?;
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
        self.pages = ranges
            .into_iter()
            .zip(pages.into_iter().map(Rc::new))
            .collect();
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
