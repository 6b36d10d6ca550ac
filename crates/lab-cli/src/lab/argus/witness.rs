//! How many requests a witness answers for a second of CPU.

use manxdb_lab::experiment::data::Data;
use manxdb_lab::experiment::{Claim, Design, Measured, Scale, Source};
use manxdb_lab::figure::{Axes, Figure, Line, Mark, Panel, Scale as Along, Shape};

use super::trial::{Answerer, Outcome, Pace, Trial};
use super::{Number, Witnessing, label, look, median, points};
use crate::lab::curp::trial::Carrier;
use crate::lab::rack::open_if_small;

/// ARGUS's requests a second of one witness, on a network card and in a process.
const PUBLISHED: (f64, f64) = (757_660.0, 113_000.0);
/// How often one goes into the other.
const PUBLISHED_TIMES: f64 = 6.7;

const NAMES: &[&str] = &["60 requests under way"];
const USER: Answerer = Answerer::Witness(Carrier::User);

/// The experiment.
pub(super) static EXPERIMENT: Design<Witnessing> = Design {
    name: "argus-witness",
    about: "requests a witness answers for a second of CPU: a process, and XDP programs",
    origin: "After the throughput of one witness in ARGUS (APNet 2019: a Netronome card beside a process), \
             with XDP in the place of the card.",
    swept: "witnesses",
    plan,
    at: super::at,
    label,
    figure,
    judge: claims,
};

fn plan(scale: Scale, seed: u64) -> Vec<Trial> {
    let (repetitions, requests) = scale.pick((1, 3_000), (5, 100_000), (10, 3_000_000));
    let trials = (seed..).take(repetitions).flat_map(|seed| {
        Answerer::ALL.map(|answerer| Trial {
            answerer,
            witnesses: 1,
            busy: false,
            pace: Pace::Flood,
            requests,
            seed,
        })
    });
    trials.collect()
}

fn of(data: &Data<Witnessing>, answerer: Answerer, number: Number) -> Result<f64, String> {
    median(data, (answerer, 1, false), number)
}

fn claims(_: &Design<Witnessing>, data: &Data<Witnessing>) -> Vec<Claim> {
    let kernel = [Carrier::XdpGeneric, Carrier::Xdp].map(Answerer::Witness);
    let mut claims = Vec::new();
    for answerer in kernel {
        claims.push(own(data, answerer));
        claims.push(with_the_stack(data, answerer));
        claims.push(on_a_clock(data, answerer));
    }
    open_if_small(data, claims)
}

fn judged(source: Source, says: &str, found: Result<f64, String>) -> Claim {
    match found {
        Err(why) => Claim::open(source, says, why),
        Ok(ratio) => {
            let said = format!("{ratio:.2} times");
            let holds = ratio >= PUBLISHED_TIMES;
            Claim::judged(source, says, Measured::ratio(ratio, said), holds)
        }
    }
}

fn own(data: &Data<Witnessing>, answerer: Answerer) -> Claim {
    let says = format!(
        "{}: at least 6.7 times the requests of a process for a second of the witness's own CPU.",
        answerer.title()
    );
    let found = of(data, answerer, Outcome::own_us);
    let ratio = found.and_then(|own| Ok(of(data, USER, Outcome::own_us)? / own));
    judged(Source::Target, &says, ratio)
}

/// What a witness adds to the CPU of a client that reads its own datagrams.
fn with_the_stack(data: &Data<Witnessing>, answerer: Answerer) -> Claim {
    let says = format!(
        "{}: the same with what receives and sends its packets, that is all CPU beyond a client's alone.",
        answerer.title()
    );
    let alone = of(data, Answerer::Nobody, Outcome::all_us);
    let ratio = alone.and_then(|alone| {
        let beyond = |answerer| Ok::<_, String>(of(data, answerer, Outcome::all_us)? - alone);
        Ok((beyond(USER)?, beyond(answerer)?))
    });
    let (user, kernel) = match ratio {
        Ok(both) => both,
        Err(why) => return Claim::open(Source::Target, says, why),
    };
    if kernel <= 0.0 {
        let why = format!(
            "{user:.2} µs a request for the process; the program takes less than the client's own reading \
             ({kernel:.2} µs)"
        );
        return Claim::open(Source::Target, says, why);
    }
    judged(Source::Target, &says, Ok(user / kernel))
}

fn on_a_clock(data: &Data<Witnessing>, answerer: Answerer) -> Claim {
    let says = format!(
        "ARGUS: {} answers 6.7 times the requests a second of a process, here from one client.",
        answerer.title()
    );
    let rate = |answerer| of(data, answerer, Outcome::rate);
    let ratio = rate(answerer).and_then(|own| Ok(own / rate(USER)?));
    judged(Source::Paper, &says, ratio)
}

fn figure(_: &Design<Witnessing>, data: &Data<Witnessing>) -> Figure {
    let panel = |title: &str, y_label: &str, number: Number, with_nobody| Panel {
        title: title.into(),
        x_label: "one witness".into(),
        y_label: y_label.into(),
        axes: Axes {
            x: Along::Categories(NAMES),
            ..Axes::default()
        },
        lines: bars(data, number, with_nobody),
        marks: Vec::new(),
    };
    let mut own = panel(
        "for a second of its own CPU",
        "requests/CPU second",
        Outcome::own_rate,
        false,
    );
    own.marks = vec![
        Mark::level(PUBLISHED.0, "published: card, requests/s"),
        Mark::level(PUBLISHED.1, "published: process, requests/s"),
    ];
    Figure {
        title: "What a witness answers".into(),
        columns: 2,
        legend_cell: 3,
        panels: vec![
            own,
            panel("CPU of client and witness", "CPU of a request (µs)", Outcome::all_us, true),
            panel("one client", "requests/s", Outcome::rate, true),
        ],
        notes: vec![
            "Four records, then a collection of four; 60 requests under way.".into(),
            "The client on one core, the witness's thread on another; XDP programs run on the client's."
                .into(),
        ],
    }
}

fn bars(data: &Data<Witnessing>, number: Number, with_nobody: bool) -> Vec<Line> {
    let answerers = Answerer::ALL.into_iter();
    let shown = answerers.filter(|one| with_nobody || *one != Answerer::Nobody);
    let bar = |answerer: Answerer| {
        let points = points(data, answerer, false);
        let points = points.iter().map(|at| {
            let mut point = at.point(number);
            point.x = 0.0;
            point
        });
        Line {
            name: answerer.title().into(),
            look: look(answerer).shaped(Shape::Bar),
            points: points.collect(),
        }
    };
    let bars = shown.map(bar);
    bars.filter(|bar| !bar.points.is_empty()).collect()
}
