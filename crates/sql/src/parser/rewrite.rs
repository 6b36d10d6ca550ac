//! MySQL spellings put in words `sqlparser` knows, token for token.
//!
//! | written | becomes |
//! |---|---|
//! | `LOCK IN SHARE MODE` | `FOR SHARE` |
//! | `a MOD b` | `a % b` |
//! | `INTERVAL x DAY_HOUR` | `INTERVAL x DAY TO HOUR` (`SECOND_MICROSECOND`: `SECONDS TO MICROSECOND`) |
//! | `INTERVAL(n, a, b)`, the function | its name in back-quotes |
//! | `CAST(a AS CHAR CHARACTER SET utf8mb4)` | `CAST(a AS CHAR)` |
//! | `UPDATE a, b SET`, `JOIN (a, b)`, `FROM (a, b)` | `CROSS JOIN` for the comma |
//! | `DELETE a.* FROM` | `DELETE a FROM` |
//! | `TABLE t` | `SELECT * FROM t` |
//! | `DROP [TEMPORARY] TABLES` | `DROP [TEMPORARY] TABLE` |
//! | `NATIONAL CHAR`, `VISIBLE`, `KEY_BLOCK_SIZE = n` in a definition | without the word |

use std::collections::BTreeSet;

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Span, Token, TokenWithSpan, Word};

use super::explicit_table::is_query;
use super::words::is_word;
use crate::error::{SqlError, SqlResult};

type Tokens = Vec<TokenWithSpan>;

/// Units of two fields and what they are made of.
const UNITS: [(&str, &str, &str); 11] = [
    ("YEAR_MONTH", "YEAR", "MONTH"),
    ("DAY_HOUR", "DAY", "HOUR"),
    ("DAY_MINUTE", "DAY", "MINUTE"),
    ("DAY_SECOND", "DAY", "SECOND"),
    ("DAY_MICROSECOND", "DAY", "MICROSECOND"),
    ("HOUR_MINUTE", "HOUR", "MINUTE"),
    ("HOUR_SECOND", "HOUR", "SECOND"),
    ("HOUR_MICROSECOND", "HOUR", "MICROSECOND"),
    ("MINUTE_SECOND", "MINUTE", "SECOND"),
    ("MINUTE_MICROSECOND", "MINUTE", "MICROSECOND"),
    ("SECOND_MICROSECOND", "SECONDS", "MICROSECOND"),
];

fn word_token(text: &str, span: Span) -> TokenWithSpan {
    TokenWithSpan {
        token: Token::make_word(text, None),
        span,
    }
}

/// Whether the token ends an operand, so that a following MOD is an operator.
fn ends_operand(token: &Token) -> bool {
    match token {
        Token::Word(Word {
            keyword,
            quote_style,
            ..
        }) => quote_style.is_some() || *keyword == Keyword::NoKeyword,
        Token::Number(..)
        | Token::SingleQuotedString(_)
        | Token::RParen
        | Token::Placeholder(_) => true,
        _ => false,
    }
}

/// Applies the table above.
///
/// # Errors
/// 1235 for spellings whose meaning would be lost.
pub(super) fn spellings(tokens: Tokens) -> SqlResult<Tokens> {
    let mut out: Tokens = Vec::with_capacity(tokens.len());
    let first = tokens.first().map(|t| t.token.clone());
    let starts = |word: &str| first.as_ref().is_some_and(|t| is_word(t, word));
    let defines = starts("CREATE") || starts("ALTER");
    let calls = interval_calls(&tokens);
    let mut intervals = false;
    // Among the tables to delete from.
    let mut targets = starts("DELETE");
    let mut joined = CommaJoins::new(starts("UPDATE"));
    let mut index = 0;
    while let Some(token) = tokens.get(index) {
        let is = |ahead: usize, word: &str| {
            tokens
                .get(index + ahead)
                .is_some_and(|t| is_word(&t.token, word))
        };
        let ahead = |ahead: usize| tokens.get(index + ahead).map(|t| &t.token);
        if is(0, "INTERVAL") {
            if calls.contains(&index) {
                out.push(TokenWithSpan {
                    token: Token::make_word("INTERVAL", Some('`')),
                    span: token.span,
                });
                index += 1;
                continue;
            }
            intervals = true;
        }
        if is(0, "LOCK") && is(1, "IN") && is(2, "SHARE") && is(3, "MODE") {
            out.push(word_token("FOR", token.span));
            out.push(word_token("SHARE", token.span));
            index += 4;
            continue;
        }
        let temporary = tokens
            .get(1)
            .is_some_and(|t| is_word(&t.token, "TEMPORARY"));
        if index == 1 + usize::from(temporary) && starts("DROP") && is(0, "TABLES") {
            out.push(word_token("TABLE", token.span));
            index += 1;
            continue;
        }
        if is(0, "TABLE") && is_query(&tokens, index) {
            for word in ["SELECT", "*", "FROM"] {
                out.push(if word == "*" {
                    TokenWithSpan {
                        token: Token::Mul,
                        span: token.span,
                    }
                } else {
                    word_token(word, token.span)
                });
            }
            index += 1;
            continue;
        }
        if is(0, "MOD") && out.last().is_some_and(|t| ends_operand(&t.token)) {
            out.push(TokenWithSpan {
                token: Token::Mod,
                span: token.span,
            });
            index += 1;
            continue;
        }
        if intervals
            && !is(1, "FROM")
            && let Some((_, from, to)) = UNITS.iter().find(|(unit, ..)| is(0, unit))
        {
            for word in [from, "TO", to] {
                out.push(word_token(word, token.span));
            }
            index += 1;
            continue;
        }
        if let Some(skipped) = cast_charset(&tokens, index, &out)? {
            index += skipped;
            continue;
        }
        if defines && let Some(skipped) = definition_word(&tokens, index, &out)? {
            index += skipped;
            continue;
        }
        targets &= !is(0, "WHERE");
        let deletes = targets && token.token == Token::Period;
        if deletes && ahead(1) == Some(&Token::Mul) {
            index += 2;
            continue;
        }
        if joined.replaces(&tokens, index) {
            out.push(word_token("CROSS", token.span));
            out.push(word_token("JOIN", token.span));
        } else {
            out.push(token.clone());
        }
        index += 1;
    }
    Ok(out)
}

/// Places of the words that are the function `INTERVAL(n, a, b, …)`: what `INTERVAL (n) DAY` has
/// in its parentheses holds no comma of its own.
fn interval_calls(tokens: &[TokenWithSpan]) -> BTreeSet<usize> {
    let mut calls = BTreeSet::new();
    // Of each open parenthesis, the place before it.
    let mut open: Vec<Option<usize>> = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        match token.token {
            Token::LParen => open.push(index.checked_sub(1)),
            Token::RParen => {
                open.pop();
            }
            Token::Comma => {
                let before = open.last().copied().flatten();
                let is_call = |at: &usize| is_word(&tokens[*at].token, "INTERVAL");
                calls.extend(before.filter(is_call));
            }
            _ => {}
        }
    }
    calls
}

/// `CHARACTER SET x` behind `AS CHAR` or `AS CHAR(n)`: how many tokens to skip.
fn cast_charset(
    tokens: &[TokenWithSpan],
    index: usize,
    out: &[TokenWithSpan],
) -> SqlResult<Option<usize>> {
    let is = |at: usize, word: &str| tokens.get(at).is_some_and(|t| is_word(&t.token, word));
    let long = is(index, "CHARACTER") && is(index + 1, "SET");
    if !long && !is(index, "CHARSET") {
        return Ok(None);
    }
    let skip = if long { 2 } else { 1 };
    let mut back = out.len();
    if out.last().is_some_and(|t| t.token == Token::RParen) {
        back = back.saturating_sub(3);
    }
    let word_at = |at: Option<usize>, word: &str| {
        at.and_then(|at| out.get(at))
            .is_some_and(|t| is_word(&t.token, word))
    };
    if !word_at(back.checked_sub(1), "CHAR") || !word_at(back.checked_sub(2), "AS") {
        return Ok(None);
    }
    let charset = tokens.get(index + skip).map(|t| t.token.to_string());
    match charset {
        Some(name) if name.to_ascii_lowercase().starts_with("utf8") => Ok(Some(skip + 1)),
        name => Err(SqlError::not_supported(format!(
            "CAST to CHARACTER SET {}",
            name.unwrap_or_default()
        ))),
    }
}

/// Words of definitions that change nothing: how many tokens to skip.
fn definition_word(
    tokens: &[TokenWithSpan],
    index: usize,
    out: &[TokenWithSpan],
) -> SqlResult<Option<usize>> {
    let is = |at: usize, word: &str| tokens.get(at).is_some_and(|t| is_word(&t.token, word));
    let names = matches!(
        out.last().map(|t| &t.token),
        None | Some(Token::Comma | Token::LParen | Token::Period)
    );
    if names {
        return Ok(None);
    }
    let behind_type = matches!(out.last().map(|t| &t.token), Some(Token::RParen))
        || [
            "SIGNED", "UNSIGNED", "CHAR", "BINARY", "DATE", "TIME", "DATETIME", "DECIMAL",
        ]
        .iter()
        .any(|ty| out.last().is_some_and(|t| is_word(&t.token, ty)));
    let closes = tokens
        .get(index + 1)
        .is_some_and(|t| t.token == Token::RParen);
    if is(index, "ARRAY") && behind_type && closes {
        return Err(SqlError::not_supported(
            "a multi-valued index (CAST … AS … ARRAY)",
        ));
    }
    let behind_bracket = out.last().is_some_and(|t| t.token == Token::RParen);
    if is(index, "INVISIBLE") {
        return Err(SqlError::not_supported("INVISIBLE"));
    }
    if is(index, "VISIBLE") && behind_bracket {
        return Ok(Some(1));
    }
    let char_follows = ["CHAR", "CHARACTER", "VARCHAR"]
        .iter()
        .any(|w| is(index + 1, w));
    if is(index, "NATIONAL") && char_follows {
        return Ok(Some(1));
    }
    if is(index, "KEY_BLOCK_SIZE") && behind_bracket {
        let eq = tokens.get(index + 1).is_some_and(|t| t.token == Token::Eq);
        return Ok(Some(if eq { 3 } else { 2 }));
    }
    Ok(None)
}

/// Which commas join tables in places where `sqlparser` wants a JOIN.
struct CommaJoins {
    /// In the table list of an UPDATE, before SET.
    update: bool,
    /// Bracket depth now.
    depth: usize,
    /// Depths that are bracketed table lists.
    lists: Vec<usize>,
}

impl CommaJoins {
    fn new(update: bool) -> Self {
        Self {
            update,
            depth: 0,
            lists: Vec::new(),
        }
    }

    fn replaces(&mut self, tokens: &[TokenWithSpan], index: usize) -> bool {
        let Some(token) = tokens.get(index).map(|t| &t.token) else {
            return false;
        };
        match token {
            Token::LParen => {
                self.depth += 1;
                let before = index.checked_sub(1).and_then(|i| tokens.get(i));
                let joins =
                    before.is_some_and(|t| is_word(&t.token, "JOIN") || is_word(&t.token, "FROM"));
                let query = tokens.get(index + 1).is_some_and(|t| {
                    ["SELECT", "WITH", "VALUES", "TABLE"]
                        .iter()
                        .any(|word| is_word(&t.token, word))
                });
                if joins && !query {
                    self.lists.push(self.depth);
                }
                false
            }
            Token::RParen => {
                if self.lists.last() == Some(&self.depth) {
                    self.lists.pop();
                }
                self.depth = self.depth.saturating_sub(1);
                false
            }
            Token::Comma => {
                (self.update && self.depth == 0) || self.lists.last() == Some(&self.depth)
            }
            word => {
                if self.depth == 0 && is_word(word, "SET") {
                    self.update = false;
                }
                false
            }
        }
    }
}
