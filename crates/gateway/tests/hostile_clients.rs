//! What one client does wrong never disturbs another.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::panic)]

mod support;

use std::io::Write;
use std::net::Shutdown;
use std::time::Duration;

use manxdb_gateway::mysql::MysqlOptions;
use support::{Greeting, Login, Packet, TestServer, response};

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

#[test]
fn a_client_that_never_logs_in_is_dropped() {
    let server = TestServer::with(MysqlOptions {
        connect_timeout: Duration::from_millis(50),
        ..MysqlOptions::default()
    });
    let mut silent = server.dial();
    Greeting::read(&mut silent);
    assert!(silent.is_closed());
    let mut trickling = server.dial();
    Greeting::read(&mut trickling);
    // Every byte is in time by itself; together they are not.
    while trickling.stream.write_all(&[0]).is_ok() {}
}

#[test]
fn a_client_that_never_reads_blocks_only_itself() {
    let server = TestServer::with(MysqlOptions {
        write_timeout: Duration::from_millis(300),
        ..MysqlOptions::default()
    });
    let mut good = server.connect();
    let mut deaf = server.connect();
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
