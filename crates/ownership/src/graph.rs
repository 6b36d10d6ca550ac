//! Tables and the edges between them, and the chains along which a row's owners are found.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::shape::{Edge, EdgeKind, Link, Origin, TableName, TableShape};

/// Chains that are listed of one table.
const CHAINS_MAX: usize = 64;

/// All tables with links, and those they lead to.
#[derive(Debug, Clone, Default)]
pub struct OwnershipGraph {
    tables: BTreeMap<TableName, TableShape>,
    /// Where the owners of a table's rows come from.
    owners: BTreeMap<TableName, Vec<Hop>>,
    /// Where those with access to a table's rows come from.
    accessors: BTreeMap<TableName, Vec<Hop>>,
}

/// One edge, from the rows whose owners are looked for to the rows that know them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hop {
    /// The table whose rows are someone's through it.
    pub from: TableName,
    /// The table whose people they are.
    pub to: TableName,
    /// The columns of the link, with the name of the table that has it.
    pub columns: String,
    /// What the link means.
    pub edge: Edge,
    /// Whether some rows have nobody through it: its columns may be NULL, or rows that lead here may be
    /// missing.
    pub is_optional: bool,
}

/// Hops from a table to one whose rows are people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// In order; none for the people themselves.
    pub hops: Vec<Hop>,
    /// Where it ends.
    pub end: ChainEnd,
}

/// Where a chain ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChainEnd {
    /// At people.
    Subject(TableName),
    /// At a table that is not there (`foreign_key_checks = 0`).
    Missing(TableName),
    /// At a table whose rows nobody owns.
    Unowned(TableName),
}

/// Chains of one table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chains {
    /// At most 64.
    pub found: Vec<Chain>,
    /// There are more.
    pub is_cut: bool,
}

impl Chain {
    /// Inferred, where one of its edges is.
    #[must_use]
    pub fn origin(&self) -> Origin {
        let inferred = |hop: &Hop| hop.edge.origin == Origin::Inferred;
        if self.hops.iter().any(inferred) {
            Origin::Inferred
        } else {
            Origin::Explicit
        }
    }

    /// Whether a row may have nobody through it.
    #[must_use]
    pub fn is_optional(&self) -> bool {
        self.hops.iter().any(|hop| hop.is_optional)
    }
}

/// `taggings.story_id -> stories.user_id -> users`; `files <- shares.file_id, shares.user_id -> users`.
impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for hop in &self.hops {
            if hop.edge.kind.leads_to_target() {
                write!(f, "{} <- {}, ", hop.from, hop.columns)?;
            } else {
                write!(f, "{} -> ", hop.columns)?;
            }
        }
        match &self.end {
            ChainEnd::Subject(table) | ChainEnd::Missing(table) | ChainEnd::Unowned(table) => {
                write!(f, "{table}")
            }
        }
    }
}

impl OwnershipGraph {
    /// A graph of `tables`. Of two with one name the later counts.
    #[must_use]
    pub fn new(tables: impl IntoIterator<Item = TableShape>) -> Self {
        let mut graph = Self::default();
        for table in tables {
            graph.tables.insert(table.name.clone(), table);
        }
        let mut hops: Vec<Hop> = Vec::new();
        for table in graph.tables.values() {
            hops.extend(table.links.iter().filter_map(|link| hop(table, link)));
        }
        for hop in hops {
            let side = if hop.edge.kind.gives_ownership() {
                &mut graph.owners
            } else {
                &mut graph.accessors
            };
            side.entry(hop.from.clone()).or_default().push(hop);
        }
        graph
    }

    /// The table called `name`.
    #[must_use]
    pub fn table(&self, name: &TableName) -> Option<&TableShape> {
        self.tables.get(name)
    }

    /// All tables, by name.
    pub fn tables(&self) -> impl Iterator<Item = &TableShape> {
        self.tables.values()
    }

    /// Edges along which owners of `table`'s rows are found.
    #[must_use]
    pub fn owner_hops(&self, table: &TableName) -> &[Hop] {
        self.owners.get(table).map_or(&[], Vec::as_slice)
    }

    /// Edges along which those with access to `table`'s rows are found.
    #[must_use]
    pub fn access_hops(&self, table: &TableName) -> &[Hop] {
        self.accessors.get(table).map_or(&[], Vec::as_slice)
    }

    /// Whether rows of `table` are people's, by what is said of the table itself: a link to a table that is
    /// not there yet counts.
    #[must_use]
    pub fn is_owned(&self, table: &TableName) -> bool {
        let is_subject = self.table(table).is_some_and(|table| table.is_subject);
        is_subject || !self.owner_hops(table).is_empty()
    }

    /// Whether people own rows of `table` or have access to them.
    #[must_use]
    pub fn is_accessed(&self, table: &TableName) -> bool {
        self.is_owned(table) || !self.access_hops(table).is_empty()
    }

    /// The chains through which rows of `table` are owned, the people themselves among them.
    #[must_use]
    pub fn owner_chains(&self, table: &TableName) -> Chains {
        let mut chains = Chains::default();
        self.follow(table, &mut Vec::new(), &mut chains);
        chains
    }

    fn follow(&self, table: &TableName, hops: &mut Vec<Hop>, chains: &mut Chains) {
        if chains.found.len() >= CHAINS_MAX {
            chains.is_cut = true;
            return;
        }
        let on = self.owner_hops(table);
        match self.table(table) {
            Some(shape) if shape.is_subject => {
                chains.end(hops, ChainEnd::Subject(shape.name.clone()));
            }
            Some(shape) if on.is_empty() && !hops.is_empty() => {
                chains.end(hops, ChainEnd::Unowned(shape.name.clone()));
            }
            None if !hops.is_empty() => chains.end(hops, ChainEnd::Missing(table.clone())),
            _ => {}
        }
        for hop in on {
            // A cycle is refused where it is made; whoever walks does not rely on it.
            if hops.iter().any(|before| before.from == hop.to) || hop.from == hop.to {
                continue;
            }
            hops.push(hop.clone());
            self.follow(&hop.to, hops, chains);
            hops.pop();
        }
    }

    /// Hops that lead from `table` back to it along edges of ownership.
    #[must_use]
    pub fn cycle_through(&self, table: &TableName) -> Option<Vec<Hop>> {
        let mut seen = BTreeSet::new();
        let mut open: Vec<Vec<Hop>> = self
            .owner_hops(table)
            .iter()
            .map(|hop| vec![hop.clone()])
            .collect();
        while let Some(path) = open.pop() {
            let Some(last) = path.last() else { continue };
            if last.to == *table {
                return Some(path);
            }
            if !seen.insert(last.to.clone()) {
                continue;
            }
            for hop in self.owner_hops(&last.to) {
                let mut longer = path.clone();
                longer.push(hop.clone());
                open.push(longer);
            }
        }
        None
    }

    /// Whether the owners of `table`'s rows are found through `through`.
    #[must_use]
    pub fn depends_on(&self, table: &TableName, through: &TableName) -> bool {
        let mut seen = BTreeSet::new();
        let mut open = vec![table.clone()];
        while let Some(next) = open.pop() {
            if next == *through {
                return true;
            }
            if seen.insert(next.clone()) {
                open.extend(self.owner_hops(&next).iter().map(|hop| hop.to.clone()));
            }
        }
        false
    }
}

impl Chains {
    fn end(&mut self, hops: &[Hop], end: ChainEnd) {
        self.found.push(Chain {
            hops: hops.to_vec(),
            end,
        });
    }
}

/// The hop that `link` of `table` makes.
fn hop(table: &TableShape, link: &Link) -> Option<Hop> {
    let edge = link.edge?;
    let (from, to) = if edge.kind.leads_to_target() {
        (link.target.clone(), table.name.clone())
    } else {
        (table.name.clone(), link.target.clone())
    };
    let reverse = matches!(edge.kind, EdgeKind::Owns | EdgeKind::Accesses);
    Some(Hop {
        from,
        to,
        columns: table.columns_named(&link.columns),
        edge,
        is_optional: reverse || table.is_nullable(link),
    })
}
