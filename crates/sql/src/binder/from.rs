//! FROM: tables, views, derived tables and joins.

use std::sync::Arc;

use sqlparser::ast;

use super::generated::held_by_indexes;
use super::query::{Bound, BoundQuery, finish};
use super::scope::{ColumnName, Frame, FrameColumn, column_expr, same_name};
use super::select::SelectParts;
use super::{Binder, TableRead};
use crate::catalog::{Table, View};
use crate::error::{SqlError, SqlResult};
use crate::expr::{CompareOp, Expr, ExprKind};
use crate::planner::ModifyTable;
use crate::planner::logical::{Group, Hints, Leaf, Member, Source, Tree};
use crate::planner::physical::JoinKind;
use crate::planner::walk;

/// Views and derived tables inside each other.
const NESTING_MAX: usize = 32;
/// Tables of one join, MySQL's limit.
const TABLES_MAX: usize = 61;
/// Nodes of a derived table's expression that may be put in the place of its name. Views on views
/// that each use a column twice would otherwise double it at every step.
const MERGED_NODES_MAX: usize = 64;

/// Slots and names handed out while a FROM clause is bound.
#[derive(Debug, Default)]
pub(crate) struct FromState {
    /// Next free slot.
    pub next: usize,
    /// Tables to be joined, those of merged views and derived tables counted singly.
    leaves: usize,
    /// Aliases so far, with their database.
    names: Vec<(Option<String>, String)>,
    /// UPDATE and DELETE: every stored table gets a slot for its row key.
    pub with_keys: bool,
    /// Stored tables, for UPDATE and DELETE.
    pub tables: Vec<ModifyTable>,
}

/// A bound part of a FROM clause.
struct Part {
    tree: Tree,
    columns: Vec<FrameColumn>,
}

impl Binder<'_> {
    /// Binds a FROM clause to a group and the columns it offers.
    pub(crate) fn bind_from(
        &mut self,
        from: &[ast::TableWithJoins],
        state: &mut FromState,
    ) -> SqlResult<(Group, Vec<FrameColumn>)> {
        let tables = from.iter().map(count_tables).sum::<usize>();
        if tables > TABLES_MAX {
            return Err(too_many_tables());
        }
        state.leaves += tables;
        let mut group = Group::default();
        let mut columns = Vec::new();
        for table in from {
            let part = self.bind_joined(table, state, false)?;
            group.absorb(part.tree);
            columns.extend(part.columns);
        }
        Ok((group, columns))
    }

    fn bind_joined(
        &mut self,
        table: &ast::TableWithJoins,
        state: &mut FromState,
        nullable: bool,
    ) -> SqlResult<Part> {
        let outer = nullable || table.joins.iter().any(|join| is_outer(&join.join_operator));
        let mut left = self.bind_factor(&table.relation, state, outer)?;
        for join in &table.joins {
            let right = self.bind_factor(&join.relation, state, outer)?;
            left = self.bind_join(left, right, &join.join_operator)?;
        }
        Ok(left)
    }

    fn bind_join(&mut self, left: Part, right: Part, op: &ast::JoinOperator) -> SqlResult<Part> {
        use ast::JoinOperator as J;
        match op {
            J::Join(constraint) | J::Inner(constraint) | J::CrossJoin(constraint) => {
                self.join_inner(left, right, constraint, false)
            }
            J::StraightJoin(constraint) => self.join_inner(left, right, constraint, true),
            J::Left(constraint) | J::LeftOuter(constraint) => {
                self.join_outer(left, right, constraint, false)
            }
            J::Right(constraint) | J::RightOuter(constraint) => {
                self.join_outer(left, right, constraint, true)
            }
            J::FullOuter(_) => Err(SqlError::not_supported("FULL OUTER JOIN")),
            _ => Err(SqlError::not_supported("this kind of join")),
        }
    }

    fn join_inner(
        &mut self,
        left: Part,
        right: Part,
        constraint: &ast::JoinConstraint,
        straight: bool,
    ) -> SqlResult<Part> {
        let (columns, conditions) =
            self.bind_constraint(left.columns, right.columns, constraint, false)?;
        let mut group = left.tree.into_group();
        group.absorb(right.tree);
        group.conjuncts.extend(conditions);
        group.straight |= straight;
        Ok(Part {
            tree: Tree::Group(group),
            columns,
        })
    }

    fn join_outer(
        &mut self,
        mut left: Part,
        mut right: Part,
        constraint: &ast::JoinConstraint,
        reversed: bool,
    ) -> SqlResult<Part> {
        if matches!(constraint, ast::JoinConstraint::None) {
            return Err(SqlError::syntax("an outer join needs ON or USING"));
        }
        let optional = if reversed { &mut left } else { &mut right };
        for column in &mut optional.columns {
            column.expr.nullable = true;
        }
        let (columns, on) =
            self.bind_constraint(left.columns, right.columns, constraint, reversed)?;
        let (kept, optional) = if reversed {
            (right.tree, left.tree)
        } else {
            (left.tree, right.tree)
        };
        let mut group = kept.into_group();
        group.members.push(Member {
            kind: JoinKind::Left,
            slots: optional.slots(),
            tree: optional,
            on,
        });
        Ok(Part {
            tree: Tree::Group(group),
            columns,
        })
    }

    /// The joined columns in `*` order and the join condition.
    fn bind_constraint(
        &mut self,
        left: Vec<FrameColumn>,
        right: Vec<FrameColumn>,
        constraint: &ast::JoinConstraint,
        reversed: bool,
    ) -> SqlResult<(Vec<FrameColumn>, Vec<Expr>)> {
        let names: Vec<String> = match constraint {
            ast::JoinConstraint::None => Vec::new(),
            ast::JoinConstraint::On(condition) => {
                let mut columns = left;
                columns.extend(right);
                return self.bind_on(columns, condition);
            }
            ast::JoinConstraint::Using(names) => names.iter().map(last_name).collect(),
            ast::JoinConstraint::Natural => left
                .iter()
                .filter(|l| !l.hidden)
                .filter(|l| {
                    right
                        .iter()
                        .any(|r| !r.hidden && same_name(&l.name, &r.name))
                })
                .map(|l| l.name.clone())
                .collect(),
        };
        coalesce(left, right, &names, reversed)
    }

    fn bind_on(
        &mut self,
        columns: Vec<FrameColumn>,
        condition: &ast::Expr,
    ) -> SqlResult<(Vec<FrameColumn>, Vec<Expr>)> {
        self.frames.push(Frame::new(columns, "on clause"));
        let bound = self.bind_scalar(condition);
        let frame = self.frames.pop();
        let mut conjuncts = Vec::new();
        split_and(bound?, &mut conjuncts);
        Ok((frame.map(|f| f.columns).unwrap_or_default(), conjuncts))
    }

    fn bind_factor(
        &mut self,
        factor: &ast::TableFactor,
        state: &mut FromState,
        nullable: bool,
    ) -> SqlResult<Part> {
        match factor {
            ast::TableFactor::Table {
                name,
                alias,
                args: None,
                partitions,
                index_hints,
                ..
            } => {
                if !partitions.is_empty() {
                    return Err(SqlError::not_supported("PARTITION"));
                }
                let mut part = self.bind_table(name, alias.as_ref(), state, nullable)?;
                if let Tree::Leaf(leaf) = &mut part.tree {
                    leaf.hints = hints(index_hints);
                }
                Ok(part)
            }
            ast::TableFactor::Derived {
                lateral,
                subquery,
                alias,
                ..
            } => {
                if *lateral {
                    return Err(SqlError::not_supported("LATERAL"));
                }
                let Some(alias) = alias else {
                    return Err(SqlError::new(
                        1248,
                        "42000",
                        "Every derived table must have its own alias",
                    ));
                };
                let bound = self.bind_derived_query(subquery)?;
                let names = alias_columns(alias);
                state.claim(None, &alias.name.value)?;
                Self::add_derived(bound, &alias.name.value, &names, state, nullable)
            }
            ast::TableFactor::NestedJoin {
                table_with_joins,
                alias: None,
            } => self.bind_joined(table_with_joins, state, nullable),
            ast::TableFactor::JsonTable { .. } => Err(SqlError::not_supported("JSON_TABLE")),
            other => Err(SqlError::not_supported(other.to_string())),
        }
    }

    fn bind_derived_query(&mut self, query: &ast::Query) -> SqlResult<Bound> {
        self.nesting += 1;
        let bound = if self.nesting > NESTING_MAX {
            Err(SqlError::new(
                1473,
                "HY000",
                "Too high level of nesting for select",
            ))
        } else {
            self.bind_query_parts(query)
        };
        self.nesting -= 1;
        bound
    }

    fn bind_table(
        &mut self,
        name: &ast::ObjectName,
        alias: Option<&ast::TableAlias>,
        state: &mut FromState,
        nullable: bool,
    ) -> SqlResult<Part> {
        let (database, table) = split_name(name)?;
        let alias_name = alias.map_or(table.as_str(), |alias| alias.name.value.as_str());
        if database.is_none() {
            if let Some(part) = self.bind_cte(&table, alias_name, state, nullable)? {
                return Ok(part);
            }
            if table.eq_ignore_ascii_case("dual") {
                return Ok(Part {
                    tree: Tree::Group(Group::default()),
                    columns: Vec::new(),
                });
            }
        }
        let database = match &database {
            Some(database) => database.clone(),
            None => self.database()?.to_string(),
        };
        let catalog = match self.view_database {
            None => self.context.catalog,
            // The session's temporary tables mean nothing to a view.
            Some(_) => self.context.catalog.stored(),
        };
        state.claim(Some(&database), alias_name)?;
        if let Some(view) = catalog.view(&database, &table).cloned() {
            return self.bind_view(&view, alias_name, state, nullable);
        }
        match catalog.table(&database, &table) {
            Ok(found) => {
                let found = found.clone();
                self.add_stored(&found, alias_name, state)
            }
            Err(error) => match self.context.virtual_tables.table(&database, &table) {
                Some(found) => Ok(add_virtual(&found, &database, alias_name, state)),
                None if database.eq_ignore_ascii_case("information_schema") => Err(SqlError::new(
                    1109,
                    "42S02",
                    format!(
                        "Unknown table '{}' in information_schema",
                        table.to_uppercase()
                    ),
                )),
                None => Err(error),
            },
        }
    }

    /// Notes that the statement reads a stored table.
    pub(crate) fn note_table(&mut self, table: TableRead) {
        if !self.tables.iter().any(|(id, ..)| *id == table.0) {
            self.tables.push(table);
        }
    }

    fn add_stored(
        &mut self,
        table: &Arc<Table>,
        alias: &str,
        state: &mut FromState,
    ) -> SqlResult<Part> {
        if !state.with_keys {
            self.note_table((table.id, table.database.clone(), table.name.clone()));
        }
        let slots = state.take(table.columns.len());
        let key_slot = state.with_keys.then(|| state.take(1).start);
        if state.with_keys {
            state.tables.push(ModifyTable {
                id: table.id,
                database: table.database.clone(),
                table: table.name.clone(),
                alias: alias.to_string(),
                offset: slots.start,
                width: slots.len(),
            });
        }
        Ok(Part {
            columns: table_columns(table, &table.database, alias, slots.start),
            tree: Tree::Leaf(Leaf {
                source: Source::Stored(table.clone()),
                alias: alias.to_string(),
                slots,
                key_slot,
                hints: Hints::default(),
                held: held_by_indexes(self.context, table)?,
            }),
        })
    }

    fn bind_view(
        &mut self,
        view: &Arc<View>,
        alias: &str,
        state: &mut FromState,
        nullable: bool,
    ) -> SqlResult<Part> {
        let invalid = |_| {
            SqlError::new(
                1356,
                "HY000",
                format!(
                    "View '{}.{}' references invalid table(s) or column(s) or function(s) or \
                     definer/invoker of view lack rights to use them",
                    view.database, view.name
                ),
            )
        };
        let statements = crate::parser::parse(&view.query, self.context.sql_mode.of_view_text())?;
        let Some(ast::Statement::Query(query)) = statements.into_iter().next().map(|p| p.statement)
        else {
            return Err(SqlError::internal(format!(
                "the text of view {}.{} is no query",
                view.database, view.name
            )));
        };
        let frames = std::mem::take(&mut self.frames);
        let ctes = std::mem::take(&mut self.ctes);
        let database = self.view_database.replace(view.database.clone());
        let bound = self.bind_derived_query(&query);
        self.frames = frames;
        self.ctes = ctes;
        self.view_database = database;
        let bound = bound.map_err(|error| match error.code {
            1054 | 1146 | 1049 => invalid(error),
            _ => error,
        })?;
        let mut part = Self::add_derived(bound, alias, &view.columns, state, nullable)?;
        for column in &mut part.columns {
            column.database = Some(view.database.clone());
        }
        Ok(part)
    }

    /// Makes a bound subquery part of this FROM clause: merged when it is only a selection and
    /// projection, otherwise computed on its own.
    fn add_derived(
        bound: Bound,
        alias: &str,
        names: &[String],
        state: &mut FromState,
        nullable: bool,
    ) -> SqlResult<Part> {
        match bound {
            Bound::Select(parts)
                if !state.with_keys
                    && state.leaves + parts.group.leaves() <= TABLES_MAX
                    && mergeable(&parts, nullable) =>
            {
                state.leaves += parts.group.leaves();
                merge(*parts, alias, names, state)
            }
            bound => {
                let query = finish(bound)?;
                add_computed(query, alias, names, state)
            }
        }
    }

    fn bind_cte(
        &mut self,
        name: &str,
        alias: &str,
        state: &mut FromState,
        nullable: bool,
    ) -> SqlResult<Option<Part>> {
        let Some(index) = self.ctes.iter().rposition(|cte| same_name(&cte.name, name)) else {
            return Ok(None);
        };
        state.claim(None, alias)?;
        let cte = self.ctes[index].clone();
        if let Some((id, columns)) = &cte.running {
            let slots = state.take(columns.len());
            let columns = columns
                .iter()
                .enumerate()
                .map(|(at, column)| FrameColumn {
                    database: None,
                    table: Some(alias.to_string()),
                    name: column.name.clone(),
                    expr: column_expr(slots.start + at, column.ty.clone(), true),
                    origin: None,
                    hidden: false,
                })
                .collect();
            let tree = Tree::Leaf(Leaf {
                source: Source::Cte(*id),
                alias: alias.to_string(),
                slots,
                key_slot: None,
                hints: Hints::default(),
                held: Vec::new(),
            });
            return Ok(Some(Part { tree, columns }));
        }
        let bound = self.bind_cte_query(index, &cte)?;
        Self::add_derived(bound, alias, &cte.columns, state, nullable).map(Some)
    }

    /// The current database.
    pub(crate) fn database(&self) -> SqlResult<&str> {
        self.view_database
            .as_deref()
            .or(self.context.database)
            .ok_or_else(|| SqlError::new(1046, "3D000", "No database selected"))
    }
}

impl FromState {
    fn take(&mut self, count: usize) -> std::ops::Range<usize> {
        let start = self.next;
        self.next += count;
        start..self.next
    }

    fn claim(&mut self, database: Option<&str>, alias: &str) -> SqlResult<()> {
        let taken = self.names.iter().any(|(known_database, known)| {
            same_name(known, alias)
                && match (known_database, database) {
                    (Some(a), Some(b)) => same_name(a, b),
                    _ => true,
                }
        });
        if taken {
            return Err(SqlError::new(
                1066,
                "42000",
                format!("Not unique table/alias: '{alias}'"),
            ));
        }
        self.names
            .push((database.map(str::to_string), alias.to_string()));
        Ok(())
    }
}

/// Tables written in one item of a FROM clause; brackets are bounded by the parser.
fn count_tables(item: &ast::TableWithJoins) -> usize {
    let factors = item.joins.iter().map(|join| &join.relation);
    std::iter::once(&item.relation)
        .chain(factors)
        .map(|factor| match factor {
            ast::TableFactor::NestedJoin {
                table_with_joins, ..
            } => count_tables(table_with_joins),
            _ => 1,
        })
        .sum()
}

fn too_many_tables() -> SqlError {
    SqlError::new(
        1116,
        "HY000",
        format!("Too many tables; MySQL can only use {TABLES_MAX} tables in a join"),
    )
}

/// Joins two sides USING `names`: each pair is shown once, first, and compared. Their order is
/// that of the side they are shown from, however USING has them.
fn coalesce(
    mut left: Vec<FrameColumn>,
    mut right: Vec<FrameColumn>,
    names: &[String],
    reversed: bool,
) -> SqlResult<(Vec<FrameColumn>, Vec<Expr>)> {
    let shown_side = if reversed { &right } else { &left };
    let place = |name: &&String| {
        let named = |c: &FrameColumn| !c.hidden && same_name(&c.name, name);
        shown_side.iter().position(named)
    };
    let mut names: Vec<&String> = names.iter().collect();
    names.sort_by_key(place);
    let mut merged = Vec::new();
    let mut hidden = Vec::new();
    let mut conditions = Vec::new();
    for name in names {
        let l = take_column(&mut left, name)?;
        let r = take_column(&mut right, name)?;
        conditions.push(Expr::compare(
            CompareOp::Eq,
            l.expr.clone(),
            r.expr.clone(),
        )?);
        let (shown, mut other) = if reversed { (r, l) } else { (l, r) };
        other.hidden = true;
        merged.push(shown);
        hidden.push(other);
    }
    if reversed {
        merged.extend(right);
        merged.extend(left);
    } else {
        merged.extend(left);
        merged.extend(right);
    }
    merged.extend(hidden);
    Ok((merged, conditions))
}

/// Splits a condition at its ANDs.
pub(crate) fn split_and(expr: Expr, conjuncts: &mut Vec<Expr>) {
    match expr.kind {
        ExprKind::And(left, right) => {
            split_and(*left, conjuncts);
            split_and(*right, conjuncts);
        }
        _ => conjuncts.push(expr),
    }
}

fn is_outer(op: &ast::JoinOperator) -> bool {
    use ast::JoinOperator as J;
    matches!(
        op,
        J::Left(_) | J::LeftOuter(_) | J::Right(_) | J::RightOuter(_)
    )
}

fn last_name(name: &ast::ObjectName) -> String {
    name.0
        .last()
        .and_then(|part| part.as_ident())
        .map_or_else(String::new, |ident| ident.value.clone())
}

/// `table` or `database.table`.
pub(crate) fn split_name(name: &ast::ObjectName) -> SqlResult<(Option<String>, String)> {
    let mut parts = Vec::new();
    for part in &name.0 {
        match part.as_ident() {
            Some(ident) => parts.push(ident.value.clone()),
            None => return Err(SqlError::not_supported(name.to_string())),
        }
    }
    match (parts.pop(), parts.pop(), parts.is_empty()) {
        (Some(table), database, true) => Ok((database, table)),
        _ => Err(SqlError::syntax(format!("near '{name}'"))),
    }
}

fn alias_columns(alias: &ast::TableAlias) -> Vec<String> {
    alias.columns.iter().map(|c| c.name.value.clone()).collect()
}

fn hints(written: &[ast::TableIndexHints]) -> Hints {
    let mut hints = Hints::default();
    for hint in written {
        let names = hint.index_names.iter().map(|name| name.value.clone());
        match hint.hint_type {
            ast::TableIndexHintType::Use | ast::TableIndexHintType::Force => {
                hints.only.get_or_insert_default().extend(names);
            }
            ast::TableIndexHintType::Ignore => hints.never.extend(names),
        }
    }
    hints
}

fn table_columns(
    table: &Arc<Table>,
    database: &str,
    alias: &str,
    start: usize,
) -> Vec<FrameColumn> {
    table
        .visible_columns()
        .map(|(at, column)| FrameColumn {
            database: Some(database.to_string()),
            table: Some(alias.to_string()),
            name: column.name.clone(),
            expr: column_expr(start + at, column.ty.clone(), !column.not_null),
            origin: Some((table.clone(), at)),
            hidden: false,
        })
        .collect()
}

fn add_virtual(table: &Arc<Table>, database: &str, alias: &str, state: &mut FromState) -> Part {
    let slots = state.take(table.columns.len());
    Part {
        columns: table_columns(table, database, alias, slots.start),
        tree: Tree::Leaf(Leaf {
            source: Source::Virtual(table.clone()),
            alias: alias.to_string(),
            slots,
            key_slot: None,
            hints: Hints::default(),
            held: Vec::new(),
        }),
    }
}

fn add_computed(
    query: BoundQuery,
    alias: &str,
    names: &[String],
    state: &mut FromState,
) -> SqlResult<Part> {
    let slots = state.take(query.columns.len());
    let mut columns = Vec::with_capacity(query.columns.len());
    for (at, column) in query.columns.iter().enumerate() {
        columns.push(FrameColumn {
            database: None,
            table: Some(alias.to_string()),
            name: column.name.clone(),
            expr: column_expr(slots.start + at, column.ty.clone(), !column.not_null),
            origin: None,
            hidden: false,
        });
    }
    rename(&mut columns, names)?;
    Ok(Part {
        columns,
        tree: Tree::Leaf(Leaf {
            source: Source::Derived(Box::new(query.node), query.rows),
            alias: alias.to_string(),
            slots,
            key_slot: None,
            hints: Hints::default(),
            held: Vec::new(),
        }),
    })
}

/// Gives columns the names of an alias list, and checks that names are unique.
fn rename(columns: &mut [FrameColumn], names: &[String]) -> SqlResult<()> {
    if !names.is_empty() {
        if names.len() != columns.len() {
            return Err(SqlError::new(
                1353,
                "HY000",
                "In definition of view, derived table or common table expression, SELECT list \
                 and column names list have different column counts",
            ));
        }
        for (column, name) in columns.iter_mut().zip(names) {
            column.name.clone_from(name);
        }
    }
    for (at, column) in columns.iter().enumerate() {
        if columns[..at]
            .iter()
            .any(|c| same_name(&c.name, &column.name))
        {
            return Err(SqlError::new(
                1060,
                "42S21",
                format!("Duplicate column name '{}'", column.name),
            ));
        }
    }
    Ok(())
}

/// A plain selection and projection can join its members into the enclosing group.
fn mergeable(parts: &SelectParts, nullable: bool) -> bool {
    parts.is_plain()
        && !parts.group.members.is_empty()
        && parts.outputs.iter().all(|output| {
            matches!(output.expr.kind, ExprKind::Column(_))
                || (!nullable
                    && walk::is_small(&output.expr, MERGED_NODES_MAX)
                    && !walk::has_subquery(&output.expr)
                    && !walk::is_volatile(&output.expr))
        })
}

fn merge(
    mut parts: SelectParts,
    alias: &str,
    names: &[String],
    state: &mut FromState,
) -> SqlResult<Part> {
    let by = state.take(parts.width).start;
    let mut shift =
        |(depth, index): walk::Reference| (depth, if depth == 0 { index + by } else { index });
    parts.group.relocate(by, &mut shift);
    let mut columns = Vec::with_capacity(parts.outputs.len());
    for output in parts.outputs {
        let mut expr = output.expr;
        walk::remap(&mut expr, &mut shift);
        columns.push(FrameColumn {
            database: None,
            table: Some(alias.to_string()),
            name: output.meta.name,
            expr,
            origin: output.origin,
            hidden: false,
        });
    }
    rename(&mut columns, names)?;
    Ok(Part {
        tree: Tree::Group(parts.group),
        columns,
    })
}

fn take_column(columns: &mut Vec<FrameColumn>, name: &str) -> SqlResult<FrameColumn> {
    let wanted = ColumnName {
        database: None,
        table: None,
        column: name,
    };
    let frame = Frame::new(std::mem::take(columns), "from clause");
    let found = frame.find_column(&wanted);
    *columns = frame.columns;
    match found? {
        Some(at) => Ok(columns.remove(at)),
        None => Err(SqlError::unknown_column(name, "from clause")),
    }
}
