//! Statements that run the server: DO, KILL, SHUTDOWN, FLUSH, and the upkeep of tables.

use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::special::ownership;
use super::tree::{Special, TableLock};
use super::words::{at_end, expect, peek_is, take, take_all, take_any};

pub(super) fn administration(
    parser: &mut Parser,
    text: &str,
) -> Result<Option<Special>, ParserError> {
    if let Some(request) = super::ownership::request(parser)? {
        return Ok(Some(request));
    }
    if peek_is(parser, "GDPR") {
        return Ok(Some(ownership(parser, text)));
    }
    if take(parser, "DO") {
        let exprs = parser.parse_comma_separated(Parser::parse_expr)?;
        return Ok(Some(Special::Do(exprs)));
    }
    if take(parser, "KILL") {
        let query_only = take(parser, "QUERY");
        let _ = !query_only && take(parser, "CONNECTION");
        let id = parser.parse_expr()?;
        return Ok(Some(Special::Kill { query_only, id }));
    }
    if take(parser, "SHUTDOWN") {
        return Ok(Some(Special::Shutdown));
    }
    if take(parser, "FLUSH") {
        return flush(parser).map(Some);
    }
    maintain(parser)
}

/// FLUSH: of most of it only the words matter.
fn flush(parser: &mut Parser) -> Result<Special, ParserError> {
    let _ = take(parser, "NO_WRITE_TO_BINLOG") || take(parser, "LOCAL");
    let mut words = Vec::new();
    if take(parser, "TABLES") || take(parser, "TABLE") {
        words.push("TABLES".to_string());
        let listed = !at_end(parser)
            && !peek_is(parser, "WITH")
            && parser.peek_token_ref().token != Token::Comma;
        if listed && let Some(locks) = flush_listed(parser)? {
            return Ok(locks);
        }
        let _ = parser.consume_token(&Token::Comma);
    }
    while let Token::Word(word) = &parser.peek_token_ref().token {
        words.push(word.value.to_ascii_uppercase());
        parser.advance_token();
        let _ = parser.consume_token(&Token::Comma);
    }
    Ok(Special::Flush(words))
}

/// `a, b WITH READ LOCK` behind FLUSH TABLES is LOCK TABLES for reading.
fn flush_listed(parser: &mut Parser) -> Result<Option<Special>, ParserError> {
    let tables = parser.parse_comma_separated(|parser| parser.parse_object_name(false))?;
    if take_all(parser, &["FOR", "EXPORT"]) {
        let text = "unsupported: FLUSH TABLES FOR EXPORT";
        return Err(ParserError::ParserError(text.into()));
    }
    if !take_all(parser, &["WITH", "READ", "LOCK"]) {
        return Ok(None);
    }
    let locks = tables.into_iter().map(|table| TableLock {
        table,
        alias: None,
        write: false,
    });
    Ok(Some(Special::LockTables(locks.collect())))
}

/// ANALYZE, OPTIMIZE, CHECK, REPAIR and CHECKSUM TABLE.
fn maintain(parser: &mut Parser) -> Result<Option<Special>, ParserError> {
    let verbs = ["ANALYZE", "OPTIMIZE", "CHECK", "REPAIR", "CHECKSUM"];
    let Some(verb) = take_any(parser, &verbs) else {
        return Ok(None);
    };
    let _ = take(parser, "NO_WRITE_TO_BINLOG") || take(parser, "LOCAL");
    if !take(parser, "TABLE") {
        expect(parser, "TABLES")?;
    }
    let mut tables = vec![parser.parse_object_name(false)?];
    while parser.consume_token(&Token::Comma) {
        tables.push(parser.parse_object_name(false)?);
    }
    if take_all(parser, &["UPDATE", "HISTOGRAM"]) || take_all(parser, &["DROP", "HISTOGRAM"]) {
        let text = "unsupported: histograms";
        return Err(ParserError::ParserError(text.into()));
    }
    let options = ["QUICK", "FAST", "MEDIUM", "EXTENDED", "CHANGED", "USE_FRM"];
    while take_any(parser, &options).is_some() || take_all(parser, &["FOR", "UPGRADE"]) {}
    Ok(Some(Special::Maintain {
        verb: verb.to_string(),
        tables,
    }))
}
