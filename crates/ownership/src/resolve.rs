//! What the links of a new or changed table mean. What of it is refused: [`refusal`](crate::refusal).

use crate::graph::OwnershipGraph;
use crate::refusal::{OwnershipRefusal, is_key};
use crate::shape::{Annotation, Edge, EdgeKind, Link, Origin, TableShape};

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
