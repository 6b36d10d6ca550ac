//! `manxdb bench fillrandom`, and the experiments that are made of it, in real processes: what is
//! there in the end and who compacted, never how long it took.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::path::Path;

use crate::support::{laboratory, output};

/// A small load: some dozens of flushes.
const SMALL: [&str; 12] = [
    "--puts",
    "3000",
    "--threads",
    "4",
    "--memtable-kb",
    "64",
    "--file-kb",
    "64",
    "--level1-kb",
    "256",
    "--compression",
    "lz4",
];

fn fill(data: &Path, more: &[&str]) -> (Option<i32>, String, String) {
    let mut command = laboratory();
    command.args(["bench", "fillrandom", "--data"]).arg(data);
    output(command.args(SMALL).args(more))
}

/// The value behind a name in JSON, or in a line of text.
fn word<'a>(text: &'a str, name: &str) -> &'a str {
    let (_, rest) = text
        .split_once(name)
        .unwrap_or_else(|| panic!("no {name}: {text}"));
    let rest = rest.trim_start_matches(['"', ':', ' ']);
    rest.split(['"', ',', ' ', '\n']).next().unwrap()
}

#[test]
fn equal_seeds_leave_equal_contents_and_others_do_not() {
    let directory = tempfile::tempdir().unwrap();
    let hash = |name: &str, more: &[&str]| {
        let (code, out, error) = fill(&directory.path().join(name), more);
        assert_eq!((code, error.as_str()), (Some(0), ""));
        assert!(out.starts_with("fillrandom   : "), "{out}");
        assert!(out.contains("12000 operations;"), "{out}");
        word(&out, ", hash").to_owned()
    };
    let one = hash("one", &[]);
    assert_eq!(one, hash("without-log", &["--no-wal"]));
    assert_ne!(one, hash("other", &["--seed", "2"]));
    let (code, out, _) = fill(&directory.path().join("json"), &["--json"]);
    assert_eq!(code, Some(0));
    assert_eq!(word(&out, "content_hash"), one);
    for name in [
        "\"p99.9\"",
        "\"stall_seconds\"",
        "\"drain_seconds\"",
        "\"cpu_seconds\"",
    ] {
        assert!(out.contains(name), "{out}");
    }
}

#[test]
fn bad_input_is_told_with_the_way_out() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    assert_eq!(fill(&data, &[]).0, Some(0));
    let (code, out, error) = fill(&data, &[]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(error.contains("error_if_exists"), "{error}");
    let (code, _, error) = fill(&data, &["--control", "127.0.0.1:1"]);
    assert_eq!(code, Some(1));
    assert!(error.contains("compaction is \"local\""), "{error}");
    let (code, _, error) = fill(&data, &["--value-bytes", "0"]);
    assert_eq!(code, Some(2));
    assert!(error.contains("1..=65536"), "{error}");
}

/// Rows of `data.csv`, by the names of its columns.
struct Rows {
    names: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Rows {
    fn of(experiment: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut command = laboratory();
        command.args(["lab", "run", experiment, "--scale", "smoke", "--out"]);
        let (code, out, error) = output(command.arg(directory.path()));
        assert_eq!(code, Some(0), "{out}{error}");
        let results = directory.path().join("compaction").join(experiment);
        for name in [
            "data.json",
            "figure.svg",
            "figure.png",
            "report.md",
            "run.json",
        ] {
            assert!(results.join(name).exists(), "{name}");
        }
        let text = fs::read_to_string(results.join("data.csv")).unwrap();
        let cells = |line: &str| line.split(',').map(ToOwned::to_owned).collect::<Vec<_>>();
        let mut lines = text.lines().map(cells);
        Self {
            names: lines.next().unwrap(),
            rows: lines.collect(),
        }
    }

    fn cell<'a>(&self, row: &'a [String], name: &str) -> &'a str {
        let place = self.names.iter().position(|one| one == name).unwrap();
        &row[place]
    }

    fn number(&self, row: &[String], name: &str) -> f64 {
        self.cell(row, name).parse().unwrap()
    }

    /// All hold the same, and of those with workers every one had compactions done there.
    fn check(&self, runs: usize) {
        assert_eq!(self.rows.len(), runs);
        let entries = self.cell(&self.rows[0], "entries_sum");
        for row in &self.rows {
            assert_eq!(self.cell(row, "entries_sum"), entries);
            let remote = self.number(row, "jobs_remote_sum");
            let is_local = self.cell(row, "mode") == "local";
            assert_eq!(remote == 0.0, is_local, "{row:?}");
            assert_eq!(
                self.number(row, "moved_mib_per_job") > 0.0,
                !is_local,
                "{row:?}"
            );
        }
    }
}

#[test]
fn whoever_compacts_every_entry_is_as_it_was_put() {
    Rows::of("caas-fillrandom").check(10);
}

#[test]
fn zones_that_are_far_apart_change_nothing_of_what_is_there() {
    Rows::of("caas-crossdc").check(5);
}
