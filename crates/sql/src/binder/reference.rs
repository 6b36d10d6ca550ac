//! What a name stands for: a column, a variable, a parameter.

use sqlparser::ast;

use super::Binder;
use super::scope::{ColumnName, seen_from};
use crate::error::{SqlError, SqlResult};
use crate::plan::{Expr, ExprKind};
use crate::types::DataType;

/// The last number of a parameter, as many as the protocol can count.
const PARAMETER_MAX: usize = 65_535;

impl Binder<'_> {
    /// Column, `@variable` or `@@variable`.
    pub(super) fn bind_name(&mut self, names: &[ast::Ident]) -> SqlResult<Expr> {
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

    /// `?`, numbered by the parser; of a template's constant the type is known.
    pub(super) fn bind_placeholder(&mut self, text: &str) -> SqlResult<Expr> {
        let index = text
            .strip_prefix('?')
            .and_then(|number| number.parse::<usize>().ok())
            .ok_or_else(|| SqlError::internal(format!("placeholder '{text}' has no number")))?;
        if index > PARAMETER_MAX {
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
        let known = constant.filter(|ty| **ty != DataType::Null);
        Ok(Expr {
            kind: ExprKind::Param(index),
            ty: known.cloned().unwrap_or(DataType::Null),
            nullable: known.is_none(),
        })
    }

    /// `@name := value`.
    pub(super) fn bind_assignment(
        &mut self,
        left: &ast::Expr,
        right: &ast::Expr,
    ) -> SqlResult<Expr> {
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

    fn user_variable(&self, name: &str) -> Expr {
        let name = name.to_lowercase();
        let collation = self.context.collation;
        Expr {
            ty: self
                .context
                .virtual_tables
                .user_variable_type(&name, collation),
            kind: ExprKind::UserVariable(name),
            nullable: true,
        }
    }

    /// `@@name` or `@@scope.name`.
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
