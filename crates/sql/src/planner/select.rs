//! The operators of one SELECT, stacked on its joined tables.

use std::sync::Arc;

use super::join::{Planner, Wish};
use crate::plan::logical::Joined;
use crate::plan::physical::{Aggregate, Limit, Node, SortKey, Window};
use crate::plan::select::{Output, SelectParts};
use crate::plan::{AggregateKind, BoundQuery, Expr, ExprKind, walk};
use crate::types::{Collation, ColumnMeta, DataType, Value};

/// Chooses the operators of a bound SELECT.
pub(crate) fn plan_select(mut parts: SelectParts) -> BoundQuery {
    let columns: Vec<ColumnMeta> = parts.outputs.iter().map(|o| o.meta.clone()).collect();
    super::having::push_down(&mut parts);
    read_held_expressions(&mut parts);
    let used = used_slots(&parts);
    let extreme = if parts.for_view {
        None
    } else {
        extreme(&mut parts)
    };
    let wish = extreme.unwrap_or_else(|| wish(&parts));
    let group = std::mem::take(&mut parts.group);
    let joined = parts.for_view.then(|| {
        Arc::new(Joined {
            group: group.clone(),
            used: used.clone(),
        })
    });
    let planned = Planner::new(&used).plan(group, &wish);
    let sorted = planned.ordered;
    let mut rows = planned.rows;
    let mut node = Node::From {
        width: parts.width,
        input: Box::new(planned.node),
        joined,
    };
    if sorted && parts.aggregated {
        node = first_row(node);
    }
    if parts.aggregated {
        rows = if parts.keys.is_empty() {
            1.0
        } else {
            rows / 2.0
        };
        node = Node::Aggregate(Box::new(Aggregate {
            input: node,
            global: parts.keys.is_empty(),
            keys: std::mem::take(&mut parts.keys),
            calls: std::mem::take(&mut parts.calls),
            rollup: parts.rollup,
        }));
    }
    if !parts.having.is_empty() {
        node = having(node, &mut parts);
    }
    if !parts.windows.is_empty() {
        node = Node::Window(Box::new(Window {
            input: node,
            calls: std::mem::take(&mut parts.windows),
        }));
    }
    BoundQuery {
        node: project_and_sort(node, parts, sorted),
        columns,
        rows,
    }
}

/// Reads from indexed columns what they hold. DISTINCT orders by what it selects, and grouped rows
/// have no columns any more: there the order stays as it is.
fn read_held_expressions(parts: &mut SelectParts) {
    super::generated::in_conditions(&mut parts.group);
    if !parts.aggregated && !parts.distinct && parts.windows.is_empty() {
        super::generated::in_order(&parts.group, &mut parts.order);
    }
}

/// MIN or MAX of one column needs the first row of an index in its order: NULLs, which sort
/// first and do not count, are excluded.
fn extreme(parts: &mut SelectParts) -> Option<Wish> {
    let [call] = parts.calls.as_slice() else {
        return None;
    };
    if !parts.keys.is_empty() || !matches!(call.kind, AggregateKind::Min | AggregateKind::Max) {
        return None;
    }
    let argument = call.arguments.first()?;
    let ExprKind::Column(slot) = argument.kind else {
        return None;
    };
    if matches!(argument.ty, DataType::Enum { .. } | DataType::Set { .. }) {
        return None;
    }
    let descending = call.kind == AggregateKind::Max;
    if argument.nullable {
        let condition = Expr::not(Expr::is_null(argument.clone()));
        parts.group.conjuncts.push(condition);
    }
    Some(Wish {
        order: vec![(slot, descending)],
        limited: true,
    })
}

fn first_row(node: Node) -> Node {
    let one = Expr::literal(Value::Int(1), DataType::BIGINT);
    Node::Limit {
        input: Box::new(node),
        limit: Limit {
            count: Some(one),
            offset: None,
        },
    }
}

fn having(node: Node, parts: &mut SelectParts) -> Node {
    Node::Filter {
        input: Box::new(node),
        predicates: std::mem::take(&mut parts.having),
    }
}

/// Rows of the FROM clause itself, which has `columns`, ordered and limited, for UPDATE and DELETE.
pub(crate) fn plan_modify_rows(mut parts: SelectParts, columns: &[DataType]) -> Node {
    let width = columns.len();
    read_held_expressions(&mut parts);
    let used = vec![true; parts.width];
    let wish = wish(&parts);
    let group = std::mem::take(&mut parts.group);
    let planned = Planner::new(&used).plan(group, &wish);
    let node = Node::From {
        width: parts.width,
        input: Box::new(planned.node),
        joined: None,
    };
    if parts.order.is_empty() && parts.limit.is_none() && parts.width == width {
        return node;
    }
    for (at, ty) in columns.iter().enumerate() {
        let expr = Expr {
            kind: ExprKind::Column(at),
            ty: ty.clone(),
            nullable: true,
        };
        parts.outputs.push(Output::computed(expr, String::new()));
    }
    project_and_sort(node, parts, planned.ordered)
}

/// Project, DISTINCT, ORDER BY, LIMIT. Sort keys that are no output ride along and are cut off.
fn project_and_sort(node: Node, parts: SelectParts, sorted: bool) -> Node {
    let width = parts.outputs.len();
    let collations: Vec<Collation> = parts
        .outputs
        .iter()
        .map(|o| o.expr.ty.collation().unwrap_or(Collation::Binary))
        .collect();
    let mut expressions: Vec<Expr> = parts.outputs.into_iter().map(|o| o.expr).collect();
    let keeps_order = sorted && !parts.order.is_empty();
    let mut keys = Vec::new();
    if !sorted {
        for (expr, descending) in parts.order {
            if is_constant(&expr) {
                continue;
            }
            keys.push(SortKey::of(expr, descending, &mut expressions));
        }
    }
    let extended = expressions.len() > width;
    let mut node = Node::Project {
        input: Box::new(node),
        expressions,
    };
    if parts.distinct {
        node = Node::Distinct {
            input: Box::new(node),
            collations,
            keeps_order,
        };
    }
    if !keys.is_empty() {
        node = Node::Sort {
            input: Box::new(node),
            keys,
            limit: parts.limit.clone(),
        };
    }
    if let Some(limit) = parts.limit {
        node = Node::Limit {
            input: Box::new(node),
            limit,
        };
    }
    if extended {
        node = Node::Cut {
            input: Box::new(node),
            width,
        };
    }
    node
}

fn is_constant(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Literal(_) | ExprKind::Param(_))
}

/// The slots of the joined rows that the clauses of a SELECT look at.
pub(crate) fn used_slots(parts: &SelectParts) -> Vec<bool> {
    let mut used = vec![false; parts.width];
    let mut note = |expr: &Expr| {
        walk::references(expr, &mut |(depth, index)| {
            if depth == 0
                && let Some(slot) = used.get_mut(index)
            {
                *slot = true;
            }
        });
    };
    parts.group.for_each_expr(&mut note);
    parts.keys.iter().for_each(&mut note);
    for call in &parts.calls {
        call.for_each_expr(&mut note);
    }
    if !parts.aggregated {
        parts.outputs.iter().for_each(|o| note(&o.expr));
        parts.order.iter().for_each(|(key, _)| note(key));
        parts.having.iter().for_each(&mut note);
        for window in &parts.windows {
            window.for_each_expr(&mut note);
        }
    }
    used
}

/// The order the joined rows should come in, when an index might give it.
fn wish(parts: &SelectParts) -> Wish {
    let mut wish = Wish {
        order: Vec::new(),
        limited: parts.limit.is_some() && !parts.for_view,
    };
    if parts.aggregated || !parts.windows.is_empty() || parts.for_view {
        return wish;
    }
    for (key, descending) in &parts.order {
        match key.kind {
            ExprKind::Column(slot) => wish.order.push((slot, *descending)),
            _ if is_constant(key) => {}
            _ => {
                wish.order.clear();
                return wish;
            }
        }
    }
    wish
}
