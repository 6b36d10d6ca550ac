//! What the answers of a shard's replicas come to.

use std::collections::{BTreeMap, BTreeSet};

use manxdb_common::topology::{COPIES, MAJORITY};
use manxdb_core::NodeId;

use super::message::{Timestamp, Vote};

/// Replicas of a shard.
const ALL: usize = COPIES as usize;

/// The vote of one shard on its way.
#[derive(Debug)]
pub(super) enum Ballot {
    /// Its replicas are asked.
    Open(BTreeMap<NodeId, Vote>),
    /// They did not agree, and are told what counts.
    Finalizing {
        /// What counts.
        vote: Vote,
        /// Who keeps it.
        kept: BTreeSet<NodeId>,
    },
    /// This is it.
    Decided(Vote),
}

impl Ballot {
    pub fn new() -> Self {
        Self::Open(BTreeMap::new())
    }

    /// Takes a replica's answer; the vote that its replicas are to be told, if they do not agree.
    pub fn add(&mut self, from: NodeId, vote: Vote) -> Option<Vote> {
        let Self::Open(votes) = self else {
            return None;
        };
        votes.insert(from, vote);
        if votes.len() < ALL {
            return None;
        }
        let votes: Vec<Vote> = votes.values().copied().collect();
        if votes.iter().all(|other| *other == vote) {
            // Three that abstain cannot commit, and one round trip told so.
            *self = Self::Decided(decide(&votes));
            return None;
        }
        let vote = decide(&votes);
        let kept = BTreeSet::new();
        *self = Self::Finalizing { vote, kept };
        Some(vote)
    }

    /// Takes a replica's word that it keeps the vote.
    pub fn keep(&mut self, from: NodeId) {
        if let Self::Finalizing { vote, kept } = self {
            kept.insert(from);
            if kept.len() >= MAJORITY {
                *self = Self::Decided(*vote);
            }
        }
    }

    pub fn decided(&self) -> Option<Vote> {
        match self {
            Self::Decided(vote) => Some(*vote),
            _ => None,
        }
    }
}

/// The decision of TAPIR's paper (section 5.2): a majority commits; whatever else is no agreement
/// aborts, unless another timestamp may help. Never [`Vote::Abstain`].
fn decide(votes: &[Vote]) -> Vote {
    let count = |wanted: Vote| votes.iter().filter(|vote| **vote == wanted).count();
    if count(Vote::Abort) > 0 {
        return Vote::Abort;
    }
    if count(Vote::Ok) >= MAJORITY {
        return Vote::Ok;
    }
    if count(Vote::Abstain) >= MAJORITY {
        return Vote::Abort;
    }
    let timestamp = |vote: &Vote| match vote {
        Vote::Retry(timestamp) => Some(*timestamp),
        _ => None,
    };
    let latest: Option<Timestamp> = votes.iter().filter_map(timestamp).max();
    latest.map_or(Vote::Abort, Vote::Retry)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retry(time: u64) -> Vote {
        Vote::Retry(Timestamp { time, client: 1 })
    }

    /// What three answers come to, and whether replicas have to be told.
    fn outcome(votes: [Vote; 3]) -> (Vote, bool) {
        let mut ballot = Ballot::new();
        let mut told = None;
        for (node, vote) in (0..).map(NodeId).zip(votes) {
            told = told.or(ballot.add(node, vote));
        }
        let is_told = told.is_some();
        assert_eq!(ballot.decided().is_none(), is_told);
        ballot.keep(NodeId(0));
        assert_eq!(ballot.decided().is_none(), is_told, "one is no majority");
        ballot.keep(NodeId(2));
        (ballot.decided().unwrap(), is_told)
    }

    #[test]
    fn three_equal_answers_decide_and_others_are_told() {
        use Vote::{Abort, Abstain, Ok};
        for (votes, expected) in [
            ([Ok, Ok, Ok], (Ok, false)),
            ([Abstain, Abstain, Abstain], (Abort, false)),
            ([Abort, Abort, Abort], (Abort, false)),
            ([retry(5), retry(5), retry(5)], (retry(5), false)),
            ([Ok, Abstain, Ok], (Ok, true)),
            ([Ok, Abort, Ok], (Abort, true)),
            ([Abstain, Ok, Abstain], (Abort, true)),
            ([Ok, retry(5), Abstain], (retry(5), true)),
            ([retry(5), retry(7), Ok], (retry(7), true)),
            ([retry(5), Ok, Ok], (Ok, true)),
        ] {
            assert_eq!(outcome(votes), expected, "{votes:?}");
        }
    }
}
