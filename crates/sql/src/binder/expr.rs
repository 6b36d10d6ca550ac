//! Scalar expressions.

use sqlparser::ast;

use super::aggregate::aggregate_kind;
use super::literal::bind_literal;
use super::{Binder, types as type_names};
use crate::error::{SqlError, SqlResult};
use crate::expr::result_collation;
use crate::plan::{CompareOp, Expr, ExprKind};
use crate::types::{Collation, DataType};

/// How deep expressions may nest; the parser has its own bound.
const DEPTH_MAX: usize = 400;

impl Binder<'_> {
    /// Binds one scalar expression at the current level.
    pub(crate) fn bind_scalar(&mut self, expr: &ast::Expr) -> SqlResult<Expr> {
        crate::stack::check(crate::stack::BINDING_BYTES)?;
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            self.depth -= 1;
            return Err(SqlError::new(
                1436,
                "HY000",
                format!("Expression nests deeper than {DEPTH_MAX} levels"),
            ));
        }
        let bound = self.bind_any(expr);
        self.depth -= 1;
        bound
    }

    fn bind_any(&mut self, expr: &ast::Expr) -> SqlResult<Expr> {
        use ast::Expr as E;
        match expr {
            E::Identifier(name) => self.bind_name(std::slice::from_ref(name)),
            E::CompoundIdentifier(names) => self.bind_name(names),
            E::Value(value) => self.bind_value(&value.value),
            E::Nested(inner) => self.bind_scalar(inner),
            E::BinaryOp { left, op, right } => self.bind_binary(left, op, right),
            E::UnaryOp { op, expr } => self.bind_unary(*op, expr),
            E::Function(function) => self.bind_function(function),
            E::Case {
                operand,
                conditions,
                else_result,
                ..
            } => self.bind_case(operand.as_deref(), conditions, else_result.as_deref()),
            E::Subquery(_)
            | E::Exists { .. }
            | E::InSubquery { .. }
            | E::AnyOp { .. }
            | E::AllOp { .. } => self.bind_subquery_expr(expr),
            E::InList { .. } | E::Between { .. } | E::Like { .. } | E::RLike { .. } => {
                self.bind_predicate(expr)
            }
            E::IsNull(inner) | E::IsUnknown(inner) => self.is_null(inner, false),
            E::IsNotNull(inner) | E::IsNotUnknown(inner) => self.is_null(inner, true),
            E::IsTrue(inner) => self.is_bool(inner, true, false),
            E::IsNotTrue(inner) => self.is_bool(inner, true, true),
            E::IsFalse(inner) => self.is_bool(inner, false, false),
            E::IsNotFalse(inner) => self.is_bool(inner, false, true),
            E::Tuple(_) => Err(operand_columns(1)),
            _ => self.bind_special(expr),
        }
    }

    /// Spellings that are functions or casts in other words.
    fn bind_special(&mut self, expr: &ast::Expr) -> SqlResult<Expr> {
        use ast::Expr as E;
        match expr {
            E::Cast {
                expr, data_type, ..
            } => self.bind_cast(expr, data_type),
            E::Convert {
                expr,
                data_type,
                charset,
                ..
            } => self.bind_convert(expr, data_type.as_ref(), charset.as_ref()),
            E::Collate { expr, collation } => {
                let value = self.bind_scalar(expr)?;
                type_names::with_collation(value, &collation.to_string())
            }
            E::Prefixed { prefix, value } => self.bind_introducer(&prefix.value, value),
            E::TypedString(typed) => {
                let value = self.bind_value(&typed.value.value)?;
                let ty = self.literal_type(&typed.data_type, &value)?;
                Expr::cast(value, ty)
            }
            E::Extract { field, expr, .. } => {
                let value = self.bind_scalar(expr)?;
                Expr::extract(&field.to_string(), value)
            }
            E::Position { expr, r#in } => {
                let needle = self.bind_scalar(expr)?;
                let text = self.bind_scalar(r#in)?;
                Expr::call("LOCATE", vec![needle, text])
            }
            E::Substring {
                expr,
                substring_from,
                substring_for,
                ..
            } => {
                let mut arguments = vec![self.bind_scalar(expr)?];
                for part in [substring_from, substring_for].into_iter().flatten() {
                    arguments.push(self.bind_scalar(part)?);
                }
                Expr::call("SUBSTRING", arguments)
            }
            E::Trim {
                expr,
                trim_where,
                trim_what,
                ..
            } => self.bind_trim(expr, *trim_where, trim_what.as_deref()),
            E::Ceil { expr, .. } => self.call_one("CEIL", expr),
            E::Floor { expr, .. } => self.call_one("FLOOR", expr),
            E::MemberOf(member) => {
                let value = self.bind_scalar(&member.value)?;
                let array = self.bind_scalar(&member.array)?;
                Expr::call("MEMBER_OF", vec![value, array])
            }
            E::MatchAgainst { .. } => Err(SqlError::not_supported("MATCH ... AGAINST")),
            E::Interval(_) => Err(SqlError::syntax(format!("near '{expr}'"))),
            other => Err(SqlError::not_supported(other.to_string())),
        }
    }

    fn call_one(&mut self, name: &str, argument: &ast::Expr) -> SqlResult<Expr> {
        let argument = self.bind_scalar(argument)?;
        Expr::call(name, vec![argument])
    }

    pub(super) fn bind_value(&mut self, value: &ast::Value) -> SqlResult<Expr> {
        match value {
            ast::Value::Placeholder(text) => self.bind_placeholder(text),
            other => bind_literal(other, self.context.collation),
        }
    }

    fn bind_case(
        &mut self,
        operand: Option<&ast::Expr>,
        conditions: &[ast::CaseWhen],
        otherwise: Option<&ast::Expr>,
    ) -> SqlResult<Expr> {
        let mut whens = Vec::with_capacity(conditions.len());
        for when in conditions {
            let condition = match operand {
                Some(operand) => self.bind_case_match(operand, &when.condition)?,
                None => self.bind_scalar(&when.condition)?,
            };
            whens.push((condition, self.bind_scalar(&when.result)?));
        }
        if operand.is_some() {
            matched_under_one_collation(&mut whens);
        }
        let otherwise = otherwise.map(|e| self.bind_scalar(e)).transpose()?;
        Expr::case(whens, otherwise)
    }

    /// `CASE operand WHEN candidate`: unlike `=`, a JSON operand meets a character string by its
    /// text, so that `CASE JSON_EXTRACT(…) WHEN 'null'` finds JSON null, as drivers rely on.
    fn bind_case_match(&mut self, operand: &ast::Expr, candidate: &ast::Expr) -> SqlResult<Expr> {
        let mut left = self.bind_scalar(operand)?;
        let right = self.bind_scalar(candidate)?;
        if left.ty == DataType::Json && right.ty.is_text() {
            left = Expr::cast(left, DataType::text_of(u32::MAX, Collation::Bin))?;
        }
        self.compare(CompareOp::Eq, left, right)
    }

    fn is_null(&mut self, operand: &ast::Expr, negated: bool) -> SqlResult<Expr> {
        let operand = self.bind_scalar(operand)?;
        let test = Expr::is_null(operand);
        Ok(if negated { Expr::not(test) } else { test })
    }

    fn is_bool(&mut self, operand: &ast::Expr, truth: bool, negated: bool) -> SqlResult<Expr> {
        let operand = self.bind_scalar(operand)?;
        let test = Expr::is_bool(operand, truth);
        Ok(if negated { Expr::not(test) } else { test })
    }

    fn bind_function(&mut self, function: &ast::Function) -> SqlResult<Expr> {
        let name = function_name(function)?;
        if let Some(over) = &function.over {
            return self.bind_window(&name, function, over);
        }
        if let Some(kind) = aggregate_kind(&name) {
            return self.bind_aggregate(kind, function);
        }
        self.bind_call(&name, function)
    }
}

/// The texts a CASE compares its operand with, under the collation of all of them.
fn matched_under_one_collation(whens: &mut [(Expr, Expr)]) {
    let mut operands: Vec<&Expr> = Vec::new();
    for (condition, _) in whens.iter() {
        if let ExprKind::Compare(_, operand, candidate, _) = &condition.kind {
            operands.extend([operand.as_ref(), candidate.as_ref()]);
        }
    }
    if !operands
        .iter()
        .all(|operand| operand.ty.collation().is_some())
    {
        return;
    }
    let common = result_collation(operands);
    for (condition, _) in whens {
        if let ExprKind::Compare(_, _, _, collation) = &mut condition.kind {
            *collation = common;
        }
    }
}

/// 1241.
pub(crate) fn operand_columns(count: usize) -> SqlError {
    SqlError::new(
        1241,
        "21000",
        format!("Operand should contain {count} column(s)"),
    )
}

fn function_name(function: &ast::Function) -> SqlResult<String> {
    match function.name.0.as_slice() {
        [ast::ObjectNamePart::Identifier(name)] => Ok(name.value.clone()),
        _ => Err(SqlError::new(
            1305,
            "42000",
            format!("FUNCTION {} does not exist", function.name),
        )),
    }
}
