//! Where `TABLE t` is a query, and not the word behind CREATE, LOCK and their kin.

use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::words::is_word;

/// Whether the word TABLE at `index` stands for `SELECT * FROM`.
pub(super) fn is_query(tokens: &[TokenWithSpan], index: usize) -> bool {
    let is = |at: usize, words: &[&str]| {
        let token = tokens.get(at).map(|token| &token.token);
        token.is_some_and(|token| words.iter().any(|word| is_word(token, word)))
    };
    if !is(index, &["TABLE"]) || !ends_with_name(tokens, index + 1) {
        return false;
    }
    let Some(before) = index.checked_sub(1) else {
        return true;
    };
    let opens = tokens.get(before).is_some_and(|t| t.token == Token::LParen);
    let joins = ["UNION", "EXCEPT", "INTERSECT", "ALL", "DISTINCT", "AS"];
    if opens || is(before, &joins) {
        return true;
    }
    if is_bracketed(tokens, index) {
        return false;
    }
    if is(0, &["INSERT", "REPLACE"]) {
        return !is(before, &["INTO"]);
    }
    if is(0, &["CREATE"]) {
        return (1..before).any(|at| is(at, &["TABLE"]));
    }
    if is(0, &["EXPLAIN", "DESCRIBE", "DESC"]) {
        let format = before.checked_sub(1).and_then(|at| tokens.get(at));
        let has_format = format.is_some_and(|t| t.token == Token::Eq);
        return before == 0 || has_format || is(before, &["ANALYZE"]);
    }
    is(0, &["WITH"]) && tokens.get(before).is_some_and(|t| t.token == Token::RParen)
}

/// Whether the token at `index` stands in brackets.
fn is_bracketed(tokens: &[TokenWithSpan], index: usize) -> bool {
    let mut depth = 0_usize;
    for token in tokens.iter().take(index) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    depth > 0
}

/// Whether a table's name comes next, and behind it what may follow such a query.
fn ends_with_name(tokens: &[TokenWithSpan], start: usize) -> bool {
    let token = |at: usize| tokens.get(at).map(|token| &token.token);
    let is_name = |at: usize| matches!(token(at), Some(Token::Word(_)));
    if !is_name(start) {
        return false;
    }
    let mut behind = start + 1;
    if token(behind) == Some(&Token::Period) && is_name(behind + 1) {
        behind += 2;
    }
    let follows = [
        "ORDER",
        "LIMIT",
        "INTO",
        "FOR",
        "LOCK",
        "UNION",
        "EXCEPT",
        "INTERSECT",
        "ON",
    ];
    match token(behind) {
        None | Some(Token::EOF | Token::SemiColon | Token::RParen) => true,
        Some(word) => follows.iter().any(|follow| is_word(word, follow)),
    }
}
