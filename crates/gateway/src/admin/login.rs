//! Who may read statements and names of others on the admin listener.
//!
//! Numbers and states ([`is_open`]) are read by anybody who reaches the listener, as probes and Prometheus
//! do. Pages that show statements, tables or keys are read without a login only from the machine itself,
//! asked for by address or as `localhost`. Every other request brings a name and password of an account
//! with the privilege PROCESS (HTTP Basic, RFC 7617), which lets it see the same in SQL. Pages about people
//! have a rule of their own ([`super::owners`]).
//!
//! The name in the `Host` header counts because a request from loopback may be somebody else's: a proxy
//! passes on what it was asked for, and so does a browser that a foreign page has led to 127.0.0.1 by
//! changing what its own name resolves to.

use std::net::IpAddr;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::account_host::account_host;

/// Whether an account may read: its name, its password, and the host it comes from, as in `name@host`.
pub type LogIn = dyn Fn(&str, &[u8], &str) -> bool + Send + Sync;

/// Who a request says it is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Name of an account.
    pub name: String,
    /// Its password, as it came.
    pub password: Vec<u8>,
    /// The host it comes from, as in `name@host`.
    pub host: String,
}

/// What a request says of where it comes from.
#[derive(Debug, Clone, Copy, Default)]
pub struct Origin<'a> {
    /// Address of the peer; `None` when the system does not tell.
    pub peer: Option<IpAddr>,
    /// The `Host` header.
    pub host: Option<&'a str>,
    /// Whether a proxy says that it passes the request on.
    pub is_forwarded: bool,
    /// The `Authorization` header.
    pub authorization: Option<&'a str>,
}

/// Paths that show numbers and states, but nothing that clients have written.
pub fn is_open(path: &str) -> bool {
    matches!(
        path,
        "/healthz"
            | "/readyz"
            | "/version"
            | "/metrics"
            | "/replication"
            | "/geo"
            | "/console.css"
            | "/console.js"
            | "/live.js"
    )
}

/// Whether a request may read what is not open.
pub fn may_read(origin: Origin<'_>, log_in: &LogIn) -> bool {
    if is_from_this_machine(origin) {
        return true;
    }
    credentials_of(origin).is_some_and(|by| log_in(&by.name, &by.password, &by.host))
}

/// Who a request says it is from; `None` when it does not say.
pub fn credentials_of(origin: Origin<'_>) -> Option<Credentials> {
    let (name, password) = origin.authorization.and_then(credentials)?;
    let host = origin.peer.map_or_else(String::new, account_host);
    Some(Credentials {
        name,
        password,
        host,
    })
}

/// Whether a request comes from the machine itself, and was meant for it.
pub fn is_from_this_machine(origin: Origin<'_>) -> bool {
    let is_loopback = origin
        .peer
        .is_some_and(|peer| peer.to_canonical().is_loopback());
    is_loopback && !origin.is_forwarded && origin.host.is_some_and(names_this_machine)
}

/// `localhost` or an address, with or without a port.
fn names_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(bracketed) => bracketed.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

/// Name and password of HTTP Basic; `None` when the header has none.
fn credentials(header: &str) -> Option<(String, Vec<u8>)> {
    let (scheme, encoded) = header.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("Basic") {
        return None;
    }
    let decoded = BASE64_STANDARD.decode(encoded.trim()).ok()?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    let name = String::from_utf8(decoded[..colon].to_vec()).ok()?;
    Some((name, decoded[colon + 1..].to_vec()))
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 1, 2, 3));

    fn basic(text: &[u8]) -> String {
        format!("Basic {}", BASE64_STANDARD.encode(text))
    }

    fn operator(name: &str, password: &[u8], host: &str) -> bool {
        (name, password, host) == ("ops", b"pa:ss", "10.1.2.3")
    }

    #[test]
    fn the_machine_itself_needs_no_login() {
        for peer in [
            IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(Ipv6Addr::LOCALHOST),
            IpAddr::V6(Ipv4Addr::LOCALHOST.to_ipv6_mapped()),
        ] {
            for host in [
                "localhost",
                "LocalHost:8088",
                "127.0.0.1:8088",
                "[::1]:8088",
            ] {
                let origin = Origin {
                    peer: Some(peer),
                    host: Some(host),
                    ..Origin::default()
                };
                assert!(may_read(origin, &|_, _, _| false), "{peer} {host}");
            }
        }
    }

    #[test]
    fn what_only_looks_like_the_machine_itself_needs_one() {
        let here = Origin {
            peer: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            host: Some("localhost:8088"),
            ..Origin::default()
        };
        for origin in [
            Origin {
                host: Some("attacker.example:8088"),
                ..here
            },
            Origin { host: None, ..here },
            Origin {
                host: Some("localhost.attacker.example"),
                ..here
            },
            Origin {
                is_forwarded: true,
                ..here
            },
            Origin { peer: None, ..here },
            Origin {
                peer: Some(ELSEWHERE),
                ..here
            },
        ] {
            assert!(!may_read(origin, &operator), "{origin:?}");
        }
    }

    #[test]
    fn an_account_with_the_privilege_reads_from_elsewhere() {
        let right = basic(b"ops:pa:ss");
        let from = |authorization| Origin {
            peer: Some(ELSEWHERE),
            authorization,
            ..Origin::default()
        };
        assert!(may_read(from(Some(&right)), &operator));
        let lower = right.replace("Basic", "basic");
        assert!(may_read(from(Some(&lower)), &operator));
        let bearer = right.replace("Basic", "Bearer");
        for wrong in [
            None,
            Some(basic(b"ops:pass").as_str()),
            Some(basic(b"ops").as_str()),
            Some(basic(b"\xff:pa:ss").as_str()),
            Some("Basic"),
            Some("Basic ????"),
            Some(&bearer),
        ] {
            assert!(!may_read(from(wrong), &operator), "{wrong:?}");
        }
    }
}
