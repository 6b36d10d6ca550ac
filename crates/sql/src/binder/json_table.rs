//! JSON_TABLE in FROM. Its document may read columns of the tables before it: it is bound as a
//! LATERAL query is, whose only operator makes the rows.

use std::sync::Arc;

use sqlparser::ast;

use super::Binder;
use super::column_type;
use super::derived::add_lateral;
use super::from::{FromState, Part};
use super::scope::{Frame, column_expr, same_name};
use crate::error::{SqlError, SqlResult};
use crate::plan::physical::{JsonColumn, JsonColumnKind, JsonFallback, JsonRows, JsonTable, Node};
use crate::plan::select::Output;
use crate::plan::{BoundQuery, Expr};
use crate::types::{DataType, IntWidth, JsonPath, parse_json};

/// NESTED PATH inside each other, MySQL's limit.
const NESTING_MAX: usize = 16;
/// Rows that a document is taken to have.
const ROWS: f64 = 10.0;
/// MySQL's word for the clause in error 1054.
const PLACE: &str = "a table function argument";

impl Binder<'_> {
    pub(super) fn bind_json_table(
        &mut self,
        (document, path): (&ast::Expr, &ast::Value),
        columns: &[ast::JsonTableColumn],
        alias: Option<&ast::TableAlias>,
        state: &mut FromState,
    ) -> SqlResult<Part> {
        let Some(alias) = alias else {
            let message = "Every table function must have an alias.";
            return Err(SqlError::new(3667, "42000", message));
        };
        let alias_name = alias.name.value.as_str();
        if !alias.columns.is_empty() {
            return Err(SqlError::syntax(format!("near '{alias}'")));
        }
        state.claim(None, alias_name)?;
        let (document, correlated) = self.bind_document(document, state)?;
        let mut made = Columns {
            binder: self,
            table: alias_name,
            known: Vec::new(),
        };
        let rows = made.rows(path, columns, 0)?;
        let meta: Vec<_> = made
            .known
            .into_iter()
            .enumerate()
            .map(|(at, (name, ty))| Output::computed(column_expr(at, ty, true), name).meta)
            .collect();
        let table = JsonTable {
            document,
            rows,
            width: meta.len(),
        };
        let query = BoundQuery {
            node: Node::JsonTable(Box::new(table)),
            columns: meta,
            rows: ROWS,
        };
        add_lateral(query, correlated, alias_name, &[], state)
    }

    /// The document as the query of the table sees it, and whether it reads rows outside.
    fn bind_document(
        &mut self,
        document: &ast::Expr,
        state: &FromState,
    ) -> SqlResult<(Expr, bool)> {
        self.frames.push(Frame::new(state.before.clone(), PLACE));
        let level = self.frames.len();
        self.frames.push(Frame::new(Vec::new(), PLACE));
        let saved = self.begin_reach();
        let bound = self.bind_scalar(document);
        let reach = self.end_reach(saved);
        self.frames.truncate(level - 1);
        Ok((bound?, reach.is_some_and(|index| index < level)))
    }
}

/// Columns of a table in the making.
struct Columns<'b, 'c, 'n> {
    binder: &'b Binder<'c>,
    table: &'n str,
    known: Vec<(String, DataType)>,
}

impl Columns<'_, '_, '_> {
    /// A level of the table.
    fn rows(
        &mut self,
        path: &ast::Value,
        columns: &[ast::JsonTableColumn],
        depth: usize,
    ) -> SqlResult<JsonRows> {
        if depth > NESTING_MAX {
            let message = format!(
                "More than supported {NESTING_MAX} NESTED PATHs were found in JSON_TABLE '{}'",
                self.table
            );
            return Err(SqlError::new(3670, "42000", message));
        }
        let mut rows = JsonRows {
            path: path_of(path)?,
            columns: Vec::new(),
            nested: Vec::new(),
        };
        for column in columns {
            match column {
                ast::JsonTableColumn::ForOrdinality(name) => {
                    let ty = DataType::Int {
                        width: IntWidth::Int,
                        unsigned: true,
                        display_width: None,
                    };
                    rows.columns
                        .push(self.column(&name.value, ty, JsonColumnKind::Ordinality)?);
                }
                ast::JsonTableColumn::Named(named) => {
                    let kind = kind_of(named)?;
                    let name = &named.name.value;
                    let collation = self.binder.context.collation;
                    let ty = column_type::resolve(name, &named.r#type, collation)?;
                    rows.columns.push(self.column(name, ty, kind)?);
                }
                ast::JsonTableColumn::Nested(nested) => {
                    let inner = self.rows(&nested.path.value, &nested.columns, depth + 1)?;
                    rows.nested.push(inner);
                }
            }
        }
        Ok(rows)
    }

    /// # Errors
    /// 1060 for a second column of the name.
    fn column(&mut self, name: &str, ty: DataType, kind: JsonColumnKind) -> SqlResult<JsonColumn> {
        if self.known.iter().any(|(known, _)| same_name(known, name)) {
            let message = format!("Duplicate column name '{name}'");
            return Err(SqlError::new(1060, "42S21", message));
        }
        self.known.push((name.to_string(), ty.clone()));
        Ok(JsonColumn {
            at: self.known.len() - 1,
            name: name.to_string(),
            ty,
            kind,
        })
    }
}

/// What a column with a path holds.
fn kind_of(column: &ast::JsonTableNamedColumn) -> SqlResult<JsonColumnKind> {
    let path = path_of(&column.path.value)?;
    if column.exists {
        if let Some(wrong) = column.on_empty.as_ref().or(column.on_error.as_ref()) {
            return Err(SqlError::syntax(format!("near '{wrong}'")));
        }
        return Ok(JsonColumnKind::Exists(path));
    }
    let name = &column.name.value;
    Ok(JsonColumnKind::Value {
        path,
        on_empty: fallback(name, column.on_empty.as_ref())?,
        on_error: fallback(name, column.on_error.as_ref())?,
    })
}

/// # Errors
/// 1067 for a default that is no JSON.
fn fallback(
    column: &str,
    written: Option<&ast::JsonTableColumnErrorHandling>,
) -> SqlResult<JsonFallback> {
    use ast::JsonTableColumnErrorHandling as Written;
    Ok(match written {
        None | Some(Written::Null) => JsonFallback::Null,
        Some(Written::Error) => JsonFallback::Error,
        Some(Written::Default(value)) => {
            let text = match &value.value {
                ast::Value::Number(digits, _) => digits.clone(),
                other => text_of(other)?,
            };
            let json = parse_json(&text).map_err(|_| {
                let message = format!(
                    "Invalid default value for '{column}': the text of DEFAULT is JSON, in which \
                     a string stands in double quotes"
                );
                SqlError::new(1067, "42000", message)
            })?;
            JsonFallback::Default(Arc::new(json))
        }
    })
}

fn path_of(value: &ast::Value) -> SqlResult<JsonPath> {
    JsonPath::parse(&text_of(value)?)
}

/// # Errors
/// 1064: paths and defaults are literal text.
fn text_of(value: &ast::Value) -> SqlResult<String> {
    match value {
        ast::Value::SingleQuotedString(text) | ast::Value::DoubleQuotedString(text) => {
            Ok(text.clone())
        }
        other => Err(SqlError::syntax(format!("near '{other}'"))),
    }
}
