//! The admin door over real HTTP.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::panic)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use manxdb_gateway::admin::{AdminServer, AdminSources, Gauge};
use serde_json::json;

fn start(ready: Result<(), String>) -> (AdminServer, SocketAddr) {
    let sources = AdminSources {
        ready: Box::new(move || ready.clone()),
        refusal: Box::new(|| None),
        gauges: Box::new(|| {
            vec![Gauge {
                name: "manxdb_storage_live_bytes".into(),
                value: 5.0,
            }]
        }),
        slow: Box::new(|| json!([{ "statement": "SELECT SLEEP(3)", "total_micros": 3_000_000 }])),
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
    let (_server, address) = start(Ok(()));
    assert!(get(address, "/healthz").starts_with("HTTP/1.1 200"));
    assert!(get(address, "/readyz").ends_with("ready\n"));
    assert!(get(address, "/version").contains("1.2.3"));
    assert!(get(address, "/metrics").contains("manxdb_storage_live_bytes 5"));
    assert!(get(address, "/slow").contains("SELECT SLEEP(3)"));
    assert!(get(address, "/").contains("<h1>ManxDB 1.2.3</h1>"));
    assert!(get(address, "/nothing").starts_with("HTTP/1.1 404"));
}

#[test]
fn a_node_that_is_not_ready_answers_503_and_why() {
    let (_server, address) = start(Err("shutting down".into()));
    let answer = get(address, "/readyz");
    assert!(answer.starts_with("HTTP/1.1 503") && answer.ends_with("shutting down\n"));
}

#[test]
fn a_backup_needs_the_token_and_an_absolute_directory() {
    let (_server, address) = start(Ok(()));
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
