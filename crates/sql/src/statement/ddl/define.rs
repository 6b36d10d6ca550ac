//! A table's definition in the making: what CREATE TABLE and ALTER TABLE share.

use sqlparser::ast::{self, ColumnOption, TableConstraint};

use super::DdlContext;
use super::blinding::says;
use super::default;
use super::generated;
use super::key::{index_comment, null_in_primary_key};
use super::key_expression;
use super::serial;
use crate::binder::column_type;
use crate::catalog::{
    Catalog, CheckConstraint, Column, ColumnId, Index, OwnershipAnnotation, ROWS, Table,
};
use crate::error::{SqlError, SqlResult};
use crate::parser::{
    Annotations, canonical, is_binary_attribute, is_home_region_attribute, is_personal_attribute,
    is_zerofill_attribute,
};
use crate::statement::target::position;
use crate::types::{Collation, DataType};

/// Columns a table may have.
const COLUMNS_MAX: usize = 4_096;
/// A column's option with the constraint name it was given.
pub(super) type NamedOption = (Option<String>, ColumnOption);

/// A definition in the making.
pub(super) struct Builder<'a> {
    pub(super) context: &'a DdlContext<'a>,
    pub(super) catalog: &'a Catalog,
    pub(super) annotations: &'a Annotations,
    pub(super) table: Table,
    /// Constraints of column definitions, to be made when all columns are there.
    inline: Vec<(usize, Option<String>, ColumnOption)>,
    /// Columns whose definition says NULL.
    pub(super) said_null: Vec<ColumnId>,
    /// Names that columns had before the statement and have no more.
    pub(super) gone: Vec<String>,
    /// Columns the statement defines.
    pub(super) defined: Vec<ColumnId>,
    /// Annotated links of column definitions, to be made when all keys are there.
    pub(super) links: Vec<(usize, OwnershipAnnotation, ast::ForeignKeyConstraint)>,
    /// Foreign keys there were before the statement: what they mean is decided.
    pub(super) decided: Vec<String>,
    /// Whether a lone REFERENCES may become an owner.
    pub(super) infers_owners: bool,
}

/// Where a column goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    Last,
    First,
    After(String),
}

impl Place {
    pub(super) fn of(position: Option<&ast::MySQLColumnPosition>) -> Self {
        match position {
            None => Place::Last,
            Some(ast::MySQLColumnPosition::First) => Place::First,
            Some(ast::MySQLColumnPosition::After(name)) => Place::After(name.value.clone()),
        }
    }
}

/// The collation an option names, or the default of the character set.
///
/// # Errors
/// 1273, 1115.
pub(super) fn collation(
    charset: Option<&str>,
    collation: Option<&str>,
) -> SqlResult<Option<Collation>> {
    if let Some(name) = collation {
        return Collation::from_name(name)
            .map(Some)
            .ok_or_else(|| SqlError::new(1273, "HY000", format!("Unknown collation: '{name}'")));
    }
    if let Some(name) = charset {
        return Collation::default_of_charset(name)
            .map(Some)
            .ok_or_else(|| {
                SqlError::new(1115, "42000", format!("Unknown character set: '{name}'"))
            });
    }
    Ok(None)
}

/// The expression inside any brackets: SHOW CREATE TABLE adds its own.
pub(super) fn unbracketed(mut expr: &ast::Expr) -> &ast::Expr {
    while let ast::Expr::Nested(inner) = expr {
        expr = inner;
    }
    expr
}

/// 1064 for BINARY behind a type without characters.
fn refuse_binary(column: &Column) -> SqlResult<()> {
    if column.ty.is_text() {
        return Ok(());
    }
    Err(SqlError::syntax(format!(
        "BINARY behind the type of column '{}'",
        column.name
    )))
}

pub(super) fn no_column(name: &str, table: &str) -> SqlError {
    SqlError::new(
        1054,
        "42S22",
        format!("Unknown column '{name}' in '{table}'"),
    )
}

impl<'a> Builder<'a> {
    pub(super) fn new(
        context: &'a DdlContext<'a>,
        catalog: &'a Catalog,
        annotations: &'a Annotations,
        table: Table,
    ) -> Self {
        Self {
            context,
            catalog,
            annotations,
            decided: table
                .foreign_keys
                .iter()
                .map(|key| key.name.clone())
                .collect(),
            infers_owners: !table.temporary,
            links: Vec::new(),
            table,
            inline: Vec::new(),
            said_null: Vec::new(),
            gone: Vec::new(),
            defined: Vec::new(),
        }
    }

    /// A column from its definition; constraints in it are kept for [`Builder::make_inline`].
    pub(super) fn column(
        &mut self,
        name: &str,
        data_type: &ast::DataType,
        options: &[NamedOption],
        id: ColumnId,
    ) -> SqlResult<(Column, Vec<NamedOption>)> {
        let serial = serial::serial_options(data_type, options);
        let (data_type, options) = serial.as_ref().map_or((data_type, options), |options| {
            (&serial::SERIAL, options.as_slice())
        });
        let (mut charset, mut collate) = (None, None);
        let binary = options
            .iter()
            .any(|(_, option)| is_binary_attribute(option));
        for (_, option) in options {
            match option {
                ColumnOption::CharacterSet(name) => charset = Some(name.to_string()),
                ColumnOption::Collation(name) => collate = Some(name.to_string()),
                _ => {}
            }
        }
        let unquoted = |name: &String| name.trim_matches(['`', '\'', '"']).to_string();
        let chosen = collation(
            charset.as_ref().map(unquoted).as_deref(),
            collate.as_ref().map(unquoted).as_deref(),
        )?
        .unwrap_or(self.table.collation);
        let chosen = if binary && collate.is_none() && chosen != Collation::Binary {
            Collation::Bin
        } else {
            chosen
        };
        let mut ty = column_type::resolve(name, data_type, chosen)?;
        if options
            .iter()
            .any(|(_, option)| is_zerofill_attribute(option))
        {
            ty = column_type::filled_up(name, data_type, &ty)?;
        }
        let mut column = Column {
            id,
            name: name.to_string(),
            ty,
            not_null: false,
            default: None,
            on_update_now: false,
            auto_increment: false,
            comment: String::new(),
            absent_value: None,
            generated: generated::of_options(name, options.iter().map(|(_, option)| option))?,
        };
        self.defined.push(id);
        let mut constraints = Vec::new();
        let mut explicit_null = false;
        for (label, option) in options {
            match option {
                ColumnOption::Null => {
                    explicit_null = true;
                    self.said_null.push(id);
                }
                ColumnOption::NotNull => column.not_null = true,
                ColumnOption::Default(expr) => {
                    column.default = default::of_expr(&column, expr)?;
                }
                ColumnOption::OnUpdate(expr) => {
                    let digits = default::now_precision(expr);
                    if !digits.is_some_and(|digits| default::is_moment(&column.ty, digits)) {
                        return Err(default::invalid_on_update(&column));
                    }
                    column.on_update_now = true;
                }
                ColumnOption::Comment(text) => column.comment.clone_from(text),
                ColumnOption::DialectSpecific(tokens)
                    if tokens
                        .iter()
                        .any(|t| t.to_string().eq_ignore_ascii_case("AUTO_INCREMENT")) =>
                {
                    column.auto_increment = true;
                    column.not_null = true;
                }
                ColumnOption::PrimaryKey(_) => {
                    if explicit_null {
                        return Err(null_in_primary_key());
                    }
                    column.not_null = true;
                    constraints.push((label.clone(), option.clone()));
                }
                ColumnOption::Unique(_) | ColumnOption::Check(_) | ColumnOption::ForeignKey(_) => {
                    constraints.push((label.clone(), option.clone()));
                }
                ColumnOption::CharacterSet(_) | ColumnOption::Collation(_) => {}
                option if is_binary_attribute(option) => refuse_binary(&column)?,
                option if is_zerofill_attribute(option) => {}
                option if is_personal_attribute(option) || is_home_region_attribute(option) => {}
                ColumnOption::Generated { .. } => {}
                other => return Err(SqlError::not_supported(format!("column option {other}"))),
            }
        }
        self.note_personal(&column, options);
        self.note_home_region(&column, options)?;
        default::settle(self.context, &mut column)?;
        Ok((column, constraints))
    }

    /// Notes whether a column's options, or its COMMENT, say PERSONAL.
    fn note_personal(&mut self, column: &Column, options: &[NamedOption]) {
        let mut options = options.iter();
        let is_personal = says(&column.comment, "PERSONAL")
            || options.any(|(_, option)| is_personal_attribute(option));
        let personal = &mut self.table.blinding.personal;
        personal.retain(|known| *known != column.id);
        if is_personal {
            personal.push(column.id);
        }
    }

    /// Adds a column.
    ///
    /// # Errors
    /// 1060 when the name is taken, and those of its parts.
    pub(super) fn add_column(
        &mut self,
        definition: &ast::ColumnDef,
        place: &Place,
    ) -> SqlResult<usize> {
        let name = &definition.name.value;
        if position(&self.table, name).is_some() {
            return Err(duplicate_column(name));
        }
        if self.table.columns.len() >= COLUMNS_MAX {
            return Err(SqlError::new(1117, "HY000", "Too many columns"));
        }
        check_name(name)?;
        let id = ColumnId(self.table.next_column_id);
        self.table.next_column_id += 1;
        let options: Vec<_> = definition
            .options
            .iter()
            .map(|option| {
                (
                    option.name.as_ref().map(|n| n.value.clone()),
                    option.option.clone(),
                )
            })
            .collect();
        let (column, constraints) = self.column(name, &definition.data_type, &options, id)?;
        self.table.columns.push(column);
        let last = self.table.columns.len() - 1;
        let at = self.move_column(last, place)?;
        for (label, option) in constraints {
            self.inline.push((at, label, option));
        }
        Ok(at)
    }

    /// Keeps an inline constraint of the column at `at` for [`Builder::make_inline`].
    pub(super) fn defer(&mut self, at: usize, label: Option<String>, option: ColumnOption) {
        self.inline.push((at, label, option));
    }

    /// Moves a column; everything that points at columns follows. Its new position.
    pub(super) fn move_column(&mut self, from: usize, place: &Place) -> SqlResult<usize> {
        let name = self.table.columns[from].name.clone();
        let column = match place {
            Place::Last => return Ok(from),
            Place::First => 0,
            Place::After(other) => {
                let other_at = position(&self.table, other)
                    .ok_or_else(|| no_column(other, &self.table.name))?;
                if other_at == from {
                    return Err(no_column(&name, &self.table.name));
                }
                if other_at < from {
                    other_at + 1
                } else {
                    other_at
                }
            }
        };
        let mut order: Vec<usize> = (0..self.table.columns.len()).collect();
        let moved = order.remove(from);
        order.insert(column, moved);
        self.reorder(&order);
        Ok(column)
    }

    /// Puts columns in `order` (old positions); positions left out are dropped.
    pub(super) fn reorder(&mut self, order: &[usize]) {
        let new_of = |old: usize| order.iter().position(|at| *at == old);
        let table = &mut self.table;
        table.columns = order
            .iter()
            .filter_map(|at| table.columns.get(*at).cloned())
            .collect();
        let remap =
            |list: &mut Vec<usize>| *list = list.iter().filter_map(|at| new_of(*at)).collect();
        remap(&mut table.primary_key);
        for key in &mut table.foreign_keys {
            remap(&mut key.columns);
        }
        for index in &mut table.indexes {
            index.columns.retain_mut(|part| match new_of(part.column) {
                Some(at) => {
                    part.column = at;
                    true
                }
                None => false,
            });
        }
        table.indexes.retain(|index| !index.columns.is_empty());
        for (at, ..) in &mut self.inline {
            *at = new_of(*at).unwrap_or(0);
        }
        // The link of a dropped column goes with it.
        self.links.retain_mut(|(at, ..)| match new_of(*at) {
            Some(now) => {
                *at = now;
                true
            }
            None => false,
        });
    }

    /// Makes the constraints written in column definitions.
    pub(super) fn make_inline(&mut self) -> SqlResult<()> {
        for (at, label, option) in std::mem::take(&mut self.inline) {
            match option {
                ColumnOption::PrimaryKey(_) => {
                    let part = self.key_column(at, None, false)?;
                    self.set_primary_key(vec![part])?;
                }
                ColumnOption::Unique(_) => {
                    let part = self.key_column(at, None, false)?;
                    self.add_index(label.as_deref(), vec![part], true, String::new())?;
                }
                ColumnOption::Check(check) => self.add_check(label, &check)?,
                ColumnOption::ForeignKey(key) => self.note_reference(at, &key)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Makes a constraint written on its own.
    pub(super) fn add_constraint(&mut self, constraint: &TableConstraint) -> SqlResult<()> {
        match constraint {
            TableConstraint::PrimaryKey(key) => {
                if key_expression::any_expression(&key.columns) {
                    let text = "The primary key cannot be a functional index";
                    return Err(SqlError::new(3756, "HY000", text));
                }
                let parts = self.key_parts(&key.columns, None)?;
                self.set_primary_key(parts)?;
                self.note_order(ROWS, &key.index_options);
                Ok(())
            }
            TableConstraint::Unique(key) => {
                let name = key.index_name.as_ref().or(key.name.as_ref());
                let name = name.map(|n| n.value.as_str());
                let parts = self.key_parts(&key.columns, name)?;
                let comment = index_comment(&key.index_options);
                let id = self.add_index(name, parts, true, comment)?;
                self.note_order(id, &key.index_options);
                Ok(())
            }
            TableConstraint::Index(key) => {
                let name = key.name.as_ref().map(|n| n.value.as_str());
                let parts = self.key_parts(&key.columns, name)?;
                let comment = index_comment(&key.index_options);
                let id = self.add_index(name, parts, false, comment)?;
                self.note_order(id, &key.index_options);
                Ok(())
            }
            TableConstraint::ForeignKey(key) => self.add_foreign_key(key),
            TableConstraint::Check(check) => {
                self.add_check(check.name.as_ref().map(|n| n.value.clone()), check)
            }
            other => Err(SqlError::not_supported(format!("constraint {other}"))),
        }
    }

    /// Adds a CHECK.
    pub(super) fn add_check(
        &mut self,
        name: Option<String>,
        check: &ast::CheckConstraint,
    ) -> SqlResult<()> {
        let taken = |name: &str| {
            let lower = name.to_lowercase();
            self.table
                .checks
                .iter()
                .any(|check| check.name.to_lowercase() == lower)
        };
        let name = match name {
            Some(name) if taken(&name) => {
                return Err(SqlError::new(
                    3822,
                    "HY000",
                    format!("Duplicate check constraint name '{name}'."),
                ));
            }
            Some(name) => name,
            None => {
                let mut number = 1;
                loop {
                    let name = format!("{}_chk_{number}", self.table.name);
                    if !taken(&name) {
                        break name;
                    }
                    number += 1;
                }
            }
        };
        self.table.checks.push(CheckConstraint {
            name,
            expression: canonical(&check.expr),
            enforced: check.enforced != Some(false),
        });
        Ok(())
    }

    /// Rules over the whole definition, and the order MySQL lists keys in.
    ///
    /// # Errors
    /// 1113, 1075, 1063 and what binding CHECKs meets.
    pub(super) fn finish(&mut self) -> SqlResult<()> {
        self.drop_unused_key_expressions();
        self.resolve_ownership()?;
        if self.table.columns.is_empty() {
            return Err(SqlError::new(
                4028,
                "HY000",
                "A table must have at least one visible column.",
            ));
        }
        let automatic: Vec<usize> = (0..self.table.columns.len())
            .filter(|at| self.table.columns[*at].auto_increment)
            .collect();
        if let Some(&at) = automatic.first() {
            let column = &self.table.columns[at];
            let counts = column.ty.is_integer() && !matches!(column.ty, DataType::Bit { .. });
            if !counts && !column.ty.is_float() {
                let text = format!("Incorrect column specifier for column '{}'", column.name);
                return Err(SqlError::new(1063, "42000", text));
            }
            let leads_key = self.table.primary_key.first() == Some(&at)
                || self
                    .table
                    .indexes
                    .iter()
                    .any(|index| index.columns.first().is_some_and(|part| part.column == at));
            if automatic.len() > 1 || !leads_key {
                return Err(SqlError::new(
                    1075,
                    "42000",
                    "Incorrect table definition; there can be only one auto column and it must be defined as a key",
                ));
            }
            if column.default.is_some() {
                return Err(default::invalid(column));
            }
        }
        let nullable = |index: &Index| {
            index.columns.iter().any(|part| {
                self.table
                    .columns
                    .get(part.column)
                    .is_some_and(|c| !c.not_null)
            })
        };
        let mut indexes = std::mem::take(&mut self.table.indexes);
        indexes.sort_by_key(|index| (!index.unique, index.unique && nullable(index)));
        self.table.indexes = indexes;
        self.check_generated()?;
        self.retype_key_expressions()?;
        default::check_constraints(self.context, self.catalog, &self.table)
    }
}

pub(super) fn duplicate_column(name: &str) -> SqlError {
    SqlError::new(1060, "42S21", format!("Duplicate column name '{name}'"))
}

/// Names of tables, columns, indexes and databases.
///
/// # Errors
/// 1059 too long; 1166, here for empty or space-ended ones.
pub(super) fn check_name(name: &str) -> SqlResult<()> {
    if name.chars().count() > 64 {
        return Err(SqlError::new(
            1059,
            "42000",
            format!("Identifier name '{name}' is too long"),
        ));
    }
    if name.is_empty() || name.ends_with(' ') || name.contains('\0') {
        return Err(SqlError::new(
            1166,
            "42000",
            format!("Incorrect name '{name}'"),
        ));
    }
    Ok(())
}
