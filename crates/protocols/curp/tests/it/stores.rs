//! Clusters whose servers keep what is settled in stores of their own: all faults, and stops of all
//! processes, with stores that are ahead of their journals and stores that are behind them.

use manxdb_core::Nanos;
use manxdb_curp::Durability;
use manxdb_sim::SimTime;
use manxdb_sim::fault::{Choice, DownTogether};
use manxdb_sim::hunt::{Case, hunt};
use manxdb_test_harness::seeds;

use crate::common::{Setting, Stores, choices, plan};

/// Seeds of a run of the tests: 1,000 at night.
const SEEDS: u64 = 25;

fn setting(stores: Stores, durability: Durability) -> Setting {
    Setting {
        durability,
        stores,
        ..Setting::default()
    }
}

/// Any faults, of any number of processes together where all is on disks.
fn survives(setting: &Setting) {
    let topology = setting.topology();
    let mut profile = setting.profile();
    if setting.durability == Durability::Fsync {
        profile.choices = choices();
        profile.choices.extend([Choice::Crash; 8]);
        let servers = profile.down[0].nodes.clone();
        profile.down[0] = DownTogether {
            most: servers.len(),
            nodes: servers,
        };
        profile.down.remove(1);
    }
    let found = hunt(
        0..seeds(SEEDS),
        |seed| profile.draw(seed, &topology),
        |case| Ok(setting.run(case)?.digest),
    );
    if let Err(found) = found {
        panic!("{found}");
    }
}

#[test]
fn stores_of_their_own_survive_what_states_in_records_survive() {
    survives(&setting(Stores::Own, Durability::Memory));
    survives(&setting(Stores::Own, Durability::Fsync));
}

#[test]
fn stores_that_lost_what_was_not_on_disk_go_on_from_the_journal() {
    survives(&setting(Stores::LosePower, Durability::Fsync));
}

#[test]
fn what_is_acknowledged_is_there_after_all_processes_stop_at_any_step() {
    for stores in [Stores::Own, Stores::LosePower] {
        for (faults, quarter) in [1, 2]
            .into_iter()
            .flat_map(|faults| (0..8).map(move |q| (faults, q)))
        {
            let setting = Setting {
                faults,
                until: SimTime::from_millis(320),
                think: Nanos::from_micros(800),
                outstanding: 2,
                ..setting(stores, Durability::Fsync)
            };
            let options = setting.options();
            let micros = 200_000 + quarter * 250;
            let stops = (0..=options.servers + options.witnesses)
                .map(|node| format!("{micros}us+60ms crash n{node}"));
            let stops = stops.collect::<Vec<_>>().join("; ");
            let case = Case {
                seed: 7,
                plan: plan(&stops),
            };
            let ran = setting.run(&case);
            let ran = ran.unwrap_or_else(|why| panic!("{stores:?}, {stops}: {why}"));
            assert_eq!(ran.unknown, 0, "{stores:?}, {stops}: {ran:?}");
            assert!(ran.calls > 50, "{ran:?}");
        }
    }
}
