//! DML and DDL through a session, as scripts: a statement behind `>`, what it answers below.
//!
//! `ok N` is N affected rows (with `id N` and `info` when there are any); rows are values joined
//! by `|`; errors are `error NUMBER text`.

mod common;

use common::{Answer, Client, connect, instance};

fn shown(client: &mut Client, text: &str) -> Vec<String> {
    let answers = match client.try_run(text) {
        Ok(answers) => answers,
        Err(error) => return vec![format!("error {} {error}", error.code)],
    };
    let mut lines = Vec::new();
    for answer in answers {
        match answer {
            Answer::Rows(_, rows) => lines.extend(rows.into_iter().map(|row| {
                let values = row.into_iter().map(|value| value.unwrap_or("NULL".into()));
                values.collect::<Vec<_>>().join("|").replace('\n', "\\n")
            })),
            Answer::Done(outcome, _) => {
                let mut line = format!("ok {}", outcome.affected_rows);
                if outcome.last_insert_id > 0 {
                    line.push_str(&format!(" id {}", outcome.last_insert_id));
                }
                if !outcome.info.is_empty() {
                    line.push_str(&format!(" {}", outcome.info));
                }
                lines.push(line);
            }
        }
    }
    lines
}

/// Runs a script; lists every statement that answered something else.
fn play(script: &str) {
    let instance = instance();
    let mut client = connect(&instance, "root");
    client.run("CREATE DATABASE d");
    client.run("USE d");
    let mut wrong = Vec::new();
    let mut lines = script.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(text) = line.strip_prefix("> ") else {
            continue;
        };
        let mut expected = Vec::new();
        while let Some(next) = lines.peek() {
            if next.starts_with("> ") || next.starts_with("# ") || next.is_empty() {
                break;
            }
            expected.push(lines.next().unwrap_or_default().to_string());
        }
        let got = shown(&mut client, text);
        if got != expected {
            wrong.push(format!(
                "> {text}\n  expected:\n{}\n  got:\n{}",
                expected.join("\n"),
                got.join("\n")
            ));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n\n"));
}

#[test]
fn inserts() {
    play(include_str!("scripts/insert.txt"));
}

#[test]
fn updates_and_deletes() {
    play(include_str!("scripts/update.txt"));
}

#[test]
fn foreign_keys() {
    play(include_str!("scripts/foreign_key.txt"));
}

#[test]
fn definitions() {
    play(include_str!("scripts/definition.txt"));
}

#[test]
fn alterations() {
    play(include_str!("scripts/alter.txt"));
}
