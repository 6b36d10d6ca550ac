//! Starts the processes of a run, kills two of them, and checks the books behind them.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use manxdb_checkout::{Basket, CheckoutOutcome, InRows, Sales, Shop as _};
use manxdb_fabric::shm::SharedMemory;
use manxdb_rack::drive::Driver;
use manxdb_rack::memory::{Memory, SharedTransport, Source};

use super::board::Board;
use super::part::{Bought, DIE};
use super::share::Share;
use super::timeline::{Death, Loss, Outcome};
use super::{reach, rows_plan};
use crate::bench::processes::{self, Process};
use crate::cli::{self, RecoveryShape, Victim};

/// Between two looks at others, and between two tries to write what a dead client had locked.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// Leases that recovery may take before the run has failed, and what it may take beyond.
const PATIENCE: u32 = 16;
const BEYOND: Duration = Duration::from_secs(20);

/// Runs a load, kills who is to be killed, and checks the books.
///
/// # Errors
/// Sizes that cannot be, processes that fail, books that are wrong.
pub fn measure(shape: &RecoveryShape) -> Result<Outcome, String> {
    check(shape)?;
    let directory = tempfile::tempdir().map_err(|error| format!("a directory: {error}"))?;
    let mut run = Run::start(directory.path(), shape)?;
    run.rest()?;
    let death = match run.victim() {
        Some(client) => Some(run.kill_client(client)?),
        None => None,
    };
    let loss = match run.lost() {
        Some(server) => Some(run.kill_server(server)?),
        None => None,
    };
    run.stop(death, loss)
}

/// Whether these numbers can be.
fn check(shape: &RecoveryShape) -> Result<(), String> {
    if shape.logs > 0 {
        super::geometry(shape)?;
    } else {
        rows_plan(shape)?;
    }
    let kills_client = shape.kill_client != Victim::None;
    let kills_server = shape.kill_server != cli::Loss::None;
    if kills_client && (shape.logs == 0 || shape.clients < 2) {
        let why =
            "nobody goes on where a client is killed and nothing is logged, or no other is left";
        return Err(format!("{why}: give --kill-client none"));
    }
    if kills_server && shape.replicas == 1 {
        let why = "rows without replicas are lost with a memory server";
        return Err(format!("{why}: give --kill-server none"));
    }
    Ok(())
}

/// The processes, and whoever has started them.
struct Run<'r> {
    shape: &'r RecoveryShape,
    board: Board,
    /// By their numbers; none: it was killed.
    servers: Vec<Option<Process>>,
    clients: Vec<Option<Process>>,
    starter: InRows<SharedMemory>,
    /// What the starter has bought.
    bought: u64,
    /// When all were told to go, and what CPU each server had used.
    began: Instant,
    used: Vec<f64>,
}

impl<'r> Run<'r> {
    fn start(directory: &Path, shape: &'r RecoveryShape) -> Result<Self, String> {
        let said = serde_json::to_string(shape).map_err(text)?;
        let args = |role: &str, number: u16| -> Vec<String> {
            let number = number.to_string();
            let directory = directory.display().to_string();
            let words = ["bench", "rack-recovery-part", role, &number, "--directory"];
            let words = words.map(String::from).into_iter();
            let rest = [directory, "--shape".into(), said.clone()];
            words.chain(rest).collect()
        };
        let board = Board::start(directory, shape).map_err(text)?;
        let servers = processes::start_all("memory server", shape.servers, |number| {
            args("memory", number)
        })?;
        let starter = stocked(directory, shape)?;
        let some =
            |numbers| processes::start_some("client", numbers, |number| args("client", number));
        let mut clients = some(0..1)?; // which leads, where there is something to lead
        clients.extend(some(1..shape.clients)?);
        for client in &mut clients {
            client.tell("go")?;
        }
        Ok(Self {
            shape,
            board,
            used: servers.iter().map(Process::cpu).collect(),
            servers: servers.into_iter().map(Some).collect(),
            clients: clients.into_iter().map(Some).collect(),
            starter,
            bought: 0,
            began: Instant::now(),
        })
    }

    fn victim(&self) -> Option<u16> {
        match self.shape.kill_client {
            Victim::None => None,
            Victim::Leader => Some(0),
            Victim::Other => Some(self.shape.clients - 1), // two at least
        }
    }

    fn lost(&self) -> Option<u16> {
        match self.shape.kill_server {
            cli::Loss::None => None,
            cli::Loss::First => Some(0),
            cli::Loss::Last => Some(self.shape.servers - 1),
        }
    }

    fn ms(&self) -> f64 {
        self.began.elapsed().as_secs_f64() * 1e3
    }

    fn lease(&self) -> Duration {
        Duration::from_millis(self.shape.lease_ms.into())
    }

    /// Waits while all goes well, or until nobody has an order left.
    fn rest(&mut self) -> Result<(), String> {
        let end = Instant::now() + Duration::from_secs(self.shape.seconds.into());
        let share = Share::of(self.shape).all();
        while Instant::now() < end && self.sums().iter().any(|sum| *sum < share) {
            self.starter.keep().map_err(text)?;
            thread::sleep((self.lease() / 16).min(end.saturating_duration_since(Instant::now())));
        }
        Ok(())
    }

    /// Waits until something is so that recovery brings about.
    fn until(
        &mut self,
        what: &str,
        mut holds: impl FnMut(&mut Self) -> Result<bool, String>,
    ) -> Result<(), String> {
        let end = Instant::now() + self.lease() * PATIENCE + BEYOND;
        while !holds(self)? {
            if Instant::now() > end {
                return Err(format!("{what} within {PATIENCE} leases"));
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Kills a client with the products of a checkout locked; whether it led is found out later.
    fn kill_client(&mut self, number: u16) -> Result<Death, String> {
        let victim = self.clients.get_mut(usize::from(number));
        let mut victim = victim.and_then(Option::take).ok_or("there is no client")?;
        victim.tell(DIE)?;
        let locked: Basket = victim.done()?;
        let at_ms = self.ms();
        victim.await_end()?;
        self.until(
            "nobody could write what the dead client had locked",
            |run| {
                let verdict = run.starter.buy(locked).map_err(text)?;
                Ok(verdict == CheckoutOutcome::Committed)
            },
        )?;
        self.bought += 1;
        let locks_ms = self.ms() - at_ms;
        self.rest()?;
        Ok(Death {
            client: number,
            led: false,
            at_ms,
            locks_ms,
            reaped_ms: None,
        })
    }

    /// Kills a memory server, and waits until all clients have committed again.
    fn kill_server(&mut self, number: u16) -> Result<Loss, String> {
        let server = self.servers.get_mut(usize::from(number));
        let mut server = server.and_then(Option::take).ok_or("there is no server")?;
        let at_ms = self.ms();
        server.kill()?;
        let before = self.sums();
        self.until("not all clients have committed behind the loss", |run| {
            run.starter.keep().map_err(text)?;
            let sums = run.sums();
            Ok(sums.iter().zip(&before).all(|(now, before)| now > before))
        })?;
        self.rest()?;
        Ok(Loss {
            server: number,
            at_ms,
            agreed_ms: None,
        })
    }

    /// What clients that live have committed.
    fn sums(&self) -> Vec<u64> {
        let clients = (0..).zip(&self.clients);
        let alive = clients.filter(|(_, process)| process.is_some());
        alive.map(|(number, _)| self.board.sum(number)).collect()
    }

    /// Ends it, and checks the books.
    fn stop(mut self, death: Option<Death>, loss: Option<Loss>) -> Result<Outcome, String> {
        let took = self.began.elapsed();
        let servers = self.servers.iter().zip(&self.used);
        let used = servers.filter_map(|(server, before)| Some(server.as_ref()?.cpu() - before));
        let server_cpu = used.sum();
        let mut clients: Vec<Process> = self.clients.drain(..).flatten().collect();
        for client in &mut clients {
            client.tell("stop")?;
        }
        let done = clients.iter_mut().map(Process::done);
        let done: Vec<Bought> = done.collect::<Result<_, _>>()?;
        let sum = |number: fn(&Bought) -> f64| done.iter().map(number).sum::<f64>();
        let numbers = 0..self.shape.clients;
        let outcome = Outcome {
            every_ms: super::board::EVERY.as_secs_f64() * 1e3,
            counts: numbers.map(|client| self.board.of(client, took)).collect(),
            aborted: done.iter().map(|one| one.aborted).sum(),
            seconds: done.iter().map(|one| one.seconds).fold(0.0, f64::max),
            client_cpu: sum(|one| one.cpu_seconds),
            server_cpu,
            longest_ms: done.iter().map(|one| one.longest_ms).fold(0.0, f64::max),
            death: death.map(|death| seen(death, &done)),
            loss: loss.map(|loss| Loss {
                agreed_ms: first(&done, loss.at_ms, |one| one.agreed_ms),
                ..loss
            }),
        };
        self.audit(death)?;
        Ok(outcome)
    }

    /// Whether what was acknowledged is there, and nothing else, and nobody holds a lock.
    fn audit(&mut self, death: Option<Death>) -> Result<(), String> {
        let (products, clients) = (self.shape.products, self.shape.clients);
        self.starter.touch(products).map_err(text)?;
        let found = self.starter.audit(products, clients + 1).map_err(text)?;
        let mut acknowledged: Vec<u64> = (0..clients).map(|one| self.board.sum(one)).collect();
        acknowledged.push(self.bought);
        judge(&found, &acknowledged, death.map(|death| death.client))
    }
}

/// Checks orders against those that were acknowledged: of who was killed one more may be there.
fn judge(found: &Sales, acknowledged: &[u64], killed: Option<u16>) -> Result<(), String> {
    let killed = killed.map(usize::from);
    let pairs = found.orders.iter().zip(acknowledged).enumerate();
    let is_right = |(client, (found, known)): (usize, (&u64, &u64))| {
        found == known || Some(client) == killed && *found == known + 1
    };
    let sold = 3 * found.orders.iter().sum::<u64>();
    if pairs.into_iter().all(is_right)
        && found.orders.len() == acknowledged.len()
        && found.sold == sold
    {
        return Ok(());
    }
    Err(format!(
        "the books are wrong: {found:?}, and acknowledged are {acknowledged:?}"
    ))
}

/// What those who live on have seen of a death.
fn seen(death: Death, done: &[Bought]) -> Death {
    let has_led = |one: &Bought| one.led_ms.is_some_and(|led| led < death.at_ms);
    Death {
        led: !done.iter().any(has_led),
        reaped_ms: first(done, death.at_ms, |one| one.reaped_ms),
        ..death
    }
}

/// How long after a kill the first of them saw something.
fn first(done: &[Bought], at_ms: f64, when: fn(&Bought) -> Option<f64>) -> Option<f64> {
    let times = done.iter().filter_map(when);
    times.min_by(f64::total_cmp).map(|ms| ms - at_ms)
}

/// Somebody who has put all products into the shop.
fn stocked(directory: &Path, shape: &RecoveryShape) -> Result<InRows<SharedMemory>, String> {
    let (number, bytes) = (shape.clients, usize::from(shape.row_bytes));
    if shape.logs == 0 {
        let plan = rows_plan(shape)?;
        let thread = |thread| {
            let driver = Driver::new(reach(directory, shape, thread)?);
            let client = plan.client(thread, driver).map_err(text)?;
            Ok::<_, String>(InRows::fixed(client, number))
        };
        let mut loader = thread(plan.loader(0))?;
        loader.stock_up(shape.products, bytes).map_err(text)?;
        return thread(number);
    }
    let seed = u64::from(std::process::id()) << 32 | shape.seed & 0xffff_ffff;
    let memory = Memory::open(SharedTransport::new(directory), seed).map_err(text)?;
    let source: Arc<dyn Source<SharedMemory>> = Arc::new(memory);
    let mut starter = InRows::join(source, number).map_err(text)?;
    starter.stock_up(shape.products, bytes).map_err(text)?;
    Ok(starter)
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn books_are_right_only_if_all_that_was_acknowledged_is_there() {
        let found = |orders: [u64; 3], sold| Sales {
            sold,
            orders: orders.to_vec(),
        };
        let known = [5, 7, 1];
        assert_eq!(judge(&found([5, 7, 1], 39), &known, None), Ok(()));
        // Nobody had told the dead one that its last order was placed.
        assert_eq!(judge(&found([5, 8, 1], 42), &known, Some(1)), Ok(()));
        for (wrong, killed) in [
            (found([5, 8, 1], 42), None),
            (found([5, 8, 1], 42), Some(0)),
            (found([5, 9, 1], 45), Some(1)),
            (found([5, 6, 1], 36), Some(1)),
            (found([5, 7, 1], 38), None),
        ] {
            assert!(judge(&wrong, &known, killed).is_err(), "{wrong:?}");
        }
        assert!(judge(&found([5, 7, 1], 39), &known[..2], None).is_err());
    }

    #[test]
    fn what_was_seen_counts_from_the_kill() {
        let death = Death {
            client: 0,
            led: false,
            at_ms: 100.0,
            locks_ms: 5.0,
            reaped_ms: None,
        };
        let saw = |led_ms, reaped_ms| Bought {
            led_ms,
            reaped_ms,
            ..Bought::default()
        };
        let one = seen(death, &[saw(None, None), saw(Some(130.0), Some(160.0))]);
        assert!(one.led && one.reaped_ms == Some(60.0), "{one:?}");
        let other = seen(death, &[saw(Some(0.001), Some(150.0)), saw(None, None)]);
        assert!(!other.led && other.reaped_ms == Some(50.0), "{other:?}");
    }
}
