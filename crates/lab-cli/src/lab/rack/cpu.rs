//! CPU of a checkout, on the clients' and on the servers' side.

use manxdb_lab::experiment::data::Data;
use manxdb_lab::experiment::{Claim, Design, Scale, Source};
use manxdb_lab::figure::Figure;

use super::systems::{RATIOS, System, clients, compared, over_clients, panel};
use super::{Shopping, Trial, label, open_if_small};
use crate::bench::checkout::Outcome;

/// The experiment.
pub static EXPERIMENT: Design<Shopping> = Design {
    name: "rsi-cpu",
    about: "CPU of a checkout on both sides, over clients",
    origin: "The argument of Binnig et al., §4.1: two-phase commit cannot scale because servers \
             handle messages, whose CPU one-sided operations do not need.",
    swept: "clients",
    plan,
    at: clients,
    label,
    figure,
    judge: claims,
};

fn plan(scale: Scale, seed: u64) -> Vec<Trial> {
    let clients: &[u16] = scale.pick(&[1], &[1, 2], &[1, 2, 4, 8]);
    let products = scale.pick(3_000, 100_000, 1_000_000);
    over_clients(scale, clients, products, seed)
}

/// Less than the clock of processes can tell is drawn as that: a logarithmic axis has no zero.
const LEAST: f64 = 0.01;

fn figure(design: &Design<Shopping>, data: &Data<Shopping>) -> Figure {
    let panel = |title, number| {
        panel(
            data,
            clients,
            (title, design.swept, "CPU (µs)"),
            RATIOS,
            number,
        )
    };
    Figure {
        title: "CPU of a checkout".into(),
        columns: 2,
        legend_cell: 3,
        panels: vec![
            panel("Clients", |run| run.client_cpu_us().max(LEAST)),
            panel("Servers", |run| run.server_cpu_us().max(LEAST)),
            panel("Both", Outcome::cpu_us),
        ],
        notes: vec![format!("Servers that did nothing are drawn at {LEAST} µs.")],
    }
}

fn claims(_: &Design<Shopping>, data: &Data<Shopping>) -> Vec<Claim> {
    let says = "A checkout takes at least 75 times less CPU than with trad-si, nothing logged.";
    let ratios = System::TRAD.ratios(System::RSI, data, clients, Outcome::cpu_us);
    let holds = |ratios: &[(f64, f64)]| ratios.iter().all(|(_, ratio)| *ratio >= 75.0);
    let claim = compared((Source::Target, says), &ratios, "clients", holds);
    open_if_small(data, vec![claim])
}
