//! ON GET rules: a row that the person shares shows what its table says it shows to such a person.

use manxdb_ownership::{Rule, RuleAction, RuleEvent};

use super::found_rows::{FoundRow, FoundTable, Reason};
use crate::types::Value;

/// Applies the rules of each table to its rows: the union of all that match; DELETE_ROW wins.
pub(super) fn apply(found: &mut [FoundTable]) {
    let effects: Vec<Vec<Effect>> = (0..found.len())
        .map(|at| {
            let table = found.get(at);
            let rows = table.iter().flat_map(|table| &table.rows);
            rows.map(|row| effect(found, at, row, RuleEvent::Get).0)
                .collect()
        })
        .collect();
    for (table, effects) in found.iter_mut().zip(effects) {
        assert_eq!(table.rows.len(), effects.len(), "an effect a row");
        let visible = table.visible.clone();
        let mut effects = effects.into_iter();
        table.rows.retain_mut(|row| match effects.next() {
            Some(Effect::Hidden) => false,
            Some(Effect::Cleared(columns)) => {
                for column in columns {
                    let place = visible.iter().position(|at| *at == column);
                    if let Some(value) = place.and_then(|place| row.values.get_mut(place)) {
                        *value = Value::Null;
                    }
                }
                true
            }
            None => true,
        });
    }
}

/// What rules do to one row.
pub(super) enum Effect {
    /// These columns are NULL; none, mostly.
    Cleared(Vec<usize>),
    Hidden,
}

/// What the rules for `event` do to a row, and which rules that are.
pub(super) fn effect(
    found: &[FoundTable],
    at: usize,
    row: &FoundRow,
    event: RuleEvent,
) -> (Effect, Vec<String>) {
    let (mut cleared, mut rules) = (Vec::new(), Vec::new());
    let Some(table) = found.get(at) else {
        return (Effect::Cleared(cleared), rules);
    };
    for rule in table.shape.rules.iter().filter(|rule| rule.event == event) {
        if !row
            .reasons
            .iter()
            .any(|reason| matches(found, table, rule, reason))
        {
            continue;
        }
        match &rule.action {
            RuleAction::DeleteRow => return (Effect::Hidden, vec![rule.to_string()]),
            RuleAction::Anonymise(columns) => {
                cleared.extend(columns.iter().filter_map(|name| table.shape.position(name)));
                rules.push(rule.to_string());
            }
        }
    }
    (Effect::Cleared(cleared), rules)
}

/// Whether the person is linked to the row by what the rule names: a column of the row's own link, or,
/// through a row of another table, a column of that row's links to the row or to the person.
fn matches(found: &[FoundTable], table: &FoundTable, rule: &Rule, reason: &Reason) -> bool {
    let Some(named) = &rule.subject.table else {
        let at = table.shape.position(&rule.subject.column);
        return reason.via.is_none() && at.is_some_and(|at| reason.columns.contains(&at));
    };
    let Some((via, row)) = reason.via else {
        return false;
    };
    let Some(other) = found.get(via) else {
        return false;
    };
    if other.shape.name.name.to_lowercase() != named.to_lowercase() {
        return false;
    }
    let Some(at) = other.shape.position(&rule.subject.column) else {
        return false;
    };
    let linking = other.rows.get(row).into_iter().flat_map(|row| &row.reasons);
    let mut own = linking.filter(|reason| reason.via.is_none());
    reason.columns.contains(&at) || own.any(|reason| reason.columns.contains(&at))
}
