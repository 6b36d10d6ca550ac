//! Joins over the share of rows with a partner: the paper's Figure 8a.

use manxdb_lab::experiment::data::Data;
use manxdb_lab::experiment::{Claim, Design, Scale, Source};
use manxdb_lab::figure::{Axes, Figure, Mark, Scale as Along};

use super::{Analysis, NODES, WIDTH, at_end, claim, messages, panel};
use crate::bench::olap::Outcome;
use crate::cli::{Algorithm, OlapShape};
use crate::lab::rack::{open_if_small, repetitions};

/// The experiment.
pub static EXPERIMENT: Design<Analysis> = Design {
    name: "olap-join",
    about: "hash and radix joins over four nodes, by messages and by writes into their memory",
    origin: "Figure 8a of Binnig et al., \"The End of Slow Networks\": four nodes of eight threads \
             with Ethernet and InfiniBand, two relations of 128 million rows of 8 bytes a node there; \
             processes of one thread, and fewer rows, here.",
    swept: "share of rows with a partner",
    plan,
    at,
    label: |design, trial| format!("{}, {} paired", trial.algorithm.name(), design.at(trial)),
    figure,
    judge: claims,
};

const COMPARED: [Algorithm; 4] = [
    Algorithm::Ghj,
    Algorithm::GhjBloom,
    Algorithm::RdmaGhj,
    Algorithm::Rrj,
];

fn at(trial: &OlapShape) -> f64 {
    trial.selectivity.unwrap_or(1.0)
}

fn plan(scale: Scale, seed: u64) -> Vec<OlapShape> {
    let rows = scale.pick(10_000, 2_000_000, 128_000_000);
    let shares: &[f64] = scale.pick(
        &[0.25, 1.0],
        &[0.25, 0.5, 0.75, 1.0],
        &[0.25, 0.5, 0.75, 1.0],
    );
    let seeds = (seed..).take(repetitions(scale));
    let trials = seeds.flat_map(|seed| {
        shares.iter().flat_map(move |share| {
            COMPARED.map(|algorithm| OlapShape {
                algorithm,
                nodes: NODES,
                rows,
                width: WIDTH,
                selectivity: Some(*share),
                groups: None,
                seed,
            })
        })
    });
    trials.collect()
}

/// Nanoseconds of a row of a node: seconds of the figure, for twice 128 million rows.
fn published(seconds: f64) -> f64 {
    seconds * 1e9 / 256e6
}

/// Read off the paper's logarithmic axis: ±10 %. Those that do not depend on the share of partners.
fn marks() -> Vec<Mark> {
    let level = |seconds, text: &str| Mark::level(published(seconds), text);
    vec![
        level(14.0, "published: GHJ, Ethernet"),
        level(4.2, "published: GHJ, IPoIB"),
        level(2.3, "published: RRJ"),
    ]
}

fn figure(design: &Design<Analysis>, data: &Data<Analysis>) -> Figure {
    let ratios = Axes {
        y: Along::Log,
        ..Axes::default()
    };
    let panel = |titles, axes, number, marks| panel((design, data), titles, axes, number, marks);
    Figure {
        title: "Joins of two relations of equal size over four nodes".into(),
        columns: 3,
        legend_cell: 2,
        panels: vec![
            panel(("Time", "of a row of a node (ns)"), ratios, Outcome::time_ns, marks()),
            panel(("CPU", "of a row (ns)"), Axes::default(), Outcome::cpu_ns, Vec::new()),
            panel(("Sent", "bytes of a row"), Axes::default(), Outcome::bytes_each, Vec::new()),
            panel(("Messages", "for 1,000 rows"), ratios, messages, Vec::new()),
        ],
        notes: vec![
            "Processes of one machine, one thread a node, share its cores; published: four machines, \
             eight threads a node."
                .into(),
            "Writes go to memory that processes share, TCP through the loopback interface.".into(),
        ],
    }
}

fn claims(design: &Design<Analysis>, data: &Data<Analysis>) -> Vec<Claim> {
    use Algorithm::{Ghj, GhjBloom, RdmaGhj, Rrj};
    let timed = |source, says: &str, pair, holds: fn(&[(f64, f64)]) -> bool| {
        claim(
            (design, data),
            (source, says),
            pair,
            Outcome::time_ns,
            holds,
        )
    };
    let claims = vec![
        timed(
            Source::Paper,
            "RRJ is 1.8 times as fast as GHJ over IPoIB when every row has a partner (2.3 s, 4.2 s).",
            (Ghj, Rrj),
            |ratios| at_end(ratios, true) >= 1.8,
        ),
        timed(
            Source::Paper,
            "RDMA GHJ is 1.3 times as fast as GHJ over IPoIB (3.3 s, 4.2 s).",
            (Ghj, RdmaGhj),
            |ratios| at_end(ratios, true) >= 1.3,
        ),
        timed(
            Source::Paper,
            "RRJ is 1.4 times as fast as RDMA GHJ (2.3 s, 3.3 s).",
            (RdmaGhj, Rrj),
            |ratios| at_end(ratios, true) >= 1.4,
        ),
        timed(
            Source::Paper,
            "Filters halve the time over Ethernet when one row in four has a partner (7 s, 14 s).",
            (Ghj, GhjBloom),
            |ratios| at_end(ratios, false) >= 2.0,
        ),
        timed(
            Source::Paper,
            "Filters cost more than they save when every row has a partner (15 s, 14 s).",
            (GhjBloom, Ghj),
            |ratios| at_end(ratios, true) > 1.0,
        ),
        timed(
            Source::Paper,
            "RRJ without filters is faster than GHJ with them, whatever the share of partners.",
            (GhjBloom, Rrj),
            |ratios| ratios.iter().all(|(_, ratio)| *ratio > 1.0),
        ),
        claim(
            (design, data),
            (
                Source::Target,
                "RRJ takes less CPU than GHJ, whatever the share of partners.",
            ),
            (Ghj, Rrj),
            Outcome::cpu_ns,
            |ratios| ratios.iter().all(|(_, ratio)| *ratio > 1.0),
        ),
        claim(
            (design, data),
            (
                Source::Derived,
                "When one row in four has a partner, filters and the rows that pass them are fewer \
                 bytes than all rows.",
            ),
            (Ghj, GhjBloom),
            Outcome::bytes_each,
            |ratios| at_end(ratios, false) > 1.0,
        ),
    ];
    open_if_small(data, claims)
}
