//! YCSB's mixes over the skew of their keys: how often commands conflict, and what that costs.

use manxdb_lab::experiment::data::Data;
use manxdb_lab::experiment::{Claim, Design, Measured, Scale, Source};
use manxdb_lab::figure::{Axes, Figure, Mark, Panel};

use super::found::{Wanted, judge, lines};
use super::trial::{Load, Measure, System, Trial};
use super::{Replicating, label};
use crate::lab::rack::open_if_small;

/// Commands under way at any time.
const CLIENTS: u32 = 10;
/// Exponents of Zipf's distribution, in hundredths: the evenest, where CURP's rate begins to lose its lead
/// in the paper, where a sixth of the commands meets a recent key, and YCSB's own.
const EVENEST: u32 = 50;
const SKEWED: u32 = 80;
const RECENT: u32 = 95;
const YCSB: u32 = 99;
/// Commands that touch a key of the last 100 commands, with exponent 0.95, as published.
const RECENT_SHARE: f64 = 0.16;
/// Latency of updates over that of replication in two round trips, with exponent 0.99, as published.
const LATENCY: f64 = 0.58;

/// In the order in which they take turns.
const SYSTEMS: [System; 3] = [System::Unreplicated, System::CURP, System::SYNCED];

/// The experiment.
pub(super) static EXPERIMENT: Design<Replicating> = Design {
    name: "curp-skew",
    about: "YCSB A and B over the skew of their keys: updates that take one round trip, their latency and \
            the rate",
    origin: "After figure 8 of CURP (Park and Ousterhout, NSDI 2019), on this machine's processes.",
    swept: "Zipf",
    plan,
    at,
    label,
    figure,
    judge: claims,
};

fn at(trial: &Trial) -> f64 {
    f64::from(trial.theta) / 100.0
}

fn plan(scale: Scale, seed: u64) -> Vec<Trial> {
    let systems: &[System] = scale.pick(&[System::CURP], &SYSTEMS, &SYSTEMS);
    let skews: &[u32] = scale.pick(
        &[SKEWED],
        &[EVENEST, SKEWED, RECENT, YCSB],
        &[EVENEST, 60, 70, SKEWED, 90, RECENT, YCSB],
    );
    let repetitions = scale.pick(1, 5, 10);
    let mut trials = Vec::new();
    for seed in (seed..).take(repetitions) {
        for theta in skews {
            trials.extend(systems.iter().map(|system| Trial {
                system: *system,
                lan_us: 0,
                loads: vec![Load::YcsbA, Load::YcsbB],
                theta: *theta,
                clients: scale.pick(2, CLIENTS, CLIENTS),
                commands: scale.pick(200, 4_000, 100_000),
                keys: scale.pick(1_000, 100_000, 1_000_000),
                seed,
            }));
        }
    }
    trials
}

fn wanted(system: System, theta: u32, load: Load) -> Wanted {
    Wanted {
        system,
        lan_us: 0,
        clients: CLIENTS,
        theta: Some(theta),
        load,
    }
}

fn claims(_: &Design<Replicating>, data: &Data<Replicating>) -> Vec<Claim> {
    let mut claims = counted(data);
    claims.extend(timed(data));
    open_if_small(data, claims)
}

/// What no other load of the machine changes much.
fn counted(data: &Data<Replicating>) -> Vec<Claim> {
    let recent = wanted(System::CURP, RECENT, Load::YcsbA).median(data, Measure::recent_share);
    let says = "Zipf 0.95: 16 % of the commands touch a key of the last 100 commands; here within 3 points, \
                of a tenth of the keys.";
    let recent = judge(Source::Paper, says, recent, |share| {
        let said = format!("{:.1} %", share * 100.0);
        let holds = (share - RECENT_SHARE).abs() <= 0.03;
        (Measured::new(share, 0.0..=1.0, said), holds)
    });
    let fast = |says: &str, (theta, load): (u32, Load), least: f64| {
        let found = wanted(System::CURP, theta, load).median(data, Measure::fast_share);
        judge(Source::Target, says, found, |share| {
            let said = format!("{:.1} %", share * 100.0);
            (Measured::new(share, 0.0..=1.0, said), share >= least)
        })
    };
    vec![
        recent,
        fast(
            "YCSB A, Zipf 0.50: at least 99 % of updates are complete after one round trip.",
            (EVENEST, Load::YcsbA),
            0.99,
        ),
        fast(
            "YCSB B, Zipf 0.99: at least 90 % of updates are complete after one round trip.",
            (YCSB, Load::YcsbB),
            0.9,
        ),
    ]
}

fn timed(data: &Data<Replicating>) -> Vec<Claim> {
    let beside_synced =
        |says: &str, theta: u32, number: fn(&Measure) -> f64, holds: &dyn Fn(f64) -> bool| {
            let found =
                wanted(System::CURP, theta, Load::YcsbA).timed_ratio(data, System::SYNCED, number);
            judge(Source::Paper, says, found, |ratio| {
                let said = format!("{ratio:.2} times");
                (Measured::ratio(ratio, said), holds(ratio))
            })
        };
    vec![
        beside_synced(
            "YCSB A, Zipf 0.99: updates take 42 % less time than with two round trips.",
            YCSB,
            |one| one.updates.mean,
            &|ratio| ratio <= LATENCY,
        ),
        beside_synced(
            "YCSB A, Zipf 0.50: more commands a second than with two round trips.",
            EVENEST,
            Measure::rate,
            &|ratio| ratio > 1.0,
        ),
    ]
}

fn figure(_: &Design<Replicating>, data: &Data<Replicating>) -> Figure {
    let panel = |load: Load, y_label: &str, number: &dyn Fn(&Measure) -> f64| Panel {
        title: load.title().into(),
        x_label: "Zipf's exponent".into(),
        y_label: y_label.into(),
        axes: Axes::default(),
        lines: lines(data, &SYSTEMS, &at, (load, number)),
        marks: Vec::new(),
    };
    let of_curp = |mut panel: Panel| {
        panel.lines.retain(|line| line.name == System::CURP.title());
        panel
    };
    let mut recent = of_curp(panel(
        Load::YcsbA,
        "share on recent keys",
        &Measure::recent_share,
    ));
    recent.marks = vec![Mark::level(
        RECENT_SHARE,
        "published: 0.16 with exponent 0.95",
    )];
    Figure {
        title: "YCSB A and B over the skew of their keys".into(),
        columns: 3,
        legend_cell: 5,
        panels: vec![
            panel(Load::YcsbA, "commands/s", &Measure::rate),
            panel(Load::YcsbA, "updates, p50 (µs)", &|one| one.updates.p50),
            of_curp(panel(
                Load::YcsbA,
                "in one round trip",
                &Measure::fast_share,
            )),
            of_curp(panel(
                Load::YcsbB,
                "in one round trip",
                &Measure::fast_share,
            )),
            recent,
        ],
        notes: vec![
            format!(
                "{CLIENTS} clients. Median of the repetitions, and their extremes. All processes and the \
                 clients share one machine."
            ),
            "A key is recent when one of the 100 commands before touched it.".into(),
        ],
    }
}
