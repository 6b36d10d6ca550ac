//! Which rules for rows of another table are not in force.

use crate::graph::OwnershipGraph;
use crate::refusal::own_subject;
use crate::rule::Rule;
use crate::shape::{Link, TableName, TableShape};

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
    let is_nobody = own_subject(other, rule).is_none();
    is_nobody.then(|| format!("{} names no person", rule.subject))
}
