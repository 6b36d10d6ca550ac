//! From one definition of a table to the next, while it serves.
//!
//! | change | how |
//! |---|---|
//! | names, order, defaults, comments, new columns with a constant default | a new record |
//! | CHECK, FOREIGN KEY, NOT NULL | existing rows are checked in the transaction that writes the record: a concurrent writer makes it run again |
//! | indexes | recorded as write-only, filled in chunks, then made public |
//! | types, primary key, generated columns, columns with a computed default, a column dropped beside a new index | every row is copied to a new table id ([`super::copy`]), then the new record takes the old one's place |

use std::collections::BTreeSet;

use manxdb_storage::Durability;

use super::backfill;
use super::define::Builder;
use super::names::{lock_tables, new_parents};
use super::{DdlContext, touch_parents};
use crate::catalog::name_locks::LockedNames;
use crate::catalog::store::Edit;
use crate::catalog::{
    Catalog, Column, ColumnDefault, Index, IndexId, IndexState, ROWS, SequenceKind, Table, record,
};
use crate::error::{SqlError, SqlResult};
use crate::parser::Annotations;

/// What a change asks for beside the definition.
#[derive(Debug, Default)]
pub(super) struct Effects {
    /// RENAME TO: database and name.
    pub(super) rename: Option<(String, String)>,
    /// `AUTO_INCREMENT = n`.
    pub(super) auto_increment: Option<u64>,
    /// Keys that are blinded otherwise than they would be now are made anew.
    pub(super) rebuilds: bool,
    /// Columns renamed: old and new name.
    pub(super) renamed_columns: Vec<(String, String)>,
}

/// Changes `database.name` by what `build` does to its definition.
///
/// # Errors
/// 1146; those of `build`; those of checking and filling.
pub(super) fn change(
    context: &DdlContext<'_>,
    database: &str,
    name: &str,
    annotations: &Annotations,
    build: &dyn Fn(&mut Builder<'_>, &mut Effects) -> SqlResult<()>,
) -> SqlResult<()> {
    let tables = [(database.to_string(), name.to_string())];
    let mut more = LockedNames::default();
    let warnings = context.eval.warnings.borrow().len();
    loop {
        let locked = lock_tables(context, &tables, &more)?;
        let planned = plan(context, (database, name), annotations, build)?;
        more.extend(planned.more_names(context));
        if locked.covers(&more) {
            let concerned = planned.make(context)?;
            drop(locked);
            return match concerned {
                Some((database, name)) => {
                    super::blinding::blind_owned_through(context, &database, &name)
                }
                None => Ok(()),
            };
        }
        // It is planned again, with more locked.
        context.eval.warnings.borrow_mut().truncate(warnings);
    }
}

/// A change as its statement means it, of the definition as it was found.
struct Planned {
    old: Table,
    new: Table,
    effects: Effects,
}

fn plan(
    context: &DdlContext<'_>,
    (database, name): (&str, &str),
    annotations: &Annotations,
    build: &dyn Fn(&mut Builder<'_>, &mut Effects) -> SqlResult<()>,
) -> SqlResult<Planned> {
    let catalog = super::temporary::seen(context);
    if catalog.view(database, name).is_some() {
        let text = format!("'{database}.{name}' is not BASE TABLE");
        return Err(SqlError::new(1347, "HY000", text));
    }
    let mut old = (**catalog.table(database, name)?).clone();
    // Of a change that could not be taken back: no copy is being made.
    old.copying = None;
    let mut effects = Effects::default();
    let mut builder = Builder::new(context, &catalog, annotations, old.clone());
    build(&mut builder, &mut effects)?;
    builder.make_inline()?;
    builder.finish()?;
    let mut new = builder.table;
    replace_changed_indexes(&old, &mut new);
    let rebuilds = effects.rebuilds || says_otherwise(&old, &new);
    super::blinding::decide_change(&catalog, &old, &mut new, rebuilds)?;
    keep_foreign_key_indexes(&catalog, &old, &new)?;
    Ok(Planned { old, new, effects })
}

impl Planned {
    /// What it changes beside its table and those that refer to it.
    fn more_names(&self, context: &DdlContext<'_>) -> LockedNames {
        let catalog = context.store.current();
        let mut names = new_parents(&catalog, &self.new, Some(&self.old));
        if let Some((database, name)) = &self.effects.rename {
            names.change(database, name);
        }
        names
    }

    /// Makes it; the table, when it says otherwise now whose rows are.
    fn make(self, context: &DdlContext<'_>) -> SqlResult<Option<(String, String)>> {
        let Self { old, new, effects } = self;
        if old.temporary {
            super::temporary::change(context, &old, new, &effects)?;
            set_counter(context, &old, &effects)?;
            return Ok(None);
        }
        let change = Change {
            context,
            old: &old,
            effects: &effects,
        };
        let is_copied = needs_copy(&old, &new);
        let concerns_owners = super::owners::says_otherwise(&old, &new)
            || is_copied && super::owners::has_unowned_rows(context, old.id)?;
        let name = effects.rename.clone();
        let (database, name) = name.unwrap_or((new.database.clone(), new.name.clone()));
        if is_copied {
            change.copy(new)?;
        } else {
            change.in_place(new)?;
        }
        if concerns_owners {
            super::owners::look_at_rows(context, &database, &name)?;
        }
        set_counter(context, &old, &effects)?;
        Ok(concerns_owners.then_some((database, name)))
    }
}

/// Whether `old` and `new` say different things of whose rows are, or of what is personal in keys.
fn says_otherwise(old: &Table, new: &Table) -> bool {
    super::owners::says_otherwise(old, new)
        || old.blinding.personal != new.blinding.personal
        || old.blinding.ordered != new.blinding.ordered
}

/// An index whose columns changed is another index.
fn replace_changed_indexes(old: &Table, new: &mut Table) {
    let ids = |table: &Table, id: IndexId| -> Option<Vec<(u32, Option<u32>)>> {
        let index = table.indexes.iter().find(|index| index.id == id)?;
        let column = |at: usize| table.columns.get(at).map(|column| column.id.0);
        index
            .columns
            .iter()
            .map(|part| Some((column(part.column)?, part.prefix)))
            .collect()
    };
    for place in 0..new.indexes.len() {
        let id = new.indexes[place].id;
        let known = old.indexes.iter().any(|index| index.id == id);
        if known && ids(old, id) != ids(new, id) {
            let now = IndexId(new.next_index_id);
            new.indexes[place].id = now;
            new.next_index_id += 1;
            super::blinding::rename(&mut new.blinding.ordered, id, now);
        }
    }
}

/// No foreign key may lose the index it works by.
fn keep_foreign_key_indexes(catalog: &Catalog, old: &Table, new: &Table) -> SqlResult<()> {
    let needed = |index: &str| {
        SqlError::new(
            1553,
            "HY000",
            format!("Cannot drop index '{index}': needed in a foreign key constraint"),
        )
    };
    let gone = || {
        let lost = old
            .indexes
            .iter()
            .find(|index| !new.indexes.iter().any(|other| other.id == index.id));
        lost.map_or_else(|| "PRIMARY".to_string(), |index| index.name.clone())
    };
    for key in new.foreign_keys.iter().filter(|key| key.enforced) {
        if !super::foreign::has_key_index(new, &key.columns, None) {
            return Err(needed(&gone()));
        }
    }
    for (child, key) in super::foreign::referring(catalog, &old.database, &old.name) {
        if child.id == old.id {
            continue;
        }
        let columns: Option<Vec<usize>> = key
            .ref_columns
            .iter()
            .map(|name| {
                let before = crate::statement::target::position(old, name)?;
                let id = old.columns.get(before)?.id;
                new.columns.iter().position(|column| column.id == id)
            })
            .collect();
        match columns {
            Some(columns) if super::foreign::has_key_index(new, &columns, None) => {}
            Some(_) => return Err(needed(&gone())),
            None => {
                return Err(SqlError::new(
                    1829,
                    "HY000",
                    format!(
                        "Cannot drop column '{}': needed in a foreign key constraint '{}' of table '{}'",
                        key.ref_columns.join(","),
                        key.name,
                        child.name
                    ),
                ));
            }
        }
    }
    Ok(())
}

fn key_ids(table: &Table) -> Vec<u32> {
    let columns = table
        .primary_key
        .iter()
        .filter_map(|at| table.columns.get(*at));
    columns.map(|column| column.id.0).collect()
}

/// Whether the column's values follow from another expression than before.
fn computes_anew(before: &Column, column: &Column) -> bool {
    let expression = |column: &Column| {
        let generated = column.generated.as_ref();
        generated.map(|generated| generated.expression.clone())
    };
    column.generated.is_some() && expression(before) != expression(column)
}

/// Whether rows must be written anew.
pub(super) fn needs_copy(old: &Table, new: &Table) -> bool {
    if key_ids(old) != key_ids(new) || old.blinding.of(ROWS) != new.blinding.of(ROWS) {
        return true;
    }
    // Filling an index may fail after others have written rows without the dropped column.
    let drops_column = old
        .columns
        .iter()
        .any(|column| !new.columns.iter().any(|other| other.id == column.id));
    let adds_index = new
        .indexes
        .iter()
        .any(|index| !old.indexes.iter().any(|other| other.id == index.id));
    if drops_column && adds_index {
        return true;
    }
    new.columns.iter().any(
        |column| match old.columns.iter().find(|other| other.id == column.id) {
            Some(before) => before.ty != column.ty || computes_anew(before, column),
            None => {
                column.auto_increment
                    || column.generated.is_some()
                    || matches!(column.default, Some(ColumnDefault::Expression(_)))
            }
        },
    )
}

/// What existing rows must be checked for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ToCheck {
    /// CHECK or NOT NULL.
    pub(super) rows: bool,
    /// Names of new foreign keys.
    pub(super) foreign_keys: BTreeSet<String>,
}

/// A change in the making.
pub(super) struct Change<'a> {
    pub(super) context: &'a DdlContext<'a>,
    pub(super) old: &'a Table,
    pub(super) effects: &'a Effects,
}

impl Change<'_> {
    pub(super) fn to_check(&self, new: &Table) -> ToCheck {
        let old = self.old;
        let new_check = new
            .checks
            .iter()
            .any(|check| check.enforced && !old.checks.iter().any(|other| other == check));
        let tightened = new.columns.iter().any(|column| {
            column.not_null
                && old
                    .columns
                    .iter()
                    .any(|other| other.id == column.id && !other.not_null)
        });
        let foreign_keys = new
            .foreign_keys
            .iter()
            .filter(|key| key.enforced && self.context.foreign_key_checks)
            .filter(|key| {
                let mut known = old.foreign_keys.iter();
                !known.any(|other| other.name == key.name && other.enforced)
            })
            .map(|key| key.name.clone())
            .collect();
        ToCheck {
            rows: new_check || tightened,
            foreign_keys,
        }
    }

    /// Writes the final record, with what follows from it elsewhere.
    pub(super) fn publish(&self, edit: &mut Edit<'_>, new: &Table) -> SqlResult<()> {
        let mut table = new.clone();
        let stored = edit.catalog.table(&self.old.database, &self.old.name)?;
        table.schema_version = stored.schema_version + 1;
        let is_new = |name: &str| {
            let mut known = self.old.foreign_keys.iter();
            !known.any(|key| key.name == name && key.enforced)
        };
        touch_parents(edit, &table, &is_new)?;
        self.rename_references(edit)?;
        super::ownership::rename_rule_columns(edit, self.old, &self.effects.renamed_columns)?;
        for key in &mut table.foreign_keys {
            if refers_to(key, self.old) {
                rename_all(&mut key.ref_columns, &self.effects.renamed_columns);
            }
        }
        super::ownership::put_checked(self.context, edit, table)?;
        if let Some((database, name)) = &self.effects.rename {
            let from = (self.old.database.as_str(), self.old.name.as_str());
            super::remove::rename_one(self.context, edit, from, (database, name))?;
        }
        Ok(())
    }

    /// Foreign keys of others name our columns: they follow a renaming.
    fn rename_references(&self, edit: &mut Edit<'_>) -> SqlResult<()> {
        if self.effects.renamed_columns.is_empty() {
            return Ok(());
        }
        let children: Vec<Table> =
            super::foreign::referring(&edit.catalog, &self.old.database, &self.old.name)
                .filter(|(child, _)| child.id != self.old.id)
                .map(|(child, _)| child.clone())
                .collect();
        for mut child in children {
            for key in &mut child.foreign_keys {
                if refers_to(key, self.old) {
                    rename_all(&mut key.ref_columns, &self.effects.renamed_columns);
                }
            }
            child.schema_version += 1;
            edit.put_table(child)?;
        }
        Ok(())
    }

    /// New record; new indexes filled while serving.
    fn in_place(&self, mut new: Table) -> SqlResult<()> {
        let context = self.context;
        self.fill_absent(&mut new)?;
        let added: Vec<IndexId> = new
            .indexes
            .iter()
            .map(|index| index.id)
            .filter(|id| !self.old.indexes.iter().any(|index| index.id == *id))
            .collect();
        let dropped: Vec<IndexId> = self
            .old
            .indexes
            .iter()
            .map(|index| index.id)
            .filter(|id| !new.indexes.iter().any(|index| index.id == *id))
            .collect();
        let checks = self.to_check(&new);
        // With an index to fill, what it replaces stays in use until that has succeeded.
        let mut filling = new.clone();
        for index in &mut filling.indexes {
            if added.contains(&index.id) {
                index.state = IndexState::WriteOnly;
            }
        }
        filling.indexes.extend(self.kept_indexes(&new));
        context
            .store
            .edit(context.waiter, context.durability, &mut |edit| {
                backfill::check_rows(context, edit, &new, &checks)?;
                if added.is_empty() {
                    for id in &dropped {
                        edit.add_garbage(&record::index_prefix(self.old.id, id.0))?;
                    }
                    return self.publish(edit, &new);
                }
                let mut waiting = filling.clone();
                let stored = edit.catalog.table(&self.old.database, &self.old.name)?;
                waiting.schema_version = stored.schema_version + 1;
                // A foreign key that waits for its index would be found unenforceable: it comes last.
                waiting
                    .foreign_keys
                    .retain(|key| !checks.foreign_keys.contains(&key.name));
                edit.begin_unfinished(self.old)?;
                edit.put_table(waiting)
            })?;
        if added.is_empty() {
            return Ok(());
        }
        if let Err(error) = backfill::fill_indexes(context, &filling, &added) {
            self.take_back()?;
            return Err(error);
        }
        let published = context
            .store
            .edit(context.waiter, context.durability, &mut |edit| {
                backfill::check_rows(context, edit, &new, &checks)?;
                for id in &dropped {
                    edit.add_garbage(&record::index_prefix(self.old.id, id.0))?;
                }
                edit.end_unfinished(self.old.id)?;
                self.publish(edit, &new)
            });
        if published.is_err() {
            self.take_back()?;
        }
        published
    }

    /// The indexes that `new` drops, with their columns where `new` has them. Writers maintain
    /// them until others are filled: filling may fail, and then they are in use again.
    fn kept_indexes(&self, new: &Table) -> Vec<Index> {
        let place = |at: usize| {
            let id = self.old.columns.get(at)?.id;
            new.columns.iter().position(|column| column.id == id)
        };
        let moved = |index: &Index| {
            let mut index = index.clone();
            for part in &mut index.columns {
                part.column = place(part.column)?;
            }
            Some(index)
        };
        self.old
            .indexes
            .iter()
            .filter(|index| !new.indexes.iter().any(|other| other.id == index.id))
            .filter_map(moved)
            .collect()
    }

    /// The old definition again, without the indexes that could not be filled.
    pub(super) fn take_back(&self) -> SqlResult<()> {
        self.context
            .store
            .edit(self.context.store.waiter(), Durability::Sync, &mut |edit| {
                edit.take_back(self.old)
            })
    }

    /// Columns added without a copy: what rows written before have in them.
    fn fill_absent(&self, new: &mut Table) -> SqlResult<()> {
        for column in &mut new.columns {
            if self.old.columns.iter().any(|other| other.id == column.id) {
                continue;
            }
            column.absent_value = match &column.default {
                Some(ColumnDefault::Now) => {
                    let now = crate::statement::target::now(self.context.eval, &column.ty)?;
                    let text = crate::types::to_text(&now, &column.ty);
                    Some(ColumnDefault::Literal(super::default::quote(&text)))
                }
                other => other.clone(),
            };
        }
        Ok(())
    }
}

/// `AUTO_INCREMENT = n`, never below what rows have.
fn set_counter(context: &DdlContext<'_>, old: &Table, effects: &Effects) -> SqlResult<()> {
    let Some(next) = effects.auto_increment else {
        return Ok(());
    };
    let (database, name) = match &effects.rename {
        Some((database, name)) => (database.as_str(), name.as_str()),
        None => (old.database.as_str(), old.name.as_str()),
    };
    let table = super::temporary::seen(context)
        .table(database, name)?
        .clone();
    let Some(at) = table
        .columns
        .iter()
        .position(|column| column.auto_increment)
    else {
        return Ok(());
    };
    let highest = backfill::highest(context, &table, at)?;
    let next = next.max(highest.saturating_add(1)).max(1);
    context
        .store
        .sequences()
        .set(table.id, SequenceKind::AutoIncrement, next)
}

fn refers_to(key: &crate::catalog::ForeignKey, table: &Table) -> bool {
    key.ref_database.eq_ignore_ascii_case(&table.database)
        && key.ref_table.to_lowercase() == table.name.to_lowercase()
}

fn rename_all(names: &mut [String], renamed: &[(String, String)]) {
    for name in names {
        let found = renamed
            .iter()
            .find(|(old, _)| old.to_lowercase() == name.to_lowercase());
        if let Some((_, new)) = found {
            name.clone_from(new);
        }
    }
}
