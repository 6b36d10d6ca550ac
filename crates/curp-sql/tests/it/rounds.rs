//! Round trips of commits, counted: links of exactly one millisecond and work that takes no time.

use std::collections::BTreeMap;

use manxdb_core::{Nanos, NodeId, RequestId};
use manxdb_curp::ClientAnswer;
use manxdb_curp_sql::primary::CommitCounts;
use manxdb_sim::{CostModel, Driver, Link, Outside, SimTime, World, WorldOptions};

use crate::bank::Bank;
use crate::process::intent;
use crate::setting::{Cluster, Defect, Rows, Setting};

const ONE_WAY: Nanos = Nanos::from_millis(1);

/// Commits at given times, and how long each took.
struct Script {
    bank: Bank,
    /// When, which keys, bytes of each value.
    commits: Vec<(SimTime, Vec<&'static str>, usize)>,
    begun: BTreeMap<u64, SimTime>,
    took: BTreeMap<u64, Nanos>,
}

impl Script {
    fn finish(&mut self, outside: &mut Outside<'_, Cluster>) {
        for process in &mut self.bank.processes {
            process.look(outside, Defect::None);
            let Some(reign) = &mut process.reign else {
                continue;
            };
            for (id, verdict) in reign.finish() {
                verdict.unwrap();
                self.took.insert(id, outside.now().since(self.begun[&id]));
            }
        }
    }
}

impl Driver<Cluster> for Script {
    fn begin(&mut self, outside: &mut Outside<'_, Cluster>) {
        for (index, (at, _, _)) in self.commits.iter().enumerate() {
            outside.wake_at(*at, index as u64);
        }
        for millis in 1..900 {
            outside.wake_at(SimTime::from_millis(millis), u64::MAX);
        }
    }

    fn wake(&mut self, outside: &mut Outside<'_, Cluster>, key: u64) {
        self.finish(outside);
        let Some((_, keys, bytes)) = self.commits.get(usize::try_from(key).unwrap_or(usize::MAX))
        else {
            return;
        };
        let writes = keys
            .iter()
            .map(|key| (key.as_bytes().to_vec(), vec![b'v'; *bytes]));
        let intent = intent(key, Vec::new(), writes.collect());
        let process = &mut self.bank.processes[0];
        process.reign.as_mut().unwrap().stage(key, vec![intent]);
        self.begun.insert(key, outside.now());
        process.hand_over(outside);
    }

    fn reply(
        &mut self,
        outside: &mut Outside<'_, Cluster>,
        node: NodeId,
        id: RequestId,
        body: ClientAnswer,
    ) {
        let mut processes = self.bank.processes.iter_mut();
        if let Some(process) = processes.find(|process| process.is_client(node)) {
            process.primary.answered(id, &body);
        }
        self.finish(outside);
    }
}

fn run(
    faults: usize,
    table: (usize, usize),
    commits: &[(u64, &[&'static str], usize)],
) -> (Vec<u64>, CommitCounts) {
    let setting = Setting {
        faults,
        sync_after: Nanos::from_millis(20),
        ..Setting::default()
    };
    let mut options = WorldOptions::new(1, setting.topology(Link::after(ONE_WAY)));
    options.cost = CostModel::free();
    let options_of_nodes = manxdb_curp::Options {
        race_after: Nanos::from_millis(50),
        patience: Nanos::from_millis(100),
        table,
        ..setting.options()
    };
    let cluster = Cluster::new(options_of_nodes, Rows::InMemory);
    let mut world = World::new(cluster, options);
    let commits = commits
        .iter()
        .map(|(micros, keys, bytes)| (SimTime::from_micros(*micros), keys.to_vec(), *bytes));
    let mut script = Script {
        bank: Bank::new(setting),
        commits: commits.collect(),
        begun: BTreeMap::new(),
        took: BTreeMap::new(),
    };
    world.run_until(&mut script, SimTime::from_secs(1)).unwrap();
    assert_eq!(script.took.len(), script.commits.len(), "all are confirmed");
    let rounds = script.took.values().map(|took| {
        assert_eq!(
            took.0 % (2 * ONE_WAY.0),
            0,
            "{took:?} is no number of round trips"
        );
        took.0 / (2 * ONE_WAY.0)
    });
    (rounds.collect(), script.bank.processes[0].primary.counts())
}

#[test]
fn a_commit_that_commutes_takes_one_round_trip_to_the_witnesses() {
    for faults in [1, 2, 3] {
        let commits: &[(u64, &[&str], usize)] = &[
            (500_000, &["a"], 10),
            (503_000, &["b", "c", "d"], 100),
            (506_000, &["1", "2", "3", "4", "5", "6", "7", "8"], 20),
            (509_000, &["e"], 1_200),
        ];
        let (rounds, counts) = run(faults, (1_024, 4), commits);
        assert_eq!(rounds, [1, 1, 1, 1], "f={faults}");
        assert_eq!(
            (counts.fast, counts.at_backups, counts.after_refusal),
            (4, 0, 0)
        );
    }
}

#[test]
fn a_conflict_that_the_primary_knows_takes_one_round_trip_to_the_backups() {
    for faults in [1, 2, 3] {
        let commits: &[(u64, &[&str], usize)] = &[
            (500_000, &["a"], 10),
            // The first write of the key is not synced yet: the batch goes to the backups at once.
            (503_000, &["a"], 10),
            // More keys, or more bytes, than a record can have.
            (600_000, &["1", "2", "3", "4", "5", "6", "7", "8", "9"], 10),
            (700_000, &["b"], 5_000),
        ];
        let (rounds, counts) = run(faults, (1_024, 4), commits);
        assert_eq!(rounds, [1, 1, 1, 1], "f={faults}");
        assert_eq!(
            (counts.fast, counts.at_backups, counts.after_refusal),
            (1, 3, 0)
        );
    }
}

#[test]
fn a_commit_that_a_witness_refuses_takes_two_round_trips() {
    for faults in [1, 2, 3] {
        // The witnesses have room for one record.
        let commits: &[(u64, &[&str], usize)] = &[(500_000, &["a"], 10), (503_000, &["b"], 10)];
        let (rounds, counts) = run(faults, (1, 1), commits);
        assert_eq!(rounds, [1, 2], "f={faults}");
        assert_eq!(
            (counts.fast, counts.at_backups, counts.after_refusal),
            (1, 0, 1)
        );
    }
}
