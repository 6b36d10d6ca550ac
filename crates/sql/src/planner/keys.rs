//! What bounds the columns of a key: of each the points or the span that conditions give it.

use super::sargs::{PointSet, Sarg};
use crate::catalog::{IndexId, Table};
use crate::plan::Expr;
use crate::plan::physical::KeyPart;
use crate::types::DataType;

/// A key: the primary one or an index.
pub(super) struct Candidate<'t> {
    pub index: Option<usize>,
    pub key: IndexId,
    pub name: &'t str,
    /// Column and whether only a prefix of it is in the key.
    pub columns: Vec<(usize, bool)>,
    pub unique: bool,
    /// Its entries hold all that is needed of a row.
    pub covers: bool,
}

/// Which of several sets of points is put on a key column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Prefer {
    /// The one with the fewest points.
    Few,
    /// The one that is about the most columns of the key.
    Long,
}

/// Bounds on the leading columns of a key: on as many as can be, with as few points as can be.
pub(super) fn key_parts(
    candidate: &Candidate<'_>,
    table: &Table,
    sargs: &[Sarg<'_>],
) -> Vec<KeyPart> {
    let few = bounds(candidate, table, sargs, Prefer::Few);
    let long = bounds(candidate, table, sargs, Prefer::Long);
    let is_better =
        long.len() > few.len() || long.len() == few.len() && points(&long) < points(&few);
    if is_better { long } else { few }
}

/// Points that parts make together: values that are tied to others make none of their own.
pub(super) fn points(parts: &[KeyPart]) -> f64 {
    let counts = parts.iter().map(|part| match part {
        KeyPart::Points {
            values, tied: None, ..
        } => count(values),
        KeyPart::Points { .. } | KeyPart::Span { .. } => 1.0,
    });
    counts.product()
}

/// How many values there are.
pub(super) fn count(values: &[Expr]) -> f64 {
    f64::from(u32::try_from(values.len()).unwrap_or(u32::MAX))
}

fn bounds(
    candidate: &Candidate<'_>,
    table: &Table,
    sargs: &[Sarg<'_>],
    prefer: Prefer,
) -> Vec<KeyPart> {
    let mut parts = Vec::new();
    // The sets in use, with the part that each was put on first.
    let mut used: Vec<(&PointSet<'_>, usize)> = Vec::new();
    for (at, (column, _)) in candidate.columns.iter().enumerate() {
        let tied = used.iter().find(|(set, _)| set.columns.contains(column));
        if let Some((set, first)) = tied {
            parts.extend(points_of(set, *column, Some(*first)));
            continue;
        }
        let rest = candidate.columns.get(at..).unwrap_or_default();
        if let Some(set) = best_set(sargs, *column, rest, prefer) {
            parts.extend(points_of(set, *column, None));
            used.push((set, at));
            continue;
        }
        // Of a blinded column only equal values are together.
        if !table.blinds(candidate.key, *column) {
            parts.extend(span_of(table, sargs, *column));
        }
        break;
    }
    parts
}

/// Whether a key does not bound the first column that it leaves open because that is blinded.
pub(super) fn is_blind_to(
    candidate: &Candidate<'_>,
    table: &Table,
    sargs: &[Sarg<'_>],
    parts: &[KeyPart],
) -> bool {
    let next = candidate.columns.get(parts.len());
    next.is_some_and(|(column, _)| {
        table.blinds(candidate.key, *column) && span_of(table, sargs, *column).is_some()
    })
}

fn best_set<'s, 'e>(
    sargs: &'s [Sarg<'e>],
    column: usize,
    rest: &[(usize, bool)],
    prefer: Prefer,
) -> Option<&'s PointSet<'e>> {
    let sets = sargs.iter().filter_map(|sarg| match sarg {
        Sarg::Points(set) if set.columns.contains(&column) => Some(set),
        _ => None,
    });
    sets.min_by_key(|set| {
        let is_about = |(column, _): &&(usize, bool)| set.columns.contains(column);
        let others = rest.len() - rest.iter().filter(is_about).count();
        match prefer {
            Prefer::Few => (set.rows.len(), others),
            Prefer::Long => (others, set.rows.len()),
        }
    })
}

fn points_of(set: &PointSet<'_>, column: usize, tied: Option<usize>) -> Option<KeyPart> {
    let place = set.columns.iter().position(|c| *c == column)?;
    Some(KeyPart::Points {
        values: set.values(place).cloned().collect(),
        null_matches: set.null_matches.get(place).copied().unwrap_or(true),
        tied,
    })
}

fn span_of(table: &Table, sargs: &[Sarg<'_>], column: usize) -> Option<KeyPart> {
    let ty = &table.columns.get(column)?.ty;
    if matches!(ty, DataType::Enum { .. } | DataType::Set { .. }) {
        return None;
    }
    let find = |wanted_low: bool| -> Option<Expr> {
        sargs.iter().find_map(|sarg| match sarg {
            Sarg::Low(at, expr) if wanted_low && *at == column => Some((*expr).clone()),
            Sarg::High(at, expr) if !wanted_low && *at == column => Some((*expr).clone()),
            _ => None,
        })
    };
    let (low, high) = (find(true), find(false));
    (low.is_some() || high.is_some()).then_some(KeyPart::Span { low, high })
}
