//! Checkouts a second over clients: the paper's Figure 6, as far as one machine shows it, and as far
//! as its published prices do.

use manxdb_lab::data::Data;
use manxdb_lab::experiment::{Claim, Design, Scale, Source};
use manxdb_lab::figure::{Axes, Figure, Mark, Panel};

use super::systems::{RATIOS, System, clients, compared, over_clients, panel, panel_of, simulated};
use super::{Shopping, Trial, aborted_percent, label, open_if_small};
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
    claims,
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
        compare(
            Source::Paper,
            "RSI: 56 times the checkouts of Trad-SI over Ethernet, at the peak of both.",
            (System::RSI, System::TRAD),
            |ratios| ratios.iter().any(|(_, ratio)| *ratio >= 56.0),
        ),
        compare(
            Source::Paper,
            "RSI: 1.6 times the checkouts of the two-sided variant, at the peak of both.",
            (System::RSI, System::TWO_SIDED),
            |ratios| ratios.iter().any(|(_, ratio)| *ratio >= 1.6),
        ),
    ];
    claims.extend(simulated_claims(data));
    open_if_small(data, claims)
}

/// What the paper measured, judged by what its own prices add up to.
fn simulated_claims(data: &Data<Shopping>) -> Vec<Claim> {
    let last = |says: &str, (one, other): (System, System), least: f64| {
        let ratios = one.ratios(other, data, clients, Outcome::rate);
        let ratios = ratios.last().map(std::slice::from_ref).unwrap_or_default();
        let says = format!("Simulated: {says}");
        compared((Source::Paper, &says), ratios, "clients", |ratios| {
            ratios.iter().all(|(_, ratio)| *ratio > least)
        })
    };
    let rates = |system: System| -> Vec<(f64, f64)> {
        let points = system.points(data, clients).into_iter();
        points.map(|at| (at.x, at.median(Outcome::rate))).collect()
    };
    let of_most = rates(System::SIMULATED_RSI).last().copied();
    let two_sided = rates(System::SIMULATED_TWO_SIDED);
    let at = |clients: f64| {
        let found = two_sided
            .iter()
            .find(|(x, _)| x.total_cmp(&clients).is_eq());
        found.map(|(_, rate)| *rate)
    };
    vec![
        judge(
            Source::Paper,
            "Simulated: RSI has 1.8 million checkouts a second with 70 clients, to a quarter.",
            of_most,
            |(clients, rate)| {
                let said = format!("{:.2} million with {clients}", rate / 1e6);
                (said, (1.35e6..=2.25e6).contains(&rate))
            },
        ),
        last(
            "RSI has 56 times the checkouts of Trad-SI over Ethernet.",
            (System::SIMULATED_RSI, System::SIMULATED_ETHERNET),
            56.0,
        ),
        last(
            "RSI has 82 times the checkouts of Trad-SI over IPoIB.",
            (System::SIMULATED_RSI, System::SIMULATED_IPOIB),
            82.0,
        ),
        last(
            "RSI has 5.6 times the checkouts of the two-sided variant with 70 clients.",
            (System::SIMULATED_RSI, System::SIMULATED_TWO_SIDED),
            5.6,
        ),
        last(
            "Trad-SI has more checkouts over Ethernet than over IPoIB, whose messages need more CPU.",
            (System::SIMULATED_ETHERNET, System::SIMULATED_IPOIB),
            1.0,
        ),
        judge(
            Source::Paper,
            "Simulated: the two-sided variant has no more checkouts with 70 clients than with 40.",
            at(40.0).zip(at(70.0)),
            |(forty, seventy)| {
                let said = format!("{:.2} times as many", seventy / forty);
                (said, seventy <= 1.05 * forty)
            },
        ),
    ]
}
