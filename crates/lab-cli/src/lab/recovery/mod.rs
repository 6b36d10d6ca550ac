//! The experiment with kills: customers in rows in one-sided memory, in processes of this machine, of
//! whom one is killed, and a memory server too; and what replicas and logs cost while all live.
//!
//! | question | answered in |
//! |---|---|
//! | what is run, and what its report says | here |
//! | the figure | [`figure`](mod@figure) |
//! | what is said, and whether it holds | [`claims`](mod@claims) |

mod claims;
mod figure;
mod plausible;

use std::fmt::Write as _;

use manxdb_lab::experiment::data::{Data, Record};
use manxdb_lab::experiment::{
    At, Design, Experiment, ExperimentKind, Falsification, Scale, series,
};
use manxdb_lab::trial_error::TrialError;

use super::rack::repetitions;
use crate::bench::recovery::{Outcome, measure};
use crate::cli::{Loss, RecoveryShape, Victim};

/// The experiments, in the order of the list.
pub static ALL: [&dyn Experiment; 1] = [&EXPERIMENT];

/// Customers who may die, in processes.
#[derive(Debug, Clone, PartialEq)]
pub struct Surviving;

/// The experiment.
static EXPERIMENT: Design<Surviving> = Design {
    name: "rsi-recovery",
    about: "checkouts over time while a client and a memory server are killed, and what replicas cost",
    origin: "Not in the paper, which has neither: Binnig et al. leave logging, replicas and dead \
             clients to later work.",
    swept: "copies of each commit's log",
    plan,
    at,
    label,
    figure: figure::figure,
    judge: claims::claims,
};

/// Memory servers: one more than copies of rows, so that after a loss there are as many again.
const SERVERS: u16 = 4;
/// Copies of rows, and of logs, that are compared: one and none, one and one, all.
const COPIES: [(u16, u16); 3] = [(1, 0), (1, 1), (3, 3)];

fn at(trial: &RecoveryShape) -> f64 {
    f64::from(trial.logs)
}

fn plan(scale: Scale, seed: u64) -> Vec<RecoveryShape> {
    let rows: &[u16] = scale.pick(&[128], &[128, 1_024], &[128, 1_024]);
    let base = RecoveryShape {
        clients: scale.pick(1, 2, 8),
        servers: SERVERS,
        replicas: 3,
        logs: 3,
        products: scale.pick(300, 10_000, 100_000),
        row_bytes: 128,
        lease_ms: scale.pick(2_000, 1_000, 1_000),
        populate: false,
        kill_client: Victim::None,
        kill_server: Loss::None,
        seconds: scale.pick(1, 1, 10),
        orders: scale.pick(10_000, 160_000, 4_000_000),
        seed,
    };
    let seeds = (seed..).take(repetitions(scale));
    let trials = seeds.flat_map(|seed| {
        let quiet = rows.iter().flat_map(move |row_bytes| {
            COPIES.map(|(replicas, logs)| RecoveryShape {
                replicas,
                logs,
                row_bytes: *row_bytes,
                // All room is there from the beginning: no more than is used, in half the time.
                seconds: base.seconds.div_ceil(2),
                // As cards have all tables; a client fills its own while it has its place already.
                populate: true,
                lease_ms: 10_000,
                orders: base.orders * 128 / u64::from(*row_bytes).clamp(128, 256),
                seed,
                ..base
            })
        });
        let victims: &[Victim] = scale.pick(
            &[Victim::Other],
            &[Victim::Other, Victim::Leader],
            &[Victim::Other, Victim::Leader],
        );
        let kills = victims.iter().map(move |victim| RecoveryShape {
            clients: base.clients + scale.pick(2, 1, 0),
            kill_client: *victim,
            kill_server: Loss::First,
            orders: scale.pick(20_000, 500_000, 4_000_000),
            seed,
            ..base
        });
        quiet.chain(kills)
    });
    trials.collect()
}

/// A trial, for people.
fn label(_: &Design<Surviving>, trial: &RecoveryShape) -> String {
    match trial.kill_client {
        Victim::None => format!(
            "{} copies, {} logs, rows of {} bytes",
            trial.replicas, trial.logs, trial.row_bytes
        ),
        victim => format!("kills: {}", name(victim)),
    }
}

/// Who is killed, for people.
fn name(victim: Victim) -> &'static str {
    match victim {
        Victim::None => "nobody",
        Victim::Leader => "the client that leads",
        Victim::Other => "another client",
    }
}

/// Runs of which somebody was killed.
fn killed(data: &Data<Surviving>, victim: Victim) -> impl Iterator<Item = &Record<Surviving>> {
    let records = data.records.iter();
    records.filter(move |one| victim != Victim::None && one.trial.kill_client == victim)
}

/// Runs without kills on rows of so many bytes, by copies of logs.
fn quiet(data: &Data<Surviving>, row_bytes: u16) -> Vec<At<'_, Surviving>> {
    let belongs = |record: &Record<Surviving>| {
        record.trial.kill_client == Victim::None && record.trial.row_bytes == row_bytes
    };
    series(&data.records, belongs, |record| at(&record.trial))
}

/// The sizes of rows that there are quiet runs on.
fn sizes(data: &Data<Surviving>) -> Vec<u16> {
    let trials = data.records.iter().map(|record| &record.trial);
    let quiet = trials.filter(|trial| trial.kill_client == Victim::None);
    let mut sizes: Vec<u16> = quiet.map(|trial| trial.row_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

impl ExperimentKind for Surviving {
    type Trial = RecoveryShape;
    type Outcome = Outcome;

    const PART: &'static str = "rack";
    const SIMULATED: bool = false;

    fn seed(trial: &RecoveryShape) -> u64 {
        trial.seed
    }

    fn reseeded(trial: &RecoveryShape, seed: u64) -> RecoveryShape {
        RecoveryShape { seed, ..*trial }
    }

    fn run(trial: &RecoveryShape, progress: &mut dyn FnMut(f64)) -> Result<Outcome, TrialError> {
        let outcome = measure(trial).map_err(TrialError::Failed)?;
        progress(1.0);
        Ok(outcome)
    }

    fn columns() -> String {
        "clients,servers,replicas,logs,products,row_bytes,lease_ms,killed,seed,seconds,committed,\
         aborted,per_second,client_cpu_us,server_cpu_us,longest_ms,death_at_ms,led,locks_ms,reaped_ms,\
         death_silent_ms,death_back_ms,loss_at_ms,agreed_ms,loss_silent_ms,loss_back_ms,loss_all_ms,\
         before_loss,after_loss"
            .to_owned()
    }

    fn row(record: &Record<Self>) -> String {
        let Record { trial, outcome } = record;
        let said = |number: Option<f64>| number.map(|one| one.to_string()).unwrap_or_default();
        let (death, loss) = (outcome.death, outcome.loss);
        let (by_death, by_loss) = (outcome.death_effect(), outcome.loss_effect());
        let numbers = [
            trial.clients.to_string(),
            trial.servers.to_string(),
            trial.replicas.to_string(),
            trial.logs.to_string(),
            trial.products.to_string(),
            trial.row_bytes.to_string(),
            trial.lease_ms.to_string(),
            name(trial.kill_client).to_owned(),
            trial.seed.to_string(),
            outcome.seconds.to_string(),
            outcome.committed().to_string(),
            outcome.aborted.to_string(),
            outcome.rate().to_string(),
            outcome.client_cpu_us().to_string(),
            outcome.server_cpu_us().to_string(),
            outcome.longest_ms.to_string(),
            said(death.map(|one| one.at_ms)),
            death.map(|one| one.led.to_string()).unwrap_or_default(),
            said(death.map(|one| one.locks_ms)),
            said(death.and_then(|one| one.reaped_ms)),
            said(by_death.map(|one| one.silent_ms)),
            said(by_death.and_then(|one| one.back_ms)),
            said(loss.map(|one| one.at_ms)),
            said(loss.and_then(|one| one.agreed_ms)),
            said(by_loss.map(|one| one.silent_ms)),
            said(by_loss.and_then(|one| one.back_ms)),
            said(by_loss.and_then(|one| one.all_ms)),
            said(by_loss.map(|one| one.before)),
            said(by_loss.map(|one| one.after)),
        ];
        numbers.join(",")
    }

    fn implausible(trial: &RecoveryShape, outcome: &Outcome) -> Result<(), String> {
        plausible::check(trial, outcome)
    }

    fn samples(outcome: &Outcome) -> (u64, u64) {
        plausible::samples(outcome)
    }

    fn system(trial: &RecoveryShape) -> String {
        format!("{}, {} logs", name(trial.kill_client), trial.logs)
    }

    fn falsify(_: &RecoveryShape, outcome: &mut Outcome, how: Falsification) {
        plausible::falsify(outcome, how);
    }

    fn details(_: &Design<Self>, data: &Data<Self>) -> String {
        let mut text = costs(data);
        text.push_str(&deaths(data));
        text.push_str(&losses(data));
        text.push_str(UNLIKE);
        text
    }
}

/// What copies cost.
fn costs(data: &Data<Surviving>) -> String {
    let mut text = String::from(
        "## While all live\n\nMedians of the repetitions. CPU is of a checkout, of all processes of a \
         side.\n\n| copies of rows | of logs | bytes of a row | checkouts/s | CPU of clients (µs) | of \
         servers (µs) |\n|---|---|---|---|---|---|\n",
    );
    for row_bytes in sizes(data) {
        for at in quiet(data, row_bytes) {
            let copies = if at.x > 1.0 { at.x } else { 1.0 };
            let _ = writeln!(
                text,
                "| {copies} | {} | {row_bytes} | {:.0} | {:.1} | {:.2} |",
                at.x,
                at.median(Outcome::rate),
                at.median(Outcome::client_cpu_us),
                at.median(Outcome::server_cpu_us),
            );
        }
    }
    text
}

fn or_never(ms: Option<f64>) -> String {
    ms.map_or("not seen".to_owned(), |ms| format!("{ms:.0}"))
}

/// What the death of a client did, run by run.
fn deaths(data: &Data<Surviving>) -> String {
    let mut text = String::from(
        "\n## A client is killed, with three products locked\n\nMilliseconds since the kill, of the \
         others. Recovered: the starter of the run has written what was locked.\n\n| killed | seed | \
         locks recovered | in leases | place free | longest time without any commit | 90 % done again | \
         checkouts/s before | after |\n|---|---|---|---|---|---|---|---|---|\n",
    );
    for victim in [Victim::Other, Victim::Leader] {
        for record in killed(data, victim) {
            let outcome = &record.outcome;
            let (Some(death), Some(effect)) = (outcome.death, outcome.death_effect()) else {
                continue;
            };
            let _ = writeln!(
                text,
                "| {} | {} | {:.0} | {:.2} | {} | {:.0} | {} | {:.0} | {:.0} |",
                name(victim),
                record.trial.seed,
                death.locks_ms,
                claims::leases(record),
                or_never(death.reaped_ms),
                effect.silent_ms,
                or_never(effect.back_ms),
                effect.before,
                effect.after,
            );
        }
    }
    text
}

/// What the loss of a memory server did, run by run.
fn losses(data: &Data<Surviving>) -> String {
    let mut text = String::from(
        "\n## Then a memory server is killed\n\nMilliseconds since the kill.\n\n| killed before | seed | \
         agreed on | longest time without any commit | all have committed again | 90 % done again | \
         checkouts/s before | after |\n|---|---|---|---|---|---|---|---|\n",
    );
    for victim in [Victim::Other, Victim::Leader] {
        for record in killed(data, victim) {
            let outcome = &record.outcome;
            let (Some(loss), Some(effect)) = (outcome.loss, outcome.loss_effect()) else {
                continue;
            };
            let _ = writeln!(
                text,
                "| {} | {} | {} | {:.0} | {} | {} | {:.0} | {:.0} |",
                name(victim),
                record.trial.seed,
                or_never(loss.agreed_ms),
                effect.silent_ms,
                or_never(effect.all_ms),
                or_never(effect.back_ms),
                effect.before,
                effect.after,
            );
        }
    }
    text
}

const UNLIKE: &str = "
## How to read this

- Rows are found by keys in a tree and have four versions: a checkout looks for each and writes the \
leaf of its four new keys with them; a checkout of `rsi-scale` finds records by their places.
- With no log there are no leases, places or coordinators; with one there are, and versions that are \
pushed out of rows are kept.
- Memory servers have all of their memory before anybody buys (`manxdb memory --populate`), as cards \
pin it. A client's own tables of pages are filled before it buys where nobody is killed, as in \
`rsi-scale`: no card waits for them. Where somebody is, leases are too short for that, and they are \
filled as it comes by each page first.
- Memory is shared by processes of this machine: writing to three servers takes three times the copies \
of one client's processor, where network cards would do it beside each other.
- A client dies by SIGKILL right after it has asked for the locks of its checkout. Customers insist on \
what they want: one who wants what the dead client has locked waits until it is recovered, and with \
so few products all of them soon do.
- The memory server that is killed is the first one, which has the copies that count of the table of \
places and of the vector. What it had is copied to others at once, by a client's process, which takes \
processor time from customers until all room of it, used or not, is copied.
- After every run the books are checked: every order that was acknowledged is there with all of its \
lines, three products are sold for each, and every product can be written.
";

#[cfg(test)]
mod tests;
