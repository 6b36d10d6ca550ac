//! `GDPR FORGET`: a person's rows go, and what others keep ceases to show the person.
//!
//! | file | holds |
//! |---|---|
//! | [`plan`] | what becomes of each row that was found |
//! | [`apply`] | that, carried out by statements |
//! | [`batches`] | more rows than one transaction takes: a fence, then batches, going on after a crash |
//! | [`requests`] | SHOW GDPR REQUESTS, and requests that a crash cut short |
//!
//! The common case is one transaction at SERIALIZABLE, whose reads lock: what it decides by is so when it
//! commits. Foreign keys are not checked by its statements: what refers to a row that goes is part of
//! the plan.

mod apply;
mod batches;
mod plan;
mod requests;

use manxdb_ownership::OwnershipGraph;
use manxdb_txn::{IsolationLevel, Transaction, TxnError};

use super::walk::{Walk, WalkOptions};
use super::{person, unknown};
use crate::catalog::{Catalog, Table, ownership};
use crate::error::{SqlError, SqlResult};
use crate::parser::GdprForget;
use crate::session::ResultSink;
use crate::session::accounts::{Privileges, access};
use crate::session::run::RETRIES_MAX;
use crate::session::session::Session;
use crate::statement::StatementOutcome;
use crate::statement::owners::subjects::{self, ForgetRequest, SubjectState};
use crate::types::Value;
use apply::apply;
use plan::{ForgetPlan, ForgetPlanner};

pub(in crate::session) use requests::RunningRequests;

const EXPLAINED: [&str; 4] = ["Table", "Action", "Rows", "Why"];

/// Whom to forget, and how it was asked for.
#[derive(Debug, Clone)]
struct Forgotten {
    database: String,
    table: String,
    /// Values of the primary key.
    id: Vec<Value>,
    asked_by: String,
    reason: Option<String>,
}

/// How a request went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ForgetOutcome {
    /// It has this number, and has changed so many rows.
    Done { request: u64, rows: u64 },
    /// There is more than one transaction may change.
    TooMany,
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
        if forget.has_grace {
            return Err(SqlError::not_supported("GRACE of GDPR FORGET"));
        }
        let catalog = self.instance().store.current();
        let graph = ownership::graph(&catalog, None);
        let table = person(&catalog, &graph, &database, &name)?;
        let whom = Forgotten {
            database: table.database.clone(),
            table: table.name.clone(),
            id: self.id_of(table, &forget.id)?,
            asked_by: self.state.identity.borrow().clone(),
            reason: forget.reason.clone(),
        };
        if forget.is_explained {
            let rows = self.at_one_snapshot(|session| {
                session.forgetting(|session| session.explain_forget(&catalog, &graph, &whom))
            })?;
            return self.send_rows(&EXPLAINED, &rows, sink, more);
        }
        self.unlock_tables()?;
        self.commit()?;
        let forgotten = self.forget(&whom);
        // Views have heard of each commit; versions for older snapshots go too, as far as it came.
        self.instance().views.empty_all();
        let (request, rows) = forgotten?;
        let outcome = StatementOutcome {
            affected_rows: rows,
            matched_rows: rows,
            info: format!("request {request}"),
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

    fn forget_walk<'a>(
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
            Ok(()) => ForgetPlanner::new(walk, self).plan(),
        }
    }

    /// 51004 with what is known of somebody who is not there.
    fn unknown_person(
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

    fn open_transaction(&self) -> SqlResult<&Transaction> {
        let open = self.transaction.as_ref();
        open.map(|open| &open.txn)
            .ok_or_else(|| SqlError::internal("FORGET without a transaction"))
    }

    /// Runs `work` with the rights of the server and without checks of foreign keys.
    fn forgetting<T>(&mut self, work: impl FnOnce(&mut Self) -> SqlResult<T>) -> SqlResult<T> {
        self.is_forgetting = true;
        let result = work(self);
        self.is_forgetting = false;
        result
    }

    /// Runs `work` in a transaction at SERIALIZABLE, again while it loses conflicts.
    fn in_forgetting<T>(
        &mut self,
        work: &mut dyn FnMut(&mut Self) -> SqlResult<T>,
    ) -> SqlResult<T> {
        if self.state.settings().read_only {
            return Err(TxnError::ReadOnly.into());
        }
        for attempt in 0.. {
            self.open(IsolationLevel::Serializable, false, false);
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
            if !matches!(error.code, 1205 | 1213 | 1412) || attempt >= RETRIES_MAX {
                return Err(error);
            }
            self.restart(attempt)?;
        }
        Err(TxnError::Deadlock.into())
    }

    /// Forgets a person: the number of the request, and how many rows it has changed.
    fn forget(&mut self, whom: &Forgotten) -> SqlResult<(u64, u64)> {
        let rows_max = self.state.settings().gdpr_batch_rows;
        if let ForgetOutcome::Done { request, rows } =
            self.forget_at_once(whom, rows_max, rows_max)?
        {
            return Ok((request, rows));
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
            let request = session.end_forgetting(&walk, whom, rows)?;
            Ok(request)
        })
    }

    /// The person is forgotten: `rows` are changed by this transaction, the last.
    fn end_forgetting(
        &mut self,
        walk: &Walk<'_>,
        whom: &Forgotten,
        rows: u64,
    ) -> SqlResult<ForgetOutcome> {
        let (table, suffix) = self.person_key(walk)?;
        let txn = self.open_transaction()?;
        let (number, mut request) = match subjects::state(txn, table, &suffix)? {
            SubjectState::Forgetting(number) => match subjects::request(txn, number)? {
                Some(request) => (number, request),
                None => return Err(SqlError::internal("a person is forgotten by no request")),
            },
            _ => {
                let number = subjects::next_request(txn)?;
                (number, self.new_request(table.0, whom, &suffix))
            }
        };
        request.rows += rows;
        request.done_at_micros = self.instance().host.wall_micros();
        subjects::set_state(txn, table, &suffix, SubjectState::Forgotten(number))?;
        subjects::end_request(txn, number, &request)?;
        let rows = request.rows;
        Ok(ForgetOutcome::Done {
            request: number,
            rows,
        })
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
    fn person_key(&self, walk: &Walk<'_>) -> SqlResult<(crate::catalog::TableId, Vec<u8>)> {
        let lost = || SqlError::internal("a person without a key");
        let person = *walk.order().first().ok_or_else(lost)?;
        let found = walk.found(person.0)?;
        let zone = self.state.settings().time_zone.clone();
        let values = &walk.found_row(person)?.values;
        let suffix = found.suffix(values, &zone)?.ok_or_else(lost)?;
        Ok((found.table.id, suffix))
    }
}
