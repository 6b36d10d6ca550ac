//! Expressions over groups: what the select list, HAVING and ORDER BY may read after grouping.

use super::aggregate::{CALL_BASE, WINDOW_BASE};
use super::scope::{FrameColumn, column_expr, seen_from};
use crate::error::{SqlError, SqlResult};
use crate::plan::logical::{Group, Tree};
use crate::plan::physical::JoinKind;
use crate::plan::select::SelectParts;
use crate::plan::{AggregateCall, CompareOp, Expr, ExprKind, walk};

/// Whether an aggregate or window result is inside.
pub(crate) fn has_call(expr: &Expr) -> bool {
    let mut found = false;
    walk::references(expr, &mut |(depth, index)| {
        found |= depth == 0 && index >= CALL_BASE;
    });
    found
}

/// Rewrites everything after grouping to read `keys ‖ calls ‖ window results`.
pub(crate) fn rewrite(
    parts: &mut SelectParts,
    columns: &[FrameColumn],
    full_group_by: bool,
) -> SqlResult<()> {
    let determined = if parts.aggregated {
        determined_slots(parts)
    } else {
        Vec::new()
    };
    let mut rewriter = Rewriter {
        aggregated: parts.aggregated,
        keys: std::mem::take(&mut parts.keys),
        calls: std::mem::take(&mut parts.calls),
        determined,
        columns,
        full_group_by,
        place: "SELECT list",
        number: 0,
        failure: None,
    };
    for (at, output) in parts.outputs.iter_mut().enumerate() {
        rewriter.enter("SELECT list", at);
        rewriter.expr(&mut output.expr);
    }
    for (at, having) in parts.having.iter_mut().enumerate() {
        rewriter.enter("HAVING clause", at);
        rewriter.expr(having);
    }
    for (at, (key, _)) in parts.order.iter_mut().enumerate() {
        rewriter.enter("ORDER BY", at);
        rewriter.expr(key);
    }
    for (at, window) in parts.windows.iter_mut().enumerate() {
        rewriter.enter("window", at);
        window.for_each_expr_mut(&mut |expr| rewriter.expr(expr));
    }
    if let Some(failure) = rewriter.failure {
        return Err(failure);
    }
    parts.keys = rewriter.keys;
    parts.calls = if parts.aggregated {
        rewriter.calls
    } else {
        Vec::new()
    };
    place_windows(parts);
    Ok(())
}

/// Window results lie behind the row the windows read.
fn place_windows(parts: &mut SelectParts) {
    let base = if parts.aggregated {
        parts.keys.len() + parts.calls.len()
    } else {
        parts.width
    };
    let mut place = |(depth, index): walk::Reference| {
        if depth == 0 && index >= WINDOW_BASE {
            (0, base + index - WINDOW_BASE)
        } else {
            (depth, index)
        }
    };
    for output in &mut parts.outputs {
        walk::remap(&mut output.expr, &mut place);
    }
    for (key, _) in &mut parts.order {
        walk::remap(key, &mut place);
    }
}

struct Rewriter<'a> {
    aggregated: bool,
    keys: Vec<Expr>,
    calls: Vec<AggregateCall>,
    determined: Vec<usize>,
    columns: &'a [FrameColumn],
    full_group_by: bool,
    place: &'static str,
    number: usize,
    failure: Option<SqlError>,
}

impl Rewriter<'_> {
    fn enter(&mut self, place: &'static str, at: usize) {
        self.place = place;
        self.number = at + 1;
    }

    fn expr(&mut self, expr: &mut Expr) {
        if !self.aggregated {
            self.inline_any_value(expr, 0);
            return;
        }
        if let Some(key) = self.keys.iter().position(|key| walk::same(key, expr)) {
            expr.kind = ExprKind::Column(key);
            expr.nullable = true;
            return;
        }
        if let ExprKind::Column(index) = expr.kind {
            expr.kind = ExprKind::Column(self.after_grouping(index, expr));
            return;
        }
        walk::for_each_child_mut(expr, &mut |child| self.expr(child));
        let probe = expr.clone();
        if let Some(plan) = walk::plan_of_mut(expr) {
            let mut map = |(depth, index): walk::Reference| {
                if depth == 0 {
                    (0, self.after_grouping_of(index, &probe))
                } else {
                    (depth, index)
                }
            };
            walk::remap_plan_node(&mut plan.root, &mut map);
        }
    }

    /// Without groups `ANY_VALUE` is its argument, also in a subquery whose rows are `level` queries
    /// further in.
    fn inline_any_value(&self, expr: &mut Expr, level: usize) {
        let index = match expr.kind {
            ExprKind::Column(index) if level == 0 => Some(index),
            ExprKind::Outer { depth, index } if level > 0 && depth == level => Some(index),
            _ => None,
        };
        if let Some(index) = index.filter(|index| (CALL_BASE..WINDOW_BASE).contains(index))
            && let Some(call) = self.calls.get(index - CALL_BASE)
            && let Some(argument) = call.arguments.first()
        {
            *expr = seen_from(argument, level);
            return;
        }
        if let Some(plan) = walk::plan_of_mut(expr) {
            walk::node_exprs_mut(&mut plan.root, &mut |inner| {
                self.inline_any_value(inner, level + 1);
            });
        }
        walk::for_each_child_mut(expr, &mut |child| self.inline_any_value(child, level));
    }

    fn after_grouping_of(&mut self, index: usize, probe: &Expr) -> usize {
        let key = self
            .keys
            .iter()
            .position(|key| matches!(key.kind, ExprKind::Column(slot) if slot == index));
        match key {
            Some(key) => key,
            None => self.after_grouping(index, probe),
        }
    }

    fn after_grouping(&mut self, index: usize, like: &Expr) -> usize {
        if index >= WINDOW_BASE {
            return index;
        }
        if index >= CALL_BASE {
            return self.keys.len() + index - CALL_BASE;
        }
        let known = self
            .columns
            .iter()
            .find(|column| matches!(column.expr.kind, ExprKind::Column(slot) if slot == index));
        if self.full_group_by && !self.determined.contains(&index) {
            self.fail(known);
        }
        let expr = known.map_or_else(
            || column_expr(index, like.ty.clone(), true),
            |column| column.expr.clone(),
        );
        let call = AggregateCall::first(expr);
        let position = self.calls.iter().position(|c| c.same(&call));
        let position = position.unwrap_or_else(|| {
            self.calls.push(call);
            self.calls.len() - 1
        });
        self.keys.len() + position
    }

    fn fail(&mut self, column: Option<&FrameColumn>) {
        let name = column.map_or_else(String::new, FrameColumn::full_name);
        let (place, number) = (self.place, self.number);
        let error = if self.keys.is_empty() {
            SqlError::new(
                1140,
                "42000",
                format!(
                    "In aggregated query without GROUP BY, expression #{number} of {place} \
                     contains nonaggregated column '{name}'; this is incompatible with \
                     sql_mode=only_full_group_by"
                ),
            )
        } else {
            SqlError::new(
                1055,
                "42000",
                format!(
                    "Expression #{number} of {place} is not in GROUP BY clause and contains \
                     nonaggregated column '{name}' which is not functionally dependent on \
                     columns in GROUP BY clause; this is incompatible with \
                     sql_mode=only_full_group_by"
                ),
            )
        };
        self.failure.get_or_insert(error);
    }
}

/// Slots whose value is the same in all rows of a group: group columns, what equals them or a
/// constant, and every column of a table whose unique key is among them.
fn determined_slots(parts: &SelectParts) -> Vec<usize> {
    let mut known: Vec<usize> = Vec::new();
    for key in &parts.keys {
        if let ExprKind::Column(slot) = key.kind {
            known.push(slot);
        }
    }
    let mut edges = Vec::new();
    add_edges(&parts.group, &mut edges);
    loop {
        let before = known.len();
        for (from, to) in &edges {
            if from.is_none_or(|from| known.contains(&from)) && !known.contains(to) {
                known.push(*to);
            }
        }
        parts
            .group
            .for_each_leaf(&mut |leaf| add_key_columns(leaf, &mut known));
        if known.len() == before {
            return known;
        }
    }
}

/// Slot (or a constant, `None`) that fixes another slot by an equality. The ON of an outer join
/// fixes columns of its optional side only, and by columns only; that of an anti-join holds for no
/// row that is left.
fn add_edges(group: &Group, edges: &mut Vec<(Option<usize>, usize)>) {
    for condition in &group.conjuncts {
        edges.extend(edges_of(condition));
    }
    for member in &group.members {
        if member.kind == JoinKind::Anti {
            continue;
        }
        let optional = member.kind == JoinKind::Left;
        let made = member.on.iter().flat_map(edges_of);
        edges.extend(
            made.filter(|(from, to)| !optional || from.is_some() && member.slots.contains(to)),
        );
        if let (false, Tree::Group(inner)) = (optional, &member.tree) {
            add_edges(inner, edges);
        }
    }
}

fn edges_of(condition: &Expr) -> Vec<(Option<usize>, usize)> {
    let ExprKind::Compare(CompareOp::Eq, left, right, _) = &condition.kind else {
        return Vec::new();
    };
    match (&left.kind, &right.kind) {
        (ExprKind::Column(a), ExprKind::Column(b)) => vec![(Some(*a), *b), (Some(*b), *a)],
        (ExprKind::Column(a), _) if is_fixed(right) => vec![(None, *a)],
        (_, ExprKind::Column(b)) if is_fixed(left) => vec![(None, *b)],
        _ => Vec::new(),
    }
}

fn is_fixed(expr: &Expr) -> bool {
    let mut constant = true;
    walk::references(expr, &mut |(depth, _)| constant &= depth > 0);
    constant && !walk::is_volatile(expr)
}

fn add_key_columns(leaf: &crate::plan::logical::Leaf, known: &mut Vec<usize>) {
    let crate::plan::logical::Source::Stored(table) = &leaf.source else {
        return;
    };
    let has = |at: usize, known: &[usize]| known.contains(&(leaf.slots.start + at));
    let primary =
        !table.primary_key.is_empty() && table.primary_key.iter().all(|at| has(*at, known));
    let unique = table.indexes.iter().any(|index| {
        index.unique
            && index.columns.iter().all(|c| {
                c.prefix.is_none() && table.columns[c.column].not_null && has(c.column, known)
            })
    });
    if primary || unique {
        for slot in leaf.slots.clone() {
            if !known.contains(&slot) {
                known.push(slot);
            }
        }
    }
}
