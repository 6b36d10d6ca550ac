//! Operators and calls `sqlparser` reads otherwise than MySQL, or not at all.

use sqlparser::ast::{
    BinaryOperator, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentList, FunctionArguments, Ident, ObjectName, UnaryOperator, Value,
};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::precedence::{CONCATENATION, PREDICATE, PREFIX};
use crate::types::SqlMode;

type Parsed = Option<Result<Expr, ParserError>>;

pub(super) fn is_keyword(token: &Token, keyword: Keyword) -> bool {
    matches!(token, Token::Word(word) if word.keyword == keyword && word.quote_style.is_none())
}

fn keyword_at(parser: &Parser, place: usize, keyword: Keyword) -> bool {
    is_keyword(&parser.peek_nth_token_ref(place).token, keyword)
}

/// What begins with an operator, BINARY, CHAR, ROW or TRIM.
pub(super) fn prefix(parser: &mut Parser, mode: SqlMode) -> Parsed {
    if let Some(operators) = prefix_operators(&parser.peek_nth_token_ref(0).token) {
        parser.advance_token();
        return Some(parser.parse_subexpr(PREFIX).map(|operand| {
            let apply = |operand, op: &UnaryOperator| Expr::UnaryOp {
                op: *op,
                expr: Box::new(operand),
            };
            operators.iter().rev().fold(operand, apply)
        }));
    }
    if mode.high_not_precedence
        && keyword_at(parser, 0, Keyword::NOT)
        && !keyword_at(parser, 1, Keyword::EXISTS)
    {
        parser.advance_token();
        // In brackets, as other modes have to write it.
        return Some(parser.parse_subexpr(PREFIX).map(|operand| {
            Expr::Nested(Box::new(Expr::UnaryOp {
                op: UnaryOperator::Not,
                expr: Box::new(operand),
            }))
        }));
    }
    if keyword_at(parser, 0, Keyword::ROW) && parser.peek_nth_token_ref(1).token == Token::LParen {
        parser.advance_token();
        return Some(row(parser));
    }
    if keyword_at(parser, 0, Keyword::BINARY) {
        parser.advance_token();
        return Some(binary(parser));
    }
    if keyword_at(parser, 0, Keyword::CHAR) && char_has_using(parser) {
        return Some(char_using(parser));
    }
    let sides = [Keyword::BOTH, Keyword::LEADING, Keyword::TRAILING];
    if keyword_at(parser, 0, Keyword::TRIM)
        && parser.peek_nth_token_ref(1).token == Token::LParen
        && sides.into_iter().any(|side| keyword_at(parser, 2, side))
        && keyword_at(parser, 3, Keyword::FROM)
    {
        return Some(trim_spaces(parser));
    }
    None
}

/// The operators a token stands for where an operand begins, as they are written.
fn prefix_operators(token: &Token) -> Option<&'static [UnaryOperator]> {
    use UnaryOperator::{BangNot, BitwiseNot, Minus, Plus};
    match token {
        Token::Minus => Some(&[Minus]),
        Token::Plus => Some(&[Plus]),
        Token::Tilde => Some(&[BitwiseNot]),
        Token::ExclamationMark => Some(&[BangNot]),
        Token::DoubleExclamationMark => Some(&[BangNot, BangNot]),
        Token::ExclamationMarkTilde => Some(&[BangNot, BitwiseNot]),
        _ => None,
    }
}

/// `ROW(a, b, …)`, behind the word: the same as `(a, b, …)`.
fn row(parser: &mut Parser) -> Result<Expr, ParserError> {
    parser.expect_token(&Token::LParen)?;
    let mut items = vec![parser.parse_expr()?];
    parser.expect_token(&Token::Comma)?;
    items.extend(parser.parse_comma_separated(Parser::parse_expr)?);
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::Tuple(items))
}

/// `TRIM(LEADING FROM x)` and its kin, which name no characters.
fn trim_spaces(parser: &mut Parser) -> Result<Expr, ParserError> {
    parser.expect_keyword(Keyword::TRIM)?;
    parser.expect_token(&Token::LParen)?;
    let side = parser.parse_trim_where()?;
    parser.expect_keyword(Keyword::FROM)?;
    let text = parser.parse_expr()?;
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::Trim {
        expr: Box::new(text),
        trim_where: Some(side),
        trim_what: None,
        trim_characters: None,
    })
}

/// `BINARY x`: only the operand behind it, not all of the expression.
fn binary(parser: &mut Parser) -> Result<Expr, ParserError> {
    Ok(Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(parser.parse_subexpr(PREFIX)?),
        data_type: DataType::Binary(None),
        format: None,
    })
}

/// Whether the bracket behind CHAR holds a USING of its own.
fn char_has_using(parser: &Parser) -> bool {
    if parser.peek_nth_token_ref(1).token != Token::LParen {
        return false;
    }
    let mut brackets = 0_usize;
    for place in 2.. {
        match &parser.peek_nth_token_ref(place).token {
            Token::LParen => brackets += 1,
            Token::RParen if brackets == 0 => return false,
            Token::RParen => brackets -= 1,
            Token::EOF => return false,
            token if brackets == 0 && is_keyword(token, Keyword::USING) => return true,
            _ => {}
        }
    }
    false
}

/// `CHAR(n, … USING charset)`: CHAR gives bytes, which the character set then reads.
fn char_using(parser: &mut Parser) -> Result<Expr, ParserError> {
    parser.expect_keyword(Keyword::CHAR)?;
    parser.expect_token(&Token::LParen)?;
    let arguments = parser.parse_comma_separated(Parser::parse_expr)?;
    parser.expect_keyword(Keyword::USING)?;
    let charset = parser.parse_identifier()?;
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::Convert {
        is_try: false,
        expr: Box::new(call("CHAR", arguments)),
        data_type: None,
        charset: Some(ObjectName::from(vec![charset])),
        target_before_value: false,
        styles: Vec::new(),
    })
}

/// Whether SOUNDS LIKE follows.
pub(super) fn sounds_like(parser: &Parser) -> bool {
    let sounds = matches!(
        &parser.peek_nth_token_ref(0).token,
        Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("SOUNDS")
    );
    sounds && keyword_at(parser, 1, Keyword::LIKE)
}

/// `:=`, whose right side is all that follows; `||` that concatenates; SOUNDS LIKE; LIKE where the
/// mode gives it another meaning; and `[NOT] REGEXP NULL`, whose NULL
/// `sqlparser` takes for `IS [NOT] NULL`'s.
pub(super) fn infix(parser: &mut Parser, left: &Expr, mode: SqlMode) -> Parsed {
    if parser.consume_token(&Token::Assignment) {
        return Some(parser.parse_expr().map(|value| Expr::BinaryOp {
            left: Box::new(left.clone()),
            op: BinaryOperator::Assignment,
            right: Box::new(value),
        }));
    }
    if sounds_like(parser) {
        parser.advance_token();
        parser.advance_token();
        return Some(parser.parse_subexpr(PREDICATE).map(|right| Expr::BinaryOp {
            left: Box::new(call("SOUNDEX", vec![left.clone()])),
            op: BinaryOperator::Eq,
            right: Box::new(call("SOUNDEX", vec![right])),
        }));
    }
    if parser.consume_token(&Token::StringConcat) {
        let right = parser.parse_subexpr(CONCATENATION);
        return Some(right.map(|right| call("CONCAT", vec![left.clone(), right])));
    }
    let negated = keyword_at(parser, 0, Keyword::NOT);
    let place = usize::from(negated);
    if mode.like_without_escape && keyword_at(parser, place, Keyword::LIKE) {
        (0..=place).for_each(|_| parser.advance_token());
        return Some(like_without_escape(parser, left, negated));
    }
    let regexp = keyword_at(parser, place, Keyword::REGEXP);
    if (regexp || keyword_at(parser, place, Keyword::RLIKE))
        && keyword_at(parser, place + 1, Keyword::NULL)
    {
        (0..=place).for_each(|_| parser.advance_token());
        return Some(parser.parse_subexpr(PREDICATE).map(|pattern| Expr::RLike {
            negated,
            expr: Box::new(left.clone()),
            pattern: Box::new(pattern),
            regexp,
        }));
    }
    None
}

/// What follows LIKE where no character escapes unless ESCAPE names one: the tree says so.
fn like_without_escape(
    parser: &mut Parser,
    left: &Expr,
    negated: bool,
) -> Result<Expr, ParserError> {
    let pattern = parser.parse_subexpr(PREDICATE)?;
    let none = || Expr::value(Value::SingleQuotedString(String::new()));
    let escape = parser.parse_escape_char()?;
    Ok(Expr::Like {
        negated,
        any: false,
        expr: Box::new(left.clone()),
        pattern: Box::new(pattern),
        escape_char: Some(escape.unwrap_or_else(|| Box::new(none()))),
    })
}

fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    let unnamed = |expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr));
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: arguments.into_iter().map(unnamed).collect(),
            clauses: Vec::new(),
        }),
        within_group: Vec::new(),
        filter: None,
        null_treatment: None,
        over: None,
    })
}
