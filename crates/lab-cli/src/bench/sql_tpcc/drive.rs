//! The terminals: each makes one transaction after the other on a connection of its own.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use manxdb_txn::procedure::ShardId;
use manxdb_workloads::tpcc::{Generator, Parameters, Scale};
use manxdb_workloads::{Random, Topology};
use mysql::Conn;
use mysql::prelude::Queryable as _;

use super::terminal::{self, Ended, Job};
use crate::bench::histogram::Histogram;
use crate::cli::{TpccOnError, TpccRun};
use crate::fault::Fault;

/// A deadlock, and a lock that was not granted in time: the transaction may be tried again.
const RETRIED: [u16; 2] = [1213, 1205];

/// Pause before a transaction is tried again.
const PAUSE: Duration = Duration::from_millis(1);

/// What came of a run.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Times in microseconds of transactions that committed, tries that failed included.
    pub times: BTreeMap<&'static str, Histogram>,
    /// Transactions that committed within the time measured, by name.
    pub committed: BTreeMap<&'static str, u64>,
    /// Errors of the server by transaction and code (0: none of the server's), also those that
    /// were tried again.
    pub errors: BTreeMap<(&'static str, u16), u64>,
    /// NewOrders rolled back as the standard wants.
    pub rolled_back: u64,
    /// Workers that ended before their time.
    pub ended: u64,
    /// What the last of them died of.
    pub last_error: Option<String>,
    /// How long was measured.
    pub elapsed: Duration,
}

impl Outcome {
    fn merge(&mut self, other: Self) {
        for (name, times) in other.times {
            self.times.entry(name).or_default().merge(&times);
        }
        for (name, count) in other.committed {
            *self.committed.entry(name).or_default() += count;
        }
        for (what, count) in other.errors {
            *self.errors.entry(what).or_default() += count;
        }
        self.rolled_back += other.rolled_back;
        self.ended += other.ended;
        self.last_error = other.last_error.or(self.last_error.take());
    }

    /// NewOrders that committed in a minute.
    #[allow(clippy::cast_precision_loss)] // far below 2^53
    pub fn per_minute(&self) -> f64 {
        let orders = self.committed.get("NewOrder").copied().unwrap_or(0);
        orders as f64 * 60.0 / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

/// When is measured.
struct Window {
    from: Instant,
    to: Instant,
}

/// Runs all terminals to the end of the time.
///
/// # Errors
/// A connection that cannot be made.
pub fn run(
    args: &TpccRun,
    scale: Scale,
    connect: impl Fn() -> Result<Conn, Fault>,
) -> Result<Outcome, Fault> {
    let server = &args.server;
    let connections: Result<Vec<Conn>, Fault> = (0..server.threads).map(|_| connect()).collect();
    let connections = connections?;
    let topology = Topology {
        regions: 1,
        shards_per_region: server.warehouses,
    };
    let length = |seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let from = Instant::now() + length(args.load.warm_up);
    let window = Window {
        from,
        to: from + length(args.load.seconds),
    };
    let window = &window;
    let mut outcome = thread::scope(|scope| {
        let start = |(number, conn): (u32, Conn)| {
            let home = ShardId(number % server.warehouses);
            let parameters = Parameters::standard();
            let seed = args.load.seed;
            let worker = Worker {
                conn,
                generator: Generator::new(topology, scale, parameters, number, home, seed),
                random: Random::stream(seed, &[7, number.into()]),
                retries: server.on_error == TpccOnError::Retry,
                outcome: Outcome::default(),
            };
            scope.spawn(move || worker.work(window))
        };
        let workers: Vec<_> = (0..).zip(connections).map(start).collect();
        let mut all = Outcome::default();
        for worker in workers {
            match worker.join() {
                Ok(outcome) => all.merge(outcome),
                Err(_) => all.ended += 1,
            }
        }
        all
    });
    outcome.elapsed = window.to - window.from;
    Ok(outcome)
}

struct Worker {
    conn: Conn,
    generator: Generator,
    random: Random,
    retries: bool,
    outcome: Outcome,
}

impl Worker {
    fn work(mut self, window: &Window) -> Outcome {
        let mut date = 0;
        loop {
            let begun = Instant::now();
            if begun >= window.to {
                return self.outcome;
            }
            date += 1;
            let request = self.generator.next_request(date);
            let worked = Job::of(request.procedure, &request.args, &mut self.random)
                .and_then(|job| self.make(&job, begun, window));
            if let Err(error) = worked {
                self.outcome.ended += 1;
                self.outcome.last_error = Some(error.to_string());
                return self.outcome;
            }
        }
    }

    /// Makes one transaction, as often as it takes.
    fn make(&mut self, job: &Job, begun: Instant, window: &Window) -> Result<(), Fault> {
        let name = job.name();
        loop {
            let error = match terminal::run(&mut self.conn, job) {
                Ok(ended) => {
                    self.count(name, ended, begun, window);
                    return Ok(());
                }
                Err(error) => error,
            };
            let code = match &error {
                mysql::Error::MySqlError(error) => error.code,
                _ => 0,
            };
            *self.outcome.errors.entry((name, code)).or_default() += 1;
            if !self.retries || !RETRIED.contains(&code) {
                let what = format!("{name}: {error}");
                return Err(Fault::Other(what));
            }
            self.conn.query_drop("ROLLBACK")?;
            if Instant::now() >= window.to {
                return Ok(());
            }
            thread::sleep(PAUSE);
        }
    }

    fn count(&mut self, name: &'static str, ended: Ended, begun: Instant, window: &Window) {
        let now = Instant::now();
        if now < window.from || now > window.to {
            return;
        }
        if ended == Ended::RolledBack {
            self.outcome.rolled_back += 1;
            return;
        }
        *self.outcome.committed.entry(name).or_default() += 1;
        let micros = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.outcome.times.entry(name).or_default().add(micros);
    }
}
