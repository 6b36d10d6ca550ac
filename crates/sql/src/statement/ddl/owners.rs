//! Rows that are there already when a definition changes whose they are: each is looked at, chunk by
//! chunk as indexes are filled, and those without owner wait for one.

use std::sync::Arc;

use manxdb_storage::KeyRange;

use super::DdlContext;
use crate::catalog::unowned::unowned_rows_prefix;
use crate::catalog::{Table, TableId};
use crate::encoding;
use crate::error::{SqlError, SqlResult};
use crate::statement::owners::{OwnerGraph, look_at_all, seal_all};

/// Whether some row of `table` has no owner.
pub(super) fn has_unowned_rows(context: &DdlContext<'_>, table: TableId) -> SqlResult<bool> {
    let range = KeyRange::prefix(&unowned_rows_prefix(table));
    Ok(context.store.begin().count_up_to(&range, 1)? > 0)
}

/// Whether `old` and `new` say different things of whose rows are.
pub(super) fn says_otherwise(old: &Table, new: &Table) -> bool {
    let edges = |table: &Table| -> Vec<_> {
        let keys = table.foreign_keys.iter().filter(|key| key.edge.is_some());
        keys.map(|key| (key.edge, key.columns.clone(), key.ref_table.clone()))
            .collect()
    };
    old.data_subject != new.data_subject || edges(old) != edges(new)
}

/// Looks at the rows of a table, at those it owns, and at those that waited for it.
pub(super) fn look_at_rows(context: &DdlContext<'_>, database: &str, name: &str) -> SqlResult<()> {
    let catalog = context.store.current();
    let Some(graph) = OwnerGraph::of(&catalog).map(Arc::new) else {
        return Ok(());
    };
    let table = catalog.table(database, name)?;
    let Some(owned) = graph.table(table.id) else {
        return Ok(());
    };
    if owned.is_ownable() {
        look(context, &graph, table, encoding::index_prefix(table, 0))?;
    }
    for target in owned.owns_tables() {
        look(context, &graph, target, encoding::index_prefix(target, 0))?;
    }
    for child in owned.child_tables() {
        look(context, &graph, child, unowned_rows_prefix(child.id))?;
    }
    if table.sealing.vault().is_some() {
        let below = graph.sealed_below(table.id);
        seal_all(context.store, &graph, context.waiter, &below)?;
    }
    Ok(())
}

/// Looks at the rows that were owned through `table`, whose rows are gone since `before`.
pub(super) fn look_at_left(
    context: &DdlContext<'_>,
    before: Option<&OwnerGraph>,
    table: TableId,
) -> SqlResult<()> {
    let Some(owned) = before.and_then(|graph| graph.table(table)) else {
        return Ok(());
    };
    let catalog = context.store.current();
    let Some(graph) = OwnerGraph::of(&catalog).map(Arc::new) else {
        return Ok(());
    };
    for left in owned.owns_tables().chain(owned.child_tables()) {
        // What went too has nothing left to look at.
        if let Some(left) = graph.table(left.id).filter(|left| left.is_ownable()) {
            let prefix = encoding::index_prefix(&left.table, 0);
            look(context, &graph, &left.table, prefix)?;
        }
    }
    Ok(())
}

/// TRUNCATE looks at no row: it cannot tell which rows it would leave without owner.
///
/// # Errors
/// 51001.
pub(super) fn refuse_truncate(context: &DdlContext<'_>, table: &Table) -> SqlResult<()> {
    let mut keys = table.foreign_keys.iter();
    let owns = |kind: manxdb_ownership::EdgeKind| {
        kind.gives_ownership() && kind.leads_to_target() && context.foreign_key_checks
    };
    match keys.find(|key| key.edge.is_some_and(|edge| owns(edge.kind))) {
        None => Ok(()),
        Some(key) => {
            let text = format!(
                "Cannot truncate '{}.{}': rows of '{}' are owned through it; DELETE looks at each",
                table.database, table.name, key.ref_table
            );
            Err(SqlError::new(51001, "HY000", text))
        }
    }
}

fn look(
    context: &DdlContext<'_>,
    graph: &Arc<OwnerGraph>,
    table: &Table,
    prefix: Vec<u8>,
) -> SqlResult<()> {
    let zone = &context.eval.time_zone;
    look_at_all(context.store, graph, context.waiter, zone, (table, &prefix))
}
