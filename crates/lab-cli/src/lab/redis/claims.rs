//! What we say, and whether it holds.

use manxdb_lab::experiment::data::Data;
use manxdb_lab::experiment::{At, Claim, Design, Measured, Source};

use super::trial::{Durability, Measure, System, Work};
use super::{Serving, points};
use crate::lab::fill::judge;
use crate::lab::rack::open_if_small;

/// What claims are about.
const CLIENTS: f64 = 50.0;
/// Both depths of pipelines that claims are about.
const PIPELINES: [u32; 2] = [1, 16];

pub(super) fn claims(_: &Design<Serving>, data: &Data<Serving>) -> Vec<Claim> {
    let mut claims = Vec::new();
    for work in [Work::Get, Work::Set] {
        claims.push(per_cpu(data, work, 1, 1.0));
        claims.push(per_cpu(data, work, 16, 1.2));
        claims.push(rate(data, work));
    }
    for peer in [System::Redis8, System::Valkey9] {
        for work in [Work::Get, Work::Set] {
            claims.push(beside(data, peer, work));
        }
    }
    claims.extend(synced(data));
    open_if_small(data, claims)
}

/// A load of which systems are compared.
#[derive(Clone, Copy)]
struct Load {
    work: Work,
    durability: Durability,
    pipeline: u32,
}

/// How often another's number goes into ours.
fn ratio(
    data: &Data<Serving>,
    peer: System,
    load: Load,
    number: fn(&Measure) -> f64,
) -> Option<f64> {
    let median = |system| -> Option<f64> {
        let points = points(data, system, load.durability, load.pipeline);
        let at: &At<'_, Serving> = points.iter().find(|at| at.x.total_cmp(&CLIENTS).is_eq())?;
        Some(at.median(|run| run.number(load.work, number)))
    };
    Some(median(System::Manxdb)? / median(peer)?)
}

/// Commands per CPU second.
fn frugality(measure: &Measure) -> f64 {
    1.0 / measure.cpu_us().max(f64::MIN_POSITIVE)
}

fn per_cpu(data: &Data<Serving>, work: Work, pipeline: u32, least: f64) -> Claim {
    let load = Load {
        work,
        durability: Durability::Async,
        pipeline,
    };
    let says = format!(
        "{}, 50 clients, -P {pipeline}: at least {least:.1} times the commands per CPU second of \
         Redis 7.0.",
        work.title()
    );
    let found = ratio(data, System::Redis7, load, frugality);
    judge(Source::Target, &says, found, |ratio| {
        let said = format!("{ratio:.2} times");
        (Measured::ratio(ratio, said), ratio >= least)
    })
}

fn rate(data: &Data<Serving>, work: Work) -> Claim {
    let says = format!(
        "{}, 50 clients, -P 1 and 16: at least the rate of Redis 7.0.",
        work.title()
    );
    let ratio = |pipeline| {
        let load = Load {
            work,
            durability: Durability::Async,
            pipeline,
        };
        ratio(data, System::Redis7, load, Measure::rate)
    };
    let [one, many] = PIPELINES.map(ratio);
    judge(Source::Target, &says, one.zip(many), |(one, many)| {
        let said = format!("{one:.2} times at -P 1, {many:.2} at -P 16");
        let least = one.min(many);
        (Measured::ratio(least, said), least >= 1.0)
    })
}

/// Rate and CPU beside a newer server.
fn beside(data: &Data<Serving>, peer: System, work: Work) -> Claim {
    let says = format!(
        "{}, 50 clients, -P 1 and 16: at least the rate and the commands per CPU second of {}.",
        work.title(),
        peer.title()
    );
    let both = |pipeline| {
        let load = Load {
            work,
            durability: Durability::Async,
            pipeline,
        };
        let of = |number| ratio(data, peer, load, number);
        of(Measure::rate).zip(of(frugality))
    };
    let [one, many] = PIPELINES.map(both);
    judge(Source::Target, &says, one.zip(many), |(one, many)| {
        let said = format!(
            "{:.2} times the rate and {:.2} times the commands per CPU second at -P 1, {:.2} and {:.2} \
             at -P 16",
            one.0, one.1, many.0, many.1
        );
        let least = one.0.min(one.1).min(many.0).min(many.1);
        (Measured::ratio(least, said), least >= 1.0)
    })
}

fn synced(data: &Data<Serving>) -> [Claim; 2] {
    let load = Load {
        work: Work::Set,
        durability: Durability::Sync,
        pipeline: 1,
    };
    let of = |number| ratio(data, System::Redis7, load, number);
    let says = "SET on disk before the reply, 50 clients: at least the rate of Redis 7.0 with \
                appendfsync always.";
    let rate = judge(Source::Target, says, of(Measure::rate), |ratio| {
        let said = format!("{ratio:.2} times");
        (Measured::ratio(ratio, said), ratio >= 1.0)
    });
    let says = "SET on disk before the reply, 50 clients: at most 0.9 times the CPU of Redis 7.0 with \
                appendfsync always.";
    let cpu = judge(Source::Target, says, of(Measure::cpu_us), |ratio| {
        let said = format!("{ratio:.2} times");
        (Measured::ratio(ratio, said), ratio <= 0.9)
    });
    [rate, cpu]
}
