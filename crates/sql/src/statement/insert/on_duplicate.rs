//! ON DUPLICATE KEY UPDATE: what its expressions may read, which is the row that is there, the row
//! to be inserted, and the row of the SELECT's tables that the latter was made of.

use sqlparser::ast::{self, OnInsert, SetExpr};

use super::{Noted, Source, assigned_column, store_literals};
use crate::binder::{BindContext, Scope, ScopeColumn, bind_expr, plan_query};
use crate::error::{SqlError, SqlResult};
use crate::parser::VALUES_ALIAS;
use crate::plan::{Expr, walk};
use crate::statement::generated::refuse_value;
use crate::statement::names::{is_default, parts};
use crate::statement::note_param;
use crate::statement::target::Target;
use crate::types::ColumnMeta;

/// Position and value of each assignment; `None` is DEFAULT. An expression reads the row that is
/// there, followed by what `source` gives behind the columns of the INSERT: the columns of the
/// SELECT's tables that the expressions name.
pub(super) fn plan(
    context: &BindContext<'_>,
    insert: &ast::Insert,
    target: &Target,
    source: &mut Source,
    noted: &mut Noted,
) -> SqlResult<Vec<(usize, Option<Expr>)>> {
    let assignments = match &insert.on {
        None => return Ok(Vec::new()),
        Some(OnInsert::DuplicateKeyUpdate(assignments)) => assignments,
        Some(_) => return Err(SqlError::not_supported("ON CONFLICT")),
    };
    let selected = columns_of_tables(context, insert, source);
    let scope = scope_of(insert, target, &selected);
    let width = target.table.columns.len();
    let mut bound = Vec::with_capacity(assignments.len());
    let mut read = vec![false; selected.len()];
    for assignment in assignments {
        let at = assigned_column(assignment, target)?;
        if is_default(&assignment.value) {
            bound.push((at, None));
            continue;
        }
        refuse_value(&target.table, at)?;
        let value = &assignment.value;
        let mut expr = bind_expr(context, &scope, value, "field list", &mut noted.reads)?;
        if let Some(column) = target.table.columns.get(at) {
            note_param(&mut noted.params, &expr, &column.ty);
            expr = expr.stored_in(&column.ty);
        }
        walk::references(&expr, &mut |(depth, slot)| {
            if depth != 0 {
                return;
            }
            match slot.checked_sub(width).and_then(|slot| read.get_mut(slot)) {
                Some(read) => *read = true,
                None => noted.reads_target = true,
            }
        });
        bound.push((at, Some(expr)));
    }
    if read.contains(&true) {
        select_more(context, insert, target, source, (&selected, &read))?;
        let place = |slot: usize| read.iter().take(slot).filter(|read| **read).count();
        for expr in bound.iter_mut().filter_map(|(_, expr)| expr.as_mut()) {
            walk::remap(expr, &mut |(depth, slot)| match slot.checked_sub(width) {
                Some(slot) if depth == 0 => (0, width + place(slot)),
                _ => (depth, slot),
            });
        }
    }
    Ok(bound)
}

/// The names an expression may use: columns of the table and of the SELECT's tables alike, then
/// those of the row to be inserted.
fn scope_of(insert: &ast::Insert, target: &Target, selected: &[ColumnMeta]) -> Scope {
    let table = &target.table;
    let mut new_row = Scope::of_table(table, VALUES_ALIAS);
    if let Some(alias) = &insert.insert_alias {
        let mut aliased = Scope::of_table(table, &parts(&alias.row_alias).join("."));
        for (column, name) in aliased
            .columns
            .iter_mut()
            .zip(alias.col_aliases.iter().flatten())
        {
            column.name.clone_from(&name.value);
        }
        aliased.outer = Some(Box::new(new_row));
        new_row = aliased;
    }
    let mut scope = Scope::of_table(table, &table.name);
    scope
        .columns
        .extend(selected.iter().map(|column| ScopeColumn {
            database: (!column.schema.is_empty()).then(|| column.schema.clone()),
            table: (!column.table.is_empty()).then(|| column.table.clone()),
            name: column.name.clone(),
            ty: column.ty.clone(),
            nullable: true,
        }));
    scope.outer = Some(Box::new(new_row));
    scope
}

/// The SELECT of an INSERT, where its rows are rows of its tables: without groups, and no UNION.
fn plain_select(query: &ast::Query) -> Option<&ast::Select> {
    let SetExpr::Select(select) = query.body.as_ref() else {
        return None;
    };
    let groups = match &select.group_by {
        ast::GroupByExpr::Expressions(keys, _) => !keys.is_empty(),
        ast::GroupByExpr::All(_) => true,
    };
    let is_plain =
        !groups && select.having.is_none() && select.distinct.is_none() && !select.from.is_empty();
    is_plain.then_some(select.as_ref())
}

/// The query with `items` behind those of its SELECT.
fn with_items(query: &ast::Query, items: Vec<ast::SelectItem>) -> ast::Query {
    let mut more = query.clone();
    if let SetExpr::Select(select) = more.body.as_mut() {
        select.projection.extend(items);
    }
    more
}

/// The columns of the SELECT's tables; none where its rows are not theirs.
fn columns_of_tables(
    context: &BindContext<'_>,
    insert: &ast::Insert,
    source: &Source,
) -> Vec<ColumnMeta> {
    let (Source::Query(plan), Some(query)) = (source, &insert.source) else {
        return Vec::new();
    };
    if plain_select(query).is_none() {
        return Vec::new();
    }
    let all = ast::SelectItem::Wildcard(ast::WildcardAdditionalOptions::default());
    let unnamed = BindContext {
        source: None,
        ..*context
    };
    // An aggregate makes one group of all rows: then no column of a table is one of its own.
    let Ok(whole) = plan_query(&unnamed, &with_items(query, vec![all])) else {
        return Vec::new();
    };
    whole.columns.into_iter().skip(plan.columns.len()).collect()
}

/// Lets the SELECT give the columns that are read, too.
fn select_more(
    context: &BindContext<'_>,
    insert: &ast::Insert,
    target: &Target,
    source: &mut Source,
    (selected, read): (&[ColumnMeta], &[bool]),
) -> SqlResult<()> {
    let (Source::Query(plan), Some(query)) = (source, &insert.source) else {
        return Err(SqlError::internal("columns of a SELECT that is not there"));
    };
    let name = |text: &String| ast::Ident::with_quote('`', text);
    let items = selected.iter().zip(read).filter(|(_, read)| **read);
    let items = items.map(|(column, _)| {
        let names = vec![name(&column.table), name(&column.name)];
        ast::SelectItem::UnnamedExpr(ast::Expr::CompoundIdentifier(names))
    });
    let unnamed = BindContext {
        source: None,
        ..*context
    };
    let inserted = plan.columns.len();
    let mut more = plan_query(&unnamed, &with_items(query, items.collect()))?;
    let columns: Vec<usize> = super::named_columns(insert, target)?;
    store_literals(&mut more, &columns, &target.table);
    assert!(
        more.columns.len() == inserted + read.iter().filter(|read| **read).count(),
        "the SELECT gives what it gave and the columns that are read"
    );
    **plan = more;
    Ok(())
}
