//! What conditions say about columns of a table: the search arguments of its keys.

use crate::catalog::Table;
use crate::plan::logical::Leaf;
use crate::plan::{CompareOp, Expr, ExprKind, walk};
use crate::types::{Collation, DataType};

/// What a condition says about columns of a table.
pub(super) enum Sarg<'e> {
    /// The columns together hold one of these rows of values.
    Points(PointSet<'e>),
    /// The column is at least this.
    Low(usize, &'e Expr),
    /// The column is at most this.
    High(usize, &'e Expr),
}

/// Values of several columns that belong together, as `(a, b) IN ((1, 2), (3, 4))` names them.
pub(super) struct PointSet<'e> {
    /// Positions in the table, each once.
    pub columns: Vec<usize>,
    /// Rows of one value a column.
    pub rows: Vec<Vec<&'e Expr>>,
    /// Of each column, whether NULL is a value here.
    pub null_matches: Vec<bool>,
}

/// Rows that the conditions of one branch of an OR are multiplied out to, at most; a condition
/// beyond it is left to the filter.
const BRANCH_ROWS_MAX: usize = 256;

impl<'e> PointSet<'e> {
    fn of_column(column: usize, values: Vec<&'e Expr>, null_matches: bool) -> Self {
        Self {
            columns: vec![column],
            rows: values.into_iter().map(|value| vec![value]).collect(),
            null_matches: vec![null_matches],
        }
    }

    /// The values of the column at this place of `columns`, one a row.
    pub fn values(&self, place: usize) -> impl Iterator<Item = &'e Expr> {
        self.rows
            .iter()
            .filter_map(move |row| row.get(place).copied())
    }

    /// What is left of it when only `wanted` columns count; `None`: nothing.
    fn projected(&self, wanted: &[usize]) -> Option<Self> {
        let places: Vec<usize> = (0..self.columns.len())
            .filter(|at| wanted.contains(&self.columns[*at]))
            .collect();
        if places.is_empty() {
            return None;
        }
        let row = |row: &Vec<&'e Expr>| places.iter().map(|at| row[*at]).collect();
        Some(Self {
            columns: places.iter().map(|at| self.columns[*at]).collect(),
            rows: self.rows.iter().map(row).collect(),
            null_matches: places.iter().map(|at| self.null_matches[*at]).collect(),
        })
    }

    /// Each of its rows with each of `other`, which is about other columns.
    fn crossed(&self, other: &Self) -> Self {
        let mut rows = Vec::with_capacity(self.rows.len() * other.rows.len());
        for row in &self.rows {
            for more in &other.rows {
                rows.push([row.as_slice(), more.as_slice()].concat());
            }
        }
        Self {
            columns: [self.columns.as_slice(), &other.columns].concat(),
            rows,
            null_matches: [self.null_matches.as_slice(), &other.null_matches].concat(),
        }
    }
}

/// Adds what `condition` says.
pub(super) fn add_sargs<'e>(
    condition: &'e Expr,
    leaf: &Leaf,
    table: &Table,
    sargs: &mut Vec<Sarg<'e>>,
) {
    match &condition.kind {
        ExprKind::Compare(op, left, right, collation) => {
            let flipped = match op {
                CompareOp::Lt => CompareOp::Gt,
                CompareOp::Le => CompareOp::Ge,
                CompareOp::Gt => CompareOp::Lt,
                CompareOp::Ge => CompareOp::Le,
                other => *other,
            };
            add_comparison(*op, left, right, *collation, leaf, table, sargs);
            add_comparison(flipped, right, left, *collation, leaf, table, sargs);
        }
        ExprKind::InList {
            value,
            list,
            collation,
        } => {
            if let Some(column) = own_column(value, leaf)
                && list.iter().all(|item| usable(item, leaf))
                && list
                    .iter()
                    .all(|item| comparable(&table.columns[column].ty, &item.ty, *collation))
            {
                let values = list.iter().collect();
                sargs.push(Sarg::Points(PointSet::of_column(column, values, false)));
            }
        }
        ExprKind::IsNull(value) => {
            if let Some(column) = own_column(value, leaf)
                && !table.columns[column].not_null
            {
                let values = vec![null()];
                sargs.push(Sarg::Points(PointSet::of_column(column, values, true)));
            }
        }
        ExprKind::Or(..) => add_alternatives(condition, leaf, table, sargs),
        ExprKind::And(left, right) => {
            add_sargs(left, leaf, table, sargs);
            add_sargs(right, leaf, table, sargs);
        }
        _ => {}
    }
}

/// `a = 1 OR a = 2`, and `(a, b) IN ((1, 2), (3, 4))` which is bound to an OR of ANDs: the columns
/// that every branch fixes hold the values of one of the branches, together.
fn add_alternatives<'e>(
    condition: &'e Expr,
    leaf: &Leaf,
    table: &Table,
    sargs: &mut Vec<Sarg<'e>>,
) {
    let branches: Vec<&Expr> = walk::branches(condition).collect();
    let mut common: Option<Vec<usize>> = None;
    let mut sets = Vec::with_capacity(branches.len());
    for branch in branches {
        let own = point_sets(branch, leaf, table);
        let fixes = |column: &usize| own.iter().any(|set| set.columns.contains(column));
        match &mut common {
            None => {
                let mut columns: Vec<usize> =
                    own.iter().flat_map(|set| set.columns.clone()).collect();
                columns.sort_unstable();
                columns.dedup();
                common = Some(columns);
            }
            Some(columns) => columns.retain(fixes),
        }
        sets.push(own);
    }
    let mut common = common.unwrap_or_default();
    // A branch may fix fewer of the columns together than one by one: what is too long to be
    // multiplied out goes.
    let mut fixed = Vec::with_capacity(sets.len());
    for own in &sets {
        let Some(set) = combined(own, &common) else {
            return;
        };
        common.retain(|column| set.columns.contains(column));
        fixed.push(set);
    }
    if let Some(set) = united(&fixed, common) {
        sargs.push(Sarg::Points(set));
    }
}

/// What one branch fixes.
fn point_sets<'e>(branch: &'e Expr, leaf: &Leaf, table: &Table) -> Vec<PointSet<'e>> {
    let mut own = Vec::new();
    add_sargs(branch, leaf, table, &mut own);
    let points = own.into_iter().filter_map(|sarg| match sarg {
        Sarg::Points(set) => Some(set),
        Sarg::Low(..) | Sarg::High(..) => None,
    });
    points.collect()
}

/// All that the sets of one branch say together about the `wanted` columns.
fn combined<'e>(sets: &[PointSet<'e>], wanted: &[usize]) -> Option<PointSet<'e>> {
    let mut sets: Vec<PointSet<'e>> = sets.iter().filter_map(|s| s.projected(wanted)).collect();
    sets.sort_by_key(|set| (set.rows.len(), std::cmp::Reverse(set.columns.len())));
    let mut whole: Option<PointSet<'e>> = None;
    for set in sets {
        whole = Some(match whole {
            None => set,
            Some(whole) => {
                let is_new = set.columns.iter().all(|c| !whole.columns.contains(c));
                if is_new && whole.rows.len() * set.rows.len() <= BRANCH_ROWS_MAX {
                    whole.crossed(&set)
                } else {
                    whole
                }
            }
        });
    }
    whole
}

/// The rows of all branches over the columns that all of them fix.
fn united<'e>(branches: &[PointSet<'e>], columns: Vec<usize>) -> Option<PointSet<'e>> {
    if columns.is_empty() {
        return None;
    }
    let mut rows = Vec::with_capacity(branches.len());
    let mut null_matches = vec![false; columns.len()];
    for branch in branches {
        let places: Vec<usize> = columns
            .iter()
            .filter_map(|column| branch.columns.iter().position(|c| c == column))
            .collect();
        assert_eq!(places.len(), columns.len(), "every branch fixes the column");
        for (flag, place) in null_matches.iter_mut().zip(&places) {
            *flag |= branch.null_matches[*place];
        }
        let of = |row: &Vec<&'e Expr>| places.iter().map(|place| row[*place]).collect();
        rows.extend(branch.rows.iter().map(of));
    }
    Some(PointSet {
        columns,
        rows,
        null_matches,
    })
}

fn null() -> &'static Expr {
    static NULL: std::sync::LazyLock<Expr> =
        std::sync::LazyLock::new(|| Expr::literal(crate::types::Value::Null, DataType::Null));
    &NULL
}

fn add_comparison<'e>(
    op: CompareOp,
    column: &Expr,
    value: &'e Expr,
    collation: Collation,
    leaf: &Leaf,
    table: &Table,
    sargs: &mut Vec<Sarg<'e>>,
) {
    let Some(column) = own_column(column, leaf) else {
        return;
    };
    if !usable(value, leaf) || !comparable(&table.columns[column].ty, &value.ty, collation) {
        return;
    }
    sargs.push(match op {
        CompareOp::Eq => Sarg::Points(PointSet::of_column(column, vec![value], false)),
        CompareOp::NullSafeEq => Sarg::Points(PointSet::of_column(column, vec![value], true)),
        CompareOp::Lt | CompareOp::Le => Sarg::High(column, value),
        CompareOp::Gt | CompareOp::Ge => Sarg::Low(column, value),
        CompareOp::Ne => return,
    });
}

fn own_column(expr: &Expr, leaf: &Leaf) -> Option<usize> {
    match expr.kind {
        ExprKind::Column(slot) if leaf.slots.contains(&slot) => Some(slot - leaf.slots.start),
        _ => None,
    }
}

/// The value does not depend on the table itself and may be computed before it is read.
fn usable(expr: &Expr, leaf: &Leaf) -> bool {
    let mut own = false;
    walk::references(expr, &mut |(depth, index)| {
        own |= depth == 0 && leaf.slots.contains(&index);
    });
    !own && !walk::is_changing(expr)
}

/// Comparing a column of type `column` with a `value` can be narrowed to a key range.
fn comparable(column: &DataType, value: &DataType, collation: Collation) -> bool {
    let parameter = matches!(value, DataType::Null);
    match column {
        DataType::Int { .. }
        | DataType::Decimal { .. }
        | DataType::Double { .. }
        | DataType::Bit { .. }
        | DataType::Year => parameter || value.is_number() || value.is_text(),
        DataType::Char { collation: own, .. }
        | DataType::Varchar { collation: own, .. }
        | DataType::Text { collation: own, .. } => {
            *own == collation && (parameter || value.is_text())
        }
        DataType::Binary { .. } | DataType::Varbinary { .. } | DataType::Blob { .. } => {
            parameter || value.is_text() || value.is_bytes()
        }
        DataType::Date
        | DataType::Time { .. }
        | DataType::DateTime { .. }
        | DataType::Timestamp { .. } => parameter || value.is_temporal() || value.is_text(),
        DataType::Enum { .. }
        | DataType::Set { .. }
        | DataType::Json
        | DataType::Float { .. }
        | DataType::Null => false,
    }
}
