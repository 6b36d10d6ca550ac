//! How large the experiments about transactions are.

use super::Scale;
use crate::systems::SystemName;
use crate::trial::{Cpu, PaymentSums, Trial, Warehouse, Workload};

impl Scale {
    /// Repetitions with seeds of their own: the paper has five.
    fn seeds(self) -> u64 {
        self.pick(1, 3, 5)
    }

    /// A trial of this size, of payments with a tenth of cross-region ones, to be changed.
    ///
    /// The paper's trials last 15 s, of which seconds 1 to 10 count; what is after that is not
    /// simulated.
    pub(super) fn trial(self) -> Trial {
        let (regions, shards_per_region) = self.pick((3, 2), (3, 5), (10, 10));
        let (warm_up_ms, measured_ms) = self.pick((400, 600), (500, 2_500), (1_000, 9_000));
        Trial {
            system: SystemName::Dast,
            regions,
            shards_per_region,
            clients_per_shard: 1,
            outstanding: 1,
            workload: Workload::Payment { cross_region: 0.1 },
            warehouse: self.pick(Warehouse::Tiny, Warehouse::Full, Warehouse::Full),
            payment_sums: PaymentSums::Published,
            wan_jitter_ms: 0,
            cpu: Cpu::Modelled,
            warm_up_ms,
            measured_ms,
            seed: 0,
        }
    }

    /// Each of the trials with each system and with each seed from `seed` on.
    pub(super) fn repeated(self, seed: u64, trials: Vec<Trial>) -> Vec<Trial> {
        self.repeated_of(&SystemName::COMPARED, seed, trials)
    }

    /// Each of the trials with each of these systems and with each seed from `seed` on.
    pub(super) fn repeated_of(
        self,
        systems: &[SystemName],
        seed: u64,
        trials: Vec<Trial>,
    ) -> Vec<Trial> {
        let of_system = systems.iter().copied().flat_map(|system| {
            let trials = trials.iter().cloned();
            trials.map(move |trial| Trial { system, ..trial })
        });
        let repeated = of_system.flat_map(|trial| {
            let seeds = (0..self.seeds()).map(move |number| seed.wrapping_add(number));
            seeds.map(move |seed| Trial {
                seed,
                ..trial.clone()
            })
        });
        repeated.collect()
    }
}
