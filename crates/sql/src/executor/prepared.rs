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
use crate::error::{SqlError, SqlResult};
use crate::plan::ExprKind;
use crate::plan::physical::{KeyPart, Scan};
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
    /// The columns of a base row that decide what its opening reads.
    key_columns: Vec<usize>,
    /// Their values in the rows that the openings to come are over, row by row: an opening over
    /// another row must not take what was read for this one.
    key_values: VecDeque<Value>,
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
    ///
    /// # Errors
    /// Error 1105 when openings do not come in the order prepared: a defect of the operator above,
    /// which would join rows that do not belong together.
    pub fn next_opening(&mut self, base: &[Value]) -> SqlResult<Opening> {
        let place = self.places.pop_front();
        if place.is_some() {
            self.check_is_next(base)?;
        }
        Ok(match place {
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
        })
    }

    /// That `base` is the row that the opening was prepared for, as far as it matters.
    fn check_is_next(&mut self, base: &[Value]) -> SqlResult<()> {
        for column in &self.key_columns {
            let value = base.get(*column).unwrap_or(&Value::Null);
            if self.key_values.pop_front().as_ref() != Some(value) {
                return Err(SqlError::internal("openings come in the order prepared"));
            }
        }
        Ok(())
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
            key_columns: key_columns(scan),
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
            let values = prepared.key_columns.iter().map(|column| base.get(*column));
            let values = values.map(|value| value.cloned().unwrap_or(Value::Null));
            prepared.key_values.extend(values);
        }
        assert_eq!(
            prepared.places.len(),
            bases.len(),
            "each opening has its place"
        );
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
        let values = run.txn().get_many_used(&keys, run.mode, used)?;
        assert_eq!(
            values.len(),
            keys.len(),
            "a read of many keys answers each of them"
        );
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
        let txn = run.txn();
        let pages = txn.scan_many(&ranges, self.limit, run.mode)?;
        assert_eq!(
            pages.len(),
            ranges.len(),
            "a read of many ranges answers each of them"
        );
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

/// The columns of a base row whose values `scan` looks up, where [`can_prepare`] holds.
fn key_columns(scan: &Scan) -> Vec<usize> {
    let values = scan.access.parts.iter().flat_map(|part| match part {
        KeyPart::Points { values, .. } => values.as_slice(),
        KeyPart::Span { .. } => &[],
    });
    let columns = values.filter_map(|value| match value.kind {
        ExprKind::Column(column) => Some(column),
        _ => None,
    });
    columns.collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Two openings over rows whose second column is looked up.
    fn prepared() -> Prepared {
        Prepared {
            places: VecDeque::from([Place::Nowhere, Place::Point(vec![7])]),
            values: vec![(vec![7], Some(vec![1]))],
            key_columns: vec![1],
            key_values: VecDeque::from([Value::Null, Value::Int(7)]),
            ..Prepared::default()
        }
    }

    #[test]
    fn openings_in_the_order_prepared_find_what_was_read_for_them() {
        let mut prepared = prepared();
        let first = prepared.next_opening(&[Value::Int(1), Value::Null]);
        assert!(matches!(first, Ok(Opening::Value(None))));
        let second = prepared.next_opening(&[Value::Int(2), Value::Int(7)]);
        assert!(matches!(second, Ok(Opening::Value(Some(_)))));
        let third = prepared.next_opening(&[Value::Int(3), Value::Int(9)]);
        assert!(matches!(third, Ok(Opening::Unknown)));
    }

    #[test]
    fn an_opening_over_another_row_is_an_error_and_not_a_wrong_row() {
        let mut prepared = prepared();
        // An operator that passed over the first row.
        let second = prepared.next_opening(&[Value::Int(2), Value::Int(7)]);
        let error = second.err().map(|error| error.to_string());
        let told = error.is_some_and(|error| error.contains("openings come in the order prepared"));
        assert!(told);
    }
}
