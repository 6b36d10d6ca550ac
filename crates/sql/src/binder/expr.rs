//! Scalar expressions.

use sqlparser::ast;

use super::aggregate::aggregate_kind;
use super::literal::bind_literal;
use super::scope::{ColumnName, seen_from};
use super::{Binder, types as type_names};
use crate::error::{SqlError, SqlResult};
use crate::expr::{BinaryOp, CompareOp, Expr, ExprKind};
use crate::types::{Collation, DataType, Date, DateTime, Value};

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

    fn bind_value(&mut self, value: &ast::Value) -> SqlResult<Expr> {
        match value {
            ast::Value::Placeholder(text) => self.bind_placeholder(text),
            other => bind_literal(other, self.context.collation),
        }
    }

    fn bind_placeholder(&mut self, text: &str) -> SqlResult<Expr> {
        let index = text
            .strip_prefix('?')
            .and_then(|number| number.parse::<usize>().ok())
            .ok_or_else(|| SqlError::internal(format!("placeholder '{text}' has no number")))?;
        if index > 65_535 {
            return Err(SqlError::new(
                1390,
                "HY000",
                "Prepared statement contains too many placeholders",
            ));
        }
        if self.params.len() <= index {
            self.params.resize(index + 1, DataType::Null);
        }
        let constant = self.context.constants.get(index);
        if let Some(ty) = constant.filter(|ty| **ty != DataType::Null) {
            return Ok(Expr {
                kind: ExprKind::Param(index),
                ty: ty.clone(),
                nullable: false,
            });
        }
        Ok(Expr {
            kind: ExprKind::Param(index),
            ty: DataType::Null,
            nullable: true,
        })
    }

    /// Column, `@variable` or `@@variable`.
    fn bind_name(&mut self, names: &[ast::Ident]) -> SqlResult<Expr> {
        let first = names.first().map_or("", |name| name.value.as_str());
        let quoted = names.first().is_some_and(|name| name.quote_style.is_some());
        if !quoted && let Some(rest) = first.strip_prefix("@@") {
            return self.bind_system_variable(rest, &names[1..]);
        }
        if !quoted && let Some(rest) = first.strip_prefix('@') {
            let mut name = rest.trim_matches(['`', '\'', '"']).to_string();
            for part in &names[1..] {
                name.push('.');
                name.push_str(&part.value);
            }
            return Ok(self.user_variable(&name));
        }
        self.resolve(&column_name(names)?)
    }

    fn user_variable(&self, name: &str) -> Expr {
        let ty = DataType::Text {
            size: crate::types::TextSize::Long,
            collation: self.context.collation,
        };
        Expr {
            kind: ExprKind::UserVariable(name.to_lowercase()),
            ty,
            nullable: true,
        }
    }

    fn bind_system_variable(&self, first: &str, rest: &[ast::Ident]) -> SqlResult<Expr> {
        let (scope, name) = match rest {
            [] => ("", first),
            [name] => (first, name.value.as_str()),
            _ => return Err(SqlError::syntax(format!("near '@@{first}'"))),
        };
        let global = match scope.to_ascii_lowercase().as_str() {
            "" | "session" | "local" => false,
            "global" | "persist" | "persist_only" => true,
            _ => {
                return Err(SqlError::new(
                    1193,
                    "HY000",
                    format!("Unknown system variable '{scope}.{name}'"),
                ));
            }
        };
        Ok(Expr {
            kind: ExprKind::SystemVariable(name.to_lowercase(), global),
            ty: self
                .context
                .virtual_tables
                .variable_type(name, self.context.collation),
            nullable: true,
        })
    }

    /// What a column name means at the current level or an enclosing one.
    pub(crate) fn resolve(&mut self, name: &ColumnName<'_>) -> SqlResult<Expr> {
        let top = self.frames.len();
        for (index, frame) in self.frames.iter().enumerate().rev() {
            let depth = top - 1 - index;
            if let Some(expr) = frame.find(name, depth == 0)? {
                let expr = seen_from(expr, depth);
                if depth > 0 {
                    self.reach = self.reach.min(index);
                }
                return Ok(expr);
            }
        }
        let place = self.frames.last().map_or("field list", |f| f.place);
        Err(SqlError::unknown_column(&name.text(), place))
    }

    fn bind_unary(&mut self, op: ast::UnaryOperator, operand: &ast::Expr) -> SqlResult<Expr> {
        use ast::UnaryOperator as U;
        if op == U::Minus
            && let ast::Expr::Value(value) = operand
            && let ast::Value::Number(digits, _) = &value.value
        {
            if digits == "9223372036854775808" {
                return Ok(Expr::literal(
                    Value::Int(i64::MIN),
                    super::aggregate::bigint(false),
                ));
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

    fn bind_binary(
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
            B::StringConcat if self.text_mode().pipes_as_concat => {
                Expr::call("CONCAT", vec![left, right])
            }
            B::Or | B::StringConcat => Ok(Expr::or(left, right)),
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

    fn arithmetic(&mut self, op: BinaryOp, mut left: Expr, mut right: Expr) -> SqlResult<Expr> {
        let number = |other: &Expr| match &other.ty {
            ty @ (DataType::Int { .. } | DataType::Decimal { .. } | DataType::Double { .. }) => {
                ty.clone()
            }
            _ => DataType::Double { unsigned: false },
        };
        let (left_number, right_number) = (number(&left), number(&right));
        self.infer(&mut left, &right_number);
        self.infer(&mut right, &left_number);
        Expr::binary(op, left, right)
    }

    fn bind_assignment(&mut self, left: &ast::Expr, right: &ast::Expr) -> SqlResult<Expr> {
        let ast::Expr::Identifier(name) = left else {
            return Err(SqlError::syntax(format!("near '{left} :='")));
        };
        let Some(name) = name.value.strip_prefix('@') else {
            return Err(SqlError::syntax(format!("near '{left} :='")));
        };
        let value = self.bind_scalar(right)?;
        Ok(Expr {
            ty: value.ty.clone(),
            nullable: value.nullable,
            kind: ExprKind::AssignUserVariable(name.to_lowercase(), Box::new(value)),
        })
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

    /// In a condition, IS NULL also finds '0000-00-00' in a DATE or DATETIME column that is
    /// NOT NULL, which is how ODBC's clients look for it.
    fn zero_date(&self, operand: &Expr) -> SqlResult<Option<Expr>> {
        let frame = self.frame()?;
        let ExprKind::Column(slot) = operand.kind else {
            return Ok(None);
        };
        let not_null = frame.columns.iter().any(|column| {
            let own = matches!(column.expr.kind, ExprKind::Column(at) if at == slot);
            let origin = column.origin.as_ref();
            own && origin.is_some_and(|(table, at)| table.columns[*at].not_null)
        });
        if !not_null || !matches!(frame.place, "where clause" | "on clause") {
            return Ok(None);
        }
        let zero = match operand.ty {
            DataType::Date => Value::Date(Date::ZERO),
            DataType::DateTime { .. } => Value::DateTime(DateTime::midnight(Date::ZERO)),
            _ => return Ok(None),
        };
        let zero = Expr::literal(zero, operand.ty.clone());
        Expr::compare(CompareOp::Eq, operand.clone(), zero).map(Some)
    }

    fn is_null(&mut self, operand: &ast::Expr, negated: bool) -> SqlResult<Expr> {
        let operand = self.bind_scalar(operand)?;
        if !negated && let Some(zero) = self.zero_date(&operand)? {
            return Ok(Expr::or(zero, Expr::is_null(operand)));
        }
        let test = Expr::is_null(operand);
        Ok(if negated { Expr::not(test) } else { test })
    }

    fn is_bool(&mut self, operand: &ast::Expr, truth: bool, negated: bool) -> SqlResult<Expr> {
        let operand = self.bind_scalar(operand)?;
        let test = Expr::is_bool(operand, truth);
        Ok(if negated { Expr::not(test) } else { test })
    }

    /// Gives an untyped placeholder the type its surroundings suggest.
    pub(crate) fn infer(&mut self, expr: &mut Expr, ty: &DataType) {
        if let ExprKind::Param(index) = expr.kind
            && expr.ty == DataType::Null
            && *ty != DataType::Null
            && let Some(known) = self.params.get_mut(index)
            && *known == DataType::Null
        {
            known.clone_from(ty);
        }
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

/// Splits `a`, `t.a` or `d.t.a`.
pub(crate) fn column_name(names: &[ast::Ident]) -> SqlResult<ColumnName<'_>> {
    match names {
        [column] => Ok(ColumnName {
            database: None,
            table: None,
            column: &column.value,
        }),
        [table, column] => Ok(ColumnName {
            database: None,
            table: Some(&table.value),
            column: &column.value,
        }),
        [database, table, column] => Ok(ColumnName {
            database: Some(&database.value),
            table: Some(&table.value),
            column: &column.value,
        }),
        _ => Err(SqlError::syntax("a column has at most two qualifiers")),
    }
}

fn negate_literal(literal: &mut Expr) {
    if let ExprKind::Literal(value) = &mut literal.kind {
        match value {
            Value::Int(number) => *number = -*number,
            Value::Double(number) => *number = -*number,
            Value::Decimal(number) => **number = -number.as_ref().clone(),
            Value::UInt(number) => {
                let negative = -crate::types::Decimal::from(*number);
                *value = Value::Decimal(Box::new(negative));
                literal.ty = DataType::Decimal {
                    precision: 20,
                    scale: 0,
                    unsigned: false,
                };
            }
            _ => {}
        }
    }
}

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
