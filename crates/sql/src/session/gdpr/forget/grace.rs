//! `GDPR FORGET … GRACE n DAY` and `GDPR UNDO`: the person is fenced at once, and goes when the request is due.

use manxdb_ownership::proof::{AuditEvent, AuditKind};

use super::{Forgotten, refuse_held, refused};
use crate::catalog::TableId;
use crate::error::SqlResult;
use crate::parser::GdprUndo;
use crate::session::accounts::{Privileges, access};
use crate::session::session::Session;
use crate::statement::StatementOutcome;
use crate::statement::owners::mutants::{OwnershipMutant, is_planted};
use crate::statement::owners::requests::{self as waiting, WaitReason, WaitingRequest};
use crate::statement::owners::subjects::{self, SubjectState};
use crate::types::MICROS_PER_DAY;

/// Days of grace: the law wants an answer within a month, three with reasons.
const GRACE_DAYS_MAX: u64 = 3_650;

impl Session {
    /// Fences a person who goes in `days` days.
    ///
    /// # Errors
    /// 51004 when there is no such person; 51008 when they are held, or being forgotten already.
    pub(super) fn forget_later(
        &mut self,
        whom: &Forgotten,
        days: u64,
    ) -> SqlResult<StatementOutcome> {
        let span = i64::try_from(days).ok().filter(|_| days <= GRACE_DAYS_MAX);
        let Some(span) = span.and_then(|days| days.checked_mul(MICROS_PER_DAY)) else {
            return Err(refused(format!(
                "GRACE takes 0 to {GRACE_DAYS_MAX} days, not {days}"
            )));
        };
        let (number, due) = self.in_forgetting(&mut |session| {
            let person = session.key_of_person(whom)?;
            let txn = session.open_transaction()?;
            let state = subjects::state(txn, person.table, &person.suffix)?;
            let before = match state {
                SubjectState::Forgetting(number) => {
                    return Err(refused(format!(
                        "'{}' {} is being forgotten by request {number} already: GDPR UNDO {number} takes \
                         back one that has not begun, GDPR FORGET without GRACE goes on with it now",
                        whom.table,
                        super::super::shown(&whom.id)
                    )));
                }
                SubjectState::Forgotten(number) if !person.is_there => {
                    return Err(super::unknown(format!(
                        "'{}' has no row with this key: it was forgotten by request {number}",
                        whom.table
                    )));
                }
                SubjectState::Live if !person.is_there => {
                    let id = super::super::shown(&whom.id);
                    let text = format!("'{}' has no row with the key {id}", whom.table);
                    return Err(super::unknown(text));
                }
                SubjectState::Forgotten(number) => Some(number),
                SubjectState::Live => None,
            };
            refuse_held(&session.kept_of(person.table, &person.suffix)?, whom)?;
            let number = subjects::next_request(txn)?;
            let request = session.new_request(person.table.0, whom, &person.suffix);
            let due = request.asked_at_micros.saturating_add(span);
            session.audit_asked(number, &request, Some(due))?;
            let request = WaitingRequest {
                request,
                why: WaitReason::Grace { before },
                due_at_micros: Some(due),
            };
            subjects::set_state(txn, person.table, &person.suffix, SubjectState::Forgetting(number))?;
            waiting::put_waiting(txn, number, &request)?;
            Ok((number, due))
        })?;
        self.instance().mirror_audit()?;
        let due = self.shown_time(due).to_text().unwrap_or_default();
        Ok(StatementOutcome {
            info: format!(
                "request {number}, due {due}: GDPR UNDO {number} takes it back until then"
            ),
            ..StatementOutcome::default()
        })
    }

    /// `GDPR UNDO kind id | request`: the person is as before.
    ///
    /// # Errors
    /// 51004 for an unknown request; 51008 when its grace is over, or it has none.
    pub(in crate::session) fn gdpr_undo(&mut self, undo: &GdprUndo) -> SqlResult<StatementOutcome> {
        let whom = match undo {
            GdprUndo::Request(_) => None,
            GdprUndo::Person { kind, id } => Some(self.named_person(kind, id)?),
        };
        self.unlock_tables()?;
        self.commit()?;
        let number = self.in_forgetting(&mut |session| {
            let number = match (undo, &whom) {
                (GdprUndo::Request(number), _) => *number,
                (_, None) => return Err(super::unknown("nobody is named".to_string())),
                (_, Some(whom)) => session.request_about(whom)?,
            };
            session.take_back(number)?;
            Ok(number)
        })?;
        self.instance().mirror_audit()?;
        Ok(StatementOutcome {
            info: format!("request {number} is undone"),
            ..StatementOutcome::default()
        })
    }

    /// The request that is forgetting a person.
    fn request_about(&mut self, whom: &Forgotten) -> SqlResult<u64> {
        let person = self.key_of_person(whom)?;
        let txn = self.open_transaction()?;
        let shown = super::super::shown(&whom.id);
        match subjects::state(txn, person.table, &person.suffix)? {
            SubjectState::Forgetting(number) => Ok(number),
            SubjectState::Forgotten(number) if !person.is_there => Err(refused(format!(
                "'{}' {shown} was forgotten by request {number}: that cannot be undone",
                whom.table
            ))),
            _ => Err(refused(format!(
                "no request is to forget '{}' {shown}: SHOW GDPR REQUESTS lists those there are",
                whom.table
            ))),
        }
    }

    fn take_back(&mut self, number: u64) -> SqlResult<()> {
        let txn = self.open_transaction()?;
        let Some(waiting) = waiting::waiting_request(txn, number)? else {
            let list = "SHOW GDPR REQUESTS lists those there are";
            let done = subjects::done_requests(txn)?;
            if subjects::request(txn, number)?.is_some()
                || done.iter().any(|(done, _)| *done == number)
            {
                let text = format!(
                    "request {number} has begun and cannot be undone: its grace is over, or it had none"
                );
                return Err(refused(text));
            }
            return Err(super::unknown(format!(
                "there is no request {number}, or it was undone: {list}"
            )));
        };
        let request = &waiting.request;
        let need = access::Need::database(Privileges::GDPR, "GDPR", &request.database);
        access::check(&self.state.account(), &need, &self.state.client.host)?;
        let WaitReason::Grace { before } = waiting.why else {
            let text = format!(
                "request {number} has put off some rows and deleted the others: that cannot be undone"
            );
            return Err(refused(text));
        };
        let now = self.instance().host.wall_micros();
        let is_over = waiting.due_at_micros.is_some_and(|due| due <= now);
        if is_over && !is_planted(OwnershipMutant::UndoneTooLate) {
            return Err(refused(format!(
                "the grace of request {number} is over: it cannot be undone"
            )));
        }
        let state = before.map_or(SubjectState::Live, SubjectState::Forgotten);
        subjects::set_state(txn, TableId(request.table_id), &request.suffix, state)?;
        waiting::end_waiting(txn, number)?;
        let by = self.state.identity.borrow().clone();
        self.audit_event = Some(AuditEvent {
            request: Some(number),
            by: Some(by),
            ..self.event(AuditKind::Undone)
        });
        Ok(())
    }
}
