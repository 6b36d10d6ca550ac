//! From the server's greeting to a connection that takes statements.

use std::path::PathBuf;
use std::time::Duration;

use ::aws_lc_rs::rsa::{OAEP_SHA1_MGF1SHA1, OaepPublicEncryptingKey, PublicEncryptingKey};
use manxdb_gateway::mysql::codec::{PayloadReader, put_lenenc_bytes};
use manxdb_gateway::mysql::framing::Channel;
use manxdb_gateway::mysql::handshake::SALT_LENGTH;
use mysql_common::auth::plugins::caching_sha2_password::scramble_sha256;
use mysql_common::auth::plugins::mysql_native_password::scramble_native;
use mysql_common::constants::CapabilityFlags as Capability;
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject as _;

use super::connection::{Connection, PACKET_BYTES_MAX};
use super::error::ClientError;
use super::stream::Stream;
use crate::cli::TlsMode;

/// How long the server may take for each step of a login.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(30);
/// `utf8mb4_0900_ai_ci`.
const COLLATION: u8 = 255;
const SHA2: &str = "caching_sha2_password";
const NATIVE: &str = "mysql_native_password";
/// The server's challenge.
type Salt = [u8; SALT_LENGTH];

/// Where to, as whom, and how.
pub struct Identity {
    /// Server's host.
    pub host: String,
    /// Server's port.
    pub port: u16,
    /// User name.
    pub user: String,
    /// Password, empty for none.
    pub password: String,
    /// Database to use.
    pub database: Option<String>,
    /// Whether and how to encrypt.
    pub tls: TlsMode,
    /// Certificates that the server's must lead to.
    pub authority: Option<PathBuf>,
}

/// What the greeting says.
struct Greeting {
    connection_id: u32,
    capabilities: Capability,
    salt: Salt,
    plugin: String,
}

/// Logs in.
///
/// # Errors
/// [`ClientError`]: nobody answers, no TLS as asked for, or the server refuses.
pub fn connect(identity: &Identity) -> Result<Connection, ClientError> {
    let stream = Stream::connect(&identity.host, identity.port)?;
    stream.set_read_timeout(Some(LOGIN_TIMEOUT))?;
    let mut channel = Channel::new(stream);
    let greeting = read_greeting(&mut channel)?;
    let mut wanted = Capability::CLIENT_LONG_PASSWORD
        | Capability::CLIENT_LONG_FLAG
        | Capability::CLIENT_PROTOCOL_41
        | Capability::CLIENT_TRANSACTIONS
        | Capability::CLIENT_INTERACTIVE
        | Capability::CLIENT_SECURE_CONNECTION
        | Capability::CLIENT_MULTI_RESULTS
        | Capability::CLIENT_PLUGIN_AUTH
        | Capability::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA
        | Capability::CLIENT_DEPRECATE_EOF;
    if identity.database.is_some() {
        wanted |= Capability::CLIENT_CONNECT_WITH_DB;
    }
    let mut capabilities = wanted & greeting.capabilities;
    let offered = greeting.capabilities.contains(Capability::CLIENT_SSL);
    if offered && identity.tls != TlsMode::Disabled {
        capabilities |= Capability::CLIENT_SSL;
        send(&mut channel, &response_head(capabilities))?;
        let authority = identity.authority.as_deref();
        channel
            .stream_mut()
            .start_tls(&identity.host, identity.tls, authority)?;
    } else if !matches!(identity.tls, TlsMode::Disabled | TlsMode::Preferred) {
        return Err(ClientError::Tls("the server offers no TLS".to_owned()));
    }
    send(&mut channel, &response(identity, &greeting, capabilities)?)?;
    prove(&mut channel, identity, greeting.salt)?;
    channel.stream().set_read_timeout(None)?;
    channel.allow_read_ahead();
    Ok(Connection::new(
        channel,
        greeting.connection_id,
        capabilities,
    ))
}

fn read_greeting(channel: &mut Channel<Stream>) -> Result<Greeting, ClientError> {
    let payload = read(channel)?;
    if payload.first() == Some(&0xFF) {
        return Err(ClientError::from_packet(&payload));
    }
    let mut reader = PayloadReader::new(&payload);
    if reader.u8()? != 10 {
        return Err(ClientError::Malformed);
    }
    reader.nul_bytes()?; // version
    let connection_id = reader.u32()?;
    let mut salt = [0; SALT_LENGTH];
    salt[..8].copy_from_slice(reader.bytes(8)?);
    reader.u8()?;
    let low = u32::from(reader.u16()?);
    reader.bytes(3)?; // collation, status
    let high = u32::from(reader.u16()?);
    reader.bytes(11)?; // length of the challenge, reserved
    salt[8..].copy_from_slice(reader.bytes(12)?);
    reader.u8()?;
    let plugin = reader.nul_bytes().unwrap_or(NATIVE.as_bytes());
    Ok(Greeting {
        connection_id,
        capabilities: Capability::from_bits_truncate(low | high << 16),
        salt,
        plugin: String::from_utf8_lossy(plugin).into_owned(),
    })
}

/// The part of the response that is also the request for TLS.
fn response_head(capabilities: Capability) -> Vec<u8> {
    let mut out = capabilities.bits().to_le_bytes().to_vec();
    let longest = u32::try_from(PACKET_BYTES_MAX).unwrap_or(u32::MAX);
    out.extend_from_slice(&longest.to_le_bytes());
    out.push(COLLATION);
    out.extend_from_slice(&[0; 23]);
    out
}

fn response(
    identity: &Identity,
    greeting: &Greeting,
    capabilities: Capability,
) -> Result<Vec<u8>, ClientError> {
    // A plugin this client lacks is asked to be switched by answering with one it has.
    let plugin = if greeting.plugin == NATIVE {
        NATIVE
    } else {
        SHA2
    };
    let answer = scramble(plugin, &greeting.salt, &identity.password)?;
    let mut out = response_head(capabilities);
    out.extend_from_slice(identity.user.as_bytes());
    out.push(0);
    put_lenenc_bytes(&mut out, &answer); // of 32 bytes at most: one byte of length, as ever
    let with_database = capabilities.contains(Capability::CLIENT_CONNECT_WITH_DB);
    if let Some(database) = identity.database.as_ref().filter(|_| with_database) {
        out.extend_from_slice(database.as_bytes());
        out.push(0);
    }
    out.extend_from_slice(plugin.as_bytes());
    out.push(0);
    Ok(out)
}

fn scramble(plugin: &str, salt: &Salt, password: &str) -> Result<Vec<u8>, ClientError> {
    let password = password.as_bytes();
    match plugin {
        SHA2 => Ok(scramble_sha256(salt, password).map(|s| s.to_vec())),
        NATIVE => Ok(scramble_native(salt, password).map(|s| s.to_vec())),
        other => Err(ClientError::Plugin(other.to_owned())),
    }
    .map(Option::unwrap_or_default)
}

/// Answers what the server asks until it is satisfied or not.
fn prove(
    channel: &mut Channel<Stream>,
    identity: &Identity,
    mut salt: Salt,
) -> Result<(), ClientError> {
    loop {
        let payload = read(channel)?;
        match payload.as_slice() {
            [0x00, ..] => return Ok(()),
            [0xFF, ..] => return Err(ClientError::from_packet(&payload)),
            [0xFE, request @ ..] => {
                let mut reader = PayloadReader::new(request);
                let plugin = String::from_utf8_lossy(reader.nul_bytes()?).into_owned();
                salt.copy_from_slice(reader.bytes(SALT_LENGTH)?);
                let answer = scramble(&plugin, &salt, &identity.password)?;
                send(channel, &answer)?;
            }
            [0x01, 0x03] => {} // the scramble was right: OK follows
            [0x01, 0x04] => send_password(channel, &identity.password, &salt)?,
            _ => return Err(ClientError::Malformed),
        }
    }
}

/// The password itself, in clear inside TLS, else encrypted for the server's key.
fn send_password(
    channel: &mut Channel<Stream>,
    password: &str,
    salt: &Salt,
) -> Result<(), ClientError> {
    let clear = [password.as_bytes(), &[0]].concat();
    if channel.stream().is_secure() {
        return send(channel, &clear);
    }
    send(channel, &[2])?; // asks for the key
    let payload = read(channel)?;
    let [0x01, pem @ ..] = payload.as_slice() else {
        return Err(ClientError::from_packet(&payload));
    };
    let covers = salt.iter().cycle();
    let covered: Vec<u8> = clear.iter().zip(covers).map(|(a, b)| a ^ b).collect();
    let ciphertext = encrypt(pem, &covered).ok_or_else(|| {
        ClientError::Tls("the password cannot be encrypted for the server's key".to_owned())
    })?;
    send(channel, &ciphertext)
}

fn encrypt(pem: &[u8], clear: &[u8]) -> Option<Vec<u8>> {
    let der = SubjectPublicKeyInfoDer::from_pem_slice(pem).ok()?;
    let key = PublicEncryptingKey::from_der(der.as_ref()).ok()?;
    let key = OaepPublicEncryptingKey::new(key).ok()?;
    let mut out = vec![0; key.ciphertext_size()];
    key.encrypt(&OAEP_SHA1_MGF1SHA1, clear, &mut out, None)
        .ok()?;
    Some(out)
}

fn read(channel: &mut Channel<Stream>) -> Result<Vec<u8>, ClientError> {
    let mut payload = Vec::new();
    channel.read_packet(&mut payload, PACKET_BYTES_MAX)?;
    Ok(payload)
}

fn send(channel: &mut Channel<Stream>, payload: &[u8]) -> Result<(), ClientError> {
    channel.start_packet().extend_from_slice(payload);
    channel.end_packet()?;
    channel.flush()?;
    Ok(())
}
