//! What a connection costs while its client says nothing. One test binary: it counts the whole
//! process.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::panic)]

#[path = "it/support/mod.rs"]
mod support;

use std::net::TcpStream;
use std::time::Duration;

use manxdb_gateway::mysql::MysqlOptions;
use support::{Packet, RawClient, TestServer};

const CONNECTIONS: usize = 150;
/// Memory an idle connection may hold, both of its ends and the session, bytes.
const BYTES_MAX: usize = 100 * 1024;

/// A line of `/proc/self/status` that is a number.
fn status(field: &str) -> usize {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with(field)).unwrap();
    let number = line.split_whitespace().nth(1).unwrap();
    number.parse().unwrap()
}

fn server() -> TestServer {
    TestServer::with(MysqlOptions {
        idle_after: Duration::from_millis(1),
        ..MysqlOptions::default()
    })
}

/// Whether a thread serves a connection: those are called `mysql-` and a number.
fn serves_a_connection(task: &std::fs::DirEntry) -> bool {
    let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
    let number = name.trim().strip_prefix("mysql-");
    number.is_some_and(|number| number.parse::<u64>().is_ok())
}

/// Returns when no connection has a thread. A test that waits for ever is a failed one.
fn wait_until_idle() {
    let busy = || {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        tasks.flatten().any(|task| serves_a_connection(&task))
    };
    while busy() {
        std::thread::yield_now();
    }
}

fn work(client: &mut RawClient<TcpStream>, number: usize) {
    client
        .query(&format!("SELECT b FROM shop.item WHERE a = {number}"))
        .unwrap();
    client
        .query(&format!("UPDATE shop.item SET b = 'x' WHERE a = {number}"))
        .unwrap();
    let rows = client.query("SELECT a, b FROM shop.item WHERE a < 40 ORDER BY b");
    assert_eq!(rows.unwrap().len(), 40);
}

#[test]
fn an_idle_connection_has_no_thread_and_little_memory() {
    let server = server();
    let mut first = server.connect();
    first.query("CREATE DATABASE shop").unwrap();
    first
        .query("CREATE TABLE shop.item (a INT PRIMARY KEY, b VARCHAR(200))")
        .unwrap();
    let rows: Vec<String> = (0..CONNECTIONS)
        .map(|number| format!("({number}, REPEAT('y', 100))"))
        .collect();
    first
        .query(&format!("INSERT INTO shop.item VALUES {}", rows.join(",")))
        .unwrap();
    work(&mut first, 0);
    wait_until_idle();
    let before = status("VmRSS:");

    let mut clients: Vec<_> = (0..CONNECTIONS).map(|_| server.connect()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        work(client, number);
    }
    wait_until_idle();
    let kilobytes = status("VmRSS:").saturating_sub(before);
    let each = kilobytes * 1024 / CONNECTIONS;
    eprintln!("an idle connection holds {each} bytes");
    assert!(each <= BYTES_MAX, "an idle connection holds {each} bytes");

    // They all go on, and end.
    for client in &mut clients {
        assert_eq!(client.ping(), Packet::Ok);
    }
    drop(clients);
    drop(first);
    assert!(server.host.wait_until_empty(Duration::from_secs(60)));
}
