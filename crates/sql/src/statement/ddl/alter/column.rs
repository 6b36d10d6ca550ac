//! ALTER TABLE: columns that go, are renamed or become others.

use sqlparser::ast::{AlterColumnOperation, ColumnOption, DataType};

use super::key::cannot_drop;
use crate::catalog::Column;
use crate::error::{SqlError, SqlResult};
use crate::statement::ddl::change::Effects;
use crate::statement::ddl::define::{Builder, Place, check_name, duplicate_column, no_column};
use crate::statement::ddl::key::null_in_primary_key;
use crate::statement::ddl::{default, generated, ownership};
use crate::statement::target::position;

pub(super) fn drop_column(builder: &mut Builder<'_>, name: &str) -> SqlResult<()> {
    let at = position(&builder.table, name).ok_or_else(|| cannot_drop(name))?;
    if builder.table.visible_columns().count() == 1 {
        return Err(SqlError::new(
            1090,
            "42000",
            "You can't delete all columns with ALTER TABLE; use DROP TABLE instead",
        ));
    }
    refuse_checked(builder, name)?;
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

pub(super) fn rename_column(
    builder: &mut Builder<'_>,
    effects: &mut Effects,
    from: &str,
    to: &str,
) -> SqlResult<()> {
    let at = find(builder, from)?;
    check_name(to)?;
    if position(&builder.table, to).is_some_and(|other| other != at) {
        return Err(duplicate_column(to));
    }
    if from != to {
        refuse_checked(builder, from)?;
        if from.to_lowercase() != to.to_lowercase() {
            builder.gone.push(from.to_string());
        }
        effects
            .renamed_columns
            .push((from.to_string(), to.to_string()));
    }
    builder.table.columns[at].name = to.to_string();
    for rule in &mut builder.table.ownership.rules {
        ownership::rename_in_rule(rule, None, from, to);
    }
    ownership::rename_in_retention(&mut builder.table.ownership.retention, from, to);
    Ok(())
}

/// The column anew under its identity; keys it is in stay.
pub(super) fn modify(
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
            return Err(null_in_primary_key());
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

pub(super) fn alter_default(
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

fn find(builder: &Builder<'_>, name: &str) -> SqlResult<usize> {
    position(&builder.table, name).ok_or_else(|| no_column(name, &builder.table.name))
}

/// 3959 for a column that a CHECK mentions.
fn refuse_checked(builder: &Builder<'_>, name: &str) -> SqlResult<()> {
    match checked_by(builder, name) {
        Some(check) => Err(SqlError::new(
            3959,
            "HY000",
            format!(
                "Check constraint '{check}' uses column '{name}', hence column cannot be dropped or renamed."
            ),
        )),
        None => Ok(()),
    }
}

/// The CHECK that mentions the column.
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
