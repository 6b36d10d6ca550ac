//! Reads and updates of keys some of which are hot.

use manxdb_lab::data::Data;
use manxdb_lab::experiment::{Claim, Design, Measured, Scale, Source};
use manxdb_lab::figure::{Axes, Figure, Line, Mark, Panel};

use super::found::{Wanted, judge, line, look};
use super::trial::{Carrier, Load, Measure, System, Trial};
use super::{Replicating, label};
use crate::lab::rack::open_if_small;

/// One way between processes, in microseconds: so much that the scheduler hides nothing.
const AWAY_US: u32 = 250;
/// Commands under way.
const CLIENTS: u32 = 16;
/// The published latencies of YCSB A at 0.99: 42 % below replication in two round trips.
const PUBLISHED_LATENCY: f64 = 0.58;
/// The published share of operations at 0.95 on a key that one of the last hundred had.
const PUBLISHED_RECENT: f64 = 0.16;

const CURP: System = System::Curp {
    faults: 3,
    carrier: Carrier::User,
};
const SYNCED: System = System::Synced { faults: 3 };
const SYSTEMS: [System; 3] = [System::Unreplicated, CURP, SYNCED];

/// The experiment.
pub(super) static EXPERIMENT: Design<Replicating> = Design {
    name: "curp-skew",
    about: "YCSB A and B over the exponent of Zipf: share of updates in one round trip, latency and rate",
    origin: "After figures 8 and 9 of CURP (Park and Ousterhout, NSDI 2019), on this machine's processes, \
             250 µs apart.",
    swept: "exponent of Zipf",
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
    let all = &[50, 60, 70, 80, 90, 95, 99][..];
    let exponents: &[u32] = scale.pick(&[99], all, all);
    let systems: &[System] = scale.pick(&SYSTEMS[1..2], &SYSTEMS, &SYSTEMS);
    let (repetitions, commands, keys) = scale.pick(
        (1, 200, 1_000),
        (3, 6_000, 1_000_000),
        (5, 50_000, 1_000_000),
    );
    let mut trials = Vec::new();
    for seed in (seed..).take(repetitions) {
        for theta in exponents {
            trials.extend(systems.iter().map(|system| Trial {
                system: *system,
                lan_us: AWAY_US,
                loads: vec![Load::YcsbA, Load::YcsbB],
                theta: *theta,
                clients: CLIENTS,
                commands,
                keys,
                seed,
            }));
        }
    }
    trials
}

fn wanted(system: System, load: Load, theta: u32) -> Wanted {
    Wanted {
        system,
        lan_us: AWAY_US,
        clients: CLIENTS,
        theta: Some(theta),
        load,
    }
}

fn claims(_: &Design<Replicating>, data: &Data<Replicating>) -> Vec<Claim> {
    let mean = |one: &Measure| one.all.mean;
    let latency = wanted(CURP, Load::YcsbA, 99).ratio(data, SYNCED, mean);
    let says =
        "YCSB A, Zipf 0.99: latencies are 42 % below those of replication in two round trips.";
    let latency = judge(Source::Paper, says, latency, |ratio| {
        let said = format!("{:+.0} %, means of all commands", (ratio - 1.0) * 100.0);
        (Measured::ratio(ratio, said), ratio <= PUBLISHED_LATENCY)
    });
    let recent = wanted(CURP, Load::YcsbA, 95).median(data, Measure::recent_share);
    let says = "Zipf 0.95, a million keys: 16 % of operations are on a key that one of the hundred before had.";
    let recent = judge(Source::Paper, says, recent, |share| {
        let said = format!("{:.1} %", share * 100.0);
        let is_so = (share - PUBLISHED_RECENT).abs() <= 0.02;
        (Measured::new(share, 0.0..=1.0, said), is_so)
    });
    let claims = vec![latency, fades(data), recent, even(data), reads(data)];
    open_if_small(data, claims)
}

/// How much more a cluster does with its witnesses.
fn gain(data: &Data<Replicating>, theta: u32) -> Result<f64, String> {
    wanted(CURP, Load::YcsbA, theta).ratio(data, SYNCED, Measure::rate)
}

fn fades(data: &Data<Replicating>) -> Claim {
    let says = "YCSB A: the gain in throughput fades with skew, from 0.8 on.";
    let both = gain(data, 50).and_then(|even| Ok((even, gain(data, 99)?)));
    judge(Source::Paper, says, both, |(even, hot)| {
        let said = format!("{even:.2} times at 0.5, {hot:.2} at 0.99");
        (Measured::ratio(even / hot, said), hot < even)
    })
}

fn even(data: &Data<Replicating>) -> Claim {
    let says = "YCSB A, Zipf 0.5: at least 95 % of updates are complete after one round trip.";
    let found = wanted(CURP, Load::YcsbA, 50).median(data, Measure::fast_share);
    judge(Source::Target, says, found, |share| {
        let said = format!("{:.1} %", share * 100.0);
        (Measured::new(share, 0.0..=1.0, said), share >= 0.95)
    })
}

fn reads(data: &Data<Replicating>) -> Claim {
    let says =
        "YCSB B, Zipf 0.99: the mean latency is at most 1.25 times that without replication.";
    let found = wanted(CURP, Load::YcsbB, 99);
    let found = found.ratio(data, System::Unreplicated, |one| one.all.mean);
    judge(Source::Target, says, found, |ratio| {
        let said = format!("{ratio:.2} times");
        (Measured::ratio(ratio, said), ratio <= 1.25)
    })
}

fn figure(_: &Design<Replicating>, data: &Data<Replicating>) -> Figure {
    let panel = |title: &str, y_label: &str, load, number: &dyn Fn(&Measure) -> f64| Panel {
        title: title.into(),
        x_label: EXPERIMENT.swept.into(),
        y_label: y_label.into(),
        axes: Axes::default(),
        lines: lines(data, load, number),
        marks: Vec::new(),
    };
    let only_curp = |mut panel: Panel| {
        panel.lines.retain(|line| line.name.starts_with("CURP"));
        panel
    };
    let fast = |title, load| {
        let share = |one: &Measure| one.fast_share() * 100.0;
        only_curp(panel(title, "updates in one round trip (%)", load, &share))
    };
    let mut over = panel(
        "YCSB A, over synced",
        "mean latency, times",
        Load::YcsbA,
        &|one| one.all.mean,
    );
    over.lines = over_synced(data);
    over.marks = vec![Mark::level(
        PUBLISHED_LATENCY,
        "published: at 0.99, RAMCloud",
    )];
    let mut recent = only_curp(panel(
        "keys used within 100 commands",
        "commands (%)",
        Load::YcsbA,
        &|one| one.recent_share() * 100.0,
    ));
    recent.marks = vec![Mark::curve(
        vec![
            (0.94, PUBLISHED_RECENT * 100.0),
            (0.96, PUBLISHED_RECENT * 100.0),
        ],
        "published: 16 % at 0.95",
    )];
    Figure {
        title: "Hot keys".into(),
        columns: 4,
        legend_cell: 7,
        panels: vec![
            fast("YCSB A", Load::YcsbA),
            panel("YCSB A", "mean latency (µs)", Load::YcsbA, &|one| {
                one.all.mean
            }),
            panel("YCSB A", "commands/s", Load::YcsbA, &Measure::rate),
            over,
            fast("YCSB B", Load::YcsbB),
            panel("YCSB B", "mean latency (µs)", Load::YcsbB, &|one| {
                one.all.mean
            }),
            recent,
        ],
        notes: vec![
            "f = 3; processes are 250 µs apart, there and back 500 µs; 16 commands under way."
                .into(),
            "Keys are not loaded before: a read of one that was never written answers nothing."
                .into(),
        ],
    }
}

fn lines(data: &Data<Replicating>, load: Load, number: &dyn Fn(&Measure) -> f64) -> Vec<Line> {
    let lines = SYSTEMS.map(|system| {
        line(
            data,
            (system.title(), look(system)),
            &|trial| trial.system == system,
            &at,
            (load, number),
        )
    });
    let lines = lines.into_iter();
    lines.filter(|line| !line.points.is_empty()).collect()
}

/// CURP's mean latency by that of the same cluster without its witnesses.
fn over_synced(data: &Data<Replicating>) -> Vec<Line> {
    let mut lines = lines(data, Load::YcsbA, &|one| one.all.mean);
    let synced = lines.iter().find(|line| line.name == SYNCED.title());
    let Some(synced) = synced.map(|line| line.points.clone()) else {
        return Vec::new();
    };
    lines.retain(|line| line.name == CURP.title());
    for line in &mut lines {
        line.points.retain_mut(|point| {
            let same = synced.iter().find(|one| one.x.total_cmp(&point.x).is_eq());
            let Some(same) = same.filter(|one| one.y > 0.0) else {
                return false;
            };
            for number in [&mut point.y, &mut point.low, &mut point.high] {
                *number /= same.y;
            }
            true
        });
    }
    lines
}
