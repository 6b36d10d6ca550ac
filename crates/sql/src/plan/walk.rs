//! Looking into and rewriting bound expressions and plans.
//!
//! A reference inside a nested plan is seen from the *root* expression: depth 0 is the root's
//! own row, depth `n` the n-th enclosing query of the root. References that stay inside the
//! nested plan are not shown.

use std::sync::Arc;

use super::physical::{KeyPart, Limit, Node, Scan};
use super::{Expr, ExprKind, Plan};

/// A column reference: `(depth, index)`.
pub type Reference = (usize, usize);

/// The branches of ORs in each other, from left to right; a condition that is no OR is its own.
pub fn branches(expr: &Expr) -> impl Iterator<Item = &Expr> {
    let mut open = vec![expr];
    std::iter::from_fn(move || {
        loop {
            let expr = open.pop()?;
            match &expr.kind {
                ExprKind::Or(left, right) => open.extend([right.as_ref(), left.as_ref()]),
                _ => return Some(expr),
            }
        }
    })
}

/// Calls `each` on every direct child.
pub fn for_each_child(expr: &Expr, each: &mut dyn FnMut(&Expr)) {
    expr.children().into_iter().for_each(each);
}

/// As [`for_each_child`], to change them.
pub fn for_each_child_mut(expr: &mut Expr, each: &mut dyn FnMut(&mut Expr)) {
    match &mut expr.kind {
        ExprKind::Literal(_)
        | ExprKind::Param(_)
        | ExprKind::Column(_)
        | ExprKind::Outer { .. }
        | ExprKind::UserVariable(_)
        | ExprKind::SystemVariable(..)
        | ExprKind::ScalarSubquery(_)
        | ExprKind::Exists(_) => {}
        ExprKind::AssignUserVariable(_, a)
        | ExprKind::Negate(a)
        | ExprKind::BitNot(a)
        | ExprKind::Not(a)
        | ExprKind::IsNull(a)
        | ExprKind::IsBool(a, _)
        | ExprKind::Cast(a) => each(a),
        ExprKind::Compare(_, a, b, _)
        | ExprKind::Binary(_, a, b)
        | ExprKind::And(a, b)
        | ExprKind::Or(a, b)
        | ExprKind::Xor(a, b)
        | ExprKind::Like {
            value: a,
            pattern: b,
            ..
        }
        | ExprKind::Regexp {
            value: a,
            pattern: b,
            ..
        } => {
            each(a);
            each(b);
        }
        ExprKind::InList { value, list, .. } => {
            each(value);
            Arc::make_mut(list).iter_mut().for_each(each);
        }
        ExprKind::Case { whens, otherwise } => {
            for (condition, result) in whens {
                each(condition);
                each(result);
            }
            if let Some(otherwise) = otherwise {
                each(otherwise);
            }
        }
        ExprKind::Call(_, arguments) => arguments.iter_mut().for_each(each),
        ExprKind::InSubquery { values, .. } => values.iter_mut().for_each(each),
        ExprKind::Quantified { value, .. } => each(value),
    }
}

/// The plan inside a subquery expression.
pub fn plan_of(expr: &Expr) -> Option<&Plan> {
    match &expr.kind {
        ExprKind::ScalarSubquery(plan)
        | ExprKind::Exists(plan)
        | ExprKind::InSubquery { plan, .. }
        | ExprKind::Quantified { plan, .. } => Some(plan),
        _ => None,
    }
}

pub(crate) fn plan_of_mut(expr: &mut Expr) -> Option<&mut Plan> {
    match &mut expr.kind {
        ExprKind::ScalarSubquery(plan)
        | ExprKind::Exists(plan)
        | ExprKind::InSubquery { plan, .. }
        | ExprKind::Quantified { plan, .. } => Some(plan),
        _ => None,
    }
}

/// Whether any node of the expression satisfies `test`; plans are not entered.
pub fn any(expr: &Expr, test: &dyn Fn(&Expr) -> bool) -> bool {
    expr.any(&mut |inner| test(inner))
}

/// Whether a subquery is inside.
pub fn has_subquery(expr: &Expr) -> bool {
    any(expr, &|e| plan_of(e).is_some())
}

/// Whether evaluating twice may differ or do something, other expressions aside.
pub fn is_changing(expr: &Expr) -> bool {
    any(expr, &|e| match &e.kind {
        ExprKind::Call(function, arguments) => !function.is_steady(arguments.len()),
        ExprKind::AssignUserVariable(..) => true,
        _ => false,
    })
}

/// Whether running a plan twice may answer differently, its subqueries included.
pub fn node_is_changing(node: &Node) -> bool {
    let mut changing = false;
    node_exprs(node, &mut |expr| {
        let inside = |e: &Expr| plan_of(e).is_some_and(|plan| node_is_changing(&plan.root));
        changing = changing || is_changing(expr) || any(expr, &inside);
    });
    changing
}

/// As [`is_changing`], or what other expressions may change.
pub fn is_volatile(expr: &Expr) -> bool {
    is_changing(expr) || any(expr, &|e| matches!(e.kind, ExprKind::UserVariable(_)))
}

/// Shows every reference that leaves nested plans to the root's row or beyond.
pub fn references(expr: &Expr, each: &mut dyn FnMut(Reference)) {
    expr_references(expr, 0, each);
}

fn expr_references(expr: &Expr, level: usize, each: &mut dyn FnMut(Reference)) {
    match expr.kind {
        ExprKind::Column(index) if level == 0 => each((0, index)),
        ExprKind::Outer { depth, index } if depth >= level => {
            each((depth - level, index));
        }
        _ => {}
    }
    for_each_child(expr, &mut |child| {
        expr_references(child, level, each);
    });
    if let Some(plan) = plan_of(expr) {
        node_exprs(&plan.root, &mut |inner| {
            expr_references(inner, level + 1, each);
        });
    }
}

/// Replaces references (see the module) by what `map` makes of them.
pub fn remap(expr: &mut Expr, map: &mut dyn FnMut(Reference) -> Reference) {
    remap_expr(expr, 0, map);
}

/// As [`remap`] for a nested plan whose enclosing row is the root's row.
pub fn remap_plan_node(node: &mut Node, map: &mut dyn FnMut(Reference) -> Reference) {
    node_exprs_mut(node, &mut |inner| remap_expr(inner, 1, map));
}

fn remap_expr(expr: &mut Expr, level: usize, map: &mut dyn FnMut(Reference) -> Reference) {
    match expr.kind {
        ExprKind::Column(index) if level == 0 => {
            expr.kind = reference_kind(map((0, index)), 0);
        }
        ExprKind::Outer { depth, index } if depth >= level => {
            expr.kind = reference_kind(map((depth - level, index)), level);
        }
        _ => {}
    }
    for_each_child_mut(expr, &mut |child| remap_expr(child, level, map));
    if let Some(plan) = plan_of_mut(expr) {
        node_exprs_mut(&mut plan.root, &mut |inner| {
            remap_expr(inner, level + 1, map);
        });
    }
}

fn reference_kind((depth, index): Reference, level: usize) -> ExprKind {
    match depth + level {
        0 => ExprKind::Column(index),
        depth => ExprKind::Outer { depth, index },
    }
}

fn limit_exprs(limit: &Limit, each: &mut dyn FnMut(&Expr)) {
    limit.count.iter().chain(&limit.offset).for_each(each);
}

/// Direct inputs of an operator.
pub fn inputs(node: &Node) -> Vec<&Node> {
    match node {
        Node::Single
        | Node::Values(_)
        | Node::Scan(_)
        | Node::Virtual(_)
        | Node::CteScan(_)
        | Node::Lateral(_)
        | Node::JsonTable(_)
        | Node::ViewRows => Vec::new(),
        Node::From { input, .. }
        | Node::Filter { input, .. }
        | Node::Project { input, .. }
        | Node::Distinct { input, .. }
        | Node::Sort { input, .. }
        | Node::Limit { input, .. }
        | Node::Cut { input, .. } => vec![input],
        Node::Derived(derived) => vec![&derived.node],
        Node::Join(join) => vec![&join.left, &join.right],
        Node::Aggregate(aggregate) => vec![&aggregate.input],
        Node::Window(window) => vec![&window.input],
        Node::SetOperation(operation) => vec![&operation.left, &operation.right],
        Node::Recursive(recursive) => vec![&recursive.anchor, &recursive.step],
        // What is left to do with a hit is a part of the same query.
        Node::View(lookup) => vec![&lookup.base],
        Node::Before(scan) => vec![scan],
    }
}

fn inputs_mut(node: &mut Node) -> Vec<&mut Node> {
    match node {
        Node::Single
        | Node::Values(_)
        | Node::Scan(_)
        | Node::Virtual(_)
        | Node::CteScan(_)
        | Node::Lateral(_)
        | Node::JsonTable(_)
        | Node::ViewRows => Vec::new(),
        Node::From { input, .. }
        | Node::Filter { input, .. }
        | Node::Project { input, .. }
        | Node::Distinct { input, .. }
        | Node::Sort { input, .. }
        | Node::Limit { input, .. }
        | Node::Cut { input, .. } => vec![input],
        Node::Derived(derived) => vec![&mut derived.node],
        Node::Join(join) => vec![&mut join.left, &mut join.right],
        Node::Aggregate(aggregate) => vec![&mut aggregate.input],
        Node::Window(window) => vec![&mut window.input],
        Node::SetOperation(operation) => vec![&mut operation.left, &mut operation.right],
        Node::Recursive(recursive) => vec![&mut recursive.anchor, &mut recursive.step],
        Node::View(lookup) => vec![&mut lookup.base],
        Node::Before(scan) => vec![scan],
    }
}

/// Every scan of a stored table, subqueries aside.
pub fn scans<'n>(node: &'n Node, each: &mut dyn FnMut(&'n Scan)) {
    if let Node::Scan(scan) = node {
        each(scan);
    }
    for input in inputs(node) {
        scans(input, each);
    }
}

/// Lets scans for which `is_before` holds see the state before a commit.
pub fn date_scans(node: &mut Node, is_before: &dyn Fn(&Scan) -> bool) {
    if let Node::Scan(scan) = node
        && is_before(scan)
    {
        let dated = std::mem::replace(node, Node::Single);
        *node = Node::Before(Box::new(dated));
        return;
    }
    for input in inputs_mut(node) {
        date_scans(input, is_before);
    }
}

/// Whether rows of the recursive CTE `id` in the making are read, or of any; subqueries included.
pub fn reads_cte(node: &Node, id: Option<usize>) -> bool {
    let mut found = match node {
        Node::CteScan(scan) => id.is_none_or(|id| id == scan.id),
        _ => false,
    };
    node_exprs(node, &mut |expr| {
        found = found || subquery_reads_cte(expr, id);
    });
    found || inputs(node).into_iter().any(|input| reads_cte(input, id))
}

fn subquery_reads_cte(expr: &Expr, id: Option<usize>) -> bool {
    any(expr, &|inner| {
        plan_of(inner).is_some_and(|plan| reads_cte(&plan.root, id))
    })
}

/// Operators above each other while a plan runs, subqueries counted on top of the query they are
/// in; at least what it truly is.
pub fn plan_depth(node: &Node) -> usize {
    let mut nested = 0;
    node_exprs(node, &mut |expr| nested = nested.max(subquery_depth(expr)));
    operator_depth(node) + nested
}

fn operator_depth(node: &Node) -> usize {
    1 + inputs(node)
        .into_iter()
        .map(operator_depth)
        .max()
        .unwrap_or(0)
}

fn subquery_depth(expr: &Expr) -> usize {
    let mut deepest = plan_of(expr).map_or(0, |plan| plan_depth(&plan.root));
    for_each_child(expr, &mut |child| {
        deepest = deepest.max(subquery_depth(child));
    });
    deepest
}

/// Whether an expression has at most `limit` nodes.
pub fn is_small(expr: &Expr, limit: usize) -> bool {
    fn count(expr: &Expr, left: &mut usize) {
        *left = left.saturating_sub(1);
        if *left > 0 {
            for_each_child(expr, &mut |child| count(child, left));
        }
    }
    let mut left = limit + 1;
    count(expr, &mut left);
    left > 0
}

/// Every expression of a plan, nested subquery plans excluded.
pub fn node_exprs(node: &Node, each: &mut dyn FnMut(&Expr)) {
    match node {
        Node::Values(rows) => rows.iter().flatten().for_each(&mut *each),
        Node::Scan(scan) => {
            let ways = std::iter::once(&scan.access).chain(&scan.alternatives);
            for part in ways.flat_map(|way| &way.parts) {
                match part {
                    KeyPart::Points { values, .. } => values.iter().for_each(&mut *each),
                    KeyPart::Span { low, high } => low.iter().chain(high).for_each(&mut *each),
                }
            }
            scan.predicates.iter().for_each(&mut *each);
        }
        Node::Virtual(source) => source.predicates.iter().for_each(&mut *each),
        Node::Derived(source) => source.predicates.iter().for_each(&mut *each),
        Node::CteScan(source) => source.predicates.iter().for_each(&mut *each),
        Node::JsonTable(table) => each(&table.document),
        Node::Lateral(source) => {
            each(&source.query);
            source.predicates.iter().for_each(&mut *each);
        }
        Node::Filter { predicates, .. } => predicates.iter().for_each(&mut *each),
        Node::Join(join) => {
            if let Some(hash) = &join.hash {
                for (left, right, _) in &hash.pairs {
                    each(left);
                    each(right);
                }
                hash.residual.iter().for_each(&mut *each);
            }
        }
        Node::Aggregate(aggregate) => {
            aggregate.keys.iter().for_each(&mut *each);
            for call in &aggregate.calls {
                call.for_each_expr(each);
            }
        }
        Node::Window(window) => {
            for call in &window.calls {
                call.for_each_expr(each);
            }
        }
        Node::Project { expressions, .. } => expressions.iter().for_each(&mut *each),
        Node::Sort {
            limit: Some(limit), ..
        }
        | Node::Limit { limit, .. } => limit_exprs(limit, each),
        _ => {}
    }
    for input in inputs(node) {
        node_exprs(input, each);
    }
}

/// As [`node_exprs`], to change them.
pub fn node_exprs_mut(node: &mut Node, each: &mut dyn FnMut(&mut Expr)) {
    match node {
        Node::Values(rows) => rows.iter_mut().flatten().for_each(&mut *each),
        Node::Scan(scan) => {
            let ways = std::iter::once(&mut scan.access).chain(&mut scan.alternatives);
            for part in ways.flat_map(|way| &mut way.parts) {
                match part {
                    KeyPart::Points { values, .. } => values.iter_mut().for_each(&mut *each),
                    KeyPart::Span { low, high } => {
                        low.iter_mut().chain(high).for_each(&mut *each);
                    }
                }
            }
            scan.predicates.iter_mut().for_each(&mut *each);
        }
        Node::Virtual(source) => source.predicates.iter_mut().for_each(&mut *each),
        Node::Derived(source) => source.predicates.iter_mut().for_each(&mut *each),
        Node::CteScan(source) => source.predicates.iter_mut().for_each(&mut *each),
        Node::JsonTable(table) => each(&mut table.document),
        Node::Lateral(source) => {
            each(&mut source.query);
            source.predicates.iter_mut().for_each(&mut *each);
        }
        Node::Filter { predicates, .. } => predicates.iter_mut().for_each(&mut *each),
        Node::Join(join) => {
            if let Some(hash) = &mut join.hash {
                for (left, right, _) in &mut hash.pairs {
                    each(left);
                    each(right);
                }
                hash.residual.iter_mut().for_each(&mut *each);
            }
        }
        Node::Aggregate(aggregate) => {
            aggregate.keys.iter_mut().for_each(&mut *each);
            for call in &mut aggregate.calls {
                call.for_each_expr_mut(each);
            }
        }
        Node::Window(window) => {
            for call in &mut window.calls {
                call.for_each_expr_mut(each);
            }
        }
        Node::Project { expressions, .. } => expressions.iter_mut().for_each(&mut *each),
        Node::Sort {
            limit: Some(limit), ..
        }
        | Node::Limit { limit, .. } => {
            limit
                .count
                .iter_mut()
                .chain(&mut limit.offset)
                .for_each(&mut *each);
        }
        _ => {}
    }
    for input in inputs_mut(node) {
        node_exprs_mut(input, each);
    }
}

/// Whether two expressions are the same computation. Subqueries never are.
#[allow(clippy::many_single_char_names)]
pub fn same(a: &Expr, b: &Expr) -> bool {
    use ExprKind as K;
    let shallow = match (&a.kind, &b.kind) {
        (K::Literal(x), K::Literal(y)) => x == y,
        (K::Param(x), K::Param(y)) | (K::Column(x), K::Column(y)) => x == y,
        (K::Outer { depth, index }, K::Outer { depth: d, index: i }) => depth == d && index == i,
        (K::UserVariable(x), K::UserVariable(y)) => x == y,
        (K::SystemVariable(x, g), K::SystemVariable(y, h)) => x == y && g == h,
        (K::Compare(x, _, _, c), K::Compare(y, _, _, d)) => x == y && c == d,
        (K::Binary(x, ..), K::Binary(y, ..)) => x == y,
        (K::Negate(_), K::Negate(_))
        | (K::BitNot(_), K::BitNot(_))
        | (K::And(..), K::And(..))
        | (K::Or(..), K::Or(..))
        | (K::Xor(..), K::Xor(..))
        | (K::Not(_), K::Not(_))
        | (K::IsNull(_), K::IsNull(_))
        | (K::InList { .. }, K::InList { .. })
        | (K::Case { .. }, K::Case { .. }) => true,
        (K::Regexp { collation: x, .. }, K::Regexp { collation: y, .. }) => x == y,
        (K::IsBool(_, x), K::IsBool(_, y)) => x == y,
        (
            K::Like {
                escape, collation, ..
            },
            K::Like {
                escape: e,
                collation: c,
                ..
            },
        ) => escape == e && collation == c,
        (K::Cast(_), K::Cast(_)) => a.ty == b.ty,
        (K::Call(f, x), K::Call(g, _)) => f.name == g.name && f.is_steady(x.len()) && a.ty == b.ty,
        _ => false,
    };
    if !shallow {
        return false;
    }
    same_children(a, b)
}

fn same_children(a: &Expr, b: &Expr) -> bool {
    let mut left = Vec::new();
    for_each_child(a, &mut |child| left.push(child.clone()));
    let mut index = 0;
    let mut equal = true;
    for_each_child(b, &mut |child| {
        equal = equal && left.get(index).is_some_and(|other| same(other, child));
        index += 1;
    });
    equal && index == left.len()
}
