//! One pass over the characters: statements apart, comments out, positions kept.
//!
//! Comments become spaces of the same length, so every place in the result is the same place in
//! the client's text. `/*!NNNNN body */` is unwrapped when a MySQL of our version would run it;
//! `/*M! … */` and newer versions are dropped, except bodies that begin with an ownership
//! annotation: they may hide from MySQL behind `/*!99999 OWNED_BY users(id) */`.

use super::hint::time_limit;
use crate::error::{SqlError, SqlResult};
use crate::types::SqlMode;

/// The server version conditional comments are compared with: 8.0.36.
const VERSION: u32 = 80_036;

/// Words an annotation may begin with inside a comment of a future version.
const ANNOTATION_WORDS: [&str; 12] = [
    "DATA_SUBJECT",
    "OWNED_BY",
    "OWNS",
    "ACCESSED_BY",
    "ACCESSES",
    "ONLY",
    "ON",
    "UNOWNED",
    "RETAIN",
    "PERSONAL",
    "HOME_REGION",
    "ORDERED",
];

/// One statement of a text, not parsed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The statement, comments blanked; empty for a comment alone.
    pub text: String,
    /// `/*+ MAX_EXECUTION_TIME(n) */` of a SELECT, milliseconds.
    pub time_limit_millis: Option<u32>,
}

/// Splits `text` at top-level semicolons; each part has its comments blanked. Parts that hold
/// nothing are left out; a part of nothing but comments is an empty statement, unless only
/// such follow.
///
/// # Errors
/// 1064 for an unterminated comment.
pub(super) fn split(text: &str, mode: SqlMode) -> SqlResult<Vec<Part>> {
    let clean = blank_comments(text, mode)?;
    let mut parts = Vec::new();
    let mut start = 0;
    let bytes = clean.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            quote @ (b'\'' | b'"' | b'`') => at = skip_quoted(bytes, at, quote, mode),
            b';' => {
                parts.push((start, at));
                at += 1;
                start = at;
            }
            _ => at += 1,
        }
    }
    parts.push((start, bytes.len()));
    let mut statements: Vec<Part> = Vec::new();
    for (from, to) in parts {
        let (clean, raw) = (&clean[from..to], &text[from..to]);
        if !clean.trim().is_empty() || !raw.trim().is_empty() {
            statements.push(Part {
                text: clean.trim().to_string(),
                time_limit_millis: time_limit(clean, raw),
            });
        }
    }
    while statements.len() > 1 && statements.last().is_some_and(|last| last.text.is_empty()) {
        statements.pop();
    }
    Ok(statements)
}

/// Position behind the quoted text that begins at `at`.
fn skip_quoted(bytes: &[u8], at: usize, quote: u8, mode: SqlMode) -> usize {
    let identifier = quote == b'`' || (quote == b'"' && mode.ansi_quotes);
    let escapes = !identifier && !mode.no_backslash_escapes;
    let mut next = at + 1;
    while next < bytes.len() {
        if bytes[next] == b'\\' && escapes {
            next += 2;
        } else if bytes[next] == quote {
            if bytes.get(next + 1) == Some(&quote) {
                next += 2;
            } else {
                return next + 1;
            }
        } else {
            next += 1;
        }
    }
    bytes.len()
}

/// Replaces comments by spaces, newlines kept.
fn blank_comments(text: &str, mode: SqlMode) -> SqlResult<String> {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut unwrapped = 0_usize;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            quote @ (b'\'' | b'"' | b'`') => at = skip_quoted(bytes, at, quote, mode),
            b'#' => at = blank_line(bytes, &mut out, at),
            b'-' if starts_dash_comment(bytes, at) => at = blank_line(bytes, &mut out, at),
            b'/' if bytes.get(at + 1) == Some(&b'*') => match runs_as_code(bytes, at) {
                Some(body) => {
                    out[at..body].fill(b' ');
                    unwrapped += 1;
                    at = body;
                }
                None => at = blank_block(bytes, &mut out, at)?,
            },
            b'*' if unwrapped > 0 && bytes.get(at + 1) == Some(&b'/') => {
                out[at..at + 2].fill(b' ');
                unwrapped -= 1;
                at += 2;
            }
            _ => at += 1,
        }
    }
    if unwrapped > 0 {
        return Err(super::message::near("", 1));
    }
    String::from_utf8(out).map_err(|_| SqlError::internal("a comment cut a character"))
}

/// `--` begins a comment only before white space or the end.
fn starts_dash_comment(bytes: &[u8], at: usize) -> bool {
    bytes.get(at + 1) == Some(&b'-')
        && bytes
            .get(at + 2)
            .is_none_or(|next| next.is_ascii_whitespace() || next.is_ascii_control())
}

fn blank_line(bytes: &[u8], out: &mut [u8], at: usize) -> usize {
    let end = bytes[at..]
        .iter()
        .position(|byte| *byte == b'\n')
        .map_or(bytes.len(), |length| at + length);
    out[at..end].fill(b' ');
    end
}

fn blank_block(bytes: &[u8], out: &mut [u8], at: usize) -> SqlResult<usize> {
    let body = at + 2;
    let end = bytes
        .get(body..)
        .unwrap_or_default()
        .windows(2)
        .position(|pair| pair == b"*/")
        .map(|length| body + length + 2);
    let Some(end) = end else {
        let rest = String::from_utf8_lossy(&bytes[at..]).into_owned();
        let line = bytes[..at].split(|byte| *byte == b'\n').count();
        return Err(super::message::near(&rest, line));
    };
    for byte in &mut out[at..end] {
        if *byte != b'\n' {
            *byte = b' ';
        }
    }
    Ok(end)
}

/// Where the body of a conditional comment that we execute begins.
fn runs_as_code(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at + 2) != Some(&b'!') {
        return None;
    }
    let digits_start = at + 3;
    let digits = bytes[digits_start..]
        .iter()
        .take(6)
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    if digits < 5 {
        return Some(digits_start);
    }
    let version: u32 = std::str::from_utf8(&bytes[digits_start..digits_start + digits])
        .ok()?
        .parse()
        .ok()?;
    let body = digits_start + digits;
    (version <= VERSION || begins_with_annotation(&bytes[body..])).then_some(body)
}

fn begins_with_annotation(body: &[u8]) -> bool {
    let word: Vec<u8> = body
        .iter()
        .skip_while(|byte| byte.is_ascii_whitespace() || **byte == b',')
        .take_while(|byte| byte.is_ascii_alphabetic() || **byte == b'_')
        .map(u8::to_ascii_uppercase)
        .collect();
    ANNOTATION_WORDS
        .iter()
        .any(|annotation| annotation.as_bytes() == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Vec<String> {
        let parts = split(text, SqlMode::default()).unwrap();
        parts.into_iter().map(|part| part.text).collect()
    }

    #[test]
    fn semicolons_split_only_outside_quotes_and_comments() {
        assert_eq!(
            parts("SELECT ';', `a;b`; -- x; y\nSELECT 2 /* ; */; # ;\n;"),
            ["SELECT ';', `a;b`", "SELECT 2"]
        );
    }

    #[test]
    fn backslash_escapes_follow_the_mode() {
        assert_eq!(parts(r"SELECT 'a\';b'; SELECT 1").len(), 2);
        let mode = SqlMode {
            no_backslash_escapes: true,
            ..SqlMode::default()
        };
        assert_eq!(split(r"SELECT 'a\'; SELECT 1", mode).unwrap().len(), 2);
    }

    #[test]
    fn conditional_comments_run_up_to_our_version() {
        assert_eq!(parts("/*!40101 SET x=1 */"), ["SET x=1"]);
        assert_eq!(parts("/*! SET x=1 */"), ["SET x=1"]);
        assert_eq!(parts("/*!99999 SET x=1 */"), [""]);
        assert_eq!(parts("/*!999999\\- enable the sandbox mode */"), [""]);
        assert_eq!(parts("/*M!100100 SET x=1 */"), [""]);
        assert_eq!(
            parts("a INT /*!99999 OWNED_BY users(id) */"),
            ["a INT          OWNED_BY users(id)"]
        );
    }

    #[test]
    fn a_comment_alone_is_an_empty_statement_and_nothing_is_none() {
        assert_eq!(
            parts("SELECT 1; -- x\n; /* y */ ;SELECT 2"),
            ["SELECT 1", "", "", "SELECT 2"]
        );
        assert_eq!(parts("SELECT 1; -- x"), ["SELECT 1"]);
        assert_eq!(parts("# x"), [""]);
        assert!(parts(" ;\n; ").is_empty());
    }

    #[test]
    fn two_minus_signs_without_space_are_arithmetic() {
        assert_eq!(parts("SELECT 5--3"), ["SELECT 5--3"]);
    }

    #[test]
    fn an_open_comment_is_a_syntax_error() {
        assert_eq!(
            split("SELECT 1 /* x", SqlMode::default()).unwrap_err().code,
            1064
        );
    }
}
