//! Sends pages: as they arrive (open loop), or one after the other (closed loop).

use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use jiff::Zoned;
use manxdb_workloads::lobsters::{Counters, Kind, Mix, Page, Request, Scale};
use manxdb_workloads::{Answer, Random, Statement, Value};

use super::Link;
use super::measure::{Answers, Seen, cpu_of};
use crate::cli::LobstersRun;
use crate::fault::Fault;

/// A measurement's result.
#[derive(Debug)]
pub struct Outcome {
    /// Times and failures, without those of the warm-up.
    pub seen: Seen,
    /// How long was measured, until the last page was done.
    pub elapsed: Duration,
    /// Pages a second that were meant to arrive; None in a closed loop.
    pub rate: Option<f64>,
    /// CPU the server used, when its process was named.
    pub server_cpu: Option<Duration>,
    /// CPU this process used.
    pub client_cpu: Option<Duration>,
    /// As the server names itself, and as many bytes as it says that its tables have; where asked for.
    pub server: Option<(String, i64)>,
}

/// A page and the moment it arrived.
type Arrival = (Instant, Request);

/// Runs a measurement.
///
/// # Errors
/// No connection; a database that was not filled.
pub fn run(args: &LobstersRun, scale: Scale, only: Option<Kind>) -> Result<Outcome, Fault> {
    let (url, password) = (&args.site.url, args.site.password.as_deref());
    let counters = greatest_ids(&mut Link::open(url, password, true)?)?;
    let mut mix = Mix::new(scale, args.site.seed, counters);
    if let Some(kind) = only {
        mix = mix.only(kind);
    }
    let links: Result<Vec<Link>, Fault> = (0..args.connections.max(1))
        .map(|_| {
            let link = Link::open(url, password, true)?;
            // Of answers that are kept, every value counts.
            Ok(if args.answers {
                link
            } else {
                link.without_dates()
            })
        })
        .collect();
    let start = Instant::now();
    let window = Window {
        count_from: start + seconds(args.warm_up),
        end: start + seconds(args.warm_up) + seconds(args.seconds),
        notifications: args.notifications,
        keeps_answers: args.answers,
    };
    let cpu_before = Mutex::new(None);
    let seen = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(seconds(args.warm_up));
            let read = (cpu_of(args.server_pid), cpu_of(Some(std::process::id())));
            if let Ok(mut before) = cpu_before.lock() {
                *before = Some(read);
            }
        });
        match args.rate {
            Some(rate) => open_loop(&window, links?, mix, rate, args.site.seed),
            None => Ok(closed_loop(&window, links?, mix)),
        }
    })?;
    let elapsed = Instant::now().saturating_duration_since(window.count_from);
    let (server, client) = cpu_before.into_inner().ok().flatten().unwrap_or_default();
    let since =
        |now: Option<Duration>, before: Option<Duration>| Some(now?.saturating_sub(before?));
    Ok(Outcome {
        seen,
        elapsed,
        rate: args.rate,
        server_cpu: since(cpu_of(args.server_pid), server),
        client_cpu: since(cpu_of(Some(std::process::id())), client),
        server: args
            .details
            .then(|| describe(&mut Link::open(url, password, true)?))
            .transpose()?,
    })
}

/// The server's version, and as many bytes as it says that the tables of the database have.
fn describe(link: &mut Link) -> Result<(String, i64), Fault> {
    let version = link.ask(&Statement::text("version", "SELECT VERSION() AS version"))?;
    let version = version
        .rows
        .first()
        .and_then(|row| row.first())
        .map(Value::literal);
    let sizes = "SELECT CAST(COALESCE(SUM(data_length + index_length), 0) AS SIGNED) AS bytes \
                 FROM information_schema.tables WHERE table_schema = DATABASE()";
    let bytes = link.ask(&Statement::text("sizes", sizes))?.integer("bytes");
    let version = version.unwrap_or_default();
    Ok((version.trim_matches('\'').to_owned(), bytes.unwrap_or(0)))
}

/// The time a measurement covers, and what its pages show.
struct Window {
    count_from: Instant,
    end: Instant,
    notifications: bool,
    keeps_answers: bool,
}

/// An argument in seconds; what is no length of time is none.
fn seconds(number: f64) -> Duration {
    Duration::try_from_secs_f64(number).unwrap_or_default()
}

/// Asks where ids of new rows may begin.
fn greatest_ids(link: &mut Link) -> Result<Counters, Fault> {
    let mut greatest = |table: &'static str| -> Result<i64, Fault> {
        let text = format!("SELECT COALESCE(MAX(id), 0) AS id FROM {table}");
        Ok(link
            .ask(&Statement::text("greatest id", text))?
            .integer("id")
            .unwrap_or(0))
    };
    let counters = Counters {
        stories: greatest("stories")?,
        comments: greatest("comments")?,
        votes: greatest("votes")?,
        taggings: greatest("taggings")?,
        read_ribbons: greatest("read_ribbons")?,
    };
    if counters.stories == 0 {
        return Err(Fault::Other(
            "there are no stories: run `fill` first".into(),
        ));
    }
    Ok(counters)
}

/// Pages arrive by a Poisson process and wait for a free connection.
fn open_loop(
    window: &Window,
    links: Vec<Link>,
    mut mix: Mix,
    rate: f64,
    seed: u64,
) -> Result<Seen, Fault> {
    if rate.is_nan() || rate <= 0.0 {
        return Err(Fault::Other(format!("--rate {rate} is not above 0")));
    }
    let (sender, receiver) = mpsc::channel();
    let receiver = Mutex::new(receiver);
    thread::scope(|scope| {
        let workers: Vec<_> = links
            .into_iter()
            .map(|link| scope.spawn(|| serve(window, link, || next_arrival(&receiver))))
            .collect();
        arrive(
            window,
            &mut mix,
            &mut Random::new(seed ^ 0xA5A5),
            rate,
            &sender,
        );
        drop(sender);
        Ok(gather(workers))
    })
}

/// Sends arrivals until the window ends.
fn arrive(
    window: &Window,
    mix: &mut Mix,
    random: &mut Random,
    rate: f64,
    sender: &Sender<Arrival>,
) {
    let mut next = Instant::now();
    while next < window.end {
        let wait = next.saturating_duration_since(Instant::now());
        if !wait.is_zero() {
            thread::sleep(wait);
        }
        if sender.send((next, mix.request())).is_err() {
            return;
        }
        next += seconds(random.exponential(1.0 / rate));
    }
}

fn next_arrival(receiver: &Mutex<Receiver<Arrival>>) -> Option<Arrival> {
    receiver.lock().ok()?.recv().ok()
}

/// Every connection asks for its next page when it has the last one.
fn closed_loop(window: &Window, links: Vec<Link>, mix: Mix) -> Seen {
    let mix = Mutex::new(mix);
    let next = || {
        let now = Instant::now();
        (now < window.end).then_some(())?;
        Some((now, mix.lock().ok()?.request()))
    };
    thread::scope(|scope| {
        let workers = links
            .into_iter()
            .map(|link| scope.spawn(|| serve(window, link, next)));
        gather(workers.collect())
    })
}

fn gather(workers: Vec<thread::ScopedJoinHandle<'_, Seen>>) -> Seen {
    let mut all = Seen::default();
    for worker in workers {
        match worker.join() {
            Ok(seen) => all.merge(seen),
            Err(_) => *all.failures.entry("a worker panicked".into()).or_default() += 1,
        }
    }
    all
}

/// One connection's work until there are no more pages.
fn serve(window: &Window, mut link: Link, next: impl Fn() -> Option<Arrival>) -> Seen {
    let mut seen = Seen {
        answers: window.keeps_answers.then(Answers::default),
        ..Seen::default()
    };
    while let Some((arrived, request)) = next() {
        let counts = arrived >= window.count_from;
        let kind = request.kind().name();
        let page = page_of(request, window.notifications);
        match serve_page(&mut link, page, counts.then_some(&mut seen)) {
            Ok(()) if counts => seen.pages.entry(kind).or_default().add(arrived.elapsed()),
            Ok(()) => {}
            Err(error) => {
                *seen.failures.entry(format!("{kind}: {error}")).or_default() += 1;
            }
        }
    }
    seen
}

/// The page of a request that arrives now.
fn page_of(request: Request, notifications: bool) -> Page {
    let now = Zoned::now().strftime("%Y-%m-%d %H:%M:%S.%9f").to_string();
    let page = Page::new(request, now);
    if notifications {
        return page.with_notifications();
    }
    page
}

/// Serves one page; statements' times go into `seen`.
fn serve_page(link: &mut Link, mut page: Page, mut seen: Option<&mut Seen>) -> mysql::Result<()> {
    let mut answer = Answer::default();
    while let Some(statement) = page.next(&answer) {
        let started = Instant::now();
        answer = link.ask(&statement)?;
        if let Some(seen) = seen.as_deref_mut() {
            seen.statements
                .entry(statement.name)
                .or_default()
                .add(started.elapsed());
            if let Some(answers) = &mut seen.answers {
                answers.keep(&statement, &answer);
            }
        }
    }
    Ok(())
}
