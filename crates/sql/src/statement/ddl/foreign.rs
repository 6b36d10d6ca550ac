//! FOREIGN KEY definitions: the parent must fit, the child gets its index.

use sqlparser::ast::{ForeignKeyConstraint, Ident, ReferentialAction};

use super::define::Builder;
use super::key::is_whole;
use crate::catalog::{
    Catalog, ForeignKey, ForeignKeyAction, Index, IndexColumn, IndexState, OwnershipAnnotation,
    Table,
};
use crate::error::{SqlError, SqlResult};
use crate::statement::foreign_key::leads;
use crate::statement::names::relation;
use crate::statement::target::position;
use crate::types::DataType;

impl Builder<'_> {
    /// REFERENCES in a column definition: recorded for ownership, not enforced, unless it is annotated.
    pub(super) fn note_reference(
        &mut self,
        at: usize,
        key: &ForeignKeyConstraint,
    ) -> SqlResult<()> {
        let (database, table) = relation(Some(&self.table.database), &key.foreign_table)?;
        let ownership = self.annotation(key);
        if ownership.edge().is_some() {
            self.links.push((at, ownership, key.clone()));
            return Ok(());
        }
        let name = self.free_key_name();
        self.table.foreign_keys.push(ForeignKey {
            name,
            columns: vec![at],
            ref_database: database,
            ref_table: table,
            ref_columns: names(&key.referred_columns),
            on_delete: ForeignKeyAction::NoAction,
            on_update: ForeignKeyAction::NoAction,
            ownership,
            enforced: false,
            edge: None,
        });
        Ok(())
    }

    fn annotation(&self, key: &ForeignKeyConstraint) -> OwnershipAnnotation {
        let place = key.foreign_table.0.first().and_then(|part| part.as_ident());
        place.map_or_else(OwnershipAnnotation::default, |ident| {
            let start = ident.span.start;
            self.annotations.at((start.line, start.column))
        })
    }

    /// FOREIGN KEY.
    ///
    /// # Errors
    /// 1826, 1072, 1824, 3734, 1822, 3780, 1830, 1239; 3104 and 3733 for generated columns.
    pub(super) fn add_foreign_key(&mut self, key: &ForeignKeyConstraint) -> SqlResult<()> {
        let columns = key
            .columns
            .iter()
            .map(|column| {
                position(&self.table, &column.value).ok_or_else(|| {
                    SqlError::new(
                        1072,
                        "42000",
                        format!("Key column '{}' doesn't exist in table", column.value),
                    )
                })
            })
            .collect::<SqlResult<Vec<_>>>()?;
        self.add_key_over(columns, key, self.annotation(key))
    }

    /// As [`Builder::add_foreign_key`], whatever the columns and the annotation in the definition.
    pub(super) fn add_key_over(
        &mut self,
        columns: Vec<usize>,
        key: &ForeignKeyConstraint,
        ownership: OwnershipAnnotation,
    ) -> SqlResult<()> {
        let given = key.name.as_ref().map(|name| name.value.clone());
        let name = match &given {
            Some(name) if self.key_name_taken(name) => {
                return Err(SqlError::new(
                    1826,
                    "HY000",
                    format!("Duplicate foreign key constraint name '{name}'"),
                ));
            }
            Some(name) => name.clone(),
            None => self.free_key_name(),
        };
        let (ref_database, ref_table) = relation(Some(&self.table.database), &key.foreign_table)?;
        let made = ForeignKey {
            name,
            columns,
            ref_database,
            ref_table,
            ref_columns: names(&key.referred_columns),
            on_delete: action(key.on_delete)?,
            on_update: action(key.on_update)?,
            ownership,
            enforced: true,
            edge: None,
        };
        if made.ref_columns.len() != made.columns.len() {
            return Err(SqlError::new(
                1239,
                "42000",
                format!(
                    "Incorrect foreign key definition for '{}': Key reference and table reference don't match",
                    made.name
                ),
            ));
        }
        let index_name = given.or_else(|| key.index_name.as_ref().map(|n| n.value.clone()));
        self.check_enforceable(&made)?;
        self.ensure_index(&made, index_name)?;
        self.table.foreign_keys.push(made);
        Ok(())
    }

    fn check_enforceable(&self, key: &ForeignKey) -> SqlResult<()> {
        self.check_key_over_generated(key)?;
        self.check_set_null(key)?;
        self.check_parent(key)
    }

    /// Enforces a foreign key that was only noted.
    ///
    /// # Errors
    /// As [`Builder::add_foreign_key`].
    pub(super) fn enforce(&mut self, at: usize) -> SqlResult<()> {
        let Some(key) = self.table.foreign_keys.get(at).cloned() else {
            return Err(SqlError::internal("a foreign key that is not there"));
        };
        if key.enforced {
            return Ok(());
        }
        self.check_enforceable(&key)?;
        self.ensure_index(&key, None)?;
        if let Some(key) = self.table.foreign_keys.get_mut(at) {
            key.enforced = true;
        }
        Ok(())
    }

    fn key_name_taken(&self, name: &str) -> bool {
        let lower = name.to_lowercase();
        let own = self.table.foreign_keys.iter();
        let others = self
            .catalog
            .databases
            .get(&self.table.database.to_lowercase())
            .into_iter()
            .flat_map(|database| database.tables.values())
            .filter(|table| table.id != self.table.id)
            .flat_map(|table| table.foreign_keys.iter().filter(|key| key.enforced));
        own.chain(others)
            .any(|key| key.name.to_lowercase() == lower)
    }

    /// `table_ibfk_n`.
    fn free_key_name(&self) -> String {
        let mut number = 1;
        loop {
            let name = format!("{}_ibfk_{number}", self.table.name);
            if !self.key_name_taken(&name) {
                return name;
            }
            number += 1;
        }
    }

    fn check_set_null(&self, key: &ForeignKey) -> SqlResult<()> {
        let sets = [key.on_delete, key.on_update].contains(&ForeignKeyAction::SetNull);
        let mut columns = key
            .columns
            .iter()
            .filter_map(|&at| self.table.columns.get(at));
        if let Some(column) = columns.find(|column| sets && column.not_null) {
            return Err(SqlError::new(
                1830,
                "HY000",
                format!(
                    "Column '{}' cannot be NOT NULL: needed in a foreign key constraint '{}' SET NULL",
                    column.name, key.name
                ),
            ));
        }
        Ok(())
    }

    /// The parent exists, has the columns in an index, and of fitting types.
    fn check_parent(&self, key: &ForeignKey) -> SqlResult<()> {
        let itself = key.ref_database.eq_ignore_ascii_case(&self.table.database)
            && key.ref_table.to_lowercase() == self.table.name.to_lowercase();
        let parent: &Table = if itself {
            &self.table
        } else {
            match self.catalog.table(&key.ref_database, &key.ref_table) {
                Ok(table) => table,
                Err(_) if !self.context.foreign_key_checks => return Ok(()),
                Err(_) => {
                    return Err(SqlError::new(
                        1824,
                        "HY000",
                        format!("Failed to open the referenced table '{}'", key.ref_table),
                    ));
                }
            }
        };
        let mut referenced = Vec::new();
        for (name, &at) in key.ref_columns.iter().zip(&key.columns) {
            let Some(parent_at) = position(parent, name) else {
                return Err(SqlError::new(
                    3734,
                    "HY000",
                    format!(
                        "Failed to add the foreign key constraint. Missing column '{name}' for constraint '{}' in the referenced table '{}'",
                        key.name, key.ref_table
                    ),
                ));
            };
            if super::generated::is_virtual(parent, parent_at) {
                return Err(super::generated::virtual_in_key(key, name));
            }
            let own = &self.table.columns[at];
            let other = &parent.columns[parent_at];
            if !compatible(&own.ty, &other.ty) {
                return Err(SqlError::new(
                    3780,
                    "HY000",
                    format!(
                        "Referencing column '{}' and referenced column '{}' in foreign key constraint '{}' are incompatible.",
                        own.name, other.name, key.name
                    ),
                ));
            }
            referenced.push(parent_at);
        }
        let indexed = parent.primary_key.starts_with(&referenced)
            || parent.indexes.iter().any(|index| leads(index, &referenced));
        if !indexed {
            return Err(SqlError::new(
                1822,
                "HY000",
                format!(
                    "Failed to add the foreign key constraint. Missing index for constraint '{}' in the referenced table '{}'",
                    key.name, key.ref_table
                ),
            ));
        }
        Ok(())
    }

    /// The index by which children are found.
    fn ensure_index(&mut self, key: &ForeignKey, name: Option<String>) -> SqlResult<()> {
        let serves = |index: &Index| {
            leads(index, &key.columns) && index.columns.iter().take(key.columns.len()).all(is_whole)
        };
        let primary = self.table.primary_key.starts_with(&key.columns);
        if primary || self.table.indexes.iter().any(serves) {
            return Ok(());
        }
        let columns = key
            .columns
            .iter()
            .map(|&column| IndexColumn {
                column,
                prefix: None,
                descending: false,
            })
            .collect();
        let lower = name.as_ref().map(|name| name.to_lowercase());
        let taken = self
            .table
            .indexes
            .iter()
            .any(|i| Some(i.name.to_lowercase()) == lower);
        let name = name.filter(|_| !taken);
        let id = self.add_index(name.as_deref(), columns, false, String::new())?;
        for index in self.table.indexes.iter_mut().filter(|i| i.id == id) {
            index.state = IndexState::Implicit;
        }
        Ok(())
    }
}

/// Whether the primary key or an index other than `without` begins with `columns`.
pub(super) fn has_key_index(table: &Table, columns: &[usize], without: Option<&Index>) -> bool {
    table.primary_key.starts_with(columns)
        || table
            .indexes
            .iter()
            .filter(|index| without.is_none_or(|without| without.id != index.id))
            .any(|index| leads(index, columns))
}

fn names(idents: &[Ident]) -> Vec<String> {
    idents.iter().map(|ident| ident.value.clone()).collect()
}

fn action(action: Option<ReferentialAction>) -> SqlResult<ForeignKeyAction> {
    Ok(match action {
        None | Some(ReferentialAction::NoAction) => ForeignKeyAction::NoAction,
        Some(ReferentialAction::Restrict) => ForeignKeyAction::Restrict,
        Some(ReferentialAction::Cascade) => ForeignKeyAction::Cascade,
        Some(ReferentialAction::SetNull) => ForeignKeyAction::SetNull,
        Some(ReferentialAction::SetDefault) => {
            return Err(SqlError::not_supported("ON DELETE SET DEFAULT"));
        }
    })
}

/// MySQL wants the same type; only the length of strings and display widths may differ.
fn compatible(a: &DataType, b: &DataType) -> bool {
    if a.is_text() && b.is_text() && !matches!(a, DataType::Enum { .. } | DataType::Set { .. }) {
        return a.collation() == b.collation();
    }
    if a.is_bytes() && b.is_bytes() {
        return true;
    }
    match (a, b) {
        (
            DataType::Int {
                width, unsigned, ..
            },
            DataType::Int {
                width: other_width,
                unsigned: other_unsigned,
                ..
            },
        ) => width == other_width && unsigned == other_unsigned,
        _ => a == b,
    }
}

/// Tables of `catalog` with enforced foreign keys to `database.name`, each with such a key.
pub(super) fn referring<'a>(
    catalog: &'a Catalog,
    database: &'a str,
    name: &'a str,
) -> impl Iterator<Item = (&'a Table, &'a ForeignKey)> {
    let lower = name.to_lowercase();
    catalog
        .databases
        .values()
        .flat_map(|database| database.tables.values())
        .flat_map(|table| table.foreign_keys.iter().map(move |key| (&**table, key)))
        .filter(move |(_, key)| {
            key.enforced
                && key.ref_database.eq_ignore_ascii_case(database)
                && key.ref_table.to_lowercase() == lower
        })
}
