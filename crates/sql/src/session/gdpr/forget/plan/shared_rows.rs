//! Rows that others own too, or that the person only has access to: who else owns a row, and what ON DEL
//! rules do to one that stays.

use std::collections::BTreeSet;
use std::sync::Arc;

use manxdb_ownership::{EdgeKind, RuleEvent};

use super::{Fate, ForgetPlanner, Found};
use crate::error::SqlResult;
use crate::session::gdpr::redact::{Effect, effect};
use crate::statement::owners::mutants::{OwnershipMutant, is_planted};
use crate::types::Row;

impl ForgetPlanner<'_, '_> {
    /// Whether a row with these values is somebody's without the rows that go.
    pub(in crate::session::gdpr::forget) fn others_own(
        &mut self,
        at: usize,
        values: &Row,
    ) -> SqlResult<bool> {
        let place = self.place(at, values)?;
        if let Some(place) = &place {
            if self.removed.contains(place) {
                return Ok(false);
            }
            if let Some(known) = self.known.get(place) {
                return Ok(*known);
            }
        }
        let shape = Arc::clone(&self.walk.found(at)?.shape);
        let is_owned = shape.is_subject
            || self.is_owned_by_target(at, values)?
            || self.is_owned_through(at, values)?;
        if let Some(place) = place {
            self.known.insert(place, is_owned);
        }
        Ok(is_owned)
    }

    fn is_owned_by_target(&mut self, at: usize, values: &Row) -> SqlResult<bool> {
        let shape = Arc::clone(&self.walk.found(at)?.shape);
        for link in &shape.links {
            let is_owner = link.edge.is_some_and(|edge| edge.kind == EdgeKind::OwnedBy);
            if !is_owner || !self.walk.knows(&link.target) {
                continue;
            }
            let Some(key) = self.walk.found(at)?.key_of(values, &link.columns) else {
                continue;
            };
            let target = self.walk.table(&link.target)?;
            let columns = self.walk.found(target)?.positions(&link.target_columns)?;
            let zone = self.session.state.settings().time_zone.clone();
            let place = self.walk.found(target)?.suffix_of(&columns, &key, &zone)?;
            if let Some(place) = place.map(|suffix| (target, suffix)) {
                if self.removed.contains(&place) {
                    continue;
                }
                match self.known.get(&place) {
                    Some(true) => return Ok(true),
                    Some(false) => continue,
                    None => {}
                }
            }
            for row in self.walk.ask(self.session, target, &columns, &[key])? {
                if self.others_own(target, &row)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn is_owned_through(&mut self, at: usize, values: &Row) -> SqlResult<bool> {
        let owners = match self.owners.get(&at) {
            Some(owners) => Arc::clone(owners),
            None => {
                let name = self.walk.found(at)?.shape.name.clone();
                let owners = Arc::new(self.walk.links_to(&name, &|kind| kind == EdgeKind::Owns));
                self.owners.insert(at, Arc::clone(&owners));
                owners
            }
        };
        for (table, link) in owners.iter() {
            let columns = self.walk.found(at)?.positions(&link.target_columns)?;
            let Some(key) = self.walk.found(at)?.key_of(values, &columns) else {
                continue;
            };
            let through = self.walk.table(table)?;
            for row in self
                .walk
                .ask(self.session, through, &link.columns, &[key])?
            {
                if self.others_own(through, &row)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// What ON DEL rules do to a row that stays otherwise; the rule that deletes it, if one does.
    pub(super) fn apply_rules(&mut self, row: Found) -> SqlResult<Option<String>> {
        let tables = self.walk.tables();
        let found = self.walk.found_row(row)?;
        let stays = if found.is_owned() {
            "others own it too"
        } else {
            "is not the person's"
        };
        if is_planted(OwnershipMutant::SkippedRule) {
            self.fates.insert(row, Fate::Keep(stays.to_string()));
            return Ok(None);
        }
        let (effect, rules) = effect(tables, row.0, found, RuleEvent::Del);
        let rules = rules.join(", ");
        match effect {
            Effect::Hidden => return Ok(Some(rules)),
            Effect::Cleared(columns) => {
                let tables = self.walk.found(row.0)?;
                let found = self.walk.found_row(row)?;
                let is_left = |at: &usize| {
                    tables
                        .value(found, *at)
                        .is_some_and(|value| !value.is_null())
                };
                let columns: BTreeSet<usize> = columns.into_iter().filter(is_left).collect();
                let fate = if columns.is_empty() {
                    Fate::Keep(stays.to_string())
                } else {
                    Fate::Clear(columns, format!("{rules}; {stays}"))
                };
                self.fates.insert(row, fate);
            }
        }
        Ok(None)
    }
}
