//! DAST, as published and ordered ahead, beside the systems that it is compared with, without a CPU
//! model: what they wait for.

use super::panels::notes;
use super::{At, Claim, Data, Experiment, Measured, Record, Scale, Source, series};
use crate::figure::{Axes, Figure, Line, Mark, Panel, Scale as AxisScale};
use crate::systems::SystemName;
use crate::trial::{Cpu, PaymentSums, Trial, TrialOutcome, Workload};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "systems",
    about: "DAST, ordered ahead, Janus, SLOG, TAPIR and Detock under Payment, message delays alone",
    origin: "Not of the paper. TPC-C's Payment on 3 regions of 5 shards, a tenth of it across regions, \
             two fifths of that with a value from one region to another; message delays alone, so that \
             what a latency has beyond them is waiting. Once with sums as DAST's artifact has them, \
             where the warehouse's is never written, and once as TPC-C has them, where all payments of \
             a warehouse meet. What TAPIR gives up counts with its time.",
    swept: "case",
    plan,
    at,
    label,
    figure,
    judge: claims,
};

const CLIENTS: [u32; 3] = [1, 4, 16];
const SUMS: [PaymentSums; 2] = [PaymentSums::Published, PaymentSums::Tpcc];

fn plan(scale: Scale, seed: u64) -> Vec<Trial> {
    let (warm_up_ms, measured_ms) = scale.pick((400, 800), (500, 2_500), (1_000, 9_000));
    let clients: &[u32] = scale.pick(&[4], &CLIENTS, &CLIENTS);
    let trial = |sums, clients_per_shard| Trial {
        regions: 3,
        shards_per_region: scale.pick(2, 5, 5),
        clients_per_shard,
        outstanding: 1,
        workload: Workload::Payment { cross_region: 0.1 },
        payment_sums: sums,
        cpu: Cpu::Free,
        warm_up_ms,
        measured_ms,
        ..scale.trial()
    };
    let of_sums = |sums| clients.iter().map(move |clients| trial(sums, *clients));
    scale.repeated(seed, SUMS.into_iter().flat_map(of_sums).collect())
}

/// Cases are numbered: those of the artifact's sums, then those of TPC-C's.
fn at(trial: &Trial) -> f64 {
    let place = |found: Option<usize>| u32::try_from(found.unwrap_or(0)).unwrap_or(0);
    let sums = place(SUMS.iter().position(|sums| *sums == trial.payment_sums));
    let clients = place(
        CLIENTS
            .iter()
            .position(|clients| *clients == trial.clients_per_shard),
    );
    f64::from(1 + 3 * sums + clients)
}

fn label(experiment: &Experiment, trial: &Trial) -> String {
    let sums = match trial.payment_sums {
        PaymentSums::Published => "artifact's",
        PaymentSums::Tpcc => "TPC-C's",
    };
    let clients = trial.clients_per_shard;
    format!(
        "{}: {clients} clients a shard, {sums} sums",
        experiment.at(trial)
    )
}

fn points(data: &Data, system: SystemName, sums: PaymentSums) -> Vec<At<'_>> {
    let belongs =
        |record: &Record| record.trial.system == system && record.trial.payment_sums == sums;
    series(&data.records, belongs, |record| {
        record.trial.clients_per_shard.into()
    })
}

fn panel(
    data: &Data,
    sums: PaymentSums,
    what: &str,
    number: fn(&TrialOutcome) -> f64,
    marks: Vec<Mark>,
) -> Panel {
    let line = |system: SystemName| Line {
        name: system.title().into(),
        look: system.look(),
        points: points(data, system, sums)
            .iter()
            .map(|at| at.point(number))
            // Where nothing was answered there is nothing to draw.
            .filter(|point| point.low > 0.0)
            .collect(),
    };
    let lines = SystemName::COMPARED.into_iter().map(line);
    let whose = match sums {
        PaymentSums::Published => "artifact",
        PaymentSums::Tpcc => "TPC-C",
    };
    Panel {
        title: format!("{what}, {whose}"),
        x_label: "clients a shard".into(),
        y_label: "latency (ms)".into(),
        // TAPIR's tries take a hundred times what most transactions do.
        axes: Axes {
            y: AxisScale::Log,
            ..Axes::default()
        },
        lines: lines.filter(|line| !line.points.is_empty()).collect(),
        marks,
    }
}

fn figure(experiment: &Experiment, data: &Data) -> Figure {
    let of_sums = |sums| {
        let published = vec![Mark::level(100.0, "others: above")];
        [
            panel(
                data,
                sums,
                "IRT p50",
                |outcome| outcome.local.p50,
                Vec::new(),
            ),
            panel(
                data,
                sums,
                "IRT p99",
                |outcome| outcome.local.p99,
                published,
            ),
            panel(
                data,
                sums,
                "CRT p50",
                |outcome| outcome.cross_region.p50,
                Vec::new(),
            ),
            panel(
                data,
                sums,
                "CRT p99",
                |outcome| outcome.cross_region.p99,
                Vec::new(),
            ),
        ]
    };
    let mut notes = notes(experiment, data);
    notes.push("Payments add to the artifact's sums, or to TPC-C's".into());
    notes.push("Published: local tails of the others are above 100 ms".into());
    Figure {
        title: "Payment under DAST and what it is compared with".into(),
        columns: 5,
        legend_cell: 4,
        panels: SUMS.into_iter().flat_map(of_sums).collect(),
        notes,
    }
}

fn claims(_: &Experiment, data: &Data) -> Vec<Claim> {
    let tail = |system, sums| {
        let all = points(data, system, sums);
        let last = all.last()?;
        Some((last.x, last.median(|outcome| outcome.local.p99)))
    };
    let mut claims = Vec::new();
    for sums in SUMS {
        let which = match sums {
            PaymentSums::Published => "the artifact's",
            PaymentSums::Tpcc => "TPC-C's",
        };
        let says = format!("DAST's IRT tail is at most 16 ms, with {which} sums.");
        claims.push(match tail(SystemName::Dast, sums) {
            Some((clients, tail)) => Claim::judged(
                Source::Target,
                says,
                Measured::millis(tail, format!("{tail:.1} ms at {clients} clients a shard")),
                tail <= 16.0,
            ),
            None => Claim::open(Source::Target, says, "not run"),
        });
    }
    for system in [SystemName::Janus, SystemName::Slog, SystemName::Tapir] {
        let says = format!("The IRT tail of {} is above 100 ms.", system.title());
        claims.push(match tail(system, PaymentSums::Published) {
            Some((clients, tail)) => Claim::judged(
                Source::Artifact,
                says,
                Measured::millis(
                    tail,
                    format!("{tail:.1} ms at {clients} clients a shard, with the artifact's sums"),
                ),
                tail > 100.0,
            ),
            None => Claim::open(Source::Artifact, says, "not run"),
        });
    }
    claims.extend(beside_detock(data));
    claims
}

/// What has cross-region transactions in about one round trip, beside DAST, whose take two.
fn beside_detock(data: &Data) -> [Claim; 2] {
    let numbers = |system| {
        let all = points(data, system, PaymentSums::Tpcc);
        let last = all.last()?;
        let local = last.median(|outcome| outcome.local.p99);
        Some((local, last.median(|outcome| outcome.cross_region.p50)))
    };
    let says = [
        "Detock's CRT median is below DAST's, with TPC-C's sums.",
        "DAST's IRT tail is below Detock's, with TPC-C's sums.",
    ];
    let both = numbers(SystemName::Dast).zip(numbers(SystemName::Detock));
    let Some(((own_tail, own_median), (tail, median))) = both else {
        return says.map(|says| Claim::open(Source::Derived, says, "not run"));
    };
    let claim = |says, less: f64, more: f64, text: String| {
        let measured = Measured::ratio(less / more, text);
        Claim::judged(Source::Derived, says, measured, less < more)
    };
    let [medians, tails] = says;
    [
        claim(
            medians,
            median,
            own_median,
            format!("{median:.1} ms and {own_median:.1} ms"),
        ),
        claim(
            tails,
            own_tail,
            tail,
            format!("{own_tail:.1} ms and {tail:.1} ms"),
        ),
    ]
}
