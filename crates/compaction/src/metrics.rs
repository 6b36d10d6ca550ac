//! Numbers for Prometheus, in its text form.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use manxdb_jobs::control::Report;
use manxdb_jobs::control::report::JobPhase;
use manxdb_jobs::job::LocalReason;

use crate::counts::Counts;
#[cfg(feature = "worker")]
use crate::worker;

/// Lines of one family of numbers.
fn family(text: &mut String, name: &str, kind: &str, help: &str, lines: &[(String, u64)]) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    for (labels, value) in lines {
        let _ = writeln!(text, "{name}{labels} {value}");
    }
}

fn alone(value: u64) -> [(String, u64); 1] {
    [(String::new(), value)]
}

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

/// A worker's numbers.
#[cfg(feature = "worker")]
#[must_use]
pub fn of_worker(counts: &worker::Counts) -> String {
    let mut text = String::new();
    let load = |count: &AtomicU64| alone(count.load(Ordering::Relaxed));
    for (name, help, value) in [
        (
            "finished",
            "Attempts that made outputs.",
            load(&counts.finished),
        ),
        ("failed", "Attempts that failed.", load(&counts.failed)),
        (
            "stopped",
            "Attempts stopped from outside.",
            load(&counts.stopped),
        ),
        (
            "input_bytes",
            "Bytes of inputs compacted.",
            load(&counts.bytes),
        ),
        (
            "fetched_bytes",
            "Bytes fetched from object stores.",
            load(&counts.fetched),
        ),
        (
            "put_bytes",
            "Bytes put into object stores.",
            load(&counts.put),
        ),
    ] {
        let name = format!("manxdb_compactor_worker_{name}_total");
        family(&mut text, &name, "counter", help, &value);
    }
    text
}

/// A database's numbers, by name and labels; `waiting` jobs are handed out and not over.
#[must_use]
pub fn of_database(counts: &Counts, waiting: usize) -> Vec<(String, u64)> {
    let name = |what: &str| format!("manxdb_compaction_{what}");
    let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let mut numbers = vec![
        (name("remote_waiting"), waiting as u64),
        (name("remote_installed_total"), load(&counts.installed)),
        (name("remote_input_bytes_total"), load(&counts.input_bytes)),
        (
            name("remote_output_bytes_total"),
            load(&counts.output_bytes),
        ),
        (name("remote_put_bytes_total"), load(&counts.put)),
        (name("remote_fetched_bytes_total"), load(&counts.fetched)),
        (
            name("remote_wait_microseconds_total"),
            load(&counts.wait_micros),
        ),
        (
            name("remote_verify_microseconds_total"),
            load(&counts.verify_micros),
        ),
    ];
    numbers.extend(LocalReason::ALL.map(|reason| {
        let labels = format!("local_total{{reason=\"{}\"}}", reason.word());
        (name(&labels), counts.local(reason))
    }));
    numbers
}

/// Numbers by name and labels as Prometheus reads them; those of one name stand together.
#[must_use]
pub fn text_of(numbers: &[(String, u64)]) -> String {
    let (mut text, mut last) = (String::new(), "");
    for (name, value) in numbers {
        let family = name.split('{').next().unwrap_or(name);
        if family != last {
            let kind = if family.ends_with("_total") {
                "counter"
            } else {
                "gauge"
            };
            let _ = writeln!(text, "# TYPE {family} {kind}"); // writing to a string cannot fail
            last = family;
        }
        let _ = writeln!(text, "{name} {value}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_says_why_it_compacted_itself() {
        let counts = Counts::default();
        counts.stays_home(LocalReason::Away);
        counts.stays_home(LocalReason::Away);
        let numbers = of_database(&counts, 3);
        let number = |name: &str| numbers.iter().find(|(one, _)| one == name).unwrap().1;
        assert_eq!(number("manxdb_compaction_remote_waiting"), 3);
        assert_eq!(number("manxdb_compaction_local_total{reason=\"away\"}"), 2);
        assert_eq!(number("manxdb_compaction_local_total{reason=\"small\"}"), 0);
    }

    #[test]
    fn every_number_has_its_help_and_type() {
        let control = of_control(&Report::default());
        assert!(control.contains("manxdb_compactor_jobs{phase=\"waiting\"} 0\n"));
        assert!(control.contains("manxdb_compactor_leads 0\n"));
        assert!(control.contains("manxdb_compactor_sent_home_total{reason=\"poison\"} 0\n"));
        for text in [control, of_worker(&worker::Counts::default())] {
            for line in text.lines().filter(|line| !line.starts_with('#')) {
                let name = line.split([' ', '{']).next().unwrap();
                assert!(text.contains(&format!("# TYPE {name} ")), "{line}");
            }
        }
    }

    #[test]
    fn each_name_has_its_kind_once() {
        let numbers = [
            ("a_total{reason=\"x\"}", 1),
            ("a_total{reason=\"y\"}", 2),
            ("b", 3),
        ];
        let numbers = numbers.map(|(name, value)| (name.to_owned(), value));
        let expected = "# TYPE a_total counter\na_total{reason=\"x\"} 1\n\
                        a_total{reason=\"y\"} 2\n# TYPE b gauge\nb 3\n";
        assert_eq!(text_of(&numbers), expected);
    }
}
