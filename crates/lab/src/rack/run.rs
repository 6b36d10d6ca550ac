//! Who waits for whom: flows go from station to station, clients from phase to phase.

use std::vec::IntoIter;

use manxdb_core::Nanos;
use manxdb_sim::queue::Queue;
use manxdb_sim::{Latencies, SimTime};

use super::costs::{CLIENT_MACHINES, MACHINES, MANAGER, Prices};
use super::script::{Hop, Phase, Station, Writer};
use super::{RackOutcome, Trial};

/// Between the beginnings of two clients: they do not march in step.
const APART: Nanos = Nanos(700);
/// Checkouts between two words about progress.
const TOLD_EVERY: u64 = 1_024;

/// What work waits in line for: as many at a time as it has servers, first come first served.
#[derive(Debug, Clone)]
struct Line {
    free_at: Vec<SimTime>,
    busy: Nanos,
}

impl Line {
    fn of(servers: usize) -> Self {
        Self {
            free_at: vec![SimTime::ZERO; servers],
            busy: Nanos::ZERO,
        }
    }

    /// When work is done that arrives now.
    fn work(&mut self, now: SimTime, cost: Nanos) -> SimTime {
        self.busy += cost;
        let Some(first) = self.free_at.iter_mut().min() else {
            return now; // unreachable: every line has a server
        };
        *first = now.max(*first) + cost;
        *first
    }
}

/// Something on its way.
#[derive(Debug)]
struct Moving {
    client: usize,
    hops: IntoIter<Hop>,
    is_awaited: bool,
}

#[derive(Debug)]
struct Client {
    writer: Writer,
    phases: IntoIter<Phase>,
    /// Flows of this phase that it waits for.
    left: usize,
    /// When this checkout began; none before the first.
    began: Option<SimTime>,
}

/// A run.
#[derive(Debug)]
pub(super) struct Run {
    now: SimTime,
    queue: Queue<Moving>,
    lines: Vec<Line>,
    clients: Vec<Client>,
    /// Checkouts before those that are measured, and these.
    warm_up: u64,
    wanted: u64,
    done: u64,
    latencies: Latencies,
    events: u64,
}

impl Run {
    pub fn new(trial: &Trial) -> Self {
        let client = |number| Client {
            writer: Writer::new(trial.system, number, trial.seed),
            phases: Vec::new().into_iter(),
            left: 0,
            began: None,
        };
        let cores = Prices::of(trial.system).handling_cores;
        let of_machine = |_| [Line::of(cores), Line::of(1), Line::of(1)];
        let of_clients = (0..trial.clients).map(|_| Line::of(1));
        let of_machines = (0..MACHINES).flat_map(of_machine);
        let lines = of_machines.chain([Line::of(1)]).chain(of_clients);
        Self {
            now: SimTime::ZERO,
            queue: Queue::default(),
            lines: lines.collect(),
            clients: (0..trial.clients).map(client).collect(),
            warm_up: u64::from(trial.checkouts / 10),
            wanted: u64::from(trial.checkouts),
            done: 0,
            latencies: Latencies::default(),
            events: 0,
        }
    }

    pub fn run(mut self, progress: &mut dyn FnMut(f64)) -> RackOutcome {
        for client in 0..self.clients.len() {
            let start = Moving {
                client,
                hops: Vec::new().into_iter(),
                is_awaited: true,
            };
            self.clients[client].left = 1;
            self.queue
                .push(SimTime::ZERO + APART * client as u64, start);
        }
        let (mut began, mut busy) = (SimTime::ZERO, Vec::new());
        let all = self.warm_up + self.wanted;
        let mut told = 0;
        while self.done < all {
            let Some((now, moving)) = self.queue.pop_until(SimTime::MAX) else {
                break; // unreachable: every client has something on its way
            };
            self.now = now;
            self.events += 1;
            self.step(moving);
            if busy.is_empty() && self.done >= self.warm_up {
                (began, busy) = (self.now, self.busy());
                self.latencies = Latencies::default();
            }
            if self.done >= told + TOLD_EVERY {
                told = self.done;
                progress(share(Nanos(self.done), Nanos(all)));
            }
        }
        self.outcome(began, &busy)
    }

    fn step(&mut self, mut moving: Moving) {
        match moving.hops.next() {
            Some(Hop::Travel(time)) => self.queue.push(self.now + time, moving),
            Some(Hop::Work(station, cost)) => {
                let done = self.lines[place(station)].work(self.now, cost);
                self.queue.push(done, moving);
            }
            None if moving.is_awaited => {
                let client = &mut self.clients[moving.client];
                client.left -= 1;
                if client.left == 0 {
                    self.go_on(moving.client);
                }
            }
            None => {}
        }
    }

    /// Begins a client's next phase, and the next checkout behind the last.
    fn go_on(&mut self, number: usize) {
        let now = self.now;
        while self.clients[number].left == 0 {
            let client = &mut self.clients[number];
            let Some(phase) = client.phases.next() else {
                if let Some(began) = client.began.replace(now) {
                    self.done += 1;
                    self.latencies.add(now.since(began));
                }
                client.phases = client.writer.checkout().into_iter();
                continue;
            };
            for flow in phase {
                client.left += usize::from(flow.is_awaited);
                let moving = Moving {
                    client: number,
                    hops: flow.hops.into_iter(),
                    is_awaited: flow.is_awaited,
                };
                self.queue.push(now, moving);
            }
        }
    }

    fn busy(&self) -> Vec<Nanos> {
        self.lines.iter().map(|line| line.busy).collect()
    }

    fn outcome(mut self, began: SimTime, before: &[Nanos]) -> RackOutcome {
        let span = self.now.since(began);
        let used = |place: usize| self.lines[place].busy.saturating_sub(before[place]);
        let seconds = |places: &[usize]| -> f64 {
            let used = places.iter().map(|place| used(*place).0);
            share(Nanos(used.sum()), Nanos::from_secs(1))
        };
        let places = 0..self.lines.len();
        let is_cpu = |place: &usize| matches!(station(*place), Station::Cpu(_));
        let is_client = |place: &usize| matches!(station(*place), Station::Client(_));
        let server_cpu = seconds(&places.clone().filter(is_cpu).collect::<Vec<_>>());
        let client_cpu = seconds(&places.clone().filter(is_client).collect::<Vec<_>>());
        let shares = places.map(|place| {
            let servers = self.lines[place].free_at.len() as u64;
            (share(used(place), span * servers), station(place))
        });
        let busiest = shares.max_by(|one, other| one.0.total_cmp(&other.0));
        let (busy, busiest) = busiest.unwrap_or((0.0, Station::Cpu(MANAGER)));
        let micros = |time: Nanos| share(time, Nanos::from_micros(1));
        RackOutcome {
            checkouts: self.done - self.warm_up,
            seconds: share(span, Nanos::from_secs(1)),
            p50_us: micros(self.latencies.percentile(50)),
            p99_us: micros(self.latencies.percentile(99)),
            client_cpu,
            server_cpu,
            busiest: name(busiest),
            // What was begun before the end may end behind it.
            busy: busy.min(1.0),
            events: self.events,
        }
    }
}

/// Where a station's line is: three of each machine, one of the network, then one of each client.
fn place(station: Station) -> usize {
    match station {
        Station::Cpu(machine) => 3 * machine,
        Station::Out(machine) => 3 * machine + 1,
        Station::In(machine) => 3 * machine + 2,
        Station::Network => 3 * MACHINES,
        Station::Client(client) => 3 * MACHINES + 1 + client,
    }
}

/// The station of a line.
fn station(place: usize) -> Station {
    match place.checked_sub(3 * MACHINES) {
        Some(0) => Station::Network,
        Some(client) => Station::Client(client - 1),
        None if place.is_multiple_of(3) => Station::Cpu(place / 3),
        None if place % 3 == 1 => Station::Out(place / 3),
        None => Station::In(place / 3),
    }
}

fn name(station: Station) -> String {
    let (what, machine) = match station {
        Station::Client(_) => return "a client".to_owned(),
        Station::Network => return "the network".to_owned(),
        Station::Cpu(machine) => ("processors of", machine),
        Station::Out(machine) => ("the link from", machine),
        Station::In(machine) => ("the link to", machine),
    };
    let whose = match machine {
        MANAGER => "the transaction manager",
        machine if machine < CLIENT_MACHINES => "a client machine",
        _ => "a product machine",
    };
    format!("{what} {whose}")
}

#[allow(clippy::cast_precision_loss)] // nanoseconds of a run are far below 2^53
fn share(one: Nanos, of: Nanos) -> f64 {
    one.0 as f64 / of.0.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_station_has_a_line_of_its_own() {
        for number in 0..3 * MACHINES + 5 {
            assert_eq!(place(station(number)), number);
        }
    }

    #[test]
    fn a_line_serves_as_many_at_a_time_as_it_has_servers() {
        let mut line = Line::of(2);
        let at = |micros| SimTime::from_micros(micros);
        let cost = Nanos::from_micros(5);
        // Arrives, done: computed by hand.
        for (arrives, done) in [(0, 5), (0, 5), (1, 10), (6, 11), (20, 25)] {
            assert_eq!(line.work(at(arrives), cost), at(done));
        }
        assert_eq!(line.busy, Nanos::from_micros(25));
    }
}
