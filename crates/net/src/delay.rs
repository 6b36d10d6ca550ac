//! Emulated distances: how long a message is held before it leaves.

use std::collections::BTreeMap;

use manxdb_core::{Nanos, NodeId, Random};

use crate::packet::RegionId;

/// One-way delays between regions.
#[derive(Debug, Clone, Default)]
pub struct Delays {
    /// Between nodes of one region.
    pub lan: Nanos,
    /// Between regions.
    pub wan: Nanos,
    /// Up to so much more, evenly, between regions.
    pub wan_jitter: Nanos,
    /// Other delays from one region to another.
    pub pairs: BTreeMap<(RegionId, RegionId), Nanos>,
}

impl Delays {
    /// The delay from one region to another, without jitter.
    #[must_use]
    pub fn one_way(&self, from: RegionId, to: RegionId) -> Nanos {
        let usual = if from == to { self.lan } else { self.wan };
        self.pairs.get(&(from, to)).copied().unwrap_or(usual)
    }
}

/// Says when messages leave: never before one that was sent earlier between the same two nodes.
#[derive(Debug)]
pub(crate) struct Holder {
    delays: Delays,
    random: Random,
    last: BTreeMap<(NodeId, NodeId), Nanos>,
}

impl Holder {
    pub(crate) fn new(delays: Delays, seed: u64) -> Self {
        Self {
            delays,
            random: Random::new(seed),
            last: BTreeMap::new(),
        }
    }

    /// When a datagram that is sent, or has come, `now` between these two goes on. Datagrams overtake
    /// each other, so it waits for none.
    pub(crate) fn due_alone(&mut self, now: Nanos, from: RegionId, to: RegionId) -> Nanos {
        let due = now + self.delays.one_way(from, to);
        let jitter = self.delays.wan_jitter;
        if from == to || jitter == Nanos::ZERO {
            return due;
        }
        // As much earlier as later, as in the simulator; never before it was sent.
        let drawn = Nanos(self.random.below(2 * jitter.0 + 1));
        (due + drawn).saturating_sub(jitter).max(now)
    }

    /// When a message that is sent `now` between these two leaves.
    pub(crate) fn due(
        &mut self,
        now: Nanos,
        (from, from_region): (NodeId, RegionId),
        (to, to_region): (NodeId, RegionId),
    ) -> Nanos {
        let due = self.due_alone(now, from_region, to_region);
        let last = self.last.entry((from, to)).or_default();
        *last = due.max(*last);
        *last
    }

    /// A node is gone for good.
    pub(crate) fn forget(&mut self, node: NodeId) {
        self.last
            .retain(|(from, to), _| *from != node && *to != node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: (NodeId, RegionId) = (NodeId(0), RegionId(0));
    const NEAR: (NodeId, RegionId) = (NodeId(1), RegionId(0));
    const FAR: (NodeId, RegionId) = (NodeId(2), RegionId(1));

    #[test]
    fn messages_are_held_as_long_as_their_way_is() {
        let mut delays = Delays {
            lan: Nanos(10),
            wan: Nanos(100),
            ..Delays::default()
        };
        delays.pairs.insert((FAR.1, HERE.1), Nanos(70));
        let mut holder = Holder::new(delays, 1);
        assert_eq!(holder.due(Nanos(5), HERE, NEAR), Nanos(15));
        assert_eq!(holder.due(Nanos(5), HERE, FAR), Nanos(105));
        assert_eq!(holder.due(Nanos(5), FAR, HERE), Nanos(75));
    }

    #[test]
    fn jitter_makes_messages_as_much_earlier_as_later() {
        let delays = Delays {
            wan: Nanos(100),
            wan_jitter: Nanos(150),
            ..Delays::default()
        };
        let mut holder = Holder::new(delays, 1);
        // So far apart that none waits for the one before.
        let spans: Vec<u64> = (0..10_000)
            .map(|number| Nanos(number * 1_000))
            .map(|now| holder.due(now, HERE, FAR).0 - now.0)
            .collect();
        assert_eq!(spans.iter().min(), Some(&0), "not before it was sent");
        assert_eq!(spans.iter().max(), Some(&250));
        let earlier = spans.iter().filter(|span| **span < 100).count();
        assert!(
            (4_700..5_300).contains(&earlier),
            "{earlier} of 10,000 came earlier"
        );
    }

    #[test]
    fn jitter_never_lets_a_message_overtake() {
        let delays = Delays {
            wan: Nanos(100),
            wan_jitter: Nanos(50),
            ..Delays::default()
        };
        let mut holder = Holder::new(delays, 1);
        let dues: Vec<_> = (0..1_000)
            .map(|now| holder.due(Nanos(now), HERE, FAR))
            .collect();
        assert!(dues.is_sorted());
        assert!(
            dues.iter()
                .zip(0..)
                .all(|(due, now)| due.0 >= now + 50 && due.0 <= now + 150)
        );
    }
}
