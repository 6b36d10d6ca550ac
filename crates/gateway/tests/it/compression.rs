//! The compressed protocol against clients that do it wrong. Real clients that do it right are in
//! the suites of `tests/clients`.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::panic)]

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::support::{Greeting, Login, Packet, RawClient, TestServer, response};
use manxdb_gateway::mysql::compression::Algorithm;
use mysql_common::constants::CapabilityFlags as Capability;

const PING: &[u8] = b"\x01\0\0\0\x0E";

/// Logs in with `capability`, and `tail` behind the response.
fn log_in(
    server: &TestServer,
    capability: Capability,
    tail: &[u8],
) -> (RawClient<TcpStream>, Packet) {
    let mut client = server.dial();
    let greeting = Greeting::read(&mut client);
    let mut login = Login::default();
    login.capabilities |= capability;
    let mut payload = response(&login, greeting.salt);
    payload.extend_from_slice(tail);
    client.send(&payload).unwrap();
    let answer = client.login_answer();
    (client, answer)
}

fn compressed(server: &TestServer) -> TcpStream {
    let (client, answer) = log_in(server, Capability::CLIENT_COMPRESS, b"");
    assert_eq!(answer, Packet::Ok);
    client.stream
}

fn frame(sequence: u8, length: usize, body: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(body.len()).unwrap().to_le_bytes()[..3].to_vec();
    frame.push(sequence);
    frame.extend_from_slice(&u32::try_from(length).unwrap().to_le_bytes()[..3]);
    frame.extend_from_slice(body);
    frame
}

/// The one short packet of the next frame, which is plain.
fn answer(stream: &mut TcpStream) -> Packet {
    let mut header = [0; 7];
    stream.read_exact(&mut header).unwrap();
    let length = usize::from(header[0]) + 256 * usize::from(header[1]);
    let plain = usize::from(header[4]) + 256 * usize::from(header[5]);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    if plain > 0 {
        let packed = std::mem::take(&mut body);
        Algorithm::Zlib.unpack(&packed, plain, &mut body).unwrap();
    }
    Packet::of(&body[4..])
}

fn is_closed(stream: &mut TcpStream) -> bool {
    !matches!(stream.read(&mut [0]), Ok(1..))
}

#[test]
fn a_server_offers_what_its_variable_says() {
    let server = TestServer::start();
    let zlib = Capability::CLIENT_COMPRESS;
    let zstd = Capability::CLIENT_ZSTD_COMPRESSION_ALGORITHM;
    let offered = |server: &TestServer| Greeting::read(&mut server.dial()).capabilities;
    assert!(offered(&server).contains(zlib | zstd));
    let mut root = server.connect();
    root.query("SET GLOBAL protocol_compression_algorithms = 'uncompressed'")
        .unwrap();
    assert!(!offered(&server).intersects(zlib | zstd));
    // A client that asks all the same goes on without.
    let (mut client, answer) = log_in(&server, zlib, b"");
    assert_eq!(answer, Packet::Ok);
    assert_eq!(client.ping(), Packet::Ok);
    root.query("SET GLOBAL protocol_compression_algorithms = 'zstd'")
        .unwrap();
    let (_, answer) = log_in(&server, Capability::empty(), b"");
    assert_eq!(answer.code(), 3922);
    let wrong = root.query("SET GLOBAL protocol_compression_algorithms = 'lz4'");
    assert_eq!(wrong.unwrap_err().code(), 1231);
    let (_, answer) = log_in(&server, zstd, b"\x17");
    assert_eq!(answer.code(), 3923);
    let (_, answer) = log_in(&server, zstd, b"\x16");
    assert_eq!(answer, Packet::Ok);
}

#[test]
fn frames_are_answered_with_frames() {
    let server = TestServer::start();
    let mut stream = compressed(&server);
    stream.write_all(&frame(0, 0, PING)).unwrap();
    assert_eq!(answer(&mut stream), Packet::Ok);
    // A packet over two frames, one of them packed.
    let text = format!("SELECT '{}'", "x".repeat(1000));
    let mut packet = u32::try_from(text.len() + 1)
        .unwrap()
        .to_le_bytes()
        .to_vec();
    packet.push(3);
    packet.extend_from_slice(text.as_bytes());
    let (first, second) = packet.split_at(500);
    let mut packed = Vec::new();
    Algorithm::Zlib.pack(second, &mut packed).unwrap();
    stream.write_all(&frame(0, 0, first)).unwrap();
    stream.write_all(&frame(1, second.len(), &packed)).unwrap();
    // The frame holds the whole result, which begins with its one column.
    assert!(matches!(answer(&mut stream), Packet::Other(result) if result[0] == 1));
}

#[test]
fn frames_that_lie_end_their_connection_and_no_other() {
    let server = TestServer::start();
    let mut other = server.connect();
    let zeros = vec![0; 1 << 20];
    let mut bomb = Vec::new();
    Algorithm::Zlib.pack(&zeros, &mut bomb).unwrap();
    let wrong = [
        (frame(0, 60, b"no zlib at all"), 1157),
        (frame(0, 60, &bomb), 1157),
        (frame(0, 0xFF_FFFF, &bomb), 1157),
        (frame(7, 0, PING), 1156),
    ];
    for (bytes, code) in wrong {
        let mut stream = compressed(&server);
        stream.write_all(&bytes).unwrap();
        assert_eq!(answer(&mut stream).code(), code);
        assert!(is_closed(&mut stream));
        assert_eq!(other.ping(), Packet::Ok);
    }
}

#[test]
fn a_frame_that_ends_early_ends_the_connection() {
    let server = TestServer::start();
    let whole = frame(0, 0, PING);
    for cut in 1..whole.len() {
        let mut stream = compressed(&server);
        stream.write_all(&whole[..cut]).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert!(is_closed(&mut stream));
    }
}
