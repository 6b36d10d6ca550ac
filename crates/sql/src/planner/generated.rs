//! An expression that an indexed generated column holds is read from that column: where it
//! stands in a condition or an order, [`super::access`] then finds the index.
//!
//! Only where the table's row is a real one. On the far side of an outer join the column is NULL
//! while the expression over a row of NULLs may be anything, so conditions above the join stay as
//! they are; its own ON condition is met before.

use crate::plan::logical::{Group, Leaf, Member, Tree};
use crate::plan::physical::JoinKind;
use crate::plan::{Expr, ExprKind, walk};

/// Expressions that can be read from a slot.
type Known = Vec<(Expr, usize)>;

/// Puts columns in the place of the expressions they hold, in all conditions of `group`.
pub(crate) fn in_conditions(group: &mut Group) {
    let known = of_inner_tables(group);
    for condition in &mut group.conjuncts {
        replace(condition, &known);
    }
    for member in &mut group.members {
        match &mut member.tree {
            Tree::Leaf(leaf) if member.kind != JoinKind::Inner => {
                let own = of_table(leaf);
                for condition in &mut member.on {
                    replace(condition, &own);
                }
            }
            Tree::Leaf(_) => {}
            Tree::Group(inner) => in_conditions(inner),
        }
    }
}

/// The same for what rows of `group` are to be ordered by.
pub(crate) fn in_order(group: &Group, order: &mut [(Expr, bool)]) {
    let known = of_inner_tables(group);
    for (key, _) in order {
        replace(key, &known);
    }
}

fn of_inner_tables(group: &Group) -> Known {
    let of_member = |member: &Member| match &member.tree {
        Tree::Leaf(leaf) if member.kind == JoinKind::Inner => of_table(leaf),
        _ => Vec::new(),
    };
    group.members.iter().flat_map(of_member).collect()
}

fn of_table(leaf: &Leaf) -> Known {
    let start = leaf.slots.start;
    let in_place = |(at, expr): &(usize, Expr)| {
        let mut expr = expr.clone();
        walk::remap(&mut expr, &mut |(depth, column)| (depth, column + start));
        (expr, at + start)
    };
    leaf.held.iter().map(in_place).collect()
}

fn replace(expr: &mut Expr, known: &Known) {
    if known.is_empty() {
        return;
    }
    if let Some((_, slot)) = known.iter().find(|(held, _)| walk::same(held, expr)) {
        expr.kind = ExprKind::Column(*slot);
        return;
    }
    walk::for_each_child_mut(expr, &mut |child| replace(child, known));
}
