//! Annotations of ownership in CREATE TABLE, and the rules of what GET and DEL mean.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::{Tokens, keyword};
use crate::catalog::OwnershipAnnotation;
use crate::parser::Parsed;
use crate::parser::words::is_word;

/// Notes annotations and leaves plain REFERENCES; cuts ON GET and ON DEL items.
pub(super) fn annotations(tokens: &[TokenWithSpan], parsed: &mut Parsed) -> Tokens {
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
            index = cut_rule(tokens, index + 1, parsed);
            continue;
        }
        // Where an item begins, the word is the name of a column.
        let names_column = matches!(
            out.last().map(|t| &t.token),
            Some(Token::Comma | Token::LParen)
        );
        match annotation(rest).filter(|_| !names_column) {
            Some((annotation, words)) => {
                out.push(TokenWithSpan {
                    token: keyword("REFERENCES", Keyword::REFERENCES),
                    span: token.span,
                });
                if let Some(table) = rest.get(words) {
                    let start = table.span.start;
                    let place = (start.line, start.column);
                    parsed.annotations.references.push((place, annotation));
                }
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

/// `, ON GET` or `, ON DEL`.
fn begins_rule(tokens: &[TokenWithSpan]) -> bool {
    let [comma, on, verb, ..] = tokens else {
        return false;
    };
    comma.token == Token::Comma
        && is_word(&on.token, "ON")
        && (is_word(&verb.token, "GET") || is_word(&verb.token, "DEL"))
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
    [
        ("OWNED_BY", OwnershipAnnotation::OwnedBy),
        ("OWNS", OwnershipAnnotation::Owns),
        ("ACCESSED_BY", OwnershipAnnotation::AccessedBy),
        ("ACCESSES", OwnershipAnnotation::Accesses),
    ]
    .into_iter()
    .find(|(word, _)| is_word(token, word))
    .map(|(_, annotation)| annotation)
}

/// Cuts one `ON GET … | ON DEL …` item that begins at `start`; where the next item begins.
fn cut_rule(tokens: &[TokenWithSpan], start: usize, parsed: &mut Parsed) -> usize {
    let mut depth = 0_usize;
    let mut words = Vec::new();
    let mut index = start;
    while let Some(token) = tokens.get(index) {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => break,
            Token::RParen => depth -= 1,
            Token::Comma if depth == 0 => break,
            _ => {}
        }
        words.push(token.token.to_string());
        index += 1;
    }
    parsed.annotations.rules.push(words.join(" "));
    index
}
