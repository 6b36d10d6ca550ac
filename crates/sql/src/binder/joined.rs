//! Joins: two parts of a FROM clause become one.

use sqlparser::ast;

use super::Binder;
use super::from::{FromState, Part, is_lateral};
use super::scope::{ColumnName, Frame, FrameColumn, same_name};
use crate::error::{SqlError, SqlResult};
use crate::plan::logical::{Member, Tree};
use crate::plan::physical::JoinKind;
use crate::plan::{CompareOp, Expr};
use crate::planner::alternatives;

impl Binder<'_> {
    pub(super) fn bind_joined(
        &mut self,
        table: &ast::TableWithJoins,
        state: &mut FromState,
        nullable: bool,
    ) -> SqlResult<Part> {
        let outer = nullable || table.joins.iter().any(|join| is_outer(&join.join_operator));
        let mut left = self.bind_factor(&table.relation, state, outer)?;
        for join in &table.joins {
            let before = state.before.len();
            if is_lateral(&join.relation) && !is_right(&join.join_operator) {
                state.before.extend_from_slice(&left.columns);
            }
            let right = self.bind_factor(&join.relation, state, outer)?;
            state.before.truncate(before);
            left = self.bind_join(left, right, &join.join_operator)?;
        }
        Ok(left)
    }

    fn bind_join(&mut self, left: Part, right: Part, op: &ast::JoinOperator) -> SqlResult<Part> {
        use ast::JoinOperator as J;
        match op {
            J::Join(constraint) | J::Inner(constraint) | J::CrossJoin(constraint) => {
                self.join_inner(left, right, constraint, false)
            }
            J::StraightJoin(constraint) => self.join_inner(left, right, constraint, true),
            J::Left(constraint) | J::LeftOuter(constraint) => {
                self.join_outer(left, right, constraint, false)
            }
            J::Right(constraint) | J::RightOuter(constraint) => {
                self.join_outer(left, right, constraint, true)
            }
            J::FullOuter(_) => Err(SqlError::not_supported("FULL OUTER JOIN")),
            _ => Err(SqlError::not_supported("this kind of join")),
        }
    }

    fn join_inner(
        &mut self,
        left: Part,
        right: Part,
        constraint: &ast::JoinConstraint,
        straight: bool,
    ) -> SqlResult<Part> {
        let (columns, conditions) =
            self.bind_constraint(left.columns, right.columns, constraint, false)?;
        let mut group = left.tree.into_group();
        group.absorb(right.tree);
        group.conjuncts.extend(conditions);
        group.straight |= straight;
        Ok(Part {
            tree: Tree::Group(group),
            columns,
        })
    }

    fn join_outer(
        &mut self,
        mut left: Part,
        mut right: Part,
        constraint: &ast::JoinConstraint,
        reversed: bool,
    ) -> SqlResult<Part> {
        if matches!(constraint, ast::JoinConstraint::None) {
            return Err(SqlError::syntax("an outer join needs ON or USING"));
        }
        let optional = if reversed { &mut left } else { &mut right };
        for column in &mut optional.columns {
            column.expr.nullable = true;
        }
        let (columns, on) =
            self.bind_constraint(left.columns, right.columns, constraint, reversed)?;
        let (kept, optional) = if reversed {
            (right.tree, left.tree)
        } else {
            (left.tree, right.tree)
        };
        let mut group = kept.into_group();
        group.members.push(Member {
            kind: JoinKind::Left,
            slots: optional.slots(),
            tree: optional,
            on,
        });
        Ok(Part {
            tree: Tree::Group(group),
            columns,
        })
    }

    /// The joined columns in `*` order and the join condition.
    fn bind_constraint(
        &mut self,
        left: Vec<FrameColumn>,
        right: Vec<FrameColumn>,
        constraint: &ast::JoinConstraint,
        reversed: bool,
    ) -> SqlResult<(Vec<FrameColumn>, Vec<Expr>)> {
        let names: Vec<String> = match constraint {
            ast::JoinConstraint::None => Vec::new(),
            ast::JoinConstraint::On(condition) => {
                let mut columns = left;
                columns.extend(right);
                return self.bind_on(columns, condition);
            }
            ast::JoinConstraint::Using(names) => names.iter().map(last_name).collect(),
            ast::JoinConstraint::Natural => left
                .iter()
                .filter(|l| !l.hidden)
                .filter(|l| {
                    right
                        .iter()
                        .any(|r| !r.hidden && same_name(&l.name, &r.name))
                })
                .map(|l| l.name.clone())
                .collect(),
        };
        coalesce(left, right, &names, reversed)
    }

    fn bind_on(
        &mut self,
        columns: Vec<FrameColumn>,
        condition: &ast::Expr,
    ) -> SqlResult<(Vec<FrameColumn>, Vec<Expr>)> {
        self.frames.push(Frame::new(columns, "on clause"));
        let bound = self.bind_scalar(condition);
        let frame = self.frames.pop();
        let mut conjuncts = Vec::new();
        alternatives::split(bound?, &mut conjuncts);
        Ok((frame.map(|f| f.columns).unwrap_or_default(), conjuncts))
    }
}

/// Joins two sides USING `names`: each pair is shown once, first, and compared. Their order is
/// that of the side they are shown from, however USING has them.
fn coalesce(
    mut left: Vec<FrameColumn>,
    mut right: Vec<FrameColumn>,
    names: &[String],
    reversed: bool,
) -> SqlResult<(Vec<FrameColumn>, Vec<Expr>)> {
    let shown_side = if reversed { &right } else { &left };
    let place = |name: &&String| {
        let named = |c: &FrameColumn| !c.hidden && same_name(&c.name, name);
        shown_side.iter().position(named)
    };
    let mut names: Vec<&String> = names.iter().collect();
    names.sort_by_key(place);
    let mut merged = Vec::new();
    let mut hidden = Vec::new();
    let mut conditions = Vec::new();
    for name in names {
        let l = take_column(&mut left, name)?;
        let r = take_column(&mut right, name)?;
        conditions.push(Expr::compare(
            CompareOp::Eq,
            l.expr.clone(),
            r.expr.clone(),
        )?);
        let (shown, mut other) = if reversed { (r, l) } else { (l, r) };
        other.hidden = true;
        merged.push(shown);
        hidden.push(other);
    }
    if reversed {
        merged.extend(right);
        merged.extend(left);
    } else {
        merged.extend(left);
        merged.extend(right);
    }
    merged.extend(hidden);
    Ok((merged, conditions))
}

fn take_column(columns: &mut Vec<FrameColumn>, name: &str) -> SqlResult<FrameColumn> {
    let wanted = ColumnName {
        database: None,
        table: None,
        column: name,
    };
    let frame = Frame::new(std::mem::take(columns), "from clause");
    let found = frame.find_column(&wanted);
    *columns = frame.columns;
    match found? {
        Some(at) => Ok(columns.remove(at)),
        None => Err(SqlError::unknown_column(name, "from clause")),
    }
}

fn is_right(op: &ast::JoinOperator) -> bool {
    use ast::JoinOperator as J;
    matches!(op, J::Right(_) | J::RightOuter(_))
}

fn is_outer(op: &ast::JoinOperator) -> bool {
    use ast::JoinOperator as J;
    matches!(
        op,
        J::Left(_) | J::LeftOuter(_) | J::Right(_) | J::RightOuter(_)
    )
}

fn last_name(name: &ast::ObjectName) -> String {
    name.0
        .last()
        .and_then(|part| part.as_ident())
        .map_or_else(String::new, |ident| ident.value.clone())
}
