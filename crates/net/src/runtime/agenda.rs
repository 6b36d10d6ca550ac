//! What is to be done when: timers, and messages that are held back.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::SocketAddr;

use manxdb_core::channel::{ChannelTimer, Frame};
use manxdb_core::{Core, Nanos, NodeId};

/// Something to do.
pub(super) enum Item<C: Core> {
    /// A timer of a node is over.
    Timer {
        node: NodeId,
        timer: ChannelTimer<C::Timer>,
    },
    /// A message to a node of this process arrives.
    Arrival {
        from: NodeId,
        to: NodeId,
        body: Frame<C::Message>,
    },
    /// A message to a node elsewhere leaves.
    Departure { to: SocketAddr, frame: Vec<u8> },
    /// A datagram leaves the socket of a node.
    DatagramDeparture {
        node: NodeId,
        to: SocketAddr,
        bytes: Vec<u8>,
    },
    /// A datagram arrives that was sent from an address.
    DatagramArrival {
        from: SocketAddr,
        node: NodeId,
        body: Frame<C::Message>,
    },
    /// The driver wanted to be called.
    Wake { key: u64 },
}

/// Items by time; those of one time in the order in which they were added.
pub(super) struct Agenda<C: Core> {
    order: BinaryHeap<Reverse<(Nanos, u64)>>,
    items: BTreeMap<u64, Item<C>>,
    next: u64,
}

impl<C: Core> Default for Agenda<C> {
    fn default() -> Self {
        Self {
            order: BinaryHeap::new(),
            items: BTreeMap::new(),
            next: 0,
        }
    }
}

impl<C: Core> Agenda<C> {
    pub(super) fn add(&mut self, at: Nanos, item: Item<C>) {
        self.order.push(Reverse((at, self.next)));
        self.items.insert(self.next, item);
        self.next += 1;
    }

    /// When the first item is due.
    pub(super) fn first(&self) -> Option<Nanos> {
        self.order.peek().map(|Reverse((at, _))| *at)
    }

    /// The first item, if it is due.
    pub(super) fn take_due(&mut self, now: Nanos) -> Option<Item<C>> {
        if self.first()? > now {
            return None;
        }
        let Reverse((_, number)) = self.order.pop()?;
        self.items.remove(&number)
    }
}
