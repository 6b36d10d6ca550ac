//! `config`, `sql` and `--help`.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::panic)]

use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::Stdio;

use crate::support::{PASSWORD, Server, manxdb, output};

#[test]
fn a_wrong_configuration_is_told_with_its_line() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("manxdb.toml");
    std::fs::write(&file, "log = \"info\"\nmax_conections = 5\n").unwrap();
    let (code, _, error) = output(manxdb().args(["config", "check"]).arg(&file));
    assert_eq!(code, Some(1));
    assert!(
        error.contains("line 2") && error.contains("max_conections"),
        "{error}"
    );
    std::fs::write(&file, "max_connections = 5\n").unwrap();
    let (code, out, _) = output(manxdb().args(["config", "check"]).arg(&file));
    assert_eq!(code, Some(0));
    assert!(out.ends_with("ok\n"), "{out}");
}

#[test]
fn settings_are_explained_by_their_origin() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("manxdb.toml");
    std::fs::write(&file, "# limits\nmax_connections = 5\nlog = \"warn\"\n").unwrap();
    let mut command = manxdb();
    command.args(["config", "explain", "--log", "debug", "--config"]);
    let (code, out, error) = output(command.arg(&file).env("MANXDB_DURABILITY", "async"));
    assert_eq!(code, Some(0), "{error}");
    let line = |key: &str| out.lines().find(|l| l.starts_with(key)).unwrap();
    assert!(
        line("max_connections").ends_with("manxdb.toml line 2"),
        "{out}"
    );
    assert!(line("log").contains("\"debug\"") && line("log").ends_with("flag --log"));
    assert!(line("durability").ends_with("environment MANXDB_DURABILITY"));
    assert!(line("mysql_listen").ends_with("default"));
}

#[test]
fn a_server_says_which_storage_it_can_share() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = manxdb();
    command.arg("serve").arg("--data").arg(directory.path());
    command.args(["--compaction", "remote", "--control", "localhost:1"]);
    let far = "far=ftp://host/prefix";
    let (code, _, error) = output(command.args(["--compaction-volume", far]));
    assert_eq!(code, Some(1));
    assert!(
        error.contains("'ftp://' is no storage that is known"),
        "{error}"
    );
}

/// As in `manxdb config explain | head -1`.
#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = manxdb();
    command.args(["config", "explain"]).stdout(writer);
    let done = command.stderr(Stdio::piped()).output().unwrap();
    let error = String::from_utf8_lossy(&done.stderr);
    assert_eq!((done.status.code(), &*error), (Some(141), ""));
}

#[test]
fn help_names_every_environment_variable() {
    let (code, out, _) = output(manxdb().args(["serve", "--help"]));
    assert_eq!(code, Some(0));
    for name in [
        "MANXDB_DATA",
        "MANXDB_MYSQL_LISTEN",
        "MANXDB_ROOT_PASSWORD",
        "MANXDB_LOG",
    ] {
        assert!(out.contains(name), "{name}");
    }
}

#[test]
fn statements_run_from_the_command_line_a_file_and_standard_input() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path());
    let sql = || {
        let mut command = manxdb();
        command.args([
            "sql",
            "--port",
            &server.mysql_port(),
            "--password",
            PASSWORD,
        ]);
        command
    };
    let (code, out, error) = output(sql().args(["-e", "SELECT 1 AS a, 'x\ty' AS b; SELECT 2\\G"]));
    assert_eq!(code, Some(0), "{error}");
    assert!(out.starts_with("a\tb\n1\tx\\ty\n"), "{out}");
    assert!(out.contains("1. row") && out.ends_with("2: 2\n"), "{out}");

    let file = directory.path().join("script.sql");
    std::fs::write(
        &file,
        "-- a script\nSELECT 3 AS c;\nSELECT nonsense;\nSELECT 4;\n",
    )
    .unwrap();
    let (code, out, error) = output(sql().arg("--file").arg(&file));
    assert_eq!((code, out.as_str()), (Some(1), "c\n3\n"));
    assert!(error.starts_with("ERROR 1054 (42S22)"), "{error}");

    let mut child = sql()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"SELECT 5 AS d").unwrap();
    drop(input);
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.stdout, b"d\n5\n");
}

#[test]
fn the_client_encrypts_as_it_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path());
    let elsewhere = tempfile::tempdir().unwrap();
    let another = Server::start(elsewhere.path());
    let sql = |flags: &[&str], authority: Option<PathBuf>| {
        let mut command = manxdb();
        command.args(["sql", "--port", &server.mysql_port(), "-p", PASSWORD]);
        command.args(["-e", "SHOW STATUS LIKE 'Ssl_version'"]);
        command.args(flags);
        if let Some(authority) = authority {
            command.arg("--tls-ca").arg(authority);
        }
        output(&mut command)
    };
    let certificate = |of: &Server| Some(of.data.join("server-cert.pem"));
    let plain = "Variable_name\tValue\nSsl_version\t\n";
    let encrypted = "Variable_name\tValue\nSsl_version\tTLSv1.3\n";
    for (flags, authority, expected) in [
        (&[][..], None, encrypted),
        (&["--tls", "disabled"], None, plain),
        (&["--tls", "required"], None, encrypted),
        (
            &["--ssl-mode", "verify-ca"],
            certificate(&server),
            encrypted,
        ),
        (
            &["--tls", "verify-identity"],
            certificate(&server),
            encrypted,
        ),
    ] {
        let (code, out, error) = sql(flags, authority);
        let answered = (code, out.as_str());
        assert_eq!(answered, (Some(0), expected), "{flags:?} {error}");
    }
    for (mode, authority) in [
        ("verify-ca", None),
        ("verify-ca", certificate(&another)),
        ("verify-identity", certificate(&another)),
        ("verify-identity", Some(another.data.clone())),
    ] {
        let (code, out, error) = sql(&["--tls", mode], authority);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{mode}");
        assert!(error.contains("ERROR 2026"), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn a_result_passes_through_the_client_without_being_kept() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path());
    let ten = ["SELECT 1 AS n"; 10].join(" UNION ALL ");
    let eight = ["SELECT 1 AS n"; 8].join(" UNION ALL ");
    let statement = format!("SELECT REPEAT('x', 1000000) AS x FROM ({ten}) AS a, ({eight}) AS b");
    let mut child = manxdb()
        .args(["sql", "--port", &server.mysql_port(), "-p", PASSWORD])
        .args(["-e", &statement])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut most = vec![0; 78_000_000];
    out.read_exact(&mut most).unwrap();
    // The last rows do not fit into the pipe: the client still runs.
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kilobytes: u64 = peak
        .and_then(|line| line.split_whitespace().nth(1))
        .unwrap()
        .parse()
        .unwrap();
    assert!(kilobytes < 65_000, "{kilobytes} kB for a result of 80 MB");
    let mut rest = Vec::new();
    out.read_to_end(&mut rest).unwrap();
    assert_eq!(most.len() + rest.len(), 2 + 80 * 1_000_001);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_refused_login_is_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path());
    for tls in ["disabled", "required"] {
        let mut command = manxdb();
        command.args(["sql", "--port", &server.mysql_port(), "-p", "not it"]);
        let (code, _, error) = output(command.args(["--tls", tls, "-e", "SELECT 1"]));
        assert_eq!(code, Some(1));
        assert!(
            error.contains("ERROR 1045 (28000): Access denied"),
            "{error}"
        );
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn a_server_that_is_not_there_is_one_line() {
    let (code, _, error) = output(manxdb().args(["sql", "--port", "1", "-e", "SELECT 1"]));
    assert_eq!(code, Some(1));
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(error.contains("ERROR 2003 (HY000)"), "{error}");
}

#[test]
fn a_schema_is_checked_without_a_server() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("schema.sql");
    let check = |schema: &str, flags: &[&str]| {
        std::fs::write(&file, schema).unwrap();
        output(
            manxdb()
                .args(["compliance", "check"])
                .arg(&file)
                .args(flags),
        )
    };
    let good = "-- a dump\n/*!40101 SET NAMES utf8mb4 */;\n\
        CREATE DATA_SUBJECT TABLE users (id INT PRIMARY KEY, email TEXT);\n\
        CREATE TABLE posts (id INT PRIMARY KEY, user_id INT OWNED_BY users (id));\n\
        INSERT INTO posts VALUES (1, 7);\nCREATE VIEW v AS SELECT nothing FROM nowhere;\n";
    let (code, out, error) = check(good, &[]);
    assert_eq!(code, Some(0), "{out}{error}");
    assert!(
        out.contains("posts: owned\n  posts.user_id -> users (explicit)\n"),
        "{out}"
    );
    assert!(out.ends_with("2 tables, 0 errors, 1 warnings\n"), "{out}");
    assert_eq!(check(good, &["--strict"]).0, Some(1));
    let bad = "CREATE DATA_SUBJECT TABLE users (id INT PRIMARY KEY);\n\
        CREATE TABLE a (id INT PRIMARY KEY, x INT, y INT,\n  FOREIGN KEY (x) REFERENCES users (id),\n\
        FOREIGN KEY (y) REFERENCES users (id));";
    let (code, out, _) = check(bad, &[]);
    assert_eq!(code, Some(1));
    assert!(
        out.contains("refused: CREATE TABLE a (") && out.contains("a.x or a.y"),
        "{out}"
    );
    let (code, _, error) = output(manxdb().args(["compliance", "check", "no.sql"]));
    assert_eq!(code, Some(1));
    assert!(error.contains("cannot read no.sql"), "{error}");
}
