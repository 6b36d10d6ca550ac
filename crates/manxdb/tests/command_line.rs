//! `config`, `sql` and `--help`.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::panic)]

mod support;

use std::io::Write as _;
use std::process::Stdio;

use support::{PASSWORD, Server, manxdb, output};

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
fn a_server_that_is_not_there_is_one_line() {
    let (code, _, error) = output(manxdb().args(["sql", "--port", "1", "-e", "SELECT 1"]));
    assert_eq!(code, Some(1));
    assert_eq!(error.lines().count(), 1, "{error}");
}
