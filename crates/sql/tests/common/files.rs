//! The repository's sqllogictest files, run in process.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use manxdb_sql::session::Instance;
use sqllogictest::{DB, DBOutput, DefaultColumnType, QueryExpect, Record, Runner, SortMode};

use super::{Answer, Client, connect};

struct InProcess {
    client: Client,
}

/// An error as the files match it.
#[derive(Debug, thiserror::Error)]
#[error("ERROR {code} ({sqlstate}): {message}")]
struct Shown {
    code: u16,
    sqlstate: &'static str,
    message: String,
}

impl DB for InProcess {
    type Error = Shown;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Shown> {
        let answers = self.client.try_run(sql).map_err(|error| Shown {
            code: error.code,
            sqlstate: error.sqlstate,
            message: error.message,
        })?;
        Ok(match answers.into_iter().last() {
            Some(Answer::Rows(names, rows)) => DBOutput::Rows {
                types: vec![DefaultColumnType::Text; names.len()],
                rows: rows
                    .into_iter()
                    .map(|row| row.into_iter().map(shown).collect())
                    .collect(),
            },
            Some(Answer::Done(outcome, _)) => DBOutput::StatementComplete(outcome.affected_rows),
            None => DBOutput::StatementComplete(0),
        })
    }

    fn engine_name(&self) -> &'static str {
        "manxdb"
    }
}

fn shown(value: Option<String>) -> String {
    match value {
        None => "NULL".to_string(),
        Some(text) if text.is_empty() => "(empty)".to_string(),
        Some(text) => text.replace('\n', "\\n"),
    }
}

/// The files; `SLT=word` picks those whose path holds it.
pub fn files() -> Vec<PathBuf> {
    let home = std::env::var("CARGO_MANIFEST_DIR").expect("cargo says where the crate is");
    let folder = Path::new(&home).join("../../tests/sql");
    let wanted = std::env::var("SLT").unwrap_or_default();
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("tests/sql")
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "slt"))
        .filter(|path| path.to_string_lossy().contains(&wanted))
        .collect();
    files.sort();
    files
}

/// Failing records of a file as `file.slt: statement`, with what went wrong.
fn failures_of(path: &Path, instance: &Arc<Instance>) -> Vec<(String, String)> {
    let stem = path
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let database = format!("slt_{stem}");
    connect(instance, "root").run(&format!("CREATE DATABASE {database}"));
    let mut runner = Runner::new(|| async {
        let mut client = connect(instance, "root");
        client.run(&format!("USE {database}"));
        Ok(InProcess { client })
    });
    let records = sqllogictest::parse_file(path).expect("a well-formed file");
    let mut failures = Vec::new();
    for mut record in records {
        if matches!(record, Record::Halt { .. }) {
            break;
        }
        sort_expected(&mut record);
        let sql = match &record {
            Record::Statement { sql, .. } | Record::Query { sql, .. } => sql.replace('\n', " "),
            _ => String::new(),
        };
        if let Err(error) = runner.run(record) {
            failures.push((
                format!("{stem}.slt: {sql}"),
                error.display(false).to_string(),
            ));
        }
    }
    failures
}

/// Records that fail today.
pub fn known_gaps() -> Vec<&'static str> {
    let lines = include_str!("../known_gaps.txt").lines();
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect()
}

/// Failing records of files, each on an instance of its own; panics at those that are not known.
pub fn failures_of_all(
    files: &[PathBuf],
    instance: impl Fn() -> Arc<Instance>,
) -> Vec<(String, String)> {
    let known = known_gaps();
    let failures = files.iter().flat_map(|path| failures_of(path, &instance()));
    let failures: Vec<(String, String)> = failures.collect();
    let surprises: Vec<String> = failures
        .iter()
        .filter(|(name, _)| !known.contains(&name.as_str()))
        .map(|(name, error)| format!("{name}\n{error}"))
        .collect();
    assert!(
        surprises.is_empty(),
        "{} new:\n{}",
        surprises.len(),
        surprises.join("\n\n")
    );
    failures
}

/// `rowsort` sorts what came by bytes; sort what is wanted the same way.
fn sort_expected(record: &mut Record<DefaultColumnType>) {
    let Record::Query {
        expected: QueryExpect::Results {
            sort_mode, results, ..
        },
        ..
    } = record
    else {
        return;
    };
    if *sort_mode == Some(SortMode::RowSort) {
        results.sort_by(|a, b| a.split(' ').cmp(b.split(' ')));
    }
}
