//! `manxdb compliance check`: a schema is made in a server of its own, in memory, and asked whose its
//! rows are. So the answer is the server's, for ManxDB's annotations as for a plain dump of MySQL's.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use manxdb_gateway::ProcessHost;
use manxdb_ownership::proof::{Certificate, Verified, verify};
use manxdb_sql::error::{SqlError, SqlResult};
use manxdb_sql::parser;
use manxdb_sql::session::{ClientInfo, Instance, InstanceOptions, ResultSink, Session, Status};
use manxdb_sql::statement::StatementOutcome;
use manxdb_sql::types::SqlMode;
use manxdb_sql::types::{ColumnMeta, Value};
use manxdb_storage::{Durability, MemoryEngine};
use manxdb_txn::{IsolationLevel, LocalOptions, LocalPath};

use crate::cli::ComplianceCommand;
use crate::fault::Fault;

/// The database of statements that name none.
const DATABASE: &str = "checked";
/// Letters of a statement that an error shows.
const SHOWN_MAX: usize = 72;

/// Runs one command.
///
/// # Errors
/// The file cannot be read or split into statements.
pub fn run(command: &ComplianceCommand) -> Result<ExitCode, Fault> {
    let (schema, strict) = match command {
        ComplianceCommand::Check { schema, strict } => (schema, strict),
        ComplianceCommand::Verify {
            certificate,
            public_key,
        } => return verified(&read(certificate)?, public_key.as_deref()),
    };
    let found = check(&read(schema)?)?;
    print!("{}", found.text);
    let failed = found.errors > 0 || *strict && found.warnings > 0;
    Ok(ExitCode::from(u8::from(failed)))
}

/// Prints what a certificate says and what is wrong with it.
fn verified(text: &str, public_key: Option<&str>) -> Result<ExitCode, Fault> {
    if public_key.is_some_and(|key| key.len() != 64) {
        let text = "--public-key takes 64 hexadecimal digits, as 'public_key' of a certificate";
        return Err(Fault::Other(text.to_string()));
    }
    let Verified {
        certificate,
        problems,
    } = verify(text, public_key);
    if let Some(certificate) = &certificate {
        print!("{}", said(certificate));
    }
    for problem in &problems {
        println!("wrong: {problem}");
    }
    if problems.is_empty() {
        let whose = if public_key.is_some() {
            ""
        } else {
            "; compare the key, or give --public-key"
        };
        println!("the certificate is whole{whose}");
    }
    Ok(ExitCode::from(u8::from(!problems.is_empty())))
}

/// What a certificate says, in short.
fn said(certificate: &Certificate) -> String {
    let Certificate {
        request,
        database,
        kind,
        state,
        times,
        ..
    } = certificate;
    let mut text = format!("request {request} about a row of {database}.{kind}: {state}\n");
    for row in &certificate.outcome {
        let _ = writeln!(
            text,
            "  {} {} of {}: {}",
            row.action, row.rows, row.table, row.why
        );
    }
    let time = |time: &Option<String>| time.clone().unwrap_or_else(|| "not known".to_string());
    for (what, at) in [
        ("gone from tables", &times.done),
        ("unreadable here", &times.unreadable_here),
        ("gone from files", &times.gone_from_files),
        ("unreadable in every copy", &times.unreadable_in_every_copy),
    ] {
        let _ = writeln!(text, "  {what}: {}", time(at));
    }
    let _ = writeln!(
        text,
        "  signed by {} at {}",
        certificate.signed.public_key, certificate.signed.at
    );
    text
}

/// What was found.
struct Found {
    /// A paragraph for each table and each refused statement, and a line that counts.
    text: String,
    errors: usize,
    warnings: usize,
}

fn read(schema: &Path) -> Result<String, Fault> {
    if schema.as_os_str() == "-" {
        let mut text = String::new();
        let read = std::io::stdin().read_to_string(&mut text);
        read.map_err(|error| Fault::io("cannot read standard input", error))?;
        return Ok(text);
    }
    let context = || format!("cannot read {}", schema.display());
    std::fs::read_to_string(schema).map_err(|error| Fault::io(context(), error))
}

fn check(schema: &str) -> Result<Found, Fault> {
    let mut session = session()?;
    let mut found = Found {
        text: String::new(),
        errors: 0,
        warnings: 0,
    };
    let mut databases = BTreeSet::from([DATABASE.to_string()]);
    ask(&mut session, &format!("CREATE DATABASE {DATABASE}"))?;
    ask(&mut session, &format!("USE {DATABASE}"))?;
    for part in parser::split(schema, SqlMode::default())? {
        let Some(is_about_tables) = is_of_schema(&part.text) else {
            continue;
        };
        match ask(&mut session, &part.text) {
            Ok(_) => databases.extend(session.database().map(str::to_string)),
            // A setting or a database that is not ours says nothing of owners.
            Err(_) if !is_about_tables => {}
            Err(error) => found.refused(&part.text, &error),
        }
    }
    let mut tables = 0;
    for database in databases {
        let quoted = database.replace('`', "``");
        if ask(&mut session, &format!("USE `{quoted}`")).is_ok() {
            tables += found.report(&ask(&mut session, "EXPLAIN COMPLIANCE")?);
        }
    }
    let (errors, warnings) = (found.errors, found.warnings);
    let _ = writeln!(
        found.text,
        "{tables} tables, {errors} errors, {warnings} warnings"
    );
    Ok(found)
}

/// Whether a statement makes or changes tables (`Some(true)`), decides where they are (`Some(false)`), or
/// is passed over: rows, views, routines, accounts.
fn is_of_schema(statement: &str) -> Option<bool> {
    let mut words = statement.split_whitespace().map(str::to_ascii_uppercase);
    match words.next()?.as_str() {
        "USE" | "SET" => Some(false),
        "CREATE" | "ALTER" | "DROP" | "RENAME" => {
            let kind = words.find(|word| {
                !["DATA_SUBJECT", "UNIQUE", "ONLINE", "OFFLINE"].contains(&word.as_str())
            })?;
            match kind.as_str() {
                "TABLE" | "INDEX" => Some(true),
                "DATABASE" | "SCHEMA" => Some(false),
                _ => None,
            }
        }
        _ => None,
    }
}

impl Found {
    fn refused(&mut self, statement: &str, error: &SqlError) {
        self.errors += 1;
        let line: String = statement.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut shown: String = line.chars().take(SHOWN_MAX).collect();
        if shown.len() < line.len() {
            shown.push('…');
        }
        let _ = writeln!(
            self.text,
            "refused: {shown}\n  error {}: {error}",
            error.code
        );
    }

    /// Adds the rows of EXPLAIN COMPLIANCE; of how many tables they are.
    fn report(&mut self, rows: &[Vec<Option<String>>]) -> usize {
        let mut tables = 0;
        let mut last = None;
        for row in rows {
            let [table, kind, chain, origin, severity, message] = row.as_slice() else {
                continue;
            };
            let or_none = |value: &Option<String>| value.clone().unwrap_or_default();
            if last != Some(table) {
                let _ = writeln!(self.text, "{}: {}", or_none(table), or_none(kind));
                tables += 1;
                last = Some(table);
            }
            if let Some(chain) = chain {
                let _ = writeln!(self.text, "  {chain} ({})", or_none(origin));
            }
            if let Some(severity) = severity {
                let _ = writeln!(self.text, "  {severity}: {}", or_none(message));
                self.errors += usize::from(severity == "error");
                self.warnings += usize::from(severity == "warning");
            }
        }
        tables
    }
}

/// A session of root in a new server that has no files and no doors.
fn session() -> Result<Session, Fault> {
    let host = ProcessHost::new("UTC".to_string())
        .map_err(|_| Fault::Other("the system has no randomness to give".to_string()))?;
    let path = LocalPath::open(Arc::new(MemoryEngine::new()), LocalOptions::default())
        .map_err(|error| Fault::Other(error.to_string()))?;
    let options = InstanceOptions {
        secure_file_priv: None,
        durability: Durability::Async,
        isolation: IsolationLevel::RepeatableRead,
        max_connections: 1,
        max_allowed_packet: 64 << 20,
        long_query_micros: i64::MAX,
        statement_memory_bytes: 64 << 20,
        port: 0,
        hostname: String::new(),
        data_directory: String::new(),
    };
    let instance = Instance::open(Arc::new(path), host, options)?;
    instance.initialise(None)?;
    let account = instance
        .account("root", "localhost")
        .ok_or_else(|| Fault::Other("a new server without root".to_string()))?;
    let client = ClientInfo {
        peer: String::new(),
        host: "localhost".to_string(),
        found_rows: false,
        multi_statements: false,
        local_files: false,
        collation: 255,
        compression: None,
        tls: None,
    };
    let id = instance.next_connection_id();
    Ok(instance.connect(id, &account.identity, "root", client, None)?)
}

/// The rows of a statement, as text.
fn ask(session: &mut Session, statement: &str) -> SqlResult<Vec<Vec<Option<String>>>> {
    let mut rows = Rows::default();
    session.query(statement, &mut rows)?;
    Ok(rows.0)
}

#[derive(Default)]
struct Rows(Vec<Vec<Option<String>>>);

impl ResultSink for Rows {
    fn columns(&mut self, _: &[ColumnMeta]) -> SqlResult<()> {
        self.0.clear();
        Ok(())
    }

    fn row(&mut self, row: &[Value]) -> SqlResult<()> {
        let text = |value: &Value| match value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        };
        self.0.push(row.iter().map(text).collect());
        Ok(())
    }

    fn end(&mut self, _: Status, _: bool) -> SqlResult<()> {
        Ok(())
    }

    fn done(&mut self, _: &StatementOutcome, _: Status, _: bool) -> SqlResult<()> {
        Ok(())
    }
}
