//! A toy core, processes of it in threads, and a line between them that breaks.

#![allow(dead_code, clippy::unwrap_used, clippy::disallowed_methods)]

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};

use manxdb_core::channel::{ChannelOptions, Life};
use manxdb_core::check::ensure;
use manxdb_core::{
    Actions, Core, Event, EventOf, LocalTime, Message, Nanos, NodeId, Random, RequestId, Weight,
};
use manxdb_net::counters::Counters;
use manxdb_net::{
    ClusterId, Delays, Directory, Driver, NoDriver, Outside, Place, RegionId, Runtime, Settings,
};
use serde::{Deserialize, Serialize};

pub const CLUSTER: ClusterId = ClusterId(0xC1);
pub const ASKER: NodeId = NodeId(0);
pub const ECHO: NodeId = NodeId(1);

#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Toy {
    Ask(u64, Vec<u8>),
    Answer(u64),
}

impl Message for Toy {
    fn weight(&self) -> Weight {
        Weight::Report
    }
    fn label(&self) -> &'static str {
        match self {
            Self::Ask(..) => "Ask",
            Self::Answer(_) => "Answer",
        }
    }
}

/// Node 0 passes requests on to node 1, which answers them. Both count what arrives.
#[derive(Debug, Default)]
pub struct ToyCore {
    pub arrived: u64,
    pub out_of_order: u64,
}

impl ToyCore {
    fn count(&mut self, number: u64) {
        if number != self.arrived {
            self.out_of_order += 1;
        }
        self.arrived += 1;
    }
}

impl Core for ToyCore {
    type Message = Toy;
    type Timer = ();
    type Request = u64;
    type Reply = u64;
    type Record = ();

    fn step(&mut self, _: LocalTime, event: EventOf<Self>, out: &mut Actions<Self>) {
        match event {
            Event::Request { body, .. } => {
                out.mark(body, "asked");
                out.send(ECHO, Toy::Ask(body, vec![7; 100]));
            }
            Event::Message { from, body } => match body {
                Toy::Ask(number, _) => {
                    self.count(number);
                    out.send(from, Toy::Answer(number));
                }
                Toy::Answer(number) => {
                    self.count(number);
                    out.reply(RequestId(number), number);
                }
            },
            _ => {}
        }
    }

    fn check(&self) -> Result<(), String> {
        let (arrived, out_of_order) = (self.arrived, self.out_of_order);
        ensure(out_of_order <= arrived, || {
            format!("{out_of_order} of {arrived} came out of order")
        })
    }

    fn digest(&self) -> u64 {
        self.arrived
    }
}

/// Asks `total` things, some at a time, and is done when all are answered.
pub struct Asker {
    pub total: u64,
    pub asked: u64,
    pub answered: u64,
    /// Notes of the core that it asked.
    pub marked: u64,
}

impl Asker {
    pub fn new(total: u64) -> Self {
        Self {
            total,
            asked: 0,
            answered: 0,
            marked: 0,
        }
    }

    fn ask(&mut self, outside: &mut Outside<ToyCore>) {
        if self.asked < self.total {
            outside.request(ASKER, self.asked);
            self.asked += 1;
        }
    }
}

impl Driver<ToyCore> for Asker {
    fn begin(&mut self, outside: &mut Outside<ToyCore>) {
        for _ in 0..16 {
            self.ask(outside);
        }
    }
    fn reply(&mut self, outside: &mut Outside<ToyCore>, _: NodeId, _: RequestId, _: u64) {
        self.answered += 1;
        self.ask(outside);
    }
    fn marked(&mut self, _: &mut Outside<ToyCore>, core: &ToyCore, txn: u64, phase: &'static str) {
        assert_eq!((phase, txn), ("asked", self.marked));
        assert!(core.arrived <= txn, "what is not asked is not answered");
        self.marked += 1;
    }
    fn done(&self) -> bool {
        self.answered == self.total
    }
}

pub fn loopback() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

pub fn place(node: NodeId) -> Place {
    Place {
        node,
        region: RegionId(node.0),
    }
}

pub fn settings(asker: SocketAddr, echo: SocketAddr) -> Settings<ToyCore> {
    let mut directory = Directory::default();
    directory.add_server(place(ASKER), asker);
    directory.add_server(place(ECHO), echo);
    Settings {
        cluster: CLUSTER,
        directory,
        delays: Delays {
            wan: Nanos::from_micros(200),
            wan_jitter: Nanos::from_micros(300),
            ..Delays::default()
        },
        holds_datagrams: true,
        channel: ChannelOptions {
            tick: Nanos::from_millis(1),
            resend_ticks: 5,
            resend_ticks_max: 20,
            ..ChannelOptions::default()
        },
        seed: 1,
        notes: |core| vec![("arrived".to_owned(), core.arrived.to_string())],
    }
}

/// Node 1 in a thread; what it counted, and its core's count, come back at the end.
pub struct Echo {
    stop: UnixStream,
    thread: JoinHandle<(Counters, u64, u64)>,
}

impl Echo {
    pub fn start(settings: Settings<ToyCore>, listener: TcpListener, address: SocketAddr) -> Self {
        let (stop, stopped) = UnixStream::pair().unwrap();
        let thread = thread::spawn(move || {
            let mut runtime = Runtime::new(settings, listener, NoDriver).unwrap();
            runtime.advertise(address);
            runtime.add(place(ECHO), Life(1), ToyCore::default());
            runtime.run(Some(&stopped)).unwrap();
            let core = runtime.core(ECHO).unwrap();
            let seen = (core.arrived, core.out_of_order);
            (runtime.counters().clone(), seen.0, seen.1)
        });
        Self { stop, thread }
    }

    pub fn stop(self) -> (Counters, u64, u64) {
        drop(self.stop);
        self.thread.join().unwrap()
    }
}

/// What a line does to the bytes that pass.
#[derive(Clone, Copy)]
pub enum Damage {
    /// The connection breaks after some.
    Breaks,
    /// And a bit of them is flipped before that.
    Flips,
}

/// A port that forwards to `to` and damages every connection sooner or later.
pub fn bad_line(to: SocketAddr, damage: Damage) -> SocketAddr {
    let listener = loopback();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for (number, client) in (0..).zip(listener.incoming()) {
            let Ok(client) = client else { return };
            let Ok(server) = TcpStream::connect(to) else {
                return;
            };
            thread::spawn(move || forward(client, server, damage, Random::new(number)));
        }
    });
    address
}

fn forward(mut client: TcpStream, mut server: TcpStream, damage: Damage, mut random: Random) {
    let mut left = 2_000 + usize::try_from(random.below(20_000)).unwrap();
    let mut bytes = [0; 1_000];
    while let Ok(count @ 1..) = client.read(&mut bytes) {
        let passed = count.min(left);
        left -= passed;
        if left < 1_000 && matches!(damage, Damage::Flips) {
            let place = usize::try_from(random.below(passed.max(1) as u64)).unwrap();
            bytes[place] ^= 1 << random.below(8);
        }
        if server.write_all(&bytes[..passed]).is_err() || left == 0 {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
}
