//! Whether a query is answered by a view: it reads the same table under the same conditions.
//!
//! What is left to do, from HAVING and the select list to LIMIT, need not be the same: it is the
//! query's own, run over what the view holds.

use std::sync::Arc;

use super::maintained::Maintained;
use super::shape::{Grouping, Shape, cut, equality, joined_of};
use crate::binder::AggregateCall;
use crate::expr::{Expr, ExprKind};
use crate::planner::delta::{Joined, leaves};
use crate::planner::logical::{Leaf, Source};
use crate::planner::physical::{Aggregate, Node, ViewLookup};
use crate::planner::{Plan, walk};
use crate::types::Value;

/// What stands in a query for the parameters of a definition.
#[derive(Default)]
struct Binding {
    keys: Vec<Option<Expr>>,
    guards: Vec<(usize, Value)>,
}

/// The plan `base` with the view before it; `None` when the view does not answer. `cuttable` is a
/// plan of the same query that was made for a view.
pub(crate) fn answer(view: &Arc<Maintained>, base: &Plan, cuttable: &Plan) -> Option<Plan> {
    let shape = &view.shape;
    let (source, tail) = cut(&cuttable.root, shape.grouping.is_some())?;
    let joined = joined_of(source)?;
    let mut binding = Binding {
        keys: vec![None; shape.keys.len()],
        guards: Vec::new(),
    };
    if !reads_the_same(shape, joined, &mut binding) || !has_conditions(shape, joined, &mut binding)
    {
        return None;
    }
    match (&shape.grouping, source) {
        (None, Node::From { .. }) => {}
        (Some(grouping), Node::Aggregate(own)) if groups_the_same(grouping, own, &mut binding) => {}
        _ => return None,
    }
    let keys: Vec<Expr> = binding.keys.into_iter().collect::<Option<_>>()?;
    let mut fill = shape.fill.clone();
    put_keys(&mut fill, shape, &keys);
    let lookup = ViewLookup {
        view: Arc::clone(view),
        keys,
        guards: binding.guards,
        tail,
        fill,
        base: base.root.clone(),
    };
    Some(Plan {
        root: Node::View(Box::new(lookup)),
        ..base.clone()
    })
}

/// Whether the same tables are joined in the same way, and no column is needed that is not held.
fn reads_the_same(shape: &Shape, own: &Joined, binding: &mut Binding) -> bool {
    let (Ok(held), Ok(read)) = (leaves(&shape.joined.group), leaves(&own.group)) else {
        return false;
    };
    let used = own.used.iter().zip(&shape.joined.used);
    held.len() == read.len()
        && own.used.len() == shape.joined.used.len()
        && used.into_iter().all(|(own, held)| *held || !*own)
        && std::iter::zip(held, read).all(|((held, there), (read, here))| {
            is_same_table(held, read)
                && there.kind == here.kind
                && there.on.len() == here.on.len()
                && std::iter::zip(&there.on, &here.on)
                    .all(|(a, b)| is_same(a, b, &mut binding.guards))
        })
}

fn is_same_table(held: &Leaf, read: &Leaf) -> bool {
    let (Source::Stored(a), Source::Stored(b)) = (&held.source, &read.source) else {
        return false;
    };
    a.id == b.id
        && a.schema_version == b.schema_version
        && held.slots == read.slots
        && read.key_slot.is_none()
}

/// Whether the conditions are the view's, each of them and no other.
fn has_conditions(shape: &Shape, own: &Joined, binding: &mut Binding) -> bool {
    let mut open: Vec<&Expr> = own.group.conjuncts.iter().collect();
    for (at, key) in shape.keys.iter().enumerate() {
        let mut candidates = open.iter();
        let found = candidates.position(|condition| {
            equality(condition).is_some_and(|(slot, operand, collation, _)| {
                slot == key.slot && collation == key.collation && is_constant(operand)
            })
        });
        let Some(found) = found else { return false };
        let condition = open.swap_remove(found);
        binding.keys[at] = equality(condition).map(|(_, operand, ..)| operand.clone());
    }
    for condition in &shape.conditions {
        let mut guards = Vec::new();
        let found = open.iter().position(|own| {
            guards.clear();
            is_same(condition, own, &mut guards)
        });
        let Some(found) = found else { return false };
        open.swap_remove(found);
        binding.guards.append(&mut guards);
    }
    open.is_empty()
}

fn is_constant(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Param(_) | ExprKind::Literal(_))
}

/// Whether `own` computes what the definition's expression does, if its parameters have the values
/// of `guards`.
fn is_same(defined: &Expr, own: &Expr, guards: &mut Vec<(usize, Value)>) -> bool {
    if let (ExprKind::Literal(value), ExprKind::Param(param)) = (&defined.kind, &own.kind) {
        guards.push((*param, value.clone()));
        return true;
    }
    if matches!(own.kind, ExprKind::Param(_)) {
        return false;
    }
    let mut probe = own.clone();
    let mut found = Vec::new();
    if !put_literals(defined, &mut probe, &mut found) {
        return false;
    }
    if walk::same(defined, &probe) {
        guards.append(&mut found);
        return true;
    }
    false
}

/// Puts the literals of `defined` in the place of parameters of `own`, where both have the same
/// form.
fn put_literals(defined: &Expr, own: &mut Expr, guards: &mut Vec<(usize, Value)>) -> bool {
    if let (ExprKind::Literal(value), ExprKind::Param(param)) = (&defined.kind, &own.kind) {
        guards.push((*param, value.clone()));
        *own = defined.clone();
        return true;
    }
    let mut children = Vec::new();
    walk::for_each_child(defined, &mut |child| children.push(child.clone()));
    let mut at = 0;
    let mut fits = true;
    walk::for_each_child_mut(own, &mut |child| {
        fits = fits
            && children
                .get(at)
                .is_some_and(|defined| put_literals(defined, child, guards));
        at += 1;
    });
    fits && at == children.len()
}

fn groups_the_same(grouping: &Grouping, own: &Aggregate, binding: &mut Binding) -> bool {
    let guards = &mut binding.guards;
    grouping.global == own.global
        && !own.rollup
        && grouping.keys.len() == own.keys.len()
        && grouping.calls.len() == own.calls.len()
        && std::iter::zip(&grouping.keys, &own.keys).all(|(a, b)| is_same(a, b, guards))
        && std::iter::zip(&grouping.calls, &own.calls).all(|(a, b)| is_same_call(a, b, guards))
}

fn is_same_call(
    defined: &AggregateCall,
    own: &AggregateCall,
    guards: &mut Vec<(usize, Value)>,
) -> bool {
    defined.kind == own.kind
        && defined.distinct == own.distinct
        && defined.ty == own.ty
        && own.order.is_empty()
        && defined.arguments.len() == own.arguments.len()
        && std::iter::zip(&defined.arguments, &own.arguments).all(|(a, b)| is_same(a, b, guards))
}

/// Puts what stands in the query for the definition's parameters into the plan of the fill.
fn put_keys(fill: &mut Node, shape: &Shape, keys: &[Expr]) {
    walk::node_exprs_mut(fill, &mut |expr| put_into(expr, shape, keys));
}

fn put_into(expr: &mut Expr, shape: &Shape, keys: &[Expr]) {
    if let ExprKind::Param(param) = expr.kind {
        let mut columns = shape.keys.iter().zip(keys);
        if let Some((_, key)) = columns.find(|(column, _)| column.param == param) {
            *expr = key.clone();
        }
        return;
    }
    walk::for_each_child_mut(expr, &mut |child| put_into(child, shape, keys));
}
