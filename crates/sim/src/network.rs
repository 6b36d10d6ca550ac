//! What happens to messages between nodes.
//!
//! | | [`Transport::Fifo`] | [`Transport::Datagram`] |
//! |---|---|---|
//! | stands for | TCP between living nodes | UDP |
//! | order | kept per pair | any |
//! | lost packet | arrives later, after it was sent again | lost |
//! | duplicates | none | yes |
//! | partition | messages wait for its end | messages are lost |
//! | in flight to a node that crashes | lost | arrives at whoever lives there then |
//! | in flight from a node that crashes | lost | arrives |
//! | flipped bits | none | yes, for the receiver's checks to find |
//!
//! A run has one transport; messages that say that they are datagrams
//! ([`manxdb_core::Message::is_datagram`]) travel as such beside it.

use std::collections::BTreeMap;

use manxdb_core::{Nanos, NodeId, Random};

use crate::counters::Counters;
use crate::streams::{self, Purpose};
use crate::time::SimTime;
use crate::topology::{Link, Ppm, Topology};

/// What carries messages; the table above compares the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Reliable and in order between living nodes.
    Fifo {
        /// How much later a message arrives for each time that it is lost.
        resend_after: Nanos,
    },
    /// Neither: for cores inside [`manxdb_core::channel::Reliable`].
    Datagram,
}

impl Default for Transport {
    fn default() -> Self {
        Self::Fifo {
            resend_after: Nanos::from_millis(200),
        }
    }
}

/// The fate of one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It arrives.
    Arrives(SimTime),
    /// It arrives twice.
    ArrivesTwice(SimTime, SimTime),
    /// It is lost on the way.
    Lost,
    /// It waits for the end of a partition.
    Held,
}

/// One node's streams of random numbers.
#[derive(Debug, Clone)]
struct Draws {
    delay: Random,
    loss: Random,
    duplicate: Random,
    reorder: Random,
    flip: Random,
}

impl Draws {
    fn new(seed: u64, node: NodeId) -> Self {
        let stream = |purpose| streams::of_node(seed, node, purpose);
        Self {
            delay: stream(Purpose::Delay),
            loss: stream(Purpose::Loss),
            duplicate: stream(Purpose::Duplicate),
            reorder: stream(Purpose::Reorder),
            flip: stream(Purpose::Flip),
        }
    }
}

fn happens(share: Ppm, random: &mut Random) -> bool {
    share.0 > 0 && random.below(1_000_000) < u64::from(share.0)
}

/// The network of a run. `M` is what is held back while a partition lasts.
#[derive(Debug)]
pub struct Network<M> {
    topology: Topology,
    transport: Transport,
    /// The links as they are now, with the weather.
    links: Vec<Link>,
    /// Of each sender.
    draws: Vec<Draws>,
    /// When the last message of each pair arrives (FIFO only).
    last: Vec<SimTime>,
    /// How many partitions part each ordered pair; empty when there is none.
    cuts: Vec<u8>,
    held: BTreeMap<(NodeId, NodeId), Vec<M>>,
}

impl<M> Network<M> {
    /// A network without faults.
    pub fn new(seed: u64, topology: Topology, transport: Transport) -> Self {
        let pairs = match transport {
            Transport::Fifo { .. } => topology.nodes() * topology.nodes(),
            Transport::Datagram => 0,
        };
        Self {
            links: topology.links().to_vec(),
            draws: topology
                .node_ids()
                .map(|node| Draws::new(seed, node))
                .collect(),
            last: vec![SimTime::ZERO; pairs],
            cuts: Vec::new(),
            held: BTreeMap::new(),
            topology,
            transport,
        }
    }

    /// Where nodes are.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Whether messages keep their order.
    pub fn is_fifo(&self) -> bool {
        matches!(self.transport, Transport::Fifo { .. })
    }

    /// What becomes of a message that leaves at this time; what goes wrong is counted.
    pub fn send(
        &mut self,
        departs: SimTime,
        from: NodeId,
        to: NodeId,
        counters: &mut Counters,
    ) -> Fate {
        self.carry(self.transport, departs, (from, to), counters)
    }

    /// What becomes of a datagram, whatever carries the other messages of the run.
    pub fn send_datagram(
        &mut self,
        departs: SimTime,
        from: NodeId,
        to: NodeId,
        counters: &mut Counters,
    ) -> Fate {
        self.carry(Transport::Datagram, departs, (from, to), counters)
    }

    /// Which bit of a datagram flips on its way, if one does.
    pub fn flips(&mut self, from: NodeId, to: NodeId) -> Option<u64> {
        let regions = (self.topology.region(from), self.topology.region(to));
        let link = self.links[self.topology.index(regions.0, regions.1)];
        let flip = &mut self.draws[from.0 as usize].flip;
        (from != to && happens(link.flip, flip)).then(|| flip.next_bits())
    }

    fn carry(
        &mut self,
        transport: Transport,
        departs: SimTime,
        (from, to): (NodeId, NodeId),
        counters: &mut Counters,
    ) -> Fate {
        if from != to && self.is_cut(from, to) {
            return match transport {
                Transport::Fifo { .. } => {
                    counters.trouble("message held by a partition", 1);
                    Fate::Held
                }
                Transport::Datagram => {
                    counters.trouble("message cut off", 1);
                    Fate::Lost
                }
            };
        }
        if from == to {
            return match transport {
                Transport::Fifo { .. } => Fate::Arrives(self.in_order(departs, from, to)),
                Transport::Datagram => Fate::Arrives(departs),
            };
        }
        let regions = (self.topology.region(from), self.topology.region(to));
        let link = self.links[self.topology.index(regions.0, regions.1)];
        let draws = &mut self.draws[from.0 as usize];
        let mut arrives = departs + travel(&link, draws, counters);
        match transport {
            Transport::Fifo { resend_after } => {
                // A share of 1 would never get through: the sixteenth attempt does.
                for _ in 0..16 {
                    if !happens(link.loss, &mut draws.loss) {
                        break;
                    }
                    counters.trouble("packet sent again", 1);
                    arrives = arrives + resend_after;
                }
                Fate::Arrives(self.in_order(arrives, from, to))
            }
            Transport::Datagram if happens(link.loss, &mut draws.loss) => {
                counters.trouble("message lost", 1);
                Fate::Lost
            }
            Transport::Datagram if happens(link.duplicate, &mut draws.duplicate) => {
                counters.trouble("message doubled", 1);
                Fate::ArrivesTwice(arrives, departs + travel(&link, draws, counters))
            }
            Transport::Datagram => Fate::Arrives(arrives),
        }
    }

    /// Not before what was sent earlier to the same node.
    fn in_order(&mut self, arrives: SimTime, from: NodeId, to: NodeId) -> SimTime {
        let pair = self.pair(from, to);
        let arrives = arrives.max(self.last[pair]);
        self.last[pair] = arrives;
        arrives
    }

    fn pair(&self, from: NodeId, to: NodeId) -> usize {
        from.0 as usize * self.topology.nodes() + to.0 as usize
    }

    /// Whether a partition parts two nodes, in this direction.
    pub fn is_cut(&self, from: NodeId, to: NodeId) -> bool {
        !self.cuts.is_empty() && self.cuts[self.pair(from, to)] > 0
    }

    /// Keeps a message whose fate is [`Fate::Held`].
    pub fn hold(&mut self, from: NodeId, to: NodeId, message: M) {
        self.held.entry((from, to)).or_default().push(message);
    }

    /// The messages that no partition holds back any longer, per pair in order.
    pub fn release(&mut self) -> Vec<((NodeId, NodeId), Vec<M>)> {
        let pairs: Vec<_> = self.held.keys().copied().collect();
        let free = pairs
            .into_iter()
            .filter(|pair| !self.is_cut(pair.0, pair.1));
        let free: Vec<_> = free.collect();
        let take = |pair| self.held.remove(&pair).map(|messages| (pair, messages));
        free.into_iter().filter_map(take).collect()
    }

    /// Ends the connections of a node that crashed, and drops what is held for it or of it; how
    /// many messages.
    pub fn disconnect(&mut self, node: NodeId) -> u64 {
        if self.is_fifo() {
            for other in self.topology.node_ids() {
                // The next connection waits for nothing of the last one.
                let (out, back) = (self.pair(node, other), self.pair(other, node));
                self.last[out] = SimTime::ZERO;
                self.last[back] = SimTime::ZERO;
            }
        }
        let mut dropped = 0;
        self.held.retain(|pair, messages| {
            let keep = pair.0 != node && pair.1 != node;
            dropped += if keep { 0 } else { messages.len() as u64 };
            keep
        });
        dropped
    }

    /// Sets which pairs are parted: in each partition no message gets from the first set to the
    /// second.
    pub fn set_partitions(&mut self, partitions: &[(Vec<NodeId>, Vec<NodeId>)]) {
        self.cuts.clear();
        if partitions.is_empty() {
            return;
        }
        let nodes = self.topology.nodes();
        self.cuts.resize(nodes * nodes, 0);
        for (from, to) in partitions {
            for (one, other) in from
                .iter()
                .flat_map(|one| to.iter().map(move |to| (one, to)))
            {
                let pair = self.pair(*one, *other);
                self.cuts[pair] = self.cuts[pair].saturating_add(1);
            }
        }
    }

    /// Puts the links as they are when nothing is wrong, then lets `weather` change them.
    pub fn set_weather(&mut self, mut weather: impl FnMut(&Topology, &mut [Link])) {
        self.links.clear();
        self.links.extend_from_slice(self.topology.links());
        weather(&self.topology, &mut self.links);
    }
}

/// How long one message travels.
fn travel(link: &Link, draws: &mut Draws, counters: &mut Counters) -> Nanos {
    let mut span = link.delay;
    if link.jitter > Nanos::ZERO {
        let drawn = Nanos(
            draws
                .delay
                .below(link.jitter.0.saturating_mul(2).saturating_add(1)),
        );
        span = span + drawn - link.jitter;
    }
    if happens(link.reorder, &mut draws.reorder) {
        counters.trouble("message held up", 1);
        span += Nanos(draws.reorder.below(link.reorder_by.0.saturating_add(1)));
    }
    span
}

#[cfg(test)]
#[path = "network_tests.rs"]
mod tests;
