//! Builders of typed expressions: they infer types and collations, and fold constants.

#![allow(
    clippy::match_same_arms,
    reason = "one arm a kind reads better than merged ones"
)]

mod call;
mod collation;
mod convert;
mod member;
mod number;
mod operand;

pub use collation::result_collation;
pub(crate) use number::DIV_INCREMENT;

use std::sync::Arc;

use crate::error::SqlResult;
use crate::expr::functions;
use crate::plan::{BinaryOp, CompareOp, Expr, ExprKind};
use crate::types::{Collation, DataType, Value};
use number::{binary_type, numeric_type};
use operand::{adapt_constant, beside, number_of_bytes, read_as_date, truth_beside};

impl Expr {
    fn new(kind: ExprKind, ty: DataType, nullable: bool) -> Self {
        Self { kind, ty, nullable }
    }

    /// An integer constant.
    #[must_use]
    pub fn int(value: i64) -> Self {
        Self::literal(Value::Int(value), DataType::BIGINT)
    }

    /// TRUE or FALSE: 1 or 0 of a type that JSON functions tell from other integers.
    #[must_use]
    pub fn boolean(truth: bool) -> Self {
        Self::literal(Value::Int(i64::from(truth)), DataType::BOOLEAN)
    }

    /// A text constant under `collation` (`collation_connection` for literals).
    #[must_use]
    pub fn text(value: impl Into<String>, collation: Collation) -> Self {
        let value = value.into();
        let length = u32::try_from(value.chars().count()).unwrap_or(u32::MAX);
        Self::literal(Value::Text(value), DataType::text_of(length, collation))
    }

    /// NULL.
    #[must_use]
    pub fn null() -> Self {
        Self::literal(Value::Null, DataType::Null)
    }

    /// A column of the current row.
    #[must_use]
    pub fn column(index: usize, ty: DataType, nullable: bool) -> Self {
        Self::new(ExprKind::Column(index), ty, nullable)
    }

    /// The constant this is, if it is one.
    #[must_use]
    pub fn as_literal(&self) -> Option<&Value> {
        match &self.kind {
            ExprKind::Literal(value) => Some(value),
            _ => None,
        }
    }

    /// `a op b`.
    ///
    /// # Errors
    /// 1525 for a constant text that is no date, compared with a date.
    pub fn compare(op: CompareOp, a: Expr, b: Expr) -> SqlResult<Expr> {
        let (a_type, b_type) = (a.ty.clone(), b.ty.clone());
        let (a, b) = (beside(a, &b_type), beside(b, &a_type));
        let (a, b) = (truth_beside(a, &b_type), truth_beside(b, &a_type));
        let collation = result_collation([&a, &b]);
        let a = read_as_date(adapt_constant(a, &b.ty)?, &b)?;
        let b = read_as_date(adapt_constant(b, &a.ty)?, &a)?;
        let nullable = op != CompareOp::NullSafeEq && (a.nullable || b.nullable);
        let kind = ExprKind::Compare(op, Box::new(a), Box::new(b), collation);
        Ok(Self::new(kind, DataType::BOOLEAN, nullable))
    }

    /// `a op b` of numbers or bits.
    ///
    /// # Errors
    /// 3854 and its kin are found when evaluated; none here yet.
    pub fn binary(op: BinaryOp, a: Expr, b: Expr) -> SqlResult<Expr> {
        let (a, b) = (number_of_bytes(a), number_of_bytes(b));
        let ty = binary_type(op, &a.ty, &b.ty);
        let may_divide = matches!(op, BinaryOp::Div | BinaryOp::IntDiv | BinaryOp::Mod);
        let nullable = a.nullable || b.nullable || may_divide;
        Ok(Self::new(
            ExprKind::Binary(op, Box::new(a), Box::new(b)),
            ty,
            nullable,
        ))
    }

    /// `-a`.
    ///
    /// # Errors
    /// None; the signature matches its siblings.
    pub fn negate(a: Expr) -> SqlResult<Expr> {
        let a = number_of_bytes(a);
        if let ExprKind::Literal(Value::Int(value)) = &a.kind
            && let Some(negative) = value.checked_neg()
        {
            return Ok(Self::literal(Value::Int(negative), a.ty));
        }
        if let ExprKind::Literal(Value::UInt(value)) = &a.kind
            && *value == 1 << 63
        {
            return Ok(Self::int(i64::MIN));
        }
        let ty = match &a.ty {
            DataType::Int { .. } | DataType::Year | DataType::Bit { .. } | DataType::Null => {
                DataType::BIGINT
            }
            DataType::Decimal {
                precision, scale, ..
            } => DataType::Decimal {
                precision: *precision,
                scale: *scale,
                sign: DataType::SIGNED,
            },
            ty if ty.is_temporal() => numeric_type(ty),
            ty => DataType::double_with(ty.fraction_digits()),
        };
        let nullable = a.nullable;
        Ok(Self::new(ExprKind::Negate(Box::new(a)), ty, nullable))
    }

    /// `~a`.
    #[must_use]
    pub fn bit_not(a: Expr) -> Expr {
        let nullable = a.nullable;
        let kind = ExprKind::BitNot(Box::new(number_of_bytes(a)));
        Self::new(kind, DataType::BIGINT_UNSIGNED, nullable)
    }

    /// `a AND b`.
    #[must_use]
    pub fn and(a: Expr, b: Expr) -> Expr {
        let nullable = a.nullable || b.nullable;
        Self::new(
            ExprKind::And(Box::new(a), Box::new(b)),
            DataType::BOOLEAN,
            nullable,
        )
    }

    /// `a OR b`.
    #[must_use]
    pub fn or(a: Expr, b: Expr) -> Expr {
        let nullable = a.nullable || b.nullable;
        Self::new(
            ExprKind::Or(Box::new(a), Box::new(b)),
            DataType::BOOLEAN,
            nullable,
        )
    }

    /// `a XOR b`.
    #[must_use]
    pub fn xor(a: Expr, b: Expr) -> Expr {
        let nullable = a.nullable || b.nullable;
        Self::new(
            ExprKind::Xor(Box::new(a), Box::new(b)),
            DataType::BOOLEAN,
            nullable,
        )
    }

    /// `NOT a`.
    #[must_use]
    #[expect(clippy::should_implement_trait, reason = "SQL's NOT is three-valued")]
    pub fn not(a: Expr) -> Expr {
        let nullable = a.nullable;
        Self::new(ExprKind::Not(Box::new(a)), DataType::BOOLEAN, nullable)
    }

    /// `a IS NULL`.
    #[must_use]
    pub fn is_null(a: Expr) -> Expr {
        Self::new(ExprKind::IsNull(Box::new(a)), DataType::BOOLEAN, false)
    }

    /// `a IS TRUE` or `a IS FALSE`.
    #[must_use]
    pub fn is_bool(a: Expr, truth: bool) -> Expr {
        Self::new(
            ExprKind::IsBool(Box::new(a), truth),
            DataType::BOOLEAN,
            false,
        )
    }

    /// `value LIKE pattern ESCAPE escape`; `escape` `None` means no escape character.
    ///
    /// # Errors
    /// None yet.
    pub fn like(value: Expr, pattern: Expr, escape: Option<char>) -> SqlResult<Expr> {
        let value = functions::shown_as_declared(value);
        let pattern = functions::shown_as_declared(pattern);
        let collation = result_collation([&value, &pattern]);
        let nullable = value.nullable || pattern.nullable;
        let kind = ExprKind::Like {
            value: Box::new(value),
            pattern: Box::new(pattern),
            escape,
            collation,
        };
        Ok(Self::new(kind, DataType::BOOLEAN, nullable))
    }

    /// `value REGEXP pattern`.
    ///
    /// # Errors
    /// None yet: patterns are read when evaluated.
    pub fn regexp(value: Expr, pattern: Expr) -> SqlResult<Expr> {
        let value = functions::shown_as_declared(value);
        let pattern = functions::shown_as_declared(pattern);
        let collation = result_collation([&value, &pattern]);
        let nullable = value.nullable || pattern.nullable;
        let kind = ExprKind::Regexp {
            value: Box::new(value),
            pattern: Box::new(pattern),
            collation,
        };
        Ok(Self::new(kind, DataType::BOOLEAN, nullable))
    }

    /// `value IN (list)`.
    ///
    /// # Errors
    /// As [`Expr::compare`].
    pub fn in_list(value: Expr, list: Vec<Expr>) -> SqlResult<Expr> {
        let is_number = |item: &Expr| item.ty.is_number();
        let is_member = matches!(value.ty, DataType::Enum { .. } | DataType::Set { .. });
        if is_member && list.iter().any(is_number) && !list.iter().all(is_number) {
            // Among numbers it is one, among texts it is a text.
            let (numbers, texts) = list.into_iter().partition(is_number);
            let by_number = Self::in_list(value.clone(), numbers)?;
            return Ok(Self::or(by_number, Self::in_list(value, texts)?));
        }
        let numbers = !list.is_empty() && list.iter().all(is_number);
        let value = if numbers {
            beside(value, &DataType::BIGINT)
        } else {
            value
        };
        let collation = result_collation(std::iter::once(&value).chain(&list));
        let mut adapted = Vec::with_capacity(list.len());
        for item in list {
            let item = adapt_constant(beside(item, &value.ty), &value.ty)?;
            adapted.push(read_as_date(item, &value)?);
        }
        let nullable = value.nullable || adapted.iter().any(|item| item.nullable);
        let kind = ExprKind::InList {
            value: Box::new(value),
            list: Arc::new(adapted),
            collation,
        };
        Ok(Self::new(kind, DataType::BOOLEAN, nullable))
    }

    /// `value BETWEEN low AND high`.
    ///
    /// # Errors
    /// As [`Expr::compare`].
    pub fn between(value: Expr, low: Expr, high: Expr) -> SqlResult<Expr> {
        let from = Expr::compare(CompareOp::Ge, value.clone(), low)?;
        let to = Expr::compare(CompareOp::Le, value, high)?;
        Ok(Expr::and(from, to))
    }

    /// `CASE WHEN … THEN … ELSE … END`.
    ///
    /// # Errors
    /// None yet.
    pub fn case(whens: Vec<(Expr, Expr)>, otherwise: Option<Expr>) -> SqlResult<Expr> {
        let results: Vec<&Expr> = whens
            .iter()
            .map(|(_, result)| result)
            .chain(&otherwise)
            .collect();
        let ty = Expr::common(&results);
        let nullable = otherwise.as_ref().is_none_or(|result| result.nullable)
            || whens.iter().any(|(_, result)| result.nullable);
        let whens = whens
            .into_iter()
            .map(|(when, result)| (when, result.convert_to(&ty)))
            .collect();
        let otherwise = otherwise.map(|result| Box::new(result.convert_to(&ty)));
        Ok(Self::new(ExprKind::Case { whens, otherwise }, ty, nullable))
    }
}
