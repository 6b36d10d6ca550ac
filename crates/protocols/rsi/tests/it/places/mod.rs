//! The table of places on several servers, and recovery coordinators that restore what servers had that are lost:
//! in virtual time, under load.
//!
//! | test | what happens | what must hold |
//! |---|---|---|
//! | moments | a server is lost while somebody joins, is reaped, is elected or restores; then another | history, money, places, replicas; whoever lives goes on |
//! | chaos | deaths, standstills, late operations, also of recovery coordinators; servers lost, or taken for lost | the same |
//! | series | servers are lost one after the other, each when the one before is made up for; recovery coordinators die that copy | the same; every region is whole again each time |
//! | defects | each is planted | one of the above finds it |
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use std::rc::Rc;

use crate::common::each_is_found;
use crate::simulated_rack::bank::{self, Notes};
use crate::simulated_rack::plan::{REPLICAS, SERVERS};
use crate::simulated_rack::rack::{LEASE, Pid, Rack};
use crate::simulated_rack::watch::Moment;
use manxdb_core::{Nanos, Random};
use manxdb_fabric::ServerId;
use manxdb_rsi::mutants::Mutant;
use manxdb_sim::SimTime;
use manxdb_test_harness::seeds;

/// Slots of a log: nobody writes to disk.
const SLOTS: u64 = 1;
const TELLERS: usize = 3;
/// Servers that are lost one after the other: three are left.
const LOSSES: u64 = SERVERS as u64 - 3;

fn leases(count: u64) -> SimTime {
    SimTime((LEASE * count).0)
}

/// Money, recovery coordinators, processes that move it until a time, and one that comes and goes.
fn open(seed: u64, mutant: Option<Mutant>, until: SimTime) -> (Rack, Notes, Vec<Pid>) {
    let mut rack = Rack::new(seed, SLOTS, mutant);
    let notes = Notes::default();
    for _ in 0..3 {
        rack.coordinator();
    }
    let first = rack.program(|handle| bank::fill(handle, Rc::clone(&notes)));
    rack.run_until(leases(1));
    assert!(!rack.is_at_work(first), "seed {seed}");
    let teller =
        |rack: &mut Rack| rack.program(|handle| bank::work(handle, Rc::clone(&notes), until));
    let tellers = (0..TELLERS).map(|_| teller(&mut rack)).collect();
    rack.program(|handle| bank::visit(handle, Rc::clone(&notes), until));
    (rack, notes, tellers)
}

/// Lets all that live come to their end, and judges.
fn close(mut rack: Rack, notes: &Notes, seed: u64) -> Rack {
    rack.settle(LEASE * 60);
    rack.late_one_in = 0;
    let last = rack.program(|handle| bank::touch_all(handle, Rc::clone(notes)));
    rack.settle(LEASE * 60);
    assert!(!rack.is_at_work(last), "seed {seed}");
    rack.watch.check_end(&rack.memory);
    bank::judge(&rack, notes, seed);
    rack
}

/// A server that is not lost: the one with the primary of the table, or any.
fn victim(rack: &Rack, random: &mut Random) -> ServerId {
    if random.below(2) == 0 {
        return rack.watch.primary();
    }
    let left: Vec<ServerId> = rack.watch.map.servers().collect();
    left[usize::try_from(random.below(left.len() as u64)).unwrap()]
}

/// A server is lost at a moment, and another one later, perhaps while the first loss is seen to;
/// processes die, one of which may be the recovery coordinator that leads.
fn moments(seed: u64, moment: Moment, mutant: Option<Mutant>) -> (Rack, Notes) {
    let mut random = Random::stream(seed, &[21]);
    let (mut rack, notes, mut tellers) = open(seed, mutant, leases(9));
    rack.run_until(leases(2) + Nanos(random.below(LEASE.0)));
    if random.below(2) == 0 || moment == Moment::Reaping {
        rack.kill(tellers.pop().unwrap());
    }
    if moment == Moment::Election {
        let leader = rack.leader().unwrap();
        rack.kill(leader);
    }
    if moment != Moment::Restore {
        rack.run_until_moment(moment, leases(6));
    }
    for _ in 0..random.below(12) {
        rack.step(leases(6));
    }
    let first = victim(&rack, &mut random);
    rack.memory.lose(first);
    while rack.losses() == 0 {
        assert!(rack.step(leases(12)), "seed {seed}: a loss is not decided");
    }
    let is_at_once = moment == Moment::Restore || random.below(3) == 0;
    if is_at_once {
        rack.run_until_moment(Moment::Restore, leases(12));
        for _ in 0..random.below(200) {
            rack.step(leases(12));
        }
    } else {
        rack.run_until(rack.now() + Nanos(random.below(3 * LEASE.0)));
    }
    if random.below(2) == 0
        && let Some(leader) = rack.leader()
    {
        rack.kill(leader);
        rack.coordinator();
    }
    if random.below(2) == 0 {
        rack.kill(tellers.pop().unwrap());
    }
    let second = loop {
        let second = victim(&rack, &mut random);
        if second != first {
            break second;
        }
        if rack.watch.primary() == first {
            rack.step(leases(12)); // until the first loss is seen to
        }
    };
    rack.memory.lose(second);
    (close(rack, &notes, seed), notes)
}

/// What all runs of a story came to.
#[derive(Default)]
struct Tally {
    commits: usize,
    there: u64,
    absent: u64,
    returned: u64,
    reaped: usize,
    opened: u64,
    deposed: u64,
    longest: Nanos,
    longest_since: Nanos,
}

impl Tally {
    fn add(&mut self, rack: &Rack, notes: &Notes) {
        self.commits += notes.count();
        self.there += notes.late.borrow().0;
        self.absent += notes.late.borrow().1;
        self.returned += *notes.returned.borrow();
        self.reaped += rack.watch.reaped.len();
        self.opened += rack.opened;
        self.deposed += rack.deposed;
        self.longest = self.longest.max(rack.watch.longest());
        self.longest_since = self.longest_since.max(rack.watch.longest_since);
    }

    fn print(&self, story: &str) {
        let leases = |span: Nanos| span.as_millis_f64() / LEASE.as_millis_f64();
        println!(
            "{story}: {} commits, {} cut off that are there, {} that are not; {} owners went on, {} \
             dead ones reaped at most {:.2} leases later, {:.2} after the last loss; {} epochs \
             opened, {} coordinators deposed",
            self.commits,
            self.there,
            self.absent,
            self.returned,
            self.reaped,
            leases(self.longest),
            leases(self.longest_since),
            self.opened,
            self.deposed
        );
    }
}

fn all_moments(moment: Moment) {
    let count = seeds(SEEDS);
    let mut tally = Tally::default();
    for seed in 0..count {
        let (rack, notes) = moments(seed, moment, None);
        tally.add(&rack, &notes);
    }
    tally.print(&format!("{moment:?}, {count} seeds"));
    assert!(
        tally.opened >= count && tally.returned > count,
        "this test is blind"
    );
    assert!(tally.longest_since < LEASE * 2, "the dead are in the way");
}

const SEEDS: u64 = 30;
/// Seeds among which each defect is found.
const DEFECT_SEEDS: u64 = 600;

/// Everything happens to everybody, and two servers are lost; the first may only be taken for lost.
fn chaos(seed: u64, mutant: Option<Mutant>) -> (Rack, Notes) {
    let mut random = Random::stream(seed, &[22]);
    let until = leases(12);
    let (mut rack, notes, mut tellers) = open(seed, mutant, until);
    rack.late_one_in = 200;
    let mut lost = Vec::new();
    while rack.now() < until {
        let wait = Nanos(random.below(LEASE.0));
        rack.run_until(rack.now() + wait);
        let place = usize::try_from(random.below(tellers.len() as u64)).unwrap();
        let span = Nanos(random.below(2 * LEASE.0));
        match random.below(6) {
            0 => {
                rack.kill(tellers.remove(place));
                tellers.push(rack.program(|handle| bank::work(handle, Rc::clone(&notes), until)));
            }
            1 => rack.still(tellers[place], span),
            2 => {
                if let Some(leader) = rack.leader() {
                    rack.still(leader, span);
                }
            }
            3 => {
                if let Some(leader) = rack.leader() {
                    rack.kill(leader);
                    rack.coordinator();
                }
            }
            _ if lost.len() < 2 && rack.losses() == lost.len() as u64 => {
                let server = victim(&rack, &mut random);
                if lost.contains(&server) {
                    continue; // its loss is not noted yet
                }
                // Two at a time are too many, and one that is there is one as well.
                let is_open = rack.watch.map.epoch() == lost.len() as u64;
                if lost.is_empty() && random.below(3) == 0 {
                    rack.unreached = Some(server);
                } else if is_open {
                    rack.memory.lose(server);
                } else {
                    continue;
                }
                lost.push(server);
            }
            _ => {}
        }
    }
    (close(rack, &notes, seed), notes)
}

#[test]
fn whatever_happens_nothing_is_lost_and_places_are_one_owners_at_a_time() {
    let mut tally = Tally::default();
    let count = seeds(SEEDS);
    for seed in 0..count {
        let (rack, notes) = chaos(seed, None);
        tally.add(&rack, &notes);
    }
    tally.print(&format!("chaos, {count} seeds"));
    let is_seen = tally.opened > count && tally.returned > count && tally.deposed > count / 4;
    assert!(is_seen, "this test is blind");
}

/// Servers are lost one after the other, each when what the one before had is copied; processes die,
/// and so do recovery coordinators that copy.
fn series(seed: u64, mutant: Option<Mutant>) -> (Rack, Notes) {
    let mut random = Random::stream(seed, &[23]);
    let (mut rack, notes, mut tellers) = open(seed, mutant, leases(11));
    for lost in 1..=LOSSES {
        rack.run_until(rack.now() + Nanos(random.below(LEASE.0)));
        let server = victim(&rack, &mut random);
        rack.memory.lose(server);
        let is_killed = random.below(2) == 0;
        if is_killed {
            rack.run_until_moment(Moment::Join, leases(40)); // a recovery coordinator takes a place, too
            for _ in 0..random.below(300) {
                rack.step(leases(40));
            }
        }
        if let Some(leader) = rack.leader().filter(|_| is_killed) {
            rack.kill(leader);
            rack.coordinator();
        }
        if random.below(3) == 0
            && let Some(teller) = tellers.pop()
        {
            rack.kill(teller);
        }
        while !(rack.watch.map.epoch() == lost && is_whole(&rack)) {
            assert!(
                rack.step(leases(40)),
                "seed {seed}: loss {lost} is not made up for"
            );
        }
    }
    (close(rack, &notes, seed), notes)
}

/// Whether every region has as many whole replicas as it is to have.
fn is_whole(rack: &Rack) -> bool {
    let mut regions = rack.watch.map.regions().iter();
    regions.all(|region| {
        let replicas = region.replicas();
        replicas.len() == REPLICAS && replicas.iter().all(|replica| replica.is_whole)
    })
}

#[test]
fn each_loss_is_made_up_for_before_the_next() {
    let mut tally = Tally::default();
    let count = seeds(SEEDS);
    for seed in 0..count {
        let (rack, notes) = series(seed, None);
        tally.add(&rack, &notes);
    }
    tally.print(&format!("series, {count} seeds"));
    assert!(tally.opened >= count * LOSSES, "this test is blind");
}

type Scenario = fn(u64, Mutant);

#[test]
fn planted_defects_are_found() {
    let joined: Scenario = |seed, mutant| {
        moments(seed, Moment::Join, Some(mutant));
    };
    let restored: Scenario = |seed, mutant| {
        moments(seed, Moment::Restore, Some(mutant));
    };
    let elected: Scenario = |seed, mutant| {
        moments(seed, Moment::Election, Some(mutant));
    };
    let any: Scenario = |seed, mutant| {
        chaos(seed, Some(mutant));
    };
    let cases = [
        (Mutant::SlotsAtThePrimaryAlone, 0, joined),
        (Mutant::JoinsWithoutAsking, 391, joined),
        (Mutant::KeepsNoPlaces, 0, restored),
        (Mutant::LeadsBeforeItRestores, 0, elected),
        (Mutant::RestoresUnderTheLiving, 0, any),
    ];
    each_is_found(&cases, DEFECT_SEEDS, |scenario, seed, mutant| {
        scenario(seed, mutant);
    });
}

#[test]
fn a_server_is_lost_while_somebody_joins() {
    all_moments(Moment::Join);
}

#[test]
fn a_server_is_lost_while_somebody_is_reaped() {
    all_moments(Moment::Reaping);
}

#[test]
fn a_server_is_lost_while_a_coordinator_is_elected() {
    all_moments(Moment::Election);
}

#[test]
fn a_server_is_lost_while_another_loss_is_seen_to() {
    all_moments(Moment::Restore);
}
