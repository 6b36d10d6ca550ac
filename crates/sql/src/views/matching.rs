//! Whether a query is answered by a view: it reads the same tables under the same conditions.
//!
//! What is left to do, from HAVING and the select list to LIMIT, need not be the same: it is the
//! query's own, run over what the view holds.

use std::sync::Arc;

use super::maintained::Maintained;
use super::shape::{Grouping, KeyColumn, Shape, among, cut, joined_of};
use super::top::{Top, ordered};
use crate::plan::logical::{Joined, Leaf, Source};
use crate::plan::physical::{Aggregate, Limit, Node, SetOperation, ViewLookup};
use crate::plan::{AggregateCall, Expr, ExprKind, HeldView, Plan, walk};
use crate::planner::delta::{self, leaves};
use crate::types::Value;

/// Look-ups that one query may be; with more the base plan answers.
const LOOKUPS_MAX: usize = 1_000;

/// What stands in a query for the parameters of a definition.
#[derive(Default)]
struct Binding {
    /// For each column of the key the values that are asked for.
    keys: Vec<Vec<Expr>>,
    guards: Vec<(usize, Value)>,
}

/// The plan `base` with views before it: before all of it, or before the SELECTs of a UNION, each
/// for itself. `None` when no view answers. `cuttable` is a plan of the same query that was made for
/// a view.
pub(crate) fn answer(views: &[Arc<Maintained>], base: &Plan, cuttable: &Plan) -> Option<Plan> {
    let root = answered(views, &base.root, &cuttable.root)?;
    Some(Plan {
        root,
        ..base.clone()
    })
}

fn answered(views: &[Arc<Maintained>], base: &Node, cuttable: &Node) -> Option<Node> {
    let found = views.iter().find_map(|view| lookup(view, base, cuttable));
    match found {
        Some(lookup) => Some(Node::View(Box::new(lookup))),
        None => operands_answered(views, base, cuttable),
    }
}

/// A set operation of which a view answers an operand at least, and what stands above it.
fn operands_answered(views: &[Arc<Maintained>], base: &Node, cuttable: &Node) -> Option<Node> {
    let below = |base: &Node, cuttable: &Node| {
        let node = operands_answered(views, base, cuttable)?;
        Some(Box::new(node))
    };
    Some(match (base, cuttable) {
        (Node::SetOperation(base), Node::SetOperation(own)) => {
            let left = answered(views, &base.left, &own.left);
            let right = answered(views, &base.right, &own.right);
            if left.is_none() && right.is_none() {
                return None;
            }
            Node::SetOperation(Box::new(SetOperation {
                left: left.unwrap_or_else(|| base.left.clone()),
                right: right.unwrap_or_else(|| base.right.clone()),
                op: base.op,
                all: base.all,
                collations: base.collations.clone(),
            }))
        }
        (Node::Sort { input, keys, limit }, Node::Sort { input: own, .. }) => Node::Sort {
            input: below(input, own)?,
            keys: keys.clone(),
            limit: limit.clone(),
        },
        (Node::Limit { input, limit }, Node::Limit { input: own, .. }) => Node::Limit {
            input: below(input, own)?,
            limit: limit.clone(),
        },
        (Node::Project { input, expressions }, Node::Project { input: own, .. }) => Node::Project {
            input: below(input, own)?,
            expressions: expressions.clone(),
        },
        (Node::Cut { input, width }, Node::Cut { input: own, .. }) => Node::Cut {
            input: below(input, own)?,
            width: *width,
        },
        _ => return None,
    })
}

/// What a view is to a query; `None` when it does not answer.
fn lookup(view: &Arc<Maintained>, base: &Node, cuttable: &Node) -> Option<ViewLookup> {
    let shape = &view.shape;
    let (source, tail) = cut(cuttable, shape.grouping.is_some())?;
    let joined = joined_of(source)?;
    let mut binding = Binding {
        keys: vec![Vec::new(); shape.keys.len()],
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
    let first = match &shape.top {
        None => None,
        Some(top) => Some((within(top, cuttable, &mut binding)?, top.wanted)),
    };
    let lookups: usize = binding.keys.iter().map(Vec::len).product();
    if lookups > LOOKUPS_MAX || !keys_are_apart(shape, &binding.keys) {
        return None;
    }
    Some(ViewLookup {
        view: Arc::clone(view) as Arc<dyn HeldView>,
        keys: binding.keys,
        guards: binding.guards,
        first,
        fill: fill_plan(shape, joined),
        key_params: shape.keys.iter().map(|key| key.param).collect(),
        tail,
        base: base.clone(),
    })
}

/// The LIMIT of a query that asks for first rows in the same order.
fn within(top: &Top, own: &Node, binding: &mut Binding) -> Option<Limit> {
    let (keys, limit) = ordered(own)?;
    let guards = &mut binding.guards;
    let is_alike = keys.len() == top.keys.len()
        && std::iter::zip(&top.keys, &keys).all(|((held, falls), (key, descends))| {
            falls == descends && is_same(held, key, guards)
        });
    is_alike.then(|| limit.clone())
}

/// Whether what several keys hold is what the query begins with: rows are, and groups when no group
/// has rows of two keys.
fn keys_are_apart(shape: &Shape, keys: &[Vec<Expr>]) -> bool {
    let Some(grouping) = &shape.grouping else {
        return true;
    };
    let mut several = shape.keys.iter().zip(keys).filter(|(_, all)| all.len() > 1);
    several.all(|(key, _)| {
        let mut grouped = grouping.keys.iter();
        grouped.any(|expr| matches!(expr.kind, ExprKind::Column(slot) if slot == key.slot))
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
        let found = open.iter().enumerate();
        let mut found = found.filter_map(|(at, condition)| Some((at, asked(key, condition)?)));
        let Some((place, values)) = found.next() else {
            return false;
        };
        assert!(!values.is_empty(), "a key is asked for by values");
        binding.keys[at] = values;
        open.swap_remove(place);
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

/// The values that a condition asks of a column of the key, if that is what it does.
fn asked(key: &KeyColumn, condition: &Expr) -> Option<Vec<Expr>> {
    let asked = among(condition)?;
    let is_compared_alike = asked.collation == key.collation || key.ty.collation().is_none();
    let fits = asked.slot == key.slot && is_compared_alike;
    let all = asked.values.into_iter().cloned();
    fits.then(|| all.collect())
        .filter(|values: &Vec<Expr>| values.iter().all(is_constant))
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

/// The plan of a key's rows; its parameters are those of the definition. `current`: the joined tables of
/// a query that the view answers, as the catalog has them now.
fn fill_plan(shape: &Shape, current: &Joined) -> Node {
    let from = Node::From {
        width: shape.width,
        input: Box::new(delta::rows_of(&shape.joined, current)),
        joined: None,
    };
    match &shape.top {
        Some(top) => top.fill(&from, shape.width),
        None => from,
    }
}
