//! Many connections, killed ones, idle ones, and the end of a server.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::panic)]

#[path = "it/support/mod.rs"]
mod support;

use std::time::Duration;

use support::{Packet, TestServer};

/// Connections held open at a time.
const IDLE: usize = 5_000;

#[test]
fn five_thousand_idle_connections_leave_room_for_work() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    // Both ends of each connection live in this process.
    if limit.is_some_and(|limit| limit < 2 * IDLE as u64 + 500) {
        manxdb_test_harness::skip(&format!(
            "{limit:?} file descriptors are too few for {IDLE} connections"
        ));
        return;
    }
    let mut server = TestServer::start();
    let mut first = server.connect();
    first.query("SET GLOBAL connect_timeout = 60").unwrap();
    drop(first);
    assert!(server.host.wait_until_empty(Duration::from_secs(60)));
    let mut idle: Vec<_> = (0..IDLE).map(|_| server.connect()).collect();
    assert_eq!(server.host.connections(), IDLE);
    let mut working = server.connect();
    assert_eq!(working.query("SELECT 1"), Ok(vec![vec![Some("1".into())]]));
    assert_eq!(idle[IDLE / 2].ping(), Packet::Ok);
    assert!(
        server
            .server
            .take()
            .unwrap()
            .shutdown(Duration::from_secs(60))
    );
    assert!(idle[0].is_closed() && working.is_closed());
}

#[test]
fn a_killed_connection_is_closed_while_it_waits() {
    let server = TestServer::start();
    let (mut victim, mut killer) = (server.connect(), server.connect());
    let id = victim.query("SELECT CONNECTION_ID()").unwrap();
    let id = id[0][0].clone().unwrap();
    killer.query(&format!("KILL {id}")).unwrap();
    assert!(victim.is_closed());
    assert_eq!(killer.ping(), Packet::Ok);
    // The command of old clients does the same.
    let mut victim = server.connect();
    let id = victim.query("SELECT CONNECTION_ID()").unwrap();
    let id: u32 = id[0][0].clone().unwrap().parse().unwrap();
    killer.command(12, &id.to_le_bytes()).unwrap();
    assert_eq!(killer.packet(), Packet::Ok);
    assert!(victim.is_closed());
}

#[test]
fn a_killed_query_ends_and_its_connection_goes_on() {
    let server = TestServer::start();
    let (mut victim, mut killer) = (server.connect(), server.connect());
    let id = victim.query("SELECT CONNECTION_ID()").unwrap();
    let id = id[0][0].clone().unwrap();
    victim.command(3, b"SELECT SLEEP(600)").unwrap();
    let running = format!(
        "SELECT COUNT(*) FROM information_schema.processlist WHERE id = {id} AND command = 'Query'"
    );
    while killer.query(&running).unwrap()[0][0].as_deref() != Some("1") {}
    killer.query(&format!("KILL QUERY {id}")).unwrap();
    // SLEEP answers an interruption by 1, other statements by 1317.
    match victim.rows() {
        Ok(rows) => assert_eq!(rows, [[Some("1".to_string())]]),
        Err(error) => assert_eq!(error.code(), 1317),
    }
    assert_eq!(victim.ping(), Packet::Ok);
}

#[test]
fn an_idle_client_is_told_why_it_is_dropped() {
    let server = TestServer::start();
    let mut client = server.connect();
    client.query("SET wait_timeout = 1").unwrap();
    assert_eq!(client.packet().code(), 4031);
    assert!(client.is_closed());
}

#[test]
fn shutdown_lets_a_running_statement_answer() {
    let mut server = TestServer::start();
    let (mut busy, mut idle) = (server.connect(), server.connect());
    busy.command(3, b"SELECT SLEEP(0.5)").unwrap();
    // The process list shows it running before the server is told to stop.
    let running =
        "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP%'";
    while idle.query(running).unwrap()[0][0].as_deref() != Some("1") {}
    let ended_alone = server
        .server
        .take()
        .unwrap()
        .shutdown(Duration::from_secs(60));
    assert!(ended_alone);
    assert_eq!(busy.rows(), Ok(vec![vec![Some("0".into())]]));
    assert!(busy.is_closed() && idle.is_closed());
}

#[test]
fn shutdown_interrupts_what_does_not_end_in_time() {
    let mut server = TestServer::start();
    let (mut busy, mut watcher) = (server.connect(), server.connect());
    busy.command(3, b"SELECT SLEEP(600)").unwrap();
    let running =
        "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP%'";
    while watcher.query(running).unwrap()[0][0].as_deref() != Some("1") {}
    drop(watcher);
    let ended_alone = server.server.take().unwrap().shutdown(Duration::ZERO);
    assert!(!ended_alone);
    assert_eq!(server.host.connections(), 0);
    assert!(busy.is_closed());
}
