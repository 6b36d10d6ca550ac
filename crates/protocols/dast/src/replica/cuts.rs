//! Up to where everything is known (DAST §4.2's clock exchange, through the region's manager).
//!
//! A cut says that all clocks of the region have passed it, and how many local transactions each
//! coordinator had stamped for this shard by then. When all of those are here, nothing up to the
//! cut can appear any more: the manager sends each replica every cross-region transaction before
//! a cut that passes it, and gives later ones later timestamps.

use std::collections::{BTreeMap, VecDeque};

use manxdb_core::NodeId;
use manxdb_core::check::ensure;

use crate::message::Cut;
use crate::timestamp::Timestamp;

/// Cuts told, and what has come of what they count.
#[derive(Debug, Default)]
pub(super) struct Cuts {
    told: VecDeque<Cut>,
    received: BTreeMap<NodeId, u64>,
    /// Counts of the first cut told that have not been received.
    missing: BTreeMap<NodeId, u64>,
    safe: Timestamp,
    closed: Timestamp,
    #[cfg(feature = "mutants")]
    mutant: Option<crate::mutants::Mutant>,
}

impl Cuts {
    /// Takes a cut; cuts of one manager come in order.
    pub(super) fn told(&mut self, cut: Cut) {
        self.told.push_back(cut);
    }

    /// Applies all cuts that hold by now; the last of them. `counted`: nodes of which counts are
    /// believed.
    pub(super) fn apply(&mut self, counted: impl Fn(NodeId) -> bool) -> Option<Cut> {
        let mut applied = None;
        while let Some(cut) = self.told.front() {
            self.missing.extend(cut.stamped.iter().copied());
            let received = &self.received;
            self.missing.retain(|node, number| {
                counted(*node) && received.get(node).copied().unwrap_or(0) < *number
            });
            if !self.missing.is_empty() && !self.believes_blindly() {
                break;
            }
            let Some(cut) = self.told.pop_front() else {
                break;
            };
            self.safe = self.safe.max(cut.upto);
            self.closed = self.closed.max(cut.closed);
            applied = Some(cut);
        }
        applied
    }

    #[allow(clippy::unused_self)] // a planted defect asks
    fn believes_blindly(&self) -> bool {
        #[cfg(feature = "mutants")]
        if self.mutant == Some(crate::mutants::Mutant::CutWithoutCounts) {
            return true;
        }
        false
    }

    /// Everything up to this is known.
    pub(super) fn safe(&self) -> Timestamp {
        self.safe
    }

    /// As [`Cuts::safe`], unless a defect is planted.
    pub(super) fn safe_to_run(&self) -> Timestamp {
        #[cfg(feature = "mutants")]
        if self.mutant == Some(crate::mutants::Mutant::NoClockGate) {
            return Timestamp::MAX;
        }
        self.safe
    }

    /// Plants a defect.
    #[cfg(feature = "mutants")]
    pub(super) fn plant(&mut self, mutant: Option<crate::mutants::Mutant>) {
        self.mutant = mutant;
    }

    /// No region stamps below this any more.
    pub(super) fn closed(&self) -> Timestamp {
        self.closed
    }

    /// Checks that what is applied was told, and that what is not waits for something.
    ///
    /// # Errors
    /// The invariant that is broken, in words.
    pub(super) fn check(&self) -> Result<(), String> {
        ensure(self.missing.is_empty() || !self.told.is_empty(), || {
            format!("K2: no cut waits for {:?}", self.missing)
        })?;
        ensure(self.closed <= self.safe, || {
            let (closed, safe) = (self.closed, self.safe);
            format!("K1: regions are closed up to {closed:?}, this one is safe up to {safe:?}")
        })
    }

    /// Notes a coordinator's `number`th local transaction; false: it was here already, or one
    /// before it is not.
    pub(super) fn receive(&mut self, from: NodeId, number: u64) -> bool {
        let received = self.received.entry(from).or_default();
        if number != *received + 1 {
            return false;
        }
        *received = number;
        true
    }

    /// Local transactions received of a coordinator.
    pub(super) fn received(&self, from: NodeId) -> u64 {
        self.received.get(&from).copied().unwrap_or(0)
    }

    /// What the next cut waits for, for people.
    pub(super) fn describe(&self) -> String {
        format!(
            "{} cuts wait for {:?} of {:?}",
            self.told.len(),
            self.missing,
            self.received
        )
    }

    /// By coordinator, for a new replica.
    pub(super) fn all_received(&self) -> Vec<(NodeId, u64)> {
        self.received
            .iter()
            .map(|(node, number)| (*node, *number))
            .collect()
    }

    /// A coordinator starts counting afresh.
    pub(super) fn forget(&mut self, node: NodeId) {
        self.received.remove(&node);
        self.missing.remove(&node);
    }

    /// Becomes what a peer was, but for the cuts that came directly.
    pub(super) fn install(&mut self, safe: Timestamp, received: Vec<(NodeId, u64)>) {
        self.safe = safe;
        self.received = received.into_iter().collect();
        self.missing.clear();
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        *self = Self {
            #[cfg(feature = "mutants")]
            mutant: self.mutant,
            ..Self::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(upto: u64, stamped: &[(u32, u64)]) -> Cut {
        Cut {
            upto: Timestamp::at(upto, 0),
            stamped: stamped
                .iter()
                .map(|(node, number)| (NodeId(*node), *number))
                .collect(),
            reading: upto,
            correction: 0,
            position: Timestamp::ZERO,
            everywhere: Timestamp::ZERO,
            closed: Timestamp::ZERO,
            bound: Timestamp::MAX,
            crossed: Vec::new(),
        }
    }

    #[test]
    fn a_cut_holds_once_all_that_it_counts_is_here() {
        let counted = |node: NodeId| node == NodeId(1) || node == NodeId(2);
        let mut cuts = Cuts::default();
        cuts.told(cut(10, &[(1, 2)]));
        cuts.told(cut(20, &[]));
        cuts.apply(counted);
        assert_eq!(cuts.safe(), Timestamp::ZERO);
        assert!(cuts.receive(NodeId(1), 1));
        assert!(!cuts.receive(NodeId(1), 1), "it was here already");
        cuts.apply(counted);
        assert_eq!(cuts.safe(), Timestamp::ZERO);
        assert!(cuts.receive(NodeId(1), 2));
        cuts.apply(counted);
        assert_eq!(cuts.safe(), Timestamp::at(20, 0));
    }

    #[test]
    fn a_region_that_is_closed_beyond_what_is_known_is_found() {
        let mut cuts = Cuts::default();
        cuts.told(cut(10, &[]));
        cuts.apply(|_| true);
        assert_eq!(cuts.check(), Ok(()));
        cuts.closed = Timestamp::at(11, 0);
        assert!(cuts.check().is_err_and(|broken| broken.contains("K1")));
    }

    #[test]
    fn a_node_that_is_out_is_not_waited_for() {
        let mut cuts = Cuts::default();
        cuts.told(cut(10, &[(1, 2)]));
        cuts.apply(|node| node == NodeId(2));
        assert_eq!(cuts.safe(), Timestamp::at(10, 0));
    }
}
