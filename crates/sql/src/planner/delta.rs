//! Plans of the deltas of a join: what the changed rows of one table are joined with.
//!
//! A commit takes a join from one state to the next table by table, in the order of FROM. The step
//! of one table is the same query with the changed rows in that table's place, tables before it as
//! they are after the commit and tables behind it as they were before. A table at the side of an
//! outer join that may be missing has no such query: there the rows of the others that its changed
//! rows match are joined anew, before the step and after it.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use super::join::{Planner, Wish};
use crate::plan::logical::{Group, Joined, Leaf, Member, Source, Tree};
use crate::plan::physical::{CHANGED, JoinKind, Node, Scan};
use crate::plan::{CompareOp, Expr, ExprKind, walk};

/// How the step of one table is computed.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    /// The slots of the table that changed.
    pub slots: Range<usize>,
    /// Columns that are needed of its changed rows.
    pub wanted: Vec<bool>,
    /// The changed rows joined with the others.
    pub rows: Node,
    /// For a table that may be missing: over a row of the others, its own rows before the step and
    /// after it.
    pub optional: Option<(Node, Node)>,
}

/// Why deltas cannot be computed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Obstacle(pub String);

/// The leaves of a group, in the order of FROM.
pub(crate) fn leaves(group: &Group) -> Result<Vec<(&Leaf, &Member)>, Obstacle> {
    let mut all = Vec::new();
    for member in &group.members {
        if !matches!(member.kind, JoinKind::Inner | JoinKind::Left) {
            return Err(Obstacle("a subquery".into()));
        }
        let Tree::Leaf(leaf) = &member.tree else {
            return Err(Obstacle("a join in brackets".into()));
        };
        let other = match &leaf.source {
            Source::Stored(_) => None,
            Source::Virtual(_) => Some("a computed table"),
            Source::Derived(..) | Source::Lateral(..) => Some("a subquery in FROM"),
            Source::Cte(_) => Some("a common table expression"),
        };
        if let Some(other) = other {
            return Err(Obstacle(other.into()));
        }
        all.push((leaf, member));
    }
    all.sort_by_key(|(leaf, _)| leaf.slots.start);
    Ok(all)
}

/// The plan of all joined rows of `joined`, by what is known of its tables now: `current` joins the same
/// tables, as the catalog has them.
pub(crate) fn rows_of(joined: &Joined, current: &Joined) -> Node {
    let mut group = joined.group.clone();
    for member in &mut group.members {
        let Tree::Leaf(leaf) = &mut member.tree else {
            continue;
        };
        let now = current
            .group
            .members
            .iter()
            .find_map(|other| match &other.tree {
                Tree::Leaf(other) if other.slots == leaf.slots => Some(&other.source),
                _ => None,
            });
        if let Some(now) = now {
            leaf.source = now.clone();
        }
    }
    let planned = Planner::new(&joined.used).plan(group, &Wish::default());
    planned.node
}

/// The steps of all tables, in the order of FROM. `is_key`: conditions that only choose the key.
pub(crate) fn steps(
    joined: &Joined,
    width: usize,
    is_key: &dyn Fn(&Expr) -> bool,
) -> Result<Vec<Step>, Obstacle> {
    let mut group = joined.group.clone();
    group.conjuncts.retain(|condition| !is_key(condition));
    for member in &mut group.members {
        forget_statistics(member);
    }
    let mut used = joined.used.clone();
    let all: Vec<(Leaf, JoinKind)> = leaves(&group)?
        .into_iter()
        .map(|(leaf, member)| (leaf.clone(), member.kind))
        .collect();
    if all.iter().any(|(_, kind)| *kind == JoinKind::Left) {
        // Rows of the others are told apart by their keys.
        for (leaf, _) in &all {
            use_key(leaf, &mut used)?;
        }
    }
    let planned = Steps {
        group,
        used,
        width,
        order: all.iter().map(|(leaf, _)| leaf.slots.start).collect(),
    };
    all.iter()
        .map(|(leaf, kind)| planned.step(leaf, *kind))
        .collect()
}

/// Plans are made for any table: what is known of one now will not be true for ever.
fn forget_statistics(member: &mut Member) {
    if let Tree::Leaf(Leaf {
        source: Source::Stored(table),
        ..
    }) = &mut member.tree
    {
        Arc::make_mut(table).analyzed = None;
    }
}

fn use_key(leaf: &Leaf, used: &mut [bool]) -> Result<(), Obstacle> {
    let Source::Stored(table) = &leaf.source else {
        return Ok(());
    };
    if table.primary_key.is_empty() {
        return Err(Obstacle(format!(
            "an outer join with {}, which has no primary key,",
            leaf.alias
        )));
    }
    for column in &table.primary_key {
        if let Some(slot) = used.get_mut(leaf.slots.start + column) {
            *slot = true;
        }
    }
    Ok(())
}

struct Steps {
    group: Group,
    used: Vec<bool>,
    width: usize,
    /// First slots of the tables, in the order of FROM.
    order: Vec<usize>,
}

impl Steps {
    fn step(&self, leaf: &Leaf, kind: JoinKind) -> Result<Step, Obstacle> {
        let own = &leaf.slots;
        let is_own = |expr: &Expr| touches(expr, own);
        let mut group = self.group.clone();
        for member in &mut group.members {
            if member.slots.start != own.start {
                if kind == JoinKind::Left && member.on.iter().any(is_own) {
                    return Err(Obstacle(format!(
                        "an outer join that hangs on {}",
                        leaf.alias
                    )));
                }
                continue;
            }
            if let Tree::Leaf(leaf) = &mut member.tree {
                leaf.source = Source::Cte(CHANGED);
            }
            if kind == JoinKind::Left {
                // What stands in WHERE is said of rows without it too.
                group.conjuncts.retain(|condition| !is_own(condition));
                group.conjuncts.append(&mut member.on);
                member.kind = JoinKind::Inner;
            }
        }
        let rows = self.plan(group, own)?;
        let optional = match kind {
            JoinKind::Left => Some((self.optional(own, true)?, self.optional(own, false)?)),
            _ => None,
        };
        Ok(Step {
            slots: own.clone(),
            wanted: self.used.get(own.clone()).unwrap_or_default().to_vec(),
            rows,
            optional,
        })
    }

    /// Joins with the changed rows first.
    fn plan(&self, mut group: Group, changed: &Range<usize>) -> Result<Node, Obstacle> {
        let conditions = conditions(&group);
        group.members = connected(&group, changed);
        group.straight = true;
        let node = Planner::new(&self.used).plan(group, &Wish::default()).node;
        let mut node = Node::From {
            width: self.width,
            input: Box::new(node),
            joined: None,
        };
        self.date_scans(&mut node, changed.start, true);
        refuse_full_scans(&node, &conditions)?;
        Ok(node)
    }

    /// The table at `own` and the conditions on all tables, over a row of the others.
    fn optional(&self, own: &Range<usize>, before: bool) -> Result<Node, Obstacle> {
        let others: Vec<Range<usize>> =
            self.group.members.iter().map(|m| m.slots.clone()).collect();
        let others: Vec<Range<usize>> = others.into_iter().filter(|slots| slots != own).collect();
        let mut group = self.group.clone();
        group.members.retain(|member| member.slots == *own);
        let mut node = Planner::new(&self.used).plan_over(group, &others).node;
        self.date_scans(&mut node, own.start, before);
        refuse_full_scans(&node, &conditions(&self.group))?;
        Ok(node)
    }

    /// Tables behind the changed one are read as before the commit; so is the changed one itself
    /// when `before`.
    fn date_scans(&self, node: &mut Node, changed: usize, before: bool) {
        let place = |start: usize| self.order.iter().position(|slot| *slot == start);
        walk::date_scans(node, &|scan| {
            let start = scan.slots.start;
            if start == changed {
                before
            } else {
                place(start) > place(changed)
            }
        });
    }
}

fn touches(expr: &Expr, slots: &Range<usize>) -> bool {
    let mut found = false;
    walk::references(expr, &mut |(depth, slot)| {
        found |= depth == 0 && slots.contains(&slot);
    });
    found
}

/// The members in an order in which each is connected to those before it where that can be, the
/// changed one first; outer-joined ones last.
fn connected(group: &Group, changed: &Range<usize>) -> Vec<Member> {
    let mut open: Vec<&Member> = group.members.iter().collect();
    let mut placed: Vec<Member> = Vec::new();
    while !open.is_empty() {
        let next = open.iter().position(|member| member.slots == *changed);
        let next = next.or_else(|| {
            let is_inner = |member: &&Member| member.kind == JoinKind::Inner;
            let is_connected = |member: &&Member| {
                let mut conjuncts = group.conjuncts.iter();
                is_inner(member) && conjuncts.any(|c| connects(c, member, &placed))
            };
            let found = open.iter().position(is_connected);
            found.or_else(|| open.iter().position(is_inner))
        });
        let member = open.remove(next.unwrap_or(0));
        placed.push(member.clone());
    }
    placed
}

/// Whether an equality finds rows of `member` by those of `placed`.
fn connects(condition: &Expr, member: &Member, placed: &[Member]) -> bool {
    let ExprKind::Compare(CompareOp::Eq, left, right, _) = &condition.kind else {
        return false;
    };
    let sides = [(left, right), (right, left)];
    sides.into_iter().any(|(own, other)| {
        let mut slots = BTreeSet::new();
        walk::references(other, &mut |(_, slot)| {
            slots.insert(slot);
        });
        matches!(own.kind, ExprKind::Column(slot) if member.slots.contains(&slot))
            && !slots.is_empty()
            && slots
                .iter()
                .all(|slot| placed.iter().any(|member| member.slots.contains(slot)))
    })
}

fn conditions(group: &Group) -> Vec<Expr> {
    let on = group.members.iter().flat_map(|member| &member.on);
    group.conjuncts.iter().chain(on).cloned().collect()
}

/// A delta reads by indexes, or each commit would read a table.
fn refuse_full_scans(node: &Node, conditions: &[Expr]) -> Result<(), Obstacle> {
    let mut found = None;
    walk::scans(node, &mut |scan: &Scan| {
        if scan.access.parts.is_empty() && found.is_none() {
            found = Some(missing_index(scan, conditions));
        }
    });
    found.map_or(Ok(()), Err)
}

/// Names the columns that an index is wanted on: those that are equal to another table's.
fn missing_index(scan: &Scan, conditions: &[Expr]) -> Obstacle {
    let mut columns = BTreeSet::new();
    for condition in conditions {
        let ExprKind::Compare(CompareOp::Eq, left, right, _) = &condition.kind else {
            continue;
        };
        for (own, other) in [(left, right), (right, left)] {
            if let ExprKind::Column(slot) = own.kind
                && scan.slots.contains(&slot)
                && walk::any(other, &|inner| matches!(inner.kind, ExprKind::Column(_)))
                && !touches(other, &scan.slots)
                && let Some(column) = scan.table.columns.get(slot - scan.slots.start)
            {
                columns.insert(column.name.clone());
            }
        }
    }
    let columns: Vec<String> = columns.into_iter().collect();
    let wanted = if columns.is_empty() {
        "the columns that join it".to_string()
    } else {
        columns.join(", ")
    };
    Obstacle(format!(
        "a join without an index on {} ({wanted}), which each commit would read as a whole,",
        scan.table.name
    ))
}
