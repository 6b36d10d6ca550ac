//! `GDPR FORGET`: a person's rows go, and what others keep ceases to show the person.
//!
//! | file | holds |
//! |---|---|
//! | [`person`] | whom to forget, and how it went |
//! | [`plan`] | what becomes of each row that was found |
//! | [`apply`] | that, carried out by statements |
//! | [`batches`] | more rows than one transaction takes: a fence, then batches, going on after a crash |
//! | [`requests`] | SHOW GDPR REQUESTS, and requests that a crash cut short |
//! | [`holds`] | rows that are held, until they are released |
//! | [`grace`] | requests that may be undone until they are due |
//!
//! The common case is one transaction at SERIALIZABLE, whose reads lock: what it decides by is so when it
//! commits. Foreign keys are not checked by its statements: what refers to a row that goes is part of
//! the plan.

mod apply;
mod batches;
mod grace;
mod holds;
mod person;
mod plan;
mod requests;

use manxdb_ownership::OwnershipGraph;
use manxdb_ownership::proof::{AuditEvent, AuditKind};
use manxdb_txn::{IsolationLevel, Transaction, TxnError};

use super::walk::{Walk, WalkOptions};
use super::{person, unknown};
use crate::catalog::{Catalog, Table, TableId, ownership};
use crate::error::{SqlError, SqlResult};
use crate::parser::GdprForget;
use crate::session::ResultSink;
use crate::session::accounts::{Privileges, access};
use crate::session::instance::Instance;
use crate::session::run::RETRIES_MAX;
use crate::session::session::Session;
use crate::statement::StatementOutcome;
use crate::statement::owners::audit;
use crate::statement::owners::mutants::{OwnershipMutant, is_planted};
use crate::statement::owners::requests::{self as waiting, WaitReason, WaitingRequest};
use crate::statement::owners::subjects::{self, ForgetRequest, SubjectState};
use apply::apply;
use person::{ForgetDone, ForgetOutcome};
use plan::{ForgetPlan, ForgetPlanner, Kept, counted};

pub(super) use person::Forgotten;
pub(super) use plan::may_clear;
pub(in crate::session) use requests::RunningRequests;

const EXPLAINED: [&str; 4] = ["Table", "Action", "Rows", "Why"];

impl Instance {
    /// Views have heard of each commit of a request; what they keep for older snapshots goes, too.
    fn empty_views(&self) {
        if !is_planted(OwnershipMutant::KeptViews) {
            self.views.empty_all();
        }
    }
}

impl Session {
    /// `[EXPLAIN] GDPR FORGET kind id`. Needs the privilege GDPR, on the server or the database.
    pub(in crate::session) fn gdpr_forget(
        &mut self,
        forget: &GdprForget,
        sink: &mut dyn ResultSink,
        more: bool,
    ) -> SqlResult<()> {
        let (database, name) = self.object_name(&forget.kind, None)?;
        let need = access::Need::database(Privileges::GDPR, "GDPR", &database);
        access::check(&self.state.account(), &need, &self.state.client.host)?;
        let catalog = self.instance().store.current();
        let graph = ownership::graph(&catalog, None);
        let table = person(&catalog, &graph, &database, &name)?;
        let mut id = self.id_of(table, &forget.id)?;
        if forget.grace_days.is_some() {
            // UNDO has to find the person by the same id.
            id = self.typed_id(table, id)?;
        }
        let whom = Forgotten {
            reason: forget.reason.clone(),
            is_asked: !forget.is_explained,
            ..Forgotten::named(table, id, &self.state.identity.borrow())
        };
        if forget.is_explained {
            let rows = self.at_one_snapshot(|session| {
                session.forgetting(|session| session.explain_forget(&catalog, &graph, &whom))
            })?;
            return self.send_rows(&EXPLAINED, &rows, sink, more);
        }
        self.unlock_tables()?;
        self.commit()?;
        if let Some(days) = forget.grace_days {
            let outcome = self.forget_later(&whom, days)?;
            return self.report(&outcome, sink, more);
        }
        let forgotten = self.forget(&whom);
        // Views have heard of each commit; versions for older snapshots go too, as far as it came.
        self.instance().empty_views();
        let done = forgotten?;
        let outcome = StatementOutcome {
            affected_rows: done.rows,
            matched_rows: done.rows,
            info: done.to_string(),
            ..StatementOutcome::default()
        };
        self.report(&outcome, sink, more)
    }

    fn explain_forget(
        &mut self,
        catalog: &Catalog,
        graph: &OwnershipGraph,
        whom: &Forgotten,
    ) -> SqlResult<Vec<crate::types::Row>> {
        let mut walk = self.forget_walk(catalog, graph, false, usize::MAX);
        let plan = self.plan_to_forget(&mut walk, catalog, graph, whom)?;
        Ok(plan.summary(walk.tables()))
    }

    pub(super) fn forget_walk<'a>(
        &self,
        catalog: &'a Catalog,
        graph: &'a OwnershipGraph,
        locks: bool,
        rows_max: usize,
    ) -> Walk<'a> {
        let options = WalkOptions {
            only_keys: true,
            locks,
            rows_max,
        };
        let memory = self.instance().options.statement_memory_bytes;
        Walk::new(catalog, graph, memory, options)
    }

    fn plan_to_forget(
        &mut self,
        walk: &mut Walk<'_>,
        catalog: &Catalog,
        graph: &OwnershipGraph,
        whom: &Forgotten,
    ) -> SqlResult<ForgetPlan> {
        let table = person(catalog, graph, &whom.database, &whom.table)?;
        match walk.walk_from_person(self, table, &whom.id) {
            Err(error) if error.code == 51004 => Err(self.unknown_person(walk, table, whom, error)),
            Err(error) => Err(error),
            Ok(()) => {
                let (table, suffix) = self.person_key(walk)?;
                let kept = self.kept_of(table, &suffix)?;
                refuse_held(&kept, whom)?;
                ForgetPlanner::new(walk, self).keeping(kept).plan()
            }
        }
    }

    /// What keeps rows of the person with this key, in the open transaction.
    fn kept_of(&self, table: TableId, suffix: &[u8]) -> SqlResult<Kept> {
        let mut holds = self.holds_of(table, suffix)?;
        if is_planted(OwnershipMutant::IgnoredHold) {
            holds.clear();
        }
        Ok(Kept {
            holds,
            now_micros: self.instance().host.wall_micros(),
        })
    }

    /// 51004 with what is known of somebody who is not there.
    pub(super) fn unknown_person(
        &self,
        walk: &mut Walk<'_>,
        table: &Table,
        whom: &Forgotten,
        error: SqlError,
    ) -> SqlError {
        let zone = self.state.settings().time_zone.clone();
        let suffix = walk.table_of(table).and_then(|at| {
            let found = walk.found(at)?;
            found.suffix_of(&table.primary_key, &whom.id, &zone)
        });
        let (Ok(Some(suffix)), Ok(txn)) = (suffix, self.open_transaction()) else {
            return error;
        };
        match subjects::state(txn, table.id, &suffix) {
            Ok(SubjectState::Forgotten(request)) => unknown(format!(
                "'{}' has no row with this key: it was forgotten by request {request}",
                table.name
            )),
            _ => error,
        }
    }

    pub(super) fn open_transaction(&self) -> SqlResult<&Transaction> {
        let open = self.transaction.as_ref();
        open.map(|open| &open.txn)
            .ok_or_else(|| SqlError::internal("FORGET without a transaction"))
    }

    /// Runs `work` with the rights of the server and without checks of foreign keys.
    pub(super) fn forgetting<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> SqlResult<T>,
    ) -> SqlResult<T> {
        self.is_forgetting = true;
        let result = work(self);
        self.is_forgetting = false;
        result
    }

    /// Runs `work` in a transaction at SERIALIZABLE, again while it loses conflicts.
    pub(super) fn in_forgetting<T>(
        &mut self,
        work: &mut dyn FnMut(&mut Self) -> SqlResult<T>,
    ) -> SqlResult<T> {
        if self.state.settings().read_only {
            return Err(TxnError::ReadOnly.into());
        }
        for attempt in 0.. {
            self.open(IsolationLevel::Serializable, false, false);
            self.audit_event = None;
            let result = self.forgetting(|session| {
                let answer = work(session)?;
                session.commit()?;
                Ok(answer)
            });
            let error = match result {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            self.rollback();
            self.audit_event = None;
            if !matches!(error.code, 1205 | 1213 | 1412) || attempt >= RETRIES_MAX {
                return Err(error);
            }
            self.restart(attempt)?;
        }
        Err(TxnError::Deadlock.into())
    }

    /// Forgets a person.
    fn forget(&mut self, whom: &Forgotten) -> SqlResult<ForgetDone> {
        let rows_max = self.state.settings().gdpr_batch_rows;
        if let ForgetOutcome::Done(done) = self.forget_at_once(whom, rows_max, rows_max)? {
            return Ok(done);
        }
        self.forget_in_batches(whom, rows_max)
    }

    /// All in one transaction, with the end of the request, unless it finds or changes more rows.
    fn forget_at_once(
        &mut self,
        whom: &Forgotten,
        found_max: usize,
        changes_max: usize,
    ) -> SqlResult<ForgetOutcome> {
        self.in_forgetting(&mut |session| {
            let catalog = session.instance().store.current();
            let graph = ownership::graph(&catalog, None);
            let mut walk = session.forget_walk(&catalog, &graph, true, found_max);
            let plan = match session.plan_to_forget(&mut walk, &catalog, &graph, whom) {
                Err(_) if walk.is_over() => return Ok(ForgetOutcome::TooMany),
                other => other?,
            };
            if plan.changes() > changes_max {
                return Ok(ForgetOutcome::TooMany);
            }
            let rows = apply(
                session,
                &mut walk,
                plan.fates.iter().map(|(row, fate)| (*row, fate)),
            )?;
            session
                .end_forgetting(&walk, whom, &plan, rows)
                .map(ForgetOutcome::Done)
        })
    }

    /// All that may go has gone, `rows` with this transaction: the person is forgotten, or the rest waits.
    fn end_forgetting(
        &mut self,
        walk: &Walk<'_>,
        whom: &Forgotten,
        plan: &ForgetPlan,
        rows: u64,
    ) -> SqlResult<ForgetDone> {
        let (table, suffix) = self.person_key(walk)?;
        let txn = self.open_transaction()?;
        let begun = match subjects::state(txn, table, &suffix)? {
            SubjectState::Forgetting(number) => Some(number),
            _ => None,
        };
        let (number, mut request) = match begun {
            Some(number) => match waiting::begun(txn, number)? {
                Some(request) => (number, request),
                None => return Err(SqlError::internal("a person is forgotten by no request")),
            },
            None => {
                let request = self.new_request(table.0, whom, &suffix);
                let number = subjects::next_request(txn)?;
                self.audit_asked(number, &request, None)?;
                (number, request)
            }
        };
        request.rows += rows;
        let put_off: Vec<_> = plan.put_off().collect();
        let done = ForgetDone {
            request: number,
            rows: request.rows,
            put_off: put_off.len() as u64,
        };
        let kind = if put_off.is_empty() {
            request.done_at_micros = self.instance().host.wall_micros();
            subjects::set_state(txn, table, &suffix, SubjectState::Forgotten(number))?;
            waiting::end_waiting(txn, number)?;
            subjects::end_request(txn, number, &request)?;
            AuditKind::Done
        } else {
            let before = waiting::waiting_request(txn, number)?.map(|waiting| waiting.why);
            let request = WaitingRequest {
                request,
                why: WaitReason::PutOff { rows: done.put_off },
                due_at_micros: plan.due_at_micros,
            };
            subjects::set_state(txn, table, &suffix, SubjectState::Forgetting(number))?;
            waiting::put_waiting(txn, number, &request)?;
            let was_put_off = matches!(before, Some(WaitReason::PutOff { .. }));
            if rows > 0 || !was_put_off {
                self.rekey(walk, &put_off)?;
            }
            AuditKind::PutOff
        };
        let fates = plan.fates.iter().map(|(row, fate)| (*row, fate));
        let event = self.event(if self.is_replaying {
            AuditKind::Replayed
        } else {
            kind
        });
        self.audit_event = Some(AuditEvent {
            request: Some(number),
            table_id: Some(table.0),
            subject: Some(
                self.instance()
                    .proof_key()?
                    .subject(table.0, &subjects::hash(&suffix)),
            ),
            rows: counted(walk.tables(), fates),
            due: plan.due_at_micros.map(super::audit::at),
            ..event
        });
        Ok(done)
    }

    /// Rows that stay for now get other keys: what was sealed with them and has gone is unreadable.
    fn rekey(&self, walk: &Walk<'_>, rows: &[plan::Found]) -> SqlResult<()> {
        let Some(owners) = self.owner_notes() else {
            return Ok(());
        };
        let zone = self.state.settings().time_zone.clone();
        let txn = self.open_transaction()?;
        for row in rows {
            let found = walk.found(row.0)?;
            if let Some(suffix) = found.suffix(&walk.found_row(*row)?.values, &zone)? {
                owners.rekey(txn, &found.table, &suffix, &zone)?;
            }
        }
        Ok(())
    }

    /// An event that happens now.
    fn event(&self, kind: AuditKind) -> AuditEvent {
        AuditEvent::new(kind, self.instance().audit_time())
    }

    /// Records that a person is to be forgotten.
    fn audit_asked(
        &self,
        number: u64,
        request: &ForgetRequest,
        due_at_micros: Option<i64>,
    ) -> SqlResult<()> {
        let subject = subjects::hash(&request.suffix);
        let key = self.instance().proof_key()?;
        let event = AuditEvent {
            request: Some(number),
            database: Some(request.database.clone()),
            table: Some(request.table.clone()),
            table_id: Some(request.table_id),
            subject: Some(key.subject(request.table_id, &subject)),
            by: Some(request.asked_by.clone()),
            reason: request.reason.clone(),
            due: due_at_micros.map(super::audit::at),
            ..self.event(AuditKind::Asked)
        };
        audit::append(self.open_transaction()?, &event)
    }

    /// A request of a newer store begins again here, under its number.
    pub(super) fn begin_again(&self, table: &Table, suffix: &[u8], number: u64) -> SqlResult<()> {
        let whom = Forgotten {
            reason: Some("the store came from a backup".to_string()),
            is_asked: false,
            ..Forgotten::named(table, Vec::new(), &self.state.identity.borrow())
        };
        let txn = self.open_transaction()?;
        let request = self.new_request(table.id.0, &whom, suffix);
        waiting::end_waiting(txn, number)?;
        subjects::set_state(txn, table.id, suffix, SubjectState::Forgetting(number))?;
        subjects::put_request(txn, number, &request)
    }

    /// A request of a newer store, as its record has it.
    pub(super) fn request_again(
        &self,
        table: &Table,
        suffix: &[u8],
        event: &AuditEvent,
        asked_at_micros: Option<i64>,
    ) -> ForgetRequest {
        let by = event.by.as_deref().unwrap_or_default();
        let whom = Forgotten {
            reason: event.reason.clone(),
            is_asked: false,
            ..Forgotten::named(table, Vec::new(), by)
        };
        let mut request = self.new_request(table.id.0, &whom, suffix);
        request.asked_at_micros = asked_at_micros.unwrap_or(request.asked_at_micros);
        request
    }

    fn new_request(&self, table_id: u32, whom: &Forgotten, suffix: &[u8]) -> ForgetRequest {
        ForgetRequest {
            database: whom.database.clone(),
            table: whom.table.clone(),
            table_id,
            suffix: suffix.to_vec(),
            rows: 0,
            asked_by: whom.asked_by.clone(),
            reason: whom.reason.clone(),
            asked_at_micros: self.instance().host.wall_micros(),
            done_at_micros: 0,
        }
    }

    /// The table and key suffix of the person whose walk this is.
    fn person_key(&self, walk: &Walk<'_>) -> SqlResult<(TableId, Vec<u8>)> {
        let lost = || SqlError::internal("a person without a key");
        let person = *walk.order().first().ok_or_else(lost)?;
        let found = walk.found(person.0)?;
        let zone = self.state.settings().time_zone.clone();
        let values = &walk.found_row(person)?.values;
        let suffix = found.suffix(values, &zone)?.ok_or_else(lost)?;
        Ok((found.table.id, suffix))
    }
}

/// 51008 where a statement asks for somebody of whom all is held.
fn refuse_held(kept: &Kept, whom: &Forgotten) -> SqlResult<()> {
    let Some((number, hold)) = kept.whole().filter(|_| whom.is_asked) else {
        return Ok(());
    };
    Err(refused(format!(
        "'{}' {} is held by hold {number} ({}): nothing is changed. GDPR RELEASE ends a hold",
        hold.kind, hold.shown, hold.reason
    )))
}

/// 51008: the person, or the request, is not in a state for what was asked.
fn refused(text: String) -> SqlError {
    SqlError::new(51008, "HY000", text)
}
