//! Connections without a thread are killed, drained and dropped as those with one.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::panic)]

#[path = "it/support/mod.rs"]
mod support;

use std::time::Duration;

use manxdb_gateway::mysql::MysqlOptions;
use support::{Packet, TestServer};

fn server() -> TestServer {
    TestServer::with(MysqlOptions {
        idle_after: Duration::from_millis(1),
        ..MysqlOptions::default()
    })
}

/// Threads of this process with this name.
fn threads_named(name: &str) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    tasks
        .filter(|task| {
            let path = task.as_ref().unwrap().path().join("comm");
            std::fs::read_to_string(path).is_ok_and(|comm| comm.trim() == name)
        })
        .count()
}

#[test]
fn a_transaction_outlives_its_thread() {
    let server = server();
    let mut client = server.connect();
    let id = client.query("SELECT CONNECTION_ID()").unwrap()[0][0]
        .clone()
        .unwrap();
    client.query("CREATE DATABASE d").unwrap();
    client
        .query("CREATE TABLE d.t (a INT PRIMARY KEY)")
        .unwrap();
    client.query("BEGIN").unwrap();
    client.query("INSERT INTO d.t VALUES (1)").unwrap();
    client.query("SET @x = 'kept'").unwrap();
    while threads_named(&format!("mysql-{id}")) > 0 {
        std::thread::yield_now();
    }
    let kept = client.query("SELECT @x, COUNT(*) FROM d.t").unwrap();
    assert_eq!(kept, [[Some("kept".to_string()), Some("1".into())]]);
    client.query("COMMIT").unwrap();
    let mut other = server.connect();
    let rows = other.query("SELECT a FROM d.t").unwrap();
    assert_eq!(rows, [[Some("1".to_string())]]);
}

#[test]
fn a_kill_reaches_a_connection_without_a_thread() {
    let server = server();
    let (mut victim, mut killer) = (server.connect(), server.connect());
    let id = victim.query("SELECT CONNECTION_ID()").unwrap()[0][0]
        .clone()
        .unwrap();
    while threads_named(&format!("mysql-{id}")) > 0 {
        std::thread::yield_now();
    }
    killer.query(&format!("KILL {id}")).unwrap();
    assert!(victim.is_closed());
    drop(killer);
    assert!(server.host.wait_until_empty(Duration::from_secs(60)));
}

#[test]
fn a_client_that_goes_leaves_nothing_behind() {
    let server = server();
    let client = server.connect();
    drop(client);
    assert!(server.host.wait_until_empty(Duration::from_secs(60)));
}

#[test]
fn the_time_of_an_idle_client_ends_all_the_same() {
    let server = server();
    let mut client = server.connect();
    client.query("SET wait_timeout = 1").unwrap();
    assert_eq!(client.packet().code(), 4031);
    assert!(client.is_closed());
}

#[test]
fn a_server_that_ends_lets_idle_connections_go() {
    let mut server = server();
    let mut idle = server.connect();
    assert_eq!(idle.ping(), Packet::Ok);
    let ended_alone = server
        .server
        .take()
        .unwrap()
        .shutdown(Duration::from_secs(60));
    assert!(ended_alone);
    assert!(idle.is_closed());
}
