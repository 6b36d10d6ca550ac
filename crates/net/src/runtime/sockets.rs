//! Waiting, accepting, reading, writing.

use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;

use manxdb_core::channel::Frame;
use manxdb_core::{Core, Event, Nanos, NodeId};
use rustix::event::epoll::EventFlags;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::poller::{self, Source};
use super::{NetError, Runtime};
use crate::driver::Driver;
use crate::frame;
use crate::inbound::Inbound;
use crate::outbound::Outbound;
use crate::packet::{Hello, Packet};
use crate::status::{NodeStatus, Status};

/// Connections that others may have to this process.
const INBOUND_MAX: usize = 1_000;
/// Reads of one connection in one round.
const READS_MAX: usize = 32;
/// How often connections are looked after.
const LOOK_EVERY: Nanos = Nanos::from_secs(1);
/// How long a connection may last without saying who it is.
const SILENCE_MAX: Nanos = Nanos::from_secs(10);

/// What can go on.
#[derive(Debug, Default)]
pub(super) struct Ready {
    pub(super) stop: bool,
    accept: bool,
    journals: bool,
    driver: bool,
    inbound: Vec<u64>,
    outbound: Vec<(u64, EventFlags)>,
    datagrams: Vec<NodeId>,
}

impl<C, D> Runtime<C, D>
where
    C: Core,
    C::Record: Serialize + DeserializeOwned,
    C::Message: Serialize + DeserializeOwned,
    D: Driver<C>,
{
    /// Begins to wait for what is there from the start.
    pub(super) fn watch(&mut self, stop: Option<&UnixStream>) -> Result<(), NetError> {
        self.poller
            .add(&self.listener, poller::LISTENER, poller::READABLE)?;
        self.poller
            .add(self.reports.bell(), poller::JOURNALS, poller::READABLE)?;
        if let Some(stop) = stop {
            self.poller.add(stop, poller::STOP, poller::READABLE)?;
        }
        if let Some(sockets) = self.driver.sockets() {
            self.poller.add(sockets, poller::DRIVER, poller::READABLE)?;
        }
        Ok(())
    }

    /// Waits until a socket is ready or something is due.
    pub(super) fn wait(&mut self) -> Result<Ready, NetError> {
        self.watch_changed()?;
        let now = self.now();
        let next_look = self.looked_after + LOOK_EVERY;
        let until = self.agenda.first().unwrap_or(Nanos::MAX).min(next_look);
        let mut ready = Ready::default();
        for (source, flags) in self.poller.wait(until.saturating_sub(now))? {
            match source {
                Source::Listener => ready.accept = true,
                Source::Stop => ready.stop = true,
                Source::Journals => ready.journals = true,
                Source::Driver => ready.driver = true,
                Source::Inbound(number) => ready.inbound.push(number),
                Source::Outbound(number) => ready.outbound.push((number, flags)),
                Source::Datagrams(node) => ready.datagrams.push(node),
            }
        }
        Ok(ready)
    }

    /// Waits for the sockets of connections out as they are now; closed ones left by themselves.
    fn watch_changed(&mut self) -> Result<(), NetError> {
        // Past the limit new connections wait in the kernel's queue.
        let accepts = self.inbound.len() < INBOUND_MAX;
        if accepts != self.accepts {
            self.accepts = accepts;
            let flags = if accepts {
                poller::READABLE
            } else {
                EventFlags::empty()
            };
            self.poller
                .modify(&self.listener, poller::LISTENER, flags)?;
        }
        for outbound in self.outbound.values_mut() {
            let data = poller::outbound(outbound.number);
            let generation = outbound.generation();
            let Some((socket, flags)) = outbound.interest() else {
                continue;
            };
            match outbound.watched {
                Some(watched) if watched == (generation, flags) => continue,
                Some((watched, _)) if watched == generation => {
                    self.poller.modify(socket, data, flags)?;
                }
                _ => self.poller.add(socket, data, flags)?,
            }
            outbound.watched = Some((generation, flags));
        }
        Ok(())
    }

    pub(super) fn take_ready(&mut self, ready: &Ready) {
        if ready.journals {
            self.take_reports();
        }
        for node in &ready.datagrams {
            self.read_datagrams(*node);
        }
        for number in &ready.inbound {
            self.read(*number);
        }
        self.inbound.retain(|_, inbound| !inbound.is_closed);
        for (number, flags) in &ready.outbound {
            let now = self.now();
            let mut all = self.outbound.values_mut();
            if let Some(outbound) = all.find(|outbound| outbound.number == *number) {
                outbound.ready(now, *flags, &mut self.counters);
            }
        }
        if ready.accept {
            self.accept();
        }
        if ready.driver {
            self.rouse_driver();
        }
    }

    fn accept(&mut self) {
        while self.inbound.len() < INBOUND_MAX {
            let accepted = self.listener.accept();
            let opened = self.now();
            match accepted.and_then(|(stream, from)| Inbound::new(stream, from, opened)) {
                Ok(inbound) => {
                    let number = self.accepted;
                    self.accepted += 1;
                    let data = poller::inbound(number);
                    let added = self.poller.add(&inbound.stream, data, poller::READABLE);
                    if let Err(error) = added {
                        tracing::warn!(%error, "a connection is closed at once");
                        continue;
                    }
                    self.inbound.insert(number, inbound);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    return;
                }
            }
        }
    }

    /// Reads a connection and takes what has arrived whole. Anything wrong closes it.
    fn read(&mut self, place: u64) {
        for _ in 0..READS_MAX {
            let Some(inbound) = self.inbound.get_mut(&place) else {
                return;
            };
            let more = match inbound.read() {
                Ok(more) => more,
                Err(error) => {
                    tracing::debug!(from = %inbound.from, %error, "connection ended");
                    inbound.is_closed = true;
                    false
                }
            };
            if let Err(reason) = self.take_packets(place) {
                self.refuse(place, &reason);
                return;
            }
            if !more {
                return;
            }
        }
    }

    fn refuse(&mut self, place: u64, reason: &str) {
        self.counters.refused += 1;
        if let Some(inbound) = self.inbound.get_mut(&place) {
            inbound.is_closed = true;
            tracing::warn!(from = %inbound.from, reason, "connection closed");
        }
    }

    fn take_packets(&mut self, place: u64) -> Result<(), String> {
        loop {
            let Some(inbound) = self.inbound.get_mut(&place) else {
                return Ok(());
            };
            let payload = inbound.decoder.next_payload();
            let Some(payload) = payload.map_err(|error| error.to_string())? else {
                return Ok(());
            };
            let packet: Packet<Frame<C::Message>> =
                frame::decode(payload).map_err(|error| error.to_string())?;
            self.take(place, packet)?;
            self.serve_driver();
        }
    }

    fn take(&mut self, place: u64, packet: Packet<Frame<C::Message>>) -> Result<(), String> {
        let Some(inbound) = self.inbound.get_mut(&place) else {
            return Ok(());
        };
        match packet {
            Packet::Hello(hello) => {
                check(&hello, self.settings.cluster, inbound)?;
                self.settings.directory.learn(&hello)?;
                inbound.introduce(&hello);
                if let Some(outbound) = self.outbound.get_mut(&hello.address) {
                    outbound.is_there();
                }
            }
            Packet::Message { from, to, body } => {
                if !inbound.speaks_for(from) {
                    return Err(format!("it speaks for node {} without a right to", from.0));
                }
                self.counters.received += 1;
                // The process may have stood still since it last looked.
                self.do_due();
                self.step(to, Event::Message { from, body });
            }
            Packet::AskStatus => {
                let status = Packet::<()>::Status(self.status());
                let frame = frame::encode(&status).map_err(|error| error.to_string())?;
                let answered = self.inbound.get_mut(&place).map(|to| to.answer(&frame));
                answered.transpose().map_err(|error| error.to_string())?;
            }
            Packet::Status(_) => return Err("a status nobody asked for".to_owned()),
        }
        Ok(())
    }

    fn status(&self) -> Status {
        let notes = self.settings.notes;
        // What the driver says stands with the first node.
        let mut of_driver = Some(self.driver.notes());
        let nodes = self.nodes.iter().map(|(node, hosted)| {
            let mut notes = notes(hosted.core.core());
            notes.extend(of_driver.take().into_iter().flatten());
            NodeStatus {
                node: *node,
                life: hosted.life.0,
                notes,
            }
        });
        Status {
            cluster: self.settings.cluster,
            process: std::process::id(),
            uptime_ms: self.now().as_micros() / 1_000,
            nodes: nodes.collect(),
            counters: self.counters.named(),
        }
    }

    /// Connects to all servers, so that those which have waited for this process hear at once that it is
    /// there.
    pub(super) fn greet(&mut self) {
        let servers = self.settings.directory.servers();
        let elsewhere = servers.filter(|(_, node)| !self.nodes.contains_key(node));
        for (address, _) in elsewhere.collect::<Vec<_>>() {
            self.depart(address, &[]);
        }
    }

    /// A frame has been held long enough.
    pub(super) fn depart(&mut self, to: SocketAddr, frame: &[u8]) {
        let now = self.now();
        let number = self.opened;
        let outbound = self.outbound.entry(to).or_insert_with(|| {
            self.opened += 1;
            Outbound::new(to, number)
        });
        outbound.send(now, &self.hello, frame, &mut self.counters);
    }

    pub(super) fn write(&mut self) {
        let now = self.now();
        let busy = self.outbound.values_mut();
        for outbound in busy.filter(|outbound| outbound.has_work()) {
            outbound.flush(now, &mut self.counters);
        }
    }

    /// Closes connections that never say who they are, and forgets clients that are gone.
    pub(super) fn look_after(&mut self) {
        let now = self.now();
        if now < self.looked_after + LOOK_EVERY {
            return;
        }
        self.looked_after = now;
        let too_long = |inbound: &Inbound| {
            !inbound.is_introduced() && now.saturating_sub(inbound.opened) > SILENCE_MAX
        };
        self.inbound.retain(|_, inbound| !too_long(inbound));
        let present = self.inbound.values().filter_map(Inbound::address).collect();
        let directory = &mut self.settings.directory;
        let gone = directory.forget_absent(now, self.address, &present);
        if gone.is_empty() {
            return;
        }
        for node in gone {
            self.holder.forget(node);
        }
        let known = directory.addresses();
        self.outbound.retain(|address, _| known.contains(address));
    }
}

fn check(hello: &Hello, cluster: crate::ClusterId, inbound: &Inbound) -> Result<(), String> {
    if hello.cluster != cluster {
        return Err(format!(
            "it is of cluster {:x}, this is {:x}",
            hello.cluster.0, cluster.0
        ));
    }
    if inbound.is_introduced() {
        return Err("it says twice who it is".to_owned());
    }
    Ok(())
}
