//! Aggregations over the number of groups: the paper's Figure 8b.

use manxdb_lab::experiment::data::Data;
use manxdb_lab::experiment::{Claim, Design, Measured, Scale, Source};
use manxdb_lab::figure::{Axes, Figure, Mark, Scale as Along};

use super::{Analysis, NODES, WIDTH, at_end, claim, messages, panel, points};
use crate::bench::olap::Outcome;
use crate::cli::{Algorithm, OlapShape};
use crate::lab::fill::judge;
use crate::lab::rack::{open_if_small, repetitions};

/// The experiment.
pub static EXPERIMENT: Design<Analysis> = Design {
    name: "olap-agg",
    about: "counts and sums by key over four nodes, by messages and by writes into their memory",
    origin: "Figure 8b of Binnig et al., \"The End of Slow Networks\": four nodes of ten threads with \
             Ethernet and InfiniBand, 128 million rows of 8 bytes a node, up to 64 million groups \
             there; processes of one thread, and fewer rows and groups, here.",
    swept: "groups",
    plan,
    at,
    label: |design, trial| format!("{}, {} groups", trial.algorithm.name(), design.at(trial)),
    figure,
    judge: claims,
};

fn at(trial: &OlapShape) -> f64 {
    trial.groups.map_or(f64::NAN, f64::from)
}

/// The published ones go up to half as many groups as a node has rows; so do these.
fn plan(scale: Scale, seed: u64) -> Vec<OlapShape> {
    let rows = scale.pick(10_000, 4_000_000, 128_000_000);
    let groups: &[u32] = scale.pick(
        &[16, 5_000],
        &[16, 1_024, 16_384, 131_072, 524_288, 2_000_000],
        &[16, 1_024, 65_536, 1_000_000, 16_000_000, 64_000_000],
    );
    let seeds = (seed..).take(repetitions(scale));
    let trials = seeds.flat_map(|seed| {
        groups.iter().flat_map(move |groups| {
            [Algorithm::Agg, Algorithm::RdmaAgg].map(|algorithm| OlapShape {
                algorithm,
                nodes: NODES,
                rows,
                width: WIDTH,
                selectivity: None,
                groups: Some(*groups),
                seed,
            })
        })
    });
    trials.collect()
}

/// Nanoseconds of a row of a node: seconds of the figure, for 128 million rows.
fn published(seconds: f64) -> f64 {
    seconds * 1e9 / 128e6
}

/// Read off the paper's axis, at its most groups.
fn marks() -> Vec<Mark> {
    let level = |seconds, text: &str| Mark::level(published(seconds), text);
    vec![
        level(30.0, "published: AGG, Ethernet, most groups"),
        level(25.5, "published: AGG, IPoIB, most groups"),
        level(5.0, "published: RDMA AGG, most groups"),
    ]
}

fn figure(design: &Design<Analysis>, data: &Data<Analysis>) -> Figure {
    let both = Axes {
        x: Along::Log,
        y: Along::Log,
    };
    let across = Axes {
        x: Along::Log,
        ..Axes::default()
    };
    let panel = |titles, axes, number, marks| panel((design, data), titles, axes, number, marks);
    Figure {
        title: "Counts and sums by key over four nodes".into(),
        columns: 3,
        legend_cell: 2,
        panels: vec![
            panel(("Time", "of a row of a node (ns)"), both, Outcome::time_ns, marks()),
            panel(("CPU", "of a row (ns)"), across, Outcome::cpu_ns, Vec::new()),
            panel(("Sent", "bytes of a row"), across, Outcome::bytes_each, Vec::new()),
            panel(("Messages", "for 1,000 rows"), across, messages, Vec::new()),
        ],
        notes: vec![
            "Processes of one machine, one thread a node, share its cores; published: four machines, \
             ten threads a node, 32 times as many rows and groups."
                .into(),
            "Writes go to memory that processes share, TCP through the loopback interface.".into(),
        ],
    }
}

fn claims(design: &Design<Analysis>, data: &Data<Analysis>) -> Vec<Claim> {
    use Algorithm::{Agg, RdmaAgg};
    let claims = vec![
        claim(
            (design, data),
            (
                Source::Paper,
                "RDMA AGG is five times as fast as AGG over IPoIB with most groups (5 s, 25.5 s).",
            ),
            (Agg, RdmaAgg),
            Outcome::time_ns,
            |ratios| at_end(ratios, true) >= 5.0,
        ),
        claim(
            (design, data),
            (
                Source::Paper,
                "Both take the same time, to a quarter, with few groups.",
            ),
            (RdmaAgg, Agg),
            Outcome::time_ns,
            |ratios| (0.75..=1.25).contains(&at_end(ratios, false)),
        ),
        flat(design, data),
        claim(
            (design, data),
            (
                Source::Target,
                "RDMA AGG takes at most a tenth more CPU than AGG, however many groups.",
            ),
            (RdmaAgg, Agg),
            Outcome::cpu_ns,
            |ratios| ratios.iter().all(|(_, ratio)| *ratio <= 1.1),
        ),
    ];
    open_if_small(data, claims)
}

/// The last two points of the sweep: a quarter of the most groups, and these.
fn flat(design: &Design<Analysis>, data: &Data<Analysis>) -> Claim {
    let times = points(design, data, Algorithm::RdmaAgg);
    let times: Vec<f64> = times.iter().map(|at| at.median(Outcome::time_ns)).collect();
    let last = match times.as_slice() {
        [.., before, last] => Some((*before, *last)),
        _ => None,
    };
    let says = "RDMA AGG takes no more time, to a quarter, from a quarter of the most groups on.";
    judge(Source::Paper, says, last, |(before, last)| {
        let said = format!("{before:.1} ns a row, then {last:.1}");
        let measured = Measured::ratio(last / before, said);
        (measured, last <= before * 1.25)
    })
}
