//! Connection phase packets: the server's greeting, the client's response, SSLRequest and the
//! credentials of COM_CHANGE_USER.

use mysql_common::constants::CapabilityFlags as Capability;

use super::codec::{Malformed, PayloadReader};

/// The version string chooses the dialect that clients speak.
pub const SERVER_VERSION: &str = concat!("8.0.36-ManxDB-", env!("CARGO_PKG_VERSION"));
/// Bytes of the random challenge.
pub const SALT_LENGTH: usize = 20;
/// `utf8mb4_0900_ai_ci`.
pub const DEFAULT_COLLATION: u8 = 255;

/// Everything this server can do, whatever its settings; TLS is added when it has a certificate.
#[must_use]
pub fn server_capabilities(tls: bool) -> Capability {
    let base = Capability::CLIENT_LONG_PASSWORD
        | Capability::CLIENT_FOUND_ROWS
        | Capability::CLIENT_LONG_FLAG
        | Capability::CLIENT_CONNECT_WITH_DB
        | Capability::CLIENT_NO_SCHEMA
        | Capability::CLIENT_LOCAL_FILES
        | Capability::CLIENT_IGNORE_SPACE
        | Capability::CLIENT_PROTOCOL_41
        | Capability::CLIENT_INTERACTIVE
        | Capability::CLIENT_TRANSACTIONS
        | Capability::CLIENT_SECURE_CONNECTION
        | Capability::CLIENT_MULTI_STATEMENTS
        | Capability::CLIENT_MULTI_RESULTS
        | Capability::CLIENT_PS_MULTI_RESULTS
        | Capability::CLIENT_PLUGIN_AUTH
        | Capability::CLIENT_CONNECT_ATTRS
        | Capability::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA
        | Capability::CLIENT_SESSION_TRACK
        | Capability::CLIENT_DEPRECATE_EOF;
    if tls {
        base | Capability::CLIENT_SSL
    } else {
        base
    }
}

/// Writes the greeting (`HandshakeV10`).
pub fn put_greeting(
    out: &mut Vec<u8>,
    connection_id: u64,
    salt: &[u8; SALT_LENGTH],
    plugin: &str,
    capabilities: Capability,
) {
    let [low_0, low_1, high_0, high_1] = capabilities.bits().to_le_bytes();
    out.push(10);
    out.extend_from_slice(SERVER_VERSION.as_bytes());
    out.push(0);
    // The field has 32 bits in the protocol; a wrapped id is only displayed wrong.
    #[allow(clippy::cast_possible_truncation)]
    out.extend_from_slice(&(connection_id as u32).to_le_bytes());
    out.extend_from_slice(&salt[..8]);
    out.push(0);
    out.extend_from_slice(&[low_0, low_1]);
    out.push(DEFAULT_COLLATION);
    out.extend_from_slice(&2_u16.to_le_bytes()); // status: autocommit
    out.extend_from_slice(&[high_0, high_1]);
    out.push(21); // challenge with its NUL
    out.extend_from_slice(&[0; 10]);
    out.extend_from_slice(&salt[8..]);
    out.push(0);
    out.extend_from_slice(plugin.as_bytes());
    out.push(0);
}

/// What a client says of itself and of how it proves its identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandshakeResponse {
    /// Capabilities both sides have.
    pub capabilities: Capability,
    /// Collation id the client's strings are in.
    pub collation: u16,
    /// User name.
    pub user: String,
    /// Answer to the challenge.
    pub auth: Vec<u8>,
    /// Database to use, when one was named.
    pub database: Option<String>,
    /// Plugin that made `auth`, when named.
    pub plugin: Option<String>,
    /// Level of zstd, when the client can speak it.
    pub zstd_level: u8,
}

/// First packet of a client: an SSLRequest or a full response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FirstPacket {
    /// TLS first; the response follows inside it.
    SslRequest,
    /// The response.
    Response(HandshakeResponse),
}

/// Parses the first packet.
///
/// # Errors
/// [`Malformed`], also for clients older than protocol 4.1 (MySQL 1043).
pub fn parse_first_packet(payload: &[u8], server: Capability) -> Result<FirstPacket, Malformed> {
    let mut reader = PayloadReader::new(payload);
    let asked = Capability::from_bits_truncate(reader.u32()?);
    if !asked.contains(Capability::CLIENT_PROTOCOL_41) {
        return Err(Malformed);
    }
    let _max_packet = reader.u32()?;
    let collation = u16::from(reader.u8()?);
    reader.bytes(23)?;
    if asked.contains(Capability::CLIENT_SSL) && reader.is_empty() {
        return if server.contains(Capability::CLIENT_SSL) {
            Ok(FirstPacket::SslRequest)
        } else {
            Err(Malformed)
        };
    }
    let user = text(reader.nul_bytes()?)?;
    let auth = if asked.contains(Capability::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA) {
        reader.lenenc_bytes()?
    } else if asked.contains(Capability::CLIENT_SECURE_CONNECTION) {
        let length = usize::from(reader.u8()?);
        reader.bytes(length)?
    } else {
        reader.nul_bytes()?
    };
    let database = if asked.contains(Capability::CLIENT_CONNECT_WITH_DB) {
        Some(text(until_nul_or_end(&mut reader))?).filter(|d| !d.is_empty())
    } else {
        None
    };
    let plugin = if asked.contains(Capability::CLIENT_PLUGIN_AUTH) && !reader.is_empty() {
        Some(text(until_nul_or_end(&mut reader))?)
    } else {
        None
    };
    check_attributes(&mut reader, asked)?;
    let zstd_level = if asked.contains(Capability::CLIENT_ZSTD_COMPRESSION_ALGORITHM) {
        reader.u8()?
    } else {
        0
    };
    Ok(FirstPacket::Response(HandshakeResponse {
        capabilities: asked & server,
        collation,
        user,
        auth: auth.to_vec(),
        database,
        plugin,
        zstd_level,
    }))
}

/// Some clients leave out the NUL of the packet's last string.
fn until_nul_or_end<'a>(reader: &mut PayloadReader<'a>) -> &'a [u8] {
    reader.nul_bytes().unwrap_or_else(|_| reader.rest())
}

/// Connection attributes carry nothing we act on, but must be well-formed.
fn check_attributes(reader: &mut PayloadReader<'_>, asked: Capability) -> Result<(), Malformed> {
    if !asked.contains(Capability::CLIENT_CONNECT_ATTRS) || reader.is_empty() {
        return Ok(());
    }
    let mut attributes = PayloadReader::new(reader.lenenc_bytes()?);
    while !attributes.is_empty() {
        attributes.lenenc_bytes()?;
        attributes.lenenc_bytes()?;
    }
    Ok(())
}

fn text(bytes: &[u8]) -> Result<String, Malformed> {
    String::from_utf8(bytes.to_vec()).map_err(|_| Malformed)
}

/// Text is always utf8mb4; a client that named one of its collations gets that one back.
pub fn announced_collation(asked: u16) -> u16 {
    match asked {
        45 | 46 | 224..=247 | 255..=323 => asked,
        _ => u16::from(DEFAULT_COLLATION),
    }
}

/// Body of COM_CHANGE_USER.
///
/// # Errors
/// [`Malformed`].
pub fn parse_change_user(
    body: &[u8],
    capabilities: Capability,
    collation: u16,
) -> Result<HandshakeResponse, Malformed> {
    let mut reader = PayloadReader::new(body);
    let user = text(reader.nul_bytes()?)?;
    let length = usize::from(reader.u8()?);
    let auth = reader.bytes(length)?.to_vec();
    let database = Some(text(reader.nul_bytes()?)?).filter(|d| !d.is_empty());
    let collation = if reader.is_empty() {
        collation
    } else {
        reader.u16()?
    };
    let plugin = if capabilities.contains(Capability::CLIENT_PLUGIN_AUTH) && !reader.is_empty() {
        Some(text(until_nul_or_end(&mut reader))?)
    } else {
        None
    };
    check_attributes(&mut reader, capabilities)?;
    Ok(HandshakeResponse {
        capabilities,
        collation,
        user,
        auth,
        database,
        plugin,
        zstd_level: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn response(capabilities: Capability, tail: &[u8]) -> Vec<u8> {
        let mut packet = capabilities.bits().to_le_bytes().to_vec();
        packet.extend_from_slice(&[0, 0, 0, 1, 45]);
        packet.extend_from_slice(&[0; 23]);
        packet.extend_from_slice(tail);
        packet
    }

    fn parsed(capabilities: Capability, tail: &[u8]) -> HandshakeResponse {
        match parse_first_packet(&response(capabilities, tail), server_capabilities(true)) {
            Ok(FirstPacket::Response(response)) => response,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_greeting_has_the_layout_every_client_expects() {
        let mut out = Vec::new();
        let salt: [u8; SALT_LENGTH] = std::array::from_fn(|i| u8::try_from(i).unwrap() + 1);
        put_greeting(
            &mut out,
            7,
            &salt,
            "caching_sha2_password",
            server_capabilities(true),
        );
        assert_eq!(out[0], 10);
        let version_end = 1 + SERVER_VERSION.len();
        assert_eq!(&out[1..version_end], SERVER_VERSION.as_bytes());
        assert_eq!(&out[version_end + 1..version_end + 5], &[7, 0, 0, 0]);
        assert_eq!(&out[version_end + 5..version_end + 13], &salt[..8]);
        assert_eq!(out[version_end + 16], DEFAULT_COLLATION);
        assert!(out.ends_with(b"\x14\0caching_sha2_password\0"));
    }

    #[test]
    fn a_modern_response_is_read_whole() {
        let capabilities = Capability::CLIENT_PROTOCOL_41
            | Capability::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA
            | Capability::CLIENT_CONNECT_WITH_DB
            | Capability::CLIENT_PLUGIN_AUTH
            | Capability::CLIENT_CONNECT_ATTRS;
        let read = parsed(
            capabilities,
            b"ann\0\x03abcshop\0mysql_native_password\0\x04\x01k\x01v",
        );
        assert_eq!(read.user, "ann");
        assert_eq!(read.auth, b"abc");
        assert_eq!(read.database.as_deref(), Some("shop"));
        assert_eq!(read.plugin.as_deref(), Some("mysql_native_password"));
        assert_eq!(read.collation, 45);
    }

    #[test]
    fn capabilities_the_server_lacks_are_dropped() {
        let read = parsed(
            Capability::CLIENT_PROTOCOL_41
                | Capability::CLIENT_COMPRESS
                | Capability::CLIENT_SECURE_CONNECTION,
            b"ann\0\x00",
        );
        assert!(!read.capabilities.contains(Capability::CLIENT_COMPRESS));
    }

    #[test]
    fn the_level_of_zstd_is_the_last_byte() {
        let zstd = Capability::CLIENT_ZSTD_COMPRESSION_ALGORITHM;
        let asked = Capability::CLIENT_PROTOCOL_41 | Capability::CLIENT_SECURE_CONNECTION | zstd;
        let packet = response(asked, b"ann\0\x00\x09");
        let Ok(FirstPacket::Response(read)) =
            parse_first_packet(&packet, server_capabilities(true) | zstd)
        else {
            panic!("not read");
        };
        assert!(read.capabilities.contains(zstd));
        assert_eq!(read.zstd_level, 9);
        let short = response(asked, b"ann\0\x00");
        assert_eq!(
            parse_first_packet(&short, server_capabilities(true) | zstd),
            Err(Malformed)
        );
    }

    #[test]
    fn an_ssl_request_is_refused_where_there_is_no_certificate() {
        let packet = response(Capability::CLIENT_PROTOCOL_41 | Capability::CLIENT_SSL, b"");
        assert_eq!(
            parse_first_packet(&packet, server_capabilities(true)),
            Ok(FirstPacket::SslRequest)
        );
        assert_eq!(
            parse_first_packet(&packet, server_capabilities(false)),
            Err(Malformed)
        );
    }

    #[test]
    fn clients_from_before_protocol_4_1_are_malformed() {
        let packet = response(Capability::CLIENT_LONG_PASSWORD, b"ann\0\0");
        assert_eq!(
            parse_first_packet(&packet, server_capabilities(false)),
            Err(Malformed)
        );
    }

    proptest! {
        #[test]
        fn garbage_is_an_error_or_a_response_and_never_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_first_packet(&bytes, server_capabilities(true));
            let _ = parse_change_user(&bytes, server_capabilities(true), 255);
        }
    }
}
