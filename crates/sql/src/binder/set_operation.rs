//! UNION, EXCEPT and INTERSECT: operands are bound, get common columns, and become one tree of
//! operators.

use sqlparser::ast;

use super::Binder;
use super::query::{collations, finish};
use super::scope::column_expr;
use super::select::output;
use crate::error::{SqlError, SqlResult};
use crate::plan::physical::{Node, SetOp, SetOperation};
use crate::plan::{BoundQuery, Expr};
use crate::types::{self, Collation, ColumnMeta, DataType};

/// Operands beyond which a UNION is no more kept as written, a tree as deep as they are many.
const CHAIN_MAX: usize = 32;

impl Binder<'_> {
    /// `left op right`. A chain of UNIONs is taken as a whole: its columns have the types that all
    /// operands have in common, and no operand is converted twice.
    pub(super) fn bind_set_operation(
        &mut self,
        left: &ast::SetExpr,
        op: ast::SetOperator,
        quantifier: ast::SetQuantifier,
        right: &ast::SetExpr,
    ) -> SqlResult<BoundQuery> {
        let mut first = left;
        let mut rest = vec![(keeps_duplicates(quantifier)?, right)];
        while let ast::SetExpr::SetOperation {
            left,
            op: ast::SetOperator::Union,
            set_quantifier,
            right,
        } = first
            && op == ast::SetOperator::Union
        {
            rest.push((keeps_duplicates(*set_quantifier)?, right));
            first = left;
        }
        let op = match op {
            ast::SetOperator::Union => SetOp::Union,
            ast::SetOperator::Except | ast::SetOperator::Minus => SetOp::Except,
            ast::SetOperator::Intersect => SetOp::Intersect,
        };
        if rest.iter().any(|(_, operand)| counts_found_rows(operand)) {
            return Err(misplaced_count());
        }
        let first = self.bind_body(first, &[], None)?;
        let mut operands = vec![finish(first)?];
        let names = self.item_names.take();
        let rest: SqlResult<Vec<(bool, BoundQuery)>> = rest
            .into_iter()
            .rev()
            .map(|(all, operand)| Ok((all, finish(self.bind_body(operand, &[], None)?)?)))
            .collect();
        self.item_names = names;
        let (all, rest): (Vec<bool>, Vec<BoundQuery>) = rest?.into_iter().unzip();
        operands.extend(rest);
        combine(operands, op, &all)
    }
}

/// Whether the first SELECT of a query is `SQL_CALC_FOUND_ROWS`, which is meant for the whole query.
pub(crate) fn counts_found_rows(body: &ast::SetExpr) -> bool {
    let mut first = body;
    loop {
        first = match first {
            ast::SetExpr::Select(select) => {
                let modifiers = select.select_modifiers.as_ref();
                return modifiers.is_some_and(|found| found.sql_calc_found_rows);
            }
            ast::SetExpr::Query(query) => &query.body,
            ast::SetExpr::SetOperation { left, .. } => left,
            _ => return false,
        };
    }
}

/// 1234.
pub(super) fn misplaced_count() -> SqlError {
    let message = "Incorrect usage/placement of 'SQL_CALC_FOUND_ROWS'";
    SqlError::new(1234, "42000", message)
}

/// Joins operands; `all` says of each but the first whether duplicates stay.
fn combine(operands: Vec<BoundQuery>, op: SetOp, all: &[bool]) -> SqlResult<BoundQuery> {
    let columns = common_columns(&operands, op)?;
    let collations = collations(&columns);
    let operands: SqlResult<Vec<BoundQuery>> = operands
        .into_iter()
        .map(|operand| cast_to(operand, &columns))
        .collect();
    let operands = operands?;
    let rows = operands.iter().map(|operand| operand.rows).sum();
    let nodes: Vec<Node> = operands.into_iter().map(|operand| operand.node).collect();
    let node = if op == SetOp::Union && nodes.len() > CHAIN_MAX {
        balanced_union(nodes, all, &collations)?
    } else {
        chain(nodes, op, all, &collations)?
    };
    Ok(BoundQuery {
        node,
        columns,
        rows,
    })
}

/// Operators from the left, as written.
fn chain(nodes: Vec<Node>, op: SetOp, all: &[bool], collations: &[Collation]) -> SqlResult<Node> {
    let mut nodes = nodes.into_iter();
    let first = nodes.next().ok_or_else(no_operands)?;
    Ok(nodes.zip(all).fold(first, |left, (right, all)| {
        set_operation(left, right, op, *all, collations)
    }))
}

/// A long UNION as a tree as shallow as can be. Up to the last UNION that is not ALL, duplicates
/// go once, above everything; what follows is UNION ALL.
fn balanced_union(nodes: Vec<Node>, all: &[bool], collations: &[Collation]) -> SqlResult<Node> {
    let distinct = all.iter().rposition(|all| !all).map_or(0, |last| last + 2);
    let mut distinct_nodes = nodes;
    let plain = distinct_nodes.split_off(distinct);
    let head = (!distinct_nodes.is_empty())
        .then(|| halves(distinct_nodes, false, collations))
        .transpose()?;
    if plain.is_empty() {
        return head.ok_or_else(no_operands);
    }
    let tail = halves(plain, true, collations)?;
    Ok(match head {
        Some(head) => set_operation(head, tail, SetOp::Union, true, collations),
        None => tail,
    })
}

/// UNION ALL of `nodes`, halved again and again; `all` is what the topmost does.
fn halves(mut nodes: Vec<Node>, all: bool, collations: &[Collation]) -> SqlResult<Node> {
    if nodes.len() < 2 {
        return nodes.pop().ok_or_else(no_operands);
    }
    let right = nodes.split_off(nodes.len() / 2);
    let left = halves(nodes, true, collations)?;
    let right = halves(right, true, collations)?;
    Ok(set_operation(left, right, SetOp::Union, all, collations))
}

fn set_operation(left: Node, right: Node, op: SetOp, all: bool, collations: &[Collation]) -> Node {
    Node::SetOperation(Box::new(SetOperation {
        left,
        right,
        op,
        all,
        collations: collations.to_vec(),
    }))
}

fn no_operands() -> SqlError {
    SqlError::internal("a set operation has no operands")
}

/// The columns of a set operation: names of the first operand, types of all.
fn common_columns(operands: &[BoundQuery], op: SetOp) -> SqlResult<Vec<ColumnMeta>> {
    let width = operands.first().map_or(0, |first| first.columns.len());
    if operands
        .iter()
        .any(|operand| operand.columns.len() != width)
    {
        return Err(different_widths());
    }
    let mut columns = Vec::with_capacity(width);
    for at in 0..width {
        let same: Vec<&ColumnMeta> = operands.iter().map(|o| &o.columns[at]).collect();
        for pair in same.windows(2) {
            refuse_mix(pair[0], pair[1], op)?;
        }
        let types: Vec<&DataType> = same.iter().map(|column| &column.ty).collect();
        let nullable = same.iter().any(|column| !column.not_null);
        let plain = column_expr(0, types::common_type(&types).computed(), nullable);
        columns.push(output(plain, same[0].name.clone(), &[]).meta);
    }
    Ok(columns)
}

/// Whether values of type `a` may stand in a column of type `b` as they are.
pub(super) fn alike(a: &DataType, b: &DataType) -> bool {
    use DataType as D;
    a == b
        || matches!(a, D::Null)
        || matches!((a, b), (D::Int { .. }, D::Int { .. }))
        || (a.is_text() && b.is_text() && !matches!(b, D::Enum { .. } | D::Set { .. }))
}

/// Converts columns whose values would be of another kind.
fn cast_to(query: BoundQuery, columns: &[ColumnMeta]) -> SqlResult<BoundQuery> {
    if query
        .columns
        .iter()
        .zip(columns)
        .all(|(a, b)| alike(&a.ty, &b.ty))
    {
        return Ok(query);
    }
    let mut expressions = Vec::with_capacity(columns.len());
    for (at, (from, to)) in query.columns.iter().zip(columns).enumerate() {
        let value = column_expr(at, from.ty.clone(), !from.not_null);
        expressions.push(if alike(&from.ty, &to.ty) {
            value
        } else {
            Expr::cast(value, to.ty.clone())?
        });
    }
    Ok(BoundQuery {
        node: Node::Project {
            input: Box::new(query.node),
            expressions,
        },
        ..query
    })
}

pub(super) fn different_widths() -> SqlError {
    SqlError::new(
        1222,
        "21000",
        "The used SELECT statements have a different number of columns",
    )
}

/// Stored columns of different collations make no column, unless one of them compares bytes.
fn refuse_mix(left: &ColumnMeta, right: &ColumnMeta, op: SetOp) -> SqlResult<()> {
    let stored = |column: &ColumnMeta| {
        let own = !column.org_name.is_empty()
            && !column.schema.eq_ignore_ascii_case("information_schema");
        own.then(|| column.ty.collation()).flatten()
    };
    let (Some(a), Some(b)) = (stored(left), stored(right)) else {
        return Ok(());
    };
    if a == b || a.is_binary() || b.is_binary() {
        return Ok(());
    }
    let operation = match op {
        SetOp::Union => "UNION",
        SetOp::Except => "EXCEPT",
        SetOp::Intersect => "INTERSECT",
    };
    Err(SqlError::new(
        1271,
        "HY000",
        format!("Illegal mix of collations for operation '{operation}'"),
    ))
}

/// Whether a set operation is one with ALL.
fn keeps_duplicates(quantifier: ast::SetQuantifier) -> SqlResult<bool> {
    match quantifier {
        ast::SetQuantifier::All => Ok(true),
        ast::SetQuantifier::None | ast::SetQuantifier::Distinct => Ok(false),
        other => Err(SqlError::not_supported(other.to_string())),
    }
}
