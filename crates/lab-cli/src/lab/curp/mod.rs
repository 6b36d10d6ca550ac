//! Experiments with clusters that replicate in one round trip, in processes of this machine, beside one
//! server without replication, the same cluster without its witnesses, and redis-server.
//!
//! | question | answered in |
//! |---|---|
//! | what decides a run, and what is kept of it | [`trial`] |
//! | how a cluster's processes are started and watched | [`cluster`] |
//! | why an XDP program harms nobody | [`namespace`] |
//! | who asks | [`load`] |
//! | how a trial is run | [`run`] |
//! | the experiments, their claims and figures | [`latency`], [`throughput`], [`skew`] |
//! | what claims and figures have in common | [`found`] |
//! | which outcomes can be true | [`plausible`] |

mod cluster;
mod found;
mod latency;
mod load;
pub(super) mod namespace;
mod plausible;
pub(super) mod run;
mod skew;
mod throughput;
pub(super) mod trial;

use manxdb_lab::experiment::data::{Data, Record};
use manxdb_lab::experiment::{Design, Experiment, ExperimentKind, Falsification};
use manxdb_lab::trial_error::TrialError;

pub(super) use self::found::REPETITIONS_MIN;
pub(super) use self::load::spread;
use self::trial::{Load, Measure, Outcome, Trial};
use super::columns::{Column, cells, names};

/// The experiments, in the order of the list.
pub static ALL: [&dyn Experiment; 3] = [
    &latency::EXPERIMENT,
    &throughput::EXPERIMENT,
    &skew::EXPERIMENT,
];

/// Clusters that replicate in one round trip, in processes.
#[derive(Debug, Clone, PartialEq)]
pub struct Replicating;

/// A number of a measure.
type MeasureNumber = fn(&Measure) -> f64;

/// Columns of `data.csv` for a load.
#[allow(clippy::cast_precision_loss)] // counts of a run are far below 2^53
const NUMBERS: [Column<Measure>; 24] = [
    ("commands", |one| one.commands as f64),
    ("per_second", Measure::rate),
    ("mean_us", |one| one.all.mean),
    ("p50_us", |one| one.all.p50),
    ("p99_us", |one| one.all.p99),
    ("p999_us", |one| one.all.p999),
    ("updates", |one| one.updates.count as f64),
    ("update_mean_us", |one| one.updates.mean),
    ("update_p50_us", |one| one.updates.p50),
    ("update_p99_us", |one| one.updates.p99),
    ("fast", |one| one.ways.fast as f64),
    ("reads", |one| one.ways.reads as f64),
    ("conflicts", |one| one.ways.conflicts as f64),
    ("synced", |one| one.ways.synced as f64),
    ("retries", |one| one.ways.retries as f64),
    ("master_cpu_s", |one| one.cpu.master),
    ("backups_cpu_s", |one| one.cpu.backups),
    ("witnesses_cpu_s", |one| one.cpu.witnesses),
    ("client_cpu_s", |one| one.cpu.client),
    ("cluster_cpu_us_each", Measure::cluster_us),
    ("messages_each", Measure::messages_each),
    ("bytes_each", Measure::bytes_each),
    ("fast_share", Measure::fast_share),
    ("recent_share", Measure::recent_share),
];

impl ExperimentKind for Replicating {
    type Trial = Trial;
    type Outcome = Outcome;

    const PART: &'static str = "curp";
    const SIMULATED: bool = false;

    fn seed(trial: &Trial) -> u64 {
        trial.seed
    }

    fn reseeded(trial: &Trial, seed: u64) -> Trial {
        Trial {
            seed,
            ..trial.clone()
        }
    }

    fn run(trial: &Trial, progress: &mut dyn FnMut(f64)) -> Result<Outcome, TrialError> {
        let outcome = run::run(trial).map_err(TrialError::Failed)?;
        progress(1.0);
        Ok(outcome)
    }

    fn columns() -> String {
        let columns = "system,lan_us,theta,clients,seed,lacking,fdatasync_ms,load";
        format!("{columns}{}", names(&NUMBERS))
    }

    /// One row for each load, or one that says what is lacking.
    fn row(record: &Record<Self>) -> String {
        let Record { trial, outcome } = record;
        let lacking = outcome.lacking.as_deref().unwrap_or_default();
        let fdatasync = outcome.fdatasync_ms.map(|ms| ms.to_string());
        let head = format!(
            "{},{},{},{},{},{},{}",
            trial.system.title(),
            trial.lan_us,
            f64::from(trial.theta) / 100.0,
            trial.clients,
            trial.seed,
            lacking.replace([',', '\n'], ";"),
            fdatasync.unwrap_or_default()
        );
        if outcome.measures.is_empty() {
            return format!("{head},{}", ",".repeat(NUMBERS.len()));
        }
        let row = |measure: &Measure| {
            let load = measure.load.title();
            format!("{head},{load}{}", cells(&NUMBERS, measure))
        };
        let rows: Vec<String> = outcome.measures.iter().map(row).collect();
        rows.join("\n")
    }

    fn implausible(trial: &Trial, outcome: &Outcome) -> Result<(), String> {
        plausible::check(trial, outcome)
    }

    fn samples(outcome: &Outcome) -> (u64, u64) {
        plausible::samples(outcome)
    }

    fn system(trial: &Trial) -> String {
        trial.system.title()
    }

    fn falsify(_: &Trial, outcome: &mut Outcome, how: Falsification) {
        plausible::falsify(outcome, how);
    }

    fn details(_: &Design<Self>, data: &Data<Self>) -> String {
        let mut text = found::table(data);
        text.push_str(&found::lacking(data));
        text.push_str(UNLIKE);
        text
    }
}

/// A trial, for people.
fn label(_: &Design<Replicating>, trial: &Trial) -> String {
    let loads: Vec<&str> = trial.loads.iter().map(|load| load.title()).collect();
    let theta = if trial.loads.contains(&Load::Set) {
        String::new()
    } else {
        format!(", Zipf {:.2}", f64::from(trial.theta) / 100.0)
    };
    format!(
        "{}, {}{theta}, {} clients, {} µs",
        trial.system.title(),
        loads.join(" and "),
        trial.clients,
        trial.lan_us
    )
}

const UNLIKE: &str = "
## How to read this

- All processes and the client share this machine's cores, and what else runs on it: rates and latencies \
say as much about that. Counts (round trips, messages, bytes, ways of completion) do not depend on it, and \
CPU of a command little. Fewer than three repetitions judge no time and no rate.
- *unreplicated* is the same program with f = 0: one server, no backup, no witness; what it has executed is \
synced at once, so the master completes its updates, in one round trip. *synced* is the same \
cluster as CURP's, whose client records at no witness, so that the master syncs before it answers: two \
round trips, as in ordinary primary-backup replication. Durability of both and of CURP: `memory`; that of \
redis-server with AOF always: one disk.
- Clients are closed loops in one process, beside one CURP client that records by itself, as a proxy with as \
many connections does. Values have 100 bytes, keys 16.
- CPU of the cluster is of master, backups and witnesses, of all their threads, without the coordinator and \
the client. An XDP program runs in the context of who sends the packet, so the CPU of `xdp-generic` is in \
the client's and the master's, and none in the witness's process.
- With 250 µs, each message waits as long before it goes on, the client's datagrams when they are sent and \
when they are answered: a data plane holds nothing.
- `xdp-generic` is the data plane behind the driver, on the loopback interface of a network namespace. \
`xdp` needs a driver with native XDP, which the loopback interface has not; the experiments `argus-witness` \
and `argus-tail` have it on a veth.
";
