//! Which names mean what.

use std::sync::Arc;

use crate::catalog::Table;
use crate::error::{SqlError, SqlResult};
use crate::plan::{Expr, ExprKind, walk};
use crate::types::DataType;

use crate::plan::AggregateCall;
use crate::plan::window::WindowCall;

/// Columns that names may refer to, in row order; `outer` is the enclosing query's scope.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// One entry a column of the row.
    pub columns: Vec<ScopeColumn>,
    /// Enclosing query.
    pub outer: Option<Box<Scope>>,
}

/// A column in a scope.
#[derive(Debug, Clone)]
pub struct ScopeColumn {
    /// Database, when it is a base table.
    pub database: Option<String>,
    /// Table alias.
    pub table: Option<String>,
    /// Column name.
    pub name: String,
    /// Type.
    pub ty: DataType,
    /// May be NULL.
    pub nullable: bool,
}

impl ScopeColumn {
    /// A place in the row that no client can name: a row key, a functional key part.
    #[must_use]
    pub fn unnamed(ty: DataType) -> Self {
        Self {
            database: None,
            table: Some("\0".to_string()),
            name: "\0".to_string(),
            ty,
            nullable: true,
        }
    }
}

impl Scope {
    /// The scope of one table under `alias`.
    #[must_use]
    pub fn of_table(table: &Table, alias: &str) -> Self {
        let columns = table
            .columns
            .iter()
            .map(|column| {
                if column.is_hidden() {
                    return ScopeColumn::unnamed(column.ty.clone());
                }
                ScopeColumn {
                    database: Some(table.database.clone()),
                    table: Some(alias.to_string()),
                    name: column.name.clone(),
                    ty: column.ty.clone(),
                    nullable: !column.not_null,
                }
            })
            .collect();
        Self {
            columns,
            outer: None,
        }
    }
}

/// A column that a name of a query level can mean.
#[derive(Debug, Clone)]
pub(crate) struct FrameColumn {
    pub database: Option<String>,
    pub table: Option<String>,
    pub name: String,
    /// What the name stands for, over the level's wide row.
    pub expr: Expr,
    /// Base column, for result metadata.
    pub origin: Option<(Arc<Table>, usize)>,
    /// The other side of a USING or NATURAL join: found only when qualified.
    pub hidden: bool,
}

impl FrameColumn {
    /// `database.table.column`, as error messages have it.
    pub fn full_name(&self) -> String {
        let mut name = String::new();
        for part in [&self.database, &self.table].into_iter().flatten() {
            name.push_str(part);
            name.push('.');
        }
        name + &self.name
    }
}

/// How select-list aliases take part in name lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AliasUse {
    Never,
    First,
    Last,
    /// As `Last`; but where several tables have such a column, the select list settles which one
    /// is meant: a bare name in GROUP BY.
    Settles,
}

/// What HAVING may read.
#[derive(Debug)]
pub(crate) struct Having {
    /// GROUP BY: its columns win over aliases.
    pub keys: Vec<Expr>,
    /// The select list.
    pub outputs: Vec<Expr>,
}

/// One query level being bound.
#[derive(Debug)]
pub(crate) struct Frame {
    pub columns: Vec<FrameColumn>,
    /// Select-list names and what they stand for.
    pub aliases: Vec<(String, Expr)>,
    /// While the select list is bound: all aliases in it.
    pub written_aliases: Vec<String>,
    pub alias_use: AliasUse,
    /// In HAVING: what columns may be read outside aggregates, group columns first.
    pub having: Option<Having>,
    /// MySQL's word for the clause being bound.
    pub place: &'static str,
    /// Aggregates are legal in this clause.
    pub aggregates_allowed: bool,
    /// Inside the arguments of an aggregate.
    pub in_aggregate: bool,
    pub calls: Vec<AggregateCall>,
    pub windows: Vec<WindowCall>,
    pub named_windows: Vec<super::window_name::NamedWindow>,
}

impl Frame {
    pub fn new(columns: Vec<FrameColumn>, place: &'static str) -> Self {
        Self {
            columns,
            aliases: Vec::new(),
            written_aliases: Vec::new(),
            alias_use: AliasUse::Never,
            having: None,
            place,
            aggregates_allowed: false,
            in_aggregate: false,
            calls: Vec::new(),
            windows: Vec::new(),
            named_windows: Vec::new(),
        }
    }

    pub fn of_scope(scope: &Scope, place: &'static str) -> Self {
        let columns = scope
            .columns
            .iter()
            .enumerate()
            .map(|(index, column)| FrameColumn {
                database: column.database.clone(),
                table: column.table.clone(),
                name: column.name.clone(),
                expr: column_expr(index, column.ty.clone(), column.nullable),
                origin: None,
                hidden: false,
            })
            .collect();
        Self::new(columns, place)
    }

    /// What `name` means here, or `None`; `own`: it is written at this level, not further in.
    pub fn find(&self, name: &ColumnName<'_>, own: bool) -> SqlResult<Option<&Expr>> {
        if let Some(having) = self.having.as_ref().filter(|_| !self.in_aggregate) {
            return if own {
                self.find_in_having(name, having)
            } else {
                self.find_around_having(name)
            };
        }
        if self.alias_use == AliasUse::First
            && let Some(expr) = self.find_alias(name)?
        {
            return Ok(Some(expr));
        }
        let column = self.find_column(name);
        if self.alias_use == AliasUse::Settles
            && column.is_err()
            && let Some(expr) = self.find_alias(name)?
        {
            return Ok(Some(expr));
        }
        if let Some(index) = column? {
            return Ok(Some(&self.columns[index].expr));
        }
        if matches!(self.alias_use, AliasUse::Last | AliasUse::Settles) {
            return self.find_alias(name);
        }
        // A subquery in the select list sees what stands before it.
        if !own && self.place == "field list" && !self.in_aggregate {
            return self.find_earlier_item(name);
        }
        Ok(None)
    }

    /// What an item of the select list before the one being bound is called.
    ///
    /// # Errors
    /// 1247 for an item with an aggregate or a window function, which is computed later, for the one
    /// being bound and for those behind it.
    fn find_earlier_item(&self, name: &ColumnName<'_>) -> SqlResult<Option<&Expr>> {
        let found = self.find_alias(name)?;
        let mut written = self.written_aliases.iter();
        let why = if found.is_some_and(super::group::has_call) {
            "reference to group function"
        } else if found.is_none()
            && name.table.is_none()
            && written.any(|alias| same_name(alias, name.column))
        {
            "forward reference in item list"
        } else {
            return Ok(found);
        };
        let message = format!("Reference '{}' not supported ({why})", name.column);
        Err(SqlError::new(1247, "42S22", message))
    }

    /// Group columns, then aliases, then columns of the select list; other columns do not exist
    /// here any more.
    fn find_in_having(&self, name: &ColumnName<'_>, having: &Having) -> SqlResult<Option<&Expr>> {
        let is_in = |list: &[Expr], expr: &Expr| list.iter().any(|known| walk::same(known, expr));
        // Ambiguous among the tables only matters when nothing nearer is meant.
        let column = self
            .find_column(name)
            .map(|at| at.map(|at| &self.columns[at].expr));
        if let Ok(Some(expr)) = column
            && is_in(&having.keys, expr)
        {
            return Ok(Some(expr));
        }
        if let Some(expr) = self.find_alias(name)? {
            return Ok(Some(expr));
        }
        Ok(column?.filter(|expr| is_in(&having.outputs, expr)))
    }

    /// A subquery in HAVING sees all columns, then aliases.
    fn find_around_having(&self, name: &ColumnName<'_>) -> SqlResult<Option<&Expr>> {
        match self.find_column(name)? {
            Some(at) => Ok(Some(&self.columns[at].expr)),
            None => self.find_alias(name),
        }
    }

    /// # Errors
    /// 1052 when select items that differ have the name.
    fn find_alias(&self, name: &ColumnName<'_>) -> SqlResult<Option<&Expr>> {
        if name.table.is_some() {
            return Ok(None);
        }
        let mut named = self
            .aliases
            .iter()
            .filter(|(alias, _)| same_name(alias, name.column))
            .map(|(_, expr)| expr);
        let first = named.next();
        match first {
            Some(first) if named.any(|other| !walk::same(first, other)) => {
                Err(self.ambiguous(name))
            }
            _ => Ok(first),
        }
    }

    fn ambiguous(&self, name: &ColumnName<'_>) -> SqlError {
        SqlError::new(
            1052,
            "23000",
            format!("Column '{}' in {} is ambiguous", name.text(), self.place),
        )
    }

    /// Position in `columns` of the column called `name`.
    pub fn find_column(&self, name: &ColumnName<'_>) -> SqlResult<Option<usize>> {
        let mut found: Option<usize> = None;
        for (index, column) in self.columns.iter().enumerate() {
            if !name.matches(column) {
                continue;
            }
            if let Some(earlier) = found {
                let same = walk::same(&self.columns[earlier].expr, &column.expr);
                if !same {
                    return Err(self.ambiguous(name));
                }
            }
            found.get_or_insert(index);
        }
        Ok(found)
    }
}

/// A column name with its qualifiers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ColumnName<'a> {
    pub database: Option<&'a str>,
    pub table: Option<&'a str>,
    pub column: &'a str,
}

impl ColumnName<'_> {
    fn matches(&self, column: &FrameColumn) -> bool {
        if !same_name(&column.name, self.column) {
            return false;
        }
        match self.table {
            None => !column.hidden,
            Some(table) => {
                column.table.as_deref().is_some_and(|t| same_name(t, table))
                    && self.database.is_none_or(|wanted| {
                        column
                            .database
                            .as_deref()
                            .is_some_and(|d| same_name(d, wanted))
                    })
            }
        }
    }

    pub fn text(&self) -> String {
        let mut text = String::new();
        for part in [self.database, self.table].into_iter().flatten() {
            text.push_str(part);
            text.push('.');
        }
        text.push_str(self.column);
        text
    }
}

/// Names compare without regard to case.
pub(crate) fn same_name(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
        || (!(a.is_ascii() && b.is_ascii()) && a.to_lowercase() == b.to_lowercase())
}

/// A reference to column `index` of the current row.
pub(crate) fn column_expr(index: usize, ty: DataType, nullable: bool) -> Expr {
    Expr {
        kind: ExprKind::Column(index),
        ty,
        nullable,
    }
}

/// `expr` as seen from `depth` queries further in.
pub(crate) fn seen_from(expr: &Expr, depth: usize) -> Expr {
    let mut expr = expr.clone();
    if depth > 0 {
        walk::remap(&mut expr, &mut |(d, index)| (d + depth, index));
    }
    expr
}
