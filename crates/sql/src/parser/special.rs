//! Which statements go into a tree of our own, and which are refused by name.

use sqlparser::ast::{Expr, Ident, Value, ValueWithSpan};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Span, Token, TokenWithSpan};

use super::administration::administration;
use super::database::databases_and_tables;
use super::dialect::ModeDialect;
use super::message;
use super::transaction::transaction;
use super::tree::Special;
use super::words::{at_end, expect, is_word, name, take, take_all};
use crate::error::{SqlError, SqlResult};

/// First words of statements we refuse by name.
const UNSUPPORTED: [(&[&str], &str); 36] = [
    (&["CREATE", "TRIGGER"], "CREATE TRIGGER"),
    (&["DROP", "TRIGGER"], "DROP TRIGGER"),
    (&["CREATE", "PROCEDURE"], "CREATE PROCEDURE"),
    (&["DROP", "PROCEDURE"], "DROP PROCEDURE"),
    (&["ALTER", "PROCEDURE"], "ALTER PROCEDURE"),
    (&["CREATE", "FUNCTION"], "CREATE FUNCTION"),
    (&["CREATE", "AGGREGATE"], "CREATE AGGREGATE FUNCTION"),
    (&["DROP", "FUNCTION"], "DROP FUNCTION"),
    (&["ALTER", "FUNCTION"], "ALTER FUNCTION"),
    (&["CREATE", "EVENT"], "CREATE EVENT"),
    (&["DROP", "EVENT"], "DROP EVENT"),
    (&["ALTER", "EVENT"], "ALTER EVENT"),
    (&["CREATE", "SERVER"], "CREATE SERVER"),
    (&["CREATE", "TABLESPACE"], "CREATE TABLESPACE"),
    (&["CREATE", "ROLE"], "CREATE ROLE"),
    (&["DROP", "ROLE"], "DROP ROLE"),
    (&["SET", "ROLE"], "SET ROLE"),
    (&["SET", "DEFAULT", "ROLE"], "SET DEFAULT ROLE"),
    (&["CREATE", "FULLTEXT"], "FULLTEXT"),
    (&["CREATE", "SPATIAL"], "SPATIAL"),
    (&["CREATE", "DEFINER"], "DEFINER of a routine"),
    (&["XA"], "XA"),
    (&["HANDLER"], "HANDLER"),
    (&["GET"], "GET DIAGNOSTICS"),
    (&["CALL"], "CALL"),
    (&["INSTALL"], "INSTALL"),
    (&["CHANGE"], "CHANGE MASTER"),
    (&["RESET"], "RESET"),
    (&["BINLOG"], "BINLOG"),
    (&["HELP"], "HELP"),
    (&["START", "SLAVE"], "START REPLICA"),
    (&["START", "REPLICA"], "START REPLICA"),
    (&["STOP", "SLAVE"], "STOP REPLICA"),
    (&["STOP", "REPLICA"], "STOP REPLICA"),
    (&["LOCK", "INSTANCE"], "LOCK INSTANCE FOR BACKUP"),
    (&["UNLOCK", "INSTANCE"], "UNLOCK INSTANCE"),
];

/// The statement in our own tree, or `None` when `sqlparser` shall have it.
pub(super) fn parse(
    dialect: &ModeDialect,
    tokens: &[TokenWithSpan],
    text: &str,
) -> SqlResult<Option<Special>> {
    refuse(tokens)?;
    if !is_special(tokens) {
        return Ok(None);
    }
    let mut parser = Parser::new(dialect)
        .with_recursion_limit(super::NESTING_MAX)
        .with_tokens_with_locations(tokens.to_vec());
    let special = statement(&mut parser, text).map_err(|error| in_our_words(&error, text))?;
    if special.is_some() {
        super::expect_end(&parser, text)?;
    }
    Ok(special)
}

/// A refusal of the parser's as MySQL words it.
pub(super) fn in_our_words(error: &ParserError, text: &str) -> SqlError {
    match error {
        ParserError::ParserError(detail) if detail.starts_with("unsupported: ") => {
            SqlError::not_supported(detail.trim_start_matches("unsupported: "))
        }
        _ => message::from_parser(error, text),
    }
}

fn starts(tokens: &[TokenWithSpan], words: &[&str]) -> bool {
    tokens.len() >= words.len()
        && words
            .iter()
            .zip(tokens)
            .all(|(word, token)| is_word(&token.token, word))
}

/// 1235 for what [`UNSUPPORTED`] names; a view may have a DEFINER, too.
fn refuse(tokens: &[TokenWithSpan]) -> SqlResult<()> {
    let defines_view = tokens.iter().take(16).any(|t| is_word(&t.token, "VIEW"));
    for (words, feature) in UNSUPPORTED {
        if starts(tokens, words) && !(words == ["CREATE", "DEFINER"] && defines_view) {
            return Err(SqlError::not_supported(feature));
        }
    }
    Ok(())
}

/// Cheap look at the first word, so that common statements copy no tokens.
fn is_special(tokens: &[TokenWithSpan]) -> bool {
    let Some(Token::Word(word)) = tokens.first().map(|first| &first.token) else {
        return false;
    };
    ![
        "SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "WITH", "USE", "TRUNCATE",
    ]
    .iter()
    .any(|plain| word.value.eq_ignore_ascii_case(plain))
}

fn statement(parser: &mut Parser, text: &str) -> Result<Option<Special>, ParserError> {
    if take(parser, "SET") {
        return super::set::parse(parser).map(Some);
    }
    if take(parser, "SHOW") {
        return super::show::parse(parser).map(Some);
    }
    if super::words::peek_is(parser, "LOAD") {
        return super::load::load(parser).map(Some);
    }
    if let Some(special) = transaction(parser)? {
        return Ok(Some(special));
    }
    if let Some(special) = prepared(parser)? {
        return Ok(Some(special));
    }
    if let Some(special) = accounts(parser)? {
        return Ok(Some(special));
    }
    if let Some(special) = databases_and_tables(parser)? {
        return Ok(Some(special));
    }
    if let Some(special) = describe(parser)? {
        return Ok(Some(special));
    }
    administration(parser, text)
}

fn prepared(parser: &mut Parser) -> Result<Option<Special>, ParserError> {
    if take(parser, "PREPARE") {
        let statement = name(parser)?;
        expect(parser, "FROM")?;
        let source = match parser.next_token().token {
            Token::SingleQuotedString(text) => Expr::Value(ValueWithSpan {
                value: Value::SingleQuotedString(text),
                span: Span::empty(),
            }),
            Token::Word(word) if word.value.starts_with('@') => {
                Expr::Identifier(Ident::new(word.value))
            }
            _ => {
                parser.prev_token();
                return parser.expected("text or variable", parser.peek_token());
            }
        };
        return Ok(Some(Special::Prepare {
            name: statement,
            source,
        }));
    }
    if take(parser, "EXECUTE") {
        let statement = name(parser)?;
        let mut using = Vec::new();
        if take(parser, "USING") {
            loop {
                using.push(name(parser)?.trim_start_matches('@').to_string());
                if !parser.consume_token(&Token::Comma) {
                    break;
                }
            }
        }
        return Ok(Some(Special::Execute {
            name: statement,
            using,
        }));
    }
    if take_all(parser, &["DEALLOCATE", "PREPARE"]) || take_all(parser, &["DROP", "PREPARE"]) {
        return Ok(Some(Special::Deallocate(name(parser)?)));
    }
    Ok(None)
}

fn accounts(parser: &mut Parser) -> Result<Option<Special>, ParserError> {
    if take_all(parser, &["CREATE", "USER"]) {
        return super::account::users(parser, false).map(Some);
    }
    if take_all(parser, &["ALTER", "USER"]) {
        return super::account::users(parser, true).map(Some);
    }
    if take_all(parser, &["DROP", "USER"]) {
        return super::account::drop_user(parser).map(Some);
    }
    if take_all(parser, &["RENAME", "USER"]) {
        return super::account::rename_user(parser).map(Some);
    }
    if take(parser, "GRANT") {
        let statement = super::account::grant(parser, "TO")?;
        return Ok(Some(Special::Grant(statement)));
    }
    if take(parser, "REVOKE") {
        let statement = super::account::grant(parser, "FROM")?;
        return Ok(Some(Special::Revoke(statement)));
    }
    Ok(None)
}

/// DESCRIBE; EXPLAIN of a statement goes to `sqlparser`.
fn describe(parser: &mut Parser) -> Result<Option<Special>, ParserError> {
    let [first, second, third] = parser.peek_tokens::<3>();
    if !["DESC", "DESCRIBE", "EXPLAIN"]
        .iter()
        .any(|word| is_word(&first, word))
    {
        return Ok(None);
    }
    if is_word(&second, "COMPLIANCE") {
        return super::ownership::compliance(parser).map(Some);
    }
    if is_word(&second, "GDPR") {
        return super::ownership::explain_forget(parser).map(Some);
    }
    let statement = [
        "SELECT",
        "INSERT",
        "UPDATE",
        "DELETE",
        "REPLACE",
        "WITH",
        "ANALYZE",
        "EXTENDED",
        "PARTITIONS",
        "TABLE",
        "VALUES",
    ];
    let names_format = is_word(&second, "FORMAT") && third == Token::Eq;
    let is_statement = statement.iter().any(|word| is_word(&second, word));
    if is_statement || names_format || second == Token::LParen {
        return Ok(None);
    }
    parser.advance_token();
    let table = parser.parse_object_name(false)?;
    let column = if at_end(parser) {
        None
    } else {
        Some(name(parser)?)
    };
    Ok(Some(Special::Describe { table, column }))
}

/// Takes the rest as text.
pub(super) fn ownership(parser: &mut Parser, text: &str) -> Special {
    while !at_end(parser) {
        parser.advance_token();
    }
    Special::Ownership(text.to_string())
}
