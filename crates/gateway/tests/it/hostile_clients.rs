//! What one client does wrong never disturbs another.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::panic)]

use std::io::Write;
use std::net::Shutdown;
use std::sync::Arc;
use std::time::Duration;

use crate::support::{Greeting, Login, Packet, TestServer, response};
use manxdb_gateway::mysql::MysqlOptions;
use manxdb_gateway::tls;
use mysql_common::constants::CapabilityFlags as Capability;

#[test]
fn malformed_first_packets_end_only_their_own_connection() {
    let server = TestServer::start();
    let mut good = server.connect();
    let valid = response(&Login::default(), [7; 20]);
    let corpus: Vec<Vec<u8>> = vec![
        vec![],
        vec![0],
        vec![0xFF; 3],
        vec![0xFF; 300],
        valid[..10].to_vec(),
        valid[..32].to_vec(),
        valid[..40].to_vec(),
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
    ];
    for payload in corpus {
        let mut bad = server.dial();
        Greeting::read(&mut bad);
        bad.send(&payload).unwrap();
        assert_eq!(bad.packet().code(), 1043, "{payload:?}");
        assert!(bad.is_closed());
        assert_eq!(good.ping(), Packet::Ok);
    }
}

#[test]
fn broken_frames_end_only_their_own_connection() {
    let server = TestServer::start();
    let mut good = server.connect();
    // A wrong sequence number.
    let mut bad = server.connect();
    bad.sequence = 9;
    bad.send(&[14]).unwrap();
    assert_eq!(bad.packet().code(), 1156);
    assert!(bad.is_closed());
    // A promise of 16 MiB, then silence and a close.
    let mut bad = server.connect();
    bad.stream
        .write_all(&[0xFF, 0xFF, 0xFF, 0, 3, b'S'])
        .unwrap();
    bad.stream.shutdown(Shutdown::Write).unwrap();
    assert!(bad.is_closed());
    // A command without its code.
    let mut bad = server.connect();
    bad.sequence = 0;
    bad.send(&[]).unwrap();
    assert_eq!(bad.packet().code(), 1835);
    assert!(bad.is_closed());
    assert_eq!(good.ping(), Packet::Ok);
}

#[test]
fn malformed_commands_are_answered_and_the_connection_goes_on() {
    let server = TestServer::start();
    let mut client = server.connect();
    let corpus: [(u8, &[u8], u16); 8] = [
        (250, b"", 1047),
        (0, b"", 1047),
        (23, b"\x01", 1835),
        (23, b"\x63\0\0\0\0\x01\0\0\0", 1243),
        (26, b"\x63\0\0\0", 1243),
        (28, b"\x63\0\0\0\x01\0\0\0", 1243),
        (28, b"\x63", 1835),
        (27, b"\x09\0", 1047),
    ];
    for (code, body, expected) in corpus {
        client.command(code, body).unwrap();
        assert_eq!(client.packet().code(), expected, "{code} {body:?}");
        assert_eq!(client.ping(), Packet::Ok);
    }
}

#[test]
fn a_packet_longer_than_allowed_is_refused_and_the_connection_goes_on() {
    let server = TestServer::start();
    let mut before = server.connect();
    before
        .query("SET GLOBAL max_allowed_packet = 1048576")
        .unwrap();
    let mut client = server.connect();
    client.command(3, &vec![b' '; 20 << 20]).unwrap();
    assert_eq!(client.packet().code(), 1153);
    assert_eq!(client.ping(), Packet::Ok);
}

#[test]
fn one_connection_too_many_is_told_so_in_the_first_packet() {
    let server = TestServer::start();
    let mut one = server.connect();
    one.query("SET GLOBAL max_connections = 2").unwrap();
    let _two = server.connect();
    let mut third = server.dial();
    assert_eq!(
        third.packet(),
        Packet::Error(1040, "Too many connections".into())
    );
    assert!(third.is_closed());
}

/// A server that waits `seconds` for logins.
fn impatient(seconds: u32) -> TestServer {
    let server = TestServer::with(MysqlOptions {
        tls: Some(certificate()),
        ..MysqlOptions::default()
    });
    server
        .connect()
        .query(&format!("SET GLOBAL connect_timeout = {seconds}"))
        .unwrap();
    server
}

fn certificate() -> Arc<rustls::ServerConfig> {
    let directory = tempfile::tempdir().unwrap();
    tls::self_signed(directory.path(), &["localhost".into()]).unwrap()
}

#[test]
fn a_client_that_never_logs_in_is_dropped() {
    let server = impatient(2);
    let mut silent = server.dial();
    Greeting::read(&mut silent);
    let mut trickling = server.dial();
    Greeting::read(&mut trickling);
    assert!(silent.is_closed());
    // Every byte is in time by itself; together they are not.
    while trickling.stream.write_all(&[0]).is_ok() {}
}

#[test]
fn a_tls_handshake_byte_by_byte_meets_the_same_deadline() {
    let server = impatient(2);
    let mut client = server.dial();
    let greeting = Greeting::read(&mut client);
    let mut login = Login::default();
    login.capabilities |= Capability::CLIENT_SSL;
    client.send(&response(&login, greeting.salt)[..32]).unwrap();
    // A record of 16 KiB that does not end: TLS goes on reading within one call.
    client.stream.write_all(&[22, 3, 1, 0x40, 0]).unwrap();
    let pause = Duration::from_millis(20);
    client.stream.set_read_timeout(Some(pause)).unwrap();
    for _ in 0..1_000 {
        if client.stream.write_all(&[1]).is_err() || client.is_closed() {
            return;
        }
    }
    panic!("it was listened to for ten times the deadline");
}

#[test]
fn a_command_that_stops_halfway_is_not_waited_for_as_long_as_the_next_one() {
    let server = TestServer::start();
    let mut client = server.connect();
    client.query("SET net_read_timeout = 1").unwrap();
    client.stream.write_all(&[9, 0, 0, 0, 3, b'S']).unwrap();
    assert_eq!(client.packet().code(), 1159);
    assert!(client.is_closed());
}

#[test]
fn a_client_that_never_reads_blocks_only_itself() {
    let server = TestServer::start();
    let mut good = server.connect();
    let mut deaf = server.connect();
    deaf.query("SET net_write_timeout = 1").unwrap();
    let one = "SELECT REPEAT('x', 4000000)";
    let text = vec![one; 20].join(" UNION ALL ");
    deaf.command(3, text.as_bytes()).unwrap();
    assert_eq!(good.ping(), Packet::Ok);
    assert_eq!(good.query("SELECT 1"), Ok(vec![vec![Some("1".into())]]));
    // Once the server gave up on it, its connection is closed under it.
    drop(good);
    let mut server = server;
    assert!(server.host.wait_until_empty(Duration::from_secs(30)));
    drop(deaf);
    assert!(server.server.take().unwrap().shutdown(Duration::ZERO));
}
