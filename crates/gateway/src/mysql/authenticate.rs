//! The exchange that proves who a client is, at login and in COM_CHANGE_USER.

use std::io::{Read, Write};
use std::sync::Arc;

use manxdb_sql::error::SqlError;
use manxdb_sql::session::{AccountAuth, Instance};
use mysql_common::constants::CapabilityFlags as Capability;

use super::end::End;
use super::framing::Channel;
use super::handshake::{HandshakeResponse, SALT_LENGTH};
use super::plugin::{Plugin, random_salt, unknown_user_verifier};

/// Packets before login are small; anything bigger is no client.
pub const LOGIN_PACKET_MAX: usize = 64 * 1024;

/// First byte of a request to answer by another plugin.
const AUTH_SWITCH: u8 = 0xFE;
/// First byte of plugin data.
const AUTH_MORE_DATA: u8 = 0x01;
/// caching_sha2_password: the scramble was right.
const FAST_AUTH_OK: u8 = 0x03;
/// caching_sha2_password: send the password itself.
const FULL_AUTH: u8 = 0x04;

/// Who a client is, seen from outside.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Address with port.
    pub address: String,
    /// Host part, `localhost` for loopback addresses.
    pub host: String,
}

/// Authenticates the user of `response`, who answered the challenge `salt`.
///
/// Unknown users go through the same exchange as known ones, so that the answer does not tell
/// whether a name exists.
///
/// # Errors
/// [`End::Refused`] with 1045 or 3118, or the transport's.
pub fn authenticate<S: Read + Write>(
    channel: &mut Channel<S>,
    instance: &Arc<Instance>,
    peer: &Peer,
    secure: bool,
    salt: [u8; SALT_LENGTH],
    response: &HandshakeResponse,
) -> Result<AccountAuth, End> {
    let account = instance.account(&response.user, &peer.host);
    let (plugin, verifier) = match &account {
        Some(account) => (
            Plugin::by_name(&account.plugin).ok_or_else(|| unknown_plugin(&account.plugin))?,
            account.verifier.clone(),
        ),
        None => (Plugin::CachingSha2, unknown_user_verifier()),
    };
    let offered = response.plugin.as_deref();
    let (salt, answer) = if offered.unwrap_or(Plugin::Native.name()) == plugin.name() {
        (salt, response.auth.clone())
    } else if response
        .capabilities
        .contains(Capability::CLIENT_PLUGIN_AUTH)
    {
        switch_plugin(channel, plugin)?
    } else {
        return Err(End::Refused(SqlError::new(
            1251,
            "08004",
            "Client does not support authentication protocol requested by server; consider upgrading MySQL client",
        )));
    };
    let using_password = !answer.is_empty() && answer != [0];
    let mut passed = plugin.check(&verifier, &salt, &answer);
    if plugin == Plugin::CachingSha2 && using_password {
        if passed {
            send(channel, &[AUTH_MORE_DATA, FAST_AUTH_OK])?;
        } else if secure && !verifier.is_empty() {
            passed = ask_for_password(channel, plugin, &verifier)?;
        }
    }
    match account {
        Some(account) if passed && account.locked => Err(End::Refused(locked(response, peer))),
        Some(account) if passed => Ok(account),
        _ => Err(End::Refused(denied(&response.user, peer, using_password))),
    }
}

/// Sends a fresh challenge for `plugin` and reads the answer to it.
fn switch_plugin<S: Read + Write>(
    channel: &mut Channel<S>,
    plugin: Plugin,
) -> Result<([u8; SALT_LENGTH], Vec<u8>), End> {
    let salt = random_salt().map_err(|_| End::Refused(SqlError::internal("no randomness")))?;
    let mut request = vec![AUTH_SWITCH];
    request.extend_from_slice(plugin.name().as_bytes());
    request.push(0);
    request.extend_from_slice(&salt);
    request.push(0);
    send(channel, &request)?;
    let mut answer = Vec::new();
    channel.read_packet(&mut answer, LOGIN_PACKET_MAX)?;
    Ok((salt, answer))
}

/// caching_sha2_password's full authentication, over TLS only: the password in clear.
fn ask_for_password<S: Read + Write>(
    channel: &mut Channel<S>,
    plugin: Plugin,
    verifier: &[u8],
) -> Result<bool, End> {
    send(channel, &[AUTH_MORE_DATA, FULL_AUTH])?;
    let mut password = Vec::new();
    channel.read_packet(&mut password, LOGIN_PACKET_MAX)?;
    let password = password.strip_suffix(&[0]).unwrap_or(&password);
    Ok(plugin.check_clear(verifier, password))
}

fn send<S: Read + Write>(channel: &mut Channel<S>, payload: &[u8]) -> Result<(), End> {
    channel.start_packet().extend_from_slice(payload);
    channel.end_packet()?;
    channel.flush()?;
    Ok(())
}

fn denied(user: &str, peer: &Peer, using_password: bool) -> SqlError {
    let using = if using_password { "YES" } else { "NO" };
    let host = &peer.host;
    SqlError::new(
        1045,
        "28000",
        format!("Access denied for user '{user}'@'{host}' (using password: {using})"),
    )
}

fn locked(response: &HandshakeResponse, peer: &Peer) -> SqlError {
    let (user, host) = (&response.user, &peer.host);
    SqlError::new(
        3118,
        "HY000",
        format!("Access denied for user '{user}'@'{host}'. Account is locked."),
    )
}

fn unknown_plugin(name: &str) -> End {
    End::Refused(SqlError::new(
        1524,
        "HY000",
        format!("Plugin '{name}' is not loaded"),
    ))
}
