//! Tokens that mean another thing here than in the tokenizer: parameters, operators, quotes, bits.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use super::{Tokens, keyword};
use crate::error::SqlResult;
use crate::parser::depth;
use crate::types::SqlMode;

/// Numbers `?`, gives `||` its meaning under the mode, makes double-quoted text plain text,
/// joins `@` with a quoted name, and keeps the tree shallow.
pub(in crate::parser) fn operators(tokens: Tokens, mode: SqlMode) -> SqlResult<Tokens> {
    let mut out: Tokens = Vec::with_capacity(tokens.len());
    let mut params = 0;
    for mut token in tokens {
        if let Some(operator) = before_variable(&token.token) {
            out.push(TokenWithSpan::new(operator, token.span));
            token.token = Token::make_word("@", None);
        }
        match &token.token {
            Token::Placeholder(_) => {
                token.token = Token::Placeholder(format!("?{params}"));
                params += 1;
            }
            Token::StringConcat if !mode.pipes_as_concat => {
                token.token = keyword("OR", Keyword::OR);
            }
            Token::Overlap => token.token = keyword("AND", Keyword::AND),
            Token::DoubleQuotedString(text) => {
                token.token = Token::SingleQuotedString(text.clone());
            }
            // Names in quotes of either kind are the same tree, whatever the mode was.
            Token::Word(word) if word.quote_style == Some('"') => {
                token.token = Token::make_word(&word.value, Some('`'));
            }
            Token::Word(word) if mode.real_as_float && word.keyword == Keyword::REAL => {
                token.token = keyword("FLOAT", Keyword::FLOAT);
            }
            Token::Word(word) => {
                if let Some(bits) = bits_of_word(word, out.last()) {
                    token.token = Token::SingleQuotedByteStringLiteral(bits.to_owned());
                }
            }
            _ => {}
        }
        if joins_variable(out.last(), &token)
            && let (Some(last), Some(text)) = (out.last_mut(), text_of(&token.token))
        {
            let name = format!("@{text}");
            last.token = Token::make_word(&name, None);
            last.span.end = token.span.end;
            continue;
        }
        out.push(token);
    }
    let out = depth::balance(out);
    depth::check(&out)?;
    Ok(out)
}

/// The digits of `0b101`, which is read as a name; a small `b` only, and no name behind a point.
fn bits_of_word<'a>(word: &'a Word, last: Option<&TokenWithSpan>) -> Option<&'a str> {
    let digits = word.value.strip_prefix("0b")?;
    let is_name =
        word.quote_style.is_some() || last.is_some_and(|last| last.token == Token::Period);
    let are_bits = !digits.is_empty() && digits.bytes().all(|digit| matches!(digit, b'0' | b'1'));
    (are_bits && !is_name).then_some(digits)
}

/// The operator of `a<@b` and `a^@b`, which the tokenizer takes together with the `@` of the variable
/// behind it, for operators that MySQL does not have.
fn before_variable(token: &Token) -> Option<Token> {
    match token {
        Token::ArrowAt => Some(Token::Lt),
        Token::CaretAt => Some(Token::Caret),
        _ => None,
    }
}

/// A lone `@` directly before a name; before one without quotes it comes from [`before_variable`].
fn joins_variable(last: Option<&TokenWithSpan>, token: &TokenWithSpan) -> bool {
    let Some(last) = last else { return false };
    let is_name = matches!(token.token, Token::SingleQuotedString(_) | Token::Word(_));
    is_name
        && last.span.end == token.span.start
        && match &last.token {
            Token::AtSign => true,
            Token::Word(word) => word.value == "@",
            _ => false,
        }
}

fn text_of(token: &Token) -> Option<String> {
    match token {
        Token::SingleQuotedString(text) => Some(text.clone()),
        Token::Word(word) => Some(word.value.clone()),
        _ => None,
    }
}
