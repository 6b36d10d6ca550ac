//! Join order and join methods.
//!
//! Greedy: the member expected to give the fewest rows comes next, in FROM order on ties. Outer
//! and semi-joined members follow once everything their conditions name has been placed. A
//! member that can be looked up by the rows so far is opened over each of them, any other is
//! hashed once.

use std::ops::Range;

use super::access::{self, Choice, Needs};
use super::alternatives;
use crate::plan::logical::{Group, Leaf, Member, Source, Tree};
use crate::plan::physical::{
    CteScan, Derived, HashKeys, Join, JoinKind, Lateral, Node, Scan, Virtual,
};
use crate::plan::{CompareOp, Expr, ExprKind, walk};
use crate::types::DataType;

/// The row order that would save a sort.
#[derive(Debug, Default)]
pub(crate) struct Wish {
    /// Slots and whether they descend.
    pub order: Vec<(usize, bool)>,
    /// A LIMIT follows: stopping early pays.
    pub limited: bool,
}

/// An operator with what is known of it.
pub(crate) struct Planned {
    pub node: Node,
    /// Rows expected.
    pub rows: f64,
    /// Rows come in the wished order.
    pub ordered: bool,
    /// Some look-up uses slots from outside.
    pub keyed: bool,
}

/// A condition with the slots it reads.
#[derive(Clone)]
struct Condition {
    expr: Expr,
    slots: Vec<usize>,
    /// Asked anew of every joined row, and so last of all.
    changes: bool,
}

impl Condition {
    fn new(expr: Expr) -> Self {
        let mut slots = Vec::new();
        walk::references(&expr, &mut |(depth, index)| {
            if depth == 0 {
                slots.push(index);
            }
        });
        Self {
            changes: walk::is_changing(&expr),
            expr,
            slots,
        }
    }

    fn within(&self, sets: &[&[Range<usize>]]) -> bool {
        self.slots
            .iter()
            .all(|slot| sets.iter().any(|ranges| covers(ranges, *slot)))
    }

    fn touches(&self, range: &Range<usize>) -> bool {
        self.slots.iter().any(|slot| range.contains(slot))
    }
}

fn covers(ranges: &[Range<usize>], slot: usize) -> bool {
    ranges.iter().any(|range| range.contains(&slot))
}

/// Rows that a hashed side is known to have, at most, for the join to keep the order of the other.
const HASHED_IN_ORDER_MAX: f64 = 100_000.0;

/// Plans the FROM clause of one SELECT.
pub(crate) struct Planner<'a> {
    used: &'a [bool],
}

impl<'a> Planner<'a> {
    pub fn new(used: &'a [bool]) -> Self {
        Self { used }
    }

    /// Orders and joins the members of `group`.
    pub fn plan(&self, group: Group, wish: &Wish) -> Planned {
        self.plan_group(group, &[], Vec::new(), wish)
    }

    /// As [`Planner::plan`], over rows that have the slots `outer`.
    pub fn plan_over(&self, group: Group, outer: &[Range<usize>]) -> Planned {
        let mut build = Build {
            planner: self,
            outer,
            bound: outer.to_vec(),
            conditions: group.conjuncts.into_iter().map(Condition::new).collect(),
            current: Some(unkeyed(Node::Single, 1.0)),
            straight: true,
            alone: false,
        };
        for member in group.members {
            build.place(member, &Wish::default());
        }
        build.complete()
    }

    fn plan_tree(&self, tree: Tree, outer: &[Range<usize>], extra: Vec<Expr>) -> Planned {
        let wish = Wish::default();
        match tree {
            Tree::Group(group) => self.plan_group(group, outer, extra, &wish),
            Tree::Leaf(leaf) => {
                let conditions: Vec<Condition> = extra.into_iter().map(Condition::new).collect();
                self.plan_leaf(leaf, outer, conditions, &wish)
            }
        }
    }

    fn plan_group(
        &self,
        group: Group,
        outer: &[Range<usize>],
        extra: Vec<Expr>,
        wish: &Wish,
    ) -> Planned {
        let implied = alternatives::implied(&group);
        let conjuncts = group.conjuncts.into_iter().chain(extra).chain(implied);
        let mut build = Build {
            planner: self,
            outer,
            bound: outer.to_vec(),
            conditions: conjuncts.map(Condition::new).collect(),
            current: None,
            straight: group.straight,
            alone: group.members.len() == 1,
        };
        let mut pending: Vec<Member> = group.members;
        while !pending.is_empty() {
            let next = build.choose(&pending, wish);
            let member = pending.remove(next);
            build.place(member, wish);
        }
        build.complete()
    }

    fn wanted(&self, slots: &Range<usize>) -> Vec<bool> {
        slots
            .clone()
            .map(|slot| self.used.get(slot).copied().unwrap_or(true))
            .collect()
    }

    fn choose_access(
        &self,
        leaf: &Leaf,
        bound: &[Range<usize>],
        conditions: &[Condition],
        wish: &Wish,
    ) -> Option<Choice> {
        let Source::Stored(table) = &leaf.source else {
            return None;
        };
        let usable: Vec<&Expr> = conditions
            .iter()
            .filter(|c| c.within(&[bound, std::slice::from_ref(&leaf.slots)]))
            .map(|c| &c.expr)
            .collect();
        let needs = Needs {
            columns: self.wanted(&leaf.slots),
            row_key: leaf.key_slot.is_some(),
        };
        Some(access::choose(leaf, table, &usable, bound, wish, &needs))
    }

    /// Rows a leaf is expected to give over `bound` rows.
    fn estimate(
        &self,
        leaf: &Leaf,
        bound: &[Range<usize>],
        conditions: &[Condition],
        wish: &Wish,
    ) -> f64 {
        match &leaf.source {
            Source::Stored(_) => self
                .choose_access(leaf, bound, conditions, wish)
                .map_or(access::TABLE_ROWS, |choice| choice.rows),
            Source::Virtual(_) => 200.0,
            Source::Derived(_, rows) | Source::Lateral(_, rows) => *rows,
            Source::Cte(_) => 20.0,
        }
    }

    fn plan_leaf(
        &self,
        leaf: Leaf,
        bound: &[Range<usize>],
        conditions: Vec<Condition>,
        wish: &Wish,
    ) -> Planned {
        let choice = self.choose_access(&leaf, bound, &conditions, wish);
        let predicates: Vec<Expr> = conditions.into_iter().map(|c| c.expr).collect();
        let rows = choice.as_ref().map_or(200.0, |c| c.rows);
        let (alias, slots) = (leaf.alias, leaf.slots);
        match (leaf.source, choice) {
            (Source::Stored(table), Some(choice)) => Planned {
                rows,
                ordered: choice.ordered,
                keyed: choice.keyed,
                node: Node::Scan(Box::new(Scan {
                    table,
                    alias,
                    wanted: self.wanted(&slots),
                    slots,
                    key_slot: leaf.key_slot,
                    access: choice.access,
                    predicates,
                    reads: choice.reads,
                    estimate: rows.min(choice.reads),
                    possible: choice.possible,
                    blinded: choice.blinded,
                    alternatives: choice.alternatives,
                })),
            },
            (Source::Stored(table) | Source::Virtual(table), _) => unkeyed(
                Node::Virtual(Box::new(Virtual {
                    table,
                    alias,
                    slots,
                    predicates,
                })),
                rows,
            ),
            (Source::Derived(node, rows), _) => unkeyed(
                Node::Derived(Box::new(Derived {
                    node: *node,
                    alias,
                    slots,
                    predicates,
                    keep: !bound.is_empty(),
                })),
                rows,
            ),
            (Source::Lateral(query, rows), _) => Planned {
                keyed: !Condition::new(query.clone()).slots.is_empty(),
                ..unkeyed(
                    Node::Lateral(Box::new(Lateral {
                        query,
                        alias,
                        slots,
                        predicates,
                    })),
                    rows,
                )
            },
            (Source::Cte(id), _) => unkeyed(
                Node::CteScan(Box::new(CteScan {
                    id,
                    alias,
                    slots,
                    predicates,
                })),
                rows,
            ),
        }
    }
}

fn unkeyed(node: Node, rows: f64) -> Planned {
    Planned {
        node,
        rows,
        ordered: false,
        keyed: false,
    }
}

/// A group being ordered.
struct Build<'p, 'a> {
    planner: &'p Planner<'a>,
    /// Slots of the rows this group is opened over.
    outer: &'p [Range<usize>],
    /// Those and the slots placed so far.
    bound: Vec<Range<usize>>,
    /// Conditions not applied yet.
    conditions: Vec<Condition>,
    current: Option<Planned>,
    straight: bool,
    /// The group has one member.
    alone: bool,
}

impl Build<'_, '_> {
    /// Position of the member to place next.
    fn choose(&self, pending: &[Member], wish: &Wish) -> usize {
        let mut best: Option<(f64, usize)> = None;
        let mut optional: Option<usize> = None;
        for (at, member) in pending.iter().enumerate() {
            if member.kind != JoinKind::Inner {
                if self.current.is_some() && self.ready(member) {
                    if member.kind != JoinKind::Left {
                        // A semi-join only removes rows: as early as possible.
                        return at;
                    }
                    optional.get_or_insert(at);
                }
                continue;
            }
            if self.straight {
                return at;
            }
            if self.waits(member) {
                continue;
            }
            let rows = self.expected(member, wish);
            if best.is_none_or(|(least, _)| rows < least) {
                best = Some((rows, at));
            }
        }
        match (best, optional) {
            // Rather widen the rows than multiply them by an unconnected table.
            (Some((rows, _)), Some(optional)) if rows >= access::TABLE_ROWS => optional,
            (Some((_, at)), _) => at,
            (None, optional) => optional.unwrap_or(0),
        }
    }

    /// Whether a LATERAL query in the member reads tables that are not placed.
    fn waits(&self, member: &Member) -> bool {
        let own = std::slice::from_ref(&member.slots);
        let mut waits = false;
        member.tree.for_each_leaf(&mut |leaf| {
            if let Source::Lateral(query, _) = &leaf.source {
                waits |= !Condition::new(query.clone()).within(&[&self.bound, own]);
            }
        });
        waits
    }

    /// Everything the member's conditions name is placed.
    fn ready(&self, member: &Member) -> bool {
        let own = std::slice::from_ref(&member.slots);
        let mut ready = true;
        let mut check = |expr: &Expr| {
            ready &= Condition::new(expr.clone()).within(&[&self.bound, own]);
        };
        member.on.iter().for_each(&mut check);
        member.tree.for_each_expr(&mut check);
        ready
    }

    fn expected(&self, member: &Member, wish: &Wish) -> f64 {
        let wish = if self.current.is_none() {
            wish
        } else {
            &Wish::default()
        };
        match &member.tree {
            Tree::Leaf(leaf) => {
                let planner = self.planner;
                planner.estimate(leaf, &self.bound, &self.conditions, wish)
            }
            Tree::Group(_) => access::TABLE_ROWS,
        }
    }

    /// Takes the conditions that can be checked once `slots` are filled.
    fn take_conditions(&mut self, slots: &Range<usize>) -> Vec<Condition> {
        let own = std::slice::from_ref(slots);
        let bound = &self.bound;
        let (taken, left) = std::mem::take(&mut self.conditions)
            .into_iter()
            .partition(|c| (self.alone || !c.changes) && c.within(&[bound, own]));
        self.conditions = left;
        taken
    }

    fn place(&mut self, member: Member, wish: &Wish) {
        let slots = member.slots.clone();
        let planned = match self.current.take() {
            None => self.first(member, wish),
            Some(current) => self.join(current, member),
        };
        self.bound.push(slots.clone());
        let late = self.take_conditions(&slots);
        self.current = Some(filtered(planned, late));
    }

    fn first(&mut self, member: Member, wish: &Wish) -> Planned {
        let conditions = self.take_conditions(&member.slots);
        match member.tree {
            Tree::Leaf(leaf) => self.planner.plan_leaf(leaf, self.outer, conditions, wish),
            tree @ Tree::Group(_) => {
                let extra = conditions.into_iter().map(|c| c.expr).collect();
                self.planner.plan_tree(tree, self.outer, extra)
            }
        }
    }

    fn join(&mut self, left: Planned, member: Member) -> Planned {
        let conditions: Vec<Condition> = if member.kind == JoinKind::Inner {
            self.take_conditions(&member.slots)
        } else {
            member.on.into_iter().map(Condition::new).collect()
        };
        let exprs = conditions.iter().map(|c| c.expr.clone()).collect();
        let looked_up = self
            .planner
            .plan_tree(member.tree.clone(), &self.bound, exprs);
        let rows = join_rows(member.kind, left.rows, looked_up.rows);
        let keyed_outside = left.keyed;
        if looked_up.keyed || left.rows <= 1.0 {
            return Planned {
                rows,
                ordered: left.ordered,
                keyed: keyed_outside || looked_up.keyed && !self.outer.is_empty(),
                node: Node::Join(Box::new(Join {
                    kind: member.kind,
                    keeps_order: left.ordered,
                    left: left.node,
                    right: looked_up.node,
                    right_slots: member.slots,
                    hash: None,
                })),
            };
        }
        let (own, cross): (Vec<_>, Vec<_>) = conditions.into_iter().partition(|c| {
            c.touches(&member.slots) && c.within(&[std::slice::from_ref(&member.slots)])
        });
        let own = own.into_iter().map(|c| c.expr).collect();
        let mut right = self.planner.plan_tree(member.tree, &[], own);
        drop_keep(&mut right.node);
        // A large side may have to be joined in parts, out of order.
        let keeps_order = left.ordered && right.rows <= HASHED_IN_ORDER_MAX;
        Planned {
            rows,
            ordered: keeps_order,
            keyed: keyed_outside,
            node: Node::Join(Box::new(Join {
                kind: member.kind,
                keeps_order,
                left: left.node,
                right: right.node,
                hash: Some(hash_keys(cross, &member.slots)),
                right_slots: member.slots,
            })),
        }
    }

    fn complete(self) -> Planned {
        let current = self.current.unwrap_or_else(|| unkeyed(Node::Single, 1.0));
        filtered(current, self.conditions)
    }
}

/// A hashed side is read once.
fn drop_keep(node: &mut Node) {
    if let Node::Derived(derived) = node {
        derived.keep = false;
    }
}

fn join_rows(kind: JoinKind, left: f64, right: f64) -> f64 {
    match kind {
        JoinKind::Inner => left * right,
        JoinKind::Left => left * right.max(1.0),
        JoinKind::Semi | JoinKind::Anti => left * 0.5,
    }
}

fn filtered(planned: Planned, conditions: Vec<Condition>) -> Planned {
    if conditions.is_empty() {
        return planned;
    }
    Planned {
        node: Node::Filter {
            input: Box::new(planned.node),
            predicates: conditions.into_iter().map(|c| c.expr).collect(),
        },
        ..planned
    }
}

fn hash_keys(conditions: Vec<Condition>, right: &Range<usize>) -> HashKeys {
    let mut keys = HashKeys {
        pairs: Vec::new(),
        residual: Vec::new(),
    };
    for condition in conditions {
        match hash_pair(&condition.expr, right) {
            Some(pair) => keys.pairs.push(pair),
            None => keys.residual.push(condition.expr),
        }
    }
    keys
}

fn hash_pair(expr: &Expr, right: &Range<usize>) -> Option<(Expr, Expr, crate::types::Collation)> {
    let ExprKind::Compare(CompareOp::Eq, a, b, collation) = &expr.kind else {
        return None;
    };
    if family(&a.ty)? != family(&b.ty)? || walk::is_volatile(expr) {
        return None;
    }
    let side = |expr: &Expr| {
        let condition = Condition::new(expr.clone());
        let inside = condition.slots.iter().filter(|s| right.contains(s)).count();
        (inside, condition.slots.len() - inside)
    };
    match (side(a), side(b)) {
        ((0, 1..), (1.., 0)) => Some((a.as_ref().clone(), b.as_ref().clone(), *collation)),
        ((1.., 0), (0, 1..)) => Some((b.as_ref().clone(), a.as_ref().clone(), *collation)),
        _ => None,
    }
}

/// Types whose equal values have equal group keys.
pub(crate) fn family(ty: &DataType) -> Option<u8> {
    match ty {
        DataType::Int { .. } | DataType::Decimal { .. } | DataType::Year | DataType::Bit { .. } => {
            Some(1)
        }
        DataType::Double { .. } | DataType::Float { .. } => Some(2),
        DataType::Date | DataType::DateTime { .. } | DataType::Timestamp { .. } => Some(3),
        DataType::Time { .. } => Some(4),
        ty if ty.is_text() => Some(5),
        ty if ty.is_bytes() => Some(6),
        _ => None,
    }
}
