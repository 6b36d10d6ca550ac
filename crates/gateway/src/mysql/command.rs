//! Commands of an authenticated client.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use manxdb_sql::error::{SqlError, SqlResult};
use manxdb_sql::session::{FrontendTimeouts, Session, Status};
use manxdb_sql::statement::StatementOutcome;
use manxdb_sql::types::{ColumnMeta, Value};
use mysql_common::constants::Command as Code;

use super::authenticate::{Peer, authenticate};
use super::codec::{Malformed, PayloadReader};
use super::column::put_column;
use super::columns_only::ColumnsOnly;
use super::end::{End, malformed_packet};
use super::framing::Channel;
use super::handshake::{HandshakeResponse, announced_collation, parse_change_user};
use super::params::read_params;
use super::plugin::random_salt;
use super::query_text::query_text;
use super::response::{self, put_eof, put_error, put_ok};
use super::shared::Shared;
use super::sink::{ClientTraits, PacketSink, RowFormat, affected_rows, put_end_of_rows};
use super::statement::FrontendStatement;
use crate::transport::Transport;

/// COM_STMT_EXECUTE asks for a read-only cursor.
const CURSOR_READ_ONLY: u8 = 1;

/// `REFRESH_SLAVE` and `REFRESH_MASTER` of `COM_REFRESH`.
const REFRESH_REPLICATION: u8 = 64 | 128;

// Command bytes.
const QUERY: u8 = Code::COM_QUERY as u8;
const STMT_EXECUTE: u8 = Code::COM_STMT_EXECUTE as u8;
const STMT_PREPARE: u8 = Code::COM_STMT_PREPARE as u8;
const STMT_CLOSE: u8 = Code::COM_STMT_CLOSE as u8;
const STMT_RESET: u8 = Code::COM_STMT_RESET as u8;
const STMT_SEND_LONG_DATA: u8 = Code::COM_STMT_SEND_LONG_DATA as u8;
const STMT_FETCH: u8 = Code::COM_STMT_FETCH as u8;
const PING: u8 = Code::COM_PING as u8;
const INIT_DB: u8 = Code::COM_INIT_DB as u8;
const RESET_CONNECTION: u8 = Code::COM_RESET_CONNECTION as u8;
const CHANGE_USER: u8 = Code::COM_CHANGE_USER as u8;
const FIELD_LIST: u8 = Code::COM_FIELD_LIST as u8;
const STATISTICS: u8 = Code::COM_STATISTICS as u8;
const PROCESS_KILL: u8 = Code::COM_PROCESS_KILL as u8;
const SET_OPTION: u8 = Code::COM_SET_OPTION as u8;
const REFRESH: u8 = Code::COM_REFRESH as u8;
const QUIT: u8 = Code::COM_QUIT as u8;

type Link = Channel<Transport>;

/// An authenticated client and what the frontend remembers of it.
pub struct Commands {
    shared: Arc<Shared>,
    session: Session,
    client: ClientTraits,
    peer: Peer,
    statements: HashMap<u32, FrontendStatement>,
    buffer: Vec<u8>,
    /// A session cannot change its own, so it is asked once.
    max_allowed_packet: usize,
}

impl Commands {
    /// Starts with no statements prepared.
    pub fn new(shared: Arc<Shared>, session: Session, client: ClientTraits, peer: Peer) -> Self {
        Self {
            max_allowed_packet: session.max_allowed_packet(),
            shared,
            session,
            client,
            peer,
            statements: HashMap::new(),
            buffer: Vec::new(),
        }
    }

    /// Longest packet the client may send, bytes.
    pub fn max_allowed_packet(&self) -> usize {
        self.max_allowed_packet
    }

    /// How long the client is waited for.
    pub fn timeouts(&self) -> FrontendTimeouts {
        self.session.frontend_timeouts()
    }

    /// The buffer for the next packet, to be given back.
    pub fn take_buffer(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.buffer)
    }

    /// Keeps the buffer for the next packet.
    pub fn give_buffer(&mut self, buffer: Vec<u8>) {
        self.buffer = buffer;
    }

    /// Gives back what the last packet took.
    pub fn release_buffer(&mut self) {
        self.buffer = Vec::new();
    }

    /// Answers one command. Errors of statements are answers; only what ends the connection
    /// comes back.
    ///
    /// # Errors
    /// [`End`].
    pub fn run(&mut self, link: &mut Link, payload: &[u8]) -> Result<(), End> {
        let Some((&code, body)) = payload.split_first() else {
            return Err(End::Refused(malformed_packet()));
        };
        let answered = match code {
            QUERY => self.query(link, body),
            STMT_EXECUTE => self.execute(link, body),
            STMT_PREPARE => self.prepare(link, body),
            STMT_CLOSE => self.close_statement(body),
            STMT_RESET => self.reset_statement(link, body),
            STMT_SEND_LONG_DATA => self.long_data(body),
            STMT_FETCH => self.fetch(link, body),
            PING => self.ok(link),
            INIT_DB => self.use_database(link, body),
            RESET_CONNECTION => {
                self.statements.clear();
                self.session.reset();
                self.ok(link)
            }
            CHANGE_USER => self.change_user(link, body),
            FIELD_LIST => self.field_list(link, body),
            STATISTICS => self.statistics(link),
            PROCESS_KILL => self.kill(link, body),
            REFRESH => self.refresh(link, body),
            SET_OPTION => self.set_option(link, body),
            QUIT => Err(Fault::End(End::Closed)),
            _ => Err(SqlError::new(1047, "08S01", "Unknown command").into()),
        };
        match answered {
            Ok(()) => Ok(()),
            Err(Fault::Statement(error)) => {
                self.shared.metrics.errors.increment(1);
                put_error(link.start_packet(), &error, true);
                Ok(link.end_packet()?)
            }
            Err(Fault::End(end)) => Err(end),
        }
    }

    fn query(&mut self, link: &mut Link, body: &[u8]) -> Result<(), Fault> {
        let before = self.session.status();
        let text = query_text(body, before.no_backslash_escapes)?;
        let mut sink = PacketSink::new(link, self.client, RowFormat::Text, before);
        sink.file_patience = Duration::from_secs(self.session.frontend_timeouts().read_seconds);
        let result = self.session.query(&text, &mut sink);
        finish(&self.session, self.client, sink, result)?;
        Ok(())
    }

    fn prepare(&mut self, link: &mut Link, body: &[u8]) -> Result<(), Fault> {
        let status = self.session.status();
        let text = query_text(body, status.no_backslash_escapes)?;
        let prepared = self.session.prepare(&text)?;
        let counts = (
            u16::try_from(prepared.params.len()),
            u16::try_from(prepared.columns.len()),
        );
        let (Ok(params), Ok(columns)) = counts else {
            self.session.close_statement(prepared.id);
            let message = "Prepared statement contains too many placeholders";
            return Err(SqlError::new(1390, "HY000", message).into());
        };
        let out = link.start_packet();
        out.push(0);
        out.extend_from_slice(&prepared.id.to_le_bytes());
        out.extend_from_slice(&columns.to_le_bytes());
        out.extend_from_slice(&params.to_le_bytes());
        out.push(0);
        out.extend_from_slice(&status.warnings.to_le_bytes());
        link.end_packet()?;
        self.definitions(link, &prepared.params, status)?;
        self.definitions(link, &prepared.columns, status)?;
        self.statements
            .insert(prepared.id, FrontendStatement::new(usize::from(params)));
        Ok(())
    }

    fn definitions(
        &self,
        link: &mut Link,
        columns: &[ColumnMeta],
        status: Status,
    ) -> Result<(), Fault> {
        for column in columns {
            put_column(link.start_packet(), column, self.client.collation);
            link.end_packet()?;
        }
        if !columns.is_empty() && !self.client.deprecates_eof() {
            put_eof(link.start_packet(), status, 0);
            link.end_packet()?;
        }
        Ok(())
    }

    fn execute(&mut self, link: &mut Link, body: &[u8]) -> Result<(), Fault> {
        let mut reader = PayloadReader::new(body);
        let id = reader.u32().map_err(malformed)?;
        let flags = reader.u8().map_err(malformed)?;
        let _iterations = reader.u32().map_err(malformed)?;
        let statement = known(&mut self.statements, id, "mysqld_stmt_execute")?;
        statement.cursor = None;
        let params = read_statement_params(statement, &mut reader);
        statement.reset();
        let params = params?;
        let format = if flags & CURSOR_READ_ONLY == 0 {
            RowFormat::Binary
        } else {
            RowFormat::Cursor {
                memory_bytes: self.shared.options.cursor_memory_bytes,
            }
        };
        let before = self.session.status();
        let mut sink = PacketSink::new(link, self.client, format, before);
        let result = self.session.execute(id, &params, &mut sink);
        let cursor = sink.take_cursor().filter(|_| result.is_ok());
        finish(&self.session, self.client, sink, result)?;
        if let (Some(statement), Some(_)) = (self.statements.get_mut(&id), &cursor) {
            statement.cursor = cursor;
        }
        Ok(())
    }

    fn fetch(&mut self, link: &mut Link, body: &[u8]) -> Result<(), Fault> {
        let mut reader = PayloadReader::new(body);
        let id = reader.u32().map_err(malformed)?;
        let count = reader.u32().map_err(malformed)?;
        let statement = known(&mut self.statements, id, "mysqld_stmt_fetch")?;
        let Some(cursor) = &mut statement.cursor else {
            let message = format!("The statement ({id}) has no open cursor.");
            return Err(SqlError::new(1421, "HY000", message).into());
        };
        for _ in 0..count {
            let Some(row) = cursor.rows.pop_front() else {
                break;
            };
            link.start_packet().extend_from_slice(&row);
            link.end_packet()?;
        }
        let extra = if cursor.rows.is_empty() {
            response::LAST_ROW_SENT
        } else {
            response::CURSOR_EXISTS
        };
        put_end_of_rows(link.start_packet(), self.client, cursor.status, extra);
        if extra == response::LAST_ROW_SENT {
            statement.cursor = None;
        }
        Ok(link.end_packet()?)
    }

    /// Has no answer.
    fn close_statement(&mut self, body: &[u8]) -> Result<(), Fault> {
        let id = PayloadReader::new(body).u32().map_err(fatal)?;
        if self.statements.remove(&id).is_some() {
            self.session.close_statement(id);
        }
        Ok(())
    }

    fn reset_statement(&mut self, link: &mut Link, body: &[u8]) -> Result<(), Fault> {
        let id = PayloadReader::new(body).u32().map_err(malformed)?;
        known(&mut self.statements, id, "mysqld_stmt_reset")?.reset();
        self.ok(link)
    }

    /// Has no answer; refusals are told by the next execution.
    fn long_data(&mut self, body: &[u8]) -> Result<(), Fault> {
        let mut reader = PayloadReader::new(body);
        let id = reader.u32().map_err(fatal)?;
        let index = reader.u16().map_err(fatal)?;
        let max = self.max_allowed_packet;
        if let Some(statement) = self.statements.get_mut(&id) {
            statement.append_long_data(index, reader.rest(), max);
        }
        Ok(())
    }

    fn ok(&mut self, link: &mut Link) -> Result<(), Fault> {
        let ok = response::Ok {
            status: Status {
                warnings: 0,
                ..self.session.status()
            },
            ..response::Ok::default()
        };
        put_ok(link.start_packet(), 0, &ok, self.client.capabilities);
        Ok(link.end_packet()?)
    }

    fn use_database(&mut self, link: &mut Link, body: &[u8]) -> Result<(), Fault> {
        let name = std::str::from_utf8(body).map_err(|_| {
            let name = String::from_utf8_lossy(body);
            SqlError::new(1049, "42000", format!("Unknown database '{name}'"))
        })?;
        self.session.use_database(name)?;
        let schema = self.session.database().map(ToString::to_string);
        let ok = response::Ok {
            status: self.session.status(),
            new_schema: schema.as_deref(),
            ..response::Ok::default()
        };
        put_ok(link.start_packet(), 0, &ok, self.client.capabilities);
        Ok(link.end_packet()?)
    }

    fn change_user(&mut self, link: &mut Link, body: &[u8]) -> Result<(), Fault> {
        let client = self.client;
        let asked = parse_change_user(body, client.capabilities, client.collation)
            .map_err(|_| Fault::End(End::Refused(malformed_packet())))?;
        self.statements.clear();
        self.session.reset();
        let account = self
            .reauthenticate(link, asked.clone())
            .map_err(Fault::End)?;
        self.session
            .change_user(
                &account,
                &asked.user,
                asked.database.as_deref(),
                asked.collation,
            )
            .map_err(|error| Fault::End(End::Refused(error)))?;
        self.client.collation = announced_collation(asked.collation);
        self.ok(link)
    }

    /// The old challenge was used up by the login: every answer is asked anew.
    fn reauthenticate(
        &mut self,
        link: &mut Link,
        mut asked: HandshakeResponse,
    ) -> Result<String, End> {
        // A name no plugin has: the account's plugin sends a fresh challenge.
        asked.plugin = Some(String::new());
        let salt = random_salt().map_err(|_| End::Refused(SqlError::internal("no randomness")))?;
        let patience = Duration::from_secs(self.shared.instance.connect_timeout_seconds());
        link.stream_mut()
            .set_deadline(Some(Instant::now() + patience));
        let account = authenticate(link, &self.shared, &self.peer, salt, &asked)?;
        link.stream_mut().set_deadline(None);
        Ok(account.identity)
    }

    /// Old clients complete names with it: the columns of a table, without rows.
    fn field_list(&mut self, link: &mut Link, body: &[u8]) -> Result<(), Fault> {
        let table = PayloadReader::new(body).nul_bytes().map_err(malformed)?;
        let table = String::from_utf8_lossy(table).replace('`', "``");
        let mut sink = ColumnsOnly::default();
        let text = format!("SELECT * FROM `{table}` LIMIT 0");
        self.session.query(&text, &mut sink)?;
        for column in &sink.columns {
            let out = link.start_packet();
            put_column(out, column, self.client.collation);
            out.push(0xFB); // no default value told
            link.end_packet()?;
        }
        put_end_of_rows(link.start_packet(), self.client, self.session.status(), 0);
        Ok(link.end_packet()?)
    }

    fn statistics(&mut self, link: &mut Link) -> Result<(), Fault> {
        let text = self.session.statistics();
        link.start_packet().extend_from_slice(text.as_bytes());
        Ok(link.end_packet()?)
    }

    fn kill(&mut self, link: &mut Link, body: &[u8]) -> Result<(), Fault> {
        let id = PayloadReader::new(body).u32().map_err(malformed)?;
        self.session
            .query(&format!("KILL {id}"), &mut ColumnsOnly::default())?;
        self.ok(link)
    }

    /// What old clients ask for in place of FLUSH.
    fn refresh(&mut self, link: &mut Link, body: &[u8]) -> Result<(), Fault> {
        let asked = PayloadReader::new(body).u8().map_err(malformed)?;
        if asked & REFRESH_REPLICATION != 0 {
            return Err(SqlError::not_supported("RESET of replication").into());
        }
        self.session
            .query("FLUSH STATUS", &mut ColumnsOnly::default())?;
        self.ok(link)
    }

    fn set_option(&mut self, link: &mut Link, body: &[u8]) -> Result<(), Fault> {
        match PayloadReader::new(body).u16().map_err(malformed)? {
            0 => self.session.set_multi_statements(true),
            1 => self.session.set_multi_statements(false),
            _ => return Err(SqlError::new(1047, "08S01", "Unknown command").into()),
        }
        put_end_of_rows(link.start_packet(), self.client, self.session.status(), 0);
        Ok(link.end_packet()?)
    }
}

/// Writes what the sink left open: the last OK with all that changed, or reports its failure.
fn finish(
    session: &Session,
    client: ClientTraits,
    mut sink: PacketSink<'_, Transport>,
    result: SqlResult<()>,
) -> Result<(), Fault> {
    if let Some(failure) = sink.failure.take() {
        return Err(failure.into());
    }
    sink.skip_file()?;
    result?;
    let new_schema = if sink.schema_changed() {
        session.database().map(ToString::to_string)
    } else {
        None
    };
    let (outcome, status) = match sink.pending_ok.take() {
        Some(last) => last,
        None if sink.answered => return Ok(()),
        None => (StatementOutcome::default(), session.status()),
    };
    let ok = response::Ok {
        affected_rows: affected_rows(&outcome, client),
        last_insert_id: outcome.last_insert_id,
        status,
        extra: 0,
        info: &outcome.info,
        new_schema: new_schema.as_deref(),
    };
    sink.write_ok(&ok)?;
    Ok(())
}

fn known<'a>(
    statements: &'a mut HashMap<u32, FrontendStatement>,
    id: u32,
    by: &str,
) -> Result<&'a mut FrontendStatement, Fault> {
    statements.get_mut(&id).ok_or_else(|| {
        let message = format!("Unknown prepared statement handler ({id}) given to {by}");
        SqlError::new(1243, "HY000", message).into()
    })
}

fn read_statement_params(
    statement: &mut FrontendStatement,
    reader: &mut PayloadReader<'_>,
) -> Result<Vec<Value>, Fault> {
    if statement.long_data_refused {
        let message = "Parameter of prepared statement which is set through mysql_send_long_data() is longer than 'max_allowed_packet' bytes, or does not exist";
        return Err(SqlError::new(1105, "HY000", message).into());
    }
    let count = statement.param_count;
    read_params(reader, count, &mut statement.types, &statement.long_data).map_err(malformed)
}

/// A command could not be answered as asked.
enum Fault {
    /// The client is told, the connection goes on.
    Statement(SqlError),
    /// The connection ends.
    End(End),
}

impl From<SqlError> for Fault {
    fn from(error: SqlError) -> Self {
        Self::Statement(error)
    }
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Self {
        Self::End(End::Io(error))
    }
}

/// Packet boundaries are intact: the client is told and may go on.
fn malformed(_: Malformed) -> Fault {
    Fault::Statement(malformed_packet())
}

/// The command has no answer to tell it in: the connection ends.
fn fatal(_: Malformed) -> Fault {
    Fault::End(End::Refused(malformed_packet()))
}
