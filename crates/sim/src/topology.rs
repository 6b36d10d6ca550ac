//! Where nodes are, and what the links between them are like when nothing is wrong.

use manxdb_core::{Nanos, NodeId};

/// A region, numbered from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegionId(pub u16);

/// How far apart two nodes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkClass {
    /// A node and itself.
    Own,
    /// Two nodes of one region.
    Lan,
    /// Nodes of two regions.
    Wan,
}

/// A share in millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Ppm(pub u32);

impl Ppm {
    /// So many in a hundred.
    #[must_use]
    pub const fn percent(percent: u32) -> Self {
        Self(percent * 10_000)
    }
}

/// What happens to a message on its way in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Link {
    /// How long it takes.
    pub delay: Nanos,
    /// It takes up to this much longer or shorter, evenly spread.
    pub jitter: Nanos,
    /// Share of packets that are lost.
    pub loss: Ppm,
    /// Share of datagrams that arrive twice.
    pub duplicate: Ppm,
    /// Share of messages that are held up by up to `reorder_by`, while others pass.
    pub reorder: Ppm,
    /// The longest such hold-up.
    pub reorder_by: Nanos,
    /// Share of datagrams of which one bit flips.
    pub flip: Ppm,
}

impl Link {
    /// A link that only takes time.
    #[must_use]
    pub const fn after(delay: Nanos) -> Self {
        Self {
            delay,
            jitter: Nanos::ZERO,
            loss: Ppm(0),
            duplicate: Ppm(0),
            reorder: Ppm(0),
            reorder_by: Nanos::ZERO,
            flip: Ppm(0),
        }
    }

    /// The same with a jitter.
    #[must_use]
    pub const fn with_jitter(mut self, jitter: Nanos) -> Self {
        self.jitter = jitter;
        self
    }
}

/// Nodes, their regions, and the links between regions.
#[derive(Debug, Clone)]
pub struct Topology {
    /// The region of each node.
    node_regions: Vec<RegionId>,
    regions: usize,
    /// From region × to region; the diagonal is the LAN of a region.
    links: Vec<Link>,
}

impl Topology {
    /// Nodes in the regions named, in the order of their ids: LAN links inside a region, WAN
    /// links between any two.
    pub fn new(node_regions: Vec<RegionId>, lan: Link, wan: Link) -> Self {
        let regions = node_regions.iter().map(|region| usize::from(region.0) + 1);
        let regions = regions.max().unwrap_or(0);
        let pairs = (0..regions).flat_map(|from| (0..regions).map(move |to| (from, to)));
        let links = pairs.map(|(from, to)| if from == to { lan } else { wan });
        Self {
            links: links.collect(),
            node_regions,
            regions,
        }
    }

    /// As many nodes in each region: those of region 0 come first.
    pub fn even(regions: u16, nodes_each: u32, lan: Link, wan: Link) -> Self {
        let of_region = |region| (0..nodes_each).map(move |_| RegionId(region));
        Self::new((0..regions).flat_map(of_region).collect(), lan, wan)
    }

    /// One region.
    pub fn single(nodes: u32, lan: Link) -> Self {
        Self::even(1, nodes, lan, lan)
    }

    /// Makes the links from one region to another different; the way back stays as it is.
    pub fn set_link(&mut self, from: RegionId, to: RegionId, link: Link) {
        let index = self.index(from, to);
        self.links[index] = link;
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.node_regions.len()
    }

    /// How many regions there are.
    pub fn regions(&self) -> usize {
        self.regions
    }

    /// All node ids.
    pub fn node_ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..u32::try_from(self.node_regions.len()).unwrap_or(u32::MAX)).map(NodeId)
    }

    /// The region of a node.
    pub fn region(&self, node: NodeId) -> RegionId {
        self.node_regions[node.0 as usize]
    }

    /// How far apart two nodes are.
    pub fn class(&self, from: NodeId, to: NodeId) -> LinkClass {
        if from == to {
            LinkClass::Own
        } else if self.region(from) == self.region(to) {
            LinkClass::Lan
        } else {
            LinkClass::Wan
        }
    }

    /// All ordered pairs of regions, each with itself too.
    pub fn region_pairs(&self) -> impl Iterator<Item = (RegionId, RegionId)> + use<> {
        let regions = u16::try_from(self.regions).unwrap_or(u16::MAX);
        let pair = move |from| (0..regions).map(move |to| (RegionId(from), RegionId(to)));
        (0..regions).flat_map(pair)
    }

    /// Place of a pair of regions in [`Topology::links`].
    pub(crate) fn index(&self, from: RegionId, to: RegionId) -> usize {
        usize::from(from.0) * self.regions + usize::from(to.0)
    }

    /// All links, from region by from region.
    pub(crate) fn links(&self) -> &[Link] {
        &self.links
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_numbered_region_by_region() {
        let lan = Link::after(Nanos::from_millis(2));
        let wan = Link::after(Nanos::from_millis(50));
        let mut topology = Topology::even(2, 3, lan, wan);
        assert_eq!(topology.nodes(), 6);
        assert_eq!(topology.region(NodeId(2)), RegionId(0));
        assert_eq!(topology.region(NodeId(3)), RegionId(1));
        assert_eq!(topology.class(NodeId(3), NodeId(5)), LinkClass::Lan);
        assert_eq!(topology.class(NodeId(3), NodeId(0)), LinkClass::Wan);
        assert_eq!(topology.class(NodeId(3), NodeId(3)), LinkClass::Own);
        topology.set_link(RegionId(0), RegionId(1), lan);
        assert_eq!(topology.links(), [lan, lan, wan, lan]);
    }
}
