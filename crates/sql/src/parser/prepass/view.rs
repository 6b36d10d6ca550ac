//! CREATE VIEW and ALTER VIEW: what stands before VIEW is cut, the text of the query kept.

use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::{Tokens, operators};
use crate::error::{SqlError, SqlResult};
use crate::parser::dialect::ModeDialect;
use crate::parser::words::is_word;
use crate::parser::{Parsed, tokenize};

/// Drops ALGORITHM, DEFINER and SQL SECURITY before VIEW, unwraps a quoted body, keeps its text.
pub(super) fn create_view(
    dialect: &ModeDialect,
    mut tokens: Tokens,
    view: usize,
    parsed: &mut Parsed,
) -> SqlResult<Tokens> {
    let prelude = tokens.iter().take(view).position(|t| {
        ["ALGORITHM", "DEFINER", "SQL"]
            .iter()
            .any(|w| is_word(&t.token, w))
    });
    let mut view = view;
    if let Some(start) = prelude {
        tokens.drain(start..view);
        view = start;
    }
    let body = tokens
        .iter()
        .skip(view)
        .position(|t| is_word(&t.token, "AS"))
        .map(|distance| view + distance + 1);
    let Some(body) = body else { return Ok(tokens) };
    if let Some(Token::SingleQuotedString(text)) = tokens.get(body).map(|t| &t.token) {
        let text = text.trim().trim_matches('"').to_string();
        tokens.truncate(body);
        tokens.extend(operators(tokenize(dialect, &text)?, dialect.mode)?);
        parsed.view_query = Some(text);
        return Ok(tokens);
    }
    let end = tokens.len();
    let ends_with = |words: &[&str]| {
        end >= words.len()
            && words
                .iter()
                .zip(&tokens[end - words.len()..])
                .all(|(word, token)| is_word(&token.token, word))
    };
    if ends_with(&["CHECK", "OPTION"]) {
        return Err(SqlError::not_supported("VIEW … WITH CHECK OPTION"));
    }
    if let Some(token) = tokens.get(body) {
        parsed.view_query = Some(text_from(&parsed.text, token).trim().to_string());
    }
    Ok(tokens)
}

/// The statement's text from `token` on.
fn text_from<'a>(text: &'a str, token: &TokenWithSpan) -> &'a str {
    let start = token.span.start;
    let line_index = usize::try_from(start.line).unwrap_or(1).saturating_sub(1);
    let column = usize::try_from(start.column).unwrap_or(1).saturating_sub(1);
    let before: usize = text
        .split_inclusive('\n')
        .take(line_index)
        .map(str::len)
        .sum();
    let rest = text.get(before..).unwrap_or_default();
    let inside: usize = rest.chars().take(column).map(char::len_utf8).sum();
    rest.get(inside..).unwrap_or_default()
}
