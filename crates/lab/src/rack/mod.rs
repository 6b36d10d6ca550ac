//! Checkouts on the eight machines of "The End of Slow Networks" (Binnig et al., §4.3), in virtual
//! time: what their published prices of cycles and bytes add up to.
//!
//! Four machines have clients, three have products, one gives out timestamps or runs the transaction
//! manager. A client reads three products, takes one of each out of stock and inserts an order with
//! three lines, again and again. What it sends is what its protocol sends, message by message (§4.1
//! and §4.2); each message waits in line for the processors and links that it needs. Nobody ever
//! wants what somebody else writes: of a million products hardly any two clients do.
//!
//! | question | answered in |
//! |---|---|
//! | what machines, messages and operations cost | [`costs`] |
//! | what a protocol sends for a checkout | [`script`] |
//! | who waits for whom | [`run`] |

pub mod costs;
mod run;
mod script;

use serde::{Deserialize, Serialize};

use crate::trial_error::TrialError;

/// A system of the paper's Figure 6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum System {
    /// One-sided operations alone.
    Rsi,
    /// Two-phase commit, messages over InfiniBand.
    TwoSided,
    /// Two-phase commit over Ethernet of a gigabit a second.
    TradEthernet,
    /// Two-phase commit over sockets on InfiniBand.
    TradIpoib,
}

impl System {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Rsi,
        Self::TwoSided,
        Self::TradEthernet,
        Self::TradIpoib,
    ];
}

/// All that decides a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// Which system.
    pub system: System,
    /// Clients, on their machines in turn, with a core each.
    pub clients: u16,
    /// Checkouts that are measured; a tenth as many go before.
    pub checkouts: u32,
    /// Decides where products are.
    pub seed: u64,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RackOutcome {
    /// Checkouts that were measured.
    pub checkouts: u64,
    /// In so much virtual time.
    pub seconds: f64,
    /// Of a checkout, in microseconds.
    pub p50_us: f64,
    /// Of a checkout, in microseconds.
    pub p99_us: f64,
    /// Seconds of clients' cores.
    pub client_cpu: f64,
    /// Seconds of servers' processors.
    pub server_cpu: f64,
    /// What was busy for the largest share of the time.
    pub busiest: String,
    /// That share, from 0 to 1.
    pub busy: f64,
    /// Simulated events, the first tenth's too.
    pub events: u64,
}

impl Trial {
    /// The most clients.
    pub const CLIENTS_MAX: u16 = 1_000;

    /// The shortest time of a checkout, in microseconds: its phases' messages, one after another.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // some microseconds
    pub fn floor_us(&self) -> f64 {
        let one_way = costs::Prices::of(self.system).one_way;
        let delays = match self.system {
            // Snapshot, reads, locks, writes: four round trips.
            System::Rsi => 8,
            // Reads, request, prepare and votes, the answer.
            System::TwoSided | System::TradEthernet | System::TradIpoib => 6,
        };
        (one_way * delays).0 as f64 / 1e3
    }

    /// Checkouts a second that the network carries at the most, as the paper counts their bytes.
    #[must_use]
    pub fn rate_max(&self) -> f64 {
        costs::Prices::of(self.system).checkouts_max(script::COUNTED_BYTES)
    }

    /// Runs it; `progress` hears which share of it is done.
    ///
    /// # Errors
    /// [`TrialError::Unfit`].
    pub fn run(&self, progress: &mut dyn FnMut(f64)) -> Result<RackOutcome, TrialError> {
        let unfit = |what, value: String, allowed| TrialError::Unfit {
            what,
            value,
            allowed,
        };
        if self.clients == 0 || self.clients > Self::CLIENTS_MAX {
            let clients = self.clients.to_string();
            return Err(unfit("the number of clients", clients, "1 to 1000"));
        }
        if self.checkouts == 0 {
            return Err(unfit("the number of checkouts", "0".into(), "at least 1"));
        }
        Ok(run::Run::new(self).run(progress))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(system: System, clients: u16) -> RackOutcome {
        let trial = Trial {
            system,
            clients,
            checkouts: 3_000,
            seed: 1,
        };
        trial.run(&mut |_| {}).unwrap()
    }

    #[allow(clippy::cast_precision_loss)]
    fn rate(outcome: &RackOutcome) -> f64 {
        outcome.checkouts as f64 / outcome.seconds
    }

    #[test]
    fn equal_trials_have_equal_outcomes() {
        for system in System::ALL {
            assert_eq!(outcome(system, 7), outcome(system, 7));
        }
    }

    #[test]
    fn one_client_alone_waits_for_delays_and_its_own_work() {
        // Four round trips of 2 µs, before each of which a client posts operations of 450 cycles: 1,
        // 3, 3, 7, and one to publish.
        let alone = outcome(System::Rsi, 1);
        assert!((11.0..12.5).contains(&alone.p50_us), "{alone:?}");
        // Six delays of 30 µs: two for reads, one to commit, two to prepare, one to hear of it; the
        // rest are cycles, and bytes at 0.12 GB/s.
        let alone = outcome(System::TradEthernet, 1);
        assert!(alone.p50_us > 6.0 * 30.0, "{alone:?}");
    }

    #[test]
    fn a_full_transaction_manager_is_what_bounds_two_phase_commit() {
        let full = outcome(System::TradIpoib, 70);
        assert!(
            full.busy > 0.95 && full.busiest.contains("manager"),
            "{full:?}"
        );
        let more = outcome(System::TradIpoib, 140);
        assert!(rate(&more) < 1.05 * rate(&full));
        let wire = outcome(System::TradEthernet, 140);
        assert!(
            wire.busy > 0.95 && wire.busiest.contains("link"),
            "{wire:?}"
        );
    }

    #[test]
    fn servers_of_one_sided_memory_do_nothing() {
        let found = outcome(System::Rsi, 10);
        assert!(found.server_cpu < 1e-12, "{found:?}");
        // Three times the clients, until the network bounds them.
        assert!(rate(&outcome(System::Rsi, 30)) > 1.8 * rate(&found));
        assert!(outcome(System::TwoSided, 10).server_cpu > 0.0);
    }

    #[test]
    fn no_system_is_faster_than_the_network() {
        for system in [System::Rsi, System::TwoSided, System::TradIpoib] {
            let trial = Trial {
                system,
                clients: 200,
                checkouts: 3_000,
                seed: 1,
            };
            let found = outcome(system, 200);
            assert!(rate(&found) <= trial.rate_max(), "{system:?} {found:?}");
            assert!(found.p50_us >= trial.floor_us(), "{system:?} {found:?}");
        }
        let bound = outcome(System::Rsi, 70);
        assert_eq!(bound.busiest, "the network", "{bound:?}");
        assert!(bound.busy > 0.95 && rate(&bound) < 2.4e6, "{bound:?}");
    }

    #[test]
    fn sockets_over_infiniband_serve_fewer_than_over_ethernet() {
        let rate = |system| rate(&outcome(system, 70));
        assert!(rate(System::TradEthernet) > rate(System::TradIpoib));
    }

    #[test]
    fn trials_that_cannot_be_are_refused() {
        let trial = Trial {
            system: System::Rsi,
            clients: 0,
            checkouts: 1,
            seed: 1,
        };
        let said = |trial: Trial| trial.run(&mut |_| {}).unwrap_err().to_string();
        assert!(said(trial).contains("clients is 0; it must be 1 to 1000"));
        let none = Trial {
            clients: 1,
            checkouts: 0,
            ..trial
        };
        assert!(said(none).contains("checkouts is 0"));
    }
}
