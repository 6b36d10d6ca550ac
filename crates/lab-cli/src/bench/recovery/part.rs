//! What each process of a run does.

use std::io;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use manxdb_checkout::{Basket, CheckoutOutcome, InRows, Shop as _, draw};
use manxdb_core::Random;
use manxdb_fabric::ServerId;
use manxdb_fabric::shm::MemoryServer;
use manxdb_rack::drive::Driver;
use manxdb_rack::memory::{Memory, SharedTransport, Source, Superblock, Watched, watch};
use serde::{Deserialize, Serialize};

use super::board::Notes;
use super::mortal::{Mortal, MortalWay};
use super::share::Share;
use super::{geometry, reach, rows_plan};
use crate::bench::cpu_of;
use crate::bench::memories;
use crate::bench::processes::{await_go, hear, say, until_end};
use crate::cli::{RecoveryPart, RecoveryRole, RecoveryShape};
use crate::fault::Fault;

/// What the starter says to a client: to die with locks; anything else, or nothing more, is to stop.
pub(super) const DIE: &str = "die";
/// The name of the database.
const NAME: &str = "rack-recovery";
/// Between two looks at what a recovery coordinator has done.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// Leases that the first client waits until it leads.
const PATIENCE: u32 = 16;
/// Tries of a checkout before one rests between two: somebody dead is in its way.
const TRIES: u32 = 16;
const REST: Duration = Duration::from_millis(1);

/// What a client says when it has stopped. Times are since it was told to go.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Bought {
    pub aborted: u64,
    /// When it placed no more orders.
    pub seconds: f64,
    pub cpu_seconds: f64,
    pub longest_ms: f64,
    /// When its recovery coordinator led first.
    pub led_ms: Option<f64>,
    /// When it had reaped somebody.
    pub reaped_ms: Option<f64>,
    /// When it was in the epoch behind a loss.
    pub agreed_ms: Option<f64>,
}

/// Runs one process of a run.
///
/// # Errors
/// Another one is not there or is gone; what decides the run makes no sense.
pub fn part(args: &RecoveryPart) -> Result<ExitCode, Fault> {
    let shape = serde_json::from_str(&args.shape)
        .map_err(|error| Fault::Other(format!("--shape: {error}")))?;
    let done = match args.role {
        RecoveryRole::Memory => serve(args, &shape),
        RecoveryRole::Client => client(args, &shape),
    };
    done.map(|()| ExitCode::SUCCESS)
        .map_err(|error| Fault::Other(error.to_string()))
}

fn serve(args: &RecoveryPart, shape: &RecoveryShape) -> io::Result<()> {
    let server = args.number;
    let memory = if shape.logs == 0 {
        let bytes = rows_plan(shape).map_err(io::Error::other)?.bytes();
        memories::serve(&args.directory, server, bytes)?
    } else {
        let superblock = Superblock {
            name: NAME.to_owned(),
            server,
            directory: 0,
            geometry: geometry(shape).map_err(io::Error::other)?,
        };
        let socket = SharedTransport::socket(&args.directory, server);
        let bytes = superblock.geometry.bytes;
        let first = [(0, superblock.encode())];
        MemoryServer::start_filled(&socket, ServerId(server), bytes, &first)?
    };
    memory.populate()?;
    until_end()
}

/// What a client is told while it buys.
#[derive(Default)]
struct Told {
    is_to_die: AtomicBool,
    is_to_stop: AtomicBool,
}

impl Told {
    fn listen(&self) {
        while hear().is_ok_and(|word| word == DIE) {
            self.is_to_die.store(true, Ordering::Relaxed);
        }
        self.is_to_stop.store(true, Ordering::Relaxed);
    }
}

fn client(args: &RecoveryPart, shape: &RecoveryShape) -> io::Result<()> {
    let dying = Arc::<AtomicBool>::default();
    if shape.logs == 0 {
        let plan = rows_plan(shape).map_err(io::Error::other)?;
        let memory = reach(&args.directory, shape, args.number).map_err(io::Error::other)?;
        let driver = Driver::new(Mortal::new(memory, &dying));
        let client = plan.client(args.number, driver).map_err(io::Error::other)?;
        let mut shop = InRows::fixed(client, args.number);
        return buy(&mut shop, args, shape, &dying, &Seen::default());
    }
    let way = MortalWay {
        way: SharedTransport::new(&args.directory),
        is_to_die: Arc::clone(&dying),
        is_populated: shape.populate,
    };
    let memory = Memory::open(way, number_by_chance(args, 0)).map_err(io::Error::other)?;
    let source: Arc<dyn Source<Mortal>> = Arc::new(memory);
    let mut shop = InRows::join(source, args.number).map_err(io::Error::other)?;
    let done = watched(args, shape, |seen| {
        buy(&mut shop, args, shape, &dying, seen)
    });
    shop.leave();
    done
}

/// No two processes of a run have the same, nor have the two ways of one.
fn number_by_chance(args: &RecoveryPart, way: u64) -> u64 {
    Random::stream(std::process::id().into(), &[args.number.into(), way]).next_bits()
}

/// Does something beside the recovery coordinator of this process.
fn watched<T>(
    args: &RecoveryPart,
    shape: &RecoveryShape,
    work: impl FnOnce(&Seen) -> io::Result<T>,
) -> io::Result<T> {
    let way = SharedTransport::new(&args.directory);
    let memory = Memory::open(way, number_by_chance(args, 1)).map_err(io::Error::other)?;
    let (coordinator, seen, stop) = (Watched::default(), Seen::default(), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| watch(&memory, &coordinator, &stop, &|_| {}));
        scope.spawn(|| seen.look(&coordinator, &stop));
        let done = lead(args, shape, &coordinator).and_then(|()| work(&seen));
        stop.store(true, Ordering::Relaxed);
        done
    })
}

/// The first client looks after the others, who are started when it does.
fn lead(args: &RecoveryPart, shape: &RecoveryShape, coordinator: &Watched) -> io::Result<()> {
    let until = Instant::now() + Duration::from_millis(shape.lease_ms.into()) * PATIENCE;
    while args.number == 0 && coordinator.term.load(Ordering::Relaxed) == 0 {
        if Instant::now() > until {
            return Err(io::Error::other("the first client does not come to lead"));
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// When a recovery coordinator did something first, in microseconds since its client was told to go; 0: not yet.
#[derive(Default)]
struct Seen {
    led: AtomicU64,
    reaped: AtomicU64,
    agreed: AtomicU64,
    /// Whether time has begun.
    began: OnceLock<Instant>,
}

impl Seen {
    fn look(&self, coordinator: &Watched, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            let pairs = [
                (&self.led, &coordinator.term),
                (&self.reaped, &coordinator.reaped),
                (&self.agreed, &coordinator.epoch),
            ];
            for (when, what) in pairs {
                if what.load(Ordering::Relaxed) > 0 && when.load(Ordering::Relaxed) == 0 {
                    when.store(self.now(), Ordering::Relaxed);
                }
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    fn now(&self) -> u64 {
        let span = self.began.get().map_or(Duration::ZERO, Instant::elapsed);
        u64::try_from(span.as_micros()).unwrap_or(u64::MAX).max(1)
    }

    #[allow(clippy::cast_precision_loss)] // a run is short
    fn ms(when: &AtomicU64) -> Option<f64> {
        let micros = when.load(Ordering::Relaxed);
        (micros > 0).then(|| micros as f64 / 1e3)
    }
}

/// Buys from when it is told to until it is told to stop, or to die, or has no orders left.
fn buy(
    shop: &mut InRows<Mortal>,
    args: &RecoveryPart,
    shape: &RecoveryShape,
    dying: &AtomicBool,
    seen: &Seen,
) -> io::Result<()> {
    let mut notes = Notes::open(&args.directory, shape, args.number)?;
    await_go()?;
    notes.begin();
    let told = Arc::<Told>::default();
    let listener = Arc::clone(&told);
    let listening = thread::spawn(move || listener.listen());
    let cpu = || cpu_of(Some(std::process::id())).unwrap_or_default();
    let (began, used) = (Instant::now(), cpu());
    let _ = seen.began.set(began); // once
    let mut random = Random::stream(shape.seed, &[args.number.into()]);
    let mut done = Bought::default();
    let mut share = Share::of(shape);
    let (mut last, mut longest) = (began, Duration::ZERO);
    while !told.is_to_stop.load(Ordering::Relaxed) {
        let basket = draw(&mut random, shape.products);
        if told.is_to_die.load(Ordering::Relaxed) {
            say(&serde_json::to_string(&basket).map_err(io::Error::other)?)?;
            dying.store(true, Ordering::Relaxed);
        }
        if insist(shop, basket, &told, &mut done.aborted)? {
            let now = Instant::now();
            notes.committed(now)?;
            longest = longest.max(now - last);
            last = now;
            match share.take() {
                Some(rest) => thread::sleep(rest),
                None => break,
            }
        }
    }
    done.seconds = began.elapsed().as_secs_f64();
    done.longest_ms = longest.max(last.elapsed()).as_secs_f64() * 1e3;
    done.cpu_seconds = cpu().saturating_sub(used).as_secs_f64();
    let _ = listening.join(); // until it is told to stop, or whoever has started it is gone
    done.led_ms = Seen::ms(&seen.led);
    done.reaped_ms = Seen::ms(&seen.reaped);
    done.agreed_ms = Seen::ms(&seen.agreed);
    say(&serde_json::to_string(&done).map_err(io::Error::other)?)
}

/// Tries a checkout until it is committed, or until there is no more time: whether it is.
fn insist(
    shop: &mut InRows<Mortal>,
    basket: Basket,
    told: &Told,
    aborted: &mut u64,
) -> io::Result<bool> {
    let mut tries = 0;
    loop {
        if shop.buy(basket).map_err(io::Error::other)? == CheckoutOutcome::Committed {
            return Ok(true);
        }
        (tries, *aborted) = (tries + 1, *aborted + 1);
        if told.is_to_stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        if tries < TRIES {
            thread::yield_now(); // whoever is there may wait for this processor
        } else {
            thread::sleep(REST);
        }
    }
}
