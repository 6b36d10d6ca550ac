//! Datagrams and journals of cores in processes.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use crate::common::{CLUSTER, loopback};
use manxdb_core::channel::{ChannelOptions, Life};
use manxdb_core::{
    Actions, Core, Event, EventOf, LocalTime, Message, Nanos, NodeId, RequestId, Token, Weight,
};
use manxdb_net::{
    Delays, Directory, Driver, Journal, NoDriver, Outside, Place, RegionId, Runtime, Settings,
    ask_status,
};
use serde::{Deserialize, Serialize};

const ASKER: NodeId = NodeId(7);
const SERVER: NodeId = NodeId(1);

/// A number over UDP, in four bytes; an odd one is a question.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Number(u32);

impl Message for Number {
    fn weight(&self) -> Weight {
        Weight::Report
    }
    fn label(&self) -> &'static str {
        "number"
    }
    fn is_datagram(&self) -> bool {
        true
    }
    fn encode_datagram(&self) -> Option<Vec<u8>> {
        Some(self.0.to_le_bytes().to_vec())
    }
    fn decode_datagram(bytes: &[u8]) -> Option<Self> {
        let bytes = <[u8; 4]>::try_from(bytes).ok()?;
        Some(Self(u32::from_le_bytes(bytes)))
    }
}

/// A server writes a number down before it answers it plus one; a client passes numbers on.
#[derive(Debug, Default)]
struct Counter {
    written: Vec<(NodeId, u32)>,
    sum: u64,
}

impl Core for Counter {
    type Message = Number;
    type Timer = ();
    type Request = u32;
    type Reply = u32;
    type Record = u32;

    fn step(&mut self, _: LocalTime, event: EventOf<Self>, out: &mut Actions<Self>) {
        match event {
            Event::Request { body, .. } => out.send(SERVER, Number(body)),
            Event::Message { from, body } if body.0 % 2 == 1 => {
                self.sum += u64::from(body.0);
                self.written.push((from, body.0));
                out.persist(body.0, Token(u64::from(body.0)));
                out.send(from, Number(body.0 + 1));
            }
            Event::Message { body, .. } => out.reply(RequestId(1), body.0),
            Event::Persisted(token) => {
                let last = self.written.last().unwrap().1;
                assert!(token.0 <= u64::from(last));
                self.sum += 1_000;
            }
            _ => {}
        }
    }

    fn check(&self) -> Result<(), String> {
        let sum: u64 = self
            .written
            .iter()
            .map(|(_, number)| u64::from(*number))
            .sum();
        (self.sum >= sum)
            .then_some(())
            .ok_or_else(|| "a number is not counted".to_owned())
    }

    fn digest(&self) -> u64 {
        self.sum
    }
}

/// Asks one number again and again until it is answered: datagrams may be lost.
#[derive(Default)]
struct Once {
    asked_at: Nanos,
    answered_at: Option<Nanos>,
}

impl Driver<Counter> for Once {
    fn begin(&mut self, outside: &mut Outside<Counter>) {
        self.asked_at = outside.now();
        outside.request(ASKER, 41);
        outside.wake_after(Nanos::from_secs(1), 0);
    }
    fn wake(&mut self, outside: &mut Outside<Counter>, _: u64) {
        self.begin(outside);
    }
    fn reply(&mut self, outside: &mut Outside<Counter>, _: NodeId, _: RequestId, body: u32) {
        assert_eq!(body, 42);
        self.answered_at.get_or_insert(outside.now());
    }
    fn done(&self) -> bool {
        self.answered_at.is_some()
    }
}

fn place(node: NodeId) -> Place {
    Place {
        node,
        region: RegionId(0),
    }
}

fn settings(server: SocketAddr, holds_datagrams: bool) -> Settings<Counter> {
    let mut directory = Directory::default();
    directory.add_server(place(SERVER), server);
    Settings {
        cluster: CLUSTER,
        directory,
        delays: Delays {
            lan: Nanos::from_millis(30),
            ..Delays::default()
        },
        channel: ChannelOptions {
            is_numbered: false,
            ..ChannelOptions::default()
        },
        holds_datagrams,
        seed: 1,
        notes: |_| Vec::new(),
    }
}

struct Server {
    address: SocketAddr,
    stop: UnixStream,
    thread: thread::JoinHandle<(u64, u64)>,
}

impl Server {
    /// In its `life`th life, with what its journal has.
    fn start(directory: &std::path::Path, life: u64) -> (Self, Vec<u32>) {
        let listener = loopback();
        let address = listener.local_addr().unwrap();
        let (journal, records) = Journal::open(&directory.join("journal"), life).unwrap();
        let (stop, stopped) = UnixStream::pair().unwrap();
        let thread = thread::spawn(move || {
            let mut runtime = Runtime::new(settings(address, false), listener, NoDriver).unwrap();
            let core = Counter::default();
            runtime
                .add_with_journal(place(SERVER), Life(life), core, (journal, |_| false))
                .unwrap();
            runtime.open_datagrams(SERVER).unwrap();
            runtime.run(Some(&stopped)).unwrap();
            let refused = runtime.counters().datagrams_refused;
            (refused, runtime.core(SERVER).unwrap().sum)
        });
        // It answers when its socket for datagrams is there.
        ask_status(address, Duration::from_secs(20)).unwrap();
        let this = Self {
            address,
            stop,
            thread,
        };
        (this, records)
    }

    fn stop(self) -> (u64, u64) {
        drop(self.stop);
        self.thread.join().unwrap()
    }
}

#[test]
fn a_datagram_is_answered_where_it_came_from_and_held_both_ways_by_who_asks() {
    let directory = tempfile::tempdir().unwrap();
    let (server, _) = Server::start(directory.path(), 1);
    let settings = settings(server.address, true);
    let mut asker = Runtime::new(settings, loopback(), Once::default()).unwrap();
    asker.add(place(ASKER), Life(1), Counter::default());
    asker.open_datagrams(ASKER).unwrap();
    asker.run(None).unwrap();
    let asked = asker.into_driver();
    let took = asked.answered_at.unwrap().saturating_sub(asked.asked_at);
    assert!(took >= Nanos::from_millis(60), "{took:?} there and back");
    server.stop();
}

#[test]
fn bytes_that_are_no_datagram_are_counted_and_harm_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let (server, _) = Server::start(directory.path(), 1);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    for bytes in [&[][..], &[1; 3], &[1; 5], &[7; 2_048], &[9; 9_000]] {
        socket.send_to(bytes, server.address).unwrap();
    }
    socket
        .send_to(&5_u32.to_le_bytes(), server.address)
        .unwrap();
    let mut answer = [0; 8];
    let (count, from) = socket.recv_from(&mut answer).unwrap();
    assert_eq!((count, from), (4, server.address));
    assert_eq!(answer[..4], 6_u32.to_le_bytes());
    let (refused, _) = server.stop();
    assert_eq!(refused, 5);
}

#[test]
fn what_a_core_wrote_down_is_there_in_its_next_life() {
    let directory = tempfile::tempdir().unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let mut written = Vec::new();
    for life in 1..4_u32 {
        let (server, records) = Server::start(directory.path(), life.into());
        assert_eq!(records, written);
        let number = life * 2 + 1;
        socket
            .send_to(&number.to_le_bytes(), server.address)
            .unwrap();
        socket.recv_from(&mut [0; 8]).unwrap();
        written.push(number);
        server.stop();
    }
}
