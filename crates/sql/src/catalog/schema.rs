//! The records of the catalog.

use std::collections::BTreeMap;
use std::sync::Arc;

use manxdb_ownership::Edge;
use serde::{Deserialize, Serialize};

use super::{Blinding, Ownership, Sealing, TableStatistics};
use crate::types::{Collation, ColumnMeta, DataType};

/// Identity of a table, never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TableId(pub u32);

/// Identity of a column within its table, never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ColumnId(pub u32);

/// Identity of an index within its table, never reused. 0 is the row store itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct IndexId(pub u32);

/// A database (schema).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Database {
    /// Name as created.
    pub name: String,
    /// Collation of tables that name none.
    pub collation: Collation,
    /// Tables by name.
    pub tables: BTreeMap<String, Arc<Table>>,
    /// Views by name.
    pub views: BTreeMap<String, Arc<View>>,
    /// Materialized views by name.
    pub materialized: BTreeMap<String, Arc<MaterializedView>>,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// Identity.
    pub id: TableId,
    /// Database it lives in.
    pub database: String,
    /// Name as created.
    pub name: String,
    /// Grows with every change of this record: transactions validate it at commit.
    pub schema_version: u64,
    /// Columns in display order. A row at run time is one value a column in this order.
    pub columns: Vec<Column>,
    /// Positions in `columns` of the primary key; empty: rows are keyed by a hidden row id.
    pub primary_key: Vec<usize>,
    /// Secondary and unique indexes (the primary key is not listed).
    pub indexes: Vec<Index>,
    /// Foreign keys of this table.
    pub foreign_keys: Vec<ForeignKey>,
    /// CHECK constraints.
    pub checks: Vec<CheckConstraint>,
    /// Collation of columns that name none.
    pub collation: Collation,
    /// COMMENT.
    pub comment: String,
    /// Whether each row is a person.
    pub data_subject: bool,
    /// ON GET and ON DEL rules that an earlier release kept as text, without a meaning; no statement of
    /// this one adds any.
    pub ownership_rules: Vec<String>,
    /// Next ids to hand out.
    pub next_column_id: u32,
    /// Next ids to hand out.
    pub next_index_id: u32,
    /// Microseconds since 1970, for information_schema.
    pub created_at: i64,
    /// What else is decided of whose its rows are. The record keeps it behind the table (see
    /// [`super::record`]).
    #[serde(skip)]
    pub ownership: Ownership,
    /// What is blinded in its keys. The record keeps it behind the table (see [`super::record`]).
    #[serde(skip)]
    pub blinding: Blinding,
    /// CREATE TEMPORARY TABLE: one session's own, so it has no record.
    #[serde(skip)]
    pub temporary: bool,
    /// What ANALYZE TABLE found out last; kept beside the record, which a transaction depends on.
    #[serde(skip)]
    pub analyzed: Option<Arc<TableStatistics>>,
    /// ALTER TABLE is copying the rows to this identity: writers note there which they change. The
    /// record keeps it behind the table (see [`super::record`]).
    #[serde(skip)]
    pub copying: Option<TableId>,
    /// What opens its rows where they are sealed.
    #[serde(skip)]
    pub sealing: Sealing,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Identity: rows store values under it.
    pub id: ColumnId,
    /// Name as created.
    pub name: String,
    /// Type.
    pub ty: DataType,
    /// NOT NULL.
    pub not_null: bool,
    /// DEFAULT.
    pub default: Option<ColumnDefault>,
    /// `ON UPDATE CURRENT_TIMESTAMP`.
    pub on_update_now: bool,
    /// AUTO_INCREMENT.
    pub auto_increment: bool,
    /// COMMENT.
    pub comment: String,
    /// Value rows written before this column existed have.
    pub absent_value: Option<ColumnDefault>,
    /// Set for a column whose values are computed from other columns of its row. The record keeps
    /// these behind the table (see [`super::record`]).
    #[serde(skip)]
    pub generated: Option<Generated>,
}

impl Column {
    /// A column that holds what a query's column shows.
    #[must_use]
    pub fn of_result(meta: &ColumnMeta) -> Self {
        Self {
            id: ColumnId(0),
            name: meta.name.clone(),
            ty: meta.ty.clone(),
            not_null: meta.not_null,
            default: None,
            on_update_now: false,
            auto_increment: false,
            comment: String::new(),
            absent_value: None,
            generated: None,
        }
    }

    /// Whether no client sees the column: a functional key part stands on it.
    #[must_use]
    pub fn is_hidden(&self) -> bool {
        let kind = self.generated.as_ref().map(|generated| generated.kind);
        kind == Some(GeneratedKind::KeyPart)
    }

    /// The name, or for a hidden column the expression it holds.
    #[must_use]
    pub fn shown_name(&self) -> &str {
        match &self.generated {
            Some(generated) if self.is_hidden() => &generated.expression,
            _ => &self.name,
        }
    }
}

impl Table {
    /// The columns a client sees, with their positions in a row.
    pub fn visible_columns(&self) -> impl Iterator<Item = (usize, &Column)> {
        let columns = self.columns.iter().enumerate();
        columns.filter(|(_, column)| !column.is_hidden())
    }

    /// What is known of its rows.
    #[must_use]
    pub fn statistics(&self) -> Option<&TableStatistics> {
        let known = self.analyzed.as_deref();
        known.filter(|known| known.table == self.id)
    }

    /// Whether clients are told that a column belongs to the primary key. As in MySQL, in a table
    /// without one that is the first unique key over whole columns that are never NULL.
    #[must_use]
    pub fn shows_as_primary(&self, at: usize) -> bool {
        if !self.primary_key.is_empty() {
            return self.primary_key.contains(&at);
        }
        let whole = |part: &IndexColumn| {
            let column = self.columns.get(part.column);
            part.prefix.is_none() && column.is_some_and(|c| c.not_null && !c.is_hidden())
        };
        self.indexes
            .iter()
            .find(|index| index.unique && index.columns.iter().all(whole))
            .is_some_and(|index| index.columns.iter().any(|part| part.column == at))
    }
}

/// What makes a column a generated one.
///
/// All three kinds are computed when a row is written and lie in its record: reads cost nothing,
/// indexes over them are indexes like any other, and what a row says cannot change because a
/// session reads it under other settings. What MySQL computes at each read differs in one case
/// only: a VIRTUAL column over a TIMESTAMP shows the time zone of the writer, not of the reader.
/// The price is that adding such a column copies the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generated {
    /// SQL text in the form `parser::canonical` gives it.
    pub expression: String,
    /// What MySQL makes of it.
    pub kind: GeneratedKind,
}

/// The kinds of generated columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum GeneratedKind {
    /// `VIRTUAL`.
    Virtual,
    /// `STORED`.
    Stored,
    /// The hidden column under a functional key part; it lives and dies with its index.
    KeyPart,
}

/// A DEFAULT.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ColumnDefault {
    /// A literal, as SQL text to be assigned to the column (`NULL`, `'x'`, `5`).
    Literal(String),
    /// CURRENT_TIMESTAMP.
    Now,
    /// `DEFAULT (expr)`, as SQL text.
    Expression(String),
}

/// An index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    /// Identity.
    pub id: IndexId,
    /// Name, unique in the table without regard to case.
    pub name: String,
    /// Key columns in order.
    pub columns: Vec<IndexColumn>,
    /// UNIQUE.
    pub unique: bool,
    /// Life of the index during online creation.
    pub state: IndexState,
    /// COMMENT.
    pub comment: String,
}

/// A key column of an index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexColumn {
    /// Position in the table's `columns`.
    pub column: usize,
    /// Prefix length in characters (bytes for binary), or the whole value.
    pub prefix: Option<u32>,
    /// DESC: recorded and shown; the encoding is ascending.
    pub descending: bool,
}

/// Life of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum IndexState {
    /// Writers maintain it; readers do not use it: back-fill is running.
    WriteOnly,
    /// In use.
    Public,
    /// In use, and made for a foreign key that had none: it goes when an index is created that
    /// does its work.
    Implicit,
}

impl IndexState {
    /// Whether it may be read by.
    #[must_use]
    pub fn is_readable(self) -> bool {
        self != IndexState::WriteOnly
    }
}

/// A foreign key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignKey {
    /// Constraint name.
    pub name: String,
    /// Positions in this table's `columns`.
    pub columns: Vec<usize>,
    /// Referenced database.
    pub ref_database: String,
    /// Referenced table.
    pub ref_table: String,
    /// Referenced column names.
    pub ref_columns: Vec<String>,
    /// ON DELETE.
    pub on_delete: ForeignKeyAction,
    /// ON UPDATE.
    pub on_update: ForeignKeyAction,
    /// Ownership annotation that made it.
    pub ownership: OwnershipAnnotation,
    /// A plain REFERENCES on a column is recorded for ownership but, as in MySQL, not enforced.
    pub enforced: bool,
    /// What was decided that it means for ownership; it always is enforced then. The record keeps it
    /// behind the table (see [`super::record`]).
    #[serde(skip)]
    pub edge: Option<Edge>,
}

/// What happens to referencing rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
pub enum ForeignKeyAction {
    /// Refuse (NO ACTION, the default).
    #[default]
    NoAction,
    /// Refuse, spelled RESTRICT.
    Restrict,
    /// Do the same to them.
    Cascade,
    /// Set their columns to NULL.
    SetNull,
}

/// The word of a foreign key (reference: K9db, OSDI'23 §4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
pub enum OwnershipAnnotation {
    /// REFERENCES.
    #[default]
    References,
    /// REFERENCES ONLY.
    ReferencesOnly,
    /// OWNED_BY.
    OwnedBy,
    /// OWNS.
    Owns,
    /// ACCESSED_BY.
    AccessedBy,
    /// ACCESSES.
    Accesses,
}

/// A CHECK constraint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckConstraint {
    /// Name.
    pub name: String,
    /// Condition as SQL text.
    pub expression: String,
    /// NOT ENFORCED when false.
    pub enforced: bool,
}

/// A view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// Database it lives in.
    pub database: String,
    /// Name.
    pub name: String,
    /// Column names, when given.
    pub columns: Vec<String>,
    /// The SELECT, as text.
    pub query: String,
    /// `user@host` that created it.
    pub definer: String,
    /// Grows with every change.
    pub schema_version: u64,
}

/// The definition of a materialized view; what it holds is in memory only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaterializedView {
    /// Database it lives in, in which its SELECT is bound.
    pub database: String,
    /// Name.
    pub name: String,
    /// The SELECT, as text, with `?` for the columns of its key.
    pub query: String,
    /// Bits of the `sql_mode` it was created under ([`crate::types::SqlMode::bits`]): queries under
    /// another may mean something else.
    pub sql_mode: u32,
    /// `collation_connection` it was created under.
    pub collation: Collation,
    /// `user@host` that created it.
    pub definer: String,
    /// Grows with every change.
    pub schema_version: u64,
}

impl MaterializedView {
    /// Whether both are of one name in one database.
    #[must_use]
    pub fn is_named_as(&self, other: &Self) -> bool {
        self.database.eq_ignore_ascii_case(&other.database)
            && self.name.eq_ignore_ascii_case(&other.name)
    }
}
