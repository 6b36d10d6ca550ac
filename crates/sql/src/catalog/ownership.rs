//! Tables of the catalog as `manxdb_ownership` sees them.

use manxdb_ownership::{
    Annotation, ColumnShape, EdgeKind, Link, OwnershipGraph, Retention, Rule, TableName, TableShape,
};
use serde::{Deserialize, Serialize};

use super::{Catalog, ColumnId, ForeignKey, OwnershipAnnotation, Table};

/// What is decided of a table's ownership beside `data_subject` and the edges of its foreign keys.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ownership {
    /// `ON GET` and `ON DEL`.
    pub rules: Vec<Rule>,
    /// `UNOWNED ALLOWED`.
    pub unowned_allowed: bool,
    /// `RETAIN FOR …`; beside the record of the rest, which older releases read.
    #[serde(skip)]
    pub retention: Option<Retention>,
    /// The column that says where a person is at home: `HOME_REGION`. It is kept and shown, and nothing is
    /// placed by it. Beside the record of the rest, too.
    #[serde(skip)]
    pub home_region: Option<ColumnId>,
}

impl Table {
    /// Whether the table says itself whose its rows are.
    #[must_use]
    pub fn has_ownership(&self) -> bool {
        self.data_subject
            || self.ownership != Ownership::default()
            || self.foreign_keys.iter().any(|key| key.edge.is_some())
    }
}

impl OwnershipAnnotation {
    /// The kind of edge it says, unless it is REFERENCES, with ONLY or without.
    #[must_use]
    pub fn edge(self) -> Option<EdgeKind> {
        match self {
            OwnershipAnnotation::References | OwnershipAnnotation::ReferencesOnly => None,
            OwnershipAnnotation::OwnedBy => Some(EdgeKind::OwnedBy),
            OwnershipAnnotation::Owns => Some(EdgeKind::Owns),
            OwnershipAnnotation::AccessedBy => Some(EdgeKind::AccessedBy),
            OwnershipAnnotation::Accesses => Some(EdgeKind::Accesses),
        }
    }
}

/// The name of `table`.
pub(crate) fn name(table: &Table) -> TableName {
    TableName::new(&table.database, &table.name)
}

/// `table` as ownership sees it. `is_new` says which of its foreign keys are to be decided on.
pub(crate) fn shape(table: &Table, is_new: &dyn Fn(&ForeignKey) -> bool) -> TableShape {
    let columns = table.columns.iter().map(|column| ColumnShape {
        name: column.name.clone(),
        is_nullable: !column.not_null,
        is_generated: column.generated.is_some(),
        is_text: column.ty.is_text(),
    });
    let links = table.foreign_keys.iter().map(|key| Link {
        columns: key.columns.clone(),
        target: TableName::new(&key.ref_database, &key.ref_table),
        target_columns: key.ref_columns.clone(),
        annotation: match (key.ownership, key.ownership.edge()) {
            (_, Some(kind)) => Annotation::Edge(kind),
            (OwnershipAnnotation::ReferencesOnly, None) => Annotation::ReferencesOnly,
            (_, None) => Annotation::References,
        },
        edge: key.edge,
        is_new: is_new(key),
    });
    TableShape {
        name: name(table),
        is_subject: table.data_subject,
        unowned_allowed: table.ownership.unowned_allowed,
        columns: columns.collect(),
        primary_key: table.primary_key.clone(),
        links: links.collect(),
        rules: table.ownership.rules.clone(),
    }
}

/// All tables of `catalog` but `without`.
pub(crate) fn graph(catalog: &Catalog, without: Option<&TableName>) -> OwnershipGraph {
    let databases = catalog.stored().databases.values();
    let tables = databases.flat_map(|database| database.tables.values());
    let shapes = tables
        .filter(|table| without.is_none_or(|without| *without != name(table)))
        .map(|table| shape(table, &|_| false));
    OwnershipGraph::new(shapes)
}

/// Whether any table says whose its rows are: without one there is nothing to decide, and no graph to
/// be made.
pub(crate) fn is_used(catalog: &Catalog) -> bool {
    let databases = catalog.stored().databases.values();
    let mut tables = databases.flat_map(|database| database.tables.values());
    tables.any(|table| table.has_ownership())
}
