//! `GDPR HOLD`, `GDPR RELEASE` and SHOW GDPR HOLDS: rows of a person that no request deletes, until they are
//! released.

use manxdb_ownership::proof::{AuditEvent, AuditKind};
use sqlparser::ast::{Expr, ObjectName};

use super::{Forgotten, person, refused};
use crate::catalog::{Table, TableId, ownership};
use crate::error::SqlResult;
use crate::session::ResultSink;
use crate::session::accounts::{Privileges, access};
use crate::session::session::Session;
use crate::statement::StatementOutcome;
use crate::statement::owners::audit;
use crate::statement::owners::mutants::{OwnershipMutant, is_planted};
use crate::statement::owners::requests::{self as waiting, Hold, WaitReason, WaitingRequest};
use crate::statement::owners::subjects::{self, SubjectState};
use crate::types::{Row, Value};

const COLUMNS: [&str; 8] = [
    "Hold", "Database", "Kind", "Id", "Table", "Held_by", "Held_at", "Reason",
];

/// A person by key, there or not.
pub(in crate::session::gdpr) struct PersonKey {
    pub(super) table: TableId,
    pub(in crate::session::gdpr) suffix: Vec<u8>,
    /// The row is there.
    pub(super) is_there: bool,
}

impl Session {
    /// Whom a statement names, after the privilege GDPR on the server or the database.
    ///
    /// # Errors
    /// 51004 for an unknown kind, or an id that no row of it can have.
    pub(in crate::session::gdpr) fn named_person(
        &mut self,
        kind: &ObjectName,
        id: &[Expr],
    ) -> SqlResult<Forgotten> {
        let (database, name) = self.object_name(kind, None)?;
        let need = access::Need::database(Privileges::GDPR, "GDPR", &database);
        access::check(&self.state.account(), &need, &self.state.client.host)?;
        let catalog = self.instance().store.current();
        let graph = ownership::graph(&catalog, None);
        let table = person(&catalog, &graph, &database, &name)?;
        let id = self.id_of(table, id)?;
        let id = self.typed_id(table, id)?;
        Ok(Forgotten::named(table, id, &self.state.identity.borrow()))
    }

    /// The key of a person, in the open transaction.
    ///
    /// # Errors
    /// Conflicts, storage; 51004 when no row of the table can have such a key.
    pub(in crate::session::gdpr) fn key_of_person(
        &mut self,
        whom: &Forgotten,
    ) -> SqlResult<PersonKey> {
        let catalog = self.instance().store.current();
        let graph = ownership::graph(&catalog, None);
        let table = person(&catalog, &graph, &whom.database, &whom.table)?;
        // It stops at the second row.
        let mut walk = self.forget_walk(&catalog, &graph, true, 1);
        let found = walk.walk_from_person(self, table, &whom.id);
        match found {
            Err(error) if !walk.is_over() && error.code != 51004 => return Err(error),
            _ if walk.order().is_empty() => {}
            _ => {
                let (table, suffix) = self.person_key(&walk)?;
                return Ok(PersonKey {
                    table,
                    suffix,
                    is_there: true,
                });
            }
        }
        let zone = self.state.settings().time_zone.clone();
        let at = walk.table_of(table)?;
        let suffix = walk
            .found(at)?
            .suffix_of(&table.primary_key, &whom.id, &zone)?;
        let suffix =
            suffix.ok_or_else(|| super::unknown(format!("'{}' has no such key", table.name)))?;
        Ok(PersonKey {
            table: table.id,
            suffix,
            is_there: false,
        })
    }

    /// Holds on the person with this key, on all rows or on those of a table, by number, in the open
    /// transaction.
    pub(super) fn holds_of(&self, table: TableId, suffix: &[u8]) -> SqlResult<Vec<(u64, Hold)>> {
        let subject = subjects::hash(suffix);
        let mut holds = waiting::holds(self.open_transaction()?)?;
        holds.retain(|(_, hold)| (hold.kind_id, hold.subject) == (table.0, subject));
        Ok(holds)
    }

    /// `GDPR HOLD kind id [ON table] REASON '…'`.
    ///
    /// # Errors
    /// 51004 when there is no such person; 51008 when rows of the table are nobody's.
    pub(in crate::session) fn gdpr_hold(
        &mut self,
        (kind, id): (&ObjectName, &[Expr]),
        on: Option<&ObjectName>,
        reason: &str,
    ) -> SqlResult<StatementOutcome> {
        let whom = self.named_person(kind, id)?;
        let on = on.map(|on| self.held_table(&whom, on)).transpose()?;
        self.unlock_tables()?;
        self.commit()?;
        let number = self.in_forgetting(&mut |session| {
            let person = session.key_of_person(&whom)?;
            if !person.is_there {
                let text = format!(
                    "'{}' has no row with the key {}",
                    whom.table,
                    super::super::shown(&whom.id)
                );
                return Err(super::unknown(text));
            }
            let subject = subjects::hash(&person.suffix);
            let hold = Hold {
                database: whom.database.clone(),
                kind: whom.table.clone(),
                kind_id: person.table.0,
                subject,
                shown: super::super::shown(&whom.id),
                table: on.clone(),
                reason: reason.to_string(),
                held_by: whom.asked_by.clone(),
                held_at_micros: session.instance().host.wall_micros(),
            };
            let txn = session.open_transaction()?;
            let number = waiting::put_hold(txn, &hold)?;
            let event = session.hold_event(AuditKind::Held, number, &hold, &whom.asked_by)?;
            audit::append(txn, &event)?;
            Ok(number)
        })?;
        self.instance().mirror_audit()?;
        Ok(StatementOutcome {
            info: format!("hold {number}"),
            ..StatementOutcome::default()
        })
    }

    /// The table that a hold is on.
    fn held_table(&mut self, whom: &Forgotten, on: &ObjectName) -> SqlResult<(u32, String)> {
        let (database, name) = match on.0.as_slice() {
            [_] => (
                whom.database.clone(),
                self.object_name(on, Some(&whom.database))?.1,
            ),
            _ => self.object_name(on, None)?,
        };
        let catalog = self.instance().store.current();
        let table: &Table = catalog.table(&database, &name)?;
        if !table.has_ownership() {
            let text = format!(
                "rows of '{name}' are nobody's: hold rows of a table that says whose they are"
            );
            return Err(refused(text));
        }
        Ok((table.id.0, table.name.clone()))
    }

    fn hold_event(
        &self,
        kind: AuditKind,
        number: u64,
        hold: &Hold,
        by: &str,
    ) -> SqlResult<AuditEvent> {
        let key = self.instance().proof_key()?;
        Ok(AuditEvent {
            hold: Some(number),
            database: Some(hold.database.clone()),
            table: hold.table.as_ref().map(|(_, name)| name.clone()),
            table_id: Some(hold.kind_id),
            subject: Some(key.subject(hold.kind_id, &hold.subject)),
            by: Some(by.to_string()),
            reason: Some(hold.reason.clone()),
            ..self.event(kind)
        })
    }

    /// `GDPR RELEASE kind id [ON table]`: holds end, and what was put off for them is erased.
    ///
    /// # Errors
    /// 51008 when nothing of the person is held.
    pub(in crate::session) fn gdpr_release(
        &mut self,
        kind: &ObjectName,
        id: &[Expr],
        on: Option<&ObjectName>,
    ) -> SqlResult<StatementOutcome> {
        let whom = self.named_person(kind, id)?;
        let on = on.map(|on| self.held_table(&whom, on)).transpose()?;
        self.unlock_tables()?;
        self.commit()?;
        let (released, waits) = self.in_forgetting(&mut |session| {
            let person = session.key_of_person(&whom)?;
            let txn = session.open_transaction()?;
            let mut holds = session.holds_of(person.table, &person.suffix)?;
            holds.retain(|(_, hold)| on.is_none() || hold.table == on);
            if holds.is_empty() {
                let (kind, id) = (&whom.table, super::super::shown(&whom.id));
                let text = format!(
                    "nothing of '{kind}' {id} is held like this: SHOW GDPR HOLDS lists what is"
                );
                return Err(refused(text));
            }
            for (number, hold) in &holds {
                waiting::release(txn, *number)?;
                let event =
                    session.hold_event(AuditKind::Released, *number, hold, &whom.asked_by)?;
                audit::append(txn, &event)?;
            }
            let waits = session.put_off_is_due(&person)?;
            Ok((holds.len(), waits))
        })?;
        self.instance().mirror_audit()?;
        let mut info = format!("{released} holds released");
        let mut rows = 0;
        if let Some((number, before)) = waits {
            let done = self.resume(number);
            self.instance().empty_views();
            if let Some(done) = done? {
                rows = done.rows.saturating_sub(before);
                info = format!("{info}; {done}");
            }
        }
        Ok(StatementOutcome {
            affected_rows: rows,
            matched_rows: rows,
            info,
            ..StatementOutcome::default()
        })
    }

    /// The request that has put off rows of a person, and how many rows it has changed. It is due from now
    /// on: whatever becomes of this process, it goes on.
    fn put_off_is_due(&self, person: &PersonKey) -> SqlResult<Option<(u64, u64)>> {
        let txn = self.open_transaction()?;
        let SubjectState::Forgetting(number) = subjects::state(txn, person.table, &person.suffix)?
        else {
            return Ok(None);
        };
        let request = waiting::waiting_request(txn, number)?;
        let is_kept = is_planted(OwnershipMutant::KeptAfterRelease);
        let is_put_off =
            |request: &WaitingRequest| matches!(request.why, WaitReason::PutOff { .. });
        let request = request.filter(|request| is_put_off(request) && !is_kept);
        let Some(mut request) = request else {
            return Ok(None);
        };
        request.due_at_micros = Some(self.instance().host.wall_micros());
        waiting::put_waiting(txn, number, &request)?;
        Ok(Some((number, request.request.rows)))
    }

    /// SHOW GDPR HOLDS: what is held, of all people.
    pub(in crate::session) fn show_holds(
        &mut self,
        sink: &mut dyn ResultSink,
        more: bool,
    ) -> SqlResult<()> {
        access::require_global(&self.state.account(), Privileges::GDPR, "GDPR")?;
        let txn = self.instance().store.begin();
        txn.declare_read_only();
        let holds = waiting::holds(&txn)?;
        let rows: Vec<Row> = holds
            .iter()
            .map(|(number, hold)| self.hold_row(*number, hold))
            .collect();
        self.send_rows(&COLUMNS, &rows, sink, more)
    }

    fn hold_row(&self, number: u64, hold: &Hold) -> Row {
        let text = |text: &str| Value::Text(text.to_string());
        vec![
            Value::UInt(number),
            text(&hold.database),
            text(&hold.kind),
            text(&hold.shown),
            hold.table
                .as_ref()
                .map_or(Value::Null, |(_, name)| text(name)),
            text(&hold.held_by),
            self.shown_time(hold.held_at_micros),
            text(&hold.reason),
        ]
    }
}
