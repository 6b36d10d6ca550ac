//! Keys of people who were forgotten are erased, and rows from before there was a vault are sealed.

use std::sync::Arc;

use manxdb_storage::Durability;
use manxdb_txn::{CommitPath, IsolationLevel, Transaction, TxnId, Waiter};
use manxdb_vault::Vault;

use super::accounts::{Privileges, access};
use super::instance::{Instance, NoWait};
use super::session::Session;
use crate::catalog::Sealing;
use crate::error::{SqlError, SqlResult};
use crate::statement::StatementOutcome;
use crate::statement::owners::audit;
use crate::statement::owners::erasure::{self, EraseOrder, SealingState};
use crate::statement::owners::seal_all;

/// What seals rows, under a host's vault. Where rows are sealed and there is no vault, nothing of owned
/// tables is written: it would be plain.
///
/// # Errors
/// Storage.
pub(super) fn sealing_of(
    path: &Arc<dyn CommitPath>,
    vault: Option<Arc<Vault>>,
) -> SqlResult<Sealing> {
    let txn = Transaction::begin(
        Arc::clone(path),
        TxnId(0),
        IsolationLevel::Serializable,
        Arc::new(NoWait),
    );
    let state = erasure::sealing(&txn)?;
    match vault {
        Some(vault) => {
            if state == SealingState::Never {
                erasure::set_sealing(&txn, SealingState::Begun)?;
                txn.commit(Durability::Sync)?;
            }
            Ok(Sealing::by(Some(vault)))
        }
        None if state == SealingState::Never => Ok(Sealing::default()),
        None => {
            let reason = "rows are sealed, and the server was started without the vault";
            Ok(Sealing::by(Some(Arc::new(Vault::not_open(reason)))))
        }
    }
}

impl Instance {
    /// Erases keys as a committed transaction has ordered.
    ///
    /// # Errors
    /// 51005 when the vault cannot: the order stays, and is carried out later.
    pub(super) fn carry_out(&self, orders: &[EraseOrder]) -> SqlResult<()> {
        let Some(vault) = self.sealing.vault() else {
            return Ok(());
        };
        for order in orders {
            vault.erase(&order.ids).map_err(|error| {
                let text = format!(
                    "Rows are deleted, and keys are not erased yet: {error}; the server tries again \
                     by itself"
                );
                SqlError::new(51005, "HY000", text)
            })?;
            let event = self.erased_event(order.request, order.ids.len());
            self.in_transaction(|txn| {
                erasure::done(txn, order)?;
                audit::append_unlocked(txn, &event)
            })?;
        }
        if orders.is_empty() {
            return Ok(());
        }
        self.mirror_audit()
    }

    /// Carries out orders that a crash, or a disk that failed, has left.
    ///
    /// # Errors
    /// As [`Instance::carry_out`]; storage.
    pub(super) fn redo_erasures(&self) -> SqlResult<()> {
        if self.sealing.vault().is_none() {
            return Ok(());
        }
        loop {
            let txn = self.store.begin();
            txn.declare_read_only();
            let orders = erasure::open_orders(&txn)?;
            drop(txn);
            if orders.is_empty() {
                return Ok(());
            }
            self.carry_out(&orders)?;
        }
    }

    /// What a server with a vault does now and then: makes keys ahead, and once, when rows were there before
    /// the vault, seals them.
    ///
    /// # Errors
    /// Storage; 51005.
    pub fn tend_vault(&self) -> SqlResult<()> {
        let Some(vault) = self.sealing.vault() else {
            return Ok(());
        };
        let Some(graph) = self.owner_graph() else {
            return Ok(());
        };
        vault
            .make_ahead()
            .map_err(|error| SqlError::new(51005, "HY000", error.to_string()))?;
        if self.in_transaction(erasure::sealing)? == SealingState::All {
            return Ok(());
        }
        let waiter: Arc<dyn Waiter> = Arc::new(NoWait);
        seal_all(&self.store, &graph, &waiter, &graph.sealed_in_order())?;
        self.in_transaction(|txn| erasure::set_sealing(txn, SealingState::All))
    }
}

impl Session {
    /// GDPR ROTATE MASTER KEY: wraps all keys by the newest master key that its source gives, while rows are
    /// read and written. Needs the privilege GDPR on the server.
    ///
    /// # Errors
    /// 1227; 51005 when there is no vault, no master key, or no newer one; the vault's disk.
    pub(super) fn rotate_master_key(&mut self) -> SqlResult<StatementOutcome> {
        access::require_global(&self.state.account(), Privileges::GDPR, "GDPR")?;
        let refuse = |reason: String| {
            SqlError::new(51005, "HY000", format!("The master key stays: {reason}"))
        };
        let Some(vault) = self.instance().sealing.vault() else {
            return Err(refuse("this server has no vault".to_string()));
        };
        let generation = vault.rotate().map_err(|error| refuse(error.to_string()))?;
        let by = self.state.identity.borrow().clone();
        self.instance().audit_rotation(generation, &by)?;
        tracing::info!(generation, "the master key was rotated");
        Ok(StatementOutcome {
            info: format!("master key generation {generation}"),
            ..StatementOutcome::default()
        })
    }
}
