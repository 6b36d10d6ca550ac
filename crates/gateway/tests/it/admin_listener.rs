//! The admin listener over real HTTP.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::panic)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use manxdb_gateway::admin::{
    AdminServer, AdminSources, Credentials, Gauge, HealthReport, Owners, OwnersRefusal,
};
use manxdb_gateway::tls;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, StreamOwned};
use serde_json::{Value, json};

/// One person, whom one account may see.
struct People;

impl People {
    fn check(by: &Credentials) -> Result<(), OwnersRefusal> {
        match (by.name.as_str(), by.password.as_slice()) {
            ("dpo", b"secret") => Ok(()),
            ("ops", b"secret") => Err(OwnersRefusal::Denied("it lacks GDPR".to_owned())),
            _ => Err(OwnersRefusal::NotLoggedIn),
        }
    }
}

impl Owners for People {
    fn overview(&self) -> Value {
        json!({ "tables": [{ "name": "d.users", "kind": "data subject" }] })
    }

    fn kinds(&self, by: &Credentials) -> Result<Vec<String>, OwnersRefusal> {
        Self::check(by)?;
        Ok(vec!["d.users".to_owned()])
    }

    fn person(&self, by: &Credentials, kind: &str, id: &str) -> Result<Value, OwnersRefusal> {
        Self::check(by)?;
        if (kind, id) == ("d.users", "7 é") {
            return Ok(json!({ "kind": kind, "person": { "key": "id = 7 é" } }));
        }
        let why = format!("nobody is {kind} {id}");
        Err(OwnersRefusal::NotFound(why))
    }

    fn certificates(&self, by: &Credentials) -> Result<Value, OwnersRefusal> {
        Self::check(by)?;
        Ok(json!({ "certificates": [{ "request": 19, "problems": [] }] }))
    }

    fn certificate(&self, by: &Credentials, request: u64) -> Result<String, OwnersRefusal> {
        Self::check(by)?;
        if request == 19 {
            return Ok("{\n  \"request\": 19\n}".to_owned());
        }
        Err(OwnersRefusal::NotFound("no such request".to_owned()))
    }
}

fn start(health: HealthReport) -> (AdminServer, SocketAddr) {
    start_with(None, health)
}

fn start_with(tls: Option<Arc<ServerConfig>>, health: HealthReport) -> (AdminServer, SocketAddr) {
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
        ownership: Some(Box::new(People)),
        views: Some(Box::new(
            || json!({ "views": [{ "name": "d.by_user", "state": "usable", "hits": 7 }] }),
        )),
        compaction: Some(Box::new(
            || json!({ "control": ["a:1"], "own": "00aa", "silent": "refused" }),
        )),
        replication: Some(Box::new(
            || json!({ "nodes": [{ "number": 1, "role": "server", "state": "master" }] }),
        )),
        geo: None,
        backup: Box::new(|directory, label| Ok(json!({ "directory": directory, "label": label }))),
        token: "secret".into(),
        version: json!({ "version": "1.2.3" }),
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = AdminServer::start(listener, tls, sources).unwrap();
    let address = server.address();
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
    assert!(get(address, "/").contains("<a href=\"/compaction\">Compaction pool</a>"));
    assert!(get(address, "/compaction").contains("No control plane answers: refused."));
    assert!(get(address, "/").contains("<a href=\"/replication\">Replication</a>"));
    let replication = get(address, "/replication");
    assert!(
        replication.contains("<span class=\"state serving\">master</span>"),
        "{replication}"
    );
    assert!(get(address, "/nothing").starts_with("HTTP/1.1 404"));
}

/// Asks for a page about people as an account, from the machine itself.
fn of_people(address: SocketAddr, line: &str, account: &str, body: &str) -> String {
    use base64::Engine as _;
    let authorization = if account.is_empty() {
        String::new()
    } else {
        let encoded = base64::prelude::BASE64_STANDARD.encode(account);
        format!("Authorization: Basic {encoded}\r\n")
    };
    let length = body.len();
    ask(
        address,
        &format!(
            "{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{authorization}Content-Length: {length}\r\n\r\n{body}"
        ),
    )
}

#[test]
fn people_are_shown_to_accounts_that_may_see_them_alone_also_on_the_machine_itself() {
    let (_server, address) = start(HealthReport::ok());
    for line in [
        "GET /ownership/person",
        "POST /ownership/person",
        "GET /ownership/certificates",
        "GET /ownership/certificate?request=19",
    ] {
        let asked = |account: &str| of_people(address, line, account, "kind=d.users&id=7+%C3%A9");
        for account in ["", "dpo:wrong", "eve:secret"] {
            let answer = asked(account);
            assert!(
                answer.starts_with("HTTP/1.1 401"),
                "{line} {account}: {answer}"
            );
            assert!(answer.contains("WWW-Authenticate: Basic"), "{answer}");
            assert!(!answer.contains("d.users"), "{answer}");
        }
        let answer = asked("ops:secret");
        assert!(answer.starts_with("HTTP/1.1 403"), "{line}: {answer}");
        assert!(answer.ends_with("it lacks GDPR\n"), "{answer}");
        let answer = asked("dpo:secret");
        assert!(answer.starts_with("HTTP/1.1 200"), "{line}: {answer}");
        assert!(answer.contains("Cache-Control: no-store\r\n"), "{answer}");
    }
    let person = |body: &str| of_people(address, "POST /ownership/person", "dpo:secret", body);
    assert!(person("kind=d.users&id=7+%C3%A9").contains("<code>id = 7 é</code>"));
    let unknown = person("kind=d.users&id=%3Cb%3E");
    assert!(unknown.starts_with("HTTP/1.1 404"), "{unknown}");
    assert!(unknown.contains("nobody is d.users &lt;b&gt;"), "{unknown}");
    for empty in ["", "kind=&id=7", "id", "%&&==", "kind=d.users"] {
        let answer = person(empty);
        assert!(answer.starts_with("HTTP/1.1 404"), "{empty}: {answer}");
        assert!(
            answer.contains("enter the primary key"),
            "{empty}: {answer}"
        );
    }
    let line = "GET /ownership/certificate?request=19";
    let certificate = of_people(address, line, "dpo:secret", "");
    assert!(
        certificate.ends_with("\r\n\r\n{\n  \"request\": 19\n}\n"),
        "{certificate}"
    );
    assert!(certificate.contains("attachment; filename=\"certificate-19.json\""));
    for (line, status) in [
        ("GET /ownership/certificate", 400),
        ("GET /ownership/certificate?request=x", 400),
        ("GET /ownership/certificate?request=20", 404),
        ("POST /ownership/certificates", 405),
        ("DELETE /ownership/person", 405),
    ] {
        let answer = of_people(address, line, "dpo:secret", "");
        let expected = format!("HTTP/1.1 {status}");
        assert!(answer.starts_with(&expected), "{line}: {answer}");
    }
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
    for path in ["/", "/slow", "/redis", "/views", "/compaction", "/nothing"] {
        for headers in [rebound, forwarded] {
            let answer = ask_as(path, headers);
            assert!(answer.starts_with("HTTP/1.1 401"), "{path}: {answer}");
            assert!(answer.contains("WWW-Authenticate: Basic"), "{answer}");
            assert!(!answer.contains("SLEEP"), "{answer}");
        }
    }
    for path in [
        "/healthz",
        "/readyz",
        "/version",
        "/metrics",
        "/replication",
        "/console.js",
    ] {
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

#[test]
fn over_tls_all_is_as_before_and_a_plain_request_is_told_where_to_go() {
    let directory = tempfile::tempdir().unwrap();
    let config = tls::self_signed(directory.path(), &["localhost".into()]).unwrap();
    let (_server, address) = start_with(Some(config), HealthReport::ok());
    let certificate = directory.path().join(tls::CERTIFICATE_FILE);
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(certificate).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let config = Arc::new(config);
    let ask_tls = |headers: &str| {
        let name = ServerName::try_from("localhost").unwrap();
        let connection = ClientConnection::new(Arc::clone(&config), name).unwrap();
        let mut stream = StreamOwned::new(connection, TcpStream::connect(address).unwrap());
        // Two requests of one connection.
        write!(stream, "HEAD /slow HTTP/1.1\r\n{headers}\r\n").unwrap();
        write!(
            stream,
            "GET /slow HTTP/1.1\r\nConnection: close\r\n{headers}\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let own = ask_tls("Host: localhost\r\n");
    assert_eq!(own.matches("HTTP/1.1 200 OK").count(), 2, "{own}");
    assert_eq!(own.matches("SELECT SLEEP(3)").count(), 1, "{own}");
    let rebound = "Host: attacker.example\r\n";
    let refused = ask_tls(rebound);
    assert_eq!(refused.matches("HTTP/1.1 401").count(), 2, "{refused}");
    let right = ask_tls(&format!(
        "{rebound}Authorization: Basic b3BzOnNlY3JldA==\r\n"
    ));
    assert!(right.contains("SELECT SLEEP(3)"), "{right}");
    let plain = "POST /slow?x HTTP/1.1\r\nHost: db.example:8088\r\nContent-Length: 3\r\n\r\nabc";
    let plain = ask(address, plain);
    assert!(plain.starts_with("HTTP/1.1 400"), "{plain}");
    assert!(
        plain.ends_with("ask for https://db.example:8088/slow\n"),
        "{plain}"
    );
    assert!(!plain.contains("SLEEP"), "{plain}");
}

#[test]
fn what_is_refused_is_told_and_ends_the_connection() {
    let (_server, address) = start(HealthReport::ok());
    let answer = ask(address, "\u{16}\u{3}\u{1}\u{2} what is this\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    // More than the server reads before it answers.
    let body = "x".repeat(100_000);
    let large = backup(address, "Authorization: Bearer secret\r\n", &body);
    assert!(large.starts_with("HTTP/1.1 413"), "{large}");
    let put = "PUT / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    assert!(ask(address, put).starts_with("HTTP/1.1 405"));
}

#[test]
fn a_listener_that_ends_does_not_wait_for_silent_clients() {
    let (server, address) = start(HealthReport::ok());
    let mut silent = TcpStream::connect(address).unwrap();
    silent.write_all(b"GET /healthz HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = [0; 12];
    silent.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    drop(server);
    let mut rest = String::new();
    silent.read_to_string(&mut rest).unwrap();
    assert!(rest.ends_with("ok\n"), "{rest}");
}
