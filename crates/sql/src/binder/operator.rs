//! Operators of one and of two operands, and the arithmetic of dates among them.

use sqlparser::ast;

use super::Binder;
use crate::error::{SqlError, SqlResult};
use crate::plan::{BinaryOp, CompareOp, Expr, ExprKind};
use crate::types::{DataType, Decimal, Value};

impl Binder<'_> {
    /// `op operand`.
    pub(super) fn bind_unary(
        &mut self,
        op: ast::UnaryOperator,
        operand: &ast::Expr,
    ) -> SqlResult<Expr> {
        use ast::UnaryOperator as U;
        if op == U::Minus
            && let ast::Expr::Value(value) = operand
            && let ast::Value::Number(digits, _) = &value.value
        {
            if digits == "9223372036854775808" {
                return Ok(Expr::literal(Value::Int(i64::MIN), DataType::BIGINT));
            }
            let mut literal = self.bind_value(&value.value)?;
            negate_literal(&mut literal);
            return Ok(literal);
        }
        let operand = self.bind_scalar(operand)?;
        match op {
            U::Minus => Expr::negate(operand),
            U::Plus => Ok(operand),
            U::Not | U::BangNot => Ok(Expr::not(operand)),
            U::BitwiseNot => Ok(Expr::bit_not(operand)),
            other => Err(SqlError::not_supported(other.to_string())),
        }
    }

    /// `left op right`.
    pub(super) fn bind_binary(
        &mut self,
        left: &ast::Expr,
        op: &ast::BinaryOperator,
        right: &ast::Expr,
    ) -> SqlResult<Expr> {
        use ast::BinaryOperator as B;
        if let Some(compare) = compare_op(op) {
            return self.bind_compare(compare, left, right);
        }
        match op {
            B::Assignment => return self.bind_assignment(left, right),
            B::Plus | B::Minus => {
                if let Some(shifted) = self.bind_interval(left, op, right)? {
                    return Ok(shifted);
                }
            }
            _ => {}
        }
        let left = self.bind_scalar(left)?;
        let right = self.bind_scalar(right)?;
        match op {
            B::And => Ok(Expr::and(left, right)),
            B::Xor => Ok(Expr::xor(left, right)),
            B::Or => Ok(Expr::or(left, right)),
            B::Regexp => Expr::regexp(left, right),
            B::Arrow => Expr::call("JSON_EXTRACT", vec![left, right]),
            B::LongArrow => {
                let inner = Expr::call("JSON_EXTRACT", vec![left, right])?;
                Expr::call("JSON_UNQUOTE", vec![inner])
            }
            other => match arithmetic_op(other) {
                Some(op) => self.arithmetic(op, left, right),
                None => Err(SqlError::not_supported(other.to_string())),
            },
        }
    }

    /// Numbers; an untyped parameter among them is one like the other operand.
    fn arithmetic(&mut self, op: BinaryOp, mut left: Expr, mut right: Expr) -> SqlResult<Expr> {
        let number = |other: &Expr| match &other.ty {
            ty @ (DataType::Int { .. } | DataType::Decimal { .. } | DataType::Double { .. }) => {
                ty.clone()
            }
            _ => DataType::DOUBLE,
        };
        let (left_number, right_number) = (number(&left), number(&right));
        self.infer(&mut left, &right_number);
        self.infer(&mut right, &left_number);
        Expr::binary(op, left, right)
    }

    /// `date ± INTERVAL n unit`.
    fn bind_interval(
        &mut self,
        left: &ast::Expr,
        op: &ast::BinaryOperator,
        right: &ast::Expr,
    ) -> SqlResult<Option<Expr>> {
        let minus = *op == ast::BinaryOperator::Minus;
        let (date, interval) = match (left, right) {
            (date, ast::Expr::Interval(interval)) => (date, interval),
            (ast::Expr::Interval(interval), date) if !minus => (date, interval),
            _ => return Ok(None),
        };
        let date = self.bind_scalar(date)?;
        let name = if minus { "DATE_SUB" } else { "DATE_ADD" };
        self.shift_date(name, date, interval).map(Some)
    }

    /// `name(date, amount, unit)`.
    pub(crate) fn shift_date(
        &mut self,
        name: &str,
        date: Expr,
        interval: &ast::Interval,
    ) -> SqlResult<Expr> {
        let amount = self.bind_scalar(&interval.value)?;
        // The parser's pre-pass spells `HOUR_MINUTE` as `HOUR TO MINUTE`, seconds as `SECONDS`.
        let word = |field: &Option<ast::DateTimeField>| {
            let word = field.as_ref()?.to_string().to_uppercase();
            Some(if word == "SECONDS" {
                "SECOND".to_string()
            } else {
                word
            })
        };
        let unit = [word(&interval.leading_field), word(&interval.last_field)];
        let unit = unit.into_iter().flatten().collect::<Vec<_>>().join("_");
        if name == "DATE_SUB" {
            Expr::interval_sub(date, amount, &unit)
        } else {
            Expr::interval_add(date, amount, &unit)
        }
    }
}

/// The comparison an operator is, if it is one.
pub(crate) fn compare_op(op: &ast::BinaryOperator) -> Option<CompareOp> {
    use ast::BinaryOperator as B;
    Some(match op {
        B::Eq => CompareOp::Eq,
        B::NotEq => CompareOp::Ne,
        B::Lt => CompareOp::Lt,
        B::LtEq => CompareOp::Le,
        B::Gt => CompareOp::Gt,
        B::GtEq => CompareOp::Ge,
        B::Spaceship => CompareOp::NullSafeEq,
        _ => return None,
    })
}

fn arithmetic_op(op: &ast::BinaryOperator) -> Option<BinaryOp> {
    use ast::BinaryOperator as B;
    Some(match op {
        B::Plus => BinaryOp::Add,
        B::Minus => BinaryOp::Sub,
        B::Multiply => BinaryOp::Mul,
        B::Divide => BinaryOp::Div,
        B::MyIntegerDivide | B::DuckIntegerDivide => BinaryOp::IntDiv,
        B::Modulo => BinaryOp::Mod,
        B::BitwiseAnd => BinaryOp::BitAnd,
        B::BitwiseOr => BinaryOp::BitOr,
        B::BitwiseXor | B::PGBitwiseXor => BinaryOp::BitXor,
        B::PGBitwiseShiftLeft => BinaryOp::ShiftLeft,
        B::PGBitwiseShiftRight => BinaryOp::ShiftRight,
        _ => return None,
    })
}

/// A number written with a minus is a negative constant, whose digits count as those of one.
fn negate_literal(literal: &mut Expr) {
    if let ExprKind::Literal(value) = &mut literal.kind {
        match value {
            Value::Int(number) => *number = -*number,
            Value::Double(number) => *number = -*number,
            Value::Decimal(number) => **number = -number.as_ref().clone(),
            Value::UInt(number) => {
                let negative = -Decimal::from(*number);
                *value = Value::Decimal(Box::new(negative));
                literal.ty = DataType::Decimal {
                    precision: 20,
                    scale: 0,
                    sign: DataType::SIGNED,
                };
            }
            _ => {}
        }
    }
}
