//! Which keys of a table are blinded: decided when a key is made ([`crate::catalog::Blinding`]).
//!
//! | column | in keys of a table whose rows are sealed |
//! |---|---|
//! | text, bytes | blinded |
//! | any other | plain, unless it is `PERSONAL` |
//! | any, in a key that is `ORDERED` | plain |
//!
//! Without a vault, in temporary tables and in tables that are nobody's all keys are plain.

use manxdb_ownership::EdgeKind;
use sqlparser::ast;

use super::DdlContext;
use super::change::needs_copy;
use crate::catalog::{Catalog, ColumnId, IndexId, ROWS, Table, vault_error};
use crate::error::SqlResult;
use crate::parser::Annotations;
use crate::statement::owners::mutants::{OwnershipMutant, is_planted};

/// What an annotation says where it is the COMMENT, for tools that have no other place for it.
pub(crate) fn says(comment: &str, word: &str) -> bool {
    comment.trim().eq_ignore_ascii_case(word)
}

/// Whether the options of an index say ORDERED.
pub(super) fn is_ordered(options: &[ast::IndexOption]) -> bool {
    options.iter().any(|option| match option {
        ast::IndexOption::Using(ast::IndexType::Custom(word)) => says(&word.value, "ORDERED"),
        ast::IndexOption::Using(_) => false,
        ast::IndexOption::Comment(text) => says(text, "ORDERED"),
    })
}

/// Whether rows of `table` are sealed where there is a vault: they are people, or people's.
fn is_owned(catalog: &Catalog, table: &Table) -> bool {
    let is =
        |key: &crate::catalog::ForeignKey, kind| key.edge.is_some_and(|edge| edge.kind == kind);
    let mut own = table.foreign_keys.iter();
    if table.data_subject || own.any(|key| is(key, EdgeKind::OwnedBy)) {
        return true;
    }
    let mut referring = super::foreign::referring(catalog, &table.database, &table.name);
    referring.any(|(_, key)| is(key, EdgeKind::Owns))
}

/// The columns to be blinded in each key of `table`, as it is defined now.
pub(crate) fn wanted(catalog: &Catalog, table: &Table) -> Vec<(IndexId, Vec<ColumnId>)> {
    let is_sealed = !table.temporary && table.sealing.vault().is_some();
    if !is_sealed || !is_owned(catalog, table) || is_planted(OwnershipMutant::PlainKey) {
        return Vec::new();
    }
    let primary = table.primary_key.clone();
    let indexes = table.indexes.iter().map(|index| {
        let columns = index.columns.iter().map(|part| part.column);
        (index.id, columns.collect::<Vec<_>>())
    });
    let keys = std::iter::once((ROWS, primary)).chain(indexes);
    keys.filter(|(key, _)| !table.blinding.ordered.contains(key))
        .map(|(key, columns)| {
            let columns = columns.into_iter().filter_map(|at| {
                let column = table.columns.get(at)?;
                table.is_for_blinding(column).then_some(column.id)
            });
            (key, columns.collect())
        })
        .collect()
}

fn of(keys: &[(IndexId, Vec<ColumnId>)], key: IndexId) -> Vec<ColumnId> {
    let found = keys.iter().find(|(id, _)| *id == key);
    found.map_or_else(Vec::new, |(_, columns)| columns.clone())
}

/// Decides for a new table.
///
/// # Errors
/// 51005 when the vault makes no key.
pub(super) fn decide(
    context: &DdlContext<'_>,
    catalog: &Catalog,
    table: &mut Table,
) -> SqlResult<()> {
    table.blinding.without_key();
    table.sealing = context.store.sealing().clone();
    let keys = wanted(catalog, table);
    put(table, keys)
}

fn put(table: &mut Table, keys: Vec<(IndexId, Vec<ColumnId>)>) -> SqlResult<()> {
    let mut blinding = std::mem::take(&mut table.blinding);
    let made = blinding.decide(keys, || match table.sealing.vault() {
        Some(vault) => vault.take_key().map_err(|error| vault_error(table, error)),
        None => unreachable!("without a vault nothing is blinded"),
    });
    table.blinding = blinding;
    made
}

/// Decides for what `old` becomes: for new keys, and where all are made anew (`rebuilds`, or because rows
/// are copied) for each. An index that is to be made anew in place is another index.
///
/// # Errors
/// As [`decide`].
pub(super) fn decide_change(
    catalog: &Catalog,
    old: &Table,
    new: &mut Table,
    rebuilds: bool,
) -> SqlResult<()> {
    let mut keys = wanted(catalog, new);
    let mut renewed = Vec::new();
    if rebuilds {
        for index in &mut new.indexes {
            let known = old.indexes.iter().any(|other| other.id == index.id);
            if known && !is_same(&of(&keys, index.id), old.blinding.of(index.id)) {
                let id = IndexId(new.next_index_id);
                new.next_index_id += 1;
                renewed.push((index.id, id));
                index.id = id;
            }
        }
    }
    for (before, now) in renewed {
        for (key, _) in keys.iter_mut().filter(|(key, _)| *key == before) {
            *key = now;
        }
        rename(&mut new.blinding.ordered, before, now);
    }
    assert_eq!(
        new.blinding.of(ROWS),
        old.blinding.of(ROWS),
        "nothing is decided yet"
    );
    let moves = rebuilds && !is_same(&of(&keys, ROWS), old.blinding.of(ROWS));
    if moves || needs_copy(old, new) {
        return put(new, keys);
    }
    for (key, columns) in &mut keys {
        if *key == ROWS || old.indexes.iter().any(|index| index.id == *key) {
            *columns = old.blinding.of(*key).to_vec();
        }
    }
    // While an index that was replaced is in use, its entries are as they were.
    for index in &old.indexes {
        if !keys.iter().any(|(key, _)| *key == index.id) {
            keys.push((index.id, old.blinding.of(index.id).to_vec()));
        }
    }
    put(new, keys)
}

/// Says that the index `before` is called `now`.
pub(super) fn rename(ids: &mut [IndexId], before: IndexId, now: IndexId) {
    for id in ids.iter_mut().filter(|id| **id == before) {
        *id = now;
    }
}

fn is_same(some: &[ColumnId], others: &[ColumnId]) -> bool {
    some.len() == others.len() && some.iter().all(|column| others.contains(column))
}

/// Whether some key of `table` is blinded otherwise than it would be if it were made now.
fn is_outdated(catalog: &Catalog, table: &Table) -> bool {
    let keys = wanted(catalog, table);
    keys.iter()
        .any(|(key, columns)| !is_same(columns, table.blinding.of(*key)))
}

/// Makes keys anew, while they serve, of tables that became somebody's by what was said of `table`.
///
/// # Errors
/// Those of filling indexes and of copying tables.
pub(super) fn blind_owned_through(
    context: &DdlContext<'_>,
    database: &str,
    name: &str,
) -> SqlResult<()> {
    let catalog = context.store.current();
    let Ok(table) = catalog.table(database, name) else {
        return Ok(());
    };
    if table.sealing.vault().is_none() {
        return Ok(());
    }
    let keys = table.foreign_keys.iter();
    let owning = keys.filter(|key| key.edge.is_some_and(|edge| edge.kind == EdgeKind::Owns));
    for key in owning {
        let Ok(target) = catalog.table(&key.ref_database, &key.ref_table) else {
            continue;
        };
        if is_outdated(&catalog, target) {
            rebuild(context, &target.database, &target.name)?;
        }
    }
    Ok(())
}

fn rebuild(context: &DdlContext<'_>, database: &str, name: &str) -> SqlResult<()> {
    let annotations = Annotations::default();
    super::change::change(context, database, name, &annotations, &|_, effects| {
        effects.rebuilds = true;
        Ok(())
    })
}
