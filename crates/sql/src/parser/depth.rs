//! Keeps trees shallow, since every room below walks them by recursion on a thread's stack.
//!
//! Long chains of OR and AND, which programs write, are bracketed into balanced trees (both are
//! associative, and evaluation order stays). What is deep all the same is refused.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use super::message;
use crate::error::SqlResult;

/// Operators of one kind in a row beyond which a chain is bracketed.
const CHAIN_MAX: usize = 32;
/// Other operators open at one place of a statement.
const OPERATORS_MAX: usize = 250;
/// Brackets and CASEs open at one place.
const BRACKETS_MAX: usize = 100;
/// Queries inside queries.
const QUERIES_MAX: usize = 30;
/// UNIONs in one statement. A chain of them is a tree as deep as it is long, and some statements
/// copy trees by recursion.
const UNIONS_MAX: usize = 128;
/// UNIONs in a SELECT without WITH, which is never copied: TypeORM asks about the tables of a
/// database with one SELECT each.
const PLAIN_UNIONS_MAX: usize = 1024;
/// Tables of one join, MySQL's limit; joins without ON become a tree as deep as they are many.
const TABLES_MAX: usize = 61;
/// Joins open at one place.
const JOINS_MAX: usize = 183;

fn keyword(token: &Token) -> Option<Keyword> {
    match token {
        Token::Word(Word {
            quote_style: None,
            keyword,
            ..
        }) => Some(*keyword),
        _ => None,
    }
}

/// AND and OR of one stretch of a bracket level.
#[derive(Default)]
struct Stretch {
    ors: Vec<usize>,
    ands: Vec<usize>,
}

/// Brackets long chains.
pub(super) fn balance(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let connectives = tokens
        .iter()
        .filter(|t| matches!(keyword(&t.token), Some(Keyword::AND | Keyword::OR)))
        .count();
    if connectives <= CHAIN_MAX {
        return tokens;
    }
    let mut brackets = vec![(0_usize, 0_usize); tokens.len()];
    let mut levels = vec![Stretch::default()];
    for (index, token) in tokens.iter().enumerate() {
        match &token.token {
            Token::LParen => levels.push(Stretch::default()),
            Token::RParen => {
                if levels.len() > 1
                    && let Some(level) = levels.pop()
                {
                    close(&level, &mut brackets);
                }
            }
            other => {
                let Some(level) = levels.last_mut() else {
                    continue;
                };
                match keyword(other) {
                    Some(Keyword::OR) => level.ors.push(index),
                    Some(Keyword::AND) => level.ands.push(index),
                    kind if matches!(other, Token::Comma | Token::Assignment)
                        || kind.is_some_and(breaks) =>
                    {
                        close(&std::mem::take(level), &mut brackets);
                    }
                    _ => {}
                }
            }
        }
    }
    for level in &levels {
        close(level, &mut brackets);
    }
    let mut out = Vec::with_capacity(tokens.len() + connectives * 2);
    for (token, (opened, closed)) in tokens.into_iter().zip(brackets) {
        let span = token.span;
        let bracket = |token| TokenWithSpan { token, span };
        out.extend((0..closed).map(|_| bracket(Token::RParen)));
        out.extend((0..opened).map(|_| bracket(Token::LParen)));
        out.push(token);
    }
    out
}

/// Words behind which another expression may begin, or which give AND another meaning.
fn breaks(keyword: Keyword) -> bool {
    matches!(
        keyword,
        Keyword::SELECT
            | Keyword::FROM
            | Keyword::WHERE
            | Keyword::GROUP
            | Keyword::HAVING
            | Keyword::ORDER
            | Keyword::LIMIT
            | Keyword::OFFSET
            | Keyword::ON
            | Keyword::USING
            | Keyword::JOIN
            | Keyword::LEFT
            | Keyword::RIGHT
            | Keyword::INNER
            | Keyword::OUTER
            | Keyword::CROSS
            | Keyword::NATURAL
            | Keyword::STRAIGHT_JOIN
            | Keyword::SET
            | Keyword::VALUES
            | Keyword::AS
            | Keyword::WHEN
            | Keyword::THEN
            | Keyword::ELSE
            | Keyword::END
            | Keyword::CASE
            | Keyword::BETWEEN
            | Keyword::UNION
            | Keyword::EXCEPT
            | Keyword::INTERSECT
            | Keyword::BY
            | Keyword::FOR
            | Keyword::WINDOW
            | Keyword::XOR
            | Keyword::DISTINCT
            | Keyword::INTO
            | Keyword::DUPLICATE
            | Keyword::UPDATE
            | Keyword::RETURNING
            | Keyword::SEPARATOR
            | Keyword::WITH
            | Keyword::ASC
            | Keyword::DESC
            | Keyword::LOCK
            | Keyword::DEFAULT
            | Keyword::CHECK
            | Keyword::COMMENT
            | Keyword::CONSTRAINT
            | Keyword::REFERENCES
            | Keyword::GENERATED
    )
}

/// Notes brackets for a stretch: around runs of whole operands of OR, and of AND between them.
fn close(stretch: &Stretch, brackets: &mut [(usize, usize)]) {
    if stretch.ors.len() > CHAIN_MAX {
        group(&stretch.ors, 0, stretch.ors.len() - 1, brackets);
    }
    let mut rest = stretch.ands.as_slice();
    for &or in &stretch.ors {
        let inside = rest.partition_point(|and| *and < or);
        bracket_ands(&rest[..inside], brackets);
        rest = &rest[inside..];
    }
    bracket_ands(rest, brackets);
}

fn bracket_ands(ands: &[usize], brackets: &mut [(usize, usize)]) {
    if ands.len() > CHAIN_MAX {
        group(ands, 0, ands.len() - 1, brackets);
    }
}

/// Brackets the operands `low..high`; operand `n` lies between connectives `n` and `n + 1`. The
/// first and the last of a stretch, which may be parts of something else, stay outside.
fn group(connectives: &[usize], low: usize, high: usize, brackets: &mut [(usize, usize)]) {
    if high - low < 2 {
        return;
    }
    if let Some(place) = brackets.get_mut(connectives[low] + 1) {
        place.0 += 1;
    }
    if let Some(place) = brackets.get_mut(connectives[high]) {
        place.1 += 1;
    }
    let middle = usize::midpoint(low, high);
    group(connectives, low, middle, brackets);
    group(connectives, middle, high, brackets);
}

/// One open bracket or CASE.
#[derive(Default, Clone, Copy)]
struct Level {
    operators: usize,
    joins: usize,
    is_query: bool,
}

/// Refuses what is deep in spite of [`balance`].
///
/// # Errors
/// 1436, and 1116 for a join of too many tables.
pub(super) fn check(tokens: &[TokenWithSpan]) -> SqlResult<()> {
    let unions_max = if is_plain_query(tokens) {
        PLAIN_UNIONS_MAX
    } else {
        UNIONS_MAX
    };
    let mut levels = vec![Level::default()];
    let (mut operators, mut queries, mut unions, mut joins) = (0, 0, 0, 0);
    for token in tokens {
        let kind = keyword(&token.token);
        match (&token.token, kind) {
            (Token::LParen, _) | (_, Some(Keyword::CASE)) => levels.push(Level::default()),
            (Token::RParen, _) | (_, Some(Keyword::END)) if levels.len() > 1 => {
                if let Some(level) = levels.pop() {
                    operators -= level.operators;
                    joins -= level.joins;
                    queries -= usize::from(level.is_query);
                }
            }
            (Token::Comma, _) => {
                if let Some(level) = levels.last_mut() {
                    operators -= level.operators;
                    level.operators = 0;
                }
            }
            (_, Some(Keyword::SELECT)) => {
                if let Some(level) = levels.last_mut() {
                    joins -= std::mem::take(&mut level.joins);
                    queries += usize::from(!level.is_query);
                    level.is_query = true;
                }
            }
            (_, Some(Keyword::JOIN | Keyword::STRAIGHT_JOIN)) => {
                if let Some(level) = levels.last_mut() {
                    level.joins += 1;
                    joins += 1;
                    if level.joins >= TABLES_MAX {
                        return Err(message::too_many_tables());
                    }
                }
            }
            (_, Some(Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT)) => {
                unions += 1;
                if let Some(level) = levels.last_mut() {
                    operators -= std::mem::take(&mut level.operators);
                }
            }
            (other, kind) => {
                if let Some(level) = levels.last_mut() {
                    let weight = weight(other, kind);
                    level.operators += weight;
                    operators += weight;
                }
            }
        }
        if operators > OPERATORS_MAX
            || levels.len() > BRACKETS_MAX
            || queries > QUERIES_MAX
            || unions > unions_max
            || joins > JOINS_MAX
        {
            return Err(message::too_deep());
        }
    }
    Ok(())
}

/// A SELECT without WITH.
fn is_plain_query(tokens: &[TokenWithSpan]) -> bool {
    let mut begin = tokens
        .iter()
        .skip_while(|token| token.token == Token::LParen);
    let selects = begin.next().and_then(|token| keyword(&token.token)) == Some(Keyword::SELECT);
    selects
        && !tokens
            .iter()
            .any(|token| keyword(&token.token) == Some(Keyword::WITH))
}

/// How much of [`OPERATORS_MAX`] a token takes: the parser copies all that is left of DIV, SOUNDS
/// LIKE and REGEXP, by recursion with large frames.
fn weight(token: &Token, kind: Option<Keyword>) -> usize {
    let is_sounds = matches!(
        token,
        Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("SOUNDS")
    );
    let copies = matches!(kind, Some(Keyword::DIV | Keyword::REGEXP | Keyword::RLIKE));
    if is_sounds || copies {
        4
    } else {
        usize::from(is_operator(token, kind))
    }
}

fn is_operator(token: &Token, keyword: Option<Keyword>) -> bool {
    matches!(
        keyword,
        Some(
            Keyword::AND
                | Keyword::OR
                | Keyword::XOR
                | Keyword::DIV
                | Keyword::NOT
                | Keyword::BINARY
                | Keyword::COLLATE
                | Keyword::INTERVAL
                | Keyword::LIKE
                | Keyword::IN
                | Keyword::IS
                | Keyword::BETWEEN
                | Keyword::MOD
                | Keyword::MEMBER
                | Keyword::ILIKE
                | Keyword::SIMILAR
                | Keyword::NOTNULL
                | Keyword::AT
                | Keyword::OVERLAPS
        )
    ) || !matches!(
        token,
        Token::EOF
            | Token::Word(_)
            | Token::Number(..)
            | Token::Char(_)
            | Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_)
            | Token::NationalStringLiteral(_)
            | Token::HexStringLiteral(_)
            | Token::SingleQuotedByteStringLiteral(_)
            | Token::Placeholder(_)
            | Token::LParen
            | Token::RParen
            | Token::Comma
            | Token::Period
            | Token::SemiColon
            | Token::AtSign
            | Token::Whitespace(_)
    )
}
