//! Subqueries in expressions.

use sqlparser::ast;

use super::Binder;
use super::expr::operand_columns;
use super::operator::compare_op;
use super::predicate::row_items;
use super::query::{Bound, finish};
use super::scope::column_expr;
use crate::error::{SqlError, SqlResult};
use crate::plan::physical::Node;
use crate::plan::{BoundQuery, CompareOp, Expr, ExprKind, Plan, walk};
use crate::types::{Collation, ColumnMeta, DataType};

/// A bound subquery and whether it reads rows of enclosing queries.
pub(crate) struct Nested {
    pub(super) bound: Bound,
    pub(super) correlated: bool,
}

impl Binder<'_> {
    /// Any subquery expression, as a value.
    pub(crate) fn bind_subquery_expr(&mut self, expr: &ast::Expr) -> SqlResult<Expr> {
        use ast::Expr as E;
        match expr {
            E::Subquery(query) => {
                let nested = self.bind_nested(query)?;
                Self::scalar_subquery(nested)
            }
            E::Exists { subquery, negated } => {
                let nested = self.bind_nested(subquery)?;
                let exists = Self::exists(nested)?;
                Ok(if *negated { Expr::not(exists) } else { exists })
            }
            E::InSubquery {
                expr,
                subquery,
                negated,
            } => {
                let values = self.bind_row(expr)?;
                let nested = self.bind_nested(subquery)?;
                check_in(subquery, values.len(), nested.bound.columns())?;
                self.in_subquery(values, nested, *negated)
            }
            E::AnyOp {
                left,
                compare_op,
                right,
                ..
            } => self.quantified(left, compare_op, right, false),
            E::AllOp {
                left,
                compare_op,
                right,
            } => self.quantified(left, compare_op, right, true),
            other => Err(SqlError::not_supported(other.to_string())),
        }
    }

    /// The columns of `(SELECT a, b …)` beside a row of `wanted`: each is a subquery of its own,
    /// NULL where there is no row. So keys see what they are compared with, and a subquery that
    /// does not read the rows outside is run once a column.
    ///
    /// # Errors
    /// 1241 for another number of columns, or where no subquery stands.
    pub(crate) fn row_of_subquery(
        &mut self,
        row: &ast::Expr,
        wanted: usize,
    ) -> SqlResult<Vec<Expr>> {
        let ast::Expr::Subquery(query) = strip_parentheses(row) else {
            return Err(operand_columns(wanted));
        };
        let nested = self.bind_nested(query)?;
        if nested.bound.columns() != wanted {
            return Err(operand_columns(wanted));
        }
        let plan = Self::nested_plan(nested)?;
        if walk::node_is_changing(&plan.root) {
            let what = "comparing a row with a subquery that answers anew each time";
            return Err(SqlError::not_supported(what));
        }
        let columns = plan.columns.iter().enumerate();
        Ok(columns
            .map(|(at, column)| one_column(&plan, at, column))
            .collect())
    }

    /// The values of a row constructor, or the one value.
    pub(super) fn bind_row(&mut self, value: &ast::Expr) -> SqlResult<Vec<Expr>> {
        match row_items(value) {
            Some(items) => items.iter().map(|item| self.bind_scalar(item)).collect(),
            None => Ok(vec![self.bind_scalar(value)?]),
        }
    }

    /// Binds a subquery a level further in.
    pub(crate) fn bind_nested(&mut self, query: &ast::Query) -> SqlResult<Nested> {
        let level = self.frames.len();
        let saved = self.begin_reach();
        let names = self.item_names.take();
        let bound = self.bind_query_parts(query);
        self.item_names = names;
        let reach = self.end_reach(saved);
        Ok(Nested {
            bound: bound?,
            correlated: reach.is_some_and(|index| index < level),
        })
    }

    fn nested_plan(nested: Nested) -> SqlResult<Plan> {
        let query = finish(nested.bound)?;
        Ok(plan_of_query(query, nested.correlated))
    }

    fn scalar_subquery(nested: Nested) -> SqlResult<Expr> {
        if nested.bound.columns() != 1 {
            return Err(operand_columns(1));
        }
        let plan = Self::nested_plan(nested)?;
        let ty = plan.columns[0].ty.clone();
        Ok(Expr {
            kind: ExprKind::ScalarSubquery(Box::new(plan)),
            ty,
            nullable: true,
        })
    }

    pub(super) fn exists(nested: Nested) -> SqlResult<Expr> {
        let plan = Self::nested_plan(nested)?;
        Ok(Expr {
            kind: ExprKind::Exists(Box::new(plan)),
            ty: DataType::BIGINT,
            nullable: false,
        })
    }

    pub(super) fn in_subquery(
        &mut self,
        mut values: Vec<Expr>,
        nested: Nested,
        negated: bool,
    ) -> SqlResult<Expr> {
        let plan = Self::nested_plan(nested)?;
        let mut collations = Vec::with_capacity(values.len());
        for (at, value) in values.iter_mut().enumerate() {
            let ty = plan.columns[at].ty.clone();
            self.infer(value, &ty);
            let column = column_expr(0, ty, true);
            let comparison = self.compare(CompareOp::Eq, value.clone(), column)?;
            collations.push(collation_of(&comparison));
        }
        let test = Expr {
            kind: ExprKind::InSubquery {
                values,
                plan: Box::new(plan),
                collations,
            },
            ty: DataType::BIGINT,
            nullable: true,
        };
        Ok(if negated { Expr::not(test) } else { test })
    }

    fn quantified(
        &mut self,
        left: &ast::Expr,
        op: &ast::BinaryOperator,
        right: &ast::Expr,
        all: bool,
    ) -> SqlResult<Expr> {
        let Some(op) = compare_op(op) else {
            return Err(SqlError::syntax(format!("near '{op}'")));
        };
        let right = strip_parentheses(right);
        let ast::Expr::Subquery(query) = right else {
            return Err(SqlError::syntax(format!("near '{right}'")));
        };
        // The two that are IN and NOT IN take rows.
        let is_membership = matches!((op, all), (CompareOp::Eq, false) | (CompareOp::Ne, true));
        if is_membership {
            let values = self.bind_row(left)?;
            let nested = self.bind_nested(query)?;
            check_in(query, values.len(), nested.bound.columns())?;
            return self.in_subquery(values, nested, all);
        }
        let value = self.bind_scalar(left)?;
        let nested = self.bind_nested(query)?;
        check_in(query, 1, nested.bound.columns())?;
        let plan = Self::nested_plan(nested)?;
        let column = column_expr(0, plan.columns[0].ty.clone(), true);
        let comparison = self.compare(op, value.clone(), column)?;
        Ok(Expr {
            kind: ExprKind::Quantified {
                op,
                value: Box::new(value),
                plan: Box::new(plan),
                all,
                collation: collation_of(&comparison),
            },
            ty: DataType::BIGINT,
            nullable: true,
        })
    }
}

/// Column `at` of the one row that `plan` gives.
fn one_column(plan: &Plan, at: usize, column: &ColumnMeta) -> Expr {
    let value = column_expr(at, column.ty.clone(), true);
    let one = Plan {
        columns: vec![column.clone()],
        root: Node::Project {
            input: Box::new(plan.root.clone()),
            expressions: vec![value],
        },
        ..plan.clone()
    };
    Expr {
        kind: ExprKind::ScalarSubquery(Box::new(one)),
        ty: column.ty.clone(),
        nullable: true,
    }
}

/// The plan of a query inside an expression.
pub(super) fn plan_of_query(query: BoundQuery, correlated: bool) -> Plan {
    Plan {
        columns: query.columns,
        param_types: Vec::new(),
        correlated,
        tables: Vec::new(),
        locking: crate::plan::Locking::None,
        read_mode: manxdb_txn::ReadMode::Plain,
        root: query.node,
    }
}

fn strip_parentheses(expr: &ast::Expr) -> &ast::Expr {
    match expr {
        ast::Expr::Nested(inner) => strip_parentheses(inner),
        other => other,
    }
}

/// The collation a bound comparison uses.
fn collation_of(comparison: &Expr) -> Collation {
    match &comparison.kind {
        ExprKind::Compare(_, _, _, collation) => *collation,
        _ => Collation::Binary,
    }
}

/// Whether a subquery may stand behind IN, ANY or ALL, beside `wanted` values.
pub(super) fn check_in(query: &ast::Query, wanted: usize, columns: usize) -> SqlResult<()> {
    if columns != wanted {
        return Err(operand_columns(wanted));
    }
    if query.limit_clause.is_some() {
        return Err(SqlError::not_supported("LIMIT & IN/ALL/ANY/SOME subquery"));
    }
    Ok(())
}
