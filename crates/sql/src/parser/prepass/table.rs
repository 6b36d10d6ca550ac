//! CREATE TABLE and indexes: options behind the definitions are taken or dropped, indexes of other
//! kinds refused.

use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::annotation::annotations;
use super::{Tokens, keyword};
use crate::error::{SqlError, SqlResult};
use crate::parser::dialect::ModeDialect;
use crate::parser::words::is_word;
use crate::parser::{Parsed, alter, message};

/// Annotations, FULLTEXT refused, options behind the bracket.
pub(super) fn create_table(
    dialect: &ModeDialect,
    tokens: Tokens,
    parsed: &mut Parsed,
) -> SqlResult<Tokens> {
    let mut tokens = annotations(dialect, &tokens, parsed)?;
    let Some(close) = closing_bracket(&tokens) else {
        return Ok(tokens);
    };
    let rest = tokens.split_off(close);
    tokens = ordered_keys(tokens);
    let close = tokens.len();
    tokens.extend(rest);
    refuse_special_indexes(&tokens[..close])?;
    let mut parser = Parser::new(dialect).with_tokens_with_locations(tokens[close + 1..].to_vec());
    let mut taken = 0;
    loop {
        let option = alter::option(&mut parser)
            .map_err(|error| message::from_parser(&error, &parsed.text))?;
        let Some(option) = option else { break };
        parsed.table_options.push(option);
        taken = parser.index();
        let _ = parser.consume_token(&Token::Comma);
    }
    if tokens
        .get(close + 1 + taken)
        .is_some_and(|t| is_word(&t.token, "PARTITION"))
    {
        return Err(SqlError::not_supported("PARTITION BY"));
    }
    tokens.drain(close + 1..close + 1 + taken);
    Ok(tokens)
}

/// Position of the bracket that closes the first one.
fn closing_bracket(tokens: &[TokenWithSpan]) -> Option<usize> {
    let open = tokens.iter().position(|t| t.token == Token::LParen)?;
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => {
                depth -= 1;
                if depth == 0 {
                    return Some(index);
                }
            }
            _ => {}
        }
    }
    None
}

fn refuse_special_indexes(tokens: &[TokenWithSpan]) -> SqlResult<()> {
    for pair in tokens.windows(2) {
        let [before, token] = pair else { continue };
        if matches!(before.token, Token::Comma | Token::LParen) {
            for feature in ["FULLTEXT", "SPATIAL"] {
                if is_word(&token.token, feature) {
                    return Err(SqlError::not_supported(feature));
                }
            }
        }
    }
    Ok(())
}

/// Puts ORDERED behind a key in words that `sqlparser` knows: USING ORDERED.
pub(super) fn ordered_keys(tokens: Tokens) -> Tokens {
    let mut out: Tokens = Vec::with_capacity(tokens.len());
    for token in tokens {
        let before = out.last().map(|before| &before.token);
        let ends_key = before.is_some_and(|before| {
            matches!(before, Token::RParen | Token::SingleQuotedString(_))
                || is_word(before, "BTREE")
                || is_word(before, "HASH")
        });
        if ends_key && is_word(&token.token, "ORDERED") {
            out.push(TokenWithSpan {
                token: keyword("USING", Keyword::USING),
                span: token.span,
            });
        }
        out.push(token);
    }
    out
}

pub(super) fn create_index(tokens: Tokens) -> SqlResult<Tokens> {
    for feature in ["FULLTEXT", "SPATIAL"] {
        if tokens.get(1).is_some_and(|t| is_word(&t.token, feature)) {
            return Err(SqlError::not_supported(feature));
        }
    }
    Ok(without_algorithm(tokens))
}

/// Drops trailing `ALGORITHM [=] x` and `LOCK [=] x`.
pub(super) fn without_algorithm(mut tokens: Tokens) -> Tokens {
    loop {
        let cut = (2..=3).find(|length| {
            tokens.len() > *length && {
                let start = &tokens[tokens.len() - length];
                let eq = *length == 2 || tokens[tokens.len() - 2].token == Token::Eq;
                eq && (is_word(&start.token, "ALGORITHM") || is_word(&start.token, "LOCK"))
            }
        });
        match cut {
            Some(length) => tokens.truncate(tokens.len() - length),
            None => return tokens,
        }
    }
}
