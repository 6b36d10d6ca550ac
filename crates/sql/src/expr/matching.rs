//! LIKE and REGEXP.

use std::cell::RefCell;
use std::rc::Rc;
use std::str::Chars;

use regex::{Regex, RegexBuilder};

use crate::error::{SqlError, SqlResult};
use crate::types::{Collation, Value, text_equal};

/// One piece of a LIKE pattern.
#[derive(Clone, Copy, PartialEq)]
enum Piece {
    /// `%`
    Any,
    /// `_`
    One,
    /// A character that must match.
    Exactly(char),
}

/// `value LIKE pattern`; `None` when a side is NULL.
#[must_use]
pub fn like(
    value: &Value,
    pattern: &Value,
    escape: Option<char>,
    collation: Collation,
) -> Option<bool> {
    if let (Value::Text(value), Value::Text(pattern)) = (value, pattern) {
        return Some(like_text(value, pattern, escape, collation));
    }
    let bytes = matches!(value, Value::Bytes(_)) || matches!(pattern, Value::Bytes(_));
    let (read, collation): (fn(&Value) -> Option<String>, _) = if bytes {
        (Value::to_byte_characters, Collation::Binary)
    } else {
        (Value::to_text, collation)
    };
    Some(like_text(&read(value)?, &read(pattern)?, escape, collation))
}

/// LIKE over texts: character by character, case and accents as the collation says.
#[must_use]
pub fn like_text(value: &str, pattern: &str, escape: Option<char>, collation: Collation) -> bool {
    let (mut text, mut pieces) = (value.chars(), Pieces::new(pattern, escape));
    // Where to go on from after the last `%`: the pieces behind it, the text it leaves to them.
    let mut retry: Option<(Pieces<'_>, Chars<'_>)> = None;
    loop {
        let (mut text_behind, mut pieces_behind) = (text.clone(), pieces.clone());
        let matches = match pieces_behind.next() {
            Some(Piece::Any) if pieces_behind.is_empty() => return true,
            Some(Piece::Any) => {
                pieces = pieces_behind;
                retry = Some((pieces.clone(), text.clone()));
                continue;
            }
            Some(piece) => match text_behind.next() {
                None => return false,
                Some(character) => match piece {
                    Piece::Exactly(expected) => same(expected, character, collation),
                    _ => true,
                },
            },
            None if text.as_str().is_empty() => return true,
            None => false,
        };
        if matches {
            (text, pieces) = (text_behind, pieces_behind);
            continue;
        }
        let Some((behind, left)) = &mut retry else {
            return false;
        };
        if left.next().is_none() {
            return false;
        }
        (text, pieces) = (left.clone(), behind.clone());
    }
}

/// The pieces of a pattern, read as they are needed.
#[derive(Clone)]
struct Pieces<'a> {
    rest: Chars<'a>,
    escape: Option<char>,
}

impl<'a> Pieces<'a> {
    fn new(pattern: &'a str, escape: Option<char>) -> Self {
        Self {
            rest: pattern.chars(),
            escape,
        }
    }

    fn is_empty(&self) -> bool {
        self.rest.as_str().is_empty()
    }
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    /// `%%` is one `%`.
    fn next(&mut self) -> Option<Piece> {
        let character = self.rest.next()?;
        Some(match character {
            _ if Some(character) == self.escape => {
                Piece::Exactly(self.rest.next().unwrap_or(character))
            }
            '%' => {
                self.rest = self.rest.as_str().trim_start_matches('%').chars();
                Piece::Any
            }
            '_' => Piece::One,
            other => Piece::Exactly(other),
        })
    }
}

fn same(a: char, b: char, collation: Collation) -> bool {
    if a == b {
        return true;
    }
    if collation.is_binary() || collation == Collation::Uca0900AsCs {
        return false;
    }
    if a.is_ascii() && b.is_ascii() {
        return a.eq_ignore_ascii_case(&b);
    }
    let (mut left, mut right) = ([0u8; 4], [0u8; 4]);
    text_equal(
        collation,
        a.encode_utf8(&mut left),
        b.encode_utf8(&mut right),
    )
}

/// The text before the first wildcard, for index ranges, and whether the pattern is no more
/// than that text with one `%` behind.
#[must_use]
pub fn like_prefix(pattern: &str, escape: Option<char>) -> (String, bool) {
    let pieces: Vec<Piece> = Pieces::new(pattern, escape).collect();
    let prefix: String = pieces
        .iter()
        .map_while(|piece| match piece {
            Piece::Exactly(character) => Some(*character),
            _ => None,
        })
        .collect();
    let rest = &pieces[prefix.chars().count()..];
    (prefix, rest == [Piece::Any])
}

/// Longest pattern of REGEXP: reading one takes some hundred times its size.
const PATTERN_BYTES_MAX: usize = 64 << 10;
/// Most compiled patterns kept by a thread.
const CACHE_MAX: usize = 32;

type Cached = (String, String, Rc<Regex>);

thread_local! {
    /// Compiled patterns: one statement meets the same pattern row after row.
    static CACHE: RefCell<Vec<Cached>> = const { RefCell::new(Vec::new()) };
}

/// A compiled pattern; `flags` are MySQL's match types (`c`, `i`, `m`, `n`, `u`).
///
/// # Errors
/// 3685 and its kin for a pattern that cannot be read.
pub fn compiled(pattern: &str, collation: Collation, flags: &str) -> SqlResult<Rc<Regex>> {
    let mut insensitive = collation.ignores_case();
    for flag in flags.chars() {
        match flag {
            'c' => insensitive = false,
            'i' => insensitive = true,
            'm' | 'n' | 'u' => {}
            _ => {
                return Err(SqlError::new(
                    1210,
                    "HY000",
                    "Incorrect arguments to regexp_like",
                ));
            }
        }
    }
    let key = format!("{}{flags}", u8::from(insensitive));
    let found = CACHE.with_borrow(|cache| {
        let entry = cache
            .iter()
            .find(|(text, other, _)| text == pattern && *other == key);
        entry.map(|(_, _, regex)| Rc::clone(regex))
    });
    if let Some(regex) = found {
        return Ok(regex);
    }
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err(SqlError::new(
            3700,
            "HY000",
            format!(
                "Regular expression pattern exceeds limits on size or complexity: it has {} \
                 bytes, {PATTERN_BYTES_MAX} are allowed.",
                pattern.len()
            ),
        ));
    }
    let regex = RegexBuilder::new(pattern)
        .case_insensitive(insensitive)
        .multi_line(flags.contains('m'))
        .dot_matches_new_line(flags.contains('n'))
        .size_limit(1 << 20)
        .build()
        .map_err(|error| pattern_error(pattern, &error))?;
    let regex = Rc::new(regex);
    CACHE.with_borrow_mut(|cache| {
        if cache.len() >= CACHE_MAX {
            cache.remove(0);
        }
        cache.push((pattern.to_string(), key, Rc::clone(&regex)));
    });
    Ok(regex)
}

fn pattern_error(pattern: &str, error: &regex::Error) -> SqlError {
    if pattern.is_empty() {
        return SqlError::new(3685, "HY000", "Illegal argument to a regular expression.");
    }
    let text = error.to_string();
    let detail = text.lines().last().unwrap_or("it cannot be read").trim();
    let detail = detail.trim_start_matches("error: ").to_string();
    if detail.contains("unclosed character class") {
        return SqlError::new(
            3696,
            "HY000",
            "The regular expression contains an unclosed bracket expression.",
        );
    }
    if detail.contains("unclosed group") || detail.contains("unopened group") {
        return SqlError::new(
            3691,
            "HY000",
            "Mismatched parenthesis in regular expression.",
        );
    }
    SqlError::new(
        3692,
        "HY000",
        format!("Syntax error in regular expression '{pattern}': {detail}"),
    )
}

/// `value REGEXP pattern`; `None` when a side is NULL.
///
/// # Errors
/// As [`compiled`].
pub fn regexp(value: &Value, pattern: &Value, collation: Collation) -> SqlResult<Option<bool>> {
    let (Some(value), Some(pattern)) = (value.to_text(), pattern.to_text()) else {
        return Ok(None);
    };
    Ok(Some(compiled(&pattern, collation, "")?.is_match(&value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_matches_as_mysql_does() {
        let ci = Collation::Uca0900AiCi;
        let table = [
            ("abc", "abc", true),
            ("abc", "A%", true),
            ("abc", "%B%", true),
            ("abc", "a_c", true),
            ("abc", "a__c", false),
            ("", "%", true),
            ("", "_", false),
            ("a%c", "a\\%c", true),
            ("abc", "a\\%c", false),
            ("aaab", "%ab", true),
            ("mississippi", "%iss%ip%", true),
            ("é", "E", true),
            ("abc", "abc ", false),
            ("a\\b", "a\\\\b", true),
            ("abc", "%%c", true),
            ("abcabd", "%ab_", true),
            ("abcabd", "%ab", false),
            ("", "", true),
            ("a", "", false),
            ("\\", "\\", true),
        ];
        for (value, pattern, expected) in table {
            assert_eq!(
                like_text(value, pattern, Some('\\'), ci),
                expected,
                "{value} {pattern}"
            );
        }
        assert!(!like_text("abc", "A%", Some('\\'), Collation::Bin));
        assert!(like_text("a%c", "a|%c", Some('|'), ci));
    }

    #[test]
    fn many_wildcards_do_not_explode() {
        let value = "a".repeat(5000);
        let pattern = "%a".repeat(50) + "b";
        assert!(!like_text(&value, &pattern, Some('\\'), Collation::Bin));
    }

    #[test]
    fn prefixes_end_at_the_first_wildcard() {
        assert_eq!(
            like_prefix("ab\\_c%", Some('\\')),
            ("ab_c".to_string(), true)
        );
        assert_eq!(like_prefix("ab%c%", Some('\\')), ("ab".to_string(), false));
        assert_eq!(like_prefix("abc", Some('\\')), ("abc".to_string(), false));
    }
}
