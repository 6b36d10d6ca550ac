//! The session of `manxdb sql`, and what it prints.

use std::io::{BufWriter, Write as _};
use std::time::Instant;

use super::output::{Printer, Shape};
use super::password;
use super::split::{Layout, Piece};
use crate::cli::SqlArgs;
use crate::fault::Fault;
use crate::mysql_client::{Answer, ClientError, Connection, Done, Identity, connect};

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
    connection: Connection,
    style: Style,
}

impl Client {
    /// Logs in.
    ///
    /// # Errors
    /// No server answers, or it refuses.
    pub fn connect(args: &SqlArgs, style: Style) -> Result<Self, Fault> {
        let password = match args.password.as_deref() {
            Some("") => password::ask().map_err(|error| Fault::io("password", error))?,
            other => other.unwrap_or_default().to_owned(),
        };
        let connection = connect(&Identity {
            host: args.host.clone(),
            port: args.port,
            user: args.user.clone(),
            password,
            database: args.database.clone(),
            tls: args.tls,
            authority: args.tls_ca.clone(),
        })?;
        Ok(Self { connection, style })
    }

    /// What it is connected to, for the first line of the prompt.
    pub fn description(&self) -> String {
        let encrypted = if self.connection.is_secure() {
            "encrypted"
        } else {
            "not encrypted"
        };
        format!("connection {}, {encrypted}", self.connection.id())
    }

    /// Changes the current database; says whether it worked.
    ///
    /// # Errors
    /// The connection is gone.
    pub fn use_database(&mut self, name: &str) -> Result<bool, Fault> {
        let used = self.connection.use_database(name);
        if used.is_ok() {
            self.remark("Database changed");
        }
        told(used)
    }

    /// Runs a statement, prints what comes back; says whether it worked.
    ///
    /// # Errors
    /// The connection is gone.
    pub fn run_piece(&mut self, piece: &Piece) -> Result<bool, Fault> {
        match piece {
            Piece::Statement(text, layout) => told(self.run(text, *layout)),
            Piece::Cleared => Ok(true),
        }
    }

    fn run(&mut self, text: &str, layout: Layout) -> Result<(), ClientError> {
        let mut started = Instant::now();
        let mut answer = self.connection.query(text)?;
        loop {
            let done = match answer {
                Answer::Done(done) => {
                    self.remark_done(&done, started);
                    done
                }
                Answer::Rows(columns) => {
                    let shape = match layout {
                        Layout::Vertical => Shape::Vertical,
                        Layout::Rows if self.style.tables => Shape::Table,
                        Layout::Rows => Shape::Tabs,
                    };
                    let width = columns.len();
                    let out = BufWriter::new(std::io::stdout().lock());
                    let mut printer = Printer::new(out, shape, columns);
                    // Rows before an error are shown: they are what the server found.
                    let end = loop {
                        match self.connection.row(width) {
                            Ok(Ok(row)) => written(printer.row(row)),
                            Ok(Err(done)) => break Ok(done),
                            Err(error) => break Err(error),
                        }
                    };
                    let rows = written(printer.finish());
                    let done = end?;
                    self.remark_rows(rows, started);
                    done
                }
            };
            if !done.more {
                return Ok(());
            }
            started = Instant::now();
            answer = self.connection.answer()?;
        }
    }

    fn remark_done(&self, done: &Done, started: Instant) {
        let seconds = started.elapsed().as_secs_f64();
        let affected = rows(done.affected_rows);
        self.remark(&format!("Query OK, {affected} affected ({seconds:.2} sec)"));
        if !done.info.is_empty() {
            self.remark(&done.info);
        }
        self.remark("");
    }

    fn remark_rows(&self, count: u64, started: Instant) {
        let seconds = started.elapsed().as_secs_f64();
        let what = if count == 0 {
            "Empty set".to_owned()
        } else {
            format!("{} in set", rows(count))
        };
        self.remark(&format!("{what} ({seconds:.2} sec)\n"));
    }

    fn remark(&self, text: &str) {
        if self.style.remarks {
            written(writeln!(std::io::stdout(), "{text}"));
        }
    }
}

fn rows(count: u64) -> String {
    format!("{count} row{}", if count == 1 { "" } else { "s" })
}

/// A reader that went away (`| head`) ends the output, not in a panic.
fn written<T>(result: std::io::Result<T>) -> T {
    result.unwrap_or_else(|_| std::process::exit(0))
}

/// Says what a statement met; only a connection that is gone is an error for the caller.
fn told(result: Result<(), ClientError>) -> Result<bool, Fault> {
    match result {
        Ok(()) => Ok(true),
        Err(error) if error.is_of_statement() => {
            eprintln!("{error}");
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}
