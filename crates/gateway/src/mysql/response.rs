//! OK, ERR and EOF packets.

use manxdb_sql::error::SqlError;
use manxdb_sql::session::Status;
use mysql_common::constants::{CapabilityFlags as Capability, StatusFlags};

use super::codec::{put_lenenc_bytes, put_lenenc_int, put_lenenc_with};

/// Longest message of an ERR packet, bytes (MySQL's MYSQL_ERRMSG_SIZE).
const MESSAGE_MAX: usize = 512;

/// What an OK packet carries besides its header.
#[derive(Debug, Clone, Default)]
pub struct Ok<'a> {
    /// Rows changed, or matched for clients that asked so.
    pub affected_rows: u64,
    /// First generated AUTO_INCREMENT value.
    pub last_insert_id: u64,
    /// Session state.
    pub status: Status,
    /// Flags only the frontend knows: more results, cursors.
    pub extra: u16,
    /// Human-readable result.
    pub info: &'a str,
    /// The new current database, when the statement changed it.
    pub new_schema: Option<&'a str>,
}

/// The protocol's status bits for a session's state.
#[must_use]
pub fn status_bits(status: Status, extra: u16) -> u16 {
    let mut flags = StatusFlags::empty();
    flags.set(StatusFlags::SERVER_STATUS_IN_TRANS, status.in_transaction);
    flags.set(
        StatusFlags::SERVER_STATUS_IN_TRANS_READONLY,
        status.in_transaction && status.read_only_transaction,
    );
    flags.set(StatusFlags::SERVER_STATUS_AUTOCOMMIT, status.autocommit);
    flags.set(
        StatusFlags::SERVER_STATUS_NO_BACKSLASH_ESCAPES,
        status.no_backslash_escapes,
    );
    flags.bits() | extra
}

/// More results of the same command follow.
pub const MORE_RESULTS: u16 = 0x0008;
/// Rows wait in a cursor.
pub const CURSOR_EXISTS: u16 = 0x0040;
/// The cursor has given its last row.
pub const LAST_ROW_SENT: u16 = 0x0080;

/// Writes an OK packet; `header` is 0x00, or 0xFE where it stands for EOF.
pub fn put_ok(out: &mut Vec<u8>, header: u8, ok: &Ok<'_>, capabilities: Capability) {
    let track = capabilities.contains(Capability::CLIENT_SESSION_TRACK);
    let new_schema = ok.new_schema.filter(|_| track);
    let mut bits = status_bits(ok.status, ok.extra);
    if new_schema.is_some() {
        bits |= StatusFlags::SERVER_SESSION_STATE_CHANGED.bits();
    }
    out.push(header);
    put_lenenc_int(out, ok.affected_rows);
    put_lenenc_int(out, ok.last_insert_id);
    out.extend_from_slice(&bits.to_le_bytes());
    out.extend_from_slice(&ok.status.warnings.to_le_bytes());
    // Documents say that the text reaches to the end of the packet for clients that do not
    // track sessions; the server they describe, and every client, have a length before it.
    if !ok.info.is_empty() || new_schema.is_some() {
        put_lenenc_bytes(out, ok.info.as_bytes());
    }
    if let Some(schema) = new_schema {
        put_lenenc_with(out, |changes| {
            changes.push(1); // SESSION_TRACK_SCHEMA
            put_lenenc_with(changes, |data| put_lenenc_bytes(data, schema.as_bytes()));
        });
    }
}

/// Writes the end of column definitions or rows for clients without DEPRECATE_EOF.
pub fn put_eof(out: &mut Vec<u8>, status: Status, extra: u16) {
    out.push(0xFE);
    out.extend_from_slice(&status.warnings.to_le_bytes());
    out.extend_from_slice(&status_bits(status, extra).to_le_bytes());
}

/// Writes an ERR packet. Before the capabilities are known the SQLSTATE is left out.
pub fn put_error(out: &mut Vec<u8>, error: &SqlError, with_sqlstate: bool) {
    out.push(0xFF);
    out.extend_from_slice(&error.code.to_le_bytes());
    if with_sqlstate {
        out.push(b'#');
        let mut state = *b"HY000";
        if let std::result::Result::Ok(own) = error.sqlstate.as_bytes().try_into() {
            state = own;
        }
        out.extend_from_slice(&state);
    }
    out.extend_from_slice(truncated(&error.message, MESSAGE_MAX - 1).as_bytes());
}

/// The longest prefix of at most `max` bytes that ends between characters.
fn truncated(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let end = (0..=max).rev().find(|&i| text.is_char_boundary(i));
    &text[..end.unwrap_or(0)] // a boundary by construction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_ok_is_seven_bytes() {
        let mut out = Vec::new();
        let ok = Ok {
            affected_rows: 1,
            last_insert_id: 2,
            status: Status {
                autocommit: true,
                warnings: 3,
                ..Status::default()
            },
            ..Ok::default()
        };
        put_ok(&mut out, 0, &ok, Capability::CLIENT_SESSION_TRACK);
        assert_eq!(out, [0, 1, 2, 2, 0, 3, 0]);
    }

    #[test]
    fn information_has_its_length_before_it_for_every_client() {
        let ok = Ok {
            info: "Records: 2",
            ..Ok::default()
        };
        for capabilities in [Capability::empty(), Capability::CLIENT_SESSION_TRACK] {
            let mut out = Vec::new();
            put_ok(&mut out, 0, &ok, capabilities);
            assert_eq!(out, b"\0\0\0\0\0\0\0\x0ARecords: 2");
        }
    }

    #[test]
    fn a_new_schema_is_told_to_clients_that_track_it() {
        let ok = Ok {
            new_schema: Some("shop"),
            ..Ok::default()
        };
        let mut tracked = Vec::new();
        put_ok(&mut tracked, 0, &ok, Capability::CLIENT_SESSION_TRACK);
        assert_eq!(tracked, b"\0\0\0\x00\x40\0\0\0\x07\x01\x05\x04shop");
        let mut untracked = Vec::new();
        put_ok(&mut untracked, 0, &ok, Capability::empty());
        assert_eq!(untracked, [0; 7]);
    }

    #[test]
    fn a_read_only_flag_needs_an_open_transaction() {
        let status = Status {
            read_only_transaction: true,
            ..Status::default()
        };
        assert_eq!(status_bits(status, 0), 0);
        let open = Status {
            in_transaction: true,
            ..status
        };
        assert_eq!(status_bits(open, MORE_RESULTS), 0x2009);
    }

    #[test]
    fn long_messages_are_cut_between_characters() {
        let error = SqlError::new(1105, "HY000", "é".repeat(400));
        let mut out = Vec::new();
        put_error(&mut out, &error, true);
        assert_eq!(&out[..9], b"\xFF\x51\x04#HY000");
        let message = std::str::from_utf8(&out[9..]).unwrap();
        assert_eq!(message.len(), 510);
    }

    #[test]
    fn errors_before_the_handshake_carry_no_sqlstate() {
        let mut out = Vec::new();
        put_error(
            &mut out,
            &SqlError::new(1040, "08004", "Too many connections"),
            false,
        );
        assert_eq!(&out, b"\xFF\x10\x04Too many connections");
    }
}
