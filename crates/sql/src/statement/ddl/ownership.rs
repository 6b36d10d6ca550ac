//! Ownership in DDL: what links come to mean, rules that follow names, and what is refused.
//!
//! Decided when a statement makes a link, and stored with it (`ForeignKey::edge`); checked again, on the
//! catalog as it will be, in the transaction that writes the record.

use manxdb_ownership::{
    OwnershipRefusal, Retention, Rule, RuleAction, RuleSubject, TableShape, check, resolve,
};
use sqlparser::ast::{ForeignKeyConstraint, Ident, ObjectName};

use super::DdlContext;
use super::blinding::says;
use super::define::{Builder, NamedOption};
use crate::catalog::store::Edit;
use crate::catalog::{Column, ForeignKey, OwnershipAnnotation, Table, ownership};
use crate::error::{SqlError, SqlResult};
use crate::parser::{OwnershipChange, is_home_region_attribute, link_in_comment};
use crate::statement::names::relation;
use crate::statement::target::position;
use crate::types::DataType;

/// 51003: a definition that would leave it open, or wrong, whose a row is.
fn refused(refusal: &OwnershipRefusal) -> SqlError {
    SqlError::new(51003, "HY000", refusal.to_string())
}

/// `ALLOWED` or `REFUSED` behind UNOWNED.
///
/// # Errors
/// 1064 for another word.
pub(super) fn unowned_allowed(word: &str) -> SqlResult<bool> {
    match word.to_ascii_uppercase().as_str() {
        "ALLOWED" => Ok(true),
        "REFUSED" => Ok(false),
        _ => Err(SqlError::syntax(format!("near 'UNOWNED {word}'"))),
    }
}

/// Writes a table's record, unless its ownership, or that of those that refer to it, is refused.
///
/// # Errors
/// 51003.
pub(super) fn put_checked(
    context: &DdlContext<'_>,
    edit: &mut Edit<'_>,
    table: Table,
) -> SqlResult<()> {
    let name = ownership::name(&table);
    check_retention(&table)?;
    check_home_region(&table)?;
    edit.put_table(table)?;
    if !ownership::is_used(&edit.catalog) {
        return Ok(());
    }
    let graph = ownership::graph(&edit.catalog, None);
    check(&graph, &name, !context.foreign_key_checks).map_err(|refusal| refused(&refusal))
}

/// A period begins at a day that each row says.
fn check_retention(table: &Table) -> SqlResult<()> {
    let Some(retention) = &table.ownership.retention else {
        return Ok(());
    };
    let refused = |why: &str| {
        let text = format!(
            "{retention} of table '{}' names column '{}', which {why}: name one of type DATE, DATETIME \
             or TIMESTAMP, or DROP RETAIN",
            table.name, retention.after
        );
        SqlError::new(51003, "HY000", text)
    };
    let at = position(table, &retention.after).ok_or_else(|| refused("is not there"))?;
    let column = table
        .columns
        .get(at)
        .ok_or_else(|| refused("is not there"))?;
    match column.ty {
        DataType::Date | DataType::DateTime { .. } | DataType::Timestamp { .. } => Ok(()),
        _ => Err(refused("holds no day")),
    }
}

/// A home region is a text that a person has.
fn check_home_region(table: &Table) -> SqlResult<()> {
    let Some(home) = table.ownership.home_region else {
        return Ok(());
    };
    let refused = |text: String| Err(SqlError::new(51003, "HY000", text));
    let mut columns = table.columns.iter();
    let Some(column) = columns.find(|column| column.id == home) else {
        return refused(format!(
            "The column of table '{}' that goes is HOME_REGION: ALTER TABLE … MODIFY it without that first",
            table.name
        ));
    };
    let (name, table_name) = (&column.name, &table.name);
    if !table.data_subject {
        return refused(format!(
            "Column '{name}' of table '{table_name}' is HOME_REGION, and its rows are no people: say \
             DATA_SUBJECT of the table, or leave it out"
        ));
    }
    if column.ty.is_text() || matches!(column.ty, DataType::Enum { .. }) {
        return Ok(());
    }
    refused(format!(
        "Column '{name}' of table '{table_name}' is HOME_REGION, which is a name: make it CHAR, VARCHAR or ENUM"
    ))
}

/// A column that a period begins at has another name.
pub(super) fn rename_in_retention(retention: &mut Option<Retention>, from: &str, to: &str) {
    if let Some(retention) = retention
        && retention.after.to_lowercase() == from.to_lowercase()
    {
        retention.after = to.to_string();
    }
}

/// Whether a table's COMMENT makes it a data subject, for tools that have no other place for it.
pub(super) fn comment_says_subject(comment: &str) -> bool {
    comment.trim().eq_ignore_ascii_case("DATA_SUBJECT")
}

impl Builder<'_> {
    /// Notes whether a column's options, or its COMMENT, say HOME_REGION.
    ///
    /// # Errors
    /// 51003 when another column is that already.
    pub(super) fn note_home_region(
        &mut self,
        column: &Column,
        options: &[NamedOption],
    ) -> SqlResult<()> {
        let mut options = options.iter();
        let is_home = says(&column.comment, "HOME_REGION")
            || options.any(|(_, option)| is_home_region_attribute(option));
        let known = self.table.ownership.home_region;
        match known.filter(|known| *known != column.id) {
            Some(other) if is_home => {
                let mut columns = self.table.columns.iter();
                let other = columns.find(|column| column.id == other);
                let other = other.map_or("", |column| column.name.as_str());
                Err(SqlError::new(
                    51003,
                    "HY000",
                    format!(
                        "Columns '{other}' and '{}' of table '{}' are both HOME_REGION: a person has one home",
                        column.name, self.table.name
                    ),
                ))
            }
            Some(_) => Ok(()),
            None => {
                self.table.ownership.home_region = is_home.then_some(column.id);
                Ok(())
            }
        }
    }

    /// Makes the annotated links of columns, and decides what the new links mean.
    ///
    /// # Errors
    /// Those of foreign keys; 51003.
    pub(super) fn resolve_ownership(&mut self) -> SqlResult<()> {
        self.take_comments();
        for (at, annotation, key) in std::mem::take(&mut self.links) {
            self.add_link(vec![at], annotation, &key)?;
        }
        if !self.table.has_ownership() && !self.says_ownership() {
            // Nothing is inferred where nobody says anything.
            if self.table.foreign_keys.is_empty() || !ownership::is_used(self.catalog) {
                return Ok(());
            }
        }
        let name = ownership::name(&self.table);
        let graph = ownership::graph(self.catalog, Some(&name));
        let edges = resolve(&graph, &self.shape()).map_err(|refusal| refused(&refusal))?;
        assert_eq!(
            edges.len(),
            self.table.foreign_keys.len(),
            "an edge or none a key"
        );
        for (at, edge) in edges.into_iter().enumerate() {
            let is_said = self
                .key(at)
                .is_some_and(|key| key.ownership.edge().is_some());
            let known = self.key(at).and_then(|key| key.edge);
            if edge == known || edge.is_none() {
                continue;
            }
            match self.enforce(at) {
                Ok(()) => {}
                Err(error) if is_said => return Err(error),
                // Only noted, as in MySQL, and of a type that no foreign key may have: it stays so.
                Err(_) => continue,
            }
            if let Some(key) = self.table.foreign_keys.get_mut(at) {
                key.edge = edge;
            }
        }
        Ok(())
    }

    fn key(&self, at: usize) -> Option<&ForeignKey> {
        self.table.foreign_keys.get(at)
    }

    fn shape(&self) -> TableShape {
        let is_new = |key: &ForeignKey| self.infers_owners && !self.decided.contains(&key.name);
        ownership::shape(&self.table, &is_new)
    }

    /// Whether a new foreign key is annotated.
    fn says_ownership(&self) -> bool {
        let mut keys = self.table.foreign_keys.iter();
        keys.any(|key| key.ownership.edge().is_some() && !self.decided.contains(&key.name))
    }

    /// Annotations in comments, for tools that have no other place for them.
    fn take_comments(&mut self) {
        let columns = self.table.columns.iter().enumerate();
        let found: Vec<_> = columns
            .filter(|(_, column)| self.defined.contains(&column.id))
            .filter_map(|(at, column)| {
                let (annotation, key) = link_in_comment(&column.comment)?;
                Some((at, annotation, key))
            })
            .collect();
        for (at, annotation, key) in found {
            let said = self.links.iter().any(|(other, ..)| *other == at);
            let mut keys = self.table.foreign_keys.iter();
            let made = keys.any(|key| key.columns == [at] && key.ownership == annotation);
            if !said && !made {
                self.links.push((at, annotation, key));
            }
        }
    }

    /// A link over `columns`: the foreign key that is there already, or a new one.
    fn add_link(
        &mut self,
        columns: Vec<usize>,
        annotation: OwnershipAnnotation,
        key: &ForeignKeyConstraint,
    ) -> SqlResult<()> {
        let (database, table) = relation(Some(&self.table.database), &key.foreign_table)?;
        let lower = |name: &str| name.to_lowercase();
        let is_same = |other: &ForeignKey| {
            let referred = other.ref_columns.iter().map(|name| lower(name));
            other.columns == columns
                && lower(&other.ref_database) == lower(&database)
                && lower(&other.ref_table) == lower(&table)
                && referred.eq(key.referred_columns.iter().map(|name| lower(&name.value)))
        };
        let Some(at) = self.table.foreign_keys.iter().position(is_same) else {
            return self.add_key_over(columns, key, annotation);
        };
        self.enforce(at)?;
        let Some(found) = self.table.foreign_keys.get_mut(at) else {
            return Err(SqlError::internal("a foreign key that is not there"));
        };
        found.ownership = annotation;
        found.edge = None;
        let name = found.name.clone();
        self.decided.retain(|decided| *decided != name);
        Ok(())
    }
}

/// What ALTER TABLE changes.
///
/// # Errors
/// 1072 for unknown columns, 1091 for what is not there to be dropped; those of foreign keys.
pub(super) fn apply(builder: &mut Builder<'_>, change: &OwnershipChange) -> SqlResult<()> {
    let table = &mut builder.table;
    match change {
        OwnershipChange::Subject(is_subject) => table.data_subject = *is_subject,
        OwnershipChange::Retention(None) if table.ownership.retention.is_none() => {
            return Err(super::alter::cannot_drop("RETAIN"));
        }
        OwnershipChange::Retention(retention) => {
            table.ownership.retention.clone_from(retention);
        }
        OwnershipChange::AddRule(rule) => {
            if table.ownership.rules.contains(rule) {
                let text = format!("Duplicate rule '{rule}'");
                return Err(SqlError::new(51003, "HY000", text));
            }
            table.ownership.rules.push(rule.clone());
            table.ownership_rules.clear();
        }
        OwnershipChange::DropRules(event, subject) => {
            let before = table.ownership.rules.len() + table.ownership_rules.len();
            let rules = &mut table.ownership.rules;
            rules.retain(|rule| rule.event != *event || !is_same_subject(&rule.subject, subject));
            table.ownership_rules.clear();
            if table.ownership.rules.len() == before {
                return Err(super::alter::cannot_drop(&format!("{event} {subject}")));
            }
        }
        OwnershipChange::AddLink {
            annotation,
            columns,
            target,
            target_columns,
        } => {
            let columns = positions(table, columns)?;
            let key = constraint(target, target_columns);
            builder.add_link(columns, *annotation, &key)?;
        }
        OwnershipChange::DropLink {
            annotation,
            columns,
        } => {
            let at = positions(table, columns)?;
            let meant = |key: &&mut ForeignKey| {
                let kind = key.edge.map(|edge| edge.kind).or(key.ownership.edge());
                key.columns == at && kind == annotation.edge()
            };
            let Some(key) = table.foreign_keys.iter_mut().find(meant) else {
                let names: Vec<&str> = columns.iter().map(|name| name.value.as_str()).collect();
                return Err(super::alter::cannot_drop(&names.join(",")));
            };
            key.edge = None;
            key.ownership = OwnershipAnnotation::ReferencesOnly;
        }
    }
    Ok(())
}

/// FOREIGN KEY as it would be written.
fn constraint(target: &ObjectName, columns: &[Ident]) -> ForeignKeyConstraint {
    ForeignKeyConstraint {
        name: None,
        index_name: None,
        columns: Vec::new(),
        foreign_table: target.clone(),
        referred_columns: columns.to_vec(),
        on_delete: None,
        on_update: None,
        match_kind: None,
        characteristics: None,
    }
}

fn positions(table: &Table, columns: &[Ident]) -> SqlResult<Vec<usize>> {
    let missing = |name: &str| {
        let text = format!("Key column '{name}' doesn't exist in table");
        SqlError::new(1072, "42000", text)
    };
    columns
        .iter()
        .map(|column| position(table, &column.value).ok_or_else(|| missing(&column.value)))
        .collect()
}

fn is_same_subject(a: &RuleSubject, b: &RuleSubject) -> bool {
    let table = |subject: &RuleSubject| subject.table.as_ref().map(|name| name.to_lowercase());
    table(a) == table(b) && a.column.to_lowercase() == b.column.to_lowercase()
}

/// Renames a column of a rule's own table, or of `table`, which its subject names.
pub(super) fn rename_in_rule(rule: &mut Rule, table: Option<&str>, from: &str, to: &str) {
    let is_it = |name: &str| name.to_lowercase() == from.to_lowercase();
    let subject = rule.subject.table.as_ref().map(|name| name.to_lowercase());
    if subject == table.map(str::to_lowercase) && is_it(&rule.subject.column) {
        rule.subject.column = to.to_string();
    }
    if let (None, RuleAction::Anonymise(columns)) = (table, &mut rule.action) {
        for column in columns.iter_mut().filter(|column| is_it(column)) {
            *column = to.to_string();
        }
    }
}

/// The tables that `table` leads people to, by OWNS and ACCESSES: their rules may name it.
fn led_to(edit: &Edit<'_>, table: &Table) -> Vec<Table> {
    let keys = table.foreign_keys.iter();
    let leading = keys.filter(|key| key.edge.is_some_and(|edge| edge.kind.leads_to_target()));
    let mut found: Vec<Table> = Vec::new();
    for key in leading {
        if let Ok(target) = edit.catalog.table(&key.ref_database, &key.ref_table)
            && !found.iter().any(|other| other.id == target.id)
        {
            found.push((**target).clone());
        }
    }
    found
}

/// Rules of others follow the new names of `old`'s columns.
pub(super) fn rename_rule_columns(
    edit: &mut Edit<'_>,
    old: &Table,
    renamed: &[(String, String)],
) -> SqlResult<()> {
    if renamed.is_empty() {
        return Ok(());
    }
    for mut target in led_to(edit, old) {
        let before = target.ownership.clone();
        for rule in &mut target.ownership.rules {
            for (from, to) in renamed {
                rename_in_rule(rule, Some(&old.name), from, to);
            }
        }
        if target.ownership != before {
            target.schema_version += 1;
            edit.put_table(target)?;
        }
    }
    Ok(())
}

/// Rules of others follow the new name of `renamed`.
pub(super) fn rename_rule_tables(
    edit: &mut Edit<'_>,
    renamed: &Table,
    from: (&str, &str),
) -> SqlResult<()> {
    for mut target in led_to(edit, renamed) {
        let before = target.ownership.clone();
        for rule in &mut target.ownership.rules {
            let subject = rule.subject.table.as_mut();
            if let Some(named) = subject.filter(|name| name.to_lowercase() == from.1.to_lowercase())
            {
                named.clone_from(&renamed.name);
            }
        }
        if target.ownership != before {
            target.schema_version += 1;
            edit.put_table(target)?;
        }
    }
    Ok(())
}
