//! What a pool is doing, as a table.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::Duration;

use manxdb_compaction::transport::wire::proto::ReportReply;
use manxdb_compaction::transport::wire::proto::job_line::Phase;

use super::{name_of, phase_name};
use crate::cli::TopArgs;
use crate::fault::Fault;

const EVERY: Duration = Duration::from_secs(1);
/// Lines of jobs that are shown.
const JOBS_MAX: usize = 20;
const CLEAR: &str = "\x1b[2J\x1b[H";

/// Shows it once, or again and again.
///
/// # Errors
/// No control plane answers.
pub fn run(args: &TopArgs) -> Result<ExitCode, Fault> {
    let route = super::route(&args.control, &args.security)?;
    loop {
        let report = route.report().map_err(|why| {
            Fault::Other(format!(
                "no control plane of the compaction service answers: {why}"
            ))
        })?;
        let is_live = !args.once && std::io::stdout().is_terminal();
        print!("{}{}", if is_live { CLEAR } else { "" }, table(&report));
        if args.once {
            return Ok(ExitCode::SUCCESS);
        }
        std::thread::sleep(EVERY);
    }
}

#[allow(clippy::cast_precision_loss)] // for people
fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

fn table(report: &ReportReply) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = summary(&mut text, report);
    let _ = workers(&mut text, report);
    let _ = jobs(&mut text, report);
    text
}

fn summary(text: &mut String, report: &ReportReply) -> std::fmt::Result {
    match (report.leads, report.leader.as_str()) {
        (true, "") => {} // the only one
        (true, leader) => writeln!(text, "leader {leader}   term {}", report.term)?,
        (false, "") => writeln!(text, "nobody leads")?,
        (false, leader) => writeln!(text, "leader {leader}, which does not answer")?,
    }
    writeln!(
        text,
        "taken {}   done {}   lost {}   failed {}   late {}   refused {}",
        report.taken, report.done, report.lost, report.failed, report.late, report.refused
    )?;
    if !report.banned.is_empty() {
        let banned: Vec<String> = report
            .banned
            .iter()
            .map(|worker| name_of(*worker))
            .collect();
        writeln!(text, "not trusted any more: {}", banned.join("   "))?;
    }
    let mut home: Vec<_> = report
        .local
        .iter()
        .filter(|(_, count)| **count > 0)
        .collect();
    home.sort();
    if !home.is_empty() {
        let home: Vec<String> = home
            .iter()
            .map(|(why, count)| format!("{why} {count}"))
            .collect();
        writeln!(text, "sent home: {}", home.join("   "))?;
    }
    Ok(())
}

fn workers(text: &mut String, report: &ReportReply) -> std::fmt::Result {
    writeln!(
        text,
        "\nWORKER            ZONE  RUNNING  SPEED        MEMORY LEFT  FETCHED      PUT"
    )?;
    for line in &report.workers {
        let ability = line.ability.clone().unwrap_or_default();
        let speed = format!("{}/s", megabytes(ability.bytes_second));
        let total = line.total.unwrap_or_default();
        writeln!(
            text,
            "{}  {:4}  {:>3}/{:<3}  {speed:<11}  {:<11}  {:<11}  {}",
            name_of(line.worker),
            ability.zone,
            line.running,
            ability.slots,
            megabytes(ability.memory),
            megabytes(total.fetched),
            megabytes(total.put),
        )?;
    }
    Ok(())
}

fn jobs(text: &mut String, report: &ReportReply) -> std::fmt::Result {
    writeln!(
        text,
        "\nDATABASE          JOB      LEVELS  INPUTS       ATTEMPT  STATE"
    )?;
    for line in report.jobs.iter().take(JOBS_MAX) {
        let (job, facts) = (line.job.unwrap_or_default(), line.facts.unwrap_or_default());
        let mut state = phase_name(line.phase.as_ref()).to_owned();
        if let Some(Phase::Running(running)) = &line.phase {
            let so_far = running.progress.unwrap_or_default();
            let (fetched, put) = (megabytes(so_far.fetched), megabytes(so_far.put));
            let worker = name_of(running.worker);
            write!(state, " on {worker}, fetched {fetched}, put {put}")?;
        }
        let levels = format!("{} to {}", facts.start_level, facts.output_level);
        writeln!(
            text,
            "{}  {:<7}  {levels:<6}  {:<11}  {:<7}  {state}",
            name_of(job.database),
            job.number,
            megabytes(facts.bytes),
            line.attempts,
        )?;
    }
    if report.jobs.len() > JOBS_MAX {
        writeln!(text, "and {} more", report.jobs.len() - JOBS_MAX)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_says_who_leads_where_there_are_several() {
        let first = |leads, leader: &str| {
            let report = ReportReply {
                leads,
                leader: leader.to_owned(),
                term: 7,
                ..ReportReply::default()
            };
            table(&report).lines().next().map(ToOwned::to_owned)
        };
        assert_eq!(first(true, "a:1").as_deref(), Some("leader a:1   term 7"));
        let silent = "leader a:1, which does not answer";
        assert_eq!(first(false, "a:1").as_deref(), Some(silent));
        assert_eq!(first(false, "").as_deref(), Some("nobody leads"));
        assert!(first(true, "").is_some_and(|line| line.starts_with("taken 0")));
    }
}
