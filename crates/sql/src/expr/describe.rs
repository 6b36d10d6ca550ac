//! Expressions as readers see them: in errors and EXPLAIN.

#![allow(clippy::format_push_string, reason = "text for people, not a hot path")]

use crate::plan::{BinaryOp, CompareOp, Expr, ExprKind};
use crate::types::{Value, to_text};

impl CompareOp {
    /// As written in SQL.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            CompareOp::Eq => "=",
            CompareOp::Ne => "<>",
            CompareOp::Lt => "<",
            CompareOp::Le => "<=",
            CompareOp::Gt => ">",
            CompareOp::Ge => ">=",
            CompareOp::NullSafeEq => "<=>",
        }
    }
}

impl BinaryOp {
    /// As written in SQL.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::IntDiv => "DIV",
            BinaryOp::Mod => "%",
            BinaryOp::BitAnd => "&",
            BinaryOp::BitOr => "|",
            BinaryOp::BitXor => "^",
            BinaryOp::ShiftLeft => "<<",
            BinaryOp::ShiftRight => ">>",
        }
    }
}

impl Expr {
    /// SQL-like text; columns by position, subqueries as `(select …)`.
    #[must_use]
    pub fn describe(&self) -> String {
        self.describe_with(&|index| format!("column {}", index + 1))
    }

    /// As [`Expr::describe`], with names for the columns of the row.
    #[must_use]
    pub fn describe_with(&self, name: &dyn Fn(usize) -> String) -> String {
        let show = |expr: &Expr| expr.describe_with(name);
        let list = |exprs: &[Expr]| exprs.iter().map(show).collect::<Vec<_>>().join(",");
        match &self.kind {
            ExprKind::Literal(value) => match value {
                Value::Text(text) => format!("'{}'", text.replace('\'', "''")),
                value if value.is_temporal() => format!("'{}'", to_text(value, &self.ty)),
                value => to_text(value, &self.ty),
            },
            ExprKind::Param(_) => "?".to_string(),
            ExprKind::Column(index) => name(*index),
            ExprKind::Outer { depth, index } => format!("outer {depth} column {}", index + 1),
            ExprKind::UserVariable(name) => format!("@{name}"),
            ExprKind::SystemVariable(name, _) => format!("@@{name}"),
            ExprKind::AssignUserVariable(name, value) => format!("(@{name}:={})", show(value)),
            ExprKind::Compare(op, a, b, _) => format!("({} {} {})", show(a), op.symbol(), show(b)),
            ExprKind::Binary(op, a, b) => format!("({} {} {})", show(a), op.symbol(), show(b)),
            ExprKind::Negate(a) => format!("-({})", show(a)),
            ExprKind::BitNot(a) => format!("~({})", show(a)),
            ExprKind::And(a, b) => format!("({} and {})", show(a), show(b)),
            ExprKind::Or(a, b) => format!("({} or {})", show(a), show(b)),
            ExprKind::Xor(a, b) => format!("({} xor {})", show(a), show(b)),
            ExprKind::Not(a) => format!("not({})", show(a)),
            ExprKind::IsNull(a) => format!("({} is null)", show(a)),
            ExprKind::IsBool(a, truth) => format!("({} is {truth})", show(a)),
            ExprKind::Like { value, pattern, .. } => {
                format!("({} like {})", show(value), show(pattern))
            }
            ExprKind::Regexp { value, pattern, .. } => {
                format!("({} regexp {})", show(value), show(pattern))
            }
            ExprKind::InList {
                value, list: items, ..
            } => {
                format!("({} in ({}))", show(value), list(items))
            }
            ExprKind::Case { whens, otherwise } => {
                let mut text = "(case".to_string();
                for (when, result) in whens {
                    text.push_str(&format!(" when {} then {}", show(when), show(result)));
                }
                if let Some(result) = otherwise {
                    text.push_str(&format!(" else {}", show(result)));
                }
                text + " end)"
            }
            ExprKind::Cast(inner) => format!("cast({} as {})", show(inner), self.ty.sql_name()),
            ExprKind::Call(function, args) => {
                format!("{}({})", function.name.to_lowercase(), list(args))
            }
            ExprKind::ScalarSubquery(_) => "(select ...)".to_string(),
            ExprKind::Exists(_) => "exists(select ...)".to_string(),
            ExprKind::InSubquery { values, .. } => format!("({} in (select ...))", list(values)),
            ExprKind::Quantified { op, value, all, .. } => {
                let word = if *all { "all" } else { "any" };
                format!("({} {} {word} (select ...))", show(value), op.symbol())
            }
        }
    }
}
