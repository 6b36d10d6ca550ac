//! What the pool that compactions are handed to does, for the console.

use std::path::Path;

use manxdb_compaction::transport::link::Route;
use manxdb_compaction::transport::wire::proto::job_line::Phase;
use manxdb_compaction::transport::wire::proto::{JobLine, ReportReply, WorkerLine};
use serde_json::{Value, json};

use super::compaction::database_of;
use crate::compactor::{name_of, phase_name, security};
use crate::config::RemoteCompaction;
use crate::fault::Fault;

/// Asks the pool's control planes for its state at each call, which takes as long as they do: for a listener
/// with threads of its own. One that does not answer is left after some seconds, and `silent` says why.
///
/// # Errors
/// As [`pool`](super::compaction::pool).
pub fn source(
    settings: &RemoteCompaction,
    data: &Path,
) -> Result<Box<dyn Fn() -> Value + Send + Sync>, Fault> {
    let route =
        Route::new(&settings.control, &security(&settings.security)?).map_err(Fault::Config)?;
    let own = name_of(database_of(settings, data)?.0);
    let control = settings.control.clone();
    Ok(Box::new(move || {
        let mut status = match route.report() {
            Ok(report) => status_of(&report),
            Err(why) => json!({ "silent": why }),
        };
        status["control"] = json!(control);
        status["own"] = json!(own);
        status
    }))
}

fn status_of(report: &ReportReply) -> Value {
    let mut sent_home: Vec<_> = report.local.iter().collect();
    sent_home.sort();
    let sent_home = sent_home
        .into_iter()
        .filter(|(_, count)| **count > 0)
        .map(|(reason, count)| json!({ "reason": reason, "count": count }));
    json!({
        "leads": report.leads,
        "leader": report.leader,
        "term": report.term,
        "taken": report.taken,
        "done": report.done,
        "lost": report.lost,
        "failed": report.failed,
        "late": report.late,
        "refused": report.refused,
        "sent_home": sent_home.collect::<Value>(),
        "banned": report.banned.iter().map(|worker| name_of(*worker)).collect::<Value>(),
        "workers": report.workers.iter().map(worker).collect::<Value>(),
        "jobs": report.jobs.iter().map(job).collect::<Value>(),
    })
}

fn worker(line: &WorkerLine) -> Value {
    let ability = line.ability.clone().unwrap_or_default();
    let total = line.total.unwrap_or_default();
    json!({
        "worker": name_of(line.worker),
        "zone": ability.zone,
        "running": line.running,
        "slots": ability.slots,
        "bytes_second": ability.bytes_second,
        "memory": ability.memory,
        "fetched": total.fetched,
        "put": total.put,
    })
}

fn job(line: &JobLine) -> Value {
    let (job, facts) = (line.job.unwrap_or_default(), line.facts.unwrap_or_default());
    let worker = match &line.phase {
        Some(Phase::Running(running)) => Some(name_of(running.worker)),
        _ => None,
    };
    json!({
        "database": name_of(job.database),
        "number": job.number,
        "start_level": facts.start_level,
        "output_level": facts.output_level,
        "bytes": facts.bytes,
        "attempts": line.attempts,
        "state": phase_name(line.phase.as_ref()),
        "worker": worker,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use manxdb_compaction::transport::wire::proto::{JobId, RunningOn};

    #[test]
    fn a_report_is_told_by_the_names_that_the_pools_own_table_has() {
        let job = |number, phase| JobLine {
            job: Some(JobId {
                database: 0xab,
                number,
                ..JobId::default()
            }),
            phase: Some(phase),
            ..JobLine::default()
        };
        let running = RunningOn {
            worker: 0xff,
            ..RunningOn::default()
        };
        let status = status_of(&ReportReply {
            leads: true,
            jobs: vec![
                job(1, Phase::Running(running)),
                job(2, Phase::Waiting(Default::default())),
            ],
            workers: vec![WorkerLine {
                worker: 0xff,
                running: 1,
                ..WorkerLine::default()
            }],
            banned: vec![0xee],
            local: HashMap::from([("poison".to_owned(), 2), ("overloaded".to_owned(), 0)]),
            ..ReportReply::default()
        });
        assert_eq!(status["jobs"][0]["worker"], "00000000000000ff");
        assert_eq!(status["jobs"][0]["database"], "00000000000000ab");
        assert_eq!(status["jobs"][1]["state"], "waits");
        assert_eq!(status["workers"][0]["worker"], "00000000000000ff");
        assert_eq!(status["banned"][0], "00000000000000ee");
        assert_eq!(
            status["sent_home"],
            json!([{ "reason": "poison", "count": 2 }])
        );
    }
}
