//! Good inputs to begin with, and inputs that once broke something.

use std::fs;
use std::path::Path;

use crate::sample_record;

/// Statements of every kind, one a line.
const STATEMENTS: &str = include_str!("../samples/statements.sql");
/// Those that the parser's own test has.
const ACCEPTED: &str = include_str!("../../crates/sql/src/parser/accepted.sql");

/// What `target` begins with; nothing for a name that is no target.
#[must_use]
pub fn samples(target: &str) -> Vec<Vec<u8>> {
    match target {
        "packets" => vec![login(), framed(&login()), execute()],
        "records" => vec![sample_record()],
        "sql_text" | "template" => statements().map(|text| text.as_bytes().to_vec()).collect(),
        "log" => vec![histories(), forgeries()],
        _ => Vec::new(),
    }
}

/// The lines of both that are no comments.
fn statements() -> impl Iterator<Item = &'static str> {
    let lines = STATEMENTS.lines().chain(ACCEPTED.lines());
    lines.filter(|line| !line.is_empty() && !line.starts_with("-- "))
}

/// Puts the samples of `target` where `cargo fuzz` looks for inputs.
///
/// # Panics
/// When they cannot be written.
pub fn write_samples(target: &str) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target);
    let write = || {
        fs::create_dir_all(&corpus)?;
        samples(target)
            .iter()
            .enumerate()
            .try_for_each(|(at, sample)| fs::write(corpus.join(format!("sample-{at}")), sample))
    };
    write().unwrap_or_else(|error: std::io::Error| panic!("{}: {error}", corpus.display()));
}

/// The first packet of a client, without its header.
fn login() -> Vec<u8> {
    let mut login = vec![0x8D, 0xA6, 0x0F, 0x00, 0, 0, 0, 1, 45];
    login.extend([0; 23]);
    login.extend(b"root\0\x14abcdefghijklmnopqrstdb\0caching_sha2_password\0\x07\x03key\x03val");
    login
}

fn framed(payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or(0).to_le_bytes();
    let mut framed = vec![length[0], length[1], length[2], 1];
    framed.extend_from_slice(payload);
    framed
}

/// Parameters of COM_STMT_EXECUTE: BIGINT, text and TIME.
fn execute() -> Vec<u8> {
    let mut bytes = vec![0b0000_0000, 1, 8, 0, 253, 0, 7, 0];
    bytes.extend([1, 2, 3, 4, 5, 6, 7, 8, 3, b'a', b'b', b'c', 4, 1, 2, 3, 4]);
    bytes
}

/// A log that is written, damaged and opened in turn; see `log.rs`.
fn histories() -> Vec<u8> {
    let write = b"\x00\x00\x00\x03\x00key\x01\x00\x05\x00value\x20\x00\x00";
    let mut script = vec![0];
    for round in 0..12 {
        script.extend(write);
        match round {
            4 => script.extend([5]),
            6 => script.extend([4, 2, 0]),
            10 => script.extend([7, 0, 0, 0xF0, 0, 3, 1]),
            _ => {}
        }
    }
    script
}

/// Two forged segments with a record each; see `log.rs`.
fn forgeries() -> Vec<u8> {
    let payload = b"\x01\0\0\0\0\0\0\0\x01\0\0\0\x01\0\0\0kv";
    let mut script = vec![1, 1, 0];
    for _ in 0..2 {
        script.extend([1, 1, 1, 1, 0, 18, 0]);
        script.extend(payload);
        script.extend([1, 64, 0]);
    }
    script.extend([1]);
    script
}
