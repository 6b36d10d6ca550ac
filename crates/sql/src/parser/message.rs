//! Syntax errors in MySQL's words.

use sqlparser::parser::ParserError;

use crate::error::SqlError;

/// Characters of the statement MySQL quotes.
const NEAR_CHARS: usize = 80;

/// 1064 at `rest` in line `line` of the statement.
pub(super) fn near(rest: &str, line: usize) -> SqlError {
    let shown: String = rest.chars().take(NEAR_CHARS).collect();
    SqlError::new(
        1064,
        "42000",
        format!(
            "You have an error in your SQL syntax; check the manual that corresponds to your \
             MySQL server version for the right syntax to use near '{shown}' at line {line}"
        ),
    )
}

/// What `sqlparser` said of `text`, as MySQL would.
pub(super) fn from_parser(error: &ParserError, text: &str) -> SqlError {
    match error {
        ParserError::RecursionLimitExceeded => too_deep(),
        ParserError::ParserError(message) | ParserError::TokenizerError(message) => {
            let (line, column) = place(message).unwrap_or((0, 0));
            if line == 0 {
                return near("", text.lines().count().max(1));
            }
            let rest = rest_from(text, line, column);
            near(rest, line)
        }
    }
}

/// 1436: nesting beyond what a thread's stack is sure to hold.
pub(super) fn too_deep() -> SqlError {
    SqlError::new(
        1436,
        "HY000",
        "Thread stack overrun: the statement is nested too deeply; split it into smaller ones",
    )
}

/// 1116: MySQL's limit, which keeps plans shallow.
pub(super) fn too_many_tables() -> SqlError {
    SqlError::new(
        1116,
        "HY000",
        "Too many tables; MySQL can only use 61 tables in a join",
    )
}

/// Line and column, from 1, at the end of a message of `sqlparser`.
fn place(message: &str) -> Option<(usize, usize)> {
    let (_, tail) = message.rsplit_once(" at Line: ")?;
    let (line, column) = tail.split_once(", Column: ")?;
    Some((line.trim().parse().ok()?, column.trim().parse().ok()?))
}

fn rest_from(text: &str, line: usize, column: usize) -> &str {
    let mut offset = 0;
    for (number, content) in text.split_inclusive('\n').enumerate() {
        if number + 1 == line {
            let inside: usize = content
                .chars()
                .take(column.saturating_sub(1))
                .map(char::len_utf8)
                .sum();
            return text.get(offset + inside..).unwrap_or_default();
        }
        offset += content.len();
    }
    ""
}
