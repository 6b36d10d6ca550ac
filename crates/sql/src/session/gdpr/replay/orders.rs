//! What the records that a store lacks say of people: whom to forget again, whose rows are held, and whose
//! request waits for its grace to end.
//!
//! The last word counts. A person who was asked to be forgotten, without grace or after it, is forgotten again
//! whatever became of the request: the store has the rows that it had deleted. A person whose request was
//! taken back is as the store has them.

use std::collections::{BTreeMap, BTreeSet};

use manxdb_ownership::proof::{AuditEvent, AuditKind};
use manxdb_txn::{ReadMode, Transaction};

use crate::catalog::Table;
use crate::encoding;
use crate::error::SqlResult;
use crate::session::session::Session;
use crate::statement::owners::requests::{self as waiting, Hold, WaitReason, WaitingRequest};
use crate::statement::owners::subjects::{self, SubjectState};
use crate::types::Value;

/// A person as records have them: the table of people, and what stands for the key.
pub(super) type Person = (u32, String);

/// What is to be done again.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Orders {
    /// The request that has forgotten a person, or was at it.
    pub(super) forgotten: BTreeMap<Person, u64>,
    /// Requests that wait for their grace to end, by number.
    pub(super) waiting: BTreeMap<u64, (Person, AuditEvent)>,
    /// Requests that were taken back.
    undone: BTreeSet<u64>,
    /// Holds, by number.
    pub(super) holds: BTreeMap<u64, (Person, AuditEvent)>,
    /// Holds that have ended.
    released: BTreeSet<u64>,
    /// Requests that were done, and whether it was seen that nothing of them was left in the files of then.
    pub(super) purged: BTreeMap<u64, bool>,
}

impl Orders {
    /// The last word of records, in their order.
    pub(super) fn of(events: impl Iterator<Item = AuditEvent>) -> Self {
        let mut orders = Self::default();
        for event in events {
            orders.hear(event);
        }
        let Self {
            forgotten, waiting, ..
        } = &mut orders;
        waiting.retain(|_, (person, _)| !forgotten.contains_key(person));
        orders
    }

    fn hear(&mut self, event: AuditEvent) {
        let person = event.table_id.zip(event.subject.clone());
        if let (AuditKind::Done, Some(request)) = (event.kind, event.request) {
            self.purged.entry(request).or_default();
        }
        match (event.kind, event.request, event.hold, person) {
            (AuditKind::Asked, Some(request), _, Some(person)) if event.due.is_some() => {
                self.waiting.insert(request, (person, event));
            }
            (
                AuditKind::Asked | AuditKind::Done | AuditKind::PutOff | AuditKind::Replayed,
                Some(request),
                _,
                Some(person),
            ) => {
                self.waiting.remove(&request);
                self.forgotten.insert(person, request);
            }
            (AuditKind::Batch | AuditKind::Void, Some(request), ..) => {
                if let Some((person, _)) = self.waiting.remove(&request) {
                    self.forgotten.insert(person, request);
                }
            }
            (AuditKind::Undone, Some(request), ..) => {
                self.waiting.remove(&request);
                self.undone.insert(request);
            }
            (AuditKind::Held, _, Some(hold), Some(person)) => {
                self.holds.insert(hold, (person, event));
            }
            (AuditKind::Released, _, Some(hold), _) => {
                self.holds.remove(&hold);
                self.released.insert(hold);
            }
            (AuditKind::Purged, Some(request), ..) => {
                self.purged.insert(request, true);
            }
            _ => {}
        }
    }

    /// Everybody whom something is to be done for.
    pub(super) fn people(&self) -> BTreeSet<&Person> {
        let waiting = self.waiting.values().map(|(person, _)| person);
        let held = self.holds.values().map(|(person, _)| person);
        self.forgotten.keys().chain(waiting).chain(held).collect()
    }

    /// Ends holds and requests of the store that have ended since.
    ///
    /// # Errors
    /// 1712 for a damaged record; storage.
    pub(super) fn end(&self, txn: &Transaction) -> SqlResult<()> {
        for hold in &self.released {
            waiting::release(txn, *hold)?;
        }
        for request in &self.undone {
            let Some(found) = waiting::waiting_request(txn, *request)? else {
                continue;
            };
            if let WaitReason::Grace { before } = found.why {
                let table = crate::catalog::TableId(found.request.table_id);
                let state = before.map_or(SubjectState::Live, SubjectState::Forgotten);
                subjects::set_state(txn, table, &found.request.suffix, state)?;
                waiting::end_waiting(txn, *request)?;
            }
        }
        Ok(())
    }
}

/// Microseconds since 1970 of a time as records have it.
fn micros(at: &str) -> Option<i64> {
    let at: jiff::Timestamp = at.parse().ok()?;
    Some(at.as_microsecond())
}

impl Session {
    /// Rows of a person are held again, under the number that the hold had.
    ///
    /// # Errors
    /// Storage; those of reading the person's row.
    pub(super) fn hold_again(
        &mut self,
        (table, suffix): (&Table, &[u8]),
        number: u64,
        event: &AuditEvent,
    ) -> SqlResult<()> {
        let on = event
            .table
            .as_ref()
            .map(|name| self.table_called(table, name));
        self.in_forgetting(&mut |session| {
            let zone = session.state.settings().time_zone.clone();
            let txn = session.open_transaction()?;
            let Some(record) = txn.get(&encoding::row_key(table, suffix), ReadMode::Update)? else {
                return Ok(());
            };
            let row = match encoding::decode_row(table, (suffix, &record), &zone) {
                Err(error) if error.code == 51006 => return Ok(()), // its key is erased
                row => row?,
            };
            let id = table.primary_key.iter().filter_map(|at| row.get(*at));
            let id: Vec<Value> = id.cloned().collect();
            let hold = Hold {
                database: table.database.clone(),
                kind: table.name.clone(),
                kind_id: table.id.0,
                subject: subjects::hash(suffix),
                shown: super::super::shown(&id),
                table: on.clone().flatten(),
                reason: event.reason.clone().unwrap_or_default(),
                held_by: event.by.clone().unwrap_or_default(),
                held_at_micros: micros(&event.at).unwrap_or_default(),
            };
            waiting::put_hold_again(txn, number, &hold)
        })
    }

    /// The table that a hold is on; none: it is not here under this name, and all of the person is held.
    fn table_called(&self, kind: &Table, name: &str) -> Option<(u32, String)> {
        let catalog = self.instance().store.current();
        let databases = catalog.stored().databases.values();
        let tables = databases.flat_map(|database| database.tables.values());
        let mut called = tables.filter(|table| table.name == name && table.has_ownership());
        let here = catalog.table(&kind.database, name).ok();
        let here = here.filter(|table| table.has_ownership());
        let found = here.map_or_else(|| called.next(), Some);
        if found.is_none() {
            tracing::warn!(
                table = name,
                "a hold is on a table that is not here: all of the person is held"
            );
        }
        found.map(|table| (table.id.0, table.name.clone()))
    }

    /// A request waits again for its grace to end, under its number.
    ///
    /// # Errors
    /// Storage.
    pub(super) fn wait_again(
        &mut self,
        (table, suffix): (&Table, &[u8]),
        number: u64,
        event: &AuditEvent,
    ) -> SqlResult<()> {
        let due_at_micros = event.due.as_deref().and_then(micros);
        self.in_forgetting(&mut |session| {
            let txn = session.open_transaction()?;
            let before = match subjects::state(txn, table.id, suffix)? {
                SubjectState::Live => None,
                SubjectState::Forgotten(before) => Some(before),
                SubjectState::Forgetting(_) => return Ok(()), // it waits already, or is at it
            };
            let request = session.request_again(table, suffix, event, micros(&event.at));
            let state = SubjectState::Forgetting(number);
            subjects::set_state(txn, table.id, suffix, state)?;
            let request = WaitingRequest {
                request,
                why: WaitReason::Grace { before },
                due_at_micros,
            };
            waiting::put_waiting(txn, number, &request)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: AuditKind, request: u64, person: &str) -> AuditEvent {
        AuditEvent {
            request: Some(request),
            table_id: Some(7),
            subject: Some(person.to_string()),
            ..AuditEvent::new(kind, "2026-01-02T03:04:05Z".to_string())
        }
    }

    fn asked_with_grace(request: u64, person: &str) -> AuditEvent {
        AuditEvent {
            due: Some("2026-02-02T03:04:05Z".to_string()),
            ..event(AuditKind::Asked, request, person)
        }
    }

    fn held(kind: AuditKind, hold: u64, person: &str) -> AuditEvent {
        AuditEvent {
            request: None,
            hold: Some(hold),
            ..event(kind, 0, person)
        }
    }

    fn orders(events: Vec<AuditEvent>) -> (Vec<(String, u64)>, Vec<u64>, Vec<u64>) {
        let orders = Orders::of(events.into_iter());
        let forgotten = orders.forgotten.into_iter();
        (
            forgotten
                .map(|((_, person), request)| (person, request))
                .collect(),
            orders.waiting.into_keys().collect(),
            orders.holds.into_keys().collect(),
        )
    }

    #[test]
    fn the_last_word_about_a_person_counts() {
        let a = |request| ("a".to_string(), request);
        for (events, forgotten, waiting) in [
            (vec![asked_with_grace(1, "a")], vec![], vec![1]),
            (
                vec![asked_with_grace(1, "a"), event(AuditKind::Undone, 1, "a")],
                vec![],
                vec![],
            ),
            (
                vec![asked_with_grace(1, "a"), event(AuditKind::Batch, 1, "a")],
                vec![a(1)],
                vec![],
            ),
            (
                vec![asked_with_grace(1, "a"), event(AuditKind::Void, 1, "a")],
                vec![a(1)],
                vec![],
            ),
            (vec![event(AuditKind::Asked, 1, "a")], vec![a(1)], vec![]),
            // Of two people of one key, the store has the first.
            (
                vec![event(AuditKind::Done, 1, "a"), asked_with_grace(2, "a")],
                vec![a(1)],
                vec![],
            ),
        ] {
            let found = orders(events.clone());
            assert_eq!((found.0, found.1), (forgotten, waiting), "{events:?}");
        }
    }

    #[test]
    fn a_hold_counts_until_it_is_released() {
        let events = vec![
            held(AuditKind::Held, 1, "a"),
            held(AuditKind::Held, 2, "a"),
            held(AuditKind::Released, 1, "a"),
        ];
        assert_eq!(orders(events).2, [2]);
    }
}
