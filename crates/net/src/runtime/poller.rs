//! What the loop waits for: an epoll, and the numbers by which it tells its descriptors apart.

use std::os::fd::{AsFd, OwnedFd};

use manxdb_core::{Nanos, NodeId};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};

use super::NetError;

/// Events taken in one wait; more are taken in the next.
const EVENTS_MAX: usize = 256;

pub(super) const READABLE: EventFlags = EventFlags::IN;
pub(super) const LISTENER: u64 = 0;
pub(super) const STOP: u64 = 1;
pub(super) const JOURNALS: u64 = 2;
pub(super) const DRIVER: u64 = 3;

/// The rest have a kind in the upper half and a number in the lower.
const KIND_BITS: u32 = 32;
const OUTBOUND: u64 = 1;
const DATAGRAMS: u64 = 2;
const INBOUND: u64 = 3;

/// What became ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Listener,
    Stop,
    Journals,
    Driver,
    /// A connection out, by its number.
    Outbound(u64),
    Datagrams(NodeId),
    /// A connection in, by its number.
    Inbound(u64),
}

pub(super) fn outbound(number: u64) -> u64 {
    OUTBOUND << KIND_BITS | number & u64::from(u32::MAX)
}

pub(super) fn datagrams(node: NodeId) -> u64 {
    DATAGRAMS << KIND_BITS | u64::from(node.0)
}

/// Connections in may be more than 2^32 in a long life: theirs are all numbers from here on.
pub(super) fn inbound(number: u64) -> u64 {
    (INBOUND << KIND_BITS) + number
}

fn source(data: u64) -> Source {
    match (data >> KIND_BITS, data) {
        (_, LISTENER) => Source::Listener,
        (_, STOP) => Source::Stop,
        (_, JOURNALS) => Source::Journals,
        (_, DRIVER) => Source::Driver,
        (OUTBOUND, _) => Source::Outbound(data & u64::from(u32::MAX)),
        (DATAGRAMS, _) => Source::Datagrams(NodeId(
            u32::try_from(data & u64::from(u32::MAX)).unwrap_or(u32::MAX),
        )),
        _ => {
            assert!(data >= INBOUND << KIND_BITS, "a descriptor of a known kind");
            Source::Inbound(data - (INBOUND << KIND_BITS))
        }
    }
}

/// A counter that wakes a loop.
pub(super) fn bell() -> Result<OwnedFd, NetError> {
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
    eventfd(0, flags).map_err(|error| NetError::io("make a bell")(error.into()))
}

/// The epoll of a process.
pub(super) struct Poller {
    epoll: OwnedFd,
    events: Vec<Event>,
}

impl Poller {
    pub(super) fn new() -> Result<Self, NetError> {
        let epoll = epoll::create(CreateFlags::CLOEXEC);
        Ok(Self {
            epoll: epoll.map_err(|error| NetError::io("make an epoll")(error.into()))?,
            events: Vec::with_capacity(EVENTS_MAX),
        })
    }

    pub(super) fn add(
        &self,
        what: impl AsFd,
        data: u64,
        flags: EventFlags,
    ) -> Result<(), NetError> {
        epoll::add(&self.epoll, what, EventData::new_u64(data), flags)
            .map_err(|error| NetError::io("wait for a socket")(error.into()))
    }

    pub(super) fn modify(
        &self,
        what: impl AsFd,
        data: u64,
        flags: EventFlags,
    ) -> Result<(), NetError> {
        epoll::modify(&self.epoll, what, EventData::new_u64(data), flags)
            .map_err(|error| NetError::io("wait for a socket")(error.into()))
    }

    /// Waits for at most `timeout`; what is ready, in no order.
    pub(super) fn wait(&mut self, timeout: Nanos) -> Result<Vec<(Source, EventFlags)>, NetError> {
        self.events.clear();
        let timeout = timespec(timeout);
        match epoll::wait(
            &self.epoll,
            spare_capacity(&mut self.events),
            Some(&timeout),
        ) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(NetError::io("wait for sockets")(error.into())),
        }
        let events = self.events.iter();
        let ready = events.map(|event| {
            let (data, flags) = (event.data, event.flags);
            (source(data.u64()), flags)
        });
        Ok(ready.collect())
    }
}

fn timespec(span: Nanos) -> Timespec {
    // Both parts fit: 2^64 ns are fewer than 2^35 s.
    Timespec {
        tv_sec: i64::try_from(span.0 / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(span.0 % 1_000_000_000).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_is_told_by_its_number() {
        for (data, wanted) in [
            (LISTENER, Source::Listener),
            (STOP, Source::Stop),
            (JOURNALS, Source::Journals),
            (DRIVER, Source::Driver),
            (outbound(0), Source::Outbound(0)),
            (outbound(7), Source::Outbound(7)),
            (datagrams(NodeId(5)), Source::Datagrams(NodeId(5))),
            (inbound(0), Source::Inbound(0)),
            (inbound(1 << 40), Source::Inbound(1 << 40)),
        ] {
            assert_eq!(source(data), wanted);
        }
    }
}
