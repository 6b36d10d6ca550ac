//! Rate and cost of SET, by clients.

use manxdb_lab::experiment::data::Data;
use manxdb_lab::experiment::{Claim, Design, Measured, Scale, Source};
use manxdb_lab::figure::{Axes, Figure, Line, Mark, Panel, Scale as Along};

use super::found::{Wanted, judge, lines};
use super::trial::{Carrier, Load, Measure, System, Trial};
use super::{Replicating, label};
use crate::lab::rack::open_if_small;

/// Clients that most claims are about.
const MANY: u32 = 50;
/// Up to this fdatasync, 2.5 times the rate of AOF always is the target; from the other on, 5 times.
const FDATASYNC_MS: (f64, f64) = (0.1, 0.3);
/// CURP's throughput with one witness over Redis without durability, as published.
const REDIS_CURP: f64 = 0.82;

const ONE_GENERIC: System = System::Curp {
    faults: 1,
    carrier: Carrier::XdpGeneric,
};
const THREE: System = System::Curp {
    faults: 3,
    carrier: Carrier::User,
};
const SYNCED_THREE: System = System::Synced { faults: 3 };

/// In the order in which they take turns.
const SYSTEMS: [System; 7] = [
    System::Unreplicated,
    System::CURP,
    ONE_GENERIC,
    THREE,
    System::SYNCED,
    SYNCED_THREE,
    System::RedisAlways,
];

/// The experiment.
pub(super) static EXPERIMENT: Design<Replicating> = Design {
    name: "curp-throughput",
    about: "SETs a second and CPU of master, backups and witnesses over clients, beside redis-server with AOF always",
    origin: "After figures 6, 14 and 16 of CURP (Park and Ousterhout, NSDI 2019), on this machine's \
             processes.",
    swept: "clients",
    plan,
    at,
    label,
    figure,
    judge: claims,
};

fn at(trial: &Trial) -> f64 {
    f64::from(trial.clients)
}

fn plan(scale: Scale, seed: u64) -> Vec<Trial> {
    let systems: &[System] = scale.pick(&[System::CURP, System::RedisAlways], &SYSTEMS, &SYSTEMS);
    let clients: &[u32] = scale.pick(&[2], &[1, 10, MANY], &[1, 2, 5, 10, 20, MANY]);
    let repetitions = scale.pick(1, 5, 10);
    let mut trials = Vec::new();
    for seed in (seed..).take(repetitions) {
        for clients in clients {
            trials.extend(systems.iter().map(|system| Trial {
                system: *system,
                lan_us: 0,
                loads: vec![Load::Set],
                theta: 0,
                clients: *clients,
                commands: scale.pick(200, 2_000 + 200 * clients, 10_000 + 2_000 * clients),
                keys: scale.pick(1_000, 100_000, 100_000),
                seed,
            }));
        }
    }
    trials
}

fn wanted(system: System, clients: u32) -> Wanted {
    Wanted {
        system,
        lan_us: 0,
        clients,
        theta: None,
        load: Load::Set,
    }
}

fn claims(_: &Design<Replicating>, data: &Data<Replicating>) -> Vec<Claim> {
    let mut claims = targets(data);
    claims.extend(published(data));
    open_if_small(data, claims)
}

fn targets(data: &Data<Replicating>) -> Vec<Claim> {
    let cpu = |says: &str, system| {
        let found = wanted(system, MANY).ratio(data, System::RedisAlways, Measure::cluster_us);
        judge(Source::Target, says, found, |ratio| {
            let said = format!("{ratio:.2} times");
            (Measured::ratio(ratio, said), ratio <= 1.0)
        })
    };
    vec![
        cpu(
            "CPU of master, backup and witness for a SET, 50 clients, f = 1: at most that of redis-server with \
             AOF always.",
            System::CURP,
        ),
        cpu(
            "The same with the witness in XDP behind the driver.",
            ONE_GENERIC,
        ),
        rate_beside_aof(data),
    ]
}

/// What has to be reached depends on the disk.
fn rate_beside_aof(data: &Data<Replicating>) -> Claim {
    let says = "One client, f = 1: at least 2.5 times the SETs a second of redis-server with AOF always where \
                fdatasync takes at most 0.1 ms, at least 5 times where it takes 0.3 ms or more.";
    let ratio = wanted(System::CURP, 1).timed_ratio(data, System::RedisAlways, Measure::rate);
    let ratio = match ratio {
        Ok(ratio) => ratio,
        Err(why) => return Claim::open(Source::Target, says, why),
    };
    let of_one =
        |record: &&manxdb_lab::experiment::data::Record<Replicating>| record.trial.clients == 1;
    let records = data.records.iter().filter(of_one);
    let mut took: Vec<f64> = records.filter_map(|one| one.outcome.fdatasync_ms).collect();
    took.sort_by(f64::total_cmp);
    let took = took.get(took.len() / 2).copied().unwrap_or(f64::NAN);
    let said = format!("{ratio:.1} times, fdatasync {took:.2} ms");
    let least = if took <= FDATASYNC_MS.0 {
        2.5
    } else if took >= FDATASYNC_MS.1 {
        5.0
    } else {
        return Claim::open(
            Source::Target,
            says,
            format!("{said}: no target is set for that disk"),
        );
    };
    Claim::judged(
        Source::Target,
        says,
        Measured::ratio(ratio, said),
        ratio >= least,
    )
}

fn published(data: &Data<Replicating>) -> Vec<Claim> {
    let least = |says: &str, (wanted, other): (Wanted, System), least: f64| {
        let found = wanted.timed_ratio(data, other, Measure::rate);
        judge(Source::Paper, says, found, |ratio| {
            let said = format!("{ratio:.2} times");
            (Measured::ratio(ratio, said), ratio >= least)
        })
    };
    let messages = wanted(System::CURP, MANY).ratio(data, System::SYNCED, Measure::bytes_each);
    let says = "RAMCloud, f = 3: witnesses add 75 % to the bytes of updates.";
    let bytes = wanted(THREE, MANY).ratio(data, SYNCED_THREE, Measure::bytes_each);
    let bytes = judge(Source::Paper, says, bytes, |ratio| {
        let said = format!("{:+.0} %", (ratio - 1.0) * 100.0);
        (Measured::ratio(ratio, said), ratio <= 1.75)
    });
    let says = "The same, f = 1: at most 75 % more bytes than the cluster without its witness.";
    let bytes_of_one = judge(Source::Paper, says, messages, |ratio| {
        let said = format!("{:+.0} %", (ratio - 1.0) * 100.0);
        (Measured::ratio(ratio, said), ratio <= 1.75)
    });
    vec![
        least(
            "Redis, 1 witness: 82 % of the SETs a second of a server without durability, 50 clients.",
            (wanted(System::CURP, MANY), System::Unreplicated),
            REDIS_CURP,
        ),
        least(
            "RAMCloud, f = 3: 3.8 times the writes a second of replication in two round trips, 50 clients.",
            (wanted(THREE, MANY), SYNCED_THREE),
            3.8,
        ),
        least(
            "RAMCloud: two more witnesses and backups cost 12 % of the writes a second (6 % each), 50 \
             clients.",
            (wanted(THREE, MANY), System::CURP),
            0.88,
        ),
        bytes,
        bytes_of_one,
    ]
}

fn figure(_: &Design<Replicating>, data: &Data<Replicating>) -> Figure {
    let panel = |title: &str, y_label: &str, number: &dyn Fn(&Measure) -> f64| Panel {
        title: title.into(),
        x_label: EXPERIMENT.swept.into(),
        y_label: y_label.into(),
        axes: Axes {
            x: Along::Log,
            ..Axes::default()
        },
        lines: lines(data, &SYSTEMS, &at, (Load::Set, number)),
        marks: Vec::new(),
    };
    let mut over = panel("rate over unreplicated", "times", &Measure::rate);
    over.lines = over_unreplicated(data);
    over.marks = vec![Mark::level(REDIS_CURP, "published: Redis, 1 witness, 0.82")];
    let without_redis = |mut panel: Panel| {
        panel.lines.retain(|line| !line.name.contains("Redis"));
        panel
    };
    Figure {
        title: "SETs of many clients".into(),
        columns: 3,
        legend_cell: 5,
        panels: vec![
            panel("rate", "SETs/s", &Measure::rate),
            over,
            panel(
                "master, backups and witnesses",
                "CPU of a SET (µs)",
                &Measure::cluster_us,
            ),
            panel("latency", "p50 (µs)", &|one| one.all.p50),
            without_redis(panel("messages", "messages a SET", &Measure::messages_each)),
        ],
        notes: vec![
            "Median of the repetitions, and their extremes. All processes and the clients share one machine."
                .into(),
            "The CPU of an XDP program is in who sends the packet: the client, which is not counted here, \
             and the master."
                .into(),
        ],
    }
}

/// Each point by the median of the same number of clients without replication.
fn over_unreplicated(data: &Data<Replicating>) -> Vec<Line> {
    let mut lines = lines(data, &SYSTEMS, &at, (Load::Set, &Measure::rate));
    let base: Vec<(f64, f64)> = lines
        .iter()
        .filter(|line| line.name == System::Unreplicated.title())
        .flat_map(|line| line.points.iter().map(|point| (point.x, point.y)))
        .collect();
    for line in &mut lines {
        line.points.retain_mut(|point| {
            let same = base.iter().find(|(x, _)| x.total_cmp(&point.x).is_eq());
            let Some((_, rate)) = same.filter(|(_, rate)| *rate > 0.0) else {
                return false;
            };
            for number in [&mut point.y, &mut point.low, &mut point.high] {
                *number /= rate;
            }
            true
        });
    }
    lines.retain(|line| !line.points.is_empty() && line.name != System::Unreplicated.title());
    lines
}
