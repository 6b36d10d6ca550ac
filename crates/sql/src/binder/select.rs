//! One SELECT, up to the point where its operators are chosen.

use sqlparser::ast;

use super::Binder;
use super::from::FromState;
use super::scope::{AliasUse, Frame, FrameColumn, Having, same_name};
use super::window::reads_window;
use crate::catalog::Table;
use crate::error::{SqlError, SqlResult};
use crate::plan::logical::Group;
use crate::plan::select::{Output, SelectParts};
use crate::plan::{AggregateKind, Expr, ExprKind};
use crate::planner::alternatives;
use crate::types::ColumnMeta;

impl Binder<'_> {
    /// Binds a SELECT with the ORDER BY and LIMIT that follow it.
    pub(crate) fn bind_select(
        &mut self,
        select: &ast::Select,
        order_by: &[ast::OrderByExpr],
        limit: Option<&ast::LimitClause>,
    ) -> SqlResult<SelectParts> {
        refuse_foreign(select)?;
        let names = self.take_item_names(select.projection.len());
        let mut state = FromState::default();
        let (mut group, columns) = self.bind_from(&select.from, &mut state)?;
        if select
            .select_modifiers
            .as_ref()
            .is_some_and(|m| m.straight_join)
        {
            group.straight = true;
        }
        self.frames.push(Frame::new(columns, "where clause"));
        let parts =
            self.bind_select_clauses(select, order_by, limit, group, state.next, names.as_deref());
        self.frames.pop();
        parts
    }

    fn bind_select_clauses(
        &mut self,
        select: &ast::Select,
        order_by: &[ast::OrderByExpr],
        limit: Option<&ast::LimitClause>,
        group: Group,
        width: usize,
        names: Option<&[String]>,
    ) -> SqlResult<SelectParts> {
        let mut parts = SelectParts {
            group,
            width,
            outputs: Vec::new(),
            keys: Vec::new(),
            calls: Vec::new(),
            aggregated: false,
            rollup: false,
            having: Vec::new(),
            windows: Vec::new(),
            distinct: is_distinct(select.distinct.as_ref())?,
            order: Vec::new(),
            limit: None,
            for_view: self.context.for_view,
        };
        if let Some(condition) = &select.selection {
            self.bind_where(condition, &mut parts)?;
        }
        self.define_windows(&select.named_window)?;
        self.enter_clause("field list", true)?;
        self.bind_items(&select.projection, names, &mut parts)?;
        self.bind_group_by(&select.group_by, &mut parts)?;
        if let Some(having) = &select.having {
            self.enter_clause("having clause", true)?;
            self.frame_mut()?.having = Some(Having {
                keys: parts.keys.clone(),
                outputs: parts.outputs.iter().map(|o| o.expr.clone()).collect(),
            });
            let bound = self.bind_scalar(having);
            self.frame_mut()?.having = None;
            let bound = bound?;
            self.refuse_window_alias(&bound)?;
            alternatives::split(bound, &mut parts.having);
        }
        self.enter_clause("order clause", true)?;
        let outputs: Vec<Expr> = parts.outputs.iter().map(|o| o.expr.clone()).collect();
        parts.order = self.bind_order(order_by, &outputs)?;
        parts.limit = self.bind_limit(limit)?;
        self.complete_groups(&mut parts)?;
        Ok(parts)
    }

    /// Aggregates and windows found, and everything behind them rewritten to read them.
    fn complete_groups(&mut self, parts: &mut SelectParts) -> SqlResult<()> {
        let frame = self.frame_mut()?;
        parts.calls = std::mem::take(&mut frame.calls);
        parts.windows = std::mem::take(&mut frame.windows);
        super::aggregate::check_grouping(&parts.calls, &parts.keys, parts.rollup)?;
        parts.aggregated = !parts.keys.is_empty()
            || parts
                .calls
                .iter()
                .any(|call| call.kind != AggregateKind::First);
        if parts.aggregated && parts.keys.is_empty() {
            // One row at most: its order means nothing, and nothing it reads need be grouped.
            parts.order.clear();
        }
        let columns = std::mem::take(&mut self.frame_mut()?.columns);
        let full = self.context.sql_mode.only_full_group_by;
        let mut done = super::group::rewrite(parts, &columns, full);
        if done.is_ok() && parts.distinct && full {
            done = super::distinct::check_order(parts, &columns);
        }
        self.frame_mut()?.columns = columns;
        done
    }

    /// HAVING chooses rows before windows see them: 3594.
    fn refuse_window_alias(&self, having: &Expr) -> SqlResult<()> {
        if !reads_window(having) {
            return Ok(());
        }
        let aliases = &self.frame()?.aliases;
        let alias = aliases.iter().find(|(_, expr)| reads_window(expr));
        let message = format!(
            "You cannot use the alias '{}' of an expression containing a window function in this \
             context.'",
            alias.map_or("", |(name, _)| name)
        );
        Err(SqlError::new(3594, "HY000", message))
    }

    pub(crate) fn enter_clause(&mut self, place: &'static str, aggregates: bool) -> SqlResult<()> {
        let frame = self.frame_mut()?;
        frame.place = place;
        frame.aggregates_allowed = aggregates;
        Ok(())
    }

    fn define_windows(&mut self, windows: &[ast::NamedWindowDefinition]) -> SqlResult<()> {
        self.frame_mut()?.named_windows = super::window_name::resolve(windows)?;
        Ok(())
    }

    fn bind_items(
        &mut self,
        items: &[ast::SelectItem],
        names: Option<&[String]>,
        parts: &mut SelectParts,
    ) -> SqlResult<()> {
        let aliases = items.iter().filter_map(|item| match item {
            ast::SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.clone()),
            _ => None,
        });
        self.frame_mut()?.written_aliases = aliases.collect();
        for (at, item) in items.iter().enumerate() {
            match item {
                ast::SelectItem::Wildcard(_) => self.expand(None, None, parts)?,
                ast::SelectItem::QualifiedWildcard(kind, _) => {
                    let ast::SelectItemQualifiedWildcardKind::ObjectName(name) = kind else {
                        return Err(SqlError::syntax(format!("near '{item}'")));
                    };
                    let (database, table) = super::from::split_name(name)?;
                    self.expand(database.as_deref(), Some(&table), parts)?;
                }
                ast::SelectItem::UnnamedExpr(expr) => {
                    let written = names.and_then(|names| names.get(at));
                    let name = item_name(expr, written.map(String::as_str));
                    self.bind_item(expr, name, parts)?;
                    if let Some(output) = parts.outputs.last_mut() {
                        name_as_defined(expr, &mut output.meta);
                    }
                }
                ast::SelectItem::ExprWithAlias { expr, alias } => {
                    self.bind_item(expr, alias.value.clone(), parts)?;
                }
                ast::SelectItem::ExprWithAliases { .. } => {
                    return Err(SqlError::syntax(format!("near '{item}'")));
                }
            }
        }
        self.frame_mut()?.written_aliases.clear();
        Ok(())
    }

    fn bind_item(
        &mut self,
        expr: &ast::Expr,
        name: String,
        parts: &mut SelectParts,
    ) -> SqlResult<()> {
        let bound = self.bind_scalar(expr)?;
        let frame = self.frame_mut()?;
        frame.aliases.push((name.clone(), bound.clone()));
        let output = output(bound, name, &frame.columns);
        parts.outputs.push(output);
        Ok(())
    }

    /// `*` and `table.*`.
    fn expand(
        &mut self,
        database: Option<&str>,
        table: Option<&str>,
        parts: &mut SelectParts,
    ) -> SqlResult<()> {
        let frame = self.frame_mut()?;
        let mut chosen: Vec<&FrameColumn> = frame
            .columns
            .iter()
            .filter(|column| match table {
                None => !column.hidden,
                Some(table) => {
                    column.table.as_deref().is_some_and(|t| same_name(t, table))
                        && database.is_none_or(|wanted| {
                            let known = column.database.as_deref();
                            known.is_some_and(|d| same_name(d, wanted))
                        })
                }
            })
            .collect();
        if table.is_some() {
            chosen.sort_by_key(|column| match column.expr.kind {
                ExprKind::Column(slot) => slot,
                _ => usize::MAX,
            });
        }
        if chosen.is_empty() {
            return Err(match table {
                None => SqlError::new(1096, "HY000", "No tables used"),
                Some(table) => SqlError::new(1051, "42S02", format!("Unknown table '{table}'")),
            });
        }
        let outputs: Vec<Output> = chosen
            .into_iter()
            .map(|column| output(column.expr.clone(), column.name.clone(), &frame.columns))
            .collect();
        for output in outputs {
            frame
                .aliases
                .push((output.meta.name.clone(), output.expr.clone()));
            parts.outputs.push(output);
        }
        Ok(())
    }

    fn bind_group_by(
        &mut self,
        group_by: &ast::GroupByExpr,
        parts: &mut SelectParts,
    ) -> SqlResult<()> {
        let ast::GroupByExpr::Expressions(keys, modifiers) = group_by else {
            return Err(SqlError::not_supported("GROUP BY ALL"));
        };
        for modifier in modifiers {
            match modifier {
                ast::GroupByWithModifier::Rollup => parts.rollup = true,
                other => return Err(SqlError::not_supported(other.to_string())),
            }
        }
        self.enter_clause("group statement", false)?;
        for key in keys {
            let bound = if let Some(position) = super::order::position(key) {
                position
                    .checked_sub(1)
                    .and_then(|index| parts.outputs.get(index))
                    .map(|output| output.expr.clone())
                    .ok_or_else(|| {
                        SqlError::unknown_column(&position.to_string(), "group statement")
                    })?
            } else {
                let bare = matches!(key, ast::Expr::Identifier(_));
                self.frame_mut()?.alias_use = if bare {
                    AliasUse::Settles
                } else {
                    AliasUse::Last
                };
                let bound = self.bind_scalar(key);
                self.frame_mut()?.alias_use = AliasUse::Never;
                bound?
            };
            if super::group::has_call(&bound) {
                return Err(SqlError::new(
                    1056,
                    "42000",
                    format!("Can't group on '{key}'"),
                ));
            }
            parts.keys.push(bound);
        }
        Ok(())
    }
}

fn is_distinct(distinct: Option<&ast::Distinct>) -> SqlResult<bool> {
    match distinct {
        None | Some(ast::Distinct::All) => Ok(false),
        Some(ast::Distinct::Distinct) => Ok(true),
        Some(ast::Distinct::On(_)) => Err(SqlError::not_supported("DISTINCT ON")),
    }
}

/// Clauses the parser knows from other databases.
fn refuse_foreign(select: &ast::Select) -> SqlResult<()> {
    let foreign = [
        (select.top.is_some(), "TOP"),
        (select.into.is_some(), "SELECT ... INTO"),
        (!select.lateral_views.is_empty(), "LATERAL VIEW"),
        (select.prewhere.is_some(), "PREWHERE"),
        (!select.connect_by.is_empty(), "CONNECT BY"),
        (!select.cluster_by.is_empty(), "CLUSTER BY"),
        (!select.distribute_by.is_empty(), "DISTRIBUTE BY"),
        (!select.sort_by.is_empty(), "SORT BY"),
        (select.qualify.is_some(), "QUALIFY"),
        (select.value_table_mode.is_some(), "SELECT AS VALUE"),
    ];
    match foreign.iter().find(|(used, _)| *used) {
        Some((_, name)) => Err(SqlError::not_supported(name)),
        None => Ok(()),
    }
}

/// What MySQL calls a select item without alias.
fn item_name(expr: &ast::Expr, written: Option<&str>) -> String {
    match expr {
        ast::Expr::Identifier(name) => name.value.clone(),
        ast::Expr::CompoundIdentifier(names) if !names[0].value.starts_with('@') => {
            names.last().map_or_else(String::new, |n| n.value.clone())
        }
        ast::Expr::Value(value) => match &value.value {
            ast::Value::SingleQuotedString(text) | ast::Value::DoubleQuotedString(text) => {
                text.clone()
            }
            ast::Value::Placeholder(_) => "?".to_string(),
            ast::Value::Null => "NULL".to_string(),
            ast::Value::Boolean(truth) => truth.to_string().to_uppercase(),
            _ => written.map_or_else(|| expr.to_string(), str::to_string),
        },
        _ => written.map_or_else(|| expr.to_string(), str::to_string),
    }
}

/// MySQL 8.0 calls a column of `information_schema` by its own name, in capitals, however it is
/// written: drizzle-kit and others look it up so.
fn name_as_defined(expr: &ast::Expr, meta: &mut ColumnMeta) {
    let plain = matches!(
        expr,
        ast::Expr::Identifier(_) | ast::Expr::CompoundIdentifier(_)
    );
    if plain && meta.schema.eq_ignore_ascii_case("information_schema") && !meta.org_name.is_empty()
    {
        meta.name.clone_from(&meta.org_name);
    }
}

/// A result column with the metadata clients see.
pub(crate) fn output(expr: Expr, name: String, columns: &[FrameColumn]) -> Output {
    let mut output = Output::computed(expr, name);
    let column = match output.expr.kind {
        ExprKind::Column(slot) => columns
            .iter()
            .find(|column| matches!(column.expr.kind, ExprKind::Column(s) if s == slot)),
        _ => None,
    };
    if let Some(column) = column {
        let meta = &mut output.meta;
        meta.table = column.table.clone().unwrap_or_default();
        meta.org_name.clone_from(&column.name);
        if let Some((table, at)) = &column.origin {
            describe_base(meta, table, *at);
            output.origin = Some((table.clone(), *at));
        }
    }
    output
}

fn describe_base(meta: &mut ColumnMeta, table: &Table, at: usize) {
    let column = &table.columns[at];
    meta.schema.clone_from(&table.database);
    meta.org_table.clone_from(&table.name);
    meta.org_name.clone_from(&column.name);
    meta.auto_increment = column.auto_increment;
    meta.primary_key = table.shows_as_primary(at);
    for index in &table.indexes {
        if index.columns.first().is_some_and(|c| c.column == at) {
            if index.unique && index.columns.len() == 1 {
                meta.unique_key = true;
            } else {
                meta.multiple_key = true;
            }
        }
    }
}
