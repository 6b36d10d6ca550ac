//! Ownership in statements: rules, EXPLAIN COMPLIANCE, and what ALTER TABLE changes.
//!
//! Annotations of links stand inside what `sqlparser` reads, so the pre-pass has them
//! ([`super::prepass`]).

use manxdb_ownership::{
    RETAINED_MAX, Retention, RetentionUnit, Rule, RuleAction, RuleEvent, RuleSubject,
};
use sqlparser::ast::{ColumnOption, Expr, ForeignKeyConstraint, ObjectName, Statement};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::tree::{GdprForget, GdprFormat, GdprUndo, OwnershipChange, Special};
use super::words::{at_end, expect, name, peek_is, take, take_all, take_any};
use crate::catalog::OwnershipAnnotation;
use crate::types::SqlMode;

/// Annotations of links, by their words.
pub(super) const LINKS: [(&str, OwnershipAnnotation); 4] = [
    ("OWNED_BY", OwnershipAnnotation::OwnedBy),
    ("OWNS", OwnershipAnnotation::Owns),
    ("ACCESSED_BY", OwnershipAnnotation::AccessedBy),
    ("ACCESSES", OwnershipAnnotation::Accesses),
];

/// `EXPLAIN COMPLIANCE [FOR table]`.
pub(super) fn compliance(parser: &mut Parser) -> Result<Special, ParserError> {
    parser.advance_token();
    expect(parser, "COMPLIANCE")?;
    let table = if take(parser, "FOR") {
        Some(parser.parse_object_name(false)?)
    } else {
        None
    };
    Ok(Special::Compliance(table))
}

/// `GDPR GET | FORGET | UNDO | HOLD | RELEASE | VERIFY | CERTIFICATE | ROTATE MASTER KEY …`, `CTX START | COMMIT | ROLLBACK`.
pub(super) fn request(parser: &mut Parser) -> Result<Option<Special>, ParserError> {
    if take_all(parser, &["GDPR", "GET"]) {
        return get(parser).map(Some);
    }
    if take_all(parser, &["GDPR", "FORGET"]) {
        return forget(parser, false).map(Some);
    }
    if take_all(parser, &["GDPR", "ROTATE", "MASTER", "KEY"]) {
        return Ok(Some(Special::RotateMasterKey));
    }
    if take_all(parser, &["GDPR", "UNDO"]) {
        return undo(parser).map(Some);
    }
    if take_all(parser, &["GDPR", "HOLD"]) {
        return hold(parser).map(Some);
    }
    if take_all(parser, &["GDPR", "RELEASE"]) {
        let (kind, id) = person(parser)?;
        let table = on_table(parser)?;
        return Ok(Some(Special::GdprRelease { kind, id, table }));
    }
    if take_all(parser, &["GDPR", "VERIFY"]) {
        let (kind, id) = person(parser)?;
        return Ok(Some(Special::GdprVerify { kind, id }));
    }
    if take_all(parser, &["GDPR", "CERTIFICATE"]) {
        return parser
            .parse_literal_uint()
            .map(Special::GdprCertificate)
            .map(Some);
    }
    if take(parser, "CTX") {
        return context(parser).map(Some);
    }
    Ok(None)
}

/// K9db's words for a transaction, behind CTX.
fn context(parser: &mut Parser) -> Result<Special, ParserError> {
    if take(parser, "START") {
        return Ok(Special::StartTransaction {
            read_only: None,
            consistent_snapshot: false,
        });
    }
    let commit = match take_any(parser, &["COMMIT", "ROLLBACK"]) {
        Some(word) => word == "COMMIT",
        None => return parser.expected("START, COMMIT or ROLLBACK", parser.peek_token()),
    };
    Ok(Special::EndTransaction {
        commit,
        chain: false,
        release: false,
    })
}

/// `EXPLAIN GDPR FORGET …`.
pub(super) fn explain_forget(parser: &mut Parser) -> Result<Special, ParserError> {
    parser.advance_token();
    expect(parser, "GDPR")?;
    expect(parser, "FORGET")?;
    forget(parser, true)
}

/// `kind id`; an id of several values is in brackets.
fn person(parser: &mut Parser) -> Result<(ObjectName, Vec<Expr>), ParserError> {
    let kind = parser.parse_object_name(false)?;
    let id = match parser.parse_expr()? {
        Expr::Tuple(parts) => parts,
        Expr::Nested(part) => vec![*part],
        one => vec![one],
    };
    Ok((kind, id))
}

/// What comes behind `GDPR FORGET`.
fn forget(parser: &mut Parser, is_explained: bool) -> Result<Special, ParserError> {
    let (kind, id) = person(parser)?;
    let reason = if take(parser, "REASON") {
        Some(parser.parse_literal_string()?)
    } else {
        None
    };
    let grace_days = if take(parser, "GRACE") {
        let days = parser.parse_literal_uint()?;
        expect(parser, "DAY")?;
        Some(days)
    } else {
        None
    };
    Ok(Special::GdprForget(GdprForget {
        kind,
        id,
        reason,
        grace_days,
        is_explained,
    }))
}

/// `kind id | request`, behind `GDPR UNDO`.
fn undo(parser: &mut Parser) -> Result<Special, ParserError> {
    if let Token::Number(..) = parser.peek_token_ref().token {
        let request = parser.parse_literal_uint()?;
        return Ok(Special::GdprUndo(GdprUndo::Request(request)));
    }
    let (kind, id) = person(parser)?;
    Ok(Special::GdprUndo(GdprUndo::Person { kind, id }))
}

/// `kind id [ON table] REASON '…'`, behind `GDPR HOLD`.
fn hold(parser: &mut Parser) -> Result<Special, ParserError> {
    let (kind, id) = person(parser)?;
    let table = on_table(parser)?;
    expect(parser, "REASON")?;
    let reason = parser.parse_literal_string()?;
    Ok(Special::GdprHold {
        kind,
        id,
        table,
        reason,
    })
}

fn on_table(parser: &mut Parser) -> Result<Option<ObjectName>, ParserError> {
    if take(parser, "ON") {
        return parser.parse_object_name(false).map(Some);
    }
    Ok(None)
}

/// `kind id [FORMAT JSON | CSV | SQL]`, behind `GDPR GET`.
fn get(parser: &mut Parser) -> Result<Special, ParserError> {
    let (kind, id) = person(parser)?;
    let format = if take(parser, "FORMAT") {
        match take_any(parser, &["JSON", "CSV", "SQL"]) {
            Some("JSON") => GdprFormat::Json,
            Some("CSV") => GdprFormat::Csv,
            Some(_) => GdprFormat::Sql,
            None => return parser.expected("JSON, CSV or SQL", parser.peek_token()),
        }
    } else {
        GdprFormat::default()
    };
    Ok(Special::GdprGet { kind, id, format })
}

/// A rule: `ON GET | DEL subject ANON (columns) | DELETE_ROW`.
pub(super) fn rule(parser: &mut Parser) -> Result<Rule, ParserError> {
    let (event, subject) = event_and_subject(parser)?;
    let action = if take(parser, "DELETE_ROW") {
        RuleAction::DeleteRow
    } else {
        expect(parser, "ANON")?;
        parser.expect_token(&Token::LParen)?;
        let mut columns = Vec::new();
        while parser.peek_token_ref().token != Token::RParen {
            columns.push(name(parser)?);
            if !parser.consume_token(&Token::Comma) {
                break;
            }
        }
        parser.expect_token(&Token::RParen)?;
        if columns.is_empty() {
            RuleAction::DeleteRow
        } else {
            RuleAction::Anonymise(columns)
        }
    };
    Ok(Rule {
        event,
        subject,
        action,
    })
}

/// `RETAIN FOR n DAY | MONTH | YEAR AFTER column`.
fn retention(parser: &mut Parser) -> Result<Retention, ParserError> {
    expect(parser, "RETAIN")?;
    expect(parser, "FOR")?;
    let count = parser.parse_literal_uint()?;
    let count = u32::try_from(count)
        .ok()
        .filter(|count| (1..=RETAINED_MAX).contains(count));
    let Some(count) = count else {
        let text = format!("RETAIN FOR takes 1 to {RETAINED_MAX} days, months or years");
        return Err(ParserError::ParserError(text));
    };
    let word = take_any(parser, &RetentionUnit::ALL.map(|(word, _)| word));
    let unit = RetentionUnit::ALL
        .into_iter()
        .find(|(unit, _)| Some(*unit) == word);
    let Some((_, unit)) = unit else {
        return parser.expected("DAY, MONTH or YEAR", parser.peek_token());
    };
    expect(parser, "AFTER")?;
    let after = name(parser)?;
    Ok(Retention { count, unit, after })
}

/// The period in `tokens`, all of them.
pub(super) fn retention_of_all(parser: &mut Parser) -> Result<Retention, ParserError> {
    let retention = retention(parser)?;
    if at_end(parser) {
        return Ok(retention);
    }
    parser.expected(", or )", parser.peek_token())
}

fn event_and_subject(parser: &mut Parser) -> Result<(RuleEvent, RuleSubject), ParserError> {
    expect(parser, "ON")?;
    let event = if take(parser, "GET") {
        RuleEvent::Get
    } else {
        expect(parser, "DEL")?;
        RuleEvent::Del
    };
    let first = name(parser)?;
    let subject = if parser.consume_token(&Token::LParen) {
        let column = name(parser)?;
        parser.expect_token(&Token::RParen)?;
        RuleSubject {
            table: Some(first),
            column,
        }
    } else {
        RuleSubject {
            table: None,
            column: first,
        }
    };
    Ok((event, subject))
}

/// What an action of ALTER TABLE changes of ownership, if that is what comes next.
pub(super) fn change(parser: &mut Parser) -> Result<Option<OwnershipChange>, ParserError> {
    if take_all(parser, &["SET", "DATA_SUBJECT"]) {
        return Ok(Some(OwnershipChange::Subject(true)));
    }
    // `DROP data_subject` alone may be a column.
    if take_all(parser, &["DROP", "DATA_SUBJECT"]) {
        return Ok(Some(OwnershipChange::Subject(false)));
    }
    if take_all(parser, &["DROP", "RETAIN"]) {
        return Ok(Some(OwnershipChange::Retention(None)));
    }
    let adds = peek_is(parser, "ADD");
    if !adds && !peek_is(parser, "DROP") {
        return Ok(None);
    }
    if take_all(parser, &["ADD", "RETAIN", "FOR"]) {
        parser.prev_token();
        parser.prev_token();
        let retention = retention(parser)?;
        return Ok(Some(OwnershipChange::Retention(Some(retention))));
    }
    parser.advance_token();
    if peek_is(parser, "ON") {
        if adds {
            return rule(parser).map(|rule| Some(OwnershipChange::AddRule(rule)));
        }
        let (event, subject) = event_and_subject(parser)?;
        return Ok(Some(OwnershipChange::DropRules(event, subject)));
    }
    let word = take_any(parser, &LINKS.map(|(word, _)| word));
    let word = word.filter(|_| {
        let opens = parser.peek_token_ref().token == Token::LParen;
        if !opens {
            parser.prev_token();
        }
        opens
    });
    let Some((_, annotation)) = LINKS.into_iter().find(|(link, _)| Some(*link) == word) else {
        parser.prev_token();
        return Ok(None);
    };
    let columns = names(parser)?;
    if !adds {
        return Ok(Some(OwnershipChange::DropLink {
            annotation,
            columns,
        }));
    }
    let target = parser.parse_object_name(false)?;
    let target_columns = names(parser)?;
    Ok(Some(OwnershipChange::AddLink {
        annotation,
        columns,
        target,
        target_columns,
    }))
}

fn names(parser: &mut Parser) -> Result<Vec<sqlparser::ast::Ident>, ParserError> {
    parser.expect_token(&Token::LParen)?;
    let names = parser.parse_comma_separated(Parser::parse_identifier)?;
    parser.expect_token(&Token::RParen)?;
    Ok(names)
}

/// The link that the COMMENT of a column is, for tools that have no other place for it:
/// `OWNED_BY users (id)`. `None` for any other comment.
pub(crate) fn link_in_comment(
    comment: &str,
) -> Option<(OwnershipAnnotation, ForeignKeyConstraint)> {
    let first = comment.split_whitespace().next()?;
    LINKS
        .iter()
        .find(|(word, _)| first.eq_ignore_ascii_case(word))?;
    let text = format!("CREATE TABLE t (c INT {comment})");
    let mut parsed = super::parse(&text, SqlMode::default()).ok()?;
    let only = parsed.pop().filter(|_| parsed.is_empty())?;
    let Statement::CreateTable(create) = only.statement else {
        return None;
    };
    let [column] = create.columns.as_slice() else {
        return None;
    };
    let [option] = column.options.as_slice() else {
        return None;
    };
    let ColumnOption::ForeignKey(key) = &option.option else {
        return None;
    };
    // Prose may begin with such a word, too; a list of columns it does not have.
    if key.referred_columns.is_empty() {
        return None;
    }
    let [(_, annotation)] = only.annotations.references.as_slice() else {
        return None;
    };
    Some((*annotation, key.clone()))
}

/// The rule in `tokens`, all of them.
pub(super) fn rule_of_all(parser: &mut Parser) -> Result<Rule, ParserError> {
    let rule = rule(parser)?;
    if at_end(parser) {
        return Ok(rule);
    }
    parser.expected(", or )", parser.peek_token())
}
