//! Metrics of the control plane.

use manxdb_jobs::control::Report;
use manxdb_jobs::control::report::JobPhase;
use manxdb_jobs::job::LocalReason;

use crate::metrics::{alone, family};

/// The control plane's numbers.
#[must_use]
pub fn of_control(report: &Report) -> String {
    let mut text = String::new();
    let in_phase = |which: fn(&JobPhase) -> bool| {
        report.jobs.iter().filter(|job| which(&job.phase)).count() as u64
    };
    let jobs = [
        (
            "waiting",
            in_phase(|phase| matches!(phase, JobPhase::Waiting)),
        ),
        (
            "running",
            in_phase(|phase| matches!(phase, JobPhase::Running(..))),
        ),
        ("done", in_phase(|phase| matches!(phase, JobPhase::Done(_)))),
    ];
    let jobs = jobs.map(|(phase, count)| (format!("{{phase=\"{phase}\"}}"), count));
    family(
        &mut text,
        "manxdb_compactor_jobs",
        "gauge",
        "Jobs that are not over.",
        &jobs,
    );
    let standing = &report.standing;
    family(
        &mut text,
        "manxdb_compactor_leads",
        "gauge",
        "1 if this control plane leads: all other numbers are the leader's.",
        &alone(u64::from(standing.leads)),
    );
    family(
        &mut text,
        "manxdb_compactor_term",
        "gauge",
        "Since which election it leads, rising with each; 0 if it does not, or is the only one.",
        &alone(standing.term.0),
    );
    let workers = alone(report.workers.len() as u64);
    family(
        &mut text,
        "manxdb_compactor_workers",
        "gauge",
        "Workers that are there.",
        &workers,
    );
    let slots = report
        .workers
        .iter()
        .map(|one| u64::from(one.ability.slots))
        .sum();
    family(
        &mut text,
        "manxdb_compactor_slots",
        "gauge",
        "Jobs that run at a time at most.",
        &alone(slots),
    );
    let counts = &report.counts;
    for (name, help, value) in [
        ("taken", "Jobs taken.", counts.taken),
        ("done", "Results recorded.", counts.done),
        (
            "lost",
            "Attempts whose worker was not heard of in time.",
            counts.lost,
        ),
        ("failed", "Attempts that failed.", counts.failed),
        (
            "late",
            "Ends of attempts that were not the present one any more.",
            counts.late,
        ),
        ("refused", "Results that databases refused.", counts.refused),
    ] {
        let name = format!("manxdb_compactor_{name}_total");
        family(&mut text, &name, "counter", help, &alone(value));
    }
    let home = LocalReason::ALL.map(|reason| {
        let count = counts.local.get(&reason).copied().unwrap_or(0);
        (format!("{{reason=\"{}\"}}", reason.word()), count)
    });
    family(
        &mut text,
        "manxdb_compactor_sent_home_total",
        "counter",
        "Jobs sent home.",
        &home,
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_its_help_and_type() {
        let control = of_control(&Report::default());
        assert!(control.contains("manxdb_compactor_jobs{phase=\"waiting\"} 0\n"));
        assert!(control.contains("manxdb_compactor_leads 0\n"));
        assert!(control.contains("manxdb_compactor_sent_home_total{reason=\"poison\"} 0\n"));
        crate::metrics::tests::every_number_has_its_type(&control);
    }
}
