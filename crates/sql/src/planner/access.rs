//! Ways into one table: which index, bounded how.
//!
//! How many rows a way meets is [`estimate`]'s guess. Reading a whole table is the last resort,
//! however long a list of values is: of all mistakes it is the one without bound. Where a guess
//! decides between two single ranges of indexes, the plan keeps both and the executor counts
//! (`executor::fewest`).

use std::ops::Range;

use super::estimate;
use super::join::Wish;
use super::keys::{Candidate, is_blind_to, key_parts};
use super::sargs::add_sargs;
use crate::catalog::{Index, IndexId, ROWS, Table};
use crate::encoding;
use crate::plan::logical::Leaf;
use crate::plan::physical::{Access, KeyPart};
use crate::plan::{Expr, ExprKind, walk};
use crate::types::DataType;

pub(crate) use super::estimate::TABLE_ROWS;

/// How much dearer a whole table is than the rows it is taken to have: it may have any number.
const WHOLE: f64 = 1000.0;
/// Rows up to this length are no longer than an index entry with its row key.
const SHORT_ROW_BYTES: u64 = 64;
/// Of two equally good keys, the one that bounds more columns is better.
const LONGER: f64 = 0.001;

/// The way in that was chosen.
pub(crate) struct Choice {
    pub access: Access,
    /// Rows expected to be read, and locked by a statement that locks.
    pub reads: f64,
    /// Rows of those that the conditions leave.
    pub rows: f64,
    pub keyed: bool,
    pub ordered: bool,
    pub possible: Vec<String>,
    /// Keys that give no range, or not the order that is wished for, because they are blinded.
    pub blinded: Vec<String>,
    pub alternatives: Vec<Access>,
}

impl Choice {
    /// The whole table.
    fn everything() -> Self {
        Self {
            access: Access {
                index: None,
                parts: Vec::new(),
                unique: false,
                reverse: false,
                covers: false,
            },
            reads: TABLE_ROWS,
            rows: TABLE_ROWS,
            keyed: false,
            ordered: false,
            possible: Vec::new(),
            blinded: Vec::new(),
            alternatives: Vec::new(),
        }
    }
}

/// Chooses a way into `table` under `conditions`, which read `leaf` and `bound` slots only.
pub(crate) fn choose(
    leaf: &Leaf,
    table: &Table,
    conditions: &[&Expr],
    bound: &[Range<usize>],
    wish: &Wish,
    needs: &Needs,
) -> Choice {
    let mut sargs = Vec::new();
    for condition in conditions {
        add_sargs(condition, leaf, table, &mut sargs);
    }
    let filters = conditions.len();
    let mut best: Option<(f64, Choice)> = None;
    let mut others = Vec::new();
    let (mut possible, mut blinded) = (Vec::new(), Vec::new());
    let nothing = !needs.row_key && !needs.columns.contains(&true);
    let narrow = if nothing && filters == 0 {
        narrowest(table)
    } else {
        None
    };
    for mut candidate in candidates(leaf, table) {
        candidate.covers = covers(table, candidate.index, needs);
        let parts = key_parts(&candidate, table, &sargs);
        if !parts.is_empty() {
            possible.push(candidate.name.to_string());
        }
        if is_blind_to(&candidate, table, &sargs, &parts)
            || would_order(leaf, table, &candidate, &parts, wish)
        {
            blinded.push(candidate.name.to_string());
        }
        let (cost, choice) = rate(leaf, table, &candidate, parts, filters, wish, bound, narrow);
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            others.extend(best.take().map(|(_, beaten)| beaten));
            best = Some((cost, choice));
        } else {
            others.push(choice);
        }
    }
    let mut choice = best.map_or_else(Choice::everything, |(_, choice)| choice);
    choice.alternatives = alternatives(table, &choice, others);
    choice.possible = possible;
    choice.blinded = blinded;
    choice
}

/// Ways that may meet fewer entries than the chosen one, for values that are known only when the
/// query runs: nothing here tells a column of a thousand values from one of two, and a value that
/// is everywhere from one that is rare.
fn alternatives(table: &Table, chosen: &Choice, others: Vec<Choice>) -> Vec<Access> {
    if chosen.ordered || !is_comparable(chosen) {
        return Vec::new();
    }
    let bound = |choice: &Choice| -> Vec<usize> {
        let parts = choice.access.parts.len();
        key_columns(table, choice.access.index)
            .take(parts)
            .collect()
    };
    let known = bound(chosen);
    others
        .into_iter()
        .filter(|other| is_comparable(other) && bound(other).iter().any(|c| !known.contains(c)))
        .map(|other| other.access)
        .collect()
}

/// Whether what a way meets can be counted before a row is read: it is bounded by values that are
/// there then, and working them out twice warns of nothing twice.
fn is_comparable(choice: &Choice) -> bool {
    let is_simple = |expr: &Expr| {
        matches!(
            expr.kind,
            ExprKind::Literal(_) | ExprKind::Param(_) | ExprKind::Outer { .. }
        )
    };
    let access = &choice.access;
    !access.unique
        && !access.parts.is_empty()
        && access.parts.iter().all(|part| match part {
            KeyPart::Points { values, .. } => {
                matches!(values.as_slice(), [value] if is_simple(value))
            }
            KeyPart::Span { low, high } => low.iter().chain(high).all(is_simple),
        })
}

fn key_columns(table: &Table, index: Option<usize>) -> Box<dyn Iterator<Item = usize> + '_> {
    match index.and_then(|at| table.indexes.get(at)) {
        Some(index) => Box::new(index.columns.iter().map(|part| part.column)),
        None => Box::new(table.primary_key.iter().copied()),
    }
}

/// What a query needs of the rows of a table.
pub(crate) struct Needs {
    /// The columns, one a column of the table.
    pub columns: Vec<bool>,
    /// The row key, to change the row: the row itself is read then.
    pub row_key: bool,
}

fn covers(table: &Table, index: Option<usize>, needs: &Needs) -> bool {
    let index = index.and_then(|at| table.indexes.get(at));
    !needs.row_key && index.is_some_and(|index| encoding::entry_holds(table, index, &needs.columns))
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
        key: ROWS,
        name: "PRIMARY",
        columns: if allowed("PRIMARY") {
            table.primary_key.iter().map(|at| (*at, false)).collect()
        } else {
            Vec::new()
        },
        unique: true,
        covers: false,
    }];
    for (at, index) in table.indexes.iter().enumerate() {
        if index.state.is_readable() && allowed(&index.name) {
            candidates.push(Candidate {
                index: Some(at),
                key: index.id,
                name: &index.name,
                columns: index
                    .columns
                    .iter()
                    .map(|c| (c.column, c.prefix.is_some()))
                    .collect(),
                unique: index.unique,
                covers: false,
            });
        }
    }
    candidates
}

/// The index whose entries are counted instead of the rows. Rows are counted where they are short:
/// an index whose columns are written again and again holds an entry for each value that they had
/// since its entries were last written out, and counting walks over all of these.
fn narrowest(table: &Table) -> Option<usize> {
    if estimate::row_bytes(table) <= SHORT_ROW_BYTES {
        return None;
    }
    table
        .indexes
        .iter()
        .enumerate()
        .filter(|(_, index)| index.state.is_readable())
        .min_by_key(|(_, index): &(usize, &Index)| index.columns.len())
        .map(|(at, _)| at)
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
    let touched = estimate::rows_met(table, candidate.index, &parts, unique);
    let blinds = |key, column| table.blinds(key, column);
    let order = order_given(leaf, table, candidate, &parts, wish, &blinds);
    let fetch = if candidate.index.is_none() || candidate.covers {
        1.0
    } else {
        2.0
    };
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
            covers: candidate.covers,
        },
        reads: touched,
        rows: if unique { touched } else { rows },
        keyed,
        ordered: order.is_some() && !wish.order.is_empty(),
        possible: Vec::new(),
        blinded: Vec::new(),
        alternatives: Vec::new(),
    };
    (cost, choice)
}

fn parts_weight(parts: &[KeyPart]) -> f64 {
    f64::from(u32::try_from(parts.len()).unwrap_or(u32::MAX))
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

/// Whether the key would give the wished order if none of its columns were blinded, and does not.
fn would_order(
    leaf: &Leaf,
    table: &Table,
    candidate: &Candidate<'_>,
    parts: &[KeyPart],
    wish: &Wish,
) -> bool {
    if table.blinding.is_plain() {
        return false;
    }
    let blinds = |key, column| table.blinds(key, column);
    order_given(leaf, table, candidate, parts, wish, &blinds).is_none()
        && order_given(leaf, table, candidate, parts, wish, &|_, _| false).is_some()
}

/// Whether the key gives the wished order, and if so whether backwards. `blinds` says of a column whether
/// it is blinded in a key: the order of such a column is nobody's.
fn order_given(
    leaf: &Leaf,
    table: &Table,
    candidate: &Candidate<'_>,
    parts: &[KeyPart],
    wish: &Wish,
    blinds: &dyn Fn(IndexId, usize) -> bool,
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
        } else if *prefix || blinds(candidate.key, *column) {
            whole = false;
            break;
        } else {
            sequence.push(*column);
        }
    }
    let mut unique_end =
        whole && candidate.unique && candidate.index.is_none() && !candidate.columns.is_empty();
    if whole && candidate.index.is_some() && !candidate.unique {
        unique_end = !table.primary_key.is_empty();
        for column in &table.primary_key {
            if sequence.contains(column) || constant.contains(column) {
                continue;
            }
            if blinds(ROWS, *column) {
                unique_end = false;
                break;
            }
            sequence.push(*column);
        }
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
