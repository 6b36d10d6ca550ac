//! The connection of `manxdb sql`, and what it prints.

use std::io::Write as _;
use std::time::{Duration, Instant};

use mysql::consts::ColumnType;
use mysql::prelude::Queryable as _;
use mysql::{Conn, OptsBuilder, Value};

use super::output::{self, ResultSet};
use super::password;
use super::split::{Layout, Piece};
use crate::cli::SqlArgs;
use crate::fault::Fault;

/// Longest statement sent, bytes; the server may allow less and says so.
const PACKET_BYTES_MAX: usize = 1 << 30;

/// How results look.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// Framed tables instead of tabs.
    pub tables: bool,
    /// Row counts and times below results.
    pub remarks: bool,
}

/// A connected client.
pub struct Client {
    connection: Conn,
    style: Style,
}

/// One result of a statement.
enum Shown {
    Rows(ResultSet),
    Done { affected: u64, info: String },
}

impl Client {
    /// Logs in.
    ///
    /// # Errors
    /// No server answers, or it refuses.
    pub fn connect(args: &SqlArgs, style: Style) -> Result<Self, Fault> {
        let password = match args.password.as_deref() {
            Some("") => Some(password::ask().map_err(|error| Fault::io("password", error))?),
            other => other.map(str::to_owned),
        };
        let options = OptsBuilder::new()
            .ip_or_hostname(Some(args.host.as_str()))
            .tcp_port(args.port)
            .user(Some(args.user.as_str()))
            .pass(password)
            .db_name(args.database.as_deref())
            // Given, so that the driver need not ask the server for it.
            .max_allowed_packet(Some(PACKET_BYTES_MAX))
            .prefer_socket(false);
        let connection = Conn::new(options)?;
        Ok(Self { connection, style })
    }

    /// The server's connection id.
    pub fn connection_id(&self) -> u32 {
        self.connection.connection_id()
    }

    /// Changes the current database; says whether it worked.
    pub fn use_database(&mut self, name: &str) -> bool {
        match self.connection.select_db(name) {
            Ok(()) => {
                self.remark("Database changed");
                true
            }
            Err(error) => complain(&error),
        }
    }

    /// Runs a statement, prints what comes back; says whether it worked.
    pub fn run_piece(&mut self, piece: &Piece) -> bool {
        let Piece::Statement(text, layout) = piece else {
            return true;
        };
        let started = Instant::now();
        match self.results(text) {
            Ok(results) => {
                let took = started.elapsed();
                for result in &results {
                    self.show(result, *layout, took);
                }
                true
            }
            Err(error) => complain(&error),
        }
    }

    /// All results of a statement; rows before a failing one are lost with it.
    fn results(&mut self, text: &str) -> mysql::Result<Vec<Shown>> {
        let mut results = Vec::new();
        let mut answer = self.connection.query_iter(text)?;
        while let Some(set) = answer.iter() {
            let columns = set.columns();
            let columns = columns.as_ref();
            if columns.is_empty() {
                results.push(Shown::Done {
                    affected: set.affected_rows(),
                    info: set.info_str().into_owned(),
                });
                continue;
            }
            let mut rows = ResultSet {
                names: columns.iter().map(|c| c.name_str().into_owned()).collect(),
                numeric: columns.iter().map(|c| is_number(c.column_type())).collect(),
                rows: Vec::new(),
            };
            for row in set {
                // `Row::unwrap` fails only for a row a value was taken from; this one is fresh.
                rows.rows
                    .push(row?.unwrap().into_iter().map(text_of).collect());
            }
            results.push(Shown::Rows(rows));
        }
        Ok(results)
    }

    fn show(&self, result: &Shown, layout: Layout, took: Duration) {
        let seconds = took.as_secs_f64();
        match result {
            Shown::Done { affected, info } => {
                self.remark(&format!(
                    "Query OK, {} affected ({seconds:.2} sec)",
                    rows(*affected)
                ));
                if !info.is_empty() {
                    self.remark(info);
                }
                self.remark("");
            }
            Shown::Rows(set) if set.rows.is_empty() => {
                self.remark(&format!("Empty set ({seconds:.2} sec)\n"));
            }
            Shown::Rows(set) => {
                let text = match layout {
                    Layout::Vertical => output::vertical(set),
                    Layout::Rows if self.style.tables => output::table(set),
                    Layout::Rows => output::tabs(set),
                };
                print_out(&text);
                let count = rows(set.rows.len() as u64);
                self.remark(&format!("{count} in set ({seconds:.2} sec)\n"));
            }
        }
    }

    fn remark(&self, text: &str) {
        if self.style.remarks {
            print_out(&format!("{text}\n"));
        }
    }
}

fn rows(count: u64) -> String {
    format!("{count} row{}", if count == 1 { "" } else { "s" })
}

/// A reader that went away (`| head`) ends the output, not in a panic.
fn print_out(text: &str) {
    if std::io::stdout().write_all(text.as_bytes()).is_err() {
        std::process::exit(0);
    }
}

/// Always false: the statement failed.
fn complain(error: &mysql::Error) -> bool {
    eprintln!("{}", error_text(error));
    false
}

/// An error as people know it from MySQL.
pub fn error_text(error: &mysql::Error) -> String {
    match error {
        mysql::Error::MySqlError(error) => {
            format!("ERROR {} ({}): {}", error.code, error.state, error.message)
        }
        other => format!("ERROR: {other}"),
    }
}

fn is_number(ty: ColumnType) -> bool {
    ty.is_numeric_type()
}

fn text_of(value: Value) -> Option<String> {
    match value {
        Value::NULL => None,
        Value::Bytes(bytes) => Some(match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let hex = error.as_bytes().iter().map(|b| format!("{b:02X}"));
                format!("0x{}", hex.collect::<String>())
            }
        }),
        // The text protocol sends bytes only; anything else prints as a literal.
        other => Some(other.as_sql(true).trim_matches('\'').to_owned()),
    }
}
