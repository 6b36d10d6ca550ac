//! Which statements go into a tree of our own, and the small ones among them.

use sqlparser::ast::{Expr, Ident, Value, ValueWithSpan};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Span, Token, TokenWithSpan};

use super::dialect::ModeDialect;
use super::message;
use super::tree::{Special, TableLock};
use super::words::{at_end, expect, is_word, name, peek_is, take, take_all, take_any};
use crate::error::{SqlError, SqlResult};

/// First words of statements we refuse by name.
const UNSUPPORTED: [(&[&str], &str); 37] = [
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
    (&["LOAD"], "LOAD DATA"),
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

fn in_our_words(error: &ParserError, text: &str) -> SqlError {
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
    if let Some(special) = describe(parser, text)? {
        return Ok(Some(special));
    }
    administration(parser, text)
}

fn transaction(parser: &mut Parser) -> Result<Option<Special>, ParserError> {
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

fn databases_and_tables(parser: &mut Parser) -> Result<Option<Special>, ParserError> {
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

/// DESCRIBE; EXPLAIN of a statement goes to `sqlparser`.
fn describe(parser: &mut Parser, text: &str) -> Result<Option<Special>, ParserError> {
    let [first, second, third] = parser.peek_tokens::<3>();
    if !["DESC", "DESCRIBE", "EXPLAIN"]
        .iter()
        .any(|word| is_word(&first, word))
    {
        return Ok(None);
    }
    if is_word(&second, "COMPLIANCE") {
        return Ok(Some(ownership(parser, text)));
    }
    let statement = [
        "SELECT",
        "INSERT",
        "UPDATE",
        "DELETE",
        "REPLACE",
        "WITH",
        "FORMAT",
        "ANALYZE",
        "EXTENDED",
        "PARTITIONS",
        "TABLE",
        "VALUES",
    ];
    let names_format = is_word(&second, "FORMAT") && third == Token::Eq;
    let is_statement = statement[..6]
        .iter()
        .chain(&statement[7..])
        .any(|w| is_word(&second, w));
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
fn ownership(parser: &mut Parser, text: &str) -> Special {
    while !at_end(parser) {
        parser.advance_token();
    }
    Special::Ownership(text.to_string())
}

fn administration(parser: &mut Parser, text: &str) -> Result<Option<Special>, ParserError> {
    if peek_is(parser, "GDPR") || peek_is(parser, "CTX") {
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
