//! Accounts and privileges.

use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::tree::{AccountName, GrantStatement, Special, UserSpec};
use super::words::{at_end, expect, is_word, name, peek_is, take, take_all};

/// `'user'@'host'`, `user@host`, `user`, `CURRENT_USER[()]`.
pub(super) fn account(parser: &mut Parser) -> Result<AccountName, ParserError> {
    for function in ["CURRENT_USER", "USER"] {
        if take(parser, function) {
            if parser.consume_token(&Token::LParen) {
                parser.expect_token(&Token::RParen)?;
            }
            return Ok(AccountName {
                user: String::new(),
                host: String::new(),
                current: true,
            });
        }
    }
    let quoted =
        !matches!(&parser.peek_token_ref().token, Token::Word(w) if w.quote_style.is_none());
    let first = name(parser)?;
    let (user, mut host) = match first.split_once('@') {
        Some((user, host)) if !quoted => (user.to_string(), Some(host.to_string())),
        _ => (first, None),
    };
    if host.as_deref() == Some("") {
        host = Some(name(parser)?);
    }
    if host.is_none()
        && let Token::Word(word) = &parser.peek_token_ref().token
        && let Some(rest) = word.value.strip_prefix('@')
    {
        let rest = rest.to_string();
        parser.advance_token();
        host = Some(if rest.is_empty() { name(parser)? } else { rest });
    }
    let mut host = host.unwrap_or_else(|| "%".into());
    while parser.consume_token(&Token::Period) {
        let more = match parser.next_token().token {
            Token::Word(word) => word.value,
            Token::Number(digits, _) => digits,
            _ => return parser.expected("host name", parser.peek_token()),
        };
        host = format!("{host}.{more}");
    }
    Ok(AccountName {
        user,
        host,
        current: false,
    })
}

fn accounts(parser: &mut Parser) -> Result<Vec<AccountName>, ParserError> {
    let mut all = vec![account(parser)?];
    while parser.consume_token(&Token::Comma) {
        all.push(account(parser)?);
    }
    Ok(all)
}

fn user_spec(parser: &mut Parser) -> Result<UserSpec, ParserError> {
    let mut spec = UserSpec {
        account: account(parser)?,
        plugin: None,
        password: None,
        verifier: None,
    };
    if take(parser, "IDENTIFIED") {
        if take(parser, "WITH") {
            spec.plugin = Some(name(parser)?);
            if take(parser, "AS") {
                spec.verifier = Some(name(parser)?);
            } else if take(parser, "BY") {
                spec.password = Some(name(parser)?);
            }
        } else {
            expect(parser, "BY")?;
            spec.password = Some(name(parser)?);
        }
    }
    Ok(spec)
}

fn user_specs(parser: &mut Parser) -> Result<Vec<UserSpec>, ParserError> {
    let mut all = vec![user_spec(parser)?];
    while parser.consume_token(&Token::Comma) {
        all.push(user_spec(parser)?);
    }
    Ok(all)
}

/// After `CREATE USER` or `ALTER USER`.
pub(super) fn users(parser: &mut Parser, alter: bool) -> Result<Special, ParserError> {
    let if_exists_clause = if alter {
        take_all(parser, &["IF", "EXISTS"])
    } else {
        take_all(parser, &["IF", "NOT", "EXISTS"])
    };
    let users = user_specs(parser)?;
    let mut locked = None;
    while !at_end(parser) {
        if take_all(parser, &["ACCOUNT", "LOCK"]) {
            locked = Some(true);
        } else if take_all(parser, &["ACCOUNT", "UNLOCK"]) {
            locked = Some(false);
        } else if take_all(parser, &["PASSWORD", "EXPIRE", "NEVER"])
            || take_all(parser, &["PASSWORD", "EXPIRE", "DEFAULT"])
            || take_all(parser, &["REQUIRE", "NONE"])
        {
            // These are how every account of ours is.
        } else {
            return parser.expected("account option", parser.peek_token());
        }
    }
    Ok(Special::Users {
        alter,
        if_exists_clause,
        users,
        locked,
    })
}

/// After `DROP USER`.
pub(super) fn drop_user(parser: &mut Parser) -> Result<Special, ParserError> {
    let if_exists = take_all(parser, &["IF", "EXISTS"]);
    Ok(Special::DropUser {
        if_exists,
        accounts: accounts(parser)?,
    })
}

/// After `RENAME USER`.
pub(super) fn rename_user(parser: &mut Parser) -> Result<Special, ParserError> {
    let mut pairs = Vec::new();
    loop {
        let from = account(parser)?;
        expect(parser, "TO")?;
        pairs.push((from, account(parser)?));
        if !parser.consume_token(&Token::Comma) {
            return Ok(Special::RenameUser(pairs));
        }
    }
}

/// After `SET PASSWORD`.
pub(super) fn set_password(parser: &mut Parser) -> Result<Special, ParserError> {
    let account = if take(parser, "FOR") {
        Some(account(parser)?)
    } else {
        None
    };
    parser.expect_token(&Token::Eq)?;
    let wrapped = take(parser, "PASSWORD");
    if wrapped {
        parser.expect_token(&Token::LParen)?;
    }
    let password = name(parser)?;
    if wrapped {
        parser.expect_token(&Token::RParen)?;
    }
    Ok(Special::SetPassword { account, password })
}

/// After `GRANT` or `REVOKE`; `to` is TO or FROM.
pub(super) fn grant(parser: &mut Parser, to: &str) -> Result<GrantStatement, ParserError> {
    let if_exists = take_all(parser, &["IF", "EXISTS"]);
    let privileges = privileges(parser)?;
    let mut statement = GrantStatement {
        privileges,
        database: None,
        current_database: false,
        table: None,
        accounts: Vec::new(),
        grant_option: false,
        if_exists,
    };
    if take(parser, "ON") {
        target(parser, &mut statement)?;
    }
    expect(parser, to)?;
    statement.accounts = user_specs(parser)?;
    statement.grant_option = take_all(parser, &["WITH", "GRANT", "OPTION"]);
    Ok(statement)
}

fn privileges(parser: &mut Parser) -> Result<Vec<String>, ParserError> {
    let mut all = Vec::new();
    loop {
        let mut words: Vec<String> = Vec::new();
        while let Token::Word(word) = &parser.peek_token_ref().token {
            if ["ON", "TO", "FROM"]
                .iter()
                .any(|stop| peek_is(parser, stop))
            {
                break;
            }
            words.push(word.value.to_ascii_uppercase());
            parser.advance_token();
        }
        if !words.is_empty() && parser.peek_token_ref().token == Token::LParen {
            return Err(ParserError::ParserError(
                "unsupported: privileges on columns".to_string(),
            ));
        }
        if words.is_empty() {
            return parser.expected("privilege", parser.peek_token());
        }
        if words == ["ALL", "PRIVILEGES"] {
            words.pop();
        }
        all.push(words.join(" "));
        if !parser.consume_token(&Token::Comma) {
            return Ok(all);
        }
    }
}

/// `*.*`, `db.*`, `db.t`, `t`, `*`.
fn target(parser: &mut Parser, statement: &mut GrantStatement) -> Result<(), ParserError> {
    let _ = is_word(&parser.peek_token_ref().token, "TABLE") && take(parser, "TABLE");
    let first = star_or_name(parser)?;
    if parser.consume_token(&Token::Period) {
        statement.database = first;
        statement.table = star_or_name(parser)?;
    } else {
        statement.current_database = true;
        statement.table = first;
    }
    Ok(())
}

fn star_or_name(parser: &mut Parser) -> Result<Option<String>, ParserError> {
    if parser.consume_token(&Token::Mul) {
        return Ok(None);
    }
    name(parser).map(Some)
}
