//! How long records of one client take, by the number of witnesses and what else their host does.

use manxdb_lab::experiment::data::Data;
use manxdb_lab::experiment::{Claim, Design, Measured, Scale, Source};
use manxdb_lab::figure::{Axes, Figure, Line, Mark, Panel, Scale as Along};

use super::trial::{Answerer, Outcome, Pace, Trial};
use super::{Number, Witnessing, label, look, median, points};
use crate::lab::curp::trial::Carrier;
use crate::lab::rack::open_if_small;

/// Witnesses, at most.
const MOST: u32 = 4;
/// ARGUS's 99.9th percentile of one witness, in microseconds: on a card, and in a process.
const PUBLISHED_P999: (f64, f64) = (36.72, 80.63);
/// By how much each more witness raises it there.
const PUBLISHED_EACH: (f64, f64) = (0.12, 12.86);
/// The target for each more witness, in microseconds, the client's sending apart.
const EACH_MOST_US: f64 = 1.0;

const USER: Answerer = Answerer::Witness(Carrier::User);

/// The experiment.
pub(super) static EXPERIMENT: Design<Witnessing> = Design {
    name: "argus-tail",
    about: "latency of a record at 1 to 4 witnesses, on an idle and a busy host",
    origin: "After the latencies of one and of more witnesses in ARGUS (APNet 2019), with XDP in the place of \
             the card.",
    swept: "witnesses",
    plan,
    at: super::at,
    label,
    figure,
    judge: claims,
};

fn plan(scale: Scale, seed: u64) -> Vec<Trial> {
    let (repetitions, requests) = scale.pick((1, 500), (5, 5_000), (10, 200_000));
    let most = scale.pick(1, MOST, MOST);
    let hosts: &[bool] = scale.pick(&[false], &[false, true], &[false, true]);
    let mut trials = Vec::new();
    for seed in (seed..).take(repetitions) {
        for busy in hosts {
            for witnesses in 1..=most {
                trials.extend(Answerer::ALL.map(|answerer| Trial {
                    answerer,
                    witnesses,
                    busy: *busy,
                    pace: Pace::Rounds,
                    requests,
                    seed,
                }));
            }
        }
    }
    trials
}

fn p999(run: &Outcome) -> f64 {
    run.rounds.p999
}

/// Microseconds that each more witness adds to a number.
fn each(
    data: &Data<Witnessing>,
    answerer: Answerer,
    busy: bool,
    number: Number,
) -> Result<f64, String> {
    let at = |witnesses| median(data, (answerer, witnesses, busy), number);
    Ok((at(MOST)? - at(1)?) / f64::from(MOST - 1))
}

fn claims(_: &Design<Witnessing>, data: &Data<Witnessing>) -> Vec<Claim> {
    let mut claims = Vec::new();
    for carrier in [Carrier::XdpGeneric, Carrier::Xdp] {
        let answerer = Answerer::Witness(carrier);
        claims.push(target(data, answerer));
        claims.push(gap(data, answerer));
        claims.push(busy(data, answerer));
        claims.push(quantile(data, answerer));
    }
    claims.push(process_each(data));
    open_if_small(data, claims)
}

fn target(data: &Data<Witnessing>, answerer: Answerer) -> Claim {
    let says = format!(
        "{}, busy host: each more witness adds less than 1 µs to the 99.9th percentile, the client's \
         sending apart.",
        answerer.title()
    );
    let both = each(data, answerer, true, p999)
        .and_then(|own| Ok((own, each(data, Answerer::Nobody, true, p999)?)));
    let (own, alone) = match both {
        Ok(both) => both,
        Err(why) => return Claim::open(Source::Target, says, why),
    };
    let median = |answerer| each(data, answerer, true, |run| run.rounds.p50);
    let medians = median(answerer).and_then(|own| Ok((own, median(Answerer::Nobody)?)));
    let medians = medians.map_or_else(
        |_| String::new(),
        |(own, alone)| format!("; medians: {own:.1} and {alone:.1}"),
    );
    let said = format!("{own:.1} µs, of which the client alone {alone:.1}{medians}");
    let number = Measured::new(own - alone, -1e5..=1e5, said);
    Claim::judged(Source::Target, says, number, own - alone < EACH_MOST_US)
}

/// ARGUS: the gap between median and 99.9th percentile is a third of that of processes.
fn gap(data: &Data<Witnessing>, answerer: Answerer) -> Claim {
    let says = format!(
        "ARGUS: {} has a gap between median and 99.9th percentile 3.3 times smaller than a process's, one \
         witness, idle host.",
        answerer.title()
    );
    let gap = |answerer| {
        median(data, (answerer, 1, false), |run| {
            run.rounds.p999 - run.rounds.p50
        })
    };
    let ratio = gap(USER).and_then(|user| Ok(user / gap(answerer)?));
    judged(Source::Paper, &says, ratio, 3.3)
}

fn quantile(data: &Data<Witnessing>, answerer: Answerer) -> Claim {
    let says = format!(
        "ARGUS: the 99.9th percentile of a process is 2.2 times that of {}, one witness, idle host.",
        answerer.title()
    );
    let of = |answerer| median(data, (answerer, 1, false), p999);
    let ratio = of(USER).and_then(|user| Ok(user / of(answerer)?));
    judged(Source::Paper, &says, ratio, 2.2)
}

fn busy(data: &Data<Witnessing>, answerer: Answerer) -> Claim {
    let says = format!(
        "{}, busy host, one witness: the 99th percentile is at most a tenth of a process's.",
        answerer.title()
    );
    let of = |answerer| median(data, (answerer, 1, true), |run| run.rounds.p99);
    let ratio = of(USER).and_then(|user| Ok(user / of(answerer)?));
    judged(Source::Target, &says, ratio, 10.0)
}

fn process_each(data: &Data<Witnessing>) -> Claim {
    let says = "ARGUS: each more witness in a process adds 12.86 µs to the 99.9th percentile, here at least as \
                much, idle host.";
    match each(data, USER, false, p999) {
        Err(why) => Claim::open(Source::Paper, says, why),
        Ok(each) => {
            let number = Measured::new(each, -1e5..=1e6, format!("{each:.1} µs"));
            Claim::judged(Source::Paper, says, number, each >= PUBLISHED_EACH.1)
        }
    }
}

fn judged(source: Source, says: &str, found: Result<f64, String>, least: f64) -> Claim {
    match found {
        Err(why) => Claim::open(source, says, why),
        Ok(ratio) => {
            let said = format!("{ratio:.2} times");
            let number = Measured::new(ratio, 1e-4..=1e6, said);
            Claim::judged(source, says, number, ratio >= least)
        }
    }
}

fn figure(_: &Design<Witnessing>, data: &Data<Witnessing>) -> Figure {
    let panel = |busy: bool, name: &str, number: Number| {
        let host = if busy { "busy" } else { "idle" };
        Panel {
            title: format!("{host} host"),
            x_label: EXPERIMENT.swept.into(),
            y_label: format!("{name} of a record (µs)"),
            axes: Axes {
                y: Along::Log,
                ..Axes::default()
            },
            lines: lines(data, busy, number),
            marks: Vec::new(),
        }
    };
    let p50: Number = |run| run.rounds.p50;
    let p99: Number = |run| run.rounds.p99;
    let mut idle = panel(false, "p99.9", p999);
    let slope = |first: f64, each: f64| {
        let at = |more: f64| (1.0 + more, first + each * more);
        vec![at(0.0), at(f64::from(MOST - 1))]
    };
    idle.marks = vec![
        Mark::curve(slope(PUBLISHED_P999.0, PUBLISHED_EACH.0), "published: card"),
        Mark::curve(
            slope(PUBLISHED_P999.1, PUBLISHED_EACH.1),
            "published: process",
        ),
    ];
    Figure {
        title: "Latency of a record at all witnesses".into(),
        columns: 4,
        legend_cell: 3,
        panels: vec![
            panel(false, "p50", p50),
            panel(false, "p99", p99),
            idle,
            panel(true, "p50", p50),
            panel(true, "p99", p99),
            panel(true, "p99.9", p999),
        ],
        notes: vec![
            "One record to all witnesses, the next when all have answered; the client sends one after the \
             other."
                .into(),
            "busy: two threads that never wait share the witnesses' core. client alone: it reads its own \
             datagrams."
                .into(),
        ],
    }
}

fn lines(data: &Data<Witnessing>, busy: bool, number: Number) -> Vec<Line> {
    let line = |answerer: Answerer| Line {
        name: answerer.title().into(),
        look: look(answerer),
        points: points(data, answerer, busy)
            .iter()
            .map(|at| at.point(number))
            .collect(),
    };
    let lines = Answerer::ALL.into_iter().map(line);
    lines.filter(|line| !line.points.is_empty()).collect()
}
