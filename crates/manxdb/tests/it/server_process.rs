//! The binary as its users meet it: real processes, signals, files.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::support::{Server, manxdb, output};
use mysql::prelude::Queryable as _;
use rustix::process::Signal;

#[test]
fn the_first_start_prints_a_password_once() {
    let directory = tempfile::tempdir().unwrap();
    let first = Server::start_with(directory.path(), &[], None);
    let password = first.printed_password().unwrap();
    assert_eq!(password.len(), 24);
    let mut client = first.connect(&password).unwrap();
    client.ping().unwrap();
    assert!(first.connect("wrong").is_err());
    assert_eq!(first.stop(Signal::TERM), Some(0));
    let second = Server::start_with(directory.path(), &[], None);
    assert_eq!(second.printed_password(), None);
    second.connect(&password).unwrap();
    assert_eq!(second.stop(Signal::INT), Some(0));
}

#[test]
fn keys_are_made_at_the_first_start_and_stay() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path());
    let read = |name: &str| std::fs::read(server.data.join(name)).unwrap();
    let names = [
        "private_key.pem",
        "public_key.pem",
        "server-key.pem",
        "server-cert.pem",
    ];
    let first = names.map(read);
    for (name, mode) in names.into_iter().zip([0o600, 0o644, 0o600, 0o644]) {
        let metadata = std::fs::metadata(server.data.join(name)).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, mode, "{name}");
    }
    assert_eq!(server.stop(Signal::TERM), Some(0));
    let server = Server::start(directory.path());
    let read = |name: &str| std::fs::read(server.data.join(name)).unwrap();
    assert!(names.map(read) == first, "the keys changed");
}

#[test]
fn a_given_password_is_used_and_not_printed() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path());
    assert!(!server.banner.contains(crate::support::PASSWORD));
    server.connect(crate::support::PASSWORD).unwrap();
}

#[test]
fn no_password_must_be_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start_with(directory.path(), &["--insecure"], None);
    assert!(server.banner.contains("NO password"), "{}", server.banner);
    server.connect("").unwrap();
}

#[test]
fn a_port_in_use_is_one_clear_line_and_touches_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut command = manxdb();
    command.args(["serve", "--mysql-listen", &address]);
    command.args(["--admin-listen", "127.0.0.1:0", "--data"]);
    let (code, _, error) = output(command.arg(&data));
    assert_eq!(code, Some(1));
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(error.contains(&address) && error.contains("--mysql-listen"));
    assert!(!data.exists());
}

#[test]
fn a_data_directory_in_use_is_one_clear_line() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path());
    let (code, _, error) = output(&mut serve(&server.data, &["--log", "error"]));
    assert_eq!(code, Some(1));
    assert!(error.contains("in use by another process"), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
}

#[test]
fn a_directory_of_another_format_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("FORMAT"), "something else\n").unwrap();
    let (code, _, error) = output(&mut serve(&data, &["--log", "error"]));
    assert_eq!(code, Some(1));
    assert!(error.contains("FORMAT"), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
}

fn serve(data: &std::path::Path, more: &[&str]) -> Command {
    let mut command = manxdb();
    command.args(["serve", "--mysql-listen", "127.0.0.1:0"]);
    command.args(["--admin-listen", "127.0.0.1:0", "--data"]);
    command.arg(data).args(more);
    command
}

#[test]
fn acknowledged_rows_survive_kill_9() {
    let directory = tempfile::tempdir().unwrap();
    let mut acknowledged = 0_u64;
    for cycle in 0..4 {
        let server = Server::start(directory.path());
        let mut client = server.connect(crate::support::PASSWORD).unwrap();
        if cycle == 0 {
            client.query_drop("CREATE DATABASE d").unwrap();
            client
                .query_drop("CREATE TABLE d.t (id BIGINT PRIMARY KEY)")
                .unwrap();
        }
        let kept: Option<u64> = client.query_first("SELECT COUNT(*) FROM d.t").unwrap();
        assert_eq!(kept, Some(acknowledged));
        for _ in 0..25 {
            client
                .query_drop(format!("INSERT INTO d.t VALUES ({acknowledged})"))
                .unwrap();
            acknowledged += 1;
        }
        server.stop(Signal::KILL);
    }
}

#[test]
fn a_backup_of_a_running_server_is_verified_and_restored() {
    let directory = tempfile::tempdir().unwrap();
    let backups = directory.path().join("backups");
    let server = Server::start(directory.path());
    let mut client = server.connect(crate::support::PASSWORD).unwrap();
    client.query_drop("CREATE DATABASE kept").unwrap();
    let (code, out, error) = output(
        manxdb()
            .args([
                "backup",
                "create",
                "--label",
                "one",
                "--admin",
                &server.admin,
            ])
            .arg("--data")
            .arg(&server.data)
            .arg(&backups),
    );
    assert_eq!(code, Some(0), "{out}{error}");
    client.query_drop("CREATE DATABASE later").unwrap();
    drop(client);
    server.stop(Signal::TERM);
    let (code, out, _) = output(manxdb().args(["backup", "verify"]).arg(&backups));
    assert_eq!(code, Some(0), "{out}");
    assert!(out.contains("all is well"), "{out}");
    let (_, out, _) = output(manxdb().args(["backup", "list"]).arg(&backups));
    assert!(out.starts_with("one  "), "{out}");

    let restored = tempfile::tempdir().unwrap();
    let data = restored.path().join("data");
    let (code, out, error) = output(
        manxdb()
            .args(["backup", "restore"])
            .arg(&backups)
            .arg("--data")
            .arg(&data),
    );
    assert_eq!(code, Some(0), "{out}{error}");
    let server = Server::start(restored.path());
    let mut client = server.connect(crate::support::PASSWORD).unwrap();
    let databases: Vec<String> = client.query("SHOW DATABASES").unwrap();
    assert!(databases.contains(&"kept".to_owned()), "{databases:?}");
    assert!(!databases.contains(&"later".to_owned()), "{databases:?}");
}

/// Every name of a metric in a text.
fn metrics_named_in(text: &str) -> BTreeSet<&str> {
    let is_part = |letter: char| letter.is_ascii_lowercase() || letter == '_';
    let words = text.split(|letter| !is_part(letter));
    words
        .filter(|word| word.starts_with("manxdb_"))
        .map(family)
        .collect()
}

/// The name that a sample of a histogram is listed under.
fn family(name: &str) -> &str {
    let ends = ["_bucket", "_sum", "_count"];
    let end = ends.iter().find_map(|end| name.strip_suffix(end));
    end.filter(|name| name.ends_with("_seconds"))
        .unwrap_or(name)
}

#[test]
fn every_metric_is_explained_and_every_explained_one_served() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path());
    let mut client = server.connect(crate::support::PASSWORD).unwrap();
    client.query_drop("SELECT 1").unwrap();
    let mut link = TcpStream::connect(&server.admin).unwrap();
    link.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    link.read_to_string(&mut answer).unwrap();
    let (_, page) = answer.split_once("\r\n\r\n").unwrap();
    let served: BTreeSet<&str> = page
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| family(line.split(['{', ' ']).next().unwrap_or_default()))
        .collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |file: &str| std::fs::read_to_string(root.join(file)).unwrap();
    let operations = read("docs/operations.md");
    let unexplained: Vec<_> = served
        .difference(&metrics_named_in(&operations))
        .copied()
        .collect();
    assert!(
        unexplained.is_empty(),
        "not in docs/operations.md: {unexplained:?}"
    );
    for file in ["docs/operations.md", "packaging/grafana.json"] {
        let text = read(file);
        let is_of_server = |name: &&&str| {
            let of_nodes = ["manxdb_dast_", "manxdb_net_"];
            !of_nodes.iter().any(|prefix| name.starts_with(prefix))
        };
        let named = metrics_named_in(&text);
        let unserved: Vec<_> = named.difference(&served).filter(is_of_server).collect();
        assert!(
            unserved.is_empty(),
            "{file} names what no server tells: {unserved:?}"
        );
    }
}
