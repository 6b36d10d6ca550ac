//! Which rules are refused with a table, and which of another table's are not in force.

use crate::graph::OwnershipGraph;
use crate::refusal::OwnershipRefusal;
use crate::rule::{Rule, RuleAction, RuleEvent};
use crate::shape::{Link, TableName, TableShape};

/// Refuses rules that name what is not there, or that would clear what cannot be empty.
pub(crate) fn check(table: &TableShape) -> Result<(), OwnershipRefusal> {
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
fn own_subject<'a>(table: &'a TableShape, rule: &Rule) -> Option<&'a Link> {
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

/// Why a rule whose subject is in another table is not in force; `None` when it is.
pub(crate) fn why_idle(graph: &OwnershipGraph, table: &TableShape, rule: &Rule) -> Option<String> {
    let name = rule.subject.table.as_ref()?;
    let other = TableName::new(&table.name.database, name);
    let Some(other) = graph.table(&other) else {
        return Some(format!("table {name} is not there"));
    };
    let leads_here = |link: &&Link| {
        let leads = link.edge.is_some_and(|edge| edge.kind.leads_to_target());
        leads && link.target == table.name
    };
    if !other.links.iter().any(|link| leads_here(&link)) {
        return Some(format!(
            "no OWNS or ACCESSES of {name} leads to {}",
            table.name
        ));
    }
    let at = other.position(&rule.subject.column);
    let mut edges = other.links.iter().filter(|link| link.edge.is_some());
    let named = at.is_some_and(|at| edges.any(|link| link.columns.contains(&at)));
    (!named).then(|| format!("{} names no person", rule.subject))
}
