//! What is typed: `manxdb lab …` is this program's, and a reader may go away.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{laboratory, output};

/// The server's program: cargo builds it for the tests of its own crate (`cargo test --workspace`).
fn server() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_manxdb-lab")).with_file_name("manxdb");
    assert!(program.exists(), "cargo build -p manxdb comes first");
    program
}

#[test]
fn the_server_hands_on_what_is_the_laboratorys() {
    let (code, out, error) = output(Command::new(server()).args(["lab", "list"]));
    assert_eq!((code, &*error), (Some(0), ""));
    assert_eq!(out, output(laboratory().args(["lab", "list"])).1);
    // Exit codes come through, and usage is told as it was typed.
    let (code, _, error) = output(Command::new(server()).args(["bench", "nonsense"]));
    assert_eq!(code, Some(2));
    assert!(error.contains("Usage: manxdb bench"), "{error}");
}

#[test]
fn a_missing_laboratory_is_one_line_with_the_way_out() {
    let directory = tempfile::tempdir().unwrap();
    let alone = directory.path().join("manxdb");
    std::fs::hard_link(server(), &alone)
        .or_else(|_| std::fs::copy(server(), &alone).map(drop))
        .unwrap();
    let (code, out, error) = output(Command::new(&alone).args(["sim", "dast"]));
    assert_eq!((code, &*out), (Some(1), ""));
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(
        error.contains("cargo build --release --bin manxdb-lab"),
        "{error}"
    );
    let (code, out, _) = output(Command::new(&alone).arg("--help"));
    assert_eq!(code, Some(0));
    for command in ["bench", "lab", "sim", "cluster"] {
        assert!(out.contains(&format!("\n  {command} ")), "{out}");
    }
}

/// As in `manxdb lab list | head -1`.
#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = laboratory();
    command.args(["lab", "list"]).stdout(writer);
    let done = command.stderr(Stdio::piped()).output().unwrap();
    let error = String::from_utf8_lossy(&done.stderr);
    assert_eq!((done.status.code(), &*error), (Some(141), ""));
}
