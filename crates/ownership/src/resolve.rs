//! What the links of a new or changed table mean, and what of it is refused.

use crate::graph::{Hop, OwnershipGraph};
use crate::refusal::OwnershipRefusal;
use crate::rule_check;
use crate::shape::{Annotation, Edge, EdgeKind, Link, Origin, TableName, TableShape};

/// Decides what the new links of `table` mean: the edge of each link, in their order. `graph` holds the
/// other tables; what it says of `table` is not looked at.
///
/// # Errors
/// [`OwnershipRefusal::Ambiguous`].
pub fn resolve(
    graph: &OwnershipGraph,
    table: &TableShape,
) -> Result<Vec<Option<Edge>>, OwnershipRefusal> {
    let mut edges: Vec<Option<Edge>> = table.links.iter().map(explicit).collect();
    assert_eq!(
        edges.len(),
        table.links.len(),
        "an edge or none for each link"
    );
    let is_owner = |edge: &Option<Edge>| edge.is_some_and(|edge| edge.kind == EdgeKind::OwnedBy);
    let has_owner = table.is_subject
        || edges.iter().any(is_owner)
        || graph
            .owner_hops(&table.name)
            .iter()
            .any(|hop| hop.edge.kind == EdgeKind::Owns);
    if has_owner || !table.links.iter().any(|link| link.is_new) {
        return Ok(edges);
    }
    let candidates: Vec<usize> = table
        .links
        .iter()
        .enumerate()
        .filter(|(_, link)| is_candidate(graph, table, link))
        .map(|(at, _)| at)
        .collect();
    let inferred = Edge {
        kind: EdgeKind::OwnedBy,
        origin: Origin::Inferred,
    };
    match candidates.as_slice() {
        [] => {}
        [only] => {
            if let (Some(edge), Some(link)) = (edges.get_mut(*only), table.links.get(*only))
                && link.is_new
            {
                *edge = Some(inferred);
            }
        }
        several => {
            let named: Vec<String> = several
                .iter()
                .filter_map(|at| table.links.get(*at))
                .map(|link| table.columns_named(&link.columns))
                .collect();
            return Err(OwnershipRefusal::Ambiguous {
                table: table.name.name.clone(),
                candidates: named.join(" or "),
            });
        }
    }
    Ok(edges)
}

/// The edge of a link without a look at others: decided before, or said.
fn explicit(link: &Link) -> Option<Edge> {
    match link.annotation {
        Annotation::Edge(kind) if link.is_new => Some(Edge {
            kind,
            origin: Origin::Explicit,
        }),
        _ => link.edge,
    }
}

/// Whether a plain REFERENCES may name the owner: its target is owned, by others than through `table`,
/// and it leads to the whole primary key.
fn is_candidate(graph: &OwnershipGraph, table: &TableShape, link: &Link) -> bool {
    let Some(target) = graph.table(&link.target) else {
        return false;
    };
    link.annotation == Annotation::References
        && link.edge.is_none()
        && link.target != table.name
        && graph.is_owned(&link.target)
        && !graph.depends_on(&link.target, &table.name)
        && is_key(target, &link.target_columns)
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
    rule_check::check(table)
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

fn key_names(table: &TableShape) -> Vec<String> {
    let columns = table
        .primary_key
        .iter()
        .filter_map(|at| table.columns.get(*at));
    columns.map(|column| column.name.clone()).collect()
}

/// Whether `columns` are the primary key of `table`, in any order.
fn is_key(table: &TableShape, columns: &[String]) -> bool {
    let folded = |names: &[String]| {
        let mut names: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
        names.sort();
        names
    };
    !columns.is_empty() && folded(columns) == folded(&key_names(table))
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
