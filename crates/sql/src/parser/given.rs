//! Values in the places of `?`, as the literals that stand for them.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use crate::error::{SqlError, SqlResult};
use crate::types::Value;

/// The tokens of a statement with these values in the places of its `?`.
///
/// # Errors
/// 1210 for another number of values.
pub(super) fn with_values(
    tokens: Vec<TokenWithSpan>,
    values: &[Value],
) -> SqlResult<Vec<TokenWithSpan>> {
    let mut values = values.iter();
    let mut given = Vec::with_capacity(tokens.len());
    for token in tokens {
        if !matches!(token.token, Token::Placeholder(_)) {
            given.push(token);
            continue;
        }
        let value = values.next().ok_or_else(wrong_number)?;
        let literal = literal(value).into_iter();
        given.extend(literal.map(|literal| TokenWithSpan::new(literal, token.span)));
    }
    match values.next() {
        None => Ok(given),
        Some(_) => Err(wrong_number()),
    }
}

fn wrong_number() -> SqlError {
    SqlError::new(1210, "HY000", "Incorrect arguments to EXECUTE")
}

fn literal(value: &Value) -> Vec<Token> {
    let text = || Token::SingleQuotedString(value.to_text().unwrap_or_default());
    match value {
        Value::Null => vec![word("NULL", Keyword::NULL)],
        Value::Int(_) | Value::UInt(_) | Value::Decimal(_) => {
            number(&value.to_text().unwrap_or_default())
        }
        Value::Double(double) => number(&format!("{double:e}")),
        Value::Text(_) | Value::Json(_) => vec![text()],
        Value::Bytes(bytes) => vec![Token::HexStringLiteral(hex::encode(bytes))],
        Value::Date(_) => vec![word("DATE", Keyword::DATE), text()],
        Value::Time(_) => vec![word("TIME", Keyword::TIME), text()],
        Value::DateTime(_) => vec![word("TIMESTAMP", Keyword::TIMESTAMP), text()],
    }
}

fn number(text: &str) -> Vec<Token> {
    let digits = |digits: &str| Token::Number(digits.to_owned(), false);
    match text.strip_prefix('-') {
        Some(positive) => vec![Token::Minus, digits(positive)],
        None => vec![digits(text)],
    }
}

fn word(text: &str, keyword: Keyword) -> Token {
    Token::Word(Word {
        value: text.to_owned(),
        quote_style: None,
        keyword,
    })
}
