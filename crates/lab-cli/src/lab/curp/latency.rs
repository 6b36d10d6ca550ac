//! Latency of SET, one at a time.

use manxdb_lab::experiment::data::Data;
use manxdb_lab::experiment::{Claim, Design, Measured, Scale, Source};
use manxdb_lab::figure::{Axes, Figure, Line, Mark, Panel};

use super::found::{Wanted, judge, line, look};
use super::trial::{Carrier, Load, Measure, System, Trial};
use super::{MeasureNumber, Replicating, label};
use crate::lab::rack::open_if_small;

/// One way, where processes stand apart, in microseconds.
const AWAY_US: u32 = 250;
/// CURP's median of a write in RAMCloud, f = 3, over that without replication: 7.1 µs and 6.1 µs.
const RAMCLOUD_CURP: f64 = 7.1 / 6.1;
/// The same of RAMCloud's own replication: 14 µs.
const RAMCLOUD_ORIGINAL: f64 = 14.0 / 6.1;

/// The experiment.
pub(super) static EXPERIMENT: Design<Replicating> = Design {
    name: "curp-latency",
    about: "latency of SET, one at a time: without replication, by CURP with f = 1, 2, 3 and each \
            carrier of witnesses, and synced in two round trips",
    origin: "After figures 5 and 13 of CURP (Park and Ousterhout, NSDI 2019) and the end-to-end latencies \
             of ARGUS (APNet 2019), on this machine's processes.",
    swept: "f",
    plan,
    at,
    label,
    figure,
    judge: claims,
};

fn at(trial: &Trial) -> f64 {
    f64::from(trial.system.faults())
}

fn plan(scale: Scale, seed: u64) -> Vec<Trial> {
    let faults: &[u32] = scale.pick(&[1], &[1, 2, 3], &[1, 2, 3]);
    let carriers: &[Carrier] = scale.pick(
        &[Carrier::User, Carrier::XdpGeneric],
        &[Carrier::User, Carrier::XdpGeneric, Carrier::Xdp],
        &[Carrier::User, Carrier::XdpGeneric, Carrier::Xdp],
    );
    let ways: &[u32] = scale.pick(&[0], &[0, AWAY_US], &[0, AWAY_US]);
    let (repetitions, commands, keys) =
        scale.pick((1, 100, 1_000), (5, 1_500, 100_000), (10, 20_000, 100_000));
    let mut systems = vec![System::Unreplicated];
    for faults in faults {
        systems.extend(carriers.iter().map(|carrier| System::Curp {
            faults: *faults,
            carrier: *carrier,
        }));
        systems.extend((scale != Scale::Smoke).then_some(System::Synced { faults: *faults }));
    }
    let mut trials = Vec::new();
    for seed in (seed..).take(repetitions) {
        for lan_us in ways {
            // Systems take turns, so that what else the machine does meets all of them.
            trials.extend(systems.iter().map(|system| Trial {
                system: *system,
                lan_us: *lan_us,
                loads: vec![Load::Set],
                theta: 0,
                clients: 1,
                commands,
                keys,
                seed,
            }));
        }
    }
    trials
}

fn wanted(system: System, lan_us: u32) -> Wanted {
    Wanted {
        system,
        lan_us,
        clients: 1,
        theta: None,
        load: Load::Set,
    }
}

fn curp(faults: u32, carrier: Carrier) -> System {
    System::Curp { faults, carrier }
}

fn p50(measure: &Measure) -> f64 {
    measure.all.p50
}

fn claims(_: &Design<Replicating>, data: &Data<Replicating>) -> Vec<Claim> {
    let mut claims = targets(data);
    claims.extend(published(data));
    claims.extend(counted(data));
    open_if_small(data, claims)
}

/// At most so many times the median without replication.
fn at_most(
    data: &Data<Replicating>,
    source: Source,
    says: &str,
    (wanted, most): (Wanted, f64),
) -> Claim {
    let found = wanted.timed_ratio(data, System::Unreplicated, p50);
    judge(source, says, found, |ratio| {
        let said = format!("{ratio:.2} times");
        (Measured::ratio(ratio, said), ratio <= most)
    })
}

fn targets(data: &Data<Replicating>) -> Vec<Claim> {
    let target = |says: &str, system, lan_us, most| {
        at_most(data, Source::Target, says, (wanted(system, lan_us), most))
    };
    let generic = Carrier::XdpGeneric;
    let synced = System::Synced { faults: 1 };
    let ratio = wanted(synced, AWAY_US).timed_ratio(data, System::Unreplicated, p50);
    let says = "250 µs one way, synced, f = 1: at least 1.9 times the median without replication.";
    let twice = judge(Source::Target, says, ratio, |ratio| {
        let said = format!("{ratio:.2} times");
        (Measured::ratio(ratio, said), ratio >= 1.9)
    });
    vec![
        target(
            "Witness in a process, f = 1: at most 1.5 times the median without replication.",
            curp(1, Carrier::User),
            0,
            1.5,
        ),
        target(
            "Witness in XDP, here behind the driver, f = 1: at most 1.15 times the median without \
             replication.",
            curp(1, generic),
            0,
            1.15,
        ),
        target(
            "Witnesses in XDP, here behind the driver, f = 3: at most 1.35 times the median without \
             replication.",
            curp(3, generic),
            0,
            1.35,
        ),
        target(
            "Witness in XDP in the driver, f = 1: at most 1.15 times the median without replication.",
            curp(1, Carrier::Xdp),
            0,
            1.15,
        ),
        target(
            "250 µs one way, witness in a process, f = 1: at most 1.05 times the median without \
             replication.",
            curp(1, Carrier::User),
            AWAY_US,
            1.05,
        ),
        target(
            "250 µs one way, witnesses in a process each, f = 3: at most 1.05 times the median without \
             replication.",
            curp(3, Carrier::User),
            AWAY_US,
            1.05,
        ),
        twice,
    ]
}

fn published(data: &Data<Replicating>) -> Vec<Claim> {
    let user = Carrier::User;
    let original = wanted(System::Synced { faults: 3 }, 0);
    let original = original.timed_ratio(data, System::Unreplicated, p50);
    let says =
        "RAMCloud, f = 3: replication in two round trips takes 2.3 times the median without any.";
    let original = judge(Source::Paper, says, original, |ratio| {
        let said = format!("{ratio:.2} times");
        (
            Measured::ratio(ratio, said),
            ratio >= RAMCLOUD_ORIGINAL * 0.9,
        )
    });
    let third = wanted(curp(3, user), 0);
    let generic = curp(3, Carrier::XdpGeneric);
    let against = |says: &str, number: MeasureNumber, least: f64| {
        let found = third.timed_ratio(data, generic, number);
        judge(Source::Paper, says, found, |ratio| {
            let said = format!("{ratio:.2} times, the data plane behind the driver");
            (Measured::ratio(ratio, said), ratio >= least)
        })
    };
    vec![
        at_most(
            data,
            Source::Paper,
            "RAMCloud, f = 3: CURP takes 1.16 times the median without replication.",
            (third, RAMCLOUD_CURP),
        ),
        original,
        at_most(
            data,
            Source::Paper,
            "Redis: one witness adds 12 % to the median without replication.",
            (wanted(curp(1, user), 0), 1.12),
        ),
        against(
            "ARGUS, 3 witnesses: end to end, processes take 1.39 times the mean of the data plane.",
            |one| one.all.mean,
            1.39,
        ),
        against(
            "ARGUS, 3 witnesses: end to end, processes take 1.8 times the 99.9th percentile of the data \
             plane.",
            |one| one.all.p999,
            1.8,
        ),
    ]
}

/// What no other load of the machine changes much.
fn counted(data: &Data<Replicating>) -> Vec<Claim> {
    let one_trip = |says: &str, system, lan_us| {
        let found = wanted(system, lan_us).median(data, Measure::fast_share);
        judge(Source::Target, says, found, |share| {
            let said = format!("{:.2} %", share * 100.0);
            (Measured::new(share, 0.0..=1.0, said), share >= 0.99)
        })
    };
    vec![
        one_trip(
            "f = 1, witness in a process: at least 99 % of SETs are complete after one round trip.",
            curp(1, Carrier::User),
            0,
        ),
        one_trip(
            "f = 3, witnesses in a process each: at least 99 % of SETs are complete after one round trip.",
            curp(3, Carrier::User),
            0,
        ),
        one_trip(
            "f = 3, witnesses in XDP behind the driver: at least 99 % of SETs are complete after one round \
             trip.",
            curp(3, Carrier::XdpGeneric),
            0,
        ),
        one_trip(
            "f = 3, 250 µs one way: at least 99 % of SETs are complete after one round trip.",
            curp(3, Carrier::User),
            AWAY_US,
        ),
    ]
}

fn figure(_: &Design<Replicating>, data: &Data<Replicating>) -> Figure {
    let none = |lan_us| wanted(System::Unreplicated, lan_us).median(data, p50);
    let over = none(0).unwrap_or(f64::NAN);
    let panel = |title: &str, y_label: &str, lan_us, number: &dyn Fn(&Measure) -> f64| Panel {
        title: title.into(),
        x_label: "f".into(),
        y_label: y_label.into(),
        axes: Axes::default(),
        lines: lines(data, lan_us, number),
        marks: Vec::new(),
    };
    let mut ratio = panel("no distance, over unreplicated", "p50, times", 0, &|one| {
        one.all.p50 / over
    });
    if over.is_nan() {
        ratio.lines.clear();
    }
    ratio.marks = vec![
        Mark::level(RAMCLOUD_CURP, "published: CURP in RAMCloud, f = 3"),
        Mark::level(
            RAMCLOUD_ORIGINAL,
            "published: two round trips in RAMCloud, f = 3",
        ),
    ];
    Figure {
        title: "Latency of SET, one at a time".into(),
        columns: 3,
        legend_cell: 5,
        panels: vec![
            panel("no distance", "p50 (µs)", 0, &p50),
            ratio,
            panel("no distance", "p99 (µs)", 0, &|one| one.all.p99),
            panel("250 µs one way", "p50 (µs)", AWAY_US, &p50),
            panel("no distance", "messages a SET", 0, &Measure::messages_each),
        ],
        notes: vec![
            "f: backups, and as many witnesses. unreplicated (f = 0) is the same program.".into(),
            "Median of the repetitions, and their extremes. All processes share one machine."
                .into(),
        ],
    }
}

fn lines(data: &Data<Replicating>, lan_us: u32, number: &dyn Fn(&Measure) -> f64) -> Vec<Line> {
    let kinds: [(&str, System); 5] = [
        ("unreplicated", System::Unreplicated),
        ("CURP, user", curp(1, Carrier::User)),
        ("CURP, xdp-generic", curp(1, Carrier::XdpGeneric)),
        ("CURP, xdp", curp(1, Carrier::Xdp)),
        ("synced", System::Synced { faults: 1 }),
    ];
    let lines = kinds.map(|(name, kind)| {
        let is_kind = |trial: &Trial| trial.lan_us == lan_us && look(trial.system) == look(kind);
        line(
            data,
            (name.to_owned(), look(kind)),
            &is_kind,
            &at,
            (Load::Set, number),
        )
    });
    let lines = lines.into_iter();
    lines.filter(|line| !line.points.is_empty()).collect()
}
