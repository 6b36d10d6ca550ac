//! How tightly operators bind in MySQL; `sqlparser` has PostgreSQL's order.
//!
//! | level | operators, the loosest first |
//! |---|---|
//! | 5, 7, 10 | `OR`, `XOR`, `AND` |
//! | 15 | `NOT` (where HIGH_NOT_PRECEDENCE is set, as `!`) |
//! | 16 | `IS TRUE`, `IS FALSE`, `IS UNKNOWN` |
//! | 18 | `=`, `<`, `<=>` and their kin, `IS NULL` |
//! | 20 | `IN`, `BETWEEN`, `LIKE`, `REGEXP`, `MEMBER OF`: an operand of a comparison |
//! | 21 to 23 | `|`, `&`, `<<` and `>>` |
//! | 30, 40, 45 | `+` and `-`, `*` and `/` and `DIV` and `%`, `^` |
//! | 46 | `||` that concatenates |
//! | 47 | `-x`, `+x`, `~x`, `!x`, `BINARY x` |
//! | 60 | `->`, `->>`, and what is left of `:=` |

use sqlparser::dialect::Precedence;
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::operator::{is_keyword, sounds_like};

/// Of IN, BETWEEN, LIKE and their kin.
pub(super) const PREDICATE: u8 = 20;
/// Of operators before their one operand.
pub(super) const PREFIX: u8 = 47;
const TRUTH_TEST: u8 = 16;
const SHIFT: u8 = 23;
/// Of `||` where it concatenates.
pub(super) const CONCATENATION: u8 = 46;
const TIGHTEST: u8 = 60;

/// The level of a class of operators.
pub(super) fn level(class: Precedence) -> u8 {
    match class {
        Precedence::Or => 5,
        Precedence::Xor => 7,
        Precedence::And => 10,
        Precedence::UnaryNot => 15,
        Precedence::Eq | Precedence::Is => 18,
        Precedence::Between | Precedence::Like => PREDICATE,
        Precedence::Pipe | Precedence::Colon => 21,
        Precedence::Ampersand => 22,
        Precedence::PlusMinus => 30,
        Precedence::MulDivModOp => 40,
        Precedence::Caret => 45,
        Precedence::AtTz => PREFIX,
        Precedence::DoubleColon => 50,
        Precedence::PgOther => TIGHTEST,
        Precedence::Period => 100,
    }
}

/// The level of the operator that comes next, where its class in `sqlparser` does not tell.
pub(super) fn of_next(parser: &Parser) -> Option<u8> {
    if sounds_like(parser) {
        return Some(PREDICATE);
    }
    match &parser.peek_nth_token_ref(0).token {
        Token::ShiftLeft | Token::ShiftRight => Some(SHIFT),
        Token::StringConcat => Some(CONCATENATION),
        Token::Assignment => Some(TIGHTEST),
        token if is_keyword(token, Keyword::IS) => {
            let negated = is_keyword(&parser.peek_nth_token_ref(1).token, Keyword::NOT);
            let tested = &parser.peek_nth_token_ref(1 + usize::from(negated)).token;
            let truths = [Keyword::TRUE, Keyword::FALSE, Keyword::UNKNOWN];
            truths
                .into_iter()
                .any(|truth| is_keyword(tested, truth))
                .then_some(TRUTH_TEST)
        }
        _ => None,
    }
}
