//! Places that are taken, kept, lost and given out again, in virtual time: processes die, stand
//! still and have operations that arrive late, and so do recovery coordinators. Meanwhile money moves, and all
//! that is seen is judged.
//!
//! | test | what happens | what must hold |
//! |---|---|---|
//! | deaths | processes die, one of them with the recovery coordinator that leads | two leases later nothing of theirs is in anybody's way |
//! | chaos | all of it at once, to recovery coordinators too | history, money, places; who is over hears so; all is reaped once |
//! | calm | recovery coordinators stand still, nobody else does | nobody who keeps his lease loses it |
//!
//! Nobody looks for locks of the dead: who writes such a record takes them over.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

mod bank;
mod rack;
mod watch;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use bank::{ACCOUNTS, Notes};
use manxdb_core::{Nanos, Random};
use manxdb_rsi::mutants::Mutant;
use manxdb_sim::SimTime;
use manxdb_test_harness::seeds;
use rack::{LEASE, Pid, Plan, Rack};

const SEEDS: u64 = 30;
/// Seeds among which each defect is found.
const DEFECT_SEEDS: u64 = 150;
const TELLERS: usize = 4;

fn leases(count: u64) -> SimTime {
    SimTime((LEASE * count).0)
}

/// Money, recovery coordinators, and processes that move it for so many leases.
fn open(seed: u64, plan: Plan, coordinators: u64, until: SimTime) -> (Rack, Notes, Vec<Pid>) {
    let mut rack = Rack::new(seed, ACCOUNTS, plan);
    let notes = Notes::default();
    for _ in 0..coordinators {
        rack.coordinator();
    }
    let first = rack.program(seed, |handle| bank::fill(handle, Rc::clone(&notes)));
    rack.run_until(leases(1));
    assert!(!rack.is_at_work(first), "seed {seed}");
    let teller =
        |rack: &mut Rack| rack.program(seed, |handle| bank::work(handle, Rc::clone(&notes), until));
    let tellers = (0..TELLERS).map(|_| teller(&mut rack)).collect();
    (rack, notes, tellers)
}

/// Lets all that live come to their end, and judges.
fn close(mut rack: Rack, notes: &Notes, seed: u64) -> Rack {
    rack.settle(LEASE * 40);
    rack.late_one_in = 0;
    let last = rack.program(seed, |handle| bank::touch_all(handle, Rc::clone(notes)));
    rack.settle(LEASE * 40);
    assert!(!rack.is_at_work(last), "seed {seed}");
    rack.watch.check_end(&rack.memory);
    bank::judge(&rack.memory, notes, seed);
    rack
}

/// Processes die one after another, and others come; once the recovery coordinator that leads dies too.
fn deaths(seed: u64, mutant: Option<Mutant>) -> (Rack, u64) {
    let plan = Plan {
        is_prompt: true,
        mutant,
    };
    let mut random = Random::stream(seed, &[1]);
    let (mut rack, notes, mut tellers) = open(seed, plan, 2, leases(18));
    let with_coordinator = random.below(4);
    let mut held = 0;
    for round in 0..4 {
        let wait = Nanos(LEASE.0 + random.below(LEASE.0));
        rack.run_until(rack.now() + wait);
        let victim = until_locked(&mut rack, &tellers);
        held += u64::from(victim.is_some());
        rack.kill(victim.unwrap_or(tellers[0]));
        if round == with_coordinator {
            let leader = rack.leader().unwrap();
            rack.kill(leader);
            rack.coordinator();
        }
        tellers.push(rack.program(seed, |handle| {
            bank::work(handle, Rc::clone(&notes), leases(18))
        }));
    }
    (close(rack, &notes, seed), held)
}

/// The next of these that holds a lock, which is soon.
fn until_locked(rack: &mut Rack, tellers: &[Pid]) -> Option<Pid> {
    let end = rack.now() + LEASE;
    while rack.now() < end {
        rack.run_until(rack.now() + Nanos(500));
        let holder = rack.holder().filter(|pid| tellers.contains(pid));
        if holder.is_some() {
            return holder;
        }
    }
    None
}

#[test]
fn who_dies_is_in_nobodys_way_two_leases_later() {
    let (mut reaped, mut locked, mut longest) = (0, 0, Nanos::ZERO);
    for seed in 0..seeds(SEEDS) {
        let (rack, held) = deaths(seed, None);
        reaped += rack.watch.reaped.len();
        locked += held;
        longest = longest.max(rack.watch.longest());
    }
    let leases = longest.as_millis_f64() / LEASE.as_millis_f64();
    println!("{reaped} owners reaped, {locked} died with locks; at most {leases:.3} leases later");
    assert!(locked > seeds(SEEDS), "this test is blind");
}

/// Everything happens to everybody.
fn chaos(seed: u64, mutant: Option<Mutant>) -> (Rack, usize) {
    let plan = Plan {
        mutant,
        ..Plan::default()
    };
    let mut random = Random::stream(seed, &[2]);
    let until = leases(20);
    let (mut rack, notes, mut tellers) = open(seed, plan, 3, until);
    rack.late_one_in = 60;
    while rack.now() < until {
        let wait = Nanos(random.below(LEASE.0));
        rack.run_until(rack.now() + wait);
        let place = usize::try_from(random.below(tellers.len() as u64)).unwrap();
        let span = Nanos(random.below(3 * LEASE.0));
        match random.below(5) {
            0 => {
                rack.kill(tellers.remove(place));
                tellers.push(
                    rack.program(seed, |handle| bank::work(handle, Rc::clone(&notes), until)),
                );
            }
            1 | 2 => rack.still(tellers[place], span),
            3 => {
                if let Some(leader) = rack.leader() {
                    rack.still(leader, span);
                }
            }
            _ => {
                if let Some(leader) = rack.leader() {
                    rack.kill(leader);
                    rack.coordinator();
                }
            }
        }
    }
    let rack = close(rack, &notes, seed);
    let lost = notes.lost.borrow().len();
    (rack, lost)
}

#[test]
fn whatever_happens_the_history_is_of_snapshots_and_each_owner_is_reaped_once() {
    let (mut reaped, mut lost, mut deposed) = (0, 0, 0);
    for seed in 0..seeds(SEEDS) {
        let (rack, own) = chaos(seed, None);
        reaped += rack.watch.reaped.len();
        deposed += rack.deposed;
        lost += own;
    }
    println!(
        "{reaped} owners reaped, {lost} of them heard so; {deposed} recovery coordinators deposed"
    );
    assert!(lost > 20 && deposed > 20, "this test is blind");
}

/// Processes keep their leases; the only recovery coordinator stands still again and again.
fn calm(seed: u64, mutant: Option<Mutant>) {
    let plan = Plan {
        mutant,
        ..Plan::default()
    };
    let mut random = Random::stream(seed, &[3]);
    let (mut rack, notes, _) = open(seed, plan, 1, leases(14));
    let coordinator = rack.leader().unwrap();
    while rack.now() < leases(12) {
        rack.run_until(rack.now() + Nanos(random.below(LEASE.0)));
        rack.still(coordinator, Nanos(random.below(3 * LEASE.0)));
    }
    close(rack, &notes, seed);
}

#[test]
fn who_keeps_a_lease_has_it_however_slow_the_coordinator_is() {
    for seed in 0..seeds(SEEDS) {
        calm(seed, None);
    }
}

/// Whether a run shows something wrong; without a defect none does.
fn is_found(scenario: Scenario, seed: u64, mutant: Mutant) -> bool {
    let mutant = Some(mutant);
    let run = || match scenario {
        Scenario::Deaths => {
            deaths(seed, mutant);
        }
        Scenario::Chaos => {
            chaos(seed, mutant);
        }
        Scenario::Calm => calm(seed, mutant),
    };
    catch_unwind(AssertUnwindSafe(run)).is_err()
}

#[derive(Debug, Clone, Copy)]
enum Scenario {
    Deaths,
    Chaos,
    Calm,
}

#[test]
fn planted_defects_are_found() {
    let cases = [
        (Mutant::RecoversTheLiving, Scenario::Chaos),
        (Mutant::SucceedsTheLiving, Scenario::Chaos),
        (Mutant::NeverCloses, Scenario::Deaths),
        (Mutant::BelievesClocks, Scenario::Calm),
        (Mutant::CountsTheWait, Scenario::Calm),
    ];
    for (mutant, scenario) in cases {
        let seed = (0..DEFECT_SEEDS).find(|seed| is_found(scenario, *seed, mutant));
        println!("{mutant:?}: {scenario:?}, seed {seed:?}");
        assert!(seed.is_some(), "{mutant:?} is not found");
    }
}
