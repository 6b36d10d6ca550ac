//! Annotations of ownership in CREATE TABLE, and the rules of what GET and DEL mean.

use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::table::ordered_keys;
use super::{Tokens, keyword};
use crate::catalog::OwnershipAnnotation;
use crate::error::SqlResult;
use crate::parser::dialect::ModeDialect;
use crate::parser::ownership::LINKS;
use crate::parser::words::is_word;
use crate::parser::{Parsed, message, ownership};

/// Notes annotations and leaves plain REFERENCES; cuts ON GET and ON DEL items.
///
/// # Errors
/// 1064 for a rule that is none.
pub(super) fn annotations(
    dialect: &ModeDialect,
    tokens: &[TokenWithSpan],
    parsed: &mut Parsed,
) -> SqlResult<Tokens> {
    let mut out: Tokens = Vec::with_capacity(tokens.len());
    let mut index = 0;
    while let Some(token) = tokens.get(index) {
        if index == 1 && is_word(&token.token, "DATA_SUBJECT") {
            parsed.annotations.data_subject = true;
            index += 1;
            continue;
        }
        let rest = tokens.get(index..).unwrap_or_default();
        if begins_rule(rest) {
            let end = end_of_item(tokens, index + 1);
            let rule = tokens.get(index + 1..end).unwrap_or_default();
            let mut parser = Parser::new(dialect).with_tokens_with_locations(rule.to_vec());
            let rule = ownership::rule_of_all(&mut parser)
                .map_err(|error| message::from_parser(&error, &parsed.text))?;
            parsed.annotations.rules.push(rule);
            index = end;
            continue;
        }
        if begins_retention(rest) {
            let end = end_of_item(tokens, index + 1);
            let item = tokens.get(index + 1..end).unwrap_or_default();
            let mut parser = Parser::new(dialect).with_tokens_with_locations(item.to_vec());
            let retention = ownership::retention_of_all(&mut parser)
                .map_err(|error| message::from_parser(&error, &parsed.text))?;
            if parsed.annotations.retention.replace(retention).is_some() {
                let text = "RETAIN FOR stands twice: a table has one";
                return Err(crate::error::SqlError::new(51003, "HY000", text));
            }
            index = end;
            continue;
        }
        // Where an item begins, the word is the name of a column.
        let names_column = matches!(
            out.last().map(|t| &t.token),
            Some(Token::Comma | Token::LParen)
        );
        match annotation(rest).filter(|_| !names_column) {
            Some((annotation, words)) => {
                note(annotation, words, rest, token, parsed, &mut out);
                index += words;
            }
            None => {
                out.push(token.clone());
                index += 1;
            }
        }
    }
    Ok(out)
}

/// As [`annotations`] for ALTER TABLE: only links and ORDERED, and none where a column is named.
pub(in crate::parser) fn links_of_alter(tokens: Tokens, parsed: &mut Parsed) -> Tokens {
    let begins = |at: usize, word: &str| tokens.get(at).is_some_and(|t| is_word(&t.token, word));
    if !begins(0, "ALTER") || !begins(1, "TABLE") {
        return tokens;
    }
    let tokens = ordered_keys(tokens);
    let is = |at: usize, words: &[&str]| {
        let token = tokens.get(at).map(|t| &t.token);
        token.is_some_and(|token| words.iter().any(|word| is_word(token, word)))
    };
    let mut out: Tokens = Vec::with_capacity(tokens.len());
    let mut index = 0;
    while let Some(token) = tokens.get(index) {
        let before = index.checked_sub(1);
        let names_column = before.is_none_or(|before| {
            let token = tokens.get(before).map(|t| &t.token);
            matches!(token, Some(Token::Comma | Token::LParen | Token::Period))
                || is(
                    before,
                    &[
                        "ADD", "DROP", "COLUMN", "MODIFY", "CHANGE", "AFTER", "TO", "TABLE",
                    ],
                )
        });
        let is_new_name = index
            .checked_sub(2)
            .is_some_and(|at| is(at, &["CHANGE", "COLUMN"]));
        let rest = tokens.get(index..).unwrap_or_default();
        let found = annotation(rest).filter(|_| !names_column && !is_new_name);
        match found {
            Some((annotation, words)) => {
                note(annotation, words, rest, token, parsed, &mut out);
                index += words;
            }
            None => {
                out.push(token.clone());
                index += 1;
            }
        }
    }
    out
}

/// Leaves a plain REFERENCES of the `words` that `rest` begins with.
fn note(
    annotation: OwnershipAnnotation,
    words: usize,
    rest: &[TokenWithSpan],
    token: &TokenWithSpan,
    parsed: &mut Parsed,
    out: &mut Tokens,
) {
    out.push(TokenWithSpan {
        token: keyword("REFERENCES", Keyword::REFERENCES),
        span: token.span,
    });
    if let Some(table) = rest.get(words) {
        let start = table.span.start;
        let place = (start.line, start.column);
        parsed.annotations.references.push((place, annotation));
    }
}

/// `, ON GET` or `, ON DEL`.
fn begins_rule(tokens: &[TokenWithSpan]) -> bool {
    let [comma, on, verb, ..] = tokens else {
        return false;
    };
    comma.token == Token::Comma
        && is_word(&on.token, "ON")
        && (is_word(&verb.token, "GET") || is_word(&verb.token, "DEL"))
}

/// `, RETAIN FOR`.
fn begins_retention(tokens: &[TokenWithSpan]) -> bool {
    let [comma, retain, word, ..] = tokens else {
        return false;
    };
    comma.token == Token::Comma && is_word(&retain.token, "RETAIN") && is_word(&word.token, "FOR")
}

/// The annotation that `tokens` begin with, and of how many words it is: an own word, alone or
/// beside REFERENCES, or REFERENCES, alone or with ONLY. The table's name follows.
fn annotation(tokens: &[TokenWithSpan]) -> Option<(OwnershipAnnotation, usize)> {
    let at = |index: usize| tokens.get(index).map(|t| &t.token);
    let is = |index, word| at(index).is_some_and(|token| is_word(token, word));
    let is_named = |index| matches!(at(index), Some(Token::Word(_)));
    if let Some(annotation) = at(0).and_then(link).filter(|_| is_named(1)) {
        let words = if is(1, "REFERENCES") { 2 } else { 1 };
        return Some((annotation, words));
    }
    if !is(0, "REFERENCES") {
        return None;
    }
    if is(1, "ONLY") && is_named(2) {
        return Some((OwnershipAnnotation::ReferencesOnly, 2));
    }
    let inner = at(1).and_then(link).filter(|_| is_named(2));
    Some(inner.map_or((OwnershipAnnotation::References, 1), |inner| (inner, 2)))
}

/// The annotation a word stands for.
fn link(token: &Token) -> Option<OwnershipAnnotation> {
    LINKS
        .into_iter()
        .find(|(word, _)| is_word(token, word))
        .map(|(_, annotation)| annotation)
}

/// Where the item that begins at `start` ends.
fn end_of_item(tokens: &[TokenWithSpan], start: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(start) {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => return index,
            Token::RParen => depth -= 1,
            Token::Comma if depth == 0 => return index,
            _ => {}
        }
    }
    tokens.len()
}
