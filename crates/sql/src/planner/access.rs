//! Ways into one table: which index, bounded how.
//!
//! There are no statistics yet: a table counts as [`TABLE_ROWS`] rows, an equality on a leading
//! index column as one in fifty, a range as one in five, a column as NULL in most rows. That is
//! enough to prefer unique look-ups to index look-ups to ranges. Reading a whole table is the
//! last resort, however long a list of values is: of all mistakes it is the one without bound.

use std::ops::Range;

use super::join::Wish;
use super::logical::Leaf;
use super::physical::{Access, KeyPart};
use super::walk;
use crate::catalog::{Index, Table};
use crate::expr::{CompareOp, Expr, ExprKind};
use crate::types::{Collation, DataType};

/// Rows an unknown table is taken to have.
pub(crate) const TABLE_ROWS: f64 = 1000.0;
/// Share of rows that an equality on a key column leaves.
const EQUAL: f64 = 0.02;
/// Share of rows in which a column that may be NULL is.
const NULL: f64 = 0.6;
/// How much dearer a whole table is than the rows it is taken to have: it may have any number.
const WHOLE: f64 = 1000.0;
/// Of two equally good keys, the one that bounds more columns is better.
const LONGER: f64 = 0.001;

/// The way in that was chosen.
pub(crate) struct Choice {
    pub access: Access,
    pub rows: f64,
    pub keyed: bool,
    pub ordered: bool,
    pub possible: Vec<String>,
}

/// What a condition says about one column.
struct Sarg<'e> {
    column: usize,
    bound: Bound<'e>,
}

enum Bound<'e> {
    Points(Vec<&'e Expr>, bool),
    Low(&'e Expr),
    High(&'e Expr),
}

/// Chooses a way into `table` under `conditions`, which read `leaf` and `bound` slots only.
pub(crate) fn choose(
    leaf: &Leaf,
    table: &Table,
    conditions: &[&Expr],
    bound: &[Range<usize>],
    wish: &Wish,
    needs_columns: bool,
) -> Choice {
    let mut sargs = Vec::new();
    for condition in conditions {
        add_sargs(condition, leaf, table, &mut sargs);
    }
    let filters = conditions.len();
    let mut best: Option<(f64, Choice)> = None;
    let mut possible = Vec::new();
    let narrow = if needs_columns || filters > 0 {
        None
    } else {
        narrowest(table)
    };
    for candidate in candidates(leaf, table) {
        let parts = key_parts(&candidate, table, &sargs);
        if !parts.is_empty() {
            possible.push(candidate.name.to_string());
        }
        let (cost, choice) = rate(leaf, table, &candidate, parts, filters, wish, bound, narrow);
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            best = Some((cost, choice));
        }
    }
    let mut choice = best.map_or_else(
        || Choice {
            access: Access {
                index: None,
                parts: Vec::new(),
                unique: false,
                reverse: false,
            },
            rows: TABLE_ROWS,
            keyed: false,
            ordered: false,
            possible: Vec::new(),
        },
        |(_, choice)| choice,
    );
    choice.possible = possible;
    choice
}

/// A key: the primary one or an index.
struct Candidate<'t> {
    index: Option<usize>,
    name: &'t str,
    /// Column and whether only a prefix of it is in the key.
    columns: Vec<(usize, bool)>,
    unique: bool,
}

fn candidates<'t>(leaf: &Leaf, table: &'t Table) -> Vec<Candidate<'t>> {
    let allowed = |name: &str| {
        let same = |n: &String| n.eq_ignore_ascii_case(name);
        !leaf.hints.never.iter().any(same)
            && leaf
                .hints
                .only
                .as_ref()
                .is_none_or(|only| only.iter().any(same))
    };
    let mut candidates = vec![Candidate {
        index: None,
        name: "PRIMARY",
        columns: if allowed("PRIMARY") {
            table.primary_key.iter().map(|at| (*at, false)).collect()
        } else {
            Vec::new()
        },
        unique: true,
    }];
    for (at, index) in table.indexes.iter().enumerate() {
        if index.state.is_readable() && allowed(&index.name) {
            candidates.push(Candidate {
                index: Some(at),
                name: &index.name,
                columns: index
                    .columns
                    .iter()
                    .map(|c| (c.column, c.prefix.is_some()))
                    .collect(),
                unique: index.unique,
            });
        }
    }
    candidates
}

fn narrowest(table: &Table) -> Option<usize> {
    table
        .indexes
        .iter()
        .enumerate()
        .filter(|(_, index)| index.state.is_readable())
        .min_by_key(|(_, index): &(usize, &Index)| index.columns.len())
        .map(|(at, _)| at)
}

fn key_parts(candidate: &Candidate<'_>, table: &Table, sargs: &[Sarg<'_>]) -> Vec<KeyPart> {
    let mut parts = Vec::new();
    for (column, _) in &candidate.columns {
        let points = sargs
            .iter()
            .filter(|sarg| sarg.column == *column)
            .filter_map(|sarg| match &sarg.bound {
                Bound::Points(values, null) => Some((values, *null)),
                _ => None,
            })
            .min_by_key(|(values, _)| values.len());
        if let Some((values, null_matches)) = points {
            parts.push(KeyPart::Points {
                values: values.iter().map(|v| (*v).clone()).collect(),
                null_matches,
            });
            continue;
        }
        let ty = &table.columns[*column].ty;
        if matches!(ty, DataType::Enum { .. } | DataType::Set { .. }) {
            break;
        }
        let find = |low: bool| {
            sargs.iter().find_map(|sarg| match &sarg.bound {
                Bound::Low(expr) if low && sarg.column == *column => Some((*expr).clone()),
                Bound::High(expr) if !low && sarg.column == *column => Some((*expr).clone()),
                _ => None,
            })
        };
        let (low, high) = (find(true), find(false));
        if low.is_some() || high.is_some() {
            parts.push(KeyPart::Span { low, high });
        }
        break;
    }
    parts
}

#[allow(clippy::too_many_arguments)]
fn rate(
    leaf: &Leaf,
    table: &Table,
    candidate: &Candidate<'_>,
    parts: Vec<KeyPart>,
    filters: usize,
    wish: &Wish,
    bound: &[Range<usize>],
    narrow: Option<usize>,
) -> (f64, Choice) {
    let unique = candidate.unique
        && !candidate.columns.is_empty()
        && parts.len() == candidate.columns.len()
        && parts.iter().all(|part| {
            matches!(
                part,
                KeyPart::Points {
                    null_matches: false,
                    ..
                }
            )
        })
        && candidate.columns.iter().all(|(_, prefix)| !prefix);
    let touched = estimate(&parts, unique);
    let order = order_given(leaf, table, candidate, &parts, wish);
    let fetch = if candidate.index.is_none() { 1.0 } else { 2.0 };
    let stops_early = order.is_some() && wish.limited && !wish.order.is_empty();
    let mut cost = touched * fetch - LONGER * parts_weight(&parts);
    if parts.is_empty() && !stops_early {
        cost *= WHOLE;
    }
    if narrow.is_some() && candidate.index == narrow {
        cost *= 0.9 / fetch;
    }
    if order.is_none() && !wish.order.is_empty() {
        cost += touched * 0.5;
    } else if stops_early {
        let filtered = filters > parts.len();
        cost *= if filtered { 0.3 } else { 0.05 };
    }
    let extra = i32::try_from(filters.saturating_sub(parts.len()).min(6)).unwrap_or(6);
    let rows = (touched * 0.5_f64.powi(extra)).max(if unique { touched.min(1.0) } else { 1.0 });
    let keyed = parts_read(&parts, bound);
    let choice = Choice {
        access: Access {
            index: candidate.index,
            parts,
            unique,
            reverse: order.unwrap_or(false),
        },
        rows: if unique { touched } else { rows },
        keyed,
        ordered: order.is_some() && !wish.order.is_empty(),
        possible: Vec::new(),
    };
    (cost, choice)
}

fn parts_weight(parts: &[KeyPart]) -> f64 {
    f64::from(u32::try_from(parts.len()).unwrap_or(u32::MAX))
}

/// Rows that a key with these bounds leads to.
fn estimate(parts: &[KeyPart], unique: bool) -> f64 {
    let mut rows = TABLE_ROWS;
    let mut points = 1.0;
    for part in parts {
        match part {
            KeyPart::Points {
                values,
                null_matches,
            } => {
                let count = f64::from(u32::try_from(values.len()).unwrap_or(u32::MAX));
                let is_null = *null_matches && values.iter().all(is_null_literal);
                let share = if is_null { NULL } else { EQUAL * count };
                // A list on a later column leaves no more than the columns before it do.
                rows *= share.min(1.0);
                points *= count;
            }
            KeyPart::Span { low, high } => {
                rows *= if low.is_some() && high.is_some() {
                    0.05
                } else {
                    0.2
                };
            }
        }
    }
    if unique { points } else { rows.max(2.0) }
}

fn is_null_literal(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Literal(crate::types::Value::Null))
}

fn parts_read(parts: &[KeyPart], bound: &[Range<usize>]) -> bool {
    let mut keyed = false;
    let mut check = |expr: &Expr| {
        walk::references(expr, &mut |(depth, index)| {
            keyed |= depth == 0 && bound.iter().any(|range| range.contains(&index));
        });
    };
    for part in parts {
        match part {
            KeyPart::Points { values, .. } => values.iter().for_each(&mut check),
            KeyPart::Span { low, high } => low.iter().chain(high).for_each(&mut check),
        }
    }
    keyed
}

/// Whether the key gives the wished order, and if so whether backwards.
fn order_given(
    leaf: &Leaf,
    table: &Table,
    candidate: &Candidate<'_>,
    parts: &[KeyPart],
    wish: &Wish,
) -> Option<bool> {
    if wish.order.is_empty() {
        return None;
    }
    let single = |at: usize| matches!(parts.get(at), Some(KeyPart::Points { values, .. }) if values.len() == 1);
    let mut constant = Vec::new();
    let mut sequence = Vec::new();
    let mut whole = true;
    for (at, (column, prefix)) in candidate.columns.iter().enumerate() {
        if single(at) {
            constant.push(*column);
        } else if *prefix {
            whole = false;
            break;
        } else {
            sequence.push(*column);
        }
    }
    let mut unique_end =
        whole && candidate.unique && candidate.index.is_none() && !candidate.columns.is_empty();
    if whole && candidate.index.is_some() && !candidate.unique {
        for column in &table.primary_key {
            if !sequence.contains(column) && !constant.contains(column) {
                sequence.push(*column);
            }
        }
        unique_end = !table.primary_key.is_empty();
    }
    let mut direction = None;
    let mut next = sequence.iter();
    for (slot, descending) in &wish.order {
        if !leaf.slots.contains(slot) {
            return None;
        }
        let column = slot - leaf.slots.start;
        if constant.contains(&column) {
            continue;
        }
        match next.next() {
            Some(expected) if *expected == column => {}
            None if unique_end => continue,
            _ => return None,
        }
        if matches!(table.columns[column].ty, DataType::Json) {
            return None;
        }
        if *direction.get_or_insert(*descending) != *descending {
            return None;
        }
    }
    Some(direction.unwrap_or(false))
}

fn add_sargs<'e>(condition: &'e Expr, leaf: &Leaf, table: &Table, sargs: &mut Vec<Sarg<'e>>) {
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
                sargs.push(Sarg {
                    column,
                    bound: Bound::Points(list.iter().collect(), false),
                });
            }
        }
        ExprKind::IsNull(value) => {
            if let Some(column) = own_column(value, leaf)
                && !table.columns[column].not_null
            {
                sargs.push(Sarg {
                    column,
                    bound: Bound::Points(vec![null()], true),
                });
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

/// `a = 1 OR a = 2`, and `(a, b) IN ((1, 2), (3, 4))` which is bound to an OR of ANDs: a column
/// that every branch fixes is one of the values of all branches.
fn add_alternatives<'e>(
    condition: &'e Expr,
    leaf: &Leaf,
    table: &Table,
    sargs: &mut Vec<Sarg<'e>>,
) {
    let mut branches = Vec::new();
    split_or(condition, &mut branches);
    let mut fixed: Option<Vec<(usize, Vec<&'e Expr>, bool)>> = None;
    for branch in branches {
        let mut own = Vec::new();
        add_sargs(branch, leaf, table, &mut own);
        let own: Vec<(usize, Vec<&Expr>, bool)> = own
            .into_iter()
            .filter_map(|sarg| match sarg.bound {
                Bound::Points(values, null) => Some((sarg.column, values, null)),
                Bound::Low(_) | Bound::High(_) => None,
            })
            .collect();
        fixed = Some(match fixed {
            None => own,
            Some(known) => known
                .into_iter()
                .filter_map(|(column, mut values, null)| {
                    let (_, more, more_null) = own.iter().find(|(c, ..)| *c == column)?;
                    values.extend(more);
                    Some((column, values, null || *more_null))
                })
                .collect(),
        });
    }
    for (column, values, null) in fixed.unwrap_or_default() {
        sargs.push(Sarg {
            column,
            bound: Bound::Points(values, null),
        });
    }
}

fn split_or<'e>(expr: &'e Expr, branches: &mut Vec<&'e Expr>) {
    match &expr.kind {
        ExprKind::Or(left, right) => {
            split_or(left, branches);
            split_or(right, branches);
        }
        _ => branches.push(expr),
    }
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
    let bound = match op {
        CompareOp::Eq => Bound::Points(vec![value], false),
        CompareOp::NullSafeEq => Bound::Points(vec![value], true),
        CompareOp::Lt | CompareOp::Le => Bound::High(value),
        CompareOp::Gt | CompareOp::Ge => Bound::Low(value),
        CompareOp::Ne => return,
    };
    sargs.push(Sarg { column, bound });
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
