//! Links of ownership between the tables of one catalog, with how the rows at their ends are found.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::tz::TimeZone;
use manxdb_ownership::EdgeKind;
use manxdb_storage::KeyRange;

use super::keys::KeyRule;
use crate::catalog::{Catalog, ForeignKey, ROWS, Table, TableId};
use crate::encoding;
use crate::error::SqlResult;
use crate::statement::foreign_key::{Access, access};
use crate::statement::target::position;
use crate::types::Value;

/// Tables whose rows are people's, and those that their links go through.
#[derive(Debug)]
pub(crate) struct OwnerGraph {
    tables: BTreeMap<TableId, OwnedTable>,
}

/// One table with its links both ways.
#[derive(Debug)]
pub(crate) struct OwnedTable {
    pub(crate) table: Arc<Table>,
    /// Its OWNED_BY links.
    pub(super) owned_by: Vec<OwnerLink>,
    /// OWNS links of other tables that lead to it.
    pub(super) owned_through: Vec<OwnerLink>,
    /// Its OWNS links.
    pub(super) owns: Vec<OwnerLink>,
    /// OWNED_BY links of other tables that lead to it.
    pub(super) children: Vec<OwnerLink>,
}

/// An OWNED_BY or OWNS link.
#[derive(Debug, Clone)]
pub(super) struct OwnerLink {
    /// The table that has it.
    pub(super) from: Arc<Table>,
    /// Its columns there.
    pub(super) columns: Vec<usize>,
    /// How rows that have it are found by their values.
    access: Access,
    /// The table it leads to; `None` when that is not there yet.
    pub(super) target: Option<Arc<Table>>,
    /// For each column of the target's primary key, which of `columns` holds it.
    order: Vec<usize>,
}

impl OwnerGraph {
    /// The links of `catalog`; `None` when no table says whose its rows are.
    pub(crate) fn of(catalog: &Catalog) -> Option<Self> {
        let catalog = catalog.stored();
        let mut tables: BTreeMap<TableId, OwnedTable> = BTreeMap::new();
        let databases = catalog.databases.values();
        for table in databases.flat_map(|database| database.tables.values()) {
            if table.has_ownership() {
                tables
                    .entry(table.id)
                    .or_insert_with(|| OwnedTable::new(table));
            }
            for key in &table.foreign_keys {
                add_link(catalog, &mut tables, table, key);
            }
        }
        (!tables.is_empty()).then_some(Self { tables })
    }

    pub(crate) fn table(&self, id: TableId) -> Option<&OwnedTable> {
        self.tables.get(&id)
    }

    /// All tables whose rows are to have owners.
    pub(crate) fn ownable(&self) -> impl Iterator<Item = &OwnedTable> {
        self.tables.values().filter(|owned| owned.is_ownable())
    }

    /// Tables whose rows are sealed, each behind those whose rows' keys its own may have.
    pub(crate) fn sealed_in_order(&self) -> Vec<TableId> {
        let mut order: Vec<TableId> = Vec::new();
        let mut left: Vec<&OwnedTable> = self.tables.values().collect();
        loop {
            let before = left.len();
            left.retain(|owned| {
                let is_next = match owned.key_rule() {
                    KeyRule::Plain => return false,
                    KeyRule::Own => true,
                    KeyRule::Through(link) => match &link.target {
                        Some(target) => order.contains(&target.id),
                        None => true,
                    },
                };
                if is_next {
                    order.push(owned.table.id);
                }
                !is_next
            });
            if left.is_empty() || left.len() == before {
                // What is left hangs below a table that nobody owns.
                return order;
            }
        }
    }

    /// Those of [`OwnerGraph::sealed_in_order`] whose rows' keys may follow from rows of `table`: its own,
    /// what it owns, and what is owned through those.
    pub(crate) fn sealed_below(&self, table: TableId) -> Vec<TableId> {
        let mut below = std::collections::BTreeSet::from([table]);
        let mut open = vec![table];
        while let Some(owned) = open.pop().and_then(|id| self.table(id)) {
            for next in owned.owns_tables().chain(owned.child_tables()) {
                if below.insert(next.id) {
                    open.push(next.id);
                }
            }
        }
        let mut order = self.sealed_in_order();
        order.retain(|id| below.contains(id));
        order
    }
}

fn add_link(
    catalog: &Catalog,
    tables: &mut BTreeMap<TableId, OwnedTable>,
    table: &Arc<Table>,
    key: &ForeignKey,
) {
    let Some(kind) = key.edge.map(|edge| edge.kind) else {
        return;
    };
    if !kind.gives_ownership() {
        return;
    }
    let target = catalog.table(&key.ref_database, &key.ref_table).ok();
    let Some(link) = OwnerLink::new(table, key, target) else {
        return;
    };
    let (mine, theirs): (Side, Side) = match kind {
        EdgeKind::Owns => (|own| &mut own.owns, |other| &mut other.owned_through),
        _ => (|own| &mut own.owned_by, |other| &mut other.children),
    };
    let own = tables
        .entry(table.id)
        .or_insert_with(|| OwnedTable::new(table));
    mine(own).push(link.clone());
    if let Some(target) = target {
        let other = tables
            .entry(target.id)
            .or_insert_with(|| OwnedTable::new(target));
        theirs(other).push(link);
    }
}

/// One of the four lists of a table.
type Side = fn(&mut OwnedTable) -> &mut Vec<OwnerLink>;

impl OwnedTable {
    fn new(table: &Arc<Table>) -> Self {
        Self {
            table: Arc::clone(table),
            owned_by: Vec::new(),
            owned_through: Vec::new(),
            owns: Vec::new(),
            children: Vec::new(),
        }
    }

    /// Whether its rows are people: they need no other owner.
    pub(crate) fn is_subject(&self) -> bool {
        self.table.data_subject
    }

    /// Whether its rows have owners, or should.
    pub(crate) fn is_ownable(&self) -> bool {
        let mut links = self.owned_by.iter().chain(&self.owned_through);
        !self.is_subject() && links.next().is_some()
    }

    /// Whether a row may stay without owner.
    pub(crate) fn unowned_allowed(&self) -> bool {
        self.table.ownership.unowned_allowed
    }

    /// Tables whose rows it owns by OWNS.
    pub(crate) fn owns_tables(&self) -> impl Iterator<Item = &Table> {
        self.owns.iter().filter_map(|link| link.target.as_deref())
    }

    /// Tables whose rows are OWNED_BY it.
    pub(crate) fn child_tables(&self) -> impl Iterator<Item = &Table> {
        self.children.iter().map(|link| link.from.as_ref())
    }

    /// Its links as 51001 names them.
    pub(super) fn ways_to_own(&self) -> String {
        let name = |link: &OwnerLink| {
            let columns: Vec<&str> = link
                .columns
                .iter()
                .filter_map(|at| link.from.columns.get(*at))
                .map(|column| column.name.as_str())
                .collect();
            format!("{}.{}", link.from.name, columns.join(", "))
        };
        let links = self.owned_by.iter().chain(&self.owned_through);
        links.map(name).collect::<Vec<_>>().join(" or ")
    }
}

impl OwnerLink {
    /// `None` when it does not lead to the whole primary key of its target, which DDL refuses.
    fn new(table: &Arc<Table>, key: &ForeignKey, target: Option<&Arc<Table>>) -> Option<Self> {
        let order = match target {
            None => Vec::new(),
            Some(target) => {
                let referred: Option<Vec<usize>> = key
                    .ref_columns
                    .iter()
                    .map(|name| position(target, name))
                    .collect();
                let referred = referred?;
                let places = target.primary_key.iter();
                let order: Option<Vec<usize>> = places
                    .map(|column| referred.iter().position(|other| other == column))
                    .collect();
                order.filter(|order| !order.is_empty() && order.len() == key.columns.len())?
            }
        };
        Some(Self {
            from: Arc::clone(table),
            columns: key.columns.clone(),
            access: access(table, &key.columns),
            target: target.cloned(),
            order,
        })
    }

    /// Whether the target's rows are people.
    pub(super) fn leads_to_person(&self) -> bool {
        self.target.as_ref().is_some_and(|table| table.data_subject)
    }

    /// Whether a row says something in it.
    pub(super) fn is_set(&self, row: &[Value]) -> bool {
        let mut values = self.columns.iter().map(|at| row.get(*at));
        values.all(|value| value.is_some_and(|value| !value.is_null()))
    }

    /// Whether two versions of a row say different things in it.
    pub(super) fn differs(&self, old: &[Value], new: &[Value]) -> bool {
        self.columns.iter().any(|at| old.get(*at) != new.get(*at))
    }

    /// The row that `row` leads to: its table, and its key suffix. `None` when a column is NULL or
    /// the table is not there.
    pub(super) fn target_of(
        &self,
        row: &[Value],
        tz: &TimeZone,
    ) -> SqlResult<Option<(TableId, Vec<u8>)>> {
        let Some(target) = self.target.as_ref().filter(|_| self.is_set(row)) else {
            return Ok(None);
        };
        assert_eq!(
            self.order.len(),
            target.primary_key.len(),
            "a link leads to a whole primary key"
        );
        let mut suffix = Vec::with_capacity(16);
        for (place, at) in self.order.iter().zip(&target.primary_key) {
            let value = self.columns.get(*place).and_then(|from| row.get(*from));
            let Some(value) = value else {
                return Ok(None);
            };
            encoding::encode_key_part(target, ROWS, (*at, None), value, tz, &mut suffix)?;
        }
        Ok(Some((target.id, suffix)))
    }

    /// Where the rows lie whose link leads to `row` of the target, and how many bytes come before
    /// their key suffix when that is the end of the key, not the value. `None`: no index.
    pub(super) fn sources_of(
        &self,
        row: &[Value],
        tz: &TimeZone,
    ) -> SqlResult<Option<(KeyRange, Option<usize>)>> {
        let Some(key) = self.access.key() else {
            return Ok(None);
        };
        let (mut prefix, in_key) = (encoding::index_prefix(&self.from, key.0), key == ROWS);
        let head = prefix.len();
        let Some(target) = &self.target else {
            return Ok(None);
        };
        for (place, from) in self.columns.iter().enumerate() {
            let key_place = self.order.iter().position(|other| *other == place);
            let at = key_place.and_then(|place| target.primary_key.get(place));
            let Some(value) = at.and_then(|at| row.get(*at)) else {
                return Ok(None);
            };
            encoding::encode_key_part(&self.from, key, (*from, None), value, tz, &mut prefix)?;
        }
        Ok(Some((KeyRange::prefix(&prefix), in_key.then_some(head))))
    }
}
