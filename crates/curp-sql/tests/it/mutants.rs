//! Each planted defect is found, or the tests prove nothing; the same plans without it go well.

use manxdb_core::{Nanos, Random};
use manxdb_sim::{Plan, SimTime};
use manxdb_test_harness::seeds;

use crate::setting::{Defect, Setting};

/// Seeds in which a defect has to be found.
const SEEDS: u64 = 20;

/// What happens to the first primary.
#[derive(Debug, Clone, Copy)]
enum Harm {
    /// It reaches witnesses and not its backups; then it dies.
    CutOffFromBackups,
    /// It reaches nobody but its clients, and goes on.
    Isolated,
}

fn busy() -> Setting {
    Setting {
        accounts: 40,
        until: SimTime::from_millis(700),
        think: Nanos::from_millis(1),
        sessions: 4,
        sync_after: Nanos::from_millis(4),
        looks: 1,
        ..Setting::default()
    }
}

fn plan(harm: Harm, setting: &Setting, seed: u64) -> Plan {
    let mut random = Random::stream(seed, &[0xBAD]);
    let at = 220_000 + random.below(100_000);
    let options = setting.options();
    let client = setting.client_of(1);
    let names = |nodes: &mut dyn Iterator<Item = u32>| {
        let names: Vec<String> = nodes.map(|node| format!("n{node}")).collect();
        names.join(",")
    };
    let servers = names(&mut (2..=options.servers));
    let text = match harm {
        Harm::CutOffFromBackups => {
            let dies = at + 3_000 + random.below(20_000);
            format!(
                "{at}us+60ms part n1 {servers}; {dies}us+150ms crash n1; {dies}us+150ms crash n{client}"
            )
        }
        Harm::Isolated => {
            let others = (2..=options.servers + options.witnesses)
                .chain((2..=options.servers).map(|server| setting.client_of(server)));
            let others = names(&mut std::iter::once(0).chain(others));
            format!("{at}us+250ms part n1 {others}; {at}us+250ms part n{client} {others}")
        }
    };
    text.parse().unwrap()
}

fn found(defect: Defect, harm: Harm) -> Option<(u64, String)> {
    let setting = Setting { defect, ..busy() };
    (0..SEEDS).find_map(|seed| {
        let ran = setting.run_plan(seed, &plan(harm, &setting, seed));
        Some((seed, ran.err()?))
    })
}

/// What a lost transfer shows: one that was read or acknowledged is away, or another one was made of it.
const LOST: [&str; 2] = [
    "and is not there",
    "the balances are not those of the transfers",
];

fn is_found(defect: Defect, harm: Harm) {
    let (seed, wrong) = found(defect, harm).expect("a defect that nobody finds");
    let is_lost = LOST.iter().any(|words| wrong.contains(words));
    assert!(is_lost, "seed {seed}: {wrong}");
}

#[test]
fn without_a_defect_the_same_plans_go_well() {
    for harm in [Harm::CutOffFromBackups, Harm::Isolated] {
        let setting = Setting { looks: 8, ..busy() };
        let mut fast = 0;
        for seed in 0..seeds(2) {
            let ran = setting.run_plan(seed, &plan(harm, &setting, seed));
            fast += ran
                .unwrap_or_else(|wrong| panic!("{harm:?}, seed {seed}: {wrong}"))
                .counts
                .fast;
        }
        assert!(fast > 0, "nothing took one round trip");
    }
}

#[test]
fn a_group_that_is_shown_before_it_is_confirmed_is_found() {
    is_found(Defect::PublishedUnconfirmed, Harm::CutOffFromBackups);
}

#[test]
fn a_group_that_is_shown_before_an_earlier_one_is_found() {
    is_found(Defect::PublishedOutOfOrder, Harm::CutOffFromBackups);
}

#[test]
fn a_read_without_a_lease_is_found() {
    is_found(Defect::NoLease, Harm::Isolated);
}
