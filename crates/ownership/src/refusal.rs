//! Which definitions are refused, and why. That several links could name the owner is found while their
//! meaning is decided ([`resolve`](crate::resolve)).

use crate::graph::{Hop, OwnershipGraph};
use crate::rule::{Rule, RuleAction, RuleEvent};
use crate::shape::{EdgeKind, Link, TableName, TableShape};

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

/// Refuses a table as it would be, in a graph that holds it so. With `owners_may_follow`
/// (`foreign_key_checks = 0`: a dump is being loaded) a table may lack the owners that a later statement
/// gives it; [`crate::report`] finds those that never came.
///
/// # Errors
/// Every [`OwnershipRefusal`] but [`OwnershipRefusal::Ambiguous`].
pub fn check(
    graph: &OwnershipGraph,
    name: &TableName,
    owners_may_follow: bool,
) -> Result<(), OwnershipRefusal> {
    let Some(table) = graph.table(name) else {
        return Ok(());
    };
    if table.is_subject && table.primary_key.is_empty() {
        return Err(OwnershipRefusal::NoPrimaryKey {
            table: table.name.name.clone(),
        });
    }
    for link in &table.links {
        if let Some(edge) = link.edge {
            check_link(graph, table, link, edge.kind)?;
            if !owners_may_follow {
                check_people(graph, table, link, edge.kind)?;
            }
        }
    }
    if let Some(cycle) = graph.cycle_through(name) {
        return Err(OwnershipRefusal::Cycle {
            path: path_of(&cycle),
        });
    }
    check_others(graph, table, owners_may_follow)?;
    check_rules(table)
}

/// What a link is of itself.
fn check_link(
    graph: &OwnershipGraph,
    table: &TableShape,
    link: &Link,
    kind: EdgeKind,
) -> Result<(), OwnershipRefusal> {
    let columns = table.columns_named(&link.columns);
    if link.target == table.name && kind.gives_ownership() {
        let word = kind.word();
        return Err(OwnershipRefusal::OwnTable { columns, word });
    }
    match graph.table(&link.target) {
        Some(other) if !is_key(other, &link.target_columns) => {
            Err(OwnershipRefusal::NotPrimaryKey {
                columns,
                target: other.name.name.clone(),
                key: key_names(other).join(", "),
            })
        }
        _ => Ok(()),
    }
}

/// The table from which a link's people come has people. One that is not there may have them.
fn check_people(
    graph: &OwnershipGraph,
    table: &TableShape,
    link: &Link,
    kind: EdgeKind,
) -> Result<(), OwnershipRefusal> {
    let source = if kind.leads_to_target() {
        &table.name
    } else {
        &link.target
    };
    if graph.table(source).is_none() || has_people(graph, source, kind) {
        return Ok(());
    }
    let columns = table.columns_named(&link.columns);
    let (word, target) = (kind.word(), link.target.name.clone());
    if kind.leads_to_target() {
        let table = table.name.name.clone();
        return Err(OwnershipRefusal::NobodyOwns {
            columns,
            word,
            target,
            table,
        });
    }
    Err(OwnershipRefusal::TargetNotOwned {
        columns,
        word,
        target,
    })
}

/// Whether `table` has the people that an edge of this kind takes from it.
fn has_people(graph: &OwnershipGraph, table: &TableName, kind: EdgeKind) -> bool {
    if kind.gives_ownership() {
        graph.is_owned(table)
    } else {
        graph.is_accessed(table)
    }
}

/// Links of others that need `table`'s owners, and its key.
fn check_others(
    graph: &OwnershipGraph,
    table: &TableShape,
    owners_may_follow: bool,
) -> Result<(), OwnershipRefusal> {
    let mut lost = Vec::new();
    for other in graph.tables().filter(|other| other.name != table.name) {
        for link in other.links.iter().filter(|link| link.target == table.name) {
            let Some(edge) = link.edge else { continue };
            if !is_key(table, &link.target_columns) {
                return Err(OwnershipRefusal::NotPrimaryKey {
                    columns: other.columns_named(&link.columns),
                    target: table.name.name.clone(),
                    key: key_names(table).join(", "),
                });
            }
            let takes_people = !edge.kind.leads_to_target() && !owners_may_follow;
            if takes_people && !has_people(graph, &table.name, edge.kind) {
                lost.push(other.columns_named(&link.columns));
            }
        }
    }
    if lost.is_empty() {
        return Ok(());
    }
    Err(OwnershipRefusal::StillNeeded {
        table: table.name.name.clone(),
        columns: lost.join(", "),
    })
}

fn path_of(cycle: &[Hop]) -> String {
    let mut text = String::new();
    for hop in cycle {
        text.push_str(&hop.columns);
        text.push_str(" -> ");
    }
    if let Some(first) = cycle.first() {
        text.push_str(&first.from.name);
    }
    text
}

/// Refuses rules that name what is not there, or that would clear what cannot be empty.
fn check_rules(table: &TableShape) -> Result<(), OwnershipRefusal> {
    for rule in &table.rules {
        if rule.subject.table.is_none() && own_subject(table, rule).is_none() {
            return Err(OwnershipRefusal::RuleSubject {
                rule: rule.to_string(),
                table: table.name.name.clone(),
            });
        }
        let RuleAction::Anonymise(columns) = &rule.action else {
            continue;
        };
        for name in columns {
            check_cleared(table, rule, name)?;
        }
    }
    Ok(())
}

/// The link of `table` that the rule's subject names.
pub(crate) fn own_subject<'a>(table: &'a TableShape, rule: &Rule) -> Option<&'a Link> {
    let at = table.position(&rule.subject.column)?;
    let mut links = table.links.iter();
    links.find(|link| link.edge.is_some() && link.columns.contains(&at))
}

/// One column of an ANON.
fn check_cleared(table: &TableShape, rule: &Rule, name: &str) -> Result<(), OwnershipRefusal> {
    let refused = |why| OwnershipRefusal::RuleColumn {
        rule: rule.to_string(),
        column: format!("{}.{name}", table.name),
        why,
    };
    let at = table
        .position(name)
        .ok_or_else(|| refused("which is not there"))?;
    // GET clears the answer and not the row.
    if rule.event == RuleEvent::Get {
        return Ok(());
    }
    if table.primary_key.contains(&at) {
        return Err(refused("a column of the primary key"));
    }
    let column = table.columns.get(at);
    if column.is_some_and(|column| column.is_generated) {
        return Err(refused("a generated column"));
    }
    if column.is_some_and(|column| !column.is_nullable) {
        return Err(refused("which is NOT NULL"));
    }
    let own = own_subject(table, rule).map(|link| &link.columns);
    let names_others = |link: &&Link| {
        let gives = link.edge.is_some_and(|edge| edge.kind.gives_ownership());
        gives && link.columns.contains(&at) && Some(&link.columns) != own
    };
    match table.links.iter().find(names_others) {
        Some(_) => Err(refused("which names another owner")),
        None => Ok(()),
    }
}

fn key_names(table: &TableShape) -> Vec<String> {
    let columns = table
        .primary_key
        .iter()
        .filter_map(|at| table.columns.get(*at));
    columns.map(|column| column.name.clone()).collect()
}

/// Whether `columns` are the primary key of `table`, in any order.
pub(crate) fn is_key(table: &TableShape, columns: &[String]) -> bool {
    let folded = |names: &[String]| {
        let mut names: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
        names.sort();
        names
    };
    !columns.is_empty() && folded(columns) == folded(&key_names(table))
}
