//! Waiting, accepting, reading, writing.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;

use manxdb_core::channel::Frame;
use manxdb_core::{Core, Event, Nanos};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;
use serde::de::DeserializeOwned;

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
    /// Places in the list of connections.
    inbound: Vec<usize>,
    outbound: Vec<(SocketAddr, PollFlags)>,
}

impl<C, D> Runtime<C, D>
where
    C: Core<Record = ()>,
    C::Message: Serialize + DeserializeOwned,
    D: Driver<C>,
{
    /// Waits until a socket is ready or something is due.
    pub(super) fn wait(&mut self, stop: Option<&UnixStream>) -> Result<Ready, NetError> {
        let now = self.now();
        let next_look = self.looked_after + LOOK_EVERY;
        let until = self.agenda.first().unwrap_or(Nanos::MAX).min(next_look);
        let timeout = timespec(until.saturating_sub(now));
        let mut fds = Vec::with_capacity(self.inbound.len() + self.outbound.len() + 2);
        // Past the limit new connections wait in the kernel's queue.
        let accepts = match self.inbound.len() {
            ..INBOUND_MAX => PollFlags::IN,
            _ => PollFlags::empty(),
        };
        fds.push(PollFd::new(&self.listener, accepts));
        let streams = self.inbound.iter();
        fds.extend(streams.map(|inbound| PollFd::new(&inbound.stream, PollFlags::IN)));
        let mut addresses = Vec::with_capacity(self.outbound.len());
        for (address, outbound) in &self.outbound {
            if let Some((fd, flags)) = outbound.interest() {
                fds.push(PollFd::from_borrowed_fd(fd, flags));
                addresses.push(*address);
            }
        }
        if let Some(stop) = stop {
            fds.push(PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN));
        }
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(Ready::default()),
            Ok(_) => {}
            Err(error) => return Err(NetError::io("wait for sockets")(error.into())),
        }
        let flags: Vec<PollFlags> = fds.iter().map(PollFd::revents).collect();
        Ok(sort(&flags, self.inbound.len(), addresses))
    }

    pub(super) fn take_ready(&mut self, ready: &Ready) {
        for place in &ready.inbound {
            self.read(*place);
        }
        self.inbound.retain(|inbound| !inbound.is_closed);
        for (address, flags) in &ready.outbound {
            let now = self.now();
            if let Some(outbound) = self.outbound.get_mut(address) {
                outbound.ready(now, *flags, &mut self.counters);
            }
        }
        if ready.accept {
            self.accept();
        }
    }

    fn accept(&mut self) {
        while self.inbound.len() < INBOUND_MAX {
            let accepted = self.listener.accept();
            let opened = self.now();
            match accepted.and_then(|(stream, from)| Inbound::new(stream, from, opened)) {
                Ok(inbound) => self.inbound.push(inbound),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    return;
                }
            }
        }
    }

    /// Reads a connection and takes what has arrived whole. Anything wrong closes it.
    fn read(&mut self, place: usize) {
        for _ in 0..READS_MAX {
            let Some(inbound) = self.inbound.get_mut(place) else {
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

    fn refuse(&mut self, place: usize, reason: &str) {
        self.counters.refused += 1;
        if let Some(inbound) = self.inbound.get_mut(place) {
            inbound.is_closed = true;
            tracing::warn!(from = %inbound.from, reason, "connection closed");
        }
    }

    fn take_packets(&mut self, place: usize) -> Result<(), String> {
        loop {
            let Some(inbound) = self.inbound.get_mut(place) else {
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

    fn take(&mut self, place: usize, packet: Packet<Frame<C::Message>>) -> Result<(), String> {
        let Some(inbound) = self.inbound.get_mut(place) else {
            return Ok(());
        };
        match packet {
            Packet::Hello(hello) => {
                check(&hello, self.settings.cluster, inbound)?;
                self.settings.directory.learn(&hello)?;
                inbound.introduce(&hello);
            }
            Packet::Message { from, to, body } => {
                if !inbound.speaks_for(from) {
                    return Err(format!("it speaks for node {} without a right to", from.0));
                }
                self.counters.received += 1;
                self.step(to, Event::Message { from, body });
            }
            Packet::AskStatus => {
                let status = Packet::<()>::Status(self.status());
                let frame = frame::encode(&status).map_err(|error| error.to_string())?;
                let answered = self.inbound.get_mut(place).map(|to| to.answer(&frame));
                answered.transpose().map_err(|error| error.to_string())?;
            }
            Packet::Status(_) => return Err("a status nobody asked for".to_owned()),
        }
        Ok(())
    }

    fn status(&self) -> Status {
        let notes = self.settings.notes;
        let nodes = self.nodes.iter().map(|(node, hosted)| NodeStatus {
            node: *node,
            life: hosted.life.0,
            notes: notes(hosted.core.core()),
        });
        Status {
            cluster: self.settings.cluster,
            process: std::process::id(),
            uptime_ms: self.now().as_micros() / 1_000,
            nodes: nodes.collect(),
            counters: self.counters.named(),
        }
    }

    /// A frame has been held long enough.
    pub(super) fn depart(&mut self, to: SocketAddr, frame: &[u8]) {
        let now = self.now();
        let outbound = self.outbound.entry(to);
        let outbound = outbound.or_insert_with(|| Outbound::new(to));
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
        self.inbound.retain(|inbound| !too_long(inbound));
        let present = self.inbound.iter().filter_map(Inbound::address).collect();
        let directory = &mut self.settings.directory;
        let gone = directory.forget_absent(now, &present);
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

fn timespec(span: Nanos) -> Timespec {
    // Both parts fit: 2^64 ns are fewer than 2^35 s.
    Timespec {
        tv_sec: i64::try_from(span.0 / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(span.0 % 1_000_000_000).unwrap_or(0),
    }
}

/// Flags in the order in which descriptors were listed: listener, inbound, outbound, stop.
fn sort(flags: &[PollFlags], inbound: usize, addresses: Vec<SocketAddr>) -> Ready {
    let is_ready = |place: usize| flags.get(place).is_some_and(|flags| !flags.is_empty());
    let first_out = 1 + inbound;
    let outbound = addresses.iter().zip(first_out..);
    let outbound = outbound.filter(|(_, place)| is_ready(*place));
    Ready {
        accept: is_ready(0),
        inbound: (0..inbound).filter(|place| is_ready(1 + place)).collect(),
        outbound: outbound
            .map(|(address, place)| (*address, flags[place]))
            .collect(),
        stop: is_ready(first_out + addresses.len()),
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
