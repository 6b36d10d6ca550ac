//! What is held under one key.

use std::collections::BTreeMap;
use std::sync::Arc;

use manxdb_views::{Contents, Unsuited};

use super::groups::Groups;
use super::shape::Shape;
use super::top::TopRows;
use crate::error::SqlResult;
use crate::executor::{decode_kept, encode_kept};
use crate::types::{Row, Value};

/// Bytes that an entry of a map takes beside its key, about.
pub(super) const ENTRY_BYTES: usize = 48;

/// A row that a commit adds to a key, or takes from it. Of a grouping: the values of its keys, then
/// those of the arguments of its calls. Of first rows: what it is ordered by stands behind it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RowChange {
    pub row: Row,
    pub adds: bool,
}

/// What is held under one key.
#[derive(Debug, Clone)]
pub(crate) enum Held {
    /// Joined rows.
    Rows(Bag),
    /// Groups of them.
    Groups(Groups),
    /// The first of them in an order.
    Top(TopRows),
}

/// Rows as bytes, each with how often it is there.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bag {
    rows: BTreeMap<Box<[u8]>, u32>,
    bytes: usize,
}

impl Held {
    /// Nothing, for a view of this shape.
    pub fn new(shape: &Shape) -> Self {
        match (&shape.grouping, &shape.top) {
            (Some(grouping), _) => Held::Groups(Groups::new(Arc::new(grouping.clone()))),
            (None, Some(top)) => Held::Top(TopRows::new(Arc::clone(top))),
            (None, None) => Held::Rows(Bag::default()),
        }
    }

    /// What the rows of a fill are.
    ///
    /// # Errors
    /// [`Unsuited`] when they cannot be held.
    pub fn filled(shape: &Shape, rows: &[Row]) -> Result<Self, Unsuited> {
        if let Some(top) = &shape.top {
            return TopRows::filled(Arc::clone(top), rows).map(Held::Top);
        }
        let mut held = Self::new(shape);
        rows.iter().try_for_each(|row| held.change(row, true))?;
        Ok(held)
    }

    /// Adds a row or takes it away.
    pub fn change(&mut self, row: &[Value], adds: bool) -> Result<(), Unsuited> {
        match self {
            Held::Rows(bag) => bag.change(row, adds),
            Held::Groups(groups) => groups.change(row, adds),
            Held::Top(rows) => rows.change(row, adds),
        }
    }

    /// The rows that the tail begins with.
    ///
    /// # Errors
    /// 1105 when they cannot be read back, which is a defect.
    pub fn rows(&self) -> SqlResult<Vec<Row>> {
        match self {
            Held::Rows(bag) => bag.rows(),
            Held::Groups(groups) => groups.rows(),
            Held::Top(rows) => rows.rows(),
        }
    }
}

impl Bag {
    fn change(&mut self, row: &[Value], adds: bool) -> Result<(), Unsuited> {
        let key = encode_kept(row).map_err(|_| Unsuited)?.into_boxed_slice();
        let size = key.len() + ENTRY_BYTES;
        if adds {
            let count = self.rows.entry(key).or_default();
            if *count == 0 {
                self.bytes += size;
            }
            *count = count.checked_add(1).ok_or(Unsuited)?;
            return Ok(());
        }
        let count = self.rows.get_mut(&key).ok_or(Unsuited)?;
        assert!(*count > 0, "a row that is held is there at least once");
        *count -= 1;
        if *count == 0 {
            self.rows.remove(&key);
            assert!(self.bytes >= size, "bytes are counted of what is held");
            self.bytes -= size;
        }
        Ok(())
    }

    fn rows(&self) -> SqlResult<Vec<Row>> {
        let mut all = Vec::with_capacity(self.rows.len());
        for (bytes, count) in &self.rows {
            let row = decode_kept(bytes)?;
            for _ in 1..*count {
                all.push(row.clone());
            }
            all.push(row);
        }
        Ok(all)
    }
}

impl Contents for Held {
    type Change = Vec<RowChange>;

    fn apply(&mut self, change: &Self::Change) -> Result<(), Unsuited> {
        change
            .iter()
            .try_for_each(|one| self.change(&one.row, one.adds))
    }

    fn undo(&mut self, change: &Self::Change) -> Result<(), Unsuited> {
        change
            .iter()
            .rev()
            .try_for_each(|one| self.change(&one.row, !one.adds))
    }

    fn size_bytes(&self) -> usize {
        match self {
            Held::Rows(bag) => bag.bytes,
            Held::Groups(groups) => groups.size_bytes(),
            Held::Top(rows) => rows.size_bytes(),
        }
    }

    fn change_bytes(change: &Self::Change) -> usize {
        change
            .iter()
            .map(|one| 24 + crate::executor::row_bytes(&one.row))
            .sum()
    }
}
