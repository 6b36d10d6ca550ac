//! Column options that `sqlparser`'s MySQL dialect misses.

use sqlparser::ast::{ColumnOption, Ident, ObjectName};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::words::{peek_is, take};

/// The word that stands in the options for the attribute BINARY of a character column.
const BINARY: &str = "BINARY";

/// Whether the option is the attribute BINARY: the `_bin` collation of the character set.
pub(crate) fn is_binary_attribute(option: &ColumnOption) -> bool {
    matches!(option, ColumnOption::DialectSpecific(tokens)
        if matches!(tokens.as_slice(), [Token::Word(word)] if word.keyword == Keyword::BINARY))
}

/// The word that stands in the options for the attribute ZEROFILL of a column of numbers.
const ZEROFILL: &str = "ZEROFILL";

/// Whether the option is the attribute ZEROFILL.
pub(crate) fn is_zerofill_attribute(option: &ColumnOption) -> bool {
    is_word(option, ZEROFILL)
}

/// The word for a column that is blinded in keys whatever its type.
const PERSONAL: &str = "PERSONAL";

/// Whether the option is PERSONAL.
pub(crate) fn is_personal_attribute(option: &ColumnOption) -> bool {
    is_word(option, PERSONAL)
}

/// The word for the column of people that says where they are at home.
const HOME_REGION: &str = "HOME_REGION";

/// Whether the option is HOME_REGION.
pub(crate) fn is_home_region_attribute(option: &ColumnOption) -> bool {
    is_word(option, HOME_REGION)
}

/// Whether the option is the attribute that [`attribute`] makes of this word.
fn is_word(option: &ColumnOption, wanted: &str) -> bool {
    matches!(option, ColumnOption::DialectSpecific(tokens)
        if matches!(tokens.as_slice(), [Token::Word(word)] if word.value == wanted))
}

/// An attribute of one word, as it stands in the options.
fn attribute(word: &str) -> ColumnOption {
    ColumnOption::DialectSpecific(vec![Token::make_keyword(word)])
}

/// `CHARSET x`, `BINARY`, `VISIBLE`, `ZEROFILL`, `PERSONAL` and `HOME_REGION`; everything else is left to `sqlparser`.
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
    for word in [BINARY, PERSONAL, HOME_REGION] {
        if take(parser, word) {
            return Ok(Some(Ok(Some(attribute(word)))));
        }
    }
    if take(parser, ZEROFILL) {
        // A column that is filled up is unsigned, whether the word follows or not.
        take(parser, "UNSIGNED");
        return Ok(Some(Ok(Some(attribute(ZEROFILL)))));
    }
    if take(parser, "VISIBLE") {
        return Ok(Some(parser.parse_optional_column_option()));
    }
    Ok(None)
}
