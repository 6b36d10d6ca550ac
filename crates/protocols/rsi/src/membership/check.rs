//! What is true of a recovery coordinator between two steps.

use manxdb_core::check::ensure;

use crate::membership::{Phase, RecoveryCoordinator};

impl RecoveryCoordinator {
    /// What is true of it between two steps.
    ///
    /// # Errors
    /// The invariant that is broken.
    pub fn check(&self) -> Result<(), String> {
        let threads = self.ward.client_slots.threads();
        ensure(self.watches.len() == usize::from(threads), || {
            format!("{} owners are watched of {threads}", self.watches.len())
        })?;
        ensure(self.pending.len() as u64 <= self.map.version(), || {
            format!(
                "{} events are not noted of {}",
                self.pending.len(),
                self.map.version()
            )
        })?;
        ensure(self.map.version() >= self.ward.chart.map.version(), || {
            "events are not forgotten".to_owned()
        })?;
        ensure(self.filling.is_none() || self.term.is_some(), || {
            "only who leads copies regions".to_owned()
        })?;
        ensure(self.turn < threads.max(1), || {
            format!("thread {} was looked after of {threads}", self.turn)
        })?;
        ensure(self.opened <= self.map.epoch(), || {
            format!("{} epochs are opened of {}", self.opened, self.map.epoch())
        })?;
        ensure(
            !matches!(self.phase, Phase::Filling(..)) || self.filling.is_some(),
            || "who copies a region has a slot".to_owned(),
        )?;
        if let Some(filling) = &self.filling {
            filling.check(threads)?;
        }
        if let Phase::Opening(opening) = &self.phase {
            opening.check(&self.pending)?;
        }
        ensure(self.term.is_some() || !self.phase.leads(), || {
            format!("only who leads recovers and restores: {:?}", self.phase)
        })?;
        self.map.check()
    }
}

impl Phase {
    /// Whether only who leads has it.
    fn leads(&self) -> bool {
        matches!(
            self,
            Self::Succeeding
                | Self::Naming
                | Self::ShuttingOut(_)
                | Self::Recovering(..)
                | Self::Opening(_)
                | Self::Beginning(..)
                | Self::Filling(..)
        )
    }
}
