//! Owners of rows at COMMIT, and when checks of foreign keys are on again.

use super::session::Session;
use crate::error::SqlResult;
use crate::statement::owners::{OwnerCheck, OwnerNotes, place_waiting};

impl Session {
    /// Where a statement of the open transaction notes what it does to the owners of rows; `None`
    /// where no table has owners.
    pub(super) fn owner_notes(&self) -> Option<&OwnerNotes> {
        let open = self.transaction.as_ref()?;
        let graph = self.instance().owner_graph();
        let is_checked = self.state.settings().foreign_key_checks;
        open.owners
            .begin_statement(graph, is_checked, self.is_forgetting);
        (!open.owners.is_idle()).then_some(&open.owners)
    }

    /// Every row whose owners the open transaction has changed has one, or may be without.
    pub(super) fn check_owners(&self) -> SqlResult<()> {
        let Some(open) = self
            .transaction
            .as_ref()
            .filter(|open| !open.owners.is_empty())
        else {
            return Ok(());
        };
        let Some(graph) = self.instance().owner_graph() else {
            return Ok(());
        };
        let settings = self.state.settings();
        let waiter = self.state.waiter.as_ref();
        let mut check = OwnerCheck::new(&open.txn, graph, waiter, &settings.time_zone);
        if self.is_forgetting {
            // Between batches a row may be there without its owner.
            check.let_wait();
        }
        check.check(&open.owners)
    }

    /// Looks at rows that wait for their owners, if checks of foreign keys were turned on since. Not
    /// done is not an error: they go on waiting, and EXPLAIN COMPLIANCE counts them.
    pub(super) fn place_waiting_rows(&mut self) {
        if !std::mem::take(&mut self.places_rows) {
            return;
        }
        let Some(graph) = self.instance().owner_graph() else {
            return;
        };
        let waiter: std::sync::Arc<dyn manxdb_txn::Waiter> = self.state.waiter.clone();
        let zone = self.state.settings().time_zone.clone();
        if let Err(error) = place_waiting(&self.instance().store, &graph, &waiter, &zone) {
            tracing::warn!(%error, "rows go on waiting for their owners");
        }
    }
}
