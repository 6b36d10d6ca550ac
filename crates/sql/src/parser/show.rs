//! Every SHOW, into one shape.

use sqlparser::ast::ObjectName;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::tree::{Show, Special};
use super::words::{expect, name, peek_is, take, take_all, take_any};

/// Spellings of two words or more and their first spelling.
const LONG: [(&[&str], &str); 29] = [
    (&["MATERIALIZED", "VIEWS"], "MATERIALIZED VIEWS"),
    (&["VIEW", "CANDIDATES"], "VIEW CANDIDATES"),
    (&["GDPR", "REQUESTS"], "GDPR REQUESTS"),
    (&["GDPR", "HOLDS"], "GDPR HOLDS"),
    (&["GDPR", "AUDIT"], "GDPR AUDIT"),
    (&["TABLE", "STATUS"], "TABLE STATUS"),
    (&["OPEN", "TABLES"], "OPEN TABLES"),
    (&["CHARACTER", "SET"], "CHARACTER SET"),
    (&["STORAGE", "ENGINES"], "ENGINES"),
    (&["MASTER", "STATUS"], "MASTER STATUS"),
    (&["BINARY", "LOG", "STATUS"], "MASTER STATUS"),
    (&["MASTER", "LOGS"], "BINARY LOGS"),
    (&["BINARY", "LOGS"], "BINARY LOGS"),
    (&["SLAVE", "STATUS"], "REPLICA STATUS"),
    (&["REPLICA", "STATUS"], "REPLICA STATUS"),
    (&["SLAVE", "HOSTS"], "REPLICAS"),
    (&["FUNCTION", "STATUS"], "FUNCTION STATUS"),
    (&["PROCEDURE", "STATUS"], "PROCEDURE STATUS"),
    (&["FUNCTION", "CODE"], "FUNCTION CODE"),
    (&["PROCEDURE", "CODE"], "PROCEDURE CODE"),
    (&["CREATE", "TABLE"], "CREATE TABLE"),
    (&["CREATE", "VIEW"], "CREATE VIEW"),
    (&["CREATE", "DATABASE"], "CREATE DATABASE"),
    (&["CREATE", "SCHEMA"], "CREATE DATABASE"),
    (&["CREATE", "USER"], "CREATE USER"),
    (&["CREATE", "PROCEDURE"], "CREATE PROCEDURE"),
    (&["CREATE", "FUNCTION"], "CREATE FUNCTION"),
    (&["CREATE", "TRIGGER"], "CREATE TRIGGER"),
    (&["CREATE", "EVENT"], "CREATE EVENT"),
];

/// Spellings of one word and their first spelling.
const SHORT: [(&str, &str); 25] = [
    ("TABLES", "TABLES"),
    ("COLUMNS", "COLUMNS"),
    ("FIELDS", "COLUMNS"),
    ("INDEX", "INDEX"),
    ("INDEXES", "INDEX"),
    ("KEYS", "INDEX"),
    ("DATABASES", "DATABASES"),
    ("SCHEMAS", "DATABASES"),
    ("VARIABLES", "VARIABLES"),
    ("STATUS", "STATUS"),
    ("PROCESSLIST", "PROCESSLIST"),
    ("WARNINGS", "WARNINGS"),
    ("ERRORS", "ERRORS"),
    ("GRANTS", "GRANTS"),
    ("ENGINES", "ENGINES"),
    ("COLLATION", "COLLATION"),
    ("CHARSET", "CHARACTER SET"),
    ("PLUGINS", "PLUGINS"),
    ("PRIVILEGES", "PRIVILEGES"),
    ("TRIGGERS", "TRIGGERS"),
    ("EVENTS", "EVENTS"),
    ("PROFILES", "PROFILES"),
    ("PROFILE", "PROFILE"),
    ("REPLICAS", "REPLICAS"),
    ("ENGINE", "ENGINE"),
];

/// Parses what follows `SHOW`.
pub(super) fn parse(parser: &mut Parser) -> Result<Special, ParserError> {
    if take_all(parser, &["GDPR", "CERTIFICATE"]) {
        return parser.parse_literal_uint().map(Special::GdprCertificate);
    }
    let mut show = Show {
        extended: take(parser, "EXTENDED"),
        full: take(parser, "FULL"),
        global: take(parser, "GLOBAL"),
        ..Show::default()
    };
    let _ = take(parser, "SESSION") || take(parser, "LOCAL");
    show.what = subject(parser)?;
    match show.what.as_str() {
        "CREATE DATABASE" => {
            show.if_not_exists = take_all(parser, &["IF", "NOT", "EXISTS"]);
            show.object = Some(parser.parse_object_name(false)?);
        }
        "CREATE USER" => show.account = Some(super::account::account(parser)?),
        "ENGINE" => {
            show.object = Some(parser.parse_object_name(false)?);
            let _ = take_any(parser, &["STATUS", "MUTEX", "LOGS"]);
        }
        what if what.starts_with("CREATE ") => {
            show.object = Some(parser.parse_object_name(false)?);
        }
        "GRANTS" if take(parser, "FOR") => {
            show.account = Some(super::account::account(parser)?);
        }
        "COLUMNS" | "INDEX" => table_and_database(parser, &mut show)?,
        "PROFILE" => {
            while !super::words::at_end(parser) {
                parser.advance_token();
            }
        }
        _ if take(parser, "FROM") || take(parser, "IN") => {
            show.database = Some(name(parser)?);
        }
        _ => {}
    }
    filters(parser, &mut show)?;
    Ok(Special::Show(Box::new(show)))
}

fn subject(parser: &mut Parser) -> Result<String, ParserError> {
    if take(parser, "COUNT") {
        parser.expect_token(&Token::LParen)?;
        parser.expect_token(&Token::Mul)?;
        parser.expect_token(&Token::RParen)?;
        if take(parser, "ERRORS") {
            return Ok("COUNT ERRORS".into());
        }
        expect(parser, "WARNINGS")?;
        return Ok("COUNT WARNINGS".into());
    }
    for (words, first) in LONG {
        if take_all(parser, words) {
            return Ok(first.into());
        }
    }
    for (word, first) in SHORT {
        if take(parser, word) {
            return Ok(first.into());
        }
    }
    parser.expected("something to show", parser.peek_token())
}

fn table_and_database(parser: &mut Parser, show: &mut Show) -> Result<(), ParserError> {
    if !take(parser, "FROM") {
        expect(parser, "IN")?;
    }
    let table: ObjectName = parser.parse_object_name(false)?;
    show.object = Some(table);
    if take(parser, "FROM") || take(parser, "IN") {
        show.database = Some(name(parser)?);
    }
    Ok(())
}

fn filters(parser: &mut Parser, show: &mut Show) -> Result<(), ParserError> {
    if take(parser, "LIKE") {
        show.like = Some(name(parser)?);
    }
    if take(parser, "WHERE") {
        show.selection = Some(parser.parse_expr()?);
    }
    if peek_is(parser, "LIMIT") {
        parser.advance_token();
        let first = number(parser)?;
        show.limit = Some(if parser.consume_token(&Token::Comma) {
            (first, number(parser)?)
        } else {
            (0, first)
        });
    }
    Ok(())
}

fn number(parser: &mut Parser) -> Result<u64, ParserError> {
    let token = parser.peek_token();
    if let Token::Number(digits, _) = &token.token
        && let Ok(value) = digits.parse()
    {
        parser.advance_token();
        return Ok(value);
    }
    parser.expected("number", token)
}
