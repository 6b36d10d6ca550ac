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
        log_in: Some(Box::new(|name, password, _| {
            (name, password) == ("ops", b"secret")
        })),
        ownership: Some(Box::new(
            || json!({ "tables": [{ "name": "d.users", "kind": "data subject" }] }),
        )),
        views: Some(Box::new(
            || json!({ "views": [{ "name": "d.by_user", "state": "usable", "hits": 7 }] }),
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
        &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
    )
}

fn backup(address: SocketAddr, headers: &str, body: &str) -> String {
    let length = body.len();
    ask(
        address,
        &format!(
            "POST /backup HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
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
    let views = get(address, "/views");
    assert!(views.contains("<td>d.by_user</td>"), "{views}");
    assert!(get(address, "/").contains("<a href=\"/views\">Views</a>"));
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
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\nConnection: close\r\n\r\n",
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
    let forwarded = format!("{token}X-Forwarded-For: 127.0.0.1\r\n");
    assert!(backup(address, &forwarded, body).starts_with("HTTP/1.1 403"));
    let relative = r#"{ "directory": "backup", "label": "one" }"#;
    assert!(backup(address, token, relative).starts_with("HTTP/1.1 400"));
}

#[test]
fn statements_are_read_by_the_machine_itself_or_with_a_login() {
    let (_server, address) = start(HealthReport::ok());
    let ask_as = |path: &str, headers: &str| {
        let words = format!("GET {path} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n");
        ask(address, &words)
    };
    let rebound = "Host: attacker.example\r\n";
    let forwarded = "Host: localhost\r\nX-Forwarded-For: 10.1.2.3\r\n";
    for path in ["/", "/slow", "/redis", "/views", "/nothing"] {
        for headers in [rebound, forwarded] {
            let answer = ask_as(path, headers);
            assert!(answer.starts_with("HTTP/1.1 401"), "{path}: {answer}");
            assert!(answer.contains("WWW-Authenticate: Basic"), "{answer}");
            assert!(!answer.contains("SLEEP"), "{answer}");
        }
    }
    for path in ["/healthz", "/readyz", "/version", "/metrics", "/console.js"] {
        let answer = ask_as(path, rebound);
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
    }
    // ops:secret, ops:wrong
    let right = format!("{rebound}Authorization: Basic b3BzOnNlY3JldA==\r\n");
    assert!(ask_as("/slow", &right).contains("SELECT SLEEP(3)"));
    let wrong = format!("{rebound}Authorization: Basic b3BzOndyb25n\r\n");
    assert!(ask_as("/slow", &wrong).starts_with("HTTP/1.1 401"));
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
    let request = "GET /redis HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\nConnection: close\r\n\r\n";
    let json = ask(address, request);
    assert!(json.contains("\"keys_hash\": 5"), "{json}");
}
