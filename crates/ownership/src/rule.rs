//! `ON GET` and `ON DEL`: what becomes of a row that a person shares with others.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One rule of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// When.
    pub event: RuleEvent,
    /// For whom.
    pub subject: RuleSubject,
    /// What.
    pub action: RuleAction,
}

/// When a rule applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RuleEvent {
    /// `GDPR GET`.
    Get,
    /// `GDPR FORGET`.
    Del,
}

/// The link through which the person is linked to the row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleSubject {
    /// Another table, of the same database, whose OWNS or ACCESSES leads here.
    pub table: Option<String>,
    /// A column of it, or of the rule's own table.
    pub column: String,
}

/// What a rule does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RuleAction {
    /// `ANON (a, b)`: these columns become NULL.
    Anonymise(Vec<String>),
    /// `DELETE_ROW`, or `ANON ()`: the row is not shown, or goes.
    DeleteRow,
}

impl fmt::Display for RuleEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RuleEvent::Get => "ON GET",
            RuleEvent::Del => "ON DEL",
        })
    }
}

impl fmt::Display for RuleSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.table {
            Some(table) => write!(f, "{table}({})", self.column),
            None => f.write_str(&self.column),
        }
    }
}

/// As in a statement, names unquoted.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ", self.event, self.subject)?;
        match &self.action {
            RuleAction::Anonymise(columns) => write!(f, "ANON ({})", columns.join(", ")),
            RuleAction::DeleteRow => f.write_str("DELETE_ROW"),
        }
    }
}
