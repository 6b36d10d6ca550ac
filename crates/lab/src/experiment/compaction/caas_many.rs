//! Many databases, few workers, one greedy tenant, by who chooses jobs.

use super::panels::{figure, points};
use super::{At, Claim, Data, Experiment, Measured, Scale, Source};
use crate::caas_many::{CaasOutcome, Trial, Who};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "caas-many",
    about: "many databases on few workers beside a greedy one, by who chooses jobs",
    origin: "Not of the paper, whose experiments have a few databases: what a pool is for. Most \
             databases write in bursts; a greedy one has old files rewritten beside that, ever more of \
             them at once. What do the others wait for? CaaS-LSM's own comparison with a random \
             placement (Nebula) is checked in its order.",
    swept: "compactions at once of the greedy",
    plan,
    at,
    label: Experiment::number,
    figure,
    judge: claims,
};

/// How much worse the tail of the queue may be beside a greedy database: with fair shares it was
/// about twice as long when this was chosen, and without them three times.
const BOUND: f64 = 2.5;

fn plan(scale: Scale, seed: u64) -> Vec<Trial> {
    let asks: &[u32] = scale.pick(&[0, 128], &[0, 8, 16, 32, 64, 128], &[0, 16, 64]);
    let seeds = scale.pick(1, 5, 1);
    let mut trials = Vec::new();
    for who in Who::ALL {
        for asks in asks {
            for number in 0..seeds {
                trials.push(Trial {
                    who,
                    asks: *asks,
                    seed: seed.wrapping_add(number),
                    ..base(scale)
                });
            }
        }
    }
    trials
}

/// A pool about half of which the others keep busy when nobody is greedy.
fn base(scale: Scale) -> Trial {
    let (databases, greedy, workers) = scale.pick((50, 1, 4), (50, 1, 4), (1_000, 20, 80));
    let (burst, gap, minutes) = (1_024, 768, scale.pick(60, 60, 20));
    Trial {
        who: Who::Manxdb,
        databases,
        greedy,
        asks: 0,
        workers,
        slots: 4,
        slot_speed: 64,
        home_speed: 32,
        write_speed: 32,
        burst,
        gap,
        minutes,
        seed: 0,
    }
}

fn at(trial: &Trial) -> f64 {
    trial.asks.into()
}

/// The first and the last point of each system.
struct Ends<'a> {
    calm: At<'a>,
    greedy: At<'a>,
}

fn ends<'a>(experiment: &Experiment, data: &'a Data, who: Who) -> Option<Ends<'a>> {
    let mut points = points(experiment, data, who);
    let greedy = points.pop()?;
    let calm = points.into_iter().next()?;
    Some(Ends { calm, greedy })
}

fn claims(experiment: &Experiment, data: &Data) -> Vec<Claim> {
    let of = |who| ends(experiment, data, who);
    let Some(ours) = of(Who::Manxdb) else {
        return Claim::of_one_point();
    };
    let mut claims = vec![
        bounded(&ours, data),
        never_first(experiment, data),
        nobody_elses(&ours),
    ];
    for who in [Who::Static, Who::Random, Who::CaasLevel] {
        claims.push(ahead(experiment, data, who));
    }
    claims.push(fair(
        &ours,
        [Who::Static, Who::Random, Who::CaasLevel].map(of),
    ));
    if let (Some(random), Some(ranked)) = (of(Who::Random), of(Who::CaasLevel)) {
        claims.push(order_of_random(&random, &ranked));
        claims.push(size_of_random(&random, &ranked));
    }
    claims
}

fn tail(at: &At<'_>) -> f64 {
    at.median(|outcome| outcome.others.queue.p99 / 1e3)
}

fn bounded(ours: &Ends<'_>, data: &Data) -> Claim {
    let (calm, beside) = (tail(&ours.calm), tail(&ours.greedy));
    let trial = data.records.first().map(|record| &record.trial);
    let (databases, workers) = trial.map_or((0, 0), |trial| (trial.databases, trial.workers));
    Claim::judged(
        Source::Target,
        format!(
            "The 99th percentile of the others' time in the queue is bounded beside a greedy tenant \
             ({databases} databases, {workers} workers)."
        ),
        Measured::new(
            beside,
            2e-3..=36_000.0,
            format!(
                "{calm:.2} s with {} at once, {beside:.2} s with {}; judged: at most {BOUND} times as \
                 long",
                ours.calm.x, ours.greedy.x
            ),
        ),
        beside <= BOUND * calm,
    )
}

#[allow(clippy::cast_precision_loss)] // counts of a run are far below 2^53
fn never_first(experiment: &Experiment, data: &Data) -> Claim {
    let bounced = |who| {
        let points = points(experiment, data, who);
        let all = points.iter().flat_map(At::outcomes);
        all.map(|outcome| outcome.bounced_first).sum::<u64>()
    };
    let (ours, theirs) = (bounced(Who::Manxdb), bounced(Who::CaasLevel));
    Claim::judged(
        Source::Target,
        "Jobs that relieve level 0 are never the first of their database to be sent home.",
        Measured::new(
            ours as f64,
            0.0..=1e9,
            format!("{ours} times in all runs; {theirs} times with caas-level"),
        ),
        ours == 0,
    )
}

fn nobody_elses(ours: &Ends<'_>) -> Claim {
    #[allow(clippy::cast_precision_loss)] // counts of a run are far below 2^53
    let home = |outcome: &CaasOutcome| outcome.others.home_overloaded as f64;
    let sent = ours.greedy.median(home);
    Claim::judged(
        Source::Target,
        "A greedy tenant gets nobody else's jobs sent home.",
        Measured::new(
            sent,
            0.0..=1e9,
            format!(
                "{sent:.0} jobs of others sent home as too much with {} at once",
                ours.greedy.x
            ),
        ),
        sent == 0.0,
    )
}

fn ahead(experiment: &Experiment, data: &Data, who: Who) -> Claim {
    let stalls = |who| -> Vec<(f64, f64)> {
        let points = points(experiment, data, who);
        let stall = |at: &At<'_>| (at.x, at.median(|outcome| outcome.others.stalled));
        points.iter().map(stall).collect()
    };
    let (here, there) = (stalls(Who::Manxdb), stalls(who));
    let pairs = here.iter().zip(&there);
    let shown = pairs.map(|((asks, ours), (_, theirs))| {
        format!("{ours:.0} s and {theirs:.0} s with {asks} at once")
    });
    let shown: Vec<String> = shown.collect();
    let last = |stalls: &[(f64, f64)]| stalls.last().map_or(0.0, |(_, stalled)| *stalled);
    let (ours, theirs) = (last(&here), last(&there));
    let says = format!(
        "Writes of the others wait less with manxdb than with {}.",
        who.title()
    );
    let measured = format!("{}; judged: the last", shown.join(", "));
    if ours == 0.0 && theirs == 0.0 {
        return Claim::open(
            Source::Target,
            says,
            format!("{measured}, where nobody waits"),
        );
    }
    let measured = Measured::new(theirs - ours, -1e9..=1e9, measured);
    Claim::judged(Source::Target, says, measured, ours < theirs)
}

fn fair<const N: usize>(ours: &Ends<'_>, theirs: [Option<Ends<'_>>; N]) -> Claim {
    let jain = |at: &At<'_>| at.median(|outcome| outcome.jain);
    let best = theirs.iter().flatten().map(|ends| jain(&ends.greedy));
    let best = best.fold(0.0, f64::max);
    Claim::judged(
        Source::Target,
        "The others are slowed down more evenly than with any other policy of a pool.",
        Measured::new(
            jain(&ours.greedy),
            1e-3..=1.0,
            format!(
                "Jain's index {:.3}, the best of the others {best:.3}, with {} at once; a job's \
                 slowdown counts, and fair shares hold up who has had more than others",
                jain(&ours.greedy),
                ours.greedy.x
            ),
        ),
        jain(&ours.greedy) >= best,
    )
}

fn mean(at: &At<'_>) -> f64 {
    at.median(|outcome| outcome.others.queue.mean / 1e3)
}

fn order_of_random(random: &Ends<'_>, ranked: &Ends<'_>) -> Claim {
    let (drawn, chosen) = (mean(&random.greedy), mean(&ranked.greedy));
    Claim::judged(
        Source::Artifact,
        "Jobs wait longer when workers are drawn at random than when jobs are ranked as in CaaS-LSM \
         (the order alone).",
        Measured::new(
            drawn,
            1e-3..=36_000.0,
            format!(
                "the others' jobs {drawn:.2} s and {chosen:.2} s on average with {} at once, {:.2} s \
                 and {:.2} s with {}",
                random.greedy.x,
                mean(&random.calm),
                mean(&ranked.calm),
                random.calm.x
            ),
        ),
        drawn > chosen,
    )
}

fn size_of_random(random: &Ends<'_>, ranked: &Ends<'_>) -> Claim {
    let stalls = |at: &At<'_>| at.median(|outcome| outcome.others.stalled);
    Claim::open(
        Source::Artifact,
        "Nebula with a random placement has about 86 % lower OPS and 6 times the latency of Nebula on \
         CaaS-LSM.",
        format!(
            "not comparable in size: no queries here. Random keeps the others' jobs waiting {:.1} times as \
             long as caas-level does, and their writes {:.0} s where caas-level does {:.0} s, with {} at once",
            mean(&random.greedy) / mean(&ranked.greedy).max(1e-3),
            stalls(&random.greedy),
            stalls(&ranked.greedy),
            random.greedy.x
        ),
    )
}
