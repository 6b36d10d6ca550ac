//! What decides a run: in processes of this machine, or on the machines of the published experiment.

use manxdb_lab::rack;
use manxdb_lab::trial_error::TrialError;
use serde::{Deserialize, Serialize};

use crate::bench::checkout::{Outcome, measure};
use crate::cli::CheckoutShape;

/// What decides a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trial {
    /// Processes, measured by a clock.
    Measured(CheckoutShape),
    /// Eight machines, in virtual time.
    Simulated(rack::Trial),
}

impl Trial {
    /// Customers.
    pub fn clients(&self) -> u16 {
        match self {
            Self::Measured(shape) => shape.clients,
            Self::Simulated(trial) => trial.clients,
        }
    }

    /// Its seed.
    pub fn seed(&self) -> u64 {
        match self {
            Self::Measured(shape) => shape.seed,
            Self::Simulated(trial) => trial.seed,
        }
    }

    /// The same with another seed.
    pub fn reseeded(self, seed: u64) -> Self {
        match self {
            Self::Measured(shape) => Self::Measured(CheckoutShape { seed, ..shape }),
            Self::Simulated(trial) => Self::Simulated(rack::Trial { seed, ..trial }),
        }
    }

    /// Runs it; `progress` hears which share of it is done.
    ///
    /// # Errors
    /// [`TrialError`].
    pub fn run(&self, progress: &mut dyn FnMut(f64)) -> Result<Outcome, TrialError> {
        let outcome = match self {
            Self::Measured(shape) => measure(shape).map_err(TrialError::Failed)?,
            Self::Simulated(trial) => {
                let found = trial.run(progress)?;
                Outcome {
                    committed: found.checkouts,
                    aborted: 0,
                    seconds: found.seconds,
                    client_cpu: found.client_cpu,
                    server_cpu: found.server_cpu,
                    p50_us: found.p50_us,
                    p99_us: found.p99_us,
                }
            }
        };
        progress(1.0);
        Ok(outcome)
    }

    /// Servers, products, those that are bought, versions, copies of logs: columns of `data.csv`.
    pub fn sizes(&self) -> [String; 5] {
        match self {
            Self::Measured(shape) => [
                shape.servers.to_string(),
                shape.products.to_string(),
                shape.hot.unwrap_or(shape.products).to_string(),
                shape.versions.to_string(),
                shape.logs.to_string(),
            ],
            // One version, no log, and nobody wants what somebody else writes.
            Self::Simulated(_) => [
                rack::costs::PRODUCT_MACHINES.to_string(),
                String::new(),
                String::new(),
                "1".to_owned(),
                "0".to_owned(),
            ],
        }
    }
}
