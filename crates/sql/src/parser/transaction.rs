//! BEGIN, START TRANSACTION, COMMIT and ROLLBACK.

use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::tree::Special;
use super::words::{at_end, expect, peek_is, take, take_all};

pub(super) fn transaction(parser: &mut Parser) -> Result<Option<Special>, ParserError> {
    if take(parser, "BEGIN") {
        let _ = take(parser, "WORK");
        return Ok(Some(Special::StartTransaction {
            read_only: None,
            consistent_snapshot: false,
        }));
    }
    if take_all(parser, &["START", "TRANSACTION"]) {
        return start_transaction(parser).map(Some);
    }
    let commit = take(parser, "COMMIT");
    if !commit && !take(parser, "ROLLBACK") {
        return Ok(None);
    }
    let _ = take(parser, "WORK");
    if !commit && peek_is(parser, "TO") {
        while parser.index() > 0 {
            parser.prev_token();
        }
        return Ok(None);
    }
    let mut chain = false;
    let mut release = false;
    if take(parser, "AND") {
        chain = !take(parser, "NO");
        expect(parser, "CHAIN")?;
    }
    if take(parser, "NO") {
        expect(parser, "RELEASE")?;
    } else {
        release = take(parser, "RELEASE");
    }
    Ok(Some(Special::EndTransaction {
        commit,
        chain,
        release,
    }))
}

fn start_transaction(parser: &mut Parser) -> Result<Special, ParserError> {
    let mut read_only = None;
    let mut consistent_snapshot = false;
    while !at_end(parser) {
        if take_all(parser, &["READ", "ONLY"]) {
            read_only = Some(true);
        } else if take_all(parser, &["READ", "WRITE"]) {
            read_only = Some(false);
        } else if take_all(parser, &["WITH", "CONSISTENT", "SNAPSHOT"]) {
            consistent_snapshot = true;
        } else {
            return parser.expected("transaction characteristic", parser.peek_token());
        }
        if !parser.consume_token(&Token::Comma) {
            break;
        }
    }
    Ok(Special::StartTransaction {
        read_only,
        consistent_snapshot,
    })
}
