//! SET: user variables, system variables, NAMES.

use sqlparser::ast;

use super::accounts::{Privileges, access};
use super::session::Session;
use super::variables::{Scope, charset, check, find};
use crate::error::{SqlError, SqlResult};
use crate::expr::{SessionInfo, WarningLevel};
use crate::parser::{SetItem, SetScope};
use crate::types::Value;

impl Session {
    /// One assignment.
    pub(super) fn set_item(&mut self, item: &SetItem) -> SqlResult<()> {
        match item {
            SetItem::User { name, value } => {
                let value = self.evaluate(value)?;
                self.state.set_user_variable(name, value);
                Ok(())
            }
            SetItem::System { scope, name, value } => self.set_system(*scope, name, value.as_ref()),
            SetItem::Names { charset, collation } => {
                self.set_names(charset.as_deref(), collation.as_deref())
            }
            SetItem::Charset(charset) => self.set_charset(charset.as_deref()),
            SetItem::Transaction {
                scope,
                isolation,
                read_only,
            } => self.set_characteristics(*scope, isolation.as_deref(), *read_only),
        }
    }

    /// 1227 unless the account may SET GLOBAL.
    pub(super) fn require_variable_admin(&self) -> SqlResult<()> {
        access::require_global(
            &self.state.account(),
            Privileges::SUPER,
            "SUPER or SYSTEM_VARIABLES_ADMIN",
        )
    }

    fn set_system(
        &mut self,
        scope: SetScope,
        name: &str,
        value: Option<&ast::Expr>,
    ) -> SqlResult<()> {
        let (position, definition) = find(name)?;
        let global = scope == SetScope::Global;
        check_scope(
            scope,
            definition.scope,
            definition.name,
            definition.read_only,
        )?;
        if global {
            self.require_variable_admin()?;
        }
        let given = match value {
            None => self.default_of(position, global),
            Some(expr) => self.setting_value(expr)?,
        };
        let (checked, warning) = check(definition, &given)?;
        if let Some(message) = warning {
            self.state.warn(WarningLevel::Warning, 1292, message);
        }
        if global {
            self.instance().globals.write().set(position, checked);
            self.bound_views();
            self.instance().count_candidates();
            return Ok(());
        }
        self.before_session_change(definition.name, &checked)?;
        if scope == SetScope::Next && self.set_for_next(definition.name, &checked)? {
            return Ok(());
        }
        self.state.values.borrow_mut().set(position, checked);
        self.after_session_change(definition.name);
        self.state.apply_values();
        Ok(())
    }

    /// SET x = DEFAULT: the built-in value for GLOBAL, the server's for a session.
    fn default_of(&self, position: usize, global: bool) -> Value {
        if global {
            return super::variables::Values::default().get(position).clone();
        }
        self.instance().globals.read().get(position).clone()
    }

    /// A bare word is text: `ON`, `utf8mb4`, `SYSTEM`.
    fn setting_value(&mut self, expr: &ast::Expr) -> SqlResult<Value> {
        match expr {
            ast::Expr::Identifier(word)
                if !word.value.starts_with('@') && word.quote_style != Some('`') =>
            {
                Ok(Value::Text(word.value.clone()))
            }
            other => self.evaluate(other),
        }
    }

    /// What must happen before a session variable changes.
    fn before_session_change(&mut self, name: &str, value: &Value) -> SqlResult<()> {
        match name {
            // Turning autocommit on commits what is open.
            "autocommit" if *value == Value::Int(1) => {
                if self.state.settings().autocommit {
                    Ok(())
                } else {
                    self.commit()
                }
            }
            "last_insert_id" | "identity" => {
                if let Value::Int(id) = value {
                    self.state.last_insert_id.set(id.unsigned_abs());
                }
                Ok(())
            }
            "rand_seed1" | "rand_seed2" => {
                if let Value::Int(seed) = value {
                    self.state.random.set(seed.unsigned_abs());
                }
                Ok(())
            }
            "character_set_client" if value.is_null() => Ok(()),
            _ => Ok(()),
        }
    }

    /// `SET @@transaction_isolation = …` without SESSION is about the next transaction.
    fn set_for_next(&mut self, name: &str, value: &Value) -> SqlResult<bool> {
        if !matches!(name, "transaction_isolation" | "transaction_read_only") {
            return Ok(false);
        }
        if self.transaction.is_some() {
            return Err(super::transaction::in_progress());
        }
        match value {
            Value::Text(level) => self.next_isolation = Some(super::variables::isolation(level)),
            other => self.next_read_only = Some(*other == Value::Int(1)),
        }
        Ok(true)
    }

    /// Variables that drag others along.
    fn after_session_change(&self, name: &str) {
        let mut values = self.state.values.borrow_mut();
        let text = |name: &str| Value::Text(name.to_string());
        match name {
            "character_set_connection" => {
                let default = charset::charset(values.text(name));
                if let Some(found) = default {
                    values.set_named("collation_connection", text(found.default_collation));
                }
            }
            "collation_connection" => {
                let found = charset::collation(values.text(name));
                if let Some(found) = found {
                    values.set_named("character_set_connection", text(found.charset));
                }
            }
            "collation_server" => {
                let found = charset::collation(values.text(name));
                if let Some(found) = found {
                    values.set_named("character_set_server", text(found.charset));
                }
            }
            "character_set_server" => {
                let found = charset::charset(values.text(name));
                if let Some(found) = found {
                    values.set_named("collation_server", text(found.default_collation));
                }
            }
            _ => {}
        }
    }

    fn set_names(&mut self, name: Option<&str>, collation: Option<&str>) -> SqlResult<()> {
        let set = known_charset(name.unwrap_or("utf8mb4"))?;
        let collation = match collation {
            None => set.default_collation,
            Some(wanted) => {
                let found = charset::collation(wanted).ok_or_else(|| {
                    SqlError::new(1273, "HY000", format!("Unknown collation: '{wanted}'"))
                })?;
                if found.charset != set.name {
                    return Err(SqlError::new(
                        1253,
                        "42000",
                        format!(
                            "COLLATION '{}' is not valid for CHARACTER SET '{}'",
                            found.name, set.name
                        ),
                    ));
                }
                found.name
            }
        };
        self.write_connection_charset(set.name, set.name, collation);
        Ok(())
    }

    /// SET CHARACTER SET: the connection takes the database's collation.
    fn set_charset(&mut self, name: Option<&str>) -> SqlResult<()> {
        let set = known_charset(name.unwrap_or("utf8mb4"))?;
        let (connection, collation) = {
            let values = self.state.values.borrow();
            (
                values.text("character_set_database").to_string(),
                values.text("collation_database").to_string(),
            )
        };
        self.write_connection_charset(set.name, &connection, &collation);
        Ok(())
    }

    /// The collation that a client names when it logs in; one that this server lacks leaves the
    /// server's variables in force.
    ///
    /// # Errors
    /// 1231 for a character set that no statement can be written in.
    pub(super) fn set_client_collation(&mut self, id: u16) -> SqlResult<()> {
        if let Some(name) = charset::wide_charset_of(id) {
            return Err(SqlError::new(
                1231,
                "42000",
                format!("Variable 'character_set_client' can't be set to the value of '{name}'"),
            ));
        }
        let Some(found) = charset::collation_by_id(i64::from(id)) else {
            return Ok(());
        };
        let servers = {
            let values = self.state.values.borrow();
            let set = charset::charset(values.text("character_set_client"));
            set.is_some_and(|set| set.default_collation == found.name)
        };
        if !servers {
            self.write_connection_charset(found.charset, found.charset, found.name);
        }
        Ok(())
    }

    fn write_connection_charset(&self, client: &str, connection: &str, collation: &str) {
        let text = |name: &str| Value::Text(name.to_string());
        let mut values = self.state.values.borrow_mut();
        values.set_named("character_set_client", text(client));
        values.set_named("character_set_results", text(client));
        values.set_named("character_set_connection", text(connection));
        values.set_named("collation_connection", text(collation));
        drop(values);
        self.state.apply_values();
    }
}

fn known_charset(name: &str) -> SqlResult<&'static charset::Charset> {
    charset::charset(name)
        .ok_or_else(|| SqlError::new(1115, "42000", format!("Unknown character set: '{name}'")))
}

fn check_scope(asked: SetScope, scope: Scope, name: &str, read_only: bool) -> SqlResult<()> {
    let error = |code, text: String| Err(SqlError::new(code, "HY000", text));
    match asked {
        SetScope::Persist | SetScope::PersistOnly => Err(SqlError::not_supported("SET PERSIST")),
        _ if read_only => error(1238, format!("Variable '{name}' is a read only variable")),
        SetScope::Global if scope == Scope::Session => error(
            1228,
            format!("Variable '{name}' is a SESSION variable and can't be used with SET GLOBAL"),
        ),
        SetScope::Session | SetScope::Next if scope == Scope::Global => error(
            1229,
            format!("Variable '{name}' is a GLOBAL variable and should be set with SET GLOBAL"),
        ),
        _ => Ok(()),
    }
}
