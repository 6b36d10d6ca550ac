//! The right side of IN as a set, so that a row is looked up in it rather than compared with
//! each of its values.
//!
//! Values of one kind are equal exactly when their group keys are. Where kinds meet (text beside
//! numbers, exact numbers beside doubles) `=` converts, warns and is not even transitive: there
//! everything is compared, as it is with few values.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use super::EvalContext;
use super::eval::{compare_values, missing};
use crate::error::SqlResult;
use crate::plan::{CompareOp, Expr, ExprKind};
use crate::types::{Collation, Row, Value, group_key};

/// Fewer rows than this are compared one by one.
const HASHED_MIN: usize = 8;

/// Kinds of values that have group keys which tell equality.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Exact,
    Double,
    Text,
    Bytes,
    Moment,
    Time,
}

impl Kind {
    /// `None` for NULL and JSON.
    fn of(value: &Value) -> Option<Self> {
        Some(match value {
            Value::Int(_) | Value::UInt(_) | Value::Decimal(_) => Kind::Exact,
            Value::Double(_) => Kind::Double,
            Value::Text(_) => Kind::Text,
            Value::Bytes(_) => Kind::Bytes,
            Value::Date(_) | Value::DateTime(_) => Kind::Moment,
            Value::Time(_) => Kind::Time,
            Value::Null | Value::Json(_) => return None,
        })
    }
}

/// Rows that others are compared with.
#[derive(Debug)]
pub struct RowSet {
    rows: Rc<Vec<Row>>,
    collations: Vec<Collation>,
    /// `None`: they are too few, or of mixed kinds.
    hashed: Option<Hashed>,
}

#[derive(Debug, Default)]
struct Hashed {
    /// Of each column; `None` while all its values are NULL.
    kinds: Vec<Option<Kind>>,
    /// Group keys of the rows without NULL.
    whole: HashSet<Vec<u8>>,
    /// Positions of the rows with a NULL, each different one once: equal to nothing, but they
    /// may make the answer unknown.
    partial: Vec<usize>,
}

impl RowSet {
    /// A set of `rows`, whose columns are compared under `collations`.
    #[must_use]
    pub fn new(rows: Rc<Vec<Row>>, collations: &[Collation]) -> Self {
        let worth_it = rows.len() >= HASHED_MIN;
        Self {
            hashed: worth_it.then(|| Hashed::of(&rows, collations)).flatten(),
            collations: collations.to_vec(),
            rows,
        }
    }

    /// Bytes it takes besides its rows, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let keys = self.hashed.iter().flat_map(|hashed| &hashed.whole);
        keys.map(|key| key.len() + size_of::<Vec<u8>>()).sum()
    }

    /// `left IN (rows)`: `None` is unknown.
    ///
    /// # Errors
    /// As [`compare_values`].
    pub fn contains(&self, ctx: &EvalContext<'_>, left: &[&Value]) -> SqlResult<Option<bool>> {
        if let [value] = left
            && value.is_null()
        {
            return Ok(self.rows.is_empty().then_some(false));
        }
        let found = self.hashed.as_ref().zip(self.key_of(left));
        let Some((hashed, key)) = found else {
            return self.compare(ctx, left, &mut self.rows.iter());
        };
        if hashed.whole.contains(&key) {
            return Ok(Some(true));
        }
        let mut partial = hashed.partial.iter().filter_map(|at| self.rows.get(*at));
        self.compare(ctx, left, &mut partial)
    }

    /// The group key of `left` if it is of the kinds of the set.
    fn key_of(&self, left: &[&Value]) -> Option<Vec<u8>> {
        let kinds = &self.hashed.as_ref()?.kinds;
        let mut key = Vec::new();
        for ((value, kind), collation) in left.iter().zip(kinds).zip(&self.collations) {
            let own = Kind::of(value)?;
            if kind.is_some_and(|kind| kind != own) {
                return None;
            }
            group_key(value, *collation, &mut key);
        }
        Some(key)
    }

    fn compare(
        &self,
        ctx: &EvalContext<'_>,
        left: &[&Value],
        rows: &mut dyn Iterator<Item = &Row>,
    ) -> SqlResult<Option<bool>> {
        let mut result = Some(false);
        for row in rows {
            match rows_equal(ctx, left, row, &self.collations)? {
                Some(true) => return Ok(Some(true)),
                None => result = None,
                Some(false) => {}
            }
        }
        Ok(result)
    }
}

impl Hashed {
    /// `None` when kinds are mixed.
    fn of(rows: &[Row], collations: &[Collation]) -> Option<Self> {
        let mut hashed = Hashed {
            kinds: vec![None; collations.len()],
            ..Hashed::default()
        };
        let mut partial = HashSet::new();
        for (at, row) in rows.iter().enumerate() {
            let mut key = Vec::new();
            let mut has_null = false;
            if row.len() < collations.len() {
                return None;
            }
            for ((value, kind), collation) in row.iter().zip(&mut hashed.kinds).zip(collations) {
                if value.is_null() {
                    has_null = true;
                } else {
                    let own = Kind::of(value)?;
                    if *kind.get_or_insert(own) != own {
                        return None;
                    }
                }
                group_key(value, *collation, &mut key);
            }
            if !has_null {
                hashed.whole.insert(key);
            } else if partial.insert(key) {
                hashed.partial.push(at);
            }
        }
        Some(hashed)
    }
}

/// Whether the rows are equal in all columns; `None` when that hangs on a NULL.
pub(super) fn rows_equal(
    ctx: &EvalContext<'_>,
    left: &[&Value],
    right: &[Value],
    collations: &[Collation],
) -> SqlResult<Option<bool>> {
    let mut equal = Some(true);
    for (place, value) in left.iter().enumerate() {
        let other = right
            .get(place)
            .ok_or_else(|| missing("subquery column", place))?;
        let collation = collations.get(place).copied().unwrap_or_default();
        match compare_values(ctx, CompareOp::Eq, value, other, collation)? {
            Some(true) => {}
            Some(false) => return Ok(Some(false)),
            None => equal = None,
        }
    }
    Ok(equal)
}

/// Sets of the constant lists of a statement, by the address of the list.
#[derive(Default)]
pub struct ConstantLists {
    known: RefCell<HashMap<usize, Known>>,
}

struct Known {
    /// Keeps the address from becoming another list's.
    _list: Arc<Vec<Expr>>,
    state: State,
}

enum State {
    /// Compared with once. A statement that meets one row makes no set.
    Met,
    /// `None`: the list is not constant.
    Set(Option<Rc<RowSet>>),
}

impl ConstantLists {
    /// The set of `list`, if it is constant, long, and asked for again.
    pub(super) fn set_of(
        &self,
        ctx: &EvalContext<'_>,
        list: &Arc<Vec<Expr>>,
        collation: Collation,
    ) -> SqlResult<Option<Rc<RowSet>>> {
        if list.len() < HASHED_MIN {
            return Ok(None);
        }
        let address = Arc::as_ptr(list).addr();
        match self.known.borrow_mut().get_mut(&address) {
            Some(Known {
                state: State::Set(set),
                ..
            }) => return Ok(set.clone()),
            Some(known) => {
                let set = constants(ctx, list)?;
                let set = set.map(|rows| Rc::new(RowSet::new(Rc::new(rows), &[collation])));
                known.state = State::Set(set.clone());
                return Ok(set);
            }
            None => {}
        }
        let known = Known {
            _list: Arc::clone(list),
            state: State::Met,
        };
        self.known.borrow_mut().insert(address, known);
        Ok(None)
    }
}

/// The values of a list that no row changes, each a row of one column.
fn constants(ctx: &EvalContext<'_>, list: &[Expr]) -> SqlResult<Option<Vec<Row>>> {
    let is_constant = |item: &Expr| matches!(item.kind, ExprKind::Literal(_) | ExprKind::Param(_));
    if !list.iter().all(is_constant) {
        return Ok(None);
    }
    let rows: SqlResult<Vec<Row>> = list
        .iter()
        .map(|item| Ok(vec![item.eval(ctx, &[], &[])?]))
        .collect();
    rows.map(Some)
}
