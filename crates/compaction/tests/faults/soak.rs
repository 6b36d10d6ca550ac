//! Everything at once, drawn from a seed.

use std::time::{Duration, Instant};

use manxdb_core::Random;

use crate::cluster::{Cluster, Member};
use crate::process::until;

/// What a run of faults has to play with.
struct Storm {
    cluster: Cluster,
    workers: Vec<Member>,
    databases: Vec<Member>,
    random: Random,
    faults: u64,
}

const TRICKS: [&str; 6] = [
    "flipped",
    "short",
    "missing",
    "exchanged",
    "replayed",
    "miscounted",
];

fn pick<'a, T>(random: &mut Random, list: &'a mut [T]) -> (usize, &'a mut T) {
    let place = usize::try_from(random.below(list.len() as u64)).unwrap();
    (place, &mut list[place])
}

impl Storm {
    fn new(seed: u64) -> Self {
        let mut cluster = Cluster::new();
        let workers = (0..3).map(|_| cluster.worker(&[])).collect();
        let loads = [("mixed", "1"), ("mixed", "3"), ("once", "1")];
        let databases = loads.iter().map(|(load, parts)| {
            let settings = [("load", *load), ("parts", *parts), ("pause_us", "4000")];
            cluster.database(&settings)
        });
        let databases = databases.collect();
        Self {
            databases,
            workers,
            cluster,
            random: Random::new(seed),
            faults: 0,
        }
    }

    /// Lets up to so many milliseconds pass with a fault.
    fn pass(&mut self, most: u64) {
        let millis = self.random.below(most);
        std::thread::sleep(Duration::from_millis(millis));
    }

    fn fault(&mut self) {
        self.faults += 1;
        match self.random.below(100) {
            0..20 => self.kill_worker(),
            20..30 => self.freeze_worker(),
            30..45 => self.kill_control(),
            45..50 => self.freeze_control(),
            50..65 => self.part(),
            65..80 => self.kill_database(),
            80..85 => self.freeze_database(),
            85..95 => self.lie(),
            _ => self.drain_worker(),
        }
    }

    fn kill_worker(&mut self) {
        let (place, worker) = pick(&mut self.random, &mut self.workers);
        println!("{}: kill {}", self.faults, worker.name);
        worker.kill();
        self.pass(3_000);
        self.workers[place] = self.cluster.worker(&[]);
    }

    fn drain_worker(&mut self) {
        let (place, worker) = pick(&mut self.random, &mut self.workers);
        println!("{}: drain {}", self.faults, worker.name);
        worker.ask("drain");
        self.workers[place] = self.cluster.worker(&[]);
    }

    fn freeze_worker(&mut self) {
        let (place, worker) = pick(&mut self.random, &mut self.workers);
        println!("{}: freeze {}", self.faults, worker.name);
        worker.freeze();
        self.pass(5_000);
        self.workers[place].thaw();
    }

    fn kill_control(&mut self) {
        let loses_disk = self.random.below(4) == 0;
        println!(
            "{}: kill the control plane, loses its disk: {loses_disk}",
            self.faults
        );
        self.cluster.kill_control();
        self.pass(4_000);
        if loses_disk {
            std::fs::remove_file(self.cluster.store()).unwrap();
        }
        self.cluster.start_control();
    }

    fn freeze_control(&mut self) {
        println!("{}: freeze the control plane", self.faults);
        self.cluster.control().freeze();
        self.pass(5_000);
        self.cluster.control().thaw();
    }

    fn part(&mut self) {
        let holds = self.random.below(2) == 0;
        let all = if self.random.below(2) == 0 {
            &mut self.workers
        } else {
            &mut self.databases
        };
        let (place, member) = pick(&mut self.random, all);
        println!("{}: part {}, holds: {holds}", self.faults, member.name);
        if holds {
            member.road.hold();
        } else {
            member.road.cut();
        }
        let road = std::sync::Arc::clone(&all[place].road);
        self.pass(5_000);
        road.open();
    }

    fn kill_database(&mut self) {
        let place = pick(&mut self.random, &mut self.databases).0;
        let mut database = self.databases.remove(place);
        println!("{}: kill {}", self.faults, database.name);
        database.kill();
        self.pass(2_000);
        let database = self.cluster.again(database);
        self.databases.push(database);
    }

    fn freeze_database(&mut self) {
        let (place, database) = pick(&mut self.random, &mut self.databases);
        println!("{}: freeze {}", self.faults, database.name);
        database.freeze();
        self.pass(6_000);
        self.databases[place].thaw();
    }

    fn lie(&mut self) {
        let mut tricks = TRICKS;
        let trick = *pick(&mut self.random, &mut tricks).1;
        println!("{}: a worker lies: {trick}", self.faults);
        let _liar = self.cluster.bad_worker(trick);
        self.pass(4_000);
    }
}

/// Random faults one after the other; then all databases are as they should be, and the pool
/// works.
#[test]
fn soak() {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .map(|text| text.parse::<u64>().unwrap())
    };
    let seconds = number("MANXDB_FAULTS_SECONDS").unwrap_or(25);
    let seed = number("MANXDB_FAULTS_SEED").unwrap_or(1);
    println!("MANXDB_FAULTS_SEED={seed} MANXDB_FAULTS_SECONDS={seconds}");
    let mut storm = Storm::new(seed);
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(seconds) {
        storm.fault();
        storm.pass(2_000);
    }
    for database in &mut storm.databases {
        let before = database.count("installed");
        until("the pool works", || database.count("installed") > before);
    }
    println!("{} faults", storm.faults);
    storm.cluster.finish(storm.databases);
}
