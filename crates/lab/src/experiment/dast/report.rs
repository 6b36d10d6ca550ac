//! What reports about transactions say behind their claims.

use std::fmt::Write as _;

use super::{At, Data, Experiment, Record, busiest_role, each, series};
use crate::systems::SystemName;
use crate::trial::{Cpu, PaymentSums, Trial, Warehouse};

/// What is unlike the paper's runs in all experiments.
const UNLIKE: &str = "\
- Everything is simulated: servers are queues with the prices of `manxdb_sim::CostModel`, links have \
the delays given and keep their order, clocks are right.
- A server works on one thing at a time, in the order of arrival, like the artifact's processes, \
whose handlers share one lock. Clients cost nothing.
- The artifact's DAST does not wait for its peers' clocks before it executes and hardly writes; this \
one does both, so its local transactions take 2.5 to 5 ms more, and its order is checked by other tests.
- A transaction's latency counts when it is answered after the warm-up.
";

/// Parameters, numbers, and what is unlike the paper's runs.
pub(super) fn details(experiment: &Experiment, data: &Data) -> String {
    let mut text = String::new();
    parameters(&mut text, data);
    numbers(&mut text, experiment, data);
    let _ = write!(text, "## What is unlike the paper's runs\n\n{UNLIKE}");
    text
}

fn parameters(text: &mut String, data: &Data) {
    let _ = writeln!(text, "## Parameters\n\n| parameter | value |\n|---|---|");
    let each = |value: fn(&Trial) -> String| each(data, value);
    let cpu = |trial: &Trial| match trial.cpu {
        Cpu::Modelled => "modelled".to_string(),
        Cpu::Free => "free (message delays only)".to_string(),
    };
    let warehouse = |trial: &Trial| match trial.warehouse {
        Warehouse::Full => "TPC-C's: 10 districts, 30,000 customers, 100,000 items".to_string(),
        Warehouse::Tiny => "tiny: 3 districts, 36 customers, 40 items".to_string(),
    };
    for (name, values) in [
        ("regions", each(|trial| trial.regions.to_string())),
        (
            "shards per region, 3 replicas each",
            each(|trial| trial.shards_per_region.to_string()),
        ),
        (
            "client processes per shard",
            each(|trial| trial.clients_per_shard.to_string()),
        ),
        (
            "requests under way per process",
            each(|trial| trial.outstanding.to_string()),
        ),
        (
            "round trip within a region, between regions",
            "5 ms, 100 ms".to_string(),
        ),
        (
            "jitter between regions, each way",
            each(|trial| format!("±{} ms", trial.wan_jitter_ms)),
        ),
        (
            "sums that payments add to",
            each(|trial| match trial.payment_sums {
                PaymentSums::Tpcc => "warehouse and district, as in TPC-C".into(),
                PaymentSums::Published => "district only, as in the artifact".into(),
            }),
        ),
        ("CPU", each(cpu)),
        ("warehouse, one a shard", each(warehouse)),
        (
            "warm-up, measured (virtual time)",
            each(|trial| {
                format!(
                    "{} s, {} s",
                    seconds(trial.warm_up_ms),
                    seconds(trial.measured_ms)
                )
            }),
        ),
        ("seeds", each(|trial| trial.seed.to_string())),
    ] {
        let _ = writeln!(text, "| {name} | {values} |");
    }
    text.push('\n');
}

fn seconds(millis: u64) -> f64 {
    f64::from(u32::try_from(millis).unwrap_or(u32::MAX)) / 1_000.0
}

fn numbers(text: &mut String, experiment: &Experiment, data: &Data) {
    text.push_str("## Numbers\n\nMedians over the seeds. Latencies in milliseconds.\n\n");
    for system in SystemName::COMPARED {
        let belongs = |record: &Record| record.trial.system == system;
        let points = series(&data.records, belongs, |record| {
            experiment.at(&record.trial)
        });
        if points.is_empty() {
            continue;
        }
        let _ = writeln!(
            text,
            "| {}: {} | transactions/s | IRT p50 | p95 | p99 | CRT p50 | p95 | p99 | dependent CRT p99 \
             | busiest server | messages per transaction | CRT share |\n\
             |---|---|---|---|---|---|---|---|---|---|---|---|",
            system.title(),
            experiment.swept
        );
        for at in &points {
            let first = data.records.iter().find(|record| {
                belongs(record) && experiment.at(&record.trial).total_cmp(&at.x).is_eq()
            });
            let label = first.map(|record| experiment.label(&record.trial));
            row(text, &label.unwrap_or_default(), at);
        }
        text.push('\n');
    }
    for system in SystemName::ALL {
        given_up(text, experiment, data, system);
    }
    let refused: u64 = data
        .records
        .iter()
        .map(|record| record.outcome.refused)
        .sum();
    let oldest = data
        .records
        .iter()
        .map(|record| record.outcome.oldest_open_ms);
    let _ = writeln!(
        text,
        "{refused} calls failed. The longest that any call had waited when its run ended was {:.0} ms.\n",
        oldest.fold(0.0, f64::max)
    );
}

/// What a system whose transactions can abort did in vain; nothing of others.
#[allow(clippy::cast_precision_loss)] // counts of a run are far below 2^53
fn given_up(text: &mut String, experiment: &Experiment, data: &Data, system: SystemName) {
    let belongs = |record: &Record| record.trial.system == system;
    let mut records = data.records.iter().filter(|record| belongs(record));
    if records.all(|record| record.outcome.aborts == 0) {
        return;
    }
    let _ = writeln!(
        text,
        "| {}, in vain: {} | tries that did not commit, of 100 transactions | IRTs given up | CRTs \
         given up |\n|---|---|---|---|",
        system.title(),
        experiment.swept
    );
    let share = |part: u64, all: usize| 100.0 * part as f64 / all.max(1) as f64;
    let points = series(&data.records, belongs, |record| {
        experiment.at(&record.trial)
    });
    for at in &points {
        let _ = writeln!(
            text,
            "| {} | {:.1} | {:.1} % | {:.1} % |",
            at.x,
            at.median(|it| share(it.aborts, it.local.count + it.cross_region.count)),
            at.median(|it| share(it.local_given_up, it.local.count)),
            at.median(|it| share(it.cross_region_given_up, it.cross_region.count)),
        );
    }
    text.push_str(
        "\nWhat is given up counts in the latencies with its time, and not in transactions/s.\n\n",
    );
}

fn row(text: &mut String, label: &str, at: &At<'_>) {
    #[allow(clippy::cast_precision_loss)] // counts of a run are far below 2^53
    let share = at.median(|outcome| {
        let cross = outcome.cross_region.count as f64;
        cross / (cross + outcome.local.count as f64).max(1.0)
    });
    let _ = writeln!(
        text,
        "| {label} | {:.0} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} | {:.0} % ({}) | {:.1} | {:.1} % |",
        at.median(|outcome| outcome.throughput),
        at.median(|outcome| outcome.local.p50),
        at.median(|outcome| outcome.local.p95),
        at.median(|outcome| outcome.local.p99),
        at.median(|outcome| outcome.cross_region.p50),
        at.median(|outcome| outcome.cross_region.p95),
        at.median(|outcome| outcome.cross_region.p99),
        at.median(|outcome| outcome.dependent.p99),
        100.0 * at.median(|outcome| outcome.busiest_server).min(1.0),
        busiest_role(at),
        at.median(|outcome| outcome.lan_messages + outcome.wan_messages),
        100.0 * share
    );
}
