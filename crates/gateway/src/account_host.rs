//! The host part of an account.

use std::net::IpAddr;

/// What stands behind the `@` of the account of a client at `peer`: `localhost` on this machine,
/// else its address.
pub fn account_host(peer: IpAddr) -> String {
    let peer = peer.to_canonical();
    if peer.is_loopback() {
        "localhost".to_owned()
    } else {
        peer.to_string()
    }
}
