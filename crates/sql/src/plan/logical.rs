//! A bound FROM clause before its order and access paths are chosen.

use std::ops::Range;
use std::sync::Arc;

use super::physical::{JoinKind, Node};
use super::{Expr, walk};
use crate::catalog::Table;

/// Where a leaf's rows come from.
#[derive(Debug, Clone)]
pub enum Source {
    /// A stored table.
    Stored(Arc<Table>),
    /// A computed table.
    Virtual(Arc<Table>),
    /// A subquery, planned already, with the rows it is expected to give.
    Derived(Box<Node>, f64),
    /// Rows of the recursive CTE with this identity.
    Cte(usize),
    /// LATERAL: a subquery expression that is run for each row of the tables before it, with the rows
    /// that it is expected to give.
    Lateral(Expr, f64),
}

/// A table of the FROM clause.
#[derive(Debug, Clone)]
pub struct Leaf {
    /// Rows.
    pub source: Source,
    /// Name in the query.
    pub alias: String,
    /// Its slots in the wide row.
    pub slots: Range<usize>,
    /// Slot of the row key suffix, for UPDATE and DELETE.
    pub key_slot: Option<usize>,
    /// Index hints: names that may be used, names that may not.
    pub hints: Hints,
    /// Expressions over the table's columns that an indexed column holds, with its position.
    pub held: Vec<(usize, Expr)>,
}

/// USE, FORCE and IGNORE INDEX.
#[derive(Debug, Clone, Default)]
pub struct Hints {
    /// Only these, when given.
    pub only: Option<Vec<String>>,
    /// Never these.
    pub never: Vec<String>,
}

/// A leaf, or a parenthesised or outer-joined group.
#[derive(Debug, Clone)]
pub enum Tree {
    /// One table.
    Leaf(Leaf),
    /// Joined tables.
    Group(Group),
}

/// Members that may be placed in any order that has what their conditions need.
#[derive(Debug, Clone, Default)]
pub struct Group {
    /// Tables and outer-joined trees.
    pub members: Vec<Member>,
    /// Conditions over all of them.
    pub conjuncts: Vec<Expr>,
    /// `STRAIGHT_JOIN`: keep the order written.
    pub straight: bool,
}

/// A member of a group.
#[derive(Debug, Clone)]
pub struct Member {
    /// Inner, or how it hangs on the members before it.
    pub kind: JoinKind,
    /// What is joined.
    pub tree: Tree,
    /// Its slots.
    pub slots: Range<usize>,
    /// ON, for other kinds than inner.
    pub on: Vec<Expr>,
}

/// Tables joined for a view, before their order is chosen.
#[derive(Debug, Clone)]
pub struct Joined {
    /// Tables and conditions.
    pub group: Group,
    /// Slots that anything reads.
    pub used: Vec<bool>,
}

impl Tree {
    /// The slots of all leaves below.
    pub fn slots(&self) -> Range<usize> {
        match self {
            Tree::Leaf(leaf) => leaf.slots.start..leaf.key_slot.map_or(leaf.slots.end, |s| s + 1),
            Tree::Group(group) => group.slots(),
        }
    }

    /// As a group.
    pub fn into_group(self) -> Group {
        match self {
            Tree::Group(group) => group,
            Tree::Leaf(_) => {
                let slots = self.slots();
                Group {
                    members: vec![Member {
                        kind: JoinKind::Inner,
                        tree: self,
                        slots,
                        on: Vec::new(),
                    }],
                    conjuncts: Vec::new(),
                    straight: false,
                }
            }
        }
    }

    fn shift(&mut self, by: usize) {
        match self {
            Tree::Leaf(leaf) => {
                leaf.slots = leaf.slots.start + by..leaf.slots.end + by;
                leaf.key_slot = leaf.key_slot.map(|slot| slot + by);
            }
            Tree::Group(group) => group.shift_slots(by),
        }
    }

    fn for_each_expr_mut(&mut self, each: &mut dyn FnMut(&mut Expr)) {
        match self {
            Tree::Group(group) => group.for_each_expr_mut(each),
            Tree::Leaf(leaf) => {
                if let Source::Lateral(query, _) = &mut leaf.source {
                    each(query);
                }
            }
        }
    }

    /// Every condition, and LATERAL queries.
    pub fn for_each_expr(&self, each: &mut dyn FnMut(&Expr)) {
        match self {
            Tree::Group(group) => group.for_each_expr(each),
            Tree::Leaf(leaf) => {
                if let Source::Lateral(query, _) = &leaf.source {
                    each(query);
                }
            }
        }
    }

    /// Every table.
    pub fn for_each_leaf<'a>(&'a self, each: &mut dyn FnMut(&'a Leaf)) {
        match self {
            Tree::Leaf(leaf) => each(leaf),
            Tree::Group(group) => group.for_each_leaf(each),
        }
    }
}

impl Group {
    /// Tables below.
    pub fn leaves(&self) -> usize {
        let leaves = |member: &Member| match &member.tree {
            Tree::Leaf(_) => 1,
            Tree::Group(group) => group.leaves(),
        };
        self.members.iter().map(leaves).sum()
    }

    /// The slots of all leaves below.
    pub fn slots(&self) -> Range<usize> {
        let start = self.members.iter().map(|m| m.slots.start).min();
        let end = self.members.iter().map(|m| m.slots.end).max();
        start.unwrap_or(0)..end.unwrap_or(0)
    }

    fn shift_slots(&mut self, by: usize) {
        for member in &mut self.members {
            member.slots = member.slots.start + by..member.slots.end + by;
            member.tree.shift(by);
        }
    }

    /// Moves all leaves by `by` slots; `map` renames the references of all conditions.
    pub fn relocate(&mut self, by: usize, map: &mut dyn FnMut(walk::Reference) -> walk::Reference) {
        self.shift_slots(by);
        self.for_each_expr_mut(&mut |expr| walk::remap(expr, map));
    }

    /// Every condition, and LATERAL queries.
    pub fn for_each_expr_mut(&mut self, each: &mut dyn FnMut(&mut Expr)) {
        self.conjuncts.iter_mut().for_each(&mut *each);
        for member in &mut self.members {
            member.on.iter_mut().for_each(&mut *each);
            member.tree.for_each_expr_mut(each);
        }
    }

    /// Every condition, and LATERAL queries.
    pub fn for_each_expr(&self, each: &mut dyn FnMut(&Expr)) {
        self.conjuncts.iter().for_each(&mut *each);
        for member in &self.members {
            member.on.iter().for_each(&mut *each);
            member.tree.for_each_expr(each);
        }
    }

    /// Every table.
    pub fn for_each_leaf<'a>(&'a self, each: &mut dyn FnMut(&'a Leaf)) {
        for member in &self.members {
            member.tree.for_each_leaf(each);
        }
    }

    /// Adds the members and conditions of another inner-joined tree.
    pub fn absorb(&mut self, tree: Tree) {
        let group = tree.into_group();
        self.members.extend(group.members);
        self.conjuncts.extend(group.conjuncts);
        self.straight |= group.straight;
    }
}
