//! Results of a session as packets.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::time::Duration;

use manxdb_sql::error::{SqlError, SqlResult};
use manxdb_sql::session::{ResultSink, Status};
use manxdb_sql::statement::StatementOutcome;
use manxdb_sql::types::{Collation, ColumnMeta, DataType, Value, write_text};
use mysql_common::constants::CapabilityFlags as Capability;

use super::binary::put_binary_row;
use super::codec::{put_lenenc_int, put_lenenc_with};
use super::column::put_column;
use super::framing::{Channel, FrameError};
use super::response::{self, put_eof, put_ok};
use crate::transport::Transport;

/// First byte of a request for a file of the client.
const LOCAL_FILE_REQUEST: u8 = 0xFB;
/// Longest packet of a client's file, bytes; clients send some kilobytes at a time.
const FILE_PACKET_MAX: usize = 64 << 20;

/// What the client agreed to.
#[derive(Debug, Clone, Copy)]
pub struct ClientTraits {
    /// Capabilities both sides have.
    pub capabilities: Capability,
    /// Collation id that text columns are announced in.
    pub collation: u16,
}

impl ClientTraits {
    /// Whether result sets end with an OK packet instead of EOF ones.
    #[must_use]
    pub fn deprecates_eof(self) -> bool {
        self.capabilities.contains(Capability::CLIENT_DEPRECATE_EOF)
    }
}

/// How rows travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowFormat {
    /// COM_QUERY.
    Text,
    /// COM_STMT_EXECUTE.
    Binary,
    /// COM_STMT_EXECUTE with a read-only cursor: encoded rows stay here until fetched.
    Cursor {
        /// Most bytes of rows to keep.
        memory_bytes: usize,
    },
}

/// Encoded rows waiting for COM_STMT_FETCH.
#[derive(Debug, Default)]
pub struct CursorRows {
    /// Payloads of binary row packets.
    pub rows: VecDeque<Vec<u8>>,
    /// State the cursor was opened under.
    pub status: Status,
}

/// Writes the results of one command. The last OK is left to the caller, who alone can ask
/// the session what else changed.
pub struct PacketSink<'a, S> {
    channel: &'a mut Channel<S>,
    client: ClientTraits,
    format: RowFormat,
    /// Status to announce before a statement's own is known.
    before: Status,
    types: Vec<DataType>,
    cursor: CursorRows,
    cursor_bytes: usize,
    schema_changed: bool,
    /// The final statement without rows: its OK packet is still to be written.
    pub pending_ok: Option<(StatementOutcome, Status)>,
    /// Whether anything was written.
    pub answered: bool,
    /// A cursor was opened.
    pub opened_cursor: bool,
    /// The client went away.
    pub failure: Option<io::Error>,
    /// The file that the client sends.
    file: Option<ClientFile>,
    /// How long more of it is waited for.
    pub file_patience: Duration,
}

/// A file that the client sends, packet by packet up to an empty one.
#[derive(Debug, Default)]
struct ClientFile {
    packet: Vec<u8>,
    /// Unread bytes of the packet begin here.
    at: usize,
    ended: bool,
}

impl<'a, S: Read + Write> PacketSink<'a, S> {
    /// A sink for one command.
    pub fn new(
        channel: &'a mut Channel<S>,
        client: ClientTraits,
        format: RowFormat,
        before: Status,
    ) -> Self {
        Self {
            channel,
            client,
            format,
            before,
            types: Vec::new(),
            cursor: CursorRows::default(),
            cursor_bytes: 0,
            schema_changed: false,
            pending_ok: None,
            answered: false,
            opened_cursor: false,
            failure: None,
            file: None,
            file_patience: Duration::from_secs(30),
        }
    }

    /// Takes the rows of an opened cursor.
    pub fn take_cursor(&mut self) -> Option<CursorRows> {
        self.opened_cursor.then(|| std::mem::take(&mut self.cursor))
    }

    /// Whether a statement of this command changed the current database.
    pub fn schema_changed(&self) -> bool {
        self.schema_changed
    }

    /// Writes the last OK packet.
    ///
    /// # Errors
    /// The client went away.
    pub fn write_ok(&mut self, ok: &response::Ok<'_>) -> io::Result<()> {
        put_ok(self.channel.start_packet(), 0, ok, self.client.capabilities);
        self.channel.end_packet()
    }

    fn packet(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> SqlResult<()> {
        self.answered = true;
        write(self.channel.start_packet());
        let ended = self.channel.end_packet();
        ended.map_err(|error| self.fail(error))
    }

    fn fail(&mut self, error: io::Error) -> SqlError {
        let message = format!("Got an error writing communication packets: {error}");
        self.failure = Some(error);
        SqlError::new(1160, "08S01", message)
    }

    /// A bare `?` has no type until a value comes: binary rows carry it as text.
    fn untyped_column(&mut self, column: &ColumnMeta) -> SqlResult<()> {
        let ty = DataType::Varchar {
            length: 0,
            collation: Collation::default(),
        };
        self.types.push(ty.clone());
        let column = ColumnMeta {
            ty,
            ..column.clone()
        };
        let collation = self.client.collation;
        self.packet(|out| put_column(out, &column, collation))
    }

    fn keep_row(&mut self, row: &[Value], memory_bytes: usize) -> SqlResult<()> {
        let mut payload = Vec::new();
        put_binary_row(&mut payload, &self.types, row);
        self.cursor_bytes += payload.len() + size_of::<Vec<u8>>();
        if self.cursor_bytes > memory_bytes {
            return Err(SqlError::new(
                1041,
                "HY000",
                format!(
                    "Out of memory: the rows of a cursor may take {memory_bytes} bytes; fetch without a cursor, or fewer rows"
                ),
            ));
        }
        self.cursor.rows.push_back(payload);
        Ok(())
    }

    fn end_packet_of_rows(&mut self, status: Status, extra: u16) -> SqlResult<()> {
        let client = self.client;
        self.packet(|out| put_end_of_rows(out, client, status, extra))
    }
}

impl PacketSink<'_, Transport> {
    /// Passes over what is left of the client's file: the answer comes behind it.
    ///
    /// # Errors
    /// The client went away.
    pub fn skip_file(&mut self) -> io::Result<()> {
        while self.file.as_ref().is_some_and(|file| !file.ended) {
            match self.next_file_packet() {
                Ok(()) | Err(FrameError::TooLarge) => {}
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Ok(())
    }

    fn next_file_packet(&mut self) -> Result<(), FrameError> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        file.at = 0;
        self.channel
            .read_packet(&mut file.packet, FILE_PACKET_MAX)?;
        file.ended = file.packet.is_empty();
        Ok(())
    }
}

/// The client's file.
impl Read for PacketSink<'_, Transport> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(file) = &mut self.file else {
                return Ok(0);
            };
            let unread = file.packet.get(file.at..).unwrap_or_default();
            if !unread.is_empty() || file.ended {
                let count = unread.len().min(into.len());
                into[..count].copy_from_slice(&unread[..count]);
                file.at += count;
                return Ok(count);
            }
            match self.next_file_packet() {
                Ok(()) => {}
                Err(FrameError::TooLarge) => {
                    return Err(io::Error::other("a packet of the file is too large"));
                }
                Err(error) => {
                    let text = error.to_string();
                    self.failure = Some(io::Error::other(error));
                    return Err(io::Error::other(text));
                }
            }
        }
    }
}

/// Writes the packet that ends rows: EOF, or OK for clients that deprecate it.
pub fn put_end_of_rows(out: &mut Vec<u8>, client: ClientTraits, status: Status, extra: u16) {
    if client.deprecates_eof() {
        let ok = response::Ok {
            status,
            extra,
            ..response::Ok::default()
        };
        put_ok(out, 0xFE, &ok, client.capabilities);
    } else {
        put_eof(out, status, extra);
    }
}

/// Writes one row of the text protocol.
fn put_text_row(out: &mut Vec<u8>, types: &[DataType], row: &[Value]) {
    for (ty, value) in types.iter().zip(row) {
        if value.is_null() {
            out.push(0xFB);
        } else {
            put_lenenc_with(out, |text| write_text(value, ty, text));
        }
    }
}

impl ResultSink for PacketSink<'_, Transport> {
    fn local_file(&mut self, name: &str) -> SqlResult<&mut dyn Read> {
        self.packet(|out| {
            out.push(LOCAL_FILE_REQUEST);
            out.extend_from_slice(name.as_bytes());
        })?;
        let patience = self.file_patience;
        let asked = self
            .channel
            .flush()
            .and_then(|()| self.channel.stream_mut().set_read_timeout(patience));
        asked.map_err(|error| self.fail(error))?;
        self.file = Some(ClientFile::default());
        Ok(self)
    }

    fn columns(&mut self, columns: &[ColumnMeta]) -> SqlResult<()> {
        self.types.clear();
        let client = self.client;
        self.packet(|out| put_lenenc_int(out, columns.len() as u64))?;
        for column in columns {
            if self.format != RowFormat::Text && column.ty == DataType::Null {
                self.untyped_column(column)?;
                continue;
            }
            self.types.push(column.ty.clone());
            self.packet(|out| put_column(out, column, client.collation))?;
        }
        let is_cursor = matches!(self.format, RowFormat::Cursor { .. });
        if !client.deprecates_eof() && !is_cursor {
            let before = self.before;
            self.packet(|out| put_eof(out, before, 0))?;
        }
        Ok(())
    }

    fn row(&mut self, row: &[Value]) -> SqlResult<()> {
        if let RowFormat::Cursor { memory_bytes } = self.format {
            return self.keep_row(row, memory_bytes);
        }
        let out = self.channel.start_packet();
        if self.format == RowFormat::Text {
            put_text_row(out, &self.types, row);
        } else {
            put_binary_row(out, &self.types, row);
        }
        let ended = self.channel.end_packet();
        ended.map_err(|error| self.fail(error))
    }

    fn end(&mut self, status: Status, more: bool) -> SqlResult<()> {
        self.schema_changed |= status.schema_changed;
        self.before = status;
        let mut extra = if more { response::MORE_RESULTS } else { 0 };
        if matches!(self.format, RowFormat::Cursor { .. }) {
            self.opened_cursor = true;
            self.cursor.status = status;
            extra |= response::CURSOR_EXISTS;
        }
        self.end_packet_of_rows(status, extra)
    }

    fn done(&mut self, outcome: &StatementOutcome, status: Status, more: bool) -> SqlResult<()> {
        self.schema_changed |= status.schema_changed;
        self.before = status;
        if !more {
            self.pending_ok = Some((outcome.clone(), status));
            return Ok(());
        }
        let ok = response::Ok {
            affected_rows: affected_rows(outcome, self.client),
            last_insert_id: outcome.last_insert_id,
            status,
            extra: response::MORE_RESULTS,
            info: &outcome.info,
            new_schema: None,
        };
        let capabilities = self.client.capabilities;
        self.packet(|out| put_ok(out, 0, &ok, capabilities))
    }
}

/// Rows changed, or for clients with CLIENT_FOUND_ROWS rows matched.
pub fn affected_rows(outcome: &StatementOutcome, client: ClientTraits) -> u64 {
    if client.capabilities.contains(Capability::CLIENT_FOUND_ROWS) {
        outcome.matched_rows.max(outcome.affected_rows)
    } else {
        outcome.affected_rows
    }
}
