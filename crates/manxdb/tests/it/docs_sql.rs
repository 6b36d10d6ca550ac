//! SQL of the docs runs as it stands there: every block that is marked as `sql`, each in a database of its own.
//!
//! A comment of the page before a block, `<!-- before: … -->`, is run first; `<!-- before each: … -->` before
//! each statement of it, in a database of its own: statements that are one another's alternatives.

use mysql::Conn;
use mysql::prelude::Queryable as _;

use crate::layering::{answer_of, repository};
use crate::support::{PASSWORD, Server};

/// A block of a page.
#[derive(Debug, Default, PartialEq, Eq)]
struct Block {
    /// The line that it begins at.
    line: usize,
    before: Vec<String>,
    is_each: bool,
    statements: Vec<String>,
}

/// Statements of a text, whose comments begin with two dashes.
fn statements(text: &str) -> Vec<String> {
    let lines = text
        .lines()
        .map(|line| line.split("--").next().unwrap_or_default());
    let code = lines.collect::<Vec<_>>().join("\n");
    let statements = code.split(';').map(|statement| statement.trim().to_owned());
    statements
        .filter(|statement| !statement.is_empty())
        .collect()
}

/// What a comment says that comes right before a block.
fn preparation(text: &str) -> (Vec<String>, bool) {
    let comment = text
        .trim_end()
        .strip_suffix("-->")
        .and_then(|text| text.rsplit_once("<!--"));
    let Some((_, comment)) = comment else {
        return (Vec::new(), false);
    };
    let comment = comment.trim();
    if let Some(each) = comment.strip_prefix("before each:") {
        return (statements(each), true);
    }
    (
        comment
            .strip_prefix("before:")
            .map(statements)
            .unwrap_or_default(),
        false,
    )
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut passed = 0;
    while let Some(found) = text[passed..].find("```sql\n") {
        let begin = passed + found + "```sql\n".len();
        let end = begin + text[begin..].find("```").unwrap();
        let (before, is_each) = preparation(&text[passed..passed + found]);
        blocks.push(Block {
            line: text[..begin].lines().count(),
            before,
            is_each,
            statements: statements(&text[begin..end]),
        });
        passed = end + "```".len();
    }
    blocks
}

/// Runs all in a new database; the first that fails, with why.
fn run(client: &mut Conn, statements: &[&String]) -> Result<(), String> {
    for statement in [
        "DROP DATABASE IF EXISTS docs",
        "CREATE DATABASE docs",
        "USE docs",
    ] {
        client.query_drop(statement).unwrap();
    }
    for statement in statements {
        client
            .query_drop(statement)
            .map_err(|error| format!("{statement}: {error}"))?;
    }
    Ok(())
}

#[test]
fn sql_of_the_docs_runs() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path());
    let mut client = server.connect(PASSWORD).unwrap();
    let listed = String::from_utf8(answer_of(
        "git",
        &["ls-files", "-z", "docs/*.md", "README.md"],
    ))
    .unwrap();
    let (mut failed, mut count) = (Vec::new(), 0);
    for page in listed.split_terminator('\0') {
        let Ok(text) = std::fs::read_to_string(repository().join(page)) else {
            continue; // deleted, not yet committed
        };
        for block in blocks(&text) {
            let runs: Vec<Vec<&String>> = if block.is_each {
                let each = block.statements.iter();
                each.map(|one| block.before.iter().chain([one]).collect())
                    .collect()
            } else {
                vec![block.before.iter().chain(&block.statements).collect()]
            };
            count += block.statements.len();
            for statements in runs {
                let ran = run(&mut client, &statements);
                failed.extend(
                    ran.err()
                        .map(|why| format!("{page}, line {}: {why}", block.line)),
                );
            }
        }
    }
    assert!(count > 10, "only {count} statements were found");
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn blocks_are_found_with_what_comes_before_them() {
    let text = "a\n\n<!-- before each: CREATE TABLE t (id INT); -->\n```sql\nSELECT 1; -- one; two\nSELECT\n  2;\n```\nb\n```sql\nDO 1\n```\n";
    let found = blocks(text);
    assert_eq!(found.len(), 2);
    assert_eq!(
        (found[0].line, found[0].is_each, found[0].before.len()),
        (4, true, 1)
    );
    assert_eq!(found[0].statements, ["SELECT 1", "SELECT\n  2"]);
    assert_eq!(
        found[1],
        Block {
            line: 10,
            statements: vec!["DO 1".to_owned()],
            ..Block::default()
        }
    );
}
