//! Statements `sqlparser`'s tree cannot carry.

use manxdb_ownership::{Retention, Rule, RuleEvent, RuleSubject};
use sqlparser::ast::{AlterTableOperation, ColumnDef, Expr, Ident, ObjectName};

use crate::catalog::OwnershipAnnotation;

/// A statement in a tree of our own; see the table in [`super`].
#[derive(Debug, Clone, PartialEq)]
pub enum Special {
    /// A text that is only a comment: done at once.
    Nothing,
    /// Every form of SET but SET PASSWORD and SET ROLE.
    Set(Vec<SetItem>),
    /// Every SHOW.
    Show(Box<Show>),
    /// `DESCRIBE table [column]`, also spelled DESC and EXPLAIN.
    Describe {
        /// The table or view.
        table: ObjectName,
        /// A column name or LIKE pattern.
        column: Option<String>,
    },
    /// LOAD DATA.
    LoadData(Box<super::load::LoadData>),
    /// `DO expr, …`.
    Do(Vec<Expr>),
    /// `START TRANSACTION` with any modifier, and `BEGIN`.
    StartTransaction {
        /// READ ONLY or READ WRITE, when said.
        read_only: Option<bool>,
        /// WITH CONSISTENT SNAPSHOT.
        consistent_snapshot: bool,
    },
    /// `COMMIT` or `ROLLBACK` (not to a savepoint).
    EndTransaction {
        /// COMMIT rather than ROLLBACK.
        commit: bool,
        /// AND CHAIN.
        chain: bool,
        /// RELEASE: disconnect afterwards.
        release: bool,
    },
    /// `PREPARE name FROM …`.
    Prepare {
        /// Statement name.
        name: String,
        /// `'text'`, or `@variable` as an identifier expression.
        source: Expr,
    },
    /// `EXECUTE name USING @a, …`.
    Execute {
        /// Statement name.
        name: String,
        /// Variables without the `@`.
        using: Vec<String>,
    },
    /// `DEALLOCATE PREPARE name`, `DROP PREPARE name`.
    Deallocate(String),
    /// `LOCK TABLES`.
    LockTables(Vec<TableLock>),
    /// `UNLOCK TABLES`.
    UnlockTables,
    /// `SHUTDOWN`.
    Shutdown,
    /// `KILL [CONNECTION | QUERY] id`.
    Kill {
        /// Only the running statement.
        query_only: bool,
        /// Connection id.
        id: Expr,
    },
    /// `CREATE USER`, `ALTER USER`.
    Users {
        /// ALTER rather than CREATE.
        alter: bool,
        /// IF NOT EXISTS / IF EXISTS.
        if_exists_clause: bool,
        /// The accounts.
        users: Vec<UserSpec>,
        /// ACCOUNT LOCK / UNLOCK, when said.
        locked: Option<bool>,
    },
    /// `DROP USER`.
    DropUser {
        /// IF EXISTS.
        if_exists: bool,
        /// The accounts.
        accounts: Vec<AccountName>,
    },
    /// `RENAME USER a TO b, …`.
    RenameUser(Vec<(AccountName, AccountName)>),
    /// `SET PASSWORD [FOR account] = 'text'`.
    SetPassword {
        /// The account, or the current one.
        account: Option<AccountName>,
        /// The password.
        password: String,
    },
    /// `GRANT`.
    Grant(GrantStatement),
    /// `REVOKE`.
    Revoke(GrantStatement),
    /// `FLUSH …`: the words after it, upper-case.
    Flush(Vec<String>),
    /// `CREATE DATABASE`.
    CreateDatabase {
        /// Its name.
        name: String,
        /// IF NOT EXISTS.
        if_not_exists: bool,
        /// CHARACTER SET.
        charset: Option<String>,
        /// COLLATE.
        collation: Option<String>,
    },
    /// `ALTER DATABASE`.
    AlterDatabase {
        /// Its name, or the current one.
        name: Option<String>,
        /// CHARACTER SET.
        charset: Option<String>,
        /// COLLATE.
        collation: Option<String>,
    },
    /// `ALTER TABLE`.
    AlterTable {
        /// The table.
        name: ObjectName,
        /// What to do, in order.
        actions: Vec<AlterAction>,
    },
    /// `ANALYZE | OPTIMIZE | CHECK | REPAIR | CHECKSUM TABLE`.
    Maintain {
        /// Upper-case first word.
        verb: String,
        /// The tables.
        tables: Vec<ObjectName>,
    },
    /// `EXPLAIN COMPLIANCE [FOR table]`.
    Compliance(Option<ObjectName>),
    /// `GDPR GET kind id [FORMAT …]`.
    GdprGet {
        /// The table of people.
        kind: ObjectName,
        /// Values of its primary key.
        id: Vec<Expr>,
        /// How the rows are sent.
        format: GdprFormat,
    },
    /// `[EXPLAIN] GDPR FORGET kind id [REASON '…'] [GRACE n DAY]`.
    GdprForget(GdprForget),
    /// `GDPR UNDO kind id | request`.
    GdprUndo(GdprUndo),
    /// `GDPR HOLD kind id [ON table] REASON '…'`.
    GdprHold {
        /// The table of people.
        kind: ObjectName,
        /// Its primary key.
        id: Vec<Expr>,
        /// Whose rows are held; all of the person's without.
        table: Option<ObjectName>,
        /// Why.
        reason: String,
    },
    /// `GDPR RELEASE kind id [ON table]`.
    GdprRelease {
        /// The table of people.
        kind: ObjectName,
        /// Its primary key.
        id: Vec<Expr>,
        /// Only the holds on this table.
        table: Option<ObjectName>,
    },
    /// `GDPR VERIFY kind id`.
    GdprVerify {
        /// The table of people.
        kind: ObjectName,
        /// Its primary key.
        id: Vec<Expr>,
    },
    /// `GDPR CERTIFICATE n`, `SHOW GDPR CERTIFICATE n`: of which request.
    GdprCertificate(u64),
    /// `GDPR ROTATE MASTER KEY`.
    RotateMasterKey,
    /// Other `GDPR …`: words as written.
    Ownership(String),
}

/// `[EXPLAIN] GDPR FORGET kind id [REASON '…'] [GRACE n DAY]`.
#[derive(Debug, Clone, PartialEq)]
pub struct GdprForget {
    /// The table of people.
    pub kind: ObjectName,
    /// Values of its primary key.
    pub id: Vec<Expr>,
    /// Why, as it is kept with the request.
    pub reason: Option<String>,
    /// `GRACE n DAY`: how long it may be undone before anything goes.
    pub grace_days: Option<u64>,
    /// EXPLAIN: what it would do.
    pub is_explained: bool,
}

/// One item of SET.
#[derive(Debug, Clone, PartialEq)]
pub enum SetItem {
    /// `@name = expr`.
    User {
        /// Without the `@`.
        name: String,
        /// The value.
        value: Expr,
    },
    /// `[GLOBAL | SESSION | PERSIST | @@…] name = expr`.
    System {
        /// Where.
        scope: SetScope,
        /// Lower-case name.
        name: String,
        /// The value; a bare word (`ON`, `utf8mb4`, `DEFAULT`) is an identifier expression;
        /// `None` for DEFAULT.
        value: Option<Expr>,
    },
    /// `NAMES charset [COLLATE collation]`; `None` for DEFAULT.
    Names {
        /// Character set.
        charset: Option<String>,
        /// Collation.
        collation: Option<String>,
    },
    /// `CHARACTER SET charset`; `None` for DEFAULT.
    Charset(Option<String>),
    /// `[GLOBAL | SESSION] TRANSACTION …`; [`SetScope::Next`] without either word.
    Transaction {
        /// Where.
        scope: SetScope,
        /// Upper-case level: `READ COMMITTED` …
        isolation: Option<String>,
        /// READ ONLY / READ WRITE.
        read_only: Option<bool>,
    },
}

/// Which value SET changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetScope {
    /// SESSION, LOCAL, or nothing said.
    Session,
    /// GLOBAL.
    Global,
    /// PERSIST.
    Persist,
    /// `PERSIST_ONLY`.
    PersistOnly,
    /// SET TRANSACTION without scope: the next transaction only.
    Next,
}

/// A SHOW statement.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Show {
    /// Words that name what is shown, upper-case and in MySQL's first spelling: `TABLES`,
    /// `TABLE STATUS`, `COLUMNS`, `INDEX`, `DATABASES`, `VARIABLES`, `STATUS`, `CREATE TABLE`,
    /// `CREATE DATABASE`, `CREATE VIEW`, `CREATE USER`, `PROCESSLIST`, `WARNINGS`, `ERRORS`,
    /// `COUNT WARNINGS`, `COUNT ERRORS`, `GRANTS`, `ENGINES`, `CHARACTER SET`, `COLLATION`, …
    pub what: String,
    /// FULL.
    pub full: bool,
    /// EXTENDED.
    pub extended: bool,
    /// GLOBAL.
    pub global: bool,
    /// IF NOT EXISTS (SHOW CREATE DATABASE).
    pub if_not_exists: bool,
    /// The object named: table of COLUMNS and INDEX, object of CREATE.
    pub object: Option<ObjectName>,
    /// Database named by FROM or IN.
    pub database: Option<String>,
    /// Account of GRANTS and CREATE USER; `None` is the current one.
    pub account: Option<AccountName>,
    /// LIKE.
    pub like: Option<String>,
    /// WHERE, over the shown columns.
    pub selection: Option<Expr>,
    /// `LIMIT [offset,] count`.
    pub limit: Option<(u64, u64)>,
}

/// A table of LOCK TABLES.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableLock {
    /// The table.
    pub table: ObjectName,
    /// Its alias.
    pub alias: Option<String>,
    /// WRITE rather than READ.
    pub write: bool,
}

/// `'user'@'host'`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountName {
    /// User; empty with `current` set.
    pub user: String,
    /// Host, `%` when not said.
    pub host: String,
    /// `CURRENT_USER()` or `USER()`.
    pub current: bool,
}

/// An account with its authentication.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserSpec {
    /// Which.
    pub account: AccountName,
    /// IDENTIFIED WITH plugin.
    pub plugin: Option<String>,
    /// IDENTIFIED BY.
    pub password: Option<String>,
    /// IDENTIFIED WITH plugin AS: the stored verifier.
    pub verifier: Option<String>,
}

/// GRANT or REVOKE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantStatement {
    /// Upper-case privileges: `SELECT`, `ALL`, `GRANT OPTION`, `CREATE VIEW` …
    pub privileges: Vec<String>,
    /// `None` for `*`.
    pub database: Option<String>,
    /// The database is the current one (`ON t` or `ON *`).
    pub current_database: bool,
    /// `None` for `*`.
    pub table: Option<String>,
    /// Whom.
    pub accounts: Vec<UserSpec>,
    /// WITH GRANT OPTION.
    pub grant_option: bool,
    /// IF EXISTS (REVOKE).
    pub if_exists: bool,
}

/// One action of ALTER TABLE.
#[derive(Debug, Clone, PartialEq)]
pub enum AlterAction {
    /// What `sqlparser` carries.
    Standard(Box<AlterTableOperation>),
    /// `ADD [COLUMN] (a …, b …)`.
    AddColumns(Vec<ColumnDef>),
    /// A table option: upper-case name (`ENGINE`, `COMMENT`, `AUTO_INCREMENT`, `CHARACTER SET`,
    /// `COLLATE`, …) and its value.
    Option(String, String),
    /// Annotations of ownership that come or go.
    Ownership(OwnershipChange),
    /// `ORDER BY …`.
    OrderBy,
    /// `CONVERT TO CHARACTER SET`.
    ConvertTo {
        /// Character set.
        charset: String,
        /// COLLATE.
        collation: Option<String>,
    },
    /// `RENAME [TO | AS] name`.
    RenameTable(ObjectName),
    /// `RENAME INDEX | KEY old TO new`.
    RenameIndex {
        /// Old name.
        from: Ident,
        /// New name.
        to: Ident,
    },
    /// `DROP CHECK name`, `DROP CONSTRAINT name`: any constraint when `check_only` is false.
    DropConstraint {
        /// Its name.
        name: Ident,
        /// Only a CHECK.
        check_only: bool,
    },
    /// `ALTER CHECK | CONSTRAINT name [NOT] ENFORCED`.
    AlterCheck {
        /// Its name.
        name: Ident,
        /// ENFORCED.
        enforced: bool,
    },
    /// FORCE: keys that would be blinded otherwise by now are made anew.
    Rebuild,
    /// Accepted and without effect: ALGORITHM, LOCK, ORDER BY, ENABLE/DISABLE KEYS,
    /// ALTER INDEX … VISIBLE, WITH VALIDATION.
    Nothing,
}

/// Which request `GDPR UNDO` is about.
#[derive(Debug, Clone, PartialEq)]
pub enum GdprUndo {
    /// That with this number.
    Request(u64),
    /// That about this person.
    Person {
        /// The table of people.
        kind: ObjectName,
        /// Its primary key.
        id: Vec<Expr>,
    },
}

/// How `GDPR GET` sends rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GdprFormat {
    /// A result set for each table.
    #[default]
    ResultSets,
    /// One JSON document.
    Json,
    /// A text for each table.
    Csv,
    /// An INSERT for each row.
    Sql,
}

/// What ALTER TABLE does to a table's ownership.
#[derive(Debug, Clone, PartialEq)]
pub enum OwnershipChange {
    /// `SET DATA_SUBJECT`, `DROP DATA_SUBJECT`.
    Subject(bool),
    /// `ADD OWNED_BY (a) t (b)` and its kin.
    AddLink {
        /// The word.
        annotation: OwnershipAnnotation,
        /// Columns of the table.
        columns: Vec<Ident>,
        /// The table they refer to.
        target: ObjectName,
        /// Its columns.
        target_columns: Vec<Ident>,
    },
    /// `DROP OWNED_BY (a)` and its kin: the foreign key stays, without a meaning.
    DropLink {
        /// The word.
        annotation: OwnershipAnnotation,
        /// Columns of the table.
        columns: Vec<Ident>,
    },
    /// `ADD ON GET a ANON (b)`.
    AddRule(Rule),
    /// `DROP ON GET a`: all rules for that event and subject.
    DropRules(RuleEvent, RuleSubject),
    /// `ADD RETAIN FOR …`, in place of one that is there; `DROP RETAIN`.
    Retention(Option<Retention>),
}
