//! The columns of `data.csv` for databases that share workers. Times of queues are milliseconds,
//! all others seconds; shares are from 0 to 1.

use std::fmt::Write as _;

use super::Record;
use crate::caas_many::Group;
use crate::trial::Spread;

/// Their names.
pub(super) fn names() -> String {
    let mut text = String::from(
        "system,databases,greedy,asks,workers,slots,slot_mib_second,home_mib_second,\
         write_mib_second,burst_mib,gap_seconds,minutes,seed",
    );
    for group in ["others", "greedy"] {
        for name in [
            "written_mib",
            "stalled",
            "stalled_worst",
            "jobs",
            "home",
            "home_level0",
            "home_overloaded",
            "home_hedge",
            "share_of_worker_time",
        ] {
            let _ = write!(text, ",{group}_{name}");
        }
        for queue in ["queue", "queue_level0"] {
            for name in ["count", "mean", "p50", "p90", "p95", "p99", "max"] {
                let _ = write!(text, ",{group}_{queue}_{name}");
            }
        }
    }
    text.push_str(",busy,jain,drain,bounced_first,events");
    text
}

/// A trial and what came of it.
pub(super) fn row(Record { trial, outcome }: &Record) -> String {
    let mut text = format!(
        "{},{},{},{},{},{},{},{},{},{},{},{},{}",
        trial.who.title(),
        trial.databases,
        trial.greedy,
        trial.asks,
        trial.workers,
        trial.slots,
        trial.slot_speed,
        trial.home_speed,
        trial.write_speed,
        trial.burst,
        trial.gap,
        trial.minutes,
        trial.seed,
    );
    group(&mut text, &outcome.others);
    group(&mut text, &outcome.greedy);
    let drain = outcome.drain.map(|drain| drain.to_string());
    let _ = write!(
        text,
        ",{},{},{},{},{}",
        outcome.busy,
        outcome.jain,
        drain.unwrap_or_default(),
        outcome.bounced_first,
        outcome.events,
    );
    text
}

fn group(text: &mut String, group: &Group) {
    let _ = write!(
        text,
        ",{},{},{},{},{},{},{},{},{}",
        group.written,
        group.stalled,
        group.stalled_worst,
        group.jobs,
        group.home,
        group.home_level0,
        group.home_overloaded,
        group.home_hedge,
        group.share,
    );
    for queue in [group.queue, group.queue_level0] {
        let Spread {
            count,
            mean,
            p50,
            p90,
            p95,
            p99,
            max,
        } = queue;
        let _ = write!(text, ",{count},{mean},{p50},{p90},{p95},{p99},{max}");
    }
}
