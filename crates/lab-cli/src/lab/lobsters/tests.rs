//! What figures, tables and claims make of runs.

use std::collections::BTreeMap;

use manxdb_lab::experiment::{Claim, ClaimVerdict, Scale};

use super::outcome::{FlatOut, Memory, Site, Spread};
use super::system::System;
use super::trial::Comparison;
use super::*;

const EXPERIMENTS: [&Design<Reading>; 3] = [
    &endpoints::EXPERIMENT,
    &sizes::EXPERIMENT,
    &memory::EXPERIMENT,
];

/// Data in which a system takes so many milliseconds for a page, and as much of everything else.
fn data(design: &Design<Reading>, millis: impl Fn(&Trial, System) -> f64) -> Data<Reading> {
    let record = |trial: Trial| {
        let site = |system: &System| Site {
            system: *system,
            missing: None,
            ran: Some(ran(&trial, *system, millis(&trial, *system))),
        };
        let outcome = Outcome {
            rate: 450.0 / trial.seconds,
            sites: trial.systems.iter().map(site).collect(),
        };
        Record { trial, outcome }
    };
    let plan = design.plan(Scale::Laptop, 1).into_iter();
    Data {
        experiment: design.name.into(),
        scale: Scale::Laptop,
        seed: 1,
        version: "test".into(),
        records: plan.map(record).collect(),
    }
}

fn ran(trial: &Trial, system: System, millis: f64) -> Ran {
    let spread = Spread {
        count: 50,
        p50: millis,
        p95: 2.0 * millis,
        p99: 2.0 * millis,
    };
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // some megabytes
    let bytes = (millis * f64::from(100 << 20)) as u64;
    Ran {
        version: "1".into(),
        notifications: trial.comparison.shows(system),
        flat_out: Some(FlatOut {
            rate: 1e3 / millis,
            cpu_us: millis * 1e3,
        }),
        keeps_up: Some(500.0 / millis),
        notification: trial.comparison.shows(system).then_some(spread),
        served: 450,
        seconds: trial.seconds,
        cpu_us: millis * 1e3,
        pages: PAGES
            .iter()
            .map(|page| ((*page).to_owned(), spread))
            .collect::<BTreeMap<_, _>>(),
        memory: Memory {
            empty: 1 << 20,
            filled: bytes,
            loaded: bytes,
            disk: bytes,
            ..Memory::default()
        },
        ..Ran::default()
    }
}

/// Times of data of which everything holds.
fn best(_: &Trial, system: System) -> f64 {
    match system {
        System::Innodb | System::Myrocks => 2.0,
        System::Views => 0.1,
        _ => 1.0,
    }
}

fn counted(design: &Design<Reading>, data: &Data<Reading>, verdict: ClaimVerdict) -> usize {
    let claims = design.claims(data);
    let of = claims.iter().filter(|claim| claim.verdict() == verdict);
    of.count()
}

#[test]
fn every_claim_that_can_be_judged_holds_and_fails() {
    // What has no published number is open; what is published is of another load.
    for (design, open, elsewhere) in [
        (&endpoints::EXPERIMENT, 0, 3),
        (&sizes::EXPERIMENT, 0, 1),
        (&memory::EXPERIMENT, 1, 0),
    ] {
        let best = data(design, best);
        let all = design.claims(&best).len();
        assert_eq!(
            counted(design, &best, ClaimVerdict::Open),
            open,
            "{:#?}",
            design.claims(&best)
        );
        assert_eq!(counted(design, &best, ClaimVerdict::NotAResult), elsewhere);
        assert_eq!(
            counted(design, &best, ClaimVerdict::Holds),
            all - open - elsewhere
        );
        let worst = data(design, |trial, system| match system {
            System::Innodb | System::Myrocks => 1.0,
            System::Manxdb => 2.0 + trial.site,
            _ => 4.0 + 2.0 * trial.site,
        });
        assert_eq!(
            counted(design, &worst, ClaimVerdict::Fails),
            all - open - elsewhere,
            "{:#?}",
            design.claims(&worst)
        );
    }
}

#[test]
fn every_claim_can_be_refuted_by_data() {
    for design in EXPERIMENTS {
        let best = data(design, best);
        assert_eq!(design.unmoved(&best), Vec::<String>::new());
    }
}

#[test]
fn smoke_judges_nothing() {
    for design in EXPERIMENTS {
        let mut small = data(design, |_, _| 1.0);
        small.scale = Scale::Smoke;
        let claims = design.claims(&small);
        assert!(
            claims
                .iter()
                .all(|claim| claim.verdict() == ClaimVerdict::Open),
            "{claims:#?}"
        );
    }
}

#[test]
fn what_a_machine_lacks_is_named_and_the_others_are_drawn() {
    let design = &endpoints::EXPERIMENT;
    let mut data = data(design, |_, _| 1.0);
    for site in data
        .records
        .iter_mut()
        .flat_map(|record| &mut record.outcome.sites)
    {
        if site.system == System::Myrocks {
            site.ran = None;
            site.missing = Some("install the package mariadb-plugin-rocksdb".into());
        }
    }
    let [svg, _, _, report] = design.pictures(&data).unwrap();
    let (svg, report) = (
        String::from_utf8(svg.bytes).unwrap(),
        String::from_utf8(report.bytes).unwrap(),
    );
    assert!(
        report.contains("MariaDB MyRocks did not run: install the package mariadb-plugin-rocksdb")
    );
    assert!(!report.contains("**implausible**"), "{report}");
    for system in System::ALL
        .into_iter()
        .filter(|one| *one != System::Myrocks)
    {
        assert!(svg.contains(system.title()) && report.contains(system.title()));
    }
    assert!(
        design
            .judged(&data)
            .iter()
            .all(|claim| claim.verdict() != ClaimVerdict::Implausible)
    );
}

#[test]
fn figures_have_every_page_and_the_ends_of_published_axes() {
    for (design, words) in [
        (
            &endpoints::EXPERIMENT,
            vec![
                "CommentVote",
                "end of the published axis: 35 ms",
                "as published",
            ],
        ),
        (
            &sizes::EXPERIMENT,
            vec!["end of the published axis: 25 ms", "ManxDB annotated, CPU"],
        ),
        (&memory::EXPERIMENT, vec!["MiB", "MariaDB MyRocks"]),
    ] {
        let data = data(design, |_, _| 1.0);
        let [svg, _, _, report] = design.pictures(&data).unwrap();
        let svg = String::from_utf8(svg.bytes).unwrap();
        for word in words {
            assert!(svg.contains(word), "{}: {word}", design.name);
        }
        assert!(
            String::from_utf8(report.bytes)
                .unwrap()
                .contains("| StoryVote | 1.00 / 2.00 (50) |")
        );
        let csv = data.to_csv();
        let columns = |line: &str| line.split(',').count();
        let names = columns(csv.lines().next().unwrap());
        assert!(csv.lines().all(|line| columns(line) == names), "{csv}");
        let sites: usize = data
            .records
            .iter()
            .map(|record| record.trial.systems.len())
            .sum();
        assert_eq!(csv.lines().count(), 1 + sites * PAGES.len());
    }
}

#[test]
fn comparisons_need_equal_rates_and_as_published_shows_notifications_on_manxdb_alone() {
    let design = &sizes::EXPERIMENT;
    let mut data = data(design, |_, _| 1.0);
    assert_eq!(Reading::contradiction(&data), None);
    data.records[0].outcome.rate *= 2.0;
    assert!(
        Reading::contradiction(&data)
            .unwrap()
            .contains("sizes of one sweep")
    );
    let plan = endpoints::EXPERIMENT.plan(Scale::Paper, 1);
    assert!(
        plan.iter()
            .any(|trial| trial.comparison == Comparison::AsPublished)
    );
    let judged: Vec<Claim> = design.claims(&data);
    assert!(
        judged
            .iter()
            .all(|claim| claim.verdict() == ClaimVerdict::Implausible),
        "{judged:#?}"
    );
}

#[test]
fn scales_are_the_published_ones_and_take_turns() {
    let paper = endpoints::EXPERIMENT.plan(Scale::Paper, 1);
    assert!(
        paper
            .iter()
            .all(|trial| (trial.site - 2.59).abs() < 1e-9 && trial.turns > 1)
    );
    assert!(paper.iter().all(|trial| trial.rate == Rate::Given(1_000.0)));
    let sizes = sizes::EXPERIMENT.plan(Scale::Paper, 1);
    assert_eq!(sizes.len(), 3 * 10);
    assert!(sizes.iter().any(|trial| (trial.site - 17.24).abs() < 1e-9));
    let laptop = sizes::EXPERIMENT.plan(Scale::Laptop, 1);
    let works: Vec<f64> = laptop.iter().map(Reading::work).collect();
    assert!(
        works.iter().all(|work| *work <= works[works.len() - 1]),
        "the largest runs first"
    );
}
