//! Checkouts a second over clients: the paper's Figure 6, as far as one machine shows it, and as far
//! as its published prices do.

use manxdb_lab::experiment::data::Data;
use manxdb_lab::experiment::{Claim, Design, Measured, Scale, Source};
use manxdb_lab::figure::{Axes, Figure, Mark, Panel};

use super::systems::{RATIOS, System, clients, compared, over_clients, panel, panel_of, simulated};
use super::{Shopping, Trial, aborted_percent, label, model, open_if_small};
use crate::bench::checkout::Outcome;
use crate::lab::fill::judge;

/// The experiment.
pub static EXPERIMENT: Design<Shopping> = Design {
    name: "rsi-scale",
    about: "checkouts a second over clients, on one-sided memory and by two-phase commit",
    origin: "Figure 6 of Binnig et al., \"The End of Slow Networks\": eight nodes with InfiniBand \
             there; processes and shared memory of one machine here, and those eight nodes simulated.",
    swept: "clients",
    plan,
    at: clients,
    label,
    figure,
    judge: claims,
};

fn plan(scale: Scale, seed: u64) -> Vec<Trial> {
    let clients: &[u16] = scale.pick(&[1], &[1, 2, 4], &[1, 2, 4, 8, 16]);
    let products = scale.pick(3_000, 1_000_000, 1_000_000);
    let mut trials = over_clients(scale, clients, products, seed);
    let clients: &[u16] = scale.pick(&[1, 40, 70], &PUBLISHED, &PUBLISHED);
    trials.extend(simulated(scale, clients, seed));
    trials
}

/// Clients of the published figure.
const PUBLISHED: [u16; 8] = [1, 10, 20, 30, 40, 50, 60, 70];

/// Thousands of checkouts a second, read off the paper's logarithmic axis: ±20 %, but for what its
/// text says of 70 clients.
fn marks() -> Vec<Mark> {
    let curve = |points: &[(f64, f64)], text: &str| Mark::curve(points.to_vec(), text);
    vec![
        curve(
            &[(1.0, 80.0), (10.0, 500.0), (70.0, 1_800.0)],
            "published: RSI",
        ),
        curve(&[(40.0, 1_100.0), (70.0, 320.0)], "two-sided"),
        curve(&[(1.0, 2.6), (10.0, 17.0), (70.0, 32.0)], "Ethernet"),
        curve(&[(1.0, 4.0), (10.0, 9.0), (70.0, 22.0)], "IPoIB"),
    ]
}

fn figure(design: &Design<Shopping>, data: &Data<Shopping>) -> Figure {
    let panel = |title, y_label, axes, number| {
        panel(data, clients, (title, design.swept, y_label), axes, number)
    };
    let simulated = |titles: (&str, &str), number, marks| Panel {
        marks,
        ..panel_of(
            &System::SIMULATED,
            data,
            clients,
            (titles.0, design.swept, titles.1),
            RATIOS,
            number,
        )
    };
    Figure {
        title: "Checkouts of three products out of a million".into(),
        columns: 3,
        legend_cell: 7,
        panels: vec![
            panel(
                "Throughput, measured here",
                "checkouts/s",
                RATIOS,
                Outcome::rate,
            ),
            simulated(
                ("Simulated: eight machines", "1,000 checkouts/s"),
                |run| run.rate() / 1e3,
                marks(),
            ),
            panel("Median latency of a try", "latency (µs)", RATIOS, |run| {
                run.p50_us
            }),
            panel("99th percentile of a try", "latency (µs)", RATIOS, |run| {
                run.p99_us
            }),
            panel(
                "CPU of a checkout, all processes",
                "CPU (µs)",
                RATIOS,
                Outcome::cpu_us,
            ),
            panel(
                "Tries that abort",
                "of all (%)",
                Axes::default(),
                aborted_percent,
            ),
            simulated(
                ("Simulated: median latency", "latency (µs)"),
                |run| run.p50_us,
                Vec::new(),
            ),
        ],
        notes: vec![
            "Processes of one machine: servers and clients share its cores.".into(),
            "Memory is shared by processes; sockets are of the loopback interface.".into(),
            "Simulated (dashed, hollow): published prices on the published machines, message by \
             message."
                .into(),
        ],
    }
}

fn claims(_: &Design<Shopping>, data: &Data<Shopping>) -> Vec<Claim> {
    let compare =
        |source, says: &str, (one, other): (System, System), holds: fn(&[(f64, f64)]) -> bool| {
            let ratios = one.ratios(other, data, clients, Outcome::rate);
            compared((source, says), &ratios, "clients", holds)
        };
    let mut claims = vec![
        compare(
            Source::Target,
            "At least 50 times the checkouts of trad-si, nothing logged.",
            (System::RSI, System::TRAD),
            |ratios| ratios.iter().all(|(_, ratio)| *ratio >= 50.0),
        ),
        compare(
            Source::Target,
            "Logging on two servers costs at most half of the checkouts.",
            (System::LOGGED, System::RSI),
            |ratios| ratios.iter().all(|(_, ratio)| *ratio >= 0.5),
        ),
        peaks(
            data,
            "RSI: 56 times the checkouts of Trad-SI over Ethernet, at the peak of both.",
            (System::RSI, System::TRAD),
            56.0,
        ),
        peaks(
            data,
            "RSI: 1.6 times the checkouts of the two-sided variant, at the peak of both.",
            (System::RSI, System::TWO_SIDED),
            1.6,
        )
        .of_another_load(
            "servers of the variant share two cores with clients here, and have cores of their own there",
        ),
    ];
    claims.extend(model::claims(data));
    open_if_small(data, claims)
}

/// A claim about the most that each of two systems does, with however many clients that is.
fn peaks(data: &Data<Shopping>, says: &str, (one, other): (System, System), least: f64) -> Claim {
    let both = one
        .peak(data, Outcome::rate)
        .zip(other.peak(data, Outcome::rate));
    judge(Source::Paper, says, both, |(one, other)| {
        let ratio = one.1 / other.1;
        let said = format!(
            "{:.0} checkouts/s with {} clients, {:.0} with {}: {ratio:.1} times",
            one.1, one.0, other.1, other.0
        );
        (Measured::ratio(ratio, said), ratio >= least)
    })
}
