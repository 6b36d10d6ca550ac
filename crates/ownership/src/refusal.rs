//! Why a definition is refused.

/// Why a definition is refused. Each names the columns it is about.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OwnershipRefusal {
    /// Several REFERENCES could name the owner.
    #[error(
        "table '{table}' may be owned through {candidates}: say OWNED_BY for owners and REFERENCES ONLY for the rest"
    )]
    Ambiguous {
        /// The table.
        table: String,
        /// Its columns.
        candidates: String,
    },
    /// A row would own itself.
    #[error("{columns} cannot be {word} its own table: rows would own each other in a cycle")]
    OwnTable {
        /// The columns.
        columns: String,
        /// The annotation.
        word: &'static str,
    },
    /// Owners would be looked for in a circle.
    #[error("ownership would go in a cycle: {path}")]
    Cycle {
        /// `a.x -> b.y -> a`.
        path: String,
    },
    /// The target's people are unknown.
    #[error(
        "{columns} is {word} '{target}', whose rows are no person's: make it DATA_SUBJECT or give it an owner first"
    )]
    TargetNotOwned {
        /// The columns.
        columns: String,
        /// The annotation.
        word: &'static str,
        /// The other table.
        target: String,
    },
    /// The table that owns has no owners.
    #[error("{columns} {word} rows of '{target}', but nobody owns rows of '{table}'")]
    NobodyOwns {
        /// The columns.
        columns: String,
        /// The annotation.
        word: &'static str,
        /// The other table.
        target: String,
        /// The table that has the link.
        table: String,
    },
    /// Not the whole primary key.
    #[error("{columns} must refer to the primary key of '{target}', which is ({key})")]
    NotPrimaryKey {
        /// The columns.
        columns: String,
        /// The other table.
        target: String,
        /// Its key's columns.
        key: String,
    },
    /// People without an id.
    #[error("data subject table '{table}' needs a primary key: it is the id of a person")]
    NoPrimaryKey {
        /// The table.
        table: String,
    },
    /// A change takes the owners that others have through this table.
    #[error("'{table}' is left without owners, but rows are theirs through {columns}")]
    StillNeeded {
        /// The table.
        table: String,
        /// The links that lead to it.
        columns: String,
    },
    /// A rule's subject is no link.
    #[error(
        "{rule}: its subject is no column of '{table}' that is annotated as a link to a person"
    )]
    RuleSubject {
        /// The rule.
        rule: String,
        /// The table.
        table: String,
    },
    /// A rule would clear what cannot be empty.
    #[error("{rule} cannot clear {column}, {why}")]
    RuleColumn {
        /// The rule.
        rule: String,
        /// The column.
        column: String,
        /// What it is.
        why: &'static str,
    },
}
