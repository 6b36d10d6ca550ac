//! From the first byte to a session: greeting, TLS, authentication.

use std::io;
use std::net::TcpStream;
use std::sync::Arc;

use manxdb_sql::error::SqlError;
use manxdb_sql::session::{ClientInfo, Session};
use mysql_common::constants::CapabilityFlags as Capability;

use super::authenticate::{LOGIN_PACKET_MAX, Peer, authenticate};
use super::compression::{Algorithm, Offered};
use super::end::{End, bad_handshake};
use super::framing::Channel;
use super::handshake::{
    FirstPacket, HandshakeResponse, SALT_LENGTH, announced_collation, parse_first_packet,
    put_greeting, server_capabilities,
};
use super::plugin::{Plugin, random_salt};
use super::response::{self, put_ok};
use super::shared::Shared;
use super::sink::ClientTraits;
use crate::account_host::account_host;
use crate::transport::Transport;

/// Greeting to session.
pub fn log_in(
    shared: &Arc<Shared>,
    id: u64,
    channel: &mut Channel<Transport>,
) -> Result<(Session, ClientTraits, Peer), End> {
    let peer = peer_of(channel.stream().socket())?;
    let salt = random_salt().map_err(|_| End::Refused(SqlError::internal("no randomness")))?;
    let offered = Offered::parse(&shared.instance.protocol_compression_algorithms());
    let capabilities = server_capabilities(shared.options.tls.is_some()) | offered.capabilities();
    let plugin = Plugin::CachingSha2.name();
    put_greeting(channel.start_packet(), id, &salt, plugin, capabilities);
    channel.end_packet()?;
    channel.flush()?;

    let response = read_response(shared, channel, capabilities)?;
    let compression = offered.choose(response.capabilities, response.zstd_level)?;
    channel.allow_read_ahead();
    let client = ClientTraits {
        capabilities: response.capabilities,
        collation: announced_collation(response.collation),
    };
    let session = open_session(shared, id, channel, &peer, salt, &response, compression)?;
    let ok = response::Ok {
        status: session.status(),
        ..response::Ok::default()
    };
    put_ok(channel.start_packet(), 0, &ok, client.capabilities);
    channel.end_packet()?;
    channel.flush()?;
    if let Some(algorithm) = compression {
        channel.start_compression(algorithm);
    }
    Ok((session, client, peer))
}

fn open_session(
    shared: &Arc<Shared>,
    id: u64,
    channel: &mut Channel<Transport>,
    peer: &Peer,
    salt: [u8; SALT_LENGTH],
    response: &HandshakeResponse,
    compression: Option<Algorithm>,
) -> Result<Session, End> {
    let account = authenticate(channel, shared, peer, salt, response)?;
    let info = ClientInfo {
        peer: peer.address.clone(),
        host: peer.host.clone(),
        found_rows: response
            .capabilities
            .contains(Capability::CLIENT_FOUND_ROWS),
        multi_statements: response
            .capabilities
            .contains(Capability::CLIENT_MULTI_STATEMENTS),
        local_files: response
            .capabilities
            .contains(Capability::CLIENT_LOCAL_FILES),
        collation: response.collation,
        compression: compression.map(Algorithm::info),
        tls: channel.stream().tls_facts(),
    };
    shared
        .instance
        .connect(
            id,
            &account.identity,
            &response.user,
            info,
            response.database.as_deref(),
        )
        .map_err(End::Refused)
}

/// The client's response, read inside TLS when it asks for that first.
fn read_response(
    shared: &Shared,
    channel: &mut Channel<Transport>,
    capabilities: Capability,
) -> Result<HandshakeResponse, End> {
    let mut payload = Vec::new();
    channel.read_packet(&mut payload, LOGIN_PACKET_MAX)?;
    let mut first =
        parse_first_packet(&payload, capabilities).map_err(|_| End::Refused(bad_handshake()))?;
    if let (FirstPacket::SslRequest, Some(tls)) = (&first, &shared.options.tls) {
        channel.stream_mut().start_tls(Arc::clone(tls))?;
        channel.read_packet(&mut payload, LOGIN_PACKET_MAX)?;
        first = parse_first_packet(&payload, capabilities)
            .map_err(|_| End::Refused(bad_handshake()))?;
    }
    match first {
        FirstPacket::Response(response) => Ok(response),
        FirstPacket::SslRequest => Err(End::Refused(bad_handshake())),
    }
}

fn peer_of(socket: &TcpStream) -> io::Result<Peer> {
    let address = socket.peer_addr()?;
    let ip = address.ip().to_canonical();
    Ok(Peer {
        address: format!("{ip}:{}", address.port()),
        host: account_host(ip),
    })
}
