//! Statements and their results, a row at a time.

use manxdb_gateway::mysql::codec::PayloadReader;
use manxdb_gateway::mysql::framing::Channel;
use mysql_common::constants::{CapabilityFlags as Capability, Command, StatusFlags};

use super::error::ClientError;
use super::stream::Stream;

/// Longest packet either side sends, bytes: the most MySQL knows.
pub const PACKET_BYTES_MAX: usize = 1 << 30;

/// A logged-in client.
pub struct Connection {
    channel: Channel<Stream>,
    id: u32,
    deprecates_eof: bool,
    payload: Vec<u8>,
}

/// What a statement, or one of several results, begins with.
#[derive(Debug)]
pub enum Answer {
    /// Rows of these columns follow.
    Rows(Vec<Column>),
    /// It is done.
    Done(Done),
}

/// A column as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its heading.
    pub name: String,
    /// Holds numbers.
    pub numeric: bool,
}

/// How a statement or a set of rows ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Done {
    /// Rows changed.
    pub affected_rows: u64,
    /// Human-readable result.
    pub info: String,
    /// Another result follows.
    pub more: bool,
}

/// The values of a row; `None` is NULL.
pub type Row = Vec<Option<Vec<u8>>>;

impl Connection {
    /// After the login.
    pub(super) fn new(channel: Channel<Stream>, id: u32, capabilities: Capability) -> Self {
        Self {
            channel,
            id,
            deprecates_eof: capabilities.contains(Capability::CLIENT_DEPRECATE_EOF),
            payload: Vec::new(),
        }
    }

    /// The server's number for it.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Whether statements travel encrypted.
    pub fn is_secure(&self) -> bool {
        self.channel.stream().is_secure()
    }

    /// Changes the current database.
    ///
    /// # Errors
    /// The server's, or the connection's.
    pub fn use_database(&mut self, name: &str) -> Result<(), ClientError> {
        self.send(Command::COM_INIT_DB, name.as_bytes())?;
        self.answer().map(|_| ())
    }

    /// Sends a statement and reads how its first result begins.
    ///
    /// # Errors
    /// The server's, or the connection's.
    pub fn query(&mut self, text: &str) -> Result<Answer, ClientError> {
        self.send(Command::COM_QUERY, text.as_bytes())?;
        self.answer()
    }

    /// Reads how a result begins, the one after [`Done::more`].
    ///
    /// # Errors
    /// The server's, or the connection's.
    pub fn answer(&mut self) -> Result<Answer, ClientError> {
        self.read()?;
        if self.payload.first() == Some(&0x00) {
            return Ok(Answer::Done(done(&self.payload)?));
        }
        let count = PayloadReader::new(&self.payload).lenenc_int()?;
        let mut columns = Vec::new();
        for _ in 0..count {
            self.read()?;
            columns.push(column(&self.payload)?);
        }
        if !self.deprecates_eof {
            self.read()?;
        }
        Ok(Answer::Rows(columns))
    }

    /// The next row of `columns` values, or how the rows ended.
    ///
    /// # Errors
    /// The server's, also after rows, or the connection's.
    pub fn row(&mut self, columns: usize) -> Result<Result<Row, Done>, ClientError> {
        self.read()?;
        // A row of one long value may begin with the same byte.
        if self.payload.first() == Some(&0xFE) && self.payload.len() < 0xFF_FFFF {
            if self.deprecates_eof {
                return Ok(Err(done(&self.payload)?));
            }
            if self.payload.len() < 9 {
                return Ok(Err(end_of_file(&self.payload)?));
            }
        }
        let mut reader = PayloadReader::new(&self.payload);
        let mut row = Vec::with_capacity(columns);
        for _ in 0..columns {
            let mut ahead = reader;
            if ahead.u8()? == 0xFB {
                reader = ahead;
                row.push(None);
            } else {
                row.push(Some(reader.lenenc_bytes()?.to_vec()));
            }
        }
        Ok(Ok(row))
    }

    fn send(&mut self, command: Command, body: &[u8]) -> Result<(), ClientError> {
        self.channel.reset_sequence();
        let out = self.channel.start_packet();
        out.push(command as u8);
        out.extend_from_slice(body);
        self.channel.end_packet()?;
        self.channel.flush()?;
        Ok(())
    }

    /// Reads a packet; one that tells an error is the error.
    fn read(&mut self) -> Result<(), ClientError> {
        self.channel
            .read_packet(&mut self.payload, PACKET_BYTES_MAX)?;
        match self.payload.first() {
            Some(0xFF) => Err(ClientError::from_packet(&self.payload)),
            Some(_) => Ok(()),
            None => Err(ClientError::Malformed),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // A server that is gone needs no goodbye.
        let _ = self.send(Command::COM_QUIT, b"");
    }
}

/// Reads an OK packet.
fn done(payload: &[u8]) -> Result<Done, ClientError> {
    let mut reader = PayloadReader::new(payload);
    reader.u8()?;
    let affected_rows = reader.lenenc_int()?;
    reader.lenenc_int()?; // insert id
    let status = reader.u16()?;
    reader.u16()?; // warnings
    let info = reader.lenenc_bytes().unwrap_or_default();
    Ok(Done {
        affected_rows,
        info: String::from_utf8_lossy(info).into_owned(),
        more: has_more(status),
    })
}

/// Reads an EOF packet, of servers that do not deprecate it.
fn end_of_file(payload: &[u8]) -> Result<Done, ClientError> {
    let mut reader = PayloadReader::new(payload);
    reader.bytes(3)?; // header, warnings
    Ok(Done {
        more: has_more(reader.u16()?),
        ..Done::default()
    })
}

fn has_more(status: u16) -> bool {
    status & StatusFlags::SERVER_MORE_RESULTS_EXISTS.bits() != 0
}

/// Reads a column definition.
fn column(payload: &[u8]) -> Result<Column, ClientError> {
    let mut reader = PayloadReader::new(payload);
    for _ in 0..4 {
        reader.lenenc_bytes()?; // catalog, schema, table, its original name
    }
    let name = String::from_utf8_lossy(reader.lenenc_bytes()?).into_owned();
    reader.lenenc_bytes()?; // original name
    reader.lenenc_int()?; // length of what follows
    reader.bytes(6)?; // collation, length
    // Codes of the integers, floats, decimals and YEAR.
    let numeric = matches!(reader.u8()?, 0..=5 | 8 | 9 | 13 | 246);
    Ok(Column { name, numeric })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ok_packet_is_read_with_its_information() {
        let ok = b"\0\x02\0\x0A\0\0\0\x0ARecords: 2";
        let read = done(ok).unwrap();
        assert_eq!(read.affected_rows, 2);
        assert_eq!(read.info, "Records: 2");
        assert!(read.more);
        assert!(matches!(done(b"\0\x02"), Err(ClientError::Malformed)));
    }

    #[test]
    fn a_column_has_its_heading_and_knows_numbers() {
        let definition = b"\x03def\0\0\0\x01n\0\x0C\x3F\0\x14\0\0\0\x08\x81\0\0\0\0";
        let read = column(definition).unwrap();
        assert_eq!((read.name.as_str(), read.numeric), ("n", true));
        assert!(column(&definition[..8]).is_err());
    }
}
