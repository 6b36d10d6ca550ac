//! Clusters under a workload and faults, all drawn from a seed, run in virtual time and judged.
//!
//! | question | answered in |
//! |---|---|
//! | which cluster, which workload, how good the network and the clocks | [`setting`] |
//! | what goes wrong, and when | [`plan`] |
//! | what must be true at the end | [`judge`] |
//!
//! A run that fails is a [`Case`]: a seed and a plan of faults. `manxdb_sim::hunt` cuts the plan
//! down and prints both on one line.

pub mod judge;
pub mod plan;
pub mod setting;

use manxdb_core::Nanos;
use manxdb_dast::Options;
use manxdb_sim::hunt::Case;
use manxdb_sim::trace::Record;
use manxdb_sim::{Fault, SimTime, Transport, World, WorldOptions};

use crate::append::{AppendLoad, shared};
use crate::candidate::ReliableSystem;
use crate::dast::{DastSystem, place};
use crate::load::{Load, LoadOptions};

pub use self::setting::Setting;

/// How often a run looks whether the cluster has come to rest.
const LOOK_EVERY: Nanos = Nanos::from_millis(100);

/// What a run came to that went well.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ran {
    /// Equal for equal runs.
    pub digest: u64,
    /// Virtual time.
    pub lasted: Nanos,
    /// Events of the simulator.
    pub events: u64,
    /// Calls answered.
    pub calls: u64,
}

/// The run of a seed with the faults of a plan, under the setting that the seed draws.
///
/// # Errors
/// Everything that is wrong, in words.
pub fn of_case(case: &Case) -> Result<Ran, String> {
    Setting::of_seed(case.seed).run(case, Options::default())
}

/// A cluster, and the workload that asks it.
pub type Begun = (World<ReliableSystem<DastSystem>>, Load<AppendLoad>);

impl Setting {
    /// Runs a case under this setting and judges it.
    ///
    /// # Errors
    /// Everything that is wrong, in words.
    pub fn run(&self, case: &Case, options: Options) -> Result<Ran, String> {
        let (mut world, mut load) = self.begin(case.seed, options, Record::Nothing);
        world.schedule_all(&case.plan);
        let ends = case.plan.faults.iter().map(Fault::ends);
        let healed = ends.max().unwrap_or_default().max(self.load_until);
        let mut until = healed;
        loop {
            let run = world.run_until(&mut load, until);
            run.map_err(|failure| failure.to_string())?;
            if judge::is_at_rest(&world, &load) || until >= healed + self.rest_within {
                break;
            }
            until = until + LOOK_EVERY;
        }
        judge::judge(&world, &load, self)?;
        Ok(Ran {
            digest: world.digest(),
            lasted: world.now().since(SimTime::ZERO),
            events: world.counters().events,
            calls: load.made().len() as u64,
        })
    }

    /// The cluster and its workload at the start.
    #[must_use]
    pub fn begin(&self, seed: u64, options: Options, record: Record) -> Begun {
        let options = Options {
            keeps_order: true,
            client_patience: self.client_patience,
            ..options
        };
        let shared = shared(self.topology, options);
        let (places, clients) = place(shared.topology, self.clients_per_shard, self.lan, self.wan);
        let mut world_options = WorldOptions::new(seed, places);
        world_options.transport = Transport::Datagram;
        world_options.clocks = self.clocks;
        world_options.cost = self.cost.clone();
        world_options.record = record;
        let world = World::new(ReliableSystem(DastSystem::new(shared)), world_options);
        let load_options = LoadOptions {
            clients,
            outstanding: self.outstanding,
            until: self.load_until,
            explain: false,
        };
        let lists = AppendLoad::new(self.topology, self.lists, self.level, seed);
        (world, Load::new(lists, load_options))
    }
}
