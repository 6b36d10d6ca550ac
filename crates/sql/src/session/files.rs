//! Files that statements name: those of clients for `LOAD DATA LOCAL`, the server's own for `LOAD
//! DATA` and `SELECT … INTO OUTFILE`.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;

use super::accounts::Privileges;
use super::compiled::Compiled;
use super::execute::Output;
use super::run::Measure;
use super::session::Session;
use super::{ResultSink, Status};
use crate::error::{SqlError, SqlResult};
use crate::expr::WarningLevel;
use crate::parser::{IntoFile, LineFormat};
use crate::statement::{
    self, ExecContext, LoadedFile, ModifyStatement, StatementOutcome, put_line,
};
use crate::types::{ColumnMeta, DataType, Value, write_text};

/// Rows are written to the file when this much of them is ready, bytes.
const WRITE_AT: usize = 64 * 1024;

impl Session {
    /// LOAD DATA: opens the file and reads it into the table.
    pub(super) fn run_load(
        &self,
        context: &ExecContext<'_>,
        modify: &ModifyStatement,
        file: LoadedFile<'_>,
        output: &mut Output<'_>,
    ) -> SqlResult<StatementOutcome> {
        if !file.local {
            let directory = self.file_directory()?;
            let opened = self.instance().host.open_file(&directory, file.name);
            let mut opened = opened.map_err(|error| not_opened(file.name, &error))?;
            return statement::run_load(context, modify, &mut *opened);
        }
        let allowed = self.instance().globals.read().integer("local_infile") == 1;
        if !allowed || !self.state.client.local_files {
            return Err(SqlError::new(
                3948,
                "42000",
                "Loading local data is disabled; this must be enabled on both the client and server sides",
            ));
        }
        output.took_file = true;
        let sent = output.sink.local_file(file.name)?;
        statement::run_load(context, modify, sent)
    }

    /// Where files of the server may be, after the privilege was checked.
    fn file_directory(&self) -> SqlResult<String> {
        let account = self.state.account();
        if !account.global.has_any(Privileges::FILE) {
            let (user, host) = (self.state.user.borrow(), &self.state.client.host);
            return Err(SqlError::new(
                1045,
                "28000",
                format!("Access denied for user '{user}'@'{host}' (using password: YES)"),
            ));
        }
        let directory = self.instance().options.secure_file_priv.clone();
        directory.ok_or_else(outside)
    }

    /// `SELECT … INTO OUTFILE` and `INTO DUMPFILE`.
    pub(super) fn run_into_file(
        &mut self,
        into: &IntoFile,
        compiled: &Arc<Compiled>,
        params: &[Value],
        sink: &mut dyn ResultSink,
        more: bool,
        measure: &mut Measure,
    ) -> SqlResult<()> {
        let directory = self.file_directory()?;
        let created = self.instance().host.create_file(&directory, &into.file);
        let mut rows = RowFile {
            file: created.map_err(|error| not_created(&into.file, &error))?,
            format: into.format.clone(),
            types: Vec::new(),
            ready: Vec::new(),
            rows: 0,
        };
        self.run_planned(compiled, params, &mut rows, false, measure)?;
        rows.write_out()?;
        if into.format.is_none() && rows.rows == 0 {
            let message = "No data - zero rows fetched, selected, or processed";
            self.state
                .warn(WarningLevel::Warning, 1329, message.to_string());
        }
        let outcome = StatementOutcome {
            affected_rows: rows.rows,
            matched_rows: rows.rows,
            ..StatementOutcome::default()
        };
        self.report(&outcome, sink, more)
    }
}

fn outside() -> SqlError {
    SqlError::new(
        1290,
        "HY000",
        "The MySQL server is running with the --secure-file-priv option so it cannot execute this statement",
    )
}

fn not_opened(name: &str, error: &io::Error) -> SqlError {
    match error.kind() {
        ErrorKind::PermissionDenied => outside(),
        ErrorKind::NotFound => SqlError::new(
            29,
            "HY000",
            format!("File '{name}' not found (OS errno 2 - No such file or directory)"),
        ),
        _ => SqlError::new(
            29,
            "HY000",
            format!("File '{name}' cannot be read: {error}"),
        ),
    }
}

fn not_created(name: &str, error: &io::Error) -> SqlError {
    match error.kind() {
        ErrorKind::PermissionDenied => outside(),
        ErrorKind::AlreadyExists => {
            SqlError::new(1086, "HY000", format!("File '{name}' already exists"))
        }
        _ => SqlError::new(
            1,
            "HY000",
            format!("Can't create/write to file '{name}': {error}"),
        ),
    }
}

/// A file that takes the rows of a query.
struct RowFile {
    file: Box<dyn Write>,
    /// `None` for DUMPFILE.
    format: Option<LineFormat>,
    types: Vec<DataType>,
    ready: Vec<u8>,
    rows: u64,
}

impl RowFile {
    fn write_out(&mut self) -> SqlResult<()> {
        let written = self.file.write_all(&self.ready);
        self.ready.clear();
        written
            .and_then(|()| self.file.flush())
            .map_err(|error| SqlError::new(3, "HY000", format!("Error writing file: {error}")))
    }
}

impl ResultSink for RowFile {
    fn columns(&mut self, columns: &[ColumnMeta]) -> SqlResult<()> {
        self.types = columns.iter().map(|column| column.ty.clone()).collect();
        Ok(())
    }

    fn row(&mut self, row: &[Value]) -> SqlResult<()> {
        self.rows += 1;
        match &self.format {
            Some(format) => put_line(&mut self.ready, format, &self.types, row),
            None if self.rows > 1 => {
                let message = "Result consisted of more than one row";
                return Err(SqlError::new(1172, "42000", message));
            }
            None => {
                for (value, ty) in row.iter().zip(&self.types) {
                    if !value.is_null() {
                        write_text(value, ty, &mut self.ready);
                    }
                }
            }
        }
        if self.ready.len() >= WRITE_AT {
            self.write_out()?;
        }
        Ok(())
    }

    fn end(&mut self, _status: Status, _more: bool) -> SqlResult<()> {
        Ok(())
    }

    fn done(&mut self, _outcome: &StatementOutcome, _status: Status, _more: bool) -> SqlResult<()> {
        Ok(())
    }

    fn local_file(&mut self, _name: &str) -> SqlResult<&mut dyn Read> {
        Err(SqlError::internal("a query that reads a client's file"))
    }
}
