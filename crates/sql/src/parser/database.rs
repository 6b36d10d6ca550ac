//! Databases with their options, and statements about whole tables.

use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::tree::{Special, TableLock};
use super::words::{at_end, expect, name, peek_is, take, take_all};

pub(super) fn databases_and_tables(parser: &mut Parser) -> Result<Option<Special>, ParserError> {
    if take_all(parser, &["CREATE", "DATABASE"]) || take_all(parser, &["CREATE", "SCHEMA"]) {
        let if_not_exists = take_all(parser, &["IF", "NOT", "EXISTS"]);
        let database = name(parser)?;
        let (charset, collation) = charset_options(parser)?;
        return Ok(Some(Special::CreateDatabase {
            name: database,
            if_not_exists,
            charset,
            collation,
        }));
    }
    if take_all(parser, &["ALTER", "DATABASE"]) || take_all(parser, &["ALTER", "SCHEMA"]) {
        let anonymous = ["DEFAULT", "CHARACTER", "CHARSET", "COLLATE"]
            .iter()
            .any(|word| peek_is(parser, word));
        let database = if anonymous { None } else { Some(name(parser)?) };
        let (charset, collation) = charset_options(parser)?;
        return Ok(Some(Special::AlterDatabase {
            name: database,
            charset,
            collation,
        }));
    }
    if take_all(parser, &["ALTER", "TABLE"]) {
        return super::alter::parse(parser).map(Some);
    }
    if take_all(parser, &["LOCK", "TABLES"]) || take_all(parser, &["LOCK", "TABLE"]) {
        return lock_tables(parser).map(Some);
    }
    if take_all(parser, &["UNLOCK", "TABLES"]) || take_all(parser, &["UNLOCK", "TABLE"]) {
        return Ok(Some(Special::UnlockTables));
    }
    Ok(None)
}

type Names = (Option<String>, Option<String>);

fn charset_options(parser: &mut Parser) -> Result<Names, ParserError> {
    let (mut charset, mut collation) = (None, None);
    while !at_end(parser) {
        match super::alter::option(parser)? {
            Some((key, value)) if key == "CHARACTER SET" => charset = Some(value),
            Some((key, value)) if key == "COLLATE" => collation = Some(value),
            _ if takes_encryption(parser) => {
                let _ = parser.consume_token(&Token::Eq);
                // 'N' is what SHOW CREATE DATABASE writes.
                if !name(parser)?.eq_ignore_ascii_case("N") {
                    return Err(ParserError::ParserError("unsupported: ENCRYPTION".into()));
                }
            }
            _ => return parser.expected("database option", parser.peek_token()),
        }
    }
    Ok((charset, collation))
}

fn takes_encryption(parser: &mut Parser) -> bool {
    take_all(parser, &["DEFAULT", "ENCRYPTION"]) || take(parser, "ENCRYPTION")
}

fn lock_tables(parser: &mut Parser) -> Result<Special, ParserError> {
    let mut locks = Vec::new();
    loop {
        let table = parser.parse_object_name(false)?;
        let explicit = take(parser, "AS");
        let keyword = ["READ", "WRITE", "LOW_PRIORITY"]
            .iter()
            .any(|word| peek_is(parser, word));
        let alias = if explicit || !keyword {
            Some(name(parser)?)
        } else {
            None
        };
        let write = if take(parser, "READ") {
            let _ = take(parser, "LOCAL");
            false
        } else {
            let _ = take(parser, "LOW_PRIORITY");
            expect(parser, "WRITE")?;
            true
        };
        locks.push(TableLock {
            table,
            alias,
            write,
        });
        if !parser.consume_token(&Token::Comma) {
            return Ok(Special::LockTables(locks));
        }
    }
}
