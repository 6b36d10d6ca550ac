//! The columns of `data.csv` for transactions. Times are milliseconds, shares are from 0 to 1.

use std::fmt::Write as _;

use super::Record;
use crate::trial::{Cpu, PaymentSums, Spread, Workload};

/// Their names.
pub(super) fn names() -> String {
    let mut text = String::from(
        "system,workload,parameter,regions,shards_per_region,clients_per_shard,outstanding,\
             wan_jitter_ms,payment_sums,cpu,warm_up_ms,measured_ms,seed,throughput_tps",
    );
    for kind in ["irt", "crt", "dependent_crt"] {
        for name in ["count", "mean", "p50", "p90", "p95", "p99", "max"] {
            let _ = write!(text, ",{kind}_{name}");
        }
    }
    text.push_str(
        ",refused,irt_given_up,crt_given_up,aborts,left_out,oldest_open,busiest_server,busiest_role,mean_server,lan_messages_per_txn,\
             wan_messages_per_txn,events",
    );
    text
}

/// A trial and what came of it.
pub(super) fn row(Record { trial, outcome }: &Record) -> String {
    let (workload, parameter) = match trial.workload {
        Workload::Tpcc => ("tpcc", String::new()),
        Workload::Payment { cross_region } => ("payment", cross_region.to_string()),
        Workload::Tpca { alpha } => ("tpca", alpha.to_string()),
        Workload::Append { lists } => ("append", lists.to_string()),
    };
    let sums = match trial.payment_sums {
        PaymentSums::Tpcc => "tpcc",
        PaymentSums::Published => "published",
    };
    let cpu = match trial.cpu {
        Cpu::Modelled => "modelled",
        Cpu::Free => "free",
    };
    let mut text = format!(
        "{},{workload},{parameter},{},{},{},{},{},{sums},{cpu},{},{},{},{}",
        trial.system.name(),
        trial.regions,
        trial.shards_per_region,
        trial.clients_per_shard,
        trial.outstanding,
        trial.wan_jitter_ms,
        trial.warm_up_ms,
        trial.measured_ms,
        trial.seed,
        outcome.throughput,
    );
    for spread in [outcome.local, outcome.cross_region, outcome.dependent] {
        let Spread {
            count,
            mean,
            p50,
            p90,
            p95,
            p99,
            max,
        } = spread;
        let _ = write!(text, ",{count},{mean},{p50},{p90},{p95},{p99},{max}");
    }
    let _ = write!(
        text,
        ",{},{},{},{},{},{},{},{},{},{},{},{}",
        outcome.refused,
        outcome.local_given_up,
        outcome.cross_region_given_up,
        outcome.aborts,
        outcome.left_out_ms,
        outcome.oldest_open_ms,
        outcome.busiest_server,
        outcome.busiest_role,
        outcome.mean_server,
        outcome.lan_messages,
        outcome.wan_messages,
        outcome.events,
    );
    text
}
