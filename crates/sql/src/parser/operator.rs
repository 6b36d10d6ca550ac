//! Operators and calls `sqlparser` reads otherwise than MySQL, or not at all.

use sqlparser::ast::{
    BinaryOperator, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentList, FunctionArguments, Ident, ObjectName,
};
use sqlparser::dialect::{Dialect, MySqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

type Parsed = Option<Result<Expr, ParserError>>;

/// Binds tighter than any operator between two operands.
fn tight() -> u8 {
    MySqlDialect {}.prec_value(Precedence::AtTz)
}

fn like() -> u8 {
    MySqlDialect {}.prec_value(Precedence::Like)
}

fn is_keyword(token: &Token, keyword: Keyword) -> bool {
    matches!(token, Token::Word(word) if word.keyword == keyword && word.quote_style.is_none())
}

fn keyword_at(parser: &Parser, place: usize, keyword: Keyword) -> bool {
    is_keyword(&parser.peek_nth_token_ref(place).token, keyword)
}

/// What begins with BINARY, CHAR or TRIM.
pub(super) fn prefix(parser: &mut Parser) -> Parsed {
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
        expr: Box::new(parser.parse_subexpr(tight())?),
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

/// SOUNDS LIKE, and `[NOT] REGEXP NULL`, whose NULL `sqlparser` takes for `IS [NOT] NULL`'s.
pub(super) fn infix(parser: &mut Parser, left: &Expr) -> Parsed {
    if sounds_like(parser) {
        parser.advance_token();
        parser.advance_token();
        return Some(parser.parse_subexpr(like()).map(|right| Expr::BinaryOp {
            left: Box::new(call("SOUNDEX", vec![left.clone()])),
            op: BinaryOperator::Eq,
            right: Box::new(call("SOUNDEX", vec![right])),
        }));
    }
    let negated = keyword_at(parser, 0, Keyword::NOT);
    let place = usize::from(negated);
    let regexp = keyword_at(parser, place, Keyword::REGEXP);
    if (regexp || keyword_at(parser, place, Keyword::RLIKE))
        && keyword_at(parser, place + 1, Keyword::NULL)
    {
        (0..=place).for_each(|_| parser.advance_token());
        return Some(parser.parse_subexpr(like()).map(|pattern| Expr::RLike {
            negated,
            expr: Box::new(left.clone()),
            pattern: Box::new(pattern),
            regexp,
        }));
    }
    None
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
