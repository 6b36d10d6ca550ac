//! The exchange that proves who a client is, at login and in COM_CHANGE_USER.

use manxdb_sql::error::SqlError;
use manxdb_sql::session::{AccountAuth, Instance};
use mysql_common::constants::CapabilityFlags as Capability;

use super::end::End;
use super::framing::Channel;
use super::handshake::{HandshakeResponse, SALT_LENGTH};
use super::plugin::{Plugin, random_salt, unknown_user_verifier};
use super::shared::Shared;
use crate::password_key::PasswordKey;
use crate::transport::Transport;

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
/// caching_sha2_password: a client asks for the key to encrypt the password for.
const PUBLIC_KEY_REQUEST: u8 = 0x02;

type Link = Channel<Transport>;

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
pub fn authenticate(
    link: &mut Link,
    shared: &Shared,
    peer: &Peer,
    salt: [u8; SALT_LENGTH],
    response: &HandshakeResponse,
) -> Result<AccountAuth, End> {
    let account = shared.instance.account(&response.user, &peer.host);
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
        switch_plugin(link, plugin)?
    } else {
        return Err(End::Refused(client_too_old()));
    };
    let using_password = !answer.is_empty() && answer != [0];
    let mut passed = plugin.check(&verifier, &salt, &answer);
    if plugin == Plugin::CachingSha2 && using_password {
        if passed {
            send(link, &[AUTH_MORE_DATA, FAST_AUTH_OK])?;
        } else if !verifier.is_empty() {
            let password = ask_for_password(link, shared.options.password_key.as_deref(), &salt)?;
            passed = password.is_some_and(|password| plugin.check_clear(&verifier, &password));
        }
    }
    match account {
        Some(account) if passed && account.locked => Err(End::Refused(locked(response, peer))),
        Some(account) if passed => Ok(account),
        _ => Err(End::Refused(denied(&response.user, peer, using_password))),
    }
}

/// The account of `user` from `host`, if `password` is its password and it is not locked. Unknown users
/// take as long as known ones.
#[must_use]
pub fn check_password(
    instance: &Instance,
    user: &str,
    host: &str,
    password: &[u8],
) -> Option<AccountAuth> {
    let Some(account) = instance.account(user, host) else {
        let _ = Plugin::CachingSha2.check_clear(&unknown_user_verifier(), password);
        return None;
    };
    let plugin = Plugin::by_name(&account.plugin)?;
    let is_right = plugin.check_clear(&account.verifier, password);
    (is_right && !account.locked).then_some(account)
}

/// Sends a fresh challenge for `plugin` and reads the answer to it.
fn switch_plugin(link: &mut Link, plugin: Plugin) -> Result<([u8; SALT_LENGTH], Vec<u8>), End> {
    let salt = random_salt().map_err(|_| End::Refused(SqlError::internal("no randomness")))?;
    let mut request = vec![AUTH_SWITCH];
    request.extend_from_slice(plugin.name().as_bytes());
    request.push(0);
    request.extend_from_slice(&salt);
    request.push(0);
    send(link, &request)?;
    let mut answer = Vec::new();
    link.read_packet(&mut answer, LOGIN_PACKET_MAX)?;
    Ok((salt, answer))
}

/// caching_sha2_password's full authentication: the password itself, in clear inside TLS,
/// else encrypted for `key`. `None` when what came is no password.
fn ask_for_password(
    link: &mut Link,
    key: Option<&PasswordKey>,
    salt: &[u8; SALT_LENGTH],
) -> Result<Option<Vec<u8>>, End> {
    let secure = link.stream().is_secure();
    if !secure && key.is_none() {
        return Ok(None);
    }
    send(link, &[AUTH_MORE_DATA, FULL_AUTH])?;
    let mut answer = Vec::new();
    link.read_packet(&mut answer, LOGIN_PACKET_MAX)?;
    if secure {
        // With the NUL that ends it, which some clients leave out.
        if answer.last() == Some(&0) {
            answer.pop();
        }
        return Ok(Some(answer));
    }
    let Some(key) = key else { return Ok(None) };
    // A client that does not know the key asks for it.
    if answer == [PUBLIC_KEY_REQUEST] {
        let pem = key.public_pem().as_bytes();
        send(link, &[&[AUTH_MORE_DATA], pem].concat())?;
        link.read_packet(&mut answer, LOGIN_PACKET_MAX)?;
    }
    Ok(key.decrypt(&answer, salt))
}

fn send(link: &mut Link, payload: &[u8]) -> Result<(), End> {
    link.start_packet().extend_from_slice(payload);
    link.end_packet()?;
    link.flush()?;
    Ok(())
}

fn client_too_old() -> SqlError {
    SqlError::new(
        1251,
        "08004",
        "Client does not support authentication protocol requested by server; consider upgrading MySQL client",
    )
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
