//! What comes beside the ordered messages: datagrams, and what journals report.

use std::net::SocketAddr;

use manxdb_core::channel::Frame;
use manxdb_core::{Core, Event, Message as _, Nanos, NodeId};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::agenda::Item;
use super::{NetError, Runtime};
use crate::datagrams::{DatagramSocket, READS_MAX, UNKNOWN_SENDER};
use crate::driver::Driver;
use crate::packet::RegionId;

impl<C, D> Runtime<C, D>
where
    C: Core,
    C::Record: Serialize + DeserializeOwned,
    C::Message: Serialize + DeserializeOwned,
    D: Driver<C>,
{
    /// Sends a datagram of a node of this process to one elsewhere.
    pub(super) fn send_datagram(&mut self, node: NodeId, to: NodeId, body: &Frame<C::Message>) {
        let (address, region) = match (to, self.unknown_sender) {
            (UNKNOWN_SENDER, Some(address)) => (address, self.region_of(node)),
            (UNKNOWN_SENDER, None) => {
                self.counters.unknown += 1;
                return;
            }
            (server, _) => {
                let found = self.settings.directory.find(server);
                let Some((address, region)) = found else {
                    self.counters.unknown += 1;
                    return;
                };
                (address, Some(region))
            }
        };
        *self.counters.sent.entry(body.label()).or_default() += 1;
        let Some(bytes) = body.encode_datagram() else {
            // Its core has to look before it sends what does not fit.
            self.counters.dropped += 1;
            tracing::error!(
                from = node.0,
                what = body.label(),
                "too large for a datagram"
            );
            return;
        };
        let due = self.held_until(node, region);
        if due <= self.now() {
            self.depart_datagram(node, address, &bytes);
            return;
        }
        let to = address;
        let item = Item::DatagramDeparture { node, to, bytes };
        self.agenda.add(due, item);
    }

    fn region_of(&self, node: NodeId) -> Option<RegionId> {
        self.nodes.get(&node).map(|hosted| hosted.region)
    }

    /// When a datagram between a node of this process and somebody in a region goes on.
    fn held_until(&mut self, node: NodeId, region: Option<RegionId>) -> Nanos {
        let now = self.now();
        match (self.region_of(node), region) {
            (Some(here), Some(there)) if self.settings.holds_datagrams => {
                self.holder.due_alone(now, here, there)
            }
            _ => now,
        }
    }

    pub(super) fn depart_datagram(&mut self, node: NodeId, to: SocketAddr, bytes: &[u8]) {
        let socket = self.datagrams.get(&node);
        let is_sent = socket.is_some_and(|socket| socket.send(to, bytes));
        if is_sent {
            self.counters.bytes_sent += bytes.len() as u64;
        } else {
            self.counters.datagrams_lost += 1;
        }
    }

    /// Reads the datagrams of a node. Bytes that make no sense are counted, and nobody is answered.
    pub(super) fn read_datagrams(&mut self, node: NodeId) {
        for _ in 0..READS_MAX {
            let socket = self.datagrams.get(&node);
            let Some((from, bytes)) = socket.and_then(DatagramSocket::receive) else {
                return;
            };
            let Some(body) = Frame::<C::Message>::decode_datagram(&bytes) else {
                self.counters.datagrams_refused += 1;
                continue;
            };
            self.counters.received += 1;
            let region = self.settings.directory.server_at(from);
            let due = self.held_until(node, region.map(|(_, region)| region));
            if due <= self.now() {
                self.arrive(from, node, body);
            } else {
                let item = Item::DatagramArrival { from, node, body };
                self.agenda.add(due, item);
            }
        }
    }

    /// A datagram has come all its way.
    pub(super) fn arrive(&mut self, from: SocketAddr, node: NodeId, body: Frame<C::Message>) {
        let sender = self.settings.directory.server_at(from);
        let sender = sender.map_or(UNKNOWN_SENDER, |(server, _)| server);
        assert!(self.unknown_sender.is_none(), "one datagram at a time");
        self.unknown_sender = (sender == UNKNOWN_SENDER).then_some(from);
        self.step(node, Event::Message { from: sender, body });
        self.unknown_sender = None;
        self.serve_driver();
    }

    /// Records are on disk: their cores may go on. When the disk failed nobody may.
    pub(super) fn take_reports(&mut self) {
        for report in self.reports.take() {
            match report {
                Ok((node, token)) => self.step(node, Event::Persisted(token)),
                Err(why) => {
                    self.failure = Some(NetError::Journal(why));
                    return;
                }
            }
            self.serve_driver();
        }
    }
}
