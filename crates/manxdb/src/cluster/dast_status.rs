//! What a cluster lacks: regions that nobody leads, shards without a majority, nodes that are out.

use std::collections::{BTreeMap, BTreeSet};

use manxdb_core::NodeId;
use manxdb_dast::Role;
use manxdb_gateway::admin::HealthReport;
use manxdb_net::Status;

use super::answers::note;
use super::dast::{self, OUT, RECOVERS, TAKES_PART, topology};
use super::file::{ClusterFile, Node};
use super::geo::measured::{MEASURED, Measured};
use super::node::STATE;

/// What a node that answers says of itself.
#[derive(Debug, Clone, Default)]
pub struct Said {
    /// What it does.
    pub state: Option<String>,
    /// The region that is fenced, if the node leads its own and knows of one.
    pub fenced: Option<u32>,
}

impl Said {
    /// In its status.
    #[must_use]
    pub fn of(status: &Status) -> Self {
        let measured = note(status, MEASURED).map(Measured::of_note);
        let measured = measured.unwrap_or_default();
        Self {
            state: note(status, STATE).map(str::to_owned),
            fenced: measured.leading().and_then(|leading| leading.fenced),
        }
    }
}

/// The managers of a region, or the replicas of a shard.
#[derive(Debug, Default)]
struct Group<'f> {
    nodes: Vec<&'f Node>,
    /// Those of them that answer and do their work.
    working: usize,
    /// Those that answer.
    answering: usize,
    /// Those that answer, have lost what they had in memory, and have not got it from the others.
    forgetful: usize,
    /// Whether one of them leads.
    is_led: bool,
}

/// What is to be done about a node that does not work.
fn start(node: &Node) -> String {
    format!(
        "start it again, with manxdb cluster node --node {}",
        node.number
    )
}

/// What is to be done about a group that has lost what it had.
const ANEW: &str = "start its nodes if they only stand still; what a majority had in memory is gone with \
    its processes: manxdb cluster down, then up";

impl Group<'_> {
    /// Whether what it had is gone with its processes: nobody is left who could give it to those that
    /// have started again.
    fn has_lost_memory(&self) -> bool {
        self.working == 0 && self.forgetful * 2 > self.nodes.len()
    }
}

/// What is to be done about a region that is fenced and has lost what it had.
const LOST: &str = "it is not taken in again, since its rows are nowhere else: manxdb cluster down, then up, \
    begins without any";

/// What is to be done about a region that is fenced.
const TAKE_IN: &str = "it is taken in when the others hear it again: let its nodes go on if they stand still \
    (manxdb cluster resume), or mend its network";

/// What the cluster lacks, the worst first; nothing when all nodes work. `said` is what a node says of
/// itself; none: it does not answer.
#[must_use]
pub fn judge(file: &ClusterFile, said: impl Fn(&Node) -> Option<Said>) -> Vec<HealthReport> {
    let (mut regions, mut shards) = (BTreeMap::new(), BTreeMap::new());
    let mut fenced = BTreeSet::new();
    let mut single = Vec::new();
    for node in &file.nodes {
        let (key, groups) = match topology(file).role(NodeId(node.number)) {
            Role::Manager(region) => (region.0, &mut regions),
            Role::Replica(shard) => (shard.0, &mut shards),
            Role::Client => continue,
        };
        let group: &mut Group<'_> = groups.entry(key).or_default();
        let said = said(node);
        let state = said.as_ref().and_then(|said| said.state.as_deref());
        group.nodes.push(node);
        group.forgetful += usize::from(matches!(state, Some(OUT | RECOVERS)));
        group.answering += usize::from(said.is_some());
        group.is_led |= state == Some(dast::LEADS);
        fenced.extend(said.as_ref().and_then(|said| said.fenced));
        let works = matches!(state, Some(dast::LEADS | dast::FOLLOWS | TAKES_PART));
        group.working += usize::from(works);
        if !works {
            single.push((node, said.is_some()));
        }
    }
    let mut found: Vec<_> = regions
        .iter()
        .filter_map(|(r, group)| led(*r, group))
        .collect();
    found.extend(shards.iter().filter_map(|(s, group)| held(*s, group)));
    let group_of = |node: &Node| match topology(file).role(NodeId(node.number)) {
        Role::Manager(region) => regions.get(&region.0),
        Role::Replica(shard) => shards.get(&shard.0),
        Role::Client => None,
    };
    let is_lost = |node: &Node| group_of(node).is_some_and(Group::has_lost_memory);
    found.extend(fenced.into_iter().map(|region| {
        let of_region = |node: &&Node| {
            let place = topology(file).region_of_node(NodeId(node.number));
            place.is_some_and(|place| place.0 == region)
        };
        apart(region, file.nodes.iter().filter(of_region).any(is_lost))
    }));
    // Of a group that has lost its memory the nodes that answer wait for what nobody can give them.
    let told = single
        .into_iter()
        .filter(|(node, answers)| !answers || !is_lost(node));
    found.extend(told.map(|(node, answers)| alone(node, answers)));
    found
}

/// A node that does not do its work.
fn alone(node: &Node, answers: bool) -> HealthReport {
    let how = if answers {
        "is out and gets what it had from others"
    } else {
        "does not answer"
    };
    let what = format!("node {}, {}, {how}", node.number, node.role);
    HealthReport::degraded(what, start(node))
}

/// A region that the others go on without.
fn apart(region: u32, is_lost: bool) -> HealthReport {
    let what = format!(
        "region {region} is fenced: the others have not heard it and go on without it; what touches it \
         is refused, and what was under way with it waits"
    );
    HealthReport::degraded(what, if is_lost { LOST } else { TAKE_IN })
}

/// Whether a region has a leader, without whom nothing is ordered there.
fn led(region: u32, group: &Group<'_>) -> Option<HealthReport> {
    let (all, answering) = (group.nodes.len(), group.answering);
    if group.is_led {
        return None;
    }
    let what = if group.has_lost_memory() {
        let forgetful = group.forgetful;
        format!(
            "region {region} has lost its memory: {forgetful} of its {all} managers have started again, \
             and what a majority had in memory is gone"
        )
    } else if answering * 2 > all {
        format!("region {region} has no leader though {answering} of its {all} managers answer")
    } else {
        format!("region {region} has lost its majority: {answering} of its {all} managers answer")
    };
    Some(HealthReport::unavailable(
        format!("{what}; no transaction is ordered there"),
        ANEW,
    ))
}

/// Whether a majority has a shard's rows.
fn held(shard: u32, group: &Group<'_>) -> Option<HealthReport> {
    let (all, working) = (group.nodes.len(), group.working);
    let what = if group.has_lost_memory() {
        let forgetful = group.forgetful;
        format!(
            "shard {shard} has lost its rows: {forgetful} of its {all} replicas have started again, and \
             none is left that has them"
        )
    } else {
        format!("shard {shard} has lost its majority: {working} of its {all} replicas take part")
    };
    (working * 2 <= all).then(|| HealthReport::unavailable(what, ANEW))
}

#[cfg(test)]
mod tests {
    use super::super::example::over_regions;
    use super::*;

    /// Two regions with two shards each, and three replicas of each.
    fn cluster() -> ClusterFile {
        over_regions(2, 2)
    }

    /// What is said when these nodes do not say that they work.
    fn said(others: &[(u32, Option<&str>)]) -> Vec<String> {
        said_with(others, None)
    }

    /// The same when leaders say that a region is fenced.
    fn said_with(others: &[(u32, Option<&str>)], fenced: Option<u32>) -> Vec<String> {
        let file = cluster();
        let mut led = std::collections::BTreeSet::new();
        let mut states = BTreeMap::new();
        for node in &file.nodes {
            let state = match topology(&file).role(NodeId(node.number)) {
                Role::Manager(region) if led.insert(region.0) => dast::LEADS,
                Role::Manager(_) => dast::FOLLOWS,
                _ => TAKES_PART,
            };
            states.insert(node.number, Some(state));
        }
        states.extend(others.iter().copied());
        let found = judge(&file, |node| {
            let state = states[&node.number]?;
            let fenced = fenced.filter(|_| state == dast::LEADS);
            let state = Some(state.to_owned());
            Some(Said { state, fenced })
        });
        found.iter().map(ToString::to_string).collect()
    }

    /// The managers of region 0.
    fn managers() -> Vec<u32> {
        let file = cluster();
        let is_manager = |number: &u32| matches!(topology(&file).role(NodeId(*number)), Role::Manager(region) if region.0 == 0);
        (0..topology(&file).servers()).filter(is_manager).collect()
    }

    #[test]
    fn a_cluster_whose_nodes_work_lacks_nothing() {
        assert_eq!(said(&[]), [""; 0]);
    }

    #[test]
    fn a_region_that_nobody_leads_is_named_though_all_answer() {
        let follow: Vec<_> = managers()
            .into_iter()
            .map(|number| (number, Some(dast::FOLLOWS)))
            .collect();
        let said = said(&follow);
        assert_eq!(said.len(), 1);
        assert!(
            said[0].starts_with(
                "unavailable: region 0 has no leader though 3 of its 3 managers answer"
            ),
            "{said:?}"
        );
    }

    #[test]
    fn a_region_without_a_majority_of_managers_is_named_before_its_nodes() {
        let all = managers();
        let said = said(&[(all[0], None), (all[1], None)]);
        assert!(
            said[0].starts_with(
                "unavailable: region 0 has lost its majority: 1 of its 3 managers answer"
            ),
            "{said:?}"
        );
        assert_eq!(said.len(), 3, "{said:?}");
    }

    #[test]
    fn a_region_that_is_fenced_is_named_with_what_to_do() {
        let said = said_with(&[], Some(1));
        assert_eq!(said.len(), 1, "whoever says so: {said:?}");
        assert!(
            said[0].starts_with("degraded: region 1 is fenced: ")
                && said[0].contains("manxdb cluster resume"),
            "{said:?}"
        );
    }

    #[test]
    fn a_region_whose_processes_have_all_started_again_has_lost_what_it_had() {
        let file = cluster();
        let of_region = |number: &u32| {
            let region = topology(&file).region_of_node(NodeId(*number));
            region.is_some_and(|region| region.0 == 0)
        };
        let all = (0..topology(&file).servers()).filter(of_region);
        let states = all.map(|number| {
            let is_manager = managers().contains(&number);
            (number, Some(if is_manager { dast::RECOVERS } else { OUT }))
        });
        let said = said_with(&states.collect::<Vec<_>>(), Some(0));
        let begins = [
            "unavailable: region 0 has lost its memory: 3 of its 3 managers have started again",
            "unavailable: shard 0 has lost its rows: 3 of its 3 replicas have started again",
            "unavailable: shard 1 has lost its rows: 3 of its 3 replicas have started again",
            "degraded: region 0 is fenced: ",
        ];
        assert_eq!(said.len(), begins.len(), "{said:?}");
        for (said, begins) in said.iter().zip(begins) {
            assert!(said.starts_with(begins), "{said}");
            assert!(said.contains("manxdb cluster down, then up"), "{said}");
        }
    }

    #[test]
    fn one_replica_that_is_out_is_told_and_two_are_the_loss_of_a_shard() {
        let one = said(&[(0, Some(dast::OUT))]);
        assert_eq!(one.len(), 1);
        assert!(
            one[0].starts_with("degraded: node 0, ") && one[0].contains("--node 0"),
            "{one:?}"
        );
        let file = cluster();
        let of =
            |number: &u32| topology(&file).role(NodeId(*number)) == topology(&file).role(NodeId(0));
        let shard: Vec<u32> = (0..topology(&file).servers()).filter(of).collect();
        let two = said(&[(shard[0], None), (shard[1], Some(dast::OUT))]);
        assert!(
            two[0].contains("shard 0 has lost its majority: 1 of its 3"),
            "{two:?}"
        );
    }
}
