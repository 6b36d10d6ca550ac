//! SET in all its forms.

use sqlparser::ast::{Expr, Ident};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::tree::{SetItem, SetScope, Special};
use super::words::{expect, name, peek_is, take, take_all};

/// Parses what follows `SET`.
pub(super) fn parse(parser: &mut Parser) -> Result<Special, ParserError> {
    if take(parser, "PASSWORD") {
        return super::account::set_password(parser);
    }
    let mut items = Vec::new();
    loop {
        items.push(item(parser)?);
        if !parser.consume_token(&Token::Comma) {
            return Ok(Special::Set(items));
        }
    }
}

fn item(parser: &mut Parser) -> Result<SetItem, ParserError> {
    if take(parser, "NAMES") {
        return names(parser);
    }
    if take_all(parser, &["CHARACTER", "SET"]) || take(parser, "CHARSET") {
        let charset = name(parser)?;
        return Ok(SetItem::Charset(not_default(charset)));
    }
    let scope = scope_word(parser);
    if take(parser, "TRANSACTION") {
        return transaction(parser, scope.unwrap_or(SetScope::Next));
    }
    if scope.is_none()
        && let Token::Word(word) = &parser.peek_token_ref().token
        && word.quote_style.is_none()
        && word.value.starts_with('@')
    {
        let word = word.value.clone();
        parser.advance_token();
        return variable(parser, &word);
    }
    let name = dotted(parser)?;
    assign(parser, scope.unwrap_or(SetScope::Session), name)
}

fn scope_word(parser: &mut Parser) -> Option<SetScope> {
    if take(parser, "GLOBAL") {
        Some(SetScope::Global)
    } else if take(parser, "SESSION") || take(parser, "LOCAL") {
        Some(SetScope::Session)
    } else if take(parser, "PERSIST") {
        Some(SetScope::Persist)
    } else if take(parser, "PERSIST_ONLY") {
        Some(SetScope::PersistOnly)
    } else {
        None
    }
}

/// `@name`, `@@name`, `@@scope.name`.
fn variable(parser: &mut Parser, word: &str) -> Result<SetItem, ParserError> {
    let Some(system) = word.strip_prefix("@@") else {
        let mut user = word.trim_start_matches('@').to_string();
        while parser.consume_token(&Token::Period) {
            user = format!("{user}.{}", name(parser)?);
        }
        expect_assignment(parser)?;
        let value = parser.parse_expr()?;
        return Ok(SetItem::User { name: user, value });
    };
    let scope = match system.to_ascii_uppercase().as_str() {
        "GLOBAL" => Some(SetScope::Global),
        "SESSION" | "LOCAL" => Some(SetScope::Session),
        "PERSIST" => Some(SetScope::Persist),
        "PERSIST_ONLY" => Some(SetScope::PersistOnly),
        _ => None,
    };
    if let Some(scope) = scope {
        parser.expect_token(&Token::Period)?;
        let name = dotted(parser)?;
        return assign(parser, scope, name);
    }
    assign(parser, SetScope::Session, system.to_string())
}

fn dotted(parser: &mut Parser) -> Result<String, ParserError> {
    let mut text = name(parser)?;
    while parser.consume_token(&Token::Period) {
        text = format!("{text}.{}", name(parser)?);
    }
    Ok(text)
}

fn assign(parser: &mut Parser, scope: SetScope, name: String) -> Result<SetItem, ParserError> {
    expect_assignment(parser)?;
    Ok(SetItem::System {
        scope,
        name: name.to_ascii_lowercase(),
        value: value(parser)?,
    })
}

fn expect_assignment(parser: &mut Parser) -> Result<(), ParserError> {
    if parser.consume_token(&Token::Eq) || parser.consume_token(&Token::Assignment) {
        return Ok(());
    }
    parser.expected("=", parser.peek_token())
}

/// An expression; words such as ON, ALL, BINARY stand for themselves.
fn value(parser: &mut Parser) -> Result<Option<Expr>, ParserError> {
    if take(parser, "DEFAULT") {
        return Ok(None);
    }
    for word in ["ON", "OFF", "ALL", "BINARY", "ROW", "SYSTEM", "READ"] {
        if peek_is(parser, word) {
            parser.advance_token();
            let ends = matches!(
                parser.peek_token_ref().token,
                Token::Comma | Token::EOF | Token::SemiColon
            );
            if ends {
                return Ok(Some(Expr::Identifier(Ident::new(word))));
            }
            parser.prev_token();
        }
    }
    for (first, second) in [
        ("READ", "UNCOMMITTED"),
        ("READ", "COMMITTED"),
        ("REPEATABLE", "READ"),
    ] {
        if take_all(parser, &[first, second]) {
            return Ok(Some(Expr::Identifier(Ident::new(format!(
                "{first}-{second}"
            )))));
        }
    }
    parser.parse_expr().map(Some)
}

fn names(parser: &mut Parser) -> Result<SetItem, ParserError> {
    let charset = name(parser)?;
    let collation = if take(parser, "COLLATE") {
        not_default(name(parser)?)
    } else {
        None
    };
    Ok(SetItem::Names {
        charset: not_default(charset),
        collation,
    })
}

fn not_default(word: String) -> Option<String> {
    (!word.eq_ignore_ascii_case("default")).then_some(word)
}

fn transaction(parser: &mut Parser, scope: SetScope) -> Result<SetItem, ParserError> {
    let mut isolation = None;
    let mut read_only = None;
    loop {
        if take_all(parser, &["ISOLATION", "LEVEL"]) {
            isolation = Some(level(parser)?.to_string());
        } else if take_all(parser, &["READ", "ONLY"]) {
            read_only = Some(true);
        } else {
            expect(parser, "READ")?;
            expect(parser, "WRITE")?;
            read_only = Some(false);
        }
        if !parser.consume_token(&Token::Comma) {
            return Ok(SetItem::Transaction {
                scope,
                isolation,
                read_only,
            });
        }
    }
}

fn level(parser: &mut Parser) -> Result<&'static str, ParserError> {
    if take(parser, "SERIALIZABLE") {
        Ok("SERIALIZABLE")
    } else if take_all(parser, &["REPEATABLE", "READ"]) {
        Ok("REPEATABLE READ")
    } else if take_all(parser, &["READ", "COMMITTED"]) {
        Ok("READ COMMITTED")
    } else if take_all(parser, &["READ", "UNCOMMITTED"]) {
        Ok("READ UNCOMMITTED")
    } else {
        parser.expected("isolation level", parser.peek_token())
    }
}
