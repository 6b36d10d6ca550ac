//! What an OR says whichever of its branches holds.
//!
//! `(a = 1 AND t.x = u.x) OR (a = 2 AND t.x = u.x)` joins by `x` and reads two values of `a`, but says so
//! in branches, where neither a join nor an index looks for it. [`split`] takes out the conditions between
//! columns that all branches have in common, and [`implied`] adds for each joined table what the branches say
//! of it alone. What they say of one table stays in its branches: as rows of values that belong together it
//! leads to the longest key.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::plan::logical::{Group, Tree};
use crate::plan::physical::JoinKind;
use crate::plan::{Expr, ExprKind, walk};

/// Branches of an OR that are looked at: of more, comparing each with each takes longer than it saves.
const BRANCHES_MAX: usize = 64;

/// Splits a condition at its ANDs, and takes out of an OR the conditions between columns that each of its
/// branches has.
pub(crate) fn split(expr: Expr, conjuncts: &mut Vec<Expr>) {
    let mut open = vec![expr];
    while let Some(expr) = open.pop() {
        match expr.kind {
            ExprKind::And(left, right) => open.extend([*right, *left]),
            ExprKind::Or(..) => split_common(expr, conjuncts),
            _ => conjuncts.push(expr),
        }
    }
}

/// `(a AND b) OR (a AND c)` is `a AND (b OR c)`, and `a OR (a AND b)` is `a`, in three-valued logic too.
fn split_common(expr: Expr, conjuncts: &mut Vec<Expr>) {
    let branches = branches_of(&expr);
    let Some((first, others)) = branches.split_first() else {
        return conjuncts.push(expr);
    };
    let has = |branch: &[&Expr], wanted: &Expr| branch.iter().any(|own| walk::same(own, wanted));
    let is_common = |wanted: &Expr| others.iter().all(|branch| has(branch, wanted));
    let is_taken =
        |own: &&&Expr| is_between_columns(own) && !walk::is_volatile(own) && is_common(own);
    let common = first.iter().filter(is_taken);
    let common: Vec<Expr> = common.map(|own| (*own).clone()).collect();
    if others.is_empty() || common.is_empty() {
        return conjuncts.push(expr);
    }
    let rests = branches.iter().map(|branch| {
        let is_rest = |own: &&&Expr| !common.iter().any(|taken| walk::same(own, taken));
        all_of(branch.iter().filter(is_rest).map(|own| (*own).clone()))
    });
    // A branch of which nothing is left holds whenever the others might.
    let rests: Option<Vec<Expr>> = rests.collect();
    conjuncts.extend(common);
    conjuncts.extend(rests.and_then(|rests| rests.into_iter().reduce(Expr::or)));
}

/// What conditions over several tables of a group say of each of them alone, so that it is read by an index,
/// or fewer of its rows are joined.
pub(super) fn implied(group: &Group) -> Vec<Expr> {
    let inner = group.members.iter().filter(|m| m.kind == JoinKind::Inner);
    let leaves = inner.filter_map(|member| match &member.tree {
        Tree::Leaf(leaf) => Some(&leaf.slots),
        Tree::Group(_) => None,
    });
    let leaves: Vec<&Range<usize>> = leaves.collect();
    if leaves.len() < 2 {
        return Vec::new();
    }
    let mut found = Vec::new();
    for condition in &group.conjuncts {
        let is_or = matches!(condition.kind, ExprKind::Or(..));
        if !is_or || walk::is_volatile(condition) || walk::has_subquery(condition) {
            continue;
        }
        let branches = branches_of(condition);
        for slots in leaves.iter().filter(|slots| !is_about(condition, slots)) {
            let own = branches.iter().map(|branch| {
                let own = branch.iter().filter(|one| is_about(one, slots));
                all_of(own.map(|one| (*one).clone()))
            });
            let Some(mut own) = own.collect::<Option<Vec<Expr>>>() else {
                continue;
            };
            own.dedup_by(|one, other| walk::same(one, other));
            found.extend(own.into_iter().reduce(Expr::or));
        }
    }
    found
}

/// The conditions of each branch; none where there are too many.
fn branches_of(expr: &Expr) -> Vec<Vec<&Expr>> {
    let branches: Vec<&Expr> = walk::branches(expr).take(BRANCHES_MAX + 1).collect();
    if branches.len() > BRANCHES_MAX {
        return Vec::new();
    }
    branches.into_iter().map(conditions_of).collect()
}

fn conditions_of(expr: &Expr) -> Vec<&Expr> {
    let mut own = Vec::new();
    let mut open = vec![expr];
    while let Some(expr) = open.pop() {
        match &expr.kind {
            ExprKind::And(left, right) => open.extend([right.as_ref(), left.as_ref()]),
            _ => own.push(expr),
        }
    }
    own
}

/// Whether a condition reads columns of one table, and of no other of its query.
fn is_about(expr: &Expr, slots: &Range<usize>) -> bool {
    let (mut own, mut others) = (false, false);
    walk::references(expr, &mut |(depth, slot)| {
        if depth == 0 {
            own |= slots.contains(&slot);
            others |= !slots.contains(&slot);
        }
    });
    own && !others
}

fn is_between_columns(expr: &Expr) -> bool {
    let mut columns = BTreeSet::new();
    walk::references(expr, &mut |(depth, slot)| {
        if depth == 0 {
            columns.insert(slot);
        }
    });
    columns.len() > 1
}

fn all_of(conditions: impl Iterator<Item = Expr>) -> Option<Expr> {
    conditions.reduce(Expr::and)
}
