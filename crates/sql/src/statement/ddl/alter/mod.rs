//! ALTER TABLE: actions become steps on a definition.

mod column;
mod key;

pub(super) use key::{create_index, drop_index};

use sqlparser::ast::{AlterTableOperation, ObjectName, RenameTableNameKind};

use super::change::{Effects, change};
use super::define::{Builder, Place, collation};
use super::{DdlContext, done, ownership};
use crate::error::{SqlError, SqlResult};
use crate::parser::{AlterAction, Annotations, OwnershipChange};
use crate::statement::StatementOutcome;
use crate::statement::names::relation;
use column::{alter_default, drop_column, modify, rename_column};
pub(super) use key::cannot_drop;
use key::{
    drop_constraint, drop_foreign_key, drop_index_of, drop_primary_key, enforce_check, rename_index,
};

/// ALTER TABLE. Keys go first, then columns change, then keys come, then the rest, so that the
/// order in which they are written does not matter, as in MySQL.
pub(super) fn table(
    context: &DdlContext<'_>,
    name: &ObjectName,
    actions: &[AlterAction],
    annotations: &Annotations,
) -> SqlResult<StatementOutcome> {
    let (database, name) = relation(context.database, name)?;
    change(
        context,
        &database,
        &name,
        annotations,
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

/// The order in which actions are applied.
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
            AlterAction::DropConstraint { .. }
            | AlterAction::Ownership(OwnershipChange::DropRules(..)) => Phase::DropKeys,
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

/// One action, whatever tree it is in.
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
        } => convert(builder, charset, name.as_deref()),
        AlterAction::RenameTable(name) => rename_table(builder, effects, name),
        AlterAction::RenameIndex { from, to } => rename_index(builder, &from.value, &to.value),
        AlterAction::DropConstraint { name, check_only } => {
            drop_constraint(builder, &name.value, *check_only)
        }
        AlterAction::AlterCheck { name, enforced } => {
            enforce_check(builder, &name.value, *enforced)
        }
        AlterAction::Ownership(change) => ownership::apply(builder, change),
        AlterAction::OrderBy => order_by(builder),
        AlterAction::Rebuild => {
            effects.rebuilds = true;
            Ok(())
        }
        AlterAction::Nothing => Ok(()),
    }
}

fn rename_table(builder: &Builder<'_>, effects: &mut Effects, name: &ObjectName) -> SqlResult<()> {
    effects.rename = Some(relation(Some(&builder.table.database), name)?);
    Ok(())
}

/// CONVERT TO: the table and every column of text in it.
fn convert(builder: &mut Builder<'_>, charset: &str, name: Option<&str>) -> SqlResult<()> {
    if let Some(chosen) = collation(Some(charset), name)? {
        builder.table.collation = chosen;
        for column in &mut builder.table.columns {
            if column.ty.is_text() {
                column.ty = column.ty.with_collation(chosen);
            }
        }
    }
    Ok(())
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

fn option(
    builder: &mut Builder<'_>,
    effects: &mut Effects,
    key: &str,
    value: &str,
) -> SqlResult<()> {
    match key {
        "COMMENT" => {
            builder.table.comment = value.to_string();
            builder.table.data_subject |= ownership::comment_says_subject(value);
        }
        "UNOWNED" => {
            builder.table.ownership.unowned_allowed = ownership::unowned_allowed(value)?;
        }
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
        // Tables are made anew by it in MySQL.
        "ENGINE" => effects.rebuilds = true,
        // ROW_FORMAT and its kin describe a store we do not have.
        _ => {}
    }
    Ok(())
}

/// An action in `sqlparser`'s tree.
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
        AlterTableOperation::DropPrimaryKey { .. } => drop_primary_key(builder),
        AlterTableOperation::DropIndex { name } => drop_index_of(builder, &name.value),
        AlterTableOperation::DropForeignKey { name, .. } => drop_foreign_key(builder, &name.value),
        AlterTableOperation::AutoIncrement { value, .. } => {
            option(builder, effects, "AUTO_INCREMENT", &value.to_string())
        }
        AlterTableOperation::RenameTable { table_name } => {
            let (RenameTableNameKind::As(name) | RenameTableNameKind::To(name)) = table_name;
            rename_table(builder, effects, name)
        }
        AlterTableOperation::Algorithm { .. } | AlterTableOperation::Lock { .. } => Ok(()),
        other => Err(SqlError::not_supported(format!("ALTER TABLE … {other}"))),
    }
}
