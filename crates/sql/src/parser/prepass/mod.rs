//! Token rewriting: what `sqlparser` has no word for is lifted out or put in words it knows.

mod annotation;
mod operators;
mod query;
mod table;
mod view;

pub(super) use annotation::links_of_alter;
pub(super) use operators::operators;

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use super::Parsed;
use super::dialect::ModeDialect;
use super::words::is_word;
use crate::error::SqlResult;
use query::{into_clause, modifiers, new_row_values};
use table::{create_index, create_table, ordered_keys, without_algorithm};
use view::create_view;

type Tokens = Vec<TokenWithSpan>;

/// `?` in the statement.
pub(super) fn count_params(tokens: &[TokenWithSpan]) -> usize {
    tokens
        .iter()
        .filter(|token| matches!(token.token, Token::Placeholder(_)))
        .count()
}

fn keyword(text: &str, keyword: Keyword) -> Token {
    Token::Word(Word {
        value: text.into(),
        quote_style: None,
        keyword,
    })
}

/// How many tokens before the statement that is explained: `EXPLAIN FORMAT = TREE` and its kin;
/// 0 where nothing is explained.
pub(super) fn explain_length(tokens: &[TokenWithSpan]) -> usize {
    let is = |at: usize, words: &[&str]| {
        let token = tokens.get(at).map(|t| &t.token);
        token.is_some_and(|token| words.iter().any(|word| is_word(token, word)))
    };
    if !is(0, &["EXPLAIN", "DESCRIBE", "DESC"]) {
        return 0;
    }
    let mut at = 1;
    if is(at, &["ANALYZE"]) {
        at += 1;
    }
    if is(at, &["FORMAT"]) && tokens.get(at + 1).is_some_and(|t| t.token == Token::Eq) {
        at += 3;
    }
    let explains = is(
        at,
        &["SELECT", "WITH", "INSERT", "REPLACE", "UPDATE", "DELETE"],
    );
    if explains { at } else { 0 }
}

/// How many tokens before an UPDATE or DELETE that a WITH stands before; 0 where none does.
pub(super) fn with_length(tokens: &[TokenWithSpan]) -> usize {
    if !tokens.first().is_some_and(|t| is_word(&t.token, "WITH")) {
        return 0;
    }
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate() {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            word if depth == 0 && is_word(word, "SELECT") => return 0,
            word if depth == 0 && (is_word(word, "UPDATE") || is_word(word, "DELETE")) => {
                return index;
            }
            _ => {}
        }
    }
    0
}

/// Lifts out what belongs beside the tree, by kind of statement.
pub(super) fn lift(
    dialect: &ModeDialect,
    tokens: Tokens,
    parsed: &mut Parsed,
) -> SqlResult<Tokens> {
    if explain_length(&tokens) > 0 {
        let mut tokens = without_default_format(tokens);
        let inner = tokens.split_off(explain_length(&tokens));
        tokens.extend(lift(dialect, inner, parsed)?);
        return Ok(tokens);
    }
    if with_length(&tokens) > 0 {
        let mut tokens = tokens;
        let inner = tokens.split_off(with_length(&tokens));
        tokens.extend(lift(dialect, inner, parsed)?);
        return Ok(tokens);
    }
    let at = |index: usize, word: &str| tokens.get(index).is_some_and(|t| is_word(&t.token, word));
    if at(0, "CREATE") {
        let table = (1..4).find(|index| at(*index, "TABLE"));
        let view = (1..16).find(|index| at(*index, "VIEW"));
        let index = (1..4).find(|index| at(*index, "INDEX"));
        return match (table, view, index) {
            (Some(_), _, _) => create_table(dialect, tokens, parsed),
            (None, Some(view), _) => create_view(dialect, tokens, view, parsed),
            (None, None, Some(_)) => create_index(ordered_keys(tokens)),
            _ => Ok(tokens),
        };
    }
    if at(0, "ALTER") {
        let view = (1..16).find(|index| at(*index, "VIEW"));
        return match view {
            Some(view) => create_view(dialect, tokens, view, parsed),
            None => Ok(tokens),
        };
    }
    if at(0, "DROP") && at(1, "INDEX") {
        return Ok(without_algorithm(tokens));
    }
    if at(0, "UPDATE") || at(0, "DELETE") {
        return Ok(modifiers(tokens, parsed));
    }
    if at(0, "INSERT") {
        return Ok(new_row_values(tokens));
    }
    if at(0, "SELECT") || at(0, "WITH") {
        return into_clause(dialect, tokens, parsed);
    }
    if at(0, "EXPLAIN") || at(0, "DESCRIBE") || at(0, "DESC") {
        return Ok(without_default_format(tokens));
    }
    Ok(tokens)
}

/// Drops `FORMAT = TRADITIONAL` behind EXPLAIN: it is the default, and `sqlparser` reads every
/// format but this one.
fn without_default_format(mut tokens: Tokens) -> Tokens {
    let is = |at: usize, word: &str| tokens.get(at).is_some_and(|t| is_word(&t.token, word));
    let named = tokens.get(2).is_some_and(|t| t.token == Token::Eq);
    if is(1, "FORMAT") && named && is(3, "TRADITIONAL") {
        tokens.drain(1..4);
    }
    tokens
}
