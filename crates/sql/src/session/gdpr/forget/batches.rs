//! More rows than one transaction takes. The fence is committed first: from then on nothing new becomes
//! the person's. Then batches, each row before the one through which it was found, so that a
//! walk that begins anew after a crash finds what is left; the person goes last, with the end of the
//! request.

use manxdb_ownership::OwnershipGraph;
use manxdb_ownership::proof::{AuditEvent, AuditKind};

use super::apply::apply;
use super::plan::{Fate, ForgetPlanner, Found, counted};
use super::requests::begin;
use super::{ForgetDone, ForgetOutcome, Forgotten, person, refuse_held};
use crate::catalog::{Catalog, ownership};
use crate::error::{SqlError, SqlResult};
use crate::session::session::Session;
use crate::statement::owners::requests as waiting;
use crate::statement::owners::subjects::{self, SubjectState};

impl Session {
    /// Forgets a person in as many transactions as it takes.
    ///
    /// # Errors
    /// 1213 when nothing can be changed for conflicts; the request stays open, and goes on when it is
    /// asked for again, or by itself.
    pub(super) fn forget_in_batches(
        &mut self,
        whom: &Forgotten,
        rows_max: usize,
    ) -> SqlResult<ForgetDone> {
        let number = self.fence(whom)?;
        let _running = begin(self.instance(), number);
        loop {
            let changed = self.one_round(whom, number, rows_max)?;
            // What is only kept may be more than a batch.
            let last = self.forget_at_once(whom, usize::MAX, rows_max)?;
            if let ForgetOutcome::Done(done) = last {
                assert_eq!(
                    done.request, number,
                    "one request at a time forgets a person"
                );
                return Ok(done);
            }
            if changed == 0 {
                return Err(manxdb_txn::TxnError::Deadlock.into());
            }
        }
    }

    /// Nothing new becomes the person's from here; the number of the request, which may have begun
    /// before.
    fn fence(&mut self, whom: &Forgotten) -> SqlResult<u64> {
        self.in_forgetting(&mut |session| {
            let catalog = session.instance().store.current();
            let graph = ownership::graph(&catalog, None);
            let mut walk = session.forget_walk(&catalog, &graph, true, 1);
            let table = person(&catalog, &graph, &whom.database, &whom.table)?;
            let found = walk.walk_from_person(session, table, &whom.id);
            // It stops at the second row.
            if !walk.is_over() {
                found?;
            }
            let (table, suffix) = session.person_key(&walk)?;
            refuse_held(&session.kept_of(table, &suffix)?, whom)?;
            let txn = session.open_transaction()?;
            if let SubjectState::Forgetting(number) = subjects::state(txn, table, &suffix)? {
                // One that waited goes on.
                if let Some(waiting) = waiting::waiting_request(txn, number)? {
                    waiting::end_waiting(txn, number)?;
                    subjects::put_request(txn, number, &waiting.request)?;
                }
                return Ok(number);
            }
            let number = subjects::next_request(txn)?;
            subjects::set_state(txn, table, &suffix, SubjectState::Forgetting(number))?;
            let request = session.new_request(table.0, whom, &suffix);
            subjects::put_request(txn, number, &request)?;
            session.audit_asked(number, &request, None)?;
            session.audit_event = None;
            Ok(number)
        })
    }

    /// Changes all that one walk finds but the person; how many rows.
    fn one_round(&mut self, whom: &Forgotten, number: u64, rows_max: usize) -> SqlResult<u64> {
        let catalog = self.instance().store.current();
        let graph = ownership::graph(&catalog, None);
        let mut walk = self.forget_walk(&catalog, &graph, false, usize::MAX);
        let plan = self.at_one_snapshot(|session| {
            session.forgetting(|session| session.plan_to_forget(&mut walk, &catalog, &graph, whom))
        })?;
        walk.lock_rows();
        let mut open: Vec<Found> = walk.order().iter().skip(1).copied().collect();
        open.reverse();
        open.retain(|row| {
            !matches!(
                plan.fates.get(row),
                Some(Fate::Keep(_) | Fate::PutOff(_)) | None
            )
        });
        let mut changed = 0;
        for batch in open.chunks(rows_max.max(1)) {
            changed += self.in_forgetting(&mut |session| {
                let mut planner = ForgetPlanner::again(&mut walk, session, &plan);
                let mut left = Vec::new();
                for row in batch {
                    if let Some(fate) = plan.fates.get(row)
                        && planner.still_holds(*row, fate)?
                    {
                        left.push((*row, fate));
                    }
                }
                let rows = apply(session, &mut walk, left.iter().copied())?;
                session.count_changed(number, rows)?;
                session.audit_event = Some(AuditEvent {
                    request: Some(number),
                    rows: counted(walk.tables(), left.into_iter()),
                    ..session.event(if session.is_replaying {
                        AuditKind::Replayed
                    } else {
                        AuditKind::Batch
                    })
                });
                Ok(rows)
            })?;
        }
        Ok(changed)
    }

    fn count_changed(&self, number: u64, rows: u64) -> SqlResult<()> {
        let txn = self.open_transaction()?;
        let Some(mut request) = subjects::request(txn, number)? else {
            return Err(SqlError::internal(
                "a request that is under way is not there",
            ));
        };
        request.rows += rows;
        subjects::put_request(txn, number, &request)
    }

    /// Goes on with a request that was cut short, or waited. `None`: there is nothing left of it.
    pub(in crate::session::gdpr) fn resume(
        &mut self,
        number: u64,
    ) -> SqlResult<Option<ForgetDone>> {
        let Some(whom) = self.whom(number)? else {
            return Ok(None);
        };
        let rows_max = self.state.settings().gdpr_batch_rows;
        self.forget_in_batches(&whom, rows_max).map(Some)
    }

    /// Whom an open request is about. One whose table is gone is over.
    fn whom(&mut self, number: u64) -> SqlResult<Option<Forgotten>> {
        self.in_forgetting(&mut |session| {
            let catalog = session.instance().store.current();
            let graph = ownership::graph(&catalog, None);
            let txn = session.open_transaction()?;
            let Some(mut request) = waiting::begun(txn, number)? else {
                return Ok(None);
            };
            let id = session.id_behind(&catalog, &graph, &request)?;
            if let Some(id) = id {
                return Ok(Some(Forgotten {
                    database: request.database,
                    table: request.table,
                    id,
                    asked_by: request.asked_by,
                    reason: request.reason,
                    is_asked: false,
                }));
            }
            request.done_at_micros = session.instance().host.wall_micros();
            waiting::end_waiting(txn, number)?;
            subjects::end_request(txn, number, &request)?;
            session.audit_event = Some(AuditEvent {
                request: Some(number),
                ..session.event(AuditKind::Void)
            });
            Ok(None)
        })
    }

    /// The primary key of the row with a request's key suffix.
    fn id_behind(
        &self,
        catalog: &Catalog,
        graph: &OwnershipGraph,
        request: &subjects::ForgetRequest,
    ) -> SqlResult<Option<Vec<crate::types::Value>>> {
        let Ok(table) = person(catalog, graph, &request.database, &request.table) else {
            return Ok(None);
        };
        if table.id.0 != request.table_id {
            return Ok(None);
        }
        let key = crate::encoding::row_key(table, &request.suffix);
        let txn = self.open_transaction()?;
        let Some(record) = txn.get(&key, manxdb_txn::ReadMode::Validate)? else {
            return Ok(None);
        };
        let zone = self.state.settings().time_zone.clone();
        let row = crate::encoding::decode_row(table, (&request.suffix, &record), &zone)?;
        let id = table
            .primary_key
            .iter()
            .filter_map(|at| row.get(*at).cloned());
        Ok(Some(id.collect()))
    }
}
