//! What ManxDB's DAST aims at, condition by condition; whether it holds is judged in [`claims`].

mod claims;

use super::panels::notes;
use super::{At, Data, Experiment, Record, Scale, series};
use crate::figure::{Axes, Figure, Line, Mark, Panel};
use crate::systems::SystemName;
use crate::trial::{Cpu, PaymentSums, Trial, TrialOutcome, Workload};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "targets",
    about: "ManxDB's targets for DAST, as published and ordered ahead",
    origin: "Not of the paper. TPC-C's Payment on 3 regions of 5 shards with 16 clients each, a tenth \
             of it across regions, two fifths of that with a value from one region to another; from \
             there one thing is changed at a time. Each case with message delays alone, where \
             latencies are the protocol's, and with the CPU model. The last two cases are reads of lists \
             and appends to them, a fifth of which wait for values on lists that local calls read. Each \
             under DAST and with cross-region transactions ordered ahead.",
    swept: "case",
    plan,
    at,
    label,
    figure,
    judge: claims::claims,
};

/// Where a case differs from the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Case {
    jitter_ms: u32,
    crt_percent: u32,
    shards: u32,
    cpu: Cpu,
    /// Local calls touch rows that dependent cross-region ones use.
    meets: bool,
}

/// Lists of a shard where local calls meet dependent ones.
const LISTS: u32 = 32;

/// Systems whose tails are compared.
const SYSTEMS: [SystemName; 2] = [SystemName::Dast, SystemName::Ahead];

const BASE: Case = Case {
    meets: false,
    jitter_ms: 0,
    crt_percent: 10,
    shards: 5,
    cpu: Cpu::Free,
};

fn cases() -> Vec<Case> {
    let mut found = Vec::new();
    for cpu in [Cpu::Free, Cpu::Modelled] {
        let base = Case { cpu, ..BASE };
        let jitters = [0, 10, 20, 30].map(|jitter_ms| Case { jitter_ms, ..base });
        let shares = [30, 50, 70, 90].map(|crt_percent| Case {
            crt_percent,
            ..base
        });
        let shapes = [3, 7, 10].map(|shards| Case { shards, ..base });
        found.extend(jitters.into_iter().chain(shares).chain(shapes));
    }
    found.extend([Cpu::Free, Cpu::Modelled].map(|cpu| Case {
        cpu,
        meets: true,
        ..BASE
    }));
    found
}

impl Case {
    fn of(trial: &Trial) -> Self {
        let share = match trial.workload {
            Workload::Payment { cross_region } => cross_region,
            Workload::Append { .. } => 0.1,
            Workload::Tpcc | Workload::Tpca { .. } => 0.0,
        };
        let percents = [10, 30, 50, 70, 90];
        let near = |percent: &u32| (f64::from(*percent) / 100.0 - share).abs() < 1e-9;
        Self {
            jitter_ms: trial.wan_jitter_ms,
            crt_percent: percents.into_iter().find(near).unwrap_or(0),
            shards: trial.shards_per_region,
            cpu: trial.cpu,
            meets: matches!(trial.workload, Workload::Append { .. }),
        }
    }

    fn trial(self, scale: Scale) -> Trial {
        // Cases compare tails of the same clients, so the shape is the same at all scales.
        let (warm_up_ms, measured_ms) = scale.pick((400, 800), (500, 2_500), (1_000, 9_000));
        Trial {
            regions: 3,
            shards_per_region: self.shards,
            clients_per_shard: 16,
            outstanding: 1,
            workload: if self.meets {
                Workload::Append { lists: LISTS }
            } else {
                let cross_region = f64::from(self.crt_percent) / 100.0;
                Workload::Payment { cross_region }
            },
            payment_sums: PaymentSums::Tpcc,
            wan_jitter_ms: self.jitter_ms,
            cpu: self.cpu,
            warm_up_ms,
            measured_ms,
            ..scale.trial()
        }
    }
}

fn plan(scale: Scale, seed: u64) -> Vec<Trial> {
    // The ends of each range decide; a smoke test has nothing else.
    let decides = |case: &Case| {
        *case == BASE
            || *case
                == Case {
                    cpu: Cpu::Modelled,
                    ..BASE
                }
            || {
                let changed = [
                    (case.jitter_ms, 30),
                    (case.crt_percent, 90),
                    (case.shards, 3),
                    (case.shards, 10),
                ];
                case.cpu == Cpu::Free && (case.meets || changed.iter().any(|(is, end)| is == end))
            }
    };
    let cases = cases().into_iter();
    let cases = cases.filter(|case| scale != Scale::Smoke || decides(case));
    // They are ours alone.
    let trials = cases.map(|case| case.trial(scale)).collect();
    scale.repeated_of(&SYSTEMS, seed, trials)
}

#[allow(clippy::cast_precision_loss)] // two dozen cases
fn at(trial: &Trial) -> f64 {
    let place = cases().iter().position(|case| *case == Case::of(trial));
    place.map_or(0.0, |place| (place + 1) as f64)
}

fn label(experiment: &Experiment, trial: &Trial) -> String {
    let case = Case::of(trial);
    let cpu = match case.cpu {
        Cpu::Free => "delays only",
        Cpu::Modelled => "CPU model",
    };
    if case.meets {
        return format!(
            "{}: lists that dependent and local calls share, {cpu}",
            experiment.at(trial)
        );
    }
    format!(
        "{}: ±{} ms, {} % CRT, {} shards a region, {cpu}",
        experiment.at(trial),
        case.jitter_ms,
        case.crt_percent,
        case.shards
    )
}

/// One of the three things that are changed.
#[derive(Clone, Copy)]
struct Sweep {
    x_label: &'static str,
    x: fn(Case) -> u32,
    belongs: fn(Case) -> bool,
}

const SWEEPS: [Sweep; 3] = [
    Sweep {
        x_label: "jitter between regions (± ms)",
        x: |case| case.jitter_ms,
        belongs: |case| case.crt_percent == BASE.crt_percent && case.shards == BASE.shards,
    },
    Sweep {
        x_label: "cross-region transactions (%)",
        x: |case| case.crt_percent,
        belongs: |case| case.jitter_ms == BASE.jitter_ms && case.shards == BASE.shards,
    },
    Sweep {
        x_label: "shards per region",
        x: |case| case.shards,
        belongs: |case| case.jitter_ms == BASE.jitter_ms && case.crt_percent == BASE.crt_percent,
    },
];

fn along(data: &Data, sweep: Sweep, system: SystemName, cpu: Cpu) -> Vec<At<'_>> {
    let case = |record: &Record| Case::of(&record.trial);
    let belongs = |case: Case| case.cpu == cpu && !case.meets && (sweep.belongs)(case);
    series(
        &data.records,
        |record| record.trial.system == system && belongs(case(record)),
        |record| (sweep.x)(case(record)).into(),
    )
}

fn panel(
    data: &Data,
    sweep: Sweep,
    kind: &str,
    number: fn(&TrialOutcome) -> f64,
    marks: Vec<Mark>,
) -> Panel {
    let line = |(system, cpu): (SystemName, Cpu)| Line {
        name: match cpu {
            Cpu::Free => format!("{}, message delays only", system.title()),
            Cpu::Modelled => format!("{}, CPU model on", system.title()),
        },
        look: match cpu {
            Cpu::Free => system.look(),
            Cpu::Modelled => system.look().secondary(),
        },
        points: along(data, sweep, system, cpu)
            .iter()
            .map(|at| at.point(number))
            .collect(),
    };
    let both = |system| [(system, Cpu::Free), (system, Cpu::Modelled)];
    let lines = SYSTEMS.into_iter().flat_map(both);
    let lines = lines.map(line).filter(|line| !line.points.is_empty());
    Panel {
        title: format!("{kind}, 99th percentile"),
        x_label: sweep.x_label.into(),
        y_label: "latency (ms)".into(),
        axes: Axes::default(),
        lines: lines.collect(),
        marks,
    }
}

fn figure(experiment: &Experiment, data: &Data) -> Figure {
    let local = SWEEPS.map(|sweep| {
        let marks = vec![Mark::level(16.0, "target: 16 ms")];
        panel(data, sweep, "IRT", |outcome| outcome.local.p99, marks)
    });
    let cross = SWEEPS.map(|sweep| {
        let marks = vec![
            // One text for both: a second one would stand beside the wrong level.
            Mark::level(225.0, "targets: 225; ahead 125"),
            Mark::level(125.0, ""),
        ];
        let number = |outcome: &TrialOutcome| outcome.cross_region.p99;
        panel(data, sweep, "CRT", number, marks)
    });
    Figure {
        title: "Payment, 16 clients a shard: tails as one thing changes".into(),
        columns: 4,
        legend_cell: 3,
        panels: local.into_iter().chain(cross).collect(),
        notes: notes(experiment, data),
    }
}
