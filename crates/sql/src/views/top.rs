//! The first rows of a key in an order, kept with slack: `ORDER BY … LIMIT … OFFSET …`.
//!
//! What is held is all rows of the key up to a boundary in the order, at each version: a row beyond
//! the boundary is not noted, whether it comes or goes. The boundary only moves forward in the order
//! when there are too many rows, to the end of rows that are equal in it. When rows go and fewer are
//! left than are asked for, the key is evicted; the slack makes that rare.

use std::cmp::Ordering;
use std::sync::Arc;

use manxdb_views::Unsuited;

use super::contents::ENTRY_BYTES;
use super::pure;
use super::shape::cut;
use crate::error::SqlResult;
use crate::executor::{decode_kept, encode_kept};
use crate::plan::physical::{Limit, Node, SortKey};
use crate::plan::{Expr, ExprKind};
use crate::types::{self, Collation, DataType, Row, Value};

/// Most rows that a definition may ask for; with more, all rows of a key are held.
const WANTED_MAX: usize = 10_000;
/// Rows kept beyond those that are asked for, at the least.
const SLACK: usize = 32;

/// Which rows of a key are held.
#[derive(Debug, Clone)]
pub(crate) struct Top {
    /// What the rows are ordered by, over a joined row, and whether it falls.
    pub keys: Vec<(Expr, bool)>,
    /// LIMIT and OFFSET together.
    pub wanted: usize,
}

impl Top {
    /// Of one SELECT's plan that was made for a view; `None` when all rows are held.
    pub fn of(operand: &Node) -> Option<Self> {
        let (keys, limit) = ordered(operand)?;
        if !keys.iter().all(|(key, _)| is_ordered_alike(key)) {
            return None;
        }
        let wanted = constant(limit.count.as_ref()?)?;
        let skipped = limit.offset.as_ref().map_or(Some(0), constant)?;
        let wanted = wanted.checked_add(skipped)?;
        (wanted <= WANTED_MAX).then_some(Self { keys, wanted })
    }

    /// Rows that a fill asks for: one more than are kept, which says whether there are more.
    fn fill_rows(&self) -> usize {
        2 * self.wanted + SLACK + 1
    }

    /// The plan of a fill, which gives the first rows of `from`, each with what it is ordered by
    /// behind it.
    pub fn fill(&self, from: &Node, width: usize) -> Node {
        let mut expressions: Vec<Expr> = (0..width)
            .map(|slot| Expr {
                kind: ExprKind::Column(slot),
                ty: DataType::BIGINT,
                nullable: true,
            })
            .collect();
        let keys = self.keys.iter().map(|(key, descending)| {
            expressions.push(key.clone());
            SortKey {
                column: expressions.len() - 1,
                descending: *descending,
                ty: key.ty.clone(),
            }
        });
        let keys = keys.collect();
        let input = Box::new(Node::Project {
            input: Box::new(from.clone()),
            expressions,
        });
        let count = i64::try_from(self.fill_rows()).unwrap_or(i64::MAX);
        let count = Expr::literal(Value::Int(count), DataType::BIGINT);
        let limit = Limit {
            count: Some(count),
            offset: None,
        };
        Node::Limit {
            limit: limit.clone(),
            input: Box::new(Node::Sort {
                input,
                keys,
                limit: Some(limit),
            }),
        }
    }

    fn compare(&self, one: &[Value], other: &[Value]) -> Ordering {
        assert_eq!(one.len(), self.keys.len(), "a value for each key");
        let pairs = self.keys.iter().zip(one.iter().zip(other));
        let orders = pairs.map(|((key, descending), (one, other))| {
            let collation = key.ty.collation().unwrap_or(Collation::Binary);
            let order = types::sort_cmp(one, other, collation);
            if *descending { order.reverse() } else { order }
        });
        orders.fold(Ordering::Equal, Ordering::then)
    }
}

/// What a SELECT is ordered by, over its joined rows, and its LIMIT; `None` when it is ordered
/// otherwise, or grouped.
pub(super) fn ordered(operand: &Node) -> Option<(Vec<(Expr, bool)>, &Limit)> {
    let operand = match operand {
        Node::Cut { input, .. } => input,
        other => other,
    };
    let Node::Limit { input, limit } = operand else {
        return None;
    };
    let Node::Sort { input, keys, .. } = &**input else {
        return None;
    };
    let Node::Project { input, expressions } = &**input else {
        return None;
    };
    if !matches!(**input, Node::From { .. }) || cut(operand, true).is_none() {
        return None;
    }
    let keys = keys.iter().map(|key| {
        let expr = expressions.get(key.column)?;
        Some((expr.clone(), key.descending))
    });
    Some((keys.collect::<Option<_>>()?, limit))
}

/// Whether values are ordered by nothing but themselves and their collation, for everybody.
fn is_ordered_alike(key: &Expr) -> bool {
    use DataType as D;
    let ty = matches!(
        key.ty,
        D::Int { .. }
            | D::Decimal { .. }
            | D::Date
            | D::DateTime { .. }
            | D::Char { .. }
            | D::Varchar { .. }
            | D::Text { .. }
            | D::Varbinary { .. }
            | D::Blob { .. }
    );
    ty && pure::objection(key).is_none()
}

fn constant(expr: &Expr) -> Option<usize> {
    match &expr.kind {
        ExprKind::Literal(Value::Int(number)) => usize::try_from(*number).ok(),
        ExprKind::Literal(Value::UInt(number)) => usize::try_from(*number).ok(),
        _ => None,
    }
}

/// The first rows of a key.
#[derive(Debug, Clone)]
pub(crate) struct TopRows {
    top: Arc<Top>,
    /// In order: what each is ordered by, and its bytes.
    rows: Vec<(Row, Box<[u8]>)>,
    /// All rows up to here are held; `None`: all rows.
    boundary: Option<Row>,
    bytes: usize,
}

impl TopRows {
    /// No rows of a key that has none.
    pub fn new(top: Arc<Top>) -> Self {
        Self {
            top,
            rows: Vec::new(),
            boundary: None,
            bytes: 0,
        }
    }

    /// What a fill gave: [`Top::fill`].
    pub fn filled(top: Arc<Top>, rows: &[Row]) -> Result<Self, Unsuited> {
        let is_cut = rows.len() >= top.fill_rows();
        let mut held = Self::new(top);
        for row in rows {
            held.insert(row)?;
        }
        if is_cut {
            // Rows that are equal to the last in the order may have been cut off.
            held.end_before_last()?;
        }
        Ok(held)
    }

    /// Adds a row or takes it away: the joined row and what it is ordered by.
    pub fn change(&mut self, row: &[Value], adds: bool) -> Result<(), Unsuited> {
        let (_, keys) = self.parts(row)?;
        let boundary = self.boundary.as_ref();
        if boundary.is_some_and(|end| self.top.compare(keys, end) == Ordering::Greater) {
            return Ok(());
        }
        if adds {
            self.insert(row)?;
            if self.rows.len() > 2 * self.top.fill_rows() {
                self.shorten()?;
            }
            return Ok(());
        }
        let Ok(at) = self.place(row)? else {
            return Err(Unsuited);
        };
        let (keys, bytes) = self.rows.remove(at);
        let size = size_of(&keys, &bytes);
        assert!(self.bytes >= size, "bytes are counted of what is held");
        self.bytes -= size;
        self.require_enough()
    }

    fn parts<'r>(&self, row: &'r [Value]) -> Result<(&'r [Value], &'r [Value]), Unsuited> {
        let width = row.len().checked_sub(self.top.keys.len()).ok_or(Unsuited)?;
        row.split_at_checked(width).ok_or(Unsuited)
    }

    /// Where a row is, or would be.
    fn place(&self, row: &[Value]) -> Result<Result<usize, usize>, Unsuited> {
        let (columns, keys) = self.parts(row)?;
        let bytes = encode_kept(columns).map_err(|_| Unsuited)?;
        Ok(self.rows.binary_search_by(|(known, held)| {
            let order = self.top.compare(known, keys);
            order.then_with(|| held[..].cmp(&bytes[..]))
        }))
    }

    fn insert(&mut self, row: &[Value]) -> Result<(), Unsuited> {
        let at = match self.place(row)? {
            Ok(at) | Err(at) => at,
        };
        let (columns, keys) = self.parts(row)?;
        let bytes = encode_kept(columns).map_err(|_| Unsuited)?;
        self.bytes += size_of(keys, &bytes);
        self.rows
            .insert(at, (keys.to_vec(), bytes.into_boxed_slice()));
        Ok(())
    }

    /// Lets go of the rows that are equal to the last in the order: all before them are known.
    fn end_before_last(&mut self) -> Result<(), Unsuited> {
        let Some((last, _)) = self.rows.last().cloned() else {
            return self.require_enough();
        };
        let top = Arc::clone(&self.top);
        let kept = self
            .rows
            .partition_point(|(keys, _)| top.compare(keys, &last) == Ordering::Less);
        for (keys, bytes) in self.rows.drain(kept..) {
            self.bytes -= size_of(&keys, &bytes);
        }
        // Nothing is held that is not known to be all there is up to it.
        let end = self.rows.last().ok_or(Unsuited)?;
        self.boundary = Some(end.0.clone());
        self.require_enough()
    }

    /// Lets go of what is far beyond what is asked for.
    fn shorten(&mut self) -> Result<(), Unsuited> {
        let kept = self.top.fill_rows();
        for (keys, bytes) in self.rows.drain(kept..) {
            self.bytes -= size_of(&keys, &bytes);
        }
        self.end_before_last()
    }

    fn require_enough(&self) -> Result<(), Unsuited> {
        if self.boundary.is_some() && self.rows.len() < self.top.wanted {
            return Err(Unsuited);
        }
        Ok(())
    }

    /// The rows, in order.
    pub fn rows(&self) -> SqlResult<Vec<Row>> {
        let rows = self.rows.iter();
        rows.map(|(_, bytes)| decode_kept(bytes)).collect()
    }

    pub fn size_bytes(&self) -> usize {
        self.bytes
    }
}

fn size_of(keys: &[Value], bytes: &[u8]) -> usize {
    let values = keys.iter().map(crate::executor::value_bytes);
    ENTRY_BYTES + values.sum::<usize>() + bytes.len()
}
