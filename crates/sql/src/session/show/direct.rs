//! SHOW that is no query: warnings, grants, fixed lists.

use crate::error::{SqlError, SqlResult};
use crate::expr::WarningLevel;
use crate::parser::Show;
use crate::parser::quote_name as quoted;
use crate::session::ResultSink;
use crate::session::accounts::{privilege, show as account_text};
use crate::session::session::Session;
use crate::types::{Row, Value};

/// There is no binary log to be at a place of.
const MASTER_STATUS: [&str; 5] = [
    "File",
    "Position",
    "Binlog_Do_DB",
    "Binlog_Ignore_DB",
    "Executed_Gtid_Set",
];

/// No server is a replica of another by a binary log; the columns are those that are asked for.
const REPLICA_STATUS: [&str; 9] = [
    "Replica_IO_State",
    "Source_Host",
    "Source_User",
    "Source_Port",
    "Replica_IO_Running",
    "Replica_SQL_Running",
    "Last_Errno",
    "Last_Error",
    "Seconds_Behind_Source",
];

const REPLICAS: [&str; 5] = ["Server_Id", "Host", "Port", "Source_Id", "Replica_UUID"];

fn no_binary_log() -> SqlError {
    SqlError::new(1381, "HY000", "You are not using binary logging")
}

fn text(value: impl Into<String>) -> Value {
    Value::Text(value.into())
}

impl Session {
    pub(super) fn show_direct(
        &mut self,
        show: &Show,
        sink: &mut dyn ResultSink,
        more: bool,
    ) -> SqlResult<()> {
        match show.what.as_str() {
            "WARNINGS" | "ERRORS" => self.show_warnings(show, sink, more),
            "COUNT WARNINGS" | "COUNT ERRORS" => self.show_warning_count(show, sink, more),
            "GRANTS" => self.show_grants(show, sink, more),
            "CREATE USER" => self.show_create_user(show, sink, more),
            "CREATE TABLE" | "CREATE VIEW" => self.show_create_relation(show, sink, more),
            "CREATE DATABASE" => self.show_create_database(show, sink, more),
            "PRIVILEGES" => {
                let rows: Vec<Row> = privilege::PRIVILEGES.iter().map(privilege_row).collect();
                self.send_rows(&["Privilege", "Context", "Comment"], &rows, sink, more)
            }
            "OPEN TABLES" => {
                let names = ["Database", "Table", "In_use", "Name_locked"];
                self.send_rows(&names, &[], sink, more)
            }
            "MATERIALIZED VIEWS" => self.show_materialized(show.database.as_deref(), sink, more),
            "VIEW CANDIDATES" => self.show_candidates(show.database.as_deref(), sink, more),
            "GDPR REQUESTS" => self.show_requests(sink, more),
            "GDPR HOLDS" => self.show_holds(sink, more),
            "GDPR AUDIT" => self.show_audit(sink, more),
            "BINARY LOGS" => Err(no_binary_log()),
            "MASTER STATUS" => self.send_rows(&MASTER_STATUS, &[], sink, more),
            "REPLICA STATUS" => self.send_rows(&REPLICA_STATUS, &[], sink, more),
            "REPLICAS" => self.send_rows(&REPLICAS, &[], sink, more),
            "PROFILES" => self.send_rows(&["Query_ID", "Duration", "Query"], &[], sink, more),
            "ENGINE" => {
                let row = vec![text("InnoDB"), text(""), text(self.statistics())];
                self.send_rows(&["Type", "Name", "Status"], &[row], sink, more)
            }
            "CREATE PROCEDURE" | "CREATE FUNCTION" | "CREATE TRIGGER" | "CREATE EVENT" => {
                Err(missing_routine(show))
            }
            other => Err(SqlError::not_supported(format!("SHOW {other}"))),
        }
    }

    fn show_warnings(
        &mut self,
        show: &Show,
        sink: &mut dyn ResultSink,
        more: bool,
    ) -> SqlResult<()> {
        let (offset, count) = show.limit.unwrap_or((0, u64::MAX));
        let at = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let rows: Vec<Row> = self
            .state
            .diagnostics
            .borrow()
            .iter()
            .filter(|warning| show.what == "WARNINGS" || warning.level == WarningLevel::Error)
            .skip(at(offset))
            .take(at(count))
            .map(|warning| {
                let level = match warning.level {
                    WarningLevel::Note => "Note",
                    WarningLevel::Warning => "Warning",
                    WarningLevel::Error => "Error",
                };
                vec![
                    text(level),
                    Value::Int(i64::from(warning.code)),
                    text(&*warning.message),
                ]
            })
            .collect();
        self.send_rows(&["Level", "Code", "Message"], &rows, sink, more)
    }

    fn show_warning_count(
        &mut self,
        show: &Show,
        sink: &mut dyn ResultSink,
        more: bool,
    ) -> SqlResult<()> {
        let errors = show.what == "COUNT ERRORS";
        let name = if errors {
            "error_count"
        } else {
            "warning_count"
        };
        let value = crate::expr::SessionInfo::system_variable(&self.state, name, false)?;
        self.send_rows(&[&format!("@@session.{name}")], &[vec![value]], sink, more)
    }

    fn show_grants(&mut self, show: &Show, sink: &mut dyn ResultSink, more: bool) -> SqlResult<()> {
        let account = self.account_named(show.account.as_ref())?;
        let title = format!("Grants for {}", account.key.identity());
        let rows: Vec<Row> = account_text::grants(&account)
            .into_iter()
            .map(|line| vec![text(line)])
            .collect();
        self.send_rows(&[&title], &rows, sink, more)
    }

    fn show_create_user(
        &mut self,
        show: &Show,
        sink: &mut dyn ResultSink,
        more: bool,
    ) -> SqlResult<()> {
        let account = self.account_named(show.account.as_ref())?;
        let title = format!("CREATE USER for {}", account.key.identity());
        let row = vec![text(account_text::create_user(&account))];
        self.send_rows(&[&title], &[row], sink, more)
    }

    fn show_create_database(
        &mut self,
        show: &Show,
        sink: &mut dyn ResultSink,
        more: bool,
    ) -> SqlResult<()> {
        let name = show
            .object
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default();
        let name = self.visible_database(name.trim_matches('`'))?;
        let catalog = self.instance().store.current();
        let collation = catalog
            .database(&name)
            .map(|found| found.collation)
            .unwrap_or_default();
        let clause = if show.if_not_exists {
            "/*!32312 IF NOT EXISTS*/ "
        } else {
            ""
        };
        let line = format!(
            "CREATE DATABASE {clause}{} /*!40100 DEFAULT CHARACTER SET {} COLLATE {} */ \
             /*!80016 DEFAULT ENCRYPTION='N' */",
            quoted(&name),
            collation.charset(),
            collation.name()
        );
        let row = vec![text(name), text(line)];
        self.send_rows(&["Database", "Create Database"], &[row], sink, more)
    }
}

fn privilege_row(
    (name, _, _, context): &(
        &'static str,
        privilege::Privileges,
        privilege::Level,
        &'static str,
    ),
) -> Row {
    let mut words = name.to_lowercase();
    if let Some(first) = words.get_mut(0..1) {
        first.make_ascii_uppercase();
    }
    vec![text(words), text(*context), text("")]
}

fn missing_routine(show: &Show) -> SqlError {
    let kind = show.what.trim_start_matches("CREATE ");
    let name = show
        .object
        .as_ref()
        .map(ToString::to_string)
        .unwrap_or_default();
    let (code, sqlstate, message) = match kind {
        "TRIGGER" => (1360, "HY000", "Trigger does not exist".to_string()),
        "EVENT" => (1539, "HY000", format!("Unknown event '{name}'")),
        _ => (1305, "42000", format!("{kind} {name} does not exist")),
    };
    SqlError::new(code, sqlstate, message)
}
