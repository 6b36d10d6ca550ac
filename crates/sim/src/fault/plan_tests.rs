use std::collections::BTreeSet;

use super::*;
use crate::topology::Link;

fn topology() -> Topology {
    let link = Link::after(Nanos::from_millis(1));
    Topology::even(2, 3, link, link)
}

fn profile() -> Profile {
    Profile::everything(&topology(), SimTime::from_secs(20))
}

#[test]
fn every_kind_is_drawn_and_every_plan_reads_back() {
    let mut kinds = BTreeSet::new();
    for seed in 0..500 {
        let plan = profile().draw(seed, &topology());
        assert!((1..=8).contains(&plan.faults.len()), "{plan}");
        assert_eq!(plan.to_string().parse::<Plan>().unwrap(), plan);
        kinds.extend(plan.faults.iter().map(|fault| fault.kind.name()));
    }
    assert_eq!(kinds.len(), 16, "{kinds:?}");
    assert_eq!(
        profile().draw(7, &topology()),
        profile().draw(7, &topology())
    );
    assert_ne!(
        profile().draw(7, &topology()),
        profile().draw(8, &topology())
    );
}

#[test]
fn all_is_healed_by_the_time_named() {
    for seed in 0..500 {
        for fault in profile().draw(seed, &topology()).faults {
            assert!(fault.ends() <= SimTime::from_secs(15), "{fault}");
            assert!(fault.lasts > Nanos::ZERO);
        }
    }
}

#[test]
fn no_more_nodes_are_away_together_than_allowed() {
    let mut profile = profile();
    profile.choices = vec![Choice::Crash, Choice::Pause, Choice::DiskFails];
    profile.faults = 20..=20;
    let mut crashes = 0;
    for seed in 0..200 {
        let plan = profile.draw(seed, &topology());
        crashes += plan.faults.len();
        for fault in &plan.faults {
            let region = topology().region(fault.kind.node().unwrap());
            let at_once = plan.faults.iter().filter(|other| {
                let node = other.kind.node().unwrap();
                topology().region(node) == region
                    && other.at <= fault.at
                    && fault.at <= other.ends() + profile.recovery
            });
            let nodes: BTreeSet<_> = at_once.map(|other| other.kind.node()).collect();
            assert!(nodes.len() <= 1, "{plan}");
        }
    }
    assert!(crashes > 600, "{crashes} are no test");
}

#[test]
fn a_node_of_no_group_never_goes_down() {
    let mut profile = profile();
    profile.choices = vec![Choice::Crash];
    profile.down = vec![DownTogether {
        nodes: vec![NodeId(2)],
        most: 1,
    }];
    for seed in 0..100 {
        for fault in profile.draw(seed, &topology()).faults {
            assert_eq!(fault.kind.node(), Some(NodeId(2)));
        }
    }
}
