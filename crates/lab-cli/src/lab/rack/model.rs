//! What the paper measured, judged by what its own prices add up to on its own machines.
//!
//! A claim whose number comes from what went into the model is no result: what bounds RSI and the
//! two-sided variant is the network's limit that the paper gives, and how many cores of a server handle
//! messages of sockets over InfiniBand is not published, but taken to be one.

use manxdb_lab::experiment::data::Data;
use manxdb_lab::experiment::{Claim, Measured, Source};

use super::Shopping;
use super::systems::System;
use crate::bench::checkout::Outcome;
use crate::lab::fill::judge;

/// How far from a published number, read off a logarithmic axis, a model may be: a quarter.
const TOLERANCE: f64 = 0.25;
/// No system of these machines does more: the paper's own limit.
const RATE_MAX: f64 = 2.4e6;

fn is_near(value: f64, published: f64) -> bool {
    (published * (1.0 - TOLERANCE)..=published * (1.0 + TOLERANCE)).contains(&value)
}

/// What is said of the systems of Figure 6.
pub(super) fn claims(data: &Data<Shopping>) -> Vec<Claim> {
    use System as S;
    vec![
        rate(data, "RSI has 1.8 million checkouts a second", S::SIMULATED_RSI, 1.8e6)
            .circular("the network's limit of 13.8 GB/s, which the paper gives, is what bounds it"),
        rate(
            data,
            "Trad-SI over Ethernet has 32,000 checkouts a second",
            S::SIMULATED_ETHERNET,
            3.2e4,
        ),
        rate(
            data,
            "Trad-SI over IPoIB has 22,000 checkouts a second",
            S::SIMULATED_IPOIB,
            2.2e4,
        )
        .circular(
            "how many cores handle messages is not published; one is taken, because all of a server's \
             give 127,000",
        ),
        ratio(
            data,
            "RSI has 56 times the checkouts of Trad-SI over Ethernet",
            (S::SIMULATED_RSI, S::SIMULATED_ETHERNET),
            56.0,
        )
        .circular("the network's limit of 13.8 GB/s, which the paper gives, is what bounds RSI"),
        ratio(
            data,
            "RSI has 82 times the checkouts of Trad-SI over IPoIB",
            (S::SIMULATED_RSI, S::SIMULATED_IPOIB),
            82.0,
        )
        .circular("as many cores handle messages over IPoIB as were taken, not as were published"),
        ratio(
            data,
            "RSI has 5.6 times the checkouts of the two-sided variant",
            (S::SIMULATED_RSI, S::SIMULATED_TWO_SIDED),
            5.6,
        ),
        order(data).circular(
            "all cores of a server would serve more over IPoIB; one is taken, which is not published",
        ),
        peak(data).circular(
            "the network's limit of 13.8 GB/s, which the paper gives, is what bounds it",
        ),
        fall(data),
    ]
}

/// The medians of a system's rates, by clients.
fn rates(data: &Data<Shopping>, system: System) -> Vec<(f64, f64)> {
    let points = system.points(data, super::systems::clients).into_iter();
    points.map(|at| (at.x, at.median(Outcome::rate))).collect()
}

/// With the most clients.
fn last(data: &Data<Shopping>, system: System) -> Option<(f64, f64)> {
    rates(data, system).last().copied()
}

fn rate(data: &Data<Shopping>, says: &str, system: System, published: f64) -> Claim {
    let says = format!("Simulated: {says} with 70 clients, to a quarter.");
    judge(
        Source::Paper,
        &says,
        last(data, system),
        |(clients, rate)| {
            let said = format!("{rate:.0} with {clients}");
            (
                Measured::new(rate, 1.0..=RATE_MAX, said),
                is_near(rate, published),
            )
        },
    )
}

fn both(data: &Data<Shopping>, (one, other): (System, System)) -> Option<(f64, f64)> {
    let (one, other) = (last(data, one)?, last(data, other)?);
    (one.0.total_cmp(&other.0).is_eq()).then(|| (one.0, one.1 / other.1))
}

fn ratio(data: &Data<Shopping>, says: &str, systems: (System, System), published: f64) -> Claim {
    let says = format!("Simulated: {says} with 70 clients, to a quarter.");
    judge(
        Source::Paper,
        &says,
        both(data, systems),
        |(clients, ratio)| {
            let said = format!("{ratio:.1} times with {clients} clients");
            (Measured::ratio(ratio, said), is_near(ratio, published))
        },
    )
}

fn order(data: &Data<Shopping>) -> Claim {
    let systems = (System::SIMULATED_ETHERNET, System::SIMULATED_IPOIB);
    judge(
        Source::Paper,
        "Simulated: Trad-SI has more checkouts over Ethernet than over IPoIB, whose messages need more \
         CPU.",
        both(data, systems),
        |(clients, ratio)| {
            let said = format!("{ratio:.2} times with {clients} clients");
            (Measured::ratio(ratio, said), ratio > 1.0)
        },
    )
}

/// What the two-sided variant does at its best: bounded by the network, whose limit is the paper's.
fn peak(data: &Data<Shopping>) -> Claim {
    let most = System::SIMULATED_TWO_SIDED.peak(data, Outcome::rate);
    judge(
        Source::Paper,
        "Simulated: the two-sided variant has 1.1 million checkouts a second at its peak, to a quarter.",
        most,
        |(clients, rate)| {
            let said = format!("{rate:.0} with {clients}");
            (
                Measured::new(rate, 1.0..=RATE_MAX, said),
                is_near(rate, 1.1e6),
            )
        },
    )
}

fn fall(data: &Data<Shopping>) -> Claim {
    let rates = rates(data, System::SIMULATED_TWO_SIDED);
    let at = |clients: f64| {
        let found = rates.iter().find(|(x, _)| x.total_cmp(&clients).is_eq());
        found.map(|(_, rate)| *rate)
    };
    judge(
        Source::Paper,
        "Simulated: the two-sided variant falls from 1.1 million checkouts a second with 40 clients to \
         320,000 with 70.",
        at(40.0).zip(at(70.0)),
        |(forty, seventy)| {
            let ratio = seventy / forty;
            let said = format!(
                "{ratio:.2} times as many with 70; no published price rises with clients (what cards \
                 pay for connections, and servers for polling them, is not published)"
            );
            (Measured::ratio(ratio, said), is_near(ratio, 0.29))
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_is_a_quarter_in_both_directions() {
        assert!(is_near(1.8e6, 1.8e6) && is_near(2.2e6, 1.8e6));
        assert!(!is_near(4.03e6, 1.8e6) && !is_near(1.3e6, 1.8e6));
    }
}
