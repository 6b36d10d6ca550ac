//! Parts of queries and changes that are noted beside the tree, or put in words it knows.

use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::Tokens;
use crate::error::{SqlError, SqlResult};
use crate::parser::dialect::ModeDialect;
use crate::parser::words::is_word;
use crate::parser::{Parsed, VALUES_ALIAS, load, special};

/// Cuts `INTO @a, @b`, `INTO OUTFILE …` and `INTO DUMPFILE …` out of a SELECT.
pub(super) fn into_clause(
    dialect: &ModeDialect,
    mut tokens: Tokens,
    parsed: &mut Parsed,
) -> SqlResult<Tokens> {
    let mut depth = 0_usize;
    let mut place = None;
    for (index, token) in tokens.iter().enumerate() {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            word if depth == 0 && is_word(word, "INTO") => place = Some(index),
            _ => {}
        }
    }
    let Some(start) = place else {
        return Ok(tokens);
    };
    let follower = tokens.get(start + 1).map(|t| &t.token);
    if follower.is_some_and(|word| is_word(word, "OUTFILE") || is_word(word, "DUMPFILE")) {
        return into_file(dialect, tokens, start, parsed);
    }
    let mut end = start + 1;
    while let Some(Token::Word(word)) = tokens.get(end).map(|t| &t.token) {
        let Some(name) = word.value.strip_prefix('@') else {
            return Err(SqlError::not_supported("SELECT INTO a local variable"));
        };
        parsed.into_variables.push(name.to_string());
        end += 1;
        if tokens.get(end).is_some_and(|t| t.token == Token::Comma) {
            end += 1;
        } else {
            break;
        }
    }
    tokens.drain(start..end);
    Ok(tokens)
}

/// The clause from `start` on, which may stand before FROM or at the end.
fn into_file(
    dialect: &ModeDialect,
    mut tokens: Tokens,
    start: usize,
    parsed: &mut Parsed,
) -> SqlResult<Tokens> {
    let clause: Tokens = tokens.iter().skip(start + 1).cloned().collect();
    let count = clause.len();
    let mut parser = Parser::new(dialect).with_tokens_with_locations(clause);
    let into = load::into_file(&mut parser)
        .map_err(|error| special::in_our_words(&error, &parsed.text))?;
    let mut rest = 0;
    while parser.next_token().token != Token::EOF {
        rest += 1;
    }
    // What is counted is what is not blank.
    let mut end = start + 1 + count;
    while rest > 0 && end > start {
        end -= 1;
        if !matches!(
            tokens.get(end).map(|t| &t.token),
            Some(Token::Whitespace(_) | Token::EOF)
        ) {
            rest -= 1;
        }
    }
    parsed.into_file = Some(into);
    tokens.drain(start..end);
    Ok(tokens)
}

/// Drops LOW_PRIORITY and QUICK behind UPDATE and DELETE, notes IGNORE.
pub(super) fn modifiers(mut tokens: Tokens, parsed: &mut Parsed) -> Tokens {
    loop {
        let Some(word) = tokens.get(1).map(|t| &t.token) else {
            return tokens;
        };
        // A table may be called so: then a table's follower comes next.
        let modifier = ["LOW_PRIORITY", "QUICK", "IGNORE"]
            .iter()
            .any(|name| is_word(word, name));
        let table_name = tokens.get(2).is_some_and(|t| {
            is_word(&t.token, "SET") || is_word(&t.token, "AS") || t.token == Token::Period
        });
        if !modifier || table_name {
            return tokens;
        }
        parsed.ignore |= is_word(word, "IGNORE");
        tokens.remove(1);
    }
}

/// `VALUES(column)` in ON DUPLICATE KEY UPDATE becomes a column of the row alias
/// [`VALUES_ALIAS`].
pub(super) fn new_row_values(mut tokens: Tokens) -> Tokens {
    let start = tokens.windows(4).position(|four| {
        ["ON", "DUPLICATE", "KEY", "UPDATE"]
            .iter()
            .zip(four)
            .all(|(word, token)| is_word(&token.token, word))
    });
    let Some(mut index) = start else {
        return tokens;
    };
    while index + 3 < tokens.len() {
        let call =
            is_word(&tokens[index].token, "VALUES") && tokens[index + 1].token == Token::LParen;
        let close = (index + 3..(index + 8).min(tokens.len()))
            .find(|at| tokens[*at].token == Token::RParen);
        if let (true, Some(close)) = (call, close) {
            let column = tokens[close - 1].clone();
            let span = tokens[index].span;
            let alias = TokenWithSpan {
                token: Token::make_word(VALUES_ALIAS, Some('`')),
                span,
            };
            let period = TokenWithSpan {
                token: Token::Period,
                span,
            };
            tokens.splice(index..=close, [alias, period, column]);
            index += 3;
        } else {
            index += 1;
        }
    }
    tokens
}
