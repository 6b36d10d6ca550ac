//! ALTER TABLE, CREATE INDEX and DROP INDEX: actions become steps on a definition.

use sqlparser::ast::{
    AlterColumnOperation, AlterTableOperation, ColumnOption, CreateIndex, DataType, ObjectName,
    RenameTableNameKind,
};

use super::change::{Effects, change};
use super::define::{Builder, Place, collation, duplicate_column, no_column};
use super::key::index_comment;
use super::{DdlContext, default, done, generated};
use crate::catalog::Column;
use crate::error::{SqlError, SqlResult};
use crate::parser::{AlterAction, Annotations};
use crate::statement::Outcome;
use crate::statement::names::relation;
use crate::statement::target::position;

/// ALTER TABLE. Keys go first, then columns change, then keys come, then the rest, so that the
/// order in which they are written does not matter, as in MySQL.
pub(super) fn table(
    context: &DdlContext<'_>,
    name: &ObjectName,
    actions: &[AlterAction],
) -> SqlResult<Outcome> {
    let (database, name) = relation(context.database, name)?;
    let annotations = Annotations::default();
    change(
        context,
        &database,
        &name,
        &annotations,
        &|builder, effects| {
            for phase in [
                Phase::DropKeys,
                Phase::Columns,
                Phase::AddKeys,
                Phase::Options,
            ] {
                for action in actions.iter().filter(|action| Phase::of(action) == phase) {
                    apply(builder, effects, action)?;
                }
                if phase == Phase::Columns {
                    builder.make_inline()?;
                }
            }
            Ok(())
        },
    )?;
    Ok(done(0))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    DropKeys,
    Columns,
    AddKeys,
    Options,
}

impl Phase {
    fn of(action: &AlterAction) -> Self {
        match action {
            AlterAction::DropConstraint { .. } => Phase::DropKeys,
            AlterAction::AddColumns(_) | AlterAction::ConvertTo { .. } => Phase::Columns,
            AlterAction::Standard(operation) => match operation.as_ref() {
                AlterTableOperation::DropPrimaryKey { .. }
                | AlterTableOperation::DropForeignKey { .. }
                | AlterTableOperation::DropIndex { .. } => Phase::DropKeys,
                AlterTableOperation::AddConstraint { .. } => Phase::AddKeys,
                _ => Phase::Columns,
            },
            _ => Phase::Options,
        }
    }
}

fn cannot_drop(name: &str) -> SqlError {
    SqlError::new(
        1091,
        "42000",
        format!("Can't DROP '{name}'; check that column/key exists"),
    )
}

fn apply(builder: &mut Builder<'_>, effects: &mut Effects, action: &AlterAction) -> SqlResult<()> {
    match action {
        AlterAction::Standard(operation) => standard(builder, effects, operation),
        AlterAction::AddColumns(columns) => {
            for column in columns {
                builder.add_column(column, &Place::Last)?;
            }
            Ok(())
        }
        AlterAction::Option(key, value) => option(builder, effects, key, value),
        AlterAction::ConvertTo {
            charset,
            collation: name,
        } => {
            let chosen = collation(Some(charset), name.as_deref())?;
            if let Some(chosen) = chosen {
                builder.table.collation = chosen;
                for column in &mut builder.table.columns {
                    if column.ty.is_text() {
                        column.ty = column.ty.with_collation(chosen);
                    }
                }
            }
            Ok(())
        }
        AlterAction::RenameTable(name) => {
            let database = builder.table.database.clone();
            effects.rename = Some(relation(Some(&database), name)?);
            Ok(())
        }
        AlterAction::RenameIndex { from, to } => rename_index(builder, &from.value, &to.value),
        AlterAction::DropConstraint { name, check_only } => {
            drop_constraint(builder, &name.value, *check_only)
        }
        AlterAction::AlterCheck { name, enforced } => {
            let lower = name.value.to_lowercase();
            let mut checks = builder.table.checks.iter_mut();
            let check = checks.find(|check| check.name.to_lowercase() == lower);
            check.ok_or_else(|| no_check(&name.value))?.enforced = *enforced;
            Ok(())
        }
        AlterAction::OrderBy => order_by(builder),
        AlterAction::Nothing => Ok(()),
    }
}

/// Rows lie in the order of the primary key, as in InnoDB; without one, in the order they came,
/// which we do not change.
fn order_by(builder: &Builder<'_>) -> SqlResult<()> {
    if builder.table.primary_key.is_empty() {
        return Err(SqlError::not_supported(
            "ALTER TABLE … ORDER BY of a table without a primary key",
        ));
    }
    let message = format!(
        "ORDER BY ignored as there is a user-defined clustered index in the table '{}'",
        builder.table.name
    );
    crate::statement::warn(builder.context.eval, 1105, message);
    Ok(())
}

fn no_check(name: &str) -> SqlError {
    SqlError::new(
        3821,
        "HY000",
        format!("Check constraint '{name}' is not found in the table."),
    )
}

fn option(
    builder: &mut Builder<'_>,
    effects: &mut Effects,
    key: &str,
    value: &str,
) -> SqlResult<()> {
    match key {
        "COMMENT" => builder.table.comment = value.to_string(),
        "AUTO_INCREMENT" => {
            let next = value
                .parse()
                .map_err(|_| SqlError::syntax(format!("AUTO_INCREMENT = {value}")))?;
            effects.auto_increment = Some(next);
        }
        "CHARACTER SET" => {
            builder.table.collation =
                collation(Some(value), None)?.unwrap_or(builder.table.collation);
        }
        "COLLATE" => {
            builder.table.collation =
                collation(None, Some(value))?.unwrap_or(builder.table.collation);
        }
        // ENGINE, ROW_FORMAT and their kin describe a store we do not have.
        _ => {}
    }
    Ok(())
}

fn standard(
    builder: &mut Builder<'_>,
    effects: &mut Effects,
    operation: &AlterTableOperation,
) -> SqlResult<()> {
    match operation {
        AlterTableOperation::AddColumn {
            column_def,
            column_position,
            ..
        } => builder
            .add_column(column_def, &Place::of(column_position.as_ref()))
            .map(drop),
        AlterTableOperation::DropColumn { column_names, .. } => column_names
            .iter()
            .try_for_each(|name| drop_column(builder, &name.value)),
        AlterTableOperation::RenameColumn {
            old_column_name,
            new_column_name,
        } => rename_column(
            builder,
            effects,
            &old_column_name.value,
            &new_column_name.value,
        ),
        AlterTableOperation::ModifyColumn {
            col_name,
            data_type,
            options,
            column_position,
        } => {
            let place = Place::of(column_position.as_ref());
            modify(builder, &col_name.value, data_type, options, &place)
        }
        AlterTableOperation::ChangeColumn {
            old_name,
            new_name,
            data_type,
            options,
            column_position,
        } => {
            let place = Place::of(column_position.as_ref());
            rename_column(builder, effects, &old_name.value, &new_name.value)?;
            modify(builder, &new_name.value, data_type, options, &place)
        }
        AlterTableOperation::AlterColumn { column_name, op } => {
            alter_default(builder, &column_name.value, op)
        }
        AlterTableOperation::AddConstraint { constraint, .. } => builder.add_constraint(constraint),
        AlterTableOperation::DropPrimaryKey { .. } => {
            if builder.table.primary_key.is_empty() {
                return Err(cannot_drop("PRIMARY"));
            }
            builder.table.primary_key.clear();
            Ok(())
        }
        AlterTableOperation::DropIndex { name } => drop_index_of(builder, &name.value),
        AlterTableOperation::DropForeignKey { name, .. } => drop_foreign_key(builder, &name.value),
        AlterTableOperation::AutoIncrement { value, .. } => {
            option(builder, effects, "AUTO_INCREMENT", &value.to_string())
        }
        AlterTableOperation::RenameTable { table_name } => {
            let (RenameTableNameKind::As(name) | RenameTableNameKind::To(name)) = table_name;
            let database = builder.table.database.clone();
            effects.rename = Some(relation(Some(&database), name)?);
            Ok(())
        }
        AlterTableOperation::Algorithm { .. } | AlterTableOperation::Lock { .. } => Ok(()),
        other => Err(SqlError::not_supported(format!("ALTER TABLE … {other}"))),
    }
}

fn find(builder: &Builder<'_>, name: &str) -> SqlResult<usize> {
    position(&builder.table, name).ok_or_else(|| no_column(name, &builder.table.name))
}

/// Whether a CHECK mentions the column.
fn checked_by(builder: &Builder<'_>, name: &str) -> Option<String> {
    let lower = name.to_lowercase();
    let mentions = |expression: &str| {
        expression
            .split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'))
            .any(|word| word.to_lowercase() == lower)
    };
    let mut checks = builder.table.checks.iter();
    let check = checks.find(|check| mentions(&check.expression))?;
    Some(check.name.clone())
}

fn drop_column(builder: &mut Builder<'_>, name: &str) -> SqlResult<()> {
    let at = position(&builder.table, name).ok_or_else(|| cannot_drop(name))?;
    if builder.table.visible_columns().count() == 1 {
        return Err(SqlError::new(
            1090,
            "42000",
            "You can't delete all columns with ALTER TABLE; use DROP TABLE instead",
        ));
    }
    if let Some(check) = checked_by(builder, name) {
        return Err(SqlError::new(
            3959,
            "HY000",
            format!(
                "Check constraint '{check}' uses column '{name}', hence column cannot be dropped or renamed."
            ),
        ));
    }
    let mut keys = builder.table.foreign_keys.iter();
    if let Some(key) = keys.find(|key| key.enforced && key.columns.contains(&at)) {
        return Err(SqlError::new(
            1828,
            "HY000",
            format!(
                "Cannot drop column '{name}': needed in a foreign key constraint '{}'",
                key.name
            ),
        ));
    }
    builder
        .table
        .foreign_keys
        .retain(|key| !key.columns.contains(&at));
    builder.gone.push(name.to_string());
    let order: Vec<usize> = (0..builder.table.columns.len())
        .filter(|other| *other != at)
        .collect();
    builder.reorder(&order);
    Ok(())
}

fn rename_column(
    builder: &mut Builder<'_>,
    effects: &mut Effects,
    from: &str,
    to: &str,
) -> SqlResult<()> {
    let at = find(builder, from)?;
    super::define::check_name(to)?;
    if position(&builder.table, to).is_some_and(|other| other != at) {
        return Err(duplicate_column(to));
    }
    if from != to {
        if let Some(check) = checked_by(builder, from) {
            return Err(SqlError::new(
                3959,
                "HY000",
                format!(
                    "Check constraint '{check}' uses column '{from}', hence column cannot be dropped or renamed."
                ),
            ));
        }
        if from.to_lowercase() != to.to_lowercase() {
            builder.gone.push(from.to_string());
        }
        effects
            .renamed_columns
            .push((from.to_string(), to.to_string()));
    }
    builder.table.columns[at].name = to.to_string();
    Ok(())
}

/// The column anew under its identity; keys it is in stay.
fn modify(
    builder: &mut Builder<'_>,
    name: &str,
    data_type: &DataType,
    options: &[ColumnOption],
    place: &Place,
) -> SqlResult<()> {
    let at = find(builder, name)?;
    let old = builder.table.columns[at].clone();
    let options: Vec<_> = options
        .iter()
        .map(|option| (None, option.clone()))
        .collect();
    let (mut column, constraints) = builder.column(name, data_type, &options, old.id)?;
    generated::check_change(&old, &column)?;
    column.absent_value = old.absent_value;
    let explicit_null = options
        .iter()
        .any(|(_, option)| matches!(option, ColumnOption::Null));
    if builder.table.primary_key.contains(&at) {
        if explicit_null {
            return Err(super::key::null_in_primary_key());
        }
        column.not_null = true;
    }
    builder.table.columns[at] = column;
    let at = builder.move_column(at, place)?;
    for (label, option) in constraints {
        builder.defer(at, label, option);
    }
    Ok(())
}

fn alter_default(
    builder: &mut Builder<'_>,
    name: &str,
    op: &AlterColumnOperation,
) -> SqlResult<()> {
    let at = find(builder, name)?;
    let column: &mut Column = &mut builder.table.columns[at];
    match op {
        AlterColumnOperation::SetDefault { .. } if column.generated.is_some() => {
            Err(generated::wrong_usage("DEFAULT"))
        }
        AlterColumnOperation::SetDefault { value } => {
            column.default = default::of_expr(column, value)?;
            if column.default.is_none() && column.not_null {
                return Err(default::invalid(column));
            }
            default::settle(builder.context, column)
        }
        AlterColumnOperation::DropDefault => {
            column.default = None;
            Ok(())
        }
        other => Err(SqlError::not_supported(format!("ALTER COLUMN … {other}"))),
    }
}

fn drop_index_of(builder: &mut Builder<'_>, name: &str) -> SqlResult<()> {
    if name.eq_ignore_ascii_case("PRIMARY") && !builder.table.primary_key.is_empty() {
        builder.table.primary_key.clear();
        return Ok(());
    }
    let lower = name.to_lowercase();
    let before = builder.table.indexes.len();
    builder
        .table
        .indexes
        .retain(|index| index.name.to_lowercase() != lower);
    if builder.table.indexes.len() == before {
        return Err(cannot_drop(name));
    }
    Ok(())
}

fn drop_foreign_key(builder: &mut Builder<'_>, name: &str) -> SqlResult<()> {
    let lower = name.to_lowercase();
    let before = builder.table.foreign_keys.len();
    builder
        .table
        .foreign_keys
        .retain(|key| !key.enforced || key.name.to_lowercase() != lower);
    if builder.table.foreign_keys.len() == before {
        return Err(cannot_drop(name));
    }
    Ok(())
}

fn drop_constraint(builder: &mut Builder<'_>, name: &str, check_only: bool) -> SqlResult<()> {
    let lower = name.to_lowercase();
    let before = builder.table.checks.len();
    builder
        .table
        .checks
        .retain(|check| check.name.to_lowercase() != lower);
    if builder.table.checks.len() < before {
        return Ok(());
    }
    if check_only {
        return Err(no_check(name));
    }
    if drop_foreign_key(builder, name).is_ok() || drop_index_of(builder, name).is_ok() {
        return Ok(());
    }
    Err(SqlError::new(
        3940,
        "HY000",
        format!("Constraint '{name}' does not exist."),
    ))
}

fn rename_index(builder: &mut Builder<'_>, from: &str, to: &str) -> SqlResult<()> {
    let lower = |name: &str| name.to_lowercase();
    let indexes = &mut builder.table.indexes;
    let taken = indexes
        .iter()
        .any(|index| lower(&index.name) == lower(to) && lower(from) != lower(to));
    if taken {
        return Err(SqlError::new(
            1061,
            "42000",
            format!("Duplicate key name '{to}'"),
        ));
    }
    let index = indexes
        .iter_mut()
        .find(|index| lower(&index.name) == lower(from))
        .ok_or_else(|| {
            let text = format!(
                "Key '{from}' doesn't exist in table '{}'",
                builder.table.name
            );
            SqlError::new(1176, "42000", text)
        })?;
    index.name = to.to_string();
    Ok(())
}

/// CREATE INDEX.
pub(super) fn create_index(context: &DdlContext<'_>, create: &CreateIndex) -> SqlResult<Outcome> {
    let (database, table) = relation(context.database, &create.table_name)?;
    let name = create
        .name
        .as_ref()
        .map(|name| crate::statement::names::parts(name).join("."));
    let annotations = Annotations::default();
    change(context, &database, &table, &annotations, &|builder, _| {
        let parts = builder.key_parts(&create.columns, name.as_deref())?;
        let comment = index_comment(&create.index_options);
        builder
            .add_index(name.as_deref(), parts, create.unique, comment)
            .map(drop)
    })?;
    Ok(done(0))
}

/// DROP INDEX … ON t.
pub(super) fn drop_index(
    context: &DdlContext<'_>,
    name: &ObjectName,
    table: &ObjectName,
) -> SqlResult<Outcome> {
    let (database, table) = relation(context.database, table)?;
    let name = crate::statement::names::parts(name).join(".");
    let annotations = Annotations::default();
    change(context, &database, &table, &annotations, &|builder, _| {
        drop_index_of(builder, &name)
    })?;
    Ok(done(0))
}
