//! Column options that `sqlparser`'s MySQL dialect misses.

use sqlparser::ast::{ColumnOption, Ident, ObjectName};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::words::{peek_is, take};

/// `CHARSET x` and `VISIBLE`; everything else is left to `sqlparser`.
pub(super) fn option(
    parser: &mut Parser,
) -> Result<Option<Result<Option<ColumnOption>, ParserError>>, ParserError> {
    if take(parser, "CHARSET") {
        let name = parser.parse_object_name(false)?;
        return Ok(Some(Ok(Some(ColumnOption::CharacterSet(name)))));
    }
    if peek_is(parser, "COLLATE") {
        take(parser, "COLLATE");
        let name = match parser.next_token().token {
            Token::Word(word) => word.value,
            Token::SingleQuotedString(text) => text,
            _ => {
                parser.prev_token();
                return parser.expected("collation name", parser.peek_token());
            }
        };
        let name = ObjectName::from(vec![Ident::new(name)]);
        return Ok(Some(Ok(Some(ColumnOption::Collation(name)))));
    }
    if take(parser, "VISIBLE") {
        return Ok(Some(parser.parse_optional_column_option()));
    }
    Ok(None)
}
