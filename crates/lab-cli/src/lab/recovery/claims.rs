//! What we say, and whether it holds.

use manxdb_lab::experiment::data::{Data, Record};
use manxdb_lab::experiment::{At, Claim, Design, Measured, Source};

use super::{Surviving, killed, quiet, sizes};
use crate::bench::recovery::Outcome;
use crate::cli::Victim;
use crate::lab::fill::judge;
use crate::lab::rack::open_if_small;

/// How often what is not replicated may be done for once of what is.
const COST_MAX: f64 = 2.0;
/// Leases until a dead client's locks are nobody's.
const LEASES_MAX: f64 = 2.0;

pub(super) fn claims(_: &Design<Surviving>, data: &Data<Surviving>) -> Vec<Claim> {
    let claims = vec![
        cost(
            data,
            "With three copies of rows and logs at least half the checkouts of one copy, nothing logged.",
            |run| 1.0 / run.rate().max(f64::MIN_POSITIVE),
        ),
        cost(
            data,
            "A checkout takes at most twice the CPU with three copies of rows and logs.",
            Outcome::cpu_us,
        ),
        locks(data, Victim::Other),
        locks(data, Victim::Leader),
        loss(data),
    ];
    open_if_small(data, claims)
}

/// Leases until the locks of the client that was killed were recovered; no number where none was.
pub(super) fn leases(record: &Record<Surviving>) -> f64 {
    let locks_ms = record
        .outcome
        .death
        .map_or(f64::NAN, |death| death.locks_ms);
    locks_ms / f64::from(record.trial.lease_ms)
}

/// How much three copies cost, on rows of each size: of one copy and no log, and beside it of one
/// copy and one log.
fn cost(data: &Data<Surviving>, says: &str, number: fn(&Outcome) -> f64) -> Claim {
    let found: Vec<(u16, f64, f64)> = sizes(data)
        .into_iter()
        .filter_map(|row_bytes| {
            let runs = quiet(data, row_bytes);
            let [none, one, three] = runs.as_slice() else {
                return None;
            };
            let ratio = |from: &At<'_, Surviving>| three.median(number) / from.median(number);
            Some((row_bytes, ratio(none), ratio(one)))
        })
        .collect();
    let found = (!found.is_empty()).then_some(found.as_slice());
    judge(Source::Target, says, found, |found| {
        let each = found.iter().map(|(row_bytes, none, one)| {
            format!(
                "rows of {row_bytes} bytes: {none:.2} times what nothing logged costs, {one:.2} times \
                 what one log does"
            )
        });
        let said = each.collect::<Vec<_>>().join("; ");
        let most = found.iter().map(|(_, none, _)| *none).fold(0.0, f64::max);
        (Measured::ratio(most, said), most <= COST_MAX)
    })
}

fn locks(data: &Data<Surviving>, victim: Victim) -> Claim {
    let who = match victim {
        Victim::Leader => "A client that looks after the others",
        _ => "A client",
    };
    let says = format!("{who} is killed: what it had locked is others' within two leases.");
    let found: Vec<f64> = killed(data, victim).map(leases).collect();
    let found = (!found.is_empty()).then_some(found.as_slice());
    judge(Source::Target, &says, found, |found| {
        let worst = found.iter().copied().fold(0.0, f64::max);
        let said = format!("at most {worst:.2} leases in {} runs", found.len());
        (Measured::new(worst, 0.1..=1e3, said), worst <= LEASES_MAX)
    })
}

/// What docs/memory.md promises.
fn loss(data: &Data<Surviving>) -> Claim {
    let says = "A memory server is killed: all clients commit again within a lease.";
    let all = [Victim::Other, Victim::Leader].into_iter();
    let all = all.flat_map(|victim| killed(data, victim));
    let found: Vec<f64> = all
        .filter_map(|record| {
            let effect = record.outcome.loss_effect()?;
            let lease = f64::from(record.trial.lease_ms);
            Some(effect.all_ms.unwrap_or(f64::INFINITY) / lease)
        })
        .collect();
    let found = (!found.is_empty()).then_some(found.as_slice());
    judge(Source::Target, says, found, |found| {
        let worst = found.iter().copied().fold(0.0, f64::max);
        let said = if worst.is_finite() {
            format!("at most {worst:.2} leases in {} runs", found.len())
        } else {
            "not all of them before the end of a run".to_owned()
        };
        // An hour stands for never.
        let measured = Measured::new(worst.min(3.6e3), 1e-3..=3.6e3, said);
        (measured, worst <= 1.0)
    })
}
