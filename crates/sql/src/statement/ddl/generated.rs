//! Rules for generated columns in a definition: what they may be, read and hang together with.

use sqlparser::ast::{ColumnOption, Expr as Ast, GeneratedExpressionMode};

use super::define::{Builder, unbracketed};
use crate::catalog::{Column, ForeignKey, ForeignKeyAction, Generated, GeneratedKind, Table};
use crate::error::{SqlError, SqlResult};
use crate::expr::functions;
use crate::parser::{calls_in, canonical, columns_in, has_query};
use crate::plan::{Expr, ExprKind, walk};

/// Functions MySQL allows in no generated column though they answer the same within a statement,
/// or are no functions here.
const REFUSED: [&str; 8] = [
    "default",
    "values",
    "version",
    "icu_version",
    "load_file",
    "name_const",
    "charset",
    "collation",
];

/// `GENERATED ALWAYS AS (…)` among a column's options.
///
/// # Errors
/// 1221 for options a generated column cannot have; 3764; 1064 for an identity column.
pub(super) fn of_options<'o>(
    name: &str,
    options: impl Iterator<Item = &'o ColumnOption> + Clone,
) -> SqlResult<Option<Generated>> {
    let mut found = None;
    for option in options.clone() {
        let ColumnOption::Generated {
            generation_expr,
            generation_expr_mode,
            ..
        } = option
        else {
            continue;
        };
        let Some(expr) = generation_expr else {
            return Err(SqlError::syntax(format!("near '{option}'")));
        };
        if matches!(unbracketed(expr), Ast::Tuple(_)) {
            let text =
                format!("Expression of generated column '{name}' cannot refer to a row value.");
            return Err(SqlError::new(3764, "HY000", text));
        }
        found = Some(Generated {
            expression: canonical(expr),
            kind: match generation_expr_mode {
                Some(GeneratedExpressionMode::Stored) => GeneratedKind::Stored,
                _ => GeneratedKind::Virtual,
            },
        });
    }
    if found.is_some() {
        for option in options {
            let word = match option {
                ColumnOption::Default(_) => "DEFAULT",
                ColumnOption::OnUpdate(_) => "ON UPDATE",
                ColumnOption::DialectSpecific(tokens)
                    if tokens
                        .iter()
                        .any(|t| t.to_string().eq_ignore_ascii_case("AUTO_INCREMENT")) =>
                {
                    "AUTO_INCREMENT"
                }
                _ => continue,
            };
            return Err(wrong_usage(word));
        }
    }
    Ok(found)
}

/// An option no generated column has.
pub(super) fn wrong_usage(word: &str) -> SqlError {
    SqlError::new(
        1221,
        "HY000",
        format!("Incorrect usage of {word} and generated column"),
    )
}

/// A MODIFY may not turn a column that MySQL does not store into one it does, or back.
///
/// # Errors
/// 3106.
pub(super) fn check_change(old: &Column, new: &Column) -> SqlResult<()> {
    let is_virtual = |column: &Column| {
        let kind = column.generated.as_ref().map(|generated| generated.kind);
        kind == Some(GeneratedKind::Virtual)
    };
    if is_virtual(old) != is_virtual(new) {
        return Err(unsupported("Changing the STORED status"));
    }
    Ok(())
}

/// 3106.
pub(super) fn unsupported(what: &str) -> SqlError {
    SqlError::new(
        3106,
        "HY000",
        format!("'{what}' is not supported for generated columns."),
    )
}

/// Whether `one`'s expression reads the column called `name`.
fn reads(generated: &Generated, name: &str) -> bool {
    let lower = name.to_lowercase();
    columns_in(&generated.expression)
        .iter()
        .any(|column| column.to_lowercase() == lower)
}

impl Builder<'_> {
    /// Rules over all generated columns of the definition.
    ///
    /// # Errors
    /// 3108 and 3837 for columns dropped or renamed under them; those of [`Self::bound_generated`];
    /// 3192 for foreign keys.
    pub(super) fn check_generated(&self) -> SqlResult<()> {
        for (at, column) in self.table.columns.iter().enumerate() {
            let Some(generated) = &column.generated else {
                continue;
            };
            if !self.defined.contains(&column.id)
                && let Some(name) = self.gone.iter().find(|name| reads(generated, name))
            {
                return Err(depended_on(name, generated));
            }
            self.bound_generated(at, column, generated, &column.name)?;
        }
        for key in self.table.foreign_keys.iter().filter(|key| key.enforced) {
            self.check_base_columns(key)?;
        }
        Ok(())
    }

    /// The expression of a generated column or key part, when it may be one; `name` is what
    /// errors call it.
    ///
    /// # Errors
    /// 1054; 3102, 3763, 3765 (3758 for a key part) for what depends on more than the row; 3109
    /// (3754) for AUTO_INCREMENT columns; 3107 for generated columns that come later.
    pub(super) fn bound_generated(
        &self,
        at: usize,
        column: &Column,
        generated: &Generated,
        name: &str,
    ) -> SqlResult<Expr> {
        let refusal = Refusal {
            name,
            kind: generated.kind,
        };
        for call in calls_in(&generated.expression) {
            let known = functions::lookup(&call);
            // Without arguments it is the current time.
            let of_column =
                call == "unix_timestamp" && !generated.expression.contains("unix_timestamp()");
            if REFUSED.contains(&call.as_str())
                || known.is_some_and(|function| !function.deterministic && !of_column)
            {
                let shown = known.map_or(call, |function| function.name.to_lowercase());
                return Err(refusal.function(&shown));
            }
        }
        if has_query(&generated.expression) {
            return Err(refusal.anything());
        }
        let bind = super::default::bind_context(self.context, self.catalog);
        let bound = generated.bind(&bind, &self.table)?;
        if walk::any(&bound, &|e| is_param(&e.kind)) {
            return Err(refusal.anything());
        }
        if walk::any(&bound, &|e| is_variable(&e.kind)) {
            return Err(refusal.variable());
        }
        let mut result = Ok(());
        walk::references(&bound, &mut |(_, read)| {
            let Some(other) = self.table.columns.get(read) else {
                return;
            };
            if other.auto_increment {
                result = Err(refusal.auto_increment());
            } else if other.generated.is_some() && read >= at && !column.is_hidden() {
                result = Err(SqlError::new(
                    3107,
                    "HY000",
                    "Generated column can refer only to generated columns defined prior to it.",
                ));
            }
        });
        result.map(|()| bound)
    }

    /// A foreign key over a generated column.
    ///
    /// # Errors
    /// 3733 when it is VIRTUAL, 3104 when an action would have to write it.
    pub(super) fn check_key_over_generated(&self, key: &ForeignKey) -> SqlResult<()> {
        for column in key
            .columns
            .iter()
            .filter_map(|at| self.table.columns.get(*at))
        {
            match column.generated.as_ref().map(|generated| generated.kind) {
                None => {}
                Some(GeneratedKind::Stored) => refuse_writing_action(key)?,
                Some(_) => return Err(virtual_in_key(key, &column.name)),
            }
        }
        Ok(())
    }

    /// An action of a foreign key may not change what a STORED column is computed from.
    fn check_base_columns(&self, key: &ForeignKey) -> SqlResult<()> {
        let acts = |action| {
            matches!(
                action,
                ForeignKeyAction::Cascade | ForeignKeyAction::SetNull
            )
        };
        if !acts(key.on_delete) && !acts(key.on_update) {
            return Ok(());
        }
        let stored = self.table.columns.iter().filter_map(|column| {
            let generated = column.generated.as_ref()?;
            (generated.kind == GeneratedKind::Stored).then_some(generated)
        });
        for generated in stored {
            let columns = key
                .columns
                .iter()
                .filter_map(|at| self.table.columns.get(*at));
            if columns
                .into_iter()
                .any(|column| reads(generated, &column.name))
            {
                return Err(SqlError::new(
                    3192,
                    "HY000",
                    "Cannot add foreign key on the base column of stored column",
                ));
            }
        }
        Ok(())
    }
}

fn is_param(kind: &ExprKind) -> bool {
    matches!(kind, ExprKind::Param(_))
}

fn is_variable(kind: &ExprKind) -> bool {
    matches!(
        kind,
        ExprKind::UserVariable(_) | ExprKind::SystemVariable(..) | ExprKind::AssignUserVariable(..)
    )
}

fn depended_on(name: &str, generated: &Generated) -> SqlError {
    if generated.kind == GeneratedKind::KeyPart {
        let text = format!(
            "Column '{name}' has a functional index dependency and cannot be dropped or renamed."
        );
        return SqlError::new(3837, "HY000", text);
    }
    let text = format!("Column '{name}' has a generated column dependency.");
    SqlError::new(3108, "HY000", text)
}

fn refuse_writing_action(key: &ForeignKey) -> SqlResult<()> {
    let clause = match (key.on_update, key.on_delete) {
        (ForeignKeyAction::Cascade, _) => "ON UPDATE CASCADE",
        (ForeignKeyAction::SetNull, _) => "ON UPDATE SET NULL",
        (_, ForeignKeyAction::SetNull) => "ON DELETE SET NULL",
        _ => return Ok(()),
    };
    Err(SqlError::new(
        3104,
        "HY000",
        format!("Cannot define foreign key with {clause} clause on a generated column."),
    ))
}

/// A foreign key from or to a VIRTUAL column.
pub(super) fn virtual_in_key(key: &ForeignKey, column: &str) -> SqlError {
    SqlError::new(
        3733,
        "HY000",
        format!(
            "Foreign key '{}' uses virtual column '{column}' which is not supported.",
            key.name
        ),
    )
}

/// Whether MySQL would not store the column's values.
pub(super) fn is_virtual(table: &Table, at: usize) -> bool {
    let generated = table.columns.get(at).and_then(|c| c.generated.as_ref());
    generated.is_some_and(|generated| generated.kind == GeneratedKind::Virtual)
}

/// Words for an expression that reads more than its row.
struct Refusal<'a> {
    name: &'a str,
    kind: GeneratedKind,
}

impl Refusal<'_> {
    fn about(&self, index: (u16, &str), column: (u16, &str)) -> SqlError {
        let (code, text) = match self.kind {
            GeneratedKind::KeyPart => index,
            GeneratedKind::Virtual | GeneratedKind::Stored => column,
        };
        SqlError::new(code, "HY000", text.replace("{}", self.name))
    }

    const INDEX: (u16, &'static str) = (
        3758,
        "Expression of functional index '{}' contains a disallowed function.",
    );

    fn function(&self, function: &str) -> SqlError {
        let named = format!(
            "Expression of generated column '{{}}' contains a disallowed function: {function}."
        );
        self.about(Self::INDEX, (3763, &named))
    }

    fn anything(&self) -> SqlError {
        let column = "Expression of generated column '{}' contains a disallowed function.";
        self.about(Self::INDEX, (3102, column))
    }

    fn variable(&self) -> SqlError {
        let column = "Expression of generated column '{}' cannot refer user or system variables.";
        self.about(Self::INDEX, (3765, column))
    }

    fn auto_increment(&self) -> SqlError {
        self.about(
            (
                3754,
                "Functional index '{}' cannot refer to an auto-increment column.",
            ),
            (
                3109,
                "Generated column '{}' cannot refer to auto-increment column.",
            ),
        )
    }
}
