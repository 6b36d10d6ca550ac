//! What a session knows about itself: variables, user, database, diagnostics. Expressions ask
//! through [`SessionInfo`]; everything is behind cells because a statement holds it shared.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use super::accounts::Account;
use super::host::ClientInfo;
use super::instance::Instance;
use super::processes::Process;
use super::retyped::type_of_variable;
use super::variables::{Settings, Values, find};
use super::waiter::SessionWaiter;
use crate::catalog::{Catalog, TemporaryTables};
use crate::error::{SqlError, SqlResult};
use crate::expr::{SessionInfo, Warning};
use crate::types::{Collation, DataType, Value};

/// The state of one session.
pub(crate) struct SessionState {
    pub instance: Arc<Instance>,
    pub process: Arc<Process>,
    pub client: ClientInfo,
    pub waiter: Arc<SessionWaiter>,
    pub user: RefCell<String>,
    pub identity: RefCell<String>,
    pub database: RefCell<Option<String>>,
    pub values: RefCell<Values>,
    pub settings: RefCell<Arc<Settings>>,
    pub user_variables: RefCell<BTreeMap<String, Value>>,
    /// User variables that were bound since they were last taken, with the types that they had.
    bound_variables: RefCell<BTreeMap<String, DataType>>,
    pub last_insert_id: Cell<u64>,
    /// The statement at hand has called `LAST_INSERT_ID(n)`: its OK packet says n.
    pub insert_id_given: Cell<bool>,
    pub row_count: Cell<i64>,
    pub found_rows: Cell<u64>,
    /// SHOW WARNINGS of the last statement that was not itself about warnings.
    pub diagnostics: RefCell<Vec<Warning>>,
    /// Warnings and errors the last statement raised, those beyond `max_error_count` included.
    pub warning_total: Cell<u64>,
    pub random: Cell<u64>,
    pub temporary: TemporaryTables,
    /// The computed tables list temporary tables too: SHOW COLUMNS and SHOW INDEX of one table.
    pub shows_temporary: Cell<bool>,
    account: RefCell<(u64, Arc<Account>)>,
}

impl SessionState {
    /// The state of a new session with the server's variables.
    pub(crate) fn new(
        instance: Arc<Instance>,
        process: Arc<Process>,
        identity: &str,
        user: &str,
        client: ClientInfo,
    ) -> Self {
        let waiter = Arc::new(SessionWaiter::new(
            Arc::clone(&instance.host),
            process.id,
            Arc::clone(&process.control),
        ));
        let values = instance.globals.read().clone();
        let settings = Settings::read(&values, &instance.host.system_time_zone());
        let random = Cell::new(instance.host.random());
        let nobody = Account::new(super::accounts::AccountKey {
            user: user.to_string(),
            host: client.host.clone(),
        });
        let state = Self {
            instance,
            process,
            client,
            waiter,
            user: RefCell::new(user.to_string()),
            identity: RefCell::new(identity.to_string()),
            database: RefCell::new(None),
            values: RefCell::new(values),
            settings: RefCell::new(Arc::new(settings)),
            user_variables: RefCell::default(),
            bound_variables: RefCell::default(),
            last_insert_id: Cell::new(0),
            insert_id_given: Cell::new(false),
            row_count: Cell::new(0),
            found_rows: Cell::new(0),
            diagnostics: RefCell::default(),
            warning_total: Cell::new(0),
            random,
            temporary: TemporaryTables::default(),
            shows_temporary: Cell::new(false),
            account: RefCell::new((u64::MAX, Arc::new(nobody))),
        };
        state.apply_values();
        state
    }

    /// The catalog with the session's temporary tables over it.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        self.temporary.over(self.instance.store.current())
    }

    /// The typed variables.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.borrow())
    }

    /// Makes the typed variables anew after SET.
    pub(crate) fn apply_values(&self) {
        let zone = self.instance.host.system_time_zone();
        let settings = Settings::read(&self.values.borrow(), &zone);
        *self.settings.borrow_mut() = Arc::new(settings);
    }

    /// The type of `@name` for a statement that is being bound, which is noted.
    pub(super) fn bind_user_variable(&self, name: &str, collation: Collation) -> DataType {
        let ty = type_of_variable(&self.user_variable(name), collation);
        let mut bound = self.bound_variables.borrow_mut();
        bound.insert(name.to_lowercase(), ty.clone());
        ty
    }

    /// The user variables that were bound since the last call, by their names in lower case.
    pub(super) fn take_bound_variables(&self) -> BTreeMap<String, DataType> {
        self.bound_variables.take()
    }

    /// Whether all of these variables have the types that a statement was bound with.
    pub(super) fn variables_have(&self, bound: &BTreeMap<String, DataType>) -> bool {
        let collation = self.settings.borrow().collation;
        let mut each = bound.iter();
        each.all(|(name, ty)| type_of_variable(&self.user_variable(name), collation) == *ty)
    }

    /// Back to the server's variables, no user variables, no diagnostics (`COM_RESET_CONNECTION`).
    pub(crate) fn reset(&self) {
        *self.values.borrow_mut() = self.instance.globals.read().clone();
        self.apply_values();
        self.user_variables.borrow_mut().clear();
        self.diagnostics.borrow_mut().clear();
        self.warning_total.set(0);
        self.last_insert_id.set(0);
        self.row_count.set(0);
        self.found_rows.set(0);
    }

    /// The account behind the session, as it stands now. An account dropped meanwhile may do
    /// nothing any more.
    pub(crate) fn account(&self) -> Arc<Account> {
        let accounts = self.instance.accounts.load();
        let mut cached = self.account.borrow_mut();
        if cached.0 != accounts.version {
            let identity = self.identity.borrow();
            let found = accounts
                .of_identity(&identity)
                .map_or_else(|| Arc::new(Account::new(cached.1.key.clone())), Arc::clone);
            *cached = (accounts.version, found);
        }
        Arc::clone(&cached.1)
    }

    /// Another user logs in on the same connection.
    pub(crate) fn set_user(&self, user: &str, identity: &str) {
        *self.user.borrow_mut() = user.to_string();
        *self.identity.borrow_mut() = identity.to_string();
        self.account.borrow_mut().0 = u64::MAX;
        self.process.set_user(user, identity);
    }

    /// Microseconds since 1970 that `NOW()` shows for a statement starting now.
    pub(crate) fn now_micros(&self) -> i64 {
        match self.settings.borrow().fixed_now_micros {
            0 => self.instance.host.wall_micros(),
            fixed => fixed,
        }
    }

    /// The name of the current database.
    ///
    /// # Errors
    /// 1046 when none is selected.
    pub(crate) fn require_database(&self) -> SqlResult<String> {
        self.database
            .borrow()
            .clone()
            .ok_or_else(|| SqlError::new(1046, "3D000", "No database selected"))
    }

    /// Raises a warning outside an expression.
    pub(crate) fn warn(&self, level: crate::expr::WarningLevel, code: u16, message: String) {
        self.warning_total.set(self.warning_total.get() + 1);
        let limit = self.settings.borrow().max_warnings;
        let mut list = self.diagnostics.borrow_mut();
        if list.len() < limit {
            list.push(Warning {
                level,
                code,
                message,
            });
        }
    }

    fn computed(&self, name: &str) -> Option<Value> {
        let unsigned = |number: u64| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
        #[allow(clippy::cast_precision_loss)] // MySQL's own form: seconds with microseconds
        let value = match name {
            "last_insert_id" | "identity" => unsigned(self.last_insert_id.get()),
            "pseudo_thread_id" => unsigned(self.process.id),
            "warning_count" => unsigned(self.warning_total.get()),
            "error_count" => {
                let list = self.diagnostics.borrow();
                let errors = list
                    .iter()
                    .filter(|w| w.level == crate::expr::WarningLevel::Error)
                    .count();
                unsigned(errors as u64)
            }
            "timestamp" => Value::Double(self.now_micros() as f64 / 1e6),
            _ => return None,
        };
        Some(value)
    }
}

impl SessionInfo for SessionState {
    fn database(&self) -> Option<String> {
        self.database.borrow().clone()
    }

    fn current_user(&self) -> String {
        self.identity.borrow().clone()
    }

    fn session_user(&self) -> String {
        format!("{}@{}", self.user.borrow(), self.client.host)
    }

    fn connection_id(&self) -> u64 {
        self.process.id
    }

    fn last_insert_id(&self) -> u64 {
        self.last_insert_id.get()
    }

    fn set_last_insert_id(&self, id: u64) {
        self.last_insert_id.set(id);
        self.insert_id_given.set(true);
    }

    fn row_count(&self) -> i64 {
        self.row_count.get()
    }

    fn found_rows(&self) -> u64 {
        self.found_rows.get()
    }

    fn system_variable(&self, name: &str, global: bool) -> SqlResult<Value> {
        let (position, definition) = find(name)?;
        let session_only = definition.scope == super::variables::Scope::Session;
        if global && session_only {
            return Err(SqlError::new(
                1238,
                "HY000",
                format!("Variable '{}' is a SESSION variable", definition.name),
            ));
        }
        if let Some(value) = self.computed(definition.name) {
            return Ok(value);
        }
        if global || definition.scope == super::variables::Scope::Global {
            return Ok(self.instance.globals.read().get(position).clone());
        }
        Ok(self.values.borrow().get(position).clone())
    }

    fn user_variable(&self, name: &str) -> Value {
        self.user_variables
            .borrow()
            .get(&name.to_lowercase())
            .cloned()
            .unwrap_or(Value::Null)
    }

    fn set_user_variable(&self, name: &str, value: Value) {
        self.user_variables
            .borrow_mut()
            .insert(name.to_lowercase(), value);
    }

    #[allow(clippy::cast_possible_truncation)] // `as` saturates, which is what is wanted
    fn sleep(&self, seconds: f64) -> SqlResult<bool> {
        let micros = (seconds.max(0.0) * 1e6) as i64;
        match self.waiter.pause(Some(micros), &|| false) {
            Ok(_) => Ok(false),
            Err(manxdb_txn::TxnError::Interrupted) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    #[allow(clippy::cast_possible_truncation)] // `as` saturates, which is what is wanted
    fn get_lock(&self, name: &str, timeout_seconds: Option<f64>) -> SqlResult<i64> {
        let session = self.process.id;
        let locks = &self.instance.named_locks;
        let micros = timeout_seconds.map(|s| (s.max(0.0) * 1e6) as i64);
        let got = self
            .waiter
            .pause(micros, &|| locks.try_take(name, session))?;
        Ok(i64::from(got))
    }

    fn release_lock(&self, name: &str) -> Option<i64> {
        let released = self.instance.named_locks.release(name, self.process.id);
        if released == Some(1) {
            self.instance.wake_all();
        }
        released
    }

    fn release_all_locks(&self) -> u64 {
        let released = self.instance.named_locks.release_all(self.process.id);
        if released > 0 {
            self.instance.wake_all();
        }
        released
    }

    fn lock_holder(&self, name: &str) -> Option<u64> {
        self.instance.named_locks.holder(name)
    }
}
