//! SHOW lists as queries over the computed tables.

use crate::error::{SqlError, SqlResult};
use crate::parser::Show;
use crate::parser::quote_name as quoted;
use crate::session::session::Session;
use crate::types::Value;

/// A list: a query whose columns are the shown ones, and the column LIKE is about.
pub(super) struct List {
    pub query: String,
    pub filtered: String,
    pub params: Vec<Value>,
    /// MySQL writes the LIKE pattern into the name of the first column.
    pub pattern_in_name: bool,
}

impl List {
    fn new(query: impl Into<String>, filtered: &str) -> Self {
        Self {
            query: query.into(),
            filtered: filtered.to_string(),
            params: Vec::new(),
            pattern_in_name: false,
        }
    }

    fn with(mut self, params: impl IntoIterator<Item = String>) -> Self {
        self.params = params.into_iter().map(Value::Text).collect();
        self
    }

    /// What the outer query selects.
    pub(super) fn shown(&self, show: &Show) -> String {
        match &show.like {
            Some(pattern) if self.pattern_in_name => {
                let label = quoted(&format!("{} ({pattern})", self.filtered));
                let kind = if show.full { ", Table_type" } else { "" };
                format!("{} AS {label}{kind}", quoted(&self.filtered))
            }
            _ => "*".to_string(),
        }
    }
}

const VARIABLES: &str = "SELECT VARIABLE_NAME AS Variable_name, VARIABLE_VALUE AS Value FROM \
performance_schema.";

const FIXED: [(&str, &str, &str); 8] = [
    (
        "ENGINES",
        "SELECT ENGINE AS Engine, SUPPORT AS Support, COMMENT AS Comment, \
         TRANSACTIONS AS Transactions, XA, SAVEPOINTS AS Savepoints FROM information_schema.ENGINES",
        "Engine",
    ),
    (
        "COLLATION",
        "SELECT COLLATION_NAME AS `Collation`, CHARACTER_SET_NAME AS `Charset`, ID AS Id, \
         IS_DEFAULT AS `Default`, IS_COMPILED AS Compiled, SORTLEN AS Sortlen, \
         PAD_ATTRIBUTE AS Pad_attribute FROM information_schema.COLLATIONS",
        "Collation",
    ),
    (
        "CHARACTER SET",
        "SELECT CHARACTER_SET_NAME AS `Charset`, DESCRIPTION AS Description, \
         DEFAULT_COLLATE_NAME AS `Default collation`, MAXLEN AS Maxlen \
         FROM information_schema.CHARACTER_SETS",
        "Charset",
    ),
    (
        "PLUGINS",
        "SELECT PLUGIN_NAME AS Name, PLUGIN_STATUS AS Status, PLUGIN_TYPE AS Type, \
         PLUGIN_LIBRARY AS Library, PLUGIN_LICENSE AS License FROM information_schema.PLUGINS",
        "Name",
    ),
    (
        "PROCEDURE STATUS",
        "SELECT ROUTINE_SCHEMA AS Db, ROUTINE_NAME AS Name, ROUTINE_TYPE AS Type, DEFINER AS Definer, \
         LAST_ALTERED AS Modified, CREATED AS Created, SECURITY_TYPE AS Security_type, \
         ROUTINE_COMMENT AS Comment, CHARACTER_SET_CLIENT AS character_set_client, \
         COLLATION_CONNECTION AS collation_connection, DATABASE_COLLATION AS `Database Collation` \
         FROM information_schema.ROUTINES WHERE ROUTINE_TYPE = 'PROCEDURE'",
        "Name",
    ),
    (
        "FUNCTION STATUS",
        "SELECT ROUTINE_SCHEMA AS Db, ROUTINE_NAME AS Name, ROUTINE_TYPE AS Type, DEFINER AS Definer, \
         LAST_ALTERED AS Modified, CREATED AS Created, SECURITY_TYPE AS Security_type, \
         ROUTINE_COMMENT AS Comment, CHARACTER_SET_CLIENT AS character_set_client, \
         COLLATION_CONNECTION AS collation_connection, DATABASE_COLLATION AS `Database Collation` \
         FROM information_schema.ROUTINES WHERE ROUTINE_TYPE = 'FUNCTION'",
        "Name",
    ),
    (
        "TRIGGERS",
        "SELECT TRIGGER_NAME AS `Trigger`, EVENT_MANIPULATION AS Event, EVENT_OBJECT_TABLE AS `Table`, \
         ACTION_STATEMENT AS Statement, ACTION_TIMING AS Timing, CREATED AS Created, \
         SQL_MODE AS sql_mode, DEFINER AS Definer, CHARACTER_SET_CLIENT AS character_set_client, \
         COLLATION_CONNECTION AS collation_connection, DATABASE_COLLATION AS `Database Collation` \
         FROM information_schema.TRIGGERS",
        "Table",
    ),
    (
        "EVENTS",
        "SELECT EVENT_SCHEMA AS Db, EVENT_NAME AS Name, DEFINER AS Definer, TIME_ZONE AS `Time zone`, \
         EVENT_TYPE AS Type, EXECUTE_AT AS `Execute at`, INTERVAL_VALUE AS `Interval value`, \
         INTERVAL_FIELD AS `Interval field`, STARTS AS Starts, ENDS AS Ends, STATUS AS Status, \
         ORIGINATOR AS Originator, CHARACTER_SET_CLIENT AS character_set_client, \
         COLLATION_CONNECTION AS collation_connection, DATABASE_COLLATION AS `Database Collation` \
         FROM information_schema.EVENTS",
        "Name",
    ),
];

impl Session {
    /// The list a SHOW is, or `None` when it is answered directly.
    pub(super) fn list_of(&mut self, show: &Show) -> SqlResult<Option<List>> {
        let what = show.what.as_str();
        let list = match what {
            // `mysql` is left out: a dump of all databases would write out its computed tables,
            // which no server can load.
            "DATABASES" => Some(List {
                pattern_in_name: true,
                ..List::new(
                    "SELECT SCHEMA_NAME AS `Database` FROM information_schema.SCHEMATA \
                     WHERE SCHEMA_NAME <> 'mysql'",
                    "Database",
                )
            }),
            "TABLES" => Some(self.tables_list(show)?),
            "TABLE STATUS" => Some(self.status_list(show)?),
            "COLUMNS" => Some(self.columns_list(show)?),
            "INDEX" => Some(self.index_list(show)?),
            "VARIABLES" | "STATUS" => {
                let scope = if show.global { "global" } else { "session" };
                let table = what.to_lowercase();
                Some(List::new(
                    format!("{VARIABLES}{scope}_{table}"),
                    "Variable_name",
                ))
            }
            "PROCESSLIST" => Some(process_list(show.full)),
            _ => FIXED
                .iter()
                .find(|(name, ..)| *name == what)
                .map(|(_, query, filtered)| List::new(*query, filtered)),
        };
        if matches!(what, "TRIGGERS" | "EVENTS") && show.database.is_none() {
            self.state.require_database()?;
        }
        Ok(list)
    }

    fn shown_database(&self, show: &Show) -> SqlResult<String> {
        match &show.database {
            Some(name) => self.visible_database(name),
            None => self.state.require_database(),
        }
    }

    fn tables_list(&mut self, show: &Show) -> SqlResult<List> {
        let database = self.shown_database(show)?;
        let name = format!("Tables_in_{database}");
        let kind = if show.full {
            ", TABLE_TYPE AS Table_type"
        } else {
            ""
        };
        let query = format!(
            "SELECT TABLE_NAME AS {}{kind} FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? \
             ORDER BY TABLE_NAME LIMIT 1000000",
            quoted(&name)
        );
        Ok(List {
            pattern_in_name: true,
            ..List::new(query, &name).with([database])
        })
    }

    fn status_list(&mut self, show: &Show) -> SqlResult<List> {
        let database = self.shown_database(show)?;
        let query = "SELECT TABLE_NAME AS Name, ENGINE AS Engine, VERSION AS Version, \
             ROW_FORMAT AS Row_format, TABLE_ROWS AS `Rows`, AVG_ROW_LENGTH AS Avg_row_length, \
             DATA_LENGTH AS Data_length, MAX_DATA_LENGTH AS Max_data_length, \
             INDEX_LENGTH AS Index_length, DATA_FREE AS Data_free, \
             AUTO_INCREMENT AS Auto_increment, CREATE_TIME AS Create_time, \
             UPDATE_TIME AS Update_time, CHECK_TIME AS Check_time, TABLE_COLLATION AS `Collation`, \
             CHECKSUM AS Checksum, CREATE_OPTIONS AS Create_options, TABLE_COMMENT AS Comment \
             FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? ORDER BY TABLE_NAME LIMIT 1000000";
        Ok(List::new(query, "Name").with([database]))
    }

    fn columns_list(&mut self, show: &Show) -> SqlResult<List> {
        let (database, table) = self.shown_table(show)?;
        let full = "COLUMN_NAME AS Field, COLUMN_TYPE AS Type, COLLATION_NAME AS `Collation`, \
             IS_NULLABLE AS `Null`, COLUMN_KEY AS `Key`, COLUMN_DEFAULT AS `Default`, EXTRA AS Extra, \
             PRIVILEGES AS `Privileges`, COLUMN_COMMENT AS Comment";
        let short = "COLUMN_NAME AS Field, COLUMN_TYPE AS Type, IS_NULLABLE AS `Null`, \
             COLUMN_KEY AS `Key`, COLUMN_DEFAULT AS `Default`, EXTRA AS Extra";
        let query = format!(
            "SELECT {} FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? \
             ORDER BY ORDINAL_POSITION LIMIT 1000000",
            if show.full { full } else { short }
        );
        Ok(List::new(query, "Field").with([database, table]))
    }

    fn index_list(&mut self, show: &Show) -> SqlResult<List> {
        let (database, table) = self.shown_table(show)?;
        let query = "SELECT TABLE_NAME AS `Table`, NON_UNIQUE AS Non_unique, INDEX_NAME AS Key_name, \
             SEQ_IN_INDEX AS Seq_in_index, COLUMN_NAME AS Column_name, COLLATION AS `Collation`, \
             CARDINALITY AS Cardinality, SUB_PART AS Sub_part, PACKED AS Packed, NULLABLE AS `Null`, \
             INDEX_TYPE AS Index_type, COMMENT AS Comment, INDEX_COMMENT AS Index_comment, \
             IS_VISIBLE AS Visible, EXPRESSION AS Expression FROM information_schema.STATISTICS \
             WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?";
        Ok(List::new(query, "Key_name").with([database, table]))
    }

    /// The table a SHOW names; it must exist and be visible.
    fn shown_table(&self, show: &Show) -> SqlResult<(String, String)> {
        let object = show
            .object
            .as_ref()
            .ok_or_else(|| SqlError::syntax("a table was expected"))?;
        let (database, table) = self.object_name(object, show.database.as_deref())?;
        self.require_relation(&database, &table)
    }

    /// The stored names of a table, view or computed table.
    ///
    /// # Errors
    /// 1049, 1044, 1146, 1142.
    pub(in crate::session) fn require_relation(
        &self,
        database: &str,
        table: &str,
    ) -> SqlResult<(String, String)> {
        let missing = || SqlError::no_such_table(database, table);
        let stored = self.visible_database(database)?;
        let computed = crate::session::schema::tables(&stored);
        if let Some(entry) = computed
            .iter()
            .find(|e| e.table.name.eq_ignore_ascii_case(table))
        {
            return Ok((stored, entry.table.name.clone()));
        }
        let catalog = self.catalog();
        let name = match catalog.view(&stored, table) {
            Some(view) => view.name.clone(),
            None => catalog
                .table(&stored, table)
                .map_err(|_| missing())?
                .name
                .clone(),
        };
        let account = self.state.account();
        if self.state.temporary.get(&stored, &name).is_some() {
            return Ok((stored, name));
        }
        if account.on_table(&stored, &name).0 == 0 {
            let user = &account.key.user;
            let host = &self.state.client.host;
            return Err(SqlError::new(
                1142,
                "42000",
                format!("SELECT command denied to user '{user}'@'{host}' for table '{name}'"),
            ));
        }
        Ok((stored, name))
    }
}

fn process_list(full: bool) -> List {
    let info = if full { "INFO" } else { "LEFT(INFO, 100)" };
    List::new(
        format!(
            "SELECT ID AS Id, USER AS `User`, HOST AS Host, DB AS db, COMMAND AS Command, \
             TIME AS Time, STATE AS State, {info} AS Info FROM information_schema.PROCESSLIST"
        ),
        "Info",
    )
}
