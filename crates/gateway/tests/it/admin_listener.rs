//! The admin listener over real HTTP.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::panic)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use manxdb_gateway::admin::{AdminServer, AdminSources, Gauge, HealthReport};
use serde_json::json;

fn start(health: HealthReport) -> (AdminServer, SocketAddr) {
    let sources = AdminSources {
        health: Box::new(move || health.clone()),
        gauges: Box::new(|| {
            vec![Gauge {
                name: "manxdb_storage_live_bytes".into(),
                value: 5.0,
            }]
        }),
        slow: Box::new(|| json!([{ "statement": "SELECT SLEEP(3)", "total_micros": 3_000_000 }])),
        redis: Some(Box::new(
            || json!({ "numbers": { "Types": { "keys_hash": 5 } } }),
        )),
        ownership: Some(Box::new(
            || json!({ "tables": [{ "name": "d.users", "kind": "data subject" }] }),
        )),
        backup: Box::new(|directory, label| Ok(json!({ "directory": directory, "label": label }))),
        token: "secret".into(),
        version: json!({ "version": "1.2.3" }),
    };
    let server = AdminServer::start(TcpListener::bind("127.0.0.1:0").unwrap(), sources).unwrap();
    let address = server.address().unwrap();
    (server, address)
}

fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn get(address: SocketAddr, path: &str) -> String {
    ask(
        address,
        &format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
    )
}

fn backup(address: SocketAddr, headers: &str, body: &str) -> String {
    let length = body.len();
    ask(
        address,
        &format!(
            "POST /backup HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        ),
    )
}

#[test]
fn health_version_metrics_and_slow_statements_are_answered() {
    let (_server, address) = start(HealthReport::ok());
    assert!(get(address, "/healthz").starts_with("HTTP/1.1 200"));
    assert!(get(address, "/readyz").ends_with("ready\n"));
    assert!(get(address, "/version").contains("1.2.3"));
    assert!(get(address, "/metrics").contains("manxdb_storage_live_bytes 5"));
    assert!(get(address, "/slow").contains("SELECT SLEEP(3)"));
    assert!(get(address, "/").contains("<h1>ManxDB 1.2.3</h1>"));
    let owners = get(address, "/ownership");
    assert!(owners.contains(">d.users</text>"), "{owners}");
    assert!(get(address, "/nothing").starts_with("HTTP/1.1 404"));
}

#[test]
fn a_node_that_cannot_serve_answers_503_what_is_lost_and_what_to_do() {
    let lost = HealthReport::unavailable("memory servers 0 and 1 are gone", "start all again");
    let (_server, address) = start(lost);
    let line = "unavailable: memory servers 0 and 1 are gone: start all again\n";
    let answer = get(address, "/readyz");
    assert!(
        answer.starts_with("HTTP/1.1 503") && answer.ends_with(line),
        "{answer}"
    );
    // The process lives: nothing is gained by starting it again.
    let answer = get(address, "/healthz");
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.ends_with(line),
        "{answer}"
    );
    let json = ask(
        address,
        "GET /healthz HTTP/1.1\r\nHost: x\r\nAccept: application/json\r\nConnection: close\r\n\r\n",
    );
    assert!(json.contains(r#""state": "unavailable""#), "{json}");
    assert!(json.contains(r#""remedy": "start all again""#), "{json}");
}

#[test]
fn a_node_that_lacks_something_is_ready_and_says_what() {
    let (_server, address) = start(HealthReport::degraded("a copy is lost", ""));
    let answer = get(address, "/readyz");
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.ends_with("ready, degraded: a copy is lost\n"),
        "{answer}"
    );
    assert!(get(address, "/healthz").ends_with("\ndegraded: a copy is lost\n"));
}

#[test]
fn a_backup_needs_the_token_and_an_absolute_directory() {
    let (_server, address) = start(HealthReport::ok());
    let body = r#"{ "directory": "/srv/backup", "label": "one" }"#;
    let token = "Authorization: Bearer secret\r\n";
    assert!(backup(address, token, body).contains("/srv/backup"));
    assert!(backup(address, "", body).starts_with("HTTP/1.1 403"));
    let wrong = "Authorization: Bearer secreT\r\n";
    assert!(backup(address, wrong, body).starts_with("HTTP/1.1 403"));
    let from_page = format!("{token}Origin: http://evil.example\r\n");
    assert!(backup(address, &from_page, body).starts_with("HTTP/1.1 403"));
    let relative = r#"{ "directory": "backup", "label": "one" }"#;
    assert!(backup(address, token, relative).starts_with("HTTP/1.1 400"));
}

#[test]
fn redis_has_a_page_and_json() {
    let (_server, address) = start(HealthReport::ok());
    assert!(get(address, "/").contains("href=\"/redis\""));
    let page = get(address, "/redis");
    assert!(
        page.contains("text/html") && page.contains("keys_hash"),
        "{page}"
    );
    let request =
        "GET /redis HTTP/1.1\r\nHost: x\r\nAccept: application/json\r\nConnection: close\r\n\r\n";
    let json = ask(address, request);
    assert!(json.contains("\"keys_hash\": 5"), "{json}");
}
