//! Tables as ownership sees them.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::rule::Rule;

/// A table's name with its database's. Names compare without regard to case, as MySQL's on file
/// systems that do not tell cases apart.
#[derive(Debug, Clone)]
pub struct TableName {
    /// The database, as written.
    pub database: String,
    /// The table, as written.
    pub name: String,
    folded: (String, String),
}

impl TableName {
    /// The table `name` of `database`.
    #[must_use]
    pub fn new(database: &str, name: &str) -> Self {
        Self {
            folded: (database.to_lowercase(), name.to_lowercase()),
            database: database.to_string(),
            name: name.to_string(),
        }
    }
}

impl PartialEq for TableName {
    fn eq(&self, other: &Self) -> bool {
        self.folded == other.folded
    }
}

impl Eq for TableName {}

impl PartialOrd for TableName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for TableName {
    fn cmp(&self, other: &Self) -> Ordering {
        self.folded.cmp(&other.folded)
    }
}

/// Without the database: what is shown is about one database nearly always.
impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// A table.
#[derive(Debug, Clone)]
pub struct TableShape {
    /// Its name.
    pub name: TableName,
    /// `DATA_SUBJECT`: each row is a person.
    pub is_subject: bool,
    /// `UNOWNED ALLOWED`: a row may have no owner.
    pub unowned_allowed: bool,
    /// Its columns.
    pub columns: Vec<ColumnShape>,
    /// Positions of the primary key's columns.
    pub primary_key: Vec<usize>,
    /// Its references to other tables, or to itself.
    pub links: Vec<Link>,
    /// What GET and FORGET do to rows that others keep.
    pub rules: Vec<Rule>,
}

impl TableShape {
    /// The position of the column called `name`.
    #[must_use]
    pub fn position(&self, name: &str) -> Option<usize> {
        // Names that come from the catalog are spelled like this: it is asked for each row of a person.
        let mut columns = self.columns.iter();
        if let Some(at) = columns.position(|column| column.name == name) {
            return Some(at);
        }
        let lower = name.to_lowercase();
        let mut columns = self.columns.iter();
        columns.position(|column| column.name.to_lowercase() == lower)
    }

    /// `table.column`, or `table.(a, b)` for several.
    #[must_use]
    pub fn columns_named(&self, columns: &[usize]) -> String {
        let names: Vec<&str> = columns
            .iter()
            .filter_map(|at| self.columns.get(*at))
            .map(|column| column.name.as_str())
            .collect();
        match names.as_slice() {
            [one] => format!("{}.{one}", self.name),
            several => format!("{}.({})", self.name, several.join(", ")),
        }
    }

    /// Whether a column of `link` may be NULL.
    #[must_use]
    pub fn is_nullable(&self, link: &Link) -> bool {
        let mut columns = link.columns.iter().filter_map(|at| self.columns.get(*at));
        columns.any(|column| column.is_nullable)
    }
}

/// A column.
#[derive(Debug, Clone)]
pub struct ColumnShape {
    /// Its name.
    pub name: String,
    /// Not NOT NULL.
    pub is_nullable: bool,
    /// Its value is computed from other columns.
    pub is_generated: bool,
    /// Text: what people are called, and not a number given to them.
    pub is_text: bool,
}

/// A reference from columns of one table to columns of another.
#[derive(Debug, Clone)]
pub struct Link {
    /// Positions in the table that has it.
    pub columns: Vec<usize>,
    /// The table it leads to.
    pub target: TableName,
    /// Names of the columns it leads to.
    pub target_columns: Vec<String>,
    /// What the statement said.
    pub annotation: Annotation,
    /// What was decided; `None` for a reference that means nothing for ownership.
    pub edge: Option<Edge>,
    /// The statement at hand makes it: it is to be decided what it means.
    pub is_new: bool,
}

/// The word of a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Annotation {
    /// `REFERENCES`: an owner, if it is the only candidate.
    References,
    /// `REFERENCES ONLY`: never.
    ReferencesOnly,
    /// One of the four words.
    Edge(EdgeKind),
}

/// What a link means, for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Edge {
    /// What it means.
    pub kind: EdgeKind,
    /// Whether somebody said so.
    pub origin: Origin,
}

/// The four kinds of edges (K9db §4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum EdgeKind {
    /// `OWNED_BY`: the owners of the target's row own this row.
    OwnedBy,
    /// `OWNS`: the owners of this row own the target's row.
    Owns,
    /// `ACCESSED_BY`: the owners of the target's row, and who has access to it, have access to this row.
    AccessedBy,
    /// `ACCESSES`: the owners of this row, and who has access to it, have access to the target's row.
    Accesses,
}

impl EdgeKind {
    /// The word in statements.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            EdgeKind::OwnedBy => "OWNED_BY",
            EdgeKind::Owns => "OWNS",
            EdgeKind::AccessedBy => "ACCESSED_BY",
            EdgeKind::Accesses => "ACCESSES",
        }
    }

    /// Whether it makes owners, not readers.
    #[must_use]
    pub fn gives_ownership(self) -> bool {
        matches!(self, EdgeKind::OwnedBy | EdgeKind::Owns)
    }

    /// Whether people come from the table that has the link to the table it leads to.
    #[must_use]
    pub fn leads_to_target(self) -> bool {
        matches!(self, EdgeKind::Owns | EdgeKind::Accesses)
    }
}

/// Where an edge comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Origin {
    /// An annotation.
    Explicit,
    /// The only REFERENCES to an owned table of a table without an annotation.
    Inferred,
}
