//! ALTER TABLE: actions that `sqlparser` carries go to it, the rest is taken here.

use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::tree::{AlterAction, Special};
use super::words::{at_end, expect, is_word, name, peek_is, take, take_all, take_any};

/// Parses what follows `ALTER TABLE`.
pub(super) fn parse(parser: &mut Parser) -> Result<Special, ParserError> {
    let name = parser.parse_object_name(false)?;
    let mut actions = Vec::new();
    while !at_end(parser) {
        actions.push(action(parser)?);
        if !parser.consume_token(&Token::Comma) && !at_end(parser) && !starts_option(parser) {
            return parser.expected(",", parser.peek_token());
        }
    }
    Ok(Special::AlterTable { name, actions })
}

fn action(parser: &mut Parser) -> Result<AlterAction, ParserError> {
    if let Some(action) = without_effect(parser)? {
        return Ok(action);
    }
    if let Some(action) = renaming(parser)? {
        return Ok(action);
    }
    if let Some(change) = super::ownership::change(parser)? {
        return Ok(AlterAction::Ownership(change));
    }
    if let Some(action) = constraint(parser)? {
        return Ok(action);
    }
    if take_all(parser, &["CONVERT", "TO"]) {
        return convert(parser);
    }
    if let Some((key, value)) = option(parser)? {
        return Ok(AlterAction::Option(key, value));
    }
    if let Some(action) = add_columns(parser)? {
        return Ok(action);
    }
    if peek_is(parser, "ADD") && adds_spatial_or_fulltext(parser) {
        return Err(ParserError::ParserError("unsupported: FULLTEXT".into()));
    }
    if take_all(parser, &["DROP", "KEY"]) {
        let name = parser.parse_identifier()?;
        let operation = sqlparser::ast::AlterTableOperation::DropIndex { name };
        return Ok(AlterAction::Standard(Box::new(operation)));
    }
    parser
        .parse_alter_table_operation()
        .map(|operation| AlterAction::Standard(Box::new(operation)))
}

fn adds_spatial_or_fulltext(parser: &mut Parser) -> bool {
    let [_, second] = parser.peek_tokens::<2>();
    is_word(&second, "FULLTEXT") || is_word(&second, "SPATIAL")
}

fn without_effect(parser: &mut Parser) -> Result<Option<AlterAction>, ParserError> {
    let taken = if take_any(parser, &["ALGORITHM", "LOCK"]).is_some() {
        let _ = parser.consume_token(&Token::Eq);
        name(parser)?;
        true
    } else if take_all(parser, &["ORDER", "BY"]) {
        parser.parse_order_by_expr()?;
        while parser.consume_token(&Token::Comma) {
            parser.parse_order_by_expr()?;
        }
        return Ok(Some(AlterAction::OrderBy));
    } else if take_all(parser, &["ALTER", "INDEX"]) {
        parser.parse_identifier()?;
        if take_any(parser, &["VISIBLE", "INVISIBLE"]).is_none() {
            return parser.expected("VISIBLE", parser.peek_token());
        }
        true
    } else {
        if take(parser, "FORCE") {
            return Ok(Some(AlterAction::Rebuild));
        }
        take_all(parser, &["ENABLE", "KEYS"])
            || take_all(parser, &["DISABLE", "KEYS"])
            || take_all(parser, &["WITH", "VALIDATION"])
            || take_all(parser, &["WITHOUT", "VALIDATION"])
    };
    Ok(taken.then_some(AlterAction::Nothing))
}

fn renaming(parser: &mut Parser) -> Result<Option<AlterAction>, ParserError> {
    if take_all(parser, &["RENAME", "INDEX"]) || take_all(parser, &["RENAME", "KEY"]) {
        let from = parser.parse_identifier()?;
        expect(parser, "TO")?;
        let to = parser.parse_identifier()?;
        return Ok(Some(AlterAction::RenameIndex { from, to }));
    }
    if take(parser, "RENAME") {
        if peek_is(parser, "COLUMN") {
            parser.prev_token();
            return Ok(None);
        }
        let _ = take(parser, "TO") || take(parser, "AS") || parser.consume_token(&Token::Eq);
        let name = parser.parse_object_name(false)?;
        return Ok(Some(AlterAction::RenameTable(name)));
    }
    Ok(None)
}

fn constraint(parser: &mut Parser) -> Result<Option<AlterAction>, ParserError> {
    let dropped_check = take_all(parser, &["DROP", "CHECK"]);
    if dropped_check || take_all(parser, &["DROP", "CONSTRAINT"]) {
        let name = parser.parse_identifier()?;
        return Ok(Some(AlterAction::DropConstraint {
            name,
            check_only: dropped_check,
        }));
    }
    if take_all(parser, &["ALTER", "CHECK"]) || take_all(parser, &["ALTER", "CONSTRAINT"]) {
        let name = parser.parse_identifier()?;
        let enforced = !take(parser, "NOT");
        expect(parser, "ENFORCED")?;
        return Ok(Some(AlterAction::AlterCheck { name, enforced }));
    }
    Ok(None)
}

fn convert(parser: &mut Parser) -> Result<AlterAction, ParserError> {
    if !take(parser, "CHARSET") {
        expect(parser, "CHARACTER")?;
        expect(parser, "SET")?;
    }
    let _ = parser.consume_token(&Token::Eq);
    let charset = name(parser)?;
    let collation = if take(parser, "COLLATE") {
        let _ = parser.consume_token(&Token::Eq);
        Some(name(parser)?)
    } else {
        None
    };
    Ok(AlterAction::ConvertTo { charset, collation })
}

fn add_columns(parser: &mut Parser) -> Result<Option<AlterAction>, ParserError> {
    let [first, second, third] = parser.peek_tokens::<3>();
    let bracket = is_word(&first, "ADD")
        && (second == Token::LParen || (is_word(&second, "COLUMN") && third == Token::LParen));
    if !bracket {
        return Ok(None);
    }
    take(parser, "ADD");
    take(parser, "COLUMN");
    parser.expect_token(&Token::LParen)?;
    let mut columns = vec![parser.parse_column_def()?];
    while parser.consume_token(&Token::Comma) {
        columns.push(parser.parse_column_def()?);
    }
    parser.expect_token(&Token::RParen)?;
    Ok(Some(AlterAction::AddColumns(columns)))
}

/// Options of a table: spelling and the name they are known by.
const OPTIONS: [&str; 19] = [
    "ENGINE",
    "COMMENT",
    "AUTO_INCREMENT",
    "COLLATE",
    "CHARSET",
    "ROW_FORMAT",
    "KEY_BLOCK_SIZE",
    "STATS_PERSISTENT",
    "STATS_AUTO_RECALC",
    "STATS_SAMPLE_PAGES",
    "AVG_ROW_LENGTH",
    "MAX_ROWS",
    "MIN_ROWS",
    "PACK_KEYS",
    "CHECKSUM",
    "DELAY_KEY_WRITE",
    "COMPRESSION",
    "INSERT_METHOD",
    "UNOWNED",
];

fn starts_option(parser: &Parser) -> bool {
    ["DEFAULT", "CHARACTER"]
        .iter()
        .chain(OPTIONS.iter())
        .any(|word| peek_is(parser, word))
}

/// One table option, if one comes next: known name and value as text.
pub(super) fn option(parser: &mut Parser) -> Result<Option<(String, String)>, ParserError> {
    let default = take(parser, "DEFAULT");
    let key = if take_all(parser, &["CHARACTER", "SET"]) || take(parser, "CHARSET") {
        Some("CHARACTER SET")
    } else {
        take_any(parser, &OPTIONS)
    };
    let Some(key) = key else {
        if default {
            parser.prev_token();
        }
        return Ok(None);
    };
    let _ = parser.consume_token(&Token::Eq);
    let token = parser.peek_token();
    let value = match token.token {
        Token::Word(word) => word.value,
        Token::SingleQuotedString(text) | Token::Number(text, _) => text,
        _ => return parser.expected("value", token),
    };
    parser.advance_token();
    Ok(Some((key.to_string(), value)))
}
