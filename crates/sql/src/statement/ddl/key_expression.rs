//! Functional key parts, `INDEX ((lower(name)))`: each is a hidden generated column, so that
//! writing, filling and scanning such an index is what it is for any other.

use sqlparser::ast::{self, Expr as Ast};

use super::define::{Builder, unbracketed};
use crate::binder::column_type::VARCHAR_MAX;
use crate::catalog::{Column, ColumnId, Generated, GeneratedKind, Index};
use crate::error::{SqlError, SqlResult};
use crate::parser::{canonical, displayed};
use crate::plan::Expr;
use crate::types::DataType;

/// Name of an index that has a functional part and was given none.
pub(super) const UNNAMED: &str = "functional_index";

/// A key part as written.
pub(super) enum Part<'a> {
    /// A column, with the length of a prefix.
    Column(String, Option<u32>),
    /// An expression in brackets of its own.
    Expression(&'a Ast),
}

/// What kind of key part `a`, `a(10)` or `(a + 1)` is.
///
/// # Errors
/// 1064 for an expression without brackets of its own.
pub(super) fn part(expr: &Ast) -> SqlResult<Part<'_>> {
    match expr {
        Ast::Identifier(ident) => Ok(Part::Column(ident.value.clone(), None)),
        Ast::Nested(_) | Ast::Tuple(_) | Ast::Subquery(_) => {
            Ok(Part::Expression(unbracketed(expr)))
        }
        Ast::Function(function) => {
            let name = crate::statement::names::parts(&function.name).join(".");
            let text = function.args.to_string();
            match text.trim_matches(['(', ')']).parse() {
                Ok(prefix) => Ok(Part::Column(name, Some(prefix))),
                Err(_) => Err(SqlError::syntax(format!("near '{expr}'"))),
            }
        }
        _ => Err(SqlError::syntax(format!("near '{expr}'"))),
    }
}

impl Builder<'_> {
    /// Adds the hidden column that holds `expr`, a part of the index that errors call `index`;
    /// its position.
    ///
    /// # Errors
    /// 3762 for a bare column, 3800 for a row; those of [`Builder::bound_generated`]; 3753, 3757
    /// and 3761 for types that cannot be a key.
    pub(super) fn add_key_expression(&mut self, expr: &Ast, index: &str) -> SqlResult<usize> {
        match expr {
            Ast::Identifier(_) | Ast::CompoundIdentifier(_) => {
                return Err(SqlError::new(
                    3762,
                    "HY000",
                    "Functional index on a column is not supported. Consider using a regular index instead.",
                ));
            }
            Ast::Tuple(_) => {
                let text = format!(
                    "Expression of functional index '{index}' cannot refer to a row value."
                );
                return Err(SqlError::new(3800, "HY000", text));
            }
            _ => {}
        }
        let id = ColumnId(self.table.next_column_id);
        self.table.next_column_id += 1;
        let generated = Generated {
            expression: canonical(expr),
            kind: GeneratedKind::KeyPart,
        };
        let mut column = Column {
            id,
            // No client reaches it by this or any other name.
            name: format!("!hidden!{}", id.0),
            ty: DataType::Null,
            not_null: false,
            default: None,
            on_update_now: false,
            auto_increment: false,
            comment: String::new(),
            absent_value: None,
            generated: Some(generated.clone()),
        };
        let at = self.table.columns.len();
        let bound = self.bound_generated(at, &column, &generated, index)?;
        column.ty = key_type(&bound, &generated)?;
        column.not_null = !bound.nullable;
        self.table.columns.push(column);
        Ok(at)
    }

    /// Drops hidden columns whose index is gone.
    pub(super) fn drop_unused_key_expressions(&mut self) {
        let table = &self.table;
        let is_used = |at: usize| {
            let mut parts = table.indexes.iter().flat_map(|index| &index.columns);
            parts.any(|part| part.column == at)
        };
        let kept: Vec<usize> = table
            .columns
            .iter()
            .enumerate()
            .filter(|(at, column)| !column.is_hidden() || is_used(*at))
            .map(|(at, _)| at)
            .collect();
        if kept.len() < table.columns.len() {
            self.reorder(&kept);
        }
    }

    /// Gives hidden columns the types their expressions have by now: a change of what they read
    /// changes them too.
    ///
    /// # Errors
    /// As [`Builder::add_key_expression`]; 1071 for an index that has grown too long.
    pub(super) fn retype_key_expressions(&mut self) -> SqlResult<()> {
        for at in 0..self.table.columns.len() {
            let column = &self.table.columns[at];
            let Some(generated) = column.generated.as_ref().filter(|_| column.is_hidden()) else {
                continue;
            };
            let bound = self.bound_generated(at, column, generated, &column.name)?;
            let ty = key_type(&bound, generated)?;
            let column = &mut self.table.columns[at];
            column.ty = ty;
            column.not_null = !bound.nullable;
        }
        let with_expression = |index: &&Index| self.has_expression(&index.columns);
        for index in self.table.indexes.iter().filter(with_expression) {
            self.check_key_bytes(&index.columns)?;
        }
        Ok(())
    }

    /// Whether one of these parts is an expression.
    pub(super) fn has_expression(&self, parts: &[crate::catalog::IndexColumn]) -> bool {
        let column = |at: usize| self.table.columns.get(at);
        parts
            .iter()
            .any(|part| column(part.column).is_some_and(Column::is_hidden))
    }
}

/// The type of the hidden column under an expression.
fn key_type(bound: &Expr, generated: &Generated) -> SqlResult<DataType> {
    match &bound.ty {
        DataType::Json => Err(SqlError::new(
            3753,
            "42000",
            "Cannot create a functional index on a function that returns a JSON or GEOMETRY value.",
        )),
        DataType::Text { .. } | DataType::Blob { .. } => Err(is_large()),
        DataType::Varchar { length, .. } if u64::from(*length) >= VARCHAR_MAX => Err(is_large()),
        DataType::Null
        | DataType::Varchar { length: 0, .. }
        | DataType::Varbinary { length: 0 } => Err(SqlError::new(
            3761,
            "HY000",
            format!(
                "The used storage engine cannot index the expression '{}'.",
                displayed(&generated.expression)
            ),
        )),
        DataType::Enum { .. } | DataType::Set { .. } => Ok(DataType::Varchar {
            length: bound.ty.char_length(),
            collation: bound.ty.collation().unwrap_or_default(),
        }),
        other => Ok(other.clone()),
    }
}

fn is_large() -> SqlError {
    SqlError::new(
        3757,
        "HY000",
        "Cannot create a functional index on an expression that returns a BLOB or TEXT. Please consider using CAST.",
    )
}

/// The parts of a key definition that are expressions.
pub(super) fn any_expression(columns: &[ast::IndexColumn]) -> bool {
    columns
        .iter()
        .any(|column| matches!(part(&column.column.expr), Ok(Part::Expression(_))))
}
